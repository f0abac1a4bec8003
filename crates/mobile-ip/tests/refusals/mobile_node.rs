//! Tests of a mobile node that no longer hears its agent, that loses its link, or that gets unauthenticated replies.

use super::*;
use node::Value;
use wire::Reason;

/// The link address of the foreign agent.
const VISITED_MAC: Mac = Mac([2, 0, 0, 0, 0, 3]);
/// The link address of the home agent.
const HOME_MAC: Mac = Mac([2, 0, 0, 0, 0, 2]);

/// Returns the requests that these effects send.
fn requests(effects: &[Effect]) -> Vec<Request> {
    let request = |effect: &Effect| match effect {
        Effect::Send(_, packet) => match Received::parse(&packet.bytes).ok()?.message {
            Registration::Request(request) => Some(request),
            Registration::Reply(_) => None,
        },
        _ => None,
    };
    effects.iter().filter_map(request).collect()
}

fn is_registered(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| matches!(effect, Effect::Do(Act::Mark(mark)) if mark.name == "registered"))
}

/// Any host on the link can send a denial. An unauthenticated denial must not end the wait for the home agent's reply.
#[test]
fn a_denial_of_unknown_origin_does_not_end_the_wait() {
    let now = Instant::from_millis(1000);
    let (mut node, request) = asked(now);
    let agent = Mac([2, 0, 0, 0, 0, 3]);
    let denial = request.reply(Code::ForeignResources);
    heard(&mut node, now, 1, agent, packet(VISITED, HOME, &denial.emit()));
    let mut reply = request.reply(Code::Accepted);
    reply.lifetime = 300;
    reply.sign(Between::MobileHome, &association());
    let effects = heard(&mut node, now, 1, agent, packet(VISITED, HOME, &reply.emit()));
    let registered =
        |effect: &Effect| matches!(effect, Effect::Do(Act::Mark(mark)) if mark.name == "registered");
    assert!(effects.iter().any(registered), "{effects:?}");
}

/// At home, a mobile node must ignore a denial with a foreign agent's code, because no foreign agent is used there.
#[test]
fn a_denial_of_a_foreign_agent_is_none_at_home() {
    let at = Instant::from_millis;
    let mut node = mobile_node("").unwrap();
    start(&mut node);
    let asked = requests(&heard(&mut node, at(1000), 1, HOME_MAC, home_advertisement(3).emit()));
    let [request] = asked.as_slice() else { panic!("{asked:?}") };
    let denial = request.reply(Code::ForeignUnspecified);
    let effects = heard(&mut node, at(1100), 1, ATTACKER, packet(AGENT, HOME, &denial.emit()));
    let denied = |effect: &Effect| matches!(effect, Effect::Do(Act::Mark(mark)) if mark.name == "denied");
    assert!(!effects.iter().any(denied), "{effects:?}");
    assert_eq!(counted(&node, "unexpected_message"), 1);
    assert_eq!(node.status().get("state"), Some(&Value::from("registering")));
}

/// A mobile node must ignore a reply for another home address. A home agent may use the same key for all mobile nodes.
#[test]
fn a_reply_to_another_mobile_node_is_none() {
    let now = Instant::from_millis(1000);
    let (mut node, request) = asked(now);
    let mut reply = Reply { home: Ipv4Addr::new(10, 1, 0, 9), ..request.reply(Code::Accepted) };
    reply.sign(Between::MobileHome, &association());
    let effects = heard(&mut node, now, 1, VISITED_MAC, packet(VISITED, HOME, &reply.emit()));
    assert!(!is_registered(&effects), "{effects:?}");
    assert_eq!(counted(&node, "stale_reply"), 1);
}

/// A registration must not last longer than the lifetime that the mobile node requested.
#[test]
fn a_reply_that_grants_more_than_was_asked_for_lasts_as_long_as_was_asked_for() {
    let now = Instant::from_millis(1000);
    let (mut node, request) = asked(now);
    let mut reply = request.reply(Code::Accepted);
    reply.lifetime = 600;
    reply.sign(Between::MobileHome, &association());
    let effects = heard(&mut node, now, 1, VISITED_MAC, packet(VISITED, HOME, &reply.emit()));
    assert!(is_registered(&effects), "{effects:?}");
    assert_eq!((request.lifetime, node.status().get("lifetime_s")), (300, Some(&Value::Int(300))));
}

/// A reply may arrive when most of the granted lifetime has passed. Then the renewal is due at once, but it must wait until
/// 1 s after the reply: otherwise, each reply would cause a request.
#[test]
fn a_late_reply_does_not_cause_constant_renewal() {
    let at = Instant::from_millis;
    let (mut node, request) = asked(at(1000));
    let mut reply = Reply { lifetime: 2, ..request.reply(Code::Accepted) };
    reply.sign(Between::MobileHome, &association());
    let effects = heard(&mut node, at(1900), 1, VISITED_MAC, packet(VISITED, HOME, &reply.emit()));
    assert!(is_registered(&effects), "{effects:?}");
    assert_eq!(requests(&time_passes(&mut node, at(2900))), []);
    assert_eq!(requests(&time_passes(&mut node, at(2901))).len(), 1);
}

/// An unauthenticated denial must not end the wait for the reply if another agent is heard. When the wait ends, the
/// next request must go to the other agent.
#[test]
fn a_denial_of_unknown_origin_turns_a_node_to_another_agent_only_when_the_wait_is_over() {
    let at = Instant::from_millis;
    let other = Ipv4Addr::new(10, 3, 0, 9);
    let denied = || {
        let (mut node, _) = asked(at(1000));
        for (src, mac) in [(VISITED, VISITED_MAC), (other, ATTACKER)] {
            heard(&mut node, at(1500), 1, mac, of_subnet(src).emit());
        }
        // The second request waits for its reply until 4000 ms. The pause between registrations has ended.
        let request = requests(&time_passes(&mut node, at(2500))).pop().unwrap();
        let denial = request.reply(Code::ForeignResources);
        let effects = heard(&mut node, at(2500), 1, ATTACKER, packet(VISITED, HOME, &denial.emit()));
        assert!(!effects.iter().any(asks), "{effects:?}");
        (node, request)
    };
    let (mut node, request) = denied();
    let mut reply = request.reply(Code::Accepted);
    reply.lifetime = 300;
    reply.sign(Between::MobileHome, &association());
    let effects = heard(&mut node, at(2600), 1, VISITED_MAC, packet(VISITED, HOME, &reply.emit()));
    assert!(is_registered(&effects), "{effects:?}");

    let (mut node, _) = denied();
    assert!(!time_passes(&mut node, at(4000)).iter().any(asks));
    let agents: Vec<_> = time_passes(&mut node, at(4001)).iter().filter_map(asked_agent).collect();
    assert_eq!(agents, [other.to_string()]);
}

/// After an unauthenticated denial with a shorter lifetime (code 69), the home agent's reply must still be accepted.
/// When the wait ends, the next request must ask the same agent for the shorter lifetime.
#[test]
fn a_limit_of_unknown_origin_does_not_end_the_wait() {
    let at = Instant::from_millis;
    let other = Ipv4Addr::new(10, 3, 0, 9);
    let denied = || {
        let (mut node, request) = asked(at(1000));
        for (src, mac) in [(VISITED, VISITED_MAC), (other, ATTACKER)] {
            heard(&mut node, at(1050), 1, mac, of_subnet(src).emit());
        }
        let denial = Reply { lifetime: 60, ..request.reply(Code::LifetimeTooLong) };
        let effects = heard(&mut node, at(1100), 1, ATTACKER, packet(VISITED, HOME, &denial.emit()));
        assert!(!effects.iter().any(asks), "{effects:?}");
        (node, request)
    };
    let (mut node, request) = denied();
    let mut reply = Reply { lifetime: 300, ..request.reply(Code::Accepted) };
    reply.sign(Between::MobileHome, &association());
    let effects = heard(&mut node, at(1200), 1, VISITED_MAC, packet(VISITED, HOME, &reply.emit()));
    assert!(is_registered(&effects), "{effects:?}");
    assert_eq!(node.status().get("lifetime_s"), Some(&Value::Int(300)));

    let (mut node, _) = denied();
    assert_eq!(requests(&time_passes(&mut node, at(2000))), []);
    let next = time_passes(&mut node, at(2001));
    assert_eq!(next.iter().filter_map(asked_agent).collect::<Vec<_>>(), [VISITED.to_string()]);
    assert_eq!(requests(&next).iter().map(|request| request.lifetime).collect::<Vec<_>>(), [60]);
    assert_eq!(requests(&time_passes(&mut node, at(4000))), [], "it was the second request: twice the wait");
}

fn home_advertisement(lifetime: u16) -> Advertisement {
    let flags = AgentFlags::HOME;
    let own = Advertisement { src: AGENT, routers: vec![(AGENT, 0)], flags, ..foreign_advertisement() };
    Advertisement { lifetime, care_of: Vec::new(), sequence: 7, ..own }
}

/// Returns the default route of the mobile node's own packets; `None` if these effects do not set it.
fn leaves_by(effects: &[Effect]) -> Option<node::Action> {
    effects.iter().rev().find_map(|effect| match effect {
        Effect::Do(Act::Route(key, Some(route))) if key.dst == wire::Prefix::ANY => Some(route.action),
        _ => None,
    })
}

/// At home, a mobile node is an ordinary host: it must still send packets when it no longer hears its home agent.
#[test]
fn a_silent_home_agent_does_not_cut_off_a_node_at_home() {
    let mut node = mobile_node("").unwrap();
    start(&mut node);
    let now = Instant::from_millis(1000);
    let at_home = heard(&mut node, now, 1, ATTACKER, home_advertisement(3).emit());
    assert!(matches!(leaves_by(&at_home), Some(node::Action::Forward(_))));
    let mut effects = Vec::new();
    while let Some(due) = node.deadline().filter(|due| *due < Instant::from_millis(20_000)) {
        effects.extend(give(&mut node, due, Input::Timeout));
    }
    let lost = |effect: &Effect| matches!(effect, Effect::Do(Act::Mark(mark)) if mark.name == "agent_lost");
    assert!(effects.iter().any(lost), "the agent is lost");
    assert_eq!(leaves_by(&effects), None, "and its packets leave as before");
}

/// A mobile node must return home when it hears its home agent, even if the home agent's last advertisement has not
/// expired and so the home agent is not new.
#[test]
fn a_quick_return_home_is_noticed_by_the_first_advertisement() {
    let mut node = mobile_node("link_trigger = false\nmovement = \"ecs\"").unwrap();
    start(&mut node);
    heard(&mut node, Instant::from_millis(1000), 1, ATTACKER, home_advertisement(3).emit());
    let away = Instant::from_millis(2100);
    assert!(leaves_by(&heard(&mut node, away, 1, MOBILE, foreign_advertisement().emit())).is_some());
    let back = heard(&mut node, Instant::from_millis(3200), 1, ATTACKER, home_advertisement(3).emit());
    let hop = node::Hop::mac(Iface(1), ATTACKER);
    assert_eq!(leaves_by(&back), Some(node::Action::Forward(hop)));
}

/// If the link comes up for the second time within 500 ms, the node must register when these 500 ms have passed. It
/// must not wait for the end of the pause between registrations.
#[test]
fn a_second_hint_counts_when_the_link_has_been_quiet() {
    let mut node = mobile_node("").unwrap();
    start(&mut node);
    let up = Link::Up { cell: None, mac: MOBILE, mtu: 1500, name: "air" };
    let at = Instant::from_millis;
    give(&mut node, at(10_000), Input::Link(Iface(1), up));
    heard(&mut node, at(10_010), 1, Mac([2, 0, 0, 0, 0, 3]), foreign_advertisement().emit());
    give(&mut node, at(10_400), Input::Link(Iface(1), up));
    let other = Ipv4Addr::new(10, 4, 0, 1);
    let second = Advertisement { src: other, care_of: vec![other], ..foreign_advertisement() };
    let hop = node::Hop::mac(Iface(1), ATTACKER);
    assert_eq!(leaves_by(&heard(&mut node, at(10_410), 1, ATTACKER, second.emit())), None);
    let effects = give(&mut node, at(10_500), Input::Timeout);
    assert_eq!(leaves_by(&effects), Some(node::Action::Forward(hop)), "{effects:?}");
}

/// After the link came up, a reply ends movement detection if no advertisement was heard before it.
#[test]
fn a_reply_shows_that_the_agent_is_on_the_link() {
    let mut node = mobile_node("link_trigger = false").unwrap();
    start(&mut node);
    let at = Instant::from_millis;
    let effects = heard(&mut node, at(1000), 1, Mac([2, 0, 0, 0, 0, 3]), foreign_advertisement().emit());
    let request = requests(&effects).remove(0);
    give(
        &mut node,
        at(1010),
        Input::Link(Iface(1), Link::Up { cell: None, mac: MOBILE, mtu: 1500, name: "air" }),
    );
    let mut reply = request.reply(Code::Accepted);
    reply.lifetime = 60;
    reply.sign(Between::MobileHome, &association());
    let effects =
        heard(&mut node, at(1040), 1, Mac([2, 0, 0, 0, 0, 3]), packet(VISITED, HOME, &reply.emit()));
    let is_heard =
        |effect: &Effect| matches!(effect, Effect::Do(Act::Mark(mark)) if mark.name == "agent_heard");
    assert!(effects.iter().any(is_heard), "{effects:?}");
}

/// The pause between registrations ends after the link came up elsewhere. The agent that waited for this is not heard
/// there, so it does not end movement detection.
#[test]
fn a_timer_ends_no_movement_detection() {
    let mut node = mobile_node("link_trigger = false\nmovement = \"ecs\"").unwrap();
    start(&mut node);
    let at = Instant::from_millis;
    heard(&mut node, at(1000), 1, VISITED_MAC, foreign_advertisement().emit());
    let other = Ipv4Addr::new(10, 4, 0, 1);
    let second = Advertisement { src: other, care_of: vec![other], ..foreign_advertisement() };
    heard(&mut node, at(1500), 1, ATTACKER, second.emit());
    let up = Link::Up { cell: None, mac: MOBILE, mtu: 1500, name: "air" };
    give(&mut node, at(1600), Input::Link(Iface(1), up));
    let is_heard =
        |effect: &Effect| matches!(effect, Effect::Do(Act::Mark(mark)) if mark.name == "agent_heard");
    let effects = time_passes(&mut node, at(2001));
    assert!(leaves_by(&effects).is_some(), "the node registers with the agent that waited: {effects:?}");
    assert!(!effects.iter().any(is_heard), "{effects:?}");
    let effects = heard(&mut node, at(2100), 1, ATTACKER, second.emit());
    assert!(effects.iter().any(is_heard), "{effects:?}");
}

/// Returns a mobile node that is registered through a foreign agent for 60 s from 1000 ms on. The reply took 40 ms.
fn registered_away() -> MobileNode {
    let (mut node, request) = asked(Instant::from_millis(1000));
    let now = Instant::from_millis(1040);
    let mut reply = request.reply(Code::Accepted);
    reply.lifetime = 60;
    reply.sign(Between::MobileHome, &association());
    let effects = heard(&mut node, now, 1, Mac([2, 0, 0, 0, 0, 3]), packet(VISITED, HOME, &reply.emit()));
    let registered =
        |effect: &Effect| matches!(effect, Effect::Do(Act::Mark(mark)) if mark.name == "registered");
    assert!(effects.iter().any(registered), "{effects:?}");
    node
}

/// Lets all timeouts before `until` happen, and returns their effects.
fn time_passes(role: &mut impl Role, until: Instant) -> Vec<Effect> {
    let mut effects = Vec::new();
    while let Some(due) = role.deadline().filter(|due| *due < until) {
        effects.extend(give(role, due, Input::Timeout));
    }
    effects
}

/// If a foreign agent is no longer heard, the visitor's packets must still leave through this agent. They must do so
/// until the registration ends, another agent is heard, the link changes, or the agent advertises lifetime 0.
#[test]
fn a_silent_agent_does_not_cut_off_its_visitor() {
    let at = Instant::from_millis;
    let dropped = Some(node::Action::Drop(Reason("no_agent")));
    let silent = || {
        let mut node = registered_away();
        let effects = time_passes(&mut node, at(10_000));
        let lost =
            |effect: &Effect| matches!(effect, Effect::Do(Act::Mark(mark)) if mark.name == "agent_lost");
        assert!(effects.iter().any(lost), "the agent is lost");
        assert_eq!(leaves_by(&effects), None, "and packets leave by it as before");
        node
    };
    assert_eq!(leaves_by(&time_passes(&mut silent(), at(60_999))), None);
    assert_eq!(leaves_by(&time_passes(&mut silent(), at(61_001))), dropped, "the registration is over");
    let other = Ipv4Addr::new(10, 4, 0, 1);
    let second = Advertisement { src: other, care_of: vec![other], ..foreign_advertisement() };
    let effects = heard(&mut silent(), at(10_000), 1, ATTACKER, second.emit());
    assert_eq!(leaves_by(&effects), Some(node::Action::Forward(node::Hop::mac(Iface(1), ATTACKER))));
    let removed = |effect: &Effect| matches!(effect, Effect::Do(Act::Neighbor(_, VISITED, None)));
    assert!(effects.iter().any(removed), "{effects:?}");
    let up = Link::Up { cell: None, mac: MOBILE, mtu: 1500, name: "air" };
    for link in [up, Link::Down(Link::NO_CARRIER)] {
        assert_eq!(leaves_by(&give(&mut silent(), at(10_000), Input::Link(Iface(1), link))), dropped);
    }
    let ends = Advertisement { lifetime: 0, ..foreign_advertisement() };
    let agent = Mac([2, 0, 0, 0, 0, 3]);
    assert_eq!(leaves_by(&heard(&mut silent(), at(10_000), 1, agent, ends.emit())), dropped);
    assert_eq!(leaves_by(&heard(&mut registered_away(), at(2000), 1, agent, ends.emit())), dropped);
}

/// If the home agent does not answer, a mobile node that was registered before must repeat its request at least every 8
/// s.
#[test]
fn after_the_first_registration_the_wait_is_bounded() {
    let mut node = registered_away();
    let mut sent = Vec::new();
    for second in 1..120 {
        let effects = time_passes(&mut node, Instant::from_millis(1000 + second * 1000));
        sent.extend(effects.iter().filter(|effect| asks(effect)).map(|_| second));
        keep_heard(&mut node, Instant::from_millis(1000 + second * 1000));
    }
    let longest = sent.windows(2).map(|two| two[1] - two[0]).max();
    assert_eq!(longest, Some(8), "{sent:?}");
    assert!(sent.len() > 9, "{sent:?}");
}

/// A round trip of zero must count as known: the longest wait for a later reply is then 8 s and not 64 s.
#[test]
fn a_reply_in_the_instant_of_the_request_counts_as_a_registration() {
    let now = Instant::from_millis(1000);
    let (mut node, request) = asked(now);
    let mut reply = request.reply(Code::Accepted);
    reply.lifetime = 60;
    reply.sign(Between::MobileHome, &association());
    heard(&mut node, now, 1, Mac([2, 0, 0, 0, 0, 3]), packet(VISITED, HOME, &reply.emit()));
    let mut sent = Vec::new();
    for second in 1..120 {
        let effects = time_passes(&mut node, Instant::from_millis(1000 + second * 1000));
        sent.extend(effects.iter().filter(|effect| asks(effect)).map(|_| second));
        keep_heard(&mut node, Instant::from_millis(1000 + second * 1000));
    }
    assert_eq!(sent.windows(2).map(|two| two[1] - two[0]).max(), Some(8), "{sent:?}");
}

fn asks(effect: &Effect) -> bool {
    matches!(effect, Effect::Do(Act::Mark(mark)) if mark.name == "request_sent")
}

/// Returns the agent to which a request is sent; `None` if the effect is not the mark of a request.
fn asked_agent(effect: &Effect) -> Option<String> {
    let Effect::Do(Act::Mark(mark)) = effect else { return None };
    let (_, agent) = mark.fields.iter().find(|(name, _)| mark.name == "request_sent" && *name == "agent")?;
    agent.as_text().map(str::to_owned)
}

/// Returns an advertisement of an agent in 10.3.0.0/24. A second agent in the same subnet is no reason to move.
fn of_subnet(src: Ipv4Addr) -> Advertisement {
    let own = Advertisement { src, care_of: vec![src], routers: vec![(src, 0)], ..foreign_advertisement() };
    Advertisement { prefix_lengths: Some(vec![24]), ..own }
}

/// If the agent does not answer and another agent is heard, the node must register through the other agent after three
/// requests.
#[test]
fn after_three_requests_without_an_answer_another_agent_is_asked() {
    let at = Instant::from_millis;
    let (mut node, _) = asked(at(1000));
    let other = Ipv4Addr::new(10, 3, 0, 9);
    let mut requests = vec![VISITED.to_string()];
    for tenth in 11..150 {
        let now = at(tenth * 100);
        requests.extend(time_passes(&mut node, now).iter().filter_map(asked_agent));
        if tenth % 10 == 0 {
            let mut effects = heard(&mut node, now, 1, Mac([2, 0, 0, 0, 0, 3]), of_subnet(VISITED).emit());
            effects.extend(heard(&mut node, now, 1, ATTACKER, of_subnet(other).emit()));
            requests.extend(effects.iter().filter_map(asked_agent));
        }
    }
    let number = |agent: Ipv4Addr| {
        let named = agent.to_string();
        requests.iter().take_while(|to| **to == named).count()
    };
    assert_eq!(number(VISITED), 3, "{requests:?}");
    assert_eq!(requests.get(3), Some(&other.to_string()), "{requests:?}");
}

// --- a registration lifetime of 0 --------------------------------------------------------------------------------------

/// Advertisements are not authenticated: any host on the link can send an advertisement with the agent's address and a
/// registration lifetime of 0. Such an advertisement must not make a visitor of the agent deregister. The visitor's
/// next request must have the same lifetime as its first request.
#[test]
fn an_advertised_registration_lifetime_of_zero_ends_no_registration() {
    let at = Instant::from_millis;
    let mut node = registered_away();
    let none = Advertisement { registration_lifetime: 0, ..foreign_advertisement() };
    let counted_on = Advertisement { sequence: 300, ..foreign_advertisement() };
    heard(&mut node, at(1500), 1, VISITED_MAC, counted_on.emit());
    // The sequence number is as after a restart of the agent, so that the node registers at once.
    let forged = Advertisement { sequence: 1, ..none.clone() };
    let asked = requests(&heard(&mut node, at(3000), 1, VISITED_MAC, forged.emit()));
    assert_eq!(asked.iter().map(|request| request.lifetime).collect::<Vec<_>>(), [300]);
    // The agent itself advertises a registration lifetime of 0 until the registration of the visitor is to be renewed.
    let mut node = registered_away();
    let mut effects = Vec::new();
    for second in 2..60 {
        effects.extend(time_passes(&mut node, at(second * 1000)));
        effects.extend(heard(&mut node, at(second * 1000), 1, VISITED_MAC, none.emit()));
    }
    let lifetimes: Vec<u16> = requests(&effects).iter().map(|request| request.lifetime).collect();
    assert!(!lifetimes.is_empty() && lifetimes.iter().all(|lifetime| *lifetime == 300), "{lifetimes:?}");
    assert_eq!(node.status().get("care_of"), Some(&Value::from(VISITED)));
}

/// An advertisement with an ICMP lifetime of 0 means that the agent stops (RFC 1256, section 4.3). Advertisements are
/// not authenticated, so each such advertisement must be counted for the operator.
#[test]
fn an_agent_that_is_said_to_have_left_is_counted() {
    let mut node = registered_away();
    assert_eq!(counted(&node, "agent_left"), 0);
    let left = Advertisement { lifetime: 0, ..foreign_advertisement() };
    heard(&mut node, Instant::from_millis(3000), 1, VISITED_MAC, left.emit());
    assert_eq!(counted(&node, "agent_left"), 1);
    assert_eq!(node.status().get("state"), Some(&Value::from("searching")));
}

/// Another host advertises with the address of the agent in use. It must not get the packets of the mobile node, as long as
/// the agent is heard. After the link came up again, the agent may be another one.
#[test]
fn an_agent_that_is_heard_keeps_its_link_address() {
    let mut node = registered_away();
    let forged = |sequence, lifetime| Advertisement { sequence, lifetime, ..foreign_advertisement() }.emit();
    let at = Instant::from_millis;
    for (sequence, lifetime) in [(0, 3), (300, 3), (0, 0)] {
        assert!(requests(&heard(&mut node, at(3000), 1, ATTACKER, forged(sequence, lifetime))).is_empty());
    }
    assert_eq!(counted(&node, "agent_link_address"), 3);
    assert_eq!(counted(&node, "agent_left"), 0);
    assert_eq!(node.status().get("state"), Some(&Value::from("registered")));
    let up = Link::Up { cell: None, mac: MOBILE, mtu: 1500, name: "air" };
    give(&mut node, at(3500), Input::Link(Iface(1), up));
    assert_eq!(requests(&heard(&mut node, at(3600), 1, ATTACKER, forged(1, 3))).len(), 1);
    assert_eq!(counted(&node, "agent_link_address"), 3);
}

/// An agent that takes no registrations must never be chosen. It must not be the first agent, and must not replace an
/// agent that is no longer heard. If an agent stops taking registrations during the pause between registrations, it
/// must not be chosen after the pause.
#[test]
fn an_agent_that_takes_no_registrations_is_not_turned_to() {
    let at = Instant::from_millis;
    let none = Advertisement { registration_lifetime: 0, ..foreign_advertisement() };
    let mut node = mobile_node("").unwrap();
    start(&mut node);
    assert_eq!(requests(&heard(&mut node, at(1000), 1, VISITED_MAC, none.emit())), []);
    let again = requests(&heard(&mut node, at(2000), 1, VISITED_MAC, foreign_advertisement().emit()));
    assert_eq!(again.len(), 1, "it takes registrations again");

    let other = Ipv4Addr::new(10, 4, 0, 1);
    let second = Advertisement { src: other, care_of: vec![other], ..foreign_advertisement() };
    let none = Advertisement { registration_lifetime: 0, ..second.clone() };
    let mut node = registered_away();
    for second in 2..10 {
        let mut effects = time_passes(&mut node, at(second * 1000));
        effects.extend(heard(&mut node, at(second * 1000), 1, ATTACKER, none.emit()));
        assert_eq!(requests(&effects), [], "after {second} s");
        assert_eq!(leaves_by(&effects), None, "after {second} s");
    }

    // The agent is heard during the pause between registrations, and stops taking registrations before the pause ends.
    let mut node = registered_away();
    for said in [&second, &none] {
        assert_eq!(requests(&heard(&mut node, at(1100), 1, ATTACKER, said.emit())), []);
    }
    let effects = time_passes(&mut node, at(3000));
    assert_eq!(requests(&effects), []);
    assert_eq!(node.status().get("care_of"), Some(&Value::from(VISITED)));
}

/// An agent that takes registrations again must count as new. So the node must move to this agent, even while the
/// present agent is still heard.
#[test]
fn an_agent_that_takes_registrations_again_is_new() {
    let at = Instant::from_millis;
    let other = Ipv4Addr::new(10, 4, 0, 1);
    let second = Advertisement { src: other, care_of: vec![other], ..foreign_advertisement() };
    let none = Advertisement { registration_lifetime: 0, ..second.clone() };
    let not_foreign = Advertisement { flags: AgentFlags::HOME, care_of: Vec::new(), ..second.clone() };
    let busy = Advertisement { flags: AgentFlags::FOREIGN | AgentFlags::BUSY, ..second.clone() };
    for unusable in [none, not_foreign, busy] {
        let mut node = registered_away();
        assert_eq!(requests(&heard(&mut node, at(3000), 1, ATTACKER, unusable.emit())), []);
        let effects = heard(&mut node, at(4000), 1, ATTACKER, second.emit());
        let agents: Vec<_> = effects.iter().filter_map(asked_agent).collect();
        assert_eq!(agents, [other.to_string()], "{unusable:?}");
        // The next advertisement of the same agent causes no second request.
        assert_eq!(requests(&heard(&mut node, at(5500), 1, ATTACKER, second.emit())), []);
    }
}

/// A mobile node must not request more than the agent advertises (RFC 5944, section 3.6.1.2), and must not wait longer for a
/// reply than the lifetime that it has requested (section 3.6.3).
#[test]
fn a_short_advertised_lifetime_limits_the_request_and_the_wait() {
    let mut node = mobile_node("").unwrap();
    start(&mut node);
    let advertisement = Advertisement { registration_lifetime: 3, lifetime: 60, ..foreign_advertisement() };
    let mut now = Instant::from_millis(1000);
    let mut effects = heard(&mut node, now, 1, VISITED_MAC, advertisement.emit());
    let mut sent = Vec::new();
    while now < Instant::from_millis(20_000) {
        let asked = requests(&effects);
        assert!(asked.iter().all(|request| request.lifetime == 3), "{asked:?}");
        sent.extend(asked.iter().map(|_| now));
        now = node.deadline().unwrap();
        effects = give(&mut node, now, Input::Timeout);
    }
    let waits: Vec<_> = sent.windows(2).map(|pair| pair[1].since(pair[0]).as_millis()).collect();
    assert_eq!(waits, [1000, 2000, 3000, 3000, 3000, 3000, 3000]);
}

/// Away from home, a mobile node must not broadcast ARP messages (RFC 5944, section 4.6). So it must not repeat the
/// announcements of its return when it has left again.
#[test]
fn a_node_that_has_left_home_again_announces_nothing() {
    let at = Instant::from_millis;
    let is_arp = |effect: &Effect| matches!(effect, Effect::Send(_, packet) if packet.link.kind == wire::EtherType::ARP);
    for leaves in [false, true] {
        let mut node = mobile_node("link_trigger = false\nmovement = \"ecs\"").unwrap();
        start(&mut node);
        let up = Link::Up { cell: None, mac: MOBILE, mtu: 1500, name: "air" };
        give(&mut node, at(500), Input::Link(Iface(1), up));
        let effects = heard(&mut node, at(1000), 1, HOME_MAC, home_advertisement(30).emit());
        assert!(effects.iter().any(is_arp), "the return is announced");
        time_passes(&mut node, at(2100));
        if leaves {
            heard(&mut node, at(2100), 1, VISITED_MAC, foreign_advertisement().emit());
        }
        assert_eq!(time_passes(&mut node, at(4500)).iter().any(is_arp), !leaves, "{leaves}");
    }
}

/// The source of a request is the home address, or the co-located care-of address (RFC 5944, section 3.6.1.1). Its time to
/// live is 255 (RFC 3024, section 4.3.1).
#[test]
fn a_request_comes_from_the_address_that_it_must_come_from() {
    let header = |effects: &[Effect]| {
        effects.iter().find_map(|effect| match effect {
            Effect::Send(_, packet) if Received::parse(&packet.bytes).is_ok() => {
                Header::parse(&packet.bytes).ok().map(|(header, _)| (header.src, header.dst, header.ttl))
            }
            _ => None,
        })
    };
    let now = Instant::from_millis(1000);
    let mut node = mobile_node("").unwrap();
    start(&mut node);
    let effects = heard(&mut node, now, 1, VISITED_MAC, foreign_advertisement().emit());
    assert_eq!(header(&effects), Some((HOME, VISITED, 255)));
    let own = "care_of = 'configured'\nnetworks = [{ address = '10.3.0.77/24', router = '10.3.0.9' }]";
    let mut node = mobile_node(own).unwrap();
    start(&mut node);
    let up = Link::Up { cell: None, mac: MOBILE, mtu: 1500, name: "air" };
    give(&mut node, now, Input::Link(Iface(1), up));
    let effects = time_passes(&mut node, Instant::from_millis(1500));
    assert_eq!(header(&effects), Some((Ipv4Addr::new(10, 3, 0, 77), AGENT, 255)));
}

/// The times of solicitations must be random, must not be less than 1 s apart, and must be further apart with each
/// solicitation after the third (RFC 5944, section 2.4).
#[test]
fn solicitations_are_sent_at_random_times() {
    let pauses = |seed| {
        let config: MobileNodeConfig = table(MOBILE_NODE, "").try_into().unwrap();
        let mut node = MobileNode::new(config, Interfaces(&["air".to_owned()]), Rng::new(seed)).unwrap();
        start(&mut node);
        let mut now = Instant::from_millis(1000);
        let up = Link::Up { cell: None, mac: MOBILE, mtu: 1500, name: "air" };
        let mut effects = give(&mut node, now, Input::Link(Iface(1), up));
        let mut sent = Vec::new();
        while sent.len() < 9 {
            let is_sent = effects.iter().any(|effect| matches!(effect, Effect::Send(..)));
            sent.extend(is_sent.then_some(now));
            now = node.deadline().unwrap();
            effects = give(&mut node, now, Input::Timeout);
        }
        sent.windows(2).map(|pair| pair[1].since(pair[0]).as_millis()).collect::<Vec<_>>()
    };
    let (one, other) = (pauses(1), pauses(2));
    let nominal = [1000, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000];
    for ((one, other), nominal) in one.iter().zip(&other).zip(nominal) {
        assert_ne!(one, other);
        assert!(
            [one, other].into_iter().all(|pause| (nominal..nominal * 5 / 4).contains(pause)),
            "{nominal}"
        );
    }
}

/// A reply must arrive by the interface of the role: a host on another link must not answer for the agent.
#[test]
fn a_reply_by_another_interface_is_none() {
    let now = Instant::from_millis(1000);
    let (mut node, request) = asked(now);
    let mut reply = request.reply(Code::Accepted);
    reply.sign(Between::MobileHome, &association());
    let bytes = packet(VISITED, HOME, &reply.emit());
    assert!(!is_registered(&heard(&mut node, now, 2, VISITED_MAC, bytes.clone())));
    assert_eq!(counted(&node, "unexpected_message"), 1);
    assert!(is_registered(&heard(&mut node, now, 1, VISITED_MAC, bytes)));
}
