//! What the verbs that measure have in common: which worlds, with what means, and how far they have come.

use crate::{Failure, interrupt};
use clap::ValueEnum;
use lab::linux::Programs;
use lab::reproduce::How;
use lab::run::OnWorld;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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

    /// Carries something out; a terminal shows meanwhile which point of `what` was done last.
    pub(crate) fn carry_out<T>(&self, what: &str, measure: impl FnOnce(&How<'_>) -> T) -> T {
        let done = measure(&How {
            jobs: self.jobs,
            linux: Some(&self.programs),
            stop: &self.stop,
            progress: &|point| show(&format!("{what}: {point}")),
            repeated: &repeated,
        });
        show("");
        done
    }

    /// What went wrong, unless somebody wanted it to end.
    pub(crate) fn failure(&self, problem: String) -> Failure {
        if self.stop.load(Ordering::Relaxed) {
            Failure::Interrupted
        } else {
            Failure::Untrusted(vec![problem])
        }
    }
}

/// Keeps a result below the folder of `--out`.
pub(crate) fn keep(path: &Path, text: &str) -> Result<(), Failure> {
    let folder = path.parent().unwrap_or(path);
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(path, text));
    written.map_err(|error| Failure::Usage(format!("--out: {}: {error}", path.display())))
}

/// On a terminal, one line in the place of the last one.
fn show(line: &str) {
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[K{line}");
    }
}

/// Why a point takes longer.
fn repeated(point: &str, why: &[String]) {
    show("");
    for why in why {
        eprintln!("repeated: {point}: {why}");
    }
}
