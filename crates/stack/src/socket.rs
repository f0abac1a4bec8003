//! One TCP socket: a connection and what its user asked for.

use crate::{Output, traced};
use node::stream::{Told, refusal};
use node::{Knob, StreamId, StreamOp};
use std::collections::VecDeque;
use tcp::{Connection, Ended, State, Watch};
use wire::{Instant, PacketId};

/// What is left to do after a user's wish.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    /// Nothing: nothing has changed that the user or the peer could notice.
    Rest,
    /// The socket is to be served.
    Serve,
    /// The socket is to be forgotten.
    Forget,
}

impl Next {
    const fn of(forgets: bool) -> Self {
        if forgets { Self::Forget } else { Self::Serve }
    }
}

#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Socket {
    pub(crate) tcp: Connection,
    /// Its user; nobody before it was accepted, and after the user is done with it.
    pub(crate) stream: Option<StreamId>,
    /// Who is to be told when it is established.
    pub(crate) listener: Option<StreamId>,
    pub(crate) frozen: bool,
    /// What the user wants to read; zero is nothing.
    wanted: usize,
    /// What the user was granted and has not written.
    credit: usize,
    /// Bytes that may wait to be sent, if the user has a wish of its own.
    send_buffer: Option<u32>,
    /// The handshake is done, and the user knows.
    pub(crate) opened: bool,
    /// The user knows that the peer has finished.
    knows_end: bool,
    finishing: bool,
    /// The stack relays between this and another: the user neither reads nor writes.
    relayed: bool,
    /// It came from another host after both ends had finished: there is nothing for its user to do but to move it again.
    lingers: bool,
    /// What it was like when it was last served, if that is to be written down.
    pub(crate) watch: Option<Box<Watch>>,
    /// What a relay has to send before anything that it reads from the other: what it began with, and its pipe.
    staged: VecDeque<u8>,
    /// Bytes that the relay's pipe to this socket holds.
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

    /// A connection that came from another host: nothing leaves it until it is thawed.
    pub(crate) fn imported(tcp: Connection, stream: StreamId, finishing: bool) -> Self {
        let mut socket = Self::new(tcp, Some(stream), None);
        socket.finishing = finishing;
        socket.lingers = finishing && socket.tcp.at_end();
        socket.knows_end = socket.lingers;
        socket.frozen = true;
        socket.opened = true;
        socket
    }

    /// What the user asks for.
    pub(crate) fn operate(&mut self, now: Instant, id: StreamId, op: StreamOp, out: &mut Output) -> Next {
        match op {
            StreamOp::Read(most) => return self.ask(most),
            StreamOp::Write(bytes) => {
                let forgets = self.write(&bytes, out);
                out.spare.give(bytes);
                return Next::of(forgets);
            }
            StreamOp::Finish => {
                self.finishing = true;
                self.tcp.finish();
            }
            StreamOp::Abort => return Next::of(self.abort(None, out)),
            StreamOp::Freeze => self.frozen = true,
            StreamOp::Thaw => self.frozen = false,
            StreamOp::Export => out.told.push(self.export(now, id)),
            StreamOp::Set(Knob::Nagle(on)) => self.tcp.set_nagle(on),
            StreamOp::Set(Knob::ReceiveBuffer(bytes)) => self.tcp.set_receive_buffer(bytes),
            StreamOp::Set(Knob::SendBuffer(bytes)) => {
                self.send_buffer = Some(bytes);
                self.fit_buffer();
            }
            StreamOp::Forget => {
                self.close(None, out);
                return Next::Forget;
            }
            // These make sockets, take two of them, or are none's business.
            StreamOp::Open { .. }
            | StreamOp::Listen { .. }
            | StreamOp::Import(_)
            | StreamOp::Guard(..)
            | StreamOp::Join(..)
            | StreamOp::Part => {}
        }
        Next::Serve
    }

    /// The user wants to read. If there is nothing yet, it is told when there is.
    fn ask(&mut self, most: usize) -> Next {
        self.wanted = if self.relayed { 0 } else { most };
        let now = self.wanted > 0 && (self.tcp.readable() > 0 || self.tcp.at_end());
        if now { Next::Serve } else { Next::Rest }
    }

    /// The buffer is as large as was asked for, and what was granted has its place in it.
    fn fit_buffer(&mut self) {
        let Some(bytes) = self.send_buffer else { return };
        let promised = if self.credit > 0 { self.tcp.unacknowledged() + self.credit } else { 0 };
        self.tcp.set_send_buffer(bytes.max(u32::try_from(promised).unwrap_or(u32::MAX)));
    }

    /// Says whether the socket is to be forgotten.
    fn write(&mut self, bytes: &[u8], out: &mut Output) -> bool {
        match self.credit.checked_sub(bytes.len()).filter(|_| !self.finishing) {
            Some(rest) => {
                self.credit = rest;
                let taken = self.tcp.write(bytes);
                debug_assert_eq!(taken, bytes.len(), "credit is room");
                false
            }
            None => self.abort(Some(refusal::BEYOND_CREDIT), out),
        }
    }

    /// What is frozen has not even a reset to say, and is to be forgotten.
    pub(crate) fn abort(&mut self, why: Option<&str>, out: &mut Output) -> bool {
        self.tcp.abort();
        self.close(why, out);
        self.frozen
    }

    fn export(&self, now: Instant, id: StreamId) -> Told {
        let refused = |why: &str| Told::Refused(id, why.to_owned());
        match self.tcp.export(now) {
            _ if !self.frozen => refused(refusal::NOT_FROZEN),
            None => refused(refusal::NOT_ESTABLISHED),
            Some(state) => Told::Exported(id, Box::new(state)),
        }
    }

    /// Tells the user what is new, and sends what may be sent. Says whether the socket is done with.
    pub(crate) fn serve(&mut self, now: Instant, out: &mut Output) -> bool {
        if let (false, true, Some(id)) = (self.opened, self.tcp.state().synchronized(), self.stream) {
            self.opened = true;
            out.told.push(Told::Opened(id, self.tcp.local()));
        }
        self.read(out);
        self.grant(out);
        let (src, dst) = (*self.tcp.local().ip(), *self.tcp.remote().ip());
        while let Some(segment) = self.tcp.poll(now) {
            out.packets.push(segment.datagram_in(out.spare.take(), src, dst));
        }
        if let Some(watch) = &mut self.watch {
            out.marks.extend(traced::changes(watch, &self.tcp));
        }
        self.conclude(out)
    }

    // --- relays ----------------------------------------------------------------------------------------------------

    /// Whether it can be one side of a relay. What has finished may have something left for the other side, were it only its
    /// end.
    pub(crate) const fn is_joinable(&self) -> bool {
        let finished = matches!(self.tcp.ended(), Some(Ended::Finished));
        self.opened && self.stream.is_some() && (self.tcp.state().synchronized() || finished)
    }

    /// From now on a relay writes, first these bytes, and reads. Its pipe to this socket holds `pipe` bytes. Credit is void.
    pub(crate) fn join(&mut self, staged: Vec<u8>, pipe: usize) {
        (self.relayed, self.wanted, self.credit) = (true, 0, 0);
        self.fit_buffer();
        (self.staged, self.pipe) = (staged.into(), pipe);
    }

    /// The user reads and writes again; what the relay has not sent.
    pub(crate) fn part(&mut self) -> Vec<u8> {
        self.relayed = false;
        std::mem::take(&mut self.staged).into()
    }

    /// What it has received, if it has ended in order and so cannot be moved: a relay of which it was a side gives that back.
    pub(crate) fn leave_behind(&mut self) -> Vec<u8> {
        let ended = matches!(self.tcp.ended(), Some(Ended::Finished)) || self.tcp.state() == State::TimeWait;
        if ended { self.tcp.read(usize::MAX) } else { Vec::new() }
    }

    /// Bytes that may wait to be sent or acknowledged.
    pub(crate) const fn send_capacity(&self) -> usize {
        self.tcp.send_buffer()
    }

    /// Takes what was staged, then what the other has read, and fills the pipe: the rest stays in the other's window. `rests`:
    /// the other takes and gives nothing now.
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
            let bytes = self.tcp.read_for(self.wanted, out.spare.take());
            out.told.push(Told::Data(id, PacketId::NEW, bytes));
            self.wanted = StreamOp::left_to_read(self.wanted);
        }
        if self.wanted > 0 && self.tcp.at_end() {
            self.knows_end = true;
            self.wanted = 0;
            out.told.push(Told::Finished(id));
        }
    }

    /// Grants what there is new room for: not byte by byte, but never nothing to a user who has nothing.
    fn grant(&mut self, out: &mut Output) {
        let Some(id) = self.stream.filter(|_| self.opened && !self.finishing && !self.relayed) else {
            return;
        };
        self.fit_buffer();
        let more = self.tcp.room().saturating_sub(self.credit);
        if more >= 2 * self.tcp.mss() as usize || (more > 0 && self.credit == 0) {
            self.credit += more;
            out.told.push(Told::Room(id, more));
        }
    }

    fn conclude(&mut self, out: &mut Output) -> bool {
        let why = match self.tcp.ended() {
            // What is relayed can be moved as long as something is on its way; so can what was, at another host.
            None if (self.relayed || self.lingers) && self.tcp.state() != State::TimeWait => return false,
            // Both sides have finished: what is left is between the two stacks.
            None | Some(Ended::Finished) if self.finishing && self.knows_end => None,
            None => return false,
            // The user has not read to the end.
            Some(Ended::Finished) if self.stream.is_some() && self.opened => return false,
            Some(Ended::Finished | Ended::Aborted) => None,
            Some(Ended::Refused) => Some(refusal::REFUSED),
            Some(Ended::Reset) => Some(refusal::RESET),
            Some(Ended::TimedOut) => Some(refusal::TIMED_OUT),
        };
        self.close(why, out);
        self.tcp.ended().is_some()
    }

    /// The user is done with it.
    pub(crate) fn close(&mut self, why: Option<&str>, out: &mut Output) {
        if let Some(id) = self.stream.take() {
            out.told.push(Told::Closed(id, why.map(str::to_owned)));
        }
        self.wanted = 0;
    }
}
