//! The contents of `run.json`: the scenario, the environment and the results of a run.

use crate::backend::{Daemon, Machine};
use crate::flow::Flow;
use crate::handoff::{Experience, FlowCost, Handoff, Hole, Recovery};
use crate::report;
use crate::run::{Backend, Outcome};
use scenario::{Repetition, redacted};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use trace::{Doubt, Fingerprint, Record, What};
use wire::{Duration, Instant};

/// The number of the format of run directories that this program writes. Each change that an older program would
/// misread raises this number.
pub(super) const FORMAT: u32 = 6;

/// The only field that `run.json` has in every format.
#[derive(Deserialize)]
pub(super) struct FormatOnly {
    pub(super) format: u32,
}

/// The contents of `run.json`: the scenario, the environment and the results of a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RunFile {
    /// The number of the run directory's format. A program reads only directories of the format that it writes.
    pub format: u32,
    /// The name, description, duration and text of the scenario.
    pub scenario: ScenarioPart,
    /// The settings of `--set`, each as `KEY=VALUE`.
    pub settings: Vec<String>,
    /// The backend of the run: the simulator or Linux.
    pub backend: Backend,
    /// The random seed of the run.
    pub seed: u64,
    /// The number of the run among several runs; null for a single run.
    #[serde(default)]
    pub repetition: Option<RepetitionPart>,
    /// The fingerprint of a run in the simulator, for example `v2:1cda0a700d3f8c77`; null on Linux. A fingerprint
    /// without the prefix `vN:` has version 1.
    pub fingerprint: Option<String>,
    /// The events of the scenario in the order of time, for example crashes and cuts.
    #[serde(default)]
    pub events: Vec<EventPart>,
    /// The version of Wayfare that executed the run.
    pub versions: Versions,
    /// The machine on which a run on Linux was executed; null in the simulator.
    pub machine: Option<Machine>,
    /// The daemons of a run on Linux; empty in the simulator.
    pub daemons: Vec<Daemon>,
    /// The whole report of the Linux backend (docs/files.md); null in the simulator.
    pub linux: Option<serde_json::Value>,
    /// The names of the hosts, in the order in which `records.jsonl` numbers them from 0.
    pub hosts: Vec<String>,
    /// The doubts: reasons why the run cannot be trusted; empty if there are none.
    pub doubts: Vec<Doubt>,
    /// The failures, for example a transfer that did not end, a reset, a program that failed. If there are failures and
    /// no doubts, `run` exits with 1.
    pub failures: Vec<String>,
    /// The results of the run: ledger, handoffs, holes and flows.
    pub summary: Summary,
    /// The number of lines in `records.jsonl`.
    pub records: usize,
    /// Whether `packets.csv` has every packet. If not, it has only packets that were lost, dropped, held or copied, and
    /// up to 200 packets around the begin of each handoff.
    pub packets_complete: bool,
    /// The paths of all files of the run, relative to the run directory. A later run in this directory may replace
    /// them. Empty in directories of an older format.
    #[serde(default)]
    pub files: Vec<String>,
}

/// The scenario of a run: its name, description, duration and text.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ScenarioPart {
    /// The name of the scenario, for example `first`.
    pub name: String,
    /// The scenario's description, one line.
    pub about: String,
    /// The duration of the run, in seconds.
    pub duration_s: f64,
    /// The text of the scenario file, with the contents of the files that it names. Keys are replaced by their digests.
    pub text: String,
}

/// The number of a run among several. `wayfare run SCENARIO --repetition NUMBER --of OF --seed SEED` repeats this run
/// alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RepetitionPart {
    /// The number of the run among several runs, from 1.
    pub number: u64,
    /// The total number of runs.
    pub of: u64,
    /// The seed of the first run, from which the phases of all runs are drawn.
    pub seed: u64,
}

impl RepetitionPart {
    /// Converts a plan's repetition, which counts from 0. Returns `None` for a single run.
    pub fn of(repetition: Repetition) -> Option<Self> {
        let Repetition { number, of, seed } = repetition;
        (of > 1).then_some(Self { number: number + 1, of, seed })
    }

    /// Returns the repetition in the form of a plan, which counts from 0.
    pub(super) fn repetition(self) -> Repetition {
        Repetition { number: self.number.saturating_sub(1), of: self.of, seed: self.seed }
    }
}

/// An event of the scenario that was executed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct EventPart {
    /// The instant of the event, in seconds of the run.
    pub at_s: f64,
    /// The kind of the event, as in the scenario file, for example `crash`.
    pub kind: String,
    /// The host or link, for example `home`, `wire left` or `cell 2`.
    pub target: String,
    /// For `loss`, `mtu` and `clock`: the new value, for example `10 %`; otherwise null.
    pub value: Option<String>,
}

impl EventPart {
    fn of(record: &Record) -> Option<Self> {
        let What::Ordered(event) = &record.what else { return None };
        let (target, value) = (event.target.to_string(), event.value.as_ref().map(ToString::to_string));
        Some(Self { at_s: record.at.as_secs_f64(), kind: event.kind.name().to_owned(), target, value })
    }
}

/// The version of Wayfare that executed a run, and the version of Rust that it needs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Versions {
    /// The version of Wayfare.
    pub wayfare: String,
    /// The oldest version of Rust that builds this version of Wayfare.
    pub rust: String,
}

/// The results of a run: ledger, handoffs, holes and flows.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// The totals of the ledger.
    pub ledger: LedgerSummary,
    /// The handoffs in the order of time.
    pub handoffs: Vec<HandoffSummary>,
    /// The outages outside handoffs.
    pub holes: Vec<HoleSummary>,
    /// The flows, in the order in which they began.
    pub flows: Vec<FlowSummary>,
}

/// The ledger's totals: `sent + copied = delivered + dropped + held`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LedgerSummary {
    /// The number of packets that were sent. A packet counts once, however often it was copied.
    pub sent: u64,
    /// The number of additional appearances of sent packets, for example link duplicates.
    pub copied: u64,
    /// The number of packets and copies that were delivered.
    pub delivered: u64,
    /// The number of packets and copies that were dropped or lost.
    pub dropped: u64,
    /// For each reason (docs/glossary.md), the number of packets and copies that were dropped or lost.
    pub reasons: BTreeMap<String, u64>,
    /// The number of packets and copies that a node or link held when the run ended.
    pub held: u64,
    /// Whether the totals match, and no copy vanished or appeared.
    pub balances: bool,
}

/// A handoff: its host, stations and times, and the cost for each flow.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct HandoffSummary {
    /// The number of the handoff in the run, from 1.
    pub number: usize,
    /// The name of the mobile host.
    pub host: String,
    /// The kind of the handoff, as the protocol names it, for example `hard`.
    pub kind: String,
    /// The name of the station that the host left.
    pub from: String,
    /// The name of the station to which the host moved, or was to move.
    pub to: String,
    /// Whether the host did not reach `to`: `latency_ms` and `round_trip_ms` are then null.
    #[serde(default)]
    pub failed: bool,
    /// The instant of the decision to move, or of the cut if the cut was earlier; in seconds of the run.
    pub begun_s: f64,
    /// The instant at which the old path was cut, in seconds of the run.
    pub cut_s: f64,
    /// The cost for each flow of the host that existed at the cut; empty if no flow existed.
    pub flows: Vec<FlowCostSummary>,
    /// The time from the cut until the switching node has the new path, plus the delay of one packet down
    /// this path, in milliseconds. Null if it was not measured (docs/glossary.md, "Latency").
    pub latency_ms: Option<f64>,
    /// The time of the host's signalling to the node that changed the host's mapping (for example the crossover), plus
    /// the delay of one packet with data from this node to the host. In milliseconds; null if it was not measured.
    pub round_trip_ms: Option<f64>,
    /// The code and its meaning of the last denied registration (Mobile IP), for example `129 (home agent:
    /// prohibited)`. Absent if none was denied until the host's next handoff, or if a later one was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denied: Option<String>,
}

/// The cost of a handoff or a hole for one flow.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FlowCostSummary {
    /// The flow's number, from 1: its position in `summary.flows`.
    pub flow: usize,
    /// The effect on the receiving application: `none`, `outage`, `never` (no new data until the flow or the run ended)
    /// or `not measured`.
    pub experience: String,
    /// The duration of the outage (docs/glossary.md) from the cut, or from the begin of the hole, in milliseconds. Null
    /// unless `experience` is `outage`.
    pub outage_ms: Option<f64>,
    /// Whether the goodput recovered: `recovered`, `never` (not before the flow or the run ended), or `not measured`.
    /// `unneeded`: after the cut, it was never less than half of the goodput before the cut. A hole is `not measured`.
    pub recovery: String,
    /// The time from the cut until the flow again had half of the goodput that it had in the second before the cut, in
    /// milliseconds. Null unless `recovery` is `recovered`.
    pub recovered_ms: Option<f64>,
    /// The number of packets with data that belong to the handoff or the hole, and of which no copy arrived.
    pub lost: u64,
    /// The number of copies that arrived beyond the first, of packets that belong to the handoff; 0 for a hole.
    pub duplicates: u64,
    /// The parts of the outage by cause, in the order of time. Their durations sum to the outage.
    pub owners: Vec<OwnerSummary>,
}

/// An outage of one flow that no handoff caused (a hole).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct HoleSummary {
    /// The name of the host to which the outage belongs, at one end of the flow. It is the end whose link went down. If
    /// no link went down, it is the sender if the sender's link or node lost the last lost packet, otherwise the
    /// receiver.
    pub host: String,
    /// The begin of the outage, in seconds of the run.
    pub from_s: f64,
    /// The cost of the outage for the flow.
    pub cost: FlowCostSummary,
}

/// A flow: one direction of data between two applications or programs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FlowSummary {
    /// The number of the flow, from 1, in the order in which the flows began.
    pub number: usize,
    /// The sending host's name and port, as `HOST:PORT`; the address and port if no host of the scenario has the
    /// address.
    pub from: String,
    /// The sender's address and port.
    pub from_address: String,
    /// The receiving host's name and port, as `HOST:PORT`; the address and port if no host of the scenario has the
    /// address.
    pub to: String,
    /// The receiver's address and port.
    pub to_address: String,
    /// The transport of the flow: `UDP`, `TCP` or `SCTP`.
    pub transport: String,
    /// The begin of the flow, in seconds of the run.
    pub begun_s: f64,
    /// The end of the flow, in seconds of the run; null if the flow was under way when the run ended.
    pub ended_s: Option<f64>,
    /// How the flow ended: `completed`, `reset`, `refused` or `unfinished`.
    pub end: String,
    /// The number of bytes that the receiving application received. Repeated bytes count once.
    pub bytes: u64,
    /// The goodput over the duration of the flow, in kbit/s.
    pub goodput_kbps: f64,
    /// The median of the one-way delay to the application, in milliseconds; null if nothing arrived.
    pub delay_p50_ms: Option<f64>,
    /// The 99th percentile of the one-way delay to the application, in milliseconds; null if nothing arrived.
    pub delay_p99_ms: Option<f64>,
    /// The longest time without new data although data were due, in milliseconds.
    pub longest_stall_ms: f64,
    /// The number of packets with data of which no copy arrived.
    pub lost: u64,
    /// The number of packets in which the sender repeated data; 0 for datagrams.
    pub retransmissions: u64,
}

/// A part of an outage, with its cause.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct OwnerSummary {
    /// The cause of the part (docs/glossary.md, "Owners"), or `unexplained`.
    pub owner: String,
    /// The duration of the part, in milliseconds.
    pub ms: f64,
    /// The event with which the part begins; empty if the part is unexplained.
    pub begins: String,
    /// The event with which the part ends; empty if the part is unexplained.
    pub ends: String,
}

impl RunFile {
    /// Returns the contents of `run.json` for a run, still without the list of files.
    pub fn new(outcome: &Outcome, packets_complete: bool) -> Self {
        let (plan, report) = (&outcome.plan, outcome.report.as_ref());
        let handoffs = (1..).zip(&outcome.handoffs);
        Self {
            format: FORMAT,
            scenario: ScenarioPart {
                name: plan.name.clone(),
                about: plan.about.clone(),
                duration_s: plan.duration.as_secs_f64(),
                text: redacted(&plan.text, &plan.settings),
            },
            settings: plan.settings.iter().map(ToString::to_string).collect(),
            backend: outcome.backend,
            seed: plan.seed,
            repetition: RepetitionPart::of(plan.repetition),
            fingerprint: outcome.fingerprint.map(|fingerprint| fingerprint.to_string()),
            events: outcome.records.iter().filter_map(EventPart::of).collect(),
            versions: Versions {
                wayfare: env!("CARGO_PKG_VERSION").to_owned(),
                rust: env!("CARGO_PKG_RUST_VERSION").to_owned(),
            },
            machine: report.map(|report| report.machine.clone()),
            daemons: report.map(|report| report.daemons.clone()).unwrap_or_default(),
            linux: report.map(|report| report.details.clone()),
            hosts: plan.host_names(),
            doubts: outcome.doubts.clone(),
            failures: outcome.failures.clone(),
            summary: Summary {
                ledger: ledger(outcome),
                handoffs: handoffs.map(|(number, one)| handoff(outcome, number, one)).collect(),
                holes: outcome.holes.iter().map(|one| hole(outcome, one)).collect(),
                flows: (1..).zip(&outcome.flows).map(|(number, one)| flow(outcome, number, one)).collect(),
            },
            records: outcome.records.len(),
            packets_complete,
            files: Vec::new(),
        }
    }

    /// Returns the text of `run.json`, or an error if a value cannot be converted to JSON.
    pub fn to_json(&self) -> std::io::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    pub(super) fn fingerprint(&self) -> Option<Fingerprint> {
        self.fingerprint.as_deref()?.parse().ok()
    }
}

/// Returns whether `bytes` are a JSON object with the keys that a `run.json` of any format has.
pub(super) fn is_run_file(bytes: &[u8]) -> bool {
    let parsed: Option<serde_json::Value> = serde_json::from_slice(bytes).ok();
    let has = |json: &serde_json::Value, key| json.get(key).is_some();
    // Up to format 5, the key of the backend was `world`.
    parsed.is_some_and(|json| {
        has(&json, "format") && has(&json, "scenario") && (has(&json, "backend") || has(&json, "world"))
    })
}

fn ledger(outcome: &Outcome) -> LedgerSummary {
    let ledger = &outcome.ledger;
    LedgerSummary {
        sent: ledger.sent,
        copied: ledger.copied,
        delivered: ledger.delivered,
        dropped: ledger.dropped_total(),
        reasons: ledger.dropped.clone(),
        held: ledger.held,
        balances: ledger.balances(),
    }
}

fn ms(span: Duration) -> f64 {
    span.as_nanos() as f64 / 1e6
}

fn handoff(outcome: &Outcome, number: usize, handoff: &Handoff) -> HandoffSummary {
    let since = |at: Instant| ms(at.since(handoff.cut.min(at)));
    let of = |one: &FlowCost| FlowCostSummary {
        recovery: recovery(one.recovery).to_owned(),
        recovered_ms: one.recovery.at().map(since),
        duplicates: one.duplicates,
        ..cost(one.flow, &one.experience, one.lost())
    };
    HandoffSummary {
        number,
        host: outcome.host(handoff.host).into_owned(),
        kind: handoff.kind.clone(),
        from: handoff.from.clone(),
        to: handoff.to.clone(),
        failed: handoff.failed,
        begun_s: handoff.begun.as_secs_f64(),
        cut_s: handoff.cut.as_secs_f64(),
        flows: handoff.flows.iter().map(of).collect(),
        latency_ms: handoff.latency.map(ms),
        round_trip_ms: handoff.round_trip.map(ms),
        denied: handoff.denied.clone(),
    }
}

fn hole(outcome: &Outcome, hole: &Hole) -> HoleSummary {
    HoleSummary {
        host: outcome.host(hole.host).into_owned(),
        from_s: hole.from.as_secs_f64(),
        cost: cost(hole.flow, &hole.experience, hole.lost),
    }
}

fn cost(flow: usize, experience: &Experience, lost: u64) -> FlowCostSummary {
    let name = match experience {
        Experience::None => "none",
        Experience::Outage(_) => "outage",
        Experience::Never { .. } => "never",
        Experience::NotMeasured => "not measured",
    };
    let owners = experience.outage().into_iter().flat_map(|outage| &outage.owners);
    FlowCostSummary {
        flow: flow + 1,
        experience: name.to_owned(),
        outage_ms: experience.outage().map(|outage| ms(outage.span())),
        recovery: recovery(Recovery::NotMeasured).to_owned(),
        recovered_ms: None,
        lost,
        duplicates: 0,
        owners: owners
            .map(|owner| OwnerSummary {
                owner: owner.name().to_owned(),
                ms: ms(owner.span()),
                begins: owner.begins.clone(),
                ends: owner.ends.clone(),
            })
            .collect(),
    }
}

const fn recovery(recovery: Recovery) -> &'static str {
    match recovery {
        Recovery::Unneeded => "unneeded",
        Recovery::At(_) => "recovered",
        Recovery::Never => "never",
        Recovery::NotMeasured => "not measured",
    }
}

pub(super) fn flow(outcome: &Outcome, number: usize, flow: &Flow) -> FlowSummary {
    FlowSummary {
        number,
        from: report::end(outcome, &flow.from),
        from_address: flow.from.at.to_string(),
        to: report::end(outcome, &flow.to),
        to_address: flow.to.at.to_string(),
        transport: flow.transport.name().to_owned(),
        begun_s: flow.begun.as_secs_f64(),
        ended_s: flow.ended.map(wire::Instant::as_secs_f64),
        end: flow.end.name().to_owned(),
        bytes: flow.bytes,
        goodput_kbps: flow.goodput() / 1e3,
        delay_p50_ms: flow.delay.map(|delay| ms(delay.p50)),
        delay_p99_ms: flow.delay.map(|delay| ms(delay.p99)),
        longest_stall_ms: ms(flow.longest_stall),
        lost: flow.lost,
        retransmissions: flow.retransmissions,
    }
}
