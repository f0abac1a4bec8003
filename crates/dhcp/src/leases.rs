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
    /// The addresses of `entries`, in the order in which they are free again.
    by_end: BTreeSet<(Instant, Ipv4Addr)>,
    /// No address of the pool before this one is without an entry, except those that no client gets from the pool.
    first_without_entry: u32,
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
            by_end: BTreeSet::new(),
            first_without_entry: config.first.to_bits(),
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

    /// Returns the address to offer to a client (RFC 2131, section 4.3.1). The order is: its fixed address, its last
    /// address, the requested one, one that no client had, the one that is free for the longest time. `None` if no
    /// address is free.
    ///
    /// The work does not grow with the pool, because a host can send many messages with invented link addresses.
    pub(crate) fn candidate(
        &mut self,
        now: Instant,
        (client, mac): (&ClientId, Mac),
        requested: Option<Ipv4Addr>,
    ) -> Option<Ipv4Addr> {
        let fits =
            |address: &Ipv4Addr| self.may_have(mac, *address) && self.is_free_for(now, client, *address);
        if let Some(fixed) = self.fixed.get(&mac) {
            return Some(*fixed).filter(fits);
        }
        if let Some(preferred) = [self.last_of(client), requested].into_iter().flatten().find(fits) {
            return Some(preferred);
        }
        self.without_entry().or_else(|| {
            let free = self.by_end.iter().take_while(|(until, _)| *until <= now);
            free.map(|(_, address)| *address).find(|address| self.may_have(mac, *address))
        })
    }

    /// Returns the first address of the pool that no client had; `None` if there is none.
    fn without_entry(&mut self) -> Option<Ipv4Addr> {
        let is_taken = |address| self.entries.contains_key(&address) || self.reserved.contains(&address);
        let all = (self.first_without_entry..=self.last).map(Ipv4Addr::from_bits);
        let found = all.into_iter().find(|address| !is_taken(*address));
        self.first_without_entry = found.map_or(self.last.saturating_add(1), Ipv4Addr::to_bits);
        found
    }

    /// Gives an address to a client until an instant.
    pub(crate) fn give(&mut self, client: &ClientId, address: Ipv4Addr, until: Instant) {
        self.remove(address);
        if let Some(other) = self.clients.insert(client.clone(), address).filter(|other| *other != address) {
            self.take(other);
        }
        self.insert(address, Entry { client: Some(client.clone()), until });
    }

    /// Notes that a host which is no client uses an address: no client gets it until the instant.
    pub(crate) fn skip(&mut self, address: Ipv4Addr, until: Instant) {
        self.remove(address);
        self.insert(address, Entry { client: None, until });
    }

    /// Ends the use of an address at `now`. Its client gets it again, if the address is still free then.
    pub(crate) fn end(&mut self, now: Instant, address: Ipv4Addr) {
        if let Some(entry) = self.take(address) {
            self.insert(address, Entry { until: now, ..entry });
        }
    }

    fn is_in_pool(&self, address: Ipv4Addr) -> bool {
        (self.first..=self.last).contains(&address.to_bits())
    }

    /// Returns the address that a client has, or had last; `None` if it had none, or another client got it since.
    pub(crate) fn last_of(&self, client: &ClientId) -> Option<Ipv4Addr> {
        let last = self.clients.get(client).copied();
        last.filter(|last| self.entries.get(last).is_some_and(|entry| entry.client.as_ref() == Some(client)))
    }

    fn remove(&mut self, address: Ipv4Addr) {
        if let Some(Entry { client: Some(client), .. }) = self.take(address)
            && self.clients.get(&client) == Some(&address)
        {
            self.clients.remove(&client);
        }
    }

    fn insert(&mut self, address: Ipv4Addr, entry: Entry) {
        self.by_end.insert((entry.until, address));
        self.entries.insert(address, entry);
    }

    fn take(&mut self, address: Ipv4Addr) -> Option<Entry> {
        let entry = self.entries.remove(&address)?;
        self.by_end.remove(&(entry.until, address));
        if self.is_in_pool(address) {
            self.first_without_entry = self.first_without_entry.min(address.to_bits());
        }
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Duration;

    fn leases(first: &str, last: &str, more: &str) -> Leases {
        let text =
            format!("interface = 'lan'\naddress = '10.3.0.1/16'\nfirst = '{first}'\nlast = '{last}'\n{more}");
        Leases::new(&toml::from_str(&text).unwrap())
    }

    fn client(number: u32) -> (ClientId, Mac) {
        let [a, b, c, d] = number.to_be_bytes();
        let mac = Mac([2, 0, a, b, c, d]);
        (mac.0.to_vec(), mac)
    }

    /// Gives each client an address until `until` seconds, and returns the address.
    fn serve(leases: &mut Leases, now: u64, number: u32, until: u64) -> Option<Ipv4Addr> {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let (id, mac) = client(number);
        let address = leases.candidate(at(now), (&id, mac), None)?;
        leases.give(&id, address, at(until));
        Some(address)
    }

    /// With a search through the pool for each client, this test would take minutes.
    #[test]
    fn a_flood_of_clients_costs_little_in_a_large_pool() {
        let mut leases = leases("10.3.0.2", "10.3.255.254", "");
        for number in 0..65_533 {
            assert_eq!(serve(&mut leases, 0, number, 60), Some(Ipv4Addr::from_bits(0x0a03_0002 + number)));
        }
        for number in 70_000..140_000 {
            assert_eq!(serve(&mut leases, 1, number, 60), None);
        }
    }

    #[test]
    fn the_addresses_of_the_server_and_the_router_are_not_granted() {
        let mut leases = leases("10.3.0.1", "10.3.0.3", "router = '10.3.0.2'");
        assert_eq!(serve(&mut leases, 0, 1, 60), Some(Ipv4Addr::new(10, 3, 0, 3)));
        assert_eq!(serve(&mut leases, 0, 2, 60), None);
    }

    #[test]
    fn a_client_gets_a_new_address_and_then_the_one_that_is_free_for_the_longest_time() {
        let fixed = "fixed = [{ mac = '02:00:00:00:00:63', address = '10.3.0.4' }]\nexcluded = ['10.3.0.3']";
        let mut leases = leases("10.3.0.2", "10.3.0.6", fixed);
        let own = |last| Some(Ipv4Addr::new(10, 3, 0, last));
        assert_eq!(serve(&mut leases, 0, 99, 10), own(4));
        assert_eq!(serve(&mut leases, 0, 1, 30), own(2));
        assert_eq!(serve(&mut leases, 0, 2, 20), own(5));
        assert_eq!(serve(&mut leases, 0, 3, 40), own(6));
        assert_eq!(serve(&mut leases, 15, 4, 60), None);
        assert_eq!(serve(&mut leases, 35, 4, 60), own(5));
        // A client that moves to another address leaves the first one without an entry.
        let (id, _) = client(4);
        leases.give(&id, Ipv4Addr::new(10, 3, 0, 2), Instant::ZERO + Duration::from_mins(1));
        assert_eq!(serve(&mut leases, 36, 5, 60), own(5));
        assert_eq!(serve(&mut leases, 50, 2, 70), own(6));
        leases.end(Instant::ZERO + Duration::from_secs(51), Ipv4Addr::new(10, 3, 0, 2));
        assert_eq!(serve(&mut leases, 51, 6, 70), own(2));
    }
}
