use super::*;
use proptest::prelude::*;
use wire::ipv4::Header;
use wire::{Duration, Ipv4Addr, Mac, SocketAddrV4, udp};

const LIMITS: Limits =
    Limits { packets: 1, bytes: 1500, total_bytes: 64 << 20, max_age: Duration::from_secs(10) };

fn visit(number: u32) -> Visit {
    (Ipv4Addr::from_bits(0x0a01_0000 + number), Ipv4Addr::new(10, 1, 0, 2))
}

const ENTRY: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);

fn packet(id: u64, len: usize) -> (Iface, Packet) {
    (Iface(2), Packet { id: PacketId(id), ..Packet::new(Mac::ZERO, vec![0; len]) })
}

/// Keeps a packet, and returns the packets that have no place any more.
fn keep(buffers: &mut Buffers, at: Instant, number: u32, id: u64, len: usize) -> Vec<(u64, Reason)> {
    let mut gone = Vec::new();
    let (iface, packet) = packet(id, len);
    buffers.keep(at, visit(number), (iface, ENTRY, packet), &mut |kept, reason| {
        gone.push((kept.packet.id.0, reason));
    });
    gone
}

/// Puts a packet behind those of visitor 1 that are being sent. Fails with its number.
fn wait(buffers: &mut Buffers, id: u64, len: usize) -> Result<(), u64> {
    let (iface, packet) = packet(id, len);
    let later = Later { packet, iface, entry: ENTRY, is_decremented: false };
    buffers.wait(Instant::ZERO, visit(1), later).map_err(|packet| packet.id.0)
}

fn expire(buffers: &mut Buffers, at: Instant) -> Vec<(u64, Reason)> {
    let mut gone = Vec::new();
    buffers.expire(at, &mut |kept, reason| gone.push((kept.packet.id.0, reason)));
    gone
}

fn ids(taken: VecDeque<Kept>) -> Vec<u64> {
    taken.into_iter().map(|kept| kept.packet.id.0).collect()
}

#[test]
fn one_packet_is_replaced_by_the_next() {
    let mut buffers = Buffers::new(LIMITS);
    assert_eq!(keep(&mut buffers, Instant::ZERO, 1, 1, 1500), []);
    assert_eq!(keep(&mut buffers, Instant::ZERO, 1, 2, 40), [(1, KEPT_REPLACED)]);
    assert_eq!(keep(&mut buffers, Instant::ZERO, 2, 3, 100), [], "another visitor has a separate ring");
    assert_eq!((buffers.bytes(), buffers.packets(), buffers.size(visit(1))), (140, 2, (1, 40)));
    assert_eq!(ids(buffers.take(visit(1))), [2]);
    assert!(buffers.take(visit(1)).is_empty(), "a packet is taken once");
    assert_eq!(buffers.bytes(), 100);
}

#[test]
fn a_ring_has_the_last_packets_without_a_gap() {
    let mut buffers = Buffers::new(Limits { packets: 3, bytes: 1000, ..LIMITS });
    for id in 1..=3 {
        assert_eq!(keep(&mut buffers, Instant::ZERO, 1, id, 300), []);
    }
    assert_eq!(keep(&mut buffers, Instant::ZERO, 1, 4, 300), [(1, KEPT_REPLACED)], "three packets");
    let gone = keep(&mut buffers, Instant::ZERO, 1, 5, 700);
    assert_eq!(gone, [(2, KEPT_REPLACED), (3, KEPT_REPLACED)], "1000 bytes");
    let gone = keep(&mut buffers, Instant::ZERO, 1, 6, 1001);
    assert_eq!(gone, [(4, KEPT_REPLACED), (5, KEPT_REPLACED), (6, KEPT_NO_ROOM)], "too large by itself");
    assert_eq!((buffers.bytes(), buffers.packets(), buffers.next()), (0, 0, None));
}

#[test]
fn the_largest_ring_is_shrunk_first() {
    let limits = Limits { packets: 8, bytes: 8000, total_bytes: 3000, ..LIMITS };
    let mut buffers = Buffers::new(limits);
    for id in 1..=3 {
        keep(&mut buffers, Instant::ZERO, 1, id, 700);
    }
    keep(&mut buffers, Instant::ZERO, 2, 4, 900);
    assert_eq!(buffers.bytes(), 3000);
    assert_eq!(keep(&mut buffers, Instant::ZERO, 3, 5, 1), [(1, KEPT_NO_ROOM)], "to the byte");
    let gone = keep(&mut buffers, Instant::ZERO, 2, 6, 800);
    assert_eq!(gone, [(4, KEPT_NO_ROOM)], "with its new packet, visitor 2 has the most");
    assert_eq!(keep(&mut buffers, Instant::ZERO, 4, 7, 2000), [(7, KEPT_NO_ROOM)], "alone the largest");
    assert_eq!(buffers.bytes(), 1400 + 1 + 800);
}

#[test]
fn a_packet_gets_too_old() {
    let at = Instant::from_millis;
    let mut buffers = Buffers::new(Limits { packets: 2, bytes: 3000, ..LIMITS });
    keep(&mut buffers, at(0), 1, 1, 100);
    keep(&mut buffers, at(1000), 1, 2, 100);
    assert_eq!(buffers.next(), Some(at(10_000)));
    assert_eq!(expire(&mut buffers, at(9_999)), []);
    assert_eq!(expire(&mut buffers, at(10_000)), [(1, KEPT_TOO_OLD)]);
    keep(&mut buffers, at(10_500), 1, 3, 100);
    keep(&mut buffers, at(10_600), 1, 4, 100); // replaces packet 2
    assert_eq!(buffers.next(), Some(at(11_000)), "the deadline of a replaced packet");
    assert_eq!(expire(&mut buffers, at(11_000)), []);
    assert_eq!(buffers.next(), Some(at(20_500)));
    buffers.begin_drain(visit(1));
    assert_eq!(buffers.next(), None, "packets that are being sent do not get too old");
}

#[test]
fn packets_wait_behind_those_that_are_sent_while_there_is_room() {
    let mut buffers = Buffers::new(Limits { packets: 2, bytes: 200, ..LIMITS });
    keep(&mut buffers, Instant::ZERO, 1, 1, 100);
    keep(&mut buffers, Instant::ZERO, 1, 2, 100);
    buffers.begin_drain(visit(1));
    assert_eq!(wait(&mut buffers, 3, 100), Ok(()));
    assert_eq!(buffers.pop(visit(1)).map(|kept| kept.packet.id.0), Some(1));
    assert_eq!(wait(&mut buffers, 4, 100), Ok(()));
    assert_eq!(wait(&mut buffers, 5, 100), Ok(()));
    assert_eq!(wait(&mut buffers, 6, 1), Err(6), "four packets");
    assert_eq!(ids(buffers.take(visit(1))), [2, 3, 4, 5]);
    assert_eq!(buffers.bytes(), 0);
}

/// Waiting packets count as bytes of their visitor, which has twice as many for them, and as bytes of all visitors.
#[test]
fn packets_wait_while_there_is_room_for_their_bytes() {
    let limits = Limits { packets: 8, bytes: 200, ..LIMITS };
    for (total_bytes, waiting) in [(1000, 300), (350, 150)] {
        let mut buffers = Buffers::new(Limits { total_bytes, ..limits });
        keep(&mut buffers, Instant::ZERO, 1, 1, 100);
        keep(&mut buffers, Instant::ZERO, 2, 2, 100);
        buffers.begin_drain(visit(1));
        assert_eq!(wait(&mut buffers, 3, waiting + 1), Err(3), "{total_bytes}");
        assert_eq!(wait(&mut buffers, 4, waiting), Ok(()), "{total_bytes}");
        assert_eq!(wait(&mut buffers, 5, 1), Err(5), "{total_bytes}");
        assert_eq!(buffers.bytes(), 200 + waiting);
    }
}

/// After the end of a drain, the ring has its limits and deadlines again.
#[test]
fn packets_that_are_not_sent_any_more_are_kept_as_before() {
    let mut buffers = Buffers::new(Limits { packets: 2, bytes: 200, ..LIMITS });
    keep(&mut buffers, Instant::ZERO, 1, 1, 100);
    keep(&mut buffers, Instant::ZERO, 1, 2, 100);
    buffers.begin_drain(visit(1));
    assert_eq!([3, 4].map(|id| wait(&mut buffers, id, 100)), [Ok(()); 2]);
    buffers.end_drain(visit(1));
    assert_eq!(buffers.next(), Some(Instant::from_millis(10000)));
    let gone = keep(&mut buffers, Instant::from_millis(1000), 1, 5, 100);
    assert_eq!(gone, [1, 2, 3].map(|id| (id, KEPT_REPLACED)));
    assert_eq!(expire(&mut buffers, Instant::from_millis(10000)), [(4, KEPT_TOO_OLD)]);
    assert_eq!(buffers.bytes(), 100);
    buffers.begin_drain(visit(1));
    buffers.pop(visit(1));
    buffers.end_drain(visit(1));
    assert_eq!((buffers.next(), buffers.bytes(), buffers.packets()), (None, 0, 0));
}

/// Packets that wait behind those that are being sent exist only here.
#[test]
fn packets_that_are_being_sent_make_no_room_for_others() {
    let mut buffers = Buffers::new(Limits { packets: 8, bytes: 800, total_bytes: 1000, ..LIMITS });
    for id in 1..=7 {
        assert_eq!(keep(&mut buffers, Instant::ZERO, 1, id, 100), []);
    }
    buffers.begin_drain(visit(1));
    assert_eq!(wait(&mut buffers, 8, 100), Ok(()));
    for id in 9..=10 {
        assert_eq!(keep(&mut buffers, Instant::ZERO, 2, id, 100), []);
    }
    assert_eq!(keep(&mut buffers, Instant::ZERO, 2, 11, 100), [(9, KEPT_NO_ROOM)], "its own oldest one");
    assert_eq!(keep(&mut buffers, Instant::ZERO, 3, 12, 100), [(10, KEPT_NO_ROOM)]);
    assert_eq!(ids(buffers.take(visit(1))), [1, 2, 3, 4, 5, 6, 7, 8]);
}

/// 10 000 visitors share 64 MiB: never a byte more, and equal shares.
#[test]
fn ten_thousand_visitors_share_the_bytes() {
    let limits = Limits { packets: 8, bytes: 12_000, ..LIMITS };
    let mut buffers = Buffers::new(limits);
    let mut rng = node::Rng::new(17);
    let mut most = 0;
    for id in 0..150_000 {
        let number = (rng.draw() % 10_000) as u32;
        let len = 1000 + (rng.draw() % 501) as usize;
        keep(&mut buffers, Instant(id * 1000), number, id, len);
        most = buffers.bytes().max(most);
        assert!(buffers.bytes() <= 64 << 20, "packet {id}");
    }
    assert!(most > (64 << 20) - 1500, "the limit was reached: {most}");
    let sizes = (0..10_000).map(|number| buffers.size(visit(number)).1);
    let sum: usize = sizes.clone().sum();
    assert_eq!(sum, buffers.bytes());
    // A ring is shrunk only while it is the largest, by one packet.
    assert!(sizes.max().unwrap() <= sum / 10_000 + 2 * 1500);
}

/// With two bindings, a packet comes from the home agent, and by the agent of the other one.
#[test]
fn a_copy_of_a_kept_packet_takes_no_place() {
    let mut buffers = Buffers::new(Limits { packets: 3, bytes: 4500, ..LIMITS });
    let mut keep_from = |entry, number: u64, id: u16, ttl: u8, data: u8| {
        let [from, to] = [1, 2].map(|last| SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, last), 9));
        let whole = udp::packet(from, to, &[data; 100]);
        let (header, payload) = Header::parse(&whole).unwrap();
        let bytes = Header { id, ttl, ..header }.emit(payload);
        let packet = Packet { id: PacketId(number), ..Packet::new(Mac::ZERO, bytes) };
        let mut gone = Vec::new();
        buffers.keep(Instant::ZERO, visit(1), (Iface(2), entry, packet), &mut |kept, reason| {
            gone.push((kept.packet.id.0, reason));
        });
        gone
    };
    assert_eq!(keep_from(ENTRY, 1, 7, 60, 1), []);
    assert_eq!(keep_from(ENTRY, 2, 7, 58, 1), [(2, KEPT_DUPLICATE)], "it has crossed another agent");
    let mut keep = |number, id, ttl, data| keep_from(ENTRY, number, id, ttl, data);
    assert_eq!(keep(3, 8, 60, 1), [], "another identification");
    assert_eq!(keep(4, 7, 60, 2), [], "other data");
    assert_eq!(keep(5, 0, 60, 3), [(1, KEPT_REPLACED)]);
    assert_eq!(
        keep(6, 0, 60, 3),
        [(3, KEPT_REPLACED)],
        "without an identification, it may be another packet"
    );
    let other = Ipv4Addr::new(10, 4, 0, 1);
    assert_eq!(keep_from(other, 7, 0, 58, 3), [(7, KEPT_DUPLICATE)], "out of another tunnel");
    assert_eq!((buffers.packets(), buffers.bytes()), (3, 3 * 128));
}

// --- comparison with a model -------------------------------------------------------------------------------------------

#[derive(Clone, Copy, Debug)]
enum Step {
    Keep { number: u32, len: usize },
    Wait { millis: u64 },
    Take { number: u32 },
    Pop { number: u32 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let number = || 0..4_u32;
    let step = prop_oneof![
        8 => (number(), 1..60_usize).prop_map(|(number, len)| Step::Keep { number, len }),
        2 => (0..40_u64).prop_map(|millis| Step::Wait { millis }),
        1 => number().prop_map(|number| Step::Take { number }),
        1 => number().prop_map(|number| Step::Pop { number }),
    ];
    prop::collection::vec(step, 0..120)
}

/// The packets of all visitors in one list: the visitor, identity, length and arrival of each. Every question is answered by
/// a search through the whole list.
struct Model {
    limits: Limits,
    all: Vec<(u32, u64, usize, Instant)>,
}

impl Model {
    fn of(&self, number: u32) -> Vec<u64> {
        self.all.iter().filter(|one| one.0 == number).map(|one| one.1).collect()
    }

    fn size(&self, number: u32) -> usize {
        self.all.iter().filter(|one| one.0 == number).map(|one| one.2).sum()
    }

    fn bytes(&self) -> usize {
        self.all.iter().map(|one| one.2).sum()
    }

    fn drop_oldest(&mut self, number: u32) -> Option<u64> {
        let index = self.all.iter().position(|one| one.0 == number)?;
        Some(self.all.remove(index).1)
    }

    fn keep(&mut self, at: Instant, number: u32, id: u64, len: usize) -> Vec<u64> {
        let mut gone = Vec::new();
        let Limits { packets, bytes, total_bytes, .. } = self.limits;
        let is_too_large = len > bytes || len > total_bytes;
        while self.of(number).len() >= packets || self.size(number) + len > bytes || is_too_large {
            match self.drop_oldest(number) {
                Some(old) => gone.push(old),
                None => break,
            }
        }
        let mut is_kept = !is_too_large;
        while is_kept && self.bytes() + len > total_bytes {
            let share = |other: u32| self.size(other) + if other == number { len } else { 0 };
            // Of equal rings, another one is shrunk; of several others, that of the greatest address.
            let largest = (0..4).max_by_key(|other| (share(*other), *other != number, *other)).unwrap();
            match self.drop_oldest(largest) {
                Some(old) => gone.push(old),
                None => is_kept = false,
            }
        }
        if is_kept {
            self.all.push((number, id, len, at));
        } else {
            gone.push(id);
        }
        gone
    }

    fn expire(&mut self, at: Instant) -> BTreeSet<u64> {
        let age = self.limits.max_age;
        let (old, young) = self.all.iter().partition(|one| one.3 + age <= at);
        self.all = young;
        let old: Vec<(u32, u64, usize, Instant)> = old;
        old.into_iter().map(|one| one.1).collect()
    }
}

proptest! {
    #[test]
    fn the_rings_are_those_of_the_model(
        steps in steps(), packets in 1..5_usize, bytes in 20..120_usize, total_bytes in 20..200_usize,
    ) {
        let limits = Limits { packets, bytes, total_bytes, max_age: Duration::from_millis(100) };
        let mut buffers = Buffers::new(limits);
        let mut model = Model { limits, all: Vec::new() };
        let mut now = Instant::ZERO;
        for (id, step) in (0..).zip(steps) {
            match step {
                Step::Keep { number, len } => {
                    let gone = keep(&mut buffers, now, number, id, len);
                    let gone: Vec<u64> = gone.into_iter().map(|(id, _)| id).collect();
                    prop_assert_eq!(gone, model.keep(now, number, id, len));
                }
                Step::Wait { millis } => {
                    now += Duration::from_millis(millis);
                    let gone: Vec<u64> = expire(&mut buffers, now).into_iter().map(|(id, _)| id).collect();
                    prop_assert_eq!(gone.iter().copied().collect::<BTreeSet<_>>(), model.expire(now));
                    prop_assert!(buffers.next().is_none_or(|next| next > now));
                }
                Step::Take { number } => {
                    prop_assert_eq!(ids(buffers.take(visit(number))), model.of(number));
                    model.all.retain(|one| one.0 != number);
                }
                Step::Pop { number } => {
                    let popped = buffers.pop(visit(number)).map(|kept| kept.packet.id.0);
                    prop_assert_eq!(popped, model.drop_oldest(number));
                }
            }
            for number in 0..4 {
                let held = buffers.rings.get(&visit(number)).map_or(Vec::new(), |ring| {
                    ring.packets.iter().map(|kept| kept.packet.id.0).collect()
                });
                prop_assert_eq!(held, model.of(number));
                prop_assert_eq!(buffers.size(visit(number)).1, model.size(number));
            }
            prop_assert_eq!(buffers.bytes(), model.bytes());
            prop_assert!(buffers.bytes() <= total_bytes);
            // A packet of the model that is nearest to its age is due at the announced instant or later.
            let due = model.all.iter().map(|one| one.3 + limits.max_age).min();
            prop_assert!(due.is_none() || buffers.next().is_some_and(|next| next <= due.unwrap()));
            prop_assert_eq!(buffers.next().is_some(), due.is_some());
            prop_assert_eq!(buffers.by_size.len(), buffers.rings.len(), "no ring is empty");
        }
    }
}
