//! A plan: a scenario with every name resolved, ready for either world.

use crate::program::Program;
use crate::scenario::Setting;
use link::{CellSpec, Course, Fabric, PortId, RadioSpec, WireSpec};
use node::Node;
use node::config::ConfigError;
use roles::HostConfig;
use sim::{HostSpec, InterfaceSpec, World};
use std::collections::BTreeMap;
use std::sync::Arc;
use trace::HostId;
use wire::{Duration, Instant, Ipv4Addr, Mac, Seed, WallTime};

/// What a run is made of.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The scenario's name.
    pub name: String,
    /// What it is about.
    pub about: String,
    /// The scenario file, as it was read.
    pub text: String,
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
        for cell in &self.cells {
            fabric.add_cell(cell, &chance);
        }
        for port in self.hosts.iter().flat_map(|host| &host.ports) {
            if let Some(radio) = &port.radio {
                fabric.add_radio(port.port, radio.clone());
            }
            if let Some(course) = &port.course {
                fabric.add_course(port.port, course.clone());
            }
        }
        fabric
    }

    /// The world in which nothing has happened yet. Refused if a host has programs: they need a kernel.
    pub fn world(&self) -> Result<World, roles::NodeError> {
        if let Some(host) = self.hosts.iter().find(|host| !host.programs.is_empty()) {
            let name = &host.config.name;
            let problem = format!("`{name}` runs programs, and those need a kernel: use --on linux");
            return Err(ConfigError::new("program", problem).into());
        }
        let node = |host: &HostPlan| host.config.node(&self.chance().fork(&host.config.name));
        self.world_of(self.hosts.iter().map(node).collect::<Result<Vec<_>, _>>()?)
    }

    /// The same with these nodes, one for each host: for roles that no scenario can name.
    pub fn world_of(&self, nodes: Vec<Node>) -> Result<World, roles::NodeError> {
        let hosts = self.hosts.iter().zip(nodes).map(|(host, node)| self.host(host, node));
        Ok(World::new(self.fabric(), hosts.collect::<Result<Vec<_>, _>>()?))
    }

    /// When it ends.
    pub fn end(&self) -> Instant {
        Instant::ZERO + self.duration
    }

    /// Whose each address is.
    pub fn owners(&self) -> BTreeMap<Ipv4Addr, HostId> {
        let hosts = (0..).map(HostId).zip(&self.hosts);
        let own = hosts.map(|(id, host)| (id, host.config.all_addresses()));
        own.flat_map(|(id, own)| own.into_iter().map(move |address| (address, id))).collect()
    }

    /// The names of its hosts, in their order.
    pub fn host_names(&self) -> Vec<String> {
        self.hosts.iter().map(|host| host.config.name.clone()).collect()
    }

    fn chance(&self) -> Seed {
        Seed::new(self.seed)
    }

    fn host(&self, plan: &HostPlan, node: Node) -> Result<HostSpec, roles::NodeError> {
        let config = &plan.config;
        let interfaces = plan.ports.iter().zip(&config.interfaces).map(|(port, interface)| InterfaceSpec {
            name: port.name.clone(),
            mac: port.mac,
            mtu: interface.mtu,
            port: port.port,
            tunes: interface.tunes,
        });
        let chance = self.chance().fork(&config.name);
        Ok(HostSpec {
            name: config.name.clone(),
            node,
            addresses: config.own_addresses()?,
            interfaces: interfaces.collect(),
            wall: EPOCH,
            tcp: Arc::new(config.tcp.profile()),
            chance: chance.fork("stack"),
        })
    }
}
