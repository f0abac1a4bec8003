//! Our TCP and smoltcp's (0.14.0) in virtual time: the same conversation, segment by segment, to the microsecond, where the
//! rules are the same.
//!
//! **Made equal**: segments of 1024 bytes, so that smoltcp's first window of 2048 bytes is two of them; Reno (RFC 5681,
//! section 3.2) without RFC 6582, as smoltcp's; time-outs from 1 s to 60 s (its constants), which also hides its estimator's
//! milliseconds; every second segment acknowledged at once and others after 200 ms; Nagle; no window scaling, no timestamps,
//! no use of selective acknowledgments (smoltcp's sender reads none); buffers of 44 segments, which is no remainder in its
//! ring and below the 64 KiB at which it caps its window; 32 gaps in the receiver. The wire charges no options and loses no
//! SYN. Nobody closes: after a close smoltcp sends what is less than a segment.
//!
//! **What keeps it from more**, by measurement here and by its source:
//!
//! | smoltcp 0.14.0 | what follows |
//! |---|---|
//! | halves all that is outstanding (`tcp/congestion/reno.rs`, `on_loss`, `on_rto`) | ours halves the less of that and the window: they differ where a second loss finds more outstanding than the window, and from there on only |
//! | an acknowledgment that fills a gap announces the window before the application has read (`tcp.rs`, `process`) | a smaller window for an instant; receivers are compared where no gap is filled |
//! | after such a window of zero it probes at once | its sender is compared in front of our receiver |
//! | a lost SYN lowers the threshold; duplicates are counted on across a time-out; nothing is restarted after idling; no limit on retransmissions; a first time-out of 3 s after a lost SYN is not kept (RFC 6298, 5.7) | not made to happen |

#![cfg(test)]

mod ends;
mod road;

use ends::{End, MSS, Ours, Smoltcp};
use road::{Faults, Talk, talk};
use wire::Seed;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stack {
    Ours,
    Smoltcp,
}

impl Stack {
    fn end(self, who: usize, data: Vec<u8>) -> Box<dyn End> {
        match self {
            Self::Ours => Box::new(Ours::new(who, data)),
            Self::Smoltcp => Box::new(Smoltcp::new(who, data)),
        }
    }
}

const SEGMENTS: usize = 200;

/// The first of the stacks sends to the second.
fn run(stacks: [Stack; 2], faults: &Faults) -> Talk {
    let mut seed = Seed::new(3);
    let data: Vec<u8> = (0..SEGMENTS * usize::from(MSS)).map(|_| seed.draw() as u8).collect();
    let ends = [stacks[0].end(0, data.clone()), stacks[1].end(1, Vec::new())];
    talk(ends, &data, faults.clone())
}

/// The first line in which two conversations differ.
fn first_difference(a: &Talk, b: &Talk) -> Option<usize> {
    let at = a.lines.iter().zip(&b.lines).position(|(a, b)| a != b);
    at.or((a.lines.len() != b.lines.len()).then(|| a.lines.len().min(b.lines.len())))
}

#[track_caller]
fn assert_same(name: &str, ours: &Talk, theirs: &Talk) {
    if let Some(at) = first_difference(ours, theirs) {
        let around = |talk: &Talk| talk.lines[at.saturating_sub(6)..talk.lines.len().min(at + 3)].join("\n");
        panic!("{name}, line {at}\n--- ours\n{}\n--- smoltcp's\n{}", around(ours), around(theirs));
    }
}

/// What goes wrong, and how many segments of data are sent again for it.
fn cases() -> Vec<(&'static str, Faults, usize)> {
    let lost = |data: &[usize]| Faults { data: data.to_vec(), ..Faults::default() };
    let outage = |from, to| Faults { outage: Some((from, to)), ..Faults::default() };
    vec![
        ("nothing is lost", Faults::default(), 0),
        ("one loss, and fast recovery", lost(&[60]), 1),
        (
            "what is sent again is lost, again and again: time-outs that double",
            lost(&[10, 14, 15, 16, 17, 18]),
            6,
        ),
        ("a loss with too few behind it for three duplicates", lost(&[199]), 1),
        ("the end is lost, and again", lost(&[198, 199, 200, 201, 202, 203]), 6),
        ("acknowledgments are lost", Faults { acks: vec![5, 6, 9, 30, 31], ..Faults::default() }, 0),
        ("an outage of 1 s", outage(500, 1500), 0),
        ("an outage of 2.5 s", outage(500, 3000), 0),
        ("an outage of 6 s", outage(500, 6500), 0),
    ]
}

#[test]
fn senders_say_the_same() {
    for (name, faults, again) in cases() {
        let [ours, theirs] = [Stack::Ours, Stack::Smoltcp].map(|sender| run([sender, Stack::Ours], &faults));
        println!("{name}: {} segments, {} again", ours.lines.len(), ours.again);
        assert_same(name, &ours, &theirs);
        assert!(again == 0 || ours.again == again, "{name}: {} were sent again", ours.again);
        assert!(faults.outage.is_none() || ours.again > 10, "{name}: {} were sent again", ours.again);
    }
}

/// Where no gap is filled; and both pairs of one stack, which have nothing in common then but the wire.
#[test]
fn receivers_say_the_same() {
    let without_gaps = cases().into_iter().filter(|(_, faults, _)| faults.data.is_empty());
    for (name, faults, _) in without_gaps {
        let ours = run([Stack::Ours; 2], &faults);
        for pair in [[Stack::Ours, Stack::Smoltcp], [Stack::Smoltcp; 2]] {
            assert_same(name, &ours, &run(pair, &faults));
        }
    }
}

/// Losses by chance, from half a percent to five, with a queue that overflows and without: equal to the end, or to where
/// ours halved the window and smoltcp all that was outstanding.
#[test]
fn by_chance_they_differ_for_one_reason_only() {
    let (mut equal, mut halved) = (0, 0);
    for (queue, seed) in
        [None, Some(20)].into_iter().flat_map(|queue| (0..100).map(move |seed| (queue, seed)))
    {
        let chance = Some((5 + 5 * (seed % 10), Seed::new(seed)));
        let faults = Faults { queue, chance, ..Faults::default() };
        let [ours, theirs] = [Stack::Ours, Stack::Smoltcp].map(|sender| run([sender, Stack::Ours], &faults));
        let Some(at) = first_difference(&ours, &theirs) else {
            equal += 1;
            continue;
        };
        let explained = ours.halved_window.is_some_and(|line| line <= at);
        if !explained {
            assert_same(&format!("seed {seed}, queue {queue:?}"), &ours, &theirs);
        }
        halved += 1;
    }
    println!("{equal} conversations are equal, {halved} until ours halved the window");
    assert!(equal >= 100, "{equal} are equal, {halved} are not");
}
