//! The receiving half of an association: chunks, reassembly and SACK (RFC 9260, sections 6.2, 6.5, 6.6 and 6.9).

use crate::message::{Data, Sack};
use crate::tsn::{Tsn, extend};
use std::collections::{BTreeMap, VecDeque};
use wire::{Duration, Instant};

/// The largest offset from the cumulative TSN that a gap block of a SACK can report, in 16 bits.
const REACH: Tsn = 65_535;
/// The largest number of duplicates that one SACK reports.
const DUPLICATES: usize = 20;
/// The least number of bytes that a chunk counts in the buffer. A chunk of one byte uses more memory than one byte, so
/// chunks of one byte could use more memory than the window allows.
const LEAST: usize = 16;

/// A message that a user reads, or a part of a message. A message is split if the receive buffer is full before the
/// message is complete, or if the message is larger than the user asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Piece {
    /// The number of the message: its first TSN, extended to 64 bits. All pieces of a message have the same number,
    /// and pieces of other messages may come between them.
    pub message: u64,
    /// The number of the stream, from 0.
    pub stream: u16,
    /// The payload protocol identifier that the sender gave.
    pub ppid: u32,
    /// Whether the message is unordered in its stream.
    pub unordered: bool,
    /// Whether the piece is the first one of the message.
    pub begins: bool,
    /// Whether the piece is the last one of the message.
    pub ends: bool,
    /// The bytes of the piece, at least one.
    pub data: Vec<u8>,
}

/// The result of [`Inbound`] for a received DATA chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Taken {
    /// The chunk is new, and will be acknowledged.
    New,
    /// The chunk is a duplicate. The value is its TSN.
    Known(Tsn),
    /// There is no room for the chunk, or its TSN is too high. It will not be acknowledged.
    Dropped,
}

/// The peer's TSNs or flags contradict each other, so no message can be reassembled (RFC 9260, section 6.9).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Violation(pub(crate) &'static str);

/// Chunks of one message with consecutive TSNs.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "three are flags on the wire")]
struct Run {
    last: Tsn,
    stream: u16,
    ssn: u16,
    ppid: u32,
    unordered: bool,
    begins: bool,
    ends: bool,
    /// The begin of the message was delivered already.
    partly: bool,
    parts: VecDeque<Vec<u8>>,
}

impl Run {
    fn same(&self, data: &Data) -> bool {
        self.stream == data.stream
            && self.unordered == data.unordered
            && (self.unordered || self.ssn == data.ssn)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Inbound {
    /// The initial TSN of the peer.
    first: Tsn,
    /// The cumulative TSN: all chunks up to this TSN have come.
    cumulative: Tsn,
    /// Ranges of TSNs above the cumulative TSN that have come: the last TSN by the first one. There is a gap between
    /// two ranges.
    above: BTreeMap<Tsn, Tsn>,
    /// Parts of incomplete messages, by the first TSN of each part.
    runs: BTreeMap<Tsn, Run>,
    /// Complete messages that wait for an earlier message of their stream, by stream and SSN.
    waiting: BTreeMap<(u16, u16), Piece>,
    /// The SSN that each stream expects next.
    next: BTreeMap<u16, u16>,
    ready: VecDeque<Piece>,
    /// Bytes of the buffer in use: each chunk counts at least [`LEAST`].
    held: usize,
    limit: usize,
    streams: u16,
    duplicates: Vec<u32>,
    unacknowledged: u32,
    advertised: usize,
    /// A SACK is to be sent now.
    pub(crate) due: bool,
    /// When a delayed SACK is to be sent.
    pub(crate) delayed: Option<Instant>,
}

impl Inbound {
    /// Creates the state for a peer whose initial TSN is `first` and that sends in `streams` streams. `limit`: bytes
    /// of the buffer.
    pub(crate) fn new(first: Tsn, limit: u32, streams: u16) -> Self {
        Self {
            first,
            cumulative: first - 1,
            above: BTreeMap::new(),
            runs: BTreeMap::new(),
            waiting: BTreeMap::new(),
            next: BTreeMap::new(),
            ready: VecDeque::new(),
            held: 0,
            limit: limit as usize,
            streams,
            duplicates: Vec::new(),
            unacknowledged: 0,
            advertised: limit as usize,
            due: false,
            delayed: None,
        }
    }

    pub(crate) const fn cumulative(&self) -> Tsn {
        self.cumulative
    }

    /// Returns whether no chunk has come.
    pub(crate) fn is_fresh(&self) -> bool {
        self.cumulative + 1 == self.first && self.above.is_empty()
    }

    fn window(&self) -> usize {
        self.limit.saturating_sub(self.held)
    }

    /// Returns whether a piece of a message can be read now.
    pub(crate) fn readable(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Returns the number of bytes of the buffer in use.
    pub(crate) const fn held(&self) -> usize {
        self.held
    }

    pub(crate) fn knows(&self, stream: u16) -> bool {
        stream < self.streams
    }

    // --- chunks that are received ----------------------------------------------------------------------------------

    /// Takes a chunk. A duplicate, a chunk with a too high TSN, and a chunk for which there is no room are dropped, and
    /// a SACK is due at once.
    pub(crate) fn take(&mut self, data: &Data) -> Result<Taken, Violation> {
        let tsn = extend(self.cumulative, data.tsn);
        if tsn <= self.cumulative || self.has(tsn) {
            if self.duplicates.len() < DUPLICATES {
                self.duplicates.push(data.tsn);
            }
            self.due = true; // a duplicate is acknowledged without delay (RFC 9260, section 6.2)
            return Ok(Taken::Known(tsn));
        }
        let cost = data.data.len().max(LEAST);
        let fills = self.above.last_key_value().is_some_and(|(_, last)| tsn < *last);
        // The window had room for a chunk in a gap when the peer sent a later chunk. So a chunk in a gap may use twice
        // the limit, as the peer may count the window differently.
        let room = if fills { self.limit * 2 } else { self.limit };
        if tsn > self.cumulative + REACH || self.held + cost > room {
            self.due = true;
            self.deliver_partly();
            return Ok(Taken::Dropped);
        }
        let known = self.knows(data.stream);
        if known {
            self.insert(tsn, data)?;
            self.held += cost;
        }
        self.mark(tsn);
        self.due |= data.immediate || !self.above.is_empty();
        if self.window() == 0 {
            self.deliver_partly();
        }
        Ok(Taken::New)
    }

    /// Decides when a packet with DATA is acknowledged (RFC 9260, section 6.2). Called after the last chunk of the
    /// packet. `delay`: how long a SACK may wait for a second packet.
    pub(crate) fn packet_ends(&mut self, now: Instant, delay: Duration) {
        self.unacknowledged += 1;
        if self.unacknowledged >= 2 || self.due {
            self.due = true;
        } else {
            self.delayed.get_or_insert(now + delay);
        }
    }

    fn has(&self, tsn: Tsn) -> bool {
        self.above.range(..=tsn).next_back().is_some_and(|(_, last)| tsn <= *last)
    }

    /// Records that the chunk `tsn` has come for the first time.
    fn mark(&mut self, tsn: Tsn) {
        let mut first = tsn;
        let mut last = self.above.remove(&(tsn + 1)).unwrap_or(tsn);
        if let Some((begin, _)) = self.above.range(..tsn).next_back().filter(|(_, end)| **end + 1 == tsn) {
            first = *begin;
        }
        if first == self.cumulative + 1 {
            self.above.remove(&first);
            self.cumulative = std::mem::take(&mut last);
        } else {
            self.above.insert(first, last);
        }
    }

    /// Joins a chunk to the adjacent chunks of the same message, and delivers the message if it is complete.
    fn insert(&mut self, tsn: Tsn, data: &Data) -> Result<(), Violation> {
        let mut run = Run {
            last: tsn,
            stream: data.stream,
            ssn: data.ssn,
            ppid: data.ppid,
            unordered: data.unordered,
            begins: data.begins,
            ends: data.ends,
            partly: false,
            parts: VecDeque::from([data.data.clone()]),
        };
        // Two chunks with consecutive TSNs are of different messages if the first one ends a message and the second
        // one begins a message. If only one of these is true, the flags are wrong.
        let mut first = tsn;
        let before = self.runs.range(..tsn).next_back().filter(|(_, run)| run.last + 1 == tsn);
        if let Some((begin, before)) = before {
            if before.ends != data.begins || !(before.ends || before.same(data)) {
                return Err(Violation("DATA whose flags, stream or SSN contradict the chunk before it"));
            }
            first = if before.ends { tsn } else { *begin };
        }
        if let Some(after) = self.runs.get(&(tsn + 1))
            && (data.ends != after.begins || !(data.ends || after.same(data)))
        {
            return Err(Violation("DATA whose flags, stream or SSN contradict the chunk behind it"));
        }
        if !data.ends
            && let Some(after) = self.runs.remove(&(tsn + 1))
        {
            run.last = after.last;
            run.ends = after.ends;
            run.parts.extend(after.parts);
        }
        if first < tsn
            && let Some(mut before) = self.runs.remove(&first)
        {
            before.last = run.last;
            before.ends = run.ends;
            // The shorter list is moved. Otherwise a message that arrives in reverse order would take quadratic time.
            if before.parts.len() < run.parts.len() {
                while let Some(part) = before.parts.pop_back() {
                    run.parts.push_front(part);
                }
                before.parts = run.parts;
            } else {
                before.parts.append(&mut run.parts);
            }
            run = before;
        }
        self.place(first, run)
    }

    fn place(&mut self, first: Tsn, run: Run) -> Result<(), Violation> {
        if run.partly || (run.begins && run.ends) {
            return self.deliver(first, run);
        }
        self.runs.insert(first, run);
        Ok(())
    }

    /// Delivers a complete message, or the available part of a message that is delivered in pieces.
    fn deliver(&mut self, first: Tsn, mut run: Run) -> Result<(), Violation> {
        let data = run.parts.drain(..).reduce(|mut all, part| {
            all.extend_from_slice(&part);
            all
        });
        let piece = Piece {
            message: first,
            stream: run.stream,
            ppid: run.ppid,
            unordered: run.unordered,
            begins: !run.partly,
            ends: run.ends,
            data: data.unwrap_or_default(),
        };
        if !run.ends {
            run.partly = true;
            self.ready.push_back(piece);
            self.runs.insert(first, run);
            return Ok(());
        }
        if run.unordered {
            self.ready.push_back(piece);
            return Ok(());
        }
        let next = self.next.entry(run.stream).or_insert(0);
        if run.ssn.wrapping_sub(*next) > u16::MAX / 2
            || self.waiting.insert((run.stream, run.ssn), piece).is_some()
        {
            return Err(Violation("a stream sequence number that was used before"));
        }
        while let Some(piece) = self.waiting.remove(&(run.stream, *next)) {
            *next = next.wrapping_add(1);
            self.ready.push_back(piece);
        }
        Ok(())
    }

    /// Delivers the available part of the oldest message that may be read now (RFC 9260, section 6.9). Has no effect if
    /// a piece of a message is ready to be read. Called when the buffer is full or a chunk is dropped.
    fn deliver_partly(&mut self) {
        if !self.ready.is_empty() {
            return;
        }
        let oldest = self.runs.iter().find(|(_, run)| {
            let is_next = run.unordered || self.next.get(&run.stream).copied().unwrap_or(0) == run.ssn;
            run.begins && is_next && !run.parts.is_empty()
        });
        if let Some(first) = oldest.map(|(first, _)| *first)
            && let Some(run) = self.runs.remove(&first)
        {
            // The run has no end yet, so `deliver` does not check the SSN and cannot fail.
            _ = self.deliver(first, run);
        }
    }

    // --- messages that the user reads ------------------------------------------------------------------------------

    /// Returns the next piece, of at most `most` bytes, or `None`.
    pub(crate) fn read(&mut self, most: usize) -> Option<Piece> {
        let front = self.ready.front_mut().filter(|_| most > 0)?;
        let piece = if front.data.len() > most {
            let rest = front.data.split_off(most);
            let piece =
                Piece { ends: false, data: std::mem::replace(&mut front.data, rest), ..front.clone() };
            front.begins = false;
            piece
        } else {
            self.ready.pop_front()?
        };
        self.held = self.held.saturating_sub(piece.data.len());
        if self.ready.is_empty() && self.runs.is_empty() && self.waiting.is_empty() {
            self.held = 0; // small chunks count more than their length
        }
        // The window has opened from less than a quarter of the buffer to at least half: the peer may wait for it, so
        // a SACK is due (RFC 9260, section 6.2).
        if self.advertised < self.limit / 4 && self.window() >= self.limit / 2 {
            self.due = true;
        }
        Some(piece)
    }

    // --- acknowledgments that are sent -----------------------------------------------------------------------------

    /// Returns a SACK of at most `most` bytes, and notes that no SACK is due any more.
    pub(crate) fn sack(&mut self, most: usize) -> Sack {
        self.due = false;
        self.delayed = None;
        self.unacknowledged = 0;
        self.advertised = self.window();
        let offset = |tsn: Tsn| (tsn - self.cumulative) as u16;
        let room = most.saturating_sub(16) / 4;
        let gaps: Vec<_> =
            self.above.iter().take(room).map(|(first, last)| (offset(*first), offset(*last))).collect();
        let mut duplicates = std::mem::take(&mut self.duplicates);
        duplicates.truncate(room - gaps.len());
        Sack { cumulative: self.cumulative as u32, a_rwnd: self.advertised as u32, gaps, duplicates }
    }
}
