//! The sending half: what may be sent, and again (RFC 9260, sections 6.1 to 6.3, 6.9 and 7.2).

use crate::message::{DATA_HEADER, Data};
use crate::path::Paths;
use crate::serial::{Tsn, begin, extend};
use std::collections::{BTreeMap, VecDeque};
use wire::{Instant, Ipv4Addr};

/// SACKs that say that a chunk is missing before it is sent again (section 7.2.4).
const MISSES: u8 = 3;

/// Where a chunk stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    /// On its way.
    Flying,
    /// To be sent again: after a time-out, a gap, or because its path has gone.
    Lost { timed_out: bool },
    /// The peer has it, beyond a gap; it may still think better of it.
    Kept,
}

#[derive(Clone, Debug)]
struct Sent {
    data: Data,
    /// Where it went last.
    path: Ipv4Addr,
    fate: Fate,
    misses: u8,
    /// It was sent again because of a gap: only once (section 7.2.4, 4).
    hurried: bool,
    /// It was sent more than once: its acknowledgment tells no round trip.
    again: bool,
    /// Which transmission it was, of all.
    order: u64,
}

impl Sent {
    fn len(&self) -> u32 {
        self.data.data.len() as u32
    }
}

#[derive(Clone, Debug)]
struct Pending {
    stream: u16,
    ssn: u16,
    ppid: u32,
    unordered: bool,
    bytes: Vec<u8>,
    /// So many of them were sent.
    at: usize,
}

/// The peer acknowledges what was never sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Unsent;

/// What an acknowledgment has brought.
#[derive(Clone, Debug, Default)]
pub(crate) struct News {
    /// Bytes of the user that need not be kept any more.
    pub(crate) freed: usize,
    /// Something was acknowledged for the first time.
    pub(crate) progress: bool,
    /// Paths that were inactive and have been heard of.
    pub(crate) revived: Vec<Ipv4Addr>,
}

/// What an acknowledgment says of one path.
#[derive(Clone, Copy, Default)]
struct Share {
    bytes: u32,
    before: u32,
    /// The latest transmission, and the largest number, that were acknowledged.
    order: u64,
    tsn: Tsn,
    /// The oldest that was on its way is among them.
    oldest: bool,
}

/// Counts for reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Chunks sent again, by whatever cause.
    pub retransmissions: u64,
    /// Chunks that gaps caused to be sent again.
    pub fast_retransmits: u64,
    /// Times that T3 went off.
    pub timeouts: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Outbound {
    pending: VecDeque<Pending>,
    /// Numbered one behind the other, from `cumulative` + 1 on.
    sent: VecDeque<Sent>,
    cumulative: Tsn,
    next_ssn: BTreeMap<u16, u16>,
    /// Bytes of the user in `pending` and `sent`.
    held: usize,
    limit: usize,
    pub(crate) streams: u16,
    /// What the peer still has room for.
    pub(crate) window: u32,
    transmissions: u64,
    flight: u32,
    lost: usize,
    /// One packet may leave in spite of the congestion window (section 7.2.4, 3).
    hurry: bool,
    pub(crate) counts: Counts,
}

impl Outbound {
    pub(crate) const fn new(first: u32, limit: u32, streams: u16, window: u32) -> Self {
        Self {
            pending: VecDeque::new(),
            sent: VecDeque::new(),
            cumulative: begin(first) - 1,
            next_ssn: BTreeMap::new(),
            held: 0,
            limit: limit as usize,
            streams,
            window,
            transmissions: 0,
            flight: 0,
            lost: 0,
            hurry: false,
            counts: Counts { retransmissions: 0, fast_retransmits: 0, timeouts: 0 },
        }
    }

    // --- the user --------------------------------------------------------------------------------------------------

    pub(crate) const fn room(&self) -> usize {
        self.limit.saturating_sub(self.held)
    }

    pub(crate) const fn held(&self) -> usize {
        self.held
    }

    /// Whether nothing waits to be sent or acknowledged.
    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.sent.is_empty()
    }

    /// A message, which fits the room.
    pub(crate) fn write(&mut self, stream: u16, ppid: u32, unordered: bool, bytes: &[u8]) {
        let mut ssn = 0;
        if !unordered {
            let next = self.next_ssn.entry(stream).or_insert(0);
            ssn = *next;
            *next = next.wrapping_add(1);
        }
        self.held += bytes.len();
        self.pending.push_back(Pending { stream, ssn, ppid, unordered, bytes: bytes.to_vec(), at: 0 });
    }

    // --- chunks that leave -----------------------------------------------------------------------------------------

    /// The number of the next new chunk.
    fn next_tsn(&self) -> Tsn {
        self.cumulative + 1 + self.sent.len() as Tsn
    }

    /// Where the next chunk would go, if one may leave now.
    pub(crate) fn destination(&self, paths: &Paths) -> Option<Ipv4Addr> {
        for sent in self.sent.iter().filter(|_| self.lost > 0) {
            let Fate::Lost { timed_out } = sent.fate else { continue };
            let to = paths.for_retransmission(sent.path, timed_out);
            if paths.get(to).is_some_and(|path| path.open() || (self.hurry && !timed_out)) {
                return Some(to);
            }
        }
        let to = paths.for_data();
        let open = paths.get(to).is_some_and(|path| path.confirmed && path.open());
        (open && self.next_fits(paths.largest_chunk())).then_some(to)
    }

    /// Section 6.1, A: the peer has room, or nothing is on its way and it is to be asked whether it has.
    fn next_fits(&self, largest: u32) -> bool {
        let Some(message) = self.pending.front() else { return false };
        let len = (message.bytes.len() - message.at).min(largest as usize - DATA_HEADER);
        len as u32 <= self.window || self.sent.is_empty()
    }

    /// Chunks for one packet to `to` with `room` bytes for them: first what was lost, then what is new.
    pub(crate) fn chunks(
        &mut self,
        now: Instant,
        paths: &mut Paths,
        to: Ipv4Addr,
        mut room: usize,
    ) -> Vec<Data> {
        let mut chunks = Vec::new();
        self.lost_chunks(now, paths, to, &mut room, &mut chunks);
        if paths.for_data() == to {
            self.new_chunks(now, paths, to, &mut room, &mut chunks);
        }
        if let Some(path) = paths.get_mut(to).filter(|_| !chunks.is_empty()) {
            path.burst = path.burst.saturating_sub(1);
        }
        chunks
    }

    fn lost_chunks(
        &mut self,
        now: Instant,
        paths: &mut Paths,
        to: Ipv4Addr,
        room: &mut usize,
        chunks: &mut Vec<Data>,
    ) {
        let hurry = self.hurry;
        let largest = paths.get(to).map_or(0, |path| path.largest_chunk() as usize);
        for sent in &mut self.sent {
            if self.lost == 0 {
                break;
            }
            let Fate::Lost { timed_out } = sent.fate else { continue };
            // What was cut before the path became narrower has to leave as it is.
            let fits = sent.data.wire_len() <= *room || (chunks.is_empty() && sent.data.wire_len() > largest);
            if paths.for_retransmission(sent.path, timed_out) != to || !fits {
                continue;
            }
            let Some(path) = paths.get_mut(to) else { break };
            if !path.open() && (!hurry || timed_out) {
                break;
            }
            self.hurry = false;
            self.lost -= 1;
            self.transmissions += 1;
            self.counts.retransmissions += 1;
            (sent.path, sent.fate, sent.misses) = (to, Fate::Flying, 0);
            (sent.again, sent.order) = (true, self.transmissions);
            *room = room.saturating_sub(sent.data.wire_len());
            self.flight += sent.len();
            self.window = self.window.saturating_sub(sent.len());
            path.sent(now, sent.len());
            chunks.push(sent.data.clone());
        }
    }

    fn new_chunks(
        &mut self,
        now: Instant,
        paths: &mut Paths,
        to: Ipv4Addr,
        room: &mut usize,
        chunks: &mut Vec<Data>,
    ) {
        let largest = paths.largest_chunk();
        while self.lost == 0 && self.next_fits(largest) {
            let tsn = self.next_tsn();
            let Some(path) = paths.get_mut(to).filter(|path| path.open() && path.confirmed) else { break };
            let Some(message) = self.pending.front_mut() else { break };
            let left = message.bytes.get(message.at..).unwrap_or_default();
            let len = left.len().min(largest as usize - DATA_HEADER);
            if (DATA_HEADER + len).next_multiple_of(4) > *room {
                break;
            }
            let data = Data {
                begins: message.at == 0,
                ends: len == left.len(),
                unordered: message.unordered,
                immediate: false,
                tsn: tsn as u32,
                stream: message.stream,
                ssn: message.ssn,
                ppid: message.ppid,
                data: left.get(..len).unwrap_or_default().to_vec(),
            };
            message.at += len;
            if data.ends {
                self.pending.pop_front();
            }
            *room -= data.wire_len();
            self.transmissions += 1;
            self.flight += len as u32;
            self.window = self.window.saturating_sub(len as u32);
            path.sent(now, len as u32);
            path.timed.get_or_insert((tsn, now)); // one at a time: section 6.3.1, C4
            chunks.push(data.clone());
            let (fate, order) = (Fate::Flying, self.transmissions);
            self.sent.push_back(Sent {
                data,
                path: to,
                fate,
                misses: 0,
                hurried: false,
                again: false,
                order,
            });
        }
    }

    // --- acknowledgments -------------------------------------------------------------------------------------------

    /// The peer has all up to `cumulative`; with a SACK, also what is in `gaps`, and room for `a_rwnd` bytes.
    pub(crate) fn acknowledge(
        &mut self,
        now: Instant,
        paths: &mut Paths,
        cumulative: u32,
        sack: Option<(&[(u16, u16)], u32)>,
    ) -> Result<News, Unsent> {
        let upto = extend(self.cumulative, cumulative);
        let reported = sack.and_then(|(gaps, _)| gaps.last()).map_or(0, |(_, last)| Tsn::from(*last));
        if upto + reported >= self.next_tsn() && upto >= self.cumulative {
            return Err(Unsent);
        }
        let mut news = News::default();
        if upto < self.cumulative {
            return Ok(news); // an older one that was overtaken
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
        if let Some((gaps, _)) = sack {
            self.gaps(now, gaps, paths, &mut shares);
        }
        for (address, share) in &mut shares {
            share.oldest = oldest.get(address).is_some_and(|first| !self.is_flying(*first));
        }
        self.judge(now, paths, &shares, advanced, &mut news);
        if sack.is_some() {
            self.misses(paths, &shares, advanced, upto + reported);
        }
        if let Some((_, a_rwnd)) = sack {
            self.window = a_rwnd.saturating_sub(self.flight);
        }
        Ok(news)
    }

    fn shares(paths: &Paths) -> BTreeMap<Ipv4Addr, Share> {
        paths.iter().map(|path| (path.address, Share { before: path.flight, ..Share::default() })).collect()
    }

    /// The first chunk that is on its way, for each path.
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

    /// A chunk is acknowledged, by whatever means.
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
            path.flight = path.flight.saturating_sub(sent.len());
        }
        if let Some((_, begun)) = path.timed.take_if(|(timed, _)| *timed == tsn)
            && !sent.again
        {
            path.rto.sample(now.since(begun));
        }
        if let Some(share) = shares.get_mut(&sent.path) {
            share.bytes += sent.len();
            share.order = share.order.max(sent.order);
            share.tsn = share.tsn.max(tsn);
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
                // The peer thought better of it (section 6.2.1, D, and section 6.3.2, R4).
                chunk.fate = Fate::Flying;
                self.flight += chunk.len();
                if let Some(path) = paths.get_mut(chunk.path) {
                    path.flight += chunk.len();
                    path.t3.get_or_insert(now + path.rto.current());
                }
            }
        }
        self.sent = sent;
    }

    /// What the acknowledgment means for each path: window, errors, T3.
    fn judge(
        &self,
        now: Instant,
        paths: &mut Paths,
        shares: &BTreeMap<Ipv4Addr, Share>,
        advanced: bool,
        news: &mut News,
    ) {
        for path in paths.iter_mut() {
            let Some(share) = shares.get(&path.address).filter(|share| share.bytes > 0) else { continue };
            news.progress = true;
            if path.alive() {
                news.revived.push(path.address);
            }
            path.latest_acked = path.latest_acked.max(share.order);
            if path.recovery.is_some_and(|until| self.cumulative >= until) {
                path.recovery = None;
            }
            path.grow(share.bytes, share.before, advanced);
            if path.flight == 0 {
                path.t3 = None; // section 6.3.2, R2
            } else if share.oldest {
                path.t3 = Some(now + path.rto.current()); // R3
            }
        }
        for path in
            paths.iter_mut().filter(|path| path.recovery.is_some_and(|until| self.cumulative >= until))
        {
            path.recovery = None;
        }
    }

    /// Counts what is reported missing. A chunk is missed only when something that left later, along the same path, has
    /// come: after a switch the new path overtakes the old one, and nothing is lost by that (CACC).
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
            path.flight = path.flight.saturating_sub(sent.len());
            path.timed = None;
            (sent.fate, sent.hurried) = (Fate::Lost { timed_out: false }, true);
            self.flight = self.flight.saturating_sub(sent.len());
            self.lost += 1;
            self.hurry = true;
            self.counts.fast_retransmits += 1;
        }
    }

    // --- losses ----------------------------------------------------------------------------------------------------

    /// How many chunks have left so far, counting each time.
    pub(crate) const fn transmissions(&self) -> u64 {
        self.transmissions
    }

    /// T3 of a path went off, or the path has gone: all that is on its way there is lost (section 6.3.3).
    pub(crate) fn lose(&mut self, paths: &mut Paths, address: Ipv4Addr, timed_out: bool) {
        self.lose_until(paths, address, timed_out, u64::MAX);
    }

    /// The same for what left up to a transmission only.
    pub(crate) fn lose_until(&mut self, paths: &mut Paths, address: Ipv4Addr, timed_out: bool, order: u64) {
        let mut bytes = 0;
        for sent in &mut self.sent {
            if sent.path == address && sent.fate == Fate::Flying && sent.order <= order {
                sent.fate = Fate::Lost { timed_out };
                sent.misses = 0;
                self.lost += 1;
                bytes += sent.len();
            }
        }
        self.flight = self.flight.saturating_sub(bytes);
        self.window = self.window.saturating_add(bytes); // section 6.2.1, C
        if let Some(path) = paths.get_mut(address) {
            path.flight = path.flight.saturating_sub(bytes);
            path.timed = None;
            if path.flight == 0 {
                path.t3 = None;
            }
        }
    }

    /// The association begins anew with these numbers: what was not acknowledged is gone.
    pub(crate) fn restart(&mut self, first: u32, window: u32) {
        let counts = self.counts;
        *self = Self { counts, ..Self::new(first, self.limit as u32, self.streams, window) };
    }
}
