//! The signal monitor: the smoothed signal strength of each cell, and since when a cell is good enough to move to.

use crate::config::SignalConfig;
use std::collections::BTreeMap;
use wire::{Cell, Duration, Instant};

/// A cell without a sample for more than this time is not heard any more.
const SILENCE: Duration = Duration::from_millis(350);
/// If the time between two moves is shorter than this time, the wait until the next move doubles. Otherwise the wait is
/// reset.
const FLIPS: Duration = Duration::from_secs(10);
/// The maximum number of doublings of the wait between two moves.
const MOST_DOUBLINGS: u32 = 5;

/// The smoothed strength of a cell, in hundredths of dBm so that smoothing needs no floating point.
#[derive(Clone, Copy, Debug)]
struct Level {
    hundredths: i32,
    heard: Instant,
    /// Since when the cell has been good enough to move to; `None` if it is not good enough.
    better: Option<Instant>,
}

/// The signals of the cells that were heard.
#[derive(Debug)]
pub(crate) struct SignalMonitor {
    config: SignalConfig,
    cells: BTreeMap<Cell, Level>,
    moved: Option<Instant>,
    flips: u32,
}

impl SignalMonitor {
    pub(crate) const fn new(config: SignalConfig) -> Self {
        Self { config, cells: BTreeMap::new(), moved: None, flips: 0 }
    }

    /// Adds a sample, in dBm, to the smoothed strength of a cell, with a weight of one quarter. After more than
    /// [`SILENCE`] without a sample, smoothing begins again with the new sample.
    pub(crate) fn hear(&mut self, now: Instant, cell: Cell, strength: i16) {
        let sample = i32::from(strength) * 100;
        let fresh = Level { hundredths: sample, heard: now, better: None };
        let level = self.cells.entry(cell).or_insert(fresh);
        if now.since(level.heard) > SILENCE {
            *level = fresh;
        }
        level.hundredths += (sample - level.hundredths) / 4;
        level.heard = now;
    }

    /// Removes a cell whose link was lost, until it is heard again.
    pub(crate) fn forget(&mut self, cell: Cell) {
        self.cells.remove(&cell);
    }

    /// Records which cells are good enough to move to from `current`, and since when.
    pub(crate) fn judge(&mut self, now: Instant, current: Option<Cell>) {
        let own = current.and_then(|cell| self.level(now, cell));
        let (go, step) = (i32::from(self.config.go) * 100, i32::from(self.config.hysteresis) * 100);
        for (cell, level) in &mut self.cells {
            let good = level.hundredths >= go && own.is_none_or(|own| level.hundredths >= own + step);
            let better = Some(*cell) != current && now.since(level.heard) <= SILENCE && good;
            level.better = if better { level.better.or(Some(now)) } else { None };
        }
    }

    fn level(&self, now: Instant, cell: Cell) -> Option<i32> {
        let level = self.cells.get(&cell)?;
        (now.since(level.heard) <= SILENCE).then_some(level.hundredths)
    }

    /// Returns the strongest cell among the cells that are strong enough to be prepared and for which `wanted` is true;
    /// `None` if there is none.
    pub(crate) fn candidate(&self, now: Instant, wanted: impl Fn(Cell) -> bool) -> Option<Cell> {
        let strong = |cell: &&Cell| {
            self.level(now, **cell).is_some_and(|level| level >= i32::from(self.config.prepare) * 100)
        };
        let cells = self.cells.keys().filter(|cell| wanted(**cell)).filter(strong);
        cells.copied().max_by_key(|cell| self.level(now, *cell))
    }

    /// Returns whether a cell has been good enough for at least `hold`, and the wait after the last move has ended.
    pub(crate) fn may_go(&self, now: Instant, cell: Cell) -> bool {
        let better = self.cells.get(&cell).and_then(|level| level.better);
        let rested = self.moved.is_none_or(|moved| now >= moved + self.dwell());
        rested && better.is_some_and(|since| now >= since + self.config.hold)
    }

    /// Returns whether a cell is weaker than `lost`, or is not heard any more.
    pub(crate) fn is_lost(&self, now: Instant, cell: Cell) -> bool {
        self.level(now, cell).is_none_or(|level| level < i32::from(self.config.lost) * 100)
    }

    fn dwell(&self) -> Duration {
        self.config.dwell.saturating_mul(1 << self.flips.min(MOST_DOUBLINGS))
    }

    /// Records a move of the mobile node to another cell.
    pub(crate) fn moved(&mut self, now: Instant) {
        let again = self.moved.is_some_and(|before| now < before + FLIPS);
        self.flips = if again { self.flips + 1 } else { 0 };
        self.moved = Some(now);
        self.cells.values_mut().for_each(|level| level.better = None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Cell = Cell(1);
    const B: Cell = Cell(2);

    /// Adds samples of both cells ten times a second from `from` to `to`, in milliseconds, and evaluates them.
    fn hear(monitor: &mut SignalMonitor, from: u64, to: u64, a: i16, b: i16, current: Cell) {
        for at in (from..=to).step_by(100).map(Instant::from_millis) {
            monitor.hear(at, A, a);
            monitor.hear(at, B, b);
            monitor.judge(at, Some(current));
        }
    }

    fn monitor() -> SignalMonitor {
        SignalMonitor::new(SignalConfig::default())
    }

    #[test]
    fn a_cell_is_prepared_before_it_is_moved_to() {
        let (mut monitor, at) = (monitor(), Instant::from_millis);
        hear(&mut monitor, 0, 0, -60, -81, A);
        assert_eq!(monitor.candidate(at(0), |cell| cell != A), None);
        hear(&mut monitor, 100, 1000, -70, -79, A);
        assert_eq!(monitor.candidate(at(1000), |cell| cell != A), Some(B));
        assert!(!monitor.may_go(at(1000), B));
    }

    #[test]
    fn it_takes_six_decibels_for_300_ms() {
        let (mut monitor, at) = (monitor(), Instant::from_millis);
        hear(&mut monitor, 0, 1000, -70, -65, A);
        assert!(!monitor.may_go(at(1000), B), "five are not enough");
        hear(&mut monitor, 1100, 2000, -75, -62, A);
        let first = (1100..=2000).step_by(100).find(|ms| {
            let mut other = SignalMonitor::new(SignalConfig::default());
            hear(&mut other, 0, 1000, -70, -65, A);
            hear(&mut other, 1100, *ms, -75, -62, A);
            other.may_go(at(*ms), B)
        });
        assert_eq!(first, Some(1400), "better from the first sample on, and 300 ms of it");
        monitor.moved(at(2000));
        hear(&mut monitor, 2100, 2900, -60, -80, B);
        assert!(!monitor.may_go(at(2900), A), "too soon");
        hear(&mut monitor, 3000, 3000, -60, -80, B);
        assert!(monitor.may_go(at(3000), A));
    }

    #[test]
    fn who_moves_to_and_fro_waits_longer_each_time() {
        let mut monitor = monitor();
        let mut now = Instant::from_millis(0);
        let mut waits = Vec::new();
        for _ in 0..4 {
            monitor.moved(now);
            waits.push(monitor.dwell().as_secs());
            now += monitor.dwell();
        }
        assert_eq!(waits, [1, 2, 4, 8]);
        monitor.moved(now + Duration::from_mins(1));
        assert_eq!(monitor.dwell().as_secs(), 1);
    }

    #[test]
    fn what_is_not_heard_any_more_is_lost() {
        let (mut monitor, at) = (monitor(), Instant::from_millis);
        hear(&mut monitor, 0, 500, -60, -87, A);
        assert!(!monitor.is_lost(at(500), A) && !monitor.is_lost(at(500), B));
        assert!(monitor.is_lost(at(900), A));
        hear(&mut monitor, 1000, 2000, -60, -92, A);
        assert!(monitor.is_lost(at(2000), B));
        assert!(monitor.is_lost(at(2000), Cell(3)), "never heard");
    }
}
