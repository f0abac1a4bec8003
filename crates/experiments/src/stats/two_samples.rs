//! Two samples: the distance between their distributions, and the differences of their medians and means.

use super::summary::{Interval, mean, middle};
use serde::Serialize;
use wire::Rng;

/// The number of resamples for a bootstrap interval.
const RESAMPLES: usize = 2000;

/// Returns the Kolmogorov-Smirnov distance: the largest vertical distance between the two empirical distribution
/// functions, from 0 to 1. `None` if either sample is empty.
pub fn ks_distance(a: &[f64], b: &[f64]) -> Option<f64> {
    ks_distance_within(a, b, 0.0)
}

/// Returns the distance of values with a limited `resolution`, or `None` if either sample is empty. For each value of
/// one sample, the share of this sample at or below the value is compared with the share of the other sample at or
/// below the value plus one resolution. The largest excess is the distance (Lévy distance with a fixed width).
pub fn ks_distance_within(a: &[f64], b: &[f64], resolution: f64) -> Option<f64> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let sorted = |values: &[f64]| {
        let mut values = values.to_vec();
        values.sort_unstable_by(f64::total_cmp);
        values
    };
    let (a, b) = (sorted(a), sorted(b));
    let share = |values: &[f64], x: f64| {
        values.partition_point(|value| value.total_cmp(&x).is_le()) as f64 / values.len() as f64
    };
    let ahead = |of: &[f64], other: &[f64]| {
        of.iter().map(|x| share(of, *x) - share(other, *x + resolution)).fold(0.0, f64::max)
    };
    Some(ahead(&a, &b).max(ahead(&b, &a)))
}

/// Returns the probability of a distance of at least `distance`, if both samples of `n` and `m` values are from one
/// continuous distribution. It is exact: the share of the lattice paths from (0, 0) to (n, m) with a point (i, j) at
/// which |i/n - j/m| is at least `distance` (Hodges 1957). If the samples have equal values, the true probability is
/// smaller.
pub fn ks_p_value(distance: f64, n: usize, m: usize) -> f64 {
    // Row by row, inside[j] is the probability that |i/n - j/m| stays below `distance` on a path to (i, j).
    let apart = |i: usize, j: usize| (i as f64 / n as f64 - j as f64 / m as f64).abs();
    let is_inside = |i, j| apart(i, j) < distance - 1e-9;
    let mut inside = vec![0.0f64; m + 1];
    for i in 0..=n {
        for j in 0..=m {
            let from_left = if j == 0 { 0.0 } else { inside.get(j - 1).copied().unwrap_or(0.0) };
            let from_below = inside.get(j).copied().unwrap_or(0.0);
            // Of all paths to (i, j), i/(i+j) come from below and j/(i+j) from the left.
            let here = match i + j {
                0 => 1.0,
                _ if !is_inside(i, j) => 0.0,
                all => (from_below * i as f64 + from_left * j as f64) / all as f64,
            };
            if let Some(place) = inside.get_mut(j) {
                *place = here;
            }
        }
    }
    1.0 - inside.last().copied().unwrap_or(0.0)
}

/// Returns the smallest distance at which samples of `n` and `m` values differ significantly at 5 %. A smaller
/// distance may be random. `None` if no distance is significant.
pub fn ks_critical(n: usize, m: usize) -> Option<f64> {
    let mut distances: Vec<f64> = (0..=n)
        .flat_map(|i| (0..=m).map(move |j| (i as f64 / n as f64 - j as f64 / m as f64).abs()))
        .collect();
    distances.sort_unstable_by(f64::total_cmp);
    distances.dedup_by(|a, b| (*a - *b).abs() < 1e-9);
    let first = distances.partition_point(|distance| ks_p_value(*distance, n, m) > 0.05);
    distances.get(first).copied()
}

/// The difference of the medians or means of two samples: the first minus the second.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Difference {
    /// The difference, in the unit of the samples.
    pub value: f64,
    /// The lower end of the 95 % confidence interval of the difference.
    pub lo: f64,
    /// The upper end of the 95 % confidence interval of the difference.
    pub hi: f64,
}

impl Difference {
    /// Returns whether the interval excludes zero.
    pub fn is_significant(&self) -> bool {
        self.lo > 0.0 || self.hi < 0.0
    }
}

/// Returns the difference of the medians with its 95 % percentile bootstrap interval: 2000 resamples of both samples,
/// with a fixed seed. `None` if either sample has fewer than six values.
pub fn median_difference(a: &[f64], b: &[f64]) -> Option<Difference> {
    difference(a, b, middle)
}

/// Returns the difference of the means with its 95 % percentile bootstrap interval: 2000 resamples of both samples,
/// with a fixed seed. `None` if either sample has fewer than six values.
pub fn mean_difference(a: &[f64], b: &[f64]) -> Option<Difference> {
    difference(a, b, mean)
}

fn difference(a: &[f64], b: &[f64], of: fn(&[f64]) -> Option<f64>) -> Option<Difference> {
    if a.len().min(b.len()) < 6 {
        return None;
    }
    let sorted = |values: &[f64]| {
        let mut values = values.to_vec();
        values.sort_unstable_by(f64::total_cmp);
        of(&values)
    };
    let value = less(sorted(a)?, sorted(b)?);
    let mut rng = Rng::new(1).fork("bootstrap");
    let mut all = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        all.push(less(sorted(&resample(a, &mut rng))?, sorted(&resample(b, &mut rng))?));
    }
    all.sort_unstable_by(f64::total_cmp);
    let at = |index: usize| all.get(index).copied();
    Some(Difference { value, lo: at(RESAMPLES / 40 - 1)?, hi: at(RESAMPLES - RESAMPLES / 40)? })
}

/// Returns the 95 % percentile bootstrap interval of the mean: 2000 resamples with a fixed seed. `None` for fewer
/// than six values, or if a value is infinite.
pub fn mean_interval(values: &[f64]) -> Option<Interval> {
    if values.len() < 6 || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mut rng = Rng::new(1).fork("bootstrap");
    let means = (0..RESAMPLES).filter_map(|_| mean(&resample(values, &mut rng)));
    let mut means: Vec<f64> = means.collect();
    means.sort_unstable_by(f64::total_cmp);
    let at = |index: usize| means.get(index).copied();
    Some(Interval { lo: at(RESAMPLES / 40 - 1)?, hi: at(RESAMPLES - RESAMPLES / 40)?, is_range: false })
}

/// Returns `a - b`. The difference of two infinite values is zero.
fn less(a: f64, b: f64) -> f64 {
    if a.total_cmp(&b).is_eq() { 0.0 } else { a - b }
}

/// Returns a resample: as many values as the sample has, each drawn at random from all of them.
fn resample(values: &[f64], rng: &mut Rng) -> Vec<f64> {
    let draw = |rng: &mut Rng| (((rng.draw() >> 32) * values.len() as u64) >> 32) as usize;
    (0..values.len()).filter_map(|_| values.get(draw(rng)).copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_is_the_largest_gap_of_the_two_steps() {
        assert_eq!(ks_distance(&[1.0, 2.0, 3.0], &[4.0, 5.0]), Some(1.0));
        assert_eq!(ks_distance(&[1.0, 2.0], &[1.0, 2.0]), Some(0.0));
        assert_eq!(ks_distance(&[0.0; 5], &[0.0; 9]), Some(0.0), "equal values are no distance");
        // Computed by hand: at 2, the shares are 2/4 and 0/2; at 3, they are 3/4 and 1/2.
        assert_eq!(ks_distance(&[1.0, 2.0, 3.0, 4.0], &[3.0, 5.0]), Some(0.5));
        let never = f64::INFINITY;
        assert_eq!(ks_distance(&[1.0, never], &[1.0, 1.0]), Some(0.5), "never is a value");
        assert_eq!(ks_distance(&[never; 3], &[never; 4]), Some(0.0));
        assert_eq!(ks_distance(&[], &[1.0]), None);
    }

    #[test]
    fn p_values_are_exact() {
        // For n = m, the closed form of Gnedenko and Koroljuk: P(D >= k/n) = 2 (C(2n, n-k) - C(2n, n-2k) + ...) / C(2n,
        // n).
        let known = [
            (0.6, 10, 10, 2.0 * 4845.0 / 184_756.0),
            (0.7, 10, 10, 2.0 * 1140.0 / 184_756.0),
            (1.0, 3, 3, 2.0 / 20.0),
            (1.0, 2, 4, 2.0 / 15.0),
        ];
        for (distance, n, m, expected) in known {
            let p = ks_p_value(distance, n, m);
            assert!((p - expected).abs() < 1e-9, "{distance} {n} {m}: {p}");
        }
        assert!((ks_p_value(0.0, 7, 9) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn critical_distances_are_those_of_tables() {
        // Tables of the two-sample test at 5 %, two-sided, for equal sizes, in n-ths.
        let in_nths = |n| (ks_critical(n, n).unwrap() * n as f64).round() as u32;
        assert_eq!([4, 5, 8, 10, 12, 20].map(in_nths), [4, 5, 6, 7, 7, 9]);
        let unequal = ks_critical(40, 12).unwrap();
        assert!(ks_p_value(unequal, 40, 12) <= 0.05 && (0.40..0.46).contains(&unequal), "{unequal}");
        assert_eq!(ks_critical(3, 3), None);
    }

    #[test]
    fn a_difference_is_found_and_equal_samples_have_none() {
        let low: Vec<f64> = (0..20).map(f64::from).collect();
        let high: Vec<f64> = (0..20).map(|i| f64::from(i) + 30.0).collect();
        let apart = median_difference(&high, &low).unwrap();
        assert!((apart.value - 30.0).abs() < 1e-9 && apart.is_significant() && apart.lo > 15.0, "{apart:?}");
        let same = median_difference(&low, &low).unwrap();
        assert!(same.value == 0.0 && !same.is_significant(), "{same:?}");
        let never = median_difference(&[f64::INFINITY; 8], &[f64::INFINITY; 6]).unwrap();
        assert_eq!((never.value, never.lo, never.hi), (0.0, 0.0, 0.0));
        let one = median_difference(&[f64::INFINITY; 8], &low).unwrap();
        assert!(one.lo.is_infinite() && one.is_significant());
        assert_eq!(median_difference(&[1.0; 5], &[1.0; 9]), None);
    }

    /// Returns a uniform random number from 0 to below 1.
    fn uniform(rng: &mut Rng) -> f64 {
        (rng.draw() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn exponential(rng: &mut Rng) -> f64 {
        -(1.0 - uniform(rng)).ln()
    }

    /// Returns a value like the outages of a download: 40 % are short, 60 % are long.
    fn two_modes(rng: &mut Rng) -> f64 {
        if uniform(rng) < 0.4 { 50.0 + 40.0 * uniform(rng) } else { 400.0 + 900.0 * uniform(rng) }
    }

    #[test]
    fn intervals_contain_the_true_difference_about_as_often_as_they_say() {
        const TRIALS: usize = 150;
        for (name, draw) in [
            ("uniform", uniform as fn(&mut Rng) -> f64),
            ("exponential", exponential),
            ("two modes", two_modes),
        ] {
            let mut rng = Rng::new(7).fork(name);
            let (mut medians, mut means) = (0, 0);
            for _ in 0..TRIALS {
                let a: Vec<f64> = (0..40).map(|_| draw(&mut rng)).collect();
                let b: Vec<f64> = (0..12).map(|_| draw(&mut rng)).collect();
                let holds_zero = |difference: Difference| usize::from(!difference.is_significant());
                medians += holds_zero(median_difference(&a, &b).unwrap());
                means += holds_zero(mean_difference(&a, &b).unwrap());
            }
            // 95 % less three standard deviations of 150 trials is 90 %; with 12 values the percentile bootstrap of a
            // mean has a little less than 95 %.
            assert!(medians * 100 >= 90 * TRIALS, "{name}: medians {medians} of {TRIALS}");
            assert!(means * 100 >= 87 * TRIALS, "{name}: means {means} of {TRIALS}");
        }
    }
}
