//! The experiments of the papers: published beside measured, and whether what must hold does.
//!
//! ```text
//! Experiment ─ points(scale) ─> Point ─ scenario + overrides ─> Plan ─ run_point ─> Outcome ─ measure ─> Samples
//!      │                          └ published numbers                (either world)                        │
//!      └ must_hold ── check(results) <──────────────────────────────────────────────────────────── Results ┘
//!           └ breakers: overrides under which it must not hold
//! ```
//!
//! A scale changes how often and how long, never a rate, delay, timer, topology, threshold or the list of must-holds.

mod carry_out;
mod figure;
mod handoff_time;
mod json;
mod phases;
mod point;
mod published;
mod recorded;
mod self_test;
mod sigma_handoff;
mod table;
mod text;
mod udp_loss;

pub use carry_out::{How, Measured, NotRun, Report, Results, Validity, Verdict, reproduce, run_point};
pub(crate) use carry_out::{doubts, measure_all};
pub use figure::{Figure, figure_names, figures};
pub use json::{json, self_test_json};
pub(crate) use phases::stratified;
pub use point::{Kind, Measure, Point, Samples, Setting};
pub use published::{Counts, Estimate, Judged, OnBackend, Published, Statistic, Word, counts, judged};
pub use recorded::Recorded;
pub use self_test::{Broken, self_test};
pub use table::{is_table, short, table};
pub(crate) use text::invalid;
pub use text::{self_test_text, summary, text};

use crate::run::OnWorld;
use wire::Duration;

/// How often and how long.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Scale {
    /// Seconds: for every change.
    Quick,
    /// Minutes.
    #[default]
    Default,
    /// The paper's own counts and times.
    Full,
}

impl Scale {
    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Default => "default",
            Self::Full => "full",
        }
    }
}

/// What an experiment measures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Metric {
    /// Its name, exactly as the list of experiments has it.
    pub name: &'static str,
    /// Digits after the point in reports.
    pub digits: usize,
    /// How its repetitions become one value.
    pub statistic: Statistic,
    /// Whether it belongs to the published experiment; what does not helps to understand it, and stays out of the JSON.
    pub official: bool,
}

/// One experiment of a paper.
#[derive(Debug)]
pub struct Experiment {
    /// `PAPER/NAME`.
    pub id: &'static str,
    /// What it shows, in a line.
    pub about: &'static str,
    /// The paper, in short: authors and year.
    pub paper: &'static str,
    /// Where the published numbers are printed.
    pub source: &'static str,
    /// What a reader must know to read the table: what was left open and how it was fixed, what the columns mean.
    pub notes: &'static [&'static str],
    /// The worlds it can be carried out in.
    pub worlds: &'static [OnWorld],
    /// What is measured.
    pub metrics: &'static [Metric],
    /// What is carried out.
    pub points: fn(Scale) -> Vec<Point>,
    /// What the measurement is checked against.
    pub must_hold: &'static [MustHold],
    /// What is checked in the same way and printed, and decides nothing: no verdict, no exit status. It needs no breakers.
    pub observed: &'static [MustHold],
    /// The figures: title, axes and series, from what was measured.
    pub(crate) figures: fn(&Report) -> Vec<figure::Drawn>,
}

/// What must hold, and what must make it fail.
#[derive(Debug)]
pub struct MustHold {
    /// In words; `value` in reports is what the words name. [`Published::shape`] names it by them.
    pub text: &'static str,
    /// What the value is.
    pub value: &'static str,
    /// The worlds in which it is asked for.
    pub worlds: &'static [OnWorld],
    /// The points that it looks at. One that is invalid makes it fail.
    pub needs: fn(&Point) -> bool,
    /// Whether it holds in one world.
    pub check: fn(&Results) -> Check,
    /// Overrides of the same scenario, a list of them for each breaker, that make the mechanism useless.
    pub breakers: &'static [&'static [&'static str]],
}

/// What a must-hold saw.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Check {
    /// The number that it was decided by; `None` when it could not be measured, which is not holding.
    pub value: Option<f64>,
    /// Whether it holds.
    pub holds: bool,
}

impl Check {
    /// Holds if there is a value, and it is one of these.
    pub fn within(value: Option<f64>, allowed: impl std::ops::RangeBounds<f64>) -> Self {
        Self { value, holds: value.is_some_and(|value| allowed.contains(&value)) }
    }
}

/// All experiments.
pub const EXPERIMENTS: &[Experiment] =
    &[udp_loss::UDP_LOSS, sigma_handoff::SIGMA_HANDOFF, handoff_time::HANDOFF_TIME];

/// The experiments that these words name: an id, or a paper, which is the part before the slash. None: all.
pub fn select(words: &[String]) -> Result<Vec<&'static Experiment>, String> {
    let named = |experiment: &Experiment, word: &str| {
        experiment.id == word || experiment.id.split('/').next() == Some(word)
    };
    for word in words {
        if !EXPERIMENTS.iter().any(|experiment| named(experiment, word)) {
            let ids: Vec<&str> = EXPERIMENTS.iter().map(|experiment| experiment.id).collect();
            let meant = crate::scenario::did_you_mean(word, ids.iter().copied());
            return Err(format!("no paper and no experiment `{word}`{meant}; there are: {}", ids.join(", ")));
        }
    }
    let wanted = |experiment: &&Experiment| words.is_empty() || words.iter().any(|w| named(experiment, w));
    Ok(EXPERIMENTS.iter().filter(wanted).collect())
}

/// How long an experiment takes on Linux with so many runs side by side, or in virtual time with one.
pub fn span(experiment: &Experiment, scale: Scale, world: OnWorld, jobs: usize) -> Duration {
    carry_out::span(&(experiment.points)(scale), world, jobs)
}

#[cfg(test)]
mod tests;
