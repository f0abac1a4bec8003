//! What is known of the packets of a flow.

use super::path::{Delivery, Sending};
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
