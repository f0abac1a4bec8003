//! Data of a moved connection that the former host sent and the peer has not acknowledged. It may have been lost or
//! received.
//!
//! The kernel gets these data as not sent yet, so that it sends them at once. Data that the kernel gets as sent would
//! wait for a time-out: 3 s for a connection without a round-trip time (RFC 6298, rule 5.7), or 1 s for the tail loss
//! probe.
//!
//! But a peer that has received more than was sent again acknowledges bytes that this kernel has not sent, and the
//! kernel discards such acknowledgments. So the daemon watches for such an acknowledgment before it reaches the
//! kernel, and restarts the socket at the peer's position.

use super::options::{SIOCOUTQ, SIOCOUTQNSD, TCP_INFO, TcpInfo, get, queued};
use std::io;
use std::os::fd::AsFd;
use tcp::{Flags, Segment};
use wire::{Duration, Seq, TcpState};

/// The largest distance of a peer's sequence number from the expected one. It is more than the largest receive buffer
/// that `host_link` sets.
const NEAR: u32 = 1 << 24;
/// The kernel processes segments at once, unless it is very busy. So the daemon looks at most this number of times,
/// with this pause.
const LOOKS: u32 = 10;
const LOOK_AGAIN: Duration = Duration::from_micros(100);
/// Number of acknowledgments of a peer that is ahead that are ignored while the kernel is busy. The peer repeats an
/// acknowledgment when it gets the data again.
const PASSED_OVER: u32 = 3;

/// The former host's data, and how much of them this host's socket has sent again.
pub(super) struct Unacked {
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
struct Positions {
    /// The oldest number that is not acknowledged, and the next to send.
    una: Seq,
    next: Seq,
    /// The next number that is expected.
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
    /// Returns `None` if the former host had nothing under way.
    pub(super) fn of(state: &TcpState) -> Option<Self> {
        let (begin, sent) = (state.send_una, state.send_una.plus(state.under_way()));
        let expected = state.receive_next;
        (begin != sent).then_some(Self { begin, sent, expected, given: 0, passed_over: 0 })
    }

    /// Returns the end of what either host has sent; `here` is the end of what this host has sent.
    pub(super) fn sent(&self, here: Seq) -> Seq {
        self.sent.latest(here)
    }

    fn positions(&self, fd: &impl AsFd) -> io::Result<Positions> {
        let info: TcpInfo = get(fd, libc::IPPROTO_TCP, TCP_INFO)?;
        // Both counters start when the socket is set up.
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
            // A blind attacker must not make this host discard bytes: the segment's number shows that it is the peer's.
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

    /// Returns whether the socket must not be replaced yet, because the kernel is busy with segments for it. After
    /// [`PASSED_OVER`] such answers the socket is replaced all the same.
    pub(super) fn must_wait(&mut self, fd: &impl AsFd) -> io::Result<bool> {
        let must_wait = !self.is_settled(fd)? && self.passed_over < PASSED_OVER;
        self.passed_over += u32::from(must_wait);
        Ok(must_wait)
    }

    /// Returns whether the kernel has processed all segments that it got. An unprocessed segment would find no socket,
    /// or would change the queues while they are read.
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

    /// Starts again for a new socket, which sends from `begin` and expects `expected`.
    pub(super) const fn restart(&mut self, begin: Seq, expected: Seq) {
        *self = Self { begin, expected, given: 0, passed_over: 0, sent: self.sent };
    }
}
