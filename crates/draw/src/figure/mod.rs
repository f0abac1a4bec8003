//! Figures as SVG. All except [`BarFigure`] also give their numbers as CSV.

mod bars;
mod distribution;
mod marks;
mod overview;
mod owner;
mod panel;
mod points;
mod sequence;
mod sheet;
mod side_by_side;
mod steps;
mod time;
mod zoom;

pub use bars::{Bar, BarFigure, BarGroup};
pub use distribution::{DistributionFigure, DistributionPanel, Sample};
pub use owner::Owner;
pub use points::{Axis, Point, PointFigure, Series, Style, Whisker};
pub use sequence::{
    Band, Cost, Counts, FlowTrace, Handoff, HoleBand, Mark, MarkKind, Noticed, SequenceFigure, Step,
};
pub use side_by_side::SideBySideFigure;
pub use time::{Joined, TimeFigure, TimeLine, TimePanel, TimeWindow};
