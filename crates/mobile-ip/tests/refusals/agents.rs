//! Tests of agents: what they remove from relayed messages, which lifetimes they grant, and what they remember.

use super::*;
use mobile_ip::message::{ALL_ROUTERS, Acknowledge, Binding, BindingRequest, Numbers, Solicitation, Status};
use node::Value;

const ROUTER: Mac = Mac([2, 0, 0, 0, 0, 0x11]);

/// Returns the configuration of an association with `host`, under this key of an agent's configuration.
fn associated(key: &str, host: Ipv4Addr) -> String {
    format!("{key} = [{{ address = \"{host}\", spi = 256, key = \"{KEY}\" }}]")
}

/// Returns the registration messages that these effects send.
fn sent(effects: &[Effect]) -> Vec<Registration> {
    let message = |effect: &Effect| match effect {
        Effect::Send(_, packet) => Received::parse(&packet.bytes).ok().map(|received| received.message),
        _ => None,
    };
    effects.iter().filter_map(message).collect()
}

/// Returns a foreign agent that has received a request, and the messages that the agent then sent.
fn relayed(changes: &str, asked: &Request) -> (ForeignAgent, Vec<Registration>) {
    let mut agent = foreign_agent(changes).unwrap();
    start(&mut agent);
    let effects =
        heard(&mut agent, Instant::from_millis(1000), 1, MOBILE, packet(HOME, VISITED, &asked.emit()));
    let messages = sent(&effects);
    (agent, messages)
}

/// A home agent grants at most the requested lifetime. A reply with a longer lifetime must not extend the visit.
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
    let effects =
        heard(&mut agent, Instant::from_millis(1000), UP, ROUTER, packet(AGENT, VISITED, &reply.emit()));
    let until = |effect: &Effect| match effect {
        Effect::Do(Act::Route(key, Some(node::Route { lifetime: node::Lifetime::Until(end), .. }))) => {
            Some((*key, *end))
        }
        _ => None,
    };
    let (key, end) = effects.iter().find_map(until).unwrap();
    assert_eq!(end, Instant::from_millis(61_000));
    let lifetime = |agent: &ForeignAgent| {
        let visits = rows(&agent.status(), "visitors", &HOME.to_string());
        visits.first().and_then(|visit| visit.get("lifetime_s")?.as_int())
    };
    assert_eq!(lifetime(&agent), Some(60));
    give(&mut agent, Instant::from_millis(60_999), Input::Idle(key, Instant::ZERO));
    assert_eq!(lifetime(&agent), Some(60), "the route of an earlier registration");
    give(&mut agent, end, Input::Idle(key, Instant::ZERO));
    assert_eq!(lifetime(&agent), None, "the visit has ended");
}

/// A waiting request must be dropped when its requested lifetime has ended (RFC 5944, section 3.7.2.2). A later
/// acceptance would begin a visit that has already ended for the mobile node. A deregistration waits for 7 s.
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

/// With nonces, the Identification of a later request can be smaller than that of the visit. So the foreign agent does not
/// compare them. Of the visit's earlier requests, none moves the visit to another link address.
#[test]
fn a_visit_moves_by_a_later_request_also_with_nonces() {
    let now = Instant::from_millis(1000);
    let mut agent = foreign_agent("").unwrap();
    start(&mut agent);
    let with_nonce = |nonce: u64, low: u64| {
        let mut asked = request(now, HOME);
        (asked.identification, asked.extensions) = (nonce << 32 | low, Vec::new());
        asked.sign(Between::MobileHome, &association());
        asked
    };
    let relays = |effects: &[Effect]| effects.iter().any(|effect| matches!(effect, Effect::Send(None, _)));
    let at = |ms| Instant::from_millis(ms);
    let visit = [with_nonce(0xf000_0000, 1), with_nonce(0x9000_0000, 2)];
    for (ms, asked) in [1000, 2000].into_iter().zip(&visit) {
        heard(&mut agent, at(ms), 1, MOBILE, packet(HOME, VISITED, &asked.emit()));
        let effects = heard(&mut agent, at(ms + 10), UP, ATTACKER, reply_to(asked, AGENT));
        assert_eq!(delivers_to(&effects), [MOBILE; 2]);
    }
    for (ms, asked) in [3000, 4000].into_iter().zip(&visit) {
        let bytes = packet(HOME, VISITED, &asked.emit());
        assert!(!relays(&heard(&mut agent, at(ms), 1, ATTACKER, bytes)), "a request of the visit");
    }
    let (other, later) = (Mac([2, 0, 0, 0, 0, 0x17]), with_nonce(0x1000_0000, 3));
    let bytes = packet(HOME, VISITED, &later.emit());
    assert!(relays(&heard(&mut agent, at(5000), 1, other, bytes.clone())));
    assert_eq!(delivers_to(&heard(&mut agent, at(5010), UP, ATTACKER, reply_to(&later, AGENT))), [other; 2]);
    assert!(!relays(&heard(&mut agent, at(6000), 1, MOBILE, bytes)), "also not back");
}

/// The mobile node has sent requests from two link addresses, and the replies arrive out of order. The visit must stay
/// at the link address of the later request.
#[test]
fn an_answer_to_an_older_request_moves_no_visit_back() {
    let now = Instant::from_millis(2000);
    let mut agent = foreign_agent("").unwrap();
    start(&mut agent);
    let [first, second] = [1000, 1500].map(|ms| request(Instant::from_millis(ms), HOME));
    let other = Mac([2, 0, 0, 0, 0, 0x17]);
    for (mac, asked) in [(MOBILE, &first), (other, &second)] {
        heard(&mut agent, now, 1, mac, packet(HOME, VISITED, &asked.emit()));
    }
    let effects = heard(&mut agent, now, UP, ROUTER, reply_to(&second, AGENT));
    assert_eq!(delivers_to(&effects), [other; 2]);
    let effects = heard(&mut agent, now, UP, ROUTER, reply_to(&first, AGENT));
    assert!(!moved(&effects) && code_sent(&effects).is_none(), "{effects:?}");
}

/// A host of the visited link is not on the path of a reverse tunnel, and could forge an error about it. An error about a
/// tunnel that this agent does not have is dropped too.
#[test]
fn an_error_about_a_reverse_tunnel_counts_only_from_its_path() {
    let now = Instant::from_millis(1000);
    let mut agent = foreign_agent("reverse_tunnel = 'offered'").unwrap();
    start(&mut agent);
    let asked = Request { flags: RequestFlags::REVERSE, ..request(now, HOME) };
    heard(&mut agent, now, 1, MOBILE, packet(HOME, VISITED, &asked.emit()));
    assert_eq!(code_sent(&heard(&mut agent, now, UP, ROUTER, reply_to(&asked, AGENT))), Some(Code::Accepted));
    let about = |exit| {
        let [from, to] = sockets(HOME, Ipv4Addr::new(10, 2, 0, 2));
        let outer =
            wire::ipip::encapsulate(&wire::udp::packet(from, to, &[0; 1400]), VISITED, exit, 1).unwrap();
        IcmpError::FragmentationNeeded { mtu: 1300 }.about(&outer, Ipv4Addr::new(10, 9, 0, 1)).unwrap()
    };
    let counted = |agent: &ForeignAgent, reason: &str| {
        agent.status().get("refused").and_then(|all| all.get(reason)?.as_int())
    };
    for (iface, mac, exit) in [(1, ATTACKER, AGENT), (UP, ROUTER, Ipv4Addr::new(10, 8, 0, 1))] {
        let effects = heard(&mut agent, now, iface, mac, about(exit));
        assert!(matches!(effects[..], [Effect::Discard(..)]), "{effects:?}");
    }
    assert_eq!(counted(&agent, "not_from_home_agent"), Some(1));
    assert_eq!(counted(&agent, "not_about_a_tunnel"), Some(1));
    let effects = heard(&mut agent, now, UP, ROUTER, about(AGENT));
    let reported = effects.iter().find_map(|effect| match effect {
        Effect::Do(Act::Route(_, Some(node::Route { action: node::Action::Tunnel(encap), .. }))) => {
            Some((encap.reported, encap.mtu))
        }
        _ => None,
    });
    assert_eq!(reported, Some((1280, 1480)));
    let told = effects
        .iter()
        .any(|effect| matches!(effect, Effect::Send(Some(Iface(1)), packet) if packet.link.dst == MOBILE));
    assert!(told, "the visitor is notified: {effects:?}");
}

/// The mobile node's authentication for the foreign agent must not be relayed to the home agent (RFC 5944, section
/// 3.7.2.2).
#[test]
fn what_is_signed_for_the_foreign_agent_does_not_reach_the_home_agent() {
    let mut asked = request(Instant::from_millis(1000), HOME);
    asked.sign(Between::MobileForeign, &association());
    let (_, messages) = relayed(&associated("mobile_nodes", HOME), &asked);
    let [Registration::Request(to_home)] = messages.as_slice() else { panic!("{messages:?}") };
    assert!(to_home.verify(Between::MobileHome, &association()));
    assert_eq!(to_home.authentication(Between::MobileForeign), None);
}

/// The home agent's authentication for the foreign agent must not be relayed to the mobile node (RFC 5944, section
/// 3.7.3.2).
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

/// A foreign agent with an association must authenticate the requests that it relays, but neither a deregistration nor a
/// request with a care-of address that it does not advertise (RFC 5944, section 3.5.4). The reply to such a request need not
/// be authenticated; a wrong authentication is refused. A home agent accepts such requests.
#[test]
fn a_foreign_agent_authenticates_what_concerns_its_own_care_of_address() {
    let now = Instant::from_millis(1000);
    let own = Ipv4Addr::new(10, 3, 0, 77);
    let asked = |change: &dyn Fn(&mut Request)| {
        let mut asked = request(now, HOME);
        asked.extensions.clear();
        change(&mut asked);
        asked.sign(Between::MobileHome, &association());
        asked
    };
    let co_located = |asked: &mut Request| (asked.flags, asked.care_of) = (RequestFlags::DECAPSULATION, own);
    let ends = |asked: &mut Request| asked.lifetime = 0;
    for (asked, src, is_required) in
        [(asked(&|_| {}), HOME, true), (asked(&ends), HOME, false), (asked(&co_located), own, false)]
    {
        for signed in [None, Some(association()), Some(Association { spi: 999, ..association() })] {
            let mut agent = foreign_agent(&associated("home_agents", AGENT)).unwrap();
            start(&mut agent);
            let effects = heard(&mut agent, now, 1, MOBILE, packet(src, VISITED, &asked.emit()));
            let messages = sent(&effects);
            let [Registration::Request(to_home)] = messages.as_slice() else { panic!("{messages:?}") };
            assert_eq!(to_home.verify(Between::ForeignHome, &association()), is_required);
            let mut home = home_agent(&associated("foreign_agents", VISITED)).unwrap();
            start(&mut home);
            let effects = heard(&mut home, now, 2, MOBILE, packet(VISITED, AGENT, &to_home.emit()));
            assert_eq!(code_sent(&effects), Some(Code::Accepted));
            let mut reply = asked.reply(Code::Accepted);
            reply.sign(Between::MobileHome, &association());
            if let Some(signed) = &signed {
                reply.sign(Between::ForeignHome, signed);
            }
            let is_refused = signed.as_ref().map_or(is_required, |signed| *signed != association());
            let code = if is_refused { Code::HomeFailed } else { Code::Accepted };
            let effects = heard(&mut agent, now, UP, ROUTER, packet(AGENT, VISITED, &reply.emit()));
            assert_eq!(code_sent(&effects), Some(code), "{asked:?} {signed:?}");
        }
    }
}

/// A foreign agent sends replies to the home address, also if the request came from a co-located care-of address (RFC 5944,
/// sections 3.7.2.3 and 3.7.3.2).
#[test]
fn a_reply_to_a_co_located_mobile_node_goes_to_its_home_address() {
    let now = Instant::from_millis(1000);
    let own = Ipv4Addr::new(10, 3, 0, 77);
    let destination = |effects: &[Effect]| match effects {
        [Effect::Send(Some(Iface(1)), packet), ..] => ipv4::addresses(&packet.bytes).map(|(_, to)| to),
        other => panic!("{other:?}"),
    };
    for lifetime in [300, 4000] {
        let mut agent = foreign_agent("").unwrap();
        start(&mut agent);
        let mut asked = request(now, HOME);
        (asked.flags, asked.care_of, asked.lifetime) = (RequestFlags::DECAPSULATION, own, lifetime);
        let effects = heard(&mut agent, now, 1, MOBILE, packet(own, VISITED, &asked.emit()));
        // The longer lifetime is denied at once.
        let effects = if lifetime == 300 {
            heard(&mut agent, now, UP, ROUTER, reply_to(&asked, AGENT))
        } else {
            effects
        };
        assert_eq!(destination(&effects), HOME.into(), "{lifetime} s");
        assert_eq!(delivers_to(&effects), []);
    }
}

/// A reply is sent to the link address of its request. So a request from a group link address must be dropped.
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

/// A home agent restarts, and its clock is one hour behind. A mobile node with a correct clock must be able to
/// register: the home agent's clock for Identifications continues from the latest Identification on record.
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

/// The clock of a home agent was fast, and a correspondent has refused an Update because of its timestamp. The clock is set back:
/// the next Update must have the new time, not one after the refused timestamp.
#[test]
fn a_home_agent_whose_clock_was_set_back_informs_a_correspondent_that_has_refused() {
    const CORRESPONDENT: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 2);
    const AN_HOUR_LATER: WallTime = WallTime(WALL.0 + 3_600_000_000_000);
    let (at, numbers) = (Instant::from_millis, Numbers::default());
    let mut agent = home_agent(&associated("correspondents", CORRESPONDENT)).unwrap();
    start(&mut agent);
    heard(&mut agent, at(1000), UP, ROUTER, packet(VISITED, AGENT, &request(at(1000), HOME).emit()));
    let told = |agent: &mut HomeAgent, now: Instant, message: Binding| {
        let effects = heard(agent, now, UP, ROUTER, packet(CORRESPONDENT, AGENT, &message.emit(&numbers)));
        effects.iter().find_map(|effect| {
            let Effect::Send(None, sent) = effect else { return None };
            match Binding::parse(ipv4::payload(&sent.bytes).get(8..)?, &numbers)? {
                Ok(Binding::Update(update)) => update.identification,
                _ => None,
            }
        })
    };
    let asks = BindingRequest { home: HOME, identification: 1, authentication: None };
    let seconds = |id: Option<u64>| (id.unwrap() >> 32) - (WALL.to_ntp() >> 32);
    give(&mut agent, at(2000), Input::Wall(AN_HOUR_LATER));
    let fast = told(&mut agent, at(2000), Binding::Request(asks.clone()));
    assert_eq!(seconds(fast), 3602);
    give(&mut agent, at(3000), Input::Wall(WALL));
    let status = Status::IDENTIFICATION;
    let mut refusal = Acknowledge { status, home: HOME, identification: fast, authentication: None };
    refusal.sign(numbers.route_authentication, &association(), &numbers);
    assert_eq!(told(&mut agent, at(4000), Binding::Acknowledge(refusal)), None);
    assert_eq!(seconds(told(&mut agent, at(5000), Binding::Request(asks))), 5);
}

/// Gives a home agent a request that a foreign agent relayed, and returns the reply.
fn answered(agent: &mut HomeAgent, now: Instant, asked: &Request) -> Option<Reply> {
    let effects = heard(agent, now, UP, ROUTER, packet(VISITED, AGENT, &asked.emit()));
    reply_in(&effects)
}

/// Returns a request with these changes and a correct Mobile-Home Authentication.
fn changed(now: Instant, change: impl Fn(&mut Request)) -> Request {
    let mut asked = request(now, HOME);
    asked.extensions.clear();
    change(&mut asked);
    asked.sign(Between::MobileHome, &association());
    asked
}

/// Returns the care-of address to which a home agent has bound the mobile node; `None` if there is no binding.
fn bound_to(agent: &HomeAgent) -> Option<String> {
    let bindings = agent.status().get("bindings").cloned()?;
    let Some(Value::List(all)) = bindings.get(&HOME.to_string()) else { return None };
    assert_eq!(all.len(), 1, "{all:?}");
    all[0].get("care_of")?.as_text().map(str::to_owned)
}

/// A foreign agent authenticates a request, but the home agent has no association with this foreign agent. The request
/// must be dropped without an answer (RFC 5944, section 3.8.2.1, item d), even if the mobile node's authentication is
/// correct.
#[test]
fn what_an_unknown_foreign_agent_signs_is_not_answered() {
    let now = Instant::from_millis(1000);
    let mut agent = home_agent("").unwrap();
    start(&mut agent);
    let mut asked = request(now, HOME);
    asked.sign(Between::ForeignHome, &association());
    assert_eq!(answered(&mut agent, now, &asked), None);
    assert_eq!(bound_to(&agent), None);
    let refused = agent.status().get("refused").cloned().unwrap();
    assert_eq!(refused.get("unknown_agent_association"), Some(&Value::Int(1)));
}

/// A request with lifetime 0 must end the binding to its care-of address only. If the care-of address is the home
/// address, the request must end any binding (RFC 5944, section 3.8.2.2).
#[test]
fn the_end_of_one_binding_is_not_that_of_another() {
    let at = Instant::from_millis;
    let mut agent = home_agent("").unwrap();
    start(&mut agent);
    let other = Ipv4Addr::new(10, 4, 0, 1);
    answered(&mut agent, at(1000), &request(at(1000), HOME));
    let end_of = |agent: &mut HomeAgent, ms, care_of| {
        let asked = changed(at(ms), |asked| (asked.lifetime, asked.care_of) = (0, care_of));
        let reply = answered(agent, at(ms), &asked).map(|reply| (reply.code, reply.lifetime));
        assert_eq!(reply, Some((Code::Accepted, 0)), "{care_of}");
        bound_to(agent)
    };
    assert_eq!(end_of(&mut agent, 2100, other), Some(VISITED.to_string()));
    assert_eq!(end_of(&mut agent, 3200, VISITED), None);
    answered(&mut agent, at(4300), &request(at(4300), HOME));
    assert_eq!(end_of(&mut agent, 5400, HOME), None);
}

/// A request that names another home agent must be denied, and the reply must contain the address of the home agent
/// that received the request (RFC 5944, sections 3.8.2.1 and 3.8.3.2).
#[test]
fn who_names_another_home_agent_is_told_this_ones_address() {
    let now = Instant::from_millis(1000);
    let mut agent = home_agent("").unwrap();
    start(&mut agent);
    let asked = changed(now, |asked| asked.home_agent = Ipv4Addr::new(10, 1, 255, 255));
    let reply = answered(&mut agent, now, &asked).unwrap();
    assert_eq!((reply.code, reply.home_agent), (Code::UnknownHomeAgent, AGENT));
    assert!(reply.verify(Between::MobileHome, &association()));
}

/// A request to all home agents of the home network must be denied, also if it names this one. A router may change the
/// destination to 255.255.255.255 (RFC 5944, section 3.8.2.1).
#[test]
fn a_request_to_all_home_agents_is_accepted_by_none() {
    let mut agent = home_agent("").unwrap();
    start(&mut agent);
    for (ms, to) in [(1000, Ipv4Addr::new(10, 1, 255, 255)), (2000, Ipv4Addr::BROADCAST)] {
        let now = Instant::from_millis(ms);
        let bytes = packet(VISITED, to, &request(now, HOME).emit());
        let effects = heard(&mut agent, now, 1, MOBILE, bytes);
        assert_eq!((code_sent(&effects), moved(&effects)), (Some(Code::UnknownHomeAgent), false), "{to}");
    }
}

/// A binding that ended while its home agent was down must not be restored: no tunnel and no proxy ARP.
#[test]
fn a_binding_that_ended_while_the_agent_was_down_is_not_restored() {
    let at = Instant::from_millis;
    let mut agent = home_agent("").unwrap();
    start(&mut agent);
    let bytes = packet(VISITED, AGENT, &request(at(1000), HOME).emit());
    let effects = heard(&mut agent, at(1000), UP, ROUTER, bytes);
    let stored = effects.iter().find_map(|effect| match effect {
        Effect::Do(Act::Store(key, Some(record))) => Some((key.clone(), record.clone())),
        _ => None,
    });
    for (ms, restored) in [(300_999, true), (301_000, false)] {
        let mut agent = home_agent("").unwrap();
        let boot = Boot { stored: vec![stored.clone().unwrap()], ..Boot::new(WALL) };
        assert_eq!(moved(&give(&mut agent, at(ms), Input::Start(&boot))), restored, "{ms} ms");
    }
}

/// Records that are not durable yet use memory. If 16,384 records are not durable, a request must be denied with
/// "insufficient resources". When one record has become durable, a request must be accepted again.
#[test]
fn records_that_a_slow_disk_has_not_taken_are_bounded() {
    let now = Instant::from_millis(1000);
    let mut agent = home_agent("").unwrap();
    start(&mut agent);
    let mut out = Outbox::default();
    let mut ask = |agent: &mut HomeAgent, number: u64| {
        let asked = changed(now, |asked| asked.identification += number);
        let mut packet = Packet::new(ROUTER, packet(VISITED, AGENT, &asked.emit()));
        packet.id = PacketId(1);
        let rx = Rx::parse(Iface(UP), PuntReason::Listen, &packet).unwrap();
        agent.handle(now, Input::Packet(rx, packet), &mut out);
        let effects: Vec<Effect> = out.drain_effects().collect();
        let is_stored = effects.iter().any(|effect| matches!(effect, Effect::Do(Act::Store(..))));
        (is_stored, code_sent(&effects))
    };
    for number in 0..16_384 {
        assert_eq!(ask(&mut agent, number), (true, None), "{number}");
    }
    assert_eq!(ask(&mut agent, 20_000), (false, Some(Code::HomeResources)));
    agent.handle(now, Input::Stored(&HOME.octets()), &mut Outbox::default());
    assert_eq!(ask(&mut agent, 20_001), (true, None));
}

/// Registers a visitor with this home address. Returns the keys of the routes that the foreign agent then sets for
/// packets that its host itself sends.
fn own_routes(agent: &mut ForeignAgent, home: Ipv4Addr) -> Vec<RouteKey> {
    let now = Instant::from_millis(1000);
    let asks = request(now, home);
    heard(agent, now, 1, MOBILE, packet(home, VISITED, &asks.emit()));
    let reply = Reply { lifetime: 300, ..asks.reply(Code::Accepted) };
    let effects = heard(agent, now, 2, MOBILE, packet(AGENT, VISITED, &reply.emit()));
    let own = effects.into_iter().filter_map(|effect| match effect {
        Effect::Do(Act::Route(key, Some(_))) if key.class == Some(Class::HOST) => Some(key),
        _ => None,
    });
    own.collect()
}

/// Without an association, an attacker on the link can register the address of a server as its home address, if the
/// attacker controls a home agent. The packets that the foreign agent's host itself sends to the server must not be
/// sent to the attacker.
#[test]
fn a_visitor_that_nothing_proves_gets_no_packets_of_the_routers_own() {
    let server = Ipv4Addr::new(192, 0, 2, 1);
    let mut agent = foreign_agent("").unwrap();
    start(&mut agent);
    let own = own_routes(&mut agent, server);
    assert_eq!(own.iter().map(|key| key.src).collect::<Vec<_>>(), [Prefix::host(VISITED)], "errors only");

    let node = format!("mobile_nodes = [{{ address = \"{AGENT}\", spi = 256, key = \"{KEY}\" }}]");
    let home_agents = node.replace("mobile_nodes", "home_agents");
    let mut agent = foreign_agent(&home_agents).unwrap();
    start(&mut agent);
    assert_eq!(own_routes(&mut agent, server), [], "the home agent's answer has no proof");
}

#[test]
fn the_address_of_a_neighbor_on_the_link_is_no_visitors() {
    let mut agent = foreign_agent("").unwrap();
    start(&mut agent);
    let now = Instant::from_millis(1000);
    let neighbor = Ipv4Addr::new(10, 3, 0, 9);
    let asks = packet(neighbor, VISITED, &request(now, neighbor).emit());
    assert_eq!(code_sent(&heard(&mut agent, now, 1, MOBILE, asks)), Some(Code::ForeignProhibited));
}

/// An Indirect TCP support router on the same host sends messages to other support routers, from the agent's address. A
/// registration with the address of another support router as the home address must be denied.
#[test]
fn the_address_of_a_router_that_this_host_speaks_to_is_no_visitors() {
    let router = Ipv4Addr::new(10, 4, 0, 1);
    let mut config: ForeignAgentConfig = table(FOREIGN_AGENT, "").try_into().unwrap();
    config.partners = vec![router];
    let names = ["visited", "up"].map(str::to_owned);
    let mut agent = ForeignAgent::new(config, Interfaces(&names), Rng::new(1)).unwrap();
    start(&mut agent);
    let now = Instant::from_millis(1000);
    let asks = packet(router, VISITED, &request(now, router).emit());
    assert_eq!(code_sent(&heard(&mut agent, now, 1, MOBILE, asks)), Some(Code::ForeignProhibited));
    let other = Ipv4Addr::new(10, 4, 0, 2);
    let asks = packet(other, VISITED, &request(now, other).emit());
    assert_eq!(code_sent(&heard(&mut agent, now, 1, MOBILE, asks)), None);
}

/// A request must not be relayed if its home agent is an address of this host at which no home agent runs (RFC 5944,
/// section 3.7.2). A request with an address of this host as the home address must be denied.
#[test]
fn an_address_of_the_agents_host_is_no_home_agents_and_no_visitors() {
    let (up, beside) = (Ipv4Addr::new(10, 9, 0, 3), Ipv4Addr::new(10, 5, 0, 1));
    let mut config: ForeignAgentConfig = table(FOREIGN_AGENT, "").try_into().unwrap();
    (config.own, config.beside) = (vec![VISITED, up, beside], vec![beside]);
    let names = ["visited", "up"].map(str::to_owned);
    let ask = |home, home_agent| {
        let now = Instant::from_millis(1000);
        let mut agent = ForeignAgent::new(config.clone(), Interfaces(&names), Rng::new(1)).unwrap();
        start(&mut agent);
        let asked = Request { home_agent, ..request(now, home) };
        code_sent(&heard(&mut agent, now, 1, MOBILE, packet(home, VISITED, &asked.emit())))
    };
    assert_eq!(ask(HOME, up), Some(Code::InvalidHomeAgent));
    assert_eq!(ask(HOME, VISITED), Some(Code::InvalidHomeAgent));
    assert_eq!(ask(HOME, beside), None, "the home agent is on the same host");
    assert_eq!(ask(up, AGENT), Some(Code::ForeignProhibited));
    assert_eq!(ask(beside, AGENT), Some(Code::ForeignProhibited));
}

/// A packet from the exit of a tunnel must not enter this tunnel, and a packet from another host with an address of the home
/// agent must not enter any (RFC 2003, section 3.2; RFC 5944, section 4.2.3): both are in a loop. Here the mobile node has
/// two bindings, so the home agent itself makes the copies.
#[test]
fn a_packet_that_comes_out_of_a_tunnel_does_not_enter_it_again() {
    let now = Instant::from_millis(3000);
    let mut agent = home_agent("").unwrap();
    start(&mut agent);
    let second = Ipv4Addr::new(10, 4, 0, 1);
    for (ms, care_of) in [(1000, VISITED), (2000, second)] {
        let asked = changed(Instant::from_millis(ms), |asked| {
            (asked.flags, asked.care_of) = (RequestFlags::SIMULTANEOUS, care_of);
        });
        assert_eq!(answered(&mut agent, Instant::from_millis(ms), &asked).unwrap().code, Code::Accepted);
    }
    let mut exits = |src: Ipv4Addr| {
        let packet = wire::Packet::new(ROUTER, Header::new(ipv4::UDP, src, HOME).emit(&[0; 8]));
        let rx = Rx::parse(Iface(2), PuntReason::Action, &packet).unwrap();
        let effects = give(&mut agent, now, Input::Packet(rx, packet));
        let exit = |effect: &Effect| match effect {
            Effect::Send(_, packet) => ipv4::addresses(&packet.bytes).map(|(_, to)| to),
            _ => None,
        };
        let lost = effects
            .iter()
            .filter(|effect| matches!(effect, Effect::Discard(.., reason) if reason.0 == "tunnel_loop"));
        (effects.iter().filter_map(exit).collect::<Vec<_>>(), lost.count())
    };
    assert_eq!(exits(Ipv4Addr::new(10, 9, 0, 9)), (vec![VISITED, second], 0));
    assert_eq!(exits(VISITED), (vec![second], 1));
    assert_eq!(exits(AGENT), (vec![], 1));
}

/// An answer is sent to the link address of the solicitation. So an agent must not answer one from a group address.
#[test]
fn a_solicitation_from_the_link_address_of_a_group_is_not_answered() {
    let now = Instant::from_millis(1000);
    let mut agent = foreign_agent("").unwrap();
    start(&mut agent);
    let asks = Solicitation { src: HOME, dst: ALL_ROUTERS }.emit();
    for (from, count) in [(Mac::BROADCAST, 0), (MOBILE, 1)] {
        let effects = heard(&mut agent, now, 1, from, asks.clone());
        let is_sent = |effect: &&Effect| matches!(effect, Effect::Send(..));
        assert_eq!(effects.iter().filter(is_sent).count(), count, "{from}");
    }
}

/// An ICMP error about a tunnel becomes an error for the sender of the inner datagram. A forged error must not be sent to
/// all hosts of a link. Errors of kinds that are not relayed must be counted (RFC 2003, section 4).
#[test]
fn an_error_about_a_tunnel_is_sent_to_one_host() {
    let now = Instant::from_millis(1000);
    let mut agent = home_agent("").unwrap();
    start(&mut agent);
    heard(&mut agent, now, 2, MOBILE, packet(VISITED, AGENT, &request(now, HOME).emit()));
    let mut error = |sender: Ipv4Addr, code| {
        let inner = packet(sender, HOME, b"data");
        let outer = wire::ipip::encapsulate(&inner, AGENT, VISITED, 1).unwrap();
        let icmp = wire::icmp::Message { kind: 3, code, body: &[&[0; 4][..], &outer].concat() };
        let bytes = Header::new(ipv4::ICMP, VISITED, AGENT).emit(&icmp.emit());
        let effects = heard(&mut agent, now, 2, ATTACKER, bytes);
        let ends = effects.iter().find_map(|effect| match effect {
            Effect::Discard(_, _, reason) => Some(reason.0),
            _ => None,
        });
        (effects.iter().filter(|effect| matches!(effect, Effect::Send(..))).count(), ends.unwrap())
    };
    assert_eq!(error(Ipv4Addr::new(10, 2, 0, 2), 1), (1, "consumed"));
    assert_eq!(error(Ipv4Addr::new(10, 1, 255, 255), 1), (0, "consumed"));
    assert_eq!(error(Ipv4Addr::new(10, 2, 0, 3), 3), (0, "tunnel_error_not_relayed"));
}

/// A home agent and a foreign agent share an address. A visitor of another home agent that has its own care-of address
/// registers through the foreign agent. A request to the home agent of this host that asks for no visit goes there.
#[test]
fn beside_a_home_agent_a_request_to_another_home_agent_is_relayed() {
    let mut config: ForeignAgentConfig = table(FOREIGN_AGENT, "").try_into().unwrap();
    (config.own, config.beside) = (vec![VISITED], vec![VISITED]);
    let names = ["visited", "up"].map(str::to_owned);
    let care_of = Ipv4Addr::new(10, 3, 0, 77);
    let ask = |home_agent| {
        let now = Instant::from_millis(1000);
        let mut agent = ForeignAgent::new(config.clone(), Interfaces(&names), Rng::new(1)).unwrap();
        start(&mut agent);
        let flags = RequestFlags::DECAPSULATION;
        let asked = Request { home_agent, care_of, flags, ..request(now, HOME) };
        heard(&mut agent, now, 1, MOBILE, packet(care_of, VISITED, &asked.emit()))
    };
    let is_relayed = |effects: &[Effect]| {
        let to = |packet: &Packet| ipv4::addresses(&packet.bytes).map(|(_, to)| to);
        effects.iter().any(|effect| matches!(effect, Effect::Send(_, packet) if to(packet) == Some(AGENT)))
    };
    assert!(is_relayed(&ask(AGENT)));
    let passed = ask(VISITED);
    assert!(matches!(passed[..], [Effect::Pass(..)]), "{passed:?}");
}

#[test]
fn a_kind_of_tunnel_and_a_hysteresis_have_their_values() {
    assert!(mobile_node("encapsulation = 'minimal'").is_ok() && mobile_node("encapsulation = 'gre'").is_ok());
    refused(mobile_node("encapsulation = 'ipip'"), "encapsulation", "`ip-in-ip`, `minimal` or `gre`");
    assert!(home_agent("encapsulations = ['gre', 'minimal']").is_ok());
    refused(home_agent("encapsulations = ['ip-in-ip']"), "encapsulations", "`minimal` or `gre`");
    refused(foreign_agent("encapsulations = 'gre'"), "encapsulations", "sequence");
    assert!(mobile_node("signal_hysteresis = 60").is_ok());
    refused(mobile_node("signal_hysteresis = 61"), "`signal_hysteresis`", "from 0 to 60 dB");
    refused(mobile_node("signal_hysteresis = -1"), "signal_hysteresis", "-1");
    let cells = "{ agent = '10.3.0.1', cell = 2 }, { agent = '10.3.0.1', cell = 3 }";
    refused(
        mobile_node(&format!("agent_cells = [{cells}]")),
        "`agent_cells`",
        "10.3.0.1 must have one cell only",
    );
}
