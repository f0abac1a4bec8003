//! Simulated runs of smooth handoffs with keys that the home agent distributes. They must cost the same as with configured keys.

use crate::smooth_handoff::{
    SCENARIO, event, lost, marks, reasons, return_without_home_agent, run, run_text,
};
use recorder::run::Outcome;
use trace::What;

const KEYS: &str = "mobile-ip.distributed_keys=true";

/// Returns the times of the marks with this name, in milliseconds.
fn times(outcome: &Outcome, name: &str) -> Vec<u64> {
    let is = |record: &&trace::Record| matches!(&record.what, What::Marked(mark) if mark.name == name);
    outcome.records.iter().filter(is).map(|record| record.at.0 / 1_000_000).collect()
}

/// Runs the scenario twice with the moves shifted by `later` milliseconds, with configured and with distributed keys.
fn both(later: u64, settings: &[&str]) -> [Outcome; 2] {
    let moves = ["5.013s", "7.531s", "10.047s", "12.569s"].map(|old| {
        let at: u64 = old.trim_end_matches('s').replace('.', "").parse().unwrap();
        (format!("at = \"{old}\""), format!("at = \"{}ms\"", at + later))
    });
    let moves: Vec<_> = moves.iter().map(|(old, new)| (old.as_str(), new.as_str())).collect();
    [run(&moves, settings), run(&moves, &[settings, &[KEYS]].concat())]
}

/// The four moves are at several times within the second between two advertisements.
#[test]
fn distributed_keys_cost_no_packet_more_than_configured_ones() {
    for later in [0, 171, 333, 507, 689, 841] {
        let [configured, distributed] = both(later, &[]);
        assert_eq!(lost(&distributed), lost(&configured), "{later} ms later");
        assert_eq!((distributed.handoffs.len(), lost(&distributed).iter().sum::<u64>() < 9), (4, true));
        for outcome in [&configured, &distributed] {
            assert_eq!((marks(outcome, "forwarding_begun"), marks(outcome, "update_acknowledged")), (4, 4));
            assert_eq!(marks(outcome, "update_repeated"), 0);
        }
        assert_eq!((marks(&configured, "key_received"), marks(&distributed, "key_received")), (0, 5));
    }
}

/// The mobile node moves while its registration is renewed: before the request has arrived, when the home agent and then the
/// foreign agent has the new key, and after the reply. Of two keys, the agent accepts the one that the mobile node has.
#[test]
fn a_renewal_under_way_does_not_change_the_key_of_a_handoff() {
    let settings = ["mobile-node.lifetime=4s", "duration=7.4s", KEYS];
    let still = run(&[("at = \"5.013s\"", "at = \"7.3s\"")], &settings);
    let renewal = times(&still, "request_sent").into_iter().find(|at| *at > 4000).unwrap();
    let took = times(&still, "registered").into_iter().find(|at| *at > renewal).unwrap() - renewal;
    assert!((80..110).contains(&took), "{took}");
    let mut received = Vec::new();
    for later in (0..took + 20).step_by(5) {
        let at = format!("at = \"{}ms\"", renewal + later);
        let moves = [("at = \"5.013s\"", at.as_str())];
        let (configured, distributed) = (run(&moves, &settings[..2]), run(&moves, &settings));
        assert_eq!(lost(&distributed), lost(&configured), "{later} ms after the request");
        assert_eq!(marks(&distributed, "forwarding_begun"), 1, "{later} ms after the request");
        assert_eq!(marks(&distributed, "update_acknowledged"), 1, "{later} ms after the request");
        received.push((marks(&distributed, "key_received"), times(&distributed, "registered").len()));
    }
    // In some of the runs, the agent got a key of the renewal, and the mobile node did not get the reply.
    let with_reply = received.last().unwrap();
    assert!(
        received.iter().any(|(keys, replies)| *keys == with_reply.0 && *replies < with_reply.1),
        "{received:?}"
    );
}

/// The previous agent restarts before the handoff, so it knows neither the visitor nor a key. The packets on the way are lost, as
/// with configured keys, and no more.
#[test]
fn an_agent_that_has_forgotten_its_keys_costs_the_packets_on_the_way() {
    let events = event(4990, "crash", "host = \"a\"") + &event(5000, "restart", "host = \"a\"");
    let text = SCENARIO.to_owned() + &events;
    let [configured, distributed, without] = [
        &["duration=7.4s"][..],
        &["duration=7.4s", KEYS],
        &["duration=7.4s", "mobile-ip.smooth_handoff=false"],
    ]
    .map(|settings| run_text(&text, settings));
    assert_eq!(lost(&distributed), lost(&configured));
    assert_eq!(lost(&distributed), lost(&without));
    assert_eq!(marks(&distributed, "forwarding_begun"), 0);
    assert!(marks(&distributed, "update_repeated") > 0);
}

/// The home agent distributes nothing. The previous agents know no key, so packets take the triangle, as without smooth handoffs.
#[test]
fn without_keys_a_handoff_costs_what_it_costs_without_forwarding() {
    let off = run(&[], &[KEYS, "home-agent.distribute_keys=false"]);
    let without = run(&[], &["mobile-ip.smooth_handoff=false"]);
    assert_eq!(lost(&off), lost(&without));
    assert!(lost(&off).iter().all(|lost| *lost >= 7), "{:?}", lost(&off));
    assert_eq!((marks(&off, "forwarding_begun"), marks(&off, "key_received")), (0, 0));
    assert!(reasons(&off.records)["no_association"] >= 4, "{:?}", reasons(&off.records));
}

/// The mobile node asks each agent to keep its packets, and names those that it has. The requests have the same keys.
#[test]
fn buffers_accept_the_distributed_keys() {
    let settings = [
        "mobile-ip.buffer={ packets = 16, when = \"request\" }",
        "mobile-node.ask_to_keep=true",
        "mobile-node.named_packets=16",
    ];
    let [configured, distributed] = both(0, &settings);
    assert_eq!(lost(&distributed), lost(&configured));
    assert_eq!(lost(&distributed), [0; 4]);
    assert_eq!(marks(&distributed, "kept_sent"), 4);
}

/// The home agent does not answer while the mobile node visits b for 1.5 s, in which 150 packets are sent. So b has no key, and
/// delivers the first 64 of them only. After the return to a, which knows the mobile node by its key, none is lost.
#[test]
fn an_agent_without_a_reply_has_the_limit_of_early_packets() {
    let text = return_without_home_agent();
    let [configured, distributed] = [&[][..], &[KEYS]].map(|settings| run_text(&text, settings));
    let sum = |outcome: &Outcome| outcome.flows.iter().map(|flow| flow.lost).sum::<u64>();
    let beyond = sum(&distributed) - sum(&configured);
    assert!(
        (75..=95).contains(&beyond),
        "{} lost, {} with configured keys",
        sum(&distributed),
        sum(&configured)
    );
    // The limit also drops the acknowledgements of two later Binding Updates, which come through the same tunnel.
    assert_eq!(reasons(&distributed.records)["early_packet_limit"], beyond + 2);
    assert!(!reasons(&configured.records).contains_key("early_packet_limit"));
}
