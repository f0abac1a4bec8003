//! The packets of which a home agent sends several copies. They are to a mobile node with several bindings (RFC 5944,
//! section 3.8.2.2), or broadcasts of the home network (section 4.3).

use super::special::{RETURNED_BY_CARE_OF, has_exit};
use super::{Home, HomeAgent};
use crate::binding::Binding;
use crate::encapsulation;
use crate::message::RequestFlags;
use crate::one_tunnel::{self, OneRoute, in_tunnel};
use crate::refusal;
use node::{Disposition, Encap, Outbox, PuntReason, Rx, Verdict, reason};
use wire::icmp::IcmpError;
use wire::{Instant, Ipv4Addr, Mac, Packet, ipip, ipv4, tunnel, tunnel::Kind};

impl HomeAgent {
    /// Sends a copy of a packet to each care-of address of its destination. The table checks each copy as if there were only
    /// its tunnel. The sender gets at most one ICMP error: the smallest MTU that is too small, or the error that all tunnels
    /// have. Each copy, sent or dropped, keeps the identity of the packet. A packet that is in a tunnel from one of the care-of
    /// addresses already is not copied: two agents that have lost the mobile node would return it for ever (RFC 5944, section
    /// 4.2.3).
    pub(super) fn copy(&mut self, now: Instant, rx: Rx, mut packet: Packet, out: &mut Outbox) {
        let home = self.homes.get(&rx.header.dst);
        let bindings = home.map_or(&[][..], Home::bindings);
        if Kind::of_protocol(rx.header.protocol).is_some() && has_exit(bindings, rx.header.src) {
            return self.refused.end(rx.iface, packet, Err(RETURNED_BY_CARE_OF), out);
        }
        let exits: Vec<Ipv4Addr> = home.into_iter().flat_map(|home| home.ends.keys().copied()).collect();
        if exits.is_empty() {
            return out.discard(rx.iface, packet, reason::NO_ROUTE);
        }
        let verdicts: Vec<Verdict> =
            exits.iter().map(|exit| self.judge_copy(now, &rx, &packet, *exit)).collect();
        if let Some(error) = common_error(verdicts.iter().map(|verdict| verdict.icmp)) {
            self.tell(now, error, &packet, out);
        }
        let dropped = verdicts.first().map(|verdict| verdict.disposition);
        if let Some(Disposition::Drop(reason)) = dropped
            && verdicts.iter().all(|verdict| Some(verdict.disposition) == dropped)
        {
            return out.discard(rx.iface, packet, reason); // no copy is made
        }
        if verdicts.iter().any(|verdict| verdict.ttl) && !ipv4::decrement_ttl(&mut packet.bytes) {
            return out.discard(rx.iface, packet, reason::TTL_EXPIRED);
        }
        for verdict in verdicts {
            match one_tunnel::enclosed(&packet, &verdict, &mut self.outer_id) {
                Ok(copies) => copies.into_iter().for_each(|copy| out.send_routed(copy)),
                Err(reason) => out.discard(rx.iface, packet.clone(), reason),
            }
        }
    }

    /// Decides about a copy of a packet for the tunnel to a care-of address.
    fn judge_copy(&self, now: Instant, rx: &Rx, packet: &Packet, care_of: Ipv4Addr) -> Verdict {
        let encap = self.encap(rx.header.dst, care_of);
        OneRoute::tunnel(encap, |address| self.is_own(address)).judge(now, rx, packet)
    }

    /// Sends a copy of a broadcast of the home network to each binding that asked for broadcasts with flag B. Copies that
    /// are too big for their tunnel are dropped. There are no ICMP errors about broadcasts (RFC 1812, section 4.3.2.7).
    /// Does nothing with other packets.
    ///
    /// With flag D, the mobile node opens the tunnel itself, and the broadcast is in one tunnel. Otherwise the foreign
    /// agent opens the tunnel: it cannot forward a broadcast to one visitor. So the broadcast is in another tunnel by IP
    /// in IP to the home address, inside the first one.
    pub(super) fn copy_broadcast(&mut self, rx: Rx, packet: &Packet, out: &mut Outbox) {
        let is_for_all = super::broadcasts(self.config.address).any(|all| all == rx.header.dst);
        if !is_for_all || rx.iface != self.iface || rx.why != PuntReason::Listen || self.is_own(rx.header.src)
        {
            return;
        }
        let (own, len) = (self.config.address.address, ipv4::total_len(&packet.bytes));
        let bindings =
            self.homes.iter().flat_map(|(host, home)| home.bindings().iter().map(move |one| (*host, one)));
        let asked = bindings.filter(|(_, one)| RequestFlags(one.flags).has(RequestFlags::BROADCAST));
        let exits: Vec<_> = asked.map(|(host, one)| (host, RequestFlags(one.flags), one.care_of)).collect();
        for (host, flags, care_of) in exits {
            let encap = self.encap(host, care_of);
            let layers = if flags.has(RequestFlags::DECAPSULATION) { 0 } else { ipip::OVERHEAD };
            let copy = if len + layers > usize::from(encap.reported) {
                Err(reason::TOO_BIG)
            } else if layers == 0 {
                in_tunnel(packet, encap, &mut self.outer_id)
            } else {
                let inner = Encap { src: own, dst: host, kind: Kind::IpInIp, ..encap };
                in_tunnel(packet, inner, &mut self.outer_id)
                    .and_then(|inner| in_tunnel(&inner, encap, &mut self.outer_id))
            };
            match copy {
                Ok(copy) => out.send_routed(copy),
                Err(reason) => out.discard(rx.iface, packet.clone(), reason),
            }
        }
    }

    /// Forwards a packet from a reverse tunnel, if the tunnel comes from a care-of address of the packet's source. The
    /// binding must have flag T, and must have asked for this kind of tunnel (RFC 3024, section 4.3.2). Otherwise any
    /// host could send in the name of a mobile node. Drops a packet whose source is no mobile node of this agent,
    /// unless a foreign agent with the same address may have a visitor for it. Declines a packet of a visitor's tunnel
    /// ([`Self::is_for_visitor`]).
    pub(super) fn reverse(&mut self, now: Instant, rx: Rx, packet: Packet, out: &mut Outbox) {
        let (header, inner) = match tunnel::decapsulate(&packet.bytes) {
            Ok((_, inner)) => match ipv4::Header::parse(&inner) {
                Ok((header, _)) => (header, inner.into_owned()),
                Err(malformed) => return self.refused.end(rx.iface, packet, Err(malformed.into()), out),
            },
            Err(malformed) => return self.refused.end(rx.iface, packet, Err(malformed.into()), out),
        };
        // A visitor of the foreign agent with the same address puts its packets into a tunnel to that agent.
        let is_shared = self.is_shared();
        let is_delivery = rx.header.src == header.src && is_shared;
        let is_of_another = is_shared && self.mobile_nodes.first(header.src).is_none();
        if is_delivery || is_of_another || self.is_for_visitor(rx.header.src, &header) {
            return out.pass(rx, packet);
        }
        let home = self.homes.get(&header.src);
        let is_exit = |binding: &&Binding| binding.care_of == rx.header.src;
        let binding = home.and_then(|home| home.bindings().iter().find(is_exit));
        if !binding.is_some_and(|binding| RequestFlags(binding.flags).has(RequestFlags::REVERSE)) {
            return self.refused.end(rx.iface, packet, Err(refusal::NO_REVERSE_TUNNEL), out);
        }
        let agreed = encapsulation::opened(RequestFlags(binding.map_or(0, |binding| binding.flags)));
        if !Kind::of_protocol(rx.header.protocol).is_some_and(|kind| agreed.has(kind)) {
            return self.refused.end(rx.iface, packet, Err(reason::TUNNEL_KIND), out);
        }
        let mut packet = Packet { bytes: inner, ..packet };
        if self.has_come_back(now, &packet.bytes, header.ttl) {
            return self.refused.end(rx.iface, packet, Err(reason::TUNNEL_LOOP), out);
        }
        if !ipv4::decrement_ttl(&mut packet.bytes) {
            self.tell(now, IcmpError::TimeExceeded, &packet, out);
            return self.refused.end(rx.iface, packet, Err(reason::TTL_EXPIRED), out);
        }
        self.reversed += 1;
        out.send_routed(packet);
    }

    /// Returns whether a packet, whose header in the tunnel is `inner`, is in the tunnel of the home agent `from` to its
    /// mobile node, which visits this host.
    ///
    /// The source of the packet may be a mobile node of this agent, and `from` also its foreign agent. Then the packet can
    /// be in either tunnel, and the outer headers are equal. Out of the reverse tunnel, it must be forwarded to the
    /// visitor's home network, because the visitor may have left this host without a notice. If the visitor is here, the
    /// packet comes back in the visitor's tunnel. Its time to live is then smaller than before: this agent and the
    /// visitor's home agent have decremented it. So a packet is in the visitor's tunnel if its time to live is smaller
    /// than that of another packet of the mobile node. A packet with a smaller initial time to live is delivered to the
    /// visited link at once. No packet circles.
    fn is_for_visitor(&mut self, from: Ipv4Addr, inner: &ipv4::Header) -> bool {
        let Some(largest) = self.exits.get_mut(&(from, inner.dst)) else { return false };
        let bindings = self.homes.get(&inner.src).map_or(&[][..], Home::bindings);
        let has_reverse = |binding: &Binding| {
            binding.care_of == from && RequestFlags(binding.flags).has(RequestFlags::REVERSE)
        };
        if !bindings.iter().any(has_reverse) {
            largest.remove(&inner.src);
            return true;
        }
        let known = largest.entry(inner.src).or_insert(inner.ttl);
        *known = inner.ttl.max(*known);
        inner.ttl < *known
    }

    /// Returns whether this agent has forwarded this packet out of a reverse tunnel before, with a larger time to live, and
    /// notes the packet. The other end of the reverse tunnel may also be the home agent of the packet's destination. If
    /// that agent believes that the destination visits this host, but the foreign agent on this host has forgotten the
    /// visit, the packet comes back. It must not circle. Returns false if no foreign agent has the address of this agent.
    fn has_come_back(&mut self, now: Instant, packet: &[u8], ttl: u8) -> bool {
        if !self.is_shared() {
            return false;
        }
        self.passed.has_come_back(now, Ipv4Addr::UNSPECIFIED, packet, ttl)
    }

    /// Returns whether a foreign agent on this host has the address of this agent.
    pub(super) fn is_shared(&self) -> bool {
        self.config.foreign.contains(&self.config.address.address)
    }

    /// Returns whether an address belongs to this host.
    pub(super) fn is_own(&self, address: Ipv4Addr) -> bool {
        let mut own = self.config.host.iter().chain([&self.config.address]);
        own.any(|own| own.address == address)
    }

    /// Returns whether the sender of a packet may get an ICMP error now: at most one per second. A broadcast address of
    /// a link of this host gets none (RFC 1812, section 4.3.2.7).
    pub(super) fn may_send_error(&mut self, now: Instant, sender: Ipv4Addr) -> bool {
        let mut own = self.config.host.iter().chain([&self.config.address]);
        !own.any(|own| own.is_broadcast(sender)) && self.error_limit.may(now, sender)
    }

    /// Sends an ICMP error to the sender of a packet, if [`Self::may_send_error`] permits it.
    fn tell(&mut self, now: Instant, error: IcmpError, about: &Packet, out: &mut Outbox) {
        let Some(bytes) = error.about(&about.bytes, self.config.address.address) else { return };
        let sender = ipv4::addresses(&bytes).map(|(_, to)| to);
        if sender.is_some_and(|to| self.may_send_error(now, to)) {
            out.send_routed(Packet::new(Mac::ZERO, bytes));
        }
    }
}

/// Returns the ICMP error for the sender of a packet whose copies have these errors: the smallest MTU, or an error that all
/// copies have. `None` if there is no such error: then a copy may arrive.
fn common_error(errors: impl Iterator<Item = Option<IcmpError>>) -> Option<IcmpError> {
    let errors: Vec<_> = errors.collect();
    let mtu = |error: &Option<IcmpError>| match error {
        Some(IcmpError::FragmentationNeeded { mtu }) => Some(*mtu),
        _ => None,
    };
    let smallest = errors.iter().filter_map(mtu).min();
    let first = errors.first().copied().flatten();
    let common = first.filter(|first| errors.iter().all(|other| other.as_ref() == Some(first)));
    smallest.map(|mtu| IcmpError::FragmentationNeeded { mtu }).or(common)
}
