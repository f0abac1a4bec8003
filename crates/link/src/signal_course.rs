//! The strength with which a moving radio hears each cell over time.

use std::collections::BTreeMap;
use wire::{Cell, Duration, Instant, nanos_of};

/// The time between two samples of a radio.
pub const SAMPLING: Duration = Duration::from_millis(100);

/// The strength with which a radio hears each cell over time. The strength changes linearly between two points, and is
/// constant before the first point and after the last. A radio does not hear a cell that is not listed.
///
/// Decibels are integers, so that a run does not depend on a machine's floating-point rounding.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SignalCourse {
    cells: BTreeMap<Cell, Vec<(Instant, i16)>>,
}

impl SignalCourse {
    /// The receiver sensitivity, in dBm: 802.11b at 1 Mb/s, from the data sheets of cards. Weaker cells are not heard.
    pub const SENSITIVITY: i16 = -94;

    /// Adds a cell, with its strength in dBm at instants in ascending order.
    #[must_use]
    pub fn with(mut self, cell: Cell, points: Vec<(Instant, i16)>) -> Self {
        self.cells.insert(cell, points);
        self
    }

    /// Returns when the first sample is due. The samples include the instant of the first point of the course. So a
    /// course that is shifted in time is sampled at the same points.
    pub(crate) fn first_sample(&self) -> Instant {
        let first = self.cells.values().filter_map(|points| points.first()).map(|(at, _)| at.0).min();
        Instant(first.unwrap_or_default() % nanos_of(SAMPLING))
    }

    /// Returns the strength of a cell at `now`, in dBm; `None` if the radio does not hear it.
    pub fn strength(&self, cell: Cell, now: Instant) -> Option<i16> {
        let points = self.cells.get(&cell)?;
        let after = points.partition_point(|(at, _)| *at <= now);
        let before = after.checked_sub(1).and_then(|index| points.get(index));
        let strength = match (before, points.get(after)) {
            (Some((from, a)), Some((to, b))) => between((from.0, *a), (to.0, *b), now.0),
            (Some((_, last)), None) => *last,
            (None, Some((_, first))) => *first,
            (None, None) => return None,
        };
        (strength >= Self::SENSITIVITY).then_some(strength)
    }

    /// Returns all cells that are heard at `now` with their strength in dBm, in the order of their numbers.
    pub(crate) fn heard(&self, now: Instant) -> Vec<(Cell, i16)> {
        let strength = |cell: &Cell| Some((*cell, self.strength(*cell, now)?));
        self.cells.keys().filter_map(strength).collect()
    }
}

/// Returns the value at `now` by linear interpolation in integers, rounded towards the first point.
fn between((from, a): (u64, i16), (to, b): (u64, i16), now: u64) -> i16 {
    let (passed, span) = (i128::from(now - from), i128::from((to - from).max(1)));
    (i128::from(a) + (i128::from(b) - i128::from(a)) * passed / span) as i16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strength_changes_evenly_and_ends_where_nothing_is_heard() {
        let at = Instant::from_millis;
        let course = SignalCourse::default().with(Cell(1), vec![(at(1000), -50), (at(2000), -100)]);
        let heard = |ms| course.strength(Cell(1), at(ms));
        assert_eq!([heard(0), heard(1000), heard(1500)], [Some(-50), Some(-50), Some(-75)]);
        assert_eq!([heard(1880), heard(1900), heard(5000)], [Some(-94), None, None]);
        assert_eq!(course.strength(Cell(2), at(0)), None, "a cell that is not named");
        assert_eq!(course.heard(at(1500)), [(Cell(1), -75)]);
    }

    #[test]
    fn samples_go_with_the_course() {
        let first = |points: [u64; 2]| {
            let cell = |course: SignalCourse, (number, at)| {
                course.with(
                    Cell(number),
                    vec![(Instant::from_millis(at), -50), (Instant::from_millis(9000), -60)],
                )
            };
            (1..).zip(points).fold(SignalCourse::default(), cell).first_sample()
        };
        assert_eq!(
            [first([0, 1234]), first([1570, 1234]), first([1500, 2000])],
            [0, 34, 0].map(Instant::from_millis)
        );
        assert_eq!(SignalCourse::default().first_sample(), Instant::ZERO);
    }

    #[test]
    fn a_jump_is_two_points_at_one_instant() {
        let at = Instant::from_millis;
        let course =
            SignalCourse::default().with(Cell(1), vec![(at(0), -50), (at(1000), -50), (at(1000), -120)]);
        assert_eq!(course.strength(Cell(1), at(999)), Some(-50));
        assert_eq!(course.strength(Cell(1), at(1000)), None);
    }
}
