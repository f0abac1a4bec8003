//! Computes the cost of a handoff for one flow.

use super::analysis::HandoffAnalysis;
use super::cut::Cut;
use super::experience::{Experience, FlowCost, Handoff, Outage, Owner, Recovery};
use super::recovery::{BEFORE, Goodput, ends_too_early, window};
use super::stages::{Next, share_out};
use crate::flow::{Arrival, Flow, FlowEnd, PacketEvent, Packets};
use std::collections::BTreeSet;
use trace::{HostId, Record, What};
use wire::{Instant, PacketId};

impl HandoffAnalysis<'_> {
    /// Returns the handoff's cost for a flow. Returns `None` if the host is no end of the flow, or if the flow began
    /// after the cut. Also returns `None` if the flow ended at or before the cut, and lost no packet after the decision
    /// to move.
    pub(super) fn cost(&self, cut: &Cut<'_>, index: usize) -> Option<FlowCost> {
        let (flow, packets) = (self.traffic.flows.get(index)?, self.traffic.packets.get(index)?);
        let is_his = flow.from.host == cut.host || flow.to.host == cut.host;
        let loses = packets.lost.iter().any(|lost| lost.at >= cut.begun);
        let is_there = flow.begun <= cut.at && (loses || flow.ended.is_none_or(|ended| ended > cut.at));
        if !is_his || !is_there {
            return None;
        }
        let next = self.next(cut, flow, packets);
        let opened = self.opened(cut, (flow, packets), next);
        let arrived = next.and_then(|next| flow.arrivals.get(next)).map(|arrival| arrival.at);
        let resumed = opened.or(arrived);
        let goodput = Goodput::new(flow, packets, cut.at);
        let recovery = match (opened, resumed) {
            (Some(opened), _) => Recovery::At(opened),
            (None, Some(resumed)) => goodput.recovery(resumed),
            (None, None) => Recovery::Never,
        };
        let until = cut.later().next().map_or(Instant::NEVER, |next| next.begun);
        // Packets that were sent after the recovery are not charged. Without a recovery, the limit is the end of the
        // outage. If the outage did not end, there is no limit.
        let last = recovery.at().or(resumed);
        let charged = |event: &&PacketEvent| {
            let is_before = last.is_none_or(|last| event.sent <= last);
            event.at >= cut.begun && event.at < until && is_before
        };
        // Until the home agent cuts the path, packets use the earlier one.
        let since = if cut.by.is_some() { cut.at } else { cut.begun };
        let lost = packets.lost.iter().filter(|lost| lost.at >= since && charged(lost));
        let losses: Vec<PacketEvent> = lost.copied().collect();
        let experience = match opened {
            Some(opened) => Experience::Outage(self.until_opened(cut, flow, opened)),
            None => self.experience(cut, index, (flow, packets), next, losses.len() as u64),
        };
        let recovery = match (&experience, resumed) {
            (Experience::NotMeasured, _) => Recovery::NotMeasured,
            (Experience::None, Some(resumed)) if opened.is_none() && !goodput.fell(resumed) => {
                Recovery::Unneeded
            }
            _ => recovery,
        };
        let duplicates = packets.doubles.iter().filter(charged).count() as u64;
        Some(FlowCost { flow: index, experience, recovery, losses, duplicates })
    }

    /// Returns when the connection opened, if it was opening at the cut and neither end had sent data before it opened.
    /// No data was waiting, so the outage ends with the opening.
    fn opened(
        &self,
        cut: &Cut<'_>,
        (flow, packets): (&Flow, &Packets),
        next: Option<usize>,
    ) -> Option<Instant> {
        let opened = packets.opening.filter(|wait| wait.from <= cut.at && wait.to > cut.at)?.to;
        let before = next.is_none_or(|next| next == 0) && opened < flow.until;
        let both = self.traffic.flows.iter().zip(&self.traffic.packets);
        let ports = |end: crate::flow::End| (end.host, end.at.port());
        let mut ours = both.filter(|(other, _)| {
            let [from, to, ours, theirs] = [other.from, other.to, flow.from, flow.to].map(ports);
            [(ours, theirs), (theirs, ours)].contains(&(from, to)) && other.transport == flow.transport
        });
        let has_data = ours.any(|(_, packets)| packets.first_sent(0).is_some_and(|sent| sent <= opened));
        (before && !has_data).then_some(opened)
    }

    fn experience(
        &self,
        cut: &Cut<'_>,
        index: usize,
        (flow, packets): (&Flow, &Packets),
        next: Option<usize>,
        lost: u64,
    ) -> Experience {
        let limit = packets.spacing * 2 + packets.spacing / 8;
        let Some(next) = next else {
            // If a stream has not ended, the run may have ended before the sender had to retransmit.
            let due = packets.due_in(flow.arrivals.len()).last().map_or(cut.at, |due| due.from.max(cut.at));
            let too_early = flow.ended.is_none() && ends_too_early(packets, due, self.end);
            let tried = lost > 0 || self.end.since(cut.at) > limit.max(window(packets, cut.at));
            let pending = if packets.is_stream {
                let waits = flow.end == FlowEnd::Unfinished && packets.waits_at(flow.until);
                packets.first_sent(flow.bytes).is_some() || waits
            } else {
                packets.sendings.iter().any(|sending| sending.at >= cut.at) || lost > 0
            };
            let never = Experience::Never { from: cut.at };
            return if tried && pending && !too_early { never } else { Experience::NotMeasured };
        };
        let (Some(arrival), before) = (
            flow.arrivals.get(next).copied(),
            next.checked_sub(1)
                .and_then(|before| flow.arrivals.get(before))
                .map_or(flow.begun, |before| before.at),
        ) else {
            return Experience::NotMeasured;
        };
        let is_lossless = lost == 0;
        let place: u64 = flow.arrivals.iter().take(next).map(|arrival| arrival.bytes).sum();
        let was_sent = packets.first_sent(place).is_some_and(|sent| sent <= cut.at);
        let was_pending = was_sent || packets.waits_at(cut.at);
        if is_lossless && before + BEFORE < cut.at && !(packets.is_stream && was_pending) {
            return Experience::NotMeasured; // the flow was idle
        }
        // A gap of two spacings is no outage. The limit has a margin, because real clocks are not exact.
        if is_lossless && arrival.at.since(before) <= limit {
            return Experience::None;
        }
        let ending = Next { flow, packets, arrival, place };
        let owners = self.owners(cut.host, cut.at, &mut cut.later(), index, &ending);
        Experience::Outage(Outage { from: cut.at, to: arrival.at, owners })
    }

    /// Returns the causes of an outage from `cut` on. If the host's next handoff cuts the path before the outage ends,
    /// the causes after the next cut are those of the flow's outage of the next handoff, if there is such an outage.
    fn owners(
        &self,
        host: HostId,
        cut: Instant,
        later: &mut dyn Iterator<Item = &Handoff>,
        index: usize,
        ending: &Next<'_>,
    ) -> Vec<Owner> {
        let to = ending.arrival.at;
        let Some(next) = later.next().filter(|next| next.cut < to) else {
            return self.causes(host, cut, to, ending);
        };
        let mut owners = self.causes(host, cut, next.cut, ending);
        let cost = next.flows.iter().find(|cost| cost.flow == index);
        let theirs = cost.and_then(|cost| cost.experience.outage()).map(|outage| outage.owners.clone());
        // A flow that was idle at the next cut has no outage of the next handoff, so the causes are computed here.
        let theirs = theirs.unwrap_or_else(|| self.owners(host, next.cut, later, index, ending));
        owners.extend(share_out(next.cut, to, theirs));
        owners.retain(|owner| owner.to > owner.from || owner.stage.is_some());
        owners
    }

    /// Returns the packets that a host sent in the last second before an instant.
    fn sent_before(&self, host: HostId, at: Instant) -> BTreeSet<PacketId> {
        let sent = |r: &Record| match &r.what {
            What::Sent(_, packet) if r.host == host && r.at < at => Some(packet.id),
            _ => None,
        };
        let since = Instant(at.0.saturating_sub(BEFORE.as_nanos() as u64));
        self.between(since, at).iter().filter_map(sent).collect()
    }

    /// Returns the index of the first arrival by the new path: the packet of this arrival reached the host, or left the
    /// host, at `cut.back` or later. For a flow from the host, a packet whose transmission is not recorded also counts.
    /// Data that the stack received before `cut.back`, and the application read later, came by the old path.
    fn next(&self, cut: &Cut<'_>, flow: &Flow, packets: &Packets) -> Option<usize> {
        let before = cut.by.map_or_else(BTreeSet::new, |by| self.sent_before(by, cut.at));
        let came = |arrival: &Arrival| {
            if before.contains(&arrival.packet) {
                return false;
            }
            if flow.to.host == cut.host {
                let reached = self.traffic.reached(arrival.packet, cut.host, cut.back);
                return reached.is_some_and(|at| at <= arrival.at);
            }
            let mut left = packets.sendings.iter().filter(|sending| sending.packet == arrival.packet);
            let is_known = left.clone().next().is_some();
            !is_known || left.any(|sending| sending.at >= cut.back && sending.at <= arrival.at)
        };
        let after = flow.arrivals.partition_point(|arrival| arrival.at <= cut.back);
        Some(after + flow.arrivals.get(after..)?.iter().position(came)?)
    }
}
