//! The times in which data of a flow were due. The longest stall of a flow, its holes, and the outages of handoffs
//! depend on them.
//!
//! Data of a stream are due if they were sent, if their question was sent, or if the sender waits for an
//! acknowledgment or for the connection to open. A datagram is due from its transmission until it or a later datagram
//! arrives. Lost datagrams are not retransmitted. So if the source pauses and then sends again, the datagrams before
//! the pause are due only until the last of them was sent.

use super::Arrival;
use super::packets::Packets;
use super::path::{Due, Sending};
use std::collections::BTreeMap;
use wire::{Duration, Instant, PacketId};

/// Returns the longest time without new data although data were due.
pub(super) fn longest(all: &[Due]) -> Duration {
    all.iter().map(Due::span).max().unwrap_or_default()
}

/// Returns the median time for which data were due until new data arrived: the lower one of two. Returns zero if none
/// arrived. A time below 1 ms is left out, because an application may read a message in parts.
pub(super) fn pace(all: &[Due], arrivals: &[Arrival]) -> Duration {
    let ends = |due: &&Due| arrivals.get(due.gap).is_some_and(|arrival| arrival.at == due.to);
    let mut spans: Vec<Duration> = all.iter().filter(ends).map(Due::span).collect();
    spans.retain(|span| *span >= Duration::from_millis(1));
    spans.sort_unstable();
    spans.len().checked_sub(1).and_then(|last| spans.get(last / 2)).copied().unwrap_or_default()
}

/// Returns the times in which data of a stream were due, in the order of time. The first gap begins at `begun`, and
/// the last one ends with the flow at `until`.
pub(super) fn of_stream(packets: &Packets, arrivals: &[Arrival], [begun, until]: [Instant; 2]) -> Vec<Due> {
    let (mut place, mut last, mut all) = (0, begun, Vec::new());
    for (gap, arrival) in arrivals.iter().copied().map(Some).chain([None]).enumerate() {
        let end = arrival.map_or(until, |arrival| arrival.at);
        let sent = packets.first_sent(place);
        let since = sent.or_else(|| arrival.map(|_| last));
        let asked = asked(packets, place, since.unwrap_or(end));
        let unread = packets.unread.filter(|_| arrival.is_none());
        let since = since.into_iter().chain(asked).chain(unread).min();
        let whole = since.map(|since| (since.max(last), end));
        let waits = packets.waits_within([last, end], sent).map(|wait| (wait.from, wait.to));
        let due = |(from, to): (Instant, Instant)| {
            let first = since.filter(|_| whole.is_some_and(|(whole, _)| (from..to).contains(&whole)));
            Due { gap, from, to, sent: [first.map_or(from, |first| first.min(from)), to] }
        };
        all.extend(joined(waits.chain(whole).collect()).map(due));
        place += arrival.map_or(0, |arrival| arrival.bytes);
        last = end;
    }
    all
}

/// Returns when the question was first sent whose answer begins at the byte `place`, and was sent at `sent`: the
/// first byte of all that the sender of the answer read since it sent the byte before `place`. Returns `None` if it
/// read nothing since then.
fn asked(packets: &Packets, place: u64, sent: Instant) -> Option<Instant> {
    let before = place.checked_sub(1).and_then(|last| packets.first_sent(last));
    let first = before.map_or(0, |before| packets.questions.partition_point(|(read, _)| *read <= before));
    packets.questions.get(first).filter(|(read, _)| *read <= sent).map(|(_, asked)| *asked)
}

/// Joins the times that overlap, and leaves out those of length zero.
fn joined(mut all: Vec<(Instant, Instant)>) -> impl Iterator<Item = (Instant, Instant)> {
    all.retain(|(from, to)| from < to);
    all.sort_unstable();
    let mut joined: Vec<(Instant, Instant)> = Vec::new();
    for (from, to) in all {
        match joined.last_mut().filter(|(_, end)| *end >= from) {
            Some((_, end)) => *end = (*end).max(to),
            None => joined.push((from, to)),
        }
    }
    joined.into_iter()
}

/// Returns the times in which datagrams were due, in the order of time. A source that sends nothing for more than
/// `silence` pauses.
pub(super) fn of_datagrams(
    sendings: &[Sending],
    arrivals: &[Arrival],
    until: Instant,
    silence: Duration,
) -> Vec<Due> {
    let places: BTreeMap<PacketId, usize> =
        sendings.iter().enumerate().map(|(place, sending)| (sending.packet, place)).collect();
    let (mut newest, mut last, mut all) = (0, Instant::ZERO, Vec::new());
    let ends = arrivals.iter().map(|arrival| (arrival.at, places.get(&arrival.packet)));
    for (gap, (end, place)) in ends.chain([(until, None)]).enumerate() {
        // A datagram that later ones have overtaken does not end the wait for still later ones.
        let sent = || sendings.partition_point(|sending| sending.at < end);
        let next = place.map(|place| place + 1).filter(|next| *next > newest);
        let mut due = sendings.get(newest..next.unwrap_or_else(sent)).unwrap_or_default();
        while let Some(first) = due.first() {
            let paused = due.windows(2).position(|pair| pair[1].at.since(pair[0].at) > silence);
            let run = paused.map_or(due.len(), |before| before + 1);
            let newest = due.get(run - 1).map_or(first.at, |newest| newest.at);
            let to = if paused.is_some() { newest.min(end) } else { end };
            let (from, sent) = (first.at.max(last), [first.at, newest]);
            all.extend((from < to).then_some(Due { gap, from, to, sent }));
            due = due.get(run..).unwrap_or_default();
        }
        newest = newest.max(next.unwrap_or_default());
        last = end;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::path::Wait;
    use super::super::samples::{arrival, millis, ms, sending};
    use super::*;

    fn stall_of(sendings: &[Sending], arrivals: &[Arrival], until: Instant, silence: Duration) -> Duration {
        longest(&of_datagrams(sendings, arrivals, until, silence))
    }

    fn times(all: &[Due]) -> Vec<(usize, u64, u64)> {
        all.iter().map(|due| (due.gap, due.from.0 / 1_000_000, due.to.0 / 1_000_000)).collect()
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
        assert_eq!(stall_of(&sent, &arrived(&[1, 2, 3, 4, 5, 6]), ms(160), SILENCE), millis(40));
        assert_eq!(stall_of(&sent, &arrived(&[1, 2, 5, 6]), ms(160), SILENCE), millis(60));
        // The last two datagrams are lost: the stall lasts until the flow ends.
        assert_eq!(stall_of(&sent, &arrived(&[1, 2, 3, 4]), ms(300), SILENCE), millis(180));
        // No datagram arrives: the stall begins with the first transmission.
        assert_eq!(stall_of(&sent, &[], ms(300), SILENCE), millis(280));
        // A pause of the source is no stall.
        let pause = [sending(1, 0), sending(2, 5_000)];
        let stall = |sent: &[Sending], arrivals: &[Arrival]| stall_of(sent, arrivals, ms(6_000), SILENCE);
        assert_eq!(stall(&pause, &[arrival(1, 40), arrival(2, 5_040)]), millis(40));
        // If the last datagrams before a pause are lost, the pause is no stall: these datagrams are due only until the
        // last of them was sent.
        let lost = [sending(1, 0), sending(2, 20), sending(3, 40), sending(4, 5_000)];
        assert_eq!(stall(&lost, &[arrival(1, 10), arrival(4, 5_040)]), millis(40));
        assert_eq!(stall(&lost, &[arrival(1, 10)]), millis(1_000));
    }

    /// Later datagrams are lost until one arrives that earlier ones have overtaken. The application receives nothing in
    /// between, so the lost ones are due.
    #[test]
    fn an_overtaken_datagram_does_not_hide_the_loss_of_later_ones() {
        let sent: Vec<Sending> = (1..=20).map(|packet| sending(packet, packet * 20)).collect();
        let arrivals = [arrival(2, 50), arrival(1, 300)];
        assert_eq!(
            times(&of_datagrams(&sent, &arrivals, ms(420), SILENCE)),
            [(0, 20, 50), (1, 60, 300), (2, 300, 420)]
        );
    }

    /// A source pauses for 1 s between lost datagrams. The times before and after the pause are separate.
    #[test]
    fn a_pause_between_lost_datagrams_divides_the_time_in_which_data_are_due() {
        let sent =
            [0, 20, 40, 60, 80, 1_080, 1_100, 1_120].into_iter().zip(1..).map(|(at, id)| sending(id, at));
        let sent: Vec<Sending> = sent.collect();
        let all = of_datagrams(&sent, &[arrival(1, 10), arrival(8, 1_130)], ms(1_130), SILENCE);
        assert_eq!(times(&all), [(0, 0, 10), (1, 20, 80), (1, 1_080, 1_130)]);
    }

    /// Returns a stream whose sender sent 100 bytes at 0 ms and 100 bytes at 1 s.
    fn offered() -> Packets {
        Packets { is_stream: true, offered: vec![(100, ms(0)), (200, ms(1_000))], ..Packets::default() }
    }

    fn stall(packets: &Packets, arrivals: &[Arrival]) -> Duration {
        longest(&of_stream(packets, arrivals, [ms(0), ms(5_000)]))
    }

    #[test]
    fn a_stall_of_a_stream_begins_when_something_was_sent_and_may_end_with_the_flow() {
        let stall = |arrivals: &[Arrival]| stall(&offered(), arrivals);
        assert_eq!(stall(&[arrival(1, 40), arrival(2, 1_300)]), millis(300));
        assert_eq!(stall(&[arrival(1, 40)]), millis(4_000));
        assert_eq!(stall(&[]), millis(5_000));
    }

    /// The first data arrived at 40 ms, but their acknowledgment was late. The stall includes the time in which the
    /// sender retransmitted.
    #[test]
    fn a_sender_that_sends_again_is_not_idle() {
        let waits = |from: u64, to: Instant, arrivals: &[Arrival]| {
            stall(&Packets { waits: vec![Wait { from: ms(from), to }], ..offered() }, arrivals)
        };
        let both = [arrival(1, 40), arrival(2, 1_300)];
        assert_eq!(waits(0, ms(1_000), &both), millis(1_260), "the next was sent when it knew");
        assert_eq!(waits(0, ms(900), &both), millis(860), "then it had nothing to send");
        assert_eq!(waits(1_000, Instant::NEVER, &both), millis(3_700), "it never knew");
    }

    /// The second answer is due from 200 ms, when its question was first sent. This question arrived at 990 ms.
    #[test]
    fn an_answer_is_due_since_its_question_was_sent() {
        let arrivals = [arrival(1, 40), arrival(2, 1_300)];
        let asked = |read: u64| Packets { questions: vec![(ms(0), ms(0)), (ms(read), ms(200))], ..offered() };
        let second = |read: u64| times(&of_stream(&asked(read), &arrivals, [ms(0), ms(1_300)]))[1];
        assert_eq!([990, 1_001].map(second), [(1, 200, 1_300), (1, 1_000, 1_300)]);
        // The second question never arrived, so its answer was never sent.
        let unread = Packets { unread: Some(ms(200)), offered: offered().offered[..1].to_vec(), ..asked(0) };
        assert_eq!(stall(&unread, &arrivals[..1]), millis(4_800));
    }

    /// The second question is read in three pieces. Its answer is due since the first of them was sent.
    #[test]
    fn an_answer_is_due_since_the_first_piece_of_its_question() {
        let pieces = [(0, 0), (400, 200), (700, 300), (1_000, 800)];
        let questions = pieces.map(|(read, sent)| (ms(read), ms(sent))).to_vec();
        let all = of_stream(
            &Packets { questions, ..offered() },
            &[arrival(1, 40), arrival(2, 1_300)],
            [ms(0), ms(1_300)],
        );
        assert_eq!(times(&all), [(0, 0, 40), (1, 200, 1_300)]);
    }
}
