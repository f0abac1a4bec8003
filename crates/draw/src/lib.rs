//! A run as the contents of files: a pcapng capture, figures as SVG (most of them also as CSV), text tables.
//!
//! It also reads the packets of capture files.
//!
//! This crate is pure: values in, `String` or `Vec<u8>` out. It does not access files or a clock. Equal values give
//! equal bytes, so outputs can be compared.
//!
//! The SVG is written here, not by a plotting library. The best candidate, `kuva`, was tried with a sequence of two
//! handoffs. Labels of neighboring handoffs overlapped, legends had no hollow markers, and packet numbers had ticks at
//! halves. A shaded region could not carry a label, and coordinates had seventeen digits. The figures of this crate
//! need only a few SVG elements.

mod capture;
mod csv;
mod figure;
mod scale;
mod svg;
mod text;

pub use capture::{Capture, CaptureError, Captured, Direction, Interface, ReadError, Seen, Snap};
pub use capture::{Packets as CapturedPackets, is_capture, read as read_capture};
pub use csv::Csv;
pub use figure::{
    Axis, Band, Bar, BarFigure, BarGroup, Cost, Counts, DistributionFigure, DistributionPanel, FlowTrace,
    Handoff, HoleBand, Joined, Mark, MarkKind, Noticed, Owner, Point, PointFigure, Sample, SequenceFigure,
    Series, SideBySideFigure, Step, Style, TimeFigure, TimeLine, TimePanel, TimeWindow, Whisker,
};
pub use text::Table;
