//! The table `[sweep]` of a scenario. The plan of a single run ignores it.

use super::Setting;
use super::document::read;
use super::error::{ScenarioError, Source};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Many runs of the scenario: a grid of settings, and repetitions of each point of the grid.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Table")]
pub struct SweepTable {
    /// The number of runs of each point, each with the next seed [default: 10].
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub repetitions: usize,
    /// The varied settings: for each key, a list of values. The key is written as in `--set`, in quotation marks if it
    /// has a dot.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Vec<serde_json::Value>>")]
    pub set: toml::map::Map<String, toml::Value>,
}

const fn ten() -> usize {
    10
}

impl Default for SweepTable {
    fn default() -> Self {
        Self { repetitions: ten(), set: toml::map::Map::new() }
    }
}

/// The table `[sweep]` of one scenario, with the text of the scenario for the positions of errors.
pub struct SweepPart<'a> {
    source: Source<'a>,
    /// The table, or `None` if the scenario has no table `[sweep]`.
    pub table: Option<SweepTable>,
}

impl<'a> SweepPart<'a> {
    /// Reads the table `[sweep]` from the text of a scenario, after it has applied the settings whose path begins
    /// with `sweep`.
    ///
    /// # Errors
    ///
    /// The text is not TOML, a setting cannot be applied, or the table is malformed.
    pub fn read(file: &'a str, text: &'a str, settings: &[Setting]) -> Result<Self, ScenarioError> {
        let of_sweep = settings.iter().filter(|setting| setting.is_below("sweep"));
        let (source, mut document) = read(file, text, of_sweep)?;
        let mut part = Self { source, table: None };
        if let Some(table) = document.remove("sweep") {
            let table = serde_path_to_error::deserialize(table).map_err(|error| {
                let path = error.path().to_string();
                part.wrong(&if path == "." { path } else { format!(".{path}") }, error.inner().message())
            })?;
            part.table = Some(table);
        }
        Ok(part)
    }

    /// Returns an error at a key of the table `[sweep]`. `path` is empty, or begins with a dot.
    pub fn wrong(&self, path: &str, problem: &str) -> ScenarioError {
        self.source.at_path(&format!("sweep{path}"), problem)
    }
}
