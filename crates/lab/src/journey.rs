//! The life of each packet, hop by hop: which sighting led to which, and how every copy ended.
//!
//! A hop is one sighting of a packet at one interface: a row of `packets.csv`, a packet of the capture. Sightings are
//! joined first in, first out: what a node sends is taken for what it received earliest and has not accounted for.

use crate::Plan;
use crate::ledger::{Places, Way};
use crate::segment;
use std::borrow::Cow;
use std::collections::BTreeMap;
use trace::{HostId, Record, What};
use wire::{Iface, Instant, Mac, Packet, PacketId};

/// One sighting of a packet at one interface.
#[derive(Clone, Debug)]
pub struct Hop {
    /// The record that says so.
    pub record: usize,
    /// The packet's number.
    pub packet: u64,
    /// The sightings that follow from it; several where it was copied.
    pub next: Vec<usize>,
    /// How copies ended here.
    pub ends: Vec<End>,
}

/// How a copy of a packet ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct End {
    /// The record that says so.
    pub record: usize,
    /// When.
    pub at: Instant,
    /// How, and where.
    pub fate: Fate,
}

/// How a copy ends, and where: a host, or `host:interface`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Fate {
    /// An application was handed it.
    Delivered(String),
    /// The role that it was for took it.
    Consumed(String),
    /// The link, or the host's stack, lost it.
    Lost(String, String),
    /// A node dropped it.
    Dropped(String, String),
    /// A queue still held it when the run ended.
    Held(String),
    /// Nobody says; the ledger does not balance.
    Unseen(String),
}

impl std::fmt::Display for Fate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Delivered(host) => write!(f, "delivered to {host}"),
            Self::Consumed(host) => write!(f, "consumed by {host}"),
            Self::Lost(place, reason) => write!(f, "lost at {place}: {reason}"),
            Self::Dropped(host, reason) => write!(f, "dropped by {host}: {reason}"),
            Self::Held(place) => write!(f, "held at {place} when the run ended"),
            Self::Unseen(place) => write!(f, "not seen after {place}"),
        }
    }
}

/// One packet.
#[derive(Clone, Debug)]
pub struct Journey {
    /// Its identity.
    pub id: PacketId,
    /// When an application sent it, if one did, and where.
    pub sent: Option<(Instant, HostId)>,
    /// Its hops in the order of time.
    pub hops: Vec<usize>,
    /// Ends of copies that were never seen at an interface: a role dropped what it had just made.
    pub strays: Vec<End>,
}

/// All packets of a run. They are numbered from 1 in the order of their first appearance, in either world.
pub struct Journeys<'a> {
    records: &'a [Record],
    places: Places,
    hops: Vec<Hop>,
    packets: Vec<Journey>,
    numbers: BTreeMap<PacketId, u64>,
}

impl<'a> Journeys<'a> {
    /// Follows every packet of a run.
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

    /// All hops, in the order of time.
    pub fn hops(&self) -> &[Hop] {
        &self.hops
    }

    /// All packets in the order of their numbers.
    pub fn packets(&self) -> impl Iterator<Item = (u64, &Journey)> {
        (1..).zip(&self.packets)
    }

    /// The packet of a number.
    pub fn packet(&self, number: u64) -> Option<&Journey> {
        self.packets.get(usize::try_from(number.checked_sub(1)?).ok()?)
    }

    /// The number of a packet.
    pub fn number(&self, id: PacketId) -> Option<u64> {
        self.numbers.get(&id).copied()
    }

    /// When, where, which way (`true`: out) and what a hop is.
    pub fn seen(&self, hop: &Hop) -> Option<Sighting<'a>> {
        let record = self.records.get(hop.record)?;
        let (iface, sent, packet) = match &record.what {
            What::Received(iface, packet) => (*iface, false, packet),
            What::Sent(iface, packet) => (*iface, true, packet),
            _ => return None,
        };
        Some(Sighting { at: record.at, host: record.host, iface, sent, packet })
    }

    /// `host:interface`.
    pub fn place(&self, host: HostId, iface: Iface) -> String {
        self.places.interface(host, iface)
    }

    /// The interface, as `host:interface`, whose link address a text is.
    pub fn neighbor(&self, text: &str) -> Option<String> {
        self.places.by_mac(text.parse().ok()?)
    }

    /// A host's name.
    pub fn host(&self, host: HostId) -> Cow<'_, str> {
        self.places.host(host)
    }

    /// How the copies that came by this hop ended.
    pub fn ends(&self, hop: usize) -> Vec<End> {
        let mut ends = Vec::new();
        self.collect(hop, &mut ends);
        ends
    }

    /// How all copies of a packet ended, in the order of time.
    pub fn all_ends(&self, journey: &Journey) -> Vec<End> {
        let mut ends: Vec<End> = self.roots(journey).flat_map(|root| self.ends(root)).collect();
        ends.extend(journey.strays.iter().cloned());
        ends.sort_by_key(|end| end.record);
        ends
    }

    /// The same for one hop, in words.
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

    /// The hops with which a journey begins.
    pub fn roots<'b>(&'b self, journey: &'b Journey) -> impl Iterator<Item = usize> + 'b {
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
                // No application is told of a segment: the stack is where it was going.
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

    /// The number of a packet, a new one if it has none.
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

    /// The earliest sighting that leads nowhere yet; else the latest, which is then copied.
    fn find(&self, id: PacketId, wanted: impl Fn(&Sighting<'_>) -> bool) -> Option<usize> {
        let journey = self.packet(self.number(id)?)?;
        let matching = || {
            let hops = journey.hops.iter().filter_map(|index| Some((*index, self.hops.get(*index)?)));
            hops.filter(|(_, hop)| self.seen(hop).is_some_and(|seen| wanted(&seen)))
        };
        let open = matching().find(|(_, hop)| hop.next.is_empty() && hop.ends.is_empty());
        open.or_else(|| matching().last()).map(|(index, _)| index)
    }

    /// Where a packet that a link brings was sent.
    fn sender(&self, host: HostId, iface: Iface, packet: &Packet) -> Option<usize> {
        let way = self.places.way_in(self.places.port(host, iface)?);
        let by_this_way = |seen: &Sighting<'_>| {
            let port = self.places.port(seen.host, seen.iface);
            seen.sent
                && seen.iface != Iface::HOST
                && port.is_some_and(|port| self.places.way_out(port) == way)
        };
        // In the air a copy for another station may be under way at the same time.
        let to: Mac = packet.link.dst;
        let same = |seen: &Sighting<'_>| by_this_way(seen) && (way != Way::Air || seen.packet.link.dst == to);
        self.find(packet.id, same).or_else(|| self.find(packet.id, by_this_way))
    }
}

/// A packet at an interface.
#[derive(Clone, Copy, Debug)]
pub struct Sighting<'a> {
    /// When.
    pub at: Instant,
    /// At which host.
    pub host: HostId,
    /// At which interface.
    pub iface: Iface,
    /// Out, not in.
    pub sent: bool,
    /// The packet as it was there.
    pub packet: &'a Packet,
}
