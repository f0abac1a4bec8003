//! The observer of a simulated run, which receives the records while the run is in progress.

use crate::{HostId, Record, What};
use wire::{Iface, Instant, Packet, PacketId};

/// An observer that receives the records of a run one by one, in the order of the run. Packets are borrowed, so that
/// only an observer that keeps them needs a copy.
pub trait Witness {
    /// Is called when a node received a packet from an interface, or from its host's own stack ([`Iface::HOST`]). The
    /// record is [`What::Received`].
    fn received(&mut self, at: Instant, host: HostId, iface: Iface, packet: &Packet);

    /// Is called when a node sent a packet by an interface, or to its host's own stack ([`Iface::HOST`]). The record is
    /// [`What::Sent`].
    fn sent(&mut self, at: Instant, host: HostId, iface: Iface, packet: &Packet);

    /// Is called for each record that is neither [`What::Received`] nor [`What::Sent`].
    fn happened(&mut self, at: Instant, host: HostId, what: What);

    /// Is called when a link has duplicated a frame: `more` copies beyond the first one are on the link now.
    fn doubled(&mut self, _packet: PacketId, _more: u8) {}

    /// Is called after the start of a run and after each event, when all immediate results are recorded. Each copy of a
    /// packet that the event made was reported before this call.
    fn settled(&mut self) {}

    /// Returns whether the observer has no room for more records. If so, the run ends.
    fn is_full(&self) -> bool {
        false
    }
}

/// Keeps all records in memory, in order.
impl Witness for Vec<Record> {
    fn received(&mut self, at: Instant, host: HostId, iface: Iface, packet: &Packet) {
        self.push(Record { at, host, what: What::Received(iface, packet.clone()) });
    }

    fn sent(&mut self, at: Instant, host: HostId, iface: Iface, packet: &Packet) {
        self.push(Record { at, host, what: What::Sent(iface, packet.clone()) });
    }

    fn happened(&mut self, at: Instant, host: HostId, what: What) {
        self.push(Record { at, host, what });
    }
}
