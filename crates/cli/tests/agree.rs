//! `wayfare agree` with recorded runs: no run on Linux is needed, and none is started.

use experiments::agree::{Measured, Recorded, Repeated, Run, Sample};
use std::path::Path;
use std::process::{Command, Output};

fn wayfare(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_wayfare")).current_dir(folder).args(arguments).output().unwrap()
}

fn out(output: &Output, status: i32) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{errors}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Writes a record with six runs of `first` on Linux. In these runs, the hard handoffs have the given `outages`, in
/// milliseconds.
fn record(folder: &Path, outages: [f64; 6]) {
    let scenario = Repeated::of("first", &[], 1).unwrap();
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut measured = Measured::new(&scenario, [8, 6], &kernel);
    measured.linux = Sample::new(6);
    for (number, outage) in (0..).zip(outages) {
        let simulated = recorder::run::simulate(scenario.plan(number, 6).unwrap()).unwrap();
        let mut run: Run = scenario.read(&simulated);
        run.values.insert("outage_ms.hard".to_owned(), outage);
        measured.linux.add(number, run);
    }
    let mut recorded = Recorded::default();
    recorded.keep(measured).unwrap();
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("agree.json"), recorded.json().unwrap()).unwrap();
}

#[test]
fn a_later_call_measures_what_is_missing_and_judges_without_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("kept");
    record(&kept, [500.0; 6]);
    // The runs on Linux are recorded; those of the simulator are missing.
    let measure = ["agree", "first", "--runs", "8", "--linux-runs", "6", "--out", "kept"];
    let text = out(&wayfare(folder.path(), &measure), 1);
    let row = text.lines().find(|line| line.contains("outage_ms.hard")).unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!((&cells[..4], cells.last()), (&["first", "outage_ms.hard", "8", "6"][..], Some(&"differs")));
    assert!(text.contains("scenarios: 0 agree, 1 differ, 0 inconclusive"), "{text}");
    assert!(kept.join("agree.csv").is_file() && kept.join("first.svg").is_file());
    let recorded = std::fs::read_to_string(kept.join("agree.json")).unwrap();
    let again = out(&wayfare(folder.path(), &measure), 1);
    assert_eq!(again, text);
    assert_eq!(std::fs::read_to_string(kept.join("agree.json")).unwrap(), recorded, "nothing was run again");

    let from = ["agree", "--from", "kept", "--write-table", "page.md"];
    assert_eq!(out(&wayfare(folder.path(), &from), 1), text);
    let page = std::fs::read_to_string(folder.path().join("page.md")).unwrap();
    assert!(page.contains("/ 500, 1.00 **differs**"), "{page}");
    assert_eq!(std::fs::read_to_string(folder.path().join("page.linux.json")).unwrap(), recorded);
    let mut other = Recorded::read(&recorded).unwrap();
    let mut first = other.find("first").unwrap().clone();
    first.sim = Sample::new(8);
    for number in 0..8 {
        let mut run = Run::default();
        run.values.insert("outage_ms.hard".to_owned(), 999.0);
        first.sim.add(number, run);
    }
    other.keep(first).unwrap();
    std::fs::write(folder.path().join("other.json"), other.json().unwrap()).unwrap();
    let simulated = ["agree", "--from", "other.json", "--simulate-again"];
    assert!(out(&wayfare(folder.path(), &simulated[..3]), 1).contains("999"), "evaluated as recorded");
    assert_eq!(out(&wayfare(folder.path(), &simulated), 1), text, "what the simulator gives now");
    let file = ["agree", "first", "--from", "page.linux.json", "--format", "json"];
    let json: serde_json::Value = serde_json::from_str(&out(&wayfare(folder.path(), &file), 1)).unwrap();
    assert_eq!(json[0]["agreement"], "differs");
}

#[test]
fn what_never_ended_on_linux_differs_by_name() {
    let folder = tempfile::tempdir().unwrap();
    record(&folder.path().join("kept"), [f64::INFINITY; 6]);
    let measure = ["agree", "first", "--runs", "6", "--linux-runs", "6", "--out", "kept"];
    let text = out(&wayfare(folder.path(), &measure), 1);
    assert!(text.contains("differs: never on Linux") && !text.contains("NaN"), "{text}");
}

#[test]
fn what_is_not_there_to_judge_is_an_error_of_use() {
    let folder = tempfile::tempdir().unwrap();
    let errors = |arguments: &[&str]| {
        let output = wayfare(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(
        errors(&["agree", "--from", "nothing"])
            .contains("nothing does not exist; give a folder with agree.json")
    );
    std::fs::write(folder.path().join("bad.json"), "{\"scenarios\": [1]}").unwrap();
    assert!(errors(&["agree", "--from", "bad.json"]).contains("bad.json is not a record of `agree`: "));
    record(folder.path(), [50.0; 6]);
    assert!(errors(&["agree", "bulk", "--from", "."]).contains("has no runs of bulk"));
    assert!(errors(&["agree", "--from", ".", "--runs", "3"]).contains("cannot be used with"));
}
