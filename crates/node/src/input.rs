//! What goes in: all that can happen to a role.

use crate::{Key, RoleId, StreamEvent, StreamId, StreamOp, Tuple, Value, Why};
use std::hash::{Hash, Hasher};
use wire::{Cell, Iface, Instant, InterfaceAddress, Ipv4Addr, Mac, Packet, Prefix, WallTime};

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
    /// Something that this role asked for could not be carried out.
    Failed(&'a Fault),
    /// The wall clock was set: what it says now of [`Instant::ZERO`], as [`Boot::wall`] did.
    Wall(WallTime),
    /// To the role that provides the transport asked for: what the user of a stream wants. [`Effect::Served`] answers.
    /// From a driver: what a program outside wants of such a stream, by a number from [`StreamId::OUTSIDE`] on;
    /// [`crate::Act::Served`] answers.
    ///
    /// [`Effect::Served`]: crate::Effect::Served
    Serve(StreamId, StreamOp),
    /// The record of this key is durable: the first of those that this role has asked for and not been told of. Each is
    /// told of, by this or by [`Input::Failed`], in the order asked.
    Stored(&'a [u8]),
    /// Another role of this node has something to tell.
    News(&'a News),
}

/// What one protocol may learn from another on the same host. Closed: whoever wants to know more needs a noun that two
/// protocols have in common.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum News {
    /// From now on this host's packets leave by this router, the agent that it attached to.
    Gateway(Ipv4Addr),
}

/// How a packet reached a role.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Rx {
    /// The interface it came in by.
    pub iface: Iface,
    /// Why this role is handed it.
    pub why: Why,
    /// The outer source and destination, if it was taken out of a tunnel here.
    pub tunnel: Option<(Ipv4Addr, Ipv4Addr)>,
}

impl Rx {
    /// A packet that came as it is, in no tunnel.
    pub const fn new(iface: Iface, why: Why) -> Self {
        Self { iface, why, tunnel: None }
    }
}

/// What a node is told when it starts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Boot {
    /// The host's wall clock at [`Instant::ZERO`].
    pub wall: WallTime,
    /// What the role has stored, by key, in the order of keys: what [`crate::Act::Store`] said last.
    pub stored: Vec<(Vec<u8>, Vec<u8>)>,
    /// Whether the last run ended in order, or there was none: all that it did was stored.
    pub clean: bool,
}

impl Boot {
    /// A first start.
    pub const fn new(wall: WallTime) -> Self {
        Self { wall, stored: Vec::new(), clean: true }
    }
}

impl Default for Boot {
    fn default() -> Self {
        Self::new(WallTime::default())
    }
}

impl Hash for Boot {
    /// A first start hashes as starts did before anything could be stored, so that a run of old has its old number.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.wall.hash(state);
        if !self.stored.is_empty() || !self.clean {
            (&self.stored, self.clean).hash(state);
        }
    }
}

/// What a driver could not carry out, and why.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Fault {
    /// Who asked for it.
    pub role: RoleId,
    /// What.
    pub undone: Undone,
    /// Why, in the words of whoever refused.
    pub why: String,
}

/// What was not carried out.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Undone {
    /// The record of this key is as it was before. All that the role asked for behind it, in the same step, was
    /// withdrawn: no packet left that told of it, no route was set, and a command was answered with the error. All records
    /// that it had asked for since fail likewise.
    Store(Vec<u8>),
    /// The host's own stack has not taken this address for the interface (`true`), or has not given it up. An address that
    /// it has not taken is taken from the node again.
    Address(Iface, InterfaceAddress, bool),
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
    /// It does not, and why. With [`Link::UNSUPPORTED`] it is as it was.
    Down(&'a str),
    /// A sample: a radio hears this cell so strongly, in dBm. It needs not be tuned to it.
    Heard(Cell, i16),
}

impl Link<'_> {
    /// The answer to a wish to tune that a radio cannot fulfil: it stays where it is.
    pub const UNSUPPORTED: &'static str = "unsupported";
    /// The radio no longer hears its cell, or not yet the one that it was pointed at: it carries nothing until it is
    /// tuned again.
    pub const OUT_OF_RANGE: &'static str = "out of range";
    /// The interface has lost its carrier: its wire was cut, or its base station's radio is off.
    pub const NO_CARRIER: &'static str = "no carrier";
}

/// Traffic that a role wants, as data: a daemon opens sockets from it, a simulator sorts by it. The first role takes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Listen {
    /// Addressed to this host.
    Local(Proto),
    /// Passing through, to a destination of this prefix.
    Transit(Proto, Prefix),
    /// Coming in by this interface, to this group or broadcast address; whatever it carries.
    Group(Iface, Ipv4Addr),
    /// ICMP errors to this host, about a packet of this kind that it sent or tunnelled.
    IcmpAbout(Proto),
    /// Segments of this TCP connection to its `local` end, and ICMP errors about those from there, whoever's address that
    /// is: passing through, or just out of a tunnel. Who listens takes them: passed on, they have no way but to the host.
    Connection(Tuple),
}

/// What kind of packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Proto {
    /// ICMP of one type.
    Icmp(u8),
    /// UDP to this port; of an error: about a datagram to or from it.
    Udp(u16),
    /// IP in IP.
    IpIp,
    /// Whatever the IP header names by this number, as 132 of SCTP.
    Ip(u8),
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
