//! Data of a moved connection that the former host sent and the peer has not acknowledged. It may have been lost or
//! received.
//!
//! The kernel gets all of it as not sent yet, so that it is sent at once. Data that the kernel gets as sent would
//! wait for a time-out. That is 3 s for a connection without a round-trip time (RFC 6298, section 5.7), or 1 s for
//! the tail loss probe.
//!
//! But a peer that has received more than was sent again acknowledges bytes that this kernel has not sent, and the
//! kernel discards such acknowledgments. So the daemon watches for such an acknowledgment before it reaches the
//! kernel, and restarts the socket at the peer's position.

use super::options::{SIOCOUTQ, SIOCOUTQNSD, SO_BUF_LOCK, TCP_INFO, TcpInfo, deafen, get, queued, set};
use super::repair;
use super::socket::Socket;
use super::tcp::Tcp;
use node::Tuple;
use rustix::io::Errno;
use rustix::net::sockopt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use tcp::{Flags, Segment};
use wire::{Duration, Seq, TcpState};

/// The largest distance of a peer's segment from the expected number: more than any of our buffers.
const NEAR: u32 = 1 << 24;
/// The kernel processes segments at once, unless it is very busy. So the daemon looks at most this number of times,
/// with this pause.
const LOOKS: u32 = 10;
const LOOK_AGAIN: Duration = Duration::from_micros(100);
/// Number of acknowledgments of a peer that is ahead that are ignored while the kernel is busy. The peer repeats
/// them.
const PASSED_OVER: u32 = 3;

pub(super) struct Former {
    /// The first number that this kernel got to send.
    begin: Seq,
    /// The end of what the former host had sent.
    sent: Seq,
    /// The first number that this kernel expected.
    expected: Seq,
    /// Number of segments that were passed to this kernel's socket.
    given: u32,
    /// Number of times that the peer was ahead while the kernel was busy.
    passed_over: u32,
}

/// The positions of the kernel's socket.
struct Place {
    /// The oldest number that is not acknowledged, and the next to send.
    una: Seq,
    next: Seq,
    /// The next number that is expected.
    expected: Seq,
}

impl Former {
    /// Returns `None` if the former host had nothing under way.
    pub(super) fn of(state: &TcpState) -> Option<Self> {
        let (begin, sent) = (state.send_una, state.send_una.plus(state.under_way()));
        let expected = state.receive_next;
        (begin != sent).then_some(Self { begin, sent, expected, given: 0, passed_over: 0 })
    }

    /// Returns the end of what either host has sent; `here` is the end of what this one has.
    pub(super) fn sent(&self, here: Seq) -> Seq {
        self.sent.latest(here)
    }

    fn place(&self, fd: &impl AsFd) -> io::Result<Place> {
        let info: TcpInfo = get(fd, libc::IPPROTO_TCP, TCP_INFO)?;
        // Both counters start when the socket is set up.
        let una = self.begin.plus(info.bytes_acked() as u32);
        let out = queued(fd, SIOCOUTQ)?.saturating_sub(queued(fd, SIOCOUTQNSD)?);
        let expected = self.expected.plus(info.bytes_received() as u32);
        Ok(Place { una, next: una.plus(out as u32), expected })
    }

    /// Returns whether the kernel has processed all segments that it got. An unprocessed one would find no socket, or
    /// an unfinished dump.
    fn is_settled(&self, fd: &impl AsFd) -> io::Result<bool> {
        for _ in 0..LOOKS {
            let info: TcpInfo = get(fd, libc::IPPROTO_TCP, TCP_INFO)?;
            if info.segs_in() >= self.given {
                return Ok(true);
            }
            crate::pause(LOOK_AGAIN);
        }
        Ok(false)
    }

    /// Returns whether a segment acknowledges bytes that only the former host has sent.
    fn is_beyond(&self, place: &Place, segment: &Segment<'_>) -> bool {
        segment.has(Flags::ACK)
            && !segment.has(Flags::SYN)
            && !segment.has(Flags::RST)
            && segment.ack.after(place.next)
            && !segment.ack.after(self.sent)
            // A blind attacker must not make us discard bytes: the segment's number shows that it is the peer's.
            && segment.seq.since(place.expected.minus(NEAR)) < 2 * NEAR
    }
}

/// What a segment shows about the former host's data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tells {
    /// There is none, or all of it is acknowledged.
    Over,
    /// Nothing new.
    Nothing,
    /// The peer has received more than was sent again.
    Ahead,
}

impl Tcp {
    pub(super) fn has_former(&self) -> bool {
        !self.former.is_empty()
    }

    /// Handles a segment that will be passed to the kernel, for a connection that has not sent anything here yet. If
    /// the peer has received more than the former host knew, the connection starts at the peer's position, and
    /// repeats nothing that the peer has.
    pub(super) fn catch_up(&mut self, tuple: &Tuple, segment: &Segment<'_>) {
        let socket = self.by_tuple.get(tuple).and_then(|id| self.sockets.get_mut(id));
        let Some(socket) = socket.filter(|socket| !socket.frozen && socket.repaired) else { return };
        if socket.tells(segment) == Tells::Ahead
            && let Err(error) = socket.begin_again(segment.ack)
        {
            socket.lost = Some(Errno::from_io_error(&error).unwrap_or(Errno::IO));
        }
    }

    /// Handles a segment that is about to reach the kernel.
    pub(super) fn hears(&mut self, tuple: &Tuple, segment: &Segment<'_>) {
        if !self.former.contains(tuple) {
            return;
        }
        let socket = self.by_tuple.get(tuple).and_then(|id| self.sockets.get_mut(id));
        if socket.is_none_or(|socket| socket.hears(segment)) {
            self.former.remove(tuple);
        }
    }
}

impl Socket {
    /// Returns whether the former host's part is over, or the connection has failed.
    fn hears(&mut self, segment: &Segment<'_>) -> bool {
        match self.tells(segment) {
            Tells::Over => {
                self.former = None;
                return true;
            }
            Tells::Nothing => {}
            Tells::Ahead => {
                if let Err(error) = self.begin_again(segment.ack) {
                    self.lost = Some(Errno::from_io_error(&error).unwrap_or(Errno::IO));
                    return true;
                }
            }
        }
        if let Some(former) = &mut self.former {
            former.given += 1;
        }
        false
    }

    pub(super) fn tells(&self, segment: &Segment<'_>) -> Tells {
        let Some(former) = &self.former else { return Tells::Over };
        match former.place(&self.fd) {
            Ok(place) if !place.una.before(former.sent) => Tells::Over,
            Ok(place) if former.is_beyond(&place, segment) => Tells::Ahead,
            _ => Tells::Nothing,
        }
    }

    /// Replaces this socket by a new one that starts at the first byte that the peer has not received.
    fn begin_again(&mut self, from: Seq) -> io::Result<()> {
        let Some(former) = &mut self.former else { return Ok(()) };
        if !former.is_settled(&self.fd)? && former.passed_over < PASSED_OVER {
            former.passed_over += 1;
            return Ok(());
        }
        deafen(&self.fd)?;
        repair::enter(&self.fd)?;
        let state = repair::export(&self.fd, self.tuple.local, self.tuple.remote)?;
        let mut state = state.ok_or(Errno::NOTCONN)?;
        state.unacknowledged.extend(self.pending.drain(..));
        let got = from.since(state.send_una) as usize;
        // Of an acknowledged FIN only the number remains: it is sent once more.
        let fin = usize::from(self.finishing && got == state.unacknowledged.len() + 1);
        let from = from.minus(fin as u32);
        state.unacknowledged = state.unacknowledged.get(got - fin..).ok_or(Errno::IO)?.to_vec();
        (state.send_una, state.send_next) = (from, from);
        let (fd, settings) = (repair::prepare(&state)?, Settings::of(&self.fd)?);
        // In repair mode the socket closes silently, and its addresses are free.
        drop(std::mem::replace(&mut self.fd, fd));
        repair::fill_in(&self.fd, &state)?;
        settings.give(&self.fd)?;
        repair::leave(&self.fd)?;
        *former = Former { begin: from, expected: state.receive_next, given: 0, passed_over: 0, ..*former };
        (self.pending, self.shut, self.repaired) = (state.unacknowledged.into(), false, false);
        self.peer_finished |= state.finished;
        Ok(self.flush()?)
    }
}

/// The socket options that a user, or a relay, has set.
struct Settings {
    /// Sizes of the send and the receive buffer in bytes, as the kernel counts: twice the value that was set.
    buffers: [usize; 2],
    /// Which of them the kernel does not resize.
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
