//! Per-segment recovery: the time-out, the tail loss probe, and the wait for reordering.

use super::{Repair, Standing, tail};
use crate::send::timers::Timer;
use crate::send::{Errand, Sender};
use wire::{Duration, Instant};

/// The kernel adds this to the wait for reordering (`TCP_TIMEOUT_MIN_US`).
const MORE: Duration = Duration::from_millis(2);

impl Sender {
    /// Handles the retransmission time-out.
    pub(crate) fn expire(&mut self, now: Instant) {
        let Some(mut repair) = self.repair.take() else { return };
        self.enter_loss(now, &mut repair);
        self.repair = Some(repair);
    }

    /// Makes the next segment a tail loss probe, because the timer of the probe expired.
    pub(crate) const fn probe_tail(&mut self) {
        self.errand = Errand::Tail;
        self.timer = Timer::Off;
    }

    /// Declares segments lost that have not arrived within the reordering window (Linux: `tcp_rack_reo_timeout`).
    pub(crate) fn reorder_over(&mut self, now: Instant) {
        self.timer = Timer::Off;
        let Some(mut repair) = self.repair.take() else { return };
        let flying = repair.segments.flying();
        repair.rack.advanced = true;
        let wait = repair.look(now, self.rto.smoothed().map(|(srtt, _)| srtt));
        if repair.segments.flying() != flying && repair.standing != Standing::Recovery {
            self.begin_recovery(&mut repair);
            self.slow_down(&mut repair, 1, false);
        }
        match wait {
            Some(wait) => self.wait_for_order(now, wait),
            None => self.rearm_from_head(now, &repair),
        }
        self.repair = Some(repair);
    }

    pub(super) fn wait_for_order(&mut self, now: Instant, wait: Duration) {
        self.timer = Timer::Reorder(self.timing.after(now, wait + MORE));
    }

    /// Starts the retransmission timer; stops it if nothing is in flight. The time-out counts from `now`. But if the
    /// timer of a probe or of reordering ran, it counts from when the first segment was last sent (Linux:
    /// `tcp_rearm_rto`).
    pub(super) fn rearm(&mut self, now: Instant, repair: &Repair) {
        match self.timer {
            Timer::Tail(_) | Timer::Reorder(_) => self.rearm_from_head(now, repair),
            _ if repair.segments.len() == 0 => self.timer = Timer::Off,
            _ => self.timer = self.retransmit_after(now),
        }
    }

    /// Starts the retransmission timer; stops it if nothing is in flight. The time-out counts from when the first
    /// segment was last sent. If the time-out is over, the timer expires after 1 us.
    pub(super) fn rearm_from_head(&mut self, now: Instant, repair: &Repair) {
        let left = |at| self.rto.current().saturating_sub(now.since(at)).max(Duration::from_micros(1));
        let after = |at| Timer::Retransmit(self.timing.after(now, left(at)));
        self.timer = repair.segments.first().map_or(Timer::Off, |head| after(head.at));
    }

    /// Starts the timer of a tail loss probe, if a probe may be sent (Linux: `tcp_schedule_loss_probe`). If not, it
    /// restarts the retransmission timer if `afresh`. The time before a probe is at most the time-out. If `afresh`,
    /// this time-out counts from `now`, and otherwise from when the first segment was last sent.
    pub(super) fn watch_tail(&mut self, now: Instant, repair: &Repair, afresh: bool) {
        let Some(head) =
            repair.segments.first().filter(|_| repair.does.tlp && repair.standing == Standing::Open)
        else {
            if afresh {
                self.rearm(now, repair);
            }
            return;
        };
        let srtt = self.rto.smoothed().map(|(srtt, _)| srtt);
        let mut span = tail::timeout(srtt, repair.segments.len(), repair.delay, repair.initial);
        let rto = self.rto.current();
        let left = if afresh { rto } else { rto.saturating_sub(now.since(head.at)) };
        if !left.is_zero() {
            span = span.min(left);
        }
        self.timer = Timer::Tail(self.timing.after(now, span));
    }
}
