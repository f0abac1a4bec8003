//! Completes the roles of Cellular IP from `[cellular-ip]` and the layout of the scenario.

use super::{Around, Written, begin_with, default, timetable};
use crate::file::Scenario;
use crate::file::layout::Layout;
use crate::file::networks::AIR;
use crate::plan::HostPlan;
use auth::Key;
use roles::RoleConfig;
use schemars::{JsonSchema, json_schema};
use serde::Deserialize;
use toml::{Table, Value};
use trace::hex;
use wire::Ipv4Addr;

/// Keys that are filled in for a gateway or base station.
pub(super) const STATION_FILLS: &[&str] =
    &["downlinks", "radio", "id", "gateway", "network_key", "key_generation"];

/// The key of a gateway or base station that is the name of a host in a scenario.
pub(super) const STATION_WRITES: &[Written] = &[(
    "uplink",
    "The next node towards the gateway; for the gateway, the router of the Internet.",
    |_, _| json_schema!({ "type": "string" }),
)];

/// The key `moves`: a timetable with the kind of each handoff.
pub(super) const MOVES: Written = ("moves", super::apps::TIMETABLE, |generator, list| {
    let kind = generator.subschema_for::<::cellular_ip::config::Kind>();
    super::timetable_schema(generator, list, &[("kind", kind)])
});

/// Parameters that all hosts of a Cellular IP network share.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CellularIp {
    /// The network's key: at least 16 bytes, in hexadecimal. Mobile hosts never get it.
    #[serde(deserialize_with = "node::config::text")]
    #[schemars(schema_with = "node::config::schema::key")]
    pub(crate) network_key: Key,
    /// The generation of the network's key [default: 1].
    #[serde(default = "first_generation")]
    pub(crate) key_generation: u8,
}

const fn first_generation() -> u8 {
    1
}

fn network(scenario: &Scenario) -> Result<&CellularIp, String> {
    scenario
        .cellular_ip
        .as_ref()
        .ok_or_else(|| "a Cellular IP role needs the table [cellular-ip] with `network_key`".to_owned())
}

pub(super) fn station(around: &Around<'_>, role: &mut Table) -> Result<(), String> {
    let Around { scenario, layout, host } = *around;
    let network = network(scenario)?;
    let uplink = role
        .get("uplink")
        .and_then(Value::as_str)
        .ok_or("`uplink`: must be the name of the next node towards the gateway, for example `b1`")?;
    let uplink = uplink.to_owned();
    let (interface, mac) = layout.towards(host, &uplink)?;
    let down = layout.interfaces(host).filter(|name| *name != interface && *name != AIR);
    let down: Vec<Value> = down.map(Value::from).collect();
    let mut neighbor = Table::new();
    neighbor.insert("interface".to_owned(), interface.into());
    neighbor.insert("mac".to_owned(), mac.to_string().into());
    role.insert("uplink".to_owned(), neighbor.into());
    default(role, "downlinks", down);
    if layout.cell_of(host).is_some() {
        default(role, "radio", AIR);
    }
    default(role, "id", i64::from(layout.number(host)));
    default(role, "gateway", gateway_of(layout, host)?.to_string());
    default(role, "network_key", hex(network.network_key.as_bytes()));
    default(role, "key_generation", i64::from(network.key_generation));
    Ok(())
}

pub(super) fn mobile(around: &Around<'_>, role: &mut Table) -> Result<(), String> {
    let Around { scenario, layout, host } = *around;
    let network = network(scenario)?;
    let address = layout.address(host).ok_or("the mobile host has no address; give the host an `address`")?;
    // No registration assigns `r_mh` yet, so it is derived from the host's number.
    let r_mh = u64::from(layout.number(host)) | 0x5761_7966_0000_0000;
    let key = cellular_ip::message::session_key(
        &network.network_key,
        network.key_generation,
        address,
        r_mh.to_be_bytes(),
    );
    timetable(around, role)?;
    let start = role.remove("start").and_then(|value| value.as_str().map(str::to_owned));
    let mut stations: Vec<Value> = layout.stations().map(Value::Table).collect();
    begin_with(&mut stations, start.as_deref())?;
    // A host stays in the access network in which it begins, because only this network has the host's gateway and
    // accepts the host's session key.
    let name = |station: &Value| station.get("name").and_then(Value::as_str).map(str::to_owned);
    let first = stations
        .first()
        .and_then(name)
        .ok_or("there is no base station; add a cell, for example [cell.1]")?;
    let gateway = gateway_of(layout, &first)?;
    stations.retain(|station| name(station).is_some_and(|name| gateway_of(layout, &name) == Ok(gateway)));
    default(role, "stations", stations);
    default(role, "address", address.to_string());
    default(role, "gateway", gateway.to_string());
    default(role, "interface", AIR);
    default(role, "session_key", hex(key.as_bytes()));
    default(role, "key_generation", i64::from(network.key_generation));
    default(role, "r_mh", format!("{r_mh:016x}"));
    Ok(())
}

/// Returns the address of the gateway to which a node's uplinks lead.
fn gateway_of(layout: &Layout, node: &str) -> Result<Ipv4Addr, String> {
    let mut here = node.to_owned();
    // Cycles of uplinks were refused, so the gateway is reached within this number of steps.
    for _ in layout.hosts() {
        let Some(role) = node_role(layout, &here) else {
            return Err(format!(
                "`{node}` has no gateway: its uplinks lead to `{here}`, which is not a node of Cellular IP; give it the role of a gateway or base station"
            ));
        };
        if role.get("kind").and_then(Value::as_str) == Some(GATEWAY) {
            return layout.address(&here).ok_or_else(|| format!("the gateway `{here}` has no address; give the host an `address`, or one of its links a `net`"));
        }
        let uplink = role.get("uplink").and_then(Value::as_str);
        uplink
            .ok_or_else(|| format!("`{here}` has no `uplink`; name the next node towards the gateway"))?
            .clone_into(&mut here);
    }
    Err(format!(
        "the uplinks of `{node}` lead to no gateway; name the next node towards the gateway in each `uplink`"
    ))
}

fn node_role<'a>(layout: &'a Layout, name: &str) -> Option<&'a Table> {
    let (_, host) = layout.hosts().find(|(other, _)| *other == name)?;
    let is_node =
        |role: &&Table| role.get("kind").and_then(Value::as_str).is_some_and(|kind| NODES.contains(&kind));
    host.role.iter().find(is_node)
}

const GATEWAY: &str = "cellular-ip/gateway";
const NODES: [&str; 2] = [GATEWAY, "cellular-ip/station"];

/// Checks that the timers of each mobile host fit the timers of the nodes of its access network: those with the same
/// gateway. An error has the path of the key, and the problem.
pub(super) fn check_timers(layout: &Layout, hosts: &[HostPlan]) -> Result<(), (String, String)> {
    let roles =
        hosts.iter().flat_map(|host| (0..).zip(&host.config.roles).map(move |(at, role)| (host, at, role)));
    let nodes = roles.clone().filter_map(|(host, at, role)| match role {
        RoleConfig::CellularIpGateway(config) | RoleConfig::CellularIpStation(config) => {
            Some((host, at, config))
        }
        _ => None,
    });
    for (host, at, role) in roles {
        let RoleConfig::CellularIpMobile(mobile) = role else { continue };
        for (node, place, config) in nodes.clone().filter(|(_, _, config)| config.gateway == mobile.gateway) {
            let Err((error, of)) = mobile.check_with(config) else { continue };
            // The error is at the key of the mobile host, unless the scenario has only the key of the node.
            let (own, theirs) = ((&host.config.name, at, error.key), (&node.config.name, place, of));
            let is_written = |(name, at, key): (&String, usize, &str)| {
                let found = layout.hosts().find(|(other, _)| other == name);
                found.and_then(|(_, host)| host.role.get(at)).is_some_and(|role| role.contains_key(key))
            };
            let (name, at, key) = if is_written(own) || !is_written(theirs) { own } else { theirs };
            return Err((format!("host.{name}.role[{at}].{key}"), error.problem));
        }
    }
    Ok(())
}
