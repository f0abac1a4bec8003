//! The timers of the sending half: retransmission (RFC 6298, section 5) and window probes (RFC 9293, section 3.8.6.1).

use crate::profile::Profile;
use crate::send::{Errand, Sender};
use wire::{Duration, Instant};

/// The timer of the sending half. At most one timer runs at a time. A variant's instant is its expiry.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Timer {
    /// No timer runs.
    Off,
    /// The retransmission timer, which waits for an acknowledgment (RFC 6298, section 5).
    Retransmit(Instant),
    /// The persist timer, which waits for the peer's window to open (RFC 9293, section 3.8.6.1).
    Persist(Instant),
    /// The timer of a tail loss probe, which waits for an acknowledgment (RFC 8985, section 7.2).
    Tail(Instant),
    /// The reordering timer, which waits for segments that may only be late (RFC 8985, section 6.2, step 5).
    Reorder(Instant),
}

impl Timer {
    /// Returns when the timer expires; `None` if no timer runs.
    pub(crate) const fn at(self) -> Option<Instant> {
        match self {
            Self::Off => None,
            Self::Retransmit(at) | Self::Persist(at) | Self::Tail(at) | Self::Reorder(at) => Some(at),
        }
    }
}

/// Returns the time after which a silent peer is given up (RFC 9293, section 3.8.3: R2). It is the sum of
/// `max_retransmissions` + 1 time-outs, if the first is `rto_min` and each is twice the one before, up to `rto_max`.
pub(crate) fn patience(profile: &Profile) -> Duration {
    let doubled = |times: u32| profile.rto_min.saturating_mul(1 << times.min(31));
    (0..=profile.max_retransmissions).map(|times| doubled(times).min(profile.rto_max)).sum()
}

impl Sender {
    /// Handles the timer if it is due. Returns whether the connection is to end, because the peer was silent for too
    /// long.
    pub(crate) fn timeout(&mut self, now: Instant) -> bool {
        match self.timer {
            Timer::Retransmit(at) if at <= now => {
                let first = self.unanswered == 0;
                if self.open && self.tracked {
                    self.expire(now);
                } else if self.open {
                    self.congestion.timeout(self.una, self.max, self.window, first);
                    self.scoreboard.clear();
                    self.next = self.una; // resend everything, as slow start permits
                }
                self.rto.back_off();
                self.timeouts += 1;
                self.timed = None;
                self.errand = Errand::None;
            }
            Timer::Persist(at) if at <= now => {
                self.errand = Errand::Probe;
                self.probes += 1;
            }
            Timer::Tail(at) if at <= now => {
                self.probe_tail();
                return false;
            }
            Timer::Reorder(at) if at <= now => {
                self.reorder_over(now);
                return false;
            }
            _ => return false,
        }
        self.timer = Timer::Off;
        self.unanswered += 1;
        self.unanswered > self.most || self.spared.is_some_and(|since| since + self.patience <= now)
    }

    /// Handles an ICMP report that there is no path for the retransmitted segment (RFC 6069, section 4). The loss is no
    /// sign of congestion, so one doubling of the time-out is undone. If the shorter time-out is already over, the
    /// timer is due at once. The time-out no longer counts as unanswered, but the count stays at least 1. So if a
    /// router reports each time-out, the peer is given up by time, as in Linux (`retransmits_timed_out`). Only
    /// per-segment recovery uses such reports.
    pub(crate) fn unreachable(&mut self, now: Instant) {
        let Timer::Retransmit(at) = self.timer else { return };
        let before = self.rto.current();
        if !self.tracked || self.unanswered == 0 || !self.rto.take_back() {
            return;
        }
        self.unanswered = self.unanswered.saturating_sub(1).max(1);
        self.spared.get_or_insert(now);
        let shorter = before.saturating_sub(self.rto.current());
        let at = Instant(at.0.saturating_sub(wire::nanos_of(shorter)));
        self.timer = Timer::Retransmit(if at > now { at } else { now });
    }

    /// Starts the persist timer if data waits, nothing but a probe is in flight, and no other timer runs. `poll` calls
    /// this function when nothing more may be sent.
    pub(crate) fn watch_window(&mut self, now: Instant) {
        if self.open && self.timer == Timer::Off && self.next == self.una && self.total() > 0 {
            self.timer = self.persist_after(now);
        }
    }

    /// Returns the retransmission timer, started at `now`.
    pub(crate) fn retransmit_after(&self, now: Instant) -> Timer {
        Timer::Retransmit(self.after(now, self.rto.current()))
    }

    /// Returns the persist timer, started at `now`. Each probe waits twice as long as the probe before, within the
    /// limits of the profile (RFC 9293, section 3.8.6.1).
    pub(crate) fn persist_after(&self, now: Instant) -> Timer {
        let (least, most) = self.persist;
        Timer::Persist(self.after(now, self.rto.after(self.probes).clamp(least, most)))
    }

    fn after(&self, now: Instant, span: Duration) -> Instant {
        self.timing.after(now, span)
    }
}
