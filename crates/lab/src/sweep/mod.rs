//! Many runs of one scenario: a grid of settings, and repetitions of each of its points.
//!
//! ```toml
//! [sweep]
//! repetitions = 20
//! phase = { of = "mobile.moves.at", from = "4s", over = "950ms" }
//! set."radio.retune" = ["5ms", "50ms", "500ms"]
//! ```
//!
//! The same from a command line: `--set 'radio.retune=5ms|50ms|500ms' --runs 20`. A repetition is a seed. Where a result
//! depends on when within a period something happens, `phase` spreads the repetitions evenly over that period: left to
//! chance, some of its parts would be met twice and others never.
//!
//! The value of a run is the median of its handoffs: handoffs of one run share their chance, and are no repetitions. The
//! interval around the median of the runs is the sign test's, and needs six.
//!
//! Runs go side by side, and each is written down when it ends ([`journal`]): a sweep that was interrupted goes on where it
//! stopped. What is measured does not depend on how many run at a time.

mod figure;
mod journal;
mod table;

pub use figure::figures;
pub use journal::{Done, Journal};
pub use table::{csv, json, text};

use crate::handoff::Handoff;
use crate::reproduce::stratified;
use crate::run::{OnWorld, Outcome};
use crate::scenario::{self, Setting};
use crate::{Plan, Scenario, ScenarioError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hasher;
use trace::{Fingerprint, HostId, What};
use wire::{Duration, Iface, ipv4, udp};

/// More runs than this are a mistake.
const MOST: usize = 1_000_000;

/// Many runs of the scenario: a grid of settings, and repetitions of each of its points.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    /// Runs of each point, each with the next seed: ten.
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = 1_000_000))]
    repetitions: usize,
    /// What the repetitions spread evenly over a period, where the result depends on when within it something happens.
    phase: Option<Phase>,
    /// What is varied: settings as in `--set`, quoted if they have dots, and for each a list of its values.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Vec<serde_json::Value>>")]
    set: toml::map::Map<String, toml::Value>,
}

/// What is spread over a period: repetitions set `of` to `from`, and up to `over` later.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Phase {
    /// A setting, as in `--set`, whose value is a span of time.
    of: String,
    /// The earliest.
    #[serde(deserialize_with = "node::config::span")]
    #[schemars(schema_with = "node::config::schema::span")]
    from: Duration,
    /// The period.
    #[serde(deserialize_with = "node::config::span")]
    #[schemars(schema_with = "node::config::schema::span")]
    over: Duration,
}

const fn ten() -> usize {
    10
}

/// A setting that is varied, and its values.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Axis {
    /// As in `--set`.
    pub key: String,
    /// As they are written.
    pub values: Vec<String>,
}

/// A sweep: axes, and what is repeated at each point of their grid.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The scenario's name.
    pub name: String,
    /// What is varied.
    pub axes: Vec<Axis>,
    /// Runs of each point.
    pub repetitions: usize,
    /// Where they run.
    pub world: OnWorld,
    file: String,
    text: String,
    phase: Option<String>,
    points: Vec<Point>,
    /// All that the results depend on.
    digest: u64,
}

/// A point of the grid.
#[derive(Clone, Debug)]
struct Point {
    values: Vec<String>,
    settings: Vec<Setting>,
}

impl Point {
    fn new(constant: &[Setting], varied: Vec<Setting>) -> Self {
        let values = varied.iter().map(|setting| setting.parts().1).collect();
        Self { values, settings: [constant.to_vec(), varied].concat() }
    }
}

/// A run of a sweep.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// Its point, in the order of the grid: the last axis changes first.
    pub point: usize,
    /// Its seed.
    pub seed: u64,
    /// What the sweep's phase is set to.
    at: Duration,
}

/// What was measured of each handoff, and of each run. Where a run has handoffs of several kinds, each has a metric of its own,
/// as `outage_ms.hard`.
pub const METRICS: [(&str, &str); 5] = [
    ("outage_ms", "no bytes for the application, per handoff; 0 if there was no gap"),
    ("lost_packets", "packets for the host that were dropped, per handoff"),
    ("duplicate_packets", "copies beyond the first, per handoff"),
    ("handoff_latency_ms", "from the cut to the network's new path, and once down it, per handoff"),
    ("goodput_kbps", "what applications of hosts that moved were given, per run"),
];

/// The metric of a value's name, whatever kind of handoff it is about.
fn metric(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

/// Values by metric. An outage that never ends is infinite, and as such the largest.
pub type Values = BTreeMap<String, Vec<f64>>;

impl Sweep {
    /// The sweep that a scenario and these settings ask for, if they do. `runs` and `seed` are the command line's.
    pub fn of(
        file: &str,
        text: &str,
        settings: &[Setting],
        runs: Option<usize>,
        seed: u64,
        world: OnWorld,
    ) -> Result<Option<(Self, Vec<Job>)>, ScenarioError> {
        let (source, mut document) =
            scenario::read(file, text, settings.iter().filter(|setting| setting.is_below("sweep")))?;
        let wrong = |path: &str, problem: &str| source.at_path(&format!("sweep{path}"), problem);
        let table = document.remove("sweep");
        let alternatives = settings.iter().map(Setting::alternatives);
        let (constant, varied): (Vec<_>, Vec<_>) = alternatives.partition(|values| values.len() == 1);
        if table.is_none() && varied.is_empty() {
            return Ok(None);
        }
        let table: Table = match table {
            None => Table { repetitions: ten(), ..Table::default() },
            Some(table) => serde_path_to_error::deserialize(table).map_err(|error| {
                let path = error.path().to_string();
                wrong(&if path == "." { path } else { format!(".{path}") }, error.inner().message())
            })?,
        };
        let constant: Vec<Setting> = constant.into_iter().flatten().collect();
        let mut choices = choices(&table, &constant, &varied)
            .map_err(|(key, problem)| wrong(&format!(".set.{key}"), &problem))?;
        choices.extend(varied);
        if let Some(twice) = varied_twice(&choices) {
            return Err(wrong("", &format!("`{twice}` is varied twice")));
        }
        let repetitions = runs.unwrap_or(table.repetitions);
        let size = choices.iter().map(Vec::len).fold(repetitions, usize::saturating_mul);
        if !(1..=MOST).contains(&size) {
            return Err(wrong(".repetitions", &format!("{size} runs; from 1 to {MOST}")));
        }
        let mut sweep = Self {
            name: scenario::stem(file),
            axes: choices.iter().map(|values| axis(values)).collect(),
            repetitions,
            world,
            file: file.to_owned(),
            text: text.to_owned(),
            phase: table.phase.as_ref().map(|phase| phase.of.clone()),
            points: grid(&choices).into_iter().map(|point| Point::new(&constant, point)).collect(),
            digest: 0,
        };
        let jobs = sweep.jobs(table.phase.as_ref(), seed);
        sweep.digest = sweep.check(&jobs)?;
        Ok(Some((sweep, jobs)))
    }

    /// What the values at a point's axes are.
    pub fn values(&self, point: usize) -> &[String] {
        self.points.get(point).map_or(&[], |point| &point.values)
    }

    /// How many points there are.
    pub fn len(&self) -> usize {
        self.points.len()
    }

    /// Never: there is at least one point.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// The plan of a run.
    pub fn plan(&self, job: &Job) -> Result<Plan, ScenarioError> {
        let mut settings = self.points.get(job.point).map_or(Vec::new(), |point| point.settings.clone());
        if let Some(phase) = &self.phase {
            settings.push(Setting::new(phase, format!("{}ns", job.at.as_nanos())));
        }
        Scenario::plan(&self.file, &self.text, &settings, job.seed)
    }

    fn jobs(&self, phase: Option<&Phase>, seed: u64) -> Vec<Job> {
        let (from, over) = phase.map_or_else(Default::default, |phase| (phase.from, phase.over));
        // The same phases at every point: what differs between points is then the settings alone.
        let phases = stratified(&self.name, self.repetitions, over);
        let all = (0..self.points.len()).flat_map(|point| (seed..).zip(&phases).map(move |run| (point, run)));
        all.map(|(point, (seed, offset))| Job { point, seed, at: from + *offset }).collect()
    }

    /// Refuses what cannot run at any of the points, before anything is started. What is left of it all in a number.
    fn check(&self, jobs: &[Job]) -> Result<u64, ScenarioError> {
        let mut fold = Fingerprint::default();
        let mut take = |text: &str| fold.write(text.as_bytes());
        take(&format!("{} {} {}", env!("CARGO_PKG_VERSION"), self.repetitions, self.world.name()));
        for first in jobs.chunks(self.repetitions).filter_map(<[Job]>::first) {
            let plan = self.plan(first)?;
            if self.world == OnWorld::Sim {
                plan.world().map_err(|error| ScenarioError::new(&self.file, error.to_string()))?;
            }
            // The document has what stands in other files, too.
            take(&format!("\n{}\n{}", plan.seed, plan.document));
        }
        Ok(fold.value())
    }
}

/// What the scenario varies. A setting from outside has the last word: what it sets is not varied, or by its values.
fn choices(
    table: &Table,
    constant: &[Setting],
    varied: &[Vec<Setting>],
) -> Result<Vec<Vec<Setting>>, (String, String)> {
    let mut choices = Vec::new();
    for (key, values) in &table.set {
        let values = values.as_array().filter(|values| !values.is_empty());
        let values =
            values.ok_or_else(|| (key.clone(), "a list of values, as [\"5ms\", \"50ms\"]".to_owned()))?;
        if !constant.iter().chain(varied.iter().flatten()).any(|setting| setting.parts().0 == *key) {
            choices.push(values.iter().map(|value| Setting::new(key, value.clone())).collect());
        }
    }
    Ok(choices)
}

fn varied_twice(choices: &[Vec<Setting>]) -> Option<String> {
    let mut seen = BTreeSet::new();
    let mut keys = choices.iter().filter_map(|values| values.first()).map(|setting| setting.parts().0);
    keys.find(|key| !seen.insert(key.clone()))
}

fn axis(values: &[Setting]) -> Axis {
    let parts: Vec<(String, String)> = values.iter().map(Setting::parts).collect();
    let key = parts.first().map(|(key, _)| key.clone()).unwrap_or_default();
    Axis { key, values: parts.into_iter().map(|(_, value)| value).collect() }
}

/// One of each axis' settings, in all combinations: the last axis changes first.
pub fn grid(axes: &[Vec<Setting>]) -> Vec<Vec<Setting>> {
    axes.iter().fold(vec![Vec::new()], |points, axis| {
        let with_each = |point: &Vec<Setting>| {
            axis.iter().map(|setting| point.iter().chain([setting]).cloned().collect()).collect::<Vec<_>>()
        };
        points.iter().flat_map(with_each).collect()
    })
}

/// What a run gave.
fn measure(outcome: &Outcome) -> Values {
    let kinds: BTreeSet<&str> = outcome.handoffs.iter().map(|handoff| handoff.kind.as_str()).collect();
    let mut values = Values::new();
    for handoff in &outcome.handoffs {
        for (metric, value) in of_handoff(handoff) {
            let name = if kinds.len() > 1 { format!("{metric}.{}", handoff.kind) } else { metric.to_owned() };
            values.entry(name).or_default().push(short(value));
        }
    }
    if let Some(goodput) = goodput(outcome) {
        values.insert("goodput_kbps".to_owned(), vec![short(goodput)]);
    }
    values
}

/// Nanoseconds are enough of anything; and what has no more digits is read back from a file as it was.
fn short(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

fn of_handoff(handoff: &Handoff) -> impl Iterator<Item = (&'static str, f64)> {
    let all = [
        ("outage_ms", handoff.outage_ms()),
        ("lost_packets", Some(handoff.lost() as f64)),
        ("duplicate_packets", Some(handoff.duplicates() as f64)),
        ("handoff_latency_ms", handoff.latency.map(|latency| latency.as_secs_f64() * 1e3)),
    ];
    all.into_iter().filter_map(|(metric, value)| Some((metric, value?)))
}

/// In thousands of bits a second, over the whole run; `None` if nothing moved.
fn goodput(outcome: &Outcome) -> Option<f64> {
    let moved: BTreeSet<HostId> = outcome.handoffs.iter().map(|handoff| handoff.host).collect();
    let mut datagrams = BTreeMap::new();
    let mut bytes = 0;
    for record in outcome.records.iter().filter(|record| moved.contains(&record.host)) {
        match &record.what {
            What::App(_) => bytes += record.what.read().unwrap_or_default(),
            What::Sent(Iface::HOST, packet) => {
                let payload = packet.bytes.len().saturating_sub(ipv4::HEADER + udp::HEADER);
                datagrams.insert((record.host, packet.id), payload as u64);
            }
            What::AppReceived(packet) => bytes += datagrams.get(&(record.host, *packet)).unwrap_or(&0),
            _ => {}
        }
    }
    (!moved.is_empty()).then(|| bytes as f64 * 8.0 / outcome.plan.end().as_secs_f64() / 1e3)
}

#[cfg(test)]
mod tests;
