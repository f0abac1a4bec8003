//! The state of a connection, the reason of its end, and a snapshot for reports.

use wire::Duration;

/// The states of RFC 9293, section 3.3.2. LISTEN is left out: the caller of this crate listens, and makes a connection
/// for each SYN.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum State {
    /// CLOSED: the connection has ended; [`Ended`] is the reason.
    Closed,
    /// SYN-SENT: this end opened the connection, and the peer's SYN has not arrived.
    SynSent,
    /// SYN-RECEIVED: the peer's SYN has arrived, and the SYN of this end is not acknowledged.
    SynReceived,
    /// ESTABLISHED: data can flow in both directions.
    Established,
    /// FIN-WAIT-1: this end has sent its FIN, and the peer has not acknowledged it.
    FinWait1,
    /// FIN-WAIT-2: the FIN of this end is acknowledged, and the peer may still send.
    FinWait2,
    /// CLOSE-WAIT: the peer's FIN has arrived, and this end may still send.
    CloseWait,
    /// CLOSING: this end has sent its FIN, and the peer's FIN has arrived, but the FIN of this end is not acknowledged.
    Closing,
    /// LAST-ACK: this end has sent its FIN after the peer's FIN, and the peer has not acknowledged it.
    LastAck,
    /// TIME-WAIT: the FIN of this end is acknowledged, and the peer's FIN has arrived. The state lasts until old
    /// segments have left the network.
    TimeWait,
}

impl State {
    /// Returns the name of the state in RFC 9293, for example `SYN-SENT`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Closed => "CLOSED",
            Self::SynSent => "SYN-SENT",
            Self::SynReceived => "SYN-RECEIVED",
            Self::Established => "ESTABLISHED",
            Self::FinWait1 => "FIN-WAIT-1",
            Self::FinWait2 => "FIN-WAIT-2",
            Self::CloseWait => "CLOSE-WAIT",
            Self::Closing => "CLOSING",
            Self::LastAck => "LAST-ACK",
            Self::TimeWait => "TIME-WAIT",
        }
    }

    /// Returns whether both ends know each other's initial sequence number: in ESTABLISHED and the later states, but
    /// not in CLOSED.
    pub const fn synchronized(self) -> bool {
        !matches!(self, Self::Closed | Self::SynSent | Self::SynReceived)
    }
}

/// Why a connection is closed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Ended {
    /// Both ends finished, or the application finished before the peer answered the SYN, without data to send.
    Finished,
    /// The peer answered the SYN with a reset.
    Refused,
    /// The peer reset the connection.
    Reset,
    /// The application of this end aborted the connection.
    Aborted,
    /// The peer did not answer, although the retransmission timer expired or a window probe was sent more than
    /// `max_retransmissions` times in a row. If ICMP reports undo the time-outs, the peer was silent for longer than R2
    /// (RFC 9293, section 3.8.3).
    TimedOut,
}

/// A snapshot of a connection, for graphs and reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Info {
    /// The state of the connection.
    pub state: State,
    /// The congestion window, in bytes.
    pub cwnd: u32,
    /// The slow start threshold, in bytes.
    pub ssthresh: u32,
    /// Whether fast recovery is under way.
    pub recovering: bool,
    /// The retransmission time-out, backed off.
    pub rto: Duration,
    /// The smoothed round-trip time; `None` while it is not known, as before the first sample.
    pub srtt: Option<Duration>,
    /// The mean deviation of the round-trip time. With [`Estimator::Linux`], it is the value that the time-out adds to
    /// `srtt`. `None` if `srtt` is `None`.
    ///
    /// [`Estimator::Linux`]: crate::Estimator::Linux
    pub rttvar: Option<Duration>,
    /// The number of sequence numbers that are sent and not acknowledged: data in bytes, and one each for SYN and FIN.
    pub flight: u32,
    /// The window that the peer announced last, in bytes.
    pub window: u32,
    /// The largest payload of a segment to the peer, in bytes, as the path permits now.
    pub mss: u32,
    /// The number of segments sent again, with SYN and FIN, but without window probes.
    pub retransmissions: u64,
    /// The number of times that the retransmission timer expired.
    pub timeouts: u64,
    /// The number of fast retransmits, without those that a partial acknowledgment causes. With per-segment recovery,
    /// the number of recoveries.
    pub fast_retransmits: u64,
    /// The number of probes of a closed window that were sent.
    pub probes: u64,
}
