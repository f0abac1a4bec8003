//! Tests of how flows end, and of their measurements.

use super::*;
use crate::run::{Outcome, simulate};
use node::{AppChange, AppEvent};
use scenario::{Scenario, Setting};
use trace::{Record, What};

fn run(name: &str, settings: &[&str]) -> Outcome {
    let (file, text) = Scenario::find(name).unwrap();
    run_text(&file, &text, settings)
}

fn run_text(file: &str, text: &str, settings: &[&str]) -> Outcome {
    let settings: Vec<Setting> = settings.iter().map(|text| text.parse().unwrap()).collect();
    simulate(Scenario::plan(file, text, &settings, 1).unwrap()).unwrap()
}

fn only(outcome: &Outcome) -> &Flow {
    let [flow] = outcome.flows.as_slice() else { panic!("{:?}", outcome.flows) };
    flow
}

/// Returns the number of bytes that the application read, from the records of the reads.
fn read(outcome: &Outcome, flow: &Flow) -> u64 {
    let there = outcome.records.iter().filter(|record| record.host == flow.to.host);
    there.filter_map(|record| record.what.read()).sum()
}

#[test]
fn datagrams_are_complete_if_the_last_one_arrived() {
    let complete = run("first", &[]);
    let flow = only(&complete);
    assert_eq!((flow.end, flow.lost, flow.bytes), (FlowEnd::Completed, 6, 245 * 100));
    assert!(flow.ended.is_some_and(|ended| ended == flow.arrivals.last().unwrap().at));
    // The source continues after the end of the run.
    let endless = run("first", &["duration=5s"]);
    assert_eq!((only(&endless).end, only(&endless).ended), (FlowEnd::Unfinished, None));
    assert_eq!(endless.failures, Vec::<String>::new());
    let cut_off = run("first", &["constant-rate.stop=1.01s"]);
    assert_eq!((only(&cut_off).end, only(&cut_off).lost), (FlowEnd::Unfinished, 3));
}

/// The source should send until 5.5 s, but its host is down from 3.5 s until the end. The flow is not complete, even if
/// all datagrams that were sent arrived.
#[test]
fn datagrams_of_a_host_that_is_down_for_good_are_unfinished() {
    let (file, text) = Scenario::find("first").unwrap();
    let event = |ms: u64, kind: &str| {
        format!("\n[[event]]\nat = \"{ms}ms\"\nkind = \"{kind}\"\nhost = \"correspondent\"\n")
    };
    let with = |events: &[String], settings: &[&str]| {
        run_text(&file, &format!("{text}{}", events.concat()), settings)
    };
    for kind in ["crash", "stop"] {
        let down = with(&[event(3_500, kind)], &[]);
        let flow = only(&down);
        assert_eq!((flow.end, flow.bytes < 245 * 100), (FlowEnd::Unfinished, true), "{kind}");
        // The flow ended when its host went down.
        assert!(flow.ended.is_some_and(|ended| ended < Instant::from_millis(3_600)), "{:?}", flow.ended);
        let [failure] = down.failures.as_slice() else { panic!("{kind}: {:?}", down.failures) };
        assert!(failure.contains("UDP): unfinished: "), "{failure}");
        // A flow whose source is to stop after the end of the run may be unfinished. If the source stopped before its
        // host went down, the flow is complete.
        let endless = with(&[event(3_500, kind)], &["constant-rate.stop=9s"]);
        assert_eq!((only(&endless).end, endless.failures.len()), (FlowEnd::Unfinished, 0));
        let stopped = with(&[event(3_500, kind)], &["constant-rate.stop=3.2s"]);
        assert_eq!((only(&stopped).end, stopped.failures.len()), (FlowEnd::Completed, 0));
    }
    let back = with(&[event(3_500, "crash"), event(3_700, "restart")], &[]);
    assert!(back.flows.iter().all(|flow| flow.end == FlowEnd::Completed), "{:?}", back.flows);
    assert_eq!(back.failures, Vec::<String>::new());
}

#[test]
fn a_transfer_completes_or_is_unfinished() {
    let complete = run("mobile-ip/download", &[]);
    let flow = only(&complete);
    assert_eq!((flow.end, flow.bytes, read(&complete, flow)), (FlowEnd::Completed, 1_500_000, 1_500_000));
    assert!(flow.retransmissions > 0 && flow.lost > 0);
    let unfinished = run("mobile-ip/download", &["duration=3s"]);
    let flow = only(&unfinished);
    assert_eq!((flow.end, flow.ended, flow.bytes), (FlowEnd::Unfinished, None, read(&unfinished, flow)));
    let failure =
        format!("flow 1 (correspondent:9000 > mobile:49152, TCP): unfinished: {} bytes", flow.bytes);
    assert!(unfinished.failures[0].starts_with(&failure), "{:?}", unfinished.failures);
}

#[test]
fn a_connection_is_refused_where_nothing_listens() {
    let (file, text) = Scenario::find("mobile-ip/download").unwrap();
    let text = text.replace(r#"to = "correspondent:9000""#, r#"to = "correspondent:9001""#);
    let refused = run_text(&file, &text, &[]);
    assert_eq!((only(&refused).end, only(&refused).bytes), (FlowEnd::Refused, 0));
    assert!(refused.failures[0].contains(": refused"), "{:?}", refused.failures);
}

#[test]
fn a_connection_that_an_end_gives_up_is_reset() {
    let run = run("mobile-ip/download", &[]);
    let mobile = only(&run).to.host;
    let at = Instant::from_millis(3_000);
    let stream = run.records.iter().find_map(|record| match &record.what {
        What::App(event) if record.host == mobile && matches!(event.change, AppChange::Read(_)) => {
            Some(event.stream)
        }
        _ => None,
    });
    let closed =
        AppEvent { stream: stream.unwrap(), change: AppChange::Closed(Some("timed out".to_owned())) };
    let is_later = |record: &Record| record.at > at && matches!(record.what, What::App(_));
    let mut records: Vec<Record> = run.records.iter().filter(|record| !is_later(record)).cloned().collect();
    let place = records.partition_point(|record| record.at <= at);
    records.insert(place, Record { at, host: mobile, what: What::App(closed) });
    let after = Outcome::new(run.plan.clone(), run.backend, records, None);
    assert_eq!((only(&after).end, only(&after).ended), (FlowEnd::Reset, Some(at)));
    let failure = after.failures.iter().find(|failure| failure.contains("reset after"));
    assert!(failure.is_some_and(|failure| failure.ends_with("timed out")), "{:?}", after.failures);
}

/// If an application reports a byte that differs from the sent one, the run has a failure with the flow and the
/// position.
#[test]
fn a_flow_of_which_other_bytes_were_read_does_not_hold() {
    let run = run("mobile-ip/download", &[]);
    assert_eq!(run.failures, Vec::<String>::new());
    let flow = only(&run);
    let (at, host) = (Instant::from_millis(3_000), flow.to.host);
    let mark = node::Mark::new("bulk-client", "wrong").with("wrong_at", 495_750u64);
    let mark = What::Marked(mark.with("peer", flow.from.at.to_string()));
    let mut records = run.records.clone();
    let place = records.partition_point(|record| record.at <= at);
    records.insert(place, Record { at, host, what: mark.clone() });
    let wrong = Outcome::new(run.plan.clone(), run.backend, records, None);
    let says = "flow 1 (correspondent:9000 > mobile:49152, TCP): byte 495750 of the stream, counted from 0, differs from the sent byte";
    assert_eq!(
        (wrong.failures.as_slice(), only(&wrong).end),
        ([says.to_owned()].as_slice(), FlowEnd::Completed)
    );
    // A run without records has the same failure, with the names of the ends.
    let mut counted = Counted::default();
    counted.note(at, host, &mark);
    let says = "mobile: connection with correspondent:9000: byte 495750 of the stream, counted from 0, differs from the sent byte";
    assert!(counted.failures(&run.plan).contains(&says.to_owned()));
}

/// If the radio loses every frame, no byte arrives, and the run has one failure.
#[test]
fn a_flow_without_a_byte_does_not_hold() {
    let (file, text) = Scenario::find("mobile-ip/download").unwrap();
    let silent = run_text(&file, &text, &["cell.1.loss=1.0", "cell.2.loss=1.0"]);
    assert!(silent.flows.iter().all(|flow| flow.bytes == 0 && flow.end != FlowEnd::Completed));
    assert_eq!(silent.failures.len(), 1, "{:?}", silent.failures);
    // In a run without records, the failure is that the requested connection never opened.
    let plan = silent.plan;
    let counted = crate::run::count(plan.watched(crate::ledger::Running::new(&plan)).unwrap(), &plan);
    let says =
        "mobile: connection with correspondent:9000: the connection was not open 9.5 s after the request";
    assert_eq!(counted.failures, [says]);
}

#[test]
fn a_scenario_without_a_flow_says_so() {
    let text = include_str!("../../../../scenarios/first.toml");
    let source = text.lines().find(|line| line.contains("apps/constant-rate")).unwrap();
    let without = run_text("first.toml", &text.replace(source, ""), &[]);
    assert!(without.flows.is_empty() && without.failures.is_empty(), "{:?}", without.failures);
    assert!(crate::report::text(&without).contains("\nno flow: "));
    // A source that starts after the end of the run is a failure.
    let late = run_text("first.toml", &text.replace("start = \"0.5s\", stop", "start = \"60s\", stop"), &[]);
    let says = "the application never ran, because it starts at 60s, and the run ends at 6s";
    assert!(matches!(&late.failures[..], [only] if only.ends_with(says)), "{:?}", late.failures);
    // Without any record, the source never sent data, which is a failure.
    let stuck = run_text("first.toml", text, &[]);
    let stuck = Outcome::new(stuck.plan.clone(), stuck.backend, Vec::new(), None);
    assert_eq!(
        stuck.failures,
        ["constant-rate of correspondent to 10.1.0.7:9000: no data ever left the host"],
        "{:?}",
        stuck.failures
    );
}

/// A wire loses 30 % of the packets. The time until a connection opens is a stall of its flow.
#[test]
fn the_time_to_open_a_connection_is_a_stall() {
    let text = r#"
about = "a wire that loses much"
duration = "12s"
[wire.path]
ends = ["server", "client"]
rate = "10Mb/s"
delay = "20ms"
loss = 0.3
[host.server]
address = "10.2.0.2"
default_route = "client"
role = [{ kind = "apps/bulk-server", at = "server:5001", bytes = 1_000 }]
[host.client]
address = "10.1.0.7"
default_route = "server"
role = [{ kind = "apps/bulk-client", to = "server:5001", start = "0.5s" }]
"#;
    let mut slow = 0;
    for seed in 1..=12 {
        let outcome = simulate(Scenario::plan("lossy.toml", text, &[], seed).unwrap()).unwrap();
        let flow = only(&outcome);
        let is_opened = |r: &&trace::Record| {
            // The server's listener is opened too, so only records of the client count.
            r.host == flow.to.host
                && matches!(&r.what, What::App(AppEvent { change: AppChange::Opened(_), .. }))
        };
        let Some(opened) = outcome.records.iter().find(is_opened) else { continue };
        let opening = opened.at.since(flow.begun);
        slow += u32::from(opening > Duration::from_millis(500));
        assert!(flow.longest_stall >= opening, "seed {seed}: {:?} of {opening:?}", flow.longest_stall);
    }
    assert!(slow > 0, "no seed loses a request");
}

/// No application listens at the port, so the connection is refused. The same packets belong to a program if the host
/// has one and no application reported them.
#[test]
fn a_refused_connection_is_a_flow_from_the_port_that_asked_of_an_application_and_of_a_program() {
    let (file, text) = Scenario::find("mobile-ip/download").unwrap();
    let server = text.lines().find(|line| line.contains("apps/bulk-server")).unwrap();
    let without = text.replace(server, "role = []");
    let outcome = run_text(&file, &without, &[]);
    let refused = only(&outcome);
    assert_eq!((refused.end, refused.from.at.port() >= 49152), (FlowEnd::Refused, true), "{refused:?}");

    let mut plan = outcome.plan.clone();
    let program =
        scenario::Program { command: "curl".to_owned(), start: Duration::ZERO, stop: None, ends: false };
    let mobile = plan.hosts.iter_mut().find(|host| host.config.name == "mobile").unwrap();
    mobile.programs.push(program);
    mobile.config.roles.retain(|role| role.kind() != "apps/bulk-client");
    let mut records = outcome.records.clone();
    records.retain(|record| !matches!(record.what, trace::What::App(_)));
    let program = Outcome::new(plan, outcome.backend, records, None);
    assert_eq!((only(&program).end, only(&program).from), (FlowEnd::Refused, refused.from));
    assert!(program.failures.is_empty(), "its exit says whether it failed: {:?}", program.failures);
}

/// The narrow path loses fragments, and the receiver still holds the others when the run ends. These datagrams are lost.
#[test]
fn a_datagram_that_lost_a_fragment_is_lost_although_others_are_held() {
    let outcome = run("mobile-ip/narrow-path", &[]);
    let flows = outcome.flows.iter().zip(&outcome.packets);
    let (flow, packets) = flows.into_iter().find(|(flow, _)| flow.transport == Transport::Udp).unwrap();
    let sent = packets.sendings.len() as u64;
    assert!(packets.held.is_empty(), "{:?}", packets.held);
    assert_eq!((sent, flow.arrivals.len() as u64, flow.lost), (106, 93, 13));
}
