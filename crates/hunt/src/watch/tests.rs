//! Tests of the facts that the witness collects from given packets and marks.

use super::*;
use crate::draft::Protocol;
use crate::draw::{Size, draw};
use crate::run::plan;
use ::sctp::message::{Data, Init, Parameter};
use node::Transport;
use trace::Event;
use wire::{SocketAddrV4, udp};

/// Returns the witness of an Indirect TCP scenario, and the ids of the hosts with these names.
fn watch<const N: usize>(names: [&str; N]) -> (Watch, [HostId; N]) {
    let plan = plan(&draw(Protocol::IndirectTcp, 1, &Size::SIMULATOR)).unwrap();
    let watch = Watch::new(&plan, 1, Instant::NEVER, None);
    let of = |name: &str| watch.names.iter().position(|other| other == name).unwrap();
    let hosts = names.map(|name| HostId(of(name) as u32));
    (watch, hosts)
}

fn address_of(watch: &Watch, host: HostId) -> Ipv4Addr {
    *watch.addresses.iter().find(|(_, owner)| **owner == host).unwrap().0
}

fn datagram(to: Ipv4Addr, port: u16) -> Packet {
    let ends = [SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 9000), SocketAddrV4::new(to, port)];
    Packet { id: PacketId(7), ..Packet::new(wire::Mac::ZERO, udp::packet(ends[0], ends[1], b"data")) }
}

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

#[test]
fn a_stack_takes_what_is_for_its_host() {
    let (mut watch, [mobile, fixed]) = watch(["m0", "fixed"]);
    let packet = datagram(address_of(&watch, mobile), 9000);
    watch.sent(at(1), mobile, Iface::HOST, &packet);
    assert!(watch.facts.misled.is_empty());
    watch.sent(at(2), fixed, Iface::HOST, &packet);
    assert_eq!(watch.facts.misled.len(), 1, "{:?}", watch.facts);
}

/// The stack of a support router receives packets for the hosts whose connections it serves.
#[test]
fn the_stack_of_a_support_router_takes_what_is_for_its_hosts() {
    let (mut watch, [mobile, router]) = watch(["m0", "r0"]);
    let packet = datagram(address_of(&watch, mobile), 9000);
    watch.sent(at(1), router, Iface::HOST, &packet);
    assert!(watch.facts.misled.is_empty(), "{:?}", watch.facts.misled);
}

#[test]
fn a_packet_that_goes_round_is_noticed() {
    let (mut watch, [router]) = watch(["r0"]);
    let packet = datagram(Ipv4Addr::new(192, 0, 2, 2), 9000);
    for crossing in 1..=CROSSINGS {
        watch.sent(at(crossing.into()), router, Iface(1), &packet);
    }
    assert!(watch.facts.loops.is_empty());
    watch.sent(at(9), router, Iface(1), &packet);
    assert_eq!(watch.facts.loops.len(), 1);
}

/// An advertisement is sent repeatedly, and may have the same identity each time. So it is no loop.
#[test]
fn a_packet_for_a_group_may_be_sent_often() {
    let (mut watch, [router]) = watch(["r0"]);
    let mut packet = datagram(Ipv4Addr::BROADCAST, 9000);
    packet.link.dst = wire::Mac::BROADCAST;
    for crossing in 0..=CROSSINGS {
        watch.sent(at(crossing.into()), router, Iface(1), &packet);
    }
    assert!(watch.facts.loops.is_empty());
}

#[test]
fn a_packet_that_ends_by_its_ttl_went_round() {
    let (mut watch, [router]) = watch(["r0"]);
    let mut dropped = |reason: &'static str| {
        watch.happened(at(1), router, What::Dropped(Iface(1), PacketId(7), reason.into()));
        watch.facts.loops.len()
    };
    assert_eq!([dropped("no_route"), dropped("ttl_expired")], [0, 1]);
}

#[test]
fn the_longest_time_between_two_datagrams_is_kept() {
    let (mut watch, [mobile]) = watch(["m0"]);
    let packet = datagram(address_of(&watch, mobile), 9001);
    for ms in [100, 200, 5000, 5100] {
        watch.sent(at(ms), mobile, Iface::HOST, &packet);
    }
    assert_eq!(
        watch.facts.datagrams[&9001],
        Arrivals { first: at(100), last: at(5100), gap: (at(200), at(5000)) }
    );
}

/// Losses are counted by the port of the workload, also inside a tunnel.
#[test]
fn what_links_lose_is_counted_for_its_workload() {
    let (mut watch, [router]) = watch(["r0"]);
    let to = Ipv4Addr::new(192, 0, 2, 2);
    let plain = datagram(to, 9001);
    let tunnel = tunnel::encapsulate(tunnel::Kind::Gre, &datagram(to, 9002).bytes, to, to, 7).unwrap();
    let others = datagram(to, 434);
    for (number, bytes) in (1..).zip([plain.bytes.clone(), tunnel, others.bytes.clone()]) {
        let packet = Packet { id: PacketId(number), ..Packet::new(wire::Mac::ZERO, bytes) };
        watch.sent(at(number), router, Iface(1), &packet);
        for reason in [link::reason::LINK_ERROR, link::reason::QUEUE_FULL, link::reason::COLLISIONS] {
            watch.happened(at(10), router, What::Lost(Iface(1), PacketId(number), reason.0.into()));
        }
    }
    // All three packets have the source port 9000.
    let ports = |losses: &BTreeMap<u16, Vec<Instant>>| -> Vec<(u16, usize)> {
        losses.iter().map(|(port, at)| (*port, at.len())).collect()
    };
    assert_eq!(ports(&watch.facts.lost), [(9000, 3)]);
    assert_eq!(ports(&watch.facts.full), [(9000, 6)]);
}

fn app(watch: &mut Watch, ms: u64, host: HostId, stream: u32, change: AppChange) {
    let event = AppEvent { stream: StreamId(stream), change };
    watch.happened(at(ms), host, What::App(event));
}

/// Returns a download from `fixed` that is requested and accepted.
fn download() -> (Watch, [HostId; 2]) {
    let (mut watch, hosts @ [mobile, fixed]) = watch(["m0", "fixed"]);
    watch.quiet = at(1000);
    let (here, there) = (address_of(&watch, mobile), address_of(&watch, fixed));
    let (local, peer) = (SocketAddrV4::new(here, 50_000), SocketAddrV4::new(there, 9001));
    let asked = |local, peer| AppChange::Asked { role: "bulk", by: Transport::Tcp, local, peer };
    app(&mut watch, 1, fixed, 1, asked(Some(peer), None));
    app(&mut watch, 2, mobile, 1, asked(None, Some(peer)));
    app(&mut watch, 3, fixed, 1, AppChange::Accepted { new: StreamId(2), local: peer, peer: local });
    app(&mut watch, 4, mobile, 1, AppChange::Opened(local));
    (watch, hosts)
}

#[test]
fn a_run_is_over_when_all_ends_are_and_nothing_more_is_to_come() {
    let (mut watch, [mobile, fixed]) = download();
    app(&mut watch, 500, mobile, 1, AppChange::Finished);
    app(&mut watch, 2000, fixed, 2, AppChange::Read(1));
    assert!(!watch.is_full(), "the server has no end yet");
    app(&mut watch, 2001, fixed, 2, AppChange::Finished);
    assert!(watch.is_full());
    watch.quiet = at(3000);
    assert!(!watch.is_full(), "a move is to come");

    let (mut watch, [mobile, fixed]) = download();
    watch.expected = 2;
    app(&mut watch, 2000, mobile, 1, AppChange::Finished);
    app(&mut watch, 2001, fixed, 2, AppChange::Finished);
    assert!(!watch.is_full(), "a connection was not asked for yet");
}

#[test]
fn what_a_server_reads_is_no_stall_of_its_client_and_an_error_is_kept() {
    let (mut watch, [mobile, fixed]) = download();
    for ms in [1000, 2000] {
        app(&mut watch, ms, fixed, 2, AppChange::Read(100));
    }
    app(&mut watch, 2500, mobile, 1, AppChange::Closed(Some("reset".to_owned())));
    let client = watch.facts.streams[&9001].client.as_ref().unwrap();
    assert_eq!((client.gap, client.read, client.error()), ((at(1000), at(2000)), 0, Some("reset")));
}

/// Applications compare the data that they read with the data sent.
#[test]
fn wrong_data_are_noticed() {
    let (mut watch, [mobile]) = watch(["m0"]);
    let ended = |value| What::Marked(Mark::new("bulk_client", "ended").with("wrong_at", value));
    watch.happened(at(1), mobile, ended(Value::None));
    assert!(watch.facts.wrong.is_empty());
    watch.happened(at(2), mobile, ended(Value::from(5_u64)));
    assert_eq!(watch.facts.wrong.len(), 1);
}

fn mobile(watch: &Watch) -> HostId {
    HostId(watch.names.iter().position(|name| name == "m0").unwrap() as u32)
}

fn marks(watch: &mut Watch, all: &[(HostId, &'static str)]) {
    let host = address_of(watch, mobile(watch));
    for (router, name) in all {
        let mark = Mark::new("support_router", name).with("host", host).with("connection", 1_u32);
        watch.happened(at(1), *router, What::Marked(mark));
    }
}

#[test]
fn two_routers_that_serve_one_connection_are_noticed() {
    let both = |between: &[&'static str]| {
        let (mut watch, [old, new]) = watch(["r0", "r1"]);
        let mut all = vec![(old, "connected")];
        all.extend(between.iter().map(|name| (old, *name)));
        all.push((new, "taken"));
        marks(&mut watch, &all);
        watch.facts.owners.len()
    };
    assert_eq!([both(&["frozen"]), both(&[]), both(&["frozen", "resumed"])], [0, 1, 1]);
    assert_eq!([both(&["forgotten"]), both(&["connection_lost"])], [0, 0]);
}

/// A host that gets no answer from a router asks another router to open the connection. Then the first router does not
/// count as serving the connection, even if it opens its connection to the correspondent.
#[test]
fn a_router_that_is_not_waited_for_is_no_owner() {
    let owners = |all: &[usize]| {
        let (mut watch, routers) = watch(["r0", "r1"]);
        let said = [(0, "called"), (1, "called"), (0, "connected"), (1, "connected"), (0, "taken")];
        let said: Vec<_> = all.iter().map(|index| (routers[said[*index].0], said[*index].1)).collect();
        marks(&mut watch, &said);
        watch.facts.owners.len()
    };
    assert_eq!(owners(&[0, 1, 3, 2]), 0, "the first one is late");
    assert_eq!(owners(&[0, 1, 2, 3]), 0, "and so it is if it is earlier");
    assert_eq!(owners(&[0, 1, 3, 4]), 1, "but not if it takes the connection of the other");
}

#[test]
fn a_crash_is_an_excuse_for_the_hosts_that_the_router_had() {
    let (mut watch, [had, other]) = watch(["r0", "r1"]);
    marks(&mut watch, &[(had, "connected")]);
    watch.happened(at(2), other, What::Ordered(Event::new(EventKind::Crash, "r1")));
    assert!(watch.facts.crashed_for.is_empty());
    watch.happened(at(3), had, What::Ordered(Event::new(EventKind::Crash, "r0")));
    assert!(watch.facts.crashed_for.contains("m0"));
    marks(&mut watch, &[(other, "connected")]);
    assert!(watch.facts.owners.is_empty(), "a crashed router serves nothing");
}

/// A mobile host has greeted its new router, so the old router sends the connection there. The old router does not know
/// whether the new router has crashed since the greeting.
#[test]
fn a_crash_is_an_excuse_for_what_is_shipped_before_the_next_greeting() {
    let excused = |all: &[&str]| {
        let (mut watch, [old, new]) = watch(["r0", "r1"]);
        let (host, to) = (address_of(&watch, mobile(&watch)), address_of(&watch, new));
        for step in all {
            let (by, what) = match *step {
                "greeted" => (new, What::Marked(Mark::new("support_router", "greeted").with("host", host))),
                "shipped" => {
                    let mark =
                        Mark::new("support_router", "shipped").with("host", host).with("connection", 1_u32);
                    (old, What::Marked(mark.with("to", to)))
                }
                _ => (new, What::Ordered(Event::new(EventKind::Crash, "r1"))),
            };
            watch.happened(at(1), by, what);
        }
        watch.facts.crashed_for.contains("m0")
    };
    assert!(excused(&["greeted", "shipped", "crash"]));
    assert!(excused(&["greeted", "crash", "shipped"]));
    assert!(!excused(&["greeted", "crash", "greeted", "shipped"]));
    assert!(!excused(&["greeted", "shipped"]));
    for never_greeted in [&["shipped"][..], &["crash", "shipped"]] {
        assert!(!excused(never_greeted), "{never_greeted:?}");
    }
}

/// A HEARTBEAT ACK confirms the address that was probed. The answer may come from another address.
#[test]
fn the_answer_to_a_probe_confirms_the_address_that_was_probed() {
    let unconfirmed = |to: Ipv4Addr| {
        let (mut watch, [mobile]) = watch(["m0"]);
        let here = address_of(&watch, mobile);
        let [probed, answers] = [10, 20].map(|last| Ipv4Addr::new(192, 0, 2, last));
        let nonce = vec![7; 8];
        watch.sent(at(1), mobile, Iface(1), &sctp(here, probed, Chunk::Heartbeat(nonce.clone())));
        watch.received(at(2), mobile, Iface(1), &sctp(answers, here, Chunk::HeartbeatAck(nonce)));
        watch.sent(at(3), mobile, Iface(1), &sctp(here, to, Chunk::Data(data())));
        watch.facts.unconfirmed.len()
    };
    assert_eq!(unconfirmed(Ipv4Addr::new(192, 0, 2, 10)), 0, "what was probed");
    assert_eq!(unconfirmed(Ipv4Addr::new(192, 0, 2, 20)), 1, "where the answer came from");
}

/// A COOKIE ECHO confirms the address to which the INIT ACK was sent, even if the COOKIE ECHO comes from another
/// address.
#[test]
fn a_cookie_confirms_the_address_to_which_it_was_sent() {
    let unconfirmed = |to: Ipv4Addr| {
        let (mut watch, [mobile]) = watch(["m0"]);
        let here = address_of(&watch, mobile);
        let [asked, echoes] = [10, 20].map(|last| Ipv4Addr::new(192, 0, 2, last));
        let cookie = vec![7; 8];
        let parameters = vec![Parameter::Cookie(cookie.clone())];
        let ack = Init { tag: 1, a_rwnd: 1500, outbound: 1, inbound: 1, tsn: 1, parameters };
        watch.sent(at(1), mobile, Iface(1), &sctp(here, asked, Chunk::InitAck(ack)));
        watch.received(at(2), mobile, Iface(1), &sctp(echoes, here, Chunk::CookieEcho(cookie)));
        watch.sent(at(3), mobile, Iface(1), &sctp(here, to, Chunk::Data(data())));
        watch.facts.unconfirmed.len()
    };
    assert_eq!(unconfirmed(Ipv4Addr::new(192, 0, 2, 10)), 0, "where INIT ACK went");
    assert_eq!(unconfirmed(Ipv4Addr::new(192, 0, 2, 20)), 1, "where COOKIE ECHO came from");
}

/// A COOKIE ACK and an INIT ACK confirm the address from which they come.
#[test]
fn an_answer_confirms_the_address_that_it_comes_from() {
    let unconfirmed = |answer: Option<Chunk>| {
        let (mut watch, [mobile]) = watch(["m0"]);
        let (here, there) = (address_of(&watch, mobile), Ipv4Addr::new(192, 0, 2, 10));
        if let Some(answer) = answer {
            watch.received(at(1), mobile, Iface(1), &sctp(there, here, answer));
        }
        watch.sent(at(2), mobile, Iface(1), &sctp(here, there, Chunk::Data(data())));
        watch.facts.unconfirmed.len()
    };
    let ack = Init { tag: 1, a_rwnd: 1500, outbound: 1, inbound: 1, tsn: 1, parameters: Vec::new() };
    assert_eq!(unconfirmed(None), 1);
    assert_eq!([Chunk::CookieAck, Chunk::InitAck(ack)].map(|answer| unconfirmed(Some(answer))), [0, 0]);
}

fn data() -> Data {
    Data {
        ends: true,
        begins: true,
        unordered: false,
        immediate: false,
        tsn: 1,
        stream: 0,
        ssn: 0,
        ppid: 0,
        data: vec![1],
    }
}

fn sctp(from: Ipv4Addr, to: Ipv4Addr, chunk: Chunk) -> Packet {
    let payload = Sctp { src_port: 9000, dst_port: 9000, tag: 1, chunks: vec![chunk] }.emit();
    let header = Header::new(wire::ipv4::SCTP, from, to);
    Packet { id: PacketId(8), ..Packet::new(wire::Mac::ZERO, header.emit(&payload)) }
}
