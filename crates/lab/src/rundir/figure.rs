//! `figures/handoffs`: what was sent, what arrived, and who owns each outage.
//!
//! Datagrams stand at their numbers. Where a run has streams, their segments stand at their place in the stream.

use super::flows::Flows;
use crate::handoff::Handoff;
use crate::journey::{End, Fate, Journeys};
use crate::run::Outcome;
use draw::{Band, Mark, MarkKind, Owner, SequenceFigure};
use node::Stage;

/// The figure of a run's handoffs. Packets have the numbers that `packets.csv` and `explain --packet` know them by.
pub(super) fn handoffs(outcome: &Outcome, journeys: &Journeys<'_>) -> SequenceFigure {
    let (plan, world) = (&outcome.plan, outcome.world.name());
    let mut figure = SequenceFigure::new(format!("{} on {world}, seed {}", plan.name, plan.seed));
    let flows = Flows::new(outcome);
    let note = if flows.is_empty() {
        figure.marks = datagrams(journeys);
        "Packets are numbered as in packets.csv and for `explain --packet`; control messages have numbers too."
    } else {
        flows.axis().clone_into(&mut figure.axis);
        figure.marks = flows.marks(outcome, journeys);
        figure.flows = flows.names();
        flows.note()
    };
    figure.caption = format!("{}\n{note}", plan.about);
    figure.handoffs = outcome.handoffs.iter().map(handoff).collect();
    figure
}

fn datagrams(journeys: &Journeys<'_>) -> Vec<Mark> {
    let mut marks = Vec::new();
    for (packet, journey) in journeys.packets() {
        let Some((sent, _)) = journey.sent else { continue };
        let ends = journeys.all_ends(journey);
        let mark = |at, kind| Mark { at, kind, packet, flow: 0 };
        marks.push(mark(sent, MarkKind::Sent));
        let arrivals = ends.iter().filter(|end| matches!(end.fate, Fate::Delivered(_)));
        let kinds = std::iter::once(MarkKind::Received).chain(std::iter::repeat(MarkKind::Duplicate));
        let before = marks.len();
        marks.extend(arrivals.zip(kinds).map(|(end, kind)| mark(end.at, kind)));
        let held = ends.iter().any(|end| matches!(end.fate, Fate::Held(_)));
        let last = ends.iter().rfind(|end| is_loss(end));
        if let Some(end) = last.filter(|_| marks.len() == before && !held) {
            marks.push(mark(end.at, MarkKind::Lost));
        }
    }
    marks
}

pub(super) const fn is_loss(end: &End) -> bool {
    matches!(end.fate, Fate::Lost(..) | Fate::Dropped(..) | Fate::Unseen(_))
}

fn handoff(handoff: &Handoff) -> draw::Handoff {
    let parts = handoff.outage().into_iter().flat_map(|outage| &outage.owners);
    let band = |part: &crate::handoff::Owner| Band { owner: owner(part.stage), from: part.from, to: part.to };
    draw::Handoff {
        at: handoff.begun,
        label: format!("{} {}->{}", handoff.kind, handoff.from, handoff.to),
        outage: parts.map(band).collect(),
    }
}

const fn owner(stage: Option<Stage>) -> Owner {
    match stage {
        Some(Stage::Link) => Owner::Link,
        Some(Stage::Detection) => Owner::Detection,
        Some(Stage::Address) => Owner::Address,
        Some(Stage::Registration) => Owner::Registration,
        Some(Stage::PathSwitch) => Owner::PathSwitch,
        Some(Stage::FirstByte) => Owner::FirstByte,
        Some(Stage::Recovery) => Owner::Recovery,
        Some(Stage::Traffic) => Owner::Traffic,
        None => Owner::Unexplained,
    }
}
