//! Random steps: requests of roles and of the operator, changes of links, and packets. All are drawn from small sets,
//! so that routes often replace each other, and packets often match a route.

use node::{
    Action, Class, Encap, Hop, IngressPolicy, InterfaceAddress, Lifetime, NextHop, Port, Route, RouteKey,
    TunnelKind, TunnelKinds,
};
use table::Datagram;
use wire::ipv4;
use wire::{Duration, Iface, Instant, Ipv4Addr, Mac, Prefix, Reason, Rng};

/// The number of interfaces, without the interface to the host's own stack.
pub(crate) const IFACES: u16 = 3;
pub(crate) const ROLES: u64 = 2;
/// The class of the routes that a check looks up.
const MAPPED: Class = Class(2);

/// A request of a role.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Request {
    Route(RouteKey, Option<Route>),
    Policy(Port, Option<IngressPolicy>),
    Address(Iface, InterfaceAddress, bool),
}

/// One random step of the test.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// A role makes a request.
    Role(usize, Request),
    /// The operator sets a route.
    Operator(RouteKey, Route),
    /// The operator adds an address.
    Added(Iface, InterfaceAddress),
    /// The host's own stack refused an address.
    Refused(Iface, InterfaceAddress),
    /// An interface comes up with this MTU, or goes down.
    Link(Iface, Option<u16>),
    /// The clock advances by this time.
    Time(Duration),
    /// The data path is loaded again: the driver asks for all uses, and fills new maps.
    Reload,
}

/// A packet, and the port at which it arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) port: Port,
    pub(crate) packet: Datagram,
}

/// The generator of random steps and packets.
pub(crate) struct Choices(pub(crate) Rng);

impl Choices {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0.draw() % limit
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }

    fn address(&mut self) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, self.below(3) as u8, 1 + self.below(4) as u8)
    }

    fn prefix(&mut self) -> Prefix {
        let len = self.of(&[0, 0, 8, 24, 24, 32, 32]);
        Prefix::new(self.address(), len)
    }

    fn link_address(&mut self) -> InterfaceAddress {
        let len = self.of(&[16, 24, 24, 32]);
        InterfaceAddress::new(self.address(), len)
    }

    fn iface(&mut self) -> Iface {
        Iface(1 + self.below(u64::from(IFACES)) as u16)
    }

    fn key(&mut self) -> RouteKey {
        let class = self.of(&[None, Some(Class::HOST), Some(Class::WIRE), Some(MAPPED), Some(Class::CLOSED)]);
        let src = if self.one_in(3) { self.prefix() } else { Prefix::ANY };
        RouteKey { class, src, dst: self.prefix() }
    }

    fn lifetime(&mut self, now: Instant) -> Lifetime {
        let span = Duration::from_millis(1 + self.below(4000));
        match self.below(4) {
            0 => Lifetime::Permanent,
            1 => Lifetime::SoftState(span),
            2 => Lifetime::ReportIdle(span),
            _ => Lifetime::Until(now + span - Duration::from_millis(200)),
        }
    }

    fn action(&mut self) -> Action {
        let iface = if self.one_in(8) { Iface(9) } else { self.iface() };
        match self.below(12) {
            0 => Action::Punt,
            1 => Action::Drop(self.of(&[Reason("not_bound"), Reason("no_agent")])),
            2 => Action::Host,
            3 => {
                let mtu = self.of(&[500, 1480]);
                let kind = self.of(&[TunnelKind::IpInIp, TunnelKind::Minimal, TunnelKind::Gre]);
                let (src, dst, is_failing) = (self.address(), self.address(), self.one_in(2));
                let reported = self.of(&[mtu, 450]);
                Action::Tunnel(Encap { src, dst, mtu, reported, kind, is_failing })
            }
            4 => {
                let class = self.of(&[MAPPED, Class::CLOSED]);
                Action::Open(class, self.of(&[TunnelKinds::ALL, TunnelKinds::of(TunnelKind::Gre)]))
            }
            5 => Action::Forward(Hop { iface, to: NextHop::Via(self.address()) }),
            6 => Action::Forward(Hop { iface, to: NextHop::OnLink }),
            _ => Action::Forward(Hop::mac(iface, Mac([2; 6]))),
        }
    }

    fn route(&mut self, now: Instant) -> Route {
        let notice = self.of(&[None, None, Some(Duration::from_millis(300)), Some(Duration::from_secs(1))]);
        Route { notice, ..Route::new(self.action(), self.lifetime(now)) }
    }

    fn policy(&mut self) -> IngressPolicy {
        let class = self.of(&[Class::WIRE, MAPPED, Class::CLOSED]);
        let check = self.of(&[None, Some(MAPPED), Some(MAPPED)]);
        IngressPolicy { class, check, ttl: !self.one_in(4), icmp: self.one_in(2), punts: 1000 }
    }

    fn port(&mut self) -> Port {
        let iface = self.iface();
        let from = if self.one_in(2) { Some(neighbor_of(self.address())) } else { None };
        Port { iface, from }
    }

    fn request(&mut self, now: Instant) -> Request {
        match self.below(12) {
            0..=3 => {
                // The route is a mapping, as a base station sets it for a mobile host.
                let host = self.address();
                let action = Action::Forward(Hop::mac(iface_of(host), neighbor_of(host)));
                let lifetime = Lifetime::SoftState(Duration::from_millis(500 + self.below(3000)));
                Request::Route(RouteKey::to(MAPPED, host), Some(Route::new(action, lifetime)))
            }
            4..=6 => {
                let route = self.route(now);
                Request::Route(self.key(), Some(route))
            }
            7 | 8 => Request::Route(self.key(), None),
            9 => {
                let policy = if self.one_in(4) { None } else { Some(self.policy()) };
                Request::Policy(self.port(), policy)
            }
            10 => Request::Policy(Port { from: None, iface: self.iface() }, Some(self.policy())),
            _ => Request::Address(self.iface(), self.link_address(), self.one_in(2)),
        }
    }

    pub(crate) fn step(&mut self, now: Instant) -> Step {
        match self.below(40) {
            0..=13 => Step::Role(self.below(ROLES) as usize, self.request(now)),
            14..=17 => {
                let route = self.route(now);
                Step::Operator(self.key(), route)
            }
            18 => Step::Added(self.iface(), self.link_address()),
            19 => Step::Refused(self.iface(), self.link_address()),
            20 | 21 => {
                let mtu = self.of(&[None, Some(600), Some(1500)]);
                Step::Link(self.iface(), mtu)
            }
            22 if self.one_in(8) => Step::Reload,
            _ => Step::Time(Duration::from_nanos(self.below(700_000_000))),
        }
    }

    pub(crate) fn arrival(&mut self) -> Arrival {
        let (src, dst) = (self.address(), self.address());
        let port = match self.below(5) {
            0 => Port { iface: Iface::HOST, from: None },
            1 => Port { iface: self.iface(), from: Some(neighbor_of(dst)) },
            _ => Port { iface: iface_of(src), from: Some(neighbor_of(src)) },
        };
        let packet = Datagram {
            src,
            dst,
            protocol: self.of(&[ipv4::UDP, ipv4::UDP, ipv4::IPIP]),
            ttl: self.of(&[1, 2, 64, 64]),
            dont_fragment: self.one_in(2),
            len: self.of(&[100, 100, 501, 1400]),
        };
        Arrival { port, packet }
    }

    pub(crate) fn class(&mut self) -> Class {
        self.of(&[Class::HOST, Class::WIRE, MAPPED, Class::CLOSED, Class(255)])
    }
}

/// Returns the interface from which packets of a host usually arrive.
fn iface_of(host: Ipv4Addr) -> Iface {
    Iface(1 + u16::from(host.octets()[2]) % IFACES)
}

/// Returns the link address that a host usually has.
fn neighbor_of(host: Ipv4Addr) -> Mac {
    let [_, b, c, d] = host.octets();
    Mac([2, 0, 1, b, c, d])
}
