//! The events that an association reports to its user, its states, and the types of requests to change addresses.

use crate::message::Code;
use crate::path::PathState;
use wire::Ipv4Addr;

/// The state of an association (RFC 9260, section 4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum State {
    /// CLOSED: the association does not exist yet, or it has ended.
    Closed,
    /// COOKIE-WAIT: INIT was sent, and INIT ACK has not come yet.
    CookieWait,
    /// COOKIE-ECHOED: COOKIE ECHO was sent, and COOKIE ACK has not come yet.
    CookieEchoed,
    /// ESTABLISHED: data may be sent in both directions.
    Established,
    /// SHUTDOWN-PENDING: the user of this end has finished, and not all of its data are acknowledged.
    ShutdownPending,
    /// SHUTDOWN-SENT: SHUTDOWN was sent, and SHUTDOWN ACK has not come yet.
    ShutdownSent,
    /// SHUTDOWN-RECEIVED: the peer has finished, and not all data of this end are acknowledged.
    ShutdownReceived,
    /// SHUTDOWN-ACK-SENT: SHUTDOWN ACK was sent, and SHUTDOWN COMPLETE has not come yet.
    ShutdownAckSent,
}

/// A change of our own addresses that the peer is asked to apply (RFC 5061).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Change {
    /// Add this address.
    Add(Ipv4Addr),
    /// Delete this address.
    Delete(Ipv4Addr),
    /// Make this address the primary destination of the peer's data.
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

/// Why this end refused a request of its own user.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RequestError {
    /// The peer does not support address changes with authentication.
    Unsupported,
    /// The association is not open.
    NotOpen,
    /// The address to add is one of ours already, or its deletion is not answered yet.
    Known,
    /// The address is not one of ours. For a request about an address of the peer: the peer does not have the
    /// address, or the address is not confirmed and so cannot be primary.
    Unknown,
    /// The address to delete is our last one, which must remain.
    Last,
    /// The address is not a unicast address.
    Address,
    /// The request has more than 16 changes, or 16 requests wait already.
    Full,
}

/// The result of a requested change.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ChangeOutcome {
    /// The peer applied the change, or did not have the address that was to be deleted.
    Done,
    /// The peer refused the change with this cause. `None`: the peer named no cause, refused an earlier change of the
    /// same chunk, or will not answer (it has restarted, or does not support changes). Or no address of ours could send
    /// the request.
    Refused(Option<Code>),
}

/// Why an association ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Ended {
    /// One of the ends shut the association down, and all data have arrived.
    Finished,
    /// The user of this end aborted the association, or finished it while it was opening.
    Aborted,
    /// The peer aborted the association, with this cause if the peer named one.
    AbortedByPeer(Option<Code>),
    /// The peer did not answer: the limit of retransmissions was exceeded, or a shutdown took five times RTO.Max
    /// (T5).
    TimedOut,
    /// The peer violated the protocol; the text says how.
    Violation(&'static str),
    /// The peer does not support authenticated address changes, which this endpoint requires.
    Unsupported,
    /// An ICMP error reported that the peer's host does not have SCTP. Or the cookie of a host that did not prove to be
    /// the peer failed, and no address of ours can open the association again.
    Unreachable,
}

/// An event of an association. Events are reported in the order in which they occur.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AssociationEvent {
    /// The association is established.
    Opened,
    /// The peer restarted: it had lost the state of this association (RFC 9260, section 5.2.4, A).
    Restarted {
        /// `true`: no data had come from the peer, and the peer had acknowledged none. All written data are sent
        /// again, and nothing is lost in either direction. `false`: data that were not acknowledged are lost, and
        /// both directions begin again.
        intact: bool,
    },
    /// The receive buffer has become readable: read until `None`.
    Data,
    /// The room of the send buffer has grown by this number of bytes. Directly after [`Self::Opened`], the value is the
    /// whole room.
    Room(usize),
    /// The path to this address of the peer has changed to this state.
    Path(Ipv4Addr, PathState),
    /// The peer added this address. It is not confirmed yet.
    PeerAdded(Ipv4Addr),
    /// The peer has not answered this number of time-outs in a row: at least 2, or 1 while the association opens. The
    /// peer may have moved.
    Silent(u32),
    /// The peer deleted this address.
    PeerDeleted(Ipv4Addr),
    /// This address of the peer is the primary one now, as the peer requested.
    PeerPrimary(Ipv4Addr),
    /// New data go to another address of the peer.
    Switched {
        /// The destination of new data until now.
        from: Ipv4Addr,
        /// The destination of new data from now on.
        to: Ipv4Addr,
    },
    /// A DATA chunk came to this address of ours, and the previous DATA chunk came to another address of ours.
    Arriving(Ipv4Addr),
    /// A change of our own addresses was answered, or will not be answered: see [`ChangeOutcome`].
    Changed(Change, ChangeOutcome),
    /// The peer has sent SHUTDOWN: no more messages can be written, and no more data come.
    PeerFinished,
    /// The association has ended. Data that were not read yet can still be read.
    Closed(Ended),
}
