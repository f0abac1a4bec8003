//! A rate limit for answers: at least one second passes between two answers to the same peer or request.

use std::collections::BTreeMap;
use wire::{Duration, Instant};

/// The maximum number of remembered peers or requests. If 1024 were answered within the last second, no other peer or
/// request is answered.
const CAPACITY: usize = 1024;
const PAUSE: Duration = Duration::from_secs(1);

/// The times of the last answers, by a key that identifies the peer or the request. Old entries are removed when there
/// is no room.
#[derive(Debug)]
pub(crate) struct Limiter<K>(BTreeMap<K, Instant>);

impl<K> Default for Limiter<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord> Limiter<K> {
    /// Returns whether `who` may be answered now. If so, records the answer.
    pub(crate) fn may(&mut self, now: Instant, who: K) -> bool {
        let recent = |at: Instant| now < at + PAUSE;
        if self.0.get(&who).is_some_and(|at| recent(*at)) {
            return false;
        }
        if self.0.len() >= CAPACITY {
            self.0.retain(|_, at| recent(*at));
        }
        let room = self.0.len() < CAPACITY || self.0.contains_key(&who);
        if room {
            self.0.insert(who, now);
        }
        room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_a_second_each_and_no_more_than_fit() {
        let mut limiter = Limiter::default();
        assert!(limiter.may(Instant::ZERO, 0));
        assert!(!limiter.may(Instant::from_millis(999), 0));
        assert!(limiter.may(Instant::from_millis(1000), 0));
        for who in 1..CAPACITY {
            assert!(limiter.may(Instant::from_millis(1500), who));
        }
        assert!(!limiter.may(Instant::from_millis(1500), CAPACITY));
        assert!(limiter.may(Instant::from_millis(2000), CAPACITY), "the first is a second old");
    }
}
