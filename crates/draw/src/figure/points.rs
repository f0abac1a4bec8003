//! Published beside measured.

use super::panel::{Frame, Key, Marker, caption, dashed, legend, tick_room, title};
use crate::csv::Csv;
use crate::scale::{FAR, Range, Ticks};
use crate::svg::Svg;

const WIDTH: f64 = 800.0;
const PLOT_HEIGHT: f64 = 360.0;
/// Okabe and Ito's colours that are dark enough for a thin line on white.
pub(super) const COLOURS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#aa4499", "#b38600", "#333333"];
/// How far simulator and Linux stand from their x at most, in pixels: clear of the published marker and each other.
const ASIDE: f64 = 9.0;
/// Points that are nearer to each other than this hide each other, in pixels.
const HIDES: f64 = 6.0;

/// Where numbers come from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Style {
    /// A paper: hollow markers on a dashed line.
    Published,
    /// The simulator: filled circles.
    Simulator,
    /// Real daemons: filled diamonds.
    Linux,
}

impl Style {
    /// As CSV files have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Simulator => "simulator",
            Self::Linux => "linux",
        }
    }

    /// As legends have it.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Linux => "Linux",
            _ => self.name(),
        }
    }

    /// The pattern of a curve, as SVG spells dashes; empty is solid.
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

/// One value with its interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Point {
    /// What was set.
    pub x: f64,
    /// What came out.
    pub y: f64,
    /// The interval `(lo, hi)` around `y`.
    pub error: Option<(f64, f64)>,
}

impl Point {
    /// Whether it can be drawn. What cannot is no point of the figure, nor of its CSV.
    fn is_drawable(&self) -> bool {
        let (lo, hi) = self.error.unwrap_or((0.0, 0.0));
        [self.x, self.y, lo, hi].into_iter().all(|value| value.abs() <= FAR)
    }

    /// Where it stands on these axes.
    fn placed(self, x: &Axis, y: &Axis) -> Self {
        let error = self.error.map(|(lo, hi)| (y.place(lo), y.place(hi)));
        Self { x: x.place(self.x), y: y.place(self.y), error }
    }
}

/// Points that belong together. Series of one name share a colour, whatever their style.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// What was measured, such as "hard handoff".
    pub name: String,
    /// By whom.
    pub style: Style,
    /// The values, in any order.
    pub points: Vec<Point>,
}

/// What an axis measures.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Axis {
    /// The quantity.
    pub label: String,
    /// Its unit; empty when it is a plain number.
    pub unit: String,
    /// Whether each power of ten has the same room. Nothing has a place on it that is not above zero.
    pub decades: bool,
}

impl Axis {
    /// `label` in `unit`.
    pub fn new(label: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { label: label.into(), unit: unit.into(), decades: false }
    }

    /// The same, with the same room for each power of ten.
    #[must_use]
    pub fn in_decades(self) -> Self {
        Self { decades: true, ..self }
    }

    /// Where a value stands: at itself, or at its exponent.
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

/// Who stands a little beside its x, so that no marker hides another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Apart {
    Nobody,
    /// The simulator on one side and Linux on the other.
    Worlds,
    /// Each series, in the order of their names.
    Series,
}

/// Several series over one x axis.
#[derive(Clone, PartialEq, Debug)]
pub struct PointFigure {
    /// Above the figure.
    pub title: String,
    /// What was set.
    pub x: Axis,
    /// What came out.
    pub y: Axis,
    /// The values.
    pub series: Vec<Series>,
    /// Below the figure: where the published values stand, how many runs the measured ones are.
    pub caption: String,
}

impl PointFigure {
    /// The numbers: one row per point, in the order given.
    #[must_use]
    pub fn csv(&self) -> String {
        let mut csv = Csv::default();
        csv.row(["series", "source", &self.x.text(), &self.y.text(), "low", "high"]);
        for series in &self.series {
            for point in series.points.iter().filter(|point| point.is_drawable()) {
                let (lo, hi) =
                    point.error.map_or_else(Default::default, |(lo, hi)| (lo.to_string(), hi.to_string()));
                let (x, y) = (point.x.to_string(), point.y.to_string());
                csv.row([series.name.as_str(), series.style.name(), &x, &y, &lo, &hi]);
            }
        }
        csv.finish()
    }

    /// The drawing.
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

    /// The drawing of points that stand where they stand.
    fn draw_all(&self) -> String {
        let mut svg = Svg::new(WIDTH);
        let (x, y) = self.ranges();
        let (x_ticks, y_ticks) = (self.x.ticks(x, 8), self.y.ticks(y, 6));
        let left = 32.0 + tick_room(&y_ticks);
        let width = WIDTH - 24.0 - left;

        let top = title(&mut svg, &self.title, left, width);
        let top = legend(&mut svg, &self.legend(), [left, WIDTH - 24.0], top) + 8.0;
        let frame = Frame { left, top, width, height: PLOT_HEIGHT, x, y };
        frame.axes(&mut svg, &x_ticks, &y_ticks);
        frame.labels(&mut svg, &self.x.text(), &self.y.text(), tick_room(&y_ticks) + 12.0);
        if self.points().next().is_none() {
            frame.remark(&mut svg, "no data");
        }
        // Lines below markers, and the hollow markers above the filled ones that they may coincide with.
        let published = |series: &&Series| series.style == Style::Published;
        let apart = self.apart(&frame);
        for series in self.series.iter().filter(published) {
            let places: Vec<[f64; 2]> =
                self.places(&frame, apart, series).into_iter().map(|(place, _)| place).collect();
            svg.path(&places, false, &dashed(self.colour(&series.name)));
            for place in places {
                svg.circle(place, series.style.marker().1, r##"fill="#ffffff""##); // no dash within the hollow
            }
        }
        for series in self.series.iter().filter(|series| !published(series)) {
            self.draw(&mut svg, &frame, apart, series);
        }
        for series in self.series.iter().filter(published) {
            self.draw(&mut svg, &frame, apart, series);
        }
        let bottom = caption(&mut svg, &self.notes(apart), [left, width], frame.bottom() + 38.0);
        svg.finish(bottom + 14.0, &self.title)
    }

    fn draw(&self, svg: &mut Svg, frame: &Frame, apart: Apart, series: &Series) {
        let colour = self.colour(&series.name);
        let (marker, radius) = series.style.marker();
        for (place, point) in self.places(frame, apart, series) {
            if let Some((lo, hi)) = point.error {
                error_bar(svg, place[0], [frame.py(lo), frame.py(hi)], colour);
            }
            marker.draw(svg, place, radius, colour);
        }
    }

    /// The points of a series from left to right, and where they stand.
    fn places<'a>(&self, frame: &Frame, apart: Apart, series: &'a Series) -> Vec<([f64; 2], &'a Point)> {
        let aside = match (apart, series.style) {
            (Apart::Nobody, _) | (_, Style::Published) => 0.0,
            (Apart::Worlds, Style::Simulator) => -self.aside(frame),
            (Apart::Worlds, Style::Linux) => self.aside(frame),
            (Apart::Series, _) => self.aside(frame) * self.side(&series.name),
        };
        let mut points: Vec<&Point> = series.points.iter().filter(|point| point.is_drawable()).collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        points.into_iter().map(|point| ([frame.px(point.x) + aside, frame.py(point.y)], point)).collect()
    }

    fn points(&self) -> impl Iterator<Item = &Point> {
        self.series.iter().flat_map(|series| &series.points).filter(|point| point.is_drawable())
    }

    /// Ranges with room for markers at the rim. A y axis of amounts begins at zero unless they are all far from it.
    fn ranges(&self) -> (Range, Range) {
        let x = Range::of(self.points().map(|point| point.x)).padded(0.05);
        let amounts = self.points().flat_map(|point| {
            let (lo, hi) = point.error.unwrap_or((point.y, point.y));
            [point.y, lo, hi]
        });
        let tight = Range::of(amounts);
        let mut y = tight.padded(0.06);
        if !self.y.decades && tight.lo >= 0.0 && tight.lo < tight.hi * 0.6 {
            // Values of zero are not to lie upon the frame.
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

    /// Colours go to names in their order.
    fn colour(&self, name: &str) -> &'static str {
        let index = self.names().iter().position(|known| *known == name).unwrap_or(0);
        COLOURS[index % COLOURS.len()]
    }

    /// In the order of their first series.
    fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for series in &self.series {
            if !names.contains(&series.name.as_str()) {
                names.push(&series.name);
            }
        }
        names
    }

    fn apart(&self, frame: &Frame) -> Apart {
        let has = |style| self.series.iter().any(|series| series.style == style);
        match () {
            () if has(Style::Simulator) && has(Style::Linux) => Apart::Worlds,
            () if self.coincides(frame) => Apart::Series,
            () => Apart::Nobody,
        }
    }

    /// Whether points of two series hide each other, where all are of one kind.
    fn coincides(&self, frame: &Frame) -> bool {
        let measured = self.series.iter().filter(|series| series.style != Style::Published);
        let mut places: Vec<(&str, [f64; 2])> = measured
            .flat_map(|series| series.points.iter().map(|point| (series.name.as_str(), point)))
            .filter(|(_, point)| point.is_drawable())
            .map(|(name, point)| (name, [frame.px(point.x), frame.py(point.y)]))
            .collect();
        places.sort_by(|(_, a), (_, b)| a[0].total_cmp(&b[0]));
        places.iter().enumerate().any(|(number, (name, [x, y]))| {
            let mut beside = places.iter().skip(number + 1).take_while(|(_, [other, _])| other - x < HIDES);
            beside.any(|(other, [_, there])| name != other && (y - there).abs() < HIDES)
        })
    }

    /// Where a series stands beside the others: from -1 on the left to 1 on the right.
    fn side(&self, name: &str) -> f64 {
        let names = self.names();
        let place = names.iter().position(|known| *known == name).unwrap_or(0);
        if names.len() < 2 { 0.0 } else { place as f64 / (names.len() - 1) as f64 * 2.0 - 1.0 }
    }

    /// Less than [`ASIDE`] where x values are so dense that a point would come near a neighbor's.
    fn aside(&self, frame: &Frame) -> f64 {
        let mut xs: Vec<f64> = self.points().map(|point| frame.px(point.x)).collect();
        xs.sort_by(f64::total_cmp);
        let gaps = xs.windows(2).map(|pair| pair[1] - pair[0]).filter(|gap| *gap > 0.5);
        gaps.fold(ASIDE * 4.0, f64::min) / 4.0
    }

    fn notes(&self, apart: Apart) -> String {
        let aside = match apart {
            Apart::Worlds => {
                "Simulator and Linux stand a little left and right of their x, to be told apart."
            }
            Apart::Series => {
                "Where series coincide they stand side by side around their x, to be told apart."
            }
            Apart::Nobody => return self.caption.clone(),
        };
        format!("{}\n{aside}", self.caption)
    }
}

fn error_bar(svg: &mut Svg, x: f64, ends: [f64; 2], colour: &str) {
    let style = format!(r#"stroke="{colour}" stroke-width="1.2""#);
    svg.line([x, ends[0]], [x, ends[1]], &style);
    for y in ends {
        svg.line([x - 3.5, y], [x + 3.5, y], &style);
    }
}
