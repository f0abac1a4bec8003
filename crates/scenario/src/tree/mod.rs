//! A tree of routers with many hosts below it: `[tree]` of a scenario. All hosts share one description. Each host is
//! built from the description when the simulator is built, so the plan has no list of hosts.
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
//! Without a protocol, each router forwards IP: a default route up, and one route down for each child. With Cellular IP
//! the routers below the root are gateways and base stations, and the hosts are mobile hosts in cells
//! (`cellular_ip.rs`).

mod addresses;
mod cellular_ip;
mod shape;

pub(crate) use cellular_ip::{CellAir, CellularIp, Tuning};
pub use shape::Shape;

use crate::epoch::EPOCH;
use addresses::Addresses;
use link::{Fabric, PortId, WireSpec};
use node::config::Interfaces;
use node::{Action, Hop, Lifetime, Node, Route, RouteKey};
use roles::{NodeError, RoleConfig, Surroundings};
use sim::{HostSpec, InterfaceSpec};
use std::sync::Arc;
use tcp::Profile;
use trace::HostId;
use wire::{ClockError, Duration, Iface, Instant, InterfaceAddress, Ipv4Addr, Prefix, Rng};

/// The description of a tree: `[tree]` of a scenario.
#[derive(Clone, Debug)]
pub struct Tree {
    /// The numbers and names of the tree's hosts and links.
    pub shape: Shape,
    addresses: Addresses,
    wire: WireSpec,
    /// The roles of the root (`root`), and of each mobile host (`host`).
    root: Vec<RoleConfig>,
    host: Vec<RoleConfig>,
    /// The time over which the starts of mobile hosts are spread.
    spread: Duration,
    /// Cellular IP instead of IP forwarding, if given.
    cellular_ip: Option<CellularIp>,
}

impl Tree {
    /// Builds a tree whose hosts have no roles yet. An error has a key of `[tree]`, and the problem.
    pub(crate) fn new(
        (fan_out, hosts): (&[u32], u32),
        net: Prefix,
        wire: WireSpec,
        spread: Duration,
        cellular_ip: Option<CellularIp>,
    ) -> Result<Self, (String, String)> {
        let shape = Shape::new(fan_out, hosts)
            .and_then(|shape| if cellular_ip.is_some() { shape.with_cells() } else { Ok(shape) })
            .map_err(|problem| ("fan_out".to_owned(), problem))?;
        let addresses = Addresses::new(net, &shape).map_err(|problem| ("net".to_owned(), problem))?;
        let (root, host) = (Vec::new(), Vec::new());
        Ok(Self { shape, addresses, wire, root, host, spread, cellular_ip })
    }

    /// Sets the roles of the root, and those of every mobile host.
    pub(crate) fn set_roles(&mut self, root: Vec<RoleConfig>, host: Vec<RoleConfig>) {
        (self.root, self.host) = (root, host);
    }

    /// Returns the address of a host. Each host of a tree has one address.
    pub fn address(&self, host: HostId) -> Ipv4Addr {
        self.addresses.of(&self.shape, host)
    }

    /// Adds all wires, cells and radios to the fabric.
    pub(crate) fn lay(&self, fabric: &mut Fabric, rng: &Rng) {
        for below in 1..self.shape.wired() {
            let port = PortId(2 * (below - 1));
            fabric.add_wire([port, Shape::peer(port)], &self.wire, rng);
        }
        if let Some(access) = &self.cellular_ip {
            access.lay(self, fabric, rng);
        }
    }

    /// Returns an iterator that builds one host after the other. `rng` is the generator with the seed of the run.
    pub(crate) fn hosts<'a>(
        &'a self,
        rng: &'a Rng,
    ) -> impl Iterator<Item = Result<HostSpec, NodeError>> + 'a {
        let names = Names::new(&self.shape);
        let tcp = Arc::new(Profile::linux());
        (0..self.shape.len()).map(move |host| {
            let host = HostId(host);
            let name = self.shape.name(host);
            let rng = rng.fork(&name);
            let address = self.address(host);
            Ok(HostSpec {
                node: self.node(host, address, &rng)?,
                addresses: vec![address],
                interfaces: self.interfaces(host, &names),
                wall: EPOCH,
                clock_error: ClockError::NONE,
                tcp: Arc::clone(&tcp),
                rng: rng.fork("stack"),
                name,
            })
        })
    }

    fn interfaces(&self, host: HostId, names: &Names<'_>) -> Vec<InterfaceSpec> {
        let ifaces = (1..=self.shape.interfaces(host)).map(Iface);
        let spec = |iface| {
            let port = self.shape.port(host, iface)?;
            let name = names.of(host, iface);
            let tunes = self.shape.is_air(host, iface) && self.shape.children(host) == 0;
            Some(InterfaceSpec { name, mac: Shape::mac(port), mtu: self.wire.mtu, port, tunes })
        };
        ifaces.filter_map(spec).collect()
    }

    fn node(&self, host: HostId, address: Ipv4Addr, rng: &Rng) -> Result<Node, NodeError> {
        let access = self.cellular_ip.as_ref().and_then(|access| access.role(self, host));
        // A router that forwards IP has no role that uses names of interfaces.
        let named = if access.is_some() { self.shape.interfaces(host) } else { 1 };
        let interfaces: Vec<String> =
            (1..=named).map(|iface| self.shape.interface_name(host, Iface(iface))).collect();
        let own = match self.shape.level(host) {
            0 => self.root.clone(),
            level if level > self.shape.depth() => {
                self.host.iter().map(|role| self.shifted(host, role)).collect()
            }
            _ => Vec::new(),
        };
        let forwards = access.is_none();
        let around =
            Surroundings { own: vec![InterfaceAddress::new(address, 32)], ..Surroundings::default() };
        let roles = access
            .iter()
            .chain(&own)
            .map(|role| role.clone().on_host(&around).build(Interfaces(&interfaces), rng));
        let mut node = Node::new(roles.collect::<Result<Vec<_>, _>>()?, vec![address]);
        if forwards {
            self.set_routes(&mut node, host);
        }
        Ok(node)
    }

    /// Sets the routes of IP forwarding: one down for each child, and a default route up.
    fn set_routes(&self, node: &mut Node, host: HostId) {
        for child in 0..self.shape.children(host) {
            let to = self.addresses.below(&self.shape, self.shape.child(host, child));
            set_route(node, to, self.hop(host, child + u32::from(host.0 > 0)));
        }
        if host.0 > 0 {
            set_route(node, Prefix::ANY, self.hop(host, 0));
        }
    }

    /// Returns the next hop through interface `number` of `host`, counted from 0.
    fn hop(&self, host: HostId, number: u32) -> Option<Hop> {
        let iface = Iface(number as u16 + 1);
        let port = self.shape.port(host, iface)?;
        Some(Hop::mac(iface, Shape::mac(Shape::peer(port))))
    }

    /// Returns `role` with its start shifted by the offset of this host, if it is a source of datagrams. Other roles do
    /// not change.
    fn shifted(&self, host: HostId, role: &RoleConfig) -> RoleConfig {
        let mut role = role.clone();
        if let RoleConfig::ConstantRate(config) = &mut role {
            config.start += self.lateness(host);
        }
        role
    }

    /// Returns the time from the start of the first mobile host to the start of `host`. Zero for routers.
    fn lateness(&self, host: HostId) -> Duration {
        if self.shape.level(host) <= self.shape.depth() {
            return Duration::ZERO;
        }
        let places = self.shape.mobiles().next_multiple_of(self.shape.stations());
        let part = u128::from(self.shape.place(host)) * self.spread.as_nanos() / u128::from(places);
        Duration::from_nanos(part as u64)
    }
}

fn set_route(node: &mut Node, dst: Prefix, hop: Option<Hop>) {
    let Some(hop) = hop else { return };
    let route = Route::new(Action::Forward(hop), Lifetime::Permanent);
    node.set_route(Instant::ZERO, RouteKey { class: None, src: Prefix::ANY, dst }, route);
}

/// The names of interfaces. Hosts share the allocation of equal names.
struct Names<'a> {
    shape: &'a Shape,
    up: Arc<str>,
    air: Arc<str>,
    down: Vec<Arc<str>>,
}

impl<'a> Names<'a> {
    fn new(shape: &'a Shape) -> Self {
        // The first of the lowest routers has at least as many mobile hosts as any other.
        let widest = shape.fan_out().iter().copied().max().unwrap_or_default();
        let most = widest.max(shape.children(HostId(shape.start(shape.depth()))));
        let down = (0..most).map(|child| format!("down{child}").into()).collect();
        Self { shape, up: "up".into(), air: Shape::AIR.into(), down }
    }

    fn of(&self, host: HostId, iface: Iface) -> Arc<str> {
        if self.shape.is_air(host, iface) {
            return Arc::clone(&self.air);
        }
        let down = usize::from(iface.0).checked_sub(1 + usize::from(host.0 > 0));
        Arc::clone(down.and_then(|child| self.down.get(child)).unwrap_or(&self.up))
    }
}
