//! Flows: a flow is one direction of data between two applications or programs.
//!
//! A TCP connection makes one flow for each direction that carries data. A connection that a support router of Indirect
//! TCP splits is one flow from application to application, although two connections carry it. An SCTP association makes
//! one flow for each direction that carries data, over all addresses of the association. A connection that an
//! application requested and that never carried data is also one flow.

mod build;
mod counted;
mod due;
mod fragments;
mod measure;
mod packets;
mod path;
mod seen;
mod stops;
mod stream;
mod traffic;

pub(crate) use counted::Counted;
pub use packets::PacketEvent;
pub(crate) use packets::Packets;
pub(crate) use path::{Due, Sending, Wait};
pub(crate) use seen::{is_kept, stopped};
pub(crate) use traffic::Traffic;

use scenario::Plan;
use trace::HostId;
use wire::{Duration, Instant, PacketId, SocketAddrV4};

/// One end of a flow: a host, and the address and port of the application or program at this host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct End {
    /// The host of the application; `HostId(u32::MAX)` if no host of the plan has the address.
    pub host: HostId,
    /// The address and port of the application when the flow began; port 0 if no record has the port. The host may get
    /// another address later.
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
    /// UDP datagrams (RFC 768).
    Udp,
    /// A TCP connection (RFC 9293), or the TCP connections of a stream that Indirect TCP splits.
    Tcp,
    /// An SCTP association (RFC 9260).
    Sctp,
}

impl Transport {
    /// Returns `UDP`, `TCP` or `SCTP`, the name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Udp => "UDP",
            Self::Tcp => "TCP",
            Self::Sctp => "SCTP",
        }
    }
}

/// How a flow ended, as in the column `end` of the table of flows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FlowEnd {
    /// The receiving application (or the kernel of a receiving program) has received the end of the stream, or the
    /// connection was closed without an error. For datagrams: the source stopped before the run ended, and its last
    /// datagram arrived.
    Completed,
    /// The connection was reset, or a transport gave up.
    Reset,
    /// The connection was closed before it opened.
    Refused,
    /// The run ended before the flow. For datagrams also: the last datagram of a stopped source never arrived, or the
    /// source's host went down until the end of the run before the source stopped.
    Unfinished,
}

impl FlowEnd {
    /// Returns `completed`, `reset`, `refused` or `unfinished`, the name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Reset => "reset",
            Self::Refused => "refused",
            Self::Unfinished => "unfinished",
        }
    }
}

/// The one-way delay of a flow's datagrams, or of the pieces of a stream. It lasts from the first transmission until
/// the receiving application has the last byte of the datagram or piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Delay {
    /// The median, by the nearest rank.
    pub p50: Duration,
    /// The 99th percentile, by the nearest rank.
    pub p99: Duration,
}

/// New data that the receiving application read, or that were in order at the stack of a receiving program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Arrival {
    /// The instant at which the application read the data; for a program, at which the data were in order at its host's
    /// stack.
    pub at: Instant,
    /// The number of bytes that the application did not have before.
    pub bytes: u64,
    /// The packet with which the data became readable; [`PacketId::NEW`] if it is not known.
    pub packet: PacketId,
}

/// One direction of data between two applications or programs, for example one direction of a TCP connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Flow {
    /// The sending application or program.
    pub from: End,
    /// The receiving application or program.
    pub to: End,
    /// The transport protocol of the flow.
    pub transport: Transport,
    /// When the flow began: its first packet was sent, or the application at one of its ends requested or accepted the
    /// connection.
    pub begun: Instant,
    /// When the flow ended; `None` if it was under way when the run ended. For datagrams: the last instant at which a
    /// datagram was sent, arrived or was lost.
    pub ended: Option<Instant>,
    /// The instant `ended`, or the end of the run if `ended` is `None`.
    pub until: Instant,
    /// The number of bytes that the receiving application received. Repeated bytes count once.
    pub bytes: u64,
    /// How the flow ended.
    pub end: FlowEnd,
    /// One-way delay; `None` if the application received no piece of data completely.
    pub delay: Option<Delay>,
    /// The longest time without new data although data were due (docs/glossary.md, "stall"). The time may end with the
    /// flow.
    pub longest_stall: Duration,
    /// The number of packets with data of which no copy arrived, over the whole flow.
    pub lost: u64,
    /// The number of packets in which the sender repeated data; 0 for datagrams.
    pub retransmissions: u64,
    /// The arrivals of new data at the receiving application or program, in the order of time.
    pub arrivals: Vec<Arrival>,
}

impl Flow {
    /// Returns how long the flow lasted; for an unfinished flow, until the end of the run.
    pub fn life(&self) -> Duration {
        self.until.since(self.begun)
    }

    /// Returns the goodput in bit/s: new bytes at the receiving application over the duration of the flow, not of the
    /// run. Returns 0 if the duration of the flow is zero.
    pub fn goodput(&self) -> f64 {
        let life = self.life().as_secs_f64();
        if life > 0.0 { self.bytes as f64 * 8.0 / life } else { 0.0 }
    }
}

#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;
