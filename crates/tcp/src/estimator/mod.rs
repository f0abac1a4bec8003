//! How the retransmission time-out is computed from round-trip times: by the RFC, as in 4.4BSD, as in Linux.

mod bsd;
mod linux;

use crate::{Estimator, Profile, Seq};
use bsd::Bsd;
use linux::Linux;
use wire::{Duration, Instant, RoundTripTime, Rto};

/// The minimum time-out after a handshake whose SYN was lost (RFC 6298, 5.7).
const AFTER_LOST_SYN: Duration = Duration::from_secs(3);

/// A measured round trip, and the state of the sender at its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// When the segment that was acknowledged was sent.
    pub(crate) sent: Instant,
    /// When the acknowledgment arrived.
    pub(crate) now: Instant,
    /// The expected number of samples in a round trip (RFC 7323, appendix G).
    pub(crate) samples: u32,
    /// The cumulative acknowledgment.
    pub(crate) una: Seq,
    /// The end of the data sent.
    pub(crate) max: Seq,
}

/// The estimator of a connection, with its state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Clockwork {
    Rfc6298(Rto),
    Bsd(Bsd),
    Linux(Linux),
}

/// The state of an estimator as plain data, to continue the connection at another host.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct RoundTrip {
    /// The smoothed round trip and its variance, as the estimator stores them. `None` before the first sample.
    /// [`Estimator::Bsd`] always has them, with a round trip of zero before the first sample.
    pub smoothed: Option<(Duration, Duration)>,
    /// The time-out without doublings. With [`Estimator::Linux`], only the time-out before the first sample.
    pub base: Duration,
    /// The number of doublings that are in effect.
    pub doublings: u32,
    /// Only [`Estimator::Linux`]: the deviation, its largest value in this window of data, and the end of the window.
    pub window: Option<(Duration, Duration, Seq)>,
}

impl Clockwork {
    pub(crate) fn new(profile: &Profile) -> Self {
        match profile.estimator {
            Estimator::Rfc6298 => Self::Rfc6298(Rto::new(profile.rto_bounds())),
            Estimator::Bsd => Self::Bsd(Bsd::new(profile)),
            Estimator::Linux => Self::Linux(Linux::new(profile)),
        }
    }

    /// Takes a sample, and ends the back-off (Karn's algorithm).
    pub(crate) fn sample(&mut self, sample: Sample) {
        match self {
            Self::Rfc6298(rto) => rto.sample_of(sample.now.since(sample.sent), sample.samples),
            Self::Bsd(bsd) => bsd.sample(sample.sent, sample.now),
            Self::Linux(linux) => linux.sample(&sample),
        }
    }

    /// Doubles the time-out after the timer expired.
    pub(crate) fn back_off(&mut self) {
        match self {
            Self::Rfc6298(rto) => rto.back_off(),
            Self::Bsd(bsd) => bsd.back_off(),
            Self::Linux(linux) => linux.back_off(),
        }
    }

    /// Raises the time-out to at least 3 s after a handshake in which a SYN was lost (RFC 6298, 5.7). 4.4BSD keeps its
    /// time-out.
    pub(crate) fn lost_syn(&mut self) {
        match self {
            Self::Rfc6298(rto) => rto.at_least(AFTER_LOST_SYN),
            Self::Bsd(_) => {}
            Self::Linux(linux) => linux.lost_syn(AFTER_LOST_SYN),
        }
    }

    /// Returns the current time-out, backed off.
    pub(crate) fn current(&self) -> Duration {
        match self {
            Self::Rfc6298(rto) => rto.current(),
            Self::Bsd(bsd) => bsd.current(),
            Self::Linux(linux) => linux.after(linux.doublings),
        }
    }

    /// Returns the time-out with `doublings` doublings.
    pub(crate) fn after(&self, doublings: u32) -> Duration {
        match self {
            Self::Rfc6298(rto) => rto.after(doublings),
            Self::Bsd(bsd) => bsd.after(doublings),
            Self::Linux(linux) => linux.after(doublings),
        }
    }

    /// Returns the smoothed round trip and its variance, as the estimator stores them.
    pub(crate) fn smoothed(&self) -> Option<(Duration, Duration)> {
        match self {
            Self::Rfc6298(rto) => rto.srtt().zip(rto.rttvar()),
            Self::Bsd(bsd) => bsd.smoothed(),
            Self::Linux(linux) => linux.smoothed,
        }
    }

    /// Returns the smoothed round trip and its deviation as RFC 6298 defines them, for a host with any estimator.
    pub(crate) fn measured(&self) -> Option<RoundTripTime> {
        let (smoothed, variation) = match self {
            Self::Linux(linux) => linux.measured()?,
            _ => self.smoothed()?,
        };
        Some(RoundTripTime::new(smoothed, variation))
    }

    /// Starts with the round trip that another host measured, as if it were the first sample, without back-off. `max`
    /// is the end of the data sent.
    pub(crate) fn resume(&mut self, profile: &Profile, from: RoundTripTime, max: Seq) {
        let RoundTripTime { smoothed, variation } = from;
        match self {
            Self::Rfc6298(rto) => *rto = Rto::measured(profile.rto_bounds(), smoothed, variation),
            Self::Bsd(bsd) => bsd.resume(smoothed, variation),
            Self::Linux(linux) => linux.resume(smoothed, variation, max),
        }
    }

    /// Undoes one doubling (RFC 6069, section 4). Returns whether there was a doubling.
    pub(crate) const fn take_back(&mut self) -> bool {
        match self {
            Self::Rfc6298(rto) => rto.take_back(),
            Self::Bsd(_) => false,
            Self::Linux(linux) => linux.take_back(),
        }
    }

    /// Returns the whole state as plain data.
    pub(crate) fn export(&self) -> RoundTrip {
        match self {
            Self::Rfc6298(rto) => {
                let (base, doublings) = rto.backing();
                RoundTrip { smoothed: self.smoothed(), base, doublings, window: None }
            }
            Self::Bsd(bsd) => bsd.export(),
            Self::Linux(linux) => linux.export(),
        }
    }

    /// Returns an estimator with the state of another host. `from` must be of the same kind of estimator.
    pub(crate) fn import(profile: &Profile, from: RoundTrip) -> Self {
        let mut clockwork = Self::new(profile);
        match &mut clockwork {
            Self::Rfc6298(rto) => rto.restore(from.smoothed, from.base, from.doublings),
            Self::Bsd(bsd) => bsd.restore(from),
            Self::Linux(linux) => linux.restore(from),
        }
        clockwork
    }
}
