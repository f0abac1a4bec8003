//! The segments that were sent and are not acknowledged, one by one: when each left last, and what is believed of it.

use crate::Seq;
use std::collections::VecDeque;
use wire::Instant;

/// A segment that was sent.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each says something of its own")]
pub struct Sent {
    /// Its first number.
    pub from: Seq,
    /// The number after its last.
    pub end: Seq,
    /// When it left, the last time.
    pub at: Instant,
    /// The peer has it (RFC 2018).
    pub sacked: bool,
    /// It is believed to be lost.
    pub lost: bool,
    /// It was sent again, and that copy is not believed to be lost.
    pub resent: bool,
    /// It was sent again at least once.
    pub ever_resent: bool,
}

impl Sent {
    /// How many copies of it are believed to be on their way.
    const fn flying(&self) -> u32 {
        (!self.sacked && !self.lost) as u32 + (!self.sacked && self.resent) as u32
    }
}

/// What an acknowledgment told of segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each says something of its own")]
pub(crate) struct News {
    /// Segments that are known now to have arrived, by whatever way: `DeliveredData` of RFC 6937, in segments.
    pub(crate) delivered: u32,
    /// Data was acknowledged cumulatively.
    pub(crate) acked: bool,
    /// Some of it had been sent again.
    pub(crate) again: bool,
    /// Data was acknowledged selectively that was not before.
    pub(crate) sacked: bool,
    /// Some of what arrived was sent only once, and before the recovery began.
    pub(crate) original: bool,
    /// Some of what arrived was sent only once, below what had arrived before: the network reorders.
    pub(crate) reordered: bool,
    /// When the oldest left of what was acknowledged and sent only once.
    pub(crate) oldest: Option<Instant>,
    /// When the newest left of these.
    pub(crate) newest: Option<Instant>,
    /// The same of what was acknowledged selectively.
    pub(crate) sacked_oldest: Option<Instant>,
    pub(crate) sacked_newest: Option<Instant>,
    /// The end of the highest segment that had arrived before this acknowledgment.
    before: Option<Seq>,
}

impl News {
    fn arrived(&mut self, sent: &Sent, fack: Seq, high: Seq) {
        self.delivered += 1;
        if sent.ever_resent {
            return;
        }
        self.original |= !sent.end.after(high);
        self.reordered |= sent.from.before(fack);
    }
}

/// All of them, in the order of their numbers, without a gap between them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Segments {
    list: VecDeque<Sent>,
    flying: u32,
    sacked: u32,
    lost: u32,
    resent: u32,
    losses: u64,
    /// The end of the highest that the peer has.
    fack: Option<Seq>,
}

impl Segments {
    /// Segments that are not acknowledged.
    pub(crate) fn len(&self) -> u32 {
        self.list.len() as u32
    }

    pub(crate) const fn flying(&self) -> u32 {
        self.flying
    }

    pub(crate) const fn sacked(&self) -> u32 {
        self.sacked
    }

    /// Segments that are believed to be lost, sent again or not.
    pub(crate) const fn lost(&self) -> u32 {
        self.lost
    }

    /// How often a segment came to be believed lost so far, or a copy of one.
    pub(crate) const fn losses(&self) -> u64 {
        self.losses
    }

    /// Copies of what was sent again that may still arrive.
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

    /// The end of the highest segment that the peer has.
    pub(crate) const fn fack(&self) -> Option<Seq> {
        self.fack
    }

    /// What an acknowledgment that comes now tells, before any of it is taken in.
    pub(crate) fn news(&self) -> News {
        News { before: self.fack, ..News::default() }
    }

    /// Something left: new data, or what follows in the list already.
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

    /// Changes one, and keeps the sums true.
    pub(crate) fn edit(&mut self, at: usize, change: impl FnOnce(&mut Sent)) {
        let Some(mut sent) = self.list.get(at).copied() else { return };
        self.count(&sent, false);
        change(&mut sent);
        self.count(&sent, true);
        if let Some(place) = self.list.get_mut(at) {
            *place = sent;
        }
    }

    /// Cuts one in two before `at`, if that lies within it.
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

    /// It is believed to be lost, with the copy that was sent again, if there is one.
    pub(crate) fn lose(&mut self, at: usize) {
        let further = self.get(at).is_some_and(|sent| !sent.sacked && (!sent.lost || sent.resent));
        self.losses += u64::from(further);
        self.edit(at, |sent| (sent.lost, sent.resent) = (!sent.sacked, false));
    }

    /// None of them is believed to be lost any more.
    pub(crate) fn find_again(&mut self) {
        for at in 0..self.list.len() {
            self.edit(at, |sent| sent.lost = false);
        }
    }

    /// What the peer says it has is forgotten: it may take that back (RFC 2018, section 8).
    pub(crate) fn renege(&mut self) {
        for at in 0..self.list.len() {
            self.edit(at, |sent| sent.sacked = false);
        }
        self.fack = None;
    }

    /// Takes a block of a selective acknowledgment; `each` is given each segment that is known now to have arrived. Of several
    /// blocks the lowest comes first: what arrived in order and is reported at once is not reordered (RFC 8985, section 6.2,
    /// step 3).
    pub(crate) fn sack(
        &mut self,
        from: Seq,
        end: Seq,
        high: Seq,
        news: &mut News,
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
                news.arrived(&sent, fack.unwrap_or(sent.from), high);
                news.sacked = true;
                if !sent.ever_resent {
                    news.sacked_oldest =
                        Some(Instant::sooner(news.sacked_oldest, Some(sent.at)).unwrap_or(sent.at));
                    news.sacked_newest = news.sacked_newest.max(Some(sent.at));
                }
                each(&sent);
                self.fack = Some(self.fack.map_or(sent.end, |fack| fack.latest(sent.end)));
            }
            at += 1;
        }
    }

    /// The segments that lie within a block.
    pub(crate) fn within(&self, from: Seq, end: Seq) -> impl Iterator<Item = &Sent> {
        let first = self.list.partition_point(|sent| sent.from.before(from));
        self.list.range(first..).take_while(move |sent| !sent.end.after(end))
    }

    /// The peer has all below `una`. Reordered is what lies below what arrived before this acknowledgment, whatever its blocks
    /// say.
    pub(crate) fn acked(&mut self, una: Seq, high: Seq, news: &mut News, mut each: impl FnMut(&Sent)) {
        while let Some(sent) = self.list.front().copied().filter(|sent| sent.from.before(una)) {
            news.acked = true;
            if sent.end.after(una) {
                self.edit(0, |sent| sent.from = una);
                return;
            }
            self.count(&sent, false);
            self.list.pop_front();
            news.again |= sent.ever_resent;
            if !sent.ever_resent && !sent.sacked {
                news.oldest = news.oldest.or(Some(sent.at));
                news.newest = news.newest.max(Some(sent.at));
            }
            if !sent.sacked {
                news.arrived(&sent, news.before.unwrap_or(sent.from), high);
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
        let (mut s, mut news) = (five(), News::default());
        s.sack(Seq(2000), Seq(4000), Seq(9000), &mut news, |_| ());
        assert_eq!((sums(&s), news.delivered, news.sacked), ([5, 3, 2, 0, 0], 2, true));
        s.lose(0);
        s.lose(2);
        assert_eq!(sums(&s), [5, 2, 2, 1, 0], "what the peer has is not lost");
        s.edit(0, |sent| (sent.resent, sent.ever_resent) = (true, true));
        assert_eq!(sums(&s), [5, 3, 2, 1, 1]);
        s.lose(0);
        assert_eq!(sums(&s), [5, 2, 2, 1, 0], "the copy too");
        let mut news = News::default();
        s.acked(Seq(4000), Seq(9000), &mut news, |_| ());
        assert_eq!((sums(&s), news.delivered, s.fack()), ([1, 1, 0, 0, 0], 2, None));
        assert_eq!(
            (news.oldest, news.newest),
            (Some(Instant::from_millis(1)), Some(Instant::from_millis(1)))
        );
    }

    #[test]
    fn blocks_that_cut_segments_cut_them() {
        let (mut s, mut news) = (five(), News::default());
        s.sack(Seq(1500), Seq(2500), Seq(9000), &mut news, |_| ());
        let sacked: Vec<_> =
            s.iter().filter(|sent| sent.sacked).map(|sent| (sent.from.0, sent.end.0)).collect();
        assert_eq!((sacked, sums(&s)), (vec![(1500, 2000), (2000, 2500)], [7, 5, 2, 0, 0]));
        s.acked(Seq(500), Seq(9000), &mut news, |_| ());
        assert_eq!((s.first().map(|sent| sent.from), s.len()), (Some(Seq(500)), 7));
    }

    #[test]
    fn what_comes_below_what_came_is_reordered_unless_it_was_sent_again() {
        let (mut s, mut news) = (five(), News::default());
        s.sack(Seq(3000), Seq(4000), Seq(9000), &mut news, |_| ());
        assert!(!news.reordered && news.original);
        s.edit(0, |sent| sent.ever_resent = true);
        let mut news = s.news();
        s.acked(Seq(1000), Seq(9000), &mut news, |_| ());
        assert!(!news.reordered && !news.original);
        s.acked(Seq(2000), Seq(1500), &mut news, |_| ());
        assert!(news.reordered && !news.original, "it was sent after the recovery began");
    }

    /// RFC 8985, section 6.2, step 3: an acknowledgment takes in what arrived in the order of the numbers. Here 0 and 1 arrive
    /// in order, and 2 is lost.
    #[test]
    fn what_arrived_in_order_is_not_reordered_for_a_block_beside_it() {
        let (mut s, high) = (five(), Seq(9000));
        let mut news = s.news();
        s.sack(Seq(3000), Seq(4000), high, &mut news, |_| ());
        s.acked(Seq(2000), high, &mut news, |_| ());
        assert!(!news.reordered && news.delivered == 3);
        let mut news = s.news();
        s.acked(Seq(3000), high, &mut news, |_| ());
        assert!(news.reordered, "it comes after what was sent later");
    }

    #[test]
    fn segments_within_a_block() {
        let s = five();
        let within = |from, end| s.within(Seq(from), Seq(end)).map(|sent| sent.from.0).collect::<Vec<_>>();
        assert_eq!((within(1000, 3000), within(900, 2999)), (vec![1000, 2000], vec![1000]));
        assert_eq!(within(4500, 9000), [] as [u32; 0]);
    }
}
