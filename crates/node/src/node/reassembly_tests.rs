//! Tests of reassembly at a host and at the exit of a tunnel.

use super::*;
use crate::{Act, Boot, Input, Link};
use table::{Action, Class, Hop, Kinds as TunnelKinds, Lifetime, Route, RouteKey};
use wire::{EtherType, Frame, Ipv4Addr, Prefix, fragment, icmp, ipip, ipv4};

const ETH: Iface = Iface(1);
const MAC: Mac = Mac([2, 0, 0, 0, 0, 1]);
const ROUTER: Mac = Mac([2, 0, 0, 0, 0, 9]);
const OWN: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
const VISITOR: Ipv4Addr = Ipv4Addr::new(10, 7, 0, 7);
const FAR: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 9);
const VISITORS: Class = Class(200);

/// Returns a node whose address is the exit of a tunnel for one visitor. All packets leave by one router.
fn node() -> (Node, Outbox) {
    let mut node = Node::new(Vec::new(), Vec::new());
    node.add_address(Instant::ZERO, ETH, "10.1.0.1/24".parse().unwrap());
    let forward = Action::Forward(Hop::mac(ETH, ROUTER));
    let exit = RouteKey { class: None, src: Prefix::ANY, dst: Prefix::host(OWN) };
    let any = RouteKey { class: None, src: Prefix::ANY, dst: Prefix::ANY };
    for (key, action) in [
        (any, forward),
        (exit, Action::Open(VISITORS, TunnelKinds::ALL)),
        (RouteKey::to(VISITORS, VISITOR), forward),
    ] {
        node.set_route(Instant::ZERO, key, Route::new(action, Lifetime::Permanent));
    }
    let mut out = Outbox::default();
    node.handle(Instant::ZERO, Input::Start(&Boot::default()), &mut out);
    let up = Link::Up { cell: None, mac: MAC, mtu: 1500, name: "any" };
    node.handle(Instant::ZERO, Input::Link(ETH, up), &mut out);
    while out.next_act().is_some() {}
    (node, out)
}

fn divisible(dst: Ipv4Addr, len: usize) -> Vec<u8> {
    let payload: Vec<u8> = (0..len - ipv4::HEADER).map(|at| (at % 251) as u8).collect();
    Header { dont_fragment: false, id: 9, ..Header::new(ipv4::UDP, FAR, dst) }.emit(&payload)
}

/// Gives packets to a node at `now`, with the identities 1, 2 and so on. Returns the acts.
fn receive(node: &mut Node, out: &mut Outbox, now: Instant, packets: &[Vec<u8>]) -> Vec<Act> {
    for (id, bytes) in (1..).map(PacketId).zip(packets) {
        let link = Frame { kind: EtherType::IPV4, src: ROUTER, dst: MAC };
        node.receive(now, ETH, Packet { link, id, bytes: bytes.clone() }, out);
    }
    std::iter::from_fn(|| out.next_act().map(|(_, act)| act)).collect()
}

type Drops = Vec<(u64, &'static str)>;

/// Returns the dropped packets with their reasons, and the packets that were sent.
fn split(acts: Vec<Act>) -> (Drops, Vec<(Iface, Packet)>) {
    let (mut dropped, mut sent) = (Vec::new(), Vec::new());
    for act in acts {
        match act {
            Act::Drop(_, packet, reason) => dropped.push((packet.id.0, reason.0)),
            Act::Transmit(iface, packet) => sent.push((iface, packet)),
            other => panic!("{other:?}"),
        }
    }
    (dropped, sent)
}

#[test]
fn the_host_gets_the_whole_datagram() {
    let (mut node, mut out) = node();
    let whole = divisible(OWN, 1500);
    let cut = fragment::pieces(&whole, 576).unwrap();
    let (dropped, sent) = split(receive(
        &mut node,
        &mut out,
        Instant::ZERO,
        &[cut[2].clone(), cut[0].clone(), cut[0].clone(), cut[1].clone()],
    ));
    assert_eq!(dropped, [(3, "fragment_copy"), (2, "reassembled"), (1, "reassembled")]);
    let [(Iface::HOST, packet)] = sent.as_slice() else { panic!("{sent:?}") };
    assert_eq!((&packet.bytes, packet.id), (&whole, PacketId(4)));
    let mut held = Vec::new();
    node.holds(&mut |packet| held.push(packet));
    assert_eq!((held, node.deadline()), (Vec::new(), None));
}

/// A router has cut the outer datagram of a tunnel.
#[test]
fn a_tunnel_is_opened_when_its_outer_datagram_is_whole() {
    let (mut node, mut out) = node();
    let inner = divisible(VISITOR, 1480);
    let outer = ipip::encapsulate(&inner, FAR, OWN, 5).unwrap();
    let cut = fragment::pieces(&outer, 1400).unwrap();
    let (dropped, sent) = split(receive(&mut node, &mut out, Instant::ZERO, &cut));
    assert_eq!(dropped, [(1, "reassembled")]);
    let [(ETH, packet)] = sent.as_slice() else { panic!("{sent:?}") };
    let (header, payload) = Header::parse(&packet.bytes).unwrap();
    assert_eq!((header.dst, header.ttl, payload), (VISITOR, 63, &inner[20..]));
}

/// The source gets "time exceeded" with code 1 only if the first fragment has arrived (RFC 792).
#[test]
fn what_stays_incomplete_is_dropped_and_its_source_is_notified() {
    for (arrived, errors) in [(0, 1), (1, 0)] {
        let (mut node, mut out) = node();
        let cut = fragment::pieces(&divisible(OWN, 1500), 1000).unwrap();
        let now = Instant::from_millis(5);
        assert_eq!(receive(&mut node, &mut out, now, &cut[arrived..=arrived]), []);
        let mut held = Vec::new();
        node.holds(&mut |packet| held.push(packet));
        assert_eq!(held, [PacketId(1)], "the ledger knows where it is");
        let due = node.deadline().unwrap();
        assert_eq!(due, Instant::from_millis(30_005));
        node.handle(due, Input::Timeout, &mut out);
        let (dropped, sent) = split(receive(&mut node, &mut out, due, &[]));
        assert_eq!((dropped.as_slice(), sent.len()), (&[(1, "reassembly_timeout")][..], errors));
        for (_, packet) in sent {
            let (header, payload) = Header::parse(&packet.bytes).unwrap();
            let quote = icmp::Quote::of(&icmp::Message::parse(payload).unwrap()).unwrap();
            assert_eq!((header.src, header.dst, quote.kind, quote.code), (OWN, FAR, 11, 1));
            assert_eq!(quote.dst, OWN);
        }
        assert_eq!(node.deadline(), None);
    }
}

/// A fragment to another host is forwarded as it is.
#[test]
fn only_the_destination_reassembles() {
    let (mut node, mut out) = node();
    let cut = fragment::pieces(&divisible(Ipv4Addr::new(10, 4, 0, 1), 1500), 1000).unwrap();
    let (dropped, sent) = split(receive(&mut node, &mut out, Instant::ZERO, &cut));
    assert_eq!((dropped.len(), sent.len()), (0, 2));
}
