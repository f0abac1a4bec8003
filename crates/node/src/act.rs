//! What goes out: [`Effect`]s from a role to its node, [`Act`]s from the node to whoever drives it.

use crate::stream::Told;
use crate::{AppEvent, CommandId, Gate, Key, Mark, News, Port, Route, Rx, StreamId, StreamOp, Value};
use wire::{Cell, Iface, InterfaceAddress, Ipv4Addr, Mac, Packet, Reason};

/// What a role asks for. The node resolves all but [`Effect::Do`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Effect {
    /// Send this packet: out by an interface as it is addressed, or (`None`) as the table decides for this host. To
    /// [`Mac::ZERO`] by an interface that has an address: to the neighbor that ARP finds for its destination.
    Send(Option<Iface>, Packet),
    /// The packet's journey ends here; the interface is the one that it came in by.
    Discard(Iface, Packet, Reason),
    /// An operation on a stream, for the transport that provides it.
    Stream(StreamId, StreamOp),
    /// Have this carried out.
    Do(Act),
    /// Not for this role: the packet goes to the next that listens for it, or else on its way. What came by a route or
    /// a gate of this role has no way but to the host.
    Pass(Rx, Packet),
    /// What becomes of a stream that this role provides, for its user. Of a stream that is not open here, or is another
    /// role's, nobody is told.
    Served(Told),
    /// Tell the other roles of this node ([`crate::Input::News`]).
    Tell(News),
}

/// What a driver carries out, in order. Closed: drivers match it without a wildcard.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Act {
    /// Put the packet on the link; [`Iface::HOST`]: hand it to this host's stack.
    Transmit(Iface, Packet),
    /// The packet's journey ends here, for this reason. The ledger closes on these.
    Drop(Iface, Packet, Reason),
    /// The table's entry was set or removed; for drivers that mirror the table.
    Route(Key, Option<Route>),
    /// A port's gate was set or removed; for drivers that mirror the table.
    Gate(Port, Option<Gate>),
    /// Point the radio at that cell. A wish: [`crate::Link::Up`] or [`crate::Link::Down`] answers it.
    Tune(Iface, Cell),
    /// Go to that cell, send this one packet, come back; done as a whole.
    Visit(Iface, Cell, Packet),
    /// An operation on a stream whose transport the driver provides.
    Stream(StreamId, StreamOp),
    /// Something worth measuring happened. Observed only: no role ever learns of it.
    Mark(Mark),
    /// The answer to a command.
    Answer(CommandId, Result<Value, String>),
    /// How this host behaves towards ARP about an address on an interface was set or removed; for drivers that answer ARP
    /// themselves.
    Neighbor(Iface, Ipv4Addr, Option<Neighbor>),
    /// Give an interface an address, or take it away. The node itself has done so; the host's own stack has to follow.
    Address(Iface, InterfaceAddress, bool),
    /// Keep a record under this key, or remove it. What the same role asked for behind it in this step is not resolved
    /// before the driver says that the record is durable ([`crate::Node::resume`]), and is taken back if it cannot be stored
    /// ([`crate::Node::withdraw`]). Many may be under way; they are decided in the order of these acts, and a driver that
    /// was handed a record decides it some time. In a driver's hands the key begins with the role's name, so that roles
    /// cannot meet.
    Store(Vec<u8>, Option<Vec<u8>>),
    /// What became of a stream that the driver itself asked a role for, on behalf of a program outside
    /// ([`crate::Input::Serve`]). The number is one from [`StreamId::OUTSIDE`] on, or one that the role's was given.
    Served(Told),
    /// What happened to a stream that a role serves, for the records. Observed only, as of streams that the driver provides
    /// it sees by itself.
    Handed(AppEvent),
}

/// How a node behaves towards ARP about an address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Neighbor {
    /// The address is at this link address, whatever ARP says.
    At(Mac),
    /// Requests for the address, which is another's, are answered with our own link address.
    Proxy,
    /// Requests for the address, which is our own, are not answered, except those of a neighbor that is set with
    /// [`Neighbor::At`]; and none are made on its behalf (RFC 5944, section 4.6).
    Mute,
}
