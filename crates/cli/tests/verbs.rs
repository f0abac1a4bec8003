//! The command as a user sees it: its output, the files that it leaves, and its exit codes.

use std::path::Path;
use std::process::{Command, Output};

fn wayfare(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_wayfare")).current_dir(folder).args(arguments).output().unwrap()
}

/// Returns the standard output of a command that must end with this status.
fn prints(folder: &Path, arguments: &[&str], status: i32) -> String {
    let output = wayfare(folder, arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the standard error of a command that must be refused with this status.
fn refused(folder: &Path, arguments: &[&str], status: i32) -> String {
    let output = wayfare(folder, arguments);
    assert_eq!(output.status.code(), Some(status), "{arguments:?}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_run_is_kept_and_its_text_ends_with_the_figure() {
    let folder = tempfile::tempdir().unwrap();
    let text = prints(folder.path(), &["run", "first"], 0);
    assert_eq!(text.lines().last(), Some("runs/first-sim-1/figures/handoffs.svg"));
    assert!(folder.path().join("runs/first-sim-1/figures/handoffs.svg").is_file());

    let text = prints(folder.path(), &["explain", "runs/first-sim-1"], 0);
    assert!(text.contains("= the whole outage"), "{text}");
    let text = prints(folder.path(), &["explain", "runs/first-sim-1", "--packet", "27"], 0);
    assert!(text.contains("fate: lost at b2:air: receiver_left_cell"), "{text}");
    let text = prints(folder.path(), &["explain", "runs/first-sim-1", "--handoff", "2"], 0);
    assert!(text.contains("route-update S=1"), "{text}");
}

#[test]
fn a_run_without_a_flow_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let text = prints(folder.path(), &["run", "mobile-ip/registration-delay", "--out", "run"], 0);
    assert!(text.contains("\nno flow: the scenario has no application that sends data; "), "{text}");
    assert!(prints(folder.path(), &["decode", "run/capture.pcapng"], 0).contains("registration request"));
    let text = prints(folder.path(), &["run", "first", "--set", "duration=100ms", "--out", "short"], 1);
    assert!(text.contains("\nno flow: no application sent or received data\n"), "{text}");
}

#[test]
fn json_is_all_there_is_on_standard_output() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["run", "first", "--format", "json", "--out", "kept"];
    let output = wayfare(folder.path(), &arguments);
    assert!(output.status.success() && output.stderr.is_empty(), "quiet in a pipe");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(json["fingerprint"].as_str().is_some_and(|text| text.len() == 19 && text.starts_with("v2:")));
    assert_eq!(output.stdout, std::fs::read(folder.path().join("kept/run.json")).unwrap());
}

#[test]
fn many_runs_are_summed_up_however_many_go_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let with = |jobs: &str| {
        prints(
            folder.path(),
            &["run", "first", "--runs", "4", "--seed", "5", "--jobs", jobs, "--out", "many"],
            0,
        )
    };
    let text = with("3");
    assert_eq!(text, with("1"));
    assert!(text.starts_with("first on sim, 4 runs at different phases, seeds 5 to 8\n"), "{text}");
    let hard: Vec<&str> =
        text.lines().find(|line| line.starts_with("outage_ms  ")).unwrap().split_whitespace().collect();
    assert_eq!(hard[..3], ["outage_ms", "hard", "4"], "n counts runs: {text}");
    assert!(folder.path().join("many/first-sim-distribution.svg").is_file());
    for seed in 5..9 {
        assert!(folder.path().join(format!("many/first-sim-{seed}/run.json")).is_file());
    }
    let json = ["run", "first", "--runs", "2", "--format", "json"];
    let json: serde_json::Value = serde_json::from_str(&prints(folder.path(), &json, 0)).unwrap();
    assert_eq!(json["runs"].as_array().map(Vec::len), Some(2));
    assert_eq!(json["summary"][0]["kind"], "hard");
}

#[test]
fn a_key_on_a_command_line_is_no_secret_and_the_command_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let key = "5ec2e75ec2e75ec2e75ec2e75ec2e75e";
    std::fs::write(folder.path().join("key"), key).unwrap();
    for (value, is_told) in [(key, true), ("@key", false)] {
        let set = format!("cellular-ip.network_key={value}");
        let output = wayfare(folder.path(), &["run", "first", "--force", "--set", &set]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert_eq!(said.contains("use --set cellular-ip.network_key=@FILE"), is_told, "{said}");
        assert!(!said.contains(key), "{said}");
    }
}

#[test]
fn several_runs_do_not_lie_among_single_ones_and_replace_nothing_of_a_user() {
    let folder = tempfile::tempdir().unwrap();
    let is_there = |path: &str| folder.path().join(path).exists();
    let several = ["run", "first", "--runs", "2"];
    for _ in 0..2 {
        assert!(prints(folder.path(), &several, 0).contains("written to runs/first-sim-of-2\n"));
    }
    assert!(is_there("runs/first-sim-of-2/first-sim-2/run.json") && !is_there("runs/first-sim-of-2.2"));
    assert!(!is_there("runs/first-sim-1"), "that is the name of a single run, at the phases of the file");

    std::fs::create_dir(folder.path().join("mine")).unwrap();
    let mine = folder.path().join("mine/first-sim-distribution.csv");
    std::fs::write(&mine, "mine").unwrap();
    prints(folder.path(), &["run", "first", "--runs", "2", "--out", "mine"], 2);
    assert_eq!(std::fs::read_to_string(&mine).unwrap(), "mine");
    assert!(!is_there("mine/first-sim-1"), "it is said before anything is run");
}

#[test]
fn a_file_in_the_place_of_the_folder_of_runs_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("runs"), "mine").unwrap();
    prints(folder.path(), &["run", "first"], 2);
    prints(folder.path(), &["run", "first", "--runs", "2"], 2);
    assert_eq!(std::fs::read_to_string(folder.path().join("runs")).unwrap(), "mine");
}

#[test]
fn a_sweep_in_which_a_flow_never_comes_back_does_not_hold() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["run", "compare/plain-ip/gap/bulk", "--set", "radio.retune=5ms|10ms", "--runs", "1"];
    assert!(prints(folder.path(), &words, 1).contains("never"));
}

#[test]
fn a_run_in_which_a_transfer_does_not_end_does_not_hold() {
    let folder = tempfile::tempdir().unwrap();
    let text = prints(folder.path(), &["run", "sigma/handoff", "--set", "duration=6s"], 1);
    assert!(text.contains("failure: flow 1 (correspondent:9000 > mobile:"), "{text}");
    assert!(text.contains("unfinished: 1526616 bytes when the run ended"), "{text}");
}

#[test]
fn diff_tells_whether_two_runs_part() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [
        &["run", "first"][..],
        &["run", "first", "--out", "same"],
        &["run", "first", "--seed", "2"],
        &["run", "first", "--set", "radio.retune=60ms", "--out", "slow"],
    ] {
        prints(folder.path(), arguments, 0);
    }
    let text = prints(folder.path(), &["diff", "runs/first-sim-1", "same"], 0);
    assert!(
        text.contains("no divergence: 68 messages at 4 nodes compared, 0 periodic route-updates excluded\n"),
        "{text}"
    );
    assert!(text.contains("\nsame fingerprint "), "{text}");
    prints(
        folder.path(),
        &["diff", "runs/first-sim-1", "same", "--figure", "new/both.svg", "--handoff", "3"],
        0,
    );
    let svg = std::fs::read_to_string(folder.path().join("new/both.svg")).unwrap();
    assert_eq!(svg.matches(">simulator, seed 1<").count(), 2, "a panel for each run");
    assert_eq!(svg.matches(">3 mobile hard b2-&gt;b3 at 3.000 s: outage 62 ms<").count(), 2);
    let text = prints(
        folder.path(),
        &["diff", "runs/first-sim-1", "same", "--figure", "x.svg", "--handoff", "9"],
        2,
    );
    assert!(text.is_empty() && !folder.path().join("x.svg").exists(), "{text}");
    let text = prints(folder.path(), &["diff", "runs/first-sim-1", "runs/first-sim-2"], 0);
    assert!(text.contains("no divergence") && !text.contains("fingerprint"), "one verdict: {text}");
    assert!(text.ends_with("records are not compared: the runs have different seeds or phases\n"), "{text}");
    let text = prints(folder.path(), &["diff", "runs/first-sim-1", "slow"], 1);
    assert!(
        text.contains("divergence at mobile, sent control message 1: 55.000 ms apart, 20.100 ms are allowed"),
        "{text}"
    );
    assert!(text.ends_with("records are not compared: the runs have different settings\n"), "{text}");
}

#[test]
fn protocols_are_compared_and_who_cannot_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let text = prints(folder.path(), &["compare", "plain-ip", "mobile-ip", "cellular-ip", "--runs", "2"], 0);
    let row = |title: &str| {
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with(title)).collect();
        assert!(!rows.is_empty(), "{title}: {text}");
        rows
    };
    assert!(row("plain IP ").iter().any(|row| row.contains("sim ") && row.contains(" never ")), "{text}");
    assert!(row("Mobile IP ").len() >= 4 && row("Cellular IP hard ").len() >= 4, "{text}");
    assert!(row("Cellular IP semisoft ").iter().any(|row| row.ends_with("cannot")), "{text}");
    let why = "  Cellular IP semisoft cannot: the new cell must be heard before the old one is left";
    assert!(text.lines().any(|line| line == why), "{text}");
    assert!(
        text.contains("holds    sim          0  without a mobility protocol, the application receives no"),
        "{text}"
    );
    // The outage of plain IP never ends, so it has no parts, and its requests have no answers.
    for meaning in ["no outage ended in a valid run", "no valid run has a value of this column"] {
        assert!(text.contains(&format!("\n`-`: {meaning}\n")), "{text}");
    }
    for end in ["csv", "json", "svg"] {
        assert!(folder.path().join(format!("runs/compare/compare.{end}")).is_file(), "{end}");
    }
}

#[test]
fn a_comparison_for_programs_has_a_row_for_every_metric() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["compare", "cellular-ip", "--runs", "2", "--format", "json"];
    let json: serde_json::Value = serde_json::from_str(&prints(folder.path(), &words, 0)).unwrap();
    let rows = json["rows"].as_array().unwrap();
    // The JSON has two protocols under test, each with two moves and two workloads, on one backend.
    assert_eq!(rows.len(), 8 * 17, "{rows:?}");
    let outage = |protocol: &str, to: &str| {
        let is = |row: &&serde_json::Value| {
            row["protocol"] == protocol
                && row["move"] == to
                && row["workload"] == "bulk"
                && row["metric"] == "outage_ms"
        };
        rows.iter().find(is).unwrap()
    };
    let hard = outage("cellular-ip-hard", "gap");
    assert!(hard["median"].as_f64().is_some_and(|outage| outage > 1000.0), "{hard}");
    assert!(
        hard["n"] == 2 && hard["lo"].is_null() && hard["unit"] == "ms",
        "two runs make no interval: {hard}"
    );
    let semisoft = outage("cellular-ip-semisoft", "gap");
    assert!(semisoft["median"].is_null() && semisoft["why_not"].is_string(), "{semisoft}");
}

#[test]
fn every_failure_has_its_number() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("mine")).unwrap();
    std::fs::write(folder.path().join("mine/notes.txt"), "of the user").unwrap();
    for (arguments, status, says) in [
        (
            &["run", "nonsense"][..],
            2,
            "nonsense: unknown scenario; give the path of a file, or a built-in scenario: first,",
        ),
        (&["run", "first", "--set", "station.nonsense=1"], 2, "unknown field"),
        (
            &["run", "first", "--set", "radio.retune=1ms", "--set", "radio.retune=2ms"],
            2,
            "give each key once, or several values for a grid: --set 'radio.retune=1ms|2ms'\n",
        ),
        (
            &["agree", "first", "--set", "radio.retune=1ms", "--set", "radio.retune=1ms"],
            2,
            "--set radio.retune=1ms and --set radio.retune=1ms: give each key once\n",
        ),
        (
            &["run", "first", "--set", "radio.retune=1ms", "--set", "radio={ retune = \"2ms\" }"],
            2,
            "--set radio.retune: has no effect, because --set radio replaces the value; give only one of them",
        ),
        (
            &["agree", "first", "--set", "radio.retune=1ms", "--set", "radio={ retune = \"2ms\" }"],
            2,
            "--set radio.retune: has no effect, because --set radio replaces the value; give only one of them",
        ),
        (&["run", "first", "--runs", "0"], 2, "allowed: a whole number from 1 to"),
        (&["run", "compare/plain-ip/jump/bulk"], 2, "compare/PROTOCOL/MOVE/WORKLOAD"),
        (&["run", "first", "--runs", "-1"], 2, "allowed: a whole number from 1 to"),
        (
            &["run", "first", "--seed", "18446744073709551615", "--runs", "2"],
            2,
            "--seed: the seed of the last run",
        ),
        (&["run", "first", "--set", "phase=7s", "--runs", "2"], 2, "`phase`: allowed: 0s (no shift) to 6s"),
        (&["run", "first", "--no-records", "--force"], 2, "cannot be used with"),
        (&["agree", "first", "--linux-runs", "1.5"], 2, "allowed: a whole number from 1 to"),
        (
            &["agree", "first", "--set", "radio.retune=1ms|2ms"],
            2,
            "--set radio.retune=1ms|2ms: give one value",
        ),
        (&["agree", "first", "--seed", "18446744073709551615"], 2, "--seed: the seed of the last run"),
        (&["agree", "nonsense"], 2, "nonsense: unknown scenario"),
        (&["compare", "nobody"], 2, "unknown protocol `nobody`; there are: plain-ip, mobile-ip"),
        (&["run", "first", "--out", "mine"], 2, "exists and is not a run directory; not overwritten"),
        (&["run", "first", "--out", "mine/notes.txt/x"], 2, "mine/notes.txt/x: Not a directory"),
        (&["run", "first", "--out", "mine/notes.txt", "--runs", "2"], 2, "Not a directory"),
        (&["hunt", "sigma", "--seeds", "1", "--out", "mine/notes.txt"], 2, "mine/notes.txt: File exists"),
        (&["run", "first", "--repeats", "9"], 2, "--repeats is for runs on Linux"),
        (&["run", "first", "--seed", "-1"], 2, "allowed: a whole number from 0 to 18446744073709551615"),
        (
            &["hunt", "sigma", "--seed", "18446744073709551615", "--seeds", "3"],
            2,
            "at most 18446744073709551613",
        ),
        (&["scale", "--hosts", "100,100"], 2, "--hosts: 100 is given twice"),
        (&["scale", "--hosts", "100 1000"], 2, "with commas between them, for example 100,1000"),
        (&["explain", "mine"], 2, "give a directory that `wayfare run` wrote"),
        (&["diff", "mine", "mine"], 2, "give a directory that `wayfare run` wrote"),
    ] {
        let problem = refused(folder.path(), arguments, status);
        assert!(problem.contains(says), "{arguments:?}: {problem}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing was started");
}

#[test]
fn an_error_says_what_is_allowed_or_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("mine")).unwrap();
    for (arguments, status, says) in [
        (&["run", "mine"][..], 2, "mine: is a directory; give the path of a scenario file"),
        (&["run", "download"], 2, "unknown scenario, did you mean `mobile-ip/download`?"),
        (&["run", "first", "--jobs", "x"], 2, "allowed: a whole number from 1 to 65535"),
        (&["reproduce", "--jobs", "0"], 2, "allowed: a whole number from 1 to 65535"),
        (&["reproduce", "--linux-seconds", "1.5"], 2, "allowed: a whole number from 0 to"),
        (&["compare", "--runs", "-1"], 2, "allowed: a whole number from 1 to 65535"),
        (&["hunt", "--seeds", "ten"], 2, "allowed: a whole number from 1 to"),
        (&["hunt", "--shrink", "x"], 2, "allowed: a whole number from 0 to"),
        (&["hunt", "--known", "none.toml"], 2, "--known: cannot read none.toml: No such file"),
        (&["explain", "mine", "--packet", "x"], 2, "allowed: a whole number from 0 to"),
        (&["node", "none.toml"], 2, "cannot read none.toml: No such file"),
        (&["node", "none.toml"], 2, "give the configuration file of a host"),
        (
            &["ctl", "./none.sock", "status"],
            3,
            "start the daemon with `wayfare node`, or give the path of its socket",
        ),
    ] {
        let problem = refused(folder.path(), arguments, status);
        assert!(problem.contains(says), "{arguments:?}: {problem}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing was started");
}

/// Makes the digests of a run directory match its edited files.
fn digest_again(run: &std::path::Path) {
    let all = "find . -type f ! -name SHA256SUMS -printf '%P\\0' | xargs -0 sha256sum > SHA256SUMS";
    let status = std::process::Command::new("sh").args(["-c", all]).current_dir(run).status();
    assert!(status.unwrap().success());
}

#[test]
fn a_run_with_doubts_says_so_again_when_it_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    prints(folder.path(), &["run", "first", "--out", "run"], 0);
    let file = folder.path().join("run/run.json");
    let doubtful = std::fs::read_to_string(&file)
        .unwrap()
        .replace("\"doubts\": []", "\"doubts\": [{\"doubt\": \"no-records\", \"host\": \"b1\"}]");
    std::fs::write(&file, doubtful).unwrap();
    let output = wayfare(folder.path(), &["explain", "run"]);
    assert_eq!(output.status.code(), Some(2), "a file that was edited is refused");
    digest_again(&folder.path().join("run"));
    let output = wayfare(folder.path(), &["explain", "run"]);
    assert_eq!(wayfare(folder.path(), &["diff", "run", "run"]).status.code(), Some(4));
    assert_eq!(output.status.code(), Some(4));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "not to be trusted: b1: its records are missing, so no packet can be followed; there are no tables\n"
    );
    assert!(!output.stdout.is_empty());
}

/// A small grid: four points, six runs of each.
const GRID: [&str; 6] = ["run", "cellular-ip/retune", "--set", "radio.retune=5ms|50ms", "--runs", "6"];

#[test]
fn a_sweep_gives_the_same_however_many_run_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let with = |jobs: &str| {
        let text = prints(folder.path(), &[&GRID[..], &["--jobs", jobs, "--out", jobs]].concat(), 0);
        text.lines()
            .filter(|line| !line.contains("written to") && !line.contains("outage_ms.svg"))
            .collect::<Vec<_>>()
            .join("\n")
    };
    let (one, four) = (with("1"), with("4"));
    assert_eq!(one, four);
    assert!(one.starts_with("cellular-ip-retune: 4 points, 6 runs of each point\n"), "{one}");
    assert!(one.lines().any(|line| line.starts_with("fingerprint ")), "{one}");
    for file in ["outage_ms.csv", "lost_packets.csv", "goodput_kbps.csv", "outage_ms.svg"] {
        let [a, b] = ["1", "4"].map(|jobs| std::fs::read(folder.path().join(jobs).join(file)).unwrap());
        assert_eq!(a, b, "{file}");
    }
    let csv = std::fs::read_to_string(folder.path().join("1/outage_ms.csv")).unwrap();
    assert_eq!(csv.lines().next(), Some("mobile.moves.kind,radio.retune,n,median,lo,hi,p5,p95,mean"));
    assert_eq!(csv.lines().count(), 5, "{csv}");
}

#[test]
fn a_sweep_that_was_killed_goes_on_where_it_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let with = |out: &'static str| [&GRID[..], &["--jobs", "1", "--format", "json", "--out", out]].concat();
    let whole = prints(folder.path(), &with("whole"), 0);
    let mut killed = Command::new(env!("CARGO_BIN_EXE_wayfare"))
        .current_dir(folder.path())
        .args(with("killed"))
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let journal = folder.path().join("killed/runs.jsonl");
    while std::fs::read_to_string(&journal).map_or(0, |text| text.lines().count()) < 4 {
        std::thread::yield_now();
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    let before = std::fs::read_to_string(&journal).unwrap().matches('\n').count() - 1;
    assert!((3..24).contains(&before), "{before} runs: it was to be stopped in the middle");
    let output = wayfare(folder.path(), &with("killed"));
    let told = String::from_utf8(output.stderr).unwrap();
    let (first, progress) = told.split_once('\n').unwrap();
    assert_eq!(first, format!("{before} of 24 runs are complete already, and are not repeated"));
    let rest = format!(" of {} runs", 24 - before);
    assert!(progress.lines().all(|line| line.contains(&rest)), "a slow machine shows progress: {told}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), whole);
    let others = [&GRID[..5], &["7", "--out", "killed"]].concat();
    let refusal = refused(folder.path(), &others, 2);
    assert!(refusal.contains("killed/runs.jsonl: has another sweep"), "{refusal}");
}

#[test]
fn a_scenario_with_a_sweep_runs_once_if_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let text = prints(folder.path(), &["run", "cellular-ip/retune", "--once"], 0);
    assert_eq!(text.lines().last(), Some("runs/cellular-ip-retune-sim-1/figures/handoffs.svg"));
    let refusal = refused(folder.path(), &["run", "first", "--once", "--set", "radio.retune=1ms|2ms"], 2);
    assert!(refusal.contains("--set radio.retune=1ms|2ms: give one value"), "{refusal}");
    let refusal = refused(folder.path(), &["run", "first", "--set", "radio.retune=1ms|2"], 2);
    assert!(refusal.contains("with radio.retune=2: `radio.retune`: 2 has no unit"), "{refusal}");
    assert!(!folder.path().join("runs/first-sim-sweep").exists(), "nothing is begun");
}

#[test]
fn the_schema_is_json_and_names_its_draft() {
    let folder = tempfile::tempdir().unwrap();
    let schema: serde_json::Value = serde_json::from_str(&prints(folder.path(), &["schema"], 0)).unwrap();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(schema["properties"]["duration"]["description"], "The duration of a run.");
}

#[test]
fn without_records_each_value_of_a_setting_is_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let words =
        ["run", "first", "--no-records", "--format", "json", "--set", "radio.retune=5ms|50ms", "--runs", "2"];
    let text = prints(folder.path(), &words, 0);
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told =
        lines.iter().map(|line| (line["settings"][0].as_str().unwrap(), line["seed"].as_u64().unwrap()));
    let (short, long) = ("radio.retune=\"5ms\"", "radio.retune=\"50ms\"");
    assert_eq!(told.collect::<Vec<_>>(), [(short, 1), (short, 2), (long, 1), (long, 2)]);
    let refused = ["run", "mobile-ip/download", "--set", "bulk-server.at=correspondent:81"];
    for (words, status) in [
        (&["run", "sigma/handoff"][..], 0),
        (&["run", "indirect-tcp/handoff-time"], 0),
        (&["run", "mobile-ip/download"], 0),
        (&refused, 1),
    ] {
        for more in [&[][..], &["--no-records"]] {
            prints(folder.path(), &[words, more].concat(), status);
        }
    }
}

/// Writes the scenario `first` with these changes to a file, and returns its path. Each change must apply.
fn changed_first(folder: &Path, changes: &[(&str, &str)]) -> String {
    let first = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/first.toml");
    let mut text = std::fs::read_to_string(first).unwrap();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    let file = folder.join("changed.toml");
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn a_flow_of_which_nothing_arrives_never_recovers_and_fails_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let cut = "[[event]]\nat = \"1ms\"\nkind = \"cut\"\nwire = \"internet\"\n\n[wire.internet]";
    let file = changed_first(folder.path(), &[("[wire.internet]", cut)]);
    let output = wayfare(folder.path(), &["run", &file, "--out", "run"]);
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{text}{errors}");
    let never = |line: &&str| line.split_whitespace().filter(|word| *word == "never").count();
    assert_eq!(text.lines().filter(|line| never(line) == 2).count(), 4, "outage and recovery: {text}");
    assert!(
        !text
            .lines()
            .any(|line| line.split_whitespace().any(|word| word == "none") && !line.contains("none of")),
        "{text}"
    );
    let counted = wayfare(folder.path(), &["run", &file, "--no-records"]);
    assert_eq!(counted.status.code(), Some(1));
    let counted = String::from_utf8_lossy(&counted.stderr).into_owned();
    assert!(counted.contains("seed 1: correspondent > mobile:9000, UDP: no datagram arrived"), "{counted}");
    let said = format!("{text}{errors}");
    assert!(
        said.contains("flow 1 (correspondent:49152 > mobile:9000, UDP): none of 251 datagrams arrived"),
        "{said}"
    );
}

#[test]
fn two_mobile_hosts_with_two_flows_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let source = "{ kind = \"apps/constant-rate\", to = \"mobile:9000\", rate = 50, size = 100, start = \"0.5s\", stop = \"5.5s\" },";
    let second = source.replace("mobile:9000", "other:9001").replace("rate = 50", "rate = 20");
    let file = changed_first(folder.path(), &[(source, &format!("{source}\n{second}"))]);
    let mut text = std::fs::read_to_string(&file).unwrap();
    text.push_str(
        r#"
[host.other]
address = "10.1.0.8"
role = [
    { kind = "cellular-ip/mobile", start = "b2", moves = [{ at = "2.5s", to = "b3", kind = "hard" }] },
    { kind = "apps/sink", at = "other:9001" },
]
"#,
    );
    std::fs::write(&file, text).unwrap();
    let text = prints(folder.path(), &["run", &file, "--out", "run"], 0);
    let rows = |host: &str| text.lines().filter(|line| line.split_whitespace().nth(2) == Some(host)).count();
    assert_eq!((rows("mobile"), rows("other")), (4, 1), "{text}");
    for flow in ["correspondent:49152  mobile:9000", "correspondent:49153  other:9001"] {
        assert_eq!(text.lines().filter(|line| line.contains(flow)).count(), 1, "{flow}: {text}");
    }
    let flows = std::fs::read_to_string(folder.path().join("run/flows.csv")).unwrap();
    assert_eq!(flows.lines().count(), 3, "{flows}");
}

/// A grid, several runs and `agree` print the warnings of a single run, each once. Nothing runs: the folder is a file.
#[test]
fn every_command_that_runs_a_scenario_prints_its_warnings_once() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let warning = "`mobile-ip.smooth_handoff`: no handoff of `mobile` is smooth";
    let nonces = "mobile-ip.replay=nonces";
    let grid = ["--set", "mobile-ip.replay=timestamps|nonces", "--set", "radio.retune=5ms|9ms"];
    for (verb, more, status) in [
        ("run", &["--set", nonces][..], 2),
        ("run", &["--runs", "2", "--set", nonces], 2),
        ("run", &[&["--runs", "1"][..], &grid].concat(), 2),
        ("agree", &["--set", nonces], 2),
    ] {
        let arguments = [&[verb, "mobile-ip/smooth-handoff", "--out", "file"], more].concat();
        let errors = refused(folder.path(), &arguments, status);
        assert_eq!(errors.matches(warning).count(), 1, "{arguments:?}: {errors}");
        let points =
            " (at mobile-ip.replay=nonces radio.retune=5ms, mobile-ip.replay=nonces radio.retune=9ms)";
        assert_eq!(errors.contains(points), more.contains(&grid[1]), "{arguments:?}: {errors}");
    }
}

/// A daemon starts with keys that have no effect, and prints a warning. This one does not start: it has no such device.
#[test]
fn a_daemon_warns_of_keys_without_effect() {
    let folder = tempfile::tempdir().unwrap();
    let begin =
        "name = \"x\"\n\n[[interface]]\nname = \"no-such-device\"\nmac = \"02:00:00:00:00:01\"\n\n[[role]]\n";
    let agent =
        "kind = \"mobile-ip/foreign-agent\"\naddress = \"10.2.0.1/24\"\ninterface = \"no-such-device\"\n";
    let node =
        "kind = \"mobile-ip/mobile-node\"\naddress = \"10.2.0.7/24\"\ninterface = \"no-such-device\"\n";
    let key = "spi = 256, key = \"000102030405060708090a0b0c0d0e0f\"";
    let home = format!("home_agent = {{ address = \"10.2.0.1\", {key} }}\n");
    for (role, keys, expected) in [
        (
            agent.to_owned(),
            "smooth_handoff = true\nbuffer = { packets = 8 }\n",
            "`role[0].buffer`: has no effect: without",
        ),
        (
            format!("{node}{home}"),
            "smooth_handoff = true\n",
            "`role[0].smooth_handoff`: has no effect: without",
        ),
        (format!("{node}{home}"), "", ""),
    ] {
        std::fs::write(folder.path().join("host.toml"), format!("{begin}{role}{keys}")).unwrap();
        let output = wayfare(folder.path(), &["node", "host.toml"]);
        assert!(!output.status.success());
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(errors.contains("warning: host.toml, line "), !keys.is_empty(), "{errors}");
        assert!(errors.contains(expected), "{errors}");
    }
}

#[test]
fn a_paper_is_named_as_the_list_and_the_readme_name_it() {
    let folder = tempfile::tempdir().unwrap();
    let list = prints(folder.path(), &["list"], 0);
    let readme = include_str!("../../../README.md");
    for paper in ["Campbell et al. 2000", "Fikouras et al. 1999", "Johnson and Bennington 2000"] {
        assert!(list.contains(&format!("({paper})\n")) && readme.contains(paper), "{paper}");
        // With a place that cannot be written, the command ends before it measures.
        let words = ["reproduce", paper, "--out", "/proc/new"];
        assert!(refused(folder.path(), &words, 3).contains("cannot write /proc/new"), "{paper}");
    }
    let refusal = refused(folder.path(), &["reproduce", "perkins"], 2);
    for allowed in ["mobile-ip/triangle", "protocols, for all their experiments: ", "Fikouras et al. 1999"] {
        assert!(refusal.contains(allowed), "{refusal}");
    }
}

#[test]
fn an_absent_value_of_an_experiment_has_its_meaning_below_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["reproduce", "mobile-ip/registration-delay", "--on", "sim", "--quick"];
    let text = prints(folder.path(), &words, 0);
    let (table, below) =
        text.split_once("\n`-`: below a backend, there is no valid value, or ").expect(&text);
    assert!(table.lines().any(|line| line.split_whitespace().any(|cell| cell == "-")), "{text}");
    assert!(below.contains("\nmust hold\n"), "{text}");
}
