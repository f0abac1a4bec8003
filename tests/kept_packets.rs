//! Packets that a foreign agent keeps for its visitors, in the simulator. A mobile node moves between foreign networks, and its
//! previous agent sends what it has kept to its new care-of address.

use recorder::run::Outcome;
use scenario::{Scenario, Setting};
use std::collections::BTreeSet;
use trace::What;
use wire::{Duration, Instant, PacketId};

const SCENARIO: &str = include_str!("../scenarios/mobile-ip/smooth-handoff.toml");

/// Runs a scenario in the network of 1 ms. `buffer` is the table of this name, or an empty text.
fn run(text: &str, buffer: &str) -> Outcome {
    let smooth = "smooth_handoff = true\n";
    let table = if buffer.is_empty() { String::new() } else { format!("buffer = {buffer}\n") };
    let text = text.replace(smooth, &format!("{smooth}{table}"));
    let settings: Vec<Setting> = LAN.iter().map(|setting| setting.parse().unwrap()).collect();
    let plan = Scenario::plan("smooth-handoff.toml", &text, &settings, 1).unwrap();
    let outcome = recorder::run::simulate(plan).unwrap();
    assert_eq!(outcome.doubts, [], "{buffer}");
    outcome
}

/// The wires of a network of 1 ms, and a radio that changes cells in 50 ms.
const LAN: [&str; 6] = [
    "radio.retune=50ms",
    "wire.internet.delay=500us",
    "wire.far.delay=500us",
    "wire.to-a.delay=500us",
    "wire.to-b.delay=500us",
    "wire.to-c.delay=500us",
];

fn marks<'a>(outcome: &'a Outcome, name: &'a str) -> impl Iterator<Item = Instant> + 'a {
    outcome.records.iter().filter_map(move |record| match &record.what {
        What::Marked(mark) if mark.name == name => Some(record.at),
        _ => None,
    })
}

fn lost(outcome: &Outcome) -> u64 {
    outcome.flows.iter().map(|flow| flow.lost).sum()
}

/// A radio loses datagrams, and the agents still keep copies of them when the run ends. What the application did not get is lost.
#[test]
fn a_kept_copy_of_a_lost_datagram_does_not_arrive_after_the_end_of_the_run() {
    let settings = ["cell.2.loss=0.1", "cell.3.loss=0.1", "mobile-ip.buffer={ packets = 64 }"];
    let settings: Vec<Setting> = settings.iter().map(|setting| setting.parse().unwrap()).collect();
    let plan = Scenario::plan("smooth-handoff.toml", SCENARIO, &settings, 1).unwrap();
    let outcome = recorder::run::simulate(plan).unwrap();
    let ids = |of: fn(&What) -> Option<PacketId>| -> BTreeSet<PacketId> {
        outcome.records.iter().filter_map(|record| of(&record.what)).collect()
    };
    let sent = ids(|what| if let What::AppSent(id) = what { Some(*id) } else { None });
    let got = ids(|what| if let What::AppReceived(id) = what { Some(*id) } else { None });
    let held = ids(|what| if let What::Held(_, id) = what { Some(*id) } else { None });
    let missing: BTreeSet<PacketId> = sent.difference(&got).copied().collect();
    assert!(missing.intersection(&held).count() > 0, "{missing:?} {held:?}");
    assert_eq!(lost(&outcome), missing.len() as u64);
}

/// With a ring of eight packets, the previous agent has all packets of 50 per second that were sent to the empty place.
#[test]
fn a_ring_of_eight_loses_no_packet_of_a_slow_flow() {
    let text = SCENARIO.replace("rate = 100, size", "rate = 50, size");
    let without = run(&text, "");
    assert_eq!(marks(&without, "forwarding_begun").count(), 4, "each move is a smooth handoff");
    assert!(
        lost(&without) >= 8,
        "without a buffer, two packets or more of each move are lost: {}",
        lost(&without)
    );
    let one = run(&text, "{}");
    assert!(lost(&one) < lost(&without), "{} of {}", lost(&one), lost(&without));
    for drain in ["at-once", "paced"] {
        let with = run(&text, &format!("{{ packets = 8, drain = \"{drain}\" }}"));
        assert_eq!(marks(&with, "kept_sent").count(), 4);
        assert_eq!(lost(&with), 0, "{drain}: {:?}", with.ledger.dropped);
        assert_eq!(with.ledger.dropped.get("kept_visit_ended"), None);
    }
}

/// The agent paces the packets more slowly than they arrive. When the entry ends, all that waits leaves at once, and arrives at the new
/// agent after the time for which the mobile node has asked.
#[test]
fn what_leaves_at_the_end_of_the_entry_arrives() {
    let node = r#"{ kind = "mobile-ip/mobile-node" }"#;
    let text = SCENARIO.replace(node, r#"{ kind = "mobile-ip/mobile-node", cache_lifetime = "2s" }"#);
    let outcome = run(&text, r#"{ packets = 50, drain = "paced", rate = "20kb/s" }"#);
    assert_eq!(marks(&outcome, "forwarding_begun").count(), 4);
    assert_eq!(outcome.ledger.dropped.get("not_a_visitor"), None, "{:?}", outcome.ledger.dropped);
}

/// The text of the scenario with a download, and one move that the mobile node detects when its agent's advertisements expire.
fn download() -> String {
    let workload = SCENARIO.lines().find(|line| line.contains("apps/constant-rate")).unwrap();
    let moves = SCENARIO.split("moves = [").nth(1).unwrap().split("] },").next().unwrap();
    SCENARIO
        .replace(
            workload,
            r#"role = [{ kind = "apps/bulk-server", at = "correspondent:9000", bytes = 2_000_000 }]"#,
        )
        .replace(moves, r#"{ at = "5.013s", to = "b" }"#)
        .replace(
            r#"{ kind = "apps/sink", at = "mobile:7000" }"#,
            r#"{ kind = "apps/bulk-client", to = "correspondent:9000", start = "3s" }"#,
        )
        .replace(
            r#"{ kind = "mobile-ip/mobile-node" }"#,
            r#"{ kind = "mobile-ip/mobile-node", link_trigger = false, movement = "lcs" }"#,
        )
}

/// Returns the time from the request through the new agent until the first new data at the client.
fn resumes(buffer: &str) -> Duration {
    let outcome = run(&download(), buffer);
    let moved = Instant::from_millis(5013);
    let asked = marks(&outcome, "request_sent").find(|at| *at > moved).unwrap();
    let first = outcome.flows.iter().flat_map(|flow| &flow.arrivals).map(|arrival| arrival.at);
    first.filter(|at| *at > asked).min().unwrap().since(asked)
}

/// The paper's result: the acknowledgment of the kept packet makes the sender retransmit at once. Without it, the sender waits for
/// its retransmission timer, which has doubled during the move.
#[test]
fn tcp_resumes_as_soon_as_the_kept_packet_is_acknowledged() {
    let without = resumes("");
    let with = resumes("{}");
    println!("first new data after the request: {without:?} without a buffer, {with:?} with one packet");
    assert!(with < Duration::from_millis(100), "{with:?}");
    assert!(without > 3 * with, "{without:?}");
}
