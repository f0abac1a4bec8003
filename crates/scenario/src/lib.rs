//! A scenario file, and the plan that follows from it.
//!
//! A scenario has names, rules and defaults ([`Scenario`]). A [`Plan`] describes every host, link and event of one run.
//! The simulator is built by [`Plan::watched`]; Linux uses the configuration of each host. The simulator cannot run
//! programs, and Linux cannot run a tree.

mod application;
mod epoch;
mod event;
mod file;
mod plan;
mod program;
pub mod tree;

pub use application::Application;
pub use epoch::EPOCH;
pub use event::{PlannedEvent, is_of_event};
pub use file::{
    BUILT_IN, EventTable, RandomTable, Repetition, Scenario, ScenarioError, Setting, Step, SweepPart,
    SweepTable, as_grid, did_you_mean, has_keys, host_config, host_config_error, is_shifted, overwritten,
    parse_rate, redacted, repeated, roles_of, schema, stem, warnings,
};
pub use plan::{HostPlan, Plan, PortPlan};
pub use program::Program;
