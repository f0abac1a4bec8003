//! `run.json`

use crate::handoff::Handoff;
use crate::linux::WorldReport;
use crate::run::{OnWorld, Outcome};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use wire::Duration;

/// The form of run directories that this program writes. A change that an older reader would misread raises it.
pub(super) const FORMAT: u32 = 2;

/// A run in a page.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RunFile {
    /// The form of the directory.
    pub format: u32,
    /// What was run.
    pub scenario: ScenarioPart,
    /// What `--set` changed in it.
    pub settings: Vec<String>,
    /// Where.
    pub world: OnWorld,
    /// The seed of its chance.
    pub seed: u64,
    /// The simulator's number for the run, sixteen hexadecimal digits.
    pub fingerprint: Option<String>,
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
    pub doubts: Vec<String>,
    /// What it cost.
    pub summary: Summary,
    /// How many lines `records.jsonl` has.
    pub records: usize,
    /// Whether `packets.csv` has every hop, or only what was lost, duplicated, or close to a handoff.
    pub packets_complete: bool,
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
    /// The file, as it was read.
    pub text: String,
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
    /// The station it went to.
    pub to: String,
    /// When it was decided.
    pub begun_s: f64,
    /// When the path was cut.
    pub cut_s: f64,
    /// Datagrams of which no copy arrived.
    pub lost: u64,
    /// Copies beyond the first that arrived.
    pub duplicates: u64,
    /// How long no packet came; null if it lost nothing and made no gap, or has no end.
    pub outage_ms: Option<f64>,
    /// No packet came any more.
    #[serde(default)]
    pub endless: bool,
    /// Who owns the outage, part by part.
    pub owners: Vec<OwnerSummary>,
    /// From the cut to the new mapping, and one downlink time.
    pub latency_ms: Option<f64>,
    /// Between host and crossover, as this handoff met it.
    pub round_trip_ms: Option<f64>,
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
                text: plan.text.clone(),
            },
            settings: plan.settings.iter().map(ToString::to_string).collect(),
            world: outcome.world,
            seed: plan.seed,
            fingerprint: outcome.fingerprint.map(|number| format!("{number:016x}")),
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
            summary: Summary {
                ledger: ledger(outcome),
                handoffs: handoffs.map(|(number, one)| handoff(outcome, number, one)).collect(),
            },
            records: outcome.records.len(),
            packets_complete,
        }
    }

    /// As it stands in the file.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
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

fn handoff(outcome: &Outcome, number: usize, handoff: &Handoff) -> HandoffSummary {
    let ms = |span: Duration| span.as_nanos() as f64 / 1e6;
    let owners = handoff.outage().into_iter().flat_map(|outage| &outage.owners);
    HandoffSummary {
        number,
        host: outcome.host(handoff.host).into_owned(),
        kind: handoff.kind.clone(),
        from: handoff.from.clone(),
        to: handoff.to.clone(),
        begun_s: handoff.begun.as_secs_f64(),
        cut_s: handoff.cut.as_secs_f64(),
        lost: handoff.lost(),
        duplicates: handoff.duplicates(),
        outage_ms: handoff.outage().map(|outage| ms(outage.span())),
        endless: handoff.is_never(),
        owners: owners
            .map(|owner| OwnerSummary {
                owner: owner.name().to_owned(),
                ms: ms(owner.span()),
                begins: owner.begins.clone(),
                ends: owner.ends.clone(),
            })
            .collect(),
        latency_ms: handoff.latency.map(ms),
        round_trip_ms: handoff.round_trip.map(ms),
    }
}
