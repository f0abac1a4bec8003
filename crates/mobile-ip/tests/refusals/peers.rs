//! Hosts that register with the address of a peer of the foreign agent as their home address, with another home agent: the
//! agent's messages and tunnels to the peer must not go to them.

use super::handoffs::{ATTACKER, NEXT, PREVIOUS, PROVEN, UP, agent, at, signed_update};
use super::*;
use mobile_ip::message::{Binding, Numbers, PreviousAgent};
use std::collections::BTreeSet;

const ROGUE: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 9);

/// The routes for the own packets of the agent's host that the effects of an agent have set.
#[derive(Default)]
struct Own(BTreeSet<Ipv4Addr>);

impl Own {
    /// Follows effects. Returns the destinations of the packets that the agent sent while its own packets to there go to a visitor.
    fn follow(&mut self, effects: Vec<Effect>) -> Vec<Ipv4Addr> {
        let mut diverted = Vec::new();
        for effect in effects {
            match effect {
                Effect::Do(Act::Route(key, route)) if key.class == Some(Class::HOST) => {
                    let host = key.dst.address();
                    if route.is_some() {
                        self.0.insert(host)
                    } else {
                        self.0.remove(&host)
                    };
                }
                Effect::Send(None, packet) => {
                    let to = ipv4::addresses(&packet.bytes).unwrap().1;
                    diverted.extend(self.0.contains(&to).then_some(to));
                }
                _ => {}
            }
        }
        diverted
    }
}

/// A host registers this home address with its own home agent.
fn register(agent: &mut ForeignAgent, own: &mut Own, ms: u64, home: Ipv4Addr) {
    let mut asked = Request { home_agent: ROGUE, ..request(at(ms), home) };
    asked.extensions.clear();
    asked.sign(Between::MobileHome, &association());
    own.follow(heard(agent, at(ms), 1, ATTACKER, packet(home, VISITED, &asked.emit())));
    own.follow(heard(agent, at(ms), UP, ATTACKER, reply_to(&asked, ROGUE)));
    assert_eq!(rows(&agent.status(), "visitors", &home.to_string()).len(), 1);
}

/// The mobile node registers, and leaves to [`NEXT`].
fn visit_and_leave(agent: &mut ForeignAgent, own: &mut Own, ms: u64) {
    let mut asked = request(at(ms), HOME);
    asked.sign(Between::MobileForeign, &association());
    own.follow(heard(agent, at(ms), 1, MOBILE, packet(HOME, VISITED, &asked.emit())));
    own.follow(heard(agent, at(ms), UP, ATTACKER, reply_to(&asked, AGENT)));
    let update = Binding::Update(signed_update(at(ms + 100), HOME, NEXT, &association()));
    let bytes = update.emit(&Numbers::default());
    let diverted = own.follow(heard(agent, at(ms + 100), UP, ATTACKER, packet(PREVIOUS, VISITED, &bytes)));
    assert!(diverted.is_empty(), "{diverted:?}");
}

/// Before and after the handoff of a mobile node, a host registers with the address of its next agent. The tunnel to that agent does
/// not go to the host. Without a tunnel, the agent's own packets go to it, for example ICMP errors.
#[test]
fn the_exit_of_a_tunnel_is_no_visitor() {
    for is_before in [true, false] {
        let (mut agent, mut own) = (agent(PROVEN), Own::default());
        if is_before {
            register(&mut agent, &mut own, 1000, NEXT);
            assert!(own.0.contains(&NEXT));
        }
        visit_and_leave(&mut agent, &mut own, 2000);
        if !is_before {
            register(&mut agent, &mut own, 3000, NEXT);
        }
        assert!(!own.0.contains(&NEXT), "{is_before}");
    }
}

/// A host has registered with the address of a newcomer's previous agent. The Binding Update goes to the previous agent.
#[test]
fn a_previous_agent_is_no_visitor() {
    let (mut agent, mut own) = (agent(PROVEN), Own::default());
    register(&mut agent, &mut own, 1000, PREVIOUS);
    let mut asked = request(at(2000), HOME);
    let said = PreviousAgent::new(&asked, 30, PREVIOUS, &association(), &Numbers::default());
    asked.extensions.push(said.extension(&Numbers::default()));
    asked.sign(Between::MobileForeign, &association());
    let effects = heard(&mut agent, at(2000), 1, MOBILE, packet(HOME, VISITED, &asked.emit()));
    let to_previous = |effect: &Effect| match effect {
        Effect::Send(None, packet) => ipv4::addresses(&packet.bytes).unwrap().1 == PREVIOUS,
        _ => false,
    };
    assert!(effects.iter().any(to_previous));
    assert_eq!(own.follow(effects), [] as [Ipv4Addr; 0]);
}

/// The agent has forgotten the mobile node, and a host has registered with its home address and another home agent. Special tunnels go
/// to the home agent of the mobile node, which intercepts them.
#[test]
fn a_special_tunnel_goes_to_no_visitor() {
    let (mut agent, mut own) = (agent("special_tunnels = true"), Own::default());
    register(&mut agent, &mut own, 1000, HOME);
    let data = Packet::new(Mac::ZERO, packet(Ipv4Addr::new(10, 2, 0, 2), HOME, b"data"));
    let rx = Rx::parse(Iface(UP), PuntReason::Action, &data).unwrap();
    let rx = Rx { tunnel: Some((AGENT, VISITED)), ..rx };
    let effects = give(&mut agent, at(2000), Input::Packet(rx, data));
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Send(None, _))), "{effects:?}");
    assert_eq!(own.follow(effects), [] as [Ipv4Addr; 0]);
}

/// A home agent has the address of the foreign agent, and sends its tunnels from there. A host that registers with the address of an exit
/// of these tunnels gets none of this host's packets; another visitor gets them.
#[test]
fn the_exit_of_a_tunnel_of_a_home_agent_with_the_same_address_is_no_visitor() {
    let (mut agent, mut own) = (agent(""), Own::default());
    let entry = |is_open| node::Notification::TunnelEntry(VISITED, NEXT, is_open);
    register(&mut agent, &mut own, 1000, NEXT);
    assert_eq!(own.0, BTreeSet::from([NEXT]));
    let of_another = node::Notification::TunnelEntry(AGENT, NEXT, true);
    own.follow(give(&mut agent, at(1400), Input::Notification(&of_another)));
    assert_eq!(own.0, BTreeSet::from([NEXT]), "a home agent with another address");
    own.follow(give(&mut agent, at(1500), Input::Notification(&entry(true))));
    assert_eq!(own.0, BTreeSet::new());
    register(&mut agent, &mut own, 20_000, NEXT);
    register(&mut agent, &mut own, 30_000, HOME);
    assert_eq!(own.0, BTreeSet::from([HOME]));
    own.follow(give(&mut agent, at(31_000), Input::Notification(&entry(false))));
    register(&mut agent, &mut own, 40_000, NEXT);
    assert_eq!(own.0, BTreeSet::from([HOME, NEXT]));
}

/// A home agent beside a foreign agent with the same address says where its tunnels lead: from the first mobile node there to the last.
#[test]
fn a_home_agent_reports_the_exits_of_its_tunnels() {
    let mut config: HomeAgentConfig = table(super::HOME_AGENT, "").try_into().unwrap();
    config.foreign = vec![AGENT];
    let names = ["home", "up"].map(str::to_owned);
    let mut agent = HomeAgent::new(config, Interfaces(&names), Rng::new(1)).unwrap();
    start(&mut agent);
    let mut reports = |ms: u64, lifetime: u16, care_of: Ipv4Addr| {
        let mut asked = Request { lifetime, care_of, ..request(at(ms), HOME) };
        asked.extensions.clear();
        asked.sign(Between::MobileHome, &association());
        let effects = heard(&mut agent, at(ms), UP, MOBILE, packet(care_of, AGENT, &asked.emit()));
        let report = |effect: Effect| match effect {
            Effect::Notify(node::Notification::TunnelEntry(AGENT, exit, is_open)) => Some((exit, is_open)),
            _ => None,
        };
        effects.into_iter().filter_map(report).collect::<Vec<_>>()
    };
    assert_eq!(reports(1000, 300, VISITED), [(VISITED, true)]);
    assert_eq!(reports(3000, 300, VISITED), []);
    assert_eq!(reports(5000, 300, NEXT), [(VISITED, false), (NEXT, true)]);
    assert_eq!(reports(7000, 0, NEXT), [(NEXT, false)]);
}

/// A stray tunneled packet, and a request that names a visitor as its previous agent, take nothing from this visitor: afterwards, the
/// agent's own packets still go to it. Another host that registers its address does not get them.
#[test]
fn a_visitor_keeps_the_own_packets_of_the_agent() {
    let trusts = format!(
        "smooth_handoff = true\nspecial_tunnels = true
        mobile_nodes = [{{ address = '{HOME}', spi = 256, key = '{KEY}' }}]"
    );
    let (mut agent, mut own) = (agent(&trusts), Own::default());
    // A host without a key comes first.
    register(&mut agent, &mut own, 500, Ipv4Addr::new(10, 1, 0, 9));
    let mut asked = request(at(1000), HOME);
    asked.sign(Between::MobileForeign, &association());
    own.follow(heard(&mut agent, at(1000), 1, MOBILE, packet(HOME, VISITED, &asked.emit())));
    own.follow(heard(&mut agent, at(1010), UP, ATTACKER, reply_to(&asked, AGENT)));
    assert!(own.0.contains(&HOME));
    let data = Packet::new(Mac::ZERO, packet(Ipv4Addr::new(10, 2, 0, 2), HOME, b"data"));
    let rx = Rx::parse(Iface(UP), PuntReason::Action, &data).unwrap();
    let rx = Rx { tunnel: Some((Ipv4Addr::new(198, 51, 100, 9), VISITED)), ..rx };
    assert_eq!(own.follow(give(&mut agent, at(2000), Input::Packet(rx, data))), [] as [Ipv4Addr; 0]);
    let other = Ipv4Addr::new(10, 1, 0, 10);
    let mut names = request(at(3000), other);
    let said = PreviousAgent::new(&names, 30, HOME, &association(), &Numbers::default());
    names.extensions.push(said.extension(&Numbers::default()));
    let effects = heard(&mut agent, at(3000), 1, ATTACKER, packet(other, VISITED, &names.emit()));
    assert_eq!(own.follow(effects), [] as [Ipv4Addr; 0]);
    assert!(own.0.contains(&HOME));
}

/// The home agent still sends packets to the previous agent, which forwards them to an agent that does not know the mobile node. That
/// one sends each packet back once: when the packet comes again, it has fewer hops.
#[test]
fn a_packet_is_sent_back_once() {
    let mut agent = agent("special_tunnels = true");
    let mut sends_back = |ms: u64, ttl: u8| {
        let source = SocketAddrV4::new(Ipv4Addr::new(10, 2, 0, 2), 9);
        let bytes = wire::udp::packet(source, SocketAddrV4::new(HOME, 9), b"data");
        let (header, payload) = Header::parse(&bytes).unwrap();
        let bytes = Header { id: 7, ttl, ..header }.emit(payload);
        let data = Packet::new(Mac::ZERO, bytes);
        let rx = Rx::parse(Iface(UP), PuntReason::Action, &data).unwrap();
        let rx = Rx { tunnel: Some((PREVIOUS, VISITED)), ..rx };
        let effects = give(&mut agent, at(ms), Input::Packet(rx, data));
        effects.iter().any(|effect| matches!(effect, Effect::Send(None, _)))
    };
    assert_eq!(
        [(1000, 64), (1010, 61), (1020, 58)].map(|(ms, ttl)| sends_back(ms, ttl)),
        [true, false, false]
    );
    assert!(sends_back(1030, 64), "an equal packet of the sender");
}
