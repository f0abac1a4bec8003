//! Attacks by hosts without the key, and by peers (RFC 5062). The attacks change no association of other hosts,
//! and the packets that they cause to other hosts are limited.

use crate::harness::{CN, Network, PORT, Weather, endpoint, mn, noise};
use crate::script::{PEER_TSN, Script};
use crate::transfers::patient;
use auth::Key;
use sctp::message::{Action, Address, Asconf, Auth, Chunk, Packet, Request};
use sctp::{AssociationEvent, Change, ChangeOutcome, Config, Ended, Open, State, Transmit};
use wire::{Instant, Ipv4Addr, Reason};

const VICTIM: Ipv4Addr = Ipv4Addr::new(10, 66, 6, 6);

/// Returns the verification tag of packets to the correspondent, which any host on the path can read.
fn overheard(net: &Network) -> u32 {
    let (_, _, last) = net.sent.iter().rev().find(|(_, who, _)| *who == 0).unwrap();
    Packet::parse(&last.bytes).unwrap().tag
}

fn hijack(serial: u32) -> Chunk {
    let change =
        |action, correlation| Request::Change { action, correlation, address: Address::Ipv4(VICTIM) };
    let requests = vec![change(Action::Add, 1), change(Action::SetPrimary, 2)];
    Chunk::Asconf(Asconf { serial, lookup: Address::Ipv4(mn(1)), requests })
}

/// Returns the serial number of the mobile host's first ASCONF, which is its initial TSN.
fn next_serial(net: &Network) -> u32 {
    let init = net.sent.iter().find_map(|(_, who, transmit)| {
        match Packet::parse(&transmit.bytes).unwrap().chunks.as_slice() {
            [Chunk::Init(init)] if *who == 0 => Some(init.tsn),
            _ => None,
        }
    });
    init.unwrap()
}

/// An ASCONF is dropped without AUTH, with a wrong HMAC, with an algorithm that was not offered, and with another key
/// identifier. The source of the ASCONF does not matter. The attacker knows the tag and the serial number, but not the
/// key.
#[test]
fn a_forged_change_changes_nothing() {
    let mut net = Network::opened(&patient());
    net.hosts[1].data = noise(1, 3_000_000);
    net.run_for(100);
    let tag = overheard(&net);
    let auth = |key_id, hmac_id, len| Chunk::Auth(Auth { key_id, hmac_id, hmac: vec![7; len] });
    let serial = next_serial(&net);
    let cases = [
        (vec![hijack(serial)], "sctp_unauthenticated"),
        (vec![auth(0, 3, 32), hijack(serial)], "sctp_auth_code"),
        (vec![auth(0, 1, 20), hijack(serial)], "sctp_auth_code"),
        (vec![auth(0, 1, 0), hijack(serial)], "sctp_auth_code"),
        (vec![auth(1, 3, 32), hijack(serial)], "sctp_auth_key"),
        (vec![auth(0, 2, 16), hijack(serial)], "sctp_auth_algorithm"),
    ];
    for src in [mn(1), VICTIM] {
        for (chunks, why) in &cases {
            let before: Vec<_> = net.association(1).paths().map(|path| path.address).collect();
            let packet = Packet { src_port: 4000, dst_port: PORT, tag, chunks: chunks.clone() };
            let now = net.now;
            let refused = net.hosts[1].endpoint.receive(now, src, CN, &packet.emit());
            assert_eq!(refused, Err(Reason(why)), "from {src}");
            let after: Vec<_> = net.association(1).paths().map(|path| path.address).collect();
            assert_eq!(before, after);
            net.flush(1);
        }
    }
    net.run_for(500);
    assert!(
        !net.events(1)
            .iter()
            .any(|event| matches!(event, AssociationEvent::PeerAdded(_) | AssociationEvent::PeerPrimary(_)))
    );
    let to_victim: Vec<_> = net.sent.iter().filter(|(_, _, transmit)| transmit.dst == VICTIM).collect();
    assert!(to_victim.len() <= 1, "no more than the word that an algorithm is not known: {to_victim:?}");
    assert_eq!(net.states(), [State::Established; 2]);
}

/// RFC 9260, section 8.5: a packet with a wrong tag is dropped without an answer. An ASCONF names its association by
/// an address, so its packet is not out of the blue. An ABORT would show an attacker at any address whether a guessed
/// tag is wrong.
#[test]
fn a_wrong_tag_of_a_change_is_not_answered() {
    let mut net = Network::opened(&patient());
    let now = net.now;
    net.association(0).change(now, &[Change::Add(mn(2))]).unwrap();
    net.run_for(300);
    let now = net.now;
    net.association(0).change(now, &[Change::Delete(mn(2))]).unwrap();
    net.run_for(300);
    let (tag, serial, sent) = (overheard(&net), next_serial(&net), net.sent.len());
    let auth = Chunk::Auth(Auth { key_id: 0, hmac_id: 3, hmac: vec![7; 32] });
    for src in [VICTIM, mn(1), mn(2)] {
        for (tag, why) in [(tag, "sctp_auth_code"), (tag.wrapping_add(1), "sctp_tag")] {
            let chunks = vec![auth.clone(), hijack(serial)];
            let bytes = Packet { src_port: 4000, dst_port: PORT, tag, chunks }.emit();
            let now = net.now;
            let refused = net.hosts[1].endpoint.receive(now, src, CN, &bytes);
            assert_eq!(refused, Err(Reason(why)), "from {src}");
            net.flush(1);
        }
    }
    assert_eq!(net.sent.len(), sent);
}

/// A replayed ASCONF is not applied again, and gets no answer when its answer is no longer kept.
#[test]
fn a_recorded_change_is_not_carried_out_again() {
    let mut net = Network::opened(&patient());
    let now = net.now;
    net.association(0).change(now, &[Change::Add(mn(2))]).unwrap();
    net.run_for(300);
    let is_asconf = |transmit: &Transmit| {
        Packet::parse(&transmit.bytes).unwrap().chunks.iter().any(|chunk| matches!(chunk, Chunk::Asconf(_)))
    };
    let recorded = net.sent.iter().find(|(_, who, t)| *who == 0 && is_asconf(t)).unwrap().2.clone();
    let now = net.now;
    net.association(0).change(now, &[Change::Delete(mn(2))]).unwrap();
    net.run_for(300);
    assert_eq!(net.association(1).paths().count(), 1);
    let sent = net.sent.len();
    for src in [mn(1), mn(2), VICTIM] {
        net.arrive(1, &Transmit { src, ..recorded.clone() });
    }
    net.run_for(300);
    assert_eq!(net.association(1).paths().count(), 1);
    assert_eq!(net.sent.len(), sent, "not even an answer");
}

/// A peer adds the address of another host and requests data there. In 20 s, that host gets at most six probes of
/// at most 60 bytes, and no data.
#[test]
fn a_victim_gets_a_few_probes_and_no_data() {
    let mut net = Network::opened(&Config::default());
    net.hosts[1].data = noise(1, 30_000_000);
    net.dead.push(VICTIM);
    net.run_for(100);
    let now = net.now;
    net.association(0).change(now, &[Change::Add(VICTIM), Change::SetPrimary(VICTIM)]).unwrap();
    net.run_for(20_000);
    assert!(
        net.events(0).contains(&AssociationEvent::Changed(Change::SetPrimary(VICTIM), ChangeOutcome::Done))
    );
    let to_victim: Vec<_> = net.sent.iter().filter(|(_, _, transmit)| transmit.dst == VICTIM).collect();
    assert!((1..=6).contains(&to_victim.len()), "{}", to_victim.len());
    let heartbeat = |chunk: &Chunk| matches!(chunk, Chunk::Heartbeat(_));
    for (_, _, transmit) in to_victim {
        assert!(transmit.bytes.len() <= 60);
        assert!(Packet::parse(&transmit.bytes).unwrap().chunks.iter().all(heartbeat));
    }
    assert!(!net.events(1).contains(&AssociationEvent::PeerPrimary(VICTIM)));
}

/// A peer adds the addresses of 14 other hosts in one chunk. HB.Max.Burst limits the probes to all of these addresses
/// together.
#[test]
fn many_victims_share_one_probe_a_round_trip() {
    let config = Config { added_per_minute: 100, ..Config::default() };
    let mut net = Network::opened(&config);
    let victims: Vec<Ipv4Addr> = (1..=14).map(|last| Ipv4Addr::new(10, 66, 7, last)).collect();
    net.dead.clone_from(&victims);
    let changes: Vec<Change> = victims.iter().map(|victim| Change::Add(*victim)).collect();
    let now = net.now;
    net.association(0).change(now, &changes).unwrap();
    let from = net.now;
    net.run_for(10_000);
    let probes: Vec<_> = net.sent.iter().filter(|(_, _, t)| victims.contains(&t.dst)).collect();
    assert!(probes.len() <= 11, "{} in ten seconds", probes.len());
    assert!(probes.iter().all(|(at, ..)| *at >= from));
    assert_eq!(net.association(1).paths().count(), 15);
}

/// An ABORT to an address that is being deleted, or was deleted, has no effect: another host may have caused the ABORT
/// (RFC 5061, section 5.3, F4).
#[test]
fn an_abort_to_an_address_that_leaves_is_ignored() {
    let mut net = Network::opened(&patient());
    let now = net.now;
    net.association(0).change(now, &[Change::Add(mn(2))]).unwrap();
    net.run_for(300);
    let now = net.now;
    net.association(0).change(now, &[Change::Delete(mn(1))]).unwrap();
    net.flush(0);
    let tag = net.sent.iter().rev().find(|(_, who, _)| *who == 1).map(|(_, _, t)| t.bytes[4..8].to_vec());
    let tag = u32::from_be_bytes(tag.unwrap().try_into().unwrap());
    let chunks = vec![Chunk::Abort { reflected: false, causes: Vec::new() }];
    let abort = Packet { src_port: PORT, dst_port: 4000, tag, chunks }.emit();
    let now = net.now;
    let refused = net.hosts[0].endpoint.receive(now, CN, mn(1), &abort);
    assert_eq!(refused, Err(Reason("sctp_abort_to_old_address")));
    net.run_for(100);
    let now = net.now;
    let refused = net.hosts[0].endpoint.receive(now, CN, mn(1), &abort);
    assert_eq!(refused, Err(Reason("sctp_abort_to_old_address")), "also just after it has gone");
    net.run_for(3000);
    let now = net.now;
    assert_eq!(
        net.hosts[0].endpoint.receive(now, CN, mn(1), &abort),
        Err(Reason("sctp_not_our_address")),
        "and when nothing is late any more"
    );
    assert_eq!(net.states(), [State::Established; 2]);
}

/// With a pair key, a host without this key gets no association. Without a pair key, any host that saw the handshake
/// could make the association's key.
#[test]
fn with_a_pair_key_strangers_do_not_get_in() {
    let keyed = |key: &[u8]| Config { pair_key: Some((7, Key::new(key))), ..patient() };
    let mut net = Network::with(&keyed(b"ours"), &keyed(b"ours"), &[mn(1)], &[CN]);
    net.run_for(500);
    assert_eq!(net.states(), [State::Established; 2]);
    let now = net.now;
    net.association(0).change(now, &[Change::Add(mn(2))]).unwrap();
    net.run_for(300);
    assert!(net.events(0).contains(&AssociationEvent::Changed(Change::Add(mn(2)), ChangeOutcome::Done)));
    for other in [keyed(b"mine"), patient()] {
        let mut net = Network::with(&other, &keyed(b"ours"), &[mn(1)], &[CN]);
        net.run_for(3000);
        assert_eq!(net.hosts[1].endpoint.associations().count(), 0);
        assert!(net.refused.iter().all(|why| ["sctp_auth_code", "sctp_unauthenticated"].contains(&why.0)));
        assert!(!net.refused.is_empty());
    }
}

/// An endpoint that requires authenticated address changes opens no association with a peer that has no HMAC
/// algorithm.
#[test]
fn who_cannot_authenticate_changes_no_addresses() {
    let deaf = Config { hmacs: Vec::new(), ..patient() };
    let strict = Config { require_reconfiguration: true, ..patient() };
    let mut net = Network::with(&strict, &deaf, &[mn(1)], &[CN]);
    net.run_for(2000);
    let end = net.events(0).last();
    assert!(
        matches!(end, Some(AssociationEvent::Closed(Ended::Violation(_) | Ended::Unsupported))),
        "{end:?}"
    );
    assert_eq!(net.hosts[1].endpoint.associations().count(), 0);
}

/// RFC 5061, section 4.1.1: an ASCONF without AUTH is dropped, even in an association without a key.
#[test]
fn a_change_without_a_signature_is_dropped_where_nothing_is_signed() {
    let mut script = Script::accepted(&Config::default(), &[mn(1)]);
    for src in [mn(1), VICTIM] {
        assert_eq!(script.hears(src, vec![hijack(PEER_TSN)]), Err(Reason("sctp_unauthenticated")));
    }
    assert_eq!(script.says(), Vec::<String>::new());
    assert_eq!(script.active(), [mn(1)]);
    assert!(!script.events.iter().any(|event| matches!(event, AssociationEvent::PeerAdded(_))));
}

/// All packets of both endpoints are replayed, to the receiver and back to the sender. The number of packets that the
/// endpoints send in answer is limited, and no data are lost.
#[test]
fn an_echo_of_everything_does_no_harm() {
    let mut net = Network::opened(&patient());
    net.weather = Weather { loss: 3, double: 3, reorder: 10, corrupt: 0 };
    net.hosts[0].data = noise(1, 100_000);
    net.hosts[1].data = noise(2, 100_000);
    net.run_for(1000);
    let recorded: Vec<_> = net.sent.iter().map(|(_, who, transmit)| (*who, transmit.clone())).collect();
    for (who, transmit) in &recorded {
        net.arrive(1 - who, transmit);
        let back = Transmit { src: transmit.dst, dst: transmit.src, ..transmit.clone() };
        net.arrive(*who, &back);
    }
    net.run_for(60_000);
    assert_eq!(net.states(), [State::Established; 2]);
    assert!(net.hosts[0].got == noise(2, 100_000) && net.hosts[1].got == noise(1, 100_000));
    assert!(net.sent.len() < recorded.len() * 4, "{} from {}", net.sent.len(), recorded.len());
}

/// A listening port accepts at most 256 associations with one address. A host with another address is still accepted.
#[test]
fn one_address_does_not_take_all_associations() {
    let config = Config::default();
    let mut server = endpoint(&config, 1);
    server.listen(PORT, &[CN]);
    let now = Instant::from_millis(1000);
    let mut open = |address: Ipv4Addr, local_port: u16| {
        let mut client = endpoint(&config, u64::from(local_port));
        client
            .open(now, &Open { local: vec![address], local_port, peer: vec![CN], peer_port: PORT })
            .unwrap();
        let mut refused = None;
        while let Some(sent) = client.poll_transmit(now) {
            refused = server.receive(now, sent.src, sent.dst, &sent.bytes).err().or(refused);
            while let Some(sent) = server.poll_transmit(now) {
                if sent.dst == address {
                    let _ = client.receive(now, sent.src, sent.dst, &sent.bytes);
                }
            }
        }
        refused
    };
    for port in 1..=256 {
        assert_eq!(open(mn(1), port), None, "{port}");
    }
    assert_eq!(open(mn(1), 300), Some(Reason("sctp_too_many_of_address")));
    assert_eq!(open(mn(2), 300), None);
}
