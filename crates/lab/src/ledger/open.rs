//! Packets that are under way. Each stays in one place until its books are closed; then the place is another's.

use super::seen::Seen;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};
use wire::PacketId;

/// What was seen of each packet that is under way.
#[derive(Default)]
pub(super) struct Open {
    places: HashMap<PacketId, u32, BuildHasherDefault<IdHasher>>,
    slots: Vec<Slot>,
    /// Places that nobody has.
    free: Vec<u32>,
    /// Places of packets of which something was told since they were last looked at.
    touched: Vec<u32>,
    /// The packet of which something was told last, and its place: what an event tells is of one packet, and then of another.
    last: Option<(PacketId, u32)>,
    /// The highest number of a packet that was forgotten. Where packets are forgotten during a run (in the simulator), they are
    /// numbered in the order in which they are first seen: one that has a lower number and no place was forgotten, too.
    highest: u64,
}

/// A place.
struct Slot {
    packet: PacketId,
    is_touched: bool,
    seen: Seen,
}

impl Open {
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether something was seen of a packet whose books are not closed.
    pub(super) fn has(&self, packet: PacketId) -> bool {
        self.places.contains_key(&packet)
    }

    /// For how many there is room.
    #[cfg(test)]
    pub(super) fn room(&self) -> usize {
        self.slots.len()
    }

    /// What was seen of a packet, which is to be looked at again.
    #[inline]
    pub(super) fn touch(&mut self, packet: PacketId) -> &mut Seen {
        let place = match self.last {
            Some((last, place)) if last == packet => place,
            _ => self.find(packet),
        };
        &mut self.slot(place).seen
    }

    #[inline(never)] // so that those who need not search pay for nothing of it
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

    /// A packet that is to be looked at, and its place.
    pub(super) fn next_touched(&mut self) -> Option<(u32, PacketId, &Seen)> {
        let place = self.touched.pop()?;
        self.last = None;
        let slot = self.slot(place);
        slot.is_touched = false;
        Some((place, slot.packet, &slot.seen))
    }

    /// The books of the packet at this place are closed.
    pub(super) fn forget(&mut self, place: u32) {
        let slot = self.slot(place);
        slot.seen.clear();
        let packet = slot.packet;
        self.places.remove(&packet);
        self.highest = self.highest.max(packet.0);
        self.free.push(place);
    }

    /// All of them, by their numbers.
    pub(super) fn all(&self) -> impl Iterator<Item = (PacketId, &Seen)> {
        let mut all: Vec<(PacketId, u32)> =
            self.places.iter().map(|(packet, place)| (*packet, *place)).collect();
        all.sort_unstable();
        all.into_iter().filter_map(|(packet, place)| Some((packet, &self.slots.get(place as usize)?.seen)))
    }

    fn slot(&mut self, place: u32) -> &mut Slot {
        #[expect(clippy::indexing_slicing, reason = "a place that was given stays")]
        &mut self.slots[place as usize]
    }
}

/// A place for a packet.
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

/// Packets of a simulated run are numbered from 1, those of Linux by a hash of their bytes: nobody chooses their numbers
/// to meet in one place.
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
