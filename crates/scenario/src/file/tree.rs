//! The table `[tree]` of a scenario.

use super::protocol::CellularIp as CellularIpTable;
use super::{Radio, protocol, units};
use crate::tree::{CellAir, CellularIp, Tree, Tuning};
use link::{Faults, WireSpec};
use roles::RoleConfig;
use schemars::JsonSchema;
use serde::Deserialize;
use toml::{Table, Value};
use trace::HostId;
use wire::{Duration, Prefix};

/// A tree of routers, and hosts below it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TreeTable {
    /// The number of children of each router, by level: of the root, of each router below the root, and so on.
    fan_out: Vec<u32>,
    /// The number of mobile hosts, which are spread evenly below the lowest routers.
    hosts: u32,
    /// Bits per second of each wire in each direction, for example `2Mb/s`.
    #[serde(deserialize_with = "node::config::rate")]
    #[schemars(schema_with = "node::config::schema::rate")]
    rate: u64,
    /// The delay of each wire: one for both directions, or a list of two: from the lower to the upper end, and back.
    #[serde(deserialize_with = "units::delay")]
    #[schemars(schema_with = "units::schema_delay")]
    delay: [Duration; 2],
    /// The largest number of frames that wait at each end of a wire, in addition to the frame that is being sent
    /// [default: 128].
    #[serde(default = "units::wire_queue")]
    queue: usize,
    /// The size of the largest datagram, in bytes [default: 1500].
    #[serde(default = "units::ethernet_mtu")]
    #[schemars(range(min = 68))]
    mtu: u16,
    /// The network of all addresses, for example `10.0.0.0/8`.
    #[serde(deserialize_with = "node::config::text")]
    #[schemars(schema_with = "node::config::schema::prefix")]
    net: Prefix,
    /// The starts of sources of datagrams, and the attachments of radios, are spread evenly over this time, so that
    /// hosts of one router do not start together [default: 0 s]. The starts of clients are not shifted.
    #[serde(default, deserialize_with = "node::config::span")]
    #[schemars(schema_with = "node::config::schema::span")]
    spread: Duration,
    /// The protocol of routers and hosts besides IP [default: none]. With a protocol, the root is in the Internet,
    /// and the routers directly below the root are gateways.
    with: Option<With>,
    /// With Cellular IP: the parameters of the cells of the lowest routers.
    air: Option<AirTable>,
    /// The roles of the root.
    #[serde(default)]
    #[schemars(with = "OneOfThem")]
    root: OneOfThem,
    /// The roles of each mobile host.
    #[serde(default)]
    #[schemars(with = "OneOfThem")]
    host: OneOfThem,
}

/// The parameters of each cell.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AirTable {
    /// Bits per second that all radios of a cell share, for example `11Mb/s`.
    #[serde(deserialize_with = "node::config::rate")]
    #[schemars(schema_with = "node::config::schema::rate")]
    rate: u64,
    /// The time that each frame takes besides its bits: preamble, acknowledgment [default: 0 s].
    #[serde(default, deserialize_with = "node::config::span")]
    #[schemars(schema_with = "node::config::schema::span")]
    per_frame: Duration,
    /// The largest number of frames that wait at each radio [default: 64].
    #[serde(default = "units::radio_queue")]
    queue: usize,
}

/// The protocols of a tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum With {
    /// Gateways, base stations and mobile hosts of Cellular IP; `[cellular-ip]` has their key, and `[radio]` the times
    /// in which the hosts' radios tune.
    CellularIp,
}

/// The roles of the root, or of each host.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OneOfThem {
    /// The roles, in the order in which they are offered packets.
    #[serde(default)]
    #[schemars(schema_with = "protocol::schema")]
    role: Vec<Table>,
}

impl TreeTable {
    /// Builds the tree. An error has the path of a key within the table `[tree]`, and the problem.
    pub(crate) fn tree(
        &self,
        radio: &Radio,
        network: Option<&CellularIpTable>,
    ) -> Result<Tree, (String, String)> {
        if self.mtu < 68 {
            return Err(("mtu".to_owned(), "must be at least 68 bytes (RFC 791, section 3.2)".to_owned()));
        }
        let cellular_ip = self.cellular_ip(radio, network)?;
        let Self { rate, delay, queue, mtu, .. } = *self;
        let wire = WireSpec { rate, delay, queue, mtu, faults: Faults::default() };
        let mut tree = Tree::new((&self.fan_out, self.hosts), self.net, wire, self.spread, cellular_ip)?;
        let root = roles(&tree, "root", &self.root.role)?;
        let host = roles(&tree, "host", &self.host.role)?;
        tree.set_roles(root, host);
        Ok(tree)
    }

    fn cellular_ip(
        &self,
        radio: &Radio,
        network: Option<&CellularIpTable>,
    ) -> Result<Option<CellularIp>, (String, String)> {
        let at = |key: &str, problem: &str| (key.to_owned(), problem.to_owned());
        match (self.with, &self.air) {
            (None, None) => Ok(None),
            (None, Some(_)) => Err(at(
                "air",
                "allowed only with `with = \"cellular-ip\"`; without it, all hosts are on wires",
            )),
            (Some(With::CellularIp), None) => {
                Err(at("with", "needs the key `air`, with the parameters of the cells"))
            }
            (Some(With::CellularIp), Some(air)) => {
                let network =
                    network.ok_or_else(|| at("with", "needs the table [cellular-ip] with `network_key`"))?;
                let air = CellAir { rate: air.rate, per_frame: air.per_frame, queue: air.queue };
                let Radio { retune, attach, excursion, association, drain, queue, .. } = *radio;
                let tuning = Tuning { retune, attach, excursion, association, drain, queue };
                CellularIp::new(air, tuning, &network.network_key, network.key_generation)
                    .map(Some)
                    .map_err(|problem| at("with", &problem))
            }
        }
    }
}

/// Reads roles, and builds each role once to find errors before the run starts.
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
        role.build(node::config::Interfaces(&up), &wire::Rng::new(0))
            .map_err(|error| (path, error.to_string()))?;
        roles.push(role);
    }
    Ok(roles)
}

/// Replaces a value such as `root:9000` of `key` by the root's address and the same port.
fn name_root(tree: &Tree, role: &mut Table, key: &str) {
    let port = role.get(key).and_then(Value::as_str).and_then(|text| text.strip_prefix("root:"));
    if let Some(port) = port.map(str::to_owned) {
        role.insert(key.to_owned(), format!("{}:{port}", tree.address(HostId(0))).into());
    }
}
