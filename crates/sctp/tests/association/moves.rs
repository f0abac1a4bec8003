//! Addresses that are added and deleted while data flow (RFC 5061, and the rules of SIGMA).

use crate::harness::{CN, PORT, Weather, World, mn, noise};
use crate::transfers::patient;
use sctp::message::{Cause, Chunk, Code, Packet};
use sctp::{Change, ChangeOutcome, Config, Ended, Event, PathState, RequestError, State, Transmit};
use sha2::{Digest, Sha256};
use wire::{Duration, Instant};

fn done(change: Change) -> Event {
    Event::Changed(change, ChangeOutcome::Done)
}

/// The five steps with both links up: no byte is delayed, and nothing is sent twice.
#[test]
fn a_handoff_while_both_addresses_work_loses_nothing() {
    let mut world = World::opened(&patient());
    world.hosts[1].data = noise(7, 1 << 20);
    world.run_for(300);
    let now = world.now;
    world.association(0).change(now, &[Change::Add(mn(2))]).unwrap();
    world.run_for(200);
    assert!(world.events(0).contains(&done(Change::Add(mn(2)))));
    assert!(world.events(1).contains(&Event::Path(mn(2), PathState::Active)));
    let now = world.now;
    world.association(0).change(now, &[Change::SetPrimary(mn(2))]).unwrap();
    world.association(0).prefer(now, None, mn(2)).unwrap();
    // The time that the queue of the old path needs.
    world.run_for(200);
    assert!(world.events(1).contains(&Event::Switched { from: mn(1), to: mn(2) }));
    assert!(world.events(0).contains(&Event::Arriving(mn(2))));
    let now = world.now;
    world.association(0).change(now, &[Change::Delete(mn(1))]).unwrap();
    world.run_for(100);
    assert!(world.events(0).contains(&done(Change::Delete(mn(1)))));
    world.dead.push(mn(1));
    world.run_until(Duration::from_mins(1), |world| world.hosts[0].got.len() == 1 << 20);
    assert!(world.hosts[0].got == noise(7, 1 << 20));
    let counts = world.association(1).counts();
    assert_eq!((counts.retransmissions, counts.timeouts), (0, 0), "{counts:?}");
    assert_eq!(world.association(1).paths().map(|path| path.address).collect::<Vec<_>>(), [mn(2)]);
    assert_eq!(world.association(0).local_addresses().collect::<Vec<_>>(), [mn(2)]);
}

/// Break before make: the first link is lost before the second is known. All changes go in one chunk, from the new
/// address.
#[test]
fn a_handoff_after_the_old_address_died_goes_on_at_once() {
    let mut world = World::opened(&Config::default());
    world.hosts[1].data = noise(8, 400_000);
    world.hosts[0].data = noise(9, 400_000);
    world.run_for(150);
    world.dead.push(mn(1));
    world.run_for(50);
    let before = world.hosts[0].got.len();
    let now = world.now;
    let changes = [Change::Add(mn(2)), Change::SetPrimary(mn(2)), Change::Delete(mn(1))];
    world.association(0).change(now, &changes).unwrap();
    world.run_for(100);
    assert!(changes.iter().all(|change| world.events(0).contains(&done(*change))), "{:?}", world.events(0));
    assert!(world.hosts[0].got.len() > before, "no time-out is waited for");
    let uplink = world.association(0).counts();
    assert_eq!(uplink.timeouts, 0);
    world.run_for(20_000);
    assert!(world.hosts[0].got == noise(8, 400_000));
    assert!(world.hosts[1].got == noise(9, 400_000));
    assert_eq!(world.association(1).counts().timeouts, 0);
}

/// Section 5.3: until the peer has answered, nothing but ASCONF leaves from a new address.
#[test]
fn a_new_address_is_silent_until_it_is_acknowledged() {
    let mut world = World::opened(&patient());
    world.hosts[0].data = noise(7, 300_000);
    world.run_for(50);
    let (now, from) = (world.now, world.sent.len());
    world.association(0).change(now, &[Change::Add(mn(2))]).unwrap();
    world.association(0).prefer(now, None, mn(2)).unwrap();
    world.run_until(Duration::from_secs(1), |world| world.events(0).contains(&done(Change::Add(mn(2)))));
    let early = world.sent[from..].iter().filter(|(_, who, transmit)| *who == 0 && transmit.src == mn(2));
    let kinds: Vec<u8> = early.map(|(_, _, transmit)| transmit.bytes[12]).collect();
    assert_eq!(kinds, [15], "AUTH, with ASCONF behind it");
    world.run_for(200);
    let late = world.sent.iter().rev().find(|(_, who, _)| *who == 0).unwrap();
    assert_eq!(late.2.src, mn(2));
}

/// Section 5.1, B: the chunk is repeated unchanged, and applied once.
#[test]
fn a_lost_answer_is_given_again_and_nothing_done_twice() {
    let mut world = World::opened(&patient());
    let now = world.now;
    world.association(0).change(now, &[Change::Add(mn(2))]).unwrap();
    world.flush(0);
    world.run_until(Duration::from_secs(1), |world| {
        !world.events(1).is_empty() && { world.events(1).contains(&Event::PeerAdded(mn(2))) }
    });
    world.weather.loss = 100;
    world.dead.push(mn(1));
    world.run_for(30);
    world.dead.clear();
    world.weather.loss = 0;
    world.run_for(3000);
    assert!(world.events(0).contains(&done(Change::Add(mn(2)))));
    assert_eq!(world.events(1).iter().filter(|event| **event == Event::PeerAdded(mn(2))).count(), 1);
    let asconfs = world.sent.iter().filter(|(_, _, t)| t.bytes.len() > 52 && t.bytes[12 + 40] == 0xc1);
    let bodies: Vec<_> = asconfs.map(|(_, _, t)| t.bytes[52..].to_vec()).collect();
    assert!(bodies.len() > 1 && bodies.windows(2).all(|two| two[0] == two[1]));
}

/// A primary address that is not confirmed yet is not used until it is. This protects other hosts from floods.
#[test]
fn set_primary_waits_for_the_proof() {
    let mut world = World::opened(&patient());
    world.hosts[1].data = noise(7, 3 << 20);
    world.run_for(50);
    world.dead.push(mn(2));
    let now = world.now;
    world.association(0).change(now, &[Change::Add(mn(2)), Change::SetPrimary(mn(2))]).unwrap();
    world.run_for(500);
    assert!(world.events(0).contains(&done(Change::SetPrimary(mn(2)))));
    assert!(!world.events(1).contains(&Event::PeerPrimary(mn(2))));
    let data_there = |world: &World| {
        world.sent.iter().any(|(_, who, t)| *who == 1 && t.dst == mn(2) && [0, 3].contains(&t.bytes[12]))
    };
    assert!(!data_there(&world));
    world.dead.clear();
    world.run_for(10_000);
    assert!(world.events(1).contains(&Event::PeerPrimary(mn(2))) && data_there(&world));
    assert!(world.hosts[0].got == noise(7, 3 << 20));
}

/// Changes over a wire that loses, doubles, reorders and corrupts packets. Every byte arrives, checked by hashes.
#[test]
fn a_mebibyte_survives_a_hundred_moves_on_a_hostile_wire() {
    for seed in 0..6 {
        let config = Config { added_per_minute: 1000, ..patient() };
        let mut world = World::opened(&config);
        world.seed(seed);
        world.weather = Weather { loss: seed, double: 4, reorder: 15, corrupt: 2 };
        let (down, up) = (noise(seed, 1 << 20), noise(!seed, 300_000));
        world.hosts[1].data.clone_from(&down);
        world.hosts[0].data.clone_from(&up);
        let mut here = 1;
        let mut moves = 0;
        for _ in 0..100 {
            world.run_for(60);
            let there = here % 5 + 1;
            let now = world.now;
            let association = world.association(0);
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
                world.run_until(Duration::from_mins(1), |world| {
                    world.hosts[0].events.iter().any(|event| *event == done(Change::SetPrimary(mn(there))))
                });
                let now = world.now;
                world.association(0).change(now, &[Change::Delete(mn(here))]).unwrap();
            }
            world.run_until(Duration::from_mins(1), |world| {
                world.hosts[0].events.contains(&done(Change::Delete(mn(here))))
            });
            world.hosts[0].events.clear();
            (here, moves) = (there, moves + 1);
        }
        assert!(moves > 60, "{moves} moves");
        world.run_until(Duration::from_mins(50), |world| {
            world.hosts[0].got.len() >= 1 << 20 && world.hosts[1].got.len() >= 300_000
        });
        assert_eq!(Sha256::digest(&world.hosts[0].got), Sha256::digest(&down), "seed {seed}");
        assert_eq!(Sha256::digest(&world.hosts[1].got), Sha256::digest(&up), "seed {seed}");
        assert_eq!(world.states(), [State::Established; 2]);
    }
}

/// Changes that are known to fail are refused before any is requested.
#[test]
fn changes_that_cannot_be_are_not_asked_for() {
    let mut world = World::new(&Config::default());
    let early = world.association(0).change(Instant::ZERO, &[Change::Add(mn(2))]);
    assert_eq!(early, Err(RequestError::NotOpen));
    world.run_for(500);
    let now = world.now;
    let association = world.association(0);
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
    world.run_for(500);
    assert_eq!(world.association(0).local_addresses().collect::<Vec<_>>(), [mn(1)], "nothing has changed");
}

/// The refusal is reported with its cause, and the address is removed (sections 4.3 and 5.1, C).
#[test]
fn a_refusal_is_told_with_its_cause() {
    let fixed = Config { max_addresses: 2, ..patient() };
    let mut world = World::with(&patient(), &fixed, &[mn(1)], &[CN]);
    world.run_for(500);
    let now = world.now;
    let changes = [Change::Add(mn(2)), Change::Add(mn(3)), Change::Delete(mn(1)), Change::SetPrimary(mn(2))];
    world.association(0).change(now, &changes).unwrap();
    world.run_for(500);
    let short = ChangeOutcome::Refused(Some(Code::RESOURCE_SHORTAGE));
    assert!(world.events(0).contains(&done(changes[0])));
    assert!(world.events(0).contains(&Event::Changed(changes[1], short)));
    assert!(world.events(0).contains(&Event::Changed(changes[2], short)), "after one, all of the chunk");
    assert!(world.events(0).contains(&done(changes[3])), "but not the primary address");
    assert_eq!(world.association(0).local_addresses().collect::<Vec<_>>(), [mn(1), mn(2)]);
}

/// The peer does not support ASCONF although it announced it (RFC 5061, section 5.1, A9): no more changes are
/// requested, and late packets are accepted.
#[test]
fn a_peer_that_does_not_know_the_chunk_is_not_asked_again() {
    let mut world = World::opened(&patient());
    let now = world.now;
    world.association(0).change(now, &[Change::Add(mn(2))]).unwrap();
    world.flush(0);
    let from_peer = world.sent.iter().rev().find(|(_, who, _)| *who == 1).unwrap().2.clone();
    let tag = Packet::parse(&from_peer.bytes).unwrap().tag;
    let cause = Cause::new(Code::UNRECOGNIZED_CHUNK, [0xc1, 0, 0, 4]);
    let chunks = vec![Chunk::Error(vec![cause])];
    let bytes = Packet { src_port: PORT, dst_port: 4000, tag, chunks }.emit();
    world.arrive(0, &Transmit { bytes, ..from_peer });
    let refused = Event::Changed(Change::Add(mn(2)), ChangeOutcome::Refused(None));
    assert_eq!(world.events(0).last(), Some(&refused));
    world.run_for(1000);
    assert_eq!(world.states(), [State::Established; 2]);
    let now = world.now;
    assert_eq!(world.association(0).change(now, &[Change::Add(mn(3))]), Err(RequestError::Unsupported));
    // If the host moves all the same, the peer does not reach it any more, and the association ends.
    assert_eq!(world.association(0).move_to(now, mn(3), &[mn(3)]), Err(RequestError::Unsupported));
    world.dead.extend([mn(1), mn(2)]);
    world.run_for(20 * 3_600_000);
    assert_eq!(world.events(0).last(), Some(&Event::Closed(Ended::TimedOut)));
}

/// A mobile host replaces its last address and never answers at the new one: its correspondent gives up in the end.
#[test]
fn who_vanishes_while_it_moves_is_given_up() {
    let mut world = World::opened(&patient());
    let now = world.now;
    let changes = [Change::Add(mn(2)), Change::SetPrimary(mn(2)), Change::Delete(mn(1))];
    world.association(0).change(now, &changes).unwrap();
    world.run_until(Duration::from_secs(1), |world| world.events(1).contains(&Event::PeerDeleted(mn(1))));
    world.dead.extend([mn(1), mn(2)]);
    world.run_for(20 * 3_600_000);
    assert_eq!(world.events(1).last(), Some(&Event::Closed(Ended::TimedOut)));
}
