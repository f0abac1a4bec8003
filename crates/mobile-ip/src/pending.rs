//! The requests that wait for a home agent at a foreign agent, and which of them gives way when all places are taken.
//!
//! A request costs its sender nothing, and neither its link address nor its home address proves anything. So a flood of forged
//! requests takes all places, and the limits here are such that it stops nobody who is registered, and as few newcomers as can be:
//!
//! - A visitor that asks from the link address of its visit has places of its own. There are as many as visitors.
//! - All other requests share the rest. When that is full, a request that has waited for [`GIVES_WAY`] gives its place to a newer one.
//! - Each half of these places belongs to one kind of request: to those that something speaks for, and to all others. A kind
//!   uses free places of the other kind, and gives them back at once when that kind needs them.

use crate::message::Request;
use node::Expiry;
use std::collections::{BTreeMap, BTreeSet};
use wire::{Duration, Instant, Ipv4Addr, Mac, SocketAddrV4};

/// Requests of one mobile node from one link address that wait at a time (ours): it repeats the first before the home
/// agent's time is over.
const PENDING_EACH: usize = 2;
/// Requests from one link address that wait at a time (ours).
const PENDING_OF_LINK_ADDRESS: usize = 4;
/// A request that has waited for so long gives its place to a newer one if there is no other (ours). Most home agents have answered by
/// then; where one has not, the mobile node asks again (RFC 5944, section 3.6.3).
const GIVES_WAY: Duration = Duration::from_millis(250);
/// Home agents remembered that have answered (ours).
const ANSWERED: usize = 256;

/// Which request a reply is to: the home address, and the low half of the Identification (section 3.7.3.1).
pub(crate) type Asked = (Ipv4Addr, u32);

const FIRST: Asked = (Ipv4Addr::UNSPECIFIED, 0);
const LAST: Asked = (Ipv4Addr::BROADCAST, u32::MAX);

/// What speaks for a request, the least first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Standing {
    /// Nothing.
    Unknown,
    /// Its home agent has answered before, or an association proves the mobile node or the home agent.
    Known,
    /// The mobile node is registered here from the same link address.
    Visitor,
}

/// A request that waits for the home agent.
#[derive(Debug)]
pub(crate) struct Pending {
    /// Who asked, by link address.
    pub(crate) mac: Mac,
    /// From where.
    pub(crate) from: SocketAddrV4,
    /// Since when.
    pub(crate) since: Instant,
    pub(crate) standing: Standing,
    pub(crate) request: Request,
}

impl Pending {
    const fn asked(&self) -> Asked {
        (self.request.home, low(self.request.identification))
    }

    /// The home agent, if a visit with it may begin.
    fn wanted(&self) -> Option<Ipv4Addr> {
        (self.request.lifetime != 0).then_some(self.request.home_agent)
    }
}

/// The requests that wait at one foreign agent.
#[derive(Default, Debug)]
pub(crate) struct Waiting {
    /// Places of those that are no visitors.
    capacity: usize,
    all: BTreeMap<Asked, Pending>,
    /// When the home agent has had its time.
    due: Expiry<Asked>,
    by_age: BTreeSet<(Standing, Instant, Asked)>,
    by_mac: BTreeSet<(Mac, Asked)>,
    /// Those with which a visit may begin, by home agent.
    by_home_agent: BTreeSet<(Ipv4Addr, Asked)>,
    /// Those that are no visitors: unknown, known.
    counts: [usize; 2],
    /// Home agents that have answered, and when they did so last.
    answered: BTreeMap<Ipv4Addr, Instant>,
}

impl Waiting {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity, ..Self::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn get(&self, asked: Asked) -> Option<&Pending> {
        self.all.get(&asked)
    }

    pub(crate) fn requests(&self) -> impl Iterator<Item = &Request> {
        self.all.values().map(|pending| &pending.request)
    }

    /// Of a mobile node, from one link address.
    pub(crate) fn of(&self, home: Ipv4Addr, mac: Mac) -> impl Iterator<Item = (Asked, &Pending)> {
        let own = self.all.range((home, 0)..=(home, u32::MAX));
        own.map(|(asked, pending)| (*asked, pending)).filter(move |(_, pending)| pending.mac == mac)
    }

    pub(crate) fn insert(&mut self, due: Instant, pending: Pending) {
        let asked = pending.asked();
        self.remove(asked);
        self.due.set(asked, due);
        self.by_age.insert((pending.standing, pending.since, asked));
        self.by_mac.insert((pending.mac, asked));
        self.by_home_agent.extend(pending.wanted().map(|home_agent| (home_agent, asked)));
        if let Some(count) = self.counts.get_mut(pending.standing as usize) {
            *count += 1;
        }
        self.all.insert(asked, pending);
    }

    pub(crate) fn remove(&mut self, asked: Asked) -> Option<Pending> {
        let pending = self.all.remove(&asked)?;
        self.due.stop(asked);
        self.by_age.remove(&(pending.standing, pending.since, asked));
        self.by_mac.remove(&(pending.mac, asked));
        self.by_home_agent.remove(&(pending.request.home_agent, asked));
        if let Some(count) = self.counts.get_mut(pending.standing as usize) {
            *count -= 1;
        }
        Some(pending)
    }

    /// When the next request has waited in vain.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.due.next()
    }

    /// Takes the next request that has waited in vain.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Pending> {
        let asked = self.due.pop(now)?;
        self.remove(asked)
    }

    /// Notes that a home agent has answered. The one that has not done so for the longest time makes room.
    pub(crate) fn has_answered(&mut self, now: Instant, home_agent: Ipv4Addr) {
        if self.answered.len() >= ANSWERED && !self.answered.contains_key(&home_agent) {
            let oldest = self.answered.iter().min_by_key(|(_, at)| **at).map(|(other, _)| *other);
            oldest.map(|oldest| self.answered.remove(&oldest));
        }
        self.answered.insert(home_agent, now);
    }

    pub(crate) fn is_answered(&self, home_agent: Ipv4Addr) -> bool {
        self.answered.contains_key(&home_agent)
    }

    // --- places ----------------------------------------------------------------------------------------------------

    /// The requests that give way to one more, if it can wait. A mobile node that repeats itself takes the place of its own oldest;
    /// what another link address sends under the same name has other places.
    pub(crate) fn place(&self, new: &Pending) -> Option<Vec<Asked>> {
        let is_visitor = new.standing == Standing::Visitor;
        let own = || {
            let all = self.of(new.request.home, new.mac);
            all.filter(|(_, other)| (other.standing == Standing::Visitor) == is_visitor)
        };
        if own().count() >= PENDING_EACH {
            let oldest = own().min_by_key(|(_, other)| other.request.identification);
            return oldest.map(|(asked, _)| vec![asked]);
        }
        if is_visitor {
            return Some(Vec::new());
        }
        let of_mac = self.by_mac.range((new.mac, FIRST)..=(new.mac, LAST));
        let of_mac = of_mac.filter_map(|(_, asked)| Some((*asked, self.all.get(asked)?)));
        let of_mac = || of_mac.clone().filter(|(_, other)| other.standing != Standing::Visitor);
        if of_mac().count() >= PENDING_OF_LINK_ADDRESS {
            let (asked, oldest) = of_mac().min_by_key(|(asked, other)| (other.since, *asked))?;
            return has_waited(new, oldest.since).then(|| vec![asked]);
        }
        let [unknown, known] = self.counts;
        if unknown + known < self.capacity {
            return Some(Vec::new());
        }
        let takes = if unknown > self.capacity / 2 { Standing::Unknown } else { Standing::Known };
        self.oldest(takes, new).next().map(|asked| vec![asked])
    }

    /// Home agents of requests that wait, of which a class is not taken: those whose requests give way to one more of another home
    /// agent. The first is the one to choose.
    pub(crate) fn home_agent_that_gives_way(
        &self,
        new: &Pending,
        has_class: impl Fn(Ipv4Addr) -> bool,
    ) -> Option<Ipv4Addr> {
        let kinds = [Standing::Unknown, Standing::Known].into_iter().filter(|kind| *kind <= new.standing);
        let all = kinds.flat_map(|kind| self.oldest(kind, new));
        let mut wanted = all.filter_map(|asked| self.all.get(&asked)?.wanted());
        wanted.find(|home_agent| !has_class(*home_agent))
    }

    /// The home agents with which visits may begin.
    pub(crate) fn wanted(&self) -> impl Iterator<Item = Ipv4Addr> {
        self.by_home_agent.iter().map(|(home_agent, _)| *home_agent)
    }

    /// The requests with which a visit with this home agent may begin.
    pub(crate) fn wanting(&self, home_agent: Ipv4Addr) -> Vec<Asked> {
        let same = self.by_home_agent.range((home_agent, FIRST)..=(home_agent, LAST));
        same.map(|(_, asked)| *asked).collect()
    }

    /// Requests of a kind that may give way to a new one, the oldest first. To a request of another kind they do at once: they
    /// are more than their share.
    fn oldest(&self, kind: Standing, new: &Pending) -> impl Iterator<Item = Asked> {
        let all = self.by_age.range((kind, Instant::ZERO, FIRST)..);
        let same = all.take_while(move |(other, ..)| *other == kind);
        let (at, is_other) = (new.since, kind != new.standing);
        same.take_while(move |(_, since, _)| is_other || at >= *since + GIVES_WAY).map(|(.., asked)| *asked)
    }
}

fn has_waited(new: &Pending, since: Instant) -> bool {
    new.since >= since + GIVES_WAY
}

/// The half of an Identification that a reply repeats.
pub(crate) const fn low(identification: u64) -> u32 {
    identification as u32
}
