//! Tests of configurations that must be rejected, and of attacks that must have no effect.

#[path = "refusals/agents.rs"]
mod agents;
#[path = "refusals/bindings.rs"]
mod bindings;
#[path = "refusals/challenges.rs"]
mod challenges;
#[path = "refusals/codes.rs"]
mod codes;
#[path = "refusals/floods.rs"]
mod floods;
#[path = "refusals/handoffs.rs"]
mod handoffs;
#[path = "refusals/keys.rs"]
mod keys;
#[path = "refusals/limits.rs"]
mod limits;
#[path = "refusals/mobile_node.rs"]
mod mobile_node_alone;
#[path = "refusals/order.rs"]
mod order;
#[path = "refusals/other_home_agents.rs"]
mod other_home_agents;
#[path = "refusals/peers.rs"]
mod peers;
#[path = "refusals/registration.rs"]
mod registration;
#[path = "refusals/replays.rs"]
mod replays;
#[path = "refusals/resources.rs"]
mod resources;
#[path = "refusals/two_agents.rs"]
mod two_agents;

use auth::Key as Secret;
use mobile_ip::config::{ForeignAgentConfig, HomeAgentConfig, MobileNodeConfig};
use mobile_ip::message::{
    ALL_SYSTEMS, Advertisement, AgentFlags, Algorithm, Association, Between, Code, Extension, PORT, Received,
    Registration, Reply, Request, RequestFlags, datagram,
};
use mobile_ip::{ForeignAgent, HomeAgent, MobileNode};
use node::config::Interfaces;
use node::{Act, Boot, Class, Effect, Input, Link, Outbox, PuntReason, Rng, Role, RouteKey, Rx, Value};
use wire::icmp::IcmpError;
use wire::ipv4::{self, Header};
use wire::{Iface, Instant, Ipv4Addr, Mac, Packet, PacketId, Prefix, SocketAddrV4, WallTime};

const WALL: WallTime = WallTime(946_684_800_000_000_000);
const HOME: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 7);
const AGENT: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);
const VISITED: Ipv4Addr = Ipv4Addr::new(10, 3, 0, 1);
const MOBILE: Mac = Mac([2, 0, 0, 0, 0, 7]);

const KEY: &str = "000102030405060708090a0b0c0d0e0f";
const HOME_AGENT: &str = r#"
    address = "10.1.0.2/16"
    interface = "home"
    mobile_nodes = [{ address = "10.1.0.7", spi = 256, key = "000102030405060708090a0b0c0d0e0f" }]
"#;
const FOREIGN_AGENT: &str = r#"
    address = "10.3.0.1/24"
    interface = "visited"
    pending = 3
"#;

#[test]
fn a_care_of_address_that_cannot_work_is_refused() {
    let own = |networks: &str| mobile_node(&format!("care_of = 'configured'\nnetworks = [{networks}]"));
    assert!(mobile_node("care_of = 'agent'").is_ok() && mobile_node("care_of = 'acquired'").is_ok());
    assert!(own("{ cell = 2, address = '10.3.0.77/24', router = '10.3.0.1' }").is_ok());
    refused(mobile_node("care_of = 'dhcp'"), "care_of", "acquired");
    refused(own(""), "`networks`", "at least one network");
    refused(
        mobile_node("networks = [{ address = '10.3.0.7/24', router = '10.3.0.1' }]"),
        "`networks`",
        "none without",
    );
    refused(
        own("{ address = '10.3.0.255/24', router = '10.3.0.1' }"),
        "`networks`",
        "not a unicast host address",
    );
    refused(
        own("{ address = '10.1.3.7/24', router = '10.1.3.1' }"),
        "`networks`",
        "must not be in the home network",
    );
    refused(
        own("{ address = '10.3.0.77/24', router = '10.4.0.1' }"),
        "`networks`",
        "another host address of 10.3.0.0/24",
    );
    refused(own("{ address = '10.3.0.77/24', router = '10.3.0.77' }"), "`networks`", "another host address");
}

const MOBILE_NODE: &str = r#"
    address = "10.1.0.7/16"
    interface = "air"
    home_agent = { address = "10.1.0.2", spi = 256, key = "000102030405060708090a0b0c0d0e0f" }
"#;

fn table(base: &str, changes: &str) -> toml::Value {
    let mut table: toml::Table = base.parse().unwrap();
    table.extend(changes.parse::<toml::Table>().unwrap());
    toml::Value::Table(table)
}

fn home_agent(changes: &str) -> Result<HomeAgent, String> {
    let config: HomeAgentConfig =
        table(HOME_AGENT, changes).try_into().map_err(|error| format!("{error}"))?;
    let names = ["home", "up"].map(str::to_owned);
    HomeAgent::new(config, Interfaces(&names), Rng::new(1)).map_err(|error| error.to_string())
}

fn foreign_agent(changes: &str) -> Result<ForeignAgent, String> {
    let config: ForeignAgentConfig =
        table(FOREIGN_AGENT, changes).try_into().map_err(|error| format!("{error}"))?;
    let names = ["visited", "up"].map(str::to_owned);
    ForeignAgent::new(config, Interfaces(&names), Rng::new(1)).map_err(|error| error.to_string())
}

fn mobile_node(changes: &str) -> Result<MobileNode, String> {
    let config: MobileNodeConfig =
        table(MOBILE_NODE, changes).try_into().map_err(|error| format!("{error}"))?;
    let names = ["air"].map(str::to_owned);
    MobileNode::new(config, Interfaces(&names), Rng::new(1)).map_err(|error| error.to_string())
}

#[track_caller]
fn refused<T: std::fmt::Debug>(made: Result<T, String>, key: &str, why: &str) {
    let error = made.unwrap_err();
    assert!(error.contains(key) && error.contains(why), "{error}");
}

// --- configuration -----------------------------------------------------------------------------------------------------

#[test]
fn a_home_agent_that_cannot_work_is_refused() {
    assert!(home_agent("").is_ok());
    refused(home_agent("interface = \"lan\""), "`interface`", "home, up");
    refused(home_agent("address = \"10.1.255.255/16\""), "`address`", "not a unicast host address");
    refused(home_agent("registration_lifetime = \"0s\""), "`registration_lifetime`", "whole seconds");
    refused(home_agent("registration_lifetime = \"2s\""), "`registration_lifetime`", "from 3s");
    refused(home_agent("registration_lifetime = \"65535s\""), "`registration_lifetime`", "65534s");
    refused(home_agent("replay_window = \"3s\""), "`replay_window`", "greater than 3s");
    refused(home_agent("tunnel_mtu = 547"), "`tunnel_mtu`", "548");
    refused(home_agent("announcements = ['1s', '0s']"), "`announcements`", "in ascending order");
    refused(home_agent("advertise = { interval = \"0s\" }"), "`advertise`", "greater than zero");
    refused(home_agent("advertise = { lifetime = \"0s\" }"), "`advertise`", "9000s");
    refused(home_agent("advertise = { lifetime = \"2s\" }"), "`advertise`", "three times `interval` (3s;");
    assert!(home_agent("advertise = { interval = \"700ms\", lifetime = \"3s\" }").is_ok());
    refused(
        home_agent("advertise = { interval = \"3100s\", lifetime = \"9000s\" }"),
        "`advertise`",
        "(9300s;",
    );
    refused(home_agent("advertise = { lifetime = \"3.5s\" }"), "`advertise`", "whole seconds");
    refused(home_agent("bindings = 3"), "bindings", "unknown field");
    let nodes = |nodes: &str| home_agent(&format!("mobile_nodes = [{nodes}]"));
    let node = |address: &str, spi: u32, key: &str| {
        format!("{{ address = \"{address}\", spi = {spi}, key = \"{key}\" }}")
    };
    refused(nodes(&node("10.1.0.7", 255, KEY)), "`mobile_nodes`", "reserved");
    refused(nodes(&node("10.1.0.7", 256, "00112233445566778899aabbccddee")), "`mobile_nodes`", "16 bytes");
    refused(nodes(&node("224.0.0.1", 256, KEY)), "`mobile_nodes`", "not a unicast host address");
    let twice = format!("{}, {}", node("10.1.0.7", 256, KEY), node("10.1.0.7", 256, KEY));
    refused(nodes(&twice), "`mobile_nodes`", "two associations");
    // The home agent would answer ARP requests for a host of another network, for itself, or for a broadcast address.
    for address in ["10.2.0.7", "10.1.0.2", "10.1.255.255"] {
        refused(
            nodes(&node(address, 256, KEY)),
            "`mobile_nodes`",
            "must be a host address of 10.1.0.0/16 other than 10.1.0.2",
        );
    }
}

#[test]
fn a_foreign_agent_or_mobile_node_that_cannot_work_is_refused() {
    assert!(foreign_agent("").is_ok() && mobile_node("").is_ok());
    refused(foreign_agent("pending_timeout = \"0s\""), "`pending_timeout`", "greater than zero");
    refused(foreign_agent("address = \"127.0.0.1/8\""), "`address`", "not a unicast host address");
    refused(mobile_node("lifetime = \"2s\""), "`lifetime`", "from 3s to 65534s");
    refused(mobile_node("lifetime = \"1.5s\""), "`lifetime`", "whole seconds");
    refused(mobile_node("movement = \"clairvoyant\""), "clairvoyant", "pm-eager");
    // The radio's moves are not part of Mobile IP's configuration.
    refused(mobile_node("moves = []"), "moves", "unknown field");
    let own = format!("home_agent = {{ address = \"10.1.0.7\", spi = 256, key = \"{KEY}\" }}");
    refused(mobile_node(&own), "`home_agent`", "another address than the mobile node");
}

// --- attacks -----------------------------------------------------------------------------------------------------------

/// Gives a role an input, and returns the effects. Each record that the role stores is durable at once.
fn give(role: &mut impl Role, now: Instant, input: Input<'_>) -> Vec<Effect> {
    let mut out = Outbox::default();
    role.handle(now, input, &mut out);
    let mut effects: Vec<Effect> = out.drain_effects().collect();
    let stored = |effect: &Effect| match effect {
        Effect::Do(Act::Store(key, _)) => Some(key.clone()),
        _ => None,
    };
    for key in effects.iter().filter_map(stored).collect::<Vec<_>>() {
        role.handle(now, Input::Stored(&key), &mut out);
        effects.extend(out.drain_effects());
    }
    effects
}

fn start(role: &mut impl Role) {
    give(role, Instant::ZERO, Input::Start(&Boot::new(WALL)));
    let up = Link::Up { cell: None, mac: Mac([2, 0, 0, 0, 1, 1]), mtu: 1500, name: "any" };
    give(role, Instant::ZERO, Input::Link(Iface(1), up));
}

fn heard(role: &mut impl Role, now: Instant, iface: u16, from: Mac, bytes: Vec<u8>) -> Vec<Effect> {
    let mut packet = Packet::new(Mac([2, 0, 0, 0, 1, 1]), bytes);
    (packet.link.src, packet.id) = (from, PacketId(1));
    match Rx::parse(Iface(iface), PuntReason::Listen, &packet) {
        Ok(rx) => give(role, now, Input::Packet(rx, packet)),
        // The node drops a packet with a malformed header, so the role does not receive it.
        Err(malformed) => vec![Effect::Discard(Iface(iface), packet, malformed.into())],
    }
}

fn association() -> Association {
    Association { spi: 256, algorithm: Algorithm::HmacSha256, key: KEY.parse().unwrap() }
}

fn request(now: Instant, home: Ipv4Addr) -> Request {
    let mut request = Request {
        flags: RequestFlags::default(),
        lifetime: 300,
        home,
        home_agent: AGENT,
        care_of: VISITED,
        identification: WALL.plus(now.since(Instant::ZERO)).to_ntp(),
        extensions: Vec::new(),
    };
    request.sign(Between::MobileHome, &association());
    request
}

fn sockets(src: Ipv4Addr, dst: Ipv4Addr) -> [SocketAddrV4; 2] {
    [src, dst].map(|address| SocketAddrV4::new(address, PORT))
}

fn packet(src: Ipv4Addr, dst: Ipv4Addr, payload: &[u8]) -> Vec<u8> {
    let [src, dst] = sockets(src, dst);
    datagram(src, dst, 255, payload)
}

/// Returns whether an agent did more than answer: it stored a record, changed a route or a neighbor, or sent ARP.
fn moved(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| {
        matches!(effect, Effect::Do(Act::Store(..) | Act::Route(..) | Act::Neighbor(..)))
            || matches!(effect, Effect::Send(_, packet) if packet.link.kind == wire::EtherType::ARP)
    })
}

#[test]
fn no_bit_of_a_request_can_be_changed_on_the_way() {
    let now = Instant::from_millis(1000);
    let good = request(now, HOME).emit();
    for bit in 0..good.len() * 8 {
        let mut agent = home_agent("").unwrap();
        start(&mut agent);
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        assert!(!moved(&heard(&mut agent, now, 2, MOBILE, packet(VISITED, AGENT, &bad))), "bit {bit}");
    }
    let mut agent = home_agent("").unwrap();
    start(&mut agent);
    assert!(moved(&heard(&mut agent, now, 2, MOBILE, packet(VISITED, AGENT, &good))));
}

#[test]
fn a_request_moves_nobody_twice() {
    let mut agent = home_agent("").unwrap();
    start(&mut agent);
    let old = packet(VISITED, AGENT, &request(Instant::from_millis(1000), HOME).emit());
    assert!(moved(&heard(&mut agent, Instant::from_millis(1000), 2, MOBILE, old.clone())));
    let new = packet(VISITED, AGENT, &request(Instant::from_millis(2000), HOME).emit());
    assert!(moved(&heard(&mut agent, Instant::from_millis(2000), 2, MOBILE, new)));
    for at in [2500, 4000, 8000, 100_000] {
        assert!(!moved(&heard(&mut agent, Instant::from_millis(at), 2, MOBILE, old.clone())), "at {at}");
    }
}

/// A flood of forged requests from 5000 addresses must cause a limited number of answers. Afterwards, a mobile node
/// must still be able to register.
#[test]
fn a_flood_of_forgeries_costs_a_bounded_number_of_answers() {
    let mut agent = home_agent("").unwrap();
    start(&mut agent);
    let now = Instant::from_millis(1000);
    let mut forged = request(now, HOME);
    forged.extensions.clear();
    forged.sign(Between::MobileHome, &Association { key: Secret::new([9; 16]), ..association() });
    let forged = forged.emit();
    let mut answers = 0;
    for number in 0..5000_u32 {
        let from = Ipv4Addr::from_bits(0x0b00_0000 + number);
        let effects = heard(&mut agent, now, 2, MOBILE, packet(from, AGENT, &forged));
        assert!(!moved(&effects));
        answers += effects.iter().filter(|effect| matches!(effect, Effect::Send(..))).count();
    }
    assert!((1000..1100).contains(&answers), "{answers}");
    assert!(moved(&heard(&mut agent, now, 2, MOBILE, packet(VISITED, AGENT, &request(now, HOME).emit()))));
}

/// Returns the first reply that these effects send.
fn reply_in(effects: &[Effect]) -> Option<Reply> {
    effects.iter().find_map(|effect| match effect {
        Effect::Send(_, packet) => match Received::parse(&packet.bytes).ok()?.message {
            Registration::Reply(reply) => Some(reply),
            Registration::Request(_) => None,
        },
        _ => None,
    })
}

fn code_sent(effects: &[Effect]) -> Option<Code> {
    reply_in(effects).map(|reply| reply.code)
}

/// Returns the rows of a table of a foreign agent's status that are about a mobile node: with each of its home agents.
fn rows(status: &Value, table: &str, host: &str) -> Vec<Value> {
    let Some(Value::List(rows)) = status.get(table).and_then(|all| all.get(host)) else { return Vec::new() };
    rows.clone()
}

/// Returns how many packets a role has refused for this reason.
fn counted(role: &impl Role, reason: &str) -> i64 {
    let status = role.status();
    status.get("refused").and_then(|all| all.get(reason)?.as_int()).unwrap_or_default()
}

#[test]
fn requests_that_wait_are_bounded_for_all_and_for_each() {
    let mut agent = foreign_agent("").unwrap();
    start(&mut agent);
    let now = Instant::from_millis(1000);
    let ask = |agent: &mut ForeignAgent, home: Ipv4Addr, from: u8, number: u64| {
        let request = Request { identification: number, ..request(now, home) };
        let from = Mac([2, 0, 0, 0, 0, from]);
        code_sent(&heard(agent, now, 1, from, packet(home, VISITED, &request.emit())))
    };
    assert_eq!(ask(&mut agent, HOME, 7, 1), None);
    assert_eq!(ask(&mut agent, HOME, 7, 2), None);
    // Requests for the same home address from another link address are counted separately.
    assert_eq!(ask(&mut agent, HOME, 8, 3), None);
    assert_eq!(ask(&mut agent, HOME, 7, 4), None);
    assert_eq!(ask(&mut agent, Ipv4Addr::new(10, 1, 0, 9), 10, 6), Some(Code::ForeignResources));
}

/// On a router with two foreign agents, replies and ICMP errors from both visited links must be dropped.
#[test]
fn no_visited_link_speaks_for_a_home_agent() {
    let mut config: ForeignAgentConfig = table(FOREIGN_AGENT, "").try_into().unwrap();
    config.visited = ["visited", "other"].map(str::to_owned).into();
    let names = ["visited", "other", "up"].map(str::to_owned);
    let mut agent = ForeignAgent::new(config, Interfaces(&names), Rng::new(1)).unwrap();
    start(&mut agent);
    let now = Instant::from_millis(1000);
    let asks = request(now, HOME);
    heard(&mut agent, now, 1, MOBILE, packet(HOME, VISITED, &asks.emit()));
    let reply = Reply { lifetime: 300, ..asks.reply(Code::Accepted) };
    let reply = packet(AGENT, VISITED, &reply.emit());
    let error = IcmpError::HostUnreachable.about(&packet(VISITED, AGENT, &asks.emit()), AGENT).unwrap();
    for iface in [1, 2] {
        for bytes in [&reply, &error] {
            let effects = heard(&mut agent, now, iface, MOBILE, bytes.clone());
            assert!(!moved(&effects) && code_sent(&effects).is_none(), "interface {iface}: {effects:?}");
        }
    }
    assert!(moved(&heard(&mut agent, now, 3, MOBILE, reply)));
}

/// Each home agent with visitors needs a packet class, and there are fewer classes than requests that may wait. A
/// request whose home agent cannot get a class must be denied before it is relayed, not after its home agent has
/// accepted it.
#[test]
fn what_a_home_agent_accepts_there_is_room_for() {
    let mut agent = foreign_agent("pending = 256").unwrap();
    start(&mut agent);
    let now = Instant::from_millis(1000);
    let ask = |number: u8| Request {
        home: Ipv4Addr::new(10, 7, 0, number),
        home_agent: Ipv4Addr::new(10, 8, 0, number),
        ..request(now, HOME)
    };
    let mac = |number| Mac([2, 0, 0, 0, 1, number]);
    let mut relayed = Vec::new();
    for number in 1..=200 {
        let request = ask(number);
        let effects = heard(&mut agent, now, 1, mac(number), packet(request.home, VISITED, &request.emit()));
        match code_sent(&effects) {
            None => relayed.push(number),
            Some(code) => assert_eq!(code, Code::ForeignResources),
        }
    }
    assert!((1..200).contains(&relayed.len()), "{relayed:?}");
    for number in relayed {
        let (request, accepted) = (ask(number), ask(number).reply(Code::Accepted));
        let reply = Reply { lifetime: 300, ..accepted };
        let effects = heard(&mut agent, now, 2, mac(0), packet(request.home_agent, VISITED, &reply.emit()));
        assert!(code_sent(&effects) == Some(Code::Accepted) && moved(&effects), "no visitor: {number}");
    }
}

/// An attacker repeats an old request of a mobile node and is denied. This denial must not suppress the denial of the
/// mobile node's next request, because that denial contains the home agent's time.
#[test]
fn a_repeated_request_does_not_take_the_answer_to_the_next() {
    let mut agent = home_agent("").unwrap();
    start(&mut agent);
    let at = Instant::from_millis;
    let [old, new] = [1000, 2000].map(|ms| packet(VISITED, AGENT, &request(at(ms), HOME).emit()));
    assert!(moved(&heard(&mut agent, at(1000), 2, MOBILE, old.clone())));
    assert!(moved(&heard(&mut agent, at(2000), 2, MOBILE, new)));
    let mut answer = |now, payload| code_sent(&heard(&mut agent, now, 2, MOBILE, payload));
    assert_eq!(answer(at(20_000), old.clone()), Some(Code::IdentificationMismatch));
    assert_eq!(answer(at(20_100), old), None, "once a second");
    let wrong_clock = packet(VISITED, AGENT, &request(at(120_000), HOME).emit());
    assert_eq!(answer(at(20_200), wrong_clock), Some(Code::IdentificationMismatch));
}

/// An agent must not answer its own messages when they are sent back to it.
#[test]
fn nobody_is_made_to_answer_itself() {
    let now = Instant::from_millis(1000);
    let mut agent = foreign_agent("").unwrap();
    start(&mut agent);
    let effects = heard(&mut agent, now, 1, MOBILE, packet(HOME, VISITED, &request(now, HOME).emit()));
    let relayed = effects.iter().find_map(|effect| match effect {
        Effect::Send(None, packet) => Some(packet.bytes.clone()),
        _ => None,
    });
    let (_, udp) = Header::parse(relayed.as_ref().unwrap()).unwrap();
    let back = packet(VISITED, VISITED, &udp[8..]);
    let effects = heard(&mut agent, now, 2, MOBILE, back);
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Send(..))), "{effects:?}");

    let mut home = home_agent("").unwrap();
    start(&mut home);
    let effects = heard(&mut home, now, 2, MOBILE, relayed.unwrap());
    let reply = effects.iter().find_map(|effect| match effect {
        Effect::Send(None, packet) => Some(packet.bytes.clone()),
        _ => None,
    });
    let (_, udp) = Header::parse(reply.as_ref().unwrap()).unwrap();
    let effects = heard(&mut home, now, 2, MOBILE, packet(VISITED, AGENT, &udp[8..]));
    assert!(
        !moved(&effects) && !effects.iter().any(|effect| matches!(effect, Effect::Send(..))),
        "{effects:?}"
    );
}

fn foreign_advertisement() -> Advertisement {
    Advertisement {
        src: VISITED,
        dst: ALL_SYSTEMS,
        registered_only: false,
        lifetime: 3,
        routers: Vec::new(),
        sequence: 0,
        registration_lifetime: 300,
        flags: AgentFlags::FOREIGN,
        care_of: vec![VISITED],
        prefix_lengths: None,
        challenge: None,
    }
}

/// Returns a mobile node that has heard one foreign agent, and the request that the node has sent.
fn asked(now: Instant) -> (MobileNode, Request) {
    let mut node = mobile_node("movement = \"ecs\"").unwrap();
    start(&mut node);
    let said = foreign_advertisement();
    let effects = heard(&mut node, now, 1, Mac([2, 0, 0, 0, 0, 3]), said.emit());
    let request = effects.iter().find_map(|effect| match effect {
        Effect::Send(_, packet) => match Received::parse(&packet.bytes).ok()?.message {
            Registration::Request(request) => Some(request),
            Registration::Reply(_) => None,
        },
        _ => None,
    });
    (node, request.unwrap())
}

#[test]
fn no_bit_of_an_acceptance_can_be_changed_on_the_way() {
    let now = Instant::from_millis(1000);
    let registered = |payload: &[u8]| {
        let (mut node, _) = asked(now);
        let effects = heard(&mut node, now, 1, Mac([2, 0, 0, 0, 0, 3]), packet(VISITED, HOME, payload));
        effects
            .iter()
            .any(|effect| matches!(effect, Effect::Do(Act::Mark(mark)) if mark.name == "registered"))
    };
    let mut reply = asked(now).1.reply(Code::Accepted);
    reply.sign(Between::MobileHome, &association());
    let good = reply.emit();
    assert!(registered(&good));
    for bit in 0..good.len() * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        assert!(!registered(&bad), "bit {bit}");
    }
}

/// Advertisements are not authenticated. So the mobile node must ignore an advertisement with a TTL other than 1, or
/// from a group address, from an address that cannot be a host's, or from the node's home address.
#[test]
fn who_cannot_be_an_agent_is_not_one() {
    let now = Instant::from_millis(1000);
    let (_, request) = asked(now);
    let said = |src: Ipv4Addr, mac: Mac, ttl: u8| {
        let advertisement = Advertisement {
            src,
            dst: ALL_SYSTEMS,
            registered_only: false,
            lifetime: 3,
            routers: Vec::new(),
            sequence: 0,
            registration_lifetime: 300,
            flags: AgentFlags::FOREIGN,
            care_of: vec![request.care_of],
            prefix_lengths: None,
            challenge: None,
        };
        let bytes = advertisement.emit();
        let (header, payload) = Header::parse(&bytes).unwrap();
        let mut node = mobile_node("").unwrap();
        start(&mut node);
        let effects = heard(&mut node, now, 1, mac, Header { ttl, ..header }.emit(payload));
        effects
            .iter()
            .any(|effect| matches!(effect, Effect::Send(_, packet) if Received::parse(&packet.bytes).is_ok()))
    };
    assert!(said(VISITED, MOBILE, 1));
    assert!(!said(VISITED, MOBILE, ipv4::DEFAULT_TTL));
    assert!(!said(VISITED, Mac::BROADCAST, 1));
    assert!(!said(HOME, MOBILE, 1));
    assert!(!said(Ipv4Addr::new(224, 0, 0, 1), MOBILE, 1));
    assert!(!said(Ipv4Addr::UNSPECIFIED, MOBILE, 1));
}

/// A mobile node signs the care-of address of an advertisement in its request. So the mobile node must ignore an
/// advertisement with a care-of address that cannot be a foreign agent's.
#[test]
fn a_care_of_address_that_cannot_be_one_is_not_asked_for() {
    let now = Instant::from_millis(1000);
    for care_of in
        ["255.255.255.255", "10.1.255.255", "240.0.0.1", "224.0.0.1", "127.0.0.1", "0.0.0.0", "10.1.0.7"]
    {
        let mut node = mobile_node("").unwrap();
        start(&mut node);
        let said = Advertisement { care_of: vec![care_of.parse().unwrap()], ..foreign_advertisement() };
        let effects = heard(&mut node, now, 1, ATTACKER, said.emit());
        let sends = |effect: &Effect| matches!(effect, Effect::Send(..));
        assert!(!effects.iter().any(sends), "{care_of}: {effects:?}");
        let refused =
            node.status().get("refused").and_then(|refused| refused.get("implausible_agent")?.as_int());
        assert_eq!(refused, Some(1), "{care_of}");
        let effects = heard(&mut node, now, 1, ATTACKER, foreign_advertisement().emit());
        assert!(effects.iter().any(sends), "{effects:?}");
    }
}

/// A tunnel to an address of the home agent's host would end at this host. A tunnel to a broadcast address would end at
/// all hosts of a link. So requests with such care-of addresses must be denied.
#[test]
fn a_care_of_address_that_is_no_other_host_is_denied() {
    let config: HomeAgentConfig = table(HOME_AGENT, "").try_into().unwrap();
    let host = ["10.1.0.2/16", "10.9.0.1/24", "10.8.0.1/32"].map(|own| own.parse().unwrap()).to_vec();
    let names = ["home", "up"].map(str::to_owned);
    let mut agent =
        HomeAgent::new(HomeAgentConfig { host, ..config }, Interfaces(&names), Rng::new(1)).unwrap();
    start(&mut agent);
    let none =
        ["10.9.0.255", "10.1.255.255", "10.9.0.1", "10.8.0.1", "10.1.0.2", "240.0.0.1", "255.255.255.255"];
    for (second, care_of) in (1..).zip(none) {
        let now = Instant::from_millis(second * 1000);
        let mut asked = Request { care_of: care_of.parse().unwrap(), ..request(now, HOME) };
        asked.extensions.clear();
        asked.sign(Between::MobileHome, &association());
        let effects = heard(&mut agent, now, 2, MOBILE, packet(VISITED, AGENT, &asked.emit()));
        assert_eq!(code_sent(&effects), Some(Code::HomeBadRequest), "{care_of}");
        assert!(!moved(&effects), "{care_of}");
    }
    let now = Instant::from_millis(20_000);
    assert!(moved(&heard(&mut agent, now, 2, MOBILE, packet(VISITED, AGENT, &request(now, HOME).emit()))));
}

// --- the visited link --------------------------------------------------------------------------------------------------

const UP: u16 = 2;
const ATTACKER: Mac = Mac([2, 0, 0, 0, 0, 0x66]);

fn reply_to(request: &Request, src: Ipv4Addr) -> Vec<u8> {
    let mut reply = request.reply(Code::Accepted);
    (reply.lifetime, reply.home_agent) = (request.lifetime, request.home_agent);
    reply.sign(Between::MobileHome, &association());
    packet(src, VISITED, &reply.emit())
}

/// Returns the link addresses to which the host routes in these effects forward.
fn delivers_to(effects: &[Effect]) -> Vec<Mac> {
    let to = |effect: &Effect| match effect {
        Effect::Do(Act::Route(key, Some(route))) if key.dst.len() == 32 => match route.action {
            node::Action::Forward(node::Hop { to: node::NextHop::Mac(mac), .. }) => Some(mac),
            _ => None,
        },
        _ => None,
    };
    effects.iter().filter_map(to).collect()
}

/// A host of the visited link hears all requests on this link, and can forge replies and ICMP errors of the home agent.
/// A foreign agent must drop such replies and errors if they arrive from the visited link.
#[test]
fn a_reply_or_an_error_from_the_visited_link_is_none() {
    let now = Instant::from_millis(1000);
    let asked = request(now, HOME);
    let ask = || {
        let mut agent = foreign_agent("").unwrap();
        start(&mut agent);
        heard(&mut agent, now, 1, MOBILE, packet(HOME, VISITED, &asked.emit()));
        agent
    };
    let mut agent = ask();
    for src in [AGENT, Ipv4Addr::new(10, 3, 0, 99)] {
        let effects = heard(&mut agent, now, 1, ATTACKER, reply_to(&asked, src));
        assert!(!moved(&effects) && code_sent(&effects).is_none(), "{effects:?}");
    }
    let [own, to] = sockets(VISITED, AGENT);
    let relayed = datagram(own, to, 64, &asked.emit());
    let error = wire::IcmpError::HostUnreachable.about(&relayed, Ipv4Addr::new(10, 3, 0, 99)).unwrap();
    let effects = heard(&mut agent, now, 1, ATTACKER, error.clone());
    assert_eq!(code_sent(&effects), None, "the request still waits");
    // The reply and the ICMP error are accepted if they arrive by the interface to the home agent.
    let effects = heard(&mut agent, now, UP, ATTACKER, reply_to(&asked, AGENT));
    assert_eq!(delivers_to(&effects), [MOBILE, MOBILE], "from tunnels, and from this host itself");
    assert_eq!(code_sent(&heard(&mut ask(), now, UP, ATTACKER, error)), Some(Code::HomeHostUnreachable));
}

/// A request that is repeated from another link address must not move the visit to that address, neither while the
/// request waits nor after its sender has become a visitor.
#[test]
fn a_repeated_request_moves_no_visit_to_another_link_address() {
    let now = Instant::from_millis(1000);
    let mut agent = foreign_agent("").unwrap();
    start(&mut agent);
    let asked = request(now, HOME);
    let bytes = packet(HOME, VISITED, &asked.emit());
    let relays = |effects: &[Effect]| effects.iter().any(|effect| matches!(effect, Effect::Send(None, _)));
    assert!(relays(&heard(&mut agent, now, 1, MOBILE, bytes.clone())));
    assert!(!relays(&heard(&mut agent, now, 1, ATTACKER, bytes.clone())), "it waits already");
    assert_eq!(delivers_to(&heard(&mut agent, now, UP, ATTACKER, reply_to(&asked, AGENT))), [MOBILE; 2]);
    assert!(!relays(&heard(&mut agent, now, 1, ATTACKER, bytes)), "it was accepted already");
    // The mobile node has another link address now. Its next request moves the visit.
    let later = request(Instant::from_millis(3000), HOME);
    let other = Mac([2, 0, 0, 0, 0, 0x17]);
    heard(&mut agent, now, 1, other, packet(HOME, VISITED, &later.emit()));
    assert_eq!(delivers_to(&heard(&mut agent, now, UP, ATTACKER, reply_to(&later, AGENT))), [other; 2]);
}

/// An attacker on the link registers a visitor's home address with a home agent of the attacker. The attacker must get
/// the packets from the tunnel of that home agent only, and no packets from the tunnel of the visitor's home agent.
#[test]
fn another_home_agent_gives_no_right_to_a_visitors_packets() {
    let now = Instant::from_millis(1000);
    let mut agent = foreign_agent("").unwrap();
    start(&mut agent);
    let asked = request(now, HOME);
    heard(&mut agent, now, 1, MOBILE, packet(HOME, VISITED, &asked.emit()));
    let class_of = |effects: &[Effect]| {
        effects.iter().find_map(|effect| match effect {
            Effect::Do(Act::Route(key, Some(node::Route { action: node::Action::Open(class, _), .. }))) => {
                Some((key.src, *class))
            }
            _ => None,
        })
    };
    let (from, honest) = class_of(&heard(&mut agent, now, UP, ATTACKER, reply_to(&asked, AGENT))).unwrap();
    assert_eq!(
        from,
        wire::Prefix::host(AGENT),
        "only what comes from the home agent is opened for its visitors"
    );
    let confederate = Ipv4Addr::new(198, 51, 100, 66);
    let forged = Request { home_agent: confederate, identification: asked.identification + 1, ..asked };
    heard(&mut agent, now, 1, ATTACKER, packet(HOME, VISITED, &forged.emit()));
    let effects = heard(&mut agent, now, UP, ATTACKER, reply_to(&forged, confederate));
    let (from, other) = class_of(&effects).unwrap();
    assert!(from == wire::Prefix::host(confederate) && other != honest);
    assert_eq!(
        delivers_to(&effects),
        [ATTACKER],
        "and this host's own packets are still the first visitor's"
    );
}

/// An accepted registration must drop older requests of the same mobile node, so that none of them is denied later.
#[test]
fn an_accepted_registration_ends_the_wait_of_older_requests() {
    let now = Instant::from_millis(1000);
    let mut agent = foreign_agent("").unwrap();
    start(&mut agent);
    // Requests that are whole seconds apart have the same low half, so the second would replace the first.
    let asked = [1000, 1500].map(|at| request(Instant::from_millis(at), HOME));
    for one in &asked {
        heard(&mut agent, now, 1, MOBILE, packet(HOME, VISITED, &one.emit()));
    }
    heard(&mut agent, now, UP, ATTACKER, reply_to(&asked[1], AGENT));
    assert_eq!(agent.status().get("pending"), Some(&node::Value::Int(0)));
    let late = give(&mut agent, Instant::from_millis(9000), Input::Timeout);
    assert_eq!(code_sent(&late), None, "{late:?}");
}

// --- crowds ------------------------------------------------------------------------------------------------------------

/// Of 60 solicitations at the same time, 20 must get separate answers. One advertisement must answer the other 40.
#[test]
fn a_crowd_that_solicits_is_answered() {
    let now = Instant::from_millis(1000);
    let mut agent = foreign_agent("").unwrap();
    start(&mut agent);
    let mut said = |number: u8| {
        let src = Ipv4Addr::new(10, 1, 0, number);
        let asks = mobile_ip::message::Solicitation { src, dst: mobile_ip::message::ALL_ROUTERS };
        let effects = heard(&mut agent, now, 1, Mac([2, 0, 0, 0, 2, number]), asks.emit());
        effects.iter().filter(|effect| matches!(effect, Effect::Send(..))).count()
    };
    assert_eq!((10..70).map(&mut said).sum::<usize>(), 20);
    let due = agent.deadline().unwrap();
    assert!(due <= Instant::from_millis(1020), "{due:?}");
    let effects = give(&mut agent, due, Input::Timeout);
    let to_all = |effect: &&Effect| matches!(effect, Effect::Send(_, packet) if ipv4::addresses(&packet.bytes).unwrap().1 == ALL_SYSTEMS);
    assert_eq!(effects.iter().filter(to_all).count(), 1);
}

/// Ten mobile nodes with wrong clocks register through one foreign agent. Each must be denied with a reply, because
/// each needs the home agent's time. Forged requests through the same agent must not suppress these replies.
#[test]
fn denials_are_limited_for_each_mobile_node() {
    let nodes: Vec<String> = (7..17)
        .map(|last| format!("{{ address = \"10.1.0.{last}\", spi = 256, key = \"{KEY}\" }}"))
        .collect();
    let mut agent = home_agent(&format!("mobile_nodes = [{}]", nodes.join(", "))).unwrap();
    start(&mut agent);
    let now = Instant::from_millis(60_000);
    let mut forged = request(now, HOME);
    forged.extensions.clear();
    forged.sign(Between::MobileHome, &Association { key: Secret::new([9; 16]), ..association() });
    for _ in 0..5 {
        heard(&mut agent, now, UP, MOBILE, packet(VISITED, AGENT, &forged.emit()));
    }
    for last in 7..17 {
        let late = request(Instant::from_millis(1000), Ipv4Addr::new(10, 1, 0, last));
        let effects = heard(&mut agent, now, UP, MOBILE, packet(VISITED, AGENT, &late.emit()));
        assert_eq!(code_sent(&effects), Some(Code::IdentificationMismatch), "10.1.0.{last}");
        let again = heard(&mut agent, now, UP, MOBILE, packet(VISITED, AGENT, &late.emit()));
        assert_eq!(code_sent(&again), None, "once a second");
    }
}

// --- the mobile node ---------------------------------------------------------------------------------------------------

/// Repeated requests may be whole seconds apart. The low halves of their Identifications must differ, because mobile
/// nodes and foreign agents match a reply with its request by the low half only.
#[test]
fn no_two_requests_of_a_row_share_their_low_half() {
    for start_at in 0..200 {
        let (mut node, first) = asked(Instant::from_millis(1000 + start_at));
        let mut seen = vec![first.identification as u32];
        let mut now;
        while seen.len() < 8 {
            now = node.deadline().unwrap();
            for effect in give(&mut node, now, Input::Timeout) {
                if let Effect::Send(_, packet) = effect
                    && let Ok(Received { message: Registration::Request(request), .. }) =
                        Received::parse(&packet.bytes)
                {
                    assert!(!seen.contains(&(request.identification as u32)), "{seen:x?}");
                    seen.push(request.identification as u32);
                }
            }
            keep_heard(&mut node, now);
        }
    }
}

fn keep_heard(node: &mut MobileNode, now: Instant) {
    heard(node, now, 1, Mac([2, 0, 0, 0, 0, 3]), foreign_advertisement().emit());
}
