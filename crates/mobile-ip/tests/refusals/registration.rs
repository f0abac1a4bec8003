//! Tests of registration: the algorithms of associations, nonces, several bindings and the flags of requests.

use super::*;

/// Returns a home agent whose association with the mobile node has these further keys, for example `algorithm`.
fn home_agent_with(keys: &str) -> HomeAgent {
    let peer = format!("mobile_nodes = [{{ address = \"{HOME}\", spi = 256, key = \"{KEY}\", {keys} }}]");
    let mut agent = home_agent(&peer).unwrap();
    start(&mut agent);
    agent
}

/// Returns a request at `now` that is signed with `algorithm`.
fn signed_with(now: Instant, algorithm: Algorithm) -> Request {
    let mut request = request(now, HOME);
    request.extensions.clear();
    request.sign(Between::MobileHome, &Association { algorithm, ..association() });
    request
}

/// The algorithm is that of the association, whatever the message contains. So the weak algorithms are of no use to an
/// attacker unless an association names them.
#[test]
fn a_request_is_checked_with_the_algorithm_of_its_association_only() {
    let algorithms = [
        ("hmac-sha256", Algorithm::HmacSha256),
        ("hmac-md5", Algorithm::HmacMd5),
        ("keyed-md5", Algorithm::KeyedMd5),
        ("keyed-md5-without-spi", Algorithm::KeyedMd5WithoutSpi),
    ];
    let now = Instant::from_millis(1000);
    for (name, configured) in algorithms {
        for (_, used) in algorithms {
            let mut agent = home_agent_with(&format!("algorithm = \"{name}\""));
            let asked = signed_with(now, used).emit();
            let effects = heard(&mut agent, now, 2, MOBILE, packet(VISITED, AGENT, &asked));
            assert_eq!(moved(&effects), configured == used, "{name}, {used:?}");
            let code = if configured == used { Code::Accepted } else { Code::HomeMobileFailed };
            assert_eq!(code_sent(&effects), Some(code), "{name}, {used:?}");
        }
    }
    let peer = |keys: &str| {
        home_agent(&format!(
            "mobile_nodes = [{{ address = \"{HOME}\", spi = 256, key = \"{KEY}\", {keys} }}]"
        ))
    };
    refused(peer("algorithm = \"md5\""), "unknown variant `md5`", "keyed-md5-without-spi");
}
