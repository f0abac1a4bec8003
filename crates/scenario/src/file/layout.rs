//! The hosts of a scenario with their interfaces, link addresses and networks, by name.

use super::error::{ScenarioError, Source};
use super::nearest::did_you_mean;
use super::networks::{AIR, Networks};
use super::{Host, Scenario};
use std::collections::{BTreeMap, BTreeSet};
use toml::{Table, Value};
use wire::{Ipv4Addr, Mac};

/// An interface: its name, and its link.
pub(super) type Plug = (String, Attachment);

/// The link of an interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Attachment {
    /// The wire with this name; the index of the end is 0 or 1.
    Wire(String, usize),
    /// The segment with this name.
    Segment(String),
    /// A radio.
    Air,
}

/// The hosts of a scenario with their links and networks, by name.
pub(crate) struct Layout {
    /// Hosts in the order of the file.
    pub(super) hosts: Vec<(String, Host)>,
    pub(super) interfaces: BTreeMap<String, Vec<Plug>>,
    /// The number of the cell of each base station, by the name of the host.
    cells: BTreeMap<String, u16>,
    /// The hosts at the ends of each wire, by the name of the wire.
    pub(super) wires: BTreeMap<String, [String; 2]>,
    /// The hosts on each segment, by the name of the segment.
    pub(super) segments: BTreeMap<String, Vec<String>>,
    pub(super) networks: Networks,
    /// Hosts with radios that move between cells.
    mobiles: BTreeSet<String>,
}

impl Layout {
    /// Lays out the hosts of a scenario. The interface at a wire has the name of the host at the other end, and an
    /// interface at a segment has the name of the segment. The first radio of a host has the name `air`, and further
    /// radios `air2` and so on.
    ///
    /// `roams` returns whether a host with these roles has a radio that moves between cells.
    pub(super) fn new(
        source: &Source<'_>,
        scenario: &Scenario,
        roams: fn(&[Table]) -> bool,
    ) -> Result<Self, ScenarioError> {
        let mut hosts = Vec::new();
        for (name, value) in &scenario.host {
            let host = serde_path_to_error::deserialize(value.clone()).map_err(|error| {
                let path = error.path().to_string();
                let problem = roles::by_schema::<Host>(&path, error.inner().message());
                source.at_path(&format!("host.{name}.{path}"), &problem)
            })?;
            hosts.push((name.clone(), host));
        }
        let mut layout = Self {
            hosts,
            interfaces: BTreeMap::new(),
            cells: BTreeMap::new(),
            wires: BTreeMap::new(),
            segments: BTreeMap::new(),
            networks: Networks::default(),
            mobiles: BTreeSet::new(),
        };
        for (name, wire) in &scenario.wire {
            for (end, host) in wire.ends.iter().enumerate() {
                layout
                    .known(host)
                    .map_err(|problem| source.at_path(&format!("wire.{name}.ends"), &problem))?;
                let other = wire.ends.get(1 - end).cloned().unwrap_or_default();
                layout
                    .interfaces
                    .entry(host.clone())
                    .or_default()
                    .push((other, Attachment::Wire(name.clone(), end)));
            }
            layout.wires.insert(name.clone(), wire.ends.clone());
        }
        layout.add_segments(source, scenario)?;
        for (name, cell) in &scenario.cell {
            let path = format!("cell.{name}");
            let Ok(number) = name.parse() else { continue };
            layout
                .known(&cell.station)
                .map_err(|problem| source.at_path(&format!("{path}.station"), &problem))?;
            layout.cells.insert(cell.station.clone(), number);
            layout
                .interfaces
                .entry(cell.station.clone())
                .or_default()
                .push((AIR.to_owned(), Attachment::Air));
        }
        let mobiles: Vec<(String, Option<Ipv4Addr>, usize)> = layout
            .hosts
            .iter()
            .filter(|(_, host)| roams(&host.role))
            .map(|(name, host)| (name.clone(), host.address, host.radios))
            .collect();
        for (name, _, radios) in &mobiles {
            let own = layout.interfaces.entry(name.clone()).or_default();
            own.extend((1..=*radios).map(|number| (radio_name(number), Attachment::Air)));
            layout.mobiles.insert(name.clone());
        }
        let addressed = mobiles.into_iter().filter_map(|(name, address, _)| Some((name, address?)));
        layout.networks = Networks::new(scenario, &addressed.collect::<Vec<_>>())
            .map_err(|(key, problem)| source.at_path(&key, &problem))?;
        Ok(layout)
    }

    fn add_segments(&mut self, source: &Source<'_>, scenario: &Scenario) -> Result<(), ScenarioError> {
        for (name, segment) in &scenario.segment {
            for (index, host) in segment.hosts.iter().enumerate() {
                self.known(host)
                    .map_err(|problem| source.at_path(&format!("segment.{name}.hosts[{index}]"), &problem))?;
                let plug = (name.clone(), Attachment::Segment(name.clone()));
                self.interfaces.entry(host.clone()).or_default().push(plug);
            }
            self.segments.insert(name.clone(), segment.hosts.clone());
        }
        Ok(())
    }

    /// Returns all hosts, in the order of the file.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = (&str, &Host)> {
        self.hosts.iter().map(|(name, host)| (name.as_str(), host))
    }

    /// Returns the addresses that a host has from the networks of its links.
    pub(crate) fn link_addresses(&self, host: &str) -> impl Iterator<Item = Ipv4Addr> {
        self.networks.of(host).iter().map(|attached| attached.address)
    }

    /// Returns whether an address is the first or last of a network with a prefix shorter than 31 bits. No host may
    /// have such an address.
    pub(crate) fn is_end_of_net(&self, address: Ipv4Addr) -> bool {
        self.networks.has_end(address)
    }

    /// Returns whether a host has a radio that moves between cells.
    pub(crate) fn moves(&self, host: &str) -> bool {
        self.mobiles.contains(host)
    }

    pub(crate) fn known(&self, host: &str) -> Result<(), String> {
        if self.hosts.iter().any(|(name, _)| name == host) {
            return Ok(());
        }
        let names: Vec<&str> = self.hosts.iter().map(|(name, _)| name.as_str()).collect();
        let meant = did_you_mean(host, names.iter().copied());
        Err(format!("there is no host `{host}`{meant}; there are: {}", names.join(", ")))
    }

    /// Returns the number of a host: its position in the file, from 1. Zero for an unknown host.
    pub(crate) fn number(&self, host: &str) -> u32 {
        self.hosts.iter().position(|(name, _)| name == host).map_or(0, |at| at as u32 + 1)
    }

    /// Returns the first address of a host: `address` in its table, or else the first address of its interfaces.
    /// `None` if it has none.
    pub(crate) fn address(&self, host: &str) -> Option<Ipv4Addr> {
        let given = self.hosts.iter().find(|(name, _)| name == host).and_then(|(_, host)| host.address);
        given.or_else(|| self.networks.of(host).first().map(|attached| attached.address))
    }

    /// Returns the address of a host's first radio with the length of the prefix, for example `10.1.0.1/24`. `None`
    /// if the radio has no address.
    pub(crate) fn air_address(&self, host: &str) -> Option<String> {
        self.networks.address_of(host, AIR)
    }

    /// Returns the networks of all cells that have a `net`, as text.
    pub(crate) fn cell_nets(&self) -> Vec<String> {
        let nets = self.cells.keys().filter_map(|station| self.networks.net_of(station, AIR));
        nets.map(|net| net.to_string()).collect()
    }

    /// Returns whether the first radios of two hosts have addresses in the same network.
    pub(crate) fn same_network(&self, a: &str, b: &str) -> bool {
        self.networks.net_of(a, AIR).is_some_and(|net| Some(net) == self.networks.net_of(b, AIR))
    }

    /// Returns the cell whose network contains an address: its number, its station, and the station's address with
    /// the length of the prefix.
    pub(crate) fn access(&self, address: Ipv4Addr) -> Option<(u16, &str, String)> {
        self.cells.iter().find_map(|(station, cell)| {
            let net = self.networks.net_of(station, AIR).filter(|net| net.contains(address))?;
            Some((
                *cell,
                station.as_str(),
                format!("{}/{}", self.air_address(station)?.split('/').next()?, net.len()),
            ))
        })
    }

    pub(crate) fn interfaces(&self, host: &str) -> impl Iterator<Item = &str> {
        self.interfaces.get(host).into_iter().flatten().map(|(name, _)| name.as_str())
    }

    /// Returns the host that is the base station of a cell, or `None` if there is no such cell.
    pub(super) fn station_of(&self, cell: u16) -> Option<&str> {
        self.cells.iter().find(|(_, own)| **own == cell).map(|(station, _)| station.as_str())
    }

    pub(crate) fn cell_of(&self, host: &str) -> Option<u16> {
        self.cells.get(host).copied()
    }

    /// Returns the interface of `host` towards a neighbor, and the neighbor's link address on their wire or segment.
    /// Fails if none joins them.
    pub(crate) fn towards(&self, host: &str, neighbor: &str) -> Result<(String, Mac), String> {
        self.known(neighbor)?;
        let wired = self.interfaces(host).any(|name| name == neighbor);
        let theirs = self.interfaces(neighbor).position(|name| name == host);
        if let Some(index) = theirs.filter(|_| wired) {
            return Ok((neighbor.to_owned(), self.mac(neighbor, index)));
        }
        let has = |hosts: &[String], name: &str| hosts.iter().any(|host| host == name);
        let shared = self.segments.iter().find(|(_, hosts)| has(hosts, host) && has(hosts, neighbor));
        let place = shared.filter(|_| host != neighbor).and_then(|(segment, _)| {
            let index = self.interfaces(neighbor).position(|name| name == segment)?;
            Some((segment.clone(), self.mac(neighbor, index)))
        });
        place.ok_or_else(|| {
            format!("there is no wire between `{host}` and `{neighbor}`; name the host at the other end of a wire, or on a segment")
        })
    }

    /// Returns the link address of an interface: locally administered, with the numbers of the host and the
    /// interface.
    pub(super) fn mac(&self, host: &str, index: usize) -> Mac {
        let [_, _, high, low] = self.number(host).to_be_bytes();
        Mac([0x02, 0x57, 0x46, high, low, index as u8 + 1])
    }

    /// Returns the tables of all base stations, as in a mobile host's configuration.
    pub(crate) fn stations(&self) -> impl Iterator<Item = Table> {
        self.hosts.iter().filter_map(|(name, _)| {
            let cell = self.cell_of(name)?;
            let air = self.interfaces(name).position(|interface| interface == AIR)?;
            Some(Table::from_iter([
                ("name".to_owned(), Value::from(name.clone())),
                ("id".to_owned(), Value::from(i64::from(self.number(name)))),
                ("cell".to_owned(), Value::from(i64::from(cell))),
                ("mac".to_owned(), Value::from(self.mac(name, air).to_string())),
            ]))
        })
    }
}

/// Returns the name of radio `number` of a host, counted from 1: `air`, `air2` and so on.
pub(crate) fn radio_name(number: usize) -> String {
    if number == 1 { AIR.to_owned() } else { format!("{AIR}{number}") }
}
