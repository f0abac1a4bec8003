//! The path of each packet, hop by hop, and the end of each of its copies.
//!
//! A hop is one observation of a packet at one interface: a row of `packets.csv`, a packet of the capture. Hops are
//! joined first in, first out: the hop at which a node sends a packet follows the earliest hop at which this node
//! received the packet and which no other hop follows yet.

use crate::ledger::{LinkDirection, Places};
use crate::segment;
use scenario::Plan;
use std::borrow::Cow;
use std::collections::BTreeMap;
use trace::{HostId, Record, What};
use wire::{Iface, Instant, Mac, Packet, PacketId};

/// One observation of a packet at one interface, and the hops that follow. A complete `packets.csv` has a row for each
/// hop.
#[derive(Clone, Debug)]
pub struct Hop {
    /// The index of the record of this observation, in the records of the run.
    pub record: usize,
    /// The packet's number, from 1.
    pub packet: u64,
    /// The indices of the hops that follow this hop, in [`Journeys::hops`]; several if the packet was copied.
    pub next: Vec<usize>,
    /// The ends of the copies whose last hop is this hop.
    pub ends: Vec<End>,
}

/// The end of one copy of a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct End {
    /// The index of the record of this end, in the records of the run.
    pub record: usize,
    /// When the copy ended.
    pub at: Instant,
    /// How and where the copy ended.
    pub fate: Fate,
}

/// How a copy ended, and where: at a host, or at `host:interface`. If a variant has two strings, the second string is
/// the reason.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Fate {
    /// An application, or the stack as the final receiver, received the copy.
    Delivered(String),
    /// The role to which the copy was addressed consumed it.
    Consumed(String),
    /// The copy was a fragment, and its host or the exit of its tunnel has joined it to the datagram.
    Joined(String),
    /// A link or a host's stack lost the copy.
    Lost(String, String),
    /// A node dropped the copy.
    Dropped(String, String),
    /// A link, a stack or a role still held the copy when the run ended.
    Held(String),
    /// No record shows the end of the copy. The ledger does not balance, unless the copy is a datagram for a program.
    Unseen(String),
}

impl std::fmt::Display for Fate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Delivered(host) => write!(f, "delivered to {host}"),
            Self::Consumed(host) => write!(f, "consumed by {host}"),
            Self::Joined(host) => write!(f, "joined to its datagram by {host}"),
            Self::Lost(place, reason) => write!(f, "lost at {place}: {reason}"),
            Self::Dropped(host, reason) => write!(f, "dropped by {host}: {reason}"),
            Self::Held(place) => write!(f, "held at {place} when the run ended"),
            Self::Unseen(place) => write!(f, "not seen after {place}"),
        }
    }
}

/// One packet: the hops and the ends of all its copies.
#[derive(Clone, Debug)]
pub struct Journey {
    /// The packet's identity.
    pub id: PacketId,
    /// When and at which host an application sent the packet; `None` if a stack, a program or another role sent it.
    pub sent: Option<(Instant, HostId)>,
    /// The indices of the packet's hops in [`Journeys::hops`], in the order of time.
    pub hops: Vec<usize>,
    /// Ends of copies that were not observed at an interface, for example a packet that a role dropped right after
    /// making it.
    pub strays: Vec<End>,
}

/// All packets of a run, numbered from 1 in the order of their first appearance.
pub struct Journeys<'a> {
    records: &'a [Record],
    places: Places,
    hops: Vec<Hop>,
    packets: Vec<Journey>,
    numbers: BTreeMap<PacketId, u64>,
}

impl<'a> Journeys<'a> {
    /// Builds the paths of all packets of a run. `records` must be ordered by time.
    pub fn new(plan: &Plan, records: &'a [Record]) -> Self {
        let mut all = Self {
            records,
            places: Places::new(plan),
            hops: Vec::new(),
            packets: Vec::new(),
            numbers: BTreeMap::new(),
        };
        for (index, record) in records.iter().enumerate() {
            all.note(index, record);
        }
        all
    }

    /// Returns all hops, in the order of time.
    pub fn hops(&self) -> &[Hop] {
        &self.hops
    }

    /// Returns all packets with their numbers, in the order of the numbers.
    pub fn packets(&self) -> impl Iterator<Item = (u64, &Journey)> {
        (1..).zip(&self.packets)
    }

    /// Returns the packet with this number, or `None` if there is none.
    pub fn packet(&self, number: u64) -> Option<&Journey> {
        self.packets.get(usize::try_from(number.checked_sub(1)?).ok()?)
    }

    /// Returns the number of a packet, or `None` if no record contains the packet.
    pub fn number(&self, id: PacketId) -> Option<u64> {
        self.numbers.get(&id).copied()
    }

    /// Returns the time, place, direction and packet of a hop; `None` if the hop is not of this run.
    pub fn seen(&self, hop: &Hop) -> Option<Sighting<'a>> {
        let record = self.records.get(hop.record)?;
        let (iface, sent, packet) = match &record.what {
            What::Received(iface, packet) => (*iface, false, packet),
            What::Sent(iface, packet) => (*iface, true, packet),
            _ => return None,
        };
        Some(Sighting { at: record.at, host: record.host, iface, sent, packet })
    }

    /// Returns the name of an interface, as `host:interface`.
    pub fn place(&self, host: HostId, iface: Iface) -> String {
        self.places.interface(host, iface)
    }

    /// Returns the interface with this link address (as text), as `host:interface`. `None` if the text is no link
    /// address, or no host has the address.
    pub fn neighbor(&self, text: &str) -> Option<String> {
        self.places.by_mac(text.parse().ok()?)
    }

    /// Returns the host's name, or `?` for an unknown host.
    pub fn host(&self, host: HostId) -> Cow<'_, str> {
        self.places.host(host)
    }

    /// Returns the ends of all copies that passed the hop with the index `hop`.
    pub fn ends(&self, hop: usize) -> Vec<End> {
        let mut ends = Vec::new();
        self.collect(hop, &mut ends);
        ends
    }

    /// Returns the ends of all copies of a packet, in the order of time.
    pub(crate) fn all_ends(&self, journey: &Journey) -> Vec<End> {
        let mut ends: Vec<End> = self.roots(journey).flat_map(|root| self.ends(root)).collect();
        ends.extend(journey.strays.iter().cloned());
        ends.sort_by_key(|end| end.record);
        ends
    }

    /// Returns the ends of all copies that passed the hop with the index `hop` as one line, for example `delivered to
    /// mobile; lost at b1:air: link_error`.
    pub fn fate(&self, hop: usize) -> String {
        let mut counts: BTreeMap<Fate, usize> = BTreeMap::new();
        for end in self.ends(hop) {
            *counts.entry(end.fate).or_default() += 1;
        }
        let words = counts.into_iter().map(|(fate, count)| match count {
            1 => fate.to_string(),
            _ => format!("{fate} ({count} copies)"),
        });
        words.collect::<Vec<_>>().join("; ")
    }

    /// Returns the indices of the hops at which a journey begins.
    pub(crate) fn roots<'b>(&'b self, journey: &'b Journey) -> impl Iterator<Item = usize> + 'b {
        let is_next = |hop: usize| journey.hops.iter().any(|other| self.hops[*other].next.contains(&hop));
        journey.hops.iter().copied().filter(move |hop| !is_next(*hop))
    }

    fn collect(&self, index: usize, ends: &mut Vec<End>) {
        let Some(hop) = self.hops.get(index) else { return };
        ends.extend(hop.ends.iter().cloned());
        if hop.next.is_empty()
            && hop.ends.is_empty()
            && let Some(seen) = self.seen(hop)
        {
            let place = self.places.interface(seen.host, seen.iface);
            ends.push(End { record: hop.record, at: seen.at, fate: Fate::Unseen(place) });
        }
        hop.next.iter().for_each(|next| self.collect(*next, ends));
    }

    fn note(&mut self, index: usize, record: &Record) {
        let host = record.host;
        let name = || self.places.host(host).into_owned();
        let fate = match &record.what {
            What::Received(iface, packet) => {
                let from = (*iface != Iface::HOST).then(|| self.sender(host, *iface, packet)).flatten();
                return self.hop(index, packet, from);
            }
            What::Sent(iface, packet) => {
                let from = self.find(packet.id, |seen| seen.host == host && !seen.sent);
                let end = End { record: index, at: record.at, fate: Fate::Delivered(name()) };
                self.hop(index, packet, from);
                // No application receives a TCP segment as such: the stack is its final receiver.
                if *iface == Iface::HOST
                    && !segment::is_datagram(packet)
                    && let Some(hop) = self.hops.last_mut()
                {
                    hop.ends.push(end);
                }
                return;
            }
            What::AppSent(id) => {
                let number = self.enter(*id);
                if let Some(journey) = self.packets.get_mut(number as usize - 1) {
                    journey.sent.get_or_insert((record.at, host));
                }
                return;
            }
            What::AppReceived(_) => Fate::Delivered(name()),
            What::Dropped(_, _, reason) if *reason == node::reason::CONSUMED.0 => Fate::Consumed(name()),
            What::Dropped(_, _, reason) if *reason == node::reason::REASSEMBLED.0 => Fate::Joined(name()),
            What::Dropped(_, _, reason) => Fate::Dropped(name(), reason.to_string()),
            What::Lost(iface, _, reason) => {
                Fate::Lost(self.places.interface(host, *iface), reason.to_string())
            }
            What::Held(Some(iface), _) => Fate::Held(self.places.interface(host, *iface)),
            What::Held(None, _) => Fate::Held(name()),
            _ => return,
        };
        let (id, iface) = match &record.what {
            What::AppReceived(id) => (*id, Some(Iface::HOST)),
            What::Lost(iface, id, _) => (*id, Some(*iface)),
            What::Held(iface, id) => (*id, *iface),
            What::Dropped(_, id, _) => (*id, None),
            _ => return,
        };
        let from = match iface {
            Some(iface) => self.find(id, |seen| seen.host == host && seen.sent && seen.iface == iface),
            None => self.find(id, |seen| seen.host == host && !seen.sent),
        };
        let end = End { record: index, at: record.at, fate };
        match from.and_then(|hop| self.hops.get_mut(hop)) {
            Some(hop) => hop.ends.push(end),
            None => {
                let number = self.enter(id);
                if let Some(journey) = self.packets.get_mut(number as usize - 1) {
                    journey.strays.push(end);
                }
            }
        }
    }

    /// Returns the number of a packet, and assigns one if it has none.
    fn enter(&mut self, id: PacketId) -> u64 {
        *self.numbers.entry(id).or_insert_with(|| {
            self.packets.push(Journey { id, sent: None, hops: Vec::new(), strays: Vec::new() });
            self.packets.len() as u64
        })
    }

    fn hop(&mut self, record: usize, packet: &Packet, from: Option<usize>) {
        let number = self.enter(packet.id);
        let index = self.hops.len();
        self.hops.push(Hop { record, packet: number, next: Vec::new(), ends: Vec::new() });
        if let Some(journey) = self.packets.get_mut(number as usize - 1) {
            journey.hops.push(index);
        }
        if let Some(from) = from.and_then(|from| self.hops.get_mut(from)) {
            from.next.push(index);
        }
    }

    /// Returns the index of the earliest hop for which `wanted` returns true, which no other hop follows, and at which
    /// no copy ended. If there is none, the packet was copied: returns the latest hop for which `wanted` returns true.
    fn find(&self, id: PacketId, wanted: impl Fn(&Sighting<'_>) -> bool) -> Option<usize> {
        let journey = self.packet(self.number(id)?)?;
        let matching = || {
            let hops = journey.hops.iter().filter_map(|index| Some((*index, self.hops.get(*index)?)));
            hops.filter(|(_, hop)| self.seen(hop).is_some_and(|seen| wanted(&seen)))
        };
        let open = matching().find(|(_, hop)| hop.next.is_empty() && hop.ends.is_empty());
        open.or_else(|| matching().last()).map(|(index, _)| index)
    }

    /// Returns the index of the hop at which a packet was sent on the link that delivers it to `host`.
    fn sender(&self, host: HostId, iface: Iface, packet: &Packet) -> Option<usize> {
        let way = self.places.way_in(self.places.port(host, iface)?);
        let by_this_way = |seen: &Sighting<'_>| {
            let port = self.places.port(seen.host, seen.iface);
            seen.sent
                && seen.iface != Iface::HOST
                && port.is_some_and(|port| self.places.way_out(port) == way)
        };
        // On a radio or a segment, a copy for another station may be under way at the same time.
        let to: Mac = packet.link.dst;
        let same = |seen: &Sighting<'_>| {
            let is_wire = matches!(way, LinkDirection::Wire { .. });
            by_this_way(seen) && (is_wire || seen.packet.link.dst == to)
        };
        self.find(packet.id, same).or_else(|| self.find(packet.id, by_this_way))
    }
}

/// The time, place, direction and packet of a hop, as [`Journeys::seen`] returns them.
#[derive(Clone, Copy, Debug)]
pub struct Sighting<'a> {
    /// The time of the observation.
    pub at: Instant,
    /// The host of the interface.
    pub host: HostId,
    /// The interface; [`Iface::HOST`] is the host's stack.
    pub iface: Iface,
    /// Whether the node sent the packet at the interface; otherwise the node received it.
    pub sent: bool,
    /// The packet, with the bytes that it had at the interface.
    pub packet: &'a Packet,
}
