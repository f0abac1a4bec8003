//! Tests of the parts of an outage of data that a mobile node sends: it does not wait for its registration with them.

use super::hole_tests::{SOURCE, run};
use super::parts_tests::{UPWARD, parts_of};
use crate::run::Outcome;
use node::Stage;
use scenario::Scenario;
use trace::{Record, What};
use wire::{Duration, Iface, Instant, PacketId};

const CUT: Instant = Instant::from_millis(6_000);
const SINK: &str = r#"{ kind = "apps/sink", at = "mobile:7000" }"#;
const MOVE: (&str, &str) = ("moves = []", r#"moves = [{ at = "6s", to = "b" }]"#);
const RETUNE: (&str, &str) = ("retune = \"5ms\"", "retune = \"50ms\"");
const STREAM: [(&str, &str); 2] = [
    (SOURCE, r#"{ kind = "apps/bulk-client", to = "mobile:9000", start = "3s" }"#),
    (SINK, r#"{ kind = "apps/bulk-server", at = "mobile:9000", bytes = 9000000 }"#),
];

/// The datagram of 6.063 s is the first that the mobile node sends in its new cell. It arrives at the same time behind each wire
/// to the home agent, and does not wait for this agent.
#[test]
fn an_upload_does_not_wait_for_the_registration() {
    for delay in ["2ms", "20ms", "80ms"] {
        let far = format!("delay = \"{delay}\"");
        let late = ("start = \"3s\"", "start = \"3.003s\"");
        let outcome = run(&[UPWARD[0], UPWARD[1], late, MOVE, RETUNE, ("delay = \"20ms\"", &far)], &[]);
        let expected = [
            ("link", "tune", "up", 50),
            ("detection", "link_up", "agent_heard", 0),
            ("traffic", "request_sent", "app_sent", 12),
            ("first byte", "app_sent", "app_received", 3),
        ];
        assert_eq!(parts_of(&outcome, 0), expected, "{delay}: {}", crate::report::text(&outcome));
    }
}

/// The same with a stream. The previous agent learns the care-of address 4 ms after the request. Only the sender waits.
#[test]
fn the_sender_of_an_upload_waits_for_its_timer() {
    let outcome = run(&[&STREAM[..], &[MOVE]].concat(), &[]);
    let report = crate::report::text(&outcome);
    let parts = parts_of(&outcome, 0);
    assert!(parts.iter().all(|part| part.0 != "registration"), "{report}");
    assert_eq!(
        (parts[2].0, parts[2].1, parts[2].2),
        ("recovery", "request_sent", "segment_sent"),
        "{report}"
    );
}

/// The mobile node may not request a registration in the cell of `b` until it moves again. Meanwhile it sends to `a`, which is out
/// of reach. The home agent changes the binding because of the request before the move, which says nothing about `b`.
#[test]
fn an_upload_waits_until_the_mobile_node_may_request_a_registration() {
    let moves = [("6s", "b"), ("7.1s", "a"), ("7.12s", "b"), ("7.6s", "a")];
    let moves = moves.map(|(at, to)| format!("{{ at = \"{at}\", to = \"{to}\" }}")).join(", ");
    let moves = format!("moves = [{moves}]");
    for flow in [UPWARD, STREAM] {
        let outcome = run(&[flow[0], flow[1], ("moves = []", &moves)], &[]);
        let report = crate::report::text(&outcome);
        let parts = parts_of(&outcome, 2);
        let expected = [
            ("link", "tune", "up", 5),
            ("detection", "link_up", "agent_heard", 0),
            ("registration", "registration_waits", "next_handoff", 474),
            ("link", "tune", "up", 5),
        ];
        assert_eq!(parts[..4], expected, "{report}");
        // The node has last sent to `a`, so its packets can leave at once when it returns.
        assert!(parts[4..].iter().all(|part| part.0 != Stage::Registration.name()), "{report}");
    }
}

/// The agent forwards only the packets of registered nodes, so the mobile node drops its own until it has the reply.
#[test]
fn an_upload_that_the_node_drops_until_then_waits_for_the_registration() {
    let outcome = run(&[UPWARD[0], UPWARD[1], MOVE, ("rate = 50", "rate = 200")], &[]);
    let host = outcome.handoffs[0].host;
    let mark = |name: &str| {
        let is_it = |r: &&Record| {
            r.at > CUT && r.host == host && matches!(&r.what, What::Marked(mark) if mark.name == name)
        };
        outcome.records.iter().find(is_it).unwrap().at
    };
    let wait = mark("request_sent")..mark("registered");
    let refused: Vec<_> = outcome.records.iter().filter(|r| r.host == host && wait.contains(&r.at)).collect();
    let refused = refused.into_iter().filter_map(|r| match &r.what {
        What::AppSent(packet) => Some(*packet),
        _ => None,
    });
    let refused: Vec<PacketId> = refused.collect();
    assert!(refused.len() > 5, "{refused:?}");
    let mut records = outcome.records.clone();
    records.retain(|r| match &r.what {
        What::Sent(_, packet) | What::Received(_, packet) => r.host == host || !refused.contains(&packet.id),
        What::AppReceived(packet) => !refused.contains(packet),
        _ => true,
    });
    for record in &mut records {
        if let What::Sent(iface, packet) = &record.what
            && *iface != Iface::HOST
            && refused.contains(&packet.id)
        {
            record.what = What::Dropped(*iface, packet.id, "not_registered".into());
        }
    }
    let outcome = Outcome::new(outcome.plan.clone(), outcome.backend, records, None);
    let report = crate::report::text(&outcome);
    let parts = parts_of(&outcome, 0);
    assert_eq!(parts[2], ("registration", "request_sent", "registered", 45), "{report}");
    assert_eq!(parts[3].1, "registered", "{report}");
}

/// The receiver has all data that an upload sent before a move, but the acknowledgments are lost. The sender has no room in its window,
/// and sends new data when its timer expires. The source had data all the time.
#[test]
fn a_sender_with_a_full_window_does_not_wait_for_its_source() {
    let replaced = [
        ("smooth_handoff = true", ""),
        ("delay = \"20ms\"", "delay = \"200ms\""),
        ("moves = []", r#"moves = [{ at = "5.002s", to = "b" }]"#),
        (
            SOURCE,
            r#"{ kind = "apps/bulk-server", at = "cor:9000", bytes = 9000000 }, { kind = "apps/bulk-client", to = "mobile:9001", start = "3s" }"#,
        ),
        (
            SINK,
            r#"{ kind = "apps/bulk-client", to = "cor:9000", start = "3s" }, { kind = "apps/bulk-server", at = "mobile:9001", bytes = 9000000 }"#,
        ),
    ];
    let outcome = run(&replaced, &[]);
    let report = crate::report::text(&outcome);
    let handoff = &outcome.handoffs[0];
    let upload =
        handoff.flows.iter().find(|cost| outcome.flows[cost.flow].from.host == handoff.host).unwrap();
    let outage = upload.experience.outage().unwrap_or_else(|| panic!("{report}"));
    let names: Vec<&str> = outage.owners.iter().map(super::Owner::name).collect();
    assert_eq!(names, ["link", "detection", "recovery", "first byte"], "{report}");
    assert!(outage.owners[2].span() > Duration::from_millis(500), "{report}");
}

/// A mobile node with its own care-of address. Its agent is always the home agent, also after it has moved.
const CO_LOCATED: &str = r#"
about = "a mobile node with its own care-of address"
duration = "8s"

[radio]
retune = "5ms"
attach = "5ms"

[mobile-ip]
key = "000102030405060708090a0b0c0d0e0f"

[wire.internet]
ends = ["fixed", "core"]
rate = "100Mb/s"
delay = "1000us"
net = "10.0.0.0/24"

[host.core]

[wire.w0]
ends = ["core", "r0"]
rate = "100Mb/s"
delay = "1723us"
net = "10.0.1.0/24"

[wire.w1]
ends = ["core", "r1"]
rate = "100Mb/s"
delay = "92609us"
net = "10.0.2.0/24"

[wire.w2]
ends = ["core", "r2"]
rate = "100Mb/s"
delay = "21282us"
net = "10.0.3.0/24"

[cell.1]
station = "r0"
rate = "1000kb/s"
delay = "1000us"
net = "10.1.0.0/24"

[cell.2]
station = "r1"
rate = "11000kb/s"
delay = "1000us"
net = "10.2.0.0/24"

[cell.3]
station = "r2"
rate = "2000kb/s"
delay = "1000us"
net = "10.3.0.0/24"

[host.r0]
role = [
    { kind = "mobile-ip/home-agent" },
]

[host.r1]
role = [
]

[host.r2]
role = [
]

[host.fixed]
tcp = { receive_buffer = 65536 }
role = [
    { kind = "apps/request-server", at = "fixed:9016" },
]

[host.m0]
address = "10.1.0.7"
tcp = { receive_buffer = 65536 }
role = [
    { kind = "mobile-ip/mobile-node", care_of = "configured", address_delay = "0ms", networks = [{ cell = 2, address = "10.2.0.100/24", router = "10.2.0.1" }, { cell = 3, address = "10.3.0.100/24", router = "10.3.0.1" }] },
    { kind = "apps/roam", start = "r2", moves = [{ at = "4092ms", to = "r1" }, { at = "4484ms", to = "r2" }, { at = "4611ms", to = "r1" }] },
    { kind = "apps/request-client", to = "fixed:9016", start = "1695ms", question = 52, answer = 599, every = "79ms", exchanges = 59 },
]
"#;

/// The path of the own packets is ready with the address, and no part of the outage is without a cause.
#[test]
fn with_its_own_care_of_address_a_mobile_node_waits_for_its_address_only() {
    let plan = Scenario::plan("co-located", CO_LOCATED, &[], 5920).unwrap();
    let outcome = crate::run::simulate(plan).unwrap();
    assert_eq!(outcome.doubts, [], "{}", crate::report::text(&outcome));
}

/// A source of datagrams sends the next one after the address is ready, also if the home agent registers the mobile node before.
#[test]
fn a_source_with_its_own_care_of_address_does_not_wait_for_the_registration() {
    let source = r#"{ kind = "apps/constant-rate", to = "fixed:7000", rate = 20, size = 200, start = "2s", stop = "7s" }"#;
    let client = CO_LOCATED.lines().find(|line| line.contains("apps/request-client")).unwrap();
    let text = CO_LOCATED
        .replace("\"apps/request-server\", at = \"fixed:9016\"", "\"apps/sink\", at = \"fixed:7000\"")
        .replace(client.trim().trim_end_matches(','), source);
    for phase in [0, 20, 40, 60, 80] {
        let move_at = |at: u32| format!("{{ at = \"{}ms\", to", at + phase);
        let text = text
            .replace(r#"{ at = "4092ms", to"#, &move_at(4005))
            .replace(r#"{ at = "4484ms", to"#, &move_at(5005))
            .replace(r#"{ at = "4611ms", to"#, &move_at(6005));
        let plan = Scenario::plan("co-located", &text, &[], 5920).unwrap();
        let outcome = crate::run::simulate(plan).unwrap();
        let report = crate::report::text(&outcome);
        assert_eq!(outcome.doubts, [], "{report}");
        let outages = outcome.handoffs.iter().flat_map(|handoff| &handoff.flows);
        let outages: Vec<_> = outages.filter_map(|cost| cost.experience.outage()).collect();
        assert!(!outages.is_empty(), "{report}");
        for owner in outages.iter().flat_map(|outage| &outage.owners) {
            assert!(owner.stage != Some(Stage::Registration), "{}", owner.name());
        }
    }
}
