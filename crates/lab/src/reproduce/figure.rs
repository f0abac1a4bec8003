//! The figures of an experiment, ready to be written.

use super::Report;
use crate::stats::Interval;
use draw::{Series, Style};

/// One figure: the contents of two files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Figure {
    /// The files' name without its end, below the output directory.
    pub name: String,
    /// The drawing.
    pub svg: String,
    /// The numbers behind it.
    pub csv: String,
}

/// One point of a figure, with its interval.
pub(super) fn draw_at(x: f64, y: f64, interval: Option<Interval>) -> draw::Point {
    draw::Point { x, y, error: interval.map(|interval| (interval.lo, interval.hi)) }
}

/// One series of a figure.
pub(super) fn line(name: &str, style: Style, points: impl Iterator<Item = draw::Point>) -> Series {
    Series { name: name.to_owned(), style, points: points.collect() }
}

/// All figures of a report; the first bears the experiment's id, the others are numbered.
pub fn figures(report: &Report) -> Vec<Figure> {
    let name = |number: usize| match number {
        1 => report.experiment.id.to_owned(),
        _ => format!("{}-{number}", report.experiment.id),
    };
    let drawn = (report.experiment.figures)(report);
    (1..)
        .zip(drawn)
        .map(|(i, figure)| Figure { name: name(i), svg: figure.svg(), csv: figure.csv() })
        .collect()
}
