//! Tests of holes before and after a handoff or behind a cut link, and of moves within the time of one registration.

use super::{Experience, Hole};
use crate::run::{Outcome, simulate};
use node::Stage;
use scenario::Scenario;
use std::fmt::Write as _;
use wire::{Duration, Instant};

/// Three agents around a router. The source `cor` sends a datagram each 20 ms to the mobile node in the cell of `a`.
const AGENTS: &str = r#"about = "three agents around a router"
duration = "14s"
[wire.inet]
ends = ["cor", "core"]
rate = "100Mb/s"
delay = "1ms"
net = "10.0.0.0/24"
[wire.far]
ends = ["core", "home"]
rate = "100Mb/s"
delay = "20ms"
net = "10.0.1.0/24"
[wire.to-a]
ends = ["core", "a"]
rate = "100Mb/s"
delay = "1ms"
net = "10.0.2.0/24"
[wire.to-b]
ends = ["core", "b"]
rate = "100Mb/s"
delay = "1ms"
net = "10.0.3.0/24"
[cell.1]
station = "home"
rate = "2Mb/s"
net = "10.1.0.0/24"
[cell.2]
station = "a"
rate = "2Mb/s"
net = "10.2.0.0/24"
[cell.3]
station = "b"
rate = "2Mb/s"
net = "10.3.0.0/24"
[radio]
retune = "5ms"
[mobile-ip]
key = "000102030405060708090a0b0c0d0e0f"
smooth_handoff = true
[host.cor]
role = [
    { kind = "apps/constant-rate", to = "mobile:7000", rate = 50, size = 200, start = "3s", stop = "12s" },
]
[host.core]
[host.home]
role = [{ kind = "mobile-ip/home-agent" }]
[host.a]
role = [{ kind = "mobile-ip/foreign-agent" }]
[host.b]
role = [{ kind = "mobile-ip/foreign-agent" }]
[host.mobile]
address = "10.1.0.7"
role = [
    { kind = "mobile-ip/mobile-node" },
    { kind = "apps/roam", start = "a", moves = [] },
    { kind = "apps/sink", at = "mobile:7000" },
]
"#;

pub(super) const SOURCE: &str = r#"{ kind = "apps/constant-rate", to = "mobile:7000", rate = 50, size = 200, start = "3s", stop = "12s" }"#;
const LIFETIME: &str = r#"{ kind = "mobile-ip/mobile-node", lifetime = "20s" }"#;

/// Runs [`AGENTS`] with these replacements, and with links that are cut, or hosts that are down or stopped (`stop` before the
/// line of the host), between two instants.
pub(super) fn run(replaced: &[(&str, &str)], cuts: &[(&str, &str, &str)]) -> Outcome {
    let mut text = AGENTS.to_owned();
    for (old, new) in replaced {
        assert!(text.contains(old), "{old}");
        text = text.replace(old, new);
    }
    for (link, from, to) in cuts {
        let (link, kinds) = match link.strip_prefix("stop ") {
            Some(host) => (host, ["stop", "continue"]),
            None if link.starts_with("host") => (*link, ["crash", "restart"]),
            None => (*link, ["cut", "restore"]),
        };
        for (kind, at) in kinds.into_iter().zip([from, to]) {
            let _ = writeln!(text, "[[event]]\nat = \"{at}\"\nkind = \"{kind}\"\n{link}");
        }
    }
    simulate(Scenario::plan("agents.toml", &text, &[], 1).unwrap()).unwrap()
}

/// Returns the time of an outage that belongs to a cause.
pub(super) fn of(experience: &Experience, stage: Stage) -> Duration {
    let outage = experience.outage().unwrap_or_else(|| panic!("{experience:?}"));
    outage.owners.iter().filter(|owner| owner.stage == Some(stage)).map(super::Owner::span).sum()
}

pub(super) fn only_hole(outcome: &Outcome) -> &Hole {
    let [hole] = outcome.holes.as_slice() else { panic!("{}", crate::report::text(outcome)) };
    hole
}

/// The radio moves away from `b` before its registration there is accepted, and hears `a` again only after the home
/// agent has accepted it. This is the second move of the radio, and no change of the agent besides it.
#[test]
fn an_acceptance_behind_the_next_move_begins_no_handoff() {
    let moves = r#"moves = [{ at = "6s", to = "b" }, { at = "6.027s", to = "a" }]"#;
    let outcome = run(&[("moves = []", moves), ("retune = \"5ms\"", "retune = \"25ms\"")], &[]);
    let kinds: Vec<&str> = outcome.handoffs.iter().map(|handoff| handoff.kind.as_str()).collect();
    assert_eq!(kinds, ["move", "move"], "{}", crate::report::text(&outcome));
    assert_eq!(outcome.doubts, []);
}

/// A wire on the path is cut for a second, 30 ms after the outage of a handoff has ended and before the flow has
/// recovered.
#[test]
fn a_wait_between_an_outage_and_its_recovery_is_a_hole() {
    let moves = r#"moves = [{ at = "6s", to = "b" }]"#;
    let outcome = run(&[("moves = []", moves)], &[("wire = \"to-b\"", "6.08s", "7.08s")]);
    let report = crate::report::text(&outcome);
    let [handoff] = outcome.handoffs.as_slice() else { panic!("{report}") };
    let cost = &handoff.flows[0];
    assert!(
        cost.experience.outage().is_some_and(|outage| outage.span() < Duration::from_millis(80)),
        "{report}"
    );
    let hole = only_hole(&outcome);
    assert!(cost.recovery.at().is_some_and(|at| at > hole.from), "{report}");
    assert!(of(&hole.experience, Stage::Link) > Duration::from_millis(900), "{report}");
    // Each lost packet counts once. The move lost the one that was in the air. All others reached the cut wire.
    assert_eq!((cost.lost(), hole.lost, outcome.flows[0].lost), (1, 50, 51), "{report}");
    assert_eq!(outcome.doubts, []);
}

/// The agent keeps the packets while its cell is cut, so none is lost: they fit into the queue of its radio. A
/// datagram that was sent after the restore arrives before those that waited.
#[test]
fn a_wait_behind_a_cut_link_that_loses_nothing_is_a_hole() {
    let kept = "smooth_handoff = true\nbuffer = { when = \"link-down\", packets = 1000, max_age = \"20s\" }";
    let replaced = [
        ("smooth_handoff = true", kept),
        ("delay = \"20ms\"", "delay = \"1ms\""),
        ("start = \"3s\"", "start = \"3.012s\""),
    ];
    let outcome = run(&replaced, &[("cell = 2", "8.01s", "9.21s")]);
    let report = crate::report::text(&outcome);
    let hole = only_hole(&outcome);
    let to = hole.experience.outage().unwrap().to;
    let ends = outcome.flows[0].arrivals.iter().find(|arrival| arrival.at == to).unwrap();
    let sent = outcome.packets[0].sendings.iter().find(|sending| sending.packet == ends.packet).unwrap();
    assert!(sent.at > Instant::from_millis(9_210), "{:?} {report}", sent.at);
    assert_eq!((outcome.flows[0].lost, hole.lost), (0, 0), "{report}");
    assert_eq!(hole.from, Instant::from_millis(8_012), "a datagram was sent then: {report}");
    let link = of(&hole.experience, Stage::Link);
    assert!((1_200..1_210).contains(&link.as_millis()), "{report}");
    assert_eq!(outcome.doubts, []);
}

/// The cell is cut while its agent keeps only the last four packets. It drops the others without sending them.
#[test]
fn packets_that_an_agent_drops_while_its_cell_is_cut_are_lost_by_the_cut() {
    let kept = "smooth_handoff = true\nbuffer = { when = \"link-down\", packets = 4 }";
    let outcome = run(&[("smooth_handoff = true", kept)], &[("cell = 2", "8.01s", "9.21s")]);
    let report = crate::report::text(&outcome);
    let hole = only_hole(&outcome);
    assert!(hole.lost > 50, "{report}");
    let owner = &hole.experience.outage().unwrap().owners[0];
    let edges = (&*owner.begins, &*owner.ends, owner.to);
    assert_eq!(edges, ("cut of cell 2", "restore of cell 2", Instant::from_millis(9_210)), "{report}");
    assert_eq!(outcome.doubts, []);
}

/// A burst fills the queue of the agent for 200 ms. Meanwhile, a wire of the source is cut for 100 ms. The packets that it
/// loses would have arrived behind the burst, and no packet is missing while the burst passes.
#[test]
fn a_loss_belongs_to_the_gap_between_the_packets_before_and_after_it() {
    let burst = r#"
    { kind = "apps/constant-rate", to = "mobile:7001", rate = 5000, size = 1000, start = "5s", stop = "5.01s" }"#;
    let sinks = r#"{ kind = "apps/sink", at = "mobile:7000" },
    { kind = "apps/sink", at = "mobile:7001" }"#;
    let replaced =
        [(SOURCE, &*format!("{SOURCE},{burst}")), (r#"{ kind = "apps/sink", at = "mobile:7000" }"#, sinks)];
    let outcome = run(&replaced, &[("wire = \"inet\"", "5.03s", "5.13s")]);
    let report = crate::report::text(&outcome);
    let flow = &outcome.flows[0];
    assert!(flow.lost == 5 && flow.longest_stall > Duration::from_millis(150), "{report}");
    assert_eq!(outcome.holes, [], "{report}");
}

/// The wire to the agent that the mobile node leaves is cut for 2 s, until shortly after the move. The packets before
/// the move wait for ARP, and are dropped after it. The cut has no part in the registration by the other wire.
#[test]
fn a_wait_before_a_move_is_a_hole_with_the_packets_that_it_lost() {
    for restored in ["6.01s", "6.5s"] {
        let moves = r#"moves = [{ at = "6s", to = "b" }]"#;
        let outcome = run(&[("moves = []", moves)], &[("wire = \"to-a\"", "4s", restored)]);
        let report = crate::report::text(&outcome);
        let hole = only_hole(&outcome);
        assert_eq!(
            [hole.from, hole.experience.outage().unwrap().to],
            [4_000, 6_000].map(Instant::from_millis),
            "{report}"
        );
        assert_eq!(of(&hole.experience, Stage::Link), Duration::from_secs(2), "{report}");
        let cost = &outcome.handoffs[0].flows[0];
        assert_eq!((cost.lost(), hole.lost, outcome.flows[0].lost), (3, 100, 103), "{report}");
        assert_eq!(of(&cost.experience, Stage::Link), Duration::from_millis(5), "{report}");
        assert!(of(&cost.experience, Stage::Detection) > Duration::ZERO, "{report}");
        assert!(of(&cost.experience, Stage::Registration) > Duration::from_millis(23), "{report}");
    }
}

/// A wire is cut five times, with 30 ms between two cuts. Each lost packet counts in one hole.
#[test]
fn a_packet_counts_in_one_hole() {
    let times = ["8.01", "8.14", "8.17", "8.3", "8.33", "8.46", "8.49", "8.62", "8.65", "8.78"]
        .map(|at| format!("{at}s"));
    let cuts: Vec<_> =
        times.chunks(2).map(|pair| ("wire = \"to-a\"", pair[0].as_str(), pair[1].as_str())).collect();
    let outcome = run(&[], &cuts);
    let lost: Vec<u64> = outcome.holes.iter().map(|hole| hole.lost).collect();
    assert_eq!((lost, outcome.flows[0].lost), (vec![6; 5], 30), "{}", crate::report::text(&outcome));
}

/// A wire to the agent is cut. Without answers to ARP, the packets are lost before the wire, and the registration ends.
#[test]
fn a_cut_wire_owns_the_time_of_vain_signalling() {
    let replaced = [
        ("duration = \"14s\"", "duration = \"60s\""),
        ("stop = \"12s\"", "stop = \"58s\""),
        (r#"{ kind = "mobile-ip/mobile-node" }"#, LIFETIME),
    ];
    let outcome = run(&replaced, &[("wire = \"to-a\"", "9s", "49s")]);
    let report = crate::report::text(&outcome);
    let hole = only_hole(&outcome);
    assert_eq!(of(&hole.experience, Stage::Link), Duration::from_secs(40), "{report}");
    assert!(report.contains("cut of wire to-a .. restore of wire to-a"), "{report}");
    assert_eq!(outcome.doubts, []);
}

/// The wire at the source is cut when the mobile node moves. The cut owns the retransmissions, and the last moment
/// before the handoff is no hole of 0 ms.
#[test]
fn a_cut_wire_owns_the_time_of_vain_retransmissions() {
    let replaced = [
        ("duration = \"14s\"", "duration = \"60s\""),
        (SOURCE, r#"{ kind = "apps/bulk-server", at = "cor:9000", duration = "50s" }"#),
        (
            r#"{ kind = "apps/sink", at = "mobile:7000" }"#,
            r#"{ kind = "apps/bulk-client", to = "cor:9000", start = "3s" }"#,
        ),
        ("moves = []", r#"moves = [{ at = "19s", to = "b" }]"#),
    ];
    let outcome = run(&replaced, &[("wire = \"inet\"", "9s", "39s")]);
    let report = crate::report::text(&outcome);
    let cost = &outcome.handoffs[0].flows[0];
    assert!(of(&cost.experience, Stage::Link) > Duration::from_millis(19_900), "{report}");
    assert!(outcome.holes.iter().all(|hole| hole.experience.millis() > Some(0.05)), "{report}");
}

/// The router on the path crashes, or the wire of the correspondent is cut, from 8 s to 9 s. Around this time, a host
/// that the flow does not pass is down, or a link that it does not use is cut. Neither is the cause of the hole,
/// although each begins first. In one direction of the flow, the correspondent loses the packets, and in the other
/// one the home agent or `a`.
#[test]
fn a_fault_elsewhere_is_not_the_cause_of_a_loss() {
    let sink = r#"{ kind = "apps/sink", at = "mobile:7000" }"#;
    let upwards = [
        (SOURCE, r#"{ kind = "apps/sink", at = "cor:7000" }"#),
        (sink, &SOURCE.replace("mobile:7000", "cor:7000")),
    ];
    let faults = [
        ("host = \"core\"", ("crash of core", "restart of core")),
        ("wire = \"inet\"", ("cut of wire inet", "restore of wire inet")),
    ];
    let elsewhere = ["host = \"b\"", "cell = 3", "wire = \"to-b\""];
    let cases = elsewhere.into_iter().flat_map(|one| faults.map(|(fault, edges)| (one, fault, edges)));
    for (elsewhere, fault, edges) in cases {
        for (replaced, until) in [(&[][..], "8.5s"), (&[], "9.5s"), (&upwards, "8.5s"), (&upwards, "9.5s")] {
            let outcome = run(replaced, &[(elsewhere, "7.9s", until), (fault, "8s", "9s")]);
            let report = crate::report::text(&outcome);
            let outage = only_hole(&outcome).experience.outage().unwrap();
            let link = outage.owners.iter().find(|owner| owner.span() > Duration::from_millis(970));
            let link = link.map(|link| (link.begins.as_str(), link.ends.as_str()));
            assert_eq!(link, Some(edges), "{elsewhere} until {until}: {report}");
        }
    }
}

/// The receiver is stopped for 1.5 s. It loses nothing, and reads all that waited at the instant at which it continues.
#[test]
fn a_stopped_receiver_is_the_cause_of_a_hole() {
    let outcome = run(&[], &[("stop host = \"mobile\"", "6s", "7.5s")]);
    let hole = only_hole(&outcome);
    assert!(hole.from >= Instant::from_millis(5_980) && hole.lost == 0, "{hole:?}");
    assert!(of(&hole.experience, Stage::Link) >= Duration::from_millis(1_480), "{hole:?}");
}

/// The home agent does not answer from 7.2 s until 30 s, and the correspondent sends to the previous agent. The agent of the new
/// place delivers what that one forwards, until it ends the state of the request. Then it drops the datagrams: its cell and all
/// wires on their path are up.
#[test]
fn the_end_of_early_delivery_is_no_loss_of_the_link() {
    let text = include_str!("../../../../scenarios/mobile-ip/route-optimization.toml");
    let text = text
        .replace("duration = \"14s\"", "duration = \"40s\"")
        .replace("stop = \"13s\"", "stop = \"39s\"")
        .replace(", { at = \"11.3s\", to = \"home\" }", "")
        .replace("[mobile-ip]\n", "[mobile-ip]\nsmooth_handoff = true\n");
    let rows = [
        ("crash", "restart", "host = \"home\"", "crash of home"),
        ("stop", "continue", "host = \"home\"", "stop of home"),
        ("cut", "restore", "wire = \"long\"", "cut of wire long"),
    ];
    for (begins, ends, place, name) in rows {
        let events = [("7.2s", begins), ("30s", ends)]
            .map(|(at, kind)| format!("[[event]]\nat = \"{at}\"\nkind = \"{kind}\"\n{place}\n"));
        let text = format!("{text}\n{}", events.concat());
        let outcome = simulate(Scenario::plan("silent.toml", &text, &[], 1).unwrap()).unwrap();
        let report = crate::report::text(&outcome);
        let outage = only_hole(&outcome).experience.outage().unwrap();
        let parts: Vec<_> = outage
            .owners
            .iter()
            .map(|owner| (owner.name(), &*owner.begins, owner.span().as_millis()))
            .collect();
        let [first, second, ..] = parts.as_slice() else { panic!("{report}") };
        assert_eq!(*first, ("link", name, 8_680), "{report}");
        assert_eq!((second.0, second.2), ("registration", 304), "{report}");
        assert_eq!(outage.owners.iter().map(super::Owner::span).sum::<Duration>(), outage.span(), "{report}");
    }
}
