//! The forwarding table: plain data, and [`decide`], one pure function from rules, time and a packet to a [`Verdict`].
//!
//! Data packets never create soft state. A [`IngressPolicy`] may *check* that the route to a packet's source leads back to the
//! neighbor that sent the packet. The check refreshes that route and never creates one. It implements Cellular IP's
//! rule that data only refresh a mapping (C1).
//!
//! No allocation and no clock, so that a data path in a kernel can do the same. [`map`] has the form of the entries in
//! kernel maps. A packet without a route gets [`Disposition::Host`], not a drop: the host decides about it.

#![no_std]

pub mod map;

use core::time::Duration;
use wire::ipv4::{self, Header};
use wire::{IcmpError, Iface, Instant, Ipv4Addr, Mac, Prefix, Reason};

/// Why the table drops a packet.
pub mod reason {
    use wire::Reason;

    /// The time to live would become zero.
    pub const TTL_EXPIRED: Reason = Reason("ttl_expired");
    /// It is larger than the MTU of the next link or tunnel, and DF forbids to fragment it.
    pub const TOO_BIG: Reason = Reason("too_big");
    /// It is larger than the MTU of the next link or tunnel, and DF is clear. No node fragments packets in transit.
    pub const NO_FRAGMENTATION: Reason = Reason("no_fragmentation");
    /// Its source is the exit of the tunnel that it would enter. Or it came from the network with an address of this
    /// host as its source (RFC 2003, section 3.2).
    pub const TUNNEL_LOOP: Reason = Reason("tunnel_loop");
}

/// The number of the role of a node that set an entry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RoleId(pub u8);

impl RoleId {
    /// The node itself.
    pub const NODE: Self = Self(u8::MAX);
}

/// The class of a packet: by where it arrived, it selects the routes that apply to it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(transparent)]
pub struct Class(pub u8);

impl Class {
    /// Packets that this host sends itself.
    pub const HOST: Self = Self(0);
    /// Packets from an interface for which no ingress policy is set.
    pub const WIRE: Self = Self(1);
    /// This class and all higher ones are closed: only routes of the same class apply to their packets. So a packet
    /// out of a tunnel to an unknown host does not leave by a route that is meant for others.
    pub const CLOSED: Self = Self(128);

    /// Whether only routes of this class apply to its packets.
    pub const fn is_closed(self) -> bool {
        self.0 >= Self::CLOSED.0
    }
}

/// Where a packet arrived: an interface, or one neighbor on it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Port {
    /// The interface.
    pub iface: Iface,
    /// The neighbor. `None` in a policy means every neighbor without a separate one.
    pub from: Option<Mac>,
}

/// What applies to every packet of a port before its route is looked up.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct IngressPolicy {
    /// The class of its packets.
    pub class: Class,
    /// The class in which the route to the packet's source must lead back to the sending neighbor; `None` for no
    /// check. The route is refreshed, never created. A packet that fails goes to the owner of the policy.
    pub check: Option<Class>,
    /// Whether forwarding decrements the time to live.
    pub ttl: bool,
    /// Whether ICMP errors may be sent to the sender of a dropped packet.
    pub icmp: bool,
    /// At most this many packets per second that fail the check go to the owner. The rest are dropped.
    pub punts: u16,
}

impl IngressPolicy {
    /// Returns the policy of a port for which none is set.
    pub const fn default_of(port: Port) -> Self {
        let host = port.iface.0 == Iface::HOST.0;
        let class = if host { Class::HOST } else { Class::WIRE };
        Self { class, check: None, ttl: !host, icmp: true, punts: 0 }
    }
}

/// The packets to which a route applies. The most specific source wins, then the most specific destination, then a
/// given class.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RouteKey {
    /// The class; `None` for every class that is not closed.
    pub class: Option<Class>,
    /// Sources.
    pub src: Prefix,
    /// Destinations.
    pub dst: Prefix,
}

impl RouteKey {
    /// Returns the key of all packets of a class.
    pub const fn all(class: Class) -> Self {
        Self { class: Some(class), src: Prefix::ANY, dst: Prefix::ANY }
    }

    /// Returns the key of one destination within a class.
    pub const fn to(class: Class, host: Ipv4Addr) -> Self {
        Self { class: Some(class), src: Prefix::ANY, dst: Prefix::host(host) }
    }
}

/// The action for the packets of a [`RouteKey`], and its lifetime.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Route {
    /// What happens to the packets.
    pub action: Action,
    /// How long the route is valid.
    pub lifetime: Lifetime,
}

/// How long a route lives.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Lifetime {
    /// Until it is removed.
    Permanent,
    /// Expires when, for this time, no packet *from* the destination of the route has passed a check. The owner is
    /// then notified.
    SoftState(Duration),
    /// Does not expire. The owner is notified when no packet has used the route for this time.
    ReportIdle(Duration),
    /// Expires at this instant, used or not. The owner is then notified.
    Until(Instant),
}

impl Lifetime {
    /// Returns when it ends for a route that was last used at `used`: the route expires, or its owner is notified.
    /// `None` for [`Lifetime::Permanent`].
    pub fn end(self, used: Instant) -> Option<Instant> {
        match self {
            Self::SoftState(span) | Self::ReportIdle(span) => Some(used + span),
            Self::Until(end) => Some(end),
            Self::Permanent => None,
        }
    }

    /// Whether a route expires when its lifetime ends.
    pub const fn expires(self) -> bool {
        matches!(self, Self::SoftState(_) | Self::Until(_))
    }

    /// Whether a route that was last used at `used` has expired.
    pub fn has_expired(self, used: Instant, now: Instant) -> bool {
        self.expires() && self.end(used).is_some_and(|end| end <= now)
    }
}

/// What happens to a packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    /// Forwarded.
    Forward(Hop),
    /// Handed, whole, to the role that set the route.
    Punt,
    /// Dropped.
    Drop(Reason),
    /// Handed to this host's own stack, or to a role that listens for it.
    Host,
    /// Forwarded inside another datagram.
    Tunnel(Encap),
    /// Decapsulated (IP in IP) if it is addressed to this host; the inner datagram is then decided in this class. A
    /// packet that is not IP in IP goes to the host.
    Open(Class),
}

/// The entry of a tunnel (RFC 2003).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Encap {
    /// The entry: the source of the outer datagram.
    pub src: Ipv4Addr,
    /// The exit: the destination of the outer datagram.
    pub dst: Ipv4Addr,
    /// The largest *inner* datagram in bytes: the path's MTU minus 20.
    pub mtu: u16,
}

/// The next hop.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Hop {
    /// The outgoing interface.
    pub iface: Iface,
    /// The neighbor that receives it.
    pub to: NextHop,
}

/// The neighbor of a [`Hop`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NextHop {
    /// By link address.
    Mac(Mac),
    /// By IP address; ARP finds its link address.
    Via(Ipv4Addr),
    /// The packet's own destination is on this link; ARP finds its link address.
    OnLink,
}

impl Hop {
    /// Returns the hop to a neighbor by link address.
    pub const fn mac(iface: Iface, mac: Mac) -> Self {
        Self { iface, to: NextHop::Mac(mac) }
    }

    /// Whether it leads to the neighbor that sent a packet. False for a hop by IP address, because the table does not
    /// know link addresses.
    pub fn leads_to(&self, port: Port) -> bool {
        matches!(self.to, NextHop::Mac(mac) if port.from == Some(mac)) && self.iface == port.iface
    }
}

/// Why a role is given a packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PuntReason {
    /// The role listens for such packets.
    Listen,
    /// The role set the route of the packet.
    Action,
    /// The role set the ingress policy, and the packet failed the check.
    Check,
    /// The role set the route to the packet's source to [`Action::Punt`], so the role itself makes the check.
    ReversePath,
}

/// The number of an entry of the rules, to record its use.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(transparent)]
pub struct EntryId(pub u32);

/// A valid route in the rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    /// The entry's number.
    pub entry: EntryId,
    /// The role that set it.
    pub owner: RoleId,
    /// The route.
    pub route: Route,
}

/// The look-ups that [`decide`] needs. They never return an expired route.
pub trait Rules {
    /// Returns the ingress policy of a port, and the role that set it.
    fn ingress_policy(&self, port: Port) -> (RoleId, IngressPolicy);
    /// Returns the most specific valid route.
    fn route(&self, now: Instant, class: Class, src: Ipv4Addr, dst: Ipv4Addr) -> Option<Found>;
    /// Returns the valid route of `class` for exactly this host: its reverse path.
    fn reverse_path(&self, now: Instant, class: Class, host: Ipv4Addr) -> Option<Found>;
    /// Whether the address belongs to this host.
    fn is_own(&self, _address: Ipv4Addr) -> bool {
        false
    }
    /// Returns the MTU of an interface in bytes.
    fn mtu(&self, _iface: Iface) -> u16 {
        u16::MAX
    }
}

/// The fields of a datagram that a decision needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// The source.
    pub src: Ipv4Addr,
    /// The destination.
    pub dst: Ipv4Addr,
    /// The protocol number.
    pub protocol: u8,
    /// The time to live.
    pub ttl: u8,
    /// DF: do not fragment.
    pub dont_fragment: bool,
    /// The total length in bytes, header included.
    pub len: usize,
}

impl Datagram {
    /// Takes the fields from a header; `len` is the total length in bytes.
    pub const fn new(header: &Header, len: usize) -> Self {
        let Header { src, dst, protocol, ttl, dont_fragment, .. } = *header;
        Self { src, dst, protocol, ttl, dont_fragment, len }
    }
}

/// The decision about a packet, and the entries that it refreshed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// Where the packet goes.
    pub disposition: Disposition,
    /// Whether forwarding decrements the time to live. It is at least 2 if the packet is forwarded.
    pub ttl: bool,
    /// The ICMP error to send to the sender, if any. It does not depend on `disposition`.
    pub icmp: Option<IcmpError>,
    /// The entries that this packet refreshed: the reverse path, and the route that it used.
    pub used: [Option<EntryId>; 2],
}

/// The destination of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Disposition {
    /// To the host's own stack: no route applies, or the route is [`Action::Host`], or [`Action::Open`] for a packet
    /// that is not a tunnel's.
    Host,
    /// To a neighbor.
    Out(Hop),
    /// To a role, and why.
    Punt(RoleId, PuntReason),
    /// Dropped.
    Drop(Reason),
    /// Into a tunnel. The outer datagram is decided as a packet of this host.
    Encap(Encap),
    /// Out of a tunnel. The inner datagram is decided by [`decide_opened`].
    Open(Class),
}

/// Decides about one packet. The function is pure: the caller records the entries in [`Verdict::used`].
pub fn decide(rules: &impl Rules, now: Instant, port: Port, packet: &Datagram) -> Verdict {
    let (owner, policy) = rules.ingress_policy(port);
    let mut verdict =
        Verdict { disposition: Disposition::Host, ttl: policy.ttl, icmp: None, used: [None; 2] };
    if let Some(class) = policy.check {
        match rules.reverse_path(now, class, packet.src) {
            Some(Found { entry, route: Route { action: Action::Forward(hop), .. }, .. })
                if hop.leads_to(port) =>
            {
                verdict.used[0] = Some(entry);
            }
            Some(Found { owner, route: Route { action: Action::Punt, .. }, .. }) => {
                return Verdict { disposition: Disposition::Punt(owner, PuntReason::ReversePath), ..verdict };
            }
            _ => return Verdict { disposition: Disposition::Punt(owner, PuntReason::Check), ..verdict },
        }
    }
    follow(rules, now, policy.class, policy.icmp, packet, &mut verdict);
    verdict
}

/// Decides about a packet that was decapsulated. It has no port and therefore no ingress policy: its time to live is
/// decremented, and ICMP errors go to its sender. But no error is sent when a closed class has no route (RFC 5944,
/// section 4.2.2).
pub fn decide_opened(rules: &impl Rules, now: Instant, class: Class, packet: &Datagram) -> Verdict {
    let mut verdict = Verdict { disposition: Disposition::Host, ttl: true, icmp: None, used: [None; 2] };
    follow(rules, now, class, true, packet, &mut verdict);
    verdict
}

/// Looks up the route and checks what prevents the packet from using it.
fn follow(
    rules: &impl Rules,
    now: Instant,
    class: Class,
    icmp: bool,
    packet: &Datagram,
    verdict: &mut Verdict,
) {
    let Some(Found { entry, owner, route }) = rules.route(now, class, packet.src, packet.dst) else {
        let lost = icmp && !class.is_closed() && !rules.is_own(packet.dst);
        verdict.icmp = lost.then_some(IcmpError::NetUnreachable);
        return;
    };
    let refusal = match route.action {
        Action::Forward(hop) => refusal(packet, verdict.ttl, rules.mtu(hop.iface)),
        Action::Tunnel(encap) if packet.src == encap.dst || (verdict.ttl && rules.is_own(packet.src)) => {
            Some((reason::TUNNEL_LOOP, None))
        }
        Action::Tunnel(encap) => refusal(packet, verdict.ttl, encap.mtu),
        Action::Host | Action::Open(_) | Action::Punt | Action::Drop(_) => None,
    };
    if let Some((reason, error)) = refusal {
        verdict.icmp = error.filter(|_| icmp);
        verdict.disposition = Disposition::Drop(reason);
        return;
    }
    // A refused packet does not count as use: the owner of a watched route counts packets that left by it.
    if matches!(route.lifetime, Lifetime::ReportIdle(_)) {
        verdict.used[1] = Some(entry);
    }
    verdict.disposition = match route.action {
        Action::Forward(hop) => Disposition::Out(hop),
        Action::Punt => Disposition::Punt(owner, PuntReason::Action),
        Action::Drop(reason) => Disposition::Drop(reason),
        Action::Tunnel(encap) => Disposition::Encap(encap),
        Action::Open(class) if packet.protocol == ipv4::IPIP && rules.is_own(packet.dst) => {
            Disposition::Open(class)
        }
        Action::Host | Action::Open(_) => Disposition::Host,
    };
}

/// Returns why a packet cannot be forwarded over a link or tunnel of this MTU, and the error for its sender. `None` if
/// it can.
fn refusal(packet: &Datagram, costs_hop: bool, mtu: u16) -> Option<(Reason, Option<IcmpError>)> {
    if costs_hop && packet.ttl <= 1 {
        return Some((reason::TTL_EXPIRED, Some(IcmpError::TimeExceeded)));
    }
    if packet.len <= usize::from(mtu) {
        return None;
    }
    // A router would fragment it (RFC 1812, section 4.2.2.7). Here no node does: its sender is notified as if DF were
    // set, so that it sends smaller datagrams.
    let reason = if packet.dont_fragment { reason::TOO_BIG } else { reason::NO_FRAGMENTATION };
    Some((reason, Some(IcmpError::FragmentationNeeded { mtu })))
}

#[cfg(test)]
mod tests;
