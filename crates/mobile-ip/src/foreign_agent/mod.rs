//! The foreign agent: advertises, relays registrations, and ends the tunnels to its visitors.
//!
//! A mobile node becomes a visitor only when a reply accepts its request. A host on a visited link cannot answer for a
//! home agent: replies, and ICMP errors about requests, are dropped if they arrive from a visited link. This applies to
//! the visited links of all foreign agents of this host.
//!
//! A packet from a tunnel is forwarded to a visitor only if the source of the tunnel is the visitor's home agent; with smooth
//! handoffs, also its previous agent; with `direct_tunnels`, any host. The packet is sent to the link address that
//! registered, without ARP. All other packets from tunnels are dropped without an answer (RFC 5944, section 4.2.2), unless
//! this agent forwards them: to the new care-of address of a mobile node that has left, or in a special tunnel.
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

mod arrivals;
mod buffer;
mod classes;
mod departures;
mod history;
mod keeping;
mod keys;
mod remembered;
mod replies;
mod requests;
mod reverse;
mod special;
mod visits;

use crate::advertiser::Advertiser;
use crate::clock::Clock;
use crate::config::{AgentReverseTunnel, Associations, ForeignAgentConfig};
use crate::encapsulation;
use crate::limiter::Limiter;
use crate::mark::{FOREIGN_AGENT, MobileIpEvent};
use crate::message::{ALL_AGENTS, AgentFlags, Code, PORT, Received, Registration, Request, RequestFlags};
use crate::pending::{Pending, Waiting};
use crate::refusal;
use crate::reply_counts::ReplyCounts;
use crate::tunnels::{NOT_ABOUT_A_TUNNEL, Tunnels};
use arrivals::Handoffs;
pub use buffer::{KEPT_DUPLICATE, KEPT_NO_ROOM, KEPT_REPLACED, KEPT_TOO_OLD};
use classes::Classes;
use history::History;
use keeping::Keeper;
pub use keeping::{KEPT_REASONS, KEPT_UNWANTED, KEPT_VISIT_ENDED, NO_BUFFER, STALE_CONTROL};
use keys::Keys;
use node::config::{ConfigError, Interfaces};
use node::{
    Action, Class, Input, Lifetime, Link, Listen, Notification, Outbox, Proto, PuntReason, Refusals, Rng,
    Role, Route, RouteKey, Rx, TunnelKinds, Value,
};
use reverse::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wire::icmp::{self};
use wire::ipv4::{self};
use wire::{Iface, Instant, Ipv4Addr, Mac, Packet, PacketId, Prefix, Reason};

/// The reason to drop a packet from a tunnel: its destination is not a visitor of the home agent that sent the packet.
pub const NOT_A_VISITOR: Reason = Reason("not_a_visitor");
/// The reason to forget a pending request: a request of another home or link address takes its place. The reason is
/// only counted, because the packet of the request was relayed.
pub const GAVE_WAY: Reason = Reason("gave_way");
/// The reason to deny a request: the agent has too many visits, waiting requests or home agents. The reason is only
/// counted. If a denial is sent, the packet is consumed. Otherwise it is dropped with [`refusal::ANSWERED`].
pub const NO_PLACE: Reason = Reason("no_place");
/// The reason to deny a request that the home agent has accepted: another visit has taken its place. It is only counted,
/// because the packet of the reply is consumed.
pub const NOT_ADMITTED: Reason = Reason("not_admitted");
/// The reason to drop a request to all mobility agents: it names another agent's care-of address.
pub const FOR_ANOTHER_AGENT: Reason = Reason("for_another_agent");
/// The reason to drop a reply or an ICMP error: it matches no pending request.
pub const NOT_PENDING: Reason = Reason("not_pending");
/// The reason to drop an ICMP message about a request: a redirect or a source quench. The request waits on.
pub const NOT_A_FAILURE: Reason = Reason("not_a_failure");
/// The reason to drop a request, or the reply to a request: another link address has sent the same request, or has
/// registered with a request that arrived later. Or the request is a changed copy of one that waits.
pub const REPEATED_BY_ANOTHER: Reason = Reason("repeated_by_another");
/// The reason to drop the acceptance of a request: it belongs to an earlier request of the mobile node.
pub const REPLAYED_REPLY: Reason = Reason("replayed_reply");
/// The reason not to end a visit although a deregistration was accepted: it came from another link address than that of the
/// visitor, and neither the request nor the reply is authenticated to this agent. It is only counted.
pub const DEREGISTERED_BY_ANOTHER: Reason = Reason("deregistered_by_another");
/// The reason to drop a reply, or an ICMP error about a request: it arrived from a visited link, not from the home
/// agent. Or it is an acceptance whose source is not the requested home agent.
pub const NOT_FROM_HOME: Reason = Reason("not_from_home_agent");
/// The reason to drop a reply: the configuration requires a Foreign-Home Authentication, but it is missing or wrong.
pub const HOME_AGENT_FAILED: Reason = Reason("home_agent_failed");

/// The maximum number of challenges that are remembered for a mobile node because it has used them (not from an RFC).
/// There are at most 16 other valid ones.
const USED_CHALLENGES: usize = 17;

/// The number of requests of a visit whose Identifications are remembered (not from an RFC). A mobile node sends at most
/// one request per second, and a request waits for its reply for 7 s by default.
const SEEN: usize = 16;

/// The reason to drop a packet from a tunnel: the source of the tunnel is not the previous agent that the mobile node has
/// named.
const NOT_PREVIOUS_AGENT: Reason = Reason("not_the_previous_agent");

/// The agents whose tunnels may bring packets for a mobile node, the last one first, each with the end of this time.
type Sources = Vec<(Ipv4Addr, Instant)>;

/// Returns whether `entry` is one of these agents at `now`.
fn has_named(sources: &[(Ipv4Addr, Instant)], now: Instant, entry: Ipv4Addr) -> bool {
    sources.iter().any(|(agent, until)| *agent == entry && now < *until)
}

/// The largest number of agents whose tunnels may bring packets for one mobile node: the last ones that it has named (not
/// from the draft).
const SOURCES: usize = 4;

/// Returns the first [`SOURCES`] agents whose time has not ended, each once.
fn merged(now: Instant, all: impl Iterator<Item = (Ipv4Addr, Instant)>) -> Sources {
    let mut sources = Sources::new();
    for (agent, until) in all {
        let is_known = sources.iter().any(|(other, _)| *other == agent);
        if sources.len() < SOURCES && !is_known && now < until {
            sources.push((agent, until));
        }
    }
    sources
}

/// The key of a visit: the home address of the mobile node, and the address of its home agent.
type Visit = (Ipv4Addr, Ipv4Addr);

/// Returns the entries of a mobile node, one for each of its home agents.
fn of_host<T>(all: &BTreeMap<Visit, T>, host: Ipv4Addr) -> impl Iterator<Item = (Visit, &T)> {
    let own = all.range((host, Ipv4Addr::UNSPECIFIED)..=(host, Ipv4Addr::BROADCAST));
    own.map(|(visit, entry)| (*visit, entry))
}

/// A mobile node that is registered through this foreign agent.
#[derive(Debug)]
struct Visitor {
    mac: Mac,
    /// The Identification of the request accepted last, or of the one that has restored the visit.
    identification: u64,
    /// If a request has restored the visit, and none was accepted since: the Identification of the Binding Update before it.
    left_by: Option<u64>,
    /// Whether the home agent has denied a request since because of its Identification: a corrected one need only be later than
    /// `left_by`.
    is_corrected: bool,
    /// The number of the request accepted last, in the order of arrival.
    number: u64,
    /// The last requests of this visit. Another link address cannot send them again.
    history: History,
    /// The granted lifetime in seconds.
    lifetime: u16,
    /// When this lifetime ends.
    ends: Instant,
    /// The keys of the routes for this host's own packets to this visitor; empty if there are no such routes.
    reached: Vec<RouteKey>,
    /// The reverse tunnel of the visitor's packets; `None` if it did not ask for one.
    reverse: Option<Reverse>,
    /// The flags of the request accepted last.
    flags: RequestFlags,
    /// When the visit began. Renewals do not change it.
    since: Instant,
    /// When the request accepted last has arrived, or the one that has restored the visit.
    asked: Instant,
}

/// The challenges of a mobile node (RFC 4721). There are at most as many as associations, because each of these requests had
/// a correct Mobile-Foreign Authentication.
#[derive(Debug, Default)]
struct Challenged {
    /// The challenges of its requests, the oldest first; at most [`USED_CHALLENGES`]. They are not accepted again, whatever
    /// the home agent replied (section 3.2).
    used: VecDeque<Vec<u8>>,
    /// The challenge in the last reply to it, which its next request may contain (section 3.3); `None` if there was none.
    issued: Option<Vec<u8>>,
}

/// What this agent does with the tunnels of a home agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Opened {
    /// The class of packets out of the tunnels.
    class: Class,
    /// The kinds of tunnels that are opened: those that the visitors of the home agent have asked for.
    kinds: TunnelKinds,
}

/// The role of a foreign agent (RFC 5944, section 3.7).
#[derive(Debug)]
pub struct ForeignAgent {
    config: ForeignAgentConfig,
    iface: Iface,
    /// The MTU of this interface in bytes.
    mtu: u16,
    /// The interfaces to visited networks: this agent's, and those of the host's other foreign agents.
    visited: Vec<Iface>,
    /// The packet classes of this agent.
    classes: Classes,
    listens: [Listen; 6],
    mobile_nodes: Associations,
    home_agents: Associations,
    waiting: Waiting,
    /// The number of requests that have arrived from the visited link.
    arrived: u64,
    visitors: BTreeMap<Visit, Visitor>,
    /// The exits of the tunnels of a home agent with the same address.
    exits_beside: BTreeSet<Ipv4Addr>,
    /// The challenges of each mobile node, by home address; empty unless challenges are required.
    challenged: BTreeMap<Ipv4Addr, Challenged>,
    /// The tunnels of each home agent that has visitors here.
    opened: BTreeMap<Ipv4Addr, Opened>,
    /// The reverse tunnels to the home agents of visitors, the tunnels to new care-of addresses, and what is known about their
    /// paths.
    tunnels: Tunnels,
    /// The packets that are kept for visitors; `None` if none are.
    keeper: Option<Keeper>,
    /// The keys of smooth handoffs that home agents have sent; empty unless the configuration says so.
    keys: Keys,
    /// The mobile nodes that came from another foreign agent, or left to one, by a smooth handoff.
    handoffs: Handoffs,
    advertiser: Advertiser,
    /// The random numbers from which each start takes its challenges.
    challenges: Rng,
    denials: Limiter<Mac>,
    /// Limits ICMP errors, by the host that gets them.
    error_limit: Limiter<Ipv4Addr>,
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
        let classes = Classes::of(&config)?;
        let iface = interfaces.number("interface", &config.interface)?;
        let [routers, agents, solicitations] = Advertiser::listens(iface);
        let [errors, of_tunnels] = [Proto::Udp(PORT), Proto::IpIp].map(Listen::IcmpAbout);
        let challenges = rng.fork("challenges");
        let smooth = AgentFlags::smooth(&config.numbers);
        let smooth = AgentFlags::default().with(smooth, config.smooth_handoff);
        let mut advertiser = Advertiser::new(
            iface,
            config.address,
            config.advertise.clone(),
            config.registration_lifetime,
            AgentFlags::FOREIGN
                .with(AgentFlags::HOME, config.is_home)
                .with(AgentFlags::REGISTRATION_REQUIRED, config.registration_required)
                .with(AgentFlags::REVERSE, config.reverse_tunnel != AgentReverseTunnel::None)
                | encapsulation::advertised(&config.encapsulations)
                | smooth,
            rng,
        );
        if config.challenge {
            advertiser.challenge(challenges.clone(), config.challenge_window);
        }
        let others = config.visited.iter().map(|name| interfaces.number("interface", name));
        let visited = [Ok(iface)].into_iter().chain(others).collect::<Result<_, _>>()?;
        Ok(Self {
            iface,
            mtu: u16::MAX,
            visited,
            classes,
            listens: [Listen::Local(Proto::Udp(PORT)), routers, agents, solicitations, errors, of_tunnels],
            mobile_nodes: Associations::new(&config.mobile_nodes),
            home_agents: Associations::new(&config.home_agents),
            waiting: Waiting::new(config.pending),
            arrived: 0,
            visitors: BTreeMap::new(),
            exits_beside: BTreeSet::new(),
            challenged: BTreeMap::new(),
            opened: BTreeMap::new(),
            tunnels: Tunnels::default(),
            keeper: config.buffer.as_ref().map(Keeper::new),
            keys: Keys::default(),
            handoffs: Handoffs::default(),
            advertiser,
            challenges,
            denials: Limiter::default(),
            error_limit: Limiter::default(),
            codes: ReplyCounts::default(),
            refused: Refusals::default(),
            clock: Clock::default(),
            config,
        })
    }

    fn start(&mut self, now: Instant, out: &mut Outbox) {
        if self.config.challenge {
            // After a restart, no earlier challenge is valid.
            let rng = self.challenges.fork(&self.clock.ntp(now).to_string());
            self.advertiser.challenge(rng, self.config.challenge_window);
        }
        let care_of =
            RouteKey { class: None, src: Prefix::ANY, dst: Prefix::host(self.config.address.address) };
        let kinds = encapsulation::all_opened(&self.config.encapsulations);
        let class = self.classes.of_unknown();
        out.route(care_of, Route::new(Action::Open(class, kinds), Lifetime::Permanent));
        self.drop_all(class, self.config.special_tunnels, out);
    }

    /// Drops the packets of a class that are not for a visitor, or gives them to this role (`punts`). Packets for this host itself need
    /// separate routes: a registration message or an answer to this host is never in a tunnel of a home agent.
    fn drop_all(&self, class: Class, punts: bool, out: &mut Outbox) {
        let route = Route::new(Action::Drop(NOT_A_VISITOR), Lifetime::Permanent);
        let to_role = Route { action: Action::Punt, ..route };
        out.route(RouteKey::all(class), if punts { to_role } else { route });
        for own in self.own_addresses() {
            out.route(RouteKey::to(class, own), route);
        }
    }

    /// Returns the addresses of this host, each once.
    fn own_addresses(&self) -> BTreeSet<Ipv4Addr> {
        self.config.own.iter().copied().chain([self.config.address.address]).collect()
    }

    /// Returns whether an address belongs to this host.
    fn is_own(&self, address: Ipv4Addr) -> bool {
        address == self.config.address.address || self.config.own.contains(&address)
    }

    fn packet(&mut self, now: Instant, rx: Rx, packet: Packet, out: &mut Outbox) {
        let ends = match rx.header.protocol {
            _ if let PuntReason::Kept(at) = rx.why => return self.kept_aside(now, at, (rx, packet), out),
            _ if rx.why == PuntReason::Action => return self.punted(now, rx, packet, out),
            _ if rx.why == PuntReason::Check => return self.of_another(rx, packet, out),
            ipv4::UDP if self.is_for_home_agent(&rx, &packet) => return out.pass(rx, packet),
            ipv4::UDP if self.is_for_agents(&rx, &packet) => self.registration(now, rx, &packet, out),
            ipv4::ICMP if rx.payload(&packet).first().is_some_and(|kind| icmp::is_error(*kind)) => {
                match self.tunnel_error(now, rx, rx.payload(&packet), out) {
                    Some(Err(NOT_ABOUT_A_TUNNEL)) if !self.config.beside.is_empty() => {
                        // It may be about a tunnel of a home agent on this host.
                        return out.pass(rx, packet);
                    }
                    Some(ends) => ends,
                    None => self.unreachable(now, rx, rx.payload(&packet), out),
                }
            }
            ipv4::ICMP => {
                let busy = self.is_busy();
                self.advertiser.solicited(now, rx, &packet, busy, out)
            }
            _ => return out.pass(rx, packet),
        };
        self.refused.end(rx.iface, packet, ends, out);
    }

    /// Returns whether a UDP datagram is a registration message to this agent. It may also be to all mobility agents of
    /// the visited link, because a mobile node may not know the address of the agent.
    fn is_for_agents(&self, rx: &Rx, packet: &Packet) -> bool {
        let to_port = || rx.payload(packet).get(2..4) == Some(&PORT.to_be_bytes());
        let is_group = rx.header.dst == ALL_AGENTS && rx.iface == self.iface;
        rx.header.dst == self.config.address.address || (is_group && to_port())
    }

    /// Returns whether a message to this agent is for the home agent on this host with the same address. This is a
    /// request to this home agent that asks for no visit here, or that does not come from the visited network. A mobile
    /// node of another home agent may have its own care-of address and register through this agent (flag R).
    fn is_for_home_agent(&self, rx: &Rx, packet: &Packet) -> bool {
        let own = self.config.address.address;
        let is_ours = rx.header.dst == own || rx.header.dst == ALL_AGENTS;
        if !is_ours || !self.config.beside.contains(&own) {
            return false;
        }
        let received = Received::knowing(rx.header, rx.payload(packet), &self.known_extensions());
        match received.map(|received| received.message) {
            Ok(Registration::Request(request)) => {
                let is_broadcast = self.config.address.is_broadcast(request.home_agent);
                let is_visit = rx.iface == self.iface && request.care_of == own;
                (request.home_agent == own || is_broadcast) && !is_visit
            }
            _ => false,
        }
    }

    fn registration(
        &mut self,
        now: Instant,
        rx: Rx,
        packet: &Packet,
        out: &mut Outbox,
    ) -> Result<(), Reason> {
        if let Some(ends) = self.binding_message(now, &rx, packet, out) {
            return ends;
        }
        let received = match Received::knowing(rx.header, rx.payload(packet), &self.known_extensions()) {
            Ok(received) => received,
            Err(malformed) => {
                self.malformed_reply(now, rx, packet, out);
                return Err(malformed.into());
            }
        };
        let from = received.sender();
        let is_own = rx.header.dst == self.config.address.address;
        match received.message {
            Registration::Request(request)
                if !is_own
                    && !has_own_address(&request)
                    && request.care_of != self.config.address.address =>
            {
                Err(FOR_ANOTHER_AGENT)
            }
            Registration::Request(request) if rx.iface == self.iface => {
                let mac = packet.link.src;
                let standing = self.standing(mac, &request);
                let ttl = received.ip.ttl;
                self.arrived += 1;
                let number = self.arrived;
                let pending =
                    Pending { mac, from, since: now, number, standing, ttl, is_new: false, request };
                self.request(now, &received.ip, pending, out)
            }
            Registration::Request(_) => Err(refusal::WRONG_DIRECTION),
            // Without an association, only the interface shows that a reply is forged.
            Registration::Reply(_) if self.visited.contains(&rx.iface) => Err(NOT_FROM_HOME),
            Registration::Reply(reply) => self.reply(now, received.ip.src, reply, out),
        }
    }

    fn timeout(&mut self, now: Instant, out: &mut Outbox) {
        while let Some(pending) = self.waiting.pop(now) {
            out.mark(MobileIpEvent::RequestTimedOut { host: pending.request.home }.into());
            // `deny` may fail, because denials are limited. Without a reply, the mobile node repeats its request.
            let _ = self.deny(now, &pending, Code::RegistrationTimeout, out);
        }
        while let Some(exit) = self.tunnels.expired(now) {
            self.adjust(exit, None, out);
            self.adjust_departures(exit, out);
        }
        while let Some(host) = self.handoffs.ending.pop(now) {
            self.end_arrival(now, host, out);
        }
        self.keeper_timeout(now, out);
        self.keys.expire(now);
        let busy = self.is_busy();
        self.advertiser.timeout(now, busy, out);
    }

    /// Returns the types of extensions of a request that this agent knows besides those of RFC 5944.
    fn known_extensions(&self) -> Vec<u8> {
        let numbers = &self.config.numbers;
        match (self.config.smooth_handoff, self.config.direct_tunnels) {
            (true, _) => numbers.extensions().to_vec(),
            // The Binding Warning Extension is for the home agent.
            (false, true) => vec![numbers.warning_extension],
            (false, false) => Vec::new(),
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

/// Returns whether a reply with this code is to a request whose challenge and Mobile-Foreign Authentication were correct.
const fn is_after_challenge(code: Code) -> bool {
    !matches!(
        code,
        Code::MobileFailed
            | Code::NonzeroHomeRequired
            | Code::UnknownChallenge
            | Code::MissingChallenge
            | Code::StaleChallenge
    )
}

/// Returns rows of a status by home address. One home address can have several: visits with different home agents.
fn by_host(rows: impl Iterator<Item = (Ipv4Addr, Value)>) -> Value {
    let mut all = BTreeMap::<Ipv4Addr, Vec<Value>>::new();
    for (host, row) in rows {
        all.entry(host).or_default().push(row);
    }
    Value::Map(all.into_iter().map(|(host, rows)| (host.to_string(), Value::List(rows))).collect())
}

/// Returns whether a relayed request gets a Foreign-Home Authentication if there is an association with the home agent. A
/// deregistration, and a request with a care-of address that this agent does not advertise, must not have one (RFC 5944,
/// section 3.5.4). Then the reply need not have one.
fn is_authenticated_to_home(request: &Request) -> bool {
    request.lifetime != 0 && !has_own_address(request)
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
                self.start(now, out);
            }
            Input::Wall(zero) => self.clock.zero = zero,
            Input::Timeout => self.timeout(now, out),
            Input::Idle(key, _) => self.expired(now, key, out),
            Input::Packet(rx, packet) => self.packet(now, rx, packet, out),
            Input::Link(iface, Link::Up { mtu, .. }) if iface == self.iface => {
                self.mtu = mtu;
                self.advertiser.up(now);
                self.link_changed(true, out);
            }
            Input::Link(iface, Link::Down(_)) if iface == self.iface => {
                self.advertiser.down();
                self.link_changed(false, out);
            }
            Input::Notification(Notification::TunnelEntry(from, to, is_open)) => {
                self.entered((*from, *to), *is_open, out);
            }
            Input::Link(..)
            | Input::Notice(_)
            | Input::Stream(..)
            | Input::Command(..)
            | Input::Failed(_)
            | Input::Serve(..)
            | Input::Notification(_)
            | Input::Stored(_) => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let kept = self.keeper.as_ref().and_then(Keeper::next);
        let agents = [self.waiting.next(), self.advertiser.due(), self.tunnels.due()];
        let due = agents.into_iter().chain([self.handoffs.ending.next(), self.keys.next(), kept]);
        due.flatten().min()
    }

    fn status(&self) -> Value {
        let visit = |((host, home_agent), visitor): (&Visit, &Visitor)| {
            let configured = self.mobile_nodes.first(*host).map(|found| found.spi);
            let spi = configured.or_else(|| self.keys.last((*host, *home_agent)));
            let value = Value::map([
                ("home_agent", Value::from(*home_agent)),
                ("care_of", Value::from(self.config.address.address)),
                ("lifetime_s", Value::from(u32::from(visitor.lifetime))),
                ("since_unix_s", Value::from(self.clock.unix_seconds(visitor.since))),
                ("ends_unix_s", Value::from(self.clock.unix_seconds(visitor.ends))),
                ("spi", spi.map_or(Value::None, Value::from)),
                (
                    "home_agent_spi",
                    self.home_agents.first(*home_agent).map_or(Value::None, |found| found.spi.into()),
                ),
                ("flags", Value::from(visitor.flags.letters())),
                ("encapsulation", encapsulation::name_of(visitor.flags).into()),
                ("delivery", visitor.reverse.map_or(Value::None, |reverse| reverse.style().into())),
            ]);
            (*host, value)
        };
        let own = [
            ("visitors", by_host(self.visitors.iter().map(visit))),
            ("pending", Value::from(self.waiting.len() as u64)),
            ("codes", self.codes.status()),
            ("refused", self.refused.status()),
        ];
        let has_handoffs = self.config.smooth_handoff || self.config.special_tunnels;
        let handoffs = has_handoffs.then(|| ("handoffs", self.handoffs_status()));
        let kept = self.keeper.as_ref().map(|keeper| ("buffer", keeper.status()));
        Value::map(own.into_iter().chain(self.tunnels.status(self.clock)).chain(handoffs).chain(kept))
    }

    fn room_aside(&self) -> usize {
        self.keeper.as_ref().map_or(0, Keeper::room)
    }

    fn holds(&self, each: &mut dyn FnMut(PacketId)) {
        self.keeper.iter().for_each(|keeper| keeper.holds(each));
    }

    /// Returns the number of visits, of mobile nodes that came from another agent or left to one, and of kept packets.
    fn entries(&self) -> usize {
        let kept = self.keeper.as_ref().map_or(0, Keeper::packets);
        let Handoffs { arrivals, claims, departures, .. } = &self.handoffs;
        self.visitors.len() + arrivals.len() + claims.len() + departures.len() + kept
    }
}
