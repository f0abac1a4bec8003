//! Paging of an idle host (Cellular IP): a node with a paging cache, one without, and the host itself.

use crate::teller::{Moment, datagram, ends, mac, said};
use node::PuntReason;
use node::{
    Action, Class, Hop, IngressPolicy, Input, Lifetime, Listen, Node, Outbox, Port, Proto, Role, Route,
    RouteKey, Rx, Value,
};
use std::collections::BTreeMap;
use wire::{Duration, Iface, Instant, Ipv4Addr, Mac, Packet, Prefix, Reason};

const UPWARD: Class = Class(16);
const DOWNWARD: Class = Class(17);
const UPDATES: u16 = 253;
const GATEWAY: [u8; 4] = [10, 1, 0, 1];
const HOST: [u8; 4] = [10, 1, 0, 7];
const PARTIES: &[(&str, [u8; 4])] =
    &[("gw", GATEWAY), ("b2", [0, 0, 0, 2]), ("b3", [0, 0, 0, 3]), ("mh", HOST), ("cn", [10, 9, 0, 9])];
const ROUTE_TIMEOUT: Duration = Duration::from_millis(100);
const PAGING_TIMEOUT: Duration = Duration::from_millis(900);

fn hop(iface: u16, neighbor: u8) -> Hop {
    Hop::mac(Iface(iface), mac(neighbor))
}

fn route(action: Action, lifetime: Lifetime) -> Route {
    Route::new(action, lifetime)
}

// --- in the network --------------------------------------------------------------------------------------------------

/// A base station or router. Its routes are in the table. Its paging cache is a map in the role, because only packets
/// without a route need it.
#[derive(Debug)]
struct Station {
    has_cache: bool,
    /// The neighbor from which each host was heard last, and the end of the mapping.
    paging: BTreeMap<Ipv4Addr, (Hop, Instant)>,
}

impl Station {
    fn start(out: &mut Outbox) {
        let policy = IngressPolicy { class: DOWNWARD, check: None, ttl: true, icmp: false, punts: 0 };
        out.ingress_policy(Port { iface: Iface(1), from: None }, policy);
        for iface in [2, 3] {
            let policy = IngressPolicy { class: UPWARD, check: Some(DOWNWARD), punts: 100, ..policy };
            out.ingress_policy(Port { iface: Iface(iface), from: None }, policy);
        }
        out.route(RouteKey::all(UPWARD), route(Action::Forward(hop(1, 0)), Lifetime::Permanent));
        out.route(RouteKey::all(DOWNWARD), route(Action::Punt, Lifetime::Permanent));
    }

    /// Handles an update: `route` sets both mappings, `paging` sets only the mapping of the paging cache. The update is
    /// forwarded to the gateway.
    fn update(&mut self, now: Instant, rx: Rx, packet: Packet, out: &mut Outbox) {
        let (host, came) = (ends(&packet).0, Hop::mac(rx.iface, packet.link.src));
        if said(&packet) == "route" {
            let lifetime = Lifetime::SoftState(ROUTE_TIMEOUT);
            out.route(RouteKey::to(DOWNWARD, host), route(Action::Forward(came), lifetime));
        }
        self.paging.insert(host, (came, now + PAGING_TIMEOUT));
        out.send(Iface(1), Packet { link: wire::Frame::to(mac(0)), ..packet });
    }

    /// Pages the destination of a packet, because no route leads to it.
    fn page(&mut self, now: Instant, rx: Rx, packet: Packet, out: &mut Outbox) {
        let to = |hop: Hop| match hop.to {
            node::NextHop::Mac(mac) => mac,
            _ => Mac::BROADCAST,
        };
        if !self.has_cache {
            // Each downlink neighbor gets a copy. All copies have the identity of the received packet.
            for hop in [hop(2, 1), hop(3, 2)] {
                out.send(hop.iface, Packet { link: wire::Frame::to(to(hop)), ..packet.clone() });
            }
            return;
        }
        match self.paging.get(&ends(&packet).1).filter(|(_, until)| now < *until) {
            Some((hop, _)) => out.send(hop.iface, Packet { link: wire::Frame::to(to(*hop)), ..packet }),
            None => out.discard(rx.iface, packet, Reason("page_miss")),
        }
    }
}

impl Role for Station {
    fn name(&self) -> &'static str {
        "station"
    }
    fn listens(&self) -> &[Listen] {
        const LISTENS: &[Listen] = &[Listen::Transit(Proto::Udp(UPDATES), Prefix::ANY)];
        LISTENS
    }
    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Outbox) {
        match input {
            Input::Start(_) => Self::start(out),
            Input::Packet(rx, packet) => match rx.why {
                PuntReason::Listen => self.update(now, rx, packet, out),
                PuntReason::Action => self.page(now, rx, packet, out),
                _ => out.discard(rx.iface, packet, Reason("uplink_no_mapping")),
            },
            // The route has ended. The paging mapping is valid for its time-out after the last use of the route,
            // because data refreshed the route.
            Input::Idle(key, used) => {
                out.route(key, None);
                let host = key.dst.address();
                self.paging.entry(host).and_modify(|(_, until)| *until = (*until).max(used + PAGING_TIMEOUT));
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

pub(crate) const fn station(has_cache: bool) -> Moment {
    const fn node(has_cache: bool) -> Station {
        Station { has_cache, paging: BTreeMap::new() }
    }
    let make: fn() -> Node = if has_cache {
        || Node::new(vec![Box::new(node(true))], Vec::new())
    } else {
        || Node::new(vec![Box::new(node(false))], Vec::new())
    };
    Moment { interfaces: &["up", "left", "right"], parties: PARTIES, node: make }
}

// --- the host --------------------------------------------------------------------------------------------------------

const ACTIVE: Duration = Duration::from_millis(100);

/// The mobile host. While the host is idle, the role receives all packets from and to the host. While the host is
/// active, the table forwards these packets, and the node reports when a route is unused.
#[derive(Debug, Default)]
struct Mobile {
    /// The keys of the routes that were reported as unused, with their last use.
    resting: BTreeMap<RouteKey, Instant>,
    /// The instant at which both routes were set.
    armed: Instant,
}

const OUTWARD: RouteKey = RouteKey { class: Some(Class::HOST), src: Prefix::ANY, dst: Prefix::ANY };

fn inward() -> RouteKey {
    RouteKey { class: Some(Class::WIRE), src: Prefix::ANY, dst: Prefix::host(HOST.into()) }
}

impl Mobile {
    fn rest(out: &mut Outbox) {
        out.route(OUTWARD, route(Action::Punt, Lifetime::Permanent));
        out.route(inward(), route(Action::Punt, Lifetime::Permanent));
    }

    /// Sets both routes at the same instant, so that they are reported at the same instant if neither is used.
    fn arm(&mut self, now: Instant, out: &mut Outbox) {
        self.armed = now;
        self.resting.clear();
        out.route(OUTWARD, route(Action::Forward(hop(1, 1)), Lifetime::ReportIdle(ACTIVE)));
        out.route(inward(), route(Action::Host, Lifetime::ReportIdle(ACTIVE)));
    }

    fn idle(&mut self, now: Instant, key: RouteKey, used: Instant, out: &mut Outbox) {
        if used == self.armed {
            self.resting.insert(key, used);
        }
        if self.resting.len() == 2 {
            out.mark(node::Mark::new("mobile", "idle"));
            Self::rest(out);
        } else if self.resting.is_empty() {
            self.arm(now, out);
        }
    }
}

impl Role for Mobile {
    fn name(&self) -> &'static str {
        "mobile"
    }
    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Outbox) {
        match input {
            Input::Start(_) => Self::rest(out),
            Input::Packet(rx, packet) => {
                out.mark(node::Mark::new("mobile", "active"));
                let update = datagram("route", HOST.into(), GATEWAY.into(), UPDATES);
                out.send(Iface(1), Packet { link: wire::Frame::to(mac(1)), ..update });
                self.arm(now, out);
                if rx.iface == Iface::HOST {
                    out.send_routed(packet);
                } else {
                    out.pass(rx, packet);
                }
            }
            Input::Idle(key, used) => self.idle(now, key, used, out),
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

pub(crate) const fn mobile() -> Moment {
    fn node() -> Node {
        Node::new(vec![Box::new(Mobile::default())], vec![HOST.into()])
    }
    Moment { interfaces: &["air"], parties: PARTIES, node }
}
