//! Delay, stall and spacing of a flow, computed from its transmissions and arrivals.

use super::packets::Packets;
use super::path::{Delivery, Sending, Wait};
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
    /// Takes the last read of questions at or before `to`. Returns when the first byte of this read was first sent, or
    /// `None` if this read was not after `from`.
    fn asked(&self, from: Instant, to: Instant) -> Option<Instant> {
        let index = self.reads.partition_point(|(at, _)| *at <= to).checked_sub(1)?;
        self.reads.get(index).filter(|(at, _)| *at > from)?;
        self.first_sent(self.reads.iter().take(index).map(|(_, bytes)| bytes).sum())
    }

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
    fn unheard(&self) -> Option<Instant> {
        self.first_sent(self.reads.iter().map(|(_, bytes)| bytes).sum())
    }

    fn first_sent(&self, place: u64) -> Option<Instant> {
        self.offered.get(self.offered.partition_point(|(end, _)| *end <= place)).map(|(_, at)| *at)
    }
}

/// Returns the longest time without new data although data was due. Data is due if it was sent, if a question has no
/// answer yet, or if the sender waits for the acknowledgment of retransmitted data or for the connection to open. The
/// last stall may end with the flow.
pub(super) fn stream_stall(
    packets: &Packets,
    arrivals: &[Arrival],
    [begun, until]: [Instant; 2],
    question: Option<&Question<'_>>,
) -> Duration {
    let (mut read, mut last, mut longest) = (0, begun, Duration::ZERO);
    for arrival in arrivals {
        let sent = packets.first_sent(read).unwrap_or(last);
        let asked = question.and_then(|question| question.asked(last, sent));
        let due = asked.unwrap_or(sent).min(sent).max(last).min(arrival.at);
        let waited = packets.waited([last, arrival.at], packets.first_sent(read)).map(Wait::span);
        longest = longest.max(arrival.at.since(due)).max(waited.unwrap_or_default());
        (read, last) = (read + arrival.bytes, arrival.at);
    }
    let sent = packets.first_sent(read).filter(|_| read < packets.offered_bytes());
    let asked = question.and_then(|question| question.unheard().or_else(|| question.asked(last, until)));
    let waited = packets.waited([last, until], sent).map(Wait::span);
    let longest = longest.max(waited.unwrap_or_default());
    match sent.into_iter().chain(asked).min() {
        Some(due) => longest.max(until.since(due.max(last).min(until))),
        None => longest,
    }
}

/// Returns, for each datagram that arrived, the time from its first transmission to its arrival.
pub(super) fn datagram_delays(sendings: &[Sending], arrivals: &[Arrival]) -> Vec<Duration> {
    let times = sent_at(sendings);
    arrivals.iter().filter_map(|one| Some(one.at.since(*times.get(&one.packet)?))).collect()
}

/// Returns the longest time without an arrival in which a datagram was due. A datagram is due from its transmission
/// until it or a later datagram arrives, or until `until`. Lost datagrams are not retransmitted. So if the source
/// pauses for longer than `silence` and then sends again, the datagrams before the pause are due only until the last of
/// them was sent.
pub(super) fn datagram_stall(
    sendings: &[Sending],
    arrivals: &[Arrival],
    until: Instant,
    silence: Duration,
) -> Duration {
    let places: BTreeMap<PacketId, usize> =
        sendings.iter().enumerate().map(|(place, sending)| (sending.packet, place)).collect();
    let (mut newest, mut last, mut longest) = (0, Instant::ZERO, Duration::ZERO);
    let ends = arrivals.iter().map(|arrival| (arrival.at, places.get(&arrival.packet)));
    for (end, place) in ends.chain([(until, None)]) {
        let mut due =
            sendings.get(newest..place.map_or(sendings.len(), |place| place + 1)).unwrap_or_default();
        while let Some(first) = due.first() {
            let paused = due.windows(2).position(|pair| pair[1].at.since(pair[0].at) > silence);
            let next = paused.map_or(due.len(), |before| before + 1);
            let end = paused.and_then(|before| due.get(before)).map_or(end, |before| before.at);
            longest = longest.max(end.since(first.at.max(last).min(end)));
            due = due.get(next..).unwrap_or_default();
        }
        newest = newest.max(place.map_or(0, |place| place + 1));
        last = end;
    }
    longest
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
    use super::*;
    use trace::HostId;

    fn ms(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    fn millis(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn sending(packet: u64, at: u64) -> Sending {
        Sending { at: ms(at), packet: PacketId(packet), is_new: true, place: packet, leg: 0 }
    }

    fn arrival(packet: u64, at: u64) -> Arrival {
        Arrival { at: ms(at), bytes: 100, packet: PacketId(packet) }
    }

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

    const SILENCE: Duration = Duration::from_millis(50);

    /// A datagram is sent every 20 ms and arrives 40 ms later. The datagrams sent at 60 and 80 ms are lost, so the
    /// stall lasts from the arrival at 80 ms to the arrival at 140 ms.
    #[test]
    fn a_stall_of_datagrams_is_a_hole_in_what_the_application_is_given() {
        let sent: Vec<Sending> = (1..=6).map(|packet| sending(packet, packet * 20)).collect();
        let arrived = |packets: &[u64]| -> Vec<Arrival> {
            packets.iter().map(|packet| arrival(*packet, packet * 20 + 40)).collect()
        };
        assert_eq!(datagram_stall(&sent, &arrived(&[1, 2, 3, 4, 5, 6]), ms(160), SILENCE), millis(40));
        assert_eq!(datagram_stall(&sent, &arrived(&[1, 2, 5, 6]), ms(160), SILENCE), millis(60));
        // The last two datagrams are lost: the stall lasts until the flow ends.
        assert_eq!(datagram_stall(&sent, &arrived(&[1, 2, 3, 4]), ms(300), SILENCE), millis(180));
        // No datagram arrives: the stall begins with the first transmission.
        assert_eq!(datagram_stall(&sent, &[], ms(300), SILENCE), millis(280));
        // A pause of the source is no stall.
        let pause = [sending(1, 0), sending(2, 5_000)];
        let stall =
            |sent: &[Sending], arrivals: &[Arrival]| datagram_stall(sent, arrivals, ms(6_000), SILENCE);
        assert_eq!(stall(&pause, &[arrival(1, 40), arrival(2, 5_040)]), millis(40));
        // If the last datagrams before a pause are lost, the pause is no stall: these datagrams are due only until the
        // last of them was sent.
        let lost = [sending(1, 0), sending(2, 20), sending(3, 40), sending(4, 5_000)];
        assert_eq!(stall(&lost, &[arrival(1, 10), arrival(4, 5_040)]), millis(40));
        assert_eq!(stall(&lost, &[arrival(1, 10)]), millis(1_000));
    }

    /// Returns a stream whose sender sent 100 bytes at 0 ms and 100 bytes at 1 s.
    fn offered() -> Packets {
        Packets { is_stream: true, offered: vec![(100, ms(0)), (200, ms(1_000))], ..Packets::default() }
    }

    #[test]
    fn a_stall_of_a_stream_begins_when_something_was_sent_and_may_end_with_the_flow() {
        let life = [ms(0), ms(5_000)];
        let stall = |arrivals: &[Arrival]| stream_stall(&offered(), arrivals, life, None);
        assert_eq!(stall(&[arrival(1, 40), arrival(2, 1_300)]), millis(300));
        assert_eq!(stall(&[arrival(1, 40)]), millis(4_000));
        assert_eq!(stall(&[]), millis(5_000));
    }

    /// The first data arrived at 40 ms, but their acknowledgment was late. The stall includes the time in which the
    /// sender retransmitted.
    #[test]
    fn a_sender_that_sends_again_is_not_idle() {
        let stall = |from: u64, to: Instant, arrivals: &[Arrival]| {
            let packets = Packets { waits: vec![Wait { from: ms(from), to }], ..offered() };
            stream_stall(&packets, arrivals, [ms(0), ms(5_000)], None)
        };
        let both = [arrival(1, 40), arrival(2, 1_300)];
        assert_eq!(stall(0, ms(1_000), &both), millis(1_260), "the next was sent when it knew");
        assert_eq!(stall(0, ms(900), &both), millis(860), "then it had nothing to send");
        assert_eq!(stall(1_000, Instant::NEVER, &both), millis(3_700), "it never knew");
    }

    /// The second answer is due from 200 ms, when its question was first sent. This question arrived at 990 ms.
    #[test]
    fn an_answer_is_due_since_its_question_was_sent() {
        let reads = [(ms(0), 10), (ms(990), 10)];
        let question = Question { offered: vec![(10, ms(0)), (20, ms(200))], reads: &reads };
        let arrivals = [arrival(1, 40), arrival(2, 1_300)];
        let stall = |reads: &[Arrival], question: &Question<'_>| {
            stream_stall(&offered(), reads, [ms(0), ms(5_000)], Some(question))
        };
        assert_eq!(stall(&arrivals, &question), millis(1_100));
        // The second question never arrived, so its answer was never sent.
        let unheard = Question { reads: &reads[..1], ..question };
        let first = Packets { offered: offered().offered[..1].to_vec(), ..offered() };
        let stall = stream_stall(&first, &arrivals[..1], [ms(0), ms(5_000)], Some(&unheard));
        assert_eq!(stall, millis(4_800));
    }

    /// Data are due since they were sent, since their question was sent, or since the sender waits, but not before the last
    /// arrival. A pause of the source before is not counted.
    #[test]
    fn data_are_due_after_a_pause_of_the_source() {
        let due = |packets: &Packets, next: Option<u64>| packets.due([ms(40), ms(1_300)], next.map(ms));
        assert_eq!(due(&offered(), Some(1_000)), ms(1_000));
        assert_eq!(due(&offered(), Some(2_000)), ms(1_300), "the source sends only after the gap");
        assert_eq!(due(&offered(), None), ms(40));
        let asked = |read: u64| Packets { questions: vec![(ms(0), ms(0)), (ms(read), ms(200))], ..offered() };
        assert_eq!([990, 1_001].map(|read| due(&asked(read), Some(1_000))), [200, 1_000].map(ms));
        let waits = |to: u64| Packets { waits: vec![Wait { from: ms(0), to: ms(to) }], ..offered() };
        assert_eq!([1_000, 900].map(|to| due(&waits(to), Some(1_000))), [40, 1_000].map(ms));
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
