//! The mobile host's side: it greets routers, and serves connections through them to the programs of its host.
//!
//! ```text
//!  program ── Serve/Served ── this role ── TCP ── support router ── TCP ── peer
//! ```
//!
//! After a call and its answer, this role relays between the program's stream and the stream to the router. A handoff
//! changes neither stream: only the router at the other end changes.

mod registration;
mod streams;

use crate::TRANSPORT;
use crate::config::MobileHostConfig;
use crate::mark::MOBILE_HOST;
use crate::message::{CONNECTIONS, Datagram, Entry, Greeting, PORT, Signed};
use crate::router::refusal;
use node::config::ConfigError;
use node::{
    Addr, Input, Listen, MigrateOp, Notification, Outbox, Proto, Refusals, Role, Rx, StreamId, StreamOp,
    TimerName, Timers, Transport, Value,
};
use std::collections::{BTreeMap, VecDeque};
use streams::far;
use wire::{Duration, Instant, Ipv4Addr, Packet, Reason, WallTime, udp};

/// The time for which greetings still name a connection after it has ended cleanly. In this time the last FIN may be
/// retransmitted.
const CLOSING: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug)]
enum Timer {
    /// The router has not answered: the host repeats its greeting.
    Repeat,
    /// The router has not answered any repetition: the host gives up its connections.
    Hopeless,
    /// The time [`CLOSING`] of a closed connection has passed: greetings no longer name the connection.
    Closing,
    /// The host repeats an answered greeting, to check that the router still knows the host.
    Refresh,
}

impl TimerName for Timer {
    const ALL: &'static [Self] = &[Self::Repeat, Self::Hopeless, Self::Closing, Self::Refresh];
    fn index(self) -> usize {
        self as usize
    }
}

/// The role of a mobile host: it greets routers, and serves connections through them to the programs of its host.
#[derive(Debug)]
pub struct MobileHost {
    config: MobileHostConfig,
    listens: [Listen; 1],
    serves: [Transport; 1],
    /// The present router: the host's gateway.
    router: Option<Ipv4Addr>,
    /// Earlier routers, the latest first.
    previous: VecDeque<Ipv4Addr>,
    /// The greeting that the router has not answered yet.
    greeting: Option<PendingGreeting>,
    /// The greeting that the router has answered. `None` while a greeting waits for an answer.
    answered: Option<Signed<Greeting>>,
    /// The latest sequence that was used in a greeting or call.
    sequence: u64,
    clock: WallTime,
    timers: Timers<Timer, 4>,
    /// The connections, by the program's stream.
    connections: BTreeMap<StreamId, Connection>,
    /// Connections that ended cleanly, each with the time until which greetings name it, the oldest first.
    closing: VecDeque<(Entry, Instant)>,
    /// The program's stream for each stream to a router.
    programs: BTreeMap<StreamId, StreamId>,
    next_number: u32,
    next_stream: u32,
    refused: Refusals,
}

/// A greeting that waits for its answer.
#[derive(Debug)]
struct PendingGreeting {
    greeting: Signed<Greeting>,
    /// The number of times that the greeting was sent.
    attempt: u32,
}

#[derive(Debug)]
struct Connection {
    number: u32,
    local: Option<Addr>,
    peer: Addr,
    /// The stream to the router. `None` before it is opened, and after it has ended.
    inner: Option<StreamId>,
    state: State,
    /// Bytes that may be written to the stream to the router.
    credit: usize,
    /// Bytes that the program asked to read and has not received.
    wanted: usize,
    finishing: bool,
}

#[derive(Debug)]
enum State {
    /// There is no router yet, or the stream to it is not open.
    Waiting,
    /// The stream to the router is open. `called`: whether the call was sent. The call waits until there is credit for
    /// all its bytes. `heard`: the received part of the answer.
    Calling { entry: Entry, called: bool, heard: Vec<u8> },
    /// The router has answered that the connection to the peer is open.
    Open(Entry),
}

impl MobileHost {
    /// Returns the role with this configuration, or an error if [`MobileHostConfig::check`] fails.
    pub fn new(config: MobileHostConfig) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            config,
            listens: [Listen::Local(Proto::Udp(PORT))],
            serves: [TRANSPORT],
            router: None,
            previous: VecDeque::new(),
            greeting: None,
            answered: None,
            sequence: 0,
            clock: WallTime::default(),
            timers: Timers::default(),
            connections: BTreeMap::new(),
            closing: VecDeque::new(),
            programs: BTreeMap::new(),
            next_number: 0,
            next_stream: 0,
            refused: Refusals::default(),
        })
    }

    /// Returns a sequence above all earlier sequences. It is at least the wall clock in nanoseconds. So it is also
    /// above the sequences from before a restart, unless the clock went back.
    fn next_sequence(&mut self, now: Instant) -> u64 {
        self.sequence = (self.sequence + 1).max(self.wall(now));
        self.sequence
    }

    /// Returns the wall clock in nanoseconds since 1970.
    fn wall(&self, now: Instant) -> u64 {
        self.clock.plus(now.since(Instant::ZERO)).0.max(0).cast_unsigned()
    }

    fn packet(&mut self, now: Instant, rx: Rx, packet: Packet, out: &mut Outbox) {
        let ends = self.datagram(now, rx, &packet, out);
        self.refused.end(rx.iface, packet, ends, out);
    }

    fn datagram(&mut self, now: Instant, rx: Rx, packet: &Packet, out: &mut Outbox) -> Result<(), Reason> {
        let datagram = udp::Datagram::parse(rx.payload(packet), rx.header.src, rx.header.dst)?;
        match Datagram::parse(datagram.payload)? {
            Datagram::GreetingReply(reply) => self.welcomed(now, &reply, out),
            Datagram::Lost(lost) => self.lost(&lost, out),
            _ => Err(refusal::UNEXPECTED),
        }
    }

    fn timeout(&mut self, now: Instant, out: &mut Outbox) {
        while let Some(timer) = self.timers.pop(now) {
            match timer {
                Timer::Repeat => self.repeat(now, out),
                Timer::Hopeless => self.despair(out),
                Timer::Closing => self.closing_ends(now, out),
                Timer::Refresh => self.refresh(now, out),
            }
        }
    }

    /// Notes a connection that has ended cleanly, so that greetings name it for [`CLOSING`].
    fn still_to_name(&mut self, now: Instant, entry: Entry, out: &mut Outbox) {
        self.closing.push_back((Entry { closing: true, ..entry }, now + CLOSING));
        self.closing_ends(now, out);
    }

    /// Removes closed connections after [`CLOSING`], and the oldest if there are more than [`CONNECTIONS`].
    fn closing_ends(&mut self, now: Instant, out: &mut Outbox) {
        let is_over = |closing: &VecDeque<(Entry, Instant)>| {
            closing.len() > CONNECTIONS || closing.front().is_some_and(|(_, until)| *until <= now)
        };
        while is_over(&self.closing) {
            if let Some((entry, _)) = self.closing.pop_front() {
                out.stream(StreamId(0), StreamOp::Migrate(MigrateOp::Guard(far(&entry), None)));
            }
        }
        match self.closing.front() {
            Some((_, until)) => self.timers.set(Timer::Closing, *until),
            None => self.timers.stop(Timer::Closing),
        }
    }
}

impl Role for MobileHost {
    fn name(&self) -> &'static str {
        MOBILE_HOST
    }

    fn listens(&self) -> &[Listen] {
        &self.listens
    }

    fn serves(&self) -> &[Transport] {
        &self.serves
    }

    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Outbox) {
        match input {
            Input::Start(boot) => {
                self.clock = boot.wall;
                self.next_number = (self.wall(now) / 1_000_000_000) as u32;
            }
            Input::Wall(zero) => self.clock = zero,
            Input::Timeout => self.timeout(now, out),
            Input::Packet(rx, packet) => self.packet(now, rx, packet, out),
            Input::Stream(id, event) => self.stream(now, id, event, out),
            Input::Serve(id, op) => self.serve(id, op, out),
            Input::Notification(Notification::Gateway(router)) => self.gateway(now, *router, out),
            Input::Notification(
                Notification::AddressAcquired(..)
                | Notification::AddressLost(..)
                | Notification::AddressInUse(..)
                | Notification::TunnelExit(..)
                | Notification::TunnelEntry(..),
            )
            | Input::Link(..)
            | Input::Idle(..)
            | Input::Notice(_)
            | Input::Command(..)
            | Input::Failed(_)
            | Input::Stored(_) => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.timers.next()
    }

    fn status(&self) -> Value {
        let state = |connection: &Connection| match connection.state {
            State::Waiting => "waiting",
            State::Calling { .. } => "calling",
            State::Open(_) => "open",
        };
        let connections = self.connections.values();
        let connections = connections.map(|here| (here.number.to_string(), Value::from(state(here))));
        Value::map([
            ("router", self.router.map_or(Value::None, Value::from)),
            ("welcome", Value::from(if self.greeting.is_none() { "yes" } else { "not yet" })),
            ("connections", Value::Map(connections.collect())),
            ("refused", self.refused.status()),
        ])
    }

    fn entries(&self) -> usize {
        self.connections.len()
    }
}
