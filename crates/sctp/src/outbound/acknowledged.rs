//! Acknowledgments and losses of chunks that were sent (RFC 9260, sections 6.2.1, 6.3.2, 6.3.3 and 7.2).

use super::{AckEffects, Fate, MISSES, Outbound, Sent, Unsent};
use crate::message::Sack;
use crate::path::Paths;
use crate::tsn::{Tsn, begin, extend};
use std::collections::BTreeMap;
use wire::{Instant, Ipv4Addr};

/// The largest number of acknowledged chunks whose duplicates are still recognized.
const REPEATED: usize = 64;

/// The part of an acknowledgment that concerns one path.
#[derive(Clone, Copy, Default)]
struct Share {
    /// Numbers of bytes: `bytes` of acknowledged chunks, `again` of copies that were reported as duplicates, `before`
    /// in flight before the acknowledgment.
    bytes: u32,
    again: u32,
    before: u32,
    /// The number of the latest transmission (`order`) and the largest TSN (`tsn`) that were acknowledged.
    order: u64,
    tsn: Tsn,
    /// The chunk with the lowest TSN of those in flight on the path was acknowledged.
    oldest: bool,
    /// When the latest of the acknowledged chunks left. Only chunks that were sent once and never marked as lost are
    /// considered: the round trip of a lost chunk would include a time-out.
    left: Option<Instant>,
}

impl Outbound {
    /// Handles an acknowledgment of all chunks up to `cumulative`, and of the gap blocks and duplicates of `sack`.
    /// Returns an error if a TSN is acknowledged that was not sent.
    pub(crate) fn acknowledge(
        &mut self,
        now: Instant,
        paths: &mut Paths,
        cumulative: u32,
        sack: Option<&Sack>,
    ) -> Result<AckEffects, Unsent> {
        let upto = extend(self.cumulative, cumulative);
        let reported = sack.and_then(|sack| sack.gaps.last()).map_or(0, |(_, last)| Tsn::from(*last));
        if upto + reported >= self.next_tsn() && upto >= self.cumulative {
            return Err(Unsent);
        }
        let mut news = AckEffects::default();
        if upto < self.cumulative {
            return Ok(news); // an older SACK that was overtaken by a newer one
        }
        let advanced = upto > self.cumulative;
        let mut shares = Self::shares(paths);
        let oldest = self.oldest_flying();
        while self.cumulative < upto {
            let Some(mut sent) = self.sent.pop_front() else { break };
            self.cumulative += 1;
            let tsn = self.cumulative;
            self.settle(now, tsn, &mut sent, paths, &mut shares);
            news.freed += sent.data.data.len();
        }
        self.held = self.held.saturating_sub(news.freed);
        if let Some(sack) = sack {
            self.gaps(now, &sack.gaps, paths, &mut shares);
            self.duplicates(&sack.duplicates, &mut shares);
        }
        for (address, share) in &mut shares {
            share.oldest = oldest.get(address).is_some_and(|first| !self.is_flying(*first));
        }
        self.judge(now, paths, &shares, advanced, &mut news);
        if sack.is_some() {
            self.misses(paths, &shares, advanced, upto + reported);
        }
        if let Some(sack) = sack {
            self.window = sack.a_rwnd.saturating_sub(self.flight);
        }
        self.check(paths);
        Ok(news)
    }

    fn shares(paths: &Paths) -> BTreeMap<Ipv4Addr, Share> {
        paths.iter().map(|path| (path.address, Share { before: path.flight, ..Share::default() })).collect()
    }

    /// Returns the lowest TSN in flight on each path. Paths with nothing in flight are left out.
    fn oldest_flying(&self) -> BTreeMap<Ipv4Addr, Tsn> {
        let mut oldest = BTreeMap::new();
        for (tsn, sent) in (self.cumulative + 1..).zip(&self.sent) {
            if sent.fate == Fate::Flying {
                oldest.entry(sent.path).or_insert(tsn);
            }
        }
        oldest
    }

    fn is_flying(&self, tsn: Tsn) -> bool {
        let at = tsn.checked_sub(self.cumulative + 1).and_then(|at| self.sent.get(at as usize));
        at.is_some_and(|sent| sent.fate == Fate::Flying)
    }

    /// Records that a chunk is acknowledged, cumulatively or by a gap block.
    fn settle(
        &mut self,
        now: Instant,
        tsn: Tsn,
        sent: &mut Sent,
        paths: &mut Paths,
        shares: &mut BTreeMap<Ipv4Addr, Share>,
    ) {
        let fate = std::mem::replace(&mut sent.fate, Fate::Kept);
        match fate {
            Fate::Kept => return,
            Fate::Lost { .. } => self.lost -= 1,
            Fate::Flying => self.flight = self.flight.saturating_sub(sent.len()),
        }
        let Some(path) = paths.get_mut(sent.path) else { return };
        if fate == Fate::Flying {
            path.flight = path.flight.saturating_sub(sent.charge());
        }
        if sent.again {
            self.repeated.push_back((tsn, sent.path, sent.charge()));
            let surplus = self.repeated.len().saturating_sub(REPEATED);
            self.repeated.drain(..surplus);
        }
        if let Some((_, begun)) = path.timed.take_if(|(timed, _)| *timed == tsn)
            && !sent.again
        {
            path.rto.sample(now.since(begun));
        }
        if let Some(share) = shares.get_mut(&sent.path) {
            share.bytes += sent.charge();
            share.order = share.order.max(sent.order);
            share.tsn = share.tsn.max(tsn);
            share.left = share.left.max(Some(sent.left).filter(|_| fate == Fate::Flying && !sent.again));
        }
    }

    /// Adds the bytes of duplicates to `again`, once for each chunk, as the network has delivered these copies (RFC
    /// 9260, section 7.2.2).
    fn duplicates(&mut self, duplicates: &[u32], shares: &mut BTreeMap<Ipv4Addr, Share>) {
        for duplicate in duplicates {
            let known = self.repeated.iter().position(|(tsn, ..)| *tsn as u32 == *duplicate);
            let known = known.and_then(|at| self.repeated.remove(at));
            if let Some((_, path, bytes)) = known
                && let Some(share) = shares.get_mut(&path)
            {
                share.again += bytes;
            }
        }
    }

    fn gaps(
        &mut self,
        now: Instant,
        gaps: &[(u16, u16)],
        paths: &mut Paths,
        shares: &mut BTreeMap<Ipv4Addr, Share>,
    ) {
        let mut sent = std::mem::take(&mut self.sent);
        let mut gaps = gaps.iter().peekable();
        for (offset, chunk) in (1_u32..).zip(&mut sent) {
            while gaps.next_if(|(_, last)| u32::from(*last) < offset).is_some() {}
            let here = gaps.peek().is_some_and(|(first, _)| u32::from(*first) <= offset);
            if here {
                self.settle(now, self.cumulative + Tsn::from(offset), chunk, paths, shares);
            } else if chunk.fate == Fate::Kept {
                // The peer has dropped a chunk that it had acknowledged (RFC 9260, section 6.2.1, D, and section
                // 6.3.2, R4).
                chunk.fate = Fate::Flying;
                self.flight += chunk.len();
                if let Some(path) = paths.get_mut(chunk.path) {
                    path.flight += chunk.charge();
                    path.t3.get_or_insert(now + path.rto.current());
                }
            }
        }
        self.sent = sent;
    }

    /// Applies the acknowledgment to each path: to its congestion window, counter of failures, RTO and T3.
    fn judge(
        &self,
        now: Instant,
        paths: &mut Paths,
        shares: &BTreeMap<Ipv4Addr, Share>,
        advanced: bool,
        news: &mut AckEffects,
    ) {
        for path in paths.iter_mut() {
            let Some(share) = shares.get(&path.address) else { continue };
            if share.bytes == 0 {
                // The peer acknowledges a packet of duplicates at once, by a SACK that reports nothing else (RFC
                // 9260, section 6.2).
                if share.again > 0 {
                    path.grow(0, share.again, share.before, advanced);
                }
                continue;
            }
            news.progress = true;
            if path.alive() {
                news.revived.push(path.address);
            }
            path.latest_acked = path.latest_acked.max(share.order);
            // RFC 9260, section 6.3.1, C4, requires one measurement in each round trip. If the timed chunk was lost,
            // another chunk of the same flight is measured. Otherwise the RTO would stay backed off although chunks
            // are acknowledged.
            if let Some(left) = share.left.filter(|_| path.rto.backing().1 > 0) {
                path.rto.sample(now.since(left));
            } else if path.woken.is_some() {
                path.end_back_off(now);
            }
            if path.recovery.is_some_and(|until| self.cumulative >= until) {
                path.recovery = None;
            }
            path.grow(share.bytes, share.again, share.before, advanced);
            if path.flight == 0 {
                path.t3 = None; // RFC 9260, section 6.3.2, R2
            } else if share.oldest {
                path.t3 = Some(now + path.rto.current()); // RFC 9260, section 6.3.2, R3
            }
        }
        for path in
            paths.iter_mut().filter(|path| path.recovery.is_some_and(|until| self.cumulative >= until))
        {
            path.recovery = None;
        }
    }

    /// Counts reports of missing chunks (RFC 9260, section 7.2.4). A report counts only if a chunk that left later on
    /// the same path was acknowledged. Chunks on another path may overtake without a loss (CACC, changeover-aware
    /// congestion control).
    fn misses(
        &mut self,
        paths: &mut Paths,
        shares: &BTreeMap<Ipv4Addr, Share>,
        advanced: bool,
        reported: Tsn,
    ) {
        let last = self.next_tsn() - 1;
        for (tsn, sent) in (self.cumulative + 1..).zip(&mut self.sent) {
            if tsn >= reported {
                break;
            }
            let (Some(path), Some(share)) = (paths.get_mut(sent.path), shares.get(&sent.path)) else {
                continue;
            };
            let newly = tsn < share.tsn && sent.order < share.order;
            let recovering = advanced && path.recovery.is_some() && sent.order < path.latest_acked;
            if sent.fate != Fate::Flying || !(newly || recovering) {
                continue;
            }
            sent.misses = sent.misses.saturating_add(1);
            if sent.misses < MISSES || sent.hurried {
                continue;
            }
            path.lost(last);
            path.flight = path.flight.saturating_sub(sent.charge());
            path.timed = None;
            (sent.fate, sent.hurried) = (Fate::Lost { timed_out: false }, true);
            self.flight = self.flight.saturating_sub(sent.len());
            self.lost += 1;
            self.hurry = true;
            self.counts.fast_retransmits += 1;
        }
    }

    // --- lost chunks -----------------------------------------------------------------------------------------------

    /// Marks all chunks in flight to `address` as lost. `timed_out`: time-outs show that the path may not work, so
    /// another path is preferred (RFC 9260, section 6.3.3).
    pub(crate) fn lose(&mut self, paths: &mut Paths, address: Ipv4Addr, timed_out: bool) {
        self.lose_those(paths, address, timed_out, |_| true);
    }

    /// Marks chunks in flight that left from our addresses `gone` as lost, as their acknowledgments would not arrive.
    /// Congestion windows do not change.
    pub(crate) fn lose_from(&mut self, paths: &mut Paths, gone: &[Ipv4Addr]) {
        let all: Vec<Ipv4Addr> = paths.iter().map(|path| path.address).collect();
        for address in all {
            self.lose_those(paths, address, false, |sent| gone.contains(&sent.from));
        }
    }

    /// Marks chunks in flight to `address` as lost if they are larger than the reduced MTU allows. They are sent
    /// again before T3 expires. The congestion window does not change (RFC 9260, section 7.3).
    pub(crate) fn lose_the_large(&mut self, paths: &mut Paths, address: Ipv4Addr) {
        let largest = paths.get(address).map_or(0, crate::path::Path::largest_chunk);
        self.lose_those(paths, address, false, |sent| sent.charge() > largest);
    }

    fn lose_those(
        &mut self,
        paths: &mut Paths,
        address: Ipv4Addr,
        timed_out: bool,
        lost: impl Fn(&Sent) -> bool,
    ) {
        let (mut bytes, mut charge) = (0, 0);
        for sent in &mut self.sent {
            if sent.path == address && sent.fate == Fate::Flying && lost(sent) {
                sent.fate = Fate::Lost { timed_out };
                sent.misses = 0;
                self.lost += 1;
                bytes += sent.len();
                charge += sent.charge();
            }
        }
        self.flight = self.flight.saturating_sub(bytes);
        self.window = self.window.saturating_add(bytes); // RFC 9260, section 6.2.1, C
        if let Some(path) = paths.get_mut(address).filter(|_| charge > 0) {
            path.flight = path.flight.saturating_sub(charge);
            path.timed = None;
            if path.flight == 0 {
                path.t3 = None;
            }
        }
        self.check(paths);
    }

    /// Restarts with the initial TSN `first` and the peer's receive window `window`, in bytes. All data that were not
    /// acknowledged are dropped.
    pub(crate) fn restart(&mut self, first: u32, window: u32) {
        let counts = self.counts;
        *self = Self { counts, ..Self::new(first, self.limit as u32, self.streams, window) };
    }

    /// Returns whether the peer has acknowledged no chunk.
    pub(crate) fn is_fresh(&self) -> bool {
        self.cumulative + 1 == self.first && self.sent.iter().all(|sent| sent.fate != Fate::Kept)
    }

    /// Restarts with the initial TSN `first`, and makes all sent data due again. No chunk may have been acknowledged
    /// before.
    pub(crate) fn renumber(&mut self, first: u32) {
        (self.first, self.cumulative) = (begin(first), begin(first) - 1);
        for (tsn, sent) in (self.first..).zip(&mut self.sent) {
            (sent.data.tsn, sent.fate, sent.misses, sent.hurried) =
                (tsn as u32, Fate::Lost { timed_out: false }, 0, false);
        }
        (self.lost, self.flight, self.hurry) = (self.sent.len(), 0, false);
        self.repeated.clear();
    }
}
