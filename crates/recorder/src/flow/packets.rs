//! The packets of a flow that were sent, delivered, lost, held or duplicated, and the times in which its sender waited.

use super::path::{Delivery, Due, Sending, Wait};
use wire::{Duration, Instant, PacketId};

/// The maximum age of a round-trip sample. An older sample may be of another path.
const RECENT: Duration = Duration::from_secs(1);

/// The time within which an application on Linux sends its first data after its kernel has opened the connection.
const REACTION: Duration = Duration::from_millis(10);

/// A packet with data that was lost, duplicated or still held when the run ended, or an acknowledgment that was lost.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PacketEvent {
    /// When the packet was lost or arrived again. For a held packet, when it was sent. For a packet that waited at
    /// the node that dropped it, for example for an answer to ARP: when this node received it. For a packet that waited
    /// for a stopped host before it was lost: when it reached this host.
    pub(crate) at: Instant,
    pub(crate) packet: PacketId,
    /// When the packet was sent.
    pub(crate) sent: Instant,
    /// When the loss or the arrival was recorded.
    pub(crate) recorded: Instant,
}

/// The packets of one flow with data, the lost acknowledgments of these data, and the waits of the sender.
#[derive(Clone, Debug, Default)]
pub(crate) struct Packets {
    /// Whether the flow is a stream of bytes, whose sender retransmits what was lost.
    pub(crate) is_stream: bool,
    /// Transmissions of packets with data, in the order of time.
    pub(crate) sendings: Vec<Sending>,
    /// Packets with data that reached the receiver's stack, in the order of time.
    pub(crate) deliveries: Vec<Delivery>,
    /// The end of each piece of the stream, in bytes, and when the piece was first sent.
    pub(crate) offered: Vec<(u64, Instant)>,
    /// The position in bytes up to which all data were acknowledged, at each acknowledgment that raised it. TCP only; empty if
    /// several connections carry the flow.
    pub(crate) acked: Vec<(Instant, u64)>,
    /// Packets of which no copy arrived, in the order in which they were lost.
    pub(crate) lost: Vec<PacketEvent>,
    /// Packets that were still on their way, for example in a queue, when the run ended; in the order in which they
    /// were sent. Of a stream, acknowledgments of its data and segments that open its connection too.
    pub(crate) held: Vec<PacketEvent>,
    /// Lost acknowledgments of the flow's data, and lost segments that open its connection, in the order in which they
    /// were lost.
    pub(crate) lost_acks: Vec<PacketEvent>,
    /// The times in which the sender waited for an acknowledgment of retransmitted data, or for the connection to open.
    pub(crate) waits: Vec<Wait>,
    /// The wait for the connection to open; `waits` also has this wait. It lasts from the request for the connection
    /// until each end with records was ready. `None` if no end with records requested the connection, or if the
    /// connection never opened and carried no data.
    pub(crate) opening: Option<Wait>,
    /// When each acknowledgment of the flow's data was sent that waited for a stopped host.
    pub(crate) waiting_acks: Vec<(Instant, PacketId)>,
    /// When each segment that opens the connection was sent, in both directions. TCP only.
    pub(crate) opened_by: Vec<(Instant, PacketId)>,
    /// For a stream of answers: when its sender read questions, and when these questions were first sent.
    pub(crate) questions: Vec<(Instant, Instant)>,
    /// When the first question was first sent that its receiver never read; `None` if there is none.
    pub(crate) unread: Option<Instant>,
    /// The times in which data were due, in the order of time.
    pub(crate) due: Vec<Due>,
    /// Copies that arrived beyond the first, in the order of time.
    pub(crate) doubles: Vec<PacketEvent>,
    /// The median time between two datagrams, or between two reads.
    pub(crate) spacing: Duration,
    /// The median time for which data were due until new data arrived. Unlike [`Self::spacing`], it has no pause of
    /// the source.
    pub(crate) pace: Duration,
    /// Whether programs send or receive the flow. Their exit status decides whether they failed.
    pub(crate) is_programs: bool,
    /// The names of the legs, indexed by [`Sending::leg`].
    pub(crate) legs: Vec<String>,
    /// For each connection that carries the flow in series, its smoothed round-trip time at each change.
    pub(crate) round_trips: Vec<Vec<(Instant, Duration)>>,
    /// Why the connection was closed; `None` if it was closed in an orderly way or is open, and for programs and
    /// datagrams.
    pub(crate) why: Option<String>,
}

impl Packets {
    /// Returns when the piece that contains the byte at `place` was first sent, or `None` if this byte was never sent.
    pub(crate) fn first_sent(&self, place: u64) -> Option<Instant> {
        let index = self.offered.partition_point(|(end, _)| *end <= place);
        self.offered.get(index).map(|(_, at)| *at)
    }

    /// Returns the bytes that the sender had sent before `at` and whose acknowledgment it did not have then, and those of the piece
    /// that contains the byte at `place`. Returns `None` if no acknowledgment is known.
    pub(crate) fn in_flight(&self, at: Instant, place: u64) -> Option<[u64; 2]> {
        let acked = self.acked.partition_point(|(acked, _)| *acked < at).checked_sub(1)?;
        let (_, acked) = self.acked.get(acked)?;
        // The pieces are in the order of the stream, which is that of their first transmission.
        let sent = self.offered.partition_point(|(_, sent)| *sent < at);
        let end = |index: usize| {
            index.checked_sub(1).and_then(|last| self.offered.get(last)).map_or(0, |(end, _)| *end)
        };
        let next = self.offered.partition_point(|(end, _)| *end <= place);
        let piece = self.offered.get(next).map_or(0, |(to, _)| to.saturating_sub(end(next)));
        Some([end(sent).saturating_sub(*acked), piece])
    }

    /// Returns the longest wait of the stream's sender between two arrivals, or `None` if the sender did not wait.
    pub(crate) fn waited(&self, between: [Instant; 2], next: Option<Instant>) -> Option<Wait> {
        self.waits_within(between, next).max_by_key(|wait| wait.span())
    }

    /// Returns the waits of the stream's sender between two arrivals. The
    /// data of the second arrival was first sent at `next`. A wait that lasted until `next` or longer counts until the
    /// second arrival; the wait for the connection to open also if it ended less than [`REACTION`] before `next`. Any
    /// other wait counts until its end, because the source had nothing to send after the wait.
    pub(super) fn waits_within(
        &self,
        [last, end]: [Instant; 2],
        next: Option<Instant>,
    ) -> impl Iterator<Item = Wait> {
        let within = self.waits.iter().filter(move |wait| wait.from < end && wait.to > last);
        within.map(move |wait| self.part(wait, [last, end], next))
    }

    /// Returns the part of a wait that counts between two arrivals, as in [`Self::waits_within`].
    fn part(&self, wait: &Wait, [last, end]: [Instant; 2], next: Option<Instant>) -> Wait {
        let reaction = if self.opening == Some(*wait) { REACTION } else { Duration::ZERO };
        let is_next = next.is_some_and(|next| next.since(wait.to.min(next)) <= reaction);
        let to = if is_next { end } else { wait.to.min(end) };
        Wait { from: wait.from.max(last).min(to), to }
    }

    /// Returns the times in which data were due in the gap that the arrival with this index ends.
    pub(crate) fn due_in(&self, gap: usize) -> &[Due] {
        let [from, to] = [gap, gap + 1].map(|gap| self.due.partition_point(|due| due.gap < gap));
        self.due.get(from..to).unwrap_or_default()
    }

    /// Returns whether the sender waited at this instant.
    pub(crate) fn waits_at(&self, at: Instant) -> bool {
        self.waits.iter().any(|wait| wait.from <= at && wait.to > at)
    }

    /// Returns the flow's latest round-trip time at `at`, if it was measured within [`RECENT`]. It is the sum over
    /// the connections that carry the flow in series. Returns `None` if there is no such sample, and for datagrams.
    pub(crate) fn round_trip(&self, at: Instant) -> Option<Duration> {
        self.round_trip_since(Instant(at.0.saturating_sub(RECENT.as_nanos() as u64)), at)
    }

    /// Returns the latest round-trip time at `at`, as [`Self::round_trip`], also if it was measured long before.
    pub(crate) fn last_round_trip(&self, at: Instant) -> Option<Duration> {
        self.round_trip_since(Instant::ZERO, at)
    }

    fn round_trip_since(&self, since: Instant, at: Instant) -> Option<Duration> {
        let latest = |samples: &Vec<(Instant, Duration)>| {
            let before = samples.partition_point(|(sample, _)| *sample <= at).checked_sub(1)?;
            samples.get(before).filter(|(sample, _)| *sample >= since).map(|(_, span)| *span)
        };
        self.round_trips.iter().filter_map(latest).reduce(|sum, span| sum + span)
    }
}
