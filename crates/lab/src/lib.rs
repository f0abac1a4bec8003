//! The lab: it takes one scenario file and produces one run directory, for either backend.
//!
//! ```text
//! scenario ─> plan ─┬─> sim   ─┬─> records ─> ledger    every packet has an end
//!                   └─> linux ─┘              handoffs  every millisecond of an outage has an owner
//!                                             figures, capture, reports, comparison, reproduction
//! ```

pub mod agree;
mod application;
pub mod backend;
pub mod batch;
pub mod catalogue;
pub mod compare;
pub mod compare_worlds;
pub mod control;
pub mod diff;
mod drawn;
pub mod event;
pub mod explain;
mod failure;
pub mod flow;
pub mod handoff;
pub mod journey;
pub mod kept;
mod kept_records;
pub mod ledger;
pub mod linux;
pub mod plan;
pub mod program;
pub mod report;
pub mod reproduce;
pub mod run;
pub mod rundir;
pub mod scenario;
mod segment;
pub mod stats;
pub mod sweep;
pub mod tree;
mod unfinished;

pub use event::Event;
pub use plan::Plan;
pub use scenario::{Scenario, ScenarioError};
pub use stats::Summary;
pub use unfinished::remove_all as remove_unfinished;
