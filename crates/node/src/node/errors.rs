//! ICMP errors about packets that this node does not forward.

use crate::input::{Input, Rx};
use crate::waiting::Origin;
use crate::{Node, Outbox};
use table::PuntReason;
use wire::ipv4::{self, Header};
use wire::{IcmpError, Iface, Instant, Mac, Packet, tunnel};

/// The largest number of ICMP errors that one node sends per second. "Fragmentation needed" does not count. RFC 1812,
/// section 4.3.2.8, recommends a limit, and does not give a number.
pub(super) const ERRORS_PER_SECOND: u16 = 10;

impl Node {
    /// Sends an ICMP error to a packet's sender. Sends nothing if no error may be sent about the packet, for example
    /// because its source is a broadcast address of a link of this node (RFC 1812, section 4.3.2.7). Also sends nothing
    /// if this node has no source address for the error, or if the limit of this second is reached. "Fragmentation
    /// needed" is exempt from the limit: packets of this size are dropped here until the sender knows the MTU.
    pub(crate) fn tell_sender(
        &mut self,
        now: Instant,
        iface: Iface,
        error: IcmpError,
        about: &Packet,
        out: &mut Outbox,
    ) {
        let on_iface = self.interface_address(iface).map(|own| own.address);
        let of_role = || self.roles.iter().find_map(|role| role.reporter());
        let own = on_iface.or_else(|| self.addresses.first().copied());
        let Some(reporter) = own.or_else(of_role) else { return };
        let Some(bytes) = error.about(&about.bytes, reporter) else { return };
        let to_all =
            |(_, to)| self.net.iter().flat_map(|net| &net.addresses).any(|(_, own)| own.is_broadcast(to));
        if ipv4::addresses(&bytes).is_some_and(to_all) {
            return;
        }
        let net = self.net();
        let second = now.0 / 1_000_000_000;
        if net.second != second {
            (net.second, net.errors) = (second, 0);
        }
        let is_limited = !matches!(error, IcmpError::FragmentationNeeded { .. });
        if !is_limited || net.errors < ERRORS_PER_SECOND {
            net.errors += u16::from(is_limited);
            // If a role listens for errors about this packet of the host, the role receives the error, as it would
            // receive the error of a router.
            if let Ok((header, payload)) = Header::parse(&bytes)
                && iface == Iface::HOST
                && let Some(role) = self.listener(iface, &header, payload, 0)
            {
                let rx = Rx::new(iface, PuntReason::Listen, header);
                return self.give(now, role, Input::Packet(rx, Packet::new(Mac::ZERO, bytes)), out);
            }
            // A sender that is away from home gets the error by a tunnel. The recursion ends, because no error is sent
            // about an error.
            self.send_own(now, 0, Origin::Host, Packet::new(Mac::ZERO, bytes), out);
        }
    }

    /// Notifies the sender of an inner packet that this node dropped the packet in a tunnel that begins here (RFC 2003,
    /// section 4).
    pub(super) fn tell_inner_sender(
        &mut self,
        now: Instant,
        error: IcmpError,
        about: &Packet,
        out: &mut Outbox,
    ) {
        let Ok((header, inner)) = tunnel::decapsulate(&about.bytes) else { return };
        if !self.addresses.contains(&header.src) {
            return;
        }
        let overhead = ipv4::total_len(&about.bytes) - ipv4::total_len(&inner);
        let error = error.through_tunnel(overhead as u16);
        let inner = Packet::new(Mac::ZERO, inner.into_owned());
        match tunnel::decapsulate(&inner.bytes) {
            Ok((entry, _)) if self.addresses.contains(&entry.src) => {
                self.tell_inner_sender(now, error, &inner, out);
            }
            _ => self.tell_sender(now, Iface::HOST, error, &inner, out),
        }
    }
}
