//! Our own addresses in an association, and which of them a packet leaves from (RFC 5061, section 5.3).

use wire::{Instant, Ipv4Addr};

/// What an address may be used for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Use {
    /// We are there, and the peer was not asked for it yet. Only what finds the association without it leaves from it: ASCONF and
    /// COOKIE ECHO, and answers to what comes there.
    Here,
    /// The peer does not know it yet, or we do not know that it does: only ASCONF leaves from it.
    Adding,
    /// Everything.
    All,
    /// We have asked for its end: it receives, and nothing leaves from it.
    Deleting,
    /// What is late for it is taken until then.
    Gone(Instant),
}

#[derive(Clone, Debug)]
pub(crate) struct Locals {
    list: Vec<(Ipv4Addr, Use)>,
    /// Those that the peer has, as far as it has answered.
    known: Vec<Ipv4Addr>,
    /// Addresses that the host has not got any more, whatever the peer was asked for: nothing leaves from them.
    absent: Vec<Ipv4Addr>,
    /// The user's choice.
    pub(crate) preferred: Option<Ipv4Addr>,
    /// Replaces `preferred` while packets from there do not reach the peer (module `detour`).
    pub(crate) detour: Option<Ipv4Addr>,
}

impl Locals {
    pub(crate) fn new(addresses: &[Ipv4Addr]) -> Self {
        let list = addresses.iter().map(|address| (*address, Use::All)).collect();
        Self { list, known: addresses.to_vec(), absent: Vec::new(), preferred: None, detour: None }
    }

    /// The peer has begun again, and knows these. Those that the host has not got any more stay so.
    pub(crate) fn begin_again(&mut self, addresses: &[Ipv4Addr]) {
        self.list = addresses.iter().map(|address| (*address, Use::All)).collect();
        self.known = addresses.to_vec();
        self.absent.retain(|absent| addresses.contains(absent));
        self.preferred = self.preferred.filter(|preferred| addresses.contains(preferred));
        self.detour = None;
    }

    pub(crate) fn get(&self, address: Ipv4Addr) -> Option<Use> {
        self.list.iter().find(|(known, _)| *known == address).map(|(_, usage)| *usage)
    }

    pub(crate) fn set(&mut self, address: Ipv4Addr, usage: Use) {
        match self.list.iter_mut().find(|(known, _)| *known == address) {
            Some((_, old)) => *old = usage,
            None => self.list.push((address, usage)),
        }
    }

    /// The user wants packets to leave from `address`, which is known: that is where we are, and where we only were counts no more.
    pub(crate) fn prefer(&mut self, address: Ipv4Addr) {
        self.list.retain(|(known, usage)| *usage != Use::Here || *known == address);
        self.is_here(address);
        if self.preferred.replace(address) != Some(address) {
            self.detour = None;
        }
    }

    /// The peer has answered that it has this address, or has it no more.
    pub(crate) fn answered(&mut self, address: Ipv4Addr, has: bool) {
        self.known.retain(|known| *known != address);
        self.known.extend(Some(address).filter(|_| has));
    }

    /// The host has this address.
    pub(crate) fn is_here(&mut self, address: Ipv4Addr) {
        self.absent.retain(|absent| *absent != address);
    }

    /// The host has these addresses, and no other.
    pub(crate) fn are_here(&mut self, here: &[Ipv4Addr]) {
        let known = self.list.iter().map(|(address, _)| *address);
        self.absent = known.filter(|address| !here.contains(address)).collect();
    }

    pub(crate) fn remove(&mut self, address: Ipv4Addr) {
        self.list.retain(|(known, _)| *known != address);
        self.preferred = self.preferred.filter(|preferred| *preferred != address);
        self.detour = self.detour.filter(|detour| *detour != address);
    }

    /// Whether packets to it are for us.
    pub(crate) fn receives(&self, now: Instant, address: Ipv4Addr) -> bool {
        self.get(address).is_some_and(|usage| !matches!(usage, Use::Gone(until) if until <= now))
    }

    /// Whether anything may leave from it.
    pub(crate) fn sends(&self, address: Ipv4Addr) -> bool {
        self.get(address) == Some(Use::All) && !self.absent.contains(&address)
    }

    /// What has been gone for long enough.
    pub(crate) fn forget(&mut self, now: Instant) {
        self.list.retain(|(_, usage)| !matches!(usage, Use::Gone(until) if *until <= now));
    }

    /// Addresses with this use.
    pub(crate) fn with(&self, wanted: Use) -> impl Iterator<Item = Ipv4Addr> {
        self.list.iter().filter(move |(_, usage)| *usage == wanted).map(|(address, _)| *address)
    }

    /// Those that the peer knows or will: what remains when all that was asked for is done.
    pub(crate) fn lasting(&self) -> impl Iterator<Item = Ipv4Addr> {
        let lasting = |usage: &Use| matches!(usage, Use::All | Use::Adding);
        self.list.iter().filter(move |(_, usage)| lasting(usage)).map(|(address, _)| *address)
    }

    /// Returns the source of a packet: the first that may send, of the detour, `candidates`, the preferred address and all
    /// others.
    pub(crate) fn source(&self, candidates: &[Option<Ipv4Addr>]) -> Option<Ipv4Addr> {
        let candidates = candidates.iter().copied().chain([self.preferred]);
        let candidates = std::iter::once(self.detour).chain(candidates).flatten();
        let any = || self.with(Use::All).find(|address| self.sends(*address));
        candidates.into_iter().find(|address| self.sends(*address)).or_else(any)
    }

    /// Where an ASCONF leaves from that deletes `deleted`: also an address that it adds, or that is waited for; or the user's
    /// choice, if that is to be deleted by now, or is not known to the peer yet. Then the peer may refuse the deletion, which is not wanted any more.
    pub(crate) fn source_of_change(&self, deleted: &[Ipv4Addr]) -> Option<Ipv4Addr> {
        let allowed = |address: &Ipv4Addr| {
            let is_here = !deleted.contains(address) && !self.absent.contains(address);
            is_here && matches!(self.get(*address), Some(Use::All | Use::Adding))
        };
        let usable = self.with(Use::All).find(allowed);
        let back = |preferred: &Ipv4Addr| {
            allowed(preferred) || matches!(self.get(*preferred), Some(Use::Deleting | Use::Here))
        };
        let detour = self.detour.filter(allowed);
        detour
            .or_else(|| self.preferred.filter(back))
            .or(usable)
            .or_else(|| self.with(Use::Adding).find(allowed))
    }

    /// One that the peer knows: by it the peer finds the association.
    pub(crate) fn known_to_peer(&self, source: Ipv4Addr) -> Option<Ipv4Addr> {
        Some(source).filter(|source| self.known.contains(source)).or_else(|| self.known.first().copied())
    }
}
