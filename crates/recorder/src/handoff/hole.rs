//! Outages without a handoff: a link goes down and comes back in the same cell, an event of the scenario interrupts the
//! flow, packets are lost in a row, or an agent has lost its state of the host.

use super::analysis::{Boundary, HandoffAnalysis, NOT_ENDED, is_refusal};
use super::experience::{Experience, Handoff, Outage, Owner};
use super::moves::{AGENT, AGENT_LOST};
use super::recovery::{ends_too_early, window};
use super::stages::{Next, add, share_out};
use crate::flow::{Flow, FlowEnd, PacketEvent, Packets};
use node::Stage;
use std::collections::BTreeSet;
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
    /// down, or if packets were lost before, it begins with the last arrival of new data, or with the flow if nothing
    /// had arrived.
    pub from: Instant,
    /// The effect on the receiving application: always [`Experience::Outage`] or [`Experience::Never`].
    pub experience: Experience,
    /// The number of lost packets with data that belong to the hole.
    pub lost: u64,
}

/// The longest time at the end of a flow of datagrams in which random losses are no hole.
const RANDOM: Duration = Duration::from_secs(1);

/// A hole that is shorter has no row.
const NOTHING: Duration = Duration::from_micros(50);

/// The end of a hole.
#[derive(Clone, Copy)]
enum Until<'a, 'n> {
    /// New data arrived.
    Arrival(&'a Next<'n>),
    /// A handoff began; new data arrived after it. True if the host had lost its agent before, without a record of the
    /// begin of this loss.
    Handoff(&'a Next<'n>, bool),
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
        // A lost packet counts in one row: that of the handoff, if it was sent before the flow had recovered.
        let costs = handoffs.iter().flat_map(|handoff| &handoff.flows).filter(|cost| cost.flow == index);
        let charged: BTreeSet<&PacketEvent> = costs.flat_map(|cost| &cost.losses).collect();
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
            let next_handoff = begun.min_by_key(|handoff| handoff.begun);
            let begun = next_handoff.map(|handoff| handoff.begun);
            let gap = [last, begun.unwrap_or(end)];
            let next = arrival.map(|arrival| Next { flow, packets, arrival, place });
            let lost = if is_due { lost_in(packets, held, gap, packets.first_sent(place)) } else { None };
            // A stopped host, and the queue of a link that is down, keep packets and lose none.
            let delayed = || next.as_ref().filter(|next| self.is_delayed(next, gap)).map(|_| Vec::new());
            if let Some(lost) = lost.or_else(delayed) {
                let until = match (begun, &next) {
                    (Some(_), Some(next)) => {
                        Until::Handoff(next, next_handoff.is_some_and(|one| self.lost_agent(one)))
                    }
                    (None, Some(next)) => Until::Arrival(next),
                    (_, None) => Until::Never,
                };
                let mut hole = self.hole(index, flow, packets, gap, &lost, until);
                hole.lost -= lost.iter().filter(|lost| charged.contains(lost)).count() as u64;
                holes.extend(Some(hole).filter(|hole| !is_nothing(hole)));
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
        let next = match &until {
            Until::Arrival(next) | Until::Handoff(next, _) => Some(*next),
            Until::Never => None,
        };
        let event = self.event_of(flow, lost, [last, end], next);
        let began = event.as_ref().map(|[begun, _]| begun.0.max(last)).or(down.map(|down| down.at));
        // If packets were lost before the event or before the link went down, the hole had begun already.
        let loses = |since: Instant| lost.iter().any(|lost| lost.at > last && lost.at < since);
        let from = began.filter(|began| !loses(*began)).unwrap_or(last);
        let host = down.map_or_else(|| self.loser(flow, lost), |down| down.host);
        let has_data = |lost: &&PacketEvent| packets.lost.binary_search(lost).is_ok();
        let lost_packets = lost.iter().filter(has_data).count() as u64;
        if matches!(until, Until::Never) {
            let experience = Experience::Never { from };
            return Hole { host, flow: index, from, experience, lost: lost_packets };
        }
        // A packet that was sent before the end of the event waited for it.
        let delayed = event.is_some();
        let stages = self.without_path((flow, packets, next), lost, [from, end], (host, down, event));
        let stages = match until {
            Until::Arrival(next) => self.resumed(next, stages, delayed),
            Until::Handoff(_, true) => vec![undetected([from, end], host)],
            Until::Handoff(next, false) => {
                self.interrupted((end, host, "next_handoff".to_owned()), next, stages, None)
            }
            Until::Never => stages,
        };
        let owners = self.other_end(host, flow, share_out(from, end, stages));
        let experience = Experience::Outage(Outage { from, to: end, owners });
        Hole { host, flow: index, from, experience, lost: lost_packets }
    }

    /// Returns the first stages of a hole: the time in which packets were lost, with the causes.
    fn without_path(
        &self,
        (flow, packets, next): (&Flow, &Packets, Option<&Next<'_>>),
        lost: &[PacketEvent],
        [from, end]: [Instant; 2],
        (host, down, event): (HostId, Option<&Record>, Option<[Boundary; 2]>),
    ) -> Vec<Owner> {
        let up = down.and_then(|down| {
            self.first(from, end, |r| r.host == down.host && matches!(r.what, What::Up(..)))
        });
        let interrupted = match (event, down, up) {
            (Some([begun, ended]), ..) => {
                Some([(begun.0.max(from), begun.1, begun.2), (ended.0.min(end), ended.1, ended.2)])
            }
            (None, Some(down), Some(up)) => {
                Some([(down.at, down.host, "down".to_owned()), (up.at, up.host, "up".to_owned())])
            }
            _ => None,
        };
        let mut stages = Vec::new();
        let begin = (from, if packets.is_stream { flow.to.host } else { host }, "last_arrival".to_owned());
        let back = interrupted.as_ref().map_or_else(|| begin.clone(), |[_, back]| back.clone());
        let first = lost.iter().map(|lost| lost.at).find(|at| *at > from).unwrap_or(from);
        let signalled = self.signalled(flow, &back, [first, end], next);
        if let Some([gone, back]) = interrupted {
            if gone.0 > from {
                let stage = if packets.is_stream { Stage::Recovery } else { Stage::Link };
                add(&mut stages, stage, [Some(begin), Some(gone.clone())]);
            }
            add(&mut stages, Stage::Link, [Some(gone), Some(back)]);
        } else if signalled.is_empty() && !packets.is_stream {
            // The link was up, and lost several packets in a row.
            let last_lost = lost.last().map(|lost| self.last_loss(lost, host)).filter(|lost| lost.0 > from);
            let end = last_lost.unwrap_or_else(|| begin.clone());
            add(&mut stages, Stage::Link, [Some(begin), Some(end)]);
        } else if signalled.is_empty() {
            add(&mut stages, Stage::Recovery, [Some(begin.clone()), Some(begin)]);
        }
        stages.extend(signalled);
        stages
    }

    /// Returns whether a handoff began because the host's agent had expired or left.
    fn lost_agent(&self, handoff: &Handoff) -> bool {
        let is_loss = |r: &Record| {
            r.host == handoff.host && matches!(&r.what, What::Marked(mark) if mark.name == AGENT_LOST)
        };
        handoff.kind == AGENT && self.first(handoff.begun, handoff.begun, is_loss).is_some()
    }

    /// Returns the scenario event that caused a hole, with its end. The event was at an end of the flow, or the flow
    /// lost packets during the event for a reason that only events cause, or the data that end the hole, `next`, waited
    /// at the event's host. Of several, the first at an end of the flow, or at the host that lost packets, is preferred.
    fn event_of(
        &self,
        flow: &Flow,
        lost: &[PacketEvent],
        [last, end]: [Instant; 2],
        next: Option<&Next<'_>>,
    ) -> Option<[Boundary; 2]> {
        let losses: Vec<&Record> = lost.iter().filter_map(|lost| self.lost_at(lost)).collect();
        let is_end = |host: HostId| host == flow.from.host || host == flow.to.host;
        let mut events = self.ordered(last, end);
        events.retain(|event| {
            let begun = &event[0];
            let loses = || losses.iter().any(|record| self.is_lost_by(record, event));
            let waits = || next.is_some_and(|next| self.waits_for(next, last, event));
            begun.0 < end && (is_end(begun.1) || loses() || waits())
        });
        let its_own = |event: &[Boundary; 2]| {
            let host = event[0].1;
            is_end(host) || losses.iter().any(|record| record.host == host && self.is_lost_by(record, event))
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

/// Returns the stage of a hole in which a mobile node did not know yet that its agent was out of reach.
fn undetected([from, to]: [Instant; 2], host: HostId) -> Owner {
    let (begins, ends) = ("last_arrival".to_owned(), AGENT_LOST.to_owned());
    Owner { stage: Some(Stage::Detection), from, to, begins, ends, hosts: Some((host, host)) }
}

/// Returns the longest gap between two arrivals that is no hole: one window; for a stream two windows, because a fast
/// retransmission takes a round trip.
pub(super) fn limit(packets: &Packets, last: Instant) -> Duration {
    let window = window(packets, last);
    if packets.is_stream { window * 2 } else { window }
}

/// Returns whether a hole ended where it began, so that its duration rounds to 0.0 ms: an event of the scenario cut the
/// path at the instant of the handoff that the rest of the gap belongs to.
fn is_nothing(hole: &Hole) -> bool {
    hole.experience.outage().is_some_and(|outage| outage.span() < NOTHING)
}

/// Returns the packets that were lost in a gap between two arrivals. The data of the second arrival was first sent at
/// `next`. Losses up to one window before the gap count too. Returns `None` if nothing was lost, or if the gap is not
/// longer than [`limit`]. Lost acknowledgments count if the sender waited for longer than this limit, until the gap
/// ended. Packets in `held` count as lost.
fn lost_in(
    packets: &Packets,
    held: &[PacketEvent],
    [last, end]: [Instant; 2],
    next: Option<Instant>,
) -> Option<Vec<PacketEvent>> {
    let gap = end.since(last.min(end));
    let (window, limit) = (window(packets, last), limit(packets, last));
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
    // After its outage a flow can be slow, but it receives data: a gap that begins later is a hole, also if the flow has
    // not recovered yet.
    let until = match cost.map(|cost| &cost.experience) {
        Some(Experience::Never { .. }) => Instant::NEVER,
        Some(Experience::Outage(outage)) => outage.to,
        Some(Experience::None | Experience::NotMeasured) | None => handoff.cut,
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
