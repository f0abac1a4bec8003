//! The distribution of a metric over repeated runs. The upper part has the empirical distribution function of each
//! series. Below it are every value, the median, the middle half and the 5th and 95th percentile.

use super::panel::{Frame, Key, LABEL, Marker, SMALL, caption, legend, tick_room, title};
use super::points::{Axis, COLOURS, Style};
use crate::csv::Csv;
use crate::scale::{FAR, Range, Ticks};
use crate::svg::{Anchor, Svg, Text, fit, text_width, wrap};
use std::collections::BTreeSet;

const WIDTH: f64 = 1000.0;
const RIGHT: f64 = WIDTH - 16.0;
const PLOT_HEIGHT: f64 = 200.0;
/// The height of a series' strip below the curves, in pixels.
const STRIP: f64 = 24.0;
/// The largest width of the numbers right of a strip, in pixels.
const NUMBERS_MAX: f64 = 420.0;
/// The largest width of the name left of a strip, in pixels.
const NAME_MAX: f64 = 290.0;

/// A series of values of one metric, for example one for each run.
#[derive(Clone, PartialEq, Debug)]
pub struct Sample {
    /// What was measured, for example "hard handoff". Samples with the same name share a colour, whatever their style.
    pub name: String,
    /// The source of the values. Published values are drawn as vertical lines.
    pub style: Style,
    /// The values in any order. `f64::INFINITY` is an outage that never ended. `NaN` is a run without a measurement,
    /// which is counted, but not drawn.
    pub values: Vec<f64>,
}

impl Sample {
    /// Returns a series with this name and these values, in any order. `style` is the source of the values: a paper, the
    /// simulator or Linux.
    pub fn new(name: impl Into<String>, style: Style, values: Vec<f64>) -> Self {
        Self { name: name.into(), style, values }
    }

    fn label(&self) -> String {
        format!("{}, {}", self.name, self.style.title())
    }

    /// Returns the measured values in ascending order, infinite ones last.
    fn sorted(&self) -> Vec<f64> {
        let drawable = |value: &&f64| **value == f64::INFINITY || value.abs() <= FAR;
        let mut values: Vec<f64> = self.values.iter().filter(drawable).copied().collect();
        values.sort_by(f64::total_cmp);
        values
    }
}

/// A panel with several series of one metric over one axis.
#[derive(Clone, PartialEq, Debug)]
pub struct DistributionPanel {
    /// The title above the panel; may be empty.
    pub title: String,
    /// The metric and its unit. On a logarithmic axis, values of zero and below are drawn at the left end.
    pub axis: Axis,
    /// The series. Colours are assigned to names in the order of their first series.
    pub samples: Vec<Sample>,
}

/// A figure of panels below each other, each with its own axis.
#[derive(Clone, PartialEq, Debug)]
pub struct DistributionFigure {
    /// The title above the figure.
    pub title: String,
    /// The panels from top to bottom.
    pub panels: Vec<DistributionPanel>,
    /// The text below the figure.
    pub caption: String,
}

impl DistributionFigure {
    /// Returns the numbers as CSV: one row for each value. The values of a series are in ascending order. `inf` is an
    /// outage that never ended, `NaN` a run without a measurement.
    #[must_use]
    pub fn csv(&self) -> String {
        let mut csv = Csv::default();
        csv.row(["panel", "metric", "series", "source", "value"]);
        for panel in &self.panels {
            for sample in &panel.samples {
                let mut values = sample.values.clone();
                values.sort_by(f64::total_cmp);
                for value in values {
                    let (metric, value) = (panel.axis.text(), value.to_string());
                    csv.row([&panel.title, &metric, &sample.name, sample.style.name(), &value]);
                }
            }
        }
        csv.finish()
    }

    /// Returns the drawing as SVG.
    #[must_use]
    pub fn svg(&self) -> String {
        let mut svg = Svg::new(WIDTH);
        let samples = || self.panels.iter().flat_map(|panel| &panel.samples);
        let names = samples().map(|sample| text_width(&sample.label(), SMALL)).fold(60.0, f64::max);
        let left = 20.0 + names.min(NAME_MAX);
        let numbers = samples().map(|sample| text_width(&Numbers::of(sample).text(), SMALL));
        let numbers = numbers.fold(80.0, f64::max) + 10.0;
        let mut y = title(&mut svg, &self.title, 16.0, RIGHT - 16.0);
        for panel in &self.panels {
            y = panel.draw(&mut svg, [left, RIGHT - numbers.min(NUMBERS_MAX)], y) + 8.0;
        }
        let notes = self.notes();
        let bottom = caption(&mut svg, &notes, [16.0, RIGHT - 16.0], y);
        svg.finish(bottom + 14.0, &self.title, &format!("{} {notes}", self.in_words()))
    }

    /// Returns every series in numbers, for screen readers.
    fn in_words(&self) -> String {
        let samples = |panel: &DistributionPanel| {
            let words = |sample: &Sample| format!("{}: {}", sample.label(), Numbers::of(sample).text());
            panel.samples.iter().map(words).collect::<Vec<_>>().join("; ")
        };
        let panels = self.panels.iter().map(|panel| format!("{}: {}.", panel.axis.text(), samples(panel)));
        panels.collect::<Vec<_>>().join(" ")
    }

    fn notes(&self) -> String {
        let samples = || self.panels.iter().flat_map(|panel| &panel.samples);
        let has = |style| samples().any(|sample| sample.style == style && !sample.values.is_empty());
        let mut notes = vec![
            "The curve is the share of runs with at most this value. In the strip below, each dot is one run, or several runs with equal values. \
             The box contains the middle half of the runs, and the bar in the box is the median. The line goes from the 5th to the 95th percentile \
             (nearest rank)."
                .to_owned(),
        ];
        if has(Style::Simulator) && has(Style::Linux) {
            notes.push(
                "Solid curves are runs in the simulator, and dashed curves are runs on Linux.".to_owned(),
            );
        }
        let values = || samples().flat_map(|sample| &sample.values);
        if values().any(|value| *value == f64::INFINITY) {
            notes.push(
                "A curve ends below 1 if some values are infinite, because an outage never ended.".to_owned(),
            );
        }
        let at_zero = |panel: &DistributionPanel| {
            panel.axis.decades && panel.samples.iter().flat_map(|sample| &sample.values).any(|v| *v <= 0.0)
        };
        if self.panels.iter().any(at_zero) {
            notes
                .push("Values of zero and below are drawn at the left end of a logarithmic axis.".to_owned());
        }
        let notes = notes.join(" ");
        if self.caption.is_empty() { notes } else { format!("{}\n{notes}", self.caption) }
    }
}

impl DistributionPanel {
    /// Draws the panel from `top` down, and returns its lower end.
    fn draw(&self, svg: &mut Svg, [left, right]: [f64; 2], top: f64) -> f64 {
        let mut y = top;
        if !self.title.is_empty() {
            // Bold text is wider than the estimate for regular text.
            for line in wrap(&self.title, LABEL * 1.1, RIGHT - left) {
                y += LABEL + 6.0;
                svg.text([left, y], Text::new(LABEL, Anchor::Start).bold(), &line);
            }
            y += 4.0;
        }
        y = legend(svg, &self.legend(), [left, RIGHT], y) + 8.0;
        let x = self.range();
        let shares = Range { lo: 0.0, hi: 1.0 };
        let frame =
            Frame { left, top: y, width: right - left, height: PLOT_HEIGHT, x, y: shares.padded(0.02) };
        let y_ticks = Ticks::new(shares, 5);
        let x_ticks = self.axis.ticks(x, 8);
        let strips = frame.bottom() + 6.0;
        frame.grid(svg, &x_ticks, &y_ticks);
        frame.y_ticks(svg, &y_ticks);
        svg.text(
            [left - tick_room(&y_ticks) - 10.0, frame.top + PLOT_HEIGHT / 2.0],
            Text::new(LABEL, Anchor::Middle).upward(),
            "share of runs",
        );
        if self.samples.iter().all(|sample| sample.sorted().is_empty()) {
            frame.remark(svg, "no data");
        }
        for (index, sample) in self.samples.iter().enumerate() {
            self.curve(svg, &frame, sample, self.is_hidden(&frame, index));
        }
        for (row, sample) in self.samples.iter().enumerate() {
            self.strip(svg, &frame, sample, strips + row as f64 * STRIP);
        }
        let bottom = strips + self.samples.len() as f64 * STRIP;
        let scale = Frame { top: strips, height: bottom - strips, ..frame };
        scale.x_ticks(svg, &x_ticks);
        let place = [left + frame.width / 2.0, bottom + 32.0];
        svg.text(place, Text::new(LABEL, Anchor::Middle), &self.axis.text());
        bottom + 44.0
    }

    fn legend(&self) -> Vec<(Key, String)> {
        let entry = |sample: &Sample| {
            let key = Key::Line(self.colour(&sample.name), sample.style.dashes());
            let empty = if sample.sorted().is_empty() { ", no data" } else { "" };
            (key, format!("{}{empty}", sample.label()))
        };
        self.samples.iter().map(entry).collect()
    }

    fn colour(&self, name: &str) -> &'static str {
        let mut names: Vec<&str> = Vec::new();
        for sample in &self.samples {
            if !names.contains(&sample.name.as_str()) {
                names.push(&sample.name);
            }
        }
        COLOURS[names.iter().position(|known| *known == name).unwrap_or(0) % COLOURS.len()]
    }

    /// Returns the range of all finite values, with room at both ends. On a logarithmic axis, returns the range of the
    /// exponents of all positive values. If no value is negative, and the smallest is below 60 % of the largest, a
    /// linear range begins slightly below zero.
    fn range(&self) -> Range {
        let values = || self.samples.iter().flat_map(|sample| &sample.values).filter(|v| v.abs() <= FAR);
        if self.axis.decades {
            let places = values().filter(|value| **value > 0.0).map(|value| self.axis.place(*value));
            return Range::of(places).padded(0.06);
        }
        let range = Range::of(values().copied());
        let padded = range.padded(0.04);
        let from_zero = range.lo >= 0.0 && range.lo < range.hi * 0.6;
        if from_zero { Range { lo: range.hi * -0.02, ..padded } } else { padded }
    }

    /// Returns the x coordinate of a value. Infinite values are at the right end. On a logarithmic axis, values of zero
    /// and below are at the left end.
    fn px(&self, frame: &Frame, value: f64) -> f64 {
        if value == f64::INFINITY {
            return frame.right();
        }
        let lowest = self.axis.decades && value <= 0.0;
        if lowest { frame.left } else { frame.px(self.axis.place(value)) }
    }

    /// Returns the corners of a sample's curve: a step of 1/n at each value, with at most one step in half a pixel.
    fn corners(&self, frame: &Frame, sample: &Sample) -> Vec<[f64; 2]> {
        let sorted = sample.sorted();
        let n = sorted.len() as f64;
        let finite = sorted.iter().filter(|value| value.is_finite()).count();
        let mut corners = vec![[frame.left, frame.py(0.0)]];
        for (index, value) in sorted.iter().take(finite).enumerate() {
            let x = self.px(frame, *value);
            // Of the values in the same half pixel, only the last is a corner. This bounds the size of the drawing, and
            // the curve looks the same.
            let next = sorted.get(index + 1).filter(|next| next.is_finite());
            if next.is_some_and(|next| (self.px(frame, *next) * 2.0).floor() <= (x * 2.0).floor()) {
                continue;
            }
            let before = corners.last().map_or(frame.py(0.0), |[_, y]| *y);
            corners.extend([[x, before], [x, frame.py((index + 1) as f64 / n)]]);
        }
        let last = corners.last().map_or(frame.py(0.0), |[_, y]| *y);
        corners.push([frame.right(), last]);
        corners
    }

    /// Returns whether a later curve covers the curve of sample `index`.
    fn is_hidden(&self, frame: &Frame, index: usize) -> bool {
        let Some(sample) = self.samples.get(index) else { return false };
        let corners = self.corners(frame, sample);
        let covers = |other: &Sample| {
            let others = self.corners(frame, other);
            let near =
                |(a, b): (&[f64; 2], &[f64; 2])| (a[0] - b[0]).abs() < 1.5 && (a[1] - b[1]).abs() < 1.5;
            others.len() == corners.len() && corners.iter().zip(&others).all(near)
        };
        self.samples.iter().skip(index + 1).any(covers)
    }

    fn curve(&self, svg: &mut Svg, frame: &Frame, sample: &Sample, hidden: bool) {
        let sorted = sample.sorted();
        if sorted.is_empty() {
            return;
        }
        let colour = self.colour(&sample.name);
        if sample.style == Style::Published {
            for value in sorted {
                let x = self.px(frame, value);
                svg.line([x, frame.top], [x, frame.bottom()], &stroke(colour, 1.6, sample.style.dashes()));
            }
            return;
        }
        // A hidden curve is wide and pale, so that it is seen below the curve that covers it.
        let width = if hidden { 6.0 } else { 1.8 };
        let pale = if hidden { r#" stroke-opacity="0.45""# } else { "" };
        let dashes = if hidden { "" } else { sample.style.dashes() };
        let style = format!("{}{pale}", stroke(colour, width, dashes));
        svg.path(&self.corners(frame, sample), false, &style);
    }

    fn strip(&self, svg: &mut Svg, frame: &Frame, sample: &Sample, top: f64) {
        let (colour, middle) = (self.colour(&sample.name), top + STRIP / 2.0);
        let name = fit(&sample.label(), SMALL, NAME_MAX);
        svg.text([frame.left - 8.0, middle + 4.0], Text::new(SMALL, Anchor::End), &name);
        let rule = r##"stroke="#dddddd" stroke-width="0.8""##;
        svg.line([frame.left, top + STRIP], [frame.right(), top + STRIP], rule);
        let sorted = sample.sorted();
        let numbers = Numbers::of(sample);
        svg.text([frame.right() + 10.0, middle + 4.0], Text::new(SMALL, Anchor::Start), &numbers.text());
        self.dots(svg, frame, &sorted, [middle, STRIP], colour);
        let Some([p5, p25, median, p75, p95]) = numbers.at else { return };
        let x = |value| self.px(frame, value);
        if sorted.len() > 1 && sample.style != Style::Published {
            let line = format!(r#"stroke="{colour}" stroke-width="1.2""#);
            svg.line([x(p5), middle], [x(p25), middle], &line);
            svg.line([x(p75), middle], [x(p95), middle], &line);
            let box_style = format!(r#"fill="none" stroke="{colour}" stroke-width="1.2""#);
            svg.rect([x(p25), top + 5.0, (x(p75) - x(p25)).max(0.0), STRIP - 10.0], &box_style);
            for end in [x(p5), x(p95)] {
                svg.line([end, middle - 4.0], [end, middle + 4.0], &line);
            }
        }
        let bar = format!(r#"stroke="{colour}" stroke-width="3""#);
        svg.line([x(median), top + 3.0], [x(median), top + STRIP - 3.0], &bar);
    }

    /// Draws one dot for each value, but only one if several dots coincide. Dots are shifted up or down in turn, so
    /// that dots of similar values can be distinguished. Infinite values are triangles.
    fn dots(&self, svg: &mut Svg, frame: &Frame, sorted: &[f64], [middle, room]: [f64; 2], colour: &str) {
        let mut taken = BTreeSet::new();
        let style = format!(r#"fill="{colour}" fill-opacity="0.55""#);
        for (index, value) in sorted.iter().enumerate() {
            let x = self.px(frame, *value);
            // The dots are in five rows, over half of the strip's height.
            let y = middle + ((index * 2 % 5) as f64 - 2.0) * room * 0.12;
            if taken.insert([(x * 1.5).round() as i64, (y * 1.5).round() as i64]) {
                if value.is_finite() {
                    svg.circle([x, y], 1.9, &style);
                } else {
                    Marker::Triangle.draw(svg, [x, y], 3.5, "#cc0000");
                }
            }
        }
    }
}

fn stroke(colour: &str, width: f64, dashes: &str) -> String {
    let dashes = if dashes.is_empty() { String::new() } else { format!(r#" stroke-dasharray="{dashes}""#) };
    format!(r#"fill="none" stroke="{colour}" stroke-width="{width}"{dashes}"#)
}

/// The statistics of a sample that are written beside its strip.
struct Numbers {
    n: usize,
    /// The number of infinite values: outages that never ended.
    never: usize,
    /// The number of runs without a measurement.
    absent: usize,
    /// The 5th, 25th, 50th (median), 75th and 95th percentile; `None` without measured values.
    at: Option<[f64; 5]>,
}

impl Numbers {
    fn of(sample: &Sample) -> Self {
        let (sorted, all) = (sample.sorted(), sample.values.len());
        let n = sorted.len();
        let rank = |percent: usize| sorted.get((n * percent).div_ceil(100).max(1) - 1).copied();
        let middle = || {
            let (lower, upper) = (*sorted.get(n.saturating_sub(1) / 2)?, *sorted.get(n / 2)?);
            // Two equal values in the middle are the median, also if both are infinite.
            Some(if lower.total_cmp(&upper).is_eq() { lower } else { f64::midpoint(lower, upper) })
        };
        let at = || Some([rank(5)?, rank(25)?, middle()?, rank(75)?, rank(95)?]);
        let never = sorted.iter().filter(|value| value.is_infinite()).count();
        Self { n, never, absent: all - n, at: at() }
    }

    fn text(&self) -> String {
        let mut parts = vec![format!("n {}", self.n)];
        if let Some([p5, _, median, _, p95]) = self.at {
            let [p5, median, p95] = [p5, median, p95].map(short);
            parts.push(match self.n {
                1 => median,
                _ => format!("median {median}, 5–95 %: {p5}–{p95}"),
            });
        }
        let counts = [(self.never, "never"), (self.absent, "not measured")];
        parts.extend(
            counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")),
        );
        parts.join(", ")
    }
}

/// Formats a value with three significant digits, but with at most two decimals, and with all digits before the point.
/// From 10 million on, the notation is scientific. An infinite value is `never`.
fn short(value: f64) -> String {
    let decimals = match value.abs() {
        size if size.is_infinite() => return "never".to_owned(),
        size if size >= 99.95 || size == 0.0 => 0,
        size if size >= 9.995 => 1,
        _ => 2,
    };
    if value.abs() >= 1e7 { format!("{value:.2e}") } else { format!("{value:.decimals$}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_of_the_sample_and_infinite_ones_come_last() {
        let sample = Sample::new("", Style::Linux, vec![f64::INFINITY, 3.0, 1.0, f64::NAN, 2.0]);
        let of = |values| Numbers::of(&Sample::new("", Style::Linux, values));
        let numbers = Numbers::of(&sample);
        assert_eq!(numbers.at, Some([1.0, 1.0, 2.5, 3.0, f64::INFINITY]));
        assert_eq!(numbers.text(), "n 4, median 2.50, 5–95 %: 1.00–never, 1 never, 1 not measured");
        assert_eq!(of(vec![]).text(), "n 0");
        assert_eq!(of(vec![7.0]).text(), "n 1, 7.00");
    }

    #[test]
    fn a_curve_rises_by_one_nth_at_each_value_and_stays_below_one_if_a_value_never_ended() {
        let sample = Sample::new("", Style::Simulator, vec![10.0, 20.0, 20.0, f64::INFINITY]);
        let panel = DistributionPanel {
            title: String::new(),
            axis: Axis::new("", ""),
            samples: vec![sample.clone()],
        };
        let range = Range { lo: 0.0, hi: 40.0 };
        let frame = Frame {
            left: 0.0,
            top: 0.0,
            width: 400.0,
            height: 100.0,
            x: range,
            y: Range { lo: 0.0, hi: 1.0 },
        };
        let corners = panel.corners(&frame, &sample);
        let expected =
            [[0.0, 100.0], [100.0, 100.0], [100.0, 75.0], [200.0, 75.0], [200.0, 25.0], [400.0, 25.0]];
        assert_eq!(corners, expected);
    }
}
