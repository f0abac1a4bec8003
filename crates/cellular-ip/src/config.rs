//! The configuration of the roles of Cellular IP. Some defaults are from draft-ietf-mobileip-cellularip-00, as
//! the docs of their fields say. All other defaults were chosen for Wayfare.

use auth::Key;
use node::config::{ConfigError, check_moves, span, spans, text};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use wire::{Duration, Ipv4Addr, Mac};

/// The shortest interval of route-updates, and of a check for them. At 2 Mb/s, a route-update takes about 0.5 ms.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(1);
/// The longest `replay_window`: the longest run.
const LONGEST_WINDOW: Duration = Duration::from_hours(24);

/// The configuration of a base station or a gateway. A gateway is a node whose uplink leads to the Internet.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StationConfig {
    /// The identifier of the node, which route-updates of mobile hosts contain.
    pub id: u32,
    /// The address of the gateway: the destination of route-updates and the source of update-requests.
    pub gateway: Ipv4Addr,
    /// The next node towards the gateway. For the gateway itself, it is the router that leads to the Internet.
    pub uplink: Neighbor,
    /// The names of the wired interfaces that lead to nodes further from the gateway. The interface of `uplink` must
    /// not be in the list. The list may be empty only if the node has a `radio`.
    #[serde(default)]
    pub downlinks: Vec<String>,
    /// The name of the air interface, if the node has one.
    pub radio: Option<String>,
    /// The key of the access network, at least 16 bytes in hexadecimal. Mobile hosts never get it.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::key")]
    pub network_key: Key,
    /// The generation of the network key, 0 to 255; default 1.
    #[serde(default = "first_generation")]
    pub key_generation: u8,
    /// The lifetime of a mapping without a packet from its host, greater than zero; default `9s` (from
    /// draft-ietf-mobileip-cellularip-00).
    #[serde(default = "route_timeout", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub route_timeout: Duration,
    /// Whether the node supports semisoft route-updates (flag S); default true. If false, a semisoft route-update
    /// replaces the mapping immediately, as in a hard handoff.
    #[serde(default = "yes")]
    pub semisoft: bool,
    /// The number of packets that the delay device of a host holds back, from 0 to `delay_pool`; default 8. Campbell et
    /// al. (2000) use 1 for UDP and 8 for TCP.
    #[serde(default = "delay_device")]
    pub delay_device: usize,
    /// The number of packets in all delay devices of this node together, at most; default 256 (Wayfare's choice;
    /// Campbell et al., 2000, say "a small pool").
    #[serde(default = "delay_pool")]
    pub delay_pool: usize,
    /// How long a packet waits in the delay device, at most; default `500ms` (Wayfare's choice).
    #[serde(default = "delay_hold", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub delay_hold: Duration,
    /// Differentiated services codepoints, 0 to 63, whose packets are not delayed; default 46 (EF) and 44 (VOICE-ADMIT)
    /// (Wayfare's choice).
    #[serde(default = "delay_exempt")]
    pub delay_exempt: Vec<u8>,
    /// How far the timestamp of a route-update may differ from the node's clock, in either direction, from `1ms` to
    /// `1440min`; default `5s` (Wayfare's choice).
    #[serde(default = "replay_window", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub replay_window: Duration,
    /// The interval at which mobile hosts confirm their mapping by a route-update; default `20s` (Wayfare's choice).
    /// After three to four such intervals without a route-update, data no longer refresh the mapping. `0s` means no
    /// limit, as in Campbell et al. (2000); otherwise it is at least `1ms`.
    #[serde(default = "route_reauth_time", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub route_reauth_time: Duration,
    /// The addresses of the host on which the role runs. No mobile host may have one of them.
    #[serde(skip)]
    pub own: Vec<Ipv4Addr>,
    /// The number of hosts with a mapping in the route cache, at most, from 1; default 1000000 (Wayfare's choice). When the
    /// cache is full, new hosts are refused, and no host is removed.
    #[serde(default = "cache_capacity")]
    pub cache_capacity: usize,
    /// The maximum number of packets per second and downlink interface that this node examines itself, although their
    /// source is not mapped to the neighbor that sent them; default 100 (Wayfare's choice). Further packets of this
    /// kind are dropped.
    #[serde(default = "strays")]
    pub strays: u16,
}

/// A neighbor of a node, by interface and link address.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Neighbor {
    /// The name of the interface to the neighbor.
    pub interface: String,
    /// The link address of the neighbor, for example `02:00:00:00:00:01`.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::mac")]
    pub mac: Mac,
}

/// The configuration of a mobile host.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MobileConfig {
    /// The home address of the host, by which the access network knows it.
    pub address: Ipv4Addr,
    /// The address of the gateway: the destination of route-updates and the source of update-requests.
    pub gateway: Ipv4Addr,
    /// The name of the radio's interface.
    pub interface: String,
    /// The base stations that the host may use, at least one. The host begins at the first station. If it starts after
    /// the time of a move in `moves`, it begins at the station of the last such move. In memory, hosts with the same
    /// stations share one list.
    #[serde(deserialize_with = "shared")]
    #[schemars(with = "Vec<Station>")]
    pub stations: Arc<[Station]>,
    /// The session key that the host got when it registered, in hexadecimal.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::key")]
    pub session_key: Key,
    /// The generation of the network key from which the session key is derived, 0 to 255; default 1.
    #[serde(default = "first_generation")]
    pub key_generation: u8,
    /// The random value that the host got when it registered: 16 hexadecimal digits.
    #[serde(deserialize_with = "hex_u64")]
    #[schemars(schema_with = "node::config::schema::text")]
    pub r_mh: u64,
    /// The longest time without a packet from the host until it sends a route-update, at least `1ms`; default `3s`
    /// (from draft-ietf-mobileip-cellularip-00).
    #[serde(default = "route_update_time", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub route_update_time: Duration,
    /// The time from the semisoft route-update until the radio is tuned to the new station; default `100ms` (Wayfare's
    /// choice; in Campbell et al., 2000, it is in proportion to the round trip).
    #[serde(default = "semisoft_delay", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub semisoft_delay: Duration,
    /// The times after a route-update at which it is repeated; default `30ms` and `90ms` (Wayfare's choice). The host
    /// repeats the route-update that it sends when it attaches to a station, and the answer to an update-request.
    /// Without repetitions, one lost route-update could make the host unreachable: while the host sends data, the timer
    /// of `route_update_time` does not expire.
    #[serde(default = "update_repeats", deserialize_with = "shared_spans")]
    #[schemars(schema_with = "node::config::schema::spans")]
    pub update_repeats: Arc<[Duration]>,
    /// The longest time between two route-updates of an attached host, even if the host sends data; default `20s`
    /// (Wayfare's choice). So a node that lost its mapping gets a new one. `0s` means no limit, as in Campbell et al.
    /// (2000); otherwise it is at least `1ms`.
    #[serde(default = "route_reauth_time", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub route_reauth_time: Duration,
    /// The number of the host's own packets that are queued while the radio is tuned or has no cell, at most; default
    /// 64 (Wayfare's choice). Further packets are dropped.
    #[serde(default = "tuning_queue")]
    pub tuning_queue: usize,
    /// The timetable of handoffs, in ascending order of `at`.
    #[serde(default)]
    #[schemars(with = "Vec<Move>")]
    pub moves: Box<[Move]>,
}

/// The parameters of a base station, as a mobile host knows them.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Station {
    /// The name of the station, as in `moves`.
    pub name: String,
    /// The identifier of the station, as in the `id` of its own configuration.
    pub id: u32,
    /// The number of the cell that the station serves.
    pub cell: u16,
    /// The link address of the station's radio, for example `02:00:00:00:00:01`.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::mac")]
    pub mac: Mac,
}

/// A line of the timetable of handoffs.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Move {
    /// When the handoff begins, counted from the start of the run.
    #[serde(deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub at: Duration,
    /// The name of the new base station, as in `stations`.
    pub to: String,
    /// The kind of handoff: `hard` or `semisoft`.
    pub kind: Kind,
}

/// The kind of a handoff.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The radio is tuned to the new station first, and then a route-update is sent.
    Hard,
    /// A route-update is sent through the new station first, and then the radio is tuned to it.
    Semisoft,
}

impl Kind {
    /// Returns the name of the kind in records and reports.
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
            return Err(ConfigError::new("route_timeout", "must be greater than zero, for example `9s`"));
        }
        check_network_key(&self.network_key)?;
        let pool = self.delay_pool;
        if self.delay_device > pool {
            let problem = format!("must be from 0 to {pool} packets, the value of `delay_pool`");
            return Err(ConfigError::new("delay_device", problem));
        }
        if self.cache_capacity == 0 {
            return Err(ConfigError::new("cache_capacity", "must be at least 1 host"));
        }
        if !(SHORTEST_INTERVAL..=LONGEST_WINDOW).contains(&self.replay_window) {
            return Err(ConfigError::new("replay_window", "must be from 1ms to 1440min"));
        }
        check_reauth_time(self.route_reauth_time)?;
        if self.delay_exempt.iter().any(|dscp| *dscp > 63) {
            return Err(ConfigError::new("delay_exempt", "must be codepoints from 0 to 63"));
        }
        if self.radio.is_none() && self.downlinks.is_empty() {
            return Err(ConfigError::new(
                "downlinks",
                "must list at least one interface if the node has no `radio`",
            ));
        }
        Ok(())
    }
}

/// Returns an error if route-updates that confirm a mapping are required more often than the shortest interval.
fn check_reauth_time(interval: Duration) -> Result<(), ConfigError> {
    if !interval.is_zero() && interval < SHORTEST_INTERVAL {
        return Err(ConfigError::new("route_reauth_time", "must be 0s, or at least 1ms"));
    }
    Ok(())
}

/// Returns an error if a network key has fewer than 16 bytes.
pub fn check_network_key(key: &Key) -> Result<(), ConfigError> {
    if key.as_bytes().len() < 16 {
        // A mobile host knows its session key, so it could find a shorter network key by trials.
        return Err(ConfigError::new("network_key", "must have at least 16 bytes, 32 hexadecimal digits"));
    }
    Ok(())
}

impl MobileConfig {
    /// Checks the configuration; the error names the key and what is allowed.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.stations.is_empty() {
            return Err(ConfigError::new("stations", "must list at least one base station"));
        }
        if self.route_update_time < SHORTEST_INTERVAL {
            return Err(ConfigError::new("route_update_time", "must be at least 1ms, for example `3s`"));
        }
        check_reauth_time(self.route_reauth_time)?;
        let known: Vec<&str> = self.stations.iter().map(|station| station.name.as_str()).collect();
        check_moves("station", &known, self.moves.iter().map(|step| (step.at, step.to.as_str())))
    }
}

impl MobileConfig {
    /// Checks the timers against those of a node of the access network. The error names the key of this configuration,
    /// and the key of the node's configuration.
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
                "the semisoft_delay of {:?} must be shorter than the route_timeout of {timeout:?}, after which the \
                 mapping to the new path expires",
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
    let is_valid = digits.len() == 16 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let number = is_valid.then(|| u64::from_str_radix(&digits, 16).ok()).flatten();
    number.ok_or_else(|| serde::de::Error::custom(format!("`{digits}` must be 16 hexadecimal digits")))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_in_hexadecimal_has_sixteen_digits_and_no_sign() {
        #[derive(Deserialize)]
        struct Given(#[serde(deserialize_with = "hex_u64")] u64);
        let read =
            |text: &str| Given::deserialize(toml::Value::String(text.to_owned())).ok().map(|given| given.0);
        assert_eq!(read("00000000000000fF"), Some(255));
        for bad in ["+00000000000000f", "0000000000000ff", "00000000000000fff", "000000000000000g", ""] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
