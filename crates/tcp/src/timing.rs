//! When timers expire: at their deadline, or at a tick of the host's clock.

use crate::{Ticks, Wheel};
use wire::{Duration, Instant};

/// How a host's timers expire.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Timing {
    /// Timers expire exactly at their deadline.
    Exact,
    /// Timers expire at the ticks of two clocks, as in 4.4BSD.
    Ticks(Ticks),
    /// Timers expire at the slots of a wheel, as in Linux.
    Wheel(Wheel),
}

impl Timing {
    /// Returns the same timing with a phase. If the timing has no phase yet, `drawn` draws one. [`Self::Exact`] has no
    /// phase.
    #[must_use]
    pub fn with_phase(self, drawn: impl FnOnce() -> Duration) -> Self {
        match self {
            Self::Exact => Self::Exact,
            Self::Ticks(ticks) => {
                Self::Ticks(Ticks { phase: Some(ticks.phase.unwrap_or_else(drawn)), ..ticks })
            }
            Self::Wheel(wheel) => {
                Self::Wheel(Wheel { phase: Some(wheel.phase.unwrap_or_else(drawn)), ..wheel })
            }
        }
    }

    /// Returns the expiry of a timer that is set at `now` to `span`.
    pub(crate) fn after(&self, now: Instant, span: Duration) -> Instant {
        match self {
            Self::Exact => now + span,
            Self::Ticks(ticks) => ticks.slow_after(now, span),
            Self::Wheel(wheel) => wheel.after(now, span),
        }
    }

    /// Returns the expiry of a delayed acknowledgment that may wait for `span` from `now`. Ticks do not use `span`.
    pub(crate) fn soon_after(&self, now: Instant, span: Duration) -> Instant {
        match self {
            Self::Exact => now + span,
            Self::Ticks(ticks) => ticks.fast_after(now),
            Self::Wheel(wheel) => wheel.after(now, span),
        }
    }

    /// Returns a time-out as the host counts it: with a wheel, `span` is rounded up to whole ticks.
    pub(crate) fn counted(&self, span: Duration) -> Duration {
        match self {
            Self::Exact | Self::Ticks(_) => span,
            Self::Wheel(wheel) => wheel.counted(span),
        }
    }
}
