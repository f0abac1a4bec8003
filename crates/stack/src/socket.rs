//! A TCP socket: a connection, and the requests of its user.

use crate::{Output, traced};
use node::stream::{OwnedMigrateEvent, OwnedStreamEvent, refusal};
use node::{MigrateOp, SocketOption, StreamId, StreamOp};
use std::collections::VecDeque;
use tcp::{Connection, Ended, State, Watch};
use wire::{Instant, PacketId};

/// What the table of sockets must do after a user's request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    /// Do nothing: the request changed nothing for the user or the peer.
    Rest,
    /// Notify the user, and send segments ([`Socket::serve`]).
    Serve,
    /// Remove the socket.
    Forget,
}

impl Next {
    const fn of(forgets: bool) -> Self {
        if forgets { Self::Forget } else { Self::Serve }
    }
}

#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate fact")]
pub(crate) struct Socket {
    pub(crate) tcp: Connection,
    /// The user: `None` before the connection is accepted, and after it is closed.
    pub(crate) stream: Option<StreamId>,
    /// The listener that is notified when the connection is established.
    pub(crate) listener: Option<StreamId>,
    pub(crate) frozen: bool,
    /// The number of bytes that the user requested to read.
    wanted: usize,
    /// The credit that was granted to the user and not used.
    credit: usize,
    /// The size of the send buffer in bytes, if the user has set it.
    send_buffer: Option<u32>,
    /// Whether the connection is established and the user was notified of that.
    pub(crate) opened: bool,
    /// Whether the user knows that the peer has finished. In a relay: whether the other side has got all bytes of this
    /// one and its end.
    knows_end: bool,
    finishing: bool,
    /// Whether a relay reads and writes, instead of the user.
    relayed: bool,
    /// Whether the connection was imported after both ends had finished. Then its user can only move it again.
    lingers: bool,
    /// The traced values when the socket was last served, if the profile traces connections.
    pub(crate) watch: Option<Box<Watch>>,
    /// The bytes that a relay sends first: those staged at the start, and then those in its pipe.
    staged: VecDeque<u8>,
    /// The capacity of the relay's pipe to this socket, in bytes.
    pipe: usize,
}

impl Socket {
    pub(crate) const fn new(tcp: Connection, stream: Option<StreamId>, listener: Option<StreamId>) -> Self {
        Self {
            tcp,
            stream,
            listener,
            frozen: false,
            wanted: 0,
            credit: 0,
            send_buffer: None,
            opened: false,
            knows_end: false,
            finishing: false,
            relayed: false,
            lingers: false,
            watch: None,
            staged: VecDeque::new(),
            pipe: 0,
        }
    }

    /// Returns the socket of an imported connection, which sends nothing until it is thawed.
    pub(crate) fn imported(tcp: Connection, stream: StreamId, finishing: bool) -> Self {
        let mut socket = Self::new(tcp, Some(stream), None);
        socket.finishing = finishing;
        socket.lingers = finishing && socket.tcp.at_end();
        socket.knows_end = socket.lingers;
        socket.frozen = true;
        socket.opened = true;
        socket
    }

    /// Sets the user's credit, also beyond the room in the send buffer.
    #[cfg(test)]
    pub(crate) const fn plant_credit(&mut self, bytes: usize) {
        self.credit = bytes;
    }

    /// Executes a request of the user.
    pub(crate) fn operate(&mut self, now: Instant, id: StreamId, op: StreamOp, out: &mut Output) -> Next {
        match op {
            StreamOp::Read(most) => return self.ask(most),
            StreamOp::Write(bytes) => {
                let forgets = self.write(&bytes, out);
                out.buffers.give(bytes);
                return Next::of(forgets);
            }
            StreamOp::Finish => {
                self.finishing = true;
                self.tcp.finish();
            }
            StreamOp::Abort => return Next::of(self.abort(None, out)),
            StreamOp::Migrate(MigrateOp::Freeze) => self.frozen = true,
            StreamOp::Migrate(MigrateOp::Thaw) => self.frozen = false,
            StreamOp::Migrate(MigrateOp::Export) => out.events.push(self.export(now, id)),
            StreamOp::Set(SocketOption::Nagle(on)) => self.tcp.set_nagle(on),
            StreamOp::Set(SocketOption::ReceiveBuffer(bytes)) => self.tcp.set_receive_buffer(bytes),
            StreamOp::Set(SocketOption::SendBuffer(bytes)) => {
                self.send_buffer = Some(bytes);
                self.fit_buffer();
            }
            StreamOp::Migrate(MigrateOp::Forget) => {
                self.close(None, out);
                return Next::Forget;
            }
            // Segments always have DF. The table executes the other operations, because they create sockets, or concern
            // two sockets or none.
            StreamOp::Set(SocketOption::DontFragment(_))
            | StreamOp::Open { .. }
            | StreamOp::Listen { .. }
            | StreamOp::Migrate(
                MigrateOp::Import(_) | MigrateOp::Guard(..) | MigrateOp::Join(..) | MigrateOp::Part,
            ) => {}
        }
        Next::Serve
    }

    /// Requests a read. The user is notified once there are data or the end of the stream. A relayed socket ignores the
    /// request.
    fn ask(&mut self, most: usize) -> Next {
        self.wanted = if self.relayed { 0 } else { most };
        let now = self.wanted > 0 && (self.tcp.readable() > 0 || self.tcp.at_end());
        if now { Next::Serve } else { Next::Rest }
    }

    /// Sets the send buffer to the size that the user has set, but keeps room for the credit that was granted.
    fn fit_buffer(&mut self) {
        let Some(bytes) = self.send_buffer else { return };
        let promised = if self.credit > 0 { self.tcp.unacknowledged() + self.credit } else { 0 };
        self.tcp.set_send_buffer(bytes.max(u32::try_from(promised).unwrap_or(u32::MAX)));
    }

    /// Writes bytes of the user, or aborts the connection if the user may not write them. Returns whether the socket is
    /// to be removed.
    fn write(&mut self, bytes: &[u8], out: &mut Output) -> bool {
        match self.credit.checked_sub(bytes.len()).filter(|_| !self.finishing) {
            Some(rest) => {
                self.credit = rest;
                let taken = self.tcp.write(bytes);
                assert_eq!(taken, bytes.len(), "the send buffer had no room for the credit of the user");
                false
            }
            None => self.abort(Some(refusal::BEYOND_CREDIT), out),
        }
    }

    /// Aborts the connection. Returns whether the socket must be removed immediately. A frozen socket must, because
    /// it sends no reset.
    pub(crate) fn abort(&mut self, why: Option<&str>, out: &mut Output) -> bool {
        self.tcp.abort();
        self.close(why, out);
        self.frozen
    }

    fn export(&self, now: Instant, id: StreamId) -> OwnedStreamEvent {
        let refused = |why: &str| OwnedStreamEvent::refused(id, why);
        match self.tcp.export(now) {
            _ if !self.frozen => refused(refusal::NOT_FROZEN),
            None => refused(refusal::NOT_ESTABLISHED),
            Some(state) => OwnedStreamEvent::Migrate(id, OwnedMigrateEvent::Exported(Box::new(state))),
        }
    }

    /// Notifies the user of new events of the connection, and sends all segments that may be sent. Returns whether the
    /// socket is no longer needed.
    pub(crate) fn serve(&mut self, now: Instant, out: &mut Output) -> bool {
        if let (false, true, Some(id)) = (self.opened, self.tcp.state().synchronized(), self.stream) {
            self.opened = true;
            out.events.push(OwnedStreamEvent::Opened(id, self.tcp.local()));
        }
        self.read(out);
        self.grant(out);
        let (src, dst) = (*self.tcp.local().ip(), *self.tcp.remote().ip());
        while let Some(segment) = self.tcp.poll(now) {
            out.packets.push(segment.datagram_in(out.buffers.take(), src, dst));
        }
        if let Some(watch) = &mut self.watch {
            out.marks.extend(traced::changes(watch, &self.tcp));
        }
        self.conclude(out)
    }

    // --- relays ----------------------------------------------------------------------------------------------------

    /// Returns whether the socket can be one side of a relay. A connection that has finished can, because it may have
    /// data, or at least its end, for the other side.
    pub(crate) const fn is_joinable(&self) -> bool {
        let finished = matches!(self.tcp.ended(), Some(Ended::Finished));
        self.opened && self.stream.is_some() && (self.tcp.state().synchronized() || finished)
    }

    /// Makes the socket one side of a relay. The relay first writes `staged` to it, and the relay's pipe to this socket
    /// holds `pipe` bytes. The user's former credit is void.
    pub(crate) fn join(&mut self, staged: Vec<u8>, pipe: usize) {
        (self.relayed, self.wanted, self.credit) = (true, 0, 0);
        // An imported socket that has finished may have bytes in `staged` of the other side. It stays until they are
        // written, because they are written only while both sides exist.
        self.knows_end = false;
        self.fit_buffer();
        (self.staged, self.pipe) = (staged.into(), pipe);
    }

    /// Ends the relay of this socket. Returns the bytes that the relay has not written to it.
    pub(crate) fn part(&mut self) -> Vec<u8> {
        self.relayed = false;
        std::mem::take(&mut self.staged).into()
    }

    /// Takes the unread bytes of a connection that has finished cleanly and cannot move any more. The bytes are in the
    /// result of the operation that ends the relay (`MigrateEvent::Parted`). Empty for any other connection.
    pub(crate) fn leave_behind(&mut self) -> Vec<u8> {
        let ended = matches!(self.tcp.ended(), Some(Ended::Finished)) || self.tcp.state() == State::TimeWait;
        if ended { self.tcp.read(usize::MAX) } else { Vec::new() }
    }

    /// Returns the size of the send buffer in bytes.
    pub(crate) const fn send_capacity(&self) -> usize {
        self.tcp.send_buffer()
    }

    /// Writes the staged bytes, then the data that the other socket has received, and fills the pipe. Further data stay
    /// in the other socket's receive buffer. After the last data of the other socket, finishes this socket. If `rests`
    /// is true, the other socket is frozen or guarded, and nothing is read from it.
    pub(crate) fn relay_from(&mut self, other: &mut Self, rests: bool) {
        self.send_staged();
        if rests {
            return;
        }
        if self.staged.is_empty() && self.tcp.room() > 0 && other.tcp.readable() > 0 {
            self.tcp.write(&other.tcp.read(self.tcp.room()));
        }
        let room = self.pipe.saturating_sub(self.staged.len());
        if room > 0 && other.tcp.readable() > 0 {
            self.staged.extend(other.tcp.read(room));
        }
        if other.tcp.at_end() && self.staged.is_empty() {
            other.knows_end = true;
            self.finishing = true;
            self.tcp.finish();
        }
    }

    fn send_staged(&mut self) {
        let most = self.tcp.room().min(self.staged.len());
        let staged: Vec<u8> = self.staged.drain(..most).collect();
        self.tcp.write(&staged);
    }

    fn read(&mut self, out: &mut Output) {
        let Some(id) = self.stream.filter(|_| self.wanted > 0) else { return };
        if self.tcp.readable() > 0 {
            let bytes = self.tcp.read_for(self.wanted, out.buffers.take());
            out.events.push(OwnedStreamEvent::Data(id, PacketId::NEW, bytes));
            self.wanted = StreamOp::left_to_read(self.wanted);
        }
        if self.wanted > 0 && self.tcp.at_end() {
            self.knows_end = true;
            self.wanted = 0;
            out.events.push(OwnedStreamEvent::Finished(id));
        }
    }

    /// Grants new credit in steps of at least two segments. A user without credit gets any amount.
    fn grant(&mut self, out: &mut Output) {
        let Some(id) = self.stream.filter(|_| self.opened && !self.finishing && !self.relayed) else {
            return;
        };
        self.fit_buffer();
        let more = self.tcp.room().saturating_sub(self.credit);
        if more >= 2 * self.tcp.mss() as usize || (more > 0 && self.credit == 0) {
            self.credit += more;
            out.events.push(OwnedStreamEvent::Room(id, more));
        }
        let room = self.tcp.room();
        let is_room = self.credit <= room || self.tcp.ended().is_some();
        assert!(
            is_room,
            "the user of {id:?} may write {} bytes, but the send buffer has room for {room}",
            self.credit
        );
    }

    fn conclude(&mut self, out: &mut Output) -> bool {
        let why = match self.tcp.ended() {
            // A relayed connection, or one imported after both ends finished, can still move until everything is
            // acknowledged.
            None if (self.relayed || self.lingers) && self.tcp.state() != State::TimeWait => return false,
            // Both ends have finished, and the user knows it: the last segments concern only the two stacks.
            None | Some(Ended::Finished) if self.finishing && self.knows_end => None,
            None => return false,
            // The user has not read everything, or has not finished.
            Some(Ended::Finished) if self.stream.is_some() && self.opened => return false,
            Some(Ended::Finished | Ended::Aborted) => None,
            Some(Ended::Refused) => Some(refusal::REFUSED),
            Some(Ended::Reset) => Some(refusal::RESET),
            Some(Ended::TimedOut) => Some(refusal::TIMED_OUT),
        };
        self.close(why, out);
        self.tcp.ended().is_some()
    }

    /// Closes the stream: the user gets the reason, or `None` for a clean end.
    pub(crate) fn close(&mut self, why: Option<&str>, out: &mut Output) {
        if let Some(id) = self.stream.take() {
            out.events.push(OwnedStreamEvent::Closed(id, why.map(str::to_owned)));
        }
        self.wanted = 0;
    }
}
