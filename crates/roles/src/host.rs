//! The configuration of one host.

use node::config::{ConfigError, Interfaces, some_text, text};
use node::{Action, Hop, Lifetime, NextHop, Node, Role, Route, RouteKey, Seed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::str::FromStr;
use wire::{Iface, Instant, InterfaceAddress, Ipv4Addr, Mac, Prefix};

/// One host: its interfaces, addresses, static routes and roles.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of its own")]
pub struct DaemonConfig {
    /// The UNIX socket where it takes commands.
    pub control: Option<PathBuf>,
    /// The UNIX socket where programs of this host ask for connections through its roles: `wayfare exec`.
    pub clients: Option<PathBuf>,
    /// The UNIX socket of a lab's radio process.
    pub radio: Option<PathBuf>,
    /// Our number at that radio process.
    #[serde(default)]
    pub number: u32,
    /// The file that takes its records when it ends.
    pub records: Option<PathBuf>,
    /// It takes them while the daemon runs: for a lab that kills it.
    #[serde(default)]
    pub records_at_once: bool,
    /// The file that keeps what its roles store, from one run to the next.
    pub store: Option<PathBuf>,
    /// A role does not wait until its record is on the disk: the store survives the daemon's end, and not the machine's.
    #[serde(default)]
    pub store_without_sync: bool,
    /// Nothing is stored while the disk has no free block, though the store has room within its file: for a lab that fills it.
    #[serde(default)]
    pub store_needs_room: bool,
    /// Wait to be told when to begin.
    #[serde(default)]
    pub hold: bool,
}

/// One interface of a host.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
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
    /// Its IP address and its link's prefix, as text: `10.1.0.1/24`. With one, the interface speaks ARP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

const fn ethernet_mtu() -> u16 {
    1500
}

/// A static route.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouteConfig {
    /// To where.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::prefix")]
    pub to: Prefix,
    /// Out by which interface.
    pub interface: String,
    /// To which neighbor; without one, each destination is itself a neighbor.
    #[serde(default, deserialize_with = "some_text")]
    #[schemars(schema_with = "node::config::schema::text")]
    pub via: Option<Via>,
}

/// The neighbor that is the next hop of a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Via {
    /// Its link address.
    Mac(Mac),
    /// Its IP address; ARP resolves it to the link address.
    Ip(Ipv4Addr),
}

/// The text is neither kind of address.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a neighbor is an IPv4 address, as 10.1.0.254, or a link address, as 02:00:00:00:00:01")]
pub struct ParseViaError;

impl FromStr for Via {
    type Err = ParseViaError;
    fn from_str(text: &str) -> Result<Self, ParseViaError> {
        let ip = text.parse().map(Self::Ip).ok();
        ip.or_else(|| text.parse().map(Self::Mac).ok()).ok_or(ParseViaError)
    }
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
    /// Mobile IP home agent.
    MobileIpHomeAgent(mobile_ip::config::HomeAgentConfig),
    /// Mobile IP foreign agent.
    MobileIpForeignAgent(mobile_ip::config::ForeignAgentConfig),
    /// Mobile IP mobile node.
    MobileIpMobileNode(mobile_ip::config::MobileNodeConfig),
    /// Indirect TCP support router.
    IndirectTcpSupportRouter(indirect_tcp::config::SupportRouterConfig),
    /// Indirect TCP, the mobile host's side.
    IndirectTcpMobileHost(indirect_tcp::config::MobileHostConfig),
    /// SIGMA mobile node.
    SigmaMobileNode(sigma::config::MobileNodeConfig),
    /// SIGMA correspondent.
    SigmaCorrespondent(sigma::config::CorrespondentConfig),
    /// SIGMA location manager.
    SigmaLocationManager(sigma::config::LocationManagerConfig),
    /// Datagrams at a constant rate.
    ConstantRate(apps::ConstantRateConfig),
    /// Receiver of datagrams.
    Sink(apps::SinkConfig),
    /// Bulk server: sends bytes to each client that connects.
    BulkServer(apps::BulkServerConfig),
    /// Bulk client: connects, and reads them.
    BulkClient(apps::BulkClientConfig),
    /// Request server: answers questions.
    RequestServer(apps::RequestServerConfig),
    /// Request client: connects, asks, and waits for each answer.
    RequestClient(apps::RequestClientConfig),
    /// Moves the host from cell to cell.
    Roam(apps::RoamConfig),
}

/// An error in the configuration of a host or a role, with its key.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{path}`: {problem}")]
pub struct KeyError {
    /// The path of the key within the host or the role.
    pub path: String,
    /// What is wrong, and what is allowed.
    pub problem: String,
}

impl KeyError {
    /// Returns the error of a key.
    pub fn new(path: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { path: path.into(), problem: problem.into() }
    }
}

impl<'de> Deserialize<'de> for RoleConfig {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::read(toml::Table::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// Why no node can be made of a configuration.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum NodeError {
    /// The configuration of a role is invalid.
    #[error("role {kind}: {error}")]
    Role {
        /// The role's kind.
        kind: &'static str,
        /// Its index among the roles of its host, from 0.
        index: usize,
        /// What is wrong.
        error: ConfigError,
    },
    /// The configuration of the host itself is invalid.
    #[error("{0}")]
    Host(#[from] KeyError),
}

impl From<ConfigError> for NodeError {
    fn from(error: ConfigError) -> Self {
        Self::Host(KeyError::new(error.key, error.problem))
    }
}

/// What roles need to know of their host.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// All addresses of the host, with their links.
    pub own: Vec<InterfaceAddress>,
    /// Its interfaces to visited networks.
    pub visited: Vec<String>,
    /// The addresses to which its roles send without a request.
    pub partners: Vec<Ipv4Addr>,
    /// The addresses of its home agents.
    pub home_agents: Vec<Ipv4Addr>,
}

impl Surroundings {
    fn addresses(&self) -> Vec<Ipv4Addr> {
        self.own.iter().map(|own| own.address).collect()
    }
}

impl HostConfig {
    /// Returns the node of this host. `chance` is the random seed of the host. Fails if a role or the host is invalid.
    pub fn node(&self, chance: &Seed) -> Result<Node, NodeError> {
        let names = self.interface_names();
        let around = self.surroundings()?;
        let build = |(place, role): (usize, &RoleConfig)| {
            let built = role.clone().on_host(&around).build(Interfaces(&names), chance);
            built.map_err(|error| match error {
                NodeError::Role { kind, error, .. } => NodeError::Role { kind, index: place, error },
                host @ NodeError::Host(_) => host,
            })
        };
        self.node_of(self.roles.iter().enumerate().map(build).collect::<Result<Vec<_>, _>>()?)
    }

    /// Returns the node of this host with `roles` instead of the configured ones.
    pub fn node_of(&self, roles: Vec<Box<dyn Role>>) -> Result<Node, NodeError> {
        let names = self.interface_names();
        let interfaces = Interfaces(&names);
        self.macs()?;
        let mut node = Node::new(roles, self.addresses.clone());
        for (number, address) in self.interface_addresses()? {
            node.add_address(Instant::ZERO, Iface(number), address);
        }
        for (index, route) in self.routes.iter().enumerate() {
            let hop = self
                .hop(interfaces, route)
                .map_err(|error| KeyError::new(format!("route[{index}].{}", error.key), error.problem))?;
            let key = RouteKey { class: None, src: Prefix::ANY, dst: route.to };
            node.set_route(
                Instant::ZERO,
                key,
                Route { action: Action::Forward(hop), lifetime: Lifetime::Permanent },
            );
        }
        Ok(node)
    }

    /// Returns all its own addresses: first those without an interface, then those of the interfaces in their order.
    pub fn own_addresses(&self) -> Result<Vec<Ipv4Addr>, KeyError> {
        let mut own = self.addresses.clone();
        for (_, InterfaceAddress { address, .. }) in self.interface_addresses()? {
            if !own.contains(&address) {
                own.push(address);
            }
        }
        Ok(own)
    }

    /// The same, with their links. An address without an interface has a /32 link.
    fn own_links(&self) -> Result<Vec<InterfaceAddress>, KeyError> {
        let alone = self.addresses.iter().map(|address| InterfaceAddress::new(*address, 32));
        Ok(alone.chain(self.interface_addresses()?.into_iter().map(|(_, address)| address)).collect())
    }

    /// Returns all addresses that it has at any time: its own, and those that a role acquires.
    pub fn all_addresses(&self) -> Vec<Ipv4Addr> {
        // The caller has made a node of this configuration before, so the addresses are valid.
        let mut all = self.own_addresses().unwrap_or_default();
        for role in &self.roles {
            if let RoleConfig::SigmaMobileNode(config) = role {
                all.extend(config.networks.iter().map(|network| network.address.address));
            }
        }
        all
    }

    /// The interfaces to visited networks: those of its foreign agents.
    fn visited(&self) -> Vec<String> {
        let visited = self.roles.iter().filter_map(|role| match role {
            RoleConfig::MobileIpForeignAgent(config) => Some(config.interface.clone()),
            _ => None,
        });
        visited.collect()
    }

    /// The addresses to which its roles send without a request: support routers send to each other.
    fn partners(&self) -> Vec<Ipv4Addr> {
        let routers = self.roles.iter().filter_map(|role| match role {
            RoleConfig::IndirectTcpSupportRouter(config) => Some(&config.routers),
            _ => None,
        });
        routers.flatten().map(|router| router.address).collect()
    }

    /// What its roles need to know of it.
    fn surroundings(&self) -> Result<Surroundings, KeyError> {
        Ok(Surroundings {
            own: self.own_links()?,
            visited: self.visited(),
            partners: self.partners(),
            home_agents: self.home_agents(),
        })
    }

    /// The addresses of its home agents.
    fn home_agents(&self) -> Vec<Ipv4Addr> {
        let home_agents = self.roles.iter().filter_map(|role| match role {
            RoleConfig::MobileIpHomeAgent(config) => Some(config.address.address),
            _ => None,
        });
        home_agents.collect()
    }

    fn interface_names(&self) -> Vec<String> {
        self.interfaces.iter().map(|interface| interface.name.clone()).collect()
    }

    /// Returns the addresses of the interfaces that have one, each with the interface's number. Fails if an address is
    /// not valid.
    pub fn interface_addresses(&self) -> Result<Vec<(u16, InterfaceAddress)>, KeyError> {
        let with =
            (1..).zip(&self.interfaces).filter_map(|(number, i)| Some((number, i.address.as_deref()?)));
        let parsed = with.map(|(number, text)| {
            let wrong = |error| {
                KeyError::new(format!("interface[{}].address", number - 1), format!("`{text}`: {error}"))
            };
            Ok((number, text.parse().map_err(wrong)?))
        });
        parsed.collect()
    }

    fn hop(&self, interfaces: Interfaces<'_>, route: &RouteConfig) -> Result<Hop, ConfigError> {
        let iface = interfaces.number("interface", &route.interface)?;
        let to = match route.via {
            Some(Via::Mac(mac)) => NextHop::Mac(mac),
            Some(Via::Ip(router)) => NextHop::Via(router),
            None => NextHop::OnLink,
        };
        let speaks_arp = self.interfaces.iter().any(|i| i.name == route.interface && i.address.is_some());
        if speaks_arp || matches!(to, NextHop::Mac(_)) {
            return Ok(Hop { iface, to });
        }
        let problem = format!(
            "`{}` has no address, so it cannot ask for a neighbor; give it an address, or the route a link address",
            route.interface
        );
        Err(ConfigError::new("via", problem))
    }

    /// Returns the link addresses of the interfaces, in their order. Fails if one is not valid.
    pub fn macs(&self) -> Result<Vec<Mac>, KeyError> {
        let mac = |(index, interface): (usize, &InterfaceConfig)| {
            interface.mac.parse().map_err(|error| {
                KeyError::new(format!("interface[{index}].mac"), format!("`{}`: {error}", interface.mac))
            })
        };
        self.interfaces.iter().enumerate().map(mac).collect()
    }
}

impl RoleConfig {
    /// All kinds.
    pub const KINDS: [&'static str; 18] = [
        "cellular-ip/gateway",
        "cellular-ip/station",
        "cellular-ip/mobile",
        "mobile-ip/home-agent",
        "mobile-ip/foreign-agent",
        "mobile-ip/mobile-node",
        "indirect-tcp/support-router",
        "indirect-tcp/mobile-host",
        "sigma/mobile-node",
        "sigma/correspondent",
        "sigma/location-manager",
        "apps/constant-rate",
        "apps/sink",
        "apps/bulk-server",
        "apps/bulk-client",
        "apps/request-server",
        "apps/request-client",
        "apps/roam",
    ];

    /// Reads a role. The key `kind` selects the type; the other keys are the configuration of that kind.
    pub fn read(mut table: toml::Table) -> Result<Self, KeyError> {
        let at_kind = |problem| KeyError { path: "kind".to_owned(), problem };
        let known = || format!("allowed: {}", Self::KINDS.join(", "));
        let Some(toml::Value::String(kind)) = table.remove("kind") else {
            return Err(at_kind(format!("a role needs a kind; {}", known())));
        };
        match kind.as_str() {
            "cellular-ip/gateway" => config(table).map(Self::CellularIpGateway),
            "cellular-ip/station" => config(table).map(Self::CellularIpStation),
            "cellular-ip/mobile" => config(table).map(Self::CellularIpMobile),
            "mobile-ip/home-agent" => config(table).map(Self::MobileIpHomeAgent),
            "mobile-ip/foreign-agent" => config(table).map(Self::MobileIpForeignAgent),
            "mobile-ip/mobile-node" => config(table).map(Self::MobileIpMobileNode),
            "indirect-tcp/support-router" => config(table).map(Self::IndirectTcpSupportRouter),
            "indirect-tcp/mobile-host" => config(table).map(Self::IndirectTcpMobileHost),
            "sigma/mobile-node" => config(table).map(Self::SigmaMobileNode),
            "sigma/correspondent" => config(table).map(Self::SigmaCorrespondent),
            "sigma/location-manager" => config(table).map(Self::SigmaLocationManager),
            "apps/constant-rate" => config(table).map(Self::ConstantRate),
            "apps/sink" => config(table).map(Self::Sink),
            "apps/bulk-server" => config(table).map(Self::BulkServer),
            "apps/bulk-client" => config(table).map(Self::BulkClient),
            "apps/request-server" => config(table).map(Self::RequestServer),
            "apps/request-client" => config(table).map(Self::RequestClient),
            "apps/roam" => config(table).map(Self::Roam),
            _ => Err(at_kind(format!("there is no `{kind}`; {}", known()))),
        }
    }

    /// Returns its kind, as in configurations.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::CellularIpGateway(_) => "cellular-ip/gateway",
            Self::CellularIpStation(_) => "cellular-ip/station",
            Self::CellularIpMobile(_) => "cellular-ip/mobile",
            Self::MobileIpHomeAgent(_) => "mobile-ip/home-agent",
            Self::MobileIpForeignAgent(_) => "mobile-ip/foreign-agent",
            Self::MobileIpMobileNode(_) => "mobile-ip/mobile-node",
            Self::IndirectTcpSupportRouter(_) => "indirect-tcp/support-router",
            Self::IndirectTcpMobileHost(_) => "indirect-tcp/mobile-host",
            Self::SigmaMobileNode(_) => "sigma/mobile-node",
            Self::SigmaCorrespondent(_) => "sigma/correspondent",
            Self::SigmaLocationManager(_) => "sigma/location-manager",
            Self::ConstantRate(_) => "apps/constant-rate",
            Self::Sink(_) => "apps/sink",
            Self::BulkServer(_) => "apps/bulk-server",
            Self::BulkClient(_) => "apps/bulk-client",
            Self::RequestServer(_) => "apps/request-server",
            Self::RequestClient(_) => "apps/request-client",
            Self::Roam(_) => "apps/roam",
        }
    }

    /// Returns whether the role moves TCP connections between hosts. On Linux, the kernel must then permit
    /// `TCP_REPAIR` (tcp(7)).
    pub const fn needs_tcp_repair(&self) -> bool {
        matches!(self, Self::IndirectTcpSupportRouter(_))
    }

    /// Returns the same configuration, completed by what the role needs to know of its host.
    #[must_use]
    pub fn on_host(mut self, around: &Surroundings) -> Self {
        match &mut self {
            Self::CellularIpGateway(config) | Self::CellularIpStation(config) => {
                config.own = around.addresses();
            }
            Self::MobileIpHomeAgent(config) => config.host.clone_from(&around.own),
            Self::MobileIpForeignAgent(config) => {
                config.own = around.addresses();
                config.visited.clone_from(&around.visited);
                config.partners.clone_from(&around.partners);
                config.beside.clone_from(&around.home_agents);
            }
            _ => {}
        }
        self
    }

    /// Builds the role for a host with these interfaces. `chance` is the random seed of the host. Fails if the
    /// configuration is invalid.
    pub fn build(&self, interfaces: Interfaces<'_>, chance: &Seed) -> Result<Box<dyn Role>, NodeError> {
        let role = self.construct(interfaces, &chance.fork(self.kind()));
        role.map_err(|error| NodeError::Role { kind: self.kind(), index: 0, error })
    }

    fn construct(&self, interfaces: Interfaces<'_>, chance: &Seed) -> Result<Box<dyn Role>, ConfigError> {
        Ok(match self.clone() {
            Self::CellularIpGateway(config) => Box::new(cellular_ip::Gateway::new(config, interfaces)?),
            Self::CellularIpStation(config) => Box::new(cellular_ip::Station::new(config, interfaces)?),
            Self::CellularIpMobile(config) => {
                Box::new(cellular_ip::Mobile::new(config, interfaces, chance.clone())?)
            }
            Self::MobileIpHomeAgent(config) => {
                Box::new(mobile_ip::HomeAgent::new(config, interfaces, chance.clone())?)
            }
            Self::MobileIpForeignAgent(config) => {
                Box::new(mobile_ip::ForeignAgent::new(config, interfaces, chance.clone())?)
            }
            Self::MobileIpMobileNode(config) => {
                Box::new(mobile_ip::MobileNode::new(config, interfaces, chance.clone())?)
            }
            Self::IndirectTcpSupportRouter(config) => {
                Box::new(indirect_tcp::SupportRouter::new(config, chance.clone())?)
            }
            Self::IndirectTcpMobileHost(config) => Box::new(indirect_tcp::MobileHost::new(config)?),
            Self::SigmaMobileNode(config) => Box::new(sigma::MobileNode::new(config, interfaces, chance)?),
            Self::SigmaCorrespondent(config) => Box::new(sigma::Correspondent::new(&config, chance)?),
            Self::SigmaLocationManager(config) => Box::new(sigma::LocationManager::new(config)?),
            Self::ConstantRate(config) => Box::new(apps::ConstantRate::new(config)?),
            Self::Sink(config) => Box::new(apps::Sink::new(config)),
            Self::BulkServer(config) => Box::new(apps::BulkServer::new(config)?),
            Self::BulkClient(config) => Box::new(apps::BulkClient::new(config)),
            Self::RequestServer(config) => Box::new(apps::RequestServer::new(config)),
            Self::RequestClient(config) => Box::new(apps::RequestClient::new(config)?),
            Self::Roam(config) => Box::new(apps::Roam::new(config, interfaces)?),
        })
    }
}

fn config<T: serde::de::DeserializeOwned>(table: toml::Table) -> Result<T, KeyError> {
    serde_path_to_error::deserialize(toml::Value::Table(table)).map_err(|error| {
        let path = error.path().to_string();
        KeyError { path: path.trim_matches('.').to_owned(), problem: error.inner().message().to_owned() }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(interface: &str, route: &str) -> HostConfig {
        let text = format!(
            "name = 'h'\naddresses = ['10.9.0.1']\n[[interface]]\nname = 'eth'\nmac = '02:00:00:00:00:01'\n{interface}\n\
             [[route]]\nto = '10.2.0.0/16'\ninterface = 'eth'\n{route}\n"
        );
        toml::from_str(&text).unwrap()
    }

    /// docs/node.md has every key of the configuration, and its example is valid.
    #[test]
    fn the_page_about_the_configuration_is_true() {
        let page = include_str!("../../../docs/node.md");
        let example = page.split("```toml").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        let config: HostConfig = toml::from_str(example).unwrap();
        assert!(config.node(&Seed::new(1)).is_ok() && config.daemon.store.is_some());
        for schema in [
            schemars::schema_for!(DaemonConfig),
            schemars::schema_for!(InterfaceConfig),
            schemars::schema_for!(RouteConfig),
        ] {
            for key in schema.get("properties").and_then(|keys| keys.as_object()).unwrap().keys() {
                assert!(page.contains(&format!("`{key}`")), "{key}");
            }
        }
        for key in ["name", "addresses", "interface", "route", "role", "seed", "tcp", "daemon"] {
            assert!(page.contains(&format!("| `{key}` |")), "{key}");
        }
    }

    fn problem(interface: &str, route: &str) -> String {
        host(interface, route).node(&Seed::new(1)).unwrap_err().to_string()
    }

    #[test]
    fn an_interface_has_an_address_and_a_route_a_router() {
        let config = host("address = '10.1.0.1/24'", "via = '10.1.0.254'");
        assert_eq!(config.routes[0].via, Some(Via::Ip(Ipv4Addr::new(10, 1, 0, 254))));
        let own = [Ipv4Addr::new(10, 9, 0, 1), Ipv4Addr::new(10, 1, 0, 1)];
        assert_eq!(config.own_addresses(), Ok(own.to_vec()));
        for route in ["via = '10.1.0.254'", "", "via = '02:00:00:00:00:02'"] {
            assert!(host("address = '10.1.0.1/24'", route).node(&Seed::new(1)).is_ok(), "{route}");
        }
        assert!(host("", "via = '02:00:00:00:00:02'").node(&Seed::new(1)).is_ok(), "as it always was");
    }

    #[test]
    fn each_foreign_agent_knows_all_visited_links_of_its_host() {
        let agent = |number| {
            format!(
                "[[role]]\nkind = 'mobile-ip/foreign-agent'\ninterface = 'v{number}'\naddress = '10.{number}.0.1/24'\n"
            )
        };
        let text = format!("name = 'h'\ninterface = []\n{}{}", agent(1), agent(2));
        let config: HostConfig = toml::from_str(&text).unwrap();
        let around = config.surroundings().unwrap();
        assert_eq!(around.visited, ["v1", "v2"]);
        for role in config.roles {
            let RoleConfig::MobileIpForeignAgent(agent) = role.on_host(&around) else { panic!() };
            assert_eq!(agent.visited, around.visited);
        }
    }

    #[test]
    fn a_foreign_agent_knows_the_routers_that_its_host_speaks_to() {
        let text = "name = 'h'\ninterface = []\n[[role]]\nkind = 'indirect-tcp/support-router'\naddress = '10.1.0.1'\n\
            hosts = []\nrouters = [{ address = '10.2.0.1', key = '02020202020202020202020202020202' }]\n";
        let config: HostConfig = toml::from_str(text).unwrap();
        assert_eq!(config.partners(), [Ipv4Addr::new(10, 2, 0, 1)]);
    }

    #[test]
    fn a_foreign_agent_knows_the_addresses_and_the_home_agents_of_its_host() {
        let text = "name = 'h'\naddresses = ['10.9.0.1']\ninterface = []\n\
            [[role]]\nkind = 'mobile-ip/home-agent'\ninterface = 'v'\naddress = '10.9.0.1/24'\nmobile_nodes = []\n";
        let config: HostConfig = toml::from_str(text).unwrap();
        let around = config.surroundings().unwrap();
        let home_agents = [Ipv4Addr::new(10, 9, 0, 1)];
        assert_eq!(around.home_agents, home_agents);
        let agent = "kind = 'mobile-ip/foreign-agent'\ninterface = 'v'\naddress = '10.1.0.1/24'\n";
        let agent: RoleConfig = toml::from_str(agent).unwrap();
        let RoleConfig::MobileIpForeignAgent(agent) = agent.on_host(&around) else { panic!() };
        assert_eq!((agent.own, agent.beside), (home_agents.to_vec(), home_agents.to_vec()));
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert!(
            problem("address = '10.1.0.1'", "")
                .starts_with("`interface[0].address`: `10.1.0.1`: an interface")
        );
        for route in ["", "via = '10.1.0.254'"] {
            assert!(problem("", route).starts_with("`route[0].via`: `eth` has no address"), "{route}");
        }
        assert_eq!("10.1.0".parse::<Via>(), Err(ParseViaError));
    }
}
