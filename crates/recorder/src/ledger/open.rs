//! Packets that are under way. Each packet has one slot until it is finalised (all its copies have ended, and the
//! ledger has counted them). The slot is then reused for another packet.

use super::seen::Seen;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};
use wire::PacketId;

/// The steps recorded so far of each packet that is under way.
#[derive(Default)]
pub(super) struct Open {
    places: HashMap<PacketId, u32, BuildHasherDefault<IdHasher>>,
    slots: Vec<Slot>,
    /// Indices of unused slots.
    free: Vec<u32>,
    /// Indices of slots with new steps since they were last examined.
    touched: Vec<u32>,
    /// The packet of the latest step, and its slot index. Consecutive steps are often of the same packet, so this
    /// saves a lookup.
    last: Option<(PacketId, u32)>,
    /// The highest identity of a finalised packet. In the simulator, the only backend that finalises packets during a
    /// run, identities grow in the order of first appearance. So an unknown packet whose identity is not above
    /// `highest` was finalised before.
    highest: u64,
}

/// The storage for one packet.
struct Slot {
    packet: PacketId,
    is_touched: bool,
    seen: Seen,
}

impl Open {
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns whether a packet has a slot: it has recorded steps and is not finalised.
    pub(super) fn has(&self, packet: PacketId) -> bool {
        self.places.contains_key(&packet)
    }

    /// Returns the number of slots, used or not.
    #[cfg(test)]
    pub(super) fn room(&self) -> usize {
        self.slots.len()
    }

    /// Returns the recorded steps of a packet, and marks the packet as one to examine.
    #[inline]
    pub(super) fn touch(&mut self, packet: PacketId) -> &mut Seen {
        let place = match self.last {
            Some((last, place)) if last == packet => place,
            _ => self.find(packet),
        };
        &mut self.slot(place).seen
    }

    #[inline(never)] // keeps the lookup out of the fast path
    fn find(&mut self, packet: PacketId) -> u32 {
        let place = match self.places.entry(packet) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => {
                let place = *entry.insert(take(&mut self.slots, &mut self.free, packet));
                if packet.0 <= self.highest {
                    self.slot(place).seen.open_again();
                }
                place
            }
        };
        let slot = self.slot(place);
        if !slot.is_touched {
            slot.is_touched = true;
            self.touched.push(place);
        }
        self.last = Some((packet, place));
        place
    }

    /// Returns the slot index, the identity and the steps of the packet that was last marked, and removes its mark.
    /// Returns `None` if no packet is marked.
    pub(super) fn next_touched(&mut self) -> Option<(u32, PacketId, &Seen)> {
        let place = self.touched.pop()?;
        self.last = None;
        let slot = self.slot(place);
        slot.is_touched = false;
        Some((place, slot.packet, &slot.seen))
    }

    /// Frees the slot of a packet that is finalised.
    ///
    /// # Panics
    ///
    /// Panics if the packet was finalised before, or if the numbers of open packets and of free slots do not sum to the
    /// number of slots.
    pub(super) fn forget(&mut self, place: u32) {
        let slot = self.slot(place);
        slot.seen.clear();
        let packet = slot.packet;
        let had = self.places.remove(&packet);
        assert_eq!(had, Some(place), "{packet:?} is finalised twice");
        self.highest = self.highest.max(packet.0);
        self.free.push(place);
        let (open, free, all) = (self.places.len(), self.free.len(), self.slots.len());
        assert_eq!(open + free, all, "{open} packets are under way, and {free} of {all} slots are free");
    }

    /// Returns all packets under way, in the order of their identities.
    pub(super) fn all(&self) -> impl Iterator<Item = (PacketId, &Seen)> {
        let mut all: Vec<(PacketId, u32)> =
            self.places.iter().map(|(packet, place)| (*packet, *place)).collect();
        all.sort_unstable();
        all.into_iter().filter_map(|(packet, place)| Some((packet, &self.slots.get(place as usize)?.seen)))
    }

    fn slot(&mut self, place: u32) -> &mut Slot {
        #[expect(clippy::indexing_slicing, reason = "an explicit place stays")]
        &mut self.slots[place as usize]
    }
}

/// Takes a free slot for a packet, or adds one.
fn take(slots: &mut Vec<Slot>, free: &mut Vec<u32>, packet: PacketId) -> u32 {
    if let Some(place) = free.pop()
        && let Some(slot) = slots.get_mut(place as usize)
    {
        slot.packet = packet;
        return place;
    }
    slots.push(Slot { packet, is_touched: false, seen: Seen::default() });
    slots.len() as u32 - 1
}

/// A fast hash for packet identities. Identities of a simulated run count up from 1; identities on Linux are hashes.
/// Neither is chosen to collide, so no stronger hash is needed.
#[derive(Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "PacketId(5) is finalised twice")]
    fn a_packet_is_finalised_once() {
        let mut open = Open::default();
        open.touch(PacketId(5));
        open.forget(0);
        open.forget(0);
    }

    #[test]
    #[should_panic(expected = "1 packets are under way, and 2 of 2 slots are free")]
    fn a_slot_is_free_or_of_a_packet() {
        let mut open = Open::default();
        open.touch(PacketId(5));
        open.touch(PacketId(6));
        open.free.push(1);
        open.forget(0);
    }
}
