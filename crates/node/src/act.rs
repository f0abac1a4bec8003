//! Output: [`Effect`]s from a role to its node, and [`Act`]s from the node to its driver.

use crate::stream::OwnedStreamEvent;
use crate::{
    AppEvent, CommandId, IngressPolicy, Mark, Notification, Port, Route, RouteKey, Rx, StreamId, StreamOp,
    Value,
};
use wire::{Cell, Iface, InterfaceAddress, Ipv4Addr, Mac, Packet, Reason};

/// A request of a role to its node. The node resolves each request; an [`Effect::Do`] also goes to the driver.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Effect {
    /// Sends this packet. With an interface, the packet leaves by this interface, to the link address in its frame
    /// header. If the link address of an IPv4 packet is [`Mac::ZERO`] and the interface has an address, ARP finds the
    /// neighbor for the destination. With `None`, the table decides as for a packet of this host.
    Send(Option<Iface>, Packet),
    /// Drops this packet, which arrived on this interface, for this reason.
    Discard(Iface, Packet, Reason),
    /// An operation on a stream, executed by the provider of its transport.
    Stream(StreamId, StreamOp),
    /// Passes this act to the driver.
    Do(Act),
    /// Declines this packet. The next role that listens for the packet receives it. If no other role listens, the node
    /// handles the packet as if no role had listened. Exceptions are packets from this host, packets out of a tunnel,
    /// and packets that a route or an ingress policy passed to the role. They go to the host's own stack, or are
    /// dropped if they are not addressed to this host.
    Pass(Rx, Packet),
    /// An event of a stream that this role provides, for the stream's user. The event is ignored if the stream does not
    /// exist or is closed, or if another role provides it.
    Served(OwnedStreamEvent),
    /// Notifies the other roles of this node ([`crate::Input::Notification`]).
    Notify(Notification),
}

/// An output of a node for its driver: a request, or a report of what happened. The driver handles the acts in the
/// order in which [`crate::Outbox::next_act`] returns them. Drivers match this type without a wildcard, so that the
/// compiler reports a new variant.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Act {
    /// Sends the packet by this interface. [`Iface::HOST`] is this host's own stack.
    Transmit(Iface, Packet),
    /// The packet, which arrived on this interface or was to leave by it, was dropped for this reason. The ledger
    /// counts these acts.
    Drop(Iface, Packet, Reason),
    /// A role set or removed (`None`) a route. The node already has the change. A driver that mirrors the table uses
    /// [`crate::MirrorAct`], which has every change.
    Route(RouteKey, Option<Route>),
    /// A role set or removed (`None`) the ingress policy of a port. The node already has the change.
    IngressPolicy(Port, Option<IngressPolicy>),
    /// Requests that the radio of this interface tunes to this cell. [`crate::Link::Up`] or [`crate::Link::Down`]
    /// answers, unless another `Tune` follows before the radio is tuned.
    Tune(Iface, Cell),
    /// Tunes the radio of this interface to this cell, sends this one packet, and tunes back, as one operation.
    SendInCell(Iface, Cell, Packet),
    /// An operation on a stream whose transport the driver provides.
    Stream(StreamId, StreamOp),
    /// A measured event. No role is notified of it.
    Mark(Mark),
    /// The answer to a command: a value, or the text of an error.
    Answer(CommandId, Result<Value, String>),
    /// A role set or removed (`None`) how this host treats ARP for an address on an interface. The node already has the
    /// change, and answers ARP itself.
    Neighbor(Iface, Ipv4Addr, Option<Neighbor>),
    /// Adds an address to an interface (`true`) or removes it. The node already has the change; the host's own stack
    /// must follow.
    Address(Iface, InterfaceAddress, bool),
    /// Stores a record under this key, or removes it (`None`). What the role requests later for the same input waits
    /// for the driver's report. The driver reports that the record is durable ([`crate::Node::resume`]), or could not
    /// be stored ([`crate::Node::withdraw`]). Several records may be pending. The driver must report on each of them,
    /// in the order of these acts. The node has put the role's name before the key, so that keys of different roles
    /// differ.
    Store(Vec<u8>, Option<Vec<u8>>),
    /// An event of a stream that the driver requested from a role, on behalf of a program outside
    /// ([`crate::Input::Serve`]). The driver numbers such a stream, from [`StreamId::OUTSIDE`] on. The node numbers an
    /// accepted stream.
    Served(OwnedStreamEvent),
    /// An act for the records: an event of a stream that a role provides, or a request to open such a stream or to
    /// listen. No role is notified of this act. A driver itself records the events of the streams that the driver
    /// provides.
    Delivered(AppEvent),
}

/// How a node treats ARP for an address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Neighbor {
    /// The address is at this link address, whatever ARP messages say.
    At(Mac),
    /// The address is another host's. Requests for it are answered with the link address of this node (proxy ARP).
    Proxy,
    /// The address is this host's. Requests for it are not answered, except those from a link address that a
    /// [`Neighbor::At`] of the interface contains. No requests are sent from the address (RFC 5944, section 4.6).
    Mute,
    /// The address is not this host's, and a role wants to know whether another host uses it (RFC 5227, section 2.1).
    /// An ARP message from a host that has the address, or probes it, is reported to all roles
    /// ([`Notification::AddressInUse`]). Until the setting is removed, ARP is received on the interface even if the
    /// interface has no address.
    Watched,
}
