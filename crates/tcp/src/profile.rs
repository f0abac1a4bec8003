//! The knobs: whatever shapes a measurement and differs between stacks.

use crate::{Avoidance, Estimator, Mechanisms, Recovery, Ticks, Timing, Wheel};
use wire::{Duration, RtoBounds};

/// How a TCP behaves. Every field is public, because results of papers hang on them; the constructors are starting
/// points.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a knob of its own")]
pub struct Profile {
    /// Largest payload, in bytes: announced, and the most that is sent (RFC 9293, section 3.7.1). Options that each
    /// segment carries are taken off (RFC 6691).
    pub mss: u16,
    /// Initial congestion window, in segments (RFC 5681, section 3.1; RFC 6928).
    pub initial_window: u32,
    /// The number of lost SYNs after which the window begins with one segment instead (RFC 5681, section 3.1: 1; Linux,
    /// `tcp_init_transfer`: 2).
    pub lost_syns: u32,
    /// What is done about a loss that duplicates tell of.
    pub recovery: Recovery,
    /// How the window grows where it is not slow start.
    pub avoidance: Avoidance,
    /// Duplicates that mean a loss, in segments (RFC 5681, section 3.2, and `DupThresh` of RFC 6675: 3).
    pub duplicates: u32,
    /// Whether the duplicates before that let a new segment out each (RFC 3042).
    pub limited_transmit: bool,
    /// How round-trip times become a time-out.
    pub estimator: Estimator,
    /// Retransmission time-out before there is a sample (RFC 6298, 2.1).
    pub rto_initial: Duration,
    /// Smallest retransmission time-out (RFC 6298, 2.4). With [`Estimator::Linux`]: the least that the variance adds.
    pub rto_min: Duration,
    /// Largest retransmission time-out, backed off or not (RFC 6298, 2.5).
    pub rto_max: Duration,
    /// K: how often [`Estimator::Rfc6298`] adds the variance to the round trip (RFC 6298, 2.2: 4).
    pub rto_variances: u32,
    /// Clock granularity G: the least that the variance adds to the time-out (RFC 6298, 2.3).
    pub granularity: Duration,
    /// When timers go off: when they are due, or when the host's clock lets them.
    pub timing: Timing,
    /// How long an acknowledgment may wait for another segment; `None` acknowledges each (RFC 5681, section 4.2: at most
    /// 500 ms).
    pub delayed_ack: Option<Duration>,
    /// The number of segments of which the last is acknowledged at once in spite of `delayed_ack` (RFC 5681,
    /// section 4.2: 2).
    pub ack_every: u32,
    /// The number of segments with data, from the begin, that are acknowledged at once in spite of `delayed_ack`
    /// (Linux's "quick ACK"). With `quick_again` no more than half of the window holds, and at least one.
    pub quick_acks: u32,
    /// Whether that many segments are acknowledged at once again after data that came twice, and after a gap in what comes that
    /// is longer than the time-out: a peer that is in slow start waits for it (Linux: `tcp_enter_quickack_mode`,
    /// `tcp_event_data_recv`).
    pub quick_again: bool,
    /// Bytes that may wait to be acknowledged by the peer, or to be sent.
    pub send_buffer: u32,
    /// Bytes that may wait to be read: the largest window announced. Without `window_scale`, 65535 of it are used.
    pub receive_buffer: u32,
    /// Whether window scaling is offered, and accepted (RFC 7323, section 2).
    pub window_scale: bool,
    /// The shift that is offered; `None`: the least with which the window field can say the whole receive buffer.
    pub window_shift: Option<u8>,
    /// Whether timestamps are offered, and accepted: for round-trip times, also of what was sent twice, and against
    /// segments of a former turn of the sequence space (RFC 7323, sections 3 to 5).
    pub timestamps: bool,
    /// The tick of the timestamp clock (RFC 7323, section 5.4: 1 ms to 1 s).
    pub timestamp_tick: Duration,
    /// Whether selective acknowledgments are offered, and sent if the peer does too (RFC 2018). They are used by
    /// [`Recovery::Sack`] and [`Recovery::Segments`].
    pub sack: bool,
    /// Whether data that came twice is reported in the first block of a selective acknowledgment (RFC 2883).
    pub dsack: bool,
    /// Whether the receive window tunes itself, as in Linux: it begins with 64 KiB, and grows to the receive buffer with
    /// what comes and what is read in a round trip. Else it has the buffer's size from the begin.
    pub window_growth: bool,
    /// Whether small segments wait while data is unacknowledged (Nagle; RFC 9293, section 3.7.4).
    pub nagle: bool,
    /// Whether these wait only while another small one is unacknowledged (Minshall's variation of it; Linux).
    pub minshall: bool,
    /// Whether the last segment that is written goes into the send buffer whole, where there is room for a part of it (Linux:
    /// `sk_stream_memory_free` is asked before a segment, not before a byte).
    pub whole_writes: bool,
    /// Whether idling longer than a time-out puts the congestion window back to the initial (RFC 5681, section 4.1).
    pub idle_restart: bool,
    /// What is done when a router says that a segment was too big for the path.
    pub too_big: TooBig,
    /// Time-outs in a row without an answer that are survived; the next ends the connection (RFC 9293, section 3.8.3).
    pub max_retransmissions: u32,
    /// Whether each time-out lowers the slow start threshold, as in 4.4BSD; else the first of a segment's only
    /// (RFC 5681, section 3.1).
    pub ssthresh_each_rto: bool,
    /// The least time before a closed window is probed; probes back off as retransmissions do (RFC 9293, section 3.8.6.1).
    pub persist_min: Duration,
    /// The largest time between such probes.
    pub persist_max: Duration,
    /// How long TIME-WAIT lasts: twice the maximum segment lifetime (RFC 9293, section 3.6.1).
    pub time_wait: Duration,
    /// Whether a host's stack writes down how the congestion window, the threshold, the round trip, the time-out and the
    /// state change, for graphs. It changes nothing else.
    pub traced: bool,
}

/// What a sender does when a router reports "fragmentation needed" (RFC 1191, section 6.4 and 6.5).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TooBig {
    /// It sends again at once what is unacknowledged, in segments that fit; nothing was congested, so the window stays.
    ResendAtOnce,
    /// Segments fit from now on; those that did not are left to the retransmission timer, as in stacks before path MTU
    /// discovery.
    AwaitTimeout,
}

impl Profile {
    /// What the RFCs say: RFC 5681 with Reno, RFC 6298 with a least time-out of 1 s.
    pub const fn rfc6298_reno() -> Self {
        Self {
            mss: 1460,
            initial_window: 3, // RFC 5681, section 3.1: for segments of 1096 to 2190 bytes
            lost_syns: 1,
            recovery: Recovery::Reno,
            avoidance: Avoidance::Reno,
            duplicates: 3,
            limited_transmit: false,
            estimator: Estimator::Rfc6298,
            rto_initial: Duration::from_secs(1),
            rto_min: Duration::from_secs(1),
            rto_max: Duration::from_mins(1),
            rto_variances: 4,
            granularity: Duration::from_millis(1),
            timing: Timing::Exact,
            delayed_ack: Some(Duration::from_millis(200)),
            ack_every: 2,
            quick_acks: 0,
            quick_again: false,
            send_buffer: 44 * 1460,
            receive_buffer: 44 * 1460,
            window_scale: false,
            window_shift: None,
            timestamps: false,
            timestamp_tick: Duration::from_millis(1),
            sack: false,
            dsack: false,
            window_growth: false,
            nagle: true,
            minshall: false,
            whole_writes: false,
            idle_restart: true,
            too_big: TooBig::ResendAtOnce,
            max_retransmissions: 15,
            ssthresh_each_rto: false,
            persist_min: Duration::ZERO,
            persist_max: Duration::from_mins(1),
            time_wait: Duration::from_mins(4),
            traced: false,
        }
    }

    /// The constants of Linux with its Reno congestion control (`include/net/tcp.h`: `TCP_RTO_MIN`, `TCP_DELACK_MIN`,
    /// `TCP_INIT_CWND`, `TCP_TIMEWAIT_LEN`, `TCP_MAX_QUICKACKS`), without selective acknowledgments and timestamps, and
    /// with the estimator of RFC 6298: what figures of this house were measured with. [`Self::linux`] has them.
    pub const fn linux_like() -> Self {
        Self {
            initial_window: 10,
            rto_min: Duration::from_millis(200),
            rto_max: Duration::from_mins(2),
            delayed_ack: Some(Duration::from_millis(40)),
            quick_acks: 16,
            recovery: Recovery::NewReno,
            send_buffer: 1024 * 1024,
            receive_buffer: 1024 * 1024,
            window_scale: true,
            persist_max: Duration::from_mins(2),
            time_wait: Duration::from_mins(1),
            ..Self::rfc6298_reno()
        }
    }

    /// Linux as it speaks by default but for the congestion control, which is Reno's: selective acknowledgments, timestamps,
    /// its own estimator (`tcp_rtt_estimator`), timers on its wheel, 250 ticks a second, and what it does about losses:
    /// RACK-TLP, proportional rate reduction, F-RTO, undoing of what was spurious. What it has and this crate does not:
    /// pacing, an auto-tuned send buffer, `HyStart` of its CUBIC, the compression of selective acknowledgments.
    pub const fn linux() -> Self {
        Self {
            lost_syns: 2,
            recovery: Recovery::Segments(Mechanisms::ALL),
            limited_transmit: true,
            estimator: Estimator::Linux,
            timing: Timing::Wheel(Wheel::LINUX),
            timestamps: true,
            sack: true,
            dsack: true,
            quick_again: true,
            minshall: true,
            whole_writes: true,
            window_growth: true,
            receive_buffer: 3 * 1024 * 1024, // half of the largest `tcp_rmem`: the other half is overhead
            window_shift: Some(7),           // by the whole of it (`tcp_select_initial_window`)
            ..Self::linux_like()
        }
    }

    /// 4.4BSD-Lite (Wright and Stevens, TCP/IP Illustrated, volume 2; `tcp_timer.h`): two clocks of 500 ms and 200 ms, Reno,
    /// one segment to begin with, the threshold lowered by each time-out, time-outs from 1 s to 64 s, 6 s before the first
    /// sample, probes from 5 s to 60 s, a segment's life of 30 s. Its extensions of RFC 1323 are the knobs `window_scale` and
    /// `timestamps`, and off; windows are those of [`Self::rfc6298_reno`].
    pub const fn bsd44() -> Self {
        Self {
            initial_window: 1,
            estimator: Estimator::Bsd,
            rto_initial: Duration::from_secs(6),
            rto_min: Duration::from_secs(1),
            rto_max: Duration::from_secs(64),
            timing: Timing::Ticks(Ticks::BSD),
            max_retransmissions: 12,
            ssthresh_each_rto: true,
            persist_min: Duration::from_secs(5),
            persist_max: Duration::from_mins(1),
            time_wait: Duration::from_mins(1),
            ..Self::rfc6298_reno()
        }
    }

    /// What the time-out stays within.
    pub(crate) const fn rto_bounds(&self) -> RtoBounds {
        RtoBounds {
            initial: self.rto_initial,
            min: self.rto_min,
            max: self.rto_max,
            variances: self.rto_variances,
            granularity: self.granularity,
            least_variance: Duration::ZERO,
        }
    }
}
