//! A directory gives an address of the peer while an association opens. The answer of the directory is not signed, so
//! the address may be false.

use crate::harness::{CN, CN2, Network, PORT, endpoint, mn, noise};
use crate::roaming::has;
use crate::transfers::patient;
use auth::Key;
use sctp::message::{Chunk, Packet, Parameter};
use sctp::{AssociationEvent, Change, Config, Rejection, State, Transmit};
use wire::{Duration, Ipv4Addr, Reason};

/// The false address that the directory gives.
pub(crate) const LIAR: Ipv4Addr = Ipv4Addr::new(10, 66, 6, 6);

pub(crate) fn keyed() -> Config {
    Config { pair_key: Some((7, Key::new(*b"a key of two"))), ..patient() }
}

/// Returns a network where host 0 has sent COOKIE ECHO. All packets on the wire are lost.
pub(crate) fn echoed(config: &Config) -> Network {
    let mut net = Network::with(config, config, &[mn(1)], &[CN]);
    net.run_until(Duration::from_secs(1), |net| net.states()[0] == State::CookieEchoed);
    net.flush(0);
    net.lose(|_| true);
    net
}

pub(crate) fn to(net: &Network, from: usize, address: Ipv4Addr) -> Vec<Transmit> {
    let sent = net.sent[from..].iter();
    sent.filter(|(_, who, t)| *who == 0 && t.dst == address).map(|(_, _, t)| t.clone()).collect()
}

pub(crate) fn paths(net: &mut Network) -> Vec<Ipv4Addr> {
    net.association(0).paths().map(|path| path.address).collect()
}

/// Returns a forged COOKIE ACK with the right tag. A host that has read COOKIE ECHO finds the tag in the state
/// cookie.
fn forged(net: &Network) -> Vec<u8> {
    let init =
        net.sent.iter().find_map(|(_, who, t)| match Packet::parse(&t.bytes).unwrap().chunks.as_slice() {
            [Chunk::Init(init)] if *who == 0 => Some(init.tag),
            _ => None,
        });
    Packet { src_port: PORT, dst_port: 4000, tag: init.unwrap(), chunks: vec![Chunk::CookieAck] }.emit()
}

/// Without a pair key, COOKIE ECHO goes only to the host that made the cookie. Any other host that reads the cookie
/// could take over the association.
#[test]
fn without_a_key_a_cookie_goes_to_its_maker_only() {
    let mut net = echoed(&patient());
    let (now, from) = (net.now, net.sent.len());
    assert!(!net.association(0).try_at(now, LIAR));
    net.run_for(3000);
    assert!(to(&net, from, LIAR).is_empty());
    assert_eq!(net.states(), [State::Established; 2]);
    assert_eq!(paths(&mut net), [CN]);
}

/// Without a pair key, a peer that has moved after its INIT ACK gets a new INIT at the directory's address. The
/// association opens there before all retransmissions are used.
#[test]
fn without_a_key_an_opening_begins_anew_where_the_peer_is() {
    let config = Config::default();
    let mut net = echoed(&config);
    net.hosts[1].endpoint = endpoint(&config, 2);
    net.hosts[1].endpoint.listen(PORT, &[CN]);
    net.hosts[1].endpoint.accept_at(&[CN2]);
    net.dead.push(CN);
    let mut told = 0;
    for _ in 0..60 {
        net.run_for(1000);
        let now = net.now;
        told += usize::from(net.association(0).try_at(now, CN2));
    }
    assert_eq!(told, 1);
    assert_eq!(net.states()[0], State::Established);
    assert_eq!(paths(&mut net), [CN2]);
}

/// The directory gives a false address. With a pair key, only the peer can make COOKIE ACK. The host at the false
/// address does not have the key, so it gets no association.
#[test]
fn with_a_key_nobody_else_acknowledges_a_cookie() {
    let mut net = echoed(&keyed());
    let (now, from) = (net.now, net.sent.len());
    assert!(net.association(0).try_at(now, LIAR));
    net.flush(0);
    assert_eq!(to(&net, from, LIAR).len(), 1);
    let (now, bytes) = (net.now, forged(&net));
    for src in [LIAR, CN] {
        let refused = net.hosts[0].endpoint.receive(now, src, mn(1), &bytes);
        assert_eq!(refused, Err(Reason("sctp_unauthenticated")));
        assert_eq!(net.states()[0], State::CookieEchoed);
    }
    net.dead.push(LIAR);
    net.run_for(5000);
    assert_eq!(net.states(), [State::Established; 2]);
    assert_eq!(paths(&mut net), [CN], "the liar's address is no path");
    net.hosts[0].data = noise(1, 20_000);
    net.run_for(1000);
    assert!(net.hosts[1].got == noise(1, 20_000));
}

/// A host at the false address answers INIT, but does not have the pair key. The opening returns to the addresses
/// that the user gave.
#[test]
fn with_a_key_a_liar_that_answers_init_only_delays_an_opening() {
    for plain in [false, true] {
        let config = Config { pair_key: keyed().pair_key, ..Config::default() };
        let mut net = Network::with(&config, &config, &[mn(1)], &[CN]);
        net.lose(|_| true);
        let now = net.now;
        assert!(net.association(0).try_at(now, LIAR));
        net.flush(0);
        let (init, now) = (to(&net, 0, LIAR)[0].clone(), net.now);
        net.lose(|_| true);
        let other = (9, Key::new(*b"another key"));
        let mut liar = endpoint(&Config { pair_key: Some(other), ..Config::default() }, 8);
        liar.listen(PORT, &[LIAR]);
        liar.receive(now, mn(1), LIAR, &init.bytes).unwrap();
        let mut answer = liar.poll_transmit(now).unwrap();
        if plain {
            let mut packet = Packet::parse(&answer.bytes).unwrap();
            let [Chunk::InitAck(ack)] = packet.chunks.as_mut_slice() else { panic!("{packet:?}") };
            ack.parameters.retain(|parameter| matches!(parameter, Parameter::Cookie(_)));
            answer.bytes = packet.emit();
        }
        net.arrive(0, &answer);
        assert_eq!(net.states()[0] == State::CookieWait, plain);
        net.dead.push(LIAR);
        net.run_for(100_000);
        assert_eq!(net.states(), [State::Established; 2], "{plain}");
        assert_eq!(paths(&mut net), [CN]);
    }
}

/// With a pair key, a peer that has moved gets COOKIE ECHO at its new address, which a directory gives.
#[test]
fn with_a_key_a_cookie_follows_the_peer() {
    let mut net = echoed(&keyed());
    net.dead.push(CN);
    net.hosts[1].endpoint.accept_at(&[CN2]);
    let now = net.now;
    assert!(net.association(0).try_at(now, CN2));
    net.run_for(100);
    assert_eq!(net.states(), [State::Established; 2]);
    assert_eq!(paths(&mut net), [CN2]);
}

/// If the directory's address does not answer, INIT also goes to the address that the user gave.
#[test]
fn an_opening_returns_to_the_addresses_that_the_user_gave() {
    let mut net = Network::new(&patient());
    net.lose(|_| true);
    net.dead.push(LIAR);
    let now = net.now;
    assert!(net.association(0).try_at(now, LIAR));
    net.run_for(10_000);
    assert!(!to(&net, 0, LIAR).is_empty());
    assert_eq!(net.states(), [State::Established; 2]);
    assert_eq!(paths(&mut net), [CN]);
}

/// If the directory repeats its answer, no further packet is sent immediately, and packets to the other addresses are
/// not delayed.
#[test]
fn a_directory_that_repeats_itself_changes_nothing() {
    let mut net = Network::new(&patient());
    net.lose(|_| true);
    net.dead.extend([LIAR, CN]);
    let now = net.now;
    assert!(net.association(0).try_at(now, LIAR));
    for _ in 0..40 {
        net.run_for(500);
        let now = net.now;
        assert!(!net.association(0).try_at(now, LIAR));
    }
    assert!(to(&net, 0, CN).len() >= 3, "{}", to(&net, 0, CN).len());
    assert!(to(&net, 0, LIAR).len() <= 6, "{}", to(&net, 0, LIAR).len());
}

/// A directory gives 100 addresses. Only `max_addresses` of them are tried, only the last of these is kept, and
/// time-outs still end the opening.
#[test]
fn a_directory_names_a_bounded_number_of_addresses() {
    let config = Config { max_init_retransmits: 8, ..Config::default() };
    let mut net = Network::new(&config);
    net.lose(|_| true);
    net.dead.push(CN);
    let liars: Vec<Ipv4Addr> = (1..=100).map(|last| Ipv4Addr::new(10, 66, 0, last)).collect();
    net.dead.extend(&liars);
    let mut believed = 0;
    for liar in &liars {
        let now = net.now;
        believed += usize::from(net.association(0).try_at(now, *liar));
        net.run_for(10);
        assert!(paths(&mut net).len() <= 2);
    }
    assert_eq!(believed, config.max_addresses);
    net.run_for(600_000);
    assert_eq!(net.states()[0], State::Closed, "time-outs are counted");
}

fn quote(net: &Network, address: Ipv4Addr) -> Vec<u8> {
    let packets = to(net, 0, address);
    packets.last().unwrap().bytes[..20].to_vec()
}

/// "Protocol unreachable" from the address that a directory gave does not end the opening. No more packets go to this
/// address.
#[test]
fn a_host_without_sctp_where_a_directory_lied_ends_nothing() {
    for config in [patient(), keyed()] {
        let key = config.pair_key.is_some();
        let mut net = if key { echoed(&config) } else { Network::new(&config) };
        net.lose(|_| true);
        net.dead.push(LIAR);
        let now = net.now;
        assert!(net.association(0).try_at(now, LIAR));
        net.flush(0);
        let quote = quote(&net, LIAR);
        net.hosts[0].endpoint.icmp_error(now, LIAR, &quote, Rejection::ProtocolUnreachable).unwrap();
        net.flush(0);
        let from = net.sent.len();
        net.run_for(10_000);
        assert_eq!(net.states(), [State::Established; 2], "key: {key}");
        assert!(to(&net, from, LIAR).is_empty());
    }
}

/// "Protocol unreachable" about a change that was sent to a directory's address does not end the association. The
/// change is sent to the other address.
#[test]
fn a_host_without_sctp_where_a_directory_lied_ends_no_open_association() {
    let mut net = Network::opened(&patient());
    net.drops[1] = usize::MAX;
    net.dead.push(LIAR);
    let now = net.now;
    net.association(0).change(now, &[Change::Add(mn(2))]).unwrap();
    net.flush(0);
    assert!(net.association(0).try_at(now, LIAR));
    net.flush(0);
    let quote = quote(&net, LIAR);
    net.hosts[0].endpoint.icmp_error(now, LIAR, &quote, Rejection::ProtocolUnreachable).unwrap();
    net.flush(0);
    net.drops[1] = 0;
    net.run_for(5000);
    assert_eq!(net.states(), [State::Established; 2]);
    assert_eq!(paths(&mut net), [CN]);
    let done = |event: &&AssociationEvent| matches!(event, AssociationEvent::Changed(..));
    assert_eq!(net.events(0).iter().filter(done).count(), 1);
}

/// If the host at the first of two addresses that the user gave has no SCTP, the opening continues at the second
/// address.
#[test]
fn a_host_without_sctp_ends_an_opening_if_there_is_no_other() {
    let open = sctp::Open { local: vec![mn(1)], local_port: 4000, peer: vec![CN2, CN], peer_port: PORT };
    let mut net = Network::new(&patient());
    net.hosts[0].endpoint = endpoint(&patient(), 5);
    let now = net.now;
    net.lose(|_| true);
    net.dead.push(CN2);
    net.hosts[0].id = net.hosts[0].endpoint.open(now, &open);
    net.flush(0);
    let quote = quote(&net, CN2);
    net.hosts[0].endpoint.icmp_error(now, CN2, &quote, Rejection::ProtocolUnreachable).unwrap();
    net.run_for(100);
    assert_eq!(net.states(), [State::Established; 2]);
    assert!(!has(&net.sent.last().unwrap().2, |chunk| matches!(chunk, Chunk::Abort { .. })));
}

// --- a peer that has the association, and whose answers are lost -------------------------------------------------------

/// Returns a network where host 1 has the association and has written data, but each of its COOKIE ACKs was lost.
/// Host 0 has just sent INIT in addition to COOKIE ECHO.
fn acknowledged_in_vain() -> Network {
    let mut net = Network::new(&Config { max_init_retransmits: 8, ..patient() });
    net.hosts[1].data = noise(1, 5000);
    net.run_until(Duration::from_secs(1), |net| net.states()[1] == State::Established);
    net.lose(|_| true);
    net.drops[1] = usize::MAX;
    let inits = |net: &Network| {
        net.sent.iter().filter(|(_, who, t)| *who == 0 && has(t, |c| matches!(c, Chunk::Init(_)))).count()
    };
    net.run_until(Duration::from_mins(5), |net| inits(net) == 2);
    assert_eq!(net.states()[1], State::Established);
    net.lose(|_| true);
    net
}

fn tells_of_no_restart(net: &Network) -> bool {
    !net.events(1).iter().any(|event| matches!(event, AssociationEvent::Restarted { intact: false }))
}

/// The answer of the peer to COOKIE ECHO opens the association, although INIT was sent as well and is lost. The peer
/// does not restart.
#[test]
fn a_cookie_is_repeated_beside_a_second_init() {
    let mut net = acknowledged_in_vain();
    net.drops[1] = 0;
    let is_init = |transmit: &Transmit| has(transmit, |chunk| matches!(chunk, Chunk::Init(_)));
    while net.states()[0] != State::Established {
        assert!(net.step(net.now + Duration::from_mins(1)));
        net.lose(is_init);
    }
    net.run_for(2000);
    assert_eq!(net.states(), [State::Established; 2]);
    assert!(!net.events(1).iter().any(|event| matches!(event, AssociationEvent::Restarted { .. })));
    assert!(net.hosts[0].got == noise(1, 5000));
}

/// If only the second INIT is answered, the peer restarts. The peer had received no data and got no acknowledgment,
/// so its user loses nothing.
#[test]
fn a_peer_that_has_the_association_begins_again_and_loses_nothing() {
    for finishes in [false, true] {
        let mut net = acknowledged_in_vain();
        net.hosts[1].finishes = finishes;
        net.flush(1);
        net.drops[1] = 0;
        let second = |transmit: &Transmit| has(transmit, |c| matches!(c, Chunk::Init(_) | Chunk::InitAck(_)));
        let from = net.sent.len();
        while !net.sent[from..].iter().any(|(_, who, t)| *who == 1 && second(t)) {
            net.run_for(10);
            net.lose(|transmit| !second(transmit));
        }
        net.run_for(60_000);
        assert!(net.hosts[0].got == noise(1, 5000), "{finishes}: {:?}", net.events(0));
        assert!(tells_of_no_restart(&net));
        assert_eq!(net.hosts[1].endpoint.associations().count(), 1);
        let opened = |who: usize| net.events(who).iter().filter(|e| **e == AssociationEvent::Opened).count();
        assert_eq!([opened(0), opened(1)], [1, 1]);
        let credit =
            |event: &AssociationEvent| if let AssociationEvent::Room(more) = event { *more } else { 0 };
        let credit: usize = net.events(1).iter().map(credit).sum();
        assert_eq!(credit, 128 * 1024 + if finishes { 0 } else { 5000 });
        let states = if finishes { [State::Closed; 2] } else { [State::Established; 2] };
        assert_eq!(net.states(), states);
    }
}

/// The host that opens has moved, and the peer knows its new address only from a directory. The peer refuses an INIT
/// from this address, as any host could send it (RFC 9260, section 5.2.2). COOKIE ECHO is accepted from any address,
/// so the association opens.
#[test]
fn a_directory_lets_nobody_restart_an_association() {
    let mut net = acknowledged_in_vain();
    let now = net.now;
    net.association(1).change(now, &[Change::Add(CN2)]).unwrap();
    net.flush(1);
    assert!(net.association(1).try_at(now, mn(2)));
    net.dead.push(mn(1));
    assert!(net.association(0).open_from(now, mn(2)));
    net.drops[1] = 0;
    net.run_until(Duration::from_secs(30), |net| net.states()[0] == State::Established);
    // The host adds its new address, as no SACK leaves from an address that the association does not have.
    let now = net.now;
    net.association(0).change(now, &[Change::Add(mn(2))]).unwrap();
    net.flush(0);
    net.run_for(200_000);
    let refused = |transmit: &Transmit| has(transmit, |chunk| matches!(chunk, Chunk::Abort { .. }));
    assert!(net.sent.iter().any(|(_, who, t)| *who == 1 && t.dst == mn(2) && refused(t)));
    assert_eq!(net.states(), [State::Established; 2]);
    assert!(net.hosts[0].got == noise(1, 5000), "{:?}", net.events(0));
    assert!(!net.events(1).iter().any(|event| matches!(event, AssociationEvent::Restarted { .. })));
}

/// An ABORT from a directory's false address answers only the second INIT. It does not end the first opening, which
/// succeeds.
#[test]
fn a_second_init_is_refused_and_the_cookie_goes_on() {
    let mut net = acknowledged_in_vain();
    let now = net.now;
    net.dead.push(LIAR);
    assert!(net.association(0).try_at(now, LIAR));
    net.flush(0);
    let (init, now) = (to(&net, 0, LIAR)[0].clone(), net.now);
    let Chunk::Init(init) = &Packet::parse(&init.bytes).unwrap().chunks[0] else { panic!("no INIT") };
    let abort = Chunk::Abort { reflected: false, causes: Vec::new() };
    let bytes = Packet { src_port: PORT, dst_port: 4000, tag: init.tag, chunks: vec![abort] }.emit();
    let refused = net.hosts[0].endpoint.receive(now, LIAR, mn(1), &bytes);
    assert_eq!(refused, Err(Reason("sctp_abort_unproved")));
    net.flush(0);
    assert_eq!(net.states()[0], State::CookieEchoed);
    net.drops[1] = 0;
    net.run_for(100_000);
    assert_eq!(net.states(), [State::Established; 2]);
    assert!(tells_of_no_restart(&net));
    assert!(net.hosts[0].got == noise(1, 5000));
}
