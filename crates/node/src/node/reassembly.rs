//! Reassembly of fragments that are addressed to this host (RFC 791, section 3.2; RFC 2003, section 3.1). They are of
//! datagrams for its own stack, and of outer datagrams of tunnels that end here.

use crate::input::{Listen, Proto};
use crate::{Node, Outbox, node::drop, reason};
use wire::fragment::{Added, Ended};
use wire::ipv4::Header;
use wire::{IcmpError, Iface, Instant, Mac, Packet, PacketId};

impl Node {
    /// Returns whether this node reassembles a received fragment before it does anything else with it: the fragment is
    /// addressed to this host. Exception: a role that listens for the protocol itself gets the fragments.
    pub(crate) fn reassembles(&self, header: &Header) -> bool {
        let raw = Listen::Local(Proto::Ip(header.protocol));
        header.is_fragment()
            && self.addresses.contains(&header.dst)
            && !self.roles.iter().any(|role| role.listens().contains(&raw))
    }

    /// Adds a fragment. Returns the datagram if it is complete now, in place of this fragment. The other fragments end.
    pub(crate) fn reassemble(
        &mut self,
        now: Instant,
        iface: Iface,
        packet: Packet,
        out: &mut Outbox,
    ) -> Option<Packet> {
        self.time_out_fragments(now, out);
        let Added { whole, ended } = match self.net().fragments.add(now, &packet.bytes, (iface, packet.id)) {
            Ok(added) => added,
            Err(malformed) => {
                drop(out, iface, packet, malformed.into());
                return None;
            }
        };
        for (fragment, how) in ended {
            let reason = match how {
                Ended::Joined => reason::REASSEMBLED,
                Ended::Copied => reason::FRAGMENT_COPY,
                Ended::Misfit => reason::FRAGMENT_OVERLAP,
                Ended::NoRoom => reason::REASSEMBLY_FULL,
            };
            drop_fragment(fragment, reason, out);
        }
        Some(Packet { bytes: whole?, ..packet })
    }

    /// Drops the fragments of datagrams that did not become complete in time. The sender of a datagram gets an ICMP
    /// error if the first fragment has arrived (RFC 792).
    pub(crate) fn time_out_fragments(&mut self, now: Instant, out: &mut Outbox) {
        let Some(net) = &mut self.net else { return };
        for over in net.fragments.time_out(now) {
            let iface = over.fragments.first().map_or(Iface::HOST, |(iface, _)| *iface);
            for fragment in over.fragments {
                drop_fragment(fragment, reason::REASSEMBLY_TIMEOUT, out);
            }
            if let Some(first) = over.first {
                let about = Packet::new(Mac::ZERO, first);
                self.tell_sender(now, iface, IcmpError::ReassemblyTimeExceeded, &about, out);
            }
        }
    }
}

/// Drops a fragment whose bytes were copied to its datagram.
fn drop_fragment((iface, id): (Iface, PacketId), reason: wire::Reason, out: &mut Outbox) {
    drop(out, iface, Packet { id, ..Packet::new(Mac::ZERO, Vec::new()) }, reason);
}

#[cfg(test)]
#[path = "reassembly_tests.rs"]
mod tests;
