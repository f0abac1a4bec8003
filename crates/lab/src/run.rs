//! One run: a plan carried out in a world, and what is known of it afterwards.

use crate::Plan;
use crate::ScenarioError;
use crate::failure::{self, failures};
use crate::flow::{Flow, Packets, Traffic};
use crate::handoff::{self, Handoff, Hole};
use crate::kept_records::Kept;
use crate::ledger::{self, Ledger, Running};
use crate::linux::WorldReport;
use crate::plan::EPOCH;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use trace::{Doubt, HostId, Record};
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

    /// Where something holds, in words.
    pub const fn place(self) -> &'static str {
        match self {
            Self::Sim => "in the simulator",
            Self::Linux => "on Linux",
        }
    }

    /// Its name in figures.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Sim => "simulator",
            Self::Linux => "Linux",
        }
    }
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
    /// The flows, in the order in which they began.
    pub flows: Vec<Flow>,
    /// What is known of the packets of each flow.
    pub(crate) packets: Vec<Packets>,
    /// The handoffs.
    pub handoffs: Vec<Handoff>,
    /// Outages of flows that no handoff made.
    pub holes: Vec<Hole>,
    /// What did not hold, each by name: a transfer that did not end, a reset, a program that failed. The run is to be
    /// trusted, and its exit code is 1.
    pub failures: Vec<String>,
    /// Why the run is not to be trusted.
    pub doubts: Vec<Doubt>,
    /// What only a world on Linux knows.
    pub linux: Option<WorldReport>,
}

impl Outcome {
    /// Draws up the accounts of a run.
    pub fn new(plan: Plan, world: OnWorld, records: Vec<Record>, fingerprint: Option<u64>) -> Self {
        let ledger = ledger::close(&plan, &records);
        let traffic = Traffic::new(&plan, &records);
        let handoffs = handoff::handoffs(&plan, &records, &traffic);
        let mut doubts = doubts(&ledger);
        let uncut = handoff::uncut(&records).into_iter();
        doubts.extend(uncut.map(|begun| Doubt::Uncut { begun_s: begun.as_secs_f64() }));
        let holes = handoff::holes(&plan, &records, &traffic, &handoffs);
        doubts.extend(unexplained(&handoffs, &holes));
        let mut failures = failures(&plan, &traffic, &handoffs, &holes);
        failures.splice(0..0, failure::wrong(&plan, &traffic.flows, &records));
        let Traffic { flows, packets, .. } = traffic;
        Self {
            plan,
            world,
            records,
            fingerprint,
            ledger,
            flows,
            packets,
            handoffs,
            holes,
            failures,
            doubts,
            linux: None,
        }
    }

    /// Adds what only the Linux backend knows, and the doubts that follow from it.
    pub(crate) fn set_linux(&mut self, report: Option<WorldReport>) {
        let found = report.as_ref().map(|report| report.find_doubts(self)).unwrap_or_default();
        self.linux = report;
        self.withdraw_added(&found);
        self.judge_without_missing_records();
        self.doubts.splice(0..0, found);
    }

    /// What counters say was added at an interface, the ledger does not call lost by its sender.
    pub(crate) fn withdraw_added(&mut self, found: &[Doubt]) {
        let before = self.ledger.doubts();
        for doubt in found {
            match doubt {
                Doubt::FramesIn { host, interface, came, delivered } if came > delivered => {
                    self.ledger.added(host, interface, came - delivered, true);
                }
                Doubt::FramesOut { host, interface, left, sent } if left > sent => {
                    self.ledger.added(host, interface, left - sent, false);
                }
                _ => {}
            }
        }
        let after = self.ledger.doubts();
        if after != before {
            self.doubts.retain(|doubt| !before.contains(doubt));
            self.doubts.splice(0..0, after);
        }
    }

    /// Withdraws what was found about packets, if the records of a host are missing: no packet could be followed there, and
    /// what the other hosts recorded would accuse the wrong one.
    fn judge_without_missing_records(&mut self) {
        if !self.lacks_records() {
            return;
        }
        self.ledger = Ledger::default();
        self.flows.clear();
        self.packets.clear();
        self.handoffs.clear();
        self.holes.clear();
        self.failures.clear();
        self.doubts.clear();
    }

    /// Whether the records of a host are missing, so that there are no tables.
    pub fn lacks_records(&self) -> bool {
        self.linux.as_ref().is_some_and(|linux| linux.hosts_without_records().next().is_some())
    }

    /// What the clock on the wall said when the run began.
    pub fn epoch(&self) -> WallTime {
        self.linux.as_ref().map_or(EPOCH, |linux| WallTime(linux.began_ns))
    }

    /// The host whose base station has this id, or the id where none has.
    pub(crate) fn station(&self, id: u32) -> String {
        use roles::RoleConfig::{CellularIpGateway, CellularIpStation};
        let serves = |role: &roles::RoleConfig| matches!(role, CellularIpStation(config) | CellularIpGateway(config) if config.id == id);
        let host = self.plan.hosts.iter().find(|host| host.config.roles.iter().any(serves));
        host.map_or_else(|| format!("station {id}"), |host| host.config.name.clone())
    }

    /// A host's name.
    pub fn host(&self, host: HostId) -> Cow<'_, str> {
        self.plan.host_name(host)
    }
}

/// Why a plan was not simulated to its end.
#[derive(Debug, thiserror::Error)]
pub enum NotSimulated {
    /// It makes no world.
    #[error(transparent)]
    Node(#[from] roles::NodeError),
    /// Its records are more than is kept in memory.
    #[error(transparent)]
    TooLarge(ScenarioError),
}

/// Bytes of records that a run keeps in memory at most.
const MOST_KEPT: usize = 2 << 30;

/// Runs a plan in the simulator. Refused if its records take more than 2 GiB.
pub fn simulate(plan: Plan) -> Result<Outcome, NotSimulated> {
    let run = plan.recorded(Kept::new(MOST_KEPT))?.run(plan.end());
    if let Some(at) = run.full {
        return Err(NotSimulated::TooLarge(plan.too_large(at.since(wire::Instant::ZERO), MOST_KEPT)));
    }
    let stopped = run.stopped.map(|stopped| restless(&plan, &stopped));
    let mut outcome = Outcome::new(plan, OnWorld::Sim, run.records.records, Some(run.fingerprint));
    outcome.doubts.splice(0..0, stopped);
    Ok(outcome)
}

/// Why a simulated run ended before its time.
fn restless(plan: &Plan, stopped: &sim::Stopped) -> Doubt {
    let host = plan.host_name(stopped.host).into_owned();
    Doubt::Restless { host, role: stopped.role.to_owned(), at_s: stopped.at.as_secs_f64() }
}

/// A simulated run of which no records were kept.
#[derive(Debug)]
pub struct Counted {
    /// The simulator's number for the run: the same as with records.
    pub fingerprint: u64,
    /// Events that happened.
    pub events: u64,
    /// Frames that were put on links.
    pub hops: u64,
    /// The most packets that were under way at one time.
    pub most_open: usize,
    /// The books. Drops are counted, and not listed.
    pub ledger: Ledger,
    /// What did not hold, as far as it is known without records: connections that failed, sources of which nothing arrived.
    pub failures: Vec<String>,
    /// Why the run is not to be trusted.
    pub doubts: Vec<Doubt>,
}

/// Runs a world that was made with [`Running`] books, and forgets each packet when its books are closed: memory is for
/// what is under way, however long the run is. What needs records, as handoffs do, is not told.
pub fn count(world: sim::World<Running>, plan: &Plan) -> Counted {
    let mut run = world.run(plan.end());
    let (hops, most_open) = (run.records.hops(), run.records.most_open());
    let failures = run.records.failures(plan);
    let ledger = run.records.close();
    let mut doubts = doubts(&ledger);
    doubts.splice(0..0, run.stopped.map(|stopped| restless(plan, &stopped)));
    Counted { fingerprint: run.fingerprint, events: run.events, hops, most_open, ledger, failures, doubts }
}

/// Outages of which a part has no cause, of handoffs and of holes.
fn unexplained(handoffs: &[Handoff], holes: &[Hole]) -> Vec<Doubt> {
    let of_handoffs = (1..).zip(handoffs).flat_map(|(number, handoff)| {
        handoff.flows.iter().map(move |cost| (Some(number), cost.flow, &cost.experience))
    });
    let all = of_handoffs.chain(holes.iter().map(|hole| (None, hole.flow, &hole.experience)));
    let ms = |span: wire::Duration| span.as_secs_f64() * 1e3;
    all.filter_map(|(handoff, flow, experience)| {
        let outage = experience.outage().filter(|outage| !outage.is_explained())?;
        Some(Doubt::Unexplained {
            handoff,
            flow: flow + 1,
            from_s: outage.from.as_secs_f64(),
            part_ms: ms(outage.unexplained()),
            outage_ms: ms(outage.span()),
        })
    })
    .collect()
}

fn doubts(ledger: &Ledger) -> Vec<Doubt> {
    let mut doubts = ledger.doubts();
    if doubts.is_empty() && !ledger.balances() {
        doubts.push(Doubt::Unbalanced);
    }
    doubts
}
