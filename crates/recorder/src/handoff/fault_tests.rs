//! Tests of faults that the flow does not notice, and of faults before the cut of a handoff.

use super::Experience;
use crate::run::{Outcome, simulate};
use scenario::Scenario;
use wire::{Duration, Instant};

/// A host `lap` with a wire and, if `ROLE` moves it, a radio. It sends questions to `cor`. No other host uses the
/// wire `spare`.
const WIRES: &str = r#"about = "a laptop asks a server over a router"
duration = "20s"
[wire.inet]
ends = ["cor", "core"]
rate = "100Mb/s"
delay = "2ms"
net = "10.0.0.0/24"
[wire.desk]
ends = ["core", "lap"]
rate = "100Mb/s"
delay = "DESK"
net = "10.0.1.0/24"
[wire.spare]
ends = ["core", "a"]
rate = "100Mb/s"
delay = "1ms"
net = "10.0.2.0/24"
[cell.2]
station = "a"
rate = "2Mb/s"
net = "10.2.0.0/24"
[radio]
retune = "5ms"
[host.cor]
role = [{ kind = "apps/request-server", at = "cor:8000" }]
[host.core]
[host.a]
[host.lap]
COURSE
role = [
    ROLE
    { kind = "apps/request-client", to = "cor:8000", start = "1s", QUESTIONS },
]
"#;

const ROAM: &str = r#"{ kind = "apps/roam", start = "a", moves = [] },"#;
const LARGE: &str = r#"every = "2s", question = 50000, answer = 100"#;

fn run(text: &str) -> Outcome {
    simulate(Scenario::plan("wires.toml", text, &[], 1).unwrap()).unwrap()
}

/// Runs [`WIRES`] with values for its words in capitals, and with events.
fn wires(values: [&str; 4], events: &[(&str, &str, &str)]) -> Outcome {
    let words = ["DESK", "COURSE", "ROLE", "QUESTIONS"].into_iter().zip(values);
    let text = words.fold(WIRES.to_owned(), |text, (word, value)| text.replace(word, value));
    run(&(text + &events_of(events)))
}

fn events_of(events: &[(&str, &str, &str)]) -> String {
    let event = |(at, kind, place): &(&str, &str, &str)| {
        format!("[[event]]\nat = \"{at}\"\nkind = \"{kind}\"\n{place}\n")
    };
    events.iter().map(event).collect()
}

/// Asserts that the flows lost nothing and waited for less than a window, and that the run has no hole.
fn assert_no_hole(outcome: &Outcome) {
    let report = crate::report::text(outcome);
    assert!(
        outcome.flows.iter().all(|flow| flow.lost == 0 && flow.longest_stall < Duration::from_secs(1)),
        "{report}"
    );
    assert_eq!(outcome.holes, [], "{report}");
}

/// The radio of a host stays out of reach. The host uses its wire.
#[test]
fn a_radio_that_the_flow_does_not_use_is_the_cause_of_no_hole() {
    let course = r#"course.2 = [["0s", -50], ["5s", -50], ["5s", -120], ["20s", -120]]"#;
    let asks = r#"every = "2s", answer = 50000, exchanges = 100000"#;
    assert_no_hole(&wires(["1ms", course, ROAM, asks], &[]));
}

/// A wire of a router that the flow passes is cut while the source pauses. The flow does not use this wire.
#[test]
fn a_cut_wire_that_the_flow_does_not_use_is_the_cause_of_no_hole() {
    let cut = [("8s", "cut", "wire = \"spare\""), ("11.05s", "restore", "wire = \"spare\"")];
    assert_no_hole(&wires(["100ms", "", ROAM, r#"every = "5s", question = 50000, answer = 100"#], &cut));
}

/// A router is stopped while the source pauses. A hole begins when data are due: not before the question at 7 s.
#[test]
fn a_pause_of_the_source_is_no_part_of_a_hole() {
    let stop = |until| [("5.5s", "stop", "host = \"core\""), (until, "continue", "host = \"core\"")];
    assert_no_hole(&wires(["1ms", "", ROAM, LARGE], &stop("7.003s")));
    let outcome = wires(["1ms", "", ROAM, LARGE], &stop("7.6s"));
    let report = crate::report::text(&outcome);
    assert_eq!(outcome.holes.len(), 2, "answers and questions: {report}");
    for hole in &outcome.holes {
        assert!((Instant::from_millis(7_000)..Instant::from_millis(7_010)).contains(&hole.from), "{report}");
        assert!(hole.experience.millis().is_some_and(|ms| (590.0..700.0).contains(&ms)), "{report}");
        assert!(
            hole.experience.outage().unwrap().span() <= outcome.flows[hole.flow].longest_stall,
            "{report}"
        );
    }
}

/// A router that is stopped crashes, and is restarted. It is not stopped any more when a wire is cut.
#[test]
fn a_crash_ends_a_stop() {
    let host = "host = \"core\"";
    let wire = "wire = \"desk\"";
    let events = [("3s", "stop", host), ("3.2s", "crash", host), ("3.4s", "restart", host)];
    let cut = [("10.9s", "cut", wire), ("12s", "restore", wire)];
    let report = crate::report::text(&wires(["1ms", "", ROAM, LARGE], &[&events[..], &cut].concat()));
    assert!(report.contains("cut of wire desk") && !report.contains("not_ended"), "{report}");
}

/// A radio is out of reach of its cell when a flow begins. The station waits for an answer to ARP, and keeps the
/// first packets until the radio is back.
#[test]
fn a_wait_for_a_radio_that_loses_nothing_is_a_hole() {
    let outcome = run(RADIO);
    let report = crate::report::text(&outcome);
    let [hole] = outcome.holes.as_slice() else { panic!("{report}") };
    assert_eq!((outcome.flows[0].lost, hole.lost), (0, 0), "{report}");
    assert!(hole.experience.millis().is_some_and(|ms| (500.0..1_100.0).contains(&ms)), "{report}");
    assert_eq!(hole.experience.outage().unwrap().owners[0].ends, "up", "{report}");
}

const RADIO: &str = r#"about = "a radio is out of reach from 2 s to 3.5 s"
duration = "10s"
[wire.inet]
ends = ["cor", "home"]
rate = "100Mb/s"
delay = "1ms"
net = "10.0.0.0/24"
[cell.1]
station = "home"
rate = "2Mb/s"
net = "10.1.0.0/24"
[radio]
retune = "5ms"
[host.cor]
role = [{ kind = "apps/constant-rate", to = "m:7000", rate = 50, size = 200, start = "3s", stop = "8s" }]
[host.home]
[host.m]
address = "10.1.0.7"
course.1 = [["0s", -50], ["2s", -50], ["2s", -120], ["3.5s", -120], ["3.5s", -50]]
role = [
    { kind = "apps/roam", start = "home", follow = 3 },
    { kind = "apps/sink", at = "m:7000" },
]
"#;

/// A mobile node decides to change its agent at 4.1 s, and the home agent accepts this at 7.1 s. In between, the wire
/// of the earlier agent is cut for 1 s.
#[test]
fn a_wait_between_a_decision_and_the_cut_is_a_hole() {
    let outcome = run(OVERLAP);
    let report = crate::report::text(&outcome);
    let [hole] = outcome.holes.as_slice() else { panic!("{report}") };
    assert!(outcome.handoffs[0].begun < hole.from && outcome.handoffs[0].cut > hole.from, "{report}");
    assert!(hole.experience.millis().is_some_and(|ms| (1_000.0..1_010.0).contains(&ms)), "{report}");
    let cost = &outcome.handoffs[0].flows[0];
    assert_eq!((cost.lost(), hole.lost, outcome.flows[0].lost), (0, 50, 50), "{report}");
    assert_eq!(cost.experience, Experience::None, "{report}");
    assert!(report.contains("cut of wire wa .. restore of wire wa at router"), "{report}");
}

const OVERLAP: &str = r#"about = "a mobile node downloads over TCP and walks through the overlap of two networks: is a packet lost?"
duration = "12s"
[wire.internet]
ends = ["correspondent", "router"]
rate = "10Mb/s"
delay = "1ms"
net = "10.0.0.0/24"
[wire.left]
ends = ["router", "home"]
rate = "10Mb/s"
delay = "1ms"
mtu = 1520
net = "10.0.1.0/24"
[wire.right]
ends = ["router", "foreign"]
rate = "10Mb/s"
delay = "1ms"
mtu = 1520
net = "10.0.2.0/24"
[wire.wa]
ends = ["router", "a"]
rate = "10Mb/s"
delay = "1ms"
net = "10.0.3.0/24"
[cell.3]
station = "home"
rate="2Mb/s"
net = "10.1.0.0/24"
[cell.1]
station = "a"
rate = "2Mb/s"
channel = 6
net = "10.3.0.0/24"
[cell.2]
station = "foreign"
rate = "2Mb/s"
channel = 6
net = "10.2.0.0/24"
[radio]
retune = "5ms"
hears = "channel"
[mobile-ip]
key = "000102030405060708090a0b0c0d0e0f"
[host.correspondent]
tcp = { profile = "linux", congestion = "reno", recovery = ["rack", "prr"] }
role = [{ kind = "apps/constant-rate", to = "mobile:7000", rate = 50, size = 200, start = "2s", stop = "10s" }]
[host.router]
[host.home]
role = [{ kind = "mobile-ip/home-agent", tunnel_mtu = 1500 }]
[host.a]
role = [{ kind = "mobile-ip/foreign-agent" }]
[host.foreign]
role = [{ kind = "mobile-ip/foreign-agent" }]
[host.mobile]
address = "10.1.0.7"
tcp = { receive_buffer = 32768 }
role = [
    { kind = "mobile-ip/mobile-node", movement = "ecs", home_first = false, link_trigger = false },
    { kind = "apps/roam", start = "a", moves = [] },
    { kind = "apps/sink", at = "mobile:7000" },
]
# Both cells are in reach for 2 s.
[host.mobile.course]
1 = [["0s", -60], ["8.5s", -60], ["8.5s", -120]]
2 = [["0s", -120], ["3.5s", -120], ["3.5s", -62], ["12s", -62]]
[[event]]
at = "3.6s"
kind = "cut"
wire = "right"
[[event]]
at = "6.1s"
kind = "restore"
wire = "right"
[[event]]
at = "4.5s"
kind = "cut"
wire = "wa"
[[event]]
at = "5.5s"
kind = "restore"
wire = "wa"
"#;

/// The Binding Update after a move is lost at a cut wire. The causes of the outage are the same with other numbers.
#[test]
fn a_lost_binding_update_is_known_by_the_numbers_of_the_run() {
    let (_, text) = Scenario::find("mobile-ip/route-optimization").unwrap();
    let set = |text: &str| {
        let kinds = ["correspondent", "home-agent", "foreign-agent", "mobile-node"];
        let kinds = kinds.map(|kind| format!("kind = \"mobile-ip/{kind}\""));
        kinds.iter().fold(text.to_owned(), |text, kind| {
            text.replace(kind, &format!("{kind}, numbers = {{ update = 88, acknowledge = 89 }}"))
        })
    };
    for cut in ["7.34s", "7.36s", "7.38s", "7.4s", "7.42s"] {
        let place = "wire = \"internet\"";
        let text = format!("{text}\n{}", events_of(&[(cut, "cut", place), ("8.5s", "restore", place)]));
        let [default, other] = [&text, &set(&text)].map(|text| run(text));
        assert!(!default.handoffs.is_empty());
        assert_eq!(format!("{:?}", default.handoffs), format!("{:?}", other.handoffs), "cut at {cut}");
        assert_eq!(default.holes, other.holes, "cut at {cut}");
    }
}
