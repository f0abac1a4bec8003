//! The evaluation of a run of `sigma/mobile-ip`.

use super::super::FOREIGN_AGENT;
use super::{
    ADVERT_WAIT, AFTER, BEFORE, EMPTY, GAP, HOME_REGISTRATION, LEFT, REGISTRATION, REMAINING, RTT_PEAK,
    SENDER_WAIT, TERMS_LEFT,
};
use crate::paper::records::{
    BIN, CORRESPONDENT, MOBILE, around, arrivals, asked, bins, departures, goodput, is, marks, millis, reads,
};
use crate::reproduce::{Samples, TimeSeries};
use node::Mark;
use recorder::run::Outcome;
use recorder::segment;
use std::collections::BTreeMap;
use wire::{Duration, Instant, Packet};

/// The names of the lines in [`series`].
pub(super) const PACKETS: &str = "packets";
pub(super) const GOODPUT: &str = "goodput";
pub(super) const ROUND_TRIPS: &str = "round trips";
/// The names of the events in [`series`].
pub(super) const MOVED: &str = "moved";
pub(super) const REGISTERED: &str = "registered";
pub(super) const FIRST: &str = "first packet";

/// The time over which the throughput before and after the move is measured.
const WINDOW: Duration = Duration::from_secs(1);
/// The time from the first packet to the measurement of the throughput after the move: slow start has ended.
const SETTLED: Duration = Duration::from_millis(500);
/// The width of the bins of the throughput in the figure.
const FIGURE_BIN: Duration = Duration::from_millis(500);

/// The instants of one handoff.
#[derive(Clone, Copy, Debug)]
struct Steps {
    /// When the mobile node left its cell.
    moved: Instant,
    /// When the mobile node was free to register with another agent: the lifetime of its registration ended, or it
    /// registered again without success. `moved` if the policy does not wait for that.
    free: Instant,
    /// The first request through the foreign agent.
    asked: Instant,
    /// The reply to this request.
    registered: Instant,
    /// The last packet from domain 1, and the first one from domain 2.
    last: Instant,
    first: Instant,
}

impl Steps {
    fn of(outcome: &Outcome) -> Result<Self, String> {
        let missing = |what: &str| format!("{what}, so the gap has no terms");
        let marks = || marks(outcome, MOBILE);
        let (moved, _) =
            marks().find(|(_, mark)| mark.name == node::HANDOFF).ok_or("the run has no handoff")?;
        let after = || marks().filter(move |(at, _)| *at >= moved);
        let is_there = |mark: &Mark| is(mark, "agent", FOREIGN_AGENT);
        let asked = asked(outcome, FOREIGN_AGENT, moved)
            .ok_or_else(|| missing("no request was sent through the foreign agent"))?;
        let (registered, _) = after()
            .find(|(at, mark)| *at >= asked && mark.name == "registered")
            .ok_or_else(|| missing("no request through the foreign agent was accepted"))?;
        let ends = |mark: &Mark| {
            mark.name == "registration_expired"
                || (mark.name == "request_sent" && !is_there(mark))
                || (mark.name == "agent_chosen" && is(mark, "why", "registration_ends"))
        };
        let free = after().find(|(at, mark)| *at <= asked && ends(mark)).map_or(moved, |(at, _)| at);
        let data = arrivals(outcome, MOBILE).filter(|(_, packet)| is_data(packet)).map(|(at, _)| at);
        let [last, first] = around(data, asked);
        let last = last.ok_or("no packet arrived by the old cell")?;
        let first = first.ok_or("no packet arrived by the new cell")?;
        Ok(Self { moved, free, asked, registered, last, first })
    }
}

/// Returns whether a packet has data of the application: TCP with a payload, or a datagram that is no control message.
fn is_data(packet: &Packet) -> bool {
    let is_message = || recorder::decode::Control::is(packet);
    segment::carries_data(packet) || (segment::is_datagram(packet) && !is_message())
}

/// Evaluates a download over TCP.
pub(super) fn tcp(outcome: &Outcome) -> Result<Samples, String> {
    let steps = Steps::of(outcome)?;
    let mut samples = terms(outcome, &steps);
    // The packet that ends the gap is the last one sent before it arrived: until then the sender was silent.
    let sent = departures(outcome, CORRESPONDENT).filter(|(at, packet)| *at < steps.first && is_data(packet));
    let sent = sent.map(|(at, _)| at).last().unwrap_or(steps.registered);
    let wait = sent.since(steps.registered);
    let reads = reads(outcome, MOBILE);
    let empty = bins(&reads).iter().filter(|bytes| **bytes == 0).count() as f64 * BIN.as_secs_f64();
    let peak = round_trips(outcome).into_iter().map(|(_, seconds)| seconds).fold(0.0, f64::max);
    let left = samples.get(TERMS_LEFT).into_iter().flatten().map(|left| left - millis(wait)).collect();
    samples.insert(LEFT, left);
    samples.insert(SENDER_WAIT, vec![wait.as_secs_f64()]);
    samples.insert(EMPTY, vec![empty]);
    samples.insert(RTT_PEAK, vec![peak]);
    samples.insert(BEFORE, vec![goodput(&reads, steps.last - WINDOW, WINDOW)]);
    samples.insert(AFTER, vec![goodput(&reads, steps.first + SETTLED, WINDOW)]);
    Ok(samples)
}

/// Evaluates a run with datagrams at a constant rate.
pub(super) fn datagrams(outcome: &Outcome) -> Result<Samples, String> {
    Ok(terms(outcome, &Steps::of(outcome)?))
}

/// Returns the gap, its terms, and what the terms leave of the gap.
fn terms(outcome: &Outcome, steps: &Steps) -> Samples {
    let Steps { moved, free, asked, registered, last, first } = *steps;
    let [remaining, wait, registration] =
        [(moved, free), (free, asked), (asked, registered)].map(|(from, to)| to.since(from));
    let gap = first.since(last);
    let left = millis(gap) - millis(remaining) - millis(wait) - millis(registration);
    let mut samples = Samples::from([
        (GAP, vec![gap.as_secs_f64()]),
        (REMAINING, vec![remaining.as_secs_f64()]),
        (ADVERT_WAIT, vec![wait.as_secs_f64()]),
        (REGISTRATION, vec![millis(registration)]),
        (TERMS_LEFT, vec![left]),
    ]);
    let mut marks = marks(outcome, MOBILE);
    let asked = marks.find(|(_, mark)| mark.name == "request_sent").map(|(at, _)| at);
    let answered = marks.find(|(_, mark)| mark.name == "registered").map(|(at, _)| at);
    if let Some((asked, answered)) = asked.zip(answered) {
        samples.insert(HOME_REGISTRATION, vec![millis(answered.since(asked))]);
    }
    samples
}

/// Returns, for each data segment that the correspondent sends, when it was sent first, and the time until an
/// acknowledgment covers it, in seconds.
fn round_trips(outcome: &Outcome) -> Vec<(Instant, f64)> {
    let of = |packet: &Packet| {
        let seen = segment::of(packet)?;
        let length = seen.segment.payload.len() as u32;
        Some((seen.segment.seq.0, length, seen.segment.ack.0))
    };
    let sent = departures(outcome, CORRESPONDENT).filter_map(|(at, packet)| {
        let (from, length, _) = of(packet).filter(|(_, length, _)| *length > 0)?;
        Some((at, from, from.wrapping_add(length)))
    });
    let Some((begun, base, _)) = sent.clone().next() else { return Vec::new() };
    // Positions in the stream, by the end of a segment. A retransmission does not change the time of the first copy.
    let mut first: BTreeMap<u32, Instant> = BTreeMap::new();
    for (at, _, end) in sent {
        first.entry(end.wrapping_sub(base)).or_insert(at);
    }
    let mut all = Vec::new();
    // Before the first data, the SYN has no acknowledgment.
    for (at, packet) in arrivals(outcome, CORRESPONDENT).skip_while(|(at, _)| *at < begun) {
        let Some((_, _, ack)) = of(packet) else { continue };
        let acked = ack.wrapping_sub(base);
        while let Some(entry) = first.first_entry().filter(|entry| *entry.key() <= acked) {
            let sent = entry.remove();
            all.push((sent, at.since(sent).as_secs_f64()));
        }
    }
    all
}

/// Returns the time series of a download, for figures. The first is the end of each arriving packet in the stream, in
/// kB after the last packet before the move. The others are the throughput in Mb/s, and the round trip of each segment
/// in seconds.
pub(super) fn series(outcome: &Outcome) -> TimeSeries {
    let data = arrivals(outcome, MOBILE).filter_map(|(at, packet)| {
        let seen = segment::of(packet)?;
        let length = seen.segment.payload.len() as u32;
        (length > 0).then_some((at, seen.segment.seq.0, length))
    });
    let steps = Steps::of(outcome).ok();
    let before = data.clone().take_while(|(at, ..)| steps.is_none_or(|steps| *at <= steps.last)).last();
    let base = before.map_or(0, |(_, seq, length)| seq.wrapping_add(length));
    let place =
        |seq: u32, length: u32| f64::from(seq.wrapping_add(length).wrapping_sub(base).cast_signed()) / 1e3;
    let packets = data.map(|(at, seq, length)| (at, place(seq, length))).collect();
    let reads = reads(outcome, MOBILE);
    let width = FIGURE_BIN.as_nanos() as u64;
    let last = reads.last().map_or(0, |(at, _)| at.0 / width);
    let bins = (0..last).map(|bin| {
        let from = Instant(bin * width);
        (from, goodput(&reads, from, FIGURE_BIN))
    });
    let lines =
        BTreeMap::from([(PACKETS, packets), (GOODPUT, bins.collect()), (ROUND_TRIPS, round_trips(outcome))]);
    let events = steps.map_or_else(Vec::new, |steps| {
        vec![(steps.moved, MOVED), (steps.registered, REGISTERED), (steps.first, FIRST)]
    });
    TimeSeries { lines, events }
}
