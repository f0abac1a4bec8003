//! Planted mistakes: each changes what the judges are told, as a broken role would, and must be found.

use crate::judge::Judge;

/// A mistake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Plant {
    /// Datagrams reach a host that they are not for.
    Misled,
    /// Packets go round.
    Loop,
    /// A router keeps serving a connection that it has handed over.
    Owners,
    /// Bytes are not given to the application.
    Lost,
    /// Bytes are given twice.
    Doubled,
    /// One end is never notified.
    Hang,
    /// From 5 s on no datagram arrives.
    Unserved,
    /// Data arrive late.
    Stall,
    /// Nobody has proved an address.
    Unconfirmed,
    /// Packets vanish without a reporter.
    Vanished,
    /// Packets are held for ever.
    Hoard,
}

impl Plant {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Misled,
        Self::Loop,
        Self::Owners,
        Self::Lost,
        Self::Doubled,
        Self::Hang,
        Self::Unserved,
        Self::Stall,
        Self::Unconfirmed,
        Self::Vanished,
        Self::Hoard,
    ];

    /// The judge that must find it.
    pub const fn judge(self) -> Judge {
        match self {
            Self::Misled => Judge::Misled,
            Self::Loop => Judge::Loop,
            Self::Owners => Judge::Owners,
            Self::Lost | Self::Doubled | Self::Hang => Judge::Stream,
            Self::Unserved => Judge::Served,
            Self::Stall => Judge::Stall,
            Self::Unconfirmed => Judge::Unconfirmed,
            Self::Vanished => Judge::Laws,
            Self::Hoard => Judge::Bounded,
        }
    }
}
