//! Scenario files: what a user writes.

mod course;
mod error;
mod expand;
mod networks;
mod path;
mod protocol;
mod settings;
pub(crate) mod units;

pub use error::ScenarioError;
pub use settings::Setting;
pub(crate) use settings::roles_of;

use crate::Plan;
use crate::program::Program;
use crate::tree::TreeTable;
use error::Source;
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::{Spanned, Table};
use wire::{Duration, Ipv4Addr, Prefix};

/// A scenario as it stands in its file, with names where a plan has numbers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What it is about, in a line.
    pub about: String,
    #[serde(deserialize_with = "node::config::span")]
    pub(crate) duration: Duration,
    #[serde(default)]
    pub(crate) wire: BTreeMap<String, Wire>,
    #[serde(default)]
    pub(crate) cell: BTreeMap<String, Cell>,
    #[serde(default)]
    pub(crate) radio: Radio,
    #[serde(rename = "cellular-ip")]
    pub(crate) cellular_ip: Option<protocol::CellularIp>,
    #[serde(rename = "indirect-tcp")]
    pub(crate) indirect_tcp: Option<protocol::IndirectTcp>,
    #[serde(rename = "mobile-ip")]
    pub(crate) mobile_ip: Option<protocol::MobileIp>,
    pub(crate) sigma: Option<protocol::Sigma>,
    #[serde(default)]
    pub(crate) host: toml::map::Map<String, toml::Value>,
    /// Hosts by the thousand, in the place of all that has names: see [`crate::tree`].
    pub(crate) tree: Option<TreeTable>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wire {
    pub(crate) ends: [String; 2],
    #[serde(deserialize_with = "units::rate")]
    pub(crate) rate: u64,
    /// One for both ways, or one for each: from the first end to the second, and back.
    #[serde(deserialize_with = "units::delay")]
    pub(crate) delay: [Duration; 2],
    #[serde(default = "units::wire_queue")]
    pub(crate) queue: usize,
    #[serde(default = "units::ethernet_mtu")]
    pub(crate) mtu: u16,
    #[serde(default)]
    pub(crate) loss: f64,
    #[serde(default)]
    pub(crate) duplicate: f64,
    #[serde(default)]
    pub(crate) burst: Option<Burst>,
    /// Its IP network, as `10.1.0.0/24`; see [`networks`].
    #[serde(default, deserialize_with = "node::config::some_text")]
    pub(crate) net: Option<Prefix>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cell {
    pub(crate) station: String,
    #[serde(deserialize_with = "units::rate")]
    pub(crate) rate: u64,
    #[serde(default, deserialize_with = "node::config::span")]
    pub(crate) delay: Duration,
    #[serde(default, deserialize_with = "node::config::span")]
    pub(crate) per_frame: Duration,
    #[serde(default = "units::radio_queue")]
    pub(crate) queue: usize,
    #[serde(default = "units::ethernet_mtu")]
    pub(crate) mtu: u16,
    #[serde(default)]
    pub(crate) loss: f64,
    #[serde(default)]
    pub(crate) duplicate: f64,
    #[serde(default)]
    pub(crate) burst: Option<Burst>,
    /// Where its base station stands, in metres.
    pub(crate) position: Option<path::Place>,
    /// Its IP network, as `10.1.0.0/24`; see [`networks`].
    #[serde(default, deserialize_with = "node::config::some_text")]
    pub(crate) net: Option<Prefix>,
}

/// Losses that come together; see [`link::Burst`].
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Burst {
    /// The chance to turn bad before a frame.
    pub(crate) enter: f64,
    /// The chance to turn good again.
    pub(crate) leave: f64,
    /// The chance that a frame is lost while it is bad.
    #[serde(default = "units::surely")]
    pub(crate) loss: f64,
}

/// Radios of mobile hosts, and how signals weaken.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Radio {
    #[serde(default, deserialize_with = "node::config::span")]
    pub(crate) retune: Duration,
    /// How long until a radio hears anything when the run begins; as long as a change of cells, if none is given.
    #[serde(default, deserialize_with = "node::config::some_span")]
    pub(crate) attach: Option<Duration>,
    #[serde(default, deserialize_with = "node::config::span")]
    pub(crate) excursion: Duration,
    /// What is heard of a base station at one metre, in dBm: 15 dBm sent, as by a card of 802.11b, less 40 dB.
    #[serde(default = "units::at_1m")]
    pub(crate) at_1m: f64,
    /// How fast signals weaken with distance: 2 in free space, up to 6 within buildings.
    #[serde(default = "units::exponent")]
    pub(crate) exponent: f64,
}

impl Default for Radio {
    fn default() -> Self {
        let (at_1m, exponent) = (units::at_1m(), units::exponent());
        Self { retune: Duration::ZERO, attach: None, excursion: Duration::ZERO, at_1m, exponent }
    }
}

/// A host, before its roles are expanded.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Host {
    pub(crate) address: Option<Ipv4Addr>,
    /// How many radios it has, if it is mobile: one. They are `air`, `air2` and so on.
    #[serde(default = "units::one")]
    pub(crate) radios: usize,
    /// How strongly its radios hear each cell, by the cell's name: points in time, with dBm.
    #[serde(default)]
    pub(crate) course: BTreeMap<String, Vec<Point>>,
    /// Where it goes, from which follows what its radios hear; see [`path`].
    pub(crate) path: Option<path::Way>,
    /// The neighbor that takes what no other route takes.
    pub(crate) default_route: Option<String>,
    /// How its TCP behaves: as in the host's configuration.
    #[serde(default)]
    pub(crate) tcp: Table,
    #[serde(default)]
    pub(crate) role: Vec<Table>,
    /// What runs on it beside its roles, on Linux.
    #[serde(default)]
    pub(crate) program: Vec<Program>,
}

/// A point of a course: a time, and dBm.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Point(
    #[serde(deserialize_with = "node::config::span")] pub(crate) Duration,
    pub(crate) i16,
);

/// Scenarios that are compiled in, by the name that `list` prints.
pub const BUILT_IN: &[(&str, &str)] = &[
    ("first", include_str!("../../../../scenarios/first.toml")),
    ("bulk", include_str!("../../../../scenarios/bulk.toml")),
    ("mobile-ip/download", include_str!("../../../../scenarios/mobile-ip/download.toml")),
    ("mobile-ip/drive", include_str!("../../../../scenarios/mobile-ip/drive.toml")),
    ("indirect-tcp/handoff-time", include_str!("../../../../scenarios/indirect-tcp/handoff-time.toml")),
    ("sigma/handoff", include_str!("../../../../scenarios/sigma/handoff.toml")),
    ("sigma/mobile-ip", include_str!("../../../../scenarios/sigma/mobile-ip.toml")),
    ("cellular-ip/udp-loss", include_str!("../../../../scenarios/cellular-ip/udp-loss.toml")),
    ("scale/tree", include_str!("../../../../scenarios/scale/tree.toml")),
    ("scale/transfer", include_str!("../../../../scenarios/scale/transfer.toml")),
];

impl Scenario {
    /// The text of a scenario: compiled in under this name, or in the file of this path.
    pub fn find(name: &str) -> Result<(String, String), ScenarioError> {
        if let Some((_, text)) = BUILT_IN.iter().find(|(built_in, _)| *built_in == name) {
            return Ok((format!("{name} (built in)"), (*text).to_owned()));
        }
        if let Some(text) = crate::compare::scenario(name) {
            return Ok((format!("{name} (built in)"), text.to_owned()));
        }
        match std::fs::read_to_string(name) {
            Ok(text) => Ok((name.to_owned(), text)),
            Err(error) => {
                let names: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
                let known = format!("{}, {}", names.join(", "), crate::compare::PATTERN);
                Err(ScenarioError::new(
                    name,
                    format!("neither built in ({known}) nor a file that can be read: {error}"),
                ))
            }
        }
    }

    /// Reads a scenario and makes the plan of it. `file` is how errors name it.
    pub fn plan(file: &str, text: &str, settings: &[Setting], seed: u64) -> Result<Plan, ScenarioError> {
        let source = Source { file, text };
        let mut document: Table = toml::from_str(text).map_err(|error| source.toml(&error))?;
        for setting in settings {
            setting.apply(&mut document).map_err(|problem| source.whole(problem))?;
        }
        let folder = std::path::Path::new(file).parent().unwrap_or(std::path::Path::new(""));
        let inlined = path::inline(&mut document, folder).map_err(|(key, why)| source.at_path(&key, &why))?;
        let effective = toml::to_string(&document).map_err(|error| source.whole(error.to_string()))?;
        let scenario: Self = serde_path_to_error::deserialize(toml::Value::Table(document))
            .map_err(|error| source.at_path(&error.path().to_string(), error.inner().message()))?;
        let mut plan = expand::plan(&source, &scenario, seed)?;
        plan.settings = settings.to_vec();
        if inlined {
            // What is kept of a run has to suffice to repeat it, wherever the files have gone.
            plan.text.clone_from(&effective);
        }
        plan.document = effective;
        Ok(plan)
    }

    /// What a scenario is about, for `list`.
    pub fn about(text: &str) -> Option<String> {
        let document: BTreeMap<String, Spanned<toml::Value>> = toml::from_str(text).ok()?;
        document.get("about")?.get_ref().as_str().map(str::to_owned)
    }
}

/// The name that a run of this file has.
pub fn stem(file: &str) -> String {
    let name = file.trim_end_matches(" (built in)");
    let base = name.rsplit('/').next().unwrap_or(name);
    if name == file { base.trim_end_matches(".toml").to_owned() } else { name.replace('/', "-") }
}

#[cfg(test)]
mod tests;
