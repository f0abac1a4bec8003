//! The facts of a run. The judges use nothing else of the run.

use std::collections::{BTreeMap, BTreeSet};
use wire::Instant;

/// The port number in the facts for packets that belong to no workload: registrations, ARP, connections between
/// routers.
pub const CONTROL: u16 = 0;

/// The facts about one end of an application's connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct End {
    /// The time of the request to open the connection, or of its acceptance.
    pub begun: Instant,
    /// Whether the connection is or was open.
    pub opened: bool,
    /// Number of bytes that the application has read.
    pub read: u64,
    /// The time at which the application had read all data and the end of the peer's stream; `None` before that time.
    pub finished: Option<Instant>,
    /// The time at which this end closed, and the error, which is `None` for a clean close. `None` if this end has not
    /// closed.
    pub closed: Option<(Instant, Option<String>)>,
    /// The time of the last event at this end: a read of data, the end of the peer's stream, or the close. At first the
    /// value of `begun`.
    pub last: Instant,
    /// The time of the last event at this end, as in `last`. For a client, a read of its server counts as an event too.
    pub moved: Instant,
    /// The begin and the end of the longest time between two events of this end: reads of data, the end of the peer's
    /// stream, or the close. For a client, reads of its server are events too.
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

    /// Notes an event of this end, or a read of a client's server. While the server still reads a request, the client
    /// is not stalled.
    pub(crate) fn moves(&mut self, at: Instant) {
        if at.since(self.moved) > self.gap.1.since(self.gap.0) {
            self.gap = (self.moved, at);
        }
        self.moved = at;
    }

    /// Returns whether this end has closed, or the application has read the end of the peer's stream.
    pub const fn is_over(&self) -> bool {
        self.finished.is_some() || self.closed.is_some()
    }

    /// Returns the error with which this end closed, or `None` if it closed cleanly or is open.
    pub fn error(&self) -> Option<&str> {
        self.closed.as_ref().and_then(|(_, why)| why.as_deref())
    }
}

/// Both ends of a workload's connection. A client of Indirect TCP repeats a request for a connection that gets no
/// answer. Then the times of the client count from its first request, and the server is the last accepted connection.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Ends {
    /// The end that connects; `None` if no connection was requested.
    pub client: Option<End>,
    /// The end that accepts; `None` if no connection was accepted.
    pub server: Option<End>,
}

/// The arrivals of a workload's datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrivals {
    /// The time of the first arrival.
    pub first: Instant,
    /// The time of the last arrival.
    pub last: Instant,
    /// The begin and the end of the longest time between two arrivals.
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

/// All facts that the judges may use. Each `Vec<String>` has descriptions of what was found.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Facts {
    /// Connections, by the port of their workload.
    pub streams: BTreeMap<u16, Ends>,
    /// Arrivals of datagrams at a host's stack, by the port of the workload.
    pub datagrams: BTreeMap<u16, Arrivals>,
    /// The registration requests of mobile hosts with two radios, by the name of the host: when each left the host, and
    /// whether it left by the second radio.
    pub requests: BTreeMap<String, Vec<(Instant, bool)>>,
    /// Reports of applications that have read wrong data.
    pub wrong: Vec<String>,
    /// Packets delivered to a host's stack that were for another host.
    pub misled: Vec<String>,
    /// Packets that crossed one link in one direction more than 8 times, or whose TTL expired.
    pub loops: Vec<String>,
    /// Connections that several routers served at the same time.
    pub owners: Vec<String>,
    /// Names of mobile hosts whose connections may fail, because a router of Indirect TCP crashed. The router had
    /// connections of the host, or connections of the host were sent to it.
    pub crashed_for: BTreeSet<String>,
    /// SCTP data sent to addresses that were not confirmed.
    pub unconfirmed: Vec<String>,
    /// Packets that home agents tunneled to care-of addresses that were not bound.
    pub unbound: Vec<String>,
    /// Requests that home agents accepted a second time.
    pub replayed: Vec<String>,
    /// Packets of visitors with reverse tunnels that left their foreign agents outside of the tunnel.
    pub bypassed: Vec<String>,
    /// Requests that foreign agents relayed without a valid challenge, although they require one.
    pub unchallenged: Vec<String>,
    /// Packets in tunnels of another kind than the mobile node asked for.
    pub kinds: Vec<String>,
    /// Requests and replies that an agent did not sign for another agent, although they have a security association.
    pub unsigned: Vec<String>,
    /// Packets that correspondents sent to care-of addresses of older Binding Updates, and older Updates that they accepted.
    pub stale: Vec<String>,
    /// Packets that a foreign agent kept, and sent where or when it must not.
    pub kept: Vec<String>,
    /// The times at which links lost packets at random, by the port of the workload.
    pub lost: BTreeMap<u16, Vec<Instant>>,
    /// The times at which packets were lost in a full queue or a collision, by the port of the workload.
    pub full: BTreeMap<u16, Vec<Instant>>,
    /// Doubts about the run, for example a ledger that does not balance. Each is a violation.
    pub doubts: Vec<String>,
    /// Number of packets that queues and roles still held at the end.
    pub held: u64,
    /// The largest number of packets that were under way at one time; 0 for a run on Linux.
    pub most_open: usize,
    /// The time at which the run ended.
    pub ended: Instant,
}
