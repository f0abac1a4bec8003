//! Tests of faults that overlap a handoff without being its cause, and of faults that last until the run ends.

use super::due_tests::asks;
use super::hole_tests::{SOURCE, of, run};
use super::{Experience, Owner};
use node::Stage;
use wire::{Duration, Instant};

const MOVES: (&str, &str) = ("moves = []", r#"moves = [{ at = "6s", to = "b" }]"#);
const SINK: &str = r#"{ kind = "apps/sink", at = "mobile:7000" }"#;
const HOST: &str = "[host.core]";

/// Returns an event without an end, before the first host.
fn event(at: &str, kind: &str, place: &str) -> String {
    format!("[[event]]\nat = \"{at}\"\nkind = \"{kind}\"\n{place}\n{HOST}")
}

/// Returns the parts of an outage as text: cause, first event and milliseconds.
fn parts(experience: &Experience) -> Vec<(&'static str, String, u64)> {
    let outage = experience.outage().unwrap_or_else(|| panic!("{experience:?}"));
    let part = |owner: &'_ Owner| (owner.name(), owner.begins.clone(), owner.span().as_millis() as u64);
    outage.owners.iter().map(part).collect()
}

/// A router or the server is stopped until the run ends. The questions wait, and none is lost.
#[test]
fn a_stop_that_lasts_until_the_end_is_a_hole_of_a_stream() {
    for host in ["core", "cor"] {
        let stop = event("8s", "stop", &format!("host = \"{host}\""));
        let outcome = asks(r#"every = "200ms", answer = 3000"#, &[(HOST, &*stop)], &[]);
        let report = crate::report::text(&outcome);
        assert_eq!(outcome.holes.len(), 2, "questions and answers: {report}");
        for hole in &outcome.holes {
            assert!(matches!(hole.experience, Experience::Never { .. }), "{host}: {report}");
            assert_eq!(hole.lost, 0, "{report}");
        }
        assert!(!outcome.failures.is_empty(), "{host}: {report}");
    }
}

/// An agent is stopped when the mobile node loses its link, and a handoff follows. No part of an outage is empty.
#[test]
fn no_part_of_an_outage_is_empty() {
    let moves =
        r#"moves = [{ at = "6.5s", to = "b" }, { at = "6.9s", to = "a" }, { at = "7.3s", to = "b" }]"#;
    let faults = [("cell = 2", "6.1s", "6.3s"), ("stop host = \"a\"", "7s", "7.6s")];
    let outcome = asks(r#"every = "100ms", answer = 3000"#, &[("moves = []", moves)], &faults);
    let costs = outcome.handoffs.iter().flat_map(|handoff| &handoff.flows).map(|cost| &cost.experience);
    let all = costs.chain(outcome.holes.iter().map(|hole| &hole.experience));
    let mut owners = all.filter_map(Experience::outage).flat_map(|outage| &outage.owners);
    assert!(owners.all(|owner| owner.to > owner.from), "{}", crate::report::text(&outcome));
}

/// The other end of a flow moves during an outage, and its radio needs no time to tune.
#[test]
fn a_move_that_takes_no_time_is_no_part_of_an_outage() {
    let other = r#"[host.other]
address = "10.1.0.8"
role = [
    { kind = "mobile-ip/mobile-node" },
    { kind = "apps/roam", start = "b", moves = [{ at = "6.1s", to = "a" }, { at = "6.2s", to = "b" }] },
    { kind = "apps/request-server", at = "other:8000" },
]
[host.core]"#;
    let further = [
        ("to = \"cor:8000\"", "to = \"other:8000\""),
        MOVES,
        (HOST, other),
        ("retune = \"5ms\"", "retune = \"0s\""),
    ];
    let outcome = asks(r#"every = "100ms", answer = 3000"#, &further, &[]);
    let report = crate::report::text(&outcome);
    let costs = outcome.handoffs.iter().flat_map(|handoff| &handoff.flows).map(|cost| &cost.experience);
    let mut owners = costs.filter_map(Experience::outage).flat_map(|outage| &outage.owners);
    assert!(owners.all(|owner| owner.to > owner.from), "{report}");
    let names: Vec<_> =
        parts(&outcome.handoffs[0].flows[0].experience).into_iter().map(|(name, ..)| name).collect();
    assert_eq!(names, ["detection", "registration", "recovery", "first byte"], "{report}");
}

/// The home agent crashes after a handoff, and later the mobile node loses its link again. It had heard its agent before.
#[test]
fn a_later_loss_of_the_link_is_no_detection() {
    let faults = [("host = \"home\"", "6.2s", "7.6s"), ("cell = 3", "7.8s", "8s")];
    let buffer = ("smooth_handoff = true", "smooth_handoff = true\nbuffer = { packets = 8 }");
    let outcome = asks(r#"every = "200ms", answer = 3000"#, &[MOVES, buffer], &faults);
    let report = crate::report::text(&outcome);
    let answers = &outcome.handoffs[0].flows[0].experience;
    assert!(of(answers, Stage::Detection) < Duration::from_millis(1), "{report}");
    let crash = parts(answers).into_iter().find(|(_, begins, _)| begins == "crash of home");
    assert_eq!(crash, Some(("link", "crash of home".to_owned(), 1_400)), "{report}");
}

/// A mobile node loses its link before its registration, whose request was lost. It has to begin again.
#[test]
fn a_link_that_is_lost_in_a_registration_divides_it() {
    let faults = [("wire = \"far\"", "5.9s", "6.05s"), ("cell = 3", "6.1s", "7s")];
    let outcome = run(&[("smooth_handoff = true", ""), MOVES], &faults);
    let report = crate::report::text(&outcome);
    let experience = &outcome.handoffs[0].flows[0].experience;
    assert!(of(experience, Stage::Detection) < Duration::from_millis(10), "{report}");
    let parts = parts(experience);
    assert!(parts.contains(&("link", "down".to_owned(), 905)), "{report}");
    assert!(of(experience, Stage::Registration) < Duration::from_millis(100), "{report}");
}

/// The previous agent is far away. It learns the new path from the new agent, and then forwards. The home agent, which is
/// stopped, down or behind a cut wire, has no part in that.
/// The host is back in the network of its registration before it may register with the other one.
#[test]
fn a_registration_that_is_not_needed_any_more_ends_with_the_link() {
    let moves = r#"moves = [{ at = "6s", to = "b" }, { at = "6.255s", to = "a" }, { at = "6.355s", to = "b" }], handoffs = false"#;
    let outcome = run(&[("moves = []", moves)], &[]);
    let report = crate::report::text(&outcome);
    let outage = outcome.handoffs.iter().find(|handoff| handoff.to == "a").expect(&report);
    let experience = &outage.flows[0].experience;
    assert!(experience.outage().is_some_and(|outage| outage.unexplained().is_zero()), "{report}");
    assert!(of(experience, Stage::Registration) > Duration::from_millis(80), "{report}");
}

#[test]
fn a_fault_at_the_home_agent_does_not_own_the_notification_of_a_previous_agent() {
    let caches = format!("{{ kind = \"mobile-ip/correspondent\" }}, {SOURCE}");
    let wire = "ends = [\"core\", \"a\"]\nrate = \"100Mb/s\"\ndelay = \"1ms\"";
    let long = wire.replace("1ms", "300ms");
    let replaced = [(SOURCE, &*caches), (wire, &*long), ("delay = \"20ms\"", "delay = \"400ms\""), MOVES];
    let plain = run(&replaced, &[]);
    let parts_of = |outcome: &crate::run::Outcome| parts(&outcome.handoffs[0].flows[0].experience);
    for fault in ["stop host = \"home\"", "host = \"home\"", "wire = \"far\""] {
        let outcome = run(&replaced, &[(fault, "5.95s", "8s")]);
        assert_eq!(parts_of(&outcome), parts_of(&plain), "{}", crate::report::text(&outcome));
    }
    assert!(of(&plain.handoffs[0].flows[0].experience, Stage::Registration) > Duration::from_millis(290));
}

/// The home agent is stopped until the run ends. The mobile node repeats its request, so the previous agent learns the new
/// path several times.
#[test]
fn the_latency_is_that_of_the_first_notification() {
    let caches = format!("{{ kind = \"mobile-ip/correspondent\" }}, {SOURCE}");
    let stop = event("5.9s", "stop", "host = \"home\"");
    let outcome = run(&[(SOURCE, &caches), (HOST, &stop), MOVES], &[]);
    let latency = outcome.handoffs[0].latency.unwrap_or_else(|| panic!("{outcome:?}"));
    assert!(latency < Duration::from_millis(30), "{latency:?}");
}

/// A question is lost while the radio tunes. The next handoff begins before the question is sent again.
#[test]
fn a_lost_question_is_no_wait_for_the_source() {
    let moves = r#"moves = [{ at = "6.9s", to = "b" }, { at = "7.5s", to = "a" }]"#;
    let retune = ("retune = \"5ms\"", "retune = \"400ms\"");
    let outcome = asks(r#"every = "4s""#, &[("moves = []", moves), retune], &[]);
    let report = crate::report::text(&outcome);
    assert_eq!(outcome.handoffs.len(), 2, "{report}");
    for handoff in &outcome.handoffs {
        let experience = &handoff.flows[0].experience;
        assert!(of(experience, Stage::Traffic) <= Duration::from_millis(100), "{report}");
        assert!(of(experience, Stage::Recovery) > Duration::from_millis(50), "{report}");
    }
}

/// A download. The new agent, a router or the mobile node is stopped for 1 s after a handoff. The recovery ends when the sender
/// retransmits, which is before the stop ends.
#[test]
fn a_part_that_is_shorter_than_its_fault_does_not_end_with_it() {
    let download = [
        (SOURCE, r#"{ kind = "apps/bulk-server", at = "cor:9000", bytes = 1500000 }"#),
        (SINK, r#"{ kind = "apps/bulk-client", to = "cor:9000", start = "3s" }"#),
        MOVES,
    ];
    for host in ["b", "core", "mobile"] {
        let outcome = run(&download, &[(&format!("stop host = \"{host}\""), "6.02s", "7.02s")]);
        let report = crate::report::text(&outcome);
        let outage = outcome.handoffs[0].outage().unwrap_or_else(|| panic!("{report}"));
        let stopped: Vec<_> = outage.owners.iter().filter(|owner| owner.begins.starts_with("stop")).collect();
        let ends = stopped.iter().map(|owner| (owner.ends.starts_with("continue"), owner.to));
        let is_end = |(is_named, to)| is_named == (to == Instant::from_millis(7_020));
        assert!(stopped.len() > 1 && ends.into_iter().all(is_end), "{report}");
    }
}

/// Both ends of a flow move at the same time. The new agent of one of them is stopped, and the other end waits for it.
#[test]
fn a_fault_that_delays_the_detection_of_the_other_end_owns_the_wait_for_it() {
    let other = r#"[host.other]
address = "10.1.0.8"
role = [
    { kind = "mobile-ip/mobile-node" },
    { kind = "apps/roam", start = "b", moves = [{ at = "6s", to = "a" }] },
    { kind = "apps/request-server", at = "other:8000" },
]
[host.core]"#;
    let stop = [("stop host = \"a\"", "5.9s", "6.7s")];
    let further = [("to = \"cor:8000\"", "to = \"other:8000\""), MOVES, (HOST, other)];
    let outcome = asks(r#"every = "100ms", answer = 3000"#, &further, &stop);
    let report = crate::report::text(&outcome);
    assert_eq!(outcome.handoffs.len(), 2, "{report}");
    for handoff in &outcome.handoffs {
        for cost in handoff.flows.iter().filter(|cost| cost.experience != Experience::None) {
            let stopped = parts(&cost.experience).into_iter().filter(|(_, begins, _)| begins == "stop of a");
            let stopped: u64 = stopped.map(|(.., ms)| ms).sum();
            assert!((660..=700).contains(&stopped), "{report}");
        }
    }
}
