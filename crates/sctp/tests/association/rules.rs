//! The rules of RFC 9260, tested with single packets. Numbers of chunks count from the initial TSN of their sender.

use crate::harness::{CN, PORT, endpoint, mn};
use crate::script::{PEER_TAG, PEER_TSN, Script, data, peer_init};
use sctp::message::{Cause, Chunk, Code, Data, Packet, Sack};
use sctp::{AssociationEvent, Config, Ended, Rejection, State};
use wire::{Duration, Instant, Ipv4Addr, Reason};

fn told(to: Ipv4Addr, what: &[&str]) -> Vec<String> {
    what.iter().map(|words| format!("{to} {words}")).collect()
}

fn script() -> Script {
    Script::accepted(&Config::default(), &[mn(1)])
}

fn two_paths() -> Script {
    let script = Script::accepted(&Config::default(), &[mn(1), mn(2)]);
    assert_eq!(script.active(), [mn(1), mn(2)]);
    script
}

// --- acknowledgments (RFC 9260, sections 6.2 and 6.7) ----------------------------------------------------------------

#[test]
fn every_second_packet_is_acknowledged_and_a_single_one_late() {
    let mut script = script();
    script.hears(mn(1), vec![data(0, b"one")]).unwrap();
    assert_eq!(script.says(), told(mn(1), &[]));
    script.wait(199);
    assert_eq!(script.says(), told(mn(1), &[]));
    script.wait(1);
    assert_eq!(script.says(), told(mn(1), &["SACK 0"]));
    script.hears(mn(1), vec![data(1, b"two")]).unwrap();
    script.hears(mn(1), vec![data(2, b"three")]).unwrap();
    assert_eq!(script.says(), told(mn(1), &["SACK 2"]));
}

#[test]
fn gaps_and_duplicates_are_told_at_once() {
    let mut script = script();
    script.hears(mn(1), vec![data(2, b"three")]).unwrap();
    assert_eq!(script.says(), told(mn(1), &["SACK -1 +3-3"]));
    script.hears(mn(1), vec![data(5, b"six"), data(3, b"four")]).unwrap();
    assert_eq!(script.says(), told(mn(1), &["SACK -1 +3-4 +6-6"]));
    script.hears(mn(1), vec![data(3, b"four")]).unwrap();
    assert_eq!(script.says(), told(mn(1), &["SACK -1 +3-4 +6-6 again 3"]));
    script.hears(mn(1), vec![data(0, b"one"), data(1, b"two")]).unwrap();
    assert_eq!(script.says(), told(mn(1), &["SACK 3 +2-2"]));
    script.hears(mn(1), vec![data(4, b"five")]).unwrap();
    script.wait(200);
    assert_eq!(script.says(), told(mn(1), &["SACK 5"]));
    let association = script.endpoint.association_mut(script.id.unwrap()).unwrap();
    let read: Vec<Vec<u8>> = std::iter::from_fn(|| association.read(100)).map(|piece| piece.data).collect();
    assert_eq!(read, [&b"one"[..], b"two", b"three", b"four", b"five", b"six"]);
}

/// RFC 9260, section 3.3.1: DATA with the I bit is acknowledged at once.
#[test]
fn who_asks_for_it_is_acknowledged_at_once() {
    let mut script = script();
    let Chunk::Data(asks) = data(0, b"now") else { unreachable!() };
    script.hears(mn(1), vec![Chunk::Data(Data { immediate: true, ..asks })]).unwrap();
    assert_eq!(script.says(), told(mn(1), &["SACK 0"]));
}

#[test]
fn data_that_cannot_be_is_answered_as_the_rfc_says() {
    let mut script = script();
    let Chunk::Data(good) = data(0, b"x") else { unreachable!() };
    script.hears(mn(1), vec![Chunk::Data(Data { stream: 8, ..good.clone() })]).unwrap();
    assert_eq!(script.says(), told(mn(1), &["ERROR [1]"]), "section 6.5; the chunk counts as arrived");
    script.wait(200);
    assert_eq!(script.says(), told(mn(1), &["SACK 0"]));
    script.hears(mn(1), vec![Chunk::Data(Data { data: Vec::new(), tsn: PEER_TSN + 1, ..good })]).unwrap();
    assert_eq!(script.says(), told(mn(1), &["ABORT [9]"]), "section 6.2");
}

/// RFC 9260, section 6.9: consecutive fragments that cannot be of one message end the association.
#[test]
fn messages_that_do_not_go_on_end_the_association() {
    let piece = |number: u32, begins, ends, stream| {
        let Chunk::Data(data) = data(number, b"x") else { unreachable!() };
        Chunk::Data(Data { begins, ends, stream, ssn: 0, ..data })
    };
    let cases = [
        [piece(0, true, false, 0), piece(1, true, true, 0)],
        [piece(0, true, false, 0), piece(1, false, true, 1)],
        [piece(1, false, true, 0), piece(0, true, true, 0)],
        [piece(0, true, true, 0), piece(1, true, true, 0)],
    ];
    for case in cases {
        let mut script = script();
        script.hears(mn(1), case.to_vec()).unwrap();
        assert_eq!(script.says(), told(mn(1), &["ABORT [13]"]), "{case:?}");
    }
}

// --- unknown chunk types (RFC 9260, section 3.2) ---------------------------------------------------------------------

#[test]
fn unknown_chunks_are_reported_or_skipped() {
    let mut script = script();
    let unknown = |kind| Chunk::Unknown { kind, flags: 0, value: vec![1] };
    script.hears(mn(1), vec![unknown(0xbf), data(0, b"x"), unknown(0xff), data(1, b"y")]).unwrap();
    script.hears(mn(1), vec![unknown(0x3f), data(2, b"z")]).unwrap();
    assert_eq!(script.says(), told(mn(1), &["ERROR [6]"]));
    script.hears(mn(1), vec![unknown(0x7f), data(2, b"z")]).unwrap();
    assert_eq!(script.says(), told(mn(1), &["ERROR [6]"]));
    script.wait(200);
    assert_eq!(script.says(), told(mn(1), &["SACK 1"]));
}

// --- congestion and losses (RFC 9260, sections 6.1, 6.3 and 7.2) -----------------------------------------------------

#[test]
fn the_window_and_the_burst_bound_what_leaves() {
    let mut script = script();
    script.write(40);
    // 4404 bytes may be in flight, and the last packet may exceed this limit.
    assert_eq!(script.says(), told(mn(1), &["DATA 0", "DATA 1", "DATA 2", "DATA 3"]));
    script.sack(2, &[]);
    assert_eq!(script.says().len(), 3, "two are acknowledged, and the window grows by a chunk");
    script.sack(7, &[]);
    assert_eq!(script.says().len(), 4, "Max.Burst");
}

#[test]
fn the_third_report_sends_again_at_once_and_only_once() {
    let mut script = script();
    script.write(40);
    script.says();
    script.sack(4, &[]);
    script.says();
    for last in 5..7 {
        script.sack(4, &[(5, last)]);
        assert!(script.says().iter().all(|said| !said.contains("DATA 4")), "report {last}");
    }
    let cwnd = script.path(mn(1)).cwnd;
    script.sack(4, &[(5, 7)]);
    assert_eq!(script.says()[0], format!("{} DATA 4", mn(1)));
    assert!(script.path(mn(1)).cwnd < cwnd || cwnd <= 4 * 1468);
    assert_eq!(script.path(mn(1)).ssthresh, (cwnd / 2).max(4 * 1468));
    for _ in 0..10 {
        script.sack(4, &[(5, 7)]);
        assert!(script.says().iter().all(|said| !said.contains("DATA 4")));
    }
}

/// RFC 9260, section 6.3.3: after a time-out, data are sent again to another address. Only the path that lost them
/// counts a failure.
#[test]
fn a_timeout_sends_elsewhere() {
    let mut script = two_paths();
    script.write(3);
    assert_eq!(script.says(), told(mn(1), &["DATA 0", "DATA 1", "DATA 2"]));
    let waited = script.wait_for_timer();
    assert_eq!(waited, 1000);
    assert_eq!(script.says(), told(mn(2), &["DATA 0", "DATA 1", "DATA 2"]));
    assert_eq!(script.path(mn(1)).rto, Duration::from_secs(2));
    assert_eq!(script.path(mn(2)).rto, Duration::from_secs(1));
    assert_eq!((script.path(mn(1)).cwnd, script.path(mn(1)).errors), (1468, 1));
}

/// After a change of the primary address, SACKs for data on the new path do not mark data on the old path as lost.
#[test]
fn what_overtakes_on_another_path_is_no_loss() {
    let mut script = two_paths();
    script.write(4);
    assert_eq!(script.says().len(), 4);
    let now = script.at();
    let association = script.endpoint.association_mut(script.id.unwrap()).unwrap();
    association.set_primary(now, mn(2)).unwrap();
    script.write(4);
    assert_eq!(script.says(), told(mn(2), &["DATA 4", "DATA 5", "DATA 6", "DATA 7"]));
    assert!(script.events.contains(&AssociationEvent::Switched { from: mn(1), to: mn(2) }));
    for last in 4..8 {
        script.sack(0, &[(4, last)]);
        assert_eq!(script.says(), told(mn(2), &[]), "report {last}");
    }
    // A chunk is lost if three SACKs acknowledge later chunks on the same path.
    for _ in 0..3 {
        script.sack(0, &[(1, 1), (4, 7)]);
        script.sack(0, &[(1, 2), (4, 7)]);
        script.sack(0, &[(1, 3), (4, 7)]);
    }
    assert_eq!(script.says(), told(mn(1), &["DATA 0"]));
}

/// RFC 9260, section 6.1, A: a closed window is probed with one chunk at a time.
#[test]
fn a_closed_window_is_probed() {
    let mut script = script();
    script.write(1);
    script.says();
    let closed = Sack { cumulative: script.tsn, a_rwnd: 0, ..Sack::default() };
    script.hears(mn(1), vec![Chunk::Sack(closed.clone())]).unwrap();
    script.write(3);
    assert_eq!(script.says(), told(mn(1), &["DATA 1"]));
    for _ in 0..20 {
        script.wait_for_timer();
        script.says();
        script.hears(mn(1), vec![Chunk::Sack(closed.clone())]).unwrap();
    }
    assert_eq!(script.path(mn(1)).errors, 0, "it answers");
    script.hears(mn(1), vec![Chunk::Sack(Sack { a_rwnd: 50_000, ..closed })]).unwrap();
    script.sack(2, &[]);
    assert_eq!(script.says().last().unwrap(), &format!("{} DATA 3", mn(1)));
}

/// RFC 5062, section 5.3: an acknowledgment of data that were not sent ends the association with ABORT.
#[test]
fn an_acknowledgment_of_the_future_ends_the_association() {
    let mut script = script();
    script.write(1);
    script.says();
    script.sack(0, &[(1, 1)]);
    assert_eq!(script.says(), told(mn(1), &["ABORT [13]"]));
}

// --- heartbeats (RFC 9260, section 8.3) ------------------------------------------------------------------------------

#[test]
fn an_idle_path_is_probed_and_a_wrong_nonce_proves_nothing() {
    let mut script = script();
    script.nonces.clear();
    let waited = script.wait_for_timer();
    assert!(
        (30_500..=31_500).contains(&waited),
        "HB.interval and a time-out, more or less half of it: {waited}"
    );
    assert_eq!(script.says(), told(mn(1), &["HEARTBEAT"]));
    let (_, mut info) = script.nonces.pop().unwrap();
    *info.last_mut().unwrap() ^= 1;
    script.hears(mn(1), vec![Chunk::HeartbeatAck(info.clone())]).unwrap();
    script.wait_for_timer();
    assert_eq!(script.path(mn(1)).errors, 1);
    assert_eq!(script.says(), told(mn(1), &["HEARTBEAT"]), "again, without HB.interval");
    script.hears(mn(1), vec![Chunk::Heartbeat(vec![1, 2, 3])]).unwrap();
    assert_eq!(script.says(), told(mn(1), &["HEARTBEAT-ACK"]));
}

// --- tags, and packets out of the blue (RFC 9260, sections 8.4 and 8.5) ----------------------------------------------

#[test]
fn a_wrong_tag_changes_nothing() {
    let mut script = script();
    let causes = Vec::new();
    for chunk in [
        data(0, b"x"),
        Chunk::ShutdownAck,
        Chunk::Shutdown(0),
        Chunk::Abort { reflected: false, causes: causes.clone() },
        Chunk::ShutdownComplete { reflected: false },
        Chunk::Heartbeat(vec![1]),
    ] {
        let refused = script.hears_tagged(script.tag ^ 1, mn(1), vec![chunk]);
        assert_eq!(refused, Err(Reason("sctp_tag")));
    }
    // With the T bit, the tag must be that of packets to the peer.
    let abort = Chunk::Abort { reflected: true, causes };
    assert_eq!(script.hears(mn(1), vec![abort.clone()]), Err(Reason("sctp_tag")));
    assert_eq!(script.says(), told(mn(1), &[]));
    assert_eq!(script.hears_tagged(PEER_TAG, mn(1), vec![abort]), Ok(()));
    script.says();
    assert_eq!(script.events.last(), Some(&AssociationEvent::Closed(Ended::AbortedByPeer(None))));
}

#[test]
fn strangers_are_answered_as_the_rfc_says() {
    let mut script = script();
    let stale = Chunk::Error(vec![Cause::new(Code::STALE_COOKIE, [0; 4])]);
    let cases = [
        (data(0, b"x"), &["ABORT T []"][..]),
        (Chunk::Heartbeat(vec![1]), &["ABORT T []"]),
        (Chunk::ShutdownAck, &["SHUTDOWN-COMPLETE T"]),
        (Chunk::ShutdownComplete { reflected: false }, &[]),
        (Chunk::Abort { reflected: false, causes: Vec::new() }, &[]),
        (Chunk::CookieAck, &[]),
        (stale, &[]),
    ];
    for (chunk, answer) in cases {
        let refused = script.hears_tagged(5, mn(9), vec![chunk.clone()]);
        assert_eq!(refused, Err(Reason("sctp_no_association")));
        assert_eq!(script.says(), told(mn(9), answer), "{chunk:?}");
    }
    let group = Ipv4Addr::new(224, 0, 0, 1);
    assert_eq!(script.hears(group, vec![data(0, b"x")]), Err(Reason("sctp_not_unicast")));
    assert_eq!(script.says(), told(group, &[]));
}

// --- the opening of associations (RFC 9260, sections 5.1 and 5.2) ----------------------------------------------------

/// RFC 9260, section 5.1.5, 3: a cookie is valid only for the ports of its INIT.
#[test]
fn a_cookie_of_other_ports_makes_nothing() {
    let mut script = script();
    let cookie = script.cookie(&[mn(5)]);
    script.endpoint.listen(PORT + 1, &[CN]);
    for (src_port, dst_port) in [(4001, PORT), (4000, PORT + 1), (PORT, 4000)] {
        let chunks = vec![Chunk::CookieEcho(cookie.clone())];
        let bytes = Packet { src_port, dst_port, tag: script.tag, chunks }.emit();
        let refused = script.endpoint.receive(script.at(), mn(5), CN, &bytes);
        assert_eq!(refused, Err(Reason("sctp_tag")), "{src_port} {dst_port}");
        assert_eq!(script.says(), told(mn(5), &[]));
    }
    assert_eq!(script.endpoint.associations().count(), 1);
}

/// COOKIE ECHO has no effect unless it is the first chunk of its packet (RFC 9260, section 5.1, C) or follows AUTH
/// (RFC 4895, section 6.3).
#[test]
fn a_cookie_behind_other_chunks_makes_nothing() {
    let mut script = script();
    let cookie = script.cookie(&[mn(5)]);
    let echo = Chunk::CookieEcho(cookie);
    for before in [data(0, b"x"), Chunk::Heartbeat(vec![1]), Chunk::Error(Vec::new())] {
        let refused = script.hears(mn(5), vec![before, echo.clone()]);
        assert_eq!(refused, Err(Reason("sctp_no_association")));
        assert_eq!(script.says(), told(mn(5), &["ABORT T []"]));
    }
    assert_eq!(script.endpoint.associations().count(), 1);
    script.hears(mn(5), vec![echo, data(0, b"x")]).unwrap();
    assert_eq!(script.endpoint.associations().count(), 2);
}

#[test]
fn a_listening_port_remembers_nothing_of_an_init() {
    let mut script = script();
    for host in 10..200 {
        script.cookie(&[mn(host)]);
    }
    assert_eq!(script.endpoint.associations().count(), 1);
    assert!(script.endpoint.poll_transmit(script.at()).is_none());
}

#[test]
fn a_cookie_is_good_once_in_time_and_unchanged() {
    let mut script = script();
    let cookie = script.cookie(&[mn(5)]);
    for at in [0, 31, 32, 60, cookie.len() - 1] {
        let mut forged = cookie.clone();
        forged[at] ^= 1;
        let refused = script.hears(mn(5), vec![Chunk::CookieEcho(forged)]);
        assert_eq!(refused, Err(Reason("sctp_cookie_forged")));
    }
    assert_eq!(
        script.hears_tagged(9, mn(5), vec![Chunk::CookieEcho(cookie.clone())]),
        Err(Reason("sctp_tag"))
    );
    assert_eq!(script.says(), told(mn(5), &[]), "silently");
    script.now += 60_001;
    let late = script.hears(mn(5), vec![Chunk::CookieEcho(cookie)]);
    assert_eq!(late, Err(Reason("sctp_cookie_stale")));
    assert_eq!(script.says(), told(mn(5), &["ERROR [3]"]));
    assert_eq!(script.endpoint.associations().count(), 1);
}

/// A COOKIE ECHO that arrives after the end of its association makes no second association, as no peer would answer in
/// the second association.
#[test]
fn a_cookie_that_comes_after_its_association_makes_no_other() {
    let mut script = script();
    let cookie = script.cookie(&[mn(5)]);
    script.hears(mn(5), vec![Chunk::CookieEcho(cookie.clone())]).unwrap();
    script.says();
    script.hears(mn(5), vec![Chunk::Abort { reflected: false, causes: Vec::new() }]).unwrap();
    script.says();
    let count = script.endpoint.associations().filter(|(_, it)| it.is_open()).count();
    let late = script.hears(mn(5), vec![Chunk::CookieEcho(cookie)]);
    assert_eq!(late, Err(Reason("sctp_cookie_spent")));
    assert_eq!(script.says(), told(mn(5), &["ABORT []"]));
    assert_eq!(script.endpoint.associations().filter(|(_, it)| it.is_open()).count(), count);
}

/// RFC 9260, section 5.2.4, D: a repeated COOKIE ECHO is answered again, whatever the age of the cookie.
#[test]
fn a_repeated_cookie_is_acknowledged_again() {
    let mut script = script();
    let cookie = script.cookie(&[mn(5)]);
    for _ in 0..3 {
        script.hears(mn(5), vec![Chunk::CookieEcho(cookie.clone())]).unwrap();
        assert_eq!(script.says(), told(mn(5), &["COOKIE-ACK"]));
        script.now += 50_000;
    }
    assert_eq!(script.endpoint.associations().count(), 2);
}

/// RFC 9260, section 5.2.4, A: a peer that restarts without its state continues with new tags and TSNs, and the user
/// gets an event.
#[test]
fn a_restart_is_told_and_goes_on_with_new_numbers() {
    let mut script = script();
    script.write(3);
    script.hears(mn(1), vec![data(0, b"before")]).unwrap();
    script.says();
    let cookie = script.cookie(&[mn(1)]);
    assert_eq!(script.endpoint.association(script.id.unwrap()).unwrap().state(), State::Established);
    // In a restart the peer's new tag must differ, but the script's INIT always has the same tag.
    let again = script.hears(mn(1), vec![Chunk::CookieEcho(cookie)]);
    assert_eq!(again, Err(Reason("sctp_cookie_unexpected")), "section 5.2.4, C");
    let mut init = peer_init(&[]);
    init.tag = 0x8888;
    script.hears_tagged(0, mn(1), vec![Chunk::Init(init)]).unwrap();
    let answer = script.endpoint.poll_transmit(script.at()).unwrap();
    let packet = Packet::parse(&answer.bytes).unwrap();
    let [Chunk::InitAck(ack)] = packet.chunks.as_slice() else { panic!("{packet:?}") };
    (script.tag, script.tsn) = (ack.tag, ack.tsn);
    let cookie = ack.cookie().unwrap().to_vec();
    script.hears(mn(1), vec![Chunk::CookieEcho(cookie)]).unwrap();
    assert_eq!(script.says()[0], format!("{} COOKIE-ACK", mn(1)));
    assert!(script.events.contains(&AssociationEvent::Restarted { intact: false }));
    script.write(1);
    assert_eq!(script.says(), told(mn(1), &["DATA 0"]));
    script.sack(1, &[]);
    script.hears(mn(1), vec![data(0, b"after"), data(1, b"that")]).unwrap();
    assert_eq!(script.endpoint.associations().count(), 1);
}

/// RFC 9260, section 5.2.2: an INIT that adds an address to an association is answered with ABORT, as it may be from
/// another host.
#[test]
fn a_restart_with_new_addresses_is_refused() {
    let mut script = script();
    let mut init = peer_init(&[mn(1), mn(9)]);
    init.tag = 0x8888;
    script.hears_tagged(0, mn(1), vec![Chunk::Init(init.clone())]).unwrap();
    assert_eq!(script.says(), told(mn(1), &["ABORT [11]"]));
    // The INIT comes from the new address. The association is found by the peer's address in the list of the INIT.
    script.hears_tagged(0, mn(9), vec![Chunk::Init(init)]).unwrap();
    assert_eq!(script.says(), told(mn(9), &["ABORT [11]"]));
    assert_eq!(script.endpoint.association(script.id.unwrap()).unwrap().state(), State::Established);
}

#[test]
fn an_init_that_cannot_be_is_refused() {
    let mut script = script();
    let good = peer_init(&[]);
    let extensions = sctp::message::Parameter::Extensions(vec![0xc1, 0x80]);
    let cases = [
        // RFC 9260, section 3.3.2, requires that INIT with tag 0 is discarded without an answer. RFC 4960 required
        // ABORT.
        (sctp::message::Init { tag: 0, ..good.clone() }, &[] as &[&str]),
        (sctp::message::Init { outbound: 0, ..good.clone() }, &["ABORT [7]"]),
        (sctp::message::Init { inbound: 0, ..good.clone() }, &["ABORT [7]"]),
        (sctp::message::Init { a_rwnd: 1499, ..good.clone() }, &["ABORT [7]"]),
        (sctp::message::Init { parameters: vec![extensions], ..good.clone() }, &["ABORT [13]"]),
    ];
    for (init, answer) in cases {
        // The INIT comes from an unknown host, and then from a peer, whose association does not change.
        for from in [mn(5), mn(1)] {
            let refused = script.hears_tagged(0, from, vec![Chunk::Init(init.clone())]);
            assert_eq!(refused, Err(Reason("sctp_init_refused")));
            assert_eq!(script.says(), told(from, answer));
        }
    }
    let least = sctp::message::Init { a_rwnd: 1500, ..good.clone() };
    script.hears_tagged(0, mn(5), vec![Chunk::Init(least)]).unwrap();
    assert_eq!(script.says(), told(mn(5), &["INIT-ACK"]));
    assert_eq!(script.endpoint.association(script.id.unwrap()).unwrap().state(), State::Established);
    let bytes = Packet { src_port: 1, dst_port: 9, tag: 0, chunks: vec![Chunk::Init(good)] }.emit();
    let refused = script.endpoint.receive(script.at(), mn(5), CN, &bytes);
    assert_eq!(refused, Err(Reason("sctp_no_listener")));
    assert_eq!(script.says(), told(mn(5), &["ABORT []"]));
}

/// RFC 9260, section 5.2.1: two ends that open at the same time have one association.
#[test]
fn two_that_call_each_other_at_once_have_one_association() {
    let config = Config::default();
    let mut ends = [endpoint(&config, 1), endpoint(&config, 2)];
    let addresses = [mn(1), CN];
    for who in 0..2 {
        let open = sctp::Open {
            local: vec![addresses[who]],
            local_port: PORT,
            peer: vec![addresses[1 - who]],
            peer_port: PORT,
        };
        ends[who].open(Instant::ZERO, &open).unwrap();
    }
    for round in 0..20 {
        let now = Instant::from_millis(round * 10);
        let sent: Vec<Vec<_>> =
            ends.iter_mut().map(|end| std::iter::from_fn(|| end.poll_transmit(now)).collect()).collect();
        for (who, packets) in sent.into_iter().enumerate() {
            for packet in packets {
                ends[1 - who].receive(now, packet.src, packet.dst, &packet.bytes).unwrap();
            }
        }
    }
    for end in &mut ends {
        let states: Vec<State> = end.associations().map(|(_, it)| it.state()).collect();
        assert_eq!(states, [State::Established]);
        let events: Vec<AssociationEvent> =
            std::iter::from_fn(|| end.poll_event()).map(|(_, event)| event).collect();
        assert_eq!(events.iter().filter(|event| **event == AssociationEvent::Opened).count(), 1);
    }
}

// --- the end of associations (RFC 9260, section 9.2), and ICMP errors (RFC 9260, section 10) -------------------------

#[test]
fn a_shutdown_waits_for_what_is_not_acknowledged() {
    let mut script = script();
    script.write(1);
    script.says();
    script.hears(mn(1), vec![Chunk::Shutdown(PEER_TSN.wrapping_sub(1))]).unwrap();
    assert_eq!(script.says(), told(mn(1), &[]), "it has a chunk of ours to acknowledge first");
    assert_eq!(script.events.last(), Some(&AssociationEvent::PeerFinished));
    script.sack(1, &[]);
    assert_eq!(script.says(), told(mn(1), &["SHUTDOWN-ACK"]));
    assert_eq!(script.wait_for_timer(), 1000);
    assert_eq!(script.says(), told(mn(1), &["SHUTDOWN-ACK"]), "T2");
    script.hears(mn(1), vec![Chunk::ShutdownComplete { reflected: false }]).unwrap();
    script.says();
    assert_eq!(script.events.last(), Some(&AssociationEvent::Closed(Ended::Finished)));
}

#[test]
fn a_router_is_believed_if_it_quotes_the_tag() {
    let mut script = script();
    let quote = |tag: u32| {
        let bytes = Packet { src_port: PORT, dst_port: 4000, tag, chunks: vec![Chunk::CookieAck] }.emit();
        bytes[..8].to_vec()
    };
    let unreachable = Rejection::ProtocolUnreachable;
    assert_eq!(
        script.endpoint.icmp_error(script.at(), mn(1), &quote(1), unreachable),
        Err(Reason("sctp_icmp_tag"))
    );
    assert_eq!(
        script.endpoint.icmp_error(script.at(), mn(1), &quote(0), unreachable),
        Err(Reason("sctp_icmp_tag"))
    );
    assert_eq!(
        script.endpoint.icmp_error(script.at(), mn(2), &quote(PEER_TAG), unreachable),
        Err(Reason("sctp_icmp_unknown"))
    );
    assert_eq!(
        script.endpoint.icmp_error(script.at(), mn(1), &[1, 2], unreachable),
        Err(Reason("sctp_icmp_quote"))
    );
    assert_eq!(
        script.endpoint.icmp_error(script.at(), mn(1), &quote(PEER_TAG), Rejection::TooBig(1000)),
        Ok(())
    );
    script.write(1);
    assert_eq!(script.says(), told(mn(1), &["DATA 0", "DATA 1"]), "cut for the narrower path");
    assert_eq!(script.endpoint.icmp_error(script.at(), mn(1), &quote(PEER_TAG), unreachable), Ok(()));
    script.says();
    assert_eq!(script.events.last(), Some(&AssociationEvent::Closed(Ended::Unreachable)));
}
