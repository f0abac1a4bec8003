//! How the retransmission time-out is computed from round-trip times: as in RFC 6298, as in 4.4BSD, or as in Linux.

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
    /// The smoothed round trip, and its mean deviation. `None` before the first sample, except with [`Estimator::Bsd`].
    ///
    /// [`Estimator::Linux`]: the second value is what the time-out adds to the round trip, at least `rto_min`.
    ///
    /// [`Estimator::Bsd`] stores fractions of a tick, which are exported as durations. It always has both values.
    /// Before the first sample, and after more than 3 time-outs in a row, the round trip is zero. Then the second value
    /// is a quarter of the time-out that the back-off multiplies.
    pub smoothed: Option<(Duration, Duration)>,
    /// The time-out without doublings. [`Estimator::Linux`] uses it only until the first sample.
    pub base: Duration,
    /// The number of doublings that are in effect.
    pub doublings: u32,
    /// [`Estimator::Linux`]: four times the mean deviation, the maximum of this value in the current window of data,
    /// and the sequence number that ends the window. All are zero before the first sample. `None` with the other
    /// estimators.
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

    /// Backs off the time-out after the timer expired (RFC 6298, 5.5).
    pub(crate) fn back_off(&mut self) {
        match self {
            Self::Rfc6298(rto) => rto.back_off(),
            Self::Bsd(bsd) => bsd.back_off(),
            Self::Linux(linux) => linux.back_off(),
        }
    }

    /// Raises the time-out to at least 3 s, but not above the maximum, and ends the back-off, after a handshake in
    /// which a SYN was lost (RFC 6298, 5.7). [`Estimator::Bsd`] keeps its time-out and its back-off.
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

    /// Returns the time-out with `doublings` doublings, at most the maximum time-out.
    pub(crate) fn after(&self, doublings: u32) -> Duration {
        match self {
            Self::Rfc6298(rto) => rto.after(doublings),
            Self::Bsd(bsd) => bsd.after(doublings),
            Self::Linux(linux) => linux.after(doublings),
        }
    }

    /// Returns the smoothed round trip and its mean deviation; with [`Estimator::Linux`], the second value is what the
    /// time-out adds to the round trip. Returns `None` while no round trip is known.
    pub(crate) fn smoothed(&self) -> Option<(Duration, Duration)> {
        match self {
            Self::Rfc6298(rto) => rto.srtt().zip(rto.rttvar()),
            Self::Bsd(bsd) => bsd.smoothed(),
            Self::Linux(linux) => linux.smoothed,
        }
    }

    /// Returns the smoothed round trip and its deviation as RFC 6298 defines them, for a host with any estimator.
    /// Returns `None` while no round trip is known.
    pub(crate) fn measured(&self) -> Option<RoundTripTime> {
        let (smoothed, variation) = match self {
            Self::Linux(linux) => linux.measured()?,
            _ => self.smoothed()?,
        };
        Some(RoundTripTime::new(smoothed, variation))
    }

    /// Starts a new estimator with the round trip and the deviation that another host measured. `max` is the end of the
    /// data sent.
    pub(crate) fn resume(&mut self, profile: &Profile, from: RoundTripTime, max: Seq) {
        let RoundTripTime { smoothed, variation } = from;
        match self {
            Self::Rfc6298(rto) => *rto = Rto::measured(profile.rto_bounds(), smoothed, variation),
            Self::Bsd(bsd) => bsd.resume(smoothed, variation),
            Self::Linux(linux) => linux.resume(smoothed, variation, max),
        }
    }

    /// Undoes one doubling (RFC 6069, section 4). Returns whether there was a doubling. [`Estimator::Bsd`] undoes none.
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
