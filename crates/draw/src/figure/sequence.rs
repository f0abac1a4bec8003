//! The time-sequence of a flow: what was sent, what arrived, and who owns each outage between.

use super::overview::Overview;
use super::panel::{Key, Marker, caption, legend, tick_room, title};
use super::zoom;
use crate::csv::Csv;
use crate::scale::{Range, Ticks};
use crate::svg::Svg;
use wire::{Duration, Instant};

pub(super) const WIDTH: f64 = 1000.0;
pub(super) const RIGHT: f64 = WIDTH - 20.0;
/// The vertical line of a handoff.
pub(super) const HANDOFF: &str = "#222222";

/// Who owns a part of an outage. The colours are Okabe and Ito's: they differ for every kind of colour vision.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Owner {
    /// No link yet.
    Link,
    /// The move was not noticed yet.
    Detection,
    /// No address yet.
    Address,
    /// Registration, or an update, was under way.
    Registration,
    /// The path was not switched yet.
    PathSwitch,
    /// The path was there, the first packet still on it.
    FirstByte,
    /// The transport had not recovered yet.
    Recovery,
    /// The source had sent nothing yet.
    Traffic,
    /// No event accounts for it.
    Unexplained,
}

impl Owner {
    /// All, in the order in which they follow each other in an outage.
    pub const ALL: [Self; 9] = [
        Self::Link,
        Self::Detection,
        Self::Address,
        Self::Registration,
        Self::PathSwitch,
        Self::FirstByte,
        Self::Recovery,
        Self::Traffic,
        Self::Unexplained,
    ];

    /// As legends and CSV files have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Link => "link",
            Self::Detection => "detection",
            Self::Address => "address",
            Self::Registration => "registration",
            Self::PathSwitch => "path switch",
            Self::FirstByte => "first byte",
            Self::Recovery => "recovery",
            Self::Traffic => "traffic",
            Self::Unexplained => "unexplained",
        }
    }

    pub(super) const fn colour(self) -> &'static str {
        match self {
            Self::Link => "#e69f00",
            Self::Detection => "#56b4e9",
            Self::Address => "#009e73",
            Self::Registration => "#f0e442",
            Self::PathSwitch => "#0072b2",
            Self::FirstByte => "#d55e00",
            Self::Recovery => "#cc79a7",
            Self::Traffic => "#bbbbbb",
            Self::Unexplained => "#999999",
        }
    }

    /// The colour of a text on [`Self::colour`].
    pub(super) const fn ink(self) -> &'static str {
        if matches!(self, Self::PathSwitch) { "#ffffff" } else { "#111111" }
    }
}

/// A part of an outage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Band {
    /// Who owns it.
    pub owner: Owner,
    /// Its begin.
    pub from: Instant,
    /// Its end.
    pub to: Instant,
}

/// A handoff and the outage that it made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Handoff {
    /// When it was made.
    pub at: Instant,
    /// Its kind and its ends, such as "hard b2->b3".
    pub label: String,
    /// The outage in parts; empty when there was none.
    pub outage: Vec<Band>,
}

impl Handoff {
    /// From the handoff, or the first band if that is earlier, to the end of the last band.
    pub(super) fn span(&self) -> (Instant, Instant) {
        let from = self.outage.iter().map(|band| band.from).fold(self.at, Instant::min);
        let to = self.outage.iter().map(|band| band.to).fold(self.at, Instant::max);
        (from, to)
    }

    /// How long the outage was, from its first band to its last.
    pub fn outage(&self) -> Duration {
        let from = self.outage.iter().map(|band| band.from).min();
        let to = self.outage.iter().map(|band| band.to).max();
        to.unwrap_or(Instant::ZERO).since(from.unwrap_or(Instant::ZERO))
    }
}

/// What happened to a packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum MarkKind {
    /// It was sent: a ring.
    Sent,
    /// It arrived: a dot, within the ring where both coincide.
    Received,
    /// It was lost: a red cross.
    Lost,
    /// It arrived again: a triangle.
    Duplicate,
}

impl MarkKind {
    pub(super) const ALL: [Self; 4] = [Self::Sent, Self::Received, Self::Lost, Self::Duplicate];

    /// As legends and CSV files have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Received => "received",
            Self::Lost => "lost",
            Self::Duplicate => "duplicate",
        }
    }

    /// Shape, radius in a zoom panel, colour in a figure of one flow.
    pub(super) const fn style(self) -> (Marker, f64, &'static str) {
        match self {
            Self::Sent => (Marker::Ring, 3.6, "#666666"),
            Self::Received => (Marker::Dot, 2.2, "#111111"),
            Self::Lost => (Marker::Cross, 3.6, "#cc0000"),
            Self::Duplicate => (Marker::Triangle, 4.6, "#8b008b"),
        }
    }
}

/// The colours of flows that share a figure: none that an owner or a loss has.
const FLOWS: [&str; 4] = ["#111111", "#7a4fd0", "#0b7a75", "#8a4b08"];

/// Something that happened to a packet of the flow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Mark {
    /// When.
    pub at: Instant,
    /// What.
    pub kind: MarkKind,
    /// The packet's place in its flow, as the figure's axis counts it.
    pub packet: u64,
    /// Its flow, by place in [`SequenceFigure::flows`].
    pub flow: usize,
}

/// A flow over time: an overview, and a zoom panel for each handoff.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SequenceFigure {
    /// Above the figure.
    pub title: String,
    /// What the packets' places are: "packet number".
    pub axis: String,
    /// The names of the flows that share the figure; none if there is but one.
    pub flows: Vec<String>,
    /// What happened, in any order.
    pub marks: Vec<Mark>,
    /// The handoffs, in any order.
    pub handoffs: Vec<Handoff>,
    /// How far a zoom panel reaches beyond its handoff and outage.
    pub margin: Duration,
    /// Below the figure.
    pub caption: String,
}

impl SequenceFigure {
    /// An empty figure whose zoom panels reach 150 ms beyond each outage.
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            axis: "packet number".to_owned(),
            flows: Vec::new(),
            marks: Vec::new(),
            handoffs: Vec::new(),
            margin: Duration::from_millis(150),
            caption: String::new(),
        }
    }

    /// The numbers: handoffs and their outages first, then every mark in the order of time.
    #[must_use]
    pub fn csv(&self) -> String {
        let figure = self.sorted();
        let mut csv = Csv::default();
        csv.row(["what", "handoff", "packet", "from_s", "to_s", "label"]);
        for (number, handoff) in (1..).zip(&figure.handoffs) {
            let number: String = i32::to_string(&number);
            csv.row(["handoff", &number, "", &handoff.at.to_string(), "", &handoff.label]);
            for band in &handoff.outage {
                csv.row([
                    "outage",
                    &number,
                    "",
                    &band.from.to_string(),
                    &band.to.to_string(),
                    band.owner.name(),
                ]);
            }
        }
        for mark in &figure.marks {
            let flow = self.flows.get(mark.flow).map_or("", String::as_str);
            csv.row([mark.kind.name(), "", &mark.packet.to_string(), &mark.at.to_string(), "", flow]);
        }
        csv.finish()
    }

    /// The drawing.
    #[must_use]
    pub fn svg(&self) -> String {
        let figure = self.sorted();
        let (mut svg, left) = (Svg::new(WIDTH), figure.left());
        let top = title(&mut svg, &figure.title, left, RIGHT - left);
        let top = legend(&mut svg, &figure.legend(), [left, RIGHT], top) + 6.0;
        let below_overview = Overview::new(&figure).draw(&mut svg, top);
        let (below_zooms, left_out) = zoom::draw_all(&mut svg, &figure, below_overview);
        let mut notes = figure.caption.clone();
        if left_out > 0 {
            let line = format!(
                "Not enlarged: {left_out} more handoffs, none with a longer outage than those shown."
            );
            notes = if notes.is_empty() { line } else { format!("{notes}\n{line}") };
        }
        let bottom = caption(&mut svg, &notes, [left, RIGHT - left], below_zooms);
        svg.finish(bottom + 14.0, &figure.title)
    }

    /// How a mark looks: where several flows are, what was sent and what arrived have the colour of their flow.
    pub(super) fn style(&self, mark: &Mark) -> (Marker, f64, &'static str) {
        let (marker, radius, colour) = mark.kind.style();
        let of_a_flow = !self.flows.is_empty() && matches!(mark.kind, MarkKind::Sent | MarkKind::Received);
        (marker, radius, if of_a_flow { FLOWS[mark.flow % FLOWS.len()] } else { colour })
    }

    /// How far left of a panel the label of its y axis stands: clear of the longest packet number.
    pub(super) fn label_room(&self) -> f64 {
        let longest = self.marks.iter().map(|mark| mark.packet).max().unwrap_or(0);
        let range = Range::of([0.0, longest as f64]).padded(0.1);
        tick_room(&Ticks::whole(range, 5)).max(34.0) + 8.0
    }

    /// Where the panels begin.
    pub(super) fn left(&self) -> f64 {
        self.label_room() + 20.0
    }

    /// The same figure in the order of time, so that the order of its making does not show.
    fn sorted(&self) -> Self {
        let mut figure = self.clone();
        figure.marks.sort_unstable();
        figure.handoffs.sort_by(|a, b| (a.at, &a.label).cmp(&(b.at, &b.label)));
        for handoff in &mut figure.handoffs {
            handoff.outage.sort_by_key(|band| (band.from, band.to, band.owner));
        }
        figure
    }

    /// What occurs in the figure, and only that.
    fn legend(&self) -> Vec<(Key, String)> {
        let mut entries = Vec::new();
        for kind in MarkKind::ALL.into_iter().filter(|kind| self.marks.iter().any(|mark| mark.kind == *kind))
        {
            let (marker, radius, colour) = kind.style();
            entries.push((Key::Marker(marker, radius, colour), kind.name().to_owned()));
        }
        for (name, colour) in self.flows.iter().zip(FLOWS.iter().cycle()) {
            entries.push((Key::Band(colour), name.clone()));
        }
        if !self.handoffs.is_empty() {
            entries.push((Key::Upright(HANDOFF), "handoff".to_owned()));
        }
        let owns =
            |owner| self.handoffs.iter().flat_map(|handoff| &handoff.outage).any(|band| band.owner == owner);
        let owners: Vec<Owner> = Owner::ALL.into_iter().filter(|owner| owns(*owner)).collect();
        if !owners.is_empty() {
            entries.push((Key::Heading, "outage:".to_owned()));
        }
        entries.extend(owners.into_iter().map(|owner| (Key::Band(owner.colour()), owner.name().to_owned())));
        entries
    }
}
