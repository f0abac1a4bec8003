//! A host's wall clock, and its NTP timestamps for Identification fields (RFC 5944, section 5.7.1).

use wire::{Duration, Instant, WallTime};

/// A host's wall clock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    /// The wall time at [`Instant::ZERO`].
    pub(crate) zero: WallTime,
}

impl Clock {
    /// Returns the wall time at `at`.
    pub(crate) fn wall(self, at: Instant) -> WallTime {
        self.zero.plus(at.since(Instant::ZERO))
    }

    /// Returns the wall time at `at` in whole seconds since 1970.
    pub(crate) fn unix_seconds(self, at: Instant) -> i64 {
        self.wall(at).0 / 1_000_000_000
    }

    /// Sets the clock forward by `span`, in units of 2^-32 s; does nothing if `span` is negative.
    pub(crate) fn advance(&mut self, span: i64) {
        let nanos = (u128::from(span.max(0).unsigned_abs()) * 1_000_000_000) >> 32;
        self.zero = self.zero.plus(Duration::from_nanos(u64::try_from(nanos).unwrap_or(0)));
    }

    /// Returns the wall time at `at` as an NTP timestamp of 32.32 bits.
    pub(crate) fn ntp(self, at: Instant) -> u64 {
        self.wall(at).to_ntp()
    }
}
