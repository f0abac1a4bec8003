//! The configuration of a correspondent.

use super::peer::not_a_host;
use super::{Peer, Replay, check_peers, check_replay_window, check_tunnel_mtu, replay_window, tunnel_mtu};
use crate::encapsulation;
use crate::message::{Algorithm, Numbers};
use auth::Key;
use node::config::{ConfigError, span, text, texts};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeSet;
use wire::tunnel::Kind;
use wire::{Duration, Ipv4Addr, Prefix};

/// The greatest number of entries of a binding cache (not from an RFC).
const MOST_ENTRIES: usize = 1_000_000;

/// The configuration of a correspondent: its address, its home agents and its limits.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CorrespondentConfig {
    /// The address of this host at which its tunnels begin, and by which home agents know it.
    pub address: Ipv4Addr,
    /// The home agents that may inform this host, with their security associations.
    pub home_agents: Vec<TrustedHomeAgent>,
    /// The maximum number of entries of the binding cache, from 1 to 1000000; default 1024 (not from an RFC). A new
    /// entry replaces the one that was not used for the longest time.
    #[serde(default = "entries")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub entries: usize,
    /// The longest permitted difference between the timestamp of a Binding Update and this host's clock. It must be
    /// greater than `3s`; default `7s`, as for registrations (RFC 5944, section 5.7.1).
    #[serde(default = "replay_window", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub replay_window: Duration,
    /// How long before the end of an entry that is in use the host asks the home agent for a new one, greater than zero;
    /// default `10s` (not from an RFC). It is at most a quarter of the lifetime of the entry.
    #[serde(default = "request_before", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub request_before: Duration,
    /// The kinds of tunnels that this host uses besides IP in IP, if the mobile node has asked for them: `minimal` (RFC
    /// 2004, flag M) and `gre` (RFC 2784, flag G), for example `["minimal", "gre"]`; default none.
    #[serde(default, deserialize_with = "texts")]
    #[schemars(schema_with = "encapsulation::schema_of_offers")]
    pub encapsulations: Vec<Kind>,
    /// The size of the largest datagram inside a tunnel by IP in IP, in bytes, at least 548; default 1480, as for a home
    /// agent.
    #[serde(default = "tunnel_mtu")]
    #[schemars(range(min = 548))]
    pub tunnel_mtu: u16,
    /// The numbers of the messages of route optimization.
    #[serde(default)]
    pub numbers: Numbers,
    /// All addresses of the host. The caller sets them. None of them is accepted as a care-of address or home address.
    #[serde(skip)]
    pub own: Vec<Ipv4Addr>,
}

/// A home agent whose Binding Updates a correspondent believes, with the security association.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrustedHomeAgent {
    /// The address of the home agent.
    pub address: Ipv4Addr,
    /// The security parameter index, at least 256 (RFC 5944, section 1.6).
    pub spi: u32,
    /// The algorithm of the authenticator, as for other associations; default `hmac-sha256`.
    #[serde(default)]
    pub algorithm: Algorithm,
    /// How Binding Updates are protected against replay: `timestamps` or `nonces`; default `timestamps`. Both ends must
    /// have the same value.
    #[serde(default)]
    pub replay: Replay,
    /// The key of the association, at least 16 bytes in hexadecimal.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::key")]
    pub key: Key,
    /// The home networks of the home agent, for example `["10.1.0.0/16"]`; default any. A Binding Update about another
    /// home address is refused. Without this key, the home agent can divert this host's packets to any address.
    #[serde(default, deserialize_with = "texts")]
    #[schemars(schema_with = "node::config::schema::prefixes")]
    pub networks: Vec<Prefix>,
}

impl TrustedHomeAgent {
    /// Returns the security association with the home agent.
    pub fn peer(&self) -> Peer {
        let Self { address, spi, algorithm, replay, ref key, .. } = *self;
        Peer { address, spi, algorithm, replay, key: key.clone() }
    }
}

impl CorrespondentConfig {
    /// Checks the configuration. An error names the key and the problem.
    pub fn check(&self) -> Result<(), ConfigError> {
        if !wire::ipv4::is_host(self.address) {
            return Err(ConfigError::new("address", not_a_host(self.address)));
        }
        if !self.own.is_empty() && !self.own.contains(&self.address) {
            let own: BTreeSet<Ipv4Addr> = self.own.iter().copied().collect();
            let own: Vec<String> = own.iter().map(ToString::to_string).collect();
            let problem = format!("this host has no address {}; it has: {}", self.address, own.join(", "));
            return Err(ConfigError::new("address", problem));
        }
        let peers: Vec<Peer> = self.home_agents.iter().map(TrustedHomeAgent::peer).collect();
        check_peers("home_agents", &peers)?;
        if peers.iter().any(|peer| peer.address == self.address) {
            let problem = format!("{} is the address of this host", self.address);
            return Err(ConfigError::new("home_agents", problem));
        }
        if !(1..=MOST_ENTRIES).contains(&self.entries) {
            return Err(ConfigError::new("entries", format!("must be from 1 to {MOST_ENTRIES}")));
        }
        check_replay_window(self.replay_window)?;
        if self.request_before.is_zero() {
            return Err(ConfigError::new("request_before", "must be greater than zero, for example `10s`"));
        }
        check_tunnel_mtu(self.tunnel_mtu)?;
        encapsulation::check(&self.encapsulations)?;
        self.numbers.check()
    }
}

const fn entries() -> usize {
    1024
}

const fn request_before() -> Duration {
    Duration::from_secs(10)
}
