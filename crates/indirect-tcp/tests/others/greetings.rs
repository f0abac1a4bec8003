//! What a greeting names, and whom a router tells of it.

use super::*;

/// A router that the host's greeting does not name cannot have its connections.
#[test]
fn connections_come_from_routers_that_the_host_has_named() {
    let mut stage = Stage::new();
    stage.at(10);
    stage.greets(10, &[RIGHT], vec![entry(1, RIGHT)]);
    let third = stage.links(THIRD);
    stage.says(third, 1, offer(10));
    assert!(stage.said(third).is_empty());
    assert_eq!(stage.aborted, [third]);
    let right = stage.links(RIGHT);
    stage.says(right, 1, offer(10));
    assert_eq!(stage.said(right), [Body::OfferAnswer(Verdict::Taken)]);
}

/// An earlier router has answered that it has the connection: three times the patience from then on, and a repeated answer gives
/// no more.
#[test]
fn what_an_earlier_router_has_is_waited_for_three_times_as_long_and_once() {
    let mut stage = Stage::new();
    stage.at(10);
    stage.greets(10, &[RIGHT], vec![entry(1, RIGHT)]);
    stage.at(5_000);
    stage.replies(RIGHT, 10, 1);
    stage.marks();
    stage.at(25_000);
    stage.replies(RIGHT, 10, 1);
    stage.at(34_999);
    assert!(stage.marks().is_empty());
    stage.at(35_000);
    assert_eq!(stage.marks(), ["connection_lost"]);
}

/// An earlier router that does not answer is told six times, each time after twice as long.
#[test]
fn a_forward_pointer_is_repeated_so_often_and_no_more() {
    let mut stage = Stage::new();
    stage.at(10);
    stage.greets(10, &[RIGHT], Vec::new());
    let mut told = |millis| {
        stage.at(millis);
        stage.sent.iter().filter(|datagram| matches!(datagram, Datagram::ForwardPointer(_))).count()
    };
    let after = [10, 259, 260, 759, 760, 1760, 3760, 7760, 600_000].map(&mut told);
    assert_eq!(after, [1, 1, 2, 2, 3, 4, 5, 6, 6]);
}

/// A greeting names a connection by all its ends: the one that is here with the same number and another peer is none of the host's
/// any more, and ends.
#[test]
fn a_connection_is_the_same_by_all_its_ends() {
    for (peer_port, aborted, then) in [(80, 0, "serving"), (81, 2, "expected")] {
        let mut stage = Stage::new();
        stage.at(10);
        stage.greets(10, &[], Vec::new());
        stage.calls(1);
        let named = Entry { peer: Addr::new(FIXED, peer_port), ..entry(1, LEFT) };
        stage.greets(20, &[RIGHT], vec![named]);
        assert_eq!((stage.aborted.len(), stage.stage(1).as_deref()), (aborted, Some(then)), "{peer_port}");
    }
}
