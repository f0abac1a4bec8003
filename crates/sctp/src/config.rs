//! Parameters of an endpoint. Parameters that RFC 9260, section 16, lists have the values of that section as defaults.

use auth::Key;
use wire::{Duration, Rto, RtoBounds};

/// The smallest `a_rwnd` that INIT and INIT ACK may have, in bytes (RFC 9260, section 3.3.2).
pub(crate) const LEAST_WINDOW: u32 = 1500;

/// The parameters of an endpoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// RTO.Initial: the retransmission time-out before a round trip was measured (RFC 9260, section 16).
    pub rto_initial: Duration,
    /// RTO.Min: the least retransmission time-out (RFC 9260, section 16).
    pub rto_min: Duration,
    /// RTO.Max: the largest retransmission time-out (RFC 9260, section 16).
    pub rto_max: Duration,
    /// Max.Burst: the largest number of packets with data that may leave on a path at one instant (RFC 9260, section
    /// 6.1, D).
    pub max_burst: u32,
    /// Valid.Cookie.Life: the largest age of a state cookie that creates an association.
    pub cookie_life: Duration,
    /// Association.Max.Retrans: number of failures in a row, over all paths, that do not end the association. One
    /// more failure ends it.
    pub association_max_retrans: u32,
    /// Path.Max.Retrans: number of failures in a row after which a path is still active. One more failure makes it
    /// inactive.
    pub path_max_retrans: u32,
    /// Max.Init.Retransmits: the largest number of retransmissions of INIT, and of COOKIE ECHO.
    pub max_init_retransmits: u32,
    /// HB.interval: the time between two HEARTBEATs on an idle path, in addition to 0.5 to 1.5 times its RTO.
    pub heartbeat_interval: Duration,
    /// SACK.Delay: the longest time for which a SACK waits for a second packet. RFC 9260, section 6.2, allows at most
    /// 500 ms.
    pub sack_delay: Duration,
    /// Size of the largest IP packet on a path whose MTU is not known, in bytes. Less than 576 counts as 576.
    pub mtu: u16,
    /// Send buffer, in bytes: the limit for data that were written and are not acknowledged.
    pub send_buffer: u32,
    /// Receive buffer, in bytes: the largest window announced. Less than 1500 counts as 1500.
    pub receive_buffer: u32,
    /// Number of streams that this end requests for sending, and the largest number that it accepts for receiving.
    pub streams: u16,
    /// The largest number of addresses that a peer may have. Requests to add more are refused for lack of resources,
    /// and more in INIT are ignored. An address from a directory is tried in addition.
    pub max_addresses: usize,
    /// The largest number of unconfirmed addresses that a peer may add in a minute. Requests to add more are refused
    /// for lack of resources. An address that has answered a probe is not counted, so a peer may move as often as it
    /// needs.
    pub added_per_minute: usize,
    /// The largest number of associations of an endpoint, including ended ones that are not released yet. More are
    /// refused. An association keeps at most `send_buffer` bytes of data to send, at most twice `receive_buffer` bytes
    /// of received data, and `max_addresses` addresses of the peer. If its peer answers, it has no time limit.
    /// If the peer is gone, its association ends after more than `association_max_retrans` time-outs in a row.
    pub max_associations: usize,
    /// Whether to refuse a peer that does not support authenticated address changes.
    pub require_reconfiguration: bool,
    /// Algorithms of AUTH that are offered, the preferred one first. SHA-1 must be among them (RFC 4895, section
    /// 3.3).
    pub hmacs: Vec<Hmac>,
    /// The endpoint pair shared key of both ends, and its identifier, which must not be 0 (RFC 4895, section 6.1).
    /// `None`: the key is empty, so any host that saw the handshake can authenticate chunks. With a key, chunks that
    /// are authenticated by the empty key are refused.
    pub pair_key: Option<(u16, Key)>,
}

/// An HMAC algorithm of AUTH (RFC 4895, section 3.3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Hmac {
    /// HMAC with SHA-1: 20 bytes, identifier 1.
    Sha1,
    /// HMAC with SHA-256: 32 bytes, identifier 3.
    Sha256,
}

impl Hmac {
    /// Returns the identifier of the algorithm on the wire (RFC 4895, section 3.3).
    pub const fn id(self) -> u16 {
        match self {
            Self::Sha1 => 1,
            Self::Sha256 => 3,
        }
    }

    /// Returns the length of the HMAC, in bytes.
    pub(crate) const fn len(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }

    pub(crate) fn of(id: u16) -> Option<Self> {
        [Self::Sha1, Self::Sha256].into_iter().find(|hmac| hmac.id() == id)
    }
}

impl Config {
    /// Returns the sum of all time-outs of INIT to one address (RFC 9260, section 5.1.6). The opening fails after this
    /// time if no INIT is answered, and sooner if the peer has several addresses.
    pub fn opening_patience(&self) -> Duration {
        let rto = Rto::new(self.rto_bounds());
        let waits = (0..=self.max_init_retransmits).map(|doublings| rto.after(doublings));
        waits.fold(Duration::ZERO, Duration::saturating_add)
    }

    /// Returns the first receive window to announce, in bytes. A peer refuses less than 1500 bytes (RFC 9260, section
    /// 3.3.2).
    pub(crate) fn window(&self) -> u32 {
        self.receive_buffer.max(LEAST_WINDOW)
    }

    /// Returns the bounds of a path's RTO. The variance is at least 1 ms (RFC 9260, section 6.3.1, G1): a variance of
    /// zero would make the RTO exactly one round trip.
    pub(crate) const fn rto_bounds(&self) -> RtoBounds {
        RtoBounds {
            initial: self.rto_initial,
            min: self.rto_min,
            max: self.rto_max,
            variances: 4,
            granularity: Duration::ZERO,
            least_variance: Duration::from_millis(1),
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            rto_initial: Duration::from_secs(1),
            rto_min: Duration::from_secs(1),
            rto_max: Duration::from_mins(1),
            max_burst: 4,
            cookie_life: Duration::from_mins(1),
            association_max_retrans: 10,
            path_max_retrans: 5,
            max_init_retransmits: 8,
            heartbeat_interval: Duration::from_secs(30),
            sack_delay: Duration::from_millis(200),
            mtu: 1500,
            send_buffer: 128 * 1024,
            receive_buffer: 128 * 1024,
            streams: 16,
            max_addresses: 16,
            added_per_minute: 10,
            max_associations: 10_000,
            require_reconfiguration: false,
            hmacs: vec![Hmac::Sha256, Hmac::Sha1],
            pair_key: None,
        }
    }
}
