//! One direction between two ports of two hosts. A [`Path`] of a byte stream records the position of each piece in
//! the stream, to distinguish new data from data that the receiver already holds.

use super::Transport;
use std::collections::BTreeMap;
use trace::HostId;
use wire::{Duration, Instant, Ipv4Addr, PacketId, SocketAddrV4};

/// One end of a path: a host and a port. The host's address may change.
pub(super) type Port = (HostId, u16);

/// One transmission of a packet with data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sending {
    pub(crate) at: Instant,
    pub(crate) packet: PacketId,
    /// Whether no byte of the packet was sent before.
    pub(crate) is_new: bool,
    /// The position in the flow: the number of the first byte (from 0), of the first chunk (from 0), or of the datagram
    /// (from 1).
    pub(crate) place: u64,
    /// The leg on which the packet was sent, as an index into [`Path::legs`].
    pub(crate) leg: usize,
}

/// A time in which the sender of a stream was not idle, although the receiver may have had all data. The sender waited
/// for the acknowledgment of data that it had retransmitted (SCTP: until it retransmitted), or for the connection to
/// open.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Wait {
    pub(crate) from: Instant,
    /// [`Instant::NEVER`] if the wait did not end.
    pub(crate) to: Instant,
}

impl Wait {
    pub(crate) fn span(self) -> Duration {
        self.to.since(self.from)
    }
}

/// A time between two arrivals of new data in which data of the flow were due without a pause.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Due {
    /// The index of the arrival that ends the gap between two arrivals; after the last arrival, the number of arrivals.
    pub(crate) gap: usize,
    pub(crate) from: Instant,
    pub(crate) to: Instant,
    /// When the first of these data, or their question, was first sent, and the last of these datagrams. With a long
    /// path, this is before `from`.
    pub(crate) sent: [Instant; 2],
}

impl Due {
    pub(crate) fn span(&self) -> Duration {
        self.to.since(self.from)
    }
}

/// One packet with data that reached the receiver's stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery {
    pub(crate) at: Instant,
    pub(crate) host: HostId,
    pub(crate) packet: PacketId,
    /// The number of bytes that became readable; 0 if the packet did not fill the first gap.
    pub(crate) advance: u64,
    /// Whether the receiver already held all data of the packet.
    pub(crate) is_held: bool,
}

/// The packets with data in one direction between two ports, and the state of the stream.
#[derive(Clone, Debug)]
pub(super) struct Path {
    pub(super) transport: Transport,
    pub(super) from: Port,
    pub(super) to: Port,
    pub(super) from_at: SocketAddrV4,
    pub(super) to_at: SocketAddrV4,
    pub(super) begun: Instant,
    /// The sequence number of the stream's first byte; for SCTP, the TSN of its first chunk.
    pub(super) base: u32,
    /// The end of the data that were sent at least once: a position in bytes, or in chunks for SCTP.
    pub(super) high: u64,
    /// The end of each piece (for SCTP the length of each chunk), and when the piece was first sent, in the order of
    /// the stream.
    pub(super) pieces: Vec<(u64, Instant)>,
    pub(super) sendings: Vec<Sending>,
    /// The legs, in the order of their first use. A leg is a sending host and a destination address. A TCP connection
    /// has several legs if Indirect TCP moves it from router to router; an SCTP association, if it sends to several
    /// addresses.
    pub(super) legs: Vec<(HostId, Ipv4Addr)>,
    /// The sender's smoothed round-trip time, as its transport reported it.
    pub(super) round_trips: Vec<(Instant, Duration)>,
    pub(super) retransmissions: u64,
    pub(super) deliveries: Vec<Delivery>,
    /// The position up to which all data was acknowledged, at each acknowledgment that raised it. TCP only.
    pub(super) acked: Vec<(Instant, u64)>,
    /// The position up to which all data was delivered.
    pub(super) next: u64,
    beyond: BTreeMap<u64, u64>,
    pub(super) fin: Option<u64>,
    pub(super) finished: Option<Instant>,
    pub(super) reset: Option<Instant>,
    /// Whether the connection was requested and refused.
    pub(super) refused: bool,
    pub(super) answered: bool,
}

impl Path {
    pub(super) fn new(
        transport: Transport,
        ports: (Port, Port),
        at: [SocketAddrV4; 2],
        begun: Instant,
    ) -> Self {
        Self {
            transport,
            from: ports.0,
            to: ports.1,
            from_at: at[0],
            to_at: at[1],
            begun,
            base: 0,
            high: 0,
            pieces: Vec::new(),
            sendings: Vec::new(),
            legs: Vec::new(),
            round_trips: Vec::new(),
            retransmissions: 0,
            deliveries: Vec::new(),
            acked: Vec::new(),
            next: 0,
            beyond: BTreeMap::new(),
            fin: None,
            finished: None,
            reset: None,
            refused: false,
            answered: false,
        }
    }

    /// Returns the position of a sequence number in the stream. The stream may be longer than the 32-bit sequence
    /// space.
    pub(super) fn place(&self, number: u32) -> u64 {
        let from_base = number.wrapping_sub(self.base);
        let ahead = from_base.wrapping_sub(self.high as u32).cast_signed();
        self.high.saturating_add_signed(i64::from(ahead))
    }

    /// Records a segment that leaves its sender.
    pub(super) fn transmit(
        &mut self,
        at: Instant,
        packet: PacketId,
        leg: (HostId, Ipv4Addr),
        start: u64,
        end: u64,
    ) {
        if end > self.high {
            self.pieces.push((end, at));
        }
        self.sent(at, packet, leg, start, end);
    }

    /// Records a packet of SCTP that leaves its sender. The position of a chunk is its number; `offered` converts
    /// numbers to bytes when all chunks are known.
    pub(super) fn transmit_chunks(
        &mut self,
        at: Instant,
        packet: PacketId,
        to: Ipv4Addr,
        data: &[(u32, u64)],
    ) {
        let Some((first, _)) = data.first() else { return };
        if self.sendings.is_empty() {
            self.base = *first;
        }
        for (tsn, bytes) in data {
            if self.place(*tsn) >= self.pieces.len() as u64 {
                self.pieces.push((*bytes, at));
            }
        }
        let start = self.place(*first);
        self.sent(at, packet, (self.from.0, to), start, start + data.len() as u64);
    }

    /// Records a datagram that leaves its sender.
    pub(super) fn transmit_datagram(&mut self, at: Instant, packet: PacketId, to: Ipv4Addr, bytes: u64) {
        let (number, end) = (self.sendings.len() as u64 + 1, self.high + bytes);
        self.pieces.push((end, at));
        let leg = self.leg((self.from.0, to));
        self.sendings.push(Sending { at, packet, is_new: true, place: number, leg });
        self.high = end;
    }

    fn sent(&mut self, at: Instant, packet: PacketId, leg: (HostId, Ipv4Addr), start: u64, end: u64) {
        let is_new = start >= self.high;
        self.retransmissions += u64::from(!is_new);
        self.high = self.high.max(end);
        let leg = self.leg(leg);
        self.sendings.push(Sending { at, packet, is_new, place: start, leg });
    }

    fn leg(&mut self, one: (HostId, Ipv4Addr)) -> usize {
        self.legs.iter().position(|leg| *leg == one).unwrap_or_else(|| {
            self.legs.push(one);
            self.legs.len() - 1
        })
    }

    pub(super) fn receive(&mut self, at: Instant, host: HostId, packet: PacketId, start: u64, end: u64) {
        let before = self.next;
        let is_held = end > start && (end <= self.next || self.holds(start, end));
        let held = self.beyond.entry(start).or_default();
        *held = (*held).max(end);
        while let Some((from, to)) = self.beyond.first_key_value().map(|(from, to)| (*from, *to)) {
            if from > self.next {
                break;
            }
            self.next = self.next.max(to);
            self.beyond.pop_first();
        }
        if end > start {
            let advance = self.next - before;
            self.deliveries.push(Delivery { at, host, packet, advance, is_held });
        }
        if self.fin == Some(self.next) {
            self.finished = self.finished.or(Some(at));
        }
    }

    /// Records that the sender's stack received an acknowledgment of all data before `place`.
    pub(super) fn acknowledge(&mut self, at: Instant, place: u64) {
        if self.acked.last().is_none_or(|(_, acked)| place > *acked) {
            self.acked.push((at, place));
        }
    }

    /// Returns, for each retransmitted piece, the time from its first transmission until the sender received its
    /// acknowledgment. If acknowledgments are not recorded, as for SCTP, the time ends with the retransmission.
    pub(super) fn waits(&self) -> Vec<Wait> {
        let again = self.sendings.iter().filter(|sending| !sending.is_new);
        let wait = |sending: &Sending| {
            let known = self.acked.partition_point(|(_, acked)| *acked <= sending.place);
            let to = match self.acked.get(known) {
                Some((at, _)) => (*at).max(sending.at),
                None if self.transport == Transport::Tcp => Instant::NEVER,
                None => sending.at,
            };
            let piece = match self.transport {
                Transport::Sctp => self.pieces.get(sending.place as usize),
                _ => self.pieces.get(self.pieces.partition_point(|(end, _)| *end <= sending.place)),
            };
            Wait { from: piece.map_or(sending.at, |(_, at)| *at), to }
        };
        again.map(wait).collect()
    }

    /// Returns whether the receiver already holds all data of this range. Some of these data may be beyond a gap, so
    /// that they are not readable yet.
    fn holds(&self, start: u64, end: u64) -> bool {
        let mut place = start.max(self.next);
        for (from, to) in &self.beyond {
            if *from <= place {
                place = place.max(*to);
            }
        }
        place >= end
    }

    /// Returns the end of each piece in bytes, and when it was first sent. For SCTP, this converts chunk numbers to
    /// bytes.
    pub(super) fn offered(&self) -> Vec<(u64, Instant)> {
        if self.transport != Transport::Sctp {
            return self.pieces.clone();
        }
        let mut end = 0;
        let piece = |(bytes, at): &(u64, Instant)| {
            end += bytes;
            (end, *at)
        };
        self.pieces.iter().map(piece).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_outlives_the_wrap_of_its_number() {
        let at = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1);
        let ends = ((HostId(0), 1), (HostId(1), 1));
        let mut path = Path::new(Transport::Tcp, ends, [at, at], Instant::ZERO);
        path.base = u32::MAX - 99;
        let places = [u32::MAX - 99, 0, 900, 400, u32::MAX].map(|number| {
            let place = path.place(number);
            path.transmit(Instant::ZERO, PacketId::NEW, (HostId(0), *at.ip()), place, place + 10);
            place
        });
        assert_eq!(places, [0, 100, 1000, 500, 99]);
    }

    #[test]
    fn what_was_sent_before_is_sent_again() {
        let at = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1);
        let ends = ((HostId(0), 1), (HostId(1), 1));
        let mut path = Path::new(Transport::Tcp, ends, [at, at], Instant::ZERO);
        for (packet, start, end) in [(1, 0, 10), (2, 10, 20), (3, 0, 10), (4, 15, 25), (5, 25, 30)] {
            path.transmit(Instant(packet), PacketId(packet), (HostId(0), *at.ip()), start, end);
        }
        assert_eq!((path.retransmissions, path.high), (2, 30));
        let new: Vec<bool> = path.sendings.iter().map(|sending| sending.is_new).collect();
        assert_eq!(new, [true, true, false, false, true]);
        // Bytes 10 to 20 are kept after the gap, and become readable with the piece that fills the gap. Their
        // repetition brings no new data.
        for (packet, start, end) in [(2, 10, 20), (3, 0, 10), (2, 10, 20)] {
            path.receive(Instant(packet), HostId(1), PacketId(packet), start, end);
        }
        let given: Vec<(u64, bool)> = path.deliveries.iter().map(|one| (one.advance, one.is_held)).collect();
        assert_eq!(given, [(0, false), (20, false), (0, true)]);
    }
}
