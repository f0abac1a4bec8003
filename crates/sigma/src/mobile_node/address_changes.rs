//! Requests for address changes to the peers, and the answers of the peers. If a peer refuses a change, the association
//! keeps its addresses. The peer is asked again, at growing intervals, for the changes that are missing at that time.

use super::{MobileNode, Standing, Timer};
use crate::mark::SigmaEvent;
use node::Outbox;
use sctp::{AssociationEvent, AssociationId, Change, ChangeOutcome, RequestError};
use wire::{Duration, Instant, Ipv4Addr};

/// The pause from a refusal until the peer is asked again. It doubles each time, up to one minute: peers limit the
/// number of added addresses per minute.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

impl MobileNode {
    /// Asks the peers of all open associations for `changes`.
    pub(super) fn ask_all(&mut self, now: Instant, changes: &[Change], out: &mut Outbox) {
        for id in self.transport.open() {
            self.ask(now, id, changes);
            // The association may lack earlier changes, because they could not be requested at that time. If no answer
            // of its peer is outstanding, the peer is asked for all missing changes.
            if self.waiting.contains(&id) && !self.asked.iter().any(|(asked, _)| *asked == id) {
                let primary = self.lacking.remove(&id).unwrap_or(false);
                self.catch_up(now, id, primary);
            }
        }
        if changes.iter().any(|change| matches!(change, Change::Add(_))) && !self.asked.is_empty() {
            out.mark(SigmaEvent::AddSent.into());
        }
    }

    pub(super) fn ask(&mut self, now: Instant, id: AssociationId, changes: &[Change]) {
        let Some(association) = self.transport.open_mut(id) else { return };
        match association.change(now, changes) {
            Ok(()) => self.asked.extend(changes.iter().map(|change| (id, *change))),
            // The change is not possible now: the association already has the address, does not have it, or has no
            // other address, or too many changes wait.
            Err(RequestError::Known | RequestError::Full | RequestError::Unknown | RequestError::Last) => {
                self.waiting.insert(id);
                self.lacks(now, id, changes.iter().any(|it| matches!(it, Change::SetPrimary(_))));
            }
            // The peer cannot be asked: the association is not open, the peer does not support address changes, or the
            // address is not unicast.
            Err(RequestError::NotOpen | RequestError::Unsupported | RequestError::Address) => {}
        }
    }

    /// Records that an association lacks a change, which is requested again later.
    fn lacks(&mut self, now: Instant, id: AssociationId, primary: bool) {
        *self.lacking.entry(id).or_default() |= primary;
        let pause = PAUSE.saturating_mul(1 << self.again.min(6)).min(LONGEST_PAUSE);
        // A timer that is set already is not postponed.
        if self.timers.due(Timer::Ask).is_none() {
            self.timers.set(Timer::Ask, now + pause);
        }
    }

    /// Asks the peers of associations that lack a change, unless an answer of the peer is outstanding.
    pub(super) fn ask_again(&mut self, now: Instant) {
        self.again += 1;
        for (id, primary) in std::mem::take(&mut self.lacking) {
            if self.asked.iter().any(|(asked, _)| *asked == id) {
                self.lacks(now, id, primary);
            } else {
                self.catch_up(now, id, primary);
            }
        }
        if self.lacking.is_empty() && self.asked.is_empty() {
            self.again = 0;
        }
    }

    /// Asks the peer of an association for all missing changes: adds the addresses that this host has, sets the primary
    /// address if `primary`, and deletes the addresses that this host no longer has.
    fn catch_up(&mut self, now: Instant, id: AssociationId, primary: bool) {
        self.waiting.remove(&id);
        let here: Vec<Ipv4Addr> = self.ready().filter_map(|at| self.address_of(at)).collect();
        let current = self.current.and_then(|at| self.address_of(at));
        let (Some(association), Some(current)) = (self.transport.open_mut(id), current) else { return };
        let known: Vec<Ipv4Addr> = association.local_addresses().collect();
        let added = here.iter().filter(|address| !known.contains(address));
        let gone = known.iter().filter(|address| !here.contains(address));
        let changes: Vec<Change> = (added.map(|address| Change::Add(*address)))
            .chain(primary.then_some(Change::SetPrimary(current)))
            .chain(gone.map(|address| Change::Delete(*address)))
            .collect();
        if changes.is_empty() {
            return;
        }
        self.ask(now, id, &changes);
        if let Some(association) = self.transport.open_mut(id) {
            let _ = association.move_to(now, current, &here);
        }
    }

    /// Returns whether data may move to `address`. All peers must have answered the request to add it. If associations
    /// are open, at least one of them must have `address`.
    pub(super) fn may_be_used(&self, address: Ipv4Addr) -> bool {
        let open = self.transport.open();
        !self.waits_for(Change::Add(address))
            && (open.is_empty() || open.into_iter().any(|id| self.transport.addresses(id).contains(&address)))
    }

    /// Returns whether an association depends on this address: the association has no other address, or sends from this
    /// address instead of the preferred one.
    pub(super) fn is_needed(&self, address: Ipv4Addr) -> bool {
        self.transport.is_detour(address)
            || self.transport.open().into_iter().any(|id| self.transport.addresses(id) == [address])
    }

    pub(super) fn ready(&self) -> impl Iterator<Item = usize> {
        self.radios.iter().filter_map(|(_, standing)| match standing {
            Standing::Ready(at) => Some(*at),
            _ => None,
        })
    }

    pub(super) fn waits_for(&self, change: Change) -> bool {
        self.asked.iter().any(|(_, asked)| *asked == change)
    }

    /// Handles the opening of an association: asks its peer for missing changes. This host may have other addresses
    /// than those with which the opening began.
    pub(super) fn opened(&mut self, now: Instant, id: AssociationId, out: &mut Outbox) {
        let known = self.transport.addresses(id);
        let current = self.current.and_then(|at| self.address_of(at));
        self.catch_up(now, id, current.is_some_and(|current| !known.contains(&current)));
        if self.asked.iter().any(|(asked, change)| *asked == id && matches!(change, Change::Add(_))) {
            out.mark(SigmaEvent::AddSent.into());
        }
    }

    pub(super) fn news(&mut self, now: Instant, out: &mut Outbox) {
        loop {
            let news = self.transport.settle(now, out);
            if news.is_empty() {
                return;
            }
            for (id, event) in news {
                self.heed(&event, id);
                match event {
                    // A restarted peer knows only the addresses of this host's INIT ACK.
                    AssociationEvent::Opened | AssociationEvent::Restarted { intact: true } => {
                        self.opened(now, id, out);
                    }
                    AssociationEvent::Changed(change, outcome) => self.changed(now, id, change, outcome, out),
                    AssociationEvent::Silent(_) => self.seek(now, [id].into(), out),
                    AssociationEvent::Arriving(address) => self.arriving(address, out),
                    AssociationEvent::Closed(_) => {
                        self.asked.retain(|(other, _)| *other != id);
                        self.lacking.remove(&id);
                        self.waiting.remove(&id);
                        self.retire(now, out);
                    }
                    _ => {}
                }
            }
        }
    }

    pub(super) fn changed(
        &mut self,
        now: Instant,
        id: AssociationId,
        change: Change,
        outcome: ChangeOutcome,
        out: &mut Outbox,
    ) {
        self.asked.remove(&(id, change));
        if outcome == ChangeOutcome::Done {
            self.accepted.insert(change);
        } else {
            out.mark(SigmaEvent::ChangeRefused { address: change.address() }.into());
            self.lacks(now, id, matches!(change, Change::SetPrimary(_)));
        }
        // Some changes had to wait for all answers of this peer. If no answer is outstanding now, they are requested.
        if self.waiting.contains(&id) && !self.asked.iter().any(|(asked, _)| *asked == id) {
            let primary = self.lacking.remove(&id).unwrap_or(false);
            self.catch_up(now, id, primary);
        }
        if self.waits_for(change) {
            return;
        }
        let accepted = self.accepted.remove(&change);
        match change {
            Change::Add(address) => {
                if accepted {
                    out.mark(SigmaEvent::AddAcknowledged { address }.into());
                }
                self.review(now, out);
            }
            Change::SetPrimary(address) => {
                if accepted {
                    out.mark(SigmaEvent::PrimaryAcknowledged { address }.into());
                }
                // The location manager must have this address even if all peers refuse it, unless this host has another
                // address at which it can be reached.
                if accepted || self.others().next().is_none() {
                    self.register(now, out);
                }
            }
            Change::Delete(_) => self.retire(now, out),
        }
    }
}
