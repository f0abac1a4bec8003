//! Outages as bars, in the colours of their owners, with the confidence interval or the range of their length.

use super::owner::Owner;
use super::panel::{Frame, Key, LABEL, Marker, SMALL, caption, legend, title};
use super::points::{Axis, Whisker};
use crate::scale::{FAR, Range, Ticks};
use crate::svg::{Anchor, Svg, Text, text_width};

const WIDTH: f64 = 960.0;
const LEFT: f64 = 16.0;
const BAR: f64 = 14.0;
const STEP: f64 = 22.0;
/// The colour of the dot at the end of a bar, and of its interval.
const VALUE: &str = "#111111";

/// One outage, or the median of several, drawn as a bar.
#[derive(Clone, PartialEq, Debug)]
pub struct Bar {
    /// The name of the bar, on its left.
    pub label: String,
    /// The owner and the length of each part of the outage, from left to right, in the unit of the axis. The sum of the
    /// lengths is the length of the bar. Empty if there is no outage with a finite length.
    pub parts: Vec<(Owner, f64)>,
    /// The confidence interval or the range of the bar's length; `None` if there is neither. An infinite end is drawn as
    /// an arrow.
    pub whisker: Option<Whisker>,
    /// The text on the right of the bar, for example `157 ms`.
    pub note: String,
}

/// A group of bars under one title.
#[derive(Clone, PartialEq, Debug)]
pub struct BarGroup {
    /// The title above the bars.
    pub title: String,
    /// The number of the group's scale. Groups with the same number share a scale.
    pub scale: usize,
    /// The bars from top to bottom.
    pub bars: Vec<Bar>,
}

/// A figure of outages as bars, in groups.
#[derive(Clone, PartialEq, Debug)]
pub struct BarFigure {
    /// The title above the figure.
    pub title: String,
    /// The quantity and unit of the bars' lengths.
    pub axis: Axis,
    /// The groups from top to bottom.
    pub groups: Vec<BarGroup>,
    /// The text below the figure.
    pub caption: String,
}

impl Bar {
    fn whole(&self) -> f64 {
        self.parts.iter().map(|(_, part)| drawable(*part)).sum()
    }

    /// Returns the value at the right end of the bar or of its interval, whichever is further right.
    fn reach(&self) -> f64 {
        let end = self.whisker.map(|whisker| whisker.hi).filter(|hi| hi.abs() <= FAR);
        self.whole().max(end.unwrap_or(0.0))
    }
}

/// Returns the length of a part. A part that is negative or not finite has length zero.
const fn drawable(part: f64) -> f64 {
    if part.is_finite() { part.max(0.0) } else { 0.0 }
}

impl BarFigure {
    /// Returns the drawing as SVG.
    #[must_use]
    pub fn svg(&self) -> String {
        let mut svg = Svg::new(WIDTH);
        let bars = || self.groups.iter().flat_map(|group| &group.bars);
        let labels = bars().map(|bar| text_width(&bar.label, LABEL)).fold(0.0, f64::max).min(WIDTH / 3.0);
        let notes = bars().map(|bar| text_width(&bar.note, SMALL)).fold(0.0, f64::max).min(WIDTH / 3.0);
        let (left, right) = (LEFT + labels + 10.0, WIDTH - LEFT - notes - 10.0);
        let mut y = title(&mut svg, &self.title, LEFT, WIDTH - LEFT * 2.0);
        y = legend(&mut svg, &self.legend(), [LEFT, WIDTH - LEFT], y);
        for group in &self.groups {
            y += LABEL + 14.0;
            svg.text([LEFT, y], Text::new(LABEL, Anchor::Start).bold(), &group.title);
            let (top, height) = (y + 7.0, group.bars.len() as f64 * STEP + 4.0);
            let none = Range { lo: 0.0, hi: 1.0 };
            let frame = Frame { left, top, width: right - left, height, x: self.range(group.scale), y: none };
            let ticks = Ticks::new(frame.x, 8);
            frame.grid(&mut svg, &ticks, &Ticks::none());
            frame.x_ticks(&mut svg, &ticks);
            frame.x_label(&mut svg, &self.axis.text());
            for (row, bar) in group.bars.iter().enumerate() {
                bar.draw(&mut svg, &frame, top + row as f64 * STEP + 6.0);
            }
            y = frame.bottom() + 36.0;
        }
        let bottom = caption(&mut svg, &self.caption, [LEFT, WIDTH - LEFT * 2.0], y + 2.0);
        svg.finish(bottom + 14.0, &self.title, &format!("{} {}", self.in_words(), self.caption))
    }

    fn legend(&self) -> Vec<(Key, String)> {
        let bars = || self.groups.iter().flat_map(|group| &group.bars);
        let owns = |owner: &&Owner| {
            bars().any(|bar| bar.parts.iter().any(|(one, part)| one == *owner && *part > 0.0))
        };
        let owners = Owner::ALL.iter().filter(owns);
        let mut entries: Vec<(Key, String)> =
            owners.map(|owner| (Key::Band(owner.colour()), owner.name().to_owned())).collect();
        let has = |is_range| bars().any(|bar| bar.whisker.is_some_and(|one| one.is_range == is_range));
        for (is_range, text) in [(false, "95 % interval"), (true, "range: too few values for an interval")] {
            if has(is_range) {
                entries.push((Key::Line(VALUE, dots(is_range)), text.to_owned()));
            }
        }
        entries
    }

    /// Returns the range from zero to 3 % beyond the longest bar or interval of all groups with this scale. Without
    /// any, the range is from zero to one.
    fn range(&self, scale: usize) -> Range {
        let groups = self.groups.iter().filter(|group| group.scale == scale);
        let end = groups.flat_map(|group| &group.bars).map(Bar::reach).fold(0.0, f64::max);
        Range { lo: 0.0, hi: if end > 0.0 { end * 1.03 } else { 1.0 } }
    }

    /// Returns every bar in words, for screen readers.
    fn in_words(&self) -> String {
        let bars = self.groups.iter().flat_map(|group| group.bars.iter().map(move |bar| (group, bar)));
        let words = bars.map(|(group, bar)| format!("{}: {}: {}.", group.title, bar.label, bar.note));
        words.collect::<Vec<_>>().join(" ")
    }
}

const fn dots(is_range: bool) -> &'static str {
    if is_range { "1.5 2.5" } else { "" }
}

impl Bar {
    fn draw(&self, svg: &mut Svg, frame: &Frame, y: f64) {
        let base = y + BAR - 3.0;
        svg.text([frame.left - 8.0, base], Text::new(LABEL, Anchor::End), &self.label);
        let mut from = 0.0;
        for (owner, part) in &self.parts {
            let to = from + drawable(*part);
            let (left, right) = (frame.px(from), frame.px(to));
            svg.rect([left, y, right - left, BAR], &format!(r#"fill="{}""#, owner.colour()));
            from = to;
        }
        if let Some(whisker) = self.whisker {
            self.enclose(svg, frame, y + BAR / 2.0, whisker);
        }
        svg.text([frame.right() + 8.0, base], Text::new(SMALL, Anchor::Start), &self.note);
    }

    /// Draws the interval over a wider white line, and a dot at the end of the bar.
    fn enclose(&self, svg: &mut Svg, frame: &Frame, y: f64, whisker: Whisker) {
        let at = |value: f64| frame.px(value.clamp(0.0, frame.x.hi));
        let (lo, hi) = (at(whisker.lo), at(whisker.hi));
        svg.line([lo, y], [hi, y], r##"stroke="#ffffff" stroke-width="4""##);
        let dashes = if whisker.is_range { r#" stroke-dasharray="1.5 2.5""# } else { "" };
        svg.line([lo, y], [hi, y], &format!(r#"stroke="{VALUE}" stroke-width="1.5"{dashes}"#));
        for (value, x) in [(whisker.lo, lo), (whisker.hi, hi)] {
            if value.is_finite() {
                svg.line([x, y - 4.0], [x, y + 4.0], &format!(r#"stroke="{VALUE}" stroke-width="1.5""#));
            } else {
                svg.path(&[[x, y - 4.0], [x + 6.0, y], [x, y + 4.0]], true, &format!(r#"fill="{VALUE}""#));
            }
        }
        Marker::Dot.draw(svg, [at(self.whole()), y], 3.2, VALUE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(parts: Vec<(Owner, f64)>) -> Bar {
        Bar { label: "a & b".to_owned(), parts, whisker: None, note: "7 ms".to_owned() }
    }

    fn figure(groups: Vec<(usize, Bar)>) -> String {
        let group = |(scale, bar)| BarGroup { title: "gap".to_owned(), scale, bars: vec![bar] };
        let groups = groups.into_iter().map(group).collect();
        let axis = Axis::new("outage", "ms");
        BarFigure { title: "outages".to_owned(), axis, groups, caption: String::new() }.svg()
    }

    fn attribute(line: &str, name: &str) -> f64 {
        let (_, rest) = line.split_once(&format!(" {name}=\"")).unwrap();
        rest.split('"').next().unwrap().parse().unwrap()
    }

    /// Returns the widths of the bars' rectangles in an owner's colour. The first such rectangle belongs to the legend,
    /// and is skipped.
    fn widths(svg: &str, owner: Owner) -> Vec<f64> {
        let end = format!("fill=\"{}\"/>", owner.colour());
        svg.lines().filter(|line| line.ends_with(&end)).skip(1).map(|line| attribute(line, "width")).collect()
    }

    #[test]
    fn a_bar_has_its_parts_in_their_colours_one_behind_the_other() {
        let svg = figure(vec![(0, bar(vec![(Owner::Link, 2.0), (Owner::Recovery, 6.0)]))]);
        let [link, recovery] = [Owner::Link, Owner::Recovery].map(|owner| widths(&svg, owner)[0]);
        assert!((recovery / link - 3.0).abs() < 0.01, "{link} and {recovery}");
        assert!(svg.contains("a &amp; b") && svg.contains(">7 ms<") && svg.contains(">recovery<"));
        assert!(svg.contains(">outage (ms)<") && svg.contains(">8<"), "an axis with ticks: {svg}");
    }

    #[test]
    fn groups_of_one_scale_have_bars_of_one_length_for_one_outage() {
        let link = |ms| bar(vec![(Owner::Link, ms)]);
        let svg = figure(vec![(0, link(10.0)), (0, link(40.0)), (1, link(1000.0))]);
        let [short, long, other] = widths(&svg, Owner::Link).try_into().unwrap();
        assert!((long / short - 4.0).abs() < 0.01 && (other - long).abs() < 0.1, "{short} {long} {other}");
    }

    #[test]
    fn what_encloses_a_bar_is_drawn_to_scale_and_says_if_it_is_a_range() {
        let with = |hi, is_range| {
            let whisker = Some(Whisker { lo: 5.0, hi, is_range });
            figure(vec![(0, Bar { whisker, ..bar(vec![(Owner::Link, 10.0)]) })])
        };
        let svg = with(20.0, false);
        let dot = svg.lines().find(|line| line.starts_with("<circle")).unwrap();
        let line = svg.lines().rfind(|line| line.contains("stroke-width=\"4\"")).unwrap();
        let (lo, hi) = (attribute(line, "x1"), attribute(line, "x2"));
        assert!(((hi - lo) / (attribute(dot, "cx") - lo) - 3.0).abs() < 0.01, "{dot} {line}");
        assert!(svg.contains(">95 % interval<") && !svg.contains("range"));
        assert!(with(20.0, true).contains(">range: too few values for an interval<"));
        assert!(with(f64::INFINITY, false).contains("Z\" fill=\"#111111\""), "an arrow");
    }

    #[test]
    fn what_cannot_be_drawn_leaves_no_trace() {
        for parts in [vec![], vec![(Owner::Link, f64::NAN)], vec![(Owner::Link, f64::INFINITY)]] {
            let svg = figure(vec![(0, bar(parts))]);
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }
}
