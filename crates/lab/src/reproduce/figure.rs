//! The figures of an experiment, ready to be written.

use super::{Experiment, Report};
use crate::drawn::whisker;
use crate::stats::Interval;
use draw::{DistributionFigure, PointFigure, Series, Style};

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

/// What an experiment draws.
pub(crate) enum Drawn {
    /// Values over what was set.
    Points(PointFigure),
    /// Every value of each series.
    Distribution(DistributionFigure),
}

impl Drawn {
    fn written(&self) -> [String; 2] {
        match self {
            Self::Points(figure) => [figure.svg(), figure.csv()],
            Self::Distribution(figure) => [figure.svg(), figure.csv()],
        }
    }
}

/// One point of a figure, with its interval.
pub(super) fn draw_at(x: f64, y: f64, interval: Option<Interval>) -> draw::Point {
    draw::Point { x, y, whisker: interval.map(whisker) }
}

/// One series of a figure.
pub(super) fn line(name: &str, style: Style, points: impl Iterator<Item = draw::Point>) -> Series {
    Series { name: name.to_owned(), style, points: points.collect() }
}

/// Figures that an experiment has at most.
const MOST: usize = 9;

/// The first bears the experiment's id, the others are numbered.
fn name(experiment: &Experiment, number: usize) -> String {
    if number == 1 { experiment.id.to_owned() } else { format!("{}-{number}", experiment.id) }
}

/// The names that figures of an experiment may have.
pub fn figure_names(experiment: &'static Experiment) -> impl Iterator<Item = String> {
    (1..=MOST).map(|number| name(experiment, number))
}

/// All figures of a report.
pub fn figures(report: &Report) -> Vec<Figure> {
    let drawn = (report.experiment.figures)(report);
    debug_assert!(drawn.len() <= MOST);
    (1..)
        .zip(drawn)
        .map(|(i, figure)| {
            let [svg, csv] = figure.written();
            Figure { name: name(report.experiment, i), svg, csv }
        })
        .collect()
}
