//! Limits: of cookies, of listeners, of addresses that two associations had, and of failures that a link excuses.

use crate::harness::mn;
use crate::script::Script;
use sctp::Config;
use sctp::message::Chunk;
use wire::Reason;

/// RFC 9260, section 5.1.5, 3: a cookie is stale when its age is more than its life. At the last instant of its life it is not stale,
/// and it makes no second association either.
#[test]
fn a_spent_cookie_is_remembered_to_the_last_instant_of_its_life() {
    let config = Config::default();
    let mut script = Script::silent(&config);
    let cookie = script.cookie(&[mn(1)]);
    script.hears(mn(1), vec![Chunk::CookieEcho(cookie.clone())]).unwrap();
    script.says();
    script.hears(mn(1), vec![Chunk::Abort { reflected: false, causes: Vec::new() }]).unwrap();
    script.says();
    script.now += u64::try_from(config.cookie_life.as_millis()).unwrap();
    let late = script.hears(mn(1), vec![Chunk::CookieEcho(cookie.clone())]);
    assert_eq!(late, Err(Reason("sctp_cookie_spent")));
    script.now += 1;
    let late = script.hears(mn(1), vec![Chunk::CookieEcho(cookie)]);
    assert_eq!(late, Err(Reason("sctp_cookie_stale")));
}
