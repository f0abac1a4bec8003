//! Values over the time of a run: goodput, delay, windows and round-trip times of its flows, one panel below the other.
//! Further panels show the time around each handoff, with the flows that it concerns.

use super::panel::{
    Frame, Key, LABEL, Marker, SMALL, caption, hidden_note, legend, tick_room, title, unlabelled_note,
    upright,
};
use super::points::{Axis, COLOURS};
use super::sequence::HANDOFF;
use crate::csv::Csv;
use crate::scale::{FAR, Range, Ticks};
use crate::svg::{Anchor, Svg, Text};
use std::collections::{BTreeMap, BTreeSet};
use wire::Instant;

const WIDTH: f64 = 1000.0;
const RIGHT: f64 = WIDTH - 20.0;
const HEIGHT: f64 = 110.0;
/// The height of a panel around a handoff, in pixels.
const LOW: f64 = 74.0;
/// The gap between two columns of windows in pixels, without tick labels.
const GUTTER: f64 = 24.0;
/// The height of a row of labels, in pixels.
const ROW: f64 = 14.0;
/// The largest number of rows of labels above a panel.
const ROWS: usize = 4;
/// The largest number of windows that are drawn.
const WINDOWS: usize = 12;
/// Peaks above this multiple of the 95th percentile are cut off, in a panel that cuts off peaks.
const PEAK: f64 = 2.0;
/// The largest number of names of lines that are drawn: each name has its own colour.
const LINES: usize = COLOURS.len();

/// How the points of a line are drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Joined {
    /// Each value holds until the next one, for example a window.
    Steps,
    /// Each value is a dot, for example the delay of a packet.
    Dots,
}

/// The values of one flow or connection over time, drawn as one line in a panel.
#[derive(Clone, PartialEq, Debug)]
pub struct TimeLine {
    /// The name of the line in the legend. Lines with the same name have one colour in all panels.
    pub name: String,
    /// The index of the line's flow. [`TimeWindow::flows`] refers to it.
    pub flow: usize,
    /// How the points are drawn: as steps or as dots.
    pub joined: Joined,
    /// The values in the order of time, in the unit of the panel's axis. A `NaN` interrupts steps until the next value.
    pub points: Vec<(Instant, f64)>,
}

/// A panel with one quantity of all flows.
#[derive(Clone, PartialEq, Debug)]
pub struct TimePanel {
    /// The quantity of the y axis, and its unit.
    pub axis: Axis,
    /// The lines: one for each flow, or for each connection that carries a flow.
    pub lines: Vec<TimeLine>,
    /// The text in the panel if no line has a point: why there is no data.
    pub remark: String,
    /// Whether rare peaks are cut off, with a mark, so that the other values can be read.
    pub cuts_peaks: bool,
}

/// The share of the largest value from which on the smallest value makes an enlarged panel of dots begin above zero.
const NEAR: f64 = 0.5;

/// A part of the run around one handoff, which is drawn enlarged.
#[derive(Clone, PartialEq, Debug)]
pub struct TimeWindow {
    /// The title above the panels of the window.
    pub title: String,
    /// The start of the window.
    pub from: Instant,
    /// The end of the window.
    pub until: Instant,
    /// The flows that are drawn, by their index ([`TimeLine::flow`]).
    pub flows: Vec<usize>,
    /// Lines that are drawn in place of those of a panel, by the index of the panel: for example values in shorter bins.
    pub finer: BTreeMap<usize, Vec<TimeLine>>,
    /// The handoff of the window, as an index into `TimeFigure::handoffs`. The label of this handoff is placed first.
    pub handoff: usize,
}

/// A figure of panels over one time axis.
#[derive(Clone, PartialEq, Debug)]
pub struct TimeFigure {
    /// The title above the figure.
    pub title: String,
    /// The panels from top to bottom.
    pub panels: Vec<TimePanel>,
    /// Handoffs, then events of the scenario: the instant, and the text at its line, for example the handoff's number.
    pub handoffs: Vec<(Instant, String)>,
    /// The end of the time axis, in the time of the run. The axis begins at zero.
    pub until: Instant,
    /// Parts of the run. The first 12 are drawn enlarged, below the panels of the whole run.
    pub windows: Vec<TimeWindow>,
    /// The text below the figure.
    pub caption: String,
}

/// The place of a group of panels.
struct Block<'a> {
    left: f64,
    width: f64,
    height: f64,
    x: Range,
    ticks: u32,
    /// The window that the panels show; `None` for the whole run.
    window: Option<&'a TimeWindow>,
}

/// A label at the line of a handoff or event, above the top panel.
struct Label<'a> {
    x: f64,
    /// The row, counted from 0 at the panel upwards.
    row: usize,
    anchor: Anchor,
    text: &'a str,
}

impl TimeFigure {
    /// Returns the numbers as CSV: one row for each finite value. The quantity of a window's separate lines has the title
    /// of the window.
    #[must_use]
    pub fn csv(&self) -> String {
        let mut csv = Csv::default();
        csv.row(["quantity", "flow", "time_s", "value"]);
        let mut rows = |quantity: &str, lines: &[TimeLine]| {
            for line in lines {
                for (at, value) in line.points.iter().filter(|(_, value)| value.abs() <= FAR) {
                    csv.row([quantity, &line.name, &at.to_string(), &value.to_string()]);
                }
            }
        };
        for panel in &self.panels {
            rows(&panel.axis.text(), &panel.lines);
        }
        for window in self.windows.iter().take(WINDOWS) {
            for (panel, lines) in
                window.finer.iter().filter_map(|(at, lines)| Some((self.panels.get(*at)?, lines)))
            {
                rows(&format!("{}, {}", panel.axis.text(), window.title), lines);
            }
        }
        csv.finish()
    }

    /// Returns the drawing as SVG.
    #[must_use]
    pub fn svg(&self) -> String {
        let mut svg = Svg::new(WIDTH);
        let names = self.names();
        let mut y = title(&mut svg, &self.title, 20.0, RIGHT - 20.0);
        let entry = |(name, colour): (&&str, &&'static str)| (Key::Line(colour, ""), (*name).to_owned());
        let mut entries: Vec<(Key, String)> = names.iter().zip(&COLOURS).map(entry).collect();
        if !self.handoffs.is_empty() {
            let is_number = |label: &str| label.starts_with(|first: char| first.is_ascii_digit());
            let only_handoffs = self.handoffs.iter().all(|(_, label)| is_number(label));
            let name = if only_handoffs { "handoff" } else { "handoff (number), event (words)" };
            entries.push((Key::Upright(HANDOFF), name.to_owned()));
        }
        y = legend(&mut svg, &entries, [20.0, RIGHT], y) + 8.0;
        let left = 40.0
            + self.panels.iter().map(|panel| tick_room(&panel.ticks(panel.range()))).fold(30.0, f64::max);
        let x = Range::of([0.0, self.until.as_secs_f64()]);
        let whole = Block { left, width: RIGHT - left, height: HEIGHT, x, ticks: 10, window: None };
        y = self.block(&mut svg, &whole, &names, y);
        let mut unlabelled = [self.unlabelled(&whole), 0];
        let width = (RIGHT - left - GUTTER - left) / 2.0;
        let windows: Vec<&TimeWindow> = self.windows.iter().take(WINDOWS).collect();
        for row in windows.chunks(2) {
            let mut bottom = y;
            for (column, window) in row.iter().enumerate() {
                let place = left + column as f64 * (width + GUTTER + left);
                let width = if windows.len() == 1 { RIGHT - left } else { width };
                svg.text([place, y + 14.0], Text::new(LABEL, Anchor::Start).bold(), &window.title);
                let x = Range::of([window.from, window.until].map(Instant::as_secs_f64));
                let block = Block { left: place, width, height: LOW, x, ticks: 6, window: Some(window) };
                bottom = bottom.max(self.block(&mut svg, &block, &names, y + 22.0));
                unlabelled[1] += self.unlabelled(&block);
            }
            y = bottom + 6.0;
        }
        let notes = self.notes(&names, unlabelled);
        let bottom = caption(&mut svg, &notes, [20.0, RIGHT - 20.0], y);
        svg.finish(bottom + 14.0, &self.title, &notes)
    }

    /// Returns the text below the figure. `unlabelled` has the numbers of lines of handoffs and events without a label:
    /// in the panels of the whole run, and in the windows.
    fn notes(&self, names: &[&str], unlabelled: [usize; 2]) -> String {
        let mut notes = vec![self.caption.clone()];
        if self.panels.iter().any(|panel| panel.cuts_peaks && panel.peak().is_some()) {
            notes.push("A triangle at the upper edge is a peak that is cut off. The number beside it is the value of the peak, in the unit of the axis.".to_owned());
        }
        let hidden = self.all_names().len() - names.len();
        if hidden > 0 {
            notes.push(hidden_note(hidden));
        }
        let more = self.windows.len().saturating_sub(WINDOWS);
        if more > 0 {
            notes.push(format!("Handoffs that are not enlarged: {more}."));
        }
        let places = ["in the panels of the whole run", "in the enlarged panels"];
        let missing = unlabelled.iter().zip(places).filter(|(lines, _)| **lines > 0);
        let missing: Vec<String> = missing.map(|(lines, place)| format!("{lines} {place}")).collect();
        if !missing.is_empty() {
            notes.push(unlabelled_note(&missing.join(", ")));
        }
        notes.retain(|note| !note.is_empty());
        notes.join("\n")
    }

    /// Draws the panels over one time axis from `top` down, and returns their lower end. In a window, panels without
    /// any line of the window's flows are omitted.
    fn block(&self, svg: &mut Svg, block: &Block<'_>, names: &[&str], top: f64) -> f64 {
        let x_ticks = Ticks::new(block.x, block.ticks);
        let mut y = top;
        let mut last = None;
        for (place, panel) in self.panels.iter().enumerate() {
            let part = block.window.map(|window| panel.only(window, place, block.x));
            if part.as_ref().is_some_and(|part| part.lines.is_empty()) {
                continue;
            }
            let panel = part.as_ref().unwrap_or(panel);
            let Block { left, width, height, x, .. } = *block;
            svg.text([left, y + 9.0], Text::new(LABEL, Anchor::Start).bold(), &panel.axis.text());
            let labels = if last.is_none() { self.labels(block) } else { Vec::new() };
            y += labels.iter().map(|label| (label.row + 1) as f64 * ROW).fold(0.0, f64::max);
            let range = if block.window.is_some() { panel.near(x) } else { panel.range() };
            let ticks = panel.ticks(range);
            let frame = Frame { left, top: y + 14.0, width, height, x, y: range };
            frame.grid(svg, &x_ticks, &ticks);
            frame.y_ticks(svg, &ticks);
            self.handoffs(svg, &frame, &labels);
            panel.draw(svg, &frame, names);
            y = frame.bottom() + 12.0;
            last = Some(frame);
        }
        let Some(frame) = last else { return y };
        frame.x_ticks(svg, &x_ticks);
        frame.x_label(svg, "time (s)");
        y + 30.0
    }

    /// Returns the number of lines of a block whose labels have no room.
    fn unlabelled(&self, block: &Block<'_>) -> usize {
        let lines = self.handoffs.iter().filter(|(at, _)| block.x.contains(at.as_secs_f64()));
        lines.count() - self.labels(block).len()
    }

    /// Returns the labels in a block that have room. No label covers data, another label, the line that leads to one, or the edge.
    ///
    /// The labels are placed from right to left, to the right of their lines if there is room, and once more from left to right, to the
    /// left of their lines; then in both ways with the block's own handoff first. The first way with the label of the own handoff
    /// that places the most labels is taken.
    fn labels(&self, block: &Block<'_>) -> Vec<Label<'_>> {
        let own = block.window.map(|window| window.handoff);
        let own_text = own.and_then(|own| self.handoffs.get(own)).map(|(_, text)| text.as_str());
        let from_the_right: Vec<usize> = (0..self.handoffs.len()).rev().collect();
        let from_the_left: Vec<usize> = (0..self.handoffs.len()).collect();
        let ways =
            [(from_the_right, [Anchor::Start, Anchor::End]), (from_the_left, [Anchor::End, Anchor::Start])];
        let own_first = ways.clone().map(|(mut order, anchors)| {
            order.sort_by_key(|place| Some(*place) != own);
            (order, anchors)
        });
        let placed =
            ways.into_iter().chain(own_first).map(|(order, anchors)| self.placed(block, &order, anchors));
        let merit =
            |labels: &Vec<Label<'_>>| (labels.iter().any(|label| Some(label.text) == own_text), labels.len());
        // Of equal ways, `max_by_key` returns the last.
        placed.rev().max_by_key(merit).unwrap_or_default()
    }

    /// Places the labels of these handoffs in a block, in this order, each with the first of two anchors that has room, in the
    /// lowest row. Leaves out the labels without room.
    fn placed(&self, block: &Block<'_>, order: &[usize], anchors: [Anchor; 2]) -> Vec<Label<'_>> {
        let right = block.left + block.width;
        let mut taken: [Vec<[f64; 2]>; ROWS] = Default::default();
        let mut labels = Vec::new();
        for (at, text) in order.iter().filter_map(|place| self.handoffs.get(*place)) {
            if !block.x.contains(at.as_secs_f64()) {
                continue;
            }
            let x = block.left + block.width * block.x.share(at.as_secs_f64());
            // Bold text is wider than the estimate for regular text.
            let width = crate::svg::text_width(text, SMALL) * 1.1 + 6.0;
            let span_of = |anchor| if anchor == Anchor::End { [x - width, x] } else { [x, x + width] };
            let is_free = |row: usize, [left, right]: [f64; 2]| {
                taken.get(row).is_none_or(|row| row.iter().all(|[from, to]| right <= *from || *to <= left))
            };
            let has_room = |row: usize, anchor: Anchor| {
                let span = span_of(anchor);
                let is_inside = block.left <= span[0] && span[1] <= right;
                is_inside && is_free(row, span) && (0..row).all(|below| is_free(below, [x, x]))
            };
            let mut places = anchors.into_iter().flat_map(|anchor| (0..ROWS).map(move |row| (row, anchor)));
            let Some((row, anchor)) = places.find(|(row, anchor)| has_room(*row, *anchor)) else { continue };
            for (below, spans) in taken.iter_mut().enumerate().take(row + 1) {
                spans.push(if below == row { span_of(anchor) } else { [x, x] });
            }
            labels.push(Label { x, row, anchor, text });
        }
        labels
    }

    /// Draws the lines of the handoffs and events, and the labels above them.
    fn handoffs(&self, svg: &mut Svg, frame: &Frame, labels: &[Label<'_>]) {
        for (at, _) in self.handoffs.iter().filter(|(at, _)| frame.x.contains(at.as_secs_f64())) {
            let x = frame.px(at.as_secs_f64());
            svg.line([x, frame.top], [x, frame.bottom()], &upright(HANDOFF));
        }
        let above = |label: &Label<'_>| frame.top - 4.0 - label.row as f64 * ROW;
        for label in labels {
            svg.line([label.x, frame.top], [label.x, above(label) - 8.0], &upright(HANDOFF));
        }
        // Labels are drawn after all lines, so that the halo of a label covers lines that cross the label.
        for label in labels {
            let y = above(label);
            let beside = if label.anchor == Anchor::End { -3.0 } else { 3.0 };
            let style = Text::new(SMALL, label.anchor).bold().halo();
            svg.text([label.x + beside, y], style, label.text);
        }
    }

    /// Returns the names of the lines that are drawn: the first [`LINES`] names.
    fn names(&self) -> Vec<&str> {
        let mut names = self.all_names();
        names.truncate(LINES);
        names
    }

    fn all_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for line in self.panels.iter().flat_map(|panel| &panel.lines) {
            if !names.contains(&line.name.as_str()) {
                names.push(&line.name);
            }
        }
        names
    }
}

impl TimePanel {
    /// Returns this panel, which has the index `place`, with only the lines of a window, cut to `x`.
    fn only(&self, window: &TimeWindow, place: usize, x: Range) -> Self {
        let lines = window.finer.get(&place).unwrap_or(&self.lines).iter();
        let lines = lines.filter(|line| window.flows.contains(&line.flow));
        let lines = lines.map(|line| line.within(x)).collect();
        Self { axis: self.axis.clone(), lines, remark: self.remark.clone(), cuts_peaks: self.cuts_peaks }
    }

    fn values(&self) -> impl Iterator<Item = f64> {
        let values = self.lines.iter().flat_map(|line| &line.points).map(|(_, value)| *value);
        values.filter(|value| value.abs() <= FAR)
    }

    /// Returns the value at which peaks are cut off, or `None` if no peak has to be cut off.
    fn peak(&self) -> Option<f64> {
        let mut sorted: Vec<f64> = self.values().filter(|value| self.cuts_peaks && *value > 0.0).collect();
        sorted.sort_by(f64::total_cmp);
        let common = *sorted.get((sorted.len() * 95).div_ceil(100).checked_sub(1)?)?;
        (*sorted.last()? > common * PEAK).then_some(common * PEAK)
    }

    /// Returns the range of the y axis: from zero, or the smallest negative value, to slightly above the largest value,
    /// or to the value at which peaks are cut off.
    fn range(&self) -> Range {
        let (lo, hi) =
            self.values().fold((0.0, 0.0), |(lo, hi): (f64, f64), value| (lo.min(value), hi.max(value)));
        if lo >= hi {
            return Range { lo: 0.0, hi: 1.0 };
        }
        if let Some(peak) = self.peak() {
            return Range { lo, hi: peak };
        }
        let range = Range::of([lo, hi]);
        let room = (range.hi - range.lo) * 0.06;
        // The smallest value, if it is negative, is not on the frame.
        Range { lo: if lo < 0.0 { range.lo - room } else { range.lo }, hi: range.hi + room }
    }

    /// Returns the ticks of the y axis: at whole numbers if all values are whole, for example counts.
    fn ticks(&self, range: Range) -> Ticks {
        let is_count = self.axis.unit.is_empty() && self.values().all(|value| value.fract() == 0.0);
        if is_count { Ticks::whole(range, 4) } else { Ticks::new(range, 4) }
    }

    /// Returns the range of the y axis in an enlarged panel. If all lines are dots and all values are close to each other, for
    /// example the places of a stream, the axis does not begin at zero: the dots would be on one level.
    fn near(&self, x: Range) -> Range {
        let dots = self.lines.iter().all(|line| line.joined == Joined::Dots);
        let inside = self.lines.iter().flat_map(|line| &line.points);
        let inside = inside.filter(|(at, value)| x.contains(at.as_secs_f64()) && value.abs() <= FAR);
        let (lo, hi) = inside.fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), (_, value)| {
            (lo.min(*value), hi.max(*value))
        });
        if dots && lo < hi && lo > hi * NEAR { Range { lo, hi }.padded(0.06) } else { self.range() }
    }

    fn draw(&self, svg: &mut Svg, frame: &Frame, names: &[&str]) {
        if self.lines.iter().all(|line| line.points.is_empty()) {
            frame.remark(svg, if self.remark.is_empty() { "no data" } else { &self.remark });
        }
        for line in &self.lines {
            let Some(colour) = names.iter().position(|name| *name == line.name) else { continue };
            line.draw(svg, frame, COLOURS[colour % COLOURS.len()]);
        }
    }
}

impl TimeLine {
    /// Returns this line with the points within `x`, and one more on each side, which gives the value at the edge.
    fn within(&self, x: Range) -> Self {
        let first = self.points.partition_point(|(at, _)| at.as_secs_f64() < x.lo).saturating_sub(1);
        let end = self.points.partition_point(|(at, _)| at.as_secs_f64() <= x.hi).saturating_add(1);
        let points = self.points.get(first..end.min(self.points.len())).unwrap_or_default().to_vec();
        Self { name: self.name.clone(), points, ..*self }
    }

    /// Returns the points within the frame, for each uninterrupted part of the line. Steps also have their values at
    /// the edges of the frame. Points above the frame are moved to its upper edge.
    fn parts(&self, frame: &Frame) -> impl Iterator<Item = Vec<[f64; 2]>> {
        let parts = self.points.split(|(_, value)| value.is_nan());
        parts.map(move |part| {
            let places = part.iter().filter(|(_, value)| value.abs() <= FAR);
            let places = places.map(|(at, value)| (at.as_secs_f64(), *value));
            let mut within: Vec<(f64, f64)> = places.clone().filter(|(x, _)| frame.x.contains(*x)).collect();
            if self.joined == Joined::Steps {
                let before = places.clone().take_while(|(x, _)| *x < frame.x.lo).last();
                let goes_on = places.clone().any(|(x, _)| x > frame.x.hi);
                within.splice(0..0, before.map(|(_, value)| (frame.x.lo, value)));
                let held = within.last().map(|(_, value)| (frame.x.hi, *value));
                within.extend(held.filter(|_| goes_on));
            }
            within.into_iter().map(|(x, y)| [frame.px(x), frame.py(y.min(frame.y.hi))]).collect()
        })
    }

    /// Draws a triangle and the value at each peak that is cut off. A peak is omitted if its triangle would cover the
    /// value of an earlier peak.
    fn peaks(&self, svg: &mut Svg, frame: &Frame, colour: &'static str) {
        let mut free = f64::NEG_INFINITY;
        for (at, value) in &self.points {
            let x = frame.px(at.as_secs_f64());
            let is_cut = (frame.y.hi..=FAR).contains(value) && *value > frame.y.hi;
            if !frame.x.contains(at.as_secs_f64()) || !is_cut || x < free {
                continue;
            }
            Marker::Triangle.draw(svg, [x, frame.top + 5.0], 4.5, colour);
            let text = format!("{value:.0}");
            svg.text(
                [x + 7.0, frame.top + 9.0],
                Text::new(SMALL, Anchor::Start).halo().colour(colour),
                &text,
            );
            free = x + 10.0 + crate::svg::text_width(&text, SMALL);
        }
    }

    fn draw(&self, svg: &mut Svg, frame: &Frame, colour: &'static str) {
        match self.joined {
            Joined::Steps => {
                let style = format!(r#"fill="none" stroke="{colour}" stroke-width="1.4""#);
                for part in self.parts(frame) {
                    svg.path(&steps(part), false, &style);
                }
            }
            Joined::Dots => {
                let mut taken = BTreeSet::new();
                let mut places: Vec<[f64; 2]> = self.parts(frame).flatten().collect();
                places
                    .retain(|place| taken.insert(place.map(|coordinate| (coordinate * 0.7).round() as i64)));
                svg.dots(&places, 2.6, colour);
            }
        }
        self.peaks(svg, frame, colour);
    }
}

/// Returns the corners of steps. Each half pixel of the x axis has at most five corners: the value before it, and its
/// first, lowest, highest and last value.
fn steps(places: Vec<[f64; 2]>) -> Vec<[f64; 2]> {
    let mut corners: Vec<[f64; 2]> = Vec::new();
    let mut column: Vec<[f64; 2]> = Vec::new();
    let mut put = |column: &mut Vec<[f64; 2]>| {
        let Some((first, last)) = column.first().copied().zip(column.last().copied()) else { return };
        if let Some([_, before]) = corners.last().copied() {
            corners.push([first[0], before]);
        }
        let by_height = |a: &&[f64; 2], b: &&[f64; 2]| a[1].total_cmp(&b[1]);
        let ends = [column.iter().min_by(by_height).copied(), column.iter().max_by(by_height).copied()];
        corners.push(first);
        if column.len() > 1 {
            corners.extend(ends.into_iter().flatten().map(|[_, y]| [first[0], y]));
            corners.push(last);
        }
        column.clear();
    };
    for place in places {
        if column.first().is_some_and(|first| (first[0] * 2.0).floor() < (place[0] * 2.0).floor()) {
            put(&mut column);
        }
        column.push(place);
    }
    put(&mut column);
    corners
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the notes below the figure of a run with this number of handoffs. One window shows all handoffs again.
    fn notes(handoffs: u64) -> String {
        let at = |number| Instant::from_millis(number * 50);
        let (title, until) = (String::new(), at(handoffs + 1));
        let line = TimeLine {
            name: "a > b".to_owned(),
            flow: 0,
            joined: Joined::Steps,
            points: vec![(Instant::ZERO, 1.0), (until, 1.0)],
        };
        let axis = Axis::new("goodput", "kb/s");
        let panel = TimePanel { axis, lines: vec![line], remark: String::new(), cuts_peaks: false };
        let from = Instant::ZERO;
        let finer = BTreeMap::new();
        let window = TimeWindow { title: title.clone(), from, until, flows: vec![0], finer, handoff: 0 };
        let handoffs = (1..=handoffs).map(|number| (at(number), format!("{number} hard b2 > b3"))).collect();
        let (panels, windows) = (vec![panel], vec![window]);
        let figure = TimeFigure { title, panels, handoffs, until, windows, caption: String::new() };
        let svg = figure.svg();
        let drawn = svg.matches(" hard b2").count();
        let note = svg.split("<desc").nth(1).and_then(|rest| rest.split("</desc>").next());
        let note = note.unwrap_or_default();
        let missing: usize =
            note.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse::<usize>().ok()).sum();
        assert_eq!(drawn + missing, 2 * figure.handoffs.len(), "each line has a label or is counted: {note}");
        note.to_owned()
    }

    #[test]
    fn lines_without_a_label_are_counted_below_the_figure() {
        assert!(!notes(3).contains("no room"));
        let note = notes(60);
        assert!(note.contains("Lines that have no room for their labels: "), "{note}");
        assert!(
            note.contains(" in the panels of the whole run, ") && note.contains(" in the enlarged panels."),
            "{note}"
        );
    }

    /// Returns a figure of a run of `until` ms with these events.
    fn with_events(events: &[(u64, &str)], until: u64) -> TimeFigure {
        let at = Instant::from_millis;
        TimeFigure {
            title: String::new(),
            panels: Vec::new(),
            handoffs: events.iter().map(|(ms, name)| (at(*ms), (*name).to_owned())).collect(),
            until: at(until),
            windows: Vec::new(),
            caption: String::new(),
        }
    }

    /// Returns the row of each label in a panel with `width` pixels that shows the whole run. Asserts that no line leads through a label.
    fn rows(figure: &TimeFigure, width: f64) -> Vec<(&str, usize)> {
        let x = Range { lo: 0.0, hi: figure.until.as_secs_f64() };
        let block = Block { left: 0.0, width, height: 100.0, x, ticks: 10, window: None };
        let labels = figure.labels(&block);
        for label in &labels {
            let wide = crate::svg::text_width(label.text, SMALL);
            let span = if label.anchor == Anchor::End {
                [label.x - wide, label.x]
            } else {
                [label.x, label.x + wide]
            };
            let crosses =
                |other: &&Label<'_>| other.row >= label.row && span[0] < other.x && other.x < span[1];
            let crossing = labels.iter().find(crosses).map(|other| other.text);
            assert_eq!(crossing, None, "a line leads through the label {}", label.text);
            assert!(0.0 <= span[0] && span[1] <= width, "{} covers the edge", label.text);
        }
        let mut rows: Vec<(&str, usize)> = labels.iter().map(|label| (label.text, label.row)).collect();
        rows.sort_unstable();
        rows
    }

    /// Three events, the last of which is below the labels of the others: its line ends below them.
    #[test]
    fn no_line_crosses_the_label_of_another() {
        let figure = with_events(&[(6470, "Dump Reg"), (6470, "Start Reg"), (6980, "Finish Reg")], 9700);
        assert_eq!(rows(&figure, 1200.0), [("Dump Reg", 2), ("Finish Reg", 0), ("Start Reg", 1)]);
    }

    /// Without room to the right of the last line, all labels are to the left of their lines, the first one in the lowest row.
    #[test]
    fn labels_near_the_right_edge_are_from_the_right_of_their_lines() {
        let events =
            [(6470, "Dump Reg"), (6470, "Start Reg"), (6726, "kept packet sent"), (6980, "Finish Reg")];
        let figure = with_events(&events, 7440);
        let expected = [("Dump Reg", 0), ("Finish Reg", 3), ("Start Reg", 1), ("kept packet sent", 2)];
        assert_eq!(rows(&figure, 910.0), expected);
        for until in (7000..9700).step_by(50) {
            for width in [450.0, 910.0, 1200.0] {
                rows(&with_events(&events, until), width);
            }
        }
    }

    #[test]
    fn a_value_holds_until_the_next_and_a_peak_is_never_lost() {
        let x = Range { lo: 0.0, hi: 10.0 };
        let frame =
            Frame { left: 0.0, top: 0.0, width: 10.0, height: 100.0, x, y: Range { lo: 0.0, hi: 100.0 } };
        let line = |points: &[(u64, f64)]| {
            let points = points.iter().map(|(at, value)| (Instant::from_millis(*at), *value)).collect();
            let line = TimeLine { name: String::new(), flow: 0, joined: Joined::Steps, points };
            line.parts(&frame).map(steps).collect::<Vec<_>>()
        };
        assert_eq!(line(&[(0, 10.0), (5000, 20.0)]), [vec![[0.0, 90.0], [5.0, 90.0], [5.0, 80.0]]]);
        let broken = line(&[(0, 10.0), (2000, 10.0), (2000, f64::NAN), (5000, 20.0)]);
        assert_eq!(broken.len(), 2, "no line from 2 s to 5 s: {broken:?}");
        assert_eq!(broken[1], [[5.0, 80.0]]);
        let dense: Vec<(u64, f64)> = (0..400).map(|ms| (ms, if ms == 77 { 99.0 } else { 1.0 })).collect();
        let [corners] = line(&dense).try_into().unwrap();
        let corners: Vec<[f64; 2]> = corners;
        assert!(corners.len() <= 5 && corners.iter().any(|[_, y]| (y - 1.0).abs() < 1e-9), "{corners:?}");
    }
}
