//! Analyses runs. From the records of a run on either backend, this crate computes:
//!
//! ```text
//! records ─┬─> ledger    every packet has an end
//!          ├─> flows     what each application sent and received
//!          ├─> handoffs  every millisecond of an outage has a cause
//!          └─> run directory: tables, figures, capture; `explain`; comparison of two runs
//! ```
//!
//! [`run::simulate`] runs a plan in the simulator. Runs on Linux have a report of their backend, which is plain data
//! here ([`backend::BackendReport`]).

pub mod backend;
pub mod conformance;
pub mod decode;
mod expected;
pub mod explain;
mod failure;
mod faults;
pub mod flow;
mod fragments;
pub mod handoff;
pub mod journey;
pub mod kept;
mod kept_records;
pub mod ledger;
pub mod report;
pub mod run;
pub mod rundir;
pub mod segment;
mod unfinished;

pub use fragments::name_fragments;
pub use unfinished::remove_all as remove_unfinished;
