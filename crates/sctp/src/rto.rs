//! The retransmission time-out of a path (RFC 9260, section 6.3.1).

use crate::Config;
use wire::Duration;

/// The estimator. It never sees a sample of a chunk that was sent twice (C5, Karn): its caller does not take one.
#[derive(Clone, Debug)]
pub(crate) struct Rto {
    smoothed: Option<(Duration, Duration)>,
    current: Duration,
    min: Duration,
    max: Duration,
}

impl Rto {
    pub(crate) fn new(config: &Config) -> Self {
        let max = config.rto_max.max(config.rto_min);
        Self { smoothed: None, current: config.rto_initial.min(max), min: config.rto_min, max }
    }

    /// Takes a round-trip time (C2, C3, C6, C7).
    pub(crate) fn sample(&mut self, rtt: Duration) {
        let (srtt, rttvar) = match self.smoothed {
            None => (rtt, rtt / 2),
            Some((srtt, rttvar)) => ((srtt * 7 + rtt) / 8, (rttvar * 3 + srtt.abs_diff(rtt)) / 4),
        };
        // G1: a variance of zero would be a time-out of exactly one round trip.
        self.smoothed = Some((srtt, rttvar.max(Duration::from_millis(1))));
        self.current = (srtt + rttvar.max(Duration::from_millis(1)) * 4).clamp(self.min, self.max);
    }

    /// Doubles the time-out (section 6.3.3, E2).
    pub(crate) fn back_off(&mut self) {
        self.current = (self.current * 2).min(self.max);
    }

    /// The time-out now.
    pub(crate) const fn current(&self) -> Duration {
        self.current
    }

    /// The smoothed round-trip time.
    pub(crate) fn srtt(&self) -> Option<Duration> {
        self.smoothed.map(|(srtt, _)| srtt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn estimator() -> Rto {
        Rto::new(&Config { rto_min: ms(10), ..Config::default() })
    }

    #[test]
    fn the_first_sample_and_the_second() {
        let mut rto = estimator();
        assert_eq!((rto.current(), rto.srtt()), (ms(1000), None));
        rto.sample(ms(100));
        assert_eq!((rto.current(), rto.srtt()), (ms(300), Some(ms(100)))); // 100 + 4 * 50
        rto.sample(ms(180));
        // RTTVAR = 3/4 * 50 + 1/4 * 80 = 57.5, SRTT = 7/8 * 100 + 1/8 * 180 = 110
        assert_eq!((rto.current(), rto.srtt()), (ms(340), Some(ms(110))));
    }

    #[test]
    fn backing_off_doubles_up_to_the_maximum_and_ends_with_a_sample() {
        let mut rto = estimator();
        let seen: Vec<_> = (0..8).map(|_| (rto.current().as_secs(), rto.back_off()).0).collect();
        assert_eq!(seen, [1, 2, 4, 8, 16, 32, 60, 60]);
        rto.sample(ms(100));
        assert_eq!(rto.current(), ms(300));
        let mut floor = Rto::new(&Config::default());
        floor.sample(ms(1));
        assert_eq!(floor.current(), ms(1000));
    }
}
