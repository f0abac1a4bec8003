//! Events of scenarios on Linux: they have the same effect on links as in the simulator, and cause no doubt.

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
    let _turn = beside_others();
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("faulty.toml"), format!("{FIRST}{EVENTS}")).unwrap();
    let dropped = |backend: &str| {
        let out = format!("on-{backend}");
        let words = [
            "run",
            "faulty.toml",
            "--on",
            backend,
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

/// Runs a scenario on both backends. Returns the `run.json` of each, or `None` if the machine was too busy on Linux.
fn on_both(text: &str, settings: &[&str], code: i32, says: &str) -> Option<[serde_json::Value; 2]> {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("faulty.toml"), text).unwrap();
    let mut kept = Vec::new();
    for backend in ["sim", "linux"] {
        let mut words = vec!["run", "faulty.toml", "--on", backend, "--out", backend];
        words.extend(settings.iter().flat_map(|setting| ["--set", setting]));
        let output = run(&words, dir.path());
        if output.was_only_late() {
            late(&output);
            return None;
        }
        assert_exit(&output, code, says);
        let file = std::fs::read_to_string(dir.path().join(backend).join("run.json")).unwrap();
        let file: serde_json::Value = serde_json::from_str(&file).unwrap();
        assert_eq!(file["doubts"], serde_json::json!([]), "{backend}");
        kept.push(file);
    }
    kept.try_into().ok()
}

const SHORT: [&str; 2] = ["duration=2.9s", "constant-rate.stop=2.8s"];
/// The settings of a longer run with two more handoffs: a busy machine may restart a router late, and a handoff must
/// come after the restart.
const LONG: [&str; 2] = ["duration=4.9s", "constant-rate.stop=4.8s"];
/// Time between two packets of the source, in milliseconds.
const SPACING: u64 = 20;

fn dropped(kept: &serde_json::Value, reason: &str) -> i64 {
    kept["summary"]["ledger"]["reasons"][reason].as_i64().unwrap_or_default()
}

/// Returns an `[[event]]` of a host as text of a scenario file.
fn event(at: &str, kind: &str, host: &str) -> String {
    format!("\n[[event]]\nat = \"{at}\"\nkind = \"{kind}\"\nhost = \"{host}\"\n")
}

/// Returns when the daemon of `b1` was dead, and when its successor began, in milliseconds of the run.
fn crash_of_b1(kept: &serde_json::Value) -> [u64; 2] {
    let hosts = kept["linux"]["hosts"].as_array().unwrap();
    let b1 = hosts.iter().find(|host| host["name"] == "b1").unwrap();
    ["at_us", "restarted_us"].map(|key| b1["crashes"][0][key].as_u64().unwrap() / 1000)
}

/// The daemon is stopped before it has taken over its interfaces. The daemon begins when it is continued, while in the
/// simulator a host begins at the instant of its restart. The time for which it is stopped does not count towards the
/// time limit for its answer.
#[test]
fn a_router_that_is_stopped_while_it_restarts_begins_when_it_is_continued() {
    let _turn = beside_others();
    let events = [
        event("1s", "crash", "b1"),
        event("1.3s", "restart", "b1"),
        event("1.301s", "stop", "b1"),
        event("2s", "continue", "b1"),
    ];
    let Some([sim, linux]) = on_both(&format!("{FIRST}{}", events.concat()), &LONG, 0, "restart of b1")
    else {
        return;
    };
    // The machine determines how long a daemon takes to die, or to take over its interfaces.
    let [crashed, again] = crash_of_b1(&linux);
    assert!((1000..1300).contains(&crashed), "{crashed} ms");
    assert!((2000..4800).contains(&again), "{again} ms");
    let ends = |kept: &serde_json::Value| kept["summary"]["ledger"]["delivered"].as_u64().unwrap();
    let (sim, on_linux) = (ends(&sim), ends(&linux));
    // The daemon forwards packets until it is dead. In the simulator, the host is down from the instant of the crash
    // on.
    let more = (crashed - 1000) / SPACING + 1;
    assert!(on_linux > 0 && on_linux <= sim + more, "{sim} in the simulator, {on_linux} on Linux");
}

#[test]
fn a_router_that_crashes_loses_what_it_had_and_comes_back() {
    let _turn = beside_others();
    let crash = event("1.3s", "crash", "b1") + &event("1.8s", "restart", "b1");
    let Some([sim, linux]) = on_both(&format!("{FIRST}{crash}"), &LONG, 0, "crash of b1") else { return };
    let [crashed, again] = crash_of_b1(&linux);
    assert!((1300..1800).contains(&crashed), "{crashed} ms");
    assert!((1800..4800).contains(&again), "{again} ms");
    // The daemon dies, and takes over its interfaces, later than the host in the simulator. Hosts other than the source
    // send packets too.
    let (sim, on_linux) = (dropped(&sim, "host_down"), dropped(&linux, "host_down"));
    let most = sim + i64::try_from((again - 1800) / SPACING).unwrap() * 2 + 4;
    let least = sim - i64::try_from((crashed - 1300) / SPACING).unwrap() - 1;
    assert!(sim >= 24 && (least..=most).contains(&on_linux), "{sim} in the simulator, {on_linux} on Linux");
}

#[test]
fn a_host_that_is_stopped_keeps_all_and_one_that_stays_down_leaves_its_records() {
    let _turn = beside_others();
    let events = [
        event("1.3s", "stop", "b1"),
        event("2s", "continue", "b1"),
        event("2.2s", "clock", "b2") + "step = \"+1s\"\n",
        event("2.4s", "crash", "mobile"),
    ]
    .concat();
    let says = "no new data after";
    let Some(both) = on_both(&format!("{FIRST}{events}"), &SHORT, 1, says) else { return };
    let [sim, linux] = both
        .each_ref()
        .map(|kept| (kept["summary"]["ledger"]["delivered"].as_i64().unwrap(), dropped(kept, "host_down")));
    assert!((sim.0 - linux.0).abs() <= 2 && (sim.1 - linux.1).abs() <= 2, "{sim:?}, on Linux {linux:?}");
}

#[test]
fn a_link_that_gets_narrow_refuses_what_is_too_big() {
    let _turn = beside_others();
    let narrow = "\n[[event]]\nat = \"1.5s\"\nkind = \"mtu\"\nwire = \"internet\"\nmtu = 400\n";
    let settings = [SHORT[0], SHORT[1], "constant-rate.size=500"];
    let says = "MTU 400 on wire internet";
    let Some([sim, linux]) = on_both(&format!("{FIRST}{narrow}"), &settings, 1, says) else { return };
    let reasons = |kept: &serde_json::Value| {
        let all = kept["summary"]["ledger"]["reasons"].as_object().unwrap();
        all.keys().cloned().collect::<Vec<_>>()
    };
    assert!(reasons(&sim).contains(&"too_big".to_owned()), "{sim}");
    assert!((dropped(&sim, "too_big") - dropped(&linux, "too_big")).abs() <= 2, "{:?}", reasons(&linux));
}

#[test]
fn a_home_agent_with_a_full_disk_registers_nobody_until_it_is_free() {
    let _turn = beside_others();
    let drive = include_str!("../../../../scenarios/mobile-ip/drive.toml");
    let full = event("1s", "disk-full", "home");
    on_both(&format!("{drive}{full}"), &[], 1, "no new data after");
    on_both(&format!("{drive}{full}{}", event("3s", "disk-free", "home")), &[], 0, "disk free at home");
}
