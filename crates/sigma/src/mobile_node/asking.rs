//! What a mobile node asks of its peers, and what it makes of their answers. An association whose peer refuses a change keeps what
//! it has; it is asked again, further and further apart, for what it lacks by then.

use super::{MobileNode, Standing, Timer};
use crate::mark::Event;
use node::Outbox;
use sctp::{AssociationId, Cannot, Change, Event as News, Outcome};
use wire::{Duration, Instant, Ipv4Addr};

/// From a refusal until the peer is asked again; twice as long each time, up to a minute: the peer's limit is one of a minute.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

impl MobileNode {
    /// Asks the peers of all associations for changes.
    pub(super) fn ask_all(&mut self, now: Instant, changes: &[Change], out: &mut Outbox) {
        for id in self.transport.open() {
            self.ask(now, id, changes);
            // One that has other addresses than most, as it waited for an answer or was opened meanwhile, is asked for what it lacks.
            if self.waiting.contains(&id) && !self.asked.iter().any(|(asked, _)| *asked == id) {
                let primary = self.lacking.remove(&id).unwrap_or(false);
                self.catch_up(now, id, primary);
            }
        }
        if changes.iter().any(|change| matches!(change, Change::Add(_))) && !self.asked.is_empty() {
            out.mark(Event::AddSent.into());
        }
    }

    pub(super) fn ask(&mut self, now: Instant, id: AssociationId, changes: &[Change]) {
        let Some(association) = self.transport.open_mut(id) else { return };
        match association.change(now, changes) {
            Ok(()) => self.asked.extend(changes.iter().map(|change| (id, *change))),
            // An address is on its way out of the association, or the association does not have it, or too much is asked already.
            Err(Cannot::Known | Cannot::Full | Cannot::Unknown | Cannot::Last) => {
                self.waiting.insert(id);
                self.lacks(now, id, changes.iter().any(|it| matches!(it, Change::SetPrimary(_))));
            }
            // Its peer cannot be asked.
            Err(Cannot::NotOpen | Cannot::Unsupported | Cannot::Address) => {}
        }
    }

    /// Something is to be asked again.
    fn lacks(&mut self, now: Instant, id: AssociationId, primary: bool) {
        *self.lacking.entry(id).or_default() |= primary;
        let pause = PAUSE.saturating_mul(1 << self.again.min(6)).min(LONGEST_PAUSE);
        // What waits already is not put off by what is added.
        if self.timers.due(Timer::Ask).is_none() {
            self.timers.set(Timer::Ask, now + pause);
        }
    }

    /// Asks associations that lack a change.
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

    /// Asks an association for all that it lacks by now: addresses of networks that we are in, the primary one, and the end of
    /// those that we have not got any more.
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

    /// Whether associations can do with this address of ours: no answer is awaited, and one at least has it, if there is any.
    pub(super) fn may_be_used(&self, address: Ipv4Addr) -> bool {
        let open = self.transport.open();
        !self.waits_for(Change::Add(address))
            && (open.is_empty() || open.into_iter().any(|id| self.transport.addresses(id).contains(&address)))
    }

    /// Returns whether an association depends on this address: it has no other, or sends from it instead of the chosen
    /// one.
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

    /// An association was opened: it learns of the other address, if there is one. We may have moved since it began.
    pub(super) fn opened(&mut self, now: Instant, id: AssociationId, out: &mut Outbox) {
        let known = self.transport.addresses(id);
        let current = self.current.and_then(|at| self.address_of(at));
        self.catch_up(now, id, current.is_some_and(|current| !known.contains(&current)));
        if self.asked.iter().any(|(asked, change)| *asked == id && matches!(change, Change::Add(_))) {
            out.mark(Event::AddSent.into());
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
                    // One that began anew knows what INIT ACK named only.
                    News::Opened | News::Restarted { intact: true } => self.opened(now, id, out),
                    News::Changed(change, outcome) => self.changed(now, id, change, outcome, out),
                    News::Silent(_) => self.seek(now, [id].into(), out),
                    News::Arriving(address) => self.arriving(address, out),
                    News::Closed(_) => {
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
        outcome: Outcome,
        out: &mut Outbox,
    ) {
        self.asked.remove(&(id, change));
        if outcome == Outcome::Done {
            self.accepted.insert(change);
        } else {
            out.mark(Event::ChangeRefused { address: change.address() }.into());
            self.lacks(now, id, matches!(change, Change::SetPrimary(_)));
        }
        // What could not be asked while this was, is asked now.
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
                    out.mark(Event::AddAcknowledged { address }.into());
                }
                self.review(now, out);
            }
            Change::SetPrimary(address) => {
                if accepted {
                    out.mark(Event::PrimaryAcknowledged { address }.into());
                }
                // Where we are is true for those who look for us, whatever a peer refuses, unless we can still be found there.
                if accepted || self.others().next().is_none() {
                    self.register(now, out);
                }
            }
            Change::Delete(_) => self.retire(now, out),
        }
    }
}
