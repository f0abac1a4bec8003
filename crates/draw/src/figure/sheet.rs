//! The drawing of a time-sequence diagram: the whole run, and below it each handoff.

use super::overview::{self, Unlabelled};
use super::owner::Owner;
use super::panel::{Key, caption, hidden_note, legend, title, unlabelled_note};
use super::sequence::{
    CUT, Cost, HANDOFF, HOLE, Handoff, MarkKind, NEVER, Noticed, PATHS, RECOVERED, RIGHT, SequenceFigure,
    WIDTH,
};
use super::steps::READING;
use super::zoom;
use crate::svg::Svg;

/// The largest number of effects of handoffs on flows in the description for screen readers.
const SPOKEN: usize = 24;

impl SequenceFigure {
    /// Returns the drawing as SVG.
    #[must_use]
    pub fn svg(&self) -> String {
        let figure = self.sorted();
        let mut svg = Svg::new(WIDTH);
        let top = title(&mut svg, &figure.title, 20.0, RIGHT - 20.0);
        let top = legend(&mut svg, &figure.legend(), [20.0, RIGHT], top) + 6.0;
        let drawn = overview::draw_all(&mut svg, &figure, top);
        let (below_zooms, left_out) = zoom::draw_all(&mut svg, &figure, drawn.bottom);
        let notes = figure.notes(drawn.hidden, left_out, drawn.unlabelled);
        let bottom = caption(&mut svg, &notes, [20.0, RIGHT - 20.0], below_zooms);
        svg.finish(bottom + 14.0, &figure.title, &format!("{} {notes}", figure.in_words()))
    }

    /// Returns the effects of handoffs on flows in words, for screen readers: at most the first [`SPOKEN`] effects.
    pub(super) fn in_words(&self) -> String {
        let cost = |handoff: &Handoff, cost: &Cost| {
            let flow = self.flows.get(cost.flow).map_or("", |flow| flow.name.as_str());
            format!("{}, {flow}: {}.", handoff.name(), cost.text())
        };
        let all =
            self.handoffs.iter().flat_map(|handoff| handoff.costs.iter().map(move |one| cost(handoff, one)));
        all.take(SPOKEN).collect::<Vec<_>>().join(" ")
    }

    /// Returns whether the figure has parts of an outage above a panel, and steps of the protocol below it, which may have
    /// equal names.
    pub(super) fn has_both_parts_and_steps(&self) -> bool {
        let mut costs = self.handoffs.iter().flat_map(|handoff| &handoff.costs);
        !self.steps.is_empty() && costs.any(|cost| !cost.outage.is_empty())
    }

    fn notes(&self, hidden: usize, left_out: usize, unlabelled: Unlabelled) -> String {
        let mut notes = vec![self.caption.clone()];
        if self.has_both_parts_and_steps() {
            notes.push(READING.to_owned());
        }
        for handoff in self.handoffs.iter().filter(|handoff| handoff.costs.is_empty()).take(8) {
            notes.push(format!(
                "Handoff {} ({}) is not measured, because {} had no flow at the cut.",
                handoff.number, handoff.label, handoff.host
            ));
        }
        if hidden > 0 {
            notes.push(hidden_note(hidden));
        }
        if left_out > 0 {
            notes.push(format!(
                "{left_out} effects of handoffs on flows are not enlarged. The enlarged ones are those with the longest outages."
            ));
        }
        let Unlabelled { all, numbered } = unlabelled;
        if all > 0 {
            let numbers = if numbered > 0 {
                format!("; {numbered} of these lines have only the number of the handoff")
            } else {
                String::new()
            };
            notes.push(unlabelled_note(&format!("{all}{numbers}")));
        }
        notes.retain(|note| !note.is_empty());
        notes.join("\n")
    }

    /// Returns the legend, with an entry for each kind of mark, line and band in the figure.
    pub(super) fn legend(&self) -> Vec<(Key, String)> {
        let mut entries = Vec::new();
        let marks = || self.flows.iter().flat_map(|flow| &flow.marks);
        for kind in MarkKind::ALL.into_iter().filter(|kind| marks().any(|mark| mark.kind == *kind)) {
            let (marker, radius, colour) = kind.style();
            entries.push((Key::Marker(marker, radius, colour), kind.name().to_owned()));
        }
        if !self.handoffs.is_empty() {
            entries.push((Key::Upright(HANDOFF), "handoff".to_owned()));
        }
        if self.handoffs.iter().any(|handoff| handoff.cut > handoff.at) {
            entries.push((Key::Upright(CUT), "old path cut".to_owned()));
        }
        let costs = || self.handoffs.iter().flat_map(|handoff| &handoff.costs);
        if costs().any(|cost| cost.recovered.is_some()) {
            entries.push((Key::Upright(RECOVERED), "the flow has half of its goodput again".to_owned()));
        }
        let owns = |owner| costs().flat_map(|cost| &cost.outage).any(|band| band.owner == owner);
        let owners: Vec<Owner> = Owner::ALL.into_iter().filter(|owner| owns(*owner)).collect();
        if !owners.is_empty() {
            entries.push((Key::Heading, "parts of the outage:".to_owned()));
        }
        entries.extend(owners.into_iter().map(|owner| (Key::Band(owner.colour()), owner.name().to_owned())));
        if self.holes.iter().any(|hole| hole.to.is_some()) {
            entries.push((Key::Band(HOLE), "outage without a handoff".to_owned()));
        }
        if costs().any(|cost| cost.noticed == Noticed::Never)
            || self.holes.iter().any(|hole| hole.to.is_none())
        {
            entries.push((Key::Band(NEVER), "no new data until the flow or the run ended".to_owned()));
        }
        for flow in self.flows.iter().filter(|flow| flow.paths.len() > 1) {
            entries.push((Key::Heading, format!("{}:", flow.name)));
            entries
                .extend(flow.paths.iter().zip(PATHS).map(|(name, colour)| (Key::Band(colour), name.clone())));
        }
        entries
    }
}
