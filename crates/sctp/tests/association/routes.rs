//! The measurements of a route are kept when no path uses the route any more, and apply when a path uses it again.

use crate::harness::{CN, Network, mn, noise};
use crate::roaming::{answers, break_to};
use crate::transfers::patient;
use sctp::{AssociationEvent, Change, PathInfo};
use wire::{Duration, Ipv4Addr};

fn path(net: &mut Network, who: usize, peer: Ipv4Addr) -> PathInfo {
    net.association(who).paths().find(|path| path.address == peer).unwrap()
}

/// Moves the mobile host from address `gone` to address `here`, and runs until its three changes are answered.
fn moves(net: &mut Network, gone: u8, here: u8) {
    let before = answers(net, 0);
    break_to(net, 0, gone, here);
    net.run_until(Duration::from_secs(5), |net| answers(net, 0) == before + 3);
    assert_eq!(answers(net, 0), before + 3);
}

/// RFC 9260, section 6.3.1, C1: RTO.Initial holds until a round trip was measured. So a new route begins with
/// RTO.Initial, and a route that is used again begins with its measurements, at both ends. In both cases the
/// congestion window begins with its initial value (RFC 9260, section 7.2.1).
#[test]
fn a_route_that_is_used_again_has_the_time_out_that_was_measured() {
    let mut net = Network::opened(&patient());
    for who in [0, 1] {
        net.hosts[who].data = noise(1, 200_000);
    }
    net.run_for(3000);
    let first = [path(&mut net, 0, CN), path(&mut net, 1, mn(1))];
    assert!(
        first.iter().all(|path| path.srtt.is_some() && path.rto < Duration::from_millis(500)),
        "{first:?}"
    );
    net.delay = Duration::from_millis(150);
    moves(&mut net, 1, 2);
    let new = [path(&mut net, 0, CN), path(&mut net, 1, mn(2))];
    assert!(new.iter().all(|path| path.srtt.is_none()), "{new:?}");
    assert_eq!(new[0].rto, Duration::from_secs(1));
    net.run_for(60_000);
    assert!(path(&mut net, 0, CN).srtt > Some(Duration::from_millis(250)));
    net.delay = Duration::from_millis(10);
    moves(&mut net, 2, 1);
    let again = [path(&mut net, 0, CN), path(&mut net, 1, mn(1))];
    for (first, again) in first.iter().zip(&again) {
        assert_eq!((again.srtt, again.rto), (first.srtt, first.rto));
        assert_eq!(again.cwnd, 4404);
    }
}

/// A host with two addresses changes its source and changes back. The first route has its measurements again, and no
/// back-off.
#[test]
fn a_preference_that_comes_and_goes_keeps_what_was_measured() {
    let mut net = Network::opened(&patient());
    let now = net.now;
    net.association(0).change(now, &[Change::Add(mn(2))]).unwrap();
    net.hosts[0].data = noise(1, 100_000);
    net.run_for(3000);
    let first = path(&mut net, 0, CN);
    let prefer = |net: &mut Network, here| {
        let now = net.now;
        net.association(0).prefer(now, None, mn(here)).unwrap();
    };
    prefer(&mut net, 2);
    assert_eq!((path(&mut net, 0, CN).srtt, path(&mut net, 0, CN).rto), (None, Duration::from_secs(1)));
    net.dead.push(mn(2));
    net.hosts[0].data.extend(noise(2, 10_000));
    net.run_for(2500);
    assert!(
        path(&mut net, 0, CN).rto > Duration::from_secs(1),
        "it has timed out once, and takes no other way yet"
    );
    prefer(&mut net, 1);
    assert_eq!((path(&mut net, 0, CN).srtt, path(&mut net, 0, CN).rto), (first.srtt, first.rto));
    net.run_for(5000);
    assert_eq!(net.hosts[1].got.len(), 110_000);
    assert!(!net.events(0).iter().any(|event| matches!(event, AssociationEvent::Closed(_))));
}
