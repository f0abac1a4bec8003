//! Recorded measurements on Linux, stored beside the table. They are not deterministic, so the build does not repeat
//! them.

use super::published::{Estimate, Judged, OnBackend, judged};
use super::{Report, Scale};
use crate::stats::Interval;
use recorder::run::Backend;
use serde::{Deserialize, Serialize};

/// The measurements of published numbers on Linux.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// The kernel of the runs, as `uname -r` prints it.
    pub kernel: String,
    /// The name of the scale of the runs.
    pub scale: String,
    numbers: Vec<Number>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Number {
    id: String,
    point: String,
    metric: String,
    value: f64,
    interval: Option<[f64; 2]>,
    is_range: bool,
    n: usize,
    has_shape: bool,
}

impl Recorded {
    /// Returns the numbers that these reports measured on Linux, or `None` if they measured none on Linux.
    pub fn of(reports: &[Report], kernel: &str, scale: Scale) -> Option<Self> {
        let mut numbers = Vec::new();
        for report in reports {
            for judged in judged(report) {
                let linux = judged.on.iter().find(|on| on.backend == Backend::Linux);
                // A number is not recorded if it has no value, or if its series needs an invalid run.
                let Some((estimate, has_shape)) = linux.and_then(|on| on.estimate.zip(on.has_shape)) else {
                    continue;
                };
                numbers.push(Number {
                    id: report.experiment.id.to_owned(),
                    point: judged.point.label.clone(),
                    metric: judged.metric.name.to_owned(),
                    value: estimate.value,
                    interval: estimate.interval.map(|interval| [interval.lo, interval.hi]),
                    is_range: estimate.interval.is_some_and(|interval| interval.is_range),
                    n: estimate.n,
                    has_shape,
                });
            }
        }
        let (kernel, scale) = (kernel.trim().to_owned(), scale.name().to_owned());
        (!numbers.is_empty()).then_some(Self { kernel, scale, numbers })
    }

    /// Reads the output of [`Recorded::json`]. The error names line and column.
    pub fn read(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    /// Returns the text of the file, as JSON.
    pub fn json(&self) -> std::io::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// Returns `self`, with the numbers of `old` that `self` does not have. The kernel and the scale are those of
    /// `self`.
    #[must_use]
    pub fn with_the_rest_of(mut self, old: Self) -> Self {
        let is_new = |old: &Number, all: &[Number]| {
            !all.iter().any(|each| each.id == old.id && each.point == old.point && each.metric == old.metric)
        };
        let rest: Vec<Number> =
            old.numbers.into_iter().filter(|number| is_new(number, &self.numbers)).collect();
        self.numbers.extend(rest);
        self
    }

    /// Returns the recorded value of a published number, or `None` if there is none.
    pub(super) fn find(&self, id: &str, judged: &Judged<'_>) -> Option<OnBackend> {
        let same = |number: &&Number| {
            number.id == id && number.point == judged.point.label && number.metric == judged.metric.name
        };
        let number = self.numbers.iter().find(same)?;
        let interval = number.interval.map(|[lo, hi]| Interval { lo, hi, is_range: number.is_range });
        let estimate = Some(Estimate { value: number.value, interval, n: number.n });
        Some(OnBackend { backend: Backend::Linux, estimate, has_shape: Some(number.has_shape) })
    }
}
