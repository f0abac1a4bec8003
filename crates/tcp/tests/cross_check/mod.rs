//! Compares our TCP with smoltcp 0.14.0 in virtual time. Where the rules are the same, the conversations must be equal,
//! segment by segment and to the microsecond.
//!
//! **Made equal**: segments of 1024 bytes, so that smoltcp's initial window of 2048 bytes is two of them. Reno (RFC
//! 5681, section 3.2) without RFC 6582, as in smoltcp. Time-outs from 1 s to 60 s, which are smoltcp's constants; they
//! also hide that its estimator counts milliseconds. Every second segment is acknowledged at once, others after 200 ms.
//! Nagle is on. Window scaling, timestamps and the use of selective acknowledgments are off (smoltcp's sender reads
//! none). Buffers of 44 segments leave no remainder in smoltcp's ring, and are below the 64 KiB at which it caps its
//! window. The receiver stores 32 gaps. On the wire options take no time, and no SYN is lost. Connections are not
//! closed: after a close smoltcp sends a final short segment.
//!
//! **Known differences**, measured here and found in its source:
//!
//! | smoltcp 0.14.0 | what follows |
//! |---|---|
//! | halves all outstanding data (`tcp/congestion/reno.rs`, `on_loss`, `on_rto`) | ours halves the smaller of that and the window: the stacks differ from the first loss at which more than the window is outstanding |
//! | an acknowledgment that fills a gap announces the window before the application has read (`tcp.rs`, `process`) | a smaller window for an instant; receivers are compared only where no gap is filled |
//! | after such a window of zero it probes at once | its sender is compared with our receiver only |
//! | a lost SYN lowers the threshold; duplicates are counted across a time-out; no restart after idling; no limit of retransmissions; a first time-out of 3 s after a lost SYN is not kept (RFC 6298, 5.7) | these cases do not occur |

mod ends;
mod road;

use ends::{End, MSS, Ours, Smoltcp};
use road::{Faults, Talk, talk};
use wire::Rng;

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

/// Runs a transfer from the first stack to the second.
fn run(stacks: [Stack; 2], faults: &Faults) -> Talk {
    let mut rng = Rng::new(3);
    let data: Vec<u8> = (0..SEGMENTS * usize::from(MSS)).map(|_| rng.draw() as u8).collect();
    let ends = [stacks[0].end(0, data.clone()), stacks[1].end(1, Vec::new())];
    talk(ends, &data, faults.clone())
}

/// Returns the index of the first line in which two conversations differ; `None` if they are equal.
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

/// Returns cases: a name, faults, and the number of data segments that are sent again because of the faults. Zero means
/// that this number is not checked.
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

/// Receivers of both stacks behave the same while no gap is filled. Two ends of smoltcp also send the same as two of
/// ours.
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

/// With random losses from 0.5 % to 5 %, with and without a queue that overflows, two conversations are equal to the
/// end. Exception: they may differ after ours halved the window and smoltcp all outstanding data.
#[test]
fn by_chance_they_differ_for_one_reason_only() {
    let (mut equal, mut halved) = (0, 0);
    for (queue, seed) in
        [None, Some(20)].into_iter().flat_map(|queue| (0..100).map(move |seed| (queue, seed)))
    {
        let random_loss = Some((5 + 5 * (seed % 10), Rng::new(seed)));
        let faults = Faults { queue, random_loss, ..Faults::default() };
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
