//! The bindings of a home agent: what is stored, the tunnels, and their ends (RFC 5944, sections 3.8 and 4.2.3).

use super::{Accepted, Home, HomeAgent, accepted, home_of, key_of, key_to};
use crate::binding::Binding;
use crate::mark::MobileIpEvent;
use crate::message::{Between, Code};
use crate::tunnels::{NOT_ABOUT_A_TUNNEL, Report};
use node::{Action, Encap, Lifetime, Neighbor, Outbox, Route};
use wire::icmp::IcmpError;
use wire::ipv4;
use wire::{Duration, Instant, Ipv4Addr, Mac, Packet, Reason, WallTime};

impl HomeAgent {
    /// Removes the oldest storage request for a mobile node, because the result of this request has arrived. Returns
    /// the registration; `None` if the request stored the end of a binding.
    pub(super) fn decided(&mut self, host: Ipv4Addr) -> Option<Accepted> {
        self.under_way.pop(host)?
    }

    /// Applies a registration whose record is durable, and sends the reply.
    pub(super) fn stored(&mut self, now: Instant, key: &[u8], out: &mut Outbox) {
        let Some(host) = home_of(key) else { return };
        let Some(Accepted { record, granted, path, request }) = self.decided(host) else { return };
        let spi = request.authentication(Between::MobileHome).map(|found| found.spi);
        let home = self.homes.entry(host).or_default();
        home.spi = spi;
        let before = home.record.replace(record);
        let [from, to] = [before, Some(record)].map(|record| record.and_then(|record| record.binding));
        self.switch(now, host, from, to, path.at_home, out);
        self.reply(now, &request, accepted(&request), granted, path, out);
        mark_change(host, from, to, out);
    }

    /// Switches the path to a mobile node from its old to its new binding. `at_home` is the link address of the mobile
    /// node, if it sent the request from the home network.
    pub(super) fn switch(
        &mut self,
        now: Instant,
        host: Ipv4Addr,
        from: Option<Binding>,
        to: Option<Binding>,
        at_home: Option<Mac>,
        out: &mut Outbox,
    ) {
        let care_of = |binding: Option<Binding>| binding.map(|binding| binding.care_of);
        self.tunnels.rebind(care_of(from), care_of(to));
        if let Some(Binding { care_of, ends, .. }) = to {
            let ends = now + until(self.clock.wall(now), ends);
            if let Some(home) = self.homes.get_mut(&host) {
                home.ends = ends;
            }
            self.tunnel(host, care_of, ends, out);
        } else if from.is_some() {
            out.route(key_to(host), None);
        }
        match (from, to, at_home) {
            (None, Some(_), _) => {
                out.neighbor(self.iface, host, Neighbor::Proxy);
                if let Some(mac) = self.mac {
                    self.announcer.announce(now, (self.iface, host), mac, out);
                }
            }
            (Some(_), None, _) => {
                out.neighbor(self.iface, host, None);
                self.announcer.stop(host);
                if let Some(mac) = at_home {
                    self.announcer.announce(now, (self.iface, host), mac, out);
                }
            }
            _ => {}
        }
    }

    pub(super) fn tunnel(&self, host: Ipv4Addr, care_of: Ipv4Addr, ends: Instant, out: &mut Outbox) {
        let mtu = self.tunnels.mtu(care_of, self.config.tunnel_mtu);
        let encap = Encap { src: self.config.address.address, dst: care_of, mtu };
        out.route(key_to(host), Route { action: Action::Tunnel(encap), lifetime: Lifetime::Until(ends) });
    }

    /// Returns the mobile nodes at a care-of address, and when their bindings end.
    pub(super) fn bound_to(&self, care_of: Ipv4Addr) -> impl Iterator<Item = (Ipv4Addr, Instant)> {
        let is_there = move |home: &Home| home.record?.binding.filter(|binding| binding.care_of == care_of);
        self.homes.iter().filter_map(move |(host, home)| is_there(home).map(|_| (*host, home.ends)))
    }

    /// Sets the MTU of the tunnels to a care-of address to the MTU that is known now.
    pub(super) fn adjust(&self, care_of: Ipv4Addr, out: &mut Outbox) {
        for (host, ends) in self.bound_to(care_of) {
            self.tunnel(host, care_of, ends, out);
        }
    }

    /// Handles an ICMP error about a packet in a tunnel of this agent. A smaller path MTU in the error is used for
    /// later packets. The sender of the inner datagram gets an error, at most one per second, if enough of the datagram
    /// is quoted (RFC 2003, section 4).
    pub(super) fn tunnel_error(&mut self, now: Instant, icmp: &[u8], out: &mut Outbox) -> Result<(), Reason> {
        let own = self.config.address.address;
        let report = Report::parse(icmp, own)?;
        if !self.tunnels.is_exit(report.care_of) {
            return Err(NOT_ABOUT_A_TUNNEL);
        }
        if let Some(mtu) = report.mtu()
            && self.tunnels.lower(now, report.care_of, mtu)
        {
            self.adjust(report.care_of, out);
        }
        let error = report.error.map(|error| match report.mtu() {
            // The reported MTU may be that of an earlier path to the exit, and larger than the present MTU.
            Some(_) => {
                let mtu = self.tunnels.mtu(report.care_of, self.config.tunnel_mtu);
                IcmpError::FragmentationNeeded { mtu }
            }
            None => error,
        });
        let told = error.and_then(|error| error.about_quoted(report.inner, own));
        let sender = told.as_ref().and_then(|bytes| ipv4::addresses(bytes)).map(|(_, to)| to);
        if let (Some(bytes), Some(to)) = (told, sender)
            && self.told.may(now, to)
        {
            out.send_routed(Packet::new(Mac::ZERO, bytes));
        }
        Ok(())
    }

    /// Ends a binding whose route has expired. No message is sent (RFC 5944, section 3.8). Does nothing if the binding
    /// was renewed: the new route is set only when an earlier record is durable, and the old route can expire before.
    pub(super) fn expired(&mut self, now: Instant, host: Ipv4Addr, out: &mut Outbox) {
        let Some(home) = self.homes.get_mut(&host).filter(|home| home.ends <= now) else { return };
        let Some(record) = &mut home.record else { return };
        let from = record.binding.take();
        let ended = *record;
        // While another storage request for the mobile node waits for its result, the end is not stored, because it
        // would replace the record of a newer registration. If the end is not stored, the next start drops the binding:
        // the old record contains the time of the end.
        let is_last = !self.under_way.has(host);
        self.switch(now, host, from, None, None, out);
        out.mark(MobileIpEvent::BindingExpired { host }.into());
        if is_last {
            self.under_way.push(host, None);
            out.store(key_of(host), ended.emit());
        }
    }

    /// Denies a registration whose record could not be stored.
    pub(super) fn not_stored(&mut self, now: Instant, key: &[u8], out: &mut Outbox) {
        let Some(host) = home_of(key) else { return };
        let Some(Accepted { path, request, .. }) = self.decided(host) else { return };
        if self.homes.get(&host).is_some_and(|home| home.record.is_none()) && !self.under_way.has(host) {
            self.homes.remove(&host);
        }
        out.mark(MobileIpEvent::NotStored { host }.into());
        self.reply(now, &request, Code::HomeResources, 0, path, out);
    }
}

/// Marks a change of the path to a mobile node; does nothing if the care-of address is the same as before.
fn mark_change(host: Ipv4Addr, from: Option<Binding>, to: Option<Binding>, out: &mut Outbox) {
    let place = |binding: Option<Binding>| binding.map(|binding| binding.care_of);
    if place(from) == place(to) {
        return;
    }
    out.mark(match place(to) {
        Some(care_of) => MobileIpEvent::BindingChanged { host, care_of }.into(),
        None => MobileIpEvent::BindingRemoved { host }.into(),
    });
    out.mark(MobileIpEvent::PathSwitched { host }.into());
}

fn until(now: WallTime, then: WallTime) -> Duration {
    Duration::from_nanos(then.0.saturating_sub(now.0).max(0).cast_unsigned())
}
