//! The correspondent: a host with SCTP whose peers may change their addresses. The SCTP transport checks and applies
//! the changes that peers request; the role only marks them.

use crate::config::CorrespondentConfig;
use crate::mark::{CORRESPONDENT, SigmaEvent};
use crate::transport::{SCTP, Transport, end};
use node::config::ConfigError;
use node::{Input, Listen, Outbox, Proto, Rng, Role, Value};
use sctp::AssociationEvent;
use wire::{Instant, Ipv4Addr};

/// The role of a correspondent: provides the transport `sctp` to the applications and programs of its host, and marks
/// the address changes of their peers.
#[derive(Debug)]
pub struct Correspondent {
    address: Ipv4Addr,
    transport: Transport,
}

const LISTENS: [Listen; 2] =
    [Listen::Local(Proto::Ip(sctp::PROTOCOL)), Listen::IcmpAbout(Proto::Ip(sctp::PROTOCOL))];

impl Correspondent {
    /// Creates a correspondent with this configuration. Fails if the parameters of SCTP are invalid.
    pub fn new(config: &CorrespondentConfig, rng: &Rng) -> Result<Self, ConfigError> {
        config.sctp.check()?;
        Ok(Self { address: config.address, transport: Transport::new(&config.sctp, rng.fork("sctp")) })
    }

    fn news(&mut self, now: Instant, out: &mut Outbox) {
        for (_, event) in self.transport.settle(now, out) {
            let event = match event {
                AssociationEvent::PeerAdded(address) => SigmaEvent::PeerAdded { address },
                AssociationEvent::PeerPrimary(address) => SigmaEvent::PeerPrimary { address },
                AssociationEvent::PeerDeleted(address) => SigmaEvent::PeerDeleted { address },
                AssociationEvent::Switched { from, to } => SigmaEvent::Switched { from, to },
                _ => continue,
            };
            out.mark(event.into());
        }
    }
}

impl Role for Correspondent {
    fn name(&self) -> &'static str {
        CORRESPONDENT
    }

    fn listens(&self) -> &[Listen] {
        &LISTENS
    }

    fn serves(&self) -> &[node::Transport] {
        &[SCTP]
    }

    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Outbox) {
        match input {
            // A time-out before the role's deadline has no effect.
            Input::Timeout if self.deadline().is_none_or(|due| now < due) => return,
            Input::Timeout => self.transport.timeout(now),
            Input::Packet(rx, packet) => {
                let verdict = self.transport.packet(now, rx, &packet);
                end(rx, packet, verdict, out);
            }
            Input::Serve(id, op) => self.transport.serve(now, id, op, &[self.address], out),
            Input::Start(_)
            | Input::Link(..)
            | Input::Idle(..)
            | Input::Notice(_)
            | Input::Stream(..)
            | Input::Command(..)
            | Input::Failed(_)
            | Input::Wall(_)
            | Input::Stored(_)
            | Input::Notification(_) => {}
        }
        self.news(now, out);
    }

    fn deadline(&self) -> Option<Instant> {
        self.transport.deadline()
    }

    fn status(&self) -> Value {
        Value::map([("associations", self.transport.status())])
    }

    fn entries(&self) -> usize {
        self.transport.further_addresses()
    }
}
