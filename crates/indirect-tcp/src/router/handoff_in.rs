//! The new router's side of a handoff. The new router accepts only connections that an authentic greeting names. It
//! sends nothing on a connection before the state of the connection is complete.

use super::connection::{Arrival, Arriving, Connection, Stage};
use super::peer_channel::{Offer, channel_of};
use super::registration::same;
use super::{StreamUse, SupportRouter, Timer, refusal};
use crate::mark::IndirectTcpEvent;
use crate::message::{Body, ConnectionId, Direction, Entry, Frame, Halves, Side, SocketState, Verdict};
use node::{MigrateOp, Outbox, StreamId, StreamOp, Tuple};
use wire::icmp::IcmpError;
use wire::ipv4::{self, Header};
use wire::{Instant, Ipv4Addr, Packet, Reason, Seq};

/// When a connection has come, this number of doublings of the host's retransmission time-out is reverted. With a first
/// time-out of 200 ms, there are 6 doublings in an outage of 13 s.
const DOUBLINGS: u32 = 6;

/// A commit that came from an old router.
#[derive(Clone, Copy)]
struct Received {
    host: Ipv4Addr,
    connection: ConnectionId,
    attempt: u32,
    /// The halves of which a state came before the commit.
    halves: Halves,
    /// The stream to the old router by which the commit came.
    by: StreamId,
    /// The number of the handoff on stream `by`.
    handoff: u64,
}

impl SupportRouter {
    /// Handles a frame from an old router.
    pub(super) fn offered(
        &mut self,
        now: Instant,
        id: StreamId,
        frame: Frame,
        out: &mut Outbox,
    ) -> Result<(), Reason> {
        let handoff = frame.handoff;
        match frame.body {
            Body::Offer { host, sequence, .. } => {
                return self.offer(now, id, handoff, (host, sequence), out);
            }
            Body::Status { host, connection, attempt, sequence } => {
                self.supersede(id, out);
                let verdict = self.whose(host, (connection, attempt), sequence);
                self.send_on(id, handoff, Body::CommitAnswer { host, connection, attempt, verdict }, out);
                return Ok(());
            }
            _ => {}
        }
        let Some(channel) = channel_of(&mut self.streams, id) else { return Ok(()) };
        let offer = channel.offers.get_mut(&handoff).ok_or(refusal::UNEXPECTED)?;
        let (address, sequence) = (offer.host, offer.sequence);
        self.still_comes(now, address, self.judge(address, sequence));
        let Some(channel) = channel_of(&mut self.streams, id) else { return Ok(()) };
        let Some(Offer { current, .. }) = channel.offers.get_mut(&handoff) else { return Ok(()) };
        match frame.body {
            Body::Entry(entry, attempt) => {
                *current = Some(entry.id);
                if self.judge(address, sequence) == Verdict::Taken {
                    self.begins(now, address, &entry, (id, attempt), out);
                }
            }
            Body::State(state) => {
                let of = current.ok_or(refusal::UNEXPECTED)?;
                self.import(address, of, id, *state, out);
            }
            Body::UserBuffer(way, bytes) => {
                let of = current.ok_or(refusal::UNEXPECTED)?;
                self.stage(address, of, id, (way, bytes));
            }
            Body::Commit { number, attempt, halves } => {
                let connection = current.filter(|of| of.number == number).ok_or(refusal::UNEXPECTED)?;
                let known = self.judge(address, sequence);
                let received = Received { host: address, connection, attempt, halves, by: id, handoff };
                self.commit(now, received, known, out);
            }
            Body::Abort { connection } => {
                let expected = |stage: &Stage| matches!(stage, Stage::Expected | Stage::Arriving(_));
                let current = self.judge(address, sequence) == Verdict::Taken;
                if self
                    .connection_by_id(address, connection)
                    .is_some_and(|here| current && expected(&here.stage))
                {
                    self.lose(now, address, &[connection.number], "cannot be moved", out);
                }
            }
            Body::Done => {
                let old = channel.peer;
                channel.offers.remove(&handoff);
                if let Some(old) = old {
                    self.all_came_from(now, old, (address, sequence), out);
                }
                self.send_on(id, handoff, Body::DoneAnswer, out);
            }
            _ => return Err(refusal::UNEXPECTED),
        }
        Ok(())
    }

    /// Answers an offer of the connections of a host.
    fn offer(
        &mut self,
        now: Instant,
        id: StreamId,
        handoff: u64,
        (host, sequence): (Ipv4Addr, u64),
        out: &mut Outbox,
    ) -> Result<(), Reason> {
        self.supersede(id, out);
        let verdict = self.judge(host, sequence);
        if verdict == Verdict::Taken && !self.is_named(host, id) {
            return Err(refusal::MISDIRECTED);
        }
        self.note_offer(id, handoff, host, sequence);
        self.still_comes(now, host, verdict);
        self.send_on(id, handoff, Body::OfferAnswer(verdict), out);
        Ok(())
    }

    /// Returns the answer to a status. [`Verdict::Taken`]: this router took the connection by this attempt. `sequence`
    /// is the sequence of the greeting that the offer named.
    fn whose(&self, host: Ipv4Addr, (connection, attempt): (ConnectionId, u32), sequence: u64) -> Verdict {
        if self.hosts.get(&host).is_some_and(|host| host.has_taken(connection, attempt)) {
            Verdict::Taken
        } else if sequence <= self.began {
            // The greeting is from before this router restarted. This router may have taken the connection and lost it
            // in the restart, so the state of the old router may be outdated.
            Verdict::Failed
        } else {
            Verdict::Unknown
        }
    }

    /// Extends the wait for expected connections, if the old router hands them over ([`Verdict::Taken`]). The transfer
    /// may take half a minute, because each retransmission time-out is twice the previous one.
    pub(super) fn still_comes(&mut self, now: Instant, address: Ipv4Addr, verdict: Verdict) {
        let missing = |here: &Connection| matches!(here.stage, Stage::Expected | Stage::Arriving(_));
        let host = self.hosts.get(&address).filter(|_| verdict == Verdict::Taken);
        if host.is_some_and(|host| host.connections.values().any(missing)) {
            self.timers.set(Timer::Patience(address), now + self.config.patience * 3);
        }
    }

    fn judge(&self, address: Ipv4Addr, sequence: u64) -> Verdict {
        match self.hosts.get(&address) {
            Some(host) if host.greeted == sequence && host.way.is_some() => Verdict::Taken,
            Some(host) if host.greeted > sequence => Verdict::Moved,
            _ => Verdict::Unknown,
        }
    }

    /// Returns whether the host's greeting names the router at the other end of stream `id` as an earlier router. This
    /// router sends forward pointers only to the routers that the greeting names.
    fn is_named(&self, address: Ipv4Addr, id: StreamId) -> bool {
        let Some(StreamUse::Router(channel)) = self.streams.get(&id) else { return false };
        let greeting = self.hosts.get(&address).and_then(|host| host.greeting.as_ref());
        greeting.zip(channel.peer).is_some_and(|(greeting, peer)| greeting.message.previous.contains(&peer))
    }

    /// Returns the host's connection with this identifier, or `None` if there is none.
    fn connection_by_id(&mut self, host: Ipv4Addr, id: ConnectionId) -> Option<&mut Connection> {
        self.connection(host, id.number).filter(|here| here.entry.id == id)
    }

    /// Begins to receive a connection, if it is expected with the same end points, and was not taken before by this
    /// attempt.
    fn begins(
        &mut self,
        now: Instant,
        address: Ipv4Addr,
        entry: &Entry,
        (by, attempt): (StreamId, u32),
        out: &mut Outbox,
    ) {
        let number = entry.id.number;
        let Some(host) = self.hosts.get(&address).filter(|host| !host.has_taken(entry.id, attempt)) else {
            return;
        };
        let Some(here) = host.connections.get(&number).filter(|here| same(&here.entry, entry)) else {
            return;
        };
        // This router has committed the connection to another router. That router took it and hands it back, and its
        // answer to the commit has not come yet. So the state here is outdated.
        if here.committed().is_some_and(|commit| commit.attempt < attempt) {
            self.expect_again(now, address, number, out);
        }
        let Some(connection) = self.connection(address, number) else { return };
        if matches!(connection.stage, Stage::Expected) {
            connection.attempt = attempt;
            connection.stage = Stage::Arriving(Arriving::new(by));
        }
    }

    fn import(
        &mut self,
        address: Ipv4Addr,
        of: ConnectionId,
        by: StreamId,
        state: SocketState,
        out: &mut Outbox,
    ) {
        let number = of.number;
        let Some(connection) = self.connection_by_id(address, of) else { return };
        let Stage::Arriving(arriving) = &mut connection.stage else { return };
        if arriving.by != by {
            return;
        }
        let self_contained = state.is_self_contained();
        let SocketState { side, tcp } = state;
        if side == Side::Near {
            arriving.expected = Some(tcp.receive_next);
        }
        let tuple = match side {
            Side::Near => connection.entry.near(),
            Side::Far => connection.entry.far(),
        };
        let half = arriving.of(side);
        if (tcp.local, tcp.remote) != (tuple.local, tuple.remote) || *half != Arrival::Missing {
            return; // a state for other end points is missing at the commit, which is then refused
        }
        *half = Arrival::Importing;
        arriving.self_contained.extend(self_contained.then_some(side));
        arriving.buffered += tcp.unread.len() + tcp.unacknowledged.len();
        let id = self.new_stream(StreamUse::Half(address, number, side));
        if let Some(connection) = self.connection(address, number) {
            *connection.of(side) = Some(id);
        }
        self.set_half(id, out);
        out.stream(id, StreamOp::Migrate(MigrateOp::Import(Box::new(tcp))));
    }

    fn stage(
        &mut self,
        address: Ipv4Addr,
        of: ConnectionId,
        by: StreamId,
        (way, bytes): (Direction, Vec<u8>),
    ) {
        let Some(connection) = self.connection_by_id(address, of) else { return };
        let Stage::Arriving(arriving) = &mut connection.stage else { return };
        if arriving.by != by {
            return;
        }
        let Arriving { staged: [up, down], buffered, .. } = arriving;
        *buffered += bytes.len();
        match way {
            Direction::Up => *up = bytes,
            Direction::Down => *down = bytes,
        }
    }

    /// Handles a commit, which ends the state of a connection. The answer is final: the attempt has succeeded, or will
    /// never succeed. If a half is still being imported, the answer follows later.
    fn commit(&mut self, now: Instant, received: Received, known: Verdict, out: &mut Outbox) {
        let Received { host, connection, attempt, halves, by, handoff } = received;
        let taken = self.hosts.get(&host).is_some_and(|host| host.has_taken(connection, attempt));
        let here = self.connection_by_id(host, connection).filter(|_| !taken);
        if let Some(here) = here
            && let Stage::Arriving(arriving) = &mut here.stage
            && (arriving.by, here.attempt) == (by, attempt)
        {
            arriving.commit = Some(handoff);
            if !arriving.is(halves) {
                return self.cannot_come(now, host, connection.number, out);
            }
            return self.take(now, host, connection.number, out);
        }
        let verdict = match known {
            _ if taken => Verdict::Taken,
            // The host was notified that the connection is lost, or its greeting does not name the connection.
            Verdict::Taken => Verdict::Failed,
            // The host has left this router. The sender of the commit keeps the connection until a forward pointer
            // names the next router.
            _ => Verdict::Moved,
        };
        let body = Body::CommitAnswer { host, connection, attempt, verdict };
        self.send_on(by, handoff, body, out);
    }

    /// Takes the connection if its state is complete. The answer to the commit is sent before any segment of the
    /// connection.
    pub(super) fn take(&mut self, now: Instant, address: Ipv4Addr, number: u32, out: &mut Outbox) {
        let Some(connection) = self.connection(address, number) else { return };
        let Stage::Arriving(arriving) = &mut connection.stage else { return };
        let Some(handoff) = arriving.commit.filter(|_| arriving.is_set_up()) else { return };
        let (by, expected) = (arriving.by, arriving.expected);
        let (staged, buffered) = (std::mem::take(&mut arriving.staged), arriving.buffered);
        connection.stage = Stage::Serving;
        connection.entry.unanswered = false;
        let (entry, attempt, near, far) =
            (connection.entry, connection.attempt, connection.near, connection.far);
        let verdict = Verdict::Taken;
        let answer = Body::CommitAnswer { host: address, connection: entry.id, attempt, verdict };
        self.send_on(by, handoff, answer, out);
        if let Some(host) = self.hosts.get_mut(&address) {
            host.note_taken(entry.id, attempt);
        }
        let closing = entry.closing;
        out.mark(IndirectTcpEvent::Taken { host: address, connection: number, buffered, closing }.into());
        if let (Some(near), Some(far)) = (near, far) {
            out.stream(near, StreamOp::Migrate(MigrateOp::Join(far, staged)));
        }
        for (half, tuple) in [(near, entry.near()), (far, entry.far())] {
            match half {
                Some(half) => {
                    out.stream(half, StreamOp::Migrate(MigrateOp::Thaw));
                    Self::guard(tuple, None, out);
                }
                None => self.last_segments(now, tuple, out),
            }
        }
        if let Some(expected) = expected.filter(|_| near.is_some()) {
            self.end_wait(address, entry.near(), expected, out);
        }
        if (near, far) == (None, None) {
            self.ended(now, address, number);
        }
    }

    /// Shortens the wait of the host's own TCP, whose retransmission time-out has doubled while there was no path.
    /// Sends the host ICMP host unreachable about its oldest unacknowledged segment, for which there was no path. Each
    /// report reverts one doubling, and an overdue retransmission is sent at once (RFC 6069, section 4).
    fn end_wait(&self, address: Ipv4Addr, near: Tuple, expected: Seq, out: &mut Outbox) {
        let Some((iface, mac)) = self.hosts.get(&address).and_then(|host| host.way) else { return };
        let mut segment = near.remote.port().to_be_bytes().to_vec();
        segment.extend(near.local.port().to_be_bytes());
        segment.extend(expected.0.to_be_bytes());
        let original = Header::new(ipv4::TCP, *near.remote.ip(), *near.local.ip()).emit(&segment);
        let Some(report) = IcmpError::HostUnreachable.about(&original, self.config.address) else { return };
        for _ in 0..DOUBLINGS {
            out.send(iface, Packet::new(mac, report.clone()));
        }
    }

    /// Gives up a connection whose state has come but cannot be set up. The answer to its commit makes the old router
    /// reset both ends.
    pub(super) fn cannot_come(&mut self, now: Instant, address: Ipv4Addr, number: u32, out: &mut Outbox) {
        self.lose(now, address, &[number], "cannot be set up", out);
    }

    /// Answers a commit whose connection is still being set up, before the connection is removed. Without an answer the
    /// old router would wait.
    pub(super) fn answer_commit(
        &mut self,
        address: Ipv4Addr,
        number: u32,
        verdict: Verdict,
        out: &mut Outbox,
    ) {
        let Some(connection) = self.connection(address, number) else { return };
        let (id, attempt) = (connection.entry.id, connection.attempt);
        if let Stage::Arriving(Arriving { by, commit: Some(handoff), .. }) = connection.stage {
            let body = Body::CommitAnswer { host: address, connection: id, attempt, verdict };
            self.send_on(by, handoff, body, out);
        }
    }

    /// Handles the end of stream `id` from an old router. The host's connections that were arriving on this stream are
    /// expected again, and the state that has come is discarded.
    pub(super) fn arrival_interrupted(&mut self, address: Ipv4Addr, id: StreamId, out: &mut Outbox) {
        let Some(host) = self.hosts.get_mut(&address) else { return };
        let mut ended = Vec::new();
        for connection in host.connections.values_mut() {
            let Stage::Arriving(arriving) = &connection.stage else { continue };
            if arriving.by == id {
                connection.stage = Stage::Expected;
                ended.extend([connection.near.take(), connection.far.take()].into_iter().flatten());
            }
        }
        for id in ended {
            self.streams.remove(&id);
            out.stream(id, StreamOp::Migrate(MigrateOp::Forget));
        }
    }
}
