//! The answers of a server that wait until no host has answered an ARP request for the address.

use crate::message::{Kind, Message};
use node::Expiry;
use std::collections::BTreeMap;
use wire::{Instant, Ipv4Addr};

/// The largest number of addresses that are checked at a time (not from an RFC). Further messages are dropped: their
/// clients send them again.
const CAPACITY: usize = 1024;

/// A client's message that the server has not answered yet.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub(crate) message: Message,
    /// The type of the answer: an offer, or an acknowledgment.
    pub(crate) answer: Kind,
}

/// The addresses that are being checked.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    pending: BTreeMap<Ipv4Addr, Pending>,
    expiry: Expiry<Ipv4Addr>,
}

impl Waiting {
    /// Returns whether there is no room for another address.
    pub(crate) fn is_full(&self) -> bool {
        self.pending.len() >= CAPACITY
    }

    /// Returns whether this address is being checked.
    pub(crate) fn has(&self, address: Ipv4Addr) -> bool {
        self.pending.contains_key(&address)
    }

    /// Adds a message whose answer is due at `due`. If the address is being checked already, only the message changes, and
    /// false is returned.
    pub(crate) fn insert(&mut self, address: Ipv4Addr, pending: Pending, due: Instant) -> bool {
        let is_new = self.pending.insert(address, pending).is_none();
        if is_new {
            self.expiry.set(address, due);
        }
        is_new
    }

    /// Removes an address that another host uses. Returns its message, unless that host is the client itself.
    pub(crate) fn remove_in_use(&mut self, address: Ipv4Addr, by: wire::Mac) -> Option<Pending> {
        self.pending.get(&address).filter(|pending| pending.message.client != by)?;
        self.expiry.stop(address);
        self.pending.remove(&address)
    }

    /// Removes all addresses, and returns them.
    pub(crate) fn clear(&mut self) -> Vec<Ipv4Addr> {
        self.expiry = Expiry::default();
        std::mem::take(&mut self.pending).into_keys().collect()
    }

    pub(crate) fn due(&self) -> Option<Instant> {
        self.expiry.next()
    }

    /// Takes a message whose answer is due at `now`.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<(Ipv4Addr, Pending)> {
        let address = self.expiry.pop(now)?;
        Some((address, self.pending.remove(&address)?))
    }
}
