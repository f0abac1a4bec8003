//! One run: a plan carried out in a world, and what is known of it afterwards.

use crate::Plan;
use crate::handoff::{self, Handoff};
use crate::ledger::{self, Ledger};
use crate::plan::EPOCH;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use trace::{HostId, Record};
use wire::WallTime;

/// Who carries the packets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnWorld {
    /// The simulator, in virtual time.
    Sim,
    /// Real daemons on this kernel.
    Linux,
}

impl OnWorld {
    /// Its name in reports and run directories.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sim => "sim",
            Self::Linux => "linux",
        }
    }
}

/// What only a run on Linux has.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct LinuxFacts {
    /// The wall time at which the run began, in nanoseconds since 1970.
    pub epoch_ns: i64,
    /// The machine: kernel, processor, whatever may matter to somebody who compares.
    pub machine: BTreeMap<String, serde_json::Value>,
    /// The daemons.
    pub daemons: Vec<Daemon>,
}

/// A daemon that took part in a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Daemon {
    /// Its host.
    pub host: String,
    /// Its process.
    pub pid: u32,
    /// How it ended: `0`, `signal 9`, ...
    pub exit: String,
}

/// Why there was no run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The scenario cannot work like this.
    #[error("{0}")]
    Scenario(#[from] roles::NodeError),
    /// This machine cannot, and what is missing.
    #[error("{0}")]
    Machine(String),
}

/// A run that has ended.
#[derive(Debug)]
pub struct Outcome {
    /// What was carried out.
    pub plan: Plan,
    /// Where.
    pub world: OnWorld,
    /// All that was written down, in the order of time.
    pub records: Vec<Record>,
    /// The simulator's number for the run.
    pub fingerprint: Option<u64>,
    /// The books.
    pub ledger: Ledger,
    /// The handoffs.
    pub handoffs: Vec<Handoff>,
    /// Why the run is not to be trusted.
    pub doubts: Vec<String>,
    /// What only a run on Linux has.
    pub linux: Option<LinuxFacts>,
}

impl Outcome {
    /// Draws up the accounts of a run.
    pub fn new(plan: Plan, world: OnWorld, records: Vec<Record>, fingerprint: Option<u64>) -> Self {
        let ledger = ledger::close(&plan, &records);
        let handoffs = handoff::handoffs(&plan, &records);
        let mut doubts = ledger.complaints();
        if doubts.is_empty() && !ledger.balances() {
            doubts.push("the ledger does not balance".to_owned());
        }
        for (number, handoff) in (1..).zip(&handoffs) {
            if let Some(outage) = handoff.outage.as_ref().filter(|outage| !outage.is_explained()) {
                let (part, whole) = (outage.unexplained(), outage.span());
                doubts.push(format!("handoff {number}: {part:?} of {whole:?} unexplained"));
            }
        }
        Self { plan, world, records, fingerprint, ledger, handoffs, doubts, linux: None }
    }

    /// The same, with what only a run on Linux has.
    #[must_use]
    pub fn on(mut self, linux: Option<LinuxFacts>) -> Self {
        self.linux = linux;
        self
    }

    /// What the clock on the wall said when the run began.
    pub fn epoch(&self) -> WallTime {
        self.linux.as_ref().map_or(EPOCH, |linux| WallTime(linux.epoch_ns))
    }

    /// The host whose base station has this id, or the id where none has.
    pub(crate) fn station(&self, id: u32) -> String {
        use roles::RoleConfig::{CellularIpGateway, CellularIpStation};
        let serves = |role: &roles::RoleConfig| matches!(role, CellularIpStation(config) | CellularIpGateway(config) if config.id == id);
        let host = self.plan.hosts.iter().find(|host| host.config.roles.iter().any(serves));
        host.map_or_else(|| format!("station {id}"), |host| host.config.name.clone())
    }

    /// A host's name.
    pub fn host(&self, host: HostId) -> &str {
        self.plan.hosts.get(usize::from(host.0)).map_or("?", |host| host.config.name.as_str())
    }
}

/// Runs a plan in one of the worlds. Linux never falls back to the simulator.
pub fn run(plan: Plan, world: OnWorld) -> Result<Outcome, RunError> {
    match world {
        OnWorld::Sim => Ok(simulate(plan)?),
        OnWorld::Linux => on_linux(plan),
    }
}

/// Runs a plan with real daemons on this kernel.
pub fn on_linux(plan: Plan) -> Result<Outcome, RunError> {
    let Plan { name, .. } = plan;
    Err(RunError::Machine(format!("not built yet: {name} on linux")))
}

/// Runs a plan in the simulator.
pub fn simulate(plan: Plan) -> Result<Outcome, roles::NodeError> {
    let run = plan.world()?.run(plan.end());
    Ok(Outcome::new(plan, OnWorld::Sim, run.records, Some(run.fingerprint)))
}
