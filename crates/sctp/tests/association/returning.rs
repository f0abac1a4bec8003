//! Moves that follow each other before the peer answers. Then the host's present address, its requested deletions and
//! the peer's list of addresses differ.

use crate::harness::{CN, CN2, Network, mn, noise};
use crate::roaming::{answers, break_to, has};
use crate::transfers::patient;
use sctp::message::Chunk;
use sctp::{AssociationEvent, Change, Transmit};
use wire::{Duration, Ipv4Addr};

/// An address that no host has.
const NOBODY: Ipv4Addr = Ipv4Addr::new(10, 66, 6, 6);

/// Requests changes, and moves the mobile host to `here`, its only working address.
fn ask(net: &mut Network, changes: &[Change], here: u8) {
    let now = net.now;
    net.association(0).change(now, changes).unwrap();
    go(net, here);
}

fn go(net: &mut Network, here: u8) {
    net.dead = (1..=4).filter(|at| *at != here).map(mn).collect();
    let now = net.now;
    net.association(0).move_to(now, mn(here), &[mn(here)]).unwrap();
    net.flush(0);
}

/// Returns a network where the mobile host has two addresses that the peer knows.
fn with_two() -> Network {
    let mut net = Network::opened(&patient());
    let now = net.now;
    net.association(0).change(now, &[Change::Add(mn(2))]).unwrap();
    net.run_for(200);
    assert_eq!(answers(&net, 0), 1);
    net
}

fn all_to(to: u8, from: u8) -> [Change; 3] {
    [Change::Add(mn(to)), Change::SetPrimary(mn(to)), Change::Delete(mn(from))]
}

/// A host returns to an address whose deletion it requested, and loses its other address. No packet leaves from the
/// lost address, where no answer would arrive.
#[test]
fn nothing_leaves_from_an_address_that_is_gone() {
    let mut net = with_two();
    net.hosts[0].data = noise(1, 300_000);
    net.run_for(50);
    ask(&mut net, &[Change::SetPrimary(mn(2)), Change::Delete(mn(1))], 2);
    net.lose(|_| true);
    let from = net.sent.len();
    go(&mut net, 1);
    net.drops = [usize::MAX; 2];
    net.run_for(3000);
    net.drops = [0; 2];
    let sources = |net: &Network| {
        let own = net.sent[from..].iter().filter(|(_, who, _)| *who == 0);
        own.map(|(_, _, t)| t.src).collect::<Vec<_>>()
    };
    assert!(sources(&net).len() >= 2 && sources(&net).iter().all(|src| *src == mn(1)), "the change");
    net.run_for(5000);
    assert_eq!(answers(&net, 0), 3);
    ask(&mut net, &[Change::SetPrimary(mn(1)), Change::Delete(mn(2))], 1);
    net.run_for(5000);
    assert!(net.hosts[1].got == noise(1, 300_000));
    assert!(!sources(&net).contains(&mn(2)));
}

/// Data that left from a lost address are sent again as soon as the peer has answered its deletion, before a
/// time-out.
#[test]
fn what_left_from_an_address_that_is_gone_waits_for_no_time_out() {
    let mut net = with_two();
    net.hosts[0].data = noise(1, 300_000);
    net.run_for(50);
    let now = net.now;
    net.association(0).change(now, &[Change::Delete(mn(2))]).unwrap();
    net.flush(0);
    net.lose(|_| true);
    go(&mut net, 2);
    net.run_for(60);
    assert_eq!(answers(&net, 0), 2, "refused: it was asked from there");
    ask(&mut net, &[Change::SetPrimary(mn(2)), Change::Delete(mn(1))], 2);
    let had = net.hosts[1].got.len();
    net.run_for(100);
    assert!(net.hosts[1].got.len() > had);
}

/// A host has returned to an address that the peer has deleted when the answer comes. The next change leaves from
/// this address.
#[test]
fn an_address_that_was_deleted_is_used_for_changes_if_we_are_there() {
    let mut net = with_two();
    ask(&mut net, &[Change::SetPrimary(mn(2)), Change::Delete(mn(1))], 2);
    net.run_until(Duration::from_secs(1), |net| {
        net.events(1).contains(&AssociationEvent::PeerDeleted(mn(1)))
    });
    net.lose(|_| true);
    ask(&mut net, &all_to(3, 2), 3);
    net.lose(|_| true);
    go(&mut net, 1);
    net.run_for(100);
    assert_eq!(answers(&net, 0), 6, "{:?}", net.events(0));
    assert_eq!(net.association(0).local_addresses().collect::<Vec<_>>(), [mn(3)]);
}

/// The peer finds the association of an ASCONF by an address that the peer has when the ASCONF arrives. The ASCONF
/// names no address that only a later change adds.
#[test]
fn a_change_is_found_by_what_the_peer_knows() {
    // The host returns to the address that the first change adds and the second change deletes. The first change is
    // sent again from there.
    let mut net = Network::opened(&patient());
    ask(&mut net, &all_to(2, 1), 2);
    net.lose(|_| true);
    ask(&mut net, &all_to(3, 2), 3);
    net.lose(|_| true);
    go(&mut net, 2);
    net.run_for(100);
    assert_eq!(answers(&net, 0), 6, "{:?}", net.events(0));
    // The host returns to the address that the second change adds and the third one deletes. The second change begins
    // there, when the first one is answered.
    let mut net = with_two();
    ask(&mut net, &[Change::SetPrimary(mn(1)), Change::Delete(mn(2))], 1);
    net.lose(|_| true);
    ask(&mut net, &all_to(3, 1), 3);
    ask(&mut net, &all_to(4, 3), 4);
    net.lose(|_| true);
    go(&mut net, 3);
    net.run_for(150);
    assert_eq!(answers(&net, 0), 9, "{:?}", net.events(0));
}

/// The deletion of an address is reported as done, and the peer no longer has the address.
#[test]
fn an_address_that_the_peer_does_not_know_is_deleted() {
    let mut net = with_two();
    // The host deletes the address, and moves to the other one.
    ask(&mut net, &[Change::Delete(mn(1))], 2);
    net.run_for(100);
    let has = |net: &mut Network, at| net.association(1).paths().any(|path| path.address == mn(at));
    assert!(!has(&mut net, 1) && has(&mut net, 2));
    assert_eq!(answers(&net, 0), 2);
}

fn silences(net: &Network, who: usize) -> usize {
    net.events(who).iter().filter(|event| **event == AssociationEvent::Silent(2)).count()
}

/// Returns the highest count of time-outs in a row that was reported to host `who`. `None` if none was reported.
fn in_a_row(net: &Network, who: usize) -> Option<u32> {
    let silent = |event: &AssociationEvent| {
        if let AssociationEvent::Silent(times) = event { Some(*times) } else { None }
    };
    net.events(who).iter().filter_map(silent).max()
}

/// The count of time-outs in a row restarts when the peer requests a change, as the peer is then alive. The count
/// also restarts when the host's own link returns, as the peer may not have failed.
#[test]
fn what_shows_the_peer_or_excuses_it_ends_time_outs_in_a_row() {
    for link in [false, true] {
        let mut net = Network::opened(&patient());
        net.hosts[0].data = noise(1, 3000);
        net.drops[0] = usize::MAX;
        net.run_for(20_000);
        assert_eq!(silences(&net, 0), 1);
        let before = in_a_row(&net, 0);
        let now = net.now;
        if link {
            net.association(0).link_returned(now);
        } else {
            net.association(1).change(now, &[Change::Add(CN2)]).unwrap();
        }
        if link {
            net.run_for(60_000);
            assert_eq!(silences(&net, 0), 2);
        } else {
            // The peer repeats the change, as the answer is lost. Its time-outs are no longer than those of host 0.
            net.run_for(200_000);
            assert_eq!(in_a_row(&net, 0), before);
        }
    }
}

fn probes(net: &Network, from: usize, to: Ipv4Addr) -> usize {
    let is = |t: &Transmit| t.dst == to && has(t, |chunk| matches!(chunk, Chunk::Heartbeat(_)));
    net.sent[from..].iter().filter(|(_, who, t)| *who == 0 && is(t)).count()
}

/// A probe of a new address is repeated when the link of the host returns.
#[test]
fn a_new_address_is_probed_again_when_the_link_returns() {
    let mut net = Network::opened(&patient());
    net.dead.push(CN2);
    let now = net.now;
    net.association(1).change(now, &[Change::Add(CN2)]).unwrap();
    net.run_for(100);
    assert_eq!(probes(&net, 0, CN2), 1);
    let from = net.sent.len();
    let now = net.now;
    net.association(0).link_returned(now);
    net.flush(0);
    assert_eq!(probes(&net, from, CN2), 1);
}

/// HB.Max.Burst applies only to addresses that the peer names. The probe of an address that a directory gave does not
/// delay the probe of an address that the peer adds.
#[test]
fn an_address_of_a_directory_holds_up_no_probe() {
    let mut net = Network::opened(&patient());
    break_to(&mut net, 0, 1, 2);
    net.flush(0);
    net.lose(|_| true);
    let now = net.now;
    assert!(net.association(0).try_at(now, NOBODY));
    net.run_for(10_000);
    assert!(probes(&net, 0, NOBODY) >= 3);
    let from = net.sent.len();
    let now = net.now;
    net.association(1).change(now, &[Change::Add(CN2)]).unwrap();
    net.run_for(100);
    assert_eq!(probes(&net, from, CN2), 1);
    assert_eq!(net.association(0).paths().filter(|path| path.address == CN).count(), 1);
}
