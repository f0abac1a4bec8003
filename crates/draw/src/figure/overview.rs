//! The whole run in one panel, with every handoff named.

use super::panel::{Frame, SMALL, upright};
use super::sequence::{HANDOFF, Mark, MarkKind, RIGHT, SequenceFigure};
use crate::scale::{Range, Ticks};
use crate::svg::{Anchor, Svg, Text, fit, text_width};
use std::collections::BTreeSet;
use wire::Instant;

const HEIGHT: f64 = 250.0;
/// Handoff labels stand in at most so many rows.
const ROWS: usize = 5;
const ROW_HEIGHT: f64 = 15.0;
/// No label is wider, so no late handoff needs more room beyond the frame.
const LABEL_MAX: f64 = 170.0;

/// The panel.
pub(super) struct Overview<'a> {
    figure: &'a SequenceFigure,
    frame: Frame,
    /// For each handoff in the order of time: its row, counted from the frame, and what is written there.
    labels: Vec<Option<(usize, String)>>,
}

impl<'a> Overview<'a> {
    pub(super) fn new(figure: &'a SequenceFigure) -> Self {
        let spans = figure.handoffs.iter().flat_map(|handoff| <[_; 2]>::from(handoff.span()));
        let times = figure.marks.iter().map(|mark| mark.at).chain(spans).map(Instant::as_secs_f64);
        let x = Range::of(times).padded(0.01);
        let y = Range::of(figure.marks.iter().map(|mark| mark.packet as f64)).padded(0.04);
        let left = figure.left();
        let mut frame = Frame { left, top: 0.0, width: RIGHT - left, height: HEIGHT, x, y };
        frame.width -= overhang(figure, &frame);
        let labels = place_labels(figure, &frame);
        Self { figure, frame, labels }
    }

    /// Draws the panel from `top` down and returns where it ends.
    pub(super) fn draw(mut self, svg: &mut Svg, top: f64) -> f64 {
        let rows = self.labels.iter().flatten().map(|(row, _)| row + 1).max().unwrap_or(0);
        self.frame.top = top + rows as f64 * ROW_HEIGHT + 4.0;
        self.shade(svg);
        let y_ticks = Ticks::whole(self.frame.y, 5);
        self.frame.axes(svg, &Ticks::new(self.frame.x, 10), &y_ticks);
        self.frame.labels(svg, "time (s)", &self.figure.axis, self.figure.label_room());
        self.handoffs(svg);
        if self.figure.marks.is_empty() {
            self.frame.remark(svg, "no packets");
        }
        for kind in MarkKind::ALL {
            let marks = self.figure.marks.iter().filter(|mark| mark.kind == kind);
            draw_marks(svg, self.figure, &self.frame, marks.map(|mark| (mark.at.as_secs_f64(), mark)), 0.62);
        }
        self.frame.bottom() + 46.0
    }

    fn shade(&self, svg: &mut Svg) {
        for band in self.figure.handoffs.iter().flat_map(|handoff| &handoff.outage) {
            let (from, to) = (self.frame.px(band.from.as_secs_f64()), self.frame.px(band.to.as_secs_f64()));
            let style = format!(r#"fill="{}" fill-opacity="0.5""#, band.owner.colour());
            svg.rect([from, self.frame.top, (to - from).max(0.0), HEIGHT], &style);
        }
    }

    fn handoffs(&self, svg: &mut Svg) {
        for (handoff, label) in self.figure.handoffs.iter().zip(&self.labels) {
            let x = self.frame.px(handoff.at.as_secs_f64());
            let mut top = self.frame.top;
            if let Some((row, text)) = label {
                let base = self.frame.top - 5.0 - *row as f64 * ROW_HEIGHT;
                svg.text([x + 3.0, base], Text::new(SMALL, Anchor::Start), text);
                top = base - 10.0;
            }
            svg.line([x, top], [x, self.frame.bottom()], &upright(HANDOFF));
        }
    }
}

/// A handoff's number and label, as the overview has it.
fn full_label(number: usize, label: &str) -> String {
    fit(&format!("{number} {label}"), SMALL, LABEL_MAX)
}

/// How far the labels of late handoffs reach beyond the frame.
fn overhang(figure: &SequenceFigure, frame: &Frame) -> f64 {
    let reach = (1..).zip(&figure.handoffs).map(|(number, handoff)| {
        let end =
            frame.px(handoff.at.as_secs_f64()) + 3.0 + text_width(&full_label(number, &handoff.label), SMALL);
        end - frame.right()
    });
    reach.fold(0.0, f64::max)
}

/// Rows for the labels, such that no label covers another nor the line that leads to another. Where the full label
/// finds no row its number must do, and where that finds none, the zoom panels must.
///
/// From right to left: a line up to row r bars the rows 0 to r for every label further left.
fn place_labels(figure: &SequenceFigure, frame: &Frame) -> Vec<Option<(usize, String)>> {
    let mut free_until = [f64::INFINITY; ROWS];
    let mut labels = Vec::with_capacity(figure.handoffs.len());
    for (number, handoff) in (1..).zip(&figure.handoffs).collect::<Vec<_>>().into_iter().rev() {
        let x = frame.px(handoff.at.as_secs_f64());
        let texts = [full_label(number, &handoff.label), number.to_string()];
        let placed = texts.into_iter().find_map(|text| {
            let end = x + 3.0 + text_width(&text, SMALL);
            free_until.iter().position(|limit| end + 4.0 <= *limit).map(|row| (row, text))
        });
        if let Some((row, _)) = &placed {
            free_until[..=*row].fill(x);
        }
        labels.push(placed);
    }
    labels.reverse();
    labels
}

/// Draws marks of one kind, each with its place on the x axis, leaving out those that would cover one already drawn: a long
/// run has far more marks than the panel has pixels.
pub(super) fn draw_marks<'a>(
    svg: &mut Svg,
    figure: &SequenceFigure,
    frame: &Frame,
    marks: impl Iterator<Item = (f64, &'a Mark)>,
    scale: f64,
) {
    let mut drawn = BTreeSet::new();
    svg.group("", |svg| {
        for (x, mark) in marks {
            let (marker, radius, colour) = figure.style(mark);
            let place = [frame.px(x), frame.py(mark.packet as f64)];
            // Casting saturates, so any place is a cell.
            if drawn.insert(place.map(|coordinate| (coordinate * 1.5).round() as i64)) {
                marker.draw(svg, place, radius * scale, colour);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Handoff;

    fn labels(times: impl IntoIterator<Item = u64>, label: &str) -> (Vec<f64>, Vec<Option<(usize, String)>>) {
        let mut figure = SequenceFigure::new("");
        let handoff = |ms| Handoff { at: Instant::from_millis(ms), label: label.into(), outage: Vec::new() };
        figure.handoffs = times.into_iter().map(handoff).collect();
        let overview = Overview::new(&figure);
        let xs = figure.handoffs.iter().map(|handoff| overview.frame.px(handoff.at.as_secs_f64())).collect();
        (xs, overview.labels)
    }

    #[test]
    fn no_label_covers_another_or_the_line_to_another() {
        let (xs, labels) = labels((0..40).map(|index| index * index * 100), "semisoft b1->b2");
        assert!(
            labels.iter().flatten().any(|(_, text)| text.len() > 3) && labels.iter().any(Option::is_none)
        );
        for (left, label) in labels.iter().enumerate() {
            let Some((row, text)) = label else { continue };
            let end = xs[left] + 3.0 + text_width(text, SMALL);
            for (right, other) in labels.iter().enumerate().skip(left + 1) {
                let apart = other.as_ref().is_none_or(|(above, _)| above < row || end <= xs[right]);
                assert!(apart, "{left} and {right}");
            }
        }
    }

    #[test]
    fn lone_labels_stand_in_the_lowest_row() {
        let (_, labels) = labels([0, 5000, 10000], "hard b1->b2");
        assert!(
            labels.iter().all(|label| label.as_ref().is_some_and(|(row, text)| *row == 0 && text.len() > 3))
        );
    }
}
