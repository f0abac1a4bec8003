//! One of several runs of a scenario.

use wire::Rng;

/// The number of a run among several runs of a scenario, which are shifted against each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Repetition {
    /// The number of the run, from 0.
    pub number: u64,
    /// The number of runs. A single run is not shifted.
    pub of: u64,
    /// The seed of the shifts. All runs must have the same seed.
    pub seed: u64,
}

impl Repetition {
    /// Returns the repetition of a single run.
    pub const fn only(seed: u64) -> Self {
        Self { number: 0, of: 1, seed }
    }

    /// Returns the shift of the instant `name`, as a fraction of the instant's range: from 0 to below 1.
    pub(super) fn fraction(self, name: &str) -> f64 {
        let mut rng = Rng::new(self.seed).fork("phase").fork(name);
        let u = (rng.draw() >> 11) as f64 / (1u64 << 53) as f64;
        (permuted(self.number, self.of, &rng) as f64 + u) / self.of as f64
    }
}

/// Returns the image of `number` under a random permutation of `0..of`. The permutation is a Feistel network of four
/// rounds with cycle walking (Black and Rogaway 2002), so it is not stored as a list.
fn permuted(number: u64, of: u64, rng: &Rng) -> u64 {
    let half = (64 - of.saturating_sub(1).leading_zeros()).div_ceil(2).max(1);
    let mask = (1u64 << half) - 1;
    let mut rng = rng.clone();
    let keys: [u64; 4] = std::array::from_fn(|_| rng.draw());
    let mut at = number;
    loop {
        let (mut left, mut right) = (at >> half, at & mask);
        for key in keys {
            (left, right) = (right, (left ^ Rng::new(right ^ key).draw()) & mask);
        }
        at = (left << half) | right;
        if at < of {
            return at;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_permutation_meets_each_place_once() {
        for of in [1, 2, 3, 7, 40, 64, 1000] {
            let all: BTreeSet<u64> = (0..of).map(|i| permuted(i, of, &Rng::new(3))).collect();
            assert_eq!((all.len() as u64, all.last().copied()), (of, Some(of - 1)), "{of}");
        }
        assert!((0..40).any(|i| permuted(i, 40, &Rng::new(3)) != permuted(i, 40, &Rng::new(4))));
        assert!(permuted(99_999_999, 100_000_000, &Rng::new(3)) < 100_000_000);
    }
}
