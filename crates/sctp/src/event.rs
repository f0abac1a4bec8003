//! What an association tells its user.

use crate::message::Code;
use crate::path::PathState;
use wire::Ipv4Addr;

/// Where an association stands (RFC 9260, section 4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum State {
    /// There is none, or none any more.
    Closed,
    /// INIT is out.
    CookieWait,
    /// COOKIE ECHO is out.
    CookieEchoed,
    /// Data both ways.
    Established,
    /// We finished, and not all is acknowledged.
    ShutdownPending,
    /// SHUTDOWN is out.
    ShutdownSent,
    /// The peer finished, and not all of ours is acknowledged.
    ShutdownReceived,
    /// SHUTDOWN ACK is out.
    ShutdownAckSent,
}

/// A change of our own addresses that the peer is asked for (RFC 5061).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Change {
    /// We can be reached here too.
    Add(Ipv4Addr),
    /// We cannot be reached here any more.
    Delete(Ipv4Addr),
    /// Send here, please.
    SetPrimary(Ipv4Addr),
}

impl Change {
    /// The address.
    pub const fn address(self) -> Ipv4Addr {
        match self {
            Self::Add(address) | Self::Delete(address) | Self::SetPrimary(address) => address,
        }
    }
}

/// Why a change was not asked for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Cannot {
    /// The peer does not know how, or the two did not agree to authenticate it.
    Unsupported,
    /// The association is not open.
    NotOpen,
    /// That address is ours already.
    Known,
    /// It is not ours.
    Unknown,
    /// One must remain.
    Last,
    /// No unicast address.
    Address,
    /// Too many wait already.
    Full,
}

/// What became of a change that was asked for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Outcome {
    /// It is done.
    Done,
    /// The peer refused it, for this cause; without one, because an earlier one of the same chunk was refused.
    Refused(Option<Code>),
}

/// Why an association is closed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Ended {
    /// One of the two finished, and all has arrived.
    Finished,
    /// We gave it up.
    Aborted,
    /// The peer did, for this cause if it named one.
    AbortedByPeer(Option<Code>),
    /// The peer was silent for too long.
    TimedOut,
    /// The peer did what the protocol does not allow.
    Violation(&'static str),
    /// The peer cannot do what is required here.
    Unsupported,
    /// The peer's host does not know SCTP.
    Unreachable,
}

/// What happened, in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// The association is there.
    Opened,
    /// The peer began anew: its memory of this association is gone (RFC 9260, section 5.2.4, A).
    Restarted {
        /// Nothing had come from it, and it had acknowledged nothing: what was written goes to it again, and both streams of bytes are
        /// whole. Otherwise all that was not acknowledged is gone, and what comes begins anew.
        intact: bool,
    },
    /// There is something to read, and there was nothing before: read until `None`.
    Data,
    /// So many more bytes may be written; it adds up.
    Room(usize),
    /// The state of one of the peer's addresses.
    Path(Ipv4Addr, PathState),
    /// The peer added an address.
    PeerAdded(Ipv4Addr),
    /// Nothing is heard of the peer: so many time-outs in a row, at least two, or one while the association opens. It may be
    /// elsewhere.
    Silent(u32),
    /// It took one away.
    PeerDeleted(Ipv4Addr),
    /// It wants data there, and gets them there from now on.
    PeerPrimary(Ipv4Addr),
    /// New data go elsewhere.
    Switched {
        /// Where they went.
        from: Ipv4Addr,
        /// Where they go.
        to: Ipv4Addr,
    },
    /// The newest data came to another of our addresses than those before.
    Arriving(Ipv4Addr),
    /// A change of our own addresses was answered.
    Changed(Change, Outcome),
    /// The peer finished: nothing more can be written, and nothing more comes.
    PeerFinished,
    /// The end. What was not read can be read still.
    Closed(Ended),
}
