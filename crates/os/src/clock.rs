//! Reads the clocks of the machine. No other module of the product reads a clock.
//!
//! Runs are measured on `CLOCK_BOOTTIME`: it never steps, includes the time in suspend, and is the same for every
//! process of a lab. The kernel stamps received frames on `CLOCK_REALTIME`, which may step; [`Offset`] converts between
//! them.

use rustix::time::{ClockId, Timespec, clock_gettime};
use wire::{Duration, Instant, WallTime};

/// The clock of a run: converts `CLOCK_BOOTTIME` to [`Instant`]s since the run's begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Clock {
    /// The run's begin, in nanoseconds of `CLOCK_BOOTTIME`. All processes of a lab have the same value.
    pub t0: u64,
}

impl Clock {
    /// Returns a clock whose run begins now.
    pub fn start() -> Self {
        Self { t0: boottime() }
    }

    /// Returns the clock of a run that has no begin yet. [`Clock::now`] then returns zero.
    pub const fn pending() -> Self {
        Self { t0: u64::MAX }
    }

    /// Returns the time since the run's begin; zero before it.
    pub fn now(self) -> Instant {
        self.at(boottime())
    }

    /// Returns the machine's wall-clock time (`CLOCK_REALTIME`).
    pub fn wall() -> WallTime {
        WallTime(nanos(clock_gettime(ClockId::Realtime)))
    }

    /// Returns the instant of a wall-clock `stamp`, such as the kernel's receive stamp; zero if it is before the
    /// run's begin.
    pub fn instant(self, stamp: WallTime, offset: Offset) -> Instant {
        self.at(u64::try_from(stamp.0.saturating_sub(offset.nanos)).unwrap_or(0))
    }

    /// Returns whether the run has begun. A lab sets the begin slightly in the future, so that all daemons start
    /// together.
    pub fn has_begun(self) -> bool {
        boottime() >= self.t0
    }

    /// Returns the clock of a run that begins when the time `by` has passed from now.
    pub fn ahead(by: wire::Duration) -> Self {
        Self { t0: boottime().saturating_add(wire::nanos_of(by)) }
    }

    /// Returns the wall-clock time at the run's begin.
    pub fn wall_at_zero(self, offset: Offset) -> WallTime {
        WallTime(i64::try_from(self.t0).unwrap_or(i64::MAX).saturating_add(offset.nanos))
    }

    /// Returns `at` in nanoseconds of `CLOCK_BOOTTIME`, for arming timers.
    pub(crate) const fn boottime_at(self, at: Instant) -> u64 {
        self.t0.saturating_add(at.0)
    }

    const fn at(self, boottime: u64) -> Instant {
        Instant(boottime.saturating_sub(self.t0))
    }
}

/// How far `CLOCK_REALTIME` is ahead of `CLOCK_BOOTTIME`.
///
/// Both clocks run at the same rate, since NTP slews them alike. So the offset changes only when the time of day is
/// set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Offset {
    /// `CLOCK_REALTIME - CLOCK_BOOTTIME`, in nanoseconds.
    pub nanos: i64,
    /// The time between two readings of `CLOCK_BOOTTIME`: one before and one after the reading of `CLOCK_REALTIME`. The
    /// error of `nanos` is at most half of this time.
    pub bracket: Duration,
}

/// Number of samples that [`Offset::sample`] takes. It keeps the sample with the smallest `bracket`.
const SAMPLES: usize = 16;
/// If the offset changes by more than this number of nanoseconds, the wall clock was set. Errors of samples are
/// smaller.
const STEP: u64 = 1_000_000;

impl Offset {
    /// Measures the offset. The measurement takes a few microseconds.
    pub fn sample() -> Self {
        let mut best = Self::bracketed();
        for _ in 1..SAMPLES {
            let next = Self::bracketed();
            if next.bracket < best.bracket {
                best = next;
            }
        }
        best
    }

    /// Returns whether the wall clock was set by more than 1 ms between `earlier` and this sample. Wall-clock stamps
    /// between the two samples are then not reliable.
    pub const fn stepped_since(self, earlier: Self) -> bool {
        self.nanos.abs_diff(earlier.nanos) > STEP
    }

    fn bracketed() -> Self {
        let before = boottime();
        let wall = Clock::wall().0;
        let after = boottime();
        let middle = before.midpoint(after).cast_signed();
        Self {
            nanos: wall.saturating_sub(middle),
            bracket: Duration::from_nanos(after.saturating_sub(before)),
        }
    }
}

fn boottime() -> u64 {
    nanos(clock_gettime(ClockId::Boottime)).cast_unsigned()
}

/// Converts a `timespec` to nanoseconds. For a time since 1970, the result is exact until the year 2262.
pub(crate) const fn nanos(time: Timespec) -> i64 {
    time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_runs_from_zero_and_never_back() {
        let clock = Clock::start();
        let mut last = clock.now();
        assert!(last < Instant::from_millis(1000));
        for _ in 0..1000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    fn the_time_of_a_run_without_a_begin_is_zero() {
        let clock = Clock::pending();
        assert_eq!(clock.now(), Instant::ZERO);
        assert!(!clock.has_begun());
    }

    #[test]
    fn a_wall_stamp_taken_now_is_the_instant_now() {
        let clock = Clock::start();
        let offset = Offset::sample();
        assert!(offset.bracket < Duration::from_millis(1), "{offset:?}");
        let before = clock.now();
        let stamp = clock.instant(Clock::wall(), offset);
        let after = clock.now();
        assert!(
            stamp + offset.bracket >= before && stamp <= after + offset.bracket,
            "{before} {stamp} {after}"
        );
    }

    #[test]
    fn a_set_wall_clock_is_noticed_and_noise_is_not() {
        let first = Offset::sample();
        assert!(!Offset::sample().stepped_since(first));
        let set = Offset { nanos: first.nanos - 2_000_000, ..first };
        assert!(set.stepped_since(first) && first.stepped_since(set));
    }

    #[test]
    fn a_stamp_before_the_run_is_its_begin() {
        let clock = Clock { t0: 5_000 };
        let offset = Offset { nanos: 1_000, bracket: Duration::ZERO };
        assert_eq!(clock.instant(WallTime(5_999), offset), Instant::ZERO);
        assert_eq!(clock.instant(WallTime(6_007), offset), Instant(7));
        assert_eq!(clock.instant(WallTime(i64::MIN), offset), Instant::ZERO);
    }
}
