//! Outages without a handoff: a link goes down and comes back in the same cell, an event of the scenario interrupts the
//! flow, packets are lost in a row, or an agent has lost its state of the host.

use super::analysis::HandoffAnalysis;
use super::experience::{Experience, Handoff, Outage, Owner};
use super::links::{Boundary, Fault, NOT_UP, is_refusal};
use super::moves::{AGENT, AGENT_LOST};
use super::recovery::{LEAST, ends_too_early, window};
use super::stages::{Next, add, latest, share_out};
use crate::flow::{Due, Flow, FlowEnd, PacketEvent, Packets, Wait};
use node::Stage;
use std::collections::{BTreeMap, BTreeSet};
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
    /// The begin of the hole. If an event of the scenario caused the hole, the hole begins with the event. Otherwise
    /// it begins when the link of an end went down. If no link went down, or if packets were lost before, it begins
    /// with the last arrival of new data, or with the flow if nothing had arrived. It does not begin before data were
    /// due after the last arrival.
    pub from: Instant,
    /// The effect on the receiving application: always [`Experience::Outage`] or [`Experience::Never`].
    pub experience: Experience,
    /// The number of lost packets with data that belong to the hole. No handoff and no other hole counts them.
    pub lost: u64,
}

/// The longest time at the end of a flow of datagrams in which random losses are no hole.
const RANDOM: Duration = Duration::from_secs(1);

/// A hole that is shorter than this has no row, because its duration rounds to 0.0 ms.
const SHORTEST: Duration = Duration::from_micros(50);

/// The end of a hole.
#[derive(Clone, Copy)]
enum Until<'a, 'n> {
    /// New data arrived.
    Arrival(&'a Next<'n>),
    /// A handoff began; new data arrived after it. True if the host had lost its agent before, without a record of the
    /// begin of this loss.
    Handoff(&'a Next<'n>, bool),
    /// The source paused before new data arrived.
    Pause,
    Never,
}

/// The part of a gap between two arrivals in which data were due, until a handoff cut the path.
#[derive(Clone, Copy)]
struct Gap {
    /// The last arrival of new data before the gap, or the begin of the flow.
    last: Instant,
    /// Since when data were due without a pause of the source.
    due: Instant,
    end: Instant,
    /// Whether the source paused at `end`.
    is_pause: bool,
}

impl Gap {
    /// Returns the part of a gap from `last` in which data were due, but not after `until`.
    fn new(last: Instant, due: &Due, [until, end]: [Instant; 2]) -> Self {
        let is_pause = due.to < until && due.to < end;
        Self { last, due: due.from.clamp(last, until.max(last)), end: due.to.min(until), is_pause }
    }

    fn span(&self) -> Duration {
        self.end.since(self.due.min(self.end))
    }

    /// Returns whether a loss can belong to this part. Losses up to one `window` before it count too. If the source
    /// paused at its begin or its end, the packet was sent in this part.
    fn has(&self, lost: &PacketEvent, window: Duration, is_stream: bool) -> bool {
        let since = Instant(self.due.0.saturating_sub(window.as_nanos() as u64));
        let is_later = is_stream || self.due == self.last || lost.sent >= self.due;
        let is_earlier = if self.is_pause { lost.sent <= self.end } else { lost.at <= self.end };
        lost.at >= since && is_later && is_earlier
    }
}

/// The losses that the rows of one flow count. A packet counts in one row.
#[derive(Default)]
struct Charged {
    /// The losses that handoffs count, with the cut of the handoff.
    by_handoffs: BTreeMap<PacketEvent, Instant>,
    by_holes: BTreeSet<PacketEvent>,
}

impl Charged {
    fn new(handoffs: &[Handoff], index: usize) -> Self {
        let costs = handoffs.iter().flat_map(|one| one.flows.iter().map(move |cost| (one.cut, cost)));
        let costs = costs.filter(|(_, cost)| cost.flow == index);
        let by_handoffs = costs.flat_map(|(cut, cost)| cost.losses.iter().map(move |lost| (*lost, cut)));
        Self { by_handoffs: by_handoffs.collect(), ..Self::default() }
    }

    /// Charges a hole that began at `from` with a loss. Returns whether the hole counts it: no other hole does. A
    /// handoff keeps the losses before the hole. It also keeps those after its cut, if the packet was sent before the
    /// cut, or if the hole began before the cut, so that it ended there.
    fn charge(&mut self, lost: PacketEvent, from: Instant) -> bool {
        let is_handoffs = self
            .by_handoffs
            .get(&lost)
            .is_some_and(|cut| lost.at < from || (lost.at >= *cut && (lost.sent < *cut || from < *cut)));
        !is_handoffs && self.by_holes.insert(lost)
    }
}

impl HandoffAnalysis<'_> {
    /// Returns all holes of all flows, in the order of time. The losses that belong to holes are removed from
    /// `handoffs`.
    pub(super) fn holes(&self, handoffs: &mut [Handoff]) -> Vec<Hole> {
        let mut holes = Vec::new();
        for (index, (flow, packets)) in self.traffic.flows.iter().zip(&self.traffic.packets).enumerate() {
            let mut charged = Charged::new(handoffs, index);
            holes.extend(self.holes_of(handoffs, (index, flow, packets), &mut charged));
            for cost in handoffs.iter_mut().flat_map(|one| &mut one.flows).filter(|cost| cost.flow == index) {
                cost.keep(|lost| !charged.by_holes.contains(lost));
            }
        }
        holes.sort_by_key(|hole| (hole.from, hole.flow));
        holes
    }

    fn holes_of(
        &self,
        handoffs: &[Handoff],
        (index, flow, packets): (usize, &Flow, &Packets),
        charged: &mut Charged,
    ) -> Vec<Hole> {
        let mut holes = Vec::new();
        let mut place = 0;
        let arrivals = flow.arrivals.iter().copied().map(Some).chain([None]);
        let mut before: Option<Instant> = None;
        for (number, arrival) in arrivals.enumerate() {
            let last = before.unwrap_or(flow.begun);
            let end = arrival.map_or(flow.until, |arrival| arrival.at);
            before = Some(end);
            let next = arrival.map(|arrival| Next { flow, packets, arrival, place });
            place += arrival.map_or(0, |arrival| arrival.bytes);
            let limit = limit(packets, last);
            for due in packets.due_in(number).iter().filter(|due| due.span() > limit) {
                // Losses after a handoff has cut the path belong to the handoff, and earlier losses to the hole.
                let cut = handoffs.iter().filter(|handoff| is_of(handoff, index, due));
                let next_handoff = cut.min_by_key(|handoff| handoff.cut);
                let until = next_handoff.map_or(end, |handoff| handoff.cut);
                let gap = Gap::new(last, due, [until, end]);
                if gap.span() <= limit {
                    continue;
                }
                let Some(lost) = self.lost_in(flow, packets, next.as_ref(), gap) else { continue };
                let ends = match (next_handoff, &next) {
                    _ if gap.is_pause => Until::Pause,
                    (Some(handoff), Some(next)) => Until::Handoff(next, self.lost_agent(handoff)),
                    (None, Some(next)) => Until::Arrival(next),
                    (_, None) => Until::Never,
                };
                let mut hole = self.hole(index, (flow, packets), gap, &lost, (ends, next.as_ref()));
                if !rounds_to_zero(&hole) {
                    let has_data = |lost: &&PacketEvent| packets.lost.binary_search(lost).is_ok();
                    let ours = lost.iter().filter(has_data);
                    hole.lost = ours.filter(|lost| charged.charge(**lost, hole.from)).count() as u64;
                    holes.push(hole);
                }
            }
        }
        holes
    }

    /// Returns the losses in a gap, if packets were lost in it, or if its data waited for a host or a link. Otherwise
    /// the gap is no hole.
    fn lost_in(
        &self,
        flow: &Flow,
        packets: &Packets,
        next: Option<&Next<'_>>,
        gap: Gap,
    ) -> Option<Vec<PacketEvent>> {
        let Gap { last, due, end, is_pause } = gap;
        let held = if next.is_none() { self.held_by_faults(packets, [last, end]) } else { Vec::new() };
        let is_too_early = flow.ended.is_none() && ends_too_early(packets, due, end);
        let is_due = next.is_some()
            || is_pause
            || (is_pending(flow, packets, &held, last)
                && !is_too_early
                && !(held.is_empty() && self.ends_by_random_loss(packets, [last, end])));
        let sent = next.and_then(|next| packets.first_sent(next.place));
        let further = held.iter().chain(self.lost_questions(flow, packets, gap));
        let lost = if is_due { losses(packets, further, gap, sent) } else { Vec::new() };
        // A stopped host, and the queue of a link that is down, keep packets and lose none.
        let is_delayed = || next.is_some_and(|next| self.is_delayed(next, [last, end]));
        (!lost.is_empty() || is_delayed()).then_some(lost)
    }

    /// Returns the losses of the questions that a stream answers, if the sender of a question waited for longer than
    /// [`limit`] in this gap.
    fn lost_questions(&self, flow: &Flow, packets: &Packets, gap: Gap) -> &[PacketEvent] {
        let is_asked = !packets.questions.is_empty() || packets.unread.is_some();
        let Some((_, questions)) = self.reverse(flow).filter(|_| is_asked) else { return &[] };
        let waited = questions.waited([gap.due, gap.end], None);
        let is_long = waited.is_some_and(|wait| wait.span() > limit(packets, gap.last));
        if is_long { &questions.lost } else { &[] }
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
        (flow, packets): (&Flow, &Packets),
        gap: Gap,
        lost: &[PacketEvent],
        (until, next): (Until<'_, '_>, Option<&Next<'_>>),
    ) -> Hole {
        let Gap { last, due, end, .. } = gap;
        let is_end = |host: HostId| host == flow.from.host || host == flow.to.host;
        let down = self.first(last, end, |r| {
            is_end(r.host) && matches!(&r.what, What::Down(_, why) if !is_refusal(why))
        });
        let away = || self.away(flow, gap).filter(|_| lost.is_empty());
        let event = self.event_of(flow, lost, gap, next).or_else(away);
        let began = event.as_ref().map(|[begun, _]| begun.0).or(down.map(|down| down.at));
        let began = began.map(|began| began.max(due));
        // If packets were lost before the event or before the link went down, the hole had begun already.
        let loses = |since: Instant| lost.iter().any(|lost| lost.at > due && lost.at < since);
        let from = began.filter(|began| !loses(*began)).unwrap_or(due);
        let host = down.map_or_else(|| self.loser(flow, lost), |down| down.host);
        if matches!(until, Until::Never) {
            let experience = Experience::Never { from };
            return Hole { host, flow: index, from, experience, lost: 0 };
        }
        // A packet that was sent before the end of the event waited for it.
        let delayed = event.is_some();
        let is_sent = next.is_some_and(|next| packets.first_sent(next.place) == Some(due));
        let begins = match (from == due && due > last, packets.is_stream) {
            (false, true) => (from, flow.to.host, "last_arrival".to_owned()),
            (false, false) => (from, host, "last_arrival".to_owned()),
            (true, true) if is_sent => (from, flow.from.host, "segment_sent".to_owned()),
            (true, true) => (from, flow.to.host, "data_due".to_owned()),
            (true, false) => (from, flow.from.host, "app_sent".to_owned()),
        };
        let stages = self.without_path((flow, packets, next), lost, (begins, end), (host, down, event));
        let stages = match until {
            Until::Arrival(next) => self.resumed(next, stages, delayed),
            Until::Handoff(_, true) => vec![undetected([from, end], host)],
            Until::Handoff(next, false) => {
                self.interrupted((end, host, "next_handoff".to_owned()), next, stages, None)
            }
            Until::Pause => until_pause((end, flow.from.host, "app_paused".to_owned()), stages),
            Until::Never => stages,
        };
        let owners = self.other_end(host, flow, share_out(from, end, stages));
        let experience = Experience::Outage(Outage { from, to: end, due: from, owners });
        Hole { host, flow: index, from, experience, lost: 0 }
    }

    /// Returns the first stages of a hole: the time in which packets were lost, with the causes.
    fn without_path(
        &self,
        (flow, packets, next): (&Flow, &Packets, Option<&Next<'_>>),
        lost: &[PacketEvent],
        (begin, end): (Boundary, Instant),
        (host, down, event): (HostId, Option<&Record>, Option<[Boundary; 2]>),
    ) -> Vec<Owner> {
        let from = begin.0;
        let up = down.and_then(|down| {
            self.first(from, end, |r| r.host == down.host && matches!(r.what, What::Up(..)))
        });
        let interrupted = match (event, down, up) {
            (Some([begun, ended]), ..) => {
                Some([(begun.0.max(from), begun.1, begun.2), (ended.0.min(end), ended.1, ended.2)])
            }
            (None, Some(down), Some(up)) => {
                Some([(down.at.max(from), down.host, "down".to_owned()), (up.at, up.host, "up".to_owned())])
            }
            _ => None,
        };
        let mut stages = Vec::new();
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
            let last_lost = lost.iter().rfind(|lost| lost.recorded <= end).or(lost.last());
            let last_lost = last_lost.map(|lost| self.last_loss(lost, host)).filter(|lost| lost.0 > from);
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
    /// lost packets during the event for a reason that only events cause, or the data that end the hole, `next`,
    /// waited at the event's host. Of several, one at an end of the flow, or at the host that lost packets, is
    /// preferred. Of these, it is the one that lasted longest in the gap.
    fn event_of(
        &self,
        flow: &Flow,
        lost: &[PacketEvent],
        Gap { last, due, end, .. }: Gap,
        next: Option<&Next<'_>>,
    ) -> Option<[Boundary; 2]> {
        let losses: Vec<&Record> = lost.iter().filter_map(|lost| self.lost_at(lost)).collect();
        let is_end = |host: HostId| host == flow.from.host || host == flow.to.host;
        let mut faults = self.links.faults(due, end);
        // Of a cut, the record names one end of the link, and the flow may not use this link.
        let is_at_end = |fault: &Fault<'_>| is_end(fault.host()) && !fault.is_cut();
        faults.retain(|fault| {
            let loses = || losses.iter().any(|record| self.is_lost_by(record, fault));
            let waits = || next.is_some_and(|next| self.waits_for(next, last, fault).is_some());
            fault.begun() < end && (is_at_end(fault) || loses() || waits())
        });
        let is_at_own_host = |fault: &Fault<'_>| {
            let is_its = |host: HostId| is_end(host) || host == fault.host();
            is_at_end(fault)
                || losses.iter().any(|record| is_its(record.host) && self.is_lost_by(record, fault))
        };
        let overlap = |fault: &Fault<'_>| fault.ended().min(end).since(fault.begun().max(due));
        let longer = |one, other| if overlap(other) > overlap(one) { other } else { one };
        let own = faults.iter().filter(|fault| is_at_own_host(fault)).reduce(longer);
        own.or_else(|| faults.iter().reduce(longer)).map(|fault| fault.edges.clone())
    }

    /// Returns the first time in a gap in which an end of the flow had no link, and came back before the gap ended.
    fn away(&self, flow: &Flow, Gap { due, end, .. }: Gap) -> Option<[Boundary; 2]> {
        let hosts = [flow.to.host, flow.from.host].into_iter();
        let mut all = hosts.flat_map(|host| self.links.own_link_lost(host, due, end));
        all.find(|[_, back]| back.2 != NOT_UP)
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

/// Returns the longest time with data due that is no hole: one window; for a stream two windows, because a fast
/// retransmission takes a round trip. The window of a stream does not depend on the pauses of its source.
pub(super) fn limit(packets: &Packets, last: Instant) -> Duration {
    if !packets.is_stream {
        return window(packets, last);
    }
    let round_trip = packets.round_trip(last).unwrap_or_default();
    LEAST.max(round_trip).max(packets.pace * 2) * 2
}

/// Adds the rest of a hole that a pause of the source ends: the link lost or delayed all datagrams until then.
fn until_pause(end: Boundary, mut stages: Vec<Owner>) -> Vec<Owner> {
    if let Some(back) = latest(&stages).filter(|back| back.0 < end.0) {
        add(&mut stages, Stage::Link, [Some(back), Some(end)]);
    }
    stages
}

/// Returns whether a hole ended where it began: an event of the scenario cut the path at the instant of the handoff
/// that the rest of the gap belongs to.
fn rounds_to_zero(hole: &Hole) -> bool {
    hole.experience.outage().is_some_and(|outage| outage.span() < SHORTEST)
}

/// Returns the packets that were lost in a gap. The data that end the gap were first sent at `next`. Lost
/// acknowledgments count if the sender waited for longer than [`limit`], until the gap ended. The packets in
/// `further` count as lost too.
fn losses<'a>(
    packets: &'a Packets,
    further: impl Iterator<Item = &'a PacketEvent>,
    gap: Gap,
    next: Option<Instant>,
) -> Vec<PacketEvent> {
    let Gap { last, end, .. } = gap;
    let waited = packets.waited([last, end], next);
    let is_long = |wait: &Wait| wait.to == end && wait.span() > limit(packets, last);
    let acks = waited.filter(is_long).map(|_| &packets.lost_acks);
    let all = packets.lost.iter().chain(further).chain(acks.into_iter().flatten());
    let window = window(packets, last);
    let mut lost: Vec<PacketEvent> =
        all.filter(|lost| gap.has(lost, window, packets.is_stream)).copied().collect();
    lost.sort_unstable();
    lost
}

/// Returns whether the outage of a flow by a handoff has a part of a time in which data were due. A handoff without
/// an outage has no part of it.
fn is_of(handoff: &Handoff, index: usize, due: &Due) -> bool {
    let cost = handoff.flows.iter().find(|cost| cost.flow == index);
    // After its outage a flow can be slow, but it receives data: a gap that begins later is a hole, also if the flow
    // has not recovered yet.
    let until = match cost.map(|cost| &cost.experience) {
        Some(Experience::Never { .. }) => Instant::NEVER,
        Some(Experience::Outage(outage)) => outage.to,
        Some(Experience::None | Experience::NotMeasured) | None => return false,
    };
    due.from < until && due.to >= handoff.cut
}

/// Returns whether data that were sent never arrived, or the sender still waited at the end of the run. An
/// application can reset a connection before it has received all data; a program resets it when it needs no more
/// data.
fn is_pending(flow: &Flow, packets: &Packets, held: &[PacketEvent], last: Instant) -> bool {
    let is_unfinished = flow.end == FlowEnd::Unfinished;
    let is_missing = if packets.is_stream {
        let is_missing = packets.first_sent(flow.bytes).is_some() || packets.unread.is_some();
        is_missing || (is_unfinished && packets.waits_at(flow.until))
    } else {
        packets.lost.iter().chain(held).any(|lost| lost.at > last)
    };
    is_missing && (is_unfinished || (flow.end == FlowEnd::Reset && !packets.is_programs))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::PacketId;

    /// A packet is sent and lost at the instant of the cut. The hole before the cut ended there, so the handoff keeps the
    /// loss. A hole after the outage takes the losses of packets that were sent after the cut.
    #[test]
    fn a_hole_takes_no_loss_at_the_cut_that_ends_it() {
        let ms = Instant::from_millis;
        let lost = |sent: u64, at: u64| PacketEvent {
            at: ms(at),
            packet: PacketId(1),
            sent: ms(sent),
            recorded: ms(at),
        };
        let takes = |lost: PacketEvent, from: u64| {
            let mut charged = Charged { by_handoffs: [(lost, ms(1_000))].into(), ..Charged::default() };
            charged.charge(lost, ms(from))
        };
        assert_eq!(
            [(990, 999), (990, 1_000), (1_000, 1_000)].map(|(sent, at)| takes(lost(sent, at), 500)),
            [true, false, false]
        );
        assert_eq!(
            [(990, 1_200), (1_100, 1_200), (1_100, 1_190)].map(|(sent, at)| takes(lost(sent, at), 1_195)),
            [false, true, false]
        );
    }
}
