//! Packets that wait until ARP has resolved their next hop. The bytes are limited for each neighbor and in total. At a
//! limit, the oldest packet of the lowest [`Origin`] is dropped.

use std::collections::{BTreeMap, VecDeque};
use wire::{Iface, Ipv4Addr, Packet, PacketId};

/// The largest number of bytes that wait for one neighbor: 83 frames of 1500 bytes, nearly as in Linux
/// (`unres_qlen_bytes`, 212,992 bytes of buffers).
const EACH: usize = 128 << 10;
/// The largest number of bytes that wait for all neighbors.
const ALL: usize = 1 << 20;
/// The number of bytes that is added to the length of each packet, so that the number of empty packets is limited too.
const OVERHEAD: usize = 64;

/// The origin of a packet; a later variant is more important. The packets of roles keep other hosts reachable, so a
/// burst of data must not displace the packets of roles.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Origin {
    /// Another host sent the packet, and this host forwards it.
    Forwarded,
    /// The IP stack of this host sent the packet, or the node itself.
    Host,
    /// A role of this host created the packet.
    Role,
}

impl Origin {
    /// Returns the origin of a packet that a role sends. A packet with an identity was received by the role before, so
    /// the role only forwards it.
    pub(crate) fn of_role(packet: &Packet) -> Self {
        if packet.id == PacketId::NEW { Self::Role } else { Self::Forwarded }
    }
}

pub(crate) type NeighborKey = (Iface, Ipv4Addr);

/// The packets that wait for one neighbor, by origin and order of arrival.
#[derive(Debug, Default)]
struct Queue {
    packets: BTreeMap<(Origin, u64), Packet>,
    bytes: usize,
}

/// All packets that wait for neighbors.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    queues: BTreeMap<NeighborKey, Queue>,
    /// The number of bytes in all queues.
    bytes: usize,
    /// The number of the next packet.
    next: u64,
}

impl Waiting {
    /// Adds a packet. Returns the packets that are dropped to make room, with their interfaces. The new packet may be
    /// one of them.
    pub(crate) fn add(&mut self, key: NeighborKey, origin: Origin, packet: Packet) -> Vec<(Iface, Packet)> {
        let cost = cost(&packet);
        let queue = self.queues.entry(key).or_default();
        queue.packets.insert((origin, self.next), packet);
        queue.bytes += cost;
        self.bytes += cost;
        self.next += 1;
        let mut displaced = Vec::new();
        while self.queues.get(&key).is_some_and(|queue| queue.bytes > EACH) {
            displaced.extend(self.displace(key));
        }
        while self.bytes > ALL
            && let Some(key) = self.lowest()
        {
            displaced.extend(self.displace(key));
        }
        self.check();
        displaced
    }

    /// Checks that the numbers of bytes are the sums over the waiting packets.
    fn check(&self) {
        let sum = |queue: &Queue| queue.packets.values().map(cost).sum::<usize>();
        debug_assert!(
            self.queues.values().all(|queue| queue.bytes == sum(queue)),
            "the byte count of a neighbor is not the sum over its packets"
        );
        debug_assert_eq!(
            self.bytes,
            self.queues.values().map(|queue| queue.bytes).sum::<usize>(),
            "the byte count of all neighbors is not the sum over the neighbors"
        );
    }

    /// Takes the packets of one neighbor, the highest origin first. Packets of one origin are in the order of arrival.
    pub(crate) fn take(&mut self, key: NeighborKey) -> VecDeque<Packet> {
        let Some(mut queue) = self.queues.remove(&key) else { return VecDeque::new() };
        self.bytes -= queue.bytes;
        let mut taken = VecDeque::with_capacity(queue.packets.len());
        for origin in [Origin::Role, Origin::Host, Origin::Forwarded] {
            taken.extend(queue.packets.split_off(&(origin, 0)).into_values());
        }
        taken
    }

    /// Returns the highest origin of the packets that wait for a neighbor, or `None` if no packet waits.
    pub(crate) fn highest(&self, key: NeighborKey) -> Option<Origin> {
        let ((origin, _), _) = self.queues.get(&key)?.packets.last_key_value()?;
        Some(*origin)
    }

    /// Calls `each` with the identity of each packet that waits for a neighbor.
    pub(crate) fn holds(&self, each: &mut dyn FnMut(PacketId)) {
        for packet in self.queues.values().flat_map(|queue| queue.packets.values()) {
            each(packet.id);
        }
    }

    /// Returns the neighbor with the oldest packet of the lowest origin.
    fn lowest(&self) -> Option<NeighborKey> {
        let firsts = self.queues.iter().filter_map(|(key, queue)| Some((queue.packets.keys().next()?, key)));
        firsts.min().map(|(_, key)| *key)
    }

    /// Takes the oldest packet of the lowest origin of one neighbor.
    fn displace(&mut self, key: NeighborKey) -> Option<(Iface, Packet)> {
        let queue = self.queues.get_mut(&key)?;
        let (_, packet) = queue.packets.pop_first()?;
        queue.bytes -= cost(&packet);
        self.bytes -= cost(&packet);
        if queue.packets.is_empty() {
            self.queues.remove(&key);
        }
        Some((key.0, packet))
    }
}

const fn cost(packet: &Packet) -> usize {
    packet.bytes.len() + OVERHEAD
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Mac;

    const PEER: NeighborKey = (Iface(1), Ipv4Addr::new(10, 1, 0, 2));

    fn packet(number: u64, bytes: usize) -> Packet {
        Packet { id: PacketId(number), ..Packet::new(Mac::ZERO, vec![0x45; bytes]) }
    }

    fn add(waiting: &mut Waiting, key: NeighborKey, origin: Origin, number: u64) -> Vec<u64> {
        let displaced = waiting.add(key, origin, packet(number, 1500));
        displaced.into_iter().map(|(_, packet)| packet.id.0).collect()
    }

    fn taken(waiting: &mut Waiting, key: NeighborKey) -> Vec<u64> {
        waiting.take(key).into_iter().map(|packet| packet.id.0).collect()
    }

    #[test]
    fn what_the_roles_say_leaves_first_and_all_else_in_the_order_of_arrival() {
        let mut waiting = Waiting::default();
        let origins = [Origin::Forwarded, Origin::Role, Origin::Host, Origin::Forwarded, Origin::Role];
        for (number, origin) in (0..).zip(origins) {
            assert!(add(&mut waiting, PEER, origin, number).is_empty());
        }
        assert_eq!(waiting.highest(PEER), Some(Origin::Role));
        assert_eq!(taken(&mut waiting, PEER), [1, 4, 2, 0, 3]);
        assert_eq!((waiting.bytes, waiting.highest(PEER)), (0, None));
    }

    #[test]
    fn the_oldest_of_the_lowest_origin_makes_room() {
        let mut waiting = Waiting::default();
        let fits = (EACH / (1500 + OVERHEAD)) as u64;
        assert!(add(&mut waiting, PEER, Origin::Role, 0).is_empty());
        for number in 1..fits {
            assert!(add(&mut waiting, PEER, Origin::Forwarded, number).is_empty());
        }
        assert_eq!(add(&mut waiting, PEER, Origin::Forwarded, fits), [1]);
        assert_eq!(add(&mut waiting, PEER, Origin::Role, fits + 1), [2]);
        assert!(waiting.bytes <= EACH);
        assert_eq!(taken(&mut waiting, PEER)[..2], [0, fits + 1]);
    }

    #[test]
    fn a_packet_that_is_itself_the_lowest_does_not_displace_another() {
        let mut waiting = Waiting::default();
        for number in 0..(EACH / (1500 + OVERHEAD)) as u64 {
            add(&mut waiting, PEER, Origin::Role, number);
        }
        assert_eq!(add(&mut waiting, PEER, Origin::Forwarded, 999), [999]);
    }

    #[test]
    fn all_neighbors_together_are_bounded_too() {
        let mut waiting = Waiting::default();
        let own = (Iface(1), Ipv4Addr::new(10, 1, 1, 1));
        add(&mut waiting, own, Origin::Role, 0);
        let mut displaced = Vec::new();
        for number in 1..2_000u64 {
            let key = (Iface(2), Ipv4Addr::from_bits(0x0a02_0000 + number as u32 % 100));
            displaced.extend(add(&mut waiting, key, Origin::Forwarded, number));
            assert!(waiting.bytes <= ALL);
        }
        assert!(
            displaced.len() > 1_000 && displaced.is_sorted(),
            "the oldest are dropped first, for any neighbor"
        );
        assert_eq!(taken(&mut waiting, own), [0]);
    }

    #[test]
    fn empty_packets_are_bounded() {
        let mut waiting = Waiting::default();
        for number in 0..10_000 {
            waiting.add(PEER, Origin::Forwarded, packet(number, 0));
        }
        assert_eq!(waiting.take(PEER).len(), EACH / OVERHEAD);
    }

    #[test]
    #[should_panic(expected = "the byte count of all neighbors")]
    fn a_sum_that_is_wrong_is_noticed() {
        let mut waiting = Waiting { bytes: 1, ..Waiting::default() };
        waiting.add(PEER, Origin::Role, packet(1, 100));
    }
}
