//! The Route Cache: the downlink neighbor of each mobile host.
//!
//! While a host has one mapping, the forwarding table keeps the lifetime of the mapping. Data refresh the lifetime in
//! the table, without the role. During a semisoft handoff a host has two mappings. Then each data packet of the host
//! passes through the role, and the lifetimes are kept in the cache.

use crate::delay::DelayDevice;
use std::collections::BTreeMap;
use wire::{Iface, Instant, Ipv4Addr, Mac};

/// A neighbor: the interface that leads to it, and its link address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Leg {
    pub(crate) iface: Iface,
    pub(crate) mac: Mac,
}

/// The state of one mobile host.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The newest accepted timestamp. It is kept for twice the replay window after the end of the mapping.
    pub(crate) last_timestamp: u64,
    pub(crate) mapping: Option<Mapping>,
}

/// The neighbor or the two neighbors that a host is mapped to.
#[derive(Debug)]
pub(crate) enum Mapping {
    One {
        leg: Leg,
        /// Whether the mapping ends even if data arrive, because no route-update has confirmed it for too long.
        ends: bool,
    },
    Two(Box<Semisoft>),
}

/// A semisoft handoff in progress: this node is the crossover.
#[derive(Debug)]
pub(crate) struct Semisoft {
    /// The old neighbor; `None` after the mapping to it has expired.
    pub(crate) primary: Option<Leg>,
    /// When the mapping to the old neighbor expires, unless it is refreshed.
    pub(crate) primary_ends: Instant,
    /// The new neighbor.
    pub(crate) secondary: Leg,
    /// When the mapping to the new neighbor expires, unless it is refreshed.
    pub(crate) secondary_ends: Instant,
    /// Whether packets to the new path are delayed by the delay device: true until data from the host arrive by the new
    /// path. Packets with a codepoint of `delay_exempt` are never delayed.
    pub(crate) delayed: bool,
    pub(crate) device: DelayDevice,
}

/// All hosts of which a node has a mapping or a timestamp.
#[derive(Debug, Default)]
pub(crate) struct RouteCache {
    pub(crate) hosts: BTreeMap<Ipv4Addr, Entry>,
    /// The number of hosts without a mapping, of which only the timestamp is kept.
    buried: usize,
}

impl RouteCache {
    pub(crate) fn mapping(&self, host: Ipv4Addr) -> Option<&Mapping> {
        self.hosts.get(&host)?.mapping.as_ref()
    }

    pub(crate) fn semisoft(&mut self, host: Ipv4Addr) -> Option<&mut Semisoft> {
        match self.hosts.get_mut(&host)?.mapping.as_mut()? {
            Mapping::Two(semisoft) => Some(semisoft),
            Mapping::One { .. } => None,
        }
    }

    /// Stores the timestamp of an accepted route-update, and returns the entry of its host. The caller must give the
    /// entry a mapping.
    pub(crate) fn enter(&mut self, host: Ipv4Addr, timestamp: u64) -> &mut Entry {
        if self.hosts.get(&host).is_some_and(|entry| entry.mapping.is_none()) {
            self.buried -= 1;
        }
        let entry = self.hosts.entry(host).or_insert(Entry { last_timestamp: 0, mapping: None });
        entry.last_timestamp = timestamp;
        entry
    }

    /// Removes the mapping of a host, and keeps only the timestamp.
    pub(crate) fn bury(&mut self, host: Ipv4Addr) {
        if let Some(entry) = self.hosts.get_mut(&host) {
            entry.mapping = None;
            self.buried += 1;
        }
    }

    pub(crate) fn forget(&mut self, host: Ipv4Addr) {
        if self.hosts.remove(&host).is_some() {
            self.buried -= 1;
        }
    }

    /// Returns the number of hosts with a mapping.
    pub(crate) fn mapped(&self) -> usize {
        self.hosts.len() - self.buried
    }

    /// Returns the number of mappings. A host in a semisoft handoff has two until the older one has expired.
    pub(crate) fn mappings(&self) -> usize {
        let of_host = |entry: &Entry| match &entry.mapping {
            Some(Mapping::Two(two)) if two.primary.is_some() => 2,
            Some(_) => 1,
            None => 0,
        };
        self.hosts.values().map(of_host).sum()
    }

    /// Returns whether there is room for a mapping of this host. At most `capacity` hosts have a mapping. Including the
    /// hosts of which only the timestamp is kept, there are at most twice `capacity` hosts.
    pub(crate) fn has_room_for(&self, host: Ipv4Addr, capacity: usize) -> bool {
        match self.hosts.get(&host) {
            Some(Entry { mapping: Some(_), .. }) => true,
            Some(_) => self.mapped() < capacity,
            None => self.mapped() < capacity && self.hosts.len() < capacity.saturating_mul(2),
        }
    }
}
