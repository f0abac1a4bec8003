//! Reverse tunneling at the home agent (RFC 3024): a packet out of a tunnel is accepted only if the tunnel's entry is
//! the care-of address of the packet's source.

use crate::teller::{Moment, mac};
use node::{Action, Class, Hop, Input, Lifetime, Node, Outbox, Role, Route, RouteKey, TunnelKinds, Value};
use wire::{Iface, Instant, Ipv4Addr, Packet, Prefix, Reason, ipv4};

const HOME: [u8; 4] = [10, 0, 0, 1];
const MOBILE: [u8; 4] = [10, 0, 0, 7];
const CARE_OF: [u8; 4] = [10, 2, 0, 1];
const NEIGHBOR: u8 = 1;
const NOT_BOUND: Reason = Reason("not_bound");
const ALL: Class = Class::CLOSED;

/// The part of the node that checks the source: the role, or only the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum By {
    Role,
    Table,
}

/// A home agent with one binding from the start.
#[derive(Debug)]
struct Home {
    by: By,
}

const fn onward() -> Action {
    Action::Forward(Hop::mac(Iface(1), mac(NEIGHBOR)))
}

fn forever(action: Action) -> Route {
    Route::new(action, Lifetime::Permanent)
}

impl Home {
    fn start(&self, out: &mut Outbox) {
        let [home, mobile, care_of] = [HOME, MOBILE, CARE_OF].map(|octets| Prefix::host(octets.into()));
        let to_us = RouteKey { class: None, src: Prefix::ANY, dst: home };
        let of_mobile = |class| RouteKey { class: Some(class), src: mobile, dst: Prefix::ANY };
        out.route(RouteKey { class: None, src: Prefix::ANY, dst: Prefix::ANY }, forever(onward()));
        out.route(to_us, forever(Action::Open(ALL, TunnelKinds::ALL)));
        out.route(RouteKey::all(ALL), forever(Action::Drop(NOT_BOUND)));
        match self.by {
            By::Role => out.route(of_mobile(ALL), forever(Action::Punt)),
            // The tunnel from the care-of address has a separate class. Packets of other hosts out of this tunnel match
            // only the default route of the class, which drops them.
            By::Table => {
                let one = Class(ALL.0 + 1);
                out.route(RouteKey { src: care_of, ..to_us }, forever(Action::Open(one, TunnelKinds::ALL)));
                out.route(RouteKey::all(one), forever(Action::Drop(NOT_BOUND)));
                out.route(of_mobile(one), forever(onward()));
            }
        }
    }

    fn opened(rx: node::Rx, mut packet: Packet, out: &mut Outbox) {
        let is_bound = rx.tunnel.is_some_and(|(entry, _)| entry == Ipv4Addr::from(CARE_OF));
        if !is_bound || !ipv4::decrement_ttl(&mut packet.bytes) {
            return out.discard(rx.iface, packet, NOT_BOUND);
        }
        out.send_routed(packet);
    }
}

impl Role for Home {
    fn name(&self) -> &'static str {
        "home"
    }
    fn handle(&mut self, _now: Instant, input: Input<'_>, out: &mut Outbox) {
        match input {
            Input::Start(_) => self.start(out),
            Input::Packet(rx, packet) => Self::opened(rx, packet, out),
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

fn node(by: By) -> Node {
    Node::new(vec![Box::new(Home { by })], vec![HOME.into()])
}

const fn moment(node: fn() -> Node) -> Moment {
    let parties: &[_] = &[
        ("home", HOME),
        ("router", [10, 0, 0, 254]),
        ("mn", MOBILE),
        ("cn", [10, 9, 0, 9]),
        ("coa", CARE_OF),
        ("forger", [10, 6, 6, 6]),
        ("other", [10, 0, 0, 8]),
    ];
    Moment { interfaces: &["eth"], parties, node }
}

pub(crate) const fn by_role() -> Moment {
    moment(|| node(By::Role))
}

pub(crate) const fn by_table() -> Moment {
    moment(|| node(By::Table))
}
