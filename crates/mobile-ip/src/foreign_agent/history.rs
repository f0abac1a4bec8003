//! The requests of a visit, so that a host that has recorded one of them cannot begin a visit with it. This applies also after the
//! mobile node has left: its home agent answers a repetition of the last accepted request again.

use super::{SEEN, Visit, of_host};
use std::collections::{BTreeMap, VecDeque};
use wire::{Instant, Ipv4Addr, ntp_distance};

/// The largest number of visits of one mobile node that have ended and are remembered, without those for which packets are forwarded
/// (not from the draft). The oldest makes room.
const ENDED: usize = SEEN;

/// The requests of a visit.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct History {
    /// The Identifications of the last requests, the oldest first; at most [`SEEN`]. They are not compared as times: with nonces,
    /// they are random.
    seen: VecDeque<u64>,
    /// The Identification of the last request that the home agent has accepted, if the reply repeated all of it: then the home agent
    /// uses timestamps. `None` with nonces.
    accepted: Option<u64>,
}

impl History {
    /// Records the Identification of a request.
    pub(super) fn sees(&mut self, identification: u64) {
        if self.seen.contains(&identification) {
            return;
        }
        if self.seen.len() >= SEEN {
            self.seen.pop_front();
        }
        self.seen.push_back(identification);
    }

    /// Removes the Identification of a request.
    pub(super) fn forget(&mut self, identification: u64) {
        self.seen.retain(|seen| *seen != identification);
    }

    /// Returns whether a request with this Identification is recorded.
    pub(super) fn has(&self, identification: u64) -> bool {
        self.seen.contains(&identification)
    }

    /// Records that the home agent has accepted a `request` by a `reply` with these Identifications.
    pub(super) fn accept(&mut self, request: u64, reply: u64) {
        self.accepted = (request == reply).then_some(request);
    }

    /// Returns whether the home agent cannot have accepted a `request` by a `reply` with these Identifications after the last one: with
    /// timestamps, a reply repeats the Identification of its request, and each accepted request is later than the last one.
    pub(super) fn is_earlier(&self, request: u64, reply: u64) -> bool {
        self.accepted.is_some_and(|last| reply != request || ntp_distance(request, last) <= 0)
    }
}

/// A mobile node that has left, and to which no packets are forwarded.
#[derive(Debug)]
pub(super) struct Gone {
    /// The Identification of the Binding Update.
    pub(super) identification: u64,
    /// Until when it is remembered.
    pub(super) until: Instant,
    /// The requests of the visit that has ended.
    pub(super) history: History,
}

/// The visits that have ended, and for which no packets are forwarded; at most [`ENDED`] of each mobile node. A record begins with an
/// authenticated message of the mobile node. So a mobile node that ends the visits of many home agents loses records of its own only.
#[derive(Debug, Default)]
pub(super) struct Ended {
    all: BTreeMap<Visit, Gone>,
    /// Records whose time has passed are removed when there are more than this.
    most: usize,
}

impl Ended {
    /// Records a visit that has ended. Replaces an earlier record of this visit.
    pub(super) fn insert(&mut self, now: Instant, visit: Visit, gone: Gone) {
        if self.all.len() > self.most {
            self.all.retain(|_, gone| now < gone.until);
            self.most = self.all.len() * 2;
        }
        self.all.insert(visit, gone);
        if of_host(&self.all, visit.0).count() > ENDED {
            let others = of_host(&self.all, visit.0).filter(|(other, _)| *other != visit);
            let oldest = others.min_by_key(|(_, gone)| gone.until).map(|(other, _)| other);
            oldest.map(|oldest| self.all.remove(&oldest));
        }
    }

    /// Removes the record of a visit.
    pub(super) fn remove(&mut self, visit: Visit) {
        self.all.remove(&visit);
    }

    /// Returns the record of a visit; `None` if there is none at `now`.
    pub(super) fn get(&self, now: Instant, visit: Visit) -> Option<&Gone> {
        self.all.get(&visit).filter(|gone| now < gone.until)
    }

    /// Returns the records of a mobile node at `now`, one for each of its home agents.
    pub(super) fn of_host(&self, now: Instant, host: Ipv4Addr) -> impl Iterator<Item = (Visit, &Gone)> {
        of_host(&self.all, host).filter(move |(_, gone)| now < gone.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_timestamps_each_accepted_request_is_later() {
        let mut history = History::default();
        assert!(!history.is_earlier(5, 9), "nothing is known");
        history.accept(5, 5);
        assert_eq!([4, 5, 6].map(|request| history.is_earlier(request, request)), [true, true, false]);
        assert!(history.is_earlier(6 + (7 << 32), 6), "only the low half is equal");
        history.accept(6, 9);
        assert!(!history.is_earlier(5, 8), "nonces are random");
    }

    #[test]
    fn the_last_sixteen_requests_are_recorded_once() {
        let mut history = History::default();
        for number in [0, 1, 1, 1].into_iter().chain(2..=SEEN as u64) {
            history.sees(number);
        }
        assert_eq!([0, 1, SEEN as u64].map(|number| history.has(number)), [false, true, true]);
    }

    /// The oldest record of the same mobile node makes room, and a record counts until its time has passed.
    #[test]
    fn a_mobile_node_takes_the_room_of_its_own_visits_only() {
        let host = |number: u32| Ipv4Addr::from_bits(0x0a02_0000 + number);
        let visit = |number: u32| (host(1), Ipv4Addr::from_bits(0x0b00_0000 + number));
        let gone = |ms: u64| Gone {
            identification: 50,
            until: Instant::from_millis(ms),
            history: History::default(),
        };
        let now = Instant::ZERO;
        let mut ended = Ended::default();
        let other = (host(2), visit(1).1);
        ended.insert(now, other, gone(1));
        // The oldest one has neither the first nor the last address.
        for number in 1..=ENDED as u32 {
            ended.insert(now, visit(number), gone(if number == 5 { 20 } else { 100 + u64::from(number) }));
        }
        ended.insert(now, visit(5), gone(30));
        assert_eq!(ended.of_host(now, host(1)).count(), ENDED, "it has a place already");
        ended.insert(now, visit(99), gone(10));
        assert!(ended.get(now, visit(5)).is_none() && ended.get(now, visit(99)).is_some());
        assert_eq!(ended.of_host(now, host(1)).count(), ENDED);
        assert!(ended.get(now, other).is_some());
        let later = Instant::from_millis(101);
        assert!(ended.get(later, visit(1)).is_none() && ended.get(later, visit(2)).is_some());
        // Later ones remove those whose time has passed.
        for number in 0..100 {
            let now = Instant::from_millis(1000 + u64::from(number));
            ended.insert(now, (host(1000 + number), visit(1).1), gone(1001 + u64::from(number)));
        }
        assert!(ended.all.len() < 10, "{}", ended.all.len());
    }
}
