//! Figures, each as an SVG and as the CSV that holds the same numbers.

mod bars;
mod beside;
mod distribution;
mod overview;
mod panel;
mod points;
mod sequence;
mod time;
mod zoom;

pub use bars::{Bar, BarFigure, BarGroup};
pub use beside::BesideFigure;
pub use distribution::{DistributionFigure, DistributionPanel, Sample};
pub use points::{Axis, Point, PointFigure, Series, Style};
pub use sequence::{Band, Cost, Counts, FlowTrace, Handoff, Mark, MarkKind, Noticed, Owner, SequenceFigure};
pub use time::{Joined, TimeFigure, TimeLine, TimePanel};
