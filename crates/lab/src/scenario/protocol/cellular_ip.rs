//! Cellular IP.

use super::{Around, Written, begin_with, default, hosts_of, timetable};
use crate::scenario::Scenario;
use crate::scenario::expand::Layout;
use crate::scenario::networks::AIR;
use auth::Key;
use schemars::{JsonSchema, json_schema};
use serde::Deserialize;
use toml::{Table, Value};
use trace::hex;
use wire::Ipv4Addr;

/// What a gateway or base station need not be told.
pub(super) const STATION_FILLS: &[&str] =
    &["downlinks", "radio", "id", "gateway", "network_key", "key_generation"];

/// What it is told by names.
pub(super) const STATION_WRITES: &[Written] = &[(
    "uplink",
    "The next host towards the gateway; for the gateway, the router of the Internet.",
    |_, _| json_schema!({ "type": "string" }),
)];

/// A timetable.
pub(super) const MOVES: Written = ("moves", super::apps::TIMETABLE, |generator, list| {
    let kind = generator.subschema_for::<::cellular_ip::config::Kind>();
    super::timetable_schema(generator, list, &[("kind", kind)])
});

/// What all hosts of a Cellular IP network share.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CellularIp {
    /// The network's key, which no mobile host is ever given: 16 bytes or more, in hexadecimal.
    #[serde(deserialize_with = "node::config::text")]
    #[schemars(schema_with = "node::config::schema::key")]
    pub(crate) network_key: Key,
    /// Which generation of that key it is.
    #[serde(default = "first_generation")]
    pub(crate) key_generation: u8,
}

const fn first_generation() -> u8 {
    1
}

fn network(scenario: &Scenario) -> Result<&CellularIp, String> {
    scenario.cellular_ip.as_ref().ok_or_else(|| "a Cellular IP role needs the table [cellular-ip]".to_owned())
}

pub(super) fn station(around: &Around<'_>, role: &mut Table) -> Result<(), String> {
    let Around { scenario, layout, host } = *around;
    let network = network(scenario)?;
    let uplink = role
        .get("uplink")
        .and_then(Value::as_str)
        .ok_or("`uplink`: name the next host towards the gateway")?;
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
    default(role, "gateway", gateway(scenario, layout)?.to_string());
    default(role, "network_key", hex(network.network_key.as_bytes()));
    default(role, "key_generation", i64::from(network.key_generation));
    Ok(())
}

pub(super) fn mobile(around: &Around<'_>, role: &mut Table) -> Result<(), String> {
    let Around { scenario, layout, host } = *around;
    let network = network(scenario)?;
    let address = layout.address(host).ok_or("a mobile host needs an address")?;
    // Registration would give this value; until there is one, it is the host's number.
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
    default(role, "stations", stations);
    default(role, "address", address.to_string());
    default(role, "gateway", gateway(scenario, layout)?.to_string());
    default(role, "interface", AIR);
    default(role, "session_key", hex(key.as_bytes()));
    default(role, "key_generation", i64::from(network.key_generation));
    default(role, "r_mh", format!("{r_mh:016x}"));
    Ok(())
}

fn gateway(scenario: &Scenario, layout: &Layout) -> Result<Ipv4Addr, String> {
    let name = hosts_of(scenario, "cellular-ip/gateway").next().ok_or("there is no cellular-ip/gateway")?;
    layout.address(name).ok_or_else(|| format!("the gateway `{name}` needs an address"))
}
