//! Packets that a role forwards itself, because it needs each of them: to copy it, or to keep it. The rules are those of the
//! forwarding table, with one route.

use node::{
    Action, Class, Datagram, Encap, EntryId, Found, IngressPolicy, Lifetime, Port, RoleId, Route, Rules, Rx,
    Verdict, decide, decide_opened,
};
use wire::{Iface, Instant, Ipv4Addr, Packet, Reason, fragment, ipv4, tunnel};

/// The rules of a node that has one route. No lookup depends on the packet.
pub(crate) struct OneRoute<'a> {
    /// What the route does.
    pub(crate) action: Action,
    /// The MTU in bytes of the interface by which the route leads.
    pub(crate) mtu: u16,
    /// Whether an address belongs to this host.
    pub(crate) is_own: &'a dyn Fn(Ipv4Addr) -> bool,
}

impl OneRoute<'_> {
    /// Decides about a packet that a role received, as the table would by this route.
    pub(crate) fn decide(&self, now: Instant, rx: &Rx, packet: &Packet) -> Verdict {
        let datagram = Datagram::new(&rx.header, ipv4::total_len(&packet.bytes));
        let port = Port { iface: rx.iface, from: None };
        match rx.tunnel {
            Some(_) => decide_opened(self, now, port, Class::WIRE, &datagram),
            None => decide(self, now, port, &datagram),
        }
    }
}

impl Rules for OneRoute<'_> {
    fn ingress_policy(&self, port: Port) -> (RoleId, IngressPolicy) {
        (RoleId::NODE, IngressPolicy::default_of(port))
    }

    fn route(&self, _: Instant, _: Class, _: Ipv4Addr, _: Ipv4Addr) -> Option<Found> {
        let route = Route { action: self.action, lifetime: Lifetime::Permanent };
        Some(Found { entry: EntryId(0), owner: RoleId::NODE, route })
    }

    fn reverse_path(&self, _: Instant, _: Class, _: Ipv4Addr) -> Option<Found> {
        None
    }

    fn is_own(&self, address: Ipv4Addr) -> bool {
        (self.is_own)(address)
    }

    fn mtu(&self, _: Iface) -> u16 {
        self.mtu
    }
}

/// Puts packets of a role into tunnels.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entry {
    /// The identification of the last outer header.
    outer_id: u16,
}

impl Entry {
    /// Returns a copy of a packet in a tunnel. With `cut`, returns its fragments of at most `cut` bytes, each in the tunnel.
    /// Fails if the packet cannot be cut, or does not fit into a datagram.
    pub(crate) fn enter(
        &mut self,
        packet: &Packet,
        encap: Encap,
        cut: Option<u16>,
    ) -> Result<Vec<Packet>, Reason> {
        let Some(mtu) = cut else { return self.whole(packet, encap).map(|copy| vec![copy]) };
        let pieces = fragment::pieces(&packet.bytes, mtu)?;
        pieces.into_iter().map(|bytes| self.whole(&Packet { bytes, ..packet.clone() }, encap)).collect()
    }

    /// Returns a copy of a packet in a tunnel. The outer headers have consecutive identifications, because the fragments of a
    /// packet share the packet's identification.
    pub(crate) fn whole(&mut self, packet: &Packet, encap: Encap) -> Result<Packet, Reason> {
        self.outer_id = self.outer_id.wrapping_add(1);
        let bytes = tunnel::encapsulate(encap.kind, &packet.bytes, encap.src, encap.dst, self.outer_id)?;
        Ok(Packet { bytes, ..packet.clone() })
    }
}
