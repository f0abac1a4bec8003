//! The packets that a foreign agent keeps for its visitors, as a data structure without a protocol. "Smooth handoff" in
//! Johnson and Bennington, Mobile IP over ACTS, keeps one packet for each visitor. Here a visitor has a ring of several.
//!
//! The ring of a visitor has its last packets, without a gap: the oldest is dropped first. A ring has at most a number of
//! packets and of bytes. All rings together have at most `total_bytes`: if a packet needs more, the largest ring is shrunk.
//! Bytes are those of the IP datagrams. A packet that is older than `max_age` is dropped.

use super::{Visit, of_host};
use crate::config::Limits;
use node::Expiry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wire::{Iface, Instant, Ipv4Addr, Packet, PacketId, Reason};

/// The reason to drop a kept packet: a later packet of the same visitor takes its place. It is the end of a copy: the packet
/// itself was forwarded to the visitor. With `when = "link-down"` it was not, and is lost.
pub const KEPT_REPLACED: Reason = Reason("kept_replaced");
/// The reason to drop a kept packet: it is older than `max_age`.
pub const KEPT_TOO_OLD: Reason = Reason("kept_too_old");
/// The reason to drop a kept packet: the packets of all visitors have `total_bytes`, and this visitor has the most bytes. Or
/// the packet is larger than `bytes`.
pub const KEPT_NO_ROOM: Reason = Reason("kept_no_room");

/// The reason to drop a kept packet: the mobile node has named it as received, or it is a copy of another kept packet.
pub const KEPT_DUPLICATE: Reason = Reason("kept_duplicate");

/// A kept packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Kept {
    pub(super) packet: Packet,
    /// Whether the time to live was decremented for the link of the visitor. Not that of a packet that waits behind kept
    /// ones, unless the kernel's data path has decremented it.
    pub(super) is_decremented: bool,
    /// The interface on which it arrived.
    pub(super) iface: Iface,
    /// The source of the tunnel out of which it came.
    pub(super) entry: Ipv4Addr,
    /// When it arrived.
    since: Instant,
}

/// A packet that waits behind kept ones.
#[derive(Debug)]
pub(super) struct Later {
    pub(super) packet: Packet,
    /// The interface on which it arrived.
    pub(super) iface: Iface,
    /// The source of the tunnel out of which it came.
    pub(super) entry: Ipv4Addr,
    /// Whether its time to live was decremented.
    pub(super) is_decremented: bool,
}

impl Kept {
    fn len(&self) -> usize {
        self.packet.bytes.len()
    }

    /// Returns whether this is a copy of another packet: only the time to live, the checksum and the type of service may
    /// differ. With several bindings, a packet can arrive from the home agent, and by another agent. Equal packets out of one
    /// tunnel with identification 0 may be different ones (RFC 6864, section 4.1).
    fn is_copy_of(&self, other: &Self) -> bool {
        let is_from_elsewhere = self.entry != other.entry;
        let [own, other] = [&self.packet.bytes, &other.packet.bytes];
        // The length, the identification and the fragment; the protocol; the addresses, the options and the data.
        let same =
            [2..8, 9..10, 12..own.len()].into_iter().all(|part| own.get(part.clone()) == other.get(part));
        let is_named = || own.get(4..6).is_some_and(|id| id != [0, 0]);
        own.len() == other.len() && (is_from_elsewhere || is_named()) && same
    }
}

/// The packets of one visitor, the oldest first.
#[derive(Debug, Default)]
struct Ring {
    packets: VecDeque<Kept>,
    bytes: usize,
    /// Whether the packets are being sent. Then they do not get too old, and packets that wait behind them
    /// have as much room again.
    is_draining: bool,
    /// Whether a deadline is set for its oldest packet.
    is_timed: bool,
}

impl Ring {
    fn pop(&mut self) -> Option<Kept> {
        let kept = self.packets.pop_front()?;
        self.bytes -= kept.len();
        Some(kept)
    }
}

/// The rings of all visitors of one agent.
#[derive(Debug)]
pub(super) struct Buffers {
    limits: Limits,
    rings: BTreeMap<Visit, Ring>,
    /// The rings that have a packet and are not being sent, by their number of bytes.
    by_size: BTreeSet<(usize, Visit)>,
    /// When the oldest packet of each ring is too old. The instant may be too early: it is that of a packet that was replaced.
    ages: Expiry<Visit>,
    /// The number of bytes of all rings.
    bytes: usize,
}

impl Buffers {
    pub(super) fn new(limits: Limits) -> Self {
        let (rings, by_size, ages) = (BTreeMap::new(), BTreeSet::new(), Expiry::default());
        Self { limits, rings, by_size, ages, bytes: 0 }
    }

    /// Returns the number of bytes that all visitors have.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the maximum number of bytes of all visitors.
    pub(super) const fn room(&self) -> usize {
        self.limits.total_bytes
    }

    /// Returns the maximum number of packets of one visitor.
    pub(super) const fn packets_each(&self) -> usize {
        self.limits.packets
    }

    /// Returns the numbers of packets and of bytes of a visitor.
    pub(super) fn size(&self, visit: Visit) -> (usize, usize) {
        self.rings.get(&visit).map_or((0, 0), |ring| (ring.packets.len(), ring.bytes))
    }

    /// Returns the number of packets of all visitors.
    pub(super) fn packets(&self) -> usize {
        self.rings.values().map(|ring| ring.packets.len()).sum()
    }

    /// Returns the visits of a home address that have packets.
    pub(super) fn of(&self, host: Ipv4Addr) -> impl Iterator<Item = Visit> + '_ {
        of_host(&self.rings, host).map(|(visit, _)| visit)
    }

    /// Calls `each` with the identity of each packet.
    pub(super) fn holds(&self, each: &mut dyn FnMut(PacketId)) {
        self.rings.values().flat_map(|ring| &ring.packets).for_each(|kept| each(kept.packet.id));
    }

    /// Keeps a packet that arrived on `iface`, out of a tunnel from `entry`. Calls `gone` with each packet that has no place
    /// any more, and the reason. This may be the packet itself. A packet that is larger than the limits also ends the
    /// packets before it: the ring has no gap.
    pub(super) fn keep(
        &mut self,
        now: Instant,
        visit: Visit,
        (iface, entry, packet): (Iface, Ipv4Addr, Packet),
        gone: &mut impl FnMut(Kept, Reason),
    ) {
        let Limits { packets, bytes, total_bytes, max_age } = self.limits;
        let kept = Kept { packet, is_decremented: true, iface, entry, since: now };
        let len = kept.len();
        let fits = len <= bytes.min(total_bytes);
        let ring = self.rings.entry(visit).or_default();
        if ring.packets.iter().any(|other| kept.is_copy_of(other)) {
            return gone(kept, KEPT_DUPLICATE);
        }
        let before = ring.bytes;
        while !fits || ring.packets.len() >= packets || ring.bytes + len > bytes {
            let Some(old) = ring.pop() else { break };
            gone(old, KEPT_REPLACED);
        }
        self.bytes -= before - ring.bytes;
        if fits && self.bytes + len <= total_bytes {
            // The usual case needs one search: most packets have the size of the packet that they replace.
            ring.bytes += len;
            ring.packets.push_back(kept);
            self.bytes += len;
            let (size, is_timed) = (ring.bytes, std::mem::replace(&mut ring.is_timed, true));
            if size != before {
                self.by_size.remove(&(before, visit));
                self.by_size.insert((size, visit));
            }
            if !is_timed {
                self.ages.set(visit, now + max_age);
            }
            return;
        }
        self.resized(visit, before);
        if !fits || !self.make_room(visit, len, gone) {
            self.remove_empty(visit);
            return gone(kept, KEPT_NO_ROOM);
        }
        let before = self.size(visit).1;
        self.push(visit, kept).is_timed = true;
        self.resized(visit, before);
        self.ages.set_by(visit, now + max_age);
    }

    /// Removes the oldest packets of the largest rings until `len` bytes more fit. The new packet counts as a packet of its
    /// visitor already. Returns false if it does not fit, because its visitor would have the most bytes with this packet
    /// alone.
    fn make_room(&mut self, visit: Visit, len: usize, gone: &mut impl FnMut(Kept, Reason)) -> bool {
        while self.bytes + len > self.limits.total_bytes {
            let Some((size, largest)) = self.by_size.last().copied() else { return false };
            let is_largest = self.size(visit).1 + len > size;
            let Some(old) = self.pop(if is_largest { visit } else { largest }) else { return false };
            gone(old, KEPT_NO_ROOM);
        }
        true
    }

    fn push(&mut self, visit: Visit, kept: Kept) -> &mut Ring {
        self.bytes += kept.len();
        let ring = self.rings.entry(visit).or_default();
        ring.bytes += kept.len();
        ring.packets.push_back(kept);
        ring
    }

    /// Records that a ring had `before` bytes before its last change.
    fn resized(&mut self, visit: Visit, before: usize) {
        let size = self.size(visit).1;
        if size != before {
            self.by_size.remove(&(before, visit));
            let is_draining = self.rings.get(&visit).is_some_and(|ring| ring.is_draining);
            if size > 0 && !is_draining {
                self.by_size.insert((size, visit));
            }
        }
    }

    fn remove_empty(&mut self, visit: Visit) {
        if self.rings.get(&visit).is_some_and(|ring| ring.packets.is_empty() && !ring.is_draining) {
            self.rings.remove(&visit);
            self.ages.stop(visit);
        }
    }

    /// Removes and returns the oldest packet of a visitor; `None` if it has none.
    pub(super) fn pop(&mut self, visit: Visit) -> Option<Kept> {
        let ring = self.rings.get_mut(&visit)?;
        let before = ring.bytes;
        let kept = ring.pop();
        self.bytes -= before - ring.bytes;
        self.resized(visit, before);
        self.remove_empty(visit);
        kept
    }

    /// Removes and returns all packets of a visitor, the oldest first.
    pub(super) fn take(&mut self, visit: Visit) -> VecDeque<Kept> {
        let Some(ring) = self.rings.remove(&visit) else { return VecDeque::new() };
        self.ages.stop(visit);
        self.bytes -= ring.bytes;
        self.by_size.remove(&(ring.bytes, visit));
        ring.packets
    }

    /// Removes the packets of a visitor for which `is_removed` returns true, and calls `gone` with each.
    pub(super) fn remove_if(
        &mut self,
        visit: Visit,
        is_removed: impl Fn(&Packet) -> bool,
        gone: &mut impl FnMut(Kept),
    ) {
        let Some(ring) = self.rings.get_mut(&visit) else { return };
        let before = ring.bytes;
        let (removed, left) = ring.packets.drain(..).partition(|kept| is_removed(&kept.packet));
        ring.packets = left;
        ring.bytes = ring.packets.iter().map(Kept::len).sum();
        self.bytes -= before - ring.bytes;
        self.resized(visit, before);
        self.remove_empty(visit);
        let removed: VecDeque<Kept> = removed;
        removed.into_iter().for_each(gone);
    }

    /// Returns when the oldest packet may be too old; `None` if no packet is kept. The instant may be too early.
    pub(super) fn next(&self) -> Option<Instant> {
        self.ages.next()
    }

    /// Removes the packets that are too old, and calls `gone` with each. Afterwards, [`Self::next`] is later than `now`.
    pub(super) fn expire(&mut self, now: Instant, gone: &mut impl FnMut(Kept, Reason)) {
        let max_age = self.limits.max_age;
        while let Some(visit) = self.ages.pop(now) {
            loop {
                match self.rings.get(&visit).and_then(|ring| ring.packets.front()) {
                    Some(oldest) if oldest.since + max_age <= now => {
                        self.pop(visit).into_iter().for_each(|old| gone(old, KEPT_TOO_OLD));
                    }
                    Some(oldest) => break self.ages.set(visit, oldest.since + max_age),
                    None => break,
                }
            }
        }
    }

    // --- draining --------------------------------------------------------------------------------------------------

    /// Begins to send the packets of a visitor. From now on they do not get too old, and make no room for others: later ones
    /// among them exist only here.
    pub(super) fn begin_drain(&mut self, visit: Visit) {
        if let Some(ring) = self.rings.get_mut(&visit) {
            ring.is_draining = true;
            self.by_size.remove(&(ring.bytes, visit));
            self.ages.stop(visit);
        }
    }

    /// Ends the sending of the packets of a visitor. Those that are left have the limits of other rings again.
    pub(super) fn end_drain(&mut self, visit: Visit) {
        if let Some(ring) = self.rings.get_mut(&visit) {
            ring.is_draining = false;
            if let Some(oldest) = ring.packets.front() {
                ring.is_timed = true;
                self.by_size.insert((ring.bytes, visit));
                self.ages.set(visit, oldest.since + self.limits.max_age);
            }
        }
        self.remove_empty(visit);
    }

    /// Puts a later packet of a visitor behind those that are being sent. Fails with the packet if there is no room: the ring
    /// has as much room again for waiting packets, and no other ring is shrunk for them.
    pub(super) fn wait(&mut self, now: Instant, visit: Visit, later: Later) -> Result<(), Packet> {
        let Later { packet, iface, entry, is_decremented } = later;
        let Limits { packets, bytes, total_bytes, .. } = self.limits;
        let (count, size) = self.size(visit);
        let len = packet.bytes.len();
        if count >= 2 * packets || size + len > 2 * bytes || self.bytes + len > total_bytes {
            return Err(packet);
        }
        self.push(visit, Kept { packet, is_decremented, iface, entry, since: now });
        self.resized(visit, size);
        Ok(())
    }
}

#[cfg(test)]
#[path = "buffer_tests.rs"]
mod tests;
