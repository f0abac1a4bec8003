//! Hosts that have recorded requests of a mobile node and the replies to them, and send them again, as they are or changed.

use super::handoffs::{ATTACKER, NEXT, PREVIOUS, UP, agent, at, receives_from, signed_update};
use super::*;
use mobile_ip::message::{Binding, DistributedKey, KeyScope, Numbers};

/// The foreign agent gets the keys of its visitors from their home agent.
const DISTRIBUTED: &str = r#"
    smooth_handoff = true
    distributed_keys = true
    buffer = { packets = 4, drain = "paced", rate = "8kb/s" }
    home_agents = [{ address = "10.1.0.2", spi = 400, key = "ffeeddccbbaa99887766554433221100" }]
"#;
/// The foreign agent has associations with the mobile node and its home agent.
const CONFIGURED: &str = r#"
    smooth_handoff = true
    buffer = { packets = 4, drain = "paced", rate = "8kb/s" }
    mobile_nodes = [{ address = "10.1.0.7", spi = 256, key = "000102030405060708090a0b0c0d0e0f" }]
    home_agents = [{ address = "10.1.0.2", spi = 400, key = "ffeeddccbbaa99887766554433221100" }]
"#;

/// Returns a request of the mobile node, authenticated to the foreign agent if that is configured.
fn asked(changes: &str, ms: u64) -> Request {
    let mut asked = request(at(ms), HOME);
    if changes == CONFIGURED {
        asked.sign(Between::MobileForeign, &association());
    }
    asked
}

/// Returns a key of the attacker, for authentications that no one at this link can check.
fn rogue() -> Association {
    Association { key: "00000000000000000000000000000000".parse().unwrap(), ..association() }
}

fn asks(agent: &mut ForeignAgent, ms: u64, mac: Mac, asked: &Request) {
    heard(agent, at(ms), 1, mac, packet(HOME, VISITED, &asked.emit()));
}

/// Gives the foreign agent the acceptance of a request, with the authentication of the home agent.
fn accepts(agent: &mut ForeignAgent, ms: u64, asked: &Request) -> Vec<Effect> {
    accepts_as(agent, ms, asked, asked.identification)
}

/// Gives the foreign agent the acceptance of a request, with this Identification in the reply.
fn accepts_as(agent: &mut ForeignAgent, ms: u64, asked: &Request, identification: u64) -> Vec<Effect> {
    let key = "ffeeddccbbaa99887766554433221100".parse().unwrap();
    let foreign = Association { spi: 400, algorithm: Algorithm::HmacSha256, key };
    let mut reply =
        Reply { lifetime: asked.lifetime, identification, extensions: vec![], ..asked.reply(Code::Accepted) };
    reply.sign(Between::MobileHome, &association());
    if let Some(scope) = KeyScope::of(asked) {
        let key = DistributedKey::new(&scope, &association(), &foreign);
        reply.extensions.push(key.extension(&Numbers::default()));
    }
    reply.sign(Between::ForeignHome, &foreign);
    heard(agent, at(ms), UP, ATTACKER, packet(AGENT, VISITED, &reply.emit()))
}

/// The mobile node leaves by a Binding Update, whose care-of address is [`HOME`] if nothing is to be forwarded.
fn leaves(agent: &mut ForeignAgent, ms: u64, registered: &Request, care_of: Ipv4Addr) {
    leaves_late(agent, [ms, ms], registered, care_of);
}

/// The same, by a Binding Update that arrives at the first of these instants, and was sent at the second.
fn leaves_late(agent: &mut ForeignAgent, [ms, sent]: [u64; 2], registered: &Request, care_of: Ipv4Addr) {
    let distributed = KeyScope::of(registered).unwrap().association(&association());
    for key in [distributed, association()] {
        let update = Binding::Update(signed_update(at(sent), HOME, care_of, &key));
        let bytes = update.emit(&Numbers::default());
        heard(agent, at(ms), UP, ATTACKER, packet(PREVIOUS, VISITED, &bytes));
    }
}

/// A second home agent of the mobile node.
const SECOND: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 3);

/// Returns a request of `home` to another home agent, signed for this one and for the foreign agent.
fn asked_of(home_agent: Ipv4Addr, home: Ipv4Addr, ms: u64) -> Request {
    let mut other = Request { home_agent, ..request(at(ms), home) };
    other.extensions.clear();
    other.sign(Between::MobileHome, &association());
    other.sign(Between::MobileForeign, &association());
    other
}

fn asked_second(ms: u64) -> Request {
    asked_of(SECOND, HOME, ms)
}

/// The second home agent accepts a request.
fn second_accepts(agent: &mut ForeignAgent, ms: u64, asked: &Request) {
    heard(agent, at(ms), UP, ATTACKER, reply_to(asked, SECOND));
}

/// Returns an agent that the mobile node visits since 1 s, and its request.
fn visited(changes: &str) -> (ForeignAgent, Request) {
    let mut agent = agent(changes);
    let first = asked(changes, 1000);
    asks(&mut agent, 1000, MOBILE, &first);
    accepts(&mut agent, 1010, &first);
    (agent, first)
}

/// Returns the link addresses to which packets go by the visited link in these effects.
fn on_the_link(effects: &[Effect]) -> Vec<Mac> {
    let to = |effect: &Effect| match effect {
        Effect::Send(Some(iface), packet) if iface.0 == 1 => Some(packet.link.dst),
        _ => None,
    };
    effects.iter().filter_map(to).collect()
}

fn visits(agent: &ForeignAgent) -> usize {
    rows(&agent.status(), "visitors", "10.1.0.7").len()
}

/// A home agent answers a repetition of the last accepted request again. After the mobile node has left, such an answer begins no
/// visit: packets are still forwarded, or dropped if it has asked for that. Also if the link address is forged.
#[test]
fn a_request_of_a_visit_that_has_ended_begins_no_other_one() {
    for (changes, care_of) in
        [DISTRIBUTED, CONFIGURED].into_iter().flat_map(|keys| [(keys, NEXT), (keys, HOME)])
    {
        for mac in [ATTACKER, MOBILE] {
            let (mut agent, first) = visited(changes);
            assert_eq!(visits(&agent), 1);
            leaves(&mut agent, 2000, &first, care_of);
            assert_eq!(visits(&agent), 0, "it has left");
            asks(&mut agent, 2050, mac, &first);
            let effects = accepts(&mut agent, 2060, &first);
            assert_eq!((visits(&agent), on_the_link(&effects)), (0, vec![]), "{mac}, {care_of}, {changes}");
            assert_eq!(receives_from(&mut agent, at(2070), AGENT), None);
            // The mobile node comes back with a new request.
            let back = asked(changes, 4123);
            asks(&mut agent, 4123, MOBILE, &back);
            accepts(&mut agent, 4130, &back);
            assert_eq!(visits(&agent), 1, "{mac}, {care_of}, {changes}");
        }
    }
}

/// Kept packets of a mobile node that has left wait for their turn. A host that repeats its request gets none of them.
#[test]
fn kept_packets_that_wait_go_to_no_host_that_repeats_a_request() {
    for changes in [DISTRIBUTED, CONFIGURED] {
        let (mut agent, first) = visited(changes);
        for number in 0..4 {
            receives_from(&mut agent, at(1500 + number * 100), AGENT);
        }
        leaves(&mut agent, 2000, &first, NEXT);
        asks(&mut agent, 2005, ATTACKER, &first);
        let effects = accepts(&mut agent, 2010, &first);
        assert!(on_the_link(&effects).is_empty(), "{changes}");
        give(&mut agent, at(3000), Input::Timeout);
        assert_eq!(visits(&agent), 0);
    }
}

/// The visit of a mobile node does not move by a recorded request and its reply, however many requests came since.
#[test]
fn a_recorded_request_and_its_reply_move_no_visit() {
    for changes in [DISTRIBUTED, CONFIGURED] {
        let mut agent = agent(changes);
        let all: Vec<Request> = (1..=20).map(|second| asked(changes, second * 1000)).collect();
        for (ms, one) in (1000..).step_by(1000).zip(&all) {
            asks(&mut agent, ms, MOBILE, one);
            accepts(&mut agent, ms + 10, one);
        }
        for (ms, one) in (21_000..).step_by(10).zip(&all) {
            asks(&mut agent, ms, ATTACKER, one);
            let effects = accepts(&mut agent, ms + 5, one);
            assert!(on_the_link(&effects).is_empty(), "{changes}");
        }
        assert_eq!(receives_from(&mut agent, at(22_000), AGENT), Some(MOBILE), "{changes}");
        let visitor = &rows(&agent.status(), "visitors", "10.1.0.7")[0];
        assert_eq!(visitor.get("since_unix_s").and_then(node::Value::as_int), Some(946_684_801));
        assert!(counted(&agent, "replayed_reply") + counted(&agent, "repeated_by_another") >= 20);
    }
}

/// A reply is matched by the low half of the Identification. A forged request with the low half of a recorded one, and another high
/// half, is not accepted by the reply to the recorded one.
#[test]
fn a_recorded_reply_accepts_no_forged_request_with_the_same_low_half() {
    let (mut agent, first) = visited(DISTRIBUTED);
    let mut forged = Request { identification: first.identification + (1 << 40), ..first.clone() };
    forged.extensions.clear();
    forged.sign(Between::MobileHome, &rogue());
    asks(&mut agent, 2000, ATTACKER, &forged);
    let effects = accepts(&mut agent, 2010, &first);
    assert_eq!((on_the_link(&effects), counted(&agent, "replayed_reply")), (vec![], 1));
    assert_eq!(visits(&agent), 1);
}

/// With nonces, the reply has another high half than its request. A mobile node with a new link address is admitted all the same.
#[test]
fn with_nonces_a_visit_moves_to_another_link_address() {
    let mut agent = agent(DISTRIBUTED);
    for (ms, mac, identification) in
        [(1000, MOBILE, 9 << 32 | 5), (2000, MOBILE, 7 << 32 | 6), (3000, ATTACKER, 3 << 32 | 7)]
    {
        let mut asked = Request { identification, ..request(at(ms), HOME) };
        asked.extensions.clear();
        asked.sign(Between::MobileHome, &association());
        asks(&mut agent, ms, mac, &asked);
        let effects = accepts_as(&mut agent, ms + 10, &asked, identification ^ (8 << 32));
        assert_eq!(on_the_link(&effects), [mac], "{ms}");
    }
    assert_eq!(counted(&agent, "replayed_reply"), 0);
}

/// A deregistration, and a registration of a co-located care-of address, have no Foreign-Home Authentication. A host on the link that
/// sends both the request and the reply ends no visit of another link address. The visitor itself does.
#[test]
fn a_deregistration_from_another_link_address_ends_no_visit() {
    for (mac, flags, ends) in [
        (ATTACKER, 0, false),
        (ATTACKER, RequestFlags::DECAPSULATION.0, false),
        (MOBILE, 0, true),
        (MOBILE, RequestFlags::DECAPSULATION.0, true),
    ] {
        let (mut agent, _) = visited(DISTRIBUTED);
        let co_located = Ipv4Addr::new(10, 3, 0, 77);
        let is_own = flags != 0;
        let mut forged = Request { flags: RequestFlags(flags), ..request(at(2000), HOME) };
        forged.extensions.clear();
        (forged.lifetime, forged.care_of) = if is_own { (300, co_located) } else { (0, VISITED) };
        forged.sign(Between::MobileHome, &rogue());
        let source = if is_own { co_located } else { HOME };
        heard(&mut agent, at(2000), 1, mac, packet(source, VISITED, &forged.emit()));
        let mut reply = Reply { lifetime: forged.lifetime, ..forged.reply(Code::Accepted) };
        reply.sign(Between::MobileHome, &rogue());
        heard(&mut agent, at(2010), UP, ATTACKER, packet(AGENT, VISITED, &reply.emit()));
        assert_eq!(visits(&agent), usize::from(!ends), "{mac}, {flags}");
        assert_eq!(counted(&agent, "deregistered_by_another"), i64::from(!ends), "{mac}, {flags}");
    }
}

/// The mobile node leaves and comes back. The Binding Update of its first move arrives while its request of the return waits: the reply
/// begins a visit all the same.
#[test]
fn a_late_update_refuses_no_reply_to_a_later_request() {
    for (changes, care_of) in
        [DISTRIBUTED, CONFIGURED].into_iter().flat_map(|keys| [(keys, NEXT), (keys, HOME)])
    {
        let (mut agent, first) = visited(changes);
        let back = asked(changes, 3123);
        asks(&mut agent, 3123, MOBILE, &back);
        leaves_late(&mut agent, [3125, 2000], &first, care_of);
        assert_eq!(visits(&agent), 0, "{care_of}, {changes}");
        accepts(&mut agent, 3130, &back);
        assert_eq!(visits(&agent), 1, "{care_of}, {changes}");
    }
}

/// The mobile node leaves before its request is answered, also that from a new link address. A host that repeats the request gets no
/// visit by the reply, which is under way.
#[test]
fn an_unanswered_request_begins_no_visit_after_the_mobile_node_has_left() {
    for (changes, care_of) in
        [DISTRIBUTED, CONFIGURED].into_iter().flat_map(|keys| [(keys, NEXT), (keys, HOME)])
    {
        for is_first in [true, false] {
            // With distributed keys, a mobile node without an accepted request cannot leave by a Binding Update.
            if is_first && changes == DISTRIBUTED {
                continue;
            }
            let mut agent = agent(changes);
            let first = asked(changes, 1000);
            asks(&mut agent, 1000, MOBILE, &first);
            let mut unanswered = first.clone();
            if !is_first {
                accepts(&mut agent, 1010, &first);
                unanswered = asked(changes, 2123);
                asks(&mut agent, 2123, Mac([2, 0, 0, 0, 0, 8]), &unanswered);
            }
            leaves(&mut agent, 2500, &first, care_of);
            asks(&mut agent, 2600, ATTACKER, &unanswered);
            accepts(&mut agent, 2700, &unanswered);
            assert_eq!(visits(&agent), 0, "{is_first}, {care_of}, {changes}");
            assert_eq!(receives_from(&mut agent, at(2800), AGENT), None, "{is_first}, {care_of}, {changes}");
        }
    }
}

/// The forwarding for a mobile node makes room for that of another one. Its requests are remembered all the same.
#[test]
fn a_request_begins_no_visit_after_the_forwarding_has_made_room() {
    let mut agent = agent(&format!("{DISTRIBUTED}\nvisitors = 1"));
    let first = asked(DISTRIBUTED, 1000);
    asks(&mut agent, 1000, MOBILE, &first);
    accepts(&mut agent, 1010, &first);
    leaves(&mut agent, 2000, &first, NEXT);
    let home = Ipv4Addr::new(10, 1, 0, 8);
    let other = request(at(2100), home);
    heard(&mut agent, at(2100), 1, Mac([2, 0, 0, 0, 0, 8]), packet(home, VISITED, &other.emit()));
    accepts(&mut agent, 2110, &other);
    let key = KeyScope::of(&other).unwrap().association(&association());
    let update = Binding::Update(signed_update(at(2200), home, NEXT, &key)).emit(&Numbers::default());
    heard(&mut agent, at(2200), UP, ATTACKER, packet(PREVIOUS, VISITED, &update));
    let handoffs = agent.status().get("handoffs").cloned().unwrap();
    assert_eq!(rows(&handoffs, "departures", "10.1.0.7").len(), 0, "it has made room");
    asks(&mut agent, 2300, ATTACKER, &first);
    accepts(&mut agent, 2310, &first);
    assert_eq!(visits(&agent), 0);
}

/// A mobile node asks a second home agent, and leaves before the reply. A host that repeats the request gets no visit by that reply.
#[test]
fn an_unanswered_request_to_another_home_agent_begins_no_visit_after_the_mobile_node_has_left() {
    let (mut agent, first) = visited(CONFIGURED);
    let other = asked_second(2123);
    asks(&mut agent, 2123, MOBILE, &other);
    leaves(&mut agent, 2500, &first, NEXT);
    asks(&mut agent, 2600, ATTACKER, &other);
    second_accepts(&mut agent, 2700, &other);
    assert_eq!(visits(&agent), 0);
}

/// A mobile node has returned home. Another one with a key leaves visits of 1100 invented home agents, more than are remembered of one
/// mobile node. A host that repeats the requests of the first one gets no visit all the same, and no earlier
/// Binding Update is accepted. The mobile node comes back with a later request.
#[test]
fn the_visits_of_another_mobile_node_with_a_key_make_no_requests_valid_again() {
    let other = Ipv4Addr::new(10, 1, 0, 8);
    let both = format!(
        "{}\nmobile_nodes = [{{ address = '{HOME}', spi = 256, key = '{KEY}' }},
            {{ address = '{other}', spi = 256, key = '{KEY}' }}]",
        CONFIGURED.lines().filter(|line| !line.contains("mobile_nodes")).collect::<Vec<_>>().join("\n")
    );
    let (mut agent, first) = visited(&both);
    let second = asked(CONFIGURED, 2123);
    asks(&mut agent, 2123, MOBILE, &second);
    leaves(&mut agent, 3000, &first, HOME);
    for number in 0..1100_u32 {
        let ms = 4000 + u64::from(number) * 10;
        let home_agent = Ipv4Addr::from_bits(0x0b00_0001 + number);
        let forged = asked_of(home_agent, other, ms);
        heard(&mut agent, at(ms), 1, ATTACKER, packet(other, VISITED, &forged.emit()));
        let update = Binding::Update(signed_update(at(ms + 1), other, other, &association()));
        let bytes = update.emit(&Numbers::default());
        let effects = heard(&mut agent, at(ms + 1), UP, ATTACKER, packet(PREVIOUS, VISITED, &bytes));
        assert!(format!("{effects:?}").contains("visitor_departed"), "{number}: {effects:?}");
    }
    for (place, repeated) in [&first, &second].into_iter().enumerate() {
        let ms = 16_000 + 100 * place as u64;
        asks(&mut agent, ms, ATTACKER, repeated);
        accepts(&mut agent, ms + 10, repeated);
        assert_eq!(visits(&agent), 0, "request {place}");
    }
    leaves(&mut agent, 16_500, &second, NEXT);
    let handoffs = agent.status().get("handoffs").cloned().unwrap();
    assert_eq!(rows(&handoffs, "departures", "10.1.0.7").len(), 0);
    let back = asked(CONFIGURED, 17_377);
    asks(&mut agent, 17_377, MOBILE, &back);
    accepts(&mut agent, 17_390, &back);
    assert_eq!(visits(&agent), 1);
}

/// A visit of another home agent has ended long ago. Later, a request to this home agent was not answered before the mobile node leaves.
#[test]
fn an_earlier_visit_of_another_home_agent_protects_no_later_one_less() {
    let mut agent = agent(CONFIGURED);
    let other = asked_second(1000);
    asks(&mut agent, 1000, MOBILE, &other);
    second_accepts(&mut agent, 1010, &other);
    assert_eq!(visits(&agent), 1);
    leaves(&mut agent, 2000, &other, HOME);
    assert_eq!(visits(&agent), 0);
    let first = asked(CONFIGURED, 40_000);
    asks(&mut agent, 40_000, MOBILE, &first);
    accepts(&mut agent, 40_010, &first);
    assert_eq!(visits(&agent), 1);
    let other = asked_second(41_123);
    asks(&mut agent, 41_123, MOBILE, &other);
    leaves(&mut agent, 41_500, &first, NEXT);
    assert_eq!(visits(&agent), 0);
    asks(&mut agent, 41_600, ATTACKER, &other);
    second_accepts(&mut agent, 41_700, &other);
    assert_eq!(visits(&agent), 0, "stolen {:?}", receives_from(&mut agent, at(41_800), SECOND));
}

/// So it is if the record of the earlier visit ends soon.
#[test]
fn a_request_counts_for_the_whole_time_after_the_mobile_node_has_left() {
    for care_of in [NEXT, HOME] {
        let mut agent = agent(CONFIGURED);
        let other = asked_second(1000);
        asks(&mut agent, 1000, MOBILE, &other);
        second_accepts(&mut agent, 1010, &other);
        leaves(&mut agent, 2000, &other, HOME);
        let first = asked(CONFIGURED, 28_000);
        asks(&mut agent, 28_000, MOBILE, &first);
        accepts(&mut agent, 28_010, &first);
        let other = asked_second(30_123);
        asks(&mut agent, 30_123, MOBILE, &other);
        leaves(&mut agent, 30_500, &first, care_of);
        asks(&mut agent, 32_100, ATTACKER, &other);
        second_accepts(&mut agent, 32_200, &other);
        assert_eq!(visits(&agent), 0, "{care_of}");
    }
}

/// The agent has dropped the request to the second home agent before the mobile node leaves.
#[test]
fn a_request_that_has_timed_out_begins_no_visit_after_the_mobile_node_has_left() {
    for mac in [ATTACKER, MOBILE] {
        let (mut agent, first) = visited(CONFIGURED);
        let other = asked_second(2123);
        asks(&mut agent, 2123, MOBILE, &other);
        give(&mut agent, at(9200), Input::Timeout);
        leaves(&mut agent, 9500, &first, NEXT);
        asks(&mut agent, 9600, mac, &other);
        second_accepts(&mut agent, 9700, &other);
        assert_eq!(visits(&agent), 0, "{mac} stolen {:?}", receives_from(&mut agent, at(9800), SECOND));
    }
}

/// So it is with a request to the same home agent from a new link address.
#[test]
fn a_request_from_another_link_address_begins_no_visit_after_the_mobile_node_has_left() {
    let (mut agent, first) = visited(CONFIGURED);
    let other = asked(CONFIGURED, 2123);
    asks(&mut agent, 2123, Mac([2, 0, 0, 0, 0, 8]), &other);
    give(&mut agent, at(9200), Input::Timeout);
    leaves(&mut agent, 9500, &first, NEXT);
    asks(&mut agent, 9600, ATTACKER, &other);
    accepts(&mut agent, 9700, &other);
    assert_eq!(visits(&agent), 0, "stolen {:?}", receives_from(&mut agent, at(9800), AGENT));
}

/// The acknowledgment of a repeated Binding Update goes to the new care-of address, also if a request to another home agent was dropped.
#[test]
fn a_repeated_update_is_acknowledged_by_the_tunnel_also_with_a_request_to_another_home_agent() {
    for with_other in [false, true] {
        let (mut agent, _) = visited(CONFIGURED);
        let other = asked_second(2123);
        if with_other {
            asks(&mut agent, 2123, MOBILE, &other);
        }
        let mut update = signed_update(at(2500), HOME, NEXT, &association());
        update.acknowledge = true;
        update.sign(Numbers::default().smooth_authentication, &association(), &Numbers::default());
        let bytes = Binding::Update(update).emit(&Numbers::default());
        for ms in [2500, 4000, 6000] {
            let effects = heard(&mut agent, at(ms), UP, ATTACKER, packet(PREVIOUS, VISITED, &bytes));
            let dst = effects.iter().filter_map(|effect| match effect {
                Effect::Send(_, packet) => wire::ipv4::addresses(&packet.bytes).map(|(_, to)| to),
                _ => None,
            });
            let dst: Vec<_> = dst.collect();
            assert_eq!(dst, [NEXT], "other {with_other} at {ms}");
        }
    }
}

/// Requests that were never answered leave no records of visits, and the bound for one mobile node holds.
#[test]
fn requests_to_many_home_agents_leave_no_records_of_visits() {
    let mut agent = agent(CONFIGURED);
    for round in 1..=200_u64 {
        let ms = round * 4000;
        let first = asked(CONFIGURED, ms);
        asks(&mut agent, ms, MOBILE, &first);
        accepts(&mut agent, ms + 10, &first);
        let second = Ipv4Addr::new(10, 1, 1, round as u8);
        let other = asked_of(second, HOME, ms + 1123);
        asks(&mut agent, ms + 1123, MOBILE, &other);
        leaves(&mut agent, ms + 2000, &first, NEXT);
        give(&mut agent, at(ms + 3000), Input::Timeout);
        assert_eq!(visits(&agent), 0);
    }
    let text = format!("{agent:?}");
    let number = text.matches("Gone {").count();
    assert!(number <= 20, "{number}");
}

/// A Binding Update of before the last one is not accepted because a repeated request to another home agent waits.
#[test]
fn an_earlier_update_is_refused_while_a_repeated_request_to_another_home_agent_waits() {
    let (mut agent, first) = visited(CONFIGURED);
    let other = asked_second(2123);
    asks(&mut agent, 2123, MOBILE, &other);
    leaves(&mut agent, 3000, &first, HOME);
    asks(&mut agent, 3100, ATTACKER, &other);
    leaves_late(&mut agent, [3200, 2500], &first, NEXT);
    let handoffs = agent.status().get("handoffs").cloned().unwrap();
    assert_eq!(rows(&handoffs, "departures", "10.1.0.7").len(), 0);
}
