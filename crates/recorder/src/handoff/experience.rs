//! Types for the cost of a handoff.

use crate::flow::PacketEvent;
use node::Stage;
use trace::HostId;
use wire::{Duration, Instant};

/// One handoff of one mobile host.
#[derive(Clone, PartialEq, Debug)]
pub struct Handoff {
    /// The mobile host.
    pub host: HostId,
    /// `hard` or `semisoft`, as the protocol names it.
    pub kind: String,
    /// The name of the station that the host left.
    pub from: String,
    /// The station it went to, or was to go to.
    pub to: String,
    /// Whether the host did not reach `to`.
    pub failed: bool,
    /// When the handoff was decided.
    pub begun: Instant,
    /// When the path was cut: the link was lost, or the radio started to tune to the new cell.
    pub cut: Instant,
    /// The cost for each flow from or to the host; empty if no flow existed at the cut.
    pub flows: Vec<FlowCost>,
    /// The time from the cut until the node that switches the path has the new one, plus one transit down that path;
    /// `None` if no packet went down it. `docs/glossary.md` defines the node for each protocol.
    pub latency: Option<Duration>,
    /// The round trip between host and crossover during this handoff: the route-update up, and a data packet down.
    pub round_trip: Option<Duration>,
}

/// The cost of a handoff for one flow.
#[derive(Clone, PartialEq, Debug)]
pub struct FlowCost {
    /// The flow's index in [`crate::run::Outcome::flows`].
    pub flow: usize,
    /// The effect on the receiving application.
    pub experience: Experience,
    /// When its goodput had recovered.
    pub recovery: Recovery,
    /// Packets with data of which no copy arrived (datagrams at the application, segments at the host's stack). They
    /// were lost after the handoff began, and sent before the recovery.
    pub(crate) losses: Vec<PacketEvent>,
    /// Copies that arrived beyond the first, of packets that were sent before the recovery.
    pub duplicates: u64,
}

impl FlowCost {
    /// Returns the number of lost packets.
    pub fn lost(&self) -> u64 {
        self.losses.len() as u64
    }
}

/// When a flow again had half of the goodput of the second before the cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Recovery {
    /// It never had less.
    Unneeded,
    /// From this instant on, over one window (at least one round trip). Not earlier than the end of the outage.
    At(Instant),
    /// Not until the flow or the run ended.
    Never,
    /// The run ended too early to measure it, or the handoff's outage was not measured.
    NotMeasured,
}

impl Recovery {
    /// Returns the instant of [`Self::At`].
    pub const fn at(self) -> Option<Instant> {
        match self {
            Self::At(at) => Some(at),
            _ => None,
        }
    }
}

/// The effect of a handoff on a receiving application.
#[derive(Clone, PartialEq, Debug)]
pub enum Experience {
    /// No data was lost, and there was no gap.
    None,
    /// The application received nothing new for this time.
    Outage(Outage),
    /// The application received nothing new until the flow or the run ended, and the flow was not complete.
    Never {
        /// The cut.
        from: Instant,
    },
    /// The flow was idle when the path was cut, or the run ended too early to measure it.
    NotMeasured,
}

impl Experience {
    /// Returns the outage, if there was one that ended.
    pub const fn outage(&self) -> Option<&Outage> {
        match self {
            Self::Outage(outage) => Some(outage),
            _ => None,
        }
    }

    /// Returns the time without new data in milliseconds: 0 for none, infinite for never; `None` if not measured.
    pub fn millis(&self) -> Option<f64> {
        match self {
            Self::None => Some(0.0),
            Self::Outage(outage) => Some(outage.span().as_secs_f64() * 1e3),
            Self::Never { .. } => Some(f64::INFINITY),
            Self::NotMeasured => None,
        }
    }
}

impl Handoff {
    /// Returns the flow with the longest outage, and the first of equals. Returns `None` if nothing was measured.
    pub fn worst(&self) -> Option<&FlowCost> {
        let measured = self.flows.iter().filter_map(|cost| Some((cost, cost.experience.millis()?)));
        let worse = |one: (&'_ FlowCost, f64), other: (&'_ FlowCost, f64)| other.1 > one.1;
        let worst = measured.reduce(|one, other| if worse(one, other) { other } else { one });
        worst.map(|(cost, _)| cost)
    }

    /// Returns the outage of the worst flow, if it ended.
    pub fn outage(&self) -> Option<&Outage> {
        self.worst()?.experience.outage()
    }

    /// Returns whether a flow received nothing new any more.
    pub fn is_never(&self) -> bool {
        self.flows.iter().any(|cost| matches!(cost.experience, Experience::Never { .. }))
    }

    /// Returns the outage of the worst flow in milliseconds; infinite for never. `None` if not measured.
    pub fn outage_ms(&self) -> Option<f64> {
        self.worst()?.experience.millis()
    }

    /// Returns whether a flow existed at the cut, and was not idle.
    pub fn is_measured(&self) -> bool {
        self.flows.iter().any(|cost| !matches!(cost.experience, Experience::NotMeasured))
    }

    /// Returns the number of lost packets with data, of all flows.
    pub fn lost(&self) -> u64 {
        self.flows.iter().map(FlowCost::lost).sum()
    }

    /// Returns the number of copies that arrived beyond the first, of all flows.
    pub fn duplicates(&self) -> u64 {
        self.flows.iter().map(|cost| cost.duplicates).sum()
    }
}

/// A time in which an application received no new data.
#[derive(Clone, PartialEq, Debug)]
pub struct Outage {
    /// The cut.
    pub from: Instant,
    /// The next arrival of new data at the application.
    pub to: Instant,
    /// The parts of the outage, each with its cause, in the order of time and without overlap.
    pub owners: Vec<Owner>,
}

/// A part of an outage, and its cause.
#[derive(Clone, PartialEq, Debug)]
pub struct Owner {
    /// The cause; `None` if it is unexplained.
    pub stage: Option<Stage>,
    /// When this part begins.
    pub from: Instant,
    /// When this part ends.
    pub to: Instant,
    /// The name of the event that it begins with.
    pub begins: String,
    /// The name of the event that it ends with.
    pub ends: String,
    /// The hosts where these two events happened; `None` if it is unexplained.
    pub hosts: Option<(HostId, HostId)>,
}

impl Owner {
    /// Returns the name of the cause used in reports.
    pub fn name(&self) -> &'static str {
        self.stage.map_or("unexplained", Stage::name)
    }

    /// Returns its duration.
    pub fn span(&self) -> Duration {
        self.to.since(self.from)
    }
}

impl Outage {
    /// Returns its duration.
    pub fn span(&self) -> Duration {
        self.to.since(self.from)
    }

    /// Returns the unexplained part of its duration.
    pub fn unexplained(&self) -> Duration {
        self.owners.iter().filter(|owner| owner.stage.is_none()).map(Owner::span).sum()
    }

    /// Returns whether at most a twentieth is unexplained. Otherwise the run is invalid.
    pub fn is_explained(&self) -> bool {
        self.unexplained() * 20 <= self.span()
    }
}
