//! The limit of the clients of a server, and the choice of the client that is disconnected for a new one.

use node::StreamId;
use wire::{Instant, Ipv4Addr};

/// The largest number of clients. If there are more, one is disconnected: first those that the server has not served,
/// and of these the one that has been idle for the longest time. So idle clients do not prevent others from connecting.
pub(crate) const CLIENTS: usize = 1024;
/// The largest number of clients with one address.
pub(crate) const CLIENTS_OF_ADDRESS: usize = 256;

/// The properties of a client that decide whether it is disconnected.
#[derive(Debug)]
pub(crate) struct ClientActivity {
    host: Ipv4Addr,
    /// Whether the server has served it anything.
    pub(crate) served: bool,
    /// When it was last active, or connected.
    pub(crate) active: Instant,
}

impl ClientActivity {
    /// The standing of a client that has just connected from this address.
    pub(crate) const fn new(now: Instant, host: Ipv4Addr) -> Self {
        Self { host, served: false, active: now }
    }
}

/// Returns the client to disconnect for a new one from `host`; `None` if there is room for both.
pub(crate) fn gives_way<'a>(
    clients: impl Iterator<Item = (StreamId, &'a ClientActivity)> + Clone,
    host: Ipv4Addr,
) -> Option<StreamId> {
    let of_host = |(_, other): &(StreamId, &ClientActivity)| other.host == host;
    let full_for_host = clients.clone().filter(of_host).count() >= CLIENTS_OF_ADDRESS;
    if !full_for_host && clients.clone().count() < CLIENTS {
        return None;
    }
    let others = clients.filter(|other| !full_for_host || of_host(other));
    others.min_by_key(|(id, other)| (other.served, other.active, *id)).map(|(id, _)| id)
}
