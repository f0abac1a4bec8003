//! Observers of a run while it is running.

use crate::{HostId, Record, What};
use wire::{Iface, Instant, Packet, PacketId};

/// An observer that is notified of everything in a run, in order. Packets are borrowed, so that only an observer that
/// keeps them needs a copy.
pub trait Witness {
    /// The node received a packet from an interface: [`What::Received`].
    fn received(&mut self, at: Instant, host: HostId, iface: Iface, packet: &Packet);

    /// The node sent a packet on the link: [`What::Sent`].
    fn sent(&mut self, at: Instant, host: HostId, iface: Iface, packet: &Packet);

    /// Anything else.
    fn happened(&mut self, at: Instant, host: HostId, what: What);

    /// A link has copied a frame: it will deliver `more` copies in addition.
    fn doubled(&mut self, _packet: PacketId, _more: u8) {}

    /// An event and all its immediate results are complete: every copy that it made of a packet was reported.
    fn settled(&mut self) {}

    /// Whether it has no room for more: the run ends then.
    fn is_full(&self) -> bool {
        false
    }
}

/// Keeps everything that it is notified of.
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
