//! Random numbers. A pure crate has no other source of randomness than an [`Rng`] that it is given.

use crate::{Duration, nanos_of};

/// A random number generator that is forked by name, so that a new role does not change the numbers of other roles.
///
/// The algorithm is `SplitMix64` (Steele, Lea, Flood 2014). Its state has only eight bytes, because each of a million
/// idle hosts has one. Do not use it for secrets.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rng(u64);

impl Rng {
    /// Returns a generator with this seed, for example the root of all generators of a run.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a generator for `name`. Two equal generators return equal results for the same name.
    #[must_use]
    pub fn fork(&self, name: &str) -> Self {
        let mut child = Self(self.0 ^ 0x5bd1_e995_7b93_1c4d);
        for byte in name.bytes() {
            child.0 = mix(child.0 ^ u64::from(byte));
        }
        child
    }

    /// Returns the next 64 random bits.
    pub const fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Returns a random time that is at least zero and less than `span`. Returns zero if `span` is zero.
    pub fn below(&mut self, span: Duration) -> Duration {
        Duration::from_nanos(self.draw() % nanos_of(span).max(1))
    }
}

const fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first outputs for the seed 1234567 are those of the published generator.
    #[test]
    fn the_published_sequence() {
        let mut rng = Rng::new(1_234_567);
        assert_eq!([rng.draw(), rng.draw()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }

    #[test]
    fn a_random_time_is_less_than_its_span() {
        let mut rng = Rng::new(1);
        let spans = [Duration::ZERO, Duration::from_nanos(1)];
        assert_eq!(spans.map(|span| rng.below(span)), [Duration::ZERO; 2]);
        let times = [(); 100].map(|()| rng.below(Duration::from_nanos(4)));
        assert!((0..4).all(|nanos| times.contains(&Duration::from_nanos(nanos))), "{times:?}");
        assert!(times.iter().all(|time| *time < Duration::from_nanos(4)), "{times:?}");
    }

    #[test]
    fn forks_are_apart_and_repeatable() {
        let root = Rng::new(7);
        assert_eq!(root.fork("mobile").draw(), root.fork("mobile").draw());
        assert_ne!(root.fork("mobile").draw(), root.fork("mobile2").draw());
    }
}
