//! The evaluation of a run of `mobile-ip/movement-detection`.

use super::{DONE, DOUBLING, FIRST_BY_TIME_OUT, HALT, LOST, ON_RESENT, SINCE_DONE, TICK};
use crate::reproduce::{Samples, TimeSeries};
use node::Mark;
use recorder::flow::{Flow, FlowEnd};
use recorder::run::Outcome;
use recorder::segment;
use std::collections::BTreeMap;
use toml::Table;
use trace::{Record, What};
use wire::{Duration, Iface, Instant, PacketId};

const MOBILE: &str = "mobile";
const CORRESPONDENT: &str = "correspondent";

/// The names of the values of [`TimeSeries`].
pub(super) const SENT: &str = "sent";
pub(super) const RESENT: &str = "resent";
pub(super) const GOODPUT: &str = "goodput";
pub(super) const ROUND_TRIP: &str = "round trip";
pub(super) const TIME_OUTS: &str = "time-outs";
/// The names of the events of [`TimeSeries`].
pub(super) const LEFT: &str = "left";
pub(super) const DETECTED: &str = "detected";
pub(super) const REGISTERED: &str = "registered";
pub(super) const RECOVERED: &str = "recovered";

/// A retransmission after a pause of at least this time is due to a time-out. What the sender resends because of
/// an ICMP error or of duplicate acknowledgments follows other packets within a round trip.
const PAUSE: Duration = Duration::from_millis(100);
/// The halt begins at most this time before the move, and at most [`PAUSE`] after it.
const BEFORE: Duration = Duration::from_secs(1);
/// The width of the bins of the goodput.
const BIN: Duration = Duration::from_millis(100);

/// Evaluates a run in which the mobile node leaves its network at a time of the scenario.
pub(super) fn moved(outcome: &Outcome) -> Result<Samples, String> {
    let run = Run::of(outcome, left(outcome)?)?;
    let mut samples = run.samples();
    samples.insert(TICK, vec![run.ticks().len() as f64]);
    samples.insert(FIRST_BY_TIME_OUT, vec![f64::from(u8::from(run.is_first_by_time_out()))]);
    samples.insert(ON_RESENT, vec![f64::from(u8::from(run.is_on_retransmission()))]);
    let since = run.recovered.zip(run.done).map(|(recovered, done)| seconds(recovered, done));
    samples.insert(SINCE_DONE, vec![since.unwrap_or(f64::INFINITY)]);
    Ok(samples)
}

/// Evaluates a run as [`moved`] does, and compares the last two intervals between time-outs of the halt.
pub(super) fn moved_late(outcome: &Outcome) -> Result<Samples, String> {
    let run = Run::of(outcome, left(outcome)?)?;
    let mut samples = moved(outcome)?;
    let ratio = match run.ticks().as_slice() {
        [.., first, second, third] => third.since(*second).as_secs_f64() / second.since(*first).as_secs_f64(),
        _ => f64::INFINITY,
    };
    samples.insert(DOUBLING, vec![ratio]);
    Ok(samples)
}

/// Evaluates a run in which two networks overlap. The time until the handoff is done begins when the second network
/// is in reach.
pub(super) fn overlapped(outcome: &Outcome) -> Result<Samples, String> {
    let course = course(outcome);
    let of = |cell: &str| course.as_ref().and_then(|cells| cells.get(cell).copied());
    let (Some(reached), Some(lost)) = (of("2"), of("1")) else {
        return Err("the scenario has no `course` of cells 1 and 2, so nothing was measured".to_owned());
    };
    let mut run = Run::of(outcome, lost)?;
    run.begun = reached;
    run.done = done(outcome, reached);
    let mut samples = run.samples();
    samples.insert(LOST, vec![run.flow.lost as f64]);
    Ok(samples)
}

/// Takes from a run what the figure of packets shows.
pub(super) fn trace(outcome: &Outcome) -> TimeSeries {
    let Some(run) = left(outcome).and_then(|begun| Run::of(outcome, begun)).ok() else {
        return TimeSeries::default();
    };
    let first = run.sent.first().map_or(0, |sent| sent.number);
    let of = |is_resent: bool| {
        let all = run.sent.iter().filter(|sent| sent.is_resent == is_resent);
        all.map(|sent| (sent.at, (sent.number - first) as f64 / 1e3)).collect()
    };
    let mut lines = BTreeMap::from([(SENT, of(false)), (RESENT, of(true))]);
    lines.insert(GOODPUT, goodput(run.flow, outcome.plan.end()));
    lines.insert(ROUND_TRIP, run.round_trips(outcome));
    let numbered = run.ticks().into_iter().zip(1u32..).map(|(at, number)| (at, number.into()));
    let end = run.recovered.map(|recovered| (recovered, f64::NAN));
    lines.insert(TIME_OUTS, [(run.halted, 0.0)].into_iter().chain(numbered).chain(end).collect());
    let detected = marks(outcome).find(|(at, mark)| *at >= run.begun && mark.name == "agent_chosen");
    let steps = [
        (LEFT, Some(run.begun)),
        (DETECTED, detected.map(|(at, _)| at)),
        (REGISTERED, run.done),
        (RECOVERED, run.recovered),
    ];
    TimeSeries { lines, events: steps.into_iter().filter_map(|(name, at)| Some((at?, name))).collect() }
}

/// A data segment that the correspondent sent.
struct Sent {
    at: Instant,
    packet: PacketId,
    /// The number of the first byte, counted from the first sequence number of the connection.
    number: u64,
    /// Whether the segment begins below the largest byte that was sent before.
    is_resent: bool,
}

/// What one run shows about the halt of the download.
struct Run<'a> {
    flow: &'a Flow,
    begun: Instant,
    /// When the home agent had the new binding; `None`: never.
    done: Option<Instant>,
    /// The last new data before the halt.
    halted: Instant,
    /// The first new data after the halt; `None`: never.
    recovered: Option<Instant>,
    /// The packet with the first new data after the halt.
    by: Option<PacketId>,
    sent: Vec<Sent>,
    /// The sequence number of the first byte of data.
    first: u32,
}

impl<'a> Run<'a> {
    /// Evaluates a run whose path is lost at `cut`.
    fn of(outcome: &'a Outcome, cut: Instant) -> Result<Self, String> {
        let flow = outcome.flows.iter().max_by_key(|flow| flow.bytes);
        let flow = flow.ok_or("the run has no flow, so nothing was measured")?;
        let end = outcome.plan.end();
        let next = flow.arrivals.iter().skip(1).map(|next| (next.at, Some(next.packet)));
        let mut next = next.collect::<Vec<_>>();
        // A flow that does not end has no new data until the end of the run.
        next.extend((flow.end != FlowEnd::Completed).then_some((end, None)));
        let near = |(at, _): &(Instant, _)| *at + BEFORE >= cut && *at <= cut + PAUSE;
        let halts = flow.arrivals.iter().map(|arrival| arrival.at).zip(next).filter(near);
        let longest = halts.max_by_key(|(from, (to, _))| to.since(*from));
        let (halted, (to, by)) = longest.ok_or("no data arrived before the move, so nothing was measured")?;
        let recovered = by.map(|_| to);
        let (done, (first, sent)) = (done(outcome, cut), sent(outcome));
        Ok(Self { flow, begun: cut, done, halted, recovered, by, sent, first })
    }

    fn samples(&self) -> Samples {
        let done = self.done.map_or(f64::INFINITY, |done| seconds(done, self.begun));
        let halt = self.recovered.map_or(f64::INFINITY, |recovered| seconds(recovered, self.halted));
        Samples::from([(DONE, vec![done]), (HALT, vec![halt])])
    }

    /// Returns the retransmissions by time-out from the begin of the halt to its end.
    fn ticks(&self) -> Vec<Instant> {
        let until = self.recovered.unwrap_or(Instant::NEVER);
        let pairs = self.sent.iter().zip(self.sent.iter().skip(1));
        let late = pairs.filter(|(before, sent)| sent.is_resent && sent.at.since(before.at) >= PAUSE);
        let all = late.map(|(_, sent)| sent.at);
        all.filter(|at| *at > self.halted && *at <= until).collect()
    }

    /// Returns the round trips in milliseconds, each at the arrival of the acknowledgment. There is none if the sender sent
    /// anything again in that time (RFC 6298, section 3).
    fn round_trips(&self, outcome: &Outcome) -> Vec<(Instant, f64)> {
        let again: Vec<Instant> =
            self.sent.iter().filter(|sent| sent.is_resent).map(|sent| sent.at).collect();
        let mut open = self.sent.iter().filter(|sent| !sent.is_resent).peekable();
        let mut all = Vec::new();
        for (at, acknowledged) in acknowledgments(outcome, self.first) {
            let mut last = None;
            while let Some(sent) = open.next_if(|sent| sent.number < acknowledged && sent.at <= at) {
                last = Some(sent);
            }
            let is_clear = |sent: &&Sent| {
                let later = again.partition_point(|resent| *resent < sent.at);
                again.get(later).is_none_or(|resent| *resent > at)
            };
            all.extend(last.filter(is_clear).map(|sent| (at, seconds(at, sent.at) * 1e3)));
        }
        all
    }

    /// Returns whether a time-out sends the first packet with data after the handoff. It does not if the mobile node sends a
    /// delayed acknowledgment from the foreign network, which allows new data.
    fn is_first_by_time_out(&self) -> bool {
        let done = self.done.unwrap_or(Instant::NEVER);
        let first = self.sent.iter().find(|sent| sent.at > done);
        first.is_some_and(|first| self.ticks().contains(&first.at))
    }

    /// Returns whether the first new data after the halt came in a segment that the sender sent again.
    fn is_on_retransmission(&self) -> bool {
        let by = self.by.and_then(|by| self.sent.iter().find(|sent| sent.packet == by));
        by.is_some_and(|sent| sent.is_resent)
    }
}

/// Returns when the mobile node left its network.
fn left(outcome: &Outcome) -> Result<Instant, String> {
    let handoff = outcome.handoffs.first().map(|handoff| handoff.begun);
    handoff.ok_or_else(|| "the run has no handoff, so nothing was measured".to_owned())
}

/// Returns when the home agent first added or removed a binding of the mobile node, at `from` or later.
fn done(outcome: &Outcome, from: Instant) -> Option<Instant> {
    let is_done = |mark: &Mark| ["binding_changed", "binding_removed"].contains(&mark.name);
    marks(outcome).find(|(at, mark)| *at >= from && is_done(mark)).map(|(at, _)| at)
}

/// Returns the last instant before a change of the signal of each cell: when cell 1 is lost, and cell 2 in reach.
fn course(outcome: &Outcome) -> Option<BTreeMap<String, Instant>> {
    let document: Table = toml::from_str(&outcome.plan.document).ok()?;
    let cells = document.get("host")?.get(MOBILE)?.get("course")?.as_table()?;
    let step = |points: &toml::Value| {
        let at = points.as_array()?.get(1)?.as_array()?.first()?.as_str()?;
        Some(Instant::ZERO + node::config::parse_span(at)?)
    };
    Some(cells.iter().filter_map(|(cell, points)| Some((cell.clone(), step(points)?))).collect())
}

/// Returns the sequence number of the first byte of data, and the data segments that the correspondent sent, in the order
/// of time.
fn sent(outcome: &Outcome) -> (u32, Vec<Sent>) {
    let mut all: Vec<Sent> = Vec::new();
    let (mut first, mut top) = (None, 0);
    for record in here(outcome, CORRESPONDENT) {
        let What::Sent(iface, packet) = &record.what else { continue };
        if *iface == Iface::HOST || !segment::carries_data(packet) {
            continue;
        }
        let Some(seen) = segment::of(packet) else { continue };
        let first = *first.get_or_insert(seen.segment.seq.0);
        let number = u64::from(seen.segment.seq.0.wrapping_sub(first));
        all.push(Sent { at: record.at, packet: packet.id, number, is_resent: number < top });
        top = top.max(number + seen.segment.payload.len() as u64);
    }
    (first.unwrap_or_default(), all)
}

/// Returns when acknowledgments arrived at the correspondent, and how many bytes from `first` on each acknowledges.
fn acknowledgments(outcome: &Outcome, first: u32) -> impl Iterator<Item = (Instant, u64)> {
    here(outcome, CORRESPONDENT).filter_map(move |record| match &record.what {
        What::Received(iface, packet) if *iface != Iface::HOST => {
            Some((record.at, u64::from(segment::of(packet)?.segment.ack.0.wrapping_sub(first))))
        }
        _ => None,
    })
}

/// Returns the goodput of a flow in each bin until `end`, in Mb/s.
fn goodput(flow: &Flow, end: Instant) -> Vec<(Instant, f64)> {
    let bins = (end.0 / BIN.as_nanos() as u64) as usize;
    let mut bytes = vec![0; bins];
    for arrival in &flow.arrivals {
        let bin = (arrival.at.0 / BIN.as_nanos() as u64) as usize;
        bytes.get_mut(bin).into_iter().for_each(|sum| *sum += arrival.bytes);
    }
    let at = |bin: usize| Instant(bin as u64 * BIN.as_nanos() as u64);
    let rate = |bytes: u64| bytes as f64 * 8.0 / BIN.as_secs_f64() / 1e6;
    bytes.into_iter().enumerate().map(|(bin, bytes)| (at(bin), rate(bytes))).collect()
}

fn marks(outcome: &Outcome) -> impl Iterator<Item = (Instant, &Mark)> {
    outcome.records.iter().filter_map(|record| match &record.what {
        What::Marked(mark) => Some((record.at, mark)),
        _ => None,
    })
}

fn here<'a>(outcome: &'a Outcome, host: &str) -> impl Iterator<Item = &'a Record> {
    outcome.records.iter().filter(move |record| outcome.host(record.host) == host)
}

/// Returns the seconds from `from` to `to`, negative if `to` is earlier.
fn seconds(to: Instant, from: Instant) -> f64 {
    to.as_secs_f64() - from.as_secs_f64()
}
