//! The messages of mobile nodes that a foreign agent remembers, so that another host on the link cannot repeat them with their
//! authentication.

use super::keys::AFTER_DELETION;
use super::{SEEN, Visit};
use crate::message::Request;
use crate::pending::Pending;
use std::collections::BTreeMap;
use wire::{Instant, Ipv4Addr, Mac, ntp_distance};

/// The largest number of mobile nodes of which requests, and of which Binding Updates are remembered (not from the draft).
const HOSTS: usize = 1024;

/// What a foreign agent remembers of the messages of mobile nodes, by home address; of at most [`HOSTS`] mobile nodes.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    /// The last authenticated requests. Another host on the link cannot repeat them, but for an unanswered last one.
    asked: BTreeMap<Ipv4Addr, Asked>,
    /// The last accepted Binding Updates.
    updates: BTreeMap<Ipv4Addr, Updates>,
}

/// The last authenticated requests of a mobile node that were no replays.
#[derive(Debug, Default)]
struct Asked {
    /// In the order of arrival; at most [`SEEN`].
    requests: Vec<AskedRequest>,
    /// Whether a home agent has answered the last one.
    is_answered: bool,
    /// When the last one has arrived.
    last: Instant,
}

/// An authenticated request.
#[derive(Debug)]
struct AskedRequest {
    home_agent: Ipv4Addr,
    identification: u64,
    from: Mac,
    /// If the mobile node has left by a later Binding Update: until when an acceptance of this request begins no visit.
    left: Option<Instant>,
}

/// The last accepted Binding Updates of a mobile node. If its clock was ahead, they are later than its next requests, and another host
/// could send them again after it has come back.
#[derive(Debug, Default)]
struct Updates {
    /// The home agent of the visit and the Identification of each, in the order of arrival; at most [`SEEN`].
    accepted: Vec<(Ipv4Addr, u64)>,
    /// Whether a request that was accepted later has an earlier Identification. Such mobile nodes are forgotten last.
    is_ahead: bool,
    /// When the last one has arrived.
    last: Instant,
}

impl Asked {
    /// Returns the place of the first request that is not later than this one.
    fn earlier(&self, request: &Request) -> Option<usize> {
        let is_earlier =
            |known: &AskedRequest| ntp_distance(known.identification, request.identification) <= 0;
        self.requests.iter().position(is_earlier)
    }

    /// Returns whether another link address has sent this request.
    fn is_from_another(&self, Pending { mac, request, .. }: &Pending) -> bool {
        self.requests.iter().any(|known| known.identification == request.identification && known.from != *mac)
    }
}

impl Remembered {
    /// Records an authenticated request that is no replay.
    pub(super) fn note_asked(&mut self, Pending { mac, since, request, .. }: &Pending) {
        make_room(&mut self.asked, request.home, |asked| asked.last);
        let asked = self.asked.entry(request.home).or_default();
        asked.last = *since;
        // One from the future counts until its time has come: an earlier one is forgotten first.
        if asked.requests.len() >= SEEN {
            asked.requests.remove(asked.earlier(request).unwrap_or(0));
        }
        asked.requests.push(AskedRequest {
            home_agent: request.home_agent,
            identification: request.identification,
            from: *mac,
            left: None,
        });
        asked.is_answered = false;
    }

    /// Records that a mobile node has left by a Binding Update with this Identification, which is valid for the visits of the home
    /// agents for which `is_own` returns true. `dropped` are its authenticated requests that waited until now for their
    /// replies. They make no later request make room: another host may have repeated them.
    pub(super) fn leave(
        &mut self,
        now: Instant,
        (host, identification): (Ipv4Addr, u64),
        is_own: impl Fn(Ipv4Addr) -> bool,
        dropped: &[&Pending],
    ) {
        for pending in dropped {
            let has_place =
                |asked: &Asked| asked.requests.len() < SEEN || asked.earlier(&pending.request).is_some();
            if !self.was_asked(&pending.request) && self.asked.get(&host).is_none_or(has_place) {
                self.note_asked(pending);
            }
        }
        let known = self.asked.get_mut(&host).into_iter().flat_map(|asked| &mut asked.requests);
        let is_left = |known: &AskedRequest| {
            is_own(known.home_agent) && ntp_distance(identification, known.identification) > 0
        };
        for request in known.filter(|known| is_left(known)) {
            request.left.get_or_insert(now + AFTER_DELETION);
        }
    }

    /// Returns whether a mobile node has sent this authenticated request before a Binding Update by which it has left. It does not
    /// send the request again, to none of its home agents.
    pub(super) fn has_left(&self, now: Instant, request: &Request) -> bool {
        let known = self.asked.get(&request.home).into_iter().flat_map(|asked| &asked.requests);
        let mut known = known.filter(|known| known.identification == request.identification);
        known.any(|known| known.left.is_some_and(|until| now < until))
    }

    /// Records that a Binding Update was accepted.
    pub(super) fn note_update(&mut self, now: Instant, (host, home_agent): Visit, identification: u64) {
        make_room(&mut self.updates, host, |known| (known.is_ahead, known.last));
        let known = self.updates.entry(host).or_default();
        known.last = now;
        if known.accepted.len() >= SEEN {
            let is_earlier = |other: &(Ipv4Addr, u64)| ntp_distance(other.1, identification) <= 0;
            known.accepted.remove(known.accepted.iter().position(is_earlier).unwrap_or(0));
        }
        known.accepted.push((home_agent, identification));
    }

    /// Notes that a request of a visit was accepted. Other home agents may have accepted it for another host: nothing is forgotten.
    pub(super) fn note_accepted(&mut self, (host, home_agent): Visit, request: u64) {
        if let Some(known) = self.updates.get_mut(&host) {
            let is_later = |update: u64| ntp_distance(update, request) > 0;
            known.is_ahead |=
                known.accepted.iter().any(|(by, update)| *by == home_agent && is_later(*update));
        }
    }

    /// Returns whether a Binding Update with this Identification was accepted.
    pub(super) fn was_accepted(&self, host: Ipv4Addr, identification: u64) -> bool {
        self.updates
            .get(&host)
            .is_some_and(|known| known.accepted.iter().any(|(_, update)| *update == identification))
    }

    /// Records that a home agent has answered a request.
    pub(super) fn note_answered(&mut self, request: &Request) {
        let asked = self.asked.get_mut(&request.home);
        let is_last = |asked: &&mut Asked| {
            asked.requests.last().is_some_and(|known| known.identification == request.identification)
        };
        if let Some(asked) = asked.filter(is_last) {
            asked.is_answered = true;
        }
    }

    /// Returns whether an authenticated request with this Identification is known.
    pub(super) fn was_asked(&self, request: &Request) -> bool {
        let asked = self.asked.get(&request.home);
        asked.is_some_and(|asked| {
            asked.requests.iter().any(|known| known.identification == request.identification)
        })
    }

    /// Returns whether another link address has sent this authenticated request.
    pub(super) fn is_from_another(&self, pending: &Pending) -> bool {
        self.asked.get(&pending.request.home).is_some_and(|asked| asked.is_from_another(pending))
    }

    /// Returns whether another link address has sent the same authenticated request before, and it was answered, or a later one is known.
    /// With nonces, a mobile node repeats an unanswered one without a change, also from a new link address.
    pub(super) fn was_asked_by_another(&self, pending: &Pending) -> bool {
        let Some(asked) = self.asked.get(&pending.request.home) else { return false };
        let last = asked.requests.last().map(|known| known.identification);
        let may_repeat = !asked.is_answered && last == Some(pending.request.identification);
        !may_repeat && asked.is_from_another(pending)
    }
}

/// Forgets the mobile node with the lowest `rank` if the table is full and does not have `host`.
fn make_room<V, R: Ord>(table: &mut BTreeMap<Ipv4Addr, V>, host: Ipv4Addr, rank: impl Fn(&V) -> R) {
    if table.len() < HOSTS || table.contains_key(&host) {
        return;
    }
    let lowest = table.iter().min_by_key(|(_, known)| rank(known)).map(|(host, _)| *host);
    lowest.map(|host| table.remove(&host));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::RequestFlags;
    use crate::pending::Standing;
    use wire::SocketAddrV4;

    const AGENTS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 1, 0, 2), Ipv4Addr::new(10, 1, 0, 3)];
    const HOST: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 7);

    fn asked(home_agent: Ipv4Addr, identification: u64) -> Pending {
        let request = Request {
            flags: RequestFlags::default(),
            lifetime: 30,
            home: HOST,
            home_agent,
            care_of: Ipv4Addr::new(10, 3, 0, 1),
            identification,
            extensions: Vec::new(),
        };
        let from = SocketAddrV4::new(HOST, 434);
        Pending {
            mac: Mac([2; 6]),
            from,
            since: Instant::ZERO,
            number: 1,
            standing: Standing::Known,
            ttl: 255,
            is_new: true,
            request,
        }
    }

    /// A distributed key is valid for one home agent.
    #[test]
    fn an_update_counts_for_the_requests_of_its_home_agents_only() {
        let mut remembered = Remembered::default();
        let [own, other, later] =
            [(0, 1), (1, 2), (0, 9)].map(|(agent, number)| asked(AGENTS[agent], number));
        for pending in [&own, &other, &later] {
            remembered.note_asked(pending);
        }
        remembered.leave(Instant::ZERO, (HOST, 5), |agent| agent == AGENTS[0], &[]);
        let has_left = |now| [&own, &other, &later].map(|pending| remembered.has_left(now, &pending.request));
        assert_eq!(has_left(Instant::ZERO), [true, false, false]);
        assert_eq!(has_left(Instant::ZERO + AFTER_DELETION), [false; 3]);
    }

    /// A host has repeated an old request, which waits when the mobile node leaves. The agent still knows one from the future.
    #[test]
    fn a_dropped_request_makes_no_later_one_make_room() {
        let mut remembered = Remembered::default();
        let all: Vec<_> = (0..SEEN as u64).map(|number| asked(AGENTS[0], 100 - number)).collect();
        for pending in &all {
            remembered.note_asked(pending);
        }
        let [old, new] = [1, 200].map(|number| asked(AGENTS[0], number));
        remembered.leave(Instant::ZERO, (HOST, 250), |_| true, &[&old, &new]);
        assert!(!remembered.was_asked(&old.request) && remembered.was_asked(&new.request));
        assert!(all[1..].iter().all(|pending| remembered.has_left(Instant::ZERO, &pending.request)));
    }
}
