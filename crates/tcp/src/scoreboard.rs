//! The ranges that the peer reported as received (SACK), and the data that is lost or in flight according to these
//! ranges (RFC 6675, sections 3 and 4).

use crate::Seq;

/// The largest number of ranges. It bounds the memory that a peer can use by acknowledging single bytes. A range
/// without room counts as not received, so its data can be sent again.
const MOST: usize = 1024;

/// The scoreboard of a sender. Ranges are half-open, sorted, disjoint, and not below the cumulative acknowledgment.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Scoreboard {
    received: Vec<(Seq, Seq)>,
    /// `HighRxt`: the end of the last retransmission of this recovery, other than the rescue retransmission; `None`
    /// before the first retransmission.
    pub(crate) resent: Option<Seq>,
    /// `RescueRxt`: the recovery point when the one rescue retransmission of this recovery was sent (RFC 6675, section
    /// 4, `NextSeg()`, rule 4); `None` before.
    pub(crate) rescued: Option<Seq>,
}

impl Scoreboard {
    /// Stores the SACK blocks of an acknowledgment (RFC 6675, section 4, `Update()`), and forgets the ranges below
    /// `una`. `una` is the cumulative acknowledgment, and `max` is the end of the data sent. Returns whether a block
    /// added data to the ranges.
    pub(crate) fn learn(&mut self, una: Seq, max: Seq, blocks: &[(Seq, Seq)]) -> bool {
        self.forget_below(una);
        let mut news = false;
        for (from, end) in blocks {
            // A block that begins below `una` (a duplicate, RFC 2883), or ends above `max` (never sent), is not stored.
            let plausible = from.before(*end) && !from.before(una) && !end.after(max);
            news |= plausible && self.add(*from, *end);
        }
        news
    }

    fn forget_below(&mut self, una: Seq) {
        self.received.retain(|(_, end)| end.after(una));
        if let Some((from, _)) = self.received.first_mut() {
            *from = from.latest(una);
        }
    }

    fn add(&mut self, from: Seq, end: Seq) -> bool {
        let first = self.received.partition_point(|(_, known)| known.before(from));
        let behind = self.received.partition_point(|(known, _)| !known.after(end));
        let touched = self.received.get(first..behind).unwrap_or_default();
        let (Some((begin, _)), Some((_, last))) = (touched.first(), touched.last()) else {
            let room = self.received.len() < MOST;
            if room {
                self.received.insert(first, (from, end));
            }
            return room;
        };
        if touched.len() == 1 && !from.before(*begin) && !end.after(*last) {
            return false;
        }
        let whole = (if from.before(*begin) { from } else { *begin }, end.latest(*last));
        self.received.splice(first..behind, [whole]);
        true
    }

    /// Forgets all ranges, `resent` and `rescued` at a time-out: the receiver may discard data that it reported (RFC
    /// 2018, section 8).
    pub(crate) fn clear(&mut self) {
        self.received.clear();
        (self.resent, self.rescued) = (None, None);
    }

    /// Clears `resent` and `rescued`, because a new recovery begins.
    pub(crate) const fn begin(&mut self) {
        (self.resent, self.rescued) = (None, None);
    }

    pub(crate) fn ranges(&self) -> &[(Seq, Seq)] {
        &self.received
    }

    /// Adds the ranges of a recorded scoreboard.
    pub(crate) fn restore(&mut self, una: Seq, max: Seq, ranges: &[(Seq, Seq)]) {
        self.learn(una, max, ranges);
    }

    /// Returns how many sequence numbers below `end` are in the stored ranges.
    pub(crate) fn below(&self, end: Seq) -> u32 {
        let below = self.received.iter().take_while(|(from, _)| from.before(end));
        below.map(|(from, to)| if to.after(end) { end.since(*from) } else { to.since(*from) }).sum()
    }

    /// Returns the first sequence number, from `seq` on, that is in no range.
    pub(crate) fn skip(&self, seq: Seq) -> Seq {
        let within = self.received.iter().find(|(from, end)| !from.after(seq) && end.after(seq));
        within.map_or(seq, |(_, end)| *end)
    }

    /// Returns the length from `seq` to the next range, or to `end` if `end` comes first.
    pub(crate) fn gap(&self, seq: Seq, end: Seq) -> u32 {
        let next = self.received.iter().map(|(from, _)| *from).find(|from| from.after(seq));
        next.filter(|next| next.before(end)).unwrap_or(end).since(seq)
    }

    /// Returns a sequence number below which all missing data is lost (RFC 6675, section 4, `IsLost()`). Above that
    /// data, `threshold` ranges were received, or more than (`threshold` - 1) segments' bytes. Returns `None` if too
    /// little was received.
    pub(crate) fn lost_below(&self, threshold: u32, mss: u32) -> Option<Seq> {
        let most = u64::from(threshold.saturating_sub(1)) * u64::from(mss);
        let (mut ranges, mut bytes) = (0, 0);
        for (from, end) in self.received.iter().rev() {
            ranges += 1;
            bytes += u64::from(end.since(*from));
            if ranges >= threshold || bytes > most {
                return Some(*from);
            }
        }
        None
    }

    /// Returns the estimate of the bytes in flight (RFC 6675, section 4, `SetPipe()`).
    pub(crate) fn pipe(&self, una: Seq, max: Seq, lost_below: Option<Seq>) -> u32 {
        let not_lost = lost_below.filter(|lost| lost.after(una)).unwrap_or(una);
        let open = |from: Seq, end: Seq| end.since(from) - (self.below(end) - self.below(from));
        let again = self.resent.map_or(0, |resent| open(una, resent.latest(una)));
        open(not_lost, max.latest(not_lost)) + again
    }

    /// Returns the next missing sequence number that was not sent again, with received data above it (RFC 6675, section
    /// 4, `NextSeg()`, rules 1 and 3). With `lost_below`, the number must be below `lost_below`. Returns `None` if
    /// there is none.
    pub(crate) fn next_gap(&self, una: Seq, lost_below: Option<Seq>) -> Option<Seq> {
        let (_, highest) = self.received.last()?;
        let from = self.skip(self.resent.map_or(una, |resent| resent.latest(una)));
        let lost = lost_below.is_none_or(|lost| from.before(lost));
        (from.before(*highest) && lost).then_some(from)
    }

    /// Returns the highest range that was sent and not received, half-open (RFC 6675, section 4, `NextSeg()`, rule 4).
    /// Returns `None` if there is none.
    pub(crate) fn last_gap(&self, una: Seq, max: Seq) -> Option<(Seq, Seq)> {
        let mut ends = self.received.iter().rev();
        let (from, end) = match ends.next() {
            None => (una, max),
            Some((_, end)) if end.before(max) => (*end, max),
            Some((from, _)) => (ends.next().map_or(una, |(_, end)| *end), *from),
        };
        from.before(end).then_some((from, end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn block(from: u32, end: u32) -> (Seq, Seq) {
        (Seq(from), Seq(end))
    }

    fn board(blocks: &[(Seq, Seq)]) -> Scoreboard {
        let mut board = Scoreboard::default();
        board.learn(Seq(0), Seq(20_000), blocks);
        board
    }

    #[test]
    fn ranges_grow_together_and_news_is_news() {
        let mut board = board(&[block(3000, 4000)]);
        assert!(!board.learn(Seq(0), Seq(20_000), &[block(3000, 4000), block(3200, 3300)]));
        assert!(board.learn(Seq(0), Seq(20_000), &[block(5000, 6000)]));
        assert!(board.learn(Seq(0), Seq(20_000), &[block(4000, 5000)]));
        assert_eq!(board.ranges(), [block(3000, 6000)]);
        assert!(!board.learn(Seq(5000), Seq(20_000), &[block(1000, 2000)]), "a duplicate below: RFC 2883");
        assert!(!board.learn(Seq(5000), Seq(20_000), &[block(19_000, 20_001)]), "what was never sent");
        assert!(!board.learn(Seq(5000), Seq(20_000), &[block(8000, 8000), block(9000, 8000)]));
        assert_eq!(board.ranges(), [block(5000, 6000)]);
    }

    /// Data is lost if three ranges above it were received, or more than two segments' bytes (RFC 6675, section 4,
    /// `IsLost()`).
    #[test]
    fn lost_by_ranges_or_by_bytes() {
        let single = board(&[block(1000, 1100), block(2000, 2100), block(3000, 3100)]);
        assert_eq!(single.lost_below(3, 1000), Some(Seq(1000)));
        assert_eq!(board(&[block(2000, 4000)]).lost_below(3, 1000), None);
        assert_eq!(board(&[block(2000, 4001)]).lost_below(3, 1000), Some(Seq(2000)));
    }

    /// Lost data is not in flight, unless it was sent again (RFC 6675, section 4, `SetPipe()`).
    #[test]
    fn the_pipe_by_hand() {
        let mut board = board(&[block(1000, 2000), block(3000, 6000)]);
        let lost = board.lost_below(3, 1000);
        assert_eq!(lost, Some(Seq(3000)));
        // 0..1000 and 2000..3000 are lost; 6000..10000 is in flight.
        assert_eq!(board.pipe(Seq(0), Seq(10_000), lost), 4000);
        board.resent = Some(Seq(1000));
        assert_eq!(board.pipe(Seq(0), Seq(10_000), lost), 5000);
        assert_eq!(board.next_gap(Seq(0), lost), Some(Seq(2000)));
        board.resent = Some(Seq(3000));
        assert_eq!((board.pipe(Seq(0), Seq(10_000), lost), board.next_gap(Seq(0), lost)), (6000, None));
        assert_eq!(board.last_gap(Seq(0), Seq(10_000)), Some((Seq(6000), Seq(10_000))));
        assert_eq!(board.last_gap(Seq(0), Seq(6000)), Some((Seq(2000), Seq(3000))));
        assert_eq!(
            board.pipe(Seq(0), Seq(10_000), None),
            8000,
            "rule 3 counts twice what may be there twice"
        );
    }

    #[test]
    fn it_is_bounded_and_gaps_are_found() {
        let mut many = Scoreboard::default();
        for i in 0..3000 {
            many.learn(Seq(0), Seq(1 << 20), &[block(10 * i + 5, 10 * i + 6)]);
        }
        assert_eq!(many.ranges().len(), MOST);
        let board = board(&[block(1000, 2000)]);
        assert_eq!(
            (board.skip(Seq(1500)), board.skip(Seq(2000)), board.skip(Seq(0))),
            (Seq(2000), Seq(2000), Seq(0))
        );
        assert_eq!(
            (board.gap(Seq(0), Seq(500)), board.gap(Seq(0), Seq(9000)), board.gap(Seq(2000), Seq(9000))),
            (500, 1000, 7000)
        );
    }

    proptest! {
        /// The scoreboard agrees with a model of one bit per sequence number, across the wrap of the sequence space.
        #[test]
        fn it_is_a_set(
            blocks in proptest::collection::vec((0u32..300, 1u32..40), 1..40),
            acked in 0u32..150,
            resent in proptest::option::of(0u32..300),
        ) {
            let start = Seq(u32::MAX - 100);
            let (una, max) = (start.plus(acked), start.plus(340));
            let mut board = Scoreboard::default();
            let mut bits = vec![false; 340];
            for (at, len) in blocks {
                board.learn(start, max, &[(start.plus(at), start.plus(at + len))]);
                bits[at as usize..(at + len) as usize].fill(true);
            }
            board.learn(una, max, &[]);
            bits[..acked as usize].fill(false);
            for pair in board.ranges().windows(2) {
                prop_assert!(pair[0].1.before(pair[1].0));
            }
            prop_assert_eq!(board.below(max) as usize, bits.iter().filter(|bit| **bit).count());
            board.resent = resent.map(|at| start.plus(at));
            let lost = board.lost_below(3, 20);
            // The pipe of RFC 6675, section 4, is computed for each sequence number.
            let is_lost = |at: usize| lost.is_some_and(|lost| start.plus(at as u32).before(lost));
            let again = |at: usize| resent.is_some_and(|resent| (at as u32) < resent);
            let count = |at: usize| usize::from(!is_lost(at)) + usize::from(again(at));
            let open = |at: &usize| !bits[*at];
            let pipe: usize = (acked as usize..340).filter(open).map(count).sum();
            prop_assert_eq!(board.pipe(una, max, lost) as usize, pipe);
        }
    }
}
