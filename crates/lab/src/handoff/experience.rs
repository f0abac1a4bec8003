//! What a handoff cost, as types.

use crate::flow::PacketEvent;
use node::Stage;
use trace::HostId;
use wire::{Duration, Instant};

/// One handoff of one mobile host.
#[derive(Clone, PartialEq, Debug)]
pub struct Handoff {
    /// The mobile host.
    pub host: HostId,
    /// `hard` or `semisoft`, as the protocol calls it.
    pub kind: String,
    /// The station it left.
    pub from: String,
    /// The station it went to, or was to go to.
    pub to: String,
    /// It did not get there.
    pub failed: bool,
    /// When it was decided.
    pub begun: Instant,
    /// When the radio was pointed at the new cell: the path is cut.
    pub cut: Instant,
    /// What it cost each flow from or to the host; empty if no flow was there to be cut.
    pub flows: Vec<FlowCost>,
    /// From the cut until the node that switches the path has the new one, and one time down that path; `None` if nothing
    /// went down it. Which node it is, is defined in `docs/glossary.md`.
    pub latency: Option<Duration>,
    /// Route-update up, data packet down: the round trip between host and crossover, as this handoff met it.
    pub round_trip: Option<Duration>,
}

/// What a handoff cost one flow.
#[derive(Clone, PartialEq, Debug)]
pub struct FlowCost {
    /// The flow's place in [`crate::run::Outcome::flows`].
    pub flow: usize,
    /// What its receiving application noticed.
    pub experience: Experience,
    /// When its goodput was back.
    pub recovery: Recovery,
    /// Packets with data of which no copy arrived: datagrams at the application, segments at the host's stack. They were
    /// lost since the handoff began, and sent before the recovery.
    pub(crate) losses: Vec<PacketEvent>,
    /// Copies that arrived beyond the first, of packets sent before the recovery.
    pub duplicates: u64,
}

impl FlowCost {
    /// How many packets were lost.
    pub fn lost(&self) -> u64 {
        self.losses.len() as u64
    }
}

/// When a flow had again half of the goodput of the second before the cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Recovery {
    /// It never had less.
    Unneeded,
    /// From this instant on, over a round trip or longer. Not earlier than the end of the outage.
    At(Instant),
    /// Not until the flow or the run ended.
    Never,
    /// The run ended too early to say, or nothing of the handoff was measured.
    NotMeasured,
}

impl Recovery {
    /// The instant, if there is one.
    pub const fn at(self) -> Option<Instant> {
        match self {
            Self::At(at) => Some(at),
            _ => None,
        }
    }
}

/// What a receiving application noticed of a handoff.
#[derive(Clone, PartialEq, Debug)]
pub enum Experience {
    /// It lost nothing and saw no gap.
    None,
    /// It was given nothing new for this time.
    Outage(Outage),
    /// It was given nothing new any more, although the flow had not completed.
    Never {
        /// The cut.
        from: Instant,
    },
    /// The flow was not there, or idle, when the path was cut.
    NotMeasured,
}

impl Experience {
    /// The outage, if it was one that ended.
    pub const fn outage(&self) -> Option<&Outage> {
        match self {
            Self::Outage(outage) => Some(outage),
            _ => None,
        }
    }

    /// Milliseconds without new data: 0 for none, infinite for never; `None` if not measured.
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
    /// The flow that noticed the most; the first of equals. `None` if nothing was measured.
    pub fn worst(&self) -> Option<&FlowCost> {
        let measured = self.flows.iter().filter_map(|cost| Some((cost, cost.experience.millis()?)));
        let worse = |one: (&'_ FlowCost, f64), other: (&'_ FlowCost, f64)| other.1 > one.1;
        let worst = measured.reduce(|one, other| if worse(one, other) { other } else { one });
        worst.map(|(cost, _)| cost)
    }

    /// The outage of the worst flow, if it is one that ended.
    pub fn outage(&self) -> Option<&Outage> {
        self.worst()?.experience.outage()
    }

    /// Whether a flow was given nothing new any more.
    pub fn is_never(&self) -> bool {
        self.flows.iter().any(|cost| matches!(cost.experience, Experience::Never { .. }))
    }

    /// How long the worst flow was given nothing new, in milliseconds; infinite for never. `None` if not measured.
    pub fn outage_ms(&self) -> Option<f64> {
        self.worst()?.experience.millis()
    }

    /// Whether a flow was there to be cut, and was not idle.
    pub fn is_measured(&self) -> bool {
        self.flows.iter().any(|cost| !matches!(cost.experience, Experience::NotMeasured))
    }

    /// Packets with data that were lost, of all flows.
    pub fn lost(&self) -> u64 {
        self.flows.iter().map(FlowCost::lost).sum()
    }

    /// Copies that arrived beyond the first, of all flows.
    pub fn duplicates(&self) -> u64 {
        self.flows.iter().map(|cost| cost.duplicates).sum()
    }
}

/// A time without packets.
#[derive(Clone, PartialEq, Debug)]
pub struct Outage {
    /// From the cut.
    pub from: Instant,
    /// To the next packet in the application's hands.
    pub to: Instant,
    /// Its parts in the order of time, without overlap.
    pub owners: Vec<Owner>,
}

/// A part of an outage.
#[derive(Clone, PartialEq, Debug)]
pub struct Owner {
    /// Who; `None` is nobody: unexplained.
    pub stage: Option<Stage>,
    /// From.
    pub from: Instant,
    /// To.
    pub to: Instant,
    /// The event that it begins with.
    pub begins: String,
    /// The event that it ends with.
    pub ends: String,
    /// Where these two happened; nowhere, if nobody owns it.
    pub hosts: Option<(HostId, HostId)>,
}

impl Owner {
    /// Its name in reports.
    pub fn name(&self) -> &'static str {
        self.stage.map_or("unexplained", Stage::name)
    }

    /// How long it lasts.
    pub fn span(&self) -> Duration {
        self.to.since(self.from)
    }
}

impl Outage {
    /// How long it lasts.
    pub fn span(&self) -> Duration {
        self.to.since(self.from)
    }

    /// How much of it nobody owns.
    pub fn unexplained(&self) -> Duration {
        self.owners.iter().filter(|owner| owner.stage.is_none()).map(Owner::span).sum()
    }

    /// More than a twentieth unexplained: the run is not to be trusted.
    pub fn is_explained(&self) -> bool {
        self.unexplained() * 20 <= self.span()
    }
}
