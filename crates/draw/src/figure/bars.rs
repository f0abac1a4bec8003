//! Outages beside each other: a bar for each, in the colours of its owners.

use super::panel::{Key, LABEL, SMALL, caption, legend, title};
use super::sequence::Owner;
use crate::svg::{Anchor, Svg, Text, text_width};

const WIDTH: f64 = 900.0;
const LEFT: f64 = 16.0;
const BAR: f64 = 15.0;
const STEP: f64 = 21.0;
/// What stands behind a bar has this much room.
const ROOM: f64 = 190.0;

/// One outage.
#[derive(Clone, PartialEq, Debug)]
pub struct Bar {
    /// Whose.
    pub label: String,
    /// Its parts in milliseconds, in the order of time; empty if there was none, or if it has no end.
    pub parts: Vec<(Owner, f64)>,
    /// What stands behind it.
    pub note: String,
}

/// Outages of one kind, over one scale.
#[derive(Clone, PartialEq, Debug)]
pub struct BarGroup {
    /// Above them.
    pub title: String,
    /// From top to bottom.
    pub bars: Vec<Bar>,
}

/// Groups of outages.
#[derive(Clone, PartialEq, Debug)]
pub struct BarFigure {
    /// Above the figure.
    pub title: String,
    /// From top to bottom, each with a scale of its own.
    pub groups: Vec<BarGroup>,
    /// Below the figure.
    pub caption: String,
}

impl Bar {
    fn whole(&self) -> f64 {
        self.parts.iter().map(|(_, part)| drawable(*part)).sum()
    }
}

/// What is no length is drawn as none.
const fn drawable(part: f64) -> f64 {
    if part.is_finite() { part.max(0.0) } else { 0.0 }
}

impl BarFigure {
    /// The drawing.
    #[must_use]
    pub fn svg(&self) -> String {
        let mut svg = Svg::new(WIDTH);
        let bars = || self.groups.iter().flat_map(|group| &group.bars);
        let labels = bars().map(|bar| text_width(&bar.label, LABEL)).fold(0.0, f64::max).min(WIDTH / 3.0);
        let from = LEFT + labels + 10.0;
        let mut y = title(&mut svg, &self.title, LEFT, WIDTH - LEFT * 2.0);
        let owns = |owner: &&Owner| {
            bars().any(|bar| bar.parts.iter().any(|(one, part)| one == *owner && *part > 0.0))
        };
        let owners = Owner::ALL.iter().filter(owns);
        let entries: Vec<(Key, String)> =
            owners.map(|owner| (Key::Band(owner.colour()), owner.name().to_owned())).collect();
        y = legend(&mut svg, &entries, [LEFT, WIDTH - LEFT], y) + 4.0;
        for group in &self.groups {
            y += LABEL + 12.0;
            svg.text([LEFT, y], Text::new(LABEL, Anchor::Start).bold(), &group.title);
            y += 8.0;
            let longest = group.bars.iter().map(Bar::whole).fold(0.0, f64::max);
            let scale = if longest > 0.0 { (WIDTH - LEFT - ROOM - from).max(1.0) / longest } else { 0.0 };
            for bar in &group.bars {
                bar.draw(&mut svg, [from, y], scale);
                y += STEP;
            }
        }
        let bottom = caption(&mut svg, &self.caption, [LEFT, WIDTH - LEFT * 2.0], y + 4.0);
        svg.finish(bottom + 14.0, &self.title)
    }
}

impl Bar {
    fn draw(&self, svg: &mut Svg, [from, y]: [f64; 2], scale: f64) {
        let base = y + BAR - 3.5;
        svg.text([from - 8.0, base], Text::new(LABEL, Anchor::End), &self.label);
        svg.line([from, y - 2.0], [from, y + BAR + 2.0], r##"stroke="#444444" stroke-width="1""##);
        let mut x = from;
        for (owner, part) in &self.parts {
            let width = drawable(*part) * scale;
            svg.rect([x, y, width, BAR], &format!(r#"fill="{}""#, owner.colour()));
            x += width;
        }
        svg.text([x + 6.0, base], Text::new(SMALL, Anchor::Start), &self.note);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(parts: Vec<(Owner, f64)>) -> String {
        let bar = Bar { label: "a & b".to_owned(), parts, note: "7 ms".to_owned() };
        let group = BarGroup { title: "gap".to_owned(), bars: vec![bar] };
        BarFigure { title: "outages".to_owned(), groups: vec![group], caption: String::new() }.svg()
    }

    #[test]
    fn a_bar_has_its_parts_in_their_colours_one_behind_the_other() {
        let svg = figure(vec![(Owner::Link, 2.0), (Owner::Recovery, 6.0)]);
        let widths: Vec<f64> = [Owner::Link, Owner::Recovery]
            .iter()
            .map(|owner| {
                let end = format!("fill=\"{}\"/>", owner.colour());
                // The last is the bar's; the first is the legend's.
                let line = svg.lines().rfind(|line| line.contains(&end)).unwrap();
                line.split("width=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
            })
            .collect();
        assert!((widths[1] / widths[0] - 3.0).abs() < 0.01, "{widths:?}");
        assert!(svg.contains("a &amp; b") && svg.contains("7 ms") && svg.contains(">recovery<"));
    }

    #[test]
    fn what_cannot_be_drawn_leaves_no_trace() {
        for parts in [vec![], vec![(Owner::Link, f64::NAN)], vec![(Owner::Link, f64::INFINITY)]] {
            let svg = figure(parts);
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }
}
