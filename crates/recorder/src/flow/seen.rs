//! The transport packets of a run: sent, retransmitted, delivered and lost. TCP and UDP packets are observed between a
//! host's stack and its node, SCTP packets at the node's interfaces.

use super::Transport;
use super::fragments::{Fragments, Left};
use super::packets::PacketEvent;
use super::path::{Delivery, Path, Port};
use super::stops::Stops;
use crate::decode::Control;
use crate::segment;
use mobile_ip::foreign_agent::KEPT_REASONS;
use node::{Mark, Value};
use scenario::Plan;
use sctp::message::Chunk;
use std::collections::{BTreeMap, BTreeSet};
use tcp::Flags;
use trace::{HostId, Record, What};
use wire::ipv4::Header;
use wire::{
    Duration, EtherType, Iface, Instant, Ipv4Addr, Packet, PacketId, SocketAddrV4, fragment, ipv4, udp,
};

/// All paths of a run, and the fate of each packet.
pub(super) struct Seen {
    owners: BTreeMap<Ipv4Addr, HostId>,
    pub(super) paths: Vec<Path>,
    by_ports: BTreeMap<(Transport, Port, Port), usize>,
    /// For each packet with data: the index of its path, and the begin and the end of its range in the stream.
    packets: BTreeMap<PacketId, (usize, u64, u64)>,
    /// Packets that acknowledge data, whether or not they carry data, and segments that open a connection.
    acks: BTreeMap<PacketId, Ack>,
    /// For the path of the data of an end that accepted a connection: the path in the other direction.
    accepted: BTreeMap<usize, usize>,
    /// When each segment that opens a connection was sent, by the path of the data of the end that requested it.
    opening: BTreeMap<usize, Vec<(Instant, PacketId)>>,
    app_sent: BTreeSet<PacketId>,
    /// When and where an application received a datagram, or a stack received a packet of a stream or a datagram for a
    /// program. For SCTP: when and where the role received the packet.
    pub(super) delivered: BTreeMap<PacketId, Vec<(Instant, HostId)>>,
    /// When, and from which host, a packet with data left its origin.
    pub(super) sent: BTreeMap<PacketId, Vec<(Instant, HostId)>>,
    /// When copies on their way to the receiver were lost.
    dropped: BTreeMap<PacketId, Vec<Loss>>,
    /// When an agent dropped copies that it had kept. The agent had sent other copies of these packets, or none.
    discarded: BTreeMap<PacketId, Vec<Loss>>,
    /// Packets that were held when the run ended, without the fragments of incomplete datagrams that lost a fragment. True if a
    /// link or a stack held one, and false if only nodes did.
    held: BTreeMap<PacketId, bool>,
    /// Hosts with programs. Datagrams to and from these hosts count at the stack, because programs do not report them.
    programs: BTreeSet<HostId>,
    known: BTreeSet<PacketId>,
    fragments: Fragments,
    pub(super) stops: Stops,
}

/// A packet that waited longer at a node counts as lost when the node dropped it.
const WAIT: Duration = Duration::from_mins(1);

/// The loss of a copy of a packet: see [`PacketEvent`].
#[derive(Clone, Copy)]
struct Loss {
    at: Instant,
    recorded: Instant,
}

/// A packet with an acknowledgment, or a segment that opens a connection.
struct Ack {
    /// The index of the path whose data the packet acknowledges, up to the position `place`. For a segment that opens
    /// a connection: the path of the data of the end that requested it.
    path: usize,
    place: u64,
    /// Whether the segment opens a connection (SYN).
    opens: bool,
    sent: Instant,
    arrived: bool,
    dropped: Option<Loss>,
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
            acks: BTreeMap::new(),
            accepted: BTreeMap::new(),
            opening: BTreeMap::new(),
            app_sent: BTreeSet::new(),
            delivered: BTreeMap::new(),
            sent: BTreeMap::new(),
            dropped: BTreeMap::new(),
            discarded: BTreeMap::new(),
            held: BTreeMap::new(),
            programs,
            known: BTreeSet::new(),
            fragments: Fragments::default(),
            stops: Stops::new(plan, records),
        };
        for (index, record) in records.iter().enumerate() {
            seen.note(record, records.get(..index).unwrap_or_default());
        }
        seen.end_incomplete(records);
        seen
    }

    /// Counts a datagram as lost if the run lost one of its fragments and still held others when it ended. A held
    /// fragment cannot bring such a datagram to its receiver, but a held copy of a whole datagram can.
    fn end_incomplete(&mut self, records: &[Record]) {
        let both: BTreeSet<PacketId> =
            self.held.keys().filter(|id| self.dropped.contains_key(id)).copied().collect();
        if both.is_empty() {
            return;
        }
        for Record { what, .. } in records {
            if let What::Sent(_, packet) | What::Received(_, packet) = what
                && both.contains(&packet.id)
                && packet.link.kind == EtherType::IPV4
                && fragment::is_in(&packet.bytes)
            {
                self.held.remove(&packet.id);
            }
        }
    }

    /// Returns whether a copy of a packet was on its way when the run ended. If a copy was lost, a copy at a node counts as one that
    /// the node keeps for the next agent of a mobile node.
    fn is_under_way(&self, packet: PacketId) -> bool {
        self.held.get(&packet).is_some_and(|by_link| *by_link || !self.dropped.contains_key(&packet))
    }

    /// Returns the losses of a path. A datagram is lost if no copy of it arrived or is on its way. If a packet of a stream
    /// was sent N times and arrived M times, at most its first N - M drops are losses.
    pub(super) fn lost(&self, path: usize) -> Vec<PacketEvent> {
        let mut lost = Vec::new();
        let is_datagram = self.paths.get(path).is_some_and(|path| path.transport == Transport::Udp);
        for packet in self.packets.iter().filter(|(_, (of, ..))| *of == path).map(|(id, _)| *id) {
            let sent = self.sent.get(&packet).map_or(&[][..], Vec::as_slice);
            let arrived = self.delivered.get(&packet).map_or(0, Vec::len);
            let [drops, discarded] =
                [&self.dropped, &self.discarded].map(|all| all.get(&packet).map_or(&[][..], Vec::as_slice));
            let of = |lost: Loss| self.event(packet, lost);
            if is_datagram {
                // A datagram is lost when the last copy on its way was dropped. If there was none, it is lost with the last copy
                // that was kept, or when it was sent if no drop is recorded.
                if arrived == 0 && !self.is_under_way(packet) {
                    let last = drops.last().or(discarded.last()).copied();
                    let first = sent.first().map(|(at, _)| Loss { at: *at, recorded: *at });
                    lost.extend(last.or(first).map(of));
                }
            } else {
                let all = drops.iter().chain(discarded);
                lost.extend(all.take(sent.len().saturating_sub(arrived)).copied().map(of));
            }
        }
        lost.sort_unstable();
        lost
    }

    /// Returns the packets of this path that did not arrive and were on their way when the run ended, with the time at
    /// which they were first sent: packets with data, acknowledgments of these data, and segments that open the connection.
    pub(super) fn held(&self, path: usize) -> Vec<PacketEvent> {
        let mine = self.packets.iter().filter(|(_, (of, ..))| *of == path).map(|(id, _)| *id);
        let data = mine.filter(|id| self.is_under_way(*id) && !self.delivered.contains_key(id));
        let data = data.filter_map(|id| Some((id, self.sent.get(&id)?.first()?.0)));
        let is_acks = |(id, ack): &(&PacketId, &Ack)| {
            let is_its = ack.path == path || self.opens(ack, path);
            is_its && !ack.arrived && ack.dropped.is_none() && self.held.contains_key(*id)
        };
        let acks = self.acks.iter().filter(is_acks).map(|(id, ack)| (*id, ack.sent));
        let event = |(packet, at)| PacketEvent { at, packet, sent: at, recorded: at };
        data.chain(acks).map(event).collect()
    }

    /// Returns the lost acknowledgments of this path's data, and the lost segments that open its connection.
    pub(super) fn lost_acks(&self, path: usize) -> Vec<PacketEvent> {
        let is_its = |ack: &Ack| ack.path == path || self.opens(ack, path);
        let lost = self.acks.iter().filter(|(_, ack)| is_its(ack) && !ack.arrived);
        let event = |(id, ack): (&PacketId, &Ack)| {
            let Loss { at, recorded } = ack.dropped?;
            Some(PacketEvent { at, packet: *id, sent: ack.sent, recorded })
        };
        lost.filter_map(event).collect()
    }

    /// Returns when each segment that opens this path's connection was sent, in the order of time.
    pub(super) fn opening(&self, path: usize) -> &[(Instant, PacketId)] {
        let asked = self.accepted.get(&path).copied().unwrap_or(path);
        self.opening.get(&asked).map_or(&[], Vec::as_slice)
    }

    /// Returns when each acknowledgment of this path's data was sent that waited for a stopped host.
    pub(super) fn waiting_acks(&self, path: usize) -> impl Iterator<Item = (Instant, PacketId)> {
        let acks = self.stops.packets().filter_map(|id| Some((*id, self.acks.get(id)?)));
        acks.filter(move |(_, ack)| ack.path == path && !ack.opens).map(|(id, ack)| (ack.sent, id))
    }

    fn opens(&self, ack: &Ack, path: usize) -> bool {
        ack.opens && (ack.path == path || self.accepted.get(&path) == Some(&ack.path))
    }

    /// Returns the duplicates on this path: arrivals of a packet beyond the number of its transmissions.
    pub(super) fn doubles(&self, path: usize) -> Vec<PacketEvent> {
        let mine = self.packets.iter().filter(|(_, (of, ..))| *of == path).map(|(id, _)| *id);
        let mut doubles: Vec<PacketEvent> = mine
            .flat_map(|packet| {
                let copies = self.sent.get(&packet).map_or(1, Vec::len).max(1);
                let more = self.delivered.get(&packet).into_iter().flatten().skip(copies);
                more.map(move |(at, _)| self.event(packet, Loss { at: *at, recorded: *at }))
            })
            .collect();
        doubles.sort_unstable();
        doubles
    }

    /// Returns the event of a packet at `at`. The field `sent` is the time of the last transmission until `at`. If the
    /// packet was sent only after `at`, `sent` is the time of the first transmission. If no transmission is recorded,
    /// `sent` is `at`.
    fn event(&self, packet: PacketId, Loss { at, recorded }: Loss) -> PacketEvent {
        let sent = self.sent.get(&packet).map_or(&[][..], Vec::as_slice);
        let before = sent.iter().rev().find(|(sent, _)| *sent <= at).or(sent.first());
        PacketEvent { at, packet, sent: before.map_or(at, |(sent, _)| *sent), recorded }
    }

    fn note(&mut self, record: &Record, before: &[Record]) {
        let (at, host) = (record.at, record.host);
        let loss = |id: PacketId| {
            let since =
                self.sent.get(&id).and_then(|sent| sent.last()).map_or(Instant::ZERO, |(sent, _)| *sent);
            Loss { at: self.stops.since(id, [since, stopped(record, before)]), recorded: at }
        };
        match &record.what {
            What::AppSent(id) => {
                self.app_sent.insert(*id);
            }
            What::AppReceived(id) => self.datagram_in(at, host, *id),
            What::Received(Iface::HOST, packet) => self.note_from_stack(at, host, packet),
            What::Sent(Iface::HOST, packet) => self.note_to_stack(at, host, packet),
            What::Sent(_, packet) if self.known.insert(packet.id) => self.note_from_role(at, host, packet),
            What::Dropped(_, id, reason) if *reason == node::reason::CONSUMED.0 => {
                if let Some(whole) = self.fragments.arrived(*id) {
                    if let Some(ack) = self.acks.get_mut(&whole) {
                        ack.arrived = true;
                    }
                    self.deliver(at, host, whole);
                }
            }
            // The datagram of the fragment arrived all the same.
            What::Dropped(_, _, reason) if is_joined(reason) => {}
            // The cause is the loss of another fragment, if one is recorded.
            What::Dropped(_, id, reason)
                if *reason == node::reason::REASSEMBLY_TIMEOUT.0 && self.dropped.contains_key(id) => {}
            What::Dropped(_, id, reason) if is_kept(reason) => {
                let lost = loss(*id);
                self.discard(lost, *id);
            }
            What::Dropped(_, id, _) | What::Lost(_, id, _) => {
                let lost = loss(*id);
                if let Some(whole) = self.fragments.lost(*id) {
                    self.lose(lost, whole);
                }
            }
            What::Held(iface, id) => *self.held.entry(*id).or_default() |= iface.is_some(),
            What::Marked(mark) if mark.role == node::mark::TCP && mark.name == "srtt" => {
                self.round_trip(at, mark);
            }
            _ => {}
        }
    }

    fn lose(&mut self, lost: Loss, id: PacketId) {
        if self.packets.contains_key(&id) {
            self.dropped.entry(id).or_default().push(lost);
        }
        if let Some(ack) = self.acks.get_mut(&id) {
            ack.dropped = Some(lost);
        }
    }

    /// Records the end of a copy that an agent had kept.
    fn discard(&mut self, lost: Loss, id: PacketId) {
        if self.packets.contains_key(&id) {
            self.discarded.entry(id).or_default().push(lost);
        }
        if let Some(ack) = self.acks.get_mut(&id) {
            ack.dropped.get_or_insert(lost);
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
        if !(from_app || self.programs.contains(&host)) || Control::is(packet) {
            return;
        }
        let Ok((ip, payload)) = Header::parse(&packet.bytes) else { return };
        let Ok(datagram) = udp::Datagram::parse(payload, ip.src, ip.dst) else { return };
        let (from, to) =
            (SocketAddrV4::new(ip.src, datagram.src_port), SocketAddrV4::new(ip.dst, datagram.dst_port));
        let Some(index) = self.path(at, Transport::Udp, from, to) else { return };
        let Some(path) = self.paths.get_mut(index) else { return };
        let start = path.high;
        path.transmit_datagram(at, packet.id, ip.dst, datagram.payload.len() as u64);
        let end = path.high;
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
        match (syn, segment.has(Flags::ACK)) {
            (true, is_answer) => self.note_opening(at, packet.id, index, is_answer.then_some((from, to))),
            (false, true) => self.note_ack((at, packet.id), (Transport::Tcp, from, to), segment.ack.0),
            (false, false) => {}
        }
        let Some(path) = self.paths.get_mut(index) else { return };
        path.answered |= segment.has(Flags::ACK);
        let start = path.place(first);
        let end = start + segment.payload.len() as u64;
        if segment.has(Flags::FIN) {
            path.fin = Some(end);
        }
        if end > start {
            path.transmit(at, packet.id, (host, *to.ip()), start, end);
        }
        if end > start || segment.has(Flags::FIN) {
            self.packets.insert(packet.id, (index, start, end));
            self.sent.entry(packet.id).or_default().push((at, host));
        }
    }

    /// Records the acknowledgment of all data before `number` in a packet that leaves the receiver of the data.
    fn note_ack(
        &mut self,
        (at, id): (Instant, PacketId),
        (transport, from, to): (Transport, SocketAddrV4, SocketAddrV4),
        number: u32,
    ) {
        let Some(path) = self.find(transport, to, from) else { return };
        let Some(place) = self.paths.get(path).map(|path| path.place(number)) else { return };
        self.acks.insert(id, Ack { path, place, opens: false, sent: at, arrived: false, dropped: None });
    }

    /// Records a segment that opens a connection: `index` is the path of its sender's data. `answers` are the addresses of
    /// a segment that accepts the connection.
    fn note_opening(
        &mut self,
        at: Instant,
        id: PacketId,
        index: usize,
        answers: Option<(SocketAddrV4, SocketAddrV4)>,
    ) {
        let asked = answers.and_then(|(from, to)| self.find(Transport::Tcp, to, from));
        self.accepted.extend(asked.map(|asked| (index, asked)));
        let path = asked.unwrap_or(index);
        self.opening.entry(path).or_default().push((at, id));
        self.acks.insert(id, Ack { path, place: 0, opens: true, sent: at, arrived: false, dropped: None });
    }

    /// Records a new round-trip estimate of the sender's transport.
    fn round_trip(&mut self, at: Instant, mark: &Mark) {
        let field = |name: &str| mark.fields.iter().find(|(key, _)| *key == name).map(|(_, value)| value);
        let socket = |name: &str| field(name)?.as_text()?.parse::<SocketAddrV4>().ok();
        let nanos = field("ns").and_then(Value::as_int).and_then(|nanos| u64::try_from(nanos).ok());
        let (Some(local), Some(peer), Some(nanos)) = (socket("local"), socket("peer"), nanos) else { return };
        // The host of the record does not identify the path: a support router has connections with addresses of other
        // hosts.
        let index = self.find(Transport::Tcp, local, peer);
        if let Some(path) = index.and_then(|index| self.paths.get_mut(index)) {
            path.round_trips.push((at, Duration::from_nanos(nanos)));
        }
    }

    /// Records a reset, which ends both directions. A direction in which no segment had data or an acknowledgment
    /// number was refused.
    fn reset(&mut self, at: Instant, index: usize, from: SocketAddrV4, to: SocketAddrV4) {
        let back = self.find(Transport::Tcp, to, from);
        for index in [Some(index), back].into_iter().flatten() {
            if let Some(path) = self.paths.get_mut(index) {
                path.reset = path.reset.or(Some(at));
                path.refused |= !path.answered && path.high == 0;
            }
        }
    }

    /// Records an SCTP packet that a role sends. SCTP is a role, so its packets do not pass the host's stack.
    fn note_from_role(&mut self, at: Instant, host: HostId, packet: &Packet) {
        let sctp = match self.fragments.left(at, host, packet) {
            Left::Whole => segment::sctp_of(packet),
            Left::Part => None,
            Left::Last(bytes) => sctp::message::Packet::parse(&bytes).ok(),
        };
        let Some(sctp) = sctp else { return };
        let Some((src, dst)) = ipv4::addresses(&packet.bytes) else { return };
        let (from, to) = (SocketAddrV4::new(src, sctp.src_port), SocketAddrV4::new(dst, sctp.dst_port));
        for chunk in &sctp.chunks {
            if let Chunk::Sack(sack) = chunk {
                let next = sack.cumulative.wrapping_add(1);
                self.note_ack((at, packet.id), (Transport::Sctp, from, to), next);
            }
        }
        let data: Vec<(u32, u64)> = sctp
            .chunks
            .iter()
            .filter_map(|chunk| match chunk {
                Chunk::Data(data) => Some((data.tsn, data.data.len() as u64)),
                _ => None,
            })
            .collect();
        if data.is_empty() {
            return;
        }
        let Some(index) = self.path(at, Transport::Sctp, from, to) else { return };
        let Some(path) = self.paths.get_mut(index) else { return };
        path.transmit_chunks(at, packet.id, dst, &data);
        let start = path.sendings.last().map_or(0, |sending| sending.place);
        let end = start + data.len() as u64;
        self.packets.insert(packet.id, (index, start, end));
        self.sent.entry(packet.id).or_default().push((at, host));
    }

    fn note_to_stack(&mut self, at: Instant, host: HostId, packet: &Packet) {
        if let Some(ack) = self.acks.get_mut(&packet.id) {
            ack.arrived = true;
            if let Some(path) = self.paths.get_mut(ack.path).filter(|_| !ack.opens) {
                path.acknowledge(at, ack.place);
            }
        }
        let Some((index, ..)) = self.packets.get(&packet.id).copied() else { return };
        match self.paths.get(index).map(|path| (path.transport, path.to)) {
            // An application reports the datagrams that it receives; a program does not.
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

    /// Returns the path of a segment, or creates it. A SYN with another sequence number begins another connection
    /// between the same ports.
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

/// Returns whether a foreign agent has dropped a copy that it had kept.
pub(crate) fn is_kept(reason: &str) -> bool {
    KEPT_REASONS.iter().any(|kept| kept.0 == reason)
}

/// Returns when a packet that a node dropped after a wait, for example for an answer to ARP, reached this node: its last
/// record there, of those `before` the drop. Returns the time of the record itself for all other losses.
pub(crate) fn stopped(record: &Record, before: &[Record]) -> Instant {
    let What::Dropped(_, id, reason) = &record.what else { return record.at };
    if *reason != node::reason::NO_NEIGHBOR.0 && !is_kept(reason) {
        return record.at;
    }
    let is_it = |r: &&Record| {
        r.host == record.host && matches!(&r.what, What::Received(_, packet) if packet.id == *id)
    };
    let since = Instant(record.at.0.saturating_sub(WAIT.as_nanos() as u64));
    let recent = before.iter().rev().take_while(|r| r.at >= since);
    recent.into_iter().find(is_it).map_or(record.at, |r| r.at)
}

/// Returns whether the drop of a fragment is no loss: its datagram is whole, or the fragment is a copy.
fn is_joined(reason: &str) -> bool {
    [node::reason::REASSEMBLED.0, node::reason::FRAGMENT_COPY.0].contains(&reason)
}
