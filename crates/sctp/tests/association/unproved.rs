//! Packets from an address that only a directory has given. Until an authenticated packet or a HEARTBEAT ACK proves
//! that the peer is there, DATA, SACK, SHUTDOWN, ERROR and ABORT from the address do not change the state or the data
//! of an open association. In SHUTDOWN-ACK-SENT, ABORT and SHUTDOWN COMPLETE end it.

use crate::directory::{LIAR, echoed, keyed, paths, to};
use crate::harness::{CN, CN2, Network, PORT, endpoint, mn, noise};
use crate::roaming::has;
use crate::transfers::patient;
use auth::Key;
use sctp::message::{Cause, Chunk, Code, Data, Packet, Sack};
use sctp::{AssociationEvent, Change, Config, PathState, State, Transmit};
use wire::{Duration, Ipv4Addr, Reason};

/// Returns the ABORT with which a host without associations and listeners answers the last packet to `address`.
fn answer(net: &Network, address: Ipv4Addr) -> Transmit {
    let (now, last) = (net.now, to(net, 0, address).pop().unwrap());
    let mut stranger = endpoint(&patient(), 8);
    assert!(stranger.receive(now, last.src, address, &last.bytes).is_err());
    let answer = stranger.poll_transmit(now).unwrap();
    assert!(has(&answer, |chunk| matches!(chunk, Chunk::Abort { .. })));
    answer
}

/// Returns an ABORT from the false address, with the T bit and the tag of the last packet to this address.
fn reflects(net: &Network) -> Transmit {
    let last = to(net, 0, LIAR).pop().unwrap();
    let mut packet = Packet::parse(&last.bytes).unwrap();
    (packet.src_port, packet.dst_port) = (packet.dst_port, packet.src_port);
    packet.chunks = vec![Chunk::Abort { reflected: true, causes: Vec::new() }];
    Transmit { src: LIAR, dst: last.src, bytes: packet.emit(), cut: None }
}

fn hears(net: &mut Network, packet: &Transmit) -> Result<(), Reason> {
    let now = net.now;
    let verdict = net.hosts[0].endpoint.receive(now, packet.src, packet.dst, &packet.bytes);
    net.flush(0);
    verdict
}

fn lie() -> Chunk {
    Chunk::Data(Data { data: b"lie".to_vec(), begins: true, ends: true, ..Data::default() })
}

/// Delivers a forged chunk from `src` to the mobile host, with the right tag.
fn lies_at(net: &mut Network, src: Ipv4Addr, chunk: Chunk) -> Result<(), Reason> {
    let (_, _, last) = net.sent.iter().rfind(|(_, who, _)| *who == 1).unwrap();
    let tag = Packet::parse(&last.bytes).unwrap().tag;
    let bytes = Packet { src_port: PORT, dst_port: 4000, tag, chunks: vec![chunk] }.emit();
    hears(net, &Transmit { src, dst: mn(1), bytes, cut: None })
}

/// Returns a network where the mobile host has sent a change that the peer did not receive. All packets of the peer
/// are lost.
fn asked() -> Network {
    let mut net = Network::opened(&patient());
    net.drops[1] = usize::MAX;
    let now = net.now;
    net.association(0).change(now, &[Change::Add(mn(2))]).unwrap();
    net.flush(0);
    net.lose(|_| true);
    net
}

/// An ABORT from an address that only a directory has given does not end an open association. Any host answers a
/// packet out of the blue with ABORT (RFC 9260, section 8.4), so it shows only that the peer is not there. The change
/// is sent to another address at once.
#[test]
fn an_abort_from_where_a_directory_lied_ends_no_open_association() {
    let mut net = asked();
    let now = net.now;
    assert!(net.association(0).try_at(now, LIAR));
    net.flush(0);
    let (abort, from) = (answer(&net, LIAR), net.sent.len());
    net.drops[1] = 0;
    assert_eq!(hears(&mut net, &abort), Err(Reason("sctp_abort_unproved")));
    assert!(to(&net, from, CN).iter().any(|t| has(t, |chunk| matches!(chunk, Chunk::Asconf(_)))));
    assert_eq!(hears(&mut net, &abort), Err(Reason("sctp_no_association")), "it is no address of the peer's");
    net.run_for(1000);
    assert_eq!(net.states(), [State::Established; 2]);
    assert_eq!(paths(&mut net), [CN]);
    assert!(to(&net, from, LIAR).is_empty());
    let done = AssociationEvent::Changed(Change::Add(mn(2)), sctp::ChangeOutcome::Done);
    assert!(net.events(0).contains(&done));
}

/// An ABORT from an address that only a directory has given does not end an opening. A host without a listener
/// refuses INIT, and a host that reads COOKIE ECHO knows both tags.
#[test]
fn an_abort_from_where_a_directory_lied_ends_no_opening() {
    for config in [patient(), keyed()] {
        let key = config.pair_key.is_some();
        let mut net = if key { echoed(&config) } else { Network::new(&config) };
        net.lose(|_| true);
        let now = net.now;
        assert!(net.association(0).try_at(now, LIAR));
        net.flush(0);
        let abort = if key { reflects(&net) } else { answer(&net, LIAR) };
        net.lose(|_| true);
        assert_eq!(hears(&mut net, &abort), Err(Reason("sctp_abort_unproved")), "key: {key}");
        net.run_for(200);
        assert_eq!(net.states(), [State::Established; 2], "key: {key}");
        assert_eq!(paths(&mut net), [CN]);
    }
}

/// A host at a directory's address answers INIT, and then refuses its own cookie with ABORT. The opening does not
/// end.
#[test]
fn a_host_that_refuses_its_own_cookie_ends_no_opening() {
    let config = Config { pair_key: keyed().pair_key, ..Config::default() };
    let mut net = Network::with(&config, &config, &[mn(1)], &[CN]);
    net.lose(|_| true);
    let now = net.now;
    assert!(net.association(0).try_at(now, LIAR));
    net.flush(0);
    let init = to(&net, 0, LIAR).pop().unwrap();
    let mut liar = endpoint(&Config { pair_key: Some((9, Key::new(*b"another key"))), ..config }, 8);
    liar.listen(PORT, &[LIAR]);
    liar.receive(now, mn(1), LIAR, &init.bytes).unwrap();
    net.lose(|_| true);
    let init_ack = liar.poll_transmit(now).unwrap();
    assert_eq!(hears(&mut net, &init_ack), Ok(()));
    assert_eq!(net.states()[0], State::CookieEchoed);
    let abort = reflects(&net);
    assert_eq!(hears(&mut net, &abort), Err(Reason("sctp_abort_unproved")));
    net.dead.push(LIAR);
    net.run_for(10_000);
    assert_eq!(net.states(), [State::Established; 2]);
    assert_eq!(paths(&mut net), [CN]);
}

/// In SHUTDOWN-ACK-SENT, an ABORT from a directory's address ends the association cleanly: all data have arrived, and
/// the peer may have ended already.
#[test]
fn an_abort_from_where_a_directory_leads_ends_what_is_done() {
    let mut net = Network::opened(&patient());
    let now = net.now;
    net.association(1).finish(now);
    net.run_until(Duration::from_secs(1), |net| net.states()[1] == State::Closed);
    assert_eq!(net.states()[0], State::ShutdownAckSent);
    net.lose(|_| true);
    net.dead.push(CN);
    let now = net.now;
    net.association(0).change(now, &[Change::Add(mn(2))]).unwrap();
    assert!(net.association(0).try_at(now, CN2));
    net.run_for(100);
    assert_eq!(net.events(0).last(), Some(&AssociationEvent::Closed(sctp::Ended::Finished)));
}

/// A host at a directory's false address may know the tag, if COOKIE ECHO went to it once. Its DATA, SACK, SHUTDOWN,
/// SHUTDOWN ACK, ERROR and ABORT are refused.
#[test]
fn a_host_that_is_not_proved_says_nothing_about_data() {
    let mut net = asked();
    let now = net.now;
    assert!(net.association(0).try_at(now, LIAR));
    net.flush(0);
    let sack = Sack { cumulative: 7, a_rwnd: 9, ..Sack::default() };
    let unknown = Cause::new(Code::UNRECOGNIZED_CHUNK, [0xc1, 0, 0, 4]);
    let abort = Chunk::Abort { reflected: false, causes: Vec::new() };
    let lies =
        [lie(), Chunk::Sack(sack), Chunk::Shutdown(0), Chunk::ShutdownAck, Chunk::Error(vec![unknown])];
    for lie in lies {
        assert_eq!(lies_at(&mut net, LIAR, lie.clone()), Err(Reason("sctp_source_unproved")), "{lie:?}");
    }
    assert_eq!(lies_at(&mut net, LIAR, abort), Err(Reason("sctp_abort_unproved")));
    net.drops[1] = 0;
    net.hosts[1].data = noise(1, 5000);
    net.run_for(2000);
    assert_eq!(net.states(), [State::Established; 2]);
    assert!(net.hosts[0].got == noise(1, 5000));
}

/// The peer is at the directory's address. After its authenticated answer, its other chunks count, before a HEARTBEAT
/// ACK confirms the address.
#[test]
fn what_comes_after_a_signed_answer_counts() {
    let mut net = asked();
    net.dead.push(CN);
    let now = net.now;
    net.association(1).move_to(now, CN2, &[CN2]).unwrap();
    net.drops[1] = 0;
    assert!(net.association(0).try_at(now, CN2));
    net.flush(0);
    let nothing = Chunk::Error(Vec::new());
    assert_eq!(lies_at(&mut net, CN2, nothing.clone()), Err(Reason("sctp_source_unproved")));
    let proves = |t: &Transmit| has(t, |c| matches!(c, Chunk::Heartbeat(_) | Chunk::HeartbeatAck(_)));
    while !net.events(0).iter().any(|event| matches!(event, AssociationEvent::Changed(..))) {
        net.lose(proves);
        assert!(net.step(net.now + Duration::from_secs(1)));
    }
    let proved =
        net.association(0).paths().any(|path| path.address == CN2 && path.state == PathState::Active);
    assert!(!proved);
    assert_eq!(lies_at(&mut net, CN2, nothing), Ok(()));
}

/// A directory gives 40 addresses of a peer that is not heard. Only `max_addresses` of them are tried, and only the
/// last one is kept. After the peer was heard, new addresses are tried.
#[test]
fn a_directory_names_a_bounded_number_of_addresses_of_an_open_association() {
    let mut net = asked();
    let liars: Vec<Ipv4Addr> = (1..=40).map(|last| Ipv4Addr::new(10, 66, 0, last)).collect();
    net.dead.extend(&liars);
    let believed = |net: &mut Network| {
        let tries = liars.iter().map(|liar| {
            let now = net.now;
            let is_new = net.association(0).try_at(now, *liar);
            net.run_for(10);
            assert!(paths(net).len() <= 2);
            usize::from(is_new)
        });
        tries.sum::<usize>()
    };
    assert_eq!(believed(&mut net), patient().max_addresses);
    net.drops[1] = 0;
    net.run_for(10_000);
    assert_eq!(net.states(), [State::Established; 2]);
    net.drops[1] = usize::MAX;
    let now = net.now;
    net.association(0).change(now, &[Change::Delete(mn(2))]).unwrap();
    assert_eq!(believed(&mut net), patient().max_addresses);
}

/// A late packet from an earlier address of a directory is not answered with ABORT, as the peer may have been there.
#[test]
fn a_late_packet_from_where_a_directory_led_before_does_no_harm() {
    let mut net = asked();
    let now = net.now;
    assert!(net.association(0).try_at(now, CN2));
    assert!(net.association(0).try_at(now, LIAR));
    net.flush(0);
    let from = net.sent.len();
    assert_eq!(lies_at(&mut net, CN2, lie()), Err(Reason("sctp_unknown_source")));
    assert!(!net.sent[from..].iter().any(|(_, _, t)| has(t, |c| matches!(c, Chunk::Abort { .. }))));
}
