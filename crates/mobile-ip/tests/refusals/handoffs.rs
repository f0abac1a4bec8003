//! Attacks on smooth handoffs, and configurations of them that must be rejected.

#[path = "direct.rs"]
mod direct;

use super::*;
use mobile_ip::message::{Binding, Numbers, PreviousAgent, Update};

pub(super) const PREVIOUS: Ipv4Addr = Ipv4Addr::new(10, 4, 0, 1);
pub(super) const ATTACKER: Mac = Mac([2, 0, 0, 0, 0, 66]);
const SMOOTH: &str = "smooth_handoff = true\npending = 4000";
pub(super) const PROVEN: &str = r#"
    smooth_handoff = true
    mobile_nodes = [{ address = "10.1.0.7", spi = 256, key = "000102030405060708090a0b0c0d0e0f" }]
"#;
pub(super) const UP: u16 = 2;
pub(super) const CORRESPONDENT: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 9);

pub(super) fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

pub(super) fn agent(changes: &str) -> ForeignAgent {
    let mut agent = foreign_agent(changes).unwrap();
    start(&mut agent);
    agent
}

/// Returns a request of `home` that names `previous`, signed for the foreign agent if `proven`.
fn comes_from(now: Instant, home: Ipv4Addr, previous: Ipv4Addr, proven: bool) -> Request {
    let mut asked = Request { care_of: VISITED, ..request(now, home) };
    asked.extensions.clear();
    asked.sign(Between::MobileHome, &association());
    let said = PreviousAgent::new(&asked, 30, previous, &association(), &Numbers::default());
    asked.extensions.push(said.extension(&Numbers::default()));
    if proven {
        asked.sign(Between::MobileForeign, &association());
    }
    asked
}

/// Gives the foreign agent a request, and returns the payloads of the Binding Updates that it sends.
fn ask(agent: &mut ForeignAgent, now: Instant, mac: Mac, asked: &Request) -> Vec<Vec<u8>> {
    let effects = heard(agent, now, 1, mac, packet(asked.home, VISITED, &asked.emit()));
    let sent = effects.iter().filter_map(|effect| match effect {
        Effect::Send(None, packet) => Some(ipv4::payload(&packet.bytes).get(8..)?.to_vec()),
        _ => None,
    });
    sent.filter(|payload| payload.first() == Some(&18)).collect()
}

/// Gives the foreign agent a packet for `home` out of a tunnel from `entry`, and returns whether the agent delivers it.
fn arrives(agent: &mut ForeignAgent, now: Instant, home: Ipv4Addr, entry: Ipv4Addr) -> bool {
    let bytes = packet(Ipv4Addr::new(10, 2, 0, 2), home, b"data");
    let packet = Packet::new(Mac::ZERO, bytes);
    let rx = Rx::parse(Iface(UP), PuntReason::Action, &packet).unwrap();
    let rx = Rx { tunnel: Some((entry, VISITED)), ..rx };
    give(agent, now, Input::Packet(rx, packet))
        .iter()
        .any(|effect| matches!(effect, Effect::Send(Some(_), _)))
}

/// Gives the foreign agent a UDP payload from another agent.
fn told(agent: &mut ForeignAgent, now: Instant, payload: &[u8]) -> Vec<Effect> {
    heard(agent, now, UP, ATTACKER, packet(PREVIOUS, VISITED, payload))
}

/// Returns the Binding Update of a mobile node that has left to this care-of address, signed with this key.
pub(super) fn signed_update(now: Instant, home: Ipv4Addr, care_of: Ipv4Addr, key: &Association) -> Update {
    let update = Update {
        acknowledge: true,
        minimal: false,
        gre: false,
        lifetime: 30,
        home,
        care_of,
        identification: Some(WALL.plus(now.since(Instant::ZERO)).to_ntp()),
        authentication: None,
    };
    signed(update, key)
}

/// Returns a Binding Update with an authentication by this key.
pub(super) fn signed(mut update: Update, key: &Association) -> Update {
    let numbers = Numbers::default();
    update.sign(numbers.smooth_authentication, key, &numbers);
    update
}

fn update(now: Instant) -> Update {
    signed_update(now, HOME, PREVIOUS, &association())
}

#[test]
fn numbers_and_times_that_cannot_work_are_refused() {
    refused(mobile_node("cache_lifetime = '0s'"), "`cache_lifetime`", "from 1s to 65534s");
    refused(mobile_node("cache_lifetime = '1500ms'"), "`cache_lifetime`", "whole seconds");
    refused(mobile_node("numbers = { update = 1 }"), "`numbers`", "`update` is 1");
    refused(foreign_agent("numbers = { smooth_flag = 64 }"), "`numbers`", "must be one bit");
    assert!(foreign_agent("numbers = { smooth_flag = 16, previous_agent = 97 }").is_ok());
}

/// The mobile node signs the Binding Update that the agent builds. So both must build the same bytes: those of an example that
/// was computed by another program. The source is the agent (draft-ietf-mobileip-optim-09, section 7.1).
#[test]
fn the_agent_builds_the_update_that_the_mobile_node_has_signed() {
    let address = "address = '10.1.2.7/24'\nsmooth_handoff = true";
    let mut agent = agent(address);
    let key =
        Association { spi: 0x300, algorithm: Algorithm::HmacSha256, key: Secret::new(*b"1234567812345678") };
    let own = Ipv4Addr::new(10, 1, 2, 7);
    let mut asked = Request {
        flags: RequestFlags(0),
        lifetime: 300,
        home: Ipv4Addr::new(10, 1, 1, 10),
        home_agent: Ipv4Addr::new(10, 1, 1, 20),
        care_of: own,
        identification: 0xed00_0000_1234_5800,
        extensions: Vec::new(),
    };
    asked.sign(Between::MobileHome, &key);
    let said = PreviousAgent::new(&asked, 30, Ipv4Addr::new(10, 1, 3, 1), &key, &Numbers::default());
    asked.extensions.push(said.extension(&Numbers::default()));
    let effects = heard(&mut agent, at(1000), 1, MOBILE, packet(asked.home, own, &asked.emit()));
    let text = "12c0001e0a01010a0a010207ed00000012345800\
                24fb0024000003008513f370b71624c543e9e69661220a511b1d76b510f2160b05e2ac4849fd909f";
    let golden: Vec<u8> =
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect();
    let is_golden = |effect: &Effect| match effect {
        Effect::Send(None, packet) => {
            let ends = ipv4::addresses(&packet.bytes);
            ends == Some((own, said.previous)) && ipv4::payload(&packet.bytes).get(8..) == Some(&golden[..])
        }
        _ => false,
    };
    assert_eq!(effects.iter().filter(|effect| is_golden(effect)).count(), 1, "{effects:?}");
}

/// A host names a victim as the previous agent of invented mobile nodes: few messages reach the victim.
#[test]
fn a_notification_is_no_means_to_flood_another_host() {
    let mut agent = agent(SMOOTH);
    let mut sent = 0;
    for number in 0..1000_u16 {
        let [_, _, a, b] = u32::from(number).to_be_bytes();
        let asked = comes_from(at(1000), Ipv4Addr::new(10, 1, 9 + a, b), PREVIOUS, false);
        let mac = if number < 500 { ATTACKER } else { Mac([2, 6, 6, 6, a, b]) };
        sent += ask(&mut agent, at(1000 + u64::from(number) / 2), mac, &asked).len();
    }
    assert!((32..=64).contains(&sent), "{sent}");
    assert!(counted(&agent, "too_many_updates") > 0);
    let asked = comes_from(at(2000), HOME, PREVIOUS, false);
    assert_eq!(
        ask(&mut agent, at(2000), MOBILE, &asked).len(),
        1,
        "in the next second, another mobile node moves"
    );
}

/// A link address has four requests that wait, and each gives way to another one after 250 ms.
#[test]
fn one_link_address_causes_four_updates_a_second() {
    let mut agent = agent(SMOOTH);
    let mut sent = |ms: u64, number: u8| {
        let (home, target) = (Ipv4Addr::new(10, 1, 9, number), Ipv4Addr::new(10, 5, 0, number));
        ask(&mut agent, at(ms), ATTACKER, &comes_from(at(ms), home, target, false)).len()
    };
    let first: usize = (0..16).map(|number| sent(1000 + 250 * u64::from(number / 4), 1 + number)).sum();
    assert_eq!((first, sent(2001, 20)), (4, 1));
}

#[test]
fn a_mobile_node_gets_few_packets_before_it_is_registered() {
    let mut agent = agent(SMOOTH);
    ask(&mut agent, at(1000), MOBILE, &comes_from(at(1000), HOME, PREVIOUS, false));
    assert!(!arrives(&mut agent, at(1001), HOME, AGENT));
    assert_eq!(counted(&agent, "not_the_previous_agent"), 1);
    let arrived = (0..70).filter(|_| arrives(&mut agent, at(1002), HOME, PREVIOUS)).count();
    assert_eq!((arrived, counted(&agent, "early_packet_limit")), (64, 6));
    // A repeated request does not permit more packets.
    ask(&mut agent, at(2500), MOBILE, &comes_from(at(2500), HOME, PREVIOUS, false));
    assert!(!arrives(&mut agent, at(2501), HOME, PREVIOUS));
    give(&mut agent, at(9500), Input::Timeout);
    assert!(!arrives(&mut agent, at(9501), HOME, PREVIOUS), "the request does not wait any more");
    assert_eq!(counted(&agent, "not_a_visitor"), 1);
}

/// The home agent has accepted a request if it tunnels packets to this agent, although its reply is lost. So a mobile node with a
/// correct Mobile-Foreign Authentication gets these packets, and with `direct_tunnels` those of correspondents.
#[test]
fn a_proven_mobile_node_gets_the_packets_of_its_home_agent_before_the_reply() {
    for (keys, is_proven, expected) in [
        (SMOOTH.to_owned(), false, [true, false, false]),
        (PROVEN.to_owned(), true, [true, true, false]),
        (format!("{PROVEN}\ndirect_tunnels = true"), true, [true, true, true]),
    ] {
        let mut agent = agent(&keys);
        ask(&mut agent, at(1000), MOBILE, &comes_from(at(1000), HOME, PREVIOUS, is_proven));
        let got = [PREVIOUS, AGENT, CORRESPONDENT].map(|entry| arrives(&mut agent, at(1001), HOME, entry));
        assert_eq!(got, expected, "{keys}");
        give(&mut agent, at(9500), Input::Timeout);
        let late = [PREVIOUS, AGENT, CORRESPONDENT].map(|entry| arrives(&mut agent, at(9501), HOME, entry));
        assert_eq!(late, [false; 3], "{keys}: the request does not wait any more");
    }
}

/// A request may wait longer, but packets of the previous agent are not delivered longer.
#[test]
fn packets_of_the_previous_agent_are_delivered_for_7_s_before_the_registration() {
    let mut agent = agent("smooth_handoff = true\npending_timeout = '30s'");
    ask(&mut agent, at(1000), MOBILE, &comes_from(at(1000), HOME, PREVIOUS, false));
    assert!(arrives(&mut agent, at(7999), HOME, PREVIOUS));
    assert!(!arrives(&mut agent, at(8000), HOME, PREVIOUS));
    assert_eq!(agent.status().get("pending"), Some(&node::Value::Int(1)), "the request still waits");
}

/// A host claims the home address of a mobile node that comes from another agent. It does not get its packets. Without an
/// association, the agent does not know which of the two is the mobile node, until the home agent accepts a request.
#[test]
fn packets_for_a_pending_visitor_are_not_stolen() {
    for is_first in [false, true] {
        let (mut agent, mut proving) = (agent(SMOOTH), agent(PROVEN));
        let order = if is_first { [ATTACKER, MOBILE] } else { [MOBILE, ATTACKER] };
        let honest = comes_from(at(1000), HOME, PREVIOUS, false);
        let forged = comes_from(at(1001), HOME, PREVIOUS, false);
        for mac in order {
            ask(&mut agent, at(1001), mac, if mac == MOBILE { &honest } else { &forged });
        }
        assert_eq!(receives(&mut agent, at(1002)), None);
        assert_eq!(counted(&agent, "no_early_delivery"), 1);
        heard(&mut agent, at(1010), UP, ATTACKER, reply_to(&honest, AGENT));
        assert_eq!(receives(&mut agent, at(1020)), Some(MOBILE));
        // With an association, a request without an authentication is denied.
        for mac in order {
            ask(&mut proving, at(1001), mac, &comes_from(at(1000), HOME, PREVIOUS, mac == MOBILE));
        }
        assert_eq!(receives(&mut proving, at(1002)), Some(MOBILE));
    }
}

/// A host on the link hears the request of a mobile node, and sends it again with a notification behind its authentication.
/// The agent sends no Binding Update, and delivers no packets of the named agent.
#[test]
fn a_notification_that_another_host_has_appended_has_no_effect() {
    let mut agent = agent(PROVEN);
    let whole = comes_from(at(1000), HOME, PREVIOUS, true);
    let said = whole.extensions[1].clone();
    let mut asked = Request { extensions: whole.extensions[..1].to_vec(), ..whole };
    asked.sign(Between::MobileForeign, &association());
    asked.extensions.push(said);
    assert!(ask(&mut agent, at(1000), MOBILE, &asked).is_empty());
    assert_eq!(receives(&mut agent, at(1001)), None);
    heard(&mut agent, at(1010), UP, ATTACKER, reply_to(&asked, AGENT));
    assert_eq!(receives(&mut agent, at(1020)), None);
}

/// A host on the link repeats an earlier request with its authentication, after the mobile node has left. Packets of correspondents
/// and of the home agent do not reach it.
#[test]
fn a_replayed_request_brings_no_packets_to_another_host() {
    let mut agent = agent(&format!("{PROVEN}\ndirect_tunnels = true"));
    let asked = comes_from(at(1000), HOME, PREVIOUS, true);
    ask(&mut agent, at(1000), MOBILE, &asked);
    heard(&mut agent, at(1010), UP, ATTACKER, reply_to(&asked, AGENT));
    assert_eq!(receives_from(&mut agent, at(1020), CORRESPONDENT), Some(MOBILE));
    told(&mut agent, at(2000), &Binding::Update(update(at(2000))).emit(&Numbers::default()));
    assert_eq!(receives_from(&mut agent, at(2010), CORRESPONDENT), None, "it is forwarded");
    ask(&mut agent, at(3000), ATTACKER, &asked);
    for entry in [CORRESPONDENT, AGENT] {
        assert_eq!(receives_from(&mut agent, at(3010), entry), None, "{entry}");
    }
}

/// The reply to a request is lost on the link, and the repetition is denied. The visit continues.
#[test]
fn a_denied_repetition_changes_nothing_for_a_visitor() {
    let mut agent = agent(&format!("{PROVEN}\ndirect_tunnels = true"));
    let asked = comes_from(at(1000), HOME, PREVIOUS, true);
    ask(&mut agent, at(1000), MOBILE, &asked);
    heard(&mut agent, at(1010), UP, ATTACKER, reply_to(&asked, AGENT));
    let again = comes_from(at(2000), HOME, PREVIOUS, true);
    ask(&mut agent, at(2000), MOBILE, &again);
    assert_eq!(receives_from(&mut agent, at(2001), CORRESPONDENT), Some(MOBILE));
    heard(&mut agent, at(2010), UP, ATTACKER, denial_of(&again));
    assert_eq!(agent.status().get("pending"), Some(&node::Value::Int(0)));
    assert_eq!(receives_from(&mut agent, at(2020), CORRESPONDENT), Some(MOBILE));
}

fn denial_of(asked: &Request) -> Vec<u8> {
    let mut reply = asked.reply(Code::HomeUnspecified);
    reply.home_agent = asked.home_agent;
    reply.sign(Between::MobileHome, &association());
    packet(asked.home_agent, VISITED, &reply.emit())
}

/// Gives the foreign agent a packet out of a tunnel of the previous agent, and returns the link address that gets it.
fn receives(agent: &mut ForeignAgent, now: Instant) -> Option<Mac> {
    receives_from(agent, now, PREVIOUS)
}

/// Gives the foreign agent a packet out of a tunnel from `entry`, and returns the link address that gets it.
pub(super) fn receives_from(agent: &mut ForeignAgent, now: Instant, entry: Ipv4Addr) -> Option<Mac> {
    let data = Packet::new(Mac::ZERO, packet(Ipv4Addr::new(10, 2, 0, 2), HOME, b"data"));
    let rx = Rx::parse(Iface(UP), PuntReason::Action, &data).unwrap();
    let rx = Rx { tunnel: Some((entry, VISITED)), ..rx };
    give(agent, now, Input::Packet(rx, data)).iter().find_map(|effect| match effect {
        Effect::Send(Some(_), packet) => Some(packet.link.dst),
        _ => None,
    })
}

/// No prefix of a Binding Update and none with a changed bit ends a visit. The update itself does, and only once.
#[test]
fn no_changed_update_ends_a_visit() {
    let mut agent = agent(PROVEN);
    let asked = comes_from(at(1000), HOME, PREVIOUS, true);
    ask(&mut agent, at(1000), MOBILE, &asked);
    heard(&mut agent, at(1010), UP, ATTACKER, reply_to(&asked, AGENT));
    let before = agent.status().get("visitors").cloned();
    assert!(before.as_ref().is_some_and(|visitors| visitors.get("10.1.0.7").is_some()), "{before:?}");
    let update = update(at(2000));
    let whole = Binding::Update(update.clone()).emit(&Numbers::default());
    for length in 0..whole.len() {
        told(&mut agent, at(2000), &whole[..length]);
    }
    for bit in 0..8 * whole.len() {
        let mut changed = whole.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        told(&mut agent, at(2000), &changed);
        assert_eq!(agent.status().get("visitors"), before.as_ref(), "bit {bit}");
    }
    assert_eq!(agent.status().get("visitors"), before.as_ref());
    assert!(counted(&agent, "bad_authentication") > 0);
    told(&mut agent, at(2000), &whole);
    assert!(agent.status().get("visitors").is_some_and(|visitors| visitors.get("10.1.0.7").is_none()));
    // The mobile node returns. The same update does not end the new visit.
    let asked = comes_from(at(3000), HOME, PREVIOUS, true);
    ask(&mut agent, at(3000), MOBILE, &asked);
    heard(&mut agent, at(3010), UP, ATTACKER, reply_to(&asked, AGENT));
    told(&mut agent, at(3020), &whole);
    assert_eq!(counted(&agent, "stale_update"), 1);
    assert!(agent.status().get("visitors").is_some_and(|visitors| visitors.get("10.1.0.7").is_some()));
}

/// An agent without `smooth_handoff` may have associations with mobile nodes, for their requests. A Binding Update to it ends no visit.
#[test]
fn without_the_option_an_update_ends_no_visit() {
    for changes in [PROVEN.to_owned(), PROVEN.replace("smooth_handoff = true", "")] {
        let mut agent = agent(&changes);
        let mut asked = request(at(1000), HOME);
        asked.sign(Between::MobileForeign, &association());
        ask(&mut agent, at(1000), MOBILE, &asked);
        heard(&mut agent, at(1010), UP, ATTACKER, reply_to(&asked, AGENT));
        told(&mut agent, at(2000), &Binding::Update(update(at(2000))).emit(&Numbers::default()));
        let visitors = agent.status().get("visitors").cloned().unwrap();
        assert_eq!(visitors.get("10.1.0.7").is_some(), changes != PROVEN, "{visitors:?}");
    }
}

/// The mobile node has left and comes back. Its request waits when an Update arrives that it had sent before.
#[test]
fn an_update_from_before_the_return_is_stale() {
    let mut agent = agent(PROVEN);
    let asked = comes_from(at(1000), HOME, PREVIOUS, true);
    ask(&mut agent, at(1000), MOBILE, &asked);
    heard(&mut agent, at(1010), UP, ATTACKER, reply_to(&asked, AGENT));
    let signed = |time| Binding::Update(update(time)).emit(&Numbers::default());
    told(&mut agent, at(2000), &signed(at(2000)));
    ask(&mut agent, at(4000), MOBILE, &comes_from(at(4000), HOME, PREVIOUS, true));
    told(&mut agent, at(4001), &signed(at(3000)));
    assert_eq!(counted(&agent, "stale_update"), 1);
    assert!(arrives(&mut agent, at(4002), HOME, PREVIOUS));
    told(&mut agent, at(5000), &signed(at(5000)));
    assert!(!arrives(&mut agent, at(5001), HOME, PREVIOUS), "it has left again");
}

/// A notification that is cut makes the agent drop the whole request.
#[test]
fn a_cut_notification_is_refused() {
    let mut agent = agent(SMOOTH);
    let mut asked = comes_from(at(1000), HOME, PREVIOUS, false);
    for length in 0..14 {
        let Some(Extension::Skipped { data, .. }) = asked.extensions.last_mut() else {
            panic!("no notification")
        };
        let whole = data.clone();
        data.truncate(length);
        assert!(ask(&mut agent, at(1000), MOBILE, &asked).is_empty());
        let Some(Extension::Skipped { data, .. }) = asked.extensions.last_mut() else {
            panic!("no notification")
        };
        *data = whole;
    }
    assert_eq!(counted(&agent, "mip_notification_length"), 14);
}

// --- claims against what is known ----------------------------------------------------------------------------------

pub(super) const DIRECT: &str = "smooth_handoff = true\ndirect_tunnels = true";
pub(super) const NEXT: Ipv4Addr = Ipv4Addr::new(10, 5, 0, 1);

/// Gives the foreign agent a request, and the home agent's acceptance of it.
fn registers(agent: &mut ForeignAgent, now: Instant, asked: &Request) {
    ask(agent, now, MOBILE, asked);
    heard(agent, now, UP, ATTACKER, reply_to(asked, AGENT));
}

/// Gives the foreign agent 100 packets out of a tunnel from `entry`. Returns the link addresses that get them, each once; `None`
/// if a packet is dropped or forwarded.
fn hundred(agent: &mut ForeignAgent, now: Instant, entry: Ipv4Addr) -> Vec<Option<Mac>> {
    let mut all: Vec<_> = (0..100).map(|_| receives_from(agent, now, entry)).collect();
    all.dedup();
    all
}

/// Gives the foreign agent a packet out of a tunnel from `entry`, and returns the care-of address to which it is forwarded.
fn forwarded(agent: &mut ForeignAgent, now: Instant, entry: Ipv4Addr, bytes: Vec<u8>) -> Option<Ipv4Addr> {
    let data = Packet::new(Mac::ZERO, bytes);
    let rx = Rx::parse(Iface(UP), PuntReason::Action, &data).unwrap();
    let rx = Rx { tunnel: Some((entry, VISITED)), ..rx };
    give(agent, now, Input::Packet(rx, data)).iter().find_map(|effect| match effect {
        Effect::Send(None, packet) if packet.bytes.get(9) == Some(&ipv4::IPIP) => {
            ipv4::addresses(&packet.bytes).map(|(_, exit)| exit)
        }
        _ => None,
    })
}

fn datagram_of(entry: Ipv4Addr, id: u16, ttl: u8) -> Vec<u8> {
    let whole = packet(entry, HOME, b"keepalive");
    let (header, payload) = ipv4::Header::parse(&whole).unwrap();
    ipv4::Header { id, ttl, ..header }.emit(payload)
}

/// A host without a key names the correspondent, or another host, as the previous agent of a visitor. The visitor gets all
/// packets that it got before: those of its correspondent, and those of the agent that it has named itself.
#[test]
fn a_claim_without_a_proof_takes_nothing_from_a_visitor() {
    for (mac, named) in
        [(ATTACKER, CORRESPONDENT), (MOBILE, CORRESPONDENT), (MOBILE, NEXT), (ATTACKER, PREVIOUS)]
    {
        let mut agent = agent(DIRECT);
        registers(&mut agent, at(1000), &comes_from(at(1000), HOME, PREVIOUS, false));
        let get = |agent: &mut ForeignAgent, now: Instant| {
            for entry in [CORRESPONDENT, PREVIOUS] {
                assert_eq!(
                    hundred(agent, now, entry),
                    [Some(MOBILE)],
                    "{entry} at {now:?}, {mac} names {named}"
                );
            }
        };
        get(&mut agent, at(1001));
        let forged = comes_from(at(2000), HOME, named, false);
        let effects = heard(&mut agent, at(2000), 1, mac, packet(HOME, VISITED, &forged.emit()));
        assert!(!moved(&effects), "no route changes: {effects:?}");
        get(&mut agent, at(2001));
        heard(&mut agent, at(2010), UP, ATTACKER, denial_of(&forged));
        get(&mut agent, at(2011));
        give(&mut agent, at(9500), Input::Timeout);
        get(&mut agent, at(9501));
    }
}

/// Without `direct_tunnels`, other hosts get no packets to a visitor because of such a claim.
#[test]
fn a_claim_without_a_proof_opens_no_tunnel_to_a_visitor() {
    for mac in [ATTACKER, MOBILE] {
        let mut agent = agent(SMOOTH);
        registers(&mut agent, at(1000), &comes_from(at(1000), HOME, PREVIOUS, false));
        ask(&mut agent, at(2000), mac, &comes_from(at(2000), HOME, NEXT, false));
        assert_eq!(counted(&agent, "no_early_delivery"), 1);
        assert_eq!(hundred(&mut agent, at(2001), NEXT), [None], "{mac}");
        assert_eq!(hundred(&mut agent, at(2001), PREVIOUS), [Some(MOBILE)], "{mac}");
    }
}

/// A visitor with a key registers again, and names another agent. It gets the packets of both before the reply, and after a
/// denial those of the agent that an accepted request has named.
#[test]
fn a_proven_claim_adds_to_what_a_visitor_gets() {
    let mut agent = agent(PROVEN);
    registers(&mut agent, at(1000), &comes_from(at(1000), HOME, PREVIOUS, true));
    let again = comes_from(at(2000), HOME, NEXT, true);
    ask(&mut agent, at(2000), MOBILE, &again);
    let get = |agent: &mut ForeignAgent, now| [PREVIOUS, NEXT].map(|entry| receives_from(agent, now, entry));
    assert_eq!(get(&mut agent, at(2001)), [Some(MOBILE); 2]);
    heard(&mut agent, at(2010), UP, ATTACKER, denial_of(&again));
    assert_eq!(get(&mut agent, at(2011)), [Some(MOBILE), None]);
    registers(&mut agent, at(3000), &comes_from(at(3000), HOME, NEXT, true));
    assert_eq!(get(&mut agent, at(3001)), [Some(MOBILE); 2]);
}

/// A chain of agents: the mobile node has left this one. A host on the link repeats its request, which had a correct authentication.
/// The packets of the agent before, and of correspondents, are still forwarded.
#[test]
fn a_replayed_claim_takes_nothing_from_a_mobile_node_that_has_left() {
    let mut agent = agent(&format!("{PROVEN}\ndirect_tunnels = true"));
    let asked = comes_from(at(1000), HOME, PREVIOUS, true);
    let of_correspondent = comes_from(at(1500), HOME, CORRESPONDENT, true);
    ask(&mut agent, at(1000), MOBILE, &asked);
    registers(&mut agent, at(1500), &of_correspondent);
    let left = signed_update(at(2000), HOME, NEXT, &association());
    told(&mut agent, at(2000), &Binding::Update(left).emit(&Numbers::default()));
    for (place, replayed) in [asked, of_correspondent].iter().enumerate() {
        let now = at(3000 + 10_000 * place as u64);
        for mac in [ATTACKER, MOBILE] {
            let effects = heard(&mut agent, now, 1, mac, packet(HOME, VISITED, &replayed.emit()));
            assert!(!moved(&effects), "no route changes: {effects:?}");
            for (id, entry) in [(1, PREVIOUS), (2, CORRESPONDENT), (3, AGENT)] {
                let data = datagram_of(entry, id, 64);
                assert_eq!(forwarded(&mut agent, now, entry, data), Some(NEXT), "{entry}, {mac}");
            }
        }
        give(&mut agent, at(11_000 + 10_000 * place as u64), Input::Timeout);
    }
}

/// The mobile node has returned home, and its agent forwards nothing. The agent before still sends packets. A host that repeats its
/// request does not get them. The mobile node does when it comes back.
#[test]
fn a_replayed_claim_gets_nothing_of_a_mobile_node_that_is_home() {
    let mut agent = agent(PROVEN);
    let asked = comes_from(at(1000), HOME, PREVIOUS, true);
    registers(&mut agent, at(1000), &asked);
    let left = signed_update(at(2000), HOME, HOME, &association());
    told(&mut agent, at(2000), &Binding::Update(left).emit(&Numbers::default()));
    for mac in [ATTACKER, MOBILE] {
        ask(&mut agent, at(3000), mac, &asked);
        assert_eq!(hundred(&mut agent, at(3001), PREVIOUS), [None], "{mac}");
    }
    ask(&mut agent, at(4001), MOBILE, &comes_from(at(4001), HOME, PREVIOUS, true));
    assert_eq!(hundred(&mut agent, at(4002), PREVIOUS), [Some(MOBILE)]);
}

/// Many forged claims have separate places. A mobile node with a proof gets its packets before the registration is accepted. One
/// without a proof gets them, too, unless all forged requests still wait, and in any case once it is registered.
#[test]
fn a_flood_of_claims_does_not_switch_off_smooth_handoffs() {
    for (keys, is_proven, is_early) in [
        (format!("{PROVEN}\npending = 4000"), true, true),
        ("smooth_handoff = true\npending = 64".to_owned(), false, true),
        (SMOOTH.to_owned(), false, false),
    ] {
        let mut agent = agent(&keys);
        for number in 0..1100_u32 {
            let [_, _, a, b] = number.to_be_bytes();
            // Other targets, of which each may get updates.
            let target = Ipv4Addr::new(10, 6, a, 1 + b / 2);
            let forged = comes_from(at(1000), Ipv4Addr::new(10, 1, 9 + a, b), target, false);
            ask(&mut agent, at(1000 + 3 * u64::from(number)), Mac([2, 6, 6, 6, a, b]), &forged);
        }
        let asked = comes_from(at(4400), HOME, PREVIOUS, is_proven);
        assert_eq!(ask(&mut agent, at(4400), MOBILE, &asked).len(), 1);
        let early = receives(&mut agent, at(4401));
        assert_eq!(early, is_early.then_some(MOBILE), "{keys}");
        heard(&mut agent, at(4410), UP, ATTACKER, reply_to(&asked, AGENT));
        assert_eq!(receives(&mut agent, at(4420)), Some(MOBILE), "{keys}");
        assert_eq!(receives(&mut agent, at(35_401)), None, "{keys}: the cache lifetime has passed");
    }
}

/// Forged requests name the previous agent, until it gets no Binding Update of another request in this second: the mobile node sends
/// it. The packets are delivered all the same.
#[test]
fn a_claim_counts_without_its_update() {
    let mut agent = agent(SMOOTH);
    for number in 0..100 {
        let forged = comes_from(at(1000), Ipv4Addr::new(10, 1, 9, number), PREVIOUS, false);
        ask(&mut agent, at(1000), Mac([2, 6, 6, 6, 0, number]), &forged);
    }
    let asked = comes_from(at(1001), HOME, PREVIOUS, false);
    assert!(ask(&mut agent, at(1001), MOBILE, &asked).is_empty());
    assert_eq!(receives(&mut agent, at(1002)), Some(MOBILE));
    heard(&mut agent, at(1010), UP, ATTACKER, reply_to(&asked, AGENT));
    assert_eq!(receives(&mut agent, at(1020)), Some(MOBILE));
}

/// A host on the link repeats earlier requests of a mobile node with a key. They do not use up its Binding Updates.
#[test]
fn replayed_claims_do_not_use_up_updates() {
    let mut agent = agent(&format!("{PROVEN}\npending = 4000"));
    let all: Vec<Request> = (1..9).map(|number| comes_from(at(901 * number), HOME, PREVIOUS, true)).collect();
    for (place, asked) in all.iter().enumerate() {
        registers(&mut agent, at(901 * (1 + place as u64)), asked);
    }
    let left = signed_update(at(8000), HOME, NEXT, &association());
    told(&mut agent, at(8000), &Binding::Update(left).emit(&Numbers::default()));
    for (place, asked) in all.iter().enumerate() {
        ask(&mut agent, at(9000), Mac([2, 6, 6, 6, 0, place as u8]), asked);
    }
    assert_eq!(ask(&mut agent, at(9050), MOBILE, &comes_from(at(9050), HOME, NEXT, true)).len(), 1);
}

/// The keepalives of a correspondent are equal datagrams with other identifications, or with 0. Those of another host, with more
/// hops, do not make them seem to have come back. A packet that has come back is dropped.
#[test]
fn equal_packets_of_another_host_are_no_loop() {
    let mut agent = agent(&format!("{PROVEN}\ndirect_tunnels = true"));
    registers(&mut agent, at(1000), &comes_from(at(1000), HOME, PREVIOUS, true));
    let left = signed_update(at(2000), HOME, NEXT, &association());
    told(&mut agent, at(2000), &Binding::Update(left).emit(&Numbers::default()));
    let stranger = Ipv4Addr::new(198, 51, 100, 66);
    for id in [0, 7] {
        let mut passes = |entry, id, ttl| {
            forwarded(&mut agent, at(3000), entry, datagram_of(CORRESPONDENT, id, ttl)) == Some(NEXT)
        };
        assert!(passes(stranger, id, 255));
        for entry in [CORRESPONDENT, PREVIOUS] {
            assert!(passes(entry, id, 62), "{entry}");
            assert!(passes(entry, id, 62), "{entry}: a link has copied it");
            assert!(!passes(entry, id, 59), "{entry}: it has come back");
            assert!(passes(entry, 100 + id, 59), "{entry}: another one, on a longer path");
        }
    }
}
