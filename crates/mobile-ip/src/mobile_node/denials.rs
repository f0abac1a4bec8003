//! Requests that are denied or not answered: the mobile node repeats them, or tries another home agent, foreign agent or interface.

use super::{MobileNode, Timer};
use crate::mark::MobileIpEvent;
use crate::message::Code;
use crate::movement::Why;
use crate::registrar::is_unreachable;
use node::Outbox;
use wire::{Duration, Iface, Instant};

/// After this number of requests without acceptance, another agent is tried (not from an RFC).
const PATIENCE: u32 = 3;
/// The longest pause after the denial of a home agent that lacks resources, until the request is repeated, if the node might not receive
/// packets in a longer one (not from an RFC).
const LACKING_PAUSE: Duration = Duration::from_secs(2);
/// After such a denial, each pause is longer by a random time, which is less than this (not from an RFC). A home agent that lacks
/// resources denies the requests of many mobile nodes, which must not all repeat them at the same time.
const LACKING_SPREAD: Duration = Duration::from_secs(1);

/// The pause until the node looks again whether it hears the home agent of the home link (not from an RFC).
const HEARS_AGAIN: Duration = Duration::from_secs(1);

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
        if is_proven && self.is_at_home() && self.denied_at_home(now, code, out) {
            return;
        }
        self.lacks_resources = code == Code::HomeResources;
        if self.lacks_resources {
            self.wait_for_resources(now);
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
        match self.situation(now).other_in_reach() {
            Some(other) if by_agent && is_proven => self.turn(now, other, Why::Denied, out),
            _ if is_proven => self.leave_after_denial(now, out),
            _ => {}
        }
    }

    /// Sets the time of the next request after a denial by a home agent that lacks resources.
    pub(super) fn wait_for_resources(&mut self, now: Instant) {
        let (spread, latest) = (self.rng.below(LACKING_SPREAD), now + LACKING_PAUSE);
        let again = self.timers.due(Timer::Retry).unwrap_or(latest);
        self.timers.set(Timer::Retry, again + spread);
        if !self.receives_until_retry() {
            self.timers.set(Timer::Retry, again.min(latest) + spread);
        }
    }

    /// Repeats the request earlier if the home agent lacks resources, and the node does not receive packets any more by the interface of
    /// its registration.
    pub(super) fn hasten_retry(&mut self, now: Instant) {
        let is_late = |again: Instant| again > now + LACKING_PAUSE + LACKING_SPREAD;
        let waits = self.lacks_resources && self.timers.due(Timer::Retry).is_some_and(is_late);
        if waits && !self.receives_until_retry() {
            self.wait_for_resources(now);
        }
    }

    /// Uses another interface after an authenticated denial, unless the registration delivers packets until the next request. A home agent
    /// that lacks resources denies the requests by each interface: then the node only goes to one by which it receives packets.
    fn leave_after_denial(&mut self, now: Instant, out: &mut Outbox) {
        if self.lacks_resources {
            if let Some(way) = self.receiving().filter(|_| !self.receives_until_retry()) {
                self.leave_interface(now, Why::Denied, Some(way), out);
            }
        } else if !(self.receives_here() && self.lasts_until_retry()) {
            self.leave_interface(now, Why::Denied, None, out);
        }
    }

    /// Returns whether the agent in use can be asked again, and there are others, but none in reach.
    fn has_only_others_out_of_reach(&self, now: Instant) -> bool {
        let situation = self.situation(now);
        self.attached.is_some_and(|agent| self.is_usable(agent))
            && situation.other_agent().is_some()
            && situation.other_in_reach().is_none()
    }

    /// Returns the interface that is not in use, by which alone the node receives packets while the home agent accepts no request: that of
    /// the registration, or without one that on the home link. `None` if there is none, or if the node need not use it to receive by it.
    fn receiving(&self) -> Option<Iface> {
        if self.receives_elsewhere() {
            return None;
        }
        let by = self.registrar.registered_by().map(|(iface, _)| iface);
        if let Some(left) = by.filter(|iface| *iface != self.used.iface) {
            return Some(left);
        }
        let home_agents = self.registrar.home_agents();
        let mut others = self.others.iter().filter(|_| !self.is_at_home());
        let home = others.find(|other| other.usable.is_some() && other.is_home_link(home_agents));
        home.map(|home| home.iface)
    }

    /// Returns whether the registration lasts until the next request, and delivers packets until then.
    fn receives_until_retry(&self) -> bool {
        (self.receives_here() || self.receives_elsewhere()) && self.lasts_until_retry()
    }

    /// Returns whether the registration ends after the next request.
    fn lasts_until_retry(&self) -> bool {
        self.timers.due(Timer::Expire) > self.timers.due(Timer::Retry)
    }

    /// Returns whether packets that arrive at the care-of address of the registration reach the node by the interface in use.
    fn receives_here(&self) -> bool {
        let by = self.registrar.registered_by();
        let heard = |(iface, agent)| iface == self.used.iface && self.used.heard(agent).is_some();
        let own = self.own.address();
        // The own care-of address takes the tunnels of the home agent in use only.
        by.is_some_and(heard) || own.is_some() && own == self.registrar.care_of_at_home_agent()
    }

    /// Repeats the request, or tries another home agent, foreign agent or interface.
    pub(super) fn retry(&mut self, now: Instant, out: &mut Outbox) {
        if self.registrar.ends_other_binding() && !self.hears_home_agent() {
            self.registrar.wait_in_vain();
            return self.timers.set(Timer::Retry, now + HEARS_AGAIN);
        }
        if self.turn_to_next_home_agent(now, out) {
            return;
        }
        let is_denied = self.registrar.has_unproven_denial();
        // Each other agent relays the request to the same home agent. At home, the node is not reached better through another one.
        let turns = !self.lacks_resources
            && !self.registrar.ends_other_binding()
            && (self.registrar.attempts() >= PATIENCE || is_denied);
        let why = if is_denied { Why::Denied } else { Why::NoReply };
        match self.situation(now).other_in_reach().filter(|_| turns) {
            Some(other) => self.turn(now, other, why, out),
            None if turns && self.leave_interface(now, why, None, out) => {}
            // All other agents may be out of reach, and this one answers: its next request does not wait longer than one to another
            // agent would.
            None => {
                match self.attached.filter(|_| is_denied && turns && self.has_only_others_out_of_reach(now)) {
                    Some(agent) => self.turn(now, agent, why, out),
                    None => self.register(now, out),
                }
            }
        }
    }
}
