//! The mobile host's side: it greets routers, and serves connections through them to the programs of its host.
//!
//! ```text
//!  program ── Serve/Served ── this role ── TCP ── support router ── TCP ── peer
//! ```
//!
//! The stream of a program is the stream to the router, behind a call and its answer. A handoff does not touch it: the router
//! at its other end changes, and nothing else.

use crate::TRANSPORT;
use crate::config::MobileHostConfig;
use crate::mark::{Event, MOBILE_HOST};
use crate::message::{
    Answer, CONNECTIONS, Call, Code, ConnectionId, Datagram, Entry, Greeting, GreetingReply, Lost, Message, PORT, PREVIOUS,
    Signed, Welcome,
};
use crate::router::refusal;
use node::config::ConfigError;
use node::stream::{Told, refusal as refused};
use node::{
    Addr, Guard, Input, Listen, News, Outbox, Proto, Role, Rx, StreamEvent, StreamId, StreamOp, TimerName,
    Timers, Transport, Tuple, Value, reason,
};
use std::collections::{BTreeMap, VecDeque, btree_map};
use wire::ipv4::Header;
use wire::{Duration, Instant, Ipv4Addr, Mac, Packet, PacketId, Reason, WallTime, udp};

/// A greeting is repeated after this time, and then after twice the time.
const FIRST_REPEAT: Duration = Duration::from_millis(250);
/// But not later than after this.
const LONGEST_REPEAT: Duration = Duration::from_secs(4);
/// While it has connections a host repeats its last greeting after this time: only its answer says that the router still knows of
/// them. One that has restarted does not, and its advertisements need not show that it has. As often as other soft state here.
const REFRESH: Duration = Duration::from_secs(3);
/// A host whose router does not answer for so long gives its connections up: nobody is to wait for ever.
const HOPELESS: Duration = Duration::from_mins(1);
/// So long after its program has closed a connection it is still named to routers: the last FIN may be sent again a few times.
const CLOSING: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug)]
enum Timer {
    /// The router has not answered.
    Repeat,
    /// It will not.
    Hopeless,
    /// A connection that was closed is over.
    Closing,
    /// The router is to show that it has not forgotten us.
    Refresh,
}

impl TimerName for Timer {
    const ALL: &'static [Self] = &[Self::Repeat, Self::Hopeless, Self::Closing, Self::Refresh];
    fn index(self) -> usize {
        self as usize
    }
}

/// The mobile host's side.
#[derive(Debug)]
pub struct MobileHost {
    config: MobileHostConfig,
    listens: [Listen; 1],
    serves: [Transport; 1],
    /// The router that packets leave by.
    router: Option<Ipv4Addr>,
    /// Those before it, the latest first.
    previous: VecDeque<Ipv4Addr>,
    /// What the router was told and has not answered.
    greeting: Option<Said>,
    /// The greeting that it answered last.
    answered: Option<Signed<Greeting>>,
    /// The latest number that was used.
    sequence: u64,
    clock: WallTime,
    timers: Timers<Timer, 4>,
    /// By the stream of the program.
    connections: BTreeMap<StreamId, Connection>,
    /// What was closed in order, until when it is named: the oldest first.
    closing: VecDeque<(Entry, Instant)>,
    /// Whose a stream to the router is.
    programs: BTreeMap<StreamId, StreamId>,
    next_number: u32,
    next_stream: u32,
    refused: BTreeMap<Reason, u64>,
}

/// A greeting that waits for its answer.
#[derive(Debug)]
struct Said {
    greeting: Signed<Greeting>,
    /// How often it was sent.
    attempt: u32,
}

#[derive(Debug)]
struct Connection {
    number: u32,
    local: Option<Addr>,
    peer: Addr,
    /// The stream to the router.
    inner: Option<StreamId>,
    state: State,
    /// What may be written to it.
    credit: usize,
    /// What the program asked to read and has not got.
    wanted: usize,
    finishing: bool,
}

#[derive(Debug)]
enum State {
    /// There is no router yet, or the stream to it is not open.
    Waiting,
    /// It is asked, once it can be said in one piece; what it has said.
    Calling { entry: Entry, called: bool, heard: Vec<u8> },
    /// It has connected.
    Open(Entry),
}

impl MobileHost {
    /// A host with this configuration.
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
            refused: BTreeMap::new(),
        })
    }

    /// Later than all before, after a restart too: the clock goes on meanwhile.
    fn next_sequence(&mut self, now: Instant) -> u64 {
        self.sequence = (self.sequence + 1).max(self.wall(now));
        self.sequence
    }

    /// Nanoseconds since 1970.
    fn wall(&self, now: Instant) -> u64 {
        self.clock.plus(now.since(Instant::ZERO)).0.max(0).cast_unsigned()
    }

    // --- routers ---------------------------------------------------------------------------------------------------

    /// Packets leave by this router from now on. It may be the same one, which has restarted: it knows nothing of us any more, and
    /// is greeted again.
    fn gateway(&mut self, now: Instant, router: Ipv4Addr, out: &mut Outbox) {
        if self.router == Some(router) {
            return self.greet(now, router, out);
        }
        if let Some(left) = self.router.replace(router) {
            self.previous.retain(|other| *other != left);
            self.previous.push_front(left);
            // Without a connection only the last router has anything to forget.
            let any =
                !self.closing.is_empty() || self.connections.values().any(Connection::is_known_to_router);
            self.previous.truncate(if any { PREVIOUS + 1 } else { 1 });
        }
        self.greet(now, router, out);
        // A connection for which no call was sent begins anew with this router.
        let uncalled = |connection: &Connection| {
            matches!(connection.state, State::Waiting | State::Calling { called: false, .. })
        };
        let waiting = self.connections.iter().filter(|(_, connection)| uncalled(connection));
        let waiting: Vec<StreamId> = waiting.map(|(program, _)| *program).collect();
        for program in waiting {
            self.begin(program, out);
        }
    }

    fn greet(&mut self, now: Instant, router: Ipv4Addr, out: &mut Outbox) {
        let sequence = self.next_sequence(now);
        let entries = self.connections.values_mut().filter_map(|connection| match &mut connection.state {
            State::Open(entry) => Some(*entry),
            // It may have been connected: if so it comes along, and if not we hear that it is lost.
            State::Calling { entry, called: true, .. } => {
                entry.calling &= *entry.router.ip() == router;
                Some(*entry)
            }
            _ => None,
        });
        // A greeting has room for CONNECTIONS entries: open connections first, then the latest that were closed.
        let closing = self.closing.iter().rev().map(|(entry, _)| *entry);
        let entries: Vec<Entry> = entries.chain(closing).take(CONNECTIONS).collect();
        let has_codes = !self.config.routers.is_empty();
        let room = if has_codes { Greeting::room_for_codes(entries.len()) } else { PREVIOUS };
        let others = self.previous.iter().copied().filter(|other| *other != router);
        let previous = others.take(room.min(PREVIOUS)).collect();
        let (host, again, codes) = (self.config.address, false, Vec::new());
        let greeting = Greeting { host, sequence, router, previous, entries, again, codes };
        let key_of = |router| self.config.key_of(router);
        let greeting = if has_codes { greeting.with_codes(key_of) } else { greeting };
        let greeting = Signed::new(greeting, key_of(router));
        self.greeting = Some(Said { greeting, attempt: 0 });
        self.answered = None;
        self.timers.stop(Timer::Refresh);
        self.timers.set(Timer::Hopeless, now + HOPELESS);
        self.repeat(now, out);
    }

    /// Says once more what was answered, if any connection depends on it. A router that knows it answers as before; one that has
    /// restarted wants to hear a later greeting, which names the connections that there are now.
    fn refresh(&mut self, now: Instant, out: &mut Outbox) {
        if !self.connections.values().any(Connection::is_known_to_router) {
            return;
        }
        if let Some(answered) = self.answered.take() {
            let message = Greeting { again: true, codes: Vec::new(), ..answered.message };
            let greeting = Signed::new(message, self.config.key_of(answered.message.router));
            self.greeting = Some(Said { greeting, attempt: 0 });
            self.repeat(now, out);
        }
    }

    /// Sets when to say it once more.
    fn refresh_later(&mut self, now: Instant) {
        if self.answered.is_some() && self.timers.due(Timer::Refresh).is_none() {
            self.timers.set(Timer::Refresh, now + REFRESH);
        }
    }

    /// Says it, and sets when to say it again.
    fn repeat(&mut self, now: Instant, out: &mut Outbox) {
        let Some(Said { greeting, attempt }) = &mut self.greeting else { return };
        let pause = (FIRST_REPEAT * (1 << (*attempt).min(6))).min(LONGEST_REPEAT);
        *attempt += 1;
        let router = greeting.message.router;
        let connections = greeting.message.entries.iter().filter(|entry| !entry.closing).count();
        if greeting.message.again {
            out.mark(Event::Refresh { router, attempt: *attempt }.into());
        } else {
            out.mark(Event::Greeting { router, connections, attempt: *attempt }.into());
        }
        let [from, to] = [self.config.address, router].map(|at| Addr::new(at, PORT));
        out.send_routed(Packet::new(Mac::ZERO, udp::packet(from, to, &greeting.emit())));
        self.timers.set(Timer::Repeat, now + pause);
    }

    fn welcomed(
        &mut self,
        now: Instant,
        reply: &Signed<GreetingReply>,
        out: &mut Outbox,
    ) -> Result<(), Reason> {
        let GreetingReply { host, sequence, router, welcome } = reply.message;
        if !reply.is_by(self.config.key_of(router)) {
            return Err(refusal::FORGED);
        }
        let Said { greeting, .. } = self.greeting.as_ref().ok_or(refusal::STALE)?;
        if host != self.config.address || router != greeting.message.router {
            return Err(refusal::MISDIRECTED);
        }
        match welcome {
            Welcome::Ready if sequence == greeting.message.sequence => {
                if !greeting.message.again {
                    out.mark(Event::Welcomed { router }.into());
                }
                self.answered = self.greeting.take().map(|said| said.greeting);
                self.timers.stop(Timer::Repeat);
                self.timers.stop(Timer::Hopeless);
                self.refresh_later(now);
            }
            // Our clock went back, or the router has restarted.
            Welcome::Stale if sequence >= greeting.message.sequence => {
                self.sequence = self.sequence.max(sequence);
                out.mark(Event::NotWelcome { router, why: "stale" }.into());
                self.greet(now, router, out);
            }
            Welcome::Ready | Welcome::Stale => return Err(refusal::STALE),
        }
        Ok(())
    }

    /// Connections that the routers have lost, as one says where this host is or was.
    fn lost(&mut self, lost: &Signed<Lost>, out: &mut Outbox) -> Result<(), Reason> {
        let router = lost.message.router;
        if !lost.is_by(self.config.key_of(router)) {
            return Err(refusal::FORGED);
        }
        let was_there = self.router == Some(router) || self.previous.contains(&router);
        if lost.message.host != self.config.address || !was_there {
            return Err(refusal::MISDIRECTED);
        }
        let named = |connection: &Connection| connection.id().is_some_and(|id| lost.message.connections.contains(&id));
        let programs = self.connections.iter().filter(|(_, connection)| named(connection));
        let programs: Vec<StreamId> = programs.map(|(program, _)| *program).collect();
        for program in programs {
            match self.connections.get(&program).map(|connection| &connection.state) {
                // It was not connected, or the answer was never heard: it is called for again.
                Some(State::Calling { .. }) => self.begin(program, out),
                _ => self.end(program, Some(refused::RESET), out),
            }
        }
        Ok(())
    }

    /// The stream of a call has ended: one to a router before this one is made here.
    fn call_ended(&mut self, program: StreamId, why: &str, out: &mut Outbox) {
        let state = self.connections.get(&program).map(|connection| &connection.state);
        if matches!(state, Some(State::Calling { entry: Entry { calling: false, .. }, .. })) {
            self.begin(program, out);
        } else {
            self.end(program, Some(why), out);
        }
    }

    fn packet(&mut self, now: Instant, rx: Rx, packet: Packet, out: &mut Outbox) {
        match self.datagram(now, &packet, out) {
            Ok(()) => out.discard(rx.iface, packet, reason::CONSUMED),
            Err(reason) => {
                *self.refused.entry(reason).or_default() += 1;
                out.discard(rx.iface, packet, reason);
            }
        }
    }

    fn datagram(&mut self, now: Instant, packet: &Packet, out: &mut Outbox) -> Result<(), Reason> {
        let (ip, payload) = Header::parse(&packet.bytes)?;
        let datagram = udp::Datagram::parse(payload, ip.src, ip.dst)?;
        match Datagram::parse(datagram.payload)? {
            Datagram::GreetingReply(reply) => self.welcomed(now, &reply, out),
            Datagram::Lost(lost) => self.lost(&lost, out),
            _ => Err(refusal::UNEXPECTED),
        }
    }

    // --- programs --------------------------------------------------------------------------------------------------

    fn serve(&mut self, program: StreamId, op: StreamOp, out: &mut Outbox) {
        match op {
            StreamOp::Open { local, peer, foreign: false, .. } => self.open(program, local, peer, out),
            StreamOp::Open { .. } => out.served(closed(program, Some(refused::NOT_OURS))),
            // There are no listeners at the router yet.
            StreamOp::Listen { .. } => out.served(closed(program, Some(refused::NO_TRANSPORT))),
            StreamOp::Abort | StreamOp::Forget => self.end(program, None, out),
            op => self.operate(program, op, out),
        }
    }

    fn open(&mut self, program: StreamId, local: Option<Addr>, peer: Addr, out: &mut Outbox) {
        if self.connections.contains_key(&program) {
            return;
        }
        if self.connections.len() >= CONNECTIONS {
            return out.served(closed(program, Some(refused::FULL)));
        }
        if peer.port() == 0 || !crate::config::is_host(*peer.ip()) {
            return out.served(closed(program, Some(refused::UNREACHABLE)));
        }
        self.next_number = self.next_number.wrapping_add(1);
        let connection = Connection {
            number: self.next_number,
            local,
            peer,
            inner: None,
            state: State::Waiting,
            credit: 0,
            wanted: 0,
            finishing: false,
        };
        self.connections.insert(program, connection);
        self.begin(program, out);
    }

    /// Connects to the router, if there is one. A connection that was called for before has another number then.
    fn begin(&mut self, program: StreamId, out: &mut Outbox) {
        let Some(router) = self.router else { return };
        let Some(connection) = self.connections.get_mut(&program) else { return };
        if let Some(before) = connection.inner.take() {
            self.programs.remove(&before);
            out.stream(before, StreamOp::Abort);
            connection.lift(before, out);
        }
        if matches!(connection.state, State::Calling { called: true, .. }) {
            self.next_number = self.next_number.wrapping_add(1);
            connection.number = self.next_number;
        }
        (connection.state, connection.credit) = (State::Waiting, 0);
        let local = connection.local;
        let inner = self.new_stream(program);
        if let Some(connection) = self.connections.get_mut(&program) {
            connection.inner = Some(inner);
        }
        let peer = Addr::new(router, PORT);
        out.stream(inner, StreamOp::Open { by: Transport::Tcp, local, peer, foreign: false });
    }

    fn new_stream(&mut self, program: StreamId) -> StreamId {
        loop {
            self.next_stream = (self.next_stream + 1) % StreamId::OWN;
            let id = StreamId(self.next_stream);
            if let btree_map::Entry::Vacant(free) = self.programs.entry(id) {
                free.insert(program);
                return id;
            }
        }
    }

    fn operate(&mut self, program: StreamId, op: StreamOp, out: &mut Outbox) {
        let Some(connection) = self.connections.get_mut(&program) else { return };
        let open = matches!(connection.state, State::Open(_));
        match op {
            StreamOp::Read(most) if !open => connection.wanted = most,
            StreamOp::Finish if !open => connection.finishing = true,
            StreamOp::Write(ref bytes) => {
                match connection.credit.checked_sub(bytes.len()).filter(|_| open && !connection.finishing) {
                    Some(rest) => connection.credit = rest,
                    None => return self.end(program, Some(refused::BEYOND_CREDIT), out),
                }
                connection.pass(op, out);
            }
            StreamOp::Read(most) => {
                connection.wanted = most;
                connection.pass(op, out);
            }
            StreamOp::Finish => {
                connection.finishing = true;
                connection.pass(op, out);
            }
            // It is the router that moves connections.
            StreamOp::Export => {
                out.served(Told::Refused(program, refused::NOT_FROZEN.to_owned()));
            }
            _ => {}
        }
    }

    /// The end of a connection on both sides of this role, and what the program is told.
    fn end(&mut self, program: StreamId, why: Option<&str>, out: &mut Outbox) {
        let Some(connection) = self.connections.remove(&program) else { return };
        if let Some(inner) = connection.inner {
            self.programs.remove(&inner);
            out.stream(inner, StreamOp::Abort);
            connection.lift(inner, out);
        }
        out.served(closed(program, why));
    }

    // --- the stream to the router ----------------------------------------------------------------------------------

    fn stream(&mut self, now: Instant, inner: StreamId, event: StreamEvent<'_>, out: &mut Outbox) {
        let Some(program) = self.programs.get(&inner).copied() else { return };
        let Some(connection) = self.connections.get_mut(&program) else { return };
        match event {
            StreamEvent::Opened(host) => {
                if let (State::Waiting, Some(router)) = (&connection.state, self.router) {
                    let entry = connection.entry(Addr::new(router, PORT), host);
                    connection.state = State::Calling { entry, called: false, heard: Vec::new() };
                    self.call(now, program, out);
                }
            }
            StreamEvent::Room(more) => {
                connection.credit += more;
                match connection.state {
                    State::Open(_) if !connection.finishing => out.served(Told::Room(program, more)),
                    State::Open(_) => {}
                    _ => self.call(now, program, out),
                }
            }
            StreamEvent::Data(bytes) => match &mut connection.state {
                // More than was asked for is nobody's: a stream with a hole would be worse than none.
                State::Open(_) if bytes.len() > connection.wanted => {
                    self.end(program, Some(refused::RESET), out);
                }
                State::Open(_) => {
                    connection.wanted = StreamOp::left_to_read(connection.wanted);
                    out.served(Told::Data(program, PacketId::NEW, bytes.to_vec()));
                }
                State::Calling { heard, .. } => {
                    heard.extend(bytes);
                    self.answered(program, out);
                }
                State::Waiting => {}
            },
            StreamEvent::Finished if matches!(connection.state, State::Open(_)) => {
                out.served(Told::Finished(program));
            }
            StreamEvent::Finished => self.call_ended(program, refused::RESET, out),
            StreamEvent::Closed(why) => {
                self.programs.remove(&inner);
                connection.inner = None;
                let open = if let State::Open(entry) = connection.state { Some(entry) } else { None };
                match open {
                    // Its guard stays: the far half's last segments may stray here too.
                    Some(entry) if why.is_none() => self.still_to_name(now, entry, out),
                    _ => connection.lift(inner, out),
                }
                match open {
                    Some(_) => self.end(program, why, out),
                    None => self.call_ended(program, why.unwrap_or(refused::RESET), out),
                }
            }
            _ => {}
        }
    }

    /// Asks the router to connect, once it can be said in one piece.
    fn call(&mut self, now: Instant, program: StreamId, out: &mut Outbox) {
        let sequence = self.next_sequence(now);
        let Some(connection) = self.connections.get_mut(&program) else { return };
        let State::Calling { entry, called, .. } = &mut connection.state else { return };
        if *called || connection.credit < Call::LEN {
            return;
        }
        *called = true;
        entry.call = sequence;
        // The same ports again: the guard is this one's now.
        self.closing.retain(|(closed, _)| far(closed) != far(entry));
        let Entry { connection: number, router, peer, .. } = *entry;
        // A segment that comes here while routers change is dropped: a reset would end the connection.
        let guard = StreamOp::Guard(far(entry), Some(Guard::Drop));
        let call =
            Call { host: self.config.address, connection: number, sequence, router: *router.ip(), peer };
        connection.credit -= Call::LEN;
        connection.pass(guard, out);
        connection.pass(StreamOp::Write(Signed::new(call, self.config.key_of(*router.ip())).emit()), out);
        connection.pass(StreamOp::Read(Answer::LEN), out);
        self.refresh_later(now);
    }

    fn answered(&mut self, program: StreamId, out: &mut Outbox) {
        let Some(connection) = self.connections.get_mut(&program) else { return };
        let State::Calling { entry, heard, .. } = &connection.state else { return };
        let missing = Answer::LEN.saturating_sub(heard.len());
        if missing > 0 {
            return connection.pass(StreamOp::Read(missing), out);
        }
        // The router that was called signs the answer, even if another router serves the connection now.
        let code = match parse::<Answer>(heard, self.config.key_of(*entry.router.ip())) {
            Ok(answer) if answer.connection == connection.number => answer.code,
            Ok(_) => Code::Failed,
            Err(reason) => {
                *self.refused.entry(reason).or_default() += 1;
                Code::Failed
            }
        };
        if code != Code::Connected {
            return self.end(program, Some(words(code)), out);
        }
        let entry = Entry { unanswered: false, calling: false, ..*entry };
        connection.state = State::Open(entry);
        out.served(Told::Opened(program, entry.host));
        if connection.finishing {
            connection.pass(StreamOp::Finish, out);
        } else if connection.credit > 0 {
            out.served(Told::Room(program, connection.credit));
        }
        if connection.wanted > 0 {
            connection.pass(StreamOp::Read(connection.wanted), out);
        }
    }

    // --- time ------------------------------------------------------------------------------------------------------

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

    /// A connection that its program has closed is named to routers for a while.
    fn still_to_name(&mut self, now: Instant, entry: Entry, out: &mut Outbox) {
        self.closing.push_back((Entry { closing: true, ..entry }, now + CLOSING));
        self.closing_ends(now, out);
    }

    /// Connections that were closed long ago are over; so are the oldest of too many.
    fn closing_ends(&mut self, now: Instant, out: &mut Outbox) {
        let is_over = |closing: &VecDeque<(Entry, Instant)>| {
            closing.len() > CONNECTIONS || closing.front().is_some_and(|(_, until)| *until <= now)
        };
        while is_over(&self.closing) {
            if let Some((entry, _)) = self.closing.pop_front() {
                out.stream(StreamId(0), StreamOp::Guard(far(&entry), None));
            }
        }
        match self.closing.front() {
            Some((_, until)) => self.timers.set(Timer::Closing, *until),
            None => self.timers.stop(Timer::Closing),
        }
    }

    fn despair(&mut self, out: &mut Outbox) {
        let Some(Said { greeting, .. }) = &self.greeting else { return };
        let router = greeting.message.router;
        out.mark(Event::NotWelcome { router, why: "no answer" }.into());
        let programs = self.connections.iter().filter(|(_, connection)| connection.is_known_to_router());
        let programs: Vec<StreamId> = programs.map(|(program, _)| *program).collect();
        for program in programs {
            self.end(program, Some(refused::TIMED_OUT), out);
        }
    }
}

impl Connection {
    /// Passes on what the program asks for.
    fn pass(&self, op: StreamOp, out: &mut Outbox) {
        if let Some(inner) = self.inner {
            out.stream(inner, op);
        }
    }

    /// What routers know it by, once one was called for it.
    const fn id(&self) -> Option<ConnectionId> {
        match &self.state {
            State::Open(entry) | State::Calling { entry, called: true, .. } => Some(entry.id()),
            _ => None,
        }
    }

    /// Whether a router was called for it.
    const fn is_known_to_router(&self) -> bool {
        self.id().is_some()
    }

    /// How routers name it, once it has a call.
    const fn entry(&self, router: Addr, host: Addr) -> Entry {
        Entry {
            connection: self.number,
            call: 0,
            host,
            router,
            peer: self.peer,
            closing: false,
            unanswered: true,
            calling: true,
        }
    }

    /// The guard of a connection is of no use any more.
    fn lift(&self, inner: StreamId, out: &mut Outbox) {
        if let State::Open(entry) | State::Calling { entry, called: true, .. } = &self.state {
            out.stream(inner, StreamOp::Guard(far(entry), None));
        }
    }
}

/// The far half, as this host would see it if a segment of it strayed here.
const fn far(entry: &Entry) -> Tuple {
    Tuple { local: entry.host, remote: entry.peer }
}

fn parse<T: Message>(bytes: &[u8], key: &auth::Key) -> Result<T, Reason> {
    let signed = Signed::<T>::parse(bytes)?;
    if signed.is_by(key) { Ok(signed.message) } else { Err(refusal::FORGED) }
}

fn closed(program: StreamId, why: Option<&str>) -> Told {
    Told::Closed(program, why.map(str::to_owned))
}

const fn words(code: Code) -> &'static str {
    match code {
        Code::Refused => refused::REFUSED,
        Code::TimedOut => refused::TIMED_OUT,
        Code::Unreachable => refused::UNREACHABLE,
        Code::InUse => refused::IN_USE,
        Code::Full => refused::FULL,
        Code::Connected | Code::Failed => refused::RESET,
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
            Input::News(News::Gateway(router)) => self.gateway(now, *router, out),
            Input::Link(..) | Input::Idle(..) | Input::Command(..) | Input::Failed(_) | Input::Stored(_) => {}
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
        let refused = self.refused.iter().map(|(reason, count)| (reason.0.to_owned(), Value::from(*count)));
        Value::map([
            ("router", self.router.map_or(Value::None, Value::from)),
            ("welcome", Value::from(if self.greeting.is_none() { "yes" } else { "not yet" })),
            ("connections", Value::Map(connections.collect())),
            ("refused", Value::Map(refused.collect())),
        ])
    }
}
