//! The rows of the comparison: the median of each metric, by protocol, move, workload and backend.

use super::carry_out::{Comparison, NOT_ON_LINUX};
use super::course::Leg;
use super::measure::{METRICS, Metric, OUTAGE, OWNERS, STALL};
use super::runs::{runs, values};
use crate::reproduce::Results;
use crate::stats::Summary;
use draw::Csv;
use recorder::run::Backend;

/// What a row of stalls says if the median outage is infinite: half of the runs or more ended in the stall.
pub(super) const LOWER_BOUND: &str = "a lower bound: the median outage lasted until the run ended";

/// One metric of one protocol with one move and workload, on one backend.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// The protocol's name in commands.
    pub protocol: String,
    /// The name of the move.
    pub r#move: String,
    /// The name of the workload.
    pub workload: String,
    /// The backend of the runs.
    pub backend: Backend,
    /// The metric of the values.
    pub metric: Metric,
    /// The summary of the values. `None` if there are no values; `why_not` may then have the reason.
    pub median: Option<Summary>,
    /// The number of valid repetitions with a value of the metric.
    pub n: usize,
    /// The number of invalid repetitions. They are not in `n`.
    pub invalid: usize,
    /// The reason why there is no value, why the median outage is infinite, or why the stall is only a lower bound. `None` if there is
    /// no such reason.
    pub why_not: Option<String>,
}

/// The reason of a metric without a valid value.
const NONE_VALID: &str = "no valid run has a value of this metric";

impl Row {
    /// Returns a short text for a row without values: the protocol cannot make the move, its runs are invalid, or there were none.
    pub(super) fn absent(&self) -> &'static str {
        match self.why_not.as_deref() {
            Some(NOT_ON_LINUX) | None => "not measured",
            Some(NONE_VALID) => "invalid",
            Some(_) => "cannot",
        }
    }
}

/// Returns all rows, ordered by move, workload, protocol, backend and metric.
pub fn rows(comparison: &Comparison) -> Vec<Row> {
    let course = comparison.course;
    let mut rows = Vec::new();
    for (how, each) in course.moves.iter().enumerate() {
        for (load, workload) in course.workloads.iter().enumerate() {
            for who in &comparison.wanted {
                let Some(contender) = course.contenders.get(*who) else { continue };
                let made = |leg: &&Leg| leg.contender == *who && leg.r#move == how && leg.workload == load;
                let leg = course.legs.iter().find(made);
                for results in &comparison.backends {
                    let row = |metric: &Metric| Row {
                        protocol: contender.name.clone(),
                        r#move: each.name.clone(),
                        workload: workload.name.clone(),
                        backend: results.backend,
                        metric: *metric,
                        median: None,
                        n: 0,
                        invalid: 0,
                        why_not: contender.cannot.get(&each.name).cloned(),
                    };
                    let fill = |metric: &Metric| match leg {
                        Some(leg) => filled(row(metric), results, leg, contender.never.as_deref()),
                        None => row(metric),
                    };
                    rows.extend(METRICS.iter().chain(&OWNERS).map(fill));
                }
            }
        }
    }
    rows
}

fn filled(mut row: Row, results: &Results, leg: &Leg, never: Option<&str>) -> Row {
    let samples = values(results, leg, row.metric.name);
    row.median = Summary::of(&samples);
    row.n = samples.len();
    row.invalid = runs(results, leg).filter(|measured| !measured.is_valid()).count();
    let outage = || Summary::of(&values(results, leg, OUTAGE.name));
    let never_ends = || outage().is_some_and(|outage| outage.median.is_infinite());
    if row.metric == STALL && row.median.is_some() && never_ends() {
        row.why_not = Some(LOWER_BOUND.to_owned());
    } else if row.metric == OUTAGE && never_ends() {
        row.why_not = Some(
            never
                .unwrap_or("after the move, the application received no new data until the run ended")
                .to_owned(),
        );
    } else if row.median.is_none() && row.invalid > 0 {
        row.why_not = Some(NONE_VALID.to_owned());
    } else if row.backend == Backend::Linux && runs(results, leg).next().is_none() {
        row.why_not = Some(NOT_ON_LINUX.to_owned());
    }
    row
}

/// Returns all rows as CSV. An infinite value is `inf`. For a stall that is only a lower bound, `why_not` says so.
pub fn csv(comparison: &Comparison) -> String {
    let mut csv = Csv::default();
    csv.row([
        "protocol", "move", "workload", "backend", "metric", "unit", "median", "lo", "hi", "n", "invalid",
        "why_not",
    ]);
    for row in rows(comparison) {
        let number = |value: Option<f64>| match value {
            Some(value) if value.is_infinite() => "inf".to_owned(),
            Some(value) => format!("{value:.*}", row.metric.digits.max(3)),
            None => String::new(),
        };
        let interval = row.median.and_then(|median| median.interval);
        csv.row([
            row.protocol.clone(),
            row.r#move.clone(),
            row.workload.clone(),
            row.backend.name().to_owned(),
            row.metric.name.to_owned(),
            row.metric.unit.to_owned(),
            number(row.median.map(|median| median.median)),
            number(interval.map(|interval| interval.lo)),
            number(interval.map(|interval| interval.hi)),
            row.n.to_string(),
            row.invalid.to_string(),
            row.why_not.clone().unwrap_or_default(),
        ]);
    }
    csv.finish()
}
