//! Replay protection with timestamps, for receivers that keep little or no state per sender.

use core::fmt;
use wire::{Duration, Reason, ntp_distance, ntp_span};

/// The largest allowed difference between the clocks of sender and receiver, in either direction.
///
/// A receiver that knows the last accepted timestamp refuses all timestamps that are not newer. A receiver that does
/// not know it (it just started, or its state expired) checks only the window. So a receiver must remember the last
/// accepted timestamp until it is outside the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReplayWindow(i64);

impl ReplayWindow {
    /// Returns a window of `skew` in either direction. `skew` is limited to 34 years, a quarter of an NTP era: with a
    /// larger one, the past could not be distinguished from the future.
    pub fn new(skew: Duration) -> Self {
        Self(ntp_span(skew.min(Duration::from_secs(1 << 30))))
    }

    /// Checks the `timestamp` of a message that arrives at `now`; `last` is the last timestamp accepted from this
    /// sender. All three are NTP timestamps of 64 bits. Fails if `timestamp` is not later than `last`, or is outside
    /// the window.
    pub const fn check(self, now: u64, last: Option<u64>, timestamp: u64) -> Result<(), Untimely> {
        // The comparison uses differences, not values, because the NTP era ends in February 2036.
        if let Some(last) = last
            && ntp_distance(timestamp, last) <= 0
        {
            return Err(Untimely::Stale);
        }
        if ntp_distance(timestamp, now).unsigned_abs() > self.0.unsigned_abs() {
            return Err(Untimely::OutsideWindow);
        }
        Ok(())
    }
}

/// Why a timestamp is refused (RFC 5944, section 5.7.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Untimely {
    /// The timestamp is not newer than the last accepted one: the message was repeated, or overtaken in the network.
    Stale,
    /// The timestamp is too far from the receiver's clock: the message is an old recording, or a clock is wrong.
    OutsideWindow,
}

impl Untimely {
    /// Returns the drop reason in counters and captures.
    pub const fn reason(self) -> Reason {
        match self {
            Self::Stale => Reason("stale_timestamp"),
            Self::OutsideWindow => Reason("outside_window"),
        }
    }
}

impl From<Untimely> for Reason {
    fn from(untimely: Untimely) -> Self {
        untimely.reason()
    }
}

impl fmt::Display for Untimely {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason().0)
    }
}

impl core::error::Error for Untimely {}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1 << 32;
    const NOW: u64 = 0xe900_0000 * SECOND;

    fn check(now: u64, last: Option<u64>, timestamp: u64) -> Result<(), Untimely> {
        ReplayWindow::new(Duration::from_secs(5)).check(now, last, timestamp)
    }

    #[test]
    fn newer_is_accepted_equal_and_older_are_stale() {
        assert_eq!(check(NOW, Some(NOW), NOW + 1), Ok(()));
        assert_eq!(check(NOW, Some(NOW), NOW), Err(Untimely::Stale));
        assert_eq!(check(NOW, Some(NOW), NOW - 1), Err(Untimely::Stale));
    }

    #[test]
    fn the_window_includes_its_edges() {
        for (last, edge) in
            [(None, NOW - 5 * SECOND), (None, NOW + 5 * SECOND), (Some(NOW), NOW + 5 * SECOND)]
        {
            assert_eq!(check(NOW, last, edge), Ok(()));
        }
        assert_eq!(check(NOW, None, NOW - 5 * SECOND - 1), Err(Untimely::OutsideWindow));
        assert_eq!(check(NOW, None, NOW + 5 * SECOND + 1), Err(Untimely::OutsideWindow));
    }

    #[test]
    fn both_at_once_is_stale() {
        assert_eq!(check(NOW, Some(NOW - 9 * SECOND), NOW - 10 * SECOND), Err(Untimely::Stale));
    }

    #[test]
    fn far_ahead_and_zero_are_outside() {
        assert_eq!(check(NOW, Some(NOW), NOW.wrapping_add(1 << 62)), Err(Untimely::OutsideWindow));
        assert_eq!(check(NOW, None, NOW ^ (1 << 63)), Err(Untimely::OutsideWindow));
        assert_eq!(check(NOW, None, 0), Err(Untimely::OutsideWindow));
    }

    #[test]
    fn the_end_of_an_era_changes_nothing() {
        let (before, after) = (0_u64.wrapping_sub(SECOND), SECOND);
        assert_eq!(check(after, Some(before), after), Ok(()));
        assert_eq!(check(after, Some(after), before), Err(Untimely::Stale));
        assert_eq!(check(before, None, after), Ok(()));
        assert_eq!(check(SECOND, Some(before), 0), Ok(()));
        assert_eq!(check(after, None, before.wrapping_sub(4 * SECOND)), Err(Untimely::OutsideWindow));
    }

    #[test]
    fn a_window_of_centuries_is_not_turned_inside_out() {
        let wide = ReplayWindow::new(Duration::MAX);
        assert_eq!(wide.check(NOW, None, NOW.wrapping_add(1 << 61)), Ok(()));
        assert_eq!(wide.check(NOW, None, NOW ^ (1 << 63)), Err(Untimely::OutsideWindow));
    }

    #[test]
    fn reasons_have_names() {
        assert_eq!(Reason::from(Untimely::Stale).0, "stale_timestamp");
        assert_eq!(Reason::from(Untimely::OutsideWindow).0, "outside_window");
    }
}
