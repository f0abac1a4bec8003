//! What a protocol's roles need to know of the scenario around them, filled in so that no user writes it twice.

use super::{Scenario, expand::Layout, sigma};
use auth::Key;
use serde::Deserialize;
use toml::{Table, Value};
use trace::hex;
use wire::Ipv4Addr;

/// What all hosts of a Cellular IP network share.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CellularIp {
    #[serde(deserialize_with = "node::config::text")]
    pub(crate) network_key: Key,
    #[serde(default = "first_generation")]
    pub(crate) key_generation: u8,
}

const fn first_generation() -> u8 {
    1
}

/// The mobility security association of every mobile node of the scenario with its home agent.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MobileIp {
    /// 0 to 255 are reserved.
    #[serde(default = "first_spi")]
    pub(crate) spi: u32,
    #[serde(deserialize_with = "node::config::text")]
    pub(crate) key: Key,
}

const fn first_spi() -> u32 {
    256
}

impl MobileIp {
    /// Refuses what no agent would take: the key, and what is wrong with it.
    pub(crate) fn check(&self) -> Result<(), (&'static str, String)> {
        mobile_ip::config::check_association(self.spi, &self.key)
    }
}

/// Fills in one role of `host`. What the user wrote stays.
pub(crate) fn complete(
    scenario: &Scenario,
    layout: &Layout,
    host: &str,
    role: &mut Table,
) -> Result<(), String> {
    match role.get("kind").and_then(Value::as_str).unwrap_or_default() {
        "cellular-ip/gateway" | "cellular-ip/station" => station(scenario, layout, host, role),
        "cellular-ip/mobile" => mobile(scenario, layout, host, role),
        "mobile-ip/home-agent" | "mobile-ip/foreign-agent" => agent(scenario, layout, host, role),
        "mobile-ip/mobile-node" => mobile_node(scenario, layout, host, role),
        "sigma/mobile-node" => sigma::mobile_node(scenario, layout, host, role),
        "sigma/correspondent" => sigma::correspondent(layout, host, role),
        "sigma/location-manager" => sigma::location_manager(scenario, layout, host, role),
        "apps/roam" => roam(layout, role),
        "apps/constant-rate" | "apps/bulk-client" => {
            name_to_address(layout, role, "to");
            Ok(())
        }
        "apps/sink" | "apps/bulk-server" => {
            name_to_address(layout, role, "at");
            Ok(())
        }
        _ => Ok(()), // the role's own reader names the kinds there are
    }
}

fn network(scenario: &Scenario) -> Result<&CellularIp, String> {
    scenario.cellular_ip.as_ref().ok_or_else(|| "a Cellular IP role needs the table [cellular-ip]".to_owned())
}

fn station(scenario: &Scenario, layout: &Layout, host: &str, role: &mut Table) -> Result<(), String> {
    let network = network(scenario)?;
    let uplink = role
        .get("uplink")
        .and_then(Value::as_str)
        .ok_or("`uplink`: name the next host towards the gateway")?;
    let uplink = uplink.to_owned();
    let (interface, mac) = layout.towards(host, &uplink)?;
    let down = layout.interfaces(host).filter(|name| *name != interface && *name != "air");
    let down: Vec<Value> = down.map(Value::from).collect();
    let mut neighbor = Table::new();
    neighbor.insert("interface".to_owned(), interface.into());
    neighbor.insert("mac".to_owned(), mac.to_string().into());
    role.insert("uplink".to_owned(), neighbor.into());
    default(role, "downlinks", down);
    if layout.cell_of(host).is_some() {
        default(role, "radio", "air");
    }
    default(role, "id", i64::from(layout.number(host)));
    default(role, "gateway", gateway(scenario, layout)?.to_string());
    default(role, "network_key", hex(network.network_key.as_bytes()));
    default(role, "key_generation", i64::from(network.key_generation));
    Ok(())
}

fn mobile(scenario: &Scenario, layout: &Layout, host: &str, role: &mut Table) -> Result<(), String> {
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
    let start = role.remove("start").and_then(|value| value.as_str().map(str::to_owned));
    let mut stations: Vec<Value> = layout.stations().map(Value::Table).collect();
    begin_with(&mut stations, start.as_deref())?;
    default(role, "stations", stations);
    default(role, "address", address.to_string());
    default(role, "gateway", gateway(scenario, layout)?.to_string());
    default(role, "interface", "air");
    default(role, "session_key", hex(key.as_bytes()));
    default(role, "key_generation", i64::from(network.key_generation));
    default(role, "r_mh", format!("{r_mh:016x}"));
    Ok(())
}

/// A mobility agent serves the network of its cell; a home agent knows every mobile node that is at home there.
fn agent(scenario: &Scenario, layout: &Layout, host: &str, role: &mut Table) -> Result<(), String> {
    default(role, "address", interface_address(layout, host)?);
    default(role, "interface", "air");
    if role.get("kind").and_then(Value::as_str) == Some("mobile-ip/home-agent") {
        let nodes = hosts_of(scenario, "mobile-ip/mobile-node");
        let at_home = nodes.filter(|node| layout.same_network(host, node));
        let peers: Result<Vec<Value>, String> = at_home.map(|node| peer(scenario, layout, node)).collect();
        default(role, "mobile_nodes", peers?);
    }
    Ok(())
}

fn mobile_node(scenario: &Scenario, layout: &Layout, host: &str, role: &mut Table) -> Result<(), String> {
    default(role, "address", interface_address(layout, host)?);
    default(role, "interface", "air");
    let agent = hosts_of(scenario, "mobile-ip/home-agent").find(|agent| layout.same_network(agent, host));
    let agent = agent.ok_or("there is no mobile-ip/home-agent in its home network")?;
    default(role, "home_agent", peer(scenario, layout, agent)?);
    Ok(())
}

fn interface_address(layout: &Layout, host: &str) -> Result<String, String> {
    layout.air_address(host).ok_or_else(|| {
        "its radio has no address: give the cell a `net`, and a mobile node an `address` in it".to_owned()
    })
}

fn peer(scenario: &Scenario, layout: &Layout, host: &str) -> Result<Value, String> {
    let shared =
        scenario.mobile_ip.as_ref().ok_or("a Mobile IP role needs the table [mobile-ip] with its key")?;
    let address = interface_address(layout, host)?;
    let address = address.split('/').next().unwrap_or_default().to_owned();
    Ok(Value::Table(Table::from_iter([
        ("address".to_owned(), Value::from(address)),
        ("spi".to_owned(), Value::from(i64::from(shared.spi))),
        ("key".to_owned(), Value::from(hex(shared.key.as_bytes()))),
    ])))
}

/// The hosts with a role of this kind, in the order of the file.
pub(super) fn hosts_of<'a>(scenario: &'a Scenario, kind: &'a str) -> impl Iterator<Item = &'a str> {
    scenario.host.iter().filter_map(move |(name, host)| {
        let mut roles = host.get("role").and_then(Value::as_array).into_iter().flatten();
        let has = roles.any(|role| role.get("kind").and_then(Value::as_str) == Some(kind));
        has.then_some(name.as_str())
    })
}

/// Places are cells, by the name of the host that serves each.
fn roam(layout: &Layout, role: &mut Table) -> Result<(), String> {
    let start = role.remove("start").and_then(|value| value.as_str().map(str::to_owned));
    let mut places: Vec<Value> = layout
        .stations()
        .map(|station| {
            let keep = |key: &str| (key.to_owned(), station.get(key).cloned().unwrap_or(Value::from(0)));
            Value::Table(Table::from_iter(["name", "cell"].map(keep)))
        })
        .collect();
    begin_with(&mut places, start.as_deref())?;
    default(role, "places", places);
    default(role, "interface", "air");
    Ok(())
}

/// Puts what the user named first in front.
fn begin_with(all: &mut [Value], start: Option<&str>) -> Result<(), String> {
    let Some(start) = start else { return Ok(()) };
    let named = |value: &Value| value.get("name").and_then(Value::as_str) == Some(start);
    let at = all.iter().position(named).ok_or_else(|| format!("`start`: no station `{start}`"))?;
    all.swap(0, at);
    Ok(())
}

fn gateway(scenario: &Scenario, layout: &Layout) -> Result<Ipv4Addr, String> {
    let name = hosts_of(scenario, "cellular-ip/gateway").next().ok_or("there is no cellular-ip/gateway")?;
    layout.address(name).ok_or_else(|| format!("the gateway `{name}` needs an address"))
}

/// `mobile:9000` becomes the mobile's address and that port.
fn name_to_address(layout: &Layout, role: &mut Table, key: &str) {
    let Some((name, port)) = role.get(key).and_then(Value::as_str).and_then(|text| text.rsplit_once(':'))
    else {
        return;
    };
    if let Some(address) = layout.address(name) {
        role.insert(key.to_owned(), format!("{address}:{port}").into());
    }
}

pub(super) fn default(role: &mut Table, key: &str, value: impl Into<Value>) {
    if !role.contains_key(key) {
        role.insert(key.to_owned(), value.into());
    }
}
