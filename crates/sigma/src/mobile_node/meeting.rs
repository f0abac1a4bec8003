//! Peers that move too. If both ends lose their networks before each could tell the other, each knows only what the other has
//! lost; but both tell the location manager where they are. Whoever has lost a network asks it where such a peer is, at once, and
//! again when it has taken what we told it: of two that move at the same time, the later one finds the earlier one by that. Whose
//! peer is silent asks too.

use super::MobileNode;
use crate::mark::Event;
use crate::message::Name;
use node::Outbox;
use sctp::{AssociationId, Change, Event as News};
use std::collections::BTreeSet;
use wire::{Instant, Ipv4Addr};

impl MobileNode {
    /// Which peer an association is with, and whether it was heard of.
    pub(super) fn heed(&mut self, event: &News, id: AssociationId) {
        match event {
            News::Opened | News::Silent(_) if !self.met.contains_key(&id) => {
                let known = self.transport.peer_addresses(id);
                let is = |name: &&crate::config::Peer| name.addresses.iter().any(|it| known.contains(it));
                if let Some(peer) = self.config.peers.iter().find(is) {
                    self.met.insert(id, peer.name.clone());
                }
            }
            News::Closed(_) => {
                self.met.remove(&id);
                self.sought.remove(&id);
            }
            News::Data
            | News::Room(_)
            | News::Arriving(_)
            | News::Changed(..)
            | News::PeerAdded(_)
            | News::PeerDeleted(_)
            | News::PeerPrimary(_)
            | News::PeerFinished => _ = self.sought.remove(&id),
            News::Opened
            | News::Restarted { .. }
            | News::Path(..)
            | News::Silent(_)
            | News::Switched { .. } => {}
        }
    }

    /// We have lost a network: peers that move too may have lost theirs.
    pub(super) fn seek_all(&mut self, now: Instant, out: &mut Outbox) {
        let open = self.transport.open().into_iter().collect();
        self.seek(now, open, out);
    }

    /// The location manager knows where we are: what it said before may be older than what a peer did meanwhile.
    pub(super) fn seek_again(&mut self, now: Instant, out: &mut Outbox) {
        self.seek(now, self.sought.clone(), out);
    }

    /// Asks where the peers of these associations are, as far as they are known to move.
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

    /// The location manager says that a peer is at `address`. If it does not know where we are either, it is asked for the change
    /// that it has not heard of; or, as it may have lost only its own network, for data where they come already: so it learns
    /// that we can be reached where it has asked us in vain.
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
                out.mark(Event::PeerLocated { name: name.to_string(), address }.into());
            }
        }
    }
}
