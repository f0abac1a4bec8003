//! One point: a scenario with settings, the published numbers, and the evaluation of its runs.

use crate::catalogue;
use recorder::run::{Backend, Outcome};
use scenario::{Plan, Repetition, Scenario, ScenarioError};
use std::collections::BTreeMap;
use wire::{Duration, Instant};

/// A number printed in a paper, and the tolerance within which a value reproduces it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Published {
    /// The name of the published metric, as in the metrics of the experiment.
    pub metric: &'static str,
    /// The figure, table or section of the paper in which the number is printed.
    pub figure: &'static str,
    /// The published number, in the metric's unit.
    pub value: f64,
    /// The largest permitted difference from the published number, in the metric's unit. It is fixed before the first
    /// run.
    pub tolerance: f64,
    /// The reason for the tolerance, in one line.
    pub tolerance_from: &'static str,
    /// The difference from the paper's setup that may cause another value, in one line.
    pub why: &'static str,
    /// The properties that must hold for the series that the number is part of (a slope, a ratio, an order), by their
    /// texts. Empty for a single number, which has no shape.
    pub shape: &'static [&'static str],
}

/// The purpose of a point: a part of the published experiment, a control, or a variation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// A point of the published experiment.
    Main,
    /// A control: a change of the experiment that must give another result, for example losses without a delay device.
    Control,
    /// A variation of a parameter that the paper leaves open.
    Sensitivity,
}

impl Kind {
    /// Returns the word for this purpose in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Control => "control",
            Self::Sensitivity => "sensitivity",
        }
    }
}

/// The value of a parameter that varies between the points of an experiment.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Setting {
    /// A text, for example `hard`.
    Text(&'static str),
    /// A number, for example a rate.
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

/// Parses settings that are written in this crate. Wrong text is a defect of the experiment: a build with debug assertions
/// panics, and another build leaves the setting out.
pub(crate) fn settings(all: impl IntoIterator<Item = impl AsRef<str>>) -> Vec<scenario::Setting> {
    let parsed = all.into_iter().map(|text| text.as_ref().parse());
    parsed
        .filter_map(|setting: Result<scenario::Setting, _>| {
            debug_assert!(setting.is_ok(), "{setting:?}");
            setting.ok()
        })
        .collect()
}

/// The values of a run by metric, one for each repetition in the run.
pub type Samples = BTreeMap<&'static str, Vec<f64>>;

/// What one run was over time, for figures.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TimeSeries {
    /// The values of each quantity in the order of time, by the name of the quantity. The experiment chooses the units.
    pub lines: BTreeMap<&'static str, Vec<(Instant, f64)>>,
    /// The named events of the run, in the order of time.
    pub events: Vec<(Instant, &'static str)>,
}

impl TimeSeries {
    /// Returns when the first event with this name happened; `None` if there was none.
    pub fn at(&self, name: &str) -> Option<Instant> {
        self.events.iter().find(|(_, event)| *event == name).map(|(at, _)| *at)
    }
}

/// A function that extracts the time series of a run.
pub type Trace = fn(&Outcome) -> TimeSeries;

/// A function that evaluates a run. It returns an error if the run cannot be evaluated.
pub type Measure = fn(&Outcome) -> Result<Samples, String>;

/// A function that computes the values of a point from those of other points. It gets the point, and the points with
/// valid values on the same backend. It returns an error if a value that it needs is missing.
pub type Combine = fn(&Point, &[(&Point, &Samples)]) -> Result<Samples, String>;

/// One combination of parameter values at which an experiment is measured, with its scenario and settings.
#[derive(Clone, Debug)]
pub struct Point {
    /// The name of the point in tables. No other point of the experiment has it.
    pub label: String,
    /// The values of the varied parameters, by the names of the parameters.
    pub setting: Vec<(&'static str, Setting)>,
    /// The purpose of the point.
    pub kind: Kind,
    /// The backends on which the point runs.
    pub backends: &'static [Backend],
    /// The name of the built-in scenario.
    pub scenario: &'static str,
    /// The settings in which the point differs from the scenario.
    pub overrides: Vec<scenario::Setting>,
    /// The additional settings of each run, if the repetitions of the point are divided among several runs. Empty: one
    /// run contains all repetitions.
    pub runs: Vec<Vec<scenario::Setting>>,
    /// Whether the runs of the point are repetitions at the scenario's own phases, each with a separate seed
    /// ([`Repetition`]).
    pub phases: bool,
    /// The number of repetitions in all runs together.
    pub n: usize,
    /// The load of a run in bit/s: the offered load, or in long chains the mean of the rates of all links together. It limits the
    /// number of parallel runs on Linux.
    pub load: u64,
    /// The published numbers, at most one for each metric.
    pub published: Vec<Published>,
    /// The values that a formula predicts, each with the name of its metric, in the metric's unit.
    pub formula: Vec<(&'static str, f64)>,
    /// The label of the point by whose values the values of this point are divided in reports. `None`: they are not
    /// divided.
    pub base: Option<String>,
    /// The function that evaluates a run of the point.
    pub measure: Measure,
    /// The function that computes the values of the point from those of other points, for example a slope. Then the
    /// point has no runs. `None`: the runs of the point are executed.
    pub combine: Option<Combine>,
    /// The function that extracts the time series of each run for figures; `None` if no figure needs it.
    pub trace: Option<Trace>,
}

impl Point {
    /// Returns whether the parameter `name` has the value `value`.
    pub fn has(&self, name: &str, value: impl Into<Setting>) -> bool {
        self.number_or_text(name) == Some(value.into())
    }

    /// Returns the numeric value of a parameter, or `None` if the parameter has none.
    pub fn number(&self, name: &str) -> Option<f64> {
        match self.number_or_text(name)? {
            Setting::Number(number) => Some(number),
            Setting::Text(_) => None,
        }
    }

    /// Returns the published number for a metric, or `None` if there is none.
    pub fn published(&self, metric: &str) -> Option<&Published> {
        self.published.iter().find(|published| published.metric == metric)
    }

    /// Returns whether the point has runs, and they are for this backend.
    pub(super) fn is_run_on(&self, backend: Backend) -> bool {
        self.combine.is_none() && self.backends.contains(&backend)
    }

    /// Returns the number of runs of the point, if it has runs.
    pub fn count(&self) -> usize {
        self.runs.len().max(1)
    }

    /// Returns the plan of a run (from 0), with the settings `more` after those of the point. The plan has the name of
    /// the scenario. Returns an error if the scenario or a setting is invalid.
    pub fn plan(&self, run: usize, more: &[scenario::Setting]) -> Result<Plan, ScenarioError> {
        let (file, text) = catalogue::find(self.scenario)?;
        let own = self.runs.get(run).into_iter().flatten();
        let overrides: Vec<_> = self.overrides.iter().chain(own).chain(more).cloned().collect();
        if !self.phases {
            return Scenario::plan(&file, &text, &overrides, 1);
        }
        let (number, of) = (run as u64, self.count() as u64);
        Scenario::repetition(&file, &text, &overrides, 1 + number, Repetition { number, of, seed: 1 })
    }

    /// Returns the duration of each run of the point, or an error of [`Self::plan`]. Only a setting `duration` changes it, so most
    /// runs need no plan for it, and are not checked: a plan takes milliseconds, and an experiment has thousands of runs.
    pub(crate) fn durations(&self, more: &[scenario::Setting]) -> Result<Vec<Duration>, ScenarioError> {
        let has_own =
            |run: usize| self.runs.get(run).into_iter().flatten().any(|one| one.path() == "duration");
        let mut usual = None;
        let mut of = |run| match usual {
            Some(duration) if !has_own(run) => Ok(duration),
            _ => {
                let duration = self.plan(run, more)?.duration;
                usual = usual.or((!has_own(run)).then_some(duration));
                Ok(duration)
            }
        };
        (0..self.count()).map(&mut of).collect()
    }

    fn number_or_text(&self, name: &str) -> Option<Setting> {
        self.setting.iter().find(|(key, _)| *key == name).map(|(_, value)| *value)
    }
}
