//! Builds a plan of a scenario: interfaces, link addresses, cells, and the complete configuration of each host.

use super::error::{ScenarioError, Source};
use super::nearest::did_you_mean;
use super::networks::{AIR, Networks};
use super::protocol::{self, Around};
use super::{Host, Scenario, check, course, event, moves};
use crate::event::Places;
use crate::plan::{HostPlan, Plan, PortPlan};
use crate::tree::Tree;
use link::{
    Access, Air, Beacon, Burst, CellSpec, Contention, Faults, Listening, PortId, RadioSpec, Scan, WireSpec,
};
use roles::HostConfig;
use std::collections::BTreeMap;
use std::sync::Arc;
use toml::{Table, Value};
use trace::HostId;
use wire::{Cell, Duration, Ipv4Addr, Mac};

/// An interface: its name, and for a wire the wire's name and which end of it this is.
type Plug = (String, Option<(String, usize)>);

/// The hosts of a scenario with their links and networks, by name.
pub(crate) struct Layout {
    /// Hosts in the order of the file.
    hosts: Vec<(String, Host)>,
    interfaces: BTreeMap<String, Vec<Plug>>,
    /// The cell of each base station.
    cells: BTreeMap<String, u16>,
    /// The hosts at the ends of each wire.
    wires: BTreeMap<String, [String; 2]>,
    networks: Networks,
}

impl Layout {
    /// Lays out the hosts of a scenario. Interfaces have the name of their neighbor: the host at the other end of a
    /// wire, or `air`; a second radio is `air2`.
    fn new(source: &Source<'_>, scenario: &Scenario) -> Result<Self, ScenarioError> {
        let mut hosts = Vec::new();
        for (name, value) in &scenario.host {
            let host = serde_path_to_error::deserialize(value.clone()).map_err(|error| {
                source.at_path(&format!("host.{name}.{}", error.path()), error.inner().message())
            })?;
            hosts.push((name.clone(), host));
        }
        let mut layout = Self {
            hosts,
            interfaces: BTreeMap::new(),
            cells: BTreeMap::new(),
            wires: BTreeMap::new(),
            networks: Networks::default(),
        };
        for (name, wire) in &scenario.wire {
            for (end, host) in wire.ends.iter().enumerate() {
                layout
                    .known(host)
                    .map_err(|problem| source.at_path(&format!("wire.{name}.ends"), &problem))?;
                let other = wire.ends.get(1 - end).cloned().unwrap_or_default();
                layout.interfaces.entry(host.clone()).or_default().push((other, Some((name.clone(), end))));
            }
            layout.wires.insert(name.clone(), wire.ends.clone());
        }
        for (name, cell) in &scenario.cell {
            let path = format!("cell.{name}");
            let Ok(number) = name.parse() else { continue };
            layout
                .known(&cell.station)
                .map_err(|problem| source.at_path(&format!("{path}.station"), &problem))?;
            layout.cells.insert(cell.station.clone(), number);
            layout.interfaces.entry(cell.station.clone()).or_default().push((AIR.to_owned(), None));
        }
        let mobiles: Vec<(String, Option<Ipv4Addr>, usize)> = layout
            .hosts
            .iter()
            .filter(|(_, host)| protocol::roams(&host.role))
            .map(|(name, host)| (name.clone(), host.address, host.radios))
            .collect();
        for (name, _, radios) in &mobiles {
            let own = layout.interfaces.entry(name.clone()).or_default();
            own.extend((1..=*radios).map(|number| (radio_name(number), None)));
        }
        let addressed = mobiles.into_iter().filter_map(|(name, address, _)| Some((name, address?)));
        layout.networks = Networks::new(scenario, &addressed.collect::<Vec<_>>())
            .map_err(|(key, problem)| source.at_path(&key, &problem))?;
        Ok(layout)
    }

    /// Returns all hosts, in the order of the file.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = (&str, &Host)> {
        self.hosts.iter().map(|(name, host)| (name.as_str(), host))
    }

    /// Returns the addresses that a host has from the networks of its links.
    pub(crate) fn link_addresses(&self, host: &str) -> impl Iterator<Item = Ipv4Addr> {
        self.networks.of(host).iter().map(|attached| attached.address)
    }

    /// Returns whether an address is the first or last of a network. No host may have it.
    pub(crate) fn is_end_of_net(&self, address: Ipv4Addr) -> bool {
        self.networks.has_end(address)
    }

    /// Returns whether a host has a radio that moves between cells.
    pub(crate) fn moves(&self, host: &str) -> bool {
        self.hosts.iter().any(|(name, of)| name == host && protocol::roams(&of.role))
    }

    pub(crate) fn known(&self, host: &str) -> Result<(), String> {
        if self.hosts.iter().any(|(name, _)| name == host) {
            return Ok(());
        }
        let names: Vec<&str> = self.hosts.iter().map(|(name, _)| name.as_str()).collect();
        let meant = did_you_mean(host, names.iter().copied());
        Err(format!("no host `{host}`{meant}; there are: {}", names.join(", ")))
    }

    /// Returns the number of a host: its place in the file, from 1; 0 if it is unknown.
    pub(crate) fn number(&self, host: &str) -> u32 {
        self.hosts.iter().position(|(name, _)| name == host).map_or(0, |at| at as u32 + 1)
    }

    /// Returns the host's first address: the one in its table, or that of its first interface.
    pub(crate) fn address(&self, host: &str) -> Option<Ipv4Addr> {
        let given = self.hosts.iter().find(|(name, _)| name == host).and_then(|(_, host)| host.address);
        given.or_else(|| self.networks.of(host).first().map(|attached| attached.address))
    }

    /// Returns the address of a host's radio with the length of its prefix, as `10.1.0.1/24`.
    pub(crate) fn air_address(&self, host: &str) -> Option<String> {
        self.networks.address_of(host, AIR)
    }

    /// Returns the networks of all cells, as text.
    pub(crate) fn cell_nets(&self) -> Vec<String> {
        let nets = self.cells.keys().filter_map(|station| self.networks.net_of(station, AIR));
        nets.map(|net| net.to_string()).collect()
    }

    /// Returns whether the radios of two hosts are in the same network.
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

    /// Returns the base station of a cell.
    fn station_of(&self, cell: u16) -> Option<&str> {
        self.cells.iter().find(|(_, own)| **own == cell).map(|(station, _)| station.as_str())
    }

    pub(crate) fn cell_of(&self, host: &str) -> Option<u16> {
        self.cells.get(host).copied()
    }

    /// Returns the interface of `host` towards a neighbor, and the neighbor's link address on that wire.
    pub(crate) fn towards(&self, host: &str, neighbor: &str) -> Result<(String, Mac), String> {
        self.known(neighbor)?;
        let wired = self.interfaces(host).any(|name| name == neighbor);
        let theirs = self.interfaces(neighbor).position(|name| name == host);
        match theirs.filter(|_| wired) {
            Some(index) => Ok((neighbor.to_owned(), self.mac(neighbor, index))),
            None => Err(format!("no wire between `{host}` and `{neighbor}`")),
        }
    }

    /// Returns the link address of an interface: locally administered, with the numbers of the host and the
    /// interface.
    fn mac(&self, host: &str, index: usize) -> Mac {
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

/// Returns the name of a radio: [`AIR`], and `air2` and so on for further radios.
pub(crate) fn radio_name(number: usize) -> String {
    if number == 1 { AIR.to_owned() } else { format!("{AIR}{number}") }
}

/// Checks the scenario, and lays out its tree and its hosts.
fn laid_out(source: &Source<'_>, scenario: &Scenario) -> Result<(Option<Arc<Tree>>, Layout), ScenarioError> {
    protocol::check(scenario).map_err(|(key, problem)| source.at_path(&key, &problem))?;
    let tree = tree(source, scenario)?;
    check::check(source, scenario)?;
    let layout = Layout::new(source, scenario)?;
    check::check_hosts(source, scenario, &layout)?;
    Ok((tree, layout))
}

pub(crate) fn plan(source: &Source<'_>, scenario: &Scenario, seed: u64) -> Result<Plan, ScenarioError> {
    let (tree, layout) = laid_out(source, scenario)?;
    let mut plan = Plan {
        name: super::stem(source.file()),
        about: scenario.about.clone(),
        text: source.text().to_owned(),
        settings: Vec::new(),
        repetition: super::Repetition::only(seed),
        document: String::new(),
        duration: scenario.duration,
        seed,
        hosts: Vec::new(),
        wires: Vec::new(),
        cells: cells(scenario),
        events: Vec::new(),
        tree,
    };
    let events =
        event::events(scenario, &layout, seed).map_err(|(key, problem)| source.at_path(&key, &problem))?;
    let mut wires: BTreeMap<String, [Option<PortId>; 2]> = BTreeMap::new();
    let mut next_port = 0;
    for (name, host) in &layout.hosts {
        let config = host_table(source, scenario, &layout, name, host)?;
        let text = toml::to_string(&config).map_err(|error| source.whole(error.to_string()))?;
        let parsed = parse_host(source, name, host, config)?;
        check_programs(source, scenario.duration, name, host, &parsed)?;
        let course = course::course(source, scenario, name, host, seed)?;
        let mut ports = Vec::new();
        for (index, (interface, wire)) in layout.interfaces.get(name).into_iter().flatten().enumerate() {
            let port = PortId(next_port);
            next_port += 1;
            let radio = wire.is_none().then(|| radio(scenario, &layout, name, index));
            if let Some(slot) =
                wire.as_ref().and_then(|(wire, end)| wires.entry(wire.clone()).or_default().get_mut(*end))
            {
                *slot = Some(port);
            }
            let course = course.clone().filter(|_| radio.as_ref().is_some_and(|radio| radio.cell.is_none()));
            let (name, mac) = (interface.clone(), layout.mac(name, index));
            ports.push(PortPlan { port, name, mac, radio, course });
        }
        let programs = host.program.clone();
        plan.hosts.push(HostPlan { config: parsed, text, ports, programs });
    }
    let mut ends_of_wires = BTreeMap::new();
    for (name, ends) in wires {
        if let (Some(wire), [Some(a), Some(b)]) = (scenario.wire.get(&name), ends) {
            plan.wires.push(([a, b], wire_spec(wire)));
            ends_of_wires.insert(name, [a, b]);
        }
    }
    check_faults(source, scenario)?;
    protocol::check_together(&layout, &plan.hosts)
        .map_err(|(key, problem)| source.at_path(&key, &problem))?;
    let placed = Placed { layout: &layout, plan: &plan, wires: &ends_of_wires };
    plan.events = events.iter().filter_map(|event| crate::event::resolve(event, &placed)).collect();
    Ok(plan)
}

/// A lookup of names in a plan that has no events yet.
struct Placed<'a> {
    layout: &'a Layout,
    plan: &'a Plan,
    wires: &'a BTreeMap<String, [PortId; 2]>,
}

impl Places for Placed<'_> {
    fn host(&self, name: &str) -> Option<HostId> {
        self.layout.number(name).checked_sub(1).map(HostId)
    }

    fn wire(&self, name: &str) -> Option<[PortId; 2]> {
        self.wires.get(name).copied()
    }

    fn first_end(&self, name: &str) -> Option<HostId> {
        let [first, _] = self.layout.wires.get(name)?;
        self.host(first)
    }

    fn station(&self, cell: u16) -> Option<HostId> {
        let station = self.layout.station_of(cell)?;
        self.host(station)
    }

    fn radios(&self, host: HostId) -> Vec<PortId> {
        let ports = self.plan.hosts.get(host.index()).into_iter().flat_map(|host| &host.ports);
        ports.filter(|port| port.radio.is_some()).map(|port| port.port).collect()
    }
}

/// Returns warnings about a scenario that makes a plan: what is probably a mistake.
pub(crate) fn warnings(
    source: &Source<'_>,
    scenario: &Scenario,
) -> Result<Vec<ScenarioError>, ScenarioError> {
    let (_, layout) = laid_out(source, scenario)?;
    let found = moves::warnings(scenario, &layout);
    Ok(found.iter().map(|(path, problem)| source.at_path(path, problem)).collect())
}

/// Reads `[tree]`, which allows no other hosts, wires or cells.
fn tree(source: &Source<'_>, scenario: &Scenario) -> Result<Option<Arc<Tree>>, ScenarioError> {
    let Some(table) = &scenario.tree else {
        if scenario.host.is_empty() {
            return Err(source.whole("a scenario has hosts ([host.NAME]) or a [tree] of them"));
        }
        return Ok(None);
    };
    if !(scenario.host.is_empty() && scenario.wire.is_empty() && scenario.cell.is_empty()) {
        return Err(source.at_path("tree", "excludes other hosts, wires and cells"));
    }
    for (key, is_given) in
        [("event", !scenario.event.is_empty()), ("random_event", !scenario.random_event.is_empty())]
    {
        if is_given {
            return Err(source.at_path(key, "a [tree] has no events; give hosts and wires by name"));
        }
    }
    let tree = table
        .tree(&scenario.radio, scenario.cellular_ip.as_ref())
        .map_err(|(key, problem)| source.at_path(&format!("tree.{key}"), &problem))?;
    Ok(Some(Arc::new(tree)))
}

fn check_faults(source: &Source<'_>, scenario: &Scenario) -> Result<(), ScenarioError> {
    let wires = scenario.wire.iter().map(|(name, wire)| (format!("wire.{name}"), wire_faults(wire)));
    let cells = scenario.cell.iter().map(|(name, cell)| (format!("cell.{name}"), cell_faults(cell)));
    for (path, faults) in wires.chain(cells) {
        let burst = faults.burst.map(|burst| {
            [("burst.enter", burst.enter), ("burst.leave", burst.leave), ("burst.loss", burst.loss)]
        });
        let alone = [("loss", faults.loss), ("duplicate", faults.duplicate)];
        for (key, chance) in alone.into_iter().chain(burst.into_iter().flatten()) {
            if !(0.0..=1.0).contains(&chance) {
                return Err(source.at_path(&format!("{path}.{key}"), "a probability is a number from 0 to 1"));
            }
        }
    }
    Ok(())
}

fn wire_faults(wire: &super::Wire) -> Faults {
    Faults { loss: wire.loss, duplicate: wire.duplicate, burst: wire.burst.map(burst) }
}

fn cell_faults(cell: &super::Cell) -> Faults {
    Faults { loss: cell.loss, duplicate: cell.duplicate, burst: cell.burst.map(burst) }
}

fn cell_air(cell: &super::Cell) -> Air {
    Air {
        channel: cell.channel,
        beacon: cell.beacon.map(|beacon| Beacon { every: beacon.every, bytes: beacon.bytes }),
        contention: cell.contention.map(|of| Contention { slot: of.slot, window: of.window, most: of.most }),
        access: match cell.access {
            super::Access::Fair => Access::Fair,
            super::Access::Fifo => Access::Fifo,
        },
    }
}

const fn burst(super::Burst { enter, leave, loss }: super::Burst) -> Burst {
    Burst { enter, leave, loss }
}

fn wire_spec(wire: &super::Wire) -> WireSpec {
    let faults = wire_faults(wire);
    WireSpec { rate: wire.rate, delay: wire.delay, queue: wire.queue, mtu: wire.mtu, faults }
}

fn cells(scenario: &Scenario) -> Vec<CellSpec> {
    let spec = |(name, cell): (&String, &super::Cell)| {
        Some(CellSpec {
            cell: Cell(name.parse().ok()?),
            rate: cell.rate,
            per_frame: cell.per_frame,
            delay: cell.delay,
            queue: cell.queue,
            mtu: cell.mtu,
            faults: cell_faults(cell),
            air: cell_air(cell),
        })
    };
    scenario.cell.iter().filter_map(spec).collect()
}

fn radio(scenario: &Scenario, layout: &Layout, host: &str, index: usize) -> RadioSpec {
    let fixed = layout.cell_of(host);
    let (retune, excursion) = match fixed {
        Some(_) => (Duration::ZERO, Duration::ZERO),
        None => (scenario.radio.retune, scenario.radio.excursion),
    };
    let attach = scenario.radio.attach.unwrap_or(retune);
    let listening = match fixed {
        Some(_) => Listening::default(),
        None => Listening {
            association: scenario.radio.association,
            drain: scenario.radio.drain,
            scan: scenario.radio.scan.map(|scan| Scan { every: scan.every, away: scan.away }),
        },
    };
    let own = fixed.and_then(|cell| scenario.cell.get(&cell.to_string()));
    let queue = own.map_or(scenario.radio.queue, |cell| cell.station_queue);
    let mac = layout.mac(host, index);
    RadioSpec { mac, cell: fixed.map(Cell), retune, attach, excursion, listening, queue }
}

fn check_programs(
    source: &Source<'_>,
    run: Duration,
    name: &str,
    host: &Host,
    config: &HostConfig,
) -> Result<(), ScenarioError> {
    let has_address = config.own_addresses().is_ok_and(|own| !own.is_empty());
    for (index, program) in host.program.iter().enumerate() {
        let path = format!("host.{name}.program[{index}]");
        if !has_address {
            return Err(source.at_path(&path, "a program needs a host with an address"));
        }
        program.check(run).map_err(|(key, problem)| source.at_path(&format!("{path}.{key}"), &problem))?;
    }
    Ok(())
}

/// Returns the complete configuration of a host, as `wayfare node` reads it from its file.
fn host_table(
    source: &Source<'_>,
    scenario: &Scenario,
    layout: &Layout,
    name: &str,
    host: &Host,
) -> Result<Table, ScenarioError> {
    let mut interfaces = Vec::new();
    for (index, (interface, wire)) in layout.interfaces.get(name).into_iter().flatten().enumerate() {
        let mut table = Table::new();
        table.insert("name".to_owned(), interface.clone().into());
        table.insert("mac".to_owned(), layout.mac(name, index).to_string().into());
        table.insert("tunes".to_owned(), (wire.is_none() && layout.cell_of(name).is_none()).into());
        table.insert("mtu".to_owned(), i64::from(mtu(scenario, layout, name, wire.as_ref())).into());
        if let Some(address) = layout.networks.address_of(name, interface) {
            table.insert("address".to_owned(), address.into());
        }
        interfaces.push(Value::Table(table));
    }
    let around = Around { scenario, layout, host: name };
    let mut roles = Vec::new();
    for (index, role) in host.role.iter().enumerate() {
        let mut role = role.clone();
        protocol::complete(&around, &mut role)
            .map_err(|problem| source.at_key(&format!("host.{name}.role[{index}]"), &problem))?;
        roles.push(Value::Table(role));
    }
    let mut table = Table::new();
    table.insert("name".to_owned(), name.into());
    // Sockets use the first address. The configuration adds the addresses of interfaces itself.
    let given: Vec<Value> = host.address.iter().map(|address| Value::from(address.to_string())).collect();
    table.insert("addresses".to_owned(), given.into());
    table.insert("interface".to_owned(), interfaces.into());
    let finds = protocol::finds_routers(&host.role);
    let mut routes = if finds { Vec::new() } else { layout.networks.routes(name) };
    if let Some(neighbor) = &host.default_route {
        let path = format!("host.{name}.default_route");
        let (interface, mac) =
            layout.towards(name, neighbor).map_err(|problem| source.at_path(&path, &problem))?;
        let route = Table::from_iter([
            ("to".to_owned(), Value::from("0.0.0.0/0")),
            ("interface".to_owned(), Value::from(interface)),
            ("via".to_owned(), Value::from(mac.to_string())),
        ]);
        routes.push(route);
    }
    table.insert("tcp".to_owned(), Value::Table(host.tcp.clone()));
    table.insert("route".to_owned(), routes.into_iter().map(Value::Table).collect::<Vec<_>>().into());
    table.insert("role".to_owned(), roles.into());
    Ok(table)
}

/// Returns the MTU of an interface: that of its wire or cell. For a mobile host's radio it is the least MTU of all
/// cells.
fn mtu(scenario: &Scenario, layout: &Layout, host: &str, wire: Option<&(String, usize)>) -> u16 {
    let own = match wire {
        Some((wire, _)) => scenario.wire.get(wire).map(|wire| wire.mtu),
        None => {
            let cell = layout.cell_of(host).map(|cell| cell.to_string());
            let mine = |name: &String| cell.as_ref().is_none_or(|cell| cell == name);
            scenario.cell.iter().filter(|(name, _)| mine(name)).map(|(_, cell)| cell.mtu).min()
        }
    };
    own.unwrap_or_else(super::units::ethernet_mtu)
}

/// Reads the complete configuration role by role, so that an error names the line of its role.
fn parse_host(
    source: &Source<'_>,
    name: &str,
    host: &Host,
    mut config: Table,
) -> Result<HostConfig, ScenarioError> {
    // Errors must name the keys of the scenario file.
    config.insert("tcp".to_owned(), Value::Table(host.tcp.clone()));
    read_host(source, &format!("host.{name}."), config)
}

/// Reads the configuration of a host. `path` is the prefix of its keys in errors.
pub(crate) fn read_host(source: &Source<'_>, path: &str, config: Table) -> Result<HostConfig, ScenarioError> {
    let config = parse_config(source, path, config)?;
    build(source, path, &config)?;
    Ok(config)
}

/// Reads the configuration without building a node.
pub(crate) fn parse_config(
    source: &Source<'_>,
    path: &str,
    config: Table,
) -> Result<HostConfig, ScenarioError> {
    let roles = config.get("role").and_then(Value::as_array).cloned().unwrap_or_default();
    for (index, role) in roles.into_iter().enumerate() {
        let Value::Table(role) = role else { continue };
        roles::RoleConfig::read(role).map_err(|error| {
            source.at_path(&format!("{path}role[{index}].{}", error.path), &error.problem)
        })?;
    }
    serde_path_to_error::deserialize(Value::Table(config)).map_err(|error| {
        let key = error.path().to_string();
        let full = if key == "." { path.trim_end_matches('.').to_owned() } else { format!("{path}{key}") };
        source.at_path(if full.is_empty() { "." } else { &full }, error.inner().message())
    })
}

/// Checks that a node can be built from the configuration.
pub(crate) fn build(source: &Source<'_>, path: &str, config: &HostConfig) -> Result<(), ScenarioError> {
    let chance = wire::Seed::new(0);
    let built = config.node(&chance).map_err(|error| match error {
        roles::NodeError::Role { index, error, .. } => {
            source.at_path(&format!("{path}role[{index}].{}", error.key), &error.problem)
        }
        roles::NodeError::Host(error) => source.at_path(&format!("{path}{}", error.path), &error.problem),
    });
    built.map(|_| ())
}
