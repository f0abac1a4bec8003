//! The kinds of roles. One list gives each kind its name, its configuration and its constructor; reading, building and
//! the schema follow from it.

use crate::{KeyError, NodeError, Surroundings};
use mobile_ip::message::Numbers;
use node::config::{ConfigError, Interfaces};
use node::{Rng, Role};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;

/// Declares [`RoleConfig`] from rows `doc, name, variant(configuration), |configuration, interfaces, rng| result`.
macro_rules! kinds {
    ($(
        $(#[$doc:meta])+
        $name:literal $variant:ident($config:ty), |$given:ident, $interfaces:pat_param, $rng:pat_param| $build:expr;
    )+) => {
        /// A role and its configuration.
        #[derive(Clone, Debug)]
        pub enum RoleConfig {
            $($(#[$doc])+ $variant($config),)+
        }

        impl RoleConfig {
            /// The names of all kinds, as in the key `kind` of a configuration.
            pub const KINDS: [&'static str; [$($name),+].len()] = [$($name),+];

            /// Returns the kind of this role, one of [`Self::KINDS`].
            pub const fn kind(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $name,)+
                }
            }

            /// Reads the configuration of a role of this kind. Returns `None` if there is no such kind.
            fn read_kind(kind: &str, table: toml::Table) -> Option<Result<Self, KeyError>> {
                match kind {
                    $($name => Some(config(table).map(Self::$variant)),)+
                    _ => None,
                }
            }

            /// Returns the schema of the configuration of a role of this kind, without the key `kind`. Returns `None`
            /// if there is no such kind. The schema is inlined, not referenced, because the keys of a role are in the
            /// same table as its kind.
            pub(crate) fn schema_of_kind(kind: &str, generator: &mut SchemaGenerator) -> Option<Schema> {
                match kind {
                    $($name => Some(<$config>::json_schema(generator)),)+
                    _ => None,
                }
            }

            fn construct(&self, interfaces: Interfaces<'_>, rng: &Rng) -> Result<Box<dyn Role>, ConfigError> {
                match self.clone() {
                    $(Self::$variant($given) => {
                        let ($interfaces, $rng) = (interfaces, rng);
                        Ok(Box::new($build?))
                    })+
                }
            }
        }
    };
}

kinds! {
    /// The gateway of a Cellular IP access network.
    "cellular-ip/gateway" CellularIpGateway(cellular_ip::config::StationConfig),
        |config, interfaces, _| cellular_ip::Gateway::new(config, interfaces);
    /// A base station of a Cellular IP access network.
    "cellular-ip/station" CellularIpStation(cellular_ip::config::StationConfig),
        |config, interfaces, _| cellular_ip::Station::new(config, interfaces);
    /// A mobile host in a Cellular IP access network.
    "cellular-ip/mobile" CellularIpMobile(cellular_ip::config::MobileConfig),
        |config, interfaces, rng| cellular_ip::Mobile::new(config, interfaces, rng.clone());
    /// A home agent of Mobile IP (RFC 5944).
    "mobile-ip/home-agent" MobileIpHomeAgent(mobile_ip::config::HomeAgentConfig),
        |config, interfaces, rng| mobile_ip::HomeAgent::new(config, interfaces, rng.clone());
    /// A foreign agent of Mobile IP (RFC 5944).
    "mobile-ip/foreign-agent" MobileIpForeignAgent(mobile_ip::config::ForeignAgentConfig),
        |config, interfaces, rng| mobile_ip::ForeignAgent::new(config, interfaces, rng.clone());
    /// A mobile node of Mobile IP (RFC 5944).
    "mobile-ip/mobile-node" MobileIpMobileNode(mobile_ip::config::MobileNodeConfig),
        |config, interfaces, rng| mobile_ip::MobileNode::new(config, interfaces, rng.clone());
    /// A correspondent of Mobile IP with a binding cache (draft-ietf-mobileip-optim-09).
    "mobile-ip/correspondent" MobileIpCorrespondent(mobile_ip::config::CorrespondentConfig),
        |config, _, rng| mobile_ip::Correspondent::new(config, rng.clone());
    /// A client of DHCP (RFC 2131): acquires the address of an interface.
    "dhcp/client" DhcpClient(dhcp::config::ClientConfig),
        |config, interfaces, rng| dhcp::Client::new(config, interfaces, rng.clone());
    /// A server of DHCP (RFC 2131): grants the addresses of one link.
    "dhcp/server" DhcpServer(dhcp::config::ServerConfig),
        |config, interfaces, _| dhcp::Server::new(config, interfaces);
    /// A mobility support router of Indirect TCP.
    "indirect-tcp/support-router" IndirectTcpSupportRouter(indirect_tcp::config::SupportRouterConfig),
        |config, _, rng| indirect_tcp::SupportRouter::new(config, rng.clone());
    /// The part of Indirect TCP at a mobile host.
    "indirect-tcp/mobile-host" IndirectTcpMobileHost(indirect_tcp::config::MobileHostConfig),
        |config, _, _| indirect_tcp::MobileHost::new(config);
    /// A mobile node of SIGMA.
    "sigma/mobile-node" SigmaMobileNode(sigma::config::MobileNodeConfig),
        |config, interfaces, rng| sigma::MobileNode::new(config, interfaces, rng);
    /// A correspondent of mobile nodes in SIGMA.
    "sigma/correspondent" SigmaCorrespondent(sigma::config::CorrespondentConfig),
        |config, _, rng| sigma::Correspondent::new(&config, rng);
    /// A location manager of SIGMA.
    "sigma/location-manager" SigmaLocationManager(sigma::config::LocationManagerConfig),
        |config, _, _| sigma::LocationManager::new(config);
    /// A source of datagrams at a constant rate.
    "apps/constant-rate" ConstantRate(apps::ConstantRateConfig),
        |config, _, _| apps::ConstantRate::new(config);
    /// A receiver of datagrams.
    "apps/sink" Sink(apps::SinkConfig),
        |config, _, _| Ok::<_, ConfigError>(apps::Sink::new(config));
    /// A bulk server: sends bytes to each client that connects.
    "apps/bulk-server" BulkServer(apps::BulkServerConfig),
        |config, _, _| apps::BulkServer::new(config);
    /// A bulk client: connects to a bulk server, and reads the bytes that the server sends.
    "apps/bulk-client" BulkClient(apps::BulkClientConfig),
        |config, _, _| Ok::<_, ConfigError>(apps::BulkClient::new(&config));
    /// A request server: answers the requests of request clients.
    "apps/request-server" RequestServer(apps::RequestServerConfig),
        |config, _, _| Ok::<_, ConfigError>(apps::RequestServer::new(config));
    /// A request client: connects to a request server, sends requests, and waits for each answer.
    "apps/request-client" RequestClient(apps::RequestClientConfig),
        |config, _, _| apps::RequestClient::new(config);
    /// A role that tunes the radio of its host from cell to cell.
    "apps/roam" Roam(apps::RoamConfig),
        |config, interfaces, _| apps::Roam::new(config, interfaces);
}

impl RoleConfig {
    /// Returns whether the role moves TCP connections between hosts. On Linux, the kernel must then permit
    /// `TCP_REPAIR` (tcp(7)).
    pub const fn needs_tcp_repair(&self) -> bool {
        matches!(self, Self::IndirectTcpSupportRouter(_))
    }

    /// Returns the numbers of the messages of Mobile IP that the role uses; `None` for a role of another protocol.
    pub const fn numbers(&self) -> Option<Numbers> {
        match self {
            Self::MobileIpHomeAgent(config) => Some(config.numbers),
            Self::MobileIpForeignAgent(config) => Some(config.numbers),
            Self::MobileIpMobileNode(config) => Some(config.numbers),
            Self::MobileIpCorrespondent(config) => Some(config.numbers),
            _ => None,
        }
    }

    /// Reads a role. The key `kind` selects the type; the other keys are the configuration of that kind. Fails if the
    /// kind is missing or unknown, or if a key of the configuration is invalid.
    pub fn read(mut table: toml::Table) -> Result<Self, KeyError> {
        let known = || format!("allowed: {}", Self::KINDS.join(", "));
        let Some(toml::Value::String(kind)) = table.remove("kind") else {
            return Err(KeyError::new("kind", format!("must be the kind of the role; {}", known())));
        };
        let unknown = || Err(KeyError::new("kind", format!("unknown kind `{kind}`; {}", known())));
        Self::read_kind(&kind, table).unwrap_or_else(unknown)
    }

    /// Returns the same configuration, completed by the facts about the host that the role needs.
    #[must_use]
    pub fn on_host(mut self, around: &Surroundings) -> Self {
        match &mut self {
            Self::CellularIpGateway(config) | Self::CellularIpStation(config) => {
                config.own = around.addresses();
            }
            Self::MobileIpHomeAgent(config) => {
                config.host.clone_from(&around.own);
                config.foreign = around.foreign_agents.iter().map(|(address, _)| *address).collect();
                let own = (config.address.address, config.interface.clone());
                config.is_foreign = around.foreign_agents.contains(&own);
            }
            Self::MobileIpForeignAgent(config) => {
                config.own = around.addresses();
                config.visited.clone_from(&around.visited);
                config.agents = around.foreign_agents.iter().map(|(address, _)| *address).collect();
                config.partners.clone_from(&around.partners);
                config.beside = around.home_agents.iter().map(|(address, _)| *address).collect();
                let own = (config.address.address, config.interface.clone());
                config.is_home = around.home_agents.contains(&own);
            }
            Self::MobileIpCorrespondent(config) => config.own = around.addresses(),
            _ => {}
        }
        self
    }

    /// Returns the key of the role that has no effect with its other keys, and the reason; `None` if there is none.
    pub fn without_effect(&self) -> Option<ConfigError> {
        match self {
            Self::MobileIpForeignAgent(config) => config.without_effect(),
            Self::MobileIpMobileNode(config) => config.without_effect(),
            _ => None,
        }
    }

    /// Builds the role for a host with these interfaces. `rng` is the root of the host's random numbers. Fails if the
    /// configuration is invalid.
    pub fn build(&self, interfaces: Interfaces<'_>, rng: &Rng) -> Result<Box<dyn Role>, NodeError> {
        let role = self.construct(interfaces, &rng.fork(self.kind()));
        role.map_err(|error| NodeError::Role { kind: self.kind(), index: 0, error })
    }
}

impl<'de> Deserialize<'de> for RoleConfig {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::read(toml::Table::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

fn config<T: serde::de::DeserializeOwned + JsonSchema>(table: toml::Table) -> Result<T, KeyError> {
    serde_path_to_error::deserialize(toml::Value::Table(table)).map_err(|error| {
        let path = error.path().to_string();
        let path = path.trim_matches('.').to_owned();
        let problem = crate::expected::by_schema::<T>(&path, error.inner().message());
        KeyError { path, problem }
    })
}
