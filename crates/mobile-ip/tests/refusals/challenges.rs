//! Tests of challenges (RFC 4721).

use super::*;
use mobile_ip::message::Extension;
use wire::Duration;

/// Runs the timers of an agent until its next advertisement. Returns the time and the challenge.
fn advertised(agent: &mut impl Role) -> (Instant, Vec<u8>) {
    let now = agent.deadline().unwrap();
    let effects = give(agent, now, Input::Timeout);
    let challenge = effects.iter().find_map(|effect| match effect {
        Effect::Send(_, packet) => {
            let (header, payload) = Header::parse(&packet.bytes).unwrap();
            Advertisement::parse(&header, payload).ok()?.challenge
        }
        _ => None,
    });
    (now, challenge.unwrap())
}

/// Gives a foreign agent a request at `now` with this challenge. The request has the Identification of the time `ms`. If
/// the request is relayed, the home agent accepts it. Returns the reply to the mobile node.
fn challenged(agent: &mut ForeignAgent, now: Instant, ms: u64, challenge: Option<&[u8]>) -> Reply {
    let mut asked = request(Instant::from_millis(ms), HOME);
    asked.extensions.extend(challenge.map(|bytes| Extension::challenge(bytes.to_vec())));
    asked.sign(Between::MobileForeign, &association());
    let effects = heard(agent, now, 1, MOBILE, packet(HOME, VISITED, &asked.emit()));
    reply_in(&effects).unwrap_or_else(|| {
        let effects = heard(agent, now, UP, ATTACKER, reply_to(&asked, AGENT));
        reply_in(&effects).unwrap()
    })
}

#[test]
fn a_challenge_is_accepted_once_while_it_is_one_of_the_last() {
    let peers =
        format!("challenge = true\nmobile_nodes = [{{ address = \"{HOME}\", spi = 256, key = \"{KEY}\" }}]");
    let mut agent = foreign_agent(&peers).unwrap();
    start(&mut agent);
    let (_, first) = advertised(&mut agent);
    let (now, second) = advertised(&mut agent);
    assert_ne!(first, second);
    let later = |ms| now + Duration::from_millis(ms);
    let missing = challenged(&mut agent, now, 1000, None);
    assert_eq!(missing.code, Code::MissingChallenge);
    // The denial contains the newest challenge, authenticated.
    assert!(missing.verify(Between::MobileForeign, &association()));
    assert_eq!(missing.challenge(), Some(second.as_slice()));
    assert_eq!(challenged(&mut agent, later(1100), 2000, Some(&[7; 8])).code, Code::UnknownChallenge);
    // A challenge without a Mobile-Foreign Authentication is of no use.
    let mut asked = request(Instant::from_millis(3000), HOME);
    asked.extensions.push(Extension::challenge(first.clone()));
    let bytes = packet(HOME, VISITED, &asked.emit());
    let effects = heard(&mut agent, later(2200), 1, MOBILE, bytes);
    assert_eq!(code_sent(&effects), Some(Code::MobileFailed));
    let accepted = challenged(&mut agent, later(3300), 4000, Some(&first));
    assert_eq!(accepted.code, Code::Accepted);
    let issued = accepted.challenge().unwrap().to_vec();
    assert!(accepted.verify(Between::MobileForeign, &association()) && issued != second);
    // The visitor has used the challenge. The denial contains the one for the next request.
    let stale = challenged(&mut agent, later(4400), 5000, Some(&first));
    assert_eq!((stale.code, stale.challenge()), (Code::StaleChallenge, Some(issued.as_slice())));
    // That one is valid for this visitor although it was not advertised.
    assert_eq!(challenged(&mut agent, later(5500), 6000, Some(&issued)).code, Code::Accepted);
    // Two advertisements later, the second challenge is not valid any more.
    advertised(&mut agent);
    assert_eq!(challenged(&mut agent, later(6600), 7000, Some(&second)).code, Code::Accepted);
    let (_, last) = advertised(&mut agent);
    advertised(&mut agent);
    advertised(&mut agent);
    assert_eq!(challenged(&mut agent, later(9900), 9000, Some(&last)).code, Code::UnknownChallenge);
}

/// A challenge is used by each request, also by one that the home agent denies (RFC 4721, section 3.2). The denial has the
/// challenge for the next request. A repetition of a request that waits is relayed again.
#[test]
fn a_denied_request_has_used_its_challenge() {
    let peers =
        format!("challenge = true\nmobile_nodes = [{{ address = \"{HOME}\", spi = 256, key = \"{KEY}\" }}]");
    let mut agent = foreign_agent(&peers).unwrap();
    start(&mut agent);
    let (now, challenge) = advertised(&mut agent);
    let later = |ms| now + Duration::from_millis(ms);
    let mut asked = request(Instant::from_millis(1000), HOME);
    asked.extensions.push(Extension::challenge(challenge.clone()));
    asked.sign(Between::MobileForeign, &association());
    for _ in 0..2 {
        let effects = heard(&mut agent, now, 1, MOBILE, packet(HOME, VISITED, &asked.emit()));
        assert_eq!(code_sent(&effects), None, "{effects:?}");
    }
    // Another request with the same Identification is no repetition.
    let mut other = Request { lifetime: asked.lifetime - 1, extensions: Vec::new(), ..asked.clone() };
    other.sign(Between::MobileHome, &association());
    other.extensions.push(Extension::challenge(challenge.clone()));
    other.sign(Between::MobileForeign, &association());
    let effects = heard(&mut agent, now, 1, MOBILE, packet(HOME, VISITED, &other.emit()));
    assert_eq!(code_sent(&effects), Some(Code::StaleChallenge));
    let mut denial = asked.reply(Code::IdentificationMismatch);
    denial.sign(Between::MobileHome, &association());
    let effects = heard(&mut agent, later(100), UP, ATTACKER, packet(AGENT, VISITED, &denial.emit()));
    let denied = reply_in(&effects).unwrap();
    let issued = denied.challenge().unwrap().to_vec();
    assert_eq!(denied.code, Code::IdentificationMismatch);
    assert_ne!(issued, challenge);
    // Neither the same request nor another one can use it again.
    let effects = heard(&mut agent, later(1200), 1, MOBILE, packet(HOME, VISITED, &asked.emit()));
    assert_eq!(code_sent(&effects), Some(Code::StaleChallenge));
    let stale = challenged(&mut agent, later(2300), 2000, Some(&challenge));
    assert_eq!((stale.code, stale.challenge()), (Code::StaleChallenge, Some(issued.as_slice())));
    assert_eq!(challenged(&mut agent, later(3400), 3000, Some(&issued)).code, Code::Accepted);
    // A request that this agent denies has used its challenge, too.
    let (_, challenge) = advertised(&mut agent);
    let mut long = request(Instant::from_millis(5000), HOME);
    long.lifetime = u16::MAX;
    long.extensions.clear();
    long.sign(Between::MobileHome, &association());
    long.extensions.push(Extension::challenge(challenge.clone()));
    long.sign(Between::MobileForeign, &association());
    let effects = heard(&mut agent, later(4500), 1, MOBILE, packet(HOME, VISITED, &long.emit()));
    assert_eq!(code_sent(&effects), Some(Code::LifetimeTooLong));
    assert_eq!(challenged(&mut agent, later(5600), 6000, Some(&challenge)).code, Code::StaleChallenge);
}

/// Solicitations must not make challenges invalid: any host can send them.
#[test]
fn solicitations_repeat_the_newest_challenge() {
    let peers =
        format!("challenge = true\nmobile_nodes = [{{ address = \"{HOME}\", spi = 256, key = \"{KEY}\" }}]");
    let mut agent = foreign_agent(&peers).unwrap();
    start(&mut agent);
    let (now, newest) = advertised(&mut agent);
    let solicitation =
        mobile_ip::message::Solicitation { src: HOME, dst: mobile_ip::message::ALL_ROUTERS }.emit();
    for _ in 0..10 {
        let effects = heard(&mut agent, now, 1, MOBILE, solicitation.clone());
        let answers = effects.iter().filter_map(|effect| match effect {
            Effect::Send(_, packet) => {
                let (header, payload) = Header::parse(&packet.bytes).unwrap();
                Advertisement::parse(&header, payload).ok()?.challenge
            }
            _ => None,
        });
        assert_eq!(answers.collect::<Vec<_>>(), std::slice::from_ref(&newest));
    }
    assert_eq!(challenged(&mut agent, now, 1000, Some(&newest)).code, Code::Accepted);
    let mut again = foreign_agent(&peers).unwrap();
    give(&mut again, now, Input::Start(&Boot::new(WALL)));
    let up = Link::Up { cell: None, mac: MOBILE, mtu: 1500, name: "any" };
    give(&mut again, now, Input::Link(Iface(1), up));
    assert_ne!(advertised(&mut again).1, newest, "after a restart, the challenges differ");
    refused(foreign_agent("challenge = true"), "`challenge`", "mobile_nodes");
    refused(foreign_agent("challenge_window = 0"), "`challenge_window`", "from 1 to 16");
}

#[test]
fn a_mobile_node_answers_the_challenges_of_agents_that_it_has_a_key_for() {
    let at = Instant::from_millis;
    let agent = Mac([2, 0, 0, 0, 0, 3]);
    let asked = |effects: &[Effect]| {
        effects.iter().find_map(|effect| match effect {
            Effect::Send(_, packet) => match Received::parse(&packet.bytes).ok()?.message {
                Registration::Request(request) => Some(request),
                Registration::Reply(_) => None,
            },
            _ => None,
        })
    };
    let said = Advertisement { challenge: Some(vec![5; 8]), ..foreign_advertisement() };
    let mut without = mobile_node("").unwrap();
    start(&mut without);
    let request = asked(&heard(&mut without, at(1000), 1, agent, said.emit())).unwrap();
    assert!(!request.has_challenge());
    let peers = format!("foreign_agents = [{{ address = \"{VISITED}\", spi = 256, key = \"{KEY}\" }}]");
    let mut node = mobile_node(&peers).unwrap();
    start(&mut node);
    let request = asked(&heard(&mut node, at(1000), 1, agent, said.emit())).unwrap();
    assert_eq!(request.challenge(), Some(&[5; 8][..]));
    assert!(request.verify(Between::MobileForeign, &association()));
    // A denial with a challenge is answered at once, once.
    let denial = |request: &Request, signed: bool| {
        let mut reply = request.reply(Code::StaleChallenge);
        reply.extensions.push(Extension::challenge(vec![6; 8]));
        if signed {
            reply.sign(Between::MobileForeign, &association());
        }
        packet(VISITED, HOME, &reply.emit())
    };
    assert_eq!(asked(&heard(&mut node, at(1100), 1, agent, denial(&request, false))), None);
    let second = asked(&heard(&mut node, at(1100), 1, agent, denial(&request, true))).unwrap();
    assert_eq!(second.challenge(), Some(&[6; 8][..]));
    assert_eq!(asked(&heard(&mut node, at(1200), 1, agent, denial(&second, true))), None);
}
