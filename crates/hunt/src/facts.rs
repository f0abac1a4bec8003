//! What the judges know of a run.

use std::collections::{BTreeMap, BTreeSet};
use wire::Instant;

/// The port of packets that belong to no workload: registrations, ARP, connections between routers.
pub const CONTROL: u16 = 0;

/// One end of an application's connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct End {
    /// When it was asked for, or accepted.
    pub begun: Instant,
    /// Whether it is open, or was.
    pub opened: bool,
    /// Bytes that the application was given.
    pub read: u64,
    /// Its peer finished, and it was given everything.
    pub finished: Option<Instant>,
    /// It is gone; why, unless in order.
    pub closed: Option<(Instant, Option<String>)>,
    /// Since when nothing has happened.
    pub last: Instant,
    /// Since when neither end has read anything.
    pub moved: Instant,
    /// The longest time in which nothing happened here, and the other end read nothing: from, and to.
    pub gap: (Instant, Instant),
}

impl End {
    pub(crate) const fn new(at: Instant) -> Self {
        let (finished, closed) = (None, None);
        Self { begun: at, opened: false, read: 0, finished, closed, last: at, moved: at, gap: (at, at) }
    }

    pub(crate) fn touch(&mut self, at: Instant) {
        self.moves(at);
        self.last = at;
    }

    /// Bytes arrived, here or at the other end: a question that is on its way still is no stall.
    pub(crate) fn moves(&mut self, at: Instant) {
        if at.since(self.moved) > self.gap.1.since(self.gap.0) {
            self.gap = (self.moved, at);
        }
        self.moved = at;
    }

    /// Whether its application knows that it has ended, one way or the other.
    pub const fn is_over(&self) -> bool {
        self.finished.is_some() || self.closed.is_some()
    }

    /// Why it failed, if it did.
    pub fn error(&self) -> Option<&str> {
        self.closed.as_ref().and_then(|(_, why)| why.as_deref())
    }
}

/// Both ends of the connection of a workload. Of several, the first that was asked for, and the last that was accepted: a client of
/// Indirect TCP asks again where it is not answered.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Ends {
    /// Who asked.
    pub client: Option<End>,
    /// Who accepted.
    pub server: Option<End>,
}

/// When datagrams arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrivals {
    /// The first.
    pub first: Instant,
    /// The last.
    pub last: Instant,
    /// The longest time between two: from, and to.
    pub gap: (Instant, Instant),
}

impl Arrivals {
    pub(crate) const fn first(at: Instant) -> Self {
        Self { first: at, last: at, gap: (at, at) }
    }

    pub(crate) fn another(&mut self, at: Instant) {
        if at.since(self.last) > self.gap.1.since(self.gap.0) {
            self.gap = (self.last, at);
        }
        self.last = at;
    }
}

/// All that judges may look at.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Facts {
    /// Connections, by the port of their workload.
    pub streams: BTreeMap<u16, Ends>,
    /// When a host's stack was given datagrams, by the port of the workload.
    pub datagrams: BTreeMap<u16, Arrivals>,
    /// Data that applications found to be wrong, in words.
    pub wrong: Vec<String>,
    /// Packets that a host's stack was given although they were for another, in words.
    pub misled: Vec<String>,
    /// Packets that crossed one link in one direction too often, in words.
    pub loops: Vec<String>,
    /// Connections that two routers served at one instant, in words.
    pub owners: Vec<String>,
    /// Mobile hosts of which a router of Indirect TCP had or was sent connections when it crashed, by their names.
    pub crashed_for: BTreeSet<String>,
    /// SCTP data to addresses that were not confirmed, in words.
    pub unconfirmed: Vec<String>,
    /// When links lost packets at random, by the port of the workload.
    pub lost: BTreeMap<u16, Vec<Instant>>,
    /// When packets were lost because a queue was full, or in collisions.
    pub full: BTreeMap<u16, Vec<Instant>>,
    /// Doubts of the simulator and of its ledger, in words.
    pub doubts: Vec<String>,
    /// Packets that queues and roles still held at the end.
    pub held: u64,
    /// The most packets that were under way at one time.
    pub most_open: usize,
    /// When the run ended.
    pub ended: Instant,
}
