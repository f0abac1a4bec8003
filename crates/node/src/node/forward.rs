//! Forwarding of packets for which no role listens: routes, tunnels and next hops.

use crate::input::{Input, Rx};
use crate::node::neighbor::Interface;
use crate::waiting::Origin;
use crate::{Act, Node, Outbox};
use crate::{node::drop, reason};
use table::{Class, Datagram, Disposition, Found, Hop, IngressPolicy, NextHop, Port, RoleId};
use table::{Notice, PuntReason, Rules, Verdict, decide};
use wire::ipv4::{self, Header};
use wire::{EtherType, Iface, Instant, Ipv4Addr, Mac, Malformed, Packet, fragment};

/// The number of times that one packet may enter or leave a tunnel at one node, in total.
const DEPTH: u8 = 2;

/// The port of packets that this host sends.
pub(super) const FROM_HOST: Port = Port { iface: Iface::HOST, from: None };

/// The state of a packet on its path through the node.
#[derive(Clone, Copy)]
pub(super) struct Path {
    pub(super) port: Port,
    /// The outer source and destination of the last tunnel out of which the packet came.
    pub(super) tunnel: Option<(Ipv4Addr, Ipv4Addr)>,
    pub(super) depth: u8,
    pub(super) origin: Origin,
}

/// The look-ups of [`decide`]. A data path with a copy of the rules must answer them in the same way.
impl Rules for Node {
    fn ingress_policy(&self, port: Port) -> (RoleId, IngressPolicy) {
        self.rules.ingress_policy(port)
    }
    fn route(&self, now: Instant, class: Class, src: Ipv4Addr, dst: Ipv4Addr) -> Option<Found> {
        self.rules.find_route(now, class, src, dst, self.is_own(dst))
    }
    fn reverse_path(&self, now: Instant, class: Class, host: Ipv4Addr) -> Option<Found> {
        self.rules.reverse_path(now, class, host)
    }
    fn is_own(&self, address: Ipv4Addr) -> bool {
        self.addresses.contains(&address)
    }
    fn mtu(&self, iface: Iface) -> u16 {
        Interface::find(&self.ifaces, iface).map_or(u16::MAX, |own| own.mtu)
    }
}

impl Node {
    /// Forwards a packet as the table decides.
    pub(crate) fn forward(
        &mut self,
        now: Instant,
        port: Port,
        header: &Header,
        packet: Packet,
        out: &mut Outbox,
    ) {
        let verdict = decide(self, now, port, &datagram(header, &packet));
        let origin = if port.iface == Iface::HOST { Origin::Host } else { Origin::Forwarded };
        self.follow(now, Path { port, tunnel: None, depth: 0, origin }, verdict, header, packet, out);
    }

    /// Sends a packet of a role as the table decides.
    pub(crate) fn send_routed(&mut self, now: Instant, packet: Packet, out: &mut Outbox) {
        self.send_own(now, 0, Origin::of_role(&packet), packet, out);
    }

    /// Sends a packet by an interface. If an IPv4 packet has no destination link address, and the interface uses ARP,
    /// ARP finds the neighbor for the packet's destination.
    pub(crate) fn send_by(&mut self, now: Instant, iface: Iface, packet: Packet, out: &mut Outbox) {
        let unaddressed = packet.link.dst == Mac::ZERO && packet.link.kind == EtherType::IPV4;
        match ipv4::addresses(&packet.bytes).filter(|_| unaddressed && self.speaks_arp(iface)) {
            Some((_, dst)) => {
                let origin = Origin::of_role(&packet);
                self.send_to_neighbor(now, iface, dst, origin, packet, out);
            }
            None => self.transmit(iface, packet, out),
        }
    }

    /// Sends a packet to this host's own stack if it is addressed to this host, otherwise drops it. A fragment, for
    /// example out of a tunnel, is sent with its whole datagram.
    pub(crate) fn give_to_host(
        &mut self,
        now: Instant,
        iface: Iface,
        header: &Header,
        packet: Packet,
        out: &mut Outbox,
    ) {
        if self.reassembles(header) {
            if let Some(whole) = self.reassemble(now, iface, packet, out) {
                out.act(RoleId::NODE, Act::Transmit(Iface::HOST, whole));
            }
        } else if self.addresses.contains(&header.dst) {
            out.act(RoleId::NODE, Act::Transmit(Iface::HOST, packet));
        } else {
            drop(out, iface, packet, reason::NO_ROUTE);
        }
    }

    pub(super) fn send_own(
        &mut self,
        now: Instant,
        depth: u8,
        origin: Origin,
        packet: Packet,
        out: &mut Outbox,
    ) {
        match Header::parse(&packet.bytes) {
            Ok((header, _)) => {
                let verdict = decide(self, now, FROM_HOST, &datagram(&header, &packet));
                self.follow_own(now, (depth, origin), verdict, &header, packet, out);
            }
            Err(malformed) => drop(out, Iface::HOST, packet, malformed.into()),
        }
    }

    pub(super) fn follow_own(
        &mut self,
        now: Instant,
        (depth, origin): (u8, Origin),
        mut verdict: Verdict,
        header: &Header,
        packet: Packet,
        out: &mut Outbox,
    ) {
        if depth > 0 {
            // The owner of a route was notified of the inner packet, if at all.
            verdict.notice = None;
            if let Some(error) = verdict.icmp.take() {
                self.tell_inner_sender(now, error, &packet, out);
            }
        }
        let way = Path { port: FROM_HOST, tunnel: None, depth, origin };
        self.follow(now, way, verdict, header, packet, out);
    }

    pub(super) fn follow(
        &mut self,
        now: Instant,
        way: Path,
        verdict: Verdict,
        header: &Header,
        mut packet: Packet,
        out: &mut Outbox,
    ) {
        for entry in verdict.used.iter().flatten() {
            self.rules.used(*entry, now);
        }
        let iface = way.port.iface;
        if let Some(error) = verdict.icmp {
            self.tell_sender(now, iface, error, &packet, out);
        }
        let passes_on = matches!(verdict.disposition, Disposition::Out(_) | Disposition::Encap(_));
        if passes_on && verdict.ttl && !ipv4::decrement_ttl(&mut packet.bytes) {
            return drop(out, iface, packet, reason::TTL_EXPIRED);
        }
        if let Some(notice) = verdict.notice {
            self.notice(now, notice, &way, header, out);
        }
        match verdict.cut {
            Some(mtu) => self.cut(now, way, verdict.disposition, mtu, header, packet, out),
            None => self.dispose(now, way, verdict.disposition, header, packet, out),
        }
    }

    /// Notifies the owner of a route of a packet that the route forwards, unless it was notified of such a packet in
    /// this interval.
    pub(super) fn notice(
        &mut self,
        now: Instant,
        notice: Notice,
        way: &Path,
        header: &Header,
        out: &mut Outbox,
    ) {
        let owner = self.roles.get(usize::from(notice.owner.0));
        let most = owner.map_or(0, |role| role.most_notices());
        if self.net().notices.is_due(now, notice, (header.src, header.dst), most) {
            let rx =
                Rx { iface: way.port.iface, why: PuntReason::Action, tunnel: way.tunnel, header: *header };
            self.give(now, notice.owner, Input::Notice(rx), out);
        }
    }

    /// Cuts a packet into fragments of at most `mtu` bytes, and forwards each.
    #[expect(clippy::too_many_arguments, reason = "the arguments of `dispose`, and the MTU")]
    fn cut(
        &mut self,
        now: Instant,
        way: Path,
        disposition: Disposition,
        mtu: u16,
        header: &Header,
        packet: Packet,
        out: &mut Outbox,
    ) {
        match fragments(packet, mtu) {
            Ok(pieces) => {
                pieces.for_each(|piece| self.dispose(now, way, disposition, header, piece, out));
            }
            Err((packet, malformed)) => drop(out, way.port.iface, packet, malformed.into()),
        }
    }

    /// Executes a disposition. Forwarding has already decremented the time to live, and the packet fits the next link
    /// or tunnel.
    fn dispose(
        &mut self,
        now: Instant,
        way: Path,
        disposition: Disposition,
        header: &Header,
        mut packet: Packet,
        out: &mut Outbox,
    ) {
        let iface = way.port.iface;
        match disposition {
            Disposition::Host if let Some(role) = self.local_listener(&way, header, &packet) => {
                let rx = Rx::new(iface, PuntReason::Listen, *header);
                self.give(now, role, Input::Packet(rx, packet), out);
            }
            Disposition::Host => self.give_to_host(now, iface, header, packet, out),
            Disposition::Out(Hop { iface, to }) => match to {
                NextHop::Mac(mac) => {
                    packet.link.dst = mac;
                    self.transmit(iface, packet, out);
                }
                NextHop::Via(router) => self.send_to_neighbor(now, iface, router, way.origin, packet, out),
                NextHop::OnLink => self.send_to_neighbor(now, iface, header.dst, way.origin, packet, out),
            },
            Disposition::Encap(_) | Disposition::Open(_) if way.depth >= DEPTH => {
                drop(out, iface, packet, reason::TUNNEL_DEPTH);
            }
            Disposition::Encap(encap) => self.enter(now, way, encap, packet, out),
            Disposition::Open(class) => self.open(now, way, class, packet, out),
            Disposition::Punt(_, PuntReason::Check) if !self.rules.may_punt(now, way.port) => {
                drop(out, iface, packet, reason::PUNT_LIMIT);
            }
            Disposition::Punt(role, why) => {
                let rx = Rx { iface, why, tunnel: way.tunnel, header: *header };
                self.give(now, role, Input::Packet(rx, packet), out);
            }
            Disposition::Drop(reason) => drop(out, iface, packet, reason),
        }
    }

    /// Returns the role that listens for a packet which this host sends to one of its own addresses, for example a foreign
    /// agent to a home agent on the same host. `None` if no role listens, or if the packet is another one. TCP within the
    /// host is the matter of its own stack.
    fn local_listener(&self, way: &Path, header: &Header, packet: &Packet) -> Option<RoleId> {
        let is_local = way.port.iface == Iface::HOST && way.tunnel.is_none() && self.is_own(header.dst);
        let may = is_local && header.protocol != ipv4::TCP;
        may.then(|| self.listener(Iface::HOST, header, ipv4::payload(&packet.bytes), 0)).flatten()
    }

    // --- links -----------------------------------------------------------------------------------------------------

    /// Passes a packet to the driver. The link address of the interface becomes the source of the frame.
    pub(crate) fn transmit(&self, iface: Iface, mut packet: Packet, out: &mut Outbox) {
        if let Some(own) = Interface::find(&self.ifaces, iface) {
            packet.link.src = own.mac;
        }
        out.act(RoleId::NODE, Act::Transmit(iface, packet));
    }
}

/// Cuts a packet into fragments of at most `mtu` bytes. A fragment keeps the identity of its packet: the ledger counts it
/// as a copy. The error has the packet, and the reason why it cannot be cut.
pub(super) fn fragments(
    mut packet: Packet,
    mtu: u16,
) -> Result<impl Iterator<Item = Packet>, (Packet, Malformed)> {
    match fragment::cut_off(&mut packet.bytes, mtu) {
        Ok(later) => {
            let (link, id) = (packet.link, packet.id);
            let later = later.into_iter().map(move |bytes| Packet { link, id, bytes });
            Ok(std::iter::once(packet).chain(later))
        }
        Err(malformed) => Err((packet, malformed)),
    }
}

pub(super) fn datagram(header: &Header, packet: &Packet) -> Datagram {
    Datagram::new(header, ipv4::total_len(&packet.bytes))
}

#[cfg(test)]
#[path = "forward_tests.rs"]
mod tests;
