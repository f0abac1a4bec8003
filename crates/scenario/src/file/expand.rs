//! Builds the plan of a scenario: interfaces, link addresses, cells, and the complete configuration of each host.

use super::error::{ScenarioError, Source};
use super::layout::{Attachment, Layout};
use super::medium::shared_medium;
use super::protocol::{self, Around};
use super::resolve::{Places, resolve};
use super::{Host, Scenario, check, course, event, moves, segment};
use crate::plan::{HostPlan, Plan, PortPlan};
use crate::tree::Tree;
use link::{Air, Beacon, CellSpec, Duplex, Hears, Listening, PortId, RadioSpec, Scan, WireSpec};
use roles::HostConfig;
use std::collections::BTreeMap;
use std::sync::Arc;
use toml::{Table, Value};
use trace::HostId;
use wire::{Cell, Duration};

/// Checks the scenario, builds its tree if it has one, and lays out its hosts.
fn laid_out(source: &Source<'_>, scenario: &Scenario) -> Result<(Option<Arc<Tree>>, Layout), ScenarioError> {
    protocol::check(scenario).map_err(|(key, problem)| source.at_path(&key, &problem))?;
    let tree = tree(source, scenario)?;
    check::check(source, scenario)?;
    let layout = Layout::new(source, scenario, protocol::roams)?;
    check::check_hosts(source, scenario, &layout)?;
    Ok((tree, layout))
}

pub(crate) fn plan(source: &Source<'_>, scenario: &Scenario, seed: u64) -> Result<Plan, ScenarioError> {
    let (tree, layout) = laid_out(source, scenario)?;
    planned(source, scenario, &layout, tree, seed)
}

/// Builds the plan of a scenario whose hosts are laid out.
fn planned(
    source: &Source<'_>,
    scenario: &Scenario,
    layout: &Layout,
    tree: Option<Arc<Tree>>,
    seed: u64,
) -> Result<Plan, ScenarioError> {
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
        only_linux: None,
    };
    let events =
        event::events(scenario, layout, seed).map_err(|(key, problem)| source.at_path(&key, &problem))?;
    let mut wires: BTreeMap<String, [Option<PortId>; 2]> = BTreeMap::new();
    let segments = segment::cells(scenario);
    let mut next_port = 0;
    for (name, host) in &layout.hosts {
        let config = host_table(source, scenario, layout, name, host)?;
        let text = toml::to_string(&config).map_err(|error| source.whole(error.to_string()))?;
        let parsed = parse_host(source, name, host, config)?;
        check_programs(source, scenario.duration, name, host, &parsed)?;
        let course = course::course(source, scenario, name, host, seed)?;
        let mut ports = Vec::new();
        for (index, (interface, link)) in layout.interfaces.get(name).into_iter().flatten().enumerate() {
            let port = PortId(next_port);
            next_port += 1;
            let radio = match link {
                Attachment::Wire(wire, end) => {
                    if let Some(slot) = wires.entry(wire.clone()).or_default().get_mut(*end) {
                        *slot = Some(port);
                    }
                    None
                }
                Attachment::Segment(of) => {
                    segments.get(of).map(|cell| fixed_radio(layout, name, index, *cell))
                }
                Attachment::Air => Some(radio(scenario, layout, name, index)),
            };
            let course = course.clone().filter(|_| radio.as_ref().is_some_and(|radio| radio.cell.is_none()));
            let (name, mac) = (interface.clone(), layout.mac(name, index));
            ports.push(PortPlan { port, name, mac, radio, course });
        }
        let programs = host.program.clone();
        plan.hosts.push(HostPlan { config: parsed, text, ports, programs });
    }
    plan.only_linux = only_linux(source, &plan.hosts);
    let mut ends_of_wires = BTreeMap::new();
    for (name, ends) in wires {
        if let (Some(wire), [Some(a), Some(b)]) = (scenario.wire.get(&name), ends) {
            plan.wires.push(([a, b], wire_spec(wire)));
            ends_of_wires.insert(name, [a, b]);
        }
    }
    check_faults(source, scenario)?;
    protocol::check_together(scenario, layout, &plan.hosts)
        .map_err(|(key, problem)| source.at_path(&key, &problem))?;
    let placed = Placed { layout, plan: &plan, wires: &ends_of_wires, segments: &segments };
    plan.events = events.iter().filter_map(|event| resolve(event, &placed)).collect();
    Ok(plan)
}

/// Returns why the simulator cannot run these hosts: it has no kernel for programs, and only some congestion controls.
fn only_linux(source: &Source<'_>, hosts: &[HostPlan]) -> Option<ScenarioError> {
    hosts.iter().find_map(|HostPlan { config, programs, .. }| {
        let name = &config.name;
        if !programs.is_empty() {
            let problem = format!("`{name}` runs programs, which need a kernel; use --on linux");
            return Some(source.at_path(&format!("host.{name}.program[0]"), &problem));
        }
        let error = config.tcp.profile().err()?;
        Some(source.at_path(&format!("host.{name}.{}", error.key), &error.problem))
    })
}

/// A lookup of hosts and links in a plan whose events are not resolved yet.
struct Placed<'a> {
    layout: &'a Layout,
    plan: &'a Plan,
    wires: &'a BTreeMap<String, [PortId; 2]>,
    segments: &'a BTreeMap<String, Cell>,
}

impl Places for Placed<'_> {
    fn host(&self, name: &str) -> Option<HostId> {
        self.layout.number(name).checked_sub(1).map(HostId)
    }

    fn wire(&self, name: &str) -> Option<[PortId; 2]> {
        self.wires.get(name).copied()
    }

    fn segment(&self, name: &str) -> Option<Cell> {
        self.segments.get(name).copied()
    }

    fn first_end(&self, name: &str) -> Option<HostId> {
        let of_wire = self.layout.wires.get(name).map(|[first, _]| first);
        self.host(of_wire.or_else(|| self.layout.segments.get(name)?.first())?)
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

/// Returns warnings about parts of a valid scenario that are probably mistakes. Fails if `laid_out` refuses the
/// scenario.
pub(crate) fn warnings(
    source: &Source<'_>,
    scenario: &Scenario,
) -> Result<Vec<ScenarioError>, ScenarioError> {
    let (tree, layout) = laid_out(source, scenario)?;
    let mut found = moves::warnings(scenario, &layout);
    // A plan of a large scenario takes long. Only warnings about these roles need one.
    if layout.hosts.iter().any(|(_, host)| protocol::has_warnings(&host.role)) {
        // `plan` reports the errors of roles.
        let plan = planned(source, scenario, &layout, tree, 0);
        let hosts = plan.map_or_else(|_| Vec::new(), |plan| plan.hosts);
        found.extend(protocol::warnings(scenario, &layout, &hosts));
    }
    Ok(found.iter().map(|(path, problem)| source.at_path(path, problem)).collect())
}

/// Reads `[tree]`, which excludes other hosts, wires, cells and events. `None` if the scenario has no tree.
fn tree(source: &Source<'_>, scenario: &Scenario) -> Result<Option<Arc<Tree>>, ScenarioError> {
    let Some(table) = &scenario.tree else {
        if scenario.host.is_empty() {
            return Err(source.whole("there is no host; give hosts ([host.NAME]) or a [tree]"));
        }
        return Ok(None);
    };
    let links = [scenario.wire.is_empty(), scenario.cell.is_empty(), scenario.segment.is_empty()];
    if !(scenario.host.is_empty() && links.iter().all(|is_empty| *is_empty)) {
        let problem = "excludes other hosts, wires, segments and cells; remove their tables or the [tree]";
        return Err(source.at_path("tree", problem));
    }
    for (key, is_given) in
        [("event", !scenario.event.is_empty()), ("random_event", !scenario.random_event.is_empty())]
    {
        if is_given {
            return Err(source.at_path(key, "not allowed with a [tree]; remove the events or the [tree]"));
        }
    }
    let tree = table
        .tree(&scenario.radio, scenario.cellular_ip.as_ref())
        .map_err(|(key, problem)| source.at_path(&format!("tree.{key}"), &problem))?;
    Ok(Some(Arc::new(tree)))
}

fn check_faults(source: &Source<'_>, scenario: &Scenario) -> Result<(), ScenarioError> {
    let wires = scenario.wire.iter().map(|(name, wire)| (format!("wire.{name}"), wire.faults()));
    let cells = scenario.cell.iter().map(|(name, cell)| (format!("cell.{name}"), cell.faults()));
    let segments = scenario.segment.iter().map(|(name, of)| (format!("segment.{name}"), of.faults()));
    for (path, faults) in wires.chain(cells).chain(segments) {
        let burst = faults.burst.map(|burst| {
            [("burst.enter", burst.enter), ("burst.leave", burst.leave), ("burst.loss", burst.loss)]
        });
        let alone = [("loss", faults.loss), ("duplicate", faults.duplicate)];
        for (key, probability) in alone.into_iter().chain(burst.into_iter().flatten()) {
            if !(0.0..=1.0).contains(&probability) {
                return Err(source.at_path(&format!("{path}.{key}"), "must be a probability from 0 to 1"));
            }
        }
        if faults.duplicate_delay > Duration::ZERO && faults.duplicate <= 0.0 {
            let problem = "has no effect, because the link duplicates no frames; set `duplicate` too";
            return Err(source.at_path(&format!("{path}.duplicate_delay"), problem));
        }
    }
    Ok(())
}

fn cell_air(cell: &super::Cell) -> Air {
    let beacon = cell.beacon.map(|beacon| Beacon { every: beacon.every, bytes: beacon.bytes });
    Air { channel: cell.channel, beacon, ..shared_medium(cell.contention, cell.access) }
}

fn wire_spec(wire: &super::Wire) -> WireSpec {
    let faults = wire.faults();
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
            faults: cell.faults(),
            air: cell_air(cell),
            duplex: match cell.duplex {
                super::Duplex::Half => Duplex::Half,
                super::Duplex::Full => Duplex::Full { uplink: cell.uplink_rate.unwrap_or(cell.rate) },
            },
            is_segment: false,
        })
    };
    let numbers = segment::cells(scenario);
    let of_segment = |(name, of)| Some(segment::spec(of, *numbers.get(name)?));
    scenario.cell.iter().filter_map(spec).chain(scenario.segment.iter().filter_map(of_segment)).collect()
}

/// Returns the interface of a host at a segment. The fabric has it as a radio that stays in one cell.
fn fixed_radio(layout: &Layout, host: &str, index: usize, cell: Cell) -> RadioSpec {
    let [retune, attach, excursion] = [Duration::ZERO; 3];
    let (mac, listening) = (layout.mac(host, index), Listening::default());
    RadioSpec { mac, cell: Some(cell), retune, attach, excursion, listening, queue: None }
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
            hears: match (scenario.radio.hears, scenario.radio.data) {
                (super::Hears::Cell, _) => Hears::Cell,
                (super::Hears::Channel, Some(super::DataOf::One)) => Hears::ChannelDataOfOne,
                (super::Hears::Channel, _) => Hears::ChannelDataOfAll,
            },
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
            return Err(source.at_path(&path, "a program needs a host with an address; give the host an `address`, or one of its links a `net`"));
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
    for (index, (interface, link)) in layout.interfaces.get(name).into_iter().flatten().enumerate() {
        let mut table = Table::new();
        table.insert("name".to_owned(), interface.clone().into());
        table.insert("mac".to_owned(), layout.mac(name, index).to_string().into());
        table.insert("tunes".to_owned(), (*link == Attachment::Air && layout.cell_of(name).is_none()).into());
        table.insert("mtu".to_owned(), i64::from(mtu(scenario, layout, name, link)).into());
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
    // Sockets use the first address. The reader of the configuration adds the addresses of interfaces.
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
    if !host.clock.is_empty() {
        table.insert("clock".to_owned(), Value::Table(host.clock.clone()));
    }
    if host.record_state {
        table.insert("record_state".to_owned(), true.into());
    }
    table.insert("route".to_owned(), routes.into_iter().map(Value::Table).collect::<Vec<_>>().into());
    table.insert("role".to_owned(), roles.into());
    Ok(table)
}

/// Returns the MTU of an interface, in bytes: the MTU of its wire, segment or cell. For a mobile host's radio it is the least
/// MTU of all cells.
fn mtu(scenario: &Scenario, layout: &Layout, host: &str, link: &Attachment) -> u16 {
    let own = match link {
        Attachment::Wire(wire, _) => scenario.wire.get(wire).map(|wire| wire.mtu),
        Attachment::Segment(segment) => scenario.segment.get(segment).map(|segment| segment.mtu),
        Attachment::Air => {
            let cell = layout.cell_of(host).map(|cell| cell.to_string());
            let mine = |name: &String| cell.as_ref().is_none_or(|cell| cell == name);
            scenario.cell.iter().filter(|(name, _)| mine(name)).map(|(_, cell)| cell.mtu).min()
        }
    };
    own.unwrap_or_else(super::units::ethernet_mtu)
}

/// Reads the complete configuration of a host. Roles are read one by one, so that an error has the line of the role.
fn parse_host(
    source: &Source<'_>,
    name: &str,
    host: &Host,
    mut config: Table,
) -> Result<HostConfig, ScenarioError> {
    // The table `tcp` of the scenario replaces that of the configuration, so that errors name keys of the scenario.
    config.insert("tcp".to_owned(), Value::Table(host.tcp.clone()));
    read_host(source, &format!("host.{name}."), config)
}

/// Reads the configuration of a host, and builds a node from it as a check. `path`: the prefix of the keys in errors.
pub(crate) fn read_host(source: &Source<'_>, path: &str, config: Table) -> Result<HostConfig, ScenarioError> {
    let config = parse_config(source, path, config)?;
    build(source, path, &config)?;
    Ok(config)
}

/// Reads the configuration of a host without building a node. `path`: the prefix of the keys in errors.
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
        let problem = roles::by_schema::<HostConfig>(&key, error.inner().message());
        source.at_path(if full.is_empty() { "." } else { &full }, &problem)
    })
}

/// Checks that a node can be built from the configuration. `path`: the prefix of the keys in errors.
pub(crate) fn build(source: &Source<'_>, path: &str, config: &HostConfig) -> Result<(), ScenarioError> {
    let rng = wire::Rng::new(0);
    let built = config.node(&rng).map_err(|error| match error {
        roles::NodeError::Role { index, error, .. } => {
            source.at_path(&format!("{path}role[{index}].{}", error.key), &error.problem)
        }
        roles::NodeError::Host(error) => source.at_path(&format!("{path}{}", error.path), &error.problem),
    });
    built.map(|_| ())
}
