//! The number of occurrences of each key in the current second, in bounded memory.

use std::collections::{BTreeMap, VecDeque};
use wire::Instant;

/// The maximum number of keys in one second. If there are more, a new key replaces the oldest. A replaced key starts at
/// 0 when it occurs again, so its count is too low. But each new key is counted.
const KEYS: usize = 1024;

#[derive(Debug)]
pub(crate) struct PerSecond<K> {
    second: u64,
    counts: BTreeMap<K, u16>,
    /// The keys of `counts`, the oldest first.
    order: VecDeque<K>,
}

impl<K> Default for PerSecond<K> {
    fn default() -> Self {
        Self { second: 0, counts: BTreeMap::new(), order: VecDeque::new() }
    }
}

impl<K: Ord + Copy> PerSecond<K> {
    pub(crate) fn count(&self, now: Instant, key: &K) -> u16 {
        let current = self.second == second(now);
        self.counts.get(key).filter(|_| current).copied().unwrap_or_default()
    }

    pub(crate) fn add(&mut self, now: Instant, key: K) {
        if self.second != second(now) {
            self.second = second(now);
            self.counts.clear();
            self.order.clear();
        }
        if let Some(count) = self.counts.get_mut(&key) {
            *count = count.saturating_add(1);
            return;
        }
        if self.order.len() >= KEYS
            && let Some(oldest) = self.order.pop_front()
        {
            self.counts.remove(&oldest);
        }
        self.order.push_back(key);
        self.counts.insert(key, 1);
    }

    /// Adds an occurrence of `key` if it is the first in this second. Returns whether it was the first.
    pub(crate) fn first(&mut self, now: Instant, key: K) -> bool {
        let is_first = self.count(now, &key) == 0;
        if is_first {
            self.add(now, key);
        }
        is_first
    }
}

const fn second(now: Instant) -> u64 {
    now.0 / 1_000_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_begin_anew_with_each_second_and_room_is_bounded() {
        let at = Instant::from_millis;
        let mut counts = PerSecond::default();
        assert!(counts.first(at(900), 1));
        assert!(!counts.first(at(999), 1));
        assert_eq!((counts.count(at(999), &1), counts.count(at(1000), &1)), (1, 0));
        assert!(counts.first(at(1000), 1));
        for key in 2..=KEYS {
            assert!(counts.first(at(1000), key));
        }
        assert!(!counts.first(at(1000), 1), "all are counted");
        assert_eq!(counts.counts.len(), KEYS);
    }

    #[test]
    fn the_key_that_was_met_first_makes_room_for_one_more() {
        let now = Instant::from_millis(1000);
        let mut counts = PerSecond::default();
        for key in 0..KEYS {
            counts.add(now, key);
        }
        counts.add(now, 0); // a repetition does not make it newer
        assert!(counts.first(now, KEYS) && !counts.first(now, KEYS));
        assert_eq!([0, 1, KEYS].map(|key| counts.count(now, &key)), [0, 1, 1]);
        assert_eq!((counts.counts.len(), counts.order.len()), (KEYS, KEYS));
    }
}
