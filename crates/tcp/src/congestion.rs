//! Slow start, congestion avoidance, fast retransmit and fast recovery (RFC 5681; RFC 6582 by knob).

use crate::{Profile, Seq};

/// Duplicates that mean a loss (RFC 5681, section 3.2).
const DUPLICATES: u32 = 3;
/// The largest window that scaling can say (RFC 7323, section 2.2); more would be no use.
const MOST: u32 = 65_535 << 14;

/// What a sender is to do after an acknowledgment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Advice {
    /// Go on.
    Continue,
    /// Send the first unacknowledged segment again, and start the timer anew.
    Resend,
    /// Send it again, but let the timer run: not the first partial acknowledgment (RFC 6582, section 3.2, step 3).
    ResendOnly,
}

/// Where fast recovery stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Recovery {
    No,
    Begun,
    /// A partial acknowledgment has come.
    Partial,
}

/// The congestion window of a sender.
#[derive(Clone, Debug)]
pub struct Congestion {
    cwnd: u32,
    ssthresh: u32,
    mss: u32,
    initial: u32,
    duplicates: u32,
    recovery: Recovery,
    /// All below was sent when the last recovery or time-out began (RFC 6582, section 3.2).
    recover: Seq,
    newreno: bool,
    each_rto: bool,
}

impl Congestion {
    /// A new connection; `iss` is the number of its SYN.
    pub fn new(profile: &Profile, mss: u32, iss: Seq) -> Self {
        let initial = mss.saturating_mul(profile.initial_window.max(1)).min(MOST);
        Self {
            cwnd: initial,
            ssthresh: MOST, // "arbitrarily high": RFC 5681, section 3.1
            mss,
            initial,
            duplicates: 0,
            recovery: Recovery::No,
            recover: iss,
            newreno: profile.newreno,
            each_rto: profile.ssthresh_each_rto,
        }
    }

    /// The congestion window, in bytes.
    pub const fn cwnd(&self) -> u32 {
        self.cwnd
    }

    /// The slow start threshold, in bytes.
    pub const fn ssthresh(&self) -> u32 {
        self.ssthresh
    }

    /// Whether fast recovery is under way.
    pub const fn recovering(&self) -> bool {
        !matches!(self.recovery, Recovery::No)
    }

    /// Segments have another size from now on. The window is counted in bytes, and stays.
    pub(crate) fn resize(&mut self, mss: u32) {
        self.mss = mss;
        self.cwnd = self.cwnd.max(mss);
    }

    /// The handshake lost a SYN: one segment to begin with (RFC 5681, section 3.1).
    pub(crate) const fn lost_syn(&mut self) {
        self.cwnd = self.mss;
    }

    /// Nothing was sent for longer than a time-out (RFC 5681, section 4.1).
    pub(crate) fn idle(&mut self) {
        self.cwnd = self.cwnd.min(self.initial);
    }

    /// `ack` acknowledged `acked` new bytes; `flight` are still on their way.
    pub(crate) fn new_ack(&mut self, ack: Seq, acked: u32, flight: u32) -> Advice {
        self.duplicates = 0;
        if !self.recovering() {
            self.grow(acked);
            return Advice::Continue;
        }
        if self.newreno && ack.before(self.recover) {
            // RFC 6582, section 3.2, step 3, partial: deflate by what left the network, plus one that it made room for.
            let room = if acked >= self.mss { self.mss } else { 0 };
            self.cwnd = (self.cwnd.saturating_sub(acked) + room).max(self.mss);
            let before = std::mem::replace(&mut self.recovery, Recovery::Partial);
            return if before == Recovery::Begun { Advice::Resend } else { Advice::ResendOnly };
        }
        self.recovery = Recovery::No;
        // The smaller form of RFC 6582 avoids a burst; RFC 5681 deflates to the threshold.
        let calm = if self.newreno { flight.max(self.mss) + self.mss } else { self.ssthresh };
        self.cwnd = self.ssthresh.min(calm);
        Advice::Continue
    }

    fn grow(&mut self, acked: u32) {
        let more = if self.cwnd < self.ssthresh {
            acked.min(self.mss) // RFC 5681, equation 2
        } else {
            let square = u64::from(self.mss) * u64::from(self.mss);
            ((square / u64::from(self.cwnd.max(1))) as u32).max(1) // equation 3
        };
        self.cwnd = self.cwnd.saturating_add(more).min(MOST);
    }

    /// A duplicate of the acknowledgment of `una` came; below `max` all was sent, `window` is the peer's.
    pub(crate) fn duplicate(&mut self, una: Seq, max: Seq, window: u32) -> Advice {
        if self.recovering() {
            self.cwnd = self.cwnd.saturating_add(self.mss).min(MOST);
            return Advice::Continue;
        }
        self.duplicates = self.duplicates.saturating_add(1);
        // RFC 6582, section 3.2, step 2: duplicates of what was sent twice are no new loss.
        if self.duplicates != DUPLICATES || (self.newreno && !una.after(self.recover)) {
            return Advice::Continue;
        }
        self.halve(max.since(una), window);
        self.recover = max;
        self.recovery = Recovery::Begun;
        self.cwnd = self.ssthresh.saturating_add(DUPLICATES * self.mss);
        Advice::Resend
    }

    /// The retransmission timer went off; `first` says for the first time since something new was acknowledged.
    pub(crate) fn timeout(&mut self, una: Seq, max: Seq, window: u32, first: bool) {
        if first || self.each_rto {
            self.halve(max.since(una), window);
        }
        self.cwnd = self.mss; // the loss window: RFC 5681, section 3.1
        self.duplicates = 0;
        self.recovery = Recovery::No;
        self.recover = max;
    }

    fn halve(&mut self, flight: u32, window: u32) {
        // 4.4BSD takes what it might have sent; RFC 5681, equation 4, what it did send. Without selective acknowledgments
        // that counts what the peer keeps beyond a gap: a time-out in the middle of a long recovery would find several
        // windows on their way, and raise the threshold. More than the window was never in the network.
        let network = if self.recovering() { self.ssthresh.saturating_mul(2) } else { self.cwnd };
        let load = if self.each_rto { self.cwnd.min(window) } else { flight.min(network) };
        self.ssthresh = (load / 2).max(2 * self.mss);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn congestion(profile: &Profile) -> Congestion {
        Congestion::new(profile, 1000, Seq(0))
    }

    fn newreno() -> Profile {
        Profile { newreno: true, ..Profile::rfc6298_reno() }
    }

    #[test]
    fn slow_start_doubles_and_avoidance_adds_one_segment_a_round() {
        let mut c = congestion(&newreno());
        assert_eq!(c.cwnd(), 3000);
        (0..3).for_each(|_| _ = c.new_ack(Seq(1), 1000, 0));
        assert_eq!(c.cwnd(), 6000);
        c.new_ack(Seq(1), 4000, 0);
        assert_eq!(c.cwnd(), 7000, "at most one segment an acknowledgment");
        c.ssthresh = 7000;
        (0..7).for_each(|_| _ = c.new_ack(Seq(1), 1000, 0));
        assert!((7900..=8000).contains(&c.cwnd()), "{}", c.cwnd());
    }

    #[test]
    fn the_third_duplicate_halves_and_each_further_inflates() {
        let mut c = congestion(&Profile::rfc6298_reno());
        c.cwnd = 10_000;
        let (una, max) = (Seq(1), Seq(10_001));
        assert_eq!(c.duplicate(una, max, 65535), Advice::Continue);
        assert_eq!(c.duplicate(una, max, 65535), Advice::Continue);
        assert_eq!(c.duplicate(una, max, 65535), Advice::Resend);
        assert_eq!((c.ssthresh(), c.cwnd()), (5000, 8000));
        c.duplicate(una, max, 65535);
        assert_eq!(c.cwnd(), 9000);
        c.new_ack(Seq(2001), 2000, 8000);
        assert_eq!((c.cwnd(), c.recovering()), (5000, false), "Reno leaves with the first");
    }

    #[test]
    fn newreno_stays_until_all_is_acknowledged() {
        let mut c = congestion(&newreno());
        c.cwnd = 10_000;
        (0..3).for_each(|_| _ = c.duplicate(Seq(1), Seq(10_001), 65535));
        assert_eq!(c.new_ack(Seq(2001), 2000, 8000), Advice::Resend);
        assert_eq!(c.cwnd(), 7000);
        assert_eq!(c.new_ack(Seq(4001), 2000, 6000), Advice::ResendOnly);
        assert_eq!(c.new_ack(Seq(10_001), 6000, 1000), Advice::Continue);
        assert_eq!((c.cwnd(), c.recovering()), (2000, false));
        (0..5).for_each(|_| assert_eq!(c.duplicate(Seq(10_001), Seq(11_001), 65535), Advice::Continue));
    }

    /// The peer keeps 30 kB beyond gaps; ten are what the network held when the first was found.
    #[test]
    fn a_timeout_in_a_long_recovery_does_not_raise_the_threshold() {
        let mut c = congestion(&newreno());
        c.cwnd = 10_000;
        (0..33).for_each(|_| _ = c.duplicate(Seq(1), Seq(10_001), 65535));
        assert_eq!((c.ssthresh(), c.cwnd()), (5000, 38_000));
        c.timeout(Seq(1), Seq(40_001), 65535, true);
        assert_eq!((c.ssthresh(), c.cwnd()), (5000, 1000));
    }

    #[test]
    fn a_second_timeout_holds_the_threshold_unless_told() {
        for (each_rto, expected) in [(false, 5000), (true, 2000)] {
            let mut c = congestion(&Profile { ssthresh_each_rto: each_rto, ..newreno() });
            c.cwnd = 10_000;
            c.timeout(Seq(1), Seq(10_001), 65535, true);
            assert_eq!((c.cwnd(), c.ssthresh()), (1000, 5000));
            c.timeout(Seq(1), Seq(10_001), 65535, false);
            assert_eq!(c.ssthresh(), expected);
        }
    }
}
