//! The mechanisms among which a profile chooses.

/// How a sender repairs losses that it detects before the retransmission timer expires.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Recovery {
    /// Fast retransmit, then slow start: all unacknowledged data is sent again as after a time-out, but the sender does
    /// not wait for the time-out (Jacobson, 1988, as in Fall and Floyd, 1996). Duplicate acknowledgments that the
    /// retransmissions cause do not count as a new loss (RFC 6582, section 3.2, step 2).
    Tahoe,
    /// Fast retransmit and fast recovery; the first new acknowledgment ends the recovery (RFC 5681, section 3.2).
    Reno,
    /// Fast recovery that partial acknowledgments do not end. It repairs one loss per round trip (RFC 6582).
    NewReno,
    /// Recovery by selective acknowledgments (RFC 6675). If the ends did not agree on selective acknowledgments, the
    /// sender uses [`Self::NewReno`].
    Sack,
    /// Recovery per segment, as in Linux, with the given mechanisms. If the ends did not agree on selective
    /// acknowledgments, the sender uses [`Self::NewReno`].
    Segments(Mechanisms),
}

/// The growth of the window in congestion avoidance, and the factor by which a loss reduces it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Avoidance {
    /// The window grows by one segment per round trip. The threshold after a loss is half of the window (RFC 5681).
    #[default]
    Reno,
    /// The window grows as a cubic function of the time since the last loss, or as with Reno if that is faster. The
    /// threshold after a loss is 0.7 of the window (RFC 9438).
    Cubic,
}

/// The arithmetic that computes a time-out from round-trip times.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Estimator {
    /// The arithmetic of RFC 6298, section 2, in nanoseconds.
    Rfc6298,
    /// The arithmetic of 4.4BSD, in whole ticks of the slow clock (`tcp_xmit_timer`; Jacobson, 1988, appendix A).
    /// Without [`Timing::Ticks`], a tick is 500 ms.
    ///
    /// [`Timing::Ticks`]: crate::Timing::Ticks
    Bsd,
    /// The arithmetic of Linux (`tcp_rtt_estimator`), in nanoseconds. The time-out is the smoothed round trip plus the
    /// variance. The variance is at least `rto_min`, and falls at most once per window of data.
    Linux,
}

/// The mechanisms of per-segment recovery that a sender uses. Linux uses all of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each has a separate switch")]
pub struct Mechanisms {
    /// Whether losses are detected by time (RFC 8985: RACK). Otherwise a segment is lost if the peer reported as many
    /// segments above it as the profile's `duplicates` (RFC 6675: 3).
    pub rack: bool,
    /// Whether tail loss probes are sent (RFC 8985: TLP).
    pub tlp: bool,
    /// Whether the window is reduced in proportion to the data that arrives (RFC 6937: PRR). Otherwise it is set to the
    /// threshold when the recovery begins (RFC 6675).
    pub prr: bool,
    /// Whether spurious time-outs are detected (RFC 5682: F-RTO).
    pub frto: bool,
}

impl Mechanisms {
    /// All mechanisms, as in Linux.
    pub const ALL: Self = Self { rack: true, tlp: true, prr: true, frto: true };
    /// None of the mechanisms: losses are detected as in RFC 6675, but counted in segments.
    pub const NONE: Self = Self { rack: false, tlp: false, prr: false, frto: false };
}
