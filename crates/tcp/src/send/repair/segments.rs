//! The unacknowledged segments, each with its last transmission time and state.

use crate::Seq;
use std::collections::VecDeque;
use wire::Instant;

/// An unacknowledged segment that was sent at least once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each has an independent meaning")]
pub struct Sent {
    /// The first sequence number of the segment.
    pub from: Seq,
    /// The sequence number after the last one of the segment.
    pub end: Seq,
    /// When the segment was last sent.
    pub at: Instant,
    /// Whether the peer reported the segment as received (RFC 2018).
    pub sacked: bool,
    /// Whether the segment is considered lost. A segment stays lost while a retransmission of it is in flight.
    pub lost: bool,
    /// Whether a retransmission of the segment is considered in flight. A tail loss probe does not count.
    pub resent: bool,
    /// Whether the segment was sent again at least once, or may have been by a former host.
    pub ever_resent: bool,
}

impl Sent {
    /// Returns the number of copies of the segment that are considered in flight.
    const fn flying(&self) -> u32 {
        (!self.sacked && !self.lost) as u32 + (!self.sacked && self.resent) as u32
    }
}

/// What an acknowledgment reports about segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each has an independent meaning")]
pub(crate) struct AckSummary {
    /// The number of segments that arrived, acknowledged cumulatively or selectively (`DeliveredData` of RFC 6937, in
    /// segments).
    pub(crate) delivered: u32,
    /// Whether data was acknowledged cumulatively.
    pub(crate) acked: bool,
    /// Whether any of the cumulatively acknowledged segments had been sent again.
    pub(crate) again: bool,
    /// Whether data was acknowledged selectively that was not acknowledged before.
    pub(crate) sacked: bool,
    /// Whether a segment arrived that was sent only once, and before the recovery began.
    pub(crate) original: bool,
    /// Whether the network reordered: a segment that was sent only once arrived below data that had arrived before.
    pub(crate) reordered: bool,
    /// The earliest transmission time of segments that this acknowledgment covers cumulatively. Segments that were sent
    /// again, or acknowledged selectively before, do not count.
    pub(crate) oldest: Option<Instant>,
    /// The latest transmission time of segments that this acknowledgment covers cumulatively. Segments that were sent
    /// again, or acknowledged selectively before, do not count.
    pub(crate) newest: Option<Instant>,
    /// The earliest transmission time of segments that were acknowledged selectively and sent only once.
    pub(crate) sacked_oldest: Option<Instant>,
    /// The latest transmission time of segments that were acknowledged selectively and sent only once.
    pub(crate) sacked_newest: Option<Instant>,
    /// The end of the highest segment that had been acknowledged selectively before this acknowledgment; `None` if
    /// there is none.
    before: Option<Seq>,
}

impl AckSummary {
    fn arrived(&mut self, sent: &Sent, fack: Seq, high: Seq) {
        self.delivered += 1;
        if sent.ever_resent {
            return;
        }
        self.original |= !sent.end.after(high);
        self.reordered |= sent.from.before(fack);
    }
}

/// The list of unacknowledged segments, in the order of their sequence numbers and without gaps, with sums over their
/// states.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Segments {
    list: VecDeque<Sent>,
    flying: u32,
    sacked: u32,
    lost: u32,
    resent: u32,
    losses: u64,
    /// The end of the highest segment that the peer reported as received; `None` if there is none above the cumulative
    /// acknowledgment.
    fack: Option<Seq>,
}

impl Segments {
    /// Returns the number of unacknowledged segments.
    pub(crate) fn len(&self) -> u32 {
        self.list.len() as u32
    }

    pub(crate) const fn flying(&self) -> u32 {
        self.flying
    }

    pub(crate) const fn sacked(&self) -> u32 {
        self.sacked
    }

    /// Returns the number of segments that are considered lost, sent again or not.
    pub(crate) const fn lost(&self) -> u32 {
        self.lost
    }

    /// Returns how often a segment or a retransmission was declared lost so far.
    pub(crate) const fn losses(&self) -> u64 {
        self.losses
    }

    /// Returns the number of segments with a retransmission that is considered in flight.
    pub(crate) const fn resent(&self) -> u32 {
        self.resent
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Sent> {
        self.list.iter()
    }

    pub(crate) fn first(&self) -> Option<&Sent> {
        self.list.front()
    }

    pub(crate) fn last(&self) -> Option<&Sent> {
        self.list.back()
    }

    pub(crate) fn get(&self, at: usize) -> Option<&Sent> {
        self.list.get(at)
    }

    /// Returns the end of the highest segment that the peer reported as received; `None` if there is none above the
    /// cumulative acknowledgment.
    pub(crate) const fn fack(&self) -> Option<Seq> {
        self.fack
    }

    /// Returns an empty summary for the next acknowledgment.
    pub(crate) fn summary(&self) -> AckSummary {
        AckSummary { before: self.fack, ..AckSummary::default() }
    }

    /// Appends a segment that is sent at the instant `at`.
    pub(crate) fn push(&mut self, from: Seq, end: Seq, at: Instant) {
        let sent = Sent { from, end, at, sacked: false, lost: false, resent: false, ever_resent: false };
        self.count(&sent, true);
        self.list.push_back(sent);
    }

    fn count(&mut self, sent: &Sent, more: bool) {
        let add = |sum: &mut u32, n: u32| *sum = if more { *sum + n } else { *sum - n };
        add(&mut self.flying, sent.flying());
        add(&mut self.sacked, u32::from(sent.sacked));
        add(&mut self.lost, u32::from(sent.lost));
        add(&mut self.resent, u32::from(sent.resent));
    }

    /// Changes one segment, and updates the sums.
    pub(crate) fn edit(&mut self, at: usize, change: impl FnOnce(&mut Sent)) {
        let Some(mut sent) = self.list.get(at).copied() else { return };
        self.count(&sent, false);
        change(&mut sent);
        self.count(&sent, true);
        if let Some(place) = self.list.get_mut(at) {
            *place = sent;
        }
    }

    /// Splits the segment at `index` before the sequence number `at`, if `at` is inside the segment.
    pub(crate) fn split(&mut self, index: usize, at: Seq) {
        let Some(sent) =
            self.list.get(index).copied().filter(|sent| at.after(sent.from) && at.before(sent.end))
        else {
            return;
        };
        self.edit(index, |first| first.end = at);
        let second = Sent { from: at, ..sent };
        self.count(&second, true);
        self.list.insert(index + 1, second);
    }

    /// Declares a segment lost, and its retransmission if there is one. A segment that the peer has is not lost.
    pub(crate) fn lose(&mut self, at: usize) {
        let further = self.get(at).is_some_and(|sent| !sent.sacked && (!sent.lost || sent.resent));
        self.losses += u64::from(further);
        self.edit(at, |sent| (sent.lost, sent.resent) = (!sent.sacked, false));
    }

    /// Marks all segments as not lost.
    pub(crate) fn find_again(&mut self) {
        for at in 0..self.list.len() {
            self.edit(at, |sent| sent.lost = false);
        }
    }

    /// Forgets which segments the peer reported as received, because the peer may discard them (RFC 2018, section 8).
    pub(crate) fn renege(&mut self) {
        for at in 0..self.list.len() {
            self.edit(at, |sent| sent.sacked = false);
        }
        self.fack = None;
    }

    /// Applies a SACK block; `each` is called for each segment that arrived. The caller applies several blocks in
    /// ascending order. So segments that one acknowledgment reports do not look reordered (RFC 8985, section 6.2, step
    /// 3).
    pub(crate) fn sack(
        &mut self,
        from: Seq,
        end: Seq,
        high: Seq,
        summary: &mut AckSummary,
        mut each: impl FnMut(&Sent),
    ) {
        let mut at = self.list.partition_point(|sent| !sent.end.after(from));
        self.split(at, from);
        if self.list.get(at).is_some_and(|sent| sent.from.before(from)) {
            at += 1;
        }
        let fack = self.fack;
        while let Some(sent) = self.list.get(at).copied().filter(|sent| sent.from.before(end)) {
            self.split(at, end);
            if !sent.sacked {
                let sent = self.list.get(at).copied().unwrap_or(sent);
                self.edit(at, |sent| (sent.sacked, sent.lost, sent.resent) = (true, false, false));
                summary.arrived(&sent, fack.unwrap_or(sent.from), high);
                summary.sacked = true;
                if !sent.ever_resent {
                    summary.sacked_oldest =
                        Some(Instant::sooner(summary.sacked_oldest, Some(sent.at)).unwrap_or(sent.at));
                    summary.sacked_newest = summary.sacked_newest.max(Some(sent.at));
                }
                each(&sent);
                self.fack = Some(self.fack.map_or(sent.end, |fack| fack.latest(sent.end)));
            }
            at += 1;
        }
    }

    /// Returns the segments that are wholly within a block.
    pub(crate) fn within(&self, from: Seq, end: Seq) -> impl Iterator<Item = &Sent> {
        let first = self.list.partition_point(|sent| sent.from.before(from));
        self.list.range(first..).take_while(move |sent| !sent.end.after(end))
    }

    /// Removes all segments below `una`, and cuts a segment that crosses `una`. A segment counts as reordered if it is
    /// below data that had arrived before this acknowledgment. The blocks of this acknowledgment do not count.
    pub(crate) fn acked(
        &mut self,
        una: Seq,
        high: Seq,
        summary: &mut AckSummary,
        mut each: impl FnMut(&Sent),
    ) {
        while let Some(sent) = self.list.front().copied().filter(|sent| sent.from.before(una)) {
            summary.acked = true;
            if sent.end.after(una) {
                self.edit(0, |sent| sent.from = una);
                return;
            }
            self.count(&sent, false);
            self.list.pop_front();
            summary.again |= sent.ever_resent;
            if !sent.ever_resent && !sent.sacked {
                summary.oldest = summary.oldest.or(Some(sent.at));
                summary.newest = summary.newest.max(Some(sent.at));
            }
            if !sent.sacked {
                summary.arrived(&sent, summary.before.unwrap_or(sent.from), high);
                each(&sent);
            }
        }
        self.fack = self.fack.filter(|fack| fack.after(una));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn five() -> Segments {
        let mut segments = Segments::default();
        for i in 0..5 {
            segments.push(Seq(1000 * i), Seq(1000 * (i + 1)), Instant::from_millis(u64::from(i)));
        }
        segments
    }

    fn sums(s: &Segments) -> [u32; 5] {
        [s.len(), s.flying(), s.sacked(), s.lost(), s.resent()]
    }

    #[test]
    fn sums_follow_what_becomes_of_each() {
        let (mut s, mut summary) = (five(), AckSummary::default());
        s.sack(Seq(2000), Seq(4000), Seq(9000), &mut summary, |_| ());
        assert_eq!((sums(&s), summary.delivered, summary.sacked), ([5, 3, 2, 0, 0], 2, true));
        s.lose(0);
        s.lose(2);
        assert_eq!(sums(&s), [5, 2, 2, 1, 0], "what the peer has is not lost");
        s.edit(0, |sent| (sent.resent, sent.ever_resent) = (true, true));
        assert_eq!(sums(&s), [5, 3, 2, 1, 1]);
        s.lose(0);
        assert_eq!(sums(&s), [5, 2, 2, 1, 0], "the copy too");
        let mut summary = AckSummary::default();
        s.acked(Seq(4000), Seq(9000), &mut summary, |_| ());
        assert_eq!((sums(&s), summary.delivered, s.fack()), ([1, 1, 0, 0, 0], 2, None));
        assert_eq!(
            (summary.oldest, summary.newest),
            (Some(Instant::from_millis(1)), Some(Instant::from_millis(1)))
        );
    }

    #[test]
    fn blocks_that_cut_segments_cut_them() {
        let (mut s, mut summary) = (five(), AckSummary::default());
        s.sack(Seq(1500), Seq(2500), Seq(9000), &mut summary, |_| ());
        let sacked: Vec<_> =
            s.iter().filter(|sent| sent.sacked).map(|sent| (sent.from.0, sent.end.0)).collect();
        assert_eq!((sacked, sums(&s)), (vec![(1500, 2000), (2000, 2500)], [7, 5, 2, 0, 0]));
        s.acked(Seq(500), Seq(9000), &mut summary, |_| ());
        assert_eq!((s.first().map(|sent| sent.from), s.len()), (Some(Seq(500)), 7));
    }

    #[test]
    fn what_comes_below_what_came_is_reordered_unless_it_was_sent_again() {
        let (mut s, mut summary) = (five(), AckSummary::default());
        s.sack(Seq(3000), Seq(4000), Seq(9000), &mut summary, |_| ());
        assert!(!summary.reordered && summary.original);
        s.edit(0, |sent| sent.ever_resent = true);
        let mut summary = s.summary();
        s.acked(Seq(1000), Seq(9000), &mut summary, |_| ());
        assert!(!summary.reordered && !summary.original);
        s.acked(Seq(2000), Seq(1500), &mut summary, |_| ());
        assert!(summary.reordered && !summary.original, "it was sent after the recovery began");
    }

    /// An acknowledgment is applied in the order of the sequence numbers (RFC 8985, section 6.2, step 3). Here the
    /// segments 0, 1 and 3 arrive in order, and 2 arrives after 3.
    #[test]
    fn what_arrived_in_order_is_not_reordered_for_a_block_beside_it() {
        let (mut s, high) = (five(), Seq(9000));
        let mut summary = s.summary();
        s.sack(Seq(3000), Seq(4000), high, &mut summary, |_| ());
        s.acked(Seq(2000), high, &mut summary, |_| ());
        assert!(!summary.reordered && summary.delivered == 3);
        let mut summary = s.summary();
        s.acked(Seq(3000), high, &mut summary, |_| ());
        assert!(summary.reordered, "it comes after what was sent later");
    }

    #[test]
    fn segments_within_a_block() {
        let s = five();
        let within = |from, end| s.within(Seq(from), Seq(end)).map(|sent| sent.from.0).collect::<Vec<_>>();
        assert_eq!((within(1000, 3000), within(900, 2999)), (vec![1000, 2000], vec![1000]));
        assert_eq!(within(4500, 9000), [] as [u32; 0]);
    }
}
