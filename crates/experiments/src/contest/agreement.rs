//! Evaluates whether the two backends agree about a leg, as `wayfare agree` does, and whether they rank two protocols
//! alike.

use super::carry_out::Comparison;
use super::course::Leg;
use super::measure::OUTAGE;
use super::order::{order_of, paired};
use super::pairs::number;
use super::runs::runs;
use crate::agree::{self, Agreement, Report, Run, Sample};
use crate::reproduce::{Results, Validity};
use serde_json::Value;
use std::cmp::Ordering;

/// The results of both backends. `same` is the simulator at the phases of the Linux runs.
#[derive(Clone, Copy)]
pub(super) struct Both<'a> {
    pub(super) sim: &'a Results,
    pub(super) same: &'a Results,
    pub(super) linux: &'a Results,
}

impl<'a> Both<'a> {
    /// Returns the results, or `None` unless both backends were measured.
    pub(super) fn of(comparison: &'a Comparison) -> Option<Self> {
        let [sim, linux] = comparison.backends.as_slice() else { return None };
        Some(Self { sim, same: comparison.same.as_ref().unwrap_or(sim), linux })
    }

    /// Returns whether a leg was measured on Linux.
    pub(super) fn has(&self, leg: &Leg) -> bool {
        runs(self.linux, leg).next().is_some()
    }

    /// Returns the comparison of all metrics of a leg.
    pub(super) fn report(&self, leg: &Leg) -> Report {
        let [sim, same, linux] = self.samples(leg);
        agree::report_of(&leg.name, [&sim, &same, &linux])
    }

    /// Returns whether the backends agree about the outage of a leg.
    fn agrees(&self, leg: &Leg) -> bool {
        let [sim, same, linux] = self.samples(leg);
        agree::about(OUTAGE.name, [&sim, &same, &linux]) == Agreement::Agrees
    }

    fn samples(&self, leg: &Leg) -> [Sample; 3] {
        [self.sim, self.same, self.linux].map(|results| sample(results, leg))
    }

    /// Compares the orders that the two backends find for two legs.
    pub(super) fn claim(&self, a: &Leg, b: &Leg) -> Claim {
        let orders = [self.sim, self.linux].map(|results| order_of(results, a, b));
        let Some(told) = orders.into_iter().flatten().next() else { return Claim::NotToldApart };
        if !(self.agrees(a) && self.agrees(b)) {
            return Claim::NotClaimed;
        }
        // A backend that does not distinguish the legs with confidence still has an order of the legs. Both backends
        // must have the same order.
        let all_same = [self.sim, self.linux].map(|results| paired(results, a, b) == Some(told));
        if all_same == [true, true] { Claim::Same(told) } else { Claim::Other }
    }
}

/// The order of two legs by outage on both backends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Claim {
    /// Neither backend has an order of the legs ([`order_of`]).
    NotToldApart,
    /// The legs have an order on at least one backend, but the backends do not agree about the outages of both legs.
    NotClaimed,
    /// Both backends have this order of the legs, at least one of them with confidence.
    Same(Ordering),
    /// The backends have different orders of the legs.
    Other,
}

/// Returns the runs of a leg as a sample.
fn sample(results: &Results, leg: &Leg) -> Sample {
    let rows: Vec<_> = results.rows(|point| point.scenario == leg.name).collect();
    let mut sample = Sample::new(rows.len() as u64);
    for (point, measured) in rows {
        let first = |(metric, values): (&&str, &Vec<f64>)| Some(((*metric).to_owned(), *values.first()?));
        let doubts = match &measured.validity {
            Validity::Valid => Vec::new(),
            Validity::Invalid(why) | Validity::Untrusted(why) => why.clone(),
        };
        let values = measured.samples.iter().filter_map(first).collect();
        sample.add(number(point), Run { values, doubts });
    }
    sample
}

/// Returns the result of `agree` for every leg of the requested protocols, or `None` if only one backend was measured.
pub(super) fn json(comparison: &Comparison) -> Option<Value> {
    let both = Both::of(comparison)?;
    let wanted = comparison.course.legs.iter().filter(|leg| comparison.wanted.contains(&leg.contender));
    let reports: Vec<Report> = wanted.filter(|leg| both.has(leg)).map(|leg| both.report(leg)).collect();
    Some(agree::json(&reports))
}
