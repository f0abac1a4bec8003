//! Linux's timer wheel (`kernel/time/timer.c`). It counts ticks. A timer expires at the begin of a slot, and timers
//! that are due later have longer slots.

use wire::{Duration, Instant, nanos_of};

/// `LVL_CLK_SHIFT`: a slot is as long as eight slots of the level below.
const LEVEL_SHIFT: u32 = 3;
/// `LVL_START(1)`: timers that are due in 63 ticks or later go to the second level. Timers that are due in 504 ticks or
/// later go to the third.
const FIRST_LEVEL: u64 = 63;
/// The highest level in use, for timers that are due in 1032 s or later. A slot of this level lasts 131 s. Both times
/// are for a tick of 4 ms.
const LAST_LEVEL: u32 = 5;
/// The period of the wheel in ticks. After this period, the slots of all levels begin together again.
const TURN: u64 = 1 << (LAST_LEVEL * LEVEL_SHIFT);

/// The clock of a host whose timers wait for slots of a wheel. A timer never expires early. It expires late by less
/// than a slot and a tick. A slot is one tick for timers due in less than 63 ticks, eight ticks below 504, and so on.
/// Slots begin at multiples of their length, counted from `phase`; in Linux, from the host's boot. So each host has a
/// separate phase.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Wheel {
    /// The time between two ticks: the unit of all timers (`jiffies`).
    pub tick: Duration,
    /// A time of the run at which the slots of all levels begin together. `None` counts as zero in this crate. The
    /// host's stack replaces `None` with a random time.
    pub phase: Option<Duration>,
}

impl Wheel {
    /// Linux with 250 ticks a second (`CONFIG_HZ`), as in common distributions. The host's stack draws the phase.
    pub const LINUX: Self = Self { tick: Duration::from_millis(4), phase: None };

    /// Returns the period of the wheel, after which the slots of all levels begin together again. `phase` counts modulo
    /// this period.
    pub fn turn(&self) -> Duration {
        Duration::from_nanos(self.nanos().saturating_mul(TURN))
    }

    /// Returns `span`, rounded up to whole ticks (`usecs_to_jiffies`).
    pub(crate) fn counted(&self, span: Duration) -> Duration {
        Duration::from_nanos(self.ticks(span).saturating_mul(self.nanos()))
    }

    /// Returns the begin of the slot after the one in which a timer of `span`, set at `now`, is due
    /// (`calc_wheel_index`).
    pub(crate) fn after(&self, now: Instant, span: Duration) -> Instant {
        let ahead = self.ticks(span);
        let level = (0..LAST_LEVEL).find(|level| ahead < FIRST_LEVEL << (level * LEVEL_SHIFT));
        let shift = level.unwrap_or(LAST_LEVEL) * LEVEL_SHIFT;
        let early = self.early();
        let due = (now.0.saturating_add(early) / self.nanos()).saturating_add(ahead);
        let slot =
            ((due >> shift) + 1).checked_mul(1 << shift).and_then(|tick| tick.checked_mul(self.nanos()));
        slot.map_or(Instant::NEVER, |at| Instant(at.saturating_sub(early)))
    }

    fn ticks(&self, span: Duration) -> u64 {
        nanos_of(span).div_ceil(self.nanos())
    }

    /// Returns the nanoseconds from the begin of the last period before the run to the begin of the run.
    fn early(&self) -> u64 {
        let turn = nanos_of(self.turn());
        turn - nanos_of(self.phase.unwrap_or_default()) % turn
    }

    /// Returns the tick in nanoseconds, at least 1, because callers divide by it.
    fn nanos(&self) -> u64 {
        nanos_of(self.tick).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Returns the expiry in milliseconds, on a wheel whose slots begin together at `phase`.
    fn after(phase: u64, at: u64, span: u64) -> u64 {
        let wheel = Wheel { phase: Some(ms(phase)), ..Wheel::LINUX };
        wheel.after(Instant::from_millis(at), ms(span)).0 / 1_000_000
    }

    /// The slots are those of the table for HZ 250 in `kernel/time/timer.c`: 4 ms up to 252 ms ahead, 32 ms up to 2 s,
    /// 256 ms up to 16 s, 2048 ms up to 129 s.
    #[test]
    fn the_farther_ahead_the_coarser() {
        assert_eq!([after(0, 0, 40), after(0, 3, 40), after(0, 4, 40), after(0, 0, 248)], [44, 44, 48, 252]);
        assert_eq!([after(0, 0, 252), after(0, 0, 256), after(0, 0, 2012)], [256, 288, 2016]);
        assert_eq!([after(0, 0, 2016), after(0, 0, 4000), after(0, 300, 4000)], [2048, 4096, 4352]);
        assert_eq!([after(0, 0, 60_000), after(0, 0, 120_000)], [61_440, 120_832]);
    }

    #[test]
    fn each_host_has_its_phase() {
        assert_eq!([after(5, 0, 252), after(5, 0, 256), after(5, 28, 256)], [261, 261, 293]);
        let turn = Wheel::LINUX.turn().as_millis() as u64;
        assert_eq!(turn, 131_072);
        for at in [0, 7, 1001, 99_999] {
            assert_eq!(after(5, at, 700), after(5 + turn, at, 700));
            assert!(after(5, at, 700) > at + 700 - 4, "never early, but for the tick under way");
        }
    }

    #[test]
    fn spans_are_rounded_up() {
        let counted = |us| Wheel::LINUX.counted(Duration::from_micros(us)).as_millis();
        assert_eq!(
            [counted(0), counted(1), counted(240_600), counted(244_000), counted(244_001)],
            [0, 4, 244, 244, 248]
        );
    }

    #[test]
    fn nothing_overflows() {
        for tick in [Duration::ZERO, ms(4), Duration::MAX] {
            let wheel = Wheel { tick, phase: Some(Duration::MAX) };
            assert!(wheel.after(Instant::NEVER, Duration::MAX) >= wheel.after(Instant::ZERO, Duration::ZERO));
            assert!(wheel.turn() > Duration::ZERO);
        }
    }
}
