//! The packets that an agent has forwarded, to find those that come back.

use wire::ipv4::Header;
use wire::{Duration, Instant, Ipv4Addr, PacketId, identity};

/// The number of groups of places for packets (not from an RFC). The identity of a packet chooses the group.
const GROUPS: usize = 2048;
/// The number of places in a group. If all are taken, the next packet replaces a random one. So a packet that circles is found after
/// few rounds, also if more packets are under way than there are places.
const PLACES: usize = 8;
/// How long a packet is recognized (not from an RFC). Later, an equal packet is another one.
const AGE: Duration = Duration::from_secs(10);

/// How long equal datagrams with the identification 0 are counted together (not from an RFC). The next one begins a new count. If the path
/// to the agent becomes longer, no more than those of this time are taken for datagrams that have come back.
const COUNTED: Duration = Duration::from_secs(1);

/// What the copies of one packet have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Name {
    packet: PacketId,
    /// The identification of the header. Two equal UDP datagrams have the same [`PacketId`].
    number: u16,
    /// The source of the tunnel, if only packets out of the same tunnel are compared.
    entry: Ipv4Addr,
}

impl Name {
    /// Returns the place of the group of this packet.
    const fn group(self) -> usize {
        let further = mixed((self.number as u64) << 32 | self.entry.to_bits() as u64);
        (mixed(self.packet.0 ^ further >> 32) >> 32) as usize % GROUPS
    }
}

/// A packet that was forwarded.
#[derive(Clone, Copy, Debug)]
struct Sighting {
    packet: Name,
    /// Its last time to live; with the identification 0, that of the last copy that was forwarded.
    ttl: u8,
    /// With the identification 0, the number of copies that were forwarded with this time to live since `since`, without those that have
    /// come back.
    copies: u32,
    since: Instant,
    at: Instant,
}

/// The packets that an agent has forwarded: at most 16384, in 512 KiB. Empty until the first one.
#[derive(Debug, Default)]
pub(crate) struct Passed(Vec<[Option<Sighting>; PLACES]>);

impl Passed {
    /// Returns whether this packet was seen before with a larger time to live, and notes the packet. Only packets with the same
    /// `entry` are compared. Equal UDP datagrams with the identification 0 cannot be distinguished. So each copy that was forwarded stops
    /// one copy with a smaller time to live, and a forged one with a large time to live stops one other. A copy that begins a new count
    /// lets others circle that are under way, which may take further rounds.
    pub(crate) fn has_come_back(&mut self, now: Instant, entry: Ipv4Addr, packet: &[u8], ttl: u8) -> bool {
        if self.0.is_empty() {
            self.0 = vec![[None; PLACES]; GROUPS];
        }
        let number = Header::parse(packet).map_or(0, |(header, _)| header.id);
        let id = Name { packet: identity(packet), number, entry };
        let Some(group) = self.0.get_mut(id.group()) else { return false };
        let is_old = |place: &Option<Sighting>| place.is_none_or(|before| now >= before.at + AGE);
        let same = group.iter().position(|place| place.is_some_and(|before| before.packet == id));
        let before = same.and_then(|at| *group.get(at)?).filter(|before| now < before.at + AGE);
        let is_lower = before.is_some_and(|before| ttl < before.ttl);
        if is_lower && number != 0 {
            return true;
        }
        let left = before.and_then(|before| before.copies.checked_sub(1)).filter(|_| is_lower);
        if let (Some(copies), Some(place)) = (left, same.and_then(|at| group.get_mut(at))) {
            *place = before.map(|before| Sighting { copies, ..before });
            return true;
        }
        let equal = before.filter(|before| before.ttl == ttl && now < before.since + COUNTED);
        let (copies, since) =
            equal.map_or((1, now), |before| (before.copies.saturating_add(1), before.since));
        let random = || (mixed(id.packet.0 ^ u64::from(ttl)) >> 32) as usize % PLACES;
        let at = same.or_else(|| group.iter().position(is_old)).unwrap_or_else(random);
        if let Some(place) = group.get_mut(at) {
            *place = Some(Sighting { packet: id, ttl, copies, since, at: now });
        }
        false
    }
}

/// Returns a number in which each bit of the upper half depends on all lower bits of `number`.
const fn mixed(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{SocketAddrV4, udp};

    const ANY: Ipv4Addr = Ipv4Addr::UNSPECIFIED;

    fn packet(number: u32) -> Vec<u8> {
        let [from, to] = [1, 2].map(|last| SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, last), 9));
        udp::packet(from, to, &number.to_be_bytes())
    }

    /// Returns this packet with another identification.
    fn identified(number: u16, packet: &[u8]) -> Vec<u8> {
        let (header, payload) = Header::parse(packet).unwrap();
        Header { id: number, ..header }.emit(payload)
    }

    /// Returns how often each of `count` packets with a time to live of 64 is forwarded, on average, if all of them circle.
    fn rounds(count: u32) -> f64 {
        let mut passed = Passed::default();
        let mut left: Vec<(u32, u8)> = (0..count).map(|number| (number, 64)).collect();
        let mut forwarded = 0;
        while !left.is_empty() {
            left.retain_mut(|(number, ttl)| {
                let is_found = passed.has_come_back(Instant::ZERO, ANY, &packet(*number), *ttl);
                forwarded += u32::from(!is_found);
                *ttl -= 1;
                !is_found && *ttl > 0
            });
        }
        f64::from(forwarded) / f64::from(count)
    }

    /// Equal datagrams with the identification 0 follow a forged one with a large time to live: one of them is taken for it. With another
    /// identification, the forged one is another packet. One that circles is found each time.
    #[test]
    fn a_forged_packet_stops_one_equal_datagram() {
        for (id, expected) in [(0, [true, false, false]), (7, [true, true, true])] {
            let mut passed = Passed::default();
            let bytes = identified(id, &packet(1));
            let mut comes_back = |ttl| passed.has_come_back(Instant::ZERO, ANY, &bytes, ttl);
            assert!(!comes_back(250));
            assert_eq!([62, 62, 62].map(&mut comes_back), expected, "{id}");
            assert!(comes_back(60), "{id}");
        }
    }

    /// Each copy of a burst of equal datagrams with the identification 0 is found in its first round.
    #[test]
    fn equal_datagrams_that_circle_are_all_found() {
        let mut passed = Passed::default();
        let mut comes_back = |ttl| passed.has_come_back(Instant::ZERO, ANY, &packet(1), ttl);
        assert_eq!(Header::parse(&packet(1)).unwrap().0.id, 0);
        assert!((0..1000).all(|_| !comes_back(64)));
        assert!((0..1000).all(|_| comes_back(61)));
        assert!(!comes_back(61), "one more than were forwarded");
        // Copies of two rounds, in turn.
        assert!((0..100).all(|_| !comes_back(64) && comes_back(61)));
    }

    /// 50 datagrams a second, whose path to the agent becomes one hop longer after a minute.
    #[test]
    fn a_longer_path_stops_equal_datagrams_of_one_second_at_most() {
        let mut passed = Passed::default();
        let mut comes_back = |number: u64| {
            let ttl = if number < 3000 { 62 } else { 61 };
            passed.has_come_back(Instant::from_millis(20 * number), ANY, &packet(1), ttl)
        };
        assert!((0..3000).all(|number| !comes_back(number)));
        let stopped = (3000..6000).filter(|number| comes_back(*number)).count();
        assert!(stopped <= 50, "{stopped}");
    }

    /// Returns how often 500 datagrams, 50 a second, are forwarded in all. Each comes back after `circle` with 3 hops less.
    fn forwarded_of_stream(circle: Duration, bytes: impl Fn(u32) -> Vec<u8>) -> u32 {
        let mut passed = Passed::default();
        let first = |number: u32| (Instant::from_millis(20 * u64::from(number)), number, 64);
        let mut under_way: std::collections::BTreeSet<(Instant, u32, u8)> = (0..500).map(first).collect();
        let mut forwarded = 0_u32;
        while let Some((now, number, ttl)) = under_way.pop_first() {
            if !passed.has_come_back(now, ANY, &bytes(number), ttl) {
                forwarded += 1;
                under_way.extend(ttl.checked_sub(3).map(|left| (now + circle, number, left)));
            }
        }
        forwarded
    }

    /// A satellite may be on the circle.
    #[test]
    fn a_datagram_that_circles_slowly_is_found_in_its_first_round() {
        for circle in [100, 900, 1100, 3000, 9900].map(Duration::from_millis) {
            for id in [0, 7] {
                let forwarded = forwarded_of_stream(circle, |number| identified(id, &packet(number)));
                assert_eq!(forwarded, 500, "{circle:?}, {id}");
            }
        }
    }

    /// A copy may begin a new count while others are under way.
    #[test]
    fn most_equal_datagrams_that_circle_are_found_in_their_first_round() {
        for (circle, most) in [(100, 550), (500, 550), (900, 550), (1500, 1000), (3000, 1000)] {
            let forwarded = forwarded_of_stream(Duration::from_millis(circle), |_| packet(1));
            assert!((500..most).contains(&forwarded), "{forwarded}, {circle} ms");
        }
    }

    /// The second one has a shorter path. It does not count with the first one.
    #[test]
    fn a_datagram_with_a_larger_time_to_live_begins_a_new_count() {
        let mut passed = Passed::default();
        let mut comes_back = |ttl| passed.has_come_back(Instant::ZERO, ANY, &packet(1), ttl);
        assert_eq!([62, 64, 63, 63].map(&mut comes_back), [false, false, true, false]);
    }

    #[test]
    fn packets_that_circle_are_found_soon_however_many_there_are() {
        assert!(rounds(100) < 1.01, "{}", rounds(100));
        assert!(rounds(4000) < 1.4, "{}", rounds(4000));
        assert!(rounds(20_000) < 3.0, "{}", rounds(20_000));
    }

    #[test]
    fn an_equal_packet_after_ten_seconds_is_another_one() {
        let mut passed = Passed::default();
        let bytes = identified(7, &packet(1));
        let mut sees =
            |seconds: u64, ttl| passed.has_come_back(Instant::from_millis(seconds * 1000), ANY, &bytes, ttl);
        assert_eq!([sees(0, 60), sees(1, 60), sees(2, 61)], [false; 3], "it did not lose a hop");
        assert_eq!([sees(3, 60), sees(11, 59)], [true; 2]);
        assert_eq!([sees(12, 60), sees(13, 59)], [false, true]);
    }

    /// Keepalives are equal datagrams. Another path, or another host, may take more hops.
    #[test]
    fn equal_datagrams_with_other_identifications_are_other_packets() {
        let mut passed = Passed::default();
        let mut sees =
            |number: u16, ttl| passed.has_come_back(Instant::ZERO, ANY, &identified(number, &packet(1)), ttl);
        assert_eq!([sees(1, 64), sees(2, 62), sees(0, 62), sees(3, 60)], [false; 4]);
        assert_eq!([sees(1, 62), sees(2, 60), sees(0, 60)], [true; 3], "each of them has come back");
        // Of many, nearly each one is found.
        assert!((4..4000).all(|number| !sees(number, 64)));
        assert!((4..4000).filter(|number| sees(*number, 61)).count() > 3900);
    }

    #[test]
    fn a_packet_of_another_entry_is_another_one() {
        let mut passed = Passed::default();
        let [a, b] = [3, 4].map(|last| Ipv4Addr::new(10, 0, 0, last));
        let mut sees = |entry, ttl| passed.has_come_back(Instant::ZERO, entry, &packet(1), ttl);
        assert_eq!([sees(a, 255), sees(b, 62), sees(b, 62)], [false; 3]);
        assert_eq!([sees(b, 60), sees(a, 62)], [true; 2]);
    }
}
