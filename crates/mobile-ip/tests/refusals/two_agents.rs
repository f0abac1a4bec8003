//! Tests of a host with two foreign agents. Each agent has separate packet classes.

use super::registration::{HOME_LINK, Router, UPLINK, VISITED_LINK};
use super::*;
use mobile_ip::message::Extension;

/// The foreign agents, each with its link.
const AGENTS: [(Ipv4Addr, Iface); 2] =
    [(Ipv4Addr::new(10, 3, 0, 1), HOME_LINK), (Ipv4Addr::new(10, 4, 0, 1), VISITED_LINK)];
/// The home agents of the two mobile nodes.
const HOME_AGENTS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 5, 0, 2), Ipv4Addr::new(10, 6, 0, 2)];
const NODES: [(Ipv4Addr, Mac); 2] = [
    (Ipv4Addr::new(10, 5, 0, 7), Mac([2, 0, 0, 0, 0, 7])),
    (Ipv4Addr::new(10, 6, 0, 7), Mac([2, 0, 0, 0, 0, 8])),
];
const CORRESPONDENT: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 9);

/// Returns a router with both agents. Each has a visitor with a reverse tunnel, which has this delivery style.
fn both(encapsulating: bool) -> Router {
    let names = ["first", "second", "up"].map(str::to_owned);
    let agent = |place: usize| -> Box<dyn Role> {
        let (address, _) = AGENTS[place];
        let changes = format!(
            "address = \"{address}/24\"\ninterface = \"{}\"\nreverse_tunnel = 'offered'",
            names[place]
        );
        let mut config: ForeignAgentConfig = table(FOREIGN_AGENT, &changes).try_into().unwrap();
        config.visited = names[..2].to_vec();
        config.agents = AGENTS.map(|(address, _)| address).to_vec();
        config.own.clone_from(&config.agents);
        Box::new(ForeignAgent::new(config, Interfaces(&names), Rng::new(1)).unwrap())
    };
    let addresses = [(HOME_LINK, "10.3.0.1/24"), (VISITED_LINK, "10.4.0.1/24")];
    let mut router = Router::with(vec![agent(0), agent(1)], Vec::new(), &addresses);
    for (place, (_, link)) in AGENTS.into_iter().enumerate() {
        let ms = 1000 + 100 * place as u64;
        let sent = register(&mut router, ms, place, 300, encapsulating);
        assert!(sent.iter().any(|(iface, _)| *iface == link), "{sent:?}");
    }
    router
}

/// Registers a mobile node through its agent for a lifetime. Returns what the router sent after the reply.
fn register(
    router: &mut Router,
    ms: u64,
    place: usize,
    lifetime: u16,
    encapsulating: bool,
) -> Vec<(Iface, Packet)> {
    let ((care_of, link), (home, mac), home_agent) = (AGENTS[place], NODES[place], HOME_AGENTS[place]);
    let flags = RequestFlags::REVERSE;
    let mut asked =
        Request { flags, lifetime, home_agent, care_of, ..request(Instant::from_millis(ms), home) };
    if encapsulating {
        asked.extensions.push(Extension::encapsulating_delivery());
    }
    router.receive(ms, link, mac, packet(home, care_of, &asked.emit()));
    let reply = Reply { lifetime, ..asked.reply(Code::Accepted) };
    router.receive(ms + 10, UPLINK, ATTACKER, packet(home_agent, care_of, &reply.emit())).0
}

/// Returns the drop reasons of a packet for `to` in a tunnel from a home agent to an agent, or where it was sent.
fn tunneled(
    router: &mut Router,
    ms: u64,
    (home_agent, agent): (usize, usize),
    to: Ipv4Addr,
) -> Result<Vec<Iface>, Vec<&'static str>> {
    let inner = packet(CORRESPONDENT, to, b"data");
    let outer = wire::ipip::encapsulate(&inner, HOME_AGENTS[home_agent], AGENTS[agent].0, 1).unwrap();
    let (sent, drops) = router.receive(ms, UPLINK, ATTACKER, outer);
    if drops.is_empty() { Ok(sent.into_iter().map(|(iface, _)| iface).collect()) } else { Err(drops) }
}

#[test]
fn a_tunnel_to_one_agent_reaches_only_the_visitors_of_this_agent() {
    let mut router = both(false);
    let none = Err(vec!["not_a_visitor"]);
    for (ms, home_agent, agent, node) in
        [(2000, 0, 0, 1), (2001, 0, 1, 1), (2002, 1, 0, 1), (2003, 1, 1, 0), (2004, 1, 0, 0)]
    {
        let found = tunneled(&mut router, ms, (home_agent, agent), NODES[node].0);
        assert_eq!(found, none, "home agent {home_agent}, agent {agent}, node {node}");
    }
    for (place, (_, link)) in AGENTS.into_iter().enumerate() {
        let ms = 2100 + place as u64;
        assert_eq!(tunneled(&mut router, ms, (place, place), NODES[place].0), Ok(vec![link]));
    }
}

/// The end of a visit must not remove the routes of the other agent. Otherwise the router's own stack would receive packets
/// from the other agent's tunnels.
#[test]
fn the_end_of_a_visit_at_one_agent_changes_nothing_at_the_other() {
    for encapsulating in [false, true] {
        let mut router = both(encapsulating);
        register(&mut router, 2000, 0, 0, encapsulating);
        assert_eq!(tunneled(&mut router, 2100, (0, 0), NODES[0].0), Err(vec!["not_a_visitor"]));
        assert_eq!(tunneled(&mut router, 2101, (1, 1), AGENTS[1].0), Err(vec!["not_a_visitor"]));
        assert_eq!(tunneled(&mut router, 2102, (1, 1), NODES[1].0), Ok(vec![AGENTS[1].1]));
        let ((home, mac), (agent, link)) = (NODES[1], AGENTS[1]);
        let data = packet(home, CORRESPONDENT, b"data");
        let frame =
            if encapsulating { wire::ipip::encapsulate(&data, home, agent, 1).unwrap() } else { data };
        let (sent, drops) = router.receive(2200, link, mac, frame);
        let [(UPLINK, left)] = sent.as_slice() else { panic!("{sent:?} {drops:?}") };
        assert_eq!(ipv4::addresses(&left.bytes), Some((agent, HOME_AGENTS[1])), "in the reverse tunnel");
    }
}

/// A visitor of one agent must not send in the name of a visitor of the other agent through the reverse tunnel.
#[test]
fn a_visitor_does_not_use_the_reverse_tunnel_of_the_other_agents_visitor() {
    let mut router = both(false);
    let (sent, _) = router.receive(2000, AGENTS[0].1, NODES[0].1, packet(NODES[1].0, CORRESPONDENT, b"data"));
    let is_tunnel =
        |packet: &Packet| ipv4::addresses(&packet.bytes).is_some_and(|(_, to)| to == HOME_AGENTS[1]);
    assert!(!sent.iter().any(|(_, packet)| is_tunnel(packet)), "{sent:?}");
}
