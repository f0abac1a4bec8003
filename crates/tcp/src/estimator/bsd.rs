//! 4.4BSD's estimator (Wright and Stevens, TCP/IP Illustrated, volume 2, chapter 25; Jacobson, "Congestion Avoidance
//! and Control", 1988, appendix A). It counts whole ticks, in integers that are scaled so that shifts replace
//! divisions.

use super::RoundTrip;
use crate::{Profile, Ticks, Timing};
use wire::{Duration, Instant};

/// `TCP_RTT_SHIFT`: the smoothed round trip is kept in eighths of a tick.
const RTT_SHIFT: u32 = 3;
/// `TCP_RTTVAR_SHIFT`: the variance is kept in quarters of a tick. So the stored number is four times the variance in
/// ticks, and the time-out adds this number.
const RTTVAR_SHIFT: u32 = 2;
/// The maximum number of doublings: the largest factor in `tcp_backoff` is 64.
const MAX_SHIFT: u32 = 6;
/// After more time-outs in a row than this, the path has probably changed, and the round trip is measured again
/// (`TCP_MAXRXTSHIFT / 4`).
const LOSING: u32 = 3;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Bsd {
    ticks: Ticks,
    /// The smoothed round trip in eighths of a tick. It is zero before the first sample, and after more than `LOSING`
    /// time-outs in a row until the next sample.
    srtt: u32,
    /// The variance in quarters of a tick.
    rttvar: u32,
    /// The time-out in ticks: `t_rxtcur` while nothing is backed off.
    base: u32,
    doublings: u32,
    min: u32,
    max: u32,
}

impl Bsd {
    pub(super) fn new(profile: &Profile) -> Self {
        let ticks = if let Timing::Ticks(ticks) = profile.timing { ticks } else { Ticks::BSD };
        let (min, max) = (whole(profile.rto_min, ticks), whole(profile.rto_max, ticks));
        let base = whole(profile.rto_initial, ticks);
        // `TCPTV_SRTTDFLT`: without a sample, `value` is twice the first time-out. The first back-off doubles `value`,
        // so the time-outs of 4.4BSD are 6 s, then 24 s.
        let rttvar = base.saturating_mul(2);
        Self { ticks, srtt: 0, rttvar, base, doublings: 0, min, max: max.max(min) }
    }

    /// Takes a round-trip sample (`tcp_xmit_timer`), and ends the back-off. As `t_rtt` in the kernel, the sample starts
    /// at one, and counts the ticks until the acknowledgment.
    pub(super) fn sample(&mut self, sent: Instant, now: Instant) {
        let ticks = self.ticks.count(now).saturating_sub(self.ticks.count(sent));
        let rtt = i64::from(u32::try_from(ticks).unwrap_or(u32::MAX >> 8).min(u32::MAX >> 8)) + 1;
        if self.srtt == 0 {
            self.srtt = (rtt << RTT_SHIFT) as u32;
            self.rttvar = (rtt << (RTTVAR_SHIFT - 1)) as u32;
        } else {
            let delta = rtt - 1 - i64::from(self.srtt >> RTT_SHIFT);
            self.srtt = (i64::from(self.srtt) + delta).max(1) as u32;
            let delta = delta.abs() - i64::from(self.rttvar >> RTTVAR_SHIFT);
            self.rttvar = (i64::from(self.rttvar) + delta).max(1) as u32;
        }
        self.doublings = 0;
        self.base = self.value().clamp(self.min, self.max);
    }

    /// Returns the time-out in ticks, without back-off and limits (`TCP_REXMTVAL`).
    const fn value(&self) -> u32 {
        (self.srtt >> RTT_SHIFT) + self.rttvar
    }

    pub(super) const fn back_off(&mut self) {
        if self.doublings < MAX_SHIFT {
            self.doublings += 1;
        }
        if self.doublings > LOSING && self.srtt != 0 {
            self.rttvar += self.srtt >> RTT_SHIFT;
            self.srtt = 0;
        }
    }

    pub(super) fn current(&self) -> Duration {
        if self.doublings == 0 { self.span(self.base) } else { self.after(self.doublings) }
    }

    pub(super) fn after(&self, doublings: u32) -> Duration {
        let value = if doublings == 0 { self.base } else { self.value() };
        self.span(value.saturating_mul(1 << doublings.min(MAX_SHIFT)).clamp(self.min, self.max))
    }

    fn span(&self, ticks: u32) -> Duration {
        self.ticks.slow.saturating_mul(ticks)
    }

    pub(super) fn smoothed(&self) -> Option<(Duration, Duration)> {
        let slow = self.ticks.slow;
        let smoothed = (slow.saturating_mul(self.srtt) / 8, slow.saturating_mul(self.rttvar) / 4);
        (self.srtt != 0).then_some(smoothed)
    }

    pub(super) fn export(&self) -> RoundTrip {
        let slow = self.ticks.slow;
        // Without a sample, the variance is exported too, because the back-off uses it.
        let smoothed = Some((slow.saturating_mul(self.srtt) / 8, slow.saturating_mul(self.rttvar) / 4));
        RoundTrip { smoothed, base: self.span(self.base), doublings: self.doublings, window: None }
    }

    pub(super) fn resume(&mut self, srtt: Duration, variation: Duration) {
        self.srtt = whole(srtt.saturating_mul(8), self.ticks).max(1);
        self.rttvar = whole(variation.saturating_mul(4), self.ticks).max(1);
        self.base = self.value().clamp(self.min, self.max);
    }

    pub(super) fn restore(&mut self, from: RoundTrip) {
        if let Some((srtt, rttvar)) = from.smoothed {
            self.srtt = whole(srtt.saturating_mul(8), self.ticks);
            self.rttvar = whole(rttvar.saturating_mul(4), self.ticks).max(1);
        }
        self.base = whole(from.base, self.ticks).min(self.max);
        self.doublings = from.doublings.min(MAX_SHIFT);
    }
}

/// Returns the number of whole ticks in `span`, at most 2^24 - 1.
fn whole(span: Duration, ticks: Ticks) -> u32 {
    let ticks = span.as_nanos() / ticks.slow.as_nanos().max(1);
    u32::try_from(ticks).unwrap_or(u32::MAX).min(u32::MAX >> 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bsd() -> Bsd {
        Bsd::new(&Profile::bsd44())
    }

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    /// Before the first sample, the time-outs are 6 s, 24 s, 48 s and 64 s (Stevens, TCP/IP Illustrated, volume 1,
    /// section 18.3; volume 2, section 25.7).
    #[test]
    fn syns_are_sent_again_after_6_and_24_seconds() {
        let mut bsd = bsd();
        let seen: Vec<u64> = (0..4).map(|_| (bsd.current().as_secs(), bsd.back_off()).0).collect();
        assert_eq!(seen, [6, 24, 48, 64]);
    }

    /// Round trips of two ticks, and then a round trip of six ticks, give the values of Jacobson's computation by hand.
    #[test]
    fn ticks_and_integers() {
        let mut bsd = bsd();
        bsd.sample(at(100), at(1100)); // two ticks, counted from one: 3
        assert_eq!((bsd.srtt, bsd.rttvar, bsd.current()), (24, 6, Duration::from_millis(4500)));
        bsd.sample(at(100), at(1100)); // delta = 2 - 3 = -1; 1 - (6 >> 2) = 0
        assert_eq!((bsd.srtt, bsd.rttvar), (23, 6));
        bsd.sample(at(100), at(3100)); // delta = 6 - 2 = 4; 4 - 1 = 3
        assert_eq!((bsd.srtt, bsd.rttvar, bsd.current()), (27, 9, Duration::from_secs(6)));
    }

    /// On a short path the time-out converges to three ticks: the last quarters of the variance are never subtracted.
    #[test]
    fn a_short_path_waits_three_ticks_and_four_timeouts_forget_it() {
        let mut bsd = bsd();
        (0..50).for_each(|_| bsd.sample(at(10), at(20)));
        assert_eq!((bsd.current(), bsd.srtt), (Duration::from_millis(1500), 7));
        assert_eq!(bsd.smoothed().map(|(srtt, _)| srtt), Some(Duration::from_micros(437_500)));
        let seen: Vec<_> = (0..5).map(|_| (bsd.back_off(), bsd.current().as_secs()).1).collect();
        assert_eq!(seen, [3, 6, 12, 24, 48]);
        assert_eq!(bsd.smoothed(), None);
    }

    #[test]
    fn what_was_found_out_is_taken_over() {
        let mut bsd = bsd();
        let moved = |from: &Bsd| {
            let mut moved = Bsd::new(&Profile::bsd44());
            moved.restore(from.export());
            moved
        };
        assert_eq!(moved(&bsd), bsd);
        for step in [1100, 3100, 700] {
            bsd.sample(at(100), at(step));
            bsd.back_off();
            assert_eq!(moved(&bsd), bsd);
        }
    }
}
