//! What must be known of a TCP connection (RFC 9293) to move it: sequence numbers, and the state itself.

use alloc::vec::Vec;
use core::net::SocketAddrV4;
use core::time::Duration;

/// A place in the sequence space (RFC 9293, section 3.4). There is no order on the whole circle, so it is not `Ord`: comparisons are right for
/// numbers less than 2^31 apart, and a window is never larger.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Seq(pub u32);

impl Seq {
    /// The number `n` further on.
    #[must_use]
    pub const fn plus(self, n: u32) -> Self {
        Self(self.0.wrapping_add(n))
    }

    /// The number `n` further back.
    #[must_use]
    pub const fn minus(self, n: u32) -> Self {
        Self(self.0.wrapping_sub(n))
    }

    /// How far this is beyond `earlier`, going forward on the circle.
    pub const fn since(self, earlier: Self) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }

    /// Whether this comes before `other`.
    pub const fn before(self, other: Self) -> bool {
        self.0.wrapping_sub(other.0).cast_signed() < 0
    }

    /// Whether this comes after `other`.
    pub const fn after(self, other: Self) -> bool {
        other.before(self)
    }

    /// The later of two.
    #[must_use]
    pub const fn latest(self, other: Self) -> Self {
        if self.before(other) { other } else { self }
    }
}

/// A connection both of whose ends may have finished, but not so that all of it is acknowledged, as plain data. What is not in
/// it begins anew at the other host: the congestion window, and data that came beyond a gap, which the peer sends again.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TcpState {
    /// Our end.
    pub local: SocketAddrV4,
    /// The peer's.
    pub remote: SocketAddrV4,
    /// The oldest number that the peer has not acknowledged, or that of a FIN alone; `unacknowledged` begins with it.
    pub send_una: Seq,
    /// The end of what was sent, the FIN included.
    pub send_next: Seq,
    /// The peer's window, in bytes.
    pub send_window: u32,
    /// The largest that it ever was.
    pub largest_window: u32,
    /// The sequence number of the segment that announced it (`snd_wl1`).
    pub window_seq: Seq,
    /// Its acknowledgment number (`snd_wl2`).
    pub window_ack: Seq,
    /// The shift of the peer's windows.
    pub send_scale: u8,
    /// The next number expected from the peer: after its FIN, if that has come.
    pub receive_next: Seq,
    /// The window that the peer was told of and has not used, in bytes.
    pub receive_window: u32,
    /// The shift of our windows. Both are zero where scaling was not agreed.
    pub receive_scale: u8,
    /// Largest payload to the peer, in bytes.
    pub mss: u32,
    /// Bytes that were written, from `send_una` on: sent first, then those that were not.
    pub unacknowledged: Vec<u8>,
    /// Bytes that were acknowledged and not read.
    pub unread: Vec<u8>,
    /// The user finished: a FIN stands after the last byte. It is sent again, even if it was acknowledged.
    pub finishing: bool,
    /// The peer finished: nothing comes after what is unread.
    pub finished: bool,
    /// Where timestamps were agreed: the value that ours would have now (RFC 7323, section 3). A peer drops what seems
    /// older than what it has seen.
    pub timestamp: Option<u32>,
    /// Whether selective acknowledgments were agreed (RFC 2018).
    pub sack_permitted: bool,
    /// The round trip to the peer, if it was measured: a hint, as the path from the other host may be a different one (RFC 9040,
    /// section 7).
    pub round_trip: Option<RoundTripTime>,
}

/// What is known of a path's round trip (RFC 6298, section 2), in whole microseconds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RoundTripTime {
    /// `SRTT`: at least one microsecond.
    pub smoothed: Duration,
    /// `RTTVAR`: its mean deviation.
    pub variation: Duration,
}

impl RoundTripTime {
    /// The longest that can be said: 71 minutes.
    const LONGEST: Duration = Duration::from_micros(u32::MAX as u64);

    /// These times, in whole microseconds.
    pub fn new(smoothed: Duration, variation: Duration) -> Self {
        let whole = |span: Duration| Duration::from_micros(span.min(Self::LONGEST).as_micros() as u64);
        let least = Duration::from_micros(1);
        Self { smoothed: whole(smoothed).max(least), variation: whole(variation) }
    }
}

impl TcpState {
    /// Whether our FIN was sent.
    pub fn fin_sent(&self) -> bool {
        self.finishing && self.send_next.since(self.send_una) as usize > self.unacknowledged.len()
    }

    /// How many numbers were sent and are not acknowledged: no more than there are, whatever a state that came over a network
    /// may claim.
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
