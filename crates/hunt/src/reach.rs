//! Decides which faults concern a workload. These are faults of a link or host on the path of the workload, and faults
//! of an agent that its mobile hosts need.

use crate::draft::{Draft, Mobile, Protocol, Work};
use crate::fault::{Fault, Node, Spot, What};
use std::collections::BTreeSet;

/// The time in which a host is registered after a change of cell, in milliseconds; two round trips are added. The time
/// covers the pause between two registrations (RFC 5944, section 3.6.3) and one lost request.
const SETTLED: u64 = 2000;

impl Draft {
    /// Returns whether a fault may interrupt the path of a workload, at its mobile host or at its peer. A fault of a
    /// router or cell also affects hosts that come to the cell at most `after` milliseconds after the fault.
    pub fn concerns(&self, fault: &Fault, work: &Work, after: u64) -> bool {
        let owner = self.hosts.iter().position(|host| host.work.contains(work));
        let mut ends = owner.into_iter().chain(work.peer);
        // A Cellular IP gateway forwards packets between its own hosts to the first router of the Internet. In a draft,
        // this router is the fixed host. It is optional for the gateway to turn such packets back
        // (draft-ietf-mobileip-cellularip-00).
        let passes_fixed = work.peer.is_none() || self.protocol == Protocol::CellularIp;
        ends.any(|host| self.is_on_path(fault, host, after)) || (fault.what.is_of_fixed() && passes_fixed)
    }

    fn is_on_path(&self, fault: &Fault, number: usize, after: u64) -> bool {
        let Some(host) = self.hosts.get(number) else { return false };
        let node = match fault.what {
            What::Cut(Spot::Core)
            | What::Loss(Spot::Core, _)
            | What::Narrow(Spot::Core, _)
            | What::Crash(Node::Manager)
            | What::Stop(Node::Manager)
            | What::Clock(Node::Manager, _)
            | What::DiskFull(_) => return true,
            _ => fault.router(),
        };
        let Some(router) = node else { return fault.mobile() == Some(number) };
        let cells = self.visited(host, fault.at, fault.ends() + after);
        let is_air = matches!(
            fault.what,
            What::Cut(Spot::Air(_)) | What::Loss(Spot::Air(_), _) | What::Narrow(Spot::Air(_), _)
        );
        let is_agent = !is_air && router == host.home && self.has_home_agent();
        is_agent
            || cells.contains(&router)
            || (!is_air && cells.iter().any(|cell| self.is_above(router, *cell)))
    }

    /// Returns the cells that a host is in between two instants, and the cells that it has left shortly before. The
    /// peer sends to a left cell until the host is registered again. With Indirect TCP, all cells that the host has
    /// left count: their routers may still have state of a connection.
    fn visited(&self, host: &Mobile, from: u64, to: u64) -> BTreeSet<usize> {
        let just = SETTLED + 2 * self.worst_round_trip();
        let is_left_behind = self.protocol == Protocol::IndirectTcp;
        self.cells_of(host, if is_left_behind { 0 } else { from.saturating_sub(just) }, to)
    }

    /// Returns the cells that a host is in between two instants. During a change of cell, the host counts as being in
    /// both cells.
    fn cells_of(&self, host: &Mobile, from: u64, to: u64) -> BTreeSet<usize> {
        if self.options.overlaps {
            return (0..self.routers.len()).collect();
        }
        let mut cells: BTreeSet<usize> = host.second.iter().map(|second| second.cell).collect();
        let mut here = host.start;
        let mut since = 0;
        for step in &host.moves {
            // Until the host has registered by the new cell, its packets are sent to the old one.
            let detection = self.longest_detection_ms();
            let left = step.at + step.overlap.unsigned_abs() + self.retune_ms + detection;
            if since <= to && left >= from {
                cells.insert(here);
            }
            (here, since) = (step.to, step.at);
        }
        if since <= to {
            cells.insert(here);
        }
        cells
    }

    /// Returns whether the protocol needs the home agent wherever a host is.
    const fn has_home_agent(&self) -> bool {
        matches!(self.protocol, Protocol::MobileIp | Protocol::IndirectTcp)
    }

    /// Returns whether a node of a tree is on the path from another node to the gateway.
    fn is_above(&self, node: usize, below: usize) -> bool {
        let mut at = below;
        while self.protocol == Protocol::CellularIp && at != 0 {
            let Some(router) = self.routers.get(at) else { return false };
            at = router.parent;
            if at == node {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests;
