//! The configuration of a router.

use indirect_tcp::config::{Peer, SupportRouterConfig};
use wire::{Duration, Ipv4Addr};

/// Returns the configuration of a router with these hosts and other routers, and default values.
pub(crate) fn router(address: Ipv4Addr, hosts: Vec<Peer>, routers: Vec<Peer>) -> SupportRouterConfig {
    SupportRouterConfig {
        address,
        hosts,
        routers,
        patience: Duration::from_secs(10),
        held: 64,
        silence: Duration::from_mins(2),
        send_buffer: None,
        receive_buffer: None,
        moves_unread: true,
    }
}
