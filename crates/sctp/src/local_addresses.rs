//! Our own addresses in an association, and which of them is the source of a packet (RFC 5061, section 5.3).

use wire::{Instant, Ipv4Addr};

/// What an address may be used for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AddressUse {
    /// The host has it, but the peer was not asked to add it yet. Only packets whose association the peer finds
    /// without the address leave from it: ASCONF, COOKIE ECHO, and answers to packets that came to it.
    Here,
    /// The peer does not know it yet, or did not confirm it: only ASCONF leaves from it.
    Adding,
    /// No restriction.
    All,
    /// Its deletion was requested: packets to it are accepted. None leave from it, except an ASCONF if the user
    /// prefers it.
    Deleting,
    /// It is deleted. Late packets to it are accepted until this time.
    Gone(Instant),
}

#[derive(Clone, Debug)]
pub(crate) struct LocalAddresses {
    list: Vec<(Ipv4Addr, AddressUse)>,
    /// The addresses that the peer has, by its answers so far.
    known: Vec<Ipv4Addr>,
    /// Addresses that the host no longer has, whatever the peer was asked for: nothing leaves from them.
    absent: Vec<Ipv4Addr>,
    /// The source that the user prefers.
    pub(crate) preferred: Option<Ipv4Addr>,
    /// Replaces `preferred` while packets from there do not reach the peer (module `detour`).
    pub(crate) detour: Option<Ipv4Addr>,
}

impl LocalAddresses {
    pub(crate) fn new(addresses: &[Ipv4Addr]) -> Self {
        let list = addresses.iter().map(|address| (*address, AddressUse::All)).collect();
        Self { list, known: addresses.to_vec(), absent: Vec::new(), preferred: None, detour: None }
    }

    /// Begins again with the addresses that the peer knows after its restart. Those that the host no longer has remain
    /// absent.
    pub(crate) fn begin_again(&mut self, addresses: &[Ipv4Addr]) {
        self.list = addresses.iter().map(|address| (*address, AddressUse::All)).collect();
        self.known = addresses.to_vec();
        self.absent.retain(|absent| addresses.contains(absent));
        self.preferred = self.preferred.filter(|preferred| addresses.contains(preferred));
        self.detour = None;
    }

    pub(crate) fn get(&self, address: Ipv4Addr) -> Option<AddressUse> {
        self.list.iter().find(|(known, _)| *known == address).map(|(_, usage)| *usage)
    }

    pub(crate) fn set(&mut self, address: Ipv4Addr, usage: AddressUse) {
        match self.list.iter_mut().find(|(known, _)| *known == address) {
            Some((_, old)) => *old = usage,
            None => self.list.push((address, usage)),
        }
    }

    /// Prefers `address`, which is in the list, as the source. The host is there, so other addresses of use `Here`
    /// are removed.
    pub(crate) fn prefer(&mut self, address: Ipv4Addr) {
        self.list.retain(|(known, usage)| *usage != AddressUse::Here || *known == address);
        self.is_here(address);
        if self.preferred.replace(address) != Some(address) {
            self.detour = None;
        }
    }

    /// Records the peer's answer: whether it has this address.
    pub(crate) fn answered(&mut self, address: Ipv4Addr, has: bool) {
        self.known.retain(|known| *known != address);
        self.known.extend(Some(address).filter(|_| has));
    }

    /// Records that the host has this address.
    pub(crate) fn is_here(&mut self, address: Ipv4Addr) {
        self.absent.retain(|absent| *absent != address);
    }

    /// Records that the host has these addresses and no others.
    pub(crate) fn are_here(&mut self, here: &[Ipv4Addr]) {
        let known = self.list.iter().map(|(address, _)| *address);
        self.absent = known.filter(|address| !here.contains(address)).collect();
    }

    pub(crate) fn remove(&mut self, address: Ipv4Addr) {
        self.list.retain(|(known, _)| *known != address);
        self.preferred = self.preferred.filter(|preferred| *preferred != address);
        self.detour = self.detour.filter(|detour| *detour != address);
    }

    /// Returns whether packets to `address` are accepted.
    pub(crate) fn receives(&self, now: Instant, address: Ipv4Addr) -> bool {
        self.get(address).is_some_and(|usage| !matches!(usage, AddressUse::Gone(until) if until <= now))
    }

    /// Returns whether packets of all kinds may leave from `address`.
    pub(crate) fn sends(&self, address: Ipv4Addr) -> bool {
        self.get(address) == Some(AddressUse::All) && !self.absent.contains(&address)
    }

    /// Removes deleted addresses whose time is over.
    pub(crate) fn forget(&mut self, now: Instant) {
        self.list.retain(|(_, usage)| !matches!(usage, AddressUse::Gone(until) if *until <= now));
    }

    /// Returns the addresses with this use.
    pub(crate) fn with(&self, wanted: AddressUse) -> impl Iterator<Item = Ipv4Addr> {
        self.list.iter().filter(move |(_, usage)| *usage == wanted).map(|(address, _)| *address)
    }

    /// Returns the addresses that remain after all requested changes.
    pub(crate) fn lasting(&self) -> impl Iterator<Item = Ipv4Addr> {
        let lasting = |usage: &AddressUse| matches!(usage, AddressUse::All | AddressUse::Adding);
        self.list.iter().filter(move |(_, usage)| lasting(usage)).map(|(address, _)| *address)
    }

    /// Returns the source of a packet: the first that may send, of the detour, `candidates`, the preferred address
    /// and all others.
    pub(crate) fn source(&self, candidates: &[Option<Ipv4Addr>]) -> Option<Ipv4Addr> {
        let candidates = candidates.iter().copied().chain([self.preferred]);
        let candidates = std::iter::once(self.detour).chain(candidates).flatten();
        let any = || self.with(AddressUse::All).find(|address| self.sends(*address));
        candidates.into_iter().find(|address| self.sends(*address)).or_else(any)
    }

    /// Returns the source of an ASCONF that deletes `deleted`: the detour, the preferred address, or another one,
    /// also one that is still being added. The preferred address is taken even if it is being deleted or the peer was
    /// not asked for it yet. The peer may then refuse the deletion, which is no longer wanted.
    pub(crate) fn source_of_change(&self, deleted: &[Ipv4Addr]) -> Option<Ipv4Addr> {
        let allowed = |address: &Ipv4Addr| {
            let is_here = !deleted.contains(address) && !self.absent.contains(address);
            is_here && matches!(self.get(*address), Some(AddressUse::All | AddressUse::Adding))
        };
        let usable = self.with(AddressUse::All).find(allowed);
        let back = |preferred: &Ipv4Addr| {
            allowed(preferred)
                || matches!(self.get(*preferred), Some(AddressUse::Deleting | AddressUse::Here))
        };
        let detour = self.detour.filter(allowed);
        detour
            .or_else(|| self.preferred.filter(back))
            .or(usable)
            .or_else(|| self.with(AddressUse::Adding).find(allowed))
    }

    /// Returns an address that the peer knows, by which it finds the association: `source` if that is one.
    pub(crate) fn known_to_peer(&self, source: Ipv4Addr) -> Option<Ipv4Addr> {
        Some(source).filter(|source| self.known.contains(source)).or_else(|| self.known.first().copied())
    }
}
