//! Tests of handoffs of idle flows, of flows that answer questions, and of flows that end in an outage.

use super::hole_tests::{SOURCE, of, only_hole, run};
use super::parts_tests::UPWARD;
use super::{Experience, FlowCost};
use crate::flow::FlowEnd;
use crate::run::Outcome;
use node::Stage;
use wire::{Duration, Instant};

const SINK: &str = r#"{ kind = "apps/sink", at = "mobile:7000" }"#;
const MOVES: (&str, &str) = ("moves = []", r#"moves = [{ at = "6s", to = "b" }]"#);

/// Runs a mobile node that sends questions to the correspondent from 3 s on.
pub(super) fn asks(questions: &str, further: &[(&str, &str)], faults: &[(&str, &str, &str)]) -> Outcome {
    let client = format!(r#"{{ kind = "apps/request-client", to = "cor:8000", start = "3s", {questions} }}"#);
    let server = r#"{ kind = "apps/request-server", at = "cor:8000" }"#;
    let mut replaced = vec![(SOURCE, server), (SINK, client.as_str())];
    replaced.extend(further);
    run(&replaced, faults)
}

/// Asserts the law of stalls: no hole of a flow is longer than its longest stall. The outage of a handoff can begin
/// before data are due, so it is measured since they were due.
#[track_caller]
fn assert_no_longer_than_stalls(outcome: &Outcome) {
    assert_eq!(
        crate::run::longer_than_stalls(outcome),
        Vec::<String>::new(),
        "{}",
        crate::report::text(outcome)
    );
}

fn costs(outcome: &Outcome) -> Vec<&FlowCost> {
    outcome.handoffs[0].flows.iter().collect()
}

/// A mobile node moves at 6 s, when its flow is idle. It asks at 7 s, when the router is stopped. The stall is no
/// part of the handoff.
#[test]
fn a_stall_after_the_handoff_of_an_idle_flow_is_a_hole() {
    let stop = "[[event]]\nat = \"6.9s\"\nkind = \"stop\"\nhost = \"core\"\n\
                [[event]]\nat = \"8.5s\"\nkind = \"continue\"\nhost = \"core\"\n[host.core]";
    let outcome = asks(r#"every = "4s""#, &[MOVES, ("[host.core]", stop)], &[]);
    let report = crate::report::text(&outcome);
    assert!(costs(&outcome).iter().all(|cost| cost.experience == Experience::NotMeasured), "{report}");
    let flows: Vec<usize> = outcome.holes.iter().map(|hole| hole.flow).collect();
    assert_eq!(flows, [0, 1], "answers and questions: {report}");
    for hole in &outcome.holes {
        assert!((7_000..7_010).contains(&(hole.from.0 / 1_000_000)), "{report}");
        assert!(of(&hole.experience, Stage::Link) > Duration::from_millis(1_400), "{report}");
    }
    assert_no_longer_than_stalls(&outcome);
}

/// The same with a wire that is cut after the move. The lost question belongs to the hole. The flow of the answers
/// has a row too, because its application waits for the answer.
#[test]
fn a_loss_after_the_handoff_of_an_idle_flow_belongs_to_a_hole() {
    let outcome = asks(r#"every = "4s""#, &[MOVES], &[("wire = \"to-b\"", "6.9s", "8.5s")]);
    let report = crate::report::text(&outcome);
    for cost in costs(&outcome) {
        assert_eq!((&cost.experience, cost.lost()), (&Experience::NotMeasured, 0), "{report}");
    }
    let flows: Vec<usize> = outcome.holes.iter().map(|hole| hole.flow).collect();
    assert_eq!(flows, [0, 1], "{report}");
    for hole in &outcome.holes {
        assert!((7_000..7_010).contains(&(hole.from.0 / 1_000_000)), "{report}");
    }
    let lost: u64 = outcome.holes.iter().map(|hole| hole.lost).sum();
    assert_eq!(lost, outcome.flows.iter().map(|flow| flow.lost).sum::<u64>(), "{report}");
    assert_no_longer_than_stalls(&outcome);
}

/// A datagram each second. The one of 5 s is lost, so the flow is idle at the cut, but the one of 5.995 s is on its
/// way. The agent keeps it until the radio has its link again.
#[test]
fn a_datagram_on_its_way_at_the_cut_is_due() {
    let slow = SOURCE.replace("rate = 50", "rate = 1").replace("\"3s\"", "\"3.995s\"");
    let kept = "smooth_handoff = true\nbuffer = { packets = 1000, max_age = \"20s\" }";
    let replaced = [
        (SOURCE, slow.as_str()),
        MOVES,
        ("smooth_handoff = true", kept),
        ("retune = \"5ms\"", "retune = \"500ms\""),
    ];
    let outcome = run(&replaced, &[("wire = \"inet\"", "4.9s", "5.1s")]);
    let report = crate::report::text(&outcome);
    let cost = costs(&outcome)[0];
    assert_eq!(cost.lost(), 0, "{report}");
    let outage = cost.experience.outage().unwrap_or_else(|| panic!("{report}"));
    assert!(
        outage.span() > Duration::from_millis(500) && outage.span() < Duration::from_millis(800),
        "{report}"
    );
    assert_no_longer_than_stalls(&outcome);
}

/// A client asks every two seconds, and its question is lost. The limit of a hole does not depend on this pause.
#[test]
fn the_limit_of_a_hole_does_not_depend_on_pauses() {
    let outcome = asks(r#"every = "2s""#, &[], &[("wire = \"inet\"", "8.9s", "9.5s")]);
    let report = crate::report::text(&outcome);
    let flows: Vec<usize> = outcome.holes.iter().map(|hole| hole.flow).collect();
    assert_eq!(flows, [0, 1], "{report}");
    assert_no_longer_than_stalls(&outcome);
}

/// A wire is cut, and the receiver of an upload restarts behind it. When the wire is restored, the receiver resets the
/// connection. The application received nothing since the cut.
#[test]
fn a_stream_that_is_reset_during_an_outage_has_a_hole() {
    let replaced = [
        ("duration = \"14s\"", "duration = \"30s\""),
        (SOURCE, r#"{ kind = "apps/bulk-client", to = "mobile:9000", start = "3s" }"#),
        (SINK, r#"{ kind = "apps/bulk-server", at = "mobile:9000", duration = "20s" }"#),
    ];
    let faults = [("wire = \"inet\"", "9s", "12s"), ("host = \"cor\"", "10s", "11s")];
    let outcome = run(&replaced, &faults);
    let report = crate::report::text(&outcome);
    let flow = outcome
        .flows
        .iter()
        .position(|flow| flow.end == FlowEnd::Reset)
        .unwrap_or_else(|| panic!("{report}"));
    let hole = outcome.holes.iter().find(|hole| hole.flow == flow).unwrap_or_else(|| panic!("{report}"));
    assert!(hole.lost > 0, "{report}");
    let is_since_the_cut = |from: Instant| (8_900..9_200).contains(&(from.0 / 1_000_000));
    assert!(matches!(hole.experience, Experience::Never { from } if is_since_the_cut(from)), "{report}");
    assert_no_longer_than_stalls(&outcome);
}

/// The run ends while the first datagrams are on their way. A host that the flow does not use is stopped until then.
#[test]
fn a_fault_elsewhere_holds_no_datagram() {
    let late = SOURCE.replace("\"3s\"", "\"13.7s\"").replace("\"12s\"", "\"20s\"");
    let holes = |stopped: &str| {
        let stop = format!("[[event]]\nat = \"10s\"\nkind = \"stop\"\nhost = \"{stopped}\"\n[host.core]");
        let replaced =
            [(SOURCE, late.as_str()), ("delay = \"20ms\"", "delay = \"400ms\""), ("[host.core]", &stop)];
        run(&replaced, &[]).holes.len()
    };
    assert_eq!(["b", "home"].map(holes), [0, 1]);
}

/// A wire loses all datagrams from 4.5 s to 6.01 s, and the mobile node moves at 6.02 s. The lost datagrams are not due after
/// the cut, and the next one arrives without a delay.
#[test]
fn datagrams_that_were_lost_before_the_cut_are_not_due_after_it() {
    let slow = SOURCE.replace("rate = 50", "rate = 10").replace("\"3s\"", "\"3.001s\"");
    let moves = r#"moves = [{ at = "6.02s", to = "b" }]"#;
    let outcome =
        run(&[(SOURCE, slow.as_str()), ("moves = []", moves)], &[("wire = \"inet\"", "4.5s", "6.01s")]);
    let report = crate::report::text(&outcome);
    assert_eq!(costs(&outcome)[0].experience, Experience::NotMeasured, "{report}");
    let hole = only_hole(&outcome);
    let flow = &outcome.flows[0];
    assert_eq!(hole.experience.outage().map(super::Outage::span), Some(flow.longest_stall), "{report}");
    assert_eq!(hole.lost, flow.lost, "{report}");
}

/// An upload by a path of 80 ms. The datagram of 6.003 s is lost in the move at 6 s. Those before it arrive until 6.07 s, when
/// the handoff has ended. The lost one was due since it was sent, so the flow was not idle.
#[test]
fn a_datagram_that_was_lost_behind_others_on_a_long_path_is_due() {
    let wire = |delay: &str| format!("ends = [\"cor\", \"core\"]\nrate = \"100Mb/s\"\ndelay = \"{delay}\"");
    let [short, long] = ["1ms", "80ms"].map(wire);
    let replaced = [UPWARD[0], UPWARD[1], ("start = \"3s\"", "start = \"3.003s\""), MOVES, (&*short, &*long)];
    let outcome = run(&replaced, &[]);
    let report = crate::report::text(&outcome);
    let cost = costs(&outcome)[0];
    assert_eq!(cost.lost(), 1, "{report}");
    let outage = cost.experience.outage().unwrap_or_else(|| panic!("{report}"));
    assert!((6_100..6_110).contains(&(outage.to.0 / 1_000_000)), "{report}");
    assert_no_longer_than_stalls(&outcome);
}
