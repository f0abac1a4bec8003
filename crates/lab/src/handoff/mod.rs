//! What each handoff cost: packets lost and doubled, and an outage whose every part has an owner.
//!
//! An outage begins at the event that cut the path and ends when the next packet is handed to the application. Each
//! stage of a handoff begins and ends at an event of its own; what lies in no stage is *unexplained*.

mod cost;
mod hole;
mod stages;

use crate::Plan;
use crate::flow::Traffic;
pub use hole::Hole;
use node::{Mark, Span, Stage};
use stages::Story;
use trace::{HostId, Record, What};
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
    /// The station it went to.
    pub to: String,
    /// When it was decided.
    pub begun: Instant,
    /// When the radio was pointed at the new cell: the path is cut.
    pub cut: Instant,
    /// What it cost each flow from or to the host; empty if no flow was there to be cut.
    pub flows: Vec<FlowCost>,
    /// From the cut to the crossover's new mapping, and one downlink time of the new leg.
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
    /// When the flow had again half of the goodput of the second before the cut.
    pub recovered: Option<Instant>,
    /// Packets with data of which no copy arrived: datagrams at the application, segments at the host's stack.
    pub lost: u64,
    /// Copies that arrived beyond the first.
    pub duplicates: u64,
}

/// What a receiving application noticed of a handoff.
#[derive(Clone, PartialEq, Debug)]
pub enum Experience {
    /// It lost nothing and saw no gap.
    None,
    /// It was given nothing new for this time.
    Outage(Outage),
    /// It was given nothing new until the end of the run, although the flow had not completed.
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

    /// Packets with data that were lost, of all flows.
    pub fn lost(&self) -> u64 {
        self.flows.iter().map(|cost| cost.lost).sum()
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

/// All handoffs of a run, in the order of time, with what each cost the flows of `traffic`.
pub(crate) fn handoffs(plan: &Plan, records: &[Record], traffic: &Traffic) -> Vec<Handoff> {
    let story = Story::new(plan, records, traffic);
    let mut handoffs: Vec<Handoff> = Vec::new();
    // From the last to the first: an outage may outlast the next handoff of its host.
    for record in records.iter().rev() {
        if let Some(mark) = begin(record) {
            let next = handoffs.iter().rev().find(|other| other.host == record.host);
            let handoff = story.handoff(record, mark, next);
            handoffs.extend(handoff);
        }
    }
    handoffs.reverse();
    handoffs
}

/// All outages of a run that no handoff made, in the order of time.
pub(crate) fn holes(plan: &Plan, records: &[Record], traffic: &Traffic, handoffs: &[Handoff]) -> Vec<Hole> {
    Story::new(plan, records, traffic).holes(handoffs)
}

/// When handoffs began of which nobody saw what cut the path, though the radio came up in another cell.
pub fn uncut(records: &[Record]) -> Vec<Instant> {
    let mut uncut = Vec::new();
    for (index, record) in records.iter().enumerate() {
        let edge = |r: &&Record| is_radios(r) || matches!(r.what, What::Tuned(..) | What::Up(_, Some(_)));
        let mut later = records.iter().skip(index + 1).filter(|later| later.host == record.host);
        if is_radios(record) && later.find(edge).is_some_and(|next| matches!(next.what, What::Up(..))) {
            uncut.push(record.at);
        }
    }
    uncut
}

/// The mark with which a handoff begins, if this is one.
fn begin(record: &Record) -> Option<&Mark> {
    match &record.what {
        What::Marked(mark) if mark.name == node::HANDOFF => Some(mark),
        _ => None,
    }
}

/// Whether a handoff begins that a radio makes; one that only switches the way has its cut in itself.
fn is_radios(record: &Record) -> bool {
    begin(record).is_some_and(|mark| mark.span != Some(Span::Begins(Stage::PathSwitch)))
}

#[cfg(test)]
mod tests;
