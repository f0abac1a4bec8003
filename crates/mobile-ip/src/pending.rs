//! The requests that wait for a home agent's reply at a foreign agent. The number of waiting requests is limited: each
//! needs a place. If all places are taken, an earlier request is dropped for a new one, or the new request is denied.
//!
//! Without an association, neither the link address nor the home address of a request is authenticated. So a flood of
//! forged requests can take all shared places. These rules let registered visitors renew, unless the forged requests
//! have the visitor's link address and home address. The rules also let some new mobile nodes register:
//!
//! - A visitor that sends from the link address of its visit has [`PENDING_EACH`] separate places.
//! - All other requests share `capacity` places. When these are full, the oldest request that has waited for
//!   [`GIVES_WAY`] is dropped for a newer one of the same standing.
//! - About half of the shared places are for requests of [`Standing::Known`], and the others are for requests of
//!   [`Standing::Unknown`]. A request of one standing may use a free place of the other standing. It is dropped at once
//!   when a request of the other standing needs the place.

use crate::message::Request;
use node::Expiry;
use std::collections::{BTreeMap, BTreeSet};
use wire::{Duration, Instant, Ipv4Addr, Mac, SocketAddrV4};

/// The maximum number of waiting requests with one home address from one link address (not from an RFC). Requests of
/// visitors and other requests are counted separately. The number is more than one, because a mobile node may repeat a
/// request before the wait of the first one ends.
const PENDING_EACH: usize = 2;
/// The maximum number of waiting requests from one link address, except requests of visitors (not from an RFC).
const PENDING_OF_LINK_ADDRESS: usize = 4;
/// After this time, a waiting request may be dropped for a newer request of the same standing or link address (not from
/// an RFC). The time is longer than a usual round trip to a home agent. If the request was dropped before the reply
/// arrives, the mobile node has to repeat it (RFC 5944, section 3.6.3).
const GIVES_WAY: Duration = Duration::from_millis(250);
/// The maximum number of home agents that are remembered because they have answered (not from an RFC).
const ANSWERED: usize = 256;

/// The key of a request, by which a reply is matched: the home address, and the low half of the Identification (RFC
/// 5944, section 3.7.3.1).
pub(crate) type RequestKey = (Ipv4Addr, u32);

const FIRST: RequestKey = (Ipv4Addr::UNSPECIFIED, 0);
const LAST: RequestKey = (Ipv4Addr::BROADCAST, u32::MAX);

/// How plausible a request is, in ascending order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Standing {
    /// Nothing is known of the mobile node or its home agent.
    Unknown,
    /// The home agent has answered before or has visitors here, or there is an association with it or the mobile node.
    Known,
    /// The mobile node is registered here with the same home agent and from the same link address.
    Visitor,
}

/// A request that waits for the home agent.
#[derive(Debug)]
pub(crate) struct Pending {
    /// The link address of the sender.
    pub(crate) mac: Mac,
    /// The address and port that the reply is sent to.
    pub(crate) from: SocketAddrV4,
    /// When the request arrived.
    pub(crate) since: Instant,
    /// The number of the request in the order of arrival.
    pub(crate) number: u64,
    pub(crate) standing: Standing,
    /// The time to live with which the request arrived.
    pub(crate) ttl: u8,
    /// Whether the request has a correct Mobile-Foreign Authentication, and is no replay of an earlier one. Only with smooth handoffs.
    pub(crate) is_new: bool,
    pub(crate) request: Request,
}

impl Pending {
    const fn asked(&self) -> RequestKey {
        (self.request.home, low(self.request.identification))
    }

    /// Returns the home agent of a request that may begin a visit; `None` for a deregistration.
    fn wanted(&self) -> Option<Ipv4Addr> {
        (self.request.lifetime != 0).then_some(self.request.home_agent)
    }
}

/// The requests that wait at one foreign agent.
#[derive(Default, Debug)]
pub(crate) struct Waiting {
    /// The maximum number of waiting requests, except those of [`Standing::Visitor`].
    capacity: usize,
    all: BTreeMap<RequestKey, Pending>,
    /// When the wait of each request for the home agent ends.
    due: Expiry<RequestKey>,
    by_age: BTreeSet<(Standing, Instant, RequestKey)>,
    by_mac: BTreeSet<(Mac, RequestKey)>,
    /// The requests that may begin a visit, by home agent.
    by_home_agent: BTreeSet<(Ipv4Addr, RequestKey)>,
    /// Number of requests of [`Standing::Unknown`] and of [`Standing::Known`].
    counts: [usize; 2],
    /// When each home agent answered last. Home agents that have not answered are not in the map.
    answered: BTreeMap<Ipv4Addr, Instant>,
}

impl Waiting {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity, ..Self::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn get(&self, asked: RequestKey) -> Option<&Pending> {
        self.all.get(&asked)
    }

    pub(crate) fn requests(&self) -> impl Iterator<Item = &Request> {
        self.all.values().map(|pending| &pending.request)
    }

    /// Returns the requests of a mobile node.
    pub(crate) fn of_host(&self, home: Ipv4Addr) -> impl Iterator<Item = (RequestKey, &Pending)> {
        self.all.range((home, 0)..=(home, u32::MAX)).map(|(asked, pending)| (*asked, pending))
    }

    /// Returns the requests of a mobile node from one link address.
    pub(crate) fn of(&self, home: Ipv4Addr, mac: Mac) -> impl Iterator<Item = (RequestKey, &Pending)> {
        self.of_host(home).filter(move |(_, pending)| pending.mac == mac)
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

    pub(crate) fn remove(&mut self, asked: RequestKey) -> Option<Pending> {
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

    /// Returns when the first wait ends; `None` if no request waits.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.due.next()
    }

    /// Removes and returns a request whose wait has ended; `None` if there is none.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Pending> {
        let asked = self.due.pop(now)?;
        self.remove(asked)
    }

    /// Records that a home agent has answered. If a new home agent has no room in the list, the one that answered least
    /// recently is removed.
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

    /// Returns the requests to drop so that `new` can wait; `None` if `new` must be denied. If [`PENDING_EACH`]
    /// requests with the same addresses as `new` wait, the oldest is to be dropped.
    pub(crate) fn place(&self, new: &Pending) -> Option<Vec<RequestKey>> {
        let is_visitor = new.standing == Standing::Visitor;
        let own = || {
            let all = self.of(new.request.home, new.mac);
            all.filter(|(_, other)| (other.standing == Standing::Visitor) == is_visitor)
        };
        if own().count() >= PENDING_EACH {
            let oldest = own().min_by_key(|(_, other)| other.number);
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

    /// Returns a home agent without a packet class (`has_class` is false) that has a request which may be dropped for
    /// `new`. The standing of this request is not higher than that of `new`. `None` if there is no such home agent.
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

    /// Returns the home agent of each request that may begin a visit. The same home agent may be returned several
    /// times.
    pub(crate) fn wanted(&self) -> impl Iterator<Item = Ipv4Addr> {
        self.by_home_agent.iter().map(|(home_agent, _)| *home_agent)
    }

    /// Returns the requests that may begin a visit with this home agent.
    pub(crate) fn wanting(&self, home_agent: Ipv4Addr) -> Vec<RequestKey> {
        let same = self.by_home_agent.range((home_agent, FIRST)..=(home_agent, LAST));
        same.map(|(_, asked)| *asked).collect()
    }

    /// Returns the requests of standing `kind` that may be dropped for `new`, the oldest first. Requests of the same
    /// standing as `new` must have waited for [`GIVES_WAY`]. Requests of another standing need not have waited.
    fn oldest(&self, kind: Standing, new: &Pending) -> impl Iterator<Item = RequestKey> {
        let all = self.by_age.range((kind, Instant::ZERO, FIRST)..);
        let same = all.take_while(move |(other, ..)| *other == kind);
        let (at, is_other) = (new.since, kind != new.standing);
        same.take_while(move |(_, since, _)| is_other || at >= *since + GIVES_WAY).map(|(.., asked)| *asked)
    }
}

fn has_waited(new: &Pending, since: Instant) -> bool {
    new.since >= since + GIVES_WAY
}

/// Returns the low half of an Identification, which a reply repeats.
pub(crate) const fn low(identification: u64) -> u32 {
    identification as u32
}
