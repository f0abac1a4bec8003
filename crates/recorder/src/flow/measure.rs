//! Delay, stall and spacing of a flow, computed from its transmissions and arrivals.

use super::packets::Packets;
use super::path::{Delivery, Sending};
use super::{Arrival, Delay};
use std::collections::BTreeMap;
use wire::{Duration, Instant, PacketId};

pub(super) fn delay(mut all: Vec<Duration>) -> Option<Delay> {
    all.sort_unstable();
    let rank = |percent: usize| all.get((all.len() * percent).div_ceil(100).checked_sub(1)?).copied();
    Some(Delay { p50: rank(50)?, p99: rank(99)? })
}

/// Returns, for each piece that was read, the time from its first transmission to the read that includes its last byte.
pub(super) fn stream_delays(packets: &Packets, arrivals: &[Arrival]) -> Vec<Duration> {
    let mut delays = Vec::new();
    let mut pieces = packets.offered.iter().peekable();
    let mut read = 0;
    for arrival in arrivals {
        read += arrival.bytes;
        while let Some((_, sent)) = pieces.next_if(|(end, _)| *end <= read) {
            delays.push(arrival.at.since(*sent));
        }
    }
    delays
}

/// The questions that a stream answers: the data that the receiver of the stream sent in the reverse direction of the
/// connection.
pub(super) struct Question<'a> {
    /// The position at which each piece of these data ends, in bytes, and when the piece was first sent.
    pub(super) offered: Vec<(u64, Instant)>,
    /// When the sender of the answers read questions, and how many bytes.
    pub(super) reads: &'a [(Instant, u64)],
}

impl Question<'_> {
    /// Returns when the sender of the answers read questions, and when the first byte of each read was first sent.
    pub(super) fn times(&self) -> Vec<(Instant, Instant)> {
        let mut place = 0;
        let time = |(at, bytes): &(Instant, u64)| {
            let sent = self.first_sent(place);
            place += bytes;
            Some((*at, sent?))
        };
        self.reads.iter().filter_map(time).collect()
    }

    /// Returns when the first byte of a question that was never read was first sent, or `None` if all sent questions
    /// were read.
    pub(super) fn unread(&self) -> Option<Instant> {
        self.first_sent(self.reads.iter().map(|(_, bytes)| bytes).sum())
    }

    fn first_sent(&self, place: u64) -> Option<Instant> {
        self.offered.get(self.offered.partition_point(|(end, _)| *end <= place)).map(|(_, at)| *at)
    }
}

/// Returns, for each datagram that arrived, the time from its first transmission to its arrival.
pub(super) fn datagram_delays(sendings: &[Sending], arrivals: &[Arrival]) -> Vec<Duration> {
    let times = sent_at(sendings);
    arrivals.iter().filter_map(|one| Some(one.at.since(*times.get(&one.packet)?))).collect()
}

/// Returns when each packet was first sent.
fn sent_at(sendings: &[Sending]) -> BTreeMap<PacketId, Instant> {
    sendings.iter().rev().map(|sending| (sending.packet, sending.at)).collect()
}

/// Returns a round-trip estimate at each delivery: twice the one-way delays of the packets, smoothed as TCP smooths its
/// samples (RFC 6298, section 2).
pub(super) fn smoothed(sendings: &[Sending], deliveries: &[Delivery]) -> Vec<(Instant, Duration)> {
    let times = sent_at(sendings);
    let mut estimate: Option<Duration> = None;
    let sample = |delivery: &Delivery| {
        let sample = delivery.at.since(*times.get(&delivery.packet)?) * 2;
        let next = estimate.map_or(sample, |estimate| (estimate * 7 + sample) / 8);
        estimate = Some(next);
        Some((delivery.at, next))
    };
    deliveries.iter().filter_map(sample).collect()
}

/// Returns the median time between two successive instants, or zero if there are fewer than two. An instant less than 1
/// ms after the last counted one is left out, because an application may read a message in parts.
pub(super) fn median_gap(mut times: Vec<Instant>) -> Duration {
    times.sort_unstable();
    let mut last: Option<Instant> = None;
    times.retain(|at| {
        let is_new = last.is_none_or(|last| at.since(last) >= Duration::from_millis(1));
        if is_new {
            last = Some(*at);
        }
        is_new
    });
    let mut gaps: Vec<Duration> = times.windows(2).map(|pair| pair[1].since(pair[0])).collect();
    gaps.sort_unstable();
    gaps.get(gaps.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::samples::{arrival, millis, ms, sending};
    use super::*;
    use trace::HostId;

    #[test]
    fn percentiles_are_nearest_ranks() {
        let all = |count: u64| delay((1..=count).rev().map(millis).collect());
        assert_eq!(all(100), Some(Delay { p50: millis(50), p99: millis(99) }));
        assert_eq!(all(4), Some(Delay { p50: millis(2), p99: millis(4) }));
        assert_eq!(all(1), Some(Delay { p50: millis(1), p99: millis(1) }));
        assert_eq!(all(0), None);
    }

    #[test]
    fn a_datagrams_delay_is_from_its_first_transmission() {
        let sent = [sending(1, 0), sending(2, 20), sending(2, 30)];
        assert_eq!(datagram_delays(&sent, &[arrival(2, 45), arrival(1, 50)]), [millis(25), millis(50)]);
    }

    #[test]
    fn the_spacing_is_a_median_and_parts_of_a_message_are_one() {
        let at = |millis: &[u64]| millis.iter().map(|at| ms(*at)).collect::<Vec<_>>();
        assert_eq!(median_gap(at(&[0, 20, 40, 500])), millis(20));
        let parts = [at(&[0, 20, 40]), vec![Instant(20_300_000), Instant(40_900_000)]].concat();
        assert_eq!(median_gap(parts), millis(20));
    }

    #[test]
    fn a_round_trip_is_twice_the_delay_smoothed() {
        let sent = [sending(1, 0), sending(2, 100)];
        let delivery = |packet: u64, at: u64| super::super::path::Delivery {
            at: ms(at),
            host: HostId(0),
            packet: PacketId(packet),
            advance: 1,
            is_held: false,
        };
        let all = smoothed(&sent, &[delivery(1, 40), delivery(2, 180)]);
        assert_eq!(all, [(ms(40), millis(80)), (ms(180), millis(90))]);
    }
}
