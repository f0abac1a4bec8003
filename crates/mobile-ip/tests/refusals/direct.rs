//! Direct tunnels of a correspondent that is also a home agent, with one address: through a node, because the routes decide which
//! packets reach the foreign agent's role.

use super::super::*;
use super::{ATTACKER, NEXT, PREVIOUS, UP, at, signed_update};
use mobile_ip::message::{Binding, Numbers, RequestFlags};
use node::{Action, Hop, Lifetime, Node, Route};
use wire::{EtherType, Frame, tunnel};

/// A correspondent of the mobile node at [`HOME`]. It is also the home agent of the mobile node at [`SECOND`].
const BOTH: Ipv4Addr = Ipv4Addr::new(10, 6, 0, 2);
const SECOND: Ipv4Addr = Ipv4Addr::new(10, 6, 0, 7);
const OTHER: Mac = Mac([2, 0, 0, 0, 0, 8]);
const OWN: Mac = Mac([2, 0, 0, 0, 1, 1]);
const DIRECT: &str = r#"
    smooth_handoff = true
    direct_tunnels = true
    encapsulations = ["gre"]
    mobile_nodes = [{ address = "10.1.0.7", spi = 256, key = "000102030405060708090a0b0c0d0e0f" }]
"#;

/// A node with the role of a foreign agent.
struct Host(Node, Outbox);

impl Host {
    fn new(changes: &str) -> Self {
        let role: Box<dyn Role> = Box::new(foreign_agent(changes).unwrap());
        let (mut node, mut out) = (Node::new(vec![role], vec![VISITED]), Outbox::default());
        node.handle(Instant::ZERO, Input::Start(&Boot::new(WALL)), &mut out);
        for (iface, address) in [(Iface(1), "10.3.0.1/24"), (Iface(UP), "10.9.0.1/24")] {
            node.add_address(Instant::ZERO, iface, address.parse().unwrap());
            let up = Link::Up { cell: None, mac: OWN, mtu: 1500, name: "any" };
            node.handle(Instant::ZERO, Input::Link(iface, up), &mut out);
        }
        let key = RouteKey { class: None, src: Prefix::ANY, dst: Prefix::ANY };
        let up = Action::Forward(Hop::mac(Iface(UP), Mac([2; 6])));
        node.set_route(Instant::ZERO, key, Route::new(up, Lifetime::Permanent));
        while out.next_act().is_some() {}
        Self(node, out)
    }

    fn receive(&mut self, ms: u64, iface: u16, from: Mac, bytes: Vec<u8>) -> Vec<Act> {
        let link = Frame { kind: EtherType::IPV4, src: from, dst: OWN };
        let packet = Packet { link, id: PacketId(1), bytes };
        self.0.receive(at(ms), Iface(iface), packet, &mut self.1);
        std::iter::from_fn(|| self.1.next_act().map(|(_, act)| act)).collect()
    }

    /// A mobile node registers at this foreign agent with a home agent.
    fn register(&mut self, ms: u64, mac: Mac, home: Ipv4Addr, home_agent: Ipv4Addr) {
        self.register_with(RequestFlags::default(), (ms, mac), home, home_agent);
    }

    fn register_with(
        &mut self,
        flags: RequestFlags,
        (ms, mac): (u64, Mac),
        home: Ipv4Addr,
        home_agent: Ipv4Addr,
    ) {
        let mut asked = Request { flags, home_agent, ..request(at(ms), home) };
        asked.extensions.clear();
        asked.sign(Between::MobileHome, &association());
        if home == HOME {
            asked.sign(Between::MobileForeign, &association());
        }
        self.receive(ms, 1, mac, packet(home, VISITED, &asked.emit()));
        let acts = self.receive(ms + 10, UP, OWN, reply_to(&asked, home_agent));
        assert!(
            acts.iter().any(|act| matches!(act, Act::Transmit(Iface(1), packet) if packet.link.dst == mac))
        );
    }

    /// Receives a packet for `home` in a tunnel from `entry`. Returns the link address to which the packet is forwarded by an interface, and
    /// the reason why a packet is dropped.
    fn tunneled(
        &mut self,
        ms: u64,
        kind: tunnel::Kind,
        entry: Ipv4Addr,
        home: Ipv4Addr,
    ) -> (Vec<(u16, Mac)>, Vec<&'static str>) {
        let inner = packet(Ipv4Addr::new(10, 6, 0, 2), home, b"data");
        let bytes = tunnel::encapsulate(kind, &inner, entry, VISITED, ms as u16).unwrap();
        let acts = self.receive(ms, UP, Mac([2; 6]), bytes);
        let sent = |act: &Act| match act {
            Act::Transmit(iface, packet) => Some((iface.0, packet.link.dst)),
            _ => None,
        };
        let dropped = |act: &Act| match act {
            Act::Drop(_, _, why) => Some(why.0),
            _ => None,
        };
        (acts.iter().filter_map(sent).collect(), acts.iter().filter_map(dropped).collect())
    }
}

const KINDS: [tunnel::Kind; 2] = [tunnel::Kind::IpInIp, tunnel::Kind::Gre];

/// A correspondent tunnels to a visitor of another home agent. It is served whether or not it is also the home agent of a visitor here.
#[test]
fn a_correspondent_that_is_a_home_agent_of_a_visitor_tunnels_to_another_visitor() {
    for kind in KINDS {
        let mut host = Host::new(DIRECT);
        host.register(1000, MOBILE, HOME, AGENT);
        let to_mobile = (vec![(1, MOBILE)], vec![]);
        assert_eq!(host.tunneled(2000, kind, BOTH, HOME), to_mobile, "{kind:?}, before");
        host.register(3000, OTHER, SECOND, BOTH);
        assert_eq!(host.tunneled(4000, kind, BOTH, HOME), to_mobile, "{kind:?}");
        let to_second = (vec![(1, OTHER)], vec![]);
        assert_eq!(host.tunneled(4010, tunnel::Kind::IpInIp, BOTH, SECOND), to_second, "its own mobile node");
        // Other destinations are dropped, as from all hosts.
        for to in [Ipv4Addr::new(10, 1, 0, 99), VISITED] {
            assert_eq!(host.tunneled(4020, kind, BOTH, to), (vec![], vec!["not_a_visitor"]), "{to}");
        }
        // After a handoff, the packets are forwarded.
        let update = Binding::Update(signed_update(at(5000), HOME, NEXT, &association()));
        host.receive(5000, UP, OWN, packet(PREVIOUS, VISITED, &update.emit(&Numbers::default())));
        let (sent, dropped) = host.tunneled(6000, kind, BOTH, HOME);
        assert!(sent.contains(&(UP, Mac([2; 6]))) && dropped.is_empty(), "{sent:?}, {dropped:?}");
    }
}

/// Without `direct_tunnels`, a home agent tunnels to its own mobile nodes only.
#[test]
fn without_direct_tunnels_a_home_agent_tunnels_to_no_visitor_of_another_one() {
    let mut host = Host::new(&DIRECT.replace("direct_tunnels = true", ""));
    host.register(1000, MOBILE, HOME, AGENT);
    host.register(3000, OTHER, SECOND, BOTH);
    let kind = tunnel::Kind::IpInIp;
    assert_eq!(host.tunneled(4000, kind, BOTH, HOME), (vec![], vec!["not_a_visitor"]));
    assert_eq!(host.tunneled(4010, kind, BOTH, SECOND), (vec![(1, OTHER)], vec![]));
}

/// A host registers with a forged home agent address: that of the correspondent of a visitor. By this, it gets none of the packets of
/// the correspondent to the visitor, and the visitor gets all of them.
#[test]
fn a_forged_home_agent_address_takes_no_direct_tunnels() {
    let mut host = Host::new(DIRECT);
    host.register(1000, MOBILE, HOME, AGENT);
    host.register(3000, ATTACKER, SECOND, BOTH);
    for kind in KINDS {
        assert_eq!(host.tunneled(4000, kind, BOTH, HOME), (vec![(1, MOBILE)], vec![]), "{kind:?}");
    }
}

/// A host has registered with the address of a home agent of a visitor as its home address, and asks for a reverse tunnel. Packets out of
/// tunnels of this home agent for other destinations are dropped all the same, and those for visitors are delivered.
#[test]
fn a_visitor_with_the_address_of_a_home_agent_opens_no_way_for_its_tunnels() {
    let mut host = Host::new(&format!("{DIRECT}\nreverse_tunnel = 'offered'"));
    host.register(1000, MOBILE, HOME, AGENT);
    host.register(3000, OTHER, SECOND, BOTH);
    host.register_with(RequestFlags::REVERSE, (5000, ATTACKER), BOTH, AGENT);
    for (ms, kind) in [6000, 7000].into_iter().zip(KINDS) {
        let elsewhere = host.tunneled(ms, kind, BOTH, Ipv4Addr::new(10, 1, 0, 99));
        assert_eq!(elsewhere, (vec![], vec!["not_a_visitor"]), "{kind:?}");
        assert_eq!(host.tunneled(ms + 10, kind, BOTH, HOME), (vec![(1, MOBILE)], vec![]), "{kind:?}");
    }
}
