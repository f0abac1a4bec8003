//! The error of a host's wall clock.

use crate::Instant;

/// How a host's wall clock differs from the true time: it may be ahead or behind, and too fast or too slow.
///
/// A node has the wall time at the begin of the run, and no rate. So a drift is emulated: the clock is set by one
/// [`ClockError::STEP`] at regular intervals. The error of this is at most one step.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ClockError {
    /// Nanoseconds by which the clock is ahead at the begin of the run; negative if it is behind.
    pub offset: i64,
    /// How much too fast the clock is, in parts per million: microseconds per second. Negative if it is too slow.
    pub drift: i32,
}

impl ClockError {
    /// The error of a correct clock.
    pub const NONE: Self = Self { offset: 0, drift: 0 };
    /// Nanoseconds of one step of a clock that drifts.
    pub const STEP: i64 = 100_000;

    /// Returns the nanoseconds between two steps; `None` if the clock does not drift.
    fn interval(self) -> Option<u64> {
        (Self::STEP.unsigned_abs() * 1_000_000).checked_div(u64::from(self.drift.unsigned_abs()))
    }

    /// Returns the nanoseconds by which the clock is ahead at `at`; negative if it is behind.
    pub fn ahead(self, at: Instant) -> i64 {
        let steps = self.interval().map_or(0, |interval| at.0 / interval.max(1));
        let drifted = i64::try_from(steps).unwrap_or(i64::MAX).saturating_mul(Self::STEP);
        self.offset.saturating_add(i64::from(self.drift.signum()).saturating_mul(drifted))
    }

    /// Returns the instant of the first step after `at`; [`Instant::NEVER`] if the clock does not drift.
    pub fn next_step(self, at: Instant) -> Instant {
        let next = self.interval().map(|interval| (at.0 / interval.max(1) + 1).saturating_mul(interval));
        next.map_or(Instant::NEVER, Instant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_drifts_by_steps_of_a_tenth_of_a_millisecond() {
        let fast = ClockError { offset: -7, drift: 500 };
        let s = |seconds: u64| Instant(seconds * 1_000_000_000);
        assert_eq!((fast.ahead(s(0)), fast.next_step(s(0))), (-7, Instant(200_000_000)));
        assert_eq!(fast.ahead(Instant(199_999_999)), -7);
        assert_eq!(fast.ahead(Instant(200_000_000)), ClockError::STEP - 7);
        assert_eq!(fast.next_step(Instant(200_000_000)), Instant(400_000_000));
        assert_eq!(fast.ahead(s(3600)), 1_800_000_000 - 7, "500 ppm of an hour are 1.8 s");
        let slow = ClockError { offset: 0, drift: -20 };
        assert_eq!(slow.ahead(s(86_400)), -1_728_000_000, "20 ppm of a day are 1.7 s");
        for at in 0..1000 {
            let at = Instant(at * 77_777_777);
            let exact = -20 * i64::try_from(at.0).unwrap() / 1_000_000;
            assert!((slow.ahead(at) - exact).abs() <= ClockError::STEP, "{at}");
        }
    }

    #[test]
    fn a_clock_without_drift_has_no_step() {
        let late = ClockError { offset: 5_000_000_000, drift: 0 };
        assert_eq!(
            (late.ahead(Instant::NEVER), late.next_step(Instant::ZERO)),
            (5_000_000_000, Instant::NEVER)
        );
        assert_eq!(ClockError { offset: i64::MAX, drift: 9 }.ahead(Instant::NEVER), i64::MAX);
        assert_eq!(ClockError { offset: 0, drift: i32::MIN }.next_step(Instant(50)), Instant(92));
    }
}
