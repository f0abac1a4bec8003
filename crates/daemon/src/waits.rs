//! Histograms of waiting times: how long frames waited for a process, and how late a thread woke.

use serde::{Deserialize, Serialize};
use wire::Duration;

/// A summary of waiting times. Without waiting times, all values are zero.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ages {
    /// Number of waiting times.
    pub count: u64,
    /// The median, in microseconds; at most 1/16 above the true value.
    pub median_us: f64,
    /// The 99th percentile, in microseconds; at most 1/16 above the true value.
    pub p99_us: f64,
    /// The longest waiting time, in microseconds.
    pub worst_us: f64,
}

/// A histogram of waiting times, with classes whose width is at most 1/16 of their value. Its memory does not grow with
/// the number of waiting times.
#[derive(Clone, Debug)]
pub struct Waits {
    classes: Vec<u64>,
    count: u64,
    worst: u64,
}

/// Number of classes in each octave, from a value to twice this value.
const PER_OCTAVE: u64 = 16;

impl Default for Waits {
    fn default() -> Self {
        Self { classes: vec![0; 64 * PER_OCTAVE as usize], count: 0, worst: 0 }
    }
}

impl Waits {
    /// Adds a waiting time to the histogram.
    pub fn add(&mut self, wait: Duration) {
        let nanos = wire::nanos_of(wait);
        if let Some(class) = self.classes.get_mut(class_of(nanos)) {
            *class += 1;
        }
        self.count += 1;
        self.worst = self.worst.max(nanos);
    }

    /// Returns the number, the median, the 99th percentile and the longest of the waiting times.
    pub fn summary(&self) -> Ages {
        let micros = |nanos: u64| nanos as f64 / 1e3;
        Ages {
            count: self.count,
            median_us: micros(self.at_rank(self.count.div_ceil(2))),
            p99_us: micros(self.at_rank(self.count - self.count / 100)),
            worst_us: micros(self.worst),
        }
    }

    /// Returns the upper bound of the class that contains the value of this rank, from 1.
    fn at_rank(&self, rank: u64) -> u64 {
        let mut below = 0;
        let class = self.classes.iter().position(|count| {
            below += count;
            below >= rank
        });
        class.map_or(0, upper_of).min(self.worst)
    }
}

/// Returns the class of a value. Each value below 16 is a class. From 16 on, the four bits after the leading one select
/// the class in its octave.
fn class_of(nanos: u64) -> usize {
    if nanos < PER_OCTAVE {
        return nanos as usize;
    }
    let shift = u64::from(nanos.ilog2()) - 4;
    (shift * PER_OCTAVE + (nanos >> shift)) as usize
}

/// Returns the largest value of a class.
const fn upper_of(class: usize) -> u64 {
    let class = class as u64;
    if class < 2 * PER_OCTAVE {
        return class;
    }
    let shift = class / PER_OCTAVE - 1;
    let low = (class % PER_OCTAVE + PER_OCTAVE) << shift;
    low + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_in_a_class_that_is_at_most_a_sixteenth_wide() {
        let mut last = 0;
        for nanos in (0..5000).chain((12..63).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 7])) {
            let class = class_of(nanos);
            assert!(class >= last || nanos < 5000, "{nanos}");
            last = class;
            let upper = upper_of(class);
            assert!(upper >= nanos && upper - nanos <= nanos / 16, "{nanos}: {upper}");
        }
    }

    #[test]
    fn the_99th_percentile_is_that_of_99_in_100() {
        let mut waits = Waits::default();
        for _ in 0..990 {
            waits.add(Duration::from_micros(50));
        }
        for _ in 0..10 {
            waits.add(Duration::from_millis(300));
        }
        let ages = waits.summary();
        assert!((50.0..54.0).contains(&ages.p99_us), "{ages:?}");
        assert_eq!((ages.count, ages.worst_us), (1000, 300_000.0));
        assert!((50.0..54.0).contains(&ages.median_us), "{ages:?}");
        waits.add(Duration::from_millis(3));
        let ages = waits.summary();
        assert!((3000.0..3200.0).contains(&ages.p99_us), "{ages:?}");
        assert_eq!(Waits::default().summary(), Ages::default());
    }
}
