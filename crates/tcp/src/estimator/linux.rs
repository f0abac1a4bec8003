//! The time-out as in Linux (`net/ipv4/tcp_input.c`, `tcp_rtt_estimator` and `tcp_set_rto`). The kernel computes in
//! microseconds, this code in nanoseconds. The variance rises at once to the largest deviation. It falls slowly, at
//! most once per window of data, and not below the profile's `rto_min`.

use super::{RoundTrip, Sample};
use crate::{Profile, Seq, Timing};
use wire::Duration;

const MAX_SHIFT: u32 = 16;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Linux {
    /// The smoothed round trip, and the variance that is added to it; `None` before the first sample.
    pub(super) smoothed: Option<(Duration, Duration)>,
    /// The time-out before the first sample.
    base: Duration,
    pub(super) doublings: u32,
    deviation: Duration,
    /// The largest deviation since `window_end` was set, at least `min`; zero before the first sample.
    largest: Duration,
    window_end: Seq,
    min: Duration,
    max: Duration,
    timing: Timing,
}

impl Linux {
    pub(super) fn new(profile: &Profile) -> Self {
        let max = profile.rto_max.max(profile.rto_min);
        Self {
            smoothed: None,
            base: profile.rto_initial.min(max),
            doublings: 0,
            deviation: Duration::ZERO,
            largest: Duration::ZERO,
            window_end: Seq(0),
            min: profile.rto_min,
            max,
            timing: profile.timing,
        }
    }

    /// Takes a round-trip sample, and ends the back-off. The kernel stores eight times the smoothed round trip
    /// (`srtt_us`), this code the round trip itself.
    pub(super) fn sample(&mut self, sample: &Sample) {
        let rtt = sample.now.since(sample.sent);
        match self.smoothed {
            None => {
                self.deviation = rtt * 2; // four mean deviations, each of half a round trip
                self.largest = self.deviation.max(self.min);
                self.smoothed = Some((rtt, self.largest));
                self.window_end = sample.max;
            }
            Some((srtt, variance)) => self.further(sample, rtt, srtt, variance),
        }
        self.doublings = 0;
    }

    fn further(&mut self, sample: &Sample, rtt: Duration, srtt: Duration, mut variance: Duration) {
        let (off, quarter) = (rtt.abs_diff(srtt), self.deviation / 4);
        let faster = rtt < srtt;
        let smoothed = (srtt * 7 + rtt) / 8;
        self.deviation = match off.checked_sub(quarter) {
            // If the round trip becomes shorter, only an eighth of the increase counts. So a faster path raises the
            // deviation less.
            Some(more) if faster => self.deviation + more / 8,
            Some(more) => self.deviation + more,
            None => (self.deviation + off).saturating_sub(quarter),
        };
        if self.deviation > self.largest {
            self.largest = self.deviation;
            variance = variance.max(self.largest);
        }
        if sample.una.after(self.window_end) {
            variance = variance.saturating_sub(variance.saturating_sub(self.largest) / 4);
            self.window_end = sample.max;
            self.largest = self.min;
        }
        self.smoothed = Some((smoothed, variance));
    }

    pub(super) fn back_off(&mut self) {
        self.doublings = (self.doublings + 1).min(MAX_SHIFT);
    }

    /// Undoes the last doubling. Returns whether there was a doubling.
    pub(super) const fn take_back(&mut self) -> bool {
        let any = self.doublings > 0;
        self.doublings = self.doublings.saturating_sub(1);
        any
    }

    /// Returns the smoothed round trip and its mean deviation. The field `deviation` is four times the mean deviation.
    pub(super) fn measured(&self) -> Option<(Duration, Duration)> {
        self.smoothed.map(|(srtt, _)| (srtt, self.deviation / 4))
    }

    pub(super) fn resume(&mut self, srtt: Duration, variation: Duration, max: Seq) {
        self.deviation = variation.saturating_mul(4);
        self.largest = self.deviation.max(self.min);
        (self.smoothed, self.window_end) = (Some((srtt, self.largest)), max);
    }

    pub(super) fn lost_syn(&mut self, base: Duration) {
        self.base = self.base.max(base).min(self.max);
        self.doublings = 0;
    }

    /// Returns the time-out with `doublings` doublings, at most `max`. With a timer wheel, the time-out is first
    /// rounded up to whole ticks, and then doubled (Linux: `__tcp_set_rto`).
    pub(super) fn after(&self, doublings: u32) -> Duration {
        let base = self.smoothed.map_or(self.base, |(srtt, variance)| srtt.saturating_add(variance));
        self.timing.counted(base).saturating_mul(1 << doublings.min(MAX_SHIFT)).min(self.max)
    }

    pub(super) const fn export(&self) -> RoundTrip {
        RoundTrip {
            smoothed: self.smoothed,
            base: self.base,
            doublings: self.doublings,
            window: Some((self.deviation, self.largest, self.window_end)),
        }
    }

    pub(super) fn restore(&mut self, from: RoundTrip) {
        self.smoothed = from.smoothed.map(|(srtt, variance)| (srtt, variance.max(self.min)));
        self.base = from.base.min(self.max);
        self.doublings = from.doublings.min(MAX_SHIFT);
        if let Some((deviation, largest, end)) = from.window {
            (self.deviation, self.largest, self.window_end) = (deviation, largest, end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Instant;

    fn sample(linux: &mut Linux, ms: u64, una: u32) {
        let (sent, now) = (Instant::ZERO, Instant::from_millis(ms));
        linux.sample(&Sample { sent, now, samples: 1, una: Seq(una), max: Seq(una + 100) });
    }

    fn rto(linux: &Linux) -> u128 {
        linux.after(linux.doublings).as_millis()
    }

    /// On a path with a round trip of 50 ms, the time-out is 252 ms, as `ss -i` shows. It is the round trip plus 200
    /// ms, rounded up to ticks of 4 ms.
    #[test]
    fn the_least_is_a_round_trip_and_200_ms() {
        let mut linux = Linux::new(&Profile::linux());
        assert_eq!(rto(&linux), 1000);
        for una in 1..50 {
            sample(&mut linux, 50, una * 200);
        }
        assert_eq!(
            (rto(&linux), linux.smoothed),
            (252, Some((Duration::from_millis(50), Duration::from_millis(200))))
        );
        linux.back_off();
        linux.back_off();
        assert_eq!(rto(&linux), 1008);
    }

    #[test]
    fn the_variance_rises_at_once_and_falls_by_a_quarter_a_window() {
        let mut linux = Linux::new(&Profile::linux());
        sample(&mut linux, 400, 1); // deviation 800
        assert_eq!(rto(&linux), 1200);
        sample(&mut linux, 400, 50); // within the window: 800 - 200 = 600, but 800 was the largest
        assert_eq!((rto(&linux), linux.deviation), (1200, Duration::from_millis(600)));
        sample(&mut linux, 400, 500); // a window later, and its largest was 800
        assert_eq!(rto(&linux), 1200);
        sample(&mut linux, 400, 700); // 800 - (800 - 337.5) / 4 = 684
        assert_eq!(rto(&linux), 1088); // whole ticks
    }

    #[test]
    fn becoming_faster_is_not_unsteadiness() {
        let mut linux = Linux::new(&Profile::linux());
        (1..40).for_each(|una| sample(&mut linux, 400, una * 200));
        let before = linux.deviation;
        sample(&mut linux, 40, 9000); // 360 ms less: an eighth of it counts
        assert!(linux.deviation <= before + Duration::from_millis(45), "{:?}", linux.deviation);
    }
}
