use super::*;
use node::{Effect, Rx, StreamId};
use wire::Iface;
use wire::icmp::IcmpError;

const HERE: Ipv4Addr = Ipv4Addr::new(10, 1, 8, 100);
const THERE: Ipv4Addr = Ipv4Addr::new(129, 15, 78, 150);
const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 1, 8, 1);
const STREAM: StreamId = StreamId(StreamId::OUTSIDE);

/// Returns the packets that the transport sends.
fn sent(transport: &mut Transport, now: Instant) -> Vec<Packet> {
    let mut out = Outbox::default();
    transport.settle(now, &mut out);
    let packet = |effect| match effect {
        Effect::Send(_, packet) => Some(packet),
        _ => None,
    };
    out.drain_effects().filter_map(packet).collect()
}

fn receive(transport: &mut Transport, now: Instant, bytes: Vec<u8>) {
    let packet = Packet::new(Mac::ZERO, bytes);
    let rx = Rx::parse(Iface(1), node::PuntReason::Listen, &packet).unwrap();
    transport.packet(now, rx, &packet).unwrap();
}

/// Delivers the packets of the transport to the peer, and the peer's answers to the transport. Returns the packets.
fn exchange(now: Instant, transport: &mut Transport, peer: &mut Endpoint) -> Vec<Packet> {
    let packets = sent(transport, now);
    for packet in &packets {
        let (ip, payload) = Header::parse(&packet.bytes).unwrap();
        peer.receive(now, ip.src, ip.dst, payload).unwrap();
    }
    while let Some(answer) = peer.poll_transmit(now) {
        let bytes = Header::new(sctp::PROTOCOL, answer.src, answer.dst).emit(&answer.bytes);
        receive(transport, now, bytes);
    }
    packets
}

/// If a router reports no MTU, the transport must use the next common MTU below the size of the datagram: 1492 bytes
/// after 1500, then 1006 (RFC 1191, sections 5 and 7.1).
#[test]
fn a_router_that_names_no_mtu_gets_packets_of_the_next_common_size() {
    let now = Instant::from_millis(1000);
    let mut transport = Transport::new(&SctpConfig::default(), Rng::new(1));
    let mut peer = Endpoint::new(sctp::Config::default(), Key::new([3; 16]), Rng::new(2));
    peer.listen(9000, &[THERE]);
    let open = StreamOp::Open { by: SCTP, local: None, peer: Addr::new(THERE, 9000), foreign: false };
    transport.serve(now, STREAM, open, &[HERE], &mut Outbox::default());
    for _ in 0..3 {
        exchange(now, &mut transport, &mut peer);
    }
    let mut now = now;
    for (most, next) in [(1500, 1492), (1492, 1006)] {
        transport.serve(now, STREAM, StreamOp::Write(vec![7; 9000]), &[HERE], &mut Outbox::default());
        let packets = exchange(now, &mut transport, &mut peer);
        let largest = packets.iter().max_by_key(|packet| packet.bytes.len()).unwrap();
        assert!((most - 3..=most).contains(&largest.bytes.len()), "{}", largest.bytes.len());
        let error = IcmpError::FragmentationNeeded { mtu: 0 }.about(&largest.bytes, ROUTER).unwrap();
        receive(&mut transport, now, error);
        for _ in 0..20 {
            now += wire::Duration::from_millis(300);
            peer.on_timeout(now);
            transport.timeout(now);
            exchange(now, &mut transport, &mut peer);
        }
        transport.serve(now, STREAM, StreamOp::Write(vec![7; 9000]), &[HERE], &mut Outbox::default());
        let packets = sent(&mut transport, now);
        let largest = packets.iter().map(|packet| packet.bytes.len()).max().unwrap();
        assert!((next - 3..=next).contains(&largest), "{largest} after {most}");
        for packet in packets {
            let (ip, payload) = Header::parse(&packet.bytes).unwrap();
            peer.receive(now, ip.src, ip.dst, payload).unwrap();
        }
        for _ in 0..20 {
            now += wire::Duration::from_millis(300);
            peer.on_timeout(now);
            transport.timeout(now);
            exchange(now, &mut transport, &mut peer);
        }
    }
}

fn told(out: &mut Outbox) -> Vec<OwnedStreamEvent> {
    let told = |effect| match effect {
        Effect::Served(told) => Some(told),
        _ => None,
    };
    out.drain_effects().filter_map(told).collect()
}

/// On a host without an address, associations that programs open must wait for an address. Their number is limited, and
/// each waits as long as INIT would be sent.
#[test]
fn what_is_opened_without_an_address_waits_for_one() {
    let at = Instant::from_millis;
    let mut transport = Transport::new(&SctpConfig::default(), Rng::new(1));
    let mut out = Outbox::default();
    let open = || StreamOp::Open { by: SCTP, local: None, peer: Addr::new(THERE, 9000), foreign: false };
    let stream = |number| StreamId(StreamId::OUTSIDE + number);
    for number in 0..=WAITING as u32 {
        transport.serve(at(1000), stream(number), open(), &[], &mut out);
    }
    let refused = Some(refusal::NO_ADDRESS.to_owned());
    assert_eq!(told(&mut out), [OwnedStreamEvent::Closed(stream(WAITING as u32), refused.clone())]);
    assert!(sent(&mut transport, at(1000)).is_empty());
    // A program that aborts or finishes is notified at once, as if INIT had been sent already.
    transport.serve(at(1500), stream(0), StreamOp::Abort, &[], &mut out);
    transport.serve(at(1500), stream(1), StreamOp::Finish, &[], &mut out);
    let given_up = Some(GIVEN_UP.to_owned());
    assert_eq!(
        told(&mut out),
        [OwnedStreamEvent::Closed(stream(0), None), OwnedStreamEvent::Closed(stream(1), given_up)]
    );
    transport.serve(at(1500), stream(2), StreamOp::Read(10), &[], &mut out);
    transport.open_waiting(at(2000), &[HERE], &mut out);
    assert_eq!(told(&mut out), []);
    let packets = sent(&mut transport, at(2000));
    assert_eq!(packets.len(), WAITING - 2);
    assert!(packets.iter().all(|packet| Header::parse(&packet.bytes).unwrap().0.src == HERE));
    assert_eq!(transport.user_of(stream(2)).map(|user| user.wanted), Some(10));
    // INIT would be sent for 1 + 2 + 4 + 8 + 16 + 32 + 60 + 60 + 60 s (RFC 9260, section 16).
    let mut transport = Transport::new(&SctpConfig::default(), Rng::new(1));
    transport.serve(at(1000), stream(0), open(), &[], &mut out);
    assert_eq!(transport.deadline(), Some(at(244_000)));
    transport.open_waiting(at(243_999), &[], &mut out);
    assert_eq!(told(&mut out), []);
    transport.open_waiting(at(244_000), &[], &mut out);
    assert_eq!(told(&mut out), [OwnedStreamEvent::Closed(stream(0), refused)]);
    assert_eq!(transport.deadline(), None);
}
