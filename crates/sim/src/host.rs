//! A host of the simulator: its node and its IP stack.

use link::PortId;
use node::Node;
use stack::Stack;
use std::sync::Arc;
use wire::{ClockError, Iface, Instant, Ipv4Addr, Mac, Rng, WallTime};

/// The parameters of one host of a [`World`](crate::World).
#[derive(Debug)]
pub struct HostSpec {
    /// The host's name. The simulator does not use it: records contain the host's number.
    pub name: String,
    /// The host's roles and its forwarding table.
    pub node: Node,
    /// The host's addresses. Its sockets use the first one, unless a request names another address.
    pub addresses: Vec<Ipv4Addr>,
    /// The host's interfaces. The first one has number 1.
    pub interfaces: Vec<InterfaceSpec>,
    /// The time of the host's wall clock when the run begins.
    pub wall: WallTime,
    /// The error of the host's wall clock, in addition to `wall`.
    pub clock_error: ClockError,
    /// The parameters of the host's TCP.
    pub tcp: Arc<tcp::Profile>,
    /// The random number generator of the host's stack.
    pub rng: Rng,
}

/// The parameters of one interface of a host.
#[derive(Clone, Debug)]
pub struct InterfaceSpec {
    /// The interface's name. Hosts with equal interface names share the string.
    pub name: Arc<str>,
    /// The interface's link address.
    pub mac: Mac,
    /// The interface's MTU: the largest IP datagram that it accepts, in bytes.
    pub mtu: u16,
    /// The port of the fabric to which the interface is connected.
    pub port: PortId,
    /// Whether the interface is a radio that has to tune before it carries packets.
    pub tunes: bool,
}

/// A host in a world.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) node: Node,
    pub(crate) interfaces: Box<[InterfaceSpec]>,
    pub(crate) stack: Stack,
    /// The wall time at the begin of the run, with the steps of events, and without the clock's error.
    pub(crate) wall: WallTime,
    /// `None` if the clock is correct. A million hosts have none.
    pub(crate) clock_error: Option<Box<ClockError>>,
    /// The instant for which the next time-out is scheduled; [`Instant::NEVER`] if none is.
    pub(crate) due: Instant,
}

impl Host {
    pub(crate) fn new(spec: HostSpec) -> Self {
        let mtu = spec.interfaces.iter().map(|interface| interface.mtu).min().unwrap_or(u16::MAX);
        let stack = Stack::new(spec.addresses.first().copied(), mtu, spec.tcp, spec.rng);
        let interfaces = spec.interfaces.into_boxed_slice();
        Self {
            node: spec.node,
            interfaces,
            stack,
            wall: spec.wall,
            clock_error: (spec.clock_error != ClockError::NONE).then(|| Box::new(spec.clock_error)),
            due: Instant::NEVER,
        }
    }

    /// Returns the wall time at the begin of the run as the host's clock shows it at `now`.
    pub(crate) fn wall_at_zero(&self, now: Instant) -> WallTime {
        WallTime(self.wall.0.saturating_add(self.clock_error.as_ref().map_or(0, |error| error.ahead(now))))
    }

    pub(crate) fn interface(&self, iface: Iface) -> Option<&InterfaceSpec> {
        self.interfaces.get(usize::from(iface.0).checked_sub(1)?)
    }

    /// Returns the earlier deadline of the node and the stack, or `None` if neither has one.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        Instant::sooner(self.node.deadline(), self.stack.deadline())
    }
}
