//! How many clients a server has at a time, and which of them it sends away for a new one.

use node::StreamId;
use wire::{Instant, Ipv4Addr};

/// Clients at a time. If there are more, one is sent away: first those that the server never did anything for, and of these the one
/// that has been idle for the longest time. So idle clients do not prevent others from connecting.
pub(crate) const CLIENTS: usize = 1024;
/// The same for those of one address.
pub(crate) const CLIENTS_OF_ADDRESS: usize = 256;

/// What decides whether a client may stay.
#[derive(Debug)]
pub(crate) struct Standing {
    host: Ipv4Addr,
    /// Whether the server has done anything for it.
    pub(crate) served: bool,
    /// When it was last active, or connected.
    pub(crate) active: Instant,
}

impl Standing {
    /// Of a client that has just connected from this address.
    pub(crate) const fn new(now: Instant, host: Ipv4Addr) -> Self {
        Self { host, served: false, active: now }
    }
}

/// The client that is sent away for a new one from this address, if there is no room for both.
pub(crate) fn gives_way<'a>(
    clients: impl Iterator<Item = (StreamId, &'a Standing)> + Clone,
    host: Ipv4Addr,
) -> Option<StreamId> {
    let of_host = |(_, other): &(StreamId, &Standing)| other.host == host;
    let full_for_host = clients.clone().filter(of_host).count() >= CLIENTS_OF_ADDRESS;
    if !full_for_host && clients.clone().count() < CLIENTS {
        return None;
    }
    let others = clients.filter(|other| !full_for_host || of_host(other));
    others.min_by_key(|(id, other)| (other.served, other.active, *id)).map(|(id, _)| id)
}
