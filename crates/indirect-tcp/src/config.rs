//! The configuration of support routers and mobile hosts. The defaults are not from the paper.

use auth::Key;
use node::config::{ConfigError, span, text};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeSet;
use wire::{Duration, Ipv4Addr};

/// The length of the shortest permitted key, in bytes.
const SHORTEST_KEY: usize = 16;

/// The smallest buffer that may be configured, in bytes. One full segment of an Ethernet link fits into it.
const SMALLEST_BUFFER: u32 = 2048;

/// The configuration of a support router.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SupportRouterConfig {
    /// The address by which mobile hosts and other routers know this router.
    pub address: Ipv4Addr,
    /// The mobile hosts that the router serves, each with the key that the host shares with this router.
    pub hosts: Vec<Peer>,
    /// The other support routers with which this router may exchange connections, each with the key that both routers
    /// share.
    #[serde(default)]
    pub routers: Vec<Peer>,
    /// How long the router waits for expected connections: a greeting names them, and the router does not have them.
    /// Default `10s`; must be greater than zero. After each sign that an earlier router hands over these connections,
    /// the router waits for three times as long. Meanwhile it buffers packets for the connections. When the time is
    /// over, the router gives up the connections that have not come.
    #[serde(default = "patience", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub patience: Duration,
    /// The limit of packets that are buffered for one half of an expected connection; default 64. At most 1024 are
    /// buffered, even if the limit is higher.
    #[serde(default = "held")]
    pub held: usize,
    /// The time in which the router drops the segments of a connection that it has handed over, and answers those of a
    /// lost connection by resets. Default `2min`; must be at least `patience`.
    #[serde(default = "silence", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub silence: Duration,
    /// The size of the send buffer of each half of a connection in bytes, at least 2048. The bytes in the buffer move
    /// with the connection. If this key is absent, the default of the router's TCP applies.
    pub send_buffer: Option<u32>,
    /// The size of the receive buffer of each half of a connection in bytes, at least 2048. It limits the window that
    /// the router offers to both ends. If this key is absent, the default of the router's TCP applies.
    pub receive_buffer: Option<u32>,
    /// Whether bytes that the router has received and not relayed yet move with a connection; default true. If false,
    /// these bytes are lost, and neither end is notified. `false` is for experiments that show the effect.
    #[serde(default = "moves_unread")]
    pub moves_unread: bool,
}

/// The configuration of the mobile host's side.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MobileHostConfig {
    /// The home address of the host.
    pub address: Ipv4Addr,
    /// The key that the host shares with each support router that `routers` does not list, at least 16 bytes in
    /// hexadecimal.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::key")]
    pub key: Key,
    /// Support routers that share a separate key with the host. If one of these routers is compromised, it cannot
    /// take the host's connections from other routers.
    #[serde(default)]
    pub routers: Vec<Peer>,
}

/// A mobile host or a support router, and the key that is shared with it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Peer {
    /// The address of the peer. For a mobile host: its home address.
    pub address: Ipv4Addr,
    /// The shared key, at least 16 bytes in hexadecimal.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::key")]
    pub key: Key,
}

impl SupportRouterConfig {
    /// Checks the configuration. Returns an error if an address is not a host's or is given twice, a key has fewer than
    /// 16 bytes, a buffer has fewer than 2048 bytes, `patience` is zero, or `silence` is less than `patience`.
    pub fn check(&self) -> Result<(), ConfigError> {
        check_address("address", self.address)?;
        check_peers(self.address, &[("hosts", &self.hosts), ("routers", &self.routers)])?;
        if self.patience.is_zero() || self.silence < self.patience {
            let problem = "must be greater than zero and at most `silence`, for example `10s`";
            return Err(ConfigError::new("patience", problem));
        }
        for (key, bytes) in [("send_buffer", self.send_buffer), ("receive_buffer", self.receive_buffer)] {
            if bytes.is_some_and(|bytes| bytes < SMALLEST_BUFFER) {
                return Err(ConfigError::new(key, format!("must be at least {SMALLEST_BUFFER} bytes")));
            }
        }
        Ok(())
    }
}

impl MobileHostConfig {
    /// Checks the configuration. Returns an error if an address is not a host's or is given twice, or if a key has
    /// fewer than 16 bytes.
    pub fn check(&self) -> Result<(), ConfigError> {
        check_address("address", self.address)?;
        check_key("key", &self.key)?;
        check_peers(self.address, &[("routers", &self.routers)])
    }

    /// Returns the key that the host shares with the router `router`.
    pub(crate) fn key_of(&self, router: Ipv4Addr) -> &Key {
        self.routers.iter().find(|peer| peer.address == router).map_or(&self.key, |peer| &peer.key)
    }
}

/// Returns an error if a peer has no valid address or key, or if an address is given twice or is `own`.
fn check_peers(own: Ipv4Addr, named: &[(&'static str, &Vec<Peer>)]) -> Result<(), ConfigError> {
    let mut known = BTreeSet::from([own]);
    for (name, peer) in named.iter().flat_map(|(name, peers)| peers.iter().map(move |peer| (*name, peer))) {
        check_address(name, peer.address)?;
        check_key(name, &peer.key)?;
        if !known.insert(peer.address) {
            return Err(ConfigError::new(
                name,
                format!("{} must be listed once, and must not be this host's address", peer.address),
            ));
        }
    }
    Ok(())
}

fn check_address(key: &'static str, address: Ipv4Addr) -> Result<(), ConfigError> {
    if is_host(address) {
        return Ok(());
    }
    Err(ConfigError::new(key, format!("must be a unicast host address, not {address}")))
}

/// Returns an error about the configuration's key `name` if the shared key has fewer than 16 bytes.
pub fn check_key(name: &'static str, key: &Key) -> Result<(), ConfigError> {
    if key.as_bytes().len() >= SHORTEST_KEY {
        return Ok(());
    }
    Err(ConfigError::new(
        name,
        format!("a key must have at least {SHORTEST_KEY} bytes, {} hexadecimal digits", 2 * SHORTEST_KEY),
    ))
}

/// Returns whether an address can be a host's: not in 0.0.0.0/8, loopback, multicast or 255.255.255.255.
pub(crate) const fn is_host(address: Ipv4Addr) -> bool {
    let [first, ..] = address.octets();
    !(first == 0 || address.is_loopback() || address.is_multicast() || address.is_broadcast())
}

const fn patience() -> Duration {
    Duration::from_secs(10)
}
const fn moves_unread() -> bool {
    true
}
const fn held() -> usize {
    64
}
const fn silence() -> Duration {
    Duration::from_mins(2)
}
