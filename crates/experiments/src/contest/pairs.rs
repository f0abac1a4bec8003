//! The order of two protocols by outage, from the differences of runs at the same phase.

use super::carry_out::Comparison;
use super::course::Leg;
use super::measure::OUTAGE;
use crate::reproduce::{Measured, Point, Results};
use crate::stats::Summary;
use recorder::run::Backend;
use serde_json::{Value, json as object};
use std::cmp::Ordering;

/// Two protocols with one move and workload, on one backend.
pub(super) struct Pair<'a> {
    pub(super) backend: Backend,
    pub(super) legs: [&'a Leg; 2],
    /// The first protocol's outage minus the second's, run by run, in milliseconds. `None` if they have no valid runs
    /// at the same phase.
    pub(super) difference: Option<Summary>,
}

impl Pair<'_> {
    /// Returns the order of the two protocols by outage, or `None` if they are not distinguished: the 95 % confidence
    /// interval of the median difference contains zero, or there is no interval (fewer than six runs).
    pub(super) fn order(&self) -> Option<Ordering> {
        let interval = self.difference?.interval?;
        match () {
            () if interval.lo > 0.0 => Some(Ordering::Greater),
            () if interval.hi < 0.0 => Some(Ordering::Less),
            () => None,
        }
    }
}

/// Compares the outages of two legs, run by run at the same phases.
pub(super) fn pair<'a>(results: &Results, a: &'a Leg, b: &'a Leg) -> Pair<'a> {
    let outage =
        |measured: &Measured| measured.samples.get(OUTAGE.name).and_then(|values| values.first()).copied();
    let of = |leg: &Leg| -> Vec<(String, f64)> {
        let rows =
            results.rows(|point| point.scenario == leg.name).filter(|(_, measured)| measured.is_valid());
        rows.filter_map(|(point, measured)| Some((phase(point).to_owned(), outage(measured)?))).collect()
    };
    let theirs = of(b);
    let differences: Vec<f64> = of(a)
        .into_iter()
        .filter_map(|(phase, ours)| {
            let (_, theirs) = theirs.iter().find(|(other, _)| *other == phase)?;
            // Two infinite outages do not differ.
            Some(if ours.total_cmp(theirs).is_eq() { 0.0 } else { ours - theirs })
        })
        .collect();
    Pair { backend: results.backend, legs: [a, b], difference: Summary::of(&differences) }
}

/// Returns the last word of a point's label, for example `3/20`. Points of all legs with the same word were measured
/// at the same phase.
fn phase(point: &Point) -> &str {
    point.label.rsplit(' ').next().unwrap_or_default()
}

/// Returns the number of a repetition, from 0.
pub(super) fn number(point: &Point) -> u64 {
    let number = phase(point).split('/').next().and_then(|number| number.parse::<u64>().ok());
    number.unwrap_or_default().saturating_sub(1)
}

/// Returns, for each backend, every pair of requested legs with the same move and workload.
pub(super) fn pairs(comparison: &Comparison) -> Vec<Pair<'_>> {
    let legs = &comparison.course.legs;
    let wanted = |leg: &&Leg| comparison.wanted.contains(&leg.contender);
    let mut all = Vec::new();
    for results in &comparison.backends {
        for (place, a) in legs.iter().enumerate().filter(|(_, leg)| wanted(leg)) {
            let beside = |b: &&Leg| wanted(b) && b.r#move == a.r#move && b.workload == a.workload;
            all.extend(legs.iter().skip(place + 1).filter(beside).map(|b| pair(results, a, b)));
        }
    }
    all
}

/// Returns all pairs as JSON. Differences are in milliseconds, the first minus the second; an infinite difference is
/// null.
pub(super) fn json(comparison: &Comparison) -> Value {
    let finite = |value: Option<f64>| value.filter(|value| value.is_finite());
    let pair = |pair: &Pair<'_>| {
        let interval = pair.difference.and_then(|difference| difference.interval);
        object!({
            "backend": pair.backend.name(),
            "legs": pair.legs.map(|leg| leg.name.as_str()),
            "outage_difference_ms": finite(pair.difference.map(|difference| difference.median)),
            "lo": finite(interval.map(|interval| interval.lo)),
            "hi": finite(interval.map(|interval| interval.hi)),
            "n": pair.difference.map_or(0, |difference| difference.n),
            "is_told_apart": pair.order().is_some(),
        })
    };
    pairs(comparison).iter().map(pair).collect()
}
