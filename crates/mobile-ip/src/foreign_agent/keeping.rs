//! The packets that a foreign agent keeps for its visitors: what is kept, and how it leaves. "Smooth handoff" in Johnson and
//! Bennington, Mobile IP over ACTS, keeps the last packet of each visitor. It is sent once, to the care-of address of an
//! authenticated Binding Update, before later packets. [`super::buffer`] has the limits.
//!
//! While packets of a visitor are to be kept, its route gives them to this role, which forwards them as the table would. A
//! packet is stored after its time to live was decremented, before the link. Only packets out of tunnels are kept, and never
//! those of this host: registration messages and ICMP errors. If the visit ends otherwise, its packets are dropped.

use super::buffer::{Buffers, Kept};
use super::{ForeignAgent, Visit};
use crate::config::{Buffering, Drain, KeepWhen};
use crate::mark::MobileIpEvent;
use crate::one_route::{Entry, OneRoute};
use node::{
    Action, Disposition, Encap, Expiry, Hop, Lifetime, Outbox, PuntReason, Route, RouteKey, Rx, Value, reason,
};
use std::collections::{BTreeMap, BTreeSet};
use wire::ipv4::{self, Header};
use wire::{Duration, Frame, IcmpError, Iface, Instant, Ipv4Addr, Mac, Packet, PacketId, Reason, fragment};

/// The reason to drop a kept packet: the visit has ended, and no authenticated update names another care-of address.
pub const KEPT_VISIT_ENDED: Reason = Reason("kept_visit_ended");
/// The reason to drop a kept packet: the mobile node has named it as one that it has received.
pub const KEPT_DUPLICATE: Reason = Reason("kept_duplicate");

/// The packets that a mobile node has received: the source and the identification of each (draft-mkhalil-mobileip-buffer-00,
/// section 4.5).
pub(super) type Named = BTreeSet<(Ipv4Addr, u16)>;

/// Where the packets of a visitor that has left are sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Onward {
    /// The route of the visitor's packets.
    pub(super) key: RouteKey,
    /// The tunnel to the new care-of address.
    pub(super) encap: Encap,
    /// How long packets are sent there.
    pub(super) lifetime: Lifetime,
}

/// The packets that one foreign agent keeps.
#[derive(Debug)]
pub(super) struct Keeper {
    when: KeepWhen,
    drain: Drain,
    /// In bit/s.
    rate: u64,
    buffers: Buffers,
    /// The visits whose requests ask to keep packets.
    asked: BTreeSet<Visit>,
    is_link_down: bool,
    /// The visits whose packets are being sent to another care-of address.
    drains: BTreeMap<Visit, Onward>,
    /// When the next packet of each drain is sent.
    due: Expiry<Visit>,
    entry: Entry,
    /// The number of kept packets that were sent to another care-of address.
    sent: u64,
}

impl Keeper {
    pub(super) fn new(config: &Buffering) -> Self {
        Self {
            when: config.when,
            drain: config.drain,
            rate: config.rate,
            buffers: Buffers::new(config.limits()),
            asked: BTreeSet::new(),
            is_link_down: false,
            drains: BTreeMap::new(),
            due: Expiry::default(),
            entry: Entry::default(),
            sent: 0,
        }
    }

    /// Returns whether each packet of a visit is to be kept now.
    fn wants(&self, visit: Visit) -> bool {
        match self.when {
            KeepWhen::Always => true,
            KeepWhen::LinkDown => self.is_link_down,
            KeepWhen::Request => self.asked.contains(&visit),
        }
    }

    /// Returns when a packet is due, or may be too old; `None` if there is none.
    pub(super) fn next(&self) -> Option<Instant> {
        Instant::sooner(self.due.next(), self.buffers.next())
    }

    pub(super) fn holds(&self, each: &mut dyn FnMut(PacketId)) {
        self.buffers.holds(each);
    }

    /// Returns the state for an operator.
    pub(super) fn status(&self) -> Value {
        Value::map([
            ("packets", Value::from(self.buffers.packets() as u64)),
            ("bytes", Value::from(self.buffers.bytes() as u64)),
            ("draining", Value::from(self.drains.len() as u64)),
            ("sent", Value::from(self.sent)),
        ])
    }
}

/// Returns whether a mobile node has named a packet. A datagram that must not be fragmented may have any identification (RFC
/// 6864, section 4.1), so the identification does not name it.
fn is_named(named: &Named, packet: &Packet) -> bool {
    Header::parse(&packet.bytes)
        .is_ok_and(|(header, _)| !header.dont_fragment && named.contains(&(header.src, header.id)))
}

impl ForeignAgent {
    /// Returns what the route of a visitor's packets does: it forwards them to the link address `mac`. If they are to be kept,
    /// it gives them to this role.
    pub(super) fn action_for(&self, visit: Visit, mac: Mac) -> Action {
        match &self.keeper {
            Some(keeper) if keeper.wants(visit) => Action::Punt,
            _ => Action::Forward(Hop::mac(self.iface, mac)),
        }
    }

    /// Records whether the accepted request of a visit asks to keep packets.
    pub(super) fn ask_to_keep(&mut self, visit: Visit, is_asked: bool) {
        let Some(keeper) = &mut self.keeper else { return };
        if is_asked {
            keeper.asked.insert(visit);
        } else {
            keeper.asked.remove(&visit);
        }
    }

    /// Handles a packet that a route of this role gave to it. If it is for a visitor out of a tunnel of the visitor's home
    /// agent, it is forwarded and kept. If the visitor has left, the packet waits behind those that are being sent. Otherwise
    /// it is a packet of a visitor.
    pub(super) fn punted(&mut self, now: Instant, rx: Rx, packet: Packet, out: &mut Outbox) {
        let visit = rx.tunnel.map(|(entry, _)| (rx.header.dst, entry));
        if let Some(visit) = visit
            && let Some(keeper) = &mut self.keeper
            && keeper.drains.contains_key(&visit)
        {
            return match keeper.buffers.wait(now, visit, (rx.iface, packet)) {
                Ok(()) => {}
                Err(packet) => self.drain_all(now, visit, Some((rx, packet)), out),
            };
        }
        match visit.and_then(|visit| Some((visit, self.visitors.get(&visit)?.mac))) {
            Some((visit, mac)) => self.deliver(now, visit, mac, (rx, packet), out),
            None => self.route_opened(rx, packet, out),
        }
    }

    /// Forwards a packet to a visitor on the link as the table would, and keeps it if it is to be kept. While the link is down,
    /// with `when = "link-down"`, the packet is kept and not sent.
    pub(super) fn deliver(
        &mut self,
        now: Instant,
        visit: Visit,
        mac: Mac,
        (rx, mut packet): (Rx, Packet),
        out: &mut Outbox,
    ) {
        let action = Action::Forward(Hop::mac(self.iface, mac));
        let is_own = |address| self.is_own(address);
        let verdict = OneRoute { action, mtu: self.mtu, is_own: &is_own }.decide(now, &rx, &packet);
        if let Some(error) = verdict.icmp {
            self.tell(now, error, &packet, out);
        }
        if let Disposition::Drop(reason) = verdict.disposition {
            return out.discard(rx.iface, packet, reason);
        }
        if !ipv4::decrement_ttl(&mut packet.bytes) {
            return out.discard(rx.iface, packet, reason::TTL_EXPIRED);
        }
        if let Some(keeper) = self.keeper.as_mut().filter(|keeper| keeper.wants(visit)) {
            let mut gone = |old, why| discard(old, why, out);
            if keeper.when == KeepWhen::LinkDown {
                return keeper.buffers.keep(now, visit, (rx.iface, packet), &mut gone);
            }
            keeper.buffers.keep(now, visit, (rx.iface, packet.clone()), &mut gone);
        }
        self.send_on_link(mac, rx.iface, verdict.cut, packet, out);
    }

    /// Sends a packet to a visitor, in fragments of at most `cut` bytes if it is given.
    fn send_on_link(&self, mac: Mac, from: Iface, cut: Option<u16>, packet: Packet, out: &mut Outbox) {
        let link = Frame::to(mac);
        let Some(mtu) = cut else { return out.send(self.iface, Packet { link, ..packet }) };
        match fragment::pieces(&packet.bytes, mtu) {
            Ok(pieces) => {
                let pieces = pieces.into_iter().map(|bytes| Packet { link, bytes, id: packet.id });
                pieces.for_each(|piece| out.send(self.iface, piece));
            }
            Err(malformed) => out.discard(from, packet, malformed.into()),
        }
    }

    /// Sends an ICMP error to the sender of a packet, at most one per second.
    fn tell(&mut self, now: Instant, error: IcmpError, about: &Packet, out: &mut Outbox) {
        let Some(bytes) = error.about(&about.bytes, self.config.address.address) else { return };
        let Some((_, sender)) = ipv4::addresses(&bytes) else { return };
        if !self.config.address.is_broadcast(sender) && self.error_limit.may(now, sender) {
            out.send_routed(Packet::new(Mac::ZERO, bytes));
        }
    }

    fn is_own(&self, address: Ipv4Addr) -> bool {
        address == self.config.address.address || self.config.own.contains(&address)
    }

    // --- the link ----------------------------------------------------------------------------------------------------

    /// Records whether the link to the visited network is up. With `when = "link-down"`, sets the routes of all visitors.
    pub(super) fn link_changed(&mut self, is_up: bool, out: &mut Outbox) {
        let Some(keeper) = self.keeper.as_mut() else { return };
        let is_changed = std::mem::replace(&mut keeper.is_link_down, !is_up) == is_up;
        if keeper.when != KeepWhen::LinkDown || !is_changed {
            return;
        }
        for (visit, visitor) in &self.visitors {
            if let Some(opened) = self.opened.get(&visit.1) {
                let action = self.action_for(*visit, visitor.mac);
                let route = Route { action, lifetime: Lifetime::Until(visitor.ends) };
                out.route(RouteKey::to(opened.class, visit.0), route);
            }
        }
    }

    /// Sends packets that were held back to a visitor that has registered again, by the link: those that arrived while the link
    /// was down, or those that were being sent to another care-of address.
    pub(super) fn release(&mut self, visit: Visit, mac: Mac, out: &mut Outbox) {
        let Some(keeper) = self.keeper.as_mut() else { return };
        let was_draining = keeper.drains.remove(&visit).is_some();
        keeper.due.stop(visit);
        if !was_draining && keeper.when != KeepWhen::LinkDown {
            return;
        }
        for Kept { packet, iface, .. } in keeper.buffers.take(visit) {
            self.send_on_link(mac, iface, None, packet, out);
        }
    }

    // --- after the visit -------------------------------------------------------------------------------------------

    /// Drops the packets of a visit that has ended.
    pub(super) fn end_keeping(&mut self, visit: Visit, out: &mut Outbox) {
        let Some(keeper) = self.keeper.as_mut() else { return };
        keeper.drains.remove(&visit);
        keeper.due.stop(visit);
        keeper.asked.remove(&visit);
        keeper.buffers.take(visit).into_iter().for_each(|kept| discard(kept, KEPT_VISIT_ENDED, out));
    }

    /// Sends the packets of a visitor to the care-of address of an authenticated Binding Update: first the kept ones, except
    /// those in `named`, and then later ones. Sets the route of later packets.
    pub(super) fn flush(
        &mut self,
        now: Instant,
        visit: Visit,
        onward: Onward,
        named: &Named,
        out: &mut Outbox,
    ) {
        let Some(keeper) = self.keeper.as_mut() else { return set_onward(onward, out) };
        keeper.asked.remove(&visit);
        let (count, _) = keeper.buffers.size(visit);
        keeper.buffers.remove_if(visit, |packet| is_named(named, packet), &mut |old| {
            discard(old, KEPT_DUPLICATE, out);
        });
        let (left, _) = keeper.buffers.size(visit);
        if count > 0 {
            let event = MobileIpEvent::KeptSent {
                host: visit.0,
                care_of: onward.encap.dst,
                packets: left as u64,
                named: (count - left) as u64,
            };
            out.mark(event.into());
        }
        keeper.drains.insert(visit, onward);
        if left == 0 || keeper.drain == Drain::AtOnce {
            return self.drain_all(now, visit, None, out);
        }
        keeper.buffers.begin_drain(visit);
        out.route(onward.key, Route { action: Action::Punt, lifetime: onward.lifetime });
        self.drain_one(now, visit, out);
    }

    /// Sends the oldest packet of a visitor that has left, and sets when the next one is sent.
    fn drain_one(&mut self, now: Instant, visit: Visit, out: &mut Outbox) {
        let Some(keeper) = self.keeper.as_mut() else { return };
        let Some(onward) = keeper.drains.get(&visit).copied() else { return };
        let Some(kept) = keeper.buffers.pop(visit) else { return self.drain_all(now, visit, None, out) };
        let bits = kept.packet.bytes.len() as u64 * 8;
        let pause = Duration::from_nanos(bits.saturating_mul(1_000_000_000) / keeper.rate.max(1));
        keeper.sent += 1;
        let is_last = keeper.buffers.size(visit).0 == 0;
        keeper.due.set(visit, now + pause.max(Duration::from_nanos(1)));
        self.send_onward(now, onward.encap, kept.iface, kept.packet, out);
        if is_last {
            self.drain_all(now, visit, None, out);
        }
    }

    /// Sends all packets of a visitor that has left, then `last`, and sets the route of later packets.
    fn drain_all(&mut self, now: Instant, visit: Visit, last: Option<(Rx, Packet)>, out: &mut Outbox) {
        let Some(keeper) = self.keeper.as_mut() else { return };
        let Some(onward) = keeper.drains.remove(&visit) else { return };
        keeper.due.stop(visit);
        let kept = keeper.buffers.take(visit);
        keeper.sent += kept.len() as u64;
        let kept = kept.into_iter().map(|kept| (kept.iface, kept.packet));
        for (iface, packet) in kept.chain(last.map(|(rx, packet)| (rx.iface, packet))) {
            self.send_onward(now, onward.encap, iface, packet, out);
        }
        set_onward(onward, out);
    }

    /// Sends a packet into a tunnel to another care-of address as the table would: forwarding decrements the time to live.
    fn send_onward(
        &mut self,
        now: Instant,
        encap: Encap,
        iface: Iface,
        mut packet: Packet,
        out: &mut Outbox,
    ) {
        let rx = match Rx::parse(iface, PuntReason::Action, &packet) {
            Ok(rx) => rx,
            Err(malformed) => return out.discard(iface, packet, malformed.into()),
        };
        let is_own = |address| self.is_own(address);
        let rules = OneRoute { action: Action::Tunnel(encap), mtu: u16::MAX, is_own: &is_own };
        let verdict = rules.decide(now, &rx, &packet);
        if let Some(error) = verdict.icmp {
            self.tell(now, error, &packet, out);
        }
        if let Disposition::Drop(reason) = verdict.disposition {
            return out.discard(iface, packet, reason);
        }
        if !ipv4::decrement_ttl(&mut packet.bytes) {
            return out.discard(iface, packet, reason::TTL_EXPIRED);
        }
        let Some(keeper) = self.keeper.as_mut() else { return out.discard(iface, packet, KEPT_VISIT_ENDED) };
        match keeper.entry.enter(&packet, encap, verdict.cut) {
            Ok(copies) => copies.into_iter().for_each(|copy| out.send_routed(copy)),
            Err(reason) => out.discard(iface, packet, reason),
        }
    }

    /// Sends the packets that are due, and drops those that are too old.
    pub(super) fn keeper_timeout(&mut self, now: Instant, out: &mut Outbox) {
        let Some(keeper) = self.keeper.as_mut() else { return };
        keeper.buffers.expire(now, &mut |old, why| discard(old, why, out));
        while let Some(visit) = self.keeper.as_mut().and_then(|keeper| keeper.due.pop(now)) {
            self.drain_one(now, visit, out);
        }
    }
}

fn discard(kept: Kept, why: Reason, out: &mut Outbox) {
    out.discard(kept.iface, kept.packet, why);
}

/// Sets the route of later packets to a visitor that has left.
fn set_onward(Onward { key, encap, lifetime }: Onward, out: &mut Outbox) {
    out.route(key, Route { action: Action::Tunnel(encap), lifetime });
}

#[cfg(test)]
#[path = "keeping_tests.rs"]
mod tests;
