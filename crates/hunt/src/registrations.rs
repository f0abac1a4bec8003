//! The rules of Mobile IP that messages and tunnels on the links show: what home agents and foreign agents may do after
//! the registrations that they accepted.

use crate::caches::Caches;
use crate::kept::KeptPackets;
use crate::plant::Plant;
use mobile_ip::message::{
    ADVERTISEMENT, Advertisement, Between, Binding, Code, Numbers, PORT, Received, Registration, Reply,
    Request, RequestFlags, Status,
};
use scenario::{HostPlan, Plan};
use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use trace::HostId;
use wire::ipv4::{Header, ICMP, UDP};
use wire::tunnel::{self, Kind};
use wire::{Duration, Iface, Instant, Ipv4Addr, Packet, PacketId, udp};

/// The number of last advertised challenges that a request may contain (the default; RFC 4721, section 9).
const WINDOW: usize = 2;
/// A packet that waits for ARP is sent at most this time after it was put into a tunnel: three requests, one per second,
/// and a margin.
const GRACE: Duration = Duration::from_millis(3500);
/// A binding ends at most this time after its lifetime. The lifetime counts from before the reply is sent.
const MARGIN: Duration = Duration::from_secs(2);

/// A rule of which a violation was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rule {
    /// A home agent tunnels to bound care-of addresses only.
    Bound,
    /// A correspondent believes the newest Binding Update only.
    Cache,
    /// A foreign agent sends kept packets in time, and to requested care-of addresses only.
    Kept,
    /// A home agent accepts each request once. It may answer the last one again.
    Once,
    /// A foreign agent sends the packets of visitors with flag T through a tunnel.
    Reverse,
    /// A foreign agent that advertises challenges relays only requests with one of its last challenges.
    Challenge,
    /// A tunnel is of a kind that the mobile node has asked for with this care-of address.
    Kind,
    /// Agents with a security association sign requests and replies for each other.
    Signed,
}

/// The bindings of a mobile node, as the accepted replies show them.
#[derive(Debug)]
struct Home {
    /// The address of the home agent.
    agent: Ipv4Addr,
    /// The bound care-of addresses, each with its end.
    bound: BTreeMap<Ipv4Addr, Instant>,
    /// The care-of addresses that are not bound any more, each with the end of its binding.
    left: BTreeMap<Ipv4Addr, Instant>,
}

/// A visit with flag T at a foreign agent.
#[derive(Clone, Copy, Debug)]
struct Visit {
    ends: Instant,
    encapsulating: bool,
}

/// The last challenges that an agent has sent, the newest first, each with the time at which it was sent first.
#[derive(Default)]
struct Challenges(VecDeque<(Vec<u8>, Instant)>);

impl Challenges {
    /// The number of challenges that are kept.
    const KEPT: usize = 16;

    fn send(&mut self, at: Instant, challenge: &[u8]) {
        if self.0.front().is_none_or(|(last, _)| last != challenge) {
            self.0.push_front((challenge.to_vec(), at));
            self.0.truncate(Self::KEPT);
        }
    }

    /// Returns whether a challenge is one of the last `window`. A relayed request may have waited for ARP since the
    /// challenge was one of them.
    fn has(&self, at: Instant, challenge: &[u8], window: usize) -> bool {
        let Some(place) = self.0.iter().position(|(sent, _)| sent == challenge) else { return false };
        let displaced = place.checked_sub(window).and_then(|newer| self.0.get(newer));
        displaced.is_none_or(|(_, since)| at < *since + GRACE)
    }
}

/// What the registrations on the links have shown so far.
pub(crate) struct Registrations {
    /// Whether there is a mobile node. Otherwise no packet is parsed.
    is_used: bool,
    plant: Option<Plant>,
    /// Whether foreign agents send packets for unknown hosts back in special tunnels: both destinations are the home address.
    has_special_tunnels: bool,
    addresses: BTreeMap<Ipv4Addr, HostId>,
    names: Vec<String>,
    /// The interface of each host to its cell.
    air: BTreeMap<HostId, Iface>,
    /// The last requests of mobile nodes, by the home address and the low half of the Identification.
    requests: BTreeMap<(Ipv4Addr, u32), Request>,
    /// The care-of addresses that a mobile node has ever requested.
    asked: BTreeMap<Ipv4Addr, BTreeSet<Ipv4Addr>>,
    /// The accepted requests, by the home address and the Identification of the reply: with timestamps, it is that of the request. With
    /// nonces, only its low half is.
    accepted: BTreeSet<(Ipv4Addr, u64)>,
    /// The last accepted request of each mobile node.
    last: BTreeMap<Ipv4Addr, u64>,
    identifications: Identifications,
    homes: BTreeMap<Ipv4Addr, Home>,
    visits: BTreeMap<(HostId, Ipv4Addr), Visit>,
    /// The previous foreign agents that forward packets for a mobile node, as their acknowledgements of Binding Updates show.
    forwarding: BTreeSet<(HostId, Ipv4Addr)>,
    /// The packets of visitors that must leave their foreign agent in a tunnel.
    tunneled: HashSet<(HostId, PacketId)>,
    /// The challenges of each foreign agent's advertisements.
    advertised: BTreeMap<HostId, Challenges>,
    /// The flags M and G of a mobile node's requests, by home address and care-of address.
    kinds: BTreeMap<(Ipv4Addr, Ipv4Addr), BTreeSet<u8>>,
    /// The foreign agents that have security associations with home agents.
    signing: BTreeSet<HostId>,
    /// Whether foreign agents keep packets.
    has_buffers: bool,
    kept: KeptPackets,
    caches: Caches,
    /// The challenges in the replies to each visitor.
    issued: BTreeMap<(HostId, Ipv4Addr), Challenges>,
}

/// Returns whether a host has a role of this kind.
pub(crate) fn has_role(host: &HostPlan, kind: &str) -> bool {
    host.config.roles.iter().any(|role| role.kind() == kind)
}

/// Returns the interface with this name of each host that has one.
pub(crate) fn interfaces_named(plan: &Plan, wanted: &str) -> BTreeMap<HostId, Iface> {
    let named = |host| {
        let index = plan.interface_names(host).iter().position(|name| name == wanted)?;
        Some((host, Iface(index as u16 + 1)))
    };
    (0..plan.len() as u32).map(HostId).filter_map(named).collect()
}

impl Registrations {
    /// Returns the state before a run of this plan.
    pub(crate) fn new(plan: &Plan, plant: Option<Plant>) -> Self {
        let hosts = || (0..plan.len() as u32).map(HostId);
        Self {
            is_used: plan.hosts.iter().any(|host| has_role(host, "mobile-ip/mobile-node")),
            plant,
            has_special_tunnels: plan.text.contains("special_tunnels = true"),
            addresses: plan.owners(),
            names: plan.host_names(),
            air: interfaces_named(plan, "air"),
            requests: BTreeMap::new(),
            asked: BTreeMap::new(),
            accepted: BTreeSet::new(),
            last: BTreeMap::new(),
            identifications: identifications(plan),
            homes: BTreeMap::new(),
            visits: BTreeMap::new(),
            forwarding: BTreeSet::new(),
            tunneled: HashSet::new(),
            advertised: BTreeMap::new(),
            issued: BTreeMap::new(),
            kinds: BTreeMap::new(),
            has_buffers: plan.hosts.iter().any(|host| host.text.contains("buffer")),
            kept: KeptPackets::default(),
            caches: caches(plan),
            signing: hosts()
                .zip(&plan.hosts)
                .filter(|(_, of)| has_agent_keys(&of.text))
                .map(|(host, _)| host)
                .collect(),
        }
    }

    /// Notes a packet that arrived at a host.
    pub(crate) fn received(&mut self, at: Instant, host: HostId, iface: Iface, packet: &Packet) {
        if self.visits.is_empty() || self.air.get(&host) != Some(&iface) {
            return;
        }
        let Ok((header, _)) = Header::parse(&packet.bytes) else { return };
        let Some(visit) = self.visits.get(&(host, header.src)).filter(|visit| at < visit.ends) else {
            return;
        };
        let is_own = self.addresses.get(&header.dst) == Some(&host);
        let is_in_tunnel = Kind::of_protocol(header.protocol).is_some() && is_own;
        let is_routed = !is_own && !header.dst.is_multicast();
        let must_be_tunneled = if visit.encapsulating { is_in_tunnel } else { is_routed };
        if must_be_tunneled {
            self.tunneled.insert((host, packet.id));
        }
    }

    /// Checks a packet that a host sends, and notes what it shows. Returns a violation with its text.
    pub(crate) fn sent(
        &mut self,
        at: Instant,
        host: HostId,
        iface: Iface,
        packet: &Packet,
    ) -> Option<(Rule, String)> {
        if !self.is_used {
            return None;
        }
        let (header, payload) = Header::parse(&packet.bytes).ok()?;
        if self.addresses.get(&header.src) == Some(&host)
            && let Some(wrong) = self.caches.sent(at, &header, packet, self.plant)
        {
            return Some((Rule::Cache, format!("{} {wrong}", self.name(host))));
        }
        self.departure(host, packet);
        if self.has_buffers && self.air.get(&host) == Some(&iface) && self.homes.contains_key(&header.dst) {
            self.kept.shown(at, host, packet.id);
        }
        match header.protocol {
            UDP if is_registration(payload) => {
                let known = Numbers::default().extensions();
                let received = Received::knowing(header, payload, &known).ok()?;
                match received.message {
                    Registration::Request(request) => self.request(host, header.src, request, at),
                    Registration::Reply(reply) => self.reply(at, host, header.src, &reply),
                }
            }
            ICMP if payload.first() == Some(&ADVERTISEMENT) => {
                self.advertisement(at, host, &header, payload);
                None
            }
            protocol if Kind::of_protocol(protocol).is_some() && iface != Iface::HOST => {
                let bypasses = self.plant == Some(Plant::Bypassed);
                self.tunnel(at, host, &header, packet)
                    .or_else(|| self.plain(at, host, iface, packet).filter(|_| bypasses))
            }
            _ if iface != Iface::HOST => self.plain(at, host, iface, packet),
            _ => None,
        }
    }

    /// Forgets what a host loses in a crash. A home agent may have stored bindings without an answer.
    pub(crate) fn crashed(&mut self, host: HostId) {
        self.visits.retain(|(agent, _), _| *agent != host);
        self.forwarding.retain(|(agent, _)| *agent != host);
        self.issued.retain(|(agent, _), _| *agent != host);
        self.advertised.remove(&host);
        let addresses = &self.addresses;
        self.caches.crashed(|address| addresses.get(&address) == Some(&host));
        for (home, state) in &mut self.homes {
            if self.addresses.get(&state.agent) == Some(&host) {
                let asked = self.asked.get(home).into_iter().flatten();
                state.bound.extend(asked.map(|care_of| (*care_of, Instant::NEVER)));
            }
        }
    }

    fn name(&self, host: HostId) -> &str {
        self.names.get(host.index()).map_or("?", String::as_str)
    }

    fn advertisement(&mut self, at: Instant, host: HostId, header: &Header, payload: &[u8]) {
        let Ok(advertisement) = Advertisement::parse(header, payload) else { return };
        let Some(challenge) = advertisement.challenge else { return };
        let last = self.advertised.entry(host).or_default();
        if self.plant != Some(Plant::Unchallenged) {
            last.send(at, &challenge);
        }
    }

    fn request(
        &mut self,
        host: HostId,
        src: Ipv4Addr,
        request: Request,
        at: Instant,
    ) -> Option<(Rule, String)> {
        let key = (request.home, request.identification as u32);
        if self.addresses.get(&request.home) == Some(&host) {
            self.asked.entry(request.home).or_default().insert(request.care_of);
            let flags = request.flags.0 & (RequestFlags::MINIMAL.0 | RequestFlags::GRE.0);
            self.kinds.entry((request.home, request.care_of)).or_default().insert(flags);
            self.requests.insert(key, request);
            return None;
        }
        if self.addresses.get(&src) != Some(&host) {
            return None; // forwarded by this host
        }
        // A foreign agent does not sign deregistrations, nor requests with a co-located care-of address.
        let is_signed =
            request.authentication(Between::ForeignHome).is_some() && self.plant != Some(Plant::Unsigned);
        if request.lifetime > 0 && self.must_sign(host, &request) && request.care_of == src && !is_signed {
            let text = format!(
                "{} relayed a request of {} that it did not sign, at {at} s",
                self.name(host),
                request.home
            );
            return Some((Rule::Signed, text));
        }
        let last = self.advertised.get(&host)?;
        let issued = self.issued.get(&(host, request.home));
        let is_known =
            |own: &[u8]| last.has(at, own, WINDOW) || issued.is_some_and(|issued| issued.has(at, own, 1));
        let is_valid = self.requests.get(&key)?.challenge().is_some_and(is_known);
        (!is_valid).then(|| {
            let text = format!(
                "{} relayed a request of {} without one of its last challenges, at {at} s",
                self.name(host),
                request.home
            );
            (Rule::Challenge, text)
        })
    }

    fn reply(&mut self, at: Instant, host: HostId, src: Ipv4Addr, reply: &Reply) -> Option<(Rule, String)> {
        let key = (reply.home, reply.identification as u32);
        let request = self.requests.get(&key)?.clone();
        let is_agents = self.addresses.get(&src) == Some(&host);
        let is_home_agents = self.addresses.get(&reply.home_agent) == Some(&host);
        if !is_agents {
            return None; // forwarded by this host
        }
        if !is_home_agents {
            self.replied(at, host, reply, &request);
            return None;
        }
        let agent = self.addresses.get(&request.care_of).copied();
        let is_due = agent.is_some_and(|agent| self.must_sign(agent, &request));
        if request.lifetime > 0 && is_due && reply.authentication(Between::ForeignHome).is_none() {
            let text = format!(
                "{} did not sign a reply to {} for its foreign agent, at {at} s",
                self.name(host),
                reply.home
            );
            return Some((Rule::Signed, text));
        }
        if !reply.code.is_accepted() {
            return None;
        }
        self.bind(at, reply, &request);
        // A foreign agent on this host relays the reply to its visitor with the same addresses.
        let is_relayed_here = self.addresses.get(&request.care_of) == Some(&host);
        // If the reply is lost, the mobile node repeats its request. The home agent answers it again, and changes nothing.
        // Requests that are whole seconds apart have the same low half of a timestamp.
        let id = match self.identifications {
            Identifications::Timestamps => reply.identification,
            Identifications::Nonces => u64::from(key.1),
        };
        let is_last = self.last.insert(reply.home, id) == Some(id);
        let is_again = !self.accepted.insert((reply.home, id)) && !is_last;
        let is_planted = self.plant == Some(Plant::Replayed);
        ((is_again || is_planted) && !is_relayed_here).then(|| {
            let text = format!(
                "{} accepted the request of {} with the Identification {:#x} again, at {at} s",
                self.name(host),
                reply.home,
                request.identification
            );
            (Rule::Once, text)
        })
    }

    /// Notes the binding that a home agent has accepted.
    fn bind(&mut self, at: Instant, reply: &Reply, request: &Request) {
        let agent = reply.home_agent;
        let new = || Home { agent, bound: BTreeMap::new(), left: BTreeMap::new() };
        let home = self.homes.entry(reply.home).or_insert_with(new);
        let keeps_others = request.flags.has(RequestFlags::SIMULTANEOUS) && reply.code == Code::Accepted;
        let ends_one = reply.lifetime == 0 && request.care_of != reply.home;
        let before = std::mem::take(&mut home.bound);
        for (care_of, ends) in before {
            if (reply.lifetime > 0 && keeps_others) || (ends_one && care_of != request.care_of) {
                home.bound.insert(care_of, ends);
            } else {
                home.left.insert(care_of, at);
            }
        }
        if reply.lifetime > 0 {
            let ends = at + Duration::from_secs(reply.lifetime.into()) + MARGIN;
            home.bound.insert(request.care_of, ends);
        }
    }

    /// Notes what a foreign agent has replied to its visitor.
    fn replied(&mut self, at: Instant, host: HostId, reply: &Reply, request: &Request) {
        let visit = (host, reply.home);
        if let Some(challenge) = reply.challenge() {
            self.issued.entry(visit).or_default().send(at, challenge);
        }
        if !reply.code.is_accepted() {
            return;
        }
        self.visits.remove(&visit);
        if reply.lifetime == 0 && request.care_of != request.home {
            self.kept.ended(at, host, reply.home);
        }
        // A mobile node with its own care-of address puts its packets into the tunnel itself.
        let is_here =
            request.flags.has(RequestFlags::REVERSE) && !request.flags.has(RequestFlags::DECAPSULATION);
        if reply.lifetime > 0 && is_here {
            let ends = at + Duration::from_secs(reply.lifetime.into());
            let encapsulating = request.encapsulating_delivery().is_some();
            self.visits.insert(visit, Visit { ends, encapsulating });
        }
    }

    /// Returns whether a foreign agent and the home agent of a request have a security association: they are on different
    /// hosts.
    fn must_sign(&self, agent: HostId, request: &Request) -> bool {
        let home_agent = self.addresses.get(&request.home_agent);
        self.signing.contains(&agent) && home_agent.is_some_and(|other| *other != agent)
    }

    /// Checks a packet that is in a tunnel.
    fn tunnel(&self, at: Instant, host: HostId, outer: &Header, packet: &Packet) -> Option<(Rule, String)> {
        let (_, bytes) = tunnel::decapsulate(&packet.bytes).ok()?;
        let (inner, _) = Header::parse(&bytes).ok()?;
        let has_options = bytes.first() != Some(&0x45);
        if self.is_forwarded(host, packet) {
            return self
                .forwarded(at, host, outer, &inner)
                .or_else(|| self.kept_packet(at, host, outer, &inner, packet.id));
        }
        self.kind(at, host, outer, &inner, has_options).or_else(|| self.exit(at, host, outer, &inner))
    }

    /// Checks the kind of a tunnel that begins at a host: that of a home agent, that of a previous foreign agent, or the reverse
    /// tunnel of a foreign agent. The mobile node must have asked for this kind with this care-of address. Several may be
    /// meant: a host can be the home agent of the one mobile node and the foreign agent of the other, at one address.
    fn kind(
        &self,
        at: Instant,
        host: HostId,
        outer: &Header,
        inner: &Header,
        has_options: bool,
    ) -> Option<(Rule, String)> {
        if self.addresses.get(&outer.src) != Some(&host) {
            return None; // forwarded by this host
        }
        let asked = |home: Ipv4Addr, agent: Ipv4Addr, care_of: Ipv4Addr| {
            let is_agents = self.homes.get(&home).is_some_and(|home| home.agent == agent);
            self.kinds.get(&(home, care_of)).filter(|_| is_agents)
        };
        let forward = asked(inner.dst, outer.src, outer.dst);
        let reverse = asked(inner.src, outer.dst, outer.src);
        let is_previous = self.forwarding.contains(&(host, inner.dst));
        let previous = self.kinds.get(&(inner.dst, outer.dst)).filter(|_| is_previous);
        let all = forward.into_iter().chain(reverse).chain(previous);
        let mut flags = all.flatten().map(|flags| RequestFlags(*flags)).peekable();
        flags.peek()?;
        // Minimal encapsulation carries neither fragments nor options.
        let is_plain = inner.is_fragment() || has_options;
        let expected = |flags: RequestFlags| match flags {
            _ if flags.has(RequestFlags::MINIMAL) && !is_plain => Kind::Minimal,
            _ if flags.has(RequestFlags::GRE) && !flags.has(RequestFlags::MINIMAL) => Kind::Gre,
            _ => Kind::IpInIp,
        };
        let used = match (Kind::of_protocol(outer.protocol)?, self.plant) {
            (Kind::Gre, Some(Plant::Kinds)) => Kind::IpInIp,
            (_, Some(Plant::Kinds)) => Kind::Gre,
            (kind, _) => kind,
        };
        (!flags.any(|flags| expected(flags) == used)).then(|| {
            let [from, to] = [outer.src, outer.dst];
            let name = self.name(host);
            (Rule::Kind, format!("{name} sent a packet in a tunnel by {used:?} from {from} to {to} at {at} s, which was not requested"))
        })
    }

    /// Notes that a foreign agent has accepted a Binding Update, which ends a visit, if the packet is its acknowledgement.
    fn departure(&mut self, host: HostId, packet: &Packet) {
        let inner = tunnel::decapsulate(&packet.bytes).map(|(_, inner)| inner.into_owned());
        let bytes = inner.as_deref().unwrap_or(&packet.bytes);
        let Ok((header, payload)) = Header::parse(bytes) else { return };
        if header.protocol != UDP || self.addresses.get(&header.src) != Some(&host) {
            return; // forwarded by this host, or another packet
        }
        let Ok(datagram) = udp::Datagram::parse(payload, header.src, header.dst) else { return };
        let said = Binding::parse(datagram.payload, &Numbers::default());
        if let Some(Ok(Binding::Acknowledge(said))) = said.filter(|_| datagram.dst_port == PORT)
            && said.status == Status::ACCEPTED
        {
            self.visits.remove(&(host, said.home));
            // A correspondent acknowledges to a home agent.
            if header.dst == said.home {
                self.forwarding.insert((host, said.home));
            }
        }
    }

    /// Returns whether a host sends a packet for a mobile node in a tunnel that it begins itself, and is neither the mobile node's home
    /// agent nor the begin of a reverse tunnel: it is a previous foreign agent that forwards the packet.
    pub(crate) fn is_forwarded(&self, host: HostId, packet: &Packet) -> bool {
        let Ok((outer, inner)) = tunnel::decapsulate(&packet.bytes) else { return false };
        let Ok((inner, _)) = Header::parse(&inner) else { return false };
        // The tunnel of a mobile node to its agent carries packets that it has sent itself.
        if self.asked.contains_key(&outer.src) {
            return false;
        }
        let is_homes = self.homes.values().any(|home| [outer.src, outer.dst].contains(&home.agent));
        self.addresses.get(&outer.src) == Some(&host) && self.homes.contains_key(&inner.dst) && !is_homes
    }

    /// Checks the end of a previous foreign agent's tunnel: a care-of address that the mobile node has requested.
    fn forwarded(&self, at: Instant, host: HostId, outer: &Header, inner: &Header) -> Option<(Rule, String)> {
        let asked = self.asked.get(&inner.dst)?;
        if self.is_special(outer, inner) {
            return None;
        }
        let exit = match self.plant {
            Some(Plant::Diverted) => Ipv4Addr::from_bits(outer.dst.to_bits() + 1),
            _ => outer.dst,
        };
        (!asked.contains(&exit)).then(|| {
            let text = format!(
                "{} forwarded a packet for {} to {exit} at {at} s, which the mobile node has not requested",
                self.name(host),
                inner.dst
            );
            (Rule::Bound, text)
        })
    }

    /// Returns whether a packet goes back to the home agent in a special tunnel.
    fn is_special(&self, outer: &Header, inner: &Header) -> bool {
        self.has_special_tunnels && outer.dst == inner.dst
    }

    /// Checks a packet that a previous foreign agent has kept.
    fn kept_packet(
        &self,
        at: Instant,
        host: HostId,
        outer: &Header,
        inner: &Header,
        packet: PacketId,
    ) -> Option<(Rule, String)> {
        let asked = self.asked.get(&inner.dst)?;
        let is_requested = |exit| asked.contains(&exit) || self.is_special(outer, inner);
        let wrong = self.kept.check(at, (host, packet), inner.dst, outer.dst, is_requested, self.plant)?;
        Some((Rule::Kept, format!("{} sent {wrong}", self.name(host))))
    }

    /// Checks the end of a home agent's tunnel.
    fn exit(&self, at: Instant, host: HostId, outer: &Header, inner: &Header) -> Option<(Rule, String)> {
        let home = self.homes.get(&inner.dst)?;
        let is_reverse = self.homes.get(&inner.src).is_some_and(|home| home.agent == outer.dst);
        if outer.src != home.agent || self.addresses.get(&outer.src) != Some(&host) || is_reverse {
            return None;
        }
        let exit = match self.plant {
            Some(Plant::Unbound) => Ipv4Addr::from_bits(outer.dst.to_bits() + 1),
            _ => outer.dst,
        };
        let is_bound = home.bound.get(&exit).is_some_and(|ends| at < *ends);
        let has_waited = home.left.get(&exit).is_some_and(|left| at < *left + GRACE);
        (!is_bound && !has_waited).then(|| {
            let text = format!(
                "{} sent a packet for {} to {exit} at {at} s, which is not bound",
                self.name(host),
                inner.dst
            );
            (Rule::Bound, text)
        })
    }

    /// Checks a packet that leaves a host by another link than its cell, outside of a tunnel.
    fn plain(&self, at: Instant, host: HostId, iface: Iface, packet: &Packet) -> Option<(Rule, String)> {
        let is_outward = self.air.get(&host).is_some_and(|air| *air != iface);
        (is_outward && self.tunneled.contains(&(host, packet.id))).then(|| {
            let text = format!(
                "{} sent a packet of a visitor with a reverse tunnel outside of the tunnel, at {at} s",
                self.name(host)
            );
            (Rule::Reverse, text)
        })
    }
}

/// Returns the state of binding caches before a run of this plan.
fn caches(plan: &Plan) -> Caches {
    let hosts = plan.hosts.iter().filter(|host| has_role(host, "mobile-ip/correspondent"));
    let names: BTreeSet<&str> = hosts.map(|host| host.config.name.as_str()).collect();
    let all = plan.host_names();
    let is_one = |host: &HostId| all.get(host.index()).is_some_and(|name| names.contains(name.as_str()));
    let own = plan.owners().into_iter().filter(|(_, host)| is_one(host)).map(|(address, _)| address);
    Caches::new(own.collect(), identifications(plan) == Identifications::Timestamps)
}

/// What the Identifications of the requests of a run are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Identifications {
    Timestamps,
    Nonces,
}

/// Returns what the Identifications of a plan's requests are.
fn identifications(plan: &Plan) -> Identifications {
    let has_nonces = plan.hosts.iter().any(|host| host.text.contains("replay = \"nonces\""));
    if has_nonces { Identifications::Nonces } else { Identifications::Timestamps }
}

/// Returns whether a host's configuration has a foreign agent with security associations with home agents.
fn has_agent_keys(text: &str) -> bool {
    text.contains("mobile-ip/foreign-agent") && text.contains("home_agents")
}

/// Returns whether a UDP datagram comes from the port of registrations, or is for it.
fn is_registration(payload: &[u8]) -> bool {
    let port = |at: usize| payload.get(at..at + 2) == Some(&PORT.to_be_bytes());
    port(0) || port(2)
}

#[cfg(test)]
mod tests;
