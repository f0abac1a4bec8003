//! A data path beside the node, with its own copy of the rules, for example in kernel maps ([`table::map`]).
//!
//! The driver changes the copy by the acts of the mirror ([`MirrorAct`]), which come separately from other acts.
//! Without such a data path, a driver begins no mirror, and the node keeps no acts for it. The mirror is not part of a
//! run's records and fingerprint.
//!
//! The data path records the uses of its entries ([`table::Verdict::used`]), and the driver reports them to the node.
//! Before each time-out the driver reports the uses of routes that would end ([`Node::ask_uses`]). The driver reports
//! the first use of an idle route at once, because the route's owner may wait for this use ([`Node::used`]).

use crate::mirror::Mirror;
use crate::node::drop;
use crate::ruleset::found;
use crate::{Input, Listen, MirrorAct, Node, Outbox, Proto, Role, Ruleset, Rx};
use std::cmp::Reverse;
use table::{EntryId, PuntReason, RoleId, RouteKey};
use wire::ipv4::{self, Header};
use wire::{Iface, Instant, Ipv4Addr, Packet};

/// A copy of a packet that a data path beside the node has taken out of a tunnel, forwarded and kept
/// ([`table::Aside`]).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeptPacket {
    /// The owner of the packet's route.
    pub owner: RoleId,
    /// When the packet was forwarded.
    pub at: Instant,
    /// The interface on which the packet arrived.
    pub iface: Iface,
    /// The outer source and destination of the tunnel.
    pub tunnel: (Ipv4Addr, Ipv4Addr),
    /// The inner datagram, after its time to live was decremented.
    pub packet: Packet,
}

impl Ruleset {
    /// Adds an act to the mirror, if there is one.
    pub(crate) fn report(&mut self, act: MirrorAct) {
        if let Some(mirror) = &mut self.mirror {
            mirror.acts.push_back(act);
        }
    }

    /// Begins a new mirror. Its first acts are all policies, and all routes that were not reported as expired.
    pub(crate) fn begin_mirror(&mut self) {
        let mut mirror = Box::<Mirror>::default();
        for entry in &self.policies {
            mirror.set_policy(entry.port, entry.owner, entry.policy, true);
        }
        for (id, entry) in (0..).map(EntryId).zip(&self.entries) {
            if let Some(entry) = entry.as_ref().filter(|entry| !entry.is_gone()) {
                mirror.set_route(entry.key, found((id, entry)), entry.used, true);
            }
        }
        self.mirror = Some(mirror);
    }

    /// Returns whether the mirror has reported as many routes and policies as the rules contain. Without a mirror,
    /// returns true. The function counts all entries, so it is for debug builds.
    pub(crate) fn is_mirrored(&self) -> bool {
        let routes = || self.entries.iter().flatten().filter(|entry| !entry.is_gone()).count();
        self.mirror.as_ref().is_none_or(|mirror| mirror.len() == (routes(), self.policies.len()))
    }

    /// Records that the data path used a route at `at`. The call has no effect if the route was removed, or was
    /// reported as expired.
    pub(crate) fn used_outside(&mut self, key: RouteKey, at: Instant) {
        if let Some(id) = self.id_of(key).filter(|id| self.entry(*id).is_some_and(|entry| !entry.is_gone())) {
            self.used(id, at);
        }
    }

    /// Asks `last_use` for the last use by the data path, for each route whose queued deadline is at `by` or before.
    /// Records these uses.
    pub(crate) fn ask_uses(&mut self, by: Instant, last_use: &mut dyn FnMut(&RouteKey) -> Option<Instant>) {
        let mut asked = Vec::new();
        while let Some(Reverse((at, key))) = self.due.peek().copied().filter(|Reverse((at, _))| *at <= by) {
            self.due.pop();
            let Some(id) = self.id_of(key) else { continue };
            let Some(Some(entry)) = self.entries.get_mut(id.0 as usize) else { continue };
            if entry.queued == at {
                entry.used = last_use(&key).map_or(entry.used, |used| entry.used.max(used));
                entry.queued = Instant::NEVER;
                asked.push(id);
            }
        }
        for id in asked {
            if let Some(Some(entry)) = self.entries.get_mut(id.0 as usize) {
                Self::queue(&mut self.due, entry);
            }
        }
    }
}

/// The functions for drivers with a data path that has its own copy of the rules.
impl Node {
    /// Begins a mirror for a copy of the rules that is empty. The first acts of the mirror are all rules, addresses and
    /// MTUs of this node. So a driver may begin a new mirror at any time. The driver takes the acts after each call of
    /// the node. Until then the mirror keeps the acts.
    pub fn begin_mirror(&mut self) {
        self.rules.begin_mirror();
        for address in &self.addresses {
            self.rules.report(MirrorAct::Address(*address, true));
        }
        for own in &self.ifaces {
            self.rules.report(MirrorAct::Mtu(own.iface, own.mtu));
        }
    }

    /// Takes the next act of the mirror, or `None` if there is none.
    pub fn next_mirror_act(&mut self) -> Option<MirrorAct> {
        self.rules.mirror.as_mut()?.acts.pop_front()
    }

    /// Asks `last_use` when the data path last used a route, and records this use. Asks for each route whose lifetime
    /// would end at `by` or before, and possibly for other routes. `last_use` returns `None` for a route that the data
    /// path does not have.
    ///
    /// A driver calls the function with the current time before [`crate::Input::Timeout`]. So the time-out ends only
    /// routes that neither the node nor the data path used. Before a driver fills a new data path, it calls the
    /// function with [`Instant::NEVER`]. This call takes the uses of all routes whose lifetime can still end.
    pub fn ask_uses(&mut self, by: Instant, last_use: &mut dyn FnMut(&RouteKey) -> Option<Instant>) {
        self.rules.ask_uses(by, last_use);
    }

    /// Records that the data path used a route at `at`. A driver calls the function at once for the first use after the
    /// end of a [`table::Lifetime::ReportIdle`]. So the owner of the route is notified when the lifetime ends again.
    /// The call has no effect on a route that was removed, or was reported as expired.
    pub fn used(&mut self, key: RouteKey, at: Instant) {
        self.rules.used_outside(key, at);
    }

    /// Gives a packet that the data path has kept to the owner of its route. A driver calls the function for all such
    /// packets, in the order of their arrival, before it gives the node anything else: a frame, a time-out, a command or
    /// the change of a link. If a route is no longer one of [`table::Aside`], the driver first changes the data path, and then
    /// gives the node the last packets of this route.
    pub fn kept(&mut self, now: Instant, kept: KeptPacket, out: &mut Outbox) {
        let KeptPacket { owner, at, iface, tunnel, packet } = kept;
        out.begin(now);
        match Header::parse(&packet.bytes) {
            Ok((header, _)) => {
                let rx = Rx { iface, why: PuntReason::Kept(at), tunnel: Some(tunnel), header };
                self.give(now, owner, Input::Packet(rx, packet), out);
            }
            Err(malformed) => drop(out, iface, packet, malformed.into()),
        }
        self.settle(now, out);
    }

    /// Returns the maximum number of bytes of packets that a data path may keep for the roles of this node.
    pub fn room_aside(&self) -> usize {
        self.roles.iter().fold(0, |room, role| room.saturating_add(role.room_aside()))
    }

    /// Returns whether a data path may take datagrams out of tunnels by IP in IP. If not, a role listens for such
    /// tunnels, or intercepts connections, and the node must get all of them. Or a role listens for all UDP
    /// ([`Self::udp_ports`]).
    pub fn opens_aside(&self) -> bool {
        let is_all = |proto: &Proto| matches!(proto, Proto::IpIp | Proto::Ip(ipv4::IPIP | ipv4::UDP));
        let hears = |listen: &Listen| match listen {
            Listen::Local(proto) | Listen::Transit(proto, _) => is_all(proto),
            Listen::Group(..) | Listen::IcmpAbout(_) => false,
        };
        let takes = |role: &dyn Role| role.listens().iter().any(hears) || !role.intercepts().is_empty();
        !self.roles.iter().any(|role| takes(&**role))
    }

    /// Returns the ports of UDP that roles listen to. A message to such a port of this host may change the rules, so a data path must
    /// not let later packets overtake it.
    pub fn udp_ports(&self) -> impl Iterator<Item = u16> {
        let listens = self.roles.iter().flat_map(|role| role.listens());
        listens.filter_map(|listen| match listen {
            Listen::Local(Proto::Udp(port)) | Listen::Transit(Proto::Udp(port), _) => Some(*port),
            _ => None,
        })
    }
}

#[cfg(test)]
#[path = "data_path_tests.rs"]
mod tests;
