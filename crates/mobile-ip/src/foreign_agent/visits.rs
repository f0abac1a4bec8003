//! The visitors of a foreign agent: their routes, and the ends of their visits (RFC 5944, section 4.2.2).

use super::history::History;
use super::{ForeignAgent, Opened, Visit, Visitor, of_host};
use crate::encapsulation;
use crate::mark::{HandoffEvent, MobileIpEvent};
use crate::message::{Code, Request, RequestFlags};
use crate::pending::Pending;
use node::{Action, Class, Hop, Lifetime, Neighbor, Notification, Outbox, Route, RouteKey, TunnelKinds};
use wire::{Duration, Instant, Ipv4Addr, Mac, Prefix};

impl Visitor {
    /// Returns the Identification that the next request must exceed to be no earlier one.
    pub(super) fn last_request(&self) -> u64 {
        self.left_by.filter(|_| self.is_corrected).unwrap_or(self.identification)
    }
}

impl ForeignAgent {
    /// Registers or renews a visitor for `lifetime` seconds; 0 ends the visit. The place of the visit was free when the
    /// request arrived, but requests that wait have no place yet. Fails with the code of the denial if other visits have
    /// taken it: [`Code::ForeignResources`] if there are `visitors` visits, [`Code::ForeignUnspecified`] if no packet
    /// class is free.
    pub(super) fn admit(
        &mut self,
        now: Instant,
        pending: &Pending,
        lifetime: u16,
        out: &mut Outbox,
    ) -> Result<(), Code> {
        let Request { home: host, home_agent, .. } = pending.request;
        let visit = (host, home_agent);
        if lifetime == 0 {
            self.leave(visit, out);
            // Packets of the previous agent may have been kept before a registration was accepted.
            self.end_keeping_of_unaccepted(host, out);
            return Ok(());
        }
        if self.is_busy() && !self.visitors.contains_key(&visit) {
            return Err(Code::ForeignResources);
        }
        if pending.request.flags.has(RequestFlags::REVERSE) && self.reverse_pair(visit, pending.mac).is_none()
        {
            return Err(Code::ForeignUnspecified);
        }
        let flags = pending.request.flags;
        let kinds = self.kinds_without(visit, home_agent).or(encapsulation::opened(flags));
        let class = self.open_for(home_agent, kinds, out).ok_or(Code::ForeignUnspecified)?;
        let mac = pending.mac;
        let ends = now + Duration::from_secs(lifetime.into());
        let route = Route::new(Action::Forward(Hop::mac(self.iface, mac)), Lifetime::Until(ends));
        out.route(RouteKey::to(class, host), self.route_for(visit, mac, route.lifetime));
        let reached = self.reach(visit, mac, route, out);
        let had_reverse = self.visitors.get(&visit).is_some_and(|before| before.reverse.is_some());
        let asks_reverse = flags.has(RequestFlags::REVERSE);
        let [from, to] = [had_reverse, asks_reverse].map(|is_tunnel| is_tunnel.then_some(home_agent));
        if self.tunnels.rebind(from, to) {
            self.adjust(home_agent, Some(host), out);
        }
        let reverse = self.reverse(visit, pending, ends, out);
        let since = self.visitors.get(&visit).map(|before| before.since);
        let history = self.history_with(visit, pending);
        let departure = self.handoffs.departures.remove(&visit);
        self.handoffs.gone.remove(visit);
        if let Some(departure) = &departure {
            self.tunnels.rebind(Some(departure.care_of), None);
        }
        let visitor = Visitor {
            mac,
            identification: pending.request.identification,
            left_by: None,
            is_corrected: false,
            number: pending.number,
            history,
            lifetime,
            ends,
            reached,
            reverse,
            flags,
            since: since.unwrap_or(now),
            asked: pending.since,
        };
        self.visitors.insert(visit, visitor);
        if departure.is_some() || self.config.direct_tunnels {
            self.watch_tunnels(host, out);
        }
        if departure.is_some() {
            out.mark(HandoffEvent::ForwardingEnded { host }.into());
        }
        self.release(now, visit, out);
        if since.is_none() {
            self.report_exit((host, home_agent), true, out);
            out.mark(MobileIpEvent::VisitorArrived { host }.into());
        }
        Ok(())
    }

    /// Sets the routes for this host's own packets to a visitor, unless another visit has the same home address or a home
    /// agent has it. Returns the keys of the routes; empty if they are not set.
    fn reach(&mut self, visit: Visit, mac: Mac, route: Route, out: &mut Outbox) -> Vec<RouteKey> {
        let host = visit.0;
        let holder = self.reached_at(host).filter(|other| *other != visit);
        // A visit that an association authenticates comes before another one.
        let taken = holder.is_some_and(|other| self.is_proved(other) || !self.is_proved(visit));
        if holder.is_some() && !taken {
            self.keep_path_to(host, out);
        }
        let is_free = !taken && !self.is_peer(host);
        let reached = if is_free { self.own_packets_to(visit) } else { Vec::new() };
        let before = self.visitors.get_mut(&visit).map(|visitor| std::mem::take(&mut visitor.reached));
        if reached.is_empty() {
            self.unreach(before.unwrap_or_default(), host, out);
        } else {
            // This host's own packets to a visitor, for example ICMP errors, are sent on the link without ARP (RFC
            // 5944, section 4.2.2). Otherwise, a packet from the care-of address would go to the home agent. The home
            // agent would drop the packet as a tunnel loop.
            for key in &reached {
                out.route(*key, route);
            }
            out.neighbor(self.iface, host, Neighbor::At(mac));
        }
        reached
    }

    /// Returns the requests of a visit, including the accepted request and those that still wait. If the mobile node has left before,
    /// those of the visit that has ended are included.
    fn history_with(&mut self, visit: Visit, accepted: &Pending) -> History {
        let present = self.visitors.get_mut(&visit).map(|old| std::mem::take(&mut old.history));
        let mut history = present.or_else(|| self.past(accepted.since, visit).cloned()).unwrap_or_default();
        for (_, other) in self.waiting.of(visit.0, accepted.mac) {
            history.sees(other.request.identification);
        }
        history.sees(accepted.request.identification);
        history
    }

    /// Returns the requests of a visit that has ended by a Binding Update; `None` if there is none.
    pub(super) fn past(&self, now: Instant, visit: Visit) -> Option<&History> {
        let gone = self.handoffs.gone.get(now, visit).map(|gone| &gone.history);
        self.handoffs.departures.get(&visit).map(|departure| &departure.history).or(gone)
    }

    /// Returns the kinds of tunnels that the visitors of a home agent have asked for, except the visitor of `visit`. Those that
    /// have left by a smooth handoff count too.
    fn kinds_without(&self, visit: Visit, home_agent: Ipv4Addr) -> TunnelKinds {
        let others = self.visitors.iter().filter(|(other, _)| other.1 == home_agent && **other != visit);
        let left = self.handoffs.departures.iter().filter(|(other, _)| other.1 == home_agent);
        let flags = others.map(|(_, visitor)| visitor.flags).chain(left.map(|(_, departure)| departure.was));
        flags.map(encapsulation::opened).fold(TunnelKinds::NONE, TunnelKinds::or)
    }

    /// Returns the kinds of tunnels of a home agent that are opened.
    pub(super) fn kinds_of(&self, home_agent: Ipv4Addr) -> TunnelKinds {
        self.kinds_without((Ipv4Addr::UNSPECIFIED, home_agent), home_agent)
    }

    /// Returns the packet class of a home agent. If it has none, assigns a free class, and sets the routes for packets
    /// from its tunnels. From now on, tunnels of these kinds are opened. `None` if no class is free.
    ///
    /// With `direct_tunnels`, the host with the address of the home agent may be a correspondent of other visitors too, as each other host.
    /// So all kinds are opened, and the packets for other mobile nodes go to this role.
    pub(super) fn open_for(
        &mut self,
        home_agent: Ipv4Addr,
        kinds: TunnelKinds,
        out: &mut Outbox,
    ) -> Option<Class> {
        let is_direct = self.config.direct_tunnels;
        let all = || encapsulation::all_opened(&self.config.encapsulations);
        let kinds = if is_direct { all().or(kinds) } else { kinds };
        let before = self.opened.get(&home_agent).copied();
        if let Some(opened) = before.filter(|opened| opened.kinds == kinds) {
            return Some(opened.class);
        }
        let is_free = |class: &Class| !self.opened.values().any(|other| other.class == *class);
        let free = || self.classes.of_home_agents().find(is_free);
        let class = before.map(|opened| opened.class).or_else(free)?;
        self.opened.insert(home_agent, Opened { class, kinds });
        let permanent = |action| Route::new(action, Lifetime::Permanent);
        if before.is_none() {
            self.drop_all(class, is_direct || self.config.special_tunnels, out);
        }
        out.route(self.tunnel(home_agent), permanent(Action::Open(class, kinds)));
        if before.is_none() {
            self.watch_early(home_agent, out);
        }
        Some(class)
    }

    /// Returns the key of the route for packets from a home agent to the care-of address.
    pub(super) const fn tunnel(&self, home_agent: Ipv4Addr) -> RouteKey {
        RouteKey {
            class: None,
            src: Prefix::host(home_agent),
            dst: Prefix::host(self.config.address.address),
        }
    }

    /// Ends a visit, and drops its keys and the packets that are kept for the visitor. Returns the visit; `None` if there is none.
    pub(super) fn leave(&mut self, visit: Visit, out: &mut Outbox) -> Option<Visitor> {
        let visitor = self.end_visit(visit, out)?;
        self.end_keeping(visit, out);
        self.keys.end(visit);
        Some(visitor)
    }

    /// Ends a visit. Its keys and the packets that are kept for the visitor stay. Returns the visit; `None` if there is none.
    pub(super) fn end_visit(&mut self, visit: Visit, out: &mut Outbox) -> Option<Visitor> {
        let mut visitor = self.visitors.remove(&visit)?;
        let (host, home_agent) = visit;
        self.report_exit(visit, false, out);
        if let Some(Opened { class, .. }) = self.opened.get(&home_agent).copied() {
            out.route(RouteKey::to(class, host), None);
        }
        self.close_unused(home_agent, out);
        self.unreach(std::mem::take(&mut visitor.reached), host, out);
        if let Some(reverse) = visitor.reverse {
            self.tunnels.rebind(Some(home_agent), None);
            self.end_reverse(host, reverse, out);
        }
        let had_arrival = self.handoffs.arrivals.remove(&visit).is_some();
        if had_arrival || self.handoffs.claims.contains_key(&host) || self.config.direct_tunnels {
            self.watch_tunnels(host, out);
        }
        Some(visitor)
    }

    /// Closes the tunnels of a home agent if it has no visitors any more, and none has left by a smooth handoff. Otherwise
    /// opens only the kinds that are still in use.
    pub(super) fn close_unused(&mut self, home_agent: Ipv4Addr, out: &mut Outbox) {
        let Some(Opened { class, .. }) = self.opened.get(&home_agent).copied() else { return };
        let mut all = self.visitors.keys().chain(self.handoffs.departures.keys());
        if all.any(|(_, other)| *other == home_agent) {
            self.open_for(home_agent, self.kinds_of(home_agent), out);
            return;
        }
        self.opened.remove(&home_agent);
        out.route(self.tunnel(home_agent), None);
        out.route(RouteKey::all(class), None);
        for own in self.own_addresses() {
            out.route(RouteKey::to(class, own), None);
        }
    }

    /// Reports to a home agent with the same address that a tunnel to a visitor ends here, or does not any more. The
    /// visitor's home agent may be the foreign agent of one of that agent's mobile nodes. Then the same packet could be
    /// in a reverse tunnel.
    fn report_exit(&self, (host, home_agent): Visit, is_open: bool, out: &mut Outbox) {
        if self.config.beside.contains(&self.config.address.address) {
            out.notify(Notification::TunnelExit(home_agent, host, is_open));
        }
    }

    /// Returns the keys of the routes for this host's own packets to a visitor: from each of its addresses if an association
    /// authenticates the visit, and otherwise from the care-of address only. Packets of other hosts that a role of this
    /// host sends, for example out of a reverse tunnel, go to the visitor's home network: the visitor may have left this
    /// host without a notice.
    pub(super) fn own_packets_to(&self, (host, home_agent): Visit) -> Vec<RouteKey> {
        let is_proved = self.is_proved((host, home_agent));
        let care_of = self.config.address.address;
        let own = self.own_addresses().into_iter().filter(|own| is_proved || *own == care_of);
        own.map(|own| RouteKey { src: Prefix::host(own), ..RouteKey::to(Class::HOST, host) }).collect()
    }

    /// Returns whether an association authenticates a visit.
    pub(super) fn is_proved(&self, (host, home_agent): Visit) -> bool {
        self.mobile_nodes.first(host).is_some() || self.home_agents.first(home_agent).is_some()
    }

    /// Removes the routes for this host's own packets to a visitor.
    pub(super) fn unreach(&self, keys: Vec<RouteKey>, host: Ipv4Addr, out: &mut Outbox) {
        if keys.is_empty() {
            return;
        }
        for key in keys {
            out.route(key, None);
        }
        out.neighbor(self.iface, host, None);
    }

    pub(super) fn is_home_agent_of_any(&self, host: Ipv4Addr) -> bool {
        let waits = self.waiting.requests().any(|request| request.home_agent == host);
        waits || self.opened.contains_key(&host)
    }

    /// Returns the visit with this home address that gets this host's own packets; `None` if there is none.
    fn reached_at(&self, host: Ipv4Addr) -> Option<Visit> {
        let mut visits = of_host(&self.visitors, host);
        visits.find(|(_, visitor)| !visitor.reached.is_empty()).map(|(visit, _)| visit)
    }

    /// Returns whether this agent sends messages or tunnels to this address.
    fn is_peer(&self, address: Ipv4Addr) -> bool {
        self.is_home_agent_of_any(address)
            || self.tunnels.is_exit(address)
            || self.exits_beside.contains(&address)
    }

    /// Handles the notification of a home agent: `entry` is the entry of a tunnel to `exit`, or is not any more. Only those of a home
    /// agent with the address of this agent matter.
    pub(super) fn entered(&mut self, (entry, exit): (Ipv4Addr, Ipv4Addr), is_open: bool, out: &mut Outbox) {
        if entry != self.config.address.address {
            return;
        }
        if is_open {
            self.exits_beside.insert(exit);
            self.keep_path_to(exit, out);
        } else {
            self.exits_beside.remove(&exit);
        }
    }

    /// Does `send`, which sends messages to a peer. They do not go to a visitor whose home address equals that of the peer. All
    /// other packets of this host go to the visitor as before.
    pub(super) fn past_visitors(
        &mut self,
        peer: Ipv4Addr,
        out: &mut Outbox,
        send: impl FnOnce(&mut Self, &mut Outbox),
    ) {
        let found = self.reached_at(peer).and_then(|visit| self.visitors.get(&visit));
        let routes = found.map(|visitor| {
            let route = Action::Forward(Hop::mac(self.iface, visitor.mac));
            (visitor.reached.clone(), Route::new(route, Lifetime::Until(visitor.ends)))
        });
        let (keys, route) = routes.unzip();
        let keys: Vec<RouteKey> = keys.unwrap_or_default();
        for key in &keys {
            out.route(*key, None);
        }
        send(self, out);
        for key in keys {
            out.route(key, route);
        }
    }

    /// Removes the routes for this host's own packets to a visitor whose home address equals `peer`, the address of a home
    /// agent or of the exit of a tunnel. Otherwise, requests and tunneled packets for the peer would be sent to the visitor.
    pub(super) fn keep_path_to(&mut self, peer: Ipv4Addr, out: &mut Outbox) {
        let found = self.reached_at(peer).and_then(|visit| self.visitors.get_mut(&visit));
        let keys = found.map(|visitor| std::mem::take(&mut visitor.reached));
        self.unreach(keys.unwrap_or_default(), peer, out);
    }

    /// Ends a visit whose route in the packet class of the home agent has expired. Does nothing if the visit was
    /// renewed.
    pub(super) fn expired(&mut self, now: Instant, key: RouteKey, out: &mut Outbox) {
        let mut agents = self.opened.iter().filter(|(_, opened)| key.class == Some(opened.class));
        let Some(visit) = agents.next().map(|(home_agent, _)| (key.dst.address(), *home_agent)) else {
            return;
        };
        if self.visitors.get(&visit).is_some_and(|visitor| visitor.ends <= now) {
            self.leave(visit, out);
            out.mark(MobileIpEvent::VisitorExpired { host: visit.0 }.into());
        } else if self.handoffs.departures.get(&visit).is_some_and(|departure| departure.ends <= now) {
            self.end_departure(now, visit, out);
        }
    }
}
