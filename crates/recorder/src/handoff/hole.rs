//! Outages without a handoff: a link goes down and comes back in the same cell, an event of the scenario interrupts the
//! flow, packets are lost in a row, or an agent has lost its state of the host.

use super::analysis::HandoffAnalysis;
use super::experience::{Experience, Handoff, Outage, Owner};
use super::links::{NOT_UP, is_refusal};
use super::moves::{AGENT, AGENT_LOST};
use super::recovery::{LEAST, ends_too_early, window};
use super::stages::{Next, add, latest, share_out};
use crate::faults::{Boundary, Fault};
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
pub(super) struct Gap {
    /// The last arrival of new data before the gap, or the begin of the flow.
    pub(super) last: Instant,
    /// Since when data were due without a pause of the source.
    due: Instant,
    /// When the data that were due were sent, as in [`Due::sent`].
    pub(super) sent: [Instant; 2],
    pub(super) end: Instant,
    /// Whether the source paused at `end`.
    is_pause: bool,
}

impl Gap {
    /// Returns the part of a gap from `last` in which data were due, but not after `until`.
    fn new(last: Instant, due: &Due, [until, end]: [Instant; 2]) -> Self {
        let is_pause = due.to < until && due.to < end;
        let from = due.from.clamp(last, until.max(last));
        Self { last, due: from, sent: due.sent, end: due.to.min(until), is_pause }
    }

    fn span(&self) -> Duration {
        self.end.since(self.due.min(self.end))
    }

    /// Returns whether a loss can belong to this part. With a long path, a packet can be lost long before it is due. So a
    /// packet of a stream counts if it was lost in this part, up to one `window` before it, or since the data that are
    /// due were sent. A datagram counts if it was due by its order. If the data of this part waited for a fault, a datagram
    /// also counts if it was to arrive in this part after the `delay` of its flow.
    fn has(
        &self,
        lost: &PacketEvent,
        window: Duration,
        (is_stream, delay): (bool, Option<Duration>),
    ) -> bool {
        let [first, newest] = self.sent;
        let since = Instant(self.due.0.saturating_sub(window.as_nanos() as u64)).min(first);
        let is_by_delay = || delay.is_some_and(|delay| (self.due..=self.end).contains(&(lost.sent + delay)));
        let is_due =
            if is_stream { lost.at >= since } else { (first..=newest).contains(&lost.sent) || is_by_delay() };
        let is_earlier = if self.is_pause { lost.sent <= self.end } else { lost.at <= self.end };
        is_due && is_earlier
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

    /// Charges a hole that began at `from` with a loss. Returns whether the hole counts it: no other hole does. If the hole
    /// began before the cut of a handoff, it ended there: the handoff keeps the losses before the hole and after the
    /// cut. If the hole began later, the handoff keeps the losses before the hole, and those of packets that were sent
    /// before the cut, unless a fault of the hole caused them (`is_by_fault`).
    fn charge(&mut self, lost: PacketEvent, from: Instant, is_by_fault: bool) -> bool {
        let is_handoffs = self.by_handoffs.get(&lost).is_some_and(|cut| {
            let is_before = lost.at < from;
            if from < *cut {
                is_before || lost.at >= *cut
            } else {
                !is_by_fault && (is_before || lost.sent < *cut)
            }
        });
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
            let all = packets.due_in(number);
            for due in all.iter().filter(|due| due.span() > limit) {
                // Losses after a handoff has cut the path belong to the handoff, and earlier losses to the hole.
                let cut = handoffs.iter().filter(|handoff| is_of(handoff, index, due));
                let next_handoff = cut.min_by_key(|handoff| handoff.cut);
                let until = next_handoff.map_or(end, |handoff| handoff.cut);
                let gap = Gap::new(last, due, [until, end]);
                if gap.span() <= limit {
                    continue;
                }
                let Some(lost) = self.lost_in(flow, packets, next.as_ref(), gap) else { continue };
                let is_last = next.is_none() && all.last() == Some(due);
                let ends = match (next_handoff, &next) {
                    _ if gap.is_pause && !(is_last && self.still_waits((flow, packets), &lost)) => {
                        Until::Pause
                    }
                    (Some(handoff), Some(next)) => Until::Handoff(next, self.lost_agent(handoff)),
                    (None, Some(next)) => Until::Arrival(next),
                    (_, None) => Until::Never,
                };
                let faults = self.faults_of(flow, &lost, gap, next.as_ref());
                let interrupted = (lost.as_slice(), faults.as_slice());
                let mut hole = self.hole(index, (flow, packets), gap, interrupted, (ends, next.as_ref()));
                if !rounds_to_zero(&hole) {
                    let has_data = |lost: &&PacketEvent| packets.lost.binary_search(lost).is_ok();
                    let is_ours =
                        |lost: &&PacketEvent| charged.charge(**lost, hole.from, self.is_by(lost, &faults));
                    hole.lost = lost.iter().filter(has_data).filter(is_ours).count() as u64;
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
        let Gap { last, due, end, is_pause, .. } = gap;
        let held = self.held_by_faults((flow, packets), last, self.links.faults(last, end));
        let is_too_early = flow.ended.is_none() && ends_too_early(packets, due, end);
        let is_due = next.is_some()
            || is_pause
            || (is_pending(flow, packets, &held, last)
                && !is_too_early
                && !(held.is_empty() && self.ends_by_random_loss(packets, [last, end])));
        let sent = next.and_then(|next| packets.first_sent(next.place));
        let further = held.iter().chain(self.lost_questions(flow, packets, gap));
        // A stopped host, and the queue of a link that is down, keep packets and lose none.
        let is_delayed = next.is_some_and(|next| self.is_delayed(next, gap));
        let delay = flow.delay.filter(|_| is_delayed).map(|delay| delay.p50);
        let lost = if is_due { losses((packets, delay), further, gap, sent) } else { Vec::new() };
        (!lost.is_empty() || is_delayed).then_some(lost)
    }

    /// Returns whether the sender of a stream still waited when the run ended: one of these packets was held then. The times in
    /// which a sender of SCTP waited end with its last retransmission, because acknowledgments are not recorded.
    fn still_waits(&self, (flow, packets): (&Flow, &Packets), lost: &[PacketEvent]) -> bool {
        let questions = self.questions(flow, packets).into_iter().flat_map(|questions| &questions.held);
        let mut held = packets.held.iter().chain(questions);
        packets.is_stream && flow.end == FlowEnd::Unfinished && held.any(|held| lost.contains(held))
    }

    /// Returns the losses of the questions that a stream answers, if the sender of a question waited for longer than
    /// [`limit`] in this gap.
    fn lost_questions(&self, flow: &Flow, packets: &Packets, gap: Gap) -> &[PacketEvent] {
        let Some(questions) = self.questions(flow, packets) else { return &[] };
        let waited = questions.waited([gap.due, gap.end], None);
        let is_long = waited.is_some_and(|wait| wait.span() > limit(packets, gap.last));
        if is_long { &questions.lost } else { &[] }
    }

    /// Returns the packets of the questions that a stream answers, or `None` if it answers none.
    pub(super) fn questions(&self, flow: &Flow, packets: &Packets) -> Option<&Packets> {
        let is_asked = !packets.questions.is_empty() || packets.unread.is_some();
        is_asked.then(|| self.reverse(flow)).flatten().map(|(_, questions)| questions)
    }

    /// Returns whether one of these faults caused a loss.
    fn is_by(&self, lost: &PacketEvent, faults: &[Fault<'_>]) -> bool {
        let by = |record: &Record| faults.iter().any(|fault| self.is_lost_by(record, fault));
        self.lost_at(lost).is_some_and(by)
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
        (lost, faults): (&[PacketEvent], &[Fault<'_>]),
        (until, next): (Until<'_, '_>, Option<&Next<'_>>),
    ) -> Hole {
        let Gap { last, due, end, .. } = gap;
        let is_end = |host: HostId| host == flow.from.host || host == flow.to.host;
        let down = self.first(last, end, |r| {
            is_end(r.host) && matches!(&r.what, What::Down(_, why) if !is_refusal(why))
        });
        let mut events: Vec<_> = faults.iter().map(|fault| fault.edges.clone()).collect();
        if events.is_empty() && lost.is_empty() {
            events.extend(self.away(flow, gap));
        }
        let began = events.first().map(|[begun, _]| begun.0).or(down.map(|down| down.at));
        let began = began.map(|began| began.max(due));
        // If packets were lost before the event or before the link went down, the hole had begun already.
        let loses = |since: Instant| lost.iter().any(|lost| lost.at > due && lost.at < since);
        let from = began.filter(|began| !loses(*began)).unwrap_or(due);
        let host = down.map_or_else(|| self.loser(flow, lost), |down| down.host);
        if matches!(until, Until::Never) {
            let experience = Experience::Never { from };
            return Hole { host, flow: index, from, experience, lost: 0 };
        }
        // A packet that was sent before the end of the last event waited for it.
        let delayed = !events.is_empty();
        let is_sent = next.is_some_and(|next| packets.first_sent(next.place) == Some(due));
        let begins = match (from == due && due > last, packets.is_stream) {
            (false, true) => (from, flow.to.host, "last_arrival".to_owned()),
            (false, false) => (from, host, "last_arrival".to_owned()),
            (true, true) if is_sent => (from, flow.from.host, "segment_sent".to_owned()),
            (true, true) => (from, flow.to.host, "data_due".to_owned()),
            (true, false) => (from, flow.from.host, "app_sent".to_owned()),
        };
        let stages = self.without_path((flow, packets, next), lost, (begins, end), (host, down, events));
        let stages = match until {
            Until::Arrival(next) => self.resumed(next, stages, delayed),
            Until::Handoff(_, true) => vec![undetected([from, end], host)],
            Until::Handoff(next, false) => {
                self.interrupted((end, host, "next_handoff".to_owned()), next, stages, None)
            }
            Until::Pause => {
                let stage = if packets.is_stream { Stage::Recovery } else { Stage::Link };
                until_pause((end, flow.from.host, "app_paused".to_owned()), stage, stages)
            }
            Until::Never => stages,
        };
        let owners = self.other_end(host, flow, share_out(from, end, stages));
        let experience = Experience::Outage(Outage { from, to: end, due: from, owners });
        Hole { host, flow: index, from, experience, lost: 0 }
    }

    /// Returns the first stages of a hole: the times in which packets were lost or waited, with the causes.
    fn without_path(
        &self,
        (flow, packets, next): (&Flow, &Packets, Option<&Next<'_>>),
        lost: &[PacketEvent],
        (begin, end): (Boundary, Instant),
        (host, down, mut events): (HostId, Option<&Record>, Vec<[Boundary; 2]>),
    ) -> Vec<Owner> {
        let from = begin.0;
        if events.is_empty() {
            events.extend(down.and_then(|down| self.down_until_up(down, from, end)));
        }
        let first = lost.iter().map(|lost| lost.at).find(|at| *at > from).unwrap_or(from);
        let waits = if packets.is_stream { Stage::Recovery } else { Stage::Link };
        let (mut stages, mut back) = (Vec::new(), begin.clone());
        for [gone, ended] in &events {
            // The datagrams that an earlier fault lost would have arrived from the begin of the hole on.
            let before = from.since(gone.0.min(from));
            let is_image =
                !packets.is_stream && ended.0 <= from && flow.delay.is_some_and(|delay| before <= delay.p50);
            let shift = if is_image { before } else { Duration::ZERO };
            let gone = (gone.0 + shift, gone.1, gone.2.clone());
            let ended = ((ended.0 + shift).min(end), ended.1, ended.2.clone());
            if ended.0 <= back.0 {
                continue;
            }
            if gone.0 > back.0 {
                let is_between = back.0 > from;
                let within = is_between.then(|| self.signalled(flow, &back, [first, gone.0], next));
                stages.extend(within.into_iter().flatten());
                let idle = latest(&stages).unwrap_or_else(|| back.clone());
                if idle.0 < gone.0 {
                    add(&mut stages, waits, [Some(idle), Some(gone.clone())]);
                }
            }
            let gone = (gone.0.max(back.0), gone.1, gone.2.clone());
            add(&mut stages, Stage::Link, [Some(gone), Some(ended.clone())]);
            back = ended;
        }
        let signalled = self.signalled(flow, &back, [first, end], next);
        if stages.is_empty() && signalled.is_empty() {
            if packets.is_stream {
                add(&mut stages, waits, [Some(begin.clone()), Some(begin)]);
            } else {
                self.until_last_loss(lost, begin, end, host, &mut stages);
            }
        }
        stages.extend(signalled);
        stages
    }

    /// Adds the time from `begin`, where a hole begins, until the last loss of a datagram. Losses in a row with one cause are one
    /// part: the registration if an agent dropped them, because the visit was not accepted (yet) or its state had ended; otherwise the
    /// link, which was up. If all were lost before `begin`, the part is empty.
    fn until_last_loss(
        &self,
        lost: &[PacketEvent],
        mut begin: Boundary,
        end: Instant,
        host: HostId,
        stages: &mut Vec<Owner>,
    ) {
        let before = stages.len();
        let mut within: Vec<&PacketEvent> = lost.iter().filter(|lost| lost.recorded <= end).collect();
        if within.is_empty() {
            within.extend(lost.last());
        }
        within.sort_by_key(|lost| lost.recorded);
        let by_cause: Vec<_> =
            within.into_iter().map(|lost| (self.is_unknown_to_agent(lost), lost)).collect();
        for row in by_cause.chunk_by(|a, b| a.0 == b.0) {
            let [.., (is_unknown, last)] = row else { continue };
            let last = self.last_loss(last, host);
            if last.0 > begin.0 {
                let stage = if *is_unknown { Stage::Registration } else { Stage::Link };
                add(stages, stage, [Some(begin), Some(last.clone())]);
                begin = last;
            }
        }
        if stages.len() == before {
            add(stages, Stage::Link, [Some(begin.clone()), Some(begin)]);
        }
    }

    /// Returns the time from the loss of a link until it came up again, from `from` on, or `None` if it stayed down
    /// until `end`.
    fn down_until_up(&self, down: &Record, from: Instant, end: Instant) -> Option<[Boundary; 2]> {
        let up = self.first(from, end, |r| r.host == down.host && matches!(r.what, What::Up(..)))?;
        Some([(down.at.max(from), down.host, "down".to_owned()), (up.at, up.host, "up".to_owned())])
    }

    /// Returns whether a handoff began because the host's agent had expired or left.
    fn lost_agent(&self, handoff: &Handoff) -> bool {
        let is_loss = |r: &Record| {
            r.host == handoff.host && matches!(&r.what, What::Marked(mark) if mark.name == AGENT_LOST)
        };
        handoff.kind == AGENT && self.first(handoff.begun, handoff.begun, is_loss).is_some()
    }

    /// Returns the faults that caused a hole, in the order of their begin. A fault was the crash of an end of the flow, or
    /// the flow lost packets because of it, or waited for its end.
    fn faults_of(
        &self,
        flow: &Flow,
        lost: &[PacketEvent],
        gap: Gap,
        next: Option<&Next<'_>>,
    ) -> Vec<Fault<'_>> {
        let losses: Vec<&Record> = lost.iter().filter_map(|lost| self.lost_at(lost)).collect();
        let is_end = |host: HostId| host == flow.from.host || host == flow.to.host;
        // On a long path, a fault may have ended before the packets that it lost were due.
        let mut faults = self.links.faults(gap.sent[0].min(gap.due), gap.end);
        faults.retain(|fault| fault.begun() < gap.end);
        // Of a cut, the record names one end of the link, and the flow may not use this link.
        let explains = |fault: &Fault<'_>| {
            let is_at_end = is_end(fault.host()) && fault.is_crash() && fault.ended() > gap.due;
            let loses = || losses.iter().any(|record| self.is_lost_by(record, fault));
            let is_waiting =
                |next| is_material(fault, gap, next) && self.waits_for(next, gap, fault).is_some();
            is_at_end || loses() || next.is_some_and(is_waiting)
        };
        if faults.iter().any(explains) {
            faults.retain(explains);
        } else {
            // Packets wait to the end of the run for a fault that the host has left: later ones can be late for another cause.
            faults.retain(|fault| next.is_some_and(|next| self.holds(fault, next, lost, gap)));
        }
        faults
    }

    /// Returns whether one of the lost packets of a gap waited for this fault when the run ended.
    fn holds(&self, fault: &Fault<'_>, next: &Next<'_>, lost: &[PacketEvent], gap: Gap) -> bool {
        let held = self.held_by_faults((next.flow, next.packets), gap.last, vec![fault.clone()]);
        held.iter().any(|held| lost.contains(held))
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
    // After a time-out, there is no recent sample.
    let round_trip = packets.last_round_trip(last).unwrap_or_default();
    LEAST.max(round_trip).max(packets.pace * 2) * 2
}

/// Returns whether a fault can explain a part of a gap. A stop that lasts for less than 5 % of the gap does not. What
/// arrived before the end of a stop did not wait for it.
fn is_material(fault: &Fault<'_>, gap: Gap, next: &Next<'_>) -> bool {
    let overlap = fault.ended().min(gap.end).since(fault.begun().max(gap.due).min(gap.end));
    let is_over = !fault.lasts() || next.arrival.at > gap.end;
    !fault.is_stop() || (overlap * 20 > gap.span() && is_over)
}

/// Adds the rest of a hole that a pause of the source ends: the link lost or delayed all datagrams until then, or the
/// sender of a stream waited for an acknowledgment.
fn until_pause(end: Boundary, stage: Stage, mut stages: Vec<Owner>) -> Vec<Owner> {
    if let Some(back) = latest(&stages).filter(|back| back.0 < end.0) {
        add(&mut stages, stage, [Some(back), Some(end)]);
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
    (packets, delay): (&'a Packets, Option<Duration>),
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
    let due = (packets.is_stream, delay);
    let mut lost: Vec<PacketEvent> = all.filter(|lost| gap.has(lost, window, due)).copied().collect();
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
        let charge = |lost: PacketEvent, from: u64, is_by_fault: bool| {
            let mut charged = Charged { by_handoffs: [(lost, ms(1_000))].into(), ..Charged::default() };
            charged.charge(lost, ms(from), is_by_fault)
        };
        let takes = |lost: PacketEvent, from: u64| charge(lost, from, false);
        assert_eq!(
            [(990, 999), (990, 1_000), (1_000, 1_000)].map(|(sent, at)| takes(lost(sent, at), 500)),
            [true, false, false]
        );
        assert_eq!(
            [(990, 1_200), (1_100, 1_200), (1_100, 1_190)].map(|(sent, at)| takes(lost(sent, at), 1_195)),
            [false, true, false]
        );
        // A fault lost the packet on its way.
        let by_fault = [(500, 1_000), (1_195, 1_200)].map(|(from, at)| charge(lost(990, at), from, true));
        assert_eq!(by_fault, [false, true]);
    }
}
