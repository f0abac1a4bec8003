//! `run.json`

use crate::flow::Flow;
use crate::handoff::{Experience, FlowCost, Handoff, Hole, Recovery};
use crate::linux::WorldReport;
use crate::report;
use crate::run::{OnWorld, Outcome};
use crate::scenario::{Repetition, secret};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use trace::{Doubt, Record, What};
use wire::{Duration, Instant};

/// The form of run directories that this program writes. A change that an older reader would misread raises it.
pub(super) const FORMAT: u32 = 5;

/// A run in a page.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RunFile {
    /// The form of the directory.
    pub format: u32,
    /// What was run.
    pub scenario: ScenarioPart,
    /// What `--set` changed in it.
    pub settings: Vec<String>,
    /// The backend on which it ran.
    pub world: OnWorld,
    /// The seed of its chance.
    pub seed: u64,
    /// Which of several runs it is; null if it is none of several.
    #[serde(default)]
    pub repetition: Option<RepetitionPart>,
    /// The simulator's number for the run, sixteen hexadecimal digits.
    pub fingerprint: Option<String>,
    /// What the scenario ordered, in the order of time: crashes, cuts and the like.
    #[serde(default)]
    pub events: Vec<EventPart>,
    /// Who ran it.
    pub versions: Versions,
    /// The machine, if it was a run on Linux, as far as it matters to somebody who compares.
    pub machine: Option<Machine>,
    /// The daemons of a run on Linux.
    pub daemons: Vec<Daemon>,
    /// All else that the world on Linux reported.
    pub linux: Option<WorldReport>,
    /// The hosts, in the order in which `records.jsonl` numbers them.
    pub hosts: Vec<String>,
    /// Why the run is not to be trusted; nothing, if it is.
    pub doubts: Vec<Doubt>,
    /// What did not hold: a transfer that did not end, a reset, a program that failed. `run` exits with 1.
    pub failures: Vec<String>,
    /// What it cost.
    pub summary: Summary,
    /// How many lines `records.jsonl` has.
    pub records: usize,
    /// Whether `packets.csv` has every hop, or only what was lost, duplicated, or close to a handoff.
    pub packets_complete: bool,
    /// The files of the run, relative to its directory: what a later run there may replace. Empty in older directories.
    #[serde(default)]
    pub files: Vec<String>,
}

/// The scenario of a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ScenarioPart {
    /// Its name.
    pub name: String,
    /// What it is about.
    pub about: String,
    /// How long it runs.
    pub duration_s: f64,
    /// The file as it was read, or the scenario with the contents of the files that it names; in place of each key, its digest.
    pub text: String,
}

/// The place of a run among several: `wayfare run SCENARIO --repetition NUMBER --of OF --seed SEED` repeats it alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RepetitionPart {
    /// Its number, from 1.
    pub number: u64,
    /// How many there are.
    pub of: u64,
    /// The seed of the first of them, from which the phases of all are drawn.
    pub seed: u64,
}

impl RepetitionPart {
    /// That of a plan, if it is one of several.
    pub fn of(repetition: Repetition) -> Option<Self> {
        let Repetition { number, of, seed } = repetition;
        (of > 1).then_some(Self { number: number + 1, of, seed })
    }

    /// As a plan takes it.
    pub(super) fn repetition(self) -> Repetition {
        Repetition { number: self.number.saturating_sub(1), of: self.of, seed: self.seed }
    }
}

/// An event of the scenario, as it was ordered.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct EventPart {
    /// When.
    pub at_s: f64,
    /// Its kind, as a scenario names it.
    pub kind: String,
    /// Which host or link: `home`, `wire left`, `cell 2`.
    pub target: String,
    /// Of `loss`, `mtu` and `clock`: what was set; else null.
    pub value: Option<String>,
}

impl EventPart {
    fn of(record: &Record) -> Option<Self> {
        let What::Ordered(event) = &record.what else { return None };
        let (target, value) = (event.target.to_string(), event.value.as_ref().map(ToString::to_string));
        Some(Self { at_s: record.at.as_secs_f64(), kind: event.kind.name().to_owned(), target, value })
    }
}

/// Which program ran it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Versions {
    /// Of Wayfare.
    pub wayfare: String,
    /// The oldest Rust that builds it.
    pub rust: String,
}

/// A machine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Machine {
    /// Its kernel.
    pub kernel: String,
    /// The user who ran it.
    pub uid: u32,
}

/// A daemon and its end.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Daemon {
    /// Its host.
    pub host: String,
    /// Its process, by its number inside the world.
    pub pid: u32,
    /// How it ended.
    pub exit: String,
}

/// What a run cost.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// The books.
    pub ledger: LedgerSummary,
    /// The handoffs in the order of time.
    pub handoffs: Vec<HandoffSummary>,
    /// Outages that no handoff made.
    pub holes: Vec<HoleSummary>,
    /// The flows, in the order in which they began.
    pub flows: Vec<FlowSummary>,
}

/// The ledger's totals: `sent + copied = delivered + dropped + held`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LedgerSummary {
    /// Identities.
    pub sent: u64,
    /// Copies beyond the first.
    pub copied: u64,
    /// Copies that arrived.
    pub delivered: u64,
    /// Copies that were dropped or lost.
    pub dropped: u64,
    /// The same by reason.
    pub reasons: BTreeMap<String, u64>,
    /// Copies in a queue when the run ended.
    pub held: u64,
    /// Whether all is accounted for.
    pub balances: bool,
}

/// What a handoff cost.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct HandoffSummary {
    /// From 1.
    pub number: usize,
    /// The mobile host.
    pub host: String,
    /// As its protocol calls it.
    pub kind: String,
    /// The station it left.
    pub from: String,
    /// The station it went to, or was to go to.
    pub to: String,
    /// It did not get there: `latency_ms` and `round_trip_ms` are null.
    #[serde(default)]
    pub failed: bool,
    /// When it was decided.
    pub begun_s: f64,
    /// When the path was cut.
    pub cut_s: f64,
    /// What it cost each flow of the host that was there when the path was cut; empty if none was.
    pub flows: Vec<FlowCostSummary>,
    /// From the cut until the switching node has the new path, and one time down that path; null if nothing went down.
    pub latency_ms: Option<f64>,
    /// Between host and crossover, as this handoff met it.
    pub round_trip_ms: Option<f64>,
}

/// What a handoff or a hole cost one flow.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FlowCostSummary {
    /// The flow, from 1: its place in `summary.flows`.
    pub flow: usize,
    /// `none`, `outage`, `never` (nothing new until the end of the run) or `not measured`.
    pub experience: String,
    /// From the cut to the first new data for the receiving application; null unless `experience` is `outage`.
    pub outage_ms: Option<f64>,
    /// `unneeded` (the flow never had less than half of the goodput before), `recovered`, `never` (not until the flow or the
    /// run ended), or `not measured`; of a hole always that.
    pub recovery: String,
    /// From the cut until the flow had again half of the goodput of the second before; null unless `recovery` is `recovered`.
    pub recovered_ms: Option<f64>,
    /// Packets with data of which no copy arrived, up to the recovery.
    pub lost: u64,
    /// Copies beyond the first that arrived, up to the recovery.
    pub duplicates: u64,
    /// The causes of the outage, in the order of time; they sum to it.
    pub owners: Vec<OwnerSummary>,
}

/// An outage that no handoff made.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct HoleSummary {
    /// The host whose link was down; else the receiver.
    pub host: String,
    /// When it began.
    pub from_s: f64,
    /// What it cost the flow.
    pub cost: FlowCostSummary,
}

/// A flow: one direction of data between two applications.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FlowSummary {
    /// From 1.
    pub number: usize,
    /// The sender: host and port.
    pub from: String,
    /// The sender's address and port.
    pub from_address: String,
    /// The receiver: host and port.
    pub to: String,
    /// The receiver's address and port.
    pub to_address: String,
    /// `UDP`, `TCP` or `SCTP`.
    pub transport: String,
    /// When it began.
    pub begun_s: f64,
    /// When it ended; null if it was under way when the run ended.
    pub ended_s: Option<f64>,
    /// `completed`, `reset`, `refused` or `unfinished`.
    pub end: String,
    /// New bytes that the receiving application was given.
    pub bytes: u64,
    /// The same in thousands of bits per second of the flow's own life.
    pub goodput_kbps: f64,
    /// One-way delay, median; null if nothing arrived.
    pub delay_p50_ms: Option<f64>,
    /// One-way delay, 99th percentile.
    pub delay_p99_ms: Option<f64>,
    /// The longest time without new data although some was sent, or asked for.
    pub longest_stall_ms: f64,
    /// Packets with data of which no copy arrived.
    pub lost: u64,
    /// Packets in which data was sent again.
    pub retransmissions: u64,
}

/// A part of an outage.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct OwnerSummary {
    /// Who, or `unexplained`.
    pub owner: String,
    /// How long.
    pub ms: f64,
    /// The event that it begins with; empty if nobody owns it.
    pub begins: String,
    /// The event that it ends with.
    pub ends: String,
}

impl RunFile {
    /// The page of a run.
    pub fn new(outcome: &Outcome, packets_complete: bool) -> Self {
        let plan = &outcome.plan;
        let handoffs = (1..).zip(&outcome.handoffs);
        Self {
            format: FORMAT,
            scenario: ScenarioPart {
                name: plan.name.clone(),
                about: plan.about.clone(),
                duration_s: plan.duration.as_secs_f64(),
                text: secret::redacted(&plan.text, &plan.settings),
            },
            settings: plan.settings.iter().map(ToString::to_string).collect(),
            world: outcome.world,
            seed: plan.seed,
            repetition: RepetitionPart::of(plan.repetition),
            fingerprint: outcome.fingerprint.map(|number| format!("{number:016x}")),
            events: outcome.records.iter().filter_map(EventPart::of).collect(),
            versions: Versions {
                wayfare: env!("CARGO_PKG_VERSION").to_owned(),
                rust: env!("CARGO_PKG_RUST_VERSION").to_owned(),
            },
            machine: outcome
                .linux
                .as_ref()
                .map(|linux| Machine { kernel: linux.kernel.clone(), uid: linux.uid }),
            daemons: outcome.linux.iter().flat_map(|linux| &linux.hosts).map(daemon).collect(),
            linux: outcome.linux.clone(),
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

    /// The text of the file.
    pub fn to_json(&self) -> std::io::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    pub(super) fn fingerprint(&self) -> Option<u64> {
        u64::from_str_radix(self.fingerprint.as_deref()?, 16).ok()
    }
}

/// Whether these bytes are the `run.json` of a run, of whatever form.
pub(super) fn is_run_file(bytes: &[u8]) -> bool {
    let parsed: Option<serde_json::Value> = serde_json::from_slice(bytes).ok();
    parsed.is_some_and(|json| ["format", "scenario", "world"].iter().all(|key| json.get(key).is_some()))
}

fn daemon(host: &crate::linux::HostReport) -> Daemon {
    Daemon { host: host.name.clone(), pid: host.pid, exit: host.exit.clone() }
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
