//! The limit of a server's clients, and the choice of the client that is disconnected for a new one.

use node::StreamId;
use wire::{Instant, Ipv4Addr};

/// The largest number of clients of a server. If a server has this many, a new client replaces one of them. Clients
/// that the server has not served are replaced first, and of these the client that was inactive for the longest time.
/// So idle clients do not prevent others from connecting.
pub(crate) const CLIENTS: usize = 1024;
/// The largest number of clients of a server with the same address.
pub(crate) const CLIENTS_OF_ADDRESS: usize = 256;

/// The properties of a client that decide whether it is disconnected for a new one.
#[derive(Debug)]
pub(crate) struct ClientActivity {
    host: Ipv4Addr,
    /// Whether the server has served the client: with data, or with an answer.
    pub(crate) served: bool,
    /// When the client was last active, or connected.
    pub(crate) active: Instant,
}

impl ClientActivity {
    /// Returns the activity of a client that has just connected from the address `host`.
    pub(crate) const fn new(now: Instant, host: Ipv4Addr) -> Self {
        Self { host, served: false, active: now }
    }
}

/// Returns the client that must be disconnected for a new client from `host`. If `host` has its largest number of
/// clients, the returned client is from `host`. `None` if no client must be disconnected.
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
