//! The runs of a leg, and their values.

use super::course::Leg;
use crate::reproduce::{Measured, Results};

/// Returns the runs of a leg on one backend.
pub(super) fn runs<'a>(results: &'a Results, leg: &'a Leg) -> impl Iterator<Item = &'a Measured> {
    results.rows(|point| point.scenario == leg.name).map(|(_, measured)| measured)
}

/// Returns the values of a metric over the valid runs of a leg.
pub(super) fn values(results: &Results, leg: &Leg, metric: &str) -> Vec<f64> {
    let valid = runs(results, leg).filter(|measured| measured.is_valid());
    valid.filter_map(|measured| measured.samples.get(metric)).flatten().copied().collect()
}
