//! The Address Resolution Protocol (RFC 826) of hosts and routers (RFC 1122, section 2.3.2; RFC 1812, section 3.3.2):
//! the cache of link addresses, and the packets that wait for a link address.
//!
//! A host may leave the link without notice. So a neighbor in use is probed by unicast before its entry expires (RFC
//! 1122, section 2.3.2.1, method 2). When a link changes, all entries that were learnt on it are removed: the new link
//! has other hosts.
//!
//! Only interfaces that have an address use ARP. To announce an address, a role sends the message itself.

use crate::Neighbor;
use crate::reason;
use crate::waiting::{NeighborKey, Origin, Waiting};
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use wire::arp::{Message, Operation};
use wire::{Cell, Duration, Iface, Instant, Ipv4Addr, Mac, Packet, PacketId, Reason};

/// The largest number of requests for a neighbor.
const TRIES: u8 = 3;
/// The time from a request to the next one, and from the last request to the failure.
const RETRY: Duration = Duration::from_secs(1);
/// For this time after a neighbor's last message, its entry is used without a probe, like `base_reachable_time` of
/// Linux.
const FRESH: Duration = Duration::from_secs(30);
/// After this time without a message of the neighbor, its entry expires. The entry is used for longer only while the
/// neighbor is probed.
const BELIEVED: Duration = Duration::from_mins(1);
/// The largest number of neighbors that are known at a time.
const CAPACITY: usize = 512;
/// The largest number of unknown neighbors that are resolved at a time. The limit is separate, so that a forwarded scan
/// of a link's addresses displaces no neighbor in use.
const SOUGHT: usize = 256;

/// The neighbor cache of a node.
#[derive(Debug, Default)]
pub(crate) struct Arp {
    known: BTreeMap<NeighborKey, Known>,
    sought: BTreeMap<NeighborKey, Sought>,
    waiting: Waiting,
    /// The settings of roles ([`Act::Neighbor`](crate::Act::Neighbor)).
    set: BTreeMap<NeighborKey, Neighbor>,
    /// The interfaces that are up, each with its cell if it is a radio.
    links: BTreeMap<Iface, Option<Cell>>,
}

#[derive(Debug)]
struct Known {
    mac: Mac,
    /// When the last message of the neighbor arrived.
    heard: Instant,
    /// Whether a packet was sent to the neighbor since the entry was created.
    is_used: bool,
}

/// A neighbor that is being resolved: by broadcast, or by unicast if it is known.
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

/// The result of the look-up of a packet's next hop.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The packet is sent to `mac`. `probe`: the neighbor is to be probed now.
    Here { mac: Mac, packet: Packet, probe: bool },
    /// The packet waits for the answer to a request.
    Wait {
        /// Whether to send a request now.
        ask: bool,
        /// The packets that are dropped to make room. The new packet may be one of them.
        displaced: Vec<(Iface, Packet)>,
        /// The packets of another neighbor, whose resolution is given up to make room for the new neighbor.
        given_up: Option<(Iface, VecDeque<Packet>)>,
    },
    /// The neighbor is not known, and no request may be sent.
    Silent(Packet),
    /// There is no room for another neighbor that is being resolved.
    Full(Packet),
}

/// What the node must do at a deadline.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Send another request: by unicast if the link address is known, otherwise by broadcast.
    Ask(Iface, Ipv4Addr, Option<Mac>),
    /// Drop these packets, because the neighbor did not answer.
    Failed(Iface, VecDeque<Packet>),
}

/// The receiver of a message: the interface on which the message arrived.
pub(crate) struct Ear<'a> {
    pub(crate) iface: Iface,
    pub(crate) mac: Mac,
    /// Returns whether an address belongs to this interface.
    pub(crate) is_own: &'a dyn Fn(Ipv4Addr) -> bool,
    /// Returns whether an address is in a prefix of this link.
    pub(crate) on_link: &'a dyn Fn(Ipv4Addr) -> bool,
}

/// The results of a received message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Heard {
    /// The reply to send, if any.
    pub(crate) answer: Option<Message>,
    /// The packets that waited for the sender of the message, and can be sent now.
    pub(crate) released: VecDeque<Packet>,
    /// The drop reason of the message itself.
    pub(crate) end: Reason,
    /// The address of this host, or a watched address, that the sender of the message uses or probes; `None` if there
    /// is none.
    pub(crate) in_use: Option<Ipv4Addr>,
}

impl Arp {
    /// Sets or removes (`None`) how this host treats ARP for an address, as a role requests.
    pub(crate) fn set(&mut self, iface: Iface, address: Ipv4Addr, neighbor: Option<Neighbor>) {
        match neighbor {
            Some(neighbor) => self.set.insert((iface, address), neighbor),
            None => self.set.remove(&(iface, address)),
        };
    }

    /// Returns whether no request may be sent from this address of the node.
    pub(crate) fn is_mute(&self, iface: Iface, own: Ipv4Addr) -> bool {
        self.set.get(&(iface, own)) == Some(&Neighbor::Mute)
    }

    /// Notes that an interface came up. Unless it was up in the same cell before, all entries that were learnt on it
    /// are removed. Returns the packets that waited for the removed entries.
    pub(crate) fn up(&mut self, iface: Iface, cell: Option<Cell>) -> VecDeque<Packet> {
        let is_as_before = self.links.insert(iface, cell) == Some(cell);
        if is_as_before { VecDeque::new() } else { self.forget(iface) }
    }

    /// Notes that an interface went down, and removes all entries that were learnt on it. Returns the packets that
    /// waited for its neighbors.
    pub(crate) fn down(&mut self, iface: Iface) -> VecDeque<Packet> {
        self.links.remove(&iface);
        self.forget(iface)
    }

    /// Removes the entries that were learnt on an interface. Settings of roles remain. Returns the packets that waited
    /// for neighbors.
    fn forget(&mut self, iface: Iface) -> VecDeque<Packet> {
        self.known.retain(|(other, _), _| *other != iface);
        let sought: Vec<NeighborKey> =
            self.sought.keys().filter(|(other, _)| *other == iface).copied().collect();
        let mut waited = VecDeque::new();
        for key in sought {
            self.sought.remove(&key);
            waited.extend(self.waiting.take(key));
        }
        waited
    }

    /// Looks up the link address of a neighbor for a packet. If the neighbor is not known, the packet waits, unless no
    /// request may be sent or there is no room. `may_ask`: this node has an address from which it may send a request.
    pub(crate) fn find(
        &mut self,
        now: Instant,
        key: NeighborKey,
        origin: Origin,
        packet: Packet,
        may_ask: bool,
    ) -> Found {
        if let Some(Neighbor::At(mac)) = self.set.get(&key) {
            return Found::Here { mac: *mac, packet, probe: false };
        }
        let is_sought = self.sought.contains_key(&key);
        if let Some(Known { mac, heard, is_used }) = self.known.get_mut(&key)
            && (is_sought || now < *heard + BELIEVED)
        {
            *is_used = true;
            let (mac, probe) = (*mac, may_ask && !is_sought && now >= *heard + FRESH);
            if probe {
                self.sought.insert(key, Sought::first(now));
            }
            return Found::Here { mac, packet, probe };
        }
        if is_sought {
            let displaced = self.waiting.add(key, origin, packet);
            return Found::Wait { ask: false, displaced, given_up: None };
        }
        self.known.remove(&key); // expired
        if !may_ask {
            return Found::Silent(packet);
        }
        let mut given_up = None;
        if self.unknown().count() >= SOUGHT {
            let Some((iface, packets)) = self.give_up_for(origin) else { return Found::Full(packet) };
            given_up = Some((iface, packets));
        }
        self.sought.insert(key, Sought::first(now));
        Found::Wait { ask: true, displaced: self.waiting.add(key, origin, packet), given_up }
    }

    /// Processes a received message.
    pub(crate) fn hear(&mut self, now: Instant, ear: &Ear<'_>, message: &Message) -> Heard {
        if (ear.is_own)(message.sender) && message.sender_mac != ear.mac {
            // Another host uses an address of this node, or this node has returned and an agent still answers for it.
            // The message is not learnt.
            let in_use = Some(message.sender);
            return Heard { answer: None, released: VecDeque::new(), end: reason::ARP_CONFLICT, in_use };
        }
        let in_use = self.watched_use(ear, message);
        let is_for_us = self.speaks_for(ear, message);
        let learns = is_for_us && !message.is_gratuitous() && (ear.on_link)(message.sender);
        let released = self.learn(now, (ear.iface, message.sender), message.sender_mac, learns);
        let asked = message.operation == Operation::Request && !message.is_gratuitous();
        let answer = (asked && is_for_us).then(|| message.answer(ear.mac));
        Heard { answer, released, end: reason::CONSUMED, in_use }
    }

    /// Returns whether a role watches an address on this interface, so that its ARP messages must be read.
    pub(crate) fn watches(&self, iface: Iface) -> bool {
        let all = self.set.range((iface, Ipv4Addr::UNSPECIFIED)..=(iface, Ipv4Addr::BROADCAST));
        all.into_iter().any(|(_, neighbor)| *neighbor == Neighbor::Watched)
    }

    /// Returns the watched address that the sender of a message uses, or probes with sender 0.0.0.0 (RFC 5227, section
    /// 2.1.1). `None` if there is none, or if the message is this node's own.
    fn watched_use(&self, ear: &Ear<'_>, message: &Message) -> Option<Ipv4Addr> {
        let address = if message.sender.is_unspecified() { message.target } else { message.sender };
        let is_watched = self.set.get(&(ear.iface, address)) == Some(&Neighbor::Watched);
        (is_watched && message.sender_mac != ear.mac).then_some(address)
    }

    /// Returns when the next request or failure is due, or `None` if no neighbor is being resolved or probed.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.sought.values().map(|sought| sought.next).min()
    }

    /// Takes a request or failure that is due at `now`, or returns `None` if none is due.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<Due> {
        let (key, sought) = self.sought.iter_mut().find(|(_, sought)| sought.next <= now)?;
        let key = *key;
        if sought.tries < TRIES {
            (sought.tries, sought.next) = (sought.tries + 1, now + RETRY);
            let known = self.known.get(&key).map(|known| known.mac);
            return Some(Due::Ask(key.0, key.1, known));
        }
        self.sought.remove(&key);
        self.known.remove(&key); // the neighbor did not answer the probes
        Some(Due::Failed(key.0, self.waiting.take(key)))
    }

    /// Calls `each` with the identity of each packet that waits for a neighbor.
    pub(crate) fn holds(&self, each: &mut dyn FnMut(PacketId)) {
        self.waiting.holds(each);
    }

    /// Returns whether this node answers requests for the target address of the message.
    fn speaks_for(&self, ear: &Ear<'_>, message: &Message) -> bool {
        match self.set.get(&(ear.iface, message.target)) {
            Some(Neighbor::Proxy) => message.sender != message.target,
            Some(Neighbor::Mute) => self.is_set_at(ear.iface, message.sender_mac),
            Some(Neighbor::At(_) | Neighbor::Watched) | None => (ear.is_own)(message.target),
        }
    }

    fn is_set_at(&self, iface: Iface, mac: Mac) -> bool {
        self.set.iter().any(|((other, _), neighbor)| *other == iface && *neighbor == Neighbor::At(mac))
    }

    /// Updates the entry of a neighbor that is known or being resolved, as RFC 826 requires. Creates the entry of
    /// another neighbor only if `makes`, and never for 0.0.0.0. Returns the packets that waited for the neighbor.
    fn learn(&mut self, now: Instant, key: NeighborKey, mac: Mac, makes: bool) -> VecDeque<Packet> {
        let is_there = self.known.contains_key(&key) || self.sought.contains_key(&key);
        let may_make = makes && !key.1.is_unspecified();
        if !is_there && !may_make {
            return VecDeque::new();
        }
        let known = self.known.get(&key);
        // A waiting packet counts as use, because it is sent now.
        let is_used = known.is_some_and(|known| known.is_used) || self.waiting.highest(key).is_some();
        if known.is_none() {
            self.make_room(now);
        }
        self.known.insert(key, Known { mac, heard: now, is_used });
        self.sought.remove(&key);
        self.waiting.take(key)
    }

    /// Removes one entry if the cache is full. Expired entries are removed before valid entries. Among these, unused
    /// entries are removed before used entries. Among the rest, the entry with the oldest last message is removed. So a
    /// host that claims many addresses displaces no neighbor in use, while unused or expired entries remain.
    fn make_room(&mut self, now: Instant) {
        if self.known.len() < CAPACITY {
            return;
        }
        let rank = |(key, known): (&NeighborKey, &Known)| {
            (now < known.heard + BELIEVED, known.is_used, known.heard, *key)
        };
        if let Some((.., first)) = self.known.iter().map(rank).min() {
            self.known.remove(&first);
        }
    }

    /// Returns the neighbors that are being resolved and are not known.
    fn unknown(&self) -> impl Iterator<Item = (&NeighborKey, &Sought)> {
        self.sought.iter().filter(|(key, _)| !self.known.contains_key(key))
    }

    /// Gives up the resolution of one neighbor, and returns the packets that waited for this neighbor. Each unknown
    /// neighbor has the rank of its most important waiting packet ([`Origin`]). The neighbor with the lowest rank is
    /// given up; of several, one with the most requests. Returns `None` if the lowest rank is above `origin`, the rank
    /// of the new packet. So a forwarded scan does not displace more important packets.
    fn give_up_for(&mut self, origin: Origin) -> Option<(Iface, VecDeque<Packet>)> {
        let rank = |(key, sought): (&NeighborKey, &Sought)| {
            (self.waiting.highest(*key), Reverse(sought.tries), sought.next, *key)
        };
        let (highest, .., key) = self.unknown().map(rank).min()?;
        if highest.is_some_and(|highest| highest > origin) {
            return None;
        }
        self.sought.remove(&key);
        Some((key.0, self.waiting.take(key)))
    }
}

#[cfg(test)]
#[path = "arp_tests.rs"]
mod tests;
