//! Rate limits for messages: at least one second passes between two messages to the same peer, or because of the same request.

use std::collections::BTreeMap;
use wire::{Duration, Instant};

/// The maximum number of remembered peers or requests. If 1024 were answered within the last second, no other peer or
/// request is answered.
const CAPACITY: usize = 1024;
/// The shortest pause between two messages to one peer (not from an RFC: the drafts require a limit and have no numbers).
pub(crate) const PAUSE: Duration = Duration::from_secs(1);
/// The longest pause between two messages to one peer, if the pauses double while the peer does not react (not from an RFC).
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(64);

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

/// A rate limit for messages that are repeated because the peer does not react: the pause between two messages doubles from
/// [`PAUSE`] up to [`LONGEST_PAUSE`]. Of at most [`CAPACITY`] peers, as for [`Limiter`]: if there is no room, a peer is forgotten a
/// second after its last message, so that forged peers take all room for a second only.
#[derive(Debug)]
pub(crate) struct Doubling<K>(BTreeMap<K, Waits>);

/// When a peer got its last message, and the pause after it.
#[derive(Clone, Copy, Debug)]
struct Waits {
    last: Instant,
    pause: Duration,
}

impl<K> Default for Doubling<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord> Doubling<K> {
    /// Returns whether `who` may get a message now. If so, records the message.
    pub(crate) fn may(&mut self, now: Instant, who: K) -> bool {
        let known = self.0.get(&who).copied();
        if known.is_some_and(|known| now < known.last + known.pause) {
            return false;
        }
        if self.0.len() >= CAPACITY && known.is_none() {
            self.0.retain(|_, waits| now < waits.last + PAUSE);
        }
        let room = self.0.len() < CAPACITY || known.is_some();
        if room {
            let pause = known.map_or(PAUSE, |known| (known.pause * 2).min(LONGEST_PAUSE));
            self.0.insert(who, Waits { last: now, pause });
        }
        room
    }

    /// Forgets the messages to all peers for which this is false.
    pub(crate) fn retain(&mut self, is_kept: impl Fn(&K) -> bool) {
        self.0.retain(|who, _| is_kept(who));
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
    fn the_pause_doubles_until_the_peer_is_forgotten() {
        let mut limit = Doubling::default();
        let mut at = 0;
        for pause in [1, 2, 4, 8, 16, 32, 64, 64] {
            assert!(limit.may(Instant::from_millis(at), 1), "at {at} ms");
            at += pause * 1000;
            assert!(!limit.may(Instant::from_millis(at - 1), 1), "1 ms before {at} ms");
        }
        assert!(limit.may(Instant::from_millis(at - 1), 2), "another peer");
        limit.retain(|who| *who == 2);
        assert!(limit.may(Instant::from_millis(at - 1), 1));
        assert!(limit.may(Instant::from_millis(at + 999), 1), "the pause is 1 s again");
        // Two peers are known. Others take the rest of the room.
        for who in 3..=CAPACITY {
            assert!(limit.may(Instant::from_millis(at), who));
        }
        assert!(!limit.may(Instant::from_millis(at), 0), "no room");
        assert!(limit.may(Instant::from_millis(at + 1000), 0), "a second later");

        let mut limit = Doubling::default();
        for second in 0..2 {
            assert!(
                (0..CAPACITY).all(|who| limit.may(Instant::from_millis(second * 1000), who)),
                "at {second} s"
            );
        }
        assert!(!limit.may(Instant::from_millis(1999), CAPACITY), "no room");
        assert!(
            limit.may(Instant::from_millis(2000), CAPACITY),
            "a second later, although others wait for two"
        );
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
