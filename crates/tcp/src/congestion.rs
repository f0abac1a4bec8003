//! The congestion window in slow start, congestion avoidance and fast recovery: Tahoe, Reno (RFC 5681), `NewReno` (RFC
//! 6582), selective acknowledgments (RFC 6675), and recovery per segment as in Linux.

use crate::{Avoidance, Cubic, Profile, Recovery, Seq};
use wire::{Duration, Instant};

/// The largest window that window scaling can express, in bytes (RFC 7323, section 2.3).
const MOST: u32 = 65_535 << 14;

/// What a sender is to do after an acknowledgment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Advice {
    /// Send as before.
    Continue,
    /// Resend the first unacknowledged segment, and restart the timer.
    Resend,
    /// Resend the first unacknowledged segment, but do not restart the timer, because this is not the first partial
    /// acknowledgment (RFC 6582, section 3.2, step 3).
    ResendOnly,
    /// Resend all unacknowledged data, as the window permits.
    GoBack,
}

/// Whether a fast recovery is under way, and what has arrived in it (RFC 6582, section 3.2; RFC 6675, section 5).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Phase {
    /// No fast recovery is under way.
    #[default]
    No,
    /// Fast recovery has begun. With [`Recovery::NewReno`], no partial acknowledgment has arrived in it.
    Begun,
    /// [`Recovery::NewReno`]: a partial acknowledgment has arrived in this fast recovery.
    Partial,
}

/// The congestion window of a sender, and the state from which it is computed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Congestion {
    pub(crate) cwnd: u32,
    pub(crate) ssthresh: u32,
    pub(crate) duplicates: u32,
    pub(crate) phase: Phase,
    /// The end of the data sent when the last recovery or time-out began, or with [`Recovery::Sack`] when data was sent
    /// again for a smaller path MTU (RFC 6582, section 3.2; `RecoveryPoint` of RFC 6675). At first it is the sequence
    /// number of this end's SYN. Recovery per segment does not change it.
    pub(crate) recover: Seq,
    method: Recovery,
    mss: u32,
    /// The initial window, in bytes.
    pub(crate) initial: u32,
    threshold: u32,
    limits: bool,
    each_rto: bool,
    avoidance: Avoidance,
    pub(crate) cubic: Cubic,
    /// The number of acknowledged segments that have not raised the window yet; used with [`Recovery::Segments`] only.
    pub(crate) counted: u32,
}

/// Returns a window of bytes after the segment size changed from `before` to `mss`, with the same number of whole segments. A
/// threshold that was never set stays.
pub(crate) fn in_segments(bytes: u32, before: u32, mss: u32) -> u32 {
    if bytes == MOST { MOST } else { (bytes / before.max(1)).saturating_mul(mss).min(MOST) }
}

impl Congestion {
    /// Returns the state of a new connection. `iss` is the sequence number of its SYN. `sack`: both ends support
    /// selective acknowledgments.
    pub(crate) fn new(profile: &Profile, mss: u32, iss: Seq, sack: bool) -> Self {
        let initial = mss.saturating_mul(profile.initial_window.max(1)).min(MOST);
        let method = match profile.recovery {
            Recovery::Sack | Recovery::Segments(_) if !sack => Recovery::NewReno,
            method => method,
        };
        Self {
            cwnd: initial,
            ssthresh: MOST, // "arbitrarily high": RFC 5681, section 3.1
            duplicates: 0,
            phase: Phase::No,
            recover: iss,
            method,
            mss,
            initial,
            threshold: profile.duplicates.max(1),
            limits: profile.limited_transmit,
            each_rto: profile.ssthresh_each_rto,
            avoidance: profile.avoidance,
            cubic: Cubic::default(),
            counted: 0,
        }
    }

    /// Takes over the windows and the state of recovery of another host.
    pub(crate) fn restore(&mut self, cwnd: u32, initial: u32, ssthresh: u32, duplicates: u32, phase: Phase) {
        (self.cwnd, self.initial, self.ssthresh) = (cwnd.min(MOST), initial.min(MOST), ssthresh.min(MOST));
        (self.duplicates, self.phase) = (duplicates, phase);
    }

    /// Returns whether fast recovery is under way.
    pub(crate) const fn recovering(&self) -> bool {
        !matches!(self.phase, Phase::No)
    }

    /// Returns whether the recovery is [`Recovery::Sack`].
    pub(crate) const fn by_sack(&self) -> bool {
        matches!(self.method, Recovery::Sack)
    }

    pub(crate) const fn threshold(&self) -> u32 {
        self.threshold
    }

    /// Sets the segment size. The window is counted in bytes, so it stays, but it is at least one segment.
    pub(crate) fn resize(&mut self, mss: u32) {
        self.mss = mss;
        self.cwnd = self.cwnd.max(mss);
    }

    /// Sets the segment size of a sender that counts segments: each window keeps its number of segments (Linux).
    pub(crate) fn resize_in_segments(&mut self, mss: u32) {
        let before = self.mss.max(1);
        for window in [&mut self.cwnd, &mut self.ssthresh, &mut self.initial] {
            *window = in_segments(*window, before, mss);
        }
        self.cubic.resize(before, mss);
        self.resize(mss);
    }

    /// Sets the window to one segment after lost SYNs (RFC 5681, section 3.1).
    pub(crate) const fn lost_syn(&mut self) {
        self.cwnd = self.mss;
    }

    /// Limits the window to the initial window after an idle time longer than a time-out (RFC 5681, section 4.1). Moves
    /// the epoch of CUBIC by `idle`.
    pub(crate) fn idle(&mut self, now: Instant, idle: Duration) {
        self.cwnd = self.cwnd.min(self.initial);
        self.cubic.idle(now, idle);
    }

    /// Returns how many bytes limited transmit permits beyond the window: one segment for each duplicate acknowledgment
    /// below the threshold (RFC 3042, section 2). Returns zero in a recovery, and without limited transmit.
    pub(crate) const fn allowance(&self) -> u32 {
        let counts = self.limits && !self.recovering() && self.duplicates < self.threshold;
        if counts { self.duplicates.saturating_mul(self.mss) } else { 0 }
    }

    /// Updates the window and the phase of recovery after `ack` acknowledged `acked` new bytes. `flight` bytes are
    /// still unacknowledged. `clock` is the current time and the smoothed round trip. Returns what the sender is to do.
    pub(crate) fn new_ack(
        &mut self,
        ack: Seq,
        acked: u32,
        flight: u32,
        clock: (Instant, Duration),
    ) -> Advice {
        self.duplicates = 0;
        if !self.recovering() {
            self.grow(acked, clock);
            return Advice::Continue;
        }
        match self.method {
            Recovery::NewReno if ack.before(self.recover) => return self.partial(acked),
            Recovery::Sack if ack.before(self.recover) => return Advice::Continue,
            _ => {}
        }
        self.phase = Phase::No;
        // At the end of a recovery, RFC 5681 sets the window to the threshold. RFC 6582 permits a smaller window, which
        // avoids a burst.
        let newreno = self.method == Recovery::NewReno;
        let calm = if newreno { flight.max(self.mss) + self.mss } else { self.ssthresh };
        self.cwnd = self.ssthresh.min(calm);
        Advice::Continue
    }

    /// Handles a partial acknowledgment (RFC 6582, section 3.2, step 3). The window is deflated by the acknowledged
    /// bytes. If at least one segment was acknowledged, one segment is added. The window stays at least one segment.
    fn partial(&mut self, acked: u32) -> Advice {
        let room = if acked >= self.mss { self.mss } else { 0 };
        self.cwnd = (self.cwnd.saturating_sub(acked) + room).max(self.mss);
        let before = std::mem::replace(&mut self.phase, Phase::Partial);
        if before == Phase::Begun { Advice::Resend } else { Advice::ResendOnly }
    }

    fn grow(&mut self, acked: u32, (now, srtt): (Instant, Duration)) {
        let more = if self.cwnd < self.ssthresh {
            acked.min(self.mss) // RFC 5681, equation 2
        } else if self.avoidance == Avoidance::Cubic {
            self.cubic.grow(now, srtt, self.cwnd, acked, self.mss).saturating_sub(self.cwnd)
        } else {
            let square = u64::from(self.mss) * u64::from(self.mss);
            ((square / u64::from(self.cwnd.max(1))) as u32).max(1) // equation 3
        };
        self.cwnd = self.cwnd.saturating_add(more).min(MOST);
    }

    /// Counts a duplicate acknowledgment of `una`. The duplicate that indicates a loss begins a recovery, or with
    /// [`Recovery::Tahoe`] a slow start. In a recovery, duplicates inflate the window, except with [`Recovery::Sack`].
    /// `max`: the end of the data sent. `window`: the peer's window, in bytes. `lost`: whether selective
    /// acknowledgments already show that the first segment is lost (RFC 6675, section 5, step 2).
    pub(crate) fn duplicate(&mut self, una: Seq, max: Seq, window: u32, lost: bool) -> Advice {
        if self.recovering() {
            if !self.by_sack() {
                self.cwnd = self.cwnd.saturating_add(self.mss).min(MOST);
            }
            return Advice::Continue;
        }
        self.duplicates = self.duplicates.saturating_add(1);
        let enough = match self.method {
            Recovery::Sack => self.duplicates >= self.threshold || lost,
            _ => self.duplicates == self.threshold,
        };
        if !enough || !self.may_begin(una) {
            return Advice::Continue;
        }
        self.halve(max.since(una), window);
        self.recover = max;
        match self.method {
            Recovery::Tahoe => {
                self.cwnd = self.mss;
                self.duplicates = 0;
                return Advice::GoBack;
            }
            // The window is not inflated: the scoreboard shows which data left the network (RFC 6675, section 5, step
            // 4.2).
            Recovery::Sack => self.cwnd = self.ssthresh,
            _ => self.cwnd = self.ssthresh.saturating_add(self.threshold.saturating_mul(self.mss)).min(MOST),
        }
        self.phase = Phase::Begun;
        Advice::Resend
    }

    /// Returns whether duplicate acknowledgments of `una` may begin a recovery. Except with Reno, they may not if `una`
    /// is data from before the last recovery or time-out: retransmissions of such data can cause duplicates (RFC 6582,
    /// section 3.2, step 2; RFC 6675, section 5.1).
    const fn may_begin(&self, una: Seq) -> bool {
        match self.method {
            Recovery::Reno => true,
            Recovery::Tahoe | Recovery::NewReno => una.after(self.recover),
            Recovery::Sack | Recovery::Segments(_) => !una.before(self.recover),
        }
    }

    /// Ends the current recovery, if there is one. Only for [`Recovery::Sack`]. The caller sends all data up to `max`
    /// again, for another reason than a loss. Duplicate acknowledgments that these retransmissions cause do not begin a
    /// recovery.
    pub(crate) const fn sent_again(&mut self, max: Seq) {
        self.phase = Phase::No;
        self.recover = max;
    }

    /// Sets the window to one segment after a time-out. Lowers the threshold if `first`, or with `ssthresh_each_rto`.
    /// `first`: the first time-out since the peer's last answer.
    pub(crate) fn timeout(&mut self, una: Seq, max: Seq, window: u32, first: bool) {
        if first || self.each_rto {
            self.halve(max.since(una), window);
        }
        self.cubic.timed_out();
        self.cwnd = self.mss; // the loss window: RFC 5681, section 3.1
        self.duplicates = 0;
        self.phase = Phase::No;
        self.recover = max;
    }

    fn halve(&mut self, flight: u32, window: u32) {
        // 4.4BSD halves the smaller of the congestion window and the peer's window. RFC 5681, equation 4, halves the
        // unacknowledged data. Without selective acknowledgments, the unacknowledged data includes data that the peer
        // stores beyond a gap. After a long recovery, the unacknowledged data can be several windows, and a time-out
        // would raise the threshold. Therefore `flight` is limited to what the network can hold: the window, or in a
        // recovery twice the threshold. Segments of limited transmit do not count (RFC 3042, section 2).
        let network = if self.recovering() { self.ssthresh.saturating_mul(2) } else { self.cwnd };
        let load = if self.each_rto { self.cwnd.min(window) } else { flight.min(network) };
        self.ssthresh = match self.avoidance {
            Avoidance::Reno => (load / 2).max(2 * self.mss),
            Avoidance::Cubic => self.cubic.reduce(load, self.mss),
        };
    }

    // --- per-segment recovery: the window in whole segments, as in Linux --------------------------------------------

    /// Sets the threshold after a loss, from the window (Linux: `tcp_reno_ssthresh`, `cubictcp_recalc_ssthresh`).
    pub(crate) fn lower(&mut self) {
        let mss = self.mss.max(1);
        let threshold = match self.avoidance {
            Avoidance::Reno => self.cwnd / mss / 2,
            Avoidance::Cubic => self.cubic.reduce(self.cwnd, mss) / mss,
        };
        self.ssthresh = threshold.max(2) * mss;
        self.counted = 0;
    }

    /// Returns the threshold. Outside a recovery, it is at least three quarters of the window (Linux:
    /// `tcp_current_ssthresh`).
    pub(crate) fn current_threshold(&self) -> u32 {
        if self.recovering() { self.ssthresh } else { self.ssthresh.max(self.cwnd / 4 * 3) }
    }

    /// Undoes a reduction. Neither the window nor the threshold becomes smaller.
    pub(crate) fn restore_window(&mut self, cwnd: u32, ssthresh: u32) {
        (self.cwnd, self.ssthresh) = (self.cwnd.max(cwnd), self.ssthresh.max(ssthresh));
    }

    /// Grows the window: `delivered` segments arrived, and the window limited the sender.
    pub(crate) fn raise(&mut self, now: Instant, smoothed: Option<(Duration, Duration)>, delivered: u32) {
        let (mss, mut rest) = (self.mss.max(1), delivered);
        if self.cwnd < self.ssthresh {
            let room = (self.ssthresh - self.cwnd).div_ceil(mss).min(rest);
            self.cwnd = self.cwnd.saturating_add(room * mss).min(self.ssthresh);
            rest -= room;
        }
        if rest > 0 && self.avoidance == Avoidance::Cubic {
            let srtt = smoothed.map_or(Duration::ZERO, |(srtt, _)| srtt);
            self.cwnd = self.cubic.grow(now, srtt, self.cwnd, rest * mss, mss);
        } else if rest > 0 {
            let window = (self.cwnd / mss).max(1);
            self.counted += rest;
            self.cwnd = self.cwnd.saturating_add(self.counted / window * mss);
            self.counted %= window;
        }
        self.cwnd = self.cwnd.min(MOST);
    }

    /// Shrinks a window of which at most `used` segments were used within a time-out: the unused part is halved. The
    /// initial window counts as used (RFC 2861, section 3.2; Linux: `tcp_cwnd_application_limited`).
    pub(crate) fn not_used(&mut self, used: u32) {
        let used = used.max(self.initial / self.mss.max(1)) * self.mss;
        if used < self.cwnd {
            self.ssthresh = self.current_threshold();
            self.cwnd = (self.cwnd / self.mss.max(1)).midpoint(used / self.mss.max(1)) * self.mss;
        }
    }

    /// Halves the window once for each time-out that ends within `idle`, the time in which nothing was sent. A window
    /// above the initial window stays at least the initial window (Linux: `tcp_cwnd_restart`).
    pub(crate) fn restart(&mut self, idle: Duration, rto: Duration) {
        self.ssthresh = self.current_threshold();
        let least = self.cwnd.min(self.initial);
        let mut left = idle;
        while let Some(rest) = left.checked_sub(rto).filter(|rest| !rest.is_zero() && !rto.is_zero()) {
            if self.cwnd <= least {
                break;
            }
            (left, self.cwnd) = (rest, self.cwnd / 2);
        }
        self.cwnd = self.cwnd.max(least);
        self.counted = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOCK: (Instant, Duration) = (Instant::ZERO, Duration::ZERO);

    fn congestion(profile: &Profile) -> Congestion {
        Congestion::new(profile, 1000, Seq(0), true)
    }

    fn newreno() -> Profile {
        Profile { recovery: Recovery::NewReno, ..Profile::rfc6298_reno() }
    }

    #[test]
    fn slow_start_doubles_and_avoidance_adds_one_segment_a_round() {
        let mut c = congestion(&newreno());
        assert_eq!(c.cwnd, 3000);
        (0..3).for_each(|_| _ = c.new_ack(Seq(1), 1000, 0, CLOCK));
        assert_eq!(c.cwnd, 6000);
        c.new_ack(Seq(1), 4000, 0, CLOCK);
        assert_eq!(c.cwnd, 7000, "at most one segment an acknowledgment");
        c.ssthresh = 7000;
        (0..7).for_each(|_| _ = c.new_ack(Seq(1), 1000, 0, CLOCK));
        assert!((7900..=8000).contains(&c.cwnd), "{}", c.cwnd);
    }

    #[test]
    fn the_third_duplicate_halves_and_each_further_inflates() {
        let mut c = congestion(&Profile::rfc6298_reno());
        c.cwnd = 10_000;
        let (una, max) = (Seq(1), Seq(10_001));
        assert_eq!(c.duplicate(una, max, 65535, false), Advice::Continue);
        assert_eq!(c.duplicate(una, max, 65535, false), Advice::Continue);
        assert_eq!(c.duplicate(una, max, 65535, false), Advice::Resend);
        assert_eq!((c.ssthresh, c.cwnd), (5000, 8000));
        c.duplicate(una, max, 65535, false);
        assert_eq!(c.cwnd, 9000);
        c.new_ack(Seq(2001), 2000, 8000, CLOCK);
        assert_eq!((c.cwnd, c.recovering()), (5000, false), "Reno leaves with the first");
    }

    #[test]
    fn newreno_stays_until_all_is_acknowledged() {
        let mut c = congestion(&newreno());
        c.cwnd = 10_000;
        (0..3).for_each(|_| _ = c.duplicate(Seq(1), Seq(10_001), 65535, false));
        assert_eq!(c.new_ack(Seq(2001), 2000, 8000, CLOCK), Advice::Resend);
        assert_eq!(c.cwnd, 7000);
        assert_eq!(c.new_ack(Seq(4001), 2000, 6000, CLOCK), Advice::ResendOnly);
        assert_eq!(c.new_ack(Seq(10_001), 6000, 1000, CLOCK), Advice::Continue);
        assert_eq!((c.cwnd, c.recovering()), (2000, false));
        (0..5)
            .for_each(|_| assert_eq!(c.duplicate(Seq(10_001), Seq(11_001), 65535, false), Advice::Continue));
    }

    /// A time-out in a recovery does not raise the threshold, although 40 kB are unacknowledged. The network held 10 kB
    /// when the first gap was found.
    #[test]
    fn a_timeout_in_a_long_recovery_does_not_raise_the_threshold() {
        let mut c = congestion(&newreno());
        c.cwnd = 10_000;
        (0..33).for_each(|_| _ = c.duplicate(Seq(1), Seq(10_001), 65535, false));
        assert_eq!((c.ssthresh, c.cwnd), (5000, 38_000));
        c.timeout(Seq(1), Seq(40_001), 65535, true);
        assert_eq!((c.ssthresh, c.cwnd), (5000, 1000));
    }

    #[test]
    fn a_second_timeout_holds_the_threshold_unless_told() {
        for (each_rto, expected) in [(false, 5000), (true, 2000)] {
            let mut c = congestion(&Profile { ssthresh_each_rto: each_rto, ..newreno() });
            c.cwnd = 10_000;
            c.timeout(Seq(1), Seq(10_001), 65535, true);
            assert_eq!((c.cwnd, c.ssthresh), (1000, 5000));
            c.timeout(Seq(1), Seq(10_001), 65535, false);
            assert_eq!(c.ssthresh, expected);
        }
    }

    fn with(recovery: Recovery) -> Congestion {
        let mut c = congestion(&Profile { recovery, limited_transmit: true, ..Profile::rfc6298_reno() });
        c.cwnd = 10_000;
        c
    }

    #[test]
    fn tahoe_begins_anew_and_not_twice_for_one_loss() {
        let mut c = with(Recovery::Tahoe);
        let advice = [(); 3].map(|()| c.duplicate(Seq(1), Seq(10_001), 65535, false));
        assert_eq!(advice, [Advice::Continue, Advice::Continue, Advice::GoBack]);
        assert_eq!((c.ssthresh, c.cwnd, c.recovering()), (5000, 1000, false));
        (0..9).for_each(|_| assert_eq!(c.duplicate(Seq(5001), Seq(10_001), 65535, false), Advice::Continue));
    }

    /// With selective acknowledgments, a reported loss begins a recovery, and the window is not inflated (RFC 6675,
    /// section 5). After a time-out, no recovery begins until all data from before the time-out is acknowledged (RFC
    /// 6675, section 5.1).
    #[test]
    fn by_selective_acknowledgments() {
        let mut c = with(Recovery::Sack);
        assert_eq!(c.duplicate(Seq(1), Seq(10_001), 65535, true), Advice::Resend);
        assert_eq!((c.ssthresh, c.cwnd, c.recovering()), (5000, 5000, true));
        c.duplicate(Seq(1), Seq(10_001), 65535, true);
        assert_eq!(
            (c.new_ack(Seq(2001), 2000, 8000, CLOCK), c.cwnd, c.recovering()),
            (Advice::Continue, 5000, true)
        );
        c.timeout(Seq(2001), Seq(10_001), 65535, true);
        assert_eq!(c.duplicate(Seq(2001), Seq(10_001), 65535, true), Advice::Continue);
        assert_eq!(c.duplicate(Seq(10_001), Seq(12_001), 65535, true), Advice::Resend);
        let none = Congestion::new(&Profile::linux(), 1000, Seq(0), false);
        assert_eq!(none.method, Recovery::NewReno, "the peer does not speak of it");
    }

    /// A loss leaves 0.7 of the window (RFC 9438, section 4.6). Then the window grows with time, not with
    /// acknowledgments alone.
    #[test]
    fn cubic_beside_reno() {
        let after = |avoidance| {
            let mut c = congestion(&Profile { avoidance, ..newreno() });
            c.cwnd = 100_000;
            c.timeout(Seq(1), Seq(100_001), 200_000, true);
            let threshold = c.ssthresh;
            assert_eq!(c.cubic.most, 0, "section 4.8");
            c.cwnd = threshold;
            for round in 0..40 {
                let clock = (Instant::from_millis(100 * round), Duration::from_millis(100));
                (0..c.cwnd / 1000).for_each(|_| _ = c.new_ack(Seq(1), 1000, 0, clock));
            }
            (threshold, c.cwnd / 10_000)
        };
        assert_eq!(after(Avoidance::Reno), (50_000, 8), "40 segments in 40 round trips");
        assert_eq!(after(Avoidance::Cubic), (70_000, 9), "0.4 times 4 cubed, and 70");
    }

    /// An idle time does not count for the cubic curve: the begin of the epoch moves by the idle time (RFC 9438,
    /// section 5.8).
    #[test]
    fn idling_moves_the_begin_of_cubic() {
        let mut c = congestion(&Profile { avoidance: Avoidance::Cubic, ..newreno() });
        (c.cwnd, c.cubic.epoch) = (100_000, Some((Instant::from_millis(100), 50_000)));
        c.idle(Instant::from_millis(9000), Duration::from_secs(8));
        assert_eq!((c.cwnd, c.cubic.epoch), (3000, Some((Instant::from_millis(8100), 50_000))));
    }

    /// Limited transmit permits two new segments (RFC 3042). They do not count when the window is halved.
    #[test]
    fn limited_transmit_lets_two_out() {
        let mut c = with(Recovery::NewReno);
        let seen = [(); 3].map(|()| (c.allowance(), c.duplicate(Seq(1), Seq(10_001), 65535, false)).0);
        assert_eq!((seen, c.allowance()), ([0, 1000, 2000], 0));
        let mut c = with(Recovery::NewReno);
        c.cwnd = 8000;
        (0..3).for_each(|_| _ = c.duplicate(Seq(1), Seq(10_001), 65535, false));
        assert_eq!(c.ssthresh, 4000);
    }
}
