//! The packets that the program keeps: each route with [`table::Aside`] has a ring of slots.
//!
//! The program writes a slot only while it has its mark, so two processors never write one slot. The mark is odd meanwhile. So a
//! packet is taken only if its mark is even, and the same before and after it was copied.

use crate::pool::Pool;
use crate::shared::Shared;
use node::KeptPacket;
use std::collections::BTreeMap;
use table::RoleId;
use table::map::MapKey;
use wire::{Duration, Iface, Instant, Ipv4Addr, Mac, Packet};

/// The size of a slot, in numbers of 64 bits: the mark, the packet's number, its time, both ends of its tunnel, and its length,
/// interface and owner; then its bytes.
const SLOT: usize = 2048 / 8;
const HEAD: usize = 40 / 8;
/// The bytes of the largest packet that is kept.
pub(crate) const ROOM: usize = (SLOT - HEAD) * 8;
/// Indexes into `news`: the messages that were passed, and those that were handled. Index 0 has the number of kept packets.
const MESSAGES: usize = 1;
const HANDLED: usize = 2;
/// How long the slots of a removed ring are not used again. The program may still write a packet that it has begun.
const REST: Duration = Duration::from_secs(1);
/// The time after which a message that the program has counted is at the driver's socket.
const SETTLED: Duration = Duration::from_millis(1);

type KeyBytes = [u8; MapKey::SIZE];

/// A ring of slots, and what was taken out of it.
#[derive(Debug)]
pub(crate) struct Ring {
    first: u32,
    /// The number of packets that were whole at the last look.
    whole: u64,
    /// The mark of each slot at the last look.
    marks: Vec<u64>,
}

/// All rings.
#[derive(Debug)]
pub(crate) struct Rings {
    slots: Shared,
    numbers: Shared,
    news: Shared,
    /// The number of kept packets at the last look.
    seen: u64,
    /// A number of messages that are not handled yet, and when it was seen first.
    waiting: Option<(u64, Instant)>,
    pool: Pool,
    used: BTreeMap<KeyBytes, Ring>,
    /// The rings of removed routes, and when their slots are free.
    retired: Vec<(Instant, Ring)>,
}

impl Rings {
    /// Returns the number of slots in this number of bytes.
    pub(crate) fn slots_in(room: usize) -> u32 {
        u32::try_from(room / (SLOT * 8)).unwrap_or(u32::MAX)
    }

    pub(crate) fn new(slots: Shared, numbers: Shared, news: Shared, count: u32) -> Self {
        let (pool, used, retired) = (Pool::new(count), BTreeMap::new(), Vec::new());
        Self { slots, numbers, news, seen: 0, waiting: None, pool, used, retired }
    }

    /// Returns the first slot and the number of slots of the ring for a route that keeps `packets`, and the ring that it had
    /// before, if that has another size. Both numbers are 0 if it keeps none, or if too few slots are free.
    pub(crate) fn of_route(&mut self, key: KeyBytes, packets: u16) -> ([u32; 2], Option<Ring>) {
        let count = u32::from(packets);
        let is_same = |ring: &Ring| ring.marks.len() == usize::from(packets);
        if let Some(ring) = self.used.get(&key).filter(|ring| is_same(ring)) {
            return ([ring.first, count], None);
        }
        let old = self.used.remove(&key);
        let Some(first) = self.pool.take(count) else { return ([0, 0], old) };
        // What another ring has left in the slots is not new.
        let marks = (first as usize..).take(usize::from(packets)).map(|index| self.slots.read(index * SLOT));
        let ring = Ring { first, whole: self.numbers.read(first as usize * 2 + 1), marks: marks.collect() };
        self.used.insert(key, ring);
        ([first, count], old)
    }

    /// Removes the ring of a route.
    pub(crate) fn without_route(&mut self, key: KeyBytes) -> Option<Ring> {
        self.used.remove(&key)
    }

    /// Keeps a ring until no packet can come into it any more. The route no longer refers to it.
    pub(crate) fn retire(&mut self, now: Instant, ring: Option<Ring>) {
        self.retired.extend(ring.map(|ring| (now + REST, ring)));
    }

    pub(crate) fn has_news(&self) -> bool {
        self.news.read(0) != self.seen
    }

    /// Returns a number of messages that were passed and not handled, [`SETTLED`] after it was seen first.
    pub(crate) fn messages(&mut self, now: Instant) -> Option<u64> {
        let [messages, handled] = [MESSAGES, HANDLED].map(|index| self.news.read(index));
        if messages == handled {
            self.waiting = None;
            return None;
        }
        let (number, since) = *self.waiting.get_or_insert((messages, now));
        (now >= since + SETTLED).then_some(number)
    }

    pub(crate) fn handled(&mut self, messages: u64) {
        self.waiting = None;
        self.news.write(HANDLED, messages);
    }

    /// Returns when the slots of a removed ring are free.
    pub(crate) fn due(&self) -> Option<Instant> {
        let settled = self.waiting.map(|(_, since)| since + SETTLED);
        self.retired.iter().map(|(at, _)| *at).chain(settled).min()
    }

    /// Returns the packets that were not returned before, in the order of their arrival.
    pub(crate) fn fetch(&mut self, now: Instant) -> Vec<KeptPacket> {
        let mut found = Vec::new();
        if self.has_news() {
            self.seen = self.news.read(0);
            let (mut used, mut retired) = (std::mem::take(&mut self.used), std::mem::take(&mut self.retired));
            let rings = used.values_mut().chain(retired.iter_mut().map(|(_, ring)| ring));
            for ring in rings {
                self.look(ring, &mut |number, kept| found.push((number, kept)));
            }
            (self.used, self.retired) = (used, retired);
        }
        let Self { retired, pool, .. } = self;
        retired.retain(|(at, ring)| {
            let stays = now < *at;
            if !stays {
                pool.give_back(ring.first, ring.marks.len() as u32);
            }
            stays
        });
        found.sort_by_key(|(number, kept)| (kept.at, *number));
        found.into_iter().map(|(_, kept)| kept).collect()
    }

    /// Calls `each` with the packets of a ring that are new since the last look, and their numbers.
    fn look(&self, ring: &mut Ring, each: &mut dyn FnMut(u64, KeptPacket)) {
        // The number is read first: if a packet becomes whole after that, the next look finds it.
        let whole = self.numbers.read(ring.first as usize * 2 + 1);
        if std::mem::replace(&mut ring.whole, whole) == whole {
            return;
        }
        for (index, last) in (ring.first as usize..).zip(&mut ring.marks) {
            let at = index * SLOT;
            let mark = self.slots.read(at);
            if mark == *last || mark & 1 == 1 {
                continue;
            }
            let copy = self.copy(at);
            if self.slots.read(at) == mark {
                *last = mark;
                if let Some((number, kept)) = copy {
                    each(number, kept);
                }
            }
        }
    }

    /// Returns the packet of the slot that begins at this number, or `None` if it is empty.
    fn copy(&self, at: usize) -> Option<(u64, KeptPacket)> {
        let head = |index| self.slots.read(at + index);
        let [a, b, c, d, e, f, g, h] = head(3).to_ne_bytes();
        let tunnel = (Ipv4Addr::from([a, b, c, d]), Ipv4Addr::from([e, f, g, h]));
        let [l0, l1, i0, i1, owner @ ..] = head(4).to_ne_bytes();
        let [len, iface] = [[l0, l1], [i0, i1]].map(u16::from_ne_bytes);
        let len = usize::from(len).min(ROOM);
        if len == 0 {
            return None;
        }
        let words = (at + HEAD..).take(len.div_ceil(8));
        let mut bytes: Vec<u8> = words.flat_map(|index| self.slots.read(index).to_ne_bytes()).collect();
        bytes.truncate(len);
        let packet = Packet::new(Mac::ZERO, bytes);
        let owner = RoleId(u32::from_ne_bytes(owner) as u8);
        Some((head(1), KeptPacket { owner, at: Instant(head(2)), iface: Iface(iface), tunnel, packet }))
    }
}

#[cfg(test)]
#[path = "rings_tests.rs"]
mod tests;
