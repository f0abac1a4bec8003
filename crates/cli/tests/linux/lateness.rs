//! Tests of whether the machine or Wayfare is the cause of late frames. An extra delay of 3 ms per frame must be found,
//! in the link emulator and in the daemon's loop.

use crate::common::*;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    Holds,
    Fails,
    /// The control run, without any daemon, was late too. So the machine may be the cause.
    Inconclusive,
}

/// A median that exceeds the median of the control run by this time or more is a failure. The time is half of the
/// planted delay.
const ALLOWED_US: f64 = 1500.0;

/// Compares a median with the median of the control: a busy machine delays both.
fn judge(median_us: f64, control_us: f64) -> Verdict {
    if median_us - control_us < ALLOWED_US {
        Verdict::Holds
    } else if control_us < ALLOWED_US {
        Verdict::Fails
    } else {
        Verdict::Inconclusive
    }
}

/// Evaluates the link emulator in the control run: compares the lateness of its frames with that of a thread that only
/// sleeps.
fn emulator(linux: &Value) -> Verdict {
    judge(median(&linux["control"]["frames"]), median(&linux["control"]["sleeper"]))
}

/// Evaluates the daemons of the run: compares the lateness of frames at the slowest daemon with that of frames in the
/// control run, which has no daemon.
fn daemons(linux: &Value) -> Verdict {
    let hosts = linux["hosts"].as_array().unwrap();
    let medians = hosts.iter().map(|host| median(&host["summary"]["handled"]));
    judge(medians.fold(0.0, f64::max), median(&linux["control"]["frames"]))
}

fn median(ages: &Value) -> f64 {
    ages["median_us"].as_f64().unwrap()
}

/// Compiles `late.c`. Returns `None` if this machine has no compiler.
fn library(dir: &Path) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/linux/late.c");
    let library = dir.join("late.so");
    let mut cc = Command::new("cc");
    let compiled = cc.args(["-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-o"]);
    let output = compiled.arg(&library).arg(source).output();
    if !need("cc", output.is_ok()) {
        return None;
    }
    let output = output.unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    Some(library)
}

/// Runs `first`. Returns the field `linux` of `run.json`, and what the run printed. `planted` is the library that
/// delays each frame, and the subcommand of `wayfare` whose processes it delays.
fn measured(planted: Option<(&Path, &str)>, out: &Path) -> (Value, String) {
    let mut words = SHORT.to_vec();
    words.extend(["--repeats", "0", "--force"]);
    let mut command = command(&words, out);
    if let Some((library, verb)) = planted {
        command.env("LD_PRELOAD", library).env("LATE", verb);
    }
    let output = ended(&mut command);
    let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
    (kept_run(out)["linux"].clone(), said)
}

/// Asserts that `verdict` is `Holds` without a planted delay, and `Fails` if the processes of the subcommand `verb` are
/// delayed. If the machine is too busy, the test counts as inconclusive.
fn assert_finds(verb: &str, verdict: fn(&Value) -> Verdict) {
    let _turn = alone();
    let out = tempfile::tempdir().unwrap();
    let Some(library) = library(out.path()) else { return };
    for (planted, wanted) in [(None, Verdict::Holds), (Some((library.as_path(), verb)), Verdict::Fails)] {
        let (linux, said) = measured(planted, out.path());
        match verdict(&linux) {
            Verdict::Inconclusive => return inconclusive(&said),
            found => assert_eq!(found, wanted, "{said}\n{}", linux["control"]),
        }
    }
}

#[test]
fn three_milliseconds_more_per_frame_in_the_link_emulator_are_found() {
    assert_finds("lab-supervisor", emulator);
}

#[test]
fn three_milliseconds_more_per_frame_in_the_daemons_loop_are_found() {
    assert_finds("node", daemons);
}

#[test]
fn a_machine_that_is_late_by_itself_decides_nothing() {
    assert_eq!(judge(3100.0, 90.0), Verdict::Fails);
    assert_eq!(judge(200.0, 90.0), Verdict::Holds);
    assert_eq!(judge(2900.0, 2000.0), Verdict::Holds, "as late as the machine");
    assert_eq!(judge(9000.0, 2000.0), Verdict::Inconclusive);
}

#[test]
fn a_run_says_how_late_this_machine_is_without_any_daemon() {
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    let (linux, said) = measured(None, out.path());
    let control = &linux["control"];
    assert_eq!((&control["frames"]["count"], &control["sleeper"]["count"]), (&160.into(), &160.into()));
    assert_eq!(control["follows_this_run"], true);
    assert!(said.contains("this machine, without any daemon: frames late by "), "{said}");
}

#[test]
fn a_batch_measures_the_machine_once_and_again_after_a_run_that_was_late() {
    let _turn = beside_others();
    let (file, text) = scenario::Scenario::find("first").unwrap();
    let settings = ["duration=600ms", "constant-rate.stop=500ms"].map(|text| text.parse().unwrap());
    let plan = scenario::Scenario::plan(&file, &text, &settings, 1).unwrap();
    let programs = emulator::run::Programs { wayfare: wayfare().to_owned(), instead: None };
    let run = || emulator::run::run(plan.clone(), &programs, &false.into()).unwrap();
    assert!(emulator::run::report_of(&run()).unwrap().control.is_some());
    let second = run();
    let is_late = second.doubts.iter().any(trace::Doubt::is_timing);
    assert_eq!(emulator::run::report_of(&second).unwrap().control.unwrap().follows_this_run, is_late);
}
