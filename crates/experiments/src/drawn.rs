//! What all figures have in common: the style of each backend, and the whisker of a value.

use crate::stats::{Interval, Summary};
use draw::{Style, Whisker};
use recorder::run::Backend;

/// Returns the style for values of a backend.
pub(crate) const fn style(backend: Backend) -> Style {
    match backend {
        Backend::Sim => Style::Simulator,
        Backend::Linux => Style::Linux,
    }
}

/// Converts an interval into a whisker.
pub(crate) const fn whisker(interval: Interval) -> Whisker {
    Whisker { lo: interval.lo, hi: interval.hi, is_range: interval.is_range }
}

/// Returns the whisker of a median: its interval, or the range if there are too few values for an interval. `None` for
/// fewer than two values.
pub(crate) fn enclosed(summary: &Summary, values: &[f64]) -> Option<Whisker> {
    let range = || {
        let by = |one: f64, other: &f64| if other.total_cmp(&one).is_lt() { *other } else { one };
        let lo = values.iter().fold(f64::INFINITY, by);
        let hi = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (values.len() > 1).then_some(Whisker { lo, hi, is_range: true })
    };
    summary.interval.map(whisker).or_else(range)
}
