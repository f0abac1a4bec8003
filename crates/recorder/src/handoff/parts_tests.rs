//! Tests of the parts of outages: each part has the events at which it begins and ends, and the cause of that time.

use super::due_tests::asks;
use super::hole_tests::{SOURCE, only_hole, run};
use super::{Experience, Owner};
use crate::run::{Outcome, simulate};
use scenario::Scenario;
use wire::{Duration, Instant};

pub(super) const SIGMA: &str = include_str!("../../../../scenarios/sigma/handoff.toml");
const SINK: &str = r#"{ kind = "apps/sink", at = "mobile:7000" }"#;
/// The mobile node sends a datagram each 20 ms to the correspondent.
pub(super) const UPWARD: [(&str, &str); 2] = [
    (SOURCE, r#"{ kind = "apps/sink", at = "cor:7000" }"#),
    (
        SINK,
        r#"{ kind = "apps/constant-rate", to = "cor:7000", rate = 50, size = 200, start = "3s", stop = "12s" }"#,
    ),
];
const START: &str = "start = \"a\", moves = []";
const HOST: &str = "[host.core]";

/// Returns the parts of an outage: cause, first event, last event and milliseconds.
fn parts(experience: &Experience) -> Vec<(&'static str, &str, &str, u64)> {
    let outage = experience.outage().unwrap_or_else(|| panic!("{experience:?}"));
    let part = |owner: &'_ Owner| owner.span().as_millis() as u64;
    outage.owners.iter().map(|one| (one.name(), &*one.begins, &*one.ends, part(one))).collect()
}

/// Returns the parts of the outage of the first flow of this handoff.
pub(super) fn parts_of(outcome: &Outcome, handoff: usize) -> Vec<(&'static str, &str, &str, u64)> {
    parts(&outcome.handoffs[handoff].flows[0].experience)
}

/// Runs [`SIGMA`] with longer wires to the gateways, and with these events: kind, place and time.
fn sigma(events: &[(&str, &str, &str)]) -> Outcome {
    let events: Vec<_> = events
        .iter()
        .map(|(kind, place, at)| format!("[[event]]\nat = \"{at}\"\nkind = \"{kind}\"\n{place}\n"))
        .collect();
    let mut text = format!("{SIGMA}{}", events.concat());
    for wire in ["gateway1", "gateway2"] {
        let ends = format!("ends = [\"campus\", \"{wire}\"]\nrate = \"100Mb/s\"\ndelay = ");
        text = text.replace(&format!("{ends}\"0.5ms\""), &format!("{ends}\"20ms\""));
    }
    simulate(Scenario::plan("sigma.toml", &text, &[], 1).unwrap()).unwrap()
}

/// Runs a mobile node with an acquired address, from home on.
fn acquires(moves: &str, stop: &[(&str, &str, &str)]) -> Outcome {
    let agent = |cell: u8| {
        let pool = format!("first = \"10.{cell}.0.100\", last = \"10.{cell}.0.199\", probe_wait = \"50ms\"");
        format!("role = [{{ kind = \"dhcp/server\", {pool} }}]")
    };
    let agents =
        ["a", "b"].map(|host| format!("[host.{host}]\nrole = [{{ kind = \"mobile-ip/foreign-agent\" }}]"));
    let servers = [format!("[host.a]\n{}", agent(2)), format!("[host.b]\n{}", agent(3))];
    let node = r#"{ kind = "mobile-ip/mobile-node" },"#;
    let own = r#"{ kind = "mobile-ip/mobile-node", care_of = "acquired" }, { kind = "dhcp/client", probe_wait = "50ms" },"#;
    let course = format!("start = \"home\", moves = [{moves}]");
    let replaced = [
        ("smooth_handoff = true", ""),
        (&*agents[0], &*servers[0]),
        (&*agents[1], &*servers[1]),
        (node, own),
        (START, &*course),
    ];
    run(&replaced, stop)
}

/// The mobile node moves from home to `b`, to `a` and back to `b`, where it waits for the rate of its registrations until a cut
/// of the cell. The binding of `a` reaches the home agent after it has left `a`.
#[test]
fn a_registration_that_waits_lasts_until_the_link_is_lost() {
    let moves = [("5.016s", "b"), ("5.931s", "a"), ("6.051s", "b"), ("6.551s", "a")];
    let moves = moves.map(|(at, to)| format!("{{ at = \"{at}\", to = \"{to}\" }}")).join(", ");
    let course = format!("start = \"home\", moves = [{moves}]");
    let wire = |agent: &str, delay: &str| {
        format!("ends = [\"core\", \"{agent}\"]\nrate = \"100Mb/s\"\ndelay = \"{delay}\"")
    };
    let wires = ["home", "a", "b"].map(|agent| {
        let is_home = agent == "home";
        let [old, new] = if is_home { ["20ms", "1ms"] } else { ["1ms", "30ms"] };
        [wire(agent, old), wire(agent, new)]
    });
    let mut replaced: Vec<(&str, &str)> = vec![(START, &course)];
    replaced.extend(wires.iter().map(|[old, new]| (&**old, &**new)));
    let outcome = run(&replaced, &[("cell = 3", "6.4307s", "6.5307s")]);
    let report = crate::report::text(&outcome);
    assert_eq!(outcome.doubts, [], "{report}");
    let waits = parts_of(&outcome, 2)[2];
    assert_eq!(waits, ("registration", "registration_waits", "down", 374), "{report}");
}

/// The old cell of a download over SCTP is cut, and the new gateway is stopped. The switch waits for the gateway alone.
#[test]
fn a_cut_of_the_old_path_does_not_own_the_switch_to_another_path() {
    let cut = ("cut", "cell = 1", "4.6s");
    let outcome = sigma(&[cut]);
    let report = crate::report::text(&outcome);
    let plain = parts_of(&outcome, 0);
    assert!(plain.iter().all(|(name, ..)| *name != "link"), "{report}");
    assert_eq!((plain[0].0, plain[0].2), ("path switch", "first_data"), "{report}");
    let stop = [("stop", "host = \"gateway2\"", "4.603s"), ("continue", "host = \"gateway2\"", "5.6s")];
    let outcome = sigma(&[cut, stop[0], stop[1]]);
    let report = crate::report::text(&outcome);
    let both = parts_of(&outcome, 0);
    let names: Vec<_> = both.iter().take(3).map(|(name, begins, ..)| (*name, *begins)).collect();
    let switch = |begins| ("path switch", begins);
    let stop = ("link", "stop of gateway2");
    assert_eq!(names, [switch("handoff"), stop, switch("continue of gateway2")], "{report}");
    assert_eq!(both[1].3, 997, "{report}");
}

/// The wire to the old gateway is cut before a handoff. The sender has the new path, and waits for the time-out of what the cut
/// lost. Each part ends with an event of its time.
#[test]
fn a_wait_of_a_sender_that_has_switched_begins_with_its_switch() {
    let outcome = sigma(&[("cut", "wire = \"left\"", "5.38s")]);
    let report = crate::report::text(&outcome);
    let all = parts_of(&outcome, 0);
    let expected = [
        ("path switch", "handoff", "switched", 20),
        ("link", "cut of wire left", "segment_sent", 54),
        ("path switch", "segment_sent", "first_data", 25),
    ];
    assert_eq!(all[..3], expected, "{report}");
}

/// The server is stopped during two moves, and the questions wait for it. They are sent again before the second move.
#[test]
fn a_wait_for_a_question_that_a_fault_holds_belongs_to_the_fault() {
    let moves = r#"moves = [{ at = "6.2s", to = "b" }, { at = "6.9s", to = "a" }]"#;
    let stop = [("stop host = \"cor\"", "6.05s", "7.5s")];
    let outcome = asks(r#"every = "100ms""#, &[("moves = []", moves)], &stop);
    let report = crate::report::text(&outcome);
    let answers = outcome.handoffs[0].flows.iter().find(|cost| cost.experience.outage().is_some()).unwrap();
    let parts = parts(&answers.experience);
    let stopped = parts.iter().filter(|(_, begins, ..)| *begins == "stop of cor");
    assert!(stopped.map(|(.., ms)| ms).sum::<u64>() > 1_100, "{report}");
    assert!(parts.iter().all(|(name, .., ms)| *name != "recovery" || *ms < 10), "{report}");
}

/// The radio tunes when the mobile node gets the address of the network that it leaves. Then it acquires another one.
#[test]
fn an_address_of_the_earlier_network_is_no_part_of_a_handoff() {
    let outcome = acquires(r#"{ at = "6s", to = "a" }, { at = "6.1s", to = "b" }"#, &[]);
    let first = &outcome.handoffs[0].flows[0].experience;
    let report = crate::report::text(&outcome);
    let acquired = parts(first).iter().rposition(|(.., ends, _)| *ends == "address_ready");
    assert!(acquired.is_some(), "{report}");
    for at in ["6.105s", "6.106s", "6.107s", "6.108s"] {
        let moves = format!("{{ at = \"6s\", to = \"a\" }}, {{ at = \"{at}\", to = \"b\" }}");
        let outcome = acquires(&moves, &[]);
        let report = crate::report::text(&outcome);
        let all = parts_of(&outcome, 1);
        assert_eq!(all[0], ("link", "tune", "up", 5), "{at}: {report}");
        let find = |name: &str| all.iter().filter(|(one, ..)| *one == name).map(|(.., ms)| *ms).sum::<u64>();
        assert!((100..112).contains(&find("address")), "{at}: {report}");
        assert!(find("registration") < 30, "{at}: {report}");
    }
}

/// The mobile node is stopped while its radio comes up, and it moves at the instant at which it continues. So it comes up and
/// begins to acquire an address at the instant of the cut.
#[test]
fn an_address_that_is_begun_at_the_cut_is_of_the_earlier_network() {
    let moves = r#"{ at = "6s", to = "a" }, { at = "6.1s", to = "b" }"#;
    let outcome = acquires(moves, &[("stop host = \"mobile\"", "6.002s", "6.6s")]);
    let report = crate::report::text(&outcome);
    assert_eq!(outcome.handoffs.len(), 2, "{report}");
    let all = parts_of(&outcome, 1);
    assert_eq!(all[0], ("link", "tune", "up", 5), "{report}");
    assert!(
        all.iter().any(|(name, begins, ..)| (*name, *begins) == ("address", "address_begun")),
        "{report}"
    );
}

/// The mobile node keeps its agent as long as it can. It loses its link, and then this agent expires: its request to another
/// one is lost. It hears the agent of its place when it has its link again. No part begins before its event.
#[test]
fn a_registration_after_a_loss_of_the_link_begins_with_its_request() {
    let node = r#"{ kind = "mobile-ip/mobile-node" },"#;
    let late = r#"{ kind = "mobile-ip/mobile-node", link_trigger = false },"#;
    let moves = [("3.951s", "home"), ("6.447s", "a"), ("8.174s", "b")];
    let moves = moves.map(|(at, to)| format!("{{ at = \"{at}\", to = \"{to}\" }}")).join(", ");
    let course = format!("start = \"b\", moves = [{moves}]");
    let replaced = [(node, late), (START, &*course), ("smooth_handoff = true", "")];
    let outcome = run(&replaced, &[("cell = 3", "8.1853s", "10.6853s")]);
    let report = crate::report::text(&outcome);
    let all = parts_of(&outcome, 2);
    assert!(all.contains(&("link", "down", "up", 2_505)), "{report}");
    let registers: Vec<_> = all.iter().filter(|(name, ..)| *name == "registration").collect();
    assert!(registers.iter().all(|(_, begins, ..)| *begins == "request_sent"), "{report}");
    assert!(!registers.is_empty(), "{report}");
}

/// A download over SCTP. A router is stopped until the run ends, before a handoff of the old path that the sender does not learn.
#[test]
fn an_association_that_waits_until_the_end_never_receives_new_data() {
    for (kind, at) in [("stop", "5.1s"), ("stop", "3.5s")] {
        let outcome = sigma(&[(kind, "host = \"campus\"", at)]);
        let report = crate::report::text(&outcome);
        let experiences = outcome.holes.iter().map(|hole| &hole.experience);
        let costs = outcome.handoffs.iter().flat_map(|handoff| &handoff.flows).map(|cost| &cost.experience);
        let never = experiences.chain(costs).filter(|one| matches!(one, Experience::Never { .. })).count();
        assert_eq!(never, 1, "{at}: {report}");
        assert!(!outcome.failures.is_empty(), "{at}: {report}");
    }
}

/// An agent is stopped until the run ends, and the mobile node moves away from it.
#[test]
fn a_stop_until_the_end_is_a_hole_until_the_host_moves_away() {
    let stop = format!("[[event]]\nat = \"6s\"\nkind = \"stop\"\nhost = \"a\"\n{HOST}");
    let moves = r#"moves = [{ at = "6.8s", to = "b" }]"#;
    for smooth in ["", "smooth_handoff = true"] {
        let replaced = [(HOST, &*stop), ("moves = []", moves), ("smooth_handoff = true", smooth)];
        let outcome = run(&replaced, &[]);
        let report = crate::report::text(&outcome);
        let hole = only_hole(&outcome);
        assert_eq!(hole.experience.outage().map(|outage| outage.to), Some(Instant::from_millis(6_800)));
        assert_eq!(parts(&hole.experience), [("link", "stop of a", "not_ended", 800)], "{report}");
    }
}

/// The radio of the mobile node loses its cell for good, so its agent expires and it asks another one. Then it moves.
#[test]
fn the_parts_of_an_outage_are_its_sum_after_a_late_decision() {
    let course = r#"start = "b", moves = [{ at = "5.3s", to = "a" }, { at = "8.9s", to = "b" }]"#;
    let cut = format!("[[event]]\nat = \"6s\"\nkind = \"cut\"\ncell = 2\nhost = \"mobile\"\n{HOST}");
    let node = r#"{ kind = "mobile-ip/mobile-node" },"#;
    let late = r#"{ kind = "mobile-ip/mobile-node", simultaneous_bindings = true },"#;
    let outcome = run(&[(START, course), (HOST, &*cut), (node, late)], &[]);
    let report = crate::report::text(&outcome);
    assert!(outcome.handoffs.iter().any(|handoff| handoff.kind == "agent"), "{report}");
    assert!(outcome.handoffs.is_sorted_by_key(|handoff| handoff.begun), "{report}");
    for outage in outcome.handoffs.iter().filter_map(super::Handoff::outage) {
        assert_eq!(outage.owners.iter().map(Owner::span).sum::<Duration>(), outage.span(), "{report}");
    }
}

/// A cell is cut after a move, and its agent expires before the cell is back. The next packet is sent before the radio has its
/// link again.
#[test]
fn a_packet_that_is_sent_before_the_link_is_up_waits_for_it() {
    let moves = r#"moves = [{ at = "6s", to = "b" }]"#;
    let far = ("delay = \"20ms\"", "delay = \"40ms\"");
    let outcome = run(&[("moves = []", moves), far], &[("cell = 3", "6.055s", "7.308s")]);
    let report = crate::report::text(&outcome);
    let agent = outcome.handoffs.iter().position(|handoff| handoff.kind == "agent").expect(&report);
    let expected = [("link", "down", "up", 258), ("first byte", "up", "app_received", 10)];
    assert_eq!(parts_of(&outcome, agent), expected, "{report}");
}

/// An agent is stopped until the run ends, and the mobile node moves away from it. The datagrams, or the questions, that the
/// mobile node had sent to the agent wait at the end of the run. No datagram is lost.
#[test]
fn packets_that_wait_for_an_agent_that_the_host_has_left_are_a_hole() {
    let stop = format!("[[event]]\nat = \"6s\"\nkind = \"stop\"\nhost = \"a\"\n{HOST}");
    let moves = [(HOST, &*stop), ("moves = []", r#"moves = [{ at = "6.805s", to = "b" }]"#)];
    let datagrams = run(&[moves, UPWARD].concat(), &[]);
    let stream = asks(r#"every = "100ms", answer = 3000"#, &moves, &[]);
    assert_eq!(datagrams.flows[0].lost, 0, "{}", crate::report::text(&datagrams));
    for (outcome, holes) in [(datagrams, 1), (stream, 2)] {
        let report = crate::report::text(&outcome);
        assert_eq!(outcome.holes.len(), holes, "{report}");
        for hole in &outcome.holes {
            let end = hole.experience.outage().map(|outage| outage.to);
            assert_eq!(end, Some(Instant::from_millis(6_805)), "{report}");
            assert_eq!(parts(&hole.experience), [("link", "stop of a", "not_ended", 805)], "{report}");
        }
    }
}
