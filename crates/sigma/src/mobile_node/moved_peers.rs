//! Peers that are mobile nodes. If both ends of an association lose their networks at the same time, each end knows
//! only a lost address of its peer. But both ends register with the location manager. So a mobile node that has lost
//! its network asks the location manager for the address of its peer: as soon as it has another network, and again when
//! its registration is confirmed. Of the two ends, the end that registers later finds its peer. A mobile node also asks
//! when a peer does not answer.

use super::MobileNode;
use crate::mark::SigmaEvent;
use crate::message::Name;
use node::Outbox;
use sctp::{AssociationEvent, AssociationId, Change};
use std::collections::BTreeSet;
use wire::{Instant, Ipv4Addr};

impl MobileNode {
    /// Records in `met` which configured peer an association has. Removes an association from `sought` if its peer was
    /// heard or the association has closed.
    pub(super) fn heed(&mut self, event: &AssociationEvent, id: AssociationId) {
        match event {
            AssociationEvent::Opened | AssociationEvent::Silent(_) if !self.met.contains_key(&id) => {
                let known = self.transport.peer_addresses(id);
                let is = |name: &&crate::config::Peer| name.addresses.iter().any(|it| known.contains(it));
                if let Some(peer) = self.config.peers.iter().find(is) {
                    self.met.insert(id, peer.name.clone());
                }
            }
            AssociationEvent::Closed(_) => {
                self.met.remove(&id);
                self.sought.remove(&id);
            }
            AssociationEvent::Data
            | AssociationEvent::Room(_)
            | AssociationEvent::Arriving(_)
            | AssociationEvent::Changed(..)
            | AssociationEvent::PeerAdded(_)
            | AssociationEvent::PeerDeleted(_)
            | AssociationEvent::PeerPrimary(_)
            | AssociationEvent::PeerFinished => _ = self.sought.remove(&id),
            AssociationEvent::Opened
            | AssociationEvent::Restarted { .. }
            | AssociationEvent::Path(..)
            | AssociationEvent::Silent(_)
            | AssociationEvent::Switched { .. } => {}
        }
    }

    /// Looks for all peers that are mobile nodes, after this host has lost its network.
    pub(super) fn seek_all(&mut self, now: Instant, out: &mut Outbox) {
        let open = self.transport.open().into_iter().collect();
        self.seek(now, open, out);
    }

    /// Looks again for the peers of the associations in `sought`, because the location manager has confirmed this
    /// host's address. An earlier answer may be older than the last move of the peer.
    pub(super) fn seek_again(&mut self, now: Instant, out: &mut Outbox) {
        self.seek(now, self.sought.clone(), out);
    }

    /// Asks the location manager for the peers of these associations that are configured as moving.
    pub(super) fn seek(&mut self, now: Instant, ids: BTreeSet<AssociationId>, out: &mut Outbox) {
        let Some(local) = self.current.and_then(|at| self.address_of(at)) else { return };
        let Some(resolver) = &mut self.resolver else { return };
        let mut names = BTreeSet::new();
        for id in ids {
            if let Some(name) = self.met.get(&id) {
                self.sought.insert(id);
                names.insert(name);
            }
        }
        for name in names {
            resolver.ask(now, name, local, out);
        }
    }

    /// Handles the answer that the peer `name` is at `address`. Sends an outstanding request for a change to `address`,
    /// because the peer may not have received the request. If no request is outstanding, and the association does not
    /// have `address` yet, asks the peer again to make this host's address primary. From this request, the peer learns
    /// where this host can be reached.
    pub(super) fn found(&mut self, now: Instant, name: &Name, address: Ipv4Addr, out: &mut Outbox) {
        let of = |id: &&AssociationId| self.met.get(id) == Some(name);
        let ids: Vec<AssociationId> = self.sought.iter().filter(of).copied().collect();
        let here = self.current.and_then(|at| self.address_of(at));
        for id in ids {
            let waits = self.asked.iter().any(|(asked, _)| *asked == id);
            let is_new = !self.transport.peer_addresses(id).contains(&address);
            if let Some(here) = here.filter(|_| is_new && !waits) {
                self.ask(now, id, &[Change::SetPrimary(here)]);
            }
            if self.transport.try_at(now, id, address) {
                out.mark(SigmaEvent::PeerLocated { name: name.to_string(), address }.into());
            }
        }
    }
}
