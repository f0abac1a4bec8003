//! Completes the roles of SIGMA from `[sigma]` and the layout of the scenario.

use super::{Around, Written, default, hosts_of};
use crate::file::networks::AIR;
use crate::file::{Scenario, layout::Layout};
use auth::Key;
use schemars::JsonSchema;
use serde::Deserialize;
use toml::{Table, Value};
use trace::hex;
use wire::Ipv4Addr;

const MOBILE_NODE: &str = "sigma/mobile-node";

/// The key `addresses` of a mobile node: in a scenario it replaces the longer key `networks`.
pub(super) const WRITES: &[Written] = &[(
    "addresses",
    "The addresses of the mobile node: one in the network of each cell that it may visit.",
    |generator, _| generator.subschema_for::<Vec<Ipv4Addr>>(),
)];

/// Parameters that mobile nodes and their location manager share.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sigma {
    /// The zone in which each mobile node has its host's name.
    pub(crate) zone: String,
    /// The key of every mobile node: 16 bytes or more, in hexadecimal.
    #[serde(deserialize_with = "node::config::text")]
    #[schemars(schema_with = "node::config::schema::key")]
    pub(crate) key: Key,
}

fn shared(scenario: &Scenario) -> Result<&Sigma, String> {
    scenario
        .sigma
        .as_ref()
        .ok_or_else(|| "a location manager needs the table [sigma] with `zone` and `key`".to_owned())
}

/// Fills in a mobile node. Its key `addresses` has one address in the network of each cell that the node may visit.
/// The node uses the radios `air`, `air2` and so on.
pub(super) fn mobile_node(around: &Around<'_>, role: &mut Table) -> Result<(), String> {
    let Around { scenario, layout, host } = *around;
    let addresses = role.remove("addresses").unwrap_or_else(|| Value::Array(Vec::new()));
    let addresses: Vec<Ipv4Addr> = addresses.try_into().map_err(
        |_| "`addresses`: must be a list of IPv4 addresses, for example [\"10.1.8.100\", \"10.1.6.100\"]",
    )?;
    let networks: Result<Vec<Value>, String> = addresses.iter().map(|own| network(layout, *own)).collect();
    default(role, "networks", networks?);
    let radios = layout.interfaces(host).filter(|name| name.starts_with(AIR));
    let radios: Vec<Value> = radios.map(Value::from).collect();
    default(role, "radios", radios);
    if let Some(manager) = hosts_of(scenario, "sigma/location-manager").next() {
        let shared = shared(scenario)?;
        let address = layout.address(manager).ok_or_else(|| {
            format!("`{manager}`, the host of the location manager, has no address; give this host an `address`, or one of its links a `net`")
        })?;
        let registrar = Table::from_iter([
            ("address".to_owned(), Value::from(address.to_string())),
            ("zone".to_owned(), Value::from(shared.zone.clone())),
            ("name".to_owned(), Value::from(name_of(shared, host))),
            ("key".to_owned(), Value::from(hex(shared.key.as_bytes()))),
        ]);
        default(role, "location_manager", registrar);
        let peers = peers(scenario, shared, host);
        if !peers.is_empty() {
            default(role, "peers", peers);
        }
    }
    Ok(())
}

/// Returns the other mobile nodes of the scenario that have `addresses`, each with all of them.
fn peers(scenario: &Scenario, shared: &Sigma, own: &str) -> Vec<Value> {
    let others = hosts_of(scenario, MOBILE_NODE).filter(|host| *host != own);
    let addresses = |host: &str| {
        let roles = scenario.host.get(host).and_then(|host| host.get("role")).and_then(Value::as_array);
        let is = |role: &&Value| role.get("kind").and_then(Value::as_str) == Some(MOBILE_NODE);
        roles.into_iter().flatten().find(is).and_then(|role| role.get("addresses")).cloned()
    };
    let peer = |host: &str| {
        let name = ("name".to_owned(), Value::from(name_of(shared, host)));
        Some(Value::Table(Table::from_iter([name, ("addresses".to_owned(), addresses(host)?)])))
    };
    others.filter_map(peer).collect()
}

fn network(layout: &Layout, own: Ipv4Addr) -> Result<Value, String> {
    let (cell, station, router) = layout.access(own).ok_or_else(|| match layout.cell_nets() {
        nets if nets.is_empty() => format!("`addresses`: {own} needs a cell with a `net` that contains it"),
        nets => format!("`addresses`: {own} is in the `net` of no cell; the cells have: {}", nets.join(", ")),
    })?;
    let (router, length) = router.split_once('/').unwrap_or_default();
    Ok(Value::Table(Table::from_iter([
        ("name".to_owned(), Value::from(station)),
        ("cell".to_owned(), Value::from(i64::from(cell))),
        ("address".to_owned(), Value::from(format!("{own}/{length}"))),
        ("router".to_owned(), Value::from(router)),
    ])))
}

fn name_of(shared: &Sigma, host: &str) -> String {
    format!("{host}.{}", shared.zone)
}

pub(super) fn correspondent(around: &Around<'_>, role: &mut Table) -> Result<(), String> {
    let address = around
        .layout
        .address(around.host)
        .ok_or("the host has no address; give the host an `address`, or one of its links a `net`")?;
    default(role, "address", address.to_string());
    Ok(())
}

pub(super) fn location_manager(around: &Around<'_>, role: &mut Table) -> Result<(), String> {
    let Around { scenario, layout, host } = *around;
    let shared = shared(scenario)?;
    let address = layout
        .address(host)
        .ok_or("the host has no address; give the host an `address`, or one of its links a `net`")?;
    default(role, "address", address.to_string());
    default(role, "zone", shared.zone.clone());
    let nodes = hosts_of(scenario, MOBILE_NODE).map(|node| {
        Value::Table(Table::from_iter([
            ("name".to_owned(), Value::from(name_of(shared, node))),
            ("key".to_owned(), Value::from(hex(shared.key.as_bytes()))),
        ]))
    });
    default(role, "mobile_nodes", nodes.collect::<Vec<_>>());
    Ok(())
}
