//! Limits for connections that peers open. These connections have a share of this process's descriptors. Each peer
//! address may have at most a quarter of this share, and at least one connection.

use node::{Expiry, StreamId};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use wire::{Duration, Instant, Ipv4Addr, Reason};

/// Time for which a listener is not polled after a failed `accept`. The cause usually lasts, and the kernel would
/// report the connection again and again.
const REST: Duration = Duration::from_millis(200);
/// The reason to refuse a connection: the peer's address has as many connections as one address may have.
const TOO_MANY: Reason = Reason("tcp_too_many_of_peer");

/// Accepted connections, by the address of the peer.
pub(super) struct AcceptLimits {
    addresses: BTreeMap<StreamId, Ipv4Addr>,
    counts: BTreeMap<Ipv4Addr, usize>,
    /// Largest number of connections of all peers together.
    most: usize,
    /// Reasons of refusals since the last call of [`AcceptLimits::take_refused`].
    refused: Vec<Reason>,
    /// The listeners that are not polled, because an `accept` failed less than [`REST`] ago.
    resting: BTreeSet<StreamId>,
    /// When each listener in `resting` is polled again.
    until: Expiry<StreamId>,
    /// The listeners that were added to `resting`, or removed from it, since the last call of
    /// [`AcceptLimits::take_changed`].
    changed: Vec<StreamId>,
    now: Instant,
}

impl AcceptLimits {
    /// Allows at most `most` connections, and a quarter of them for one address.
    pub(super) fn new(most: usize) -> Self {
        Self {
            addresses: BTreeMap::new(),
            counts: BTreeMap::new(),
            most,
            refused: Vec::new(),
            resting: BTreeSet::new(),
            until: Expiry::default(),
            changed: Vec::new(),
            now: Instant::ZERO,
        }
    }

    /// Returns whether another connection may be accepted.
    pub(super) fn has_room(&self) -> bool {
        self.addresses.len() < self.most
    }

    /// Returns whether a peer may have another connection. If not, a refusal is counted.
    pub(super) fn admits(&mut self, peer: Ipv4Addr) -> bool {
        let has_room = self.counts.get(&peer).is_none_or(|count| *count < (self.most / 4).max(1));
        if !has_room {
            self.refused.push(TOO_MANY);
        }
        has_room
    }

    /// Counts an accepted connection.
    pub(super) fn begun(&mut self, id: StreamId, peer: Ipv4Addr) {
        *self.counts.entry(peer).or_default() += 1;
        self.addresses.insert(id, peer);
    }

    /// Removes an ended stream from the counts. Does nothing if no peer opened this stream.
    pub(super) fn ended(&mut self, id: StreamId) {
        let Some(peer) = self.addresses.remove(&id) else { return };
        if let Some(count) = self.counts.get_mut(&peer) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&peer);
            }
        }
    }

    /// Handles a failed `accept`: counts the reason, and pauses the listener for [`REST`].
    pub(super) fn failed(&mut self, listener: StreamId, error: Errno) {
        self.refused.push(Reason(match error {
            Errno::MFILE | Errno::NFILE => "tcp_accept_no_descriptor",
            Errno::NOBUFS | Errno::NOMEM => "tcp_accept_no_memory",
            _ => "tcp_accept_failed",
        }));
        self.resting.insert(listener);
        self.until.set(listener, self.now + REST);
        self.changed.push(listener);
    }

    /// Returns whether a listener may be polled.
    pub(super) fn is_asked(&self, listener: StreamId) -> bool {
        self.has_room() && !self.resting.contains(&listener)
    }

    /// Ends the pause of each listener for which [`REST`] has passed.
    pub(super) fn wake(&mut self, now: Instant) {
        self.now = now;
        while let Some(listener) = self.until.pop(now) {
            self.resting.remove(&listener);
            self.changed.push(listener);
        }
    }

    /// Returns when the next listener may be polled again.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.until.next()
    }

    /// Returns the listeners whose pause began or ended since the last call.
    pub(super) fn take_changed(&mut self) -> Vec<StreamId> {
        std::mem::take(&mut self.changed)
    }

    /// Returns the reasons of all refusals since the last call.
    pub(super) fn take_refused(&mut self) -> Vec<Reason> {
        std::mem::take(&mut self.refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_has_a_quarter_and_all_have_half() {
        let mut callers = AcceptLimits::new(32);
        let mut admitted = 0;
        for (id, last) in (1..=5).flat_map(|last| [last; 9]).enumerate() {
            let peer = Ipv4Addr::new(10, 0, 0, last);
            if callers.has_room() && callers.admits(peer) {
                callers.begun(StreamId(id as u32), peer);
                admitted += 1;
            }
        }
        assert_eq!((admitted, callers.take_refused()), (32, vec![TOO_MANY; 3]));
        callers.ended(StreamId(0));
        assert!(callers.has_room() && callers.admits(Ipv4Addr::new(10, 0, 0, 1)));
    }

    #[test]
    fn a_listener_at_which_accept_failed_rests() {
        let (mut callers, listener) = (AcceptLimits::new(32), StreamId(7));
        callers.failed(listener, Errno::MFILE);
        assert!(!callers.is_asked(listener) && callers.is_asked(StreamId(8)));
        assert_eq!(callers.take_refused(), [Reason("tcp_accept_no_descriptor")]);
        let due = callers.deadline().unwrap();
        callers.wake(due);
        assert!(callers.is_asked(listener) && callers.deadline().is_none());
    }
}
