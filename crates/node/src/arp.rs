//! The Address Resolution Protocol (RFC 826), as hosts and routers have to do it (RFC 1122, section 2.3.2; RFC 1812,
//! section 3.3.2): who is at which link address, and packets that wait until it is known.
//!
//! A neighbor that is in use is probed by unicast before its entry ends (RFC 1122, section 2.3.2.1, method 2), as a host can
//! leave the link without a word. What was learnt on a link ends with the link: on the next one other hosts are there.
//!
//! Only interfaces that have an address speak ARP. Announcing an address is a role's: it sends the message itself.

use crate::Neighbor;
use crate::node::reason;
use crate::waiting::{Origin, Place, Waiting};
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use wire::arp::{Message, Operation};
use wire::{Cell, Duration, Iface, Instant, Ipv4Addr, Mac, Packet, PacketId, Reason};

/// How often a neighbor is asked for, and how long each time.
const TRIES: u8 = 3;
const RETRY: Duration = Duration::from_secs(1);
/// How long an entry is used without a probe after a message of the neighbor: `base_reachable_time` of Linux.
const FRESH: Duration = Duration::from_secs(30);
/// How long an entry is used at all that no message has confirmed since, unless it is being probed.
const BELIEVED: Duration = Duration::from_mins(1);
/// Neighbors that are known at one time.
const CAPACITY: usize = 512;
/// Neighbors that are sought at one time and not known. They have room of their own: a scan of a link's addresses that is forwarded
/// takes none from the neighbors in use.
const SOUGHT: usize = 256;

/// What a node knows of its neighbors.
#[derive(Debug, Default)]
pub(crate) struct Arp {
    known: BTreeMap<Place, Known>,
    sought: BTreeMap<Place, Sought>,
    waiting: Waiting,
    /// What roles have set.
    set: BTreeMap<Place, Neighbor>,
    /// The links that are up, and the cell of each if it is a radio's.
    links: BTreeMap<Iface, Option<Cell>>,
}

#[derive(Debug)]
struct Known {
    mac: Mac,
    /// When a message of the neighbor confirmed it.
    heard: Instant,
    /// Whether a packet was sent to it since it was made.
    is_used: bool,
}

/// A neighbor that is asked for: by broadcast, or by unicast if it is known.
#[derive(Debug)]
struct Sought {
    tries: u8,
    next: Instant,
}

impl Sought {
    fn first(now: Instant) -> Self {
        Self { tries: 1, next: now + RETRY }
    }
}

/// What becomes of a packet whose next hop is to be found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// It can go; whether the neighbor is to be probed now.
    Here { mac: Mac, packet: Packet, probe: bool },
    /// It waits.
    Wait {
        /// Whether the neighbor has to be asked for now.
        ask: bool,
        /// Packets that make room for it; it may be one of them.
        displaced: Vec<(Iface, Packet)>,
        /// Packets that are given up with their neighbor, as there is no room for one more.
        given_up: Option<(Iface, VecDeque<Packet>)>,
    },
    /// It is not known, and nobody may be asked.
    Silent(Packet),
    /// There is no room for one more neighbor.
    Full(Packet),
}

/// What is due.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Ask again: by unicast if there is a link address.
    Ask(Iface, Ipv4Addr, Option<Mac>),
    /// Nobody answers: the packets that waited.
    Failed(Iface, VecDeque<Packet>),
}

/// Who hears a message: our side of an interface.
pub(crate) struct Ear<'a> {
    pub(crate) iface: Iface,
    pub(crate) mac: Mac,
    /// Whether an address is this interface's own.
    pub(crate) is_own: &'a dyn Fn(Ipv4Addr) -> bool,
    /// Whether a host with this address belongs on this link.
    pub(crate) on_link: &'a dyn Fn(Ipv4Addr) -> bool,
}

/// What follows from a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Heard {
    /// What to answer.
    pub(crate) answer: Option<Message>,
    /// Packets that can go now, to the message's sender.
    pub(crate) released: VecDeque<Packet>,
    /// How the message itself ends.
    pub(crate) end: Reason,
}

impl Arp {
    /// Sets or removes what a role wants.
    pub(crate) fn set(&mut self, iface: Iface, address: Ipv4Addr, neighbor: Option<Neighbor>) {
        match neighbor {
            Some(neighbor) => self.set.insert((iface, address), neighbor),
            None => self.set.remove(&(iface, address)),
        };
    }

    /// Whether nobody may ask on behalf of this address of ours.
    pub(crate) fn is_mute(&self, iface: Iface, own: Ipv4Addr) -> bool {
        self.set.get(&(iface, own)) == Some(&Neighbor::Mute)
    }

    /// Notes that an interface came up. If its link is another than before, all that was learnt of neighbors ends; returns
    /// the packets that waited for them.
    pub(crate) fn up(&mut self, iface: Iface, cell: Option<Cell>) -> VecDeque<Packet> {
        let is_as_before = self.links.insert(iface, cell) == Some(cell);
        if is_as_before { VecDeque::new() } else { self.forget(iface) }
    }

    /// Notes that an interface went down, and ends all that was learnt of its neighbors; returns the packets that waited for
    /// them.
    pub(crate) fn down(&mut self, iface: Iface) -> VecDeque<Packet> {
        self.links.remove(&iface);
        self.forget(iface)
    }

    /// Ends all that messages said of an interface's neighbors. What roles have set stays: it is for them to change.
    fn forget(&mut self, iface: Iface) -> VecDeque<Packet> {
        self.known.retain(|(other, _), _| *other != iface);
        let sought: Vec<Place> = self.sought.keys().filter(|(other, _)| *other == iface).copied().collect();
        let mut waited = VecDeque::new();
        for place in sought {
            self.sought.remove(&place);
            waited.extend(self.waiting.take(place));
        }
        waited
    }

    /// Where a neighbor is; unless that is known, its packet waits. `may_ask`: one of our addresses may be heard.
    pub(crate) fn find(
        &mut self,
        now: Instant,
        place: Place,
        origin: Origin,
        packet: Packet,
        may_ask: bool,
    ) -> Found {
        if let Some(Neighbor::At(mac)) = self.set.get(&place) {
            return Found::Here { mac: *mac, packet, probe: false };
        }
        let is_sought = self.sought.contains_key(&place);
        if let Some(Known { mac, heard, is_used }) = self.known.get_mut(&place)
            && (is_sought || now < *heard + BELIEVED)
        {
            *is_used = true;
            let (mac, probe) = (*mac, may_ask && !is_sought && now >= *heard + FRESH);
            if probe {
                self.sought.insert(place, Sought::first(now));
            }
            return Found::Here { mac, packet, probe };
        }
        if is_sought {
            let displaced = self.waiting.add(place, origin, packet);
            return Found::Wait { ask: false, displaced, given_up: None };
        }
        self.known.remove(&place); // what was believed for too long
        if !may_ask {
            return Found::Silent(packet);
        }
        let mut given_up = None;
        if self.unknown().count() >= SOUGHT {
            let Some((iface, packets)) = self.give_up_for(origin) else { return Found::Full(packet) };
            given_up = Some((iface, packets));
        }
        self.sought.insert(place, Sought::first(now));
        Found::Wait { ask: true, displaced: self.waiting.add(place, origin, packet), given_up }
    }

    /// Takes a message in.
    pub(crate) fn hear(&mut self, now: Instant, ear: &Ear<'_>, message: &Message) -> Heard {
        if (ear.is_own)(message.sender) && message.sender_mac != ear.mac {
            // Two hosts with one address, or an agent that speaks for us while we are back: never learnt.
            return Heard { answer: None, released: VecDeque::new(), end: reason::ARP_CONFLICT };
        }
        let is_for_us = self.speaks_for(ear, message);
        let learns = is_for_us && !message.is_gratuitous() && (ear.on_link)(message.sender);
        let released = self.learn(now, (ear.iface, message.sender), message.sender_mac, learns);
        let asked = message.operation == Operation::Request && !message.is_gratuitous();
        let answer = (asked && is_for_us).then(|| message.answer(ear.mac));
        Heard { answer, released, end: reason::CONSUMED }
    }

    /// When the first is due.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.sought.values().map(|sought| sought.next).min()
    }

    /// Takes one that is due at `now`.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<Due> {
        let (place, sought) = self.sought.iter_mut().find(|(_, sought)| sought.next <= now)?;
        let place = *place;
        if sought.tries < TRIES {
            (sought.tries, sought.next) = (sought.tries + 1, now + RETRY);
            let known = self.known.get(&place).map(|known| known.mac);
            return Some(Due::Ask(place.0, place.1, known));
        }
        self.sought.remove(&place);
        self.known.remove(&place); // it was probed, and has left
        Some(Due::Failed(place.0, self.waiting.take(place)))
    }

    /// Names the packets that wait.
    pub(crate) fn holds(&self, each: &mut dyn FnMut(PacketId)) {
        self.waiting.holds(each);
    }

    /// Whether the target of a message is an address that we answer for to its sender.
    fn speaks_for(&self, ear: &Ear<'_>, message: &Message) -> bool {
        match self.set.get(&(ear.iface, message.target)) {
            Some(Neighbor::Proxy) => message.sender != message.target,
            Some(Neighbor::Mute) => self.is_set_at(ear.iface, message.sender_mac),
            Some(Neighbor::At(_)) | None => (ear.is_own)(message.target),
        }
    }

    fn is_set_at(&self, iface: Iface, mac: Mac) -> bool {
        self.set.iter().any(|((other, _), neighbor)| *other == iface && *neighbor == Neighbor::At(mac))
    }

    /// What is known already is brought up to date, as RFC 826 asks; a new entry is made only if `makes`.
    fn learn(&mut self, now: Instant, place: Place, mac: Mac, makes: bool) -> VecDeque<Packet> {
        let is_there = self.known.contains_key(&place) || self.sought.contains_key(&place);
        let may_make = makes && !place.1.is_unspecified();
        if !is_there && !may_make {
            return VecDeque::new();
        }
        let known = self.known.get(&place);
        // What waited for it is sent now.
        let is_used = known.is_some_and(|known| known.is_used) || self.waiting.highest(place).is_some();
        if known.is_none() {
            self.make_room(now);
        }
        self.known.insert(place, Known { mac, heard: now, is_used });
        self.sought.remove(&place);
        self.waiting.take(place)
    }

    /// A neighbor makes room for one more: one that is not believed any more, else one that no packet was sent to, else any; of
    /// those the one that was confirmed longest ago. So a host that claims many addresses displaces no neighbor in use.
    fn make_room(&mut self, now: Instant) {
        if self.known.len() < CAPACITY {
            return;
        }
        let rank = |(place, known): (&Place, &Known)| {
            (now < known.heard + BELIEVED, known.is_used, known.heard, *place)
        };
        if let Some((.., first)) = self.known.iter().map(rank).min() {
            self.known.remove(&first);
        }
    }

    /// The neighbors that are sought and not known.
    fn unknown(&self) -> impl Iterator<Item = (&Place, &Sought)> {
        self.sought.iter().filter(|(place, _)| !self.known.contains_key(place))
    }

    /// Gives up the neighbor that was sought longest among those for which the least important packets wait, if they are not more
    /// important than a packet of `origin`. So a scan that is forwarded keeps no packet from its next hop.
    fn give_up_for(&mut self, origin: Origin) -> Option<(Iface, VecDeque<Packet>)> {
        let rank = |(place, sought): (&Place, &Sought)| {
            (self.waiting.highest(*place), Reverse(sought.tries), sought.next, *place)
        };
        let (highest, .., place) = self.unknown().map(rank).min()?;
        if highest.is_some_and(|highest| highest > origin) {
            return None;
        }
        self.sought.remove(&place);
        Some((place.0, self.waiting.take(place)))
    }
}

#[cfg(test)]
#[path = "arp_tests.rs"]
mod tests;
