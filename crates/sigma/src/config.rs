//! The configuration of the SIGMA roles.

use crate::location::CODES;
use crate::message::{Name, PORT, TsigKey};
use auth::Key;
use node::Addr;
use node::config::{ConfigError, span, text};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeSet;
use wire::{Duration, InterfaceAddress, Ipv4Addr};

/// The minimum length of a mobile node's key, in bytes. RFC 8945, section 8, recommends the length of the MAC, 32
/// bytes.
const SHORTEST_KEY: usize = 16;

/// The configuration of a location manager.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LocationManagerConfig {
    /// The address at which the location manager answers, on UDP port 53.
    pub address: Ipv4Addr,
    /// The DNS zone for which the location manager is authoritative, for example `sigma.example`.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::text")]
    pub zone: Name,
    /// The mobile nodes that may register their addresses.
    pub mobile_nodes: Vec<Identity>,
    /// The time to live of the records in answers, in whole seconds, at most `86400s`; default `5s` (not from an RFC).
    /// With a shorter time, other hosts notice a move earlier.
    #[serde(default = "ttl", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub ttl: Duration,
    /// How long a registration is valid without a further update, greater than zero; default `60min` (not from an RFC).
    #[serde(default = "lifetime", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub lifetime: Duration,
    /// The maximum number of correctly signed updates of one mobile node that are processed in one second, 1 to 16;
    /// default 10 (not from an RFC). Repetitions are not counted. Further updates are answered with REFUSED.
    #[serde(default = "updates")]
    pub updates: u16,
    /// The maximum number of messages of one host that are answered in one second, at least 1; default 50 (not from an
    /// RFC). Further messages are dropped. Correctly signed updates are counted only if they are repetitions. Correctly
    /// signed queries of a mobile node have a separate rate of the same size.
    #[serde(default = "answers")]
    pub answers: u16,
}

/// A mobile node that may register with the location manager.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// The name of the mobile node in the zone, which is also the name of its key. A mobile node that is looked up by
    /// its home address has a name of the form `10.1.8.5.home.sigma.example`.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::text")]
    pub name: Name,
    /// The key of the mobile node, at least 16 bytes in hexadecimal.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::key")]
    pub key: Key,
}

/// The location manager of a mobile node, and the mobile node's registration there.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegistrarConfig {
    /// The address of the location manager.
    pub address: Ipv4Addr,
    /// The DNS zone of the location manager.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::text")]
    pub zone: Name,
    /// The name of the mobile node in the zone, which is also the name of its key.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::text")]
    pub name: Name,
    /// The key of the mobile node, at least 16 bytes in hexadecimal.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::key")]
    pub key: Key,
    /// The time from a confirmed registration to the next update while the address does not change, at least `1s`;
    /// default `20min` (not from an RFC).
    #[serde(default = "refresh", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub refresh: Duration,
}

/// The configuration of a correspondent: a host whose peers may move.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CorrespondentConfig {
    /// The address of the host.
    pub address: Ipv4Addr,
    /// The SCTP parameters of the host.
    #[serde(default)]
    pub sctp: SctpConfig,
}

/// The configuration of a mobile node.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MobileNodeConfig {
    /// The names of the radio interfaces, at least one. With two radios, the mobile node can be in two networks at the
    /// same time.
    pub radios: Vec<String>,
    /// The networks that the mobile node may use, each with a different cell.
    pub networks: Vec<Network>,
    /// How long the assignment of an address takes after the link is up, for example by DHCP; default `0s`, because the
    /// addresses are in the configuration.
    #[serde(default, deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub address_delay: Duration,
    /// The thresholds of signal strength at which the mobile node prepares a network and hands off.
    #[serde(default)]
    pub signal: SignalConfig,
    /// How long an address remains in the associations after another one was made primary; default `1min` (not from an
    /// RFC). The address is deleted earlier if its cell is lost, and later if an association needs it.
    #[serde(default = "park", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub park: Duration,
    /// The location manager with which the mobile node registers; without this field, the mobile node does not
    /// register, and looks up no peers.
    pub location_manager: Option<RegistrarConfig>,
    /// The peers that are mobile nodes. If such a peer does not answer, or if the mobile node has lost its network, the
    /// mobile node asks the location manager for the address of the peer.
    #[serde(default)]
    pub peers: Vec<Peer>,
    /// The SCTP parameters of the mobile node.
    #[serde(default)]
    pub sctp: SctpConfig,
}

/// A peer that is a mobile node.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Peer {
    /// The name of the peer in the zone of the location manager.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::text")]
    pub name: Name,
    /// The addresses that the peer may have when an association with it begins.
    pub addresses: Vec<Ipv4Addr>,
}

/// A network that a mobile node may use.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// The name of the network in marks and reports.
    pub name: String,
    /// The number of the network's radio cell.
    pub cell: u16,
    /// The address of the mobile node in this network, and the length of the prefix, for example `10.1.8.5/24`.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::interface_address")]
    pub address: InterfaceAddress,
    /// The address of the access router, in the same prefix.
    pub router: Ipv4Addr,
}

/// The thresholds of signal strength of a mobile node. The SIGMA report gives no values, so the defaults are not from a
/// source. The thresholds must satisfy `lost` <= `prepare` <= `go`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SignalConfig {
    /// The minimum strength in dBm at which a network is prepared; default -80.
    pub prepare: i16,
    /// The minimum strength in dBm at which the mobile node hands off to a network; default -75. It does not apply if
    /// the current cell is lost.
    pub go: i16,
    /// The minimum number of dB by which the new cell has to be stronger than the current one, 0 or more; default 6. It
    /// does not apply if the current cell is lost.
    pub hysteresis: i16,
    /// How long the new cell has to satisfy `go` and `hysteresis` before a handoff, unless the current cell is lost;
    /// default `300ms`.
    #[serde(deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub hold: Duration,
    /// The strength in dBm below which a cell counts as lost; default -88.
    pub lost: i16,
    /// The shortest time between two handoffs, unless the link or the current cell is lost; default `1s`. It doubles
    /// with each handoff that is less than 10 s after the handoff before, up to 32 times the value.
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

/// The SCTP parameters of a host. The defaults of `rto_min`, `heartbeat_interval` and `sack_delay` are those of RFC
/// 9260, section 16.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SctpConfig {
    /// RTO.Min, the shortest retransmission time-out, greater than zero; default `1s`. With `100ms` to `200ms`, the
    /// recovery after a handoff is shorter.
    #[serde(deserialize_with = "some_span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub rto_min: Option<Duration>,
    /// HB.interval, the time between two HEARTBEATs to an idle address, in addition to 0.5 to 1.5 times the RTO (RFC
    /// 9260, section 8.3); default `30s`.
    #[serde(deserialize_with = "some_span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub heartbeat_interval: Option<Duration>,
    /// How long an acknowledgment waits for a second packet, at most `500ms` (RFC 9260, section 6.2); default
    /// `200ms`.
    #[serde(deserialize_with = "some_span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub sack_delay: Option<Duration>,
    /// The send buffer and the receive buffer of an association in bytes, each at least 4096; default 131072.
    pub buffer: Option<u32>,
    /// The maximum number of unconfirmed addresses that a peer may add in one minute; default 10 (not from an RFC).
    /// Further additions are refused. An address that has answered a HEARTBEAT is not counted.
    pub added_per_minute: Option<u16>,
    /// The maximum number of addresses of a peer, at least 1; default 16 (not from an RFC). Further additions are
    /// refused, and further addresses in the handshake are ignored.
    pub addresses: Option<u16>,
    /// An endpoint-pair key, which both ends have (RFC 4895, section 6.1). Without it, a host that has read the
    /// handshake can change the addresses of an association.
    pub pair_key: Option<PairKey>,
}

/// An endpoint-pair key (RFC 4895, section 6.1).
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PairKey {
    /// The identifier of the key, 1 to 65535.
    pub id: u16,
    /// The key in hexadecimal.
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
            return wrong("`rto_min` must be greater than zero, for example `1s`");
        }
        if self.sack_delay.is_some_and(|delay| delay > Duration::from_millis(500)) {
            return wrong("`sack_delay` must be at most 500ms (RFC 9260, section 6.2)");
        }
        if self.buffer.is_some_and(|buffer| buffer < 4096) {
            return wrong("`buffer` must be at least 4096 bytes");
        }
        if self.addresses == Some(0) {
            return wrong("`addresses` must be at least 1");
        }
        if self.pair_key.as_ref().is_some_and(|pair| pair.id == 0) {
            return wrong("`pair_key`: `id` must be 1 to 65535; 0 means no key (RFC 4895, section 6.1)");
        }
        Ok(())
    }

    /// Returns the configuration of the SCTP endpoint. Peers that do not support address changes are accepted.
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
            return Err(ConfigError::new("radios", "must list at least one interface"));
        }
        let mut cells = BTreeSet::new();
        for network in &self.networks {
            let problem = if !cells.insert(network.cell) {
                format!("two networks have cell {}; each network needs a separate cell", network.cell)
            } else if !network.address.link.contains(network.router)
                || network.address.address == network.router
            {
                format!(
                    "{}: `router` must be an address of {} other than {}; it is {}",
                    network.name, network.address.link, network.address.address, network.router
                )
            } else {
                continue;
            };
            return Err(ConfigError::new("networks", problem));
        }
        let SignalConfig { prepare, go, hysteresis, lost, .. } = self.signal;
        if lost > prepare || prepare > go || hysteresis < 0 {
            let problem = "must satisfy `lost` <= `prepare` <= `go`, and `hysteresis` must be 0 or more";
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
                return Err(ConfigError::new(
                    "mobile_nodes",
                    format!("{name} is listed twice; give each mobile node a different name"),
                ));
            }
        }
        if self.ttl.subsec_nanos() != 0 || self.ttl.as_secs() > 86_400 {
            return Err(ConfigError::new("ttl", "must be whole seconds, at most 86400s"));
        }
        for (key, count) in [("updates", self.updates), ("answers", self.answers)] {
            if count == 0 {
                return Err(ConfigError::new(key, "must be at least 1"));
            }
        }
        if usize::from(self.updates) > CODES {
            let problem = format!(
                "must be at most {CODES}: of the updates signed in one second, {CODES} are remembered, to recognize replays"
            );
            return Err(ConfigError::new("updates", problem));
        }
        let alive = !self.lifetime.is_zero();
        if alive {
            Ok(())
        } else {
            Err(ConfigError::new("lifetime", "must be greater than zero, for example `30s`"))
        }
    }

    /// Returns the address and UDP port at which the location manager listens.
    pub const fn at(&self) -> Addr {
        Addr::new(self.address, PORT)
    }
}

impl RegistrarConfig {
    /// Checks the values. An error names the key `location_manager` and the problem.
    pub fn check(&self) -> Result<(), ConfigError> {
        check_identity("location_manager", &self.zone, &self.name, &self.key)?;
        if self.refresh < Duration::from_secs(1) {
            return Err(ConfigError::new("location_manager", "`refresh` must be at least 1s"));
        }
        Ok(())
    }

    /// Returns the key that signs updates.
    pub fn tsig(&self) -> TsigKey {
        TsigKey { name: self.name.clone(), secret: self.key.clone() }
    }
}

fn check_identity(at: &'static str, zone: &Name, name: &Name, key: &Key) -> Result<(), ConfigError> {
    if name == zone || !name.is_within(zone) {
        return Err(ConfigError::new(at, format!("{name} must be a name below the zone {zone}")));
    }
    if key.as_bytes().len() < SHORTEST_KEY {
        let digits = 2 * SHORTEST_KEY;
        let problem =
            format!("{name}: the key must have at least {SHORTEST_KEY} bytes, {digits} hexadecimal digits");
        return Err(ConfigError::new(at, problem));
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
