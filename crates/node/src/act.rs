//! What goes out: [`Effect`]s from a role to its node, [`Act`]s from the node to whoever drives it.

use crate::{CommandId, Gate, Key, Mark, Port, Route, StreamId, StreamOp, Value};
use wire::{Cell, Iface, Packet, Reason};

/// What a role asks for. The node resolves all but [`Effect::Do`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Effect {
    /// Send this packet: out by an interface as it is addressed, or (`None`) as the table decides for this host.
    Send(Option<Iface>, Packet),
    /// The packet's journey ends here; the interface is the one that it came in by.
    Discard(Iface, Packet, Reason),
    /// An operation on a stream, for the transport that provides it.
    Stream(StreamId, StreamOp),
    /// Have this carried out.
    Do(Act),
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
}
