//! The forwarding table: plain data, and [`decide`], one pure function from rules, time and a packet to a [`Verdict`].
//!
//! It never makes soft state from data. A [`Gate`] may *check* that the route to a packet's source leads back to where
//! the packet came from; the check refreshes that route and never makes one. Cellular IP's rule that data only refresh
//! a mapping (C1) is this check.
//!
//! No allocation and no clock, so that a data path in a kernel can be a cache of it. A miss is [`Go::Host`], never a
//! drop: what the table does not know is not its to judge.

#![no_std]

use core::time::Duration;
use wire::{Iface, Instant, Ipv4Addr, Mac, Prefix, Reason};

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
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(C)]
pub struct Gate {
    /// The rules that its packets meet.
    pub class: Class,
    /// The class in which the route to the packet's source must lead back to the sending neighbor. The route is
    /// refreshed, never made; a packet that fails goes to the gate's owner.
    pub check: Option<Class>,
    /// Whether forwarding costs a hop.
    pub ttl: bool,
    /// How many packets a second may fail the check and reach the owner; the rest are dropped.
    pub punts: u16,
}

impl Gate {
    /// The gate of a port that nobody has set one for.
    pub const fn default_of(port: Port) -> Self {
        let host = port.iface.0 == Iface::HOST.0;
        Self { class: if host { Class::HOST } else { Class::WIRE }, check: None, ttl: !host, punts: 0 }
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
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(C)]
pub enum NextHop {
    /// By link address.
    Mac(Mac),
}

impl Hop {
    /// The hop to a neighbor by link address.
    pub const fn mac(iface: Iface, mac: Mac) -> Self {
        Self { iface, to: NextHop::Mac(mac) }
    }

    /// Whether it leads to the neighbor that a packet came from.
    pub fn leads_to(&self, port: Port) -> bool {
        let NextHop::Mac(mac) = self.to;
        self.iface == port.iface && port.from == Some(mac)
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
}

/// What is to happen to a packet, and which entries it kept alive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Verdict {
    /// What is to happen.
    pub go: Go,
    /// Whether forwarding costs a hop.
    pub ttl: bool,
    /// The entries that this packet refreshed: the way back, and the route it took.
    pub used: [Option<EntryId>; 2],
}

/// Where a packet goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub enum Go {
    /// To the host's own stack: no rule speaks of it.
    Host,
    /// Out.
    Out(Hop),
    /// To a role.
    Punt(RoleId, Why),
    /// Nowhere.
    Drop(Reason),
}

/// Decides about one packet. Pure: what it refreshes is for the caller to note.
pub fn decide(rules: &impl Rules, now: Instant, port: Port, src: Ipv4Addr, dst: Ipv4Addr) -> Verdict {
    let (owner, gate) = rules.gate(port);
    let mut verdict = Verdict { go: Go::Host, ttl: gate.ttl, used: [None; 2] };
    if let Some(class) = gate.check {
        match rules.way_back(now, class, src) {
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
    if let Some(Found { entry, owner, route }) = rules.route(now, gate.class, src, dst) {
        if matches!(route.life, Life::Watched(_)) {
            verdict.used[1] = Some(entry);
        }
        verdict.go = match route.action {
            Action::Forward(hop) => Go::Out(hop),
            Action::Punt => Go::Punt(owner, Why::Action),
            Action::Drop(reason) => Go::Drop(reason),
            Action::Host => Go::Host,
        };
    }
    verdict
}

#[cfg(test)]
mod tests;
