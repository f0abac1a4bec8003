//! The forwarding table. The rules are plain data; [`decide`] is a pure function from rules, time and a packet to a
//! [`Verdict`].
//!
//! Data packets never create soft state. An [`IngressPolicy`] may *check* that the route to a packet's source leads
//! back to the neighbor that sent the packet. The check refreshes that route and never creates one. So Cellular IP's
//! rule holds: data only refresh a mapping.
//!
//! The crate does not allocate memory and does not read a clock, so that a data path in a kernel can do the same.
//! [`map`] has the form of the entries in kernel maps. A packet without a route gets [`Disposition::Host`], and the
//! node decides about the packet.

#![no_std]

pub mod map;

use core::time::Duration;
use wire::ipv4::Header;
use wire::tunnel::largest_fragment;
pub use wire::tunnel::{Kind, Kinds};
use wire::{IcmpError, Iface, Instant, Ipv4Addr, Mac, Prefix, Reason, nanos_of};

/// The reasons for which [`decide`] itself drops a packet. A route can give other reasons ([`crate::Action::Drop`]).
pub mod reason {
    use wire::Reason;

    /// The time to live would become zero.
    pub const TTL_EXPIRED: Reason = Reason("ttl_expired");
    /// The packet is larger than the MTU of the next link or tunnel, and DF forbids to fragment it.
    pub const TOO_BIG: Reason = Reason("too_big");
    /// The packet would enter a tunnel, but its source is the exit of this tunnel. Or the packet came from another
    /// host, and its source is an address of this host (RFC 2003, section 3.2).
    pub const TUNNEL_LOOP: Reason = Reason("tunnel_loop");
    /// The packet is in a tunnel of another kind than was agreed for this tunnel, for example GRE instead of IP in IP.
    pub const TUNNEL_KIND: Reason = Reason("tunnel_kind");
}

/// The number of a role in its node. An entry of the table names the role that set it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RoleId(pub u8);

impl RoleId {
    /// The number of the node itself, which owns the entries that no role set.
    pub const NODE: Self = Self(u8::MAX);
}

/// The class of a packet. The class depends on where the packet arrived, and selects the routes that apply to the
/// packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(transparent)]
pub struct Class(pub u8);

impl Class {
    /// The class of packets that this host sends itself.
    pub const HOST: Self = Self(0);
    /// The class of packets from other hosts, at a port without an ingress policy.
    pub const WIRE: Self = Self(1);
    /// The first closed class; all classes with a higher number are closed too. Only routes of the same class apply to
    /// a packet of a closed class. So a packet out of a tunnel to an unknown host does not leave by a route for other
    /// packets.
    pub const CLOSED: Self = Self(128);

    /// Returns whether only routes of this class apply to packets of this class.
    pub const fn is_closed(self) -> bool {
        self.0 >= Self::CLOSED.0
    }
}

/// Where a packet arrived: an interface, or one neighbor on an interface.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Port {
    /// The interface on which packets arrive.
    pub iface: Iface,
    /// The link address of the neighbor that sends the packets, or `None` for packets of this host. In the key of a
    /// policy, `None` means all neighbors without a separate policy.
    pub from: Option<Mac>,
}

/// How a node checks and forwards the packets that arrive at a port. A role sets the policy.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct IngressPolicy {
    /// The class of the packets.
    pub class: Class,
    /// The class in which the route to the packet's source must lead back to the sending neighbor; `None` for no check.
    /// The route is refreshed, never created. A packet that fails the check goes to the owner of the policy. If the
    /// route is [`Action::Punt`], the packet goes to the owner of the route instead. A packet out of a tunnel that the
    /// neighbor has sent to this host is checked too.
    pub check: Option<Class>,
    /// Whether forwarding decrements the time to live of the packets.
    pub ttl: bool,
    /// Whether ICMP errors may be sent to the sender of a dropped packet.
    pub icmp: bool,
    /// The largest number of packets per second that fail the check and go to the owner of the policy. Further packets
    /// are dropped.
    pub punts: u16,
}

impl IngressPolicy {
    /// Returns the policy of a port for which no policy is set. The policy has no check, and allows ICMP errors.
    /// Packets of this host have [`Class::HOST`]; their time to live is not decremented. Packets from other hosts have
    /// [`Class::WIRE`]; their time to live is decremented.
    pub const fn default_of(port: Port) -> Self {
        let host = port.iface.0 == Iface::HOST.0;
        let class = if host { Class::HOST } else { Class::WIRE };
        Self { class, check: None, ttl: !host, icmp: true, punts: 0 }
    }
}

/// The packets to which a route applies. Of several routes, the route with the longest source prefix is used. Of
/// several such routes, the one with the longest destination prefix is used; of these, one with a class.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RouteKey {
    /// The class of the packets. `None` means all classes that are not closed.
    pub class: Option<Class>,
    /// The prefix of the source addresses.
    pub src: Prefix,
    /// The prefix of the destination addresses.
    pub dst: Prefix,
}

impl RouteKey {
    /// Returns the key of all packets of `class`.
    pub const fn all(class: Class) -> Self {
        Self { class: Some(class), src: Prefix::ANY, dst: Prefix::ANY }
    }

    /// Returns the key of the packets of `class` to `host`, from any source.
    pub const fn to(class: Class, host: Ipv4Addr) -> Self {
        Self { class: Some(class), src: Prefix::ANY, dst: Prefix::host(host) }
    }
}

/// The action for the packets of a [`RouteKey`], and how long it is valid.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Route {
    /// What happens to the packets.
    pub action: Action,
    /// How long the route is valid.
    pub lifetime: Lifetime,
    /// If an interval is given, the owner of the route is notified of packets that the route forwards: of the first
    /// packet in each interval, for each pair of source and destination ([`Verdict::notice`]). The packets are forwarded
    /// in any case. The intervals follow each other from [`Instant::ZERO`] on. So two notices may be closer to each
    /// other, and two data paths agree on the intervals. An interval of zero counts as 1 ns. Only [`Action::Forward`] and [`Action::Tunnel`] have notices.
    pub notice: Option<Duration>,
    /// What a data path beside the node may do with the packets of an [`Action::Punt`] instead; `None` if the owner must
    /// get each packet. [`decide`] ignores this field.
    pub aside: Option<Aside>,
}

/// What a data path beside the node may do with packets that would go to the owner of a route. It may forward them, as if
/// the action were [`Action::Forward`] to `hop`, if it keeps a copy of the last ones. A copy has the time to live after
/// forwarding. The data path gives the copies to the owner ([`PuntReason::Kept`]) before the node handles anything else.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Aside {
    /// Where the packets go.
    pub hop: Hop,
    /// The number of packets that the data path keeps, at least 1. With 0, the owner must get each packet.
    pub packets: u16,
}

impl Route {
    /// Returns a route of whose packets its owner is not notified.
    pub const fn new(action: Action, lifetime: Lifetime) -> Self {
        Self { action, lifetime, notice: None, aside: None }
    }
}

/// How long a route is valid, and when its owner is notified.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Lifetime {
    /// The route is valid until it is removed.
    Permanent,
    /// The route expires if it was neither set nor refreshed for this time. A packet *from* the destination of the
    /// route refreshes the route if the packet passes the check of an ingress policy. When the route expires, its owner
    /// is notified.
    SoftState(Duration),
    /// The route does not expire. Its owner is notified if the route was neither set, used nor refreshed for this time.
    ReportIdle(Duration),
    /// The route expires at this instant, even if it is used. When the route expires, its owner is notified.
    Until(Instant),
}

impl Lifetime {
    /// Returns when this lifetime ends for a route that was last used at `used`: the route expires, or its owner is
    /// notified. Returns `None` for [`Lifetime::Permanent`].
    pub fn end(self, used: Instant) -> Option<Instant> {
        match self {
            Self::SoftState(span) | Self::ReportIdle(span) => Some(used + span),
            Self::Until(end) => Some(end),
            Self::Permanent => None,
        }
    }

    /// Returns whether a route expires when this lifetime ends.
    pub const fn expires(self) -> bool {
        matches!(self, Self::SoftState(_) | Self::Until(_))
    }

    /// Returns whether a route with this lifetime, last used at `used`, has expired by `now`.
    pub fn has_expired(self, used: Instant, now: Instant) -> bool {
        self.expires() && self.end(used).is_some_and(|end| end <= now)
    }
}

/// What a route does with its packets.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    /// The packet is forwarded to this next hop.
    Forward(Hop),
    /// The whole packet goes to the role that set the route.
    Punt,
    /// The packet is dropped for this reason.
    Drop(Reason),
    /// The packet goes to this host's own stack. If it is not addressed to this host, the node drops it.
    Host,
    /// The packet is forwarded inside another datagram.
    Tunnel(Encap),
    /// The packet is decapsulated if it is addressed to this host and in a tunnel of one of these kinds. [`decide_opened`]
    /// then decides about the inner datagram in this class. A packet in a tunnel of another kind is dropped with
    /// [`reason::TUNNEL_KIND`]. All other packets go to the host.
    Open(Class, Kinds),
}

/// The two ends of a tunnel, its kind, and what is known about its path.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Encap {
    /// The entry of the tunnel: the source of the outer datagram.
    pub src: Ipv4Addr,
    /// The exit of the tunnel: the destination of the outer datagram.
    pub dst: Ipv4Addr,
    /// The largest *inner* datagram in bytes: the MTU of the path to the exit, minus [`Kind::overhead`].
    pub mtu: u16,
    /// The largest inner datagram in bytes that the path is reported to carry, at most `mtu`. The report may be old or
    /// forged. So a larger datagram with DF enters the tunnel all the same, and its sender gets "fragmentation needed"
    /// (RFC 2003, section 5). A larger datagram without DF is cut.
    pub reported: u16,
    /// How the tunnel carries datagrams.
    pub kind: Kind,
    /// Whether the exit is said to be unreachable, and a sender could not be notified. Then each sender of a packet gets
    /// "host unreachable", and the packet enters the tunnel all the same (RFC 2003, section 5.1).
    pub is_failing: bool,
}

impl Encap {
    /// Returns a tunnel by IP in IP, about whose path no error was reported.
    pub const fn new(src: Ipv4Addr, dst: Ipv4Addr, mtu: u16) -> Self {
        Self { src, dst, mtu, reported: mtu, kind: Kind::IpInIp, is_failing: false }
    }
}

/// The next hop of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Hop {
    /// The outgoing interface.
    pub iface: Iface,
    /// The neighbor that receives the packet.
    pub to: NextHop,
}

/// The neighbor of a [`Hop`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NextHop {
    /// The neighbor has this link address.
    Mac(Mac),
    /// The neighbor is the router with this IP address. ARP finds its link address.
    Via(Ipv4Addr),
    /// The neighbor is the destination of the packet itself. ARP finds the link address of the destination.
    OnLink,
}

impl Hop {
    /// Returns the hop by the interface `iface` to the neighbor with the link address `mac`.
    pub const fn mac(iface: Iface, mac: Mac) -> Self {
        Self { iface, to: NextHop::Mac(mac) }
    }

    /// Returns whether this hop leads to the neighbor of `port`. The result is false for a hop by IP address, because
    /// the table does not know the link address of the neighbor.
    pub(crate) fn leads_to(&self, port: Port) -> bool {
        matches!(self.to, NextHop::Mac(mac) if port.from == Some(mac)) && self.iface == port.iface
    }
}

/// The reason why a role receives a packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PuntReason {
    /// The role listens for such packets, or intercepts the connection.
    Listen,
    /// The role set the route of the packet.
    Action,
    /// The role set the ingress policy, and the packet failed the check.
    Check,
    /// The role set the route to the packet's source to [`Action::Punt`], so the role itself makes the check.
    ReversePath,
    /// A data path beside the node has forwarded the packet at this instant, and kept a copy for the owner of its route
    /// ([`Aside`]). The role gets the copy, and does not forward it again to the same hop.
    Kept(Instant),
}

/// The number of a route in the rules, by which its use is recorded.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(transparent)]
pub struct EntryId(pub u32);

/// A route that a look-up found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    /// The number of the route.
    pub entry: EntryId,
    /// The role that set the route.
    pub owner: RoleId,
    /// The action and the lifetime of the route.
    pub route: Route,
}

/// The look-ups in the rules that [`decide`] needs. These look-ups never return an expired route.
pub trait Rules {
    /// Returns the ingress policy of a port, and the role that set it.
    fn ingress_policy(&self, port: Port) -> (RoleId, IngressPolicy);
    /// Returns the most specific valid route for a packet of `class` from `src` to `dst` ([`RouteKey`]), or `None`.
    fn route(&self, now: Instant, class: Class, src: Ipv4Addr, dst: Ipv4Addr) -> Option<Found>;
    /// Returns the valid route of `class` from any source to exactly `host` ([`RouteKey::to`]), or `None`. This route
    /// is the reverse path for packets from `host`.
    fn reverse_path(&self, now: Instant, class: Class, host: Ipv4Addr) -> Option<Found>;
    /// Returns whether the address belongs to this host. By default, no address does.
    fn is_own(&self, _address: Ipv4Addr) -> bool {
        false
    }
    /// Returns the MTU of an interface in bytes; by default 65,535.
    fn mtu(&self, _iface: Iface) -> u16 {
        u16::MAX
    }
}

/// The fields of a datagram that a decision needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// The source address.
    pub src: Ipv4Addr,
    /// The destination address.
    pub dst: Ipv4Addr,
    /// The protocol number.
    pub protocol: u8,
    /// The time to live, before this node forwards the datagram.
    pub ttl: u8,
    /// DF: do not fragment.
    pub dont_fragment: bool,
    /// The total length in bytes, header included.
    pub len: usize,
}

impl Datagram {
    /// Returns the fields of `header`. `len` is the total length in bytes.
    pub const fn new(header: &Header, len: usize) -> Self {
        let Header { src, dst, protocol, ttl, dont_fragment, .. } = *header;
        Self { src, dst, protocol, ttl, dont_fragment, len }
    }
}

/// The decision about a packet, and the routes that the packet used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// Where the packet goes, or why it is dropped.
    pub disposition: Disposition,
    /// Whether forwarding decrements the time to live. If true, the packet is forwarded only if its time to live is at
    /// least 2.
    pub ttl: bool,
    /// The largest fragment in bytes, headers included, if the packet is larger than the MTU of the next link or tunnel
    /// and DF is clear. The caller cuts the packet, and each fragment has the disposition. `None`: the packet is not
    /// cut. Only packets with [`Disposition::Out`] or [`Disposition::Encap`] are cut.
    pub cut: Option<u16>,
    /// The ICMP error for the sender of the packet, or `None`. The caller sends the error, whatever the disposition is.
    pub icmp: Option<IcmpError>,
    /// The routes that this packet used. Index 0: the reverse path that passed the check. Index 1: the route of the
    /// packet, if its lifetime is [`Lifetime::ReportIdle`].
    pub used: [Option<EntryId>; 2],
    /// The role that is notified of this packet, and the interval of [`Route::notice`]; `None` if no role is notified.
    /// The caller notifies the role, unless it has done so in this interval, and treats the packet as the disposition says.
    pub notice: Option<Notice>,
}

/// The role that set a route with [`Route::notice`], and the interval of this route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Notice {
    /// The role that is notified.
    pub owner: RoleId,
    /// The interval in which the role is notified once of packets with the same source and destination.
    pub interval: Duration,
}

impl Notice {
    /// Returns the end of the interval that contains `now`.
    pub fn end(&self, now: Instant) -> Instant {
        let interval = nanos_of(self.interval).max(1);
        Instant((now.0 / interval).saturating_add(1).saturating_mul(interval))
    }
}

/// What [`decide`] decided about a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Disposition {
    /// The packet goes to the host's own stack. Either no route applies, or the route is [`Action::Host`], or the route
    /// is [`Action::Open`] and the packet is not in a tunnel to this host.
    Host,
    /// The packet goes to a neighbor.
    Out(Hop),
    /// The packet goes to this role, for this reason.
    Punt(RoleId, PuntReason),
    /// The packet is dropped for this reason.
    Drop(Reason),
    /// The packet enters this tunnel. The outer datagram is decided as a packet of this host.
    Encap(Encap),
    /// The packet leaves a tunnel. [`decide_opened`] decides about the inner datagram in this class.
    Open(Class),
}

/// Decides about a packet that arrived at `port`. The function changes nothing: the caller records the use of the
/// routes in [`Verdict::used`].
pub fn decide(rules: &impl Rules, now: Instant, port: Port, packet: &Datagram) -> Verdict {
    decide_by(rules, now, port, rules.ingress_policy(port), packet)
}

/// Decides about a packet that was decapsulated. Its tunnel arrived at `port`. The policy of the port checks its source.
/// Its route is looked up in `class`, forwarding decrements its time to live, and its sender may get ICMP errors. No error
/// is sent if a closed class has no route for the packet (RFC 5944, section 4.2.2).
pub fn decide_opened(
    rules: &impl Rules,
    now: Instant,
    port: Port,
    class: Class,
    packet: &Datagram,
) -> Verdict {
    let (owner, policy) = rules.ingress_policy(port);
    decide_by(rules, now, port, (owner, IngressPolicy { class, ttl: true, icmp: true, ..policy }), packet)
}

fn decide_by(
    rules: &impl Rules,
    now: Instant,
    port: Port,
    (owner, policy): (RoleId, IngressPolicy),
    packet: &Datagram,
) -> Verdict {
    let mut verdict = Verdict {
        disposition: Disposition::Host,
        ttl: policy.ttl,
        cut: None,
        icmp: None,
        used: [None; 2],
        notice: None,
    };
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

/// Looks up the route of a packet, and completes its verdict. The packet is dropped if it cannot use the route.
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
    let room = match route.action {
        Action::Forward(hop) => Some(rules.mtu(hop.iface)),
        Action::Tunnel(encap) => Some(encap.mtu),
        Action::Host | Action::Open(..) | Action::Punt | Action::Drop(_) => None,
    };
    let refusal = match route.action {
        Action::Tunnel(encap) if packet.src == encap.dst || (verdict.ttl && rules.is_own(packet.src)) => {
            Some((reason::TUNNEL_LOOP, None))
        }
        _ => room.and_then(|mtu| refusal(packet, verdict.ttl, mtu)),
    };
    let reported = |error| match (error, route.action) {
        (IcmpError::FragmentationNeeded { .. }, Action::Tunnel(Encap { reported: mtu, .. })) => {
            IcmpError::FragmentationNeeded { mtu }
        }
        _ => error,
    };
    if let Some((reason, error)) = refusal.map(|(reason, error)| (reason, error.map(reported))) {
        verdict.icmp = error.filter(|_| icmp);
        verdict.disposition = Disposition::Drop(reason);
        return;
    }
    // A router fragments a packet that does not fit if DF is clear (RFC 1812, section 4.2.2.7). `refusal` has refused
    // the packet with DF. Before a tunnel, the inner packet is cut, so that the exit need not reassemble (RFC 2003,
    // section 3.1).
    let fits = |mtu: u16| packet.len <= usize::from(mtu);
    verdict.cut = match route.action {
        Action::Tunnel(Encap { reported, kind, .. }) if !fits(reported) && !packet.dont_fragment => {
            Some(largest_fragment(kind, reported))
        }
        Action::Tunnel(_) => None,
        _ => room.filter(|mtu| !fits(*mtu)),
    };
    // What is reported of a tunnel's path may not hold any more. So the sender is notified, and the packet enters the
    // tunnel all the same (RFC 2003, section 5).
    if icmp && let Action::Tunnel(Encap { reported, is_failing, .. }) = route.action {
        verdict.icmp = match (packet.dont_fragment && !fits(reported), is_failing) {
            (true, _) => Some(IcmpError::FragmentationNeeded { mtu: reported }),
            (false, true) => Some(IcmpError::HostUnreachable),
            (false, false) => None,
        };
    }
    // A packet that cannot be forwarded does not count as a use of its route.
    if matches!(route.lifetime, Lifetime::ReportIdle(_)) {
        verdict.used[1] = Some(entry);
    }
    if matches!(route.action, Action::Forward(_) | Action::Tunnel(_)) {
        verdict.notice = route.notice.map(|interval| Notice { owner, interval });
    }
    verdict.disposition = match route.action {
        Action::Forward(hop) => Disposition::Out(hop),
        Action::Punt => Disposition::Punt(owner, PuntReason::Action),
        Action::Drop(reason) => Disposition::Drop(reason),
        Action::Tunnel(encap) => Disposition::Encap(encap),
        Action::Open(class, kinds) if rules.is_own(packet.dst) => match Kind::of_protocol(packet.protocol) {
            Some(kind) if kinds.has(kind) => Disposition::Open(class),
            Some(_) => Disposition::Drop(reason::TUNNEL_KIND),
            None => Disposition::Host,
        },
        Action::Host | Action::Open(..) => Disposition::Host,
    };
}

/// Returns why a packet cannot be forwarded over a link or tunnel of this MTU, and the error for its sender. Returns
/// `None` if the packet can be forwarded, whole or in fragments.
fn refusal(packet: &Datagram, costs_hop: bool, mtu: u16) -> Option<(Reason, Option<IcmpError>)> {
    if costs_hop && packet.ttl <= 1 {
        return Some((reason::TTL_EXPIRED, Some(IcmpError::TimeExceeded)));
    }
    if packet.len <= usize::from(mtu) {
        return None;
    }
    let too_big = (reason::TOO_BIG, Some(IcmpError::FragmentationNeeded { mtu }));
    packet.dont_fragment.then_some(too_big)
}

#[cfg(test)]
mod tests;
