//! Our own addresses in an association, and which of them is the source of a packet (RFC 5061, section 5.3).

use wire::{Instant, Ipv4Addr};

/// What an address may be used for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AddressUse {
    /// The host has the address, but the peer was not asked to add it yet. Only ASCONF, COOKIE ECHO, and answers to
    /// packets that came to the address leave from it: the peer finds their association without knowing the address.
    Here,
    /// The peer was asked to add the address, and has not confirmed it. Only ASCONF, and answers to packets that came
    /// to the address, leave from it.
    Adding,
    /// The peer has the address. All packets may leave from it, while the host has it.
    All,
    /// The peer was asked to delete the address. Packets to it are accepted. Packets leave from it only if the user
    /// prefers it: ASCONF, and answers to packets that came to the address.
    Deleting,
    /// The peer has deleted the address. Late packets to it are accepted before this time.
    Gone(Instant),
}

#[derive(Clone, Debug)]
pub(crate) struct LocalAddresses {
    list: Vec<(Ipv4Addr, AddressUse)>,
    /// Our addresses that the peer has, according to the handshake and the peer's answers.
    known: Vec<Ipv4Addr>,
    /// Addresses that the host no longer has. No packet leaves from them, even if the peer still has them.
    absent: Vec<Ipv4Addr>,
    /// The source that the user prefers.
    pub(crate) preferred: Option<Ipv4Addr>,
    /// The source instead of `preferred`, while packets from `preferred` do not reach the peer (module `detour`).
    pub(crate) detour: Option<Ipv4Addr>,
}

impl LocalAddresses {
    pub(crate) fn new(addresses: &[Ipv4Addr]) -> Self {
        let list = addresses.iter().map(|address| (*address, AddressUse::All)).collect();
        Self { list, known: addresses.to_vec(), absent: Vec::new(), preferred: None, detour: None }
    }

    /// Begins again with `addresses`, those that the peer knows after its restart. Addresses that the host no longer
    /// has remain absent.
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

    /// Prefers `address`, which is in the list, as the source. The host has this address now, so the other addresses
    /// of use `Here` are removed.
    pub(crate) fn prefer(&mut self, address: Ipv4Addr) {
        self.list.retain(|(known, usage)| *usage != AddressUse::Here || *known == address);
        self.is_here(address);
        if self.preferred.replace(address) != Some(address) {
            self.detour = None;
        }
    }

    /// Records whether the peer has `address`, according to its answer.
    pub(crate) fn answered(&mut self, address: Ipv4Addr, has: bool) {
        self.known.retain(|known| *known != address);
        self.known.extend(Some(address).filter(|_| has));
    }

    /// Records that the host has `address`.
    pub(crate) fn is_here(&mut self, address: Ipv4Addr) {
        self.absent.retain(|absent| *absent != address);
    }

    /// Records that the host has the addresses `here` and no others.
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

    /// Removes deleted addresses to which no late packets are accepted any more.
    pub(crate) fn forget(&mut self, now: Instant) {
        self.list.retain(|(_, usage)| !matches!(usage, AddressUse::Gone(until) if *until <= now));
    }

    /// Returns the addresses whose use is `wanted`.
    pub(crate) fn with(&self, wanted: AddressUse) -> impl Iterator<Item = Ipv4Addr> {
        self.list.iter().filter(move |(_, usage)| *usage == wanted).map(|(address, _)| *address)
    }

    /// Returns the addresses that remain after all requested changes.
    pub(crate) fn lasting(&self) -> impl Iterator<Item = Ipv4Addr> {
        let lasting = |usage: &AddressUse| matches!(usage, AddressUse::All | AddressUse::Adding);
        self.list.iter().filter(move |(_, usage)| lasting(usage)).map(|(address, _)| *address)
    }

    /// Returns the source of a packet: the first address that may send, in the order detour, `candidates`, preferred
    /// address, others. `None` if no address may send.
    pub(crate) fn source(&self, candidates: &[Option<Ipv4Addr>]) -> Option<Ipv4Addr> {
        let candidates = candidates.iter().copied().chain([self.preferred]);
        let candidates = std::iter::once(self.detour).chain(candidates).flatten();
        let any = || self.with(AddressUse::All).find(|address| self.sends(*address));
        candidates.into_iter().find(|address| self.sends(*address)).or_else(any)
    }

    /// Returns the source of an ASCONF that deletes `deleted`, or `None` if there is none. It is the first of: the
    /// detour, the preferred address, another address that the peer has, or one that is being added. The preferred
    /// address is taken even if it is being deleted, or if the peer was not asked to add it yet. The peer may then
    /// refuse the deletion, which is no longer wanted.
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

    /// Returns an address of ours by which the peer finds the association: `source` if the peer knows it, else
    /// another known one. `None` if the peer knows none.
    pub(crate) fn known_to_peer(&self, source: Ipv4Addr) -> Option<Ipv4Addr> {
        Some(source).filter(|source| self.known.contains(source)).or_else(|| self.known.first().copied())
    }
}
