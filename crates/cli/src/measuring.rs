//! What the verbs that measure have in common: which worlds, with what means, and how far they have come.

use crate::output::span;
use crate::{Failure, interrupt};
use clap::ValueEnum;
use lab::linux::Programs;
use lab::reproduce::How;
use lab::run::OnWorld;
use linux::Clock;
use std::io::IsTerminal;
use std::path::Path;
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
        eprintln!("note: {problem}");
        Ok(())
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
        show("");
        done
    }

    /// What went wrong, unless somebody wanted it to end.
    pub(crate) fn failure(&self, problem: String) -> Failure {
        if self.stop.load(Ordering::Relaxed) { Failure::Interrupted } else { Failure::no_result(problem) }
    }
}

/// What it takes on Linux to make the namespaces, start the daemons, and collect what they recorded.
pub(crate) const SETUP: Duration = Duration::from_secs(2);

/// Keeps a result below the folder of `--out`: it is there as a whole or not at all.
pub(crate) fn keep(path: &Path, text: &str) -> Result<(), Failure> {
    let folder = path.parent().unwrap_or(path);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let part = path.with_file_name(format!(".{name}.part-{}", std::process::id()));
    let written = std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&part, text))
        .and_then(|()| std::fs::rename(&part, path));
    written.map_err(|error| {
        let _ = std::fs::remove_file(&part);
        Failure::Machine(format!("cannot write {}: {error}", path.display()))
    })
}

/// Finds out whether results can be kept in this folder, before anything is measured that would then be lost.
pub(crate) fn check_out(folder: &Path) -> Result<(), Failure> {
    let probe = folder.join(format!(".wayfare-{}", std::process::id()));
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&probe, ""))
        .and_then(|()| std::fs::remove_file(&probe))
        .map_err(|error| Failure::Machine(format!("--out: cannot write {}: {error}", folder.display())))
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
            if terminal { show(&line) } else { eprintln!("{line}") }
        }
        Self { what, estimate, said: Mutex::new(clock.now()), clock, terminal }
    }

    fn point(&self, point: &str) {
        let now = self.clock.now();
        let left = self.estimate.saturating_sub(now.since(Instant::ZERO)).as_secs();
        let left = if left > 0 { format!(", about {} left", span(left)) } else { String::new() };
        let line = format!("{}: {point}{left}", self.what);
        if self.terminal {
            show(&line);
            return;
        }
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if now.since(*said) >= Self::QUIET {
            *said = now;
            eprintln!("{line}");
        }
    }
}

/// On a terminal, one line in the place of the last one.
fn show(line: &str) {
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[K{line}");
    }
}

/// Why a point takes longer.
fn repeated(point: &str, why: &[trace::Doubt]) {
    show("");
    for why in why {
        eprintln!("repeated: {point}: {why}");
    }
}
