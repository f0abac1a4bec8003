//! When timers expire: at their deadline, or at a tick of the host's clock.

use crate::{Ticks, Wheel};
use wire::{Duration, Instant};

/// The clock behind a host's timers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Timing {
    /// Timers expire exactly at their deadline.
    Exact,
    /// At the ticks of two clocks, as in 4.4BSD.
    Ticks(Ticks),
    /// At the slots of a wheel, as in Linux.
    Wheel(Wheel),
}

impl Timing {
    /// Returns the same clock with the phase `drawn`, unless it has a phase.
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

    /// The expiry of a timer that is set to `span` from `now`.
    pub(crate) fn after(&self, now: Instant, span: Duration) -> Instant {
        match self {
            Self::Exact => now + span,
            Self::Ticks(ticks) => ticks.slow_after(now, span),
            Self::Wheel(wheel) => wheel.after(now, span),
        }
    }

    /// The expiry of a delayed acknowledgment that may wait for `span` from `now`.
    pub(crate) fn soon_after(&self, now: Instant, span: Duration) -> Instant {
        match self {
            Self::Exact => now + span,
            Self::Ticks(ticks) => ticks.fast_after(now),
            Self::Wheel(wheel) => wheel.after(now, span),
        }
    }

    /// A time-out as the host counts it: whole ticks with a wheel.
    pub(crate) fn counted(&self, span: Duration) -> Duration {
        match self {
            Self::Exact | Self::Ticks(_) => span,
            Self::Wheel(wheel) => wheel.counted(span),
        }
    }
}
