//! The knobs of an endpoint. The defaults are those of RFC 9260, section 16.

use crate::handshake::LEAST_WINDOW;
use auth::Key;
use wire::{Duration, Rto, RtoBounds};

/// How an endpoint behaves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// RTO.Initial: the time-out before there is a sample.
    pub rto_initial: Duration,
    /// RTO.Min.
    pub rto_min: Duration,
    /// RTO.Max.
    pub rto_max: Duration,
    /// Max.Burst: packets with new data that may leave at one instant, for each path.
    pub max_burst: u32,
    /// Valid.Cookie.Life: how long a listening endpoint honours its cookie.
    pub cookie_life: Duration,
    /// Association.Max.Retrans: failures in a row, over all paths, that are survived.
    pub association_max_retrans: u32,
    /// Path.Max.Retrans: failures in a row of one path after which it still counts as active.
    pub path_max_retrans: u32,
    /// Max.Init.Retransmits: INITs and COOKIE ECHOs that are sent again.
    pub max_init_retransmits: u32,
    /// HB.interval: what is added to the time-out between two heartbeats on an idle path.
    pub heartbeat_interval: Duration,
    /// How long an acknowledgment may wait for a second packet: at most 500 ms (section 6.2).
    pub sack_delay: Duration,
    /// Bytes of the largest IP packet on a path of which nothing else is known.
    pub mtu: u16,
    /// Bytes of the user that may wait to be acknowledged, or to be sent.
    pub send_buffer: u32,
    /// Bytes that may wait to be read: the largest window announced. Less than 1500 counts as 1500.
    pub receive_buffer: u32,
    /// How many streams are asked for, and taken, each way.
    pub streams: u16,
    /// How many addresses a peer may have; more are refused for lack of resources. One more is tried if a directory gives it.
    pub max_addresses: usize,
    /// How many addresses that it has not proved to be its own a peer may add in a minute; more are refused likewise. One that
    /// answers a probe does not count, so a peer may move as often as it likes.
    pub added_per_minute: usize,
    /// How many associations an endpoint has at most, with those that are over and not released yet; more peers are refused. Each
    /// keeps at most `send_buffer` and about `receive_buffer` bytes of data, and `max_addresses` addresses of the peer. There is no limit
    /// of time for one whose peer answers; one whose peer is gone ends after `association_max_retrans` time-outs.
    pub max_associations: usize,
    /// Whether a peer that cannot change addresses, or not authenticated, is not wanted at all.
    pub require_reconfiguration: bool,
    /// Algorithms of AUTH that are offered, the preferred first. SHA-1 must be among them (RFC 4895, section 3.3).
    pub hmacs: Vec<Hmac>,
    /// A key that both ends have, and its number, which is not 0 (RFC 4895, section 6.1). With one, chunks under the
    /// empty key are not believed: whoever saw the handshake could make them.
    pub pair_key: Option<(u16, Key)>,
}

/// An algorithm of AUTH.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Hmac {
    /// 20 bytes, identifier 1.
    Sha1,
    /// 32 bytes, identifier 3.
    Sha256,
}

impl Hmac {
    /// The identifier on the wire (RFC 4895, section 3.3).
    pub const fn id(self) -> u16 {
        match self {
            Self::Sha1 => 1,
            Self::Sha256 => 3,
        }
    }

    /// Bytes of a code.
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
    /// Returns the time from the first INIT until the association is given up (RFC 9260, section 5.1): the sum of all
    /// time-outs.
    pub fn opening_patience(&self) -> Duration {
        let rto = Rto::new(self.rto_bounds());
        let waits = (0..=self.max_init_retransmits).map(|doublings| rto.after(doublings));
        waits.fold(Duration::ZERO, Duration::saturating_add)
    }

    /// The first window that is announced, for which there is room: a peer refuses less than 1500 bytes (RFC 9260, section 3.3.2).
    pub(crate) fn window(&self) -> u32 {
        self.receive_buffer.max(LEAST_WINDOW)
    }

    /// What a path's time-out stays within. G1: a variance of zero would be a time-out of exactly one round trip.
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
