//! Completes the roles of Indirect TCP from `[indirect-tcp]` and the layout of the scenario.

use super::mobile_ip::interface_address;
use super::{Around, default, hosts_of};
use crate::file::Scenario;
use crate::file::layout::Layout;
use auth::Key;
use schemars::JsonSchema;
use serde::Deserialize;
use toml::{Table, Value};
use trace::hex;

/// The parameters that support routers and mobile hosts share.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct IndirectTcp {
    /// The key from which the keys of routers and mobile hosts are derived: at least 16 bytes, in hexadecimal.
    #[serde(deserialize_with = "node::config::text")]
    #[schemars(schema_with = "node::config::schema::key")]
    pub(crate) key: Key,
    /// Whether each router has a separate key with each mobile host and with each other router [default: no].
    /// Otherwise a mobile host has one key that all routers know, and the routers share one key.
    #[serde(default)]
    pub(crate) key_per_router: bool,
}

impl IndirectTcp {
    /// Checks the key as the role of a router does. An error has the key's name, and the problem.
    pub(super) fn check(&self) -> Result<(), (&'static str, String)> {
        ::indirect_tcp::config::check_key("key", &self.key).map_err(|error| (error.key, error.problem))
    }

    /// Returns the key that is derived for the name `whose`, in hexadecimal.
    fn of(&self, whose: &str) -> String {
        hex(&auth::hmac_sha256(&self.key, &[b"indirect-tcp ", whose.as_bytes()]))
    }

    /// Returns the key that a mobile host shares with a router.
    fn of_host(&self, host: &str, router: &str) -> String {
        if self.key_per_router { self.of(&format!("{host} at {router}")) } else { self.of(host) }
    }

    /// Returns the key that two routers share.
    fn of_routers(&self, one: &str, other: &str) -> String {
        let (first, second) = if one < other { (one, other) } else { (other, one) };
        if self.key_per_router { self.of(&format!("{first} and {second}")) } else { self.of("") }
    }
}

/// Fills in a support router. Its address is the address of the host's radio in the network of the cell, as for a
/// mobility agent on the same host.
pub(super) fn support_router(around: &Around<'_>, role: &mut Table) -> Result<(), String> {
    let Around { scenario, layout, host } = *around;
    let shared = shared(scenario)?;
    default(role, "address", address(layout, host)?);
    let hosts = hosts_of(scenario, "indirect-tcp/mobile-host");
    let hosts: Result<Vec<Value>, String> =
        hosts.map(|other| Ok(peer(address(layout, other)?, shared.of_host(other, host)))).collect();
    default(role, "hosts", hosts?);
    let routers = hosts_of(scenario, "indirect-tcp/support-router").filter(|other| *other != host);
    let routers: Result<Vec<Value>, String> =
        routers.map(|other| Ok(peer(address(layout, other)?, shared.of_routers(host, other)))).collect();
    default(role, "routers", routers?);
    Ok(())
}

pub(super) fn mobile_host(around: &Around<'_>, role: &mut Table) -> Result<(), String> {
    let Around { scenario, layout, host } = *around;
    default(role, "address", address(layout, host)?);
    let shared = shared(scenario)?;
    default(role, "key", shared.of(host));
    if shared.key_per_router {
        let routers = hosts_of(scenario, "indirect-tcp/support-router");
        let routers: Result<Vec<Value>, String> =
            routers.map(|router| Ok(peer(address(layout, router)?, shared.of_host(host, router)))).collect();
        default(role, "routers", routers?);
    }
    Ok(())
}

fn shared(scenario: &Scenario) -> Result<&IndirectTcp, String> {
    let shared = scenario.indirect_tcp.as_ref();
    shared.ok_or_else(|| "an Indirect TCP role needs the table [indirect-tcp] with `key`".to_owned())
}

fn peer(address: String, key: String) -> Value {
    Value::Table(Table::from_iter([("address".to_owned(), address.into()), ("key".to_owned(), key.into())]))
}

/// Returns the address of a host's radio, without the length of the prefix.
fn address(layout: &Layout, host: &str) -> Result<String, String> {
    let address = interface_address(layout, host)?;
    Ok(address.split('/').next().unwrap_or_default().to_owned())
}
