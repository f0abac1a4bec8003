//! Verification tags and tie-tags decide for which association a cookie or a packet is (RFC 9260, sections 5.2.2,
//! 5.2.4 and 8.5.1).

use crate::harness::mn;
use crate::script::{PEER_TAG, PEER_TSN, Script, data, peer_init};
use sctp::message::{Chunk, Packet};
use sctp::{AssociationEvent, Config, Ended, State};
use wire::Reason;

const LATE: Result<(), Reason> = Err(Reason("sctp_cookie_unexpected"));

fn script() -> Script {
    Script::accepted(&Config::default(), &[mn(1)])
}

fn told(what: &[&str]) -> Vec<String> {
    what.iter().map(|words| format!("{} {words}", mn(1))).collect()
}

/// Returns two fields of the answer to an INIT with the tag `tag`: the endpoint's tag, and the cookie.
fn cookie(script: &mut Script, tag: u32) -> (u32, Vec<u8>) {
    let mut init = peer_init(&[]);
    init.tag = tag;
    script.hears_tagged(0, mn(1), vec![Chunk::Init(init)]).unwrap();
    let answer = script.endpoint.poll_transmit(script.at()).unwrap();
    let packet = Packet::parse(&answer.bytes).unwrap();
    let [Chunk::InitAck(ack)] = packet.chunks.as_slice() else { panic!("{packet:?}") };
    (ack.tag, ack.cookie().unwrap().to_vec())
}

fn echo(script: &mut Script, (tag, cookie): &(u32, Vec<u8>)) -> Result<(), Reason> {
    script.hears_tagged(*tag, mn(1), vec![Chunk::CookieEcho(cookie.clone())])
}

fn restarts(script: &Script) -> usize {
    script.events.iter().filter(|event| matches!(event, AssociationEvent::Restarted { .. })).count()
}

/// RFC 9260, section 5.2.4, action A, requires a cookie with the tie-tags of the association. A cookie that was made
/// before the association has none. Here the peer sent two INITs, and both were answered.
#[test]
fn a_cookie_without_tie_tags_restarts_nothing() {
    let mut script = Script::silent(&Config::default());
    let early = cookie(&mut script, 0x8888);
    let used = cookie(&mut script, PEER_TAG);
    (script.tag, _) = used;
    echo(&mut script, &used).unwrap();
    script.says();
    assert_eq!(echo(&mut script, &early), LATE);
    assert_eq!(script.says(), told(&[]));
    assert_eq!(restarts(&script), 0);
    script.hears(mn(1), vec![data(0, b"x"), data(1, b"y")]).unwrap();
    script.wait(200);
    assert_eq!(script.says(), told(&["SACK 1"]), "it continues unchanged");
}

/// A restart draws new tie-tags (RFC 9260, section 5.2.2). So another cookie that was made before the restart has no
/// effect.
#[test]
fn a_cookie_from_before_a_restart_does_not_restart_again() {
    let mut script = script();
    let cookies = [0x8888, 0x9999].map(|tag| cookie(&mut script, tag));
    assert!(cookies.iter().all(|(tag, _)| *tag != script.tag), "section 5.2.2: another tag");
    echo(&mut script, &cookies[0]).unwrap();
    assert_eq!(script.says(), told(&["COOKIE-ACK"]));
    assert_eq!(restarts(&script), 1);
    assert_eq!(echo(&mut script, &cookies[1]), LATE);
    assert_eq!(script.says(), told(&[]));
    echo(&mut script, &cookies[0]).unwrap();
    assert_eq!(script.says(), told(&["COOKIE-ACK"]), "action D: COOKIE ACK was lost");
    assert_eq!(restarts(&script), 1);
}

/// RFC 9260, section 5.2.4, has no action for a cookie with the tie-tags and the peer's tag of the association, but
/// with another tag of this end. Such a cookie is dropped.
#[test]
fn a_cookie_with_the_tag_of_the_peer_alone_is_dropped() {
    let mut script = script();
    let same = cookie(&mut script, PEER_TAG);
    assert_ne!(same.0, script.tag);
    assert_eq!(echo(&mut script, &same), LATE);
    assert_eq!(script.says(), told(&[]));
}

/// RFC 9260, sections 5.2.4, A, and 9.2: in SHUTDOWN-ACK-SENT, COOKIE ECHO of a restarted peer makes no association.
/// The answer is another SHUTDOWN ACK, with the cause "cookie received while shutting down". An INIT is answered with
/// SHUTDOWN ACK.
#[test]
fn a_cookie_while_shutdown_ack_is_out_makes_no_association() {
    let mut script = script();
    let restart = cookie(&mut script, 0x8888);
    script.hears(mn(1), vec![Chunk::Shutdown(PEER_TSN.wrapping_sub(1))]).unwrap();
    assert_eq!(script.says(), told(&["SHUTDOWN-ACK"]));
    assert_eq!(echo(&mut script, &restart), LATE);
    assert_eq!(script.says(), told(&["SHUTDOWN-ACK, ERROR [10]"]));
    assert_eq!(restarts(&script), 0);
    script.hears_tagged(0, mn(1), vec![Chunk::Init(peer_init(&[]))]).unwrap();
    assert_eq!(script.says(), told(&["SHUTDOWN-ACK"]));
    let state = script.endpoint.association(script.id.unwrap()).unwrap().state();
    assert_eq!(state, State::ShutdownAckSent);
    script.hears(mn(1), vec![Chunk::ShutdownComplete { reflected: false }]).unwrap();
    script.says();
    assert_eq!(script.events.last(), Some(&AssociationEvent::Closed(Ended::Finished)));
}

/// RFC 9260, section 8.5.1, B: with the T bit, the tag is that of packets to the peer. A host that has read only this
/// tag can end the association by ABORT, but cannot add data.
#[test]
fn with_a_reflected_tag_an_abort_says_nothing_else() {
    let mut script = script();
    let abort = Chunk::Abort { reflected: true, causes: Vec::new() };
    script.hears_tagged(PEER_TAG, mn(1), vec![data(0, b"forged"), abort]).unwrap();
    script.says();
    assert_eq!(script.events.last(), Some(&AssociationEvent::Closed(Ended::AbortedByPeer(None))));
    assert_eq!(script.endpoint.association(script.id.unwrap()).unwrap().unread(), 0);
}
