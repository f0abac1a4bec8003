//! What an association reports to its user, and the types of its requests.

use crate::message::Code;
use crate::path::PathState;
use wire::Ipv4Addr;

/// The state of an association (RFC 9260, section 4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum State {
    /// No association, or it has ended.
    Closed,
    /// INIT was sent.
    CookieWait,
    /// COOKIE ECHO was sent.
    CookieEchoed,
    /// Data may be sent in both directions.
    Established,
    /// Our user has finished, and not all of its data are acknowledged.
    ShutdownPending,
    /// SHUTDOWN was sent.
    ShutdownSent,
    /// The peer has finished, and not all of our data are acknowledged.
    ShutdownReceived,
    /// SHUTDOWN ACK was sent.
    ShutdownAckSent,
}

/// A change of our own addresses that the peer is asked to apply (RFC 5061).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Change {
    /// Add this address.
    Add(Ipv4Addr),
    /// Delete this address.
    Delete(Ipv4Addr),
    /// Send to this address first.
    SetPrimary(Ipv4Addr),
}

impl Change {
    /// Returns the address that is to be added, deleted or made primary.
    pub const fn address(self) -> Ipv4Addr {
        match self {
            Self::Add(address) | Self::Delete(address) | Self::SetPrimary(address) => address,
        }
    }
}

/// Why a request was refused locally.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RequestError {
    /// The peer does not support address changes, or no authentication of them was agreed.
    Unsupported,
    /// The association is not open.
    NotOpen,
    /// The address is already one of ours.
    Known,
    /// The address is not one of ours or, for a request about the peer's, not a (confirmed) one of the peer.
    Unknown,
    /// It is our last address, which must remain.
    Last,
    /// Not a unicast address.
    Address,
    /// More than 16 changes in one request, or too many requests wait already.
    Full,
}

/// How the peer answered a change.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ChangeOutcome {
    /// The peer applied it.
    Done,
    /// The peer refused it with this cause. `None`: it refused an earlier change of the same chunk.
    Refused(Option<Code>),
}

/// Why an association ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Ended {
    /// By an orderly shutdown of either end: all data have arrived.
    Finished,
    /// This end aborted it.
    Aborted,
    /// The peer aborted it, with this cause if it named one.
    AbortedByPeer(Option<Code>),
    /// The peer did not answer for too long.
    TimedOut,
    /// The peer violated the protocol.
    Violation(&'static str),
    /// The peer does not support what this endpoint requires.
    Unsupported,
    /// The peer's host does not have SCTP.
    Unreachable,
}

/// An event of an association, in order of occurrence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AssociationEvent {
    /// The association is established.
    Opened,
    /// The peer restarted: it had lost the state of this association (RFC 9260, section 5.2.4, A).
    Restarted {
        /// `true`: no data had come from the peer, and it had acknowledged none. All written data are sent again, and
        /// nothing is lost in either direction. `false`: data that were not acknowledged are lost, and both
        /// directions begin again.
        intact: bool,
    },
    /// The receive buffer has become readable: read until `None`.
    Data,
    /// The send buffer has room for this number of further bytes, in addition to those reported before.
    Room(usize),
    /// The state of an address of the peer has changed.
    Path(Ipv4Addr, PathState),
    /// The peer added an address.
    PeerAdded(Ipv4Addr),
    /// The peer has not answered this number of time-outs in a row: at least 2, or 1 while the association opens. It
    /// may have moved.
    Silent(u32),
    /// The peer deleted an address.
    PeerDeleted(Ipv4Addr),
    /// The peer set its primary address: new data go there from now on.
    PeerPrimary(Ipv4Addr),
    /// New data go to another address of the peer.
    Switched {
        /// The address until now.
        from: Ipv4Addr,
        /// The address from now on.
        to: Ipv4Addr,
    },
    /// The newest data came to another of our addresses than the data before.
    Arriving(Ipv4Addr),
    /// The peer answered a change of our own addresses.
    Changed(Change, ChangeOutcome),
    /// The peer has finished: nothing more can be written, and no more data come.
    PeerFinished,
    /// The association has ended. Data that were not read yet can still be read.
    Closed(Ended),
}
