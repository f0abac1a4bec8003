//! Two kinds of time, never mixed: [`Instant`] for everything that is measured or waited for, and [`WallTime`] for
//! times that peers compare over the network.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};
use core::time::Duration;

/// The nanoseconds since the begin of the run. On Linux, `CLOCK_BOOTTIME` counts them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(pub u64);

impl Instant {
    /// The begin of the run.
    pub const ZERO: Self = Self(0);
    /// An instant later than any event. This value means that a timer is not set.
    pub const NEVER: Self = Self(u64::MAX);

    /// Returns the instant `ms` milliseconds after the begin of the run.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }

    /// Returns the time from `earlier` to this instant, or zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Returns the earlier of two instants. An argument of `None` means never. The result is `None` if both arguments
    /// are `None`.
    pub const fn sooner(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(a), Some(b)) => Some(if a.0 <= b.0 { a } else { b }),
            (first, None) | (None, first) => first,
        }
    }

    /// Returns the seconds since the begin of the run, for reports.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(nanos_of(span)))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

impl Sub for Instant {
    type Output = Duration;
    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

/// Subtracts a span. The result is never before the begin of the run.
impl Sub<Duration> for Instant {
    type Output = Self;
    fn sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(nanos_of(span)))
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::NEVER { f.write_str("never") } else { write!(f, "{self}") }
    }
}

/// Returns a span in nanoseconds, limited to `u64::MAX` (584 years).
pub fn nanos_of(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// Nanoseconds since 1970-01-01 UTC, by the host's clock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct WallTime(pub i64);

/// Seconds from the NTP era 0 (1900) to the Unix epoch (RFC 5905, figure 4).
const NTP_TO_UNIX: i64 = 2_208_988_800;

impl WallTime {
    /// Returns the wall time `span` after this one.
    #[must_use]
    pub fn plus(self, span: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)))
    }

    /// Returns the NTP timestamp: seconds in the upper 32 bits, and units of 2^-32 s in the lower 32 bits. The era is
    /// not part of it (RFC 5905, section 6).
    pub fn to_ntp(self) -> u64 {
        let (secs, nanos) = (self.0.div_euclid(1_000_000_000), self.0.rem_euclid(1_000_000_000));
        let fraction = ((nanos.cast_unsigned()) << 32) / 1_000_000_000;
        ((secs + NTP_TO_UNIX).cast_unsigned() << 32) | fraction
    }
}

/// Returns the signed distance `a - b` of two NTP timestamps, in units of 2^-32 s. The result is also correct if an era
/// ends between the two timestamps, as in 2036.
pub const fn ntp_distance(a: u64, b: u64) -> i64 {
    a.wrapping_sub(b).cast_signed()
}

/// Returns a span in NTP units of 2^-32 s.
pub const fn ntp_span(span: Duration) -> i64 {
    ((span.as_secs() << 32) | (((span.subsec_nanos() as u64) << 32) / 1_000_000_000)).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ntp_of_the_unix_epoch_is_the_difference_of_the_eras() {
        assert_eq!(WallTime(0).to_ntp(), 2_208_988_800 << 32);
        assert_eq!(WallTime(500_000_000).to_ntp() & 0xffff_ffff, 0x8000_0000);
    }

    #[test]
    fn distance_survives_the_end_of_an_era() {
        let before = 0xffff_ffff_0000_0000;
        let after = 0x0000_0001_0000_0000;
        assert_eq!(ntp_distance(after, before), 2 << 32);
        assert_eq!(ntp_distance(before, after), -(2 << 32));
    }

    #[test]
    fn an_instant_far_ahead_does_not_wrap() {
        assert_eq!(Instant::NEVER + Duration::from_secs(1), Instant::NEVER);
        assert_eq!(Instant::NEVER - Duration::MAX, Instant::ZERO);
        assert_eq!(Instant::from_millis(5) - Duration::from_millis(2), Instant::from_millis(3));
        assert_eq!(Instant::ZERO.since(Instant::from_millis(1)), Duration::ZERO);
    }
}
