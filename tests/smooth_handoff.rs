//! Simulated runs of smooth handoffs: previous foreign agents forward the packets that still arrive for a mobile node.

use recorder::run::Outcome;
use scenario::{Repetition, Scenario, Setting};
use std::collections::{BTreeMap, BTreeSet};
use trace::{Record, What};

pub(crate) const SCENARIO: &str = include_str!("../scenarios/mobile-ip/smooth-handoff.toml");

/// Runs the scenario with these replacements of parts of its text, and these settings.
pub(crate) fn run(changes: &[(&str, &str)], settings: &[&str]) -> Outcome {
    run_text(&changed(changes), settings)
}

fn changed(changes: &[(&str, &str)]) -> String {
    let mut text = SCENARIO.to_owned();
    for (old, new) in changes {
        assert!(text.contains(old), "{old}");
        text = text.replace(old, new);
    }
    text
}

pub(crate) fn event(at_ms: u64, kind: &str, rest: &str) -> String {
    format!("\n[[event]]\nat = \"{at_ms}ms\"\nkind = \"{kind}\"\n{rest}\n")
}

/// Runs the scenario as [`run`] does, in this phase.
fn run_in(changes: &[(&str, &str)], settings: &[&str], phase: Repetition) -> Outcome {
    run_text_in(&changed(changes), settings, phase)
}

/// Returns six phases: in each, the moves and the workload begin at other points of the periods of all others.
fn phases() -> impl Iterator<Item = Repetition> {
    (0..6).map(|number| Repetition { number, of: 6, seed: 1 })
}

pub(crate) fn run_text(text: &str, settings: &[&str]) -> Outcome {
    run_text_in(text, settings, Repetition::only(1))
}

fn run_text_in(text: &str, settings: &[&str], phase: Repetition) -> Outcome {
    let settings: Vec<Setting> = settings.iter().map(|text| text.parse().unwrap()).collect();
    let plan = Scenario::repetition("smooth-handoff.toml", text, &settings, 1, phase).unwrap();
    let outcome = recorder::run::simulate(plan).unwrap();
    assert_eq!(outcome.doubts, []);
    assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
    outcome
}

/// Returns the number of lost packets for each handoff.
pub(crate) fn lost(outcome: &Outcome) -> Vec<u64> {
    let of = |handoff: &recorder::handoff::Handoff| {
        handoff.flows.iter().map(recorder::handoff::FlowCost::lost).sum()
    };
    outcome.handoffs.iter().map(of).collect()
}

/// Returns the number of dropped and lost packets, by reason.
pub(crate) fn reasons(records: &[Record]) -> BTreeMap<&str, u64> {
    let mut all = BTreeMap::new();
    for record in records {
        if let What::Dropped(_, _, why) | What::Lost(_, _, why) = &record.what {
            *all.entry(why.as_ref()).or_default() += 1;
        }
    }
    all
}

pub(crate) fn marks(outcome: &Outcome, name: &str) -> usize {
    let is = |record: &&Record| matches!(&record.what, What::Marked(mark) if mark.name == name);
    outcome.records.iter().filter(is).count()
}

/// The packets that are under way to the previous agent need about 80 ms to be redirected by the home agent. That agent
/// forwards them instead. Only those are lost that it sent to the visited link after the move, and before the update: for
/// about 10 ms. The moves are a chain of three agents, and a return to the first one.
#[test]
fn a_previous_agent_forwards_what_is_under_way() {
    for phase in phases() {
        let smooth = run_in(&[], &[], phase);
        let without = run_in(&[], &["mobile-ip.smooth_handoff=false"], phase);
        assert_eq!((smooth.handoffs.len(), without.handoffs.len()), (4, 4));
        assert!(lost(&without).iter().all(|lost| (7..=11).contains(lost)), "{:?}", lost(&without));
        assert!(lost(&smooth).iter().all(|lost| *lost <= 2), "{:?}", lost(&smooth));
        assert_eq!(marks(&smooth, "forwarding_begun"), 4);
        assert_eq!(marks(&smooth, "update_acknowledged"), 4);
        assert_eq!(marks(&smooth, "update_repeated"), 0, "each acknowledgement arrives within a second");
        assert_eq!((marks(&without, "update_sent"), marks(&without, "previous_agent_named")), (0, 0));
        assert!(!reasons(&smooth.records).contains_key("ttl_expired"), "no packet circles");
    }
}

/// Agents and mobile nodes with other numbers than the default understand each other as well, and use no number of the default.
#[test]
fn a_handoff_works_with_other_numbers() {
    const NUMBERS: &str = "numbers = { warning = 50, request = 51, update = 52, acknowledge = 53, buffer_control = 54, ip_filter = 201, \
         warning_extension = 60, previous_agent = 97, route_authentication = 240, smooth_authentication = 241, smooth_flag = 16, \
         private_flag = 4, vendor_extension = 150, vendor = 4711, vendor_key = 9 }";
    let roles = ["home-agent", "foreign-agent", "mobile-node", "correspondent"];
    let sender = r#"[{ kind = "apps/constant-rate""#;
    let with_cache =
        changed(&[(sender, r#"[{ kind = "mobile-ip/correspondent" }, { kind = "apps/constant-rate""#)]);
    for text in [SCENARIO.to_owned(), with_cache] {
        let mut other = text.clone();
        for role in roles.map(|role| format!("kind = \"mobile-ip/{role}\"")) {
            other = other.replace(&role, &format!("{role}, {NUMBERS}"));
        }
        let [usual, other] = [text, other].map(|text| run_text(&text, &["mobile-ip.buffer={}"]));
        assert_eq!(lost(&usual), lost(&other));
        for name in ["forwarding_begun", "update_acknowledged", "binding_learnt", "kept_sent"] {
            assert_eq!(marks(&usual, name), marks(&other, name), "{name}");
        }
        let types: BTreeSet<u8> = messages(&other).collect();
        let usual: BTreeSet<u8> = messages(&usual).collect();
        let shifted = usual.iter().map(|kind| if (16..=20).contains(kind) { kind + 34 } else { *kind });
        assert_eq!(types, shifted.collect());
        assert!(types.contains(&52) && types.contains(&53), "{types:?}");
    }
}

/// Returns the types of the messages of Mobile IP that hosts sent.
fn messages(outcome: &Outcome) -> impl Iterator<Item = u8> {
    outcome.records.iter().filter_map(|record| match &record.what {
        What::Sent(_, packet) => match packet.bytes.get(..29)? {
            [0x45, .., 0x01, 0xb2, _, _, _, _, kind] if packet.bytes[9] == 17 => Some(*kind),
            _ => None,
        },
        _ => None,
    })
}

/// The first move is from home: there is no previous agent. The last move leads home: the previous agent is notified by the
/// mobile node itself.
#[test]
fn a_mobile_node_that_leaves_home_or_returns_names_no_agent_to_forward() {
    let moves = [("start = \"a\"", "start = \"home\""), ("to = \"c\"", "to = \"home\"")];
    let outcome = run(&moves, &["duration=9s"]);
    let named: Vec<String> = outcome
        .records
        .iter()
        .filter_map(|record| match &record.what {
            What::Marked(mark) if mark.name == "previous_agent_named" => Some(format!("{:?}", mark.fields)),
            _ => None,
        })
        .collect();
    assert_eq!(named.len(), 1, "{named:?}");
    assert!(named[0].contains("10.3.0.1") && named[0].contains("10.1.0.7"), "{named:?}");
    assert_eq!((marks(&outcome, "update_repeated"), marks(&outcome, "visitor_departed")), (1, 1));
    assert_eq!(marks(&outcome, "forwarding_begun"), 0);
}

/// The wire of the previous agent is cut when the update arrives, for 1.5 s. The mobile node sends the update itself until
/// it is acknowledged: 1 s and 3 s after its request.
#[test]
fn a_lost_update_is_sent_again_by_the_mobile_node() {
    let events = event(4990, "cut", "wire = \"to-a\"") + &event(6500, "restore", "wire = \"to-a\"");
    let one_move = SCENARIO.replace("at = \"7.531s\"", "at = \"9.031s\"");
    let outcome = run_text(&(one_move + &events), &["duration=9.5s"]);
    let of_first = |name: &str| {
        let is = |record: &&Record| matches!(&record.what, What::Marked(mark) if mark.name == name);
        let times = outcome.records.iter().filter(is).map(|record| record.at.0 / 1_000_000);
        times.filter(|at| *at < 9000).collect::<Vec<_>>()
    };
    let repeated = of_first("update_repeated");
    assert!(matches!(repeated[..], [6018..=6030, 8018..=8030]), "the second one arrives: {repeated:?}");
    let answered = of_first("update_acknowledged");
    assert!(answered.iter().any(|at| (8020..8100).contains(at)), "{answered:?}");
}

/// As above, but the mobile node also loses its new cell. Without a link, it asks the first agent again: that request goes nowhere,
/// so the agent still needs the Binding Update. It gets it from the third cell, as soon as there is a link.
#[test]
fn a_lost_update_is_sent_by_the_next_cell_too() {
    let cuts = [event(4990, "cut", "wire = \"to-a\""), event(5200, "cut", "cell = 3")];
    let restores = [event(8000, "restore", "cell = 3"), event(9000, "restore", "wire = \"to-a\"")];
    let outcome = run_text(&(SCENARIO.to_owned() + &cuts.concat() + &restores.concat()), &[]);
    let acknowledged = |record: &&Record| {
        matches!(&record.what, What::Marked(mark) if mark.name == "update_acknowledged"
            && format!("{:?}", mark.fields).contains("10.2.0.1"))
    };
    let first = outcome.records.iter().find(acknowledged).map(|record| record.at.0 / 1_000_000);
    assert!(first.is_some_and(|at| (9000..10_000).contains(&at)), "before the node is back at {first:?} ms");
}

/// The previous agent restarts just before the mobile node leaves it, so it knows no visitor. With special tunnels, it returns
/// the packets to the home agent, which sends them to the new agent after it has accepted the registration.
#[test]
fn a_previous_agent_without_state_returns_packets() {
    let events = event(4990, "crash", "host = \"a\"") + &event(5000, "restart", "host = \"a\"");
    let text = SCENARIO.to_owned() + &events;
    let specials = ["foreign-agent.special_tunnels=true", "home-agent.special_tunnels=true"];
    let with = run_text(&text, &[&["duration=7.4s"][..], &specials].concat());
    let without = run_text(&text, &["duration=7.4s"]);
    let sum = |outcome: &Outcome| outcome.flows.iter().map(|flow| flow.lost).sum::<u64>();
    assert!(sum(&with) + 3 <= sum(&without), "{} lost, {} without", sum(&with), sum(&without));
    assert!(
        reasons(&with.records).contains_key("returned_by_care_of_address"),
        "{:?}",
        reasons(&with.records)
    );
    assert!(!reasons(&with.records).contains_key("ttl_expired"), "no packet circles");
}

/// Returns the scenario with a binding cache at the correspondent, one handoff to b and one back to a, each 1.5 s before the
/// next, and the home agent out of reach from 4.9 s to 12 s.
pub(crate) fn return_without_home_agent() -> String {
    let mut text = SCENARIO.to_owned();
    for (old, new) in [
        (
            "role = [{ kind = \"apps/constant-rate\"",
            "role = [{ kind = \"mobile-ip/correspondent\" }, { kind = \"apps/constant-rate\"",
        ),
        ("{ at = \"7.531s\", to = \"c\" },", "{ at = \"6.531s\", to = \"a\" },"),
        ("{ at = \"10.047s\", to = \"a\" },", ""),
        ("{ at = \"12.569s\", to = \"b\" },", ""),
    ] {
        assert!(text.contains(old), "{old}");
        text = text.replace(old, new);
    }
    text + &event(4900, "cut", "wire = \"far\"") + &event(12_000, "restore", "wire = \"far\"")
}

/// The home agent does not answer. The mobile node gets its packets at b, because a forwards them, and after its return to a, where
/// its registration still holds.
#[test]
fn a_mobile_node_that_returns_needs_no_reply_to_get_its_packets() {
    let text = return_without_home_agent();
    let lost = |settings: &[&str]| {
        let outcome = run_text(&text, settings);
        outcome.flows.iter().map(|flow| flow.lost).sum::<u64>()
    };
    let (smooth, without) = (lost(&[]), lost(&["mobile-ip.smooth_handoff=false"]));
    assert!(smooth <= 6, "{smooth} lost");
    assert!((140..175).contains(&without), "{without} lost at b without a smooth handoff");
}

/// A home agent that answers after 300 ms: the packets of a large ring do not use up the place of later ones. A hundred packets at
/// once would be too many for the queue of the base station, so they are paced.
#[test]
fn a_large_ring_does_not_cost_later_packets() {
    let far = ("delay = \"40ms\"", "delay = \"150ms\"");
    let rate = ("rate = 100, size", "rate = 200, size");
    for buffer in ["{packets=8}", "{packets=64}", "{packets=100,drain=\"paced\",rate=\"1Mb/s\"}"] {
        for phase in phases() {
            let outcome = run_in(&[far, rate], &[&format!("mobile-ip.buffer={buffer}")], phase);
            let all = reasons(&outcome.records);
            assert!(lost(&outcome).iter().sum::<u64>() <= 1, "{buffer}: {:?} lost, {all:?}", lost(&outcome));
        }
    }
}

/// The mobile node leaves b before the reply, and returns to a. What the home agent sends to b is not lost.
#[test]
fn packets_at_an_agent_that_was_left_before_the_reply_are_sent_onward() {
    let changes = [
        ("delay = \"40ms\"", "delay = \"350ms\""),
        ("{ at = \"7.531s\", to = \"c\" },", "{ at = \"5.613s\", to = \"a\" },"),
        ("{ at = \"10.047s\", to = \"a\" },", ""),
        ("{ at = \"12.569s\", to = \"b\" },", ""),
    ];
    for phase in phases() {
        let outcome = run_in(&changes, &["mobile-ip.buffer={packets=32}"], phase);
        let all = reasons(&outcome.records);
        assert!(lost(&outcome).iter().sum::<u64>() <= 2, "{:?} lost, {all:?}", lost(&outcome));
        assert_eq!(marks(&outcome, "update_repeated"), 0);
    }
}

/// Both ends of a flow move at the same time, each to the agent that the other one leaves.
#[test]
fn two_mobile_nodes_that_change_places_lose_little() {
    let bob = r#"[host.bob]
address = "10.1.0.8"
role = [
    { kind = "mobile-ip/mobile-node" },
    { kind = "apps/roam", start = "b", moves = [{ at = "5.013s", to = "a" }] },
    { kind = "apps/constant-rate", to = "mobile:7001", rate = 50, size = 100, start = "3.2s", stop = "7s" },
]

[host.core]"#;
    let sink = "{ kind = \"apps/sink\", at = \"mobile:7000\" },\n    { kind = \"apps/sink\", at = \"mobile:7001\" },";
    let changes = [("[host.core]", bob), ("{ kind = \"apps/sink\", at = \"mobile:7000\" },", sink)];
    let sum = |outcome: &Outcome| outcome.flows.iter().map(|flow| flow.lost).sum::<u64>();
    for phase in phases() {
        // Both moves are within 50 ms.
        let smooth = run_in(&changes, &["duration=7.4s", "phase=50ms"], phase);
        let without =
            run_in(&changes, &["duration=7.4s", "phase=50ms", "mobile-ip.smooth_handoff=false"], phase);
        assert!(sum(&smooth) * 2 < sum(&without), "{} lost, {} without", sum(&smooth), sum(&without));
        assert_eq!(marks(&smooth, "update_acknowledged"), 2);
        assert!(!reasons(&smooth.records).contains_key("ttl_expired"));
    }
}

/// Returns how many datagrams were sent, how many did not arrive, and how many arrived more than once.
fn counted(outcome: &Outcome) -> (usize, usize, usize) {
    let mut all: BTreeMap<wire::PacketId, usize> = BTreeMap::new();
    for record in &outcome.records {
        match &record.what {
            What::AppSent(packet) => _ = all.entry(*packet).or_default(),
            What::AppReceived(packet) => *all.entry(*packet).or_default() += 1,
            _ => {}
        }
    }
    let missing = all.values().filter(|count| **count == 0).count();
    (all.len(), missing, all.values().filter(|count| **count > 1).count())
}

/// The cell of the previous agent is cut, and its radio reports the loss of the link. With `when = "link-down"`, the agent holds back
/// what arrives until the visitor is at another agent, or registers again. Each datagram then arrives once. With `always`, the agent
/// also sends to the cut link: the ring has datagrams that have arrived, and none is sent again to a visitor that stays.
#[test]
fn packets_that_arrive_while_the_link_is_down_wait_at_the_agent() {
    let leaves = event(4700, "cut", "cell = 2");
    let stays = event(4200, "cut", "cell = 2") + &event(4500, "restore", "cell = 2");
    let buffer = |when: &str| format!("mobile-ip.buffer={{when=\"{when}\",packets=56}}");
    let (held, always) = (buffer("link-down"), buffer("always"));
    for phase in phases() {
        let count = |events: &str, [stop, duration]: [&str; 2], setting: &str| {
            let text = changed(&[("stop = \"15s\"", &format!("stop = \"{stop}\""))]) + events;
            let duration = format!("duration={duration}");
            counted(&run_text_in(&text, &[&duration, "phase=100ms", setting], phase))
        };
        let none = "mobile-ip.smooth_handoff=true";
        let [with, copies, without] =
            [&*held, &*always, none].map(|setting| count(&leaves, ["7s", "7.4s"], setting));
        assert!(with.1 <= 1 && with.2 == 0, "{with:?}");
        assert!(copies.1 <= 1 && copies.2 >= 8, "{copies:?} with copies");
        assert!(without.1 >= 30 && without.2 == 0, "{without:?} without a buffer");
        let [with, copies, without] =
            [&*held, &*always, none].map(|setting| count(&stays, ["4.8s", "5s"], setting));
        assert!(with.1 <= 1 && with.2 == 0, "{with:?}");
        assert!(copies.1 >= 29 && without.1 >= 29, "{copies:?} with copies, {without:?} without a buffer");
    }
}

/// The queue of the base station has room for 8 frames, and 30 datagrams wait when its link is up again. Paced, all of these arrive,
/// once each; one more can be on the link when it is cut.
#[test]
fn packets_that_wait_for_a_link_are_paced_to_its_queue() {
    let stays = event(4200, "cut", "cell = 2") + &event(4500, "restore", "cell = 2");
    let text = changed(&[("stop = \"15s\"", "stop = \"4.8s\"")]) + &stays;
    for phase in phases() {
        let count = |drain: &str| {
            let buffer = format!("mobile-ip.buffer={{when=\"link-down\",packets=56,{drain}}}");
            let settings = ["duration=5.5s", "phase=100ms", "cell.2.queue=8", &buffer];
            counted(&run_text_in(&text, &settings, phase))
        };
        let paced = count("drain=\"paced\",rate=\"1Mb/s\"");
        assert!(paced.1 <= 1 && paced.2 == 0, "{paced:?}");
        let at_once = count("drain=\"at-once\"");
        assert!(at_once.1 >= 15 && at_once.2 == 0, "{at_once:?} at once");
    }
}

/// On a wire to the home agent whose round trip is longer than 3 s, ARP gives up before the answer arrives. The foreign agent
/// denies the request with code 81 after the ICMP error (RFC 5944, section 3.7.3). The late answer is believed, so the next
/// registration is accepted. With a shorter round trip, no request is denied.
#[test]
fn a_home_agent_behind_a_slow_wire_is_unreachable_until_arp_has_its_late_answer() {
    let marks = |delay: &str| -> Vec<(u64, &'static str, String)> {
        let settings =
            [delay, "duration=14s", "roam.moves=[]", "mobile-node.expected_round_trip=4.1s"].map(str::parse);
        let settings: Vec<Setting> = settings.into_iter().map(Result::unwrap).collect();
        let plan = Scenario::plan("smooth-handoff.toml", SCENARIO, &settings, 1).unwrap();
        let records = recorder::run::simulate(plan).unwrap().records;
        let result = |record: &Record| match &record.what {
            What::Marked(mark) if ["registered", "denied"].contains(&mark.name) => {
                Some((record.at.0 / 1_000_000, mark.name, format!("{:?}", mark.fields)))
            }
            _ => None,
        };
        records.iter().filter_map(result).collect()
    };
    let results = |marks: &[(u64, &'static str, String)]| -> Vec<_> {
        marks.iter().map(|(at, name, _)| (*at, *name)).collect()
    };
    assert_eq!(results(&marks("wire.far.delay=1.4s")), [(5610, "registered")]);
    let far = marks("wire.far.delay=2s");
    assert_eq!(results(&far), [(3010, "denied"), (12_308, "registered")]);
    assert!(far[0].2.contains("81 (foreign agent: home agent host unreachable)"), "{far:?}");
}

/// The clock of the mobile node is set forward, so the home agent denies its request at the agent to which it comes back. The
/// corrected request has an earlier Identification, and is the latest one all the same.
#[test]
fn a_corrected_clock_does_not_cost_the_packets_of_a_return() {
    let moves = [
        ("{ at = \"7.531s\", to = \"c\" }", "{ at = \"8.031s\", to = \"a\" }"),
        ("{ at = \"10.047s\", to = \"a\" }", "{ at = \"10.047s\", to = \"b\" }"),
        ("{ at = \"12.569s\", to = \"b\" }", "{ at = \"12.569s\", to = \"a\" }"),
    ];
    let step = event(7000, "clock", "host = \"mobile\"\nstep = \"+100s\"");
    for keys in ["false", "true"] {
        let setting = format!("mobile-ip.distributed_keys={keys}");
        let outcome = run_text(&(changed(&moves) + &step), &[&setting]);
        assert_eq!(reasons(&outcome.records).get("registration_not_accepted"), None, "{keys}");
        // Nothing is lost but what was on the air; after the third move, what arrives before the reply: the previous agent got the
        // Identification of the future.
        let lost = lost(&outcome);
        assert!(lost[..2].iter().all(|lost| *lost <= 1) && lost[2] <= 9 && lost[3] <= 1, "{keys}: {lost:?}");
    }
}
