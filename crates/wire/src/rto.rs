//! The retransmission time-out of TCP and SCTP. Both use Jacobson's estimator (RFC 6298, section 2; RFC 9260, section
//! 6.3.1).

use core::time::Duration;

/// The largest number of doublings. 16 doublings are a factor of 65,536.
const MAX_SHIFT: u32 = 16;

/// The parameters of an [`Rto`], in which TCP and SCTP differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RtoBounds {
    /// The time-out before the first sample (RFC 6298, rule 2.1; RFC 9260, rule C1).
    pub initial: Duration,
    /// The smallest time-out after a sample (RFC 6298, rule 2.4; RFC 9260, rule C6).
    pub min: Duration,
    /// The largest time-out, backed off or not (RFC 6298, rule 2.5; RFC 9260, rule C7). A value below `min` counts as
    /// `min`.
    pub max: Duration,
    /// The factor K of `RTTVAR` in the time-out. The factor is 4 in RFC 6298, rule 2.2.
    pub variances: u32,
    /// The clock granularity G: the smallest value of K times `RTTVAR` in the time-out (RFC 6298, rule 2.3).
    pub granularity: Duration,
    /// The smallest value of `RTTVAR` (RFC 9260, section 6.3.1, rule G1). The value is zero for RFC 6298.
    pub least_variance: Duration,
}

/// The retransmission time-out of one path, estimated from round-trip times. The caller must not pass the round-trip
/// time of retransmitted data, unless timestamps show which transmission was acknowledged (Karn's algorithm: RFC 6298,
/// section 3; RFC 9260, rule C5).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rto {
    smoothed: Option<(Duration, Duration)>,
    base: Duration,
    shift: u32,
    bounds: RtoBounds,
}

impl Rto {
    /// Returns an estimator without a sample.
    pub fn new(bounds: RtoBounds) -> Self {
        let bounds = RtoBounds { max: bounds.max.max(bounds.min), ..bounds };
        Self { smoothed: None, base: bounds.initial.min(bounds.max), shift: 0, bounds }
    }

    /// Returns an estimator that begins with the `SRTT` and `RTTVAR` that another host measured. The time-out is
    /// computed from these two values (RFC 6298, rule 2.3).
    pub fn measured(bounds: RtoBounds, srtt: Duration, rttvar: Duration) -> Self {
        let mut rto = Self::new(bounds);
        rto.keep(srtt, rttvar);
        rto
    }

    /// Undoes the last doubling of the time-out (RFC 6069, section 4). Returns whether there was a doubling to undo.
    pub const fn take_back(&mut self) -> bool {
        let any = self.shift > 0;
        self.shift = self.shift.saturating_sub(1);
        any
    }

    /// Takes a measured round-trip time, and ends the back-off (RFC 6298, rules 2.2 and 2.3 and the end of section 5;
    /// RFC 9260, rules C2 and C3).
    pub fn sample(&mut self, rtt: Duration) {
        self.sample_of(rtt, 1);
    }

    /// Takes one of `samples` samples of the same round trip, and ends the back-off. Each sample but the estimator's
    /// first has 1/`samples` of the usual weight (RFC 7323, appendix G).
    pub fn sample_of(&mut self, rtt: Duration, samples: u32) {
        let (srtt, rttvar) = match self.smoothed {
            None => (rtt, rtt / 2),
            Some((srtt, rttvar)) => {
                let (eighth, quarter) = (samples.max(1).saturating_mul(8), samples.max(1).saturating_mul(4));
                (mean(srtt, rtt, eighth), mean(rttvar, srtt.abs_diff(rtt), quarter))
            }
        };
        self.keep(srtt, rttvar);
        self.shift = 0;
    }

    fn keep(&mut self, srtt: Duration, rttvar: Duration) {
        let RtoBounds { min, max, variances, granularity, least_variance, .. } = self.bounds;
        let rttvar = rttvar.max(least_variance);
        self.smoothed = Some((srtt, rttvar));
        self.base = (srtt + granularity.max(rttvar.saturating_mul(variances))).clamp(min, max);
    }

    /// Continues from the state of another estimator. `smoothed` is the `SRTT` and `RTTVAR` of the other estimator, or
    /// `None` before the first sample. `base` is the time-out of the other estimator without doublings. The function
    /// limits `base` to the maximum, and `doublings` to 16.
    pub fn restore(&mut self, smoothed: Option<(Duration, Duration)>, base: Duration, doublings: u32) {
        self.smoothed = smoothed;
        self.base = base.min(self.bounds.max);
        self.shift = doublings.min(MAX_SHIFT);
    }

    /// Doubles the time-out, at most to its maximum (RFC 6298, rule 5.5; RFC 9260, section 6.3.3, rule E2).
    pub fn back_off(&mut self) {
        self.shift = (self.shift + 1).min(MAX_SHIFT);
    }

    /// Raises the number of doublings to at least `doublings`, for example to keep the back-off after a change of the
    /// route.
    pub fn back_off_to(&mut self, doublings: u32) {
        self.shift = self.shift.max(doublings.min(MAX_SHIFT));
    }

    /// Raises the time-out without doublings to at least `base`, and ends the back-off. TCP needs this function after
    /// the time-out of a SYN, because the handshake then gives no sample (RFC 6298, rule 5.7).
    pub fn at_least(&mut self, base: Duration) {
        self.base = self.base.max(base).min(self.bounds.max);
        self.shift = 0;
    }

    /// Returns the time-out with all doublings, at most the maximum.
    pub fn current(&self) -> Duration {
        self.after(self.shift)
    }

    /// Returns the time-out after `doublings` doublings, at most the maximum.
    pub fn after(&self, doublings: u32) -> Duration {
        self.base.saturating_mul(1 << doublings.min(MAX_SHIFT)).min(self.bounds.max)
    }

    /// Returns the smoothed round-trip time, or `None` before the first sample.
    pub fn srtt(&self) -> Option<Duration> {
        self.smoothed.map(|(srtt, _)| srtt)
    }

    /// Returns the mean deviation of the round-trip time, or `None` before the first sample.
    pub fn rttvar(&self) -> Option<Duration> {
        self.smoothed.map(|(_, rttvar)| rttvar)
    }

    /// Returns the time-out without doublings, and the number of doublings.
    pub const fn backing(&self) -> (Duration, u32) {
        (self.base, self.shift)
    }
}

/// Returns `old`, moved by 1/`parts` of the distance to `new`.
fn mean(old: Duration, new: Duration, parts: u32) -> Duration {
    (old.saturating_mul(parts - 1).saturating_add(new)) / parts
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    const TCP: RtoBounds = RtoBounds {
        initial: ms(1000),
        min: ms(10),
        max: ms(60_000),
        variances: 4,
        granularity: ms(1),
        least_variance: Duration::ZERO,
    };
    const SCTP: RtoBounds = RtoBounds { granularity: Duration::ZERO, least_variance: ms(1), ..TCP };

    #[test]
    fn the_first_sample_and_the_second() {
        for bounds in [TCP, SCTP] {
            let mut rto = Rto::new(bounds);
            assert_eq!((rto.current(), rto.srtt()), (ms(1000), None));
            rto.sample(ms(100));
            assert_eq!((rto.current(), rto.srtt()), (ms(300), Some(ms(100)))); // 100 + 4 * 50
            rto.sample(ms(180));
            // RTTVAR = 3/4 * 50 + 1/4 * 80 = 57.5, SRTT = 7/8 * 100 + 1/8 * 180 = 110
            assert_eq!((rto.current(), rto.srtt()), (ms(340), Some(ms(110))));
        }
    }

    #[test]
    fn backing_off_doubles_up_to_the_maximum_and_ends_with_a_sample() {
        let mut rto = Rto::new(TCP);
        let seen = [(); 8].map(|()| (rto.current().as_secs(), rto.back_off()).0);
        assert_eq!(seen, [1, 2, 4, 8, 16, 32, 60, 60]);
        rto.sample(ms(100));
        assert_eq!(rto.current(), ms(300));
    }

    #[test]
    fn the_floor_and_what_a_steady_path_comes_to() {
        let mut floor = Rto::new(RtoBounds { min: ms(1000), ..TCP });
        floor.sample(ms(1));
        assert_eq!(floor.current(), ms(1000));
        // On a steady path, RFC 6298 adds one clock tick to the round trip. RFC 9260 adds four times an `RTTVAR` of one
        // tick.
        for (bounds, expected) in [(TCP, 101), (SCTP, 104)] {
            let mut steady = Rto::new(bounds);
            (0..100).for_each(|_| steady.sample(ms(100)));
            assert_eq!(steady.current(), ms(expected));
        }
    }

    #[test]
    fn a_handshake_without_a_sample_is_careful() {
        let mut rto = Rto::new(TCP);
        rto.back_off();
        rto.at_least(ms(3000));
        assert_eq!(rto.current(), ms(3000));
    }

    /// Four samples of one round trip weigh about as much as one sample (RFC 7323, appendix G).
    #[test]
    fn samples_that_share_a_round_trip_weigh_less() {
        let (mut one, mut four) = (Rto::new(TCP), Rto::new(TCP));
        one.sample(ms(100));
        four.sample(ms(100));
        one.sample(ms(200));
        (0..4).for_each(|_| four.sample_of(ms(200), 4));
        let (one, four) = (one.srtt().unwrap(), four.srtt().unwrap());
        assert!(one.abs_diff(four) < ms(1), "{one:?} {four:?}");
    }

    #[test]
    fn what_was_found_out_is_taken_over() {
        let mut rto = Rto::new(TCP);
        rto.sample(ms(100));
        rto.back_off();
        let mut moved = Rto::new(TCP);
        let (base, doublings) = rto.backing();
        moved.restore(rto.srtt().zip(rto.rttvar()), base, doublings);
        assert_eq!(moved, rto);
    }
}
