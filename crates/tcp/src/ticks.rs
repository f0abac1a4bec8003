//! The two timer clocks of 4.4BSD.

use wire::{Duration, Instant, nanos_of};

/// The clocks of a host whose timers count ticks (4.4BSD: `tcp_slowtimo`, `tcp_fasttimo`). A timer of *n* slow ticks
/// expires at the *n*-th slow tick from now. So it waits for more than *n* - 1 and at most *n* tick intervals.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ticks {
    /// The tick interval of all timers except that of delayed acknowledgments. [`Estimator::Bsd`] measures in this
    /// unit.
    ///
    /// [`Estimator::Bsd`]: crate::Estimator::Bsd
    pub slow: Duration,
    /// The tick interval of delayed acknowledgments. A delayed acknowledgment is sent at the next of these ticks, so it
    /// waits for at most this time.
    pub fast: Duration,
    /// A time of the run at which both clocks tick, modulo their intervals. `None` counts as zero in this crate. The
    /// host's stack replaces `None` with a random time. Ticks that all hosts share, or that are in step with periodic
    /// moves, would be an artefact of the measurement.
    pub phase: Option<Duration>,
}

impl Ticks {
    /// The clocks of 4.4BSD (`PR_SLOWHZ`, `PR_FASTHZ`): 500 ms and 200 ms. The host's stack draws the phase.
    pub const BSD: Self =
        Self { slow: Duration::from_millis(500), fast: Duration::from_millis(200), phase: None };

    /// Returns the number of slow ticks from the start of the run to `at`, both included. The first tick of the run has
    /// number 1.
    pub(crate) fn count(&self, at: Instant) -> u64 {
        self.shifted(at, self.slow) / nanos(self.slow)
    }

    /// Returns the slow tick at which a timer of `span` expires that is set at `now`.
    pub(crate) fn slow_after(&self, now: Instant, span: Duration) -> Instant {
        let ticks = (nanos_of(span) / nanos(self.slow)).max(1);
        self.tick(self.count(now).saturating_add(ticks), self.slow)
    }

    /// Returns the next fast tick after `now`.
    pub(crate) fn fast_after(&self, now: Instant) -> Instant {
        self.tick(self.shifted(now, self.fast) / nanos(self.fast) + 1, self.fast)
    }

    /// Returns the nanoseconds from the last tick before the run to `at`.
    fn shifted(&self, at: Instant, tick: Duration) -> u64 {
        at.0.saturating_add(nanos(tick) - self.offset(tick))
    }

    fn tick(&self, number: u64, tick: Duration) -> Instant {
        let shifted = number.checked_mul(nanos(tick));
        shifted
            .map_or(Instant::NEVER, |shifted| Instant(shifted - shifted.min(nanos(tick) - self.offset(tick))))
    }

    fn offset(&self, tick: Duration) -> u64 {
        nanos_of(self.phase.unwrap_or_default()) % nanos(tick)
    }
}

/// Returns an interval in nanoseconds, at least 1, because callers divide by it.
fn nanos(tick: Duration) -> u64 {
    nanos_of(tick).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn spans_end_with_a_tick() {
        let ticks = Ticks::BSD;
        let after = |at, span| ticks.slow_after(Instant::from_millis(at), ms(span)).0 / 1_000_000;
        assert_eq!(
            [after(0, 1000), after(1, 1000), after(499, 1000), after(500, 1000)],
            [1000, 1000, 1000, 1500]
        );
        assert_eq!(
            [after(0, 1), after(0, 1499)],
            [500, 1000],
            "a span is a whole number of ticks, one at least"
        );
        let fast = |at| ticks.fast_after(Instant::from_millis(at)).0 / 1_000_000;
        assert_eq!([fast(0), fast(199), fast(200)], [200, 200, 400]);
    }

    #[test]
    fn each_host_has_its_phase() {
        let ticks = Ticks { phase: Some(ms(130)), ..Ticks::BSD };
        let after = |at, span| ticks.slow_after(Instant::from_millis(at), ms(span)).0 / 1_000_000;
        assert_eq!(
            [after(0, 500), after(129, 500), after(130, 500), after(700, 1000)],
            [130, 130, 630, 1630]
        );
        assert_eq!(ticks.fast_after(Instant::from_millis(131)), Instant::from_millis(330));
        let between =
            |from, to| ticks.count(Instant::from_millis(to)) - ticks.count(Instant::from_millis(from));
        assert_eq!([between(131, 629), between(129, 131), between(0, 2000)], [0, 1, 4]);
    }

    #[test]
    fn nothing_overflows() {
        let ticks = Ticks { slow: Duration::ZERO, fast: Duration::MAX, phase: Some(Duration::MAX) };
        assert!(
            ticks.slow_after(Instant::NEVER, Duration::MAX)
                >= ticks.slow_after(Instant::ZERO, Duration::ZERO)
        );
        assert_eq!(ticks.fast_after(Instant::NEVER), Instant::NEVER);
    }
}
