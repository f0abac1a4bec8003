//! The form of the table's entries in kernel maps: plain structs of fixed size, without padding and pointers. A data
//! path outside of this program can read them.
//!
//! IP addresses and link addresses are in network byte order, numbers in the byte order of the machine. Times are
//! nanoseconds as in [`Instant`]. Bytes that a variant does not use are zero. Tags begin at 1, so an element of zeros
//! in an array map is no entry.
//!
//! `new` converts an entry, and `read` is its inverse. `read` refuses bytes that no entry has ([`NotAnEntry`]). A
//! lifetime of more than 584 years becomes 584 years. In both forms, a route with such a lifetime ends at
//! [`Instant::NEVER`].

use crate::{
    Action, Aside, Class, Encap, EntryId, Found, Hop, IngressPolicy, Kind, Kinds, Lifetime, NextHop, Port,
    RoleId, Route, RouteKey,
};
use core::fmt;
use core::time::Duration;
use wire::{Iface, Instant, Ipv4Addr, Mac, Prefix, Reason, nanos_of};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// The values of [`MapRoute::action`], [`MapRoute::hop`] and [`MapRoute::lifetime`].
pub mod tag {
    /// The action is [`crate::Action::Forward`].
    pub const FORWARD: u8 = 1;
    /// The action is [`crate::Action::Punt`].
    pub const PUNT: u8 = 2;
    /// The action is [`crate::Action::Drop`].
    pub const DROP: u8 = 3;
    /// The action is [`crate::Action::Host`].
    pub const HOST: u8 = 4;
    /// The action is [`crate::Action::Tunnel`].
    pub const TUNNEL: u8 = 5;
    /// The action is [`crate::Action::Open`].
    pub const OPEN: u8 = 6;

    /// The tunnel is IP in IP.
    pub const IP_IN_IP: u8 = 1;
    /// The tunnel is minimal encapsulation.
    pub const MINIMAL: u8 = 2;
    /// The tunnel is GRE.
    pub const GRE: u8 = 3;

    /// The next hop is [`crate::NextHop::Mac`].
    pub const MAC: u8 = 1;
    /// The next hop is [`crate::NextHop::Via`].
    pub const VIA: u8 = 2;
    /// The next hop is [`crate::NextHop::OnLink`].
    pub const ON_LINK: u8 = 3;

    /// The lifetime is [`crate::Lifetime::Permanent`].
    pub const PERMANENT: u8 = 1;
    /// The lifetime is [`crate::Lifetime::SoftState`].
    pub const SOFT_STATE: u8 = 2;
    /// The lifetime is [`crate::Lifetime::ReportIdle`].
    pub const REPORT_IDLE: u8 = 3;
    /// The lifetime is [`crate::Lifetime::Until`].
    pub const UNTIL: u8 = 4;
}

/// The error of bytes that are not those of an entry. The bytes have an unknown tag or reason, a prefix longer than 32
/// bits, or a nonzero bit that must be zero. The field of this struct is the kind of the entry, for example `route`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotAnEntry(pub &'static str);

impl fmt::Display for NotAnEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "these bytes are not those of a {}: unknown tag or reason, prefix longer than 32 bits, or a nonzero bit that must be zero",
            self.0
        )
    }
}

impl core::error::Error for NotAnEntry {}

/// A [`Port`], as the key of a [`MapPolicy`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct MapPort {
    /// The number of the interface.
    pub iface: u16,
    /// The link address of the neighbor, or zero if none is given.
    pub from: [u8; 6],
    /// 1 if a neighbor is given, otherwise 0.
    pub has_from: u8,
    /// Not used; always zero.
    pub rest: u8,
}

/// An [`IngressPolicy`] and its owner. Its key in the map is a [`MapPort`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct MapPolicy {
    /// The number of the role that set the policy.
    pub owner: u8,
    /// The class of the packets.
    pub class: u8,
    /// 1 if the policy has a check, otherwise 0.
    pub has_check: u8,
    /// The class of the check, or 0 without a check.
    pub check: u8,
    /// 1 if forwarding decrements the time to live, otherwise 0.
    pub ttl: u8,
    /// 1 if ICMP errors may be sent to the sender of a dropped packet, otherwise 0.
    pub icmp: u8,
    /// The largest number of packets per second that fail the check and go to the owner.
    pub punts: u16,
}

/// A [`RouteKey`], as the key of a [`MapRoute`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct MapKey {
    /// The first address of the source prefix.
    pub src: [u8; 4],
    /// The first address of the destination prefix.
    pub dst: [u8; 4],
    /// The length of the source prefix in bits.
    pub src_len: u8,
    /// The length of the destination prefix in bits.
    pub dst_len: u8,
    /// 1 if a class is given, otherwise 0.
    pub has_class: u8,
    /// The class, or 0 if none is given.
    pub class: u8,
}

/// A [`Route`], its number, its owner and its last use. Its key in the map is a [`MapKey`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct MapRoute {
    /// The number of the role that set the route.
    pub owner: u8,
    /// The tag of the [`Action`], for example [`tag::FORWARD`].
    pub action: u8,
    /// With [`tag::FORWARD`]: the tag of the [`NextHop`], for example [`tag::VIA`]. With [`tag::PUNT`]: the same of
    /// [`Route::aside`], or 0 without it. With [`tag::TUNNEL`]: the tag of the tunnel's [`Kind`], for example [`tag::GRE`]. With [`tag::OPEN`]: the kinds of tunnels that are opened
    /// ([`Kinds::bits`]). Otherwise 0.
    pub hop: u8,
    /// The tag of the [`Lifetime`], for example [`tag::UNTIL`].
    pub lifetime: u8,
    /// The number of the route ([`EntryId`]).
    pub entry: u32,
    /// With [`Self::hop`] of a next hop: the number of the outgoing interface. With [`tag::TUNNEL`]: the largest inner datagram in
    /// bytes that the path is reported to carry ([`Encap::reported`]). Otherwise 0.
    pub iface_or_reported: u16,
    /// With [`tag::MAC`]: the link address of the next hop; otherwise zero.
    pub mac: [u8; 6],
    /// With [`tag::VIA`]: the address of the router. With [`tag::TUNNEL`]: the address of the tunnel's entry. Otherwise
    /// zero.
    pub src: [u8; 4],
    /// With [`tag::TUNNEL`]: the address of the tunnel's exit; otherwise zero.
    pub dst: [u8; 4],
    /// With [`tag::DROP`]: the number of the drop reason ([`Reason::code`]); otherwise 0.
    pub reason: u32,
    /// With [`tag::TUNNEL`]: the largest inner datagram of the tunnel in bytes. With [`tag::PUNT`] and
    /// [`Route::aside`]: the number of packets that are kept. Otherwise 0.
    pub mtu_or_packets: u16,
    /// With [`tag::OPEN`]: the class of the packets out of the tunnel; otherwise 0.
    pub class: u8,
    /// With [`tag::TUNNEL`]: 1 if the tunnel is failing ([`Encap::is_failing`]), otherwise 0.
    pub failing: u8,
    /// Nanoseconds: the span of [`Lifetime::SoftState`] and [`Lifetime::ReportIdle`], the instant of
    /// [`Lifetime::Until`], and 0 for [`Lifetime::Permanent`].
    pub span: u64,
    /// The interval of [`Route::notice`] in nanoseconds; 0 if no role is notified.
    pub notice: u64,
    /// The instant, in nanoseconds, at which a packet last used or refreshed the route, or the route was set. A data
    /// path changes only this field.
    pub used: u64,
}

const _: () = {
    assert!(size_of::<MapPort>() == MapPort::SIZE && MapPort::SIZE == 10);
    assert!(size_of::<MapPolicy>() == MapPolicy::SIZE && MapPolicy::SIZE == 8);
    assert!(size_of::<MapKey>() == MapKey::SIZE && MapKey::SIZE == 12);
    assert!(size_of::<MapRoute>() == MapRoute::SIZE && MapRoute::SIZE == 56);
    assert!(align_of::<MapRoute>() == 8 && core::mem::offset_of!(MapRoute, used) == 48);
};

/// Converts structs to their bytes and back.
macro_rules! bytes_of {
    ($($type:ident $size:literal),*) => {
        $(impl $type {
            /// The size of this struct in bytes.
            pub const SIZE: usize = $size;

            /// Returns the bytes of this struct.
            pub const fn to_bytes(self) -> [u8; $size] {
                zerocopy::transmute!(self)
            }

            /// Returns the struct with these bytes. The bytes are not checked here, but by `read`.
            pub const fn from_bytes(bytes: [u8; $size]) -> Self {
                zerocopy::transmute!(bytes)
            }
        })*
    };
}

bytes_of!(MapPort 10, MapPolicy 8, MapKey 12, MapRoute 56);

impl MapPort {
    /// Returns the form of `port` in a kernel map.
    pub const fn new(port: Port) -> Self {
        let from = match port.from {
            Some(mac) => mac.0,
            None => [0; 6],
        };
        Self { iface: port.iface.0, from, has_from: port.from.is_some() as u8, rest: 0 }
    }

    /// Returns the port. Fails if the bytes are not those of a port.
    pub fn read(&self) -> Result<Port, NotAnEntry> {
        let from = (self.has_from != 0).then_some(Mac(self.from));
        let port = Port { iface: Iface(self.iface), from };
        if Self::new(port) == *self { Ok(port) } else { Err(NotAnEntry("port")) }
    }
}

impl MapPolicy {
    /// Returns the form of `policy` in a kernel map, with its owner.
    pub fn new(owner: RoleId, policy: &IngressPolicy) -> Self {
        let IngressPolicy { class, check, ttl, icmp, punts } = *policy;
        Self {
            owner: owner.0,
            class: class.0,
            has_check: u8::from(check.is_some()),
            check: check.map_or(0, |class| class.0),
            ttl: u8::from(ttl),
            icmp: u8::from(icmp),
            punts,
        }
    }

    /// Returns the policy and its owner. Fails if the bytes are not those of a policy.
    pub fn read(&self) -> Result<(RoleId, IngressPolicy), NotAnEntry> {
        let policy = IngressPolicy {
            class: Class(self.class),
            check: (self.has_check != 0).then_some(Class(self.check)),
            ttl: self.ttl != 0,
            icmp: self.icmp != 0,
            punts: self.punts,
        };
        let owner = RoleId(self.owner);
        if Self::new(owner, &policy) == *self { Ok((owner, policy)) } else { Err(NotAnEntry("policy")) }
    }
}

impl MapKey {
    /// Returns the form of `key` in a kernel map.
    pub fn new(key: &RouteKey) -> Self {
        Self {
            src: key.src.address().octets(),
            dst: key.dst.address().octets(),
            src_len: key.src.len(),
            dst_len: key.dst.len(),
            has_class: u8::from(key.class.is_some()),
            class: key.class.map_or(0, |class| class.0),
        }
    }

    /// Returns the key. Fails if the bytes are not those of a key.
    pub fn read(&self) -> Result<RouteKey, NotAnEntry> {
        let key = RouteKey {
            class: (self.has_class != 0).then_some(Class(self.class)),
            src: Prefix::new(Ipv4Addr::from(self.src), self.src_len),
            dst: Prefix::new(Ipv4Addr::from(self.dst), self.dst_len),
        };
        if Self::new(&key) == *self { Ok(key) } else { Err(NotAnEntry("route key")) }
    }
}

impl MapRoute {
    const NONE: Self = Self {
        owner: 0,
        action: 0,
        hop: 0,
        lifetime: 0,
        entry: 0,
        iface_or_reported: 0,
        mac: [0; 6],
        src: [0; 4],
        dst: [0; 4],
        reason: 0,
        mtu_or_packets: 0,
        class: 0,
        failing: 0,
        span: 0,
        notice: 0,
        used: 0,
    };

    /// Returns the form, in a kernel map, of a route that was last used at `used`.
    pub fn new(found: &Found, used: Instant) -> Self {
        let Found { entry, owner, route } = *found;
        let (lifetime, span) = match route.lifetime {
            Lifetime::Permanent => (tag::PERMANENT, 0),
            Lifetime::SoftState(span) => (tag::SOFT_STATE, nanos_of(span)),
            Lifetime::ReportIdle(span) => (tag::REPORT_IDLE, nanos_of(span)),
            Lifetime::Until(end) => (tag::UNTIL, end.0),
        };
        let notice = route.notice.map_or(0, |interval| nanos_of(interval).max(1));
        let none =
            Self { owner: owner.0, lifetime, entry: entry.0, span, notice, used: used.0, ..Self::NONE };
        match route.action {
            Action::Forward(hop) => Self { action: tag::FORWARD, ..none.with_hop(hop) },
            Action::Punt => match route.aside {
                Some(Aside { hop, packets }) if packets > 0 => {
                    Self { action: tag::PUNT, mtu_or_packets: packets, ..none.with_hop(hop) }
                }
                _ => Self { action: tag::PUNT, ..none },
            },
            Action::Drop(reason) => Self { action: tag::DROP, reason: reason.code(), ..none },
            Action::Host => Self { action: tag::HOST, ..none },
            Action::Tunnel(Encap { src, dst, mtu, reported, kind, is_failing }) => Self {
                action: tag::TUNNEL,
                hop: match kind {
                    Kind::IpInIp => tag::IP_IN_IP,
                    Kind::Minimal => tag::MINIMAL,
                    Kind::Gre => tag::GRE,
                },
                src: src.octets(),
                dst: dst.octets(),
                mtu_or_packets: mtu,
                iface_or_reported: reported,
                failing: u8::from(is_failing),
                ..none
            },
            Action::Open(class, kinds) => {
                Self { action: tag::OPEN, hop: kinds.bits(), class: class.0, ..none }
            }
        }
    }

    const fn with_hop(self, hop: Hop) -> Self {
        let this = Self { iface_or_reported: hop.iface.0, ..self };
        match hop.to {
            NextHop::Mac(mac) => Self { hop: tag::MAC, mac: mac.0, ..this },
            NextHop::Via(router) => Self { hop: tag::VIA, src: router.octets(), ..this },
            NextHop::OnLink => Self { hop: tag::ON_LINK, ..this },
        }
    }

    /// Returns the route and its last use. `reasons` converts a number to the drop reason with this number
    /// ([`Reason::code`]), or returns `None`. Fails if the bytes are not those of a route, or if `reasons` returns
    /// `None`.
    pub fn read(&self, reasons: impl FnOnce(u32) -> Option<Reason>) -> Result<(Found, Instant), NotAnEntry> {
        let action = match self.action {
            tag::FORWARD => self.next_hop().map(Action::Forward),
            tag::PUNT => Some(Action::Punt),
            tag::DROP => reasons(self.reason).map(Action::Drop),
            tag::HOST => Some(Action::Host),
            tag::TUNNEL => self.kind().map(|kind| {
                Action::Tunnel(Encap {
                    src: Ipv4Addr::from(self.src),
                    dst: Ipv4Addr::from(self.dst),
                    mtu: self.mtu_or_packets,
                    reported: self.iface_or_reported,
                    kind,
                    is_failing: self.failing != 0,
                })
            }),
            tag::OPEN => Kinds::of_bits(self.hop).map(|kinds| Action::Open(Class(self.class), kinds)),
            _ => None,
        };
        let lifetime = match self.lifetime {
            tag::PERMANENT => Some(Lifetime::Permanent),
            tag::SOFT_STATE => Some(Lifetime::SoftState(Duration::from_nanos(self.span))),
            tag::REPORT_IDLE => Some(Lifetime::ReportIdle(Duration::from_nanos(self.span))),
            tag::UNTIL => Some(Lifetime::Until(Instant(self.span))),
            _ => None,
        };
        let refused = NotAnEntry("route");
        let (Some(action), Some(lifetime)) = (action, lifetime) else { return Err(refused) };
        let notice = (self.notice != 0).then(|| Duration::from_nanos(self.notice));
        let kept = self.next_hop().map(|hop| Aside { hop, packets: self.mtu_or_packets });
        let aside = kept.filter(|_| action == Action::Punt);
        let route = Route { action, lifetime, notice, aside };
        let found = Found { entry: EntryId(self.entry), owner: RoleId(self.owner), route };
        let used = Instant(self.used);
        if Self::new(&found, used) == *self { Ok((found, used)) } else { Err(refused) }
    }

    const fn kind(&self) -> Option<Kind> {
        match self.hop {
            tag::IP_IN_IP => Some(Kind::IpInIp),
            tag::MINIMAL => Some(Kind::Minimal),
            tag::GRE => Some(Kind::Gre),
            _ => None,
        }
    }

    fn next_hop(&self) -> Option<Hop> {
        let to = match self.hop {
            tag::MAC => NextHop::Mac(Mac(self.mac)),
            tag::VIA => NextHop::Via(Ipv4Addr::from(self.src)),
            tag::ON_LINK => NextHop::OnLink,
            _ => return None,
        };
        Some(Hop { iface: Iface(self.iface_or_reported), to })
    }
}

#[cfg(test)]
#[path = "map_tests.rs"]
mod tests;
