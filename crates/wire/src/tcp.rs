//! The state of a TCP connection (RFC 9293) that is needed to move it to another host.

use alloc::vec::Vec;
use core::net::SocketAddrV4;
use core::time::Duration;

/// A sequence number (RFC 9293, section 3.4). It is not `Ord`, because the numbers wrap around: comparisons are
/// correct for numbers less than 2^31 apart. A window is never larger.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Seq(pub u32);

impl Seq {
    /// Returns the number `n` later.
    #[must_use]
    pub const fn plus(self, n: u32) -> Self {
        Self(self.0.wrapping_add(n))
    }

    /// Returns the number `n` earlier.
    #[must_use]
    pub const fn minus(self, n: u32) -> Self {
        Self(self.0.wrapping_sub(n))
    }

    /// Returns how far this is after `earlier`, modulo 2^32.
    pub const fn since(self, earlier: Self) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }

    /// Whether this is before `other`.
    pub const fn before(self, other: Self) -> bool {
        self.0.wrapping_sub(other.0).cast_signed() < 0
    }

    /// Whether this is after `other`.
    pub const fn after(self, other: Self) -> bool {
        other.before(self)
    }

    /// Returns the later of the two.
    #[must_use]
    pub const fn latest(self, other: Self) -> Self {
        if self.before(other) { other } else { self }
    }
}

/// The state of a TCP connection as plain data. Both ends may have sent a FIN, but then something is still
/// unacknowledged. It does not contain the congestion window, which starts again at the other host, nor data received
/// after a gap, which the peer sends again.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TcpState {
    /// The local address and port.
    pub local: SocketAddrV4,
    /// The peer's address and port.
    pub remote: SocketAddrV4,
    /// The oldest unacknowledged sequence number (`snd_una`), at which `unacknowledged` begins. The number of the FIN
    /// if only that is unacknowledged.
    pub send_una: Seq,
    /// The sequence number after the last that was sent, the FIN included (`snd_nxt`).
    pub send_next: Seq,
    /// The peer's current window, in bytes.
    pub send_window: u32,
    /// The largest window that the peer has announced, in bytes.
    pub largest_window: u32,
    /// The sequence number of the segment that announced the window (`snd_wl1`).
    pub window_seq: Seq,
    /// The acknowledgment number of that segment (`snd_wl2`).
    pub window_ack: Seq,
    /// The window scale of the peer.
    pub send_scale: u8,
    /// The next sequence number expected from the peer; after its FIN if that has arrived (`rcv_nxt`).
    pub receive_next: Seq,
    /// The window that was announced to the peer and is not used yet, in bytes.
    pub receive_window: u32,
    /// The window scale of this end. Both scales are zero if scaling was not negotiated.
    pub receive_scale: u8,
    /// The largest payload of a segment to the peer, in bytes.
    pub mss: u32,
    /// The bytes from `send_una` on that the application wrote: first those that were sent, then the unsent.
    pub unacknowledged: Vec<u8>,
    /// Bytes that were received and acknowledged, but not read by the application.
    pub unread: Vec<u8>,
    /// The application closed its direction: a FIN follows the last byte. It is sent again even if it was
    /// acknowledged.
    pub finishing: bool,
    /// The peer closed its direction: no data follow `unread`.
    pub finished: bool,
    /// The current value of the local timestamp clock (RFC 7323, section 3); `None` if timestamps were not negotiated.
    /// The peer drops segments with older values than it has seen.
    pub timestamp: Option<u32>,
    /// Whether selective acknowledgments were negotiated (RFC 2018).
    pub sack_permitted: bool,
    /// The round trip to the peer, or `None` if it was not measured. Only a hint, because the path from the other host
    /// may differ (RFC 9040, section 8.1).
    pub round_trip: Option<RoundTripTime>,
}

/// The measured round trip of a path (RFC 6298, section 2), in whole microseconds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RoundTripTime {
    /// `SRTT`: at least one microsecond.
    pub smoothed: Duration,
    /// `RTTVAR`: the mean deviation.
    pub variation: Duration,
}

impl RoundTripTime {
    /// The largest value that 32 bits of microseconds represent: 71 minutes.
    const LONGEST: Duration = Duration::from_micros(u32::MAX as u64);

    /// Returns these times, rounded down to whole microseconds and limited to 71 minutes. `smoothed` is at least 1 us.
    pub fn new(smoothed: Duration, variation: Duration) -> Self {
        let whole = |span: Duration| Duration::from_micros(span.min(Self::LONGEST).as_micros() as u64);
        let least = Duration::from_micros(1);
        Self { smoothed: whole(smoothed).max(least), variation: whole(variation) }
    }
}

impl TcpState {
    /// Whether the FIN of this end was sent.
    pub fn fin_sent(&self) -> bool {
        self.finishing && self.send_next.since(self.send_una) as usize > self.unacknowledged.len()
    }

    /// Returns the number of sequence numbers that were sent and are not acknowledged. It is limited to what the state
    /// contains, because a state that was received over a network may be wrong.
    pub fn under_way(&self) -> u32 {
        let all = self.unacknowledged.len() as u32 + u32::from(self.finishing);
        self.send_next.since(self.send_una).min(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_holds_across_the_end_of_the_space() {
        let (before, after) = (Seq(u32::MAX - 1), Seq(3));
        assert!(before.before(after) && after.after(before));
        assert_eq!(after.since(before), 5);
        assert_eq!(before.plus(5), after);
        assert_eq!(after.minus(5), before);
        assert_eq!(before.latest(after), after);
        assert!(!after.before(after) && !after.after(after));
    }
}
