//! The parameters that shape a measurement and differ between TCP stacks.

use crate::{Avoidance, Estimator, Mechanisms, Recovery, Ticks, Timing, Wheel};
use wire::{Duration, RtoBounds};

/// The parameters of a TCP stack. All fields are public, because results of papers depend on them. The constructors
/// return the values of the RFCs and of known stacks.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent parameter")]
pub struct Profile {
    /// The largest segment payload, in bytes. The SYN announces it, and it limits the segments to the peer (RFC 9293,
    /// section 3.7.1). The options of a segment reduce its payload (RFC 6691).
    pub mss: u16,
    /// Initial congestion window, in segments (RFC 5681, section 3.1; RFC 6928). Zero counts as 1.
    pub initial_window: u32,
    /// If at least this number of time-outs of the SYN occurred, the initial window is one segment (RFC 5681, section
    /// 3.1: 1; Linux, `tcp_init_transfer`: 2).
    pub lost_syns: u32,
    /// How the sender repairs losses that it detects before the retransmission timer expires.
    pub recovery: Recovery,
    /// How the window grows in congestion avoidance, and by which factor a loss reduces it.
    pub avoidance: Avoidance,
    /// The number of duplicate acknowledgments that indicate a loss (RFC 5681, section 3.2, and `DupThresh` of RFC
    /// 6675: 3). Zero counts as 1.
    pub duplicates: u32,
    /// Whether each duplicate acknowledgment below `duplicates` lets one new segment be sent (RFC 3042). Per-segment
    /// recovery does not use this field.
    pub limited_transmit: bool,
    /// How the time-out is computed from round-trip times.
    pub estimator: Estimator,
    /// Retransmission time-out before there is a sample (RFC 6298, 2.1).
    pub rto_initial: Duration,
    /// Smallest retransmission time-out after a sample (RFC 6298, 2.4). With [`Estimator::Linux`]: the minimum of the
    /// variance that the time-out adds to the round trip.
    pub rto_min: Duration,
    /// Largest retransmission time-out, backed off or not (RFC 6298, 2.5). A value below `rto_min` counts as `rto_min`.
    pub rto_max: Duration,
    /// K: the factor of the variance in the time-out of [`Estimator::Rfc6298`] (RFC 6298, 2.2: 4).
    pub rto_variances: u32,
    /// Clock granularity G: the minimum of K times the variance in the time-out of [`Estimator::Rfc6298`] (RFC 6298,
    /// 2.3).
    pub granularity: Duration,
    /// When timers expire: at their deadline, or at a tick or slot of the host's clock.
    pub timing: Timing,
    /// The longest time that an acknowledgment waits for another segment (RFC 5681, section 4.2: at most 500 ms). With
    /// [`Timing::Ticks`] it waits until the next fast tick instead. `None`: each segment is acknowledged at once.
    pub delayed_ack: Option<Duration>,
    /// The number N: every N-th segment is acknowledged at once in spite of `delayed_ack` (RFC 5681, section 4.2: 2).
    pub ack_every: u32,
    /// The number of data segments at the start that are acknowledged at once in spite of `delayed_ack` (Linux's "quick
    /// ACK"). With `quick_again` this is the maximum: the number is half of the segments that fit in the window, or 2
    /// if that is zero.
    pub quick_acks: u32,
    /// Whether quick acknowledgments start again after a segment that had arrived before, and after a pause between
    /// arrivals that is longer than the time-out. In both cases, the peer may be in slow start (Linux:
    /// `tcp_enter_quickack_mode`, `tcp_event_data_recv`).
    pub quick_again: bool,
    /// The size of the send buffer, in bytes. The buffer holds written data until the peer acknowledges it.
    pub send_buffer: u32,
    /// The size of the receive buffer, in bytes. It is the largest window that is announced. Without window scaling, at
    /// most 65535 bytes are announced.
    pub receive_buffer: u32,
    /// Whether window scaling is offered, and accepted (RFC 7323, section 2).
    pub window_scale: bool,
    /// The window shift that is offered, from 0 to 14. `None`: the smallest shift with which the window field can
    /// express the whole receive buffer.
    pub window_shift: Option<u8>,
    /// Whether timestamps are offered, and accepted. They measure round-trip times, also of retransmitted segments, and
    /// reject segments from before a wrap of the sequence space (RFC 7323, sections 3 to 5).
    pub timestamps: bool,
    /// The tick of the timestamp clock (RFC 7323, section 5.4: from 1 ms to 1 s).
    pub timestamp_tick: Duration,
    /// Whether a segment that has arrived before is processed, although it ends below the window, if it ends at or above
    /// the last acknowledgment sent: its timestamp is echoed, and its acknowledgment counts (Linux: `tcp_sequence`). It
    /// has an effect only if timestamps are used. RFC 7323, section 5.3, rejects such a segment (R2) before its timestamp
    /// counts (R3).
    pub echo_duplicates: bool,
    /// Whether selective acknowledgments are offered, and sent if the peer offers them (RFC 2018). The sender uses
    /// those of the peer only with [`Recovery::Sack`] and [`Recovery::Segments`].
    pub sack: bool,
    /// Whether the first SACK block reports data that arrived twice (RFC 2883).
    pub dsack: bool,
    /// Whether the receive window tunes itself, as in Linux. It begins with at most 65535 bytes. It grows up to the
    /// receive buffer with the data that arrives and is read in a round trip. Otherwise the window has the buffer's
    /// size from the start.
    pub window_growth: bool,
    /// Whether small segments wait while data is unacknowledged (Nagle; RFC 9293, section 3.7.4). An application can
    /// change it for a connection.
    pub nagle: bool,
    /// Whether `nagle` makes small segments wait only while another small segment is unacknowledged (Minshall's variant
    /// of Nagle; Linux).
    pub minshall: bool,
    /// Whether the limit of the send buffer is rounded up to whole segments. Linux does so, because it calls
    /// `sk_stream_memory_free` once per segment, not per byte.
    pub whole_writes: bool,
    /// Whether the congestion window is set back to the initial window after an idle time longer than a time-out (RFC
    /// 5681, section 4.1). [`Recovery::Segments`] does as Linux: it halves the window once for each time-out of the
    /// idle time, down to the initial window. It also shrinks a window that is not used (RFC 2861).
    pub idle_restart: bool,
    /// What the sender does when a router reports that a segment is too big for the path.
    pub too_big: TooBig,
    /// The number of consecutive time-outs and window probes without an answer that the connection survives. The next
    /// one ends the connection (RFC 9293, section 3.8.3).
    pub max_retransmissions: u32,
    /// Whether each time-out lowers the slow start threshold, as in 4.4BSD. Then a loss sets the threshold to half of
    /// the congestion window or of the peer's window, whichever is smaller. Otherwise only the first time-out since the
    /// peer's last answer lowers the threshold (RFC 5681, section 3.1). Per-segment recovery does not use this field.
    pub ssthresh_each_rto: bool,
    /// The shortest time before a closed window is probed. The time is the retransmission time-out, doubled with each
    /// probe, and limited to `persist_min` and `persist_max` (RFC 9293, section 3.8.6.1).
    pub persist_min: Duration,
    /// The longest time between two probes of a closed window. A value below `persist_min` counts as `persist_min`.
    pub persist_max: Duration,
    /// How long TIME-WAIT lasts: twice the maximum segment lifetime (RFC 9293, section 3.6.1).
    pub time_wait: Duration,
    /// Whether the host's stack records each [`Change`](crate::Change) of a connection, for graphs. It has no other
    /// effect.
    pub traced: bool,
}

/// What a sender does when a router reports "fragmentation needed" (RFC 1191, section 6.4).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TooBig {
    /// The sender immediately resends the segments that are too big, in segments that fit. Without per-segment
    /// recovery, it resends all unacknowledged data. The slow start threshold is not lowered, because there was no
    /// congestion.
    ResendAtOnce,
    /// New segments fit the reported size. Segments that were too big are sent again when the retransmission timer
    /// expires, as in stacks before path MTU discovery.
    AwaitTimeout,
}

impl Profile {
    /// Returns the values of the RFCs: RFC 5681 with Reno, RFC 6298 with a minimum time-out of 1 s.
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
            echo_duplicates: false,
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

    /// Returns the constants of Linux with its Reno congestion control (`include/net/tcp.h`: `TCP_RTO_MIN`,
    /// `TCP_DELACK_MIN`, `TCP_INIT_CWND`, `TCP_TIMEWAIT_LEN`, `TCP_MAX_QUICKACKS`), with the estimator of RFC 6298.
    /// Selective acknowledgments and timestamps are off; [`Self::linux`] has them. Earlier figures of this project were
    /// measured with this profile.
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

    /// Returns Linux's defaults, with Reno instead of CUBIC. They have selective acknowledgments, timestamps, Linux's
    /// estimator (`tcp_rtt_estimator`), and timers on a wheel of 250 ticks a second. The loss recovery is Linux's:
    /// RACK-TLP, proportional rate reduction, F-RTO and undo. This crate does not have pacing, an auto-tuned send
    /// buffer, `HyStart` of Linux's CUBIC, or the compression of selective acknowledgments.
    pub const fn linux() -> Self {
        Self {
            lost_syns: 2,
            recovery: Recovery::Segments(Mechanisms::ALL),
            limited_transmit: true,
            estimator: Estimator::Linux,
            timing: Timing::Wheel(Wheel::LINUX),
            timestamps: true,
            echo_duplicates: true,
            sack: true,
            dsack: true,
            quick_again: true,
            minshall: true,
            whole_writes: true,
            window_growth: true,
            receive_buffer: 3 * 1024 * 1024, // half of the largest `tcp_rmem`: the other half is overhead
            window_shift: Some(7),           // for the whole `tcp_rmem` (`tcp_select_initial_window`)
            ..Self::linux_like()
        }
    }

    /// Returns the values of 4.4BSD-Lite (Wright and Stevens, TCP/IP Illustrated, volume 2; `tcp_timer.h`). It has two
    /// clocks of 500 ms and 200 ms, Reno, and an initial window of one segment. Each time-out lowers the threshold.
    /// Time-outs are from 1 s to 64 s, and 6 s before the first sample. The time before a window probe is from 5 s to
    /// 60 s. TIME-WAIT lasts 60 s. The fields `window_scale` and `timestamps` are its RFC 1323 extensions, and are off.
    /// Buffers are those of [`Self::rfc6298_reno`].
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
