//! The sending half of an association: transmission and retransmission (RFC 9260, sections 6.1 to 6.3, 6.9 and 7.2).

mod acknowledged;

use crate::message::{DATA_HEADER, Data};
use crate::path::Paths;
use crate::tsn::{Tsn, begin};
use std::collections::{BTreeMap, VecDeque};
use wire::{Instant, Ipv4Addr};

/// Number of SACKs that report a chunk missing before it is sent again (RFC 9260, section 7.2.4).
const MISSES: u8 = 3;
/// The largest number of outstanding chunks with which `check` runs after each packet.
const FEW: usize = 64;

/// The state of a chunk that was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    /// The chunk is in flight.
    Flying,
    /// The chunk is to be sent again. `timed_out`: a time-out shows that its path may not work.
    Lost { timed_out: bool },
    /// The chunk is acknowledged by a gap block. The peer may still drop it (reneging).
    Kept,
}

#[derive(Clone, Debug)]
struct Sent {
    data: Data,
    /// The destination (`path`) and the source (`from`) of the last transmission.
    path: Ipv4Addr,
    from: Ipv4Addr,
    fate: Fate,
    misses: u8,
    /// The chunk was marked as lost because of gap reports. This happens only once (RFC 9260, section 7.2.4, 5).
    hurried: bool,
    /// The chunk was sent more than once, so its acknowledgment does not measure the round trip.
    again: bool,
    /// When the chunk was first sent.
    left: Instant,
    /// The number of the last transmission. Transmissions of all chunks are counted together.
    order: u64,
}

impl Sent {
    /// Returns the number of bytes of user data, which count against the peer's receive window.
    fn len(&self) -> u32 {
        self.data.data.len() as u32
    }

    /// Returns the number of bytes of the chunk with header and padding, which count against the congestion window.
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
    /// Number of bytes that were sent already, from the begin of the message.
    at: usize,
}

/// The error that the peer acknowledges a TSN that was not sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Unsent;

/// The effects of an acknowledgment.
#[derive(Clone, Debug, Default)]
pub(crate) struct AckEffects {
    /// Bytes of user data that need not be kept any more.
    pub(crate) freed: usize,
    /// A chunk was acknowledged that was not acknowledged before.
    pub(crate) progress: bool,
    /// Paths that were inactive and work again.
    pub(crate) revived: Vec<Ipv4Addr>,
}

/// Counts of retransmissions since the association began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Number of DATA chunks that were sent again, for any reason. A chunk counts each time.
    pub retransmissions: u64,
    /// Number of DATA chunks that were marked as lost because three SACKs reported them missing (RFC 9260, section
    /// 7.2.4).
    pub fast_retransmits: u64,
    /// Number of expiries of the retransmission timer T3-rtx, over all paths.
    pub timeouts: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Outbound {
    pending: VecDeque<Pending>,
    /// Chunks from `cumulative` + 1 on, in order of their TSNs.
    sent: VecDeque<Sent>,
    /// The initial TSN.
    first: Tsn,
    cumulative: Tsn,
    next_ssn: BTreeMap<u16, u16>,
    /// Bytes of user data in `pending` and `sent`.
    held: usize,
    limit: usize,
    pub(crate) streams: u16,
    /// The part of the peer's receive window that data in flight do not use, in bytes.
    pub(crate) window: u32,
    transmissions: u64,
    flight: u32,
    lost: usize,
    /// One packet may leave although the congestion window is full (RFC 9260, section 7.2.4, 3).
    hurry: bool,
    /// The user has finished. The last chunk requests an immediate SACK, as the shutdown waits for that SACK.
    finishing: bool,
    /// Acknowledged chunks that were sent more than once: TSN, destination and bytes. The peer may report a copy as a
    /// duplicate.
    repeated: VecDeque<(Tsn, Ipv4Addr, u32)>,
    pub(crate) counts: Counts,
    /// Bytes of each packet with DATA that an AUTH chunk takes: a multiple of 4, or 0 if the peer requires none.
    pub(crate) reserved: u32,
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
            reserved: 0,
        }
    }

    // --- messages that the user writes -----------------------------------------------------------------------------

    pub(crate) const fn room(&self) -> usize {
        self.limit.saturating_sub(self.held)
    }

    pub(crate) const fn held(&self) -> usize {
        self.held
    }

    /// Returns whether no data wait to be sent or acknowledged.
    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.sent.is_empty()
    }

    /// Returns whether data were sent and are not acknowledged.
    pub(crate) fn is_outstanding(&self) -> bool {
        !self.sent.is_empty()
    }

    /// Queues a message.
    ///
    /// # Panics
    ///
    /// The message is longer than `room()`.
    pub(crate) fn write(&mut self, stream: u16, ppid: u32, unordered: bool, bytes: &[u8]) {
        assert!(bytes.len() <= self.room(), "{} bytes exceed the room of {}", bytes.len(), self.room());
        let mut ssn = 0;
        if !unordered {
            let next = self.next_ssn.entry(stream).or_insert(0);
            ssn = *next;
            *next = next.wrapping_add(1);
        }
        self.held += bytes.len();
        self.pending.push_back(Pending { stream, ssn, ppid, unordered, bytes: bytes.to_vec(), at: 0 });
    }

    /// Records that no more messages will be written.
    pub(crate) const fn finish(&mut self) {
        self.finishing = true;
    }

    /// Checks that each counter is the sum over the chunks. In release builds, only the number of lost chunks is
    /// checked. With more than [`FEW`] outstanding chunks, the sums are checked only after each 16th transmission.
    ///
    /// # Panics
    ///
    /// A counter differs from its sum.
    fn check(&self, paths: &Paths) {
        assert!(
            self.lost <= self.sent.len(),
            "{} chunks are counted as lost, and {} are outstanding",
            self.lost,
            self.sent.len()
        );
        let is_due = self.sent.len() <= FEW || self.transmissions.is_multiple_of(16);
        if !cfg!(debug_assertions) || !is_due {
            return;
        }
        let lost = self.sent.iter().filter(|sent| matches!(sent.fate, Fate::Lost { .. })).count();
        let flying = || self.sent.iter().filter(|sent| sent.fate == Fate::Flying);
        let flight: u32 = flying().map(Sent::len).sum();
        assert_eq!((self.lost, self.flight), (lost, flight), "number of lost chunks, and bytes in flight");
        let pending: usize = self.pending.iter().map(|message| message.bytes.len() - message.at).sum();
        let sent: usize = self.sent.iter().map(|sent| sent.data.data.len()).sum();
        assert_eq!(self.held, pending + sent, "the number of bytes of user data");
        for path in paths.iter() {
            let flight: u32 = flying().filter(|sent| sent.path == path.address).map(Sent::charge).sum();
            assert_eq!(path.flight, flight, "the number of bytes in flight to {}", path.address);
        }
    }

    // --- chunks that are sent --------------------------------------------------------------------------------------

    /// Returns the TSN of the next new chunk.
    fn next_tsn(&self) -> Tsn {
        self.cumulative + 1 + self.sent.len() as Tsn
    }

    /// Returns the destination of the next chunk, if one may leave now.
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
        (open && self.next_fits(self.largest(paths))).then_some(to)
    }

    /// Returns the length of the largest new DATA chunk, with its header, in bytes. A packet with this chunk and the
    /// required AUTH chunk fits all paths.
    fn largest(&self, paths: &Paths) -> u32 {
        paths.largest_chunk().saturating_sub(self.reserved)
    }

    /// Returns whether the next new chunk fits the peer's window. With no outstanding chunk, one may always leave, to
    /// probe a closed window (RFC 9260, section 6.1, A).
    fn next_fits(&self, largest: u32) -> bool {
        let Some(message) = self.pending.front() else { return false };
        let len = (message.bytes.len() - message.at).min(largest as usize - DATA_HEADER);
        len as u32 <= self.window || self.sent.is_empty()
    }

    /// Returns the DATA chunks of one packet from `from` to `to` with `room` bytes for chunks. Lost chunks precede
    /// new ones.
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
        self.check(paths);
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
        let largest =
            paths.get(to).map_or(0, |path| path.largest_chunk().saturating_sub(self.reserved) as usize);
        for sent in &mut self.sent {
            if self.lost == 0 {
                break;
            }
            let Fate::Lost { timed_out } = sent.fate else { continue };
            // A chunk that was built before the MTU was lowered cannot be split again, so it leaves in IP fragments.
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
        let largest = self.largest(paths);
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
                // The I bit (RFC 9260, section 3.3.1): a shutdown must not wait for a delayed SACK.
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
            path.timed.get_or_insert((tsn, now)); // one chunk at a time: RFC 9260, section 6.3.1, C4
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    const PEER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    /// Returns a sender with one chunk in flight.
    fn sender() -> (Outbound, Paths) {
        let mut paths = Paths::new(Instant::ZERO, PEER, &Config::default());
        if let Some(path) = paths.get_mut(PEER) {
            path.confirmed = true;
        }
        let mut sender = Outbound::new(1, 1000, 1, 5000);
        sender.write(0, 0, false, &[7; 100]);
        let from = Ipv4Addr::new(10, 0, 0, 1);
        let chunks = sender.chunks(Instant::ZERO, &mut paths, (from, PEER), 1000);
        assert_eq!((chunks.len(), sender.flight), (1, 100));
        (sender, paths)
    }

    /// A chunk of a long message and the AUTH chunk before it fit one packet. Otherwise the message would never leave.
    #[test]
    fn a_long_message_leaves_room_for_the_authentication_that_the_peer_requires() {
        let (mut sender, mut paths) = sender();
        sender.reserved = 40;
        sender.write(0, 0, false, &[7; 800]);
        if let Some(path) = paths.get_mut(PEER) {
            path.lower_mtu(600);
        }
        let room = paths.largest_chunk() as usize - 40;
        let from = Ipv4Addr::new(10, 0, 0, 1);
        let chunks = sender.chunks(Instant::ZERO, &mut paths, (from, PEER), room);
        assert_eq!(chunks.iter().map(Data::wire_len).collect::<Vec<_>>(), [room]);
    }

    #[test]
    #[should_panic(expected = "901 bytes exceed the room of 900")]
    fn a_message_fits_the_room() {
        sender().0.write(0, 0, false, &[7; 901]);
    }

    #[test]
    #[should_panic(expected = "number of lost chunks, and bytes in flight")]
    fn the_bytes_in_flight_are_those_of_the_chunks() {
        let (mut sender, paths) = sender();
        sender.flight -= 1;
        sender.check(&paths);
    }

    #[test]
    #[should_panic(expected = "the number of bytes of user data")]
    fn the_bytes_that_are_held_are_those_of_the_messages() {
        let (mut sender, paths) = sender();
        sender.held += 1;
        sender.check(&paths);
    }

    #[test]
    #[should_panic(expected = "the number of bytes in flight to 10.0.0.2")]
    fn the_bytes_in_flight_of_a_path_are_those_of_its_chunks() {
        let (sender, mut paths) = sender();
        if let Some(path) = paths.get_mut(PEER) {
            path.flight = 0;
        }
        sender.check(&paths);
    }
}
