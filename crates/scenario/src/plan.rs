//! A plan: a scenario in which every name is resolved. The simulator cannot run its programs, and Linux cannot run its
//! tree.

use crate::epoch::EPOCH;
use crate::event::PlannedEvent;
use crate::file::{Repetition, ScenarioError, Setting};
use crate::program::Program;
use crate::tree::Tree;
use link::{CellSpec, Fabric, PortId, RadioSpec, SignalCourse, WireSpec};
use mobile_ip::message::Numbers;
use node::Node;
use roles::{HostConfig, RoleConfig};
use sim::{HostEvent, HostSpec, InterfaceSpec, Order, World};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use trace::{HostId, Witness};
use wire::{Duration, Iface, Instant, Ipv4Addr, Mac, Rng};

/// The plan of one run: its hosts, links and events, with all names resolved.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The scenario's name: the file name without `.toml`, or the name of a built-in scenario with `-` for `/`.
    pub name: String,
    /// The scenario's description, one line.
    pub about: String,
    /// The text of the scenario file. If the file names other files, the text has their contents in place of the names,
    /// and settings are applied.
    pub text: String,
    /// The number of this run, and the number of all runs that are shifted against each other.
    pub repetition: Repetition,
    /// The settings (`--set`) that were applied to the scenario, in order.
    pub settings: Vec<Setting>,
    /// The scenario as TOML, with settings applied and instants shifted. Reading it as a single run with the same seed
    /// gives the same hosts, links and events.
    pub document: String,
    /// The duration of the run.
    pub duration: Duration,
    /// The random seed of the run.
    pub seed: u64,
    /// The hosts, ordered by `HostId`. Empty if `tree` is given.
    pub hosts: Vec<HostPlan>,
    /// The wires: the ports at the first and the second end, and the properties of the wire.
    pub wires: Vec<([PortId; 2], WireSpec)>,
    /// The radio cells, with their rates, delays and losses.
    pub cells: Vec<CellSpec>,
    /// The events of the scenario, given or drawn, ordered by time.
    pub events: Vec<PlannedEvent>,
    /// The tree of a scenario with `[tree]`; `hosts`, `wires` and `cells` are then empty. `None` for any other
    /// scenario.
    pub tree: Option<Arc<Tree>>,
    /// Why the simulator cannot run the plan, although Linux may be able to. `None` if it can.
    pub only_linux: Option<ScenarioError>,
}

/// One host of a plan: its configuration, its interfaces and its programs.
#[derive(Clone, Debug)]
pub struct HostPlan {
    /// The host's configuration, parsed.
    pub config: HostConfig,
    /// The host's configuration as text, as `wayfare node` reads it.
    pub text: String,
    /// The host's interfaces. The first interface has number 1.
    pub ports: Vec<PortPlan>,
    /// The programs that run on the host besides its roles, on Linux only.
    pub programs: Vec<Program>,
}

/// One interface of a host of a plan: the end of a wire, or a radio.
#[derive(Clone, Debug)]
pub struct PortPlan {
    /// The interface's port in the [`Fabric`] of wires and cells.
    pub port: PortId,
    /// The interface's name: the host at the other end of the wire, or `air`, `air2` and so on for a radio.
    pub name: String,
    /// The interface's link address (Ethernet address).
    pub mac: Mac,
    /// The interface's radio; `None` for a wire.
    pub radio: Option<RadioSpec>,
    /// The signal strengths that the radio hears over time. `None` for a wire or a base station, or if the host hears
    /// every cell all the time.
    pub course: Option<SignalCourse>,
}

impl Plan {
    /// Returns the numbers of the messages of Mobile IP. All roles of a scenario have the same. Returns the default
    /// numbers if there is no such role.
    pub fn numbers(&self) -> Numbers {
        let mut roles = self.hosts.iter().flat_map(|host| &host.config.roles);
        roles.find_map(RoleConfig::numbers).unwrap_or_default()
    }

    /// Builds the fabric: all wires, cells and radios of the plan. Its random numbers are drawn from the seed of the
    /// run.
    pub fn fabric(&self) -> Fabric {
        let rng = self.rng().fork("fabric");
        let mut fabric = Fabric::default();
        for (ends, spec) in &self.wires {
            fabric.add_wire(*ends, spec, &rng);
        }
        if let Some(tree) = &self.tree {
            tree.lay(&mut fabric, &rng);
        }
        for cell in &self.cells {
            fabric.add_cell(cell, &rng);
        }
        for port in self.hosts.iter().flat_map(|host| &host.ports) {
            if let Some(radio) = &port.radio {
                fabric.add_radio(port.port, *radio);
            }
            if let Some(course) = &port.course {
                fabric.add_course(port.port, course.clone());
            }
        }
        fabric
    }

    /// Builds the simulator before its first event. Fails if a host runs programs, which need a kernel, or has a congestion
    /// control that the simulator lacks. The error names the line and the key.
    pub fn world(&self) -> Result<World, ScenarioError> {
        self.watched(Vec::new())
    }

    /// Builds the simulator with `witness`, and with TCP marks of all hosts outside a tree, for graphs over time. Marks
    /// go to no role and are not part of the fingerprint, so the run is the same as without them. Fails as
    /// [`Self::world`] does.
    pub fn recorded<W: Witness>(&self, witness: W) -> Result<World<W>, ScenarioError> {
        let mut plan = self.clone();
        plan.hosts.iter_mut().for_each(|host| host.config.tcp.traced = true);
        plan.watched(witness)
    }

    /// Builds the simulator, which reports every event to `witness`. Fails as [`Self::world`] does.
    pub fn watched<W: Witness>(&self, witness: W) -> Result<World<W>, ScenarioError> {
        if let Some(error) = &self.only_linux {
            return Err(error.clone());
        }
        let built = self.built(witness);
        built.map_err(|error| ScenarioError::new(&self.name, error.to_string()))
    }

    fn built<W: Witness>(&self, witness: W) -> Result<World<W>, roles::NodeError> {
        let rng = self.rng();
        let named = |host: &HostPlan, life: u32| {
            let rng = Rng::new(self.seed_of_life(life)).fork(&host.config.name);
            let node = host.config.node(&rng)?;
            host_spec(host, node, &rng)
        };
        let tree = self.tree.iter().flat_map(|tree| tree.hosts(&rng));
        let mut refused = None;
        let hosts = self.hosts.iter().map(|host| named(host, 0)).chain(tree);
        let hosts = hosts.map_while(|host| host.map_err(|error| refused = Some(error)).ok());
        let mut world = World::watched(self.fabric(), hosts, witness);
        if let Some(refused) = refused {
            return Err(refused);
        }
        let mut lives: BTreeMap<HostId, u32> = BTreeMap::new();
        for event in &self.events {
            let again = event.restarts().and_then(|id| Some((id, self.hosts.get(id.index())?)));
            let again = again.map(|(id, host)| {
                let life = lives.entry(id).or_default();
                *life += 1;
                named(host, *life)
            });
            let spare = again.transpose()?;
            world.order(event.at, event.order.clone(), event.recorded.clone(), spare);
        }
        Ok(world)
    }

    /// Builds the simulator with the given nodes, one for each host in order, for roles that a scenario cannot name.
    /// The events and the tree's hosts are left out. Fails if an address or the TCP parameters of a host are invalid.
    pub fn world_of(&self, nodes: Vec<Node>) -> Result<World, roles::NodeError> {
        let hosts = self.hosts.iter().zip(nodes).map(|(host, node)| {
            let rng = self.rng().fork(&host.config.name);
            host_spec(host, node, &rng)
        });
        Ok(World::new(self.fabric(), hosts.collect::<Result<Vec<_>, _>>()?))
    }

    /// Returns the error of a run that ends because its records reached `bytes` bytes at the time `at`. The error
    /// points at the key `duration`.
    pub fn too_large(&self, at: Duration, bytes: usize) -> ScenarioError {
        let gib = bytes as f64 / (1u64 << 30) as f64;
        let problem = format!(
            "the records of the first {at:?} of {:?} take {gib:.0} GiB, the most that a run keeps; shorten the run, send less, or run it \
             with --no-records",
            self.duration
        );
        crate::file::at_path(&self.name, &self.text, &self.settings, "duration", &problem)
    }

    /// Returns the seed of a host that has restarted `life` times. Without a restart it is the seed of the run. A
    /// restarted host must draw new initial sequence numbers and tags (RFC 9293, section 3.4.1; RFC 9260, section
    /// 5.3.1).
    pub fn seed_of_life(&self, life: u32) -> u64 {
        if life == 0 {
            return self.seed;
        }
        // TOML integers are signed: the highest bit must be 0.
        self.rng().fork("life").fork(&life.to_string()).draw() >> 1
    }

    /// Returns the instant at which the run ends. A run begins at [`Instant::ZERO`].
    pub fn end(&self) -> Instant {
        Instant::ZERO + self.duration
    }

    /// Returns the instant since which a host is down until the end of the run: it crashed and does not restart, or
    /// was stopped and does not continue. `None` if the host is up at the end.
    pub fn down_for_good(&self, host: HostId) -> Option<Instant> {
        let mut since = None;
        for event in self.events.iter().filter(|event| event.at < self.end()) {
            match event.order {
                Order::Host(of, HostEvent::Crash | HostEvent::Stop) if of == host => {
                    since = since.or(Some(event.at));
                }
                Order::Host(of, HostEvent::Restart | HostEvent::Continue) if of == host => since = None,
                _ => {}
            }
        }
        since
    }

    /// Returns all addresses of the plan's hosts, including those of a tree, and the host of each.
    pub fn owners(&self) -> BTreeMap<Ipv4Addr, HostId> {
        let hosts = (0..).map(HostId).zip(&self.hosts);
        let own = hosts.map(|(id, host)| (id, host.config.all_addresses()));
        let tree = self
            .tree
            .iter()
            .flat_map(|tree| (0..tree.shape.len()).map(HostId).map(|id| (tree.address(id), id)));
        own.flat_map(|(id, own)| own.into_iter().map(move |address| (address, id))).chain(tree).collect()
    }

    /// Returns the number of hosts, including those of a tree.
    pub fn len(&self) -> usize {
        self.hosts.len() + self.tree.as_ref().map_or(0, |tree| tree.shape.len() as usize)
    }

    /// Returns whether the plan has no host.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether `host` is in the plan. The far end of a flow may be no host of the plan.
    pub fn has_host(&self, host: HostId) -> bool {
        host.index() < self.len()
    }

    /// Returns a host's name, or `?` for a host that is not in the plan.
    pub fn host_name(&self, host: HostId) -> Cow<'_, str> {
        match &self.tree {
            _ if !self.has_host(host) => "?".into(),
            Some(tree) => tree.shape.name(host).into(),
            None => self.hosts.get(host.index()).map_or("?", |host| host.config.name.as_str()).into(),
        }
    }

    /// Returns the names of a host's interfaces, ordered by number from 1. Empty if the host is not in the plan.
    pub fn interface_names(&self, host: HostId) -> Vec<String> {
        match &self.tree {
            Some(_) if !self.has_host(host) => Vec::new(),
            Some(tree) => {
                let ifaces = (1..=tree.shape.interfaces(host)).map(Iface);
                ifaces.map(|iface| tree.shape.interface_name(host, iface)).collect()
            }
            None => {
                let ports = self.hosts.get(host.index()).into_iter().flat_map(|host| &host.ports);
                ports.map(|port| port.name.clone()).collect()
            }
        }
    }

    /// Returns the names of all hosts, ordered by `HostId`.
    pub fn host_names(&self) -> Vec<String> {
        (0..self.len() as u32).map(|host| self.host_name(HostId(host)).into_owned()).collect()
    }

    fn rng(&self) -> Rng {
        Rng::new(self.seed)
    }
}

fn host_spec(plan: &HostPlan, node: Node, rng: &Rng) -> Result<HostSpec, roles::NodeError> {
    let config = &plan.config;
    let interfaces = plan.ports.iter().zip(&config.interfaces).map(|(port, interface)| InterfaceSpec {
        name: port.name.as_str().into(),
        mac: port.mac,
        mtu: interface.mtu,
        port: port.port,
        tunes: interface.tunes,
    });
    Ok(HostSpec {
        name: config.name.clone(),
        node,
        addresses: config.own_addresses()?,
        interfaces: interfaces.collect(),
        wall: EPOCH,
        clock_error: config.clock.error(),
        tcp: Arc::new(config.tcp.profile()?),
        rng: rng.fork("stack"),
    })
}

#[cfg(test)]
mod tests {
    use crate::Scenario;
    use trace::HostId;

    #[test]
    fn a_host_that_is_not_in_the_plan_has_no_name_and_no_interfaces() {
        for name in ["first", "scale/tree"] {
            let (file, text) = Scenario::find(name).unwrap();
            let plan = Scenario::plan(&file, &text, &[], 1).unwrap();
            let last = plan.len() as u32 - 1;
            assert!(
                plan.host_name(HostId(last)) != "?" && !plan.interface_names(HostId(last)).is_empty(),
                "{name}"
            );
            for beyond in [last + 1, u32::MAX] {
                assert_eq!(plan.host_name(HostId(beyond)), "?", "{name}");
                assert!(plan.interface_names(HostId(beyond)).is_empty(), "{name}");
            }
        }
    }
}
