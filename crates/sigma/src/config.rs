//! What an operator writes. Defaults are the digest's of RFC 8945 and RFC 2136 where they give one, ours otherwise.

use crate::message::{Name, PORT, TsigKey};
use crate::place::CODES;
use auth::Key;
use node::Addr;
use node::config::{ConfigError, span, text};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeSet;
use wire::{Duration, InterfaceAddress, Ipv4Addr};

/// Length of the shortest key of a mobile node, in bytes (RFC 8945, section 8, recommends the length of the MAC, 32).
const SHORTEST_KEY: usize = 16;

/// A location manager.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LocationManagerConfig {
    /// Its address. It answers on port 53.
    pub address: Ipv4Addr,
    /// The zone that it is responsible for.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::text")]
    pub zone: Name,
    /// The mobile nodes that may register.
    pub mobile_nodes: Vec<Identity>,
    /// The TTL of its answers, in whole seconds [default: 5 s, our choice]. With a shorter TTL, resolvers learn of a
    /// move sooner.
    #[serde(default = "ttl", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub ttl: Duration,
    /// The lifetime of a registration without a refresh [default: 1 h, our choice].
    #[serde(default = "lifetime", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub lifetime: Duration,
    /// The number of updates of one mobile node that are accepted per second, at most 16. Further ones are refused (our
    /// choice).
    #[serde(default = "updates")]
    pub updates: u16,
    /// The number of messages of one host that are answered per second. Further ones are dropped (our choice). Updates
    /// of mobile nodes do not count.
    #[serde(default = "answers")]
    pub answers: u16,
}

/// A mobile node that a location manager serves.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// Its name in the zone, which is also the name of its key. A node that is identified by its home address has the
    /// name `10.1.8.5.home.sigma.example`, with its address.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::text")]
    pub name: Name,
    /// The shared key.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::key")]
    pub key: Key,
}

/// The parameters of a registration with a location manager.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegistrarConfig {
    /// The location manager's address.
    pub address: Ipv4Addr,
    /// Its zone.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::text")]
    pub zone: Name,
    /// The node's name in the zone, which is also the name of its key.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::text")]
    pub name: Name,
    /// The shared key.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::key")]
    pub key: Key,
    /// The interval of refreshes [default: 20 min, our choice].
    #[serde(default = "refresh", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub refresh: Duration,
}

/// A correspondent: a host whose peers may move.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CorrespondentConfig {
    /// Its address.
    pub address: Ipv4Addr,
    /// The parameters of its SCTP.
    #[serde(default)]
    pub sctp: SctpConfig,
}

/// A mobile node.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MobileNodeConfig {
    /// Its radios, by their interfaces. With two radios, it is in two networks at the same time.
    pub radios: Vec<String>,
    /// The networks in which it can be, each with its cell.
    pub networks: Vec<Network>,
    /// The time from the link to an address [default: 0 s, because addresses are configured]. It models DHCP or
    /// SLAAC.
    #[serde(default, deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub address_delay: Duration,
    /// The thresholds of signal strength.
    #[serde(default)]
    pub signal: SignalConfig,
    /// The longest time in which an association keeps an address after another one became primary [default: 60 s, our
    /// choice].
    #[serde(default = "park", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub park: Duration,
    /// The location manager with which it registers [default: none].
    pub location_manager: Option<RegistrarConfig>,
    /// Peers that also move. If one is silent, the node queries the location manager for its address.
    #[serde(default)]
    pub peers: Vec<Peer>,
    /// The parameters of its SCTP.
    #[serde(default)]
    pub sctp: SctpConfig,
}

/// A peer that also moves.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Peer {
    /// Its name in the zone of the location manager.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::text")]
    pub name: Name,
    /// The addresses that it can have at the begin of an association.
    pub addresses: Vec<Ipv4Addr>,
}

/// A network in which a mobile node can be.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Its name, for reports.
    pub name: String,
    /// Its cell.
    pub cell: u16,
    /// The node's address in it, with the length of the prefix.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::interface_address")]
    pub address: InterfaceAddress,
    /// Its access router.
    pub router: Ipv4Addr,
}

/// The thresholds of a mobile node, in dBm. All are our choice; the report has none.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SignalConfig {
    /// The smallest signal of a cell that is prepared [default: -80].
    pub prepare: i16,
    /// The smallest signal of a cell to which the node moves [default: -75].
    pub go: i16,
    /// How much stronger than the present cell it must be, in dB [default: 6].
    pub hysteresis: i16,
    /// How long it must be stronger [default: 300 ms].
    #[serde(deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub hold: Duration,
    /// A cell with a weaker signal counts as lost [default: -88].
    pub lost: i16,
    /// The shortest time between two moves, unless the link is lost [default: 1 s]. It doubles with each move within 10
    /// s.
    #[serde(deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub dwell: Duration,
}

impl Default for SignalConfig {
    fn default() -> Self {
        Self {
            prepare: -80,
            go: -75,
            hysteresis: 6,
            hold: Duration::from_millis(300),
            lost: -88,
            dwell: Duration::from_secs(1),
        }
    }
}

/// The parameters of a host's SCTP. Defaults are those of RFC 9260, section 16.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SctpConfig {
    /// RTO.Min [default: 1 s; for handoffs 100 to 200 ms are usual].
    #[serde(deserialize_with = "some_span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub rto_min: Option<Duration>,
    /// HB.interval [default: 30 s].
    #[serde(deserialize_with = "some_span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub heartbeat_interval: Option<Duration>,
    /// The longest time in which an acknowledgment waits for a second packet [default: 200 ms].
    #[serde(deserialize_with = "some_span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub sack_delay: Option<Duration>,
    /// The size of the receive buffer, and of the send buffer, in bytes [default: 128 KiB].
    pub buffer: Option<u32>,
    /// The number of unconfirmed addresses that a peer may add per minute [default: 10, our choice]. Further ones are
    /// refused, and the peer asks again later. An address that answers a probe does not count.
    pub added_per_minute: Option<u16>,
    /// The number of addresses of a peer [default: 16, our choice]. Further ones are refused.
    pub addresses: Option<u16>,
    /// The shared key of both ends, and its number. Without it, an attacker who saw the handshake can change addresses
    /// (RFC 4895, section 6.1).
    pub pair_key: Option<PairKey>,
}

/// An endpoint-pair key.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PairKey {
    /// Its number, not 0.
    pub id: u16,
    /// The shared key.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::key")]
    pub key: Key,
}

fn some_span<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    span(deserializer).map(Some)
}

impl SctpConfig {
    /// Checks the values. An error names the key and the permitted range.
    pub fn check(&self) -> Result<(), ConfigError> {
        let wrong = |problem| Err(ConfigError::new("sctp", problem));
        if self.rto_min.is_some_and(|rto| rto.is_zero()) {
            return wrong("`rto_min` must be greater than zero");
        }
        if self.sack_delay.is_some_and(|delay| delay > Duration::from_millis(500)) {
            return wrong("`sack_delay` must be at most 500ms (RFC 9260, section 6.2)");
        }
        if self.buffer.is_some_and(|buffer| buffer < 4096) {
            return wrong("`buffer` must be at least 4096");
        }
        if self.addresses == Some(0) {
            return wrong("`addresses` must be at least 1");
        }
        if self.pair_key.as_ref().is_some_and(|pair| pair.id == 0) {
            return wrong("`pair_key`: number 0 means no key (RFC 4895, section 6.1)");
        }
        Ok(())
    }

    /// Returns the configuration of the endpoint. A peer that does not support address changes is accepted too.
    pub(crate) fn endpoint(&self) -> sctp::Config {
        let base = sctp::Config::default();
        let buffer = |default| self.buffer.unwrap_or(default);
        sctp::Config {
            rto_min: self.rto_min.unwrap_or(base.rto_min),
            heartbeat_interval: self.heartbeat_interval.unwrap_or(base.heartbeat_interval),
            sack_delay: self.sack_delay.unwrap_or(base.sack_delay),
            send_buffer: buffer(base.send_buffer),
            receive_buffer: buffer(base.receive_buffer),
            added_per_minute: self.added_per_minute.map_or(base.added_per_minute, usize::from),
            max_addresses: self.addresses.map_or(base.max_addresses, usize::from),
            pair_key: self.pair_key.as_ref().map(|pair| (pair.id, pair.key.clone())),
            ..base
        }
    }
}

impl MobileNodeConfig {
    /// Checks the values. An error names the key and the problem.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.radios.is_empty() {
            return Err(ConfigError::new("radios", "name at least one radio"));
        }
        let mut cells = BTreeSet::new();
        for network in &self.networks {
            let problem = if !cells.insert(network.cell) {
                format!("two networks in cell {}", network.cell)
            } else if !network.address.link.contains(network.router)
                || network.address.address == network.router
            {
                format!("{}: the router {} is not a neighbor there", network.name, network.router)
            } else {
                continue;
            };
            return Err(ConfigError::new("networks", problem));
        }
        let SignalConfig { prepare, go, hysteresis, lost, .. } = self.signal;
        if lost > prepare || prepare > go || hysteresis < 0 {
            let problem = "must be `lost` <= `prepare` <= `go`, and `hysteresis` 0 or more";
            return Err(ConfigError::new("signal", problem));
        }
        self.sctp.check()?;
        self.location_manager.as_ref().map_or(Ok(()), RegistrarConfig::check)
    }
}

impl LocationManagerConfig {
    /// Checks the values. An error names the key and the problem.
    pub fn check(&self) -> Result<(), ConfigError> {
        let mut names = BTreeSet::new();
        for Identity { name, key } in &self.mobile_nodes {
            check_identity("mobile_nodes", &self.zone, name, key)?;
            if !names.insert(name) {
                return Err(ConfigError::new("mobile_nodes", format!("{name} is listed twice")));
            }
        }
        if self.ttl.subsec_nanos() != 0 || self.ttl.as_secs() > 86_400 {
            return Err(ConfigError::new("ttl", "must be whole seconds, at most one day"));
        }
        for (key, count) in [("updates", self.updates), ("answers", self.answers)] {
            if count == 0 {
                return Err(ConfigError::new(key, "must be at least 1"));
            }
        }
        if usize::from(self.updates) > CODES {
            let problem = format!(
                "must be at most {CODES}: a location manager remembers {CODES} updates of one second, to recognize replays"
            );
            return Err(ConfigError::new("updates", problem));
        }
        let alive = !self.lifetime.is_zero();
        if alive { Ok(()) } else { Err(ConfigError::new("lifetime", "must be greater than zero")) }
    }

    /// Returns the address and port of its listener.
    pub const fn at(&self) -> Addr {
        Addr::new(self.address, PORT)
    }
}

impl RegistrarConfig {
    /// Checks the values. An error names the problem.
    pub fn check(&self) -> Result<(), ConfigError> {
        check_identity("location_manager", &self.zone, &self.name, &self.key)?;
        if self.refresh < Duration::from_secs(1) {
            return Err(ConfigError::new("location_manager", "`refresh` must be at least 1s"));
        }
        Ok(())
    }

    /// Returns our key.
    pub fn tsig(&self) -> TsigKey {
        TsigKey { name: self.name.clone(), secret: self.key.clone() }
    }
}

fn check_identity(at: &'static str, zone: &Name, name: &Name, key: &Key) -> Result<(), ConfigError> {
    if name == zone || !name.is_within(zone) {
        return Err(ConfigError::new(at, format!("{name} is not a name below {zone}")));
    }
    if key.as_bytes().len() < SHORTEST_KEY {
        return Err(ConfigError::new(at, format!("{name}: the key must have at least {SHORTEST_KEY} bytes")));
    }
    Ok(())
}

const fn park() -> Duration {
    Duration::from_mins(1)
}
const fn ttl() -> Duration {
    Duration::from_secs(5)
}
const fn lifetime() -> Duration {
    Duration::from_hours(1)
}
const fn refresh() -> Duration {
    Duration::from_mins(20)
}
const fn updates() -> u16 {
    10
}
const fn answers() -> u16 {
    50
}
