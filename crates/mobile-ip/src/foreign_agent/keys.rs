//! The keys of smooth handoffs that home agents distribute (see [`crate::message::DistributedKey`]).
//!
//! Each accepted registration has another key. The reply can be lost between this agent and the mobile node, which then has
//! the key of an earlier registration. So a key stays when the next one arrives, until the mobile node has used a later one,
//! or the lifetime that was granted with the key ends. All keys end with the visit. Only the key of the Binding Update that
//! ends a visit stays, so that repetitions of the update can be answered.
//!
//! A home agent could send a key for the home address of a mobile node of another home agent. So a key is valid only for the
//! visit of the home agent that has sent it. A mobile node with a configured association has no distributed keys.

use super::{ForeignAgent, Visit, of_host};
use crate::mark::HandoffEvent;
use crate::message::{Association, Between, KeyScope, Reply, Request};
use crate::pending::Pending;
use crate::refusal;
use node::{Expiry, Outbox};
use std::collections::{BTreeMap, VecDeque};
use wire::{Duration, Instant, Ipv4Addr, Reason};

/// The largest number of keys of a visit; the oldest makes room (not from an RFC). More than seven replies in a row must be
/// lost before the key of the mobile node is forgotten.
const MOST: usize = 8;
/// How long a key stays after a Binding Update that deletes: the default `cache_lifetime`, for which a mobile node repeats it.
pub(super) const AFTER_DELETION: Duration = Duration::from_secs(30);
/// The reason not to keep a key: the reply does not have the Identification of the request. It is only counted.
const KEY_OF_ANOTHER_REQUEST: Reason = Reason("key_of_another_request");
/// The reason not to keep a key: there is no association with the home agent, so the reply is not authenticated to this agent. It
/// is only counted.
const KEY_NOT_SIGNED: Reason = Reason("key_not_signed");

/// A key, and when it ends.
#[derive(Debug)]
struct Held {
    association: Association,
    ends: Instant,
}

/// The distributed keys of all visits.
#[derive(Debug, Default)]
pub(super) struct Keys {
    /// The keys of each visit, the oldest first; at most [`MOST`].
    all: BTreeMap<Visit, VecDeque<Held>>,
    /// When the first key of each visit ends.
    ending: Expiry<Visit>,
}

impl Keys {
    /// Returns the keys of a mobile node with this SPI, each with the visit for which it is valid. There can be several: a home
    /// agent chooses the SPI.
    fn named(&self, host: Ipv4Addr, spi: u32) -> impl Iterator<Item = (&Association, Visit)> {
        let visits = of_host(&self.all, host);
        let keys = visits.flat_map(|(visit, keys)| keys.iter().map(move |key| (&key.association, visit)));
        keys.filter(move |(association, _)| association.spi == spi)
    }

    /// Returns the SPI of the last key of a visit; `None` if there is none.
    pub(super) fn last(&self, visit: Visit) -> Option<u32> {
        self.all.get(&visit)?.back().map(|held| held.association.spi)
    }

    /// Returns the number of keys.
    pub(super) fn len(&self) -> usize {
        self.all.values().map(VecDeque::len).sum()
    }

    /// Returns when a key ends; `None` if there is none.
    pub(super) fn next(&self) -> Option<Instant> {
        self.ending.next()
    }

    /// Adds the key of the newest registration of a visit. A key that is known already only gets the new end.
    fn add(&mut self, visit: Visit, association: Association, ends: Instant) {
        let keys = self.all.entry(visit).or_default();
        keys.retain(|held| held.association.spi != association.spi);
        if keys.len() >= MOST {
            keys.pop_front();
        }
        keys.push_back(Held { association, ends });
        self.rearm(visit);
    }

    /// Removes the keys before the one with this SPI, which the mobile node has used.
    fn used(&mut self, visit: Visit, spi: u32) {
        let Some(keys) = self.all.get_mut(&visit) else { return };
        let at = keys.iter().position(|held| held.association.spi == spi);
        keys.drain(..at.unwrap_or(0));
        self.rearm(visit);
    }

    /// Removes all keys of a visit but that of the Binding Update that ends it, which stays until `ends`.
    pub(super) fn leave(&mut self, visit: Visit, spi: u32, ends: Instant) {
        let Some(keys) = self.all.get_mut(&visit) else { return };
        keys.retain_mut(|held| {
            held.ends = ends;
            held.association.spi == spi
        });
        self.rearm(visit);
    }

    /// Removes all keys of a visit.
    pub(super) fn end(&mut self, visit: Visit) {
        self.all.remove(&visit);
        self.ending.stop(visit);
    }

    /// Removes the keys that have ended.
    pub(super) fn expire(&mut self, now: Instant) {
        while let Some(visit) = self.ending.pop(now) {
            if let Some(keys) = self.all.get_mut(&visit) {
                keys.retain(|held| now < held.ends);
            }
            self.rearm(visit);
        }
    }

    fn rearm(&mut self, visit: Visit) {
        let keys = self.all.get(&visit);
        match keys.and_then(|keys| keys.iter().map(|held| held.ends).min()) {
            Some(first) => self.ending.set(visit, first),
            None => self.end(visit),
        }
    }
}

/// The association by which a mobile node authenticates the messages of a smooth handoff.
#[derive(Debug)]
pub(super) struct Proof {
    pub(super) association: Association,
    /// The visit for which the association is valid; `None` if it is configured, and valid for all visits.
    only: Option<Visit>,
}

impl Proof {
    /// Returns whether the association is valid for a visit.
    pub(super) fn is_for(&self, visit: Visit) -> bool {
        self.only.is_none_or(|only| only == visit)
    }
}

impl ForeignAgent {
    /// Returns the association with a mobile node that has this SPI and authenticates a message, as `verifies` decides. The
    /// mobile node uses no earlier key from now on. Fails if there is none.
    pub(super) fn prove(
        &mut self,
        host: Ipv4Addr,
        spi: Option<u32>,
        verifies: impl Fn(&Association) -> bool,
    ) -> Result<Proof, Reason> {
        let proof = self.proof(host, spi.ok_or(refusal::NO_ASSOCIATION)?, verifies)?;
        if let Some(visit) = proof.only {
            self.keys.used(visit, proof.association.spi);
        }
        Ok(proof)
    }

    fn proof(
        &self,
        host: Ipv4Addr,
        spi: u32,
        verifies: impl Fn(&Association) -> bool,
    ) -> Result<Proof, Reason> {
        let configured = self.mobile_nodes.named(host, spi).map(|association| (association, None));
        let distributed = self.keys.named(host, spi).map(|(key, visit)| (key, Some(visit)));
        let mut known = configured.into_iter().chain(distributed).peekable();
        let failed =
            if known.peek().is_none() { refusal::NO_ASSOCIATION } else { refusal::BAD_AUTHENTICATION };
        let (association, only) = known.find(|(association, _)| verifies(association)).ok_or(failed)?;
        Ok(Proof { association: association.clone(), only })
    }

    /// Returns whether a request has a correct Mobile-Foreign Authentication by a distributed key. The mobile node has been here
    /// before, and this agent still has the key.
    pub(super) fn is_signed_by_key(&self, request: &Request) -> bool {
        let Some(spi) = request.authentication(Between::MobileForeign).map(|found| found.spi) else {
            return false;
        };
        let visit = (request.home, request.home_agent);
        let mut keys = self.keys.named(request.home, spi).filter(|(_, of)| *of == visit);
        keys.any(|(key, _)| request.verify(Between::MobileForeign, key))
    }

    /// Returns the key in a reply to a pending request. The Foreign-Home Authentication of the reply was checked, if there is an
    /// association with the home agent. `None` if there is no key, or it is not used.
    pub(super) fn key_of(&mut self, pending: &Pending, reply: &Reply) -> Option<Association> {
        let request = &pending.request;
        let is_wanted = self.config.distributed_keys && reply.code.is_accepted();
        if !is_wanted || self.mobile_nodes.first(request.home).is_some() {
            return None;
        }
        let key = match reply.distributed_key(&self.config.numbers) {
            Ok(key) => key?,
            Err(malformed) => {
                self.refused.count(malformed.into());
                return None;
            }
        };
        if reply.identification != request.identification {
            self.refused.count(KEY_OF_ANOTHER_REQUEST);
            return None;
        }
        let spi = reply.authentication(Between::ForeignHome)?.spi;
        let Some(foreign) = self.home_agents.named(request.home_agent, spi) else {
            self.refused.count(KEY_NOT_SIGNED);
            return None;
        };
        Some(key.association(&KeyScope::of(request)?, foreign))
    }

    /// Keeps the key of a registration that was accepted, for its lifetime.
    pub(super) fn keep_key(
        &mut self,
        (now, lifetime): (Instant, u16),
        pending: &Pending,
        key: Option<Association>,
        out: &mut Outbox,
    ) {
        let visit = (pending.request.home, pending.request.home_agent);
        let Some(key) = key.filter(|_| lifetime > 0) else { return };
        out.mark(HandoffEvent::KeyReceived { host: visit.0, spi: key.spi }.into());
        self.keys.add(visit, key, now + Duration::from_secs(lifetime.into()));
    }

    /// Returns when the key of a Binding Update that has ended a visit ends.
    pub(super) fn key_after(now: Instant, departure_ends: Instant, deletes: bool) -> Instant {
        if deletes { now + AFTER_DELETION } else { departure_ends }
    }
}
