//! `[tree]`, as a scenario has it.

use super::addresses::Addresses;
use super::{Shape, Tree};
use crate::scenario::units;
use link::{Faults, WireSpec};
use roles::RoleConfig;
use serde::Deserialize;
use toml::{Table, Value};
use trace::HostId;
use wire::{Duration, Prefix};

/// A tree of routers, and hosts below it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TreeTable {
    /// Children of the root, of each of these, and so on.
    fan_out: Vec<u32>,
    /// Mobile hosts, spread evenly below the lowest routers.
    hosts: u32,
    /// Of every wire.
    #[serde(deserialize_with = "units::rate")]
    rate: u64,
    #[serde(deserialize_with = "units::delay")]
    delay: [Duration; 2],
    #[serde(default = "units::wire_queue")]
    queue: usize,
    #[serde(default = "units::ethernet_mtu")]
    mtu: u16,
    /// All addresses.
    #[serde(deserialize_with = "node::config::text")]
    net: Prefix,
    /// Hosts begin spread over this: those below one router together, those of the next one a little later.
    #[serde(default, deserialize_with = "node::config::span")]
    spread: Duration,
    #[serde(default)]
    root: OneOfThem,
    #[serde(default)]
    host: OneOfThem,
}

/// What runs on the root, or on every host.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct OneOfThem {
    #[serde(default)]
    role: Vec<Table>,
}

impl TreeTable {
    /// The tree; or the path of a key within the table, and what is wrong there.
    pub(crate) fn tree(&self) -> Result<Tree, (String, String)> {
        let shape =
            Shape::new(&self.fan_out, self.hosts).map_err(|problem| ("fan_out".to_owned(), problem))?;
        let addresses = Addresses::new(self.net, &shape).map_err(|problem| ("net".to_owned(), problem))?;
        let Self { rate, delay, queue, mtu, .. } = *self;
        let wire = WireSpec { rate, delay, queue, mtu, faults: Faults::default() };
        let mut tree =
            Tree { shape, addresses, wire, root: Vec::new(), host: Vec::new(), spread: self.spread };
        tree.root = roles(&tree, "root", &self.root.role)?;
        tree.host = roles(&tree, "host", &self.host.role)?;
        Ok(tree)
    }
}

/// Reads roles, and makes each once, so that what is wrong shows before anything starts.
fn roles(tree: &Tree, whose: &str, tables: &[Table]) -> Result<Vec<RoleConfig>, (String, String)> {
    let mut roles = Vec::new();
    for (index, table) in tables.iter().enumerate() {
        let path = format!("{whose}.role[{index}]");
        let mut table = table.clone();
        for key in ["to", "at"] {
            name_root(tree, &mut table, key);
        }
        let role = RoleConfig::read(table)
            .map_err(|error| (format!("{path}.{}", error.path), error.problem.clone()))?;
        let up = ["up".to_owned()];
        role.build(node::config::Interfaces(&up), &wire::Seed::new(0))
            .map_err(|error| (path, error.to_string()))?;
        roles.push(role);
    }
    Ok(roles)
}

/// `root:9000` becomes the root's address and that port.
fn name_root(tree: &Tree, role: &mut Table, key: &str) {
    let port = role.get(key).and_then(Value::as_str).and_then(|text| text.strip_prefix("root:"));
    if let Some(port) = port.map(str::to_owned) {
        role.insert(key.to_owned(), format!("{}:{port}", tree.address(HostId(0))).into());
    }
}
