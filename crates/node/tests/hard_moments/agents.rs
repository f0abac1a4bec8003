//! A home agent and a foreign agent on one node, both on port 434: each passes on the messages for the other agent.

use crate::teller::{Moment, datagram, said};
use node::{Input, Listen, Node, Outbox, Proto, Role, Value, reason};
use wire::{Instant, Ipv4Addr};

const OWN: [u8; 4] = [10, 0, 0, 1];

/// An agent that answers the messages for it, and passes on all others.
#[derive(Debug)]
struct Agent {
    name: &'static str,
    /// The messages for this agent, each with its answer.
    takes: &'static [(&'static str, &'static str)],
}

impl Role for Agent {
    fn name(&self) -> &'static str {
        self.name
    }
    fn listens(&self) -> &[Listen] {
        &[Listen::Local(Proto::Udp(434))]
    }
    fn handle(&mut self, _now: Instant, input: Input<'_>, out: &mut Outbox) {
        let Input::Packet(rx, packet) = input else { return };
        let says = said(&packet);
        let Some((_, answer)) = self.takes.iter().find(|(what, _)| *what == says) else {
            return out.pass(rx, packet);
        };
        let neighbor = packet.link.src;
        let mut answer = datagram(answer, Ipv4Addr::from(OWN), crate::teller::ends(&packet).0, 434);
        answer.link.dst = neighbor;
        out.discard(rx.iface, packet, reason::CONSUMED);
        out.send(rx.iface, answer);
    }
    fn deadline(&self) -> Option<Instant> {
        None
    }
    fn status(&self) -> Value {
        Value::None
    }
}

fn node() -> Node {
    let home = Agent { name: "home", takes: &[("request-to-home", "reply-from-home")] };
    let foreign = Agent {
        name: "foreign",
        takes: &[("request-to-foreign", "reply-from-foreign"), ("binding-update", "acknowledgement")],
    };
    Node::new(vec![Box::new(home), Box::new(foreign)], vec![OWN.into()])
}

pub(crate) const fn moment() -> Moment {
    Moment { interfaces: &["air"], parties: &[("agents", OWN), ("mn", [10, 0, 0, 7])], node }
}
