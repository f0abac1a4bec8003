//! The time-sequence diagram of flows: packets sent and received, and the parts of each outage. [`super::sheet`] draws
//! it.

use super::owner::Owner;
use super::panel::{Marker, SMALL, tick_room};
use crate::csv::Csv;
use crate::scale::{Range, Ticks};
use crate::svg::text_width;
use wire::{Duration, Instant};

pub(super) const WIDTH: f64 = 1000.0;
pub(super) const RIGHT: f64 = WIDTH - 20.0;
/// The colour of a handoff's vertical line.
pub(super) const HANDOFF: &str = "#222222";
/// The colour of the vertical line of a cut that comes after the decision.
pub(super) const CUT: &str = "#c0392b";
/// The colour of the vertical line at which a flow has half of its goodput again.
pub(super) const RECOVERED: &str = "#2e8b57";
/// The largest width of a step's name, in pixels. An event's name like "cut of cell 2 for mobile" fits.
pub(super) const STEP_NAME: f64 = 150.0;
/// The colour of an outage that never ended.
pub(super) const NEVER: &str = "#d98880";
/// The colour of an outage without a handoff (a hole).
pub(super) const HOLE: &str = "#d9d9d9";

/// A part of an outage with one cause.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Band {
    /// The cause of this part.
    pub owner: Owner,
    /// The start of this part.
    pub from: Instant,
    /// The end of this part.
    pub to: Instant,
}

/// The effect of a handoff on the receiving application of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Noticed {
    /// No effect: no data were lost, and new data arrived as before.
    Nothing,
    /// A time without new data, which is divided into bands.
    Outage,
    /// No new data arrived until the run or the flow ended.
    Never,
    /// The outage was not measured: the flow was not active at the cut, or the run ended too early.
    NotMeasured,
}

/// The effect of a handoff on one flow: the parts of the outage, the recovery and the losses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cost {
    /// The flow, as an index into [`SequenceFigure::flows`].
    pub flow: usize,
    /// The effect on the flow's receiving application.
    pub noticed: Noticed,
    /// The parts of the outage if [`Self::noticed`] is [`Noticed::Outage`]; otherwise empty.
    pub outage: Vec<Band>,
    /// The instant at which the flow had half of its earlier goodput again. `None` if the goodput was never lower, did
    /// not recover, or was not measured.
    pub recovered: Option<Instant>,
    /// For each packet of the flow whose loss belongs to the handoff, the instant of the loss.
    pub lost: Vec<Instant>,
}

impl Cost {
    /// Returns the length of the outage, from the start of its first band to the end of its last; zero without bands.
    pub fn outage(&self) -> Duration {
        let from = self.outage.iter().map(|band| band.from).min();
        let to = self.outage.iter().map(|band| band.to).max();
        to.unwrap_or(Instant::ZERO).since(from.unwrap_or(Instant::ZERO))
    }

    /// Returns the effect as text, for a heading.
    pub(super) fn text(&self) -> String {
        match self.noticed {
            Noticed::Nothing => "no outage".to_owned(),
            Noticed::Outage => format!("outage {}", milliseconds(self.outage())),
            Noticed::Never => "outage never ends".to_owned(),
            Noticed::NotMeasured => "outage not measured".to_owned(),
        }
    }
}

/// A handoff of one host, with its effect on each flow of that host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Handoff {
    /// The number of the handoff in the tables of the run, from 1.
    pub number: usize,
    /// The name of the host that moved.
    pub host: String,
    /// The instant of the decision to move, or of the cut if the cut was earlier.
    pub at: Instant,
    /// The instant at which the old path was cut. In a semisoft handoff, it is later than [`Self::at`].
    pub cut: Instant,
    /// The kind of the handoff, and its old and new station, for example "hard b2->b3".
    pub label: String,
    /// The effects on the flows of the host; empty if the host had no flow.
    pub costs: Vec<Cost>,
}

impl Handoff {
    /// Returns the number, host, kind and instant of the handoff, for a heading.
    pub(super) fn name(&self) -> String {
        format!("{} {} {} at {:.3} s", self.number, self.host, self.label, self.at.as_secs_f64())
    }

    /// Returns the start and the end of a handoff with its outage. It begins with the decision, or with an earlier
    /// first band. It ends with the cut, or with a later end of the last band.
    pub(super) fn span(&self, cost: &Cost) -> (Instant, Instant) {
        let from = cost.outage.iter().map(|band| band.from).fold(self.at, Instant::min);
        let to = cost.outage.iter().map(|band| band.to).fold(self.at.max(self.cut), Instant::max);
        (from, to)
    }

    /// Returns the effect of the handoff on a flow, or `None` if the handoff does not concern it.
    pub(super) fn cost(&self, flow: usize) -> Option<&Cost> {
        self.costs.iter().find(|cost| cost.flow == flow)
    }
}

/// A step of a protocol, from a message to its answer or at an instant; or an event of the scenario with its duration.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Step {
    /// The start of the step.
    pub from: Instant,
    /// The end of the step; equal to the start if the step has no duration.
    pub to: Instant,
    /// The name of the host that moves. It is empty for an event of the scenario, which is drawn for all hosts.
    pub host: String,
    /// The name of the step, for example "SET PRIMARY". Steps with the same name share a row.
    pub name: String,
}

/// An outage of a flow without a handoff (a hole).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct HoleBand {
    /// The flow, as an index into [`SequenceFigure::flows`].
    pub flow: usize,
    /// The start of the outage.
    pub from: Instant,
    /// The end of the outage; `None` if no new data arrived until the flow or the run ended.
    pub to: Option<Instant>,
}

/// The kind of an event of a packet. Each kind has a marker, which is named here.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum MarkKind {
    /// The packet was sent: a ring.
    Sent,
    /// The packet arrived: a dot, inside the ring if both coincide.
    Received,
    /// No copy of the packet arrived: a red cross.
    Lost,
    /// A further copy of the packet arrived: a triangle.
    Duplicate,
}

impl MarkKind {
    pub(super) const ALL: [Self; 4] = [Self::Sent, Self::Received, Self::Lost, Self::Duplicate];

    /// Returns the name of this kind of event in legends and CSV files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Received => "received",
            Self::Lost => "lost",
            Self::Duplicate => "duplicate",
        }
    }

    /// Returns the shape, the radius in pixels in a zoom panel, and the colour for a flow with one path.
    pub(super) const fn style(self) -> (Marker, f64, &'static str) {
        match self {
            Self::Sent => (Marker::Ring, 3.6, "#666666"),
            Self::Received => (Marker::Dot, 2.2, "#111111"),
            Self::Lost => (Marker::Cross, 3.6, "#cc0000"),
            Self::Duplicate => (Marker::Triangle, 4.6, "#8b008b"),
        }
    }
}

/// The colours of the paths of a flow. They differ from those of owners and losses.
pub(super) const PATHS: [&str; 4] = ["#111111", "#7a4fd0", "#0b7a75", "#8a4b08"];

/// An event of a packet of a flow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Mark {
    /// The instant of the event, in the time of the run.
    pub at: Instant,
    /// The kind of event.
    pub kind: MarkKind,
    /// The packet's exact place in its flow, in the unit of [`FlowTrace::counts`].
    pub place: u64,
    /// The packet's path, as an index into [`FlowTrace::paths`]. It has no meaning if that list is empty.
    pub path: usize,
}

/// The unit of the packets' places in a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counts {
    /// Datagrams in the order of sending, from 1.
    Datagrams,
    /// Bytes from the start of a TCP stream.
    Bytes,
    /// Chunks from the start of an SCTP association.
    Chunks,
}

impl Counts {
    /// Returns the name of this unit in CSV files.
    const fn name(self) -> &'static str {
        match self {
            Self::Datagrams => "datagram",
            Self::Bytes => "byte",
            Self::Chunks => "chunk",
        }
    }
}

/// The packets of one flow over time: sent, received, lost and duplicated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowTrace {
    /// The ends of the flow and its transport, for example "server:80 > mobile:49152, TCP".
    pub name: String,
    /// The unit of the places of the flow's packets.
    pub counts: Counts,
    /// The names of the flow's paths, if there are several: the addresses of a multihomed host, or the connections of a
    /// split TCP connection. Empty if there is one path.
    pub paths: Vec<String>,
    /// The events of the flow's packets, in any order.
    pub marks: Vec<Mark>,
}

impl FlowTrace {
    /// Returns the number of units of [`Self::counts`] in one unit of the y axis. Streams of 100 kB and more have an
    /// axis in kB. Places are not rounded.
    pub(super) fn scale(&self) -> f64 {
        let longest = self.marks.iter().map(|mark| mark.place).max().unwrap_or(0);
        if self.counts == Counts::Bytes && longest >= 100_000 { 1e3 } else { 1.0 }
    }

    /// Returns the label of the y axis.
    pub(super) fn axis(&self) -> &'static str {
        match self.counts {
            Counts::Datagrams => "datagram number",
            Counts::Chunks => "chunk number",
            Counts::Bytes if self.scale() > 1.0 => "place in stream (kB)",
            Counts::Bytes => "place in stream (bytes)",
        }
    }

    /// Returns the style of a mark. If the flow has several paths, marks have the colour of their path, except losses.
    pub(super) fn style(&self, mark: &Mark) -> (Marker, f64, &'static str) {
        let (marker, radius, colour) = mark.kind.style();
        let by_path = self.paths.len() > 1 && mark.kind != MarkKind::Lost;
        (marker, radius, if by_path { PATHS[mark.path % PATHS.len()] } else { colour })
    }

    /// Returns the distance of the y axis' label from the panel in pixels, which leaves room for the longest tick
    /// label.
    pub(super) fn label_room(&self) -> f64 {
        let longest = self.marks.iter().map(|mark| mark.place).max().unwrap_or(0);
        let range = Range::of([0.0, longest as f64 / self.scale()]).padded(0.1);
        tick_room(&Ticks::whole(range, 5)).max(34.0) + 8.0
    }
}

/// A figure of flows over time: overviews of at most 6 flows, and at most 12 zoom panels, each of a handoff and a flow
/// that the handoff concerns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SequenceFigure {
    /// The title above the figure.
    pub title: String,
    /// The flows. Handoffs and holes refer to them by their index.
    pub flows: Vec<FlowTrace>,
    /// The handoffs, in any order.
    pub handoffs: Vec<Handoff>,
    /// The steps of the protocols and the events of the scenario, in any order.
    pub steps: Vec<Step>,
    /// Steps for which the panels have no room. They are in the CSV only.
    pub undrawn: Vec<Step>,
    /// Outages without a handoff, in any order.
    pub holes: Vec<HoleBand>,
    /// The time that a zoom panel shows before and after its handoff and outage.
    pub margin: Duration,
    /// The text below the figure.
    pub caption: String,
}

impl SequenceFigure {
    /// Returns an empty figure with a margin of 150 ms.
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            flows: Vec::new(),
            handoffs: Vec::new(),
            steps: Vec::new(),
            undrawn: Vec::new(),
            holes: Vec::new(),
            margin: Duration::from_millis(150),
            caption: String::new(),
        }
    }

    /// Returns the instant of the next handoff of the same host, or the last instant if there is none.
    pub(super) fn next_after(&self, handoff: &Handoff) -> Instant {
        let later = self.handoffs.iter().filter(|other| other.host == handoff.host && other.at > handoff.at);
        later.map(|other| other.at).min().unwrap_or(Instant(u64::MAX))
    }

    /// Returns the numbers as CSV: handoffs with their outages, then holes, then all steps, then the marks of each flow
    /// in the order of time.
    #[must_use]
    pub fn csv(&self) -> String {
        let figure = self.sorted();
        let mut csv = Csv::default();
        csv.row(["what", "handoff", "host", "flow", "path", "counts", "place", "from_s", "to_s", "label"]);
        for handoff in &figure.handoffs {
            let number = handoff.number.to_string();
            let start = ["handoff", &number, &handoff.host, "", "", "", ""];
            csv.row(start.into_iter().chain([
                handoff.at.to_string().as_str(),
                handoff.cut.to_string().as_str(),
                &handoff.label,
            ]));
            for cost in &handoff.costs {
                let flow = self.flows.get(cost.flow).map_or("", |flow| flow.name.as_str());
                let row = |what: &str, from: &str, to: &str, label: &str| {
                    [what, number.as_str(), handoff.host.as_str(), flow, "", "", "", from, to, label]
                        .map(str::to_owned)
                };
                csv.row(row("noticed", "", "", &cost.text()));
                for band in &cost.outage {
                    csv.row(row("outage", &band.from.to_string(), &band.to.to_string(), band.owner.name()));
                }
            }
        }
        for hole in &figure.holes {
            let flow = self.flows.get(hole.flow).map_or("", |flow| flow.name.as_str());
            let (from, to) = (hole.from.to_string(), hole.to.map_or_else(String::new, |to| to.to_string()));
            csv.row([
                "hole",
                "",
                "",
                flow,
                "",
                "",
                "",
                &from,
                &to,
                if hole.to.is_some() { "" } else { "never" },
            ]);
        }
        let undrawn = figure.undrawn.iter().filter(|step| !figure.steps.contains(step));
        let mut steps: Vec<&Step> = figure.steps.iter().chain(undrawn).collect();
        steps.sort();
        for step in steps {
            let (from, to) = (step.from.to_string(), step.to.to_string());
            csv.row(["step", "", &step.host, "", "", "", "", &from, &to, &step.name]);
        }
        for flow in &figure.flows {
            for mark in &flow.marks {
                let path = flow.paths.get(mark.path).map_or("", String::as_str);
                let (place, at) = (mark.place.to_string(), mark.at.to_string());
                csv.row([
                    mark.kind.name(),
                    "",
                    "",
                    &flow.name,
                    path,
                    flow.counts.name(),
                    &place,
                    &at,
                    "",
                    "",
                ]);
            }
        }
        csv.finish()
    }

    /// Returns the x coordinate of the left end of the panels.
    pub(super) fn left(&self) -> f64 {
        let steps = self.steps.iter().map(|step| text_width(&step.name, SMALL).min(STEP_NAME));
        self.flows.iter().map(FlowTrace::label_room).chain(steps).fold(42.0, f64::max) + 20.0
    }

    /// Returns whether more than one host moved. If so, labels contain the host.
    pub(super) fn many_hosts(&self) -> bool {
        self.handoffs.windows(2).any(|pair| matches!(pair, [a, b] if a.host != b.host))
    }

    /// Returns this figure in the order of time, so that the drawing does not depend on the order in which it was
    /// filled.
    pub(super) fn sorted(&self) -> Self {
        let mut figure = self.clone();
        figure.flows.iter_mut().for_each(|flow| flow.marks.sort_unstable());
        figure.steps.sort();
        figure.holes.sort();
        figure.handoffs.sort_by(|a, b| (a.at, a.number, &a.label).cmp(&(b.at, b.number, &b.label)));
        for cost in figure.handoffs.iter_mut().flat_map(|handoff| &mut handoff.costs) {
            cost.outage.sort_by_key(|band| (band.from, band.to, band.owner));
        }
        figure
    }
}

/// Formats a time for a narrow place: in whole milliseconds, or below 9.95 ms with one decimal.
pub(super) fn milliseconds(span: Duration) -> String {
    let ms = span.as_secs_f64() * 1e3;
    if ms < 9.95 { format!("{ms:.1} ms") } else { format!("{ms:.0} ms") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_short() {
        assert_eq!(milliseconds(Duration::from_micros(4_250)), "4.2 ms");
        assert_eq!(milliseconds(Duration::from_micros(9_960)), "10 ms");
    }
}
