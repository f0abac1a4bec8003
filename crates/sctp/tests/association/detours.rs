//! One of two routes stops carrying packets without a report. The other one is found, and given up when the first works
//! again.

use crate::harness::{CN, World, mn, noise};
use crate::roaming::has;
use sctp::message::Chunk;
use sctp::{Change, Config, State, Transmit};
use wire::{Duration, Ipv4Addr};

/// The mobile host has two addresses. Data come to the second one, and leave from it.
fn moved(config: &Config) -> World {
    let mut world = World::with(config, config, &[mn(1), mn(2)], &[CN]);
    world.byte = 1000;
    world.run_for(500);
    assert_eq!(world.states(), [State::Established; 2]);
    let now = world.now;
    world.association(0).change(now, &[Change::SetPrimary(mn(2))]).unwrap();
    world.association(0).move_to(now, mn(2), &[mn(1), mn(2)]).unwrap();
    world.run_for(500);
    world
}

fn quick() -> Config {
    Config { rto_min: Duration::from_millis(200), ..Config::default() }
}

/// Where the last packet of this kind left from.
fn source(world: &World, kind: fn(&Chunk) -> bool) -> Ipv4Addr {
    let of_kind = |(_, who, transmit): &&(wire::Instant, usize, Transmit)| *who == 0 && has(transmit, kind);
    world.sent.iter().rfind(of_kind).unwrap().2.src
}

/// RFC 9260, section 6.4: data that are repeated say that their acknowledgments are lost. So they leave from where the data come.
#[test]
fn what_comes_by_the_other_way_is_acknowledged_by_it() {
    for config in [quick(), Config::default()] {
        let mut world = moved(&config);
        world.hosts[1].data = noise(1, 3_000_000);
        world.run_for(300);
        assert_eq!(source(&world, |chunk| matches!(chunk, Chunk::Sack(_))), mn(2));
        world.dead.push(mn(2));
        world.run_for(120_000);
        assert!(world.hosts[0].got == noise(1, 3_000_000), "{}", world.hosts[0].got.len());
        assert_eq!(world.association(0).detour(), Some(mn(1)));
        assert_eq!(source(&world, |chunk| matches!(chunk, Chunk::Sack(_))), mn(1));
        // The way works again: the peer probes it, and the answer to our own probe says so.
        world.dead.clear();
        world.run_for(120_000);
        assert_eq!(world.association(0).detour(), None);
        assert_eq!(source(&world, |chunk| matches!(chunk, Chunk::Heartbeat(_))), mn(2));
        assert_eq!(world.states(), [State::Established; 2]);
    }
}

/// The sender's second time-out starts the probe of the other route; lost data leave by it.
#[test]
fn data_that_are_not_acknowledged_leave_by_the_way_that_works() {
    let mut world = moved(&quick());
    world.hosts[0].data = noise(1, 2_000_000);
    world.run_for(300);
    world.dead.push(mn(2));
    assert!(
        world.stall(1, 2000) < 800,
        "two time-outs, of which the second is twice as long, and two round trips"
    );
    world.run_for(10_000);
    assert!(world.hosts[1].got == noise(1, 2_000_000), "{}", world.hosts[1].got.len());
    assert_eq!(world.association(0).detour(), Some(mn(1)));
}

/// A change that is asked for while the way does not work is asked for by the other one.
#[test]
fn a_change_is_asked_for_by_the_way_that_works() {
    let mut world = moved(&quick());
    world.dead.push(mn(2));
    let now = world.now;
    world.association(0).change(now, &[Change::Add(mn(3))]).unwrap();
    world.run_for(5000);
    assert!(world.association(0).local_addresses().any(|address| address == mn(3)));
}

/// Only one direction is broken: the acknowledgments are lost, and the data are not.
#[test]
fn acknowledgments_leave_by_the_other_way_if_only_they_are_lost() {
    let mut world = moved(&quick());
    world.hosts[1].data = noise(1, 1_000_000);
    for _ in 0..60_000 {
        world.run_for(2);
        world.lose(|transmit| transmit.src == mn(2));
    }
    assert!(world.hosts[0].got == noise(1, 1_000_000), "{}", world.hosts[0].got.len());
    assert_eq!(world.states(), [State::Established; 2]);
}

/// A copy that the network makes is no repetition.
#[test]
fn a_copy_says_nothing_of_a_way() {
    let mut world = moved(&quick());
    world.hosts[1].data = noise(1, 100_000);
    world.run_for(2000);
    let is_data = |t: &Transmit| has(t, |chunk| matches!(chunk, Chunk::Data(_)));
    let (_, _, last) = world.sent.iter().rfind(|(_, who, t)| *who == 1 && is_data(t)).unwrap().clone();
    world.hosts[1].data.extend(noise(2, 1000));
    world.run_for(30);
    world.arrive(0, &Transmit { dst: mn(1), ..last.clone() });
    assert_eq!(world.association(0).detour(), None);
    // Long after, it is one: but the peer hears us from where we are, and that ends it.
    world.run_for(1000);
    world.arrive(0, &Transmit { dst: mn(1), ..last });
    assert_eq!(world.association(0).detour(), Some(mn(1)));
    world.hosts[1].data.extend(noise(3, 1000));
    world.run_for(100);
    assert_eq!(world.association(0).detour(), None);
}

/// The address that takes the place of another goes: packets leave from the other one again, as there is no third.
#[test]
fn a_way_that_is_given_up_is_not_used() {
    let mut world = moved(&quick());
    world.hosts[0].data = noise(1, 500_000);
    world.run_for(100);
    world.dead.push(mn(2));
    world.run_for(3000);
    assert_eq!(world.association(0).detour(), Some(mn(1)));
    world.dead = vec![mn(1)];
    let now = world.now;
    world.association(0).change(now, &[Change::Delete(mn(1))]).unwrap();
    world.run_for(5000);
    assert_eq!(world.association(0).detour(), None);
    assert!(world.hosts[1].got == noise(1, 500_000), "{}", world.hosts[1].got.len());
}
