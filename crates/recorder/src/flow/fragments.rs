//! SCTP packets that leave their host in IP fragments, because a chunk does not fit the MTU of the new path. Each
//! fragment has a separate packet identity. The reassembled packet has the identity of the fragment that was sent
//! last.

use std::collections::{BTreeMap, BTreeSet};
use trace::HostId;
use wire::fragment::Reassembly;
use wire::ipv4::Header;
use wire::{Instant, Ipv4Addr, Packet, PacketId};

/// The fragments of each packet, and which of them have arrived.
#[derive(Debug, Default)]
pub(super) struct Fragments {
    /// For each sending host, the reassembly of packets whose fragments have not all left the host.
    sent: BTreeMap<HostId, Reassembly>,
    /// The fragments in `sent`, by sending host, source, destination and IP identification.
    open: BTreeMap<(HostId, Ipv4Addr, Ipv4Addr, u16), BTreeSet<PacketId>>,
    /// For each fragment, the identity of the reassembled packet.
    of: BTreeMap<PacketId, PacketId>,
    /// For each reassembled packet of which no fragment was lost, the fragments that have not arrived.
    missing: BTreeMap<PacketId, BTreeSet<PacketId>>,
}

/// Whether a transmitted packet is a fragment.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// A packet that is not a fragment of an SCTP packet.
    Whole,
    /// A fragment of an SCTP packet of which not all fragments have left.
    Part,
    /// The last fragment of an SCTP packet, with the bytes of the whole SCTP packet, without an IP header.
    Last(Vec<u8>),
}

impl Fragments {
    /// Records a packet that leaves its origin.
    pub(super) fn left(&mut self, at: Instant, host: HostId, packet: &Packet) -> Left {
        let Ok((header, payload)) = Header::parse(&packet.bytes) else { return Left::Whole };
        if !header.is_fragment() || header.protocol != sctp::PROTOCOL {
            return Left::Whole;
        }
        let name = (host, header.src, header.dst, header.id);
        let open = self.open.entry(name).or_default();
        if header.offset == 0 {
            // A first fragment begins a new packet. Earlier fragments with its identification belong to a packet that
            // never left as a whole.
            open.clear();
        }
        open.insert(packet.id);
        let Some(bytes) = self.sent.entry(host).or_default().take(at, &header, payload) else {
            return Left::Part;
        };
        let fragments = self.open.remove(&name).unwrap_or_default();
        self.of.extend(fragments.iter().map(|fragment| (*fragment, packet.id)));
        self.missing.insert(packet.id, fragments);
        Left::Last(bytes)
    }

    /// Records an arrival. If `id` is a fragment, returns its packet if the packet has now arrived as a whole; `None`
    /// if fragments are missing, or if the packet had already arrived or was lost. Returns any other `id` unchanged.
    pub(super) fn arrived(&mut self, id: PacketId) -> Option<PacketId> {
        let Some(whole) = self.of.get(&id) else { return Some(id) };
        let missing = self.missing.get_mut(whole)?;
        missing.remove(&id);
        if missing.is_empty() {
            self.missing.remove(whole);
            return Some(*whole);
        }
        None
    }

    /// Records a loss. If `id` is a fragment, returns its packet, which is now lost as a whole; `None` if the packet
    /// was already lost or had arrived. Returns any other `id` unchanged.
    pub(super) fn lost(&mut self, id: PacketId) -> Option<PacketId> {
        let Some(whole) = self.of.get(&id) else { return Some(id) };
        self.missing.remove(whole).map(|_| *whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Mac;

    const HOST: HostId = HostId(3);

    /// Returns three fragments of one SCTP packet, with the identities 1 to 3, and the bytes of the SCTP packet.
    fn fragments() -> (Vec<Packet>, Vec<u8>) {
        let bytes: Vec<u8> = (0..1200).map(|n| n as u8).collect();
        let header = Header::new(sctp::PROTOCOL, Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let cut = wire::fragment::cut(&header, &bytes, 508);
        let packet = |(id, bytes)| Packet { id: PacketId(id), ..Packet::new(Mac::ZERO, bytes) };
        ((1..).zip(cut).map(packet).collect(), bytes)
    }

    fn sent() -> Fragments {
        let (packets, bytes) = fragments();
        let mut fragments = Fragments::default();
        let left: Vec<Left> = packets.iter().map(|packet| fragments.left(Instant(7), HOST, packet)).collect();
        assert_eq!(left, [Left::Part, Left::Part, Left::Last(bytes)]);
        fragments
    }

    #[test]
    fn a_packet_arrives_with_the_last_of_its_fragments() {
        let mut fragments = sent();
        let arrived = [2, 3, 3, 1, 1].map(|id| fragments.arrived(PacketId(id)));
        assert_eq!(arrived, [None, None, None, Some(PacketId(3)), None]);
    }

    /// If a packet never left as a whole, its fragments do not belong to a later packet with the same 16-bit
    /// identification.
    #[test]
    fn fragments_of_a_packet_that_never_left_whole_are_not_those_of_the_next() {
        let (packets, bytes) = fragments();
        let mut fragments = Fragments::default();
        assert_eq!(fragments.left(Instant(0), HOST, &packets[0]), Left::Part);
        let later = |packet: &Packet| Packet { id: PacketId(packet.id.0 + 10), ..packet.clone() };
        let at = Instant(60_000_000_000);
        let left: Vec<Left> = packets.iter().map(|packet| fragments.left(at, HOST, &later(packet))).collect();
        assert_eq!(left, [Left::Part, Left::Part, Left::Last(bytes)]);
        let arrived = [11, 12, 13].map(|id| fragments.arrived(PacketId(id)));
        assert_eq!(arrived, [None, None, Some(PacketId(13))]);
    }

    #[test]
    fn a_packet_is_lost_once_with_the_first_of_its_fragments() {
        let mut fragments = sent();
        assert_eq!(fragments.arrived(PacketId(1)), None);
        assert_eq!([2, 3].map(|id| fragments.lost(PacketId(id))), [Some(PacketId(3)), None]);
        assert_eq!(fragments.arrived(PacketId(2)), None, "it is not whole any more");
    }

    #[test]
    fn what_is_no_fragment_stands_for_itself() {
        let mut fragments = sent();
        assert_eq!(
            (fragments.arrived(PacketId(9)), fragments.lost(PacketId(9))),
            (Some(PacketId(9)), Some(PacketId(9)))
        );
    }
}
