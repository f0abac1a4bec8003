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

/// A limit for messages to, or because of, each peer: at most a number of them in each second. If [`CAPACITY`] peers had
/// one in the present second, there is none for another peer.
#[derive(Debug)]
pub(crate) struct PerSecond<K> {
    most: u32,
    second: u64,
    counts: BTreeMap<K, u32>,
}

impl<K: Ord> PerSecond<K> {
    /// Returns a limit of `most` messages per second and peer.
    pub(crate) const fn new(most: u32) -> Self {
        Self { most, second: 0, counts: BTreeMap::new() }
    }

    /// Returns whether there may be a message now. If so, counts it.
    pub(crate) fn may(&mut self, now: Instant, who: K) -> bool {
        let second = now.0 / 1_000_000_000;
        if self.second != second {
            self.second = second;
            self.counts.clear();
        }
        if self.counts.len() >= CAPACITY && !self.counts.contains_key(&who) {
            return false;
        }
        let count = self.counts.entry(who).or_default();
        *count += 1;
        *count <= self.most
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

    #[test]
    fn each_peer_has_its_number_in_each_second() {
        let mut limit = PerSecond::new(2);
        let at = Instant::from_millis;
        assert_eq!([1, 1, 1, 2].map(|who| limit.may(at(1), who)), [true, true, false, true]);
        assert!(!limit.may(at(999), 1));
        assert!(limit.may(at(1000), 1));
        // With the peer 1 above, as many peers as there is room for.
        let others = 2..=CAPACITY as u64;
        assert!(others.clone().all(|who| limit.may(at(1500), who)), "{others:?}");
        assert!(!limit.may(at(1500), 0), "1024 peers had a message in this second");
    }
}
