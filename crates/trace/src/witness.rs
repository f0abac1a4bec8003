//! Who is told what happens in a run, while it happens.

use crate::{HostId, Record, What};
use wire::{Iface, Instant, Packet, PacketId};

/// Is told of all that happens, in order. Packets are borrowed: a witness that keeps one copies it, and one that only counts
/// does not pay for copies.
pub trait Witness {
    /// The node took a packet from an interface: [`What::Received`].
    fn received(&mut self, at: Instant, host: HostId, iface: Iface, packet: &Packet);

    /// The node put a packet on the link: [`What::Sent`].
    fn sent(&mut self, at: Instant, host: HostId, iface: Iface, packet: &Packet);

    /// All else.
    fn happened(&mut self, at: Instant, host: HostId, what: What);

    /// A link has made copies of a frame that it was given: that many more than one will come out of it.
    fn doubled(&mut self, _packet: PacketId, _more: u8) {}

    /// An event has happened, with all that followed from it at once: every copy of a packet that it made has been told of.
    fn settled(&mut self) {}

    /// Whether it has room for no more: the run ends.
    fn is_full(&self) -> bool {
        false
    }
}

/// Keeps everything.
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
