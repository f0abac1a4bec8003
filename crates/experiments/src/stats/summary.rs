//! The summary of one sample: its median, its spread, and the confidence interval of the median.

use serde::Serialize;

/// The summary of a sample: median with interval, percentiles and mean, in the unit of the values.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Summary {
    /// The number of values.
    pub n: usize,
    /// The middle value of the sorted values, or the mean of the two middle values.
    pub median: f64,
    /// The 95 % confidence interval of the median, from order statistics; `None` for fewer than six values.
    pub interval: Option<Interval>,
    /// The 5th percentile: the smallest value with at least 5 % of all values at or below it.
    pub p5: f64,
    /// The 95th percentile: the smallest value with at least 95 % of all values at or below it.
    pub p95: f64,
    /// The mean of the values; infinite if any value is infinite.
    pub mean: f64,
}

/// A confidence interval, or the range of a sample.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Interval {
    /// The lower end of the interval, in the unit of the values.
    pub lo: f64,
    /// The upper end of the interval, in the unit of the values.
    pub hi: f64,
    /// Whether the interval is the whole range, from the smallest to the largest value. With six to eight values, no
    /// narrower interval of order statistics has a confidence of 95 %.
    pub is_range: bool,
}

impl Summary {
    /// Summarizes these values, or returns `None` if there are none. Infinite values are larger than all others.
    ///
    /// The interval is that of the sign test: each value is below the median with probability 1/2, so the number of
    /// values below the median is binomial for any continuous distribution. The percentiles are values of the sample
    /// (nearest rank).
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let n = sorted.len();
        let at = |index: usize| sorted.get(index).copied();
        let interval = left_out(n)
            .and_then(|rank| Some(Interval { lo: at(rank)?, hi: at(n - 1 - rank)?, is_range: rank == 0 }));
        Some(Self {
            n,
            median: middle(&sorted)?,
            interval,
            p5: nearest_rank(&sorted, 5)?,
            p95: nearest_rank(&sorted, 95)?,
            mean: mean(&sorted)?,
        })
    }

    /// Returns the median, followed by its interval: `3.5 (1.0..9.0)`. The interval is left out if there is none, or if
    /// both limits are the same text. An interval that is the whole range is marked: `3.5 (range 1.0..9.0)`.
    pub fn text(&self, digits: usize) -> String {
        let median = number(self.median, digits);
        match self.interval_text(digits) {
            Some(interval) => format!("{median} ({interval})"),
            None => median,
        }
    }

    /// Returns the interval as text. `None` if there is no interval, or if its ends are the same text.
    pub fn interval_text(&self, digits: usize) -> Option<String> {
        let interval = self.interval?;
        let [lo, hi] = [interval.lo, interval.hi].map(|value| number(value, digits));
        let word = if interval.is_range { "range " } else { "" };
        (lo != hi).then(|| format!("{word}{lo}..{hi}"))
    }
}

/// Returns a value as text with `digits` decimals, or without decimals from 100 on. An infinite value is `never`.
pub(crate) fn number(value: f64, digits: usize) -> String {
    match value {
        value if value.is_infinite() => "never".to_owned(),
        value if value.abs() >= 100.0 => format!("{value:.0}"),
        value => format!("{value:.digits$}"),
    }
}

/// Returns the mean, or `None` if there are no values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Returns the middle value, or the mean of the two middle values. Returns `None` if there are no values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    middle(&sorted)
}

/// Returns the index of the value that is nearest to the median, the first one of several. `None` if there are no values.
pub fn nearest_to_median(values: &[f64]) -> Option<usize> {
    let middle = median(values)?;
    let off = |(_, value): &(usize, &f64)| (**value - middle).abs();
    values.iter().enumerate().min_by(|one, other| off(one).total_cmp(&off(other))).map(|(index, _)| index)
}

/// Returns the median of sorted values.
pub(super) fn middle(sorted: &[f64]) -> Option<f64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = *sorted.get((sorted.len() - 1) / 2)?;
    // The middle of two equal values is this value, also if both are infinite.
    Some(if lower.total_cmp(&upper).is_eq() { lower } else { f64::midpoint(lower, upper) })
}

/// Returns the smallest of the sorted values with at least `percent` of all values at or below it.
fn nearest_rank(sorted: &[f64], percent: usize) -> Option<f64> {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}

/// Returns how many values may be left out at each end, so that the rest is a 95 % confidence interval of the median.
/// `None` if there are too few values.
fn left_out(n: usize) -> Option<usize> {
    // The binomial distribution is computed with logarithms, because 0.5^n is zero as an f64 for n above 1074.
    let half = n as f64 * 0.5f64.ln();
    let (mut choose, mut below, mut rank) = (0.0f64, 0.0f64, None);
    for left_out in 0..n / 2 {
        below += (choose + half).exp();
        if below > 0.025 {
            break;
        }
        rank = Some(left_out);
        choose += ((n - left_out) as f64 / (left_out + 1) as f64).ln();
    }
    rank
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_leaves_out_what_the_sign_test_allows() {
        // Tables of the sign test at 5 %, two-sided: with n values the interval begins at the (r + 1)th smallest.
        let known = [
            (0, None),
            (5, None),
            (6, Some(0)),
            (8, Some(0)),
            (9, Some(1)),
            (10, Some(1)),
            (12, Some(2)),
            (20, Some(5)),
            (40, Some(13)),
            (50, Some(17)),
            (100, Some(39)),
        ];
        for (n, rank) in known {
            assert_eq!(left_out(n), rank, "{n}");
        }
        // The normal approximation: n/2 - 1.96 sqrt(n)/2.
        let rank = left_out(100_000).unwrap();
        assert!(rank.abs_diff(50_000 - 310) <= 2, "{rank}");
    }

    #[test]
    fn a_sample_has_its_median_interval_percentiles_and_mean() {
        let values: Vec<f64> = (1..=20).rev().map(f64::from).collect();
        let summary = Summary::of(&values).unwrap();
        let interval = Some(Interval { lo: 6.0, hi: 15.0, is_range: false });
        let expected = Summary { n: 20, median: 10.5, interval, p5: 1.0, p95: 19.0, mean: 10.5 };
        assert_eq!(summary, expected);
        let forty: Vec<f64> = (1..=40).map(f64::from).collect();
        let forty = Summary::of(&forty).unwrap();
        assert_eq!((forty.p5, forty.p95), (2.0, 38.0));
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(
            Summary::of(&[7.0]).map(|one| (one.median, one.interval, one.p5, one.p95)),
            Some((7.0, None, 7.0, 7.0))
        );
    }

    #[test]
    fn values_without_end_are_the_largest() {
        let never = Summary::of(&[f64::INFINITY; 6]).unwrap();
        assert!(never.median.is_infinite() && never.mean.is_infinite());
        let half = Summary::of(&[1.0, f64::INFINITY]).unwrap();
        assert!(half.median.is_infinite(), "half-way to an outage without end has no end");
        let mut some = vec![1.0; 19];
        some.push(f64::INFINITY);
        let some = Summary::of(&some).unwrap();
        assert_eq!((some.median, some.p95), (1.0, 1.0));
        assert!(some.mean.is_infinite());
    }

    #[test]
    fn an_interval_that_is_only_the_range_says_so() {
        let text = |values: &[f64]| Summary::of(values).unwrap().text(1);
        assert_eq!(text(&[1.0, 2.0, 3.0, 4.0, 5.0, 200.4]), "3.5 (range 1.0..200)");
        let nine: Vec<f64> = (1..=9).map(f64::from).collect();
        assert_eq!(text(&nine), "5.0 (2.0..8.0)");
        assert_eq!(text(&[1.0, 2.0]), "1.5");
        assert_eq!([text(&[2.0; 6]), text(&[f64::INFINITY; 3])], ["2.0", "never"]);
    }

    #[test]
    fn the_middle_is_no_outlier() {
        assert_eq!(median(&[9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[9.0, 1.0, 2.0, 4.0]), Some(3.0));
        assert_eq!((median(&[]), mean(&[])), (None, None));
    }
}
