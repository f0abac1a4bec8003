//! A plan: a scenario with every name resolved, ready for either world.

use crate::event::Event;
use crate::program::Program;
use crate::scenario::{Repetition, ScenarioError, Setting};
use crate::tree::Tree;
use link::{CellSpec, Course, Fabric, PortId, RadioSpec, WireSpec};
use node::Node;
use node::config::ConfigError;
use roles::HostConfig;
use sim::{HostEvent, HostSpec, InterfaceSpec, Order, World};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use trace::{HostId, Witness};
use wire::{Duration, Iface, Instant, Ipv4Addr, Mac, Seed, WallTime};

/// What a run is made of.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The scenario's name.
    pub name: String,
    /// What it is about.
    pub about: String,
    /// The scenario file as it was read, or the scenario with the contents of the files that it names.
    pub text: String,
    /// Which of several runs it is.
    pub repetition: Repetition,
    /// What was changed in it from outside.
    pub settings: Vec<Setting>,
    /// The scenario with its settings applied: it makes this same plan again.
    pub document: String,
    /// How long it runs.
    pub duration: Duration,
    /// The seed of all its chance.
    pub seed: u64,
    /// Its hosts.
    pub hosts: Vec<HostPlan>,
    /// Its wires.
    pub wires: Vec<([PortId; 2], WireSpec)>,
    /// Its cells.
    pub cells: Vec<CellSpec>,
    /// What goes wrong, in the order of time.
    pub events: Vec<Event>,
    /// All hosts and wires, if it is a tree: then there are none above.
    pub tree: Option<Arc<Tree>>,
}

/// One host of a plan.
#[derive(Clone, Debug)]
pub struct HostPlan {
    /// Its configuration.
    pub config: HostConfig,
    /// The same, as `wayfare node` reads it.
    pub text: String,
    /// Where its interfaces are plugged in; number 1 is the first.
    pub ports: Vec<PortPlan>,
    /// What runs on it beside its roles, on Linux.
    pub programs: Vec<Program>,
}

/// One interface of a plan.
#[derive(Clone, Debug)]
pub struct PortPlan {
    /// Its place in the fabric.
    pub port: PortId,
    /// Its name.
    pub name: String,
    /// Its link address.
    pub mac: Mac,
    /// Its radio, if it is one.
    pub radio: Option<RadioSpec>,
    /// How strongly that one hears cells, if its host goes anywhere.
    pub course: Option<Course>,
}

/// What simulated clocks say when a run begins: 2000-01-01 00:00 UTC, the year of the paper.
pub const EPOCH: WallTime = WallTime(946_684_800_000_000_000);

impl Plan {
    /// The links and cells.
    pub fn fabric(&self) -> Fabric {
        let chance = self.chance().fork("fabric");
        let mut fabric = Fabric::default();
        for (ends, spec) in &self.wires {
            fabric.add_wire(*ends, spec, &chance);
        }
        if let Some(tree) = &self.tree {
            tree.lay(&mut fabric, &chance);
        }
        for cell in &self.cells {
            fabric.add_cell(cell, &chance);
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

    /// The world in which nothing has happened yet. Refused if a host has programs: they need a kernel.
    pub fn world(&self) -> Result<World, roles::NodeError> {
        self.watched(Vec::new())
    }

    /// The same, in which hosts mark what changes inside their TCP connections, for graphs over time. Marks are given to
    /// no role and are not part of the fingerprint: the run is the same.
    pub(crate) fn recorded<W: Witness>(&self, witness: W) -> Result<World<W>, roles::NodeError> {
        let mut plan = self.clone();
        plan.hosts.iter_mut().for_each(|host| host.config.tcp.traced = true);
        plan.watched(witness)
    }

    /// The same, of which a witness is told.
    pub fn watched<W: Witness>(&self, witness: W) -> Result<World<W>, roles::NodeError> {
        if let Some(host) = self.hosts.iter().find(|host| !host.programs.is_empty()) {
            let name = &host.config.name;
            let problem = format!("`{name}` runs programs, and those need a kernel: use --on linux");
            return Err(ConfigError::new("program", problem).into());
        }
        let chance = self.chance();
        let named = |host: &HostPlan, life: u32| {
            let chance = Seed::new(self.seed_of_life(life)).fork(&host.config.name);
            let node = host.config.node(&chance)?;
            host_spec(host, node, &chance)
        };
        let tree = self.tree.iter().flat_map(|tree| tree.hosts(&chance));
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

    /// The same with these nodes, one for each host: for roles that no scenario can name.
    pub fn world_of(&self, nodes: Vec<Node>) -> Result<World, roles::NodeError> {
        let hosts = self.hosts.iter().zip(nodes).map(|(host, node)| {
            let chance = self.chance().fork(&host.config.name);
            host_spec(host, node, &chance)
        });
        Ok(World::new(self.fabric(), hosts.collect::<Result<Vec<_>, _>>()?))
    }

    /// Says that its records filled `bytes` at this time of the run, at the key that says how long it is.
    pub(crate) fn too_large(&self, at: Duration, bytes: usize) -> ScenarioError {
        let gib = bytes as f64 / (1u64 << 30) as f64;
        let problem = format!(
            "the records of {at:?} of {:?} take {gib:.0} GiB, the most that a run keeps; shorten the run, send less, or run it \
             with --no-records",
            self.duration
        );
        crate::scenario::at_path(&self.name, &self.text, &self.settings, "duration", &problem)
    }

    /// The seed of a host that has restarted so often; of its first life the run's. What it draws must be new to those that it spoke
    /// to before, as initial sequence numbers and tags (RFC 9293, section 3.4.1; RFC 9260, section 5.3.1).
    pub fn seed_of_life(&self, life: u32) -> u64 {
        if life == 0 {
            return self.seed;
        }
        // A number of TOML has a sign.
        self.chance().fork("life").fork(&life.to_string()).draw() >> 1
    }

    /// When it ends.
    pub fn end(&self) -> Instant {
        Instant::ZERO + self.duration
    }

    /// Since when a host does nothing until the run ends: it crashed and does not restart, or was stopped and does not go on.
    pub(crate) fn down_for_good(&self, host: HostId) -> Option<Instant> {
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

    /// Whose each address is.
    pub fn owners(&self) -> BTreeMap<Ipv4Addr, HostId> {
        let hosts = (0..).map(HostId).zip(&self.hosts);
        let own = hosts.map(|(id, host)| (id, host.config.all_addresses()));
        let tree = self
            .tree
            .iter()
            .flat_map(|tree| (0..tree.shape.len()).map(HostId).map(|id| (tree.address(id), id)));
        own.flat_map(|(id, own)| own.into_iter().map(move |address| (address, id))).chain(tree).collect()
    }

    /// How many hosts it has.
    pub fn len(&self) -> usize {
        self.hosts.len() + self.tree.as_ref().map_or(0, |tree| tree.shape.len() as usize)
    }

    /// Whether it has no host.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether there is such a host: the far end of a flow may belong to none.
    pub fn has_host(&self, host: HostId) -> bool {
        host.index() < self.len()
    }

    /// A host's name; a question mark for one that there is not.
    pub fn host_name(&self, host: HostId) -> Cow<'_, str> {
        match &self.tree {
            Some(tree) => tree.shape.name(host).into(),
            None => self.hosts.get(host.index()).map_or("?", |host| host.config.name.as_str()).into(),
        }
    }

    /// The names of a host's interfaces, in the order of their numbers from 1.
    pub fn interface_names(&self, host: HostId) -> Vec<String> {
        match &self.tree {
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

    /// The names of its hosts, in their order.
    pub fn host_names(&self) -> Vec<String> {
        (0..self.len() as u32).map(|host| self.host_name(HostId(host)).into_owned()).collect()
    }

    fn chance(&self) -> Seed {
        Seed::new(self.seed)
    }
}

fn host_spec(plan: &HostPlan, node: Node, chance: &Seed) -> Result<HostSpec, roles::NodeError> {
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
        tcp: Arc::new(config.tcp.profile()?),
        chance: chance.fork("stack"),
    })
}
