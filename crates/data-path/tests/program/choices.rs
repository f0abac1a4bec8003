//! Random rules and frames. Most are such that the program forwards the frame; each difference from that is rare.

use node::{
    Action, Aside, Class, Encap, Hop, IngressPolicy, Lifetime, NextHop, Port, Route, RouteKey, TunnelKind,
    TunnelKinds,
};
use wire::ipv4::{self, Header};
use wire::{Duration, EtherType, Frame, Iface, Instant, Ipv4Addr, Mac, Prefix, Reason, Rng, ethernet};

pub(crate) const IFACES: u16 = 3;
pub(crate) const OWN: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 3, 0, 1), Ipv4Addr::new(10, 3, 0, 2)];
const AGENTS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 9, 0, 1), Ipv4Addr::new(10, 9, 1, 1)];
const HOSTS: [Ipv4Addr; 3] =
    [Ipv4Addr::new(10, 1, 0, 7), Ipv4Addr::new(10, 1, 0, 8), Ipv4Addr::new(10, 2, 0, 7)];
const FAR: Ipv4Addr = Ipv4Addr::new(10, 7, 0, 1);
/// The classes of packets out of tunnels: one is closed.
const OPENED: [Class; 2] = [Class(200), Class(20)];
/// The class of the packets at a port with a policy.
const PORT: Class = Class(10);
pub(crate) const NEIGHBOR: Mac = Mac([2, 0, 0, 0, 1, 1]);

pub(crate) const fn mac(iface: Iface) -> Mac {
    Mac([2, 0, 0, 0, 9, iface.0 as u8])
}

/// A random change of the rules.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    Route(RouteKey, Option<Route>),
    Policy(Port, Option<IngressPolicy>),
    Link(Iface, Option<u16>),
    Time(Duration),
}

pub(crate) struct Choices(pub(crate) Rng);

impl Choices {
    fn below(&mut self, limit: u64) -> u64 {
        self.0.draw() % limit
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }

    /// Returns whether the node gets its time-outs later, in one of two cases.
    pub(crate) fn is_late(&mut self) -> bool {
        self.one_in(2)
    }

    pub(crate) fn iface(&mut self) -> Iface {
        Iface(1 + self.below(u64::from(IFACES)) as u16)
    }

    fn prefix(&mut self, address: Ipv4Addr) -> Prefix {
        let len = self.of(&[32, 32, 32, 32, 32, 24, 8, 0]);
        Prefix::new(address, len)
    }

    /// The lifetimes end between the instants of the test, so that a program that is late by some milliseconds sees the same.
    fn lifetime(&mut self, now: Instant) -> Lifetime {
        let span = Duration::from_millis(100 * self.below(6) + 50);
        match self.below(10) {
            0 | 1 => Lifetime::Until(now + span),
            2 | 3 => Lifetime::ReportIdle(span),
            4 if self.one_in(4) => Lifetime::SoftState(span),
            _ => Lifetime::Permanent,
        }
    }

    fn hop(&mut self) -> Hop {
        let iface = if self.one_in(24) { Iface(9) } else { self.iface() };
        let to = match self.below(16) {
            0 => NextHop::OnLink,
            1 => NextHop::Via(FAR),
            other => NextHop::Mac(Mac([2, 0, 0, 0, 7, other as u8])),
        };
        Hop { iface, to }
    }

    fn outer(&mut self, now: Instant) -> Change {
        let class = self.of(&[None, None, None, None, None, Some(Class::WIRE), Some(PORT)]);
        let (src, dst) = (self.of(&AGENTS), self.of(&OWN));
        let src = if self.one_in(2) { Prefix::ANY } else { self.prefix(src) };
        let key = RouteKey { class, src, dst: self.prefix(dst) };
        let kinds = self.of(&[
            TunnelKinds::ALL,
            TunnelKinds::of(TunnelKind::IpInIp),
            TunnelKinds::of(TunnelKind::Gre),
        ]);
        let action = match self.below(32) {
            0 => Action::Host,
            1 => Action::Drop(Reason("no_agent")),
            2 => Action::Punt,
            3 => Action::Forward(self.hop()),
            _ => Action::Open(self.of(&OPENED), kinds),
        };
        self.set(now, key, action, None)
    }

    fn inner(&mut self, now: Instant) -> Change {
        let class = self.of(&[None, Some(OPENED[0]), Some(OPENED[0]), Some(OPENED[1]), Some(OPENED[1])]);
        let host = self.host();
        let src = if self.one_in(3) { self.prefix(FAR) } else { Prefix::ANY };
        let key = RouteKey { class, src, dst: self.prefix(host) };
        let packets = self.of(&[1, 1, 3, 0]);
        let aside = if self.one_in(4) { None } else { Some(Aside { hop: self.hop(), packets }) };
        let action = match self.below(16) {
            0 => Action::Host,
            1 => Action::Drop(Reason("not_bound")),
            2 => Action::Tunnel(Encap::new(OWN[0], AGENTS[0], 1480)),
            3..=7 => Action::Punt,
            _ => Action::Forward(self.hop()),
        };
        self.set(now, key, action, aside)
    }

    fn set(&mut self, now: Instant, key: RouteKey, action: Action, aside: Option<Aside>) -> Change {
        let notice = self.one_in(12).then_some(Duration::from_secs(1));
        let route = Route { notice, aside, ..Route::new(action, self.lifetime(now)) };
        Change::Route(key, if self.one_in(5) { None } else { Some(route) })
    }

    fn host(&mut self) -> Ipv4Addr {
        if self.one_in(12) { OWN[1] } else { self.of(&HOSTS) }
    }

    pub(crate) fn change(&mut self, now: Instant) -> Change {
        match self.below(20) {
            0..=5 => self.outer(now),
            6..=14 => self.inner(now),
            15 => {
                let check = self.of(&[None, None, None, Some(Class(3))]);
                let class = self.of(&[PORT, Class::WIRE, OPENED[0]]);
                let policy = IngressPolicy { class, check, ttl: self.one_in(2), icmp: true, punts: 10 };
                let from = if self.one_in(2) { Some(NEIGHBOR) } else { None };
                let port = Port { iface: self.iface(), from };
                Change::Policy(port, if self.one_in(2) { None } else { Some(policy) })
            }
            16 => {
                let mtu = self.of(&[None, Some(600), Some(1500), Some(1500), Some(1500)]);
                Change::Link(self.iface(), mtu)
            }
            _ => Change::Time(Duration::from_millis(100 * (1 + self.below(3)))),
        }
    }

    /// Returns a frame that arrives on `iface`.
    pub(crate) fn frame(&mut self, iface: Iface) -> Vec<u8> {
        let len = self.of(&[0, 1, 64, 64, 64, 560, 580, 581, 1440]);
        let ttl = self.of(&[64, 64, 64, 64, 64, 64, 2, 2, 1, 0]);
        let is_piece = self.one_in(8);
        let src = if self.one_in(2) { FAR } else { Ipv4Addr::new(10, 7, 0, 2) };
        let header = Header {
            ttl,
            id: self.below(65536) as u16,
            tos: self.below(256) as u8,
            dont_fragment: !is_piece && self.one_in(2),
            more_fragments: is_piece,
            offset: if is_piece { self.below(100) as u16 } else { 0 },
            ..Header::new(self.of(&[ipv4::UDP, ipv4::TCP]), src, self.host())
        };
        let payload: Vec<u8> = (0..len).map(|_| self.below(256) as u8).collect();
        let mut inner = header.emit(&payload);
        self.damage(&mut inner);
        let outer = Header {
            ttl: 1 + self.below(255) as u8,
            dont_fragment: self.one_in(2),
            more_fragments: self.one_in(24),
            ..Header::new(ipv4::IPIP, self.of(&AGENTS), if self.one_in(24) { FAR } else { self.of(&OWN) })
        };
        let mut bytes = outer.emit(&inner);
        self.damage(&mut bytes);
        if self.one_in(16) {
            bytes.extend([0; 6]); // padding
        }
        let dst = if self.one_in(24) { self.of(&[Mac::BROADCAST, Mac([2; 6])]) } else { mac(iface) };
        let kind = if self.one_in(24) { EtherType::ARP } else { EtherType::IPV4 };
        let from = if self.one_in(3) { Mac([2, 0, 0, 0, 1, 2]) } else { NEIGHBOR };
        let mut frame = ethernet::emit(&Frame { kind, src: from, dst }, &bytes);
        if self.one_in(32) {
            frame.truncate(14 + self.below(50) as usize);
        }
        frame
    }

    /// Changes a datagram in one of twelve cases: a bit of its header, its options, or its flags.
    fn damage(&mut self, bytes: &mut Vec<u8>) {
        match self.below(48) {
            0 => {
                let at = self.below(20) as usize;
                bytes[at] ^= 1 << self.below(8);
            }
            // An option of four bytes, with a correct checksum.
            1 => {
                bytes.splice(20..20, [1, 1, 1, 0]);
                bytes[0] = 0x46;
                let total = u16::from_be_bytes([bytes[2], bytes[3]]) + 4;
                bytes[2..4].copy_from_slice(&total.to_be_bytes());
                restore_checksum(bytes, 24);
            }
            2 => {
                bytes[6] |= 0x80; // the reserved flag
                restore_checksum(bytes, 20);
            }
            3 => {
                let total = u16::from_be_bytes([bytes[2], bytes[3]]).saturating_sub(1);
                bytes[2..4].copy_from_slice(&total.to_be_bytes());
                restore_checksum(bytes, 20);
            }
            _ => {}
        }
    }
}

fn restore_checksum(bytes: &mut [u8], header: usize) {
    bytes[10..12].copy_from_slice(&[0, 0]);
    let sum = wire::checksum(&bytes[..header]);
    bytes[10..12].copy_from_slice(&sum.to_be_bytes());
}
