//! Tests of packets that wait for stopped hosts, and of several faults in one outage.

use super::due_tests::asks;
use super::hole_tests::{SOURCE, of, only_hole, run};
use super::{Experience, Owner};
use crate::run::{Outcome, simulate};
use node::Stage;
use scenario::Scenario;
use wire::{Duration, Instant};

const SINK: &str = r#"{ kind = "apps/sink", at = "mobile:7000" }"#;
const SMOOTH: (&str, &str) = ("smooth_handoff = true", "");

fn moves(at: &str) -> String {
    format!("moves = [{{ at = \"{at}\", to = \"b\" }}]")
}

/// Returns the parts of an outage with at least 10 ms: cause, first event and milliseconds.
fn parts(experience: &Experience) -> Vec<(&'static str, &str, u64)> {
    let owners = experience.outage().map_or(&[][..], |outage| &outage.owners);
    let part = |owner: &'_ Owner| (owner.span().as_millis() as u64) >= 10;
    let all = owners.iter().filter(|owner| part(owner));
    all.map(|owner| (owner.name(), owner.begins.as_str(), owner.span().as_millis() as u64)).collect()
}

/// Asserts that each lost packet counts in one row, and that no outage is longer than the longest stall of its flow.
#[track_caller]
fn assert_complete(outcome: &Outcome) {
    let report = crate::report::text(outcome);
    let lost: u64 = outcome.flows.iter().map(|flow| flow.lost).sum();
    let of_holes: u64 = outcome.holes.iter().map(|hole| hole.lost).sum();
    let of_handoffs: u64 = outcome.handoffs.iter().map(super::Handoff::lost).sum();
    assert_eq!(of_holes + of_handoffs, lost, "{report}");
    assert_eq!(crate::run::longer_than_stalls(outcome), Vec::<String>::new(), "{report}");
}

/// The earlier agent, or a router before it, is stopped at 6 s. The mobile node moves at 6.8 s, and the stopped host
/// continues at 7.6 s. The packets that were sent before the move waited, and would have arrived without the stop.
#[test]
fn a_wait_for_a_stopped_host_before_a_move_is_a_hole() {
    for (host, lost) in [("a", [40, 3]), ("core", [42, 41])] {
        let stop = [(&*format!("stop host = \"{host}\""), "6s", "7.6s")];
        let outcome = run(&[SMOOTH, ("moves = []", &moves("6.8s"))], &stop);
        let hole = only_hole(&outcome);
        let outage = hole.experience.outage().unwrap();
        assert_eq!([hole.from, outage.to], [6_000, 6_800].map(Instant::from_millis), "{host}: {hole:?}");
        assert_eq!(parts(&hole.experience), [("link", &*format!("stop of {host}"), 800)]);
        assert_eq!([hole.lost, outcome.handoffs[0].lost()], lost, "{host}");
        assert_complete(&outcome);
    }
}

/// The same with a download. The packets that waited for the home agent arrive at the new place, and none is lost.
#[test]
fn packets_that_arrive_after_the_move_have_waited_too() {
    let replaced = [
        SMOOTH,
        (
            SOURCE,
            r#"{ kind = "apps/constant-rate", to = "mobile:7000", rate = 5, size = 200, start = "3s", stop = "12s" }"#,
        ),
        ("moves = []", &moves("6.85s")),
    ];
    let outcome = run(&replaced, &[("stop host = \"home\"", "6.1s", "7.6s")]);
    let hole = only_hole(&outcome);
    assert_eq!(hole.experience.outage().unwrap().to, Instant::from_millis(6_850), "{hole:?}");
    assert!(of(&hole.experience, Stage::Link) > Duration::from_millis(600), "{hole:?}");
    assert_complete(&outcome);
}

/// A router is stopped, and one of its wires is cut before it continues. Then an agent crashes before a wire is
/// restored. Two routers are stopped, one after the other. Each fault owns its time.
#[test]
fn two_faults_own_one_outage() {
    let (core, wire, agent) = ("stop host = \"core\"", "wire = \"to-a\"", "host = \"a\"");
    let cases = [
        [(core, "6s", "7.5s"), (wire, "6.8s", "8.5s")],
        [("wire = \"inet\"", "6s", "7.5s"), (agent, "6.8s", "8.5s")],
        [(core, "6s", "6.5s"), ("stop host = \"a\"", "6.4s", "7.4s")],
    ];
    let names = [
        ("stop of core", "cut of wire to-a"),
        ("cut of wire inet", "crash of a"),
        ("stop of core", "stop of a"),
    ];
    for (faults, (first, second)) in cases.into_iter().zip(names) {
        let outcome = run(&[], &faults);
        let hole = only_hole(&outcome);
        assert!((6_000..6_025).contains(&(hole.from.0 / 1_000_000)), "{hole:?}");
        let owners = &hole.experience.outage().unwrap().owners;
        let ends: Vec<_> =
            owners.iter().take(2).map(|owner| (owner.name(), &*owner.begins, owner.to)).collect();
        let at = |seconds: &str| seconds.trim_end_matches('s').parse::<f64>().unwrap() * 1e9;
        let ended = faults.map(|(.., until)| Instant(at(until) as u64));
        assert_eq!(ends, [("link", first, ended[0]), ("link", second, ended[1])]);
        assert_complete(&outcome);
    }
}

/// The home agent, or the agent of the new place, is stopped when the mobile node moves. The request waits for it.
#[test]
fn a_stopped_host_owns_the_time_of_a_registration_that_waits_for_it() {
    for host in ["home", "b"] {
        let stop = [(&*format!("stop host = \"{host}\""), "5.99s", "7s")];
        let outcome = run(&[SMOOTH, ("moves = []", &moves("6s"))], &stop);
        let report = crate::report::text(&outcome);
        let experience = &outcome.handoffs[0].flows[0].experience;
        assert!(of(experience, Stage::Link) >= Duration::from_millis(995), "{report}");
        assert!(of(experience, Stage::Registration) < Duration::from_millis(30), "{report}");
        assert!(report.contains(&format!("stop of {host} .. continue of {host}")), "{report}");
        assert_complete(&outcome);
    }
}

/// Hosts ask for the address of the next router while it is down or stopped, or its wire is cut. The packets that wait for
/// the answer, and those that are lost without it, belong to the fault.
#[test]
fn a_packet_that_waits_for_an_answer_to_arp_waits_for_the_fault() {
    let late = SOURCE.replace("\"3s\"", "\"6.1s\"");
    for (host, until) in
        [("stop host = \"core\"", "6.6s"), ("stop host = \"core\"", "7.5s"), ("host = \"core\"", "9s")]
    {
        let outcome = run(&[(SOURCE, &late)], &[(host, "5.9s", until)]);
        let report = crate::report::text(&outcome);
        let hole = only_hole(&outcome);
        assert_eq!(hole.from, Instant::from_millis(6_100), "{report}");
        let until = until.trim_end_matches('s').parse::<f64>().unwrap();
        let (_, begins, link) = parts(&hole.experience)[0];
        assert!(begins.ends_with(" of core") && link == ((until - 6.1) * 1e3).round() as u64, "{report}");
    }
    // The agent of the new place has to find the router, to forward the request.
    let faults = ["host = \"core\"", "stop host = \"core\"", "wire = \"to-b\""];
    for fault in faults {
        let outcome = run(&[SMOOTH, ("moves = []", &moves("6s"))], &[(fault, "5.99s", "7s")]);
        let report = crate::report::text(&outcome);
        let experience = &outcome.handoffs[0].flows[0].experience;
        assert!(of(experience, Stage::Link) >= Duration::from_millis(990), "{report}");
    }
}

/// The previous agent is stopped, and learns the new care-of address when it continues.
#[test]
fn a_stopped_previous_agent_owns_the_time_until_it_forwards() {
    let long = ("delay = \"20ms\"", "delay = \"600ms\"");
    let outcome = run(&[long, ("moves = []", &moves("6.046s"))], &[("stop host = \"a\"", "5.984s", "7s")]);
    let report = crate::report::text(&outcome);
    assert!(
        of(&outcome.handoffs[0].flows[0].experience, Stage::Link) > Duration::from_millis(900),
        "{report}"
    );
}

/// A download. The sender is stopped, and then for 10 ms while a retransmission is on its way.
#[test]
fn a_stop_of_the_sender_owns_the_time_in_which_acknowledgments_wait() {
    let download = [
        (SOURCE, r#"{ kind = "apps/bulk-server", at = "cor:9000", bytes = 1500000 }"#),
        (SINK, r#"{ kind = "apps/bulk-client", to = "cor:9000", start = "3s" }"#),
    ];
    let outcome = run(&download, &[("stop host = \"cor\"", "5s", "8s")]);
    let hole = only_hole(&outcome);
    assert!(of(&hole.experience, Stage::Link) > Duration::from_millis(2_500), "{hole:?}");
    let lossy = "[host.core]\n[[event]]\nat = \"3.5s\"\nkind = \"loss\"\ncell = 2\nloss = 0.05";
    let lossy = [download[0], download[1], ("[host.core]", lossy)];
    for host in ["a", "mobile", "cor"] {
        let outcome = run(&lossy, &[(&format!("stop host = \"{host}\""), "3.7s", "3.71s")]);
        let holes = outcome.holes.iter().filter(|hole| hole.from < Instant::from_millis(3_700));
        let owners: Vec<&str> =
            holes.flat_map(|hole| parts(&hole.experience)).map(|(name, ..)| name).collect();
        assert!(
            owners.contains(&"recovery") && !owners.contains(&"link"),
            "{host}: {}",
            crate::report::text(&outcome)
        );
    }
}

/// A path of 500 ms, and a stop of the receiver when nothing is due because a wire had been cut. The cut owns the hole.
#[test]
fn a_cut_that_is_over_owns_the_hole_behind_a_long_path() {
    let long = ("delay = \"20ms\"", "delay = \"300ms\"");
    let stop = ("stop host = \"mobile\"", "6.85s", "6.95s");
    let outcome = run(&[long], &[("wire = \"inet\"", "6s", "6.4s"), stop]);
    let hole = only_hole(&outcome);
    assert_eq!(parts(&hole.experience)[0], ("link", "cut of wire inet", 400), "{hole:?}");
    assert_eq!((hole.lost, outcome.flows[0].lost), (20, 20));
    // A second stop is over before the packets of the hole are sent, and one lasts longer than the hole.
    let stops = [("stop host = \"core\"", "6s", "7s"), ("stop host = \"home\"", "6.5s", "8.2s")];
    let outcome = run(&[], &stops);
    let owners: Vec<_> = outcome.holes.iter().map(|hole| parts(&hole.experience)[0].1).collect();
    assert_eq!(owners, ["stop of core", "stop of home"], "{}", crate::report::text(&outcome));
    assert!(parts(&outcome.holes[0].experience).len() == 1);
}

/// A server is stopped during a handoff. The answers wait for a question that waits for it.
#[test]
fn a_stopped_server_is_no_source_without_data() {
    let outcome = asks(
        r#"every = "2s""#,
        &[("moves = []", &moves("6.98s"))],
        &[("stop host = \"cor\"", "6.99s", "8.5s")],
    );
    let report = crate::report::text(&outcome);
    for cost in &outcome.handoffs[0].flows {
        assert!(of(&cost.experience, Stage::Link) > Duration::from_millis(1_400), "{report}");
    }
}

/// Answers over a path of 300 ms. A round trip after a time-out is no hole.
#[test]
fn a_round_trip_after_a_time_out_is_no_hole() {
    let lossy = "[host.core]\n[[event]]\nat = \"3.5s\"\nkind = \"loss\"\ncell = 2\nloss = 0.05";
    let long = ("delay = \"20ms\"", "delay = \"300ms\"");
    let outcome = asks(
        r#"every = "400ms", answer = 20000"#,
        &[("[host.core]", lossy), long],
        &[("wire = \"far\"", "6.87s", "7.27s")],
    );
    let report = crate::report::text(&outcome);
    assert!(outcome.holes.iter().all(|hole| hole.lost > 0), "{report}");
}

/// A path of 500 ms. The wire at the source is cut for one second, also shortly after a move.
#[test]
fn a_hole_counts_the_losses_of_a_long_path() {
    let long = ("delay = \"20ms\"", "delay = \"500ms\"");
    let outcome = run(&[long], &[("wire = \"inet\"", "6s", "7s")]);
    assert_eq!((only_hole(&outcome).lost, outcome.flows[0].lost), (50, 50));
    let twice = [("wire = \"inet\"", "6s", "6.3s"), ("wire = \"inet\"", "6.5s", "6.8s")];
    let outcome = run(&[long], &twice);
    assert_eq!(outcome.holes.iter().map(|hole| hole.lost).collect::<Vec<_>>(), [15, 15]);
    let late = ("delay = \"20ms\"", "delay = \"200ms\"");
    let outcome = run(&[SMOOTH, late, ("moves = []", &moves("6s"))], &[("wire = \"inet\"", "6.1s", "7.1s")]);
    assert_eq!(only_hole(&outcome).lost, 50, "{}", crate::report::text(&outcome));
    assert_complete(&outcome);
}

/// A connection is requested while a wire is cut, or while a router is stopped: its first segments are lost or wait.
#[test]
fn a_connection_that_opens_during_a_fault_has_a_hole() {
    for (fault, lost) in [("wire = \"inet\"", 3_000), ("stop host = \"core\"", 2_000)] {
        let outcome =
            asks(r#"every = "4s""#, &[("start = \"3s\"", "start = \"6s\"")], &[(fault, "5.9s", "8s")]);
        let report = crate::report::text(&outcome);
        let hole = outcome.holes.first().unwrap_or_else(|| panic!("{report}"));
        assert_eq!(hole.from, Instant::from_millis(6_000), "{report}");
        let outage = hole.experience.outage().unwrap().span().as_millis() as u64;
        assert!((lost..lost + 100).contains(&outage), "{report}");
        assert_eq!(of(&hole.experience, Stage::Link), Duration::from_secs(2), "{report}");
        // Then the sender waits until its first segment is sent again.
        assert!(parts(&hole.experience)[1..].iter().all(|(name, ..)| *name == "recovery"), "{report}");
        assert_complete(&outcome);
    }
}

/// A router is stopped, and the mobile node moves before it continues. The questions wait, so the source does not
/// pause.
#[test]
fn a_wait_for_an_acknowledgment_is_no_pause_of_the_source() {
    let outcome = asks(
        r#"every = "4s""#,
        &[("moves = []", &moves("7.5s"))],
        &[("stop host = \"core\"", "6.9s", "8.5s")],
    );
    let report = crate::report::text(&outcome);
    assert_eq!(outcome.holes.len(), 2, "{report}");
    let costs = outcome.handoffs[0].flows.iter().map(|cost| &cost.experience);
    let mut all = costs.chain(outcome.holes.iter().map(|hole| &hole.experience)).flat_map(parts);
    assert!(all.all(|(name, ..)| name != "traffic"), "{report}");
    assert_complete(&outcome);
}

/// A path of 500 ms, whose wire near the mobile node is cut. The home agent is stopped for 10 ms, when no packet reaches
/// it. The packets on the long wire do not wait for it.
#[test]
fn a_packet_on_its_way_does_not_wait_for_a_host() {
    let faults = [("wire = \"to-a\"", "6.9s", "7.9s"), ("stop host = \"home\"", "7.005s", "7.015s")];
    let outcome = run(&[("delay = \"20ms\"", "delay = \"500ms\"")], &faults);
    let report = crate::report::text(&outcome);
    let owners = &only_hole(&outcome).experience.outage().unwrap().owners;
    assert!(owners.iter().all(|owner| !owner.begins.starts_with("stop")), "{report}");
}

/// A server is stopped. Its answers are due since the question was sent, and the question waits for it.
#[test]
fn a_stopped_server_is_the_cause_of_a_hole_of_its_answers() {
    let outcome = asks(r#"every = "4s""#, &[], &[("stop host = \"cor\"", "6.9s", "8.5s")]);
    let report = crate::report::text(&outcome);
    let flows: Vec<usize> = outcome.holes.iter().map(|hole| hole.flow).collect();
    assert_eq!(flows, [0, 1], "{report}");
    for hole in &outcome.holes {
        assert_eq!(hole.from.0 / 10_000_000, 700, "{report}");
        assert!(of(&hole.experience, Stage::Link) >= Duration::from_millis(1_490), "{report}");
    }
    assert_complete(&outcome);
}

/// Two hosts on a segment are down, one of them before the receiver. Only the receiver's crash loses frames for it.
/// If the segment is cut, its routers find no neighbor.
#[test]
fn a_host_on_the_same_segment_loses_no_frame_for_another_one() {
    let segment = |events: &str| {
        let text = format!("{SEGMENTS}{events}");
        simulate(Scenario::plan("segments.toml", &text, &[], 1).unwrap()).unwrap()
    };
    let event =
        |at: &str, kind: &str, place: &str| format!("[[event]]\nat = \"{at}\"\nkind = \"{kind}\"\n{place}\n");
    let (receiver, other) = ("host = \"files\"", "host = \"stub\"");
    let crashes = [
        event("3.9s", "crash", other),
        event("7s", "restart", other),
        event("4s", "crash", receiver),
        event("6s", "restart", receiver),
    ];
    let outcome = segment(&crashes.concat());
    assert_eq!(parts(&only_hole(&outcome).experience), [("link", "crash of files", 2_000)]);
    let cut = "wire = \"mid\"";
    let outcome = segment(&[event("4s", "cut", cut), event("6s", "restore", cut)].concat());
    let report = crate::report::text(&outcome);
    assert_eq!(only_hole(&outcome).lost, 100, "{report}");
    assert!(report.contains("cut of wire mid .. restore of wire mid"), "{report}");
}

const SEGMENTS: &str = r#"about = "three segments one behind the other"
duration = "14s"
[segment.lan]
hosts = ["r1", "red"]
rate = "10Mb/s"
delay = "10us"
net = "10.1.0.0/24"
[segment.mid]
hosts = ["r1", "r2"]
rate = "10Mb/s"
delay = "1ms"
net = "10.2.0.0/24"
[segment.backbone]
hosts = ["r2", "files", "stub"]
rate = "10Mb/s"
delay = "10us"
net = "10.3.0.0/24"
[host.r1]
[host.r2]
[host.red]
role = [{ kind = "apps/constant-rate", to = "files:9000", rate = 50, size = 200, start = "1s", stop = "11s" }]
[host.files]
role = [{ kind = "apps/sink", at = "files:9000" }]
[host.stub]
"#;

/// A satellite cell of 256 ms behind a wire that is cut until 7 s. The agent, or the mobile node, is stopped and continues
/// before the first packet has passed the cell. The agent keeps a copy of it, and drops the copy when it continues.
#[test]
fn a_stop_does_not_delay_a_packet_that_is_on_the_air() {
    let satellite = "[cell.2]\nduplex = \"full\"\ndelay = \"256ms\"";
    let ring = "smooth_handoff = true\nbuffer = { packets = 8 }";
    for (host, until) in [("a", "7.5s"), ("mobile", "7.27s")] {
        let stop = format!("stop host = \"{host}\"");
        let outcome = run(
            &[("[cell.2]", satellite), ("smooth_handoff = true", ring)],
            &[("wire = \"inet\"", "6s", "7s"), (&stop, "7.06s", until)],
        );
        let report = crate::report::text(&outcome);
        let names: Vec<(&str, &str)> =
            parts(&outcome.holes[0].experience).into_iter().map(|(name, begins, _)| (name, begins)).collect();
        assert_eq!(names, [("link", "cut of wire inet"), ("first byte", "app_sent")], "{host}: {report}");
    }
}

/// A download over SCTP. A router is stopped, and its wire to the server is cut before it continues: the acknowledgments
/// that waited for the router, and later ones, are lost by the cut. Then the gateway of the earlier address is stopped during
/// a handoff, and data wait for it.
#[test]
fn faults_own_the_time_in_which_packets_of_sctp_are_lost_or_wait() {
    let events = [
        ("stop", "host = \"campus\"", "2.015s"),
        ("continue", "host = \"campus\"", "2.715s"),
        ("cut", "wire = \"server\"", "2.615s"),
        ("restore", "wire = \"server\"", "3.415s"),
        ("stop", "host = \"gateway1\"", "5.415s"),
        ("continue", "host = \"gateway1\"", "6.215s"),
    ];
    let events =
        events.map(|(kind, place, at)| format!("[[event]]\nat = \"{at}\"\nkind = \"{kind}\"\n{place}\n"));
    let text = format!("{}{}", include_str!("../../../../scenarios/sigma/handoff.toml"), events.concat());
    let outcome = simulate(Scenario::plan("sctp.toml", &text, &[], 4).unwrap()).unwrap();
    let report = crate::report::text(&outcome);
    let hole = parts(&outcome.holes[0].experience);
    let [("link", "stop of campus", _), ("link", "cut of wire server", cut), ("recovery", ..), ..] = hole[..]
    else {
        panic!("{report}")
    };
    assert_eq!(cut, 700, "{report}");
    let handoff = parts(&outcome.handoffs[0].flows[0].experience);
    assert!(
        handoff.iter().all(|(name, begins, _)| (*name, *begins) == ("link", "stop of gateway1")),
        "{report}"
    );
}

/// The receiver is stopped, and then a wire is cut. The packets that the wire loses would have arrived during the stop.
#[test]
fn a_hole_of_a_stop_counts_the_packets_that_were_to_arrive_in_it() {
    let outcome =
        run(&[], &[("stop host = \"mobile\"", "6s", "6.7s"), ("wire = \"to-a\"", "6.03s", "6.65s")]);
    let report = crate::report::text(&outcome);
    assert!(only_hole(&outcome).lost > 25, "{report}");
    assert_complete(&outcome);
}

/// A router waits for answers to ARP of two hosts at other links. One is stopped, and the other is down for longer.
#[test]
fn a_packet_waits_for_the_answer_to_arp_of_its_own_receiver() {
    let events =
        [("stop", "y", "5.4s"), ("crash", "x", "5.5s"), ("continue", "y", "6.8s"), ("restart", "x", "6.9s")];
    let events = events
        .map(|(kind, host, at)| format!("[[event]]\nat = \"{at}\"\nkind = \"{kind}\"\nhost = \"{host}\"\n"));
    let text = format!("{LINKS}{}", events.concat());
    let outcome = simulate(Scenario::plan("links.toml", &text, &[], 1).unwrap()).unwrap();
    let owners: Vec<_> = outcome.holes.iter().map(|hole| parts(&hole.experience)[0]).collect();
    let expected = [("link", "crash of x", 900), ("link", "stop of y", 800)];
    assert_eq!(owners, expected, "{}", crate::report::text(&outcome));
}

const LINKS: &str = r#"about = "a router with a link to each of three hosts"
duration = "12s"
[wire.source]
ends = ["cor", "core"]
rate = "100Mb/s"
delay = "1ms"
net = "10.0.0.0/24"
[wire.to-x]
ends = ["core", "x"]
rate = "100Mb/s"
delay = "1ms"
net = "10.0.1.0/24"
[wire.to-y]
ends = ["core", "y"]
rate = "100Mb/s"
delay = "1ms"
net = "10.0.2.0/24"
[host.core]
[host.cor]
role = [
    { kind = "apps/constant-rate", to = "x:7000", rate = 50, size = 160, start = "6s", stop = "10s" },
    { kind = "apps/constant-rate", to = "y:7001", rate = 50, size = 160, start = "6s", stop = "10s" },
]
[host.x]
role = [{ kind = "apps/sink", at = "x:7000" }]
[host.y]
role = [{ kind = "apps/sink", at = "y:7001" }]
"#;
