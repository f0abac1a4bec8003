//! Special tunnels of foreign agents (draft-ietf-mobileip-optim-05, section 9.5): a foreign agent that does not know a mobile
//! node any more returns its packets, in a tunnel to the home address.

use super::{Home, HomeAgent};
use crate::binding::Binding;
use node::{Outbox, Rx, reason};
use wire::{Instant, Ipv4Addr, Packet, Reason, ipv4, tunnel};

/// The reason to drop a packet in a special tunnel: it comes from the present care-of address. That agent has lost its state,
/// and would return the packet again (RFC 5944, section 4.2.3).
pub(super) const RETURNED_BY_CARE_OF: Reason = Reason("returned_by_care_of_address");

impl HomeAgent {
    /// Handles a packet that is in a tunnel to a mobile node. Out of a special tunnel, whose inner destination is the same, it
    /// is sent to the present care-of address, unless it comes from there, or to the mobile node at home, which opens no tunnel.
    /// In all cases, its sender is informed of the place if it is a correspondent (section 9.5). Other packets are forwarded as
    /// usual.
    pub(super) fn special(&mut self, now: Instant, rx: Rx, packet: Packet, out: &mut Outbox) {
        let host = rx.header.dst;
        let bindings = self.homes.get(&host).map_or(&[][..], Home::bindings);
        let inner = tunnel::decapsulate(&packet.bytes).ok().and_then(|(_, inner)| {
            let header = ipv4::Header::parse(&inner).ok()?.0;
            (header.dst == host).then(|| (header.src, inner.into_owned()))
        });
        let Some((sender, inner)) = inner.filter(|_| self.mobile_nodes.first(host).is_some()) else {
            return out.pass(rx, packet);
        };
        let (is_home, comes_back) = (bindings.is_empty(), has_exit(bindings, rx.header.src));
        if is_home || comes_back {
            // Otherwise, the route to the care-of address notifies this role of the sender.
            self.inform(now, host, sender, out);
        }
        if comes_back {
            return self.refused.end(rx.iface, packet, Err(RETURNED_BY_CARE_OF), out);
        }
        let mut packet = Packet { bytes: inner, ..packet };
        if ipv4::decrement_ttl(&mut packet.bytes) {
            out.send_routed(packet);
        } else {
            self.refused.end(rx.iface, packet, Err(reason::TTL_EXPIRED), out);
        }
    }
}

/// Returns whether an address is the care-of address of one of these bindings.
pub(super) fn has_exit(bindings: &[Binding], address: Ipv4Addr) -> bool {
    bindings.iter().any(|binding| binding.care_of == address)
}
