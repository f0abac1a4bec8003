//! A mobile node with several interfaces: it changes to a better one, and leaves one that is not usable any more (not from an
//! RFC). Movement detection decides between the agents of one interface.
//!
//! The node makes before it breaks: it registers by the new interface while it still receives by the old one. Until the
//! registration is accepted, it sends by the old one too. It asks for a smooth handoff only when it does not receive by the old one any
//! more: the previous agent forwards packets to the new one, which does not deliver them if the registration is not accepted.

use super::{MobileNode, NO_AGENT, REGISTRATION_PAUSE, Timer};
use crate::interfaces::{Candidate, Choice, choose};
use crate::mark::MobileIpEvent;
use crate::movement::Why;
use node::{Action, Class, IngressPolicy, Lifetime, Neighbor, Outbox, Port, Route, RouteKey};
use wire::{Duration, Iface, Instant, Ipv4Addr, Reason};

/// The reason to drop a packet for this host: it arrived by an interface that is not in use, and the configuration has
/// `make_before_break = false`.
pub const NOT_IN_USE: Reason = Reason("interface_not_in_use");
/// The class of such packets. It is closed: only the routes of this class apply.
const ELSEWHERE: Class = Class(Class::CLOSED.0 + 4);

/// For this time, an interface is avoided on which no agent has accepted a registration (not from an RFC).
const AVOIDED: Duration = Duration::from_mins(1);

/// The foreign agent of another interface through which packets are still sent: the registration by the interface in use is
/// not accepted yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct OldPath {
    iface: Iface,
    pub(super) agent: Ipv4Addr,
}

impl MobileNode {
    /// Chooses the interface to use, after anything has happened. With one interface, it only hastens a request.
    pub(super) fn review_interfaces(&mut self, now: Instant, out: &mut Outbox) {
        if self.others.is_empty() {
            return self.hasten_retry(now);
        }
        self.note_usable(now, out);
        self.check_old_path(out);
        let mut choice = self.choice(now);
        if let Choice::Change(index) = choice {
            let why = match (self.used.usable, self.used.mac) {
                (Some(_), _) => Why::PreferredInterface,
                (None, None) => Why::LinkDown,
                (None, Some(_)) if self.used.is_weak() => Why::WeakSignal,
                (None, Some(_)) => Why::AgentLost,
            };
            self.change_interface(now, index, why, out);
            // The interface that was left may have another usable agent.
            self.note_usable(now, out);
            choice = self.choice(now);
        }
        match choice {
            Choice::StayUntil(due) => self.timers.set(Timer::Interface, due),
            Choice::Stay | Choice::Change(_) => self.timers.stop(Timer::Interface),
        }
        self.notify_lost(now, out);
        self.hasten_retry(now);
    }

    /// Returns whether packets that arrive at the agent of the registration still reach the node, by an interface that is not in
    /// use: its link is up, and the agent was heard there.
    pub(super) fn receives_elsewhere(&self) -> bool {
        let Some((iface, agent)) = self.registrar.registered_by() else { return false };
        let other = self.others.iter().find(|other| other.iface == iface && other.mac.is_some());
        self.config.make_before_break && other.is_some_and(|other| other.heard(agent).is_some())
    }

    /// Registers again at once if the node has lost the agent of its registration before the new registration is accepted: the
    /// request that waits for its reply does not ask for a smooth handoff.
    fn notify_lost(&mut self, now: Instant, out: &mut Outbox) {
        if !self.registrar.omits_previous() || self.receives_elsewhere() {
            return;
        }
        if let Some(target) = self.present_target() {
            self.registrar.turn_to(Some(target));
            self.register(now, out);
        }
    }

    fn choice(&self, now: Instant) -> Choice {
        let free = self.chosen.map_or(now, |chosen| chosen + REGISTRATION_PAUSE);
        choose(now, self.config.interface_hysteresis, free, self.used.candidate(), &self.candidates())
    }

    fn candidates(&self) -> Vec<Candidate> {
        self.others.iter().map(super::NodeInterface::candidate).collect()
    }

    /// Notes which interfaces are usable now.
    fn note_usable(&mut self, now: Instant, out: &mut Outbox) {
        let home_agents = self.registrar.home_agents();
        let used = &mut self.used;
        let has_agent = match self.attached {
            Some(agent) => used.agents.get(agent).is_some(),
            None => used.has_agent(home_agents),
        };
        let is_usable = has_agent && used.mac.is_some() && !used.is_weak();
        let mut changed = vec![(used.note_usable(now, is_usable), &*used)];
        for other in &mut self.others {
            let is_usable = other.has_agent(home_agents) && !other.is_weak();
            changed.push((other.note_usable(now, is_usable), &*other));
        }
        for (_, own) in changed.into_iter().filter(|(has_changed, _)| *has_changed) {
            let (interface, is_usable) = (own.name.clone(), own.usable.is_some());
            out.mark(MobileIpEvent::InterfaceChanged { interface, is_usable }.into());
        }
    }

    /// Uses another interface, and registers with its best agent.
    fn change_interface(&mut self, now: Instant, index: usize, why: Why, out: &mut Outbox) {
        let left = self.attached.take();
        let is_handoff = left.is_some() || self.registrar.care_of().is_some();
        let why = if is_handoff { why } else { Why::NoAgent };
        let keeps = left.filter(|agent| self.config.make_before_break && self.is_usable_path(*agent));
        self.end_old_path(out);
        self.end_kept(out);
        self.next = None;
        self.timers.stop(Timer::Hold);
        let Some(other) = self.others.get_mut(index) else { return };
        std::mem::swap(&mut self.used, other);
        (other.triggered, other.detecting, other.hinted_again) = (false, false, false);
        let (from, iface) = (other.name.clone(), other.iface);
        self.used.solicit_at = None;
        // The home address is announced, and answered for, on the home link only.
        self.announcer.stop(self.home);
        out.neighbor(iface, self.home, Neighbor::Mute);
        self.be_at_home_by(None, out);
        self.old_path = keeps.map(|agent| OldPath { iface, agent });
        if let Some(agent) = left.filter(|agent| keeps.is_none() && !self.is_home_agent(*agent)) {
            self.end_tunnel_to(agent, out);
            out.neighbor(iface, agent, None);
        }
        if !self.config.make_before_break {
            self.receive_by_one(out);
        }
        if is_handoff {
            let to = self.used.name.clone();
            out.mark(MobileIpEvent::InterfaceChosen { from, to, why: why.name() }.into());
        }
        // A lost interface is a hint of the link: the next registration need not wait.
        if why != Why::PreferredInterface {
            self.chosen = None;
        }
        if let Some(agent) = self.situation(now).other_agent() {
            self.turn(now, agent, why, out);
        }
    }

    /// Sets the rules for the interfaces that are not in use when the role starts.
    pub(super) fn start_interfaces(&self, out: &mut Outbox) {
        for other in &self.others {
            out.neighbor(other.iface, self.home, Neighbor::Mute);
        }
        if !self.others.is_empty() && !self.config.make_before_break {
            // In a closed class, only a route to the single address applies to an address of this host.
            for key in [RouteKey::all(ELSEWHERE), RouteKey::to(ELSEWHERE, self.home)] {
                out.route(key, Route::new(Action::Drop(NOT_IN_USE), Lifetime::Permanent));
            }
            self.receive_by_one(out);
        }
    }

    /// Receives packets for this host by the interface in use only. Messages of agents are received by all.
    fn receive_by_one(&self, out: &mut Outbox) {
        let port = |iface| Port { iface, from: None };
        out.ingress_policy(port(self.used.iface), None);
        for other in &self.others {
            let port = port(other.iface);
            let policy = IngressPolicy::default_of(port);
            out.ingress_policy(port, IngressPolicy { class: ELSEWHERE, icmp: false, ..policy });
        }
    }

    /// Returns whether packets can be sent through this foreign agent of the interface in use: the node is registered there,
    /// and the link is up.
    fn is_usable_path(&self, agent: Ipv4Addr) -> bool {
        let known = self.used.agents.get(agent).filter(|_| !self.is_home_agent(agent));
        known.is_some_and(|known| self.is_registered_by(known))
    }

    /// Uses another interface, because no agent of the present one accepts a registration: `only` this one, or the best one. Returns
    /// whether there is another one that is not avoided.
    pub(super) fn leave_interface(
        &mut self,
        now: Instant,
        why: Why,
        only: Option<Iface>,
        out: &mut Outbox,
    ) -> bool {
        if self.others.is_empty() {
            return false;
        }
        // An agent may have expired since the last choice.
        self.note_usable(now, out);
        let mut others = self.candidates();
        for (other, candidate) in self.others.iter().zip(&mut others) {
            candidate.usable = candidate.usable.filter(|_| only.is_none_or(|only| only == other.iface));
        }
        let in_use = Candidate { usable: None, ..self.used.candidate() };
        let Choice::Change(index) = choose(now, Duration::ZERO, now, in_use, &others) else { return false };
        let may = others.get(index).is_some_and(|other| !other.is_avoided(now));
        if may {
            self.used.avoided = Some(now + AVOIDED);
            self.change_interface(now, index, why, out);
        }
        may
    }

    /// Ends the use of the old path, if it is not usable any more.
    fn check_old_path(&mut self, out: &mut Outbox) {
        let Some(OldPath { iface, agent }) = self.old_path else { return };
        let other = self.interface(iface).filter(|other| other.mac.is_some());
        if other.is_none_or(|other| other.agents.get(agent).is_none()) {
            self.end_old_path(out);
            let way = self.way_by_agent();
            self.route(way, way, out);
        }
    }

    /// Returns the action for this host's own packets through the agent in use, which has not accepted a registration.
    pub(super) fn way_by_agent(&self) -> Action {
        match self.attached.and_then(|agent| self.used.agents.get(agent)) {
            None => Action::Drop(NO_AGENT),
            Some(known) => self.way_by(known),
        }
    }

    /// Forgets the old path. The caller sets the routes. Returns whether there was one.
    pub(super) fn end_old_path(&mut self, out: &mut Outbox) -> bool {
        let Some(OldPath { iface, agent }) = self.old_path.take() else { return false };
        self.end_tunnel_to(agent, out);
        out.neighbor(iface, agent, None);
        true
    }

    /// Returns whether the node asks for simultaneous bindings: with several interfaces, only while another one is usable.
    /// Otherwise the home agent would keep sending to an interface that receives nothing.
    pub(super) fn asks_simultaneous(&self) -> bool {
        let is_single = self.others.is_empty();
        let receives_elsewhere = || self.others.iter().any(|other| other.usable.is_some());
        self.config.simultaneous_bindings && (is_single || receives_elsewhere())
    }
}
