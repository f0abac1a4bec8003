//! A search for violated promises: whole scenarios are drawn from seeds, run in the simulator, and judged from outside the roles.
//!
//! ```text
//! seed ─> draw ─> draft ─> write ─> scenario file ─> plan ─> sim ─> watch ─> facts ─> judge ─> violations
//!                   └────────────────────────── shrink <──────────────────────────────────────────┘
//! ```

pub mod draft;
pub mod draw;
pub mod facts;
pub mod fault;
pub mod judge;
pub mod linux;
pub mod plant;
mod reach;
pub mod run;
pub mod search;
pub mod shrink;
pub mod timers;
pub mod watch;
pub mod write;

pub use draft::{Draft, Protocol};
pub use judge::{Judge, Violation};
