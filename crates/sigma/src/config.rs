//! What an operator writes. Defaults are the digest's of RFC 8945 and RFC 2136 where they give one, ours otherwise.

use crate::message::{Name, PORT, TsigKey};
use auth::Key;
use node::Addr;
use node::config::{ConfigError, span, text};
use serde::Deserialize;
use std::collections::BTreeSet;
use wire::{Duration, Ipv4Addr};

/// The shortest key of a mobile node, in bytes (RFC 8945, section 8, would have it as long as the code, 32).
const SHORTEST_KEY: usize = 16;

/// A location manager.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocationManagerConfig {
    /// Its address. It answers at port 53.
    pub address: Ipv4Addr,
    /// The zone that it is responsible for.
    #[serde(deserialize_with = "text")]
    pub zone: Name,
    /// The mobile nodes that may tell it where they are.
    pub mobile_nodes: Vec<Identity>,
    /// For how long an answer may be kept, in whole seconds: 5 s (ours; the shorter, the sooner a move is known).
    #[serde(default = "ttl", deserialize_with = "span")]
    pub ttl: Duration,
    /// For how long a mobile node is believed that says nothing more: 1 h (ours).
    #[serde(default = "lifetime", deserialize_with = "span")]
    pub lifetime: Duration,
    /// Updates of one mobile node taken in a second; more are refused (ours).
    #[serde(default = "updates")]
    pub updates: u16,
    /// Messages of one host answered in a second; the rest are dropped (ours).
    #[serde(default = "answers")]
    pub answers: u16,
}

/// A mobile node, as its location manager knows it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// Its name in the zone, which is its key's name too. One that is known by its home address has that before `home`,
    /// as `10.1.8.5.home.sigma.example`.
    #[serde(deserialize_with = "text")]
    pub name: Name,
    /// The secret.
    #[serde(deserialize_with = "text")]
    pub key: Key,
}

/// What a mobile node has to know of its location manager.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegistrarConfig {
    /// The location manager's address.
    pub address: Ipv4Addr,
    /// Its zone.
    #[serde(deserialize_with = "text")]
    pub zone: Name,
    /// Our name in it, which is our key's name too.
    #[serde(deserialize_with = "text")]
    pub name: Name,
    /// The secret.
    #[serde(deserialize_with = "text")]
    pub key: Key,
    /// How often we say where we are, if nothing changes: every 20 min (ours).
    #[serde(default = "refresh", deserialize_with = "span")]
    pub refresh: Duration,
}

impl LocationManagerConfig {
    /// Refuses what cannot work.
    pub fn check(&self) -> Result<(), ConfigError> {
        let mut names = BTreeSet::new();
        for Identity { name, key } in &self.mobile_nodes {
            check_identity("mobile_nodes", &self.zone, name, key)?;
            if !names.insert(name) {
                return Err(ConfigError::new("mobile_nodes", format!("{name} is there twice")));
            }
        }
        if self.ttl.subsec_nanos() != 0 || self.ttl.as_secs() > 86_400 {
            return Err(ConfigError::new("ttl", "must be whole seconds, up to a day"));
        }
        for (key, count) in [("updates", self.updates), ("answers", self.answers)] {
            if count == 0 {
                return Err(ConfigError::new(key, "must be at least 1"));
            }
        }
        let alive = !self.lifetime.is_zero();
        if alive { Ok(()) } else { Err(ConfigError::new("lifetime", "must be longer than nothing")) }
    }

    /// Where it answers.
    pub const fn at(&self) -> Addr {
        Addr::new(self.address, PORT)
    }
}

impl RegistrarConfig {
    /// Refuses what cannot work.
    pub fn check(&self) -> Result<(), ConfigError> {
        check_identity("location_manager", &self.zone, &self.name, &self.key)?;
        if self.refresh < Duration::from_secs(1) {
            return Err(ConfigError::new("location_manager", "`refresh` must be at least 1s"));
        }
        Ok(())
    }

    /// Our key.
    pub fn tsig(&self) -> TsigKey {
        TsigKey { name: self.name.clone(), secret: self.key.clone() }
    }
}

fn check_identity(at: &'static str, zone: &Name, name: &Name, key: &Key) -> Result<(), ConfigError> {
    if name == zone || !name.is_within(zone) {
        return Err(ConfigError::new(at, format!("{name} is no name below {zone}")));
    }
    if key.as_bytes().len() < SHORTEST_KEY {
        return Err(ConfigError::new(at, format!("{name}: the key must have at least {SHORTEST_KEY} bytes")));
    }
    Ok(())
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
