//! The routes and ARP of a mobile node, at home and away.

use super::{DEFAULT_ROUTE, MobileNode, NOT_REGISTERED};
use crate::agents::Agent;
use node::{Action, Hop, Lifetime, Neighbor, NextHop, Outbox, Route, RouteKey};
use wire::{Instant, Ipv4Addr, Mac};

impl MobileNode {
    /// Sets the routes and ARP of an ordinary host in the home network, and starts the announcements by gratuitous ARP.
    /// The caller sends the request to the home agent after this call (RFC 5944, section 4.6).
    pub(super) fn return_home(&mut self, now: Instant, home_agent: Mac, out: &mut Outbox) {
        let to = self.config.home_router.map_or(NextHop::Mac(home_agent), NextHop::Via);
        let hop = |to| Action::Forward(Hop { iface: self.used.iface, to });
        self.route(hop(to), hop(NextHop::OnLink), out);
        self.be_at_home_by(Some(self.used.iface), out);
        out.neighbor(self.used.iface, self.home, None);
        if let Some(mac) = self.used.mac {
            self.announcer.announce(now, (self.used.iface, self.home), mac, out);
        }
    }

    /// Sets the routes and ARP of a visitor: only ARP requests of the agent are answered. The caller sends the request
    /// after this call (RFC 5944, section 4.6). While there is an old path, packets are still sent by it.
    pub(super) fn leave_home(&mut self, agent: Ipv4Addr, known: &Agent, out: &mut Outbox) {
        self.announcer.stop(self.home);
        self.be_at_home_by(None, out);
        out.neighbor(self.used.iface, self.home, Neighbor::Mute);
        out.neighbor(self.used.iface, agent, Neighbor::At(known.mac));
        let way = self.way_by(known);
        if self.old_path.is_none() {
            self.route(way, way, out);
        }
    }

    /// Returns the action for this host's own packets through a foreign agent. One that routes for registered mobile nodes only
    /// drops them, unless the registration through it holds: the node may have come back before another agent accepted it.
    pub(super) fn way_by(&self, known: &Agent) -> Action {
        if known.registered_only && !self.is_registered_by(known) {
            return Action::Drop(NOT_REGISTERED);
        }
        Action::Forward(Hop::mac(self.used.iface, known.mac))
    }

    /// Sets the routes of this host's own packets: `near` to the home network, and `far` to all other networks. The
    /// home network is on the link only while the node is at home, so the prefix of the interface is not used.
    pub(super) fn route(&self, far: Action, near: Action, out: &mut Outbox) {
        let home_link = RouteKey { dst: self.config.address.link, ..DEFAULT_ROUTE };
        for (key, action) in [(DEFAULT_ROUTE, far), (home_link, near)] {
            out.route(key, Route::new(action, Lifetime::Permanent));
        }
    }
}
