//! What the verbs that measure have in common: which worlds, with what means, and how far they have come.

use crate::output::{show, span, tell};
use crate::{Failure, interrupt};
use clap::ValueEnum;
use lab::kept::Folder;
use lab::linux::Programs;
use lab::reproduce::How;
use lab::run::OnWorld;
use lab::scenario::Setting;
use linux::Clock;
use std::io;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use wire::{Duration, Instant};

/// Who carries the packets.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum On {
    Sim,
    Linux,
    Both,
}

impl On {
    pub(crate) const fn worlds(self) -> &'static [OnWorld] {
        match self {
            Self::Sim => &[OnWorld::Sim],
            Self::Linux => &[OnWorld::Linux],
            Self::Both => &[OnWorld::Sim, OnWorld::Linux],
        }
    }

    /// A world that is not to be had here is an error only where nothing else was asked for.
    pub(crate) fn without(self, problem: String) -> Result<(), Failure> {
        if self == Self::Linux {
            return Err(Failure::Machine(problem));
        }
        tell!("note: {problem}");
        Ok(())
    }
}

/// Warns that every user of this machine can read a key on the command line. The run goes on: the key of an experiment may
/// protect nothing.
pub(crate) fn warn_of_keys(settings: &[Setting]) {
    for path in settings.iter().filter(|setting| setting.shows_key()).map(Setting::path) {
        tell!(
            "warning: --set {path}: every user of this machine can read a command line, and this key in it; write the key into a \
             file and give --set {path}=@FILE"
        );
    }
}

/// What everything is measured with.
pub(crate) struct Means {
    jobs: usize,
    programs: Programs,
    stop: Arc<AtomicBool>,
}

impl Means {
    /// This very program is what runs in a world on Linux.
    pub(crate) fn new(jobs: u16) -> Result<Self, Failure> {
        let wayfare = std::env::current_exe().map_err(|error| Failure::Machine(error.to_string()))?;
        let programs = Programs { wayfare, instead: None };
        Ok(Self { jobs: jobs.into(), programs, stop: interrupt::flag()? })
    }

    /// Carries something out, and shows meanwhile how far it is. `estimate` is how long it takes on Linux; zero if that is
    /// not known, or soon over.
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

    /// What went wrong, unless somebody wanted it to end.
    pub(crate) fn failure(&self, problem: String) -> Failure {
        if self.stop.load(Ordering::Relaxed) { Failure::Interrupted } else { Failure::no_result(problem) }
    }
}

/// The number of something of which there is at least one.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err(format!("allowed: a whole number from 1 to {}", u64::MAX)),
        Ok(number) => Ok(number),
    }
}

/// A seed.
pub(crate) fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("allowed: a whole number from 0 to {}", u64::MAX))
}

/// What it takes on Linux to make the namespaces, start the daemons, and collect what they recorded.
pub(crate) const SETUP: Duration = Duration::from_secs(2);

/// Claims the folder for a verb's files, before anything is measured that would then be lost: that of `--out`, or the first of
/// `runs/BASE`, `runs/BASE.2` and so on in which these files may be written.
pub(crate) fn folder(out: Option<&Path>, base: &str, names: &[&str], force: bool) -> Result<Folder, Failure> {
    let folder = out.map_or_else(|| Folder::default(base, names), Path::to_path_buf);
    Folder::open(&folder, names.iter().copied(), force).map_err(|error| unusable(&error))
}

/// Keeps a result there.
pub(crate) fn keep(folder: &mut Folder, name: &str, text: &str) -> Result<PathBuf, Failure> {
    folder.keep(name, text).map_err(|error| unwritten(&folder.path().join(name), &error))
}

/// A result could not be kept.
pub(crate) fn unwritten(path: &Path, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::AlreadyExists => Failure::Usage(error.to_string()),
        _ => Failure::Machine(format!("cannot write {}: {error}", path.display())),
    }
}

/// Nothing has been started: what is in the way there is an error of usage, and that this machine lets nothing be written
/// there is one of the machine.
pub(crate) fn unusable(error: &io::Error) -> Failure {
    match error.kind() {
        // What is there cannot be read, or was changed.
        io::ErrorKind::AlreadyExists | io::ErrorKind::WouldBlock | io::ErrorKind::InvalidData => {
            Failure::Usage(error.to_string())
        }
        _ => Failure::Machine(format!("cannot write {error}")),
    }
}

/// How far a measurement is: on a terminal the last point, in the place of the one before; else a line now and then.
struct Pace<'a> {
    what: &'a str,
    estimate: Duration,
    clock: Clock,
    terminal: bool,
    said: Mutex<Instant>,
}

impl<'a> Pace<'a> {
    /// Without a terminal, a point is named only if the last one was named this long ago.
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

/// Removes the line of the last point, if there is a terminal that has one.
fn clear() {
    if std::io::stderr().is_terminal() {
        show(format_args!(""));
    }
}

/// Why a point takes longer.
fn repeated(point: &str, why: &[trace::Doubt]) {
    clear();
    for why in why {
        tell!("repeated: {point}: {why}");
    }
}
