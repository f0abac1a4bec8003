//! The configuration. Defaults are those of the RFC if it has one, otherwise ours; the docs name the source.

use crate::message::{Algorithm, Association};
use auth::Key;
use node::config::{ConfigError, span, spans, text};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use wire::{Duration, InterfaceAddress, Ipv4Addr};

/// The minimum length of an association's key, in bytes (RFC 5944, section 5.1).
const SHORTEST_KEY: usize = 16;
/// The greatest reserved security parameter index; 0 to this one are reserved (RFC 5944, section 5.1).
const RESERVED_SPIS: u32 = 255;

/// A home agent.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HomeAgentConfig {
    /// Its address, with the length of the home network's prefix.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::interface_address")]
    pub address: InterfaceAddress,
    /// The interface to the home network.
    pub interface: String,
    /// The mobile nodes that it serves. A node that is listed twice has two security associations.
    pub mobile_nodes: Vec<Peer>,
    /// The foreign agents with which it has security associations.
    #[serde(default)]
    pub foreign_agents: Vec<Peer>,
    /// The longest lifetime of a registration [default: 1 h, our choice].
    #[serde(default = "registration_lifetime", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub registration_lifetime: Duration,
    /// The largest difference to a mobile node's clock [default: 7 s, RFC 5944, section 5.7].
    #[serde(default = "replay_window", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub replay_window: Duration,
    /// The size of the largest datagram in a tunnel, in bytes [default: that of Ethernet minus the outer header].
    #[serde(default = "tunnel_mtu")]
    pub tunnel_mtu: u16,
    /// The times after a change at which the home agent announces it on the home network [default: 0, 1 and 3 s, our
    /// choice].
    #[serde(default = "announcements", deserialize_with = "spans")]
    #[schemars(schema_with = "node::config::schema::spans")]
    pub announcements: Vec<Duration>,
    /// Its advertisements.
    #[serde(default)]
    pub advertise: Advertise,
    /// All addresses of its host: no mobile node is there.
    #[serde(skip)]
    pub host: Vec<InterfaceAddress>,
}

/// A foreign agent.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForeignAgentConfig {
    /// Its care-of address, with the length of the visited network's prefix.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::interface_address")]
    pub address: InterfaceAddress,
    /// The interface to the visited network.
    pub interface: String,
    /// The interfaces of all foreign agents of its host.
    #[serde(skip)]
    pub visited: Vec<String>,
    /// Addresses to which other roles of its host send of themselves: no visitor has one of them.
    #[serde(skip)]
    pub partners: Vec<Ipv4Addr>,
    /// All addresses of its host.
    #[serde(skip)]
    pub own: Vec<Ipv4Addr>,
    /// Those of them that home agents have.
    #[serde(skip)]
    pub beside: Vec<Ipv4Addr>,
    /// The mobile nodes with which it has security associations.
    #[serde(default)]
    pub mobile_nodes: Vec<Peer>,
    /// The home agents with which it has security associations.
    #[serde(default)]
    pub home_agents: Vec<Peer>,
    /// The longest lifetime of a registration [default: 1 h, our choice].
    #[serde(default = "registration_lifetime", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub registration_lifetime: Duration,
    /// The number of mobile nodes that it serves at a time [default: 1024, our choice]. If all places are taken, it
    /// advertises that it is busy. A visit without a security association is not authenticated: a host on the link with
    /// a helper elsewhere can take all places for the longest lifetime of a registration.
    #[serde(default = "visitors")]
    pub visitors: usize,
    /// The number of registrations that wait for a home agent at a time [default: 1024, of which at most 2 of one
    /// mobile node, our choice; RFC 5944, section 3.7.1, typically 5]. Those of registered visitors do not count.
    #[serde(default = "pending")]
    pub pending: usize,
    /// The time in which a registration waits for the home agent [default: 7 s, RFC 5944, section 3.7.2.2].
    #[serde(default = "pending_timeout", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub pending_timeout: Duration,
    /// Its advertisements.
    #[serde(default)]
    pub advertise: Advertise,
}

/// The advertisements of an agent.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Advertise {
    /// The interval between two advertisements [default: 1 s, recommended by RFC 2002 and used by the experiments].
    #[serde(deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub interval: Duration,
    /// The largest random reduction of the interval, so that agents do not synchronize [default: 50 ms, our choice].
    #[serde(deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub jitter: Duration,
    /// The lifetime of an advertisement, in whole seconds [default: 3 s, three intervals, RFC 5944, section 2.3].
    #[serde(deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub lifetime: Duration,
    /// The number of solicitations that are answered separately in a second (our choice). Further ones are answered by
    /// at most as many multicast advertisements.
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

/// A mobile node.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MobileNodeConfig {
    /// Its home address, with the length of the home network's prefix.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::interface_address")]
    pub address: InterfaceAddress,
    /// The interface of its radio.
    pub interface: String,
    /// Its home agent, with their security association.
    pub home_agent: Peer,
    /// The foreign agents with which it has security associations.
    #[serde(default)]
    pub foreign_agents: Vec<Peer>,
    /// The router of the home network [default: the home agent].
    pub home_router: Option<Ipv4Addr>,
    /// The movement detection.
    #[serde(default)]
    pub movement: Movement,
    /// Whether the link triggers movement detection: when the interface comes up, the node solicits and registers at
    /// once (allowed by RFC 5944, appendix B).
    #[serde(default = "yes")]
    pub link_trigger: bool,
    /// The lifetime that it requests, unless the agent offers less [default: 5 min, our choice].
    #[serde(default = "lifetime", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub lifetime: Duration,
    /// The times after its return at which it announces itself on the home network [default: 0, 1 and 3 s, our choice].
    #[serde(default = "announcements", deserialize_with = "spans")]
    #[schemars(schema_with = "node::config::schema::spans")]
    pub announcements: Vec<Duration>,
}

/// The movement detection of a mobile node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Movement {
    /// Eager cell switching: it registers with each agent that it has not heard before. RFC 5944, section 2.4.2.3,
    /// recommends that it stays while it hears its agent.
    #[default]
    Eager,
}

/// A node with which there is a mobility security association.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Peer {
    /// Its address; of a mobile node, the home address.
    pub address: Ipv4Addr,
    /// The security parameter index.
    pub spi: u32,
    /// The algorithm of the authenticator: `hmac-sha256`, or `hmac-md5` for a peer that supports nothing else.
    #[serde(default)]
    pub algorithm: Algorithm,
    /// The shared key.
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

/// The associations of a node, by peer; those with a peer in the order of the configuration.
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

    /// Returns the association to sign with: the first that is configured for `peer`.
    pub(crate) fn first(&self, peer: Ipv4Addr) -> Option<&Association> {
        self.0.get(&peer)?.first()
    }

    /// Returns the association with `peer` that has this SPI.
    pub(crate) fn named(&self, peer: Ipv4Addr, spi: u32) -> Option<&Association> {
        self.0.get(&peer)?.iter().find(|association| association.spi == spi)
    }
}

impl HomeAgentConfig {
    /// Checks the configuration; the error names the key and what is allowed.
    pub fn check(&self) -> Result<(), ConfigError> {
        check_address("address", self.address)?;
        check_peers("mobile_nodes", &self.mobile_nodes)?;
        check_peers("foreign_agents", &self.foreign_agents)?;
        check_lifetime("registration_lifetime", self.registration_lifetime)?;
        self.advertise.check()?;
        for peer in &self.mobile_nodes {
            // The home agent answers ARP for this address, so it must be of the home network, and not its own.
            let at_home = self.address.link.contains(peer.address) && peer.address != self.address.address;
            if !at_home || self.address.is_broadcast(peer.address) {
                let problem =
                    format!("{} is not an address of a mobile node in {}", peer.address, self.address.link);
                return Err(ConfigError::new("mobile_nodes", problem));
            }
        }
        if self.replay_window <= Duration::from_secs(3) {
            return Err(ConfigError::new("replay_window", "must be longer than 3s (RFC 5944, section 5.7)"));
        }
        if self.tunnel_mtu < 548 {
            let problem = "must be at least 548: the smallest MTU of a link minus the outer header";
            return Err(ConfigError::new("tunnel_mtu", problem));
        }
        Ok(())
    }
}

impl ForeignAgentConfig {
    /// Checks the configuration; the error names the key and what is allowed.
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
    /// Checks the configuration; the error names the key and what is allowed.
    pub fn check(&self) -> Result<(), ConfigError> {
        check_address("address", self.address)?;
        check_peers("home_agent", std::slice::from_ref(&self.home_agent))?;
        check_peers("foreign_agents", &self.foreign_agents)?;
        check_lifetime("lifetime", self.lifetime)?;
        if self.home_agent.address == self.address.address {
            return Err(ConfigError::new("home_agent", "a mobile node is not its own home agent"));
        }
        Ok(())
    }
}

impl Advertise {
    fn check(&self) -> Result<(), ConfigError> {
        if self.interval.is_zero() || self.jitter >= self.interval {
            let problem = "`interval` must be greater than zero, and `jitter` shorter than it";
            return Err(ConfigError::new("advertise", problem));
        }
        // With less, an agent would expire after one or two lost advertisements.
        let least = self.interval.saturating_mul(3);
        // The maximum lifetime is RFC 1256's (section 4.1).
        if self.lifetime < least || self.lifetime > Duration::from_mins(150) {
            let problem = format!(
                "`lifetime` must be at least three times `interval` ({least:?}; RFC 5944, section 2.3) and at most 9000s"
            );
            return Err(ConfigError::new("advertise", problem));
        }
        if self.lifetime.subsec_nanos() != 0 {
            return Err(ConfigError::new("advertise", "`lifetime` must be whole seconds"));
        }
        Ok(())
    }
}

fn check_address(key: &'static str, own: InterfaceAddress) -> Result<(), ConfigError> {
    if is_host(own.address) && !own.is_broadcast(own.address) {
        return Ok(());
    }
    Err(ConfigError::new(key, format!("{} is not a unicast host address", own.address)))
}

/// Checks an association. The error is the key that is wrong, `spi` or `key`, and what is wrong with it.
pub fn check_association(spi: u32, key: &Key) -> Result<(), (&'static str, String)> {
    if spi <= RESERVED_SPIS {
        return Err(("spi", format!("SPI {spi} is reserved; use {} or more", RESERVED_SPIS + 1)));
    }
    if key.as_bytes().len() < SHORTEST_KEY {
        return Err(("key", format!("the key must have at least {SHORTEST_KEY} bytes")));
    }
    Ok(())
}

fn check_peers(key: &'static str, peers: &[Peer]) -> Result<(), ConfigError> {
    let mut known = BTreeSet::new();
    for peer in peers {
        let problem = if !is_host(peer.address) {
            format!("{} is not a unicast host address", peer.address)
        } else if let Err((_, problem)) = check_association(peer.spi, &peer.key) {
            format!("{}: {problem}", peer.address)
        } else if !known.insert((peer.address, peer.spi)) {
            format!("{} has two associations with SPI {}", peer.address, peer.spi)
        } else {
            continue;
        };
        return Err(ConfigError::new(key, problem));
    }
    Ok(())
}

/// A lifetime is sent as whole seconds, and 0xffff means infinite. A lifetime shorter than three seconds would end
/// before a lost request is repeated: registrations are at least a second apart.
fn check_lifetime(key: &'static str, lifetime: Duration) -> Result<(), ConfigError> {
    if lifetime.subsec_nanos() == 0 && (3..0xffff).contains(&lifetime.as_secs()) {
        return Ok(());
    }
    Err(ConfigError::new(key, "must be whole seconds, from 3s to 65534s"))
}

/// Whether an address can be a host's: not of 0.0.0.0/8, loopback, multicast, class E or limited broadcast.
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
