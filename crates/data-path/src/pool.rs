//! The slots for kept packets that no ring has.

use std::collections::BTreeMap;

/// Free slots as ranges: the first slot of each, and their number. No two ranges touch.
#[derive(Debug, Default)]
pub(crate) struct Pool(BTreeMap<u32, u32>);

impl Pool {
    pub(crate) fn new(slots: u32) -> Self {
        let mut pool = Self::default();
        pool.give_back(0, slots);
        pool
    }

    /// Takes `count` slots in a row. Returns the first one, or `None` if fewer are free in a row.
    pub(crate) fn take(&mut self, count: u32) -> Option<u32> {
        let (first, length) = self.0.iter().find(|(_, length)| **length >= count && count > 0)?;
        let (first, length) = (*first, *length);
        self.0.remove(&first);
        if length > count {
            self.0.insert(first + count, length - count);
        }
        Some(first)
    }

    /// Gives slots back that were taken.
    pub(crate) fn give_back(&mut self, mut first: u32, mut count: u32) {
        if count == 0 {
            return;
        }
        if let Some((before, length)) = self.0.range(..first).next_back().map(|(at, length)| (*at, *length))
            && before + length == first
        {
            self.0.remove(&before);
            (first, count) = (before, length + count);
        }
        if let Some(length) = self.0.remove(&(first + count)) {
            count += length;
        }
        self.0.insert(first, count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_given_once_and_ranges_join_again() {
        let mut pool = Pool::new(10);
        assert_eq!(
            [pool.take(4), pool.take(4), pool.take(4), pool.take(2)],
            [Some(0), Some(4), None, Some(8)]
        );
        assert_eq!((pool.take(1), pool.take(0)), (None, None));
        for (first, count) in [(0, 4), (8, 2), (4, 4)] {
            pool.give_back(first, count);
        }
        assert_eq!(pool.take(10), Some(0));
    }
}
