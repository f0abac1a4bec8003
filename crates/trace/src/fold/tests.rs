//! Tests of the 64-bit words that the core's types add to a fingerprint. If the numbers in `FIXED` change, the
//! fingerprint needs a new version.

use crate::{Fingerprinter, Fold};
use node::stream::OwnedStreamEvent;
use node::{
    Act, Action, AppChange, AppEvent, Boot, Class, Encap, Hop, IngressPolicy, Input, Lifetime, Mark, NextHop,
    Port, Route, RouteKey, Stage, StreamEvent, StreamId, StreamOp, Transport, TunnelKind, TunnelKinds, Value,
};
use wire::{Duration, Iface, Instant, Ipv4Addr, Mac, Packet, PacketId, Prefix, SocketAddrV4, WallTime};

fn of(what: &impl Fold) -> u64 {
    let mut fingerprint = Fingerprinter::default();
    fingerprint.add(what);
    fingerprint.value()
}

fn at(port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), port)
}

/// Returns acts of which no two are equal. Most of them differ from another one in one detail only.
fn acts() -> Vec<Act> {
    let key = RouteKey { class: None, src: Prefix::ANY, dst: Prefix::host(Ipv4Addr::new(10, 1, 0, 1)) };
    let mac = Mac([2, 0, 0, 0, 0, 1]);
    let policy = IngressPolicy { class: Class(2), check: None, ttl: true, icmp: true, punts: 7 };
    let port = Port { iface: Iface(1), from: None };
    let mut acts = vec![Act::Route(key, None)];
    let hops = [NextHop::Mac(mac), NextHop::Via(Ipv4Addr::new(10, 1, 0, 1)), NextHop::OnLink];
    let forward = hops.map(|to| Action::Forward(Hop { iface: Iface(1), to }));
    let encap = Encap::new(Ipv4Addr::new(10, 1, 0, 1), Ipv4Addr::new(10, 1, 0, 2), 1480);
    let others = [
        Action::Punt,
        Action::Host,
        Action::Tunnel(encap),
        Action::Open(Class(2), TunnelKinds::of(TunnelKind::IpInIp)),
    ];
    let span = Duration::from_secs(2);
    let lifetimes = [
        Lifetime::Permanent,
        Lifetime::SoftState(span),
        Lifetime::ReportIdle(span),
        Lifetime::Until(Instant(wire::nanos_of(span))),
    ];
    for action in forward.into_iter().chain(others) {
        for lifetime in lifetimes {
            acts.push(Act::Route(key, Some(Route::new(action, lifetime))));
        }
    }
    let policies = [
        policy,
        IngressPolicy { icmp: false, ..policy },
        IngressPolicy { ttl: false, ..policy },
        IngressPolicy { check: Some(Class(0)), ..policy },
        IngressPolicy { punts: 8, ..policy },
    ];
    acts.extend(policies.map(|policy| Act::IngressPolicy(port, Some(policy))));
    acts.push(Act::IngressPolicy(Port { from: Some(Mac::ZERO), ..port }, Some(policy)));
    for foreign in [false, true] {
        for by in [Transport::Udp, Transport::Tcp, Transport::Role("sctp")] {
            let open = StreamOp::Open { by, local: None, peer: at(1), foreign };
            let listen = StreamOp::Listen { by, local: at(1), foreign };
            acts.extend([open, listen].map(|op| Act::Stream(StreamId(1), op)));
        }
    }
    let event = |change| Act::Delivered(AppEvent { stream: StreamId(1), change });
    acts.extend([event(AppChange::Read(3)), event(AppChange::Finished), event(AppChange::Closed(None))]);
    acts.push(Act::Mark(Mark::new("role", "name")));
    acts.push(Act::Mark(Mark::new("role", "name").at(node::Span::Begins(Stage::Link))));
    acts.push(Act::Mark(Mark::new("role", "name").with("value", Value::None)));
    acts
}

#[test]
fn every_detail_of_an_act_shows() {
    let acts = acts();
    let mut numbers: Vec<u64> = acts.iter().map(of).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), acts.len());
}

#[test]
fn a_restart_is_another_input_than_a_first_start() {
    let first = Boot::new(WallTime(5));
    let unclean = Boot { clean: false, ..first.clone() };
    let stored = Boot { stored: vec![(vec![1], vec![2])], ..first.clone() };
    let [first, unclean, stored] = [first, unclean, stored].map(|boot| of(&Input::Start(&boot)));
    assert!(first != unclean && first != stored && unclean != stored);
}

/// Of the bytes that a stream's user writes or reads, only the number changes the fingerprint. The packets on the links
/// contain the bytes.
#[test]
fn of_the_bytes_of_a_stream_only_the_number_shows() {
    let id = StreamId(3);
    assert_eq!(of(&StreamOp::Write(vec![1, 2])), of(&StreamOp::Write(vec![3, 4])));
    assert_ne!(of(&StreamOp::Write(vec![1, 2])), of(&StreamOp::Write(vec![1, 2, 3])));
    let data = |packet, bytes: &[u8]| of(&OwnedStreamEvent::Data(id, PacketId(packet), bytes.to_vec()));
    assert_eq!(data(1, &[1, 2]), data(1, &[3, 4]));
    assert_ne!(data(1, &[1, 2]), data(2, &[1, 2]));
    let packet = |byte| of(&Act::Transmit(Iface(1), Packet::new(Mac::ZERO, vec![byte])));
    assert_ne!(packet(1), packet(2));
}

/// The expected numbers were recorded once. Each machine, build profile and compiler must compute the same numbers.
#[test]
fn the_words_of_the_core_are_the_same_everywhere() {
    let inputs = [
        Input::Timeout,
        Input::Stream(StreamId(1), StreamEvent::Room(9)),
        Input::Link(Iface(1), node::Link::Heard(wire::Cell(2), -70)),
        Input::Stored(b"key"),
    ];
    assert_eq!((of(&acts()), of(&inputs.to_vec())), FIXED);
}

const FIXED: (u64, u64) = (1_667_956_088_893_430_514, 15_127_281_845_178_075_497);
