//! The home agents that may have a binding of a mobile node. After the mobile node has turned to another home agent, the binding of
//! the former one stays until its lifetime ends. At home, the mobile node ends it.

use std::collections::VecDeque;
use wire::{Instant, Ipv4Addr};

/// The maximum number of home agents that are known to have a binding (not from an RFC). A denial with code 136 can name any address.
const CAPACITY: usize = 16;

/// The home agents that may have a binding, each with the time at which it ends at the latest.
#[derive(Debug, Default)]
pub(super) struct Bindings {
    all: VecDeque<(Ipv4Addr, Instant)>,
}

impl Bindings {
    /// Notes a request: the home agent may have a binding until `ends`, also if its reply is lost.
    pub(super) fn asked(&mut self, home_agent: Ipv4Addr, ends: Instant) {
        match self.all.iter_mut().find(|(other, _)| *other == home_agent) {
            Some((_, known)) => *known = ends.max(*known),
            None => {
                if self.all.len() >= CAPACITY {
                    self.all.pop_front();
                }
                self.all.push_back((home_agent, ends));
            }
        }
    }

    /// Notes that the home agent has no binding.
    pub(super) fn ended(&mut self, home_agent: Ipv4Addr) {
        self.all.retain(|(other, _)| *other != home_agent);
    }

    /// Returns whether the home agent may have a binding.
    pub(super) fn may_have(&self, now: Instant, home_agent: Ipv4Addr) -> bool {
        self.all.iter().any(|(other, ends)| *other == home_agent && now < *ends)
    }

    /// Returns a home agent, except `present`, that may have a binding; `None` if there is none. Of several ones, each is returned in
    /// turn.
    pub(super) fn another(&mut self, now: Instant, present: Ipv4Addr) -> Option<Ipv4Addr> {
        self.all.retain(|(_, ends)| now < *ends);
        let at = self.all.iter().position(|(other, _)| *other != present)?;
        let other = self.all.remove(at)?;
        self.all.push_back(other);
        Some(other.0)
    }
}
