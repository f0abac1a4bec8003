//! What agents keep to themselves, grant and remember.

use super::*;
use node::Value;

const ROUTER: Mac = Mac([2, 0, 0, 0, 0, 0x11]);

/// The association with a host, as the configuration of an agent has it.
fn associated(key: &str, host: Ipv4Addr) -> String {
    format!("{key} = [{{ address = \"{host}\", spi = 256, key = \"{KEY}\" }}]")
}

/// The registration messages that were sent.
fn sent(effects: &[Effect]) -> Vec<Registration> {
    let message = |effect: &Effect| match effect {
        Effect::Send(_, packet) => Received::parse(&packet.bytes).ok().map(|received| received.message),
        _ => None,
    };
    effects.iter().filter_map(message).collect()
}

/// A foreign agent that has relayed a request.
fn relayed(changes: &str, asked: &Request) -> (ForeignAgent, Vec<Registration>) {
    let mut agent = foreign_agent(changes).unwrap();
    start(&mut agent);
    let effects =
        heard(&mut agent, Instant::from_millis(1000), 1, MOBILE, packet(HOME, VISITED, &asked.emit()));
    let messages = sent(&effects);
    (agent, messages)
}

/// A home agent grants at most the lifetime that was asked for. A reply with more does not lengthen the visit.
#[test]
fn a_visit_lasts_no_longer_than_was_asked_for() {
    let mut asked = request(Instant::from_millis(1000), HOME);
    asked.extensions.clear();
    asked.lifetime = 60;
    asked.sign(Between::MobileHome, &association());
    let (mut agent, _) = relayed("", &asked);
    let mut reply = asked.reply(Code::Accepted);
    reply.lifetime = 600;
    reply.sign(Between::MobileHome, &association());
    heard(&mut agent, Instant::from_millis(1000), UP, ROUTER, packet(AGENT, VISITED, &reply.emit()));
    let lifetime = |agent: &ForeignAgent| {
        let visitors = agent.status().get("visitors").cloned();
        visitors.as_ref().and_then(|all| all.get(&HOME.to_string())?.get("lifetime_s")?.as_int())
    };
    assert_eq!(lifetime(&agent), Some(60));
    give(&mut agent, Instant::from_millis(61_000), Input::Timeout);
    assert_eq!(lifetime(&agent), None, "the visit has ended");
}

/// A request that waits is deleted when the lifetime is over that it asks for (section 3.7.2.2): an acceptance that comes later
/// would begin a visit that has ended for the mobile node. One that ends a registration waits for 7 s.
#[test]
fn a_request_waits_no_longer_than_the_lifetime_that_it_asks_for() {
    for (lifetime, until) in [(3, 3), (0, 7), (300, 7)] {
        let mut asked = request(Instant::from_millis(1000), HOME);
        asked.extensions.clear();
        asked.lifetime = lifetime;
        asked.sign(Between::MobileHome, &association());
        let (mut agent, _) = relayed("", &asked);
        let pending = |agent: &ForeignAgent| agent.status().get("pending").and_then(Value::as_int);
        let ends = 1000 + 1000 * until;
        assert_eq!(sent(&give(&mut agent, Instant::from_millis(ends - 1), Input::Timeout)), []);
        assert_eq!(pending(&agent), Some(1), "{lifetime} s");
        assert_eq!(agent.deadline().map(|at| at <= Instant::from_millis(ends)), Some(true));
        let effects = give(&mut agent, Instant::from_millis(ends), Input::Timeout);
        assert_eq!(code_sent(&effects), Some(Code::RegistrationTimeout), "{lifetime} s");
        assert_eq!(pending(&agent), Some(0), "{lifetime} s");
        let reply = packet(AGENT, VISITED, &asked.reply(Code::Accepted).emit());
        assert_eq!(sent(&heard(&mut agent, Instant::from_millis(ends), UP, ROUTER, reply)), []);
    }
}

/// What the mobile node has signed for the foreign agent is not the home agent's to read (RFC 5944, section 3.7.2.2).
#[test]
fn what_is_signed_for_the_foreign_agent_does_not_reach_the_home_agent() {
    let mut asked = request(Instant::from_millis(1000), HOME);
    asked.sign(Between::MobileForeign, &association());
    let (_, messages) = relayed(&associated("mobile_nodes", HOME), &asked);
    let [Registration::Request(to_home)] = messages.as_slice() else { panic!("{messages:?}") };
    assert!(to_home.verify(Between::MobileHome, &association()));
    assert_eq!(to_home.authentication(Between::MobileForeign), None);
}

/// Nor is what the home agent has signed for the foreign agent the mobile node's (section 3.7.3.2).
#[test]
fn what_is_signed_for_the_foreign_agent_does_not_reach_the_mobile_node() {
    let asked = request(Instant::from_millis(1000), HOME);
    let (mut agent, _) = relayed(&associated("home_agents", AGENT), &asked);
    let mut reply = asked.reply(Code::Accepted);
    reply.sign(Between::MobileHome, &association());
    reply.sign(Between::ForeignHome, &association());
    let bytes = packet(AGENT, VISITED, &reply.emit());
    let messages = sent(&heard(&mut agent, Instant::from_millis(1000), UP, ROUTER, bytes));
    let [Registration::Reply(to_node)] = messages.as_slice() else { panic!("{messages:?}") };
    assert!(to_node.code.is_accepted() && to_node.verify(Between::MobileHome, &association()));
    assert_eq!(to_node.authentication(Between::ForeignHome), None);
}

/// Replies go to the link address that a request came from. A multicast address is refused: it belongs to no single host.
#[test]
fn a_request_from_the_link_address_of_a_group_is_not_relayed() {
    let now = Instant::from_millis(1000);
    let bytes = packet(HOME, VISITED, &request(now, HOME).emit());
    for mac in [Mac::BROADCAST, Mac([1, 0, 0x5e, 0, 0, 1])] {
        let mut agent = foreign_agent("").unwrap();
        start(&mut agent);
        assert_eq!(sent(&heard(&mut agent, now, 1, mac, bytes.clone())), [], "{mac}");
        let refused = agent.status().get("refused").cloned().unwrap();
        assert_eq!(refused.get("implausible_source"), Some(&Value::Int(1)), "{mac}");
    }
}

/// A home agent starts again, and its clock is an hour behind what it was. Its mobile nodes, whose clocks are right, register as
/// before: it goes on from the latest Identification that it has stored.
#[test]
fn a_home_agent_whose_clock_was_set_back_while_it_was_down_registers_as_before() {
    let at = Instant::from_millis;
    let mut agent = home_agent("").unwrap();
    start(&mut agent);
    let bytes = |now| packet(VISITED, AGENT, &request(now, HOME).emit());
    let effects = heard(&mut agent, at(100_000), UP, ROUTER, bytes(at(100_000)));
    let stored = effects.iter().find_map(|effect| match effect {
        Effect::Do(Act::Store(key, Some(record))) => Some((key.clone(), record.clone())),
        _ => None,
    });
    let wall = WallTime(WALL.0 - 3_600_000_000_000);
    let boot = Boot { stored: vec![stored.unwrap()], ..Boot::new(wall) };
    let mut agent = home_agent("").unwrap();
    give(&mut agent, at(101_000), Input::Start(&boot));
    let effects = heard(&mut agent, at(102_000), UP, ROUTER, bytes(at(102_000)));
    assert_eq!(code_sent(&effects), Some(Code::Accepted), "{effects:?}");
}
