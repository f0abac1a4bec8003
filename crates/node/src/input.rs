//! What goes in: all that can happen to a role.

use crate::{Key, StreamEvent, StreamId, Value, Why};
use wire::{Cell, Iface, Instant, Mac, Packet, Prefix, WallTime};

/// All that can happen to a role. A list of `(Instant, Input)` is a complete recording.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Input<'a> {
    /// The node came up: its table is empty.
    Start(&'a Boot),
    /// The role's `deadline` has come.
    Timeout,
    /// A packet, owned: a role may keep it or send it on without a copy.
    Packet(Rx, Packet),
    /// An interface changed.
    Link(Iface, Link<'a>),
    /// A route of this role came to the end of its `life`; when it was last used. Told once; a use or a new route
    /// arms it again.
    Idle(Key, Instant),
    /// To the user of a stream.
    Stream(StreamId, StreamEvent<'a>),
    /// From the operator; answered by exactly one [`crate::Act::Answer`].
    Command(CommandId, &'a Command),
}

/// How a packet reached a role.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Rx {
    /// The interface it came in by.
    pub iface: Iface,
    /// Why this role is handed it.
    pub why: Why,
}

/// What a node is told when it starts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Boot {
    /// The host's wall clock at [`Instant::ZERO`].
    pub wall: WallTime,
}

/// What became of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Link<'a> {
    /// It carries packets.
    Up {
        /// The cell that a radio is tuned to; `None` for a wire.
        cell: Option<Cell>,
        /// Its own link address.
        mac: Mac,
        /// The largest datagram it takes, in bytes.
        mtu: u16,
        /// Its name, as the configuration has it.
        name: &'a str,
    },
    /// It does not, and why.
    Down(&'a str),
}

/// Traffic that a role wants, as data: a daemon opens sockets from it, a simulator sorts by it. The first role takes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Listen {
    /// Addressed to this host.
    Local(Proto),
    /// Passing through, to a destination of this prefix.
    Transit(Proto, Prefix),
}

/// What kind of packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Proto {
    /// ICMP of one type.
    Icmp(u8),
}

/// Which command an answer belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CommandId(pub u32);

/// What an operator asks of a running node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Command {
    /// What to do, as `handoff`.
    pub verb: String,
    /// How.
    pub args: Value,
}
