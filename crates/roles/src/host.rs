//! The configuration of one host.

use crate::{KeyError, NodeError, RoleConfig, Surroundings};
use node::config::{ConfigError, Interfaces, some_text, text};
use node::{Action, Hop, Lifetime, NextHop, Node, Rng, Role, Route, RouteKey};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::str::FromStr;
use wire::{Iface, Instant, InterfaceAddress, Ipv4Addr, Mac, Prefix};

/// The configuration of a host: its interfaces, addresses, static routes and roles.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostConfig {
    /// The name of the host.
    pub name: String,
    /// The addresses of the host itself, without an interface. The host's sockets use the first of these addresses. If
    /// the list is empty, the sockets use the first address of an interface.
    #[serde(default)]
    pub addresses: Vec<Ipv4Addr>,
    /// The interfaces. They are numbered in this order, from 1.
    #[serde(default, rename = "interface")]
    pub interfaces: Vec<InterfaceConfig>,
    /// The static routes of the host.
    #[serde(default, rename = "route")]
    pub routes: Vec<RouteConfig>,
    /// The roles, in the order in which they are offered packets.
    #[serde(default, rename = "role")]
    pub roles: Vec<RoleConfig>,
    /// The random seed of the host's daemon. Without this key, the operating system gives another seed at each start.
    /// The simulator uses the seed of the run instead.
    pub seed: Option<u64>,
    /// The parameters of the host's TCP.
    #[serde(default)]
    pub tcp: crate::TcpConfig,
    /// The error of the host's wall clock.
    #[serde(default)]
    pub clock: crate::ClockConfig,
    /// Whether the host records the number of entries that its roles hold for mobile hosts, at each change; default false.
    #[serde(default)]
    pub record_state: bool,
    /// The parameters of the host's daemon. The simulator ignores them.
    #[serde(default)]
    pub daemon: DaemonConfig,
}

/// The parameters of the daemon of a host.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate key")]
pub struct DaemonConfig {
    /// The path of the UNIX socket on which the daemon accepts commands.
    pub control: Option<PathBuf>,
    /// The path of the UNIX socket on which programs of this host request connections through its roles (`wayfare
    /// exec`).
    pub clients: Option<PathBuf>,
    /// The path of the UNIX socket of a lab's link emulator.
    pub radio: Option<PathBuf>,
    /// The number of this host in the lab's link emulator.
    #[serde(default)]
    pub number: u32,
    /// The path of the file for the daemon's records. The daemon writes them when they need 32 MiB of memory, and when
    /// it ends.
    pub records: Option<PathBuf>,
    /// Whether the daemon writes its records while it runs, for a lab that kills the daemon; default false.
    #[serde(default)]
    pub records_at_once: bool,
    /// The path of the file that keeps the records that the roles store, from one start of the daemon to the next.
    pub store: Option<PathBuf>,
    /// Whether the daemon continues before a stored record is on the disk; default false. The store then survives the
    /// end of the daemon, but not a crash of the machine.
    #[serde(default)]
    pub store_without_sync: bool,
    /// Whether the daemon stores nothing while the disk has no free block, even if there is room in the store's file;
    /// default false. The key serves labs that fill the disk.
    #[serde(default)]
    pub store_needs_room: bool,
    /// Whether the roles start only after a command of the lab; default false.
    #[serde(default)]
    pub hold: bool,
    /// Where packets are forwarded; default `user`.
    #[serde(default)]
    pub data_path: DataPathPlace,
}

/// Where the packets of a host are forwarded.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DataPathPlace {
    /// The daemon forwards all packets.
    #[default]
    User,
    /// An XDP program in the kernel takes packets out of IP in IP and forwards them to link addresses, if the routes of the roles
    /// permit it. It also keeps the last packets of visitors (`buffer` of a foreign agent). The daemon gets all other packets.
    /// This needs root, and a program that was built with clang. It is not possible together with `records`, which need each
    /// packet.
    Kernel,
}

/// The configuration of an interface of a host.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct InterfaceConfig {
    /// The name of the interface; on Linux, the name of the device.
    pub name: String,
    /// The link address, for example `02:00:00:00:00:01`.
    pub mac: String,
    /// The largest datagram of the interface in bytes; default 1500.
    #[serde(default = "ethernet_mtu")]
    pub mtu: u16,
    /// Whether the interface is a radio that roles tune to cells; default false.
    #[serde(default)]
    pub tunes: bool,
    /// The IP address, and the length of the link's prefix, for example `10.1.0.1/24`. An interface with an address
    /// uses ARP.
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
    /// The prefix of the destinations, for example `10.2.0.0/16`.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::prefix")]
    pub to: Prefix,
    /// The name of the interface by which packets leave.
    pub interface: String,
    /// The next hop: its IP address, for example `10.1.0.254`, or its link address, for example `02:00:00:00:00:01`.
    /// Without this key, each destination is a neighbor on the link.
    #[serde(default, deserialize_with = "some_text")]
    #[schemars(schema_with = "node::config::schema::text")]
    pub via: Option<Via>,
}

/// The next hop of a route: its IP address or its link address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Via {
    /// The next hop has this link address.
    Mac(Mac),
    /// The next hop has this IP address. ARP resolves it to the link address.
    Ip(Ipv4Addr),
}

/// The error of a text for a next hop that is neither an IPv4 address nor a link address.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("must be an IPv4 address, for example 10.1.0.254, or a link address, for example 02:00:00:00:00:01")]
pub struct ParseViaError;

impl FromStr for Via {
    type Err = ParseViaError;
    fn from_str(text: &str) -> Result<Self, ParseViaError> {
        let ip = text.parse().map(Self::Ip).ok();
        ip.or_else(|| text.parse().map(Self::Mac).ok()).ok_or(ParseViaError)
    }
}

impl HostConfig {
    /// Returns the node of this host. `rng` is the root of the host's random numbers. Fails if a role or the host is
    /// invalid, or if roles do not fit together.
    pub fn node(&self, rng: &Rng) -> Result<Node, NodeError> {
        crate::together::check(&self.roles)?;
        self.tcp.check()?;
        let names = self.interface_names();
        let around = self.surroundings()?;
        let build = |(place, role): (usize, &RoleConfig)| {
            let built = role.clone().on_host(&around).build(Interfaces(&names), rng);
            built.map_err(|error| match error {
                NodeError::Role { kind, error, .. } => NodeError::Role { kind, index: place, error },
                host @ NodeError::Host(_) => host,
            })
        };
        self.node_of(self.roles.iter().enumerate().map(build).collect::<Result<Vec<_>, _>>()?)
    }

    /// Returns the node of this host with `roles` instead of the roles of the configuration. Fails if an address, a
    /// link address or a route of the host is invalid.
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
            node.set_route(Instant::ZERO, key, Route::new(Action::Forward(hop), Lifetime::Permanent));
        }
        if self.record_state {
            node.record_state();
        }
        Ok(node)
    }

    /// Returns all addresses of this host: first those without an interface, then those of the interfaces in their
    /// order. Fails if the address of an interface is not valid.
    pub fn own_addresses(&self) -> Result<Vec<Ipv4Addr>, KeyError> {
        let mut own = self.addresses.clone();
        for (_, InterfaceAddress { address, .. }) in self.interface_addresses()? {
            if !own.contains(&address) {
                own.push(address);
            }
        }
        Ok(own)
    }

    /// Returns all addresses of this host, each with the prefix of its link. An address without an interface has a
    /// prefix of 32 bits.
    fn own_links(&self) -> Result<Vec<InterfaceAddress>, KeyError> {
        let alone = self.addresses.iter().map(|address| InterfaceAddress::new(*address, 32));
        Ok(alone.chain(self.interface_addresses()?.into_iter().map(|(_, address)| address)).collect())
    }

    /// Returns all addresses that this host has at any time: its own addresses, and those that the configuration of a
    /// role gives it in other networks. An address that a server leases is not known before.
    pub fn all_addresses(&self) -> Vec<Ipv4Addr> {
        // The caller has made a node of this configuration before, so the addresses are valid.
        let mut all = self.own_addresses().unwrap_or_default();
        for role in &self.roles {
            match role {
                RoleConfig::SigmaMobileNode(config) => {
                    all.extend(config.networks.iter().map(|network| network.address.address));
                }
                RoleConfig::MobileIpMobileNode(config) => {
                    all.extend(config.networks.iter().map(|network| network.address.address));
                }
                _ => {}
            }
        }
        all
    }

    /// Returns the names of the interfaces on which this host is a foreign agent.
    fn visited(&self) -> Vec<String> {
        let visited = self.roles.iter().filter_map(|role| match role {
            RoleConfig::MobileIpForeignAgent(config) => Some(config.interface.clone()),
            _ => None,
        });
        visited.collect()
    }

    /// Returns the addresses to which roles of the host send first: the other support routers, if the host is one.
    fn partners(&self) -> Vec<Ipv4Addr> {
        let routers = self.roles.iter().filter_map(|role| match role {
            RoleConfig::IndirectTcpSupportRouter(config) => Some(&config.routers),
            _ => None,
        });
        routers.flatten().map(|router| router.address).collect()
    }

    /// Returns the facts about this host that its roles need.
    fn surroundings(&self) -> Result<Surroundings, KeyError> {
        Ok(Surroundings {
            own: self.own_links()?,
            visited: self.visited(),
            partners: self.partners(),
            home_agents: self.home_agents(),
            foreign_agents: self.foreign_agents(),
        })
    }

    /// Returns the address and the interface of each home agent of the host.
    fn home_agents(&self) -> Vec<(Ipv4Addr, String)> {
        let home_agents = self.roles.iter().filter_map(|role| match role {
            RoleConfig::MobileIpHomeAgent(config) => Some((config.address.address, config.interface.clone())),
            _ => None,
        });
        home_agents.collect()
    }

    /// Returns the address and the interface of each foreign agent of the host.
    fn foreign_agents(&self) -> Vec<(Ipv4Addr, String)> {
        let foreign_agents = self.roles.iter().filter_map(|role| match role {
            RoleConfig::MobileIpForeignAgent(config) => {
                Some((config.address.address, config.interface.clone()))
            }
            _ => None,
        });
        foreign_agents.collect()
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
            "the interface `{}` has no address, so it cannot use ARP; set the interface's `address`, or give the link address of the next hop",
            route.interface
        );
        Err(ConfigError::new("via", problem))
    }

    /// Returns the link addresses of the interfaces, in their order. Fails if a link address is not valid.
    pub fn macs(&self) -> Result<Vec<Mac>, KeyError> {
        let mac = |(index, interface): (usize, &InterfaceConfig)| {
            interface.mac.parse().map_err(|error| {
                KeyError::new(format!("interface[{index}].mac"), format!("`{}`: {error}", interface.mac))
            })
        };
        self.interfaces.iter().enumerate().map(mac).collect()
    }
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

    /// The co-located care-of addresses of a configuration are addresses of the host. So a report about such an address
    /// is a report about this host.
    #[test]
    fn all_addresses_include_those_in_networks_that_are_visited() {
        let text = "
            name = 'mobile'
            addresses = ['10.1.0.7']
            [[interface]]
            name = 'air'
            mac = '02:00:00:00:00:01'
            [[role]]
            kind = 'mobile-ip/mobile-node'
            address = '10.1.0.7/16'
            interface = 'air'
            home_agent = { address = '10.1.0.2', spi = 256, key = '000102030405060708090a0b0c0d0e0f' }
            care_of = 'configured'
            networks = [
                { cell = 2, address = '10.3.0.77/24', router = '10.3.0.9' },
                { cell = 3, address = '10.4.0.77/24', router = '10.4.0.9' },
            ]
        ";
        let config: HostConfig = toml::from_str(text).unwrap();
        let all = ["10.1.0.7", "10.3.0.77", "10.4.0.77"].map(|address| address.parse::<Ipv4Addr>().unwrap());
        assert_eq!(config.all_addresses(), all);
    }

    /// docs/node.md has every key of the configuration, and its example is valid.
    #[test]
    fn the_page_about_the_configuration_is_true() {
        let page = include_str!("../../../docs/node.md");
        let example = page.split("```toml").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        let config: HostConfig = toml::from_str(example).unwrap();
        assert!(config.node(&Rng::new(1)).is_ok() && config.daemon.store.is_some());
        for schema in [
            schemars::schema_for!(DaemonConfig),
            schemars::schema_for!(crate::ClockConfig),
            schemars::schema_for!(InterfaceConfig),
            schemars::schema_for!(RouteConfig),
        ] {
            for key in schema.get("properties").and_then(|keys| keys.as_object()).unwrap().keys() {
                assert!(page.contains(&format!("`{key}`")), "{key}");
            }
        }
        for key in [
            "name",
            "addresses",
            "interface",
            "route",
            "role",
            "seed",
            "tcp",
            "clock",
            "record_state",
            "daemon",
        ] {
            assert!(page.contains(&format!("| `{key}` |")), "{key}");
        }
    }

    fn problem(interface: &str, route: &str) -> String {
        host(interface, route).node(&Rng::new(1)).unwrap_err().to_string()
    }

    #[test]
    fn an_interface_has_an_address_and_a_route_a_router() {
        let config = host("address = '10.1.0.1/24'", "via = '10.1.0.254'");
        assert_eq!(config.routes[0].via, Some(Via::Ip(Ipv4Addr::new(10, 1, 0, 254))));
        let own = [Ipv4Addr::new(10, 9, 0, 1), Ipv4Addr::new(10, 1, 0, 1)];
        assert_eq!(config.own_addresses(), Ok(own.to_vec()));
        for route in ["via = '10.1.0.254'", "", "via = '02:00:00:00:00:02'"] {
            assert!(host("address = '10.1.0.1/24'", route).node(&Rng::new(1)).is_ok(), "{route}");
        }
        assert!(host("", "via = '02:00:00:00:00:02'").node(&Rng::new(1)).is_ok(), "as it always was");
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
            assert_eq!(agent.agents, [Ipv4Addr::new(10, 1, 0, 1), Ipv4Addr::new(10, 2, 0, 1)]);
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
        assert_eq!(around.home_agents.iter().map(|(address, _)| *address).collect::<Vec<_>>(), home_agents);
        let home_agent = config.roles[0].clone();
        let agent = "kind = 'mobile-ip/foreign-agent'\ninterface = 'v'\naddress = '10.1.0.1/24'\n";
        let agent: RoleConfig = toml::from_str(agent).unwrap();
        let RoleConfig::MobileIpForeignAgent(agent) = agent.on_host(&around) else { panic!() };
        assert_eq!((agent.own, agent.beside), (home_agents.to_vec(), home_agents.to_vec()));
        assert!(!agent.is_home);
        // The home agent knows the foreign agents of its host. With one address and interface, one of them advertises.
        for (foreign, interface, shared) in
            [("10.1.0.1", "v", false), ("10.9.0.1", "w", false), ("10.9.0.1", "v", true)]
        {
            let text = format!(
                "{text}[[role]]\nkind = 'mobile-ip/foreign-agent'\ninterface = '{interface}'\naddress = '{foreign}/24'\n"
            );
            let around = toml::from_str::<HostConfig>(&text).unwrap().surroundings().unwrap();
            let RoleConfig::MobileIpHomeAgent(home) = home_agent.clone().on_host(&around) else { panic!() };
            assert_eq!((home.foreign, home.is_foreign), (vec![foreign.parse().unwrap()], shared));
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert!(
            problem("address = '10.1.0.1'", "")
                .starts_with("`interface[0].address`: `10.1.0.1`: an interface")
        );
        for route in ["", "via = '10.1.0.254'"] {
            assert!(
                problem("", route).starts_with("`route[0].via`: the interface `eth` has no address"),
                "{route}"
            );
        }
        assert_eq!("10.1.0".parse::<Via>(), Err(ParseViaError));
    }
}
