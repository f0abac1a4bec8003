//! The knobs: whatever shapes a measurement and differs between stacks.

use wire::{Duration, RtoBounds};

/// How a TCP behaves. Every field is public, because results of papers hang on them; the constructors are starting
/// points.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a knob of its own")]
pub struct Profile {
    /// Largest payload, in bytes: announced, and the most that is sent (RFC 9293, section 3.7.1).
    pub mss: u16,
    /// Initial congestion window, in segments (RFC 5681, section 3.1; RFC 6928).
    pub initial_window: u32,
    /// Retransmission time-out before there is a sample (RFC 6298, 2.1).
    pub rto_initial: Duration,
    /// Smallest retransmission time-out (RFC 6298, 2.4).
    pub rto_min: Duration,
    /// Largest retransmission time-out, backed off or not (RFC 6298, 2.5).
    pub rto_max: Duration,
    /// Clock granularity G: the least that the variance adds to the time-out (RFC 6298, 2.3).
    pub granularity: Duration,
    /// How long an acknowledgment may wait for a second segment; `None` acknowledges each (RFC 5681, section 4.2).
    pub delayed_ack: Option<Duration>,
    /// The number of segments with data, from the begin, that are acknowledged at once in spite of `delayed_ack`
    /// (Linux's "quick ACK").
    pub quick_acks: u32,
    /// Partial acknowledgments keep fast recovery going (RFC 6582); else the first new one ends it (RFC 5681).
    pub newreno: bool,
    /// Bytes that may wait to be acknowledged by the peer, or to be sent.
    pub send_buffer: u32,
    /// Bytes that may wait to be read: the largest window announced. Without `window_scale`, 65535 of it are used.
    pub receive_buffer: u32,
    /// Whether window scaling is offered, and accepted (RFC 7323, section 2).
    pub window_scale: bool,
    /// Whether a SYN says that selective acknowledgments are understood (RFC 2018). None are sent or used so far.
    pub sack_permitted: bool,
    /// Whether small segments wait while data is unacknowledged (Nagle; RFC 9293, section 3.7.4).
    pub nagle: bool,
    /// Whether idling longer than a time-out puts the congestion window back to the initial (RFC 5681, section 4.1).
    pub idle_restart: bool,
    /// Time-outs in a row without an answer that are survived; the next ends the connection (RFC 9293, section 3.8.3).
    pub max_retransmissions: u32,
    /// Whether each time-out lowers the slow start threshold, as in 4.4BSD; else the first of a segment's only
    /// (RFC 5681, section 3.1).
    pub ssthresh_each_rto: bool,
    /// How long TIME-WAIT lasts: twice the maximum segment lifetime (RFC 9293, section 3.6.1).
    pub time_wait: Duration,
}

impl Profile {
    /// What the time-out stays within.
    pub(crate) const fn rto_bounds(&self) -> RtoBounds {
        RtoBounds {
            initial: self.rto_initial,
            min: self.rto_min,
            max: self.rto_max,
            variances: 4,
            granularity: self.granularity,
            least_variance: Duration::ZERO,
        }
    }

    /// What the RFCs say: RFC 5681 with Reno, RFC 6298 with a least time-out of 1 s.
    pub const fn rfc6298_reno() -> Self {
        Self {
            mss: 1460,
            initial_window: 3, // RFC 5681, section 3.1: for segments of 1096 to 2190 bytes
            rto_initial: Duration::from_secs(1),
            rto_min: Duration::from_secs(1),
            rto_max: Duration::from_mins(1),
            granularity: Duration::from_millis(1),
            delayed_ack: Some(Duration::from_millis(200)),
            quick_acks: 0,
            newreno: false,
            send_buffer: 44 * 1460,
            receive_buffer: 44 * 1460,
            window_scale: false,
            sack_permitted: false,
            nagle: true,
            idle_restart: true,
            max_retransmissions: 15,
            ssthresh_each_rto: false,
            time_wait: Duration::from_mins(4),
        }
    }

    /// The constants of Linux with its Reno congestion control (`include/net/tcp.h`: `TCP_RTO_MIN`, `TCP_DELACK_MIN`,
    /// `TCP_INIT_CWND`, `TCP_TIMEWAIT_LEN`, `TCP_MAX_QUICKACKS`). What it has and this crate does not is missing here too:
    /// SACK, timestamps, RACK, tail loss probes.
    pub const fn linux_like() -> Self {
        Self {
            initial_window: 10,
            rto_min: Duration::from_millis(200),
            rto_max: Duration::from_mins(2),
            delayed_ack: Some(Duration::from_millis(40)),
            quick_acks: 16,
            newreno: true,
            send_buffer: 1024 * 1024,
            receive_buffer: 1024 * 1024,
            window_scale: true,
            time_wait: Duration::from_mins(1),
            ..Self::rfc6298_reno()
        }
    }
}
