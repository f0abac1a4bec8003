//! Executes a plan on a backend, for all verbs except `wayfare run`.

use emulator::run::{self, LinuxError, Programs};
use recorder::run::{Backend, Outcome, simulate};
use scenario::Plan;
use std::sync::atomic::{AtomicBool, Ordering};
use trace::Doubt;

/// The reason why a run has no result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NotRun {
    /// The backend is not available on this machine; the text says what is missing.
    Cannot(String),
    /// The scenario, the plan or the run failed, or the run was interrupted.
    Broken(String),
}

/// Options for runs.
#[derive(Clone, Copy)]
pub struct How<'a> {
    /// The largest number of parallel runs.
    pub jobs: usize,
    /// The programs for runs on Linux; `None` if Linux is not available.
    pub linux: Option<&'a Programs>,
    /// If set, Linux runs are ended, and no further run begins.
    pub stop: &'a AtomicBool,
    /// Called with the label of a point after each of its runs, but not after a repetition of an invalid run.
    pub progress: &'a (dyn Fn(&str) + Sync),
    /// Called before invalid runs of a point are repeated, with the label of the point and the reasons.
    pub repeated: &'a (dyn Fn(&str, &[Doubt]) + Sync),
}

/// Executes a plan on a backend. Returns an error if the backend is not available, if the run fails, or if `how.stop`
/// is set.
pub fn run_point(plan: Plan, backend: Backend, how: &How<'_>) -> Result<Outcome, NotRun> {
    if how.stop.load(Ordering::Relaxed) {
        return Err(NotRun::Broken("interrupted".to_owned()));
    }
    match backend {
        Backend::Sim => simulate(plan).map_err(|error| NotRun::Broken(error.to_string())),
        Backend::Linux => {
            let programs = how
                .linux
                .ok_or_else(|| NotRun::Cannot("the programs for runs on Linux are missing".to_owned()))?;
            run::run(plan, programs, how.stop).map_err(|error| match error {
                missing @ (LinuxError::Machine(_) | LinuxError::Lacks(_)) => {
                    NotRun::Cannot(missing.to_string())
                }
                error => NotRun::Broken(error.to_string()),
            })
        }
    }
}
