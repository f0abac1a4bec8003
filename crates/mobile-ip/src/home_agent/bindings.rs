//! The bindings of a home agent: what is stored, the tunnels, and their ends (RFC 5944, sections 3.8 and 4.2.3).

use super::informing::NOTICE;
use super::{Accepted, Home, HomeAgent, home_of, key_of, key_to};
use crate::binding::Binding;
use crate::encapsulation;
use crate::mark::MobileIpEvent;
use crate::message::{Code, RequestFlags};
use node::{Action, Encap, Lifetime, Neighbor, Notification, Outbox, Route};
use std::collections::BTreeSet;
use wire::{Duration, Instant, Ipv4Addr, Mac, Packet, Reason, WallTime};

impl HomeAgent {
    /// Removes the storage request whose result has arrived: the oldest one of the mobile node. Returns the
    /// registration; `None` if the request stored the end of a binding.
    pub(super) fn decided(&mut self, host: Ipv4Addr) -> Option<Accepted> {
        self.under_way.pop(host)?
    }

    /// Applies a registration whose record is durable, and sends the reply.
    pub(super) fn stored(&mut self, now: Instant, key: &[u8], out: &mut Outbox) {
        let Some(host) = home_of(key) else { return };
        let Some(Accepted { record, granted, path, request }) = self.decided(host) else { return };
        let to = record.bindings.clone();
        let home = self.homes.entry(host).or_default();
        home.nonce = None;
        let from = home.record.replace(record).map_or_else(Vec::new, |before| before.bindings);
        self.switch(now, host, &from, &to, path.at_home, out);
        self.reply(now, &request, self.accepted(&request), granted, path, out);
        mark_change(host, &from, &to, out);
        self.inform_of_change(now, &request, out);
    }

    /// Switches the paths to a mobile node from its old to its new bindings, which are already on record. `at_home` is
    /// the link address of the mobile node, if it sent the request from the home network.
    pub(super) fn switch(
        &mut self,
        now: Instant,
        host: Ipv4Addr,
        from: &[Binding],
        to: &[Binding],
        at_home: Option<Mac>,
        out: &mut Outbox,
    ) {
        let all: BTreeSet<Ipv4Addr> = from.iter().chain(to).map(|binding| binding.care_of).collect();
        let before: BTreeSet<Ipv4Addr> = all.iter().copied().filter(|it| self.tunnels.is_exit(*it)).collect();
        let reachable = |binding: &&Binding| self.tunnels.rebind(None, Some(binding.care_of));
        let reachable: Vec<_> = to.iter().filter(reachable).map(|binding| binding.care_of).collect();
        for binding in from {
            self.tunnels.rebind(Some(binding.care_of), None);
        }
        // A foreign agent with the same address must not let a visitor have these tunnels.
        for care_of in all.into_iter().filter(|_| self.is_shared()) {
            let is_exit = self.tunnels.is_exit(care_of);
            if is_exit != before.contains(&care_of) {
                let own = self.config.address.address;
                out.notify(Notification::TunnelEntry(own, care_of, is_exit));
            }
        }
        let wall = self.clock.wall(now);
        let home = self.homes.entry(host).or_default();
        let ends = |binding: &Binding| {
            let same = from.contains(binding).then(|| home.ends.get(&binding.care_of)).flatten();
            (binding.care_of, same.map_or_else(|| now + until(wall, binding.ends), |end| *end))
        };
        home.ends = to.iter().map(ends).collect();
        self.route(host, !from.is_empty(), out);
        for care_of in reachable {
            self.adjust(care_of, Some(host), out);
        }
        match (from, to, at_home) {
            ([], [_, ..], _) => {
                out.neighbor(self.iface, host, Neighbor::Proxy);
                if let Some(mac) = self.mac {
                    self.announcer.announce(now, (self.iface, host), mac, out);
                }
            }
            ([_, ..], [], _) => {
                out.neighbor(self.iface, host, None);
                self.announcer.stop(host);
                if let Some(mac) = at_home {
                    self.announcer.announce(now, (self.iface, host), mac, out);
                }
            }
            _ => {}
        }
    }

    /// Sets the route for packets to a mobile node. With one binding, the node puts them into the tunnel. With several
    /// bindings, this role gets them, and sends a copy to each care-of address. Without a binding, a route is removed
    /// if there `was` one.
    fn route(&mut self, host: Ipv4Addr, was: bool, out: &mut Outbox) {
        self.ending.stop(host);
        let ends = self.homes.get(&host).map(|home| &home.ends);
        let ends: Vec<_> = ends.into_iter().flatten().map(|(care_of, end)| (*care_of, *end)).collect();
        let times = || ends.iter().map(|(_, end)| *end);
        match (&*ends, times().min(), times().max()) {
            ([(care_of, end)], ..) => self.tunnel(host, *care_of, *end, out),
            (_, Some(first), Some(last)) => {
                self.ending.set(host, first);
                out.route(key_to(host), Route::new(Action::Punt, Lifetime::Until(last)));
            }
            _ if was => out.route(key_to(host), None),
            _ => {}
        }
    }

    pub(super) fn tunnel(&self, host: Ipv4Addr, care_of: Ipv4Addr, ends: Instant, out: &mut Outbox) {
        let encap = self.encap(host, care_of);
        let route = Route::new(Action::Tunnel(encap), Lifetime::Until(ends));
        out.route(key_to(host), Route { notice: self.informs().then_some(NOTICE), ..route });
    }

    /// Returns the tunnel to a care-of address of a mobile node: of the kind that its request asked for, and with what is
    /// known now about the path.
    pub(super) fn encap(&self, host: Ipv4Addr, care_of: Ipv4Addr) -> Encap {
        let bindings = self.homes.get(&host).map_or(&[][..], Home::bindings);
        let flags = bindings.iter().find(|binding| binding.care_of == care_of).map_or(0, |own| own.flags);
        let kind = encapsulation::kind(RequestFlags(flags));
        self.tunnels.encap(self.config.address.address, care_of, kind, self.config.tunnel_mtu)
    }

    /// Sets the tunnels to a care-of address to what is known now about the path, except that of the mobile node `set`: its
    /// tunnel is set already.
    pub(super) fn adjust(&self, care_of: Ipv4Addr, set: Option<Ipv4Addr>, out: &mut Outbox) {
        for (host, home) in self.homes.iter().filter(|(host, _)| Some(**host) != set) {
            // With several bindings there is no route into the tunnel: each copy uses the MTU of its time.
            if let (Some(end), 1) = (home.ends.get(&care_of), home.ends.len()) {
                self.tunnel(*host, care_of, *end, out);
            }
        }
    }

    /// Handles an ICMP error about a packet in a tunnel of this agent. What it says about the path is used for later
    /// packets. The sender of the inner datagram gets an error, if enough of the datagram is quoted (RFC 2003, section 4) and
    /// [`Self::may_send_error`] permits it.
    pub(super) fn tunnel_error(&mut self, now: Instant, icmp: &[u8], out: &mut Outbox) -> Result<(), Reason> {
        let heard = self.tunnels.heard(now, icmp, self.config.address.address, self.config.tunnel_mtu)?;
        if heard.is_changed {
            self.adjust(heard.exit, None, out);
        }
        if let Some((sender, bytes)) = heard.error
            && self.may_send_error(now, sender)
        {
            out.send_routed(Packet::new(Mac::ZERO, bytes));
        }
        Ok(())
    }

    /// Ends the bindings of a mobile node whose lifetimes have ended. No message is sent (RFC 5944, section 3.8). Does
    /// nothing if they were renewed: the new route is set only when an earlier record is durable, and the old route can
    /// expire before.
    pub(super) fn expired(&mut self, now: Instant, host: Ipv4Addr, out: &mut Outbox) {
        let Some(home) = self.homes.get_mut(&host) else { return };
        let Some(record) = &mut home.record else { return };
        let has_ended = |binding: &Binding| home.ends.get(&binding.care_of).is_none_or(|end| *end <= now);
        let from = record.bindings.clone();
        record.bindings.retain(|binding| !has_ended(binding));
        let (to, ended) = (record.bindings.clone(), record.emit());
        if to.len() == from.len() {
            return;
        }
        // If a newer registration is being stored, the end is not stored: it would replace that record. That is safe: a
        // stored record has the time of its end, so the next start drops it.
        let is_last = !self.under_way.has(host);
        self.switch(now, host, &from, &to, None, out);
        if to.is_empty() {
            self.bindings_ended(now, host, out);
        }
        for _ in to.len()..from.len() {
            out.mark(MobileIpEvent::BindingExpired { host }.into());
        }
        if is_last {
            self.under_way.push(host, None);
            out.store(key_of(host), ended);
        }
    }

    /// Denies a registration whose record could not be stored.
    pub(super) fn not_stored(&mut self, now: Instant, key: &[u8], out: &mut Outbox) {
        let Some(host) = home_of(key) else { return };
        let Some(Accepted { path, request, .. }) = self.decided(host) else { return };
        let is_new = |home: &Home| home.record.is_none() && home.nonce.is_none();
        if self.homes.get(&host).is_some_and(is_new) && !self.under_way.has(host) {
            self.homes.remove(&host);
        }
        self.use_nonce(Code::HomeResources, &request);
        out.mark(MobileIpEvent::NotStored { host }.into());
        self.reply(now, &request, Code::HomeResources, request.lifetime, path, out);
    }
}

/// Marks a change of the paths to a mobile node; does nothing if the care-of addresses are the same as before.
fn mark_change(host: Ipv4Addr, from: &[Binding], to: &[Binding], out: &mut Outbox) {
    let has = |all: &[Binding], care_of| all.iter().any(|binding| binding.care_of == care_of);
    let same = from.len() == to.len() && to.iter().all(|binding| has(from, binding.care_of));
    if same {
        return;
    }
    out.mark(match to.last() {
        Some(Binding { care_of, .. }) => MobileIpEvent::BindingChanged { host, care_of: *care_of }.into(),
        None => MobileIpEvent::BindingRemoved { host }.into(),
    });
    out.mark(MobileIpEvent::PathSwitched { host }.into());
}

fn until(now: WallTime, then: WallTime) -> Duration {
    Duration::from_nanos(then.0.saturating_sub(now.0).max(0).cast_unsigned())
}
