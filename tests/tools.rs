//! Tests of the scripts that decide what CI counts as inconclusive, as a failure, and as too many inconclusive tests.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn tool(name: &str) -> PathBuf {
    super::root().join("tools").join(name)
}

/// Creates a program from this shell script.
fn program(dir: &Path, name: &str, script: &str) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    path
}

/// Runs `inconclusive.sh` on these tests, out of 80. `second_run` is the shell script of each further run.
fn judged(names: &[&str], second_run: &str) -> Output {
    judged_of(80, names, second_run)
}

fn judged_of(tests: u32, names: &[&str], second_run: &str) -> Output {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("inconclusive");
    let lines: String = names.iter().flat_map(|name| [*name, "\tthe machine was late\n"]).collect();
    fs::write(&file, lines).unwrap();
    let cargo = program(dir.path(), "cargo", second_run);
    Command::new(tool("inconclusive.sh"))
        .arg(&file)
        .arg(tests.to_string())
        .env("CARGO", cargo)
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

const PASSES: &str = "echo 'test result: ok. 1 passed; 0 failed; 0 ignored'";

#[test]
fn an_inconclusive_test_runs_again_and_is_counted() {
    let none = judged(&[], "exit 1");
    assert!(none.status.success() && said(&none).contains("0 inconclusive of 80"), "{}", said(&none));
    let once = judged(&["bulk::a_transfer", "bulk::a_transfer"], PASSES);
    assert!(once.status.success() && said(&once).contains("1 inconclusive of 80"), "{}", said(&once));
    let fails = judged(&["bulk::a_transfer"], "echo 'test result: FAILED. 0 passed; 1 failed'; exit 1");
    assert!(
        !fails.status.success() && said(&fails).contains("FAILED when it was run again: bulk::a_transfer")
    );
    let gone = judged(&["bulk::a_transfer"], "echo 'test result: ok. 0 passed; 0 failed'");
    assert!(!gone.status.success(), "a test that is not there has not run: {}", said(&gone));
}

#[test]
fn what_never_decides_is_counted_and_must_be_rare() {
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().join("runs");
    let late_until = |run: u32| {
        let runs = runs.display();
        let late = "printf 'bulk::a_transfer\\tlate\\n' >>\"$WAYFARE_INCONCLUSIVE\"";
        format!("echo run >>{runs}; [ $(wc -l <{runs}) -gt {run} ] || {late}; {PASSES}")
    };
    let third = judged(&["bulk::a_transfer"], &late_until(2));
    assert!(third.status.success() && said(&third).contains("1 inconclusive of 80"), "{}", said(&third));
    fs::remove_file(&runs).unwrap();
    let never = judged(&["bulk::a_transfer"], &late_until(3));
    assert!(never.status.success(), "{}", said(&never));
    assert!(said(&never).contains("never decided: bulk::a_transfer\n"), "{}", said(&never));
    assert!(said(&never).contains("1 inconclusive of 80 tests of runs on Linux, 1 never decided"));
    let late = format!("printf 'one\\tlate\\n' >>\"$WAYFARE_INCONCLUSIVE\"; {PASSES}");
    let names: Vec<String> = (0..9).map(|number| format!("some::test_{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (tenth, more) = (judged(&names[..8], &late), judged(&names, &late));
    assert!(tenth.status.success(), "{}", said(&tenth));
    assert!(!more.status.success() && said(&more).contains("more than a tenth"), "{}", said(&more));
}

/// A command that takes longer than the time that is left is interrupted, and decides nothing.
#[test]
fn a_command_that_runs_again_for_too_long_is_interrupted() {
    let dir = tempfile::tempdir().unwrap();
    let command = program(dir.path(), "wayfare", "echo begun >&2; exec sleep 600");
    let file = dir.path().join("inconclusive");
    fs::write(&file, format!("{} run\tthe machine was late\n", command.display())).unwrap();
    let mut script = Command::new(tool("inconclusive.sh"));
    let output = script.arg(&file).arg("80").env("WAYFARE_INCONCLUSIVE_SECONDS", "1").output().unwrap();
    let said = said(&output);
    assert!(output.status.success() && said.contains("begun") && said.contains("never decided: "), "{said}");
    assert!(said.contains("1 inconclusive of 80 tests of runs on Linux, 1 never decided"), "{said}");
}

#[test]
fn more_than_a_quarter_inconclusive_fails() {
    let names: Vec<String> = (0..21).map(|number| format!("some::test_{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (quarter, more) = (judged(&names[..20], PASSES), judged(&names, PASSES));
    assert!(quarter.status.success(), "{}", said(&quarter));
    assert!(!judged_of(0, &[], PASSES).status.success(), "no test at all shows nothing");
    assert!(!more.status.success() && said(&more).contains("more than a quarter"), "{}", said(&more));
}

/// Returns the exit code of `measured.sh` with a command that writes these doubts, and what the script counts as
/// inconclusive.
fn measured(doubts: &str, code: i32) -> (Option<i32>, String) {
    let dir = tempfile::tempdir().unwrap();
    let counted = dir.path().join("inconclusive");
    fs::write(&counted, "").unwrap();
    let script = format!("printf '%s' '{doubts}' >>\"$WAYFARE_DOUBTS\"; exit {code}");
    let command = program(dir.path(), "wayfare", &script);
    let output = Command::new(tool("measured.sh"))
        .arg(command)
        .arg("run")
        .env("WAYFARE_INCONCLUSIVE", &counted)
        .output();
    (output.unwrap().status.code(), fs::read_to_string(counted).unwrap())
}

#[test]
fn a_command_is_inconclusive_only_if_each_of_its_doubts_is_about_timing() {
    let late = trace::Doubt::Late { process: "b1".to_owned(), p99_us: 3000.0, alone_us: None };
    let clock = trace::Doubt::WallClockSet { process: "timing: b1".to_owned() };
    let lines = |doubts: &[&trace::Doubt]| {
        let line = |doubt: &&trace::Doubt| trace::NamedDoubt::from((*doubt).clone()).to_line() + "\n";
        doubts.iter().map(line).collect::<String>()
    };
    let (code, counted) = measured(&lines(&[&late, &late]), 4);
    assert!(code == Some(0) && counted.contains("/wayfare run\t"), "{code:?} {counted}");
    for (doubts, code) in
        [(lines(&[&late, &clock]), 4), (lines(&[&clock]), 4), (String::new(), 4), (lines(&[&late]), 1)]
    {
        assert_eq!(measured(&doubts, code), (Some(code), String::new()), "{doubts}");
    }
}
