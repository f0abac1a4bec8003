//! Tests of the parts of an outage in which datagrams were lost: an event of the scenario that lost them has a name.

use super::hole_tests::{SOURCE, run};
use super::parts_tests::{UPWARD, parts_of};
use crate::run::Outcome;
use trace::{Record, What};
use wire::Instant;

const MOVE: (&str, &str) = ("moves = []", r#"moves = [{ at = "6s", to = "b" }]"#);
const SPARSE: &str = r#"{ kind = "apps/constant-rate", to = "mobile:7000", rate = 2, size = 200, start = "3.3s", stop = "12s" }"#;

/// The path is ready at 6.01 s, but an event loses the datagrams until 8 s: on the wire to the home agent, at the home agent, on
/// the wire to the new agent, at a router; and on two wires the datagrams that the mobile node sends.
#[test]
fn an_event_that_lost_datagrams_after_a_move_has_a_name() {
    let none: &[(&str, &str)] = &[];
    let rows = [
        (none, ("wire = \"far\"", "5.9s"), ("cut of wire far", "restore of wire far")),
        (none, ("host = \"home\"", "5.9s"), ("crash of home", "last_loss")),
        (none, ("wire = \"to-b\"", "6.01s"), ("cut of wire to-b", "restore of wire to-b")),
        (none, ("host = \"core\"", "6.01s"), ("crash of core", "restart of core")),
        (&UPWARD, ("wire = \"to-b\"", "5.9s"), ("cut of wire to-b", "restore of wire to-b")),
        (&UPWARD, ("wire = \"inet\"", "6.01s"), ("cut of wire inet", "restore of wire inet")),
    ];
    for (flow, (place, from), (begins, ends)) in rows {
        let outcome = run(&[flow, &[MOVE]].concat(), &[(place, from, "8s")]);
        let report = crate::report::text(&outcome);
        let parts = parts_of(&outcome, 0);
        let event = parts.iter().filter(|part| (part.1, part.2) == (begins, ends)).map(|part| part.3);
        assert!(event.sum::<u64>() > 1_940, "{place}: {report}");
        // The last stages before the event, and the transit of a datagram after it.
        let rest = parts.iter().filter(|part| part.1 != begins).map(|part| part.3);
        assert!(rest.sum::<u64>() < 150, "{place}: {report}");
    }
}

/// The cell is cut until the mobile node has lost its agent.
#[test]
fn a_cut_cell_has_a_name_until_the_next_handoff() {
    let outcome = run(&[MOVE], &[("cell = 3", "6.01s", "8s")]);
    let parts = parts_of(&outcome, 0);
    let is_cut = |part: &&(_, &str, _, u64)| part.1 == "cut of cell 3" && (980..=1_000).contains(&part.3);
    assert_eq!(parts.iter().filter(is_cut).count(), 1, "{}", crate::report::text(&outcome));
}

/// A source sends each 500 ms. It had nothing to send until a wire was cut at 6.25 s, and from the end of the cut at 8.2 s until 8.3 s.
#[test]
fn a_pause_of_the_source_before_and_after_an_event_belongs_to_the_source() {
    let outcome = run(&[MOVE, (SOURCE, SPARSE)], &[("wire = \"to-b\"", "6.25s", "8.2s")]);
    let expected = [
        ("link", "tune", "up", 5),
        ("detection", "link_up", "agent_heard", 0),
        ("registration", "request_sent", "care_of_learnt", 4),
        ("traffic", "care_of_learnt", "cut of wire to-b", 239),
        ("link", "cut of wire to-b", "restore of wire to-b", 1_950),
        ("traffic", "restore of wire to-b", "app_sent", 100),
        ("first byte", "app_sent", "app_received", 45),
    ];
    assert_eq!(parts_of(&outcome, 0), expected, "{}", crate::report::text(&outcome));
}

/// A wire is cut until 13 s. The mobile node leaves it at 8 s.
#[test]
fn an_event_that_outlasts_the_stay_has_not_ended() {
    let moves = r#"moves = [{ at = "6s", to = "b" }, { at = "8s", to = "home" }]"#;
    let outcome = run(&[("moves = []", moves)], &[("wire = \"to-b\"", "6.01s", "13s")]);
    let parts = parts_of(&outcome, 0);
    let report = crate::report::text(&outcome);
    assert_eq!(parts.get(3), Some(&("link", "cut of wire to-b", "not_ended", 1_989)), "{report}");
    assert_eq!(parts.get(4), Some(&("link", "tune", "up", 5)), "{report}");
}

/// Asserts that in the outage after the move, the source and the transit have only the time of a few datagrams.
#[track_caller]
fn assert_no_traffic(outcome: &Outcome) {
    let parts = parts_of(outcome, 0);
    let idle = parts.iter().filter(|part| ["traffic", "first byte"].contains(&part.0)).map(|part| part.3);
    assert!(idle.sum::<u64>() < 110, "{}", crate::report::text(outcome));
}

/// Datagrams wait at a cut wire for a neighbor, and are recorded as lost after those that a shorter event lost, or they are lost because
/// their host crashes.
#[test]
fn of_two_events_the_earlier_one_has_its_time() {
    let rows = [
        [("wire = \"to-b\"", "6.01s", "8s"), ("wire = \"inet\"", "7.5s", "7.6s")],
        [("wire = \"to-b\"", "6.01s", "8s"), ("host = \"core\"", "7.5s", "7.6s")],
        [("wire = \"to-b\"", "6.01s", "8s"), ("wire = \"to-b\"", "9s", "9.1s")],
    ];
    for events in rows {
        let outcome = run(&[MOVE], &events);
        assert_no_traffic(&outcome);
        let parts = parts_of(&outcome, 0);
        let named: u64 = parts.iter().filter(|part| part.1 == "cut of wire to-b").map(|part| part.3).sum();
        assert!((1_969..=1_990).contains(&named), "{}", crate::report::text(&outcome));
    }
    let crash = [("wire = \"to-b\"", "6.01s", "6.6s"), ("host = \"b\"", "6.3s", "6.4s")];
    assert_no_traffic(&run(&[&UPWARD[..], &[MOVE]].concat(), &crash));
}

/// A source sends each second. Between two cuts it had nothing to send.
#[test]
fn a_pause_of_the_source_between_two_events_belongs_to_the_source() {
    let each_second = SPARSE.replace("rate = 2", "rate = 1").replace("3.3s", "3.7s");
    let cuts = [("wire = \"inet\"", "6.65s", "6.9s"), ("wire = \"far\"", "7.6s", "7.9s")];
    let outcome = run(&[MOVE, (SOURCE, &*each_second)], &cuts);
    let expected = [
        ("traffic", "care_of_learnt", "cut of wire inet", 639),
        ("link", "cut of wire inet", "restore of wire inet", 250),
        ("traffic", "restore of wire inet", "cut of wire far", 700),
        ("link", "cut of wire far", "restore of wire far", 300),
        ("traffic", "restore of wire far", "app_sent", 800),
        ("first byte", "app_sent", "app_received", 83),
    ];
    assert_eq!(parts_of(&outcome, 0)[3..], expected, "{}", crate::report::text(&outcome));
}

/// A wire loses datagrams at random while another one is cut. The cut has its name for the whole time.
#[test]
fn random_losses_hide_no_event() {
    let inet = "ends = [\"cor\", \"core\"]\nrate = \"100Mb/s\"";
    let lossy = (inet, &*format!("{inet}\nloss = 0.05"));
    let outcome = run(&[MOVE, lossy], &[("wire = \"to-b\"", "6.01s", "8s")]);
    let parts = parts_of(&outcome, 0);
    let named: u64 = parts.iter().filter(|part| part.1 == "cut of wire to-b").map(|part| part.3).sum();
    assert!(named > 1_980, "{}", crate::report::text(&outcome));
    let during = Instant::from_millis(6_100)..Instant::from_millis(7_900);
    let random = |record: &&Record| {
        during.contains(&record.at) && matches!(&record.what, What::Lost(_, _, why) if why == "link_error")
    };
    assert!(outcome.records.iter().filter(random).count() > 1);
}
