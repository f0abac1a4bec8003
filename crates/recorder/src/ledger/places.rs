//! Names of hosts and interfaces, and the links between them.

use super::step::End;
use link::PortId;
use scenario::Plan;
use scenario::tree::Shape;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use trace::HostId;
use wire::{Cell, Iface, Mac};

/// A link direction: one direction of a wire, a segment, or the air. All radio cells are one `Air`, because a host may
/// send in one cell and be received in another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LinkDirection {
    Wire { from: PortId, to: PortId },
    Segment(Cell),
    Air,
}

/// Returns the host and the interface at each port. The first interface of a host has number 1.
pub(crate) fn ends(plan: &Plan) -> BTreeMap<PortId, End> {
    let hosts = (0..).map(HostId).zip(&plan.hosts);
    let of_host = |(id, host): (HostId, &'_ scenario::HostPlan)| -> Vec<_> {
        (1..).map(Iface).zip(&host.ports).map(|(iface, port)| (port.port, (id, iface))).collect()
    };
    hosts.flat_map(of_host).collect()
}

/// Returns the host of each link address.
pub(crate) fn owners(plan: &Plan) -> BTreeMap<Mac, HostId> {
    let hosts = (0..).map(HostId).zip(&plan.hosts);
    hosts.flat_map(|(id, host)| host.ports.iter().map(move |port| (port.mac, id))).collect()
}

/// The names of a plan's hosts and interfaces, and the wires between the interfaces.
pub(crate) struct Places {
    names: Vec<String>,
    /// For each host, the port and the name of each interface.
    interfaces: Vec<Vec<(PortId, String)>>,
    peers: BTreeMap<PortId, PortId>,
    /// The segment of each interface at a segment, and the name of each segment.
    segments: BTreeMap<PortId, Cell>,
    segment_names: BTreeMap<Cell, String>,
    ends: BTreeMap<PortId, End>,
    /// For each host, the far end of each interface. The far ends are cached because each step of each packet needs
    /// one.
    far_ends: Vec<Vec<Option<End>>>,
    by_mac: BTreeMap<Mac, PortId>,
    /// Hosts with programs. No record contains which datagrams a program read.
    silent: BTreeSet<HostId>,
    /// The shape of a tree scenario. Names and links of a tree are computed from it, not stored.
    tree: Option<Shape>,
}

impl Places {
    pub(crate) fn new(plan: &Plan) -> Self {
        let mut places = Self {
            names: plan.hosts.iter().map(|host| host.config.name.clone()).collect(),
            interfaces: Vec::new(),
            peers: BTreeMap::new(),
            segments: BTreeMap::new(),
            segment_names: BTreeMap::new(),
            ends: ends(plan),
            far_ends: Vec::new(),
            by_mac: BTreeMap::new(),
            silent: BTreeSet::new(),
            tree: plan.tree.as_ref().map(|tree| tree.shape.clone()),
        };
        for (host, plan) in (0..).map(HostId).zip(&plan.hosts) {
            if !plan.programs.is_empty() {
                places.silent.insert(host);
            }
            let name = |port: &scenario::PortPlan| format!("{}:{}", plan.config.name, port.name);
            places.interfaces.push(plan.ports.iter().map(|port| (port.port, name(port))).collect());
            for port in &plan.ports {
                places.by_mac.insert(port.mac, port.port);
            }
        }
        for ([a, b], _) in &plan.wires {
            places.peers.insert(*a, *b);
            places.peers.insert(*b, *a);
        }
        let is_segment = |cell: &Cell| plan.cells.iter().any(|spec| spec.cell == *cell && spec.is_segment);
        for port in plan.hosts.iter().flat_map(|host| &host.ports) {
            if let Some(cell) = port.radio.and_then(|radio| radio.cell).filter(is_segment) {
                places.segments.insert(port.port, cell);
                places.segment_names.insert(cell, port.name.clone());
            }
        }
        let far_end = |(port, _): &(PortId, String)| places.ends.get(places.peers.get(port)?).copied();
        let far_ends = places.interfaces.iter().map(|ports| ports.iter().map(far_end).collect()).collect();
        places.far_ends = far_ends;
        places
    }

    pub(crate) fn host(&self, host: HostId) -> Cow<'_, str> {
        match &self.tree {
            Some(tree) => tree.name(host).into(),
            None => self.names.get(host.index()).map_or("?", String::as_str).into(),
        }
    }

    /// Returns `host:interface`. The interface of the host's stack is named `host`.
    pub(crate) fn interface(&self, host: HostId, iface: Iface) -> String {
        let known = self.interfaces.get(host.index()).and_then(|all| all.get(index(iface)?));
        match (known, &self.tree) {
            (Some((_, name)), _) => name.clone(),
            (None, Some(tree)) if iface != Iface::HOST => {
                format!("{}:{}", tree.name(host), tree.interface_name(host, iface))
            }
            _ => format!("{}:host", self.host(host)),
        }
    }

    pub(crate) fn by_mac(&self, mac: Mac) -> Option<String> {
        let port = match &self.tree {
            Some(tree) => tree.port_of_mac(mac)?,
            None => *self.by_mac.get(&mac)?,
        };
        self.by_port(port)
    }

    pub(super) fn by_port(&self, port: PortId) -> Option<String> {
        let (host, iface) = match &self.tree {
            Some(tree) => tree.end(port)?,
            None => *self.ends.get(&port)?,
        };
        Some(self.interface(host, iface))
    }

    pub(crate) fn port(&self, host: HostId, iface: Iface) -> Option<PortId> {
        match &self.tree {
            Some(tree) => tree.port(host, iface),
            None => self.interfaces.get(host.index())?.get(index(iface)?).map(|(port, _)| *port),
        }
    }

    /// Returns the other end of a wire, or `None` for a radio interface.
    pub(super) fn far_end(&self, (host, iface): End) -> Option<End> {
        match &self.tree {
            Some(tree) => tree.far_end(host, iface),
            None => *self.far_ends.get(host.index())?.get(index(iface)?)?,
        }
    }

    /// Returns whether a link can take a packet from one end to the other: they are the ends of one wire, both are at
    /// one segment, or both are radios.
    pub(super) fn are_joined(&self, from: End, to: End) -> bool {
        let shared = || self.is_air(from) && self.is_air(to) && self.segment(from) == self.segment(to);
        self.far_end(from).map_or_else(shared, |far| far == to)
    }

    /// Returns the segment of an interface, or `None` if the interface is not at a segment.
    fn segment(&self, (host, iface): End) -> Option<Cell> {
        self.segments.get(&self.port(host, iface)?).copied()
    }

    fn is_air(&self, (host, iface): End) -> bool {
        self.port(host, iface).is_some_and(|port| self.peer(port).is_none())
    }

    pub(super) fn is_silent(&self, host: HostId) -> bool {
        self.silent.contains(&host)
    }

    fn peer(&self, port: PortId) -> Option<PortId> {
        match &self.tree {
            Some(tree) => tree.wired_peer(port),
            None => self.peers.get(&port).copied(),
        }
    }

    pub(crate) fn way_out(&self, port: PortId) -> LinkDirection {
        self.peer(port).map_or_else(|| self.shared(port), |peer| LinkDirection::Wire { from: port, to: peer })
    }

    pub(crate) fn way_in(&self, port: PortId) -> LinkDirection {
        self.peer(port).map_or_else(|| self.shared(port), |peer| LinkDirection::Wire { from: peer, to: port })
    }

    /// Returns the medium of an interface that is no end of a wire.
    fn shared(&self, port: PortId) -> LinkDirection {
        self.segments.get(&port).map_or(LinkDirection::Air, |segment| LinkDirection::Segment(*segment))
    }

    pub(super) fn way_name(&self, way: LinkDirection) -> String {
        match way {
            LinkDirection::Wire { from, to } => {
                let name = |port| self.by_port(port).unwrap_or_default();
                format!("the wire from {} to {}", name(from), name(to))
            }
            LinkDirection::Segment(cell) => {
                format!("the segment {}", self.segment_names.get(&cell).map_or("?", String::as_str))
            }
            LinkDirection::Air => "the air".to_owned(),
        }
    }
}

fn index(iface: Iface) -> Option<usize> {
    usize::from(iface.0).checked_sub(1)
}
