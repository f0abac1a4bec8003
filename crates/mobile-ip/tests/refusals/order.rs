//! Tests of the order in which agents check requests, and of which association authenticates a message.

use super::*;
use mobile_ip::message::Extension;

/// Returns a request with the Identification of `now` that `change` has changed before it was signed.
fn asked_at(now: Instant, change: impl FnOnce(&mut Request)) -> Request {
    let mut asked = request(now, HOME);
    asked.extensions.clear();
    change(&mut asked);
    asked.sign(Between::MobileHome, &association());
    asked
}

/// Returns the reply to a request from [`VISITED`].
fn answer(agent: &mut HomeAgent, at: u64, asked: &Request) -> Option<Reply> {
    let bytes = packet(VISITED, AGENT, &asked.emit());
    heard(agent, Instant::from_millis(at), UP, MOBILE, bytes).iter().find_map(|effect| match effect {
        Effect::Send(_, packet) => match Received::parse(&packet.bytes).ok()?.message {
            Registration::Reply(reply) => Some(reply),
            Registration::Request(_) => None,
        },
        _ => None,
    })
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
