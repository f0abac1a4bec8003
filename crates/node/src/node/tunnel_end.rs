//! The ends of tunnels: packets enter and leave a tunnel at a node.

use crate::input::{Input, Rx};
use crate::node::drop;
use crate::node::forward::{FROM_HOST, Path, datagram, fragments};
use crate::{Node, Outbox};
use table::{Class, Encap, PuntReason, decide, decide_opened};
use wire::ipv4::{self, Header};
use wire::{Instant, Packet, fragment, tunnel};

impl Node {
    /// Puts a packet into a tunnel, and sends the outer packet.
    pub(super) fn enter(
        &mut self,
        now: Instant,
        way: Path,
        encap: Encap,
        mut packet: Packet,
        out: &mut Outbox,
    ) {
        let (id, inner_len) = (self.outer_id(&packet.bytes), ipv4::total_len(&packet.bytes));
        let enclosed = tunnel::enclose(encap.kind, &mut packet.bytes, encap.src, encap.dst, id);
        let header = match enclosed.and_then(|()| Header::parse(&packet.bytes)) {
            Ok((header, _)) => header,
            Err(malformed) => return drop(out, way.port.iface, packet, malformed.into()),
        };
        let verdict = decide(self, now, FROM_HOST, &datagram(&header, &packet));
        // If the tunnel's first link is narrower than the tunnel, the inner packet is cut, and not the outer one. So
        // the exit need not reassemble (RFC 2003, section 3.1).
        let room = verdict.cut.map(|mtu| mtu.saturating_sub(encap.kind.overhead_of_fragment() as u16));
        let room = room.map(|room| room.max(fragment::SMALLEST as u16));
        match room.filter(|room| inner_len > usize::from(*room)) {
            Some(room) => self.enter_cut(now, way, encap, room, packet, out),
            None => self.follow_own(now, (way.depth + 1, way.origin), verdict, &header, packet, out),
        }
    }

    /// Cuts the packet inside of `outer` into fragments of at most `room` bytes, and puts each into the tunnel.
    fn enter_cut(
        &mut self,
        now: Instant,
        way: Path,
        encap: Encap,
        room: u16,
        outer: Packet,
        out: &mut Outbox,
    ) {
        let inner = tunnel::decapsulate(&outer.bytes).map(|(_, inner)| inner.into_owned());
        let pieces = match inner {
            Ok(bytes) => fragments(Packet { bytes, ..outer }, room),
            Err(malformed) => Err((outer, malformed)),
        };
        match pieces {
            Ok(pieces) => pieces.for_each(|piece| self.enter(now, way, encap, piece, out)),
            Err((packet, malformed)) => drop(out, way.port.iface, packet, malformed.into()),
        }
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

    /// Takes a packet out of a tunnel, and forwards it in `class`, or gives it to the role that intercepts it.
    pub(super) fn open(
        &mut self,
        now: Instant,
        way: Path,
        class: Class,
        mut packet: Packet,
        out: &mut Outbox,
    ) {
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
}
