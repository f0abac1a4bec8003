//! The results of repeated runs of a scenario on one backend, in memory and in a file.

use super::COMPARED;
use crate::batch::{METRICS, metric};
use crate::contest::{self, Leg, course};
use crate::{batch, catalogue};
use emulator::run::is_only_timing;
use recorder::run::Outcome;
use recorder::rundir::digest_of;
use scenario::{Plan, Repetition, Scenario, ScenarioError, Setting};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use trace::Doubt;

/// A scenario that `agree` repeats. A leg of `compare` has the phases and the metrics of `compare`; any other
/// scenario has those of `run --runs`.
#[derive(Clone, Debug)]
pub struct Repeated {
    /// The name of the scenario, as the user gave it.
    pub name: String,
    file: String,
    text: String,
    set: Vec<Setting>,
    seed: u64,
    leg: Option<&'static Leg>,
}

impl Repeated {
    /// Finds the scenario `name`. Returns an error if there is no such scenario, or if it is invalid.
    pub fn of(name: &str, set: &[Setting], seed: u64) -> Result<Self, ScenarioError> {
        let (file, text) = catalogue::find(name)?;
        let leg = course()?.legs.iter().find(|leg| leg.name == name);
        let all = Self { name: name.to_owned(), file, text, set: set.to_vec(), seed, leg };
        all.plan(0, 1)?;
        Ok(all)
    }

    /// Returns the text of the scenario file.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the warnings about the scenario with all its settings, also those of `compare`: see [`scenario::warnings`].
    pub fn warnings(&self) -> Result<Vec<ScenarioError>, ScenarioError> {
        let plan = self.plan(0, 1)?;
        scenario::warnings(&self.file, &plan.text, &plan.settings)
    }

    /// Returns the plan of run `number` (from 0) of `of` runs, or an error if the scenario is invalid.
    pub fn plan(&self, number: u64, of: u64) -> Result<Plan, ScenarioError> {
        if let Some(leg) = self.leg {
            return contest::plan(leg, (number, of), self.seed, &self.set);
        }
        let repetition = Repetition { number, of, seed: self.seed };
        Scenario::repetition(&self.file, &self.text, &self.set, self.seed.wrapping_add(number), repetition)
    }

    /// Returns the compared metrics of a run, and the reasons why the run is invalid. A leg of `compare` that cannot be
    /// evaluated is invalid.
    pub fn read(&self, outcome: &Outcome) -> Run {
        let values = match self.leg {
            Some(_) => contest::values_of_run(outcome),
            None => Ok(batch::measured(&batch::of_run(&batch::measure(outcome)))),
        };
        let mut doubts = outcome.doubts.clone();
        let values = values.unwrap_or_else(|why| {
            doubts.push(Doubt::NotMeasured { why });
            BTreeMap::new()
        });
        Run { values, doubts }.rounded()
    }

    /// Returns the identity of this scenario. Recorded runs with another identity are not runs of this scenario.
    pub(super) fn key(&self) -> Key {
        let set = self.set.iter().map(ToString::to_string).collect();
        let digest = digest_of(&mut self.text.as_bytes()).unwrap_or_default();
        Key { scenario: self.name.clone(), digest, set, seed: self.seed }
    }
}

/// The identity of a scenario that was run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Key {
    pub(super) scenario: String,
    /// SHA-256 of the scenario's text.
    pub(super) digest: String,
    pub(super) set: Vec<String>,
    pub(super) seed: u64,
}

/// The compared metrics of one run, and the reasons why the run is invalid.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Run {
    /// The values of the run by metric. An outage without end is infinite.
    pub values: BTreeMap<String, f64>,
    /// The reasons why the run is invalid; empty if it is valid.
    pub doubts: Vec<Doubt>,
}

impl Run {
    /// Returns the run with only the compared metrics, rounded as in the file.
    fn rounded(mut self) -> Self {
        self.values.retain(|name, _| COMPARED.iter().any(|compared| compared.metric == metric(name)));
        self.values.values_mut().for_each(|value| *value = batch::short(*value));
        self
    }
}

/// An invalid run, with the reasons.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotCounted {
    /// The number of the run, from 0.
    pub number: u64,
    /// The reasons why the run is invalid.
    pub doubts: Vec<Doubt>,
}

/// The results of the runs of a scenario on one backend, by the numbers of the runs.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct Sample {
    /// The number of requested runs. The phases of the runs depend on it.
    pub of: u64,
    runs: BTreeMap<u64, Run>,
}

impl Sample {
    /// Returns a sample without results, for `of` requested runs.
    pub fn new(of: u64) -> Self {
        Self { of, runs: BTreeMap::new() }
    }

    /// Adds run `number`. Replaces an earlier run with the same number.
    pub fn add(&mut self, number: u64, run: Run) {
        self.runs.insert(number, run);
    }

    /// Returns the numbers of the runs that are still missing: not started, or invalid only because of host
    /// contention.
    pub fn missing(&self) -> Vec<u64> {
        (0..self.of)
            .filter(|number| self.runs.get(number).is_none_or(|run| is_only_timing(&run.doubts)))
            .collect()
    }

    /// Returns the number of valid runs.
    pub fn counted(&self) -> usize {
        self.trusted().count()
    }

    /// Returns the invalid runs, ordered by number.
    pub fn untrusted(&self) -> Vec<NotCounted> {
        let doubtful = self.runs.iter().filter(|(_, run)| !run.doubts.is_empty());
        let not_counted =
            |(number, run): (&u64, &Run)| NotCounted { number: *number, doubts: run.doubts.clone() };
        doubtful.map(not_counted).collect()
    }

    /// Returns the values of a metric, from the valid runs that have it.
    pub fn values(&self, name: &str) -> Vec<f64> {
        self.trusted().filter_map(|(_, run)| run.values.get(name)).copied().collect()
    }

    /// Returns the names of the metrics of valid runs, ordered by metric as in [`METRICS`], then by kind of handoff.
    pub fn names(&self) -> Vec<&str> {
        let all: BTreeSet<&str> =
            self.trusted().flat_map(|(_, run)| run.values.keys().map(String::as_str)).collect();
        let of = |(of, _): &(&str, &str)| {
            let of = (*of).to_owned();
            all.iter().copied().filter(move |name| metric(name) == of)
        };
        METRICS.iter().flat_map(of).collect()
    }

    /// Returns the runs with the numbers of the valid runs in `other`.
    pub(super) fn at_the_runs_of(&self, other: &Self) -> Self {
        let runs = other.trusted().filter_map(|(number, _)| Some((*number, self.runs.get(number)?.clone())));
        Self { of: self.of, runs: runs.collect() }
    }

    fn trusted(&self) -> impl Iterator<Item = (&u64, &Run)> {
        self.runs.iter().filter(|(_, run)| run.doubts.is_empty())
    }
}

/// A sample in the format of the file: one list of values for each metric.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    of: u64,
    /// The numbers of the valid runs.
    counted: Vec<u64>,
    /// The values of each metric, one for each valid run.
    values: BTreeMap<String, Vec<Cell>>,
    untrusted: Vec<NotCounted>,
}

/// A value in a file. JSON has no infinite numbers.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Cell {
    Value(f64),
    Word(Never),
    NotMeasured(()),
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Never {
    Never,
}

impl From<Option<f64>> for Cell {
    fn from(value: Option<f64>) -> Self {
        match value {
            Some(value) if value.is_finite() => Self::Value(value),
            Some(_) => Self::Word(Never::Never),
            None => Self::NotMeasured(()),
        }
    }
}

impl From<Cell> for Option<f64> {
    fn from(cell: Cell) -> Self {
        match cell {
            Cell::Value(value) => Some(value),
            Cell::Word(Never::Never) => Some(f64::INFINITY),
            Cell::NotMeasured(()) => None,
        }
    }
}

impl From<Sample> for Stored {
    fn from(sample: Sample) -> Self {
        let column = |name: &&str| {
            let cells = sample.trusted().map(|(_, run)| run.values.get(*name).copied().into());
            ((*name).to_owned(), cells.collect())
        };
        Self {
            of: sample.of,
            counted: sample.trusted().map(|(number, _)| *number).collect(),
            values: sample.names().iter().map(column).collect(),
            untrusted: sample.untrusted(),
        }
    }
}

impl TryFrom<Stored> for Sample {
    type Error = String;

    fn try_from(stored: Stored) -> Result<Self, String> {
        let mut sample = Self::new(stored.of);
        for number in &stored.counted {
            sample.add(*number, Run::default());
        }
        for (name, column) in stored.values {
            if column.len() != stored.counted.len() {
                let (have, want) = (column.len(), stored.counted.len());
                return Err(format!(
                    "{name}: must have {want} values, one for each valid run, but has {have}"
                ));
            }
            for (number, cell) in stored.counted.iter().zip(column) {
                let run = sample.runs.entry(*number).or_default();
                run.values.extend(Option::from(cell).map(|value| (name.clone(), value)));
            }
        }
        for NotCounted { number, doubts } in stored.untrusted {
            sample.add(number, Run { doubts, ..Run::default() });
        }
        Ok(sample)
    }
}
