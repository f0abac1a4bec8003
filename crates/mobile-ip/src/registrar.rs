//! The registrations of a mobile node: the target, the pending request, and the registration that holds (RFC 5944,
//! section 3.6).

mod bindings;
mod home_agent;

use crate::clock::Clock;
use crate::config::{Associations, Replay};
use crate::encapsulation::{self, ALTERNATES};
use crate::home_agents::HomeAgents;
use crate::mark::MobileIpEvent;
use crate::message::{
    Acknowledge, Asks, Association, Between, Code, Extension, KeyScope, PORT, Reply, Request, RequestFlags,
    datagram,
};
use crate::refusal;
use crate::reply_counts::ReplyCounts;
use crate::unacknowledged::{self, AgentKeys, Settings, UnacknowledgedUpdates};
use bindings::Bindings;
use node::{Rng, Value};
use std::collections::{BTreeMap, VecDeque};
use wire::{Duration, Iface, Instant, Ipv4Addr, Mac, Packet, Reason, SocketAddrV4, WallTime, ntp_distance};

/// The reason to drop a reply: it matches no pending request.
pub(crate) const STALE_REPLY: Reason = Reason("stale_reply");

/// The shortest wait for a reply (RFC 5944, section 3.6.3). The wait is longer if two round trips are longer, because a
/// reply that arrives after the next request is dropped.
const SHORTEST_WAIT: Duration = Duration::from_secs(1);
/// The longest wait for a reply while no round trip is known (not from an RFC). RFC 5944, section 3.6.3, limits the
/// wait only by the requested lifetime.
const LONGEST_WAIT: Duration = Duration::from_secs(64);
/// The longest wait for a reply when a round trip is known, unless two round trips are longer (not from an RFC). It
/// limits the time to register after the path was interrupted.
const LONGEST_WAIT_LATER: Duration = Duration::from_secs(8);
/// The shortest lifetime that is taken from an unauthenticated denial for the next request, in seconds (not from an
/// RFC). A foreign agent with a shorter limit advertises it. With a forged short lifetime, the node would register too
/// often.
const LEAST_UNPROVEN: u16 = 30;
/// The mask of the random bits of an Identification.
const RANDOM: u64 = 0xfff;
/// The number of last Identifications whose low halves are not used again (not from an RFC).
const RECENT: usize = 16;
/// After this number of corrected requests without acceptance, the pauses between requests become longer also if the corrections are new
/// (not from an RFC).
const CORRECTIONS: u32 = 4;
const MARGIN: Duration = Duration::from_millis(100);
/// The time to live of a request. With 255, an agent can see that no router has forwarded the request.
const TTL: u8 = 255;

/// Returns whether a foreign agent denies a request because the home agent did not answer or is unreachable (codes 78 and
/// 80 to 95; RFC 5944, section 3.4).
const fn is_about_home_agent(code: Code) -> bool {
    matches!(code, Code::RegistrationTimeout) || is_unreachable(code)
}

/// Returns whether a foreign agent denies a request because the home agent is unreachable.
pub(crate) const fn is_unreachable(code: Code) -> bool {
    matches!(
        code,
        Code::HomeNetUnreachable
            | Code::HomeHostUnreachable
            | Code::HomePortUnreachable
            | Code::HomeUnreachable
            | Code::Unassigned(80..=95)
    )
}

/// What to register, and through which agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Target {
    /// The interface by which the agent is reached.
    pub(crate) iface: Iface,
    pub(crate) agent: Ipv4Addr,
    pub(crate) mac: Mac,
    /// The care-of address to register; the home address if the node is at home.
    pub(crate) care_of: Ipv4Addr,
    /// The lifetime to request, in seconds; 0 ends the binding.
    pub(crate) lifetime: u16,
    /// The flags of the request, unless it ends the binding.
    pub(crate) flags: RequestFlags,
    /// With flag T: whether the node puts its packets into a tunnel to the agent (RFC 3024, section 3.3).
    pub(crate) encapsulating: bool,
    /// Whether the care-of address is the node's own. Then the request comes from this address. If `mac` is zero, the
    /// request goes to the home agent by the routes of the node.
    pub(crate) is_co_located: bool,
    /// Whether the agent offers smooth handoffs (flag S).
    pub(crate) is_smooth: bool,
}

/// The request that waits for a reply.
#[derive(Debug)]
struct SentRequest {
    identification: u64,
    lifetime: u16,
    care_of: Ipv4Addr,
    /// When the request was sent first.
    sent: Instant,
    /// The request, which is sent again unchanged if the association uses nonces.
    packet: Packet,
    flags: RequestFlags,
    /// Whether the request was sent more than once. Then its round trip is not known.
    is_repeated: bool,
    /// The key with the foreign agent if this request is accepted; `None` without distributed keys.
    key: Option<Association>,
    /// Whether the agent of the registration is not notified, because packets are still received from it by another interface.
    omits_previous: bool,
}

/// A registration that has not ended.
#[derive(Clone, Copy, Debug)]
struct Held {
    /// The interface and the agent through which the node has registered.
    iface: Iface,
    agent: Ipv4Addr,
    home_agent: Ipv4Addr,
    care_of: Ipv4Addr,
    is_co_located: bool,
    /// The granted lifetime in seconds, counted from `sent`.
    lifetime: u16,
    sent: Instant,
    flags: RequestFlags,
}

/// What a reply means for the registration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReplyOutcome {
    /// The registration holds for `lifetime` seconds from when the request was `sent`; 0: the registration has ended.
    Registered { care_of: Ipv4Addr, lifetime: u16, sent: Instant },
    /// The request was denied. The next request uses the correction in the reply (clock, lifetime or home agent), and
    /// is to be sent at once.
    Again,
    /// The request was denied by the foreign agent (`by_agent`) or by the home agent, or accepted with lifetime 0
    /// although a registration was requested. If `is_proven` is false, the denial is not authenticated. Then the
    /// request stays pending, even if the next request uses a correction from the denial.
    Denied { by_agent: bool, is_proven: bool },
}

/// The registrations of a mobile node.
#[derive(Debug)]
pub(crate) struct Registrar {
    home: Ipv4Addr,
    home_agents: HomeAgents,
    /// The home agents that may have a binding of the node.
    bindings: Bindings,
    /// The number of requests since a home agent was chosen or has answered.
    unanswered: u32,
    /// With nonces: the nonce of the last authentic reply of the home agent; `None` before the first.
    nonce: Option<u32>,
    foreign_agents: Associations,
    clock: Clock,
    /// How far the home agent's clock is ahead of this host's clock: whole seconds, as a difference of NTP timestamps
    /// of 32.32 bits.
    offset: u64,
    last_identification: u64,
    /// The low halves of the last Identifications. Mobile nodes and foreign agents match a reply with its request by
    /// the low half only (RFC 5944, sections 3.6.2.1 and 3.7.3.1).
    recent: VecDeque<u32>,
    rng: Rng,
    target: Option<Target>,
    /// The last challenge of each foreign agent with an association, in its advertisement or reply (RFC 4721).
    challenges: BTreeMap<Ipv4Addr, Vec<u8>>,
    /// The home agent that has only IP in IP: it has denied another kind of tunnel. `None` if it is not known.
    has_ip_in_ip_only: Option<Ipv4Addr>,
    pending: Option<SentRequest>,
    /// Whether the last request was denied, and the next request uses no correction from the denial.
    is_denied: bool,
    /// The number of requests for `target` since a reply was accepted, or one of the first [`CORRECTIONS`] authenticated denials
    /// corrected the request.
    attempts: u32,
    /// The codes of the denials whose corrections were used since the target was set, a reply was accepted, or no correction of
    /// an authenticated denial was used. A correction in a second denial with the same code is not used.
    followed: Vec<Code>,
    /// The number of corrections since a reply was accepted or the home agent was chosen.
    corrections: u32,
    /// The number of replies that were authentic or need no authentication, by code.
    codes: ReplyCounts,
    /// The last round trip of a registration; `None` before the first.
    round_trip: Option<Duration>,
    /// The round trip that is assumed before the first registration.
    expected: Duration,
    current: Option<Held>,
    smooth: Settings,
    /// The smooth handoffs that previous agents have not acknowledged.
    unacknowledged: UnacknowledgedUpdates,
    /// The last foreign agent that got a request since one was accepted, if it is not that of the registration.
    asked: Option<Ipv4Addr>,
    /// The distributed keys with the agent of the registration and with `asked`.
    keys: AgentKeys,
}

/// Returns whether the request with this number, from 1 on, names the previous foreign agent. An agent that does not know the extension
/// drops such a request without a reply, for example one that has flag U of RFC 3519 at the place of flag S. So the third request
/// does not have it, nor does each second one after it (not from an RFC). Then the mobile node itself sends the Binding Update, but the
/// new agent does not deliver what the previous one forwards.
const fn names_previous(attempt: u32) -> bool {
    attempt < 3 || attempt.is_multiple_of(2)
}

impl Registrar {
    pub(crate) fn new(
        home: Ipv4Addr,
        home_agents: HomeAgents,
        foreign_agents: Associations,
        expected_round_trip: Duration,
        smooth: Settings,
        rng: Rng,
    ) -> Self {
        Self {
            home,
            home_agents,
            bindings: Bindings::default(),
            unanswered: 0,
            nonce: None,
            foreign_agents,
            clock: Clock::default(),
            offset: 0,
            last_identification: 0,
            recent: VecDeque::new(),
            rng,
            target: None,
            challenges: BTreeMap::new(),
            has_ip_in_ip_only: None,
            pending: None,
            is_denied: false,
            attempts: 0,
            followed: Vec::new(),
            corrections: 0,
            codes: ReplyCounts::default(),
            round_trip: None,
            expected: expected_round_trip,
            current: None,
            smooth,
            unacknowledged: UnacknowledgedUpdates::default(),
            asked: None,
            keys: AgentKeys::default(),
        }
    }

    /// Returns the association with a foreign agent for a smooth handoff: the configured one, or else the distributed key.
    fn association_with(&self, agent: Ipv4Addr) -> Option<&Association> {
        self.foreign_agents.first(agent).or_else(|| self.keys.with(agent))
    }

    /// Ends the smooth handoff that a previous agent has answered. The agent has the key of the Binding Update, if that is a distributed
    /// one: the answer is authentic. Fails with the reason to drop the message.
    pub(crate) fn acknowledged(&mut self, previous: Ipv4Addr, message: &Acknowledge) -> Result<(), Reason> {
        let association = self.unacknowledged.acknowledged(previous, message, &self.smooth.numbers)?;
        if self.foreign_agents.first(previous).is_none() {
            self.keys.confirm(previous, association);
        }
        Ok(())
    }

    /// Returns the smooth handoffs that previous agents have not acknowledged.
    pub(crate) const fn unacknowledged(&mut self) -> &mut UnacknowledgedUpdates {
        &mut self.unacknowledged
    }

    /// Returns the foreign agent that the node leaves by registering with the target, and the association with it; `None` if no
    /// smooth handoff is possible. It is the agent of the registration. If the node returns to that agent, it is the agent that
    /// has got a request meanwhile: the home agent may have accepted it. At home, no new agent notifies the previous one: the
    /// node does it itself. The agent of the registration is not left if packets are still received from it (`receives`).
    fn leaves(&self, receives: bool) -> Option<(Ipv4Addr, Association)> {
        let (target, held) = (self.target?, self.current.filter(|held| !held.is_co_located)?);
        let at_home = target.agent == self.home_agent();
        let may = self.smooth.is_on && (target.is_smooth || at_home) && !target.is_co_located;
        let mut left = [Some(held.agent).filter(|_| !receives), self.asked].into_iter().flatten();
        let left = left.find(|agent| *agent != target.agent && *agent != self.home_agent())?;
        // The previous agent compares Identifications: they must be times.
        let is_ordered = self.home_agents.replay() == Replay::Timestamps;
        let association = self.association_with(left)?;
        (may && is_ordered && (target.lifetime != 0 || at_home)).then(|| (left, association.clone()))
    }

    /// Returns the interface and the foreign agent of the registration; `None` if the node has none, or its own care-of address.
    pub(crate) fn registered_by(&self) -> Option<(Iface, Ipv4Addr)> {
        self.current.filter(|held| !held.is_co_located).map(|held| (held.iface, held.agent))
    }

    /// Returns the care-of address that is registered with the home agent in use; `None` if there is none.
    pub(crate) fn care_of_at_home_agent(&self) -> Option<Ipv4Addr> {
        self.current.filter(|held| held.home_agent == self.home_agent()).map(|held| held.care_of)
    }

    /// Returns whether the pending request does not notify the agent of the registration, because packets were still received from it.
    pub(crate) fn omits_previous(&self) -> bool {
        self.pending.as_ref().is_some_and(|pending| pending.omits_previous)
    }

    /// Returns the Buffer Control Request that asks the foreign agent of the registration to keep packets, as a datagram. `None`
    /// if the node is at home, has its own care-of address, has no association with the agent, or uses nonces: the agent compares
    /// Identifications as times.
    pub(crate) fn asks_to_keep(&mut self, now: Instant) -> Option<Vec<u8>> {
        let held = self.current.filter(|held| !held.is_co_located && held.agent != self.home_agent())?;
        if self.home_agents.replay() != Replay::Timestamps {
            return None;
        }
        let association = self.association_with(held.agent)?.clone();
        let (ends, identification) = ([self.home, held.agent], self.identification(now));
        let numbers = self.smooth.numbers;
        Some(unacknowledged::control(Asks::Keep, ends, identification, Vec::new(), &association, &numbers))
    }

    pub(crate) const fn clock(&self) -> Clock {
        self.clock
    }

    pub(crate) const fn set_clock(&mut self, zero: WallTime) {
        self.clock.zero = zero;
    }

    /// Permits that each correction is used again.
    fn forget_corrections(&mut self) {
        self.followed.clear();
        self.corrections = 0;
    }

    /// Records the challenge of an agent's advertisement; `None` if it has none. Agents without an association are
    /// ignored: without an authentication, a challenge in a request is of no use.
    pub(crate) fn hear_challenge(&mut self, agent: Ipv4Addr, challenge: Option<Vec<u8>>) {
        if self.foreign_agents.first(agent).is_none() {
            return;
        }
        match challenge {
            Some(challenge) => _ = self.challenges.insert(agent, challenge),
            None => _ = self.challenges.remove(&agent),
        }
    }

    /// Sets the target. Drops the pending request, and resets the number of attempts. Each correction may be used again. Does not end
    /// the bindings of other home agents any more.
    pub(crate) fn turn_to(&mut self, target: Option<Target>) {
        let is_leaving = target.is_some_and(|target| target.care_of != self.home);
        self.target = target;
        self.use_home_link(is_leaving);
        self.pending = None;
        self.is_denied = false;
        self.attempts = 0;
        self.followed.clear();
    }

    /// Returns the last round trip of a registration; zero before the first.
    pub(crate) fn round_trip(&self) -> Duration {
        self.round_trip.unwrap_or_default()
    }

    /// Returns the number of requests for the target since a reply was accepted, or one of the first [`CORRECTIONS`] authenticated
    /// denials corrected the request.
    pub(crate) const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Returns whether the pending request was denied by an unauthenticated reply, and the next request uses no
    /// correction from this reply. An authenticated denial leaves no request pending.
    pub(crate) const fn has_unproven_denial(&self) -> bool {
        self.is_denied && self.pending.is_some()
    }

    /// Removes the registration, because its lifetime has ended.
    pub(crate) const fn expire(&mut self) {
        self.current = None;
    }

    /// Returns the registered care-of address; `None` if there is no registration.
    pub(crate) fn care_of(&self) -> Option<Ipv4Addr> {
        self.current.map(|held| held.care_of)
    }

    /// Returns the registration's part of the role's status.
    pub(crate) fn status(&self) -> [(&'static str, Value); 11] {
        let held =
            |value: fn(&Self, Held) -> Value| self.current.map_or(Value::None, |held| value(self, held));
        let ends = |held: Held| held.sent + Duration::from_secs(held.lifetime.into());
        [
            ("care_of", held(|_, held| Value::from(held.care_of))),
            ("lifetime_s", held(|_, held| Value::from(u32::from(held.lifetime)))),
            ("since_unix_s", held(|own, held| Value::from(own.clock.unix_seconds(held.sent)))),
            ("flags", held(|_, held| Value::from(held.flags.letters()))),
            ("encapsulation", held(|_, held| encapsulation::name_of(held.flags).into())),
            (
                "ends_unix_s",
                self.current.map_or(Value::None, |held| self.clock.unix_seconds(ends(held)).into()),
            ),
            ("spi", Value::from(self.home_agents.association().spi)),
            ("replay", Value::from(self.home_agents.replay().name())),
            ("home_agent", Value::from(self.home_agent())),
            ("home_agent_ahead_s", Value::from(self.offset.cast_signed() >> 32)),
            ("codes", self.codes.status()),
        ]
    }

    /// Returns the name of the state, for the role's status.
    pub(crate) fn state(&self) -> &'static str {
        match (&self.target, &self.pending, &self.current) {
            (None, ..) => "searching",
            (Some(_), Some(_), _) if !self.is_denied => "registering",
            (Some(_), _, Some(_)) => "registered",
            (Some(target), _, None) if !self.is_denied && target.care_of == self.home => "home",
            (Some(Target { lifetime: 0, .. }), _, None) if !self.is_denied => "deregistered",
            (Some(_), _, None) => "denied",
        }
    }

    /// Makes the next request, which is pending from now on. Returns the request, the event to record, and when the
    /// wait for the reply ends. `None` if there is no target.
    ///
    /// With nonces, a repetition has the same bytes: its nonce is still the last one that the home agent has sent. With
    /// timestamps, each repetition has a new Identification. `receives`: packets are still received from the agent of the registration
    /// by another interface.
    pub(crate) fn request(
        &mut self,
        now: Instant,
        receives: bool,
    ) -> Option<(Packet, MobileIpEvent, Instant)> {
        let Target { agent, care_of, lifetime, flags, is_co_located, .. } = self.target?;
        self.attempts += 1;
        self.unanswered = self.unanswered.saturating_add(1);
        self.is_denied = false;
        if !self.home_agents.is_unknown() {
            self.bindings.asked(self.home_agent(), now + Duration::from_secs(lifetime.into()));
        }
        let asked = self.requested(lifetime, flags, is_co_located);
        let same = |pending: &&mut SentRequest| {
            (pending.lifetime, pending.care_of, pending.flags) == (lifetime, care_of, asked)
        };
        let packet = match self
            .pending
            .as_mut()
            .filter(same)
            .filter(|_| self.home_agents.replay() == Replay::Nonces)
        {
            Some(pending) => {
                pending.is_repeated = true;
                pending.packet.clone()
            }
            None => self.new_request(now, receives)?,
        };
        let event = MobileIpEvent::RequestSent { agent, care_of, lifetime, attempt: self.attempts };
        Some((packet, event, now + self.wait(lifetime)))
    }

    fn new_request(&mut self, now: Instant, receives: bool) -> Option<Packet> {
        let Target { agent, mac, care_of, lifetime, flags, encapsulating, is_co_located, .. } = self.target?;
        let identification = self.identification(now);
        let (home, home_agent) = (self.home, self.home_agent());
        let flags = self.requested(lifetime, flags, is_co_located);
        let mut request =
            Request { flags, lifetime, home, home_agent, care_of, identification, extensions: Vec::new() };
        request.sign(Between::MobileHome, self.home_agents.association());
        let key = self.key_of(&request);
        if encapsulating && flags.has(RequestFlags::REVERSE) {
            request.extensions.push(Extension::encapsulating_delivery());
        }
        self.unacknowledged.asks(agent);
        let omits_previous = receives && self.leaves(false).is_some();
        if let Some((previous, association)) = self.leaves(receives) {
            let extension = self.unacknowledged.begin(now, previous, &request, &association, &self.smooth);
            if agent != home_agent && names_previous(self.attempts) {
                request.extensions.push(extension);
            }
        }
        if let Some(association) = self.foreign_agents.first(agent) {
            request.extensions.extend(self.challenges.get(&agent).cloned().map(Extension::challenge));
            request.sign(Between::MobileForeign, association);
        } else if let Some(key) = self.keys.accepted(agent).filter(|_| lifetime > 0 && !is_co_located) {
            request.sign(Between::MobileForeign, key);
        }
        if self.current.is_some_and(|held| held.agent != agent) {
            self.asked = Some(agent);
            self.keys.asked = key.clone().map(|key| (agent, key));
        }
        let source = if is_co_located { care_of } else { home };
        let [from, to] = [source, agent].map(|address| SocketAddrV4::new(address, PORT));
        let packet = Packet::new(mac, datagram(from, to, TTL, &request.emit()));
        let is_repeated = false;
        let copy = packet.clone();
        self.pending = Some(SentRequest {
            identification,
            lifetime,
            care_of,
            sent: now,
            packet: copy,
            flags,
            is_repeated,
            key,
            omits_previous,
        });
        Some(packet)
    }

    /// Returns the key with the foreign agent if it registers the node by this request; `None` without distributed keys, at
    /// home, with a co-located care-of address, or with nonces. A configured association is used instead.
    fn key_of(&self, request: &Request) -> Option<Association> {
        let target = self.target?;
        let has_key = self.smooth.has_distributed_keys
            && request.lifetime > 0
            && !target.is_co_located
            && target.agent != self.home_agent()
            && self.home_agents.replay() == Replay::Timestamps
            && self.foreign_agents.first(target.agent).is_none();
        let scope = KeyScope::of(request).filter(|_| has_key)?;
        Some(scope.association(self.home_agents.association()))
    }

    /// Returns the flags of a request. The end of a binding needs no options. Flag D shows that the request comes from the
    /// care-of address.
    fn requested(&self, lifetime: u16, flags: RequestFlags, is_co_located: bool) -> RequestFlags {
        let ends = RequestFlags::default().with(RequestFlags::DECAPSULATION, is_co_located);
        if lifetime == 0 { ends } else { self.available(flags) }
    }

    /// Returns these flags without those for a kind of tunnel that the home agent has denied.
    pub(crate) fn available(&self, flags: RequestFlags) -> RequestFlags {
        if self.has_ip_in_ip_only == Some(self.home_agent()) { flags.without(ALTERNATES) } else { flags }
    }

    /// Returns the flags of the registration; no flags if there is none.
    pub(crate) fn held_flags(&self) -> RequestFlags {
        self.current.map(|held| held.flags).unwrap_or_default()
    }

    /// Returns how long to wait for a reply to the last attempt: twice as long as for the attempt before, up to a
    /// maximum.
    fn wait(&self, lifetime: u16) -> Duration {
        let round_trip = self.round_trip.unwrap_or(self.expected);
        let first = SHORTEST_WAIT.max(round_trip * 2 + MARGIN);
        let doubled = first.saturating_mul(1 << (self.attempts.max(1) - 1).min(8));
        let longest = if self.round_trip.is_none() { LONGEST_WAIT } else { LONGEST_WAIT_LATER };
        let longest = if lifetime == 0 { longest } else { longest.min(Duration::from_secs(lifetime.into())) };
        doubled.min(longest.max(first))
    }

    /// Returns and records the Identification of the next request (RFC 5944, section 5.7.1). Usually it is the present
    /// time, with random low 12 bits (about 1 us). It is later than the last Identification, even if this host's clock
    /// was set back. It may be earlier after the home agent has corrected the clock. The low half differs from the low
    /// halves of the last 16 Identifications: otherwise, requests that are whole seconds apart could have the same low
    /// half.
    ///
    /// With nonces, the high half is the nonce of the home agent, and the low half is random (RFC 5944, section 5.7.2).
    /// Before the first nonce is known, the high half is random: the home agent denies the request, and sends a nonce.
    fn identification(&mut self, now: Instant) -> u64 {
        if self.home_agents.replay() == Replay::Nonces {
            let nonce = self.nonce.unwrap_or_else(|| self.rng.draw() as u32);
            let mut low = self.rng.draw() as u32;
            while self.recent.contains(&low) {
                low = self.rng.draw() as u32;
            }
            return self.record_identification(u64::from(nonce) << 32 | u64::from(low));
        }
        let clock = self.clock.ntp(now).wrapping_add(self.offset);
        let mut next = self.last_identification.wrapping_add(1);
        let first = self.last_identification == 0;
        while self.recent.contains(&(next as u32)) {
            next = next.wrapping_add(1);
        }
        let mut fresh = clock & !RANDOM | self.rng.draw() & RANDOM;
        while self.recent.contains(&(fresh as u32)) {
            fresh = clock & !RANDOM | self.rng.draw() & RANDOM;
        }
        self.record_identification(if first || ntp_distance(fresh, next) >= 0 { fresh } else { next })
    }

    fn record_identification(&mut self, identification: u64) -> u64 {
        self.last_identification = identification;
        if self.recent.len() >= RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(identification as u32);
        identification
    }

    /// Applies a reply to the registration (RFC 5944, section 3.6.2). Fails with the reason to drop the reply.
    pub(crate) fn reply(
        &mut self,
        now: Instant,
        from: Ipv4Addr,
        reply: &Reply,
    ) -> Result<ReplyOutcome, Reason> {
        let (Some(target), Some(pending)) = (&self.target, &self.pending) else { return Err(STALE_REPLY) };
        let same = |identification: u64| identification as u32 == pending.identification as u32;
        if reply.home != self.home || !same(reply.identification) {
            return Err(STALE_REPLY);
        }
        let by_agent = reply.code.is_of_foreign_agent();
        self.authenticate(target.agent, from, by_agent, reply)?;
        // A challenge that an authentication of the agent covers is for the next request (RFC 4721, section 3.3).
        if let Some(challenge) =
            reply.challenge().filter(|_| self.foreign_agents.first(target.agent).is_some())
        {
            self.challenges.insert(target.agent, challenge.to_vec());
        }
        self.codes.count(reply.code);
        let SentRequest { lifetime: asked, care_of, sent, flags, is_repeated, .. } = *pending;
        // A denial by the foreign agent for another reason says nothing about the home agent.
        if !is_about_home_agent(reply.code) {
            self.unanswered = 0;
        }
        if !by_agent && self.home_agents.replay() == Replay::Nonces {
            self.nonce = Some((reply.identification >> 32) as u32);
        }
        if reply.code.is_accepted() && (reply.lifetime > 0 || asked == 0) {
            let lifetime = reply.lifetime.min(asked);
            if !is_repeated || self.round_trip.is_none() {
                self.round_trip = Some(now.since(sent));
            }
            let Target { iface, agent, is_co_located, .. } = *target;
            let key = self.pending.take().and_then(|pending| pending.key);
            if lifetime == 0 {
                self.bindings.ended(self.home_agents.address());
            }
            // The node is back, so the agent does not need the Binding Update any more.
            self.unacknowledged.end(agent);
            self.keys.hold(key.map(|key| (agent, key)));
            (self.attempts, self.is_denied, self.asked) = (0, false, None);
            self.forget_corrections();
            self.current = (lifetime > 0).then_some(Held {
                iface,
                agent,
                home_agent: self.home_agents.address(),
                care_of,
                is_co_located,
                lifetime,
                sent,
                flags,
            });
            return Ok(ReplyOutcome::Registered { care_of, lifetime, sent });
        }
        // Without an association, a foreign agent's denial is not authenticated. So the request stays pending, because
        // the home agent's reply may still arrive.
        let is_proven = !by_agent || self.foreign_agents.first(target.agent).is_some();
        if is_proven {
            self.pending = None;
        }
        let is_followed = !self.followed.contains(&reply.code) && self.follow(now, asked, is_proven, reply);
        self.is_denied = !is_followed;
        if is_followed {
            self.followed.push(reply.code);
        }
        if !is_followed && is_proven {
            // The next request is sent after a pause: then a correction is used again.
            self.followed.clear();
        }
        if !is_followed || !is_proven {
            return Ok(ReplyOutcome::Denied { by_agent, is_proven });
        }
        self.corrections += 1;
        if self.corrections <= CORRECTIONS {
            self.attempts = 0; // the request was answered
        }
        Ok(ReplyOutcome::Again)
    }

    /// Checks that a reply comes from the agent, has a code that this agent can send, and has the required
    /// authentications. If there is no association with a foreign agent, the agent has no key to sign with. So its
    /// denials are accepted without authentication.
    fn authenticate(
        &self,
        agent: Ipv4Addr,
        from: Ipv4Addr,
        by_agent: bool,
        reply: &Reply,
    ) -> Result<(), Reason> {
        let at_home = agent == self.home_agent();
        if from != agent || (by_agent && at_home) {
            return Err(refusal::UNEXPECTED);
        }
        let home = by_agent || reply.verify(Between::MobileHome, self.home_agents.association());
        let foreign = match self.foreign_agents.first(agent) {
            Some(association) if !at_home => reply.verify(Between::MobileForeign, association),
            _ => true,
        };
        if home && foreign { Ok(()) } else { Err(refusal::BAD_AUTHENTICATION) }
    }

    /// Applies the correction in a denial (for example the clock, the lifetime or the home agent) to the next request. Returns whether the
    /// denial has a correction.
    fn follow(&mut self, now: Instant, asked: u16, is_proven: bool, reply: &Reply) -> bool {
        let Some(mut target) = self.target else { return false };
        let least = if is_proven { 1 } else { LEAST_UNPROVEN };
        let is_followed = match reply.code {
            Code::LifetimeTooLong if (least..asked).contains(&reply.lifetime) => {
                target.lifetime = reply.lifetime;
                true
            }
            // The challenge of the denial is already recorded.
            Code::UnknownChallenge | Code::MissingChallenge | Code::StaleChallenge => {
                is_proven && reply.challenge().is_some()
            }
            Code::HomeEncapsulation if self.available(target.flags).has(ALTERNATES) => {
                self.has_ip_in_ip_only = Some(self.home_agents.address());
                true
            }
            Code::ForeignEncapsulation if target.flags.has(ALTERNATES) => {
                target.flags = target.flags.without(ALTERNATES);
                true
            }
            // Without flag S, the request replaces the other bindings. Otherwise the node would be unreachable here until one of
            // them ends (RFC 5944, section 3.6.2.3, permits a corrected request).
            Code::TooManyBindings if target.flags.has(RequestFlags::SIMULTANEOUS) => {
                target.flags = target.flags.without(RequestFlags::SIMULTANEOUS);
                true
            }
            // The nonce of the denial is already recorded.
            Code::IdentificationMismatch if self.home_agents.replay() == Replay::Nonces => true,
            Code::IdentificationMismatch => {
                // The correction is in whole seconds, because the low half of the reply's Identification is a copy of
                // the request's low half.
                let (theirs, ours) = (reply.identification >> 32, self.clock.ntp(now) >> 32);
                self.offset = theirs.wrapping_sub(ours) << 32;
                // The clock was wrong, so the next Identification may be smaller than the last.
                self.last_identification = 0;
                true
            }
            Code::UnknownHomeAgent
                if wire::ipv4::is_host(reply.home_agent)
                    && reply.home_agent != self.home_agents.address()
                    && !self.ends_other_binding() =>
            {
                self.give_up_binding();
                self.home_agents.learn(reply.home_agent);
                // Without a foreign agent, the request goes to the home agent itself.
                if target.mac == Mac::ZERO || target.care_of == self.home {
                    (target.agent, target.mac) = (reply.home_agent, Mac::ZERO);
                }
                true
            }
            _ => false,
        };
        self.target = Some(target);
        is_followed
    }
}
