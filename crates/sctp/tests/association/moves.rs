//! Addresses that are added and deleted while data flow (RFC 5061, and the rules of SIGMA).

use crate::harness::{CN, Network, PORT, Weather, mn, noise};
use crate::transfers::patient;
use sctp::message::{Cause, Chunk, Code, Packet};
use sctp::{
    AssociationEvent, Change, ChangeOutcome, Config, Ended, PathState, RequestError, State, Transmit,
};
use sha2::{Digest, Sha256};
use wire::{Duration, Instant};

fn done(change: Change) -> AssociationEvent {
    AssociationEvent::Changed(change, ChangeOutcome::Done)
}

/// A handoff while both links are up (add, set primary, prefer, wait, delete) loses no data and repeats none.
#[test]
fn a_handoff_while_both_addresses_work_loses_nothing() {
    let mut net = Network::opened(&patient());
    net.hosts[1].data = noise(7, 1 << 20);
    net.run_for(300);
    let now = net.now;
    net.association(0).change(now, &[Change::Add(mn(2))]).unwrap();
    net.run_for(200);
    assert!(net.events(0).contains(&done(Change::Add(mn(2)))));
    assert!(net.events(1).contains(&AssociationEvent::Path(mn(2), PathState::Active)));
    let now = net.now;
    net.association(0).change(now, &[Change::SetPrimary(mn(2))]).unwrap();
    net.association(0).prefer(now, None, mn(2)).unwrap();
    // The packets that queue on the old path leave in this time.
    net.run_for(200);
    assert!(net.events(1).contains(&AssociationEvent::Switched { from: mn(1), to: mn(2) }));
    assert!(net.events(0).contains(&AssociationEvent::Arriving(mn(2))));
    let now = net.now;
    net.association(0).change(now, &[Change::Delete(mn(1))]).unwrap();
    net.run_for(100);
    assert!(net.events(0).contains(&done(Change::Delete(mn(1)))));
    net.dead.push(mn(1));
    net.run_until(Duration::from_mins(1), |net| net.hosts[0].got.len() == 1 << 20);
    assert!(net.hosts[0].got == noise(7, 1 << 20));
    let counts = net.association(1).counts();
    assert_eq!((counts.retransmissions, counts.timeouts), (0, 0), "{counts:?}");
    assert_eq!(net.association(1).paths().map(|path| path.address).collect::<Vec<_>>(), [mn(2)]);
    assert_eq!(net.association(0).local_addresses().collect::<Vec<_>>(), [mn(2)]);
}

/// The old link is lost before the new one is known ("break before make"). All changes leave in one chunk from the
/// new address, and data continue before a time-out.
#[test]
fn a_handoff_after_the_old_address_died_goes_on_at_once() {
    let mut net = Network::opened(&Config::default());
    net.hosts[1].data = noise(8, 400_000);
    net.hosts[0].data = noise(9, 400_000);
    net.run_for(150);
    net.dead.push(mn(1));
    net.run_for(50);
    let before = net.hosts[0].got.len();
    let now = net.now;
    let changes = [Change::Add(mn(2)), Change::SetPrimary(mn(2)), Change::Delete(mn(1))];
    net.association(0).change(now, &changes).unwrap();
    net.run_for(100);
    assert!(changes.iter().all(|change| net.events(0).contains(&done(*change))), "{:?}", net.events(0));
    assert!(net.hosts[0].got.len() > before, "no time-out is waited for");
    let uplink = net.association(0).counts();
    assert_eq!(uplink.timeouts, 0);
    net.run_for(20_000);
    assert!(net.hosts[0].got == noise(8, 400_000));
    assert!(net.hosts[1].got == noise(9, 400_000));
    assert_eq!(net.association(1).counts().timeouts, 0);
}

/// RFC 5061, section 5.3, F1: until the peer has answered, only ASCONF leaves from a new address.
#[test]
fn a_new_address_is_silent_until_it_is_acknowledged() {
    let mut net = Network::opened(&patient());
    net.hosts[0].data = noise(7, 300_000);
    net.run_for(50);
    let (now, from) = (net.now, net.sent.len());
    net.association(0).change(now, &[Change::Add(mn(2))]).unwrap();
    net.association(0).prefer(now, None, mn(2)).unwrap();
    net.run_until(Duration::from_secs(1), |net| net.events(0).contains(&done(Change::Add(mn(2)))));
    let early = net.sent[from..].iter().filter(|(_, who, transmit)| *who == 0 && transmit.src == mn(2));
    let kinds: Vec<u8> = early.map(|(_, _, transmit)| transmit.bytes[12]).collect();
    assert_eq!(kinds, [15], "AUTH, with ASCONF behind it");
    net.run_for(200);
    let late = net.sent.iter().rev().find(|(_, who, _)| *who == 0).unwrap();
    assert_eq!(late.2.src, mn(2));
}

/// RFC 5061, section 5.1, B4: an ASCONF whose answer is lost is repeated unchanged, and applied once.
#[test]
fn a_lost_answer_is_given_again_and_nothing_done_twice() {
    let mut net = Network::opened(&patient());
    let now = net.now;
    net.association(0).change(now, &[Change::Add(mn(2))]).unwrap();
    net.flush(0);
    net.run_until(Duration::from_secs(1), |net| {
        !net.events(1).is_empty() && { net.events(1).contains(&AssociationEvent::PeerAdded(mn(2))) }
    });
    net.weather.loss = 100;
    net.dead.push(mn(1));
    net.run_for(30);
    net.dead.clear();
    net.weather.loss = 0;
    net.run_for(3000);
    assert!(net.events(0).contains(&done(Change::Add(mn(2)))));
    assert_eq!(net.events(1).iter().filter(|event| **event == AssociationEvent::PeerAdded(mn(2))).count(), 1);
    let asconfs = net.sent.iter().filter(|(_, _, t)| t.bytes.len() > 52 && t.bytes[12 + 40] == 0xc1);
    let bodies: Vec<_> = asconfs.map(|(_, _, t)| t.bytes[52..].to_vec()).collect();
    assert!(bodies.len() > 1 && bodies.windows(2).all(|two| two[0] == two[1]));
}

/// A requested primary address gets no data until it is confirmed. This rule protects other hosts from floods.
#[test]
fn set_primary_waits_for_the_proof() {
    let mut net = Network::opened(&patient());
    net.hosts[1].data = noise(7, 3 << 20);
    net.run_for(50);
    net.dead.push(mn(2));
    let now = net.now;
    net.association(0).change(now, &[Change::Add(mn(2)), Change::SetPrimary(mn(2))]).unwrap();
    net.run_for(500);
    assert!(net.events(0).contains(&done(Change::SetPrimary(mn(2)))));
    assert!(!net.events(1).contains(&AssociationEvent::PeerPrimary(mn(2))));
    let data_there = |net: &Network| {
        net.sent.iter().any(|(_, who, t)| *who == 1 && t.dst == mn(2) && [0, 3].contains(&t.bytes[12]))
    };
    assert!(!data_there(&net));
    net.dead.clear();
    net.run_for(10_000);
    assert!(net.events(1).contains(&AssociationEvent::PeerPrimary(mn(2))) && data_there(&net));
    assert!(net.hosts[0].got == noise(7, 3 << 20));
}

/// A host moves up to 100 times over a wire that loses, duplicates, reorders and corrupts packets. Every byte
/// arrives; hashes check that.
#[test]
fn a_mebibyte_survives_a_hundred_moves_on_a_hostile_wire() {
    for seed in 0..6 {
        let config = Config { added_per_minute: 1000, ..patient() };
        let mut net = Network::opened(&config);
        net.seed(seed);
        net.weather = Weather { loss: seed, double: 4, reorder: 15, corrupt: 2 };
        let (down, up) = (noise(seed, 1 << 20), noise(!seed, 300_000));
        net.hosts[1].data.clone_from(&down);
        net.hosts[0].data.clone_from(&up);
        let mut here = 1;
        let mut moves = 0;
        for _ in 0..100 {
            net.run_for(60);
            let there = here % 5 + 1;
            let now = net.now;
            let association = net.association(0);
            let make_first = (moves + seed) % 2 == 0;
            let wanted: &[Change] = if make_first {
                &[Change::Add(mn(there)), Change::SetPrimary(mn(there))]
            } else {
                &[Change::Add(mn(there)), Change::SetPrimary(mn(there)), Change::Delete(mn(here))]
            };
            if association.change(now, wanted).is_err() {
                continue; // the deletion of the last address is not answered yet
            }
            if make_first {
                net.run_until(Duration::from_mins(1), |net| {
                    net.hosts[0].events.iter().any(|event| *event == done(Change::SetPrimary(mn(there))))
                });
                let now = net.now;
                net.association(0).change(now, &[Change::Delete(mn(here))]).unwrap();
            }
            net.run_until(Duration::from_mins(1), |net| {
                net.hosts[0].events.contains(&done(Change::Delete(mn(here))))
            });
            net.hosts[0].events.clear();
            (here, moves) = (there, moves + 1);
        }
        assert!(moves > 60, "{moves} moves");
        net.run_until(Duration::from_mins(50), |net| {
            net.hosts[0].got.len() >= 1 << 20 && net.hosts[1].got.len() >= 300_000
        });
        assert_eq!(Sha256::digest(&net.hosts[0].got), Sha256::digest(&down), "seed {seed}");
        assert_eq!(Sha256::digest(&net.hosts[1].got), Sha256::digest(&up), "seed {seed}");
        assert_eq!(net.states(), [State::Established; 2]);
    }
}

/// Changes that cannot succeed are refused before the peer is asked.
#[test]
fn changes_that_cannot_be_are_not_asked_for() {
    let mut net = Network::new(&Config::default());
    let early = net.association(0).change(Instant::ZERO, &[Change::Add(mn(2))]);
    assert_eq!(early, Err(RequestError::NotOpen));
    net.run_for(500);
    let now = net.now;
    let association = net.association(0);
    let mut refused = |changes: &[Change]| association.change(now, changes).unwrap_err();
    assert_eq!(refused(&[Change::Add(mn(1))]), RequestError::Known);
    assert_eq!(refused(&[Change::Delete(mn(1))]), RequestError::Last);
    assert_eq!(refused(&[Change::Delete(mn(2))]), RequestError::Unknown);
    assert_eq!(refused(&[Change::SetPrimary(mn(2))]), RequestError::Unknown);
    assert_eq!(refused(&[Change::Add([224, 0, 0, 1].into())]), RequestError::Address);
    assert_eq!(
        refused(&[Change::Add(mn(2)), Change::Delete(mn(2)), Change::Delete(mn(1))]),
        RequestError::Last
    );
    assert_eq!(refused(&[Change::Add(mn(9)); 17]), RequestError::Full);
    assert_eq!(association.prefer(now, None, mn(2)), Err(RequestError::Unknown));
    assert_eq!(association.prefer(now, Some(mn(5)), mn(1)), Err(RequestError::Unknown));
    net.run_for(500);
    assert_eq!(net.association(0).local_addresses().collect::<Vec<_>>(), [mn(1)], "nothing has changed");
}

/// A refusal is reported with its cause, and the refused address is not used (RFC 5061, sections 4.3.2 and 5.3, F10
/// and F11).
#[test]
fn a_refusal_is_told_with_its_cause() {
    let fixed = Config { max_addresses: 2, ..patient() };
    let mut net = Network::with(&patient(), &fixed, &[mn(1)], &[CN]);
    net.run_for(500);
    let now = net.now;
    let changes = [Change::Add(mn(2)), Change::Add(mn(3)), Change::Delete(mn(1)), Change::SetPrimary(mn(2))];
    net.association(0).change(now, &changes).unwrap();
    net.run_for(500);
    let short = ChangeOutcome::Refused(Some(Code::RESOURCE_SHORTAGE));
    assert!(net.events(0).contains(&done(changes[0])));
    assert!(net.events(0).contains(&AssociationEvent::Changed(changes[1], short)));
    assert!(
        net.events(0).contains(&AssociationEvent::Changed(changes[2], short)),
        "after one, all of the chunk"
    );
    assert!(net.events(0).contains(&done(changes[3])), "but not the primary address");
    assert_eq!(net.association(0).local_addresses().collect::<Vec<_>>(), [mn(1), mn(2)]);
}

/// A peer reports ASCONF as unknown although it announced the extension. No more changes are requested (RFC 5061,
/// section 5.1, A9).
#[test]
fn a_peer_that_does_not_know_the_chunk_is_not_asked_again() {
    let mut net = Network::opened(&patient());
    let now = net.now;
    net.association(0).change(now, &[Change::Add(mn(2))]).unwrap();
    net.flush(0);
    let from_peer = net.sent.iter().rev().find(|(_, who, _)| *who == 1).unwrap().2.clone();
    let tag = Packet::parse(&from_peer.bytes).unwrap().tag;
    let cause = Cause::new(Code::UNRECOGNIZED_CHUNK, [0xc1, 0, 0, 4]);
    let chunks = vec![Chunk::Error(vec![cause])];
    let bytes = Packet { src_port: PORT, dst_port: 4000, tag, chunks }.emit();
    net.arrive(0, &Transmit { bytes, ..from_peer });
    let refused = AssociationEvent::Changed(Change::Add(mn(2)), ChangeOutcome::Refused(None));
    assert_eq!(net.events(0).last(), Some(&refused));
    net.run_for(1000);
    assert_eq!(net.states(), [State::Established; 2]);
    let now = net.now;
    assert_eq!(net.association(0).change(now, &[Change::Add(mn(3))]), Err(RequestError::Unsupported));
    // If the host moves nevertheless, the peer cannot reach it, and the association ends.
    assert_eq!(net.association(0).move_to(now, mn(3), &[mn(3)]), Err(RequestError::Unsupported));
    net.dead.extend([mn(1), mn(2)]);
    net.run_for(20 * 3_600_000);
    assert_eq!(net.events(0).last(), Some(&AssociationEvent::Closed(Ended::TimedOut)));
}

/// A mobile host replaces its last address and never answers at the new one. Time-outs at the correspondent end the
/// association.
#[test]
fn who_vanishes_while_it_moves_is_given_up() {
    let mut net = Network::opened(&patient());
    let now = net.now;
    let changes = [Change::Add(mn(2)), Change::SetPrimary(mn(2)), Change::Delete(mn(1))];
    net.association(0).change(now, &changes).unwrap();
    net.run_until(Duration::from_secs(1), |net| {
        net.events(1).contains(&AssociationEvent::PeerDeleted(mn(1)))
    });
    net.dead.extend([mn(1), mn(2)]);
    net.run_for(20 * 3_600_000);
    assert_eq!(net.events(1).last(), Some(&AssociationEvent::Closed(Ended::TimedOut)));
}
