//! Each reason for which a station or a mobile host drops a packet: the reason is reported, and no state changes.

use crate::common;
use cellular_ip::message::{ICMP_TYPE, RouteUpdate};
use cellular_ip::station::mark;
use cellular_ip::update_request::{self, UpdateRequest};
use cellular_ip::{Gateway, Mobile, Station};
use common::{
    CORRESPONDENT, GATEWAY, HOST, WALL, configured, key_of, neighbor, signed, stamp, station, update,
};
use node::config::Interfaces;
use node::{Act, Boot, Effect, Input, Link, Node, Outbox, PuntReason, Rng, Role, Rx, Value};
use wire::ipv4::{self, Header};
use wire::{
    Cell, Duration, EtherType, Frame, Iface, Instant, Ipv4Addr, Mac, Packet, PacketId, Reason, SocketAddrV4,
};
use wire::{icmp, udp};

const UP: Iface = Iface(1);
const LEFT: Iface = Iface(2);
const RIGHT: Iface = Iface(3);
const AIR: Iface = Iface(4);

fn seconds(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

/// A role under test, and the current time.
struct Bench<R> {
    role: R,
    now: Instant,
}

impl<R: Role> Bench<R> {
    fn new(role: R) -> Self {
        let mut bench = Self { role, now: Instant::ZERO };
        bench.give(Input::Start(&Boot::new(WALL)));
        bench
    }

    fn give(&mut self, input: Input<'_>) -> Vec<Effect> {
        let mut out = Outbox::default();
        self.role.handle(self.now, input, &mut out);
        out.drain_effects().collect()
    }

    fn packet(&mut self, iface: Iface, why: PuntReason, bytes: Vec<u8>) -> Vec<Effect> {
        let packet = arrived(iface, bytes);
        let rx = Rx::parse(iface, why, &packet).unwrap();
        self.give(Input::Packet(rx, packet))
    }

    fn control(&mut self, iface: Iface, bytes: Vec<u8>) -> Vec<Effect> {
        self.packet(iface, PuntReason::Listen, bytes)
    }

    /// Lets timers run until `at`. Mappings do not expire here; a test reports that they expire with [`Input::Idle`].
    fn run_to(&mut self, at: Instant) {
        while let Some(due) = self.role.deadline().filter(|due| *due <= at) {
            self.now = due;
            self.give(Input::Timeout);
            assert!(self.role.deadline().is_none_or(|next| next > due), "still due");
        }
        self.now = at;
    }

    /// Returns the state of the role, without the counters of dropped packets and of the current second.
    fn memory(&self) -> String {
        let mut all = format!("{:?}", self.role);
        while let Some(begin) = all.find("PerSecond {") {
            let mut depth = 0;
            let closes = |c: char| {
                depth += i32::from(c == '{') - i32::from(c == '}');
                c == '}' && depth == 0
            };
            let end = begin + all[begin..].find(closes).unwrap();
            all.replace_range(begin..=end, "");
        }
        let Some((before, counters)) = all.split_once("refused: {") else { return all };
        format!("{before}{}", counters.split_once('}').unwrap().1)
    }

    fn refused(&self, reason: &str) -> i64 {
        let status = self.role.status();
        let Some(refused) = status.get("refused") else { return 0 };
        refused.get(reason).and_then(Value::as_int).unwrap_or_default()
    }

    /// Gives the role a packet, and asserts that it is dropped and counted once, for this reason. No route, ingress
    /// policy or other state may change. A mark of the drop, and an update-request to the sender, are permitted.
    #[track_caller]
    fn refuses(&mut self, reason: &str, iface: Iface, why: PuntReason, bytes: Vec<u8>) {
        let (memory, count) = (self.memory(), self.refused(reason));
        let packet = arrived(iface, bytes.clone());
        let may_follow = |effect: &Effect| match effect {
            Effect::Do(Act::Mark(mark)) => {
                [mark::POSSIBLE_TAMPERING, mark::UPDATE_REQUESTED].contains(&mark.name)
            }
            Effect::Send(Some(to), request) => *to == iface && request.link.dst == neighbor(iface.0),
            _ => false,
        };
        let mut effects = self.packet(iface, why, bytes);
        effects.retain(|effect| !may_follow(effect));
        match effects.as_slice() {
            [Effect::Discard(from, discarded, given)] => {
                assert_eq!((*from, discarded, given.0), (iface, &packet, reason));
            }
            effects => panic!("not only discarded for {reason}: {effects:?}"),
        }
        assert_eq!(self.memory(), memory, "{reason}");
        if memory.starts_with("Station") {
            assert_eq!(self.refused(reason), count + 1);
        }
    }

    #[track_caller]
    fn refuses_control(&mut self, reason: &str, iface: Iface, bytes: Vec<u8>) {
        self.refuses(reason, iface, PuntReason::Listen, bytes);
    }
}

fn arrived(iface: Iface, bytes: Vec<u8>) -> Packet {
    let link = Frame { kind: EtherType::IPV4, src: neighbor(iface.0), dst: Mac([2, 0, 0, 0, 1, 0]) };
    Packet { link, id: PacketId(1), bytes }
}

fn data(src: Ipv4Addr, dst: Ipv4Addr) -> Vec<u8> {
    udp::packet(SocketAddrV4::new(src, 9000), SocketAddrV4::new(dst, 9000), b"data")
}

fn new_station(changes: &str) -> Bench<Station> {
    Bench::new(station(Station::new, changes))
}

/// Returns a station with a mapping of the host to the left neighbor, made at 10 s.
fn mapped(changes: &str) -> Bench<Station> {
    let mut bench = new_station(changes);
    bench.now = seconds(10);
    accepted(&bench.control(LEFT, signed(update(seconds(10), false))));
    bench
}

/// Asserts that a message was accepted: it was sent to the uplink.
#[track_caller]
fn accepted(effects: &[Effect]) {
    assert!(matches!(effects.last(), Some(Effect::Send(Some(UP), _))), "{effects:?}");
}

fn changed(change: impl FnOnce(&mut RouteUpdate)) -> Vec<u8> {
    let mut update = update(seconds(11), false);
    change(&mut update);
    signed(update)
}

/// Returns an acceptable message with one byte of the ICMP message changed, and a correct checksum.
fn forged(at: usize, value: u8) -> Vec<u8> {
    let whole = signed(update(seconds(11), false));
    let (header, body) = Header::parse(&whole).unwrap();
    let mut body = body.to_vec();
    body[at] = value;
    header.emit(&icmp::Message { kind: body[0], code: body[1], body: &body[4..] }.emit())
}

#[test]
fn the_message_that_all_others_are_changed_from_is_accepted() {
    accepted(&mapped("").control(RIGHT, changed(|_| ())));
    accepted(&mapped("").control(AIR, changed(|_| ())));
}

#[test]
fn a_route_update_from_the_uplink_has_the_wrong_direction() {
    mapped("").refuses_control("wrong_direction", UP, changed(|_| ()));
}

#[test]
fn a_route_update_to_another_gateway_is_refused() {
    let bytes = changed(|update| update.gateway = Ipv4Addr::new(10, 1, 0, 3));
    mapped("").refuses_control("wrong_gateway", RIGHT, bytes);
}

#[test]
fn no_mobile_host_has_the_address_of_nobody_of_this_host_of_a_group_or_of_the_gateway() {
    let mut bench = mapped("");
    // 10.1.0.2 is the address of the node itself.
    for source in [
        "0.0.0.0",
        "0.1.2.3",
        "127.0.0.1",
        "224.0.0.1",
        "239.1.2.3",
        "240.0.0.1",
        "255.255.255.255",
        "10.1.0.1",
        "10.1.0.2",
    ] {
        bench.refuses_control("bad_source", RIGHT, changed(|update| update.mobile = source.parse().unwrap()));
    }
}

#[test]
fn a_key_of_another_generation_is_unknown() {
    for generation in [0, 2, 255] {
        let bytes = changed(|update| update.auth.key_gen = generation);
        mapped("").refuses_control("unknown_key_generation", RIGHT, bytes);
    }
}

#[test]
fn on_the_air_a_route_update_must_name_this_base_station() {
    for named in [None, Some(2)] {
        let bytes = changed(|update| update.serving_bs = named);
        mapped("").refuses_control("wrong_serving_bs", AIR, bytes.clone());
        // A wired downlink leads to another node, which was the first hop.
        accepted(&mapped("").control(RIGHT, bytes));
    }
}

#[test]
fn a_wrong_digest_wherever_it_is_wrong_is_bad_authentication() {
    let mut bench = mapped("");
    // The changed bytes are in the timestamp, S, `R_MH`, both ends of the digest, and the serving base station.
    for (at, value) in [(11, 1), (12, 0x12), (20, 9), (28, 0), (43, 0), (49, 2)] {
        bench.refuses_control("bad_auth", RIGHT, forged(at, value));
    }
    let mut stolen = update(seconds(11), false);
    stolen.sign(&key_of(CORRESPONDENT));
    bench.refuses_control("bad_auth", RIGHT, stolen.emit());
}

#[test]
fn a_timestamp_that_is_equal_or_older_is_stale_wherever_it_comes_from() {
    let mut bench = mapped("");
    for timestamp in [stamp(seconds(10)), stamp(seconds(10)) - 1, stamp(seconds(6))] {
        for iface in [LEFT, RIGHT, AIR] {
            bench.refuses_control("stale_timestamp", iface, changed(|update| update.timestamp = timestamp));
        }
    }
    accepted(&bench.control(RIGHT, changed(|update| update.timestamp = stamp(seconds(10)) + 1)));
}

#[test]
fn a_clock_more_than_the_window_off_is_refused_either_way() {
    let second = 1 << 32;
    let now = stamp(seconds(10));
    let mut bench = new_station("");
    bench.now = seconds(10);
    for timestamp in [0, now - 5 * second - 1, now + 5 * second + 1, now + 3600 * second, now ^ 1 << 63] {
        bench.refuses_control("outside_window", RIGHT, changed(|update| update.timestamp = timestamp));
    }
    accepted(&bench.control(RIGHT, changed(|update| update.timestamp = now - 5 * second)));
    accepted(&bench.control(RIGHT, changed(|update| update.timestamp = now + 5 * second)));
}

#[test]
fn a_full_cache_refuses_the_new_and_keeps_the_known() {
    let mut bench = mapped("cache_capacity = 1");
    let other = changed(|update| update.mobile = Ipv4Addr::new(10, 1, 0, 8));
    bench.refuses_control("cache_full", RIGHT, other);
    accepted(&bench.control(RIGHT, changed(|_| ())));
}

/// Hosts without a mapping do not count as part of the capacity; their timestamps have separate places.
#[test]
fn remembered_timestamps_do_not_fill_the_cache() {
    let mut bench = mapped("cache_capacity = 1");
    let other = |last: u8| changed(|update| update.mobile = Ipv4Addr::new(10, 1, 0, last));
    bench.give(Input::Idle(node::RouteKey::to(node::Class(17), HOST), seconds(10)));
    accepted(&bench.control(RIGHT, other(8)));
    bench.refuses_control("cache_full", RIGHT, other(9));
    bench.refuses_control("cache_full", LEFT, changed(|_| ()));
    let known = changed(|update| update.timestamp = stamp(seconds(10)));
    bench.refuses_control("stale_timestamp", LEFT, known);
    bench.run_to(seconds(12));
    bench.give(Input::Idle(node::RouteKey::to(node::Class(17), Ipv4Addr::new(10, 1, 0, 8)), seconds(11)));
    bench.refuses_control("cache_full", RIGHT, other(9)); // two timestamps are remembered
    bench.run_to(seconds(23));
    assert!(!bench.memory().contains("10.1.0.8"));
}

/// A digest costs two HMACs, so it is not checked in a message that is dropped anyway. After too many wrong digests, a
/// neighbor's messages are dropped for the rest of the second, but not those of other neighbors.
#[test]
fn wrong_digests_are_limited_for_each_neighbor_and_tampering_is_marked_once_a_second() {
    let mut bench = mapped("");
    let late = changed(|update| {
        update.timestamp = stamp(seconds(10));
        update.auth.digest = [0; 16];
    });
    bench.refuses_control("stale_timestamp", RIGHT, late);
    let is_alarm = |effect: &&Effect| matches!(effect, Effect::Do(Act::Mark(mark)) if mark.name == mark::POSSIBLE_TAMPERING);
    let mut alarms = 0;
    for _ in 0..1000 {
        alarms += bench.control(RIGHT, forged(28, 0)).iter().filter(is_alarm).count();
    }
    assert_eq!((alarms, bench.refused("bad_auth")), (1, 1000));
    bench.refuses_control("auth_limit", RIGHT, forged(28, 0));
    bench.refuses_control("auth_limit", RIGHT, changed(|_| ()));
    accepted(&bench.control(LEFT, changed(|_| ())));
    bench.now = seconds(11);
    assert_eq!(bench.control(RIGHT, forged(28, 0)).iter().filter(is_alarm).count(), 0, "stale by now");
    accepted(&bench.control(RIGHT, changed(|update| update.timestamp += 1)));
}

/// A node that was restarted refuses a message with a timestamp from before the restart. The node does not remember
/// earlier timestamps, so the message may be a replay.
#[test]
fn what_was_sent_before_a_node_began_is_refused_for_as_long_as_the_window_reaches() {
    let mut bench = new_station("");
    bench.now = seconds(20);
    bench.give(Input::Start(&Boot::new(WALL)));
    bench.now = seconds(21);
    for sent in [16, 19] {
        let bytes = changed(|update| update.timestamp = stamp(seconds(sent)));
        bench.refuses_control("outside_window", RIGHT, bytes);
    }
    accepted(&bench.control(RIGHT, changed(|update| update.timestamp = stamp(seconds(20)))));
}

/// When a clock is set, the replay window moves with it, but the newest timestamp of a host stays.
#[test]
fn a_node_whose_clock_is_set_back_goes_on_with_the_new_time() {
    let mut bench = mapped("");
    bench.now = seconds(20);
    bench.give(Input::Wall(wire::WallTime(WALL.0 - 3_000_000_000)));
    // A message is accepted that was sent before the clock was set, but after the start of the node.
    accepted(&bench.control(RIGHT, changed(|update| update.timestamp = stamp(seconds(15)))));
    accepted(&bench.control(RIGHT, changed(|update| update.timestamp = stamp(seconds(17)))));
    bench.refuses_control("outside_window", RIGHT, changed(|update| update.timestamp = stamp(seconds(23))));
}

/// Data alone refresh a mapping for three to four times the route-reauth-time, and no longer. Another host may send
/// such data, with the address of a host that has left the cell.
#[test]
fn data_do_not_keep_a_mapping_for_ever_that_no_route_update_confirms() {
    let mut bench = mapped("route_reauth_time = \"2s\"");
    let route = |effects: Vec<Effect>| {
        effects.into_iter().find_map(|effect| match effect {
            Effect::Do(Act::Route(_, Some(route))) => Some(route.lifetime),
            _ => None,
        })
    };
    for (at, ends) in [(12, None), (14, None), (16, None), (18, Some(27))] {
        assert_eq!(bench.role.deadline(), Some(seconds(at)));
        bench.now = seconds(at);
        let life = route(bench.give(Input::Timeout));
        assert_eq!(life, ends.map(|ends| node::Lifetime::Until(seconds(ends))), "{at} s");
    }
    // The mapping ends at 27 s: later searches do not extend its lifetime.
    for at in [20, 22, 24, 26] {
        assert_eq!(bench.role.deadline(), Some(seconds(at)));
        bench.now = seconds(at);
        assert_eq!(route(bench.give(Input::Timeout)), None, "{at} s");
    }
    let again = route(bench.control(LEFT, changed(|update| update.timestamp = stamp(seconds(26)))));
    assert_eq!(again, Some(node::Lifetime::SoftState(Duration::from_secs(9))));
    for (at, ends) in [(28, None), (30, None), (32, None), (34, Some(43))] {
        bench.now = seconds(at);
        let life = route(bench.give(Input::Timeout));
        assert_eq!(life, ends.map(|ends| node::Lifetime::Until(seconds(ends))), "{at} s");
    }
}

/// A host whose data fail the check of their source is sent at most one update-request a second.
#[test]
fn a_host_whose_data_are_refused_is_asked_for_a_route_update_once_a_second() {
    let mut bench = mapped("");
    let asked = |effects: &[Effect]| effects.iter().filter(|e| matches!(e, Effect::Send(..))).count();
    let from =
        |bench: &mut Bench<Station>, src| bench.packet(RIGHT, PuntReason::Check, data(src, CORRESPONDENT));
    let counts: Vec<usize> = (0..3).map(|_| asked(&from(&mut bench, HOST))).collect();
    assert_eq!(counts, [1, 0, 0]);
    assert_eq!(asked(&from(&mut bench, Ipv4Addr::new(10, 1, 0, 8))), 1);
    assert_eq!(asked(&from(&mut bench, GATEWAY)), 0, "no mobile host");
    bench.now = seconds(11);
    assert_eq!(asked(&from(&mut bench, HOST)), 1);
}

/// During a flood of data from more made-up sources than a node counts, a host that is cut off is still sent an
/// update-request.
#[test]
fn a_flood_of_sources_keeps_no_host_from_being_asked() {
    let mut bench = mapped("");
    let mut asked = |source| {
        let effects = bench.packet(RIGHT, PuntReason::Check, data(source, CORRESPONDENT));
        effects.iter().filter(|effect| matches!(effect, Effect::Send(..))).count()
    };
    let flood = (0..2000).map(|number| Ipv4Addr::from_bits(0x0a05_0000 + number));
    assert_eq!(flood.map(&mut asked).sum::<usize>(), 2000);
    assert_eq!(asked(HOST), 1);
    assert_eq!(asked(HOST), 0, "once a second");
}

/// An update-request takes the path of data to its host. An update-request from a downlink is dropped.
#[test]
fn update_requests_go_down_only() {
    let request = |mobile| UpdateRequest {
        gateway: GATEWAY,
        mobile,
        why: update_request::Why::NoMapping,
        node: 9,
        key_generation: 1,
    };
    let mut bench = mapped("");
    let sent = bench.control(UP, request(HOST).emit());
    assert!(matches!(sent.as_slice(), [Effect::Send(Some(LEFT), _)]), "{sent:?}");
    bench.refuses_control("no_mapping", UP, request(Ipv4Addr::new(10, 1, 0, 8)).emit());
    bench.refuses_control("cip_not_route_update", LEFT, request(HOST).emit());
    let whole = request(HOST).emit();
    let (header, body) = Header::parse(&whole).unwrap();
    let long = icmp::Message { kind: ICMP_TYPE, code: 6, body: &[body, &[0]].concat()[4..] }.emit();
    bench.refuses_control("cip_unused_field", UP, header.emit(&long));
}

/// When a packet to a sender beyond the gateway is too big, a node reports it by an ICMP error from the gateway's
/// address. A station sends such an error from a wired downlink up. It refuses one from the radio, because any host
/// could have sent it.
#[test]
fn errors_of_nodes_go_up_by_wire_only() {
    let mut bench = mapped("");
    let about = data(CORRESPONDENT, HOST);
    let error = wire::IcmpError::FragmentationNeeded { mtu: 1200 }.about(&about, GATEWAY).unwrap();
    accepted(&bench.packet(RIGHT, PuntReason::Check, error.clone()));
    bench.refuses("uplink_no_mapping", AIR, PuntReason::Check, error);
    bench.refuses("uplink_no_mapping", RIGHT, PuntReason::Check, data(GATEWAY, CORRESPONDENT));
}

#[test]
fn a_full_pool_is_marked_once_a_second_and_counted() {
    let mut bench = mapped("delay_device = 0\ndelay_pool = 0");
    bench.now = seconds(11);
    accepted(&bench.control(RIGHT, signed(update(seconds(11), true))));
    let is_mark =
        |effect: &&Effect| matches!(effect, Effect::Do(Act::Mark(mark)) if mark.name == mark::POOL_EXHAUSTED);
    let mut marks = 0;
    for _ in 0..100 {
        marks +=
            bench.packet(UP, PuntReason::Action, data(CORRESPONDENT, HOST)).iter().filter(is_mark).count();
    }
    assert_eq!((marks, bench.role.status().get("delay_pool_exhausted")), (1, Some(&Value::Int(100))));
}

#[test]
fn a_gateway_has_the_address_that_route_updates_go_to() {
    let names = ["up", "left", "right", "air"].map(str::to_owned);
    let elsewhere = common::station_config("gateway = \"10.1.0.9\"");
    let error = Gateway::new(elsewhere, Interfaces(&names)).unwrap_err();
    assert_eq!(error.key, "gateway");
}

#[test]
fn malformed_messages_are_refused_with_the_reason_of_their_reader() {
    let mut bench = mapped("");
    let cases = [
        (forged(12, 0x32), "cip_indirect"),
        (forged(12, 0x42), "cip_unused_flags"),
        (forged(14, 1), "cip_unused_field"),
        (forged(12, 0x00), "cip_atype_none"),
        (forged(12, 0x01), "cip_atype_md5"),
        (forged(12, 0x03), "cip_atype_reserved"),
        (forged(12, 0x0f), "cip_atype_private"),
        (forged(13, 27), "cip_auth_length"),
        (forged(17, 1), "cip_auth_padding"),
        (forged(44, 5), "cip_unknown_tlv"),
        (forged(45, 5), "cip_tlv_overrun"),
        (forged(45, 3), "cip_serving_bs_length"),
        (forged(1, 1), "cip_not_route_update"),
        (forged(1, 7), "cip_unknown_code"),
    ];
    for (bytes, reason) in cases {
        bench.refuses_control(reason, RIGHT, bytes);
    }
    let mut bad_sum = changed(|_| ());
    bad_sum[ipv4::HEADER + 5] ^= 1;
    bench.refuses_control("icmp_checksum", RIGHT, bad_sum);
    let (header, body) = (Header::new(ipv4::ICMP, HOST, GATEWAY), [ICMP_TYPE, 0, 0]);
    bench.refuses_control("icmp_truncated", RIGHT, header.emit(&body));
    let whole = changed(|_| ());
    let (header, body) = Header::parse(&whole).unwrap();
    let piece = Header { more_fragments: true, dont_fragment: false, ..header };
    bench.refuses_control("cip_fragment", RIGHT, piece.emit(body));
}

#[test]
fn data_from_a_host_without_a_mapping_make_none() {
    let stranger = Ipv4Addr::new(10, 1, 0, 8);
    for iface in [LEFT, RIGHT, AIR] {
        mapped("").refuses("uplink_no_mapping", iface, PuntReason::Check, data(stranger, CORRESPONDENT));
    }
}

#[test]
fn data_from_another_neighbor_than_the_mapped_one_move_nothing() {
    let mut bench = mapped("");
    bench.refuses("uplink_mismatch", RIGHT, PuntReason::Check, data(HOST, CORRESPONDENT));
    bench.now = seconds(11);
    accepted(&bench.control(RIGHT, signed(update(seconds(11), true))));
    bench.refuses("uplink_mismatch", AIR, PuntReason::ReversePath, data(HOST, CORRESPONDENT));
}

#[test]
fn data_to_a_host_without_two_mappings_are_not_for_the_role() {
    mapped("").refuses("no_mapping", UP, PuntReason::Action, data(CORRESPONDENT, Ipv4Addr::new(10, 1, 0, 8)));
}

/// The host was heard on its second path, and now prepares a third path. Copies for the third path are delayed again,
/// because the host has sent no data by it.
#[test]
fn copies_for_a_third_leg_are_delayed_though_the_second_was_heard() {
    let mut bench = mapped("delay_device = 8");
    let sent_to = |effects: &[Effect]| -> Vec<Iface> {
        let sent = effects.iter().filter_map(|effect| match effect {
            Effect::Send(Some(iface), _) => Some(*iface),
            _ => None,
        });
        sent.collect()
    };
    bench.now = seconds(11);
    accepted(&bench.control(RIGHT, signed(update(seconds(11), true))));
    accepted(&bench.packet(RIGHT, PuntReason::ReversePath, data(HOST, CORRESPONDENT)));
    let down = bench.packet(UP, PuntReason::Action, data(CORRESPONDENT, HOST));
    assert_eq!(sent_to(&down), [LEFT, RIGHT]);
    bench.now = seconds(12);
    accepted(&bench.control(AIR, signed(update(seconds(12), true))));
    let down = bench.packet(UP, PuntReason::Action, data(CORRESPONDENT, HOST));
    assert_eq!(sent_to(&down), [LEFT]);
}

#[test]
fn data_that_nobody_can_read_are_refused_and_do_not_vanish() {
    let (mut node, mut out) = (Node::new(vec![Box::new(mapped("").role)], Vec::new()), Outbox::default());
    let packets = [data(CORRESPONDENT, HOST)[..19].to_vec(), changed(|_| ())[..24].to_vec()];
    for (iface, bytes) in [UP, RIGHT].into_iter().zip(packets) {
        let packet = arrived(iface, bytes);
        let up = Link::Up { cell: None, mac: packet.link.dst, mtu: 1500, name: "any" };
        node.handle(seconds(10), Input::Link(iface, up), &mut out);
        while out.next_act().is_some() {}
        node.receive(seconds(10), iface, packet.clone(), &mut out);
        let acts: Vec<Act> = std::iter::from_fn(|| out.next_act()).map(|(_, act)| act).collect();
        assert_eq!(acts, [Act::Drop(iface, packet, Reason("ip_truncated"))]);
    }
}

#[test]
fn a_packet_on_its_last_hop_is_not_sent_on_by_the_role() {
    let mut bench = mapped("");
    bench.now = seconds(11);
    accepted(&bench.control(RIGHT, signed(update(seconds(11), true))));
    let whole = data(HOST, CORRESPONDENT);
    let (header, payload) = Header::parse(&whole).unwrap();
    bench.refuses("ttl_expired", LEFT, PuntReason::ReversePath, Header { ttl: 1, ..header }.emit(payload));
}

/// A replay of a host's last message through another base station is refused, even if the host's mapping has expired.
/// The window alone would accept the replay.
#[test]
fn a_replay_after_the_mapping_has_expired_is_stale_for_as_long_as_the_window_would_let_it_pass() {
    let mut bench = new_station("route_timeout = \"2s\"");
    bench.now = seconds(10);
    // The host's clock is ahead by as much as nodes accept. So the message stays inside the window for ten seconds.
    let ahead = signed(update(seconds(15), false));
    accepted(&bench.control(LEFT, ahead.clone()));
    bench.now = seconds(12);
    bench.give(Input::Idle(node::RouteKey::to(node::Class(17), HOST), seconds(10)));
    assert_eq!(bench.role.status().get("hosts"), Some(&Value::Int(0)), "the mapping has expired");
    for second in 12..=20 {
        bench.run_to(seconds(second));
        bench.refuses_control("stale_timestamp", RIGHT, ahead.clone());
    }
    bench.run_to(seconds(22));
    assert!(!bench.memory().contains("10.1.0.7"), "then the host is forgotten");
    bench.refuses_control("outside_window", RIGHT, ahead);
}

#[test]
fn a_gateway_refuses_what_a_station_refuses() {
    let mut bench = Bench::new(station(Gateway::new, ""));
    bench.now = seconds(11);
    let count = |bench: &Bench<Gateway>| bench.refused("bad_auth");
    bench.refuses_control("bad_auth", RIGHT, forged(28, 0));
    assert_eq!(count(&bench), 1);
}

const MOBILE: &str = r#"
    address = "10.1.0.7"
    gateway = "10.1.0.1"
    interface = "air"
    r_mh = "0102030405060708"
    session_key = "00"
    stations = [{ name = "b2", id = 2, cell = 2, mac = "02:00:00:00:00:b2" }]
"#;

/// Returns a mobile host with a radio and a wire.
fn mobile(changes: &str) -> Bench<Mobile> {
    let names = ["air", "wire"].map(str::to_owned);
    Bench::new(Mobile::new(configured(MOBILE, changes), Interfaces(&names), Rng::new(1)).unwrap())
}

const LINK_UP: Link<'_> = Link::Up { cell: Some(Cell(2)), mac: Mac::ZERO, mtu: 1500, name: "air" };

#[test]
fn a_mobile_host_keeps_as_many_of_its_packets_as_it_was_told() {
    let mut bench = mobile("tuning_queue = 2");
    for _ in 0..2 {
        assert_eq!(bench.packet(Iface::HOST, PuntReason::Action, data(HOST, CORRESPONDENT)), []);
    }
    bench.refuses("tuning_queue_full", Iface::HOST, PuntReason::Action, data(HOST, CORRESPONDENT));
    bench.now += Duration::from_millis(5);
    let sent = bench.give(Input::Link(Iface(1), LINK_UP));
    assert_eq!(sent.iter().filter(|effect| matches!(effect, Effect::Send(None, _))).count(), 2);
}

/// A base station sends update-requests by radio. Requests that come by another interface are not answered.
#[test]
fn an_update_request_by_another_interface_than_the_radio_is_not_answered() {
    let mut bench = mobile("");
    bench.give(Input::Link(Iface(1), LINK_UP));
    bench.now = seconds(1);
    let why = update_request::Why::NoMapping;
    let request = UpdateRequest { gateway: GATEWAY, mobile: HOST, why, node: 2, key_generation: 1 };
    let mut answers = |iface| {
        let effects = bench.control(iface, request.emit());
        effects.iter().filter(|effect| matches!(effect, Effect::Send(..))).count()
    };
    assert_eq!((answers(Iface(2)), answers(Iface(1))), (0, 1));
}
