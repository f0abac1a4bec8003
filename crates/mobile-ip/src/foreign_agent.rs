//! The foreign agent: the end of the tunnels to its visitors.
//!
//! It believes nobody: a request waits until the home agent has answered, and only then its sender is a visitor. From
//! tunnels it sends to visitors alone, by the link address that they registered from, without ARP; what is for anybody
//! else is dropped without a word (RFC 5944, section 4.2.2).

use crate::advertiser::Advertiser;
use crate::config::{Associations, ForeignAgentConfig, is_host};
use crate::home_agent::refusal;
use crate::limiter::Limiter;
use crate::mark::{Event, FOREIGN_AGENT};
use crate::message::{
    AgentFlags, Between, Code, PORT, Received, Registration, Reply, Request, RequestFlags, datagram,
};
use node::config::{ConfigError, Interfaces};
use node::{
    Action, Class, Expiry, Hop, Input, Key, Life, Link, Listen, Neighbor, Outbox, Proto, Role, Route, Rx,
    Seed, Value, reason,
};
use std::collections::BTreeMap;
use wire::icmp::{self, Quote};
use wire::ipv4::{self, Header};
use wire::{Duration, Iface, Instant, Ipv4Addr, Mac, Packet, Prefix, Reason, SocketAddrV4};

/// What is taken out of tunnels. It meets no routes but those to visitors.
const VISITORS: Class = Class(Class::CLOSED.0 + 16);
/// Requests of one mobile node that wait at a time (ours): it repeats the first before the home agent's time is over.
const PENDING_EACH: usize = 2;

/// From a tunnel, to a host that is not registered here.
pub const NOT_A_VISITOR: Reason = Reason("not_a_visitor");
/// A reply to no request that waits here.
pub const NOT_PENDING: Reason = Reason("not_pending");
/// The home agent is not who it says it is.
pub const HOME_AGENT_FAILED: Reason = Reason("home_agent_failed");

/// Which request a reply is to: the home address, and the low half of the Identification (section 3.7.3.1).
type Asked = (Ipv4Addr, u32);

/// A request that waits for the home agent.
#[derive(Debug)]
struct Pending {
    /// Who asked, by link address.
    mac: Mac,
    /// From where.
    from: SocketAddrV4,
    request: Request,
}

/// A mobile node that is registered here.
#[derive(Debug)]
struct Visitor {
    mac: Mac,
    home_agent: Ipv4Addr,
}

/// A foreign agent.
#[derive(Debug)]
pub struct ForeignAgent {
    config: ForeignAgentConfig,
    iface: Iface,
    listens: [Listen; 5],
    mobile_nodes: Associations,
    home_agents: Associations,
    pending: BTreeMap<Asked, Pending>,
    /// When the home agent has had its time.
    waiting: Expiry<Asked>,
    visitors: BTreeMap<Ipv4Addr, Visitor>,
    /// When visits end.
    expiry: Expiry<Ipv4Addr>,
    advertiser: Advertiser,
    denials: Limiter<Mac>,
    refused: BTreeMap<Reason, u64>,
}

impl ForeignAgent {
    /// A foreign agent with this configuration, on a host with these interfaces.
    pub fn new(
        config: ForeignAgentConfig,
        interfaces: Interfaces<'_>,
        chance: Seed,
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
            AgentFlags::FOREIGN,
            chance,
        );
        Ok(Self {
            iface,
            listens: [Listen::Local(Proto::Udp(PORT)), routers, agents, solicitations, errors],
            mobile_nodes: Associations::new(&config.mobile_nodes),
            home_agents: Associations::new(&config.home_agents),
            pending: BTreeMap::new(),
            waiting: Expiry::default(),
            visitors: BTreeMap::new(),
            expiry: Expiry::default(),
            advertiser,
            denials: Limiter::default(),
            refused: BTreeMap::new(),
            config,
        })
    }

    fn start(&self, out: &mut Outbox) {
        let care_of = Key { class: None, src: Prefix::ANY, dst: Prefix::host(self.config.address.address) };
        out.route(care_of, Route { action: Action::Open(VISITORS), life: Life::Forever });
        out.route(Key::all(VISITORS), Route { action: Action::Drop(NOT_A_VISITOR), life: Life::Forever });
    }

    fn packet(&mut self, now: Instant, rx: Rx, packet: Packet, out: &mut Outbox) {
        let Ok((ip, payload)) = Header::parse(&packet.bytes) else { return out.pass(rx, packet) };
        let ends = match ip.protocol {
            ipv4::UDP if ip.dst == self.config.address.address => self.registration(now, rx, &packet, out),
            ipv4::ICMP if payload.first().is_some_and(|kind| icmp::is_error(*kind)) => {
                self.unreachable(now, payload, out)
            }
            ipv4::ICMP => {
                let busy = self.is_busy();
                self.advertiser.solicited(now, rx.iface, &packet, busy, out)
            }
            _ => return out.pass(rx, packet),
        };
        match ends {
            Ok(()) => out.discard(rx.iface, packet, reason::CONSUMED),
            Err(reason) => {
                *self.refused.entry(reason).or_default() += 1;
                out.discard(rx.iface, packet, reason);
            }
        }
    }

    fn registration(
        &mut self,
        now: Instant,
        rx: Rx,
        packet: &Packet,
        out: &mut Outbox,
    ) -> Result<(), Reason> {
        let received = Received::parse(&packet.bytes)?;
        let from = received.sender();
        match received.message {
            Registration::Request(request) if rx.iface == self.iface => {
                let pending = Pending { mac: packet.link.src, from, request };
                self.request(now, &received.ip, pending, out)
            }
            Registration::Request(_) => Err(Reason("wrong_direction")),
            Registration::Reply(reply) => self.reply(now, reply, out),
        }
    }

    // --- requests (section 3.7.2) ----------------------------------------------------------------------------------

    fn request(
        &mut self,
        now: Instant,
        ip: &Header,
        pending: Pending,
        out: &mut Outbox,
    ) -> Result<(), Reason> {
        let Pending { mac, ref request, .. } = pending;
        // Only who is on the link may be answered, and nobody by a name that is not a host's.
        if mac.is_group() || ip.src != request.home || !is_host(request.home) {
            return Err(Reason("implausible_source"));
        }
        if let Err(code) = self.judge(&pending) {
            return self.deny(now, &pending, code, out);
        }
        self.relay(now, pending, out);
        Ok(())
    }

    fn judge(&self, Pending { mac, request, .. }: &Pending) -> Result<(), Code> {
        let asks = |flags| request.flags.has(flags);
        let own = self.config.address.address;
        if !self.is_authentic(request) {
            return Err(Code::MobileFailed);
        }
        if asks(RequestFlags::RESERVED) || !is_host(request.home_agent) || request.home_agent == request.home
        {
            return Err(Code::ForeignBadRequest);
        }
        if request.home_agent == own {
            return Err(Code::InvalidHomeAgent);
        }
        if request.lifetime != 0 && request.care_of != own {
            return Err(Code::InvalidCareOf);
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
        if self.has_room(request, *mac) { Ok(()) } else { Err(Code::ForeignResources) }
    }

    /// Where there is an association with the mobile node, it has to be used.
    fn is_authentic(&self, request: &Request) -> bool {
        if self.mobile_nodes.first(request.home).is_none() {
            return true;
        }
        let spi = request.authentication(Between::MobileForeign).map(|found| found.spi);
        let association = spi.and_then(|spi| self.mobile_nodes.named(request.home, spi));
        association.is_some_and(|association| request.verify(Between::MobileForeign, association))
    }

    /// Whether one more request can wait. A mobile node that repeats itself takes the place of its own oldest.
    fn has_room(&self, request: &Request, mac: Mac) -> bool {
        let own: Vec<&Pending> = self.pending_of(request.home).map(|(_, pending)| pending).collect();
        let takes_place = own.len() >= PENDING_EACH;
        if takes_place && own.iter().all(|pending| pending.mac != mac) {
            return false;
        }
        let known = self.visitors.contains_key(&request.home) || request.lifetime == 0;
        (known || !self.is_busy()) && (takes_place || self.pending.len() < self.config.pending)
    }

    fn relay(&mut self, now: Instant, pending: Pending, out: &mut Outbox) {
        let Pending { mac, ref request, .. } = pending;
        if self.pending_of(request.home).count() >= PENDING_EACH {
            let own = self.pending_of(request.home).filter(|(_, other)| other.mac == mac);
            let oldest = own.min_by_key(|(_, other)| other.request.identification).map(|(asked, _)| *asked);
            if let Some(asked) = oldest {
                self.forget(asked);
            }
        }
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
        let asked = (request.home, low(request.identification));
        self.waiting.set(asked, now + self.config.pending_timeout);
        self.pending.insert(asked, pending);
    }

    fn pending_of(&self, home: Ipv4Addr) -> impl Iterator<Item = (&Asked, &Pending)> {
        self.pending.range((home, 0)..=(home, u32::MAX))
    }

    fn forget(&mut self, asked: Asked) -> Option<Pending> {
        self.waiting.stop(asked);
        self.pending.remove(&asked)
    }

    /// Tells a mobile node that it cannot register here, at most once a second (section 3.7.2.3).
    fn deny(&mut self, now: Instant, pending: &Pending, code: Code, out: &mut Outbox) -> Result<(), Reason> {
        if !self.denials.may(now, pending.mac) {
            return Err(refusal::ANSWERED);
        }
        let mut reply = pending.request.reply(code);
        reply.lifetime = if code == Code::LifetimeTooLong { self.longest() } else { 0 };
        self.send_reply(pending, reply, out);
        Ok(())
    }

    // --- replies (section 3.7.3) -----------------------------------------------------------------------------------

    fn reply(&mut self, now: Instant, mut reply: Reply, out: &mut Outbox) -> Result<(), Reason> {
        let asked = (reply.home, low(reply.identification));
        let pending = self.pending.get(&asked).ok_or(NOT_PENDING)?;
        if !self.is_home_agent(pending, &reply) {
            if let Some(pending) = self.forget(asked) {
                self.deny(now, &pending, Code::HomeFailed, out)?;
            }
            return Err(HOME_AGENT_FAILED);
        }
        let Some(pending) = self.forget(asked) else { return Err(NOT_PENDING) };
        reply.strip();
        if reply.code.is_accepted() {
            let lifetime = reply.lifetime.min(pending.request.lifetime).min(self.longest());
            self.admit(now, &pending, lifetime, out);
        }
        self.send_reply(&pending, reply, out);
        Ok(())
    }

    /// Where there is an association with the home agent, it has to be used.
    fn is_home_agent(&self, pending: &Pending, reply: &Reply) -> bool {
        let home_agent = pending.request.home_agent;
        if self.home_agents.first(home_agent).is_none() {
            return true;
        }
        let spi = reply.authentication(Between::ForeignHome).map(|found| found.spi);
        let association = spi.and_then(|spi| self.home_agents.named(home_agent, spi));
        association.is_some_and(|association| reply.verify(Between::ForeignHome, association))
    }

    /// The home agent agrees: the mobile node is a visitor for so many seconds, or with 0 no longer one.
    fn admit(&mut self, now: Instant, pending: &Pending, lifetime: u16, out: &mut Outbox) {
        let host = pending.request.home;
        if lifetime == 0 {
            return self.leave(host, out);
        }
        let visitor = Visitor { mac: pending.mac, home_agent: pending.request.home_agent };
        let ends = now + Duration::from_secs(lifetime.into());
        let action = Action::Forward(Hop::mac(self.iface, visitor.mac));
        out.route(Key::to(VISITORS, host), Route { action, life: Life::Until(ends) });
        // What this host itself sends to a visitor finds it without ARP, too (section 4.6).
        out.neighbor(self.iface, host, Neighbor::At(visitor.mac));
        self.expiry.set(host, ends);
        if self.visitors.insert(host, visitor).is_none() {
            out.mark(Event::VisitorArrived { host }.into());
        }
    }

    fn leave(&mut self, host: Ipv4Addr, out: &mut Outbox) {
        if self.visitors.remove(&host).is_some() {
            self.expiry.stop(host);
            out.route(Key::to(VISITORS, host), None);
            out.neighbor(self.iface, host, None);
        }
    }

    /// Sends a reply to who asked: by its link address, since ARP for it would be answered by its home agent.
    fn send_reply(&self, pending: &Pending, mut reply: Reply, out: &mut Outbox) {
        if let Some(association) = self.mobile_nodes.first(reply.home) {
            reply.sign(Between::MobileForeign, association);
        }
        let own = SocketAddrV4::new(self.config.address.address, PORT);
        let bytes = datagram(own, pending.from, ipv4::DEFAULT_TTL, &reply.emit());
        out.send(self.iface, Packet::new(pending.mac, bytes));
    }

    // --- what ends or fails ----------------------------------------------------------------------------------------

    /// An ICMP error about a request that was relayed. It has to quote the request itself: whoever can do that is on the
    /// way to the home agent.
    fn unreachable(&mut self, now: Instant, icmp: &[u8], out: &mut Outbox) -> Result<(), Reason> {
        let message = icmp::Message::parse(icmp)?;
        let quote = Quote::of(&message)?;
        // Behind the UDP header, or what is left of it.
        let field = |at: usize| quote.payload.get(8 + at..8 + at + 4)?.try_into().ok();
        let (Some(home), Some(low)) = (field(4), field(20)) else { return Err(NOT_PENDING) };
        let asked = (Ipv4Addr::from_octets(home), u32::from_be_bytes(low));
        let about_it = |pending: &Pending| {
            quote.protocol == ipv4::UDP
                && (quote.src, quote.dst) == (self.config.address.address, pending.request.home_agent)
        };
        if !self.pending.get(&asked).is_some_and(about_it) {
            return Err(NOT_PENDING);
        }
        let code = match (quote.kind, quote.code) {
            (3, 0) => Code::HomeNetUnreachable,
            (3, 1) => Code::HomeHostUnreachable,
            (3, 3) => Code::HomePortUnreachable,
            _ => Code::HomeUnreachable,
        };
        self.forget(asked).map_or(Err(NOT_PENDING), |pending| self.deny(now, &pending, code, out))
    }

    fn timeout(&mut self, now: Instant, out: &mut Outbox) {
        while let Some(asked) = self.waiting.pop(now) {
            if let Some(pending) = self.pending.remove(&asked) {
                out.mark(Event::RequestTimedOut { host: asked.0 }.into());
                // It may be silent because that mobile node was just answered: then it asks again by itself.
                let _ = self.deny(now, &pending, Code::RegistrationTimeout, out);
            }
        }
        while let Some(host) = self.expiry.pop(now) {
            self.leave(host, out);
            out.mark(Event::VisitorExpired { host }.into());
        }
        let busy = self.is_busy();
        self.advertiser.timeout(now, busy, out);
    }

    fn is_busy(&self) -> bool {
        self.visitors.len() >= self.config.visitors
    }

    /// The longest registration, in seconds.
    const fn longest(&self) -> u16 {
        self.config.registration_lifetime.as_secs() as u16
    }
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
            Input::Start(_) => self.start(out),
            Input::Timeout => self.timeout(now, out),
            Input::Packet(rx, packet) => self.packet(now, rx, packet, out),
            Input::Link(iface, Link::Up { .. }) if iface == self.iface => self.advertiser.up(now),
            Input::Link(iface, Link::Down(_)) if iface == self.iface => self.advertiser.down(),
            // A route to a visitor ends with the visit, which is known here.
            Input::Link(..)
            | Input::Idle(..)
            | Input::Stream(..)
            | Input::Command(..)
            | Input::Failed(_)
            | Input::Serve(..)
            | Input::Stored(_)
            | Input::Wall(_) => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let due = [self.waiting.next(), self.expiry.next(), self.advertiser.due()];
        due.into_iter().flatten().min()
    }

    fn status(&self) -> Value {
        let home_agent =
            |(host, visitor): (&Ipv4Addr, &Visitor)| (host.to_string(), Value::from(visitor.home_agent));
        let refused = self.refused.iter().map(|(reason, count)| (reason.0.to_owned(), Value::from(*count)));
        Value::map([
            ("visitors", Value::Map(self.visitors.iter().map(home_agent).collect())),
            ("pending", Value::from(self.pending.len() as u64)),
            ("refused", Value::Map(refused.collect())),
        ])
    }
}

/// The half of an Identification that a reply repeats.
const fn low(identification: u64) -> u32 {
    identification as u32
}
