//! The reverse tunnel of a mobile node with a co-located care-of address: it puts its packets into a tunnel to the home
//! agent itself (RFC 3024, section 4.1.2). Otherwise a network that drops packets with foreign source addresses would drop
//! them.

use super::{DEFAULT_ROUTE, MobileNode};
use crate::encapsulation;
use crate::message::RequestFlags;
use crate::tunnels::NOT_ABOUT_A_TUNNEL;
use node::{Action, Lifetime, Outbox, Route, RouteKey, Rx};
use wire::icmp::{self, Quote};
use wire::tunnel::Kind;
use wire::{Iface, Instant, Ipv4Addr, Mac, Packet, Prefix, Reason};

/// A reverse tunnel that begins at this host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Reverse {
    care_of: Ipv4Addr,
    home_agent: Ipv4Addr,
    kind: Kind,
    /// How packets from the care-of address itself are forwarded, for example the outer datagrams.
    way: Action,
}

impl MobileNode {
    /// Sends this host's own packets through a tunnel from the co-located care-of address to the home agent, if the
    /// registration asked for it. Packets whose source is the care-of address are not in the tunnel. Returns whether the
    /// registration has such a tunnel.
    pub(super) fn reverse_directly(&mut self, out: &mut Outbox) -> bool {
        let flags = self.registrar.held_flags();
        let (Some(care_of), Some(way)) = (self.own.address(), self.own.first_hop()) else { return false };
        if self.registrar.care_of() != Some(care_of) || !flags.has(RequestFlags::REVERSE) {
            return false;
        }
        let home_agent = self.registrar.home_agent();
        let reverse = Reverse { care_of, home_agent, kind: encapsulation::kind(flags), way };
        if self.reverse != Some(reverse) {
            self.end_reverse(out);
            self.reverse = Some(reverse);
            self.tunnels.rebind(None, Some(home_agent));
            out.route(from(care_of), Route::new(way, Lifetime::Permanent));
            self.adjust_reverse(out);
        } else if self.tunnels.rebind(Some(home_agent), Some(home_agent)) {
            self.adjust_reverse(out);
        }
        true
    }

    /// Returns whether there is a reverse tunnel from the present care-of address, whose datagrams are forwarded by `way`.
    pub(super) fn is_reversed(&self, way: Action) -> bool {
        self.reverse.is_some_and(|known| self.own.address() == Some(known.care_of) && known.way == way)
    }

    /// Sets the reverse tunnel to what is known now about its path. Does nothing without one.
    pub(super) fn adjust_reverse(&self, out: &mut Outbox) {
        let Some(Reverse { care_of, home_agent, kind, .. }) = self.reverse else { return };
        let tunnel = Action::Tunnel(self.tunnels.encap(care_of, home_agent, kind, self.tunnel_mtu()));
        self.route(tunnel, tunnel, out);
    }

    /// Returns the largest datagram, in bytes, inside a tunnel by IP in IP through the interface.
    fn tunnel_mtu(&self) -> u16 {
        self.used.mtu.saturating_sub(Kind::IpInIp.overhead() as u16)
    }

    /// Forgets the reverse tunnel, if there is one. The caller sets the routes of this host's other packets.
    pub(super) fn end_reverse(&mut self, out: &mut Outbox) {
        if let Some(Reverse { care_of, home_agent, .. }) = self.reverse.take() {
            self.tunnels.rebind(Some(home_agent), None);
            out.route(from(care_of), None);
        }
    }

    /// Ends the use of the reverse tunnel, because the binding has ended. From now on, the router of the visited network
    /// gets this host's own packets.
    pub(super) fn stop_reverse(&mut self, out: &mut Outbox) {
        if let Some(Reverse { way, .. }) = self.reverse {
            self.end_reverse(out);
            self.route(way, way, out);
        }
    }

    /// Returns whether a packet is an ICMP error about the reverse tunnel of this host.
    pub(super) fn is_about_reverse(&self, rx: &Rx, packet: &Packet) -> bool {
        let icmp = rx.payload(packet);
        let is_error = icmp.first().is_some_and(|kind| icmp::is_error(*kind));
        let message = icmp::Message::parse(icmp).ok().filter(|_| is_error);
        let quote = message.and_then(|message| Quote::of(&message).ok());
        let ends = self.reverse.map(|reverse| (reverse.care_of, reverse.home_agent));
        quote.is_some_and(|quote| {
            Kind::of_protocol(quote.protocol).is_some() && ends == Some((quote.src, quote.dst))
        })
    }

    /// Handles an ICMP error about the reverse tunnel, as an agent does with its tunnels (RFC 2003, section 4). This host's
    /// own stack gets the error about the inner datagram.
    pub(super) fn tunnel_error(
        &mut self,
        now: Instant,
        rx: &Rx,
        packet: &Packet,
        out: &mut Outbox,
    ) -> Result<(), Reason> {
        let own = self.reverse.map(|reverse| reverse.care_of).ok_or(NOT_ABOUT_A_TUNNEL)?;
        let heard = self.tunnels.heard(now, rx.payload(packet), own, self.tunnel_mtu())?;
        if heard.is_changed {
            self.adjust_reverse(out);
        }
        if let Some((_, bytes)) = heard.error.filter(|(sender, _)| *sender == self.home) {
            out.send(Iface::HOST, Packet::new(Mac::ZERO, bytes));
        }
        Ok(())
    }
}

/// Returns the key of the route for this host's own packets from the care-of address.
const fn from(care_of: Ipv4Addr) -> RouteKey {
    RouteKey { src: Prefix::host(care_of), ..DEFAULT_ROUTE }
}
