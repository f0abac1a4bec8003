//! Computes the cost of a handoff for one flow.

use super::analysis::{HandoffAnalysis, begin, is_registered, is_switch};
use super::cut::Cut;
use super::experience::{Experience, FlowCost, Handoff, Outage, Owner, Recovery};
use super::hole::limit;
use super::moves::AGENT;
use super::recovery::{BEFORE, Goodput, ends_too_early, window};
use super::stages::{Next, share_out};
use crate::flow::{Arrival, Due, Flow, FlowEnd, PacketEvent, Packets, Sending};
use std::collections::BTreeSet;
use trace::{HostId, Record, What};
use wire::{Duration, Instant, PacketId};

impl HandoffAnalysis<'_> {
    /// Returns the handoff's cost for a flow. Returns `None` if the host is no end of the flow, or if the flow began
    /// after the cut. Also returns `None` if the flow ended at or before the cut, and lost no packet after the decision
    /// to move.
    pub(super) fn cost(&self, cut: &Cut<'_>, index: usize) -> Option<FlowCost> {
        let (flow, packets) = (self.traffic.flows.get(index)?, self.traffic.packets.get(index)?);
        let is_of_host = flow.from.host == cut.host || flow.to.host == cut.host;
        let loses = packets.lost.iter().any(|lost| lost.at >= cut.begun);
        let is_there = flow.begun <= cut.at && (loses || flow.ended.is_none_or(|ended| ended > cut.at));
        if !is_of_host || !is_there {
            return None;
        }
        let next = self.next(cut, flow, packets);
        let resumed = Resumed::new(cut, (flow, packets), next);
        let opened = self.opened(cut, (flow, packets), next);
        let goodput = Goodput::new(flow, packets, cut.at);
        let recovery = match (opened, opened.or(resumed.at())) {
            (Some(opened), _) => Recovery::At(opened),
            (None, Some(resumed)) => goodput.recovery(resumed),
            (None, None) => Recovery::Never,
        };
        let until = cut.later().next().map_or(Instant::NEVER, |next| next.begun);
        // Packets that were sent after the recovery are not charged. Without a recovery, the limit is the end of the
        // outage. If the outage did not end, there is no limit.
        let last = recovery.at().or(opened).or(resumed.at());
        let charged = |event: &&PacketEvent| {
            let is_before = last.is_none_or(|last| event.sent <= last);
            event.at >= cut.begun && event.at < until && is_before && resumed.depends_on(event)
        };
        // Until the home agent cuts the path, packets use the earlier one.
        let since = if cut.by.is_some() { cut.at } else { cut.begun };
        let charges = packets.lost.iter().filter(charged);
        let (before, mut losses): (Vec<_>, Vec<_>) = charges.copied().partition(|lost| lost.at < since);
        let effect = |lost: u64| {
            let experience = match opened {
                Some(opened) => Experience::Outage(self.until_opened(cut, flow, opened)),
                None => self.experience(cut, index, (flow, packets), &resumed, lost),
            };
            let recovery = match (&experience, resumed.at()) {
                (Experience::NotMeasured, _) => Recovery::NotMeasured,
                (Experience::None, Some(at)) if !goodput.fell(at) => Recovery::Unneeded,
                _ => recovery,
            };
            (experience, recovery)
        };
        let (experience, recovery) = effect(losses.len() as u64);
        let lossless = (!losses.is_empty()).then(|| effect(0));
        if matches!(experience, Experience::Outage(_) | Experience::Never { .. }) {
            // The gap that the cut is in had begun with these losses.
            losses.extend(before.into_iter().filter(|lost| lost.at > resumed.before));
            losses.sort_unstable();
        }
        let duplicates = packets.doubles.iter().filter(charged).count() as u64;
        Some(FlowCost {
            flow: index,
            experience,
            recovery,
            losses,
            duplicates,
            lossless: lossless.map(Box::new),
        })
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
        resumed: &Resumed,
        lost: u64,
    ) -> Experience {
        let was_active = resumed.before + BEFORE >= cut.at;
        let Some(due) = resumed.due else {
            let is_none = was_active && lost == 0 && resumed.arrival.is_some();
            return if is_none { Experience::None } else { Experience::NotMeasured };
        };
        // Data of an active flow of datagrams are expected at its spacing, also before the source sends the next one.
        let is_spaced = was_active && !packets.is_stream;
        // A gap of two spacings is no outage. The limit has a margin, because real clocks are not exact.
        let pace = if is_spaced { packets.spacing } else { packets.pace };
        let limit = pace * 2 + pace / 8;
        let Some((place, arrival)) = resumed.arrival else {
            let since = due.from.max(cut.at);
            // If a stream has not ended, the run may have ended before the sender had to retransmit.
            let too_early = flow.ended.is_none() && ends_too_early(packets, since, self.end);
            let tried = lost > 0 || self.end.since(cut.at) > limit.max(window(packets, cut.at));
            let is_measured = tried && is_pending(flow, packets, cut.at, lost) && !too_early;
            return if is_measured { Experience::Never { from: cut.at } } else { Experience::NotMeasured };
        };
        let since = if is_spaced { resumed.before } else { self.pending_since(cut, (flow, packets), &due) };
        if lost == 0 && arrival.at.since(since.max(resumed.before)) <= limit {
            return if was_active { Experience::None } else { Experience::NotMeasured };
        }
        let ending = Next { flow, packets, arrival, place };
        let owners = if due.to < arrival.at {
            self.until_paused(cut, due.to, &ending)
        } else {
            self.owners(cut.host, cut.at, &mut cut.later(), index, &ending)
        };
        let due_since = due.from.clamp(cut.at, due.to);
        Experience::Outage(Outage { from: cut.at, to: due.to, due: due_since, owners })
    }

    /// Returns since when data were due that had neither arrived nor been lost at the cut, or were sent after it.
    fn pending_since(&self, cut: &Cut<'_>, (flow, packets): (&Flow, &Packets), due: &Due) -> Instant {
        // Most flows are streams, and have many packets.
        if packets.is_stream {
            return due.from;
        }
        let arrives_later = |sending: &&Sending| {
            let reached = self.traffic.reached(sending.packet, flow.to.host, Instant::ZERO);
            reached.is_some_and(|at| at >= cut.at)
        };
        let first = packets.sendings.iter().find(arrives_later);
        first.map_or(due.from, |first| first.at)
    }

    /// Returns the causes of an outage that ends at `to` because the source paused.
    fn until_paused(&self, cut: &Cut<'_>, to: Instant, ending: &Next<'_>) -> Vec<Owner> {
        let mut owners = self.causes(cut.host, [cut.at, to], to, ending);
        for owner in owners.iter_mut().filter(|owner| owner.to == to && owner.stage.is_some()) {
            "app_paused".clone_into(&mut owner.ends);
        }
        owners
    }

    /// Returns the causes of an outage from `cut` on. If the host's next handoff cuts the path before the outage ends,
    /// the causes after the next cut are those of the flow's outage of the next handoff, if there is such an outage. If
    /// the packet that ends the outage does not depend on the next handoff, the next handoff has no part in it.
    fn owners(
        &self,
        host: HostId,
        cut: Instant,
        later: &mut dyn Iterator<Item = &Handoff>,
        index: usize,
        ending: &Next<'_>,
    ) -> Vec<Owner> {
        let to = ending.arrival.at;
        // A later decision can follow an earlier loss of the link: then its cut is not after this one.
        let next = std::iter::from_fn(|| later.next()).find(|next| next.cut >= cut);
        let Some(next) = next.filter(|next| next.cut < to) else {
            return self.causes(host, [cut, to], Instant::NEVER, ending);
        };
        if self.is_ahead(next, index, ending) {
            return self.causes(host, [cut, to], next.cut, ending);
        }
        let mut owners = self.causes(host, [cut, next.cut], next.cut, ending);
        let cost = next.flows.iter().find(|cost| cost.flow == index);
        let theirs = cost.and_then(|cost| cost.experience.outage()).map(|outage| outage.owners.clone());
        // A flow that was idle at the next cut has no outage of the next handoff, so the causes are computed here.
        let theirs = theirs.unwrap_or_else(|| self.owners(host, next.cut, later, index, ending));
        owners.extend(share_out(next.cut, to, theirs));
        owners
    }

    /// Returns whether the packet that ends an outage does not depend on a later handoff of its host. A packet from the
    /// host left it before the cut. A packet to the host was sent before the cut while the host could be reached on both
    /// paths, and no agent sent it onward by the new one; or a later packet is the first one by the new path, or there is
    /// none.
    fn is_ahead(&self, later: &Handoff, index: usize, ending: &Next<'_>) -> bool {
        let (host, arrival) = (later.host, ending.arrival);
        let is_sent = self.departure(ending).is_some_and(|departure| departure.at < later.cut);
        if ending.flow.from.host == host {
            return is_sent;
        }
        let redirected = || self.redirected(host, [later.cut, arrival.at], arrival.packet);
        if is_sent && self.has_both_paths(later) && redirected().is_none() {
            return true;
        }
        let cost = later.flows.iter().find(|cost| cost.flow == index);
        match cost.map(|cost| &cost.experience) {
            Some(Experience::Outage(outage)) => outage.to > arrival.at,
            Some(Experience::Never { .. }) => true,
            Some(Experience::None | Experience::NotMeasured) | None => false,
        }
    }

    /// Returns whether a host could be reached on both paths at the cut of a handoff: the host switched the path, or the home
    /// agent did after a change of the agent.
    fn has_both_paths(&self, handoff: &Handoff) -> bool {
        let Handoff { host, cut, .. } = *handoff;
        let switches = |r: &Record| r.host == host && begin(r).is_some_and(is_switch);
        self.first(cut, cut, switches).is_some()
            || (handoff.kind == AGENT && self.routes_to(host, cut, cut).any(is_registered))
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

/// What a flow received after a cut.
struct Resumed {
    /// When the last data arrived before the arrival by the new path; the begin of the flow if none arrived.
    before: Instant,
    /// The position of the first new data by the new path, and their arrival. `None` if there is none.
    arrival: Option<(u64, Arrival)>,
    /// The time in which data were due that the handoff delayed or lost: it began before the handoff had ended, or
    /// before the source had paused after the cut. `None` if the flow was idle.
    due: Option<Due>,
    /// When data of an idle flow became due after the handoff. The handoff has no part in what happens later.
    later: Option<Instant>,
}

impl Resumed {
    fn new(cut: &Cut<'_>, (flow, packets): (&Flow, &Packets), next: Option<usize>) -> Self {
        let arrival = next.and_then(|next| flow.arrivals.get(next)).copied();
        let number = arrival.and(next).unwrap_or(flow.arrivals.len());
        let earlier = flow.arrivals.get(..number).unwrap_or_default();
        let place = earlier.iter().map(|arrival| arrival.bytes).sum();
        let pause = pause(packets, cut.at);
        let mut until = cut.ready.max(cut.at + pause);
        let is_own = |due: &&Due| {
            // Earlier data can be on a long path until later: then lost data are due only after the handoff.
            let is_own = due.sent[0] <= until;
            until = until.max(if is_own { due.to + pause } else { until });
            is_own
        };
        let due = packets.due_in(number);
        let (own, later) = due.split_at(due.iter().take_while(is_own).count());
        Self {
            before: earlier.last().map_or(flow.begun, |before| before.at),
            arrival: arrival.map(|arrival| (place, arrival)),
            due: own.last().filter(|due| due.to >= cut.at).copied(),
            later: later.first().map(|due| due.sent[0]),
        }
    }

    /// Returns when the first new data arrived by the new path.
    fn at(&self) -> Option<Instant> {
        self.arrival.map(|(_, arrival)| arrival.at)
    }

    /// Returns whether a packet can have been lost or repeated because of the handoff.
    fn depends_on(&self, packet: &PacketEvent) -> bool {
        self.later.is_none_or(|later| packet.sent < later)
    }
}

/// Returns the time without new data after which the source of a flow counts as paused.
fn pause(packets: &Packets, at: Instant) -> Duration {
    if packets.is_stream { limit(packets, at) } else { packets.spacing * 2 + packets.spacing / 2 }
}

/// Returns whether data that had been sent before the cut, or were sent after it, never arrived.
fn is_pending(flow: &Flow, packets: &Packets, cut: Instant, lost: u64) -> bool {
    if packets.is_stream {
        let waits = flow.end == FlowEnd::Unfinished && packets.waits_at(flow.until);
        return packets.first_sent(flow.bytes).is_some() || packets.unread.is_some() || waits;
    }
    lost > 0 || !packets.held.is_empty() || packets.sendings.iter().any(|sending| sending.at >= cut)
}
