//! Programs of a scenario: their start in their hosts' namespaces, their output, and their end.

use super::{LinuxError, file};
use os::NetNs;
use scenario::{Plan, Program as ProgramSpec};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use wire::Instant;

/// The environment variable with the socket of the host's daemon, for `wayfare exec`.
const CLIENTS: &str = "WAYFARE_CLIENTS";

/// The result of one program of a scenario.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ProgramReport {
    /// The name of the program's host.
    pub host: String,
    /// The program's number among the programs of its host, from 1.
    pub number: usize,
    /// The program's command line for the shell.
    pub command: String,
    /// How the program ended, in words; empty if it was not started before the run ended.
    pub exit: String,
    /// The failure of the program, in words that follow its name; `None` if it did not fail.
    pub trouble: Option<String>,
    /// The program's standard output and standard error, which become a file of the run directory.
    #[serde(skip)]
    pub output: Vec<u8>,
}

impl ProgramReport {
    /// Returns the name of the file with the program's output, in a run directory.
    pub fn log(&self) -> String {
        format!("{}-{}.log", self.host, self.number)
    }
}

enum State {
    Waits,
    Runs(Child),
    /// The program was requested to end by SIGTERM. Any exit status is accepted.
    Ends(Child),
    Gone,
}

struct Program<'a> {
    spec: &'a ProgramSpec,
    namespace: &'a NetNs,
    log: PathBuf,
    /// The socket at which `wayfare exec` finds the host's daemon.
    clients: PathBuf,
    state: State,
    report: ProgramReport,
}

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

    /// Starts and stops programs that are due, and checks which have ended.
    pub(super) fn tend(&mut self, now: Instant) -> Result<(), LinuxError> {
        self.0.iter_mut().try_for_each(|program| program.tend(now))
    }

    /// Kills the programs of a host that has crashed. The crash is no failure of the programs.
    pub(super) fn crash(&mut self, host: &str) {
        for program in self.0.iter_mut().filter(|program| program.report.host == host) {
            program.crash();
        }
    }

    /// Stops or continues the programs of a host.
    pub(super) fn stop(&mut self, host: &str, is_stopped: bool) {
        for program in self.0.iter().filter(|program| program.report.host == host) {
            if let State::Runs(child) | State::Ends(child) = &program.state {
                os::halt_group(child.id(), is_stopped);
            }
        }
    }

    /// Ends all programs at the end of the run, and returns their reports.
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
                    os::signal_group(child.id(), os::Ending::Asked);
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

    /// Kills a program because its host crashed. If the program was not started yet, it is never started: a restart of
    /// a host starts no programs.
    fn crash(&mut self) {
        match std::mem::replace(&mut self.state, State::Gone) {
            State::Runs(mut child) | State::Ends(mut child) => {
                os::signal_group(child.id(), os::Ending::Forced);
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
        // The processes that the program starts are in its process group, and are killed with it.
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
        said.lines().last().map_or("no output".to_owned(), |line| format!("its last output: {line}"))
    }

    fn end(mut self) -> ProgramReport {
        match self.state {
            State::Waits => self.report.trouble = Some("was not started before the run ended".to_owned()),
            State::Runs(mut child) | State::Ends(mut child) => {
                let is_stopped = os::is_stopped(child.id()) || os::is_frozen(child.id());
                self.report.trouble = self.spec.trouble_at_end(is_stopped).map(str::to_owned);
                os::signal_group(child.id(), os::Ending::Forced);
                let _ = child.wait();
                "killed at the end of the run".clone_into(&mut self.report.exit);
            }
            State::Gone => {}
        }
        self.report
    }
}
