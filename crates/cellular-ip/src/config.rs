//! The configuration. Defaults are those of the draft if it has one, otherwise ours; the docs name the source.

use auth::Key;
use node::config::{ConfigError, span, spans, text};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use wire::{Duration, Ipv4Addr, Mac};

/// A base station or a gateway. A gateway is a node whose uplink is the router of the Internet.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StationConfig {
    /// The id of the node, which mobile hosts send in route-updates.
    pub id: u32,
    /// The address of the gateway, to which control packets are sent.
    pub gateway: Ipv4Addr,
    /// The next node towards the gateway; for the gateway, the router of the Internet.
    pub uplink: Neighbor,
    /// The interfaces to the nodes below.
    #[serde(default)]
    pub downlinks: Vec<String>,
    /// The radio interface, if there is one.
    pub radio: Option<String>,
    /// The key of the network. Mobile hosts never get it.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::key")]
    pub network_key: Key,
    /// The generation of the network's key.
    #[serde(default = "first_generation")]
    pub key_generation: u8,
    /// The lifetime of a mapping without a packet from its host [default: 9 s, from the draft].
    #[serde(default = "route_timeout", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub route_timeout: Duration,
    /// Whether the flag S is supported. Without it, a semisoft route-update moves the host at once.
    #[serde(default = "yes")]
    pub semisoft: bool,
    /// The number of packets that the delay device holds [default: 8; the paper has 1 for UDP and 8 for TCP].
    #[serde(default = "delay_device")]
    pub delay_device: usize,
    /// The number of packets that all delay devices of this node hold together [default: 256, our choice; the paper has
    /// "a small pool"].
    #[serde(default = "delay_pool")]
    pub delay_pool: usize,
    /// The longest time in which a packet waits in the delay device [default: 500 ms, our choice].
    #[serde(default = "delay_hold", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub delay_hold: Duration,
    /// The DSCPs that are not delayed by the delay device [default: EF and VOICE-ADMIT, our choice].
    #[serde(default = "delay_exempt")]
    pub delay_exempt: Vec<u8>,
    /// The largest difference to a mobile host's clock [default: 5 s, our choice].
    #[serde(default = "replay_window", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub replay_window: Duration,
    /// The period of route-updates of the mobile hosts [default: 20 s, our choice]. Data do not refresh a mapping that
    /// no route-update has confirmed for three periods. `0s`: no limit, as in the paper.
    #[serde(default = "route_reauth_time", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub route_reauth_time: Duration,
    /// The node's own addresses, which no mobile host has: those of its host.
    #[serde(skip)]
    pub own: Vec<Ipv4Addr>,
    /// The number of hosts in the cache. A new host is refused if it is full (our choice).
    #[serde(default = "cache_capacity")]
    pub cache_capacity: usize,
    /// The number of data packets without a mapping that this node processes per second. It drops the others (our
    /// choice).
    #[serde(default = "strays")]
    pub strays: u16,
}

/// A neighbor, by interface and link address.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Neighbor {
    /// The interface to it.
    pub interface: String,
    /// Its link address.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::mac")]
    pub mac: Mac,
}

/// A mobile host.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MobileConfig {
    /// The home address, which identifies the host in the network.
    pub address: Ipv4Addr,
    /// The address of the gateway, to which control packets are sent.
    pub gateway: Ipv4Addr,
    /// The radio interface.
    pub interface: String,
    /// The base stations that it may use, beginning with the first one. Hosts with equal lists share one.
    #[serde(deserialize_with = "shared")]
    #[schemars(with = "Vec<Station>")]
    pub stations: Arc<[Station]>,
    /// The session key, as from a registration.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::key")]
    pub session_key: Key,
    /// The generation of the network's key from which the session key was derived.
    #[serde(default = "first_generation")]
    pub key_generation: u8,
    /// The random value of the registration, 8 bytes in hexadecimal.
    #[serde(deserialize_with = "hex_u64")]
    #[schemars(schema_with = "node::config::schema::text")]
    pub r_mh: u64,
    /// The longest time after the last sent packet until a route-update is sent [default: 3 s, from the draft].
    #[serde(default = "route_update_time", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub route_update_time: Duration,
    /// The time from the semisoft packet to the retuning [default: 100 ms, our choice; in the paper proportional to the
    /// round trip].
    #[serde(default = "semisoft_delay", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub semisoft_delay: Duration,
    /// The times after the first route-update of a handoff at which it is repeated (our choice). Without repetitions, a
    /// lost route-update would cut off a host that sends data, because its data restart the timer.
    #[serde(default = "update_repeats", deserialize_with = "shared_spans")]
    #[schemars(schema_with = "node::config::schema::spans")]
    pub update_repeats: Arc<[Duration]>,
    /// The longest time between two route-updates, even if data are sent [default: 20 s, our choice]. It restores a
    /// mapping that a node has lost. `0s`: no limit, as in the paper.
    #[serde(default = "route_reauth_time", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub route_reauth_time: Duration,
    /// The number of the host's packets that are kept while its radio retunes (our choice).
    #[serde(default = "tuning_queue")]
    pub tuning_queue: usize,
    /// Handoffs at given times.
    #[serde(default)]
    #[schemars(with = "Vec<Move>")]
    pub moves: Box<[Move]>,
}

/// The parameters of a base station that a mobile host knows.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Station {
    /// Its name, for commands.
    pub name: String,
    /// Its id.
    pub id: u32,
    /// Its cell.
    pub cell: u16,
    /// The link address of its radio.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::mac")]
    pub mac: Mac,
}

/// A handoff at a given time.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Move {
    /// When.
    #[serde(deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub at: Duration,
    /// The base station to which the host moves.
    pub to: String,
    /// The kind of handoff.
    pub kind: Kind,
}

/// A kind of handoff.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The host retunes, and then sends a route-update.
    Hard,
    /// The host first sends a route-update through the new base station, and retunes later.
    Semisoft,
}

impl Kind {
    /// Returns its name in records and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hard => "hard",
            Self::Semisoft => "semisoft",
        }
    }
}

impl StationConfig {
    /// Checks the configuration; the error names the key and what is allowed.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.route_timeout.is_zero() {
            return Err(ConfigError::new("route_timeout", "must be greater than zero"));
        }
        check_network_key(&self.network_key)?;
        if self.delay_exempt.iter().any(|dscp| *dscp > 63) {
            return Err(ConfigError::new("delay_exempt", "a DSCP is 0 to 63"));
        }
        if self.radio.is_none() && self.downlinks.is_empty() {
            return Err(ConfigError::new("downlinks", "a node needs a radio or an interface to nodes below"));
        }
        Ok(())
    }
}

/// Checks that a network key has at least 16 bytes.
pub fn check_network_key(key: &Key) -> Result<(), ConfigError> {
    if key.as_bytes().len() < 16 {
        // A mobile host with its session key could otherwise search for the network key.
        return Err(ConfigError::new("network_key", "must have at least 16 bytes, 32 hexadecimal digits"));
    }
    Ok(())
}

impl MobileConfig {
    /// Checks the configuration; the error names the key and what is allowed.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.stations.is_empty() {
            return Err(ConfigError::new("stations", "name at least one"));
        }
        if self.route_update_time.is_zero() {
            return Err(ConfigError::new("route_update_time", "must be greater than zero"));
        }
        for step in &self.moves {
            if !self.stations.iter().any(|station| station.name == step.to) {
                let known: Vec<&str> = self.stations.iter().map(|station| station.name.as_str()).collect();
                let problem = format!("no station `{}`; known: {}", step.to, known.join(", "));
                return Err(ConfigError::new("moves", problem));
            }
        }
        if !self.moves.is_sorted_by_key(|step| step.at) {
            return Err(ConfigError::new("moves", "must be in the order of time"));
        }
        Ok(())
    }
}

impl MobileConfig {
    /// Checks the timers against those of a node of the access network. The error names the key of this configuration,
    /// and the key of the node's.
    pub fn check_with(&self, node: &StationConfig) -> Result<(), (ConfigError, &'static str)> {
        let timeout = node.route_timeout;
        if timeout < self.route_update_time * 2 {
            let problem = format!(
                "mappings end after a route_timeout of {timeout:?}, and route-updates are sent every {:?}: the route_timeout must \
                 be at least twice the route_update_time",
                self.route_update_time
            );
            return Err((ConfigError::new("route_update_time", problem), "route_timeout"));
        }
        if self.semisoft_delay >= timeout {
            let problem = format!(
                "the new path of a semisoft handoff ends after a route_timeout of {timeout:?}, before the host moves: the \
                 semisoft_delay of {:?} must be shorter",
                self.semisoft_delay
            );
            return Err((ConfigError::new("semisoft_delay", problem), "route_timeout"));
        }
        Ok(())
    }
}

fn shared<'de, D: serde::Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Arc<[T]>, D::Error> {
    Vec::deserialize(deserializer).map(Arc::from)
}

fn shared_spans<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Arc<[Duration]>, D::Error> {
    spans(deserializer).map(Arc::from)
}

fn hex_u64<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let digits = String::deserialize(deserializer)?;
    let number = (digits.len() == 16).then(|| u64::from_str_radix(&digits, 16).ok()).flatten();
    number.ok_or_else(|| serde::de::Error::custom(format!("`{digits}`: write 16 hexadecimal digits")))
}

const fn yes() -> bool {
    true
}
const fn first_generation() -> u8 {
    1
}
const fn route_timeout() -> Duration {
    Duration::from_secs(9)
}
const fn route_update_time() -> Duration {
    Duration::from_secs(3)
}
const fn route_reauth_time() -> Duration {
    Duration::from_secs(20)
}
const fn semisoft_delay() -> Duration {
    Duration::from_millis(100)
}
fn update_repeats() -> Arc<[Duration]> {
    Arc::new([Duration::from_millis(30), Duration::from_millis(90)])
}
const fn tuning_queue() -> usize {
    64
}
const fn delay_device() -> usize {
    8
}
const fn delay_pool() -> usize {
    256
}
const fn delay_hold() -> Duration {
    Duration::from_millis(500)
}
fn delay_exempt() -> Vec<u8> {
    vec![46, 44]
}
const fn replay_window() -> Duration {
    Duration::from_secs(5)
}
const fn cache_capacity() -> usize {
    1_000_000
}
const fn strays() -> u16 {
    100
}
