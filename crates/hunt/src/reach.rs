//! Which faults concern which hosts: those of a link or a node on a path of the host, or of the one agent that it needs.

use crate::draft::{Draft, Mobile, Protocol, Work};
use crate::fault::{Fault, Node, Spot, What};
use std::collections::BTreeSet;

/// A host that changes cells is registered again within this time and two round trips, in milliseconds: the pause between two
/// registrations (RFC 5944, section 3.6.3), and one request that is lost.
const SETTLED: u64 = 2000;

impl Draft {
    /// Whether a fault may take a workload's path, at its mobile host or at its peer. Its effects on a host that comes to the place
    /// last for `after` milliseconds longer than the fault.
    pub fn concerns(&self, fault: &Fault, work: &Work, after: u64) -> bool {
        let owner = self.hosts.iter().position(|host| host.work.contains(work));
        let mut ends = owner.into_iter().chain(work.peer);
        // A gateway of Cellular IP hands what its hosts send to each other to the first router of the Internet, which is the fixed host
        // here (draft-ietf-mobileip-cellularip-00: to turn it back is optional).
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
        let is_agent = !is_air && router == 0 && self.has_home_agent();
        is_agent
            || cells.contains(&router)
            || (!is_air && cells.iter().any(|cell| self.is_above(router, *cell)))
    }

    /// The cells that a host is in at some time between two instants, or that it has just left: its peer sends there until it is
    /// registered again. A connection of Indirect TCP may have left something at each router that its host was at.
    fn visited(&self, host: &Mobile, from: u64, to: u64) -> BTreeSet<usize> {
        let just = SETTLED + 2 * self.worst_round_trip();
        let is_left_behind = self.protocol == Protocol::IndirectTcp;
        self.cells_of(host, if is_left_behind { 0 } else { from.saturating_sub(just) }, to)
    }

    /// The cells that a host is in at some time between two instants. While it changes cells it is in both.
    fn cells_of(&self, host: &Mobile, from: u64, to: u64) -> BTreeSet<usize> {
        let mut cells = BTreeSet::new();
        let mut here = host.start;
        let mut since = 0;
        for step in &host.moves {
            let left = step.at + step.overlap.unsigned_abs() + self.retune_ms;
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

    /// Whether a home agent beside router 0 is needed wherever a host is.
    const fn has_home_agent(&self) -> bool {
        matches!(self.protocol, Protocol::MobileIp | Protocol::IndirectTcp)
    }

    /// Whether a node of a tree is between another one and the gateway.
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
