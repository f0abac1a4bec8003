//! The mobile node: listens for agents, detects movement, and registers with its home agent.
//!
//! ```text
//!             agent heard                 reply
//!   searching ───────────> registering ──────────> registered: away by a foreign agent, or at home
//!       ^                    │  ^   │ no reply: again, after twice the time     │
//!       │ agent lost         │  └───┘                                           │ 0.8 of the lifetime
//!       └────────────────────┴───────────── registering <──────────────────────┘
//! ```

mod co_located;
mod commands;
mod denials;
mod home_address;
mod home_agents;
mod link;
mod options;
mod received;
mod reverse;
mod routes;
mod smooth;
mod vertical;

use crate::agents::{Agent, AgentChange, offered};
use crate::config::{Associations, MobileNodeConfig, Movement, ReverseTunnel};
use crate::encapsulation;
use crate::home_agents::HomeAgents;
use crate::interfaces::NodeInterface;
use crate::mark::{MOBILE_NODE, MobileIpEvent};
use crate::message::{Advertisement, AgentFlags, Received, Registration, RequestFlags};
use crate::movement::{Decision, Occurrence, Situation, Why};
use crate::own_address::OwnAddress;
use crate::refusal;
use crate::registrar::{Registrar, ReplyOutcome, Target};
use crate::signals::Signals;
use crate::tunnels::Tunnels;
use crate::unacknowledged::Settings;
use node::config::{ConfigError, Interfaces};
use node::{
    Action, Announcer, Class, Hop, Input, Listen, Neighbor, Outbox, Refusals, Rng, Role, RouteKey, Rx,
    TimerName, Timers, Value,
};
use options::listens;
use received::LastReceived;
use reverse::Reverse;
use std::collections::{BTreeMap, BTreeSet};
pub use vertical::NOT_IN_USE;
use vertical::OldPath;
use wire::ipv4;
use wire::{Duration, Iface, Instant, Ipv4Addr, Mac, Packet, Reason};

/// The reason to drop a packet of this host: the node has no route through an agent. It has chosen no agent yet, or its
/// last foreign agent has expired or left. Through an expired agent, the node still sends while its registration holds
/// and the link does not change.
pub const NO_AGENT: Reason = Reason("no_agent");
/// The reason to drop a packet of this host: the node has chosen an agent that routes for registered mobile nodes only,
/// and the last accepted registration is not by this agent.
pub const NOT_REGISTERED: Reason = Reason("not_registered");
/// The reason to drop an advertisement: it arrived by another interface than that of this role, or it has an address
/// that cannot be an agent's. Its link address, source address and care-of address are checked.
pub const IMPLAUSIBLE_AGENT: Reason = Reason("implausible_agent");
/// The reason to drop an advertisement: an agent with this address was heard from another link address since the link came
/// up, and has not expired. Otherwise, one forged advertisement could divert the packets of a registered node.
pub const ANOTHER_LINK_ADDRESS: Reason = Reason("agent_link_address");
/// The reason to remove an agent: its advertisement has lifetime 0, so the agent leaves. It is counted for the
/// operator, because advertisements are not authenticated.
pub const AGENT_LEFT: Reason = Reason("agent_left");

/// The shortest time between the begins of two registrations with chosen agents (RFC 5944, section 3.6). With
/// `link_trigger`, it does not apply after the link came up. It does not apply to an operator's command.
const REGISTRATION_PAUSE: Duration = Duration::from_secs(1);
/// The link may come up repeatedly. This is the shortest time between two such events that each permit a registration
/// without [`REGISTRATION_PAUSE`] (not from an RFC).
const DEBOUNCE: Duration = Duration::from_millis(500);
/// The maximum number of [`MobileIpEvent::AgentIgnored`] that are recorded until an agent is chosen or the link comes up
/// (not from an RFC). Advertisements are not authenticated, so a host can send them with many addresses.
const IGNORED: usize = 32;

#[derive(Clone, Copy, Debug)]
enum Timer {
    /// The pause between registrations has ended: the node may register with `next`.
    Hold,
    /// The wait for a reply has ended: the request is repeated, or another agent is tried.
    Retry,
    /// The registration is to be renewed.
    Renew,
    /// The lifetime of the registration has ended.
    Expire,
    /// The Binding Update for the previous foreign agent is to be sent again.
    Update,
    /// Another interface may be better now.
    Interface,
    /// The host is asked again for the home address on a further interface.
    HomeAddress,
}

impl TimerName for Timer {
    const ALL: &'static [Self] = &[
        Self::Hold,
        Self::Retry,
        Self::Renew,
        Self::Expire,
        Self::Update,
        Self::Interface,
        Self::HomeAddress,
    ];
    fn index(self) -> usize {
        self as usize
    }
}

/// The role of a mobile node (RFC 5944, section 3.6).
#[derive(Debug)]
pub struct MobileNode {
    config: MobileNodeConfig,
    home: Ipv4Addr,
    listens: Vec<Listen>,
    registrar: Registrar,
    /// The interface in use: that of the agent in use, or the one on which the node searches for an agent.
    used: NodeInterface,
    /// The further interfaces.
    others: Vec<NodeInterface>,
    /// The number of the configured interface, which always has the home address.
    first: Iface,
    /// The further interface that has the home address too: the node is at home by it. `None` if there is none.
    at_home: Option<Iface>,
    /// The further interfaces to which the host did not give the home address (`true`), or from which it did not take it.
    failed_addresses: BTreeMap<Iface, bool>,
    /// The agent of another interface to which packets are still sent; `None` if packets are sent by `used`.
    old_path: Option<OldPath>,
    signals: Signals,
    /// The co-located care-of address; not used if the node takes care-of addresses from foreign agents.
    own: OwnAddress,
    /// The router of a visited network whose link address is fixed: this router was heard as an agent. `None` if the link
    /// address of the router is not fixed, or the router is the agent in use.
    fixed: Option<Ipv4Addr>,
    /// The reverse tunnel from the co-located care-of address; `None` if packets are not sent through it.
    reverse: Option<Reverse>,
    /// What is known about the path of `reverse`.
    tunnels: Tunnels,
    announcer: Announcer,
    timers: Timers<Timer, 7>,
    /// The agent in use: the agent that was chosen last. `None` if none was chosen, or if it was lost.
    attached: Option<Ipv4Addr>,
    /// When the last registration with an agent began; `None` if the next registration needs no pause.
    chosen: Option<Instant>,
    /// The agent to register with when the pause between registrations has ended.
    next: Option<Ipv4Addr>,
    /// Whether the wait for `next` was marked since the link came up.
    waits_marked: bool,
    /// Whether the home agent has denied the last request with [`Code::HomeResources`](crate::message::Code::HomeResources).
    lacks_resources: bool,
    /// An agent that has expired, through which packets are still sent while the registration with it holds and the
    /// link does not change.
    kept: Option<Ipv4Addr>,
    /// The random numbers of the pauses between solicitations, and after denials.
    rng: Rng,
    /// The agents that movement detection decided not to use, each with the reason, since an agent was chosen and since
    /// the link came up.
    ignored: BTreeSet<(Ipv4Addr, Why)>,
    /// The packets to name to the previous foreign agent.
    received: LastReceived,
    refused: Refusals,
}

const DEFAULT_ROUTE: RouteKey = RouteKey::all(Class::HOST);

impl MobileNode {
    /// Creates a mobile node on a host with these interfaces. An error names the invalid key of the configuration, for
    /// example `interface` if the host does not have this interface.
    pub fn new(config: MobileNodeConfig, interfaces: Interfaces<'_>, rng: Rng) -> Result<Self, ConfigError> {
        config.check()?;
        let iface = interfaces.number("interface", &config.interface)?;
        let used = NodeInterface::new(iface, &config.first_interface(), config.care_of);
        let mut others = Vec::new();
        for further in &config.further_interfaces {
            let iface = interfaces.number("further_interfaces", &further.name)?;
            others.push(NodeInterface::new(iface, further, config.care_of));
        }
        let solicitations = rng.fork("solicitations");
        Ok(Self {
            home: config.address.address,
            listens: listens(&used, &others, &config),
            registrar: Registrar::new(
                config.address.address,
                HomeAgents::new(config.address, &config.home_agent, &config.backup_home_agents),
                Associations::new(&config.foreign_agents),
                config.expected_round_trip,
                Settings::of(&config),
                rng,
            ),
            used,
            others,
            first: iface,
            at_home: None,
            failed_addresses: BTreeMap::new(),
            old_path: None,
            signals: Signals::new(&config),
            own: OwnAddress::new(&config, iface),
            fixed: None,
            reverse: None,
            tunnels: Tunnels::default(),
            announcer: Announcer::new(config.announcements.clone()),
            timers: Timers::default(),
            attached: None,
            chosen: None,
            next: None,
            waits_marked: false,
            lacks_resources: false,
            kept: None,
            rng: solicitations,
            ignored: BTreeSet::new(),
            received: LastReceived::default(),
            refused: Refusals::default(),
            config,
        })
    }

    fn start(&mut self, out: &mut Outbox) {
        self.route(Action::Drop(NO_AGENT), Action::Drop(NO_AGENT), out);
        self.start_interfaces(out);
    }

    // --- agents (RFC 5944, section 2.4) ----------------------------------------------------------------------------

    fn advertisement(
        &mut self,
        now: Instant,
        rx: Rx,
        packet: &Packet,
        out: &mut Outbox,
    ) -> Result<(), Reason> {
        let advertisement = Advertisement::parse(&rx.header, rx.payload(packet))?;
        let (agent, mac) = (advertisement.src, packet.link.src);
        let heard_on = self.interface(rx.iface).ok_or(IMPLAUSIBLE_AGENT)?;
        if mac.is_group() || !ipv4::is_host(agent) || agent == self.home {
            return Err(IMPLAUSIBLE_AGENT);
        }
        // The node signs the care-of address in its request, but the advertisement is not authenticated. So the care-of
        // address must be plausible.
        let own = self.config.address;
        let is_none = |care_of| !ipv4::is_host(care_of) || care_of == self.home || own.is_broadcast(care_of);
        if offered(&advertisement).is_some_and(is_none) {
            return Err(IMPLAUSIBLE_AGENT);
        }
        let known = heard_on.heard(agent);
        if known.is_some_and(|known| known.mac != mac) {
            return Err(ANOTHER_LINK_ADDRESS);
        }
        let is_in_use = rx.iface == self.used.iface;
        if advertisement.lifetime == 0 {
            self.refused.count(AGENT_LEFT);
            self.forget(rx.iface, agent);
            if is_in_use {
                self.lost(now, agent, None, out);
            }
            return Ok(());
        }
        // An agent that takes no new visitors is removed from the list, unless it is the agent in use.
        // A home agent takes its own mobile nodes, also if it is a foreign agent that takes no visitors.
        let is_busy = advertisement.flags.has(AgentFlags::BUSY) && !self.is_home_agent(agent);
        let keep = if is_in_use { self.attached } else { self.old_path.map(|old| old.agent) };
        if is_busy && keep != Some(agent) {
            self.forget(rx.iface, agent);
            return Ok(());
        }
        self.registrar.hear_challenge(agent, advertisement.challenge.clone());
        let Some(heard_on) = self.interface_mut(rx.iface) else { return Ok(()) };
        let change = heard_on.agents.hear(now, &advertisement, mac, keep);
        if advertisement.flags.has(AgentFlags::HOME) && self.registrar.meet_home_agent(agent) {
            out.mark(MobileIpEvent::HomeAgentChosen { home_agent: agent }.into());
        }
        if is_in_use {
            self.decide(now, agent, change, out);
        } else {
            self.heard_elsewhere(rx.iface);
        }
        Ok(())
    }

    /// Removes an agent from the list of an interface.
    fn forget(&mut self, iface: Iface, agent: Ipv4Addr) {
        if let Some(own) = self.interface_mut(iface) {
            own.agents.forget(agent);
        }
    }

    /// Ends the solicitations by an interface that is not in use, because an agent was heard on it.
    fn heard_elsewhere(&mut self, iface: Iface) {
        let home_agents = self.registrar.home_agents();
        let mut others = self.others.iter_mut().filter(|other| other.iface == iface);
        if let Some(other) = others.find(|other| other.has_agent(home_agents)) {
            (other.solicit_at, other.solicitations) = (None, 0);
        }
    }

    // --- movement detection (RFC 5944, section 2.4.2) --------------------------------------------------------------

    fn situation(&self, now: Instant) -> Situation<'_> {
        Situation {
            now,
            policy: self.config.movement,
            home_first: self.config.home_first,
            home_agents: self.registrar.home_agents(),
            agents: &self.used.agents,
            signals: &self.signals,
            in_use: self.attached,
            triggered: self.used.triggered,
            linked: if self.config.link_trigger { self.used.linked } else { Instant::ZERO },
            registered: self.timers.due(Timer::Expire).is_some(),
            lifetime: self.config.lifetime.as_secs() as u16,
        }
    }

    /// Decides about a usable agent that was just heard.
    fn decide(&mut self, now: Instant, agent: Ipv4Addr, change: AgentChange, out: &mut Outbox) {
        if !self.is_usable(agent) {
            return;
        }
        let decision = self.situation(now).decide(Occurrence::Heard(agent, change));
        self.used.triggered = false;
        if self.attached == Some(agent) {
            self.used.solicit_at = None;
            self.detected(agent, out);
            self.time_updates(); // overdue Binding Updates have waited for a link
        }
        match decision {
            Decision::Register(agent, why) => {
                self.used.solicit_at = None;
                self.turn(now, agent, why, out);
            }
            Decision::Stay(Why::SameAgent) | Decision::Search(_) => {}
            Decision::Stay(why) => {
                if self.ignored.len() < IGNORED && self.ignored.insert((agent, why)) {
                    let policy = self.config.movement.name();
                    out.mark(MobileIpEvent::AgentIgnored { agent, policy, why: why.name() }.into());
                }
            }
        }
    }

    /// Registers with an agent that movement detection has chosen.
    fn turn(&mut self, now: Instant, agent: Ipv4Addr, why: Why, out: &mut Outbox) {
        self.ignored.clear();
        let policy = self.config.movement.name();
        out.mark(MobileIpEvent::AgentChosen { agent, policy, why: why.name() }.into());
        self.choose(now, agent, out);
    }

    /// Records the end of movement detection if the agent was heard since the link came up. A timer can choose an agent
    /// that was heard before, and that may be out of reach now.
    fn detected_if_heard(&mut self, agent: Ipv4Addr, out: &mut Outbox) {
        if self.used.heard(agent).is_some() {
            self.detected(agent, out);
        }
    }

    /// Records the end of movement detection, at most once after each time that the link came up.
    fn detected(&mut self, agent: Ipv4Addr, out: &mut Outbox) {
        if std::mem::take(&mut self.used.detecting) {
            out.mark(MobileIpEvent::AgentHeard { agent }.into());
        }
    }

    /// Returns whether the node can register through this agent ([`Agents::is_usable`]).
    fn is_usable(&self, agent: Ipv4Addr) -> bool {
        self.used.agents.is_usable(agent, self.registrar.home_agents())
    }

    /// Returns whether an address is the home address or the co-located care-of address.
    fn is_own(&self, address: Ipv4Addr) -> bool {
        address == self.home || Some(address) == self.own.address()
    }

    /// Registers with an agent, now or when the pause between registrations has ended.
    fn choose(&mut self, now: Instant, agent: Ipv4Addr, out: &mut Outbox) {
        let debounced = self.used.hinted.filter(|_| self.used.hinted_again).map(|at| at + DEBOUNCE);
        let free = self.chosen.map(|at| at + REGISTRATION_PAUSE);
        let free = free.map(|free| debounced.map_or(free, |debounced| free.min(debounced)));
        if let Some(free) = free.filter(|free| now < *free) {
            self.detected_if_heard(agent, out);
            let is_known = self.next.replace(agent) == Some(agent);
            let is_marked = std::mem::replace(&mut self.waits_marked, true);
            if !(is_known && is_marked) {
                out.mark(MobileIpEvent::RegistrationWaits { agent }.into());
            }
            return self.timers.set(Timer::Hold, free);
        }
        self.next = None;
        self.timers.stop(Timer::Hold);
        self.attach(now, agent, out);
    }

    fn attach(&mut self, now: Instant, agent: Ipv4Addr, out: &mut Outbox) {
        // The agent may have stopped taking registrations since it was chosen.
        let Some(known) = self.used.agents.get(agent).filter(|_| self.is_usable(agent)).cloned() else {
            return;
        };
        let left = self.attached.replace(agent).filter(|left| *left != agent);
        self.chosen = Some(now);
        if std::mem::take(&mut self.used.hinted_again) {
            self.used.hinted = Some(now);
        }
        self.detected_if_heard(agent, out);
        let kept = self.kept.take().filter(|kept| *kept != agent);
        for left in left.into_iter().chain(kept) {
            self.end_tunnel_to(left, out);
        }
        for left in left.filter(|left| !self.is_home_agent(*left)).into_iter().chain(kept) {
            out.neighbor(self.used.iface, left, None);
        }
        if self.is_home_agent(agent) {
            // The tunnel to an own care-of address stays open as long as the node has the address: packets may be under way.
            self.end_reverse(out);
            self.unfix_router(out);
            self.end_old_path(out);
            self.use_heard_home_agent(now, agent, out);
            self.return_home(now, known.mac, out);
        } else if self.own.address().is_some() {
            out.neighbor(self.used.iface, agent, Neighbor::At(known.mac));
            self.visit(out);
        } else {
            self.leave_home(agent, &known, out);
        }
        self.registrar.turn_to(self.target(agent));
        self.register(now, out);
        out.notify(node::Notification::Gateway(agent));
    }

    /// Returns what to register with an agent. `None` if the agent is not in the list, or is a foreign agent with
    /// registration lifetime 0: a request for lifetime 0 would end the registration.
    fn target(&self, agent: Ipv4Addr) -> Option<Target> {
        let known = self.used.agents.get(agent)?;
        let at_home = self.is_home_agent(agent);
        if !at_home && known.registration_lifetime == 0 {
            return None;
        }
        let lifetime = (self.config.lifetime.as_secs() as u16).min(known.registration_lifetime);
        let own = self.own.address().filter(|_| !at_home);
        Some(Target {
            iface: self.used.iface,
            agent,
            mac: known.mac,
            care_of: own.or(known.care_of.filter(|_| !at_home)).unwrap_or(self.home),
            lifetime: if at_home { 0 } else { lifetime },
            flags: self
                .config
                .flags()
                .with(RequestFlags::SIMULTANEOUS, self.asks_simultaneous())
                .with(RequestFlags::REVERSE, self.asks_reverse(known))
                .with(RequestFlags::DECAPSULATION, own.is_some())
                .with(
                    encapsulation::asks(self.config.encapsulation),
                    own.is_some() || self.has_encapsulation(known),
                ),
            encapsulating: self.config.reverse_tunnel == ReverseTunnel::Encapsulating && own.is_none(),
            is_co_located: own.is_some(),
            is_smooth: known.flags.has(AgentFlags::smooth(&self.config.numbers)),
        })
    }

    /// Handles an agent that has expired or left. `last` is the state of the agent when it expired; `None` if it
    /// advertised lifetime 0.
    fn lost(&mut self, now: Instant, agent: Ipv4Addr, last: Option<&Agent>, out: &mut Outbox) {
        if self.next == Some(agent) {
            self.next = None;
            self.timers.stop(Timer::Hold);
        }
        if self.kept == Some(agent) {
            self.end_kept(out);
        }
        if self.fixed == Some(agent) {
            self.unfix_router(out);
        }
        if self.attached != Some(agent) {
            return;
        }
        out.mark(MobileIpEvent::AgentLost { agent }.into());
        match self.situation(now).decide(Occurrence::AgentLost) {
            Decision::Register(other, why) => self.turn(now, other, why, out),
            Decision::Search(_) => self.search(now, agent, last, out),
            Decision::Stay(why) => {
                let policy = self.config.movement.name();
                out.mark(MobileIpEvent::AgentKept { agent, policy, why: why.name() }.into());
            }
        }
    }

    /// Ends the use of `agent`, because there is no agent to register with, and solicits. `last` is as in
    /// [`Self::lost`].
    fn search(&mut self, now: Instant, agent: Ipv4Addr, last: Option<&Agent>, out: &mut Outbox) {
        if self.own.address().is_some() && self.used.mac.is_some() {
            return self.register_directly(now, out);
        }
        self.attached = None;
        self.registrar.turn_to(None);
        self.timers.stop(Timer::Retry);
        self.timers.stop(Timer::Renew);
        // At home, the node is an ordinary host and needs no home agent. Away from home, perhaps only advertisements
        // were lost. So an expired foreign agent stays the router while the registration holds, until the link changes
        // or another agent is chosen.
        if !self.is_home_agent(agent) {
            self.kept = Some(agent);
            if !last.is_some_and(|last| self.is_registered_by(last)) {
                self.end_kept(out);
            }
        }
        self.solicit(now, out);
    }

    /// Returns whether the registration with this agent holds, the link is up, and the agent was heard since the link
    /// came up.
    fn is_registered_by(&self, agent: &Agent) -> bool {
        let holds = agent.care_of.is_some() && agent.care_of == self.registrar.care_of();
        holds && self.used.mac.is_some() && self.used.has_heard(agent)
    }

    /// Removes the agent in `kept`, if there is one. From now on, packets are dropped with [`NO_AGENT`].
    fn end_kept(&mut self, out: &mut Outbox) {
        if let Some(agent) = self.kept.take() {
            self.end_tunnel_to(agent, out);
            out.neighbor(self.used.iface, agent, None);
            self.route(Action::Drop(NO_AGENT), Action::Drop(NO_AGENT), out);
        }
    }

    // --- registration (RFC 5944, section 3.6) ----------------------------------------------------------------------

    /// Sends the next Registration Request, and sets the time of its repetition. Does nothing if the registrar has no
    /// target: no agent to register with.
    fn register(&mut self, now: Instant, out: &mut Outbox) {
        let receives = self.receives_elsewhere();
        let Some((packet, event, retry)) = self.registrar.request(now, receives) else { return };
        // At home, packets of the previous home agent may still be under way to the own address.
        if !self.is_at_home() {
            self.own.follow(self.registrar.home_agent(), self.opened(), out);
        }
        self.lacks_resources = false;
        out.mark(event.into());
        self.name_received(packet.link.dst, out);
        if packet.link.dst == Mac::ZERO {
            out.send_routed(packet); // to the home agent, through the router of the visited network
        } else {
            out.send(self.used.iface, packet);
        }
        self.timers.set(Timer::Retry, retry);
        if !self.registrar.ends_other_binding() {
            self.timers.stop(Timer::Renew);
        }
        self.follow_updates(now, out);
    }

    fn registration(
        &mut self,
        now: Instant,
        rx: Rx,
        packet: &Packet,
        out: &mut Outbox,
    ) -> Result<(), Reason> {
        if let Some(ends) = self.binding_message(&rx, packet, out) {
            return ends;
        }
        let received = Received::of(rx.header, rx.payload(packet))?;
        let Registration::Reply(reply) = received.message else { return Err(refusal::UNEXPECTED) };
        if rx.iface != self.used.iface {
            return Err(refusal::UNEXPECTED);
        }
        match self.registrar.reply(now, received.ip.src, &reply)? {
            ReplyOutcome::Registered { care_of, lifetime, sent } => {
                out.mark(MobileIpEvent::Registered { care_of, lifetime }.into());
                self.registered(now, lifetime, sent, out);
                self.end_other_bindings(now, out);
                self.ask_to_keep(now, out);
            }
            ReplyOutcome::Again => {
                out.mark(MobileIpEvent::Denied { code: reply.code }.into());
                self.register(now, out);
            }
            ReplyOutcome::Denied { by_agent, is_proven } => {
                self.denied(now, reply.code, (by_agent, is_proven), out);
            }
        }
        Ok(())
    }

    /// Sets the timers of a registration of `lifetime` seconds. Sets the routes through the agent if it forwards
    /// packets of registered nodes only. The lifetime counts from the time of the request. So it ends at this host
    /// before it ends at the home agent (RFC 5944, section 3.6.2.2).
    fn registered(&mut self, now: Instant, lifetime: u16, sent: Instant, out: &mut Outbox) {
        if self.next == self.attached {
            self.next = None; // this agent has answered: no further request is due
            self.timers.stop(Timer::Hold);
        }
        // A reply shows, as an advertisement does, that the agent is on the link.
        if let Some(agent) = self.attached {
            self.detected(agent, out);
        }
        self.timers.stop(Timer::Retry);
        self.used.solicitations = 0;
        self.used.avoided = None;
        if self.end_old_path(out) {
            let way = self.way_by_agent();
            self.route(way, way, out);
        }
        let is_late = self.config.movement == Movement::Expiry;
        let at_home = self.is_at_home();
        let lifetime = if lifetime == 0 && is_late && at_home {
            self.config.lifetime
        } else {
            Duration::from_secs(lifetime.into())
        };
        if lifetime.is_zero() {
            self.timers.stop(Timer::Renew);
            self.timers.stop(Timer::Expire);
            return self.stop_reverse(out);
        }
        // The renewal leaves at least two round trips before the lifetime ends, because a request may be lost. But it
        // is not before `REGISTRATION_PAUSE` has passed: otherwise, a reply that took most of the lifetime would cause
        // constant renewal.
        let in_time = lifetime.saturating_sub(self.registrar.round_trip() * 2);
        let renew = sent + if is_late { in_time } else { in_time.min(lifetime * 4 / 5) };
        self.timers.set(Timer::Renew, renew.max(now + REGISTRATION_PAUSE));
        self.timers.set(Timer::Expire, sent + lifetime);
        if self.reverse_directly(out) {
            return;
        }
        let known = self.attached.and_then(|agent| Some((agent, self.used.agents.get(agent)?)));
        if let Some((agent, known)) = known.filter(|_| !at_home) {
            let forward = Action::Forward(Hop::mac(self.used.iface, known.mac));
            let is_tunnel = self.asks_reverse(known) && self.own.address().is_none();
            if is_tunnel && self.config.reverse_tunnel == ReverseTunnel::Encapsulating {
                self.tunnel_to(agent, forward, out);
            } else if known.registered_only {
                self.route(forward, forward, out);
            }
        }
    }

    // --- time ------------------------------------------------------------------------------------------------------

    fn timeout(&mut self, now: Instant, out: &mut Outbox) {
        while let Some((agent, last)) = self.used.agents.expired(now) {
            self.lost(now, agent, Some(&last), out);
        }
        self.expire_elsewhere(now, out);
        self.solicit_if_due(now, out);
        self.announcer.timeout(now, out);
        if self.own.timeout(now, out) {
            self.own_address_ready(now, out);
        }
        while self.tunnels.expired(now).is_some() {
            self.adjust_reverse(out);
        }
        while let Some(timer) = self.timers.pop(now) {
            match timer {
                Timer::Hold => {
                    if let Some(agent) = self.next.take() {
                        self.choose(now, agent, out);
                    }
                }
                Timer::Retry => self.retry(now, out),
                Timer::Renew => self.renew(now, out),
                Timer::Expire => self.expire(now, out),
                Timer::Update => self.follow_updates(now, out),
                Timer::HomeAddress => self.repeat_home_address(out),
                Timer::Interface => {} // the interfaces are reviewed after each input
            }
        }
    }

    /// Removes the agents that have expired on interfaces that are not in use.
    fn expire_elsewhere(&mut self, now: Instant, out: &mut Outbox) {
        let home_agents = self.registrar.home_agents();
        for other in &mut self.others {
            let mut has_expired = false;
            while other.agents.expired(now).is_some() {
                has_expired = true;
            }
            if has_expired && !other.has_agent(home_agents) {
                other.solicit(now, self.home, &mut self.rng, out);
            }
        }
    }

    fn renew(&mut self, now: Instant, out: &mut Outbox) {
        match (self.situation(now).decide(Occurrence::RenewalDue), self.attached) {
            (Decision::Register(other, why), _) => self.turn(now, other, why, out),
            (Decision::Search(_), Some(agent)) => self.search(now, agent, None, out),
            (Decision::Stay(_) | Decision::Search(_), _) => {
                self.registrar.turn_to(self.present_target());
                self.register(now, out);
            }
        }
    }

    fn expire(&mut self, now: Instant, out: &mut Outbox) {
        self.registrar.expire();
        self.end_kept(out);
        self.stop_reverse(out);
        out.mark(MobileIpEvent::Expired.into());
        match (self.situation(now).decide(Occurrence::Expired), self.attached) {
            (Decision::Register(other, why), _) => self.turn(now, other, why, out),
            (Decision::Search(_), Some(agent)) => self.search(now, agent, None, out),
            (Decision::Stay(_) | Decision::Search(_), _) => {}
        }
    }
}

impl Role for MobileNode {
    fn name(&self) -> &'static str {
        MOBILE_NODE
    }

    fn listens(&self) -> &[Listen] {
        &self.listens
    }

    fn verbs(&self) -> &[&'static str] {
        &["register", "deregister"]
    }

    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Outbox) {
        match input {
            Input::Start(boot) => {
                self.registrar.set_clock(boot.wall);
                self.start(out);
            }
            Input::Timeout => self.timeout(now, out),
            Input::Packet(rx, packet) => self.packet(now, rx, packet, out),
            Input::Link(iface, link) => self.link(now, iface, link, out),
            Input::Command(id, command) => {
                let answer = self.command(now, command, out);
                out.answer(id, answer);
            }
            Input::Notification(notification) => self.notified(now, notification, out),
            Input::Wall(zero) => self.registrar.set_clock(zero),
            Input::Failed(fault) => self.home_address_failed(now, fault, out),
            Input::Idle(..) | Input::Notice(_) | Input::Stream(..) | Input::Serve(..) | Input::Stored(_) => {}
        }
        self.review_interfaces(now, out);
    }

    fn deadline(&self) -> Option<Instant> {
        let due = [self.timers.next(), self.announcer.due(), self.own.due(), self.tunnels.due()];
        let interfaces = [&self.used].into_iter().chain(&self.others).map(NodeInterface::due);
        due.into_iter().chain(interfaces).flatten().min()
    }

    fn status(&self) -> Value {
        let agents = self.used.agents.iter().map(|(who, _)| Value::from(who)).collect();
        let first = [
            ("state", Value::from(self.registrar.state())),
            ("agent", self.attached.map_or(Value::None, Value::from)),
        ];
        let last = [("agents", Value::List(agents)), ("refused", self.refused.status())];
        let tunnels = self.tunnels.status(self.registrar.clock());
        let all = [(&self.used, true)].into_iter().chain(self.others.iter().map(|other| (other, false)));
        let all = Value::List(all.map(|(own, is_in_use)| own.status(is_in_use)).collect());
        let several = (!self.others.is_empty()).then_some(("interfaces", all));
        let own = first.into_iter().chain(self.registrar.status()).chain(last).chain(tunnels);
        Value::map(own.chain(several))
    }

    /// Returns 1 if the mobile node has a registration.
    fn entries(&self) -> usize {
        usize::from(self.registrar.care_of().is_some())
    }
}
