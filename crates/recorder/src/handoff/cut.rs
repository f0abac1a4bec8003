//! The instants of a handoff on which its cost depends.

use super::experience::Handoff;
use trace::HostId;
use wire::Instant;

/// The cut of a host's path by a handoff.
pub(super) struct Cut<'a> {
    pub(super) host: HostId,
    /// When the handoff was decided, or when the path was cut if the cut was earlier.
    pub(super) begun: Instant,
    pub(super) at: Instant,
    /// The first instant at which packets can reach the host again.
    pub(super) back: Instant,
    /// When the handoff had ended: the host had a link, and the nodes that switch the path had the new path. At the
    /// latest, it is when the next handoff of the host begins.
    pub(super) ready: Instant,
    /// The host that cut the path by sending packets by another one. Packets that it sent before use the earlier path.
    /// `None` if the path was cut at the moving host.
    pub(super) by: Option<HostId>,
    /// Later handoffs of all hosts, the last one first.
    pub(super) later: &'a [Handoff],
}

impl<'a> Cut<'a> {
    /// Returns the host's later handoffs, the next one first.
    pub(super) fn later(&self) -> impl Iterator<Item = &'a Handoff> {
        let host = self.host;
        self.later.iter().rev().filter(move |later| later.host == host)
    }
}
