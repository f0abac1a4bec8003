//! Collects the facts of a run from the simulator's events without keeping them, or from the records of a run on Linux.

use crate::facts::{Arrivals, CONTROL, End, Facts};
use crate::plant::Plant;
use crate::registrations::{Registrations, Rule, has_role, interfaces_named};
use mobile_ip::message::PORT;
use node::{AppChange, AppEvent, Mark, StreamId, Value};
use recorder::ledger::Running;
use scenario::Plan;
use sctp::message::{Chunk, Packet as Sctp};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use trace::{EventKind, HostId, What, Witness};
use wire::ipv4::{Header, TCP, UDP};
use wire::{Iface, Instant, Ipv4Addr, Packet, PacketId, tunnel, udp};

/// Largest number of times that a packet may cross one link in one direction. If a host returns to a cell, a packet may
/// follow it over the same link, and a semisoft handoff makes copies. A correct protocol needs fewer crossings.
pub const CROSSINGS: u8 = 8;
/// Largest number of findings of one kind that are kept.
const KEPT: usize = 8;
/// The type of a Registration Request (RFC 5944, section 3.3).
const REQUEST: u8 = 1;

/// A path of an association: the host, an address of its peer, the host's port, and the peer's port.
type Path = (HostId, Ipv4Addr, u16, u16);

/// A witness that collects the ledger and the facts. It ends a run in the simulator when all connections are over, but
/// not before a given time.
pub struct Watch {
    pub(crate) books: Running,
    pub(crate) facts: Facts,
    plant: Option<Plant>,
    names: Vec<String>,
    addresses: BTreeMap<Ipv4Addr, HostId>,
    /// Support routers. Their stacks receive packets for the connections of other hosts.
    relays: BTreeSet<HostId>,
    ports: BTreeMap<(HostId, StreamId), (u16, bool)>,
    listeners: BTreeMap<(HostId, StreamId), u16>,
    crossings: HashMap<(PacketId, HostId, Iface), u8>,
    /// The port of the workload of each packet that was sent on a link; [`CONTROL`] for packets of no workload.
    ports_of: HashMap<PacketId, u16>,
    serving: BTreeMap<(String, String), BTreeSet<HostId>>,
    /// Pairs of a router and a mobile host: since its last start, the router had connections of the host, or
    /// connections of the host were sent to it.
    had: BTreeSet<(HostId, Ipv4Addr)>,
    /// Pairs of a router and a mobile host: the host has greeted the router since the router's last start.
    greeted: BTreeSet<(HostId, Ipv4Addr)>,
    /// Pairs of a router and a mobile host: the host had greeted the router, the router has crashed, and the host has
    /// not greeted the router again.
    forgotten: BTreeSet<(HostId, Ipv4Addr)>,
    /// The router that accepted the last request to open a connection, by mobile host and number of the connection.
    calls: BTreeMap<(String, String), HostId>,
    registrations: Registrations,
    confirmed: BTreeSet<Path>,
    /// The path of each HEARTBEAT, by the sender and the nonce of the HEARTBEAT.
    probes: BTreeMap<(HostId, Vec<u8>), Path>,
    /// The path of each INIT ACK, by the sender and the cookie of the INIT ACK.
    cookies: BTreeMap<(HostId, Vec<u8>), Path>,
    /// Number of connections that must exist before the run may end.
    expected: usize,
    quiet: Instant,
    over: bool,
    now: Instant,
    /// Whether each packet has a different identity. On Linux, packets with equal bytes have the same identity, for
    /// example two equal beacons.
    has_numbers: bool,
    /// The largest number of crossings of a link.
    most_crossings: u8,
    /// The second radio of each host that has one.
    second: BTreeMap<HostId, Iface>,
    /// With the planted mistake [`Plant::Stuck`]: the times in which no request of a mobile host leaves by its first radio.
    pub(crate) stuck: BTreeMap<String, Vec<(Instant, Instant)>>,
}

/// Returns the largest number of times that a packet may cross a link in this scenario. Links that duplicate frames double
/// [`CROSSINGS`], and so does one whose duplicates are late: kept packets follow a host with all their copies.
fn most_crossings(scenario: &str) -> u8 {
    let late = scenario.matches("\nduplicate_delay = ").count();
    let all = scenario.matches("\nduplicate = ").count();
    CROSSINGS << u8::from(late > 0) << u8::from(all > late)
}

impl Watch {
    /// Returns a witness of a run of this plan, with `expected` connections. The run ends when all connections are
    /// over, but not before `quiet`. `plant` is the mistake that changes the facts.
    pub fn new(plan: &Plan, expected: usize, quiet: Instant, plant: Option<Plant>) -> Self {
        let hosts = (0..).map(HostId).zip(&plan.hosts);
        Self {
            books: Running::new(plan),
            facts: Facts::default(),
            plant,
            names: plan.host_names(),
            addresses: plan.owners(),
            relays: hosts
                .filter(|(_, host)| has_role(host, "indirect-tcp/support-router"))
                .map(|(id, _)| id)
                .collect(),
            ports: BTreeMap::new(),
            listeners: BTreeMap::new(),
            crossings: HashMap::new(),
            ports_of: HashMap::new(),
            serving: BTreeMap::new(),
            had: BTreeSet::new(),
            greeted: BTreeSet::new(),
            forgotten: BTreeSet::new(),
            calls: BTreeMap::new(),
            registrations: Registrations::new(plan, plant),
            confirmed: BTreeSet::new(),
            probes: BTreeMap::new(),
            cookies: BTreeMap::new(),
            expected,
            quiet,
            over: false,
            now: Instant::ZERO,
            has_numbers: true,
            most_crossings: most_crossings(&plan.text),
            second: interfaces_named(plan, "air2"),
            stuck: BTreeMap::new(),
        }
    }

    /// Processes the records of a run on Linux, in the order of time.
    pub(crate) fn replay(&mut self, records: &[trace::Record]) {
        self.has_numbers = false;
        for trace::Record { at, host, what } in records {
            match what {
                What::Received(iface, packet) => self.received(*at, *host, *iface, packet),
                What::Sent(iface, packet) => self.sent(*at, *host, *iface, packet),
                other => self.happened(*at, *host, other.clone()),
            }
        }
    }

    fn name(&self, host: HostId) -> String {
        self.names.get(host.index()).cloned().unwrap_or_default()
    }

    /// Checks whether a packet that is delivered to a host's own stack is for this host, and notes the arrival of a
    /// workload's datagram.
    fn handed(&mut self, at: Instant, host: HostId, packet: &Packet) {
        let Ok((header, payload)) = Header::parse(&packet.bytes) else { return };
        // With the planted mistake, each datagram counts as if the next host had received it.
        let next = u32::from(self.plant == Some(Plant::Misled) && header.protocol == UDP);
        let owner = self.addresses.get(&header.dst);
        let is_foreign = owner.is_some_and(|owner| owner.0.wrapping_add(next) != host.0);
        if is_foreign && !self.relays.contains(&host) {
            let text = format!("{} received a packet for {} at {at} s", self.name(host), header.dst);
            keep(&mut self.facts.misled, text);
        }
        if header.protocol == UDP
            && let Some([high, low]) = payload.get(2..4)
        {
            let port = u16::from_be_bytes([*high, *low]);
            let late =
                self.plant == Some(Plant::Unserved) && at > Instant::ZERO + wire::Duration::from_secs(5);
            if port >= 9000 && !late {
                let first = || Arrivals::first(at);
                self.facts.datagrams.entry(port).and_modify(|some| some.another(at)).or_insert_with(first);
            }
        }
    }

    /// Notes the interface of a registration request of a host with two radios.
    fn requested(&mut self, at: Instant, host: HostId, iface: Iface, packet: &Packet) {
        let Some(second) = self.second.get(&host).copied() else { return };
        let Ok((header, payload)) = Header::parse(&packet.bytes) else { return };
        let is_request = udp::Datagram::parse(payload, header.src, header.dst)
            .is_ok_and(|datagram| datagram.dst_port == PORT && datagram.payload.first() == Some(&REQUEST));
        let name = self.name(host);
        let is_silent =
            |times: &Vec<(Instant, Instant)>| times.iter().any(|(from, to)| (*from..*to).contains(&at));
        let is_hidden = iface != second && self.stuck.get(&name).is_some_and(is_silent);
        if is_request && !is_hidden {
            self.facts.requests.entry(name).or_default().push((at, iface == second));
        }
    }

    fn crosses(&mut self, at: Instant, host: HostId, iface: Iface, packet: &Packet) {
        self.ports_of.entry(packet.id).or_insert_with(|| port_of(&packet.bytes));
        if !self.has_numbers {
            return;
        }
        let count = self.crossings.entry((packet.id, host, iface)).or_default();
        let is_planted = match self.plant {
            Some(Plant::Loop) => true,
            Some(Plant::Circle) => self.registrations.is_forwarded(host, packet),
            _ => false,
        };
        // All fragments of a datagram have one identity. Only the first of them counts.
        let is_later = is_later_fragment(&packet.bytes);
        *count = count.saturating_add(if is_planted { 20 } else { u8::from(!is_later) });
        let most = self.most_crossings;
        if *count > most && !packet.link.dst.is_group() {
            *count = 0;
            let text = format!(
                "{} sent the same packet more than {most} times by interface {}, last at {at} s",
                self.name(host),
                iface.0
            );
            keep(&mut self.facts.loops, text);
        }
    }

    /// Notes the addresses that a packet of SCTP confirms, and checks that data are sent to confirmed addresses only
    /// (RFC 9260, section 5.4).
    fn association(&mut self, at: Instant, host: HostId, packet: &Packet, sends: bool) {
        let Ok((header, payload)) = Header::parse(&packet.bytes) else { return };
        if header.protocol != sctp::PROTOCOL {
            return;
        }
        let there = if sends { header.dst } else { header.src };
        let here = if sends { header.src } else { header.dst };
        if self.addresses.get(&here) != Some(&host) {
            return; // forwarded by this host
        }
        let Ok(sctp) = Sctp::parse(payload) else { return };
        let ports = if sends { (sctp.src_port, sctp.dst_port) } else { (sctp.dst_port, sctp.src_port) };
        let key = (host, there, ports.0, ports.1);
        let is_blind = self.plant == Some(Plant::Unconfirmed);
        for chunk in sctp.chunks.iter().filter(|_| !is_blind) {
            match (chunk, sends) {
                (Chunk::Heartbeat(nonce), true) => drop(self.probes.insert((host, nonce.clone()), key)),
                // The nonce identifies the address that was probed. The answer may come from another address.
                (Chunk::HeartbeatAck(nonce), false) => {
                    self.confirmed.extend(self.probes.get(&(host, nonce.clone())));
                }
                // The cookie identifies the address to which the INIT ACK was sent. The COOKIE ECHO may come from
                // another address.
                (Chunk::InitAck(ack), true) => {
                    if let Some(cookie) = ack.cookie() {
                        self.cookies.insert((host, cookie.to_vec()), key);
                    }
                }
                (Chunk::CookieEcho(cookie), false) => {
                    self.confirmed.extend(self.cookies.get(&(host, cookie.clone())));
                }
                (Chunk::CookieAck | Chunk::InitAck(_), false) => {
                    self.confirmed.insert(key);
                }
                _ => {}
            }
        }
        let has_data = sctp.chunks.iter().any(|chunk| matches!(chunk, Chunk::Data(_)));
        if sends && has_data && !self.confirmed.contains(&key) {
            let text =
                format!("{} sent SCTP data to the unconfirmed address {there} at {at} s", self.name(host));
            keep(&mut self.facts.unconfirmed, text);
        }
    }

    /// Notes a packet that a link lost at random, in a full queue or by a collision.
    fn lost(&mut self, at: Instant, packet: PacketId, reason: &str) {
        let port = self.ports_of.get(&packet).copied().unwrap_or(CONTROL);
        let losses = match reason {
            _ if reason == link::reason::LINK_ERROR.0 => &mut self.facts.lost,
            _ if reason == link::reason::QUEUE_FULL.0 || reason == link::reason::COLLISIONS.0 => {
                &mut self.facts.full
            }
            _ => return,
        };
        losses.entry(port).or_default().push(at);
    }

    fn marked(&mut self, at: Instant, host: HostId, mark: &Mark) {
        let field = |name: &str| mark.fields.iter().find(|(field, _)| *field == name).map(|(_, value)| value);
        if field("wrong_at").is_some_and(|value| *value != Value::None) {
            let text = format!("{} of {} read wrong data before {at} s", mark.role, self.name(host));
            keep(&mut self.facts.wrong, text);
        }
        let address = |value: &Value| value.as_text().and_then(|text| text.parse::<Ipv4Addr>().ok());
        let of = field("host").and_then(address);
        if mark.name == "greeted" {
            let pair = of.map(|of| (host, of));
            self.greeted.extend(pair);
            self.forgotten.retain(|other| Some(*other) != pair);
        }
        if mark.name == "shipped" {
            let to = field("to").and_then(address).and_then(|to| self.addresses.get(&to)).copied();
            to.zip(of).into_iter().for_each(|(to, of)| self.shipped(to, of));
        }
        let (Some(of_host), Some(connection)) = (field("host"), field("connection")) else { return };
        self.had.extend(of.map(|of| (host, of)));
        let key = (format!("{of_host:?}"), format!("{connection:?}"));
        match mark.name {
            // A mobile host that gets no answer repeats its request to open this connection, perhaps at another router.
            // From then on, no router serves the connection until the router of the repeated request has opened it. If
            // the router of the earlier request opens its connection to the correspondent, that router does not serve
            // the mobile host's connection.
            "called" => {
                self.serving.remove(&key);
                self.calls.insert(key.clone(), host);
            }
            "connected" if self.calls.get(&key).is_some_and(|asked| *asked != host) => return,
            _ => {}
        }
        let serving = self.serving.entry(key).or_default();
        match mark.name {
            "connected" | "taken" | "resumed" => {
                serving.insert(host);
                if serving.len() > 1 {
                    let both: Vec<&str> = serving
                        .iter()
                        .filter_map(|host| self.names.get(host.index()))
                        .map(String::as_str)
                        .collect();
                    let (number, mobile) = (connection.as_int(), of_host.as_text());
                    let text = format!(
                        "connection {} of {} is served by {} at {at} s; at most one router may serve a connection",
                        number.unwrap_or_default(),
                        mobile.unwrap_or_default(),
                        both.join(" and ")
                    );
                    keep(&mut self.facts.owners, text);
                }
            }
            "frozen" | "forgotten" | "connection_lost" if self.plant != Some(Plant::Owners) => {
                serving.remove(&host);
            }
            _ => {}
        }
    }

    /// Notes that a router crashed. The router serves no connection any more, and the connections that it had may fail.
    fn crashed(&mut self, host: HostId) {
        self.registrations.crashed(host);
        self.serving.values_mut().for_each(|serving| serving.retain(|other| *other != host));
        let lost = self.had.iter().filter(|(router, _)| *router == host);
        let owners = lost.filter_map(|(_, of)| self.addresses.get(of)).copied().collect::<Vec<_>>();
        let names: Vec<String> = owners.into_iter().map(|owner| self.name(owner)).collect();
        self.facts.crashed_for.extend(names);
        self.had.retain(|(router, _)| *router != host);
        self.forgotten.extend(self.greeted.iter().filter(|(router, _)| *router == host));
        self.greeted.retain(|(router, _)| *router != host);
    }

    /// Notes that a connection was sent to a router. The connection may fail if the router crashes later. It may also
    /// fail if the router has crashed since the mobile host greeted it. In both cases, no other router knows whether
    /// the crashed router took the connection.
    fn shipped(&mut self, to: HostId, of: Ipv4Addr) {
        if !self.forgotten.contains(&(to, of)) {
            self.had.insert((to, of));
        } else if let Some(owner) = self.addresses.get(&of) {
            self.facts.crashed_for.insert(self.name(*owner));
        }
    }

    fn stream(&mut self, at: Instant, host: HostId, event: &AppEvent) {
        let key = (host, event.stream);
        match &event.change {
            AppChange::Asked { role, peer, local, .. } => {
                if !(role.starts_with("bulk") || role.starts_with("request")) {
                    return;
                }
                match (peer, local) {
                    (Some(peer), _) => {
                        self.ports.insert(key, (peer.port(), true));
                        self.facts.streams.entry(peer.port()).or_default().client.get_or_insert(End::new(at));
                    }
                    (None, Some(local)) => {
                        self.listeners.insert(key, local.port());
                    }
                    _ => {}
                }
            }
            AppChange::Accepted { new, .. } => {
                if let Some(port) = self.listeners.get(&key) {
                    self.ports.insert((host, *new), (*port, false));
                    // If several connections are accepted, the last one counts: a client repeats its request for a
                    // connection if it gets no answer.
                    let (port, new) = (*port, (host, *new));
                    self.ports.retain(|stream, of| *of != (port, false) || *stream == new);
                    let accepted = End { opened: true, ..End::new(at) };
                    self.facts.streams.entry(port).or_default().server = Some(accepted);
                }
            }
            change => self.changed(at, key, change),
        }
    }

    fn changed(&mut self, at: Instant, key: (HostId, StreamId), change: &AppChange) {
        let Some((port, is_client)) = self.ports.get(&key).copied() else { return };
        let ends = self.facts.streams.entry(port).or_default();
        if let (AppChange::Read(_), false, Some(client)) = (change, is_client, &mut ends.client) {
            client.moves(at);
        }
        let end = if is_client { &mut ends.client } else { &mut ends.server };
        let Some(end) = end.as_mut() else { return };
        let planted = |plant| self.plant == Some(plant);
        match change {
            AppChange::Opened(_) => end.opened = true,
            AppChange::Read(bytes) => {
                end.touch(if planted(Plant::Stall) { at + wire::Duration::from_mins(10) } else { at });
                end.read += match () {
                    () if planted(Plant::Lost) => 0,
                    () if planted(Plant::Doubled) => bytes * 2,
                    () => *bytes,
                };
            }
            AppChange::Finished if !planted(Plant::Hang) || is_client => {
                end.touch(at);
                end.finished = end.finished.or(Some(at));
            }
            AppChange::Closed(why) => {
                if !planted(Plant::Hang) || is_client {
                    end.touch(at);
                    end.closed = Some((at, why.clone()));
                }
                self.ports.remove(&key);
            }
            _ => {}
        }
        self.over = self.facts.streams.len() >= self.expected
            && self.facts.streams.values().all(|ends| {
                ends.client.as_ref().is_some_and(End::is_over)
                    && ends.server.as_ref().is_none_or(End::is_over)
            });
    }
}

/// Returns the port of the workload to which a packet belongs, also inside tunnels, or [`CONTROL`].
fn port_of(bytes: &[u8]) -> u16 {
    let Ok((header, payload)) = Header::parse(bytes) else { return CONTROL };
    if tunnel::Kind::of_protocol(header.protocol).is_some() {
        return tunnel::decapsulate(bytes).map_or(CONTROL, |(_, inner)| port_of(&inner));
    }
    let Some([a, b, c, d]) = payload.get(..4) else { return CONTROL };
    let ports = [u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d])];
    let has_ports = [UDP, TCP, sctp::PROTOCOL].contains(&header.protocol);
    ports.into_iter().find(|port| has_ports && (9000..9400).contains(port)).unwrap_or(CONTROL)
}

/// Returns whether a packet is a fragment, but not the first one of its datagram, or has such a fragment in a tunnel.
fn is_later_fragment(bytes: &[u8]) -> bool {
    let Ok((header, _)) = Header::parse(bytes) else { return false };
    let is_tunnel = tunnel::Kind::of_protocol(header.protocol).is_some();
    header.offset > 0
        || (is_tunnel && tunnel::decapsulate(bytes).is_ok_and(|(_, inner)| is_later_fragment(&inner)))
}

fn keep(list: &mut Vec<String>, text: String) {
    if list.len() < KEPT {
        list.push(text);
    }
}

impl Witness for Watch {
    fn received(&mut self, at: Instant, host: HostId, iface: Iface, packet: &Packet) {
        if self.plant == Some(Plant::Vanished) && iface != Iface::HOST && at.0.is_multiple_of(97) {
            return;
        }
        if iface != Iface::HOST {
            self.association(at, host, packet, false);
            self.registrations.received(at, host, iface, packet);
        }
        self.books.received(at, host, iface, packet);
    }

    fn sent(&mut self, at: Instant, host: HostId, iface: Iface, packet: &Packet) {
        if iface == Iface::HOST {
            self.handed(at, host, packet);
        } else {
            self.crosses(at, host, iface, packet);
            self.association(at, host, packet, true);
            self.requested(at, host, iface, packet);
        }
        if let Some((rule, text)) = self.registrations.sent(at, host, iface, packet) {
            let facts = &mut self.facts;
            let list = match rule {
                Rule::Bound => &mut facts.unbound,
                Rule::Cache => &mut facts.stale,
                Rule::Kept => &mut facts.kept,
                Rule::Once => &mut facts.replayed,
                Rule::Reverse => &mut facts.bypassed,
                Rule::Challenge => &mut facts.unchallenged,
                Rule::Kind => &mut facts.kinds,
                Rule::Signed => &mut facts.unsigned,
            };
            keep(list, text);
        }
        self.books.sent(at, host, iface, packet);
    }

    fn happened(&mut self, at: Instant, host: HostId, what: What) {
        self.now = at;
        match &what {
            What::App(event) => self.stream(at, host, event),
            What::Marked(mark) => self.marked(at, host, mark),
            What::Ordered(event) if event.kind == EventKind::Crash => self.crashed(host),
            What::Dropped(_, _, reason) if reason == "ttl_expired" => {
                let text = format!("{} dropped a packet whose TTL expired, at {at} s", self.name(host));
                keep(&mut self.facts.loops, text);
            }
            What::Lost(iface, packet, reason) if *iface != Iface::HOST => self.lost(at, *packet, reason),
            _ => {}
        }
        self.books.happened(at, host, what);
    }

    fn doubled(&mut self, packet: PacketId, more: u8) {
        self.books.doubled(packet, more);
    }

    fn settled(&mut self) {
        self.books.settled();
    }

    fn is_full(&self) -> bool {
        self.now > self.quiet && (self.over || self.expected == 0)
    }
}

#[cfg(test)]
mod tests;
