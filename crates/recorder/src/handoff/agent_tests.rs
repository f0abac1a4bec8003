//! Tests of handoffs and holes whose cause is an agent of Mobile IP, a stopped host or a handshake.

use super::moves::AGENT;
use crate::run::{Outcome, simulate};
use node::Stage;
use scenario::{Scenario, Setting};
use trace::{Record, What};
use wire::{Duration, Instant};

fn run(text: &str, settings: &[&str]) -> Outcome {
    let settings: Vec<Setting> = settings.iter().map(|text| text.parse().unwrap()).collect();
    simulate(Scenario::plan("agents.toml", text, &settings, 1).unwrap()).unwrap()
}

fn built_in(name: &str, settings: &[&str]) -> Outcome {
    run(&Scenario::find(name).unwrap().1, settings)
}

const DOWNLOAD: &str = include_str!("../../../../scenarios/mobile-ip/download.toml");

/// Returns the causes of an outage, each with its duration in milliseconds and its events.
fn causes(experience: &super::Experience) -> Vec<(&'static str, u128, String)> {
    let outage = experience.outage().unwrap_or_else(|| panic!("{experience:?}"));
    let part = |owner: &super::Owner| {
        (owner.name(), owner.span().as_millis(), format!("{} .. {}", owner.begins, owner.ends))
    };
    outage.owners.iter().map(part).collect()
}

/// The radio loses the first network and hears the second one already. The mobile node changes its agent when the
/// advertisement of the first agent has expired.
#[test]
fn a_change_of_the_agent_is_a_handoff_that_begins_when_the_cell_is_lost() {
    let outcome = built_in("mobile-ip/movement-overlap", &["mobile-node.movement=lcs"]);
    let [handoff] = outcome.handoffs.as_slice() else { panic!("{:?}", outcome.handoffs) };
    assert_eq!(
        (handoff.kind.as_str(), handoff.from.as_str(), handoff.to.as_str()),
        (AGENT, "home", "foreign")
    );
    assert_eq!(handoff.cut, Instant::from_millis(5_500));
    let causes = causes(&handoff.flows[0].experience);
    let names: Vec<&str> = causes.iter().map(|(name, ..)| *name).collect();
    assert_eq!(names, ["detection", "registration", "recovery", "first byte"], "{causes:?}");
    assert!(causes[0].1 > 2_000, "{causes:?}");
    assert!(outcome.holes.is_empty(), "{:?}", outcome.holes);
    assert_eq!(outcome.doubts, []);
}

/// The mobile node still hears its first agent, so the path is cut when the home agent switches it. No packet is lost.
#[test]
fn a_change_of_the_agent_within_an_overlap_interrupts_nothing() {
    let outcome = built_in("links/overlap", &[]);
    let [handoff] = outcome.handoffs.as_slice() else { panic!("{:?}", outcome.handoffs) };
    assert_eq!((handoff.kind.as_str(), handoff.lost()), (AGENT, 0));
    assert!(handoff.cut > handoff.begun && handoff.latency.is_some(), "{handoff:?}");
    assert_eq!(handoff.outage_ms(), Some(0.0));
}

/// The radio takes data from its own cell only, so the new path brings nothing until the radio moves. Data on the
/// earlier path do not end the outage.
#[test]
fn data_under_way_on_the_earlier_path_do_not_end_an_outage() {
    let outcome = built_in("links/overlap", &["radio.data=one", "roam.follow=1"]);
    let handoff = &outcome.handoffs[0];
    assert_eq!(handoff.kind, AGENT);
    let outage = handoff.outage().unwrap_or_else(|| panic!("{handoff:?}"));
    assert!(outage.span() > Duration::from_secs(3), "{outage:?}");
    assert!(outage.unexplained().is_zero(), "{outage:?}");
}

/// Returns the record of the first binding in the foreign network of the download.
fn binding(outcome: &Outcome) -> &Record {
    let is_it =
        |record: &&Record| matches!(&record.what, What::Marked(mark) if mark.name == "binding_changed");
    outcome.records.iter().find(is_it).unwrap()
}

/// The home agent binds the same care-of address again, for example after the lifetime of the registration ended. The
/// path worked from the first binding on. If it has this binding before the cut, there is no latency.
#[test]
fn the_latency_is_that_of_the_first_binding() {
    let outcome = run(DOWNLOAD, &[]);
    let with = |at: Instant| {
        let again = Record { at, ..binding(&outcome).clone() };
        let mut records = outcome.records.clone();
        records.insert(records.partition_point(|record| record.at <= at), again);
        Outcome::new(outcome.plan.clone(), outcome.backend, records, None).handoffs[0].latency
    };
    let before = outcome.handoffs[0].latency;
    assert!(before.is_some());
    assert_eq!(with(Instant::from_millis(7_000)), before);
    assert_eq!(with(Instant::from_millis(4_000)), None);
}

/// The foreign agent crashes and forgets its visitor. The mobile node notices it by the next advertisement.
#[test]
fn a_restarted_agent_causes_detection_and_registration() {
    let events = "\n[[event]]\nat = \"6s\"\nkind = \"crash\"\nhost = \"foreign\"\n\
                  \n[[event]]\nat = \"6.5s\"\nkind = \"restart\"\nhost = \"foreign\"\n";
    let text = DOWNLOAD.replace("bytes = 1_500_000", "bytes = 15_000_000").replace("\"10s\"", "\"20s\"");
    let outcome = run(&format!("{text}{events}"), &[]);
    let [hole] = outcome.holes.as_slice() else { panic!("{:?}", outcome.holes) };
    let causes = causes(&hole.experience);
    let of = |name: &str| causes.iter().find(|(one, ..)| *one == name).map(|(.., events)| events.as_str());
    assert_eq!(of("link"), Some("crash of foreign .. restart of foreign"), "{causes:?}");
    assert_eq!(of("detection"), Some("restart of foreign .. request_sent"), "{causes:?}");
    assert_eq!(of("registration"), Some("request_sent .. visitor_arrived"), "{causes:?}");
}

/// A stopped agent loses no packet, and delays all of them.
#[test]
fn a_stopped_agent_is_named() {
    let events = "\n[[event]]\nat = \"6s\"\nkind = \"stop\"\nhost = \"foreign\"\n\
                  \n[[event]]\nat = \"7s\"\nkind = \"continue\"\nhost = \"foreign\"\n";
    let outcome = run(&format!("{DOWNLOAD}{events}"), &[]);
    let [hole] = outcome.holes.as_slice() else { panic!("{:?}", outcome.holes) };
    let causes = causes(&hole.experience);
    assert_eq!(causes[0].2, "stop of foreign .. continue of foreign", "{causes:?}");
    assert!(causes[0].0 == "link" && causes[0].1 > 700, "{causes:?}");
}

/// The home agent denies each registration, so the outage has no end. The failure names the code.
#[test]
fn a_denied_registration_is_named() {
    let outcome = run(DOWNLOAD, &["home-agent.prohibited_care_of=[\"10.2.0.0/24\"]"]);
    let code = "129 (home agent: prohibited)";
    assert_eq!(outcome.handoffs[0].denied.as_deref(), Some(code));
    let text = crate::report::text(&outcome);
    let [line, failure] = [
        format!("registration of mobile denied 3 times, first at 4.312 s: code {code}\n"),
        format!("s: registration denied, code {code}\n"),
    ];
    assert!(text.contains(&line) && text.contains(&failure), "{text}");
    let explained = crate::explain::handoffs(&outcome);
    assert!(explained.contains(&format!("  registration denied: code {code}\n")), "{explained}");
    assert_eq!(run(DOWNLOAD, &[]).handoffs[0].denied, None);
}

/// The third packet of a handshake is lost, so the server repeats its answer after 1 s before it accepts and sends. On
/// Linux, its application sends some time after that.
#[test]
fn a_lost_packet_of_a_handshake_is_recovery() {
    let event = |ms: u64, loss: f64| {
        format!("\n[[event]]\nat = \"{ms}ms\"\nkind = \"loss\"\nwire = \"left\"\nloss = {loss:?}\n")
    };
    // The datagram makes the hosts resolve their link addresses before the handshake.
    let client = r#"role = [
    { kind = "apps/bulk-client", to = "mobile:9000", start = "0.5s" },
    { kind = "apps/constant-rate", to = "mobile:9001", rate = 1, size = 20, start = "0.1s", stop = "0.4s" },
]"#;
    let server = r#"{ kind = "apps/bulk-server", at = "mobile:9000", bytes = 100_000 },
    { kind = "apps/sink", at = "mobile:9001" }"#;
    let text = DOWNLOAD
        .replace(r#"{ kind = "apps/bulk-client", to = "correspondent:9000", start = "0.5s" }"#, server)
        .replace(
            r#"role = [{ kind = "apps/bulk-server", at = "correspondent:9000", bytes = 1_500_000 }]"#,
            client,
        );
    let outcome = run(&format!("{text}{}{}", event(530, 1.0), event(540, 0.0)), &[]);
    let find = |outcome: &Outcome| {
        let [hole] = outcome.holes.as_slice() else { panic!("{:?}", outcome.holes) };
        causes(&hole.experience)
    };
    let before = find(&outcome);
    assert_eq!(before[0].2, "last_arrival .. connection_open", "{before:?}");
    assert!(before[0].0 == Stage::Recovery.name() && before[0].1 > 1_000, "{before:?}");
    let opened = outcome.packets[outcome.holes[0].flow].opening.unwrap().to;
    let late = |record: &Record| {
        let is_accepted = |event: &node::AppEvent| matches!(event.change, node::AppChange::Accepted { .. });
        match &record.what {
            What::App(event) if is_accepted(event) => {
                Record { at: opened - Duration::from_micros(100), ..record.clone() }
            }
            _ => record.clone(),
        }
    };
    let mut records: Vec<Record> = outcome.records.iter().map(late).collect();
    records.sort_by_key(|record| record.at);
    let after = find(&Outcome::new(outcome.plan.clone(), outcome.backend, records, None));
    assert_eq!(after[0].2, before[0].2);
}

/// The mobile node returns to its home agent while it still hears the foreign agent. The home agent switches the path at
/// once, but the way by the home network is longer. The time until the source sends the first datagram on it is the source's.
#[test]
fn after_a_change_of_the_agent_a_source_may_have_nothing_to_send() {
    let outcome = returns_home();
    assert_eq!(outcome.handoffs[0].kind, AGENT);
    let causes = causes(&outcome.handoffs[0].flows[0].experience);
    let names: Vec<&str> = causes.iter().map(|(name, ..)| *name).collect();
    assert_eq!(names, ["traffic", "first byte"], "{causes:?}");
    assert_eq!(outcome.doubts, []);
}

/// Runs a mobile node that returns to its home agent while it still hears the foreign agent, and sends datagrams.
fn returns_home() -> Outcome {
    built_in(
        "links/overlap",
        &[
            "wire.left.delay=100ms",
            "host.mobile.course={ 1 = [['0s', -120], ['3s', -120], ['3s', -60]], 2 = [['0s', -60]] }",
            "host.correspondent.role=[{ kind = 'apps/sink', at = 'correspondent:9000' }]",
            "host.mobile.role=[{ kind = 'mobile-ip/mobile-node' }, { kind = 'apps/roam', start = 'foreign' }, \
             { kind = 'apps/constant-rate', to = 'correspondent:9000', rate = 20, size = 100, start = '0.5s', \
             stop = '8s' }]",
        ],
    )
}

/// The last datagram on the earlier path is lost just before the cut. It is in the row of the handoff, because nothing arrives
/// between the loss and the cut.
#[test]
fn a_loss_between_the_decision_and_the_cut_is_in_a_row() {
    let outcome = returns_home();
    let handoff = &outcome.handoffs[0];
    let to = handoff.outage().unwrap().to;
    let last = outcome.flows[0].arrivals.iter().rfind(|arrival| arrival.at < to).unwrap();
    let at = handoff.cut - Duration::from_micros(1);
    assert!(handoff.begun < at && at < last.at, "{handoff:?} {last:?}");
    let mut records = outcome.records.clone();
    records.retain(|record| record.what != What::AppReceived(last.packet));
    let index = records.partition_point(|record| record.at <= at);
    let what = What::Lost(wire::Iface(1), last.packet, "link_error".into());
    records.insert(index, Record { at, host: handoff.host, what });
    let after = Outcome::new(outcome.plan.clone(), outcome.backend, records, None);
    assert_eq!((after.flows[0].lost, after.handoffs[0].lost()), (1, 1), "{}", crate::report::text(&after));
}

/// A mobile node with its own care-of address has registered with its home agent. Then it hears the foreign agent of the
/// network and registers again through it. Its path stays as it is, so this is no handoff.
#[test]
fn an_own_care_of_address_does_not_depend_on_an_agent() {
    let outcome = built_in(
        "mobile-ip/dhcp",
        &[
            "host.cafe.role=[{ kind = 'dhcp/server', first = '10.2.0.100', last = '10.2.0.199', \
             probe_wait = '50ms' }, { kind = 'mobile-ip/foreign-agent' }]",
            "mobile-node.link_trigger=false",
            "mobile-node.movement=pm-eager",
        ],
    );
    let marks: Vec<&str> = outcome
        .records
        .iter()
        .filter_map(|record| match &record.what {
            What::Marked(mark) if mark.name == "agent_chosen" => super::analysis::text(mark, "why"),
            _ => None,
        })
        .collect();
    assert!(marks.contains(&"no_agent"), "the foreign agent was not heard later: {marks:?}");
    let kinds: Vec<&str> = outcome.handoffs.iter().map(|handoff| handoff.kind.as_str()).collect();
    assert_eq!(kinds, ["move"]);
    assert_eq!(outcome.doubts, []);
}
