//! Checks that docs/files.md names every field and column of a run directory.

use crate::control_run::Control;
use crate::run::{HostReport, InterfaceReport, LinuxReport, ProgramReport, Repeat};
use daemon::{Ages, DaemonSummary};
use recorder::run::{Backend, Outcome, simulate};
use recorder::rundir::{Options, write};
use scenario::Scenario;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;

const DOCUMENT: &str = include_str!("../../../../docs/files.md");

/// Fields whose members are named by a protocol, a scenario or the kernel.
const FREE: [&str; 8] =
    ["reasons", "counters", "status", "tcp", "tcp_settings", "fields", "refused", "received"];

fn outcome(name: &str, settings: &[&str]) -> Outcome {
    let (name, text) = Scenario::find(name).unwrap();
    let settings: Vec<_> = settings.iter().map(|text| text.parse().unwrap()).collect();
    simulate(Scenario::plan(&name, &text, &settings, 1).unwrap()).unwrap()
}

/// A run on Linux with one entry in each of its lists.
fn on_linux() -> Outcome {
    let of_sim = outcome("first", &[]);
    let host = HostReport { summary: Some(DaemonSummary::default()), ..HostReport::default() };
    let mut outcome = Outcome::new(of_sim.plan, Backend::Linux, of_sim.records, None);
    let report = LinuxReport {
        interfaces: vec![InterfaceReport::default()],
        hosts: vec![host],
        programs: vec![ProgramReport::default()],
        repeats: vec![Repeat { attempt: 1, reasons: Vec::new() }],
        control: Some(Control { frames: Ages::default(), sleeper: Ages::default(), follows_this_run: true }),
        ..LinuxReport::default()
    };
    outcome.report = Some(report.to_data().unwrap());
    outcome
}

/// Collects the names of all fields, at any depth.
fn names(of: &Value, into: &mut BTreeSet<String>) {
    match of {
        Value::Object(fields) => {
            for (name, value) in fields {
                into.insert(name.clone());
                if !FREE.contains(&name.as_str()) {
                    names(value, into);
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| names(value, into)),
        _ => {}
    }
}

fn undocumented(names: &BTreeSet<String>, document: &str) -> Vec<String> {
    names.iter().filter(|name| !document.contains(&format!("`{name}`"))).cloned().collect()
}

/// Returns every name in a run directory: fields, columns, events, changes of a stream, files.
fn vocabulary(outcome: &Outcome) -> BTreeSet<String> {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    write(outcome, &dir, &Options::default()).unwrap();
    let read = |name: &str| fs::read_to_string(dir.join(name)).unwrap();
    let mut all = BTreeSet::new();
    names(&serde_json::from_str(&read("run.json")).unwrap(), &mut all);
    for line in read("events.jsonl").lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        names(&event, &mut all);
        all.extend(
            [&event["event"], &event["app"]["change"]]
                .into_iter()
                .filter_map(Value::as_str)
                .map(str::to_owned),
        );
    }
    for name in ["packets.csv", "flows.csv", "figures/handoffs.csv", "figures/flows.csv"] {
        all.extend(read(name).lines().next().unwrap().split(',').map(str::to_owned));
    }
    all
}

#[test]
fn every_field_and_column_is_documented() {
    for outcome in
        [on_linux(), outcome("first", &[]), outcome("mobile-ip/download", &[]), outcome("air/walk", &[])]
    {
        let all = vocabulary(&outcome);
        assert!(all.len() > 60, "{all:?}");
        assert_eq!(undocumented(&all, DOCUMENT), [""; 0], "{}", outcome.plan.name);
        let without = DOCUMENT.replace("`goodput_kbps`", "");
        assert_eq!(undocumented(&all, &without), ["goodput_kbps"], "a field that is not there is found");
    }
}
