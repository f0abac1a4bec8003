//! A tree of routers with many hosts below it, as `[tree]` of a scenario asks for: hosts are made when the world is, one by
//! one, from one description of all. Nothing is kept of each but what it is made of itself.
//!
//! ```text
//!                      root                    fan_out = [10, 10, 10]
//!           ┌───────────┴─────── ...
//!           r0                                 10
//!      ┌────┴─────── ...
//!     r0.0                                     100
//!   ┌──┴────── ...
//! r0.0.0                                       1000, the stations
//!   ├── h0     ├── h1000  ...                  hosts
//! ```
//!
//! Each has IP forwarding alone: a default route up, one route down for each child.

mod addresses;
mod read;
mod shape;

pub(crate) use read::TreeTable;
pub use shape::Shape;

use crate::plan::EPOCH;
use addresses::Addresses;
use link::{Fabric, PortId, WireSpec};
use node::config::Interfaces;
use node::{Action, Hop, Key, Life, Node, Route};
use roles::{NodeError, RoleConfig};
use sim::{HostSpec, InterfaceSpec};
use std::sync::Arc;
use trace::HostId;
use wire::{Duration, Iface, Instant, Ipv4Addr, Prefix, Seed};

/// What a tree is made of.
#[derive(Clone, Debug)]
pub struct Tree {
    /// Who is above whom.
    pub shape: Shape,
    addresses: Addresses,
    wire: WireSpec,
    /// What runs on the root, and on every mobile host.
    root: Vec<RoleConfig>,
    host: Vec<RoleConfig>,
    /// Mobile hosts begin spread over this.
    spread: Duration,
}

impl Tree {
    /// The address of a host.
    pub fn address(&self, host: HostId) -> Ipv4Addr {
        self.addresses.of(&self.shape, host)
    }

    /// All wires.
    pub(crate) fn lay(&self, fabric: &mut Fabric, chance: &Seed) {
        for below in 1..self.shape.len() {
            let port = PortId(2 * (below - 1));
            fabric.add_wire([port, Shape::peer(port)], &self.wire, chance);
        }
    }

    /// All hosts, made one by one as they are asked for. `chance` is the run's.
    pub(crate) fn hosts<'a>(
        &'a self,
        chance: &'a Seed,
    ) -> impl Iterator<Item = Result<HostSpec, NodeError>> + 'a {
        let names = Names::new(&self.shape);
        let tcp = Arc::new(roles::TcpConfig::default().profile());
        (0..self.shape.len()).map(move |host| {
            let host = HostId(host);
            let name = self.shape.name(host);
            let chance = chance.fork(&name);
            let address = self.address(host);
            Ok(HostSpec {
                node: self.node(host, address, &chance)?,
                addresses: vec![address],
                interfaces: self.interfaces(host, &names),
                wall: EPOCH,
                tcp: Arc::clone(&tcp),
                chance: chance.fork("stack"),
                name,
            })
        })
    }

    fn interfaces(&self, host: HostId, names: &Names) -> Vec<InterfaceSpec> {
        let ifaces = (1..=self.shape.interfaces(host)).map(Iface);
        let spec = |iface| {
            let port = self.shape.port(host, iface)?;
            let name = names.of(host, iface);
            Some(InterfaceSpec { name, mac: Shape::mac(port), mtu: self.wire.mtu, port, tunes: false })
        };
        ifaces.filter_map(spec).collect()
    }

    fn node(&self, host: HostId, address: Ipv4Addr, chance: &Seed) -> Result<Node, NodeError> {
        let interfaces = [self.shape.interface_name(host, Iface(1))];
        let build = |role: &RoleConfig| role.build(Interfaces(&interfaces), chance);
        let roles = match self.shape.level(host) {
            0 => self.root.iter().map(build).collect::<Result<Vec<_>, _>>()?,
            level if level > self.shape.depth() => {
                let shifted = self.host.iter().map(|role| self.shifted(host, role));
                shifted.map(|role| build(&role)).collect::<Result<Vec<_>, _>>()?
            }
            _ => Vec::new(),
        };
        let mut node = Node::new(roles, vec![address]);
        for child in 0..self.shape.children(host) {
            let to = self.addresses.below(&self.shape, self.shape.child(host, child));
            set_route(&mut node, to, self.hop(host, child + u32::from(host.0 > 0)));
        }
        if host.0 > 0 {
            set_route(&mut node, Prefix::ANY, self.hop(host, 0));
        }
        Ok(node)
    }

    /// The next hop out by the interface of this number, from 0.
    fn hop(&self, host: HostId, number: u32) -> Option<Hop> {
        let iface = Iface(number as u16 + 1);
        let port = self.shape.port(host, iface)?;
        Some(Hop::mac(iface, Shape::mac(Shape::peer(port))))
    }

    /// The same workload, begun at this host's own time.
    fn shifted(&self, host: HostId, role: &RoleConfig) -> RoleConfig {
        let mut role = role.clone();
        if let RoleConfig::ConstantRate(config) = &mut role {
            let places = self.shape.mobiles().next_multiple_of(self.shape.stations());
            let part = u128::from(self.shape.place(host)) * self.spread.as_nanos() / u128::from(places);
            config.start += Duration::from_nanos(part as u64);
        }
        role
    }
}

fn set_route(node: &mut Node, dst: Prefix, hop: Option<Hop>) {
    let Some(hop) = hop else { return };
    let route = Route { action: Action::Forward(hop), life: Life::Forever };
    node.set_route(Instant::ZERO, Key { class: None, src: Prefix::ANY, dst }, route);
}

/// The names of interfaces, each once for all hosts that have one of that name.
struct Names {
    up: Arc<str>,
    down: Vec<Arc<str>>,
}

impl Names {
    fn new(shape: &Shape) -> Self {
        // The first station has as many hosts as any.
        let widest = shape.fan_out().iter().copied().max().unwrap_or_default();
        let most = widest.max(shape.children(HostId(shape.start(shape.depth()))));
        Self { up: "up".into(), down: (0..most).map(|child| format!("down{child}").into()).collect() }
    }

    fn of(&self, host: HostId, iface: Iface) -> Arc<str> {
        let down = usize::from(iface.0).checked_sub(1 + usize::from(host.0 > 0));
        Arc::clone(down.and_then(|child| self.down.get(child)).unwrap_or(&self.up))
    }
}
