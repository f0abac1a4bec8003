//! The Route Cache: which neighbor leads down to which mobile host.
//!
//! While a host has one mapping, the forwarding table keeps its life: data refresh it there, without the role. While a
//! semisoft handoff gives it two, every packet of the host passes through the role, and the lives are kept here.

use crate::delay::DelayDevice;
use std::collections::BTreeMap;
use wire::{Iface, Instant, Ipv4Addr, Mac};

/// A downlink neighbor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Leg {
    pub(crate) iface: Iface,
    pub(crate) mac: Mac,
}

/// What a node knows of one mobile host.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The newest timestamp accepted. It outlives the mapping by the replay window.
    pub(crate) last_timestamp: u64,
    pub(crate) mapping: Option<Mapping>,
}

/// The way or the two ways down to a host.
#[derive(Debug)]
pub(crate) enum Mapping {
    One {
        leg: Leg,
        /// No route-update has confirmed it for too long: it ends, whatever data come.
        ends: bool,
    },
    Two(Box<Semisoft>),
}

/// A semisoft handoff in progress: this node is the crossover.
#[derive(Debug)]
pub(crate) struct Semisoft {
    /// The old path (P of the specification) until it has ended, and when it does unless refreshed.
    pub(crate) primary: Option<Leg>,
    pub(crate) primary_ends: Instant,
    /// The new path (Q).
    pub(crate) secondary: Leg,
    pub(crate) secondary_ends: Instant,
    /// Set until the host is heard on the new path: copies go through the delay device.
    pub(crate) delayed: bool,
    pub(crate) device: DelayDevice,
}

/// All hosts that a node knows of.
#[derive(Debug, Default)]
pub(crate) struct RouteCache {
    pub(crate) hosts: BTreeMap<Ipv4Addr, Entry>,
    /// Hosts without a mapping, of which only the timestamp is remembered.
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

    /// The entry of a host whose route-update was accepted; it is to be given a mapping.
    pub(crate) fn enter(&mut self, host: Ipv4Addr, timestamp: u64) -> &mut Entry {
        if self.hosts.get(&host).is_some_and(|entry| entry.mapping.is_none()) {
            self.buried -= 1;
        }
        let entry = self.hosts.entry(host).or_insert(Entry { last_timestamp: 0, mapping: None });
        entry.last_timestamp = timestamp;
        entry
    }

    /// Only the timestamp of a host is remembered from now on. Its mapping may have been taken out before.
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

    /// Hosts that can be reached, without those whose timestamps are only remembered.
    pub(crate) fn mapped(&self) -> usize {
        self.hosts.len() - self.buried
    }

    /// Whether this host may be given a mapping. Remembered timestamps have as much room again.
    pub(crate) fn has_room_for(&self, host: Ipv4Addr, capacity: usize) -> bool {
        match self.hosts.get(&host) {
            Some(Entry { mapping: Some(_), .. }) => true,
            Some(_) => self.mapped() < capacity,
            None => self.mapped() < capacity && self.hosts.len() < capacity.saturating_mul(2),
        }
    }
}
