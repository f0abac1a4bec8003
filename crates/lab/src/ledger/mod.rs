//! The ledger: every packet has an identity, and every copy of it an end.
//!
//! `sent + copied = delivered + dropped + held`, where copied counts what there was of one identity beyond the first.
//! The books are kept place by place (each node, each host's stack, each link), from what went in and what came out.
//! Where less came out than went in and nobody reported why, the packet was *lost without a reporter*: the run is not
//! to be trusted, and the ledger says between which two places it was lost.
//!
//! What is told of a packet is kept as steps. Nearly always they are one unbroken chain, of which the books are known without
//! being opened (`chain`); else they are (`books`).

mod books;
mod chain;
mod open;
mod places;
mod running;
mod seen;

pub(crate) use places::{Places, Way};
pub use running::Running;

use crate::Plan;
use books::{AtHost, AtPort, Books, Links};
use seen::{End, Seen};
use std::collections::{BTreeMap, BTreeSet};
use trace::{Doubt, HostId, Record, What};
use wire::{Instant, PacketId};

/// The closed books of a run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Ledger {
    /// Identities.
    pub sent: u64,
    /// Copies beyond the first, wherever they were made.
    pub copied: u64,
    /// Copies that reached an application, or the role that they were for.
    pub delivered: u64,
    /// Copies dropped, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// Copies that a queue still held at the end.
    pub held: u64,
    /// Every drop: when, where, why.
    pub losses: Vec<Loss>,
    /// Every copy that vanished.
    pub vanished: Vec<Vanished>,
    /// Copies that a link made, by place: a bicast is a node's, these are nobody's wish.
    pub doubled: BTreeMap<String, u64>,
    /// Copies that came out where none, or fewer, went in: a kernel beside the node, or a stranger on the wire.
    pub appeared: BTreeMap<String, u64>,
}

/// A copy of a packet that was dropped, by somebody who said so.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loss {
    /// When.
    pub at: Instant,
    /// Which packet.
    pub packet: PacketId,
    /// Where, as `host:interface`.
    pub place: String,
    /// Why.
    pub reason: String,
}

/// A copy of a packet that was lost without a reporter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Vanished {
    /// Which packet.
    pub packet: PacketId,
    /// When it was last seen.
    pub last_seen: Instant,
    /// The two places.
    pub between: (String, String),
    /// The interface at which it arrived, if no record says that it was sent.
    pub came_in: Option<String>,
}

impl Ledger {
    /// Copies dropped, for whatever reason.
    pub fn dropped_total(&self) -> u64 {
        self.dropped.values().sum()
    }

    /// Whether every copy is accounted for.
    pub fn balances(&self) -> bool {
        let whole = self.sent + self.copied == self.delivered + self.dropped_total() + self.held;
        whole && self.vanished.is_empty() && self.appeared.is_empty()
    }

    /// Counters say that so many frames were added at this interface of a host, on their way in or out. They are counted as added
    /// there, and no longer as lost by the host whose link address they have.
    pub(crate) fn added(&mut self, host: &str, interface: &str, mut frames: u64, is_in: bool) {
        let place = format!("{host}:{interface}");
        let node = format!("{host}'s node");
        let mut found = 0;
        self.vanished.retain(|vanished| {
            let is_here = if is_in {
                vanished.came_in.as_ref() == Some(&place)
            } else {
                vanished.between.0 == node && vanished.between.1 == place
            };
            let is_added = is_here && frames > 0;
            frames -= u64::from(is_added);
            found += u64::from(is_added);
            !is_added
        });
        if found > 0 {
            *self.appeared.entry(place).or_default() += found;
        }
    }

    /// What is wrong, one doubt for each pair of places.
    pub fn doubts(&self) -> Vec<Doubt> {
        let mut by_place: BTreeMap<&(String, String), (u64, Instant)> = BTreeMap::new();
        for vanished in &self.vanished {
            let (count, first) = by_place.entry(&vanished.between).or_insert((0, vanished.last_seen));
            *count += 1;
            *first = (*first).min(vanished.last_seen);
        }
        let lost = by_place.into_iter().map(|((a, b), (packets, first))| Doubt::Unaccounted {
            between: [a.clone(), b.clone()],
            packets,
            first_s: first.as_secs_f64(),
        });
        let appeared = self.appeared.iter();
        let appeared =
            appeared.map(|(place, count)| Doubt::Appeared { place: place.clone(), packets: *count });
        lost.chain(appeared).collect()
    }
}

/// Closes the books.
pub fn close(plan: &Plan, records: &[Record]) -> Ledger {
    let mut books = Running::new(plan);
    let mut losses = Vec::new();
    for Record { at, host, what } in records {
        if let Some((iface, packet, reason)) = books.told(*at, *host, what) {
            let place = books.places.interface(*host, iface);
            losses.push(Loss { at: *at, packet, place, reason: reason.to_owned() });
        }
    }
    Ledger { losses, ..books.close() }
}

impl Ledger {
    fn count_drop(&mut self, reason: &str) {
        match self.dropped.get_mut(reason) {
            Some(count) => *count += 1,
            None => drop(self.dropped.insert(reason.to_owned(), 1)),
        }
    }

    /// Closes the books of a packet, unless a copy of it has not come to its end: then it says `false`.
    fn close_ended(&mut self, places: &Places, packet: PacketId, seen: &Seen, books: &mut Books) -> bool {
        if self.close_chain(seen) {
            return true;
        }
        books.open(seen.steps());
        let links = books.links(places);
        if links == Links::Open || !books.hosts_are_at_rest(places) {
            return false;
        }
        self.close_books(places, packet, seen.is_first(), links, books);
        true
    }

    /// Closes the books of a packet, wherever it was when the run ended.
    fn close_packet(&mut self, places: &Places, packet: PacketId, seen: &Seen, books: &mut Books) {
        if !self.close_chain(seen) {
            books.open(seen.steps());
            let links = books.links(places);
            self.close_books(places, packet, seen.is_first(), links, books);
        }
    }

    /// The short way, which nearly every packet goes.
    fn close_chain(&mut self, seen: &Seen) -> bool {
        let Some(delivered) = seen.chain().delivered() else { return false };
        *(if seen.is_first() { &mut self.sent } else { &mut self.copied }) += 1;
        self.delivered += delivered;
        true
    }

    /// The long way, which all can go.
    fn close_books(
        &mut self,
        places: &Places,
        packet: PacketId,
        is_first: bool,
        links: Links,
        books: &mut Books,
    ) {
        if links != Links::Even {
            books.ports.sort_unstable_by_key(|(end, _)| *end); // of several senders, the same one is always named
        }
        self.sent += u64::from(is_first);
        let (copied_before, mut origins) = (self.copied, 0);
        for (host, at) in &books.hosts {
            origins += self.close_node(places, packet, *host, at);
        }
        // Where each host that made it also received one, they all count as copies: the first is none.
        let made = self.copied - copied_before + u64::from(origins);
        self.copied = copied_before + made.saturating_sub(u64::from(is_first));
        if links == Links::Even {
            self.held += books.ports.iter().map(|(_, port)| u64::from(port.held)).sum::<u64>();
        } else {
            self.close_links(places, packet, &books.ports);
        }
    }

    /// The books of one packet at one host. Returns how often the packet began its journey here.
    fn close_node(&mut self, places: &Places, packet: PacketId, host: HostId, at: &AtHost) -> u32 {
        let books = at.at_rest(places.is_silent(host));
        self.delivered += u64::from(books.delivered);
        self.held += u64::from(books.held);
        self.copied += u64::from(books.copied + books.surplus);
        if books.lost_above + books.lost_within + books.lost_below + books.surplus > 0 {
            let name = places.host(host);
            let (application, node) = (format!("{name}'s application"), format!("{name}'s node"));
            // Upwards in the stack, application, then node; through the node; and downwards.
            self.missing(packet, at, books.lost_above, (&application, &node));
            self.missing(packet, at, books.lost_within, (&node, &node));
            self.missing(packet, at, books.lost_below, (&node, &application));
            if books.surplus > 0 {
                *self.appeared.entry(format!("{name}'s stack")).or_default() += u64::from(books.surplus);
            }
        }
        books.origins
    }

    fn close_links(&mut self, places: &Places, packet: PacketId, ports: &[(End, AtPort)]) {
        let mut links: BTreeMap<Way, (u32, u32)> = BTreeMap::new();
        for ((host, iface), port) in ports {
            let Some(here) = places.port(*host, *iface) else { continue };
            self.held += u64::from(port.held);
            let out = links.entry(places.way_out(here)).or_default();
            out.0 += port.sent;
            out.1 += port.lost + port.held;
            links.entry(places.way_in(here)).or_default().1 += port.received;
        }
        for (way, (sent, ended)) in links {
            if sent == 0 {
                if ended == 0 {
                    continue; // the way back, which it did not take
                }
                self.unsent(places, packet, way, ports);
                continue;
            }
            let surplus = u64::from(ended.saturating_sub(sent));
            if ports.iter().any(|(_, port)| port.sent > 0 && port.to.is_group()) {
                self.copied += surplus; // a frame for everybody is meant to come to more than one
            } else {
                self.double(surplus, || places.way_name(way));
            }
            if sent > ended {
                let (between, last_seen) = places.where_lost(way, ports);
                let vanished = Vanished { packet, last_seen, between, came_in: None };
                self.vanished.extend(std::iter::repeat_n(vanished, (sent - ended) as usize));
            }
        }
    }

    /// What a link delivered, lost or holds, and nobody gave to it: not a copy, but a sender who kept no record.
    fn unsent(&mut self, places: &Places, packet: PacketId, way: Way, ports: &[(End, AtPort)]) {
        for ((host, iface), port) in ports {
            let Some(here) = places.port(*host, *iface) else { continue };
            let out = if places.way_out(here) == way { port.lost + port.held } else { 0 };
            let came = if places.way_in(here) == way { port.received } else { 0 };
            let from = match way {
                Way::Wire { from, .. } => places.by_port(from),
                Way::Air => places.by_mac(port.from),
            };
            let here = places.interface(*host, *iface);
            let its_node = |interface: &str| {
                let node = format!("{}'s node", interface.split(':').next().unwrap_or(interface));
                (node, interface.to_owned())
            };
            // No host of the scenario has this link address.
            let stranger = || ("an unknown sender".to_owned(), here.clone());
            let between = from.as_deref().map_or_else(stranger, its_node);
            let came_in = Some(here.clone());
            for (count, between, came_in) in [(out, its_node(&here), None), (came, between, came_in)] {
                let vanished = Vanished { packet, last_seen: port.last_seen, between, came_in };
                self.vanished.extend(std::iter::repeat_n(vanished, count as usize));
            }
        }
    }

    fn missing(&mut self, packet: PacketId, at: &AtHost, count: u32, between: (&str, &str)) {
        let between = (between.0.to_owned(), between.1.to_owned());
        let vanished = Vanished { packet, last_seen: at.last_seen, between, came_in: None };
        self.vanished.extend(std::iter::repeat_n(vanished, count as usize));
    }

    fn double(&mut self, count: u64, place: impl FnOnce() -> String) {
        if count > 0 {
            self.copied += count;
            *self.doubled.entry(place()).or_default() += count;
        }
    }
}

/// Identities that an application was handed, for who wants to know which were not.
pub fn delivered(records: &[Record]) -> BTreeSet<PacketId> {
    let handed = |record: &Record| if let What::AppReceived(id) = record.what { Some(id) } else { None };
    records.iter().filter_map(handed).collect()
}

#[cfg(test)]
mod tests;
