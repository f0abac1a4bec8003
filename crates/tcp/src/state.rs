//! What a connection tells about itself.

use wire::Duration;

/// The states of RFC 9293, section 3.3.2. LISTEN is the caller's: it makes a connection for each SYN.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum State {
    /// No connection any more.
    Closed,
    /// A SYN is out.
    SynSent,
    /// A SYN came, ours is not acknowledged.
    SynReceived,
    /// Data both ways.
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
    /// Its name in the RFC.
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

    /// Whether both sides know each other's numbers.
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
    /// We did.
    Aborted,
    /// The peer was silent for too many retransmissions.
    TimedOut,
}

/// A look inside, for graphs and reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Info {
    /// Where the connection stands.
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
    /// Its mean deviation, or what its estimator has for that.
    pub rttvar: Option<Duration>,
    /// Sequence numbers sent and not acknowledged.
    pub flight: u32,
    /// The peer's window, in bytes.
    pub window: u32,
    /// Largest payload in force, in bytes.
    pub mss: u32,
    /// Segments sent again, by whatever cause, SYN and FIN included; window probes are not.
    pub retransmissions: u64,
    /// Time-outs of the retransmission timer.
    pub timeouts: u64,
    /// Fast retransmits, without those of partial acknowledgments.
    pub fast_retransmits: u64,
    /// Probes of a closed window.
    pub probes: u64,
}
