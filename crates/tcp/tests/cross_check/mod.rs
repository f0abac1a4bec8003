//! Compares our TCP with smoltcp 0.14.0 in virtual time. Where both follow the same rules, their conversations must be
//! equal, segment by segment and to the microsecond.
//!
//! **Made equal**:
//!
//! - Segments have 1024 bytes, so smoltcp's initial window of 2048 bytes is two segments.
//! - Both stacks use Reno (RFC 5681, section 3.2) without RFC 6582.
//! - Time-outs are from 1 s to 60 s, the constants of smoltcp. The minimum hides that smoltcp's estimator counts
//!   milliseconds.
//! - Every second segment is acknowledged at once, and other segments after 200 ms. Nagle is on.
//! - Window scaling and timestamps are off. Neither sender uses selective acknowledgments.
//! - Buffers have 44 segments. So no segment is cut at the end of smoltcp's ring buffer, and the buffers are smaller than
//!   smoltcp's largest congestion window of 64 KiB.
//! - smoltcp's receiver stores 32 gaps.
//! - On the wire, TCP options take no time, and no SYN is lost.
//! - Connections are not closed: after a close, smoltcp sends a final short segment.
//!
//! **Known differences**, measured here and found in the source of smoltcp:
//!
//! | smoltcp 0.14.0 | effect on the comparison |
//! |---|---|
//! | A loss halves all outstanding data (`tcp/congestion/reno.rs`, `on_loss`, `on_rto`). Our TCP halves the outstanding data or the window, whichever is smaller. | From the first loss at which more than the window is outstanding, the stacks may differ. |
//! | If a segment fills a gap, its acknowledgment announces the window before the application has read the data (`tcp.rs`, `process`). | The announced window is too small for an instant. Receivers are compared only if no gap is filled. |
//! | If the announced window is zero, smoltcp's sender probes it at once. | If a gap is filled, smoltcp's sender is compared only with our receiver, which does not announce this window. |
//! | A lost SYN lowers the threshold. Duplicates are counted across a time-out. An idle time does not reduce the window. The number of retransmissions has no limit. The time-out of 3 s after a lost SYN is not kept (RFC 6298, 5.7). | These cases do not occur. |

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
/// end. Exception: after our TCP halved the window, and smoltcp all outstanding data, they may differ.
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
