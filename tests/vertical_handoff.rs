//! Simulated runs of a mobile node with a wireless LAN and a satellite terminal: a drive of 20 minutes.

#[path = "support/exchanged_radios.rs"]
mod exchanged_radios;

use exchanged_radios::EXCHANGED_RADIOS;
use recorder::handoff::{FlowCost, Handoff};
use recorder::run::Outcome;
use scenario::{Scenario, Setting};
use trace::{Record, What};
use wire::{Duration, Instant};

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

/// The first five changes of the interface.
const FIRST: [&str; 3] = ["duration=345s", "constant-rate.stop=343s", "bulk-server.duration=300s"];

fn run_first(settings: &[&str]) -> Outcome {
    run(&[&FIRST[..], settings].concat())
}

/// Returns the first five changes with the reason `left` in place of the weak signal.
fn first(left: &str) -> Vec<String> {
    DRIVE[..5].iter().map(|change| change.replace("weak_signal", left)).collect()
}

/// The truck leaves the wireless LAN before its link is lost, and makes before it breaks: no datagram is lost in 20 minutes.
/// The download continues by both interfaces.
#[test]
fn a_drive_of_20_minutes_loses_nothing() {
    let outcome = run(&[]);
    assert_eq!(changes(&outcome.records), DRIVE);
    assert_eq!(lost(&outcome), [0; 10]);
    assert_eq!(outcome.handoffs.len(), 10, "the moves between cells of a radio are no handoffs");
    let [datagrams, download] = outcome.flows.as_slice() else { panic!("{:?}", outcome.flows) };
    assert_eq!((datagrams.lost, download.lost), (0, 0));
    assert_eq!(datagrams.bytes, 160 * (50 * 1194 + 1));
    assert!(download.longest_stall < Duration::from_secs(1), "{:?}", download.longest_stall);
    let read = |from: u64, to: u64| {
        let [from, to] = [from, to].map(|at| Instant::from_millis(at * 1000));
        let arrivals = download.arrivals.iter().filter(|arrival| (from..to).contains(&arrival.at));
        arrivals.map(|arrival| arrival.bytes).sum::<u64>() / to.since(from).as_secs()
    };
    let [home, mine, town] = [read(10, 120), read(400, 800), read(190, 240)];
    assert!(home > 2 * mine && town > 2 * mine && mine > 40_000, "{home} {mine} {town} bytes/s");
}

/// Without a limit of the signal, the truck notices the end of the wireless LAN by its lost link. Then datagrams are lost until the
/// registration by satellite, about 270 ms, and the 100 ms between two reports of the radio. When it comes back to the wireless
/// LAN, nothing is lost.
#[test]
fn a_lost_link_costs_the_time_of_a_registration_by_satellite() {
    let outcome = run_first(&["mobile-node.weakest_signal=-94"]);
    assert_eq!(changes(&outcome.records), first("link_down"));
    let lost = lost(&outcome);
    let (leaves, returns) = (lost.iter().step_by(2), lost.iter().skip(1).step_by(2));
    assert!(leaves.clone().all(|lost| (14..=20).contains(lost)) && returns.sum::<u64>() == 0, "{lost:?}");
}

/// A node that uses one interface at a time loses what is under way on the old path, in both directions.
#[test]
fn break_before_make_loses_what_is_under_way() {
    let outcome = run_first(&["mobile-node.make_before_break=false"]);
    assert_eq!(changes(&outcome.records), DRIVE[..5]);
    let lost = lost(&outcome);
    assert!(lost.iter().all(|lost| (13..=20).contains(lost)), "{lost:?}");
    let is_its =
        |record: &&Record| matches!(&record.what, What::Dropped(_, _, why) if why == "interface_not_in_use");
    assert!(outcome.records.iter().filter(is_its).count() > 70);
}

/// With simultaneous bindings, the packets still arrive by satellite when the wireless LAN is lost. At the dealership, the truck is
/// at home, and has no binding: there it loses packets.
#[test]
fn simultaneous_bindings_bridge_a_lost_link() {
    let outcome = run_first(&["mobile-node.weakest_signal=-94", "mobile-node.simultaneous_bindings=true"]);
    assert_eq!(changes(&outcome.records), first("link_down"));
    let lost = lost(&outcome);
    assert!(lost[0] >= 14 && lost[1..].iter().sum::<u64>() == 0, "{lost:?}");
    assert!(outcome.ledger.copied > 1000, "the home agent sends copies");
}

/// A mobile node that is at home by its further interface has its home address there: it answers ARP when the entries of its
/// neighbors have ended. When it has left home, it is found at its care-of address, and at home again when it comes back.
#[test]
fn a_node_at_home_by_its_further_interface_answers_for_its_address() {
    for home in
        ["[[\"0s\", -60]]", "[[\"0s\", -60], [\"40s\", -60], [\"45s\", -98], [\"60s\", -98], [\"62s\", -60]]"]
    {
        let course = format!("host.truck.course.2={home}");
        let far = "host.truck.course.3=[[\"0s\", -98]]";
        let ends = ["duration=118s", "constant-rate.stop=116s", "bulk-server.duration=100s"];
        let outcome = run(&[&[EXCHANGED_RADIOS, &course, far][..], &ends].concat());
        let leaves = home.contains("-98");
        // The first agent that it hears is its home agent.
        let expected: &[&str] = if leaves { &["air weak_signal", "air2 preferred_interface"] } else { &[] };
        assert_eq!(changes(&outcome.records), expected);
        let [datagrams, download] = outcome.flows.as_slice() else { panic!("{:?}", outcome.flows) };
        assert_eq!((datagrams.lost, download.lost, datagrams.bytes), (0, 0, 160 * (50 * 115 + 1)), "{home}");
    }
}

/// The mobile node is at home by its further interface, and the home agent cannot store bindings any more when a preferred interface
/// finds a foreign agent. So it goes back home at once, and tries again each minute.
const HOME_IS_FURTHER: &str = r#"
about = "at home by the further interface, and a home agent that cannot store"
duration = "100s"
[wire.internet]
ends = ["correspondent", "home"]
rate = "100Mb/s"
delay = "5ms"
net = "10.0.0.0/24"
[wire.to-a]
ends = ["home", "a"]
rate = "100Mb/s"
delay = "1ms"
net = "10.0.2.0/24"
[cell.1]
station = "home"
rate = "2Mb/s"
net = "10.1.0.0/24"
[cell.2]
station = "a"
rate = "2Mb/s"
net = "10.2.0.0/24"
[mobile-ip]
key = "000102030405060708090a0b0c0d0e0f"
[host.correspondent]
role = [{ kind = "apps/constant-rate", to = "mobile:7000", rate = 20, size = 100, start = "2s", stop = "98s" }]
[host.home]
role = [{ kind = "mobile-ip/home-agent" }]
[host.a]
role = [{ kind = "mobile-ip/foreign-agent" }]
[host.mobile]
address = "10.1.0.7"
radios = 2
role = [
    { kind = "mobile-ip/mobile-node", lifetime = "20s", preference = 1, weakest_signal = -80, further_interfaces = [
        { name = "air2", preference = 0 },
    ] },
    { kind = "apps/roam", places = [{ name = "a", cell = 2 }], handoffs = false },
    { kind = "apps/roam", interface = "air2", places = [{ name = "home", cell = 1 }], handoffs = false },
    { kind = "apps/sink", at = "mobile:7000" },
]
[host.mobile.course]
1 = [["0s", -60]]
2 = [["0s", -98], ["8s", -98], ["9s", -60]]
[[event]]
at = "5s"
kind = "disk-full"
host = "home"
"#;

/// `at` is the time of the full disk: before the first registration away from home, or before a renewal.
#[test]
fn without_a_registration_a_node_goes_home_if_the_home_agent_lacks_resources() {
    for at in ["5s", "15s"] {
        let text = HOME_IS_FURTHER.replace("at = \"5s\"", &format!("at = \"{at}\""));
        let outcome =
            recorder::run::simulate(Scenario::plan("further.toml", &text, &[], 1).unwrap()).unwrap();
        let changes = changes(&outcome.records);
        assert_eq!(changes[..2], ["air preferred_interface", "air2 denied"], "{at}");
        assert_eq!(outcome.flows[0].lost, 0, "{at}: {changes:?}");
    }
}

/// Both interfaces are on the home link: the node stays at the preferred one, although its requests are denied.
#[test]
fn a_node_at_home_stays_there_if_the_home_agent_lacks_resources() {
    let text = HOME_IS_FURTHER
        .replace("name = \"a\", cell = 2", "name = \"home\", cell = 1")
        .replace("\"5s\"", "\"1ms\"");
    let outcome = recorder::run::simulate(Scenario::plan("further.toml", &text, &[], 1).unwrap()).unwrap();
    assert_eq!((changes(&outcome.records), outcome.flows[0].lost), (vec![], 0));
}
