//! Tests of outages that end after the next handoff of the host: what the packet that ends the outage waited for.

use super::hole_tests::{SOURCE, run};
use super::parts_tests::{SIGMA, UPWARD, parts_of};
use super::{Handoff, Owner};
use crate::run::{Outcome, simulate};
use scenario::Scenario;
use trace::What;
use wire::{Duration, Iface};

const SINK: &str = r#"{ kind = "apps/sink", at = "mobile:7000" }"#;
const RETUNE: (&str, &str) = ("retune = \"5ms\"", "retune = \"200ms\"");

/// Runs a mobile node that moves at 6 s and again at `second`.
fn two_moves(second: &str, further: &[(&str, &str)]) -> Outcome {
    let moves = format!("moves = [{{ at = \"6s\", to = \"b\" }}, {{ at = \"{second}\", to = \"a\" }}]");
    run(&[further, &[RETUNE, ("moves = []", &*moves)]].concat(), &[])
}

/// Asserts that the first outage ends after the next cut, and that its parts are its sum.
#[track_caller]
fn assert_continues(outcome: &Outcome) {
    let report = crate::report::text(outcome);
    let outage = outcome.handoffs[0].outage().unwrap_or_else(|| panic!("{report}"));
    assert!(outage.to > outcome.handoffs[1].cut, "{report}");
    assert_eq!(outage.owners.iter().map(Owner::span).sum::<Duration>(), outage.span(), "{report}");
}

/// The packet that ends the first outage leaves the mobile node before its second move. So the parts are those without the
/// second move.
#[test]
fn a_packet_that_left_before_the_next_handoff_does_not_wait_for_it() {
    let wire = |delay: &str| format!("ends = [\"cor\", \"core\"]\nrate = \"100Mb/s\"\ndelay = \"{delay}\"");
    let [short, long] = ["1ms", "150ms"].map(wire);
    let stream = [
        (SOURCE, r#"{ kind = "apps/bulk-client", to = "mobile:9000", start = "3s" }"#),
        (SINK, r#"{ kind = "apps/bulk-server", at = "mobile:9000", bytes = 9000000 }"#),
    ];
    for (flow, second) in [(UPWARD, "6.25s"), (stream, "6.7s")] {
        let moves = |second| two_moves(second, &[&flow[..], &[(&*short, &*long)]].concat());
        let outcome = moves(second);
        assert_continues(&outcome);
        let parts = parts_of(&outcome, 0);
        assert_eq!(parts, parts_of(&moves("9s"), 0), "{}", crate::report::text(&outcome));
        assert_eq!(parts.iter().filter(|(name, ..)| *name == "link").count(), 1, "{parts:?}");
    }
}

/// A packet reaches the radio before the second move, and the kernel handles it 2 ms later, after the move.
#[test]
fn a_packet_that_is_handled_after_the_next_cut_came_before_it() {
    let single = two_moves("9s", &[]);
    let end = single.handoffs[0].outage().unwrap().to;
    let outcome = two_moves(&format!("{}ns", (end + Duration::from_millis(1)).0), &[]);
    let last = outcome.flows[0].arrivals.iter().find(|arrival| arrival.at == end).unwrap().packet;
    let host = outcome.handoffs[0].host;
    let mut records = outcome.records.clone();
    for record in records.iter_mut().filter(|record| record.host == host && record.at == end) {
        let is_it = match &record.what {
            What::Received(_, packet) | What::Sent(Iface::HOST, packet) => packet.id == last,
            What::AppReceived(id) => *id == last,
            _ => false,
        };
        if is_it {
            record.at = end + Duration::from_millis(2);
        }
    }
    records.sort_by_key(|record| record.at);
    let late = Outcome::new(outcome.plan.clone(), outcome.backend, records, None);
    assert_continues(&late);
    let names = |outcome: &Outcome| -> Vec<_> {
        parts_of(outcome, 0)
            .into_iter()
            .map(|(name, begins, ends, _)| (name, begins.to_owned(), ends.to_owned()))
            .collect()
    };
    assert_eq!(names(&late), names(&single), "{}", crate::report::text(&late));
}

/// A download over SCTP by a path of 200 ms. The sender has the new path, and its data are under way on this path when the
/// mobile node switches back to the old one. It has both.
#[test]
fn data_under_way_do_not_wait_for_a_switch_between_two_usable_paths() {
    let wire = |delay: &str| {
        format!("ends = [\"campus\", \"correspondent\"]\nrate = \"100Mb/s\"\ndelay = \"{delay}\"")
    };
    let first = r#"course.1 = [["0s", -50], ["5s", -50], ["5s", -90], ["5.41s", -90], ["5.41s", -50]]"#;
    let text = SIGMA
        .replace(&wire("0.5ms"), &wire("200ms"))
        .replace(r#"course.1 = [["0s", -50], ["3s", -50], ["8s", -96]]"#, first)
        .replace(r#"["1s", -96], ["6s", -50]]"#, r#"["1s", -70]]"#)
        .replace(r#"hold = "250ms""#, r#"hold = "50ms", dwell = "50ms""#);
    let events = [("cut", "5.2s"), ("restore", "5.45s")];
    let events =
        events.map(|(kind, at)| format!("[[event]]\nat = \"{at}\"\nkind = \"{kind}\"\nwire = \"left\"\n"));
    let text = format!("{text}{}", events.concat());
    let outcome = simulate(Scenario::plan("sigma.toml", &text, &[], 1).unwrap()).unwrap();
    assert_continues(&outcome);
    let expected =
        [("path switch", "handoff", "segment_sent", 328), ("first byte", "segment_sent", "app_read", 205)];
    assert_eq!(parts_of(&outcome, 0), expected, "{}", crate::report::text(&outcome));
}

/// A mobile node moves to an agent behind a path of 1.1 s. While the first datagrams are on this path, it hears a third agent of
/// the same channel, and the home agent switches the path to it.
#[test]
fn datagrams_on_the_earlier_path_do_not_wait_for_the_next_agent() {
    let text = include_str!("../../../../scenarios/links/overlap.toml").split("# Both cells").next().unwrap();
    let wire =
        |delay: &str| format!("ends = [\"router\", \"foreign\"]\nrate = \"100Mb/s\"\ndelay = \"{delay}\"");
    let agent = r#"{ kind = "mobile-ip/foreign-agent" }"#;
    // Its datagrams keep the entries of ARP at the ends of the long wire.
    let source = r#"{ kind = "apps/constant-rate", to = "correspondent:9100", rate = 1, size = 100, start = "0.5s", stop = "8s" }"#;
    let text = text
        .replace(&wire("1ms"), &wire("1100ms"))
        .replace(r#"start = "home" }"#, r#"start = "home", moves = [{ at = "4.5s", to = "foreign" }] }"#)
        .replace(", link_trigger = false", "")
        .replace(agent, &format!("{agent}, {source}"))
        .replace(
            "[host.correspondent]\nrole = [",
            r#"[host.correspondent]
role = [{ kind = "apps/sink", at = "correspondent:9100" }, "#,
        )
        .replace("hears = \"channel\"", "hears = \"channel\"\ndata = \"one\"");
    let outcome = simulate(Scenario::plan("three.toml", &format!("{text}{THIRD}"), &[], 1).unwrap()).unwrap();
    assert_continues(&outcome);
    let report = crate::report::text(&outcome);
    assert_eq!(
        outcome.handoffs.iter().map(|one: &Handoff| &*one.kind).collect::<Vec<_>>(),
        ["move", "agent"]
    );
    let expected = [
        ("detection", "link_up", "agent_heard", 0),
        ("registration", "request_sent", "binding_changed", 1_101),
        ("first byte", "path_switched", "app_received", 1_110),
    ];
    assert_eq!(parts_of(&outcome, 0), expected, "{report}");
}

/// A third agent, which is heard from 5.6 s on.
const THIRD: &str = r#"
[host.mobile.course]
1 = [["0s", -60], ["4.5s", -60], ["4.5s", -120]]
2 = [["0s", -120], ["4.4s", -120], ["4.4s", -62]]
3 = [["0s", -120], ["5.6s", -120], ["5.6s", -62]]
[wire.third]
ends = ["router", "other"]
rate = "100Mb/s"
delay = "1ms"
net = "10.0.3.0/24"
[cell.3]
station = "other"
rate = "2Mb/s"
channel = 6
net = "10.3.0.0/24"
[host.other]
role = [{ kind = "mobile-ip/foreign-agent" }]
"#;

const DOWNLOAD: [(&str, &str); 3] = [
    (SOURCE, r#"{ kind = "apps/bulk-server", at = "cor:9000", bytes = 9000000 }"#),
    (SINK, r#"{ kind = "apps/bulk-client", to = "cor:9000", start = "3s" }"#),
    ("address = \"10.1.0.7\"", "address = \"10.1.0.7\"\ntcp = { receive_buffer = 16384 }"),
];

/// Runs a mobile node whose agents keep the last 40 packets. The wire to the home agent has this delay.
fn keeps(flow: &[(&str, &str)], delay: &str, moves: &str) -> Outcome {
    let keeps = "smooth_handoff = true\nbuffer = { packets = 40, drain = \"paced\", rate = \"400kb/s\" }";
    let words = [("smooth_handoff = true", keeps), ("delay = \"20ms\"", delay), ("moves = []", moves)];
    run(&[flow, &words].concat(), &[])
}

/// The previous agent keeps the segments of a download, also some that the receiver has. The kept ones end the outage: they have waited
/// for the link and the registration. The time in which those arrive that the receiver has is recovery.
#[test]
fn kept_segments_wait_for_the_path() {
    let outcome = keeps(&DOWNLOAD, "delay = \"200ms\"", r#"moves = [{ at = "6s", to = "b" }]"#);
    let expected = [
        ("link", "tune", "up", 5),
        ("detection", "link_up", "agent_heard", 0),
        ("registration", "request_sent", "care_of_learnt", 4),
        ("recovery", "care_of_learnt", "held_data_resent", 1_106),
        ("first byte", "held_data_resent", "app_read", 29),
    ];
    assert_eq!(parts_of(&outcome, 0), expected, "{}", crate::report::text(&outcome));
}

/// The mobile node returns to the agent that keeps its packets. It may not ask for the next registration at once. When it asks, that
/// agent sends the packets, and the agent between sends its own, before a home agent has changed the path. With the long wire, an agent
/// receives the packet that ends the outage during this wait.
#[test]
fn kept_packets_wait_for_a_node_that_returns() {
    let moves = r#"moves = [{ at = "6s", to = "b" }, { at = "6.06s", to = "a" }]"#;
    let fast = SOURCE.replace("rate = 50", "rate = 200");
    let datagrams = [(SOURCE, &*fast)];
    let rows: [(&[_], _, _, _); 3] = [
        (&DOWNLOAD, "delay = \"20ms\"", ("recovery", 125), "forwarding_ended"),
        (&DOWNLOAD, "delay = \"200ms\"", ("recovery", 131), "forwarding_ended"),
        (&datagrams, "delay = \"200ms\"", ("first byte", 3), "care_of_learnt"),
    ];
    for (flow, delay, next, ready) in rows {
        let outcome = keeps(flow, delay, moves);
        let report = crate::report::text(&outcome);
        let parts = parts_of(&outcome, 1);
        let first = [("link", "tune", "up", 5), ("detection", "link_up", "agent_heard", 0)];
        assert_eq!(parts[..2], first, "{report}");
        let [name, begins, end, after] = [parts[2].0, parts[2].1, parts[2].2, parts[3].1];
        let waits = ["registration", "registration_waits", ready, ready];
        assert_eq!([name, begins, end, after], waits, "{report}");
        assert!((439..=443).contains(&parts[2].3), "{report}");
        assert_eq!((parts[3].0, parts[3].3), next, "{report}");
    }
}

/// A router waits for an answer to ARP after three cut wires, while the mobile node repeats its request. The packet does not need the answer.
#[test]
fn what_waits_for_a_neighbor_does_not_wait_for_the_registration() {
    let moves = r#"moves = [{ at = "6s", to = "b" }]"#;
    let cuts = [
        ("wire = \"to-b\"", "6.01s", "7s"),
        ("wire = \"far\"", "6.9s", "8s"),
        ("wire = \"inet\"", "7.9s", "9s"),
    ];
    let outcome = run(&[("moves = []", moves)], &cuts);
    let report = crate::report::text(&outcome);
    let parts = parts_of(&outcome, 0);
    let last = parts.iter().skip(5).map(|part| (part.0, part.1)).collect::<Vec<_>>();
    assert_eq!(last, [("link", "cut of wire inet"), ("first byte", "app_sent")], "{report}");
}

/// The new agent crashes 10 ms after the move, and has forgotten the mobile node afterwards: it drops what the previous agent forwards.
/// The link is up.
#[test]
fn what_an_agent_does_not_know_is_no_loss_of_the_link() {
    let outcome =
        run(&[("moves = []", r#"moves = [{ at = "6s", to = "b" }]"#)], &[("host = \"b\"", "6.02s", "6.07s")]);
    let report = crate::report::text(&outcome);
    let parts = parts_of(&outcome, 0);
    let unknown = parts.iter().find(|part| (part.0, part.2) == ("registration", "last_loss"));
    assert!(unknown.is_some_and(|part| part.3 > 900), "{parts:?} {report}");
    let links: u64 = parts.iter().filter(|part| part.0 == "link").map(|part| part.3).sum();
    assert!((50..100).contains(&links), "the tuning and the crash: {parts:?} {report}");
}

/// The mobile node returns home. The first datagrams in the home cell are lost there. Meanwhile the previous agent drops those that were
/// sent to it before: they say nothing about the home cell.
#[test]
fn losses_on_the_earlier_path_do_not_divide_those_on_the_new_one() {
    let slow = "ends = [\"core\", \"a\"]\nrate = \"100Mb/s\"\ndelay = ";
    let outcome = run(
        &[
            ("moves = []", r#"moves = [{ at = "6s", to = "home" }]"#),
            (&format!("{slow}\"1ms\""), &format!("{slow}\"100ms\"")),
        ],
        &[],
    );
    let cut = outcome.handoffs[0].cut;
    let arrivals = outcome.flows[0].arrivals.iter().filter(|arrival| arrival.at > cut);
    let lost: Vec<_> = arrivals.take(4).map(|arrival| arrival.packet).collect();
    let mut records = outcome.records.clone();
    records.retain(|record| !matches!(&record.what, What::AppReceived(packet) if lost.contains(packet)));
    for record in records.iter_mut().filter(|record| record.at > cut) {
        record.what = match &record.what {
            What::Received(iface, packet)
                if record.host == outcome.handoffs[0].host && lost.contains(&packet.id) =>
            {
                What::Lost(*iface, packet.id, "link_error".into())
            }
            What::Lost(iface, packet, why) if why == "receiver_left_cell" => {
                What::Dropped(*iface, *packet, "not_a_visitor".into())
            }
            what => what.clone(),
        };
    }
    let lossy = Outcome::new(outcome.plan.clone(), outcome.backend, records, None);
    let expected = [
        ("link", "tune", "up", 5),
        ("detection", "link_up", "agent_heard", 0),
        ("registration", "request_sent", "binding_removed", 0),
        ("link", "path_switched", "last_loss", 76),
        ("first byte", "app_sent", "app_received", 20),
    ];
    assert_eq!(parts_of(&lossy, 0), expected, "{}", crate::report::text(&lossy));
}
