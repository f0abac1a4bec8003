//! The random numbers of a draw.

use wire::Rng;

/// The random numbers of one draw, or of one part of it.
pub(crate) struct Dice(pub(crate) Rng);

impl Dice {
    /// Returns a number from `least` to `most`, both included.
    pub(crate) fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.0.draw() % (most - least + 1)
    }

    /// Returns true with this probability, in percent.
    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.between(1, 100) <= percent
    }

    /// Returns a number from `least` to `most`. Each range from a number to twice this number has about the same
    /// probability.
    pub(crate) fn octaves(&mut self, least: u64, most: u64) -> u64 {
        let mut top = least;
        let octaves = (most / least.max(1)).max(1).ilog2() + 1;
        for _ in 0..self.between(0, u64::from(octaves)) {
            top = (top * 2).min(most);
        }
        self.between((top / 2).max(least), top.max(least))
    }

    pub(crate) fn pick<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        let index = self.between(0, (all.len() as u64).saturating_sub(1));
        all.get(index as usize).copied()
    }
}
