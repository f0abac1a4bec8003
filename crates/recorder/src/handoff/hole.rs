//! Outages without a handoff: a link goes down and comes back in the same cell, an event of the scenario interrupts the
//! flow, or packets are lost in a row.

use super::analysis::{Boundary, HandoffAnalysis, NOT_ENDED, is_refusal};
use super::experience::{Experience, Handoff, Outage, Owner, Recovery};
use super::recovery::{ends_too_early, window};
use super::stages::{Next, add, share_out};
use crate::flow::{Flow, FlowEnd, PacketEvent, Packets};
use node::Stage;
use trace::{HostId, Record, What};
use wire::{Duration, Instant};

/// A time in which a flow received nothing new because packets were lost, without a handoff as the cause.
#[derive(Clone, PartialEq, Debug)]
pub struct Hole {
    /// The host to which the hole belongs, at one end of the flow. It is the end whose link went down. If no link went
    /// down, it is the sender if the sender's link or node lost the last lost packet, otherwise the receiver.
    pub host: HostId,
    /// The flow's index in [`crate::run::Outcome::flows`].
    pub flow: usize,
    /// The begin of the hole. If an event of the scenario caused the hole, the hole begins with the event, but not
    /// before the last arrival of new data. Otherwise it begins when the link of an end went down. If no link went
    /// down, it begins with the last arrival of new data, or with the flow if nothing had arrived.
    pub from: Instant,
    /// [`Experience::Outage`] or [`Experience::Never`].
    pub experience: Experience,
    /// The number of lost packets with data that belong to the hole.
    pub lost: u64,
}

/// The longest time at the end of a flow of datagrams in which random losses are no hole.
const RANDOM: Duration = Duration::from_secs(1);

/// The end of a hole.
#[derive(Clone, Copy)]
enum Until<'a, 'n> {
    /// New data arrived.
    Arrival(&'a Next<'n>),
    /// A handoff began; new data arrived after it.
    Handoff(&'a Next<'n>),
    Never,
}

impl HandoffAnalysis<'_> {
    /// Returns all holes of all flows, in the order of time.
    pub(super) fn holes(&self, handoffs: &[Handoff]) -> Vec<Hole> {
        let flows = self.traffic.flows.iter().zip(&self.traffic.packets).enumerate();
        let mut holes: Vec<Hole> = flows
            .flat_map(|(index, (flow, packets))| self.holes_of(handoffs, index, flow, packets))
            .collect();
        holes.sort_by_key(|hole| (hole.from, hole.flow));
        holes
    }

    fn holes_of(&self, handoffs: &[Handoff], index: usize, flow: &Flow, packets: &Packets) -> Vec<Hole> {
        let mut holes = Vec::new();
        let mut place = 0;
        let arrivals = flow.arrivals.iter().copied().map(Some).chain([None]);
        let mut before: Option<Instant> = None;
        for arrival in arrivals {
            let last = before.unwrap_or(flow.begun);
            let end = arrival.map_or(flow.until, |arrival| arrival.at);
            // Packets that wait for a stopped host or behind a cut link until the run ends count as lost.
            let waits =
                arrival.is_none() && self.ordered(last, end).iter().any(|[_, ended]| ended.2 == NOT_ENDED);
            let held = if waits { packets.held.as_slice() } else { &[] };
            let is_due = arrival.is_some()
                || (is_pending(flow, packets, held, last)
                    && !ends_too_early(packets, place, last, end)
                    && !(held.is_empty() && self.ends_by_random_loss(packets, [last, end])));
            // Losses after a handoff began belong to the handoff, and earlier losses to the hole.
            let begun = handoffs.iter().filter(|handoff| is_of(handoff, index, flow, last, end));
            let begun = begun.map(|handoff| handoff.begun).min();
            let gap = [last, begun.unwrap_or(end)];
            if is_due && let Some(lost) = lost_in(packets, held, gap, packets.first_sent(place)) {
                let next = arrival.map(|arrival| Next { flow, packets, arrival, place });
                let until = match (begun, &next) {
                    (Some(_), Some(next)) => Until::Handoff(next),
                    (None, Some(next)) => Until::Arrival(next),
                    (_, None) => Until::Never,
                };
                holes.push(self.hole(index, flow, packets, gap, &lost, until));
            }
            place += arrival.map_or(0, |arrival| arrival.bytes);
            before = Some(end);
        }
        holes
    }

    /// Returns whether all datagrams after the last arrival were lost on links at random, within at most [`RANDOM`]. A
    /// datagram is not retransmitted, so the records cannot show whether the next datagram would have arrived.
    fn ends_by_random_loss(&self, packets: &Packets, [last, end]: [Instant; 2]) -> bool {
        let at_random = |lost: &PacketEvent| {
            let record = self.lost_at(lost);
            let reason = record.and_then(|record| match &record.what {
                What::Lost(_, _, reason) => Some(reason),
                _ => None,
            });
            reason.is_some_and(|reason| *reason == link::reason::LINK_ERROR.0)
        };
        !packets.is_stream
            && end.since(last) <= RANDOM
            && packets.lost.iter().filter(|lost| lost.at > last).all(at_random)
    }

    fn hole(
        &self,
        index: usize,
        flow: &Flow,
        packets: &Packets,
        [last, end]: [Instant; 2],
        lost: &[PacketEvent],
        until: Until<'_, '_>,
    ) -> Hole {
        let is_end = |host: HostId| host == flow.from.host || host == flow.to.host;
        let down = self.first(last, end, |r| {
            is_end(r.host) && matches!(&r.what, What::Down(_, why) if !is_refusal(why))
        });
        let event = self.event_of(flow, lost, [last, end]);
        let began = event.as_ref().map(|[begun, _]| begun.0.max(last));
        let from = began.or(down.map(|down| down.at)).unwrap_or(last);
        let host = down.map_or_else(|| self.loser(flow, lost), |down| down.host);
        let has_data = |lost: &&PacketEvent| packets.lost.binary_search(lost).is_ok();
        let lost_packets = lost.iter().filter(has_data).count() as u64;
        if matches!(until, Until::Never) {
            let experience = Experience::Never { from };
            return Hole { host, flow: index, from, experience, lost: lost_packets };
        }
        let stages = self.without_path(flow, packets, lost, [from, end], (host, down, event));
        let stages = match until {
            Until::Arrival(next) => self.resumed(next, stages),
            Until::Handoff(next) => self.interrupted((end, host, "next_handoff".to_owned()), next, stages),
            Until::Never => stages,
        };
        let owners = self.other_end(host, flow, share_out(from, end, stages));
        let experience = Experience::Outage(Outage { from, to: end, owners });
        Hole { host, flow: index, from, experience, lost: lost_packets }
    }

    /// Returns the first stage of a hole: the time in which packets were lost, with the cause.
    fn without_path(
        &self,
        flow: &Flow,
        packets: &Packets,
        lost: &[PacketEvent],
        [from, end]: [Instant; 2],
        (host, down, event): (HostId, Option<&Record>, Option<[Boundary; 2]>),
    ) -> Vec<Owner> {
        let mut stages = Vec::new();
        let up = down.and_then(|down| {
            self.first(from, end, |r| r.host == down.host && matches!(r.what, What::Up(..)))
        });
        if let Some([begun, ended]) = event {
            let edges = [(begun.0.max(from), begun.1, begun.2), (ended.0.min(end), ended.1, ended.2)];
            add(&mut stages, Stage::Link, edges.map(Some));
        } else if let (Some(down), Some(up)) = (down, up) {
            let edges = [(down.at, down.host, "down".to_owned()), (up.at, up.host, "up".to_owned())];
            add(&mut stages, Stage::Link, edges.map(Some));
        } else if !packets.is_stream {
            // The link was up, and lost several packets in a row.
            let last_lost = lost.last().map(|lost| self.last_loss(lost, host)).filter(|lost| lost.0 > from);
            let begin = (from, host, "last_arrival".to_owned());
            let end = last_lost.unwrap_or_else(|| begin.clone());
            add(&mut stages, Stage::Link, [Some(begin), Some(end)]);
        } else {
            let begin = (from, flow.to.host, "last_arrival".to_owned());
            add(&mut stages, Stage::Recovery, [Some(begin.clone()), Some(begin)]);
        }
        stages
    }

    /// Returns the scenario event that caused a hole, with its end. The event was at an end of the flow, or the flow
    /// lost packets during the event for a reason that only events cause. Of several, the first at an end of the flow,
    /// or at the host that lost packets, is preferred.
    fn event_of(
        &self,
        flow: &Flow,
        lost: &[PacketEvent],
        [last, end]: [Instant; 2],
    ) -> Option<[Boundary; 2]> {
        let by_event =
            lost.iter().filter_map(|lost| self.lost_at(lost)).filter(|record| match &record.what {
                What::Lost(_, _, why) | What::Dropped(_, _, why) => scenario::is_of_event(why),
                _ => false,
            });
        let by_event: Vec<&Record> = by_event.collect();
        let is_end = |host: HostId| host == flow.from.host || host == flow.to.host;
        let mut events = self.ordered(last, end);
        events.retain(|[begun, ended]| {
            let lasts = |record: &&Record| begun.0 <= record.at && record.at <= ended.0;
            begun.0 < end && (is_end(begun.1) || by_event.iter().any(lasts))
        });
        let its_own = |[begun, ended]: &[Boundary; 2]| {
            let lost_it = |r: &&Record| r.host == begun.1 && begun.0 <= r.at && r.at <= ended.0;
            is_end(begun.1) || by_event.iter().any(lost_it)
        };
        let place = events.iter().position(its_own).unwrap_or(0);
        events.into_iter().nth(place)
    }

    /// Returns the end of a flow to which its losses belong: the sender if the sender's link or node lost the last lost
    /// packet, otherwise the receiver.
    fn loser(&self, flow: &Flow, lost: &[PacketEvent]) -> HostId {
        let at_sender =
            |lost: &PacketEvent| self.lost_at(lost).is_some_and(|lost| lost.host == flow.from.host);
        if lost.last().is_some_and(at_sender) { flow.from.host } else { flow.to.host }
    }
}

/// Returns the packets that were lost in a gap between two arrivals. The data of the second arrival was first sent at
/// `next`. Losses up to one window before the gap count too. Returns `None` if nothing was lost, or if the gap is not
/// longer than one window; for a stream two windows, because a fast retransmission takes a round trip. Lost
/// acknowledgments count if the sender waited for longer than this limit, until the gap ended. Packets in `held` count
/// as lost.
fn lost_in(
    packets: &Packets,
    held: &[PacketEvent],
    [last, end]: [Instant; 2],
    next: Option<Instant>,
) -> Option<Vec<PacketEvent>> {
    let gap = end.since(last.min(end));
    let window = window(packets, last);
    let limit = if packets.is_stream { window * 2 } else { window };
    let since = Instant(last.0.saturating_sub(window.as_nanos() as u64));
    let waited = packets.waited([last, end], next);
    let acks = waited.filter(|wait| wait.to == end && wait.span() > limit).map(|_| &packets.lost_acks);
    let lost = || {
        let all = packets.lost.iter().chain(held).chain(acks.into_iter().flatten());
        let mut lost: Vec<PacketEvent> =
            all.filter(|lost| lost.at >= since && lost.at <= end).copied().collect();
        lost.sort_unstable();
        lost
    };
    Some(if gap > limit { lost() } else { Vec::new() }).filter(|lost| !lost.is_empty())
}

/// Returns whether a handoff accounts for a gap of a flow in this range, so that the gap is no hole.
fn is_of(handoff: &Handoff, index: usize, flow: &Flow, from: Instant, to: Instant) -> bool {
    let is_his = flow.from.host == handoff.host || flow.to.host == handoff.host;
    let cost = handoff.flows.iter().find(|cost| cost.flow == index);
    // A flow that never recovers is slow, but receives data: a gap that begins after its outage has another cause.
    let until = match cost.map(|cost| (&cost.experience, cost.recovery)) {
        Some((Experience::Never { .. }, _)) => Instant::NEVER,
        Some((Experience::NotMeasured, _) | (_, Recovery::Unneeded)) | None => handoff.cut,
        Some((_, Recovery::At(recovered))) => recovered,
        Some((Experience::Outage(outage), _)) => outage.to,
        Some((Experience::None, _)) => handoff.cut,
    };
    is_his && from < until && to >= handoff.begun
}

/// Returns whether the flow is unfinished, and data that was sent never arrived or the sender still waited at the end.
fn is_pending(flow: &Flow, packets: &Packets, held: &[PacketEvent], last: Instant) -> bool {
    let is_missing = if packets.is_stream {
        packets.first_sent(flow.bytes).is_some() || packets.waits_at(flow.until)
    } else {
        packets.lost.iter().chain(held).any(|lost| lost.at > last)
    };
    flow.end == FlowEnd::Unfinished && is_missing
}
