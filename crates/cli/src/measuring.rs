//! Functions and types that several subcommands share: backends, output folders, results, and progress.

use crate::output::{show, span, tell};
use crate::{Failure, interrupt};
use clap::ValueEnum;
use emulator::run::Programs;
use experiments::reproduce::How;
use os::Clock;
use recorder::kept::Folder;
use recorder::run::Backend;
use scenario::{ScenarioError, Setting};
use std::collections::BTreeSet;
use std::fmt::Display;
use std::io;
use std::io::IsTerminal;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use trace::NamedDoubt;
use wire::{Duration, Instant};

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum On {
    Sim,
    Linux,
    Both,
}

impl On {
    pub(crate) const fn backends(self) -> &'static [Backend] {
        match self {
            Self::Sim => &[Backend::Sim],
            Self::Linux => &[Backend::Linux],
            Self::Both => &[Backend::Sim, Backend::Linux],
        }
    }

    /// Handles a backend that is not available on this machine. Returns an error if only Linux was requested, otherwise
    /// prints a note.
    pub(crate) fn without(self, problem: String) -> Result<(), Failure> {
        if self == Self::Linux {
            return Err(Failure::Machine(problem));
        }
        tell!("note: {problem}");
        Ok(())
    }
}

/// Refuses a key that is set twice: only the last value would apply. Warns that every user of this machine can read a secret key
/// on the command line. The run continues: the key of an experiment may protect nothing.
pub(crate) fn check_settings(settings: &[Setting]) -> Result<(), Failure> {
    if let Some(pair) = scenario::repeated(settings) {
        let [(path, first), (_, later)] = pair.map(Setting::parts);
        let grid = scenario::as_grid(pair);
        let grid =
            grid.map_or_else(String::new, |grid| format!(", or several values for a grid: --set '{grid}'"));
        return Err(Failure::Usage(format!(
            "--set {path}={first} and --set {path}={later}: give each key once{grid}"
        )));
    }
    for path in settings.iter().filter(|setting| setting.shows_key()).map(Setting::path) {
        tell!(
            "warning: --set {path}: every user of this machine can read the key on this command line; write it to a file, \
             and use --set {path}=@FILE"
        );
    }
    Ok(())
}

/// Refuses a setting of the scenario `text` that has no effect, because a later one sets the same value by another path.
pub(crate) fn check_overwritten(text: &str, settings: &[Setting]) -> Result<(), Failure> {
    let Some(pair) = scenario::overwritten(text, settings) else { return Ok(()) };
    let [first, later] = pair.map(Setting::path);
    Err(Failure::Usage(format!(
        "--set {first}: has no effect, because --set {later} replaces the value; give only one of them"
    )))
}

/// Prints warnings about a scenario. A warning about several points of a grid is printed once.
pub(crate) fn warn(all: impl IntoIterator<Item = ScenarioError>) {
    let mut printed = BTreeSet::new();
    for warning in all.into_iter().map(|warning| warning.to_string()) {
        if !printed.contains(&warning) {
            tell!("warning: {warning}");
            printed.insert(warning);
        }
    }
}

/// What a measurement needs: the number of parallel runs, the programs for runs on Linux, and the flag that a signal
/// sets.
pub(crate) struct Backends {
    jobs: usize,
    programs: Programs,
    stop: Arc<AtomicBool>,
}

impl Backends {
    /// Starts to handle signals. Returns an error if the signals cannot be handled, or if the path of this program is
    /// unknown: runs on Linux start this program again, as daemons and as pid 1 of a lab.
    pub(crate) fn new(jobs: u16) -> Result<Self, Failure> {
        let wayfare = std::env::current_exe().map_err(|error| Failure::Machine(error.to_string()))?;
        let programs = Programs { wayfare, instead: None };
        Ok(Self { jobs: jobs.into(), programs, stop: interrupt::flag()? })
    }

    /// Executes a measurement, and shows its progress. `estimate` is the expected time on Linux; zero if the time is
    /// unknown or short.
    pub(crate) fn carry_out<T>(
        &self,
        what: &str,
        estimate: Duration,
        measure: impl FnOnce(&How<'_>) -> T,
    ) -> T {
        let pace = Pace::new(what, estimate);
        let done = measure(&How {
            jobs: self.jobs,
            linux: Some(&self.programs),
            stop: &self.stop,
            progress: &|point| pace.point(point),
            repeated: &repeated,
        });
        clear();
        done
    }

    /// Returns [`Failure::Interrupted`] if a signal ended the command, otherwise the failure with the text `problem`.
    pub(crate) fn failure(&self, problem: String) -> Failure {
        if self.stop.load(Ordering::Relaxed) { Failure::Interrupted } else { Failure::no_result(problem) }
    }
}

/// Returns how the command ends. If there are doubts, the result is not valid, so the failures do not count.
pub(crate) fn judged(doubts: Vec<NamedDoubt>, failures: usize) -> Result<(), Failure> {
    match failures {
        _ if !doubts.is_empty() => Err(Failure::Untrusted(doubts)),
        0 => Ok(()),
        _ => Err(Failure::DidNotHold),
    }
}

/// Parses a whole number of a range.
fn whole<T: FromStr + PartialOrd + Display>(text: &str, range: &RangeInclusive<T>) -> Result<T, String> {
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| format!("allowed: a whole number from {} to {}", range.start(), range.end()))
}

/// Parses a number that is at least 1.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    whole(text, &(1..=u64::MAX))
}

/// Parses a whole number from 0 to `u64::MAX`, for example a seed.
pub(crate) fn seed(text: &str) -> Result<u64, String> {
    whole(text, &(0..=u64::MAX))
}

/// Parses a small number that is at least 1, for example of runs at the same time.
pub(crate) fn few(text: &str) -> Result<u16, String> {
    whole(text, &(1..=u16::MAX))
}

/// Parses a whole number that can be 0, for example of repetitions.
pub(crate) fn size(text: &str) -> Result<usize, String> {
    whole(text, &(0..=usize::MAX))
}

/// Parses a number that counts from 1, for example that of a handoff.
pub(crate) fn ordinal(text: &str) -> Result<usize, String> {
    whole(text, &(1..=usize::MAX))
}

/// The time that a run on Linux needs to create the namespaces, start the daemons, and collect their records.
pub(crate) const SETUP: Duration = Duration::from_secs(2);

/// Locks the folder for the files `names` before anything is measured, so that no result is lost. The folder is that of
/// `--out`, or the first of `runs/BASE`, `runs/BASE.2` and so on into which these files may be written.
pub(crate) fn folder(out: Option<&Path>, base: &str, names: &[&str], force: bool) -> Result<Folder, Failure> {
    let folder = out.map_or_else(|| Folder::default(base, names), Path::to_path_buf);
    Folder::open(&folder, names.iter().copied(), force).map_err(|error| unusable(&error))
}

/// Writes `text` to the file `name` in the folder, and returns the path of the file.
pub(crate) fn keep(folder: &mut Folder, name: &str, text: &str) -> Result<PathBuf, Failure> {
    folder.keep(name, text).map_err(|error| unwritten(&folder.path().join(name), &error))
}

/// Returns the failure for a result that could not be written.
pub(crate) fn unwritten(path: &Path, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::AlreadyExists => Failure::Usage(error.to_string()),
        _ => Failure::Machine(format!("cannot write {}: {error}", path.display())),
    }
}

/// Returns the failure for a folder or file that cannot be used; nothing has been started yet. It is a usage error if a
/// file must not be replaced, has invalid contents, has no name or is no folder, or if another process holds the lock.
/// Any other error is an error of the machine.
pub(crate) fn unusable(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::AlreadyExists
        | io::ErrorKind::WouldBlock
        | io::ErrorKind::InvalidData
        | io::ErrorKind::InvalidInput
        | io::ErrorKind::NotADirectory => Failure::Usage(error.to_string()),
        _ => Failure::Machine(format!("cannot write {error}")),
    }
}

/// Shows the progress of a measurement: the label of the point (one set of values) whose run has just ended. On a
/// terminal, each label replaces the previous one. Otherwise a line is printed at most every 10 s.
struct Pace<'a> {
    what: &'a str,
    estimate: Duration,
    clock: Clock,
    terminal: bool,
    said: Mutex<Instant>,
}

impl<'a> Pace<'a> {
    /// Without a terminal, the shortest time between two lines about progress.
    const QUIET: Duration = Duration::from_secs(10);

    fn new(what: &'a str, estimate: Duration) -> Self {
        let (clock, terminal) = (Clock::start(), std::io::stderr().is_terminal());
        if !estimate.is_zero() {
            let line = format!("{what}: about {}", span(estimate.as_secs().max(1)));
            if terminal { show(format_args!("{line}")) } else { tell!("{line}") }
        }
        Self { what, estimate, said: Mutex::new(clock.now()), clock, terminal }
    }

    fn point(&self, point: &str) {
        let now = self.clock.now();
        let left = self.estimate.saturating_sub(now.since(Instant::ZERO)).as_secs();
        let left = if left > 0 { format!(", about {} left", span(left)) } else { String::new() };
        let line = format!("{}: {point}{left}", self.what);
        if self.terminal {
            show(format_args!("{line}"));
            return;
        }
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if now.since(*said) >= Self::QUIET {
            *said = now;
            tell!("{line}");
        }
    }
}

/// Removes the line about progress from the terminal.
fn clear() {
    if std::io::stderr().is_terminal() {
        show(format_args!(""));
    }
}

/// Prints why the invalid runs of `point` are repeated.
fn repeated(point: &str, why: &[trace::Doubt]) {
    clear();
    for why in why {
        tell!("repeated: {point}: {why}");
    }
}
