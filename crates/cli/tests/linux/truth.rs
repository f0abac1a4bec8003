//! Tests of causes outside of the protocols that make a run invalid: stalls, drops and duplicates that no link caused,
//! lost interfaces. Each cause must be found, with the name of the host or process.

use crate::common::*;
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use trace::Doubt;

/// Returns the arguments for a run of `first` without repetition, because the test acts on one run only.
fn once() -> Vec<&'static str> {
    let mut words = SHORT.to_vec();
    words.extend(["--repeats", "0"]);
    words
}

/// A short download over Mobile IP, without repetition.
const DOWNLOAD: [&str; 8] =
    ["run", "mobile-ip/download", "--on", "linux", "--set", "duration=3s", "--repeats", "0"];

/// Compiles `tamper.c`. Returns `None` if this machine has no compiler.
fn tamper(dir: &Path) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/linux/tamper.c");
    let program = dir.join("tamper");
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&program).arg(source);
    let output = cc.output();
    if !need("cc", output.is_ok()) {
        return None;
    }
    let output = output.unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    Some(program)
}

/// Asserts that a run is not to be trusted, and that `is_it` is true for one of its doubts.
fn assert_doubted(output: &Output, is_it: impl Fn(&Doubt) -> bool) {
    let Output { doubts, stdout, stderr, .. } = output;
    assert_eq!(output.status.code(), Some(4), "{doubts:?}\n{}", text(stdout));
    assert!(doubts.iter().any(is_it), "{doubts:#?}");
    // Each recorded doubt must be printed.
    let said = text(stderr);
    for doubt in doubts {
        assert!(said.contains(&format!("not to be trusted: {doubt}\n")), "{doubt}\n{said}");
    }
}

/// Asserts that no doubt is about packets: the cause of the doubts is a process.
fn assert_accuses_nothing_else(output: &Output) {
    let accuses = |doubt: &Doubt| matches!(doubt, Doubt::Unaccounted { .. } | Doubt::Appeared { .. });
    assert!(!output.doubts.iter().any(accuses), "{:#?}", output.doubts);
}

fn is_stalled(doubt: &Doubt, wanted: &str) -> bool {
    matches!(doubt, Doubt::Stalled { process, .. } if process == wanted)
}

fn has_changed(doubt: &Doubt, wanted: &str) -> bool {
    matches!(doubt, Doubt::Changed { host, .. } if host == wanted)
}

// --- stalls --------------------------------------------------------------------------------------------------------------

/// A control group by which the kernel's freezer stops processes without a signal (cgroups(7)).
struct Freezer(PathBuf);

impl Freezer {
    fn new() -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("wayfare-test-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let folder = Path::new("/sys/fs/cgroup/freezer").join(name);
        let made = std::fs::create_dir(&folder).is_ok();
        made.then_some(Self(folder))
    }

    fn freeze(&self, pid: u32, millis: u64) {
        self.hold(pid);
        pause(millis);
        self.set("THAWED");
    }

    fn hold(&self, pid: u32) {
        self.add(pid);
        self.set("FROZEN");
    }

    fn add(&self, pid: u32) {
        std::fs::write(self.0.join("cgroup.procs"), pid.to_string()).unwrap();
    }

    fn set(&self, state: &str) {
        std::fs::write(self.0.join("freezer.state"), state).unwrap();
    }
}

impl Drop for Freezer {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn a_frozen_daemon_is_named() {
    if !need("root, to freeze a process", is_root()) {
        return;
    }
    let _turn = alone();
    let Some(freezer) = Freezer::new() else {
        need("a freezer of control groups", false);
        return;
    };
    // A daemon is named even if it has no packets to forward while it is frozen.
    for host in ["b3", "correspondent"] {
        let out = tempfile::tempdir().unwrap();
        let running = Running::start(&once(), out.path());
        running.under_way();
        // The daemon is frozen during the handoff at 1 s, so that its delay would look like a delay of the protocol.
        freezer.freeze(running.daemon(host), 1000);
        let output = running.end();
        assert_doubted(&output, |doubt| is_stalled(doubt, host));
        assert_accuses_nothing_else(&output);
        // The machine may stall for some ms during the run. The daemon's freeze of 1 s must not be reported as a
        // stall of the machine.
        let machine =
            |doubt: &Doubt| matches!(doubt, Doubt::MachineStalled { stall_ms, .. } if *stall_ms > 500.0);
        assert!(!output.doubts.iter().any(machine), "{:#?}", output.doubts);
    }
}

/// A stall of all processes at the same time must not be attributed to any of them.
#[test]
fn a_stall_of_all_processes_is_one_doubt_and_the_machines() {
    if !need("root, to freeze processes", is_root()) {
        return;
    }
    let _turn = alone();
    let Some(freezer) = Freezer::new() else {
        need("a freezer of control groups", false);
        return;
    };
    let out = tempfile::tempdir().unwrap();
    let running = Running::start(&once(), out.path());
    running.under_way();
    for pid in ["correspondent", "b1", "b2", "b3", "mobile"].map(|host| running.daemon(host)) {
        freezer.add(pid);
    }
    freezer.freeze(radio(&running).unwrap(), 60);
    let output = running.end();
    let machine = |doubt: &Doubt| matches!(doubt, Doubt::MachineStalled { stalled: 6, processes: 6, stall_ms, .. } if *stall_ms > 50.0);
    assert_doubted(&output, machine);
    let until = output.doubts.iter().find_map(|doubt| match doubt {
        Doubt::MachineStalled { until_s, .. } if machine(doubt) => Some(*until_s),
        _ => None,
    });
    // During this stall, no single process may be reported as stalled. At other times, this machine may have been too
    // busy.
    let until = until.unwrap();
    let accused = output.doubts.iter().filter(
        |doubt| matches!(doubt, Doubt::Stalled { until_s, stall_ms, .. } if (until - until_s).abs() < stall_ms / 1000.0 + 0.06),
    );
    assert_eq!(accused.count(), 0, "{:#?}", output.doubts);
}

#[test]
fn a_traced_daemon_is_named() {
    if !need("root, to trace a process", is_root()) {
        return;
    }
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    let Some(tamper) = tamper(out.path()) else { return };
    let running = Running::start(&once(), out.path());
    running.under_way();
    let pid = running.daemon("b2").to_string();
    assert!(Command::new(tamper).args(["trace", &pid, "50"]).status().unwrap().success());
    let is_it =
        |doubt: &Doubt| matches!(doubt, Doubt::Stalled { process, alone_us: Some(_), .. } if process == "b2");
    assert_doubted(&running.end(), is_it);
}

/// Asserts that a run ended within 20 s, and that neither its daemon nor its lab's directory is left.
fn assert_over(began: os::Clock, daemon: u32, dir: &Path) {
    // The limit includes 2.9 s for the run, 2 s for which a daemon may stay stopped, and the set-up, the control run
    // and the records.
    let took = began.now();
    assert!(took < wire::Instant::from_millis(20_000), "{took}");
    assert!(!Path::new(&format!("/proc/{daemon}")).exists(), "the daemon is left");
    assert!(!dir.exists(), "{} is left", dir.display());
}

#[test]
fn a_daemon_that_is_stopped_for_ever_is_named_and_nothing_is_left() {
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    let began = os::Clock::start();
    let running = Running::start(&once(), out.path());
    running.under_way();
    let (daemon, dir) = (running.daemon("b1"), running.dir());
    signal(daemon, Signal::STOP);
    assert_doubted(&running.end(), |doubt| has_changed(doubt, "b1"));
    assert_over(began, daemon, &dir);
}

#[test]
fn a_daemon_that_cannot_be_continued_is_named_and_nothing_is_left() {
    if !need("root, to trace a process", is_root()) {
        return;
    }
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    let Some(tamper) = tamper(out.path()) else { return };
    let began = os::Clock::start();
    let running = Running::start(&once(), out.path());
    running.under_way();
    let (daemon, dir) = (running.daemon("b2"), running.dir());
    let mut tracer = Command::new(tamper).args(["trace", &daemon.to_string(), "60000"]).spawn().unwrap();
    let output = running.end();
    tracer.kill().unwrap();
    tracer.wait().unwrap();
    assert_doubted(&output, |doubt| gave_no_summary(doubt, "it is stopped and could not be continued"));
    assert_over(began, daemon, &dir);
}

/// The kernel ends neither the frozen daemon nor the lab's PID namespace when they are killed. Both end once the
/// freezer releases them.
#[test]
fn a_daemon_that_is_frozen_for_ever_is_named_and_the_run_ends() {
    if !need("root, to freeze a process", is_root()) {
        return;
    }
    let _turn = beside_others();
    let Some(freezer) = Freezer::new() else {
        need("a freezer of control groups", false);
        return;
    };
    let out = tempfile::tempdir().unwrap();
    let began = os::Clock::start();
    let running = Running::start(&once(), out.path());
    running.under_way();
    let (daemon, dir) = (running.daemon("b2"), running.dir());
    freezer.hold(daemon);
    let output = running.end();
    let held = os::is_frozen(daemon);
    freezer.set("THAWED");
    assert!(held, "the daemon was frozen until the end");
    let why = "it is frozen by a control group and could not be continued";
    assert_doubted(&output, |doubt| gave_no_summary(doubt, why));
    let gone = || !Path::new(&format!("/proc/{daemon}")).exists();
    wait_for("the end of the daemon", || gone().then_some(()));
    assert_over(began, daemon, &dir);
}

/// Returns whether the doubt is that b2 gave no summary at the end, for this reason.
fn gave_no_summary(doubt: &Doubt, wanted: &str) -> bool {
    matches!(doubt, Doubt::NoSummary { host, why } if host == "b2" && why.starts_with(wanted))
}

/// Returns the pid of a run's link emulator.
fn radio(of: &Running) -> Option<u32> {
    let words = |pid: &u32| command_line(*pid).get(1).is_some_and(|verb| verb == "lab-supervisor");
    // Two processes have this command line: the keeper, and the link emulator, which is the keeper's child.
    descendants(of.0.id()).into_iter().rfind(words)
}

#[test]
fn a_radio_process_that_is_stopped_in_every_attempt_is_named() {
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    let mut words = SHORT.to_vec();
    words.extend(["--repeats", "1"]);
    let running = Running::start(&words, out.path());
    let mut last = None;
    for _ in 0..2 {
        running.under_way();
        let pid = wait_for("another link emulator", || radio(&running).filter(|pid| Some(*pid) != last));
        running.under_way();
        signal(pid, Signal::STOP);
        pause(100);
        signal(pid, Signal::CONT);
        last = Some(pid);
        let gone = || !Path::new(&format!("/proc/{pid}")).exists();
        wait_for("the end of the attempt", || gone().then_some(()));
    }
    let output = running.end();
    assert_doubted(&output, |doubt| is_stalled(doubt, "the link emulator"));
    let run = kept_run(out.path());
    let repeats = run["linux"]["repeats"].as_array().unwrap();
    assert_eq!(repeats.len(), 1, "{repeats:?}");
    assert_eq!(repeats[0]["attempt"], 1);
    let radio = |reason: &serde_json::Value| reason["process"] == "the link emulator";
    assert!(repeats[0]["reasons"].as_array().unwrap().iter().any(radio), "{repeats:?}");
}

#[test]
fn a_daemon_that_was_stopped_still_gives_its_records() {
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    let running = Running::start(&once(), out.path());
    running.under_way();
    let pid = running.daemon("correspondent");
    signal(pid, Signal::STOP);
    pause(200);
    signal(pid, Signal::CONT);
    let output = running.end();
    assert_doubted(&output, |doubt| has_changed(doubt, "correspondent"));
    assert_accuses_nothing_else(&output);
}

#[test]
fn without_the_records_of_a_host_there_are_no_tables() {
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    let running = Running::start(&once(), out.path());
    running.under_way();
    signal(running.daemon("correspondent"), Signal::KILL);
    let output = running.end();
    let is_it = |doubt: &Doubt| matches!(doubt, Doubt::NoRecords { host } if host == "correspondent");
    assert_doubted(&output, is_it);
    let said = text(&output.stdout);
    assert!(said.contains("no tables") && !said.contains("ledger"), "{said}");
    assert_accuses_nothing_else(&output);
}

// --- drops and duplicates between a kernel and its node ------------------------------------------------------------------

/// Runs a scenario in which netfilter drops packets at this host.
fn with_filter(words: &[&str], host: &str, chain: &str, rule: &str) -> Output {
    let out = tempfile::tempdir().unwrap();
    let running = Running::start(words, out.path());
    let daemon = running.daemon(host);
    let family = if chain.contains("device") { "netdev" } else { "inet" };
    wait_for("the host's interfaces", || inside(daemon, &["ip", "link"]).contains("wf-host").then_some(()));
    inside(daemon, &["nft", &format!("add table {family} plant")]);
    inside(daemon, &["nft", &format!("add chain {family} plant c {{ {chain} }}")]);
    inside(daemon, &["nft", &format!("add rule {family} plant c {rule}")]);
    running.end()
}

/// Returns whether the doubt is that packets were lost between this host's kernel and its node, in this direction.
fn lost_at_the_stack(doubt: &Doubt, wanted: &str, is_to_kernel: bool) -> bool {
    matches!(doubt, Doubt::Stack { host, to_kernel, sent, came } if host == wanted && *to_kernel == is_to_kernel && came < sent)
}

#[test]
fn segments_lost_between_a_kernel_and_its_node_are_found_in_both_directions() {
    if !need("root and nft", is_root() && has_nft()) {
        return;
    }
    let _turn = beside_others();
    let one_of_ten = "ip protocol tcp numgen inc mod 10 0 drop";
    let out = "type filter hook postrouting priority 0;";
    let output = with_filter(&DOWNLOAD, "correspondent", out, one_of_ten);
    assert_doubted(&output, |doubt| lost_at_the_stack(doubt, "correspondent", false));
    let output = with_filter(&DOWNLOAD, "mobile", out, one_of_ten);
    assert_doubted(&output, |doubt| lost_at_the_stack(doubt, "mobile", false));
    let output = with_filter(&DOWNLOAD, "mobile", "type filter hook input priority 0;", one_of_ten);
    let is_it = |doubt: &Doubt| matches!(doubt, Doubt::Counts { host, counter, .. } if host == "mobile" && counter == "Tcp.InSegs");
    assert_doubted(&output, is_it);
    let at_the_device = "type filter hook ingress device wf-host priority 0;";
    let output = with_filter(&DOWNLOAD, "mobile", at_the_device, one_of_ten);
    assert_doubted(&output, |doubt| lost_at_the_stack(doubt, "mobile", true));
}

#[test]
fn frames_that_an_interface_refuses_are_no_loss_of_the_protocol() {
    if !need("root and nft", is_root() && has_nft()) {
        return;
    }
    let _turn = beside_others();
    let chain = "type filter hook egress device \"b2\" priority 0;";
    let output = with_filter(&once(), "b1", chain, "ether type ip numgen inc mod 10 0 drop");
    let is_it = |doubt: &Doubt| matches!(doubt, Doubt::Refused { host, interface, reason, .. } if host == "b1" && interface == "b2" && reason == "send_no_buffers");
    assert_doubted(&output, is_it);
}

#[test]
fn duplicates_that_no_link_made_are_named() {
    if !need("root, to send frames", is_root()) {
        return;
    }
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    let Some(tamper) = tamper(out.path()) else { return };
    let tamper = tamper.to_string_lossy().into_owned();

    let running = Running::start(&once(), out.path());
    running.under_way();
    inside(running.daemon("correspondent"), &[&tamper, "double", "wf-host", "3"]);
    let is_it = |doubt: &Doubt| matches!(doubt, Doubt::Stack { host, to_kernel: false, sent, came } if host == "correspondent" && *came == sent + 3);
    assert_doubted(&running.end(), is_it);

    let running = Running::start(&once(), out.path());
    running.under_way();
    let device = far_end(&running, "mobile", "air");
    let radio = radio(&running).unwrap().to_string();
    inside(running.daemon("mobile"), &[&tamper, "copy", "air", "3", &radio, &device]);
    let is_it = |doubt: &Doubt| matches!(doubt, Doubt::FramesIn { host, interface, came, delivered } if host == "mobile" && interface == "air" && *came == delivered + 3);
    assert_doubted(&running.end(), is_it);
}

/// Returns the name of the link emulator's end of a host's interface.
fn far_end(running: &Running, host: &str, interface: &str) -> String {
    let link = inside(running.daemon(host), &["ip", "-o", "link", "show", interface]);
    let index = link.split(['@', ':']).find_map(|word| word.strip_prefix("if")).unwrap().to_owned();
    let all = inside(radio(running).unwrap(), &["ip", "-o", "link"]);
    let line = all.lines().find(|line| line.starts_with(&format!("{index}:"))).unwrap().to_owned();
    line.split([' ', '@']).nth(1).unwrap().trim_end_matches(':').to_owned()
}

// --- lost interfaces -----------------------------------------------------------------------------------------------------

#[test]
fn an_interface_that_goes_down_or_is_removed_is_named() {
    if !need("root, to change interfaces", is_root()) {
        return;
    }
    let _turn = beside_others();
    for words in [["ip", "link", "set", "air", "down"].as_slice(), &["ip", "link", "delete", "air"]] {
        let out = tempfile::tempdir().unwrap();
        let running = Running::start(&once(), out.path());
        running.under_way();
        inside(running.daemon("mobile"), words);
        let is_it = |doubt: &Doubt| matches!(doubt, Doubt::InterfaceLost { host, interface } if host == "mobile" && interface == "air");
        assert_doubted(&running.end(), is_it);
    }
}
