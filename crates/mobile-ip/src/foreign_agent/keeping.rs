//! The packets that a foreign agent keeps for its visitors: what is kept, and how it leaves. "Smooth handoff" in Johnson and
//! Bennington, Mobile IP over ACTS, keeps the last packet of each visitor. It is sent once, to the care-of address of an
//! authenticated Binding Update, before later packets. [`super::buffer`] has the limits.
//!
//! While packets of a visitor are to be kept, its route gives them to this role, which forwards them as the table would. A
//! packet is stored after its time to live was decremented, before the link. Only packets out of tunnels are kept. Never kept: registration
//! messages and ICMP errors of this host. A Binding Acknowledge of the agent at the tunnel's entry is kept only while the link is
//! down. If the visit ends otherwise, its packets are dropped.
//!
//! A data path beside the node may do the same for a visitor, and gives its copies to this role before anything else
//! ([`Aside`]). So the role has the last packets whenever they matter, and does not get each packet.

use super::buffer::{Buffers, KEPT_DUPLICATE, KEPT_NO_ROOM, KEPT_REPLACED, KEPT_TOO_OLD, Kept, Later};
use super::{ForeignAgent, NOT_A_VISITOR, Visit};
use crate::config::{Buffering, Drain, KeepWhen};
use crate::mark::HandoffEvent;
use crate::message::{Asks, BufferControl, PORT};
use crate::one_tunnel::OneRoute;
use node::{
    Action, Aside, Disposition, Expiry, Hop, Lifetime, Outbox, PuntReason, Route, RouteKey, Rx, Value, reason,
};
use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use wire::ipv4::{self, Header};
use wire::{
    Duration, Frame, IcmpError, Iface, Instant, Ipv4Addr, Mac, Packet, PacketId, Reason, fragment,
    ntp_distance, udp,
};

/// The reason to drop a kept packet: the visit has ended, and no authenticated update names another care-of address.
pub const KEPT_VISIT_ENDED: Reason = Reason("kept_visit_ended");
/// The reason to drop a kept packet: the mobile node has asked to keep none, or a data path beside the node has kept a Binding
/// Acknowledge.
pub const KEPT_UNWANTED: Reason = Reason("kept_unwanted");
/// All reasons to drop a kept packet. Such a drop is no loss, because the packet was forwarded. With `when = "link-down"`, it was not
/// forwarded, and the drop is a loss.
pub const KEPT_REASONS: [Reason; 6] =
    [KEPT_REPLACED, KEPT_TOO_OLD, KEPT_NO_ROOM, KEPT_DUPLICATE, KEPT_VISIT_ENDED, KEPT_UNWANTED];
/// The reason to drop a Buffer Control Request: this agent keeps no packets.
pub const NO_BUFFER: Reason = Reason("no_buffer");
/// The reason to drop a Buffer Control Request: it is not later than the last one of the visit, or older than the registration.
pub const STALE_CONTROL: Reason = Reason("stale_control");

/// The packets that one foreign agent keeps.
#[derive(Debug)]
pub(super) struct Keeper {
    when: KeepWhen,
    drain: Drain,
    /// In bit/s.
    rate: u64,
    buffers: Buffers,
    /// The visits for which a Buffer Control Request has asked to keep packets.
    asked: BTreeSet<Visit>,
    /// The Identification of the last Buffer Control Request of each visit.
    controls: BTreeMap<Visit, u64>,
    is_link_down: bool,
    /// The visits whose packets are being sent: to another care-of address, or by the link after it has come up. With the number of
    /// packets that are still sent at the rate: twice as many as were kept at the start. A sender that waits for acknowledgments would
    /// otherwise keep the drain going for ever. What waits after these is sent at once.
    drains: BTreeMap<Visit, usize>,
    /// When the next packet of each drain is sent.
    due: Expiry<Visit>,
    /// The number of packets that were sent by drains, to another care-of address or by the link.
    sent: u64,
}

impl Keeper {
    pub(super) fn new(config: &Buffering) -> Self {
        Self {
            when: config.when,
            drain: config.drain,
            rate: config.paced_rate(),
            buffers: Buffers::new(config.limits()),
            asked: BTreeSet::new(),
            controls: BTreeMap::new(),
            is_link_down: false,
            drains: BTreeMap::new(),
            due: Expiry::default(),
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

    /// Returns how many packets a data path beside the node must keep for a visit if it forwards them itself; `None` if this
    /// role must get each packet: none are kept, or they are held back.
    fn packets_aside(&self, visit: Visit) -> Option<u16> {
        let may = self.when != KeepWhen::LinkDown && self.wants(visit);
        may.then(|| u16::try_from(self.buffers.packets_each()).unwrap_or(u16::MAX))
    }

    /// Returns the maximum number of bytes that are kept. A data path beside the node may keep as many.
    pub(super) const fn room(&self) -> usize {
        self.buffers.room()
    }

    /// Returns when a packet is due, or may be too old; `None` if there is none.
    pub(super) fn next(&self) -> Option<Instant> {
        Instant::sooner(self.due.next(), self.buffers.next())
    }

    pub(super) fn holds(&self, each: &mut dyn FnMut(PacketId)) {
        self.buffers.holds(each);
    }

    /// Returns the number of kept packets.
    pub(super) fn packets(&self) -> usize {
        self.buffers.packets()
    }

    /// Holds the packets of a visit back again: they are not being sent any more.
    fn hold(&mut self, visit: Visit) {
        self.due.stop(visit);
        if self.drains.remove(&visit).is_some() {
            self.buffers.end_drain(visit);
        }
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
fn is_named(named: &[(Ipv4Addr, u16)], packet: &Packet) -> bool {
    Header::parse(&packet.bytes)
        .is_ok_and(|(header, _)| !header.dont_fragment && named.contains(&(header.src, header.id)))
}

impl ForeignAgent {
    /// Returns what the route of a visitor's packets does: it forwards them to the link address `mac`. If they are to be kept,
    /// it gives them to this role.
    pub(super) fn action_for(&self, visit: Visit, mac: Mac) -> Action {
        match &self.keeper {
            Some(keeper) if keeper.wants(visit) || keeper.drains.contains_key(&visit) => Action::Punt,
            _ => Action::Forward(Hop::mac(self.iface, mac)),
        }
    }

    /// Returns the route of the packets out of the tunnel of a visitor's home agent. If they are to be kept, a data path beside
    /// the node may forward them all the same, and keep them for this role.
    pub(super) fn route_for(&self, visit: Visit, mac: Mac, lifetime: Lifetime) -> Route {
        let packets = self.keeper.as_ref().and_then(|keeper| keeper.packets_aside(visit));
        let aside = packets.map(|packets| Aside { hop: Hop::mac(self.iface, mac), packets });
        Route { aside, ..Route::new(self.action_for(visit, mac), lifetime) }
    }

    /// Handles a Buffer Control Request of a mobile node (draft-mkhalil-mobileip-buffer-00, section 4.1). It must be authentic, and
    /// later than the last one, and not older than the registration. The packets that it names are dropped: the mobile node has received them. With `when =
    /// "request"`, the request also begins or ends the keeping of packets. Fails with the reason to drop the message.
    pub(super) fn control(&mut self, message: &BufferControl, out: &mut Outbox) -> Result<(), Reason> {
        let spi = message.authentication.as_ref().map(|found| found.spi);
        let numbers = self.config.numbers;
        let proof = self.prove(message.home, spi, |association| message.verify(association, &numbers))?;
        let (visit, known) = self.last_of(message.home, &proof).ok_or(NOT_A_VISITOR)?;
        let keeper = self.keeper.as_mut().ok_or(NO_BUFFER)?;
        let last = keeper.controls.get(&visit);
        // A message about received packets has the Identification of the Binding Update, which may arrive before it. An older
        // message may be of an earlier visit.
        if ntp_distance(message.identification, known) < 0
            || last.is_some_and(|last| ntp_distance(message.identification, *last) <= 0)
        {
            return Err(STALE_CONTROL);
        }
        keeper.controls.insert(visit, message.identification);
        keeper.buffers.remove_if(visit, |packet| is_named(&message.named, packet), &mut |old| {
            discard(old, KEPT_DUPLICATE, out);
        });
        if !self.visitors.contains_key(&visit) {
            return Ok(());
        }
        match message.asks {
            Asks::Keep => _ = keeper.asked.insert(visit),
            Asks::Forward => return Ok(()),
            // What is being sent to the visitor was not forwarded before.
            Asks::Stop if keeper.drains.contains_key(&visit) => _ = keeper.asked.remove(&visit),
            Asks::Stop => {
                keeper.asked.remove(&visit);
                keeper.buffers.take(visit).into_iter().for_each(|kept| discard(kept, KEPT_UNWANTED, out));
            }
        }
        if keeper.when == KeepWhen::Request {
            self.renew_route(visit, out);
        }
        Ok(())
    }

    /// Sets the route of a visitor's packets.
    fn set_route(&self, visit: Visit, mac: Mac, out: &mut Outbox) {
        if let Some(opened) = self.opened.get(&visit.1)
            && let Some(visitor) = self.visitors.get(&visit)
        {
            let route = self.route_for(visit, mac, Lifetime::Until(visitor.ends));
            out.route(RouteKey::to(opened.class, visit.0), route);
        }
    }

    /// Handles a packet that a route of this role gave to it: out of a tunnel of a visitor's home agent or of another agent, or
    /// of a visitor.
    pub(super) fn punted(&mut self, now: Instant, rx: Rx, packet: Packet, out: &mut Outbox) {
        let visit = rx.tunnel.map(|(entry, _)| (rx.header.dst, entry));
        if let Some((visit, mac)) = visit.and_then(|visit| Some((visit, self.visitors.get(&visit)?.mac))) {
            return self.deliver_in_order(now, visit, mac, (rx, packet), out);
        }
        match visit.filter(|visit| self.is_draining(*visit)) {
            Some(visit) => {
                let waits = self.wait_behind(now, visit, (rx, packet), out);
                if let Err(packet) = waits {
                    self.send_onward(now, visit, (rx.iface, packet), out);
                }
            }
            None if self.is_of_visitor(&rx) => self.route_opened(rx, packet, out),
            None => self.out_of_tunnel(now, rx, packet, out),
        }
    }

    /// Handles a packet that a data path beside the node has forwarded to a visitor at `at`, and kept. If the visitor has left
    /// meanwhile, the packet is sent to its new care-of address: its Binding Update was handled at the same time.
    pub(super) fn kept_aside(
        &mut self,
        now: Instant,
        at: Instant,
        (rx, packet): (Rx, Packet),
        out: &mut Outbox,
    ) {
        let entry = entry_of(&rx);
        let visit = (rx.header.dst, entry);
        if self.visitors.contains_key(&visit) {
            let is_message = self.is_message_of_agent(&rx, &packet);
            match self.keeper.as_mut().filter(|keeper| keeper.wants(visit) && !is_message) {
                Some(keeper) => {
                    let mut gone = |old, why| discard(old, why, out);
                    keeper.buffers.keep(at, visit, (rx.iface, entry, packet), &mut gone);
                    // It may have been kept for longer than `max_age` already.
                    keeper.buffers.expire(now, &mut gone);
                }
                None => drop_kept(rx.iface, packet, KEPT_UNWANTED, out),
            }
        } else if self.handoffs.departures.contains_key(&visit) {
            if let Err(packet) = self.wait_behind(now, visit, (rx, packet), out) {
                self.send_onward(now, visit, (rx.iface, packet), out);
            }
        } else {
            drop_kept(rx.iface, packet, KEPT_VISIT_ENDED, out);
        }
    }

    /// Forwards a packet to a mobile node on the link as the table would, and keeps it for its visit if it is to be kept. While
    /// the link is down, with `when = "link-down"`, the packet is kept and not sent.
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
        let verdict = OneRoute { action, mtu: self.mtu, is_own }.judge(now, &rx, &packet);
        if let Some(error) = verdict.icmp {
            self.tell(now, error, &packet, out);
        }
        if let Disposition::Drop(reason) = verdict.disposition {
            return self.refused.end(rx.iface, packet, Err(reason), out);
        }
        let is_message = self.is_message_of_agent(&rx, &packet);
        if !ipv4::decrement_ttl(&mut packet.bytes) {
            return self.refused.end(rx.iface, packet, Err(reason::TTL_EXPIRED), out);
        }
        if let Some(keeper) = self.keeper.as_mut().filter(|keeper| keeper.wants(visit))
            && !keeper.drains.contains_key(&visit)
            && (keeper.when == KeepWhen::LinkDown || !is_message)
        {
            let entry = entry_of(&rx);
            let mut gone = |old, why| discard(old, why, out);
            if keeper.when == KeepWhen::LinkDown {
                return keeper.buffers.keep(now, visit, (rx.iface, entry, packet), &mut gone);
            }
            keeper.buffers.keep(now, visit, (rx.iface, entry, packet.clone()), &mut gone);
        }
        self.send_on_link(mac, rx.iface, verdict.cut, packet, out);
    }

    /// Delivers a packet to a visitor, behind those that are being sent to it. A Binding Acknowledge does not wait: its order relative
    /// to data does not matter.
    pub(super) fn deliver_in_order(
        &mut self,
        now: Instant,
        visit: Visit,
        mac: Mac,
        (rx, packet): (Rx, Packet),
        out: &mut Outbox,
    ) {
        let waits = self.visitors.contains_key(&visit) && !self.is_message_of_agent(&rx, &packet);
        let packet = if waits { self.wait_behind(now, visit, (rx, packet), out).err() } else { Some(packet) };
        if let Some(packet) = packet {
            self.deliver(now, visit, mac, (rx, packet), out);
        }
    }

    /// Returns whether a packet is the Binding Acknowledge of the agent at which its tunnel begins: that of a previous agent. If it is
    /// lost, the mobile node repeats its Binding Update. So it must not replace data. False if this agent keeps no packets.
    fn is_message_of_agent(&self, rx: &Rx, packet: &Packet) -> bool {
        let Header { src, dst, protocol, .. } = rx.header;
        let is_whole_datagram = protocol == ipv4::UDP && !rx.header.is_fragment();
        let is_acknowledge = |datagram: udp::Datagram<'_>| {
            let kind = datagram.payload.first();
            [datagram.src_port, datagram.dst_port] == [PORT; 2]
                && kind == Some(&self.config.numbers.acknowledge)
        };
        self.keeper.is_some()
            && is_whole_datagram
            && src == entry_of(rx)
            && udp::Datagram::parse(rx.payload(packet), src, dst).is_ok_and(is_acknowledge)
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
    pub(super) fn tell(&mut self, now: Instant, error: IcmpError, about: &Packet, out: &mut Outbox) {
        let Some(bytes) = error.about(&about.bytes, self.config.address.address) else { return };
        let Some((_, sender)) = ipv4::addresses(&bytes) else { return };
        if !self.config.address.is_broadcast(sender) && self.error_limit.may(now, sender) {
            out.send_routed(Packet::new(Mac::ZERO, bytes));
        }
    }

    // --- the link ----------------------------------------------------------------------------------------------------

    /// Records whether the link to the visited network is up. With `when = "link-down"`, sets the routes of all visitors.
    pub(super) fn link_changed(&mut self, is_up: bool, out: &mut Outbox) {
        let Some(keeper) = self.keeper.as_mut() else { return };
        let is_changed = std::mem::replace(&mut keeper.is_link_down, !is_up) == is_up;
        if keeper.when != KeepWhen::LinkDown || !is_changed {
            return;
        }
        if !is_up {
            for visit in self.visitors.keys() {
                keeper.hold(*visit);
            }
        }
        let visits: Vec<_> = self.visitors.keys().copied().collect();
        for visit in visits {
            self.renew_route(visit, out);
        }
    }

    /// Sends packets that were held back to a visitor that has registered again, by the link: those that arrived while the link
    /// was down, or those that were being sent to another care-of address. Those of a link that was down may be paced, because
    /// they may be more than the queue of the link has room for. If the link is down again, they stay here.
    pub(super) fn release(&mut self, now: Instant, visit: Visit, out: &mut Outbox) {
        let Some(keeper) = self.keeper.as_mut() else { return };
        let holds_back = keeper.when == KeepWhen::LinkDown;
        if holds_back && keeper.is_link_down {
            return keeper.hold(visit);
        }
        if holds_back && keeper.drain == Drain::Paced && keeper.buffers.size(visit).0 > 1 {
            return self.pace(now, visit, out);
        }
        if holds_back || keeper.drains.contains_key(&visit) {
            self.drain_all(now, visit, out);
        }
    }

    // --- after the visit -------------------------------------------------------------------------------------------

    /// Drops the packets of a visit that has ended.
    pub(super) fn end_keeping(&mut self, visit: Visit, out: &mut Outbox) {
        let Some(keeper) = self.keeper.as_mut() else { return };
        keeper.drains.remove(&visit);
        keeper.due.stop(visit);
        keeper.asked.remove(&visit);
        keeper.controls.remove(&visit);
        keeper.buffers.take(visit).into_iter().for_each(|kept| discard(kept, KEPT_VISIT_ENDED, out));
    }

    /// Drops the packets of a mobile node whose request was not accepted.
    pub(super) fn end_keeping_of_unaccepted(&mut self, host: Ipv4Addr, out: &mut Outbox) {
        let Some(keeper) = &self.keeper else { return };
        let is_known =
            |visit: &Visit| self.visitors.contains_key(visit) || self.handoffs.departures.contains_key(visit);
        let unaccepted: Vec<Visit> = keeper.buffers.of(host).filter(|visit| !is_known(visit)).collect();
        for visit in unaccepted {
            self.end_keeping(visit, out);
        }
    }

    /// Returns whether kept packets of a visitor that has left are being sent. Later packets wait behind them.
    pub(super) fn is_draining(&self, visit: Visit) -> bool {
        self.keeper.as_ref().is_some_and(|keeper| keeper.drains.contains_key(&visit))
    }

    /// Sends the packets of a visitor that has left to its new care-of address: first the kept ones, and then later ones. The
    /// visitor is one of the departures, and its route is set. Its Binding Update was authenticated.
    pub(super) fn flush(&mut self, now: Instant, visit: Visit, out: &mut Outbox) {
        let Some(departure) = self.handoffs.departures.get(&visit).cloned() else { return };
        let Some(keeper) = self.keeper.as_mut() else { return };
        keeper.asked.remove(&visit);
        let (packets, _) = keeper.buffers.size(visit);
        if packets == 0 {
            return;
        }
        let (host, care_of) = (visit.0, departure.care_of);
        out.mark(HandoffEvent::KeptSent { host, care_of, packets: packets as u64 }.into());
        if keeper.drain == Drain::AtOnce || packets == 1 {
            return self.drain_all(now, visit, out);
        }
        self.pace(now, visit, out);
    }

    /// Begins to send the packets of a visit at the rate. Later ones wait behind them. Does nothing if they are being sent.
    fn pace(&mut self, now: Instant, visit: Visit, out: &mut Outbox) {
        let Some(keeper) = self.keeper.as_mut() else { return };
        if let Entry::Vacant(drain) = keeper.drains.entry(visit) {
            drain.insert(2 * keeper.buffers.size(visit).0);
            keeper.buffers.begin_drain(visit);
            self.renew_route(visit, out);
            self.drain_one(now, visit, out);
        }
    }

    /// Sets the route of a visit to what is known now.
    fn renew_route(&mut self, visit: Visit, out: &mut Outbox) {
        if let Some(mac) = self.visitors.get(&visit).map(|visitor| visitor.mac) {
            self.set_route(visit, mac, out);
            if self.config.direct_tunnels {
                self.watch_tunnels(visit.0, out);
            }
        } else if let Some(departure) = self.handoffs.departures.get(&visit).cloned() {
            self.set_departure(visit, &departure, out);
        }
    }

    /// Puts a packet behind those of a visit that are being sent. If these leave no room, all of them are sent at once. Fails with the
    /// packet if none is in front of it, so that it can be sent. A packet of a data path beside the node was forwarded before.
    pub(super) fn wait_behind(
        &mut self,
        now: Instant,
        visit: Visit,
        (rx, packet): (Rx, Packet),
        out: &mut Outbox,
    ) -> Result<(), Packet> {
        let Some(keeper) = self.keeper.as_mut().filter(|keeper| keeper.drains.contains_key(&visit)) else {
            return Err(packet);
        };
        let is_decremented = matches!(rx.why, PuntReason::Kept(_));
        let later = Later { packet, iface: rx.iface, entry: entry_of(&rx), is_decremented };
        let waits = keeper.buffers.wait(now, visit, later);
        waits.inspect_err(|_| self.drain_all(now, visit, out))
    }

    /// Sends the oldest packet of a drain, and sets when the next one is sent.
    fn drain_one(&mut self, now: Instant, visit: Visit, out: &mut Outbox) {
        let Some(keeper) = self.keeper.as_mut() else { return };
        let (oldest, mut is_last) = (keeper.buffers.pop(visit), false);
        if let Some(kept) = oldest {
            let bits = kept.packet.bytes.len() as u64 * 8;
            let pause = Duration::from_nanos(bits.saturating_mul(1_000_000_000) / keeper.rate.max(1));
            keeper.due.set(visit, now + pause.max(Duration::from_nanos(1)));
            keeper.sent += 1;
            let left = keeper.drains.get_mut(&visit).map_or(0, |left| {
                *left = left.saturating_sub(1);
                *left
            });
            is_last = left == 0;
            self.send_kept(now, visit, kept, out);
        }
        if is_last || self.keeper.as_ref().is_some_and(|keeper| keeper.buffers.size(visit).0 == 0) {
            self.drain_all(now, visit, out);
        }
    }

    /// Sends all packets of a visit. Later ones do not wait any more.
    pub(super) fn drain_all(&mut self, now: Instant, visit: Visit, out: &mut Outbox) {
        let Some(keeper) = self.keeper.as_mut() else { return };
        keeper.due.stop(visit);
        let had_waiting = keeper.drains.remove(&visit).is_some();
        let kept = keeper.buffers.take(visit);
        keeper.sent += kept.len() as u64;
        for kept in kept {
            self.send_kept(now, visit, kept, out);
        }
        if had_waiting {
            self.renew_route(visit, out);
        }
    }

    /// Sends a kept packet by the link to its visitor, or to the care-of address of a visitor that has left. A packet that has
    /// waited behind others is forwarded only now: its time to live is decremented.
    fn send_kept(&mut self, now: Instant, visit: Visit, kept: Kept, out: &mut Outbox) {
        let Kept { packet, iface, entry, is_decremented, .. } = kept;
        let Some(mac) = self.visitors.get(&visit).map(|visitor| visitor.mac) else {
            return self.send_onward(now, visit, (iface, packet), out);
        };
        if is_decremented {
            let cut = (packet.bytes.len() > usize::from(self.mtu)).then_some(self.mtu);
            return self.send_on_link(mac, iface, cut, packet, out);
        }
        match Rx::parse(iface, PuntReason::Action, &packet) {
            Ok(rx) => {
                let tunnel = Some((entry, self.config.address.address));
                self.deliver(now, visit, mac, (Rx { tunnel, ..rx }, packet), out);
            }
            Err(malformed) => out.discard(iface, packet, malformed.into()),
        }
    }

    /// Sends a packet into the tunnel to the new care-of address of a visitor that has left.
    fn send_onward(
        &mut self,
        now: Instant,
        visit: Visit,
        (iface, packet): (Iface, Packet),
        out: &mut Outbox,
    ) {
        let rx = Rx::parse(iface, PuntReason::Action, &packet);
        let encap = self.handoffs.departures.get(&visit).map(|departure| self.encap_to(departure));
        match (rx, encap) {
            (Ok(rx), Some(encap)) => self.enter_tunnel(now, &rx, packet, encap, out),
            (Err(malformed), _) => out.discard(iface, packet, malformed.into()),
            (_, None) => drop_kept(iface, packet, KEPT_VISIT_ENDED, out),
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

/// Returns the source of the tunnel out of which a packet came.
pub(super) fn entry_of(rx: &Rx) -> Ipv4Addr {
    rx.tunnel.map_or(Ipv4Addr::UNSPECIFIED, |(entry, _)| entry)
}

fn discard(kept: Kept, why: Reason, out: &mut Outbox) {
    drop_kept(kept.iface, kept.packet, why, out);
}

/// Drops a packet that arrived on `iface` and was kept.
fn drop_kept(iface: Iface, packet: Packet, why: Reason, out: &mut Outbox) {
    debug_assert!(KEPT_REASONS.contains(&why), "{} is not in KEPT_REASONS", why.0);
    out.discard(iface, packet, why);
}

#[cfg(test)]
#[path = "keeping_tests.rs"]
mod tests;
