//! The sending half: what may be sent, and again (RFC 9260, sections 6.1 to 6.3, 6.9 and 7.2).

mod acknowledged;

use crate::message::{DATA_HEADER, Data};
use crate::path::Paths;
use crate::serial::{Tsn, begin};
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
    /// Where it went last, and which address of ours it left from.
    path: Ipv4Addr,
    from: Ipv4Addr,
    fate: Fate,
    misses: u8,
    /// It was sent again because of a gap: only once (section 7.2.4, 4).
    hurried: bool,
    /// It was sent more than once: its acknowledgment tells no round trip.
    again: bool,
    /// When it left first.
    left: Instant,
    /// Which transmission it was, of all.
    order: u64,
}

impl Sent {
    /// Bytes of the user: what the peer's window bounds.
    fn len(&self) -> u32 {
        self.data.data.len() as u32
    }

    /// Bytes of the chunk: what the congestion window bounds.
    fn charge(&self) -> u32 {
        self.data.wire_len() as u32
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
    /// The number of the first chunk.
    first: Tsn,
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
    /// The user writes nothing more: the last chunk asks to be acknowledged at once, as the shutdown waits for that.
    finishing: bool,
    /// Chunks that were sent more than once and are acknowledged by now: where they went, and their bytes. The peer may report
    /// the copy as a duplicate.
    repeated: VecDeque<(Tsn, Ipv4Addr, u32)>,
    pub(crate) counts: Counts,
}

impl Outbound {
    pub(crate) const fn new(first: u32, limit: u32, streams: u16, window: u32) -> Self {
        Self {
            pending: VecDeque::new(),
            sent: VecDeque::new(),
            first: begin(first),
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
            finishing: false,
            repeated: VecDeque::new(),
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

    /// Whether something was sent and is not acknowledged.
    pub(crate) fn is_outstanding(&self) -> bool {
        !self.sent.is_empty()
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

    /// Nothing more is written.
    pub(crate) const fn finish(&mut self) {
        self.finishing = true;
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
            if paths.get(to).is_some_and(|path| path.open(self.hurry && !timed_out)) {
                return Some(to);
            }
        }
        let to = paths.for_data();
        let open = paths.get(to).is_some_and(|path| path.open(false));
        (open && self.next_fits(paths.largest_chunk())).then_some(to)
    }

    /// Section 6.1, A: the peer has room, or nothing is on its way and it is to be asked whether it has.
    fn next_fits(&self, largest: u32) -> bool {
        let Some(message) = self.pending.front() else { return false };
        let len = (message.bytes.len() - message.at).min(largest as usize - DATA_HEADER);
        len as u32 <= self.window || self.sent.is_empty()
    }

    /// Chunks for one packet `from` an address of ours `to` one of the peer's, with `room` bytes for them: first what was lost, then
    /// what is new.
    pub(crate) fn chunks(
        &mut self,
        now: Instant,
        paths: &mut Paths,
        (from, to): (Ipv4Addr, Ipv4Addr),
        mut room: usize,
    ) -> Vec<Data> {
        let mut chunks = Vec::new();
        self.lost_chunks(now, paths, (from, to), &mut room, &mut chunks);
        if paths.for_data() == to {
            self.new_chunks(now, paths, (from, to), &mut room, &mut chunks);
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
        (from, to): (Ipv4Addr, Ipv4Addr),
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
            if !path.open(hurry && !timed_out) {
                break;
            }
            self.hurry = false;
            self.lost -= 1;
            self.transmissions += 1;
            self.counts.retransmissions += 1;
            (sent.path, sent.from, sent.fate, sent.misses) = (to, from, Fate::Flying, 0);
            (sent.again, sent.order) = (true, self.transmissions);
            *room = room.saturating_sub(sent.data.wire_len());
            self.flight += sent.len();
            self.window = self.window.saturating_sub(sent.len());
            path.sent(now, sent.charge());
            chunks.push(sent.data.clone());
        }
    }

    fn new_chunks(
        &mut self,
        now: Instant,
        paths: &mut Paths,
        (from, to): (Ipv4Addr, Ipv4Addr),
        room: &mut usize,
        chunks: &mut Vec<Data>,
    ) {
        let largest = paths.largest_chunk();
        while self.lost == 0 && self.next_fits(largest) {
            let tsn = self.next_tsn();
            let Some(path) = paths.get_mut(to).filter(|path| path.open(false)) else { break };
            let last_message = self.pending.len() == 1;
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
                // RFC 9260, section 3.3.1: a shutdown must not wait for a delayed acknowledgment.
                immediate: self.finishing && last_message && len == left.len(),
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
            path.sent(now, data.wire_len() as u32);
            path.timed.get_or_insert((tsn, now)); // one at a time: section 6.3.1, C4
            chunks.push(data.clone());
            let (fate, order) = (Fate::Flying, self.transmissions);
            self.sent.push_back(Sent {
                data,
                path: to,
                from,
                fate,
                misses: 0,
                hurried: false,
                again: false,
                left: now,
                order,
            });
        }
    }
}
