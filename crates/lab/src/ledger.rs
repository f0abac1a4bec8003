//! The ledger: every packet has an identity, and every copy of it an end.
//!
//! `sent + copied = delivered + dropped + held`, where copied counts what there was of one identity beyond the first.
//! The books are kept place by place (each node, each host's stack, each link), from what went in and what came out.
//! Where less came out than went in and nobody reported why, the packet was *lost without a reporter*: the run is not
//! to be trusted, and the ledger says between which two places it was lost.

use crate::{Plan, segment};
use link::PortId;
use std::collections::{BTreeMap, BTreeSet};
use trace::{HostId, Record, What};
use wire::{Iface, Instant, Mac, PacketId};

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

    /// What is wrong, one line for each pair of places.
    pub fn complaints(&self) -> Vec<String> {
        let mut by_place: BTreeMap<&(String, String), (u64, Instant)> = BTreeMap::new();
        for vanished in &self.vanished {
            let (count, first) = by_place.entry(&vanished.between).or_insert((0, vanished.last_seen));
            *count += 1;
            *first = (*first).min(vanished.last_seen);
        }
        let lost = by_place.into_iter().map(|((a, b), (count, first))| {
            let at = first.as_secs_f64();
            format!("{count} lost between {a} and {b}, no reporter (the first was seen last at {at:.6} s)")
        });
        let appeared = self
            .appeared
            .iter()
            .map(|(place, count)| format!("{count} came out of {place} that nobody put in"));
        lost.chain(appeared).collect()
    }
}

/// What was seen of one packet at one host.
#[derive(Default)]
struct AtHost {
    from_wire: u64,
    from_host: u64,
    to_host: u64,
    sent: u64,
    dropped: u64,
    consumed: u64,
    held: u64,
    app_sent: u64,
    app_received: u64,
    /// Given to the host's stack, whose own it is: applications see bytes of TCP, and nothing of ICMP.
    to_stack: u64,
    stack_lost: u64,
    stack_held: u64,
    last_seen: Instant,
}

/// What was seen of one packet at one end of a link.
#[derive(Default)]
struct AtPort {
    sent: u64,
    received: u64,
    lost: u64,
    held: u64,
    to: Mac,
    from: Mac,
    last_seen: Instant,
}

/// What was seen of one packet.
#[derive(Default)]
struct Seen {
    hosts: BTreeMap<HostId, AtHost>,
    ports: BTreeMap<(HostId, Iface), AtPort>,
}

/// Closes the books.
pub fn close(plan: &Plan, records: &[Record]) -> Ledger {
    let places = Places::new(plan);
    let mut ledger = Ledger::default();
    let mut packets: BTreeMap<PacketId, Seen> = BTreeMap::new();
    for record in records {
        note(&mut packets, record);
        note_loss(&mut ledger, &places, record);
    }
    for (packet, seen) in &packets {
        ledger.sent += 1;
        let (copied_before, mut origins) = (ledger.copied, 0);
        for (host, at) in &seen.hosts {
            origins += ledger.close_node(&places, *packet, *host, at);
        }
        // Where each host that made it also received one, they all count as copies: the first is none.
        let made = ledger.copied - copied_before + u64::from(origins);
        ledger.copied = copied_before + made.saturating_sub(1);
        ledger.close_links(&places, *packet, &seen.ports);
    }
    ledger
}

fn note(packets: &mut BTreeMap<PacketId, Seen>, record: &Record) {
    let id = match &record.what {
        What::Received(_, packet) | What::Sent(_, packet) => packet.id,
        What::Dropped(_, id, _)
        | What::Lost(_, id, _)
        | What::Held(_, id)
        | What::AppSent(id)
        | What::AppReceived(id) => *id,
        _ => return,
    };
    let seen = packets.entry(id).or_default();
    let host = seen.hosts.entry(record.host).or_default();
    host.last_seen = record.at;
    let port = |ports: &mut BTreeMap<(HostId, Iface), AtPort>, iface: Iface, count: fn(&mut AtPort)| {
        let port = ports.entry((record.host, iface)).or_default();
        port.last_seen = record.at;
        count(port);
    };
    match &record.what {
        What::Received(Iface::HOST, _) => host.from_host += 1,
        What::Received(iface, packet) => {
            host.from_wire += 1;
            port(&mut seen.ports, *iface, |port| port.received += 1);
            if let Some(port) = seen.ports.get_mut(&(record.host, *iface)) {
                port.from = packet.link.src;
            }
        }
        What::Sent(Iface::HOST, packet) => {
            host.to_host += 1;
            host.to_stack += u64::from(!segment::is_datagram(packet));
        }
        What::Sent(iface, packet) => {
            host.sent += 1;
            port(&mut seen.ports, *iface, |port| port.sent += 1);
            if let Some(port) = seen.ports.get_mut(&(record.host, *iface)) {
                port.to = packet.link.dst;
            }
        }
        What::Dropped(_, _, reason) if *reason == node::reason::CONSUMED.0 => host.consumed += 1,
        What::Dropped(..) => host.dropped += 1,
        What::Lost(Iface::HOST, ..) => host.stack_lost += 1,
        What::Lost(iface, ..) => port(&mut seen.ports, *iface, |port| port.lost += 1),
        What::Held(Some(Iface::HOST), _) => host.stack_held += 1,
        What::Held(Some(iface), _) => port(&mut seen.ports, *iface, |port| port.held += 1),
        What::Held(None, _) => host.held += 1,
        What::AppSent(_) => host.app_sent += 1,
        What::AppReceived(_) => host.app_received += 1,
        _ => {}
    }
}

fn note_loss(ledger: &mut Ledger, places: &Places, record: &Record) {
    let (iface, packet, reason) = match &record.what {
        What::Dropped(_, _, reason) if *reason == node::reason::CONSUMED.0 => return,
        What::Dropped(iface, packet, reason) | What::Lost(iface, packet, reason) => (*iface, *packet, reason),
        _ => return,
    };
    *ledger.dropped.entry(reason.to_string()).or_default() += 1;
    let place = places.interface(record.host, iface);
    ledger.losses.push(Loss { at: record.at, packet, place, reason: reason.to_string() });
}

impl Ledger {
    /// The books of one packet at one host. Returns how often the packet began its journey here.
    fn close_node(&mut self, places: &Places, packet: PacketId, host: HostId, at: &AtHost) -> u32 {
        // Datagrams to a program end, as bytes of TCP do, where the host's stack has them.
        let to_stack = if places.silent.contains(&host) {
            at.to_host - at.app_received.min(at.to_host)
        } else {
            at.to_stack
        };
        let taken_by_stack = to_stack.saturating_sub(at.stack_lost + at.stack_held);
        self.delivered += at.app_received + at.consumed + taken_by_stack;
        self.held += at.held + at.stack_held;
        let name = places.host(host);
        // Upwards in the stack: application, then node.
        let application = format!("{name}'s application");
        let node = format!("{name}'s node");
        let refused = if at.app_sent > 0 { at.stack_lost } else { 0 };
        self.missing(packet, at, at.app_sent.saturating_sub(at.from_host + refused), (&application, &node));
        // Through the node.
        let taken = at.from_wire + at.from_host;
        let given = at.sent + at.to_host + at.dropped + at.consumed + at.held;
        self.missing(packet, at, taken.saturating_sub(given), (&node, &node));
        let own = u64::from(taken == 0 && given > 0);
        self.copied += given.saturating_sub(taken + own);
        // Downwards in the stack: node, then application.
        let ended = at.app_received + taken_by_stack + at.stack_lost - refused + at.stack_held;
        self.missing(packet, at, at.to_host.saturating_sub(ended), (&node, &application));
        let surplus = ended.saturating_sub(at.to_host);
        if surplus > 0 {
            self.copied += surplus;
            *self.appeared.entry(format!("{name}'s stack")).or_default() += surplus;
        }
        (own + at.app_sent.max(at.from_host)) as u32
    }

    fn close_links(&mut self, places: &Places, packet: PacketId, ports: &BTreeMap<(HostId, Iface), AtPort>) {
        let mut links: BTreeMap<Way, (u64, u64)> = BTreeMap::new();
        for ((host, iface), port) in ports {
            let Some(here) = places.port(*host, *iface) else { continue };
            self.held += port.held;
            let out = links.entry(places.way_out(here)).or_default();
            out.0 += port.sent;
            out.1 += port.lost + port.held;
            links.entry(places.way_in(here)).or_default().1 += port.received;
        }
        for (way, (sent, ended)) in links {
            if sent == 0 {
                self.unsent(places, packet, way, ports);
                continue;
            }
            let surplus = ended.saturating_sub(sent);
            if ports.values().any(|port| port.sent > 0 && port.to.is_group()) {
                self.copied += surplus; // a frame for everybody is meant to come to more than one
            } else {
                self.double(surplus, || places.way_name(way));
            }
            if sent > ended {
                let (between, last_seen) = places.where_lost(way, ports);
                let vanished = Vanished { packet, last_seen, between };
                self.vanished.extend(std::iter::repeat_n(vanished, (sent - ended) as usize));
            }
        }
    }

    /// What a link delivered, lost or holds, and nobody gave to it: not a copy, but a sender who kept no record.
    fn unsent(
        &mut self,
        places: &Places,
        packet: PacketId,
        way: Way,
        ports: &BTreeMap<(HostId, Iface), AtPort>,
    ) {
        for ((host, iface), port) in ports {
            let Some(here) = places.port(*host, *iface) else { continue };
            let out = if places.way_out(here) == way { port.lost + port.held } else { 0 };
            let came = if places.way_in(here) == way { port.received } else { 0 };
            let from = match way {
                Way::Wire { from, .. } => places.by_port.get(&from),
                Way::Air => places.by_mac.get(&port.from),
            };
            let there = from.map_or("?", String::as_str);
            let here = places.interface(*host, *iface);
            for (count, sender) in [(out, here.as_str()), (came, there)] {
                let node = format!("{}'s node", sender.split(':').next().unwrap_or(sender));
                let vanished =
                    Vanished { packet, last_seen: port.last_seen, between: (node, sender.to_owned()) };
                self.vanished.extend(std::iter::repeat_n(vanished, count as usize));
            }
        }
    }

    fn missing(&mut self, packet: PacketId, at: &AtHost, count: u64, between: (&str, &str)) {
        let between = (between.0.to_owned(), between.1.to_owned());
        let vanished = Vanished { packet, last_seen: at.last_seen, between };
        self.vanished.extend(std::iter::repeat_n(vanished, count as usize));
    }

    fn double(&mut self, count: u64, place: impl FnOnce() -> String) {
        if count > 0 {
            self.copied += count;
            *self.doubled.entry(place()).or_default() += count;
        }
    }
}

/// A direction of a wire, or all the air there is: a visit takes a packet from one cell to another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    Wire { from: PortId, to: PortId },
    Air,
}

/// Names and neighbors.
pub(crate) struct Places {
    names: Vec<String>,
    interfaces: BTreeMap<(HostId, Iface), (PortId, String)>,
    peers: BTreeMap<PortId, PortId>,
    by_mac: BTreeMap<Mac, String>,
    by_port: BTreeMap<PortId, String>,
    /// Hosts with programs, which tell nobody of the datagrams that they take.
    silent: BTreeSet<HostId>,
}

impl Places {
    pub(crate) fn new(plan: &Plan) -> Self {
        let mut places = Self {
            names: plan.host_names(),
            interfaces: BTreeMap::new(),
            peers: BTreeMap::new(),
            by_mac: BTreeMap::new(),
            by_port: BTreeMap::new(),
            silent: BTreeSet::new(),
        };
        for (host, plan) in (0..).map(HostId).zip(&plan.hosts) {
            if !plan.programs.is_empty() {
                places.silent.insert(host);
            }
            for (iface, port) in (1..).map(Iface).zip(&plan.ports) {
                let name = format!("{}:{}", plan.config.name, port.name);
                places.interfaces.insert((host, iface), (port.port, name.clone()));
                places.by_port.insert(port.port, name.clone());
                places.by_mac.insert(port.mac, name);
            }
        }
        for ([a, b], _) in &plan.wires {
            places.peers.insert(*a, *b);
            places.peers.insert(*b, *a);
        }
        places
    }

    pub(crate) fn host(&self, host: HostId) -> &str {
        self.names.get(usize::from(host.0)).map_or("?", String::as_str)
    }

    /// `host:interface`; the host's own stack is `host:host`.
    pub(crate) fn interface(&self, host: HostId, iface: Iface) -> String {
        match self.interfaces.get(&(host, iface)) {
            Some((_, name)) => name.clone(),
            None => format!("{}:host", self.host(host)),
        }
    }

    pub(crate) fn by_mac(&self, mac: Mac) -> Option<String> {
        self.by_mac.get(&mac).cloned()
    }

    pub(crate) fn port(&self, host: HostId, iface: Iface) -> Option<PortId> {
        self.interfaces.get(&(host, iface)).map(|(port, _)| *port)
    }

    pub(crate) fn way_out(&self, port: PortId) -> Way {
        self.peers.get(&port).map_or(Way::Air, |peer| Way::Wire { from: port, to: *peer })
    }

    pub(crate) fn way_in(&self, port: PortId) -> Way {
        self.peers.get(&port).map_or(Way::Air, |peer| Way::Wire { from: *peer, to: port })
    }

    fn way_name(&self, way: Way) -> String {
        match way {
            Way::Wire { from, to } => {
                let name = |port| self.by_port.get(&port).cloned().unwrap_or_default();
                format!("the wire from {} to {}", name(from), name(to))
            }
            Way::Air => "the air".to_owned(),
        }
    }

    fn where_lost(&self, way: Way, ports: &BTreeMap<(HostId, Iface), AtPort>) -> ((String, String), Instant) {
        let mut sender = ports.iter().filter(|((host, iface), port)| {
            let here = self.port(*host, *iface);
            port.sent > 0 && here.is_some_and(|here| self.way_out(here) == way)
        });
        let Some(((host, iface), port)) = sender.next_back() else { return Default::default() };
        let to = match way {
            Way::Wire { to, .. } => self.by_port.get(&to).cloned(),
            Way::Air => self.by_mac.get(&port.to).cloned(),
        };
        ((self.interface(*host, *iface), to.unwrap_or_else(|| "the air".to_owned())), port.last_seen)
    }
}

/// Identities that an application was handed, for who wants to know which were not.
pub fn delivered(records: &[Record]) -> BTreeSet<PacketId> {
    let handed = |record: &Record| if let What::AppReceived(id) = record.what { Some(id) } else { None };
    records.iter().filter_map(handed).collect()
}
