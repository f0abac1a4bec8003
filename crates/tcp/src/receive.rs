//! The receiving half: reassembly, the announced window, when to acknowledge (RFC 9293, section 3.8.6.2; RFC 5681,
//! section 4.2).

use crate::growth::Growth;
use crate::reassembly::Reassembly;
use crate::send::copied;
use crate::{Profile, Seq, Timing};
use std::collections::VecDeque;
use wire::{Duration, Instant};

/// The segment size, in bytes, that is assumed until a larger segment arrives (Linux: `tcp_initialize_rcv_mss`).
const GUESS: u32 = 536;

/// The receiving half: data that is not read, and acknowledgments that are due.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Receiver {
    /// The next sequence number expected.
    pub(crate) next: Seq,
    /// The end of the window announced so far; it never moves back (RFC 9293, section 3.8.6).
    pub(crate) edge: Seq,
    pub(crate) unread: VecDeque<u8>,
    /// The number of the first byte of `unread`: everything before was read.
    read: Seq,
    pub(crate) scale: u8,
    /// Whether everything up to the peer's FIN has arrived.
    pub(crate) finished: bool,
    pub(crate) beyond: Reassembly,
    /// The sequence number of the peer's FIN, if known.
    pub(crate) fin: Option<Seq>,
    pub(crate) capacity: u32,
    /// The state of the window's growth up to `capacity`, as in Linux; `None`: the window does not grow.
    pub(crate) growth: Option<Growth>,
    mss: u32,
    delay: Option<Duration>,
    every: u32,
    timing: Timing,
    pub(crate) quick: u32,
    /// The limit of `quick` if quick acknowledgments can start again; `None`: they cannot.
    quick_again: Option<u32>,
    pub(crate) last: Option<Instant>,
    /// The number of data segments that arrived in order, and for which no acknowledgment was sent.
    pub(crate) waiting: u32,
    /// Whether an acknowledgment is due, alone or with data.
    pub(crate) due: bool,
    /// The number of acknowledgments that must be segments without data, because the peer counts duplicates (RFC 5681,
    /// section 2).
    pub(crate) duplicates: u32,
    pub(crate) delayed: Option<Instant>,
    /// Whether data that arrived twice is reported (RFC 2883).
    reports: bool,
    /// The range of data that arrived twice and is not reported yet.
    pub(crate) duplicate: Option<(Seq, Seq)>,
}

impl Receiver {
    /// Returns the state after the peer's SYN. `next` is the sequence number of the first byte that is expected.
    pub(crate) fn new(profile: &Profile, next: Seq, scale: u8) -> Self {
        let capacity = sayable(profile.receive_buffer, scale);
        let mss = u32::from(profile.mss);
        let growth = profile.window_growth.then(|| Growth::new(profile.receive_buffer, capacity, mss, next));
        let first = growth.as_ref().map_or(capacity, |growth| growth.window);
        Self {
            next,
            edge: next.plus(first.min(u32::from(u16::MAX))), // a SYN cannot announce more
            unread: VecDeque::new(),
            read: next,
            scale,
            finished: false,
            beyond: Reassembly::default(),
            fin: None,
            capacity,
            growth,
            mss,
            delay: profile.delayed_ack,
            every: profile.ack_every,
            timing: profile.timing,
            quick: if profile.quick_again { 0 } else { profile.quick_acks },
            quick_again: profile.quick_again.then_some(profile.quick_acks),
            last: None,
            waiting: 0,
            due: false,
            duplicates: 0,
            delayed: None,
            reports: profile.dsack,
            duplicate: None,
        }
    }

    /// Notes that `from..end` arrived once more, if the profile has `dsack`. The next segment to the peer reports this
    /// range (RFC 2883, section 4).
    pub(crate) fn came_twice(&mut self, from: Seq, end: Seq) {
        if self.reports && from.before(end) {
            self.duplicate = Some((from, end));
        }
    }

    /// Makes the next data segments be acknowledged at once, if `quick_again` is set. Their number is half of the
    /// segments that fit in the window, or 2 if that is zero, but at most the profile's `quick_acks` (Linux:
    /// `tcp_incr_quickack`). The segments count in the largest size that has arrived.
    fn be_quick(&mut self) {
        let Some(most) = self.quick_again else { return };
        let largest = self.growth.as_ref().map_or(self.mss, |growth| growth.largest as u32);
        let half = match self.window() / (2 * largest.max(self.mss.min(GUESS)).max(1)) {
            0 => 2,
            segments => segments,
        };
        self.quick = self.quick.max(half.min(most));
    }

    /// Takes over data that arrived at another host and was not read. `finished`: the peer's FIN has arrived.
    pub(crate) fn hold(&mut self, unread: Vec<u8>, finished: bool) {
        (self.unread, self.finished) = (unread.into(), finished);
        self.read = self.next.minus(self.unread.len() as u32 + u32::from(finished));
    }

    /// Checks that every byte that arrived was read or is held, and that no data beyond the window was accepted.
    ///
    /// # Panics
    ///
    /// If a byte is missing, or if data beyond the window was accepted.
    pub(crate) fn check(&self) {
        let held = self.next.since(self.read);
        let expected = self.unread.len() as u32 + u32::from(self.finished);
        assert!(held == expected, "{held} unread sequence numbers arrived, but {expected} are held");
        assert!(
            !self.next.after(self.edge),
            "the next number {:?} is beyond the window end {:?}",
            self.next,
            self.edge
        );
    }

    /// Notes that `bytes` bytes arrived in order. At the start of the connection, and after a pause longer than this
    /// end's time-out, the peer may be in slow start. Then [`Self::be_quick`] is called.
    pub(crate) fn came_in_order(&mut self, now: Instant, bytes: usize, time_out: Duration) {
        if let Some(growth) = &mut self.growth {
            growth.largest = growth.largest.max(bytes);
        }
        if self.last.replace(now).is_none_or(|last| now.since(last) > time_out) {
            self.be_quick();
        }
    }

    /// Notes a segment that is not acceptable. If the segment begins below the next expected number, quick
    /// acknowledgments start again, and the part below that number is noted as a duplicate.
    pub(crate) fn is_old(&mut self, seq: Seq, len: u32) {
        if seq.before(self.next) {
            self.be_quick();
        }
        let end = seq.plus(len);
        self.came_twice(seq, if end.after(self.next) { self.next } else { end });
    }

    /// Sets the size of the receive buffer, in bytes, as far as the window shift can express it.
    pub(crate) fn set_capacity(&mut self, bytes: u32) {
        self.capacity = sayable(bytes, self.scale);
        if let Some(growth) = &mut self.growth {
            growth.set_room(self.capacity);
        }
    }

    /// Returns the number of bytes from the next expected number to the end of the announced window.
    pub(crate) const fn window(&self) -> u32 {
        self.edge.since(self.next)
    }

    /// Returns the end of the window that a segment sent now would announce. Without growth, the end moves by a
    /// sufficient step or not at all (RFC 9293, section 3.8.6.2.2).
    fn wanted_edge(&self) -> Seq {
        let unread = self.unread.len() as u32;
        if let Some(growth) = &self.growth {
            let free = growth.room().saturating_sub(unread).min(growth.window);
            let free = if self.scale == 0 { growth.whole_segments(free, self.mss) } else { free };
            // Linux rounds the window up to a unit of the window field, and never announces less than before
            // (`__tcp_select_window`, `tcp_select_window`).
            let window = free.max(self.window());
            return self.next.plus(window.next_multiple_of(1 << self.scale));
        }
        let room = self.capacity.saturating_sub(unread);
        let more = room.saturating_sub(self.window());
        if more > 0 && more >= self.mss.min(self.capacity / 2) { self.next.plus(room) } else { self.edge }
    }

    /// Moves the end of the window, and returns the window field of a segment that is sent now.
    pub(crate) fn announce(&mut self) -> u16 {
        self.edge = self.wanted_edge();
        u16::try_from(self.window() >> self.scale).unwrap_or(u16::MAX)
    }

    /// Returns whether a segment of `len` sequence numbers from `seq` on overlaps the window (RFC 9293, section
    /// 3.10.7.4, first check).
    pub(crate) const fn acceptable(&self, seq: Seq, len: u32) -> bool {
        let window = self.window();
        match (len, window) {
            (0, 0) => seq.0 == self.next.0,
            (0, _) => within(seq, self.next, window),
            (_, 0) => false,
            // The segment begins in the window, or it begins before the window and reaches into it.
            _ => within(seq, self.next, window) || within(self.next, seq, len),
        }
    }

    /// Stores the part of a segment's data that is in the window, and makes an acknowledgment due. `fin`: the segment
    /// ends the stream. Returns whether this segment completes the stream up to the FIN.
    pub(crate) fn take(&mut self, now: Instant, seq: Seq, bytes: &[u8], fin: bool) -> bool {
        if self.finished || (bytes.is_empty() && !fin) {
            return false;
        }
        let end = seq.plus(bytes.len() as u32);
        let (gap_before, fin_before) = (self.has_gap(), self.fin);
        if fin && self.fin.is_none() && !end.before(self.next) && !end.after(self.edge) {
            self.fin = Some(end);
        }
        let (from, fresh) = self.inside(seq, bytes);
        let in_order = from == self.next && !fresh.is_empty();
        let ends = fin && self.fin == Some(end);
        self.report(seq, from, from.plus(fresh.len() as u32 + u32::from(ends)), fin_before);
        if !fresh.is_empty()
            && self.growth.as_mut().is_some_and(|growth| growth.came(now, bytes.len(), self.unread.len()))
        {
            self.quick |= 1;
        }
        if in_order {
            self.append(fresh);
        } else {
            self.beyond.keep(from, fresh);
            if ends && fresh.is_empty() {
                self.beyond.note(end);
            }
        }
        let reached = self.fin.is_some_and(|fin| !self.next.before(fin));
        if reached {
            self.next = self.next.plus(1);
            self.edge = self.edge.latest(self.next);
            self.finished = true;
            self.beyond.clear();
            // A complete stream needs no report of duplicates (Linux: `tcp_fin`).
            self.duplicate = None;
            self.due = true;
        } else if in_order && !gap_before {
            self.owe(now);
        } else {
            // A segment that is out of order or old, or that arrives while there is a gap, is acknowledged at once (RFC
            // 5681, section 4.2).
            self.duplicates = self.duplicates.saturating_add(1);
        }
        reached
    }

    /// Returns whether data or a FIN has arrived beyond a gap.
    pub(crate) const fn has_gap(&self) -> bool {
        !self.beyond.is_empty() || (self.fin.is_some() && !self.finished)
    }

    /// Notes a duplicate part of a segment that begins at `seq`, for the next segment to the peer. Its bytes below
    /// `from` have arrived before. Some of the bytes from `from` to `end` may be stored already. `fin`: the sequence
    /// number of a FIN that has arrived before. If there are duplicates in both parts, only the part below `from` is
    /// noted.
    fn report(&mut self, seq: Seq, from: Seq, end: Seq, fin: Option<Seq>) {
        if !self.reports {
            return;
        }
        if let Some((first, last)) = self.beyond.known(from, end, fin) {
            self.came_twice(first, last);
        }
        if seq.before(from) {
            self.came_twice(seq, from);
        }
    }

    /// Returns the part of the data that is not below the next expected number, in the window, and before the FIN. The
    /// first value is the sequence number of this part.
    fn inside<'a>(&self, seq: Seq, bytes: &'a [u8]) -> (Seq, &'a [u8]) {
        let old = if seq.before(self.next) { self.next.since(seq) as usize } else { 0 };
        let fresh = bytes.get(old..).unwrap_or_default();
        let from = if old > 0 { self.next } else { seq };
        let end = self.fin.map_or(self.edge, |fin| if fin.before(self.edge) { fin } else { self.edge });
        let room = if from.before(end) { end.since(from) as usize } else { 0 };
        (from, fresh.get(..room).unwrap_or(fresh))
    }

    fn append(&mut self, bytes: &[u8]) {
        if self.unread.is_empty() {
            self.unread.clear(); // so that the data is contiguous, and a full read need not copy
        }
        self.unread.extend(bytes);
        let unread = &mut self.unread;
        self.next = self.beyond.join(self.next.plus(bytes.len() as u32), |fresh| unread.extend(fresh));
    }

    /// Makes an acknowledgment due for data that arrived in order (RFC 5681, section 4.2). It is due at once for every
    /// `every`-th segment, for quick acknowledgments, and without `delay`. Otherwise it is delayed.
    fn owe(&mut self, now: Instant) {
        self.waiting += 1;
        let quick = self.quick > 0;
        self.quick = self.quick.saturating_sub(1);
        match self.delay {
            Some(delay) if self.waiting < self.every && !quick => {
                let at = self.timing.soon_after(now, delay);
                self.delayed.get_or_insert(at);
            }
            _ => self.due = true,
        }
    }

    /// Notes that an acknowledgment is sent.
    pub(crate) const fn acknowledged(&mut self) {
        self.waiting = 0;
        self.due = false;
        self.delayed = None;
        self.duplicate = None;
    }

    /// Removes and returns the oldest unread bytes, at most `most`. If all are returned, `buffer` becomes the new
    /// storage. `buffer` must be empty. The room that reading frees can make a window update due.
    pub(crate) fn read(&mut self, most: usize, buffer: Vec<u8>) -> Vec<u8> {
        let bytes = if most >= self.unread.len() {
            std::mem::replace(&mut self.unread, buffer.into()).into()
        } else {
            let bytes = copied(&self.unread, 0, most);
            drop(self.unread.drain(..most));
            bytes
        };
        self.read = self.read.plus(bytes.len() as u32);
        if let Some(growth) = &mut self.growth {
            let unread = self.unread.len() as u32;
            let beyond = self.beyond.end().map_or(0, |end| end.since(self.next));
            growth.was_read(Seq(self.next.0.wrapping_sub(unread)), beyond, self.capacity);
        }
        if !self.finished && self.is_worth_telling() {
            self.due = true;
        }
        bytes
    }

    /// Returns whether the room that reading freed justifies a window update.
    fn is_worth_telling(&self) -> bool {
        let wanted = self.wanted_edge();
        if let Some(growth) = &self.growth {
            return growth.is_worth_telling(self.window(), wanted.since(self.next));
        }
        // Two segments of new room justify an update. One segment is enough if the announced window has no room for a
        // whole segment. Half of the buffer is always enough.
        let more = wanted.since(self.edge);
        let step = if self.window() < self.mss { self.mss } else { 2 * self.mss };
        more > 0 && more >= step.min(self.capacity / 2)
    }
}

/// Returns the part of a buffer of `bytes` bytes that a window field with the shift `scale` can announce.
fn sayable(bytes: u32, scale: u8) -> u32 {
    bytes.min(u32::from(u16::MAX) << scale)
}

const fn within(at: Seq, from: Seq, len: u32) -> bool {
    at.since(from) < len
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reassembly::PIECES;
    use proptest::prelude::*;

    fn receiver(next: u32) -> Receiver {
        Receiver::new(&Profile { receive_buffer: 100, mss: 10, ..Profile::rfc6298_reno() }, Seq(next), 0)
    }

    #[test]
    #[should_panic(expected = "3 unread sequence numbers arrived, but 2 are held")]
    fn no_byte_that_came_is_lost() {
        let mut r = receiver(1000);
        r.take(Instant::ZERO, Seq(1000), b"abc", false);
        r.check();
        r.unread.pop_back();
        r.check();
    }

    #[test]
    #[should_panic(expected = "beyond the window end")]
    fn nothing_comes_beyond_the_window() {
        let mut r = receiver(1000);
        r.edge = Seq(999);
        r.check();
    }

    #[test]
    fn acceptable_as_in_the_table_of_the_rfc() {
        let mut r = receiver(1000);
        assert!(r.acceptable(Seq(1000), 0) && r.acceptable(Seq(1099), 0) && !r.acceptable(Seq(1100), 0));
        assert!(!r.acceptable(Seq(999), 0) && r.acceptable(Seq(999), 2) && !r.acceptable(Seq(999), 1));
        assert!(r.acceptable(Seq(900), 300) && !r.acceptable(Seq(1100), 1));
        r.edge = r.next;
        assert!(r.acceptable(Seq(1000), 0) && !r.acceptable(Seq(1000), 1) && !r.acceptable(Seq(1001), 0));
    }

    #[test]
    fn pieces_are_bounded_and_the_window_does_not_move_back() {
        let mut r = Receiver::new(&Profile::rfc6298_reno(), Seq(0), 0);
        (0..3000).for_each(|i| _ = r.take(Instant::ZERO, Seq(2 * i + 1), &[7], false));
        assert_eq!(r.beyond.len(), PIECES);
        let edge = r.edge;
        r.take(Instant::ZERO, Seq(0), &[1], false);
        assert_eq!((r.next, r.unread.len()), (Seq(2), 2));
        r.announce();
        assert_eq!(r.edge, edge);
    }

    #[test]
    fn linux_rounds_a_window_up_to_its_unit_and_takes_nothing_of_it_back() {
        // As on Linux 6.18 with a window shift of 7, a window of 80472 bytes is announced as 629 units. A segment that
        // waits to be read does not change the announcement.
        let mut r = Receiver::new(&Profile::linux(), Seq(0), 7);
        let mut announced = Vec::new();
        for segment in 0..20 {
            r.take(Instant::from_millis(1), Seq(segment * 1448), &[0; 1448], false);
            announced.push(r.announce());
            r.read(usize::MAX, Vec::new());
        }
        assert_eq!(announced.last_chunk(), Some(&[629; 10]), "{announced:?}");
        assert_eq!(r.window() % 128, 0);
    }

    #[test]
    fn bytes_beyond_the_fin_are_not_taken() {
        let mut r = receiver(0);
        assert!(!r.take(Instant::ZERO, Seq(2), b"", true));
        assert!(r.take(Instant::ZERO, Seq(0), b"abcd", false));
        assert_eq!((r.read(9, Vec::new()), r.next), (b"ab".to_vec(), Seq(3)));
    }

    #[test]
    fn a_fin_at_the_edge_leaves_no_window() {
        let mut r = receiver(0);
        assert!(r.take(Instant::ZERO, Seq(0), &[1; 100], true));
        assert_eq!((r.next, r.window()), (Seq(101), 0));
    }

    /// The number of segments that are acknowledged at once is half of a window (Linux: `tcp_incr_quickack`). The
    /// window is counted in segments of the largest size that arrived, at least 536 bytes.
    #[test]
    fn as_many_are_acknowledged_at_once_as_half_a_window_holds() {
        let quick = |buffer, bytes| {
            let profile =
                Profile { receive_buffer: buffer, window_shift: None, mss: 1000, ..Profile::linux() };
            let mut r = Receiver::new(&profile, Seq(0), 0);
            r.came_in_order(Instant::ZERO, bytes, Duration::ZERO);
            (r.window(), r.quick)
        };
        assert_eq!([quick(16_384, 1000), quick(16_384, 100)], [(13_000, 6), (13_000, 12)]);
        assert_eq!(quick(3 << 20, 1000), (65_000, 16), "16 at most");
        assert_eq!([quick(3000, 1000), quick(2000, 1000)], [(2000, 1), (1000, 2)], "two where it holds none");
    }

    proptest! {
        /// The stream is complete and in order for any order, overlap and repetition of segments.
        #[test]
        fn any_cover_gives_the_stream(cuts in proptest::collection::vec((0usize..90, 1usize..30), 1..60)) {
            let start = u32::MAX - 40;
            let stream: Vec<u8> = (0..90).collect();
            let mut r = receiver(start);
            let whole = (0..90).step_by(9).map(|at| (at, 9));
            for (at, len) in cuts.into_iter().chain(whole) {
                let end = stream.len().min(at + len);
                r.take(Instant::ZERO, Seq(start).plus(at as u32), &stream[at..end], false);
            }
            prop_assert_eq!(r.read(100, Vec::new()), stream);
            prop_assert!(r.beyond.is_empty());
        }
    }
}
