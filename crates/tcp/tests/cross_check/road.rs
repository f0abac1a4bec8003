//! The wire between two ends, in virtual time, and a log of its segments, line by line.

use crate::cross_check::ends::End;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use tcp::{Flags, Segment, Seq};
use wire::{Duration, Instant, Rng};

/// The faults of a wire with 2 Mb/s and a delay of 20 ms.
#[derive(Clone, Default)]
pub(crate) struct Faults {
    /// The number of segments that may wait at each end, without the one on the wire; `None`: no limit.
    pub(crate) queue: Option<usize>,
    /// The data segments that are lost, counted from 1 in the order of sending.
    pub(crate) data: Vec<usize>,
    /// The segments without data that are lost, counted from 1 in the order of sending.
    pub(crate) acks: Vec<usize>,
    /// An interval in milliseconds: segments of both directions are lost if their transmission ends in it.
    pub(crate) outage: Option<(u64, u64)>,
    /// The probability of a loss in thousandths, in both directions, and the random generator.
    pub(crate) random_loss: Option<(u64, Rng)>,
}

/// The transmitter of one direction.
#[derive(Default)]
struct Transmitter {
    leaving: Vec<Instant>,
    carried: usize,
    bare: usize,
}

const RATE: u64 = 2_000_000;
const DELAY: Duration = Duration::from_millis(20);
/// The length of the IP and TCP headers. Options do not count, so that a stack that sends more of them is not slower.
const HEADERS: u64 = 40;

impl Transmitter {
    /// Returns when a segment arrives; `None` if it is lost.
    fn carry(&mut self, now: Instant, segment: &Segment, faults: &mut Faults) -> Option<Instant> {
        let has_data = !segment.payload.is_empty();
        let number = if has_data { &mut self.carried } else { &mut self.bare };
        *number += 1;
        let chosen = if has_data { faults.data.contains(number) } else { faults.acks.contains(number) };
        let unlucky =
            faults.random_loss.as_mut().is_some_and(|(thousandth, rng)| rng.draw() % 1000 < *thousandth);
        self.leaving.retain(|left| *left > now);
        if faults.queue.is_some_and(|queue| self.leaving.len() > queue) {
            return None;
        }
        let bits = (segment.payload.len() as u64 + HEADERS) * 8;
        let start = self.leaving.last().copied().unwrap_or(now);
        let out = start + Duration::from_nanos(bits * 1_000_000_000 / RATE);
        self.leaving.push(out);
        let cut = faults
            .outage
            .is_some_and(|(from, to)| (Instant::from_millis(from)..Instant::from_millis(to)).contains(&out));
        // Random losses spare SYNs and the first 100 ms, because lost SYNs are a known difference.
        let spared = segment.has(Flags::SYN) || now < Instant::from_millis(100);
        let is_lost = chosen || cut || (unlucky && !spared);
        (!is_lost).then_some(out + DELAY)
    }
}

/// The log of a conversation, and its counters.
pub(crate) struct Talk {
    pub(crate) lines: Vec<String>,
    /// The number of data segments of the first end that were sent again.
    pub(crate) again: usize,
    /// The number of lines in the log when a loss first halved less than the outstanding data; see
    /// [`End::has_halved_window`].
    pub(crate) halved_window: Option<usize>,
}

/// Lets the first end send its data to the second, until the second has all of it.
pub(crate) fn talk(mut ends: [Box<dyn End>; 2], data: &[u8], mut faults: Faults) -> Talk {
    let mut wires = [Transmitter::default(), Transmitter::default()];
    let mut road: BTreeMap<(Instant, u64), (usize, Segment)> = BTreeMap::new();
    let (mut now, mut sent, mut first, mut highest) = (Instant::ZERO, 0, [None, None], 0);
    let (mut lines, mut again, mut halved_window) = (Vec::new(), 0, None);
    for _ in 0..400_000 {
        for who in 0..2 {
            let said = lines.len();
            for segment in ends[who].work(now) {
                first[who].get_or_insert(segment.seq);
                lines.push(line(now, who, &segment, first));
                let end = first[who].map_or(0, |first| segment.seq.since(first)) + segment.len();
                again += usize::from(who == 0 && !segment.payload.is_empty() && end <= highest);
                highest = if who == 0 { highest.max(end) } else { highest };
                if let Some(at) = wires[who].carry(now, &segment, &mut faults) {
                    sent += 1;
                    road.insert((at, sent), (1 - who, segment));
                }
            }
            if ends[who].has_halved_window() {
                halved_window.get_or_insert(said);
            }
        }
        if ends[1].got().len() >= data.len() {
            assert!(ends[1].got() == data, "what arrived is not what was sent");
            return Talk { lines, again, halved_window };
        }
        let timers = ends.iter_mut().filter_map(|end| end.deadline(now)).min();
        let landing = road.keys().next().map(|(at, _)| *at);
        match (landing, timers) {
            (Some(at), timer) if timer.is_none_or(|timer| at <= timer) => {
                now = at;
                if let Some((_, (who, segment))) = road.pop_first() {
                    ends[who].hear(now, &segment);
                }
            }
            (_, Some(timer)) => now = now.max(timer),
            _ => panic!("nothing will ever happen again at {now}"),
        }
    }
    panic!("still talking at {now}:\n{}", lines[lines.len() - 20..].join("\n"));
}

fn line(now: Instant, who: usize, segment: &Segment, first: [Option<Seq>; 2]) -> String {
    let from = first[who].map_or(0, |first| segment.seq.since(first));
    let mut text = format!("{:>10} us {} ", now.0 / 1000, [">", "<"][who]);
    for (flag, letter) in [(Flags::SYN, 'S'), (Flags::FIN, 'F'), (Flags::RST, 'R'), (Flags::PSH, 'P')] {
        if segment.has(flag) {
            text.push(letter);
        }
    }
    _ = write!(text, "{from}:{}", from + segment.len());
    if segment.has(Flags::ACK) {
        _ = write!(text, " ack {}", first[1 - who].map_or(0, |first| segment.ack.since(first)));
    }
    _ = write!(text, " win {}", segment.window);
    text
}
