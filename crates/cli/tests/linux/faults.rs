//! Tests of runs on Linux: undisturbed runs of root and of other users have no failures, and a run with a fault names
//! the cause.

use crate::common::*;
use rustix::process::Signal;
use std::collections::BTreeMap;
use trace::Doubt;

#[test]
fn a_run_holds_and_leaves_nothing_behind() {
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    let output = run(&SHORT, out.path());
    assert_held(&output, "first on linux");
}

#[test]
fn a_user_without_rights_gets_the_same() {
    if !need("root, to become another user", is_root()) {
        return;
    }
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    assert_held(&run_as_nobody(&SHORT, out.path()), "first on linux");
}

#[test]
fn a_silent_drop_is_lost_between_two_places_without_a_reporter() {
    if !need("root and nft", is_root() && has_nft()) {
        return;
    }
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    let running = Running::start(&SHORT, out.path());
    let mobile = running.daemon("mobile");
    inside(mobile, &["nft", "add table inet plant"]);
    inside(mobile, &["nft", "add chain inet plant in { type filter hook input priority 0; }"]);
    inside(mobile, &["nft", "add rule inet plant in udp dport 9000 numgen inc mod 20 0 drop"]);
    let output = running.end();
    assert_exit(&output, 4, "");
    let between = ["mobile's node", "mobile's application"];
    assert!(
        output
            .doubts
            .iter()
            .any(|doubt| matches!(doubt, Doubt::Unaccounted { between: places, .. } if *places == between)),
        "{:?}",
        output.doubts
    );
}

#[test]
fn a_delay_between_a_kernel_and_its_node_is_a_doubt() {
    let has_tc = || std::process::Command::new("tc").arg("-V").output().is_ok();
    if !need("root and tc", is_root() && has_tc()) {
        return;
    }
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    let running = Running::start(&SHORT, out.path());
    let mobile = running.daemon("mobile");
    // Not every kernel has netem, so a slow token bucket delays the packets. The command fails until the daemon has
    // created the interface.
    let id = mobile.to_string();
    let delayed = ["-t", &id, "-n", "tc", "qdisc", "add", "dev", "wf-host", "root", "tbf"];
    wait_for("the interface", || {
        let mut command = std::process::Command::new("nsenter");
        command.args(delayed).args(["rate", "1mbit", "burst", "3k", "limit", "90k"]);
        command.output().unwrap().status.success().then_some(())
    });
    pause(100);
    inside(mobile, &["tc", "qdisc", "del", "dev", "wf-host", "root"]);
    let output = running.end();
    assert_exit(&output, 4, "");
    let is_named = |doubt: &Doubt| matches!(doubt, Doubt::Queue { host, interface, kind } if host == "mobile" && interface == "wf-host" && kind == "tbf");
    assert!(output.doubts.iter().any(is_named), "{:?}", output.doubts);
}

#[test]
fn what_is_sent_after_the_end_is_held_and_not_lost() {
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    // The links stop at the end of the run, and the applications are stopped shortly afterwards. Packets that are sent
    // between these instants are held.
    let words =
        ["run", "first", "--on", "linux", "--set", "duration=900ms", "--set", "constant-rate.rate=400"];
    let output = run(&words, out.path());
    assert_held(&output, "first on linux");
}

#[test]
fn a_daemon_that_is_stopped_spoils_the_run_even_if_it_is_continued() {
    let _turn = beside_others();
    for (host, continued) in [("b1", false), ("b3", true), ("b2", true)] {
        let out = tempfile::tempdir().unwrap();
        let running = Running::start(&SHORT, out.path());
        running.under_way();
        let pid = running.daemon(host);
        signal(pid, Signal::STOP);
        if continued {
            pause(30);
            signal(pid, Signal::CONT);
        }
        let output = running.end();
        // If the lab checks the daemon only after both signals, it notices only that the daemon was continued.
        let said = if continued { "" } else { "stopped during the run" };
        assert_exit(&output, 4, &format!("{host}: the daemon was {said}"));
    }
}

#[test]
fn a_daemon_that_is_killed_ends_the_run_and_is_named() {
    let _turn = beside_others();
    for (name, said) in [
        (Signal::KILL, "was killed by signal 9 during the run"),
        // SIGTERM ends the daemon cleanly, but too early.
        (Signal::TERM, "ended with exit status 0 during the run"),
    ] {
        let out = tempfile::tempdir().unwrap();
        let running = Running::start(&SHORT, out.path());
        running.under_way();
        signal(running.daemon("b3"), name);
        assert_exit(&running.end(), 4, &format!("b3: the daemon {said}"));
    }
}

#[test]
fn a_program_that_is_no_daemon_is_named() {
    let _turn = beside_others();
    let (file, text) = scenario::Scenario::find("first").unwrap();
    let plan = scenario::Scenario::plan(&file, &text, &[], 1).unwrap();
    let instead = Some(("b2".to_owned(), vec!["sleep".to_owned(), "60".to_owned()]));
    let programs = emulator::run::Programs { wayfare: wayfare().to_owned(), instead };
    let error = emulator::run::run(plan, &programs, &false.into()).unwrap_err();
    assert_eq!(error.to_string(), "b2: no daemon answers at its control socket within 10 s");
}

/// If a restarted daemon ends with an unknown exit code, the daemon is named as the cause. If it ends with 3, the
/// machine is the cause.
#[test]
fn a_daemon_that_does_not_come_back_after_a_crash_is_named() {
    use emulator::run::LinuxError;
    let _turn = beside_others();
    let (file, text) = scenario::Scenario::find("first").unwrap();
    let events = "\n[[event]]\nat = \"0.2s\"\nkind = \"crash\"\nhost = \"b2\"\n\
                  [[event]]\nat = \"0.3s\"\nkind = \"restart\"\nhost = \"b2\"\n";
    for (code, is_ours) in [(101, true), (3, false)] {
        let plan = scenario::Scenario::plan(&file, &format!("{text}{events}"), &[], 1).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let mark = dir.path().join("has-been").display().to_string();
        let script = format!(
            "test -e '{mark}' && {{ echo 'error: the store is lost' >&2; exit {code}; }}; touch '{mark}'; exec \"$0\" node \"$1\""
        );
        let wayfare = wayfare().to_owned();
        let words = ["sh", "-c", &script, &wayfare.display().to_string(), "{config}"].map(str::to_owned);
        let programs = emulator::run::Programs { wayfare, instead: Some(("b2".to_owned(), words.to_vec())) };
        let error = emulator::run::run(plan, &programs, &false.into()).unwrap_err();
        assert!(
            error.to_string().contains("b2: ") && error.to_string().ends_with("the store is lost"),
            "{error}"
        );
        let is_named = matches!(&error, LinuxError::NotReady { host, .. } if host == "b2");
        assert_eq!((is_named, matches!(error, LinuxError::Lacks(_))), (is_ours, !is_ours), "{error:?}");
    }
}

#[test]
fn without_the_ingress_hook_the_kernel_acts_beside_the_node_and_the_run_says_so() {
    if !need("root and nft", is_root() && has_nft()) {
        return;
    }
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    let running = Running::start(&SHORT, out.path());
    let mobile = running.daemon("mobile");
    running.under_way(); // the table exists now
    inside(mobile, &["nft", "delete table netdev wayfare_own"]);
    let output = running.end();
    assert_exit(&output, 4, "mobile's stack");
}

#[test]
fn a_full_queue_is_named_with_its_interface() {
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    let mut words = SHORT.to_vec();
    // A packet of 128 bytes takes longer than the 20 ms between two packets, so a queue of one packet is full
    // repeatedly.
    words.extend(["--set", "wire.left.rate=40kb/s", "--set", "wire.left.queue=1", "--format", "json"]);
    let output = run(&words, out.path());
    assert_held(&output, "queue_full");
    let csv = std::fs::read_to_string(kept(out.path()).join("packets.csv")).unwrap();
    assert!(csv.contains("lost at b1:b2: queue_full"), "{csv}");
}

#[test]
fn a_link_that_doubles_packets_is_named_and_the_ledger_balances() {
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    let mut words = SHORT.to_vec();
    words.extend(["--set", "wire.left.duplicate=0.2"]);
    let output = run(&words, out.path());
    assert_held(&output, "duplicated by the wire from b1:b2 to b2:b1");
}

#[test]
fn copies_that_a_link_delivers_late_are_named_and_the_ledger_balances() {
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    let mut words = SHORT.to_vec();
    words.extend(["--set", "wire.left.duplicate=0.2", "--set", "wire.left.duplicate_delay=300ms"]);
    let output = run(&words, out.path());
    assert_held(&output, "duplicated by the wire from b1:b2 to b2:b1");
    let csv = std::fs::read_to_string(kept(out.path()).join("packets.csv")).unwrap();
    let mut arrived: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for row in csv.lines().map(|line| line.split(',').collect::<Vec<_>>()) {
        if row[3..6] == ["b2", "b1", "in"] {
            arrived.entry(row[1]).or_default().push(row[2].parse().unwrap());
        }
    }
    let gaps: Vec<f64> = arrived.values().filter(|times| times.len() == 2).map(|at| at[1] - at[0]).collect();
    let late = gaps.iter().filter(|gap| (0.29..0.4).contains(*gap)).count();
    assert!(late > 2 && late * 10 > gaps.len() * 9, "{gaps:?}");
}

#[test]
fn a_handoff_by_command_over_the_control_socket() {
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    let mut words = SHORT.to_vec();
    // The run must not be repeated, because the test sends the command to the first run only.
    words.extend(["--set", "mobile.moves=[]", "--repeats", "0"]);
    assert_held(&hand_off_by_command(&words, out.path()), "semisoft  b2    b3");
}

fn hand_off_by_command(words: &[&str], out: &std::path::Path) -> Output {
    let running = Running::start(words, out);
    running.under_way();
    let control = running.dir().join("mobile.sock");
    let ask = |line: &str| ask(&control, line).unwrap();
    assert!(
        ask(r#"{"do":{"verb":"handoff","args":{"to":"b9"}}}"#).contains("no station `b9`; known: b2, b3")
    );
    assert!(
        ask(r#"{"do":{"verb":"dance"}}"#)
            .contains("no role of this host has the command `dance`; known: status, handoff")
    );
    assert!(ask("nonsense").contains("not a request"));
    assert!(ask(r#"{"do":{"verb":"handoff","args":{"to":"b3","kind":"semisoft"}}}"#).contains("\"ok\""));
    assert!(ask(r#"{"do":{"verb":"status"}}"#).contains("\"state\""));
    running.end()
}

#[test]
fn a_kernel_that_lacks_something_is_exit_3_and_its_name() {
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    // In a new user namespace, a user may forbid network namespaces.
    let script = format!(
        "echo 0 > /proc/sys/user/max_net_namespaces && exec {} run first --on linux",
        wayfare().display()
    );
    let mut command = std::process::Command::new("unshare");
    let output = ended(command.args(["-Ur", "sh", "-c", &script]).current_dir(out.path()));
    assert_exit(&output, 3, "cannot make new namespaces for");
    assert!(!out.path().join("runs").exists(), "no silent fall-back to the simulator");
}

#[test]
fn ctrl_c_leaves_nothing() {
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    let running = Running::start(&SHORT, out.path());
    running.under_way();
    let (dir, all) = (running.dir(), descendants(running.0.id()));
    assert!(all.len() >= 7, "{all:?}");
    signal(running.0.id(), Signal::INT);
    let output = running.end();
    assert_exit(&output, 130, "incomplete runs are removed");
    assert!(!dir.exists());
    wait_for("the end of every process", || all.iter().all(|pid| !alive(*pid)).then_some(()));
}

#[test]
fn after_kill_9_of_a_lab_nothing_is_left_and_another_lab_is_not_touched() {
    // The test starts two labs, and cleans up after all labs.
    let _turn = alone();
    let out = tempfile::tempdir().unwrap();
    let killed = Running::start(&SHORT, out.path());
    let other_out = tempfile::tempdir().unwrap();
    let other = Running::start(&SHORT, other_out.path());
    killed.under_way();
    other.daemon("mobile");
    let (dir, all) = (killed.dir(), descendants(killed.0.id()));
    let other_dir = other.dir();
    signal(killed.0.id(), Signal::KILL);
    killed.end();
    let cleaned = run(&["doctor", "--clean"], out.path());
    assert_exit(&cleaned, 0, &format!("{}: the lab is running; not changed", other_dir.display()));
    assert!(
        text(&cleaned.stdout).contains(&format!("{}: removed", dir.display())),
        "{}",
        text(&cleaned.stdout)
    );
    assert!(!dir.exists());
    wait_for("the end of every process", || all.iter().all(|pid| !alive(*pid)).then_some(()));
    let output = other.end();
    // Two labs at the same time may delay the links too much; this test does not check the delays.
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("first on linux"));
}

fn alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
    state.is_some_and(|state| state != 'Z' && state != 'X')
}

#[test]
fn a_full_folder_for_temporary_files_is_exit_3_and_named() {
    if !need("root, to mount a disk", is_root()) {
        return;
    }
    let _turn = beside_others();
    // The disk becomes full when the configurations, or the stores of the daemons, are written.
    for kilobytes in [16, 100, 200] {
        let out = tempfile::tempdir().unwrap();
        let tiny = out.path().join("tiny");
        std::fs::create_dir(&tiny).unwrap();
        let script = format!(
            "mount -t tmpfs -o size={kilobytes}k tiny '{0}' && TMPDIR='{0}' exec \"$0\" \"$@\"",
            tiny.display()
        );
        let mut command = std::process::Command::new("unshare");
        command.args(["-m", "sh", "-c", &script]).arg(wayfare()).args(SHORT).current_dir(out.path());
        let output = ended(&mut command);
        assert_exit(&output, 3, &tiny.display().to_string());
        assert_exit(&output, 3, "TMPDIR");
    }
}
