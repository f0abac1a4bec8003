//! A minimal transport implemented by a role: a window, cumulative acknowledgments, credit from the receiver,
//! retransmission after three equal acknowledgments or by timer. It exists only for these tests.

use node::reason;
use node::stream::{OwnedStreamEvent, refusal};
use node::{Addr, Input, Listen, Outbox, Proto, Role, Rx, StreamId, StreamOp, Transport, Value};
use std::collections::{BTreeMap, VecDeque};
use wire::udp::{self, Datagram};
use wire::{Duration, Instant, Ipv4Addr, Mac, Packet, Reason, SocketAddrV4};

pub(crate) const PUSH: Transport = Transport::Role("push");
/// The largest number of bytes that a user has written and the peer has not acknowledged.
pub(crate) const SEND_BUFFER: usize = 64 * 1024;
/// The largest number of bytes that have arrived and are not read.
pub(crate) const RECEIVE_BUFFER: usize = 64 * 1024;

const PORT: u16 = 9899;
const SEGMENT: usize = 1400;
/// The largest number of new segments sent at one input, so that one acknowledgment cannot fill the link's queue.
const BURST: usize = 4;
const TIMEOUT: Duration = Duration::from_millis(500);

/// The promise that a faulty transport breaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    None,
    /// The transport always gives its users credit to write.
    EndlessRoom,
    /// The transport sends without the receiver's credit, and accepts data for which it gave no credit.
    NoCredit,
    /// The transport delivers data that the user did not request.
    Unasked,
}

#[derive(Debug)]
pub(crate) struct Push {
    own: Ipv4Addr,
    fault: Fault,
    listeners: BTreeMap<u16, StreamId>,
    flows: BTreeMap<StreamId, Flow>,
    accepted: u32,
    /// The largest number of bytes that were stored at one time.
    peak: usize,
    /// The number of segments that were rejected.
    refused: u64,
}

/// A connection between two streams, with both directions.
#[derive(Debug)]
struct Flow {
    peer: Ipv4Addr,
    /// The flow's number, which the opener chose, and whether this end is the opener.
    name: (u32, bool),
    port: u16,
    is_open: bool,
    sender: Sender,
    receiver: Receiver,
}

#[derive(Debug, Default)]
struct Sender {
    /// The data from offset `acked` on.
    queue: VecDeque<u8>,
    written: u64,
    acked: u64,
    next: u64,
    /// The offset at which the receiver's credit ends.
    limit: u64,
    window: usize,
    threshold: usize,
    /// The number of consecutive acknowledgments that acknowledged nothing new. `recover` is the end of the data that
    /// were sent when the window was last reduced.
    repeated: u8,
    recover: u64,
    /// Whether the first unacknowledged segment is to be sent again.
    again: bool,
    finishes: bool,
    /// The number of bytes for which the user still has credit.
    room: usize,
    due: Option<Instant>,
    backoff: u32,
}

#[derive(Debug, Default)]
struct Receiver {
    inbox: VecDeque<u8>,
    received: u64,
    /// Data that arrived out of order, by offset. The credit bounds them, as it bounds all data.
    early: BTreeMap<u64, Vec<u8>>,
    wanted: Option<usize>,
    has_ended: bool,
    end_is_told: bool,
    /// The offset at which the credit of the peer ends.
    given: u64,
}

/// A segment. All fields are always on the wire.
struct Segment<'a> {
    flow: u32,
    port: u16,
    flags: u8,
    seq: u64,
    ack: u64,
    limit: u64,
    data: &'a [u8],
}

const FROM_OPENER: u8 = 1;
const FIN: u8 = 2;
/// A flag: the receiver must answer the segment.
const PROBE: u8 = 4;
const HEADER: usize = 31;

impl<'a> Segment<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (head, data) = bytes.split_at_checked(HEADER)?;
        let long = |at: usize| head[at..at + 8].try_into().ok().map(u64::from_be_bytes);
        Some(Self {
            flow: u32::from_be_bytes(head[1..5].try_into().ok()?),
            port: u16::from_be_bytes(head[5..7].try_into().ok()?),
            flags: head[0],
            seq: long(7)?,
            ack: long(15)?,
            limit: long(23)?,
            data,
        })
    }

    fn emit(&self) -> Vec<u8> {
        let mut bytes = vec![self.flags];
        bytes.extend(self.flow.to_be_bytes());
        bytes.extend(self.port.to_be_bytes());
        for long in [self.seq, self.ack, self.limit] {
            bytes.extend(long.to_be_bytes());
        }
        bytes.extend(self.data);
        bytes
    }
}

impl Sender {
    fn is_done(&self) -> bool {
        self.finishes && self.acked > self.written // the end counts as one byte
    }

    /// Applies an acknowledgment. Returns the number of the user's bytes that it freed.
    fn acknowledged(&mut self, now: Instant, ack: u64, is_bare: bool) -> usize {
        let in_flight = self.next - self.acked;
        if ack > self.acked && ack <= self.written + u64::from(self.finishes) {
            let freed = ((ack - self.acked) as usize).min(self.queue.len());
            self.queue.drain(..freed);
            self.acked = ack;
            self.next = self.next.max(ack);
            let growth = if self.window < self.threshold { SEGMENT } else { SEGMENT * SEGMENT / self.window };
            self.window = (self.window + growth).min(SEND_BUFFER);
            (self.repeated, self.backoff) = (0, 0);
            self.again = ack < self.recover && self.next > ack; // another segment of the same loss
            self.due = (self.next > ack).then(|| now + TIMEOUT);
            return freed;
        }
        if ack == self.acked && is_bare && in_flight > 0 {
            self.repeated = self.repeated.saturating_add(1);
            if self.repeated == 3 && self.acked >= self.recover {
                self.cut();
                self.window = self.threshold;
                self.again = true;
            }
        }
        0
    }

    fn cut(&mut self) {
        self.threshold = ((self.next - self.acked) as usize / 2).max(SEGMENT * 2);
        self.recover = self.next;
    }
}

impl Flow {
    fn new(peer: Ipv4Addr, name: (u32, bool), port: u16) -> Self {
        let sender = Sender {
            window: BURST * SEGMENT,
            threshold: SEND_BUFFER,
            room: SEND_BUFFER,
            ..Sender::default()
        };
        Self { peer, name, port, is_open: false, sender, receiver: Receiver::default() }
    }

    fn say(&mut self, own: Ipv4Addr, flags: u8, seq: u64, data: &[u8], out: &mut Outbox) {
        let free = RECEIVE_BUFFER.saturating_sub(self.receiver.inbox.len());
        self.receiver.given = self.receiver.given.max(self.receiver.received + free as u64);
        let (flow, is_opener) = self.name;
        let flags = flags | if is_opener { FROM_OPENER } else { 0 };
        let (ack, limit) = (self.receiver.received, self.receiver.given);
        let segment = Segment { flow, port: self.port, flags, seq, ack, limit, data };
        send(own, self.peer, &segment, out);
    }

    /// Sends at most one segment from `seq` on, up to `edge`. Returns its length; the end of the stream counts as one
    /// byte.
    fn segment_at(&mut self, seq: u64, edge: u64, own: Ipv4Addr, out: &mut Outbox) -> u64 {
        let sender = &self.sender;
        let end = sender.written.min(edge);
        if seq < end {
            let (from, len) = ((seq - sender.acked) as usize, SEGMENT.min((end - seq) as usize));
            let data: Vec<u8> = sender.queue.iter().skip(from).take(len).copied().collect();
            self.say(own, 0, seq, &data, out);
            len as u64
        } else if sender.finishes && seq == sender.written {
            self.say(own, FIN, seq, &[], out);
            1
        } else {
            0
        }
    }

    /// Sends what the window and the credit allow: at most one retransmission, and `BURST` new segments.
    fn pump(&mut self, now: Instant, own: Ipv4Addr, fault: Fault, out: &mut Outbox) {
        let credit = if fault == Fault::NoCredit { u64::MAX } else { self.sender.limit };
        if std::mem::take(&mut self.sender.again) {
            self.segment_at(self.sender.acked, credit, own, out);
        }
        for _ in 0..BURST {
            let sender = &self.sender;
            let edge = credit.min(sender.acked + sender.window as u64);
            let sent = self.segment_at(sender.next, edge, own, out);
            self.sender.next += sent;
            if sent == 0 {
                break;
            }
        }
        let waits = self.sender.next > self.sender.acked || !self.sender.queue.is_empty();
        if waits {
            self.sender.due.get_or_insert(now + TIMEOUT);
        }
    }

    fn timeout(&mut self, now: Instant, own: Ipv4Addr, fault: Fault, out: &mut Outbox) {
        self.sender.backoff = (self.sender.backoff + 1).min(5);
        self.sender.due = Some(now + TIMEOUT * (1 << self.sender.backoff));
        if self.sender.next > self.sender.acked {
            self.sender.cut();
            (self.sender.window, self.sender.next) = (SEGMENT, self.sender.acked);
            self.pump(now, own, fault, out);
        } else {
            self.say(own, PROBE, self.sender.next, &[], out); // no credit, or no answer yet
        }
    }

    /// Stores data in any order, if there was credit for it.
    fn take(&mut self, segment: &Segment<'_>, fault: Fault) -> Result<(), Reason> {
        let receiver = &mut self.receiver;
        let end = segment.seq + segment.data.len() as u64 + u64::from(segment.flags & FIN != 0);
        if end <= receiver.received {
            return Err(Reason("repeated"));
        }
        if segment.seq + segment.data.len() as u64 > receiver.given && fault != Fault::NoCredit {
            return Err(Reason("beyond_credit"));
        }
        if segment.flags & FIN != 0 {
            receiver.has_ended = segment.seq == receiver.received;
            receiver.received += u64::from(receiver.has_ended);
            return if receiver.has_ended { Ok(()) } else { Err(Reason("early_end")) };
        }
        receiver.early.entry(segment.seq).or_insert_with(|| segment.data.to_vec());
        // A retransmission may have other boundaries than the original.
        while let Some(first) = receiver.early.first_entry().filter(|first| *first.key() <= receiver.received)
        {
            let known = (receiver.received - first.key()) as usize;
            let data = first.remove();
            let fresh = data.get(known..).unwrap_or_default();
            receiver.received += fresh.len() as u64;
            receiver.inbox.extend(fresh);
        }
        Ok(())
    }

    /// Returns the number of bytes that the flow stores, in both directions.
    fn kept(&self) -> usize {
        let early: usize = self.receiver.early.values().map(Vec::len).sum();
        self.sender.queue.len() + self.receiver.inbox.len() + early
    }

    /// Delivers data, or the end of the stream, if the user requested a read.
    fn deliver(&mut self, id: StreamId, own: Ipv4Addr, fault: Fault, out: &mut Outbox) {
        let receiver = &mut self.receiver;
        let wanted = if fault == Fault::Unasked { Some(usize::MAX) } else { receiver.wanted };
        let Some(wanted) = wanted else { return };
        if !receiver.inbox.is_empty() {
            let count = wanted.min(receiver.inbox.len());
            let bytes: Vec<u8> = receiver.inbox.drain(..count).collect();
            receiver.wanted = None;
            out.served(OwnedStreamEvent::Data(id, wire::PacketId::NEW, bytes));
            let limit = receiver.received + RECEIVE_BUFFER.saturating_sub(receiver.inbox.len()) as u64;
            if limit >= receiver.given + RECEIVE_BUFFER as u64 / 4 {
                self.say(own, 0, self.sender.next, &[], out);
            }
        } else if receiver.has_ended && !receiver.end_is_told {
            receiver.end_is_told = true;
            out.served(OwnedStreamEvent::Finished(id));
        }
    }
}

fn send(own: Ipv4Addr, to: Ipv4Addr, segment: &Segment<'_>, out: &mut Outbox) {
    let ends = [own, to].map(|address| SocketAddrV4::new(address, PORT));
    out.send_routed(Packet::new(Mac::ZERO, udp::packet(ends[0], ends[1], &segment.emit())));
}

impl Push {
    pub(crate) fn new(own: Ipv4Addr, fault: Fault) -> Self {
        let (listeners, flows) = (BTreeMap::new(), BTreeMap::new());
        Self { own, fault, listeners, flows, accepted: 0, peak: 0, refused: 0 }
    }

    fn serve(&mut self, now: Instant, id: StreamId, op: StreamOp, out: &mut Outbox) {
        match op {
            StreamOp::Open { peer, .. } => {
                let mut flow = Flow::new(*peer.ip(), (id.0, true), peer.port());
                flow.say(self.own, PROBE, 0, &[], out);
                flow.sender.due = Some(now + TIMEOUT);
                self.flows.insert(id, flow);
            }
            StreamOp::Listen { local, .. } => {
                self.listeners.insert(local.port(), id);
                out.served(OwnedStreamEvent::Opened(id, local));
            }
            StreamOp::Read(count) => {
                let Some(flow) = self.flows.get_mut(&id) else { return };
                flow.receiver.wanted = Some(count);
                flow.deliver(id, self.own, self.fault, out);
            }
            StreamOp::Write(bytes) => self.write(now, id, &bytes, out),
            StreamOp::Finish => {
                if let Some(flow) = self.flows.get_mut(&id) {
                    flow.sender.finishes = true;
                    flow.pump(now, self.own, self.fault, out);
                } else if self.listeners.values().any(|listener| *listener == id) {
                    self.listeners.retain(|_, listener| *listener != id);
                    out.served(OwnedStreamEvent::Closed(id, None));
                }
            }
            _ => self.close(id, Some(refusal::UNREACHABLE), out),
        }
    }

    fn write(&mut self, now: Instant, id: StreamId, bytes: &[u8], out: &mut Outbox) {
        let Some(flow) = self.flows.get_mut(&id) else { return };
        let Some(room) = flow.sender.room.checked_sub(bytes.len()) else {
            return self.close(id, Some(refusal::BEYOND_CREDIT), out);
        };
        flow.sender.room = room;
        flow.sender.queue.extend(bytes);
        flow.sender.written += bytes.len() as u64;
        flow.pump(now, self.own, self.fault, out);
        if self.fault == Fault::EndlessRoom {
            flow.sender.room += bytes.len();
            out.served(OwnedStreamEvent::Room(id, bytes.len()));
        }
    }

    fn close(&mut self, id: StreamId, why: Option<&str>, out: &mut Outbox) {
        self.flows.remove(&id);
        out.served(OwnedStreamEvent::Closed(id, why.map(str::to_owned)));
    }

    fn receive(&mut self, now: Instant, rx: Rx, packet: &Packet, out: &mut Outbox) -> Result<(), Reason> {
        let header = rx.header;
        let datagram = Datagram::parse(rx.payload(packet), header.src, header.dst)?;
        let segment = Segment::parse(datagram.payload).ok_or(Reason("push_truncated"))?;
        let name = (segment.flow, segment.flags & FROM_OPENER == 0);
        let found = self.flows.iter().find(|(_, flow)| flow.peer == header.src && flow.name == name);
        let Some(id) = found.map(|(id, _)| *id).or_else(|| self.accept(header.src, &segment, out)) else {
            return self.stranger(header.src, &segment, out);
        };
        self.arrived(now, id, &segment, out)
    }

    fn arrived(
        &mut self,
        now: Instant,
        id: StreamId,
        segment: &Segment<'_>,
        out: &mut Outbox,
    ) -> Result<(), Reason> {
        let (own, fault) = (self.own, self.fault);
        let Some(flow) = self.flows.get_mut(&id) else { return Ok(()) };
        if !std::mem::replace(&mut flow.is_open, true) {
            flow.sender.due = None;
            out.served(OwnedStreamEvent::Opened(id, Addr::new(own, PORT)));
            out.served(OwnedStreamEvent::Room(id, SEND_BUFFER));
        }
        let opens = segment.limit > flow.sender.limit;
        flow.sender.limit = flow.sender.limit.max(segment.limit);
        if opens && flow.sender.next == flow.sender.acked {
            (flow.sender.due, flow.sender.backoff) = (None, 0);
        }
        let has_data = !segment.data.is_empty() || segment.flags & FIN != 0;
        let freed = flow.sender.acknowledged(now, segment.ack, !has_data && !opens);
        if freed > 0 && fault != Fault::EndlessRoom {
            flow.sender.room += freed;
            out.served(OwnedStreamEvent::Room(id, freed));
        }
        let taken = if has_data { flow.take(segment, fault) } else { Ok(()) };
        if has_data || segment.flags & PROBE != 0 {
            flow.say(own, 0, flow.sender.next, &[], out);
        }
        flow.deliver(id, own, fault, out);
        flow.pump(now, own, fault, out);
        if flow.sender.is_done() && flow.receiver.end_is_told {
            self.close(id, None, out);
        }
        taken
    }

    fn accept(&mut self, peer: Ipv4Addr, segment: &Segment<'_>, out: &mut Outbox) -> Option<StreamId> {
        let is_first = segment.flags == FROM_OPENER | PROBE && (segment.seq, segment.ack) == (0, 0);
        let listener = self.listeners.get(&segment.port).copied().filter(|_| is_first)?;
        let new = StreamId(StreamId::SERVED + self.accepted);
        self.accepted += 1;
        let mut flow = Flow::new(peer, (segment.flow, false), segment.port);
        flow.is_open = true;
        self.flows.insert(new, flow);
        let local = Addr::new(self.own, segment.port);
        out.served(OwnedStreamEvent::Accepted { listener, new, local, peer: Addr::new(peer, PORT) });
        out.served(OwnedStreamEvent::Room(new, SEND_BUFFER));
        Some(new)
    }

    /// Acknowledges a repeated FIN of a flow that is closed here: the first acknowledgment may have been lost.
    fn stranger(&self, peer: Ipv4Addr, segment: &Segment<'_>, out: &mut Outbox) -> Result<(), Reason> {
        if segment.flags & FIN == 0 {
            return Err(Reason("no_flow"));
        }
        let ack = segment.seq + segment.data.len() as u64 + 1;
        let flags = (segment.flags & FROM_OPENER) ^ FROM_OPENER;
        let answer = Segment { flags, seq: segment.ack, ack, limit: ack, data: &[], ..*segment };
        send(self.own, peer, &answer, out);
        Ok(())
    }

    fn packet(&mut self, now: Instant, rx: Rx, packet: Packet, out: &mut Outbox) {
        let end = self.receive(now, rx, &packet, out).err().unwrap_or(reason::CONSUMED);
        self.refused += u64::from(end != reason::CONSUMED);
        out.discard(rx.iface, packet, end);
    }

    fn timeout(&mut self, now: Instant, out: &mut Outbox) {
        for flow in self.flows.values_mut() {
            if flow.sender.due.is_some_and(|due| due <= now) {
                flow.timeout(now, self.own, self.fault, out);
            }
        }
    }
}

impl Role for Push {
    fn name(&self) -> &'static str {
        "push"
    }

    fn listens(&self) -> &[Listen] {
        &[Listen::Local(Proto::Udp(PORT))]
    }

    fn serves(&self) -> &[Transport] {
        &[PUSH]
    }

    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Outbox) {
        match input {
            Input::Serve(id, op) => self.serve(now, id, op, out),
            Input::Packet(rx, packet) => self.packet(now, rx, packet, out),
            Input::Timeout => self.timeout(now, out),
            _ => {}
        }
        self.peak = self.peak.max(self.flows.values().map(Flow::kept).sum());
    }

    fn deadline(&self) -> Option<Instant> {
        self.flows.values().filter_map(|flow| flow.sender.due).min()
    }

    fn status(&self) -> Value {
        Value::map([
            ("peak", Value::from(self.peak as u64)),
            ("flows", Value::from(self.flows.len() as u64)),
            ("refused", Value::from(self.refused)),
        ])
    }
}
