//! The protection of a correspondent against repeated and old Binding Updates.

use crate::config::Replay;
use auth::ReplayWindow;
use std::collections::{BTreeMap, VecDeque};
use wire::{Ipv4Addr, Reason, Rng, ntp_distance};

/// The Binding Update has no Identification, so a repetition could not be recognized.
pub const NO_IDENTIFICATION: Reason = Reason("no_identification");
/// The Binding Update has neither the nonce that the last one announced, nor that of the last Binding Request.
pub const WRONG_NONCE: Reason = Reason("wrong_nonce");

/// The maximum number of Binding Requests to one home agent whose nonces are remembered (not from the draft). The answers to earlier
/// ones are refused, and cause another Request.
const ASKED: usize = 16;

/// What is known about the Binding Updates of one home agent.
#[derive(Clone, Debug)]
struct Known {
    /// A Binding Update about a mobile node without an entry must be later than this timestamp. It is the latest one
    /// that an entry had which was removed, and at least the start of this host.
    floor: u64,
    /// The nonce of the next Binding Update, from the last one; `None` if there was none.
    next: Option<u32>,
    /// The nonces of the last Binding Requests that were not used, the oldest first; at most [`ASKED`].
    asked: VecDeque<u32>,
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

    fn of(&mut self, home_agent: Ipv4Addr) -> &mut Known {
        let floor = self.started;
        self.known.entry(home_agent).or_insert(Known { floor, next: None, asked: VecDeque::new() })
    }

    /// Checks the Identification of an authentic Binding Update that arrives at `now`. `last` is the Identification of
    /// the entry that the Update changes. Fails with the reason to refuse it.
    pub(super) fn check(
        &mut self,
        now: u64,
        home_agent: Ipv4Addr,
        style: Replay,
        last: Option<u64>,
        identification: Option<u64>,
    ) -> Result<u64, Reason> {
        let identification = identification.ok_or(NO_IDENTIFICATION)?;
        let window = self.window;
        let known = self.of(home_agent);
        match style {
            Replay::Timestamps => {
                window.check(now, last.or(Some(known.floor)), identification).map_err(Reason::from)?;
            }
            Replay::Nonces => {
                let this = identification as u32;
                // The answers to earlier Requests are older.
                let used = match known.asked.iter().position(|asked| *asked == this) {
                    Some(place) => place + 1,
                    None if known.next == Some(this) => known.asked.len(),
                    None => return Err(WRONG_NONCE),
                };
                known.asked.drain(..used);
                known.next = Some((identification >> 32) as u32);
            }
        }
        Ok(identification)
    }

    /// Notes the timestamp of an entry that is removed, so that no older Binding Update sets it again.
    pub(super) fn raise(&mut self, home_agent: Ipv4Addr, style: Replay, identification: u64) {
        let known = self.of(home_agent);
        if style == Replay::Timestamps && ntp_distance(identification, known.floor) > 0 {
            known.floor = identification;
        }
    }

    /// Returns the Identification of a Binding Request. With nonces, the low half is the nonce that the answer must have.
    pub(super) fn request(&mut self, now: u64, home_agent: Ipv4Addr, style: Replay) -> u64 {
        let random = self.rng.draw();
        match style {
            Replay::Timestamps => now,
            Replay::Nonces => {
                let asked = &mut self.of(home_agent).asked;
                if asked.len() >= ASKED {
                    asked.pop_front();
                }
                asked.push_back(random as u32);
                random
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Duration;

    const AGENT: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);
    const SECOND: u64 = 1 << 32;

    fn state() -> ReplayState {
        let mut state = ReplayState::new(ReplayWindow::new(Duration::from_secs(7)), Rng::new(1));
        state.start(100 * SECOND);
        state
    }

    #[test]
    fn a_timestamp_must_be_later_than_the_entry_or_than_all_removed_ones() {
        let mut state = state();
        let mut check = |last, id| state.check(103 * SECOND, AGENT, Replay::Timestamps, last, Some(id));
        let stale = Err(Reason("stale_timestamp"));
        assert_eq!(check(None, 100 * SECOND), stale, "it may be from before the start");
        assert_eq!(check(None, 101 * SECOND), Ok(101 * SECOND));
        assert_eq!(check(Some(101 * SECOND), 101 * SECOND), stale);
        assert_eq!(check(Some(101 * SECOND), 101 * SECOND + 1), Ok(101 * SECOND + 1));
        assert_eq!(check(None, 111 * SECOND), Err(Reason("outside_window")));
        state.raise(AGENT, Replay::Timestamps, 102 * SECOND);
        state.raise(AGENT, Replay::Timestamps, 101 * SECOND);
        let mut check = |last, id| state.check(103 * SECOND, AGENT, Replay::Timestamps, last, Some(id));
        assert_eq!(check(None, 102 * SECOND), stale);
        assert_eq!(check(None, 102 * SECOND + 1), Ok(102 * SECOND + 1));
        assert_eq!(check(Some(SECOND), 102 * SECOND), Ok(102 * SECOND), "another entry");
        let none = state.check(103 * SECOND, AGENT, Replay::Timestamps, None, None);
        assert_eq!(none, Err(NO_IDENTIFICATION));
    }

    #[test]
    fn a_nonce_is_used_once_and_a_request_heals() {
        let mut state = state();
        let check = |state: &mut ReplayState, next: u64, this: u64| {
            state.check(0, AGENT, Replay::Nonces, None, Some(next << 32 | this)).is_ok()
        };
        assert!(!check(&mut state, 5, 4), "no nonce is known");
        let asked = state.request(0, AGENT, Replay::Nonces) & 0xffff_ffff;
        assert!(!check(&mut state, 5, 4));
        assert!(check(&mut state, 5, asked));
        assert!(!check(&mut state, 5, asked), "the nonce was used");
        assert!(check(&mut state, 6, 5) && check(&mut state, 7, 6) && !check(&mut state, 7, 6));
        let lost = state.request(0, AGENT, Replay::Nonces) & 0xffff_ffff;
        assert!(check(&mut state, 8, 7), "the announced nonce is valid all the same");
        assert!(!check(&mut state, 9, lost));
    }

    /// The entries of two mobile nodes end at the same time, so two Requests are under way.
    #[test]
    fn each_request_under_way_may_be_answered_in_order() {
        let mut state = state();
        let mut ask = |count| {
            (0..count).map(|_| state.request(0, AGENT, Replay::Nonces) & 0xffff_ffff).collect::<Vec<_>>()
        };
        let many = ask(ASKED + 1);
        let check = |state: &mut ReplayState, next: u64, this: u64| {
            state.check(0, AGENT, Replay::Nonces, None, Some(next << 32 | this)).is_ok()
        };
        assert!(!check(&mut state, 5, many[0]), "too many were sent since");
        assert!(check(&mut state, 5, many[1]) && check(&mut state, 6, many[2]));
        assert!(check(&mut state, 7, many[4]) && !check(&mut state, 8, many[3]), "it is older");
        assert!(check(&mut state, 8, 7) && !check(&mut state, 9, many[5]), "the announced nonce is later");
    }
}
