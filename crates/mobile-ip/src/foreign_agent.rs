//! The foreign agent: advertises, relays registrations, and ends the tunnels to its visitors.
//!
//! A mobile node becomes a visitor only when a reply accepts its request. A host on a visited link cannot answer for a
//! home agent: replies, and ICMP errors about requests, are dropped if they arrive from a visited link. This applies to
//! the visited links of all foreign agents of this host.
//!
//! A packet from a tunnel is forwarded to a visitor only if the source of the tunnel is the visitor's home agent. The
//! packet is sent to the link address that registered, without ARP. All other packets from tunnels are dropped without
//! an answer (RFC 5944, section 4.2.2).
//!
//! Without an association with the mobile node or its home agent, a visit is not authenticated: the visitor can claim
//! the home address of another host. Of the packets that this host itself sends, such a visitor gets only packets from
//! the care-of address, for example ICMP errors. A home address in the visited network is denied, because a neighbor
//! may have this address. The addresses of this host are denied as home addresses.
//!
//! The agent has at most `visitors` visits at a time (1024 by default). Without associations, a host on the link can
//! use up all visits: it invents home addresses, and another host accepts the requests as the home agent. Then other
//! mobile nodes are denied (`no_place`) until the forged registrations end. Visitors can still renew their
//! registrations. A shorter `registration_lifetime` limits this time.

use crate::advertiser::Advertiser;
use crate::clock::Clock;
use crate::config::{Associations, ForeignAgentConfig, is_host};
use crate::home_agent::refusal;
use crate::limiter::Limiter;
use crate::mark::{FOREIGN_AGENT, MobileIpEvent};
use crate::message::{
    AgentFlags, Between, Code, PORT, Received, Registration, Reply, Request, RequestFlags, datagram,
};
use crate::pending::{Pending, RequestKey, Standing, Waiting, low};
use crate::reply_counts::ReplyCounts;
use node::config::{ConfigError, Interfaces};
use node::{
    Action, Class, Hop, Input, Lifetime, Link, Listen, Neighbor, Outbox, Proto, Refusals, Rng, Role, Route,
    RouteKey, Rx, Value,
};
use std::collections::{BTreeMap, BTreeSet};
use wire::icmp::{self, Quote};
use wire::ipv4::{self, Header};
use wire::{Duration, Iface, Instant, Ipv4Addr, Mac, Packet, Prefix, Reason, SocketAddrV4, ntp_distance};

/// The class of packets from tunnels whose source is not a visitor's home agent. The only route of this class drops
/// these packets.
const STRANGERS: Class = Class(Class::CLOSED.0 + 16);
/// The first packet class for home agents. Each home agent with visitors has a separate class, so that packets from its
/// tunnels find routes to its mobile nodes only.
const FIRST_CLASS: u8 = STRANGERS.0 + 1;
/// The maximum number of home agents with visitors at a time: the number of packet classes for home agents (not from an
/// RFC).
const HOME_AGENTS: u8 = u8::MAX - FIRST_CLASS;
/// The reason to drop a packet from a tunnel: its destination is not a visitor of the home agent that sent the packet.
pub const NOT_A_VISITOR: Reason = Reason("not_a_visitor");
/// The reason to forget a pending request: a request of another home or link address takes its place. The reason is
/// only counted, because the packet of the request was relayed.
pub const GAVE_WAY: Reason = Reason("gave_way");
/// The reason to deny a request: the agent has too many visits, waiting requests or home agents. The reason is only
/// counted. If a denial is sent, the packet is consumed. Otherwise it is dropped with [`refusal::ANSWERED`].
pub const NO_PLACE: Reason = Reason("no_place");
/// The reason to drop a reply or an ICMP error: it matches no pending request.
pub const NOT_PENDING: Reason = Reason("not_pending");
/// The reason to drop a request, or the reply to a request: another link address has sent the same request, or has
/// registered with the same or a later request.
pub const REPEATED_BY_ANOTHER: Reason = Reason("repeated_by_another");
/// The reason to drop a reply, or an ICMP error about a request: it arrived from a visited link, not from the home
/// agent.
pub const NOT_FROM_HOME: Reason = Reason("not_from_home_agent");
/// The reason to drop a reply: the configuration requires a Foreign-Home Authentication, but it is missing or wrong.
pub const HOME_AGENT_FAILED: Reason = Reason("home_agent_failed");

/// The key of a visit: the home address of the mobile node, and the address of its home agent.
type Visit = (Ipv4Addr, Ipv4Addr);

/// A mobile node that is registered through this foreign agent.
#[derive(Debug)]
struct Visitor {
    mac: Mac,
    /// The Identification of the request accepted last.
    identification: u64,
    /// The granted lifetime in seconds, and when it ends.
    lifetime: u16,
    ends: Instant,
    /// The key of the route for this host's own packets to this visitor; `None` if there is no such route.
    reached: Option<RouteKey>,
}

/// The role of a foreign agent (RFC 5944, section 3.7).
#[derive(Debug)]
pub struct ForeignAgent {
    config: ForeignAgentConfig,
    iface: Iface,
    /// The interfaces to visited networks: this agent's, and those of the host's other foreign agents.
    visited: Vec<Iface>,
    listens: [Listen; 5],
    mobile_nodes: Associations,
    home_agents: Associations,
    waiting: Waiting,
    visitors: BTreeMap<Visit, Visitor>,
    /// The class of packets from the tunnels of each home agent that has visitors here.
    classes: BTreeMap<Ipv4Addr, Class>,
    advertiser: Advertiser,
    denials: Limiter<Mac>,
    /// The number of replies that were sent to mobile nodes, by code: relayed replies, and denials by this agent.
    codes: ReplyCounts,
    refused: Refusals,
    clock: Clock,
}

impl ForeignAgent {
    /// Creates a foreign agent on a host with these interfaces. An error names the invalid key of the configuration,
    /// for example `interface` if the host does not have this interface.
    pub fn new(
        config: ForeignAgentConfig,
        interfaces: Interfaces<'_>,
        rng: Rng,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        let iface = interfaces.number("interface", &config.interface)?;
        let [routers, agents, solicitations] = Advertiser::listens(iface);
        let errors = Listen::IcmpAbout(Proto::Udp(PORT));
        let advertiser = Advertiser::new(
            iface,
            config.address,
            config.advertise.clone(),
            config.registration_lifetime,
            if config.registration_required {
                AgentFlags::FOREIGN | AgentFlags::REGISTRATION_REQUIRED
            } else {
                AgentFlags::FOREIGN
            },
            rng,
        );
        let others = config.visited.iter().map(|name| interfaces.number("interface", name));
        let visited = [Ok(iface)].into_iter().chain(others).collect::<Result<_, _>>()?;
        Ok(Self {
            iface,
            visited,
            listens: [Listen::Local(Proto::Udp(PORT)), routers, agents, solicitations, errors],
            mobile_nodes: Associations::new(&config.mobile_nodes),
            home_agents: Associations::new(&config.home_agents),
            waiting: Waiting::new(config.pending),
            visitors: BTreeMap::new(),
            classes: BTreeMap::new(),
            advertiser,
            denials: Limiter::default(),
            codes: ReplyCounts::default(),
            refused: Refusals::default(),
            clock: Clock::default(),
            config,
        })
    }

    fn start(&self, out: &mut Outbox) {
        let care_of =
            RouteKey { class: None, src: Prefix::ANY, dst: Prefix::host(self.config.address.address) };
        out.route(care_of, Route { action: Action::Open(STRANGERS), lifetime: Lifetime::Permanent });
        out.route(
            RouteKey::all(STRANGERS),
            Route { action: Action::Drop(NOT_A_VISITOR), lifetime: Lifetime::Permanent },
        );
    }

    fn packet(&mut self, now: Instant, rx: Rx, packet: Packet, out: &mut Outbox) {
        let ends = match rx.header.protocol {
            ipv4::UDP if rx.header.dst == self.config.address.address => {
                self.registration(now, rx, &packet, out)
            }
            ipv4::ICMP if rx.payload(&packet).first().is_some_and(|kind| icmp::is_error(*kind)) => {
                self.unreachable(now, rx, rx.payload(&packet), out)
            }
            ipv4::ICMP => {
                let busy = self.is_busy();
                self.advertiser.solicited(now, rx, &packet, busy, out)
            }
            _ => return out.pass(rx, packet),
        };
        self.refused.end(rx.iface, packet, ends, out);
    }

    fn registration(
        &mut self,
        now: Instant,
        rx: Rx,
        packet: &Packet,
        out: &mut Outbox,
    ) -> Result<(), Reason> {
        let received = Received::of(rx.header, rx.payload(packet))?;
        let from = received.sender();
        match received.message {
            Registration::Request(request) if rx.iface == self.iface => {
                let mac = packet.link.src;
                let standing = self.standing(mac, &request);
                let pending = Pending { mac, from, since: now, standing, request };
                self.request(now, &received.ip, pending, out)
            }
            Registration::Request(_) => Err(Reason("wrong_direction")),
            // Without an association, only the interface shows that a reply is forged.
            Registration::Reply(_) if self.visited.contains(&rx.iface) => Err(NOT_FROM_HOME),
            Registration::Reply(reply) => self.reply(now, reply, out),
        }
    }

    // --- requests (RFC 5944, section 3.7.2) ------------------------------------------------------------------------

    fn request(
        &mut self,
        now: Instant,
        ip: &Header,
        pending: Pending,
        out: &mut Outbox,
    ) -> Result<(), Reason> {
        let Pending { mac, ref request, .. } = pending;
        // The reply is sent to the source address at `mac`. So `mac` must not be a group, and the source address must be
        // a host's address and not this agent's: the home address, or the mobile node's own care-of address.
        let is_own = [request.home, ip.src].contains(&self.config.address.address);
        let source = if has_own_address(request) { request.care_of } else { request.home };
        if mac.is_group() || ip.src != source || !is_host(request.home) || is_own {
            return Err(Reason("implausible_source"));
        }
        if self.is_repeated_by_another(&pending) {
            return Err(REPEATED_BY_ANOTHER);
        }
        match self.judge(&pending) {
            Ok(give_way) => self.relay(now, pending, &give_way, out),
            Err(code) => {
                if code == Code::ForeignResources {
                    self.refused.count(NO_PLACE);
                }
                return self.deny(now, &pending, code, out);
            }
        }
        Ok(())
    }

    /// Returns the waiting requests to drop so that `pending` can be relayed, or the code of the denial of `pending`.
    fn judge(&self, pending: &Pending) -> Result<Vec<RequestKey>, Code> {
        let request = &pending.request;
        let asks = |flags| request.flags.has(flags);
        let own = self.config.address.address;
        if !self.is_authentic(request) {
            return Err(Code::MobileFailed);
        }
        if asks(RequestFlags::RESERVED) || !is_host(request.home_agent) || request.home_agent == request.home
        {
            return Err(Code::ForeignBadRequest);
        }
        // A request with an address of this host as the home agent is not relayed (RFC 5944, section 3.7.2). It is
        // relayed if a home agent on this host has the address, and this foreign agent has another address.
        let is_ours = |address: &Ipv4Addr| *address == own || self.config.own.contains(address);
        let is_beside = request.home_agent != own && self.config.beside.contains(&request.home_agent);
        if is_ours(&request.home_agent) && !is_beside {
            return Err(Code::InvalidHomeAgent);
        }
        // A co-located care-of address is an address of the visited link.
        let is_care_of = if has_own_address(request) {
            self.config.address.link.contains(request.care_of) && !is_ours(&request.care_of)
        } else {
            request.lifetime == 0 || request.care_of == own
        };
        if !is_care_of {
            return Err(Code::InvalidCareOf);
        }
        // This host's own packets to a visitor's home address may go to the visitor. So the addresses of neighbors, of
        // other roles' peers and of this host are denied as home addresses.
        let is_others = self.config.address.link.contains(request.home)
            || self.config.partners.contains(&request.home)
            || is_ours(&request.home);
        if request.lifetime != 0 && is_others {
            return Err(Code::ForeignProhibited);
        }
        if request.lifetime > self.longest() {
            return Err(Code::LifetimeTooLong);
        }
        if asks(RequestFlags::REVERSE) {
            return Err(Code::ForeignReverseTunnel);
        }
        if asks(RequestFlags::MINIMAL) || asks(RequestFlags::GRE) {
            return Err(Code::ForeignEncapsulation);
        }
        self.place(pending).ok_or(Code::ForeignResources)
    }

    /// Returns whether the Mobile-Foreign Authentication of a request is correct. Returns true if there is no
    /// association with the mobile node, because then no authentication is required.
    fn is_authentic(&self, request: &Request) -> bool {
        if self.mobile_nodes.first(request.home).is_none() {
            return true;
        }
        let spi = request.authentication(Between::MobileForeign).map(|found| found.spi);
        let association = spi.and_then(|spi| self.mobile_nodes.named(request.home, spi));
        association.is_some_and(|association| request.verify(Between::MobileForeign, association))
    }

    /// Returns whether another link address has sent the same request before, or has registered with the same or a
    /// later request. If so, this request may be a replay: the reply and the visit belong to the other link address. A
    /// new request of a mobile node has a later Identification, unless the node's clock was corrected.
    fn is_repeated_by_another(&self, Pending { mac, request, .. }: &Pending) -> bool {
        let asked = (request.home, low(request.identification));
        let waits = self.waiting.get(asked).is_some_and(|pending| pending.mac != *mac);
        waits || self.is_overtaken(*mac, request)
    }

    /// Returns whether the mobile node has registered from another link address, with the same or a later request than
    /// `request`.
    fn is_overtaken(&self, mac: Mac, request: &Request) -> bool {
        let visitor = self.visitors.get(&(request.home, request.home_agent));
        let later = |visitor: &Visitor| ntp_distance(request.identification, visitor.identification) <= 0;
        visitor.is_some_and(|visitor| visitor.mac != mac && later(visitor))
    }

    /// Returns how plausible a request from `mac` is. The authentication of the request is not checked here.
    fn standing(&self, mac: Mac, request: &Request) -> Standing {
        let visitor = self.visitors.get(&(request.home, request.home_agent));
        let is_known = self.waiting.is_answered(request.home_agent)
            || self.classes.contains_key(&request.home_agent)
            || self.home_agents.first(request.home_agent).is_some()
            || self.mobile_nodes.first(request.home).is_some();
        match visitor {
            Some(visitor) if visitor.mac == mac => Standing::Visitor,
            _ if is_known => Standing::Known,
            _ => Standing::Unknown,
        }
    }

    /// Returns the waiting requests to drop so that `new` can wait; `None` if `new` must be denied.
    fn place(&self, new: &Pending) -> Option<Vec<RequestKey>> {
        let mut give_way = self.class_place(new)?;
        give_way.extend(self.waiting.place(new)?);
        Some(give_way)
    }

    /// Returns the waiting requests to drop so that the home agent of `new` can have a packet class. `None` if no class
    /// can become free, or if `new` begins a visit and the maximum number of visits is reached. The result is empty for
    /// a deregistration: it begins no visit. A waiting request reserves a class for its home agent, because the visit
    /// needs a class when the request is accepted.
    fn class_place(&self, new: &Pending) -> Option<Vec<RequestKey>> {
        let Request { home, home_agent, lifetime, .. } = new.request;
        if lifetime == 0 {
            return Some(Vec::new());
        }
        if self.is_busy() && !self.visitors.contains_key(&(home, home_agent)) {
            return None;
        }
        let taken: BTreeSet<_> = self.classes.keys().copied().chain(self.waiting.wanted()).collect();
        if taken.contains(&home_agent) || taken.len() < HOME_AGENTS.into() {
            return Some(Vec::new());
        }
        let has_class = |other| self.classes.contains_key(&other);
        let other = self.waiting.home_agent_that_gives_way(new, has_class)?;
        Some(self.waiting.wanting(other))
    }

    fn relay(&mut self, now: Instant, pending: Pending, give_way: &[RequestKey], out: &mut Outbox) {
        let Pending { mac, ref request, .. } = pending;
        for asked in give_way {
            if let Some(other) = self.waiting.remove(*asked)
                && (other.mac, other.request.home) != (mac, request.home)
            {
                self.refused.count(GAVE_WAY);
            }
        }
        self.keep_path_to(request.home_agent, out);
        let mut relayed = request.clone();
        relayed.strip();
        if let Some(association) = self.home_agents.first(request.home_agent)
            && request.lifetime != 0
        {
            relayed.sign(Between::ForeignHome, association);
        }
        let own = SocketAddrV4::new(self.config.address.address, PORT);
        let to = SocketAddrV4::new(request.home_agent, PORT);
        let bytes = datagram(own, to, ipv4::DEFAULT_TTL, &relayed.emit());
        out.send_routed(Packet::new(Mac::ZERO, bytes));
        self.waiting.insert(now + self.patience(&pending.request), pending);
    }

    /// Returns how long a request waits for its reply: `pending_timeout`, or the requested lifetime if this is shorter
    /// and not 0 (RFC 5944, section 3.7.2.2).
    fn patience(&self, request: &Request) -> Duration {
        let timeout = self.config.pending_timeout;
        match request.lifetime {
            0 => timeout,
            lifetime => timeout.min(Duration::from_secs(lifetime.into())),
        }
    }

    /// Denies a request with `code`, at most once a second for each link address (RFC 5944, section 3.7.2, has this
    /// limit for each mobile node). Fails if a request from the same link address was denied within the last second, or
    /// if requests from 1024 other link addresses were.
    fn deny(&mut self, now: Instant, pending: &Pending, code: Code, out: &mut Outbox) -> Result<(), Reason> {
        if !self.denials.may(now, pending.mac) {
            return Err(refusal::ANSWERED);
        }
        let mut reply = pending.request.reply(code);
        reply.lifetime = if code == Code::LifetimeTooLong { self.longest() } else { 0 };
        self.send_reply(pending, reply, out);
        Ok(())
    }

    // --- replies (RFC 5944, section 3.7.3) -------------------------------------------------------------------------

    fn reply(&mut self, now: Instant, mut reply: Reply, out: &mut Outbox) -> Result<(), Reason> {
        let asked = (reply.home, low(reply.identification));
        let pending = self.waiting.get(asked).ok_or(NOT_PENDING)?;
        if !self.is_home_agent(pending, &reply) {
            if let Some(pending) = self.waiting.remove(asked) {
                self.deny(now, &pending, Code::HomeFailed, out)?;
            }
            return Err(HOME_AGENT_FAILED);
        }
        let Some(pending) = self.waiting.remove(asked) else { return Err(NOT_PENDING) };
        self.waiting.has_answered(now, pending.request.home_agent);
        reply.strip();
        if reply.code.is_accepted() {
            if self.is_overtaken(pending.mac, &pending.request) {
                return Err(REPEATED_BY_ANOTHER);
            }
            let lifetime = reply.lifetime.min(pending.request.lifetime).min(self.longest());
            // The tunnel of a mobile node with its own care-of address does not end here.
            let lifetime = if has_own_address(&pending.request) { 0 } else { lifetime };
            self.admit(now, &pending, lifetime, out);
            self.forget_older(&pending);
        }
        self.send_reply(&pending, reply, out);
        Ok(())
    }

    /// Returns whether the Foreign-Home Authentication of a reply is correct. Returns true if there is no association
    /// with the home agent, because then no authentication is required.
    fn is_home_agent(&self, pending: &Pending, reply: &Reply) -> bool {
        let home_agent = pending.request.home_agent;
        if self.home_agents.first(home_agent).is_none() {
            return true;
        }
        let spi = reply.authentication(Between::ForeignHome).map(|found| found.spi);
        let association = spi.and_then(|spi| self.home_agents.named(home_agent, spi));
        association.is_some_and(|association| reply.verify(Between::ForeignHome, association))
    }

    /// Drops the waiting requests from the same home and link address with an earlier Identification than the accepted
    /// request.
    fn forget_older(&mut self, Pending { mac, request, .. }: &Pending) {
        let older = |other: &Request| ntp_distance(other.identification, request.identification) < 0;
        let own = self.waiting.of(request.home, *mac).filter(|(_, other)| older(&other.request));
        for asked in own.map(|(asked, _)| asked).collect::<Vec<_>>() {
            self.waiting.remove(asked);
        }
    }

    /// Registers or renews a visitor for `lifetime` seconds; 0 ends the visit. Does nothing if no packet class is free
    /// for the home agent.
    fn admit(&mut self, now: Instant, pending: &Pending, lifetime: u16, out: &mut Outbox) {
        let Request { home: host, home_agent, identification, .. } = pending.request;
        let visit = (host, home_agent);
        if lifetime == 0 {
            return self.leave(visit, out);
        }
        let Some(class) = self.open_for(home_agent, out) else { return };
        let mac = pending.mac;
        let ends = now + Duration::from_secs(lifetime.into());
        let route =
            Route { action: Action::Forward(Hop::mac(self.iface, mac)), lifetime: Lifetime::Until(ends) };
        out.route(RouteKey::to(class, host), route);
        let mut all = self.visitors.iter();
        let taken =
            all.any(|(other, visitor)| other.0 == host && *other != visit && visitor.reached.is_some());
        let is_free = !taken && !self.is_home_agent_of_any(host);
        let reached = is_free.then(|| self.own_packets_to(visit));
        let before = self.visitors.get(&visit).and_then(|visitor| visitor.reached);
        if let Some(key) = before.filter(|_| reached.is_none()) {
            self.unreach(key, host, out);
        }
        if let Some(key) = reached {
            // This host's own packets to a visitor, for example ICMP errors, are sent on the link without ARP (RFC
            // 5944, section 4.2.2). Otherwise, a packet from the care-of address would go to the home agent. The home
            // agent would drop the packet as a tunnel loop.
            out.route(key, route);
            out.neighbor(self.iface, host, Neighbor::At(mac));
        }
        if self.visitors.insert(visit, Visitor { mac, identification, lifetime, ends, reached }).is_none() {
            out.mark(MobileIpEvent::VisitorArrived { host }.into());
        }
    }

    /// Returns the packet class of a home agent. If it has none, assigns a free class, and sets the routes for packets
    /// from its tunnels. `None` if no class is free.
    fn open_for(&mut self, home_agent: Ipv4Addr, out: &mut Outbox) -> Option<Class> {
        if let Some(class) = self.classes.get(&home_agent) {
            return Some(*class);
        }
        let is_free = |class: &Class| !self.classes.values().any(|other| other == class);
        let class = (FIRST_CLASS..u8::MAX).map(Class).find(is_free)?;
        self.classes.insert(home_agent, class);
        out.route(
            RouteKey::all(class),
            Route { action: Action::Drop(NOT_A_VISITOR), lifetime: Lifetime::Permanent },
        );
        out.route(
            self.tunnel(home_agent),
            Route { action: Action::Open(class), lifetime: Lifetime::Permanent },
        );
        Some(class)
    }

    /// Returns the key of the route for packets from a home agent to the care-of address.
    const fn tunnel(&self, home_agent: Ipv4Addr) -> RouteKey {
        RouteKey {
            class: None,
            src: Prefix::host(home_agent),
            dst: Prefix::host(self.config.address.address),
        }
    }

    fn leave(&mut self, visit: Visit, out: &mut Outbox) {
        let Some(visitor) = self.visitors.remove(&visit) else { return };
        let (host, home_agent) = visit;
        if let Some(class) = self.classes.get(&home_agent).copied() {
            out.route(RouteKey::to(class, host), None);
            if !self.visitors.keys().any(|(_, other)| *other == home_agent) {
                self.classes.remove(&home_agent);
                out.route(self.tunnel(home_agent), None);
                out.route(RouteKey::all(class), None);
            }
        }
        if let Some(key) = visitor.reached {
            self.unreach(key, host, out);
        }
    }

    /// Returns the key of the route for this host's own packets to a visitor. The route is for any source address if an
    /// association authenticates the visit, and otherwise for the care-of address only.
    fn own_packets_to(&self, (host, home_agent): Visit) -> RouteKey {
        let is_proved =
            self.mobile_nodes.first(host).is_some() || self.home_agents.first(home_agent).is_some();
        let own = Prefix::host(self.config.address.address);
        let src = if is_proved { Prefix::ANY } else { own };
        RouteKey { src, ..RouteKey::to(Class::HOST, host) }
    }

    fn unreach(&self, key: RouteKey, host: Ipv4Addr, out: &mut Outbox) {
        out.route(key, None);
        out.neighbor(self.iface, host, None);
    }

    fn is_home_agent_of_any(&self, host: Ipv4Addr) -> bool {
        let waits = self.waiting.requests().any(|request| request.home_agent == host);
        waits || self.classes.contains_key(&host)
    }

    /// Removes the route for this host's own packets to a visitor whose home address equals `home_agent`. Otherwise,
    /// requests for the home agent would be sent to the visitor.
    fn keep_path_to(&mut self, home_agent: Ipv4Addr, out: &mut Outbox) {
        let same = |visit: &Visit, visitor: &Visitor| visit.0 == home_agent && visitor.reached.is_some();
        let found = self.visitors.iter_mut().find(|(visit, visitor)| same(visit, visitor));
        if let Some(key) = found.and_then(|(_, visitor)| visitor.reached.take()) {
            self.unreach(key, home_agent, out);
        }
    }

    /// Sends a reply to the link address of the request. ARP is not used, because another host could answer an ARP
    /// request for the home address.
    fn send_reply(&mut self, pending: &Pending, mut reply: Reply, out: &mut Outbox) {
        if let Some(association) = self.mobile_nodes.first(reply.home) {
            reply.sign(Between::MobileForeign, association);
        }
        self.codes.count(reply.code);
        let own = SocketAddrV4::new(self.config.address.address, PORT);
        let bytes = datagram(own, pending.from, ipv4::DEFAULT_TTL, &reply.emit());
        out.send(self.iface, Packet::new(pending.mac, bytes));
    }

    // --- ends of visits, and failures ------------------------------------------------------------------------------

    /// Denies a relayed request about which an ICMP error arrived. The error must quote the relayed request. It must
    /// not arrive from a visited link: hosts there may have heard the request, and could forge the error.
    fn unreachable(&mut self, now: Instant, rx: Rx, icmp: &[u8], out: &mut Outbox) -> Result<(), Reason> {
        if self.visited.contains(&rx.iface) {
            return Err(NOT_FROM_HOME);
        }
        let message = icmp::Message::parse(icmp)?;
        let quote = Quote::of(&message)?;
        // `at` is an offset in the request. The request follows the UDP header of 8 bytes. The quote may end before the
        // field.
        let field = |at: usize| quote.payload.get(8 + at..8 + at + 4)?.try_into().ok();
        let (Some(home), Some(low)) = (field(4), field(20)) else { return Err(NOT_PENDING) };
        let asked = (Ipv4Addr::from_octets(home), u32::from_be_bytes(low));
        let about_it = |pending: &Pending| {
            quote.protocol == ipv4::UDP
                && (quote.src, quote.dst) == (self.config.address.address, pending.request.home_agent)
        };
        if !self.waiting.get(asked).is_some_and(about_it) {
            return Err(NOT_PENDING);
        }
        let code = match (quote.kind, quote.code) {
            (3, 0) => Code::HomeNetUnreachable,
            (3, 1) => Code::HomeHostUnreachable,
            (3, 3) => Code::HomePortUnreachable,
            _ => Code::HomeUnreachable,
        };
        self.waiting.remove(asked).map_or(Err(NOT_PENDING), |pending| self.deny(now, &pending, code, out))
    }

    fn timeout(&mut self, now: Instant, out: &mut Outbox) {
        while let Some(pending) = self.waiting.pop(now) {
            out.mark(MobileIpEvent::RequestTimedOut { host: pending.request.home }.into());
            // `deny` may fail, because denials are limited. Without a reply, the mobile node repeats its request.
            let _ = self.deny(now, &pending, Code::RegistrationTimeout, out);
        }
        let busy = self.is_busy();
        self.advertiser.timeout(now, busy, out);
    }

    /// Ends a visit whose route in the packet class of the home agent has expired. Does nothing if the visit was
    /// renewed.
    fn expired(&mut self, now: Instant, key: RouteKey, out: &mut Outbox) {
        let mut agents = self.classes.iter().filter(|(_, class)| key.class == Some(**class));
        let Some(visit) = agents.next().map(|(home_agent, _)| (key.dst.address(), *home_agent)) else {
            return;
        };
        if self.visitors.get(&visit).is_some_and(|visitor| visitor.ends <= now) {
            self.leave(visit, out);
            out.mark(MobileIpEvent::VisitorExpired { host: visit.0 }.into());
        }
    }

    fn is_busy(&self) -> bool {
        self.visitors.len() >= self.config.visitors
    }

    /// Returns the longest registration that is accepted, in seconds.
    const fn longest(&self) -> u16 {
        self.config.registration_lifetime.as_secs() as u16
    }
}

/// Returns whether the care-of address of a request is the mobile node's own (flag D), and the request is for a binding
/// to it. A request to end all bindings has the home address as care-of address.
fn has_own_address(request: &Request) -> bool {
    request.flags.has(RequestFlags::DECAPSULATION) && request.care_of != request.home
}

impl Role for ForeignAgent {
    fn name(&self) -> &'static str {
        FOREIGN_AGENT
    }

    fn listens(&self) -> &[Listen] {
        &self.listens
    }

    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Outbox) {
        match input {
            Input::Start(boot) => {
                self.clock.zero = boot.wall;
                self.start(out);
            }
            Input::Wall(zero) => self.clock.zero = zero,
            Input::Timeout => self.timeout(now, out),
            Input::Idle(key, _) => self.expired(now, key, out),
            Input::Packet(rx, packet) => self.packet(now, rx, packet, out),
            Input::Link(iface, Link::Up { .. }) if iface == self.iface => self.advertiser.up(now),
            Input::Link(iface, Link::Down(_)) if iface == self.iface => self.advertiser.down(),
            Input::Link(..)
            | Input::Stream(..)
            | Input::Command(..)
            | Input::Failed(_)
            | Input::Serve(..)
            | Input::Notification(_)
            | Input::Stored(_) => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let due = [self.waiting.next(), self.advertiser.due()];
        due.into_iter().flatten().min()
    }

    fn status(&self) -> Value {
        let visit = |((host, home_agent), visitor): (&Visit, &Visitor)| {
            let value = Value::map([
                ("home_agent", Value::from(*home_agent)),
                ("lifetime_s", Value::from(u32::from(visitor.lifetime))),
                ("ends_unix_s", Value::from(self.clock.unix_seconds(visitor.ends))),
                ("spi", self.mobile_nodes.first(*host).map_or(Value::None, |found| Value::from(found.spi))),
                (
                    "home_agent_spi",
                    self.home_agents.first(*home_agent).map_or(Value::None, |found| found.spi.into()),
                ),
            ]);
            (host.to_string(), value)
        };
        Value::map([
            ("visitors", Value::Map(self.visitors.iter().map(visit).collect())),
            ("pending", Value::from(self.waiting.len() as u64)),
            ("codes", self.codes.status()),
            ("refused", self.refused.status()),
        ])
    }
}
