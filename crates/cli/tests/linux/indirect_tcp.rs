//! Indirect TCP on a real kernel: connections that continue while their host moves from router to router, and routers
//! that die.

use crate::common::*;
use emulator::run::Programs;
use node::{Mark, Value};
use recorder::run::Outcome;
use rustix::process::Signal;
use scenario::{Plan, Scenario};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use trace::{Doubt, What};

const SCENARIO: &str = "indirect-tcp/handoff-time";

/// By default, the tests execute ten moves: a hundred moves take two and a half minutes.
#[test]
fn ten_handoffs_under_load() {
    handoffs(10);
}

#[test]
#[ignore = "two and a half minutes: `make handoffs`"]
fn a_hundred_handoffs_under_load() {
    handoffs(100);
}

/// Moves a host `number` times between two routers, during a download that lasts longer than the moves.
fn handoffs(number: usize) {
    const FIRST_MS: usize = 1500;
    const EACH_MS: usize = 800;
    /// Bytes that a cell carries in a millisecond.
    const MOST_IN_A_MS: usize = 240;
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    let mut moves = String::from("roam.moves=[");
    for number in 0..number {
        let to = if number % 2 == 0 { "right" } else { "left" };
        let _ = write!(moves, "{{ at = \"{}ms\", to = \"{to}\" }},", FIRST_MS + number * EACH_MS);
    }
    moves.push(']');
    // The download has as many bytes as a cell can carry until the end of the moves, so it ends after them.
    let moving = FIRST_MS + number * EACH_MS;
    let duration = format!("duration={}ms", moving * 17 / 10 + 5000);
    let bytes = format!("bulk-server.bytes={}", moving * MOST_IN_A_MS);
    let carry_out = |dir: &str| {
        let words = ["run", SCENARIO, "--on", "linux", "--out", dir, "--set", &moves, "--set", &duration];
        (run(&[&words[..], &["--set", &bytes]].concat(), out.path()), out.path().join(dir))
    };
    let (mut output, mut dir) = carry_out("run");
    // A stall of the machine can also cause doubts that are not about timing. A run with doubts of both kinds is
    // repeated once.
    if output.doubts.iter().any(Doubt::is_timing) && !output.was_only_late() {
        eprintln!("again, as the machine was stalled: {}", text(&output.stderr));
        (output, dir) = carry_out("again");
    }
    assert_held(&output, "on linux");
    println!("{}", text(&output.stdout));
    let run: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(dir.join("run.json")).unwrap()).unwrap();
    assert_eq!(run["summary"]["handoffs"].as_array().unwrap().len(), number);
    let hosts = run["linux"]["hosts"].as_array().unwrap();
    let status = |name: &str| &hosts.iter().find(|host| host["name"] == name).unwrap()["summary"]["status"];
    let client = &status("mobile")["bulk-client"];
    let got = format!("bulk-server.bytes={}", client["bytes"]);
    assert!(client["wrong_at"].is_null() && client["failed"].is_null(), "every byte is right: {client}");
    if !did_in_time(&output, got == bytes) {
        return;
    }
    assert_eq!((got, &client["state"]), (bytes, &serde_json::json!("done")), "{client}");
    assert_eq!(status("fixed")["bulk-server"]["served"], 1, "{}", status("fixed"));
    assert_eq!(moved(&dir), number, "each handoff took the connection along");
    let [syn, rst] = [" SYN", " RST"].map(|flag| at_fixed(&dir, flag));
    assert_eq!((syn, rst), (2, 0), "a SYN and its answer are all that the fixed host saw of it");
}

/// Returns the scenario with other programs instead of its workload: a web server, and curl under `wayfare exec`.
fn with_curl() -> String {
    let (_, text) = Scenario::find(SCENARIO).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| !line.contains("apps/bulk-")).collect();
    let wayfare = wayfare().display();
    format!(
        "{}\n\
         [[host.fixed.program]]\ncommand = \"exec python3 -m http.server 8000 --bind 10.0.0.1 --directory web\"\nstop = \"10s\"\n\
         [[host.mobile.program]]\nstart = \"1500ms\"\n\
         command = \"exec {wayfare} exec --by indirect -- curl -sS -m 8 -o got http://10.0.0.1:8000/file\"\n",
        lines
            .join("\n")
            .replace("at = \"6.3s\"", "at = \"9.3s\"")
            .replace("duration = \"10s\"", "duration = \"11s\"")
    )
}

/// An unmodified program keeps its connection over two handoffs. The program's socket and the daemon's socket to the
/// router have the same port.
#[test]
fn curl_under_exec_fetches_a_file_over_two_handoffs() {
    let has = |program: &str| std::process::Command::new(program).arg("--version").output().is_ok();
    if !need("curl", has("curl")) || !need("python3", has("python3")) {
        return;
    }
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    let mut rng = wire::Rng::new(5);
    let file: Vec<u8> = (0..900_000).map(|_| rng.draw() as u8).collect();
    std::fs::create_dir(out.path().join("web")).unwrap();
    std::fs::write(out.path().join("web/file"), &file).unwrap();
    std::fs::write(out.path().join("curl.toml"), with_curl()).unwrap();
    let output = run(&["run", "curl.toml", "--on", "linux"], out.path());
    let dir = kept(out.path());
    let said = std::fs::read_to_string(dir.join("programs/mobile-1.log")).unwrap_or_default();
    println!("{}{said}", text(&output.stdout));
    assert_held(&output, "curl on linux");
    let got = std::fs::read(out.path().join("got")).unwrap_or_default();
    if !did_in_time(&output, got == file) {
        return;
    }
    assert_eq!(got.len(), file.len(), "{said}");
    assert!(got == file, "its bytes are others");
    assert!(moved(&dir) >= 2, "it was fetched before its connection had moved twice");
}

/// Returns the number of connections that a router took over from another router.
fn moved(dir: &Path) -> usize {
    let events = std::fs::read_to_string(dir.join("events.jsonl")).unwrap();
    events.lines().filter(|line| line.contains("\"support_router\"") && line.contains("\"taken\"")).count()
}

/// Returns the number of segments with this flag to and from the fixed host's stack.
fn at_fixed(dir: &Path, flag: &str) -> usize {
    let packets = std::fs::read_to_string(dir.join("packets.csv")).unwrap();
    packets.lines().filter(|line| line.contains(",fixed,host,") && line.contains(flag)).count()
}

/// The old router dies after it has announced a connection to the new router. The data that the old router had
/// acknowledged is lost. Both ends must get an error, and not a clean end.
#[test]
fn a_router_that_is_killed_in_mid_handoff_is_an_error_at_both_ends() {
    // The test looks for daemons by their names among all descendants of this process.
    let _turn = alone();
    let (file, text) = Scenario::find(SCENARIO).unwrap();
    // On a slow wire, the middle of a handoff is long enough to be observed.
    let settings = [
        "wire.right.rate=1Mb/s",
        "support-router.patience=4s",
        "roam.moves=[{ at = \"1500ms\", to = \"right\" }, { at = \"6s\", to = \"left\" }]",
        "duration=22s",
    ];
    let settings = settings.map(|text| text.parse().unwrap());
    let plan = Scenario::plan(&file, &text, &settings, 1).unwrap();
    // The lab ends a run if the process that it started for a host dies. Here this process is a shell that survives its
    // daemon, so the run continues, and the other hosts handle the loss.
    let script = format!("'{}' node \"$0\"; sleep 20", wayfare().display());
    let words = ["sh", "-c", &script, "{config}"].map(str::to_owned).to_vec();
    let programs = Programs { wayfare: wayfare().to_owned(), instead: Some(("right".to_owned(), words)) };
    let outcome = std::thread::scope(|scope| {
        let killer = scope.spawn(|| kill_when("right", "left", &["expected", "arriving"]));
        let outcome = emulator::run::run(plan, &programs, &false.into()).unwrap();
        killer.join().unwrap();
        outcome
    });
    let is_of_right = |doubt: &Doubt| matches!(doubt, Doubt::NoSummary { host, .. } if host == "right");
    let named = outcome.doubts.iter().any(is_of_right);
    assert!(named, "it was not killed: {:?}", outcome.doubts);
    let lost = mark(&outcome, "left", "connection_lost").expect("the new router waits for ever");
    assert_eq!(field(lost, "why"), Some(&Value::from("not received in time")));
    for (host, name) in [("mobile", "failed"), ("fixed", "client_lost")] {
        let told = mark(&outcome, host, name).unwrap_or_else(|| panic!("{host} heard of nothing"));
        assert_eq!(field(told, "why"), Some(&Value::from("connection reset by the peer")), "{host}");
    }
    for (host, name) in [("mobile", "done"), ("fixed", "served")] {
        assert_eq!(mark(&outcome, host, name), None, "an end in good order after lost bytes");
    }
    assert!(field(mark(&outcome, "mobile", "failed").unwrap(), "wrong_at").is_none());
}

/// Kills a host's daemon as soon as another router has a connection at one of these stages.
fn kill_when(victim: &str, router: &str, stages: &[&str]) {
    let file = |name: &str| format!("/{name}.toml");
    let daemon = |name: &str| {
        descendants(std::process::id()).into_iter().find_map(|pid| {
            let words = command_line(pid);
            let is_it = words.get(1).is_some_and(|verb| verb == "node")
                && words.get(2).is_some_and(|config| config.ends_with(&file(name)));
            is_it.then(|| (pid, words[2].clone()))
        })
    };
    let (_, config) = wait_for("the router's daemon", || daemon(router));
    let control = Path::new(&config).with_extension("sock");
    let mut stream = wait_for("its control socket", || UnixStream::connect(&control).ok());
    let mut answers = BufReader::new(stream.try_clone().unwrap());
    wait_for("the middle of a handoff", || {
        writeln!(stream, r#"{{"do":{{"verb":"status"}}}}"#).unwrap();
        let mut answer = String::new();
        answers.read_line(&mut answer).unwrap();
        stages.iter().any(|stage| answer.contains(stage)).then_some(())
    });
    let (pid, _) = daemon(victim).unwrap();
    signal(pid, Signal::KILL);
}

fn mark<'a>(outcome: &'a Outcome, host: &str, name: &str) -> Option<&'a Mark> {
    let plan: &Plan = &outcome.plan;
    let host = plan.hosts.iter().position(|there| there.config.name == host).unwrap();
    outcome.records.iter().find_map(|record| match &record.what {
        What::Marked(mark) if record.host.index() == host && mark.name == name => Some(mark),
        _ => None,
    })
}

fn field<'a>(mark: &'a Mark, name: &str) -> Option<&'a Value> {
    mark.fields.iter().find(|(field, _)| *field == name).map(|(_, value)| value)
}
