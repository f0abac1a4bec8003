//! The signal strengths that a mobile node's radio reports, by cell, and whether the signal of one agent is stronger than
//! that of another (not from an RFC). RFC 5944, section 2.4.2, leaves the use of link-layer information to the node.

use crate::config::MobileNodeConfig;
use std::collections::BTreeMap;
use wire::{Cell, Duration, Instant, Ipv4Addr};

/// A report that is older than this time is not used.
pub(crate) const BELIEVED: Duration = Duration::from_secs(2);

/// The smoothed strength of a cell, in hundredths of dBm so that smoothing needs no floating point.
#[derive(Clone, Copy, Debug)]
struct Level {
    hundredths: i32,
    heard: Instant,
}

/// The signals of cells, and the cells of agents.
#[derive(Clone, Debug, Default)]
pub(crate) struct Signals {
    /// By how much another agent's signal must be stronger, in dB; `None`: signals are not compared.
    hysteresis: Option<u8>,
    cells: BTreeMap<Ipv4Addr, Cell>,
    levels: BTreeMap<Cell, Level>,
}

/// How the signal of another agent compares with that of the agent in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Comparison {
    /// It is stronger by at least the hysteresis.
    Stronger,
    /// It is weaker, or stronger by less than the hysteresis.
    BelowHysteresis,
}

impl Signals {
    pub(crate) fn new(config: &MobileNodeConfig) -> Self {
        let cells = config.agent_cells.iter().map(|of| (of.agent, Cell(of.cell))).collect();
        Self { hysteresis: config.signal_hysteresis, cells, levels: BTreeMap::new() }
    }

    /// Adds a report, in dBm, to the smoothed strength of a cell, with a weight of one quarter. After more than
    /// [`BELIEVED`] without a report, smoothing begins again.
    pub(crate) fn hear(&mut self, now: Instant, cell: Cell, strength: i16) {
        if self.hysteresis.is_none() {
            return;
        }
        let sample = i32::from(strength) * 100;
        let fresh = Level { hundredths: sample, heard: now };
        let level = self.levels.entry(cell).or_insert(fresh);
        if now.since(level.heard) > BELIEVED {
            *level = fresh;
        }
        level.hundredths += (sample - level.hundredths) / 4;
        level.heard = now;
    }

    /// Returns whether an agent's cell has fallen silent: it was heard before, but not within [`BELIEVED`], while the cell of
    /// another agent was. False if signals are not compared, or if both agents are in one cell.
    pub(crate) fn is_silent(&self, now: Instant, agent: Ipv4Addr, other: Ipv4Addr) -> bool {
        let [cell, other_cell] = [agent, other].map(|agent| self.cells.get(&agent));
        let age = |cell: Option<&Cell>| Some(now.since(self.levels.get(cell?)?.heard));
        self.hysteresis.is_some()
            && cell != other_cell
            && age(cell).is_some_and(|age| age > BELIEVED)
            && age(other_cell).is_some_and(|age| age <= BELIEVED)
    }

    /// Compares the signal of another agent with that of the agent in use. `None` if signals are not compared, if both
    /// agents are in one cell, or if a signal or cell is not known.
    pub(crate) fn compare(&self, now: Instant, in_use: Ipv4Addr, other: Ipv4Addr) -> Option<Comparison> {
        let step = i32::from(self.hysteresis?) * 100;
        let [own_cell, other_cell] = [in_use, other].map(|agent| self.cells.get(&agent).copied());
        if own_cell == other_cell {
            return None;
        }
        let level = |cell: Option<Cell>| {
            let level = self.levels.get(&cell?)?;
            (now.since(level.heard) <= BELIEVED).then_some(level.hundredths)
        };
        let (own, other) = (level(own_cell)?, level(other_cell)?);
        Some(if other >= own + step { Comparison::Stronger } else { Comparison::BelowHysteresis })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Ipv4Addr = Ipv4Addr::new(10, 3, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 4, 0, 1);
    const BESIDE_B: Ipv4Addr = Ipv4Addr::new(10, 4, 0, 2);
    const UNKNOWN: Ipv4Addr = Ipv4Addr::new(10, 5, 0, 1);

    fn signals(hysteresis: Option<u8>) -> Signals {
        let cells = [(A, Cell(1)), (B, Cell(2)), (BESIDE_B, Cell(2))].into();
        Signals { hysteresis, cells, levels: BTreeMap::new() }
    }

    #[test]
    fn a_signal_is_stronger_by_the_hysteresis_or_below_it() {
        let at = Instant::from_millis;
        for (own, other, expected) in [
            (-70, -70, Comparison::BelowHysteresis),
            (-70, -66, Comparison::BelowHysteresis),
            (-70, -65, Comparison::Stronger),
            (-70, -80, Comparison::BelowHysteresis),
        ] {
            let mut signals = signals(Some(5));
            signals.hear(at(0), Cell(1), own);
            signals.hear(at(0), Cell(2), other);
            assert_eq!(signals.compare(at(100), A, B), Some(expected), "{own} {other}");
            assert_eq!(signals.compare(at(100), B, BESIDE_B), None, "both are in one cell");
            assert_eq!(signals.compare(at(100), A, UNKNOWN), None, "its cell is not known");
            assert_eq!(signals.compare(at(2001), A, B), None, "the reports are too old");
            assert!(!signals.is_silent(at(2001), A, B), "both cells are silent");
            signals.hear(at(2001), Cell(2), other);
            assert!(signals.is_silent(at(2001), A, B) && !signals.is_silent(at(2000), A, B));
            assert!(!signals.is_silent(at(2001), B, A) && !signals.is_silent(at(2001), UNKNOWN, B));
        }
        let mut off = signals(None);
        off.hear(at(0), Cell(1), -90);
        off.hear(at(0), Cell(2), -60);
        assert_eq!(off.compare(at(0), A, B), None);
    }

    #[test]
    fn one_strong_report_does_not_count_alone() {
        let mut signals = signals(Some(5));
        let mut now = Instant::ZERO;
        for strength in [-80, -80, -60] {
            signals.hear(now, Cell(1), -70);
            signals.hear(now, Cell(2), strength);
            now += Duration::from_millis(100);
        }
        assert_eq!(signals.compare(now, A, B), Some(Comparison::BelowHysteresis), "-75 dBm after smoothing");
    }

    #[test]
    fn a_report_after_silence_counts_alone() {
        for (silence, expected) in [(2000, Comparison::BelowHysteresis), (2001, Comparison::Stronger)] {
            let mut signals = signals(Some(5));
            signals.hear(Instant::ZERO, Cell(2), -80);
            let now = Instant::from_millis(silence);
            signals.hear(now, Cell(1), -70);
            signals.hear(now, Cell(2), -60);
            assert_eq!(signals.compare(now, A, B), Some(expected), "after {silence} ms");
        }
    }
}
