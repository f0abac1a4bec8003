//! Special tunnels of foreign agents (draft-ietf-mobileip-optim-05, section 9.5): a foreign agent that does not know a mobile
//! node any more returns its packets, in a tunnel to the home address.

use super::{Home, HomeAgent};
use node::{Outbox, Rx, reason};
use wire::{Instant, Packet, Reason, ipv4, tunnel};

/// The reason to drop a packet in a special tunnel: it comes from the present care-of address. That agent has lost its state,
/// and would return the packet again (RFC 5944, section 4.2.3).
const RETURNED_BY_CARE_OF: Reason = Reason("returned_by_care_of_address");

impl HomeAgent {
    /// Handles a packet that is in a tunnel to a mobile node. Out of a special tunnel, whose inner destination is the same, it
    /// is sent to the present care-of address, unless it comes from there. In both cases, its sender is informed of the care-of
    /// address if it is a correspondent (section 9.5). Other packets are forwarded as usual.
    pub(super) fn special(&mut self, now: Instant, rx: Rx, packet: Packet, out: &mut Outbox) {
        let host = rx.header.dst;
        let bindings = self.homes.get(&host).map_or(&[][..], Home::bindings);
        let inner = tunnel::decapsulate(&packet.bytes).ok().and_then(|(_, inner)| {
            let header = ipv4::Header::parse(&inner).ok()?.0;
            (header.dst == host).then(|| (header.src, inner.into_owned()))
        });
        let Some((sender, inner)) = inner.filter(|_| !bindings.is_empty()) else {
            return out.pass(rx, packet);
        };
        if bindings.iter().any(|binding| binding.care_of == rx.header.src) {
            // The route of other packets notifies this role of their senders.
            self.inform(now, host, sender, out);
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
