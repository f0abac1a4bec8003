//! The mobile node with a co-located care-of address: it registers directly with its home agent, and is itself the exit
//! of the tunnel (RFC 5944, sections 1.5 and 3.6.1.2). If an agent of the visited link sets the flag R, the mobile node
//! registers through this agent.

use super::{MobileNode, NO_AGENT, Timer};
use crate::agents::Uses;
use crate::config::ReverseTunnel;
use crate::encapsulation;
use crate::message::RequestFlags;
use crate::registrar::Target;
use node::{Action, InterfaceAddress, Neighbor, Notification, Outbox};
use wire::{Iface, Instant, Ipv4Addr, Mac};

impl MobileNode {
    /// Handles the reports of other roles about addresses.
    pub(super) fn notified(&mut self, now: Instant, notification: &Notification, out: &mut Outbox) {
        match *notification {
            Notification::AddressAcquired(iface, own, router) => {
                self.acquired(now, (iface, own), router, out);
            }
            Notification::AddressLost(iface, own) if self.own.is_lost(iface, own) => {
                self.leave_own_address(out);
                self.solicit(now, out);
            }
            Notification::AddressLost(..)
            | Notification::AddressInUse(..)
            | Notification::Gateway(_)
            | Notification::TunnelExit(..)
            | Notification::TunnelEntry(..) => {}
        }
    }

    fn acquired(
        &mut self,
        now: Instant,
        (iface, own): (Iface, InterfaceAddress),
        router: Option<Ipv4Addr>,
        out: &mut Outbox,
    ) {
        if self.own.acquired(iface, own, router) {
            self.own_address_ready(now, out);
        }
    }

    /// Registers with the care-of address that is usable now. At home, the node does not use it.
    pub(super) fn own_address_ready(&mut self, now: Instant, out: &mut Outbox) {
        let present = self.attached.filter(|agent| self.used.heard(*agent).is_some());
        if self.used.mac.is_none() || present.is_some_and(|agent| self.is_home_agent(agent)) {
            return;
        }
        self.used.agents.uses = Uses::Required;
        self.used.detecting = false; // the network was detected before the address was acquired
        let all = self.used.agents.iter();
        let heard = all.filter(|(who, known)| self.used.has_heard(known) && self.is_usable(*who));
        match heard.max_by_key(|(who, known)| (known.heard, *who)).map(|(who, _)| who) {
            Some(agent) => {
                // The agent was heard before: no solicitation is due, and its next advertisement is no new one.
                self.used.triggered = false;
                self.used.solicit_at = None;
                self.choose(now, agent, out);
            }
            None => self.register_directly(now, out),
        }
    }

    /// Registers with the home agent, from the co-located care-of address. Does nothing without such an address.
    pub(super) fn register_directly(&mut self, now: Instant, out: &mut Outbox) {
        let Some(target) = self.direct_target() else { return };
        let left = self.attached.take().filter(|left| !self.is_home_agent(*left));
        for left in left.into_iter().chain(self.kept.take()) {
            out.neighbor(self.used.iface, left, None);
        }
        self.next = None;
        self.used.triggered = false;
        self.chosen = Some(now);
        self.timers.stop(Timer::Hold);
        self.used.solicit_at = None;
        self.visit(out);
        self.registrar.turn_to(Some(target));
        self.register(now, out);
        if let Some(router) = self.own.router() {
            out.notify(Notification::Gateway(router));
        }
    }

    /// Sets the routes, the tunnel and ARP of a visitor with its own address. ARP requests for the home address are not
    /// answered (RFC 5944, section 4.6); requests for the care-of address are.
    pub(super) fn visit(&mut self, out: &mut Outbox) {
        self.announcer.stop(self.home);
        out.neighbor(self.used.iface, self.home, Neighbor::Mute);
        self.fix_router(out);
        let way = self.own.first_hop().unwrap_or(Action::Drop(NO_AGENT));
        // While the node registers again with the same care-of address, its reverse tunnel stays.
        if !self.is_reversed(way) {
            self.end_reverse(out);
            self.route(way, way, out);
        }
        self.own.open(self.registrar.home_agent(), self.opened(), out);
    }

    /// Fixes the link address of the router, if the router was heard as an agent since the link came up. Away from home, the
    /// node should not broadcast ARP requests (RFC 5944, sections 4.2.1 and 4.6).
    fn fix_router(&mut self, out: &mut Outbox) {
        let router = self.own.router().filter(|router| self.attached != Some(*router));
        let known = router.and_then(|router| Some((router, self.used.heard(router)?.mac)));
        if self.fixed == known.map(|(router, _)| router) {
            return;
        }
        self.unfix_router(out);
        if let Some((router, mac)) = known {
            out.neighbor(self.used.iface, router, Neighbor::At(mac));
            self.fixed = Some(router);
        }
    }

    /// Lets ARP find the link address of the router again.
    pub(super) fn unfix_router(&mut self, out: &mut Outbox) {
        if let Some(router) = self.fixed.take() {
            out.neighbor(self.used.iface, router, None);
        }
    }

    /// Gives up the co-located care-of address. If the node registered with it, the node searches again.
    pub(super) fn leave_own_address(&mut self, out: &mut Outbox) {
        if !self.own.leave(out) {
            return;
        }
        self.used.agents.uses = Uses::None;
        self.end_reverse(out);
        self.unfix_router(out);
        if self.is_at_home() {
            return;
        }
        if let Some(agent) = self.attached.take() {
            out.neighbor(self.used.iface, agent, None);
        }
        self.registrar.turn_to(None);
        self.timers.stop(Timer::Retry);
        self.timers.stop(Timer::Renew);
        self.route(Action::Drop(NO_AGENT), Action::Drop(NO_AGENT), out);
    }

    /// Returns what to register now: through the agent in use, or directly. `None` if neither is possible.
    pub(super) fn present_target(&self) -> Option<Target> {
        match self.attached {
            Some(agent) => self.target(agent),
            None => self.direct_target(),
        }
    }

    /// Returns what to register directly with the home agent; `None` without a co-located care-of address.
    fn direct_target(&self) -> Option<Target> {
        Some(Target {
            iface: self.used.iface,
            agent: self.registrar.home_agent(),
            mac: Mac::ZERO,
            care_of: self.own.address()?,
            lifetime: self.config.lifetime.as_secs() as u16,
            flags: self
                .config
                .flags()
                .with(RequestFlags::SIMULTANEOUS, self.asks_simultaneous())
                .with(RequestFlags::REVERSE, self.config.reverse_tunnel != ReverseTunnel::None)
                .with(RequestFlags::DECAPSULATION, true)
                .with(encapsulation::asks(self.config.encapsulation), true),
            encapsulating: false,
            is_co_located: true,
            is_smooth: false,
        })
    }
}
