//! The figures of an experiment, as file contents.

use super::{Experiment, Point, Report};
use crate::drawn::{style, whisker};
use crate::stats::Interval;
use draw::{DistributionFigure, PointFigure, Sample, Series, Style, TimeFigure};

/// One figure: the contents of two files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Figure {
    /// The files' name without extension, relative to the output directory.
    pub name: String,
    /// The drawing, as SVG.
    pub svg: String,
    /// The plotted numbers, as CSV.
    pub csv: String,
}

/// A figure before it is written.
pub(crate) enum Drawn {
    /// Values as a function of a parameter.
    Points(PointFigure),
    /// The distribution of each series.
    Distribution(DistributionFigure),
    /// Values over the time of runs.
    Time(TimeFigure),
}

impl Drawn {
    const fn caption(&mut self) -> &mut String {
        match self {
            Self::Points(figure) => &mut figure.caption,
            Self::Distribution(figure) => &mut figure.caption,
            Self::Time(figure) => &mut figure.caption,
        }
    }

    fn written(&self) -> [String; 2] {
        match self {
            Self::Points(figure) => [figure.svg(), figure.csv()],
            Self::Distribution(figure) => [figure.svg(), figure.csv()],
            Self::Time(figure) => [figure.svg(), figure.csv()],
        }
    }
}

/// Returns one point of a figure, with its confidence interval.
pub(crate) fn draw_at(x: f64, y: f64, interval: Option<Interval>) -> draw::Point {
    draw::Point { x, y, whisker: interval.map(whisker) }
}

/// Returns one series of a figure.
pub(crate) fn line(name: &str, style: Style, points: impl Iterator<Item = draw::Point>) -> Series {
    Series { name: name.to_owned(), style, points: points.collect() }
}

/// Returns the distribution of a metric of a point, under `name`: a sample for each backend with valid values, and one for
/// the published value.
pub(crate) fn samples(report: &Report, point: &Point, name: &str, metric: &str) -> Vec<Sample> {
    let measured = report.backends.iter().filter_map(|results| {
        let measured = results.named(&point.label).filter(|measured| measured.is_valid())?;
        Some(Sample::new(name, style(results.backend), measured.samples.get(metric)?.clone()))
    });
    let published = point.published(metric).map(|one| Sample::new(name, Style::Published, vec![one.value]));
    measured.chain(published).collect()
}

/// The largest number of figures of an experiment.
const MOST: usize = 9;

/// Returns the name of a figure: the experiment's id for the first, with a number from 2 for the others.
fn name(experiment: &Experiment, number: usize) -> String {
    if number == 1 { experiment.id.to_owned() } else { format!("{}-{number}", experiment.id) }
}

/// Returns all names that figures of an experiment may have.
pub fn figure_names(experiment: &'static Experiment) -> impl Iterator<Item = String> {
    (1..=MOST).map(|number| name(experiment, number))
}

/// Draws all figures of a report, each as SVG and as CSV. Invalid points are not drawn, and the captions name them.
pub fn figures(report: &Report) -> Vec<Figure> {
    let (valid, invalid) = report.divided();
    let drawn = (report.experiment.figures)(&valid);
    debug_assert!(drawn.len() <= MOST);
    (1..)
        .zip(drawn)
        .map(|(i, mut figure)| {
            if !invalid.is_empty() {
                let caption = figure.caption();
                *caption = format!("{caption} Not drawn, because a run is invalid: {}.", invalid.join("; "));
            }
            let [svg, csv] = figure.written();
            Figure { name: name(report.experiment, i), svg, csv }
        })
        .collect()
}
