//! The reverse tunnels of a foreign agent, from the care-of address to the home agents of its visitors (RFC 3024).
//!
//! Packets of a visitor with flag T are found by the visitor's link address: its frames have a separate class. In this
//! class, packets with the home address as their source go into the tunnel to the home agent. So a host on another link
//! cannot use the tunnel. Visitors with different home addresses share a class. So the source of each packet is checked:
//! in another class, a route leads from the home address to the visitor's link address. With the encapsulating style,
//! packets that the visitor puts into a tunnel to this agent are opened, and then go into the tunnel; its other packets
//! are routed as usual.

use super::{ForeignAgent, NOT_FROM_HOME, Visit, of_host};
use crate::encapsulation;
use crate::message::RequestFlags;
use crate::pending::Pending;
use crate::tunnels::NOT_ABOUT_A_TUNNEL;
use node::{Action, Class, Encap, Hop, IngressPolicy, Lifetime, Outbox, Port, Route, RouteKey, Rx, reason};
use wire::tunnel::Kind;
use wire::{Instant, Ipv4Addr, Mac, Packet, Prefix, Reason, icmp, ipv4};

/// The number of pairs of classes for visitors with reverse tunnels (not from an RFC). One pair is enough unless link
/// addresses claim the same home address with different home agents: each then has a separate pair.
pub(super) const PAIRS: u8 = 8;
/// The maximum number of packets per second from one link address with another source than a visitor's home address (not
/// from an RFC). This agent routes them as usual; further ones are dropped.
const OTHERS_PER_SECOND: u16 = 1000;
/// The reason to drop a packet: its source is the home address of another visitor. Or the sender has put it into a
/// tunnel to this agent, and its source is not the sender's home address.
pub(super) const NOT_OF_THE_VISITOR: Reason = Reason("not_of_the_visitor");

/// The reverse tunnel of one visitor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Reverse {
    /// The number of the pair of classes, less than [`PAIRS`].
    pair: u8,
    mac: Mac,
    encapsulating: bool,
    /// The flags of the request that select the kind of tunnel.
    flags: RequestFlags,
}

impl Reverse {
    /// Returns the name of the delivery style.
    pub(super) const fn style(self) -> &'static str {
        if self.encapsulating { "encapsulating" } else { "direct" }
    }
}

impl ForeignAgent {
    /// Returns the pair of classes for the reverse tunnel of a visit from `mac`; `None` if no pair is free. All visits
    /// from one link address have the same pair, and visits with the same home address have different ones.
    pub(super) fn reverse_pair(&self, visit: Visit, mac: Mac) -> Option<u8> {
        let others = || self.visitors.iter().filter(|(other, _)| **other != visit);
        let used = || others().filter_map(|(other, visitor)| Some((other.0, visitor.reverse?)));
        let is_free = |pair: u8| !used().any(|(host, reverse)| host == visit.0 && reverse.pair == pair);
        match used().find(|(_, reverse)| reverse.mac == mac) {
            Some((_, reverse)) => Some(reverse.pair).filter(|pair| is_free(*pair)),
            None => (0..PAIRS).find(|pair| is_free(*pair)),
        }
    }

    /// Sets the routes of the reverse tunnel that an accepted request asks for, until the visit ends at `ends`. Removes
    /// those of the visit's earlier request, if they differ. Returns the reverse tunnel; `None` without flag T.
    pub(super) fn reverse(
        &self,
        visit: Visit,
        pending: &Pending,
        ends: Instant,
        out: &mut Outbox,
    ) -> Option<Reverse> {
        let (host, home_agent) = visit;
        let asks = pending.request.flags.has(RequestFlags::REVERSE);
        let encapsulating = pending.request.encapsulating_delivery().is_some();
        let pair = self.reverse_pair(visit, pending.mac).filter(|_| asks);
        let flags = pending.request.flags.and(encapsulation::ALTERNATES);
        let reverse = pair.map(|pair| Reverse { pair, mac: pending.mac, encapsulating, flags });
        let before = self.visitors.get(&visit).and_then(|visitor| visitor.reverse);
        if let Some(old) = before.filter(|_| before != reverse) {
            self.remove_reverse(visit, old, out);
        }
        let reverse = reverse?;
        let own = self.config.address.address;
        let lifetime = Lifetime::Until(ends);
        // The home agent on this host may have the address of this agent. A tunnel would then begin and end at one address,
        // as the tunnel to the visitor does. So this host routes the packet at once.
        let is_here = home_agent == own;
        let tunnel = Action::Tunnel(self.encap(home_agent, reverse));
        let tunnel = if is_here { Action::Punt } else { tunnel };
        let port = Port { iface: self.iface, from: Some(reverse.mac) };
        let back = Action::Forward(Hop::mac(self.iface, reverse.mac));
        out.route(RouteKey::to(self.classes.checks(reverse.pair), host), Route::new(back, lifetime));
        let (class, check) = (self.classes.frames(reverse.pair), Some(self.classes.checks(reverse.pair)));
        out.ingress_policy(
            port,
            IngressPolicy { class, check, ttl: true, icmp: true, punts: OTHERS_PER_SECOND },
        );
        if encapsulating {
            let drop = Action::Drop(NOT_OF_THE_VISITOR);
            out.route(
                RouteKey::all(self.classes.of_opened(reverse.pair)),
                Route::new(drop, Lifetime::Permanent),
            );
            let open =
                Action::Open(self.classes.of_opened(reverse.pair), encapsulation::opened(reverse.flags));
            out.route(to_agent(host, own, self.classes.frames(reverse.pair)), Route::new(open, lifetime));
            out.route(from(host, self.classes.of_opened(reverse.pair)), Route::new(tunnel, lifetime));
        } else if !is_here {
            out.route(from(host, self.classes.frames(reverse.pair)), Route::new(tunnel, lifetime));
        }
        Some(reverse)
    }

    /// Returns the reverse tunnel to a home agent. It is of the same kind as the tunnel to this agent (RFC 3024,
    /// section 1.2), and has what is known now about the path.
    fn encap(&self, home_agent: Ipv4Addr, reverse: Reverse) -> Encap {
        let kind = encapsulation::kind(reverse.flags);
        self.tunnels.encap(self.config.address.address, home_agent, kind, self.config.tunnel_mtu)
    }

    /// Sets the reverse tunnels to a home agent to what is known now about the path, except that of the visitor `set`: its
    /// tunnel is set later.
    pub(super) fn adjust(&self, home_agent: Ipv4Addr, set: Option<Ipv4Addr>, out: &mut Outbox) {
        if home_agent == self.config.address.address {
            return; // such a tunnel has no path
        }
        let of_agent = self.visitors.iter().filter(|((_, other), _)| *other == home_agent);
        for ((host, _), visitor) in of_agent.filter(|((host, _), _)| Some(*host) != set) {
            if let Some(reverse) = visitor.reverse {
                let class = if reverse.encapsulating {
                    self.classes.of_opened(reverse.pair)
                } else {
                    self.classes.frames(reverse.pair)
                };
                let (action, lifetime) =
                    (Action::Tunnel(self.encap(home_agent, reverse)), Lifetime::Until(visitor.ends));
                out.route(from(*host, class), Route::new(action, lifetime));
            }
        }
    }

    /// Handles an ICMP error about a packet in a reverse tunnel of this agent, as a home agent does with its tunnels (RFC
    /// 2003, section 4). The visitor that sent the inner datagram gets an error, at most one per second. `None`: the error
    /// quotes no tunnel. The result is as in [`crate::tunnels::Tunnels::heard`].
    pub(super) fn tunnel_error(
        &mut self,
        now: Instant,
        rx: Rx,
        icmp: &[u8],
        out: &mut Outbox,
    ) -> Option<Result<(), Reason>> {
        let message = icmp::Message::parse(icmp).ok()?;
        let quote = icmp::Quote::of(&message).ok()?;
        Kind::of_protocol(quote.protocol)?;
        let own = self.config.address.address;
        if quote.src != own || !self.tunnels.is_exit(quote.dst) {
            return Some(Err(NOT_ABOUT_A_TUNNEL));
        }
        // A host on a visited link cannot be on the path to a home agent.
        if self.visited.contains(&rx.iface) {
            return Some(Err(NOT_FROM_HOME));
        }
        let heard = match self.tunnels.heard(now, icmp, own, self.config.tunnel_mtu) {
            Ok(heard) => heard,
            Err(reason) => return Some(Err(reason)),
        };
        if heard.is_changed {
            self.adjust(heard.exit, None, out);
            self.adjust_departures(heard.exit, out);
        }
        // The sender of a packet that was forwarded after a smooth handoff is any host.
        let is_forwarded = self.handoffs.departures.values().any(|departure| departure.care_of == heard.exit);
        if let Some((sender, bytes)) = heard.error.as_ref().filter(|_| is_forwarded)
            && self.error_limit.may(now, *sender)
        {
            out.send_routed(Packet::new(Mac::ZERO, bytes.clone()));
            return Some(Ok(()));
        }
        let error = heard
            .error
            .and_then(|(host, bytes)| Some((host, bytes, self.visitors.get(&(host, heard.exit))?.mac)));
        if let Some((host, bytes, mac)) = error
            && self.error_limit.may(now, host)
        {
            out.send(self.iface, Packet::new(mac, bytes));
        }
        Some(Ok(()))
    }

    /// Returns whether a packet came out of a tunnel of a visitor to this agent, and its home agent has the address of this agent.
    /// Packets of other visitors with a reverse tunnel have their own routes.
    pub(super) fn is_of_visitor(&self, rx: &Rx) -> bool {
        let Some((entry, _)) = rx.tunnel else { return false };
        let mut visits = of_host(&self.visitors, entry);
        visits.any(|((_, home_agent), visitor)| self.is_own(home_agent) && visitor.reverse.is_some())
    }

    /// Routes a packet that a visitor has put into a tunnel to this agent, if its home agent has the address of this
    /// agent.
    pub(super) fn route_opened(&mut self, rx: Rx, mut packet: Packet, out: &mut Outbox) {
        if ipv4::decrement_ttl(&mut packet.bytes) {
            out.send_routed(packet);
        } else {
            self.refused.end(rx.iface, packet, Err(reason::TTL_EXPIRED), out);
        }
    }

    /// Handles a packet from the link address of a visitor with a reverse tunnel whose source is not a home address of
    /// this visitor. It is dropped if it was in a tunnel, or if a visitor with another link address has this home
    /// address. Otherwise, one visitor could send in the name of another. Other packets are routed as usual.
    pub(super) fn of_another(&mut self, rx: Rx, packet: Packet, out: &mut Outbox) {
        let mut visitors = self.visitors.iter();
        let is_a_visitors =
            visitors.any(|((host, _), visitor)| *host == rx.header.src && visitor.reverse.is_some());
        if is_a_visitors || rx.tunnel.is_some() {
            return self.refused.end(rx.iface, packet, Err(NOT_OF_THE_VISITOR), out);
        }
        self.route_opened(rx, packet, out);
    }

    /// Removes the routes of a reverse tunnel whose visit has ended: it is not in the list of visitors any more.
    pub(super) fn end_reverse(&self, host: Ipv4Addr, reverse: Reverse, out: &mut Outbox) {
        self.remove_reverse((host, Ipv4Addr::UNSPECIFIED), reverse, out);
    }

    /// Removes the routes of a reverse tunnel of `visit`, and the class of its link address unless another visit needs
    /// the class.
    fn remove_reverse(&self, visit: Visit, reverse: Reverse, out: &mut Outbox) {
        let (host, own) = (visit.0, self.config.address.address);
        out.route(RouteKey::to(self.classes.checks(reverse.pair), host), None);
        if reverse.encapsulating {
            out.route(to_agent(host, own, self.classes.frames(reverse.pair)), None);
            out.route(from(host, self.classes.of_opened(reverse.pair)), None);
        } else {
            out.route(from(host, self.classes.frames(reverse.pair)), None);
        }
        let mut others = self.visitors.iter().filter(|(other, _)| **other != visit);
        if !others.any(|(_, other)| other.reverse.is_some_and(|other| other.mac == reverse.mac)) {
            out.ingress_policy(Port { iface: self.iface, from: Some(reverse.mac) }, None);
        }
    }
}

/// Returns the key of the route for packets of a class from a home address.
const fn from(host: Ipv4Addr, class: Class) -> RouteKey {
    RouteKey { src: Prefix::host(host), ..RouteKey::all(class) }
}

/// Returns the key of the route for packets from a visitor to this agent, whose frames have the class `frames`.
const fn to_agent(host: Ipv4Addr, own: Ipv4Addr, frames: Class) -> RouteKey {
    RouteKey { dst: Prefix::host(own), ..from(host, frames) }
}
