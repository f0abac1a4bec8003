//! Tests of the order in which agents check requests, and of which association authenticates a message.

use super::*;
use mobile_ip::message::Extension;
use node::Value;

const ALL_HOME_AGENTS: Ipv4Addr = Ipv4Addr::new(10, 1, 255, 255);

/// Returns a request with the Identification of `now` that `change` has changed before it was signed.
fn asked_at(now: Instant, change: impl FnOnce(&mut Request)) -> Request {
    let mut asked = request(now, HOME);
    asked.extensions.clear();
    change(&mut asked);
    asked.sign(Between::MobileHome, &association());
    asked
}

/// Returns an association with the wrong key.
fn wrong() -> Association {
    Association { key: Secret::new([9; 16]), ..association() }
}

/// Returns a home agent with an association with the foreign agent [`VISITED`].
fn home_agent_with_partner(replay: &str) -> HomeAgent {
    let agents = format!("foreign_agents = [{{ address = \"{VISITED}\", spi = 256, key = \"{KEY}\" }}]");
    let nodes = format!(
        "mobile_nodes = [{{ address = \"{HOME}\", spi = 256, key = \"{KEY}\", replay = '{replay}' }}]"
    );
    let mut agent = home_agent(&format!("{agents}\n{nodes}")).unwrap();
    start(&mut agent);
    agent
}

/// Returns a foreign agent with an association with the home agent [`AGENT`].
fn foreign_agent_with_partner() -> ForeignAgent {
    let agents = format!("home_agents = [{{ address = \"{AGENT}\", spi = 256, key = \"{KEY}\" }}]");
    let mut agent = foreign_agent(&agents).unwrap();
    start(&mut agent);
    agent
}

/// Returns the reply to a request from [`VISITED`].
fn answer(agent: &mut HomeAgent, at: u64, asked: &Request) -> Option<Reply> {
    let bytes = packet(VISITED, AGENT, &asked.emit());
    reply_in(&heard(agent, Instant::from_millis(at), UP, MOBILE, bytes))
}

// --- reverse tunnels (RFC 3024) ------------------------------------------------------------------------------------------

/// The kind of tunnel comes before the reverse tunnel, which is the last check (RFC 3024, section 4.3.1).
#[test]
fn a_home_agent_checks_the_reverse_tunnel_last() {
    let mut agent = home_agent("simultaneous_bindings = 1").unwrap();
    start(&mut agent);
    let both = RequestFlags::REVERSE.with(RequestFlags::GRE, true);
    for (second, flags, code) in
        [(1, both, Code::HomeEncapsulation), (3, RequestFlags::REVERSE, Code::HomeReverseTunnel)]
    {
        let asked = asked_at(Instant::from_millis(1000 * second), |asked| asked.flags = flags);
        assert_eq!(answer(&mut agent, 1000 * second, &asked).map(|reply| reply.code), Some(code));
    }
}

/// The order of RFC 3024, section 4.2.1: the kind of tunnel, the delivery style, the distance, the reverse tunnel.
#[test]
fn a_foreign_agent_checks_the_reverse_tunnel_last() {
    let mut agent = foreign_agent("encapsulating_delivery = false").unwrap();
    start(&mut agent);
    let rows = [
        (RequestFlags::GRE, true, 254, Code::ForeignEncapsulation),
        (RequestFlags::default(), true, 254, Code::DeliveryStyle),
        (RequestFlags::default(), false, 254, Code::TooDistant),
        (RequestFlags::default(), false, 255, Code::ForeignReverseTunnel),
    ];
    for (number, (flags, style, ttl, code)) in (1..).zip(rows) {
        let now = Instant::from_millis(2000 * number);
        let mut asked = asked_at(now, |asked| asked.flags = flags.with(RequestFlags::REVERSE, true));
        asked.extensions.extend(style.then(Extension::encapsulating_delivery));
        let [from, to] = sockets(HOME, VISITED);
        let effects = heard(&mut agent, now, 1, MOBILE, datagram(from, to, ttl, &asked.emit()));
        assert_eq!(code_sent(&effects), Some(code), "{flags:?}, {style}, {ttl}");
    }
}

// --- authentications (RFC 5944, section 3.8.2.1) -------------------------------------------------------------------------

/// Step b, the Identification, comes before step c, the Foreign-Home Authentication. The denial has the clock of the home
/// agent.
#[test]
fn a_home_agent_checks_the_identification_before_the_foreign_agent() {
    let mut agent = home_agent_with_partner("timestamps");
    let late = request(Instant::from_millis(60_000), HOME);
    let reply = answer(&mut agent, 1000, &late).unwrap();
    assert_eq!(reply.code, Code::IdentificationMismatch);
    let clock = WALL.plus(Instant::from_millis(1000).since(Instant::ZERO)).to_ntp();
    assert_eq!(reply.identification >> 32, clock >> 32);
    let timely = request(Instant::from_millis(3000), HOME);
    assert_eq!(answer(&mut agent, 3000, &timely).map(|reply| reply.code), Some(Code::ForeignFailed));
    // An accepted request is not repeated to a foreign agent that does not authenticate itself.
    let mut good = request(Instant::from_millis(5000), HOME);
    good.sign(Between::ForeignHome, &association());
    assert_eq!(answer(&mut agent, 5000, &good).map(|reply| reply.code), Some(Code::Accepted));
    let mut other = request(Instant::from_millis(5000), HOME);
    other.sign(Between::ForeignHome, &wrong());
    assert_eq!(answer(&mut agent, 7000, &other).map(|reply| reply.code), Some(Code::ForeignFailed));
    assert_eq!(answer(&mut agent, 9000, &good).map(|reply| reply.code), Some(Code::Accepted));
}

/// A request that is denied because of its foreign agent has used its nonce, if it had the present one. A repetition of an
/// accepted request has not.
#[test]
fn a_request_of_a_wrong_foreign_agent_has_used_its_nonce() {
    let mut agent = home_agent_with_partner("nonces");
    let asked = |nonce: u64, low: u64, by: Option<Association>| {
        let mut asked = asked_at(Instant::ZERO, |asked| asked.identification = nonce << 32 | low);
        if let Some(by) = by {
            asked.sign(Between::ForeignHome, &by);
        }
        asked
    };
    let mut told = |at, asked: &Request| {
        let reply = answer(&mut agent, at, asked).unwrap();
        (reply.code, reply.identification >> 32)
    };
    let (code, first) = told(1000, &asked(1, 1, None));
    assert_eq!(code, Code::IdentificationMismatch);
    let (code, second) = told(3000, &asked(first, 2, Some(wrong())));
    assert_eq!(code, Code::ForeignFailed);
    assert_ne!(second, first);
    let (code, third) = told(5000, &asked(second, 3, Some(association())));
    assert_eq!(code, Code::Accepted);
    assert_eq!(told(7000, &asked(second, 3, Some(wrong()))), (Code::ForeignFailed, third));
}

/// Step a: code 131 is only for requests of a foreign agent that is authentic, or that has no association.
#[test]
fn a_request_without_any_correct_authentication_is_not_answered() {
    let forged = |at, by: Option<Association>| {
        let mut asked = request(Instant::from_millis(at), HOME);
        asked.extensions.clear();
        asked.sign(Between::MobileHome, &wrong());
        if let Some(by) = by {
            asked.sign(Between::ForeignHome, &by);
        }
        asked
    };
    let mut agent = home_agent_with_partner("timestamps");
    assert_eq!(answer(&mut agent, 1000, &forged(1000, Some(wrong()))), None);
    assert_eq!(answer(&mut agent, 3000, &forged(3000, None)), None);
    assert_eq!(counted(&agent, "bad_authentication"), 2);
    let denied = answer(&mut agent, 5000, &forged(5000, Some(association())));
    assert_eq!(denied.map(|reply| reply.code), Some(Code::HomeMobileFailed));
}

// --- discovery of a home agent (RFC 5944, section 3.6.1.2) ---------------------------------------------------------------

/// A foreign agent cannot know which home agent will hear a request to all of them, so it signs it for none. Such a request
/// is denied with the address of the home agent in any case.
#[test]
fn a_home_agent_is_found_through_a_foreign_agent_with_an_association() {
    let now = Instant::from_millis(1000);
    let mut near = foreign_agent_with_partner();
    let mut far = home_agent_with_partner("timestamps");
    let asked = asked_at(now, |asked| asked.home_agent = ALL_HOME_AGENTS);
    let relayed = heard(&mut near, now, 1, MOBILE, packet(HOME, VISITED, &asked.emit()));
    let relayed = relayed.iter().find_map(|effect| match effect {
        Effect::Send(None, packet) => Some(packet.bytes.clone()),
        _ => None,
    });
    let effects = heard(&mut far, now, UP, MOBILE, relayed.unwrap());
    assert_eq!(code_sent(&effects), Some(Code::UnknownHomeAgent));
    let denial = effects.iter().find_map(|effect| match effect {
        Effect::Send(_, packet) => Some(packet.bytes.clone()),
        _ => None,
    });
    let effects = heard(&mut near, now, UP, MOBILE, denial.unwrap());
    assert_eq!(code_sent(&effects), Some(Code::UnknownHomeAgent));
}

/// The association is that of the home agent that replies (RFC 5944, section 3.5.4): only the reply has its address.
#[test]
fn the_denial_of_a_found_home_agent_is_authenticated() {
    for (by, code) in [
        (Some(association()), Code::UnknownHomeAgent),
        (Some(wrong()), Code::HomeFailed),
        (None, Code::HomeFailed),
    ] {
        let now = Instant::from_millis(1000);
        let mut agent = foreign_agent_with_partner();
        let asked = asked_at(now, |asked| asked.home_agent = ALL_HOME_AGENTS);
        heard(&mut agent, now, 1, MOBILE, packet(HOME, VISITED, &asked.emit()));
        let mut reply = Reply { home_agent: AGENT, ..asked.reply(Code::UnknownHomeAgent) };
        reply.sign(Between::MobileHome, &association());
        if let Some(by) = by {
            reply.sign(Between::ForeignHome, &by);
        }
        let effects = heard(&mut agent, now, UP, ATTACKER, packet(AGENT, VISITED, &reply.emit()));
        assert_eq!(code_sent(&effects), Some(code));
    }
    // A reply that names another home agent than the request does not avoid the check.
    let now = Instant::from_millis(1000);
    let mut agent = foreign_agent_with_partner();
    let asked = request(now, HOME);
    heard(&mut agent, now, 1, MOBILE, packet(HOME, VISITED, &asked.emit()));
    let mut reply = Reply { home_agent: Ipv4Addr::new(10, 8, 0, 1), ..asked.reply(Code::Accepted) };
    reply.sign(Between::MobileHome, &association());
    let effects = heard(&mut agent, now, UP, ATTACKER, packet(AGENT, VISITED, &reply.emit()));
    assert_eq!((code_sent(&effects), moved(&effects)), (Some(Code::HomeFailed), false));
}

// --- the foreign agent ---------------------------------------------------------------------------------------------------

/// No home agent answers such a request (RFC 5944, section 3.8.2.1), and all its extensions would have to be removed
/// (section 3.7.2.2).
#[test]
fn a_request_without_an_authentication_is_not_relayed() {
    let now = Instant::from_millis(1000);
    let mut agent = foreign_agent("").unwrap();
    start(&mut agent);
    let mut asked = request(now, HOME);
    asked.extensions.clear();
    let effects = heard(&mut agent, now, 1, MOBILE, packet(HOME, VISITED, &asked.emit()));
    assert_eq!(code_sent(&effects), Some(Code::ForeignBadRequest));
    assert_eq!(agent.status().get("pending").and_then(Value::as_int), Some(0));
}

/// The source of a reply is the address to which the request was sent (RFC 5944, section 3.8.3.1). A forged denial begins no
/// visit, so only acceptances are checked: a denial of a discovered home agent comes from an unknown address.
#[test]
fn an_acceptance_from_another_address_than_the_home_agents_is_dropped() {
    let now = Instant::from_millis(1000);
    let mut agent = foreign_agent("").unwrap();
    start(&mut agent);
    let asked = request(now, HOME);
    heard(&mut agent, now, 1, MOBILE, packet(HOME, VISITED, &asked.emit()));
    let effects = heard(&mut agent, now, UP, ATTACKER, reply_to(&asked, Ipv4Addr::new(10, 8, 0, 1)));
    assert_eq!((code_sent(&effects), moved(&effects)), (None, false));
    assert_eq!(counted(&agent, "not_from_home_agent"), 1);
    // The request waits on for the reply of its home agent.
    let effects = heard(&mut agent, now, UP, ATTACKER, reply_to(&asked, AGENT));
    assert_eq!((code_sent(&effects), moved(&effects)), (Some(Code::Accepted), true));
}
