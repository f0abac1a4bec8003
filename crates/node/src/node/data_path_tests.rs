//! Tests of what a data path beside the node gives to it.

use super::*;
use crate::{Act, Action, Hop, Lifetime, Route, Tuple, Value, reason};
use std::collections::BTreeSet;
use wire::{Duration, Mac};

/// A role that listens for this traffic, intercepts these connections, and checks what it gets.
#[derive(Debug, Default)]
struct Hearer {
    listens: Vec<Listen>,
    intercepts: BTreeSet<Tuple>,
}

impl Role for Hearer {
    fn name(&self) -> &'static str {
        "hearer"
    }
    fn listens(&self) -> &[Listen] {
        &self.listens
    }
    fn intercepts(&self) -> &BTreeSet<Tuple> {
        &self.intercepts
    }
    fn room_aside(&self) -> usize {
        1000
    }
    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Outbox) {
        if let Input::Packet(rx, packet) = input {
            assert_eq!(now, Instant(9), "the present, and not the time of the packet");
            assert_eq!(rx.header, Header::parse(&packet.bytes).unwrap().0);
            let expected = PuntReason::Kept(Instant(5));
            assert_eq!((rx.why, rx.tunnel, rx.iface), (expected, Some((ENTRY, EXIT)), Iface(2)));
            out.discard(rx.iface, packet, reason::CONSUMED);
        }
    }
    fn deadline(&self) -> Option<Instant> {
        None
    }
    fn status(&self) -> Value {
        Value::None
    }
}

const ENTRY: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
const EXIT: Ipv4Addr = Ipv4Addr::new(10, 3, 0, 1);

fn drops(bytes: Vec<u8>) -> Vec<&'static str> {
    let mut node = Node::new(vec![Box::new(Hearer::default()), Box::new(Hearer::default())], vec![EXIT]);
    let mut out = Outbox::default();
    let packet = Packet::new(Mac::ZERO, bytes);
    let kept =
        KeptPacket { owner: RoleId(1), at: Instant(5), iface: Iface(2), tunnel: (ENTRY, EXIT), packet };
    node.kept(Instant(9), kept, &mut out);
    let dropped = |(_, act)| match act {
        Act::Drop(_, _, reason) => Some(reason.0),
        _ => None,
    };
    assert_eq!(node.room_aside(), 2000);
    std::iter::from_fn(|| out.next_act()).filter_map(dropped).collect()
}

#[test]
fn a_kept_packet_goes_to_the_owner_of_its_route_with_its_time() {
    assert_eq!(drops(Header::new(ipv4::UDP, ENTRY, EXIT).emit(b"any")), ["consumed"]);
    assert_eq!(drops(vec![0x45; 19]), ["ip_truncated"], "as any malformed packet");
}

#[test]
fn tunnels_are_opened_aside_only_if_no_role_must_get_them() {
    let opens = |role: Hearer| Node::new(vec![Box::new(role)], vec![EXIT]).opens_aside();
    let hears = |listen| opens(Hearer { listens: vec![listen], ..Hearer::default() });
    assert!(opens(Hearer::default()) && hears(Listen::Local(Proto::Udp(434))));
    assert!(hears(Listen::IcmpAbout(Proto::IpIp)), "an error about a tunnel is in no tunnel");
    assert!(!hears(Listen::Local(Proto::IpIp)) && !hears(Listen::Local(Proto::Ip(ipv4::IPIP))));
    assert!(!hears(Listen::Transit(Proto::IpIp, wire::Prefix::ANY)));
    assert!(!hears(Listen::Local(Proto::Ip(ipv4::UDP))), "each of them may be a message");
    let [local, remote] = [80, 81].map(|port| crate::Addr::new(EXIT, port));
    assert!(!opens(Hearer { intercepts: [Tuple { local, remote }].into(), ..Hearer::default() }));
}

#[test]
fn messages_come_to_the_ports_of_the_roles() {
    let listens = [Proto::Udp(434), Proto::IpIp, Proto::Udp(67)].map(Listen::Local);
    let others = [Listen::IcmpAbout(Proto::Udp(1)), Listen::Transit(Proto::Udp(5), wire::Prefix::ANY)];
    let roles = [listens.to_vec(), others.to_vec()];
    let role = |listens| -> Box<dyn Role> { Box::new(Hearer { listens, ..Hearer::default() }) };
    let node = Node::new(roles.map(role).into(), vec![EXIT]);
    assert_eq!(node.udp_ports().collect::<Vec<_>>(), [434, 67, 5]);
}

/// The first packet after an idle time goes to the node. The data path then learns that the route is in use again.
#[test]
fn the_use_of_an_idle_route_is_reported() {
    let mut rules = Ruleset::default();
    let key = RouteKey::to(table::Class(3), ENTRY);
    let second = Duration::from_secs(1);
    let action = Action::Forward(Hop::mac(Iface(1), Mac([2; 6])));
    rules.set_route(Instant::ZERO, RoleId(1), key, Some(Route::new(action, Lifetime::ReportIdle(second))));
    rules.begin_mirror();
    let acts = |rules: &mut Ruleset| -> Vec<Option<Instant>> {
        let acts = rules.mirror.as_mut().unwrap().acts.drain(..);
        let used = |act| match act {
            MirrorAct::Route(of, route) if of == key => Some(route.map(|(_, used)| used)),
            _ => None,
        };
        acts.filter_map(used).collect()
    };
    assert_eq!(acts(&mut rules), [Some(Instant::ZERO)]);
    let id = rules.id_of(key).unwrap();
    rules.used(id, Instant::from_millis(500));
    assert_eq!(acts(&mut rules), [], "the data path need not know: it looks at its own uses");
    assert!(rules.pop_idle(Instant::from_millis(2000)).is_some());
    rules.used(id, Instant::from_millis(3000));
    assert_eq!(acts(&mut rules), [Some(Instant::from_millis(3000))]);
    assert!(rules.is_mirrored());
}
