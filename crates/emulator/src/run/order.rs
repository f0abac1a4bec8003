//! The order to pid 1 of a lab: the plan that it runs.

use super::{LinuxError, Programs};
use scenario::Plan;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The content of the file `plan.toml` in the lab's directory.
#[derive(Serialize, Deserialize)]
pub(crate) struct Order {
    pub(super) name: String,
    pub(super) document: String,
    pub(super) seed: u64,
    pub(super) wayfare: PathBuf,
    /// Whether to measure the lateness of this machine without daemons, even if the run's timing was right.
    pub(super) control: bool,
    pub(super) instead: Option<(String, Vec<String>)>,
}

impl Order {
    pub(crate) fn new(plan: &Plan, programs: &Programs, control: bool) -> Self {
        Self {
            name: plan.name.clone(),
            document: plan.document.clone(),
            seed: plan.seed,
            wayfare: programs.wayfare.clone(),
            control,
            instead: programs.instead.clone(),
        }
    }

    pub(crate) fn to_text(&self) -> Result<String, LinuxError> {
        toml::to_string(self).map_err(|error| LinuxError::Lab(format!("the plan cannot be written: {error}")))
    }
}
