//! The wall clock of a host, as NTP timestamps: what Identification fields are compared with.

use wire::{Duration, Instant, WallTime};

/// A host's wall clock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    /// What it says of [`Instant::ZERO`].
    pub(crate) zero: WallTime,
}

impl Clock {
    /// What it says at `at`.
    pub(crate) fn wall(self, at: Instant) -> WallTime {
        self.zero.plus(at.since(Instant::ZERO))
    }

    /// The same in whole seconds since 1970, for an operator.
    pub(crate) fn unix_seconds(self, at: Instant) -> i64 {
        self.wall(at).0 / 1_000_000_000
    }

    /// Sets it forward by an NTP span of 32.32 bits, if that is positive.
    pub(crate) fn advance(&mut self, span: i64) {
        let nanos = (u128::from(span.max(0).unsigned_abs()) * 1_000_000_000) >> 32;
        self.zero = self.zero.plus(Duration::from_nanos(u64::try_from(nanos).unwrap_or(0)));
    }

    /// The same in NTP's format.
    pub(crate) fn ntp(self, at: Instant) -> u64 {
        self.wall(at).to_ntp()
    }
}
