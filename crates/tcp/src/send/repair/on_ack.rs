//! Per-segment recovery: what an acknowledgment does (Linux: `tcp_ack`).

use super::segments::AckSummary;
use super::states::Seen;
use super::tail::Verdict;
use super::undo::is_before;
use super::{Repair, Sent, Standing};
use crate::estimator::Sample;
use crate::send::Sender;
use crate::send::acknowledge::Ack;
use crate::{Blocks, Seq, Timer};
use wire::Instant;

impl Sender {
    /// Handles an acknowledgment. The caller has already stored the window that it announces.
    pub(crate) fn answer(&mut self, now: Instant, ack: &Ack<'_>, same_window: bool) {
        let Some(mut repair) = self.repair.take() else { return };
        self.answered(now, ack, same_window, &mut repair);
        self.repair = Some(repair);
    }

    fn answered(&mut self, now: Instant, ack: &Ack<'_>, same_window: bool, repair: &mut Repair) {
        let before = self.una;
        let advanced = ack.below.after(before);
        let twice = self.came_twice(ack, repair);
        // If the network reorders, a duplicate shows that a loss was declared too early. The duplicate of a probe never
        // shows that.
        let early = repair.rack.reordered && twice.is_some_and(|twice| !twice.probe);
        let dsack = twice.is_some();
        let head = repair.segments.first().map(|sent| sent.at);
        let mut summary = self.learn(now, ack, repair);
        summary.delivered += twice.map_or(0, |twice| twice.segments); // the copy has left the network too
        let backwards = self.measured(now, &summary, ack, repair, head);
        repair.rack.adapt(early, self.una, self.max);
        let pure = !advanced && ack.pure && same_window && !summary.sacked;
        self.judge_probe(repair, ack.below, twice.is_some_and(|twice| twice.probe), pure);
        let losses = repair.segments.losses();
        let seen = Seen {
            now,
            before,
            advanced,
            sacked: summary.sacked,
            original: summary.original,
            duplicate: pure && !dsack && self.flight() > 0,
            older: repair.undo.is_older(ack.echoed, repair.tick),
        };
        let mut waits = false;
        if summary.sacked || dsack || seen.duplicate || repair.standing != Standing::Open {
            waits = self.alert(&seen, repair);
        }
        if repair.segments.len() == 0 {
            if advanced {
                self.timer = Timer::Off;
            }
        } else if (summary.acked || backwards) && !waits {
            self.watch_tail(now, repair, true);
        }
        self.steer(now, repair, &summary, advanced, repair.segments.losses() > losses);
    }

    /// Handles an acknowledgment that a later acknowledgment overtook: only its blocks count (Linux: `tcp_ack`,
    /// `old_ack`).
    pub(crate) fn answer_overtaken(&mut self, now: Instant, ack: &Ack<'_>) {
        let Some(mut repair) = self.repair.take_if(|_| !ack.blocks.is_empty()) else { return };
        let twice = self.came_twice(ack, &mut repair);
        let summary = self.learn(now, ack, &mut repair);
        if twice.is_some() || summary.sacked {
            let seen = Seen {
                now,
                before: self.una,
                advanced: false,
                sacked: summary.sacked,
                original: summary.original,
                duplicate: false,
                older: false,
            };
            self.alert(&seen, &mut repair);
        }
        self.repair = Some(repair);
    }

    /// Counts and returns the duplicate data that the first block reports (RFC 2883, section 4). Returns `None` if
    /// there is none, or if the block is invalid. The result is also `None` if the peer has reported more duplicates
    /// than this sender has sent again. Then this sender did not cause them (Linux: `tcp_check_dsack`,
    /// `tcp_dsack_seen`).
    fn came_twice(&self, ack: &Ack<'_>, repair: &mut Repair) -> Option<Twice> {
        let (from, end) = duplicate_told(ack.below, ack.blocks)?;
        let (len, mss) = (end.since(from), self.mss.max(1));
        if !from.before(end) || len > self.largest_window {
            return None;
        }
        let segments = len.div_ceil(mss);
        repair.duplicates += u64::from(segments);
        if repair.duplicates > self.retransmissions {
            return None;
        }
        if end.after(self.una) {
            let fack = repair.segments.fack();
            for sent in repair.segments.within(from, end).filter(|sent| sent.ever_resent) {
                repair.undo.duplicate(sent.end, 1);
                repair.rack.reordered |= sent.sacked && fack.is_some_and(|fack| sent.end.before(fack));
            }
        } else {
            repair.undo.duplicate(end, segments);
        }
        Some(Twice { probe: len <= mss && repair.tail.end == Some(end), segments })
    }

    /// Marks or removes the segments that the acknowledgment reports as received. Returns a summary of them.
    fn learn(&mut self, now: Instant, ack: &Ack<'_>, repair: &mut Repair) -> AckSummary {
        let mut summary = repair.segments.summary();
        let (segments, rack) = (&mut repair.segments, &mut repair.rack);
        let una = self.una.latest(ack.below);
        // A block that reports a duplicate (RFC 2883), or an invalid block, shows no arrival.
        let valid = |(from, end): &(Seq, Seq)| from.before(*end) && !from.before(una) && !end.after(self.max);
        let mut blocks: Blocks = ack.blocks.iter().copied().filter(valid).collect();
        blocks.sort_from(una);
        for (from, end) in blocks.as_slice() {
            segments.sack(*from, *end, repair.high, &mut summary, |sent| rack.arrived(now, sent));
        }
        // After a time-out that cannot be undone, arrivals out of order are no sign of reordering.
        summary.reordered &= repair.standing != Standing::Loss || repair.undo.marker.is_some();
        if ack.below.after(self.una) {
            self.forget(ack.below);
            // If the echo is from before the retransmission, the original is acknowledged. So there is no round trip of
            // the copy (RFC 8985, section 6.2, step 2).
            let older = |sent: &Sent| sent.ever_resent && is_before(ack.echoed, Some(sent.at), repair.tick);
            segments.acked(ack.below, repair.high, &mut summary, |sent| {
                if !older(sent) {
                    rack.arrived(now, sent);
                }
            });
        }
        rack.reordered |= summary.reordered;
        summary
    }

    /// Takes a round-trip sample from data that was sent once, or else from the timestamps (RFC 7323, section 4).
    /// Returns whether only SACK blocks acknowledged data, and some of this data was sent before the first segment was
    /// last sent. In this case, the time-out is to be restarted.
    fn measured(
        &mut self,
        now: Instant,
        summary: &AckSummary,
        ack: &Ack<'_>,
        repair: &mut Repair,
        head: Option<Instant>,
    ) -> bool {
        let oldest = summary.oldest.filter(|_| !summary.again);
        let newest = summary.sacked_newest.or(summary.newest.filter(|_| !summary.again));
        let echoed = ack.echoed.filter(|_| summary.acked);
        let sent = oldest.or(summary.sacked_oldest).or(echoed);
        if let Some(newest) = newest.or(echoed) {
            repair.measured(now.since(newest));
        }
        if let Some(sent) = sent {
            self.rto.sample(Sample { sent, now, samples: 1, una: self.una, max: self.max });
        }
        summary.sacked_oldest.zip(head).is_some_and(|(sacked, head)| !summary.acked && sacked < head)
    }

    fn judge_probe(&mut self, repair: &mut Repair, ack: Seq, dsack: bool, pure: bool) {
        if repair.tail.judge(ack, dsack, pure) == Verdict::Repaired {
            self.reduce(repair);
            self.congestion.cwnd = self.congestion.ssthresh;
            repair.undo.marker = None;
            self.keep_open(repair);
        }
    }

    /// Sets the window after an acknowledgment (Linux: `tcp_cong_control`).
    fn steer(
        &mut self,
        now: Instant,
        repair: &mut Repair,
        summary: &AckSummary,
        advanced: bool,
        more_lost: bool,
    ) {
        if repair.standing == Standing::Recovery {
            self.slow_down(repair, summary.delivered, advanced && !more_lost);
        } else if summary.acked && self.is_limited(repair) {
            self.congestion.raise(now, self.rto.smoothed(), summary.delivered);
        }
    }

    /// Sets the window in a recovery, after `delivered` segments arrived: by proportional rate reduction, or without
    /// PRR to the threshold. `safe`: the acknowledgment advanced, and showed no further loss.
    pub(super) fn slow_down(&mut self, repair: &mut Repair, delivered: u32, safe: bool) {
        let mss = self.mss.max(1);
        if !repair.does.prr {
            // The first segment is sent at once, whatever is in flight (RFC 6675, section 5, step 4.3).
            let first = if repair.prr.out == 0 { (repair.segments.flying() + 1) * mss } else { 0 };
            self.congestion.cwnd = self.congestion.ssthresh.max(first);
        } else if delivered > 0 {
            let flying = repair.segments.flying();
            let count = repair.prr.count(self.congestion.ssthresh / mss, flying, delivered, safe);
            self.congestion.cwnd = (flying + count).max(1) * mss;
        }
    }

    /// Returns whether the window limits the sender (Linux: `tcp_is_cwnd_limited`).
    pub(super) fn is_limited(&self, repair: &Repair) -> bool {
        let cwnd = self.congestion.cwnd / self.mss.max(1);
        let slow_start = self.congestion.cwnd < self.congestion.ssthresh;
        repair.limited || (slow_start && cwnd < 2 * repair.most_out)
    }
}

/// The duplicate data that an acknowledgment reports.
#[derive(Clone, Copy, Debug)]
struct Twice {
    /// Whether the duplicate is the tail loss probe.
    probe: bool,
    segments: u32,
}

/// Returns the first block if it reports duplicate data (RFC 2883, section 4). Such a block begins below the
/// acknowledgment, or is within the second block.
fn duplicate_told(ack: Seq, blocks: &[(Seq, Seq)]) -> Option<(Seq, Seq)> {
    let (from, end) = *blocks.first()?;
    let within = |(first, last): &(Seq, Seq)| !from.before(*first) && !end.after(*last);
    (from.before(ack) || blocks.get(1).is_some_and(within)).then_some((from, end))
}
