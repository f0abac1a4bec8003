//! When timers go off: when they are due, or when a host's clock lets them.

use crate::{Ticks, Wheel};
use wire::{Duration, Instant};

/// The clock behind a host's timers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Timing {
    /// Timers go off when they are due.
    Exact,
    /// At the ticks of two clocks, as in 4.4BSD.
    Ticks(Ticks),
    /// At the slots of a wheel, as in Linux.
    Wheel(Wheel),
}

impl Timing {
    /// Where a clock has no phase yet, it is `drawn`.
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

    /// When a timer goes off that is set to `span` from `now`.
    pub(crate) fn after(&self, now: Instant, span: Duration) -> Instant {
        match self {
            Self::Exact => now + span,
            Self::Ticks(ticks) => ticks.slow_after(now, span),
            Self::Wheel(wheel) => wheel.after(now, span),
        }
    }

    /// When an acknowledgment goes that may wait for `span` from `now`.
    pub(crate) fn soon_after(&self, now: Instant, span: Duration) -> Instant {
        match self {
            Self::Exact => now + span,
            Self::Ticks(ticks) => ticks.fast_after(now),
            Self::Wheel(wheel) => wheel.after(now, span),
        }
    }

    /// A time-out as the host counts it: on a wheel, whole ticks.
    pub(crate) fn counted(&self, span: Duration) -> Duration {
        match self {
            Self::Exact | Self::Ticks(_) => span,
            Self::Wheel(wheel) => wheel.counted(span),
        }
    }
}
