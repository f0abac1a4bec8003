//! The Address Resolution Protocol (RFC 826), as hosts and routers have to do it (RFC 1122, section 2.3.2; RFC 1812,
//! section 3.3.2): who is at which link address, and packets that wait until it is known.
//!
//! Only interfaces that have an address speak ARP. Announcing an address is a role's: it sends the message itself.

use crate::Neighbor;
use crate::node::reason;
use std::collections::{BTreeMap, VecDeque};
use wire::arp::{Message, Operation};
use wire::{Duration, Iface, Instant, Ipv4Addr, Mac, Packet, PacketId, Reason};

/// Packets that wait for one neighbor; when one more comes, the oldest goes (RFC 1122 asks for one at least).
const QUEUE: usize = 3;
/// How often a neighbor is asked for, and how long each time.
const TRIES: u8 = 3;
const RETRY: Duration = Duration::from_secs(1);
/// How long an answer is believed that nothing has confirmed since.
const BELIEVED: Duration = Duration::from_mins(1);
/// Neighbors that are known or sought at one time.
const CAPACITY: usize = 512;

type Place = (Iface, Ipv4Addr);

/// What a node knows of its neighbors.
#[derive(Debug, Default)]
pub(crate) struct Arp {
    known: BTreeMap<Place, Known>,
    sought: BTreeMap<Place, Sought>,
    /// What roles have set.
    set: BTreeMap<Place, Neighbor>,
}

#[derive(Debug)]
struct Known {
    mac: Mac,
    heard: Instant,
}

#[derive(Debug)]
struct Sought {
    tries: u8,
    next: Instant,
    queue: VecDeque<Packet>,
}

/// What becomes of a packet whose next hop is to be found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// It can go.
    Here(Mac, Packet),
    /// It waits; whether the neighbor has to be asked for now, and which packet had to make room.
    Wait(bool, Option<Packet>),
    /// It is not known, and nobody may be asked.
    Silent(Packet),
    /// There is no room for one more neighbor.
    Full(Packet),
}

/// What is due.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Ask again.
    Ask(Iface, Ipv4Addr),
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

    /// Where a neighbor is; unless that is known, its packet waits. `may_ask`: one of our addresses may be heard.
    pub(crate) fn find(
        &mut self,
        now: Instant,
        iface: Iface,
        neighbor: Ipv4Addr,
        packet: Packet,
        may_ask: bool,
    ) -> Found {
        let place = (iface, neighbor);
        if let Some(Neighbor::At(mac)) = self.set.get(&place) {
            return Found::Here(*mac, packet);
        }
        if let Some(known) = self.known.get(&place).filter(|known| now < known.heard + BELIEVED) {
            return Found::Here(known.mac, packet);
        }
        if let Some(Sought { queue, .. }) = self.sought.get_mut(&place) {
            queue.push_back(packet);
            return Found::Wait(false, if queue.len() > QUEUE { queue.pop_front() } else { None });
        }
        self.known.remove(&place); // what was believed for too long
        if !may_ask {
            return Found::Silent(packet);
        }
        if !self.has_room() {
            return Found::Full(packet);
        }
        let sought = Sought { tries: 1, next: now + RETRY, queue: VecDeque::from([packet]) };
        self.sought.insert(place, sought);
        Found::Wait(true, None)
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
            return Some(Due::Ask(place.0, place.1));
        }
        self.sought.remove(&place).map(|sought| Due::Failed(place.0, sought.queue))
    }

    /// Names the packets that wait.
    pub(crate) fn holds(&self, each: &mut dyn FnMut(PacketId)) {
        for packet in self.sought.values().flat_map(|sought| &sought.queue) {
            each(packet.id);
        }
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
        if !is_there && (!may_make || !self.has_room()) {
            return VecDeque::new();
        }
        self.known.insert(place, Known { mac, heard: now });
        self.sought.remove(&place).map(|sought| sought.queue).unwrap_or_default()
    }

    /// Whether one more neighbor fits; the one that was confirmed longest ago makes room for it.
    fn has_room(&mut self) -> bool {
        if self.known.len() + self.sought.len() < CAPACITY {
            return true;
        }
        let oldest = self.known.iter().map(|(place, known)| (known.heard, *place)).min();
        oldest.is_some_and(|(_, oldest)| self.known.remove(&oldest).is_some())
    }
}

#[cfg(test)]
#[path = "arp_tests.rs"]
mod tests;
