//! Timers with names: [`Timers`] for the few timers of a role, [`Expiry`] for one timer per binding, visitor or cache
//! entry.

use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;
use wire::Instant;

/// The names of a role's timers: an enum without fields.
pub trait TimerName: Copy + 'static {
    /// Every name, in the order of its `index`. Timers that are set to the same instant fire in this order.
    const ALL: &'static [Self];
    /// Returns the index of this name in [`TimerName::ALL`].
    fn index(self) -> usize;
}

/// The timers of a role, at most one for each name. Each timer takes eight bytes, without allocation.
#[derive(Clone, Debug)]
pub struct Timers<K, const N: usize> {
    at: [Instant; N],
    names: PhantomData<K>,
}

impl<K: TimerName, const N: usize> Default for Timers<K, N> {
    fn default() -> Self {
        const { assert!(K::ALL.len() == N, "N must be the number of names") };
        Self { at: [Instant::NEVER; N], names: PhantomData }
    }
}

impl<K: TimerName, const N: usize> Timers<K, N> {
    /// Sets a timer to the instant `at`. A timer that is already set is moved to `at`.
    pub fn set(&mut self, name: K, at: Instant) {
        if let Some(slot) = self.at.get_mut(name.index()) {
            *slot = at;
        }
    }

    /// Stops a timer. The call has no effect if the timer is not set.
    pub fn stop(&mut self, name: K) {
        self.set(name, Instant::NEVER);
    }

    /// Returns when a timer is due, or `None` if it is not set.
    pub fn due(&self, name: K) -> Option<Instant> {
        self.at.get(name.index()).copied().filter(|at| *at != Instant::NEVER)
    }

    /// Returns when the first timer is due, or `None` if none is set: a role's `deadline`.
    pub fn next(&self) -> Option<Instant> {
        self.at.iter().copied().min().filter(|at| *at != Instant::NEVER)
    }

    /// Takes the earliest timer that is due at `now`, and stops it. Returns `None` if no timer is due. So a role that
    /// takes all due timers keeps law 2 of this crate.
    pub fn pop(&mut self, now: Instant) -> Option<K> {
        let next = self.next().filter(|at| *at <= now)?;
        let name = K::ALL.iter().copied().find(|name| self.due(*name) == Some(next))?;
        self.stop(name);
        Some(name)
    }
}

/// Deadlines of keys, at most one for each key.
#[derive(Clone, Debug)]
pub struct Expiry<K> {
    due: BTreeSet<(Instant, K)>,
    at: BTreeMap<K, Instant>,
}

impl<K> Default for Expiry<K> {
    fn default() -> Self {
        Self { due: BTreeSet::new(), at: BTreeMap::new() }
    }
}

impl<K: Ord + Copy> Expiry<K> {
    /// Sets the deadline of a key to the instant `at`. A deadline that is already set is moved to `at`.
    pub fn set(&mut self, key: K, at: Instant) {
        match self.at.insert(key, at) {
            Some(before) if before == at => return,
            Some(before) => _ = self.due.remove(&(before, key)),
            None => {}
        }
        self.due.insert((at, key));
    }

    /// Sets the deadline of a key to `at`, unless the key already has an earlier deadline. So a caller that postpones a
    /// deadline need not move it each time: it sets the next deadline when the earlier one is reached (lazy re-arming).
    pub fn set_by(&mut self, key: K, at: Instant) {
        if self.at.get(&key).is_none_or(|before| at < *before) {
            self.set(key, at);
        }
    }

    /// Removes the deadline of a key. The call has no effect if the key has no deadline.
    pub fn stop(&mut self, key: K) {
        if let Some(at) = self.at.remove(&key) {
            self.due.remove(&(at, key));
        }
    }

    /// Returns whether a key has a deadline.
    pub fn has(&self, key: K) -> bool {
        self.at.contains_key(&key)
    }

    /// Returns the number of keys with a deadline.
    pub fn len(&self) -> usize {
        self.at.len()
    }

    /// Returns whether no key has a deadline.
    pub fn is_empty(&self) -> bool {
        self.at.is_empty()
    }

    /// Returns the keys with their deadlines, in the order of the keys.
    pub fn iter(&self) -> impl Iterator<Item = (K, Instant)> + '_ {
        self.at.iter().map(|(key, at)| (*key, *at))
    }

    /// Returns when the first key is due, or `None` if no deadline is set.
    pub fn next(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Takes the key with the earliest deadline if it is due at `now`, and removes the deadline. Returns `None` if no
    /// key is due.
    pub fn pop(&mut self, now: Instant) -> Option<K> {
        let (at, key) = *self.due.first()?;
        if at > now {
            return None;
        }
        self.stop(key);
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, PartialEq, Debug)]
    enum Name {
        First,
        Second,
    }

    impl TimerName for Name {
        const ALL: &'static [Self] = &[Self::First, Self::Second];
        fn index(self) -> usize {
            self as usize
        }
    }

    #[test]
    fn a_timer_fires_at_its_instant_and_once() {
        let mut timers = Timers::<Name, 2>::default();
        timers.set(Name::Second, Instant(5));
        assert_eq!(timers.next(), Some(Instant(5)));
        assert_eq!(timers.pop(Instant(4)), None);
        assert_eq!(timers.pop(Instant(5)), Some(Name::Second));
        assert_eq!(timers.pop(Instant(5)), None);
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn the_earliest_fires_first_then_the_order_of_names() {
        let mut timers = Timers::<Name, 2>::default();
        timers.set(Name::First, Instant(7));
        timers.set(Name::Second, Instant(5));
        assert_eq!(timers.pop(Instant(9)), Some(Name::Second));
        timers.set(Name::Second, Instant(7));
        assert_eq!(timers.pop(Instant(9)), Some(Name::First));
    }

    #[test]
    fn an_expiry_moves_with_its_key() {
        let mut expiry = Expiry::default();
        expiry.set('a', Instant(5));
        expiry.set('b', Instant(6));
        expiry.set('a', Instant(9));
        assert_eq!(expiry.pop(Instant(5)), None);
        assert_eq!(expiry.pop(Instant(6)), Some('b'));
        expiry.stop('a');
        assert_eq!(expiry.next(), None);
    }
}
