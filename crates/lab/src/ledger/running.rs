//! The books of a run while it goes on: a packet's are closed as soon as all its copies have come to an end, and only those
//! that are under way are kept.

use super::seen::{Links, Seen, packet_of};
use super::{Ledger, Places};
use crate::Plan;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use trace::{HostId, What, Witness};
use wire::{Iface, Instant, Packet, PacketId};

/// A ledger that is told of a run instead of reading its records. It counts drops by their reasons, and keeps no list of
/// them.
pub struct Running {
    places: Places,
    ledger: Ledger,
    /// Packets that are under way.
    open: HashMap<PacketId, Seen, BuildHasherDefault<IdHasher>>,
    /// Those of which something was told in this event: mostly one or two, so that they are found without a look-up.
    touched: Vec<(PacketId, Seen)>,
    /// More of those, which are back with the others: they are looked at when the event has settled.
    later: Vec<PacketId>,
    /// Room to use again.
    spare: Vec<Seen>,
    hops: u64,
    most_open: usize,
}

/// Packets of one event that are kept apart.
const APART: usize = 8;

impl Running {
    /// Empty books.
    pub fn new(plan: &Plan) -> Self {
        Self {
            places: Places::new(plan),
            ledger: Ledger::default(),
            open: HashMap::default(),
            touched: Vec::new(),
            later: Vec::new(),
            spare: Vec::new(),
            hops: 0,
            most_open: 0,
        }
    }

    /// Closes what is still open, now that the run has ended.
    pub fn close(mut self) -> Ledger {
        let rest: BTreeMap<PacketId, Seen> = self.touched.drain(..).chain(self.open.drain()).collect();
        for (packet, mut seen) in rest {
            let links = seen.links(&self.places);
            self.ledger.close_packet(&self.places, packet, &mut seen, links);
        }
        self.ledger
    }

    /// Frames that were put on links so far.
    pub const fn hops(&self) -> u64 {
        self.hops
    }

    /// The most packets that were under way at one time.
    pub const fn most_open(&self) -> usize {
        self.most_open
    }

    fn seen(&mut self, packet: PacketId) -> &mut Seen {
        let place = self.touched.iter().rposition(|(id, _)| *id == packet).unwrap_or_else(|| {
            if self.touched.len() >= APART {
                self.later.extend(self.touched.iter().map(|(id, _)| *id));
                self.open.extend(self.touched.drain(..));
            }
            let seen = self.open.remove(&packet).or_else(|| self.spare.pop()).unwrap_or_default();
            self.touched.push((packet, seen));
            self.touched.len() - 1
        });
        #[expect(clippy::indexing_slicing, reason = "found, or just put there")]
        &mut self.touched[place].1
    }

    /// Closes the books of a packet that has come to an end, or keeps them.
    fn settle(&mut self, packet: PacketId, mut seen: Seen) {
        let links = seen.links(&self.places);
        if links == Links::Open || !seen.hosts_are_at_rest(&self.places) {
            self.open.insert(packet, seen);
            return;
        }
        self.ledger.close_packet(&self.places, packet, &mut seen, links);
        seen.clear();
        self.spare.push(seen);
    }
}

impl Witness for Running {
    fn received(&mut self, at: Instant, host: HostId, iface: Iface, packet: &Packet) {
        self.seen(packet.id).received(at, host, iface, packet);
    }

    fn sent(&mut self, at: Instant, host: HostId, iface: Iface, packet: &Packet) {
        self.hops += u64::from(iface != Iface::HOST);
        self.seen(packet.id).sent(at, host, iface, packet);
    }

    fn happened(&mut self, at: Instant, host: HostId, what: What) {
        let Some(packet) = packet_of(&what) else { return };
        self.ledger.count_loss(&what);
        self.seen(packet).happened(at, host, &what);
    }

    fn settled(&mut self) {
        while let Some((packet, seen)) = self.touched.pop() {
            self.settle(packet, seen);
        }
        while let Some(packet) = self.later.pop() {
            if let Some(seen) = self.open.remove(&packet) {
                self.settle(packet, seen);
            }
        }
        self.most_open = self.most_open.max(self.open.len());
    }
}

/// Packets of a simulated run are numbered from 1: nobody chooses their numbers to meet in one place.
#[derive(Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
}
