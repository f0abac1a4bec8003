//! Tests of what the node does itself: admission, forwarding, streams, commands.

use super::*;
use crate::{
    Boot, InterfaceAddress, Lifetime, Link, Mark, RouteKey, StreamEvent, StreamId, StreamOp, Transport,
};
use table::{Action, Hop};
use wire::{Frame, Prefix, SocketAddrV4, ipv4, udp};

const US: Mac = Mac([2, 0, 0, 0, 0, 1]);
const PEER: Mac = Mac([2, 0, 0, 0, 0, 2]);
const ETH: Iface = Iface(1);
const OWN: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 9);

/// A role that opens a stream, keeps packets of its punt route, and answers one command.
#[derive(Debug, Default)]
struct Keeper {
    kept: Vec<Packet>,
}

impl Role for Keeper {
    fn name(&self) -> &'static str {
        "keeper"
    }
    fn verbs(&self) -> &[&'static str] {
        &["ping"]
    }
    fn handle(&mut self, _now: Instant, input: Input<'_>, out: &mut Outbox) {
        match input {
            Input::Start(_) => {
                let local = SocketAddrV4::new(OWN, 9);
                out.stream(StreamId(3), StreamOp::Listen { by: Transport::Udp, local, foreign: false });
                let route = Route::new(Action::Punt, Lifetime::Permanent);
                let src = Prefix::ANY;
                out.route(RouteKey { class: None, src, dst: "10.8.0.0/16".parse().unwrap() }, route);
            }
            Input::Packet(_, packet) => self.kept.push(packet),
            Input::Stream(id, StreamEvent::Data(_)) => out.stream(id, StreamOp::Read(1)),
            Input::Command(id, _) => out.answer(id, Ok(Value::from("pong"))),
            _ => out.mark(Mark::new("keeper", "other")),
        }
    }
    fn deadline(&self) -> Option<Instant> {
        None
    }
    fn status(&self) -> Value {
        Value::None
    }
}

fn node() -> (Node, Outbox) {
    let mut node = Node::new(vec![Box::new(Keeper::default())], vec![OWN]);
    let mut out = Outbox::default();
    node.handle(Instant::ZERO, Input::Start(&Boot::default()), &mut out);
    let up = Link::Up { cell: None, mac: US, mtu: 1500, name: "eth" };
    node.handle(Instant::ZERO, Input::Link(ETH, up), &mut out);
    let key = RouteKey { class: None, src: Prefix::ANY, dst: "10.9.0.0/16".parse().unwrap() };
    node.set_route(Instant::ZERO, key, Route::new(Action::Forward(Hop::mac(ETH, PEER)), Lifetime::Permanent));
    while out.next_act().is_some() {}
    (node, out)
}

fn packet(dst: Ipv4Addr) -> Packet {
    let bytes = udp::packet(SocketAddrV4::new(FAR, 1), SocketAddrV4::new(dst, 2), b"x");
    Packet { link: Frame { kind: EtherType::IPV4, src: PEER, dst: US }, id: PacketId(7), bytes }
}

fn acts(out: &mut Outbox) -> Vec<Act> {
    std::iter::from_fn(|| out.next_act().map(|(_, act)| act)).collect()
}

fn dropped_for(packet: Packet) -> &'static str {
    let (mut node, mut out) = node();
    node.receive(Instant::ZERO, ETH, packet, &mut out);
    let dropped = |act: Act| match act {
        Act::Drop(ETH, dropped, reason) if dropped.id == PacketId(7) => Some(reason.0),
        Act::Transmit(_, packet) if is_icmp_error(&packet) => None,
        other => panic!("{other:?}"),
    };
    let reasons: Vec<_> = acts(&mut out).into_iter().filter_map(dropped).collect();
    assert_eq!(reasons.len(), 1, "one end");
    reasons[0]
}

fn is_icmp_error(packet: &Packet) -> bool {
    let (header, payload) = Header::parse(&packet.bytes).unwrap();
    header.protocol == ipv4::ICMP && wire::icmp::is_error(payload[0])
}

#[test]
fn our_own_goes_to_the_host_untouched() {
    let (mut node, mut out) = node();
    node.receive(Instant::ZERO, ETH, packet(OWN), &mut out);
    let [Act::Transmit(Iface::HOST, got)] = &acts(&mut out)[..] else { panic!() };
    assert_eq!(got.bytes, packet(OWN).bytes);
}

#[test]
fn anothers_is_forwarded_one_hop_older_with_our_link_address() {
    let (mut node, mut out) = node();
    node.receive(Instant::ZERO, ETH, packet(FAR), &mut out);
    let [Act::Transmit(ETH, got)] = &acts(&mut out)[..] else { panic!() };
    assert_eq!((got.link.src, got.link.dst, got.id), (US, PEER, PacketId(7)));
    assert_eq!(Header::parse(&got.bytes).unwrap().0.ttl, ipv4::DEFAULT_TTL - 1);
}

#[test]
fn every_drop_has_its_reason() {
    assert_eq!(dropped_for(packet(Ipv4Addr::new(10, 7, 0, 1))), "no_route");
    let mut old = packet(FAR);
    let header = Header { ttl: 1, ..Header::parse(&old.bytes).unwrap().0 };
    old.bytes = header.emit(&old.bytes[20..]);
    assert_eq!(dropped_for(old), "ttl_expired");
    let mut strange = packet(OWN);
    strange.link.dst = Mac([2, 9, 9, 9, 9, 9]);
    assert_eq!(dropped_for(strange), "other_station");
    let mut arp = packet(OWN);
    arp.link.kind = EtherType(0x0806);
    assert_eq!(dropped_for(arp), "ethertype");
    let mut short = packet(OWN);
    short.bytes.truncate(12);
    assert_eq!(dropped_for(short), "ip_truncated");
}

#[test]
fn a_punt_hands_the_whole_packet_over() {
    let (mut node, mut out) = node();
    node.receive(Instant::ZERO, ETH, packet(Ipv4Addr::new(10, 8, 0, 1)), &mut out);
    assert_eq!(acts(&mut out), []);
}

#[test]
fn a_roles_stream_numbers_are_its_own() {
    let mut node = Node::new(vec![Box::new(Keeper::default()), Box::new(Keeper::default())], vec![OWN]);
    let mut out = Outbox::default();
    node.handle(Instant::ZERO, Input::Start(&Boot::default()), &mut out);
    let ids: Vec<u32> = acts(&mut out)
        .into_iter()
        .filter_map(|act| if let Act::Stream(id, _) = act { Some(id.0) } else { None })
        .collect();
    assert_eq!(ids, [1 << 16 | 3, 2 << 16 | 3]);
    let peer = SocketAddrV4::new(FAR, 4);
    let new = StreamId(StreamId::DRIVER);
    let accepted = StreamEvent::Accepted(new, SocketAddrV4::new(OWN, 9), peer);
    node.handle(Instant::ZERO, Input::Stream(StreamId(2 << 16 | 3), accepted), &mut out);
    acts(&mut out);
    node.handle(Instant::ZERO, Input::Stream(new, StreamEvent::Data(b"x")), &mut out);
    assert_eq!(acts(&mut out), [Act::Stream(new, StreamOp::Read(1))], "an accepted stream keeps its number");
}

#[test]
fn a_command_is_answered_once_known_or_not() {
    let (mut node, mut out) = node();
    for (verb, answer) in [
        ("ping", Ok(Value::from("pong"))),
        ("dance", Err("no role of this host has the command `dance`; known: status, ping".to_owned())),
        ("status", Ok(Value::map([("keeper", Value::None)]))),
    ] {
        let command = Command { verb: verb.to_owned(), args: Value::None };
        assert_eq!(node.has_command(verb), answer.is_ok(), "{verb}");
        node.handle(Instant::ZERO, Input::Command(CommandId(1), &command), &mut out);
        assert_eq!(acts(&mut out), [Act::Answer(CommandId(1), answer)]);
    }
}

/// A role that sends a notification when it starts, and marks all other inputs.
#[derive(Debug)]
struct Teller;

impl Role for Teller {
    fn name(&self) -> &'static str {
        "teller"
    }
    fn handle(&mut self, _now: Instant, input: Input<'_>, out: &mut Outbox) {
        match input {
            Input::Start(_) => out.notify(Notification::Gateway(FAR)),
            other => out.mark(Mark::new("teller", "heard").with("what", format!("{other:?}"))),
        }
    }
    fn deadline(&self) -> Option<Instant> {
        None
    }
    fn status(&self) -> Value {
        Value::None
    }
}

/// All other roles of the node receive a role's notification. The node ignores a notification from a driver.
#[test]
fn news_is_for_the_other_roles_of_the_node() {
    let roles: Vec<Box<dyn Role>> =
        vec![Box::new(Keeper::default()), Box::new(Teller), Box::new(Keeper::default())];
    let mut node = Node::new(roles, vec![OWN]);
    let mut out = Outbox::default();
    let mut heard = |input: Input<'_>| {
        node.handle(Instant::ZERO, input, &mut out);
        let marks = std::iter::from_fn(|| out.next_act());
        marks.filter_map(|(by, act)| matches!(act, Act::Mark(_)).then_some(by.0)).collect::<Vec<_>>()
    };
    assert_eq!(heard(Input::Start(&Boot::default())), [0, 2]);
    assert_eq!(heard(Input::Notification(&Notification::Gateway(FAR))), [0u8; 0]);
}

/// A role that answers each input with a notification.
#[derive(Debug)]
struct Echo;

impl Role for Echo {
    fn name(&self) -> &'static str {
        "echo"
    }
    fn handle(&mut self, _now: Instant, _input: Input<'_>, out: &mut Outbox) {
        out.notify(Notification::Gateway(FAR));
    }
    fn deadline(&self) -> Option<Instant> {
        None
    }
    fn status(&self) -> Value {
        Value::None
    }
}

/// If two roles answer each other in an endless loop, the node ends the loop and names one of the roles. The next node
/// that uses the outbox is not affected.
#[test]
fn effects_without_end_stop_and_reach_no_other_node() {
    let mut node = Node::new(vec![Box::new(Echo), Box::new(Echo)], vec![OWN]);
    let mut out = Outbox::default();
    node.handle(Instant::ZERO, Input::Start(&Boot::default()), &mut out);
    let role = out.take_runaway().expect("the step did not end by itself");
    assert_eq!(node.role_name(role), "echo");

    let mut other = Node::new(vec![Box::new(Teller), Box::new(Keeper::default())], vec![FAR]);
    other.handle(Instant::ZERO, Input::Link(Iface(1), Link::Down("")), &mut out);
    assert_eq!(out.take_runaway(), None);
    let marks = std::iter::from_fn(|| out.next_act()).filter(|(_, act)| matches!(act, Act::Mark(_))).count();
    assert_eq!(marks, 2, "each role heard its own input, and nothing of the first node");
}

/// An address that the host's own stack refused is removed from the node too: otherwise the node would take packets
/// that nothing receives.
#[test]
fn an_address_that_the_host_refused_is_not_the_nodes() {
    let address: InterfaceAddress = "10.5.0.7/24".parse().unwrap();
    for is_added in [true, false] {
        let mut node = Node::new(vec![Box::new(Teller)], vec![OWN]);
        let mut out = Outbox::default();
        node.add_address(Instant::ZERO, Iface(1), address);
        let act = FailedAct::Address(Iface(1), address, is_added);
        let fault = Fault { role: RoleId(0), act, why: "no space".to_owned() };
        node.handle(Instant::ZERO, Input::Failed(&fault), &mut out);
        assert_eq!(node.has_address(address.address), !is_added);
        let marks = std::iter::from_fn(|| out.next_act()).filter(|(_, act)| matches!(act, Act::Mark(_)));
        assert_eq!(marks.count(), 1, "the role is notified");
    }
}

#[test]
#[should_panic(expected = "an effect of an earlier call is not resolved")]
fn effects_that_are_left_over_are_not_resolved_by_another_node() {
    let mut out = Outbox::default();
    out.mark(Mark::new("other", "left"));
    Node::new(Vec::new(), Vec::new()).handle(Instant::ZERO, Input::Timeout, &mut out);
}

#[test]
#[should_panic(expected = "time runs backwards")]
fn time_that_runs_backwards_is_noticed() {
    let (mut node, mut out) = (Node::new(Vec::new(), Vec::new()), Outbox::default());
    node.handle(Instant::from_millis(2), Input::Timeout, &mut out);
    node.handle(Instant::from_millis(1), Input::Timeout, &mut out);
}

/// A role that listens for UDP port 434. It declines packets from port 1, and sends a packet to its own host when it is
/// notified of the wall clock.
#[derive(Debug, Default)]
struct Neighborly {
    received: u64,
}

impl Role for Neighborly {
    fn name(&self) -> &'static str {
        "neighborly"
    }
    fn listens(&self) -> &[Listen] {
        &[Listen::Local(crate::Proto::Udp(434))]
    }
    fn handle(&mut self, _now: Instant, input: Input<'_>, out: &mut Outbox) {
        let to_own = |from| udp::packet(SocketAddrV4::new(OWN, from), SocketAddrV4::new(OWN, 434), b"to us");
        match input {
            Input::Wall(_) => out.send_routed(Packet::new(Mac::ZERO, to_own(1))),
            Input::Packet(rx, packet) if packet.bytes == to_own(1) && self.received == 0 => {
                self.received += 1;
                out.pass(rx, packet);
            }
            Input::Packet(..) => self.received += 10,
            _ => {}
        }
    }
    fn deadline(&self) -> Option<Instant> {
        None
    }
    fn status(&self) -> Value {
        Value::from(self.received)
    }
}

/// Two roles of one host send to each other by the addresses of the host, as on two hosts. A packet that all of them
/// decline goes to the host's own stack.
#[test]
fn a_packet_of_a_role_to_its_own_host_reaches_the_role_that_listens() {
    for roles in [1, 2] {
        let all = (0..roles).map(|_| Box::<Neighborly>::default() as Box<dyn Role>).collect();
        let (mut node, mut out) = (Node::new(all, vec![OWN]), Outbox::default());
        node.notify_all(Instant::ZERO, &Input::Wall(wire::WallTime(0)), &mut out);
        node.settle(Instant::ZERO, &mut out);
        let received: Vec<_> = node.roles.iter().map(|role| role.status()).collect();
        let to_host = std::iter::from_fn(|| out.next_act())
            .filter(|(_, act)| matches!(act, Act::Transmit(Iface::HOST, _)))
            .count();
        // Each role sends one packet. The first role declines the first one, and so does the next role. The first role
        // takes the second packet.
        let expected = if roles == 1 {
            (vec![Value::from(1_u64)], 1)
        } else {
            (vec![Value::from(11_u64), Value::from(1_u64)], 1)
        };
        assert_eq!((received, to_host), expected);
    }
}

/// With `record_state`, the node records the entries of its roles after its first input, and when their number changes.
#[test]
fn a_node_records_its_entries_only_if_required_and_only_changes() {
    #[derive(Debug)]
    struct Holder(usize);
    impl Role for Holder {
        fn name(&self) -> &'static str {
            "holder"
        }
        fn verbs(&self) -> &[&'static str] {
            &["hold", "nothing"]
        }
        fn handle(&mut self, _: Instant, input: Input<'_>, _: &mut Outbox) {
            if let Input::Command(_, command) = input
                && command.verb == "hold"
            {
                self.0 += 2;
            }
        }
        fn deadline(&self) -> Option<Instant> {
            None
        }
        fn status(&self) -> Value {
            Value::None
        }
        fn entries(&self) -> usize {
            self.0
        }
    }
    let counts = |records: bool| {
        let mut node =
            Node::new(vec![Box::new(Holder(1)), Box::new(Holder(4)), Box::new(Keeper::default())], vec![OWN]);
        let mut out = Outbox::default();
        if records {
            node.record_state();
        }
        node.handle(Instant::ZERO, Input::Start(&Boot::default()), &mut out);
        for verb in ["nothing", "hold", "nothing", "hold"] {
            let command = Command { verb: verb.to_owned(), args: Value::None };
            node.handle(Instant::ZERO, Input::Command(CommandId(1), &command), &mut out);
        }
        let counts = acts(&mut out).into_iter().filter_map(|act| match act {
            Act::Mark(Mark { role: "node", name: "entries", fields, .. }) => fields[0].1.as_int(),
            _ => None,
        });
        counts.collect::<Vec<_>>()
    };
    assert_eq!(counts(true), [5, 7, 9]);
    assert!(counts(false).is_empty());
}
