//! Events of scenarios on Linux: what happens to links is what happens in the simulator, and no doubt.

use crate::common::*;

const FIRST: &str = include_str!("../../../../scenarios/first.toml");
const EVENTS: &str = r#"
[[event]]
at = "0.7s"
kind = "loss"
wire = "internet"
loss = 1

[[event]]
at = "0.9s"
kind = "loss"
wire = "internet"
loss = 0

[[event]]
at = "1.3s"
kind = "cut"
wire = "internet"

[[event]]
at = "1.5s"
kind = "restore"
wire = "internet"

[[event]]
at = "2.3s"
kind = "cut"
cell = 2

[[event]]
at = "2.5s"
kind = "restore"
cell = 2
"#;

#[test]
fn cuts_and_losses_of_links_are_the_same_on_both_backends() {
    let _turn = beside_another();
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("faulty.toml"), format!("{FIRST}{EVENTS}")).unwrap();
    let dropped = |world: &str| {
        let out = format!("on-{world}");
        let words = [
            "run",
            "faulty.toml",
            "--on",
            world,
            "--out",
            &out,
            "--set",
            "duration=2.9s",
            "--set",
            "constant-rate.stop=2.8s",
        ];
        let output = run(&words, dir.path());
        held_or_late(&output, "cut of wire internet .. restore of wire internet");
        let kept = std::fs::read_to_string(dir.path().join(&out).join("run.json")).unwrap();
        let kept: serde_json::Value = serde_json::from_str(&kept).unwrap();
        let reasons = kept["summary"]["ledger"]["reasons"].clone();
        ["link_cut", "link_error"].map(|reason| reasons[reason].as_i64().unwrap_or_default())
    };
    let (sim, linux) = (dropped("sim"), dropped("linux"));
    for (sim, linux) in sim.into_iter().zip(linux) {
        assert!(sim >= 8 && (sim - linux).abs() <= 2, "{sim} in the simulator, {linux} on Linux");
    }
}

#[test]
fn an_event_that_no_daemon_carries_out_is_refused_by_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let crash = "\n[[event]]\nat = \"1s\"\nkind = \"crash\"\nhost = \"b1\"\n";
    std::fs::write(dir.path().join("crash.toml"), format!("{FIRST}{crash}")).unwrap();
    let output = run(&["run", "crash.toml", "--on", "linux"], dir.path());
    assert!(!output.status.success());
    assert!(text(&output.stderr).contains("`crash of b1` is an event for the simulator alone"));
}
