//! The figures of an experiment, ready to be written.

use super::Report;

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
