//! Forwarding of packets for which no role listens: routes, tunnels and next hops.

use crate::input::{Input, Rx};
use crate::node::neighbor::Interface;
use crate::waiting::Origin;
use crate::{Act, Node, Outbox};
use crate::{node::drop, reason};
use table::{Class, Datagram, Disposition, Encap, Found, Hop, IngressPolicy, Kind, NextHop, Port, RoleId};
use table::{PuntReason, Rules, Verdict, decide, decide_opened};
use wire::ipv4::{self, Header};
use wire::{EtherType, Iface, Instant, Ipv4Addr, Mac, Packet, fragment, tunnel};

/// The number of times that one packet may enter or leave a tunnel at one node, in total.
const DEPTH: u8 = 2;

/// The state of a packet on its path through the node.
#[derive(Clone, Copy)]
struct Path {
    port: Port,
    /// The outer source and destination of the last tunnel out of which the packet came.
    tunnel: Option<(Ipv4Addr, Ipv4Addr)>,
    depth: u8,
    origin: Origin,
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
        let port = Port { iface: Iface::HOST, from: None };
        match Header::parse(&packet.bytes) {
            Ok((header, _)) => {
                let mut verdict = decide(self, now, port, &datagram(&header, &packet));
                if depth > 0
                    && let Some(error) = verdict.icmp.take()
                {
                    self.tell_inner_sender(now, error, &packet, out);
                }
                self.follow(now, Path { port, tunnel: None, depth, origin }, verdict, &header, packet, out);
            }
            Err(malformed) => drop(out, Iface::HOST, packet, malformed.into()),
        }
    }

    fn follow(
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
        match verdict.cut {
            Some(mtu) => self.cut(now, way, verdict.disposition, mtu, header, packet, out),
            None => self.dispose(now, way, verdict.disposition, header, packet, out),
        }
    }

    /// Cuts a packet into fragments of at most `mtu` bytes, and forwards each. A fragment keeps the identity of its
    /// packet: the ledger counts it as a copy.
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
        match fragment::pieces(&packet.bytes, mtu) {
            Ok(pieces) => {
                for bytes in pieces {
                    self.dispose(now, way, disposition, header, Packet { bytes, ..packet }, out);
                }
            }
            Err(malformed) => drop(out, way.port.iface, packet, malformed.into()),
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

    // --- tunnels ---------------------------------------------------------------------------------------------------

    fn enter(&mut self, now: Instant, way: Path, encap: Encap, mut packet: Packet, out: &mut Outbox) {
        let id = self.outer_id(&packet.bytes);
        let outer = match tunnel::encapsulate(encap.kind, &packet.bytes, encap.src, encap.dst, id) {
            Ok(bytes) => Packet { bytes, ..packet },
            Err(malformed) => return drop(out, way.port.iface, packet, malformed.into()),
        };
        // If the tunnel's first link is narrower than the tunnel, the inner packet is cut, and not the outer one. So
        // the exit need not reassemble (RFC 2003, section 3.1).
        let room = self
            .room_of_first_link(now, encap.kind, &outer)
            .filter(|room| ipv4::total_len(&packet.bytes) > *room);
        match room.map(|room| fragment::pieces(&packet.bytes, room as u16)) {
            Some(Ok(pieces)) => {
                for bytes in pieces {
                    packet.bytes = bytes;
                    self.enter(now, way, encap, packet.clone(), out);
                }
            }
            Some(Err(malformed)) => drop(out, way.port.iface, packet, malformed.into()),
            None => self.send_own(now, way.depth + 1, way.origin, outer, out),
        }
    }

    /// Returns the largest inner packet, in bytes, for the first link or tunnel that an outer packet of this node takes.
    /// Returns `None` if the outer packet fits, or may not be cut.
    fn room_of_first_link(&self, now: Instant, kind: Kind, outer: &Packet) -> Option<usize> {
        let (header, _) = Header::parse(&outer.bytes).ok()?;
        let mtu = decide(self, now, Port { iface: Iface::HOST, from: None }, &datagram(&header, outer)).cut?;
        Some(usize::from(mtu).saturating_sub(kind.overhead_of_fragment()).max(fragment::SMALLEST))
    }

    /// Returns the identification of the outer header of a packet. If the packet may be fragmented, each outer header
    /// has another one: inner packets of different senders, and the fragments of one packet, can have the same
    /// identification. Otherwise the outer header has the identification of the packet.
    fn outer_id(&mut self, inner: &[u8]) -> u16 {
        match Header::parse(inner) {
            Ok((header, _)) if header.dont_fragment => header.id,
            _ => {
                let net = self.net();
                net.outer_id = net.outer_id.wrapping_add(1);
                net.outer_id
            }
        }
    }

    fn open(&mut self, now: Instant, way: Path, class: Class, mut packet: Packet, out: &mut Outbox) {
        let (outer, inner) = match tunnel::decapsulate(&packet.bytes) {
            Ok((outer, inner)) => (outer, inner.into_owned()),
            Err(malformed) => return drop(out, way.port.iface, packet, malformed.into()),
        };
        packet.bytes = inner;
        let (header, interceptor) = match Header::parse(&packet.bytes) {
            Ok((header, payload)) => (header, self.interceptor(&header, payload)),
            Err(malformed) => return drop(out, way.port.iface, packet, malformed.into()),
        };
        if let Some(role) = interceptor {
            let rx = Rx {
                iface: way.port.iface,
                why: PuntReason::Listen,
                tunnel: Some((outer.src, outer.dst)),
                header,
            };
            return self.give(now, role, Input::Packet(rx, packet), out);
        }
        let verdict = decide_opened(self, now, way.port, class, &datagram(&header, &packet));
        let way = Path { tunnel: Some((outer.src, outer.dst)), depth: way.depth + 1, ..way };
        self.follow(now, way, verdict, &header, packet, out);
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

fn datagram(header: &Header, packet: &Packet) -> Datagram {
    Datagram::new(header, ipv4::total_len(&packet.bytes))
}

#[cfg(test)]
#[path = "forward_tests.rs"]
mod tests;
