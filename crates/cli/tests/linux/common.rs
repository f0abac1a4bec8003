//! Functions that the tests of runs on Linux share: the command, its lab's processes, and reports of what was not
//! tested.

use std::fs::Permissions;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;
use tempfile::NamedTempFile;
use trace::{Doubt, NamedDoubt};

/// The number of places for concurrent tests. A test takes one place, half of the places, or all.
const PLACES: u8 = 4;

static FREE: Mutex<u8> = Mutex::new(PLACES);
static FREED: Condvar = Condvar::new();

/// A test's permission to run, until it is dropped.
pub(crate) struct Turn(u8);

impl Turn {
    fn take(places: u8) -> Self {
        let free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        *FREED.wait_while(free, |free| *free < places).unwrap_or_else(PoisonError::into_inner) -= places;
        Self(places)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *FREE.lock().unwrap_or_else(PoisonError::into_inner) += self.0;
        FREED.notify_all();
    }
}

/// Waits until no other test runs, and keeps other tests from running: for tests that evaluate times, or how much was
/// done in a time.
pub(crate) fn alone() -> Turn {
    Turn::take(PLACES)
}

/// Waits until half of the [`PLACES`] are free, and takes them: for tests that repeat a run if this machine delayed it.
pub(crate) fn beside_few() -> Turn {
    Turn::take(PLACES / 2)
}

/// Waits until one of the [`PLACES`] is free, and takes it: for tests that evaluate what happened, not when.
pub(crate) fn beside_others() -> Turn {
    Turn::take(1)
}

pub(crate) fn wayfare() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_wayfare"))
}

/// Returns whether the test can run. In continuous integration a missing feature is a failure.
pub(crate) fn need(what: &str, have: bool) -> bool {
    #[expect(clippy::disallowed_methods, reason = "CI says so by a variable")]
    let ci = std::env::var("CI").is_ok();
    assert!(have || !ci, "CI must be able to test: {what}");
    if !have {
        eprintln!("SKIPPED, because this machine lacks: {what}");
    }
    have
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

pub(crate) fn has_nft() -> bool {
    Command::new("nft").arg("--version").output().is_ok()
}

/// A short run of `first` with one handoff of each kind.
pub(crate) const SHORT: [&str; 8] =
    ["run", "first", "--on", "linux", "--set", "duration=2.9s", "--set", "constant-rate.stop=2.6s"];

/// Returns a command whose working directory is `out`, so that it writes its runs there.
pub(crate) fn command(words: &[&str], out: &Path) -> Command {
    let mut command = Command::new(wayfare());
    command.args(words).current_dir(out).stdin(Stdio::null());
    command
}

pub(crate) fn run(words: &[&str], out: &Path) -> Output {
    ended(&mut command(words, out))
}

/// The result of a command: its exit status, what it printed, and the doubts that it recorded.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) doubts: Vec<Doubt>,
}

impl Output {
    fn new(output: std::process::Output, doubts: &NamedTempFile) -> Self {
        let std::process::Output { status, stdout, stderr } = output;
        let lines = std::fs::read_to_string(doubts.path()).unwrap();
        let parse = |line: &str| serde_json::from_str::<NamedDoubt>(line).unwrap().doubt;
        Self { status, stdout, stderr, doubts: lines.lines().map(parse).collect() }
    }

    /// Returns whether the only doubts are that a busy host delayed the run.
    pub(crate) fn was_only_late(&self) -> bool {
        self.ended_with_4() && !self.doubts.is_empty() && self.doubts.iter().all(Doubt::is_timing)
    }

    /// Returns whether the command ended with 4. If its command fails, `make` ends with 2, and prints the exit code of
    /// the command.
    fn ended_with_4(&self) -> bool {
        let code = self.status.code();
        code == Some(4) || (code == Some(2) && text(&self.stderr).trim_end().ends_with("Error 4"))
    }
}

/// Creates a file for the doubts of a command, writable for any user that the command runs as.
fn doubts_of(command: &mut Command) -> NamedTempFile {
    let file = NamedTempFile::new().unwrap();
    std::fs::set_permissions(file.path(), Permissions::from_mode(0o666)).unwrap();
    command.env("WAYFARE_DOUBTS", file.path());
    file
}

/// Runs a command to its end.
pub(crate) fn ended(command: &mut Command) -> Output {
    let doubts = doubts_of(command);
    Output::new(command.output().unwrap(), &doubts)
}

/// Runs the command as a user without any rights, which only root can do.
pub(crate) fn run_as_nobody(words: &[&str], out: &Path) -> Output {
    // That user may not be allowed to traverse the path of the binary, so it is copied.
    let mode = |path: &Path, mode| std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    mode(out, 0o777);
    let copy = out.join("wayfare");
    std::fs::copy(wayfare(), &copy).unwrap();
    mode(&copy, 0o755);
    ended(Command::new(&copy).args(words).current_dir(out).uid(65534).gid(65534))
}

/// Asserts that a run has no failures and no doubts, or that all its doubts are about timing. In the second case the
/// test counts as inconclusive, but continues.
pub(crate) fn assert_held(output: &Output, says: &str) {
    if !held_or_late(output, says) {
        late(output);
    }
}

/// Asserts that a run has no failures and no doubts, or that all its doubts are about timing. Returns whether the run
/// has no doubts.
pub(crate) fn held_or_late(output: &Output, says: &str) -> bool {
    let only_late = output.was_only_late();
    assert_exit(output, if only_late { 4 } else { 0 }, says);
    !only_late
}

/// Counts this test as inconclusive, because of a command's timing doubts.
pub(crate) fn late(output: &Output) {
    inconclusive(&trace::doubt::joined(&output.doubts));
}

/// Counts this test as inconclusive, because this machine delayed what it measures. Writes a line `name<TAB>reason`
/// to the file that CI names; CI runs the test again.
pub(crate) fn inconclusive(why: &str) {
    let test = this_test();
    let why = why.lines().next().unwrap_or("no reason was given");
    eprintln!("INCONCLUSIVE: {test}: {why}");
    #[expect(clippy::disallowed_methods, reason = "CI names the file by a variable")]
    let Ok(path) = std::env::var("WAYFARE_INCONCLUSIVE") else { return };
    let mut file = std::fs::File::options().append(true).create(true).open(path).unwrap();
    // One write for the whole line, because tests run concurrently.
    file.write_all(format!("{test}\t{}\n", why.replace('\t', " ")).as_bytes()).unwrap();
}

/// Returns the path of the current test, with which the test can be run again. The test harness gives this name to the
/// test's thread.
fn this_test() -> String {
    std::thread::current().name().unwrap_or("unknown").to_owned()
}

/// Returns whether the test can continue: the run did its work in time, or was not delayed much. If the run was not in
/// time, and the machine delayed it by at least 20 ms, the run shows nothing about the code. Then the test counts as
/// inconclusive.
pub(crate) fn did_in_time(output: &Output, did: bool) -> bool {
    const FAR_TOO_LATE_MS: f64 = 20.0;
    let late_ms = output.doubts.iter().map(|doubt| match doubt {
        Doubt::Stalled { stall_ms, .. } | Doubt::MachineStalled { stall_ms, .. } => *stall_ms,
        Doubt::Late { p99_us, .. } => p99_us / 1e3,
        _ => 0.0,
    });
    let held_up = output.was_only_late() && late_ms.fold(0.0, f64::max) >= FAR_TOO_LATE_MS;
    if held_up && !did {
        late(output);
    }
    did || !held_up
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A run that is under way, and the file for its doubts.
pub(crate) struct Running(pub(crate) Child, NamedTempFile);

impl Running {
    pub(crate) fn start(words: &[&str], out: &Path) -> Self {
        let mut command = command(words, out);
        let doubts = doubts_of(&mut command);
        Self(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap(), doubts)
    }

    /// Returns the pid of a host's daemon, once it exists.
    pub(crate) fn daemon(&self, host: &str) -> u32 {
        let wanted = format!("/{host}.toml");
        wait_for(&format!("the daemon of {host}"), || {
            descendants(self.0.id()).into_iter().find(|pid| {
                let words = command_line(*pid);
                words.get(1).is_some_and(|verb| verb == "node")
                    && words.get(2).is_some_and(|file| file.ends_with(&wanted))
            })
        })
    }

    /// Returns the lab's directory, from a daemon's command line.
    pub(crate) fn dir(&self) -> PathBuf {
        let words = command_line(self.daemon("b1"));
        Path::new(&words[2]).parent().unwrap().to_owned()
    }

    /// Waits until the application has sent at least 10 packets.
    pub(crate) fn under_way(&self) {
        let correspondent = self.dir().join("correspondent.sock");
        let sent = || {
            let answer = ask(&correspondent, r#"{"do":{"verb":"status"}}"#)?;
            serde_json::from_str::<serde_json::Value>(&answer).ok()?["ok"]["constant-rate"]["sent"].as_u64()
        };
        wait_for("packets of the correspondent", || sent().filter(|sent| *sent >= 10));
    }

    pub(crate) fn end(self) -> Output {
        let Self(child, doubts) = self;
        Output::new(child.wait_with_output().unwrap(), &doubts)
    }
}

/// Returns a daemon's answer at its control socket, or `None` if no answer can be read there, for example because the
/// socket does not exist yet.
pub(crate) fn ask(control: &Path, line: &str) -> Option<String> {
    let mut stream = UnixStream::connect(control).ok()?;
    writeln!(stream, "{line}").ok()?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).ok()?;
    Some(answer)
}

/// Returns this process and all its descendants.
pub(crate) fn descendants(of: u32) -> Vec<u32> {
    let mut all = Vec::new();
    let mut next = vec![of];
    while let Some(pid) = next.pop() {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        for task in tasks {
            let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            next.extend(children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
        all.push(pid);
    }
    all
}

pub(crate) fn command_line(pid: u32) -> Vec<String> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).map(text).collect()
}

pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..2000 {
        if let Some(found) = look() {
            return found;
        }
        pause(5);
    }
    panic!("{what} did not come");
}

#[expect(clippy::disallowed_methods, reason = "tests of real processes wait for real time")]
pub(crate) fn pause(millis: u64) {
    std::thread::sleep(Duration::from_millis(millis));
}

pub(crate) fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// Removes the record and the lock that a killed daemon of root left. The changes of the daemon need not be undone,
/// because `namespace` ends with the test.
pub(crate) fn forget(namespace: &os::NetNs) {
    let Ok(Ok(cookie)) = namespace.run(os::namespace::cookie) else { return };
    for suffix in ["json", "lock"] {
        let _ = std::fs::remove_file(format!("/run/wayfare/namespace-{cookie}.{suffix}"));
    }
}

/// Runs a program in the network namespace of a process. Returns the output of the program.
pub(crate) fn inside(pid: u32, words: &[&str]) -> String {
    let mut command = Command::new("nsenter");
    command.arg("-t").arg(pid.to_string()).arg("-n").args(words);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

pub(crate) fn assert_exit(output: &Output, code: i32, says: &str) {
    let all = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{all}");
    assert!(all.contains(says), "wanted `{says}` in\n{all}");
}

/// Returns the directory of the only run below this folder. If the run has settings, the directory's name ends with a
/// digest of the settings.
pub(crate) fn kept(out: &Path) -> PathBuf {
    let runs: Vec<_> = std::fs::read_dir(out.join("runs")).unwrap().map(|run| run.unwrap().path()).collect();
    let [run] = &runs[..] else { panic!("not one run: {runs:?}") };
    run.clone()
}

/// Returns the `run.json` of the only run below this folder.
pub(crate) fn kept_run(out: &Path) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(kept(out).join("run.json")).unwrap()).unwrap()
}
