//! The address of an association changes while data are lost (SIGMA over SCTP). The transport and its user are two
//! roles, and the source address of the data decides their path.

use crate::teller::{Moment, datagram, ends, mac, said};
use node::stream::OwnedStreamEvent;
use node::{
    Action, Hop, Input, InterfaceAddress, Lifetime, Link, Listen, Node, Outbox, Proto, Role, Route, RouteKey,
    Rx,
};
use node::{StreamEvent, StreamId, StreamOp, Transport, Value, reason};
use std::collections::VecDeque;
use wire::{Duration, Iface, Instant, Ipv4Addr, Packet, Prefix, Reason, SocketAddrV4};

const SCTP: Transport = Transport::Role("sctp");
/// The port of SCTP in UDP (RFC 6951).
const PORT: u16 = 9899;
const FIRST: [u8; 4] = [10, 1, 0, 7];
const SECOND: [u8; 4] = [10, 2, 0, 7];
const CORRESPONDENT: [u8; 4] = [10, 9, 0, 9];
const T3: Duration = Duration::from_millis(300);

/// A role that writes a chunk for each command, if there is credit for it.
#[derive(Debug, Default)]
struct Program {
    room: usize,
    written: u8,
}

impl Role for Program {
    fn name(&self) -> &'static str {
        "program"
    }
    fn verbs(&self) -> &[&'static str] {
        &["write"]
    }
    fn handle(&mut self, _now: Instant, input: Input<'_>, out: &mut Outbox) {
        match input {
            Input::Start(_) => {
                let peer = SocketAddrV4::new(CORRESPONDENT.into(), 9);
                out.stream(StreamId(0), StreamOp::Open { by: SCTP, local: None, peer, foreign: false });
            }
            Input::Stream(_, StreamEvent::Room(more)) => self.room += more,
            Input::Command(id, _) => {
                if self.room > 0 {
                    (self.room, self.written) = (self.room - 1, self.written + 1);
                    out.stream(StreamId(0), StreamOp::Write(vec![self.written]));
                }
                out.answer(id, Ok(Value::from(self.room as u64)));
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

/// The transport, with one association. The association opens at once, with credit for three chunks.
#[derive(Debug)]
struct Sctp {
    user: Option<StreamId>,
    own: Ipv4Addr,
    outstanding: VecDeque<u8>,
    /// Whether a change of address waits for its acknowledgment (ASCONF-ACK).
    asks: bool,
    due: Option<Instant>,
}

fn by_source(own: [u8; 4], iface: u16, router: u8, out: &mut Outbox) {
    let key = RouteKey { class: None, src: Prefix::host(own.into()), dst: Prefix::ANY };
    let action = Action::Forward(Hop::mac(Iface(iface), mac(router)));
    out.route(key, Route::new(action, Lifetime::Permanent));
}

impl Sctp {
    fn say(&self, what: &str, out: &mut Outbox) {
        out.send_routed(datagram(what, self.own, CORRESPONDENT.into(), PORT));
    }

    fn send_all(&mut self, now: Instant, out: &mut Outbox) {
        self.due = (self.asks || !self.outstanding.is_empty()).then(|| now + T3);
        if self.asks {
            // Before the new address is acknowledged, only the ASCONF may be sent from it (RFC 5061, section 5.3).
            return self.say("asconf-for-first:add,primary,delete", out);
        }
        for chunk in &self.outstanding {
            self.say(&format!("chunk-{chunk}"), out);
        }
    }

    fn packet(&mut self, now: Instant, rx: Rx, packet: Packet, out: &mut Outbox) {
        let says = said(&packet);
        match says.split_once('-') {
            Some(("sack", chunk)) => {
                let before = self.outstanding.len();
                self.outstanding.retain(|kept| kept.to_string() != chunk);
                if let Some(user) = self.user.filter(|_| self.outstanding.len() < before) {
                    out.served(OwnedStreamEvent::Room(user, 1));
                }
                self.due = self.due.filter(|_| !self.outstanding.is_empty() || self.asks);
            }
            Some(("heartbeat", nonce)) => {
                // The answer is sent from the address that was probed, even if another address is in use.
                out.send_routed(datagram(&format!("heard-{nonce}"), ends(&packet).1, ends(&packet).0, PORT));
            }
            Some(("asconf", "ack")) if self.asks => {
                self.asks = false;
                let gone = InterfaceAddress { address: FIRST.into(), link: "10.1.0.0/24".parse().unwrap() };
                out.remove_address(Iface(1), gone);
                // Late packets to the old address are dropped, without an ICMP error.
                let late = RouteKey { class: None, src: Prefix::ANY, dst: Prefix::host(FIRST.into()) };
                let lifetime = Lifetime::Until(now + T3 * 2);
                out.route(late, Route::new(Action::Drop(Reason("old_address")), lifetime));
                self.send_all(now, out);
            }
            _ => return out.pass(rx, packet),
        }
        out.discard(rx.iface, packet, reason::CONSUMED);
    }
}

impl Role for Sctp {
    fn name(&self) -> &'static str {
        "sctp"
    }
    fn listens(&self) -> &[Listen] {
        &[Listen::Local(Proto::Udp(PORT)), Listen::IcmpAbout(Proto::Udp(PORT))]
    }
    fn serves(&self) -> &[Transport] {
        &[SCTP]
    }
    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Outbox) {
        match input {
            Input::Start(_) => by_source(FIRST, 1, 1, out),
            Input::Serve(id, StreamOp::Open { .. }) => {
                self.user = Some(id);
                out.served(OwnedStreamEvent::Opened(id, SocketAddrV4::new(self.own, PORT)));
                out.served(OwnedStreamEvent::Room(id, 3));
            }
            Input::Serve(_, StreamOp::Write(bytes)) => {
                self.outstanding.extend(&bytes);
                self.due = self.due.or(Some(now + T3));
                for chunk in bytes.iter().filter(|_| !self.asks) {
                    self.say(&format!("chunk-{chunk}"), out);
                }
            }
            Input::Timeout if self.due.is_some_and(|due| due <= now) => self.send_all(now, out),
            Input::Packet(rx, packet) => self.packet(now, rx, packet, out),
            // The first link is lost before the second address was announced. One message adds the second address and
            // deletes the first. The message is sent from the second address.
            Input::Link(Iface(1), Link::Down(_)) => {
                let link = "10.2.0.0/24".parse().unwrap();
                out.add_address(Iface(2), InterfaceAddress { address: SECOND.into(), link });
                by_source(SECOND, 2, 2, out);
                (self.own, self.asks) = (SECOND.into(), true);
                self.send_all(now, out);
            }
            _ => {}
        }
    }
    fn deadline(&self) -> Option<Instant> {
        self.due
    }
    fn status(&self) -> Value {
        Value::None
    }
}

fn node() -> Node {
    let sctp = Sctp { user: None, own: FIRST.into(), outstanding: VecDeque::new(), asks: false, due: None };
    Node::new(vec![Box::new(Program::default()), Box::new(sctp)], vec![FIRST.into()])
}

pub(crate) const fn moment() -> Moment {
    let parties: &[_] = &[
        ("nobody", [0, 0, 0, 0]),
        ("router1", [10, 1, 0, 1]),
        ("router2", [10, 2, 0, 1]),
        ("first", FIRST),
        ("second", SECOND),
        ("cn", CORRESPONDENT),
    ];
    Moment { interfaces: &["wlan1", "wlan2"], parties, node }
}
