//! The binding cache: the care-of addresses of mobile nodes, with a bound on their number
//! (draft-ietf-mobileip-optim-09, section 3.1).

use std::collections::{BTreeMap, BTreeSet};
use wire::tunnel::Kind;
use wire::{Instant, Ipv4Addr};

/// The binding of one mobile node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    pub(super) care_of: Ipv4Addr,
    /// The kind of the tunnel to the care-of address.
    pub(super) kind: Kind,
    /// The home agent that sent the Binding Update, and the SPI of its authentication.
    pub(super) home_agent: Ipv4Addr,
    pub(super) spi: u32,
    /// The Identification of the Binding Update.
    pub(super) identification: u64,
    /// The lifetime of the Binding Update in seconds.
    pub(super) lifetime: u16,
    /// When the entry ends; `None`: it has no end.
    pub(super) ends: Option<Instant>,
    /// When the Binding Update arrived.
    pub(super) since: Instant,
    /// When the entry was last used, to the interval of the notices ([`super::NOTICE`]).
    pub(super) used: Instant,
    /// The number of Binding Requests that were sent about this entry, because it ends soon.
    pub(super) requests: u8,
}

/// The bindings of mobile nodes by home address. When there is no room, the one that was not used for the longest time is
/// removed.
#[derive(Debug)]
pub(super) struct Cache {
    entries: BTreeMap<Ipv4Addr, Entry>,
    /// The entries by their last use.
    uses: BTreeSet<(Instant, Ipv4Addr)>,
    capacity: usize,
}

impl Cache {
    pub(super) const fn new(capacity: usize) -> Self {
        Self { entries: BTreeMap::new(), uses: BTreeSet::new(), capacity }
    }

    pub(super) fn get(&self, home: Ipv4Addr) -> Option<&Entry> {
        self.entries.get(&home)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Ipv4Addr, &Entry)> {
        self.entries.iter().map(|(home, entry)| (*home, entry))
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Sets the entry of a mobile node.
    pub(super) fn set(&mut self, home: Ipv4Addr, entry: Entry) {
        self.remove(home);
        self.uses.insert((entry.used, home));
        self.entries.insert(home, entry);
    }

    /// Removes the entry of a mobile node, and returns it.
    pub(super) fn remove(&mut self, home: Ipv4Addr) -> Option<Entry> {
        let entry = self.entries.remove(&home)?;
        self.uses.remove(&(entry.used, home));
        Some(entry)
    }

    /// Returns the mobile node whose entry must be removed before another mobile node gets one: the one whose entry was
    /// not used for the longest time. `None` if there is room.
    pub(super) fn oldest(&self) -> Option<Ipv4Addr> {
        let (_, home) = self.uses.first().filter(|_| self.entries.len() >= self.capacity)?;
        Some(*home)
    }

    /// Records that the entry of a mobile node is used at `now`. Does nothing without an entry.
    pub(super) fn touch(&mut self, home: Ipv4Addr, now: Instant) {
        if let Some(entry) = self.entries.get_mut(&home) {
            self.uses.remove(&(entry.used, home));
            entry.used = now;
            self.uses.insert((now, home));
        }
    }

    /// Counts a Binding Request about the entry of a mobile node.
    pub(super) fn count_request(&mut self, home: Ipv4Addr) {
        if let Some(entry) = self.entries.get_mut(&home) {
            entry.requests = entry.requests.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(used: u64) -> Entry {
        Entry {
            care_of: Ipv4Addr::new(10, 2, 0, 1),
            kind: Kind::IpInIp,
            home_agent: Ipv4Addr::new(10, 1, 0, 2),
            spi: 256,
            identification: used,
            lifetime: 30,
            ends: None,
            since: Instant(used),
            used: Instant(used),
            requests: 0,
        }
    }

    #[test]
    fn the_entry_that_was_not_used_for_the_longest_time_makes_room() {
        let home = |last| Ipv4Addr::new(10, 1, 0, last);
        let mut cache = Cache::new(3);
        for (used, last) in [(1, 7), (2, 8)] {
            cache.set(home(last), entry(used));
        }
        assert_eq!(cache.oldest(), None, "there is room");
        cache.set(home(9), entry(3));
        assert_eq!(cache.oldest(), Some(home(7)));
        cache.touch(home(7), Instant(4));
        assert_eq!((cache.oldest(), cache.len()), (Some(home(8)), 3));
        cache.set(home(8), entry(5));
        assert_eq!(cache.oldest(), Some(home(9)), "a new Update counts as a use");
        assert_eq!(cache.remove(home(9)), Some(entry(3)));
        assert_eq!((cache.oldest(), cache.get(home(9))), (None, None));
        assert_eq!(cache.remove(home(9)), None);
        cache.touch(home(9), Instant(6));
        assert_eq!((cache.len(), cache.uses.len()), (2, 2));
    }
}
