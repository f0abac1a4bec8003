//! Restarts the socket of a moved connection at the sequence number that its peer expects. This is needed if the peer
//! has received data of the former host that this host has not sent again ([`super::unacked_after_move`]).

use super::options::{SO_BUF_LOCK, block_segments, get, set};
use super::repair;
use super::socket::Socket;
use super::tcp::Tcp;
use super::unacked_after_move::Acknowledges;
use node::Tuple;
use rustix::io::Errno;
use rustix::net::sockopt;
use std::io;
use std::os::fd::OwnedFd;
use tcp::Segment;
use wire::{Duration, Seq};

impl Tcp {
    /// Returns whether some connection has data of a former host that its peer has not acknowledged.
    pub(super) fn has_unacked(&self) -> bool {
        !self.unacked.is_empty()
    }

    /// Handles a segment that will be passed to the kernel, for a connection that has sent nothing from this host yet.
    /// If the peer has received more than the former host knew, the connection starts at the first byte that the peer
    /// has not received.
    pub(super) fn catch_up(&mut self, tuple: &Tuple, segment: &Segment<'_>) {
        let Some(id) = self.by_tuple.get(tuple).copied() else { return };
        let socket = self.sockets.get_mut(&id).filter(|socket| !socket.frozen && socket.repaired);
        let Some(socket) = socket else { return };
        self.wakes.touch(id);
        if socket.acknowledged_by(segment) == Acknowledges::Ahead
            && let Err(error) = socket.restart_at(segment.ack)
        {
            socket.lost = Some(Errno::from_io_error(&error).unwrap_or(Errno::IO));
        }
    }

    /// Handles a segment that is about to reach the kernel, if its connection has data of a former host that the peer
    /// has not acknowledged.
    pub(super) fn observe(&mut self, tuple: &Tuple, segment: &Segment<'_>) {
        if !self.unacked.contains(tuple) {
            return;
        }
        let socket = self.by_tuple.get(tuple).and_then(|id| {
            self.wakes.touch(*id);
            self.sockets.get_mut(id)
        });
        if socket.is_none_or(|socket| socket.observe(segment)) {
            self.unacked.remove(tuple);
        }
    }
}

impl Socket {
    /// Handles a segment that is about to reach the kernel. If the segment acknowledges data that this host has not
    /// sent, restarts the socket, unless the kernel is busy. Returns true if all data of the former host are
    /// acknowledged, or if the connection has failed.
    fn observe(&mut self, segment: &Segment<'_>) -> bool {
        match self.acknowledged_by(segment) {
            Acknowledges::All => {
                self.unacked = None;
                return true;
            }
            Acknowledges::Known => {}
            Acknowledges::Ahead => {
                if let Err(error) = self.restart_at(segment.ack) {
                    self.lost = Some(Errno::from_io_error(&error).unwrap_or(Errno::IO));
                    return true;
                }
            }
        }
        if let Some(unacked) = &mut self.unacked {
            unacked.note_given();
        }
        false
    }

    /// Returns what a segment acknowledges of the data that a former host sent on this connection.
    pub(super) fn acknowledged_by(&self, segment: &Segment<'_>) -> Acknowledges {
        self.unacked.as_ref().map_or(Acknowledges::All, |unacked| unacked.acknowledged_by(segment, &self.fd))
    }

    /// Replaces this socket by a new one that starts at the first byte that the peer has not received.
    fn restart_at(&mut self, from: Seq) -> io::Result<()> {
        let Some(unacked) = &mut self.unacked else { return Ok(()) };
        if unacked.must_wait(&self.fd)? {
            return Ok(());
        }
        block_segments(&self.fd)?;
        repair::enter(&self.fd)?;
        let state = repair::export(&self.fd, self.tuple.local, self.tuple.remote)?;
        let mut state = state.ok_or(Errno::NOTCONN)?;
        state.unacknowledged.extend(self.pending.drain(..));
        let got = from.since(state.send_una) as usize;
        // If the peer has acknowledged this host's FIN, the new socket sends the FIN once more, with the same number.
        let fin = usize::from(self.finishing && got == state.unacknowledged.len() + 1);
        let from = from.minus(fin as u32);
        state.unacknowledged = state.unacknowledged.get(got - fin..).ok_or(Errno::IO)?.to_vec();
        (state.send_una, state.send_next) = (from, from);
        let (fd, settings) = (repair::prepare(&state)?, Settings::of(&self.fd)?);
        // In repair mode the socket closes silently, and its addresses are free.
        self.fd.replace(fd)?;
        repair::fill_in(&self.fd, &state)?;
        settings.give(&self.fd)?;
        repair::leave(&self.fd)?;
        unacked.restart(from, state.receive_next);
        (self.pending, self.shut, self.repaired) = (state.unacknowledged.into(), false, false);
        self.peer_finished |= state.finished;
        Ok(self.flush()?)
    }
}

/// The socket options that a user, or a relay, has set.
struct Settings {
    /// Sizes of the send and the receive buffer in bytes, as the kernel counts: twice the value that was set.
    buffers: [usize; 2],
    /// Flags for the buffers that the kernel does not resize (`SO_BUF_LOCK`).
    locked: u32,
    no_delay: bool,
}

impl Settings {
    fn of(fd: &OwnedFd) -> io::Result<Self> {
        let buffers = [sockopt::socket_send_buffer_size(fd)?, sockopt::socket_recv_buffer_size(fd)?];
        let locked = get(fd, libc::SOL_SOCKET, SO_BUF_LOCK).unwrap_or_default(); // since Linux 5.15
        Ok(Self { buffers, locked, no_delay: sockopt::tcp_nodelay(fd)? })
    }

    fn give(&self, fd: &OwnedFd) -> io::Result<()> {
        let [send, receive] = self.buffers;
        sockopt::set_socket_send_buffer_size(fd, send / 2)?;
        sockopt::set_socket_recv_buffer_size(fd, receive / 2)?;
        let _ = set(fd, libc::SOL_SOCKET, SO_BUF_LOCK, self.locked);
        sockopt::set_tcp_nodelay(fd, self.no_delay)?;
        sockopt::set_socket_linger(fd, Some(Duration::ZERO))?;
        Ok(())
    }
}
