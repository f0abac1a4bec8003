//! What an acknowledgment does to the sending half (RFC 9293, section 3.10.7.4; RFC 5681; RFC 6298, section 5).

use crate::Seq;
use crate::congestion::Advice;
use crate::estimator::Sample;
use crate::send::timers::Timer;
use crate::send::{Errand, Fin, Sender};
use wire::{Duration, Instant};

/// What a segment reports to the sending half.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ack<'a> {
    /// The sequence number of the segment.
    pub(crate) seq: Seq,
    /// The cumulative acknowledgment.
    pub(crate) below: Seq,
    /// The peer's window, in bytes.
    pub(crate) window: u32,
    /// Whether the segment has no data, no SYN and no FIN.
    pub(crate) pure: bool,
    pub(crate) blocks: &'a [(Seq, Seq)],
    /// When the segment was sent whose timestamp the peer echoes; `None` without a valid echo.
    pub(crate) echoed: Option<Instant>,
}

impl Sender {
    pub(crate) fn acknowledge(&mut self, now: Instant, ack: Ack<'_>) {
        if !self.tracked || ack.below.after(self.una) || matches!(self.timer, Timer::Persist(_)) {
            (self.unanswered, self.spared) = (0, None);
        }
        let same_window = ack.window == self.window;
        // RFC 9293, section 3.10.7.4: the window is not taken from a segment that is older than the segment of the
        // present window.
        if self.wl1.before(ack.seq) || (self.wl1 == ack.seq && !ack.below.before(self.wl2)) {
            (self.window, self.wl1, self.wl2) = (ack.window, ack.seq, ack.below);
            self.largest_window = self.largest_window.max(ack.window);
        }
        if self.tracked {
            self.answer(now, &ack, same_window);
            return;
        }
        let by_sack = self.congestion.by_sack();
        // RFC 6675, section 2: a segment that reports new data in its blocks counts as a duplicate, whatever else it
        // contains.
        let news = by_sack && self.scoreboard.learn(ack.below, self.max, ack.blocks);
        let further = ack.below.after(self.una);
        if further {
            self.advance(now, ack.below, ack.echoed);
        }
        // RFC 5681, section 2, has five conditions of a duplicate. An answer to a window probe can fulfill them, and is
        // excluded.
        let again = !further && ack.pure && same_window;
        let waits = self.flight() > 0 && !matches!(self.timer, Timer::Persist(_));
        if waits && if by_sack { news } else { again } {
            self.duplicate();
        }
    }

    fn duplicate(&mut self) {
        let lost = self.lost_below().is_some_and(|lost| self.una.before(lost));
        let advice = self.congestion.duplicate(self.una, self.max, self.window, lost);
        self.fast_retransmits += u64::from(matches!(advice, Advice::Resend | Advice::GoBack));
        self.follow(advice);
    }

    fn advance(&mut self, now: Instant, ack: Seq, echoed: Option<Instant>) {
        let acked = ack.since(self.una);
        self.forget(ack);
        self.measure(now, echoed);
        let srtt = self.rto.smoothed().map_or(Duration::ZERO, |(srtt, _)| srtt);
        let advice = self.congestion.new_ack(ack, acked, self.flight(), (now, srtt));
        // RFC 6298, 5.2 and 5.3: the timer stops if everything is acknowledged, and otherwise restarts. Partial
        // acknowledgments after the first do not restart it (RFC 6582, section 3.2, step 3).
        if self.flight() == 0 {
            self.timer = Timer::Off;
        } else if advice != Advice::ResendOnly {
            self.timer = self.retransmit_after(now);
        }
        self.follow(advice);
    }

    /// Moves `una` to `ack`, and removes the data below it, which the peer has received. Notes whether the FIN is
    /// acknowledged.
    pub(crate) fn forget(&mut self, ack: Seq) {
        let acked = ack.since(self.una);
        let data = self.buffer.len().min(acked as usize);
        self.buffer.drain(..data);
        if acked as usize > data && self.fin == Fin::Queued {
            self.fin = Fin::Acknowledged;
        }
        self.una = ack;
        self.next = self.next.latest(ack);
        self.probes = 0;
    }

    /// Takes a round-trip sample, and returns it. If the segment in `timed` is acknowledged, the sample is the time
    /// since that segment was sent. Otherwise it is the age of the echoed timestamp, which shows which transmission was
    /// acknowledged (RFC 7323, section 4). Returns `None` if there is neither.
    pub(crate) fn measure(&mut self, now: Instant, echoed: Option<Instant>) -> Option<Duration> {
        let timed = self.timed.take_if(|(_, end)| !end.after(self.una)).map(|(sent, _)| sent);
        let sent = timed.or(echoed)?;
        // RFC 7323, appendix G: with timestamps, every second segment in flight is expected to give a sample.
        let samples = if echoed.is_some() { self.flight().div_ceil(2 * self.mss).max(1) } else { 1 };
        self.rto.sample(Sample { sent, now, samples, una: self.una, max: self.max });
        Some(now.since(sent))
    }

    fn follow(&mut self, advice: Advice) {
        match advice {
            Advice::Continue => {}
            Advice::Resend => {
                self.errand = Errand::Resend;
                self.timer = Timer::Off; // the retransmission restarts it
                self.begin_sack_recovery();
            }
            Advice::ResendOnly => self.errand = Errand::Resend,
            Advice::GoBack => self.go_back(),
        }
    }
}
