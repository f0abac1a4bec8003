//! Tests of the codes of denials (RFC 5944, section 3.4): each with the condition that causes it. The transcripts
//! `home-agent-denials`, `foreign-agent-denials` and the `-reverse` ones have the others.

use super::*;
use mobile_ip::message::ALL_AGENTS;

const ROUTER: Mac = Mac([2, 0, 0, 0, 0, 0x11]);

/// Returns a foreign agent to which a mobile node has sent a request, and the request as it was sent.
fn waiting() -> (ForeignAgent, Request) {
    let now = Instant::from_millis(1000);
    let mut agent = foreign_agent("").unwrap();
    start(&mut agent);
    let asked = request(now, HOME);
    heard(&mut agent, now, 1, MOBILE, packet(HOME, VISITED, &asked.emit()));
    (agent, asked)
}

/// Returns an ICMP message of a router about the relayed request.
fn about(asked: &Request, kind: u8, code: u8) -> Vec<u8> {
    let [own, to] = sockets(VISITED, AGENT);
    let mut body = vec![0; 4];
    body.extend_from_slice(&datagram(own, to, 64, &asked.emit())[..60]);
    let icmp = wire::icmp::Message { kind, code, body: &body }.emit();
    Header::new(ipv4::ICMP, Ipv4Addr::new(10, 9, 0, 1), VISITED).emit(&icmp)
}

/// Codes 80 to 82 and 88: an ICMP error about the relayed request shows what is unreachable.
#[test]
fn an_icmp_error_about_a_request_names_what_is_unreachable() {
    let codes = [
        (3, 0, Code::HomeNetUnreachable),
        (3, 1, Code::HomeHostUnreachable),
        (3, 3, Code::HomePortUnreachable),
        (3, 13, Code::HomeUnreachable),
        (11, 0, Code::HomeUnreachable),
    ];
    for (kind, code, expected) in codes {
        let (mut agent, asked) = waiting();
        let error = about(&asked, kind, code);
        let effects = heard(&mut agent, Instant::from_millis(1100), UP, ROUTER, error);
        assert_eq!(code_sent(&effects), Some(expected), "type {kind}, code {code}");
    }
}

/// A router that sends a redirect has forwarded the request. So the request waits on, and the home agent's reply is relayed.
#[test]
fn a_redirect_or_a_source_quench_is_no_denial() {
    for kind in [4, 5] {
        let (mut agent, asked) = waiting();
        let at = Instant::from_millis(1100);
        let effects = heard(&mut agent, at, UP, ROUTER, about(&asked, kind, 1));
        assert_eq!(code_sent(&effects), None, "type {kind}");
        assert_eq!(counted(&agent, "not_a_failure"), 1);
        let effects = heard(&mut agent, at, UP, ROUTER, reply_to(&asked, AGENT));
        assert_eq!(code_sent(&effects), Some(Code::Accepted));
    }
}

/// Code 71: the home agent's reply is malformed, and shows which request it is about. Such a message from the visited link
/// is only dropped: a neighbor could send it.
#[test]
fn a_malformed_reply_ends_the_wait_of_its_request() {
    let (mut agent, asked) = waiting();
    let mut bytes = asked.reply(Code::Accepted).emit();
    bytes.extend_from_slice(&[32, 200, 1]);
    let reply = packet(AGENT, VISITED, &bytes);
    let at = Instant::from_millis(1100);
    assert_eq!(code_sent(&heard(&mut agent, at, 1, ATTACKER, reply.clone())), None);
    let mut other = bytes.clone();
    other[19] ^= 1;
    assert_eq!(code_sent(&heard(&mut agent, at, UP, ROUTER, packet(AGENT, VISITED, &other))), None);
    assert_eq!(code_sent(&heard(&mut agent, at, UP, ROUTER, reply.clone())), Some(Code::BadReply));
    // The request does not wait any more.
    assert_eq!(code_sent(&heard(&mut agent, at, UP, ROUTER, reply)), None);
    assert_eq!(code_sent(&heard(&mut agent, at, UP, ROUTER, reply_to(&asked, AGENT))), None);
    assert_eq!(counted(&agent, "mip_extension_overrun"), 4);
}

/// Code 66: two requests waited for the last place. The home agents accept both, and only one becomes a visitor.
#[test]
fn no_more_visitors_are_admitted_than_there_are_places() {
    let now = Instant::from_millis(1000);
    let mut agent = foreign_agent("visitors = 1").unwrap();
    start(&mut agent);
    let ask = |agent: &mut ForeignAgent, last: u8| {
        let asked = request(now, Ipv4Addr::new(10, 1, 0, last));
        let mac = Mac([2, 0, 0, 0, 0, last]);
        assert_eq!(code_sent(&heard(agent, now, 1, mac, packet(asked.home, VISITED, &asked.emit()))), None);
        asked
    };
    let [first, second] = [7, 8].map(|last| ask(&mut agent, last));
    let answer = |agent: &mut ForeignAgent, asked: &Request| {
        let effects = heard(agent, now, UP, ROUTER, reply_to(asked, AGENT));
        (code_sent(&effects), moved(&effects))
    };
    assert_eq!(answer(&mut agent, &first), (Some(Code::Accepted), true));
    assert_eq!(answer(&mut agent, &second), (Some(Code::ForeignResources), false));
    assert_eq!(counted(&agent, "not_admitted"), 1);
    // The visitor can renew.
    let renewal = request(Instant::from_millis(2000), first.home);
    let bytes = packet(first.home, VISITED, &renewal.emit());
    heard(&mut agent, now, 1, Mac([2, 0, 0, 0, 0, 7]), bytes);
    assert_eq!(answer(&mut agent, &renewal), (Some(Code::Accepted), true));
}

/// Code 64: another visit has taken the packet class that the accepted request needs. One link address has requests for
/// one home address with two home agents, both with a reverse tunnel.
#[test]
fn an_accepted_request_that_cannot_be_served_is_denied() {
    let now = Instant::from_millis(1000);
    let mut agent = foreign_agent("reverse_tunnel = 'offered'").unwrap();
    start(&mut agent);
    let ask = |agent: &mut ForeignAgent, home_agent, ms| {
        let mut asked = request(Instant::from_millis(ms), HOME);
        (asked.flags, asked.home_agent) = (RequestFlags::REVERSE, home_agent);
        heard(agent, now, 1, MOBILE, packet(HOME, VISITED, &asked.emit()));
        asked
    };
    let other = Ipv4Addr::new(10, 8, 0, 1);
    let (first, second) = (ask(&mut agent, AGENT, 1000), ask(&mut agent, other, 2500));
    assert_eq!(code_sent(&heard(&mut agent, now, UP, ROUTER, reply_to(&first, AGENT))), Some(Code::Accepted));
    let effects = heard(&mut agent, now, UP, ROUTER, reply_to(&second, other));
    assert_eq!((code_sent(&effects), moved(&effects)), (Some(Code::ForeignUnspecified), false));
}

/// Code 129: registrations in some networks are prohibited, deregistrations are not.
#[test]
fn a_prohibited_network_is_denied() {
    let mut agent = home_agent("prohibited_care_of = ['10.3.0.0/16']").unwrap();
    start(&mut agent);
    let now = Instant::from_millis(1000);
    let bytes = packet(VISITED, AGENT, &request(now, HOME).emit());
    assert_eq!(code_sent(&heard(&mut agent, now, 2, MOBILE, bytes)), Some(Code::HomeProhibited));
    let mut ends = request(Instant::from_millis(2000), HOME);
    ends.extensions.clear();
    ends.lifetime = 0;
    ends.sign(Between::MobileHome, &association());
    let bytes = packet(VISITED, AGENT, &ends.emit());
    let effects = heard(&mut agent, Instant::from_millis(2000), 2, MOBILE, bytes);
    assert_eq!(code_sent(&effects), Some(Code::Accepted));
    refused(home_agent("prohibited_care_of = ['10.3.0.0']"), "prohibited_care_of", "10.3.0.0");
}

/// Code 131 for a mobile node that the home agent knows, with a valid authentication of the home agent, and at most once
/// per second for each source. A request without an authentication, and one of a host that the home agent does not know,
/// get no answer (RFC 5944, section 3.8.2.1).
#[test]
fn a_request_without_a_usable_authentication_is_denied_with_limits() {
    let mut agent = home_agent("").unwrap();
    start(&mut agent);
    let mut without = request(Instant::from_millis(1000), HOME);
    without.extensions.clear();
    let mut unknown_spi = without.clone();
    unknown_spi.sign(Between::MobileHome, &Association { spi: 999, ..association() });
    let now = Instant::from_millis(2000);
    let effects = heard(&mut agent, now, 2, MOBILE, packet(VISITED, AGENT, &unknown_spi.emit()));
    let reply = reply_in(&effects);
    let reply = reply.unwrap();
    assert_eq!(reply.code, Code::HomeMobileFailed);
    assert!(reply.verify(Between::MobileHome, &association()));
    let again = heard(&mut agent, now, 2, MOBILE, packet(VISITED, AGENT, &unknown_spi.emit()));
    assert_eq!(code_sent(&again), None);
    let stranger = request(Instant::from_millis(3000), Ipv4Addr::new(10, 1, 0, 99));
    for asked in [&without, &stranger] {
        let bytes = packet(VISITED, AGENT, &asked.emit());
        assert_eq!(code_sent(&heard(&mut agent, Instant::from_millis(4000), 2, MOBILE, bytes)), None);
    }
    assert_eq!(counted(&agent, "no_authentication"), 1);
    assert_eq!(counted(&agent, "no_association"), 1);
    assert_eq!(counted(&agent, "answered_recently"), 1);
}

/// A mobile node that does not know the address of the agent sends its request to all mobility agents of the link.
#[test]
fn a_request_to_all_mobility_agents_is_answered_by_the_agent_that_it_names() {
    let now = Instant::from_millis(1000);
    let mut agent = foreign_agent("").unwrap();
    start(&mut agent);
    let asked = request(now, HOME);
    let effects = heard(&mut agent, now, 1, MOBILE, packet(HOME, ALL_AGENTS, &asked.emit()));
    let relayed = |effect: &Effect| {
        matches!(effect, Effect::Send(None, packet)
        if ipv4::addresses(&packet.bytes) == Some((VISITED, AGENT)))
    };
    assert!(effects.iter().any(relayed), "{effects:?}");
    let other = Request { care_of: Ipv4Addr::new(10, 3, 0, 2), ..request(now, HOME) };
    let effects = heard(&mut agent, now, 1, MOBILE, packet(HOME, ALL_AGENTS, &other.emit()));
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Send(..))));
    assert_eq!(counted(&agent, "for_another_agent"), 1);
    // At home, the home agent answers.
    let mut home = home_agent("").unwrap();
    start(&mut home);
    let mut ends = request(now, HOME);
    ends.extensions.clear();
    (ends.lifetime, ends.care_of) = (0, HOME);
    ends.sign(Between::MobileHome, &association());
    let effects = heard(&mut home, now, 1, MOBILE, packet(HOME, ALL_AGENTS, &ends.emit()));
    assert_eq!(code_sent(&effects), Some(Code::Accepted));
}
