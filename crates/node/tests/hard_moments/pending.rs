//! Smooth handoff (Mobile IP with route optimization). The new agent delivers packets to a visitor whose registration
//! is pending, but only those from its previous agent. The previous agent keeps a copy of the last packet that it
//! delivered.

use crate::teller::{Moment, datagram, ends, mac, said};
use node::{
    Action, Class, Encap, Hop, Input, Lifetime, Listen, Node, Outbox, Proto, Role, Route, RouteKey, Rx,
    TunnelKinds, Value, reason,
};
use wire::{Duration, Frame, Iface, Instant, Ipv4Addr, Mac, Packet, PacketId, Prefix, Reason, ipip, ipv4};

const VISITORS: Class = Class::CLOSED;
const MOBILE: [u8; 4] = [10, 0, 0, 7];
const HOME: [u8; 4] = [10, 0, 0, 1];
const OLD: [u8; 4] = [10, 2, 0, 1];
const NEW: [u8; 4] = [10, 3, 0, 1];
const PARTIES: &[(&str, [u8; 4])] = &[
    ("router", [0, 0, 0, 1]),
    ("mn", MOBILE),
    ("home", HOME),
    ("old", OLD),
    ("new", NEW),
    ("cn", [10, 9, 0, 9]),
    ("forger", [10, 6, 6, 6]),
];
const UP: Iface = Iface(1);
const AIR: Iface = Iface(2);
/// The largest number of packets that a visitor receives before it is registered. The limit is small, so that the
/// script reaches the limit.
const MOST: u32 = 2;
const PENDING: Duration = Duration::from_secs(7);

/// Sets the routes with which both agents begin.
fn start(own: [u8; 4], out: &mut Outbox) {
    let forever = |action| Route::new(action, Lifetime::Permanent);
    out.route(RouteKey { class: None, src: Prefix::ANY, dst: Prefix::ANY }, forever(onward(UP, mac(0))));
    let to_us = RouteKey { class: None, src: Prefix::ANY, dst: Prefix::host(own.into()) };
    out.route(to_us, forever(Action::Open(VISITORS, TunnelKinds::ALL)));
    out.route(RouteKey::all(VISITORS), forever(Action::Drop(Reason("not_a_visitor"))));
}

const fn onward(iface: Iface, to: Mac) -> Action {
    Action::Forward(Hop::mac(iface, to))
}

fn deliver(mut packet: Packet, to: Mac, out: &mut Outbox) {
    if !ipv4::decrement_ttl(&mut packet.bytes) {
        return out.discard(UP, packet, reason::TTL_EXPIRED);
    }
    out.send(AIR, Packet { link: Frame::to(to), ..packet });
}

// --- the new agent ---------------------------------------------------------------------------------------------------

#[derive(Debug, Default)]
struct NewAgent {
    /// The link address of the visitor, and the number of packets that it received while pending.
    pending: Option<(Mac, u32)>,
}

impl NewAgent {
    fn message(&mut self, now: Instant, rx: Rx, packet: Packet, out: &mut Outbox) {
        let visitor = RouteKey::to(VISITORS, MOBILE.into());
        let tell = |says, to: [u8; 4]| datagram(says, NEW.into(), to.into(), 434);
        match said(&packet).as_str() {
            "request" => {
                self.pending = Some((packet.link.src, 0));
                let lifetime = Lifetime::Until(now + PENDING);
                out.route(visitor, Route::new(Action::Punt, lifetime));
                // The update does not wait for the home agent's reply.
                out.send_routed(tell("update", OLD));
                out.send_routed(tell("request", HOME));
            }
            "reply" => {
                if let Some((to, _)) = self.pending.take() {
                    out.route(visitor, Route::new(onward(AIR, to), Lifetime::Permanent));
                    out.send(AIR, Packet { link: Frame::to(to), ..tell("reply", MOBILE) });
                }
            }
            _ => return out.pass(rx, packet),
        }
        out.discard(rx.iface, packet, reason::CONSUMED);
    }

    /// Handles a packet out of a tunnel for a visitor that is not registered yet.
    fn early(&mut self, rx: Rx, packet: Packet, out: &mut Outbox) {
        let from_last = rx.tunnel.is_some_and(|(entry, _)| entry == Ipv4Addr::from(OLD));
        match &mut self.pending {
            Some((to, brought)) if from_last && *brought < MOST => {
                *brought += 1;
                deliver(packet, *to, out);
            }
            Some(_) if from_last => out.discard(rx.iface, packet, Reason("pending_limit")),
            _ => out.discard(rx.iface, packet, Reason("not_the_last_agent")),
        }
    }
}

impl Role for NewAgent {
    fn name(&self) -> &'static str {
        "foreign"
    }
    fn listens(&self) -> &[Listen] {
        &[Listen::Local(Proto::Udp(434))]
    }
    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Outbox) {
        match input {
            Input::Start(_) => start(NEW, out),
            Input::Packet(rx, packet) if rx.tunnel.is_some() => self.early(rx, packet, out),
            Input::Packet(rx, packet) => self.message(now, rx, packet, out),
            Input::Idle(key, _) => {
                self.pending = None;
                out.route(key, None);
            }
            _ => {}
        }
    }
    fn deadline(&self) -> Option<Instant> {
        None
    }
    fn status(&self) -> Value {
        Value::None
    }
}

pub(crate) const fn new_agent() -> Moment {
    fn node() -> Node {
        Node::new(vec![Box::new(NewAgent::default())], vec![NEW.into()])
    }
    Moment { interfaces: &["up", "air"], parties: PARTIES, node }
}

// --- the last agent --------------------------------------------------------------------------------------------------

/// An agent with one visitor from the start. The agent receives each packet for the visitor, and keeps a copy of the
/// last packet.
#[derive(Debug, Default)]
struct LastAgent {
    kept: Option<Packet>,
}

impl LastAgent {
    /// Handles the update of the new agent: the visitor has left. Packets to the visitor are tunneled from now on, and
    /// the copy is sent first.
    fn update(&mut self, out: &mut Outbox) {
        let (src, dst) = (OLD.into(), NEW.into());
        let action = Action::Tunnel(Encap::new(src, dst, 1480));
        out.route(RouteKey::to(VISITORS, MOBILE.into()), Route::new(action, Lifetime::Permanent));
        if let Some(kept) = self.kept.take()
            && let Ok(bytes) = ipip::encapsulate(&kept.bytes, src, dst, 7)
        {
            out.send_routed(Packet { bytes, ..kept });
        }
    }
}

impl Role for LastAgent {
    fn name(&self) -> &'static str {
        "foreign"
    }
    fn listens(&self) -> &[Listen] {
        &[Listen::Local(Proto::Udp(434))]
    }
    fn handle(&mut self, _now: Instant, input: Input<'_>, out: &mut Outbox) {
        match input {
            Input::Start(_) => {
                start(OLD, out);
                let route = Route::new(Action::Punt, Lifetime::Permanent);
                out.route(RouteKey::to(VISITORS, MOBILE.into()), route);
            }
            Input::Packet(rx, packet) if rx.tunnel.is_some() => {
                // The older copy is discarded, so that its end is in the ledger.
                if let Some(old) = self.kept.replace(packet.clone()) {
                    out.discard(rx.iface, old, Reason("kept_no_longer"));
                }
                deliver(packet, mac(1), out);
            }
            Input::Packet(rx, packet)
                if said(&packet) == "update" && ends(&packet).0 == Ipv4Addr::from(NEW) =>
            {
                self.update(out);
                out.discard(rx.iface, packet, reason::CONSUMED);
            }
            Input::Packet(rx, packet) => out.pass(rx, packet),
            _ => {}
        }
    }
    fn deadline(&self) -> Option<Instant> {
        None
    }
    fn status(&self) -> Value {
        Value::None
    }
    fn holds(&self, each: &mut dyn FnMut(PacketId)) {
        self.kept.iter().for_each(|packet| each(packet.id));
    }
}

pub(crate) const fn last_agent() -> Moment {
    fn node() -> Node {
        Node::new(vec![Box::new(LastAgent::default())], vec![OLD.into()])
    }
    Moment { interfaces: &["up", "air"], parties: PARTIES, node }
}
