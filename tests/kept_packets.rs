//! Packets that a foreign agent keeps for its visitors, in the simulator. A mobile node moves between foreign networks, and its
//! previous agent sends what it has kept to its new care-of address.

use recorder::run::Outcome;
use scenario::{Scenario, Setting};
use trace::What;
use wire::Instant;

/// Runs the scenario of smooth handoffs with these settings.
fn run(settings: &[&str]) -> Outcome {
    let (file, text) = Scenario::find("mobile-ip/smooth-handoff").unwrap();
    let settings: Vec<Setting> = settings.iter().map(|setting| setting.parse().unwrap()).collect();
    let plan = Scenario::plan(&file, &text, &settings, 1).unwrap();
    let outcome = recorder::run::simulate(plan).unwrap();
    assert_eq!(outcome.doubts, [], "{settings:?}");
    outcome
}

/// The wires of a network of 1 ms.
const LAN: [&str; 5] = [
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

/// With a ring of eight packets, the previous agent has all packets of 50 per second that were sent to the empty place.
#[test]
fn a_ring_of_eight_loses_no_packet_of_a_slow_flow() {
    let flow = "host.correspondent.role.0.rate=50";
    let of = |more: &[&str]| run(&[&LAN[..], &[flow], more].concat());
    let without = of(&[]);
    let moves = marks(&without, "visitor_departed").count();
    assert_eq!(moves, 4, "each move is a smooth handoff");
    assert!(lost(&without) > 0, "without a buffer, packets are lost");
    for drain in ["at-once", "paced"] {
        let with = of(&["mobile-ip.buffer.packets=8", &format!("mobile-ip.buffer.drain=\"{drain}\"")]);
        assert_eq!(marks(&with, "kept_sent").count(), 4);
        assert_eq!(lost(&with), 0, "{drain}: {:?}", with.ledger.dropped);
    }
}
