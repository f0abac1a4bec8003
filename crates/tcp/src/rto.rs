//! The retransmission time-out (RFC 6298).

use crate::Profile;
use wire::Duration;

/// RFC 6298, 5.7: the time-out after a handshake whose SYN was lost.
const AFTER_LOST_SYN: Duration = Duration::from_secs(3);
/// More doublings change nothing: any base is at its maximum by then.
const MAX_SHIFT: u32 = 16;

/// The estimator. It never sees a sample of a segment that was sent twice (Karn; RFC 6298, section 3): its caller does
/// not take one.
#[derive(Clone, Debug)]
pub struct Rto {
    smoothed: Option<(Duration, Duration)>,
    base: Duration,
    shift: u32,
    min: Duration,
    max: Duration,
    granularity: Duration,
}

impl Rto {
    /// Without a sample.
    pub fn new(profile: &Profile) -> Self {
        let (min, max) = (profile.rto_min, profile.rto_max.max(profile.rto_min));
        let base = profile.rto_initial.min(max);
        Self { smoothed: None, base, shift: 0, min, max, granularity: profile.granularity }
    }

    /// Takes a round-trip time; it ends the backing off (RFC 6298, 2.2, 2.3 and the end of section 5).
    pub fn sample(&mut self, rtt: Duration) {
        let (srtt, rttvar) = match self.smoothed {
            None => (rtt, rtt / 2),
            Some((srtt, rttvar)) => ((srtt * 7 + rtt) / 8, (rttvar * 3 + srtt.abs_diff(rtt)) / 4),
        };
        self.smoothed = Some((srtt, rttvar));
        self.base = (srtt + self.granularity.max(rttvar * 4)).clamp(self.min, self.max);
        self.shift = 0;
    }

    /// Doubles the time-out (RFC 6298, 5.5).
    pub fn back_off(&mut self) {
        self.shift = (self.shift + 1).min(MAX_SHIFT);
    }

    /// The handshake lost a SYN, and so has no sample (RFC 6298, 5.7).
    pub fn lost_syn(&mut self) {
        self.base = self.base.max(AFTER_LOST_SYN).min(self.max);
        self.shift = 0;
    }

    /// The time-out now, backed off.
    pub fn current(&self) -> Duration {
        self.after(self.shift)
    }

    /// The time-out after `doublings` of the base.
    pub(crate) fn after(&self, doublings: u32) -> Duration {
        self.base.saturating_mul(1 << doublings.min(MAX_SHIFT)).min(self.max)
    }

    /// The smoothed round-trip time.
    pub fn srtt(&self) -> Option<Duration> {
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
        Rto::new(&Profile { rto_min: ms(10), ..Profile::rfc6298_reno() })
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
    }

    #[test]
    fn floor_granularity_and_lost_syn() {
        let mut rto = Rto::new(&Profile::rfc6298_reno());
        rto.sample(ms(1));
        assert_eq!(rto.current(), ms(1000));
        let mut steady = estimator();
        (0..100).for_each(|_| steady.sample(ms(100)));
        assert_eq!(steady.current(), ms(101));
        rto.back_off();
        rto.lost_syn();
        assert_eq!(rto.current(), ms(3000));
    }
}
