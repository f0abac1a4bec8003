//! Figures, each as an SVG and as the CSV that holds the same numbers.

mod bars;
mod distribution;
mod overview;
mod panel;
mod points;
mod sequence;
mod zoom;

pub use bars::{Bar, BarFigure, BarGroup};
pub use distribution::{DistributionFigure, DistributionPanel, Sample};
pub use points::{Axis, Point, PointFigure, Series, Style};
pub use sequence::{Band, Handoff, Mark, MarkKind, Owner, SequenceFigure};
