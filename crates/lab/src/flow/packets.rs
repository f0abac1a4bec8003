//! What is known of the packets of a flow.

use super::path::{Delivery, Sending, Wait};
use wire::{Duration, Instant, PacketId};

/// A round trip that was measured longer ago says nothing of the path of now.
const RECENT: Duration = Duration::from_secs(1);

/// A packet with data was lost, or arrived again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PacketEvent {
    /// When.
    pub(crate) at: Instant,
    pub(crate) packet: PacketId,
    /// When it was sent.
    pub(crate) sent: Instant,
}

/// What is known of the packets of a flow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Packets {
    /// Bytes of a stream, whose sender repeats what was lost.
    pub(crate) is_stream: bool,
    /// Transmissions of packets with data, in the order of time.
    pub(crate) sendings: Vec<Sending>,
    /// Packets with data in the hands of a stack, in the order of time.
    pub(crate) deliveries: Vec<Delivery>,
    /// Where each piece of the stream ends, and when it was first sent.
    pub(crate) offered: Vec<(u64, Instant)>,
    /// Packets of which no copy arrived, in the order in which they were lost.
    pub(crate) lost: Vec<PacketEvent>,
    /// Datagrams that somebody still had when the run ended, in the order in which they were sent.
    pub(crate) held: Vec<PacketEvent>,
    /// Acknowledgments of the flow's data that were lost, in the same order.
    pub(crate) lost_acks: Vec<PacketEvent>,
    /// When the sender was not idle, though nothing new may have been under way.
    pub(crate) waits: Vec<Wait>,
    /// One of `waits`: from the request for the connection until both of its ends were ready.
    pub(crate) opening: Option<Wait>,
    /// Copies that arrived beyond the first, in the order of time.
    pub(crate) doubles: Vec<PacketEvent>,
    /// The usual time from one datagram to the next, or from one read to the next.
    pub(crate) spacing: Duration,
    /// Its programs are not ours: they are judged by their exit.
    pub(crate) is_programs: bool,
    /// The names of the legs of [`Sending::leg`].
    pub(crate) legs: Vec<String>,
    /// Of each connection that carries the flow, one behind the other: its smoothed round-trip time whenever it changed.
    pub(crate) round_trips: Vec<Vec<(Instant, Duration)>>,
    /// Why the connection was closed, if it was not as asked.
    pub(crate) why: Option<String>,
}

impl Packets {
    /// When the piece was first sent that begins at this place of the stream; `None` if it never was.
    pub(crate) fn first_sent(&self, place: u64) -> Option<Instant> {
        let index = self.offered.partition_point(|(end, _)| *end <= place);
        self.offered.get(index).map(|(_, at)| *at)
    }

    pub(super) fn offered_bytes(&self) -> u64 {
        self.offered.last().map_or(0, |(end, _)| *end)
    }

    /// How long the sender waited, at most, in a gap between two arrivals of its stream. What comes next was first sent at
    /// `next`: if that was before the wait ended, it lasts until the gap ends. Else the source had nothing to send.
    pub(crate) fn waited(&self, [last, end]: [Instant; 2], next: Option<Instant>) -> Option<Wait> {
        let within = self.waits.iter().filter(|wait| wait.from < end && wait.to > last);
        let part = |wait: &Wait| {
            let is_next = next.is_some_and(|next| next <= wait.to);
            let to = if is_next { end } else { wait.to.min(end) };
            Wait { from: wait.from.max(last).min(to), to }
        };
        within.map(part).max_by_key(|wait| wait.span())
    }

    /// Whether the sender waited at this instant.
    pub(crate) fn waits_at(&self, at: Instant) -> bool {
        self.waits.iter().any(|wait| wait.from <= at && wait.to > at)
    }

    /// The round-trip time of the flow at this instant, as it was measured in the second before: the sum over the connections
    /// that carry it one behind the other. `None` if nothing was measured then, and of datagrams.
    pub(crate) fn round_trip(&self, at: Instant) -> Option<Duration> {
        let since = Instant(at.0.saturating_sub(RECENT.as_nanos() as u64));
        let latest = |samples: &Vec<(Instant, Duration)>| {
            let before = samples.partition_point(|(sample, _)| *sample <= at).checked_sub(1)?;
            samples.get(before).filter(|(sample, _)| *sample >= since).map(|(_, span)| *span)
        };
        self.round_trips.iter().filter_map(latest).reduce(|sum, span| sum + span)
    }
}
