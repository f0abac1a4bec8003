//! The configuration of the Mobile IP roles.

use crate::message::{Algorithm, Association, INFINITE};
use crate::tunnels::SMALLEST_MTU;
use auth::Key;
use node::config::{ConfigError, span, spans, text};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use wire::{Duration, InterfaceAddress, Ipv4Addr};

/// The minimum length of an association's key, in bytes (RFC 5944, section 5.1).
const SHORTEST_KEY: usize = 16;
/// The greatest reserved security parameter index: 0 to 255 are reserved (RFC 5944, section 1.6).
const RESERVED_SPIS: u32 = 255;

/// The configuration of a home agent: its network, its mobile nodes and its limits.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HomeAgentConfig {
    /// The address of the home agent, and the length of the home network's prefix, for example `10.1.0.2/16`.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::interface_address")]
    pub address: InterfaceAddress,
    /// The name of the interface to the home network.
    pub interface: String,
    /// The mobile nodes that the home agent serves, with their security associations. A mobile node that is listed
    /// twice has two associations.
    pub mobile_nodes: Vec<Peer>,
    /// The foreign agents with which the home agent has security associations.
    #[serde(default)]
    pub foreign_agents: Vec<Peer>,
    /// The longest registration that the home agent grants, in whole seconds from `3s` to `65534s`; default `60min`
    /// (not from an RFC).
    #[serde(default = "registration_lifetime", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub registration_lifetime: Duration,
    /// The longest permitted difference between the timestamp of a request and the home agent's clock. It must be
    /// greater than `3s`; default `7s` (RFC 5944, section 5.7.1).
    #[serde(default = "replay_window", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub replay_window: Duration,
    /// The size of the largest datagram inside a tunnel, in bytes, at least 548. The default is 1480: the payload of an
    /// Ethernet frame (1500 bytes) without the outer header (20 bytes).
    #[serde(default = "tunnel_mtu")]
    pub tunnel_mtu: u16,
    /// The times at which the home agent announces a mobile node's new link address on the home network by gratuitous
    /// ARP (RFC 5944, section 4.6). They count from the change, and are in ascending order; default `0s`, `1s` and `3s`
    /// (not from an RFC).
    #[serde(default = "announcements", deserialize_with = "spans")]
    #[schemars(schema_with = "node::config::schema::spans")]
    pub announcements: Vec<Duration>,
    /// The parameters of the agent advertisements.
    #[serde(default)]
    pub advertise: Advertise,
    /// All addresses of the host on which the home agent runs, with their links. The caller sets them. None of them,
    /// and no broadcast address of these links, is accepted as a care-of address.
    #[serde(skip)]
    pub host: Vec<InterfaceAddress>,
}

/// The configuration of a foreign agent: its network, its associations and its limits.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForeignAgentConfig {
    /// The care-of address, and the length of the visited network's prefix, for example `10.2.0.1/16`.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::interface_address")]
    pub address: InterfaceAddress,
    /// The name of the interface to the visited network.
    pub interface: String,
    /// The names of the interfaces to visited networks of all foreign agents on the same host. The caller sets them.
    #[serde(skip)]
    pub visited: Vec<String>,
    /// Addresses to which other roles on the same host send without a previous request from these addresses. The caller
    /// sets them. A registration with one of them as the home address is denied.
    #[serde(skip)]
    pub partners: Vec<Ipv4Addr>,
    /// All addresses of the host on which the foreign agent runs. The caller sets them.
    #[serde(skip)]
    pub own: Vec<Ipv4Addr>,
    /// The addresses in `own` that belong to home agents on the same host. The caller sets them.
    #[serde(skip)]
    pub beside: Vec<Ipv4Addr>,
    /// The mobile nodes with which the foreign agent has security associations.
    #[serde(default)]
    pub mobile_nodes: Vec<Peer>,
    /// The home agents with which the foreign agent has security associations.
    #[serde(default)]
    pub home_agents: Vec<Peer>,
    /// The longest registration that the foreign agent advertises and accepts, in whole seconds from `3s` to `65534s`;
    /// default `60min` (not from an RFC).
    #[serde(default = "registration_lifetime", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub registration_lifetime: Duration,
    /// Whether mobile nodes with a co-located care-of address must register through this agent too (flag R; RFC 5944,
    /// section 2.1.1); default true.
    #[serde(default = "yes")]
    pub registration_required: bool,
    /// The maximum number of visits; default 1024 (not from an RFC). When it is reached, the foreign agent advertises
    /// that it is busy, and denies requests that begin a visit. Without a security association, the foreign agent
    /// cannot check whether a mobile node exists. So a host on the link can use up all visits for
    /// `registration_lifetime`, if another host accepts its requests as the home agent.
    #[serde(default = "visitors")]
    pub visitors: usize,
    /// The maximum number of requests that wait for a home agent's reply; default 1024 (RFC 5944, section 3.7.1,
    /// suggests 5). Of these, at most 2 may have the same home and link address, and at most 4 the same link address.
    /// Requests of registered visitors are not counted.
    #[serde(default = "pending")]
    pub pending: usize,
    /// How long a request waits for the home agent's reply at most, greater than zero; default `7s` (RFC 5944, section
    /// 3.7.1).
    #[serde(default = "pending_timeout", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub pending_timeout: Duration,
    /// The parameters of the agent advertisements.
    #[serde(default)]
    pub advertise: Advertise,
}

/// The parameters of the advertisements of a home agent or foreign agent (RFC 5944, section 2.3).
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Advertise {
    /// The interval of advertisements, greater than zero; default `1s`: RFC 2002, section 2.3, recommends at most one
    /// advertisement per second.
    #[serde(deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub interval: Duration,
    /// The longest time by which an advertisement is sent early, less than `interval`; default `50ms` (not from an
    /// RFC). The time is random, so that agents do not synchronize (RFC 5944, section 2.1).
    #[serde(deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub jitter: Duration,
    /// The lifetime of an advertisement, in whole seconds from three times `interval` (RFC 5944, section 2.1) to
    /// `9000s` (RFC 1256, section 4.1); default `3s`.
    #[serde(deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub lifetime: Duration,
    /// The maximum number of solicitations per second that get separate answers; default 20 (not from an RFC). Further
    /// solicitations are answered together, by at most the same number of advertisements to all hosts per second.
    pub answers: u16,
}

impl Default for Advertise {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(1),
            jitter: Duration::from_millis(50),
            lifetime: Duration::from_secs(3),
            answers: 20,
        }
    }
}

/// The configuration of a mobile node: its home network, its associations and its movement detection.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MobileNodeConfig {
    /// The home address, and the length of the home network's prefix, for example `10.1.0.7/16`.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::interface_address")]
    pub address: InterfaceAddress,
    /// The name of the interface that moves between networks.
    pub interface: String,
    /// The home agent, with the security association that signs requests.
    pub home_agent: Peer,
    /// The foreign agents with which the mobile node has security associations.
    #[serde(default)]
    pub foreign_agents: Vec<Peer>,
    /// The address of the router of the home network. Without it, the mobile node uses the home agent as the router at
    /// home.
    pub home_router: Option<Ipv4Addr>,
    /// Where the care-of address comes from; default `agent`.
    #[serde(default)]
    pub care_of: CareOf,
    /// With `care_of = "configured"`, the networks that the mobile node can visit. For a network with `cell`, the radio
    /// must be tuned to this cell. The first network that fits is used. If none fits, the mobile node has no care-of
    /// address.
    #[serde(default)]
    pub networks: Vec<Foreign>,
    /// With `care_of = "configured"`, the time from when the link is up until the address is usable; default `0s`.
    #[serde(default, deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub address_delay: Duration,
    /// How the mobile node detects that it has moved; default `lcs`.
    #[serde(default)]
    pub movement: Movement,
    /// Whether the mobile node returns home as soon as it hears its home agent, whatever `movement` is; default true
    /// (RFC 5944, section 2.4.3).
    #[serde(default = "yes")]
    pub home_first: bool,
    /// Whether the mobile node solicits each time that its interface comes up, and then registers with the next usable
    /// agent that it hears; default true. RFC 5944, section 3.6 and appendix A, allows this. If false, the mobile node
    /// solicits only if no agent is in use.
    #[serde(default = "yes")]
    pub link_trigger: bool,
    /// The lifetime that the mobile node requests, in whole seconds from `3s` to `65534s`; default `5min` (not from an
    /// RFC). If an agent offers less, the mobile node requests the offered lifetime.
    #[serde(default = "lifetime", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub lifetime: Duration,
    /// The times at which the mobile node announces its return on the home network by gratuitous ARP (RFC 5944, section
    /// 4.6). They count from the return, and are in ascending order; default `0s`, `1s` and `3s` (not from an RFC).
    #[serde(default = "announcements", deserialize_with = "spans")]
    #[schemars(schema_with = "node::config::schema::spans")]
    pub announcements: Vec<Duration>,
}

/// Where a mobile node's care-of address comes from. With a co-located care-of address, the mobile node registers
/// directly with its home agent, and needs no foreign agent. It registers through a foreign agent if the agent requires
/// this by the flag R (RFC 5944, section 2.1.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CareOf {
    /// From foreign agents.
    #[default]
    Agent,
    /// It is an address of the interface that another role of the host acquires, for example the role `dhcp/client`. An
    /// address of the home network is not used.
    Acquired,
    /// It is one of the addresses in the key `networks`.
    Configured,
}

/// A network that a mobile node can visit, and the mobile node's address there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Foreign {
    /// The number of the network's cell. Without it, the network is any that the interface is connected to.
    pub cell: Option<u16>,
    /// The address, and the length of the network's prefix, for example `10.3.0.77/24`. It must not be in the home
    /// network.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::interface_address")]
    pub address: InterfaceAddress,
    /// The address of the network's router.
    pub router: Ipv4Addr,
}

/// How a mobile node detects that it has moved: which agent it uses when it hears several.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Movement {
    /// Lazy cell switching: the mobile node stays with its agent until the lifetime of the agent's advertisement ends
    /// (algorithm 1 of RFC 5944, section 2.4.2.1).
    #[default]
    Lcs,
    /// Prefix matching, lazy: as `lcs`. In addition, when a renewal is due, the mobile node turns to an agent of
    /// another subnet if it no longer hears its own agent (algorithm 2 of RFC 5944, section 2.4.2.2). An agent is no
    /// longer heard when half of its advertisement's lifetime has passed.
    Pm,
    /// Prefix matching, eager: the mobile node registers with a new agent if both agents advertise prefixes, and the
    /// prefixes differ.
    PmEager,
    /// Eager cell switching: the mobile node registers with each new agent that it hears, unless the agent is in the
    /// subnet of the present agent. RFC 5944, section 3.6, recommends to stay while the present agent is heard.
    Ecs,
    /// The mobile node stays with its agent until its registration is to be renewed, shortly before the registration's
    /// lifetime ends. It uses another agent only if it has not heard its agent within the lifetime of the
    /// advertisement. So does Dynamics, the Mobile IP of the Helsinki University of Technology.
    Expiry,
}

impl Movement {
    /// Returns the name of the policy in a configuration and in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lcs => "lcs",
            Self::Pm => "pm",
            Self::PmEager => "pm-eager",
            Self::Ecs => "ecs",
            Self::Expiry => "expiry",
        }
    }
}

/// A peer with which there is a mobility security association.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Peer {
    /// The address of the peer; of a mobile node, its home address.
    pub address: Ipv4Addr,
    /// The security parameter index, at least 256 (RFC 5944, section 1.6).
    pub spi: u32,
    /// The algorithm of the authenticator: `hmac-sha256`, or `hmac-md5` for a peer that supports nothing else;
    /// default `hmac-sha256`.
    #[serde(default)]
    pub algorithm: Algorithm,
    /// The key of the association, at least 16 bytes in hexadecimal.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::key")]
    pub key: Key,
}

impl Peer {
    /// Returns the security association with this peer.
    pub fn association(&self) -> Association {
        Association { spi: self.spi, algorithm: self.algorithm, key: self.key.clone() }
    }
}

/// The security associations of a role, by the peer's address. Those with the same peer are in the order of the
/// configuration.
#[derive(Clone, Debug)]
pub(crate) struct Associations(BTreeMap<Ipv4Addr, Vec<Association>>);

impl Associations {
    pub(crate) fn new(peers: &[Peer]) -> Self {
        let mut all: BTreeMap<Ipv4Addr, Vec<Association>> = BTreeMap::new();
        for peer in peers {
            all.entry(peer.address).or_default().push(peer.association());
        }
        Self(all)
    }

    /// Returns the association to sign with: the first that is configured for `peer`. `None` if there is none.
    pub(crate) fn first(&self, peer: Ipv4Addr) -> Option<&Association> {
        self.0.get(&peer)?.first()
    }

    /// Returns the association with `peer` that has this SPI; `None` if there is none.
    pub(crate) fn named(&self, peer: Ipv4Addr, spi: u32) -> Option<&Association> {
        self.0.get(&peer)?.iter().find(|association| association.spi == spi)
    }
}

impl HomeAgentConfig {
    /// Checks the configuration. An error names the key and the problem.
    pub fn check(&self) -> Result<(), ConfigError> {
        check_address("address", self.address)?;
        check_peers("mobile_nodes", &self.mobile_nodes)?;
        check_peers("foreign_agents", &self.foreign_agents)?;
        check_lifetime("registration_lifetime", self.registration_lifetime)?;
        self.advertise.check()?;
        for peer in &self.mobile_nodes {
            // The home agent answers ARP requests for a mobile node's address. So this address must be in the home
            // network, and must not be the home agent's.
            let at_home = self.address.link.contains(peer.address) && peer.address != self.address.address;
            if !at_home || self.address.is_broadcast(peer.address) {
                let problem = format!(
                    "{} must be a host address of {} other than {}",
                    peer.address, self.address.link, self.address.address
                );
                return Err(ConfigError::new("mobile_nodes", problem));
            }
        }
        if self.replay_window <= Duration::from_secs(3) {
            return Err(ConfigError::new(
                "replay_window",
                "must be greater than 3s (RFC 5944, section 5.7.1)",
            ));
        }
        if self.tunnel_mtu < SMALLEST_MTU {
            let problem = format!(
                "must be at least {SMALLEST_MTU} bytes, the smallest MTU that the home agent uses for a tunnel"
            );
            return Err(ConfigError::new("tunnel_mtu", problem));
        }
        check_announcements(&self.announcements)
    }
}

impl ForeignAgentConfig {
    /// Checks the configuration. An error names the key and the problem.
    pub fn check(&self) -> Result<(), ConfigError> {
        check_address("address", self.address)?;
        check_peers("mobile_nodes", &self.mobile_nodes)?;
        check_peers("home_agents", &self.home_agents)?;
        check_lifetime("registration_lifetime", self.registration_lifetime)?;
        self.advertise.check()?;
        if self.pending_timeout.is_zero() {
            return Err(ConfigError::new("pending_timeout", "must be greater than zero"));
        }
        Ok(())
    }
}

impl MobileNodeConfig {
    /// Checks the configuration. An error names the key and the problem.
    pub fn check(&self) -> Result<(), ConfigError> {
        check_address("address", self.address)?;
        check_peers("home_agent", std::slice::from_ref(&self.home_agent))?;
        check_peers("foreign_agents", &self.foreign_agents)?;
        check_lifetime("lifetime", self.lifetime)?;
        if self.home_agent.address == self.address.address {
            return Err(ConfigError::new("home_agent", "must have another address than the mobile node"));
        }
        self.check_care_of()?;
        check_announcements(&self.announcements)
    }
}

impl MobileNodeConfig {
    fn check_care_of(&self) -> Result<(), ConfigError> {
        if self.networks.is_empty() == (self.care_of == CareOf::Configured) {
            let problem =
                "must list at least one network with `care_of = \"configured\"`, and none without it";
            return Err(ConfigError::new("networks", problem));
        }
        let home = self.address;
        for Foreign { address, router, .. } in &self.networks {
            check_address("networks", *address)?;
            if home.link.contains(address.address) || address.link.contains(home.address) {
                let problem = format!("{address} must not be in the home network {}", home.link);
                return Err(ConfigError::new("networks", problem));
            }
            if !address.link.contains(*router) || *router == address.address || address.is_broadcast(*router)
            {
                let problem = format!("the router {router} must be another host address of {}", address.link);
                return Err(ConfigError::new("networks", problem));
            }
        }
        Ok(())
    }
}

impl Advertise {
    fn check(&self) -> Result<(), ConfigError> {
        if self.interval.is_zero() || self.jitter >= self.interval {
            let problem = "`interval` must be greater than zero, and `jitter` less than `interval`";
            return Err(ConfigError::new("advertise", problem));
        }
        // With a shorter lifetime, an agent could expire although only two advertisements were lost.
        let least = self.interval.saturating_mul(3);
        // RFC 1256, section 4.1, limits the lifetime to 9000 s.
        if self.lifetime < least || self.lifetime > Duration::from_mins(150) {
            let problem = format!(
                "`lifetime` must be at least three times `interval` ({least:?}; RFC 5944, section 2.1) and at most 9000s"
            );
            return Err(ConfigError::new("advertise", problem));
        }
        if self.lifetime.subsec_nanos() != 0 {
            return Err(ConfigError::new("advertise", "`lifetime` must be whole seconds, for example `3s`"));
        }
        Ok(())
    }
}

fn check_address(key: &'static str, own: InterfaceAddress) -> Result<(), ConfigError> {
    if is_host(own.address) && !own.is_broadcast(own.address) {
        return Ok(());
    }
    let problem = format!(
        "{} is not a unicast host address; loopback, multicast, reserved and broadcast addresses are not allowed",
        own.address
    );
    Err(ConfigError::new(key, problem))
}

/// Checks the SPI and the key of an association. An error has the name of the wrong part, `spi` or `key`, and the
/// problem.
pub fn check_association(spi: u32, key: &Key) -> Result<(), (&'static str, String)> {
    if spi <= RESERVED_SPIS {
        return Err(("spi", format!("SPI {spi} is reserved; use {} or more", RESERVED_SPIS + 1)));
    }
    if key.as_bytes().len() < SHORTEST_KEY {
        return Err((
            "key",
            format!(
                "the key must have at least {SHORTEST_KEY} bytes, {} hexadecimal digits",
                2 * SHORTEST_KEY
            ),
        ));
    }
    Ok(())
}

fn check_peers(key: &'static str, peers: &[Peer]) -> Result<(), ConfigError> {
    let mut known = BTreeSet::new();
    for peer in peers {
        let problem = if !is_host(peer.address) {
            format!(
                "{} is not a unicast host address; loopback, multicast and reserved addresses are not allowed",
                peer.address
            )
        } else if let Err((_, problem)) = check_association(peer.spi, &peer.key) {
            format!("{}: {problem}", peer.address)
        } else if !known.insert((peer.address, peer.spi)) {
            format!("{} has two associations with SPI {}; give each a different SPI", peer.address, peer.spi)
        } else {
            continue;
        };
        return Err(ConfigError::new(key, problem));
    }
    Ok(())
}

/// Checks the lifetime of registrations. A lifetime is sent in whole seconds, and [`INFINITE`] means without end.
/// Requests are at least 1 s apart. So a lifetime shorter than 3 s could end before a lost request is repeated.
fn check_lifetime(key: &'static str, lifetime: Duration) -> Result<(), ConfigError> {
    if lifetime.subsec_nanos() == 0 && (3..INFINITE.into()).contains(&lifetime.as_secs()) {
        return Ok(());
    }
    Err(ConfigError::new(key, "must be whole seconds, from 3s to 65534s"))
}

/// Checks the times of announcements. Announcements are sent in the order of the list, so the times must be ascending.
fn check_announcements(times: &[Duration]) -> Result<(), ConfigError> {
    if times.is_sorted() {
        return Ok(());
    }
    Err(ConfigError::new(
        "announcements",
        "must be in ascending order, for example `[\"0s\", \"1s\", \"3s\"]`",
    ))
}

/// Returns whether an address can be a host's: not in 0.0.0.0/8, loopback, multicast, class E or limited broadcast.
pub(crate) const fn is_host(address: Ipv4Addr) -> bool {
    !matches!(address.octets()[0], 0 | 127 | 224..)
}

const fn yes() -> bool {
    true
}
const fn registration_lifetime() -> Duration {
    Duration::from_hours(1)
}
const fn replay_window() -> Duration {
    Duration::from_secs(7)
}
const fn tunnel_mtu() -> u16 {
    1480
}
fn announcements() -> Vec<Duration> {
    vec![Duration::ZERO, Duration::from_secs(1), Duration::from_secs(3)]
}
const fn visitors() -> usize {
    1024
}
const fn pending() -> usize {
    1024
}
const fn pending_timeout() -> Duration {
    Duration::from_secs(7)
}
const fn lifetime() -> Duration {
    Duration::from_mins(5)
}
