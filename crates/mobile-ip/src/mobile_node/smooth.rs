//! Smooth handoffs of a mobile node: the repetitions of the Binding Update, and its acknowledgement.

use super::{MobileNode, Timer};
use crate::mark::HandoffEvent;
use crate::message::Binding;
use crate::refusal;
use crate::unacknowledged::UnacknowledgedUpdate;
use node::{Outbox, Rx};
use wire::{Instant, Ipv4Addr, Mac, Packet, Reason, udp};

impl MobileNode {
    /// Sends the Binding Updates to previous agents that are due, and sets the time of the next one. Without a link, they wait for the
    /// next one. Ends the handoffs from agents that do not forward packets any more.
    pub(super) fn follow_updates(&mut self, now: Instant, out: &mut Outbox) {
        let agent = self.agent_in_reach();
        let (home, numbers) = (self.home, self.config.numbers);
        let updates = self.registrar.unacknowledged();
        if let Some((previous, care_of)) = updates.last().and_then(UnacknowledgedUpdate::take_new) {
            out.mark(HandoffEvent::PreviousNamed { previous, care_of }.into());
        }
        updates.end_old(now);
        if let Some((by, mac)) = agent {
            for update in updates.due_at(now, by) {
                let previous = update.previous;
                let (bytes, attempt) = update.repeat(now, home, &numbers);
                out.send(self.used.iface, Packet::new(mac, bytes));
                out.mark(HandoffEvent::UpdateRepeated { previous, attempt }.into());
            }
        }
        self.time_updates();
    }

    /// Returns the agent by which Binding Updates are sent, and its link address; `None` without a link, or if the agent was not heard
    /// since the link came up.
    fn agent_in_reach(&self) -> Option<(Ipv4Addr, Mac)> {
        let agent = self.attached.filter(|_| self.used.mac.is_some())?;
        Some((agent, self.used.heard(agent)?.mac))
    }

    /// Sets the time of the next Binding Update, or of the end of a handoff.
    pub(super) fn time_updates(&mut self) {
        let by = self.agent_in_reach().map(|(agent, _)| agent);
        match self.registrar.unacknowledged().due(by) {
            Some(due) => self.timers.set(Timer::Update, due),
            None => self.timers.stop(Timer::Update),
        }
    }

    /// Handles a UDP datagram if it is a message of route optimization. `None`: it is another message.
    pub(super) fn binding_message(
        &mut self,
        rx: &Rx,
        packet: &Packet,
        out: &mut Outbox,
    ) -> Option<Result<(), Reason>> {
        if !self.config.smooth_handoff || rx.header.dst != self.home {
            return None;
        }
        let numbers = self.config.numbers;
        let datagram = udp::Datagram::parse(rx.payload(packet), rx.header.src, rx.header.dst).ok()?;
        let message = match Binding::parse(datagram.payload, &numbers)? {
            Ok(Binding::Acknowledge(message)) => message,
            Ok(_) => return Some(Err(refusal::UNEXPECTED)),
            Err(malformed) => return Some(Err(malformed.into())),
        };
        let previous = rx.header.src;
        if let Err(reason) = self.registrar.acknowledged(previous, &message) {
            return Some(Err(reason));
        }
        self.time_updates();
        out.mark(HandoffEvent::UpdateAcknowledged { previous, status: message.status.0 }.into());
        Some(Ok(()))
    }
}
