//! The requests of a visit, so that a host that has recorded one of them cannot begin a visit with it. This applies also after the
//! mobile node has left: its home agent answers a repetition of the last accepted request again.

use super::SEEN;
use std::collections::VecDeque;
use wire::ntp_distance;

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
}
