//! CUBIC (RFC 9438), in integers, so that every machine computes the same result. Units are bytes and microseconds.

use wire::{Duration, Instant};

/// The factor of the multiplicative decrease, in tenths (RFC 9438, section 4.6: 0.7).
const BETA: u64 = 7;
/// The number of microseconds in a second. `t` and `K` are in microseconds.
const SECOND: i128 = 1_000_000;

/// The state of CUBIC in congestion avoidance (RFC 9438, section 4.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Cubic {
    /// `W_max`, in bytes: the load before the last reduction. The load is the window, or the data in flight if that was
    /// less. Fast convergence lowers `W_max` (RFC 9438, section 4.7). A time-out sets it to zero. An epoch that begins
    /// raises it to at least the window at that time.
    pub most: u32,
    /// `cwnd_prior`: the load before the last reduction, in bytes, without fast convergence.
    pub prior: u32,
    /// When the present epoch of congestion avoidance began, and the window at that time, in bytes. `None` if no epoch
    /// has begun since the last reduction or time-out. An idle time moves the instant to a later one.
    pub epoch: Option<(Instant, u32)>,
    /// `W_est`: the window that Reno would have, in bytes (RFC 9438, section 4.3).
    pub estimate: u32,
    /// The remainders of the divisions that compute the window and `W_est`. Each is less than the divisor, so less than
    /// one byte.
    pub carry: (u64, u64),
}

impl Cubic {
    /// Returns the slow start threshold after a loss, in bytes, at least two segments. `cwnd` is the window, or the
    /// data in flight if that is less, in bytes (RFC 9438, sections 4.6 and 4.7). Sets `W_max` and `cwnd_prior`, and
    /// ends the epoch.
    pub(crate) fn reduce(&mut self, cwnd: u32, mss: u32) -> u32 {
        let share = |tenths: u64, of: u64| (u64::from(cwnd) * tenths / of) as u32;
        // Fast convergence: if the window is smaller than `W_max`, the flow releases more bandwidth.
        self.most = if cwnd < self.most { share(10 + BETA, 20) } else { cwnd };
        (self.prior, self.epoch) = (cwnd, None);
        share(BETA, 10).max(2 * mss)
    }

    /// Forgets `W_max` and the epoch after a time-out. `W_max` becomes the window at which congestion avoidance begins
    /// again (RFC 9438, section 4.8). A caller that computes a new threshold calls `reduce` before.
    pub(crate) const fn timed_out(&mut self) {
        (self.most, self.epoch) = (0, None);
    }

    /// Converts all windows to another segment size: each keeps its number of segments, also fractions of them.
    pub(crate) fn resize(&mut self, before: u32, mss: u32) {
        let same = |bytes: u32| (u64::from(bytes) * u64::from(mss) / u64::from(before.max(1))) as u32;
        for window in [&mut self.most, &mut self.prior, &mut self.estimate] {
            *window = same(*window);
        }
        if let Some((_, window)) = &mut self.epoch {
            *window = same(*window);
        }
        self.carry = (0, 0);
    }

    /// Moves the begin of the epoch by `idle`, a time in which nothing was in flight, because this time does not count
    /// (RFC 9438, section 5.8; Linux: `cubictcp_cwnd_event`). The begin does not move beyond `now`.
    pub(crate) fn idle(&mut self, now: Instant, idle: Duration) {
        if let Some((begin, _)) = &mut self.epoch {
            *begin = (*begin + idle).min(now);
        }
    }

    /// Returns the window, in bytes, after `acked` bytes were acknowledged (RFC 9438, sections 4.2 to 4.5). Begins an
    /// epoch if there is none.
    pub(crate) fn grow(&mut self, now: Instant, srtt: Duration, cwnd: u32, acked: u32, mss: u32) -> u32 {
        if self.epoch.is_none() {
            self.epoch = Some((now, cwnd));
            self.estimate = cwnd;
            self.carry = (0, 0);
            self.most = self.most.max(cwnd);
        }
        let (begin, at_begin) = self.epoch.unwrap_or((now, cwnd));
        let k = self.k(at_begin, mss);
        let t = micros(now.since(begin));
        self.estimate(cwnd, acked, mss);
        if self.window(t, k, mss) < i128::from(self.estimate) {
            return cwnd.max(self.estimate); // RFC 9438, section 4.3: grow as Reno would
        }
        let highest = i128::from(cwnd) * 3 / 2;
        let target = self.window(t + micros(srtt), k, mss).clamp(i128::from(cwnd), highest);
        let more = (target - i128::from(cwnd)) as u64 * u64::from(acked) + self.carry.0;
        let window = u64::from(cwnd).max(1);
        self.carry.0 = more % window;
        cwnd.saturating_add((more / window) as u32)
    }

    /// Updates `W_est` (RFC 9438, section 4.3, figure 4). It grows by 9/17 of a segment per round trip until it reaches
    /// `cwnd_prior`, then by one segment, as Reno.
    fn estimate(&mut self, cwnd: u32, acked: u32, mss: u32) {
        let (times, of) = if self.estimate >= self.prior { (1, 1) } else { (3 * (10 - BETA), 10 + BETA) };
        let more = u64::from(mss) * u64::from(acked) * times + self.carry.1;
        let whole = u64::from(cwnd).max(1) * of;
        self.carry.1 = more % whole;
        self.estimate = self.estimate.saturating_add((more / whole) as u32);
    }

    /// Returns `W_cubic(t)` in bytes (RFC 9438, section 4.2, figure 1). C is 0.4 segments per second cubed.
    fn window(&self, t: i128, k: i128, mss: u32) -> i128 {
        let off = t - k;
        let cube = off * off * off * 4 * i128::from(mss) / (10 * SECOND * SECOND * SECOND);
        i128::from(self.most) + cube
    }

    /// Returns `K` in microseconds (RFC 9438, section 4.2, figure 2): the time from the begin of the epoch until the
    /// window is `W_max`.
    fn k(&self, at_begin: u32, mss: u32) -> i128 {
        let short = i128::from(self.most.saturating_sub(at_begin));
        cube_root(short * 10 * SECOND * SECOND * SECOND / (4 * i128::from(mss.max(1))))
    }
}

const fn micros(span: Duration) -> i128 {
    span.as_micros().cast_signed()
}

/// Returns the cube root of `of`, rounded down.
fn cube_root(of: i128) -> i128 {
    let (mut low, mut high) = (0i128, 1i128 << 42);
    while low < high {
        let middle = (low + high + 1) / 2;
        if middle * middle * middle <= of { low = middle } else { high = middle - 1 }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;

    /// From a window of 70 segments after a loss at 100, K is the cube root of 30 / 0.4: 4.217 s (RFC 9438, section
    /// 4.2).
    #[test]
    fn k_and_the_window_by_hand() {
        let mut cubic = Cubic::default();
        assert_eq!(cubic.reduce(100 * MSS, MSS), 70 * MSS);
        let k = cubic.k(70 * MSS, MSS);
        assert_eq!(k / 1000, 4217);
        let at = |ms: i128| cubic.window(ms * 1000, k, MSS);
        assert!((i128::from(70 * MSS) - at(0)).abs() <= 1, "{}", at(0));
        assert!((99_900..=100_000).contains(&at(4217)));
        // The window is 0.4 segments larger one second after K, and 3.2 segments larger two seconds after K.
        assert!((100_390..=100_400).contains(&at(5217)) && (103_190..=103_200).contains(&at(6217)));
        assert_eq!([0, 1, 7, 8, 26, 27].map(cube_root), [0, 1, 1, 2, 2, 3]);
    }

    /// A loss below the window of the previous loss lowers `W_max` further (RFC 9438, section 4.7).
    #[test]
    fn fast_convergence() {
        let mut cubic = Cubic::default();
        cubic.reduce(100 * MSS, MSS);
        cubic.reduce(80 * MSS, MSS);
        assert_eq!(cubic.most, 68 * MSS);
        cubic.reduce(90 * MSS, MSS);
        assert_eq!(cubic.most, 90 * MSS);
        assert_eq!(cubic.reduce(MSS, MSS), 2 * MSS, "no less than two segments");
    }

    /// After a time-out, `W_max` is the window at which congestion avoidance begins, whatever it was before (RFC 9438,
    /// section 4.8).
    #[test]
    fn a_time_out_forgets_what_was() {
        let mut cubic = Cubic::default();
        cubic.reduce(100 * MSS, MSS);
        cubic.timed_out();
        cubic.grow(Instant::ZERO, Duration::ZERO, 70 * MSS, MSS, MSS);
        assert_eq!((cubic.most, cubic.k(70 * MSS, MSS)), (70 * MSS, 0));
        assert_eq!(cubic.reduce(90 * MSS, MSS), 63 * MSS);
        assert_eq!(cubic.most, 90 * MSS);
        cubic.timed_out();
        cubic.reduce(50 * MSS, MSS);
        assert_eq!(cubic.most, 50 * MSS, "a flow that has begun again has lost no room");
    }

    /// Time in which nothing was in flight does not count (RFC 9438, section 5.8).
    #[test]
    fn idling_does_not_count() {
        let (mut busy, window) = grown(100 * MSS, 100, 10);
        let mut idle = busy;
        let pause = Duration::from_mins(5);
        let now = Instant::from_millis(1100);
        idle.idle(now + pause, pause);
        let rtt = Duration::from_millis(100);
        let grown = busy.grow(now, rtt, window, MSS, MSS);
        assert_eq!(idle.grow(now + pause, rtt, window, MSS, MSS), grown);
        idle.idle(now + pause, pause * 9);
        assert_eq!(idle.epoch.map(|(begin, _)| begin), Some(now + pause), "no epoch begins in the future");
        let mut none = Cubic::default();
        none.idle(now, pause);
        assert_eq!(none.epoch, None);
    }

    /// The window grows by at most a half in a round trip, however much time has passed (RFC 9438, section 4.2).
    #[test]
    fn the_target_is_bounded() {
        let (mut cubic, _) = grown(100 * MSS, 100, 1);
        let late = Instant::from_millis(100_000);
        let mut window = 70 * MSS;
        (0..70).for_each(|_| window = cubic.grow(late, Duration::from_millis(100), window, MSS, MSS));
        assert!((100 * MSS..=105 * MSS).contains(&window), "{window}");
    }

    fn grown(cwnd: u32, rtt: u64, rounds: u64) -> (Cubic, u32) {
        let mut cubic = Cubic::default();
        let mut window = cubic.reduce(cwnd, MSS);
        for round in 0..rounds {
            let now = Instant::from_millis(round * rtt);
            for _ in 0..window / MSS {
                window = cubic.grow(now, Duration::from_millis(rtt), window, MSS, MSS);
            }
        }
        (cubic, window)
    }

    /// With a small window and a short round trip, CUBIC grows as its estimate of Reno: 9/17 of a segment per round
    /// trip (RFC 9438, section 4.3).
    #[test]
    fn the_friendly_region() {
        let (cubic, window) = grown(20 * MSS, 10, 10);
        assert_eq!(window, cubic.estimate);
        assert!((18_900..=19_400).contains(&window), "14 segments and ten times 0.529: {window}");
    }

    /// With a large window and a long round trip, the window follows the cubic function.
    #[test]
    fn the_cubic_region() {
        let (cubic, window) = grown(1000 * MSS, 200, 22);
        let expected = cubic.window(22 * 200_000, cubic.k(700 * MSS, MSS), MSS);
        assert!((i128::from(window) - expected).abs() < i128::from(12 * MSS), "{window}, {expected}");
        assert!(window > cubic.estimate && window < 1000 * MSS);
    }
}
