//! The backend of a run, and its report of the run as plain data.

use serde::{Deserialize, Serialize};
use wire::WallTime;

/// The program that moves the packets of a run: the simulator or Linux.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// The simulator, in virtual time.
    Sim,
    /// Real daemons on the kernel of this machine.
    Linux,
}

impl Backend {
    /// Returns `sim` or `linux`, the name in reports and in the names of run directories.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sim => "sim",
            Self::Linux => "linux",
        }
    }

    /// Returns `in the simulator` or `on Linux`, for sentences.
    pub const fn place(self) -> &'static str {
        match self {
            Self::Sim => "in the simulator",
            Self::Linux => "on Linux",
        }
    }

    /// Returns `simulator` or `Linux`, the backend's name in figures.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Sim => "simulator",
            Self::Linux => "Linux",
        }
    }
}

/// The data that a backend reports in addition to the records of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct BackendReport {
    /// The wall-clock time at which the run began.
    pub began: WallTime,
    /// The kernel and the user id with which the run took place.
    pub machine: Machine,
    /// The daemon of each host, in the order of the hosts in the plan.
    pub daemons: Vec<Daemon>,
    /// The hosts without records, by name. No packet can be followed through these hosts.
    pub hosts_without_records: Vec<String>,
    /// The outputs of the scenario's programs.
    pub programs: Vec<ProgramOutput>,
    /// The whole report in the backend's format: the field `linux` of `run.json`.
    pub details: serde_json::Value,
}

/// What one program of the scenario wrote, and the file for it.
#[derive(Clone, PartialEq, Debug)]
pub struct ProgramOutput {
    /// The name of the output's file in a run directory.
    pub file: String,
    /// The program's standard output and standard error, as bytes.
    pub output: Vec<u8>,
}

/// The kernel of the machine on which a scenario was run on Linux, and the user id of the process that ran it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Machine {
    /// The machine's kernel release.
    pub kernel: String,
    /// The user id of the process that ran the scenario.
    pub uid: u32,
}

/// A daemon of a run on Linux, and how it ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Daemon {
    /// The name of the daemon's host.
    pub host: String,
    /// The daemon's process id inside the PID namespace of the run.
    pub pid: u32,
    /// How the daemon ended, for example `exit status: 0` or `signal: 9 (SIGKILL)`.
    pub exit: String,
}
