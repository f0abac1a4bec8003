//! Flows: one direction of data between two end points of applications, and what the receiving application read.
//!
//! A TCP connection makes one flow for each direction that carries data. A connection that a support router of
//! Indirect TCP splits is one flow from application to application, although two connections carry it. An SCTP
//! association makes one flow for each direction, whichever addresses it uses.

mod build;
mod counted;
mod fragments;
mod measure;
mod packets;
mod path;
mod seen;
mod stream;
mod traffic;

pub(crate) use counted::Counted;
pub use packets::PacketEvent;
pub(crate) use packets::Packets;
pub(crate) use path::Sending;
pub(crate) use traffic::Traffic;

use scenario::Plan;
use trace::HostId;
use wire::{Duration, Instant, PacketId, SocketAddrV4};

/// One end of a flow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct End {
    /// The host of the application.
    pub host: HostId,
    /// Its address and port, as the application's host first used them.
    pub at: SocketAddrV4,
}

impl End {
    /// Returns the host's name and port, or the address and port if no host of the plan has the address.
    pub(crate) fn name(&self, plan: &Plan) -> String {
        if plan.has_host(self.host) {
            format!("{}:{}", plan.host_name(self.host), self.at.port())
        } else {
            self.at.to_string()
        }
    }
}

/// The transport of a flow, as the applications see it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Transport {
    /// Datagrams.
    Udp,
    /// A stream of bytes (RFC 9293); also one that Indirect TCP splits.
    Tcp,
    /// An association (RFC 9260).
    Sctp,
}

impl Transport {
    /// Returns the name used in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Udp => "UDP",
            Self::Tcp => "TCP",
            Self::Sctp => "SCTP",
        }
    }
}

/// How a flow ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FlowEnd {
    /// The receiver read all data. For datagrams: the source stopped before the run ended, and its last datagram
    /// arrived.
    Completed,
    /// The connection was reset, or a transport gave up.
    Reset,
    /// The connection never opened.
    Refused,
    /// The run ended first. For datagrams also: the source stopped and its last datagram never arrived, or its host
    /// crashed, or was stopped until the end, while it sent.
    Unfinished,
}

impl FlowEnd {
    /// Returns the name used in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Reset => "reset",
            Self::Refused => "refused",
            Self::Unfinished => "unfinished",
        }
    }
}

/// One-way delay: from the first transmission at the sender's stack to the receiving application.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Delay {
    /// The median.
    pub p50: Duration,
    /// The 99th percentile, by the nearest rank.
    pub p99: Duration,
}

/// New data that the receiving application read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Arrival {
    /// When the application read it.
    pub at: Instant,
    /// Bytes that the application did not have before.
    pub bytes: u64,
    /// The packet that made it possible.
    pub packet: PacketId,
}

/// One direction of data between two applications.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Flow {
    /// The sender.
    pub from: End,
    /// The receiver.
    pub to: End,
    /// The transport protocol of the flow.
    pub transport: Transport,
    /// When it began: the first packet left the sender, or the connection was requested.
    pub begun: Instant,
    /// When it ended; `None` if it was under way when the run ended. For datagrams: when the last of them was sent,
    /// arrived or was lost.
    pub ended: Option<Instant>,
    /// The end of its life in this run: `ended`, or the end of the run.
    pub until: Instant,
    /// New bytes that the receiving application was given.
    pub bytes: u64,
    /// How the flow ended.
    pub end: FlowEnd,
    /// One-way delay; `None` if nothing arrived.
    pub delay: Option<Delay>,
    /// The longest time without new data although some was due; it may end with the flow.
    pub longest_stall: Duration,
    /// Packets with data of which no copy arrived, over the whole flow.
    pub lost: u64,
    /// Packets in which the sender repeated data.
    pub retransmissions: u64,
    /// The reads of the receiving application, in the order of time.
    pub arrivals: Vec<Arrival>,
}

impl Flow {
    /// Returns how long the flow lasted; for an unfinished flow, until the end of the run.
    pub fn life(&self) -> Duration {
        self.until.since(self.begun)
    }

    /// Returns the goodput in bit/s: new bytes at the receiving application over the flow's own life, not the run's
    /// length. Returns 0 if the life is zero.
    pub fn goodput(&self) -> f64 {
        let life = self.life().as_secs_f64();
        if life > 0.0 { self.bytes as f64 * 8.0 / life } else { 0.0 }
    }
}

#[cfg(test)]
mod tests;
