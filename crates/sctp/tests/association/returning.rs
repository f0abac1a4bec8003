//! Moves in a row, faster than they are answered: the address of the host, its requested deletions and the peer's
//! list differ.

use crate::harness::{CN, CN2, World, mn, noise};
use crate::roaming::{answers, break_to, has};
use crate::transfers::patient;
use sctp::message::Chunk;
use sctp::{Change, Event, Transmit};
use wire::{Duration, Ipv4Addr};

/// An address without a host.
const NOBODY: Ipv4Addr = Ipv4Addr::new(10, 66, 6, 6);

/// Requests changes, and moves the host to `here`, its only address.
fn ask(world: &mut World, changes: &[Change], here: u8) {
    let now = world.now;
    world.association(0).change(now, changes).unwrap();
    go(world, here);
}

fn go(world: &mut World, here: u8) {
    world.dead = (1..=4).filter(|at| *at != here).map(mn).collect();
    let now = world.now;
    world.association(0).move_to(now, mn(here), &[mn(here)]).unwrap();
    world.flush(0);
}

/// Returns a world where the mobile host has two addresses that the peer knows.
fn with_two() -> World {
    let mut world = World::opened(&patient());
    let now = world.now;
    world.association(0).change(now, &[Change::Add(mn(2))]).unwrap();
    world.run_for(200);
    assert_eq!(answers(&world, 0), 1);
    world
}

fn all_to(to: u8, from: u8) -> [Change; 3] {
    [Change::Add(mn(to)), Change::SetPrimary(mn(to)), Change::Delete(mn(from))]
}

/// The host returns to an address whose deletion it requested, and loses the other one: no answer would arrive there.
#[test]
fn nothing_leaves_from_an_address_that_is_gone() {
    let mut world = with_two();
    world.hosts[0].data = noise(1, 300_000);
    world.run_for(50);
    ask(&mut world, &[Change::SetPrimary(mn(2)), Change::Delete(mn(1))], 2);
    world.lose(|_| true);
    let from = world.sent.len();
    go(&mut world, 1);
    world.drops = [usize::MAX; 2];
    world.run_for(3000);
    world.drops = [0; 2];
    let sources = |world: &World| {
        let own = world.sent[from..].iter().filter(|(_, who, _)| *who == 0);
        own.map(|(_, _, t)| t.src).collect::<Vec<_>>()
    };
    assert!(sources(&world).len() >= 2 && sources(&world).iter().all(|src| *src == mn(1)), "the change");
    world.run_for(5000);
    assert_eq!(answers(&world, 0), 3);
    ask(&mut world, &[Change::SetPrimary(mn(1)), Change::Delete(mn(2))], 1);
    world.run_for(5000);
    assert!(world.hosts[1].got == noise(1, 300_000));
    assert!(!sources(&world).contains(&mn(2)));
}

/// Data from an address that is gone are sent again as soon as the peer has answered its deletion, whatever came in
/// between.
#[test]
fn what_left_from_an_address_that_is_gone_waits_for_no_time_out() {
    let mut world = with_two();
    world.hosts[0].data = noise(1, 300_000);
    world.run_for(50);
    let now = world.now;
    world.association(0).change(now, &[Change::Delete(mn(2))]).unwrap();
    world.flush(0);
    world.lose(|_| true);
    go(&mut world, 2);
    world.run_for(60);
    assert_eq!(answers(&world, 0), 2, "refused: it was asked from there");
    ask(&mut world, &[Change::SetPrimary(mn(2)), Change::Delete(mn(1))], 2);
    let had = world.hosts[1].got.len();
    world.run_for(100);
    assert!(world.hosts[1].got.len() > had);
}

/// The peer has deleted an address, and the host has returned there when the answer comes: the next change leaves
/// from there.
#[test]
fn an_address_that_was_deleted_is_used_for_changes_if_we_are_there() {
    let mut world = with_two();
    ask(&mut world, &[Change::SetPrimary(mn(2)), Change::Delete(mn(1))], 2);
    world.run_until(Duration::from_secs(1), |world| world.events(1).contains(&Event::PeerDeleted(mn(1))));
    world.lose(|_| true);
    ask(&mut world, &all_to(3, 2), 3);
    world.lose(|_| true);
    go(&mut world, 1);
    world.run_for(100);
    assert_eq!(answers(&world, 0), 6, "{:?}", world.events(0));
    assert_eq!(world.association(0).local_addresses().collect::<Vec<_>>(), [mn(3)]);
}

/// The peer finds a change by an address that it knows: not by one that only the next change adds, and not by one
/// that the change adds itself and the next one deletes.
#[test]
fn a_change_is_found_by_what_the_peer_knows() {
    // The first change was sent. It leaves from the address that it adds and that the second one deletes.
    let mut world = World::opened(&patient());
    ask(&mut world, &all_to(2, 1), 2);
    world.lose(|_| true);
    ask(&mut world, &all_to(3, 2), 3);
    world.lose(|_| true);
    go(&mut world, 2);
    world.run_for(100);
    assert_eq!(answers(&world, 0), 6, "{:?}", world.events(0));
    // The second begins there, when the first is answered.
    let mut world = with_two();
    ask(&mut world, &[Change::SetPrimary(mn(1)), Change::Delete(mn(2))], 1);
    world.lose(|_| true);
    ask(&mut world, &all_to(3, 1), 3);
    ask(&mut world, &all_to(4, 3), 4);
    world.lose(|_| true);
    go(&mut world, 3);
    world.run_for(150);
    assert_eq!(answers(&world, 0), 9, "{:?}", world.events(0));
}

/// An address that the peer does not have counts as deleted.
#[test]
fn an_address_that_the_peer_does_not_know_is_deleted() {
    let mut world = with_two();
    // The peer forgets it, as if another change had deleted it.
    ask(&mut world, &[Change::Delete(mn(1))], 2);
    world.run_for(100);
    let has = |world: &mut World, at| world.association(1).paths().any(|path| path.address == mn(at));
    assert!(!has(&mut world, 1) && has(&mut world, 2));
    assert_eq!(answers(&world, 0), 2);
}

fn silences(world: &World, who: usize) -> usize {
    world.events(who).iter().filter(|event| **event == Event::Silent(2)).count()
}

/// Returns the highest count of time-outs in a row so far.
fn in_a_row(world: &World, who: usize) -> Option<u32> {
    let silent = |event: &Event| if let Event::Silent(times) = event { Some(*times) } else { None };
    world.events(who).iter().filter_map(silent).max()
}

/// The count of time-outs in a row restarts when the peer requests a change, as it is alive. It also restarts when
/// our own link returns, as the peer may not have failed.
#[test]
fn what_shows_the_peer_or_excuses_it_ends_time_outs_in_a_row() {
    for link in [false, true] {
        let mut world = World::opened(&patient());
        world.hosts[0].data = noise(1, 3000);
        world.drops[0] = usize::MAX;
        world.run_for(20_000);
        assert_eq!(silences(&world, 0), 1);
        let before = in_a_row(&world, 0);
        let now = world.now;
        if link {
            world.association(0).link_returned(now);
        } else {
            world.association(1).change(now, &[Change::Add(CN2)]).unwrap();
        }
        if link {
            world.run_for(60_000);
            assert_eq!(silences(&world, 0), 2);
        } else {
            // The change is repeated, as its answer is lost, and its time-outs are no longer than ours.
            world.run_for(200_000);
            assert_eq!(in_a_row(&world, 0), before);
        }
    }
}

fn probes(world: &World, from: usize, to: Ipv4Addr) -> usize {
    let is = |t: &Transmit| t.dst == to && has(t, |chunk| matches!(chunk, Chunk::Heartbeat(_)));
    world.sent[from..].iter().filter(|(_, who, t)| *who == 0 && is(t)).count()
}

/// A probe that was lost with our link is repeated when the link returns.
#[test]
fn a_new_address_is_probed_again_when_the_link_returns() {
    let mut world = World::opened(&patient());
    world.dead.push(CN2);
    let now = world.now;
    world.association(1).change(now, &[Change::Add(CN2)]).unwrap();
    world.run_for(100);
    assert_eq!(probes(&world, 0, CN2), 1);
    let from = world.sent.len();
    let now = world.now;
    world.association(0).link_returned(now);
    world.flush(0);
    assert_eq!(probes(&world, from, CN2), 1);
}

/// HB.Max.Burst applies to addresses that a peer names. One that a directory gave does not delay the probe of the
/// peer's own.
#[test]
fn an_address_of_a_directory_holds_up_no_probe() {
    let mut world = World::opened(&patient());
    break_to(&mut world, 0, 1, 2);
    world.flush(0);
    world.lose(|_| true);
    let now = world.now;
    assert!(world.association(0).try_at(now, NOBODY));
    world.run_for(10_000);
    assert!(probes(&world, 0, NOBODY) >= 3);
    let from = world.sent.len();
    let now = world.now;
    world.association(1).change(now, &[Change::Add(CN2)]).unwrap();
    world.run_for(100);
    assert_eq!(probes(&world, from, CN2), 1);
    assert_eq!(world.association(0).paths().filter(|path| path.address == CN).count(), 1);
}
