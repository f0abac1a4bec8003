//! Connections that begin here: this router opens them for a mobile host, from the host's own address.

use super::connection::{Connection, Stage};
use super::peer_channel::PeerChannel;
use super::{StreamUse, SupportRouter, Timer, refusal};
use crate::mark::IndirectTcpEvent;
use crate::message::{Answer, CONNECTIONS, Call, Code, ConnectionId, Entry, Side, Signed};
use node::{MigrateOp, Outbox, StreamEvent, StreamId, StreamOp, Transport, Tuple};
use std::collections::BTreeMap;
use wire::{Duration, Instant, Ipv4Addr, Reason};

/// The time in which an accepted connection must authenticate itself.
const PREAMBLE: Duration = Duration::from_secs(5);
/// The limit of accepted connections that are not authenticated yet.
const CALLERS: usize = 64;
/// The limit of unauthenticated connections from one address: the number of connections that a host may have.
const FROM_ONE: usize = CONNECTIONS;
/// The number of bytes to read first. They distinguish a call of a host from a frame of a router ([`CALL`]).
const TELLING: usize = 4;
const CALL: [u8; 3] = [0x49, 0x54, 1];

impl SupportRouter {
    /// Handles a new connection from a host or a router, which has to authenticate itself.
    pub(super) fn accepted(&mut self, now: Instant, id: StreamId, near: Tuple, out: &mut Outbox) {
        if let Some(oldest) = self.displaced_by(*near.remote.ip()) {
            self.refused.count(refusal::BUSY);
            self.hang_up(oldest, out);
        }
        self.streams.insert(id, StreamUse::Caller { near, heard: Vec::new(), room: 0 });
        self.timers.set(Timer::Caller(id), now + PREAMBLE);
        out.stream(id, StreamOp::Read(TELLING));
    }

    /// Returns the unauthenticated connection to close for a new one from `source`, or `None` if none has to be closed.
    /// If `source` has [`FROM_ONE`] unauthenticated connections, returns the oldest of them. Otherwise, if all
    /// addresses together have [`CALLERS`], returns the oldest connection of the address with the most. So an address
    /// with many connections does not exclude other addresses.
    fn displaced_by(&self, source: Ipv4Addr) -> Option<StreamId> {
        let mut unproved: BTreeMap<Ipv4Addr, Vec<StreamId>> = BTreeMap::new();
        for (id, what) in &self.streams {
            let from = match what {
                StreamUse::Caller { near, .. } => Some(*near.remote.ip()),
                StreamUse::Router(channel) if !channel.proven => channel.source,
                _ => None,
            };
            if let Some(from) = from {
                unproved.entry(from).or_default().push(*id); // stream numbers rise: the oldest first
            }
        }
        let own = unproved.get(&source).filter(|own| own.len() >= FROM_ONE);
        let full = unproved.values().map(Vec::len).sum::<usize>() >= CALLERS;
        let most = unproved.values().filter(|_| full).max_by_key(|places| places.len());
        own.or(most)?.first().copied()
    }

    /// Handles an event of an accepted connection. Reads no byte beyond the call, as the bytes after the call are data
    /// for the peer.
    pub(super) fn caller(&mut self, now: Instant, id: StreamId, event: StreamEvent<'_>, out: &mut Outbox) {
        match event {
            StreamEvent::Room(more) => {
                if let Some(StreamUse::Caller { room, .. }) = self.streams.get_mut(&id) {
                    *room += more;
                }
            }
            StreamEvent::Data(bytes) => self.heard(now, id, bytes, out),
            StreamEvent::Finished => self.hang_up(id, out),
            StreamEvent::Closed(_) => {
                self.timers.stop(Timer::Caller(id));
                self.streams.remove(&id);
            }
            StreamEvent::Opened(_) | StreamEvent::Accepted(..) | StreamEvent::Migrate(_) => {}
        }
    }

    fn heard(&mut self, now: Instant, id: StreamId, bytes: &[u8], out: &mut Outbox) {
        let Some(StreamUse::Caller { near, heard, room }) = self.streams.get_mut(&id) else { return };
        heard.extend(bytes);
        let missing = match heard.len() {
            len if len < TELLING => TELLING - len,
            _ if !heard.starts_with(&CALL) => {
                // The timer stays set until the router has authenticated itself.
                let (channel, heard) =
                    (PeerChannel::accepted(*room, *near.remote.ip()), std::mem::take(heard));
                self.set_channel(id, out);
                self.streams.insert(id, StreamUse::Router(Box::new(channel)));
                return self.channel_data(now, id, &heard, out);
            }
            len => Call::LEN.saturating_sub(len),
        };
        if missing > 0 {
            return out.stream(id, StreamOp::Read(missing));
        }
        let (near, heard) = (*near, std::mem::take(heard));
        self.timers.stop(Timer::Caller(id));
        let called = Signed::parse(&heard).map_err(Reason::from);
        if let Err(reason) = called.and_then(|call| self.called(id, near, &call, out)) {
            self.refused.count(reason);
            self.hang_up(id, out);
        }
    }

    fn hang_up(&mut self, id: StreamId, out: &mut Outbox) {
        self.timers.stop(Timer::Caller(id));
        self.streams.remove(&id);
        out.stream(id, StreamOp::Abort);
    }

    fn called(
        &mut self,
        id: StreamId,
        near: Tuple,
        call: &Signed<Call>,
        out: &mut Outbox,
    ) -> Result<(), Reason> {
        let Call { host: address, connection: number, sequence, router, peer } = call.message;
        let host = self.hosts.get_mut(&address).ok_or(refusal::STRANGER)?;
        if !call.is_by(&host.key) {
            return Err(refusal::FORGED);
        }
        if *near.remote.ip() != address || *near.local.ip() != router || router != self.config.address {
            return Err(refusal::MISDIRECTED);
        }
        let new = !host.connections.contains_key(&number);
        let connection_id = ConnectionId { number, call: sequence };
        if !new || !host.may_call(connection_id) {
            return Err(refusal::STALE);
        }
        if host.open() >= CONNECTIONS {
            self.answer(id, address, Answer { connection: number, code: Code::Full }, out);
            self.streams.remove(&id);
            out.stream(id, StreamOp::Finish);
            return Ok(());
        }
        // The far half has the host's own address and port, so that the router is transparent to the peer.
        let entry = Entry {
            id: connection_id,
            host: near.remote,
            router: near.local,
            peer,
            closing: false,
            unanswered: false,
            calling: false,
        };
        let far = self.new_stream(StreamUse::Half(address, number, Side::Far));
        self.streams.insert(id, StreamUse::Half(address, number, Side::Near));
        let (near, far_id, called) = (Some(id), Some(far), Some(sequence));
        let connection =
            Connection { entry, near, far: far_id, called, attempt: 0, stage: Stage::Connecting };
        if let Some(host) = self.hosts.get_mut(&address) {
            host.connections.insert(number, connection);
        }
        self.begins_anew(entry.far(), out);
        self.listen();
        out.mark(IndirectTcpEvent::Called { host: address, connection: number }.into());
        let local = Some(entry.host);
        self.set_half(far, out);
        out.stream(far, StreamOp::Open { by: Transport::Tcp, local, peer, foreign: true });
        Ok(())
    }

    fn answer(&self, near: StreamId, address: Ipv4Addr, answer: Answer, out: &mut Outbox) {
        if let Some(host) = self.hosts.get(&address) {
            out.stream(near, StreamOp::Write(Signed::new(answer, &host.key).emit()));
        }
    }

    /// Notifies the host that the far half is open, and begins to relay.
    pub(super) fn connected(&mut self, address: Ipv4Addr, number: u32, out: &mut Outbox) {
        let Some(connection) = self.connection(address, number) else { return };
        let Some((near, far)) = connection.near.zip(connection.far) else { return };
        self.answer(near, address, Answer { connection: number, code: Code::Connected }, out);
        out.stream(near, StreamOp::Migrate(MigrateOp::Join(far, [Vec::new(), Vec::new()])));
        out.mark(IndirectTcpEvent::Connected { host: address, connection: number }.into());
    }

    /// Removes a connection whose far half could not be opened. Reports this to the host, and ends the near half.
    pub(super) fn not_connected(&mut self, address: Ipv4Addr, number: u32, code: Code, out: &mut Outbox) {
        if let Some(near) = self.forget(address, number).and_then(|connection| connection.near) {
            self.answer(near, address, Answer { connection: number, code }, out);
            out.stream(near, StreamOp::Finish);
        }
    }

    /// Removes a connection whose near half ended before the far half was open.
    pub(super) fn call_ended(&mut self, address: Ipv4Addr, number: u32, out: &mut Outbox) {
        if let Some(far) = self.forget(address, number).and_then(|connection| connection.far) {
            out.stream(far, StreamOp::Abort);
        }
    }
}
