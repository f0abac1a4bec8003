//! Tests of the connections and routers that a greeting names.

use crate::others::stage::{FIXED, LEFT, RIGHT, Stage, entry};
use indirect_tcp::message::{Datagram, Entry};
use node::Addr;

/// A forward pointer to a router that does not answer is sent six times. Each wait is twice the last.
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

/// A greeting names a connection by all its end points. A connection here with the same number and another peer is not
/// the host's any more, and is ended.
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
