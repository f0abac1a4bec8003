//! The security associations of a role, and the checks of their configuration.

use crate::message::{Algorithm, Association};
use auth::Key;
use node::config::{ConfigError, text};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use wire::Ipv4Addr;

/// The minimum length of an association's key, in bytes (RFC 5944, section 5.1).
const SHORTEST_KEY: usize = 16;

/// The greatest reserved security parameter index: 0 to 255 are reserved (RFC 5944, section 1.6).
const RESERVED_SPIS: u32 = 255;

/// A peer with which there is a mobility security association.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Peer {
    /// The address of the peer; of a mobile node, its home address.
    pub address: Ipv4Addr,
    /// The security parameter index, at least 256 (RFC 5944, section 1.6).
    pub spi: u32,
    /// The algorithm of the authenticator: `hmac-sha256`, or for a peer that does not support it `hmac-md5`,
    /// `keyed-md5` (RFC 3344) or `keyed-md5-without-spi` (RFC 2002); default `hmac-sha256`. A message is never checked
    /// with another algorithm than this one.
    #[serde(default)]
    pub algorithm: Algorithm,
    /// How the association protects messages against replay: the requests of a mobile node to its home agent (RFC 5944,
    /// section 5.7), or the messages between a home agent and a correspondent: `timestamps` or `nonces`; default
    /// `timestamps`. Both ends must have the same value. All associations with one mobile node must have the same value.
    #[serde(default)]
    pub replay: Replay,
    /// The key of the association, at least 16 bytes in hexadecimal.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::key")]
    pub key: Key,
}

/// How an association protects messages against replay (RFC 5944, section 5.7).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Replay {
    /// The Identification is a timestamp: near the home agent's clock, and later than that of the last accepted request.
    #[default]
    Timestamps,
    /// The high half of the Identification is the nonce in the home agent's last reply. The low half is a random number
    /// of the mobile node. So the two clocks need not agree.
    Nonces,
}

impl Replay {
    /// Returns the name in a configuration and in a role's status.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Timestamps => "timestamps",
            Self::Nonces => "nonces",
        }
    }
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
pub(crate) struct Associations {
    all: BTreeMap<Ipv4Addr, Vec<Association>>,
    /// The peers whose associations use nonces.
    nonces: BTreeSet<Ipv4Addr>,
}

impl Associations {
    pub(crate) fn new(peers: &[Peer]) -> Self {
        let mut all: BTreeMap<Ipv4Addr, Vec<Association>> = BTreeMap::new();
        for peer in peers {
            all.entry(peer.address).or_default().push(peer.association());
        }
        let nonces = peers.iter().filter(|peer| peer.replay == Replay::Nonces).map(|peer| peer.address);
        Self { all, nonces: nonces.collect() }
    }

    /// Returns how the associations with `peer` protect against replay.
    pub(crate) fn replay(&self, peer: Ipv4Addr) -> Replay {
        if self.nonces.contains(&peer) { Replay::Nonces } else { Replay::Timestamps }
    }

    /// Returns the association to sign with: the first that is configured for `peer`. `None` if there is none.
    pub(crate) fn first(&self, peer: Ipv4Addr) -> Option<&Association> {
        self.all.get(&peer)?.first()
    }

    /// Returns the association with `peer` that has this SPI; `None` if there is none.
    pub(crate) fn named(&self, peer: Ipv4Addr, spi: u32) -> Option<&Association> {
        self.all.get(&peer)?.iter().find(|association| association.spi == spi)
    }
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

/// Returns the problem of an address that cannot be a host's.
pub(super) fn not_a_host(address: Ipv4Addr) -> String {
    format!(
        "{address} is not a unicast host address; loopback, multicast and reserved addresses are not allowed"
    )
}

pub(super) fn check_peers(key: &'static str, peers: &[Peer]) -> Result<(), ConfigError> {
    let mut known = BTreeSet::new();
    for peer in peers {
        let problem = if !wire::ipv4::is_host(peer.address) {
            not_a_host(peer.address)
        } else if let Err((_, problem)) = check_association(peer.spi, &peer.key) {
            format!("{}: {problem}", peer.address)
        } else if peers.iter().any(|other| other.address == peer.address && other.replay != peer.replay) {
            format!("{}: all its associations must have the same `replay`", peer.address)
        } else if !known.insert((peer.address, peer.spi)) {
            format!("{} has two associations with SPI {}; give each a different SPI", peer.address, peer.spi)
        } else {
            continue;
        };
        return Err(ConfigError::new(key, problem));
    }
    Ok(())
}

/// Checks the associations between a foreign agent and its peers. Requests are protected against replay between the
/// mobile node and its home agent only.
pub(super) fn check_agent_peers(key: &'static str, peers: &[Peer]) -> Result<(), ConfigError> {
    check_peers(key, peers)?;
    match peers.iter().find(|peer| peer.replay == Replay::Nonces) {
        Some(peer) => {
            let problem = format!(
                "{}: `replay` must be `timestamps`; a foreign agent has no association with nonces",
                peer.address
            );
            Err(ConfigError::new(key, problem))
        }
        None => Ok(()),
    }
}
