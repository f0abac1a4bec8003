//! Tests of tunnels, neighbors, groups and ICMP errors, and of packets that roles intercept.

use super::super::errors::ERRORS_PER_SECOND;
use super::*;
use crate::{Boot, Lifetime, Link, Listen, Mark, Neighbor, Proto, Role, Value};
use table::{Action, Encap, Kind, Kinds as TunnelKinds, Route};
use wire::{Duration, Frame, IcmpError, PacketId, SocketAddrV4, icmp, ipip, tunnel, udp};

const ETH: Iface = Iface(1);
const AIR: Iface = Iface(2);
const MACS: [Mac; 2] = [Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2])];
const ROUTER: Mac = Mac([2, 0, 0, 0, 0, 9]);
const OWN: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
const MOBILE: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 7);
const CARE_OF: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 9);
const ALL_HOSTS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 1);
const VISITORS: Class = Class(200);

/// A role that sets its routes at the start, and marks each packet that it receives. The role keeps no packet.
#[derive(Debug)]
struct Agent {
    name: &'static str,
    listens: Vec<Listen>,
    intercepts: std::collections::BTreeSet<crate::Tuple>,
    routes: Vec<(RouteKey, Action)>,
    passes: bool,
    stores: bool,
    notice: Option<Duration>,
}

use table::RouteKey;

impl Role for Agent {
    fn name(&self) -> &'static str {
        self.name
    }
    fn listens(&self) -> &[Listen] {
        &self.listens
    }
    fn intercepts(&self) -> &std::collections::BTreeSet<crate::Tuple> {
        &self.intercepts
    }
    fn handle(&mut self, _now: Instant, input: Input<'_>, out: &mut Outbox) {
        match input {
            Input::Start(boot) => {
                for (key, action) in &self.routes {
                    let route = Route::new(*action, Lifetime::Permanent);
                    out.route(*key, Route { notice: self.notice, ..route });
                }
                for (key, value) in &boot.stored {
                    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                    out.mark(
                        Mark::new(self.name, "stored").with("is", format!("{} {}", text(key), text(value))),
                    );
                }
                if self.stores {
                    out.store(b"key".to_vec(), b"value".to_vec());
                }
            }
            Input::Notice(rx) => {
                let said = format!("{} > {}, ttl {}", rx.header.src, rx.header.dst, rx.header.ttl);
                out.mark(
                    Mark::new(self.name, "noticed")
                        .with("packet", said)
                        .with("tunnel", format!("{:?}", rx.tunnel)),
                );
            }
            Input::Packet(rx, packet) => {
                out.mark(Mark::new(self.name, "handed").with("tunnel", format!("{:?}", rx.tunnel)));
                if self.passes {
                    out.pass(rx, packet);
                } else {
                    out.discard(rx.iface, packet, reason::CONSUMED);
                }
            }
            _ => {}
        }
    }
    fn deadline(&self) -> Option<Instant> {
        None
    }
    fn status(&self) -> Value {
        Value::None
    }
}

fn agent(name: &'static str) -> Agent {
    Agent {
        name,
        listens: Vec::new(),
        intercepts: std::collections::BTreeSet::new(),
        routes: Vec::new(),
        passes: false,
        stores: false,
        notice: None,
    }
}

fn to(dst: Ipv4Addr) -> RouteKey {
    RouteKey { class: None, src: wire::Prefix::ANY, dst: wire::Prefix::host(dst) }
}

/// Returns a node with these roles, and its outbox. The interfaces `eth` and `air` have addresses. The default route is
/// by `eth` to a router with a known link address.
fn node(roles: Vec<Agent>) -> (Node, Outbox) {
    let roles = roles.into_iter().map(|role| Box::new(role) as Box<dyn Role>).collect();
    let mut node = Node::new(roles, Vec::new());
    node.add_address(Instant::ZERO, ETH, "10.1.0.1/24".parse().unwrap());
    node.add_address(Instant::ZERO, AIR, "10.3.0.1/24".parse().unwrap());
    let any = RouteKey { class: None, src: wire::Prefix::ANY, dst: wire::Prefix::ANY };
    let action = Action::Forward(Hop::mac(ETH, ROUTER));
    node.set_route(Instant::ZERO, any, Route::new(action, Lifetime::Permanent));
    let mut out = Outbox::default();
    node.handle(Instant::ZERO, Input::Start(&Boot::default()), &mut out);
    for (iface, mac) in [ETH, AIR].into_iter().zip(MACS) {
        let up = Link::Up { cell: None, mac, mtu: 1500, name: "any" };
        node.handle(Instant::ZERO, Input::Link(iface, up), &mut out);
    }
    while out.next_act().is_some() {}
    node.resume(Instant::ZERO, 9, &mut out);
    while out.next_act().is_some() {}
    (node, out)
}

fn received(bytes: Vec<u8>, dst: Mac) -> Packet {
    Packet { link: Frame { kind: EtherType::IPV4, src: ROUTER, dst }, id: PacketId(7), bytes }
}

fn datagram_of(src: Ipv4Addr, dst: Ipv4Addr, len: usize) -> Vec<u8> {
    udp::packet(SocketAddrV4::new(src, 1), SocketAddrV4::new(dst, 434), &vec![0; len - 28])
}

fn acts(out: &mut Outbox) -> Vec<Act> {
    std::iter::from_fn(|| out.next_act().map(|(_, act)| act)).collect()
}

fn receive(node: &mut Node, out: &mut Outbox, packet: Packet) -> Vec<Act> {
    node.receive(Instant::ZERO, ETH, packet, out);
    acts(out)
}

#[track_caller]
fn sent(acts: &[Act]) -> (Iface, &Packet) {
    let sent: Vec<_> = acts
        .iter()
        .filter_map(|act| if let Act::Transmit(iface, packet) = act { Some((*iface, packet)) } else { None })
        .collect();
    assert_eq!(sent.len(), 1, "{acts:?}");
    sent[0]
}

#[track_caller]
fn dropped(acts: &[Act]) -> &'static str {
    let reasons: Vec<_> = acts
        .iter()
        .filter_map(|act| if let Act::Drop(_, _, reason) = act { Some(reason.0) } else { None })
        .collect();
    assert_eq!(reasons.len(), 1, "{acts:?}");
    reasons[0]
}

fn home_agent() -> (Node, Outbox) {
    let tunnel = Action::Tunnel(Encap::new(OWN, CARE_OF, 1480));
    node(vec![Agent { routes: vec![(to(MOBILE), tunnel)], ..agent("home") }])
}

// --- tunnels ---------------------------------------------------------------------------------------------------------

#[test]
fn a_tunnel_takes_a_packet_one_hop_older_and_keeps_its_identity() {
    let (mut node, mut out) = home_agent();
    let bytes = datagram_of(FAR, MOBILE, 1480);
    let acts = receive(&mut node, &mut out, received(bytes.clone(), MACS[0]));
    let (iface, packet) = sent(&acts);
    assert_eq!((iface, packet.link.dst, packet.id), (ETH, ROUTER, PacketId(7)));
    let (outer, inner) = ipip::decapsulate(&packet.bytes).unwrap();
    assert_eq!((outer.src, outer.dst, outer.ttl), (OWN, CARE_OF, 64));
    assert_eq!(Header::parse(inner).unwrap().0.ttl, Header::parse(&bytes).unwrap().0.ttl - 1);
}

/// A role is notified of the first packet of each source in an interval, and each packet enters the tunnel all the same. The
/// outer datagrams of this node are not noticed, though their route has notices too.
#[test]
fn a_role_is_noticed_of_packets_that_are_forwarded() {
    let tunnel = Action::Tunnel(Encap::new(OWN, CARE_OF, 1480));
    let routes = vec![(to(MOBILE), tunnel), (to(CARE_OF), Action::Forward(Hop::mac(ETH, ROUTER)))];
    let notice = Some(Duration::from_secs(1));
    let (mut node, mut out) = node(vec![Agent { routes, notice, ..agent("home") }]);
    let mut noticed = |ms, src| {
        let packet = received(datagram_of(src, MOBILE, 100), MACS[0]);
        node.receive(Instant::from_millis(ms), ETH, packet, &mut out);
        let acts = acts(&mut out);
        sent(&acts);
        let marks = acts.iter().filter_map(|act| if let Act::Mark(mark) = act { Some(mark) } else { None });
        marks.map(|mark| format!("{mark:?}")).collect::<Vec<_>>()
    };
    let first = noticed(0, FAR);
    assert_eq!(first.len(), 1);
    assert!(first[0].contains("10.9.0.9 > 10.1.0.7, ttl 64"), "{first:?}");
    assert!(noticed(999, FAR).is_empty());
    assert_eq!(noticed(999, Ipv4Addr::new(10, 9, 0, 8)).len(), 1, "another source");
    assert_eq!(noticed(1000, FAR).len(), 1, "the next interval");
}

#[test]
fn the_sender_of_what_does_not_fit_is_told_the_tunnels_width() {
    let (mut node, mut out) = home_agent();
    let acts = receive(&mut node, &mut out, received(datagram_of(FAR, MOBILE, 1481), MACS[0]));
    assert_eq!(dropped(&acts), "too_big");
    let (header, payload) = Header::parse(&sent(&acts).1.bytes).unwrap();
    assert_eq!((header.src, header.dst), (OWN, FAR));
    let quote = icmp::Quote::of(&icmp::Message::parse(payload).unwrap()).unwrap();
    assert_eq!((quote.kind, quote.code, quote.mtu, quote.dst), (3, 4, 1480, MOBILE));
}

/// Returns three values of an ICMP error: the exit of the tunnel by which it is sent (`None`: no tunnel), its
/// destination, and the MTU that it reports.
fn error_of(packet: &Packet) -> (Option<Ipv4Addr>, Ipv4Addr, u16) {
    let (exit, bytes) = match ipip::decapsulate(&packet.bytes) {
        Ok((outer, inner)) => (Some(outer.dst), inner),
        Err(_) => (None, packet.bytes.as_slice()),
    };
    let (header, payload) = Header::parse(bytes).unwrap();
    let quote = icmp::Quote::of(&icmp::Message::parse(payload).unwrap()).unwrap();
    assert_eq!((quote.kind, quote.code), (3, 4));
    (exit, header.dst, quote.mtu)
}

/// If sender and receiver are away from home, the sender gets the error by the tunnel of this node to the sender.
#[test]
fn a_sender_that_is_away_is_told_by_its_tunnel() {
    let tunnel = |dst| Action::Tunnel(Encap::new(OWN, dst, 1480));
    let sender = Ipv4Addr::new(10, 1, 0, 8);
    let routes = vec![(to(MOBILE), tunnel(CARE_OF)), (to(sender), tunnel(FAR))];
    let (mut node, mut out) = node(vec![Agent { routes, ..agent("home") }]);
    let acts = receive(&mut node, &mut out, received(datagram_of(sender, MOBILE, 1500), MACS[0]));
    assert_eq!((dropped(&acts), error_of(sent(&acts).1)), ("too_big", (Some(FAR), sender, 1480)));
}

/// If the first link of a tunnel has a smaller MTU than the tunnel's configuration, the sender gets the smaller MTU.
#[test]
fn a_tunnel_is_no_wider_than_the_link_that_it_begins_at() {
    let (mut node, mut out) = home_agent();
    let up = Link::Up { cell: None, mac: MACS[0], mtu: 1400, name: "any" };
    node.handle(Instant::ZERO, Input::Link(ETH, up), &mut out);
    acts(&mut out);
    let acts = receive(&mut node, &mut out, received(datagram_of(FAR, MOBILE, 1480), MACS[0]));
    assert_eq!((dropped(&acts), error_of(sent(&acts).1)), ("too_big", (None, FAR, 1380)));
}

/// Returns the packets that were sent. No packet may have been dropped.
#[track_caller]
fn all_sent(acts: &[Act]) -> Vec<&Packet> {
    let of = |act| if let &Act::Transmit(ETH, ref packet) = act { packet } else { panic!("{act:?}") };
    acts.iter().map(of).collect()
}

fn divisible(len: usize) -> Vec<u8> {
    let header = Header { dont_fragment: false, id: 9, ..Header::new(ipv4::UDP, FAR, MOBILE) };
    header.emit(&vec![1; len - ipv4::HEADER])
}

/// Returns offset and length of the payload, and whether more fragments follow.
fn place_of(bytes: &[u8]) -> (u16, usize, bool) {
    let (header, payload) = Header::parse(bytes).unwrap();
    assert!(!header.dont_fragment && header.id == 9 && header.ttl == 63, "{header:?}");
    (header.offset, payload.len(), header.more_fragments)
}

/// The inner packet is cut before the tunnel. Each outer packet has another identification, so that a router may cut it
/// again (RFC 6864, section 4.2).
#[test]
fn what_does_not_fit_a_tunnel_is_cut_before_it() {
    let (mut node, mut out) = home_agent();
    let acts = receive(&mut node, &mut out, received(divisible(1500), MACS[0]));
    let sent = all_sent(&acts);
    let opened: Vec<_> = sent.iter().map(|packet| ipip::decapsulate(&packet.bytes).unwrap()).collect();
    assert_eq!(
        opened.iter().map(|(_, inner)| place_of(inner)).collect::<Vec<_>>(),
        [(0, 1456, true), (182, 24, false)]
    );
    assert_ne!(opened[0].0.id, opened[1].0.id);
    assert!(opened.iter().all(|(outer, _)| !outer.dont_fragment && !outer.is_fragment()));
    assert!(sent.iter().all(|packet| packet.id == PacketId(7)), "a fragment has the identity of its packet");
}

/// If the first link is narrower than the tunnel, the inner packet is cut for the link: the exit need not reassemble.
#[test]
fn what_does_not_fit_the_first_link_of_a_tunnel_is_cut_before_the_tunnel() {
    let (mut node, mut out) = home_agent();
    let up = Link::Up { cell: None, mac: MACS[0], mtu: 576, name: "any" };
    node.handle(Instant::ZERO, Input::Link(ETH, up), &mut out);
    acts(&mut out);
    let acts = receive(&mut node, &mut out, received(divisible(1500), MACS[0]));
    let sent = all_sent(&acts);
    let inner: Vec<_> = sent.iter().map(|p| place_of(ipip::decapsulate(&p.bytes).unwrap().1)).collect();
    // The tunnel cuts into 1456 and 24 bytes of payload; the first of these does not fit the link.
    assert_eq!(inner, [(0, 536, true), (67, 536, true), (134, 384, true), (182, 24, false)]);
    assert!(sent.iter().all(|packet| packet.bytes.len() <= 576));
}

/// The exit opens each kind of tunnel. If the first link of the tunnel is narrow, the sender gets its MTU without the
/// bytes that this kind adds.
#[test]
fn tunnels_of_each_kind_are_entered_and_opened() {
    for (kind, fits) in [(Kind::IpInIp, 1380), (Kind::Minimal, 1388), (Kind::Gre, 1376)] {
        let encap = Encap { kind, ..Encap::new(OWN, CARE_OF, 1480) };
        let routes = vec![(to(MOBILE), Action::Tunnel(encap))];
        let (mut entry, mut out) = node(vec![Agent { routes, ..agent("home") }]);
        let acts = receive(&mut entry, &mut out, received(datagram_of(FAR, MOBILE, 500), MACS[0]));
        let (outer, inner) = tunnel::decapsulate(&sent(&acts).1.bytes).unwrap();
        assert_eq!((outer.dst, outer.protocol), (CARE_OF, kind.protocol()));
        let (header, payload) = Header::parse(&inner).unwrap();
        assert_eq!((header.src, header.dst, header.ttl, payload.len()), (FAR, MOBILE, 63, 480));

        let (mut exit, mut out) = foreign_agent();
        let bytes = tunnel::encapsulate(kind, &datagram_of(FAR, MOBILE, 500), FAR, OWN, 7).unwrap();
        let acts = receive(&mut exit, &mut out, received(bytes, MACS[0]));
        assert_eq!((sent(&acts).0, sent(&acts).1.bytes.len()), (AIR, 500));

        let up = Link::Up { cell: None, mac: MACS[0], mtu: 1400, name: "any" };
        entry.handle(Instant::ZERO, Input::Link(ETH, up), &mut out);
        while out.next_act().is_some() {}
        let acts = receive(&mut entry, &mut out, received(datagram_of(FAR, MOBILE, 1400), MACS[0]));
        let (header, payload) = Header::parse(&sent(&acts).1.bytes).unwrap();
        let quote = icmp::Quote::of(&icmp::Message::parse(payload).unwrap()).unwrap();
        assert_eq!((dropped(&acts), header.dst, quote.mtu), ("too_big", FAR, fits), "{kind:?}");
    }
}

/// The sender of each packet is notified, and the packet is forwarded (RFC 2003, section 5.1).
#[test]
fn a_failing_tunnel_is_used_and_its_senders_are_notified() {
    let encap = Encap { is_failing: true, ..Encap::new(OWN, CARE_OF, 1480) };
    let routes = vec![(to(MOBILE), Action::Tunnel(encap))];
    let (mut node, mut out) = node(vec![Agent { routes, ..agent("home") }]);
    let acts = receive(&mut node, &mut out, received(datagram_of(FAR, MOBILE, 500), MACS[0]));
    let sent = all_sent(&acts);
    let headers: Vec<_> = sent.iter().map(|packet| Header::parse(&packet.bytes).unwrap().0).collect();
    let [error, data] = &headers[..] else { panic!("{headers:?}") };
    assert_eq!((error.protocol, error.dst, data.protocol, data.dst), (ipv4::ICMP, FAR, ipv4::IPIP, CARE_OF));
    assert_eq!(sent[0].bytes[20..22], [3, 1]);
}

/// RFC 1812, section 4.2.2.7.
#[test]
fn what_does_not_fit_a_link_is_cut_unless_that_is_forbidden() {
    let (mut node, mut out) = node(Vec::new());
    let up = Link::Up { cell: None, mac: MACS[0], mtu: 1000, name: "any" };
    node.handle(Instant::ZERO, Input::Link(ETH, up), &mut out);
    acts(&mut out);
    let to_far = |bytes: Vec<u8>| {
        let (header, payload) = Header::parse(&bytes).unwrap();
        Header { src: MOBILE, dst: FAR, ..header }.emit(payload)
    };
    let acts = receive(&mut node, &mut out, received(to_far(divisible(1500)), MACS[0]));
    let places: Vec<_> = all_sent(&acts).iter().map(|packet| place_of(&packet.bytes)).collect();
    assert_eq!(places, [(0, 976, true), (122, 504, false)]);
    // The first fragment does not fit the next link.
    let up = Link::Up { cell: None, mac: MACS[0], mtu: 576, name: "any" };
    node.handle(Instant::ZERO, Input::Link(ETH, up), &mut out);
    let first = Header {
        more_fragments: true,
        offset: 122,
        dont_fragment: false,
        id: 9,
        ttl: 64,
        ..Header::new(ipv4::UDP, MOBILE, FAR)
    };
    let acts = receive(&mut node, &mut out, received(first.emit(&[1; 976]), MACS[0]));
    let places: Vec<_> = all_sent(&acts).iter().map(|packet| place_of(&packet.bytes)).collect();
    assert_eq!(places, [(122, 552, true), (191, 424, true)]);
    let whole = Header { dont_fragment: true, ..first };
    let acts = receive(&mut node, &mut out, received(whole.emit(&[1; 976]), MACS[0]));
    assert_eq!(dropped(&acts), "too_big");
}

/// Options that exceed the header cannot be copied.
#[test]
fn what_cannot_be_cut_is_dropped_with_a_reason() {
    let (mut node, mut out) = home_agent();
    let mut bytes = divisible(1500);
    bytes.splice(20..20, [7, 9, 4, 0]);
    bytes[0] = 0x46;
    bytes[2..4].copy_from_slice(&1504u16.to_be_bytes());
    bytes[10..12].fill(0);
    let sum = wire::checksum(&bytes[..24]).to_be_bytes();
    bytes[10..12].copy_from_slice(&sum);
    assert_eq!(dropped(&receive(&mut node, &mut out, received(bytes, MACS[0]))), "ip_options");
}

/// A sender of packets with a small time to live must not use up the errors that path MTU discovery needs.
#[test]
fn errors_are_counted_by_the_second_but_for_packets_that_are_too_large() {
    let (mut node, mut out) = home_agent();
    let short = Header { ttl: 1, ..Header::new(ipv4::UDP, FAR, MOBILE) }.emit(&[0; 100]);
    let large = datagram_of(FAR, MOBILE, 1481);
    let mut errors = |now, bytes: &[u8]| {
        let mut errors = 0;
        for _ in 0..30 {
            node.receive(now, ETH, received(bytes.to_vec(), MACS[0]), &mut out);
            errors += acts(&mut out).iter().filter(|act| matches!(act, Act::Transmit(..))).count();
        }
        errors
    };
    for second in 1..3 {
        let now = Instant::from_millis(second * 1000);
        assert_eq!(errors(now, &short), usize::from(ERRORS_PER_SECOND));
        assert_eq!(errors(now, &large), 30);
    }
}

/// An error to a broadcast address of a link would be sent to all hosts of the link (RFC 1812, section 4.3.2.7).
#[test]
fn no_error_is_sent_to_all_hosts_of_a_link() {
    let (mut node, mut out) = node(Vec::new());
    for (source, errors) in [([10, 8, 0, 1], 1), ([10, 1, 0, 255], 0), ([10, 3, 0, 255], 0)] {
        let last_hop = Header { ttl: 1, ..Header::new(ipv4::UDP, source.into(), FAR) }.emit(&[0; 8]);
        let acts = receive(&mut node, &mut out, received(last_hop, MACS[0]));
        let sent = acts.iter().filter(|act| matches!(act, Act::Transmit(..))).count();
        assert_eq!(sent, errors, "{source:?}");
    }
}

fn foreign_agent() -> (Node, Outbox) {
    let visitor = Hop::mac(AIR, Mac([2, 0, 0, 0, 0, 7]));
    let routes = vec![
        (to(OWN), Action::Open(VISITORS, TunnelKinds::ALL)),
        (RouteKey::to(VISITORS, MOBILE), Action::Forward(visitor)),
        (RouteKey::to(VISITORS, CARE_OF), Action::Punt),
    ];
    node(vec![Agent { routes, ..agent("foreign") }])
}

fn tunnelled(inner: &[u8]) -> Packet {
    received(ipip::encapsulate(inner, FAR, OWN, 7).unwrap(), MACS[0])
}

#[test]
fn a_visitor_gets_what_was_inside() {
    let (mut node, mut out) = foreign_agent();
    let inner = datagram_of(FAR, MOBILE, 100);
    let acts = receive(&mut node, &mut out, tunnelled(&inner));
    let (iface, packet) = sent(&acts);
    assert_eq!((iface, packet.link.dst.0[5], packet.id), (AIR, 7, PacketId(7)));
    assert_eq!(Header::parse(&packet.bytes).unwrap().0.ttl, 63);
}

#[test]
fn what_was_inside_for_a_stranger_ends_in_silence() {
    let (mut node, mut out) = foreign_agent();
    let stranger = Ipv4Addr::new(10, 1, 0, 99);
    let acts = receive(&mut node, &mut out, tunnelled(&datagram_of(FAR, stranger, 100)));
    assert!(matches!(&acts[..], [Act::Drop(_, _, reason)] if *reason == reason::NO_ROUTE), "{acts:?}");
}

#[test]
fn a_role_is_told_the_tunnel_that_a_packet_came_by() {
    let (mut node, mut out) = foreign_agent();
    let acts = receive(&mut node, &mut out, tunnelled(&datagram_of(FAR, CARE_OF, 100)));
    let told = Value::from(format!("{:?}", Some((FAR, OWN))));
    assert!(matches!(&acts[0], Act::Mark(mark) if mark.fields == [("tunnel", told.clone())]), "{acts:?}");
}

#[test]
fn tunnels_inside_each_other_have_an_end() {
    let (mut node, mut out) = foreign_agent();
    let mut bytes = datagram_of(FAR, MOBILE, 100);
    for _ in 0..2 {
        bytes = ipip::encapsulate(&bytes, FAR, OWN, 7).unwrap();
    }
    let nested = RouteKey::to(VISITORS, OWN);
    node.set_route(
        Instant::ZERO,
        nested,
        Route::new(Action::Open(VISITORS, TunnelKinds::ALL), Lifetime::Permanent),
    );
    assert_eq!(sent(&receive(&mut node, &mut out, received(bytes.clone(), MACS[0]))).0, AIR);
    let deeper = ipip::encapsulate(&bytes, FAR, OWN, 7).unwrap();
    assert_eq!(dropped(&receive(&mut node, &mut out, received(deeper, MACS[0]))), "tunnel_depth");
}

// --- neighbors -------------------------------------------------------------------------------------------------------

fn neighbor_message(mac: Mac, message: &Message) -> Packet {
    let mut packet = Packet::arp(MACS[0], message);
    (packet.link.src, packet.id) = (mac, PacketId(9));
    packet
}

use wire::arp::Message;

#[test]
fn a_packet_to_the_link_waits_until_its_neighbor_answers() {
    let (mut node, mut out) = node(Vec::new());
    let waiting = receive(&mut node, &mut out, received(datagram_of(FAR, MOBILE, 100), MACS[0]));
    let (_, asked) = sent(&waiting);
    let request = Message::parse(&asked.bytes).unwrap();
    assert_eq!((asked.link.kind, asked.link.dst, asked.link.src), (EtherType::ARP, Mac::BROADCAST, MACS[0]));
    assert_eq!((request.sender, request.target), (OWN, MOBILE));
    let mut held = 0;
    node.holds(&mut |id| held += id.0);
    assert_eq!(held, 7, "the ledger asks for it");
    let answer = neighbor_message(ROUTER, &request.answer(ROUTER));
    let acts = receive(&mut node, &mut out, answer);
    assert_eq!(dropped(&acts), "consumed");
    assert_eq!((sent(&acts).1.link.dst, sent(&acts).1.id), (ROUTER, PacketId(7)));
}

#[test]
fn the_sender_is_told_when_nobody_answers() {
    let (mut node, mut out) = node(Vec::new());
    receive(&mut node, &mut out, received(datagram_of(FAR, MOBILE, 100), MACS[0]));
    let mut last = Vec::new();
    while let Some(due) = node.deadline() {
        node.handle(due, Input::Timeout, &mut out);
        last = acts(&mut out);
    }
    assert_eq!(dropped(&last), "no_neighbor");
    let (header, payload) = Header::parse(&sent(&last).1.bytes).unwrap();
    assert_eq!((header.dst, payload[0], payload[1]), (FAR, 3, 1));
}

#[test]
fn a_mute_host_asks_nobody() {
    let (mut node, mut out) = node(Vec::new());
    node.apply(Instant::ZERO, RoleId(0), &Act::Neighbor(ETH, OWN, Some(Neighbor::Mute)));
    let acts = receive(&mut node, &mut out, received(datagram_of(FAR, MOBILE, 100), MACS[0]));
    assert_eq!(dropped(&acts), "no_neighbor");
    assert_eq!(acts.len(), 1);
}

#[test]
fn an_address_comes_and_goes_with_its_route() {
    let (mut node, mut out) = node(Vec::new());
    let own = "10.5.0.1/24".parse().unwrap();
    let neighbor = Ipv4Addr::new(10, 5, 0, 2);
    let asks = |node: &mut Node, out: &mut Outbox| {
        let acts = receive(node, out, received(datagram_of(FAR, neighbor, 100), MACS[0]));
        sent(&acts).1.link.kind == EtherType::ARP
    };
    assert!(!asks(&mut node, &mut out), "by the default route");
    node.apply(Instant::ZERO, RoleId(0), &Act::Address(AIR, own, true));
    assert!(asks(&mut node, &mut out));
    assert_eq!(
        sent(&receive(&mut node, &mut out, received(datagram_of(FAR, own.address, 100), MACS[0]))).0,
        Iface::HOST
    );
    node.apply(Instant::ZERO, RoleId(0), &Act::Address(AIR, own, false));
    assert!(!asks(&mut node, &mut out));
}

/// The route to a prefix stays while the host has another address in this prefix.
#[test]
fn of_two_addresses_in_one_prefix_the_other_keeps_the_route() {
    let (mut node, mut out) = node(Vec::new());
    let [first, second] = ["10.5.0.1/24", "10.5.0.99/24"].map(|text| text.parse().unwrap());
    let mut neighbors = (2..).map(|last| Ipv4Addr::new(10, 5, 0, last)); // a neighbor is not asked for twice
    let mut apply = |address, is_added| {
        node.apply(Instant::ZERO, RoleId(0), &Act::Address(AIR, address, is_added));
        let neighbor = neighbors.next().unwrap();
        let acts = receive(&mut node, &mut out, received(datagram_of(FAR, neighbor, 100), MACS[0]));
        sent(&acts).1.link.kind == EtherType::ARP
    };
    assert!(apply(first, true) && apply(second, true));
    assert!(apply(first, false), "the second address is in the prefix too");
    assert!(!apply(second, false));
}

#[test]
fn what_has_arrived_is_not_sent_on_by_the_default_route() {
    let (mut node, mut out) = node(Vec::new());
    let acts = receive(&mut node, &mut out, received(datagram_of(FAR, OWN, 100), MACS[0]));
    assert_eq!(sent(&acts).0, Iface::HOST);
}

// --- groups, errors, passing on --------------------------------------------------------------------------------------

#[test]
fn a_group_is_heard_by_who_listens_and_never_forwarded() {
    let listens = vec![Listen::Group(ETH, ALL_HOSTS)];
    let (mut node, mut out) = node(vec![Agent { listens, ..agent("mobile") }]);
    let group = Mac::of_group(ALL_HOSTS).unwrap();
    let to_group = |dst| received(datagram_of(FAR, dst, 100), group);
    assert_eq!(dropped(&receive(&mut node, &mut out, to_group(ALL_HOSTS))), "consumed");
    for other in [Ipv4Addr::new(224, 0, 0, 2), Ipv4Addr::BROADCAST, Ipv4Addr::new(10, 1, 0, 255), FAR] {
        let acts = receive(&mut node, &mut out, to_group(other));
        assert_eq!((dropped(&acts), acts.len()), ("no_listener", 1), "{other}");
    }
}

#[test]
fn a_group_needs_no_neighbor() {
    let (mut node, mut out) = node(Vec::new());
    for (dst, mac) in [(ALL_HOSTS, Mac::of_group(ALL_HOSTS).unwrap()), (Ipv4Addr::BROADCAST, Mac::BROADCAST)]
    {
        node.send_by(Instant::ZERO, ETH, Packet::new(Mac::ZERO, datagram_of(OWN, dst, 100)), &mut out);
        assert_eq!(sent(&acts(&mut out)).1.link.dst, mac);
    }
}

#[test]
fn the_first_role_takes_and_may_pass_to_the_next() {
    let listens = || vec![Listen::Local(Proto::Udp(434))];
    let first = Agent { listens: listens(), passes: true, ..agent("home") };
    let second = Agent { listens: listens(), ..agent("foreign") };
    let (mut node, mut out) = node(vec![first, second]);
    let acts = receive(&mut node, &mut out, received(datagram_of(FAR, OWN, 100), MACS[0]));
    let by: Vec<_> = acts
        .iter()
        .filter_map(|act| if let Act::Mark(mark) = act { Some(mark.role) } else { None })
        .collect();
    assert_eq!((by, dropped(&acts)), (vec!["home", "foreign"], "consumed"));
}

#[test]
fn what_nobody_wants_goes_on_its_way() {
    let listens = vec![Listen::Local(Proto::Udp(434))];
    let routes = vec![(to(FAR), Action::Punt)];
    let (mut node, mut out) = node(vec![Agent { listens, routes, passes: true, ..agent("home") }]);
    let acts = receive(&mut node, &mut out, received(datagram_of(FAR, OWN, 100), MACS[0]));
    assert_eq!(sent(&acts).0, Iface::HOST);
    let punted = receive(&mut node, &mut out, received(datagram_of(MOBILE, FAR, 100), MACS[0]));
    assert_eq!(dropped(&punted), "no_route", "not punted again, and again");
}

#[test]
fn an_error_finds_the_role_that_it_concerns() {
    for (listen, wanted) in [
        (Listen::IcmpAbout(Proto::Udp(434)), true),
        (Listen::IcmpAbout(Proto::Udp(1)), true),
        (Listen::IcmpAbout(Proto::Udp(5)), false),
        (Listen::IcmpAbout(Proto::IpIp), false),
        (Listen::IcmpAbout(Proto::Ip(17)), true),
        (Listen::IcmpAbout(Proto::Ip(132)), false),
        (Listen::Local(Proto::Icmp(3)), true),
    ] {
        let (mut node, mut out) = node(vec![Agent { listens: vec![listen], ..agent("foreign") }]);
        let about = datagram_of(OWN, FAR, 100);
        let error = IcmpError::HostUnreachable.about(&about, CARE_OF).unwrap();
        let acts = receive(&mut node, &mut out, received(error, MACS[0]));
        assert_eq!(matches!(acts[0], Act::Mark(_)), wanted, "{listen:?}: {acts:?}");
    }
}

/// If a packet of a role is too large for its outgoing link, the role receives the error, as it would from a router.
/// The host's own stack receives it only if the role does not listen for it.
#[test]
fn a_role_is_told_what_its_own_link_takes() {
    for (listen, role) in
        [(Listen::IcmpAbout(Proto::Udp(434)), true), (Listen::IcmpAbout(Proto::IpIp), false)]
    {
        let (mut node, mut out) = node(vec![Agent { listens: vec![listen], ..agent("any") }]);
        let up = Link::Up { cell: None, mac: MACS[0], mtu: 1172, name: "any" };
        node.handle(Instant::ZERO, Input::Link(ETH, up), &mut out);
        acts(&mut out);
        node.send_routed(Instant::ZERO, Packet::new(Mac::ZERO, datagram_of(OWN, FAR, 1480)), &mut out);
        node.settle(Instant::ZERO, &mut out);
        let acts = acts(&mut out);
        let too_big = |act: &Act| matches!(act, Act::Drop(_, _, why) if *why == reason::TOO_BIG);
        assert!(acts.iter().any(too_big), "{acts:?}");
        assert_eq!(acts.iter().any(|act| matches!(act, Act::Mark(mark) if mark.name == "handed")), role);
        let to_host = |act: &Act| matches!(act, Act::Transmit(Iface::HOST, _));
        assert_eq!(acts.iter().any(to_host), !role, "{acts:?}");
    }
}

// --- records ---------------------------------------------------------------------------------------------------------

#[test]
fn roles_do_not_see_each_others_records() {
    let storing = |name| Agent { stores: true, ..agent(name) };
    let boot_with = |stored: Vec<(Vec<u8>, Vec<u8>)>| {
        let roles = vec![storing("home"), storing("foreign"), storing("home")];
        let mut node =
            Node::new(roles.into_iter().map(|role| Box::new(role) as Box<dyn Role>).collect(), Vec::new());
        let mut out = Outbox::default();
        node.handle(Instant::ZERO, Input::Start(&Boot { stored, ..Boot::default() }), &mut out);
        std::iter::from_fn(|| out.next_act()).collect::<Vec<_>>()
    };
    let stored: Vec<_> = boot_with(Vec::new())
        .into_iter()
        .filter_map(|(role, act)| if let Act::Store(key, _) = act { Some((role, key)) } else { None })
        .collect();
    assert_eq!(stored.len(), 3);
    for (role, key) in stored {
        let shown: Vec<_> = boot_with(vec![(key, b"value".to_vec())])
            .into_iter()
            .filter_map(|(by, act)| match act {
                Act::Mark(mark) if mark.name == "stored" => Some((by, mark.fields[0].1.clone())),
                _ => None,
            })
            .collect();
        assert_eq!(shown, [(role, Value::from("key value"))]);
    }
}

#[test]
fn the_wait_for_a_neighbor_is_no_longer_than_it_says() {
    let (mut node, mut out) = node(Vec::new());
    receive(&mut node, &mut out, received(datagram_of(FAR, MOBILE, 100), MACS[0]));
    assert_eq!(node.deadline(), Some(Instant::ZERO + Duration::from_secs(1)));
}

fn segment(src: (Ipv4Addr, u16), dst: (Ipv4Addr, u16)) -> Vec<u8> {
    let ports = [src.1.to_be_bytes(), dst.1.to_be_bytes(), [0; 2], [0; 2]].concat();
    Header::new(6, src.0, dst.0).emit(&ports)
}

/// The interceptor receives the segments of its connection from the link and out of the tunnel, although their
/// destination is a visitor. All other packets to the visitor are forwarded.
#[test]
fn the_segments_of_a_connection_are_taken_and_no_others() {
    let tuple = crate::Tuple { local: SocketAddrV4::new(MOBILE, 5000), remote: SocketAddrV4::new(FAR, 80) };
    for passes in [false, true] {
        let interceptor = Agent { intercepts: [tuple].into(), passes, ..agent("interceptor") };
        let visitor = RouteKey::to(VISITORS, MOBILE);
        let routes = vec![
            (to(OWN), Action::Open(VISITORS, TunnelKinds::ALL)),
            (visitor, Action::Forward(Hop::mac(AIR, ROUTER))),
            (to(MOBILE), Action::Forward(Hop::mac(AIR, ROUTER))),
        ];
        let (mut node, mut out) = node(vec![interceptor, Agent { routes, ..agent("agent") }]);
        let mut taken = |bytes: Vec<u8>| {
            let acts = receive(&mut node, &mut out, received(bytes, MACS[0]));
            let handed = acts.iter().any(|act| matches!(act, Act::Mark(mark) if mark.name == "handed"));
            let left = acts.iter().any(|act| matches!(act, Act::Transmit(AIR, _)));
            (handed, left)
        };
        let ours = segment((FAR, 80), (MOBILE, 5000));
        let wrapped = |bytes: &[u8]| ipip::encapsulate(bytes, FAR, OWN, 7).unwrap();
        // If the role passes on a segment that was in no tunnel, the node forwards it. A segment out of a tunnel goes
        // to the host only.
        assert_eq!(taken(ours.clone()), (true, passes));
        assert_eq!(taken(wrapped(&ours)), (true, false));
        // An ICMP error about a segment of the connection is treated like a segment.
        let about =
            |src, dst| IcmpError::FragmentationNeeded { mtu: 1000 }.about(&segment(src, dst), OWN).unwrap();
        let sent = about((MOBILE, 5000), (FAR, 80));
        assert_eq!(taken(sent.clone()), (true, passes));
        assert_eq!(taken(wrapped(&sent)), (true, false));
        let others = [about((MOBILE, 5001), (FAR, 80)), about((MOBILE, 5000), (FAR, 81))];
        for other in others {
            assert_eq!(taken(other), (false, true));
        }
        for other in [
            segment((FAR, 81), (MOBILE, 5000)),
            segment((FAR, 80), (MOBILE, 5001)),
            segment((OWN, 80), (MOBILE, 5000)),
            datagram_of(FAR, MOBILE, 40),
        ] {
            assert_eq!(taken(other.clone()), (false, true));
            assert_eq!(taken(wrapped(&other)), (false, true));
        }
    }
}
