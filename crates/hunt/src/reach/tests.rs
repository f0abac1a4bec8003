//! Tests that faults concern only workloads whose path they affect.

use super::*;
use crate::draft::{Kind, Router};
use crate::judge::tests::draft;

/// Returns a draft with four routers, and a host that begins at router 1 and moves to router 2 at 2 s.
fn moves() -> Draft {
    let mut draft = draft(Kind::Down(1000));
    draft.routers = vec![draft.routers[0]; 4];
    draft.hosts[0].start = 1;
    draft.hosts[0].moves[0].to = 2;
    draft
}

fn concerns(draft: &Draft, what: What) -> bool {
    draft.concerns(&Fault { at: 10_000, lasts: 2000, what }, &draft.hosts[0].work[0], 0)
}

/// An Indirect TCP router that the host has left may still have state of the host's connections.
#[test]
fn a_router_that_was_left_long_ago_concerns_connections_of_indirect_tcp_only() {
    let mut draft = moves();
    let mut of = |protocol, router| {
        draft.protocol = protocol;
        concerns(&draft, What::Crash(Node::Router(router)))
    };
    assert!(of(Protocol::IndirectTcp, 1) && !of(Protocol::IndirectTcp, 3));
    assert!(!of(Protocol::MobileIp, 1) && of(Protocol::MobileIp, 2));
    assert!(!of(Protocol::Sigma, 1) && of(Protocol::Sigma, 2));
}

/// The home agent is router 0. Packets to the home agent do not cross the cell of router 0.
#[test]
fn the_cell_of_the_home_agents_router_concerns_no_host_elsewhere() {
    let draft = moves();
    assert!(concerns(&draft, What::Cut(Spot::Wire(0))));
    assert!(!concerns(&draft, What::Cut(Spot::Air(0))));
}

/// Packets of a host do not cross the cells of the nodes above the host's cell.
#[test]
fn of_a_tree_only_the_cell_of_the_host_concerns_it() {
    let mut draft = moves();
    draft.protocol = Protocol::CellularIp;
    draft.routers = [0, 0, 1, 1].map(|parent| Router { parent, ..draft.routers[0] }).into();
    let cells: Vec<usize> = (0..4).filter(|cell| concerns(&draft, What::Cut(Spot::Air(*cell)))).collect();
    assert_eq!(cells, [2]);
}
