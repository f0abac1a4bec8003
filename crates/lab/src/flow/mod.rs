//! Flows: one direction of data between two end points of applications, and what the receiving application was given.
//!
//! A connection of TCP makes one flow for each direction that carries data. A connection that a support router of
//! Indirect TCP splits is one flow from application to application, though two connections carry it. An association of
//! SCTP makes one flow for each direction, whichever addresses it uses.

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
    /// Its name in tables.
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
    /// The receiver was given all. Of datagrams: the source stopped before the run ended, and its last one arrived.
    Completed,
    /// The connection was reset, or given up.
    Reset,
    /// The connection never opened.
    Refused,
    /// The run ended first. Of datagrams also: the source stopped, and its last one never arrived; or its host crashed, or was
    /// stopped, for good while it sent.
    Unfinished,
}

impl FlowEnd {
    /// Its name in tables.
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

/// New data in the hands of the receiving application.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Arrival {
    /// When.
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
    /// What carries it.
    pub transport: Transport,
    /// When it began: the first packet left the sender, or the connection was asked for.
    pub begun: Instant,
    /// When it ended; `None` if it was under way when the run ended. Of datagrams: when the last of them was sent, or its
    /// fate was known.
    pub ended: Option<Instant>,
    /// The end of its life in this run: `ended`, or the end of the run.
    pub until: Instant,
    /// New bytes that the receiving application was given.
    pub bytes: u64,
    /// How it ended.
    pub end: FlowEnd,
    /// One-way delay; `None` if nothing arrived.
    pub delay: Option<Delay>,
    /// The longest time without new data although some was sent, or asked for; also one that the end of the flow ended.
    pub longest_stall: Duration,
    /// Packets with data of which no copy arrived, from the first to the last.
    pub lost: u64,
    /// Packets in which the sender repeated data.
    pub retransmissions: u64,
    /// What the receiving application was given, in the order of time.
    pub arrivals: Vec<Arrival>,
}

impl Flow {
    /// How long it lasted; of an unfinished flow, up to the end of the run.
    pub fn life(&self) -> Duration {
        self.until.since(self.begun)
    }

    /// New bytes for the receiving application in bits per second, over the flow's own life: not the run's length.
    /// 0 if the life has no length.
    pub fn goodput(&self) -> f64 {
        let life = self.life().as_secs_f64();
        if life > 0.0 { self.bytes as f64 * 8.0 / life } else { 0.0 }
    }
}

#[cfg(test)]
mod tests;
