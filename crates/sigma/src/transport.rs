//! SCTP as a transport for the programs of a host: maps streams of bytes to associations.
//!
//! A stream of bytes is sent as messages in stream 0 of a separate association; each message fits one packet of the
//! default MTU, 1500 bytes. SCTP ends both directions at the same time: if one program finishes, both have finished
//! (RFC 9260, section 9.2). Data that have arrived can still be read.

use crate::config::SctpConfig;
use auth::Key;
use node::stream::{OwnedStreamEvent, refusal};
use node::{Addr, MigrateOp, Outbox, Rng, Rx, StreamId, StreamOp, Value};
use sctp::{Association, AssociationEvent, AssociationId, Ended, Endpoint, Open, Rejection, State};
use std::collections::{BTreeMap, VecDeque};
use wire::fragment::{self, Reassembly};
use wire::ipv4::{self, Header};
use wire::{Duration, Instant, Ipv4Addr, Mac, Packet, PacketId, Reason, icmp};

/// The name of the transport, as programs request it.
pub(crate) const SCTP: node::Transport = node::Transport::Role("sctp");

/// The first ephemeral port (RFC 6335, section 6), for programs that request none.
const EPHEMERAL: u16 = 49_152;
/// The maximum number of ports that are tried for one association.
const TRIES: usize = 8;
/// The length of the headers of IP, SCTP and a DATA chunk, in bytes.
const HEADERS: usize = ipv4::HEADER + sctp::message::HEADER + sctp::message::DATA_HEADER;
/// The maximum number of associations that wait until this host has an address (not from an RFC).
const WAITING: usize = 256;
/// The reason to drop an ICMP error that SCTP does not use.
pub(crate) const COMPLAINT_IGNORED: Reason = Reason("icmp_ignored");

/// The program that uses an association.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each end of a stream finishes separately")]
struct User {
    stream: StreamId,
    /// The number of bytes that the program's last `Read` still requests; zero: none.
    wanted: usize,
    opened: bool,
    finished: bool,
    peer_finished: bool,
    end_is_told: bool,
    closed: Option<Ended>,
}

/// An association that waits until this host has an address.
#[derive(Debug)]
struct Waiting {
    stream: StreamId,
    peer: Addr,
    until: Instant,
    /// The number of bytes that the program's last `Read` requests.
    wanted: usize,
}

/// The associations of one host, and the programs that use them.
#[derive(Debug)]
pub(crate) struct Transport {
    endpoint: Endpoint,
    /// The length of the largest message that fits a packet of the default MTU, in bytes.
    message: usize,
    listeners: BTreeMap<u16, StreamId>,
    users: BTreeMap<AssociationId, User>,
    by_stream: BTreeMap<StreamId, AssociationId>,
    /// The associations that wait for an address of this host, in the order of requests.
    waiting: VecDeque<Waiting>,
    /// How long an association waits for an address: as long as INIT would be sent without an answer.
    patience: Duration,
    accepted: u32,
    /// The IPv4 Identification of the last packet. It differs from packet to packet, so that a capture distinguishes a
    /// retransmission from the original. RFC 6864, section 4.1, allows this.
    last_id: u16,
    /// The fragments that have arrived of packets that are not complete yet.
    fragments: Reassembly,
    rng: Rng,
}

impl Transport {
    pub(crate) fn new(config: &SctpConfig, mut rng: Rng) -> Self {
        let secret: Vec<u8> = (0..4).flat_map(|_| rng.draw().to_be_bytes()).collect();
        let config = config.endpoint();
        let patience = config.opening_patience();
        Self {
            message: usize::from(config.mtu).saturating_sub(HEADERS).max(1),
            endpoint: Endpoint::new(config, Key::new(secret), rng.fork("endpoint")),
            listeners: BTreeMap::new(),
            users: BTreeMap::new(),
            by_stream: BTreeMap::new(),
            waiting: VecDeque::new(),
            patience,
            accepted: 0,
            last_id: 0,
            fragments: Reassembly::default(),
            rng,
        }
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        let given_up = self.waiting.front().map(|waiting| waiting.until);
        self.endpoint.deadline().into_iter().chain(given_up).min()
    }

    pub(crate) fn timeout(&mut self, now: Instant) {
        self.endpoint.on_timeout(now);
    }

    /// Returns an association if it is open, and otherwise `None`. During a shutdown, an association is still open,
    /// because its data must arrive.
    pub(crate) fn open_mut(&mut self, id: AssociationId) -> Option<&mut Association> {
        self.endpoint.association_mut(id).filter(|association| association.is_open())
    }

    /// Returns the numbers of all open associations.
    pub(crate) fn open(&self) -> Vec<AssociationId> {
        let open = self.endpoint.associations().filter(|(_, it)| it.is_open());
        open.map(|(id, _)| id).collect()
    }

    /// Returns the addresses of this host in an association, without those that the peer has not confirmed and those
    /// that are being deleted. Empty if the association does not exist.
    pub(crate) fn addresses(&self, id: AssociationId) -> Vec<Ipv4Addr> {
        self.endpoint.association(id).map_or(Vec::new(), |it| it.local_addresses().collect())
    }

    /// Returns the peer's addresses in an association; empty if the association does not exist.
    pub(crate) fn peer_addresses(&self, id: AssociationId) -> Vec<Ipv4Addr> {
        self.endpoint.association(id).map_or(Vec::new(), |it| it.paths().map(|path| path.address).collect())
    }

    /// Returns whether an open association sends from `address`, because packets from its preferred address do not
    /// reach the peer.
    pub(crate) fn is_detour(&self, address: Ipv4Addr) -> bool {
        self.endpoint.associations().any(|(_, it)| it.is_open() && it.detour() == Some(address))
    }

    /// Lets associations that are opening from the lost address `gone` continue to open from `here`.
    pub(crate) fn open_from(&mut self, now: Instant, gone: Ipv4Addr, here: Ipv4Addr) {
        let by_it = self.endpoint.associations().filter(|(_, it)| it.opens_from() == Some(gone));
        let by_it = by_it.map(|(id, _)| id);
        for id in by_it.collect::<Vec<_>>() {
            self.endpoint.association_mut(id).into_iter().for_each(|it| _ = it.open_from(now, here));
        }
    }

    /// Sends the outstanding request of an association to `peer`, an address from the location manager. Returns whether
    /// a request that went to another address now goes to `peer`.
    pub(crate) fn try_at(&mut self, now: Instant, id: AssociationId, peer: Ipv4Addr) -> bool {
        self.endpoint.association_mut(id).is_some_and(|association| association.try_at(now, peer))
    }

    /// Sets the addresses that this host has now. Listening ports also accept associations at these addresses.
    pub(crate) fn accept_at(&mut self, addresses: &[Ipv4Addr]) {
        self.endpoint.accept_at(addresses);
    }

    /// Handles the return of this host's link after a time without a link.
    pub(crate) fn link_returned(&mut self, now: Instant) {
        let all: Vec<AssociationId> = self.endpoint.associations().map(|(id, _)| id).collect();
        for id in all {
            self.endpoint.association_mut(id).into_iter().for_each(|it| it.link_returned(now));
        }
    }

    /// Returns the number of addresses of associations beyond the first of this host and the first of the peer.
    pub(crate) fn further_addresses(&self) -> usize {
        let of_one = |(_, association): (AssociationId, &Association)| {
            association.local_addresses().skip(1).count() + association.paths().skip(1).count()
        };
        self.endpoint.associations().map(of_one).sum()
    }

    /// Returns the status of each association: its state, this host's addresses, the peer's addresses with their
    /// states, and counts of retransmissions.
    pub(crate) fn status(&self) -> Value {
        let one = |(_, association): (AssociationId, &Association)| {
            let path = |path: sctp::PathInfo| {
                let state = format!("{:?}{}", path.state, if path.primary { ", primary" } else { "" });
                (path.address.to_string(), Value::from(state))
            };
            let own = association.local_addresses().map(Value::from).collect();
            Value::map([
                ("state", Value::from(format!("{:?}", association.state()))),
                ("own", Value::List(own)),
                ("peer", Value::Map(association.paths().map(path).collect())),
                ("counts", Value::from(format!("{:?}", association.counts()))),
            ])
        };
        Value::List(self.endpoint.associations().map(one).collect())
    }

    // --- operations of programs ------------------------------------------------------------------------------------

    /// Handles an operation of a program. `own`: the addresses of this host, the preferred address first.
    pub(crate) fn serve(
        &mut self,
        now: Instant,
        id: StreamId,
        op: StreamOp,
        own: &[Ipv4Addr],
        out: &mut Outbox,
    ) {
        match op {
            StreamOp::Open { local, peer, .. } => self.connect(now, id, local, peer, own, out),
            StreamOp::Listen { local, .. } => self.listen(id, local, out),
            StreamOp::Read(most) => {
                if let Some(user) = self.user_of(id) {
                    user.wanted = most;
                }
                for waiting in self.waiting.iter_mut().filter(|waiting| waiting.stream == id) {
                    waiting.wanted = most;
                }
                self.deliver(id, out);
            }
            StreamOp::Write(bytes) => self.write(id, &bytes, out),
            StreamOp::Finish => self.finish(now, id, out),
            StreamOp::Abort | StreamOp::Migrate(MigrateOp::Forget) => self.abort(id, out),
            // An association moves by changes of its addresses. Its state is never transferred to another host.
            StreamOp::Migrate(op) => op.refused(id).into_iter().for_each(|refused| out.served(refused)),
            StreamOp::Set(_) => {}
        }
    }

    fn connect(
        &mut self,
        now: Instant,
        id: StreamId,
        local: Option<Addr>,
        peer: Addr,
        own: &[Ipv4Addr],
        out: &mut Outbox,
    ) {
        let given = local.map(|local| vec![*local.ip()]);
        let addresses = given.unwrap_or_else(|| own.iter().take(1).copied().collect());
        if addresses.is_empty() {
            if self.waiting.len() >= WAITING {
                return out.served(OwnedStreamEvent::Closed(id, Some(refusal::NO_ADDRESS.to_owned())));
            }
            let until = now + self.patience;
            return self.waiting.push_back(Waiting { stream: id, peer, until, wanted: 0 });
        }
        for _ in 0..TRIES {
            let port = EPHEMERAL + (self.rng.draw() % 16_384) as u16;
            let local_port = local.map(|local| local.port()).filter(|port| *port != 0).unwrap_or(port);
            let (local, peer_port) = (addresses.clone(), peer.port());
            let open = Open { local, local_port, peer: vec![*peer.ip()], peer_port };
            if let Some(association) = self.endpoint.open(now, &open) {
                self.users.insert(association, User::new(id));
                self.by_stream.insert(id, association);
                return;
            }
        }
        out.served(OwnedStreamEvent::Closed(id, Some(refusal::IN_USE.to_owned())));
    }

    /// Opens the associations that wait for an address, if `own` is not empty. Associations that have waited for
    /// `patience` are refused.
    pub(crate) fn open_waiting(&mut self, now: Instant, own: &[Ipv4Addr], out: &mut Outbox) {
        while let Some(late) = self.waiting.pop_front_if(|waiting| waiting.until <= now) {
            out.served(OwnedStreamEvent::Closed(late.stream, Some(refusal::NO_ADDRESS.to_owned())));
        }
        if own.is_empty() {
            return;
        }
        for Waiting { stream, peer, wanted, .. } in std::mem::take(&mut self.waiting) {
            self.connect(now, stream, None, peer, own, out);
            self.user_of(stream).into_iter().for_each(|user| user.wanted = wanted);
        }
    }

    /// Ends a stream that waits for an address, with the reason `why`. Returns whether the stream waited.
    fn stop_waiting(&mut self, id: StreamId, why: Option<&str>, out: &mut Outbox) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|waiting| waiting.stream != id);
        let waited = self.waiting.len() < before;
        if waited {
            out.served(OwnedStreamEvent::Closed(id, why.map(str::to_owned)));
        }
        waited
    }

    fn listen(&mut self, id: StreamId, local: Addr, out: &mut Outbox) {
        if self.listeners.contains_key(&local.port()) {
            return out.served(OwnedStreamEvent::Closed(id, Some(refusal::IN_USE.to_owned())));
        }
        self.listeners.insert(local.port(), id);
        self.endpoint.listen(local.port(), &[*local.ip()]);
        out.served(OwnedStreamEvent::Opened(id, local));
    }

    fn write(&mut self, id: StreamId, bytes: &[u8], out: &mut Outbox) {
        let Some(association) = self.by_stream.get(&id).and_then(|id| self.endpoint.association_mut(*id))
        else {
            return;
        };
        if bytes.len() > association.room() {
            // After the end of the association, bytes are ignored. More bytes than the credit allows are an error of
            // the program, so the association is aborted.
            if association.state() == State::Established {
                association.abort();
                self.release(id, Some(refusal::BEYOND_CREDIT), out);
            }
            return;
        }
        for message in bytes.chunks(self.message) {
            // There is room, and the message is not empty, so `write` cannot fail.
            let _ = association.write(0, 0, message);
        }
    }

    fn finish(&mut self, now: Instant, id: StreamId, out: &mut Outbox) {
        // If the stream still waits for an address, nothing was written. The program gets the same reason as if INIT
        // had been sent already.
        if self.stop_listening(id, out) || self.stop_waiting(id, Some(GIVEN_UP), out) {
            return;
        }
        let Some(user) = self.user_of(id) else { return };
        user.finished = true;
        if let Some(association) = self.by_stream.get(&id).and_then(|id| self.endpoint.association_mut(*id)) {
            association.finish(now);
        }
        self.conclude(id, out);
    }

    fn abort(&mut self, id: StreamId, out: &mut Outbox) {
        let over = self.stop_listening(id, out) || self.stop_waiting(id, None, out);
        if !over && self.by_stream.contains_key(&id) {
            self.release(id, None, out);
        }
    }

    fn stop_listening(&mut self, id: StreamId, out: &mut Outbox) -> bool {
        let Some(port) = self.listeners.iter().find(|(_, stream)| **stream == id).map(|(port, _)| *port)
        else {
            return false;
        };
        self.listeners.remove(&port);
        self.endpoint.ignore(port);
        out.served(OwnedStreamEvent::Closed(id, None));
        true
    }

    fn user_of(&mut self, id: StreamId) -> Option<&mut User> {
        self.by_stream.get(&id).and_then(|association| self.users.get_mut(association))
    }

    // --- packets ---------------------------------------------------------------------------------------------------

    /// Handles an SCTP packet, or an ICMP error about an SCTP packet. Fails with the reason to drop the packet.
    pub(crate) fn packet(&mut self, now: Instant, rx: Rx, packet: &Packet) -> Result<(), Reason> {
        let (ip, payload) = (rx.header, rx.payload(packet));
        if ip.is_fragment() {
            let whole = self.fragments.take(now, &ip, payload).filter(|_| ip.protocol == sctp::PROTOCOL);
            return whole.map_or(Ok(()), |whole| self.endpoint.receive(now, ip.src, ip.dst, &whole));
        }
        if ip.protocol == ipv4::ICMP {
            return self.icmp_error(now, payload);
        }
        self.endpoint.receive(now, ip.src, ip.dst, payload)
    }

    fn icmp_error(&mut self, now: Instant, payload: &[u8]) -> Result<(), Reason> {
        const UNREACHABLE: u8 = 3;
        const PROTOCOL: u8 = 2;
        const TOO_BIG: u8 = 4;
        let quote = icmp::Quote::of(&icmp::Message::parse(payload)?)?;
        let rejection = match (quote.kind, quote.code) {
            (UNREACHABLE, PROTOCOL) => Rejection::ProtocolUnreachable,
            (UNREACHABLE, TOO_BIG) if quote.mtu > 0 => Rejection::TooBig(quote.mtu),
            // The router reports no MTU (RFC 1191, section 5).
            (UNREACHABLE, TOO_BIG) => Rejection::TooBig(icmp::plateau(quote.len).unwrap_or_default()),
            _ => return Err(COMPLAINT_IGNORED),
        };
        self.endpoint.icmp_error(now, quote.dst, quote.payload, rejection)
    }

    /// Sends packets, and reports events to programs. The role must call this function after each operation that may
    /// have changed an association. Returns all events, because the role reacts to some events, for example to changes
    /// of addresses.
    pub(crate) fn settle(
        &mut self,
        now: Instant,
        out: &mut Outbox,
    ) -> Vec<(AssociationId, AssociationEvent)> {
        let mut news = Vec::new();
        loop {
            let mut quiet = true;
            while let Some((id, event)) = self.endpoint.poll_event() {
                quiet = false;
                self.heed(id, &event, out);
                news.push((id, event));
            }
            while let Some(transmit) = self.endpoint.poll_transmit(now) {
                quiet = false;
                self.last_id = self.last_id.wrapping_add(1);
                let header =
                    Header { id: self.last_id, ..Header::new(sctp::PROTOCOL, transmit.src, transmit.dst) };
                let bytes = match transmit.cut {
                    None => vec![header.emit(&transmit.bytes)],
                    Some(mtu) => fragment::cut(&header, &transmit.bytes, mtu),
                };
                for bytes in bytes {
                    out.send_routed(Packet::new(Mac::ZERO, bytes));
                }
            }
            if quiet {
                return news;
            }
        }
    }

    fn heed(&mut self, id: AssociationId, event: &AssociationEvent, out: &mut Outbox) {
        if matches!(event, AssociationEvent::Opened) {
            return self.opened(id, out);
        }
        let Some(user) = self.users.get_mut(&id) else { return };
        let stream = user.stream;
        match event {
            AssociationEvent::Room(more) => out.served(OwnedStreamEvent::Room(stream, *more)),
            AssociationEvent::Data => self.deliver(stream, out),
            AssociationEvent::PeerFinished => {
                user.peer_finished = true;
                self.deliver(stream, out);
            }
            AssociationEvent::Closed(why) => {
                user.closed = Some(*why);
                user.peer_finished |= *why == Ended::Finished;
                self.deliver(stream, out);
            }
            // After a restart with losses, bytes are missing, so the stream ends. Without losses, it continues.
            AssociationEvent::Restarted { intact: false } => self.release(stream, Some(refusal::RESET), out),
            _ => {}
        }
    }

    /// Reports an association that has opened, to the program that opened it or that listens. The room for data is
    /// reported later, by [`AssociationEvent::Room`].
    fn opened(&mut self, id: AssociationId, out: &mut Outbox) {
        let Some(association) = self.endpoint.association(id) else { return };
        let (port, peer_port) = association.ports();
        let local = association.local_addresses().next().unwrap_or(Ipv4Addr::UNSPECIFIED);
        let local = Addr::new(local, port);
        let peer = association.paths().find(|path| path.primary).map(|path| path.address);
        let peer = Addr::new(peer.unwrap_or(Ipv4Addr::UNSPECIFIED), peer_port);
        if let Some(user) = self.users.get_mut(&id) {
            user.opened = true;
            return out.served(OwnedStreamEvent::Opened(user.stream, local));
        }
        let Some(listener) = self.listeners.get(&port).copied() else { return self.endpoint.release(id) };
        let stream = StreamId(StreamId::SERVED + self.accepted % StreamId::ACCEPTED);
        self.accepted = self.accepted.wrapping_add(1);
        self.users.insert(id, User { opened: true, ..User::new(stream) });
        self.by_stream.insert(stream, id);
        out.served(OwnedStreamEvent::Accepted { listener, new: stream, local, peer });
    }

    /// Delivers the bytes that were requested, and after the last byte the end of the stream.
    fn deliver(&mut self, id: StreamId, out: &mut Outbox) {
        let Some(association) = self.by_stream.get(&id).copied() else { return };
        let (Some(user), Some(held)) =
            (self.users.get_mut(&association), self.endpoint.association_mut(association))
        else {
            return;
        };
        let (most, mut bytes) = (user.wanted, Vec::new());
        while let Some(piece) = (bytes.len() < most).then(|| held.read(most - bytes.len())).flatten() {
            bytes.extend(piece.data);
        }
        if !bytes.is_empty() {
            user.wanted = StreamOp::left_to_read(most);
            out.served(OwnedStreamEvent::Data(id, PacketId::NEW, bytes));
        }
        if user.wanted > 0 && user.peer_finished && !user.end_is_told {
            (user.wanted, user.end_is_told) = (0, true);
            out.served(OwnedStreamEvent::Finished(id));
        }
        self.conclude(id, out);
    }

    /// Ends a stream whose association has ended. After an orderly shutdown, the stream ends when the program has
    /// finished and has read all data.
    fn conclude(&mut self, id: StreamId, out: &mut Outbox) {
        let Some(association) = self.by_stream.get(&id).copied() else { return };
        let Some(user) = self.users.get(&association) else { return };
        let unread = self.endpoint.association(association).is_some_and(Association::readable);
        match user.closed {
            Some(Ended::Finished) if user.finished && !unread => self.release(id, None, out),
            None | Some(Ended::Finished) => {}
            Some(why) => self.release(id, Some(in_words(why, user.opened)), out),
        }
    }

    fn release(&mut self, id: StreamId, why: Option<&str>, out: &mut Outbox) {
        if let Some(association) = self.by_stream.remove(&id) {
            self.users.remove(&association);
            self.endpoint.release(association);
        }
        out.served(OwnedStreamEvent::Closed(id, why.map(str::to_owned)));
    }
}

impl User {
    const fn new(stream: StreamId) -> Self {
        Self {
            stream,
            wanted: 0,
            opened: false,
            finished: false,
            peer_finished: false,
            end_is_told: false,
            closed: None,
        }
    }
}

/// The reason that a program gets when it closes an association before it opened.
const GIVEN_UP: &str = "closed before it opened";

/// Returns the reason why an association ended, as a text for the program. Most of these texts are used by all
/// transports.
const fn in_words(why: Ended, opened: bool) -> &'static str {
    match why {
        Ended::AbortedByPeer(_) if opened => refusal::RESET,
        Ended::AbortedByPeer(_) => refusal::REFUSED,
        Ended::TimedOut => refusal::TIMED_OUT,
        Ended::Unreachable => refusal::UNREACHABLE,
        Ended::Violation(what) => what,
        Ended::Unsupported => "the peer does not support address changes",
        Ended::Aborted | Ended::Finished => GIVEN_UP,
    }
}

/// Discards a packet that the role has processed, with the reason if it was dropped.
pub(crate) fn end(rx: Rx, packet: Packet, verdict: Result<(), Reason>, out: &mut Outbox) {
    out.discard(rx.iface, packet, verdict.err().unwrap_or(node::reason::CONSUMED));
}

#[cfg(test)]
#[path = "transport_tests.rs"]
mod tests;
