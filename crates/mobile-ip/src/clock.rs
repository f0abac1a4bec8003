//! The wall clock of a host, as NTP timestamps: what Identification fields are compared with.

use wire::{Instant, WallTime};

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

    /// The same in NTP's format.
    pub(crate) fn ntp(self, at: Instant) -> u64 {
        self.wall(at).to_ntp()
    }
}
