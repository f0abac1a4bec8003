//! The ledger: it accounts for every copy of every packet.
//!
//! `sent + copied = delivered + dropped + held`, where `copied` counts the copies of an identity beyond the first. The
//! counts are checked at each node, each host's stack and each link: the copies that left must match the copies that
//! entered. If fewer copies left and no drop was recorded, a copy has *vanished*. The run then has a doubt, and the
//! ledger names the two places between which the copy was lost.
//!
//! A datagram that is cut on its path is one packet: all its fragments have its identity, also after they are cut
//! again. Fragments are no copies. The datagram is delivered when it arrives as a whole; if it does not, it is lost with
//! the cause of its first lost fragment, or held. Each fragment is followed all the same.
//!
//! The recorded steps of a packet are nearly always one unbroken chain, which balances by construction (`chain`).
//! Other packets are counted place by place (`books`).

mod books;
mod chain;
mod open;
mod places;
mod running;
mod seen;
mod step;

pub(crate) use places::{LinkDirection, Places, ends, owners};
pub use running::Running;

use books::{AtHost, AtPort, Books, Links, where_lost};
use scenario::Plan;
use seen::Seen;
use std::collections::{BTreeMap, BTreeSet};
use step::End;
use trace::{Doubt, HostId, Record, What};
use wire::{Instant, PacketId};

/// The packet counts of a whole run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Ledger {
    /// The number of packets that were sent. All copies of a packet count as one.
    pub sent: u64,
    /// The number of copies beyond the first of each identity. Links, nodes and senders make copies.
    pub copied: u64,
    /// The number of copies that reached an application, a stack as the final receiver, or the role that consumes them.
    pub delivered: u64,
    /// The number of copies that were dropped or lost, by reason (docs/glossary.md).
    pub dropped: BTreeMap<String, u64>,
    /// The number of copies that a link, a stack or a role still held when the run ended.
    pub held: u64,
    /// Every recorded drop or loss, with its time, place and reason. Empty in a ledger of [`Running`].
    pub losses: Vec<Loss>,
    /// Every copy that vanished without a recorded drop.
    pub vanished: Vec<Vanished>,
    /// The number of copies that links made, by link. Copies that a node makes, for example in a semisoft handoff, are
    /// not included.
    pub doubled: BTreeMap<String, u64>,
    /// The number of copies that appeared without an origin, by place. For example, a kernel beside the node, or an
    /// unknown host on the link, sent them.
    pub appeared: BTreeMap<String, u64>,
}

/// A recorded drop or loss of one copy of a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loss {
    /// The time of the drop.
    pub at: Instant,
    /// The packet's identity.
    pub packet: PacketId,
    /// The place of the drop, as `host:interface`; the interface of the host's stack and of its roles is `host`.
    pub place: String,
    /// The reason, as listed in `docs/glossary.md`.
    pub reason: String,
}

/// A copy of a packet that was lost without a recorded drop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Vanished {
    /// The packet's identity.
    pub packet: PacketId,
    /// The time at which the packet was last seen.
    pub last_seen: Instant,
    /// The last place where the packet was seen, and the next place where it should have been seen.
    pub between: (String, String),
    /// The interface, as `host:interface`, at which the packet arrived although no record shows that it was sent.
    /// `None` for any other vanished copy.
    pub came_in: Option<String>,
}

impl Ledger {
    /// Returns the number of dropped copies, for all reasons.
    pub fn dropped_total(&self) -> u64 {
        self.dropped.values().sum()
    }

    /// Returns whether `sent + copied = delivered + dropped + held`, and no copy vanished or appeared.
    pub fn balances(&self) -> bool {
        let whole = self.sent + self.copied == self.delivered + self.dropped_total() + self.held;
        whole && self.vanished.is_empty() && self.appeared.is_empty()
    }

    /// Reclassifies up to `frames` vanished copies as `appeared` at this interface of a host, inbound or outbound. The
    /// counters of the interface show that these frames were added at the interface, so no host lost them.
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

    /// Returns one doubt for each pair of places between which copies vanished, and one for each place at which copies
    /// appeared.
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

/// Builds the ledger of a finished run from its records.
///
/// # Panics
///
/// Panics if the number of listed losses differs from the number of counted drops.
pub fn close(plan: &Plan, records: &[Record]) -> Ledger {
    let mut books = Running::new(plan);
    let mut losses = Vec::new();
    for Record { at, host, what } in records {
        if let Some((iface, packet, reason)) = books.told(*at, *host, what) {
            let place = books.places.interface(*host, iface);
            losses.push(Loss { at: *at, packet, place, reason: reason.to_owned() });
        }
    }
    let ledger = books.close();
    assert_eq!(
        losses.len() as u64,
        ledger.dropped_total(),
        "the number of listed losses must be the number of counted drops"
    );
    Ledger { losses, ..ledger }
}

impl Ledger {
    fn count_drop(&mut self, reason: &str) {
        match self.dropped.get_mut(reason) {
            Some(count) => *count += 1,
            None => drop(self.dropped.insert(reason.to_owned(), 1)),
        }
    }

    /// Finalises a packet if all its copies have ended, and returns whether they have.
    fn close_ended(&mut self, places: &Places, packet: PacketId, seen: &Seen, books: &mut Books) -> bool {
        if self.close_chain(seen) {
            return true;
        }
        books.open(seen.steps());
        let links = books.links(places);
        if links == Links::Open || !books.hosts_are_at_rest(places) {
            return false;
        }
        self.close_books(places, packet, seen, links, books);
        true
    }

    /// Finalises a packet when the run has ended, wherever its copies are.
    fn close_packet(&mut self, places: &Places, packet: PacketId, seen: &Seen, books: &mut Books) {
        if !self.close_chain(seen) {
            books.open(seen.steps());
            let links = books.links(places);
            self.close_books(places, packet, seen, links, books);
        }
    }

    /// Finalises a packet whose steps are one chain, which is the usual case. Returns `false` if the steps are not one
    /// complete chain.
    fn close_chain(&mut self, seen: &Seen) -> bool {
        let Some(delivered) = seen.chain().delivered() else { return false };
        *(if seen.is_first() { &mut self.sent } else { &mut self.copied }) += 1;
        self.delivered += delivered;
        true
    }

    /// Finalises a packet from its counters, which works for any steps.
    fn close_books(
        &mut self,
        places: &Places,
        packet: PacketId,
        seen: &Seen,
        links: Links,
        books: &mut Books,
    ) {
        if links != Links::Even {
            books.ports.sort_unstable_by_key(|(end, _)| *end); // of several senders, the same one is named in every run
        }
        let is_first = seen.is_first();
        self.sent += u64::from(is_first);
        let (copied_before, held_before, mut origins) = (self.copied, self.held, 0);
        for (host, at) in &books.hosts {
            origins += self.close_node(places, packet, *host, at);
        }
        // Each origin and each copy is one appearance of the packet. All appearances except the first are copies.
        let made = self.copied - copied_before + u64::from(origins);
        self.copied = copied_before + made.saturating_sub(u64::from(is_first));
        if links == Links::Even {
            self.held += books.ports.iter().map(|(_, port)| u64::from(port.held)).sum::<u64>();
        } else {
            self.close_links(places, packet, &books.ports);
        }
        let joined = books.hosts.iter().map(|(_, at)| u64::from(at.joined)).sum::<u64>();
        if seen.is_cut() || joined > 0 {
            self.join_fragments(seen, joined, (copied_before, held_before));
        }
    }

    /// Counts the fragments of a datagram as one packet. `joined` is the number of fragments that arrived and did not
    /// continue. `before` has the numbers of copied and of held copies before this packet was finalised.
    fn join_fragments(&mut self, seen: &Seen, joined: u64, before: (u64, u64)) {
        let lost = u64::from(seen.lost_fragments());
        let (copied, held) = (self.copied - before.0, self.held - before.1);
        // A datagram is held if a fragment is held and none is lost.
        let too_many_held = held.saturating_sub(u64::from(lost == 0));
        self.held -= too_many_held;
        let surplus = joined + lost.saturating_sub(1) + too_many_held;
        let from_copied = surplus.min(copied);
        self.copied -= from_copied;
        // Only fragments that a role sends have separate identities. Each was counted as sent.
        self.sent -= (surplus - from_copied).min(u64::from(seen.is_first()));
    }

    /// Adds the balance of one packet at one host. Returns how often the packet originated at the host.
    fn close_node(&mut self, places: &Places, packet: PacketId, host: HostId, at: &AtHost) -> u32 {
        let books = at.at_rest(places.is_silent(host));
        self.delivered += u64::from(books.delivered);
        self.held += u64::from(books.held);
        self.copied += u64::from(books.copied + books.surplus);
        if books.lost_above + books.lost_within + books.lost_below + books.surplus > 0 {
            let name = places.host(host);
            let (application, node) = (format!("{name}'s application"), format!("{name}'s node"));
            // The losses are listed in this order: from the application to the node, within the node, from the node to
            // the application.
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
        let mut links: BTreeMap<LinkDirection, (u32, u32)> = BTreeMap::new();
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
                    continue; // the reverse direction, which the packet did not take
                }
                self.unsent(places, packet, way, ports);
                continue;
            }
            let surplus = u64::from(ended.saturating_sub(sent));
            if ports.iter().any(|(_, port)| port.sent > 0 && port.to.is_group()) {
                self.copied += surplus; // a group frame has several receivers
            } else {
                self.double(surplus, || places.way_name(way));
            }
            if sent > ended {
                let (between, last_seen) = where_lost(places, way, ports);
                let vanished = Vanished { packet, last_seen, between, came_in: None };
                self.vanished.extend(std::iter::repeat_n(vanished, (sent - ended) as usize));
            }
        }
    }

    /// Records copies that a link delivered, lost or holds although no sending was recorded. The link did not make
    /// them: the sender kept no record.
    fn unsent(&mut self, places: &Places, packet: PacketId, way: LinkDirection, ports: &[(End, AtPort)]) {
        for ((host, iface), port) in ports {
            let Some(here) = places.port(*host, *iface) else { continue };
            let out = if places.way_out(here) == way { port.lost + port.held } else { 0 };
            let came = if places.way_in(here) == way { port.received } else { 0 };
            let from = match way {
                LinkDirection::Wire { from, .. } => places.by_port(from),
                LinkDirection::Segment(_) | LinkDirection::Air => places.by_mac(port.from),
            };
            let here = places.interface(*host, *iface);
            let its_node = |interface: &str| {
                let node = format!("{}'s node", interface.split(':').next().unwrap_or(interface));
                (node, interface.to_owned())
            };
            // No host of the scenario has the sender's link address.
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

/// Returns the identities of all datagrams that an application received.
pub fn delivered(records: &[Record]) -> BTreeSet<PacketId> {
    let handed = |record: &Record| if let What::AppReceived(id) = record.what { Some(id) } else { None };
    records.iter().filter_map(handed).collect()
}

#[cfg(test)]
mod tests;
