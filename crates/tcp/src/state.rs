//! The state of a connection, as it reports it.

use wire::Duration;

/// The states of RFC 9293, section 3.3.2. LISTEN is not one of them: the caller listens, and makes a connection for
/// each SYN.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum State {
    /// No connection any more.
    Closed,
    /// Our SYN is sent.
    SynSent,
    /// A SYN arrived; ours is not acknowledged.
    SynReceived,
    /// Open: data can flow in both directions.
    Established,
    /// We finished; our FIN is not acknowledged.
    FinWait1,
    /// We finished; the peer may still send.
    FinWait2,
    /// The peer finished; we may still send.
    CloseWait,
    /// Both finished at once; our FIN is not acknowledged.
    Closing,
    /// The peer finished, then we; our FIN is not acknowledged.
    LastAck,
    /// All is acknowledged; old segments die out.
    TimeWait,
}

impl State {
    /// Returns its name in the RFC.
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

    /// Returns whether both sides know each other's initial sequence number.
    pub const fn synchronized(self) -> bool {
        !matches!(self, Self::Closed | Self::SynSent | Self::SynReceived)
    }
}

/// Why a connection is closed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Ended {
    /// Both sides finished.
    Finished,
    /// The peer answered the SYN with a reset.
    Refused,
    /// The peer reset the connection.
    Reset,
    /// Our side aborted the connection.
    Aborted,
    /// The peer did not answer too many retransmissions.
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
    /// The smoothed round-trip time; `None` before the first sample.
    pub srtt: Option<Duration>,
    /// Its mean deviation, or the estimator's equivalent; `None` before the first sample.
    pub rttvar: Option<Duration>,
    /// Bytes of sequence space that are sent and not acknowledged.
    pub flight: u32,
    /// The peer's window, in bytes.
    pub window: u32,
    /// The largest payload that is sent, in bytes.
    pub mss: u32,
    /// Segments that were sent again for any cause, SYN and FIN included, window probes not.
    pub retransmissions: u64,
    /// Time-outs of the retransmission timer.
    pub timeouts: u64,
    /// Fast retransmits, without those of partial acknowledgments.
    pub fast_retransmits: u64,
    /// Probes of a closed window.
    pub probes: u64,
}
