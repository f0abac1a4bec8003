//! Programs beside the roles: started in their hosts' namespaces, heard, and ended.

use super::{LinuxError, file};
use crate::{Plan, program};
use linux::NetNs;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use wire::Instant;

/// The variable that tells `wayfare exec` of the host's daemon.
const CLIENTS: &str = "WAYFARE_CLIENTS";

/// What is known of a program when the run has ended.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ProgramReport {
    /// Its host.
    pub host: String,
    /// Which of the host's programs, from 1.
    pub number: usize,
    /// What a shell was told to do.
    pub command: String,
    /// How it ended.
    pub exit: String,
    /// Why the run is not what the scenario says.
    pub trouble: Option<String>,
    /// All that it wrote, on both of its outputs: a file of its own in the run directory.
    #[serde(skip)]
    pub output: Vec<u8>,
}

impl ProgramReport {
    /// The name of the file with its output, in a run directory.
    pub fn log(&self) -> String {
        format!("{}-{}.log", self.host, self.number)
    }
}

enum State {
    Waits,
    Runs(Child),
    /// It was asked to end, and however it does is right.
    Ends(Child),
    Gone,
}

struct Program<'a> {
    spec: &'a program::Program,
    namespace: &'a NetNs,
    log: PathBuf,
    /// Where `wayfare exec` finds the host's daemon.
    clients: PathBuf,
    state: State,
    report: ProgramReport,
}

/// The programs of a run.
pub(super) struct Programs<'a>(Vec<Program<'a>>);

impl<'a> Programs<'a> {
    pub(super) fn new(plan: &'a Plan, namespaces: &'a [NetNs], dir: &Path) -> Self {
        let hosts = plan.hosts.iter().zip(namespaces);
        let programs = hosts.flat_map(|(host, namespace)| {
            (1..).zip(&host.programs).map(move |(number, spec)| {
                let (name, command) = (host.config.name.clone(), spec.command.clone());
                let report = ProgramReport { host: name, number, command, ..ProgramReport::default() };
                Program {
                    spec,
                    namespace,
                    log: dir.join(file::program(&host.config.name, number)),
                    clients: dir.join(file::clients(&host.config.name)),
                    state: State::Waits,
                    report,
                }
            })
        });
        Self(programs.collect())
    }

    /// Starts and stops what is due, and sees who has ended.
    pub(super) fn tend(&mut self, now: Instant) -> Result<(), LinuxError> {
        self.0.iter_mut().try_for_each(|program| program.tend(now))
    }

    /// Their host has crashed: they end with it, and that is right.
    pub(super) fn crash(&mut self, host: &str) {
        for program in self.0.iter_mut().filter(|program| program.report.host == host) {
            program.crash();
        }
    }

    /// Their host is stopped, or continues.
    pub(super) fn stop(&mut self, host: &str, is_stopped: bool) {
        for program in self.0.iter().filter(|program| program.report.host == host) {
            if let State::Runs(child) | State::Ends(child) = &program.state {
                linux::halt_group(child.id(), is_stopped);
            }
        }
    }

    /// The run is over for all of them.
    pub(super) fn end(mut self, now: Instant) -> Result<Vec<ProgramReport>, LinuxError> {
        self.tend(now)?;
        Ok(self.0.into_iter().map(Program::end).collect())
    }
}

impl Program<'_> {
    fn tend(&mut self, now: Instant) -> Result<(), LinuxError> {
        let is_due = |at| now >= Instant::ZERO + at;
        self.state = match std::mem::replace(&mut self.state, State::Gone) {
            State::Waits if is_due(self.spec.start) => State::Runs(self.start()?),
            State::Runs(mut child) => match child.try_wait() {
                Ok(Some(status)) => {
                    self.ended(status);
                    State::Gone
                }
                _ if self.spec.stop.is_some_and(is_due) => {
                    linux::signal_group(child.id(), linux::Ending::Asked);
                    State::Ends(child)
                }
                _ => State::Runs(child),
            },
            State::Ends(mut child) => match child.try_wait() {
                Ok(Some(status)) => {
                    self.report.exit = format!("stopped: {status}");
                    State::Gone
                }
                _ => State::Ends(child),
            },
            other => other,
        };
        Ok(())
    }

    /// One that was to begin later begins no more: no program is started by a restart.
    fn crash(&mut self) {
        match std::mem::replace(&mut self.state, State::Gone) {
            State::Runs(mut child) | State::Ends(mut child) => {
                linux::signal_group(child.id(), linux::Ending::Forced);
                let _ = child.wait();
                "ended with the crash of its host".clone_into(&mut self.report.exit);
            }
            State::Waits => "not started: its host had crashed".clone_into(&mut self.report.exit),
            State::Gone => {}
        }
    }

    fn start(&self) -> Result<Child, LinuxError> {
        let failed = |error| LinuxError::File(self.log.clone(), error);
        let log = File::create(&self.log).map_err(failed)?;
        let mut command = Command::new("sh");
        command.arg("-c").arg(&self.spec.command).stdin(Stdio::null());
        command.stdout(log.try_clone().map_err(failed)?).stderr(log);
        command.env(CLIENTS, &self.clients);
        // What it starts itself ends with it.
        command.process_group(0);
        self.namespace.run(|| command.spawn())?.map_err(|error| LinuxError::File("sh".into(), error))
    }

    fn ended(&mut self, status: ExitStatus) {
        self.report.exit = status.to_string();
        if !status.success() {
            self.report.trouble = Some(format!("ended by itself, {status}; {}", self.last_words()));
        }
    }

    fn last_words(&self) -> String {
        let said = std::fs::read(&self.log).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        said.lines().last().map_or("it said nothing".to_owned(), |line| format!("it said: {line}"))
    }

    fn end(mut self) -> ProgramReport {
        match self.state {
            State::Waits => self.report.trouble = Some("was never started".to_owned()),
            State::Runs(mut child) | State::Ends(mut child) => {
                let is_stopped = linux::is_stopped(child.id()) || linux::is_frozen(child.id());
                self.report.trouble = self.spec.trouble_at_end(is_stopped).map(str::to_owned);
                linux::signal_group(child.id(), linux::Ending::Forced);
                let _ = child.wait();
                "killed at the end of the run".clone_into(&mut self.report.exit);
            }
            State::Gone => {}
        }
        self.report
    }
}
