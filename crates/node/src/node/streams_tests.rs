//! Tests that the events and requests of each stream reach the right role or driver.

use super::*;
use crate::{Boot, Role, Value};
use std::sync::{Arc, Mutex};
use wire::{Ipv4Addr, PacketId, SocketAddrV4};

const OWN: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const PIPE: Transport = Transport::Role("pipe");
const SERVED: StreamId = StreamId(StreamId::SERVED);

/// The inputs that the roles received, in order: the role and the input.
type Heard = Arc<Mutex<Vec<(&'static str, String)>>>;

/// A role that records its inputs. At `Timeout`, it stores a record and then writes to a stream.
#[derive(Debug)]
struct Puppet {
    name: &'static str,
    serves: &'static [Transport],
    heard: Heard,
}

impl Role for Puppet {
    fn name(&self) -> &'static str {
        self.name
    }
    fn serves(&self) -> &[Transport] {
        self.serves
    }
    fn handle(&mut self, _now: Instant, input: Input<'_>, out: &mut Outbox) {
        let line = match input {
            Input::Timeout => {
                out.store(vec![1], vec![2]);
                return out.stream(StreamId(3), StreamOp::Write(vec![2]));
            }
            Input::Stream(id, event) => format!("{:x} {event:?}", id.0),
            Input::Serve(id, op) => format!("serve {:x} {op:?}", id.0),
            other => format!("{other:?}"),
        };
        self.heard.lock().unwrap().push((self.name, line));
    }
    fn deadline(&self) -> Option<Instant> {
        (self.name == "alice").then_some(Instant::from_millis(1))
    }
    fn status(&self) -> Value {
        Value::None
    }
}

/// A node with two roles that use streams and two roles that provide a transport, and the inputs of these roles.
struct Stage {
    node: Node,
    out: Outbox,
    heard: Heard,
}

const ALICE: RoleId = RoleId(0);
const BOB: RoleId = RoleId(1);
const PIPER: RoleId = RoleId(2);
const OTHER: RoleId = RoleId(3);

impl Stage {
    fn new() -> Self {
        let heard = Heard::default();
        let puppet =
            |name, serves| -> Box<dyn Role> { Box::new(Puppet { name, serves, heard: Arc::clone(&heard) }) };
        let roles = vec![
            puppet("alice", &[]),
            puppet("bob", &[]),
            puppet("piper", &[PIPE]),
            puppet("other", &[PIPE, Transport::Role("other")]),
        ];
        Self { node: Node::new(roles, vec![OWN]), out: Outbox::default(), heard }
    }

    /// Executes a user's request, and returns the inputs that all roles received.
    fn ask(&mut self, user: RoleId, id: StreamId, op: StreamOp) -> Vec<(&'static str, String)> {
        self.node.operate(Instant::ZERO, user, id, op, &mut self.out);
        self.heard()
    }

    /// Reports an event of a role that provides a transport, and returns the inputs that all roles received.
    fn tell(&mut self, provider: RoleId, told: &OwnedStreamEvent) -> Vec<(&'static str, String)> {
        self.node.served(Instant::ZERO, provider, told, &mut self.out);
        self.heard()
    }

    /// Reports an event of the driver, and returns the inputs that all roles received.
    fn drive(&mut self, id: StreamId, event: StreamEvent<'_>) -> Vec<(&'static str, String)> {
        self.node.handle(Instant::ZERO, Input::Stream(id, event), &mut self.out);
        self.heard()
    }

    fn heard(&mut self) -> Vec<(&'static str, String)> {
        std::mem::take(&mut *self.heard.lock().unwrap())
    }

    /// Returns the number of acts for the driver, without [`Act::Delivered`].
    fn acts(&mut self) -> usize {
        let acts = std::iter::from_fn(|| self.out.next_act());
        acts.filter(|(_, act)| !matches!(act, Act::Delivered(_))).count()
    }
}

fn at(port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(OWN, port)
}

fn open(by: Transport) -> StreamOp {
    StreamOp::Open { by, local: None, peer: at(9), foreign: false }
}

fn listen(by: Transport) -> StreamOp {
    StreamOp::Listen { by, local: at(9), foreign: false }
}

fn said(who: &'static str, what: &str) -> Vec<(&'static str, String)> {
    vec![(who, what.to_owned())]
}

fn data(id: StreamId) -> OwnedStreamEvent {
    OwnedStreamEvent::Data(id, PacketId::NEW, vec![7])
}

#[test]
fn a_stream_goes_to_the_first_role_that_serves_it_and_back() {
    let mut stage = Stage::new();
    let asked = stage.ask(ALICE, StreamId(3), open(PIPE));
    assert_eq!(asked, [("piper", format!("serve 10003 {:?}", open(PIPE)))]);
    let global = StreamId(1 << 16 | 3);
    assert_eq!(
        stage.tell(PIPER, &OwnedStreamEvent::Opened(global, at(1))),
        said("alice", "3 Opened(10.0.0.1:1)")
    );
    let write = StreamOp::Write(vec![1]);
    assert_eq!(stage.ask(ALICE, StreamId(3), write), said("piper", "serve 10003 Write([1])"));
    assert_eq!(stage.tell(PIPER, &data(global)), said("alice", "3 Data([7])"));
    let other = stage.ask(ALICE, StreamId(4), open(Transport::Role("other")));
    assert_eq!(other[0].0, "other");
    assert_eq!(stage.acts(), 0, "the driver hears of none of it");
}

#[test]
fn what_nobody_serves_is_closed_at_once_and_the_number_is_free() {
    let mut stage = Stage::new();
    for op in [open(Transport::Role("none")), listen(Transport::Role("none"))] {
        let closed = said("alice", "3 Closed(Some(\"no such transport\"))");
        assert_eq!(stage.ask(ALICE, StreamId(3), op), closed);
    }
    assert_eq!(stage.ask(ALICE, StreamId(3), open(PIPE))[0].0, "piper");
}

#[test]
fn what_the_driver_provides_goes_to_the_driver() {
    let mut stage = Stage::new();
    assert_eq!(stage.ask(ALICE, StreamId(3), open(Transport::Udp)), []);
    let Some((ALICE, Act::Stream(id, _))) = stage.out.next_act() else { panic!() };
    assert_eq!(id, StreamId(1 << 16 | 3));
    assert_eq!(stage.drive(id, StreamEvent::Room(5)), said("alice", "3 Room(5)"));
}

#[test]
fn equal_numbers_of_two_users_are_two_streams() {
    let mut stage = Stage::new();
    for (user, name) in [(ALICE, "alice"), (BOB, "bob")] {
        stage.ask(user, StreamId(3), open(PIPE));
        let global = StreamId((u32::from(user.0) + 1) << 16 | 3);
        assert_eq!(stage.tell(PIPER, &data(global)), said(name, "3 Data([7])"));
    }
    // A role that uses a number above its range does not reach the streams of another role.
    assert_eq!(
        stage.ask(BOB, StreamId(1 << 16 | 3), StreamOp::Read(1)),
        said("piper", "serve 20003 Read(1)")
    );
}

#[test]
fn equal_numbers_of_two_who_serve_are_two_streams() {
    let mut stage = Stage::new();
    stage.ask(ALICE, StreamId(1), listen(PIPE));
    stage.ask(BOB, StreamId(1), listen(Transport::Role("other")));
    let accepted = |listener| OwnedStreamEvent::Accepted { listener, new: SERVED, local: at(9), peer: at(8) };
    let of_piper = StreamId::SERVED | 2 << 22;
    let of_other = StreamId::SERVED | 3 << 22;
    assert_eq!(
        stage.tell(PIPER, &accepted(StreamId(1 << 16 | 1))),
        said("alice", &format!("1 Accepted(StreamId({of_piper}), 10.0.0.1:9, 10.0.0.1:8)"))
    );
    assert_eq!(
        stage.tell(OTHER, &accepted(StreamId(2 << 16 | 1))),
        said("bob", &format!("1 Accepted(StreamId({of_other}), 10.0.0.1:9, 10.0.0.1:8)"))
    );
    // Each role that provides a transport numbers its accepted streams itself. The user has the node's number.
    assert_eq!(
        stage.ask(ALICE, StreamId(of_piper), StreamOp::Read(1)),
        said("piper", "serve 40000000 Read(1)")
    );
    assert_eq!(
        stage.ask(BOB, StreamId(of_other), StreamOp::Read(1)),
        said("other", "serve 40000000 Read(1)")
    );
    assert_eq!(stage.tell(OTHER, &data(SERVED)), said("bob", &format!("{of_other:x} Data([7])")));
    // The driver's numbers for accepted streams are above those of all roles, even of the last number of the last role.
    let last = Streams::of_provider(RoleId(254), StreamId(StreamId::SERVED + StreamId::ACCEPTED - 1));
    assert!(last.0 < StreamId::DRIVER && last != Streams::of_provider(RoleId(253), last));
}

#[test]
fn nobody_speaks_of_a_stream_that_is_not_his() {
    let mut stage = Stage::new();
    let global = StreamId(1 << 16 | 3);
    for told in [data(global), OwnedStreamEvent::Closed(global, None), data(SERVED)] {
        assert_eq!(stage.tell(PIPER, &told), [], "no user has opened it");
    }
    stage.ask(ALICE, StreamId(3), listen(PIPE));
    assert_eq!(stage.tell(OTHER, &data(global)), [], "another serves it");
    assert_eq!(stage.drive(global, StreamEvent::Data(b"x")), [], "it is not the driver's");
    let new = SERVED;
    stage.tell(PIPER, &OwnedStreamEvent::Accepted { listener: global, new, local: at(9), peer: at(8) });
    let accepted = StreamId(StreamId::SERVED | 2 << 22);
    assert_eq!(stage.ask(BOB, accepted, StreamOp::Read(1)), [], "another uses it");
    assert_eq!(stage.drive(accepted, StreamEvent::Data(b"x")), []);
    assert_eq!(stage.tell(PIPER, &data(global)), said("alice", "3 Data([7])"), "and all is as it was");
    assert_eq!(stage.acts(), 0);
}

#[test]
fn closed_is_the_last_word_and_the_number_is_free_again() {
    let mut stage = Stage::new();
    let global = StreamId(1 << 16 | 3);
    stage.ask(ALICE, StreamId(3), listen(PIPE));
    let accepted = OwnedStreamEvent::Accepted { listener: global, new: SERVED, local: at(9), peer: at(8) };
    stage.tell(PIPER, &accepted);
    assert_eq!(stage.tell(PIPER, &OwnedStreamEvent::Closed(global, None)), said("alice", "3 Closed(None)"));
    assert_eq!(stage.tell(PIPER, &data(global)), []);
    // An accepted stream stays open when its listener is closed, as with a socket.
    assert_eq!(stage.tell(PIPER, &data(SERVED)).len(), 1);
    assert_eq!(stage.tell(PIPER, &OwnedStreamEvent::Closed(SERVED, None)).len(), 1);
    let late = StreamId(StreamId::SERVED | 2 << 22);
    assert_eq!(stage.ask(ALICE, late, StreamOp::Write(vec![1])), [], "a write that crossed the end");
    assert_eq!(stage.acts(), 0, "does not reach the driver");
    assert_eq!(stage.ask(ALICE, StreamId(3), open(PIPE))[0].0, "piper");
    assert_eq!(stage.node.streams.by_id.len(), 1);
}

#[test]
fn what_waits_for_a_record_does_not_pass_by_another_role() {
    for fails in [false, true] {
        let mut stage = Stage::new();
        stage.ask(ALICE, StreamId(3), open(PIPE));
        assert_eq!(stage.acts(), 0);
        let now = Instant::from_millis(1);
        stage.node.handle(now, Input::Timeout, &mut stage.out);
        let Some((ALICE, Act::Store(..))) = stage.out.next_act() else { panic!() };
        assert_eq!(stage.heard(), [], "it is not durable yet");
        if fails {
            stage.node.withdraw(now, "no space left", &mut stage.out);
        } else {
            stage.node.resume(now, 1, &mut stage.out);
        }
        let written = if fails { Vec::new() } else { said("piper", "serve 10003 Write([2])") };
        let heard = stage.heard().into_iter().filter(|(who, _)| *who != "alice").collect::<Vec<_>>();
        assert_eq!(heard, written);
    }
}

#[test]
fn a_driver_asks_for_streams_of_its_own_only() {
    const OUTSIDE: StreamId = StreamId(StreamId::OUTSIDE + 3);
    let mut stage = Stage::new();
    let serve = |stage: &mut Stage, id, op| {
        stage.node.handle(Instant::ZERO, Input::Serve(id, op), &mut stage.out);
        let act = stage.out.next_act().map(|(_, act)| act);
        (stage.heard(), act)
    };
    // A driver cannot read from a stream of a role, or from a stream that does not exist.
    stage.ask(ALICE, StreamId(3), open(PIPE));
    assert_eq!(stage.acts(), 0);
    for id in [SERVED, StreamId(1 << 16 | 3), StreamId(StreamId::DRIVER), OUTSIDE] {
        assert_eq!(serve(&mut stage, id, StreamOp::Read(1)), (vec![], None));
    }
    for by in [Transport::Tcp, Transport::Role("none")] {
        let closed = OwnedStreamEvent::Closed(OUTSIDE, Some("no such transport".to_owned()));
        assert_eq!(serve(&mut stage, OUTSIDE, open(by)), (vec![], Some(Act::Served(closed))));
    }
    assert_eq!((stage.node.transport("pipe"), stage.node.transport("none")), (Some(PIPE), None));
    // A role provides a stream to the driver as it does to another role.
    let asked = format!("serve 1000003 {:?}", open(PIPE));
    let peer = match open(PIPE) {
        StreamOp::Open { peer, .. } => Some(peer),
        other => panic!("{other:?}"),
    };
    let observed = |change| Some(Act::Delivered(AppEvent { stream: OUTSIDE, change }));
    let change = AppChange::Asked { role: "", by: PIPE, local: None, peer };
    assert_eq!(serve(&mut stage, OUTSIDE, open(PIPE)), (said("piper", &asked), observed(change)));
    assert_eq!(serve(&mut stage, OUTSIDE, StreamOp::Read(1)), (said("piper", "serve 1000003 Read(1)"), None));
    assert_eq!(stage.tell(OTHER, &data(OUTSIDE)), []);
    assert_eq!(stage.acts(), 0, "another serves it");
    for told in [data(OUTSIDE), OwnedStreamEvent::Closed(OUTSIDE, None)] {
        assert_eq!(stage.tell(PIPER, &told), []);
        let change = match told {
            OwnedStreamEvent::Data(..) => AppChange::Read(1),
            _ => AppChange::Closed(None),
        };
        assert_eq!(stage.out.next_act().map(|(_, act)| act), observed(change), "as with any user");
        assert_eq!(stage.out.next_act().map(|(_, act)| act), Some(Act::Served(told)));
    }
    assert_eq!(serve(&mut stage, OUTSIDE, StreamOp::Read(1)), (vec![], None));
    stage.node.handle(Instant::ZERO, Input::Start(&Boot::default()), &mut stage.out);
    assert_eq!(stage.heard().len(), 4, "others are notified as before");
}

#[test]
fn what_a_role_reads_that_serves_others_is_no_programs_yet() {
    let stage = Stage::new();
    let of = |user: RoleId| Streams::of_user(user, StreamId(3));
    assert_eq!([ALICE, PIPER].map(|user| stage.node.relays(of(user))), [false, true]);
    assert!(!stage.node.relays(SERVED), "a role's, and none of the driver's");
}

/// A relay joins two streams of one user that the driver provides. The node translates the user's numbers into the
/// driver's.
#[test]
fn who_joins_names_two_streams_of_its_own() {
    let mut stage = Stage::new();
    let join = |other| StreamOp::Migrate(MigrateOp::Join(StreamId(other), [vec![1], Vec::new()]));
    let accepted = StreamId(StreamId::DRIVER + 7);
    stage.ask(ALICE, StreamId(1), listen(Transport::Tcp));
    stage.drive(StreamId(1 << 16 | 1), StreamEvent::Accepted(accepted, at(1), at(2)));
    assert_eq!(stage.acts(), 1);
    assert_eq!(stage.ask(ALICE, accepted, join(2)), []);
    let act = std::iter::from_fn(|| stage.out.next_act()).last();
    let global = StreamOp::Migrate(MigrateOp::Join(StreamId(1 << 16 | 2), [vec![1], Vec::new()]));
    assert_eq!(act, Some((ALICE, Act::Stream(accepted, global))));
    let refused = said("bob", "3 Migrate(Refused(\"cannot join: not two open TCP connections\"))");
    assert_eq!(stage.ask(BOB, StreamId(3), join(accepted.0)), refused, "another's stream");
    stage.ask(BOB, StreamId(4), open(PIPE));
    assert_eq!(stage.ask(BOB, StreamId(3), join(4)), refused, "a role's stream");
    assert_eq!(stage.acts(), 0);
}
