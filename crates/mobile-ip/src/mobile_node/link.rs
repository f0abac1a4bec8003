//! The links of a mobile node: its interfaces come up and go down, and it solicits.

use super::{DEBOUNCE, MobileNode};
use crate::interfaces::NodeInterface;
use crate::mark::MobileIpEvent;
use node::{Link, Outbox};
use wire::{Iface, Instant};

impl MobileNode {
    /// Returns an interface of this role: the one in use, or a further one.
    pub(super) fn interface(&self, iface: Iface) -> Option<&NodeInterface> {
        [&self.used].into_iter().chain(&self.others).find(|own| own.iface == iface)
    }

    pub(super) fn interface_mut(&mut self, iface: Iface) -> Option<&mut NodeInterface> {
        [&mut self.used].into_iter().chain(&mut self.others).find(|own| own.iface == iface)
    }

    pub(super) fn link(&mut self, now: Instant, iface: Iface, link: Link<'_>, out: &mut Outbox) {
        if iface != self.used.iface {
            return self.link_of_another(now, iface, link, out);
        }
        match link {
            Link::Up { mac, cell, mtu, .. } => {
                self.leave_own_address(out);
                self.used.link_up(now, mac, mtu, cell);
                self.used.detecting = true;
                self.ignored.clear();
                self.end_kept(out);
                out.mark(MobileIpEvent::LinkUp.into());
                self.own.link_up(now, cell, out);
                if self.config.link_trigger || self.attached.is_none() {
                    self.hint(now, out);
                }
            }
            // The radio cannot tune to the requested cell, so the link is unchanged.
            Link::Down(Link::UNSUPPORTED) => {}
            Link::Heard(cell, strength) => {
                self.signals.hear(now, cell, strength);
                self.used.hear_signal(cell, strength);
            }
            Link::Down(_) => {
                self.used.link_down();
                self.leave_own_address(out);
                self.end_kept(out);
                if let (true, Some(agent)) = (self.config.link_trigger, self.attached) {
                    self.used.agents.suspect(now, agent);
                }
            }
        }
    }

    /// Handles an event of an interface that is not in use. The node solicits there, but does not register.
    fn link_of_another(&mut self, now: Instant, iface: Iface, link: Link<'_>, out: &mut Outbox) {
        let Some(other) = self.others.iter_mut().find(|other| other.iface == iface) else { return };
        match link {
            Link::Up { mac, cell, mtu, .. } => {
                // The agents that were heard before may be out of reach.
                other.agents.forget_all();
                other.link_up(now, mac, mtu, cell);
                other.solicitations = 0;
                other.solicit(now, self.home, &mut self.rng, out);
            }
            Link::Down(Link::UNSUPPORTED) => {}
            Link::Heard(cell, strength) => other.hear_signal(cell, strength),
            Link::Down(_) => other.link_down(),
        }
    }

    /// Solicits at once, because the link came up and the node may have moved. With `link_trigger`, the node then
    /// registers with the next usable agent that it hears.
    fn hint(&mut self, now: Instant, out: &mut Outbox) {
        self.used.triggered = self.config.link_trigger;
        self.waits_marked = false;
        if self.used.triggered {
            // The agent in `next` was heard before the link changed, so it may be out of reach now.
            self.next = None;
            self.timers.stop(super::Timer::Hold);
        }
        if self.used.hinted.is_none_or(|at| now >= at + DEBOUNCE) {
            self.used.hinted = Some(now);
            self.chosen = None;
        } else {
            self.used.hinted_again = true;
        }
        self.used.solicitations = 0;
        self.solicit(now, out);
    }

    /// Sends a solicitation by the interface in use, and sets the time of the next one. Does nothing while the link is down.
    pub(super) fn solicit(&mut self, now: Instant, out: &mut Outbox) {
        self.used.solicit(now, self.home, &mut self.rng, out);
    }

    /// Sends the solicitations that are due.
    pub(super) fn solicit_if_due(&mut self, now: Instant, out: &mut Outbox) {
        for own in [&mut self.used].into_iter().chain(&mut self.others) {
            if own.solicit_at.take_if(|due| *due <= now).is_some() {
                own.solicit(now, self.home, &mut self.rng, out);
            }
        }
    }
}
