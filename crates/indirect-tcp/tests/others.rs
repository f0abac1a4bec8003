//! What another router says too late, twice, or of what it was not asked: it changes nothing. Beside each stands the word that
//! counts. The sockets are models that do at once what they are told.

#![cfg(test)]

#[path = "support/config.rs"]
mod config;
#[path = "others/greetings.rs"]
mod greetings;
#[path = "support/tcp.rs"]
mod tcp;

use auth::Key;
use indirect_tcp::SupportRouter;
use indirect_tcp::config::Peer;
use indirect_tcp::message::{
    Body, Call, Channel, ConnectionId, Datagram, Entry, ForwardPointer, ForwardReply, Frame, Frames,
    Greeting, Halves, PORT, Side, Signed, SocketState, Verdict, Way,
};
use node::{
    Act, Addr, Boot, Effect, Guard, Input, Outbox, Role, Rx, Seed, StreamEvent, StreamId, StreamOp, Tuple,
    Why,
};
use std::collections::BTreeMap;
use wire::ipv4::Header;
use wire::{Iface, Instant, Ipv4Addr, Mac, Packet, TcpState, udp};

const HOST: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 7);
const FIXED: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// The router under test, and two others.
const LEFT: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
const RIGHT: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 1);
const THIRD: Ipv4Addr = Ipv4Addr::new(10, 3, 0, 1);
const HOST_PORT: u16 = 50_000;
/// Any number that was never said before.
const NONCE: [u8; 16] = [4; 16];

fn host_key() -> Key {
    Key::new([1; 16])
}

fn router_key() -> Key {
    Key::new([2; 16])
}

/// A connection of the host's: its call is the one after the first greeting, or a later one.
const fn id(number: u32) -> ConnectionId {
    ConnectionId { number, call: 10 + number as u64 }
}

/// A connection of the host's, which began at this router.
fn entry(connection: u32, router: Ipv4Addr) -> Entry {
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

fn state(entry: &Entry, side: Side) -> TcpState {
    let tuple = if side == Side::Near { entry.near() } else { entry.far() };
    tcp::established(tuple.local, tuple.remote)
}

/// The other end of a connection between routers.
struct Other {
    channel: Channel,
    frames: Frames,
}

impl Other {
    fn new(opened: bool) -> Self {
        let mut frames = Frames::default();
        frames.trust();
        Self { channel: Channel::new(router_key(), opened), frames }
    }
}

struct Stage {
    role: SupportRouter,
    now: Instant,
    others: BTreeMap<StreamId, Other>,
    /// The last connection that it opened to another router.
    opened: StreamId,
    /// Which half a stream is, of which connection.
    halves: BTreeMap<StreamId, (Entry, Side)>,
    accepted: u32,
    /// What it has marked, and what it has done to halves, since this was looked at.
    marks: Vec<String>,
    aborted: Vec<StreamId>,
    guards: Vec<Option<Guard>>,
    /// The guards that stand.
    guarded: BTreeMap<Tuple, Guard>,
    sent: Vec<Datagram>,
    /// Bytes ahead in each relay that it began.
    ahead: Vec<[Vec<u8>; 2]>,
}

impl Stage {
    fn new() -> Self {
        let peer = |address, key| Peer { address, key };
        let others = [RIGHT, THIRD].map(|other| peer(other, router_key())).to_vec();
        let config = config::router(LEFT, vec![peer(HOST, host_key())], others);
        let mut stage = Self {
            role: SupportRouter::new(config, Seed::new(1)).unwrap(),
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

    fn give(&mut self, input: Input<'_>) {
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

    fn tell(&mut self, id: StreamId, event: StreamEvent<'_>) {
        self.give(Input::Stream(id, event));
    }

    fn operate(&mut self, id: StreamId, op: StreamOp) {
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
            StreamOp::Part => self.tell(id, StreamEvent::Parted([&[], &[]])),
            StreamOp::Export => {
                let (entry, side) = self.halves[&id];
                self.tell(id, StreamEvent::Exported(&state(&entry, side)));
            }
            StreamOp::Import(state) => {
                let far = *state.remote.ip() == FIXED;
                let host = if far { state.local } else { state.remote };
                let router = if far { RIGHT } else { *state.local.ip() };
                let of = entry(u32::from(host.port() - HOST_PORT), router);
                self.halves.insert(id, (of, if far { Side::Far } else { Side::Near }));
                self.tell(id, StreamEvent::Imported);
            }
            StreamOp::Abort => self.aborted.push(id),
            StreamOp::Join(_, ahead) => self.ahead.push(ahead),
            StreamOp::Guard(tuple, guard) => {
                self.guards.push(guard);
                self.guarded.remove(&tuple);
                self.guarded.extend(guard.map(|guard| (tuple, guard)));
            }
            _ => {}
        }
    }

    fn at(&mut self, millis: u64) {
        let until = Instant::from_millis(millis);
        while let Some(due) = self.role.deadline().filter(|due| *due <= until) {
            self.now = due;
            self.give(Input::Timeout);
        }
        self.now = until;
    }

    fn hear(&mut self, from: Ipv4Addr, payload: &[u8]) {
        let bytes = udp::packet(Addr::new(from, PORT), Addr::new(LEFT, PORT), payload);
        let mut packet = Packet::new(Mac([2; 6]), bytes);
        packet.link.src = Mac([2, 0, 0, 0, 0, 7]);
        self.give(Input::Packet(Rx::new(Iface(1), Why::Listen), packet));
    }

    fn greeting(
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

    fn greets(&mut self, sequence: u64, previous: &[Ipv4Addr], entries: Vec<Entry>) {
        self.hear(HOST, &Self::greeting(sequence, LEFT, previous, entries).emit());
    }

    /// The host is at another router, which says so.
    fn points(&mut self, new: Ipv4Addr, sequence: u64, entries: Vec<Entry>) {
        let greeting = Self::greeting(sequence, new, &[LEFT], entries);
        let pointer = ForwardPointer { new, old: LEFT, greeting };
        self.hear(new, &Signed::new(pointer, &router_key()).emit());
    }

    /// An earlier router answers a forward pointer.
    fn replies(&mut self, old: Ipv4Addr, sequence: u64, connections: u16) {
        let reply = ForwardReply { old, host: HOST, sequence, connections };
        self.hear(old, &Signed::new(reply, &router_key()).emit());
    }

    /// The host calls, and the router connects for it.
    fn calls(&mut self, connection: u32) {
        let sequence = id(connection).call;
        let id = self.connects(HOST);
        let of = entry(connection, LEFT);
        self.halves.insert(id, (of, Side::Near));
        let call = Call { host: HOST, connection, sequence, router: LEFT, peer: of.peer };
        let bytes = Signed::new(call, &host_key()).emit();
        self.tell(id, StreamEvent::Data(&bytes));
    }

    fn connects(&mut self, from: Ipv4Addr) -> StreamId {
        let new = StreamId(StreamId::DRIVER + self.accepted);
        self.accepted += 1;
        let port = if from == HOST { HOST_PORT + self.accepted as u16 } else { 40_000 };
        let (local, peer) = (Addr::new(LEFT, PORT), Addr::new(from, port));
        self.tell(StreamId(0), StreamEvent::Accepted(new, local, peer));
        self.tell(new, StreamEvent::Room(1 << 24));
        new
    }

    /// The last connection that was opened to another router: it says hello.
    fn accepts(&mut self, router: Ipv4Addr) -> StreamId {
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

    /// Another router opens a connection to hand something over.
    fn links(&mut self, router: Ipv4Addr) -> StreamId {
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

    fn says(&mut self, id: StreamId, handoff: u64, body: Body) {
        let bytes = self.others.get_mut(&id).unwrap().channel.seal(&Frame { handoff, body });
        self.tell(id, StreamEvent::Data(&bytes));
    }

    /// What it has said to another router since this was asked.
    fn said(&mut self, id: StreamId) -> Vec<Body> {
        let other = self.others.get_mut(&id).unwrap();
        let mut said = Vec::new();
        while let Some(bytes) = other.frames.next_frame().unwrap() {
            said.push(other.channel.open(&bytes).unwrap().body);
        }
        said
    }

    /// A whole connection, but for its commit.
    fn ships(&mut self, id: StreamId, handoff: u64, of: Entry, attempt: u32) {
        self.says(id, handoff, Body::Entry(of, attempt));
        for side in [Side::Near, Side::Far] {
            self.says(id, handoff, Body::State(Box::new(SocketState::new(side, state(&of, side)))));
        }
    }

    fn commits(&mut self, id: StreamId, handoff: u64, connection: u32, attempt: u32) -> Vec<Verdict> {
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

    fn marks(&mut self) -> Vec<String> {
        std::mem::take(&mut self.marks)
    }

    /// In which stage a connection is.
    fn stage(&self, connection: u32) -> Option<String> {
        let status = self.role.status();
        let host = status.get("hosts")?.get(&HOST.to_string())?;
        let stage = host.get("connections")?.get(&connection.to_string())?;
        stage.as_text().map(str::to_owned)
    }
}

const fn offer(sequence: u64) -> Body {
    Body::Offer { host: HOST, sequence, connections: 1 }
}

const fn answer(connection: u32, attempt: u32, verdict: Verdict) -> Body {
    Body::CommitAnswer { host: HOST, connection: id(connection), attempt, verdict }
}

/// It has a connection, and the host goes to the right.
fn leaves_for_the_right() -> (Stage, StreamId) {
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

#[test]
fn only_the_router_that_a_connection_was_committed_to_says_whose_it_is_and_of_that_attempt() {
    let (mut stage, right) = leaves_for_the_right();
    stage.points(THIRD, 30, vec![entry(1, LEFT)]);
    let third = stage.accepts(THIRD);
    stage.says(third, 1, Body::OfferAnswer(Verdict::Taken));
    stage.marks();
    stage.says(third, 0, answer(1, 1, Verdict::Taken));
    stage.says(right, 0, answer(1, 0, Verdict::Taken));
    stage.says(right, 0, answer(1, 2, Verdict::Taken));
    assert!(stage.marks().is_empty());
    // It does not have it: the third gets it, by another attempt. What is said of the first does not count any more.
    stage.says(right, 0, answer(1, 1, Verdict::Moved));
    assert_eq!(stage.marks(), ["shipped"]);
    stage.says(third, 0, answer(1, 1, Verdict::Taken));
    stage.says(right, 0, answer(1, 1, Verdict::Taken));
    assert!(stage.marks().is_empty());
    stage.says(third, 0, answer(1, 2, Verdict::Taken));
    assert_eq!(stage.marks(), ["forgotten", "handed_over"]);
}

/// Its connections leave one behind the other, and each is answered for itself, in any order.
#[test]
fn connections_leave_without_a_wait_for_the_answers_to_others() {
    let mut stage = Stage::new();
    stage.at(10);
    stage.greets(10, &[], Vec::new());
    for connection in 1..=3 {
        stage.calls(connection);
    }
    stage.points(RIGHT, 20, (1..=3).map(|connection| entry(connection, LEFT)).collect());
    let right = stage.accepts(RIGHT);
    stage.marks();
    stage.says(right, 1, Body::OfferAnswer(Verdict::Taken));
    assert_eq!(stage.marks(), ["frozen", "shipped", "frozen", "shipped", "frozen", "shipped"]);
    let said = stage.said(right);
    let commits = said.iter().filter_map(|body| match body {
        Body::Commit { number, .. } => Some(*number),
        _ => None,
    });
    assert_eq!(commits.collect::<Vec<_>>(), [1, 2, 3]);
    assert!(!said.contains(&Body::Done), "an answer is missing");
    for (connection, marks) in
        [(2, &["forgotten"][..]), (3, &["forgotten"]), (1, &["forgotten", "handed_over"])]
    {
        stage.says(right, 1, answer(connection, 1, Verdict::Taken));
        assert_eq!(stage.marks(), marks);
    }
    assert_eq!(stage.said(right), [Body::Done]);
}

/// The host turns back, and its call comes before its greeting. The other router would refuse this connection: it stays.
#[test]
fn a_connection_that_was_called_for_after_the_departure_stays() {
    let called_late = || {
        let mut stage = Stage::new();
        stage.at(10);
        stage.greets(10, &[], Vec::new());
        stage.calls(1);
        stage.points(RIGHT, 11, vec![entry(1, LEFT)]);
        (2..5).for_each(|_| _ = stage.connects(HOST));
        stage.calls(5);
        assert_eq!(stage.marks().last().unwrap(), "connected");
        stage
    };
    let mut stage = called_late();
    let right = stage.accepts(RIGHT);
    assert_eq!(stage.said(right), [Body::Offer { host: HOST, sequence: 11, connections: 1 }]);
    stage.says(right, 1, Body::OfferAnswer(Verdict::Taken));
    stage.says(right, 1, answer(1, 1, Verdict::Taken));
    assert_eq!(stage.marks(), ["offered", "frozen", "shipped", "forgotten", "handed_over"]);
    stage.greets(13, &[RIGHT], Vec::new());
    assert_eq!(stage.stage(5).unwrap(), "serving");

    // The other router cannot be reached: that costs only what would have gone there.
    let mut stage = called_late();
    stage.at(31_000);
    assert_eq!(stage.marks(), ["connection_lost"]);
    assert_eq!([1, 5].map(|number| stage.stage(number)), [None, Some("serving".to_owned())]);
}

/// The host turns back while all of its connections are on their way: each goes on here once the other router has said that it
/// does not have it, and one that it has comes back.
#[test]
fn of_connections_on_their_way_each_goes_on_where_its_answer_says() {
    let mut stage = Stage::new();
    stage.at(10);
    stage.greets(10, &[], Vec::new());
    stage.calls(1);
    stage.calls(2);
    let entries = || vec![entry(1, LEFT), entry(2, LEFT)];
    stage.points(RIGHT, 20, entries());
    let right = stage.accepts(RIGHT);
    stage.says(right, 1, Body::OfferAnswer(Verdict::Taken));
    stage.greets(30, &[RIGHT], entries());
    stage.marks();
    stage.says(right, 1, answer(2, 1, Verdict::Moved));
    assert_eq!(stage.marks(), ["resumed"]);
    stage.says(right, 1, answer(1, 1, Verdict::Taken));
    assert_eq!(stage.marks(), ["forgotten"]);
    assert_eq!([1, 2].map(|number| stage.stage(number).unwrap()), ["expected", "serving"]);
}

/// After half a minute without an answer the router does not know whose a connection is. If its host is elsewhere it ends without
/// a word. If the host is here, no other router will serve it: both ends get a reset, and the host is told.
#[test]
fn a_connection_whose_commit_is_not_answered_ends_by_where_its_host_is() {
    let (mut stage, _) = leaves_for_the_right();
    stage.guards.clear();
    stage.at(31_000);
    assert_eq!(stage.marks(), ["connection_lost"]);
    assert_eq!(stage.guards, [Some(Guard::Drop)]);
    assert!(!stage.sent.iter().any(|said| matches!(said, Datagram::Lost(_))));

    let (mut stage, _) = leaves_for_the_right();
    stage.greets(30, &[RIGHT], vec![entry(1, LEFT)]);
    stage.marks();
    stage.guards.clear();
    stage.at(29_000);
    assert!(!stage.marks().contains(&"connection_lost".to_owned()));
    assert_eq!(stage.stage(1).unwrap(), "leaving");
    stage.at(31_000);
    assert_eq!(stage.marks(), ["connection_lost"]);
    assert_eq!(stage.guards, [Some(Guard::Reset); 2]);
    assert!(matches!(&stage.sent.last(), Some(Datagram::Lost(lost)) if lost.message.connections == [id(1)]));
    assert_eq!(stage.stage(1), None);
}

/// What has ended cleanly is not lost if no router takes it; what has not is reset; and if its host is here, it goes on.
#[test]
fn a_router_that_cannot_be_reached_costs_what_is_open_and_elsewhere() {
    let two = |goes_back: bool| {
        let mut stage = Stage::new();
        stage.at(10);
        stage.greets(10, &[], Vec::new());
        stage.calls(1);
        stage.calls(2);
        let of_first = stage.halves.iter().filter(|(_, (of, _))| of.id.number == 1);
        for id in of_first.map(|(id, _)| *id).collect::<Vec<_>>() {
            stage.tell(id, StreamEvent::Closed(None));
        }
        stage.points(RIGHT, 20, vec![entry(1, LEFT), entry(2, LEFT)]);
        if goes_back {
            stage.greets(30, &[RIGHT], vec![entry(1, LEFT), entry(2, LEFT)]);
        }
        stage.marks();
        stage.aborted.clear();
        stage.at(31_000);
        let halves = stage.aborted.iter().filter(|id| stage.halves.contains_key(id)).count();
        let lost = stage.marks().iter().filter(|mark| *mark == "connection_lost").count();
        (halves, lost, stage.stage(2))
    };
    assert_eq!(two(false), (2, 1, None));
    assert_eq!(two(true), (0, 0, Some("serving".to_owned())));
}

/// The host has come from the right, which offers its connection.
fn comes_from_the_right() -> (Stage, StreamId) {
    let mut stage = Stage::new();
    stage.at(10);
    stage.greets(10, &[RIGHT], vec![entry(1, RIGHT)]);
    let right = stage.links(RIGHT);
    stage.says(right, 1, offer(10));
    assert_eq!(stage.said(right), [Body::OfferAnswer(Verdict::Taken)]);
    stage.marks();
    (stage, right)
}

/// The host has named both other routers, and both offer its connection.
fn both_others_offer() -> (Stage, [StreamId; 2]) {
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

#[test]
fn a_connection_is_given_up_only_by_the_offer_that_it_is_expected_by() {
    let (mut stage, right) = comes_from_the_right();
    stage.says(right, 1, Body::Abort { connection: id(1) });
    assert_eq!(stage.marks(), ["connection_lost"], "it was to come");

    // The host was elsewhere meanwhile: the word is about an earlier visit.
    let (mut stage, right) = comes_from_the_right();
    stage.points(THIRD, 20, vec![entry(1, RIGHT)]);
    stage.greets(30, &[THIRD, RIGHT], vec![entry(1, RIGHT)]);
    stage.marks();
    stage.says(right, 1, Body::Abort { connection: id(1) });
    assert!(stage.marks().is_empty());
    assert_eq!(stage.stage(1).unwrap(), "expected");

    // It has come.
    let (mut stage, right) = comes_from_the_right();
    stage.ships(right, 1, entry(1, RIGHT), 1);
    assert_eq!(stage.commits(right, 1, 1, 1), [Verdict::Taken]);
    stage.marks();
    stage.says(right, 1, Body::Abort { connection: id(1) });
    assert!(stage.marks().is_empty());
    assert_eq!(stage.stage(1).unwrap(), "serving");
}

#[test]
fn a_commit_is_of_the_attempt_that_came() {
    let (mut stage, right) = comes_from_the_right();
    stage.ships(right, 1, entry(1, RIGHT), 4);
    assert_eq!(stage.commits(right, 1, 1, 3), [Verdict::Failed]);
    assert_eq!(stage.commits(right, 1, 1, 5), [Verdict::Failed]);
    assert_eq!(stage.stage(1).unwrap(), "arriving");
    assert_eq!(stage.commits(right, 1, 1, 4), [Verdict::Taken]);
    assert_eq!(stage.marks(), ["taken"]);
    // Said once more it is answered as before, and so is what was taken earlier.
    assert_eq!(stage.commits(right, 1, 1, 4), [Verdict::Taken]);
    assert_eq!(stage.commits(right, 1, 1, 3), [Verdict::Taken]);
    assert!(stage.marks().is_empty());

    // Another router that may have it commits what has come from the right.
    let (mut stage, [right, third]) = both_others_offer();
    stage.ships(right, 1, entry(1, RIGHT), 4);
    stage.says(third, 1, Body::Entry(entry(1, RIGHT), 4));
    assert_eq!(stage.commits(third, 1, 1, 4), [Verdict::Failed]);
    assert_eq!(stage.commits(right, 1, 1, 4), [Verdict::Taken]);
}

/// A commit is of the connection whose entry came before it.
#[test]
fn a_commit_of_another_connection_ends_the_connection_between_the_routers() {
    let (mut stage, right) = comes_from_the_right();
    stage.ships(right, 1, entry(1, RIGHT), 1);
    assert_eq!(stage.commits(right, 1, 2, 1), []);
    assert_eq!(stage.aborted, [right]);
    assert!(stage.marks().is_empty(), "nothing is taken");
}

/// What comes of a connection comes by the connection between routers by which it began, and its halves have the ends that its
/// host has named.
#[test]
fn what_comes_of_a_connection_has_its_ends_and_comes_by_one_way() {
    let (mut stage, right) = comes_from_the_right();
    stage.says(right, 1, Body::Entry(entry(1, RIGHT), 1));
    let of_another = entry(2, RIGHT);
    for side in [Side::Near, Side::Far] {
        stage.says(right, 1, Body::State(Box::new(SocketState::new(side, state(&of_another, side)))));
    }
    assert!(stage.halves.is_empty());
    assert_eq!(stage.commits(right, 1, 1, 1), [Verdict::Failed]);

    let (mut stage, [right, third]) = both_others_offer();
    stage.says(right, 1, Body::Entry(entry(1, RIGHT), 1));
    stage.ships(third, 1, entry(1, RIGHT), 1);
    stage.says(third, 1, Body::UserBuffer(Way::Up, vec![9; 5]));
    assert!(stage.halves.is_empty());
    stage.ships(right, 1, entry(1, RIGHT), 1);
    assert_eq!(stage.halves.len(), 2);
    assert_eq!(stage.commits(right, 1, 1, 1), [Verdict::Taken]);
    assert_eq!(stage.ahead, [[Vec::<u8>::new(), Vec::new()]]);
}

/// Its host restarts, and a number comes again: that is another connection, which is taken by its own first attempt. What is said
/// of the former one is none of it.
#[test]
fn a_number_that_comes_again_is_another_connection() {
    let (mut stage, right) = comes_from_the_right();
    stage.ships(right, 1, entry(1, RIGHT), 1);
    assert_eq!(stage.commits(right, 1, 1, 1), [Verdict::Taken]);
    stage.greets(20, &[], Vec::new());
    let again = Entry { id: ConnectionId { call: 25, ..id(1) }, ..entry(1, RIGHT) };
    stage.greets(30, &[RIGHT], vec![again]);
    let right = stage.links(RIGHT);
    stage.says(right, 1, offer(30));
    stage.marks();
    stage.says(right, 1, Body::Entry(entry(1, RIGHT), 2));
    stage.says(right, 1, Body::Abort { connection: id(1) });
    assert_eq!(stage.stage(1).unwrap(), "expected");
    stage.ships(right, 1, again, 1);
    assert_eq!(stage.commits(right, 1, 1, 1), [Verdict::Taken]);
    assert_eq!(stage.marks(), ["taken"]);
    // The answer about the former connection is `Taken` as well: a router that asks must not continue it.
    stage.says(right, 0, Body::Status { host: HOST, connection: id(1), attempt: 1, sequence: 10 });
    assert_eq!(stage.said(right), [answer(1, 1, Verdict::Taken)]);

    let (mut stage, right) = leaves_for_the_right();
    let former = ConnectionId { call: 9, ..id(1) };
    let taken =
        |connection| Body::CommitAnswer { host: HOST, connection, attempt: 1, verdict: Verdict::Taken };
    stage.says(right, 0, taken(former));
    assert_eq!(stage.stage(1).unwrap(), "leaving");
    stage.says(right, 0, taken(id(1)));
    assert_eq!(stage.stage(1), None);
}

/// A connection that was taken here, left, and is expected again: its earlier attempt begins nothing, a later one does. So does
/// one that comes back before its own commit was answered, if it is later than that.
#[test]
fn a_connection_that_comes_back_comes_by_a_later_attempt() {
    let (mut stage, right) = comes_from_the_right();
    stage.ships(right, 1, entry(1, RIGHT), 4);
    assert_eq!(stage.commits(right, 1, 1, 4), [Verdict::Taken]);
    stage.points(THIRD, 20, vec![entry(1, RIGHT)]);
    let third = stage.accepts(THIRD);
    stage.says(third, 1, Body::OfferAnswer(Verdict::Taken));
    let answered = |stage: &mut Stage| {
        stage.says(third, 1, answer(1, 5, Verdict::Taken));
        stage.greets(30, &[THIRD, RIGHT], vec![entry(1, RIGHT)]);
    };
    let offered = |stage: &mut Stage, router| {
        let link = stage.links(router);
        stage.says(link, 1, offer(30));
        link
    };
    answered(&mut stage);
    let link = offered(&mut stage, RIGHT);
    stage.says(link, 1, Body::Entry(entry(1, RIGHT), 4));
    assert_eq!(stage.stage(1).unwrap(), "expected", "it was taken by this attempt, and has left");
    let link = offered(&mut stage, THIRD);
    stage.says(link, 1, Body::Entry(entry(1, RIGHT), 6));
    assert_eq!(stage.stage(1).unwrap(), "arriving");

    let (mut stage, _) = leaves_for_the_right();
    stage.greets(30, &[RIGHT], vec![entry(1, LEFT)]);
    let link = offered(&mut stage, RIGHT);
    stage.says(link, 1, Body::Entry(entry(1, LEFT), 1));
    assert_eq!(stage.stage(1).unwrap(), "leaving", "its own attempt");
    stage.says(link, 1, Body::Entry(entry(1, LEFT), 2));
    assert_eq!(stage.stage(1).unwrap(), "arriving", "the right has taken it, and hands it back");
}

/// A router that has restarted since a connection was offered to it may have had it. It does not say that it is still with the
/// router that asks: that one's state may be of the past, and a connection that goes on from there hangs.
#[test]
fn a_router_that_has_restarted_does_not_know_whose_a_connection_is() {
    let asks = |stage: &mut Stage, sequence| {
        let right = stage.links(RIGHT);
        stage.says(right, 0, Body::Status { host: HOST, connection: id(1), attempt: 1, sequence });
        stage.said(right)
    };
    let mut stage = Stage::new();
    stage.give(Input::Start(&Boot { wall: wire::WallTime(1_000), ..Boot::default() }));
    assert_eq!(asks(&mut stage, 999), [answer(1, 1, Verdict::Failed)]);
    assert_eq!(asks(&mut stage, 1_000), [answer(1, 1, Verdict::Unknown)]);

    // The router that asked ends it, at both ends if its host is there again.
    let (mut stage, right) = leaves_for_the_right();
    stage.says(right, 0, answer(1, 1, Verdict::Failed));
    assert_eq!(stage.marks(), ["connection_lost", "handed_over"]);
    assert_eq!(stage.aborted.len(), 2);
    let (mut stage, right) = leaves_for_the_right();
    stage.greets(30, &[RIGHT], vec![entry(1, LEFT)]);
    stage.marks();
    stage.guards.clear();
    stage.says(right, 0, answer(1, 1, Verdict::Failed));
    assert_eq!(stage.marks(), ["connection_lost"]);
    assert_eq!(stage.guards, [Some(Guard::Reset); 2]);
    assert!(matches!(&stage.sent.last(), Some(Datagram::Lost(_))));
}

/// Of two offers of one host's connections on one connection the later counts.
#[test]
fn a_later_offer_ends_those_before_of_the_same_host() {
    let (mut stage, right) = comes_from_the_right();
    stage.says(right, 2, offer(10));
    assert!(stage.aborted.is_empty());
    stage.says(right, 2, Body::Entry(entry(1, RIGHT), 1));
    assert_eq!(stage.stage(1).unwrap(), "arriving");
    stage.says(right, 1, Body::Entry(entry(1, RIGHT), 1));
    assert_eq!(stage.aborted, [right], "no router of ours goes on with an offer that it has made anew");
}

/// One router offers the connections of 1024 hosts at a time.
#[test]
fn a_router_that_offers_without_end_is_none_of_ours() {
    let mut stage = Stage::new();
    stage.at(10);
    let right = stage.links(RIGHT);
    for number in 0..=1024_u16 {
        let [high, low] = number.to_be_bytes();
        let offer = Body::Offer { host: Ipv4Addr::new(10, 9, high, low), sequence: 1, connections: 1 };
        stage.says(right, u64::from(number) + 1, offer);
        assert_eq!(stage.aborted.is_empty(), number < 1024, "{number}");
    }
}

/// A router is called by its address, and all routers may have one key: who answers says that it is the one.
#[test]
fn the_router_that_was_called_answers() {
    let mut stage = Stage::new();
    stage.at(10);
    stage.greets(10, &[], Vec::new());
    stage.calls(1);
    stage.points(RIGHT, 20, vec![entry(1, LEFT)]);
    let id = stage.accepts(THIRD);
    assert_eq!(stage.aborted, [id]);
    assert!(stage.said(id).is_empty());
}

/// A host comes and goes without end, each time with 16 other connections, on both halves of which the router is silent for two
/// minutes: 256 tuples at a time, the latest. After that there is none left.
#[test]
fn one_host_makes_its_router_silent_on_so_many_tuples_at_a_time() {
    let mut stage = Stage::new();
    for visit in 0..20 {
        let entries: Vec<Entry> = (0..16).map(|number| entry(16 * visit + number, RIGHT)).collect();
        let sequence = 1_000 + 10 * u64::from(visit);
        stage.greets(sequence, &[RIGHT], entries.clone());
        stage.points(THIRD, sequence + 5, entries.clone());
        let silent = stage.guarded.values().filter(|guard| **guard == Guard::Drop).count();
        assert_eq!(silent, 256.min(32 * (visit as usize + 1)), "visit {visit}");
        let latest = entries.iter().flat_map(|entry| [entry.near(), entry.far()]);
        assert!(latest.into_iter().all(|tuple| stage.guarded.contains_key(&tuple)));
    }
    assert_eq!(stage.guarded.len(), 256);
    stage.at(120_000);
    assert!(stage.guarded.is_empty());
}
