//! The configurations of the roles.

use node::InterfaceAddress;
use node::config::{ConfigError, span, spans, text};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeSet;
use wire::{Duration, Ipv4Addr, Mac};

/// The largest number of addresses in a pool.
const LARGEST_POOL: u32 = 65_536;
/// The largest number of probes of an address.
const MOST_PROBES: u8 = 10;

/// The configuration of a client.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientConfig {
    /// The name of the interface that gets an address.
    pub interface: String,
    /// The wait for an answer to the first message, greater than zero and at most `64s`; default `4s`. Each further wait
    /// is twice as long, up to `64s`. A wait is longer or shorter by at most a quarter, at random (RFC 2131, section
    /// 4.1).
    #[serde(default = "retry", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub retry: Duration,
    /// How the client checks by ARP that no other host uses the address, before it uses the address: `quick` or `rfc5227`;
    /// default `quick` (RFC 2131, section 2.2, recommends a check without its times).
    #[serde(default)]
    pub probing: Probing,
    /// With `probing = "quick"`, the number of ARP probes; at most 10, default 1. With 0, the client does not check the
    /// address.
    #[serde(default = "probes")]
    #[schemars(range(max = 10))]
    pub probes: u8,
    /// With `probing = "quick"`, how long the client waits for an answer to each probe, greater than zero; default `200ms`
    /// (not from an RFC).
    #[serde(default = "probe_wait", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub probe_wait: Duration,
    /// The times at which the client announces its new address by gratuitous ARP. They count from the begin of the
    /// lease, and are in ascending order; default `0s` and `2s` (RFC 5227, section 2.3).
    #[serde(default = "announcements", deserialize_with = "spans")]
    #[schemars(schema_with = "node::config::schema::spans")]
    pub announcements: Vec<Duration>,
    /// Whether the client sets a default route through the router of the lease; default true.
    #[serde(default = "yes")]
    pub default_route: bool,
}

/// How a client checks by ARP that no other host uses its new address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Probing {
    /// With `probes` probes, and a wait of `probe_wait` after each. A host that moves has no connection in this time, so
    /// the check is short.
    #[default]
    Quick,
    /// With the numbers of RFC 5227, section 1.1: after a random wait of at most 1 s, 3 probes that are 1 s to 2 s apart,
    /// and then 2 s. This takes 4 s to 7 s.
    Rfc5227,
}

/// The configuration of a server. It serves one link.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerConfig {
    /// The name of the interface to the link.
    pub interface: String,
    /// The address of the server on this link, and the length of the link's prefix, for example `10.3.0.1/24`.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::interface_address")]
    pub address: InterfaceAddress,
    /// The first address of the pool, a host address of the link. The addresses of the server and of the router are not
    /// granted, also if they are in the pool.
    pub first: Ipv4Addr,
    /// The last address of the pool, a host address of the link, not before `first`. The pool has at most 65536
    /// addresses.
    pub last: Ipv4Addr,
    /// Addresses of the pool that are not granted.
    #[serde(default)]
    pub excluded: Vec<Ipv4Addr>,
    /// Addresses of single clients. They need not be in the pool. No other client gets them.
    #[serde(default)]
    pub fixed: Vec<Fixed>,
    /// The lease time, in whole seconds from `4s` to `4294967294s`; default `60min`.
    #[serde(default = "lease", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub lease: Duration,
    /// The router of the link, an address of the link. Without it, clients get no router.
    pub router: Option<Ipv4Addr>,
    /// How long the server waits for an answer to its ARP request before it grants an address, greater than zero; default
    /// `200ms` (not from an RFC). If a host other than the client answers, the server tries another address.
    #[serde(default = "probe_wait", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub probe_wait: Duration,
}

/// The address of one client.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fixed {
    /// The link address of the client, for example `02:00:00:00:00:07`.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::mac")]
    pub mac: Mac,
    /// The address of the client, a host address of the link.
    pub address: Ipv4Addr,
}

impl ClientConfig {
    /// Checks the configuration. An error names the key and the problem.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.retry.is_zero() || self.retry > Duration::from_secs(64) {
            return Err(ConfigError::new("retry", "must be greater than zero and at most 64s"));
        }
        if self.probes > MOST_PROBES {
            return Err(ConfigError::new("probes", format!("must be at most {MOST_PROBES}")));
        }
        check_probe_wait(self.probe_wait)?;
        if !self.announcements.is_sorted() {
            let problem = "must be in ascending order, for example `[\"0s\", \"2s\"]`";
            return Err(ConfigError::new("announcements", problem));
        }
        Ok(())
    }
}

impl ServerConfig {
    /// Checks the configuration. An error names the key and the problem.
    pub fn check(&self) -> Result<(), ConfigError> {
        let own = self.address;
        if !is_on_link(own, own.address) {
            let problem = format!(
                "{own} must be a host address with the length of its prefix, for example `10.3.0.1/24`"
            );
            return Err(ConfigError::new("address", problem));
        }
        let of_link = |key, address| {
            let problem = || format!("{address} must be a host address of {}", own.link);
            if is_on_link(own, address) { Ok(()) } else { Err(ConfigError::new(key, problem())) }
        };
        of_link("first", self.first)?;
        of_link("last", self.last)?;
        let size = self.last.to_bits().checked_sub(self.first.to_bits());
        if size.is_none_or(|size| size >= LARGEST_POOL) {
            let problem = format!(
                "must not be before `first`, {}, and the pool must have at most {LARGEST_POOL} addresses",
                self.first
            );
            return Err(ConfigError::new("last", problem));
        }
        let mut taken = BTreeSet::from([own.address]);
        let mut macs = BTreeSet::new();
        for fixed in &self.fixed {
            of_link("fixed", fixed.address)?;
            if !taken.insert(fixed.address) || !macs.insert(fixed.mac) || fixed.mac.is_group() {
                let problem = format!(
                    "{} for {}: each client must have one address, other than those of the server and of other clients, and a link address that is not a group's",
                    fixed.address, fixed.mac
                );
                return Err(ConfigError::new("fixed", problem));
            }
        }
        let longest = u64::from(crate::message::INFINITE) - 1;
        taken.extend(self.router.into_iter().chain(self.excluded.iter().copied()));
        let pool = self.first..=self.last;
        let size = size.map_or(0, |size| size as usize + 1);
        if self.fixed.is_empty() && taken.range(pool).count() >= size {
            let problem = "no address of the pool can be granted: all are those of the server, of the router, or in `excluded`";
            return Err(ConfigError::new("last", problem));
        }
        if self.lease.subsec_nanos() != 0 || !(4..=longest).contains(&self.lease.as_secs()) {
            return Err(ConfigError::new("lease", format!("must be whole seconds, from 4s to {longest}s")));
        }
        if let Some(router) = self.router {
            of_link("router", router)?;
        }
        check_probe_wait(self.probe_wait)
    }
}

fn check_probe_wait(wait: Duration) -> Result<(), ConfigError> {
    if wait.is_zero() {
        return Err(ConfigError::new("probe_wait", "must be greater than zero, for example 200ms"));
    }
    Ok(())
}

/// Returns whether an address can be a host's on the link of `own`: not the prefix itself, and no broadcast address.
pub(crate) fn is_on_link(own: InterfaceAddress, address: Ipv4Addr) -> bool {
    let is_prefix = own.link.len() < 31 && address == own.link.address();
    wire::ipv4::is_host(address) && own.link.contains(address) && !is_prefix && !own.is_broadcast(address)
}

const fn yes() -> bool {
    true
}
const fn retry() -> Duration {
    Duration::from_secs(4)
}
const fn probes() -> u8 {
    1
}
const fn probe_wait() -> Duration {
    Duration::from_millis(200)
}
fn announcements() -> Vec<Duration> {
    vec![Duration::ZERO, Duration::from_secs(2)]
}
const fn lease() -> Duration {
    Duration::from_hours(1)
}
