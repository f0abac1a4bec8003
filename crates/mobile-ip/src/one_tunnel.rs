//! Packets that a role itself puts into a tunnel, or sends by a link. The table decides about each as if there were only this
//! route: so a role checks what the node checks.

use node::{
    Action, Class, Datagram, Disposition, Encap, EntryId, Found, IngressPolicy, Lifetime, Port, RoleId,
    Route, Rules, Rx, Verdict, decide, decide_opened, reason,
};
use wire::{Iface, Instant, Ipv4Addr, Packet, Reason, fragment, ipv4, tunnel};

/// The rules of a node that has one route. `mtu` is that of the interface in bytes, if the route leads to a link. `is_own`
/// returns whether an address belongs to the host.
pub(crate) struct OneRoute<F> {
    pub(crate) action: Action,
    pub(crate) mtu: u16,
    pub(crate) is_own: F,
}

impl<F: Fn(Ipv4Addr) -> bool> OneRoute<F> {
    /// Returns the rules of a node whose only route leads into a tunnel.
    pub(crate) const fn tunnel(encap: Encap, is_own: F) -> Self {
        Self { action: Action::Tunnel(encap), mtu: u16::MAX, is_own }
    }

    /// Decides about a packet with this `rx`.
    pub(crate) fn judge(&self, now: Instant, rx: &Rx, packet: &Packet) -> Verdict {
        let datagram = Datagram::new(&rx.header, ipv4::total_len(&packet.bytes));
        let port = Port { iface: rx.iface, from: None };
        match rx.tunnel {
            Some(_) => decide_opened(self, now, port, Class::WIRE, &datagram),
            None => decide(self, now, port, &datagram),
        }
    }
}

impl<F: Fn(Ipv4Addr) -> bool> Rules for OneRoute<F> {
    fn ingress_policy(&self, port: Port) -> (RoleId, IngressPolicy) {
        (RoleId::NODE, IngressPolicy::default_of(port))
    }

    fn route(&self, _: Instant, _: Class, _: Ipv4Addr, _: Ipv4Addr) -> Option<Found> {
        let route = Route::new(self.action, Lifetime::Permanent);
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

/// Returns the packet in the tunnel of its verdict, whole or as fragments. Fails with the reason to drop the packet. The
/// outer headers have consecutive identifications from `last` on, because the fragments of a packet share the packet's
/// identification. The caller has decremented the time to live.
pub(crate) fn enclosed(packet: &Packet, verdict: &Verdict, last: &mut u16) -> Result<Vec<Packet>, Reason> {
    match (verdict.disposition, verdict.cut) {
        (Disposition::Encap(encap), None) => in_tunnel(packet, encap, last).map(|copy| vec![copy]),
        (Disposition::Encap(encap), Some(mtu)) => {
            let pieces = fragment::pieces(&packet.bytes, mtu)?.into_iter();
            pieces.map(|bytes| in_tunnel(&Packet { bytes, ..packet.clone() }, encap, last)).collect()
        }
        (Disposition::Drop(reason), _) => Err(reason),
        _ => Err(reason::NO_ROUTE),
    }
}

/// Returns a copy of a packet in a tunnel. Fails if the packet does not fit into a datagram. The outer header has the
/// identification after `last`.
pub(crate) fn in_tunnel(packet: &Packet, encap: Encap, last: &mut u16) -> Result<Packet, Reason> {
    *last = last.wrapping_add(1);
    let bytes = tunnel::encapsulate(encap.kind, &packet.bytes, encap.src, encap.dst, *last)?;
    Ok(Packet { bytes, ..packet.clone() })
}
