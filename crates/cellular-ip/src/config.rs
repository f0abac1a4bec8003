//! The configuration. Defaults are those of the draft if it has one, otherwise ours; the docs name the source.

use auth::Key;
use node::config::{ConfigError, check_moves, span, spans, text};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use wire::{Duration, Ipv4Addr, Mac};

/// A base station, or a gateway: a gateway is a node whose uplink is the Internet's router.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StationConfig {
    /// Its id, as mobile hosts name it in their route-updates.
    pub id: u32,
    /// The gateway's address: where control packets go.
    pub gateway: Ipv4Addr,
    /// The next node towards the gateway; for the gateway, the router of the Internet.
    pub uplink: Neighbor,
    /// The interfaces to nodes further down.
    #[serde(default)]
    pub downlinks: Vec<String>,
    /// The air interface, if it has one.
    pub radio: Option<String>,
    /// The network's key, which no mobile host is ever given.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::key")]
    pub network_key: Key,
    /// Which generation of the network's key that is.
    #[serde(default = "first_generation")]
    pub key_generation: u8,
    /// How long a mapping lives without a packet from its host: 9 s (draft).
    #[serde(default = "route_timeout", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub route_timeout: Duration,
    /// Whether S is understood: without it, a semisoft route-update moves the host at once.
    #[serde(default = "yes")]
    pub semisoft: bool,
    /// Packets that the delay device keeps back: 1 for UDP, 8 for TCP (paper); 8 here.
    #[serde(default = "delay_device")]
    pub delay_device: usize,
    /// Packets that all delay devices of this node keep together: 256 (ours; the paper says "a small pool").
    #[serde(default = "delay_pool")]
    pub delay_pool: usize,
    /// How long a packet waits in the delay device at most: 500 ms (ours).
    #[serde(default = "delay_hold", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub delay_hold: Duration,
    /// Codepoints that overtake the delay device: EF and VOICE-ADMIT (ours).
    #[serde(default = "delay_exempt")]
    pub delay_exempt: Vec<u8>,
    /// How far a mobile host's clock may be off: 5 s (ours).
    #[serde(default = "replay_window", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub replay_window: Duration,
    /// A mapping that no route-update has confirmed for three times as long is no longer kept by data: 20 s (ours), as the
    /// mobile hosts have it; `0s` for no limit, as in the paper.
    #[serde(default = "route_reauth_time", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub route_reauth_time: Duration,
    /// The node's own addresses, which no mobile host has: those of its host.
    #[serde(skip)]
    pub own: Vec<Ipv4Addr>,
    /// Hosts that the cache takes; a new one beyond it is refused, none is pushed out (ours).
    #[serde(default = "cache_capacity")]
    pub cache_capacity: usize,
    /// Data packets without a mapping that this node looks at, a second; the rest are dropped unseen (ours).
    #[serde(default = "strays")]
    pub strays: u16,
}

/// A neighbor by interface and link address.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Neighbor {
    /// The interface it is reached by.
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
    /// Its home address, by which the network knows it.
    pub address: Ipv4Addr,
    /// The gateway's address: where control packets go.
    pub gateway: Ipv4Addr,
    /// Its radio.
    pub interface: String,
    /// The base stations it may use. The first is where it begins. Hosts that may use the same share one list.
    #[serde(deserialize_with = "shared")]
    #[schemars(with = "Vec<Station>")]
    pub stations: Arc<[Station]>,
    /// The key that registration gave it.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::key")]
    pub session_key: Key,
    /// Which generation of the network's key that comes from.
    #[serde(default = "first_generation")]
    pub key_generation: u8,
    /// The random value of its registration, eight bytes in hexadecimal.
    #[serde(deserialize_with = "hex_u64")]
    #[schemars(schema_with = "node::config::schema::text")]
    pub r_mh: u64,
    /// A route-update at the latest so long after the last packet sent: 3 s (draft).
    #[serde(default = "route_update_time", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub route_update_time: Duration,
    /// From the semisoft packet to the retuning: 100 ms (ours; the paper: in proportion to the round trip).
    #[serde(default = "semisoft_delay", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub semisoft_delay: Duration,
    /// When the route-update of a handoff is sent again, counted from the first (ours): one lost route-update would
    /// otherwise leave the host cut off for as long as its own data keep the timer from running out.
    #[serde(default = "update_repeats", deserialize_with = "shared_spans")]
    #[schemars(schema_with = "node::config::schema::spans")]
    pub update_repeats: Arc<[Duration]>,
    /// A route-update at the latest so long after the last one, however many data packets were sent: 20 s (ours). A node
    /// that lost its mapping hears of the host again; `0s` for none, as in the paper.
    #[serde(default = "route_reauth_time", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub route_reauth_time: Duration,
    /// Packets of its own that it keeps while it retunes (ours).
    #[serde(default = "tuning_queue")]
    pub tuning_queue: usize,
    /// Handoffs by timer.
    #[serde(default)]
    #[schemars(with = "Vec<Move>")]
    pub moves: Box<[Move]>,
}

/// A base station, as a mobile host knows it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Station {
    /// What the operator calls it.
    pub name: String,
    /// Its id.
    pub id: u32,
    /// The cell it serves.
    pub cell: u16,
    /// Its link address on the air.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::mac")]
    pub mac: Mac,
}

/// A handoff by timer.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Move {
    /// When.
    #[serde(deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub at: Duration,
    /// To which base station.
    pub to: String,
    /// How.
    pub kind: Kind,
}

/// The two ways to hand off.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Retune, then route-update.
    Hard,
    /// A route-update through the new base station first.
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
            return Err(ConfigError::new(
                "downlinks",
                "a node needs a radio or an interface to nodes further down",
            ));
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
        let known: Vec<&str> = self.stations.iter().map(|station| station.name.as_str()).collect();
        check_moves("station", &known, self.moves.iter().map(|step| (step.at, step.to.as_str())))
    }
}

impl MobileConfig {
    /// Checks the timers against those of a node of the access network. The error names the key of this configuration,
    /// and the key of the node's.
    pub fn check_with(&self, node: &StationConfig) -> Result<(), (ConfigError, &'static str)> {
        let timeout = node.route_timeout;
        if timeout < self.route_update_time * 2 {
            let problem = format!(
                "mappings end after a route_timeout of {timeout:?}, and a route-update comes every {:?}: the route_timeout must \
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
