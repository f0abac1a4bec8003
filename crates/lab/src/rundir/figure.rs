//! `figures/handoffs`: what was sent, what arrived, and who owns each outage.
//!
//! Datagrams stand at their numbers. Where a run has TCP, segments with data stand at their place in the stream.

use crate::handoff::Handoff;
use crate::journey::{End, Fate, Journey, Journeys};
use crate::run::Outcome;
use crate::segment;
use draw::{Band, Mark, MarkKind, Owner, SequenceFigure};
use node::Stage;
use std::collections::BTreeMap;
use tcp::Seq;
use trace::What;
use wire::{Iface, Instant, PacketId, SocketAddrV4};

/// The figure of a run's handoffs. Packets have the numbers that `packets.csv` and `explain --packet` know them by.
pub(super) fn handoffs(outcome: &Outcome, journeys: &Journeys<'_>) -> SequenceFigure {
    let (plan, world) = (&outcome.plan, outcome.world.name());
    let mut figure = SequenceFigure::new(format!("{} on {world}, seed {}", plan.name, plan.seed));
    let streams = Streams::new(outcome);
    if streams.places.is_empty() {
        figure.caption = format!(
            "{}\nPackets are numbered as in packets.csv and for `explain --packet`; control messages have numbers too.",
            plan.about
        );
        figure.marks = datagrams(journeys);
    } else {
        "sequence number (kB)".clone_into(&mut figure.axis);
        figure.caption = format!(
            "{}\nSegments of TCP with data, at the place of their first byte in their stream; `sent` is whenever the \
             sender's TCP sends, so that a retransmission stands beside its original.",
            plan.about
        );
        figure.marks = streams.marks(outcome, journeys);
    }
    figure.handoffs = outcome.handoffs.iter().map(handoff).collect();
    figure
}

fn datagrams(journeys: &Journeys<'_>) -> Vec<Mark> {
    let mut marks = Vec::new();
    for (packet, journey) in journeys.packets() {
        let Some((sent, _)) = journey.sent else { continue };
        let ends = journeys.all_ends(journey);
        let mark = |at, kind| Mark { at, kind, packet };
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

const fn is_loss(end: &End) -> bool {
    matches!(end.fate, Fate::Lost(..) | Fate::Dropped(..) | Fate::Unseen(_))
}

/// Where segments with data stand in their streams.
struct Streams {
    places: BTreeMap<PacketId, u64>,
}

impl Streams {
    fn new(outcome: &Outcome) -> Self {
        let mut first: BTreeMap<(SocketAddrV4, SocketAddrV4), Seq> = BTreeMap::new();
        let mut places = BTreeMap::new();
        for record in &outcome.records {
            let What::Received(Iface::HOST, packet) = &record.what else { continue };
            let Some(seen) = segment::of(packet).filter(|seen| !seen.segment.payload.is_empty()) else {
                continue;
            };
            // The first segment with data is the stream's begin: the connection was made within the run.
            let begin = *first.entry((seen.from, seen.to)).or_insert(seen.segment.seq);
            places.entry(packet.id).or_insert(u64::from(seen.segment.seq.since(begin)) / 1000);
        }
        Self { places }
    }

    fn marks(&self, outcome: &Outcome, journeys: &Journeys<'_>) -> Vec<Mark> {
        let mut marks = Vec::new();
        for record in &outcome.records {
            let (packet, kind) = match &record.what {
                What::Received(Iface::HOST, packet) => (packet, MarkKind::Sent),
                What::Sent(Iface::HOST, packet) => (packet, MarkKind::Received),
                _ => continue,
            };
            if let Some(place) = self.places.get(&packet.id) {
                marks.push(Mark { at: record.at, kind, packet: *place });
            }
        }
        let losses = |journey: &Journey| -> Vec<Instant> {
            journeys.all_ends(journey).iter().filter(|end| is_loss(end)).map(|end| end.at).collect()
        };
        for (_, journey) in journeys.packets() {
            if let Some(place) = self.places.get(&journey.id) {
                let lost = losses(journey).into_iter();
                marks.extend(lost.map(|at| Mark { at, kind: MarkKind::Lost, packet: *place }));
            }
        }
        marks
    }
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
