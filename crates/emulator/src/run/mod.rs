//! Runs a plan on Linux, with a namespace and a daemon for each host. The link emulator connects the hosts.
//!
//! ```text
//! this process ── keeper ── pid 1 of new namespaces: sets up, carries frames, watches, reports  (supervisor.rs)
//!                             ├── wayfare node correspondent.toml   in its own network namespace
//!                             ├── wayfare node b1.toml                             "
//!                             └── ...
//! ```
//!
//! Pid 1 and the daemons leave files in the lab's directory. This module reads them when pid 1 has ended.

mod crashed;
mod daemon;
mod hosts;
mod order;
mod programs;
mod recorded;
mod report;
mod stalls;
mod start;
mod stopped;
mod sum_up;
mod supervisor;
mod timing;

pub use programs::ProgramReport;
pub use recorded::{read_run, report_of};
pub use report::{CrashReport, HostReport, InterfaceReport, LinuxReport, Repeat, StopReport, timing};
pub use supervisor::{carry_out, lay_out, ports};

use crate::cleanup::LabDir;
use crate::control_run::Control;
use os::{Error, Sandbox};
use recorder::run::{Backend, Outcome};
use scenario::Plan;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use trace::{Doubt, HostId, Record};
use wire::Duration;

/// Why a run on Linux has no result.
#[derive(Debug, thiserror::Error)]
pub enum LinuxError {
    /// The kernel refused an operation, so this machine cannot run a lab.
    #[error("this machine cannot run the scenario on Linux: {0}")]
    Machine(#[from] Error),
    /// A file of the lab could not be read or written.
    #[error("{0}: {1}")]
    File(PathBuf, io::Error),
    /// This machine lacks a feature; the text names the feature.
    #[error("this machine cannot run the scenario on Linux: {0}")]
    Lacks(String),
    /// A daemon did not become ready, and this machine is not the cause.
    #[error("{host}: {why}")]
    NotReady {
        /// The name of the daemon's host.
        host: String,
        /// How the daemon ended and the last line of its output, or that it did not answer in time.
        why: String,
    },
    /// The lab failed for the reason in the text. Mostly this is the message of pid 1 before it ended early.
    #[error("{0}")]
    Lab(String),
    /// The run was ended early, for example by Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

/// Names of the files in a lab's directory.
pub(crate) mod file {
    pub(crate) const PLAN: &str = "plan.toml";
    pub(crate) const REPORT: &str = "report.json";
    pub(crate) const RADIO: &str = "radio.jsonl";
    pub(crate) const RADIO_SOCKET: &str = "radio.sock";
    pub(crate) const CONTROL_SOCKET: &str = "control-run.sock";

    pub(crate) fn config(host: &str) -> String {
        format!("{host}.toml")
    }

    pub(crate) fn records(host: &str) -> String {
        format!("{host}.jsonl")
    }

    /// Returns the name of the file with the records of the daemon that ended with the crash of this number, from 0.
    pub(crate) fn records_before(host: &str, crash: usize) -> String {
        format!("{host}.{crash}.jsonl")
    }

    pub(crate) fn store(host: &str) -> String {
        format!("{host}.store")
    }

    pub(crate) fn control(host: &str) -> String {
        format!("{host}.sock")
    }

    pub(crate) fn clients(host: &str) -> String {
        format!("{host}-clients.sock")
    }

    pub(crate) fn program(host: &str, number: usize) -> String {
        format!("{host}-{number}.out")
    }

    pub(crate) fn output(host: &str) -> String {
        format!("{host}.log")
    }
}

/// The programs that a lab starts.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The path of `wayfare`, which runs as pid 1 (`wayfare lab-supervisor`) and as every daemon (`wayfare node`).
    pub wayfare: PathBuf,
    /// Only tests set this field: the name of a host, and the words of the command that is started instead of its
    /// daemon. In each word, `{config}` is replaced by the path of the daemon's configuration.
    pub instead: Option<(String, Vec<String>)>,
}

impl Programs {
    /// Uses this program as pid 1 and as every daemon. Checks first that the file system has what a lab needs.
    ///
    /// # Errors
    /// The feature that is missing, as `wayfare doctor` names it.
    pub fn of_this_program() -> Result<Self, LinuxError> {
        files()?;
        let wayfare = std::env::current_exe();
        let wayfare = wayfare.map_err(|error| {
            LinuxError::Lacks(format!("/proc: cannot find this program's own path: {error}"))
        })?;
        Ok(Self { wayfare, instead: None })
    }
}

fn files() -> Result<(), LinuxError> {
    crate::doctor::files_for_lab().map_err(|(feature, why)| LinuxError::Lacks(format!("{feature}: {why}")))
}

/// Returns the error for a failed start of the namespaces, with the name that `wayfare doctor` gives to the missing
/// feature.
fn no_sandbox(error: Error) -> LinuxError {
    match crate::doctor::lacked_by_sandbox(&error) {
        Some(feature) => LinuxError::Lacks(format!("{feature}: {error}")),
        None => error.into(),
    }
}

/// Time in addition to a run's duration after which the run is ended by force. It is longer than pid 1 waits for the
/// records of daemons.
const PATIENCE: Duration = Duration::from_secs(90);

/// Time for pid 1 to end after it has written its report. It takes longer only if a process cannot be killed.
const LINGER: Duration = Duration::from_secs(2);

/// The last control run of this process. A batch measures once, and again after a run with timing errors.
static LAST_CONTROL: Mutex<Option<Control>> = Mutex::new(None);

fn last_control() -> Option<Control> {
    *LAST_CONTROL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Stores the control run of this report for later reports. If the report has no control run, sets the last one of this
/// process in the report.
fn fill_control(report: &mut LinuxReport) {
    let mut last = LAST_CONTROL.lock().unwrap_or_else(PoisonError::into_inner);
    match report.control {
        Some(control) => *last = Some(Control { follows_this_run: false, ..control }),
        None => report.control = *last,
    }
}

/// Number of labs of this process that run or are not cleaned up yet.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// Returns whether a lab of this process runs or is not cleaned up yet.
pub fn is_running() -> bool {
    RUNNING.load(Ordering::Relaxed) > 0
}

struct Running;

impl Running {
    fn begin() -> Self {
        RUNNING.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Runs a plan on Linux. Setting `stop` ends the run early with [`LinuxError::Interrupted`], as Ctrl-C does.
pub fn run(plan: Plan, programs: &Programs, stop: &AtomicBool) -> Result<Outcome, LinuxError> {
    run_again(plan, programs, stop, &[])
}

/// Runs a plan. `before` has the earlier runs of the same plan, which were discarded.
fn run_again(
    plan: Plan,
    programs: &Programs,
    stop: &AtomicBool,
    before: &[Repeat],
) -> Result<Outcome, LinuxError> {
    let _running = Running::begin();
    // The memory of this process has the secret keys of the plan.
    os::hide_memory();
    files()?;
    let mut dir = LabDir::create()?;
    match run_in(&mut dir, plan, programs, stop, before) {
        Ok(outcome) => {
            dir.remove()?;
            Ok(outcome)
        }
        Err(error) => Err(without_room(dir.path(), error)),
    }
}

/// If less than this is free, in bytes, an error of a lab is attributed to the full file system.
const ROOM: u64 = 1 << 20;

/// Replaces an error by that of a full file system if little room is left. A full file system has many symptoms: a
/// daemon that ends without a message, because it cannot write one, or a missing file. An interruption and an error of
/// the kernel are not replaced.
fn without_room(dir: &Path, error: LinuxError) -> LinuxError {
    let said = match &error {
        LinuxError::Interrupted | LinuxError::Machine(_) => return error,
        LinuxError::Lacks(what) => what.clone(),
        other => other.to_string(),
    };
    match os::files::room(dir) {
        Some(room) if room < ROOM => LinuxError::Lacks(format!(
            "{}: no space is left for the files of a lab ({} KiB are free, and at least 1024 KiB are needed); free some space, or set the variable TMPDIR to another folder: {said}",
            dir.display(),
            room >> 10
        )),
        _ => error,
    }
}

fn run_in(
    dir: &mut LabDir,
    plan: Plan,
    programs: &Programs,
    stop: &AtomicBool,
    before: &[Repeat],
) -> Result<Outcome, LinuxError> {
    let at = |name: &str| dir.path().join(name);
    write(&at(file::PLAN), &order::Order::new(&plan, programs, last_control().is_none()).to_text()?)?;
    let mut command = Command::new(&programs.wayfare);
    command.arg("lab-supervisor").arg(dir.path());
    command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped());
    let mut sandbox = Sandbox::spawn(command).map_err(no_sandbox)?;
    dir.note_child(sandbox.init())?;
    let keeper = sandbox.keeper().id();
    dir.note_child(keeper)?;
    let at = |name: &str| dir.path().join(name);
    let status = wait(&mut sandbox, plan.duration + PATIENCE, &at(file::REPORT), stop)?;
    let Some(status) = status else {
        // Pid 1 has written its report but cannot end, because a process of the lab cannot be killed. The report names
        // that process.
        if at(file::REPORT).exists() && !stop.load(Ordering::Relaxed) {
            return collect(plan, dir.path(), before);
        }
        return Err(if stop.load(Ordering::Relaxed) {
            LinuxError::Interrupted
        } else {
            LinuxError::Lab("pid 1 of the lab was killed, because it had not ended 90 s after the run's duration had passed".to_owned())
        });
    };
    if !status.success() {
        let failed = last_words(&mut sandbox);
        let unknown = || LinuxError::Lab(format!("pid 1 of the lab ended with {status}"));
        return Err(failed.map_or_else(unknown, LinuxError::from));
    }
    collect(plan, dir.path(), before)
}

/// Returns why pid 1 ended early. Pid 1 has ended, so reading its pipe does not block.
fn last_words(sandbox: &mut Sandbox) -> Option<supervisor::Failed> {
    let mut said = Vec::new();
    sandbox.keeper().stdout.take()?.read_to_end(&mut said).ok()?;
    serde_json::from_slice(&said).ok()
}

/// Runs a plan, and repeats it at most `repeats` times if all doubts about the run are about timing
/// ([`is_only_timing`]). Returns the last run, with the reasons for the repetitions. Before each repetition, `told` is
/// called with the first reason.
pub fn run_undisturbed(
    plan: &Plan,
    programs: &Programs,
    stop: &AtomicBool,
    repeats: usize,
    told: &dyn Fn(&str),
) -> Result<Outcome, LinuxError> {
    let mut before: Vec<Repeat> = Vec::new();
    loop {
        let outcome = run_again(plan.clone(), programs, stop, &before)?;
        if is_only_timing(&outcome.doubts) && before.len() < repeats {
            told(&outcome.doubts.first().map(ToString::to_string).unwrap_or_default());
            before.push(Repeat { attempt: before.len() + 1, reasons: outcome.doubts });
            continue;
        }
        return Ok(outcome);
    }
}

/// Returns whether there are doubts and a busy machine may be the cause of all of them. A packet that is unaccounted
/// for stays a doubt, whatever the load of the machine.
pub fn is_only_timing(doubts: &[Doubt]) -> bool {
    !doubts.is_empty() && doubts.iter().all(Doubt::is_timing)
}

/// Waits until pid 1 has ended: at most `limit`, and [`LINGER`] after it has written its report. Returns `None` if pid
/// 1 was ended by force, also because `stop` was set.
fn wait(
    sandbox: &mut Sandbox,
    limit: Duration,
    report: &Path,
    stop: &AtomicBool,
) -> Result<Option<std::process::ExitStatus>, LinuxError> {
    const STEP: Duration = Duration::from_millis(100);
    let mut left = limit;
    while !stop.load(Ordering::Relaxed) && !left.is_zero() {
        if let Some(status) = sandbox.wait(Some(STEP))? {
            return Ok(Some(status));
        }
        if report.exists() {
            left = left.min(LINGER);
        }
        left = left.saturating_sub(STEP);
    }
    match sandbox.end() {
        Err(error) if !report.exists() => Err(error.into()),
        _ => Ok(None),
    }
}

/// Reads the files that pid 1 and the daemons left, and analyses the records.
fn collect(plan: Plan, dir: &Path, before: &[Repeat]) -> Result<Outcome, LinuxError> {
    let text = read(&dir.join(file::REPORT))?;
    let malformed = |error: serde_json::Error| LinuxError::File(dir.join(file::REPORT), error.into());
    let mut report: LinuxReport = serde_json::from_str(&text).map_err(malformed)?;
    report.repeats = before.to_vec();
    fill_control(&mut report);
    for program in &mut report.programs {
        // A program that was not started has no output file.
        program.output =
            std::fs::read(dir.join(file::program(&program.host, program.number))).unwrap_or_default();
    }
    let mut records = Vec::new();
    for (host, name) in (0..).map(HostId).zip(plan.host_names()) {
        let of_report = report.hosts.iter().find(|host| host.name == name);
        let crashes = of_report.map_or(0, |host| host.crashes.len());
        // A daemon that was killed may have written an incomplete last line.
        let was_killed = of_report.is_none_or(|host| host.summary.is_none());
        for crash in 0..crashes {
            records.extend(read_records(&dir.join(file::records_before(&name, crash)), host, true)?);
        }
        let of_host = read_records(&dir.join(file::records(&name)), host, was_killed)?;
        if let Some(host) = report.hosts.iter_mut().find(|host| host.name == name) {
            host.records_read = of_host.len() as u64;
        }
        records.extend(of_host);
    }
    records.extend(read_radio(&dir.join(file::RADIO))?);
    stopped::end_with_the_run(&plan, &report.hosts, &mut records);
    // The ends of packets at crashed hosts come after the records of these packets, at the time of the crash.
    records.sort_by_key(|record| record.at);
    records.extend(crashed::ends(&plan, &report.hosts, &records));
    // Each file is ordered by time. A stable sort keeps the order of the records of one host.
    records.sort_by_key(|record| record.at);
    recorder::name_fragments(&mut records);
    let mut outcome = Outcome::new(plan, Backend::Linux, records, None);
    let failed: Vec<String> = report.failed_programs().collect();
    let found = report.find_doubts(&outcome);
    outcome.set_report(report.to_data().map_err(malformed)?, found);
    outcome.failures.extend(failed);
    Ok(outcome)
}

/// Reads the records of a daemon. A daemon that did not become ready has no file; the report names it. The last line
/// of a killed daemon may be incomplete and is ignored then.
fn read_records(path: &Path, host: HostId, was_killed: bool) -> Result<Vec<Record>, LinuxError> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = read(path)?;
    let parse = |line: &str| Record::from_line(host, line).map_err(|problem| broken(path, problem));
    let whole = if was_killed { text.rfind('\n').map_or(0, |end| end + 1) } else { text.len() };
    text.get(..whole).unwrap_or_default().lines().map(parse).collect()
}

/// Reads the records of the link emulator. Each line begins with the number of the host.
fn read_radio(path: &Path) -> Result<Vec<Record>, LinuxError> {
    let text = read(path)?;
    let parse = |(number, line): (usize, &str)| {
        let wrong = |problem: &str| broken(path, format!("line {number}: {problem}"));
        let (host, line) = line
            .split_once(' ')
            .ok_or_else(|| wrong("the line must begin with the number of a host and a space"))?;
        let host =
            host.parse().map_err(|_| wrong(&format!("`{host}` must be the number of a host, from 0")))?;
        Record::from_line(HostId(host), line).map_err(|problem| wrong(&problem))
    };
    (1..).zip(text.lines()).map(parse).collect()
}

fn broken(path: &Path, problem: String) -> LinuxError {
    LinuxError::File(path.to_owned(), io::Error::new(io::ErrorKind::InvalidData, problem))
}

fn read(path: &Path) -> Result<String, LinuxError> {
    std::fs::read_to_string(path).map_err(|error| LinuxError::File(path.to_owned(), error))
}

/// Writes a file that only its owner may read, because configurations contain secret keys.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), LinuxError> {
    let mut options = std::fs::OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| LinuxError::File(path.to_owned(), error))
}

#[cfg(test)]
mod documented_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_machine_lacks_is_a_lack_however_it_is_worded() {
        for what in ["lacks: raw sockets", ""] {
            let [sandbox, lacks] = [supervisor::Failed::Lab, supervisor::Failed::Lacks].map(|failed| {
                let text = serde_json::to_vec(&failed(what.to_owned())).unwrap();
                LinuxError::from(serde_json::from_slice::<supervisor::Failed>(&text).unwrap())
            });
            assert!(matches!(sandbox, LinuxError::Lab(text) if text == what));
            assert!(matches!(lacks, LinuxError::Lacks(text) if text == what));
        }
        let (host, why) = ("b1".to_owned(), "no daemon answers".to_owned());
        let text = serde_json::to_vec(&supervisor::Failed::NotReady { host, why }).unwrap();
        let failed = LinuxError::from(serde_json::from_slice::<supervisor::Failed>(&text).unwrap());
        assert!(matches!(&failed, LinuxError::NotReady { host, .. } if host == "b1"));
        assert_eq!(failed.to_string(), "b1: no daemon answers");
    }

    #[test]
    fn a_run_is_repeated_for_timing_alone() {
        let late = Doubt::Late { process: "west".to_owned(), p99_us: 3000.0, alone_us: None };
        let changed = Doubt::Changed { host: "west".to_owned(), what: "was killed".to_owned() };
        let between = ["mobile's node", "mobile's application"].map(str::to_owned);
        let lost = Doubt::Unaccounted { between, packets: 1, first_s: 1.5 };
        assert!(is_only_timing(std::slice::from_ref(&late)));
        assert!(!is_only_timing(&[]));
        assert!(!is_only_timing(&[late.clone(), changed]));
        assert!(!is_only_timing(&[late, lost]), "a stall excuses no lost packet");
    }
}
