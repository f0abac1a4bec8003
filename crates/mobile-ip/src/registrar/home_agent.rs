//! The choice of the home agent: which one gets the next request.

use super::{Registrar, Target};
use crate::home_agents::HomeAgents;
use wire::{Duration, Instant, Ipv4Addr, Mac};

/// After this number of requests that the home agent has not answered, the next home agent is tried (not from an RFC).
const PATIENCE: u32 = 3;

impl Registrar {
    pub(crate) const fn home_agents(&self) -> &HomeAgents {
        &self.home_agents
    }

    /// Returns the address of the home agent in use ([`HomeAgents::address`]).
    pub(crate) const fn home_agent(&self) -> Ipv4Addr {
        self.home_agents.address()
    }

    /// Turns to the next home agent, because the present one is unreachable or does not answer. The registration with
    /// the present one stays until its lifetime ends. Returns the address of the next one; `None` if there is no other.
    pub(crate) fn next_home_agent(&mut self) -> Option<Ipv4Addr> {
        self.unanswered = 0;
        if !self.home_agents.next() {
            return None;
        }
        self.has_changed();
        Some(self.home_agent())
    }

    /// Uses a home agent that is heard on a link if none is known yet ([`HomeAgents::meet`]), unless the node has a registration.
    /// Returns whether the home agent was changed.
    pub(crate) fn meet_home_agent(&mut self, heard: Ipv4Addr) -> bool {
        let is_changed = self.current.is_none() && self.home_agents.meet(heard);
        if is_changed {
            self.has_changed();
        }
        is_changed
    }

    /// Uses a home agent that is heard on the home link ([`HomeAgents::select`]). Returns whether the home agent was changed.
    pub(crate) fn select_home_agent(&mut self, heard: Ipv4Addr) -> bool {
        self.home_agents.home_link = None;
        if heard == self.home_agent() || !self.home_agents.select(heard) {
            return false;
        }
        self.has_changed();
        true
    }

    /// At home: makes the end of the binding of another home agent the target, if another one may have a binding. The request goes to it
    /// by the routes of the node. Returns whether there is such a home agent.
    pub(crate) fn end_other_binding(&mut self, now: Instant) -> bool {
        let present = self.home_agent();
        let home_link = self.home_agents.home_link.unwrap_or(present);
        let other = loop {
            let Some(other) = self.bindings.another(now, present) else { return false };
            if self.home_agents.select(other) {
                break other;
            }
            self.bindings.ended(other); // its association is forgotten
        };
        self.has_changed();
        self.home_agents.home_link = Some(home_link).filter(|home_link| *home_link != other);
        self.attempts = 0;
        let Some(target) = self.target else { return false };
        self.target = Some(Target { agent: other, mac: Mac::ZERO, ..target });
        true
    }

    /// Returns whether the node ends the binding of a home agent that was not heard on the home link.
    pub(crate) const fn ends_other_binding(&self) -> bool {
        self.home_agents.home_link.is_some()
    }

    /// Notes that the wait for the reply has ended, although the request is not repeated now.
    pub(crate) fn wait_in_vain(&mut self) {
        self.attempts = self.attempts.max(2);
    }

    /// Gives up the end of a binding of another home agent, because this one denies the request.
    pub(crate) fn give_up_binding(&mut self) {
        self.bindings.ended(self.home_agent());
    }

    /// Notes that the home agent in use may have a binding of which the node does not know, for `lifetime` at the longest.
    pub(crate) fn doubt_binding(&mut self, now: Instant, lifetime: Duration) {
        self.bindings.asked(self.home_agent(), now + lifetime);
    }

    /// Returns whether the home agent in use may have a binding.
    pub(crate) fn may_have_binding(&self, now: Instant) -> bool {
        self.bindings.may_have(now, self.home_agent())
    }

    /// Uses the home agent of the home link again, if the node was ending the binding of another one. If the node leaves home and has just
    /// asked that one, it stays in use: its next request replaces the binding.
    pub(super) fn use_home_link(&mut self, is_leaving: bool) {
        let Some(heard) = self.home_agents.home_link.take() else { return };
        if !is_leaving || self.attempts > 1 || self.pending.is_none() || self.is_denied {
            self.select_home_agent(heard);
        }
    }

    /// Drops what depends on the home agent of before.
    fn has_changed(&mut self) {
        (self.pending, self.nonce, self.is_denied, self.unanswered) = (None, None, false, 0);
        self.forget_corrections();
        // Without a foreign agent, the request goes to the home agent itself.
        let home_agent = self.home_agent();
        if let Some(target) = self.target.as_mut().filter(|target| target.mac == Mac::ZERO) {
            target.agent = home_agent;
        }
    }

    /// Returns whether [`PATIENCE`] requests to the home agent were not answered, or the home agent was reported as
    /// unreachable.
    pub(crate) const fn is_home_agent_silent(&self) -> bool {
        self.unanswered >= PATIENCE
    }

    /// Records an unauthenticated report that the home agent is unreachable. The next home agent is tried when the wait
    /// for the reply ends.
    pub(crate) const fn doubt_home_agent(&mut self) {
        self.unanswered = PATIENCE;
    }
}
