//! Keeps which TCP sockets and relays the daemon must visit.

use node::StreamId;
use std::collections::BTreeSet;

/// The sockets and relays that the daemon must visit.
#[derive(Debug, Default)]
pub(super) struct Wakes {
    /// Streams whose sockets may wait for other events than before.
    pub(super) touched: BTreeSet<StreamId>,
    /// Sockets with an event for their users that the kernel does not report. They are visited at each turn.
    pub(super) news: BTreeSet<StreamId>,
    /// Relays that hold bytes for which a socket had no room.
    pub(super) loaded: BTreeSet<StreamId>,
    /// The relays in `loaded` whose sockets may have room for some bytes. The kernel calls a socket writable when a
    /// third of its buffer is free, but a relay writes as soon as one byte fits. The segment that makes room passes
    /// through the daemon.
    pub(super) stirred: BTreeSet<StreamId>,
    /// Whether listeners could accept connections when they were last looked at.
    pub(super) has_room: bool,
    /// The sockets that were visited, for tests.
    #[cfg(test)]
    pub(super) visits: Vec<StreamId>,
}

impl Wakes {
    /// Notes that a socket was changed.
    pub(super) fn touch(&mut self, id: StreamId) {
        self.touched.insert(id);
    }

    /// Notes whether a relay holds bytes.
    pub(super) fn load(&mut self, relay: StreamId, is_loaded: bool) {
        if is_loaded {
            self.loaded.insert(relay);
        } else {
            self.loaded.remove(&relay);
        }
    }

    /// Returns whether some relay holds bytes.
    pub(super) fn has_loaded(&self) -> bool {
        !self.loaded.is_empty()
    }

    /// Returns the relays that may have room, and forgets them.
    pub(super) fn take_stirred(&mut self) -> BTreeSet<StreamId> {
        std::mem::take(&mut self.stirred)
    }

    /// Notes that a socket is visited.
    pub(super) fn visit(&mut self, id: StreamId) {
        self.touch(id);
        #[cfg(test)]
        self.visits.push(id);
    }

    /// Notes that each relay may have room, for tests whose segments do not pass through a daemon.
    #[cfg(test)]
    pub(super) fn stir_all(&mut self) {
        self.stirred.clone_from(&self.loaded);
    }
}
