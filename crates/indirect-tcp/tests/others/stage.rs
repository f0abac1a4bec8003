//! A router under test, and the messages of other nodes to it.

use crate::{config, tcp};
use auth::Key;
use indirect_tcp::SupportRouter;
use indirect_tcp::config::Peer;
use indirect_tcp::message::{
    Body, Call, ConnectionId, Datagram, Entry, ForwardPointer, ForwardReply, Frame, FrameAuth, Frames,
    Greeting, Halves, PORT, Side, Signed, SocketState, Verdict,
};
use node::{
    Act, Addr, Boot, Effect, Guard, Input, MigrateEvent, MigrateOp, Outbox, PuntReason, Rng, Role, Rx,
    StreamEvent, StreamId, StreamOp, Tuple,
};
use std::collections::BTreeMap;
use wire::ipv4::Header;
use wire::{Iface, Instant, Ipv4Addr, Mac, Packet, TcpState, udp};

pub(crate) const HOST: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 7);
pub(crate) const FIXED: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// The addresses of the router under test, and of two other routers.
pub(crate) const LEFT: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
pub(crate) const RIGHT: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 1);
pub(crate) const THIRD: Ipv4Addr = Ipv4Addr::new(10, 3, 0, 1);
pub(crate) const HOST_PORT: u16 = 50_000;
/// The nonce in the hellos of the other routers.
pub(crate) const NONCE: [u8; 16] = [4; 16];

pub(crate) fn host_key() -> Key {
    Key::new([1; 16])
}

pub(crate) fn router_key() -> Key {
    Key::new([2; 16])
}

/// Returns the identifier of the host's connection `number`. The sequence of its call is 10 more than `number`.
pub(crate) const fn id(number: u32) -> ConnectionId {
    ConnectionId { number, call: 10 + number as u64 }
}

/// Returns the entry of the host's connection with the number `connection`, which was opened at `router`.
pub(crate) fn entry(connection: u32, router: Ipv4Addr) -> Entry {
    Entry {
        id: id(connection),
        host: Addr::new(HOST, HOST_PORT + connection as u16),
        router: Addr::new(router, PORT),
        peer: Addr::new(FIXED, 80),
        closing: false,
        unanswered: false,
        calling: false,
    }
}

pub(crate) fn state(entry: &Entry, side: Side) -> TcpState {
    let tuple = if side == Side::Near { entry.near() } else { entry.far() };
    tcp::established(tuple.local, tuple.remote)
}

/// Another router's end of a connection to the router under test.
pub(crate) struct Other {
    pub(crate) channel: FrameAuth,
    pub(crate) frames: Frames,
}

impl Other {
    pub(crate) fn new(opened: bool) -> Self {
        let mut frames = Frames::default();
        frames.trust();
        Self { channel: FrameAuth::new(router_key(), opened), frames }
    }
}

pub(crate) struct Stage {
    pub(crate) role: SupportRouter,
    pub(crate) now: Instant,
    pub(crate) others: BTreeMap<StreamId, Other>,
    /// The stream of the last connection that the router under test opened to another router.
    pub(crate) opened: StreamId,
    /// The connection and the half of each stream.
    pub(crate) halves: BTreeMap<StreamId, (Entry, Side)>,
    pub(crate) accepted: u32,
    /// The names of the marks since they were last taken.
    pub(crate) marks: Vec<String>,
    pub(crate) aborted: Vec<StreamId>,
    pub(crate) guards: Vec<Option<Guard>>,
    /// The guards that are set at present.
    pub(crate) guarded: BTreeMap<Tuple, Guard>,
    pub(crate) sent: Vec<Datagram>,
    /// The staged bytes of each relay that the router under test began.
    pub(crate) ahead: Vec<[Vec<u8>; 2]>,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let peer = |address, key| Peer { address, key };
        let others = [RIGHT, THIRD].map(|other| peer(other, router_key())).to_vec();
        let config = config::router(LEFT, vec![peer(HOST, host_key())], others);
        let mut stage = Self {
            role: SupportRouter::new(config, Rng::new(1)).unwrap(),
            now: Instant::ZERO,
            others: BTreeMap::new(),
            opened: StreamId(0),
            halves: BTreeMap::new(),
            accepted: 0,
            marks: Vec::new(),
            aborted: Vec::new(),
            guards: Vec::new(),
            guarded: BTreeMap::new(),
            sent: Vec::new(),
            ahead: Vec::new(),
        };
        stage.give(Input::Start(&Boot::default()));
        stage
    }

    pub(crate) fn give(&mut self, input: Input<'_>) {
        let mut out = Outbox::default();
        self.role.handle(self.now, input, &mut out);
        let effects: Vec<Effect> = out.drain_effects().collect();
        for effect in effects {
            match effect {
                Effect::Do(Act::Mark(mark)) => self.marks.push(mark.name.to_owned()),
                Effect::Stream(id, op) => self.operate(id, op),
                Effect::Send(_, packet) => {
                    let Ok((ip, payload)) = Header::parse(&packet.bytes) else { continue };
                    let Ok(datagram) = udp::Datagram::parse(payload, ip.src, ip.dst) else { continue };
                    self.sent.push(Datagram::parse(datagram.payload).unwrap());
                }
                _ => {}
            }
        }
    }

    pub(crate) fn tell(&mut self, id: StreamId, event: StreamEvent<'_>) {
        self.give(Input::Stream(id, event));
    }

    pub(crate) fn operate(&mut self, id: StreamId, op: StreamOp) {
        match op {
            StreamOp::Open { foreign: true, local: Some(local), .. } => {
                let connection = u32::from(local.port() - HOST_PORT);
                self.halves.insert(id, (entry(connection, LEFT), Side::Far));
                self.tell(id, StreamEvent::Opened(local));
            }
            StreamOp::Open { .. } => {
                self.others.insert(id, Other::new(false));
                self.opened = id;
            }
            StreamOp::Write(bytes) => {
                if let Some(other) = self.others.get_mut(&id) {
                    other.frames.push(&bytes);
                }
            }
            StreamOp::Migrate(MigrateOp::Part) => {
                self.tell(id, StreamEvent::Migrate(MigrateEvent::Parted([&[], &[]])));
            }
            StreamOp::Migrate(MigrateOp::Export) => {
                let (entry, side) = self.halves[&id];
                self.tell(id, StreamEvent::Migrate(MigrateEvent::Exported(&state(&entry, side))));
            }
            StreamOp::Migrate(MigrateOp::Import(state)) => {
                let far = *state.remote.ip() == FIXED;
                let host = if far { state.local } else { state.remote };
                let router = if far { RIGHT } else { *state.local.ip() };
                let of = entry(u32::from(host.port() - HOST_PORT), router);
                self.halves.insert(id, (of, if far { Side::Far } else { Side::Near }));
                self.tell(id, StreamEvent::Migrate(MigrateEvent::Imported));
            }
            StreamOp::Abort => self.aborted.push(id),
            StreamOp::Migrate(MigrateOp::Join(_, ahead)) => self.ahead.push(ahead),
            StreamOp::Migrate(MigrateOp::Guard(tuple, guard)) => {
                self.guards.push(guard);
                self.guarded.remove(&tuple);
                self.guarded.extend(guard.map(|guard| (tuple, guard)));
            }
            _ => {}
        }
    }

    pub(crate) fn at(&mut self, millis: u64) {
        let until = Instant::from_millis(millis);
        while let Some(due) = self.role.deadline().filter(|due| *due <= until) {
            self.now = due;
            self.give(Input::Timeout);
        }
        self.now = until;
    }

    pub(crate) fn hear(&mut self, from: Ipv4Addr, payload: &[u8]) {
        let bytes = udp::packet(Addr::new(from, PORT), Addr::new(LEFT, PORT), payload);
        let mut packet = Packet::new(Mac([2; 6]), bytes);
        packet.link.src = Mac([2, 0, 0, 0, 0, 7]);
        let rx = Rx::parse(Iface(1), PuntReason::Listen, &packet).unwrap();
        self.give(Input::Packet(rx, packet));
    }

    pub(crate) fn greeting(
        sequence: u64,
        router: Ipv4Addr,
        previous: &[Ipv4Addr],
        entries: Vec<Entry>,
    ) -> Signed<Greeting> {
        let previous = previous.to_vec();
        let codes = Vec::new();
        let greeting = Greeting { host: HOST, sequence, router, previous, entries, again: false, codes };
        Signed::new(greeting, &host_key())
    }

    pub(crate) fn greets(&mut self, sequence: u64, previous: &[Ipv4Addr], entries: Vec<Entry>) {
        self.hear(HOST, &Self::greeting(sequence, LEFT, previous, entries).emit());
    }

    /// Delivers a forward pointer of the router `new`: the host is there.
    pub(crate) fn points(&mut self, new: Ipv4Addr, sequence: u64, entries: Vec<Entry>) {
        let greeting = Self::greeting(sequence, new, &[LEFT], entries);
        let pointer = ForwardPointer { new, old: LEFT, greeting };
        self.hear(new, &Signed::new(pointer, &router_key()).emit());
    }

    /// Delivers the answer of an earlier router to a forward pointer.
    pub(crate) fn replies(&mut self, old: Ipv4Addr, sequence: u64, connections: u16) {
        let reply = ForwardReply { old, host: HOST, sequence, connections };
        self.hear(old, &Signed::new(reply, &router_key()).emit());
    }

    /// Delivers a call of the host, for which the router connects to the peer.
    pub(crate) fn calls(&mut self, connection: u32) {
        let sequence = id(connection).call;
        let id = self.connects(HOST);
        let of = entry(connection, LEFT);
        self.halves.insert(id, (of, Side::Near));
        let call = Call { host: HOST, connection, sequence, router: LEFT, peer: of.peer };
        let bytes = Signed::new(call, &host_key()).emit();
        self.tell(id, StreamEvent::Data(&bytes));
    }

    pub(crate) fn connects(&mut self, from: Ipv4Addr) -> StreamId {
        let new = StreamId(StreamId::DRIVER + self.accepted);
        self.accepted += 1;
        let port = if from == HOST { HOST_PORT + self.accepted as u16 } else { 40_000 };
        let (local, peer) = (Addr::new(LEFT, PORT), Addr::new(from, port));
        self.tell(StreamId(0), StreamEvent::Accepted(new, local, peer));
        self.tell(new, StreamEvent::Room(1 << 24));
        new
    }

    /// Accepts, as the other router `router`, the last connection that the router under test opened. Sends the hello of
    /// `router`. Returns the stream.
    pub(crate) fn accepts(&mut self, router: Ipv4Addr) -> StreamId {
        let id = self.opened;
        self.tell(id, StreamEvent::Opened(Addr::new(LEFT, 40_000)));
        self.tell(id, StreamEvent::Room(1 << 24));
        let other = self.others.get_mut(&id).unwrap();
        let bytes = other.frames.next_frame().unwrap().unwrap();
        let Body::Hello { nonce, .. } = other.channel.open(&bytes).unwrap().body else { panic!("no hello") };
        let hello = other.channel.seal(&Frame { handoff: 0, body: Body::Hello { router, nonce: NONCE } });
        other.channel.agreed([nonce, NONCE]);
        self.tell(id, StreamEvent::Data(&hello));
        id
    }

    /// Opens a connection from the other router `router`, and exchanges the hellos. Returns the stream.
    pub(crate) fn links(&mut self, router: Ipv4Addr) -> StreamId {
        let id = self.connects(router);
        let mut other = Other::new(true);
        let hello = other.channel.seal(&Frame { handoff: 0, body: Body::Hello { router, nonce: NONCE } });
        self.others.insert(id, other);
        self.tell(id, StreamEvent::Data(&hello));
        let other = self.others.get_mut(&id).unwrap();
        let bytes = other.frames.next_frame().unwrap().unwrap();
        let Body::Hello { nonce, .. } = other.channel.open(&bytes).unwrap().body else { panic!("no hello") };
        other.channel.agreed([NONCE, nonce]);
        id
    }

    pub(crate) fn says(&mut self, id: StreamId, handoff: u64, body: Body) {
        let bytes = self.others.get_mut(&id).unwrap().channel.seal(&Frame { handoff, body });
        self.tell(id, StreamEvent::Data(&bytes));
    }

    /// Returns the frames that the router under test has sent on stream `id` after the last call of this function.
    pub(crate) fn said(&mut self, id: StreamId) -> Vec<Body> {
        let other = self.others.get_mut(&id).unwrap();
        let mut said = Vec::new();
        while let Some(bytes) = other.frames.next_frame().unwrap() {
            said.push(other.channel.open(&bytes).unwrap().body);
        }
        said
    }

    /// Ships a whole connection, without its commit.
    pub(crate) fn ships(&mut self, id: StreamId, handoff: u64, of: Entry, attempt: u32) {
        self.says(id, handoff, Body::Entry(of, attempt));
        for side in [Side::Near, Side::Far] {
            self.says(id, handoff, Body::State(Box::new(SocketState::new(side, state(&of, side)))));
        }
    }

    pub(crate) fn commits(
        &mut self,
        id: StreamId,
        handoff: u64,
        connection: u32,
        attempt: u32,
    ) -> Vec<Verdict> {
        self.says(id, handoff, Body::Commit { number: connection, attempt, halves: Halves::BOTH });
        let said = self.said(id);
        let verdicts = said.into_iter().filter_map(|body| match body {
            Body::CommitAnswer { connection: of, attempt: to, verdict, .. } => {
                assert_eq!((of.number, to), (connection, attempt));
                Some(verdict)
            }
            _ => None,
        });
        verdicts.collect()
    }

    pub(crate) fn marks(&mut self) -> Vec<String> {
        std::mem::take(&mut self.marks)
    }

    /// Returns the stage of a connection, or `None` if there is none.
    pub(crate) fn stage(&self, connection: u32) -> Option<String> {
        let status = self.role.status();
        let host = status.get("hosts")?.get(&HOST.to_string())?;
        let stage = host.get("connections")?.get(&connection.to_string())?;
        stage.as_text().map(str::to_owned)
    }
}

pub(crate) const fn offer(sequence: u64) -> Body {
    Body::Offer { host: HOST, sequence, connections: 1 }
}

pub(crate) const fn answer(connection: u32, attempt: u32, verdict: Verdict) -> Body {
    Body::CommitAnswer { host: HOST, connection: id(connection), attempt, verdict }
}

/// Returns a router whose host has moved to the right router, and the stream to that router. The host's connection was
/// shipped, and its commit is not answered.
pub(crate) fn leaves_for_the_right() -> (Stage, StreamId) {
    let mut stage = Stage::new();
    stage.at(10);
    stage.greets(10, &[], Vec::new());
    stage.calls(1);
    stage.points(RIGHT, 20, vec![entry(1, LEFT)]);
    let right = stage.accepts(RIGHT);
    stage.says(right, 1, Body::OfferAnswer(Verdict::Taken));
    assert_eq!(stage.marks().last().unwrap(), "shipped");
    (stage, right)
}

/// Returns a router whose host has come from the right router, and the stream from that router, which has offered the
/// host's connection.
pub(crate) fn comes_from_the_right() -> (Stage, StreamId) {
    let mut stage = Stage::new();
    stage.at(10);
    stage.greets(10, &[RIGHT], vec![entry(1, RIGHT)]);
    let right = stage.links(RIGHT);
    stage.says(right, 1, offer(10));
    assert_eq!(stage.said(right), [Body::OfferAnswer(Verdict::Taken)]);
    stage.marks();
    (stage, right)
}

/// Returns a router whose host has named both other routers, and the streams from these routers. Both have offered the
/// host's connection.
pub(crate) fn both_others_offer() -> (Stage, [StreamId; 2]) {
    let mut stage = Stage::new();
    stage.at(10);
    stage.greets(10, &[RIGHT, THIRD], vec![entry(1, RIGHT)]);
    let [right, third] = [RIGHT, THIRD].map(|router| stage.links(router));
    for link in [right, third] {
        stage.says(link, 1, offer(10));
        stage.said(link);
    }
    (stage, [right, third])
}
