//! Routes that are left and used again: their measurements are kept.

use crate::harness::{CN, World, mn, noise};
use crate::roaming::{answers, break_to};
use crate::transfers::patient;
use sctp::{Change, Event, PathInfo};
use wire::{Duration, Ipv4Addr};

fn path(world: &mut World, who: usize, peer: Ipv4Addr) -> PathInfo {
    world.association(who).paths().find(|path| path.address == peer).unwrap()
}

/// Moves, and runs until the changes are answered.
fn moves(world: &mut World, gone: u8, here: u8) {
    let before = answers(world, 0);
    break_to(world, 0, gone, here);
    world.run_until(Duration::from_secs(5), |world| answers(world, 0) == before + 3);
    assert_eq!(answers(world, 0), before + 3);
}

/// RFC 9260, section 6.3.1, C1: RTO.Initial holds until a round trip was measured. A route that is used again has its
/// measurements, at both ends. A new route begins with RTO.Initial. Every route begins with the initial window
/// (section 7.2.1).
#[test]
fn a_route_that_is_used_again_has_the_time_out_that_was_measured() {
    let mut world = World::opened(&patient());
    for who in [0, 1] {
        world.hosts[who].data = noise(1, 200_000);
    }
    world.run_for(3000);
    let first = [path(&mut world, 0, CN), path(&mut world, 1, mn(1))];
    assert!(
        first.iter().all(|path| path.srtt.is_some() && path.rto < Duration::from_millis(500)),
        "{first:?}"
    );
    world.delay = Duration::from_millis(150);
    moves(&mut world, 1, 2);
    let new = [path(&mut world, 0, CN), path(&mut world, 1, mn(2))];
    assert!(new.iter().all(|path| path.srtt.is_none()), "{new:?}");
    assert_eq!(new[0].rto, Duration::from_secs(1));
    world.run_for(60_000);
    assert!(path(&mut world, 0, CN).srtt > Some(Duration::from_millis(250)));
    world.delay = Duration::from_millis(10);
    moves(&mut world, 2, 1);
    let again = [path(&mut world, 0, CN), path(&mut world, 1, mn(1))];
    for (first, again) in first.iter().zip(&again) {
        assert_eq!((again.srtt, again.rto), (first.srtt, first.rto));
        assert_eq!(again.cwnd, 4404);
    }
}

/// Two networks at once: a host that changes its source and changes back has measured both routes, and no back-off
/// remains.
#[test]
fn a_preference_that_comes_and_goes_keeps_what_was_measured() {
    let mut world = World::opened(&patient());
    let now = world.now;
    world.association(0).change(now, &[Change::Add(mn(2))]).unwrap();
    world.hosts[0].data = noise(1, 100_000);
    world.run_for(3000);
    let first = path(&mut world, 0, CN);
    let prefer = |world: &mut World, here| {
        let now = world.now;
        world.association(0).prefer(now, None, mn(here)).unwrap();
    };
    prefer(&mut world, 2);
    assert_eq!((path(&mut world, 0, CN).srtt, path(&mut world, 0, CN).rto), (None, Duration::from_secs(1)));
    world.dead.push(mn(2));
    world.hosts[0].data.extend(noise(2, 10_000));
    world.run_for(2500);
    assert!(
        path(&mut world, 0, CN).rto > Duration::from_secs(1),
        "it has timed out once, and takes no other way yet"
    );
    prefer(&mut world, 1);
    assert_eq!((path(&mut world, 0, CN).srtt, path(&mut world, 0, CN).rto), (first.srtt, first.rto));
    world.run_for(5000);
    assert_eq!(world.hosts[1].got.len(), 110_000);
    assert!(!world.events(0).iter().any(|event| matches!(event, Event::Closed(_))));
}
