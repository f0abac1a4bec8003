//! All scenarios that a name can mean: those of the benchmark, built-in ones, and files.

use crate::contest;
use scenario::{Scenario, ScenarioError};

/// Returns the name and text of the scenario `name`: one of the benchmark (`compare/...`), a built-in one, or the file
/// with the path `name`.
///
/// # Errors
///
/// There is no such scenario, or the file cannot be read.
pub fn find(name: &str) -> Result<(String, String), ScenarioError> {
    match contest::scenario(name) {
        Some(text) => Ok((format!("{name} (built in)"), text.to_owned())),
        None => Scenario::find_beside(name, &[contest::PATTERN]),
    }
}
