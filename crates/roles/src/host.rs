//! The configuration of one host.

use node::config::{ConfigError, Interfaces, text};
use node::{Action, Hop, Key, Life, Node, Role, Route, Seed};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use wire::{Instant, Ipv4Addr, Mac, Prefix};

/// One host: its interfaces, addresses, static routes and roles.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostConfig {
    /// Its name.
    pub name: String,
    /// Its own addresses; the first is the one its sockets use.
    #[serde(default)]
    pub addresses: Vec<Ipv4Addr>,
    /// Its interfaces; number 1 is the first.
    #[serde(default, rename = "interface")]
    pub interfaces: Vec<InterfaceConfig>,
    /// Routes that no role sets.
    #[serde(default, rename = "route")]
    pub routes: Vec<RouteConfig>,
    /// Its roles, in the order in which they are offered packets.
    #[serde(default, rename = "role")]
    pub roles: Vec<RoleConfig>,
    /// The seed of its chance, so that a run can be repeated; from the system if none is given.
    pub seed: Option<u64>,
    /// How its TCP behaves.
    #[serde(default)]
    pub tcp: crate::TcpConfig,
    /// What only a daemon needs.
    #[serde(default)]
    pub daemon: DaemonConfig,
}

/// How a host runs as a daemon.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DaemonConfig {
    /// The UNIX socket where it takes commands.
    pub control: Option<PathBuf>,
    /// The UNIX socket of a lab's radio process.
    pub radio: Option<PathBuf>,
    /// Our number at that radio process.
    #[serde(default)]
    pub number: u16,
    /// The file that takes its records when it ends.
    pub records: Option<PathBuf>,
    /// Wait to be told when to begin.
    #[serde(default)]
    pub hold: bool,
}

/// One interface of a host.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct InterfaceConfig {
    /// Its name; on Linux the device's.
    pub name: String,
    /// Its link address, as text.
    pub mac: String,
    /// The largest datagram it takes.
    #[serde(default = "ethernet_mtu")]
    pub mtu: u16,
    /// Whether it is a radio that is told which cell to tune to.
    #[serde(default)]
    pub tunes: bool,
}

const fn ethernet_mtu() -> u16 {
    1500
}

/// A static route.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteConfig {
    /// To where.
    #[serde(deserialize_with = "text")]
    pub to: Prefix,
    /// Out by which interface.
    pub interface: String,
    /// To which neighbor.
    #[serde(deserialize_with = "text")]
    pub via: Mac,
}

/// A role and its configuration.
#[derive(Clone, Debug)]
pub enum RoleConfig {
    /// Cellular IP gateway.
    CellularIpGateway(cellular_ip::config::StationConfig),
    /// Cellular IP base station.
    CellularIpStation(cellular_ip::config::StationConfig),
    /// Cellular IP mobile host.
    CellularIpMobile(cellular_ip::config::MobileConfig),
    /// Datagrams at a constant rate.
    ConstantRate(apps::ConstantRateConfig),
    /// Takes datagrams.
    Sink(apps::SinkConfig),
    /// Sends bytes to who connects.
    BulkServer(apps::BulkServerConfig),
    /// Connects, and reads them.
    BulkClient(apps::BulkClientConfig),
}

/// What is wrong with a role as it is written, and at which key.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{path}`: {problem}")]
pub struct RoleError {
    /// The path of the key within the role.
    pub path: String,
    /// What is wrong, and what is allowed.
    pub problem: String,
}

impl<'de> Deserialize<'de> for RoleConfig {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::read(toml::Table::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// Why a configuration makes no node.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum NodeError {
    /// A role cannot work like this.
    #[error("role {kind}: {error}")]
    Role {
        /// Which.
        kind: &'static str,
        /// What is wrong.
        error: ConfigError,
    },
    /// Something of the host itself is wrong.
    #[error("{0}")]
    Host(#[from] ConfigError),
}

impl HostConfig {
    /// The node of this host. `chance` is the host's own.
    pub fn node(&self, chance: &Seed) -> Result<Node, NodeError> {
        let names: Vec<String> = self.interfaces.iter().map(|interface| interface.name.clone()).collect();
        let interfaces = Interfaces(&names);
        self.macs()?;
        let roles =
            self.roles.iter().map(|role| role.build(interfaces, chance)).collect::<Result<Vec<_>, _>>()?;
        let mut node = Node::new(roles, self.addresses.clone());
        for route in &self.routes {
            let hop = Hop::mac(interfaces.number("route.interface", &route.interface)?, route.via);
            let key = Key { class: None, src: Prefix::ANY, dst: route.to };
            node.set_route(Instant::ZERO, key, Route { action: Action::Forward(hop), life: Life::Forever });
        }
        // What is for this host must not leave by a route that takes everything.
        for address in self.addresses.iter().filter(|_| !self.routes.is_empty()) {
            let key = Key { class: None, src: Prefix::ANY, dst: Prefix::host(*address) };
            node.set_route(Instant::ZERO, key, Route { action: Action::Host, life: Life::Forever });
        }
        Ok(node)
    }

    /// The link addresses of the interfaces, in their order.
    pub fn macs(&self) -> Result<Vec<Mac>, ConfigError> {
        let mac = |interface: &InterfaceConfig| {
            let parsed = interface.mac.parse();
            parsed.map_err(|error| ConfigError::new("interface.mac", format!("`{}`: {error}", interface.mac)))
        };
        self.interfaces.iter().map(mac).collect()
    }
}

impl RoleConfig {
    /// The kinds there are.
    pub const KINDS: [&'static str; 7] = [
        "cellular-ip/gateway",
        "cellular-ip/station",
        "cellular-ip/mobile",
        "apps/constant-rate",
        "apps/sink",
        "apps/bulk-server",
        "apps/bulk-client",
    ];

    /// Reads a role: `kind` says which, the other keys are that kind's configuration.
    pub fn read(mut table: toml::Table) -> Result<Self, RoleError> {
        let at_kind = |problem| RoleError { path: "kind".to_owned(), problem };
        let known = || format!("allowed: {}", Self::KINDS.join(", "));
        let Some(toml::Value::String(kind)) = table.remove("kind") else {
            return Err(at_kind(format!("a role needs a kind; {}", known())));
        };
        match kind.as_str() {
            "cellular-ip/gateway" => config(table).map(Self::CellularIpGateway),
            "cellular-ip/station" => config(table).map(Self::CellularIpStation),
            "cellular-ip/mobile" => config(table).map(Self::CellularIpMobile),
            "apps/constant-rate" => config(table).map(Self::ConstantRate),
            "apps/sink" => config(table).map(Self::Sink),
            "apps/bulk-server" => config(table).map(Self::BulkServer),
            "apps/bulk-client" => config(table).map(Self::BulkClient),
            _ => Err(at_kind(format!("there is no `{kind}`; {}", known()))),
        }
    }

    /// Its kind, as configurations write it.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::CellularIpGateway(_) => "cellular-ip/gateway",
            Self::CellularIpStation(_) => "cellular-ip/station",
            Self::CellularIpMobile(_) => "cellular-ip/mobile",
            Self::ConstantRate(_) => "apps/constant-rate",
            Self::Sink(_) => "apps/sink",
            Self::BulkServer(_) => "apps/bulk-server",
            Self::BulkClient(_) => "apps/bulk-client",
        }
    }

    /// The role, on a host with these interfaces. `chance` is the host's own.
    pub fn build(&self, interfaces: Interfaces<'_>, chance: &Seed) -> Result<Box<dyn Role>, NodeError> {
        let role = self.construct(interfaces, &chance.fork(self.kind()));
        role.map_err(|error| NodeError::Role { kind: self.kind(), error })
    }

    fn construct(&self, interfaces: Interfaces<'_>, chance: &Seed) -> Result<Box<dyn Role>, ConfigError> {
        Ok(match self.clone() {
            Self::CellularIpGateway(config) => Box::new(cellular_ip::Gateway::new(config, interfaces)?),
            Self::CellularIpStation(config) => Box::new(cellular_ip::Station::new(config, interfaces)?),
            Self::CellularIpMobile(config) => {
                Box::new(cellular_ip::Mobile::new(config, interfaces, chance.clone())?)
            }
            Self::ConstantRate(config) => Box::new(apps::ConstantRate::new(config)?),
            Self::Sink(config) => Box::new(apps::Sink::new(config)),
            Self::BulkServer(config) => Box::new(apps::BulkServer::new(config)?),
            Self::BulkClient(config) => Box::new(apps::BulkClient::new(config)),
        })
    }
}

fn config<T: serde::de::DeserializeOwned>(table: toml::Table) -> Result<T, RoleError> {
    serde_path_to_error::deserialize(toml::Value::Table(table)).map_err(|error| {
        let path = error.path().to_string();
        RoleError { path: path.trim_matches('.').to_owned(), problem: error.inner().message().to_owned() }
    })
}
