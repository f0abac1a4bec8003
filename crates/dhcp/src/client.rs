//! The client: acquires an address for an interface, and keeps it while the link is up (RFC 2131, section 4.4).
//!
//! ```text
//!           link up            OFFER                ACK             no answer to ARP
//!   idle ──────────> selecting ─────> requesting ──────────> probing ──────────────> bound: renew at T1, rebind at T2
//!                        ^  ^             │ NAK, no answer      │ another host uses it    │ NAK, end of the lease
//!                        │  └─────────────┘                     v                         │
//!                        │ <────────── pausing (10 s) <── DECLINE                         │
//!                        └────────────────────────────────────────────────────────────────┘
//! ```

use crate::config::{ClientConfig, Probing};
use crate::lease::{Lease, check};
use crate::mark::{CLIENT, DhcpEvent};
use crate::message::{CLIENT_PORT, Kind, Message, SERVER_PORT};
use crate::refusal;
use node::config::{ConfigError, Interfaces};
use node::{
    Action, Announcer, Command, FailedAct, Hop, Input, InterfaceAddress, Lifetime, Link, Listen, Neighbor,
    NextHop, Notification, Outbox, Proto, Refusals, Rng, Role, Route, RouteKey, Rx, TimerName, Timers, Value,
};
use wire::{Duration, Iface, Instant, Ipv4Addr, Mac, Packet, Prefix, Reason, SocketAddrV4, arp, udp};

/// The longest wait for an answer (RFC 2131, section 4.1).
const LONGEST_WAIT: Duration = Duration::from_secs(64);
/// The number of times that a request for an offered address is sent (RFC 2131, section 3.1, step 5).
const REQUESTS: u32 = 4;
/// The pause after an address could not be used (RFC 2131, section 3.1, step 5). Within this time of a first conflict, a
/// second one ends the use of an address (`DEFEND_INTERVAL` of RFC 5227).
const PAUSE: Duration = Duration::from_secs(10);
/// The longest random wait before the first ARP probe (`PROBE_WAIT` of RFC 5227, section 1.1).
const PROBE_WAIT: Duration = Duration::from_secs(1);
/// The number of ARP probes (`PROBE_NUM` of RFC 5227, section 1.1).
const PROBE_NUM: u8 = 3;
/// The shortest and the longest time between two ARP probes (`PROBE_MIN` and `PROBE_MAX` of RFC 5227, section 1.1).
const PROBE_MIN: Duration = Duration::from_secs(1);
const PROBE_MAX: Duration = Duration::from_secs(2);
/// The wait after the last ARP probe (`ANNOUNCE_WAIT` of RFC 5227, section 1.1).
const ANNOUNCE_WAIT: Duration = Duration::from_secs(2);
/// The options that the client asks for: the mask, the router, and the times of the lease.
const WANTS: [u8; 5] = [1, 3, 51, 58, 59];
const DEFAULT_ROUTE: RouteKey = RouteKey { class: None, src: Prefix::ANY, dst: Prefix::ANY };

#[derive(Clone, Copy, Debug)]
enum Timer {
    /// The pause after an address could not be used has ended.
    Begin,
    /// The wait for an answer of a server has ended.
    Retry,
    /// The wait for an answer to an ARP probe has ended.
    Probe,
    /// T1, or the next request after T1.
    Renew,
    /// T2, or the next request after T2.
    Rebind,
    /// The lease ends.
    Expire,
}

impl TimerName for Timer {
    const ALL: &'static [Self] =
        &[Self::Begin, Self::Retry, Self::Probe, Self::Renew, Self::Rebind, Self::Expire];
    fn index(self) -> usize {
        self as usize
    }
}

#[derive(Clone, Debug)]
enum State {
    /// The link is down, or the operator has released the lease.
    Idle,
    /// The client waits before it begins again.
    Pausing,
    /// DISCOVER was sent.
    Selecting,
    /// REQUEST was sent to the server that offered this address.
    Requesting(InterfaceAddress, Ipv4Addr),
    /// The lease was granted. The client has sent this number of ARP probes for the address.
    Probing(Lease, u8),
    /// The client uses the address.
    Bound(Lease, Phase),
}

/// What the client does about a lease that it uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Quiet,
    /// It has asked the server of the lease to extend it.
    Renewing,
    /// It has asked all servers to extend the lease.
    Rebinding,
}

/// The role of a client for one interface.
#[derive(Debug)]
pub struct Client {
    config: ClientConfig,
    iface: Iface,
    listens: [Listen; 2],
    rng: Rng,
    timers: Timers<Timer, 6>,
    announcer: Announcer,
    /// The link address of the interface; `None` while the link is down.
    mac: Option<Mac>,
    state: State,
    /// The id of the present transaction. No message is accepted without one.
    transaction: Option<u32>,
    /// When the client began to acquire or to extend its address.
    begun: Instant,
    /// The `secs` field of the last DISCOVER, which the REQUEST for the offered address repeats.
    seconds: u16,
    /// When the request was first sent. A lease counts from then: its end is not later at the client than at the server.
    sent: Instant,
    /// How many times the DISCOVER or REQUEST of this state was sent.
    attempts: u32,
    /// The address of the last lease, which the client requests again.
    last: Option<Ipv4Addr>,
    /// The number of NAKs since the client last had an address.
    naks: u32,
    /// When another host last used the client's address.
    conflict: Option<Instant>,
    refused: Refusals,
}

impl Client {
    /// Creates a client on a host with these interfaces. An error names the invalid key of the configuration.
    pub fn new(config: ClientConfig, interfaces: Interfaces<'_>, rng: Rng) -> Result<Self, ConfigError> {
        config.check()?;
        let iface = interfaces.number("interface", &config.interface)?;
        Ok(Self {
            iface,
            listens: [Listen::Group(iface, Ipv4Addr::BROADCAST), Listen::Local(Proto::Udp(CLIENT_PORT))],
            rng,
            timers: Timers::default(),
            announcer: Announcer::new(config.announcements.clone()),
            mac: None,
            state: State::Idle,
            transaction: None,
            begun: Instant::ZERO,
            seconds: 0,
            sent: Instant::ZERO,
            attempts: 0,
            last: None,
            naks: 0,
            conflict: None,
            refused: Refusals::default(),
            config,
        })
    }

    // --- the link --------------------------------------------------------------------------------------------------

    fn link(&mut self, now: Instant, link: Link<'_>, out: &mut Outbox) {
        match link {
            // The host may be on another link now, where the address is not valid.
            Link::Up { mac, .. } => {
                self.mac = Some(mac);
                self.give_up("link up", out);
                self.naks = 0;
                self.begin(now, out);
            }
            Link::Down(Link::UNSUPPORTED) | Link::Heard(..) => {}
            // The address remains until the link returns or the lease ends, so that a host without another address can
            // keep its connections.
            Link::Down(_) => {
                self.mac = None;
                self.transaction = None;
                for timer in [Timer::Begin, Timer::Retry, Timer::Renew, Timer::Rebind] {
                    self.timers.stop(timer);
                }
                if !matches!(self.state, State::Bound(..)) {
                    self.give_up("link down", out);
                }
            }
        }
    }

    /// Ends the lease and everything that is under way. The state is `Idle` then.
    fn give_up(&mut self, why: &'static str, out: &mut Outbox) {
        self.timers = Timers::default();
        self.transaction = None;
        self.conflict = None;
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Probing(lease, _) => out.neighbor(self.iface, lease.address.address, None),
            State::Bound(lease, _) => {
                let address = lease.address.address;
                self.announcer.stop(address);
                if self.config.default_route && lease.router.is_some() {
                    out.route(DEFAULT_ROUTE, None);
                }
                out.remove_address(self.iface, lease.address);
                out.notify(Notification::AddressLost(self.iface, lease.address));
                out.mark(DhcpEvent::AddressGone { address, why }.into());
            }
            State::Idle | State::Pausing | State::Selecting | State::Requesting(..) => {}
        }
    }

    // --- an address (RFC 2131, section 3.1) ------------------------------------------------------------------------

    /// Begins to acquire an address. Does nothing while the link is down.
    fn begin(&mut self, now: Instant, out: &mut Outbox) {
        if self.mac.is_none() {
            return;
        }
        out.mark(DhcpEvent::AddressBegun.into());
        self.state = State::Selecting;
        self.open(now);
        self.repeat(now, out);
    }

    /// Begins a transaction.
    fn open(&mut self, now: Instant) {
        self.transaction = Some(self.rng.draw() as u32);
        self.begun = now;
        self.attempts = 0;
    }

    /// Begins again after a pause.
    fn pause(&mut self, now: Instant, pause: Duration) {
        self.state = State::Pausing;
        self.transaction = None;
        self.timers.stop(Timer::Retry);
        self.timers.set(Timer::Begin, now + pause);
    }

    /// Sends the DISCOVER or the REQUEST of the present state once more. If a REQUEST for an offered address was not
    /// answered, the client begins again.
    fn repeat(&mut self, now: Instant, out: &mut Outbox) {
        let message = match &self.state {
            State::Selecting => {
                let discover = Message { requested: self.last, ..self.message(now, Kind::Discover) };
                self.seconds = discover.seconds;
                discover
            }
            State::Requesting(..) if self.attempts >= REQUESTS => return self.begin(now, out),
            State::Requesting(address, server) => Message {
                requested: Some(address.address),
                server: Some(*server),
                // Relay agents decide by this field to which servers they forward a message, and must forward the REQUEST to
                // those that got the DISCOVER (RFC 2131, section 3.1, step 3).
                seconds: self.seconds,
                ..self.message(now, Kind::Request)
            },
            State::Idle | State::Pausing | State::Probing(..) | State::Bound(..) => return,
        };
        self.broadcast(Ipv4Addr::UNSPECIFIED, &message, out);
        if self.attempts == 0 {
            self.sent = now;
        }
        self.attempts += 1;
        let wait = self.wait(self.attempts);
        self.timers.set(Timer::Retry, now + wait);
    }

    /// Returns the wait for an answer to the attempt of this number, from 1.
    fn wait(&mut self, attempt: u32) -> Duration {
        let doubled = self.config.retry.saturating_mul(1 << (attempt.max(1) - 1).min(10)).min(LONGEST_WAIT);
        let random = (self.rng.draw() % 1000) as f64 / 1000.0;
        doubled.mul_f64(0.75 + random / 2.0)
    }

    /// Returns a message of the present transaction.
    fn message(&self, now: Instant, kind: Kind) -> Message {
        let mac = self.mac.unwrap_or(Mac::ZERO);
        let message = Message::new(kind, self.transaction.unwrap_or_default(), mac);
        let is_question = matches!(kind, Kind::Discover | Kind::Request);
        Message {
            seconds: u16::try_from(now.since(self.begun).as_secs()).unwrap_or(u16::MAX),
            // Without an address, the node receives no unicast to the offered address.
            broadcast: is_question,
            wants: if is_question { WANTS.to_vec() } else { Vec::new() },
            ..message
        }
    }

    /// Sends a message to all servers of the link.
    fn broadcast(&self, from: Ipv4Addr, message: &Message, out: &mut Outbox) {
        out.send(self.iface, Packet::new(Mac::BROADCAST, datagram(from, Ipv4Addr::BROADCAST, message)));
    }

    /// Takes the first offer that is acceptable.
    fn offer(&mut self, now: Instant, message: &Message, out: &mut Outbox) -> Result<(), Reason> {
        let (address, server, _) = check(message)?;
        self.state = State::Requesting(address, server);
        self.attempts = 0;
        self.repeat(now, out);
        Ok(())
    }

    /// Takes the lease that a server granted. The address is used after no host has answered an ARP probe.
    fn granted(
        &mut self,
        now: Instant,
        (message, from): (&Message, Mac),
        (offered, server): (InterfaceAddress, Ipv4Addr),
        out: &mut Outbox,
    ) -> Result<(), Reason> {
        let lease = Lease::of(message, from, self.sent, &mut self.rng)?;
        if lease.terms.server != server {
            return Err(refusal::OTHER_SERVER);
        }
        if lease.address.address != offered.address {
            return Err(refusal::OTHER_ADDRESS);
        }
        self.transaction = None;
        self.timers.stop(Timer::Retry);
        if self.probes() == 0 {
            self.bind(now, lease, out);
            return Ok(());
        }
        out.neighbor(self.iface, lease.address.address, Neighbor::Watched);
        self.state = State::Probing(lease, 0);
        match self.config.probing {
            Probing::Quick => self.probe(now, out),
            Probing::Rfc5227 => {
                let wait = self.rng.below(PROBE_WAIT);
                self.timers.set(Timer::Probe, now + wait);
            }
        }
        Ok(())
    }

    /// Returns the number of ARP probes for a new address.
    const fn probes(&self) -> u8 {
        match self.config.probing {
            Probing::Quick => self.config.probes,
            Probing::Rfc5227 => PROBE_NUM,
        }
    }

    /// Sends the next ARP probe for the address, or uses the address after the last one (RFC 5227, section 2.1).
    fn probe(&mut self, now: Instant, out: &mut Outbox) {
        let probes = self.probes();
        let (State::Probing(lease, sent), Some(mac)) = (&mut self.state, self.mac) else { return };
        if *sent >= probes {
            let lease = lease.clone();
            out.neighbor(self.iface, lease.address.address, None);
            return self.bind(now, lease, out);
        }
        *sent += 1;
        let is_last = *sent == probes;
        let probe = arp::Message::request(mac, Ipv4Addr::UNSPECIFIED, lease.address.address);
        out.send(self.iface, Packet::arp(Mac::BROADCAST, &probe));
        let wait = match self.config.probing {
            Probing::Quick => self.config.probe_wait,
            Probing::Rfc5227 if is_last => ANNOUNCE_WAIT,
            Probing::Rfc5227 => PROBE_MIN + self.rng.below(PROBE_MAX.saturating_sub(PROBE_MIN)),
        };
        self.timers.set(Timer::Probe, now + wait);
    }

    fn bind(&mut self, now: Instant, lease: Lease, out: &mut Outbox) {
        let Lease { address, router, terms } = lease;
        self.naks = 0;
        self.last = Some(address.address);
        out.add_address(self.iface, address);
        if let Some(router) = router.filter(|_| self.config.default_route) {
            let action = Action::Forward(Hop { iface: self.iface, to: NextHop::Via(router) });
            out.route(DEFAULT_ROUTE, Route::new(action, Lifetime::Permanent));
        }
        let (server, lease_s) = (terms.server, terms.seconds);
        out.mark(DhcpEvent::AddressReady { address: address.address, server, lease_s }.into());
        if let Some(mac) = self.mac {
            self.announcer.announce(now, (self.iface, address.address), mac, out);
        }
        out.notify(Notification::AddressAcquired(self.iface, address, router));
        self.hold(lease);
    }

    /// Keeps a lease, and sets its timers.
    fn hold(&mut self, lease: Lease) {
        self.transaction = None;
        self.timers.set(Timer::Renew, lease.terms.renew);
        self.timers.set(Timer::Rebind, lease.terms.rebind);
        self.timers.set(Timer::Expire, lease.terms.end);
        self.state = State::Bound(lease, Phase::Quiet);
    }

    // --- the lease (RFC 2131, section 4.4.5) -----------------------------------------------------------------------

    /// Asks the server of the lease (`Renewing`) or all servers (`Rebinding`) to extend the lease.
    fn extend(&mut self, now: Instant, phase: Phase, out: &mut Outbox) {
        let State::Bound(lease, present) = &mut self.state else { return };
        let (own, terms, is_first) = (lease.address.address, lease.terms, *present != phase);
        *present = phase;
        if is_first {
            self.open(now);
            self.sent = now;
        }
        let message = Message { current: own, broadcast: false, ..self.message(now, Kind::Request) };
        if phase == Phase::Renewing {
            out.send_routed(Packet::new(Mac::ZERO, datagram(own, terms.server, &message)));
            if let Some(next) = terms.again(now, terms.rebind) {
                self.timers.set(Timer::Renew, next);
            }
        } else {
            self.timers.stop(Timer::Renew);
            self.broadcast(own, &message, out);
            if let Some(next) = terms.again(now, terms.end) {
                self.timers.set(Timer::Rebind, next);
            }
        }
    }

    /// Takes the extension of the lease. The address, its prefix and its router remain.
    fn extended(&mut self, message: &Message, from: Mac) -> Result<(), Reason> {
        let State::Bound(held, phase) = &self.state else { return Err(refusal::UNEXPECTED) };
        let with_mask = Message { prefix: Some(held.address.link.len()), ..message.clone() };
        let new = Lease::of(&with_mask, from, self.sent, &mut self.rng)?;
        if *phase == Phase::Renewing && new.terms.server != held.terms.server {
            return Err(refusal::OTHER_SERVER);
        }
        if new.address.address != held.address.address {
            return Err(refusal::OTHER_ADDRESS);
        }
        let lease = Lease { terms: new.terms, ..held.clone() };
        self.hold(lease);
        Ok(())
    }

    /// Handles a NAK: begins again. After the second NAK, the client waits before it begins
    /// again: a server that refuses each request must not cause constant traffic.
    fn nak(&mut self, now: Instant, message: &Message, out: &mut Outbox) -> Result<(), Reason> {
        let server = message.server.ok_or(refusal::NO_SERVER)?;
        let expected = match &self.state {
            State::Requesting(_, server) => Some(*server),
            State::Bound(lease, Phase::Renewing) => Some(lease.terms.server),
            State::Bound(_, Phase::Rebinding) => None,
            _ => return Err(refusal::UNEXPECTED),
        };
        if expected.is_some_and(|expected| expected != server) {
            return Err(refusal::OTHER_SERVER);
        }
        out.mark(DhcpEvent::LeaseRefused { server }.into());
        self.give_up("refused", out);
        self.last = None;
        self.naks += 1;
        if self.naks == 1 {
            self.begin(now, out);
        } else {
            let pause = self.wait(self.naks - 1);
            self.pause(now, pause);
        }
        Ok(())
    }

    /// Handles an ARP message of another host that uses `address` (RFC 5227, sections 2.1.1 and 2.4). A first conflict of
    /// an address in use is answered by an announcement; a second one within [`PAUSE`] ends the use of the address.
    fn in_use(&mut self, now: Instant, address: Ipv4Addr, out: &mut Outbox) {
        let (lease, is_bound) = match &self.state {
            State::Probing(lease, _) => (lease, false),
            State::Bound(lease, _) => (lease, true),
            _ => return,
        };
        if lease.address.address != address {
            return;
        }
        let server = lease.terms.server;
        out.mark(DhcpEvent::AddressInUse { address }.into());
        let is_first = self.conflict.replace(now).is_none_or(|last| now >= last + PAUSE);
        if is_bound && is_first {
            if let Some(mac) = self.mac {
                self.announcer.announce(now, (self.iface, address), mac, out);
            }
            return;
        }
        self.give_up("in use", out);
        self.last = None;
        if self.mac.is_none() {
            return;
        }
        self.open(now);
        let decline =
            Message { requested: Some(address), server: Some(server), ..self.message(now, Kind::Decline) };
        self.broadcast(Ipv4Addr::UNSPECIFIED, &decline, out);
        self.pause(now, PAUSE);
    }

    /// Gives up the lease and reports this to its server, if the link is up.
    fn release(&mut self, now: Instant, why: &'static str, out: &mut Outbox) {
        let State::Bound(lease, _) = self.state.clone() else { return self.give_up(why, out) };
        self.give_up(why, out);
        if self.mac.is_none() {
            return;
        }
        self.open(now);
        let own = lease.address.address;
        let message =
            Message { current: own, server: Some(lease.terms.server), ..self.message(now, Kind::Release) };
        self.transaction = None;
        // The host has no address any more, so it cannot ask for the server's link address.
        let bytes = datagram(own, lease.terms.server, &message);
        out.send(self.iface, Packet::new(lease.terms.server_mac, bytes));
    }

    // --- inputs ----------------------------------------------------------------------------------------------------

    fn packet(&mut self, now: Instant, rx: Rx, packet: Packet, out: &mut Outbox) {
        // The group that the role listens to also receives packets for other roles, and answers to other clients.
        if rx.iface != self.iface || !Message::is_for(&rx.header, rx.payload(&packet), CLIENT_PORT) {
            return out.pass(rx, packet);
        }
        let message = Message::of(&rx.header, rx.payload(&packet), CLIENT_PORT);
        let from = packet.link.src;
        let ends = match message {
            Ok(message) if Some(message.client) != self.mac => return out.pass(rx, packet),
            Ok(message) => self.receive(now, &message, from, out),
            Err(malformed) => Err(malformed.into()),
        };
        self.refused.end(rx.iface, packet, ends, out);
    }

    fn receive(
        &mut self,
        now: Instant,
        message: &Message,
        from: Mac,
        out: &mut Outbox,
    ) -> Result<(), Reason> {
        if self.transaction.is_some_and(|transaction| transaction != message.transaction) {
            return Err(refusal::TRANSACTION);
        }
        match (self.state.clone(), message.kind) {
            _ if self.transaction.is_none() => Err(refusal::UNEXPECTED),
            (State::Selecting, Kind::Offer) => self.offer(now, message, out),
            (State::Requesting(offered, server), Kind::Ack) => {
                self.granted(now, (message, from), (offered, server), out)
            }
            (State::Bound(_, Phase::Renewing | Phase::Rebinding), Kind::Ack) => self.extended(message, from),
            (_, Kind::Nak) => self.nak(now, message, out),
            _ => Err(refusal::UNEXPECTED),
        }
    }

    fn timeout(&mut self, now: Instant, out: &mut Outbox) {
        self.announcer.timeout(now, out);
        while let Some(timer) = self.timers.pop(now) {
            match timer {
                Timer::Begin => self.begin(now, out),
                Timer::Retry => self.repeat(now, out),
                Timer::Probe => self.probe(now, out),
                Timer::Renew => self.extend(now, Phase::Renewing, out),
                Timer::Rebind => self.extend(now, Phase::Rebinding, out),
                Timer::Expire => {
                    self.give_up("lease ended", out);
                    self.begin(now, out);
                }
            }
        }
    }

    /// Handles an address that the operating system could not add or remove. If it was not added, the lease is given up,
    /// and the client begins again after a pause.
    fn failed(
        &mut self,
        now: Instant,
        address: InterfaceAddress,
        is_added: bool,
        why: &str,
        out: &mut Outbox,
    ) {
        out.mark(DhcpEvent::AddressFailed { address: address.address, why: why.to_owned() }.into());
        let is_held = matches!(&self.state, State::Bound(lease, _) if lease.address == address);
        if is_added && is_held {
            self.release(now, "not added", out);
            if self.mac.is_some() {
                self.pause(now, PAUSE);
            }
        }
    }

    fn command(&mut self, now: Instant, command: &Command, out: &mut Outbox) -> Result<Value, String> {
        match (command.verb.as_str(), &self.state) {
            ("release", State::Bound(lease, _)) => {
                let address = lease.address.address;
                self.release(now, "released", out);
                Ok(Value::map([("address", Value::from(address))]))
            }
            ("release", _) => Err("the interface has no address of a lease".to_owned()),
            ("renew", _) if self.mac.is_none() => {
                Err(format!("the link of `{}` is down", self.config.interface))
            }
            ("renew", State::Bound(lease, _)) => {
                let address = lease.address.address;
                self.extend(now, Phase::Renewing, out);
                Ok(Value::map([("address", Value::from(address))]))
            }
            ("renew", _) => {
                self.give_up("renew", out);
                self.begin(now, out);
                Ok(Value::None)
            }
            (verb, _) => Err(format!("unknown command `{verb}`; known: {}", self.verbs().join(", "))),
        }
    }
}

/// Returns the datagram from a client to servers.
fn datagram(from: Ipv4Addr, to: Ipv4Addr, message: &Message) -> Vec<u8> {
    let (from, to) = (SocketAddrV4::new(from, CLIENT_PORT), SocketAddrV4::new(to, SERVER_PORT));
    udp::packet(from, to, &message.emit())
}

impl Role for Client {
    fn name(&self) -> &'static str {
        CLIENT
    }

    fn listens(&self) -> &[Listen] {
        &self.listens
    }

    fn verbs(&self) -> &[&'static str] {
        &["release", "renew"]
    }

    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Outbox) {
        match input {
            Input::Timeout => self.timeout(now, out),
            Input::Packet(rx, packet) => self.packet(now, rx, packet, out),
            Input::Link(iface, link) if iface == self.iface => self.link(now, link, out),
            Input::Notification(Notification::AddressInUse(iface, address, _)) if *iface == self.iface => {
                self.in_use(now, *address, out);
            }
            Input::Failed(fault) => {
                if let FailedAct::Address(_, address, is_added) = fault.act {
                    self.failed(now, address, is_added, &fault.why, out);
                }
            }
            Input::Command(id, command) => {
                let answer = self.command(now, command, out);
                out.answer(id, answer);
            }
            Input::Start(_)
            | Input::Link(..)
            | Input::Idle(..)
            | Input::Notice(_)
            | Input::Stream(..)
            | Input::Serve(..)
            | Input::Wall(_)
            | Input::Notification(_)
            | Input::Stored(_) => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        Instant::sooner(self.timers.next(), self.announcer.due())
    }

    fn status(&self) -> Value {
        let (state, lease) = match &self.state {
            State::Idle => ("idle", None),
            State::Pausing => ("pausing", None),
            State::Selecting => ("selecting", None),
            State::Requesting(..) => ("requesting", None),
            State::Probing(lease, _) => ("probing", Some(lease)),
            State::Bound(lease, Phase::Quiet) => ("bound", Some(lease)),
            State::Bound(lease, Phase::Renewing) => ("renewing", Some(lease)),
            State::Bound(lease, Phase::Rebinding) => ("rebinding", Some(lease)),
        };
        let of_lease = |value: fn(&Lease) -> Value| lease.map_or(Value::None, value);
        Value::map([
            ("state", Value::from(state)),
            ("address", of_lease(|lease| Value::from(lease.address.to_string()))),
            ("router", of_lease(|lease| lease.router.map_or(Value::None, Value::from))),
            ("server", of_lease(|lease| Value::from(lease.terms.server))),
            ("lease_s", of_lease(|lease| Value::from(lease.terms.seconds))),
            ("refused", self.refused.status()),
        ])
    }
}
