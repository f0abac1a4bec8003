//! Smooth handoffs at the previous foreign agent (draft-ietf-mobileip-optim-09, sections 9.1 and 9.3): after a Binding
//! Update of a mobile node that has left, packets that still arrive for it are forwarded to its new care-of address.
//!
//! A Binding Update must be authentic, and later than all that the mobile node has sent here before. It comes from the new
//! foreign agent, and again from the mobile node itself until the acknowledgement has arrived. So repetitions are
//! acknowledged again, and change nothing.
//!
//! No packet circles: packets out of a tunnel of an agent are never forwarded to that agent, a forwarded packet that
//! comes back is dropped, and each tunnel costs one hop.

use super::history::{Gone, History};
use super::keeping::entry_of;
use super::keys::{AFTER_DELETION, Proof};
use super::{
    ForeignAgent, NOT_A_VISITOR, NOT_ADMITTED, Sources, Visit, has_named, has_own_address, merged, of_host,
};
use crate::encapsulation;
use crate::mark::HandoffEvent;
use crate::message::{Acknowledge, Binding, BufferControl, RequestFlags, Status, Update, Warning};
use crate::one_tunnel::{self, OneRoute};
use crate::pending::Pending;
use crate::refusal;
use node::{Action, Encap, Lifetime, Outbox, Route, RouteKey, Rx, reason};
use wire::ipv4::{self};
use wire::{Duration, Instant, Ipv4Addr, Mac, Packet, Reason, ntp_distance, udp};

/// The reason to drop a Binding Update: it is not later than the last message of the mobile node.
pub(super) const STALE_UPDATE: Reason = Reason("stale_update");
/// The reason to drop a packet from a tunnel: it would be forwarded to the source of the tunnel, or it was forwarded before.
pub(super) const FORWARDING_LOOP: Reason = Reason("forwarding_loop");

/// A mobile node that has left: where its packets are forwarded to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Departure {
    /// The new care-of address.
    pub(super) care_of: Ipv4Addr,
    /// The Identification of the Binding Update.
    pub(super) identification: u64,
    pub(super) ends: Instant,
    /// The flags M and G of the Binding Update, which select the kind of tunnel.
    pub(super) flags: RequestFlags,
    /// The flags of the registration that has ended: the home agent still uses its kind of tunnel.
    pub(super) was: RequestFlags,
    /// The requests of the visit that has ended.
    pub(super) history: History,
    /// When the registration that has ended would have ended here by itself; `None` if none was accepted.
    registered_until: Option<Instant>,
    /// The earlier agents whose tunnels may bring packets for it.
    pub(super) sources: Sources,
    pub(super) since: Instant,
}

impl ForeignAgent {
    /// Handles a UDP datagram if it is a message of route optimization to this agent. `None`: it is another message.
    pub(super) fn binding_message(
        &mut self,
        now: Instant,
        rx: &Rx,
        packet: &Packet,
        out: &mut Outbox,
    ) -> Option<Result<(), Reason>> {
        if !self.config.smooth_handoff || rx.header.dst != self.config.address.address {
            return None;
        }
        let datagram = udp::Datagram::parse(rx.payload(packet), rx.header.src, rx.header.dst).ok()?;
        if let Some(control) = BufferControl::parse(datagram.payload, &self.config.numbers) {
            return Some(control.map_err(Reason::from).and_then(|control| self.control(&control, out)));
        }
        Some(match Binding::parse(datagram.payload, &self.config.numbers)? {
            Ok(Binding::Update(update)) => self.update(now, &update, out),
            Ok(_) => Err(refusal::UNEXPECTED),
            Err(malformed) => Err(malformed.into()),
        })
    }

    /// Handles a Binding Update of a mobile node. Fails with the reason to drop it.
    fn update(&mut self, now: Instant, update: &Update, out: &mut Outbox) -> Result<(), Reason> {
        let host = update.home;
        let spi = update.authentication.as_ref().map(|found| found.spi);
        let numbers = self.config.numbers;
        let verifies = |association: &_| update.verify(numbers.smooth_authentication, association, &numbers);
        let proof = self.prove(host, spi, verifies)?;
        let identification = update.identification.ok_or(refusal::NO_IDENTIFICATION)?;
        if self.has_ended_by(now, (host, &proof), identification) {
            self.acknowledge(now, (update, &proof), Status::ACCEPTED, None, out);
            return Ok(());
        }
        let found = self.last_of(host, &proof).or_else(|| self.last_request_of(now, host, &proof));
        let Some((visit, last)) = found else {
            self.acknowledge(now, (update, &proof), Status::UNSPECIFIED, None, out);
            return Err(NOT_A_VISITOR);
        };
        let departure = self.handoffs.departures.get(&visit);
        if let Some(known) = departure.filter(|known| known.identification == identification) {
            let tunnel = (!update.deletes()).then(|| self.encap_to(known));
            self.acknowledge(now, (update, &proof), Status::ACCEPTED, tunnel, out);
            return Ok(());
        }
        if ntp_distance(identification, last) <= 0
            || self.handoffs.remembered.was_accepted(host, identification)
        {
            self.acknowledge(now, (update, &proof), Status::IDENTIFICATION, None, out);
            return Err(STALE_UPDATE);
        }
        if !update.deletes() && !self.is_elsewhere(visit, update.care_of) {
            self.acknowledge(now, (update, &proof), Status::MALFORMED, None, out);
            return Err(refusal::IMPLAUSIBLE_CARE_OF);
        }
        self.accept(now, visit, (update, &proof), identification, out);
        Ok(())
    }

    /// Returns whether a Binding Update with this Identification has ended a visit, and nothing is forwarded. A later request of the
    /// mobile node makes it an old one.
    fn has_ended_by(&self, now: Instant, (host, proof): (Ipv4Addr, &Proof), identification: u64) -> bool {
        let mut gone = self.handoffs.gone.of_host(now, host).filter(|(visit, _)| proof.is_for(*visit));
        gone.any(|(visit, gone)| gone.identification == identification && !self.visitors.contains_key(&visit))
    }

    /// Returns the visit of a mobile node here, or the one that has ended by a handoff, with the Identification of its last
    /// message. The latest one for which the association is valid, if it has several home agents. `None` if it did not visit
    /// this agent.
    pub(super) fn last_of(&self, host: Ipv4Addr, proof: &Proof) -> Option<(Visit, u64)> {
        let visits = of_host(&self.visitors, host).map(|(visit, visitor)| (visit, visitor.identification));
        let left = of_host(&self.handoffs.departures, host);
        let left = left.map(|(visit, departure)| (visit, departure.identification));
        let own = visits.chain(left).filter(|(visit, _)| proof.is_for(*visit));
        let last = own.reduce(|a, b| if ntp_distance(b.1, a.1) > 0 { b } else { a })?;
        // The mobile node is back: its request is later than an update that it sent before.
        let back = self.handoffs.claims.get(&host).and_then(|claim| claim.proves(last.0));
        let back = back.filter(|it| ntp_distance(*it, last.1) > 0);
        Some((last.0, back.unwrap_or(last.1)))
    }

    /// Returns the visit that an authenticated request of a mobile node asks for, with its Identification: that of the latest one,
    /// if several wait for the home agent's reply. The home agent may have accepted it already. `None` if none waits.
    fn last_request_of(&self, now: Instant, host: Ipv4Addr, proof: &Proof) -> Option<(Visit, u64)> {
        let waiting = self.waiting.of_host(host).map(|(_, pending)| pending);
        let has_left = |pending: &Pending| self.handoffs.remembered.has_left(now, &pending.request);
        let all = waiting
            .filter(|pending| pending.request.lifetime != 0 && self.is_proven(pending) && !has_left(pending));
        let all = all.map(|Pending { request, .. }| ((host, request.home_agent), request.identification));
        all.filter(|(visit, _)| proof.is_for(*visit))
            .filter(|(visit, identification)| self.is_after_departure(now, *visit, *identification))
            .reduce(|a, b| if ntp_distance(b.1, a.1) > 0 { b } else { a })
    }

    /// Drops the requests of a mobile node that wait and are older than its Binding Update: it has left, so a reply must not begin
    /// a visit, also if they are for other home agents. Returns those of the visit that ends.
    fn forget_requests(
        &mut self,
        now: Instant,
        visit: Visit,
        proof: &Proof,
        identification: u64,
    ) -> Vec<Pending> {
        let host = visit.0;
        let is_own = |home_agent| proof.is_for((host, home_agent));
        let own = self.waiting.of_host(host).filter(|(_, other)| is_own(other.request.home_agent));
        let old = own.filter(|(_, other)| ntp_distance(identification, other.request.identification) > 0);
        let old: Vec<_> = old.map(|(asked, _)| asked).collect();
        let old: Vec<_> = old.into_iter().filter_map(|asked| self.waiting.remove(asked)).collect();
        let proven: Vec<_> = old.iter().filter(|asked| self.is_proven(asked)).collect();
        self.handoffs.remembered.leave(now, (host, identification), is_own, &proven);
        old.into_iter().filter(|asked| asked.request.home_agent == visit.1).collect()
    }

    /// Returns whether a care-of address can be that of another agent.
    fn is_elsewhere(&self, (host, home_agent): Visit, care_of: Ipv4Addr) -> bool {
        ipv4::is_host(care_of)
            && !self.config.address.is_broadcast(care_of)
            && !self.is_own(care_of)
            && ![host, home_agent].contains(&care_of)
    }

    /// Ends a visit because of a Binding Update, and forwards packets from now on, unless the update only deletes.
    fn accept(
        &mut self,
        now: Instant,
        visit: Visit,
        (update, proof): (&Update, &Proof),
        identification: u64,
        out: &mut Outbox,
    ) {
        let host = visit.0;
        self.handoffs.remembered.note_update(now, visit, identification);
        let before = self.handoffs.departures.remove(&visit);
        let arrival = self.handoffs.arrivals.remove(&visit).map(|arrival| arrival.sources);
        let claimed = self.end_claim(visit);
        let older = self.end_older_claim((host, proof), identification, out);
        let named = [older, claimed, arrival].into_iter().flatten();
        let named = named.reduce(|a, b| merged(now, a.into_iter().chain(b)));
        let sources = named.or_else(|| before.as_ref().map(|before| before.sources.clone()));
        let flags = RequestFlags::default()
            .with(RequestFlags::MINIMAL, update.minimal)
            .with(RequestFlags::GRE, update.gre);
        let lifetime = update.lifetime.min(self.longest());
        let visitor = self.visitors.get(&visit);
        let was = visitor.map(|visitor| visitor.flags).or_else(|| before.as_ref().map(|before| before.was));
        let until = visitor.map(|visitor| visitor.ends);
        let old = self.forget_requests(now, visit, proof, identification);
        let asked = old.last().map(|asked| asked.request.flags);
        let history = self.history_of(now, visit, (before.as_ref(), &old));
        let departure = Departure {
            was: was.or(asked).unwrap_or_default(),
            history,
            registered_until: until.or_else(|| before.as_ref()?.registered_until),
            care_of: update.care_of,
            identification,
            ends: now + Duration::from_secs(lifetime.into()),
            flags,
            sources: sources.unwrap_or_default(),
            since: now,
        };
        if before.as_ref().is_none_or(|before| before.care_of != update.care_of) {
            self.handoffs.warned.retain(|(warned, _)| *warned != host);
        }
        let is_forwarded = !update.deletes();
        let to = is_forwarded.then_some(update.care_of);
        self.tunnels.rebind(before.map(|before| before.care_of), to);
        if is_forwarded {
            self.keep_path_to(update.care_of, out);
            self.make_room(now, out);
            self.handoffs.gone.remove(visit);
            self.handoffs.departures.insert(visit, departure.clone());
        }
        let visitor = self.end_visit(visit, out);
        let until = Self::key_after(now, departure.ends, update.deletes());
        self.keys.leave(visit, proof.association.spi, until);
        let tunnel = is_forwarded.then(|| self.encap_to(&departure));
        if is_forwarded {
            self.set_departure(visit, &departure, out);
        } else {
            let gone = Gone { identification, until, history: departure.history.clone() };
            self.handoffs.gone.insert(now, visit, gone);
            if visitor.is_none() {
                self.drop_departed(visit, out);
            }
        }
        self.watch_tunnels(host, out);
        self.departed(now, visit, (update, proof), tunnel, out);
    }

    /// Returns the requests of a visit that ends, with those of `old`, which have waited for their replies. Those that still wait are
    /// later than the Binding Update: the mobile node is back, and their replies begin a visit.
    fn history_of(
        &self,
        now: Instant,
        visit: Visit,
        (before, old): (Option<&Departure>, &[Pending]),
    ) -> History {
        let present = self.visitors.get(&visit).map(|visitor| &visitor.history);
        let known = present.or(before.map(|before| &before.history)).or_else(|| self.past(now, visit));
        let mut history = known.cloned().unwrap_or_default();
        let own = self.waiting.of_host(visit.0).filter(|(_, other)| other.request.home_agent == visit.1);
        for (_, other) in own {
            history.forget(other.request.identification);
        }
        for asked in old {
            history.sees(asked.request.identification);
        }
        history
    }

    /// Ends the oldest forwarding if there are as many as there may be visits.
    fn make_room(&mut self, now: Instant, out: &mut Outbox) {
        let all = &self.handoffs.departures;
        if all.len() < self.config.visitors {
            return;
        }
        let oldest = all.iter().min_by_key(|(_, departure)| departure.since).map(|(visit, _)| *visit);
        if let Some(oldest) = oldest {
            self.end_departure(now, oldest, out);
        }
    }

    /// The previous agent has accepted a Binding Update: the mobile node has left. `tunnel` leads to the new care-of address, and
    /// is in use from now on; `None` if no packets are forwarded. The new care-of address is authenticated.
    fn departed(
        &mut self,
        now: Instant,
        visit: Visit,
        (update, proof): (&Update, &Proof),
        tunnel: Option<Encap>,
        out: &mut Outbox,
    ) {
        if tunnel.is_some() {
            out.mark(HandoffEvent::CareOfLearnt { host: visit.0, care_of: update.care_of }.into());
            out.mark(HandoffEvent::ForwardingBegun { host: visit.0 }.into());
        } else {
            out.mark(HandoffEvent::VisitorDeparted { host: visit.0 }.into());
        }
        self.acknowledge(now, (update, proof), Status::ACCEPTED, tunnel, out);
        if tunnel.is_some() {
            self.flush(now, visit, out);
        } else {
            self.end_keeping(visit, out);
        }
    }

    /// Sets the route by which packets of the home agent are forwarded to the new care-of address.
    pub(super) fn set_departure(&mut self, visit: Visit, departure: &Departure, out: &mut Outbox) {
        let (host, home_agent) = visit;
        let kinds = self.kinds_of(home_agent);
        let Some(class) = self.open_for(home_agent, kinds, out) else { return };
        // While kept packets are being sent, later ones wait behind them.
        let is_draining = self.is_draining(visit);
        let action = if is_draining { Action::Punt } else { Action::Tunnel(self.encap_to(departure)) };
        out.route(RouteKey::to(class, host), Route::new(action, Lifetime::Until(departure.ends)));
    }

    /// Returns the tunnel to a new care-of address, with what is known now about its path.
    pub(super) fn encap_to(&self, departure: &Departure) -> Encap {
        let kind = encapsulation::kind(departure.flags);
        self.tunnels.encap(self.config.address.address, departure.care_of, kind, self.config.tunnel_mtu)
    }

    /// Sets the tunnels to a new care-of address to what is known now about the path.
    pub(super) fn adjust_departures(&mut self, care_of: Ipv4Addr, out: &mut Outbox) {
        let all = self.handoffs.departures.iter().filter(|(_, departure)| departure.care_of == care_of);
        let all: Vec<_> = all.map(|(visit, departure)| (*visit, departure.clone())).collect();
        for (visit, departure) in all {
            self.set_departure(visit, &departure, out);
        }
    }

    /// Restores the visit of a mobile node that had left by a smooth handoff, and is back before another registration was
    /// accepted: its request is authentic, and later than its Binding Update, which the caller has checked. The home agent may still send
    /// its packets here, and other agents send them back to this one. Without a new reply, the visit ends when the registration of before would have
    /// ended, but not while the request waits.
    pub(super) fn readmit(&mut self, now: Instant, pending: &Pending, out: &mut Outbox) {
        let request = &pending.request;
        let visit = (request.home, request.home_agent);
        let Some(departure) = self.handoffs.departures.get(&visit) else { return };
        let left_by = departure.identification;
        if request.lifetime == 0 || has_own_address(request) {
            return;
        }
        let waits = now + self.patience(request);
        let ends = departure.registered_until.map_or(waits, |until| until.max(waits));
        let lifetime = u16::try_from(ends.since(now).as_secs()).unwrap_or(u16::MAX).max(1);
        // Without a place for the visit, the home agent's reply decides.
        if self.admit(now, pending, lifetime, out).is_err() {
            return self.refused.count(NOT_ADMITTED);
        }
        if let Some(visitor) = self.visitors.get_mut(&visit) {
            visitor.left_by = Some(left_by);
        }
    }

    /// Ends the forwarding for a mobile node. Packets that wait to be sent to the care-of address leave at once. Does nothing if
    /// there is none.
    pub(super) fn end_departure(&mut self, now: Instant, visit: Visit, out: &mut Outbox) {
        let host = visit.0;
        if self.is_draining(visit) {
            self.drain_all(now, visit, out);
        }
        let Some(departure) = self.handoffs.departures.remove(&visit) else { return };
        self.tunnels.rebind(Some(departure.care_of), None);
        let until = now + AFTER_DELETION;
        let Departure { identification, history, .. } = departure;
        self.handoffs.gone.insert(now, visit, Gone { identification, until, history });
        if !self.visitors.contains_key(&visit) {
            self.end_keeping(visit, out);
            self.keys.end(visit);
            self.drop_departed(visit, out);
        }
        self.watch_tunnels(host, out);
        out.mark(HandoffEvent::ForwardingEnded { host }.into());
    }

    /// Removes the route for packets to a mobile node that is neither here nor forwarded to.
    fn drop_departed(&mut self, (host, home_agent): Visit, out: &mut Outbox) {
        if let Some(opened) = self.opened.get(&home_agent) {
            out.route(RouteKey::to(opened.class, host), None);
        }
        self.close_unused(home_agent, out);
    }

    /// Ends the forwarding for a mobile node if it began before its message with this Identification. A configured association is
    /// the same for all home agents: then it ends for each of them.
    pub(super) fn end_older_departures(
        &mut self,
        now: Instant,
        visit: Visit,
        identification: u64,
        out: &mut Outbox,
    ) {
        let is_configured = self.mobile_nodes.first(visit.0).is_some();
        let left = of_host(&self.handoffs.departures, visit.0);
        let older = left.filter(|(other, known)| {
            (is_configured || *other == visit) && ntp_distance(identification, known.identification) > 0
        });
        for other in older.map(|(other, _)| other).collect::<Vec<_>>() {
            self.end_departure(now, other, out);
        }
    }

    /// Forwards a packet out of a tunnel of an earlier agent, or of another host, to the new care-of address of a mobile node
    /// that has left. `entry` is the source of the tunnel.
    pub(super) fn forward_departed(
        &mut self,
        now: Instant,
        (host, home_agent): Visit,
        (rx, entry, packet): (Rx, Ipv4Addr, Packet),
        out: &mut Outbox,
    ) {
        let found = self.handoffs.departures.get(&(host, home_agent)).cloned();
        let is_agent = found.as_ref().is_some_and(|departure| has_named(&departure.sources, now, entry));
        let judged = found.ok_or(NOT_A_VISITOR).and_then(|departure| {
            if departure.care_of == entry || self.has_come_back(now, &rx, &packet, is_agent) {
                return Err(FORWARDING_LOOP);
            }
            Ok(self.encap_to(&departure))
        });
        match judged {
            Ok(encap) => {
                self.handoffs.forwarded += 1;
                // An earlier agent has no binding cache.
                if !is_agent {
                    self.warn(now, host, home_agent, entry, out);
                }
                match self.wait_behind(now, (host, home_agent), (rx, packet), out) {
                    Ok(()) => {}
                    Err(packet) => self.enter_tunnel(now, &rx, packet, encap, out),
                }
            }
            Err(reason) => self.refused.end(rx.iface, packet, Err(reason), out),
        }
    }

    /// Returns whether this packet was forwarded before, with a larger time to live, and notes the packet. Any host can send an
    /// equal packet. So if the tunnel is not of an earlier agent, only packets out of the same tunnel are compared.
    pub(super) fn has_come_back(&mut self, now: Instant, rx: &Rx, packet: &Packet, is_agent: bool) -> bool {
        let handoffs = &mut self.handoffs;
        let (passed, entry) = if is_agent {
            (&mut handoffs.passed, Ipv4Addr::UNSPECIFIED)
        } else {
            (&mut handoffs.passed_of_others, entry_of(rx))
        };
        passed.has_come_back(now, entry, &packet.bytes, rx.header.ttl)
    }

    /// Puts a packet that this role holds into a tunnel. The time to live is decremented. A packet with DF that does not fit
    /// is dropped, and its sender is notified.
    pub(super) fn enter_tunnel(
        &mut self,
        now: Instant,
        rx: &Rx,
        mut packet: Packet,
        encap: Encap,
        out: &mut Outbox,
    ) {
        let verdict = OneRoute::tunnel(encap, |address| self.is_own(address)).judge(now, rx, &packet);
        if let Some(error) = verdict.icmp {
            self.tell(now, error, &packet, out);
        }
        if verdict.ttl && !ipv4::decrement_ttl(&mut packet.bytes) {
            return self.refused.end(rx.iface, packet, Err(reason::TTL_EXPIRED), out);
        }
        match one_tunnel::enclosed(&packet, &verdict, &mut self.handoffs.outer_id) {
            Ok(copies) => copies.into_iter().for_each(|copy| out.send_routed(copy)),
            Err(reason) => self.refused.end(rx.iface, packet, Err(reason), out),
        }
    }

    /// Warns the home agent that a host sends packets for a mobile node to this agent, which it has left. The pauses double while
    /// that host does not stop. The home agent itself needs no warning: the mobile node registers with it.
    fn warn(
        &mut self,
        now: Instant,
        host: Ipv4Addr,
        home_agent: Ipv4Addr,
        entry: Ipv4Addr,
        out: &mut Outbox,
    ) {
        if entry == home_agent || !self.handoffs.warned.may(now, (host, entry)) {
            return;
        }
        let warning = Binding::Warning(Warning { home: host, targets: vec![entry] });
        let bytes = warning.datagram(self.config.address.address, home_agent, &self.config.numbers);
        out.send_routed(Packet::new(Mac::ZERO, bytes));
    }

    /// Answers an authentic Binding Update, at most once a second for each update. The answer goes to the home address, through
    /// the tunnel to the new care-of address if there is one.
    fn acknowledge(
        &mut self,
        now: Instant,
        (update, proof): (&Update, &Proof),
        status: Status,
        tunnel: Option<Encap>,
        out: &mut Outbox,
    ) {
        let (host, identification) = (update.home, update.identification);
        let id = identification.unwrap_or(0);
        let (of_host, of_update) = (&mut self.handoffs.acknowledged_to, &mut self.handoffs.acknowledged);
        // The limit for each mobile node comes first: so one of them cannot use up the places of the others.
        if !update.acknowledge || !of_host.may(now, host) || !of_update.may(now, (host, id)) {
            return;
        }
        let numbers = self.config.numbers;
        let mut message = Acknowledge { status, home: host, identification, authentication: None };
        message.sign(numbers.smooth_authentication, &proof.association, &numbers);
        let bytes = Binding::Acknowledge(message).datagram(self.config.address.address, host, &numbers);
        let packet = Packet::new(Mac::ZERO, bytes);
        let sent = match tunnel {
            Some(encap) => one_tunnel::in_tunnel(&packet, encap, &mut self.handoffs.outer_id),
            None => Ok(packet),
        };
        match sent {
            Ok(packet) => out.send_routed(packet),
            Err(reason) => self.refused.count(reason),
        }
    }
}
