//! Draws the marks of a flow in a frame.

use super::panel::Frame;
use super::sequence::{FlowTrace, Mark};
use crate::svg::Svg;
use std::collections::BTreeSet;

/// Draws marks of one kind, each with its x value. A mark is omitted if its coordinates, rounded to 2/3 of a pixel, are
/// those of an earlier mark: a long run has far more marks than the panel has pixels. `scale` multiplies the radius of
/// the marks.
pub(super) fn draw_marks<'a>(
    svg: &mut Svg,
    flow: &FlowTrace,
    frame: &Frame,
    marks: impl Iterator<Item = (f64, &'a Mark)>,
    scale: f64,
) {
    let mut drawn = BTreeSet::new();
    let per = flow.scale();
    svg.group("", |svg| {
        for (x, mark) in marks {
            let (marker, radius, colour) = flow.style(mark);
            let place = [frame.px(x), frame.py(mark.place as f64 / per)];
            // The cast saturates, so every place is valid.
            if drawn.insert(place.map(|coordinate| (coordinate * 1.5).round() as i64)) {
                marker.draw(svg, place, radius * scale, colour);
            }
        }
    });
}
