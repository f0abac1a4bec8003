//! Hosts that claim the home address of a mobile node with another home agent, for example their own, and hosts on the link that
//! change the requests of others.

use super::handoffs::{
    ATTACKER, CORRESPONDENT, DIRECT, NEXT, PREVIOUS, PROVEN, UP, agent, at, receives_from, signed_update,
};
use super::*;
use mobile_ip::message::{Binding, Numbers, PreviousAgent};

/// Home agents of the attacker: one address is below that of the mobile node's home agent, the other above.
const ROGUES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 0, 0, 9), Ipv4Addr::new(203, 0, 113, 9)];
/// The agent has an association with the mobile node's home agent, and with another one.
const TRUSTS: &str = r#"
    smooth_handoff = true
    direct_tunnels = true
    distributed_keys = true
    home_agents = [
        { address = "10.1.0.2", spi = 400, key = "ffeeddccbbaa99887766554433221100" },
        { address = "10.1.0.3", spi = 400, key = "ffeeddccbbaa99887766554433221100" },
    ]
"#;
/// Returns a request to this home agent that names a previous agent, signed for the foreign agent if `proven`.
fn asked(now: Instant, home_agent: Ipv4Addr, previous: Ipv4Addr, proven: bool) -> Request {
    let mut asked = Request { home_agent, ..request(now, HOME) };
    asked.extensions.clear();
    asked.sign(Between::MobileHome, &association());
    let said = PreviousAgent::new(&asked, 30, previous, &association(), &Numbers::default());
    asked.extensions.push(said.extension(&Numbers::default()));
    if proven {
        asked.sign(Between::MobileForeign, &association());
    }
    asked
}

fn asks(agent: &mut ForeignAgent, now: Instant, mac: Mac, asked: &Request) {
    heard(agent, now, 1, mac, packet(HOME, VISITED, &asked.emit()));
}

/// Gives the foreign agent the reply of the home agent of a request, signed by the association with the foreign agent.
fn answers(agent: &mut ForeignAgent, now: Instant, asked: &Request, code: Code) {
    let key = "ffeeddccbbaa99887766554433221100".parse().unwrap();
    let foreign = Association { spi: 400, algorithm: Algorithm::HmacSha256, key };
    let mut reply = asked.reply(code);
    (reply.lifetime, reply.home_agent) = (asked.lifetime, asked.home_agent);
    reply.sign(Between::MobileHome, &association());
    reply.sign(Between::ForeignHome, &foreign);
    heard(agent, now, UP, ATTACKER, packet(asked.home_agent, VISITED, &reply.emit()));
}

fn registers(agent: &mut ForeignAgent, now: Instant, mac: Mac, asked: &Request) {
    asks(agent, now, mac, asked);
    answers(agent, now, asked, Code::Accepted);
}

/// Gives the foreign agent a Binding Update of the mobile node.
fn leaves(agent: &mut ForeignAgent, now: Instant, to: Ipv4Addr) {
    let update = Binding::Update(signed_update(now, HOME, to, &association()));
    heard(agent, now, UP, ATTACKER, packet(PREVIOUS, VISITED, &update.emit(&Numbers::default())));
}

fn get(agent: &mut ForeignAgent, now: Instant) -> [Option<Mac>; 2] {
    [PREVIOUS, CORRESPONDENT].map(|entry| receives_from(agent, now, entry))
}

/// A host registers with the home address of a visitor at its own home agent, names agents, renews, and ends its registration. The
/// visitor gets all packets that it got before. Without `direct_tunnels`, too.
#[test]
fn a_registration_with_another_home_agent_takes_nothing_from_a_visitor() {
    for (keys, rogue) in [DIRECT, TRUSTS].into_iter().flat_map(|keys| ROGUES.map(|rogue| (keys, rogue))) {
        let without = keys.replace("direct_tunnels = true", "");
        for (keys, is_direct) in [(keys, true), (&without, false)] {
            let mut agent = agent(keys);
            registers(&mut agent, at(1000), MOBILE, &asked(at(1000), AGENT, PREVIOUS, false));
            let expected = [Some(MOBILE), is_direct.then_some(MOBILE)];
            assert_eq!(get(&mut agent, at(1001)), expected);
            for (ms, named, lifetime) in
                [(2000, PREVIOUS, 300), (3500, CORRESPONDENT, 300), (5000, PREVIOUS, 0), (6500, PREVIOUS, 0)]
            {
                let forged = Request { lifetime, ..asked(at(ms), rogue, named, false) };
                asks(&mut agent, at(ms), ATTACKER, &forged);
                assert_eq!(get(&mut agent, at(ms))[0], Some(MOBILE), "{rogue}, {ms} ms, before the reply");
                answers(&mut agent, at(ms), &forged, Code::Accepted);
                let got = get(&mut agent, at(ms + 1));
                assert_eq!(got[0], Some(MOBILE), "{rogue}, {ms} ms");
                assert!(
                    got[1] != Some(ATTACKER) || (!is_direct && named == CORRESPONDENT),
                    "{rogue}, {ms} ms"
                );
            }
            assert_eq!(get(&mut agent, at(7000)), expected, "{rogue}, at the end");
        }
    }
}

/// The same after the mobile node has left this agent: it gets the packets at its new care-of address. The Identification of the
/// attacker's request is from the future, and the mobile node comes back all the same.
#[test]
fn a_registration_with_another_home_agent_takes_nothing_from_a_mobile_node_that_has_left() {
    for rogue in ROGUES {
        let mut agent = agent(TRUSTS);
        let first = asked(at(1000), AGENT, PREVIOUS, false);
        asks(&mut agent, at(1000), MOBILE, &first);
        let key = keys_of(&mut agent, at(1010), &first);
        let update = Binding::Update(signed_update(at(2000), HOME, NEXT, &key));
        heard(
            &mut agent,
            at(2000),
            2,
            ATTACKER,
            packet(PREVIOUS, VISITED, &update.emit(&Numbers::default())),
        );
        let forged = Request { ..asked(at(90_000), rogue, PREVIOUS, false) };
        registers(&mut agent, at(3000), ATTACKER, &forged);
        assert_eq!(get(&mut agent, at(3001)), [None; 2], "{rogue}: they are forwarded");
        let mut back = asked(at(4000), AGENT, NEXT, false);
        back.sign(Between::MobileForeign, &key);
        asks(&mut agent, at(4000), MOBILE, &back);
        assert_eq!(receives_from(&mut agent, at(4001), NEXT), Some(MOBILE), "{rogue}");
        assert_eq!(receives_from(&mut agent, at(4001), PREVIOUS), Some(MOBILE), "{rogue}: from before");
    }
}

/// Gives the foreign agent the acceptance of a request with a distributed key. Returns this key.
fn keys_of(agent: &mut ForeignAgent, now: Instant, asked: &Request) -> Association {
    use mobile_ip::message::{DistributedKey, KeyScope};
    let key = "ffeeddccbbaa99887766554433221100".parse().unwrap();
    let foreign = Association { spi: 400, algorithm: Algorithm::HmacSha256, key };
    let scope = KeyScope::of(asked).unwrap();
    let mut reply = asked.reply(Code::Accepted);
    reply.lifetime = asked.lifetime;
    reply.sign(Between::MobileHome, &association());
    reply
        .extensions
        .push(DistributedKey::new(&scope, &association(), &foreign).extension(&Numbers::default()));
    reply.sign(Between::ForeignHome, &foreign);
    heard(agent, now, UP, ATTACKER, packet(asked.home_agent, VISITED, &reply.emit()));
    scope.association(&association())
}

/// A visit with an unknown home agent does not keep a mobile node with a trusted one from its packets before the reply. One with an
/// equally trusted home agent does, and so does each claim of another link address, because any host can write a trusted home agent
/// into a request: the agent does not know which of them is the mobile node.
#[test]
fn an_unknown_home_agent_does_not_switch_off_early_packets() {
    let other = Ipv4Addr::new(10, 1, 0, 3);
    for (home_agent, is_early) in [(ROGUES[0], true), (ROGUES[1], true), (other, false)] {
        for is_accepted in [true, false] {
            let mut agent = agent(&TRUSTS.replace("direct_tunnels = true", ""));
            let forged = asked(at(1000), home_agent, PREVIOUS, false);
            asks(&mut agent, at(1000), ATTACKER, &forged);
            if is_accepted {
                answers(&mut agent, at(1000), &forged, Code::Accepted);
            }
            asks(&mut agent, at(2003), MOBILE, &asked(at(2003), AGENT, NEXT, false));
            let got = receives_from(&mut agent, at(2004), NEXT);
            assert_eq!(got, (is_early && is_accepted).then_some(MOBILE), "{home_agent}, {is_accepted}");
            asks(&mut agent, at(2500), ATTACKER, &asked(at(2505), ROGUES[0], NEXT, false));
            assert_eq!(receives_from(&mut agent, at(2506), NEXT), None, "{home_agent}, {is_accepted}");
        }
    }
}

/// Any host can write a trusted home agent into a request. So it takes no early packets of a mobile node whose home agent is unknown,
/// whether it asks first or last.
#[test]
fn a_trusted_home_agent_in_a_request_takes_no_early_packets() {
    for asks_first in [true, false] {
        let mut agent = agent(&TRUSTS.replace("direct_tunnels = true", ""));
        let ask = |ms, home_agent| asked(at(ms), home_agent, PREVIOUS, false);
        let both = [(ATTACKER, ask(1000, AGENT)), (MOBILE, ask(1003, ROGUES[0]))];
        let order = if asks_first { [0, 1] } else { [1, 0] };
        for (mac, request) in order.map(|at| &both[at]) {
            asks(&mut agent, at(1000), *mac, request);
        }
        assert_eq!(receives_from(&mut agent, at(1001), PREVIOUS), None, "{asks_first}");
    }
}

/// A mobile node turns to another home agent, which has an association with this agent too. It gets the packets of correspondents from
/// its latest link address. With unknown home agents, the first one keeps them.
#[test]
fn of_two_home_agents_the_latest_counts_if_it_is_trusted() {
    let other = Ipv4Addr::new(10, 1, 0, 3);
    for (keys, second, expected) in [
        (TRUSTS, other, ATTACKER),
        (DIRECT, other, MOBILE),
        (TRUSTS, ROGUES[0], MOBILE),
        (DIRECT, ROGUES[0], MOBILE),
    ] {
        let mut agent = agent(keys);
        registers(&mut agent, at(1000), MOBILE, &asked(at(1000), AGENT, PREVIOUS, false));
        registers(&mut agent, at(2000), ATTACKER, &asked(at(2000), second, NEXT, false));
        assert_eq!(receives_from(&mut agent, at(2001), CORRESPONDENT), Some(expected), "{second}");
        assert_eq!(
            receives_from(&mut agent, at(2001), PREVIOUS),
            Some(if keys == DIRECT || second != other { MOBILE } else { ATTACKER })
        );
    }
}

/// A mobile node with two trusted home agents leaves with one of them, and comes back with the other one, with which it has registered
/// here before. It gets all its packets: they are not forwarded to the agent that it has left since.
#[test]
fn of_two_trusted_home_agents_the_one_of_the_latest_request_counts() {
    let second = Ipv4Addr::new(10, 1, 0, 3);
    let keys = format!("{PROVEN}\n{}", TRUSTS.replace("smooth_handoff = true", ""));
    let mut agent = agent(&keys);
    registers(&mut agent, at(1000), MOBILE, &asked(at(1000), second, PREVIOUS, true));
    registers(&mut agent, at(3000), MOBILE, &asked(at(3000), AGENT, PREVIOUS, true));
    leaves(&mut agent, at(5000), NEXT);
    assert_eq!(get(&mut agent, at(5001)), [None; 2], "they are forwarded");
    let back = asked(at(7000), second, NEXT, true);
    asks(&mut agent, at(7000), MOBILE, &back);
    assert_eq!(receives_from(&mut agent, at(7000), NEXT), Some(MOBILE), "before the reply");
    answers(&mut agent, at(7001), &back, Code::Accepted);
    assert_eq!(get(&mut agent, at(7001)), [Some(MOBILE); 2]);
}

/// A host on the link sends a changed copy of a waiting request, from the link address of the mobile node. The copy is dropped. A
/// request that comes whole seconds later has the same low half of the Identification, and is another one.
#[test]
fn a_changed_copy_does_not_take_the_place_of_a_request() {
    for (ms, high, is_taken) in [(1001, 0, false), (1500, 9, false), (2000, 0, false), (2000, 1, true)] {
        let mut agent = agent(DIRECT);
        let honest = asked(at(1000), AGENT, PREVIOUS, false);
        asks(&mut agent, at(1000), MOBILE, &honest);
        let identification = honest.identification + (high << 32);
        let changed = Request { lifetime: 1, identification, ..honest.clone() };
        asks(&mut agent, at(ms), MOBILE, &changed);
        assert_eq!(counted(&agent, "repeated_by_another"), i64::from(!is_taken), "{ms} ms, {high}");
        answers(&mut agent, at(2010), &honest, Code::Accepted);
        give(&mut agent, at(4000), Input::Timeout);
        assert_eq!(receives_from(&mut agent, at(4001), CORRESPONDENT), Some(MOBILE), "{ms} ms, {high}");
    }
}

/// Forged requests from the link address of the mobile node name four other agents. Once it is registered, it gets the packets of its
/// own previous agent.
#[test]
fn what_the_accepted_request_has_named_comes_first() {
    let mut agent = agent(&DIRECT.replace("direct_tunnels = true", ""));
    let honest = asked(at(1000), AGENT, PREVIOUS, false);
    asks(&mut agent, at(1000), MOBILE, &honest);
    for number in 1..=4_u64 {
        let named = Ipv4Addr::new(10, 6, 0, number as u8);
        asks(
            &mut agent,
            at(1000 + 300 * number),
            MOBILE,
            &asked(at(1001 + 300 * number), AGENT, named, false),
        );
    }
    let again = asked(at(2800), AGENT, PREVIOUS, false);
    registers(&mut agent, at(2800), MOBILE, &again);
    assert_eq!(receives_from(&mut agent, at(2801), PREVIOUS), Some(MOBILE));
}

/// The mobile node has left this agent for the next one, and comes back. Before the reply, it gets the packets of the next agent, and
/// those of the agent before.
#[test]
fn a_mobile_node_that_comes_back_gets_the_packets_of_all_earlier_agents() {
    let mut agent = agent(PROVEN);
    registers(&mut agent, at(1000), MOBILE, &asked(at(1000), AGENT, PREVIOUS, true));
    leaves(&mut agent, at(2000), NEXT);
    asks(&mut agent, at(3000), MOBILE, &asked(at(3000), AGENT, NEXT, true));
    for entry in [NEXT, PREVIOUS] {
        assert_eq!(receives_from(&mut agent, at(3001), entry), Some(MOBILE), "{entry}");
    }
}

/// The clock of the mobile node was fast. Its request is denied, and it corrects the clock: the next request is earlier. It gets its
/// packets before the reply, and its next Binding Update is accepted.
#[test]
fn a_denied_request_from_the_future_does_not_hinder_the_corrected_one() {
    let mut agent = agent(PROVEN);
    let fast = asked(at(21_000), AGENT, PREVIOUS, true);
    asks(&mut agent, at(1000), MOBILE, &fast);
    answers(&mut agent, at(1080), &fast, Code::IdentificationMismatch);
    let right = asked(at(1081), AGENT, PREVIOUS, true);
    asks(&mut agent, at(1081), MOBILE, &right);
    assert_eq!(receives_from(&mut agent, at(1090), PREVIOUS), Some(MOBILE));
    answers(&mut agent, at(1160), &right, Code::Accepted);
    assert_eq!(receives_from(&mut agent, at(1170), PREVIOUS), Some(MOBILE));
    leaves(&mut agent, at(3000), NEXT);
    assert_eq!(counted(&agent, "stale_update"), 0);
    assert_eq!(receives_from(&mut agent, at(3001), PREVIOUS), None, "it is forwarded");
}

/// The clock of the mobile node is fast when it comes back, and its first request is lost behind this agent, or denied for another reason.
/// The second one is denied because of its Identification. The corrected one gets its packets before the reply.
#[test]
fn the_corrected_request_of_a_return_gets_its_packets_whichever_request_was_denied() {
    for first_code in [None, Some(Code::HomeResources), Some(Code::IdentificationMismatch)] {
        let mut agent = agent(PROVEN);
        registers(&mut agent, at(1000), MOBILE, &asked(at(1000), AGENT, PREVIOUS, true));
        leaves(&mut agent, at(2000), NEXT);
        for (ms, code) in [(3000, first_code), (4003, Some(Code::IdentificationMismatch))] {
            let fast = asked(at(100_000 + ms), AGENT, NEXT, true);
            asks(&mut agent, at(ms), MOBILE, &fast);
            assert_eq!(receives_from(&mut agent, at(ms + 1), NEXT), Some(MOBILE), "{first_code:?}, {ms} ms");
            if let Some(code) = code {
                answers(&mut agent, at(ms + 80), &fast, code);
            }
        }
        let right = asked(at(4085), AGENT, NEXT, true);
        asks(&mut agent, at(4085), MOBILE, &right);
        assert_eq!(receives_from(&mut agent, at(4090), NEXT), Some(MOBILE), "{first_code:?}");
        // It may leave again before the reply.
        leaves(&mut agent, at(4100), PREVIOUS);
        assert_eq!(counted(&agent, "stale_update"), 0, "{first_code:?}");
        assert_eq!(receives_from(&mut agent, at(4101), NEXT), None, "{first_code:?}: it is forwarded");
    }
}

/// A host denies the request of a mobile node that is back, in the name of the home agent. Until a later request arrives, and after it, an
/// earlier Binding Update or request that was lost on the way does not count.
#[test]
fn a_forged_denial_makes_no_earlier_message_valid() {
    for code in [Code::IdentificationMismatch, Code::HomeResources] {
        let mut agent = agent(PROVEN);
        registers(&mut agent, at(1000), MOBILE, &asked(at(1000), AGENT, PREVIOUS, true));
        leaves(&mut agent, at(2000), NEXT);
        let back = asked(at(3000), AGENT, NEXT, true);
        asks(&mut agent, at(3000), MOBILE, &back);
        let forged = back.reply(code).emit();
        heard(&mut agent, at(3010), UP, ATTACKER, packet(CORRESPONDENT, VISITED, &forged));
        let lost = Binding::Update(signed_update(at(2500), HOME, NEXT, &association()));
        let lost = lost.emit(&Numbers::default());
        heard(&mut agent, at(3040), UP, ATTACKER, packet(PREVIOUS, VISITED, &lost));
        assert_eq!(counted(&agent, "stale_update"), 1, "{code:?}");
        if code != Code::IdentificationMismatch {
            asks(&mut agent, at(3042), ATTACKER, &asked(at(2600), AGENT, NEXT, true));
        }
        asks(&mut agent, at(4000), MOBILE, &asked(at(4000), AGENT, NEXT, true));
        for (ms, message) in [(4001, at(2500)), (4002, at(2900))] {
            let lost = Binding::Update(signed_update(message, HOME, NEXT, &association()));
            let lost = lost.emit(&Numbers::default());
            heard(&mut agent, at(ms), UP, ATTACKER, packet(PREVIOUS, VISITED, &lost));
        }
        assert_eq!(counted(&agent, "stale_update"), 3, "{code:?}");
        asks(&mut agent, at(4003), ATTACKER, &asked(at(2700), AGENT, NEXT, true));
        assert_eq!(receives_from(&mut agent, at(4004), NEXT), Some(MOBILE), "{code:?}");
    }
}

/// After the home agent has accepted a return, a denial of a later request does not make messages from before the return valid.
#[test]
fn a_denial_after_an_accepted_return_makes_no_earlier_message_valid() {
    let mut agent = agent(PROVEN);
    registers(&mut agent, at(1000), MOBILE, &asked(at(1000), AGENT, PREVIOUS, true));
    leaves(&mut agent, at(2000), NEXT);
    registers(&mut agent, at(3000), MOBILE, &asked(at(3000), AGENT, NEXT, true));
    let fast = asked(at(90_000), AGENT, NEXT, true);
    asks(&mut agent, at(4000), MOBILE, &fast);
    answers(&mut agent, at(4080), &fast, Code::IdentificationMismatch);
    asks(&mut agent, at(4090), ATTACKER, &asked(at(2500), AGENT, NEXT, true));
    assert_eq!(receives_from(&mut agent, at(4091), NEXT), Some(MOBILE));
}

/// A host on the link repeats a request from the future that the home agent has denied: before and after the corrected one, after its
/// acceptance, after the mobile node has left, and after it has gone home. It gets no packets.
#[test]
fn a_denied_request_from_the_future_cannot_be_repeated() {
    for steps in 0..5 {
        let mut agent = agent(&format!("{PROVEN}\ndirect_tunnels = true"));
        let fast = asked(at(21_000), AGENT, PREVIOUS, true);
        asks(&mut agent, at(1000), MOBILE, &fast);
        answers(&mut agent, at(1080), &fast, Code::IdentificationMismatch);
        let right = asked(at(1081), AGENT, PREVIOUS, true);
        if steps > 0 {
            asks(&mut agent, at(1081), MOBILE, &right);
        }
        if steps > 1 {
            answers(&mut agent, at(1161), &right, Code::Accepted);
        }
        if steps > 2 {
            leaves(&mut agent, at(3000), if steps == 3 { NEXT } else { HOME });
        }
        asks(&mut agent, at(3001), ATTACKER, &fast);
        let expected = [1, 2].contains(&steps).then_some(MOBILE);
        assert_eq!(receives_from(&mut agent, at(3002), PREVIOUS), expected, "after {steps} steps");
        if steps == 0 {
            asks(&mut agent, at(3003), MOBILE, &asked(at(3003), AGENT, PREVIOUS, true));
            assert_eq!(receives_from(&mut agent, at(3004), PREVIOUS), Some(MOBILE));
        }
    }
}

/// The mobile node asks with a fast clock. Its first request is not answered, or denied for another reason. Then it corrects the clock and is
/// registered. A host on the link repeats the requests from the future, before and after many others: they are not relayed.
#[test]
fn no_request_from_the_future_can_be_repeated_by_another_host() {
    for code in [None, Some(Code::HomeResources)] {
        let mut agent = agent(PROVEN);
        let all = [61_000, 61_500].map(|ms| asked(at(ms), AGENT, PREVIOUS, true));
        for (ms, fast, code) in [(1000, &all[0], code), (1500, &all[1], Some(Code::IdentificationMismatch))] {
            asks(&mut agent, at(ms), MOBILE, fast);
            if let Some(code) = code {
                answers(&mut agent, at(ms + 80), fast, code);
            }
        }
        for second in 2..40 {
            let right = asked(at(1000 * second), AGENT, PREVIOUS, true);
            registers(&mut agent, at(1000 * second), MOBILE, &right);
            // The replay of a used request does not make the agent forget one.
            asks(&mut agent, at(1000 * second + 500), ATTACKER, &right);
            answers(&mut agent, at(1000 * second + 580), &right, Code::IdentificationMismatch);
        }
        let before = counted(&agent, "repeated_by_another");
        for fast in &all {
            asks(&mut agent, at(60_000), ATTACKER, fast);
        }
        assert_eq!(counted(&agent, "repeated_by_another"), before + 2, "{code:?}");
        assert_eq!(receives_from(&mut agent, at(60_001), PREVIOUS), Some(MOBILE), "{code:?}");
    }
}

/// The mobile node repeats its last request without a change, as with nonces, from another link address. It is relayed if the request was
/// not answered, also if another host has sent it first, but no early packets come to the second link address. One of before is not relayed.
#[test]
fn the_last_request_may_come_from_another_link_address() {
    let mut agent = agent(PROVEN);
    let all = [1000, 10_000].map(|ms| asked(at(ms), AGENT, PREVIOUS, true));
    asks(&mut agent, at(1000), MOBILE, &all[0]);
    give(&mut agent, at(9000), Input::Timeout);
    asks(&mut agent, at(9001), ATTACKER, &all[0]);
    assert_eq!(receives_from(&mut agent, at(9002), PREVIOUS), None);
    assert_eq!(counted(&agent, "repeated_by_another"), 0);
    give(&mut agent, at(9999), Input::Timeout);
    asks(&mut agent, at(10_000), ATTACKER, &all[1]);
    give(&mut agent, at(18_000), Input::Timeout);
    registers(&mut agent, at(18_001), MOBILE, &all[1]);
    assert_eq!(counted(&agent, "repeated_by_another"), 0);
    asks(&mut agent, at(19_000), ATTACKER, &all[0]);
    assert_eq!(counted(&agent, "repeated_by_another"), 1);
}

/// The mobile node has left this agent. A host on the link repeats its last request, which was accepted or denied. The home agent would
/// repeat its reply, or accept the request now: it does not get it.
#[test]
fn an_answered_last_request_is_not_relayed_again_from_another_link_address() {
    for code in [Code::Accepted, Code::HomeResources, Code::IdentificationMismatch] {
        let mut agent = agent(PROVEN);
        registers(&mut agent, at(1000), MOBILE, &asked(at(1000), AGENT, PREVIOUS, true));
        let last = asked(at(3000), AGENT, PREVIOUS, true);
        asks(&mut agent, at(3000), MOBILE, &last);
        answers(&mut agent, at(3080), &last, code);
        leaves(&mut agent, at(4000), NEXT);
        registers(&mut agent, at(4010), ATTACKER, &last);
        assert_eq!(counted(&agent, "repeated_by_another"), 1, "{code:?}");
        assert_eq!(receives_from(&mut agent, at(4020), PREVIOUS), None, "{code:?}: it is forwarded");
    }
}

/// The home agent denies the requests of a mobile node that is back, which needs several. A host on the link sends recorded requests and a
/// Binding Update that did not arrive here. The denials of its requests do not make the visit older.
#[test]
fn a_denied_replay_does_not_roll_a_return_back() {
    let mut agent = agent(PROVEN);
    registers(&mut agent, at(1000), MOBILE, &asked(at(1000), AGENT, PREVIOUS, true));
    leaves(&mut agent, at(2000), NEXT);
    for ms in [3000, 5000, 7000, 9000, 11_000] {
        let back = asked(at(ms), AGENT, NEXT, true);
        asks(&mut agent, at(ms), MOBILE, &back);
        answers(&mut agent, at(ms + 80), &back, Code::HomeResources);
    }
    give(&mut agent, at(20_000), Input::Timeout);
    let recorded = asked(at(2500), AGENT, NEXT, true);
    asks(&mut agent, at(20_100), ATTACKER, &recorded);
    answers(&mut agent, at(20_180), &recorded, Code::IdentificationMismatch);
    asks(&mut agent, at(20_200), ATTACKER, &asked(at(2600), AGENT, NEXT, true));
    assert_eq!(receives_from(&mut agent, at(20_201), NEXT), None);
    leaves(&mut agent, at(2700), NEXT);
    assert_eq!(counted(&agent, "stale_update"), 1);
}

/// A host on the link has recorded a request that did not arrive here, and sends it from the link address of the mobile node. It is earlier
/// than the one that waits, and does not take its place.
#[test]
fn an_earlier_request_does_not_take_the_place_of_an_authenticated_one() {
    let mut agent = agent(PROVEN);
    asks(&mut agent, at(2000), MOBILE, &asked(at(2000), AGENT, PREVIOUS, true));
    asks(&mut agent, at(2010), MOBILE, &asked(at(1500), AGENT, NEXT, true));
    assert_eq!(receives_from(&mut agent, at(2011), PREVIOUS), Some(MOBILE));
}

/// The mobile node has returned home. A host on the link repeats its request, and then an earlier Binding Update: nothing is forwarded.
#[test]
fn after_the_return_home_no_earlier_update_is_accepted() {
    let mut agent = agent(PROVEN);
    let first = asked(at(1000), AGENT, PREVIOUS, true);
    registers(&mut agent, at(1000), MOBILE, &first);
    leaves(&mut agent, at(2000), HOME);
    asks(&mut agent, at(3000), ATTACKER, &first);
    let sent = Binding::Update(signed_update(at(1500), HOME, NEXT, &association()));
    heard(&mut agent, at(3001), 2, ATTACKER, packet(PREVIOUS, VISITED, &sent.emit(&Numbers::default())));
    let handoffs = agent.status().get("handoffs").cloned().unwrap();
    assert_eq!(handoffs.get("departures"), Some(&node::Value::Map(Vec::default())), "{handoffs:?}");
}

/// A registration that waits is denied. After its time, the agents that accepted registrations have named are known as before.
#[test]
fn the_end_of_a_claim_is_not_that_of_the_arrival() {
    let mut agent = agent(PROVEN);
    registers(&mut agent, at(1000), MOBILE, &asked(at(1000), AGENT, PREVIOUS, true));
    asks(&mut agent, at(2000), MOBILE, &asked(at(2000), AGENT, NEXT, true));
    let entries = |agent: &ForeignAgent| {
        let handoffs = agent.status().get("handoffs").cloned().unwrap();
        rows(&handoffs, "arrivals", "10.1.0.7").len()
    };
    assert_eq!(entries(&agent), 2);
    give(&mut agent, at(9500), Input::Timeout);
    assert_eq!(entries(&agent), 1);
    assert_eq!(receives_from(&mut agent, at(9501), PREVIOUS), Some(MOBILE));
    assert_eq!(receives_from(&mut agent, at(9501), NEXT), None);
}

/// The mobile node registers from a new link address. With its key, it gets the packets of all agents that it has named. Without one, it
/// gets those of the agents that it has named from this link address.
#[test]
fn a_new_link_address_gets_the_packets_of_earlier_agents_with_a_key() {
    let bare = DIRECT.replace("direct_tunnels = true", "");
    for (keys, is_proven) in [(PROVEN, true), (&bare, false)] {
        let mut agent = agent(keys);
        registers(&mut agent, at(1000), MOBILE, &asked(at(1000), AGENT, PREVIOUS, is_proven));
        registers(&mut agent, at(2500), ATTACKER, &asked(at(2500), AGENT, NEXT, is_proven));
        assert_eq!(receives_from(&mut agent, at(2501), NEXT), Some(ATTACKER));
        assert_eq!(receives_from(&mut agent, at(2501), PREVIOUS), is_proven.then_some(ATTACKER));
    }
}

/// A host claims the mobile node with its own home agent, and names an agent. Then the mobile node registers: it gets no packets out of
/// the tunnel of that agent, and the host gets none either.
#[test]
fn a_claim_before_a_visit_gets_no_packets_after_the_registration() {
    for rogue in ROGUES {
        let mut agent = agent(TRUSTS.replace("direct_tunnels = true", "").as_str());
        asks(&mut agent, at(1000), ATTACKER, &asked(at(1000), rogue, CORRESPONDENT, false));
        registers(&mut agent, at(1010), MOBILE, &asked(at(1010), AGENT, PREVIOUS, false));
        let got = get(&mut agent, at(1030));
        assert_eq!(got, [Some(MOBILE), None], "{rogue}");
    }
}

/// A host claims the mobile node with its own home agent, and then the mobile node registers. The host repeats its claim: it is not
/// renewed, and no route changes.
#[test]
fn a_claim_before_a_visit_is_not_renewed_after_the_registration() {
    for rogue in ROGUES {
        for keys in [TRUSTS, DIRECT] {
            let mut agent = agent(keys);
            asks(&mut agent, at(1000), ATTACKER, &asked(at(1000), rogue, CORRESPONDENT, false));
            registers(&mut agent, at(1010), MOBILE, &request(at(1010), HOME));
            let again = asked(at(2500), rogue, NEXT, false);
            let effects = heard(&mut agent, at(2500), 1, ATTACKER, packet(HOME, VISITED, &again.emit()));
            assert!(!moved(&effects), "{rogue}: {effects:?}");
            assert_eq!(counted(&agent, "no_early_delivery"), 1, "{rogue}");
        }
    }
}

/// A mobile node asks two trusted home agents, from two link addresses. The reply to the earlier request comes last: the later request
/// is the latest message of the mobile node all the same.
#[test]
fn a_late_reply_makes_no_request_the_latest() {
    let second = Ipv4Addr::new(10, 1, 0, 3);
    let mut agent = agent(TRUSTS);
    let first = request(at(1000), HOME);
    asks(&mut agent, at(1000), ATTACKER, &first);
    let mut later = Request { home_agent: second, ..request(at(2123), HOME) };
    later.extensions.clear();
    later.sign(Between::MobileHome, &association());
    asks(&mut agent, at(2123), MOBILE, &later);
    answers(&mut agent, at(2130), &later, Code::Accepted);
    answers(&mut agent, at(2140), &first, Code::Accepted);
    assert_eq!(rows(&agent.status(), "visitors", "10.1.0.7").len(), 2);
    assert_eq!(receives_from(&mut agent, at(3000), CORRESPONDENT), Some(MOBILE));
}
