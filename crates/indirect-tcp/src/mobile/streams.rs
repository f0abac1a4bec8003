//! The streams of programs, and the streams to the router.

use super::{Connection, MobileHost, State};
use crate::message::{Answer, CONNECTIONS, Call, Code, ConnectionId, Entry, Message, PORT, Signed};
use crate::router::refusal;
use node::stream::{OwnedStreamEvent, refusal as refused};
use node::{Addr, Guard, MigrateOp, Outbox, StreamEvent, StreamId, StreamOp, Transport, Tuple};
use std::collections::btree_map;
use wire::{Instant, PacketId, Reason};

impl MobileHost {
    // --- programs --------------------------------------------------------------------------------------------------

    pub(super) fn serve(&mut self, program: StreamId, op: StreamOp, out: &mut Outbox) {
        match op {
            StreamOp::Open { local, peer, foreign: false, .. } => self.open(program, local, peer, out),
            StreamOp::Open { .. } => out.served(closed(program, Some(refused::NOT_OURS))),
            // Support routers do not listen for a host's programs.
            StreamOp::Listen { .. } => out.served(closed(program, Some(refused::NO_TRANSPORT))),
            StreamOp::Abort | StreamOp::Migrate(MigrateOp::Forget) => self.end(program, None, out),
            op => self.operate(program, op, out),
        }
    }

    fn open(&mut self, program: StreamId, local: Option<Addr>, peer: Addr, out: &mut Outbox) {
        if self.connections.contains_key(&program) {
            return;
        }
        if self.connections.len() >= CONNECTIONS {
            return out.served(closed(program, Some(refused::FULL)));
        }
        if peer.port() == 0 || !crate::config::is_host(*peer.ip()) {
            return out.served(closed(program, Some(refused::UNREACHABLE)));
        }
        self.next_number = self.next_number.wrapping_add(1);
        let connection = Connection {
            number: self.next_number,
            local,
            peer,
            inner: None,
            state: State::Waiting,
            credit: 0,
            wanted: 0,
            finishing: false,
        };
        self.connections.insert(program, connection);
        self.begin(program, out);
    }

    /// Opens a stream to the router, if the host has one. An earlier stream of the connection is ended. A connection
    /// for which a call was sent before gets a new number.
    pub(super) fn begin(&mut self, program: StreamId, out: &mut Outbox) {
        let Some(router) = self.router else { return };
        let Some(connection) = self.connections.get_mut(&program) else { return };
        if let Some(before) = connection.inner.take() {
            self.programs.remove(&before);
            out.stream(before, StreamOp::Abort);
            connection.lift(before, out);
        }
        if matches!(connection.state, State::Calling { called: true, .. }) {
            self.next_number = self.next_number.wrapping_add(1);
            connection.number = self.next_number;
        }
        (connection.state, connection.credit) = (State::Waiting, 0);
        let local = connection.local;
        let inner = self.new_stream(program);
        if let Some(connection) = self.connections.get_mut(&program) {
            connection.inner = Some(inner);
        }
        let peer = Addr::new(router, PORT);
        out.stream(inner, StreamOp::Open { by: Transport::Tcp, local, peer, foreign: false });
    }

    fn new_stream(&mut self, program: StreamId) -> StreamId {
        loop {
            self.next_stream = (self.next_stream + 1) % StreamId::OWN;
            let id = StreamId(self.next_stream);
            if let btree_map::Entry::Vacant(free) = self.programs.entry(id) {
                free.insert(program);
                return id;
            }
        }
    }

    fn operate(&mut self, program: StreamId, op: StreamOp, out: &mut Outbox) {
        let Some(connection) = self.connections.get_mut(&program) else { return };
        let open = matches!(connection.state, State::Open(_));
        match op {
            StreamOp::Read(most) if !open => connection.wanted = most,
            StreamOp::Finish if !open => connection.finishing = true,
            StreamOp::Write(ref bytes) => {
                match connection.credit.checked_sub(bytes.len()).filter(|_| open && !connection.finishing) {
                    Some(rest) => connection.credit = rest,
                    None => return self.end(program, Some(refused::BEYOND_CREDIT), out),
                }
                connection.pass(op, out);
            }
            StreamOp::Read(most) => {
                connection.wanted = most;
                connection.pass(op, out);
            }
            StreamOp::Finish => {
                connection.finishing = true;
                connection.pass(op, out);
            }
            // A connection cannot be exported here: only routers move connections.
            StreamOp::Migrate(MigrateOp::Export) => {
                out.served(OwnedStreamEvent::refused(program, refused::NOT_FROZEN));
            }
            StreamOp::Open { .. }
            | StreamOp::Listen { .. }
            | StreamOp::Abort
            | StreamOp::Migrate(_)
            | StreamOp::Set(_) => {}
        }
    }

    /// Ends a connection on both sides of this role, and notifies the program. `why` is `None` if the program ended the
    /// connection, or if the connection has ended cleanly.
    pub(super) fn end(&mut self, program: StreamId, why: Option<&str>, out: &mut Outbox) {
        let Some(connection) = self.connections.remove(&program) else { return };
        if let Some(inner) = connection.inner {
            self.programs.remove(&inner);
            out.stream(inner, StreamOp::Abort);
            connection.lift(inner, out);
        }
        out.served(closed(program, why));
    }

    // --- the stream to the router ----------------------------------------------------------------------------------

    pub(super) fn stream(&mut self, now: Instant, inner: StreamId, event: StreamEvent<'_>, out: &mut Outbox) {
        let Some(program) = self.programs.get(&inner).copied() else { return };
        let Some(connection) = self.connections.get_mut(&program) else { return };
        match event {
            StreamEvent::Opened(host) => {
                if let (State::Waiting, Some(router)) = (&connection.state, self.router) {
                    let entry = connection.entry(Addr::new(router, PORT), host);
                    connection.state = State::Calling { entry, called: false, heard: Vec::new() };
                    self.call(now, program, out);
                }
            }
            StreamEvent::Room(more) => {
                connection.credit += more;
                match connection.state {
                    State::Open(_) if !connection.finishing => {
                        out.served(OwnedStreamEvent::Room(program, more));
                    }
                    State::Open(_) => {}
                    _ => self.call(now, program, out),
                }
            }
            StreamEvent::Data(bytes) => match &mut connection.state {
                // More bytes than the program asked for cannot be delivered. A stream with a gap would be wrong, so the
                // stream ends.
                State::Open(_) if bytes.len() > connection.wanted => {
                    self.end(program, Some(refused::RESET), out);
                }
                State::Open(_) => {
                    connection.wanted = StreamOp::left_to_read(connection.wanted);
                    out.served(OwnedStreamEvent::Data(program, PacketId::NEW, bytes.to_vec()));
                }
                State::Calling { heard, .. } => {
                    heard.extend(bytes);
                    self.answered(program, out);
                }
                State::Waiting => {}
            },
            StreamEvent::Finished if matches!(connection.state, State::Open(_)) => {
                out.served(OwnedStreamEvent::Finished(program));
            }
            StreamEvent::Finished => self.call_ended(program, refused::RESET, out),
            StreamEvent::Closed(why) => {
                self.programs.remove(&inner);
                connection.inner = None;
                let open = if let State::Open(entry) = connection.state { Some(entry) } else { None };
                match open {
                    // The guard of the far half stays: the last segments of the far half may reach this host.
                    Some(entry) if why.is_none() => self.still_to_name(now, entry, out),
                    _ => connection.lift(inner, out),
                }
                match open {
                    Some(_) => self.end(program, why, out),
                    None => self.call_ended(program, why.unwrap_or(refused::RESET), out),
                }
            }
            StreamEvent::Accepted(..) | StreamEvent::Migrate(_) => {}
        }
    }

    /// Sends the call, once the stream has credit for all of it.
    fn call(&mut self, now: Instant, program: StreamId, out: &mut Outbox) {
        let sequence = self.next_sequence(now);
        let Some(connection) = self.connections.get_mut(&program) else { return };
        let State::Calling { entry, called, .. } = &mut connection.state else { return };
        if *called || connection.credit < Call::LEN {
            return;
        }
        *called = true;
        entry.id.call = sequence;
        // An ended connection may have had the same end points. The guard of that connection now belongs to this one.
        self.closing.retain(|(closed, _)| far(closed) != far(entry));
        let Entry { id: ConnectionId { number, .. }, router, peer, .. } = *entry;
        // A segment of the far half that reaches this host during a handoff is dropped: a reset from this host's stack
        // would end the connection.
        let guard = StreamOp::Migrate(MigrateOp::Guard(far(entry), Some(Guard::Drop)));
        let call =
            Call { host: self.config.address, connection: number, sequence, router: *router.ip(), peer };
        connection.credit -= Call::LEN;
        connection.pass(guard, out);
        connection.pass(StreamOp::Write(Signed::new(call, self.config.key_of(*router.ip())).emit()), out);
        connection.pass(StreamOp::Read(Answer::LEN), out);
        self.refresh_later(now);
    }

    fn answered(&mut self, program: StreamId, out: &mut Outbox) {
        let Some(connection) = self.connections.get_mut(&program) else { return };
        let State::Calling { entry, heard, .. } = &connection.state else { return };
        let missing = Answer::LEN.saturating_sub(heard.len());
        if missing > 0 {
            return connection.pass(StreamOp::Read(missing), out);
        }
        // The router that was called signs the answer, even if another router serves the connection now.
        let code = match parse::<Answer>(heard, self.config.key_of(*entry.router.ip())) {
            Ok(answer) if answer.connection == connection.number => answer.code,
            Ok(_) => Code::Failed,
            Err(reason) => {
                self.refused.count(reason);
                Code::Failed
            }
        };
        if code != Code::Connected {
            return self.end(program, Some(words(code)), out);
        }
        let entry = Entry { unanswered: false, calling: false, ..*entry };
        connection.state = State::Open(entry);
        out.served(OwnedStreamEvent::Opened(program, entry.host));
        if connection.finishing {
            connection.pass(StreamOp::Finish, out);
        } else if connection.credit > 0 {
            out.served(OwnedStreamEvent::Room(program, connection.credit));
        }
        if connection.wanted > 0 {
            connection.pass(StreamOp::Read(connection.wanted), out);
        }
    }

    /// Handles the end of a stream whose call was not answered. If the call was sent to an earlier router, the host
    /// calls the present router. Otherwise the connection ends.
    fn call_ended(&mut self, program: StreamId, why: &str, out: &mut Outbox) {
        let state = self.connections.get(&program).map(|connection| &connection.state);
        if matches!(state, Some(State::Calling { entry: Entry { calling: false, .. }, .. })) {
            self.begin(program, out);
        } else {
            self.end(program, Some(why), out);
        }
    }
}

impl Connection {
    /// Passes an operation to the stream to the router, if there is one.
    fn pass(&self, op: StreamOp, out: &mut Outbox) {
        if let Some(inner) = self.inner {
            out.stream(inner, op);
        }
    }

    /// Returns the identifier of the connection, or `None` if no call was sent for it.
    pub(super) const fn id(&self) -> Option<ConnectionId> {
        match &self.state {
            State::Open(entry) | State::Calling { entry, called: true, .. } => Some(entry.id),
            _ => None,
        }
    }

    /// Returns whether a call was sent for the connection, so that a router may know it.
    pub(super) const fn is_known_to_router(&self) -> bool {
        self.id().is_some()
    }

    /// Returns the entry of the connection before its call. The sequence of the call is set when the call is sent.
    const fn entry(&self, router: Addr, host: Addr) -> Entry {
        Entry {
            id: ConnectionId { number: self.number, call: 0 },
            host,
            router,
            peer: self.peer,
            closing: false,
            unanswered: true,
            calling: true,
        }
    }

    /// Removes the guard of the far half, if a call has set it.
    fn lift(&self, inner: StreamId, out: &mut Outbox) {
        if let State::Open(entry) | State::Calling { entry, called: true, .. } = &self.state {
            out.stream(inner, StreamOp::Migrate(MigrateOp::Guard(far(entry), None)));
        }
    }
}

/// Returns the end points in a segment of the far half that reaches the mobile host instead of the router.
pub(super) const fn far(entry: &Entry) -> Tuple {
    Tuple { local: entry.host, remote: entry.peer }
}

fn parse<T: Message>(bytes: &[u8], key: &auth::Key) -> Result<T, Reason> {
    let signed = Signed::<T>::parse(bytes)?;
    if signed.is_by(key) { Ok(signed.message) } else { Err(refusal::FORGED) }
}

fn closed(program: StreamId, why: Option<&str>) -> OwnedStreamEvent {
    OwnedStreamEvent::Closed(program, why.map(str::to_owned))
}

const fn words(code: Code) -> &'static str {
    match code {
        Code::Refused => refused::REFUSED,
        Code::TimedOut => refused::TIMED_OUT,
        Code::Unreachable => refused::UNREACHABLE,
        Code::InUse => refused::IN_USE,
        Code::Full => refused::FULL,
        Code::Connected | Code::Failed => refused::RESET,
    }
}
