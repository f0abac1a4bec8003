//! The timers of a sender that keeps track of each segment: the time-out, the probe of the tail, and the wait for reordering.

use super::{Repair, Standing, tail};
use crate::send::{Errand, Sender};
use crate::timers::Timer;
use wire::{Duration, Instant};

/// The kernel adds so much to a wait for reordering (`TCP_TIMEOUT_MIN_US`).
const MORE: Duration = Duration::from_millis(2);

impl Sender {
    /// Nothing answered for a time-out.
    pub(crate) fn expire(&mut self, now: Instant) {
        let Some(mut repair) = self.repair.take() else { return };
        self.enter_loss(now, &mut repair);
        self.repair = Some(repair);
    }

    /// No acknowledgment came for two round trips: what is sent next is a probe.
    pub(crate) const fn probe_tail(&mut self) {
        self.errand = Errand::Tail;
        self.timer = Timer::Off;
    }

    /// What was late is lost now (Linux: `tcp_rack_reo_timeout`).
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

    /// The time-out, started now; where another timer ran until now, counted from when the first segment left
    /// (Linux: `tcp_rearm_rto`).
    pub(super) fn rearm(&mut self, now: Instant, repair: &Repair) {
        match self.timer {
            Timer::Tail(_) | Timer::Reorder(_) => self.rearm_from_head(now, repair),
            _ if repair.segments.len() == 0 => self.timer = Timer::Off,
            _ => self.timer = self.retransmit_after(now),
        }
    }

    /// The time-out, counted from when the first segment left.
    pub(super) fn rearm_from_head(&mut self, now: Instant, repair: &Repair) {
        let left = |at| self.rto.current().saturating_sub(now.since(at)).max(Duration::from_micros(1));
        let after = |at| Timer::Retransmit(self.timing.after(now, left(at)));
        self.timer = repair.segments.first().map_or(Timer::Off, |head| after(head.at));
    }

    /// Waits for the time of a probe, if one may be sent; else for the time-out. `afresh`: the time-out begins now; else it
    /// began when the first segment left (Linux: `tcp_schedule_loss_probe`).
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
