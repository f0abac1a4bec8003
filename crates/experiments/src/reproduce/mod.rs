//! The experiments of the papers: published and measured values, and whether the properties that must hold do.
//!
//! ```text
//! Experiment ─ points(scale) ─> Point ─ scenario + overrides ─> Plan ─ run_point ─> Outcome ─ measure ─> Samples
//!      │                          └ published numbers                (on a backend)                        │
//!      └ must_hold ── check(results) <──────────────────────────────────────────────────────────── Results ┘
//!           └ breakers: settings with which it must fail
//! ```
//!
//! A scale changes the number and the length of runs, and on which backends some points run. It changes no rate, delay,
//! timer, topology, threshold or property.

mod carry_out;
pub(crate) mod figure;
mod json;
mod phases;
mod point;
mod published;
mod recorded;
mod self_test;
mod table;
mod text;

pub use crate::execute::{How, NotRun, run_point};
#[cfg(test)]
pub(crate) use carry_out::judge_one;
pub use carry_out::{Measured, Report, Results, Validity, Verdict, reproduce};
pub(crate) use carry_out::{doubts, measure_all};
pub use figure::{Figure, figure_names, figures};
pub use json::{json, self_test_json};
pub(crate) use phases::stratified;
pub(crate) use point::settings;
pub use point::{Combine, Kind, Measure, Point, Published, Samples, Setting, TimeSeries, Trace};
pub use published::{Counts, Estimate, Judged, OnBackend, Statistic, Word, counts, judged};
pub use recorded::Recorded;
pub use self_test::{Broken, self_test};
pub use table::{is_table, short, table};
pub(crate) use text::invalid;
pub use text::{self_test_text, summary, text};

use recorder::run::Backend;
use wire::Duration;

/// The number and the length of the runs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Scale {
    /// Few and short runs, to check each change of the code.
    Quick,
    /// More and longer runs than `Quick`.
    #[default]
    Default,
    /// The largest number of runs.
    Full,
}

impl Scale {
    /// Returns the name of the scale in reports: `quick`, `default` or `full`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Default => "default",
            Self::Full => "full",
        }
    }
}

/// A metric of an experiment: its name, its decimals, and the statistic that combines its values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Metric {
    /// The name of the metric in tables and files.
    pub name: &'static str,
    /// The number of decimals in reports.
    pub digits: usize,
    /// The statistic that combines the repetitions into one value.
    pub statistic: Statistic,
    /// Whether the metric belongs to the published experiment. Other metrics help to explain the result, and are left
    /// out of the JSON.
    pub official: bool,
}

impl Metric {
    /// Returns the name with the statistic, for the titles of tables.
    pub fn title(&self) -> String {
        format!("{} ({})", self.name, self.statistic.name())
    }

    /// Creates a metric of the published experiment whose repetitions are combined by their mean.
    pub const fn mean(name: &'static str, digits: usize) -> Self {
        Self { name, digits, statistic: Statistic::Mean, official: true }
    }

    /// Creates a metric of the published experiment whose repetitions are combined by their median.
    pub const fn median(name: &'static str, digits: usize) -> Self {
        Self { statistic: Statistic::Median, ..Self::mean(name, digits) }
    }

    /// Returns the metric as one that only helps to explain the result: `official` is false.
    #[must_use]
    pub const fn beside(self) -> Self {
        Self { official: false, ..self }
    }
}

/// Both backends, for an experiment or a point that runs on both.
pub const BOTH: &[Backend] = &[Backend::Sim, Backend::Linux];
/// The simulator only, for a point or a property that is not for Linux.
pub const SIM: &[Backend] = &[Backend::Sim];

/// One experiment of a paper: its points, its metrics, and the properties that must hold.
#[derive(Debug)]
pub struct Experiment {
    /// The identifier, `PROTOCOL/NAME`.
    pub id: &'static str,
    /// The measured effect, in one line.
    pub about: &'static str,
    /// The paper's authors and year.
    pub paper: &'static str,
    /// The figures, tables or sections in which the published numbers are printed.
    pub source: &'static str,
    /// Notes for the reader of the table: the parameters that the paper leaves open, our values of these parameters,
    /// and the meaning of the columns. Each note is a paragraph; after each line break its text is indented by two
    /// spaces.
    pub notes: &'static [&'static str],
    /// The backends on which the experiment can run.
    pub backends: &'static [Backend],
    /// The metrics, in the order of the report.
    pub metrics: &'static [Metric],
    /// Returns the points of the experiment at a scale.
    pub points: fn(Scale) -> Vec<Point>,
    /// The properties that must hold.
    pub must_hold: &'static [MustHold],
    /// Properties that are checked and printed, but decide neither verdict nor exit status. They need no breakers.
    pub observed: &'static [MustHold],
    /// Returns the figures: title, axes and series, from the measured values.
    pub(crate) figures: fn(&Report) -> Vec<figure::Drawn>,
}

/// A property that must hold, and the changes that must make it fail.
#[derive(Debug)]
pub struct MustHold {
    /// The property as text. [`Published::shape`] refers to a property by this text.
    pub text: &'static str,
    /// The description of the value that decides whether the property holds.
    pub value: &'static str,
    /// The backends on which the property is required.
    pub backends: &'static [Backend],
    /// Selects the points that the property evaluates. If one of them is invalid, the property does not hold.
    pub needs: fn(&Point) -> bool,
    /// Checks whether the property holds for the results on one backend.
    pub check: fn(&Results) -> Check,
    /// The breakers. Each is a list of settings of the same scenario with which the property must fail.
    pub breakers: &'static [&'static [&'static str]],
}

/// The result of the check of a property: the value that decides, and whether the property holds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Check {
    /// The number that decided the check. `None` if it could not be measured; then the check fails.
    pub value: Option<f64>,
    /// Whether the property holds.
    pub holds: bool,
}

impl Check {
    /// Returns a check that holds if there is a value, and it is in this range.
    pub fn within(value: Option<f64>, allowed: impl std::ops::RangeBounds<f64>) -> Self {
        Self { value, holds: value.is_some_and(|value| allowed.contains(&value)) }
    }

    /// Returns a check that holds if there are results, and all are right. The value is the number of those that are wrong.
    pub fn each(right: impl Iterator<Item = bool>) -> Self {
        let right: Vec<bool> = right.collect();
        let wrong = right.iter().filter(|right| !**right).count();
        Self::within((!right.is_empty()).then_some(wrong as f64), ..0.5)
    }
}

/// Returns the time that an experiment takes on a backend with `jobs` parallel runs, without repeated runs. For the
/// simulator, this time is virtual.
pub fn span(experiment: &Experiment, scale: Scale, backend: Backend, jobs: usize) -> Duration {
    carry_out::span(&(experiment.points)(scale), backend, jobs)
}

/// Returns, for each of these experiments, whether it runs on Linux if the time there is limited to `budget`, with
/// `jobs` parallel runs. The first experiment is the one with the index `turn` modulo the number of experiments. It
/// runs even if it exceeds the budget. The next experiments run as long as the sum of the times is within the budget;
/// the experiment with index 0 follows the last one. If `turn` increases by 1 each time, every experiment has its turn.
pub fn in_turn(
    experiments: &[&Experiment],
    scale: Scale,
    jobs: usize,
    budget: Duration,
    turn: usize,
) -> Vec<bool> {
    let spans: Vec<Duration> =
        experiments.iter().map(|experiment| span(experiment, scale, Backend::Linux, jobs)).collect();
    fitting(&spans, budget, turn)
}

fn fitting(spans: &[Duration], budget: Duration, turn: usize) -> Vec<bool> {
    let mut chosen = vec![false; spans.len()];
    let mut sum = Duration::ZERO;
    let circle = (0..spans.len()).map(|step| (turn + step) % spans.len());
    for (nth, place) in circle.enumerate() {
        let (Some(span), Some(chosen)) = (spans.get(place), chosen.get_mut(place)) else { break };
        sum += *span;
        if nth > 0 && sum > budget {
            break;
        }
        *chosen = true;
    }
    chosen
}

#[cfg(test)]
mod tests;
