//! The gateway: a node of the access network whose uplink is the Internet. Route-updates end here.

use crate::Station;
use crate::config::StationConfig;
use crate::station::LISTENS;
use node::config::{ConfigError, Interfaces};
use node::{Input, Listen, Outbox, Role, Value, reason};
use wire::{Instant, Ipv4Addr, PacketId};

/// The role of a gateway. It consumes the route-updates that its node part accepts, so that they do not leave the
/// access network.
#[derive(Debug)]
pub struct Gateway {
    node: Station,
}

impl Gateway {
    /// Creates the role of a gateway, on a host with these interfaces. It is an error if the configuration is invalid
    /// or names an interface that the host does not have, or if `gateway` is no address of the host.
    pub fn new(config: StationConfig, interfaces: Interfaces<'_>) -> Result<Self, ConfigError> {
        if !config.own.contains(&config.gateway) {
            let problem = format!(
                "{} must be an address of this host, as route-updates end at the gateway",
                config.gateway
            );
            return Err(ConfigError::new("gateway", problem));
        }
        Ok(Self { node: Station::new(config, interfaces)? })
    }
}

impl Role for Gateway {
    fn name(&self) -> &'static str {
        "gateway"
    }

    fn listens(&self) -> &[Listen] {
        &LISTENS
    }

    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Outbox) {
        if let Some((iface, packet)) = self.node.take(now, input, out) {
            out.discard(iface, packet, reason::CONSUMED);
        }
    }

    fn reporter(&self) -> Option<Ipv4Addr> {
        self.node.reporter()
    }

    fn deadline(&self) -> Option<Instant> {
        self.node.deadline()
    }

    fn status(&self) -> Value {
        self.node.status()
    }

    fn holds(&self, each: &mut dyn FnMut(PacketId)) {
        self.node.holds(each);
    }

    fn entries(&self) -> usize {
        self.node.entries()
    }
}
