//! Tests of the files that the command writes and of the user's files that it must not change, of its standard output,
//! and of the files that exist after a signal.

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

const WAYFARE: &str = env!("CARGO_BIN_EXE_wayfare");

fn wayfare(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(WAYFARE).current_dir(folder).args(arguments).output().unwrap()
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn ends(folder: &Path, arguments: &[&str], status: i32) -> String {
    let output = wayfare(folder, arguments);
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {}", errors(&output));
    errors(&output)
}

/// Returns the paths of all files below a folder, sorted.
fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(here) = open.pop() {
        for entry in fs::read_dir(here).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.push(path.strip_prefix(folder).unwrap().to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    found
}

#[test]
fn no_verb_replaces_a_file_of_a_user_and_all_say_so_before_they_begin() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let [table, beside] = ["mine/table.md", "mine/table.linux.json"];
    for (name, words) in [
        ("compare.csv", &["compare", "cellular-ip", "--runs", "1", "--out", "mine"][..]),
        ("agree.csv", &["agree", "first", "--out", "mine"]),
        ("first.svg", &["agree", "first", "--out", "mine"]),
        ("cellular-ip/udp-loss.svg", &["reproduce", "cellular-ip", "--on", "sim", "--out", "mine"]),
        ("table.md", &["reproduce", "--on", "sim", "--out", "new", "--write-table", table]),
        ("table.linux.json", &["reproduce", "--on", "sim", "--out", "new", "--write-table", table]),
        ("scale.csv", &["scale", "--hosts", "10", "--out", "mine"]),
        ("first-sim-distribution.csv", &["run", "first", "--runs", "2", "--out", "mine"]),
        ("outage_ms.hard.csv", &["run", "first", "--set", "radio.retune=1ms|2ms", "--out", "mine"]),
    ] {
        let file = folder.join("mine").join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "mine").unwrap();
        if name == "outage_ms.hard.csv" {
            // The folder needs the journal of a sweep, otherwise the command is refused for another reason.
            let sweep = [&words[..words.len() - 1], &["sweep"]].concat();
            ends(folder, &[&sweep[..], &["--runs", "1"]].concat(), 0);
            fs::copy(folder.join("sweep/runs.jsonl"), folder.join("mine/runs.jsonl")).unwrap();
            let problem = ends(folder, &[words, &["--runs", "1"]].concat(), 2);
            assert!(
                problem
                    .contains("outage_ms.hard.csv exists, and its contents are not those that Wayfare wrote"),
                "{problem}"
            );
            fs::remove_dir_all(folder.join("sweep")).unwrap();
        } else {
            let problem = ends(folder, words, 2);
            let says =
                ["exists, and its contents are not those that Wayfare wrote", "exists; name another file"];
            assert!(says.iter().any(|says| problem.contains(says)), "{words:?}: {problem}");
            assert!(problem.contains(name) && problem.contains("--force"), "{words:?}: {problem}");
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "mine", "{words:?}");
        fs::remove_dir_all(folder.join("mine")).unwrap();
        assert!(files(folder).is_empty(), "nothing was begun by {words:?}: {:?}", files(folder));
    }
    assert!(!folder.join(beside).exists());
}

#[test]
fn a_place_that_cannot_be_written_is_named_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("file"), "mine").unwrap();
    let reproduce = ["reproduce", "mobile-ip/triangle", "--on", "sim"];
    let long = "x".repeat(250);
    for (words, status, says) in [
        (&[&reproduce[..], &["--write-table", "file/table.md"]].concat()[..], 2, "file is not a directory"),
        (&[&reproduce[..], &["--write-table", "new/"]].concat(), 2, "the name of a file is missing"),
        (&[&reproduce[..], &["--write-table", ""]].concat(), 2, "a value is required"),
        // No process can create a file in /proc.
        (&[&reproduce[..], &["--write-table", "/proc/table.md"]].concat(), 3, "cannot write /proc: "),
        (&[&reproduce[..], &["--write-table", &long]].concat(), 3, "cannot write "),
        (&[&reproduce[..], &["--out", "file"]].concat(), 2, "file is not a directory"),
        (&[&reproduce[..], &["--out", "/proc/new"]].concat(), 3, "cannot write /proc/new: "),
        (&["agree", "first", "--write-table", "file/table.md"], 2, "file is not a directory"),
        (&["compare", "--out", "file/deep"], 2, "file is not a directory"),
        (&["hunt", "--out", "file/deep"], 2, "name another directory with --out"),
        (&["scale", "--hosts", "10", "--out", "file"], 2, "file is not a directory"),
        (&["run", "first", "--out", "file/deep"], 2, "name another directory"),
        (&["run", "first", "--runs", "2", "--out", "file"], 2, "name another directory"),
        (&["run", "first", "--set", "radio.retune=1ms|2ms", "--out", "file"], 2, "file is not a directory"),
        (&["diff", "none", "none", "--figure", "file/a.svg"], 2, "file is not a directory"),
    ] {
        let output = wayfare(folder, words);
        let said = errors(&output);
        assert_eq!(output.status.code(), Some(status), "{words:?}: {said}");
        assert!(output.stdout.is_empty() && said.contains(says), "{words:?}: {said}");
        assert_eq!(files(folder), ["file"], "{words:?}");
        assert_eq!(fs::read_dir(folder).unwrap().count(), 1, "no folder is left by {words:?}");
    }
}

#[test]
fn what_a_verb_wrote_it_replaces_and_by_default_it_goes_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let compare = ["compare", "cellular-ip", "--runs", "1"];
    ends(folder, &compare, 0);
    ends(folder, &compare, 0);
    assert!(!folder.join("runs/compare.2").exists(), "it is as it was written");
    let csv = folder.join("runs/compare/compare.csv");
    fs::write(&csv, "edited").unwrap();
    ends(folder, &compare, 0);
    assert!(folder.join("runs/compare.2/compare.csv").is_file());
    assert_eq!(fs::read_to_string(&csv).unwrap(), "edited");
    ends(folder, &[&compare[..], &["--out", "runs/compare", "--force"]].concat(), 0);
    assert_ne!(fs::read_to_string(&csv).unwrap(), "edited");

    ends(folder, &["run", "first", "--out", "run"], 0);
    let figure = ["diff", "run", "run", "--figure", "mine.svg"];
    fs::write(folder.join("mine.svg"), "mine").unwrap();
    assert!(ends(folder, &figure, 2).contains("mine.svg exists"));
    assert_eq!(fs::read_to_string(folder.join("mine.svg")).unwrap(), "mine");
    ends(folder, &[&figure[..], &["--force"]].concat(), 0);
    assert!(fs::read_to_string(folder.join("mine.svg")).unwrap().starts_with("<svg"));
    assert!(ends(folder, &["diff", "run", "run", "--figure", "run"], 2).contains("is a directory"));
}

/// Starts a command, and kills it with SIGKILL after `milliseconds`.
fn killed_after(folder: &Path, arguments: &[&str], milliseconds: u64) {
    let mut command = Command::new(WAYFARE);
    let command = command.current_dir(folder).args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    wait(milliseconds);
    child.kill().unwrap();
    child.wait().unwrap();
}

fn wait(milliseconds: u64) {
    let span = rustix::time::Timespec {
        tv_sec: (milliseconds / 1000).cast_signed(),
        tv_nsec: (milliseconds % 1000 * 1_000_000).cast_signed(),
    };
    rustix::event::poll(&mut [], Some(&span)).unwrap();
}

#[test]
fn a_run_that_is_killed_while_it_replaces_another_leaves_a_whole_one() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let run = |seed| ["run", "first", "--seed", seed, "--out", "run", "--force"];
    ends(folder, &run("1"), 0);
    fs::write(folder.join("run/mynotes.txt"), "mine").unwrap();
    for (round, seed) in ["2", "3"].into_iter().cycle().take(30).enumerate() {
        killed_after(folder, &run(seed), 2 * round as u64);
        ends(folder, &["explain", "run"], 0);
    }
    ends(folder, &run("1"), 0);
    assert_eq!(
        files(&folder.join("run")),
        [
            "SHA256SUMS",
            "capture.pcapng",
            "events.jsonl",
            "figures/flows.csv",
            "figures/flows.svg",
            "figures/handoffs.csv",
            "figures/handoffs.svg",
            "flows.csv",
            "mynotes.txt",
            "packets.csv",
            "records.jsonl",
            "run.json"
        ],
        "what was begun and killed is removed"
    );
}

/// Runs a command with its standard output and error redirected by a shell.
fn redirected(folder: &Path, arguments: &[&str], how: &str) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("exec \"$@\" {how}"), "sh", WAYFARE]).args(arguments);
    command.current_dir(folder).output().unwrap()
}

#[test]
fn what_cannot_be_printed_is_an_error_and_never_a_panic() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    ends(folder, &["run", "first", "--out", "run"], 0);
    let sweep = ["run", "first", "--set", "radio.retune=1ms|2ms", "--runs", "1"];
    ends(folder, &sweep, 0);
    for (words, status) in [
        (&["list"][..], 0),
        (&["--help"], 0),
        (&["--version"], 0),
        (&["schema"], 0),
        (&["run", "first"], 0),
        (&["run", "first", "--runs", "2"], 0),
        (&["run", "first", "--no-records"], 0),
        (&sweep, 0), // prints on standard error that all runs are complete
        (&["explain", "run"], 0),
        (&["diff", "run", "run"], 0),
        (&["compare", "cellular-ip", "--runs", "1"], 0),
        (&["scale", "--hosts", "10", "--set", "duration=1s"], 0),
        (&["run", "nonsense"], 2),
        (&["explain", "nonsense"], 2),
        (&["agree", "nonsense"], 2),
    ] {
        for (how, expected) in [
            (">/dev/full", if status == 0 { 3 } else { status }),
            (">&-", if status == 0 { 3 } else { status }),
            ("2>/dev/full", status),
            ("2>&-", status),
        ] {
            let output = redirected(folder, words, how);
            assert_eq!(output.status.code(), Some(expected), "{words:?} {how}: {}", errors(&output));
            if expected == 3 {
                let said = errors(&output);
                assert!(said.contains("cannot write to standard output"), "{words:?} {how}: {said}");
            }
        }
    }
    // A reader that closes the pipe early is no error, neither for results nor for messages.
    let pipe = "mkfifo pipe; head -c 1 pipe >/dev/null & exec \"$@\" 2>pipe | head -c 1";
    let mut command = Command::new("sh");
    command.args(["-c", pipe, "sh", WAYFARE, "run", "first"]).current_dir(folder);
    assert!(command.output().unwrap().status.success());
}

#[test]
fn a_limit_of_file_sizes_is_told_like_a_full_disk() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -f 8; exec \"$@\"", "sh", WAYFARE, "run", "first", "--out", "run"]);
    let output = command.current_dir(folder.path()).output().unwrap();
    let said = errors(&output);
    assert!(output.status.code() == Some(3) && said.contains("File too large"), "{output:?}");
    assert_eq!(files(folder.path()), Vec::<String>::new());
}

fn begun(folder: &Path, arguments: &[&str]) -> Child {
    let mut command = Command::new(WAYFARE);
    command.current_dir(folder).args(arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_signal_ends_every_verb_in_the_simulator_and_nothing_incomplete_stays() {
    // All verbs have the same handler, so each signal ends some of them. The start of a verb takes seconds in this build.
    let signals = [(Signal::INT, 130), (Signal::TERM, 143), (Signal::QUIT, 131)];
    let sweep = ["run", "mobile-ip/download", "--set", "radio.retune=1ms|2ms", "--runs", "1000"];
    let verbs = [
        &["compare", "--runs", "100"][..],
        &["reproduce", "--on", "sim", "--full"],
        &["agree", "mobile-ip/download", "--runs", "1000"],
        &sweep,
        &["run", "mobile-ip/download", "--runs", "1000"],
        &["run", "mobile-ip/download", "--set", "duration=2000s", "--out", "deep/run"],
        &["run", "scale/tree", "--no-records", "--set", "tree.hosts=200000"],
        &["scale", "--hosts", "200000", "--out", "deep/scale"],
    ];
    for (words, (signal, status)) in verbs.into_iter().zip(signals.into_iter().cycle()) {
        let folder = tempfile::tempdir().unwrap();
        let child = begun(folder.path(), words);
        // Wait until the command handles the signal.
        let process = Pid::from_child(&child);
        while !catches_signals(process) {
            wait(5);
        }
        wait(300);
        let clock = os::Clock::start();
        kill_process(process, signal).unwrap();
        let output = child.wait_with_output().unwrap();
        let took = clock.now().since(wire::Instant::ZERO);
        let said = errors(&output);
        assert_eq!(output.status.code(), Some(status), "{words:?}: {said}");
        assert!(
            said.ends_with("interrupted; incomplete runs are removed, complete runs are kept\n"),
            "{words:?}: {said}"
        );
        assert!(took < wire::Duration::from_secs(5), "{words:?}: {took:?}; a second on a quiet host");
        let left = files(folder.path());
        let is_incomplete = |name: &&String| name.contains("/.") || name.starts_with('.');
        assert_eq!(left.iter().find(is_incomplete), None, "{words:?}");
        if words == sweep {
            assert!(left.iter().all(|name| name.ends_with("/runs.jsonl")), "{left:?}");
        } else if !words.contains(&"--runs") || words[0] != "run" {
            assert!(left.is_empty(), "{words:?}: {left:?}");
        }
        assert!(!folder.path().join("deep").exists());
    }
}

/// Returns whether a process has a handler for SIGINT (proc(5), `SigCgt`).
fn catches_signals(process: Pid) -> bool {
    let path = format!("/proc/{}/status", process.as_raw_nonzero());
    let status = fs::read_to_string(path).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    caught >> (Signal::INT.as_raw() - 1) & 1 == 1
}

fn json(path: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn one_of_several_runs_is_the_same_alone_and_without_records() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let set = ["--set", "radio.retune=7ms"];
    ends(folder, &[&["run", "first", "--runs", "3", "--seed", "5", "--out", "many"][..], &set].concat(), 0);
    let alone = ["run", "first", "--repetition", "2", "--of", "3", "--seed", "5"];
    ends(folder, &[&alone[..], &set, &["--out", "alone"]].concat(), 0);
    let of_three = json(&folder.join("many/first-sim-6/run.json"));
    let one = json(&folder.join("alone/run.json"));
    assert_eq!(one["repetition"], serde_json::json!({ "number": 2, "of": 3, "seed": 5 }));
    for field in ["fingerprint", "scenario", "settings", "seed", "repetition", "summary"] {
        assert_eq!(one[field], of_three[field], "{field}");
    }
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/first.toml");
    let but_keys =
        |text: &str| text.lines().filter(|line| !line.contains("key")).collect::<Vec<_>>().join("\n");
    let (kept, written) = (one["scenario"]["text"].as_str().unwrap(), fs::read_to_string(file).unwrap());
    assert_eq!(but_keys(kept), but_keys(&written));
    let differ = json(&folder.join("many/first-sim-7/run.json"));
    assert_ne!(one["fingerprint"], differ["fingerprint"]);
    ends(folder, &["diff", "alone", "many/first-sim-6"], 0);
    assert_eq!(
        wayfare(folder, &["explain", "alone"]).stdout,
        wayfare(folder, &["explain", "many/first-sim-6"]).stdout
    );
    let counted = [&["run", "first", "--no-records", "--runs", "3", "--seed", "5"][..], &set].concat();
    let counted = wayfare(folder, &[&counted[..], &["--format", "json"]].concat()).stdout;
    let lines: Vec<serde_json::Value> =
        String::from_utf8(counted).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3);
    for (seed, line) in (5..).zip(&lines) {
        let kept = json(&folder.join(format!("many/first-sim-{seed}/run.json")));
        assert_eq!(line["fingerprint"], kept["fingerprint"], "the same phases, seed {seed}");
    }
    let same = ["run", "first", "--runs", "2", "--set", "phase=0s"];
    let text = String::from_utf8(wayfare(folder, &same).stdout).unwrap();
    assert!(
        text.starts_with("first on sim, 2 runs at the same phases (phase = 0s), seeds 1 to 2\n"),
        "{text}"
    );
    // A run with `--repetition` and a single run have the same seed and different directories, because their phases
    // differ.
    ends(folder, &alone, 0);
    assert!(folder.join("runs/first-sim-5-repetition-2-of-3/run.json").is_file());
    let refusal = ends(folder, &["run", "first", "--repetition", "4", "--of", "3"], 2);
    assert!(refusal.contains("--repetition 4: allowed: 1 to 3"), "{refusal}");
}
