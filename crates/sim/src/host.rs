//! A host of the simulator: its node and its IP stack.

use link::PortId;
use node::Node;
use stack::Stack;
use std::sync::Arc;
use wire::{Iface, Instant, Ipv4Addr, Mac, Rng, WallTime};

/// A host to be placed in a world.
#[derive(Debug)]
pub struct HostSpec {
    /// Its name in records and reports.
    pub name: String,
    /// Its roles and its routing table.
    pub node: Node,
    /// Its own addresses. Its sockets use the first.
    pub addresses: Vec<Ipv4Addr>,
    /// Its interfaces; the first has number 1.
    pub interfaces: Vec<InterfaceSpec>,
    /// The time of its wall clock when the run begins.
    pub wall: WallTime,
    /// The parameters of its TCP.
    pub tcp: Arc<tcp::Profile>,
    /// The random number generator of its stack.
    pub rng: Rng,
}

/// An interface of a host.
#[derive(Clone, Debug)]
pub struct InterfaceSpec {
    /// Its name. Hosts with equal interface names share the string.
    pub name: Arc<str>,
    /// Its link address.
    pub mac: Mac,
    /// The largest datagram that it accepts, in bytes.
    pub mtu: u16,
    /// Its port of the fabric.
    pub port: PortId,
    /// Whether it is a radio that has to tune before it carries packets.
    pub tunes: bool,
}

/// A host in a world.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) node: Node,
    pub(crate) interfaces: Box<[InterfaceSpec]>,
    pub(crate) stack: Stack,
    pub(crate) wall: WallTime,
    /// The instant for which the next time-out is scheduled; [`Instant::NEVER`] if none is.
    pub(crate) due: Instant,
}

impl Host {
    pub(crate) fn new(spec: HostSpec) -> Self {
        let mtu = spec.interfaces.iter().map(|interface| interface.mtu).min().unwrap_or(u16::MAX);
        let stack = Stack::new(spec.addresses.first().copied(), mtu, spec.tcp, spec.rng);
        let interfaces = spec.interfaces.into_boxed_slice();
        Self { node: spec.node, interfaces, stack, wall: spec.wall, due: Instant::NEVER }
    }

    pub(crate) fn interface(&self, iface: Iface) -> Option<&InterfaceSpec> {
        self.interfaces.get(usize::from(iface.0).checked_sub(1)?)
    }

    /// When the node or the stack is to be called next.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        Instant::sooner(self.node.deadline(), self.stack.deadline())
    }
}
