//! The inputs of a role.

use crate::{PuntReason, RoleId, RouteKey, StreamEvent, StreamId, StreamOp, Value};
use wire::ipv4::{self, Header};
use wire::{Cell, Iface, Instant, InterfaceAddress, Ipv4Addr, Mac, Malformed, Packet, Prefix, WallTime};

/// Everything that can happen to a role. A list of `(Instant, Input)` is a complete recording of a role's inputs.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Input<'a> {
    /// The node has started. No role has set a route or a policy yet.
    Start(&'a Boot),
    /// The `deadline` of the role was reached.
    Timeout,
    /// A packet for this role. The role owns it, so it can keep or send it without a copy.
    Packet(Rx, Packet),
    /// A packet used a route of this role with [`table::Route::notice`]. The value says how the packet arrived, and has its
    /// header as it was then. The packet itself is forwarded. Of several packets with the same source and destination,
    /// one is reported in each interval of the route.
    Notice(Rx),
    /// An event of an interface.
    Link(Iface, Link<'a>),
    /// The lifetime of a route of this role has ended. The instant is the last use of the route. The end is not
    /// reported again until the route is used or set.
    Idle(RouteKey, Instant),
    /// An event of a stream that this role uses.
    Stream(StreamId, StreamEvent<'a>),
    /// A request of the operator, answered by exactly one [`crate::Act::Answer`].
    Command(CommandId, &'a Command),
    /// An act of this role failed.
    Failed(&'a Fault),
    /// The wall clock was set. The value is the new wall-clock time of [`Instant::ZERO`], as in [`Boot::wall`].
    Wall(WallTime),
    /// A request for a stream, to the role that provides its transport. [`Effect::Served`] answers. A driver can make
    /// such a request for a program outside, with a number from [`StreamId::OUTSIDE`] on. Then [`crate::Act::Served`]
    /// answers.
    ///
    /// [`Effect::Served`]: crate::Effect::Served
    Serve(StreamId, StreamOp),
    /// The record of this key is durable. Each record that the role requested is answered once, by this input or by
    /// [`Input::Failed`], in the order requested.
    Stored(&'a [u8]),
    /// A notification from another role of this node.
    Notification(&'a Notification),
}

/// What one protocol may learn from another protocol on the same host. Each variant must be a term that several
/// protocols share, so that the protocols do not depend on each other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Notification {
    /// The router by which this host's packets leave from now on: the agent to which the host attached.
    Gateway(Ipv4Addr),
    /// A role has acquired this address on this interface, for example by DHCP. The address is usable: it is an address
    /// of this host already. The last value is the router of the link; `None` if it is not known.
    AddressAcquired(Iface, InterfaceAddress, Option<Ipv4Addr>),
    /// A role gives up an address that it has reported as acquired. The address is not usable any more.
    AddressLost(Iface, InterfaceAddress),
    /// Another station of this link uses this address, or probes it to use it: the node has received an ARP message that
    /// shows this (RFC 5227, section 2.1.1). The address is one of this host, or one that a role watches
    /// ([`crate::Neighbor::Watched`]). The node itself sends this notification, to all roles.
    AddressInUse(Iface, Ipv4Addr, Mac),
    /// This host delivers packets for the second address that arrive in a tunnel from the first one: it is the exit of
    /// their tunnel. With `false`, it does not any more.
    TunnelExit(Ipv4Addr, Ipv4Addr, bool),
    /// This host sends packets in a tunnel from the first address to the second one: it is the entry of the tunnel. With
    /// `false`, it does not any more.
    TunnelEntry(Ipv4Addr, Ipv4Addr, bool),
}

/// How a packet reached a role, and the header of the packet. The node has checked the header, so a role need not parse
/// the packet again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Rx {
    /// The interface on which the packet arrived.
    pub iface: Iface,
    /// The reason why this role receives the packet.
    pub why: PuntReason,
    /// The outer source and destination of the tunnel out of which this node took the packet, or `None` if it was in no
    /// tunnel.
    pub tunnel: Option<(Ipv4Addr, Ipv4Addr)>,
    /// The header of the packet.
    pub header: Header,
}

impl Rx {
    /// Returns the `Rx` of a packet with this header. The packet was in no tunnel.
    pub const fn new(iface: Iface, why: PuntReason, header: Header) -> Self {
        Self { iface, why, tunnel: None, header }
    }

    /// Returns the `Rx` of `packet`, which was in no tunnel. Fails if the header of the packet is malformed.
    pub fn parse(iface: Iface, why: PuntReason, packet: &Packet) -> Result<Self, Malformed> {
        Ok(Self::new(iface, why, Header::parse(&packet.bytes)?.0))
    }

    /// Returns the IP payload of `packet`, the packet that came with this `Rx`.
    pub fn payload<'a>(&self, packet: &'a Packet) -> &'a [u8] {
        debug_assert_eq!(Header::parse(&packet.bytes), Ok((self.header, ipv4::payload(&packet.bytes))));
        ipv4::payload(&packet.bytes)
    }
}

/// What a role receives when its node starts: the wall-clock time, and the records that the role has stored.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Boot {
    /// The host's wall clock at [`Instant::ZERO`].
    pub wall: WallTime,
    /// The records that the role has stored, sorted by key, with the value of the last [`crate::Act::Store`].
    pub stored: Vec<(Vec<u8>, Vec<u8>)>,
    /// False if the node may have lost records when it last ended, for example in a crash. True at the first start.
    pub clean: bool,
}

impl Boot {
    /// Returns the `Boot` of a first start: no record is stored.
    pub const fn new(wall: WallTime) -> Self {
        Self { wall, stored: Vec::new(), clean: true }
    }
}

impl Default for Boot {
    fn default() -> Self {
        Self::new(WallTime::default())
    }
}

/// An act that a driver could not execute, and why.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Fault {
    /// The role that requested the act.
    pub role: RoleId,
    /// The act that failed.
    pub act: FailedAct,
    /// The reason, for example the text of the operating system's error.
    pub why: String,
}

/// The act that a driver could not execute: which act, and its record or address.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FailedAct {
    /// The record of this key could not be stored, and is unchanged. What the role requested after the record, for the
    /// same input, was withdrawn: no packet was sent, no route was set, and a command was answered with the error. All
    /// other records that were pending, of all roles, have failed at the same time.
    Store(Vec<u8>),
    /// The host's own stack could not add (`true`) or remove this address of the interface. An address that could not
    /// be added is removed from the node too.
    Address(Iface, InterfaceAddress, bool),
}

/// An event of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Link<'a> {
    /// The interface carries packets now.
    Up {
        /// The cell that a radio is tuned to; `None` for a wire.
        cell: Option<Cell>,
        /// The link address of the interface.
        mac: Mac,
        /// The MTU in bytes.
        mtu: u16,
        /// The name of the interface in the configuration.
        name: &'a str,
    },
    /// The interface carries no packets, for this reason. Exception: with [`Link::UNSUPPORTED`], the state of the
    /// interface has not changed.
    Down(&'a str),
    /// A sample of signal strength: a cell, and its level in dBm. The radio need not be tuned to this cell.
    Heard(Cell, i16),
}

impl Link<'_> {
    /// The radio cannot tune to the requested cell; it stays tuned as it was.
    pub const UNSUPPORTED: &'static str = "unsupported";
    /// The radio does not receive the cell to which it is tuned, or was to tune. The interface carries no packets until
    /// the next [`Link::Up`].
    pub const OUT_OF_RANGE: &'static str = "out of range";
    /// The interface has no carrier: for example, its wire is cut, or it is the radio of a base station that is
    /// switched off.
    pub const NO_CARRIER: &'static str = "no carrier";
    /// The host has tuned the interface to another cell, and its present cell is full duplex: the cable was unplugged.
    /// The next [`Link::Up`] or [`Link::Down`] reports whether the cable was plugged in again.
    pub const UNPLUGGED: &'static str = "unplugged";
}

/// Traffic that a role requests, besides the connections that it intercepts ([`crate::Role::intercepts`]). If several
/// roles match, the first one is given the packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Listen {
    /// Packets of this kind to an address of this host.
    Local(Proto),
    /// Packets of this kind to a destination in this prefix, even if it is not an address of this host.
    Transit(Proto, Prefix),
    /// Packets of any protocol that arrive on this interface with this group or broadcast address as destination.
    Group(Iface, Ipv4Addr),
    /// ICMP errors to an address of this host, about a packet of this kind.
    IcmpAbout(Proto),
}

/// A kind of packet, by the protocol in the IP header and, for ICMP and UDP, the type or port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Proto {
    /// ICMP messages of this type.
    Icmp(u8),
    /// UDP to this port. In an ICMP error: a datagram to or from this port.
    Udp(u16),
    /// A tunnel of any kind, for example IP in IP (RFC 2003).
    IpIp,
    /// The protocol with this number in the IP header, for example 132 for SCTP.
    Ip(u8),
}

/// The number of a command, which its answer repeats.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CommandId(pub u32);

/// A request of an operator to a running node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Command {
    /// The name of the command, for example `handoff`.
    pub verb: String,
    /// The arguments of the command.
    pub args: Value,
}
