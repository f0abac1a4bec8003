//! Several home agents: the mobile node turns to the next one if the present one does not answer. When it has come home, it ends the
//! bindings of all of them.

use super::{MobileNode, Timer};
use crate::mark::MobileIpEvent;
use crate::message::Code;
use node::Outbox;
use wire::{Instant, Ipv4Addr};

impl MobileNode {
    pub(super) fn is_home_agent(&self, agent: Ipv4Addr) -> bool {
        self.registrar.home_agents().has(agent)
    }

    /// Returns whether the node is at home, and has heard the home agent since the link came up. If it has not, the link may be another
    /// one: there the node does not send ARP requests (RFC 5944, section 4.6).
    pub(super) fn hears_home_agent(&self) -> bool {
        self.is_at_home() && self.attached.is_some_and(|agent| self.used.heard(agent).is_some())
    }

    /// Uses the home agent that was heard on the home link. The node registers with it next.
    pub(super) fn use_heard_home_agent(&mut self, now: Instant, agent: Ipv4Addr, out: &mut Outbox) {
        if self.registrar.select_home_agent(agent) {
            out.mark(MobileIpEvent::HomeAgentChosen { home_agent: agent }.into());
        }
        self.registrar.doubt_binding(now, self.config.lifetime);
    }

    /// If the home agent does not answer and there is another one, sends the request to that one. Returns whether it does.
    pub(super) fn turn_to_next_home_agent(&mut self, now: Instant, out: &mut Outbox) -> bool {
        if !self.registrar.is_home_agent_silent() {
            return false;
        }
        if self.is_at_home() {
            return self.end_other_bindings(now, out);
        }
        let Some(home_agent) = self.registrar.next_home_agent() else { return false };
        out.mark(MobileIpEvent::HomeAgentChosen { home_agent }.into());
        self.own.follow(home_agent, self.opened(), out);
        self.register(now, out);
        true
    }

    /// Handles the denial of a home agent at home. Another home agent may have a binding too: it is asked next. Returns false if nothing
    /// was done.
    pub(super) fn denied_at_home(&mut self, now: Instant, code: Code, out: &mut Outbox) -> bool {
        let ends_other = self.registrar.ends_other_binding();
        if ends_other && code == Code::HomeResources {
            // It has the binding still. When the wait has ended, the next one is asked, or this one again.
            self.wait_for_resources(now);
            self.registrar.doubt_home_agent();
            return true;
        }
        if ends_other {
            self.registrar.give_up_binding();
        }
        self.end_other_bindings(now, out)
    }

    /// At home, asks another home agent that may have a binding to end it. Otherwise that home agent would take the node's packets
    /// until the lifetime of the binding ends. If there is none any more, uses the home agent of the home link again. Returns false if
    /// nothing was done: the present request may be repeated.
    pub(super) fn end_other_bindings(&mut self, now: Instant, out: &mut Outbox) -> bool {
        if !self.is_at_home() {
            return false;
        }
        if self.registrar.end_other_binding(now) {
            if !self.registrar.ends_other_binding() {
                self.registrar.turn_to(self.present_target());
            }
            self.register(now, out);
            return true;
        }
        let is_over = self.registrar.ends_other_binding() && !self.registrar.may_have_binding(now);
        if is_over {
            self.registrar.turn_to(self.present_target());
            self.timers.stop(Timer::Retry);
        }
        is_over
    }
}
