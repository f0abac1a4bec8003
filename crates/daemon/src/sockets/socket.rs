//! One TCP socket of the kernel, and the requests of its user.

use super::error_text::error_text;
use super::options::{self, SIOCINQ, TCP_INFO, TcpInfo, get};
use super::repair;
use super::requested_options::RequestedOptions;
use super::unacked_after_move::Unacked;
use node::stream::{OwnedMigrateEvent, OwnedStreamEvent, refusal};
use node::{MigrateOp, StreamId, StreamOp, Tuple, Value};
use os::epoll::{Events, Watched};
use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, getpeername, recv, send, shutdown, sockopt};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use wire::{Duration, PacketId};

/// Largest number of bytes of one socket that may wait in the daemon for room in the kernel. It limits the credit of
/// the socket's user.
const CREDIT: usize = 256 * 1024;
/// Largest number of bytes that are read at once.
const CHUNK: usize = 64 * 1024;

#[expect(clippy::struct_excessive_bools, reason = "each is a separate fact")]
pub(super) struct Socket {
    pub(super) fd: Watched<OwnedFd>,
    pub(super) tuple: Tuple,
    pub(super) connecting: bool,
    /// Bytes that the user has asked to read; zero if it has asked for none.
    pub(super) wanted: usize,
    /// Bytes for which the kernel had no room yet.
    pub(super) pending: VecDeque<u8>,
    /// Bytes that the user may still write.
    pub(super) credit: usize,
    pub(super) finishing: bool,
    /// The kernel has been notified that this host sends no more.
    pub(super) shut: bool,
    /// The peer has sent its FIN to another host, or to this connection's former socket. After the bytes that are still
    /// to be read, this kernel receives nothing more.
    pub(super) peer_finished: bool,
    /// The user has been notified that the peer has finished.
    pub(super) knows_end: bool,
    pub(super) frozen: bool,
    /// The socket's tuple is guarded. While it is guarded, the socket is not served, whether frozen or not.
    pub(super) guarded: bool,
    /// The socket is in repair mode.
    pub(super) repaired: bool,
    /// The relay of which the socket is an end, by the stream that created the relay.
    pub(super) joined: Option<StreamId>,
    /// The other end of the relay has failed, and bytes are lost. So the socket can only be reset.
    pub(super) broken: bool,
    /// Both sides have finished, and the user can only move the connection. The socket ends when everything is
    /// acknowledged.
    pub(super) lingers: bool,
    pub(super) knobs: RequestedOptions,
    /// The data that another host had sent on this connection; `None` once they are acknowledged.
    pub(super) unacked: Option<Unacked>,
    /// Why the socket failed; `None` if it has not failed.
    pub(super) lost: Option<Errno>,
}

/// Why a socket was closed, for its user; the inner `None` is a clean end. The outer `None` means that the socket was
/// not closed.
pub(super) type Ended = Option<Option<String>>;

impl Socket {
    /// Creates a socket with a linger time of zero: if the daemon dies, the kernel resets the connection, and the peer
    /// gets an error. Otherwise the kernel would send the bytes that it has and close the connection cleanly. The peer
    /// would then regard these bytes as the whole stream.
    pub(super) fn new(fd: Watched<OwnedFd>, tuple: Tuple, connecting: bool) -> Self {
        let _ = sockopt::set_socket_linger(&fd, Some(Duration::ZERO));
        Self {
            fd,
            tuple,
            connecting,
            wanted: 0,
            pending: VecDeque::new(),
            credit: 0,
            finishing: false,
            shut: false,
            peer_finished: false,
            knows_end: false,
            frozen: false,
            guarded: false,
            repaired: false,
            joined: None,
            broken: false,
            lingers: false,
            knobs: RequestedOptions::default(),
            unacked: None,
            lost: None,
        }
    }

    pub(super) const fn rests(&self) -> bool {
        self.frozen || self.guarded
    }

    pub(super) fn waits_for(&self) -> Events {
        let mut flags = Events::empty();
        flags.set(Events::OUT, self.connecting || !self.pending.is_empty());
        flags.set(Events::IN, self.wanted > 0);
        flags
    }

    /// Returns whether the socket has an event for its user that the kernel does not report.
    pub(super) const fn has_news(&self) -> bool {
        let is_used = self.wanted > 0 || self.joined.is_some();
        self.lost.is_some() || self.broken || (self.peer_finished && !self.knows_end && is_used)
    }

    pub(super) fn operate(&mut self, id: StreamId, op: StreamOp, told: &mut Vec<OwnedStreamEvent>) -> Ended {
        match op {
            // The relay reads and writes instead of the user.
            StreamOp::Read(_) | StreamOp::Write(_) | StreamOp::Finish if self.joined.is_some() => {}
            StreamOp::Read(most) => self.wanted = most,
            StreamOp::Write(bytes) => {
                let Some(rest) = self.credit.checked_sub(bytes.len()).filter(|_| !self.finishing) else {
                    return Some(Some(refusal::BEYOND_CREDIT.to_owned()));
                };
                self.credit = rest;
                self.pending.extend(bytes);
            }
            StreamOp::Finish => self.finishing = true,
            StreamOp::Abort => return Some(None),
            StreamOp::Set(knob) => {
                self.knobs.note(knob);
                self.knobs.apply(&self.fd);
            }
            StreamOp::Migrate(MigrateOp::Freeze) => {
                self.frozen = true;
                // The guard already keeps segments away, but the kernel may have one that it has not processed yet.
                let _ = options::block_segments(&self.fd);
            }
            StreamOp::Migrate(MigrateOp::Export) => told.push(self.export(id)),
            StreamOp::Migrate(MigrateOp::Thaw) => {
                self.frozen = false;
                return self.go_on(id, told);
            }
            StreamOp::Migrate(MigrateOp::Forget) => {
                let silent = self.repaired || repair::enter(&self.fd).is_ok();
                self.repaired = silent;
                let why = "the connection cannot end silently: the kernel refuses TCP_REPAIR";
                return Some((!silent).then(|| why.to_owned()));
            }
            // These operations create sockets, or concern more than one socket.
            StreamOp::Open { .. }
            | StreamOp::Listen { .. }
            | StreamOp::Migrate(
                MigrateOp::Import(_) | MigrateOp::Guard(..) | MigrateOp::Join(..) | MigrateOp::Part,
            ) => {}
        }
        self.serve(id, told)
    }

    /// Makes the kernel still deliver all written bytes after the socket is closed. Call it when both sides have
    /// finished. Without this, closing the socket resets the connection, except in repair mode, where the socket closes
    /// silently.
    pub(super) fn end_in_order(&self) {
        let _ = sockopt::set_socket_linger(&self.fd, None);
    }

    fn export(&mut self, id: StreamId) -> OwnedStreamEvent {
        let refused = |why: String| OwnedStreamEvent::Migrate(id, OwnedMigrateEvent::Refused(why));
        if !self.frozen {
            return refused(refusal::NOT_FROZEN.to_owned());
        }
        if let Err(error) = self.keep_error() {
            return refused(error_text(error));
        }
        if let Err(error) = repair::enter(&self.fd) {
            return refused(error.to_string());
        }
        self.repaired = true;
        match repair::export(&self.fd, self.tuple.local, self.tuple.remote) {
            Ok(Some(mut state)) => {
                state.unacknowledged.extend(&self.pending);
                if let Some(unacked) = &self.unacked {
                    state.send_next = unacked.sent(state.send_next);
                }
                state.finishing = self.finishing;
                state.finished |= self.peer_finished;
                OwnedStreamEvent::Migrate(id, OwnedMigrateEvent::Exported(Box::new(state)))
            }
            Ok(None) => refused(refusal::NOT_ESTABLISHED.to_owned()),
            Err(error) => refused(error.to_string()),
        }
    }

    /// Leaves repair mode and serves the socket, once it is neither frozen nor guarded. Earlier, the guard would drop
    /// the kernel's window probe, which announces this host's position to the peer. Both sides would then wait for a
    /// time-out.
    pub(super) fn go_on(&mut self, id: StreamId, told: &mut Vec<OwnedStreamEvent>) -> Ended {
        if self.rests() {
            return None;
        }
        let _ = options::unblock_segments(&self.fd); // there may be no filter
        if std::mem::take(&mut self.repaired)
            && let Err(error) = repair::leave(&self.fd)
        {
            return Some(Some(error.to_string()));
        }
        self.serve(id, told)
    }

    /// Writes, reads and grants credit as far as that is possible without blocking. Does nothing while the socket is
    /// frozen or guarded, or is an end of a relay.
    pub(super) fn serve(&mut self, id: StreamId, told: &mut Vec<OwnedStreamEvent>) -> Ended {
        if self.rests() || self.joined.is_some() {
            return None;
        }
        if self.broken {
            return Some(Some(refusal::RESET.to_owned()));
        }
        let done = self.open(id, told).and_then(|open| {
            if open {
                self.flush()?;
                self.read(id, told)?;
                self.grant(id, told);
            }
            Ok(())
        });
        if let Err(error) = done {
            return Some(Some(error_text(error)));
        }
        (self.shut && self.knows_end && !(self.lingers && self.is_under_way())).then_some(None)
    }

    /// Returns whether bytes or a FIN of this host are not acknowledged yet. A socket that came from another host stays
    /// in FIN-WAIT-2 afterwards, because the peer's FIN arrived at that host.
    fn is_under_way(&self) -> bool {
        let through = [TcpInfo::FIN_WAIT2, TcpInfo::CLOSE];
        !self.pending.is_empty() || self.state().is_ok_and(|state| !through.contains(&state))
    }

    pub(super) fn state(&self) -> io::Result<u8> {
        Ok(get::<TcpInfo>(&self.fd, libc::IPPROTO_TCP, TCP_INFO)?.state)
    }

    /// Returns the unread bytes of a socket that has ended cleanly, because such a socket cannot be moved. Returns no
    /// bytes for any other socket. The caller moves these bytes together with those of the socket's former relay.
    pub(super) fn leave_behind(&mut self) -> Result<Vec<u8>, Errno> {
        let mut all = Vec::new();
        if self.connecting || !self.state().is_ok_and(|state| state == TcpInfo::CLOSE) {
            return Ok(all);
        }
        self.keep_error()?;
        let mut bytes = [0; 16 * 1024];
        loop {
            match recv(&self.fd, &mut bytes[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) | Err(Errno::AGAIN) => return Ok(all),
                Ok((got, _)) => all.extend_from_slice(bytes.get(..got).unwrap_or_default()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Checks like [`Self::error`], and remembers the error, because the kernel reports it only once.
    fn keep_error(&mut self) -> Result<(), Errno> {
        self.error().inspect_err(|error| self.lost = Some(*error))
    }

    /// Returns the socket's error. The kernel also reports errors that a connection survives (RFC 5461, section 2.2).
    /// An example is a router's report that it has no route to the peer. Such errors are ignored.
    pub(super) fn error(&self) -> Result<(), Errno> {
        self.lost.map_or(Ok(()), Err)?;
        let told = sockopt::socket_error(&self.fd)?;
        if told.is_err() && self.state().is_ok_and(|state| state != TcpInfo::CLOSE) {
            return Ok(());
        }
        told
    }

    /// Returns whether the socket is connected. Fails if the connection failed.
    fn open(&mut self, id: StreamId, told: &mut Vec<OwnedStreamEvent>) -> Result<bool, Errno> {
        self.error()?;
        if !self.connecting {
            return Ok(true);
        }
        match getpeername(&self.fd) {
            Ok(_) => {
                self.connecting = false;
                told.push(OwnedStreamEvent::Opened(id, self.tuple.local));
                Ok(true)
            }
            Err(Errno::NOTCONN) => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(super) fn flush(&mut self) -> Result<(), Errno> {
        if !self.pending.is_empty() && !is_writable(&self.fd)? {
            return Ok(());
        }
        while !self.pending.is_empty() {
            let (head, _) = self.pending.as_slices();
            match send(&self.fd, head, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(taken) => drop(self.pending.drain(..taken)),
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        if self.finishing && !self.shut {
            shutdown(&self.fd, Shutdown::Write)?;
            self.shut = true;
        }
        Ok(())
    }

    fn read(&mut self, id: StreamId, told: &mut Vec<OwnedStreamEvent>) -> Result<(), Errno> {
        if self.wanted == 0 {
            return Ok(());
        }
        let mut bytes = Vec::with_capacity(self.wanted.min(CHUNK)); // zeros would take longer than a packet
        match recv(&self.fd, spare_capacity(&mut bytes), RecvFlags::DONTWAIT) {
            Err(Errno::AGAIN | Errno::INTR) if !self.is_at_end() => return Ok(()),
            Ok((0, _)) | Err(Errno::AGAIN | Errno::INTR) => {
                self.knows_end = true;
                self.wanted = 0;
                told.push(OwnedStreamEvent::Finished(id));
            }
            Ok(_) => {
                self.wanted = StreamOp::left_to_read(self.wanted);
                told.push(OwnedStreamEvent::Data(id, PacketId::NEW, bytes));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Returns whether the peer finished before this socket was created, and all bytes have been read.
    pub(super) fn is_at_end(&self) -> bool {
        self.peer_finished && options::queued(&self.fd, SIOCINQ).is_ok_and(|unread| unread == 0)
    }

    /// Grants the user credit for new room: if the room is at least a quarter of the largest credit, or if the user has
    /// no credit left.
    pub(super) fn grant(&mut self, id: StreamId, told: &mut Vec<OwnedStreamEvent>) {
        let most = self.knobs.send_buffer.map_or(CREDIT, |bytes| CREDIT.min(bytes as usize));
        let more = most.saturating_sub(self.pending.len() + self.credit);
        if !self.finishing && (more >= most / 4 || (more > 0 && self.credit == 0)) {
            self.credit += more;
            told.push(OwnedStreamEvent::Room(id, more));
        }
    }

    pub(super) fn account(&self, id: StreamId) -> Value {
        let congestion = sockopt::tcp_congestion(&self.fd).unwrap_or_default();
        let ends = [
            ("stream", Value::from(id.0)),
            ("local", Value::from(self.tuple.local.to_string())),
            ("remote", Value::from(self.tuple.remote.to_string())),
            ("congestion", Value::from(congestion)),
        ];
        let info = get::<TcpInfo>(&self.fd, libc::IPPROTO_TCP, TCP_INFO).ok();
        let info = info.map(|info| {
            [
                ("retransmits", info.total_retrans),
                ("rto_us", info.rto),
                ("rtt_us", info.rtt),
                ("cwnd", info.snd_cwnd),
                ("ssthresh", info.snd_ssthresh),
                ("mss", info.snd_mss),
                ("pmtu", info.pmtu),
            ]
        });
        let info = info.into_iter().flatten().map(|(name, value)| (name, Value::from(value)));
        Value::Map(ends.into_iter().chain(info).map(|(name, value)| (name.to_owned(), value)).collect())
    }
}

/// Returns whether the kernel considers the socket writable, as for programs: a third of its send buffer is free.
/// Without this check, the daemon would write one segment, with PSH, after each acknowledged segment. Linux
/// acknowledges such segments one by one.
fn is_writable(fd: &impl AsFd) -> Result<bool, Errno> {
    Ok(poll(&mut [PollFd::new(fd, PollFlags::OUT)], Some(&Timespec::default()))? > 0)
}
