//! A run as files.

mod capture;
mod text;

pub use capture::{Capture, CaptureError, Direction, Interface, Seen, Snap};
pub use text::Table;
