//! Per-host and per-link counters of one packet, for packets whose steps are not one unbroken chain (`chain.rs`).

use super::step::{End, Kind, Step};
use super::{LinkDirection, Places};
use trace::HostId;
use wire::{Instant, Mac};

/// Counters of one packet at one host.
#[derive(Clone, Default)]
pub(super) struct AtHost {
    pub(super) from_wire: u32,
    pub(super) from_host: u32,
    pub(super) to_host: u32,
    pub(super) sent: u32,
    pub(super) dropped: u32,
    pub(super) consumed: u32,
    pub(super) joined: u32,
    pub(super) held: u32,
    pub(super) app_sent: u32,
    pub(super) app_received: u32,
    /// Copies for which the host's stack is the final receiver. Applications report no TCP or ICMP packets, so such
    /// packets end at the stack.
    pub(super) to_stack: u32,
    pub(super) stack_lost: u32,
    pub(super) stack_held: u32,
    /// Whether a role of this host made the packet: it left the node, or ended in it, before the node received it. The
    /// packet may come back to this host.
    made: bool,
    pub(super) last_seen: Instant,
}

/// The balance of one packet at one host: copies that ended there, and copies without an end or without an origin.
pub(super) struct AtRest {
    pub(super) delivered: u32,
    pub(super) held: u32,
    /// Datagrams that the application sent, and that neither the node received nor the stack reported as lost.
    pub(super) lost_above: u32,
    /// Copies that the node received, and of which no record shows that they left the node or ended in it.
    pub(super) lost_within: u32,
    /// Copies that the node gave to the stack, and of which no record shows the end.
    pub(super) lost_below: u32,
    /// Copies that left the node or ended in it, beyond those that the node received.
    pub(super) copied: u32,
    /// Copies that ended at the stack, beyond those that the stack received.
    pub(super) surplus: u32,
    /// How often the packet originated at this host.
    pub(super) origins: u32,
}

impl AtHost {
    /// Returns whether the node received a copy, or a copy left it or ended in it.
    const fn is_known_to_node(&self) -> bool {
        let taken = self.from_wire + self.from_host;
        taken + self.sent + self.to_host + self.dropped + self.consumed + self.joined + self.held > 0
    }

    /// Returns the balance of the packet at this host. `silent` is whether the host runs programs: no record contains
    /// which datagrams a program reads.
    pub(super) fn at_rest(&self, silent: bool) -> AtRest {
        // Datagrams for a program end at the host's stack, as TCP segments do.
        let to_stack =
            if silent { self.to_host - self.app_received.min(self.to_host) } else { self.to_stack };
        let taken_by_stack = to_stack.saturating_sub(self.stack_lost + self.stack_held);
        let refused = if self.app_sent > 0 { self.stack_lost } else { 0 };
        let taken = self.from_wire + self.from_host;
        let given = self.sent + self.to_host + self.dropped + self.consumed + self.joined + self.held;
        let own = u32::from(self.made);
        let ended = self.app_received + taken_by_stack + self.stack_lost - refused + self.stack_held;
        AtRest {
            delivered: self.app_received + self.consumed + taken_by_stack,
            held: self.held + self.stack_held,
            lost_above: self.app_sent.saturating_sub(self.from_host + refused),
            lost_within: (taken + own).saturating_sub(given),
            lost_below: self.to_host.saturating_sub(ended),
            copied: given.saturating_sub(taken + own),
            surplus: ended.saturating_sub(self.to_host),
            origins: own + self.app_sent.max(self.from_host),
        }
    }
}

/// Counters of one packet at one end of a link.
#[derive(Clone, Default)]
pub(super) struct AtPort {
    pub(super) sent: u32,
    pub(super) received: u32,
    pub(super) lost: u32,
    pub(super) held: u32,
    pub(super) to: Mac,
    pub(super) from: Mac,
    pub(super) last_seen: Instant,
}

/// The balance of a packet over all links.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Links {
    /// More copies entered a link than left it, were lost on it or are held by it.
    Open,
    /// All links are wires, and each wire delivered, lost or holds exactly the copies that entered it. This is the
    /// usual case.
    Even,
    /// All other cases, in which each link has to be checked separately.
    Uneven,
}

/// The counters of one packet, in the order in which the packet reached the hosts and ports. A packet reaches few of
/// them, so a linear search is enough.
#[derive(Default)]
pub(super) struct Books {
    pub(super) hosts: Vec<(HostId, AtHost)>,
    pub(super) ports: Vec<(End, AtPort)>,
}

impl Books {
    /// Resets the counters and fills them from the steps of another packet.
    pub(super) fn open(&mut self, steps: &[Step]) {
        self.hosts.clear();
        self.ports.clear();
        for step in steps {
            self.enter(step);
        }
    }

    fn enter(&mut self, step: &Step) {
        let here = entry(&mut self.hosts, step.host);
        here.last_seen = step.at;
        here.made |= step.kind.is_out_of_node() && !here.is_known_to_node();
        match step.kind {
            Kind::FromHost => here.from_host += 1,
            Kind::ToHost => here.to_host += 1,
            Kind::ToStack => {
                here.to_host += 1;
                here.to_stack += 1;
            }
            Kind::Dropped => here.dropped += 1,
            Kind::Consumed => here.consumed += 1,
            Kind::Joined => here.joined += 1,
            Kind::LostByStack => here.stack_lost += 1,
            Kind::HeldByStack => here.stack_held += 1,
            Kind::HeldByRole => here.held += 1,
            Kind::AppSent => here.app_sent += 1,
            Kind::AppReceived => here.app_received += 1,
            Kind::FromLink => {
                here.from_wire += 1;
                let port = self.port(step);
                port.received += 1;
                port.from = step.mac;
            }
            Kind::ToLink => {
                here.sent += 1;
                let port = self.port(step);
                port.sent += 1;
                port.to = step.mac;
            }
            Kind::LostByLink => self.port(step).lost += 1,
            Kind::HeldByLink => self.port(step).held += 1,
        }
    }

    fn port(&mut self, step: &Step) -> &mut AtPort {
        let port = entry(&mut self.ports, step.end());
        port.last_seen = step.at;
        port
    }

    /// Returns the balance over all links.
    pub(super) fn links(&self, places: &Places) -> Links {
        let (mut matched, mut even, mut by_air) = (0, true, false);
        for (end, port) in self.ports.iter().rev().filter(|(_, port)| port.sent > 0) {
            let Some(far) = places.far_end(*end) else {
                by_air = true;
                continue;
            };
            let there = self.ports.iter().rev().find(|(end, _)| *end == far);
            let came = there.map_or(0, |(_, there)| there.received);
            matched += came;
            let ended = port.lost + port.held + came;
            if port.sent > ended {
                return Links::Open;
            }
            even &= port.sent == ended;
        }
        if by_air {
            return self.links_by_air(places);
        }
        let received: u32 = self.ports.iter().map(|(_, port)| port.received).sum();
        // If a link lost or holds a copy at a port that sent none, a record of the sender is missing.
        even &= self.ports.iter().all(|(_, port)| port.sent > 0 || port.lost + port.held == 0);
        if even && received == matched { Links::Even } else { Links::Uneven }
    }

    fn links_by_air(&self, places: &Places) -> Links {
        let by_air = self.ports.iter().filter(|(end, _)| places.far_end(*end).is_none());
        let (sent, ended) = by_air.fold((0, 0), |(sent, ended), (_, port)| {
            (sent + port.sent, ended + port.received + port.lost + port.held)
        });
        if sent > ended { Links::Open } else { Links::Uneven }
    }

    /// Returns whether no copy is under way inside a host.
    pub(super) fn hosts_are_at_rest(&self, places: &Places) -> bool {
        self.hosts.iter().rev().all(|(host, here)| {
            let books = here.at_rest(places.is_silent(*host));
            books.lost_above + books.lost_within + books.lost_below == 0
        })
    }
}

fn entry<K: PartialEq + Copy, V: Default>(entries: &mut Vec<(K, V)>, key: K) -> &mut V {
    let place = entries.iter().rposition(|(other, _)| *other == key).unwrap_or_else(|| {
        entries.push((key, V::default()));
        entries.len() - 1
    });
    #[expect(clippy::indexing_slicing, reason = "found, or just put there")]
    &mut entries[place].1
}

/// Returns the sending and the receiving end of the link on which a packet was lost, and when the packet was last seen
/// at the sending end.
pub(super) fn where_lost(
    places: &Places,
    way: LinkDirection,
    ports: &[(End, AtPort)],
) -> ((String, String), Instant) {
    let mut sender = ports.iter().filter(|((host, iface), port)| {
        let here = places.port(*host, *iface);
        port.sent > 0 && here.is_some_and(|here| places.way_out(here) == way)
    });
    let Some(((host, iface), port)) = sender.next_back() else { return Default::default() };
    let to = match way {
        LinkDirection::Wire { to, .. } => places.by_port(to),
        LinkDirection::Segment(_) | LinkDirection::Air => places.by_mac(port.to),
    };
    ((places.interface(*host, *iface), to.unwrap_or_else(|| "the air".to_owned())), port.last_seen)
}
