//! Tests of a foreign agent that receives floods of requests from made-up link and home addresses.

use super::*;

const fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

/// Returns a made-up link address.
const fn forged(number: u16) -> Mac {
    Mac([2, 0, 9, 0, (number >> 8) as u8, number as u8])
}

const fn home(number: u16) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, (number >> 8) as u8, number as u8)
}

/// Returns the address of a made-up home agent.
const fn nowhere(number: u16) -> Ipv4Addr {
    Ipv4Addr::new(10, 78, (number >> 8) as u8, number as u8)
}

fn agent(pending: usize) -> ForeignAgent {
    let mut agent = foreign_agent(&format!("pending = {pending}")).unwrap();
    start(&mut agent);
    agent
}

/// Gives the foreign agent a request, and returns whether the agent relays it.
fn ask(agent: &mut ForeignAgent, now: Instant, mac: Mac, asked: &Request) -> bool {
    let effects = heard(agent, now, 1, mac, packet(asked.home, VISITED, &asked.emit()));
    effects.iter().any(|effect| matches!(effect, Effect::Send(None, _)))
}

/// Gives the foreign agent the home agent's reply, and returns whether the agent relays it to the mobile node.
fn answer(agent: &mut ForeignAgent, now: Instant, asked: &Request) -> bool {
    code_sent(&heard(agent, now, UP, ATTACKER, reply_to(asked, asked.home_agent))) == Some(Code::Accepted)
}

/// Registers a mobile node through the foreign agent.
fn visit(agent: &mut ForeignAgent, now: Instant, mac: Mac, asked: &Request) {
    assert!(ask(agent, now, mac, asked) && answer(agent, now, asked));
}

/// At most 4 requests from one link address may wait. Requests from another link address for a mobile node's home
/// address must not prevent a request of the mobile node.
#[test]
fn one_link_address_cannot_take_all_places() {
    let mut agent = foreign_agent("pending = 256").unwrap();
    start(&mut agent);
    let now = Instant::from_millis(1000);
    let ask = |agent: &mut ForeignAgent, home: Ipv4Addr, mac: Mac, number: u64| {
        let request = Request { identification: number, ..request(now, home) };
        code_sent(&heard(agent, now, 1, mac, packet(home, VISITED, &request.emit())))
    };
    for number in 0..2 {
        assert_eq!(ask(&mut agent, HOME, ATTACKER, number), None);
    }
    for number in 2..4 {
        assert_eq!(ask(&mut agent, Ipv4Addr::new(10, 1, 1, number as u8), ATTACKER, number), None);
    }
    assert_eq!(ask(&mut agent, Ipv4Addr::new(10, 1, 1, 9), ATTACKER, 9), Some(Code::ForeignResources));
    assert_eq!(ask(&mut agent, HOME, MOBILE, 10), None);
}

/// If the home agents do not answer, the oldest request that has waited for 250 ms must be dropped for a newer one, but
/// only if the maximum number of requests wait.
#[test]
fn a_request_that_has_waited_for_long_gives_way_to_a_newer_one() {
    let mut agent = agent(8);
    let asked = |number: u16| request(at(1000 + u64::from(number)), home(number));
    for number in 0..8 {
        assert!(ask(&mut agent, at(1000 + u64::from(number)), forged(number), &asked(number)));
    }
    assert!(!ask(&mut agent, at(1249), MOBILE, &request(at(1249), HOME)));
    assert_eq!(counted(&agent, "no_place"), 1);
    let honest = request(at(1250), HOME);
    assert!(ask(&mut agent, at(1250), MOBILE, &honest));
    assert_eq!((counted(&agent, "gave_way"), counted(&agent, "no_place")), (1, 1));
    // The reply to the mobile node's request is relayed. The first request of the flood was dropped.
    assert!(answer(&mut agent, at(1290), &honest));
    assert!(!answer(&mut agent, at(1290), &asked(0)));
    assert!(answer(&mut agent, at(1290), &asked(1)));
}

/// If 4 requests from a link address wait, a request that has waited for 250 ms must be dropped for a newer one from
/// this address.
#[test]
fn a_link_address_gives_way_to_itself() {
    let mut agent = agent(256);
    for number in 0..4 {
        assert!(ask(&mut agent, at(1000), ATTACKER, &request(at(1000), home(number))));
    }
    assert!(!ask(&mut agent, at(1249), ATTACKER, &request(at(1249), home(4))));
    assert!(ask(&mut agent, at(1250), ATTACKER, &request(at(1250), home(5))));
}

/// A flood of requests that have only the visitor's link address, or only its home address, must not prevent the
/// visitor from renewing its registration.
#[test]
fn a_visitor_renews_its_registration_during_any_flood() {
    let mut agent = agent(8);
    visit(&mut agent, at(1000), MOBILE, &request(at(1000), HOME));
    let other_home_agent = Request { home_agent: nowhere(1), ..request(at(1100), HOME) };
    for number in 0..100 {
        ask(&mut agent, at(2000), forged(number), &request(at(2000), home(number)));
        ask(&mut agent, at(2000), MOBILE, &request(at(2000), home(200 + number)));
        let asked = Request { identification: 7 + u64::from(number), ..other_home_agent.clone() };
        ask(&mut agent, at(2000), MOBILE, &asked);
        ask(&mut agent, at(2000), forged(number), &request(at(2000 + u64::from(number)), HOME));
    }
    let renewed = request(at(2500), HOME);
    assert!(ask(&mut agent, at(2001), MOBILE, &renewed));
    for number in 0..100 {
        ask(&mut agent, at(2001), MOBILE, &request(at(2001), home(500 + number)));
        ask(&mut agent, at(2001), forged(300 + number), &request(at(2001), home(300 + number)));
    }
    assert!(answer(&mut agent, at(2002), &renewed));
    // Two requests of the visitor wait. A third request replaces the first of them.
    let next = [3110, 4220, 5330].map(|ms| request(at(ms), HOME));
    assert!(next.iter().all(|asked| ask(&mut agent, at(2003), MOBILE, asked)));
    assert!(!answer(&mut agent, at(2003), &next[0]) && answer(&mut agent, at(2003), &next[1]));
}

/// The maximum number of requests waits, and more than half of them have unknown home agents. A request with a home
/// agent that has answered before must then immediately replace one of those with unknown home agents. In a flood with
/// a known home agent, a request with an unknown home agent must still be relayed.
#[test]
fn a_newcomer_of_a_home_agent_that_answers_takes_the_place_of_one_that_nothing_is_known_of() {
    let mut known = agent(8);
    visit(&mut known, at(1000), MOBILE, &request(at(1000), HOME));
    let unknown = |number: u16| Request { home_agent: nowhere(number), ..request(at(2000), home(number)) };
    for number in 0..8 {
        assert!(ask(&mut known, at(2000), forged(number), &unknown(number)));
    }
    assert!(!ask(&mut known, at(2000), forged(8), &unknown(8)));
    for number in 20..24 {
        assert!(ask(&mut known, at(2000), forged(number), &request(at(2000), home(number))), "{number}");
    }
    assert!(!ask(&mut known, at(2000), forged(24), &request(at(2000), home(24))), "more than its half");

    let mut flooded = agent(8);
    visit(&mut flooded, at(1000), MOBILE, &request(at(1000), HOME));
    for number in 20..28 {
        assert!(ask(&mut flooded, at(2000), forged(number), &request(at(2000), home(number))));
    }
    assert!(ask(&mut flooded, at(2000), forged(0), &unknown(0)));
    assert!(!ask(&mut flooded, at(2000), forged(28), &request(at(2000), home(28))));
    assert!(answer(&mut flooded, at(2040), &unknown(0)));
}

/// If made-up home agents use all packet classes, a mobile node of a known home agent must become a visitor at once. A
/// mobile node of an unknown home agent must become a visitor when the other requests have waited for 250 ms.
#[test]
fn home_agents_that_do_not_answer_give_way_to_others() {
    let mut agent = agent(1024);
    let visitor = request(at(1000), HOME);
    visit(&mut agent, at(1000), MOBILE, &visitor);
    let leaves = Request { lifetime: 0, ..request(at(1001), HOME) };
    visit(&mut agent, at(1001), MOBILE, &leaves);
    let unknown = |number: u16| Request { home_agent: nowhere(number), ..request(at(2000), home(number)) };
    let relayed = (0..500).filter(|number| ask(&mut agent, at(2000), forged(*number), &unknown(*number)));
    let relayed = relayed.count();
    assert!((100..200).contains(&relayed), "{relayed}");
    let returns = request(at(2001), HOME);
    visit(&mut agent, at(2001), MOBILE, &returns);
    let newcomer = Request { home_agent: nowhere(600), ..request(at(2250), home(600)) };
    assert!(!ask(&mut agent, at(2249), forged(600), &newcomer));
    visit(&mut agent, at(2250), forged(600), &newcomer);
    assert_eq!(counted(&agent, "gave_way"), 2);
    assert_eq!(counted(&agent, "no_place"), 501 - i64::try_from(relayed).unwrap());
}
