//! What was seen of one packet, at each place it came to.

use super::Places;
use crate::segment;
use trace::{HostId, What};
use wire::{Iface, Instant, Mac, Packet, PacketId};

/// What was seen of one packet at one host.
#[derive(Clone, Default)]
pub(super) struct AtHost {
    pub(super) from_wire: u32,
    pub(super) from_host: u32,
    pub(super) to_host: u32,
    pub(super) sent: u32,
    pub(super) dropped: u32,
    pub(super) consumed: u32,
    pub(super) held: u32,
    pub(super) app_sent: u32,
    pub(super) app_received: u32,
    /// Given to the host's stack, whose own it is: applications see bytes of TCP, and nothing of ICMP.
    pub(super) to_stack: u32,
    pub(super) stack_lost: u32,
    pub(super) stack_held: u32,
    pub(super) last_seen: Instant,
}

/// The books of one packet at one host: what came to an end there, and what went in and never came out.
pub(super) struct AtRest {
    pub(super) delivered: u32,
    pub(super) held: u32,
    /// Between application and node.
    pub(super) lost_above: u32,
    /// Within the node.
    pub(super) lost_within: u32,
    /// Between node and application.
    pub(super) lost_below: u32,
    /// What the node gave beyond what it took.
    pub(super) copied: u32,
    /// What the stack ended and was never given.
    pub(super) surplus: u32,
    /// How often the packet began its journey here.
    pub(super) origins: u32,
}

impl AtHost {
    /// `silent`: programs of this host tell nobody what they take.
    pub(super) fn at_rest(&self, silent: bool) -> AtRest {
        // Datagrams to a program end, as bytes of TCP do, where the host's stack has them.
        let to_stack =
            if silent { self.to_host - self.app_received.min(self.to_host) } else { self.to_stack };
        let taken_by_stack = to_stack.saturating_sub(self.stack_lost + self.stack_held);
        let refused = if self.app_sent > 0 { self.stack_lost } else { 0 };
        let taken = self.from_wire + self.from_host;
        let given = self.sent + self.to_host + self.dropped + self.consumed + self.held;
        let own = u32::from(taken == 0 && given > 0);
        let ended = self.app_received + taken_by_stack + self.stack_lost - refused + self.stack_held;
        AtRest {
            delivered: self.app_received + self.consumed + taken_by_stack,
            held: self.held + self.stack_held,
            lost_above: self.app_sent.saturating_sub(self.from_host + refused),
            lost_within: taken.saturating_sub(given),
            lost_below: self.to_host.saturating_sub(ended),
            copied: given.saturating_sub(taken + own),
            surplus: ended.saturating_sub(self.to_host),
            origins: own + self.app_sent.max(self.from_host),
        }
    }
}

/// What was seen of one packet at one end of a link.
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

/// What the links have done with a packet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Links {
    /// A copy is under way.
    Open,
    /// Wires alone, and each brought to an end exactly what went in: as nearly always.
    Even,
    /// Anything else; it is looked at link by link.
    Uneven,
}

/// Where a link ends at a host.
pub(super) type End = (HostId, Iface);

/// What was seen of one packet. Places are few, and stand in the order in which it came to them.
#[derive(Clone, Default)]
pub(super) struct Seen {
    pub(super) hosts: Vec<(HostId, AtHost)>,
    pub(super) ports: Vec<(End, AtPort)>,
    /// Copies that were put on links, less those that came out of one, were lost on one or are held by one.
    under_way: i32,
}

impl Seen {
    pub(super) fn clear(&mut self) {
        self.hosts.clear();
        self.ports.clear();
        self.under_way = 0;
    }

    pub(super) fn received(&mut self, at: Instant, host: HostId, iface: Iface, packet: &Packet) {
        let here = self.host(at, host);
        if iface == Iface::HOST {
            here.from_host += 1;
            return;
        }
        here.from_wire += 1;
        self.under_way -= 1;
        let port = self.port(at, (host, iface));
        port.received += 1;
        port.from = packet.link.src;
    }

    pub(super) fn sent(&mut self, at: Instant, host: HostId, iface: Iface, packet: &Packet) {
        let here = self.host(at, host);
        if iface == Iface::HOST {
            here.to_host += 1;
            here.to_stack += u32::from(!segment::is_datagram(packet));
            return;
        }
        here.sent += 1;
        self.under_way += 1;
        let port = self.port(at, (host, iface));
        port.sent += 1;
        port.to = packet.link.dst;
    }

    /// All else that is told of a packet.
    pub(super) fn happened(&mut self, at: Instant, host: HostId, what: &What) {
        let here = self.host(at, host);
        match what {
            What::Dropped(_, _, reason) if *reason == node::reason::CONSUMED.0 => here.consumed += 1,
            What::Dropped(..) => here.dropped += 1,
            What::Lost(Iface::HOST, ..) => here.stack_lost += 1,
            What::Lost(iface, ..) => {
                self.port(at, (host, *iface)).lost += 1;
                self.under_way -= 1;
            }
            What::Held(Some(Iface::HOST), _) => here.stack_held += 1,
            What::Held(Some(iface), _) => {
                self.port(at, (host, *iface)).held += 1;
                self.under_way -= 1;
            }
            What::Held(None, _) => here.held += 1,
            What::AppSent(_) => here.app_sent += 1,
            What::AppReceived(_) => here.app_received += 1,
            _ => {}
        }
    }

    /// What the links have done with it. What is under way is most often on the link that it took last.
    pub(super) fn links(&self, places: &Places) -> Links {
        // More went in than ever came out: by which link needs no look.
        if self.under_way > 0 {
            return Links::Open;
        }
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
        // What was lost where nothing was sent is a sender who kept no record.
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

    /// Whether nothing is under way within a host.
    pub(super) fn hosts_are_at_rest(&self, places: &Places) -> bool {
        self.hosts.iter().rev().all(|(host, here)| {
            let books = here.at_rest(places.is_silent(*host));
            books.lost_above + books.lost_within + books.lost_below == 0
        })
    }

    fn host(&mut self, at: Instant, host: HostId) -> &mut AtHost {
        let here = entry(&mut self.hosts, host);
        here.last_seen = at;
        here
    }

    fn port(&mut self, at: Instant, end: End) -> &mut AtPort {
        let port = entry(&mut self.ports, end);
        port.last_seen = at;
        port
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

/// Of which packet something is told, other than by its bytes.
pub(super) const fn packet_of(what: &What) -> Option<PacketId> {
    match what {
        What::Received(_, packet) | What::Sent(_, packet) => Some(packet.id),
        What::Dropped(_, id, _)
        | What::Lost(_, id, _)
        | What::Held(_, id)
        | What::AppSent(id)
        | What::AppReceived(id) => Some(*id),
        _ => None,
    }
}
