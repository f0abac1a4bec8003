//! Checks of a whole scenario before the run starts: for example unknown or ambiguous names, overlapping networks,
//! and addresses that two hosts have.
//!
//! A role checks its own keys when it is built. The checks here need several parts of a scenario.

use super::error::{ScenarioError, Source, Wrong};
use super::layout::Layout;
use super::limits::{LONGEST, mtu, name_of_interface, propagation, times};
use super::nearest::did_you_mean;
use super::networks::AIR;
use super::{Access, Contention, Duplex, Hears, Host, Scenario, moves, protocol, segment};
use crate::application::Application;
use std::collections::{BTreeMap, BTreeSet};
use wire::{Duration, Ipv4Addr, Prefix};

const MOST_RADIOS: usize = 64;

/// Checks the keys that need no layout of hosts.
pub(crate) fn check(source: &Source<'_>, scenario: &Scenario) -> Result<(), ScenarioError> {
    let checks = [time, names, links, segment::check, times, duplex, air, propagation, nets];
    checks
        .iter()
        .try_for_each(|check| check(scenario))
        .map_err(|(path, problem)| source.at_path(&path, &problem))
}

/// Checks the keys that need the layout of hosts: roles, radios, addresses, peers, uplinks, moves and ports.
pub(crate) fn check_hosts(
    source: &Source<'_>,
    scenario: &Scenario,
    layout: &Layout,
) -> Result<(), ScenarioError> {
    kinds(layout)
        .and_then(|()| one_of_a_kind(layout))
        .and_then(|()| hosts(scenario, layout))
        .and_then(|()| addresses(layout))
        .and_then(|()| peers(scenario, layout))
        .and_then(|()| moves::uplinks(layout))
        .and_then(|()| {
            layout.hosts().try_for_each(|(name, host)| {
                moves::check(layout, name, host).and_then(|()| moves::ports(name, host))
            })
        })
        .map_err(|(path, problem)| source.at_path(&path, &problem))
}

fn time(scenario: &Scenario) -> Result<(), Wrong> {
    if scenario.duration == Duration::ZERO {
        return Err(("duration".to_owned(), "must be greater than zero, for example `10s`".to_owned()));
    }
    if scenario.duration > LONGEST {
        return Err((
            "duration".to_owned(),
            format!("must be above 0s and at most 1440min, but is {:?}", scenario.duration),
        ));
    }
    Ok(())
}

fn names(scenario: &Scenario) -> Result<(), Wrong> {
    for name in scenario.host.keys() {
        if let Some(problem) = name_of_interface(name) {
            return Err((format!("host.{name}"), problem));
        }
    }
    Ok(())
}

fn links(scenario: &Scenario) -> Result<(), Wrong> {
    let mut joined: BTreeMap<[&str; 2], &str> = BTreeMap::new();
    for (name, wire) in &scenario.wire {
        let [a, b] = &wire.ends;
        let ends = if a < b { [a.as_str(), b] } else { [b.as_str(), a] };
        if a == b {
            return Err((
                format!("wire.{name}.ends"),
                format!("must be two different hosts; both are `{a}`"),
            ));
        }
        if let Some(other) = joined.insert(ends, name) {
            let problem = format!(
                "`{a}` and `{b}` are joined by `wire.{other}`; two hosts can have only one wire between them"
            );
            return Err((format!("wire.{name}.ends"), problem));
        }
        mtu(&format!("wire.{name}"), wire.mtu)?;
    }
    let mut served: BTreeMap<&str, &str> = BTreeMap::new();
    for (name, cell) in &scenario.cell {
        if !name.parse::<u16>().is_ok_and(|number| number.to_string() == *name) {
            return Err((
                format!("cell.{name}"),
                "the name of a cell must be a number from 0 to 65535".to_owned(),
            ));
        }
        if let Some(other) = served.insert(&cell.station, name) {
            let problem = format!(
                "`{}` is the base station of cell {other} already; a host can have only one cell",
                cell.station
            );
            return Err((format!("cell.{name}.station"), problem));
        }
        mtu(&format!("cell.{name}"), cell.mtu)?;
    }
    Ok(())
}

/// Checks that a cell has no key that its `duplex` excludes. The senders of a full-duplex cell share nothing.
fn duplex(scenario: &Scenario) -> Result<(), Wrong> {
    for (name, cell) in &scenario.cell {
        let of_air = [
            ("channel", cell.channel.is_some()),
            ("beacon", cell.beacon.is_some()),
            ("contention", cell.contention.is_some()),
            ("access", cell.access != Access::default()),
        ];
        let problem = match cell.duplex {
            Duplex::Half => cell.uplink_rate.map(|_| {
                ("uplink_rate", "allowed only with `duplex = \"full\"`, because all senders share one rate")
            }),
            Duplex::Full => of_air.into_iter().find(|(_, is_given)| *is_given).map(|(key, _)| {
                (key, "not allowed with `duplex = \"full\"`, because nothing waits for another sender; remove the key")
            }),
        };
        if let Some((key, problem)) = problem {
            return Err((format!("cell.{name}.{key}"), problem.to_owned()));
        }
    }
    Ok(())
}

/// Checks the radio keys of cells: cells of a channel have the same `access`, beacons leave air time for data,
/// contention windows are in their range, and a scan is shorter than its interval.
fn air(scenario: &Scenario) -> Result<(), Wrong> {
    let mut granted = BTreeMap::new();
    for (name, cell) in &scenario.cell {
        let wrong = |key: &str, problem: String| Err((format!("cell.{name}.{key}"), problem));
        if let Some(channel) = cell.channel
            && *granted.entry(channel).or_insert(cell.access) != cell.access
        {
            let problem =
                format!("all cells of channel {channel} must have the same `access`: `fair` or `fifo`");
            return wrong("access", problem);
        }
        if let Some(beacon) = &cell.beacon {
            let bits = beacon.bytes as u64 * 8;
            let airtime = cell.per_frame + Duration::from_secs_f64(bits as f64 / cell.rate as f64);
            if !(1..=2346).contains(&beacon.bytes) {
                return wrong(
                    "beacon.bytes",
                    "must be from 1 to 2346 bytes, as a frame of 802.11".to_owned(),
                );
            }
            if beacon.every <= airtime {
                return wrong(
                    "beacon.every",
                    format!("must be longer than {airtime:?}, the time that a beacon takes"),
                );
            }
        }
        if let Some(Err((key, problem))) = cell.contention.map(Contention::check) {
            return wrong(key, problem.to_owned());
        }
    }
    hears(scenario)?;
    match &scenario.radio.scan {
        Some(scan) if scan.away >= scan.every => Err((
            "radio.scan.away".to_owned(),
            "must be shorter than `every`, because the radio returns to its channel between two scans"
                .to_owned(),
        )),
        _ => Ok(()),
    }
}

/// Checks that the keys of overlapping cells have an effect.
fn hears(scenario: &Scenario) -> Result<(), Wrong> {
    let problem = match (scenario.radio.hears, scenario.radio.data) {
        (Hears::Cell, Some(_)) => ("data", "allowed only with `hears = \"channel\"`"),
        (Hears::Channel, _) if scenario.cell.values().all(|cell| cell.channel.is_none()) => {
            ("hears", "`channel` needs cells with the key `channel`, for example `cell.1.channel = 6`")
        }
        _ => return Ok(()),
    };
    Err((format!("radio.{}", problem.0), problem.1.to_owned()))
}

/// Checks that networks do not overlap. Otherwise the link to an address would be ambiguous.
fn nets(scenario: &Scenario) -> Result<(), Wrong> {
    let wires = scenario.wire.iter().filter_map(|(name, wire)| Some((format!("wire.{name}"), wire.net?)));
    let cells = scenario.cell.iter().filter_map(|(name, cell)| Some((format!("cell.{name}"), cell.net?)));
    let mut before: Vec<(String, Prefix)> = Vec::new();
    let segments = scenario.segment.iter();
    let segments = segments.filter_map(|(name, segment)| Some((format!("segment.{name}"), segment.net?)));
    for (path, net) in wires.chain(cells).chain(segments) {
        let overlaps = |other: Prefix| net.contains(other.address()) || other.contains(net.address());
        if let Some((other, theirs)) = before.iter().find(|(_, other)| overlaps(*other)) {
            return Err((
                format!("{path}.net"),
                format!("{net} overlaps {theirs} of `{other}`; write networks that do not overlap"),
            ));
        }
        before.push((path, net));
    }
    Ok(())
}

/// Checks that a host has at most one role of each kind. A host may have several applications of the same kind, and a role
/// `apps/roam` for each of its radios.
fn one_of_a_kind(layout: &Layout) -> Result<(), Wrong> {
    for (name, host) in layout.hosts() {
        let mut before = BTreeSet::new();
        for (index, role) in host.role.iter().enumerate() {
            let Some(kind) = role.get("kind").and_then(toml::Value::as_str) else { continue };
            let radio = role.get("interface").and_then(toml::Value::as_str).unwrap_or(AIR);
            let (each, radio) = if kind == "apps/roam" { (" for each radio", radio) } else { ("", "") };
            if Application::of_kind(kind).is_none() && !before.insert((kind, radio)) {
                let problem = format!(
                    "`{name}` has a role `{kind}` already; a host can have only one role of this kind{each}"
                );
                return Err((format!("host.{name}.role[{index}].kind"), problem));
            }
        }
    }
    Ok(())
}

/// Refuses roles of unknown kinds. The later checks could report another error about the role, instead of its kind.
fn kinds(layout: &Layout) -> Result<(), Wrong> {
    let known = roles::RoleConfig::KINDS;
    for (name, host) in layout.hosts() {
        for (index, role) in host.role.iter().enumerate() {
            let Some(kind) = role.get("kind").and_then(toml::Value::as_str) else { continue };
            if !known.contains(&kind) {
                let meant = did_you_mean(kind, known);
                let problem = format!("there is no kind `{kind}`{meant}; allowed: {}", known.join(", "));
                return Err((format!("host.{name}.role[{index}].kind"), problem));
            }
        }
    }
    Ok(())
}

fn hosts(scenario: &Scenario, layout: &Layout) -> Result<(), Wrong> {
    for (name, host) in layout.hosts() {
        let wrong = |key: &str, problem: String| Err((format!("host.{name}{key}"), problem));
        let roams = protocol::roams(&host.role);
        if !(1..=MOST_RADIOS).contains(&host.radios) {
            return wrong(".radios", format!("must be from 1 to {MOST_RADIOS} radios"));
        }
        if roams && scenario.cell.is_empty() {
            return wrong("", "a host that moves needs a cell, for example [cell.1]".to_owned());
        }
        if let Some(cell) = layout.cell_of(name).filter(|_| roams) {
            return wrong(
                "",
                format!(
                    "must not move, because it is the base station of cell {cell}; remove the role that makes the host move, or use another host as the base station"
                ),
            );
        }
        let stays =
            [("radios", host.radios > 1), ("course", !host.course.is_empty()), ("path", host.path.is_some())];
        if let Some((key, _)) = stays.into_iter().find(|(_, given)| *given && !roams) {
            return wrong(&format!(".{key}"), "allowed only for a host that moves; give the host the role `apps/roam`, or the role of a mobile host or mobile node".to_owned());
        }
    }
    Ok(())
}

/// Checks that each address belongs to one host, and can be a host's address.
fn addresses(layout: &Layout) -> Result<(), Wrong> {
    let mut owners: BTreeMap<Ipv4Addr, &str> = BTreeMap::new();
    let taken = |path: String, address: Ipv4Addr, owner: &str| {
        Err((path, format!("{address} is an address of `{owner}`; give each address to one host")))
    };
    for (name, _) in layout.hosts() {
        for address in layout.link_addresses(name) {
            if let Some(owner) = owners.insert(address, name).filter(|owner| *owner != name) {
                return taken(format!("host.{name}.address"), address, owner);
            }
        }
    }
    for (name, host) in layout.hosts() {
        let Some(address) = host.address else { continue };
        let path = format!("host.{name}.address");
        let nowhere = address.octets()[0] == 0 || address.is_loopback();
        if nowhere || address.is_multicast() || address.is_broadcast() || layout.is_end_of_net(address) {
            return Err((
                path,
                format!(
                    "{address} is not a unicast host address; allowed: for example 10.1.0.7, but not the first or last address of a `net`"
                ),
            ));
        }
        if let Some(owner) = owners.insert(address, name).filter(|owner| *owner != name) {
            return taken(path, address, owner);
        }
    }
    Ok(())
}

/// Checks the keys `to` and `at` of roles. The port must be valid. A host that `to` names must exist and have an
/// address, and links and routes must lead to the host. A host that `at` names must be the role's own host. An IP
/// address in place of a name is not checked.
fn peers(scenario: &Scenario, layout: &Layout) -> Result<(), Wrong> {
    for (name, host) in layout.hosts() {
        for End { path, key, text, connects } in ends_of(name, host) {
            let wrong = |problem: String| Err((path.clone(), problem));
            let (peer, port) = text.rsplit_once(':').unwrap_or((text, ""));
            if !port.parse::<u16>().is_ok_and(|port| port > 0) {
                let is_host = peer.parse::<Ipv4Addr>().is_ok() || layout.known(peer).is_ok();
                let example = if is_host { peer } else { "server" };
                return wrong(format!("write a host and a port from 1 to 65535, for example {example}:9000"));
            }
            if peer.parse::<Ipv4Addr>().is_ok() {
                continue;
            }
            layout.known(peer).map_err(|problem| (path.clone(), problem))?;
            if key == "at" && peer != name {
                return wrong(format!("`{peer}` is another host; write `{name}`, or an address of `{name}`"));
            }
            if layout.address(peer).is_none() && !has_addresses(layout, peer) {
                return wrong(format!(
                    "`{peer}` has no address; give the host an `address`, or one of its links a `net`"
                ));
            }
            if !reachable(scenario, layout, name).contains(peer) {
                return wrong(format!(
                    "no links lead from `{name}` to `{peer}`; add wires or cells between them"
                ));
            }
            if peer != name && has_no_way(layout, name, host) {
                return wrong(format!(
                    "`{name}` has no route to `{peer}`: give it a `default_route`, or the links in between a `net`"
                ));
            }
            // A connection needs a reverse path for answers. Datagrams are not answered.
            let back = connects.then_some((peer, name));
            for (from, to) in [Some((name, peer)), back].into_iter().flatten() {
                if let Some((last, problem)) = dead_end(layout, from, to) {
                    return wrong(format!(
                        "the default routes of `{from}` lead to `{last}`, {problem}: give `{last}` a `default_route` towards `{to}`, or the links in between a `net`"
                    ));
                }
            }
        }
    }
    Ok(())
}

/// The value of the key `to` or `at` of a role.
struct End<'a> {
    path: String,
    /// The key: `to` for the address of the peer, `at` for the address on which the role listens.
    key: &'static str,
    /// The value as in the file, for example `HOST:PORT`.
    text: &'a str,
    /// Whether the role opens connections to this address.
    connects: bool,
}

/// Returns the values of the keys `to` and `at` in the roles of a host.
fn ends_of<'a>(name: &'a str, host: &'a Host) -> impl Iterator<Item = End<'a>> {
    let of_role = move |(index, role): (usize, &'a toml::Table)| {
        let connects = Application::of_table(role).is_some_and(Application::is_client);
        let keys = ["to", "at"].into_iter();
        keys.filter_map(move |key| {
            let path = format!("host.{name}.role[{index}].{key}");
            Some(End { path, key, text: role.get(key)?.as_str()?, connects })
        })
    };
    host.role.iter().enumerate().flat_map(of_role)
}

/// Returns whether a role of a host has the key `addresses`, which gives the host its addresses.
fn has_addresses(layout: &Layout, name: &str) -> bool {
    layout
        .hosts()
        .any(|(other, host)| other == name && host.role.iter().any(|role| role.contains_key("addresses")))
}

/// Returns the hosts to which links lead from `from`, including `from`. A mobile host has a link to the base station
/// of each cell.
fn reachable<'a>(scenario: &'a Scenario, layout: &'a Layout, from: &'a str) -> BTreeSet<&'a str> {
    let (mut seen, mut open) = (BTreeSet::from([from]), vec![from]);
    let roams = |name: &str| layout.hosts().any(|(other, host)| other == name && protocol::roams(&host.role));
    while let Some(here) = open.pop() {
        let wires = scenario.wire.values().filter_map(|wire| match &wire.ends {
            [a, b] if a == here => Some(b.as_str()),
            [a, b] if b == here => Some(a.as_str()),
            _ => None,
        });
        let shared =
            scenario.segment.values().filter(|segment| segment.hosts.iter().any(|host| host == here));
        let shared = shared.flat_map(|segment| &segment.hosts).map(String::as_str);
        let (moves, serves) = (roams(here), layout.cell_of(here).is_some());
        let stations = scenario.cell.values().map(|cell| cell.station.as_str()).filter(|_| moves);
        let mobiles = layout.hosts().map(|(name, _)| name).filter(|name| serves && roams(name));
        let next: Vec<&str> =
            wires.chain(shared).chain(stations).chain(mobiles).filter(|name| !seen.contains(name)).collect();
        seen.extend(&next);
        open.extend(next);
    }
    seen
}

/// Returns whether all roles of a host are workloads, and the host has neither a default route nor an address of a
/// link.
fn has_no_way(layout: &Layout, name: &str, host: &Host) -> bool {
    host.default_route.is_none()
        && host.role.iter().all(|role| Application::of_table(role).is_some())
        && layout.link_addresses(name).next().is_none()
}

/// Returns the host at which the default routes from `from` towards `peer` end, and the reason. `None` if they reach
/// the peer, or a host that may have other routes, because of a protocol's role or a network.
fn dead_end<'a>(layout: &'a Layout, from: &'a str, peer: &str) -> Option<(&'a str, &'static str)> {
    let (mut here, mut seen) = (from, BTreeSet::new());
    while here != peer {
        if !seen.insert(here) {
            return Some((here, "where they form a loop"));
        }
        let (_, host) = layout.hosts().find(|(name, _)| *name == here)?;
        let is_plain = host.role.iter().all(|role| Application::of_table(role).is_some());
        if !is_plain || layout.link_addresses(here).next().is_some() {
            return None;
        }
        match &host.default_route {
            Some(next) => here = next,
            None => return Some((here, "which has no further route")),
        }
    }
    None
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "effect_tests.rs"]
mod effect_tests;

#[cfg(test)]
#[path = "range_tests.rs"]
mod range_tests;
