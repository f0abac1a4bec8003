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
//! Runs go side by side, and each is written down when it ends ([`journal`]): a sweep that was interrupted goes on where it
//! stopped. What is measured does not depend on how many run at a time.

mod journal;
mod table;

pub use journal::{Done, Journal};
pub use table::{csv, json, text};

use crate::handoff::Handoff;
use crate::reproduce::stratified;
use crate::run::{OnWorld, Outcome};
use crate::scenario::Setting;
use crate::{Plan, Scenario, ScenarioError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::hash::Hasher;
use trace::{Fingerprint, What};
use wire::Duration;

/// More runs than this are a mistake.
const MOST: usize = 1_000_000;

/// The table `[sweep]` of a scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    #[serde(default = "ten")]
    repetitions: usize,
    phase: Option<Phase>,
    #[serde(default)]
    set: toml::map::Map<String, toml::Value>,
}

/// What is spread over a period: the repetitions set `of` to `from` and up to `over` later.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Phase {
    of: String,
    #[serde(deserialize_with = "node::config::span")]
    from: Duration,
    #[serde(deserialize_with = "node::config::span")]
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

/// A run of a sweep.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its point, in the order of the grid: the last axis changes first.
    pub point: usize,
    /// Its plan.
    pub plan: Plan,
}

/// What was measured of each handoff, and of each run.
pub const METRICS: [(&str, &str); 5] = [
    ("outage_ms", "no bytes for the application, per handoff; 0 if there was no gap"),
    ("lost_packets", "packets for the host that were dropped, per handoff"),
    ("duplicate_packets", "copies beyond the first, per handoff"),
    ("handoff_latency_ms", "from the cut to the network's new path, and once down it, per handoff"),
    ("goodput_kbps", "what applications of hosts that moved were given, per run"),
];

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
        let table = Scenario::sweep(file, text, settings)?;
        let (constant, varied): (Vec<_>, Vec<_>) =
            settings.iter().map(Setting::alternatives).partition(|values| values.len() == 1);
        if table.is_none() && varied.is_empty() {
            return Ok(None);
        }
        let wrong = |problem: String| ScenarioError::new(file, problem);
        let table: Option<Table> = table
            .map(serde_path_to_error::deserialize)
            .transpose()
            .map_err(|error| wrong(format!("`sweep.{}`: {}", error.path(), error.inner())))?;
        let mut choices = Vec::new();
        for (key, values) in table.iter().flat_map(|table| &table.set) {
            let values = values.as_array().filter(|values| !values.is_empty());
            let values = values.ok_or_else(|| {
                wrong(format!("`sweep.set.{key}`: a list of values, as [\"5ms\", \"50ms\"]"))
            })?;
            choices.push(values.iter().map(|value| Setting::new(key, value.clone())).collect::<Vec<_>>());
        }
        choices.extend(varied);
        let repetitions = runs.or(table.as_ref().map(|table| table.repetitions)).unwrap_or_else(ten);
        let size = choices.iter().map(Vec::len).product::<usize>().saturating_mul(repetitions);
        if repetitions == 0 || size > MOST {
            return Err(wrong(format!("`sweep`: {size} runs; from 1 to {MOST}")));
        }
        let constant: Vec<Setting> = constant.into_iter().flatten().collect();
        let sweep = Self {
            name: crate::scenario::stem(file),
            axes: choices.iter().map(|values| axis(values)).collect(),
            repetitions,
            points: grid(&constant, &choices),
            digest: digest(text, settings, repetitions, seed, world),
        };
        let jobs = sweep.jobs(file, text, table.and_then(|table| table.phase).as_ref(), seed)?;
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

    fn jobs(
        &self,
        file: &str,
        text: &str,
        phase: Option<&Phase>,
        seed: u64,
    ) -> Result<Vec<Job>, ScenarioError> {
        let over = phase.map_or(Duration::ZERO, |phase| phase.over);
        // The same phases at every point: what differs between points is then the settings alone.
        let phases = stratified(&self.name, self.repetitions, over);
        let mut jobs = Vec::new();
        for (number, point) in self.points.iter().enumerate() {
            for (seed, offset) in (seed..).zip(&phases) {
                let mut settings = point.settings.clone();
                if let Some(phase) = phase {
                    let at = phase.from + *offset;
                    settings.push(Setting::new(&phase.of, format!("{}ns", at.as_nanos())));
                }
                jobs.push(Job { point: number, plan: Scenario::plan(file, text, &settings, seed)? });
            }
        }
        Ok(jobs)
    }
}

fn axis(values: &[Setting]) -> Axis {
    let parts: Vec<(String, String)> = values.iter().map(Setting::parts).collect();
    let key = parts.first().map(|(key, _)| key.clone()).unwrap_or_default();
    Axis { key, values: parts.into_iter().map(|(_, value)| value).collect() }
}

/// All combinations: the last axis changes first.
fn grid(constant: &[Setting], choices: &[Vec<Setting>]) -> Vec<Point> {
    let mut points = vec![Point { values: Vec::new(), settings: constant.to_vec() }];
    for axis in choices {
        let with = |point: &Point, setting: &Setting| {
            let mut point = point.clone();
            point.values.push(setting.parts().1);
            point.settings.push(setting.clone());
            point
        };
        points = points
            .iter()
            .flat_map(|point| axis.iter().map(|value| with(point, value)).collect::<Vec<_>>())
            .collect();
    }
    points
}

fn digest(text: &str, settings: &[Setting], repetitions: usize, seed: u64, world: OnWorld) -> u64 {
    let mut all = format!("{}\n{text}\n{repetitions} {seed} {}", env!("CARGO_PKG_VERSION"), world.name());
    for setting in settings {
        let _ = write!(all, "\n{setting}");
    }
    let mut fold = Fingerprint::default();
    fold.write(all.as_bytes());
    fold.value()
}

/// What a run gave.
pub fn measure(outcome: &Outcome) -> Values {
    let ms = |span: Duration| span.as_secs_f64() * 1e3;
    let outage = |handoff: &Handoff| match &handoff.outage {
        _ if handoff.endless => f64::INFINITY,
        Some(outage) => ms(outage.span()),
        None => 0.0,
    };
    let each = |value: &dyn Fn(&Handoff) -> Option<f64>| outcome.handoffs.iter().filter_map(value).collect();
    let values: [Vec<f64>; METRICS.len()] = [
        each(&|handoff| Some(outage(handoff))),
        each(&|handoff| Some(handoff.lost as f64)),
        each(&|handoff| Some(handoff.duplicates as f64)),
        each(&|handoff| handoff.latency.map(ms)),
        goodput(outcome).into_iter().collect(),
    ];
    // Nanoseconds are enough of anything; and what has no more digits is read back from a file as it was.
    let short = |values: Vec<f64>| values.into_iter().map(|value| (value * 1e6).round() / 1e6).collect();
    METRICS.iter().map(|(name, _)| (*name).to_owned()).zip(values.map(short)).collect()
}

/// In thousands of bits a second, over the whole run; `None` if nothing moved.
fn goodput(outcome: &Outcome) -> Option<f64> {
    let mut moved: Vec<_> = outcome.handoffs.iter().map(|handoff| handoff.host).collect();
    moved.sort_unstable();
    moved.dedup();
    let read = outcome
        .records
        .iter()
        .filter(|record| moved.contains(&record.host))
        .filter_map(|record| if let What::AppRead(bytes) = record.what { Some(bytes) } else { None });
    let bits = read.sum::<u64>() as f64 * 8.0;
    (!moved.is_empty()).then(|| bits / outcome.plan.end().as_secs_f64() / 1e3)
}

#[cfg(test)]
mod tests;
