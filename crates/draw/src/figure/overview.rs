//! Panels of the whole run: one for each flow, for at most [`PANELS`] flows, with the handoffs that concern the flow.

use super::marks::draw_marks;
use super::panel::{Frame, LABEL, SMALL, upright};
use super::sequence::{
    FlowTrace, HANDOFF, HOLE, Handoff, HoleBand, MarkKind, NEVER, Noticed, RIGHT, SequenceFigure, WIDTH,
};
use super::steps::Steps;
use crate::scale::{Range, Ticks};
use crate::svg::{Anchor, Svg, Text, fit, text_width};
use std::cmp::Reverse;
use wire::Instant;

/// The largest number of panels of the whole run.
const PANELS: usize = 6;
/// The largest number of rows of handoff labels above a panel.
const ROWS: usize = 5;
const ROW_HEIGHT: f64 = 15.0;
/// The largest room right of the frame for the label of a late handoff, in pixels.
const BEYOND: f64 = 170.0;
/// The largest width of a label, in pixels.
const LABEL_MAX: f64 = 320.0;

/// The extent of the drawing, and the numbers of elements that it omits.
pub(super) struct Drawn {
    /// The y coordinate of the lower end of the panels.
    pub(super) bottom: f64,
    /// The number of flows without a panel.
    pub(super) hidden: usize,
    pub(super) unlabelled: Unlabelled,
}

/// The number of handoff lines without a label, or with only the number of the handoff.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Unlabelled {
    pub(super) all: usize,
    /// The number of handoff lines that have only the number of their handoff.
    pub(super) numbered: usize,
}

/// Draws the panels of the whole run from `top` down.
pub(super) fn draw_all(svg: &mut Svg, figure: &SequenceFigure, top: f64) -> Drawn {
    let chosen = choose(figure);
    // Panels are lower if zoom panels below them show the details.
    let height = match chosen.len() {
        0 | 1 if figure.handoffs.is_empty() => 230.0,
        0..=2 => 130.0,
        _ => 110.0,
    };
    // A figure without flows still has one panel.
    let panels = if chosen.is_empty() { vec![None] } else { chosen.iter().copied().map(Some).collect() };
    let hidden = figure.flows.len() - chosen.len();
    let mut drawn = Drawn { bottom: top, hidden, unlabelled: Unlabelled::default() };
    for flow in panels {
        let panel = Overview::new(figure, flow, height);
        let Unlabelled { all, numbered } = panel.unlabelled();
        drawn.unlabelled.all += all;
        drawn.unlabelled.numbered += numbered;
        drawn.bottom = panel.draw(svg, drawn.bottom);
    }
    drawn
}

/// Chooses the flows that have a panel: first those with handoffs, then those with the most packets. The result is in
/// the order of the figure.
fn choose(figure: &SequenceFigure) -> Vec<usize> {
    let mut chosen: Vec<usize> = (0..figure.flows.len()).collect();
    let concerned = |flow: usize| figure.handoffs.iter().any(|handoff| handoff.cost(flow).is_some());
    chosen.sort_by_key(|flow| {
        (Reverse(concerned(*flow)), Reverse(figure.flows.get(*flow).map_or(0, |flow| flow.marks.len())))
    });
    chosen.truncate(PANELS);
    chosen.sort_unstable();
    chosen
}

/// A panel of one flow over the whole run. Without a flow, it has no marks.
struct Overview<'a> {
    flow: Option<&'a FlowTrace>,
    frame: Frame,
    /// The handoffs that affect this flow, or no flow at all, in the order of time. Each has the index of this flow.
    handoffs: Vec<(&'a Handoff, usize)>,
    names_hosts: bool,
    room: f64,
    steps: Steps<'a>,
    holes: Vec<HoleBand>,
    /// For each handoff, the row of its label, counted from the frame up, and its text. `None` if there is no room.
    labels: Vec<Option<(usize, String)>>,
}

impl<'a> Overview<'a> {
    fn new(figure: &'a SequenceFigure, index: Option<usize>, height: f64) -> Self {
        let flow = index.and_then(|index| figure.flows.get(index));
        let index = index.unwrap_or(usize::MAX);
        let concerns = |handoff: &&Handoff| handoff.cost(index).is_some() || handoff.costs.is_empty();
        let handoffs: Vec<(&Handoff, usize)> =
            figure.handoffs.iter().filter(concerns).map(|handoff| (handoff, index)).collect();
        // All panels have the same time axis.
        let marks = figure.flows.iter().flat_map(|flow| &flow.marks).map(|mark| mark.at);
        let costs = |handoff: &'a Handoff| handoff.costs.iter().map(|cost| handoff.span(cost));
        let spans = figure.handoffs.iter().flat_map(costs).flat_map(<[Instant; 2]>::from);
        let begun = figure.handoffs.iter().map(|handoff| handoff.at);
        let steps = figure.steps.iter().flat_map(|step| [step.from, step.to]);
        let holes = figure.holes.iter().flat_map(|hole| [Some(hole.from), hole.to]).flatten();
        let all = marks.chain(spans).chain(begun).chain(steps).chain(holes);
        let x = Range::of(all.map(Instant::as_secs_f64)).padded(0.01);
        let scale = flow.map_or(1.0, FlowTrace::scale);
        let places = flow.into_iter().flat_map(|flow| &flow.marks).map(|mark| mark.place as f64 / scale);
        let y = Range::of_places(places).padded(0.04);
        let left = figure.left();
        let frame = Frame { left, top: 0.0, width: RIGHT - left, height, x, y };
        let room = flow.map_or(42.0, FlowTrace::label_room);
        let hosts: Vec<&str> = handoffs.iter().map(|(handoff, _)| handoff.host.as_str()).collect();
        let steps = Steps::of(figure, |step| step.host.is_empty() || hosts.contains(&step.host.as_str()));
        let names_hosts = figure.many_hosts();
        let holes = figure.holes.iter().filter(|hole| hole.flow == index).copied().collect();
        let mut all = Self { flow, frame, handoffs, names_hosts, room, steps, holes, labels: Vec::new() };
        // All panels have the same width, so the late labels of all flows count.
        let reach = figure.handoffs.iter().map(|handoff| all.reach(handoff)).fold(0.0, f64::max);
        all.frame.width -= reach;
        all.labels = all.place_labels();
        all
    }

    /// Draws the panel from `top` down, and returns its lower end.
    fn draw(mut self, svg: &mut Svg, top: f64) -> f64 {
        let rows = self.labels.iter().flatten().map(|(row, _)| row + 1).max().unwrap_or(0);
        self.frame.top = top + rows as f64 * ROW_HEIGHT + 4.0;
        if let Some(flow) = self.flow {
            self.frame.top += LABEL + 4.0;
            let name = fit(&flow.name, LABEL, self.frame.width);
            svg.text([self.frame.left, top + LABEL + 1.0], Text::new(LABEL, Anchor::Start).bold(), &name);
        }
        self.shade(svg);
        let x_ticks = Ticks::new(self.frame.x, 10);
        let y_ticks = Ticks::whole(self.frame.y, 4);
        self.frame.grid(svg, &x_ticks, &y_ticks);
        self.frame.y_ticks(svg, &y_ticks);
        self.frame.y_label(svg, self.flow.map_or("", FlowTrace::axis), self.room);
        let below = self.steps.draw(svg, &self.frame, &x_ticks, Instant::as_secs_f64);
        below.x_ticks(svg, &x_ticks);
        below.x_label(svg, "time (s)");
        self.lines(svg);
        match self.flow {
            Some(flow) if !flow.marks.is_empty() => {
                for kind in MarkKind::ALL {
                    let marks = flow.marks.iter().filter(|mark| mark.kind == kind);
                    draw_marks(svg, flow, &self.frame, marks.map(|mark| (mark.at.as_secs_f64(), mark)), 0.62);
                }
            }
            _ => self.frame.remark(svg, "no flow with data"),
        }
        below.bottom() + 40.0
    }

    fn shade(&self, svg: &mut Svg) {
        let px = |at: Instant| self.frame.px(at.as_secs_f64());
        let mut shade = |from: f64, to: f64, colour: &str| {
            let style = format!(r#"fill="{colour}" fill-opacity="0.5""#);
            svg.rect([from, self.frame.top, (to - from).max(0.0), self.frame.height], &style);
        };
        for hole in &self.holes {
            let to = hole.to.map_or(self.frame.right(), px);
            shade(px(hole.from), to, if hole.to.is_some() { HOLE } else { NEVER });
        }
        for (handoff, flow) in &self.handoffs {
            let Some(cost) = handoff.cost(*flow) else { continue };
            for band in &cost.outage {
                shade(px(band.from), px(band.to), band.owner.colour());
            }
            if cost.noticed == Noticed::Never {
                shade(px(handoff.cut), self.frame.right(), NEVER);
            }
        }
    }

    fn lines(&self, svg: &mut Svg) {
        for ((handoff, _), label) in self.handoffs.iter().zip(&self.labels) {
            let x = self.frame.px(handoff.at.as_secs_f64());
            let mut top = self.frame.top;
            if let Some((row, text)) = label {
                let base = self.frame.top - 5.0 - *row as f64 * ROW_HEIGHT;
                svg.text([x + 3.0, base], Text::new(SMALL, Anchor::Start), text);
                top = base - 10.0;
            }
            svg.line([x, top], [x, self.frame.bottom()], &upright(HANDOFF));
        }
    }

    /// Returns the label of a handoff, cut to `width`: its number, its host if several hosts moved, and its text.
    fn label(&self, handoff: &Handoff, width: f64) -> String {
        let host = if self.names_hosts { format!("{} ", handoff.host) } else { String::new() };
        fit(&format!("{} {host}{}", handoff.number, handoff.label), SMALL, width.min(LABEL_MAX))
    }

    /// Returns how far the label of a handoff extends beyond the right end of the frame, in pixels: at most [`BEYOND`],
    /// and negative if the label ends before.
    fn reach(&self, handoff: &Handoff) -> f64 {
        let x = self.frame.px(handoff.at.as_secs_f64());
        let width = text_width(&self.label(handoff, LABEL_MAX), SMALL);
        (x + 3.0 + width - self.frame.right()).min(BEYOND)
    }

    fn unlabelled(&self) -> Unlabelled {
        let mut unlabelled = Unlabelled::default();
        for ((handoff, _), label) in self.handoffs.iter().zip(&self.labels) {
            let is_numbered = label.as_ref().is_some_and(|(_, text)| *text == handoff.number.to_string());
            unlabelled.all += usize::from(label.is_none() || is_numbered);
            unlabelled.numbered += usize::from(is_numbered);
        }
        unlabelled
    }

    /// Assigns rows to the labels. No label covers another label, or the line that leads to another label. A label
    /// without room is replaced by the handoff's number. If the number has no room either, the line has no label.
    ///
    /// The labels are placed from right to left: a line up to row r blocks the rows 0 to r for every label further
    /// left.
    fn place_labels(&self) -> Vec<Option<(usize, String)>> {
        let mut free_until = [f64::INFINITY; ROWS];
        let mut labels = Vec::with_capacity(self.handoffs.len());
        for (handoff, _) in self.handoffs.iter().rev() {
            let x = self.frame.px(handoff.at.as_secs_f64());
            let texts = [self.label(handoff, WIDTH - 6.0 - x), handoff.number.to_string()];
            let placed = texts.into_iter().find_map(|text| {
                let end = x + 3.0 + text_width(&text, SMALL);
                free_until.iter().position(|limit| end + 4.0 <= *limit).map(|row| (row, text))
            });
            if let Some((row, _)) = &placed {
                free_until[..=*row].fill(x);
            }
            labels.push(placed);
        }
        labels.reverse();
        labels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(times: impl IntoIterator<Item = u64>, label: &str) -> SequenceFigure {
        let mut figure = SequenceFigure::new("");
        let handoff = |(number, ms)| Handoff {
            number,
            host: "mobile".into(),
            at: Instant::from_millis(ms),
            cut: Instant::from_millis(ms),
            label: label.into(),
            costs: Vec::new(),
        };
        figure.handoffs = (1..).zip(times).map(handoff).collect();
        figure
    }

    fn labels(times: impl IntoIterator<Item = u64>, label: &str) -> (Vec<f64>, Vec<Option<(usize, String)>>) {
        let figure = figure(times, label);
        let overview = Overview::new(&figure, None, 200.0);
        let xs = figure.handoffs.iter().map(|handoff| overview.frame.px(handoff.at.as_secs_f64())).collect();
        (xs, overview.labels)
    }

    #[test]
    fn no_label_covers_another_or_the_line_to_another() {
        let (xs, labels) = labels((0..40).map(|index| index * index * 100), "semisoft b1->b2");
        assert!(
            labels.iter().flatten().any(|(_, text)| text.len() > 3) && labels.iter().any(Option::is_none)
        );
        for (left, label) in labels.iter().enumerate() {
            let Some((row, text)) = label else { continue };
            let end = xs[left] + 3.0 + text_width(text, SMALL);
            for (right, other) in labels.iter().enumerate().skip(left + 1) {
                let apart = other.as_ref().is_none_or(|(above, _)| above < row || end <= xs[right]);
                assert!(apart, "{left} and {right}");
            }
        }
    }

    #[test]
    fn lone_labels_stand_in_the_lowest_row() {
        let (_, labels) = labels([0, 5000, 10000], "hard b1->b2");
        assert!(
            labels.iter().all(|label| label.as_ref().is_some_and(|(row, text)| *row == 0 && text.len() > 3))
        );
    }

    #[test]
    fn lines_without_a_label_are_counted_below_the_figure() {
        assert!(!figure([0, 5000, 10000], "hard b1->b2").svg().contains("no room"));
        let squares = || (0..40).map(|index| index * index * 100);
        let (_, labels) = labels(squares(), "semisoft b1->b2");
        let none = labels.iter().filter(|label| label.is_none()).count();
        let numbers = labels.iter().flatten().filter(|(_, text)| text.parse::<usize>().is_ok()).count();
        let svg = figure(squares(), "semisoft b1->b2").svg();
        let count = none + numbers;
        let note = format!(
            "Lines that have no room for their labels: {count}; {numbers} of these lines have only the number of the handoff."
        );
        assert!(none > 0 && numbers > 0 && svg.contains(&note), "{note}");
    }
}
