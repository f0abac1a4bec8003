//! What a mobile node may ask for besides a binding: a reverse tunnel, and the broadcasts of its home network.

use super::MobileNode;
use crate::agents::Agent;
use crate::config::{CareOf, MobileNodeConfig, ReverseTunnel};
use crate::encapsulation;
use crate::interfaces::NodeInterface;
use crate::message::{ADVERTISEMENT, ALL_SYSTEMS, AgentFlags, PORT};
use node::{Action, Class, Encap, Lifetime, Listen, Outbox, Proto, Route, RouteKey, Rx, TunnelKinds};
use wire::{Ipv4Addr, Packet, ipv4, tunnel};

impl MobileNode {
    /// Returns whether the node asks for a reverse tunnel when it registers through this agent. With its own care-of
    /// address, the tunnel begins at this host, so the agent need not offer one.
    pub(super) fn asks_reverse(&self, agent: &Agent) -> bool {
        let is_available = agent.flags.has(AgentFlags::REVERSE) || self.own.address().is_some();
        self.config.reverse_tunnel != ReverseTunnel::None && is_available
    }

    /// Returns whether the agent offers the kind of tunnel that the node asks for.
    pub(super) const fn has_encapsulation(&self, agent: &Agent) -> bool {
        agent.flags.has(encapsulation::offered_by(self.config.encapsulation))
    }

    /// Returns the kinds in which packets arrive in tunnels to the co-located care-of address.
    pub(super) fn opened(&self) -> TunnelKinds {
        encapsulation::opened(self.registrar.available(encapsulation::asks(self.config.encapsulation)))
    }

    /// Sends this host's own packets through a tunnel to the agent: the encapsulating delivery style of a reverse tunnel
    /// (RFC 3024, section 5.2), of the kind of the registration. Packets to the agent itself are not in the tunnel.
    pub(super) fn tunnel_to(&self, agent: Ipv4Addr, forward: Action, out: &mut Outbox) {
        let kind = encapsulation::kind(self.registrar.held_flags());
        let mtu = self.used.mtu.saturating_sub(kind.overhead() as u16);
        let tunnel = Action::Tunnel(Encap { kind, ..Encap::new(self.home, agent, mtu) });
        let lifetime = Lifetime::Permanent;
        out.route(RouteKey::to(Class::HOST, agent), Route::new(forward, lifetime));
        self.route(tunnel, tunnel, out);
    }

    /// Removes the route for packets to an agent that is not used any more.
    pub(super) fn end_tunnel_to(&self, agent: Ipv4Addr, out: &mut Outbox) {
        if self.config.reverse_tunnel == ReverseTunnel::Encapsulating {
            out.route(RouteKey::to(Class::HOST, agent), None);
        }
    }

    /// Returns whether the agent in use is the home agent.
    pub(super) fn is_at_home(&self) -> bool {
        self.attached.is_some_and(|agent| self.is_home_agent(agent))
    }

    /// Returns a broadcast of the home network for this host's own stack. At home, it is the packet itself. Away, it is
    /// in the packet, in a tunnel from the home agent to the home address (RFC 5944, section 4.3). If the packet is
    /// something else, or the node does not receive broadcasts, the packet is the error.
    pub(super) fn broadcast(&self, rx: Rx, packet: Packet) -> Result<Packet, Packet> {
        let own = self.config.address;
        let is_broadcast = |to| to == Ipv4Addr::BROADCAST || own.is_broadcast(to);
        if !self.config.broadcasts || self.interface(rx.iface).is_none() {
            return Err(packet);
        }
        let at_home = self.is_at_home() && rx.iface == self.used.iface;
        if at_home && is_broadcast(rx.header.dst) {
            return Ok(packet);
        }
        // With a co-located care-of address, the tunnel ends at this address.
        let ends_here = rx.header.dst == self.home || self.own.address() == Some(rx.header.dst);
        let is_tunnel = ends_here && self.is_home_agent(rx.header.src);
        match tunnel::decapsulate(&packet.bytes) {
            Ok((_, inner))
                if is_tunnel && ipv4::addresses(&inner).is_some_and(|(_, to)| is_broadcast(to)) =>
            {
                let bytes = inner.into_owned();
                Ok(Packet { bytes, ..packet })
            }
            _ => Err(packet),
        }
    }
}

/// Returns the traffic for which a mobile node listens.
pub(super) fn listens(
    used: &NodeInterface,
    others: &[NodeInterface],
    config: &MobileNodeConfig,
) -> Vec<Listen> {
    let broadcast = config.address.broadcast().filter(|_| config.broadcasts);
    let groups = [ALL_SYSTEMS, Ipv4Addr::BROADCAST].into_iter().chain(broadcast);
    let ifaces = [used].into_iter().chain(others).map(|own| own.iface);
    let on_links = ifaces.flat_map(|iface| groups.clone().map(move |group| Listen::Group(iface, group)));
    let mut listens: Vec<Listen> = on_links.collect();
    listens.extend([Listen::Local(Proto::Icmp(ADVERTISEMENT)), Listen::Local(Proto::Udp(PORT))]);
    if config.reverse_tunnel != ReverseTunnel::None && config.care_of != CareOf::Agent {
        listens.push(Listen::IcmpAbout(Proto::IpIp));
    }
    if config.named_packets > 0 {
        listens.extend(
            [ipv4::ICMP, ipv4::UDP, ipv4::TCP, ipv4::SCTP].map(|kind| Listen::Local(Proto::Ip(kind))),
        );
    }
    if config.broadcasts {
        listens.push(Listen::Local(Proto::IpIp));
    }
    listens
}
