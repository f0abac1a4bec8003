//! The order of two legs by outage on one backend.

use super::course::Leg;
use super::measure::OUTAGE;
use super::pairs::pair;
use super::runs::values;
use crate::reproduce::Results;
use crate::stats::median;
use std::cmp::Ordering;

/// Two medians have no order if they differ by less than this number of milliseconds.
const NEAR_MS: f64 = 30.0;
/// Two medians have no order if they differ by less than this share of the larger median.
const NEAR_SHARE: f64 = 0.15;

/// Returns the order of two protocols by outage on one backend. `None` if they are not told apart, or if their medians
/// differ by less than [`NEAR_MS`] or [`NEAR_SHARE`].
pub(super) fn order_of(results: &Results, a: &Leg, b: &Leg) -> Option<Ordering> {
    let of = |leg| median(&values(results, leg, OUTAGE.name));
    let medians = (of(a)?, of(b)?);
    pair(results, a, b).order().filter(|_| !near(medians))
}

/// Returns the order by the median difference at the same phase, without regard to its confidence. `None` if the
/// difference is zero.
pub(super) fn paired(results: &Results, a: &Leg, b: &Leg) -> Option<Ordering> {
    let difference = pair(results, a, b).difference?.median;
    Some(difference.total_cmp(&0.0)).filter(|_| difference != 0.0)
}

fn near((a, b): (f64, f64)) -> bool {
    if a.is_infinite() && b.is_infinite() {
        return true;
    }
    let apart = (a - b).abs();
    apart < NEAR_MS || apart < NEAR_SHARE * a.max(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_near_has_no_order() {
        for (pair, is) in [
            ((100.0, 129.0), true),
            ((100.0, 131.0), false),
            ((1000.0, 1150.0), true),
            ((1000.0, 1200.0), false),
            ((f64::INFINITY, 1000.0), false),
            ((f64::INFINITY, f64::INFINITY), true),
        ] {
            assert_eq!(near(pair), is, "{pair:?}");
            assert_eq!(near((pair.1, pair.0)), is, "{pair:?}");
        }
    }
}
