//! `figures/handoffs`: what was sent, what arrived, and who owns each outage.

use crate::handoff::Handoff;
use crate::journey::{Fate, Journeys};
use crate::run::Outcome;
use draw::{Band, Mark, MarkKind, Owner, SequenceFigure};
use node::Stage;

/// The figure of a run's handoffs. Packets have the numbers that `packets.csv` and `explain --packet` know them by.
pub(super) fn handoffs(outcome: &Outcome, journeys: &Journeys<'_>) -> SequenceFigure {
    let (plan, world) = (&outcome.plan, outcome.world.name());
    let mut figure = SequenceFigure::new(format!("{} on {world}, seed {}", plan.name, plan.seed));
    figure.caption = format!(
        "{}\nPackets are numbered as in packets.csv and for `explain --packet`; control messages have numbers too.",
        plan.about
    );
    for (packet, journey) in journeys.packets() {
        let Some((sent, _)) = journey.sent else { continue };
        let ends = journeys.all_ends(journey);
        let mark = |at, kind| Mark { at, kind, packet };
        figure.marks.push(mark(sent, MarkKind::Sent));
        let arrivals = ends.iter().filter(|end| matches!(end.fate, Fate::Delivered(_)));
        let kinds = std::iter::once(MarkKind::Received).chain(std::iter::repeat(MarkKind::Duplicate));
        let before = figure.marks.len();
        figure.marks.extend(arrivals.zip(kinds).map(|(end, kind)| mark(end.at, kind)));
        let lost = |fate: &Fate| matches!(fate, Fate::Lost(..) | Fate::Dropped(..) | Fate::Unseen(_));
        let held = ends.iter().any(|end| matches!(end.fate, Fate::Held(_)));
        let last = ends.iter().rfind(|end| lost(&end.fate));
        if let Some(end) = last.filter(|_| figure.marks.len() == before && !held) {
            figure.marks.push(mark(end.at, MarkKind::Lost));
        }
    }
    figure.handoffs = outcome.handoffs.iter().map(handoff).collect();
    figure
}

fn handoff(handoff: &Handoff) -> draw::Handoff {
    let parts = handoff.outage.iter().flat_map(|outage| &outage.owners);
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
        None => Owner::Unexplained,
    }
}
