//! A figure of published and measured values with their intervals.

use super::panel::{Frame, Key, Marker, SMALL, caption, dashed, legend, tick_room, title};
use crate::csv::Csv;
use crate::scale::{FAR, Range, Ticks};
use crate::svg::{Anchor, Svg, Text, fit, text_width};

const WIDTH: f64 = 800.0;
const PLOT_HEIGHT: f64 = 360.0;
/// Colours that are dark enough for a thin line on white. The first three are Okabe and Ito's.
pub(super) const COLOURS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#aa4499", "#b38600", "#333333"];
/// The horizontal distance of simulator and Linux points from their x, in pixels, if a figure has both. So points of
/// one backend do not hide the intervals of the other.
const ASIDE: f64 = 4.0;
/// The distance in pixels below which two points hide each other.
const HIDES: f64 = 6.0;
/// The additional radius of a point for each point that hides it, in pixels.
const LARGER: f64 = 3.0;
/// The size of a marker in pixels.
const MARKER: f64 = 10.0;
/// The largest number of hiding points that make a point larger.
const BELOW: usize = 3;

/// The source of a series of values. It decides how the values are drawn. The variants name the markers in a
/// [`PointFigure`]; in a [`DistributionFigure`](crate::DistributionFigure), the curves differ in their dashes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Style {
    /// A paper: hollow markers on a dashed line.
    Published,
    /// The simulator: filled circles.
    Simulator,
    /// The daemons on Linux: filled diamonds.
    Linux,
}

impl Style {
    /// Returns the name of this source of values in CSV files: `published`, `simulator` or `linux`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Simulator => "simulator",
            Self::Linux => "linux",
        }
    }

    /// Returns the name of this source of values in legends.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Linux => "Linux",
            _ => self.name(),
        }
    }

    /// Returns the dashes of a curve in SVG's notation; empty for a solid curve.
    pub(super) const fn dashes(self) -> &'static str {
        match self {
            Self::Published => "2 3",
            Self::Simulator => "",
            Self::Linux => "7 4",
        }
    }

    const fn marker(self) -> (Marker, f64) {
        match self {
            Self::Published => (Marker::Ring, 5.0),
            Self::Simulator => (Marker::Dot, 4.0),
            Self::Linux => (Marker::Diamond, 5.5),
        }
    }
}

/// The confidence interval of a value, or the smallest and the largest measured value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Whisker {
    /// The lower end, in the unit of the value.
    pub lo: f64,
    /// The upper end, in the unit of the value.
    pub hi: f64,
    /// Whether the ends are the smallest and the largest value, because there are too few values for an interval. Such
    /// a range is drawn dotted.
    pub is_range: bool,
}

/// One value of a series, with its interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Point {
    /// The parameter of the run, in the unit of the x axis.
    pub x: f64,
    /// The value that was measured or published, in the unit of the y axis.
    pub y: f64,
    /// The interval of `y`; `None` if there is none.
    pub whisker: Option<Whisker>,
}

impl Point {
    /// Returns whether all numbers of the point are finite and at most [`FAR`]. Otherwise the point is omitted from the
    /// figure and the CSV.
    fn is_drawable(&self) -> bool {
        let [lo, hi] = self.ends();
        [self.x, self.y, lo, hi].into_iter().all(|value| value.abs() <= FAR)
    }

    /// Returns the point with its coordinates on these axes. On a logarithmic axis, the coordinate is the exponent.
    fn placed(self, x: &Axis, y: &Axis) -> Self {
        let placed = |one: Whisker| Whisker { lo: y.place(one.lo), hi: y.place(one.hi), ..one };
        Self { x: x.place(self.x), y: y.place(self.y), whisker: self.whisker.map(placed) }
    }

    /// Returns the ends of the point's interval, or the value twice if it has none.
    fn ends(&self) -> [f64; 2] {
        self.whisker.map_or([self.y; 2], |whisker| [whisker.lo, whisker.hi])
    }
}

/// A series of points. Series with the same name share a colour, whatever their style.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// What was measured, for example "hard handoff".
    pub name: String,
    /// The source of the values.
    pub style: Style,
    /// The values, in any order.
    pub points: Vec<Point>,
}

/// The quantity and the unit of an axis.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Axis {
    /// The quantity, for example "outage".
    pub label: String,
    /// The unit; empty for a plain number.
    pub unit: String,
    /// Whether the axis is logarithmic, with base 10. Values of zero and below have no coordinate on such an axis.
    pub decades: bool,
    /// The categories of the axis: a value I, from 0, is the category I. Empty for an axis of numbers.
    pub names: Vec<String>,
}

impl Axis {
    /// Returns a linear axis of `label` in `unit`.
    pub fn new(label: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { label: label.into(), unit: unit.into(), decades: false, names: Vec::new() }
    }

    /// Returns an axis of categories. The x axis of a [`PointFigure`] can be such an axis; other axes ignore the names.
    pub fn of_names(label: impl Into<String>, names: Vec<String>) -> Self {
        Self { names, ..Self::new(label, "") }
    }

    /// Returns the text of a value: the category, or the number.
    fn name_of(&self, value: f64) -> String {
        let name = self.names.get(value as usize).filter(|_| value >= 0.0);
        name.cloned().unwrap_or_else(|| value.to_string())
    }

    /// Returns this axis as a logarithmic one.
    #[must_use]
    pub fn in_decades(self) -> Self {
        Self { decades: true, ..self }
    }

    /// Returns the coordinate of a value on the axis: the value, or its exponent to base 10 on a logarithmic axis.
    pub(super) fn place(&self, value: f64) -> f64 {
        if self.decades { value.log10() } else { value }
    }

    pub(super) fn ticks(&self, range: Range, target: u32) -> Ticks {
        if self.decades { Ticks::decades(range) } else { Ticks::new(range, target) }
    }

    pub(super) fn text(&self) -> String {
        if self.unit.is_empty() { self.label.clone() } else { format!("{} ({})", self.label, self.unit) }
    }
}

/// Points with the places where they are drawn, in pixels.
type Places<'a> = Vec<([f64; 2], &'a Point)>;

/// A figure of several series over one x axis.
#[derive(Clone, PartialEq, Debug)]
pub struct PointFigure {
    /// The title above the figure.
    pub title: String,
    /// The parameter of the runs, and its unit.
    pub x: Axis,
    /// The quantity that was measured or published, and its unit.
    pub y: Axis,
    /// The series. Later series are drawn above earlier ones, and published ones above measured ones.
    pub series: Vec<Series>,
    /// The text below the figure: the source of published values, the number of runs of measured ones.
    pub caption: String,
}

impl PointFigure {
    /// Returns the numbers as CSV: one row for each point whose numbers are all finite, in the given order.
    #[must_use]
    pub fn csv(&self) -> String {
        let mut csv = Csv::default();
        csv.row(["series", "source", &self.x.text(), &self.y.text(), "low", "high", "kind of low and high"]);
        for series in &self.series {
            for point in series.points.iter().filter(|point| point.is_drawable()) {
                let [lo, hi, kind] = point.whisker.map_or_else(Default::default, |whisker| {
                    let kind = if whisker.is_range { "range" } else { "interval" };
                    [whisker.lo.to_string(), whisker.hi.to_string(), kind.to_owned()]
                });
                let (x, y) = (self.x.name_of(point.x), point.y.to_string());
                csv.row([series.name.as_str(), series.style.name(), &x, &y, &lo, &hi, &kind]);
            }
        }
        csv.finish()
    }

    /// Returns the drawing as SVG.
    #[must_use]
    pub fn svg(&self) -> String {
        if self.x.decades || self.y.decades {
            let mut placed = self.clone();
            for point in placed.series.iter_mut().flat_map(|series| &mut series.points) {
                *point = point.placed(&self.x, &self.y);
            }
            return placed.draw_all();
        }
        self.draw_all()
    }

    /// Draws the figure. On a logarithmic axis, the coordinates of the points must already be exponents.
    fn draw_all(&self) -> String {
        let mut svg = Svg::new(WIDTH);
        let (x, y) = self.ranges();
        let x_ticks = if self.x.names.is_empty() { self.x.ticks(x, 8) } else { Ticks::whole(x, u32::MAX) };
        let y_ticks = self.y.ticks(y, 6);
        let left = 32.0 + tick_room(&y_ticks);
        let width = WIDTH - 24.0 - left;

        let top = title(&mut svg, &self.title, left, width);
        let top = legend(&mut svg, &self.legend(), [left, WIDTH - 24.0], top) + 8.0;
        let frame = Frame { left, top, width, height: PLOT_HEIGHT, x, y };
        frame.grid(&mut svg, &x_ticks, &y_ticks);
        frame.y_ticks(&mut svg, &y_ticks);
        if self.x.names.is_empty() {
            frame.x_ticks(&mut svg, &x_ticks);
        }
        // Names that have no room side by side are in turn in two rows, and are cut to the width of two.
        let room = width / self.x.names.len().max(1) as f64;
        let rows = if self.x.names.iter().any(|name| text_width(name, SMALL) > room - 6.0) { 2 } else { 1 };
        for (index, name) in self.x.names.iter().enumerate() {
            let place = [frame.px(index as f64), frame.bottom() + 15.0 + (index % rows) as f64 * 13.0];
            let to_the_edge = (place[0].min(WIDTH - place[0]) - 4.0) * 2.0;
            let name = fit(name, SMALL, (room * rows as f64 - 6.0).min(to_the_edge));
            svg.text(place, Text::new(SMALL, Anchor::Middle), &name);
        }
        let further = (rows - 1) as f64 * 13.0;
        Frame { height: frame.height + further, ..frame }.x_label(&mut svg, &self.x.text());
        frame.y_label(&mut svg, &self.y.text(), tick_room(&y_ticks) + 12.0);
        if self.points().next().is_none() {
            frame.remark(&mut svg, "no data");
        }
        // Lines are below markers. Hollow markers are above filled ones, with which they may coincide.
        let published = |series: &&Series| series.style == Style::Published;
        for series in self.series.iter().filter(published) {
            let places: Vec<[f64; 2]> =
                self.places(&frame, series).into_iter().map(|(place, _)| place).collect();
            svg.path(&places, false, &dashed(self.colour(&series.name), self.number(&series.name)));
            for place in places {
                svg.circle(place, series.style.marker().1, r##"fill="#ffffff""##); // hides the line within
            }
        }
        let mut nested = false;
        for is_published in [false, true] {
            let group = self.series.iter().filter(|series| published(series) == is_published);
            let group: Vec<(&Series, Places<'_>)> =
                group.map(|series| (series, self.places(&frame, series))).collect();
            for (index, (series, places)) in group.iter().enumerate() {
                let above = group
                    .iter()
                    .skip(index + 1)
                    .flat_map(|(_, places)| places.iter().map(|(place, _)| *place));
                let above: Vec<[f64; 2]> = above.collect();
                nested |= self.draw(&mut svg, &frame, series, places, &above);
            }
        }
        let notes = self.notes(nested);
        let bottom = caption(&mut svg, &notes, [left, width], frame.bottom() + further + 38.0);
        svg.finish(bottom + 14.0, &self.title, &notes)
    }

    /// Draws the points of a series. A point is larger if points in `above` hide it. Returns whether there is such a
    /// point.
    fn draw(
        &self,
        svg: &mut Svg,
        frame: &Frame,
        series: &Series,
        places: &Places<'_>,
        above: &[[f64; 2]],
    ) -> bool {
        let colour = self.colour(&series.name);
        let (marker, radius) = series.style.marker();
        let mut nested = false;
        for (place, point) in places {
            if let Some(whisker) = point.whisker {
                draw_whisker(svg, place[0], whisker, frame, colour);
            }
            let hides = |other: &&[f64; 2]| {
                (other[0] - place[0]).abs() < HIDES && (other[1] - place[1]).abs() < HIDES
            };
            let below = above.iter().filter(hides).count().min(BELOW);
            marker.draw(svg, *place, radius + below as f64 * LARGER, colour);
            nested |= below > 0;
        }
        nested
    }

    /// Returns the points of a series from left to right, with the places where they are drawn.
    fn places<'a>(&self, frame: &Frame, series: &'a Series) -> Places<'a> {
        let aside = match series.style {
            Style::Simulator if self.has_both() => -ASIDE,
            Style::Linux if self.has_both() => ASIDE,
            _ => 0.0,
        };
        let mut points: Vec<&Point> = series.points.iter().filter(|point| point.is_drawable()).collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        points.into_iter().map(|point| ([frame.px(point.x) + aside, frame.py(point.y)], point)).collect()
    }

    fn points(&self) -> impl Iterator<Item = &Point> {
        self.series.iter().flat_map(|series| &series.points).filter(|point| point.is_drawable())
    }

    /// Returns the ranges of both axes, with room for markers at the ends. If no value is negative, and the smallest is
    /// below 60 % of the largest, a linear y axis begins at zero. It begins slightly below zero if a value is zero.
    fn ranges(&self) -> (Range, Range) {
        let x = match self.x.names.len() {
            0 => Range::of(self.points().map(|point| point.x)).padded(0.05),
            names => Range { lo: -0.5, hi: names as f64 - 0.5 },
        };
        let amounts = self.points().flat_map(|point| {
            let [lo, hi] = point.ends();
            [point.y, lo, hi]
        });
        let tight = Range::of(amounts);
        let mut y = tight.padded(0.06);
        if !self.y.decades && tight.lo >= 0.0 && tight.lo < tight.hi * 0.6 {
            // An axis with a value of zero begins below it, so that the point is not on the frame.
            y.lo = if tight.lo > 0.0 { 0.0 } else { tight.hi * -0.03 };
        }
        (x, y)
    }

    fn legend(&self) -> Vec<(Key, String)> {
        let entry = |series: &Series| {
            let colour = self.colour(&series.name);
            let (marker, radius) = series.style.marker();
            let key = match series.style {
                Style::Published => Key::Dashed(marker, radius, colour),
                Style::Simulator | Style::Linux => Key::Marker(marker, radius, colour),
            };
            let empty = if series.points.iter().any(Point::is_drawable) { "" } else { ", no data" };
            (key, format!("{} ({}{empty})", series.name, series.style.title()))
        };
        self.series.iter().map(entry).collect()
    }

    /// Returns the colour of a series. The names get the colours in the order of their first series.
    fn colour(&self, name: &str) -> &'static str {
        COLOURS[self.number(name) % COLOURS.len()]
    }

    fn number(&self, name: &str) -> usize {
        self.names().iter().position(|known| *known == name).unwrap_or(0)
    }

    /// Returns the names in the order of their first series.
    fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for series in &self.series {
            if !names.contains(&series.name.as_str()) {
                names.push(&series.name);
            }
        }
        names
    }

    /// Returns whether both backends have points.
    fn has_both(&self) -> bool {
        let has = |style| {
            let mut series = self.series.iter().filter(|series| series.style == style);
            series.any(|series| series.points.iter().any(Point::is_drawable))
        };
        has(Style::Simulator) && has(Style::Linux)
    }

    fn notes(&self, nested: bool) -> String {
        let mut notes = vec![self.caption.as_str()];
        if self.has_both() {
            notes.push("Points of the simulator are drawn 4 pixels left of their x value, and points of Linux 4 pixels right of it.");
        }
        if nested {
            notes.push("Larger markers belong to a series that another series covers.");
        }
        // A bar that is shorter than a marker is hidden by the marker.
        let (_, y) = self.ranges();
        let pixels = |whisker: Whisker| (whisker.hi - whisker.lo) / (y.hi - y.lo) * PLOT_HEIGHT;
        let ranges: Vec<Whisker> =
            self.points().filter_map(|point| point.whisker.filter(|it| it.is_range)).collect();
        if !ranges.is_empty() && ranges.iter().all(|whisker| pixels(*whisker) <= MARKER) {
            notes.push("The smallest and the largest value of each point differ by less than the size of its marker.");
        } else if !ranges.is_empty() {
            notes.push("A dotted bar goes from the smallest to the largest value, because there are too few values for an interval.");
        }
        notes.retain(|note| !note.is_empty());
        notes.join("\n")
    }
}

fn draw_whisker(svg: &mut Svg, x: f64, whisker: Whisker, frame: &Frame, colour: &str) {
    let dots = if whisker.is_range { r#" stroke-dasharray="1.5 2.5""# } else { "" };
    let ends = [frame.py(whisker.lo), frame.py(whisker.hi)];
    svg.line([x, ends[0]], [x, ends[1]], &format!(r#"stroke="{colour}" stroke-width="1.4"{dots}"#));
    for y in ends {
        svg.line([x - 3.5, y], [x + 3.5, y], &format!(r#"stroke="{colour}" stroke-width="1.2""#));
    }
}
