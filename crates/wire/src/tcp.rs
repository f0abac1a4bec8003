//! The state of a TCP connection (RFC 9293) that is needed to move it to another host.

use alloc::vec::Vec;
use core::net::SocketAddrV4;
use core::time::Duration;

/// A sequence number (RFC 9293, section 3.4). The type is not `Ord`, because the numbers wrap around. Comparisons are
/// correct for numbers less than 2^31 apart; a TCP window is never larger.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Seq(pub u32);

impl Seq {
    /// Returns the sequence number `n` after this one.
    #[must_use]
    pub const fn plus(self, n: u32) -> Self {
        Self(self.0.wrapping_add(n))
    }

    /// Returns the sequence number `n` before this one.
    #[must_use]
    pub const fn minus(self, n: u32) -> Self {
        Self(self.0.wrapping_sub(n))
    }

    /// Returns the distance from `earlier` to this sequence number, modulo 2^32.
    pub const fn since(self, earlier: Self) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }

    /// Returns whether this sequence number is before `other`.
    pub const fn before(self, other: Self) -> bool {
        self.0.wrapping_sub(other.0).cast_signed() < 0
    }

    /// Returns whether this sequence number is after `other`.
    pub const fn after(self, other: Self) -> bool {
        other.before(self)
    }

    /// Returns the later of this sequence number and `other`.
    #[must_use]
    pub const fn latest(self, other: Self) -> Self {
        if self.before(other) { other } else { self }
    }
}

/// The state of a TCP connection as plain data. A state in which both ends have sent a FIN has at least one
/// unacknowledged byte or FIN of this end. The state does not contain the congestion window, because the other host
/// begins with an initial window. The state does not contain data received after a gap either, because the peer sends
/// these data again.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TcpState {
    /// The local address and port.
    pub local: SocketAddrV4,
    /// The peer's address and port.
    pub remote: SocketAddrV4,
    /// The oldest unacknowledged sequence number (`snd_una`), at which `unacknowledged` begins. If only the FIN of this
    /// end is unacknowledged, the value is the sequence number of this FIN.
    pub send_una: Seq,
    /// The sequence number after the last one that was sent, a FIN included (`snd_nxt`).
    pub send_next: Seq,
    /// The peer's current window, in bytes.
    pub send_window: u32,
    /// The largest window that the peer has announced, in bytes.
    pub largest_window: u32,
    /// The sequence number of the segment that announced the window (`snd_wl1`).
    pub window_seq: Seq,
    /// The acknowledgment number of the segment that announced the window (`snd_wl2`). Linux does not keep this number;
    /// then the value is `send_una`.
    pub window_ack: Seq,
    /// The window scale of the peer (0 to 14): the number of bits by which the windows of the peer are shifted.
    pub send_scale: u8,
    /// The next sequence number expected from the peer (`rcv_nxt`). If the FIN of the peer has arrived, the value is
    /// the number after the FIN.
    pub receive_next: Seq,
    /// The number of bytes that the peer may still send in the window that was announced to it.
    pub receive_window: u32,
    /// The window scale of this end (0 to 14). Both scales are zero if scaling was not negotiated.
    pub receive_scale: u8,
    /// The agreed maximum segment size (MSS) for segments to the peer, in bytes. TCP options reduce the largest payload
    /// below this size.
    pub mss: u32,
    /// The bytes from `send_una` on that the application wrote: first the bytes that were sent, then the unsent bytes.
    pub unacknowledged: Vec<u8>,
    /// The bytes that were received in order, but not read by the application.
    pub unread: Vec<u8>,
    /// Whether the application closed its direction: a FIN follows the last byte. The FIN is sent again even if the
    /// peer acknowledged it.
    pub finishing: bool,
    /// Whether the peer closed its direction: no data follow `unread`.
    pub finished: bool,
    /// The current value of the local timestamp clock (RFC 7323), or `None` if timestamps were not negotiated. The peer
    /// drops segments whose timestamp is older than the newest one that the peer has received.
    pub timestamp: Option<u32>,
    /// Whether selective acknowledgments were negotiated (RFC 2018).
    pub sack_permitted: bool,
    /// The round trip to the peer, or `None` if it was not measured. This round trip is only an estimate, because the
    /// path from another host can differ (RFC 9040, section 8.1).
    pub round_trip: Option<RoundTripTime>,
}

/// The measured round trip of a path (RFC 6298, section 2), in whole microseconds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RoundTripTime {
    /// The smoothed round-trip time (`SRTT`), from one microsecond to 71 minutes.
    pub smoothed: Duration,
    /// The mean deviation of the round-trip time (`RTTVAR`), at most 71 minutes.
    pub variation: Duration,
}

impl RoundTripTime {
    /// The largest value that 32 bits of microseconds represent: 71 minutes.
    const LONGEST: Duration = Duration::from_micros(u32::MAX as u64);

    /// Returns these times, rounded down to whole microseconds and limited to 71 minutes. `smoothed` becomes at least 1
    /// us.
    pub fn new(smoothed: Duration, variation: Duration) -> Self {
        let whole = |span: Duration| Duration::from_micros(span.min(Self::LONGEST).as_micros() as u64);
        let least = Duration::from_micros(1);
        Self { smoothed: whole(smoothed).max(least), variation: whole(variation) }
    }
}

impl TcpState {
    /// Returns whether the FIN of this end was sent.
    pub fn fin_sent(&self) -> bool {
        self.finishing && self.send_next.since(self.send_una) as usize > self.unacknowledged.len()
    }

    /// Returns the number of sequence numbers that were sent and are not acknowledged. The result is limited to the
    /// data and FIN in this state, because a state that came over a network can be wrong.
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
