//! Mobile IP over paths with an MTU below 1500 bytes: ICMP errors about a tunnel, or to a visitor, have to reach the
//! sender.

use crate::flow::FlowEnd;
use crate::run::{Outcome, simulate};
use scenario::{Scenario, Setting};
use wire::Duration;

const DOWNLOAD: &str = include_str!("../../../../scenarios/mobile-ip/download.toml");

fn run(text: &str, settings: &[&str]) -> Outcome {
    let settings: Vec<Setting> = settings.iter().map(|text| text.parse().unwrap()).collect();
    simulate(Scenario::plan("download.toml", text, &settings, 1).unwrap()).unwrap()
}

/// Asserts that the run has no failure and at least one handoff, and that the longest outage of each handoff is shorter
/// than `longest`.
#[track_caller]
fn goes_on(outcome: &Outcome, longest: Duration) {
    assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
    assert!(!outcome.handoffs.is_empty());
    for handoff in &outcome.handoffs {
        let outage = handoff.outage().map(super::Outage::span);
        assert!(outage.is_some_and(|lasts| lasts < longest), "{handoff:?}");
    }
}

/// The tunnel passes a link with a small MTU. The router at this link notifies the home agent, and the home agent
/// notifies the sender.
#[test]
fn a_download_goes_on_behind_a_narrow_tunnel() {
    for mtu in [1400, 1492, 576] {
        let outcome = run(DOWNLOAD, &[&format!("wire.right.mtu={mtu}"), "duration=20s"]);
        goes_on(&outcome, Duration::from_secs(2));
    }
}

/// The path from the mobile node has a link with an MTU of 576 bytes. The foreign agent notifies the mobile node.
#[test]
fn an_upload_goes_on_over_a_narrow_uplink() {
    let text = upload();
    let outcome = run(&text, &["wire.right.mtu=576", "duration=20s"]);
    goes_on(&outcome, Duration::from_secs(2));
}

/// The same with a reverse tunnel: the error goes to the home address, and so through the tunnel to the mobile node. The
/// error has 576 bytes and does not fit this tunnel, so it must be cut.
#[test]
fn an_upload_goes_on_if_an_error_is_larger_than_the_tunnel() {
    let text = upload()
        .replace("mobile-node\" }", "mobile-node\", reverse_tunnel = \"direct\" }")
        .replace("agent\" }]", "agent\", reverse_tunnel = \"offered\" }]");
    for mtu in [576, 586, 594] {
        let outcome = run(&text, &[&format!("wire.right.mtu={mtu}"), "duration=20s"]);
        goes_on(&outcome, Duration::from_secs(2));
    }
}

fn upload() -> String {
    DOWNLOAD
        .replace(
            r#"role = [{ kind = "apps/bulk-server", at = "correspondent:9000", bytes = 1_500_000 }]"#,
            SINK,
        )
        .replace(r#"{ kind = "apps/bulk-client", to = "correspondent:9000", start = "0.5s" },"#, SOURCE)
}

const SINK: &str = r#"role = [{ kind = "apps/bulk-client", to = "mobile:9000", start = "0.5s" }]"#;
const SOURCE: &str = r#"{ kind = "apps/bulk-server", at = "mobile:9000", bytes = 1_500_000 },"#;

/// Sender and receiver are mobile nodes away from home. The home agent has to tunnel its ICMP errors to the sender.
#[test]
fn a_download_from_another_mobile_node_goes_on() {
    let text = DOWNLOAD.replace("\"correspondent:9000\", start", "\"bob:9000\", start") + BOB;
    let outcome = run(&text, &["duration=30s"]);
    assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
    assert!(outcome.flows.iter().any(|flow| flow.end == FlowEnd::Completed));
}

const BOB: &str = r#"
[host.bob]
address = "10.1.0.8"
role = [
    { kind = "mobile-ip/mobile-node" },
    { kind = "apps/roam", start = "home", moves = [{ at = "2s", to = "foreign" }] },
    { kind = "apps/bulk-server", at = "bob:9000", bytes = 1_500_000 },
]
"#;
