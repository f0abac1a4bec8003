//! Requests that are denied or not answered: the mobile node repeats them, or tries another home agent, foreign agent or interface.

use super::{MobileNode, Timer};
use crate::mark::MobileIpEvent;
use crate::message::Code;
use crate::movement::Why;
use crate::registrar::is_unreachable;
use node::Outbox;
use wire::{Duration, Instant};

/// After this number of requests without acceptance, another agent is tried (not from an RFC).
const PATIENCE: u32 = 3;
/// The longest pause after the denial of a home agent that lacks resources, until the request is repeated, if the registration would end
/// in a longer one (not from an RFC).
const LACKING_PAUSE: Duration = Duration::from_secs(2);

impl MobileNode {
    /// Handles a denial without a correction. `by_agent` and `is_proven` are as in
    /// [`ReplyOutcome::Denied`](crate::registrar::ReplyOutcome::Denied).
    pub(super) fn denied(
        &mut self,
        now: Instant,
        code: Code,
        (by_agent, is_proven): (bool, bool),
        out: &mut Outbox,
    ) {
        out.mark(MobileIpEvent::Denied { code }.into());
        self.lacks_resources = code == Code::HomeResources;
        if self.lacks_resources && self.registrar.registered_by().is_some() && !self.lasts_until_retry() {
            let latest = now + LACKING_PAUSE;
            let again = self.timers.due(Timer::Retry).map_or(latest, |again| again.min(latest));
            self.timers.set(Timer::Retry, again);
        }
        if is_unreachable(code) {
            self.registrar.doubt_home_agent();
            if is_proven && self.turn_to_next_home_agent(now, out) {
                return;
            }
        }
        // After an authenticated denial by a foreign agent, another agent is tried. If there is none, or the home agent
        // denies, another interface is used. Otherwise the node waits as without a reply. If the denial was not
        // authenticated, the home agent's reply may still arrive.
        match self.situation(now).other_agent() {
            Some(other) if by_agent && is_proven => self.turn(now, other, Why::Denied, out),
            _ if is_proven && !self.waits_here() => _ = self.leave_interface(now, Why::Denied, out),
            _ => {}
        }
    }

    /// Returns whether the node repeats the request by this interface after an authenticated denial, because the registration still
    /// delivers packets until then. A home agent that lacks resources denies the requests by each interface: then the node only leaves
    /// this one to receive packets by that of the registration, or without a registration on the home link.
    fn waits_here(&self) -> bool {
        if self.receives_here() && self.lasts_until_retry() {
            return true;
        }
        let by = self.registrar.registered_by();
        let is_left = by.is_some_and(|(iface, _)| iface != self.used.iface);
        self.lacks_resources && (self.receives_elsewhere() || !is_left && !self.is_home_elsewhere())
    }

    /// Returns whether the registration ends after the next request.
    fn lasts_until_retry(&self) -> bool {
        self.timers.due(Timer::Expire) > self.timers.due(Timer::Retry)
    }

    /// Returns whether another interface is on the home link.
    fn is_home_elsewhere(&self) -> bool {
        let home_agent = self.registrar.home_agent();
        self.others.iter().any(|other| other.usable.is_some() && other.heard(home_agent).is_some())
    }

    /// Returns whether packets that arrive at the agent of the registration reach the node by the interface in use.
    fn receives_here(&self) -> bool {
        let by = self.registrar.registered_by();
        by.is_some_and(|(iface, agent)| iface == self.used.iface && self.used.heard(agent).is_some())
    }

    /// Repeats the request, or tries another home agent, foreign agent or interface.
    pub(super) fn retry(&mut self, now: Instant, out: &mut Outbox) {
        if self.turn_to_next_home_agent(now, out) {
            return;
        }
        let is_denied = self.registrar.has_unproven_denial();
        // Each other agent relays the request to the same home agent.
        let turns = !self.lacks_resources && (self.registrar.attempts() >= PATIENCE || is_denied);
        let why = if is_denied { Why::Denied } else { Why::NoReply };
        match self.situation(now).other_agent().filter(|_| turns) {
            Some(other) => self.turn(now, other, why, out),
            None if turns && self.leave_interface(now, why, out) => {}
            None => self.register(now, out),
        }
    }
}
