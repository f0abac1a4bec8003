//! Counts by key within one second, in bounded room.

use std::collections::BTreeMap;
use wire::Instant;

/// Keys that are counted in one second. Others are not limited: a flood of new keys must not limit those that behave.
const KEYS: usize = 1024;

/// How often each key was met in this second.
#[derive(Debug)]
pub(crate) struct PerSecond<K> {
    second: u64,
    counts: BTreeMap<K, u16>,
}

impl<K> Default for PerSecond<K> {
    fn default() -> Self {
        Self { second: 0, counts: BTreeMap::new() }
    }
}

impl<K: Ord> PerSecond<K> {
    pub(crate) fn count(&self, now: Instant, key: &K) -> u16 {
        let current = self.second == second(now);
        self.counts.get(key).filter(|_| current).copied().unwrap_or_default()
    }

    /// Counts one more of this key; returns whether it is counted.
    pub(crate) fn add(&mut self, now: Instant, key: K) -> bool {
        if self.second != second(now) {
            self.second = second(now);
            self.counts.clear();
        }
        if self.counts.len() >= KEYS && !self.counts.contains_key(&key) {
            return false;
        }
        let count = self.counts.entry(key).or_default();
        *count = count.saturating_add(1);
        true
    }

    /// Counts one more of this key, if it is the first in this second.
    pub(crate) fn first(&mut self, now: Instant, key: K) -> bool {
        self.count(now, &key) == 0 && self.add(now, key)
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
            assert!(counts.add(at(1000), key));
        }
        assert!(!counts.add(at(1000), KEYS + 1), "no room");
        assert!(counts.add(at(1000), 1));
        assert_eq!(counts.counts.len(), KEYS);
    }
}
