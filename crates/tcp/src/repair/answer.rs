//! What an acknowledgment does to a sender that keeps track of each segment (Linux: `tcp_ack`).

use super::segments::News;
use super::states::Seen;
use super::tail::Verdict;
use super::undo::is_before;
use super::{Repair, Sent, Standing};
use crate::acknowledge::Ack;
use crate::estimator::Sample;
use crate::send::Sender;
use crate::{Blocks, Seq, Timer};
use wire::Instant;

impl Sender {
    /// The window that it says has been taken in already.
    pub(crate) fn answer(&mut self, now: Instant, ack: &Ack<'_>, same_window: bool) {
        let Some(mut repair) = self.repair.take() else { return };
        self.answered(now, ack, same_window, &mut repair);
        self.repair = Some(repair);
    }

    fn answered(&mut self, now: Instant, ack: &Ack<'_>, same_window: bool, repair: &mut Repair) {
        let before = self.una;
        let advanced = ack.below.after(before);
        let twice = self.came_twice(ack, repair);
        // Without reordering a duplicate is no sign that losses were found too early; nor is that of a probe.
        let early = repair.rack.reordered && twice.is_some_and(|twice| !twice.probe);
        let dsack = twice.is_some();
        let head = repair.segments.first().map(|sent| sent.at);
        let mut news = self.learn(now, ack, repair);
        news.delivered += twice.map_or(0, |twice| twice.segments); // the copy has left the network too
        let backwards = self.measured(now, &news, ack, repair, head);
        repair.rack.adapt(early, self.una, self.max);
        let pure = !advanced && ack.pure && same_window && !news.sacked;
        self.judge_probe(repair, ack.below, twice.is_some_and(|twice| twice.probe), pure);
        let losses = repair.segments.losses();
        let seen = Seen {
            now,
            before,
            advanced,
            sacked: news.sacked,
            original: news.original,
            duplicate: pure && !dsack && self.flight() > 0,
            older: repair.undo.is_older(ack.echoed, repair.tick),
        };
        let mut waits = false;
        if news.sacked || dsack || seen.duplicate || repair.standing != Standing::Open {
            waits = self.alert(&seen, repair);
        }
        if repair.segments.len() == 0 {
            if advanced {
                self.timer = Timer::Off;
            }
        } else if (news.acked || backwards) && !waits {
            self.watch_tail(now, repair, true);
        }
        self.steer(now, repair, &news, advanced, repair.segments.losses() > losses);
    }

    /// An acknowledgment that a later one overtook: only its blocks say something (Linux: `tcp_ack`, `old_ack`).
    pub(crate) fn answer_overtaken(&mut self, now: Instant, ack: &Ack<'_>) {
        let Some(mut repair) = self.repair.take_if(|_| !ack.blocks.is_empty()) else { return };
        let twice = self.came_twice(ack, &mut repair);
        let news = self.learn(now, ack, &mut repair);
        if twice.is_some() || news.sacked {
            let seen = Seen {
                now,
                before: self.una,
                advanced: false,
                sacked: news.sacked,
                original: news.original,
                duplicate: false,
                older: false,
            };
            self.alert(&seen, &mut repair);
        }
        self.repair = Some(repair);
    }

    /// What the first block reports of data that came twice (RFC 2883, section 4), if that can be this sender's doing: of no
    /// more than was ever sent again (Linux: `tcp_check_dsack`, `tcp_dsack_seen`).
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

    /// Takes in what has arrived.
    fn learn(&mut self, now: Instant, ack: &Ack<'_>, repair: &mut Repair) -> News {
        let mut news = repair.segments.news();
        let (segments, rack) = (&mut repair.segments, &mut repair.rack);
        let una = self.una.latest(ack.below);
        // A duplicate (RFC 2883) or a lie tells of nothing that has arrived.
        let valid = |(from, end): &(Seq, Seq)| from.before(*end) && !from.before(una) && !end.after(self.max);
        let mut blocks: Blocks = ack.blocks.iter().copied().filter(valid).collect();
        blocks.sort_from(una);
        for (from, end) in blocks.as_slice() {
            segments.sack(*from, *end, repair.high, &mut news, |sent| rack.arrived(now, sent));
        }
        // After a time-out whose reduction cannot be taken back the order of blocks says nothing.
        news.reordered &= repair.standing != Standing::Loss || repair.undo.marker.is_some();
        if ack.below.after(self.una) {
            self.forget(ack.below);
            // An answer that is older than the copy says nothing of when that left (RFC 8985, section 6.2, step 2).
            let older = |sent: &Sent| sent.ever_resent && is_before(ack.echoed, Some(sent.at), repair.tick);
            segments.acked(ack.below, repair.high, &mut news, |sent| {
                if !older(sent) {
                    rack.arrived(now, sent);
                }
            });
        }
        rack.reordered |= news.reordered;
        news
    }

    /// Takes a round-trip time: of what was sent once; else from the timestamps (RFC 7323, section 4). Says whether what
    /// was acknowledged selectively left before the first segment did, the last time: only then it puts the time-out off.
    fn measured(
        &mut self,
        now: Instant,
        news: &News,
        ack: &Ack<'_>,
        repair: &mut Repair,
        head: Option<Instant>,
    ) -> bool {
        let oldest = news.oldest.filter(|_| !news.again);
        let newest = news.sacked_newest.or(news.newest.filter(|_| !news.again));
        let echoed = ack.echoed.filter(|_| news.acked);
        let sent = oldest.or(news.sacked_oldest).or(echoed);
        if let Some(newest) = newest.or(echoed) {
            repair.measured(now.since(newest));
        }
        if let Some(sent) = sent {
            self.rto.sample(Sample { sent, now, samples: 1, una: self.una, max: self.max });
        }
        news.sacked_oldest.zip(head).is_some_and(|(sacked, head)| !news.acked && sacked < head)
    }

    fn judge_probe(&mut self, repair: &mut Repair, ack: Seq, dsack: bool, pure: bool) {
        if repair.tail.judge(ack, dsack, pure) == Verdict::Repaired {
            self.reduce(repair);
            self.congestion.cwnd = self.congestion.ssthresh;
            repair.undo.marker = None;
            self.keep_open(repair);
        }
    }

    /// The window after an acknowledgment (Linux: `tcp_cong_control`).
    fn steer(&mut self, now: Instant, repair: &mut Repair, news: &News, advanced: bool, more_lost: bool) {
        if repair.standing == Standing::Recovery {
            self.slow_down(repair, news.delivered, advanced && !more_lost);
        } else if news.acked && self.is_limited(repair) {
            self.congestion.raise(now, self.rto.smoothed(), news.delivered);
        }
    }

    /// Proportional rate reduction, for what was `delivered`.
    pub(super) fn slow_down(&mut self, repair: &mut Repair, delivered: u32, safe: bool) {
        let mss = self.mss.max(1);
        if !repair.does.prr {
            // The first goes at once, whatever is on its way (RFC 6675, section 5, step 4.3).
            let first = if repair.prr.out == 0 { (repair.segments.flying() + 1) * mss } else { 0 };
            self.congestion.cwnd = self.congestion.ssthresh.max(first);
        } else if delivered > 0 {
            let flying = repair.segments.flying();
            let count = repair.prr.count(self.congestion.ssthresh / mss, flying, delivered, safe);
            self.congestion.cwnd = (flying + count).max(1) * mss;
        }
    }

    /// Whether more window would have been used (Linux: `tcp_is_cwnd_limited`).
    pub(super) fn is_limited(&self, repair: &Repair) -> bool {
        let cwnd = self.congestion.cwnd / self.mss.max(1);
        let slow_start = self.congestion.cwnd < self.congestion.ssthresh;
        repair.limited || (slow_start && cwnd < 2 * repair.most_out)
    }
}

/// What an acknowledgment reports of data that came twice.
#[derive(Clone, Copy, Debug)]
struct Twice {
    /// It is the probe of the tail.
    probe: bool,
    segments: u32,
}

/// The first block, if it reports data that came twice (RFC 2883, section 4): it lies below the acknowledgment, or within
/// the second block.
fn duplicate_told(ack: Seq, blocks: &[(Seq, Seq)]) -> Option<(Seq, Seq)> {
    let (from, end) = *blocks.first()?;
    let within = |(first, last): &(Seq, Seq)| !from.before(*first) && !end.after(*last);
    (from.before(ack) || blocks.get(1).is_some_and(within)).then_some((from, end))
}
