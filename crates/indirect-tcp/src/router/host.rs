//! The state that a router has of a mobile host.

use super::connection::Connection;
use crate::message::{CONNECTIONS, ConnectionId, Greeting, Signed};
use auth::Key;
use node::{Tuple, Value};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wire::{Iface, Ipv4Addr, Mac};

#[derive(Debug)]
pub(super) struct Host {
    pub(super) key: Key,
    /// The sequence of the host's latest greeting, to this or another router.
    pub(super) greeted: u64,
    /// The sequences of the host's latest calls. Calls may arrive out of order, also relative to greetings, but each
    /// counts once.
    calls: BTreeSet<u64>,
    /// Calls up to this sequence are not remembered any more, and are refused.
    called: u64,
    /// Calls that the host's latest greeting to this router names, and that have not come yet.
    pub(super) awaited: BTreeSet<ConnectionId>,
    /// The interface and the link address by which the host is reached, while it is at this router.
    pub(super) way: Option<(Iface, Mac)>,
    /// The greeting with which the host came, while it is at this router.
    pub(super) greeting: Option<Signed<Greeting>>,
    /// The forward pointer to each earlier router, with its answer.
    pub(super) pointers: BTreeMap<Ipv4Addr, Pointer>,
    pub(super) connections: BTreeMap<u32, Connection>,
    /// The handoff of the host's connections to another router.
    pub(super) departure: Option<Departure>,
    /// Connections that were taken from other routers, each with its latest attempt, the last taken at the end. They
    /// decide the answer to a `Status`, by which a router asks again if the answer to its commit was lost. If a
    /// `Status` is about an earlier attempt, that attempt has succeeded: otherwise there would have been no later
    /// attempt.
    taken: VecDeque<(ConnectionId, u32)>,
    /// Connections that were reported to the host as lost, each with the number of further reports.
    lost: VecDeque<(ConnectionId, u32)>,
    /// Tuples that are guarded because of this host (dropped or reset), the oldest first.
    pub(super) silent: VecDeque<Tuple>,
}

/// The number of times that the report of a lost connection is repeated to a host that asks. If one datagram in ten is
/// lost, all six reports are lost once in a million times.
const LOST_AGAIN: u32 = 5;

/// The limit of remembered calls of one host.
const CALLS: usize = 256;
/// The limit of remembered connections of one host that are over.
const OVER: usize = 256;
/// The limit of remembered connections of one host that were taken from other routers.
const TAKEN: usize = 256;
/// The limit of guards for one host: eight for each half of each possible connection.
const GUARDS: usize = 8 * 2 * CONNECTIONS;

impl Host {
    pub(super) const fn new(key: Key) -> Self {
        Self {
            key,
            greeted: 0,
            calls: BTreeSet::new(),
            called: 0,
            awaited: BTreeSet::new(),
            way: None,
            greeting: None,
            pointers: BTreeMap::new(),
            connections: BTreeMap::new(),
            departure: None,
            taken: VecDeque::new(),
            lost: VecDeque::new(),
            silent: VecDeque::new(),
        }
    }

    /// Returns whether a call for this connection is new, and notes the call. A call is new if its sequence was not
    /// used before, and if it is later than the latest greeting or named by this greeting. Sequences up to `called`
    /// count as used.
    pub(super) fn may_call(&mut self, id: ConnectionId) -> bool {
        let (awaited, sequence) = (self.awaited.remove(&id), id.call);
        let timely = sequence > self.called && (awaited || sequence > self.greeted);
        let new = timely && self.calls.insert(sequence);
        if self.calls.len() > CALLS {
            self.called = self.calls.pop_first().unwrap_or(self.called);
        }
        new
    }

    /// Makes all greetings and calls up to this sequence stale.
    pub(super) fn forgets(&mut self, sequence: u64) {
        (self.greeted, self.called) = (sequence, sequence);
    }

    /// Notes a greeting with this sequence, to this or another router.
    pub(super) fn greets(&mut self, sequence: u64) {
        self.greeted = sequence;
        self.awaited.clear();
        self.lost.clear();
    }

    /// Returns the sequence of the latest remembered call, or `None` if there is none.
    pub(super) fn last_call(&self) -> Option<u64> {
        self.calls.last().copied()
    }

    /// Notes connections that are reported to the host as lost.
    pub(super) fn note_lost(&mut self, lost: &[ConnectionId]) {
        self.lost.extend(lost.iter().map(|id| (*id, LOST_AGAIN)));
        while self.lost.len() > CONNECTIONS {
            self.lost.pop_front();
        }
    }

    /// Returns the lost connections to report once more. Removes those that were repeated [`LOST_AGAIN`] times.
    pub(super) fn lost_again(&mut self) -> Vec<ConnectionId> {
        let again = self.lost.iter().map(|(id, _)| *id).collect();
        self.lost.retain_mut(|(_, times)| {
            *times -= 1;
            *times > 0
        });
        again
    }

    /// Notes a guarded tuple. If there are more than `GUARDS`, returns the oldest one, which the caller has to release.
    pub(super) fn note_silent(&mut self, tuple: Tuple) -> Option<Tuple> {
        self.silent.retain(|other| *other != tuple);
        self.silent.push_back(tuple);
        if self.silent.len() > GUARDS { self.silent.pop_front() } else { None }
    }

    /// Returns whether an answer of `router` about the host's connections is outstanding: the connections are offered
    /// to this router, or a commit to it was not answered.
    pub(super) fn waits_for(&self, router: Ipv4Addr) -> bool {
        let mut asked = self.connections.values().filter_map(Connection::committed);
        self.departure.as_ref().is_some_and(|departure| departure.to == router)
            || asked.any(|commit| commit.to == router)
    }

    /// Returns the number of connections that are not over.
    pub(super) fn open(&self) -> usize {
        self.connections.values().filter(|here| !here.is_over()).count()
    }

    /// If more than [`OVER`] connections are over, removes the one of them with the lowest number.
    pub(super) fn bound_over(&mut self) {
        if self.connections.len() - self.open() > OVER {
            let oldest = self.connections.iter().find(|(_, here)| here.is_over()).map(|(number, _)| *number);
            oldest.and_then(|number| self.connections.remove(&number));
        }
    }

    pub(super) fn note_taken(&mut self, id: ConnectionId, attempt: u32) {
        self.taken.retain(|(other, _)| *other != id);
        self.taken.push_back((id, attempt));
        if self.taken.len() > TAKEN {
            self.taken.pop_front();
        }
    }

    /// Returns whether this attempt to hand a connection over to this router has succeeded. The result stays true after
    /// the connection has ended: a former router that asks later has outdated state, and must not continue from it.
    pub(super) fn has_taken(&self, id: ConnectionId, attempt: u32) -> bool {
        self.taken.iter().any(|(other, latest)| *other == id && *latest >= attempt)
    }

    /// Returns the number of connections that are not over, and of forward pointers.
    pub(super) fn entries(&self) -> usize {
        self.connections.values().filter(|here| !here.is_over()).count() + self.pointers.len()
    }

    pub(super) fn status(&self) -> Value {
        let connection = |(number, connection): (&u32, &Connection)| {
            (number.to_string(), Value::from(connection.stage.name()))
        };
        let open = self.connections.iter().filter(|(_, here)| !here.is_over());
        Value::map([
            ("here", Value::from(if self.way.is_some() { "yes" } else { "no" })),
            ("connections", Value::Map(open.map(connection).collect())),
        ])
    }
}

/// The state of the forward pointer to one earlier router.
#[derive(Debug, Default)]
pub(super) struct Pointer {
    /// The number of times that the pointer was sent.
    pub(super) sent: u32,
    /// The number of connections that the earlier router had when it answered, or 0 after it handed over all of them.
    /// `None` before the answer.
    pub(super) answer: Option<u16>,
}

/// A handoff, as the old router sees it.
#[derive(Debug)]
pub(super) struct Departure {
    /// The address of the new router.
    pub(super) to: Ipv4Addr,
    /// The sequence of the host's greeting to the new router.
    pub(super) sequence: u64,
    /// The number of the handoff on the connection to the new router. `None` while that connection is not open.
    pub(super) handoff: Option<u64>,
    /// Whether the new router has accepted the offer.
    pub(super) accepted: bool,
}

#[cfg(test)]
mod tests {
    use super::super::connection::Stage;
    use super::*;
    use crate::message::Entry;

    const fn id(number: u32, call: u64) -> ConnectionId {
        ConnectionId { number, call }
    }

    /// Calls do not change the sequence of the latest greeting. No call counts twice, even if there were many.
    #[test]
    fn many_calls_change_no_greeting() {
        let mut host = Host::new(Key::new([1; 16]));
        host.greets(5);
        for sequence in 6..1_000 {
            assert!(host.may_call(id(1, sequence)));
        }
        assert_eq!(host.greeted, 5);
        assert!((0..1_000).all(|sequence| !host.may_call(id(1, sequence))));
    }

    /// A call that was sent before the greeting, and that the greeting names, may come after the greeting. Another
    /// call with the same number may not.
    #[test]
    fn a_greeting_names_calls_by_number_and_sequence() {
        let mut host = Host::new(Key::new([1; 16]));
        host.greets(10);
        host.awaited.insert(id(1, 5));
        assert!(!host.may_call(id(1, 6)));
        assert!(host.may_call(id(1, 5)));
        assert!(!host.may_call(id(1, 5)), "it was heard");
    }

    /// Connections that are over and reports of lost connections are bounded: the connections with the lowest numbers
    /// and the oldest reports are removed.
    #[test]
    fn what_is_remembered_of_a_host_is_bounded() {
        let mut host = Host::new(Key::new([1; 16]));
        let at = wire::SocketAddrV4::new(Ipv4Addr::new(10, 1, 0, 7), 1);
        let of = |number| Entry {
            id: id(number, 0),
            host: at,
            router: at,
            peer: at,
            closing: false,
            unanswered: false,
            calling: false,
        };
        let most = OVER as u32;
        for number in 0..2 * most {
            let stage = if number == 3 { Stage::Serving } else { Stage::Over };
            host.connections.insert(number, Connection { stage, ..Connection::expected(of(number)) });
            host.bound_over();
        }
        assert_eq!((host.connections.len(), host.open()), (OVER + 1, 1));
        assert_eq!(host.connections.keys().take(2).copied().collect::<Vec<_>>(), [3, most]);
        for number in 0..100 {
            host.note_lost(&[id(number, 0)]);
        }
        let told: Vec<Vec<ConnectionId>> = (0..=LOST_AGAIN).map(|_| host.lost_again()).collect();
        let (last, before) = told.split_last().unwrap();
        let latest = 100 - CONNECTIONS as u32..100;
        assert!(before.iter().all(|told| told.iter().map(|id| id.number).eq(latest.clone())));
        assert!(last.is_empty());
    }

    /// Of the connections that were taken, the one that was taken first is forgotten first, even if its number is not
    /// the lowest. A connection that lives long has a low number, and may be taken last.
    #[test]
    fn what_was_taken_first_is_forgotten_first_whatever_its_number() {
        let mut host = Host::new(Key::new([1; 16]));
        for number in 1_000..1_000 + TAKEN as u32 {
            host.note_taken(id(number, 7), 1);
        }
        host.note_taken(id(1_001, 7), 2);
        host.note_taken(id(5, 7), 3);
        let taken = [(5, 3), (1_001, 1), (1_001, 2)];
        let taken = taken.map(|(number, attempt)| host.has_taken(id(number, 7), attempt));
        assert_eq!(taken, [true; 3]);
        let not = [(5, 4), (1_000, 1)].map(|(number, attempt)| host.has_taken(id(number, 7), attempt));
        assert_eq!(not, [false; 2]);
        assert!(!host.has_taken(id(5, 8), 3), "another connection with its number");
    }
}
