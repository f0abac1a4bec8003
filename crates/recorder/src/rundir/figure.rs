//! `figures/handoffs`: for each flow, the packets that were sent and received, and the causes of each outage.

use super::flows::Places;
use crate::handoff::{Experience, Handoff};
use crate::journey::Journeys;
use crate::run::{Backend, Outcome};
use draw::{Band, Cost, Counts, FlowTrace, Noticed, Owner, SequenceFigure};
use node::Stage;

/// Returns the figure of a run's handoffs.
pub(super) fn handoffs(outcome: &Outcome, journeys: &Journeys<'_>, places: &Places) -> SequenceFigure {
    let mut figure = SequenceFigure::new(format!("{}: handoffs", title(outcome)));
    figure.steps = super::steps::steps(outcome);
    let events = super::steps::events(outcome);
    let undrawn = match events.len() {
        more if more > super::steps::EVENTS => {
            format!(
                " The {more} events of the scenario are too many to be drawn; handoffs.csv and the report list them."
            )
        }
        _ => String::new(),
    };
    if undrawn.is_empty() {
        figure.steps.extend(events);
    } else {
        figure.undrawn = events;
    }
    let traces = places.traces(outcome, journeys);
    figure.handoffs =
        (1..).zip(&outcome.handoffs).map(|(number, one)| handoff(outcome, number, one)).collect();
    figure.holes = outcome.holes.iter().filter_map(hole).collect();
    figure.flows = keep_concerned(traces, &mut figure);
    figure.caption = format!("{}\n{}{undrawn}", outcome.plan.about, note(&figure.flows));
    figure
}

/// Returns the scenario's name, the backend and the seed.
pub(super) fn title(outcome: &Outcome) -> String {
    format!("{}, {}, seed {}", outcome.plan.name, backend(outcome.backend), outcome.plan.seed)
}

pub(super) const fn backend(backend: Backend) -> &'static str {
    match backend {
        Backend::Sim => "simulator",
        Backend::Linux => "Linux",
    }
}

fn hole(hole: &crate::handoff::Hole) -> Option<draw::HoleBand> {
    let (from, to) = match &hole.experience {
        Experience::Outage(outage) => (outage.from, Some(outage.to)),
        Experience::Never { from } => (*from, None),
        Experience::None | Experience::NotMeasured => return None,
    };
    Some(draw::HoleBand { flow: hole.flow, from, to })
}

/// Keeps only flows with a hole or with a cost of a handoff, or all flows if there are none. Renumbers the kept flows
/// in `figure`.
fn keep_concerned(traces: Vec<FlowTrace>, figure: &mut SequenceFigure) -> Vec<FlowTrace> {
    let of_handoffs = figure.handoffs.iter().flat_map(|one| &one.costs).map(|cost| cost.flow);
    let mut concerned: Vec<usize> = of_handoffs.chain(figure.holes.iter().map(|hole| hole.flow)).collect();
    concerned.sort_unstable();
    concerned.dedup();
    if concerned.is_empty() {
        return traces;
    }
    let of_handoffs = figure.handoffs.iter_mut().flat_map(|one| &mut one.costs).map(|cost| &mut cost.flow);
    for flow in of_handoffs.chain(figure.holes.iter_mut().map(|hole| &mut hole.flow)) {
        *flow = concerned.binary_search(flow).unwrap_or(usize::MAX);
    }
    let kept = traces.into_iter().enumerate().filter(|(index, _)| concerned.binary_search(index).is_ok());
    kept.map(|(_, trace)| trace).collect()
}

/// Returns what the points of these flows are. If the flows have several transports, there is a text for each.
fn note(flows: &[FlowTrace]) -> String {
    let of = |counts| match counts {
        Counts::Bytes => (
            "TCP",
            "a TCP segment with data, at the position of its first byte in the stream. `Received` is the arrival at the \
             receiver's stack. A retransmission has the position of the bytes that it repeats.",
        ),
        Counts::Chunks => (
            "SCTP",
            "an SCTP packet with data, at the number of its first chunk. A retransmission has the number of the chunk that it repeats.",
        ),
        Counts::Datagrams => (
            "UDP",
            "a datagram, numbered in the order in which the source sent them. Control messages are not drawn.",
        ),
    };
    let all = [Counts::Bytes, Counts::Chunks, Counts::Datagrams];
    let drawn: Vec<_> =
        all.into_iter().filter(|counts| flows.iter().any(|flow| flow.counts == *counts)).map(of).collect();
    match drawn.as_slice() {
        [] => String::new(),
        [(_, point)] => format!("Each point is {point}"),
        several => {
            let each =
                |(transport, point): &(&str, &str)| format!("Each point of a {transport} flow is {point}");
            several.iter().map(each).collect::<Vec<_>>().join(" ")
        }
    }
}

fn handoff(outcome: &Outcome, number: usize, handoff: &Handoff) -> draw::Handoff {
    let cost = |cost: &crate::handoff::FlowCost| {
        let parts = cost.experience.outage().into_iter().flat_map(|outage| &outage.owners);
        let band =
            |part: &crate::handoff::Owner| Band { owner: owner(part.stage), from: part.from, to: part.to };
        Cost {
            flow: cost.flow,
            noticed: match cost.experience {
                Experience::None => Noticed::Nothing,
                Experience::Outage(_) => Noticed::Outage,
                Experience::Never { .. } => Noticed::Never,
                Experience::NotMeasured => Noticed::NotMeasured,
            },
            outage: parts.map(band).collect(),
            recovered: cost.recovery.at(),
            lost: cost.losses.iter().map(|loss| loss.at).collect(),
        }
    };
    draw::Handoff {
        number,
        host: outcome.plan.host_name(handoff.host).to_string(),
        at: handoff.begun,
        cut: handoff.cut,
        label: {
            let failed = if handoff.failed { " (failed)" } else { "" };
            format!("{} {}->{}{failed}", handoff.kind, handoff.from, handoff.to)
        },
        costs: handoff.flows.iter().map(cost).collect(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caption_is_about_each_transport_of_the_figure() {
        let flow = |counts| FlowTrace { name: String::new(), counts, paths: Vec::new(), marks: Vec::new() };
        let one = note(&[flow(Counts::Datagrams), flow(Counts::Datagrams)]);
        assert!(one.starts_with("Each point is a datagram, "), "{one}");
        let both = note(&[flow(Counts::Datagrams), flow(Counts::Bytes)]);
        assert!(both.starts_with("Each point of a TCP flow is a TCP segment with data, "), "{both}");
        assert!(both.contains(" Each point of a UDP flow is a datagram, "), "{both}");
    }
}
