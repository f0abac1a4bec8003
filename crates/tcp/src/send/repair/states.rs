//! Per-segment recovery: the states and their changes (Linux: `tcp_fastretrans_alert`, `tcp_enter_loss`).

use super::f_rto::{self, FRto, Step};
use super::prr::Prr;
use super::{Repair, Standing};
use crate::send::Sender;
use crate::send::timers::Timer;
use crate::{Phase, Seq};
use wire::Instant;

/// What an acknowledgment shows about losses.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate condition")]
pub(super) struct Seen {
    pub(super) now: Instant,
    /// The oldest unacknowledged number before this acknowledgment.
    pub(super) before: Seq,
    /// Whether the cumulative acknowledgment advanced.
    pub(super) advanced: bool,
    /// Whether the acknowledgment reports data in its SACK blocks that was not acknowledged before.
    pub(super) sacked: bool,
    /// Whether data arrived that was sent only once, and before the recovery began.
    pub(super) original: bool,
    /// Whether the segment is a duplicate acknowledgment, without a report of duplicate data.
    pub(super) duplicate: bool,
    /// Whether the acknowledgment echoes a timestamp from before the first retransmission of the reduction that can be
    /// undone.
    pub(super) older: bool,
}

impl Sender {
    /// Updates the state after an acknowledgment that may show a loss. Returns whether the timer now waits for
    /// reordering.
    pub(super) fn alert(&mut self, seen: &Seen, repair: &mut Repair) -> bool {
        if matches!(repair.standing, Standing::Open) {
            repair.undo.first = None;
        } else if repair.standing == Standing::Recovery && !self.una.before(repair.high) {
            self.recovered(seen, repair);
        }
        if repair.standing == Standing::Recovery && seen.advanced && seen.older {
            // The original segment arrived late and filled the gap, not the retransmission (Linux:
            // `tcp_try_undo_partial`).
            repair.rack.reordered |= seen.before.before(repair.segments.fack().unwrap_or(self.una));
            if repair.segments.resent() > 0 {
                return false;
            }
            self.take_back(repair, true);
            self.keep_open(repair);
        }
        if repair.standing == Standing::Loss {
            self.after_timeout(seen, repair);
        } else if repair.undo.all_were_duplicates() {
            repair.rack.found_early();
            self.take_back(repair, false);
            self.keep_open(repair);
        }
        let copies = repair.segments.resent();
        let wait = repair.look(seen.now, self.rto.smoothed().map(|(srtt, _)| srtt));
        if let Some(wait) = wait {
            self.wait_for_order(seen.now, wait);
        }
        let copy_lost = repair.segments.resent() < copies;
        let stays = match repair.standing {
            Standing::Recovery => true,
            Standing::Loss => !copy_lost,
            Standing::Open | Standing::Disorder => false,
        };
        if !stays && repair.segments.lost() > 0 {
            self.begin_recovery(repair);
        } else if !stays {
            if !repair.any_resent() {
                repair.undo.first = None;
            }
            self.keep_open(repair);
        }
        wait.is_some()
    }

    /// Ends a recovery, because everything that was in flight when the recovery began is acknowledged. If the reduction
    /// was spurious, it is undone.
    fn recovered(&mut self, seen: &Seen, repair: &mut Repair) {
        if seen.older || repair.undo.all_were_duplicates() {
            self.take_back(repair, false);
        } else {
            if repair.undo.marker.is_some() {
                self.congestion.cwnd = self.congestion.ssthresh;
            }
            repair.rack.recovered();
        }
        self.keep_open(repair);
    }

    /// Handles an acknowledgment in the state Loss (Linux: `tcp_process_loss`).
    fn after_timeout(&mut self, seen: &Seen, repair: &mut Repair) {
        let recovered = !self.una.before(repair.high);
        let for_nothing = seen.older || repair.undo.all_were_duplicates();
        if seen.advanced && for_nothing {
            self.take_back(repair, true);
            self.keep_open(repair);
            return;
        }
        let step = repair.forward.judge(f_rto::Seen {
            original: seen.original,
            advanced: seen.advanced,
            recovered,
            new_sent: self.max.after(repair.high),
            duplicate: seen.sacked || seen.duplicate,
            can_send: self.total() as u32 > self.flight() && self.window > self.flight(),
        });
        match step {
            Step::Spurious => {
                self.take_back(repair, true);
                self.keep_open(repair);
            }
            Step::SendNew => repair.high = self.max,
            Step::Retransmit if recovered => {
                repair.rack.recovered();
                self.keep_open(repair);
            }
            Step::Retransmit => {}
        }
    }

    /// Sets the state to Disorder if segments are missing or a retransmission is not acknowledged, and otherwise to
    /// Open (Linux: `tcp_try_keep_open`).
    pub(super) fn keep_open(&mut self, repair: &mut Repair) {
        let left = repair.segments.lost() + repair.segments.sacked();
        let open = left == 0 && !repair.any_resent();
        let standing = if open { Standing::Open } else { Standing::Disorder };
        if std::mem::replace(&mut repair.standing, standing) != standing {
            repair.high = self.max;
        }
        self.congestion.phase = Phase::No;
    }

    /// Begins a reduction: lowers the threshold, and stores the state to undo the reduction. It does not change the
    /// window.
    pub(super) fn reduce(&mut self, repair: &mut Repair) {
        self.begin_undo(repair);
        repair.high = self.max;
        repair.tail.end = None;
        repair.prr = Prr::new(self.congestion.cwnd / self.mss.max(1));
        self.congestion.lower();
    }

    /// Stores the window and the threshold, to undo a reduction (Linux: `tcp_init_undo`).
    fn begin_undo(&self, repair: &mut Repair) {
        let probes = u32::from(repair.tail.end.is_some() && repair.tail.again);
        let copies = repair.segments.resent() + probes;
        repair.undo.begin(self.una, copies, self.congestion.cwnd, self.congestion.current_threshold());
    }

    pub(super) fn begin_recovery(&mut self, repair: &mut Repair) {
        self.reduce(repair);
        repair.standing = Standing::Recovery;
        self.congestion.phase = Phase::Begun;
        self.fast_retransmits += 1;
    }

    /// Undoes a spurious reduction. If `find` is true, no segment is considered lost any longer.
    fn take_back(&mut self, repair: &mut Repair, find: bool) {
        if find {
            repair.segments.find_again();
        }
        self.congestion.restore_window(repair.undo.cwnd, repair.undo.ssthresh);
        repair.undo.marker = None;
        repair.rack.advanced = true; // search for losses again
        (self.unanswered, self.spared) = (0, None);
    }

    /// Enters the state Loss after a time-out (Linux: `tcp_enter_loss`).
    pub(super) fn enter_loss(&mut self, now: Instant, repair: &mut Repair) {
        let fresh = !matches!(repair.standing, Standing::Recovery | Standing::Loss);
        Self::mark_after_timeout(now, repair);
        let again = repair.standing == Standing::Loss && self.unanswered == 0;
        if fresh || !repair.high.after(self.una) || again {
            self.begin_undo(repair);
            self.congestion.lower();
        }
        self.congestion.cubic.timed_out();
        self.congestion.phase = Phase::No;
        self.congestion.cwnd = (repair.segments.flying() + 1) * self.mss.max(1);
        repair.standing = Standing::Loss;
        repair.high = self.max;
        repair.tail.end = None;
        let asks = repair.does.frto && (fresh || self.unanswered > 0);
        repair.forward = if asks { FRto::Asked } else { FRto::Off };
        self.timer = Timer::Off;
    }

    /// Declares segments lost after a time-out. With RACK, segments that were sent recently are not declared lost,
    /// except the first (RFC 8985, section 6.3). If the peer discarded data that it had reported, all segments are
    /// declared lost.
    fn mark_after_timeout(now: Instant, repair: &mut Repair) {
        let reneged = repair.segments.first().is_some_and(|sent| sent.sacked);
        if reneged {
            repair.segments.renege(); // the peer discarded data, so its reports no longer count
        }
        for at in 0..repair.segments.len() as usize {
            let Some(sent) = repair.segments.get(at).copied() else { break };
            let recent = at > 0 && repair.does.rack && !reneged;
            if !recent || repair.rack.remaining(now, &sent, wire::Duration::ZERO).is_none() {
                repair.segments.lose(at);
            }
        }
    }
}
