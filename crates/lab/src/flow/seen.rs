//! Transports as seen where each host's stack meets its node: what was sent, sent again, delivered and lost.
//!
//! A [`Path`] is one direction between two ports of two hosts. Of a stream of bytes it knows the place of each piece in
//! the stream, so that what is new at the receiver can be told from what it already holds.

use super::Transport;
use crate::Plan;
use crate::control::Control;
use crate::segment;
use sctp::message::Chunk;
use std::collections::{BTreeMap, BTreeSet};
use tcp::Flags;
use trace::{HostId, Record, What};
use wire::ipv4::Header;
use wire::{Iface, Instant, Ipv4Addr, Packet, PacketId, SocketAddrV4, ipv4, udp};

/// One end of a path: a host and a port, whichever address it uses.
pub(super) type Port = (HostId, u16);

/// One transmission of a packet with data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sending {
    pub(crate) at: Instant,
    pub(crate) packet: PacketId,
    /// Nothing in it was ever sent before.
    pub(crate) is_new: bool,
}

/// One packet with data in the hands of the receiver's stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery {
    pub(crate) at: Instant,
    pub(crate) host: HostId,
    pub(crate) packet: PacketId,
    /// Bytes that the receiver may now read; 0 for what fills no gap at the front.
    pub(crate) advance: u64,
    /// The receiver held all of it already.
    pub(crate) is_held: bool,
}

/// One direction between two ports.
#[derive(Clone, Debug)]
pub(super) struct Path {
    pub(super) transport: Transport,
    pub(super) from: Port,
    pub(super) to: Port,
    pub(super) from_at: SocketAddrV4,
    pub(super) to_at: SocketAddrV4,
    pub(super) begun: Instant,
    /// The stream's first number.
    base: u32,
    /// Where the stream ends, as far as it was ever sent.
    pub(super) high: u64,
    /// Where each piece ends, and when it was first sent: in the order of the stream.
    pub(super) pieces: Vec<(u64, Instant)>,
    pub(super) sendings: Vec<Sending>,
    pub(super) retransmissions: u64,
    pub(super) deliveries: Vec<Delivery>,
    /// All before this place was delivered.
    pub(super) next: u64,
    beyond: BTreeMap<u64, u64>,
    fin: Option<u64>,
    pub(super) finished: Option<Instant>,
    pub(super) reset: Option<Instant>,
    /// A connection that was asked for and refused.
    pub(super) refused: bool,
    answered: bool,
}

/// All paths of a run, and what became of each packet.
pub(super) struct Seen {
    owners: BTreeMap<Ipv4Addr, HostId>,
    pub(super) paths: Vec<Path>,
    by_ports: BTreeMap<(Transport, Port, Port), usize>,
    /// The path of a packet with data, and its part of the stream.
    packets: BTreeMap<PacketId, (usize, u64, u64)>,
    app_sent: BTreeSet<PacketId>,
    /// When an application was handed a datagram, or a stack a packet of a stream, and where.
    pub(super) delivered: BTreeMap<PacketId, Vec<(Instant, HostId)>>,
    /// When and where it left its origin.
    pub(super) sent: BTreeMap<PacketId, Vec<(Instant, HostId)>>,
    dropped: BTreeMap<PacketId, Vec<Instant>>,
    held: BTreeSet<PacketId>,
    /// Hosts with programs that no daemon speaks for.
    programs: BTreeSet<HostId>,
    known: BTreeSet<PacketId>,
}

impl Seen {
    pub(super) fn new(plan: &Plan, records: &[Record]) -> Self {
        let hosts = (0..).map(HostId).zip(&plan.hosts);
        let programs = hosts.filter(|(_, host)| !host.programs.is_empty()).map(|(id, _)| id).collect();
        let mut seen = Self {
            owners: plan.owners(),
            paths: Vec::new(),
            by_ports: BTreeMap::new(),
            packets: BTreeMap::new(),
            app_sent: BTreeSet::new(),
            delivered: BTreeMap::new(),
            sent: BTreeMap::new(),
            dropped: BTreeMap::new(),
            held: BTreeSet::new(),
            programs,
            known: BTreeSet::new(),
        };
        for record in records {
            seen.note(record);
        }
        seen
    }

    /// Packets of this path that were lost, and when: more copies left than ever arrived.
    pub(super) fn lost(&self, path: usize) -> Vec<(Instant, PacketId)> {
        let mut lost = Vec::new();
        let mine = self.packets.iter().filter(|(_, (of, ..))| *of == path);
        for (id, _) in mine {
            let sent = self.sent.get(id).map_or(0, Vec::len);
            let arrived = self.delivered.get(id).map_or(0, Vec::len);
            let missing = sent.saturating_sub(arrived);
            let drops = self.dropped.get(id).map_or(&[][..], Vec::as_slice);
            let is_datagram = self.paths.get(path).is_some_and(|path| path.transport == Transport::Udp);
            if is_datagram {
                // A datagram is given up when the last of its copies was last heard of.
                if arrived == 0 && !self.held.contains(id) {
                    let sent = self.sent.get(id).and_then(|all| all.first()).map(|(at, _)| *at);
                    lost.extend(drops.last().copied().or(sent).map(|at| (at, *id)));
                }
            } else {
                lost.extend(drops.iter().take(missing).map(|at| (*at, *id)));
            }
        }
        lost.sort_unstable();
        lost
    }

    /// When copies of packets of this path arrived that were not needed: more than were sent.
    pub(super) fn doubles(&self, path: usize) -> Vec<Instant> {
        let mine = self.packets.iter().filter(|(_, (of, ..))| *of == path).map(|(id, _)| id);
        let mut doubles: Vec<Instant> = mine
            .flat_map(|id| {
                let sent = self.sent.get(id).map_or(1, Vec::len).max(1);
                self.delivered.get(id).into_iter().flatten().skip(sent).map(|(at, _)| *at)
            })
            .collect();
        doubles.sort_unstable();
        doubles
    }

    fn note(&mut self, record: &Record) {
        let (at, host) = (record.at, record.host);
        match &record.what {
            What::AppSent(id) => {
                self.app_sent.insert(*id);
            }
            What::AppReceived(id) => self.datagram_in(at, host, *id),
            What::Received(Iface::HOST, packet) => self.note_from_stack(at, host, packet),
            What::Sent(Iface::HOST, packet) => self.note_to_stack(at, host, packet),
            What::Sent(_, packet) if self.known.insert(packet.id) => self.note_from_role(at, host, packet),
            What::Dropped(_, id, reason)
                if *reason == node::reason::CONSUMED.0 && self.packets.contains_key(id) =>
            {
                self.deliver(at, host, *id);
            }
            What::Dropped(_, id, _) | What::Lost(_, id, _) if self.packets.contains_key(id) => {
                self.dropped.entry(*id).or_default().push(at);
            }
            What::Held(_, id) => {
                self.held.insert(*id);
            }
            _ => {}
        }
    }

    fn note_from_stack(&mut self, at: Instant, host: HostId, packet: &Packet) {
        self.known.insert(packet.id);
        match ipv4::protocol(&packet.bytes) {
            Some(ipv4::UDP) => self.datagram_out(at, host, packet),
            Some(tcp::PROTOCOL) => self.segment_out(at, host, packet),
            _ => {}
        }
    }

    fn datagram_out(&mut self, at: Instant, host: HostId, packet: &Packet) {
        let from_app = self.app_sent.contains(&packet.id);
        if !(from_app || self.programs.contains(&host)) || Control::of(packet).is_some() {
            return;
        }
        let Ok((ip, payload)) = Header::parse(&packet.bytes) else { return };
        let Ok(datagram) = udp::Datagram::parse(payload, ip.src, ip.dst) else { return };
        let (from, to) =
            (SocketAddrV4::new(ip.src, datagram.src_port), SocketAddrV4::new(ip.dst, datagram.dst_port));
        let Some(index) = self.path(at, Transport::Udp, from, to) else { return };
        let Some(path) = self.paths.get_mut(index) else { return };
        let start = path.high;
        path.high += datagram.payload.len() as u64;
        path.pieces.push((path.high, at));
        let end = path.high;
        path.sendings.push(Sending { at, packet: packet.id, is_new: true });
        self.packets.insert(packet.id, (index, start, end));
        self.sent.entry(packet.id).or_default().push((at, host));
    }

    fn datagram_in(&mut self, at: Instant, host: HostId, id: PacketId) {
        let Some((index, start, end)) = self.packets.get(&id).copied() else { return };
        let arrived = self.delivered.entry(id).or_default();
        arrived.push((at, host));
        let advance = if arrived.len() == 1 { end - start } else { 0 };
        if let Some(path) = self.paths.get_mut(index) {
            let is_held = arrived.len() > 1;
            path.deliveries.push(Delivery { at, host, packet: id, advance, is_held });
        }
    }

    fn segment_out(&mut self, at: Instant, host: HostId, packet: &Packet) {
        let Some(seen) = segment::of(packet) else { return };
        let (from, to, segment) = (seen.from, seen.to, &seen.segment);
        let (seq, syn) = (segment.seq.0, segment.has(Flags::SYN));
        let first = if syn { seq.wrapping_add(1) } else { seq };
        let Some(index) = self.connection(at, (from, to), first, syn) else { return };
        if segment.has(Flags::RST) {
            return self.reset(at, index, from, to);
        }
        let Some(path) = self.paths.get_mut(index) else { return };
        path.answered |= segment.has(Flags::ACK);
        let start = path.place(first);
        let end = start + segment.payload.len() as u64;
        if segment.has(Flags::FIN) {
            path.fin = Some(end);
        }
        if end > start {
            path.transmit(at, packet.id, start, end);
        }
        if end > start || segment.has(Flags::FIN) {
            self.packets.insert(packet.id, (index, start, end));
            self.sent.entry(packet.id).or_default().push((at, host));
        }
    }

    /// A reset ends both directions; of a connection that never answered it is a refusal.
    fn reset(&mut self, at: Instant, index: usize, from: SocketAddrV4, to: SocketAddrV4) {
        let back = self.find(Transport::Tcp, to, from);
        for index in [Some(index), back].into_iter().flatten() {
            if let Some(path) = self.paths.get_mut(index) {
                path.reset = path.reset.or(Some(at));
                path.refused |= !path.answered && path.high == 0;
            }
        }
    }

    /// A role's own packet: SCTP passes no stack.
    fn note_from_role(&mut self, at: Instant, host: HostId, packet: &Packet) {
        let Some(sctp) = segment::sctp_of(packet) else { return };
        let Some((src, dst)) = ipv4::addresses(&packet.bytes) else { return };
        let data: Vec<(u32, u64)> = sctp
            .chunks
            .iter()
            .filter_map(|chunk| match chunk {
                Chunk::Data(data) => Some((data.tsn, data.data.len() as u64)),
                _ => None,
            })
            .collect();
        let Some((first, _)) = data.first() else { return };
        let (from, to) = (SocketAddrV4::new(src, sctp.src_port), SocketAddrV4::new(dst, sctp.dst_port));
        let Some(index) = self.path(at, Transport::Sctp, from, to) else { return };
        let Some(path) = self.paths.get_mut(index) else { return };
        if path.sendings.is_empty() {
            path.base = *first;
        }
        // The place of a chunk is its number: the bytes before it are summed up when all are known.
        let start = path.place(*first);
        let end = start + data.len() as u64;
        for (tsn, bytes) in &data {
            let place = path.place(*tsn);
            if place >= path.pieces.len() as u64 {
                path.pieces.push((*bytes, at));
            }
        }
        let is_new = start >= path.high;
        path.retransmissions += u64::from(!is_new);
        path.high = path.high.max(end);
        path.sendings.push(Sending { at, packet: packet.id, is_new });
        self.packets.insert(packet.id, (index, start, end));
        self.sent.entry(packet.id).or_default().push((at, host));
    }

    fn note_to_stack(&mut self, at: Instant, host: HostId, packet: &Packet) {
        let Some((index, ..)) = self.packets.get(&packet.id).copied() else { return };
        match self.paths.get(index).map(|path| (path.transport, path.to)) {
            // An application says itself when it has a datagram; a program does not.
            Some((Transport::Udp, to)) if to.0 == host && self.programs.contains(&host) => {
                self.datagram_in(at, host, packet.id);
            }
            Some((Transport::Tcp, _)) => self.deliver(at, host, packet.id),
            _ => {}
        }
    }

    fn deliver(&mut self, at: Instant, host: HostId, id: PacketId) {
        let Some((index, start, end)) = self.packets.get(&id).copied() else { return };
        self.delivered.entry(id).or_default().push((at, host));
        if let Some(path) = self.paths.get_mut(index) {
            path.receive(at, host, id, start, end);
        }
    }

    fn find(&self, transport: Transport, from: SocketAddrV4, to: SocketAddrV4) -> Option<usize> {
        let ports = self.ports(from, to)?;
        self.by_ports.get(&(transport, ports.0, ports.1)).copied()
    }

    fn ports(&self, from: SocketAddrV4, to: SocketAddrV4) -> Option<(Port, Port)> {
        let owner = |at: SocketAddrV4| self.owners.get(at.ip()).map(|host| (*host, at.port()));
        Some((owner(from)?, owner(to)?))
    }

    fn path(
        &mut self,
        at: Instant,
        transport: Transport,
        from: SocketAddrV4,
        to: SocketAddrV4,
    ) -> Option<usize> {
        if let Some(index) = self.find(transport, from, to) {
            return Some(index);
        }
        let ports = self.ports(from, to)?;
        self.by_ports.insert((transport, ports.0, ports.1), self.paths.len());
        self.paths.push(Path::new(transport, ports, [from, to], at));
        Some(self.paths.len() - 1)
    }

    /// The path of a segment. A SYN with another number begins another connection between the same ports.
    fn connection(
        &mut self,
        at: Instant,
        (from, to): (SocketAddrV4, SocketAddrV4),
        first: u32,
        syn: bool,
    ) -> Option<usize> {
        let known = self.find(Transport::Tcp, from, to);
        let fresh = match known.and_then(|index| self.paths.get(index)) {
            Some(path) => syn && path.base != first,
            None => true,
        };
        if fresh {
            let ports = self.ports(from, to)?;
            self.by_ports.remove(&(Transport::Tcp, ports.0, ports.1));
        }
        let index = self.path(at, Transport::Tcp, from, to)?;
        if fresh && let Some(path) = self.paths.get_mut(index) {
            path.base = first;
        }
        Some(index)
    }
}

impl Path {
    fn new(transport: Transport, ports: (Port, Port), at: [SocketAddrV4; 2], begun: Instant) -> Self {
        Self {
            transport,
            from: ports.0,
            to: ports.1,
            from_at: at[0],
            to_at: at[1],
            begun,
            base: 0,
            high: 0,
            pieces: Vec::new(),
            sendings: Vec::new(),
            retransmissions: 0,
            deliveries: Vec::new(),
            next: 0,
            beyond: BTreeMap::new(),
            fin: None,
            finished: None,
            reset: None,
            refused: false,
            answered: false,
        }
    }

    /// The place of a number in the stream, which may be longer than the numbers are many.
    fn place(&self, number: u32) -> u64 {
        let from_base = number.wrapping_sub(self.base);
        let ahead = from_base.wrapping_sub(self.high as u32).cast_signed();
        self.high.saturating_add_signed(i64::from(ahead))
    }

    fn transmit(&mut self, at: Instant, packet: PacketId, start: u64, end: u64) {
        let is_new = start >= self.high;
        self.retransmissions += u64::from(!is_new);
        if end > self.high {
            self.high = end;
            self.pieces.push((end, at));
        }
        self.sendings.push(Sending { at, packet, is_new });
    }

    fn receive(&mut self, at: Instant, host: HostId, packet: PacketId, start: u64, end: u64) {
        let before = self.next;
        let is_held = end > start && (end <= self.next || self.holds(start, end));
        let held = self.beyond.entry(start).or_default();
        *held = (*held).max(end);
        while let Some((from, to)) = self.beyond.first_key_value().map(|(from, to)| (*from, *to)) {
            if from > self.next {
                break;
            }
            self.next = self.next.max(to);
            self.beyond.pop_first();
        }
        if end > start {
            let advance = self.next - before;
            self.deliveries.push(Delivery { at, host, packet, advance, is_held });
        }
        if self.fin == Some(self.next) {
            self.finished = self.finished.or(Some(at));
        }
    }

    /// Whether the receiver has this part beyond a gap.
    fn holds(&self, start: u64, end: u64) -> bool {
        let mut place = start.max(self.next);
        for (from, to) in &self.beyond {
            if *from <= place {
                place = place.max(*to);
            }
        }
        place >= end
    }

    /// Where each piece ends in bytes, and when it was first sent. Of SCTP the places are numbers of chunks.
    pub(super) fn offered(&self) -> Vec<(u64, Instant)> {
        if self.transport != Transport::Sctp {
            return self.pieces.clone();
        }
        let mut end = 0;
        let piece = |(bytes, at): &(u64, Instant)| {
            end += bytes;
            (end, *at)
        };
        self.pieces.iter().map(piece).collect()
    }
}
