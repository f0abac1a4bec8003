//! One point: a scenario with overrides, what the paper says of it, and how to read a run of it.

use super::Published;
use crate::run::{OnWorld, Outcome};
use crate::scenario::Repetition;
use crate::{Plan, Scenario, ScenarioError, scenario};
use std::collections::BTreeMap;

/// What a point is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// The published experiment.
    Main,
    /// Something that has to come out otherwise.
    Control,
    /// What became of it if a thing that the paper leaves open were half or double.
    Sensitivity,
}

impl Kind {
    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Control => "control",
            Self::Sensitivity => "sensitivity",
        }
    }
}

/// The value of a setting, as JSON has it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Setting {
    /// A word.
    Text(&'static str),
    /// A number.
    Number(f64),
}

impl From<&'static str> for Setting {
    fn from(text: &'static str) -> Self {
        Self::Text(text)
    }
}

impl From<f64> for Setting {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

/// What a run gave, by metric: a value for each repetition.
pub type Samples = BTreeMap<&'static str, Vec<f64>>;

/// Reads a run. An error says why it cannot be read.
pub type Measure = fn(&Outcome) -> Result<Samples, String>;

/// One point of an experiment.
#[derive(Clone, Debug)]
pub struct Point {
    /// The name in tables; no two points share one.
    pub label: String,
    /// What was set, by name.
    pub setting: Vec<(&'static str, Setting)>,
    /// What it is for.
    pub kind: Kind,
    /// The worlds it is carried out in.
    pub worlds: &'static [OnWorld],
    /// The built-in scenario.
    pub scenario: &'static str,
    /// What differs from it.
    pub overrides: Vec<scenario::Setting>,
    /// Runs that make up its repetitions, each by what differs from that again; none: one run holds them all.
    pub runs: Vec<Vec<scenario::Setting>>,
    /// Whether its runs are repetitions at the scenario's own phases, each with a seed of its own (`lab::scenario::Repetition`).
    pub phases: bool,
    /// Repetitions.
    pub n: usize,
    /// Bits a second that it offers: on Linux, points run side by side only below a sum.
    pub load: u64,
    /// What is published, at most one number for a metric.
    pub published: Vec<Published>,
    /// What a formula says, by metric.
    pub formula: Vec<(&'static str, f64)>,
    /// The point, by label, that this one's shape is a fraction of.
    pub base: Option<String>,
    /// How to read a run.
    pub measure: Measure,
}

impl Point {
    /// Whether a setting has this value.
    pub fn has(&self, name: &str, value: impl Into<Setting>) -> bool {
        self.number_or_text(name) == Some(value.into())
    }

    /// The number of a setting.
    pub fn number(&self, name: &str) -> Option<f64> {
        match self.number_or_text(name)? {
            Setting::Number(number) => Some(number),
            Setting::Text(_) => None,
        }
    }

    /// What is published of a metric.
    pub fn published(&self, metric: &str) -> Option<&Published> {
        self.published.iter().find(|published| published.metric == metric)
    }

    /// How many runs it has.
    pub fn count(&self) -> usize {
        self.runs.len().max(1)
    }

    /// The plan of a run, with `more` overrides on top of its own. Its name is the experiment's scenario.
    pub fn plan(&self, run: usize, more: &[scenario::Setting]) -> Result<Plan, ScenarioError> {
        let (file, text) = Scenario::find(self.scenario)?;
        let own = self.runs.get(run).into_iter().flatten();
        let overrides: Vec<_> = self.overrides.iter().chain(own).chain(more).cloned().collect();
        if !self.phases {
            return Scenario::plan(&file, &text, &overrides, 1);
        }
        let (number, of) = (run as u64, self.count() as u64);
        Scenario::repetition(&file, &text, &overrides, 1 + number, Repetition { number, of, seed: 1 })
    }

    /// The plans of all its runs.
    pub fn plans(&self, more: &[scenario::Setting]) -> Result<Vec<Plan>, ScenarioError> {
        (0..self.count()).map(|run| self.plan(run, more)).collect()
    }

    fn number_or_text(&self, name: &str) -> Option<Setting> {
        self.setting.iter().find(|(key, _)| *key == name).map(|(_, value)| *value)
    }
}
