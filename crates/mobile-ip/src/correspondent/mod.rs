//! A correspondent with a binding cache (draft-ietf-mobileip-optim-09): it sends packets for a mobile node straight to the
//! care-of address, and not by the home agent.
//!
//! ```text
//!                          ┌── home agent ──┐  Binding Update, when the home agent has seen a packet
//!   correspondent <────────┘                │
//!         ╚════════════ tunnel ═════════ foreign agent ── mobile node
//! ```
//!
//! The home agent sends a Binding Update. Its authentication and its Identification are checked, and then this host's own
//! packets to the home address enter a tunnel to the care-of address. Programs of the host do not notice that. An entry
//! ends with its lifetime, with a later Binding Update, if there is no room, or if the care-of address is unreachable. A later
//! Update that is not near the clock ends it too. From then on, packets go to the home network again, where the home agent
//! tunnels them.

mod cache;
mod replay;

pub use replay::WRONG_NONCE;

use crate::clock::Clock;
use crate::config::{Associations, CorrespondentConfig, Replay, TrustedHomeAgent};
use crate::limiter::Limiter;
use crate::mark::{BINDING_CACHE, HandoffEvent};
use crate::message::{
    Acknowledge, Association, Binding, BindingRequest, INFINITE, PORT, Status, Update, datagram,
};
use crate::refusal;
use crate::tunnels::{NOT_ABOUT_A_TUNNEL, Tunnels};
use auth::{ReplayWindow, Untimely};
use cache::{Cache, Entry};
use node::config::ConfigError;
use node::{
    Action, Class, Expiry, Input, Lifetime, Listen, Outbox, Proto, Refusals, Rng, Role, Route, RouteKey, Rx,
    Value,
};
use replay::ReplayState;
use std::collections::BTreeMap;
use wire::tunnel::Kind;
use wire::{Duration, Iface, Instant, Ipv4Addr, Mac, Packet, Prefix, Reason, SocketAddrV4, icmp, ipv4};

/// The home address of a Binding Update is not in the `networks` of the home agent, or is an address of this host.
pub const NOT_OF_THE_HOME_AGENT: Reason = Reason("not_of_the_home_agent");
/// The care-of address of a Binding Update was reported as unreachable within the last minute.
pub const CARE_OF_UNREACHABLE: Reason = Reason("care_of_unreachable");

/// The interval in which the role is notified once that an entry is used (not from an RFC).
const NOTICE: Duration = Duration::from_secs(1);
/// An entry that was used within this time is in use (not from an RFC).
const IN_USE: Duration = Duration::from_secs(5);
/// The number of Binding Requests before the end of an entry. The second one is sent if the first is not answered.
const REQUESTS: u8 = 2;
/// How long a care-of address that was reported as unreachable is not used for its mobile node (not from an RFC).
const AVOIDED: Duration = Duration::from_mins(1);
/// The maximum number of care-of addresses that are not used. If there are more, the oldest one is used again.
const MOST_AVOIDED: usize = 1024;

/// The role of a correspondent (draft-ietf-mobileip-optim-09, section 3.1).
#[derive(Debug)]
pub struct Correspondent {
    config: CorrespondentConfig,
    listens: [Listen; 2],
    clock: Clock,
    /// When this role started.
    started: Instant,
    home_agents: Associations,
    /// The home networks of each home agent; empty: any.
    networks: BTreeMap<Ipv4Addr, Vec<Prefix>>,
    cache: Cache,
    replay: ReplayState,
    /// When the home agent of each entry is asked for a new one.
    asking: Expiry<Ipv4Addr>,
    tunnels: Tunnels,
    /// The mobile nodes and care-of addresses that are not used, until this time.
    avoided: Expiry<(Ipv4Addr, Ipv4Addr)>,
    /// Limits refusals and repeated answers, by home agent and mobile node.
    answers: Limiter<(Ipv4Addr, Ipv4Addr)>,
    /// Limits Binding Requests because of a wrong nonce, by home agent and the nonce that the Update announces.
    requests: Limiter<(Ipv4Addr, u32)>,
    /// The number of Binding Updates that changed the cache.
    updates: u64,
    refused: Refusals,
}

/// The number of notices of a correspondent with a small cache: programs of the host can have several addresses.
const USUAL_NOTICES: usize = 1024;

impl Correspondent {
    /// Creates a correspondent. An error names the invalid key of the configuration.
    pub fn new(config: CorrespondentConfig, rng: Rng) -> Result<Self, ConfigError> {
        config.check()?;
        let peers: Vec<_> = config.home_agents.iter().map(TrustedHomeAgent::peer).collect();
        let mut networks: BTreeMap<Ipv4Addr, Vec<Prefix>> = BTreeMap::new();
        for agent in &config.home_agents {
            networks.entry(agent.address).or_default().extend(&agent.networks);
        }
        Ok(Self {
            listens: [Listen::Local(Proto::Udp(PORT)), Listen::IcmpAbout(Proto::IpIp)],
            clock: Clock::default(),
            started: Instant::ZERO,
            home_agents: Associations::new(&peers),
            networks,
            cache: Cache::new(config.entries),
            replay: ReplayState::new(ReplayWindow::new(config.replay_window), rng),
            asking: Expiry::default(),
            tunnels: Tunnels::default(),
            avoided: Expiry::default(),
            answers: Limiter::default(),
            requests: Limiter::default(),
            updates: 0,
            refused: Refusals::default(),
            config,
        })
    }

    fn packet(&mut self, now: Instant, rx: Rx, packet: Packet, out: &mut Outbox) {
        let payload = rx.payload(&packet);
        let ends = match rx.header.protocol {
            ipv4::ICMP if payload.first().is_some_and(|kind| icmp::is_error(*kind)) => {
                match self.tunnel_error(now, payload, out) {
                    // It may be about a tunnel of another role of this host.
                    Err(NOT_ABOUT_A_TUNNEL) => return out.pass(rx, packet),
                    ends => ends,
                }
            }
            // Messages to another address of this host are for its agents.
            ipv4::UDP if rx.header.dst == self.config.address => {
                match Binding::received(&rx.header, payload, &self.config.numbers) {
                    Ok(Some((from, Binding::Update(update)))) => self.update(now, from, &update, out),
                    // Other messages are for agents too.
                    Ok(_) => return out.pass(rx, packet),
                    Err(malformed) => Err(malformed.into()),
                }
            }
            _ => return out.pass(rx, packet),
        };
        self.refused.end(rx.iface, packet, ends, out);
    }

    // --- Binding Updates (draft-ietf-mobileip-optim-09, section 4.3) -----------------------------------------------

    fn update(
        &mut self,
        now: Instant,
        from: SocketAddrV4,
        update: &Update,
        out: &mut Outbox,
    ) -> Result<(), Reason> {
        let (home_agent, numbers) = (*from.ip(), self.config.numbers);
        let spi = update.authentication.as_ref().ok_or(refusal::NO_AUTHENTICATION)?.spi;
        let association = self.home_agents.named(home_agent, spi).ok_or(refusal::NO_ASSOCIATION)?.clone();
        if !update.verify(numbers.route_authentication, &association, &numbers) {
            return Err(refusal::BAD_AUTHENTICATION);
        }
        if self.is_repeated(home_agent, update) {
            // The network has duplicated the last Binding Update, or its Acknowledge was lost.
            if !self.answers.may(now, (home_agent, update.home)) {
                return Err(refusal::ANSWERED);
            }
            self.acknowledge(from, update, Status::ACCEPTED, &association, out);
            return Ok(());
        }
        match self.judge(now, home_agent, update) {
            Ok(identification) => {
                self.updates += 1;
                self.apply(now, home_agent, spi, identification, update, out);
                self.acknowledge(from, update, Status::ACCEPTED, &association, out);
                Ok(())
            }
            Err((status, reason)) => {
                if [refusal::IMPLAUSIBLE_CARE_OF, CARE_OF_UNREACHABLE].contains(&reason) {
                    // The mobile node is not at the care-of address of the entry any more.
                    self.outdate(update, home_agent, out);
                } else if reason == Untimely::OutsideWindow.reason() {
                    self.outlive(now, update, home_agent, out);
                }
                if self.answers.may(now, (home_agent, update.home)) {
                    self.acknowledge(from, update, status, &association, out);
                }
                if reason == WRONG_NONCE {
                    let announced = update.identification.map(replay::announced);
                    if announced.is_some_and(|nonce| self.requests.may(now, (home_agent, nonce))) {
                        self.request(now, update.home, (home_agent, spi), announced, out);
                    }
                }
                Err(reason)
            }
        }
    }

    /// Returns whether an authentic Binding Update is that of the present entry, or the one that has deleted the last entry.
    fn is_repeated(&self, home_agent: Ipv4Addr, update: &Update) -> bool {
        let Some(identification) = update.identification else { return false };
        match self.cache.get(update.home) {
            Some(entry) => entry.home_agent == home_agent && entry.identification == identification,
            None => update.deletes() && self.replay.is_repeated((home_agent, update.home), identification),
        }
    }

    /// Decides whether to accept an authentic Binding Update. Returns its Identification, or fails with the status of the
    /// Acknowledge and the reason.
    fn judge(
        &mut self,
        now: Instant,
        home_agent: Ipv4Addr,
        update: &Update,
    ) -> Result<u64, (Status, Reason)> {
        let Update { home, care_of, .. } = *update;
        let style = self.home_agents.replay(home_agent);
        let last = self.cache.get(home).filter(|entry| entry.home_agent == home_agent);
        let last = last.map(|entry| entry.identification);
        let checked =
            self.replay.check(self.clock.ntp(now), (home_agent, home), style, last, update.identification);
        let identification = checked.map_err(|reason| (Status::IDENTIFICATION, reason))?;
        let networks = self.networks.get(&home_agent).map_or(&[][..], Vec::as_slice);
        let is_served = networks.is_empty() || networks.iter().any(|network| network.contains(home));
        if !is_served || !self.is_elsewhere(home) || home == home_agent {
            return Err((Status::PROHIBITED, NOT_OF_THE_HOME_AGENT));
        }
        if !update.deletes() && !self.is_elsewhere(care_of) {
            return Err((Status::MALFORMED, refusal::IMPLAUSIBLE_CARE_OF));
        }
        while self.avoided.pop(now).is_some() {}
        if !update.deletes() && self.avoided.has((home, care_of)) {
            return Err((Status::UNSPECIFIED, CARE_OF_UNREACHABLE));
        }
        Ok(identification)
    }

    /// Removes the entry that an authentic, newer Binding Update replaces, though the Update itself is refused. Without an
    /// entry, notes that older Updates must be refused too.
    fn outdate(&mut self, update: &Update, home_agent: Ipv4Addr, out: &mut Outbox) {
        self.forget(update.home, "outdated", out);
        if let Some(identification) = update.identification {
            self.replay.raise(home_agent, self.home_agents.replay(home_agent), identification);
        }
    }

    /// Removes the entry of an authentic Binding Update that is later, and outside of the window: the clock of one host is wrong, or
    /// the Update was delayed. Packets go to the home network again. Its timestamp does not make other Updates old, because it
    /// may be wrong. A repetition removes nothing.
    fn outlive(&mut self, now: Instant, update: &Update, home_agent: Ipv4Addr, out: &mut Outbox) {
        let Some(identification) = update.identification else { return };
        let is_new = self.replay.is_new_outside(self.clock.ntp(now), home_agent, identification);
        let is_ours = self.cache.get(update.home).is_some_and(|entry| entry.home_agent == home_agent);
        if is_new && is_ours {
            self.forget(update.home, "outdated", out);
        }
    }

    /// Returns whether an address can be another host's.
    fn is_elsewhere(&self, address: Ipv4Addr) -> bool {
        ipv4::is_host(address) && address != self.config.address && !self.config.own.contains(&address)
    }

    fn apply(
        &mut self,
        now: Instant,
        home_agent: Ipv4Addr,
        spi: u32,
        identification: u64,
        update: &Update,
        out: &mut Outbox,
    ) {
        let Update { home, care_of, lifetime, .. } = *update;
        if update.deletes() {
            self.forget(home, "updated", out);
            self.replay.deleted((home_agent, home), identification);
            let style = self.home_agents.replay(home_agent);
            return self.replay.raise(home_agent, style, identification);
        }
        if self.cache.get(home).is_none()
            && let Some(oldest) = self.cache.oldest()
        {
            self.forget(oldest, "no_room", out);
        }
        let span = Duration::from_secs(lifetime.into());
        let ends = (lifetime != INFINITE).then(|| now + span);
        let asks = |kind, is_asked| is_asked && self.config.encapsulations.contains(&kind);
        let kind = if asks(Kind::Minimal, update.minimal) {
            Kind::Minimal
        } else if asks(Kind::Gre, update.gre) {
            Kind::Gre
        } else {
            Kind::IpInIp
        };
        let before =
            self.cache.get(home).map(|entry| (entry.home_agent, entry.identification, entry.care_of));
        if let Some((other, last, _)) = before.filter(|(other, ..)| *other != home_agent) {
            self.replay.raise(other, self.home_agents.replay(other), last);
        }
        let (since, used, requests) = (now, now, 0);
        let entry =
            Entry { care_of, kind, home_agent, spi, identification, lifetime, ends, since, used, requests };
        let is_changed = self.tunnels.rebind(before.map(|(.., care_of)| care_of), Some(care_of));
        self.cache.set(home, entry);
        self.asking.stop(home);
        if let Some(ends) = ends {
            self.asking.set(home, ends - self.lead(&entry));
        }
        self.route(home, &entry, out);
        if is_changed {
            self.adjust(care_of, out);
        }
        if before.is_none_or(|(.., old)| old != care_of) {
            out.mark(HandoffEvent::BindingLearnt { host: home, care_of }.into());
        }
    }

    /// Returns how long before its end an entry is asked for.
    fn lead(&self, entry: &Entry) -> Duration {
        self.config.request_before.min(Duration::from_secs(entry.lifetime.into()) / 4)
    }

    fn acknowledge(
        &self,
        to: SocketAddrV4,
        update: &Update,
        status: Status,
        association: &Association,
        out: &mut Outbox,
    ) {
        if !update.acknowledge {
            return;
        }
        let Update { home, identification, .. } = *update;
        let numbers = &self.config.numbers;
        let mut message = Acknowledge { status, home, identification, authentication: None };
        if identification.is_some() {
            message.sign(numbers.route_authentication, association, numbers);
        }
        self.send(to, &Binding::Acknowledge(message), out);
    }

    fn send(&self, to: SocketAddrV4, message: &Binding, out: &mut Outbox) {
        let from = SocketAddrV4::new(self.config.address, PORT);
        let bytes = datagram(from, to, ipv4::DEFAULT_TTL, &message.emit(&self.config.numbers));
        out.send_routed(Packet::new(Mac::ZERO, bytes));
    }

    /// Asks a home agent for a Binding Update about a mobile node. `announced`: a nonce that the home agent has announced; `None`: the
    /// last one that was accepted.
    fn request(
        &mut self,
        now: Instant,
        home: Ipv4Addr,
        (home_agent, spi): (Ipv4Addr, u32),
        announced: Option<u32>,
        out: &mut Outbox,
    ) {
        let style = self.home_agents.replay(home_agent);
        let identification = self.replay.request(self.clock.ntp(now), (home_agent, home), style, announced);
        let mut message = BindingRequest { home, identification, authentication: None };
        let association = self.home_agents.named(home_agent, spi).filter(|_| style == Replay::Nonces);
        if let Some(association) = association {
            let numbers = &self.config.numbers;
            message.sign(numbers.route_authentication, association, numbers);
        }
        self.send(SocketAddrV4::new(home_agent, PORT), &Binding::Request(message), out);
    }

    // --- the tunnels -----------------------------------------------------------------------------------------------

    /// Sends this host's own packets for a mobile node into the tunnel of its entry, until the entry ends.
    fn route(&self, home: Ipv4Addr, entry: &Entry, out: &mut Outbox) {
        let Entry { care_of, kind, ends, .. } = *entry;
        let encap = self.tunnels.encap(self.config.address, care_of, kind, self.config.tunnel_mtu);
        let lifetime = ends.map_or(Lifetime::Permanent, Lifetime::Until);
        out.route(
            key_to(home),
            Route { notice: Some(NOTICE), ..Route::new(Action::Tunnel(encap), lifetime) },
        );
    }

    /// Sets the tunnels to a care-of address to what is known now about the path.
    fn adjust(&self, care_of: Ipv4Addr, out: &mut Outbox) {
        for (home, entry) in self.cache.iter().filter(|(_, entry)| entry.care_of == care_of) {
            self.route(home, entry, out);
        }
    }

    /// Removes the entry of a mobile node. Does nothing without an entry.
    fn forget(&mut self, home: Ipv4Addr, why: &'static str, out: &mut Outbox) {
        let Some(entry) = self.cache.remove(home) else { return };
        let style = self.home_agents.replay(entry.home_agent);
        self.replay.raise(entry.home_agent, style, entry.identification);
        self.asking.stop(home);
        self.tunnels.rebind(Some(entry.care_of), None);
        out.route(key_to(home), None);
        out.mark(HandoffEvent::BindingForgotten { host: home, why }.into());
    }

    /// Handles an ICMP error about a packet in a tunnel of this host. If the care-of address is not reached, its entries
    /// are removed, and the packets of this host go to the home agents again. This host's own stack gets other errors.
    fn tunnel_error(&mut self, now: Instant, icmp: &[u8], out: &mut Outbox) -> Result<(), Reason> {
        let (own, mtu) = (self.config.address, self.config.tunnel_mtu);
        let heard = self.tunnels.heard(now, icmp, own, mtu)?;
        if heard.is_unreached {
            let lost: Vec<Ipv4Addr> = self
                .cache
                .iter()
                .filter(|(_, entry)| entry.care_of == heard.exit)
                .map(|(home, _)| home)
                .collect();
            for home in lost {
                self.avoid(now, (home, heard.exit));
                self.forget(home, "unreachable", out);
            }
            return Ok(());
        }
        if heard.is_changed {
            self.adjust(heard.exit, out);
        }
        if let Some((_, bytes)) = heard.error.filter(|(sender, _)| !self.is_elsewhere(*sender)) {
            out.send(Iface::HOST, Packet::new(Mac::ZERO, bytes));
        }
        Ok(())
    }

    fn avoid(&mut self, now: Instant, pair: (Ipv4Addr, Ipv4Addr)) {
        if self.avoided.len() >= MOST_AVOIDED {
            self.avoided.pop(Instant::NEVER);
        }
        self.avoided.set(pair, now + AVOIDED);
    }

    fn timeout(&mut self, now: Instant, out: &mut Outbox) {
        while let Some(care_of) = self.tunnels.expired(now) {
            self.adjust(care_of, out);
        }
        while let Some(home) = self.asking.pop(now) {
            let Some(entry) = self.cache.get(home).copied() else { continue };
            let Some(ends) = entry.ends.filter(|ends| *ends > now && now < entry.used + IN_USE) else {
                continue;
            };
            self.cache.count_request(home);
            self.request(now, home, (entry.home_agent, entry.spi), None, out);
            let half = self.lead(&entry) / 2;
            if entry.requests + 1 < REQUESTS && now < ends - half {
                self.asking.set(home, ends - half);
            }
        }
    }

    fn expired(&mut self, now: Instant, key: RouteKey, out: &mut Outbox) {
        let home = key.dst.address();
        if self.cache.get(home).is_some_and(|entry| entry.ends.is_some_and(|ends| ends <= now)) {
            self.forget(home, "expired", out);
        }
    }
}

impl Role for Correspondent {
    fn name(&self) -> &'static str {
        BINDING_CACHE
    }

    fn listens(&self) -> &[Listen] {
        &self.listens
    }

    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Outbox) {
        match input {
            Input::Start(boot) => {
                (self.clock.zero, self.started) = (boot.wall, now);
                self.replay.start(self.clock.ntp(now));
            }
            Input::Wall(zero) => {
                self.clock.zero = zero;
                self.replay.restarted(self.clock.ntp(self.started));
            }
            Input::Timeout => self.timeout(now, out),
            Input::Packet(rx, packet) => self.packet(now, rx, packet, out),
            Input::Notice(rx) => self.cache.touch(rx.header.dst, now),
            Input::Idle(key, _) => self.expired(now, key, out),
            Input::Link(..)
            | Input::Stream(..)
            | Input::Serve(..)
            | Input::Failed(_)
            | Input::Stored(_)
            | Input::Notification(_)
            | Input::Command(..) => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        [self.asking.next(), self.tunnels.due()].into_iter().flatten().min()
    }

    /// One pair for each entry. So if the host sends from one address, each entry in use is known to be in use.
    fn most_notices(&self) -> usize {
        self.config.entries.max(USUAL_NOTICES)
    }

    fn status(&self) -> Value {
        let seconds = |at| Value::from(self.clock.unix_seconds(at));
        let entry = |(home, entry): (Ipv4Addr, &Entry)| {
            let entry = Value::map([
                ("care_of", Value::from(entry.care_of)),
                ("home_agent", Value::from(entry.home_agent)),
                ("spi", Value::from(entry.spi)),
                ("replay", self.home_agents.replay(entry.home_agent).name().into()),
                ("encapsulation", entry.kind.name().into()),
                ("lifetime_s", Value::from(u32::from(entry.lifetime))),
                ("since_unix_s", seconds(entry.since)),
                ("ends_unix_s", entry.ends.map_or(Value::None, seconds)),
                ("used_unix_s", seconds(entry.used)),
            ]);
            (home.to_string(), entry)
        };
        let own = [
            ("bindings", Value::Map(self.cache.iter().map(entry).collect())),
            ("entries", Value::from(self.cache.len() as u64)),
            ("updates", Value::from(self.updates)),
            ("refused", self.refused.status()),
        ];
        Value::map(own.into_iter().chain(self.tunnels.status(self.clock)))
    }

    fn entries(&self) -> usize {
        self.cache.len()
    }
}

/// Returns the key of the route for this host's own packets to a mobile node.
const fn key_to(home: Ipv4Addr) -> RouteKey {
    RouteKey::to(Class::HOST, home)
}

#[cfg(test)]
mod tests;
