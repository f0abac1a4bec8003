//! The support router: it relays between mobile hosts and their peers, and hands connections over when the hosts leave.
//!
//! ```text
//!            call                     both halves up              forward pointer
//!   (none) ──────> connecting ───────────────────────> serving ────────────────────> leaving ──> forgotten
//!   (none) ──────> expected ──> arriving ──> commit ──────^                             │
//!          greeting        entry                          └── refused: resumed here ────┘
//! ```
//!
//! A *half* is one of the two TCP connections of which a connection consists. The near half leads to the mobile host,
//! the far half to its peer. Each message is authenticated before it changes the state of a host or connection. A
//! mobile host signs its greetings and calls, and gives each a higher sequence number than all earlier ones. A forward
//! pointer is signed by the router that sends it, and carries the host's signed greeting.

mod connect;
mod connection;
mod guards;
mod handoff_in;
mod handoff_out;
mod host;
mod peer_channel;
mod registration;

use crate::config::SupportRouterConfig;
use crate::mark::{IndirectTcpEvent, SUPPORT_ROUTER};
use crate::message::{Datagram, PORT, Side, Verdict};
use auth::Key;
use connection::{Connection, Next, Stage};
use host::Host;
use node::config::ConfigError;
use node::{
    Addr, Expiry, Input, Listen, MigrateOp, Outbox, Proto, Refusals, Rng, Role, Rx, SocketOption,
    StreamEvent, StreamId, StreamOp, Transport, Tuple, Value,
};
use peer_channel::PeerChannel;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wire::ipv4::Header;
use wire::{Iface, Instant, Ipv4Addr, Mac, Packet, Reason, udp};

/// The reasons for which a router or a mobile host refuses a message or a caller. A malformed message is refused with
/// the reason that its parser returns.
pub mod refusal {
    use wire::Reason;

    /// The host or router that the message names is not configured here.
    pub const STRANGER: Reason = Reason("itcp_stranger");
    /// The signature is not that of the named sender.
    pub const FORGED: Reason = Reason("itcp_forged");
    /// The message is repeated or outdated: the router or host has accepted a later one, or does not wait for it.
    pub const STALE: Reason = Reason("itcp_stale");
    /// The message is for another router or host, or came from a host or router that cannot send it.
    pub const MISDIRECTED: Reason = Reason("itcp_misdirected");
    /// A message of this type is not expected here, or not now.
    pub const UNEXPECTED: Reason = Reason("itcp_unexpected");
    /// A caller did not authenticate itself within 5 s.
    pub const SILENT: Reason = Reason("itcp_silent");
    /// A caller that had not authenticated itself was closed when a new caller came, because there were too many
    /// unauthenticated callers.
    pub const BUSY: Reason = Reason("itcp_busy");
}

/// The use of a stream.
#[derive(Debug)]
enum StreamUse {
    /// An accepted connection of which the first message is incomplete.
    Caller {
        near: Tuple,
        heard: Vec<u8>,
        /// Bytes that may be written to the connection.
        room: usize,
    },
    /// A half of a mobile host's connection: the host's address, the connection's number, and the side of the half.
    Half(Ipv4Addr, u32, Side),
    /// A connection between this router and another.
    Router(Box<PeerChannel>),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Timer {
    /// An accepted connection has not authenticated itself in time, and is closed.
    Caller(StreamId),
    /// Expected connections of this host have not come in time, and are given up.
    Patience(Ipv4Addr),
    /// Calls that the greeting of this host names have not come in time, and are reported as lost.
    Called(Ipv4Addr),
    /// An earlier router (the second address) has not answered the forward pointer about a host (the first address).
    /// The forward pointer is repeated.
    Pointer(Ipv4Addr, Ipv4Addr),
    /// The router opens a broken connection to this other router again.
    Reopen(Ipv4Addr),
    /// The connection to this other router has shown no activity, and is replaced.
    Stalled(Ipv4Addr),
    /// The new router has shown no sign in time, so the handoff of this host's connections is given up.
    GiveUp(Ipv4Addr),
    /// The guard of this tuple expires.
    Silence(Tuple),
    /// The router stops intercepting the last segments on this tuple of an ended connection.
    Ended(Tuple),
}

/// The role of a support router: it relays connections of its configured hosts, and hands them over to other routers.
#[derive(Debug)]
pub struct SupportRouter {
    config: SupportRouterConfig,
    listens: [Listen; 1],
    intercepts: BTreeSet<Tuple>,
    hosts: BTreeMap<Ipv4Addr, Host>,
    routers: BTreeMap<Ipv4Addr, Key>,
    streams: BTreeMap<StreamId, StreamUse>,
    /// The connections that this router opened to other routers.
    channels: BTreeMap<Ipv4Addr, StreamId>,
    timers: Expiry<Timer>,
    /// Halves of lost connections. Segments on them are answered by resets for the time `silence`, even if this host
    /// would otherwise forward them.
    resets: BTreeSet<Tuple>,
    /// Halves of connections that have ended here. Their last segments are still intercepted.
    ended: BTreeSet<Tuple>,
    next_stream: u32,
    /// The wall clock just before the start, in nanoseconds since 1970. Greetings with sequences up to this value count
    /// as sent before the start.
    began: u64,
    rng: Rng,
    refused: Refusals,
}

/// The stream that listens for callers, and through which guards are set.
const LISTENER: StreamId = StreamId(0);

impl SupportRouter {
    /// Returns a router with this configuration, or an error if [`SupportRouterConfig::check`] fails. `rng` makes the
    /// nonces of connections to other routers.
    pub fn new(config: SupportRouterConfig, rng: Rng) -> Result<Self, ConfigError> {
        config.check()?;
        let hosts = config.hosts.iter().map(|peer| (peer.address, Host::new(peer.key.clone()))).collect();
        let routers = config.routers.iter().map(|peer| (peer.address, peer.key.clone())).collect();
        Ok(Self {
            listens: [Listen::Local(Proto::Udp(PORT))],
            intercepts: BTreeSet::new(),
            hosts,
            routers,
            streams: BTreeMap::new(),
            channels: BTreeMap::new(),
            timers: Expiry::default(),
            resets: BTreeSet::new(),
            ended: BTreeSet::new(),
            next_stream: 0,
            began: 0,
            rng,
            refused: Refusals::default(),
            config,
        })
    }

    fn start(&self, out: &mut Outbox) {
        let local = Addr::new(self.config.address, PORT);
        self.set_half(LISTENER, out);
        out.stream(LISTENER, StreamOp::Listen { by: Transport::Tcp, local, foreign: false });
    }

    // --- packets ---------------------------------------------------------------------------------------------------

    fn packet(&mut self, now: Instant, rx: Rx, packet: Packet, out: &mut Outbox) {
        if rx.header.protocol != wire::ipv4::UDP {
            // The packet is a segment of a connection of this router, or an ICMP error about one. The socket is on this
            // host, even if the address is not.
            return out.send(Iface::HOST, packet);
        }
        let ends = self.datagram(now, rx.iface, packet.link.src, &rx.header, rx.payload(&packet), out);
        self.refused.end(rx.iface, packet, ends, out);
    }

    fn datagram(
        &mut self,
        now: Instant,
        iface: Iface,
        mac: Mac,
        ip: &Header,
        payload: &[u8],
        out: &mut Outbox,
    ) -> Result<(), Reason> {
        let datagram = udp::Datagram::parse(payload, ip.src, ip.dst)?;
        match Datagram::parse(datagram.payload)? {
            Datagram::Greeting(greeting) => {
                if ip.src != greeting.message.host || ip.dst != self.config.address || mac.is_group() {
                    return Err(refusal::MISDIRECTED);
                }
                self.greeted(now, (iface, mac), greeting, out)
            }
            Datagram::ForwardPointer(pointer) => self.forwarded(now, &pointer, out),
            Datagram::ForwardReply(reply) => self.pointer_answered(now, &reply, out),
            Datagram::GreetingReply(_) | Datagram::Lost(_) => Err(refusal::UNEXPECTED),
        }
    }

    // --- streams ---------------------------------------------------------------------------------------------------

    fn stream(&mut self, now: Instant, id: StreamId, event: StreamEvent<'_>, out: &mut Outbox) {
        if let StreamEvent::Accepted(new, local, peer) = event {
            return self.accepted(now, new, Tuple { local, remote: peer }, out);
        }
        match self.streams.get_mut(&id) {
            None => {}
            Some(StreamUse::Caller { .. }) => self.caller(now, id, event, out),
            Some(StreamUse::Half(host, connection, side)) => {
                let (host, connection, side) = (*host, *connection, *side);
                if matches!(event, StreamEvent::Closed(_)) {
                    self.streams.remove(&id);
                }
                self.half(now, (host, connection, side), event, out);
            }
            Some(StreamUse::Router(_)) => self.channel_event(now, id, event, out),
        }
    }

    /// Handles an event of one half of a connection.
    fn half(
        &mut self,
        now: Instant,
        (host, number, side): (Ipv4Addr, u32, Side),
        event: StreamEvent<'_>,
        out: &mut Outbox,
    ) {
        let moves_unread = self.config.moves_unread;
        let connection = self.connection(host, number);
        match connection.and_then(|connection| connection.on(side, event, moves_unread)) {
            Some(Next::Relay) => self.connected(host, number, out),
            Some(Next::CallFailed(code)) => self.not_connected(host, number, code, out),
            Some(Next::EndCall) => self.call_ended(host, number, out),
            Some(Next::End) => self.ended(now, host, number),
            Some(Next::Export) => self.export_next(host, number, out),
            Some(Next::CannotLeave) => self.cannot_leave(host, number, out),
            Some(Next::Take) => self.take(now, host, number, out),
            Some(Next::CannotCome) => self.cannot_come(now, host, number, out),
            None => {}
        }
    }

    fn connection(&mut self, host: Ipv4Addr, number: u32) -> Option<&mut Connection> {
        self.hosts.get_mut(&host)?.connections.get_mut(&number)
    }

    /// Removes a connection, and the entries of its streams. Returns the connection, so that the caller can end its
    /// streams.
    fn forget(&mut self, host: Ipv4Addr, number: u32) -> Option<Connection> {
        let connection = self.hosts.get_mut(&host)?.connections.remove(&number)?;
        for id in [connection.near, connection.far].into_iter().flatten() {
            self.streams.remove(&id);
        }
        self.listen();
        Some(connection)
    }

    /// Notes that both halves of a connection have ended, here or at an earlier router. This host's stack then takes
    /// the last segments. The mobile host, to which the peer addresses them, would answer with a reset.
    fn ended(&mut self, now: Instant, host: Ipv4Addr, number: u32) {
        let Some(known) = self.hosts.get_mut(&host) else { return };
        let Some(connection) = known.connections.get_mut(&number) else { return };
        connection.stage = Stage::Over;
        let (entry, halves) = (connection.entry, [connection.near.take(), connection.far.take()]);
        known.bound_over();
        for id in halves.into_iter().flatten() {
            self.streams.remove(&id);
        }
        for tuple in [entry.near(), entry.far()] {
            self.take_in_last_segments(now, tuple);
        }
        self.listen();
    }

    /// Sets which packets are intercepted: those of connections that are here or expected, of lost connections that get
    /// resets, and of ended connections. Packets for a connection that is leaving are routed normally.
    fn listen(&mut self) {
        let over = self.ended.iter().filter(|tuple| *tuple.local.ip() != self.config.address);
        self.intercepts = self.resets.iter().chain(over).copied().collect();
        for connection in self.hosts.values().flat_map(|host| host.connections.values()) {
            if matches!(connection.stage, Stage::Leaving(_) | Stage::Over) {
                continue;
            }
            let entry = &connection.entry;
            self.intercepts.insert(entry.far());
            if *entry.router.ip() != self.config.address {
                self.intercepts.insert(entry.near());
            }
        }
    }

    fn new_stream(&mut self, what: StreamUse) -> StreamId {
        loop {
            self.next_stream = (self.next_stream + 1) % StreamId::OWN;
            let id = StreamId(self.next_stream);
            if id != LISTENER && !self.streams.contains_key(&id) {
                self.streams.insert(id, what);
                return id;
            }
        }
    }

    /// Sets the options of a half before it is opened or imported, or of the listener for all streams that it accepts.
    /// Nagle's algorithm would delay relayed bytes.
    fn set_half(&self, id: StreamId, out: &mut Outbox) {
        let SupportRouterConfig { send_buffer, receive_buffer, .. } = self.config;
        let sends = send_buffer.map(SocketOption::SendBuffer);
        let receives = receive_buffer.map(SocketOption::ReceiveBuffer);
        for knob in [Some(SocketOption::Nagle(false)), sends, receives].into_iter().flatten() {
            out.stream(id, StreamOp::Set(knob));
        }
    }

    /// Gives up connections of a host. Reports them to the host, and answers later segments of both ends by resets. A
    /// connection that the host has closed is over instead, without a report.
    fn lose(&mut self, now: Instant, host: Ipv4Addr, numbers: &[u32], why: &'static str, out: &mut Outbox) {
        let mut lost = Vec::new();
        for number in numbers {
            self.answer_commit(host, *number, Verdict::Failed, out);
            if self.connection(host, *number).is_some_and(|here| here.entry.closing) {
                self.is_over(now, host, *number, out);
                continue;
            }
            let Some(connection) = self.forget(host, *number) else { continue };
            connection.halves().for_each(|(_, id)| out.stream(id, StreamOp::Migrate(MigrateOp::Forget)));
            for tuple in [connection.entry.near(), connection.entry.far()] {
                self.refuse(now, tuple, out);
            }
            out.mark(if connection.entry.unanswered {
                IndirectTcpEvent::Undone { host, connection: *number }.into()
            } else {
                IndirectTcpEvent::Lost { host, connection: *number, why }.into()
            });
            lost.push(connection.entry.id);
        }
        if !lost.is_empty() {
            self.listen();
            self.tell_lost(host, lost, out);
        }
    }

    /// Ends a connection that the host has closed, and that no router has handed over.
    fn is_over(&mut self, now: Instant, host: Ipv4Addr, number: u32, out: &mut Outbox) {
        let Some(connection) = self.connection(host, number) else { return };
        let (entry, halves) = (connection.entry, connection.halves());
        halves.for_each(|(_, id)| out.stream(id, StreamOp::Migrate(MigrateOp::Forget)));
        self.ended(now, host, number);
        for tuple in [entry.near(), entry.far()] {
            self.last_segments(now, tuple, out);
        }
    }

    // --- time ------------------------------------------------------------------------------------------------------

    fn timeout(&mut self, now: Instant, out: &mut Outbox) {
        while let Some(due) = self.timers.pop(now) {
            match due {
                Timer::Caller(id) => {
                    if self.streams.remove(&id).is_some() {
                        self.refused.count(refusal::SILENT);
                        out.stream(id, StreamOp::Abort);
                    }
                }
                Timer::Patience(host) => self.patience_ends(now, host, out),
                Timer::Called(host) => self.not_called(host, out),
                Timer::Pointer(host, old) => self.point(now, host, old, out),
                Timer::Reopen(router) => self.reopen_channel(now, router, out),
                Timer::Stalled(router) => self.stalled(router, out),
                Timer::GiveUp(host) => self.give_up(now, host, out),
                Timer::Silence(tuple) => self.speaks_again(tuple, out),
                Timer::Ended(tuple) => {
                    if self.ended.remove(&tuple) {
                        self.listen();
                    }
                }
            }
        }
    }
}

impl Role for SupportRouter {
    fn name(&self) -> &'static str {
        SUPPORT_ROUTER
    }

    fn listens(&self) -> &[Listen] {
        &self.listens
    }

    fn intercepts(&self) -> &BTreeSet<Tuple> {
        &self.intercepts
    }

    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Outbox) {
        match input {
            Input::Start(boot) => {
                // Messages from before this start are stale, as sequences are taken from the wall clock. If a host's
                // clock is behind, the host receives the sequence that it has to exceed.
                let wall = boot.wall.plus(now.since(Instant::ZERO)).0;
                let before = wall.max(0).cast_unsigned().saturating_sub(1);
                self.began = before;
                self.hosts.values_mut().for_each(|host| host.forgets(before));
                self.start(out);
            }
            Input::Timeout => self.timeout(now, out),
            Input::Packet(rx, packet) => self.packet(now, rx, packet, out),
            Input::Stream(id, event) => self.stream(now, id, event, out),
            Input::Link(..)
            | Input::Idle(..)
            | Input::Notice(_)
            | Input::Command(..)
            | Input::Failed(_)
            | Input::Wall(_)
            | Input::Serve(..)
            | Input::Stored(_)
            | Input::Notification(_) => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.timers.next()
    }

    fn status(&self) -> Value {
        let hosts = self.hosts.iter().map(|(address, host)| (address.to_string(), host.status())).collect();
        Value::map([
            ("hosts", Value::Map(hosts)),
            ("links", Value::from(self.channels.len() as u64)),
            ("refused", self.refused.status()),
        ])
    }

    /// Returns the number of connections of hosts, and of forward pointers to earlier routers.
    fn entries(&self) -> usize {
        self.hosts.values().map(Host::entries).sum()
    }
}

/// Returns a datagram from this router, to be sent by the routing table.
fn routed(from: Ipv4Addr, to: Ipv4Addr, payload: &[u8]) -> Packet {
    let (from, to) = (Addr::new(from, PORT), Addr::new(to, PORT));
    Packet::new(Mac::ZERO, udp::packet(from, to, payload))
}

/// Bytes that wait until a stream has credit for them.
#[derive(Debug, Default)]
struct Outgoing {
    bytes: VecDeque<u8>,
    room: usize,
}

impl Outgoing {
    fn grant(&mut self, id: StreamId, more: usize, out: &mut Outbox) {
        self.room += more;
        self.flush(id, out);
    }

    fn push(&mut self, id: StreamId, bytes: &[u8], out: &mut Outbox) {
        self.bytes.extend(bytes);
        self.flush(id, out);
    }

    fn flush(&mut self, id: StreamId, out: &mut Outbox) {
        let most = self.room.min(self.bytes.len());
        if most > 0 {
            self.room -= most;
            out.stream(id, StreamOp::Write(self.bytes.drain(..most).collect()));
        }
    }
}
