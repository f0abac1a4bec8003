//! The addresses of a server: which client has which, and which is the next to grant.

use crate::config::ServerConfig;
use std::collections::{BTreeMap, BTreeSet};
use wire::{Instant, Ipv4Addr, Mac};

/// The identity of a client: the value of option 61, or 1 and its link address (RFC 2131, section 4.2).
pub(crate) type ClientId = Vec<u8>;

/// The use of an address.
#[derive(Clone, Debug)]
struct Entry {
    /// The client that has the address, or had it last; `None` if another host uses the address.
    client: Option<ClientId>,
    /// When the address is free again.
    until: Instant,
}

/// The pool of a server. It has at most one entry for each address of the pool, and for each fixed address.
#[derive(Debug)]
pub(crate) struct Leases {
    first: u32,
    last: u32,
    /// Addresses that no client gets from the pool.
    reserved: BTreeSet<Ipv4Addr>,
    fixed: BTreeMap<Mac, Ipv4Addr>,
    entries: BTreeMap<Ipv4Addr, Entry>,
    /// The last address of each client.
    clients: BTreeMap<ClientId, Ipv4Addr>,
}

impl Leases {
    pub(crate) fn new(config: &ServerConfig) -> Self {
        let fixed: BTreeMap<Mac, Ipv4Addr> = config.fixed.iter().map(|it| (it.mac, it.address)).collect();
        let own = [config.address.address].into_iter().chain(config.router);
        let reserved = own.chain(config.excluded.iter().copied()).chain(fixed.values().copied()).collect();
        Self {
            first: config.first.to_bits(),
            last: config.last.to_bits(),
            reserved,
            fixed,
            entries: BTreeMap::new(),
            clients: BTreeMap::new(),
        }
    }

    /// Returns the number of clients that have an address, or had one that no other client has got since.
    pub(crate) fn clients(&self) -> u32 {
        self.clients.len() as u32
    }

    /// Returns whether there is a record of a client: it has or had an address, or there is a fixed one for its link address.
    pub(crate) fn knows(&self, client: &ClientId, mac: Mac) -> bool {
        self.clients.contains_key(client) || self.fixed.contains_key(&mac)
    }

    /// Returns whether a client with this link address may have an address: it is in the pool, or fixed for this client.
    pub(crate) fn may_have(&self, mac: Mac, address: Ipv4Addr) -> bool {
        match self.fixed.get(&mac) {
            Some(fixed) => *fixed == address,
            None => self.is_in_pool(address) && !self.reserved.contains(&address),
        }
    }

    /// Returns whether an address is in the pool, or fixed for any client.
    pub(crate) fn is_ours(&self, address: Ipv4Addr) -> bool {
        self.is_in_pool(address) || self.fixed.values().any(|fixed| *fixed == address)
    }

    /// Returns whether an address is granted or offered to this client at `now`.
    pub(crate) fn has(&self, now: Instant, client: &ClientId, address: Ipv4Addr) -> bool {
        let entry = self.entries.get(&address).filter(|entry| now < entry.until);
        entry.is_some_and(|entry| entry.client.as_ref() == Some(client))
    }

    /// Returns whether no other client and no other host has an address at `now`.
    pub(crate) fn is_free_for(&self, now: Instant, client: &ClientId, address: Ipv4Addr) -> bool {
        let entry = self.entries.get(&address).filter(|entry| now < entry.until);
        entry.is_none_or(|entry| entry.client.as_ref() == Some(client))
    }

    /// Returns the address to offer to a client (RFC 2131, section 4.3.1): its fixed address, its last address, the
    /// requested one, one that no client had, or the one that is free for the longest time. `None` if no address is free.
    pub(crate) fn candidate(
        &self,
        now: Instant,
        (client, mac): (&ClientId, Mac),
        requested: Option<Ipv4Addr>,
    ) -> Option<Ipv4Addr> {
        let fits =
            |address: &Ipv4Addr| self.may_have(mac, *address) && self.is_free_for(now, client, *address);
        if let Some(fixed) = self.fixed.get(&mac) {
            return Some(*fixed).filter(fits);
        }
        let last = self.clients.get(client).copied().filter(|last| self.is_last_of(client, *last));
        let preferred = [last, requested].into_iter().flatten().find(fits);
        preferred.or_else(|| {
            let pool = (self.first..=self.last).map(Ipv4Addr::from_bits).filter(fits);
            pool.min_by_key(|address| self.entries.get(address).map_or(Instant::ZERO, |entry| entry.until))
        })
    }

    /// Gives an address to a client until an instant.
    pub(crate) fn give(&mut self, client: &ClientId, address: Ipv4Addr, until: Instant) {
        self.remove(address);
        if let Some(other) = self.clients.insert(client.clone(), address).filter(|other| *other != address) {
            self.entries.remove(&other);
        }
        self.entries.insert(address, Entry { client: Some(client.clone()), until });
    }

    /// Notes that a host which is no client uses an address: no client gets it until the instant.
    pub(crate) fn skip(&mut self, address: Ipv4Addr, until: Instant) {
        self.remove(address);
        self.entries.insert(address, Entry { client: None, until });
    }

    /// Ends the use of an address at `now`. Its client gets it again, if the address is still free then.
    pub(crate) fn end(&mut self, now: Instant, address: Ipv4Addr) {
        if let Some(entry) = self.entries.get_mut(&address) {
            entry.until = now;
        }
    }

    fn is_in_pool(&self, address: Ipv4Addr) -> bool {
        (self.first..=self.last).contains(&address.to_bits())
    }

    fn is_last_of(&self, client: &ClientId, address: Ipv4Addr) -> bool {
        self.entries.get(&address).is_some_and(|entry| entry.client.as_ref() == Some(client))
    }

    fn remove(&mut self, address: Ipv4Addr) {
        if let Some(Entry { client: Some(client), .. }) = self.entries.remove(&address)
            && self.clients.get(&client) == Some(&address)
        {
            self.clients.remove(&client);
        }
    }
}
