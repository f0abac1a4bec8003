//! Tests of the rings without a program in the kernel: the tests write the slots as `bpf/forward.bpf.c` does.

use super::*;
use std::os::fd::AsFd;

/// The memory of three maps that the program and the rings share, and the part of the program that keeps packets.
struct Program {
    slots: Shared,
    numbers: Shared,
    news: Shared,
}

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

const fn key(route: u8) -> KeyBytes {
    [route; MapKey::SIZE]
}

/// Returns rings with this number of slots, and a program that shares their memory.
fn rings(slots: u32) -> (Rings, Program) {
    let map = |words: usize| {
        let file = tempfile::tempfile().unwrap();
        file.set_len(words as u64 * 8).unwrap();
        [(); 2].map(|()| Shared::of_file(file.as_fd(), words).unwrap())
    };
    let count = slots as usize;
    let ([a, slots_of_program], [b, numbers], [c, news]) = (map(count * SLOT), map(count * 2), map(3));
    (Rings::new(a, b, c, slots), Program { slots: slots_of_program, numbers, news })
}

impl Program {
    /// Takes the next slot of a ring. Returns the index of its first number, or `None` if another processor writes it.
    fn claim(&self, [first, length]: [u32; 2]) -> Option<usize> {
        let begun = first as usize * 2;
        let number = self.numbers.read(begun);
        self.numbers.write(begun, number + 1);
        let slot = (first as usize + (number % u64::from(length)) as usize) * SLOT;
        let mark = self.slots.read(slot);
        if mark & 1 == 1 {
            return None;
        }
        self.slots.write(slot, mark + 1);
        self.slots.write(slot + 1, number);
        Some(slot)
    }

    /// Writes a packet of `bytes` into a slot, without its mark. `len` is the length that the slot names.
    fn fill(&self, slot: usize, time: Instant, bytes: &[u8], len: u16) {
        let [a, b] = len.to_ne_bytes();
        self.slots.write(slot + 2, time.0);
        self.slots.write(slot + 3, u64::from_ne_bytes([10, 1, 0, 2, 10, 3, 0, 1]));
        let [i, j] = 7_u16.to_ne_bytes();
        let [o, w, n, r] = 2_u32.to_ne_bytes();
        self.slots.write(slot + 4, u64::from_ne_bytes([a, b, i, j, o, w, n, r]));
        for (index, chunk) in bytes.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.slots.write(slot + HEAD + index, u64::from_ne_bytes(word));
        }
    }

    /// Marks a slot of the ring as whole, and counts the packet.
    fn finish(&self, slot: usize, first: u32) {
        self.slots.write(slot, self.slots.read(slot) + 1);
        self.numbers.write(first as usize * 2 + 1, self.numbers.read(first as usize * 2 + 1) + 1);
        self.news.write(0, self.news.read(0) + 1);
    }

    /// Keeps a packet with this text.
    fn keep(&self, ring: [u32; 2], time: Instant, text: &str) {
        let slot = self.claim(ring).expect("the slot is free");
        self.fill(slot, time, text.as_bytes(), text.len() as u16);
        self.finish(slot, ring[0]);
    }
}

fn texts(rings: &mut Rings, now: Instant) -> Vec<String> {
    let text = |kept: KeptPacket| String::from_utf8(kept.packet.bytes).unwrap();
    rings.fetch(now).into_iter().map(text).collect()
}

#[test]
fn a_packet_is_returned_once_with_its_tunnel_interface_and_owner() {
    let (mut rings, program) = rings(4);
    let (ring, _) = rings.of_route(key(1), 2);
    assert!(!rings.has_news() && rings.fetch(at(1)).is_empty());
    program.keep(ring, at(5), "not a multiple of 8");
    assert!(rings.has_news());
    let kept = rings.fetch(at(6));
    let tunnel = (Ipv4Addr::new(10, 1, 0, 2), Ipv4Addr::new(10, 3, 0, 1));
    let packet = Packet::new(Mac::ZERO, b"not a multiple of 8".to_vec());
    assert_eq!(kept, [KeptPacket { owner: RoleId(2), at: at(5), iface: Iface(7), tunnel, packet }]);
    assert!(!rings.has_news() && rings.fetch(at(7)).is_empty());
}

/// The slots are numbered from 0 again after the last one, so their order is not that of the packets.
#[test]
fn a_full_ring_has_its_last_packets_in_their_order() {
    let (mut rings, program) = rings(8);
    let (ring, _) = rings.of_route(key(1), 3);
    for number in 0..5 {
        program.keep(ring, at(number), &number.to_string());
    }
    assert_eq!(texts(&mut rings, at(9)), ["2", "3", "4"]);
    // One more packet takes the slot of packet 2. The others are not returned again.
    program.keep(ring, at(5), "5");
    assert_eq!(texts(&mut rings, at(9)), ["5"]);
    // Packets of one instant are in the order of their numbers, also behind the wrap.
    for number in 6..9 {
        program.keep(ring, at(6), &number.to_string());
    }
    assert_eq!(texts(&mut rings, at(9)), ["6", "7", "8"]);
}

#[test]
fn packets_of_several_rings_are_in_the_order_of_their_arrival() {
    let (mut rings, program) = rings(4);
    let [(one, _), (two, _)] = [1, 2].map(|route| rings.of_route(key(route), 2));
    program.keep(two, at(1), "a");
    program.keep(one, at(2), "b");
    program.keep(two, at(3), "c");
    program.keep(one, at(4), "d");
    assert_eq!(texts(&mut rings, at(9)), ["a", "b", "c", "d"]);
}

/// A slot with an odd mark is being written: its packet comes with a later look. Another processor does not write it.
#[test]
fn a_slot_that_is_being_written_is_left_out() {
    let (mut rings, program) = rings(2);
    let (ring, _) = rings.of_route(key(1), 2);
    let slow = program.claim(ring).unwrap();
    program.fill(slow, at(1), b"half", 4);
    program.keep(ring, at(2), "whole");
    assert_eq!(texts(&mut rings, at(3)), ["whole"]);
    assert_eq!(program.claim(ring), None);
    program.finish(slow, ring[0]);
    assert_eq!(texts(&mut rings, at(4)), ["half"]);
}

#[test]
fn a_slot_without_a_packet_is_left_out_and_no_length_exceeds_it() {
    let (mut rings, program) = rings(2);
    let (ring, _) = rings.of_route(key(1), 2);
    for len in [0, u16::MAX] {
        let slot = program.claim(ring).unwrap();
        program.fill(slot, at(1), b"x", len);
        program.finish(slot, ring[0]);
    }
    let lengths: Vec<usize> = rings.fetch(at(2)).iter().map(|kept| kept.packet.bytes.len()).collect();
    assert_eq!(lengths, [ROOM]);
}

#[test]
fn a_ring_keeps_its_slots_until_its_size_changes() {
    let (mut rings, _) = rings(4);
    let (ring, old) = rings.of_route(key(1), 2);
    assert_eq!((ring, old.is_none()), ([0, 2], true));
    let (same, old) = rings.of_route(key(1), 2);
    assert_eq!((same, old.is_none()), (ring, true));
    assert_eq!(rings.of_route(key(2), 3).0, [0, 0], "only 2 slots are free");
    // The slots of the present ring are not free when its successor takes slots.
    let (larger, old) = rings.of_route(key(1), 3);
    assert_eq!((larger, old.map(|ring| ring.first)), ([0, 0], Some(0)));
    assert_eq!(rings.of_route(key(3), 0).0, [0, 0]);
}

/// A packet that the program had begun before its route was removed is returned. The slots are not used again until then.
#[test]
fn the_slots_of_a_removed_ring_rest_for_a_second() {
    let (mut rings, program) = rings(2);
    let (ring, _) = rings.of_route(key(1), 2);
    let slow = program.claim(ring).unwrap();
    let removed = rings.without_route(key(1));
    rings.retire(at(1000), removed);
    assert_eq!(rings.due(), Some(at(2000)));
    program.fill(slow, at(1001), b"late", 4);
    program.finish(slow, ring[0]);
    assert_eq!(texts(&mut rings, at(1999)), ["late"]);
    assert_eq!(rings.of_route(key(2), 2).0, [0, 0]);
    assert!(rings.fetch(at(2000)).is_empty());
    assert_eq!(rings.due(), None);
    assert_eq!(rings.of_route(key(2), 2).0, [0, 2]);
}

/// The packets of the ring before are of another route, so the next ring does not return them.
#[test]
fn a_ring_does_not_return_what_is_left_of_another() {
    let (mut rings, program) = rings(2);
    let (ring, _) = rings.of_route(key(1), 2);
    program.keep(ring, at(1), "of the first route");
    program.keep(ring, at(2), "of the first route");
    assert_eq!(rings.fetch(at(3)).len(), 2);
    let removed = rings.without_route(key(1));
    rings.retire(at(3), removed);
    // These packets arrive when nothing looks at the ring any more.
    program.keep(ring, at(4), "late");
    rings.seen = program.news.read(0);
    rings.fetch(at(2000));
    let (ring, _) = rings.of_route(key(2), 2);
    assert_eq!(ring, [0, 2]);
    program.keep(ring, at(2001), "of the second route");
    assert_eq!(texts(&mut rings, at(2002)), ["of the second route"]);
}

/// A message that the program has counted may not be at the driver's socket yet.
#[test]
fn messages_are_waited_for_until_they_have_settled() {
    let (mut rings, program) = rings(1);
    assert_eq!((rings.messages(at(0)), rings.due()), (None, None));
    program.news.write(MESSAGES, 3);
    assert_eq!((rings.messages(at(10)), rings.due()), (None, Some(at(11))));
    program.news.write(MESSAGES, 4);
    assert_eq!(rings.messages(at(11)), Some(3), "the number that was seen first");
    rings.handled(3);
    assert_eq!((program.news.read(HANDLED), rings.due()), (3, None));
    assert_eq!((rings.messages(at(12)), rings.messages(at(13))), (None, Some(4)));
    rings.handled(4);
    assert_eq!((rings.messages(at(20)), rings.due()), (None, None));
}

#[test]
fn memory_holds_whole_slots_only() {
    assert_eq!([0, 2047, 2048, 4095, 4096].map(Rings::slots_in), [0, 0, 1, 1, 2]);
    // Behind the end of the memory, nothing is read or written.
    let (rings, program) = rings(1);
    program.slots.write(SLOT, 9);
    assert_eq!(rings.slots.read(SLOT), 0);
}
