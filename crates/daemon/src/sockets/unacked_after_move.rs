//! Data of a moved connection that the former host sent and the peer has not acknowledged. The peer may or may not have
//! received them.
//!
//! The kernel gets these data as not sent yet, so that it sends them immediately. Data that the kernel gets as sent
//! would wait for a time-out: 3 s for a connection without a round-trip time (RFC 6298, rule 5.7), or 1 s for the tail
//! loss probe.
//!
//! The peer may have received data that this kernel has not sent again. If the peer acknowledges them, the kernel
//! discards the acknowledgment, because it acknowledges bytes that this kernel has not sent. So the daemon detects such
//! an acknowledgment before it reaches the kernel, and restarts the socket at the peer's position.

use super::options::{SIOCOUTQ, SIOCOUTQNSD, TCP_INFO, TcpInfo, get, queued};
use std::io;
use std::os::fd::AsFd;
use tcp::{Flags, Segment};
use wire::{Duration, Seq, TcpState};

/// The largest distance of a peer's sequence number from the expected one. It is more than the largest receive buffer
/// that `host_link` sets.
const NEAR: u32 = 1 << 24;
/// The kernel processes segments at once, unless it is very busy. So the daemon checks at most [`LOOKS`] times whether
/// all segments are processed, with a pause of [`LOOK_AGAIN`] after each check.
const LOOKS: u32 = 10;
const LOOK_AGAIN: Duration = Duration::from_micros(100);
/// Largest number of acknowledgments of unsent bytes that are ignored while the kernel is busy. The peer repeats an
/// acknowledgment when it gets the data again.
const PASSED_OVER: u32 = 3;

/// The former host's data that the peer had not acknowledged. Also counts the segments that were passed to this host's
/// socket.
pub(super) struct Unacked {
    /// The sequence number of the first byte that this kernel's socket has to send.
    begin: Seq,
    /// The sequence number after the last byte that the former host had sent.
    sent: Seq,
    /// The sequence number that this kernel expected first from the peer.
    expected: Seq,
    /// Number of segments that were passed to this kernel's socket.
    given: u32,
    /// Number of acknowledgments of unsent bytes that were ignored while the kernel was busy.
    passed_over: u32,
}

/// The present sequence numbers of the kernel's socket, in both directions.
struct Positions {
    /// `una` is the oldest sequence number that is not acknowledged. `next` is the number after the last byte that was
    /// sent.
    una: Seq,
    next: Seq,
    /// The next sequence number that is expected from the peer.
    expected: Seq,
}

/// What a segment acknowledges of the former host's data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Acknowledges {
    /// All data of the former host are already acknowledged, or there are none.
    All,
    /// The segment acknowledges no data beyond those that this kernel has sent.
    Known,
    /// The segment acknowledges data that this kernel has not sent: the peer has received them from the former host.
    Ahead,
}

impl Unacked {
    /// Returns which data the former host had under way, by the connection's `state`; `None` if there were none.
    pub(super) fn of(state: &TcpState) -> Option<Self> {
        let (begin, sent) = (state.send_una, state.send_una.plus(state.under_way()));
        let expected = state.receive_next;
        (begin != sent).then_some(Self { begin, sent, expected, given: 0, passed_over: 0 })
    }

    /// Returns the sequence number after the last byte that either host has sent. `here` is that number for this host.
    pub(super) fn sent(&self, here: Seq) -> Seq {
        self.sent.latest(here)
    }

    fn positions(&self, fd: &impl AsFd) -> io::Result<Positions> {
        let info: TcpInfo = get(fd, libc::IPPROTO_TCP, TCP_INFO)?;
        // The kernel's two counters of bytes are zero when the socket is set up.
        let una = self.begin.plus(info.bytes_acked() as u32);
        let out = queued(fd, SIOCOUTQ)?.saturating_sub(queued(fd, SIOCOUTQNSD)?);
        let expected = self.expected.plus(info.bytes_received() as u32);
        Ok(Positions { una, next: una.plus(out as u32), expected })
    }

    /// Returns whether a segment acknowledges bytes that only the former host has sent.
    fn is_beyond(&self, positions: &Positions, segment: &Segment<'_>) -> bool {
        segment.has(Flags::ACK)
            && !segment.has(Flags::SYN)
            && !segment.has(Flags::RST)
            && segment.ack.after(positions.next)
            && !segment.ack.after(self.sent)
            // A blind attacker must not make this host discard bytes. So the segment's sequence number must be close to
            // the expected one.
            && segment.seq.since(positions.expected.minus(NEAR)) < 2 * NEAR
    }
    /// Returns what a segment of the peer acknowledges; `fd` is the socket that sends the data again.
    pub(super) fn acknowledged_by(&self, segment: &Segment<'_>, fd: &impl AsFd) -> Acknowledges {
        match self.positions(fd) {
            Ok(positions) if !positions.una.before(self.sent) => Acknowledges::All,
            Ok(positions) if self.is_beyond(&positions, segment) => Acknowledges::Ahead,
            _ => Acknowledges::Known,
        }
    }

    /// Notes a segment that is passed to the kernel's socket.
    pub(super) const fn note_given(&mut self) {
        self.given += 1;
    }

    /// Returns whether the socket must not be replaced yet, because the kernel is busy with segments for it. After this
    /// function has returned true [`PASSED_OVER`] times, it always returns false.
    pub(super) fn must_wait(&mut self, fd: &impl AsFd) -> io::Result<bool> {
        let must_wait = !self.is_settled(fd)? && self.passed_over < PASSED_OVER;
        self.passed_over += u32::from(must_wait);
        Ok(must_wait)
    }

    /// Returns whether the kernel has processed all segments that were passed to the socket. If the socket were
    /// replaced earlier, an unprocessed segment would find no socket, or would change the queues during the read.
    fn is_settled(&self, fd: &impl AsFd) -> io::Result<bool> {
        for _ in 0..LOOKS {
            let info: TcpInfo = get(fd, libc::IPPROTO_TCP, TCP_INFO)?;
            if info.segs_in() >= self.given {
                return Ok(true);
            }
            os::pause(LOOK_AGAIN);
        }
        Ok(false)
    }

    /// Resets the counters for a new socket, which sends from the number `begin` and expects the number `expected`.
    pub(super) const fn restart(&mut self, begin: Seq, expected: Seq) {
        *self = Self { begin, expected, given: 0, passed_over: 0, sent: self.sent };
    }
}
