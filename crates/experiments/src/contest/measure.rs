//! Evaluates one run of the benchmark: the cost of its one move.

use crate::reproduce::Samples;
use crate::stats;
use node::{Stage, Value, mark};
use recorder::decode::Control;
use recorder::handoff::Handoff;
use recorder::run::Outcome;
use std::collections::BTreeMap;
use trace::{HostId, Record, What};
use wire::{Duration, Iface, Instant};

/// A metric of `wayfare compare`: its name, its unit, and its form in tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Metric {
    /// The name of the metric in files. It ends with the unit, if the metric has one.
    pub name: &'static str,
    /// The unit of the values.
    pub unit: &'static str,
    /// The title of the metric's column in tables.
    pub title: &'static str,
    /// The number of decimals of the values in tables.
    pub digits: usize,
    /// The definition of the metric, in one line.
    pub about: &'static str,
}

const fn metric(
    name: &'static str,
    unit: &'static str,
    title: &'static str,
    digits: usize,
    about: &'static str,
) -> Metric {
    Metric { name, unit, title, digits, about }
}

/// The time from the cut until the application receives new data by the new path, in milliseconds; infinite if it
/// receives none.
pub(super) const OUTAGE: Metric = metric(
    "outage_ms",
    "ms",
    "outage",
    1,
    "time from the cut of the old path until the application receives its first new data by the new path; 0 if the handoff interrupted nothing",
);
/// The longest time without data for the application, in milliseconds, from its last data before the move to the end of
/// the run.
pub(super) const STALL: Metric = metric(
    "longest_stall_ms",
    "ms",
    "longest stall",
    1,
    "longest time in which the application received no bytes, from its last bytes before the move to the end of the run; `>`: no new data arrived before the run ended",
);
/// Packets with data that the handoff lost, of all flows.
pub(super) const LOST: Metric = metric(
    "lost_packets",
    "packets",
    "lost",
    1,
    "packets with data that the handoff lost, of all flows of the host, in both directions",
);
/// The application's goodput from the move to the end of the run, in kbit/s.
pub(super) const GOODPUT: Metric = metric(
    "goodput_kbps",
    "kb/s",
    "goodput",
    0,
    "rate of the bytes that the application received, from the move to the end of the run",
);
/// The median time from a request to its answer after the outage, in milliseconds.
pub(super) const EXCHANGE: Metric = metric(
    "exchange_ms",
    "ms",
    "exchange",
    1,
    "median time from a request to its answer, for requests after the outage",
);
/// The time from the cut until the new path is ready, plus one delay down that path, in milliseconds.
pub(super) const HANDOFF: Metric = metric(
    "handoff_latency_ms",
    "ms",
    "handoff",
    1,
    "time from the cut of the old path until the network has the new path, plus one delay down the new path",
);
/// The bytes of the protocol's control messages on all links.
pub(super) const SIGNALLING: Metric = metric(
    "signalling_bytes",
    "bytes",
    "signalling",
    0,
    "IP bytes of control messages on every link, from the move or its preparation to the end of the run; without beacons and advertisements",
);

/// The largest number of entries for mobile hosts that all hosts held at one time.
pub(super) const STATE: Metric = metric(
    "state_entries",
    "entries",
    "state",
    0,
    "largest number of entries that all hosts of the run held at one time, and that plain IP does not need: bindings, visits, cache entries, kept packets (docs/glossary.md)",
);

/// The metrics of the comparison, in the order of rows and columns. `handoff_latency_ms` has rows, but no column.
pub const METRICS: [Metric; 8] = [OUTAGE, STALL, LOST, GOODPUT, EXCHANGE, HANDOFF, SIGNALLING, STATE];

/// The parts of the outage by cause, in the order of a handoff.
pub const OWNERS: [Metric; 9] = [
    owner("link_ms", "link"),
    owner("detection_ms", "detection"),
    owner("address_ms", "address"),
    owner("registration_ms", "registration"),
    owner("path_switch_ms", "path switch"),
    owner("traffic_ms", "traffic"),
    owner("recovery_ms", "recovery"),
    owner("first_byte_ms", "first byte"),
    owner("unexplained_ms", "unexplained"),
];

const fn owner(name: &'static str, title: &'static str) -> Metric {
    metric(name, "ms", title, 1, "the part of the outage that has this cause")
}

/// Returns the name of the metric for the part of an outage with the cause `stage`. `None` is the unexplained part.
fn owned_by(stage: Option<Stage>) -> &'static str {
    let name = stage.map_or("unexplained", Stage::name);
    OWNERS.iter().find(|owner| owner.title == name).map_or(OWNERS[8].name, |owner| owner.name)
}

/// The name of the host that moves.
const MOBILE: &str = "mobile";

/// Evaluates a run of the benchmark. Returns an error if the run does not have exactly one handoff, of the
/// host [`MOBILE`], after the first data.
pub(super) fn measure(outcome: &Outcome) -> Result<Samples, String> {
    let [handoff] = outcome.handoffs.as_slice() else {
        return Err(format!("the run must have one handoff, but has {}", outcome.handoffs.len()));
    };
    if outcome.host(handoff.host) != MOBILE {
        return Err(format!(
            "the host that moves must be `{MOBILE}`, but is `{}`",
            outcome.host(handoff.host)
        ));
    }
    let run = Run { outcome, handoff, end: outcome.plan.end() };
    if run.reads().all(|(at, _)| at > handoff.begun) {
        return Err("the application must receive data before the move, but received none".to_owned());
    }
    let mut samples = Samples::new();
    let mut add = |metric: &'static str, value: Option<f64>| {
        if let Some(value) = value {
            samples.insert(metric, vec![value]);
        }
    };
    add(OUTAGE.name, handoff.outage_ms());
    add(STALL.name, Some(run.longest_stall()));
    add(LOST.name, Some(handoff.lost() as f64));
    add(GOODPUT.name, Some(run.goodput()));
    add(EXCHANGE.name, run.exchange());
    add(HANDOFF.name, handoff.latency.map(millis));
    add(SIGNALLING.name, Some(run.signalling() as f64));
    add(STATE.name, run.state().map(|entries| entries as f64));
    if !handoff.is_never() {
        for owner in &OWNERS {
            add(owner.name, Some(run.owned(owner.name)));
        }
    }
    Ok(samples)
}

/// A run, its one move, and the end of the observed time.
struct Run<'a> {
    outcome: &'a Outcome,
    handoff: &'a Handoff,
    end: Instant,
}

impl Run<'_> {
    fn records(&self, host: HostId) -> impl Iterator<Item = &Record> {
        self.outcome.records.iter().filter(move |record| record.host == host)
    }

    /// Returns when the host's application read data, and how many bytes.
    fn reads(&self) -> impl Iterator<Item = (Instant, u64)> {
        self.records(self.handoff.host).filter_map(|record| Some((record.at, record.what.read()?)))
    }

    fn owned(&self, metric: &str) -> f64 {
        let owners = self.handoff.outage().into_iter().flat_map(|outage| &outage.owners);
        millis(
            owners.filter(|owner| owned_by(owner.stage) == metric).map(recorder::handoff::Owner::span).sum(),
        )
    }

    fn longest_stall(&self) -> f64 {
        let mut last = None;
        let mut longest = Duration::ZERO;
        for at in self.reads().map(|(at, _)| at).chain([self.end]) {
            if let Some(before) = last.replace(at)
                && at > self.handoff.begun
            {
                longest = longest.max(at.since(before));
            }
        }
        millis(longest)
    }

    /// Returns the goodput in kbit/s.
    fn goodput(&self) -> f64 {
        let begun = self.handoff.begun;
        let bytes: u64 = self.reads().filter(|(at, _)| *at > begun).map(|(_, bytes)| bytes).sum();
        bytes as f64 * 8.0 / self.end.since(begun).as_secs_f64() / 1e3
    }

    fn exchange(&self) -> Option<f64> {
        let back = self.handoff.outage().map_or(self.handoff.cut, |outage| outage.to);
        let took: Vec<f64> = self
            .records(self.handoff.host)
            .filter_map(|record| {
                let What::Marked(mark) = &record.what else { return None };
                let field =
                    |name: &str| mark.fields.iter().find(|(key, _)| *key == name).map(|(_, value)| value);
                let nanos = field("latency_ns")
                    .and_then(Value::as_int)
                    .and_then(|nanos| u64::try_from(nanos).ok())?;
                let asked = Instant(record.at.0.checked_sub(nanos)?);
                (mark.name == "answered" && asked >= back).then_some(nanos as f64 / 1e6)
            })
            .collect();
        stats::median(&took)
    }

    /// Returns when a radio first tuned to the cell that the host moved to. A host with two radios prepares the move
    /// before the handoff.
    fn prepared(&self) -> Option<Instant> {
        let stations = self.outcome.plan.hosts.iter().find(|host| host.config.name == self.handoff.to)?;
        let cell = stations.ports.iter().find_map(|port| port.radio.as_ref()?.cell)?;
        let tuned = |record: &&Record| matches!(record.what, What::Tuned(_, to) if to == cell);
        Some(self.records(self.handoff.host).find(tuned)?.at)
    }

    /// Returns the bytes of control messages on all links, with the headers of their tunnels. A message that crosses two links
    /// counts twice.
    fn signalling(&self) -> usize {
        let begun = self.prepared().map_or(self.handoff.begun, |at| at.min(self.handoff.begun));
        let since = self.outcome.records.iter().filter(|record| record.at >= begun);
        let bytes = since.filter_map(|record| match &record.what {
            What::Sent(iface, packet) if *iface != Iface::HOST && Control::is_in(packet) => {
                Some(packet.bytes.len())
            }
            _ => None,
        });
        bytes.sum()
    }

    /// Returns the largest sum of the entries of all hosts, or `None` if no host has recorded them. The record of the
    /// begin of a host's node replaces the number of the node before it.
    fn state(&self) -> Option<i64> {
        let mut held = BTreeMap::new();
        let marks = self.outcome.records.iter().filter_map(|record| match &record.what {
            What::Marked(mark) if mark.role == mark::NODE && mark.name == mark::ENTRIES => {
                let count = mark.fields.iter().find(|(name, _)| *name == "count")?.1.as_int()?;
                Some((record.host, count))
            }
            _ => None,
        });
        let sums = marks.map(|(host, count)| {
            held.insert(host, count);
            held.values().sum()
        });
        sums.max()
    }
}

fn millis(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}
