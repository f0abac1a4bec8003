//! Mobile IP with all that makes handoffs fast, between kernels: a download and an upload continue while their host moves, and
//! agents crash.

use crate::common::*;
use crate::soak_course::course;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;
use trace::Doubt;

const SCENARIO: &str = "mobile-ip/soak";

/// Returns the marks with this name at a host, from the records of a run.
fn marks(dir: &Path, host: &str, name: &str) -> Vec<Value> {
    let events = std::fs::read_to_string(dir.join("events.jsonl")).unwrap();
    let has = |event: &Value| event["host"] == host && event["name"] == name;
    let parse = |line: &str| serde_json::from_str(line).unwrap();
    events.lines().filter(|line| line.contains(name)).map(parse).filter(has).collect()
}

/// Returns what a role at a host reports with this mark at the end of a stream: its bytes, and their SHA-256.
#[track_caller]
fn reported(dir: &Path, host: &str, name: &str) -> (u64, String) {
    let found: Vec<Value> =
        marks(dir, host, name).into_iter().filter(|mark| !mark["fields"]["sha256"].is_null()).collect();
    let [mark] = &found[..] else { panic!("not one mark `{name}` at {host}: {found:?}") };
    let fields = &mark["fields"];
    assert!(fields["wrong_at"].is_null(), "{mark}");
    (fields["bytes"].as_u64().unwrap(), fields["sha256"].as_str().unwrap().to_owned())
}

/// Runs the soak with these settings, and checks its handoffs, its crashes and the bytes at both ends of both streams.
fn soak(settings: &[String], handoffs: usize, crashes: usize) {
    let out = tempfile::tempdir().unwrap();
    let settings = settings.iter().flat_map(|setting| ["--set", setting.as_str()]);
    // A repetition because of a pause of the machine would change nothing that is checked here.
    let words = ["run", SCENARIO, "--on", "linux", "--repeats", "0"];
    let words: Vec<&str> = words.into_iter().chain(settings).collect();
    let output = run(&words, out.path());
    println!("{}", text(&output.stdout));
    // Only the ledger and the bytes are checked here: a late run is valid, too. In minutes, a busy machine has some pause of more than
    // 10 ms. An outage beside a crash may have parts without a cause.
    let is_allowed = |doubt: &Doubt| doubt.is_timing() || matches!(doubt, Doubt::Unexplained { .. });
    assert!(output.doubts.iter().all(is_allowed), "{:?}\n{}", output.doubts, text(&output.stderr));
    let dir = kept(out.path());
    let run = kept_run(out.path());
    assert_eq!(run["summary"]["handoffs"].as_array().unwrap().len(), handoffs);
    let hosts = run["linux"]["hosts"].as_array().unwrap();
    let of_host = |host: &Value| host["crashes"].as_array().map_or(0, Vec::len);
    assert_eq!(hosts.iter().map(of_host).sum::<usize>(), crashes);
    let mut said = format!("Linux: {handoffs} handoffs, {crashes} crashes\n");
    for (what, from, to) in [("download", "correspondent", "mobile"), ("upload", "mobile", "correspondent")] {
        let (sent, received) = (reported(&dir, from, "served"), reported(&dir, to, "done"));
        assert_eq!(sent, received, "{what}");
        assert!(sent.0 > handoffs as u64 * 50_000, "{what}: {} bytes", sent.0);
        let _ = writeln!(said, "  {what}: {} bytes, SHA-256 {} at both ends", sent.0, sent.1);
    }
    for (host, name) in
        [("correspondent", "binding_learnt"), ("a", "kept_sent"), ("b", "kept_sent"), ("c", "kept_sent")]
    {
        let _ = writeln!(said, "  {name} at {host}: {}", marks(&dir, host, name).len());
    }
    eprintln!("{said}");
}

#[test]
fn twenty_handoffs_with_crashing_agents_lose_no_byte() {
    let _turn = beside_others();
    soak(&[], 20, 4);
}

#[test]
#[ignore = "34 minutes: `make soak-mobile-ip`"]
fn a_thousand_handoffs_with_crashing_agents_lose_no_byte() {
    let _turn = alone();
    soak(&course(1000), 1000, 20);
}
