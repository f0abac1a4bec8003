//! The limit for challenge acknowledgments (RFC 5961, section 7). Without the limit, two ends that disagree could
//! answer each other for ever, at the speed of the link.

use wire::{Duration, Instant};

const MOST: u32 = 100;
const PERIOD: Duration = Duration::from_secs(1);

/// The number of challenge acknowledgments in the current second (RFC 5961). They answer resets, SYNs, empty segments
/// and acknowledgments that do not fit the state of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Challenge {
    /// When the current second of the limit began; zero at first.
    pub since: Instant,
    /// The number of challenge acknowledgments due since `since`. Those above 100 are counted, but not sent.
    pub sent: u32,
}

impl Challenge {
    /// Counts a challenge acknowledgment. Returns whether it may be sent.
    pub(crate) fn allow(&mut self, now: Instant) -> bool {
        if now.since(self.since) >= PERIOD {
            *self = Self { since: now, sent: 0 };
        }
        self.sent += 1;
        self.sent <= MOST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_a_second() {
        let mut challenge = Challenge::default();
        let count = |challenge: &mut Challenge, at| (0..500).filter(|_| challenge.allow(at)).count();
        assert_eq!(count(&mut challenge, Instant::from_millis(10)), 100);
        assert_eq!(count(&mut challenge, Instant::from_millis(999)), 0);
        assert_eq!(count(&mut challenge, Instant::from_millis(1500)), 100);
    }
}
