//! The steps of a protocol below a panel: a row for each kind of step, over the panel's time axis.

use super::panel::{Frame, SMALL};
use super::sequence::{STEP_NAME, SequenceFigure, Step, milliseconds};
use crate::scale::Ticks;
use crate::svg::{Anchor, Svg, Text, fit, text_width};
use wire::Instant;

const ROW: f64 = 15.0;
const COLOUR: &str = "#5a5a5a";
/// The smallest width of a step, in pixels.
const LEAST: f64 = 2.5;
/// The size of a label inside of a bar, which is lower than a row.
const INSIDE: f64 = 10.0;
/// The length of the arrow at the end of a step that lasts longer than the panel, in pixels.
const ARROW: f64 = 7.0;

/// The text below a figure with steps.
pub(super) const READING: &str = "The rows below a panel are steps of the protocol, each from its begin to its end at the host. A part of the outage \
     with the same name can be shorter: it begins after the part before it, and ends at the node that switches the path.";

/// Rows of steps, in the order in which their first steps begin.
#[derive(Clone)]
pub(super) struct Steps<'a> {
    rows: Vec<(&'a str, Vec<&'a Step>)>,
}

impl<'a> Steps<'a> {
    /// Returns the steps of the figure for which `wanted` is true. The figure must be in the order of time.
    pub(super) fn of(figure: &'a SequenceFigure, wanted: impl Fn(&Step) -> bool) -> Self {
        let mut rows: Vec<(&str, Vec<&Step>)> = Vec::new();
        for step in figure.steps.iter().filter(|step| wanted(step)) {
            match rows.iter_mut().find(|(name, _)| *name == step.name) {
                Some((_, steps)) => steps.push(step),
                None => rows.push((&step.name, vec![step])),
            }
        }
        Self { rows }
    }

    /// Returns all steps.
    pub(super) fn all(&self) -> impl Iterator<Item = &'a Step> {
        self.rows.iter().flat_map(|(_, steps)| steps).copied()
    }

    /// Draws the rows below `frame`; `place` maps an instant to a value on the x axis of `frame`. Returns the frame of
    /// the rows, or `frame` if there are no rows. The caller draws the tick labels of the x axis below the result.
    pub(super) fn draw(
        &self,
        svg: &mut Svg,
        frame: &Frame,
        ticks: &Ticks,
        place: impl Fn(Instant) -> f64,
    ) -> Frame {
        if self.rows.is_empty() {
            return *frame;
        }
        let below = Frame { top: frame.bottom() + 4.0, height: self.rows.len() as f64 * ROW + 2.0, ..*frame };
        below.grid(svg, ticks, &Ticks::none());
        for (index, (name, steps)) in self.rows.iter().enumerate() {
            let top = below.top + index as f64 * ROW + 1.0;
            let name = fit(name, SMALL, STEP_NAME);
            svg.text([below.left - 6.0, top + 11.0], Text::new(SMALL, Anchor::End), &name);
            let inside = |at: Instant| place(at).clamp(below.x.lo, below.x.hi);
            let bar = |step: &Step| [below.px(inside(step.from)), below.px(inside(step.to))];
            let bars: Vec<[f64; 2]> = steps.iter().map(|step| bar(step)).collect();
            let mut written = below.left;
            for (number, ([from, to], step)) in bars.iter().zip(steps).enumerate() {
                let style = format!(r#"fill="{COLOUR}""#);
                svg.rect([*from, top + 3.0, (to - from).max(LEAST), ROW - 6.0], &style);
                if place(step.to) > below.x.hi {
                    let (tip, middle, half) = (to + ARROW, top + ROW / 2.0, ROW / 2.0 - 1.0);
                    let corners = [[*to, middle - half], [tip, middle], [*to, middle + half]];
                    svg.path(&corners, true, &style);
                }
                let span = milliseconds(step.to.since(step.from));
                let (end, room) = (to.max(from + LEAST) + 4.0, text_width(&span, SMALL));
                let next = bars.get(number + 1).map_or(below.right(), |[next, _]| *next);
                let before = number.checked_sub(1).and_then(|before| bars.get(before));
                let before = before.map_or(below.left, |[_, before]| *before).max(written);
                let text = Text::new(SMALL, Anchor::Start).halo();
                if step.to > step.from && end + room < next {
                    svg.text([end, top + 11.0], text, &span);
                    written = end + room;
                } else if step.to > step.from && from - 4.0 - room > before {
                    svg.text([from - 4.0, top + 11.0], Text { anchor: Anchor::End, ..text }, &span);
                } else if to - from > room + 8.0 {
                    let inside = Text::new(INSIDE, Anchor::Middle).colour("#ffffff");
                    svg.text([f64::midpoint(*from, *to), top + 11.0], inside, &span);
                }
            }
        }
        below
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scale::Range;

    /// A bar over the whole width has room for its label inside only.
    #[test]
    fn the_span_of_a_long_step_is_inside_of_its_bar() {
        let (from, to) = (Instant::from_millis(0), Instant::from_millis(3000));
        let mut figure = SequenceFigure::new("");
        figure.steps = vec![Step { from, to, host: String::new(), name: "registration".to_owned() }];
        let (x, y) = (Range::of([0.0, 2.7]), Range::of([0.0, 1.0]));
        let frame = Frame { left: 0.0, top: 0.0, width: 300.0, height: 10.0, x, y };
        let mut svg = Svg::new(300.0);
        Steps::of(&figure, |_| true).draw(&mut svg, &frame, &Ticks::new(x, 4), Instant::as_secs_f64);
        let text = svg.finish(40.0, "spans", "");
        assert!(text.contains(">3000 ms<"), "{text}");
        assert!(text.contains("L307 "), "an arrow: the step ends after the panel: {text}");
    }

    /// The label of the first bar is right of this bar. So the label of the second bar has no room left of its bar, and
    /// is inside of it.
    #[test]
    fn two_spans_do_not_cover_each_other() {
        let step = |from: u64, to: u64| Step {
            from: Instant::from_millis(from),
            to: Instant::from_millis(to),
            host: String::new(),
            name: "cut".to_owned(),
        };
        let mut figure = SequenceFigure::new("");
        figure.steps = vec![step(0, 1000), step(1650, 2650)];
        let (x, y) = (Range::of([0.0, 2.7]), Range::of([0.0, 1.0]));
        let frame = Frame { left: 0.0, top: 0.0, width: 300.0, height: 10.0, x, y };
        let mut svg = Svg::new(300.0);
        Steps::of(&figure, |_| true).draw(&mut svg, &frame, &Ticks::new(x, 4), Instant::as_secs_f64);
        let text = svg.finish(40.0, "spans", "");
        assert_eq!(text.matches("1000 ms").count(), 2, "{text}");
        let is_inside = |line: &&str| line.contains(r##"fill="#ffffff""##) && line.contains("1000 ms");
        assert_eq!(text.lines().filter(is_inside).count(), 1, "{text}");
    }
}
