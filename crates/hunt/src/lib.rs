//! A search for violated rules: draws scenarios from seeds, runs them in the simulator, and checks them from outside
//! the roles.
//!
//! ```text
//! seed ─> draw ─> draft ─> write ─> scenario file ─> plan ─> sim ─> watch ─> facts ─> judge ─> violations
//!                   └────────────────────────── shrink <──────────────────────────────────────────┘
//! ```

mod caches;
mod dice;
pub mod draft;
pub mod draw;
pub mod facts;
pub mod fault;
mod interfaces;
pub mod judge;
mod kept;
pub mod linux;
mod mobile_ip;
pub mod options;
pub mod plant;
mod reach;
mod registrations;
pub mod run;
pub mod search;
pub mod shrink;
pub mod timers;
pub mod watch;
pub mod write;

pub use draft::{Draft, Protocol};
pub use judge::{Judge, Violation};
