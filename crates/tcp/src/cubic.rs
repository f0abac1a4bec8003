//! CUBIC (RFC 9438), in integers, so that every machine has the same result: bytes, and microseconds.

use wire::{Duration, Instant};

/// The multiplicative decrease, in tenths (section 4.6: 0.7).
const BETA: u64 = 7;
/// `t` and `K` in a second.
const SECOND: i128 = 1_000_000;

/// How the window grows where it is not slow start; names are those of section 4.1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Cubic {
    /// `W_max`, in bytes.
    pub most: u32,
    /// `cwnd_prior`, in bytes.
    pub prior: u32,
    /// When congestion avoidance began, and the window then; `None`: it has not.
    pub epoch: Option<(Instant, u32)>,
    /// `W_est`, in bytes.
    pub estimate: u32,
    /// What was too little for a byte: of the window, and of `W_est`.
    pub carry: (u64, u64),
}

impl Cubic {
    /// The threshold after a loss with this window (sections 4.6 and 4.7).
    pub(crate) fn reduce(&mut self, cwnd: u32, mss: u32) -> u32 {
        let share = |tenths: u64, of: u64| (u64::from(cwnd) * tenths / of) as u32;
        // Fast convergence: a flow that lost room since the last time gives up some more.
        self.most = if cwnd < self.most { share(10 + BETA, 20) } else { cwnd };
        (self.prior, self.epoch) = (cwnd, None);
        share(BETA, 10).max(2 * mss)
    }

    /// Nothing was sent for a while: time that passed so does not count (section 4.2).
    pub(crate) const fn idle(&mut self) {
        self.epoch = None;
    }

    /// `acked` bytes were acknowledged: the window from now on (sections 4.2 to 4.5).
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
            return cwnd.max(self.estimate); // section 4.3: as Reno would
        }
        let highest = i128::from(cwnd) * 3 / 2;
        let target = self.window(t + micros(srtt), k, mss).clamp(i128::from(cwnd), highest);
        let more = (target - i128::from(cwnd)) as u64 * u64::from(acked) + self.carry.0;
        let window = u64::from(cwnd).max(1);
        self.carry.0 = more % window;
        cwnd.saturating_add((more / window) as u32)
    }

    /// `W_est` (section 4.3, figure 4): Reno's growth, slower as its decrease is smaller, until it is what it was.
    fn estimate(&mut self, cwnd: u32, acked: u32, mss: u32) {
        let (times, of) = if self.estimate >= self.prior { (1, 1) } else { (3 * (10 - BETA), 10 + BETA) };
        let more = u64::from(mss) * u64::from(acked) * times + self.carry.1;
        let whole = u64::from(cwnd).max(1) * of;
        self.carry.1 = more % whole;
        self.estimate = self.estimate.saturating_add((more / whole) as u32);
    }

    /// `W_cubic(t)` in bytes (figure 1): C is 0.4 segments a second cubed.
    fn window(&self, t: i128, k: i128, mss: u32) -> i128 {
        let off = t - k;
        let cube = off * off * off * 4 * i128::from(mss) / (10 * SECOND * SECOND * SECOND);
        i128::from(self.most) + cube
    }

    /// `K` in microseconds (figure 2): when the window is `W_max` again.
    fn k(&self, at_begin: u32, mss: u32) -> i128 {
        let short = i128::from(self.most.saturating_sub(at_begin));
        cube_root(short * 10 * SECOND * SECOND * SECOND / (4 * i128::from(mss.max(1))))
    }
}

const fn micros(span: Duration) -> i128 {
    span.as_micros().cast_signed()
}

/// The whole part of it.
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

    /// Section 4.2: from 70 segments after a loss at 100, K is the cube root of 30 / 0.4, which is 4.217 s.
    #[test]
    fn k_and_the_window_by_hand() {
        let mut cubic = Cubic::default();
        assert_eq!(cubic.reduce(100 * MSS, MSS), 70 * MSS);
        let k = cubic.k(70 * MSS, MSS);
        assert_eq!(k / 1000, 4217);
        let at = |ms: i128| cubic.window(ms * 1000, k, MSS);
        assert!((i128::from(70 * MSS) - at(0)).abs() <= 1, "{}", at(0));
        assert!((99_900..=100_000).contains(&at(4217)));
        // One second later than K: 0.4 segments; two: 3.2.
        assert!((100_390..=100_400).contains(&at(5217)) && (103_190..=103_200).contains(&at(6217)));
        assert_eq!([0, 1, 7, 8, 26, 27].map(cube_root), [0, 1, 1, 2, 2, 3]);
    }

    /// Section 4.7: a second loss below the first one's window.
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

    /// Section 4.3: with a small window and a short round trip Reno would be faster, and CUBIC is as fast as that: 9/17 of a
    /// segment a round trip.
    #[test]
    fn the_friendly_region() {
        let (cubic, window) = grown(20 * MSS, 10, 10);
        assert_eq!(window, cubic.estimate);
        assert!((18_900..=19_400).contains(&window), "14 segments and ten times 0.529: {window}");
    }

    /// Far from it, the window is where the cubic function has it.
    #[test]
    fn the_cubic_region() {
        let (cubic, window) = grown(1000 * MSS, 200, 22);
        let expected = cubic.window(22 * 200_000, cubic.k(700 * MSS, MSS), MSS);
        assert!((i128::from(window) - expected).abs() < i128::from(12 * MSS), "{window}, {expected}");
        assert!(window > cubic.estimate && window < 1000 * MSS);
    }
}
