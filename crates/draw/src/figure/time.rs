//! Values over the time of a run: goodput, delay, windows and round-trip times of its flows, one panel below the other.

use super::panel::{Frame, Key, LABEL, SMALL, caption, legend, tick_room, title, upright};
use super::points::{Axis, COLOURS};
use super::sequence::HANDOFF;
use crate::csv::Csv;
use crate::scale::{FAR, Range, Ticks};
use crate::svg::{Anchor, Svg, Text};
use std::collections::BTreeSet;
use wire::Instant;

const WIDTH: f64 = 1000.0;
const RIGHT: f64 = WIDTH - 20.0;
const HEIGHT: f64 = 130.0;
/// At most so many lines have a colour of their own, so at most so many are drawn.
const LINES: usize = COLOURS.len();

/// How the points of a line are joined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Joined {
    /// Each value holds until the next: a window, a bin.
    Steps,
    /// Each value is a dot: a packet.
    Dots,
}

/// One value of one flow over time.
#[derive(Clone, PartialEq, Debug)]
pub struct TimeLine {
    /// The flow. Lines of one name have one colour in all panels.
    pub name: String,
    /// How the points are joined.
    pub joined: Joined,
    /// The values, in the order of time.
    pub points: Vec<(Instant, f64)>,
}

/// One quantity of all flows.
#[derive(Clone, PartialEq, Debug)]
pub struct TimePanel {
    /// The quantity and its unit.
    pub axis: Axis,
    /// A line for each flow that has it.
    pub lines: Vec<TimeLine>,
    /// What is written into the panel if no line has a point: why there is no data.
    pub remark: String,
}

/// Panels over one axis of time.
#[derive(Clone, PartialEq, Debug)]
pub struct TimeFigure {
    /// Above the figure.
    pub title: String,
    /// From top to bottom.
    pub panels: Vec<TimePanel>,
    /// Handoffs: when, and the number or label at the line.
    pub handoffs: Vec<(Instant, String)>,
    /// The end of the axis, which begins at zero.
    pub until: Instant,
    /// Below the figure.
    pub caption: String,
}

impl TimeFigure {
    /// The numbers: one row per point.
    #[must_use]
    pub fn csv(&self) -> String {
        let mut csv = Csv::default();
        csv.row(["quantity", "flow", "time_s", "value"]);
        for panel in &self.panels {
            for line in &panel.lines {
                for (at, value) in line.points.iter().filter(|(_, value)| value.abs() <= FAR) {
                    csv.row([&panel.axis.text(), &line.name, &at.to_string(), &value.to_string()]);
                }
            }
        }
        csv.finish()
    }

    /// The drawing.
    #[must_use]
    pub fn svg(&self) -> String {
        let mut svg = Svg::new(WIDTH);
        let names = self.names();
        let mut y = title(&mut svg, &self.title, 20.0, RIGHT - 20.0);
        let entry = |(name, colour): (&&str, &&'static str)| (Key::Line(colour, ""), (*name).to_owned());
        let mut entries: Vec<(Key, String)> = names.iter().zip(&COLOURS).map(entry).collect();
        if !self.handoffs.is_empty() {
            entries.push((Key::Upright(HANDOFF), "handoff".to_owned()));
        }
        y = legend(&mut svg, &entries, [20.0, RIGHT], y) + 8.0;
        let x = Range::of([0.0, self.until.as_secs_f64()]);
        let x_ticks = Ticks::new(x, 10);
        let left = 40.0 + self.panels.iter().map(|panel| tick_room(&panel.ticks())).fold(30.0, f64::max);
        for (index, panel) in self.panels.iter().enumerate() {
            let frame =
                Frame { left, top: y + 14.0, width: RIGHT - left, height: HEIGHT, x, y: panel.range() };
            frame.grid(&mut svg, &x_ticks, &panel.ticks());
            frame.y_ticks(&mut svg, &panel.ticks());
            self.handoffs(&mut svg, &frame);
            panel.draw(&mut svg, &frame, &names);
            let head = Text::new(LABEL, Anchor::Start).bold();
            svg.text([left, y + 9.0], head, &panel.axis.text());
            y = frame.bottom() + 12.0;
            if index + 1 == self.panels.len() {
                frame.x_ticks(&mut svg, &x_ticks);
                let place = [left + frame.width / 2.0, frame.bottom() + 32.0];
                svg.text(place, Text::new(LABEL, Anchor::Middle), "time (s)");
                y += 30.0;
            }
        }
        let hidden = self.all_names().len() - names.len();
        let more = format!("Not drawn: {hidden} more flows; the CSV file has them.");
        let notes = [self.caption.as_str(), if hidden > 0 { &more } else { "" }];
        let notes: Vec<&str> = notes.into_iter().filter(|note| !note.is_empty()).collect();
        let bottom = caption(&mut svg, &notes.join("\n"), [20.0, RIGHT - 20.0], y);
        svg.finish(bottom + 14.0, &self.title)
    }

    fn handoffs(&self, svg: &mut Svg, frame: &Frame) {
        let mut free = f64::NEG_INFINITY;
        for (at, label) in &self.handoffs {
            let x = frame.px(at.as_secs_f64());
            if !frame.x.contains(at.as_secs_f64()) {
                continue;
            }
            svg.line([x, frame.top], [x, frame.bottom()], &upright(HANDOFF));
            if x > free {
                let style = Text::new(SMALL, Anchor::Start).bold().halo();
                svg.text([x + 3.0, frame.top + 12.0], style, label);
                free = x + 6.0 + crate::svg::text_width(label, SMALL);
            }
        }
    }

    /// The names that have a colour.
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
    /// From zero to the largest value.
    fn range(&self) -> Range {
        let values = self.lines.iter().flat_map(|line| &line.points).map(|(_, value)| *value);
        let (lo, hi) = values
            .filter(|value| value.abs() <= FAR)
            .fold((0.0, 0.0), |(lo, hi): (f64, f64), value| (lo.min(value), hi.max(value)));
        if lo >= hi {
            return Range { lo: 0.0, hi: 1.0 };
        }
        let range = Range::of([lo, hi]);
        Range { lo: range.lo, hi: range.hi + (range.hi - range.lo) * 0.06 }
    }

    fn ticks(&self) -> Ticks {
        Ticks::new(self.range(), 4)
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
    fn places(&self, frame: &Frame) -> impl Iterator<Item = [f64; 2]> {
        let drawable = self.points.iter().filter(|(_, value)| value.abs() <= FAR);
        drawable.map(|(at, value)| [frame.px(at.as_secs_f64()), frame.py(*value)])
    }

    fn draw(&self, svg: &mut Svg, frame: &Frame, colour: &str) {
        match self.joined {
            Joined::Steps => {
                let style = format!(r#"fill="none" stroke="{colour}" stroke-width="1.4""#);
                svg.path(&self.steps(frame), false, &style);
            }
            Joined::Dots => {
                let mut taken = BTreeSet::new();
                let mut places: Vec<[f64; 2]> = self.places(frame).collect();
                places
                    .retain(|place| taken.insert(place.map(|coordinate| (coordinate * 0.7).round() as i64)));
                svg.dots(&places, 2.6, colour);
            }
        }
    }

    /// The corners of the steps: at most four in half a pixel, which keep its first, lowest, highest and last value.
    fn steps(&self, frame: &Frame) -> Vec<[f64; 2]> {
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
        for place in self.places(frame) {
            if column.first().is_some_and(|first| (first[0] * 2.0).floor() < (place[0] * 2.0).floor()) {
                put(&mut column);
            }
            column.push(place);
        }
        put(&mut column);
        corners
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_holds_until_the_next_and_a_peak_is_never_lost() {
        let x = Range { lo: 0.0, hi: 10.0 };
        let frame =
            Frame { left: 0.0, top: 0.0, width: 10.0, height: 100.0, x, y: Range { lo: 0.0, hi: 100.0 } };
        let line = |points: &[(u64, f64)]| {
            let points = points.iter().map(|(at, value)| (Instant::from_millis(*at), *value)).collect();
            TimeLine { name: String::new(), joined: Joined::Steps, points }.steps(&frame)
        };
        assert_eq!(line(&[(0, 10.0), (5000, 20.0)]), [[0.0, 90.0], [5.0, 90.0], [5.0, 80.0]]);
        let dense: Vec<(u64, f64)> = (0..400).map(|ms| (ms, if ms == 77 { 99.0 } else { 1.0 })).collect();
        let corners = line(&dense);
        assert!(corners.len() <= 5 && corners.iter().any(|[_, y]| (y - 1.0).abs() < 1e-9), "{corners:?}");
    }
}
