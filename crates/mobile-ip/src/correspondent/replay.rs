//! The protection of a correspondent against repeated and old Binding Updates.

use crate::config::Replay;
use crate::refusal;
use auth::ReplayWindow;
use std::collections::{BTreeMap, VecDeque};
use wire::{Ipv4Addr, Reason, Rng, ntp_distance};

/// The Binding Update has neither the nonce that the last one announced, nor one of the last Binding Requests about this
/// mobile node.
pub const WRONG_NONCE: Reason = Reason("wrong_nonce");

/// The maximum number of mobile nodes of one home agent about which Binding Requests wait for an answer, with nonces (not from an
/// RFC). A further one replaces the oldest.
const MOST_ASKED: usize = 16;
/// The time for which the Binding Requests about one mobile node have the same nonce, in units of 2^-32 s (not from an RFC). A
/// home agent does not answer within a second after another answer.
const SAME_NONCE: i64 = 1 << 32;
/// The number of last nonces about one mobile node that are valid (not from an RFC). So an answer is valid for at least 15 s after its
/// Request, also if old Updates arrive all the time, and cause Requests.
const VALID_NONCES: usize = 16;

/// The maximum number of deletions by one home agent that are recognized when they are repeated (not from an RFC). A further
/// one replaces the oldest.
const MOST_DELETED: usize = 64;

/// The nonces of the Binding Requests about one mobile node since a Binding Update about it was accepted.
#[derive(Debug)]
struct Asked {
    home: Ipv4Addr,
    /// The last nonces, from the oldest to the latest.
    nonces: VecDeque<u32>,
    /// The NTP time at which the latest nonce was used first.
    since: u64,
}

impl Asked {
    /// Returns the nonce of a Binding Request that is sent at `now`: the latest one, or after [`SAME_NONCE`] `random`. The home agent
    /// answers each Identification once, so if the answer is lost, the same nonce can get no other one.
    fn nonce(&mut self, now: u64, random: u32) -> u32 {
        let is_present = (0..SAME_NONCE).contains(&ntp_distance(now, self.since));
        if let Some(latest) = self.nonces.back().filter(|_| is_present) {
            return *latest;
        }
        if self.nonces.len() == VALID_NONCES {
            self.nonces.pop_front();
        }
        self.nonces.push_back(random);
        self.since = now;
        random
    }
}

/// What is known about the Binding Updates of one home agent.
#[derive(Debug)]
struct Known {
    /// A Binding Update about a mobile node without an entry must be later than this timestamp. It is the latest one
    /// that an entry had which was removed, and at least the start of this host.
    floor: u64,
    /// The latest timestamp of an authentic Binding Update that was too far ahead of the clock; `None` if none was.
    ahead: Option<u64>,
    /// The nonce of the next Binding Update, from the last one; `None` if there was none.
    next: Option<u32>,
    /// The nonces of Binding Requests, in the order of the last Request about each mobile node. They are valid until a Binding
    /// Update about this mobile node is accepted.
    asked: VecDeque<Asked>,
    /// The Identification of the last Binding Update that deleted the entry of each mobile node, from the oldest to the latest.
    deleted: VecDeque<(Ipv4Addr, u64)>,
}

/// What is known about the Binding Updates of each home agent. Its size does not depend on the number of mobile nodes.
#[derive(Debug)]
pub(super) struct ReplayState {
    window: ReplayWindow,
    started: u64,
    known: BTreeMap<Ipv4Addr, Known>,
    rng: Rng,
}

impl ReplayState {
    pub(super) const fn new(window: ReplayWindow, rng: Rng) -> Self {
        Self { window, started: 0, known: BTreeMap::new(), rng }
    }

    /// Notes the NTP time of the start. Binding Updates from before may be repetitions.
    pub(super) fn start(&mut self, now: u64) {
        self.started = now;
        self.rng = self.rng.fork(&now.to_string());
    }

    /// Notes that the clock was set: the NTP time of the start is `started`.
    pub(super) fn restarted(&mut self, started: u64) {
        let old = std::mem::replace(&mut self.started, started);
        for known in self.known.values_mut().filter(|known| known.floor == old) {
            known.floor = started;
        }
    }

    fn of(&mut self, home_agent: Ipv4Addr) -> &mut Known {
        let floor = self.started;
        self.known.entry(home_agent).or_insert(Known {
            floor,
            ahead: None,
            next: None,
            asked: VecDeque::new(),
            deleted: VecDeque::new(),
        })
    }

    /// Checks the Identification of an authentic Binding Update about `home` that arrives at `now`. `last` is the
    /// Identification of the entry that the Update changes. Fails with the reason to refuse it.
    pub(super) fn check(
        &mut self,
        now: u64,
        (home_agent, home): (Ipv4Addr, Ipv4Addr),
        style: Replay,
        last: Option<u64>,
        identification: Option<u64>,
    ) -> Result<u64, Reason> {
        let identification = identification.ok_or(refusal::NO_IDENTIFICATION)?;
        let window = self.window;
        let known = self.of(home_agent);
        match style {
            Replay::Timestamps => {
                window.check(now, last.or(Some(known.floor)), identification).map_err(Reason::from)?;
            }
            Replay::Nonces => {
                let this = identification as u32;
                let is_answer = |asked: &Asked| asked.home == home && asked.nonces.contains(&this);
                if Some(this) != known.next && !known.asked.iter().any(is_answer) {
                    return Err(WRONG_NONCE);
                }
                known.next = Some(announced(identification));
                known.asked.retain(|asked| asked.home != home);
            }
        }
        Ok(identification)
    }

    /// Notes that an accepted Binding Update has deleted the entry of `home`, or has found none.
    pub(super) fn deleted(&mut self, (home_agent, home): (Ipv4Addr, Ipv4Addr), identification: u64) {
        let deleted = &mut self.of(home_agent).deleted;
        deleted.retain(|(other, _)| *other != home);
        if deleted.len() == MOST_DELETED {
            deleted.pop_front();
        }
        deleted.push_back((home, identification));
    }

    /// Returns whether an authentic Binding Update repeats the last one that has deleted the entry of `home`.
    pub(super) fn is_repeated(&self, (home_agent, home): (Ipv4Addr, Ipv4Addr), identification: u64) -> bool {
        let known = self.known.get(&home_agent);
        known.is_some_and(|known| known.deleted.contains(&(home, identification)))
    }

    /// Notes the timestamp of an entry that is removed, so that no older Binding Update sets it again.
    pub(super) fn raise(&mut self, home_agent: Ipv4Addr, style: Replay, identification: u64) {
        let known = self.of(home_agent);
        if style == Replay::Timestamps && ntp_distance(identification, known.floor) > 0 {
            known.floor = identification;
        }
    }

    /// Returns whether an authentic Binding Update outside of the window is no repetition, if it is later than the present entry.
    ///
    /// One from the past ends no entry twice: an entry that is made after it has a later timestamp. One from the future could end each
    /// entry until its time comes. So it must be later than all such ones before, of which the latest is noted.
    pub(super) fn is_new_outside(&mut self, now: u64, home_agent: Ipv4Addr, identification: u64) -> bool {
        if ntp_distance(identification, now) < 0 {
            return true;
        }
        let ahead = &mut self.of(home_agent).ahead;
        let is_new = ahead.is_none_or(|latest| ntp_distance(identification, latest) > 0);
        if is_new {
            *ahead = Some(identification);
        }
        is_new
    }

    /// Returns the Identification of a Binding Request about `home`. With nonces, the low half is the nonce that the answer
    /// must have, and the high half is one of the home agent: `announced`, or that of the last Update that was accepted. So the home
    /// agent recognizes a repeated Request. The low half changes at most once in [`SAME_NONCE`], and the last ones stay valid until an
    /// Update about `home` is accepted. Otherwise, old Updates that arrive again, and cause Requests, would make the answer under way
    /// useless each time.
    pub(super) fn request(
        &mut self,
        now: u64,
        (home_agent, home): (Ipv4Addr, Ipv4Addr),
        style: Replay,
        announced: Option<u32>,
    ) -> u64 {
        let random = self.rng.draw() as u32;
        match style {
            Replay::Timestamps => now,
            Replay::Nonces => {
                let known = self.of(home_agent);
                let high = announced.or(known.next).unwrap_or_default();
                let all = &mut known.asked;
                let open = all.iter().position(|asked| asked.home == home);
                let open = open.and_then(|open| all.remove(open));
                let mut asked = open.unwrap_or_else(|| Asked { home, nonces: VecDeque::new(), since: now });
                let low = asked.nonce(now, random);
                if all.len() == MOST_ASKED {
                    all.pop_front();
                }
                all.push_back(asked);
                u64::from(high) << 32 | u64::from(low)
            }
        }
    }
}

/// Returns the nonce that a Binding Update announces.
pub(super) const fn announced(identification: u64) -> u32 {
    (identification >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Duration;

    const AGENT: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);
    const HOME: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 7);
    const SECOND: u64 = 1 << 32;

    fn state() -> ReplayState {
        let mut state = ReplayState::new(ReplayWindow::new(Duration::from_secs(7)), Rng::new(1));
        state.start(100 * SECOND);
        state
    }

    #[test]
    fn a_timestamp_must_be_later_than_the_entry_or_than_all_removed_ones() {
        let mut state = state();
        let mut check =
            |last, id| state.check(103 * SECOND, (AGENT, HOME), Replay::Timestamps, last, Some(id));
        let stale = Err(Reason("stale_timestamp"));
        assert_eq!(check(None, 100 * SECOND), stale, "it may be from before the start");
        assert_eq!(check(None, 101 * SECOND), Ok(101 * SECOND));
        assert_eq!(check(Some(101 * SECOND), 101 * SECOND), stale);
        assert_eq!(check(Some(101 * SECOND), 101 * SECOND + 1), Ok(101 * SECOND + 1));
        assert_eq!(check(None, 111 * SECOND), Err(Reason("outside_window")));
        state.raise(AGENT, Replay::Timestamps, 102 * SECOND);
        state.raise(AGENT, Replay::Timestamps, 101 * SECOND);
        let mut check =
            |last, id| state.check(103 * SECOND, (AGENT, HOME), Replay::Timestamps, last, Some(id));
        assert_eq!(check(None, 102 * SECOND), stale);
        assert_eq!(check(None, 102 * SECOND + 1), Ok(102 * SECOND + 1));
        assert_eq!(check(Some(SECOND), 102 * SECOND), Ok(102 * SECOND), "another entry");
        let none = state.check(103 * SECOND, (AGENT, HOME), Replay::Timestamps, None, None);
        assert_eq!(none, Err(refusal::NO_IDENTIFICATION));
    }

    /// The clock of one host is wrong. The home agent repeats its Update with a later timestamp.
    #[test]
    fn an_update_from_the_future_is_new_once() {
        let mut state = state();
        let mut is_new = |agent, id| state.is_new_outside(103 * SECOND, agent, id);
        assert!(is_new(AGENT, 160 * SECOND) && is_new(AGENT, 160 * SECOND + 1));
        assert!(!is_new(AGENT, 160 * SECOND + 1) && !is_new(AGENT, 150 * SECOND));
        assert!(is_new(Ipv4Addr::new(10, 1, 0, 3), 150 * SECOND), "another home agent");
        assert!(is_new(AGENT, 90 * SECOND), "from the past");
        // It is not a time of this clock: earlier timestamps are accepted.
        let checked = state.check(103 * SECOND, (AGENT, HOME), Replay::Timestamps, None, Some(102 * SECOND));
        assert_eq!(checked, Ok(102 * SECOND));
    }

    #[test]
    fn if_the_clock_is_set_the_time_of_the_start_is_set_too() {
        let mut state = state();
        let check = |state: &mut ReplayState, id| {
            state.check(51 * SECOND, (AGENT, HOME), Replay::Timestamps, None, Some(id))
        };
        assert_eq!(check(&mut state, 50 * SECOND), Err(Reason("stale_timestamp")));
        state.restarted(45 * SECOND);
        assert_eq!(check(&mut state, 45 * SECOND), Err(Reason("stale_timestamp")));
        assert_eq!(check(&mut state, 50 * SECOND), Ok(50 * SECOND));
        // What an entry had is not a time of this clock.
        state.raise(AGENT, Replay::Timestamps, 50 * SECOND);
        state.restarted(44 * SECOND);
        assert_eq!(check(&mut state, 49 * SECOND), Err(Reason("stale_timestamp")));
    }

    #[test]
    fn a_nonce_is_used_once_and_a_request_heals() {
        let mut state = state();
        let check = |state: &mut ReplayState, next: u64, this: u64| {
            state.check(0, (AGENT, HOME), Replay::Nonces, None, Some(next << 32 | this)).is_ok()
        };
        assert!(!check(&mut state, 5, 4), "no nonce is known");
        let asked = state.request(0, (AGENT, HOME), Replay::Nonces, None) & 0xffff_ffff;
        assert!(!check(&mut state, 5, 4));
        assert!(check(&mut state, 5, asked));
        assert!(!check(&mut state, 5, asked), "the nonce was used");
        assert!(check(&mut state, 6, 5) && check(&mut state, 7, 6) && !check(&mut state, 7, 6));
        let lost = state.request(0, (AGENT, HOME), Replay::Nonces, None) & 0xffff_ffff;
        assert!(check(&mut state, 8, 7), "the announced nonce is valid all the same");
        assert!(!check(&mut state, 9, lost));
        let mut ask = |announced| state.request(0, (AGENT, HOME), Replay::Nonces, announced) >> 32;
        assert_eq!([ask(None), ask(Some(9))], [8, 9], "the home agent has announced them");
    }

    /// Repeated old Updates cause further Requests while the answer to the first one is under way.
    #[test]
    fn a_further_request_leaves_the_answer_under_way_valid() {
        let mut state = state();
        let mut ask = |announced| state.request(0, (AGENT, HOME), Replay::Nonces, Some(announced));
        let [first, second] = [ask(3), ask(4)];
        assert_eq!([first >> 32, second >> 32], [3, 4]);
        let (answer, late) = (9 << 32 | first & 0xffff_ffff, 10 << 32 | second & 0xffff_ffff);
        let mut check = |id| state.check(0, (AGENT, HOME), Replay::Nonces, None, Some(id)).is_ok();
        assert!(check(answer));
        assert!(!check(late) && !check(answer), "each nonce is used once");
        let third = state.request(0, (AGENT, HOME), Replay::Nonces, None);
        assert_ne!(third as u32, first as u32, "that nonce was used");
    }

    /// The home agent answers each Identification once. It may have announced no nonce that this host knows since.
    #[test]
    fn a_request_after_a_lost_answer_has_another_nonce_and_earlier_answers_stay_valid() {
        let mut state = state();
        let mut ask = |now: u64| state.request(now, (AGENT, HOME), Replay::Nonces, None);
        let asked: Vec<_> = (0..6).map(|half| ask(100 * SECOND + half * SECOND / 2)).collect();
        assert_eq!(asked[0], asked[1], "within a second");
        assert!(asked[0] != asked[2] && asked[2] != asked[4] && asked[0] != asked[4], "{asked:?}");
        let mut check = |next: u64, asked: u64| {
            let id = next << 32 | asked & 0xffff_ffff;
            state.check(0, (AGENT, HOME), Replay::Nonces, None, Some(id)).is_ok()
        };
        assert!(check(5, asked[2]));
        // The other answers may be older than the accepted one.
        assert!(!check(6, asked[0]) && !check(7, asked[4]) && !check(5, asked[2]));
        let mut ask = |now: u64| state.request(now, (AGENT, HOME), Replay::Nonces, None);
        let asked: Vec<_> = (0..=VALID_NONCES as u64).map(|now| ask((200 + now) * SECOND)).collect();
        let earlier = ask(190 * SECOND);
        assert!(!asked.contains(&earlier), "a clock that was set back does not keep the nonce");
        let mut check = |asked: u64| {
            let id = 9 << 32 | asked & 0xffff_ffff;
            state.check(0, (AGENT, HOME), Replay::Nonces, None, Some(id)).is_ok()
        };
        assert!(!check(asked[0]) && !check(asked[1]), "too many Requests ago");
        assert!(check(asked[2]));
    }

    /// Another host sends old Updates, which cause a Request each second. The answer to each Request is valid when it arrives.
    #[test]
    fn old_updates_once_a_second_do_not_make_a_late_answer_useless() {
        for asked_at in 0..60 {
            let mut state = state();
            let mut answer = None;
            for now in 0..=asked_at + 15 {
                let asked = state.request((200 + now) * SECOND, (AGENT, HOME), Replay::Nonces, None);
                answer = if now == asked_at { Some(asked) } else { answer };
            }
            let id = 9 << 32 | answer.unwrap() & 0xffff_ffff;
            let checked = state.check(0, (AGENT, HOME), Replay::Nonces, None, Some(id));
            assert!(checked.is_ok(), "the answer to the Request at {asked_at} s");
        }
    }

    #[test]
    fn requests_about_several_mobile_nodes_are_answered_in_any_order() {
        let mut state = state();
        let node = |last: u64| Ipv4Addr::new(10, 1, 1, last as u8);
        let ask = |state: &mut ReplayState, last| {
            state.request(0, (AGENT, node(last)), Replay::Nonces, None) & 0xffff_ffff
        };
        let check = |state: &mut ReplayState, last, next: u64, this: u64| {
            state.check(0, (AGENT, node(last)), Replay::Nonces, None, Some(next << 32 | this)).is_ok()
        };
        let asked: Vec<_> = (0..3).map(|last| ask(&mut state, last)).collect();
        assert!(!check(&mut state, 1, 5, asked[0]), "the answer is about another mobile node");
        assert!(check(&mut state, 2, 5, asked[2]) && check(&mut state, 0, 6, asked[0]));
        assert!(check(&mut state, 1, 7, 6), "the nonce that the last update announced");
        assert!(!check(&mut state, 1, 8, asked[1]), "an older update does not change a newer entry");
        let first = ask(&mut state, 0);
        for last in 1..=MOST_ASKED as u64 {
            ask(&mut state, last);
        }
        assert!(!check(&mut state, 0, 9, first), "the oldest request was replaced");
    }
}
