//! The IP networks of a scenario. A `net` of a wire or cell gives addresses to the interfaces at this link. Each host
//! gets routes to all networks, each over the fewest networks, as after a routing protocol has converged. A host gets
//! no routes if one of its roles finds the routers itself.
//!
//! On a wire, the first end has host number 1 in the network, and the second end has number 2. On a segment, the hosts
//! have numbers from 1 in the order of the file. In a cell, the base station has number 1. A mobile host has the address in
//! its table, if the network of a cell contains it. The interfaces of a link without `net` have no addresses.

use super::Scenario;
use std::collections::{BTreeMap, VecDeque};
use toml::{Table, Value};
use wire::{Ipv4Addr, Prefix};

/// The interface name of a host's first radio.
pub(crate) const AIR: &str = "air";

/// An interface that has an address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Attached {
    pub(crate) interface: String,
    pub(crate) address: Ipv4Addr,
    pub(crate) net: Prefix,
}

/// The networks to which each host is attached.
#[derive(Default)]
pub(crate) struct Networks {
    hosts: BTreeMap<String, Vec<Attached>>,
    /// Hosts that forward no packets: the mobile hosts.
    leaves: Vec<String>,
}

impl Networks {
    /// Reads the networks of wires and cells. `mobiles`: the mobile hosts with their addresses. An error has the path
    /// of the key, and the problem.
    pub(crate) fn new(scenario: &Scenario, mobiles: &[(String, Ipv4Addr)]) -> Result<Self, (String, String)> {
        let mut networks = Self::default();
        for (name, wire) in &scenario.wire {
            let Some(net) = wire.net else { continue };
            let [first, second] = &wire.ends;
            for (number, (host, other)) in (1..).zip([(first, second), (second, first)]) {
                let address = nth(net, number).ok_or_else(|| too_small(&format!("wire.{name}.net"), net))?;
                networks.attach(host, other, address, net);
            }
        }
        for (name, segment) in &scenario.segment {
            let Some(net) = segment.net else { continue };
            for (number, host) in (1..).zip(&segment.hosts) {
                let address =
                    nth(net, number).ok_or_else(|| too_small(&format!("segment.{name}.net"), net))?;
                networks.attach(host, name, address, net);
            }
        }
        for (name, cell) in &scenario.cell {
            let Some(net) = cell.net else { continue };
            let address = nth(net, 1).ok_or_else(|| too_small(&format!("cell.{name}.net"), net))?;
            networks.attach(&cell.station, AIR, address, net);
        }
        for (host, address) in mobiles {
            let home = scenario.cell.values().filter_map(|cell| cell.net).find(|net| net.contains(*address));
            if let Some(net) = home {
                networks.attach(host, AIR, *address, net);
            }
            networks.leaves.push(host.clone());
        }
        Ok(networks)
    }

    fn attach(&mut self, host: &str, interface: &str, address: Ipv4Addr, net: Prefix) {
        let attached = Attached { interface: interface.to_owned(), address, net };
        self.hosts.entry(host.to_owned()).or_default().push(attached);
    }

    /// Returns the interfaces of a host that have addresses.
    pub(crate) fn of(&self, host: &str) -> &[Attached] {
        self.hosts.get(host).map_or(&[], Vec::as_slice)
    }

    /// Returns the address of an interface with the length of its prefix, as in configurations.
    pub(crate) fn address_of(&self, host: &str, interface: &str) -> Option<String> {
        let attached = self.of(host).iter().find(|attached| attached.interface == interface)?;
        Some(format!("{}/{}", attached.address, attached.net.len()))
    }

    /// Returns the network of an interface, or `None` if the interface has no address.
    pub(crate) fn net_of(&self, host: &str, interface: &str) -> Option<Prefix> {
        let attached = self.of(host).iter().find(|attached| attached.interface == interface)?;
        Some(attached.net)
    }

    /// Returns whether an address is the first or the last of a network with a prefix shorter than 31 bits. No host
    /// may have such an address.
    pub(crate) fn has_end(&self, address: Ipv4Addr) -> bool {
        let nets = self.hosts.values().flatten().map(|attached| attached.net);
        let ends = |net: Prefix| {
            let first = net.address().to_bits();
            let last = u64::from(first) + (1u64 << (32 - net.len())) - 1;
            [u64::from(first), last].contains(&u64::from(address.to_bits()))
        };
        nets.filter(|net| net.len() < 31).any(ends)
    }

    /// Returns the routes of a host: one to each network that the host is not in, through the neighbor on the
    /// shortest path. A network that cannot be reached has no route.
    pub(crate) fn routes(&self, host: &str) -> Vec<Table> {
        let mut seen: Vec<Prefix> = self.of(host).iter().map(|attached| attached.net).collect();
        let mut routes = Vec::new();
        // A breadth-first search over networks. Each entry has the first hop towards the network, or `None` for a
        // network of the host itself.
        let mut queue: VecDeque<(Prefix, Option<(String, Ipv4Addr)>)> =
            seen.iter().map(|net| (*net, None)).collect();
        while let Some((net, step)) = queue.pop_front() {
            for (neighbor, there) in self.on(net).filter(|(name, _)| *name != host) {
                let first = step.clone().or_else(|| {
                    let ours = self.of(host).iter().find(|attached| attached.net == net)?;
                    Some((ours.interface.clone(), there))
                });
                let Some((interface, via)) = first else { continue };
                for beyond in self.of(neighbor).iter().filter(|attached| attached.net != net) {
                    if !seen.contains(&beyond.net) && !self.leaves.iter().any(|leaf| leaf == neighbor) {
                        seen.push(beyond.net);
                        queue.push_back((beyond.net, Some((interface.clone(), via))));
                        routes.push(route(beyond.net, &interface, via));
                    }
                }
            }
        }
        routes
    }

    /// Returns the hosts in a network, and their addresses in this network.
    fn on(&self, net: Prefix) -> impl Iterator<Item = (&str, Ipv4Addr)> {
        self.hosts.iter().flat_map(move |(host, all)| {
            let there = all.iter().filter(move |attached| attached.net == net);
            there.map(move |attached| (host.as_str(), attached.address))
        })
    }
}

fn route(to: Prefix, interface: &str, via: Ipv4Addr) -> Table {
    Table::from_iter([
        ("to".to_owned(), Value::from(to.to_string())),
        ("interface".to_owned(), Value::from(interface)),
        ("via".to_owned(), Value::from(via.to_string())),
    ])
}

/// Returns address `number` of the network `net`. The number 0 is the network's own address. `None` if the
/// address is the broadcast address, which is the last one, or is outside the network.
fn nth(net: Prefix, number: u32) -> Option<Ipv4Addr> {
    let hosts = 1u64 << (32 - net.len());
    (u64::from(number) + 1 < hosts).then(|| Ipv4Addr::from_bits(net.address().to_bits() + number))
}

fn too_small(key: &str, net: Prefix) -> (String, String) {
    (
        key.to_owned(),
        format!("{net} has too few addresses; the prefix must have at most 30 bits, for example 10.1.0.0/24"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = r#"
        about = "a tree"
        duration = "1s"
        wire.internet = { ends = ["correspondent", "router"], rate = "1Mb/s", delay = "1ms", net = "10.0.0.0/24" }
        wire.left = { ends = ["router", "home"], rate = "1Mb/s", delay = "1ms", net = "10.0.1.0/24" }
        wire.right = { ends = ["router", "foreign"], rate = "1Mb/s", delay = "1ms", net = "10.0.2.0/24" }
        cell.1 = { station = "home", rate = "1Mb/s", net = "10.1.0.0/24" }
        cell.2 = { station = "foreign", rate = "1Mb/s", net = "10.2.0.0/24" }
        host = {}
    "#;

    fn networks() -> Networks {
        let scenario: Scenario = toml::from_str(TREE).unwrap();
        let mobile = ("mobile".to_owned(), Ipv4Addr::new(10, 1, 0, 7));
        Networks::new(&scenario, &[mobile]).unwrap()
    }

    fn lines(host: &str) -> Vec<String> {
        let words =
            |table: &Table| ["to", "interface", "via"].map(|key| table[key].as_str().unwrap().to_owned());
        networks().routes(host).iter().map(|table| words(table).join(" ")).collect()
    }

    #[test]
    fn ends_stations_and_mobiles_have_addresses() {
        let networks = networks();
        assert_eq!(networks.address_of("router", "correspondent").unwrap(), "10.0.0.2/24");
        assert_eq!(networks.address_of("home", "air").unwrap(), "10.1.0.1/24");
        assert_eq!(networks.address_of("mobile", "air").unwrap(), "10.1.0.7/24");
        assert_eq!(networks.address_of("mobile", "eth"), None);
    }

    #[test]
    fn every_network_has_the_shortest_way_to_every_other() {
        let from_correspondent = lines("correspondent");
        assert_eq!(from_correspondent.len(), 4);
        assert!(
            from_correspondent.iter().all(|line| line.ends_with("router 10.0.0.2")),
            "{from_correspondent:?}"
        );
        let mut from_router = lines("router");
        from_router.sort();
        assert_eq!(from_router, ["10.1.0.0/24 home 10.0.1.2", "10.2.0.0/24 foreign 10.0.2.2"]);
        assert!(lines("foreign").contains(&"10.1.0.0/24 router 10.0.2.1".to_owned()));
    }

    #[test]
    fn a_network_without_room_is_refused() {
        let scenario: Scenario = toml::from_str(&TREE.replace("10.0.1.0/24", "10.0.1.0/31")).unwrap();
        let (key, problem) = Networks::new(&scenario, &[]).err().unwrap();
        assert_eq!(
            (key.as_str(), problem.as_str()),
            (
                "wire.left.net",
                "10.0.1.0/31 has too few addresses; the prefix must have at most 30 bits, for example 10.1.0.0/24"
            )
        );
    }
}
