//! The requests of a visit, so that a host that has recorded one of them cannot begin a visit with it. This applies also after the
//! mobile node has left: its home agent answers a repetition of the last accepted request again.

use super::{SEEN, Visit, of_host};
use std::collections::{BTreeMap, VecDeque};
use wire::{Instant, Ipv4Addr, ntp_distance};

/// The largest number of visits that have ended and are remembered, without those for which packets are forwarded (not from the
/// draft). The oldest makes room.
const ENDED: usize = 1024;
/// The number of groups of home addresses for which the last message of a visit that has made room is known (not from the draft).
const GROUPS: u32 = 1024;

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

impl Gone {
    /// Returns the latest Identification of the Binding Update and the requests.
    fn latest(&self) -> u64 {
        self.history.seen.iter().copied().fold(self.identification, later)
    }
}

/// The visits that have ended, and for which no packets are forwarded; at most [`ENDED`].
///
/// A mobile node with a key can end many visits, with invented home agents, so that the records of others make room. This must not
/// permit a host to repeat their requests. So the latest Identification of a record that makes room is still known for its group of home
/// addresses: until the record would have ended, only later messages of these mobile nodes begin a visit. A mobile node whose
/// requests are from the future, or have nonces, may have to wait for this time.
#[derive(Debug, Default)]
pub(super) struct Ended {
    all: BTreeMap<Visit, Gone>,
    /// The latest Identification of the records that have made room, and until when it counts, by group of home addresses.
    forgotten: BTreeMap<u32, (u64, Instant)>,
}

impl Ended {
    /// Records a visit that has ended. Replaces an earlier record of this visit.
    pub(super) fn insert(&mut self, now: Instant, visit: Visit, gone: Gone) {
        self.all.retain(|_, gone| now < gone.until);
        self.forgotten.retain(|_, (_, until)| now < *until);
        if self.all.len() >= ENDED && !self.all.contains_key(&visit) {
            let oldest = self.all.iter().min_by_key(|(_, gone)| gone.until).map(|(visit, _)| *visit);
            if let Some((visit, gone)) = oldest.and_then(|oldest| self.all.remove_entry(&oldest)) {
                self.forget(visit.0, &gone);
            }
        }
        self.all.insert(visit, gone);
    }

    fn forget(&mut self, host: Ipv4Addr, gone: &Gone) {
        let (latest, until) = (gone.latest(), gone.until);
        let group = self.forgotten.entry(group_of(host)).or_insert((latest, until));
        *group = (later(group.0, latest), group.1.max(until));
    }

    /// Removes the record of a visit.
    pub(super) fn remove(&mut self, visit: Visit) {
        self.all.remove(&visit);
    }

    /// Returns the record of a visit; `None` if there is none at `now`.
    pub(super) fn get(&self, now: Instant, visit: Visit) -> Option<&Gone> {
        self.all.get(&visit).filter(|gone| now < gone.until)
    }

    /// Returns the record of a visit, to change it; `None` if there is none at `now`.
    pub(super) fn get_mut(&mut self, now: Instant, visit: Visit) -> Option<&mut Gone> {
        self.all.get_mut(&visit).filter(|gone| now < gone.until)
    }

    /// Returns the records of a mobile node at `now`, one for each of its home agents.
    pub(super) fn of_host(&self, now: Instant, host: Ipv4Addr) -> impl Iterator<Item = (Visit, &Gone)> {
        of_host(&self.all, host).filter(move |(_, gone)| now < gone.until)
    }

    /// Returns the Identification that a message of a visit must exceed because a record has made room, which may be that of
    /// this visit; `None` if there is no such record, or if there is one of this visit.
    pub(super) fn forgotten(&self, now: Instant, visit: Visit) -> Option<u64> {
        let (latest, until) = self.forgotten.get(&group_of(visit.0))?;
        (now < *until && self.get(now, visit).is_none()).then_some(*latest)
    }
}

/// Returns the group of a home address.
const fn group_of(host: Ipv4Addr) -> u32 {
    host.to_bits() % GROUPS
}

/// Returns the later one of two Identifications.
fn later(one: u64, other: u64) -> u64 {
    if ntp_distance(other, one) > 0 { other } else { one }
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

    /// The oldest record makes room. Its latest Identification is known until the record would have ended, for its group only.
    #[test]
    fn the_oldest_visit_makes_room_and_its_latest_message_stays_known() {
        let agent = Ipv4Addr::new(10, 1, 0, 2);
        let visit = |number: u32| (Ipv4Addr::from_bits(0x0a02_0000 + number), agent);
        let until = |number: u32| Instant::from_millis(30_000 + u64::from(number));
        let gone = |number: u32| {
            let mut history = History::default();
            for request in [7, 90, 8] {
                history.sees(request);
            }
            Gone { identification: 50, until: until(number), history }
        };
        let mut ended = Ended::default();
        // The oldest one has neither the first nor the last address.
        for number in 1..=ENDED as u32 {
            let rank = if number == 5 { 0 } else { number };
            ended.insert(Instant::ZERO, visit(number), gone(rank));
        }
        assert_eq!(ended.forgotten(Instant::ZERO, visit(5)), None);
        ended.insert(Instant::ZERO, visit(5), gone(0));
        assert!(ended.get(Instant::ZERO, visit(5)).is_some(), "it has a place already");
        ended.insert(Instant::ZERO, visit(2000), gone(2000));
        assert_eq!(ended.all.len(), ENDED);
        assert!(ended.get(Instant::ZERO, visit(5)).is_none() && ended.get(Instant::ZERO, visit(6)).is_some());
        let before = Instant::from_millis(29_999);
        assert_eq!(ended.forgotten(before, visit(5)), Some(90));
        assert_eq!(ended.forgotten(before, (visit(5).0, Ipv4Addr::new(10, 1, 0, 3))), Some(90));
        assert_eq!([4, 6, 2000].map(|number| ended.forgotten(before, visit(number))), [None; 3]);
        assert_eq!(ended.forgotten(until(0), visit(5)), None);
        // When they have ended, there is room again.
        ended.insert(until(3000), visit(3), gone(4000));
        assert_eq!((ended.all.len(), ended.forgotten.len()), (1, 0));
    }
}
