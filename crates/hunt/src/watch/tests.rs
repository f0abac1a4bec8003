//! What the watch writes down of packets and marks that a test makes.

use super::*;
use crate::draft::Protocol;
use crate::draw::{Size, draw};
use crate::run::plan;
use trace::Event;
use wire::{SocketAddrV4, udp};

/// A watch of some scenario of Indirect TCP, and the numbers of hosts of these names.
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

#[test]
fn the_longest_time_between_two_datagrams_is_kept() {
    let (mut watch, [mobile]) = watch(["m0"]);
    let packet = datagram(address_of(&watch, mobile), 9001);
    for ms in [100, 200, 5000, 5100] {
        watch.sent(at(ms), mobile, Iface::HOST, &packet);
    }
    assert_eq!(watch.facts.datagrams[&9001], Arrivals { last: at(5100), gap: (at(200), at(5000)) });
}

fn marks(watch: &mut Watch, all: &[(HostId, &'static str)]) {
    let host = address_of(watch, HostId(watch.names.iter().position(|name| name == "m0").unwrap() as u32));
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
    assert!(watch.facts.owners.is_empty(), "who crashed serves nothing");
}
