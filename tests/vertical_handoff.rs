//! Simulated runs of a mobile node with a wireless LAN and a satellite terminal: a drive of 20 minutes.

use recorder::handoff::{FlowCost, Handoff};
use recorder::run::Outcome;
use scenario::{Scenario, Setting};
use trace::{Record, What};

const SCENARIO: &str = include_str!("../scenarios/mobile-ip/overlay.toml");

/// The changes of the interface in the order of the drive: the interface and the reason.
const DRIVE: [&str; 10] = [
    "air2 weak_signal",
    "air preferred_interface",
    "air2 weak_signal",
    "air preferred_interface",
    "air2 weak_signal",
    "air preferred_interface",
    "air2 weak_signal",
    "air preferred_interface",
    "air2 weak_signal",
    "air preferred_interface",
];

fn run(settings: &[&str]) -> Outcome {
    let settings: Vec<Setting> = settings.iter().map(|text| text.parse().unwrap()).collect();
    let plan = Scenario::plan("overlay.toml", SCENARIO, &settings, 1).unwrap();
    let outcome = recorder::run::simulate(plan).unwrap();
    assert_eq!(outcome.doubts, []);
    assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
    assert!(outcome.ledger.balances());
    outcome
}

/// Returns the lost datagrams of each change of the interface.
fn lost(outcome: &Outcome) -> Vec<u64> {
    let of = |handoff: &Handoff| handoff.flows.iter().filter(|cost| cost.flow == 0).map(FlowCost::lost).sum();
    outcome.handoffs.iter().filter(|handoff| handoff.kind == "interface").map(of).collect()
}

/// Returns the changes of the interface: the new one and the reason.
fn changes(records: &[Record]) -> Vec<String> {
    let change = |record: &Record| match &record.what {
        What::Marked(mark) if mark.name == node::HANDOFF => {
            let field = |name| mark.fields.iter().find(|(key, _)| *key == name).unwrap().1.as_text().unwrap();
            Some(format!("{} {}", field("to"), field("why")))
        }
        _ => None,
    };
    records.iter().filter_map(change).collect()
}

#[test]
fn a_drive_of_20_minutes() {
    let outcome = run(&[]);
    println!("{:?} {:?} {:?}", changes(&outcome.records), lost(&outcome), outcome.flows.iter().map(|f| (f.bytes, f.lost, f.longest_stall, f.retransmissions)).collect::<Vec<_>>());
    assert_eq!(changes(&outcome.records), DRIVE);
}
