//! The ledger during a run: a packet is finalised as soon as all its copies have ended. Only packets that are under
//! way are kept in memory.

use super::books::Books;
use super::open::Open;
use super::step::{Step, loss};
use super::{Ledger, Places};
use crate::flow;
use scenario::Plan;
use std::collections::BTreeSet;
use trace::{EventKind, HostId, What, Witness};
use wire::{Iface, Instant, Packet, PacketId};

/// A ledger that is updated with each event during the run, without stored records. It counts drops by their reasons,
/// and keeps no list of drops.
pub struct Running {
    pub(super) places: Places,
    ledger: Ledger,
    flows: flow::Counted,
    open: Open,
    /// Counters of the packet that is being finalised; kept to reuse their memory.
    books: Books,
    hops: u64,
    most_open: usize,
    /// Hosts that are stopped. A packet that waits for a stopped host is on no link, and no event reports it.
    stopped: BTreeSet<HostId>,
}

impl Running {
    /// Creates an empty ledger for the plan.
    pub fn new(plan: &Plan) -> Self {
        Self {
            places: Places::new(plan),
            ledger: Ledger::default(),
            flows: flow::Counted::default(),
            open: Open::default(),
            books: Books::default(),
            hops: 0,
            most_open: 0,
            stopped: BTreeSet::new(),
        }
    }

    /// Returns the failures that are known without records, with the names of hosts and peers. Call this function once,
    /// after the run has ended.
    pub fn failures(&mut self, plan: &Plan) -> Vec<String> {
        std::mem::take(&mut self.flows).failures(plan)
    }

    /// Finalises the packets that are still under way, and returns the ledger. Call this function after the run has
    /// ended.
    pub fn close(mut self) -> Ledger {
        for (packet, seen) in self.open.all() {
            self.ledger.close_packet(&self.places, packet, seen, &mut self.books);
        }
        self.ledger
    }

    /// Returns the number of frames sent on links so far.
    pub const fn hops(&self) -> u64 {
        self.hops
    }

    /// Returns the largest number of packets that were under way at the same time.
    pub const fn most_open(&self) -> usize {
        self.most_open
    }

    #[cfg(test)]
    pub(super) fn still_open(&self) -> usize {
        self.open.len()
    }

    /// Returns the number of slots for packets.
    #[cfg(test)]
    pub(super) fn room(&self) -> usize {
        self.open.room()
    }

    /// Tracks which hosts are stopped. A stopped host receives its copy of a packet long after the other receivers.
    fn ordered(&mut self, host: HostId, kind: EventKind) {
        match kind {
            EventKind::Stop => drop(self.stopped.insert(host)),
            EventKind::Continue | EventKind::Crash => drop(self.stopped.remove(&host)),
            _ => {}
        }
    }

    /// Corrects the ledger if a stack reports that it lost or still holds a packet that was finalised as delivered.
    /// This happens if an Indirect TCP guard held the segment. Returns whether the ledger was corrected.
    fn told_late(&mut self, what: &What) -> bool {
        let (What::Lost(Iface::HOST, packet, _) | What::Held(Some(Iface::HOST), packet)) = what else {
            return false;
        };
        if self.open.has(*packet) {
            return false;
        }
        assert!(self.ledger.delivered > 0, "a packet ends again, and none was delivered: {what:?}");
        self.ledger.delivered -= 1;
        match loss(what) {
            Some((.., reason)) => self.ledger.count_drop(reason),
            None => self.ledger.held += 1,
        }
        true
    }

    /// Records a step. Returns the interface, the packet and the reason if the step is a loss.
    pub(super) fn told<'a>(
        &mut self,
        at: Instant,
        host: HostId,
        what: &'a What,
    ) -> Option<(Iface, PacketId, &'a str)> {
        let (packet, step) = Step::of(at, host, what)?;
        let seen = self.open.touch(packet);
        if let What::Received(_, packet) | What::Sent(_, packet) = what {
            seen.note_bytes(packet);
        }
        seen.add(step, &self.places);
        let loss = loss(what)?;
        if !seen.lose() {
            return None;
        }
        self.ledger.count_drop(loss.2);
        Some(loss)
    }
}

impl Witness for Running {
    fn received(&mut self, at: Instant, host: HostId, iface: Iface, packet: &Packet) {
        let seen = self.open.touch(packet.id);
        seen.note_bytes(packet);
        seen.add(Step::received(at, host, iface, packet), &self.places);
    }

    fn sent(&mut self, at: Instant, host: HostId, iface: Iface, packet: &Packet) {
        self.hops += u64::from(iface != Iface::HOST);
        let seen = self.open.touch(packet.id);
        seen.note_bytes(packet);
        seen.add(Step::sent(at, host, iface, packet), &self.places);
    }

    fn happened(&mut self, at: Instant, host: HostId, what: What) {
        if let What::Ordered(event) = &what {
            self.ordered(host, event.kind);
        }
        if !self.told_late(&what) {
            self.told(at, host, &what);
        }
        self.flows.note(at, host, &what);
    }

    fn doubled(&mut self, packet: PacketId, more: u8) {
        self.open.touch(packet).will_come(more);
    }

    fn settled(&mut self) {
        self.most_open = self.most_open.max(self.open.len());
        if !self.stopped.is_empty() {
            return;
        }
        while let Some((place, packet, seen)) = self.open.next_touched() {
            // A packet with a copy on a link cannot be finalised.
            if !seen.is_under_way() && self.ledger.close_ended(&self.places, packet, seen, &mut self.books) {
                self.open.forget(place);
            }
        }
    }
}
