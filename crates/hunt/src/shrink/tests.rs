//! Tests that shrinking keeps references: each index of a router or host still refers to the same router or host.

use super::*;
use crate::draft::{Detection, Link, Mobile, Move, Router, Work};
use crate::fault::{Fault, Node, Spot, What};
use crate::options::Options;

fn draft() -> Draft {
    let link = Link { delay_us: 1000, loss: 0, mtu: 1500 };
    let router = |delay_us| Router {
        parent: 0,
        wire: Link { delay_us, ..link },
        air: link,
        rate: 2000,
        visited: Visited::Plain,
        offers: Offers::ALL,
        clock: Clock::default(),
    };
    let step = |at, to| Move { at, to, soft: false, overlap: 0 };
    let work = |port, peer| Work { port, peer, start: 500, kind: Kind::Down(1000) };
    let mobile = |start, moves, work| Mobile {
        start,
        moves,
        work: vec![work],
        home: 0,
        clock: Clock::default(),
        second: None,
    };
    Draft {
        protocol: Protocol::MobileIp,
        seed: 1,
        core: link,
        routers: (0..4).map(|number| router(100 + number)).collect(),
        retune_ms: 5,
        buffer: 16384,
        hosts: vec![
            mobile(0, vec![], work(9000, None)),
            mobile(3, vec![step(900, 0), step(1800, 3)], work(9008, Some(0))),
            mobile(2, vec![], work(9016, Some(1))),
        ],
        faults: vec![],
        detection: Detection::DEFAULT,
        options: Options::DEFAULT,
        watched_ms: 20_000,
    }
}

fn fault(what: What) -> Fault {
    Fault { at: 1000, lasts: 500, what }
}

#[test]
fn what_names_a_router_behind_one_that_is_removed_names_it_still() {
    let mut small = draft();
    small.faults =
        [What::Crash(Node::Router(3)), What::Cut(Spot::Air(3)), What::Cut(Spot::Wire(0))].map(fault).into();
    small.hosts.pop();
    unvisited(&mut small);
    // No host comes to routers 1 and 2.
    assert_eq!(small.routers.iter().map(|router| router.wire.delay_us).collect::<Vec<_>>(), [100, 103]);
    let moves: Vec<usize> = small.hosts[1].moves.iter().map(|step| step.to).collect();
    assert_eq!((small.hosts[1].start, moves), (1, vec![0, 1]));
    let faults: Vec<What> = small.faults.iter().map(|fault| fault.what).collect();
    assert_eq!(faults, [What::Crash(Node::Router(1)), What::Cut(Spot::Air(1)), What::Cut(Spot::Wire(0))]);
}

#[test]
fn a_router_that_a_fault_names_is_not_removed() {
    let mut small = draft();
    small.faults = vec![fault(What::Crash(Node::Router(1)))];
    unvisited(&mut small);
    assert_eq!(
        small.routers.iter().map(|router| router.wire.delay_us).collect::<Vec<_>>(),
        [100, 101, 102, 103]
    );
}

#[test]
fn what_names_a_host_behind_one_that_is_removed_names_it_still() {
    let mut small = draft();
    small.faults = [What::Stop(Node::Mobile(0)), What::Stop(Node::Mobile(2))].map(fault).into();
    remove_host(&mut small, 0);
    let peers: Vec<Option<usize>> = small.hosts.iter().map(|host| host.work[0].peer).collect();
    assert_eq!(peers, [None, Some(0)], "the peer that is gone, and the one behind it");
    assert_eq!(small.faults, [fault(What::Stop(Node::Mobile(1)))]);
}

#[test]
fn a_move_to_where_the_host_is_goes_with_those_that_are_cut() {
    let mut small = draft();
    cut_moves(&mut small, 1, 0, 1);
    assert_eq!(small.hosts[1].moves, []);
}
