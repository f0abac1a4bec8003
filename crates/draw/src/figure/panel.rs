//! Parts that the figures share: a frame with axes, markers, a legend, title and caption.

use crate::scale::{Range, Ticks};
use crate::svg::{Anchor, Svg, Text, text_width, wrap};

pub(super) const TITLE: f64 = 16.0;
pub(super) const LABEL: f64 = 12.0;
pub(super) const SMALL: f64 = 11.0;

/// The box in which data are drawn, in pixels, with the ranges of its axes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) x: Range,
    pub(super) y: Range,
}

impl Frame {
    pub(super) fn px(&self, x: f64) -> f64 {
        self.left + self.width * self.x.share(x)
    }

    pub(super) fn py(&self, y: f64) -> f64 {
        self.bottom() - self.height * self.y.share(y)
    }

    pub(super) fn right(&self) -> f64 {
        self.left + self.width
    }

    pub(super) fn bottom(&self) -> f64 {
        self.top + self.height
    }

    /// Draws the grid and the border.
    pub(super) fn grid(&self, svg: &mut Svg, x: &Ticks, y: &Ticks) {
        svg.group(r##"stroke="#dddddd" stroke-width="0.8""##, |svg| {
            for value in &x.values {
                svg.line([self.px(*value), self.top], [self.px(*value), self.bottom()], "");
            }
            for value in &y.values {
                svg.line([self.left, self.py(*value)], [self.right(), self.py(*value)], "");
            }
        });
        let border = r##"fill="none" stroke="#444444" stroke-width="1""##;
        svg.rect([self.left, self.top, self.width, self.height], border);
    }

    /// Draws the tick labels of the x axis, below the frame.
    pub(super) fn x_ticks(&self, svg: &mut Svg, x: &Ticks) {
        for value in &x.values {
            let place = [self.px(*value), self.bottom() + 15.0];
            svg.text(place, Text::new(SMALL, Anchor::Middle), &x.label(*value));
        }
    }

    /// Draws the tick labels of the y axis, left of the frame.
    pub(super) fn y_ticks(&self, svg: &mut Svg, y: &Ticks) {
        for value in &y.values {
            svg.text(
                [self.left - 6.0, self.py(*value) + 4.0],
                Text::new(SMALL, Anchor::End),
                &y.label(*value),
            );
        }
    }

    /// Draws the label of the x axis, below its tick labels.
    pub(super) fn x_label(&self, svg: &mut Svg, text: &str) {
        let middle = self.left + self.width / 2.0;
        svg.text([middle, self.bottom() + 32.0], Text::new(LABEL, Anchor::Middle), text);
    }

    /// Draws the label of the y axis, `room` pixels left of the frame.
    pub(super) fn y_label(&self, svg: &mut Svg, text: &str, room: f64) {
        let place = [self.left - room, self.top + self.height / 2.0];
        svg.text(place, Text::new(LABEL, Anchor::Middle).upward(), text);
    }

    /// Draws the reason why the frame is empty, in the middle of the frame.
    pub(super) fn remark(&self, svg: &mut Svg, text: &str) {
        let place = [self.left + self.width / 2.0, self.top + self.height / 2.0];
        svg.text(place, Text::new(LABEL, Anchor::Middle).colour("#777777").halo(), text);
    }
}

/// Returns the width of a y axis' tick labels, with a margin, in pixels.
pub(super) fn tick_room(ticks: &Ticks) -> f64 {
    ticks.values.iter().map(|value| text_width(&ticks.label(*value), SMALL)).fold(0.0, f64::max) + 6.0
}

/// The shape of a data point.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Marker {
    Ring,
    Dot,
    Cross,
    Triangle,
    Diamond,
}

impl Marker {
    pub(super) fn draw(self, svg: &mut Svg, [x, y]: [f64; 2], radius: f64, colour: &str) {
        let stroked = |width: f64| format!(r#"fill="none" stroke="{colour}" stroke-width="{width}""#);
        // A thin white rim separates triangles and diamonds that touch.
        let filled = format!(r##"fill="{colour}" stroke="#ffffff" stroke-width="0.6""##);
        match self {
            Self::Ring => svg.circle([x, y], radius, &stroked(if radius < 3.0 { 0.8 } else { 1.2 })),
            Self::Dot => svg.circle([x, y], radius, &format!(r#"fill="{colour}""#)),
            Self::Cross => {
                svg.path(&[[x - radius, y - radius], [x + radius, y + radius]], false, &stroked(1.5));
                svg.path(&[[x - radius, y + radius], [x + radius, y - radius]], false, &stroked(1.5));
            }
            Self::Triangle => {
                let (half, low) = (radius * 0.95, y + radius * 0.65);
                svg.path(&[[x, y - radius], [x + half, low], [x - half, low]], true, &filled);
            }
            Self::Diamond => {
                let corners = [[x, y - radius], [x + radius, y], [x, y + radius], [x - radius, y]];
                svg.path(&corners, true, &filled);
            }
        }
    }
}

/// The symbol before a legend's text.
#[derive(Clone, Copy, Debug)]
pub(super) enum Key {
    /// A marker with this radius and colour.
    Marker(Marker, f64, &'static str),
    /// A marker with this radius and colour, on a dashed line.
    Dashed(Marker, f64, &'static str),
    /// A line in this colour, with dashes in SVG's notation; empty is solid.
    Line(&'static str, &'static str),
    /// A shaded band in this colour.
    Band(&'static str),
    /// A vertical dashed line in this colour.
    Upright(&'static str),
    /// No symbol: the text is a heading for the entries after it.
    Heading,
}

/// Draws the legend from `top` down, within `left` and `right`, and returns its lower end.
pub(super) fn legend(svg: &mut Svg, entries: &[(Key, String)], [left, right]: [f64; 2], top: f64) -> f64 {
    let (line, gap) = (19.0, 18.0);
    let (mut x, mut y) = (left, top + line / 2.0);
    for (key, text) in entries {
        let heads_a_line = matches!(key, Key::Heading);
        let swatch = match key {
            Key::Heading => 0.0,
            Key::Dashed(..) => 48.0,
            _ => 26.0,
        };
        let width = swatch + text_width(text, LABEL);
        if x > left && (heads_a_line || x + width > right) {
            (x, y) = (left, y + line);
        }
        key.draw(svg, [x, y]);
        svg.text([x + swatch, y + 4.0], Text::new(LABEL, Anchor::Start), text);
        x += width + gap;
    }
    if entries.is_empty() { top } else { y + line / 2.0 }
}

impl Key {
    fn draw(self, svg: &mut Svg, [x, y]: [f64; 2]) {
        let middle = [x + 10.0, y];
        match self {
            Self::Marker(marker, radius, colour) => marker.draw(svg, middle, radius, colour),
            Self::Dashed(marker, radius, colour) => {
                // The line is wide enough for dashes on both sides of the marker.
                let middle = [x + 21.0, y];
                svg.line([x, y], [x + 42.0, y], &dashed(colour, 0));
                svg.circle(middle, radius, r##"fill="#ffffff""##);
                marker.draw(svg, middle, radius, colour);
            }
            Self::Line(colour, dashes) => {
                let style = format!(r#"stroke="{colour}" stroke-width="2" stroke-dasharray="{dashes}""#);
                let solid = format!(r#"stroke="{colour}" stroke-width="2""#);
                svg.line([x - 3.0, y], [x + 21.0, y], if dashes.is_empty() { &solid } else { &style });
            }
            Self::Band(colour) => svg.rect([x, y - 6.0, 20.0, 12.0], &format!(r#"fill="{colour}""#)),
            Self::Heading => {}
            Self::Upright(colour) => svg.line([x + 10.0, y - 7.0], [x + 10.0, y + 7.0], &upright(colour)),
        }
    }
}

/// Returns the style of a dashed line. The dashes of line `number` are in the gaps of line `number + 1`, so that both
/// lines are visible if they coincide.
pub(super) fn dashed(colour: &str, number: usize) -> String {
    let offset = if number % 2 == 1 { r#" stroke-dashoffset="5""# } else { "" };
    format!(r#"fill="none" stroke="{colour}" stroke-width="1.3" stroke-dasharray="5 5"{offset}"#)
}

pub(super) fn upright(colour: &str) -> String {
    format!(r#"stroke="{colour}" stroke-width="1.2" stroke-dasharray="4 2""#)
}

/// Draws the title at the top, and returns its lower end.
pub(super) fn title(svg: &mut Svg, text: &str, left: f64, width: f64) -> f64 {
    let mut y = 10.0;
    for line in wrap(text, TITLE * 1.1, width) {
        y += TITLE + 5.0;
        svg.text([left, y - 3.0], Text::new(TITLE, Anchor::Start).bold(), &line);
    }
    y + 4.0
}

/// Returns the note about handoff lines without room for their labels. `count` is their number, with details.
pub(super) fn unlabelled_note(count: &str) -> String {
    format!("Lines that have no room for their labels: {count}.")
}

/// Returns the note about flows, or lines of flows, that are not drawn.
pub(super) fn hidden_note(flows: usize) -> String {
    format!("Flows or connections that are not drawn, but are in the CSV file: {flows}.")
}

/// Draws the caption from `top` down, and returns its lower end.
pub(super) fn caption(svg: &mut Svg, text: &str, [left, width]: [f64; 2], top: f64) -> f64 {
    let mut y = top;
    for line in text.lines().flat_map(|line| wrap(line, SMALL, width)) {
        y += SMALL + 5.0;
        svg.text([left, y], Text::new(SMALL, Anchor::Start).colour("#555555"), &line);
    }
    y
}
