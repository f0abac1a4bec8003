//! The forwarding table: plain data, and [`decide`], one pure function from rules, time and a packet to a [`Verdict`].
//!
//! It never makes soft state from data. A [`Gate`] may *check* that the route to a packet's source leads back to where
//! the packet came from; the check refreshes that route and never makes one. Cellular IP's rule that data only refresh
//! a mapping (C1) is this check.
//!
//! No allocation and no clock, so that a data path in a kernel can be a cache of it. A miss is [`Go::Host`], never a
//! drop: what the table does not know is not its to judge.

#![no_std]

use core::hash::{Hash, Hasher};
use core::time::Duration;
use wire::ipv4::{self, Header};
use wire::{IcmpError, Iface, Instant, Ipv4Addr, Mac, Prefix, Reason};

/// Why the table ends a packet's journey by itself.
pub mod reason {
    use wire::Reason;

    /// The last hop was used up.
    pub const TTL_EXPIRED: Reason = Reason("ttl_expired");
    /// It is longer than the way takes, and DF forbids to cut it.
    pub const TOO_BIG: Reason = Reason("too_big");
    /// It is longer than the way takes, and might be cut, which nobody here does.
    pub const NO_FRAGMENTATION: Reason = Reason("no_fragmentation");
    /// It came from the exit of the tunnel that it would enter, or from this host itself by the wire (RFC 2003,
    /// section 3.2).
    pub const TUNNEL_LOOP: Reason = Reason("tunnel_loop");
}

/// The role of a node that set an entry, by number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RoleId(pub u8);

impl RoleId {
    /// The node itself.
    pub const NODE: Self = Self(u8::MAX);
}

/// Where a packet came in decides which rules it meets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(transparent)]
pub struct Class(pub u8);

impl Class {
    /// Packets of this host itself.
    pub const HOST: Self = Self(0);
    /// Packets from an interface that no gate speaks of.
    pub const WIRE: Self = Self(1);
    /// This class and all above it are closed: their packets meet no routes but those of their own class. So what a
    /// tunnel brings for a stranger does not leave by a route that was meant for others.
    pub const CLOSED: Self = Self(128);

    /// Whether its packets meet routes of their own class only.
    pub const fn is_closed(self) -> bool {
        self.0 >= Self::CLOSED.0
    }
}

/// Where a packet came in: an interface, or one neighbor of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(C)]
pub struct Port {
    /// The interface.
    pub iface: Iface,
    /// The neighbor; `None` in a gate means every neighbor that has no gate of its own.
    pub from: Option<Mac>,
}

/// What is done to every packet of a port before its route is looked up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Gate {
    /// The rules that its packets meet.
    pub class: Class,
    /// The class in which the route to the packet's source must lead back to the sending neighbor. The route is
    /// refreshed, never made; a packet that fails goes to the gate's owner.
    pub check: Option<Class>,
    /// Whether forwarding costs a hop.
    pub ttl: bool,
    /// Whether the sender may be told by ICMP why its packet went no further.
    pub icmp: bool,
    /// How many packets a second may fail the check and reach the owner; the rest are dropped.
    pub punts: u16,
}

impl Hash for Gate {
    /// A gate that sends no errors hashes as gates did before any could, so that a run of old has its old number.
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.class, self.check, self.ttl, self.punts).hash(state);
        if self.icmp {
            self.icmp.hash(state);
        }
    }
}

impl Gate {
    /// The gate of a port that nobody has set one for.
    pub const fn default_of(port: Port) -> Self {
        let host = port.iface.0 == Iface::HOST.0;
        let class = if host { Class::HOST } else { Class::WIRE };
        Self { class, check: None, ttl: !host, icmp: true, punts: 0 }
    }
}

/// Which packets a route is for: the most specific source wins, then the most specific destination, then a named class.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(C)]
pub struct Key {
    /// `None`: whatever the class.
    pub class: Option<Class>,
    /// Sources.
    pub src: Prefix,
    /// Destinations.
    pub dst: Prefix,
}

impl Key {
    /// Everything of a class.
    pub const fn all(class: Class) -> Self {
        Self { class: Some(class), src: Prefix::ANY, dst: Prefix::ANY }
    }

    /// One destination within a class.
    pub const fn to(class: Class, host: Ipv4Addr) -> Self {
        Self { class: Some(class), src: Prefix::ANY, dst: Prefix::host(host) }
    }
}

/// What happens to the packets of a [`Key`], and for how long.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(C)]
pub struct Route {
    /// What happens.
    pub action: Action,
    /// For how long.
    pub life: Life,
}

/// How long a route lives.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(C)]
pub enum Life {
    /// Until it is removed.
    Forever,
    /// So long after the last packet *from* there that passed a check; then it is dead, and reported.
    Refreshed(Duration),
    /// So long after the last packet that took it; then it stays, and is reported.
    Watched(Duration),
    /// Until then, used or not; then it is dead, and reported.
    Until(Instant),
}

/// What happens to a packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(C)]
pub enum Action {
    /// Sent on.
    Forward(Hop),
    /// Handed, as a whole, to the role that set the route.
    Punt,
    /// Dropped.
    Drop(Reason),
    /// Handed to this host's own stack, or to a role of it that listens.
    Host,
    /// Sent on inside another datagram.
    Tunnel(Encap),
    /// Taken out of the datagram around it (IP in IP), if that is addressed to this host, and decided upon in this
    /// class. What is not IP in IP is the host's.
    Open(Class),
}

/// A tunnel, seen from its entry (RFC 2003).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(C)]
pub struct Encap {
    /// The entry: the outer source.
    pub src: Ipv4Addr,
    /// The exit: the outer destination.
    pub dst: Ipv4Addr,
    /// The largest datagram that fits *inside*, in bytes: what the way takes, less 20.
    pub mtu: u16,
}

/// The next hop.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(C)]
pub struct Hop {
    /// The interface it goes out by.
    pub iface: Iface,
    /// The neighbor that takes it.
    pub to: NextHop,
}

/// The neighbor of a [`Hop`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub enum NextHop {
    /// By link address.
    Mac(Mac),
    /// By IP address; ARP finds its link address.
    Via(Ipv4Addr),
    /// The packet's own destination is on this link; ARP finds its link address.
    OnLink,
}

impl Hash for NextHop {
    /// A link address hashes as when it was the only kind there was, so that a run of old has its old number.
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Mac(mac) => mac.hash(state),
            Self::Via(router) => (1u8, router).hash(state),
            Self::OnLink => 2u8.hash(state),
        }
    }
}

impl Hop {
    /// The hop to a neighbor by link address.
    pub const fn mac(iface: Iface, mac: Mac) -> Self {
        Self { iface, to: NextHop::Mac(mac) }
    }

    /// Whether it leads to the neighbor that a packet came from. A hop by IP address never does: the table does not
    /// know link addresses.
    pub fn leads_to(&self, port: Port) -> bool {
        matches!(self.to, NextHop::Mac(mac) if port.from == Some(mac)) && self.iface == port.iface
    }
}

/// Why a role is handed a packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(C)]
pub enum Why {
    /// It listens for such packets.
    Listen,
    /// It set the route that the packet took.
    Action,
    /// It set the gate, and the packet failed the check.
    Check,
    /// It punts the route back to the packet's source, so the check is its own to make.
    Back,
}

/// An entry of the rules, so that its use can be noted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(transparent)]
pub struct EntryId(pub u32);

/// A live route, as the rules hold it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Found {
    /// Where it stands.
    pub entry: EntryId,
    /// Who set it.
    pub owner: RoleId,
    /// What it says.
    pub route: Route,
}

/// The look-ups that [`decide`] is made of. An expired route is never returned.
pub trait Rules {
    /// The gate of a port, and who set it.
    fn gate(&self, port: Port) -> (RoleId, Gate);
    /// The most specific live route.
    fn route(&self, now: Instant, class: Class, src: Ipv4Addr, dst: Ipv4Addr) -> Option<Found>;
    /// The live route of `class` for exactly this host: the way back to it.
    fn way_back(&self, now: Instant, class: Class, host: Ipv4Addr) -> Option<Found>;
    /// Whether the address is this host's own.
    fn is_own(&self, _address: Ipv4Addr) -> bool {
        false
    }
    /// The largest datagram that an interface takes, in bytes.
    fn mtu(&self, _iface: Iface) -> u16 {
        u16::MAX
    }
}

/// What there is to know about a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Datagram {
    /// Who sent it.
    pub src: Ipv4Addr,
    /// Who is to have it.
    pub dst: Ipv4Addr,
    /// What it carries.
    pub protocol: u8,
    /// Hops left.
    pub ttl: u8,
    /// DF.
    pub dont_fragment: bool,
    /// Its length, header included.
    pub len: usize,
}

impl Datagram {
    /// From its header, and its length.
    pub const fn new(header: &Header, len: usize) -> Self {
        let Header { src, dst, protocol, ttl, dont_fragment, .. } = *header;
        Self { src, dst, protocol, ttl, dont_fragment, len }
    }
}

/// What is to happen to a packet, and which entries it kept alive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Verdict {
    /// What is to happen.
    pub go: Go,
    /// Whether forwarding costs a hop; there is one left to take.
    pub ttl: bool,
    /// What the sender is to be told, whatever becomes of the packet.
    pub icmp: Option<IcmpError>,
    /// The entries that this packet refreshed: the way back, and the route it took.
    pub used: [Option<EntryId>; 2],
}

/// Where a packet goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub enum Go {
    /// To the host's own stack: no rule speaks of it, or one says so.
    Host,
    /// Out.
    Out(Hop),
    /// To a role.
    Punt(RoleId, Why),
    /// Nowhere.
    Drop(Reason),
    /// Into a tunnel; what comes of it is decided upon as this host's own.
    Encap(Encap),
    /// Out of a tunnel; what was inside is decided upon with [`decide_opened`].
    Open(Class),
}

/// Decides about one packet. Pure: what it refreshes is for the caller to note.
pub fn decide(rules: &impl Rules, now: Instant, port: Port, packet: &Datagram) -> Verdict {
    let (owner, gate) = rules.gate(port);
    let mut verdict = Verdict { go: Go::Host, ttl: gate.ttl, icmp: None, used: [None; 2] };
    if let Some(class) = gate.check {
        match rules.way_back(now, class, packet.src) {
            Some(Found { entry, route: Route { action: Action::Forward(hop), .. }, .. })
                if hop.leads_to(port) =>
            {
                verdict.used[0] = Some(entry);
            }
            Some(Found { owner, route: Route { action: Action::Punt, .. }, .. }) => {
                return Verdict { go: Go::Punt(owner, Why::Back), ..verdict };
            }
            _ => return Verdict { go: Go::Punt(owner, Why::Check), ..verdict },
        }
    }
    follow(rules, now, gate.class, gate.icmp, packet, &mut verdict);
    verdict
}

/// Decides about a packet that was taken out of a tunnel. It has no port and so no gate: forwarding it costs a hop, and
/// its sender is told of errors; but nobody is told that a closed class has no route (RFC 5944, section 3.7).
pub fn decide_opened(rules: &impl Rules, now: Instant, class: Class, packet: &Datagram) -> Verdict {
    let mut verdict = Verdict { go: Go::Host, ttl: true, icmp: None, used: [None; 2] };
    follow(rules, now, class, true, packet, &mut verdict);
    verdict
}

/// The route of a class, and what stands against it.
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
        verdict.go = Go::Drop(reason);
        return;
    }
    // What is refused does not take it: who watches a route counts on what left by it.
    if matches!(route.life, Life::Watched(_)) {
        verdict.used[1] = Some(entry);
    }
    verdict.go = match route.action {
        Action::Forward(hop) => Go::Out(hop),
        Action::Punt => Go::Punt(owner, Why::Action),
        Action::Drop(reason) => Go::Drop(reason),
        Action::Tunnel(encap) => Go::Encap(encap),
        Action::Open(class) if packet.protocol == ipv4::IPIP && rules.is_own(packet.dst) => Go::Open(class),
        Action::Host | Action::Open(_) => Go::Host,
    };
}

/// Why a packet cannot take a way of this width, and what its sender is told.
fn refusal(packet: &Datagram, costs_hop: bool, mtu: u16) -> Option<(Reason, Option<IcmpError>)> {
    if costs_hop && packet.ttl <= 1 {
        return Some((reason::TTL_EXPIRED, Some(IcmpError::TimeExceeded)));
    }
    if packet.len <= usize::from(mtu) {
        return None;
    }
    // A router would cut what may be cut (RFC 1812, section 4.2.2.7). No node here does: its sender is told, so that it sends
    // smaller datagrams, as it does where it set DF.
    let reason = if packet.dont_fragment { reason::TOO_BIG } else { reason::NO_FRAGMENTATION };
    Some((reason, Some(IcmpError::FragmentationNeeded { mtu })))
}

#[cfg(test)]
mod tests;
