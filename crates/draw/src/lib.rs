//! A run as the contents of files: a pcapng capture, figures as SVG with the CSV behind each, tables of text.
//!
//! Pure: values in, `String` or `Vec<u8>` out. No file is touched and no clock read, and equal values make equal
//! bytes, so whatever is drawn can be compared.
//!
//! The SVG is written here rather than by a plotting library. The best of them, `kuva`, was tried with a sequence of
//! two handoffs: labels of neighboring handoffs fell onto each other, legends cannot show a hollow marker, packet
//! numbers got ticks at halves, a shaded region cannot carry its owner's name, and coordinates came out with
//! seventeen digits. The elements that these figures need are few.

mod capture;
mod csv;
mod figure;
mod scale;
mod svg;
mod text;

pub use capture::{Capture, CaptureError, Direction, Interface, Seen, Snap};
pub use csv::Csv;
pub use figure::{
    Axis, Band, Bar, BarFigure, BarGroup, BesideFigure, Cost, Counts, DistributionFigure, DistributionPanel,
    FlowTrace, Handoff, HoleBand, Joined, Mark, MarkKind, Noticed, Owner, Point, PointFigure, Sample,
    SequenceFigure, Series, Step, Style, TimeFigure, TimeLine, TimePanel, TimeWindow, Whisker,
};
pub use text::Table;
