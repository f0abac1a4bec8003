//! Messages that try to steal a host's connections: they change nothing, and are dropped with a reason. An authentic
//! message of the same type has an effect.

use crate::config;
use auth::Key;
use indirect_tcp::config::{MobileHostConfig, Peer};
use indirect_tcp::message::{
    Answer, CONNECTIONS, Call, Code, ConnectionId, Datagram, Entry, ForwardPointer, ForwardReply, Greeting,
    GreetingReply, Lost, PORT, Signed, Welcome,
};
use indirect_tcp::{MobileHost, SupportRouter, TRANSPORT};
use node::stream::{OwnedStreamEvent, refusal::FULL};
use node::{
    Act, Addr, Boot, Effect, Input, Notification, Outbox, PuntReason, Rng, Role, Rx, StreamEvent, StreamId,
    StreamOp,
};
use wire::ipv4::Header;
use wire::{Iface, Instant, Ipv4Addr, Mac, Packet, Reason, udp};

const HOST: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 7);
const OTHER: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 8);
const LEFT: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
const RIGHT: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 1);
const FIXED: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const CALLER: StreamId = StreamId(StreamId::DRIVER);

fn host_key() -> Key {
    Key::new([1; 16])
}

fn router_key() -> Key {
    Key::new([2; 16])
}

fn wrong() -> Key {
    Key::new([3; 16])
}

/// A role under test, and the present time.
struct Stage<R> {
    role: R,
    now: Instant,
}

impl<R: Role> Stage<R> {
    fn give(&mut self, input: Input<'_>) -> Vec<Effect> {
        let mut out = Outbox::default();
        self.role.handle(self.now, input, &mut out);
        out.drain_effects().collect()
    }

    fn hear(&mut self, from: Ipv4Addr, to: Ipv4Addr, payload: &[u8]) -> Vec<Effect> {
        let bytes = udp::packet(Addr::new(from, PORT), Addr::new(to, PORT), payload);
        let mut packet = Packet::new(Mac([2; 6]), bytes);
        packet.link.src = Mac([2, 0, 0, 0, 0, 7]);
        let rx = Rx::parse(Iface(1), PuntReason::Listen, &packet).unwrap();
        self.give(Input::Packet(rx, packet))
    }

    /// Checks that a message is dropped with this reason and has no other effect.
    #[track_caller]
    fn refuses(&mut self, from: Ipv4Addr, to: Ipv4Addr, payload: &[u8], why: &'static str) {
        let before = self.state();
        let effects = self.hear(from, to, payload);
        assert!(
            matches!(effects[..], [Effect::Discard(_, _, Reason(reason))] if reason == why),
            "{effects:?}"
        );
        assert_eq!(self.state(), before);
    }

    /// Returns the state of the role as text, without the counts of refused messages.
    fn state(&self) -> String {
        let text = format!("{:?}", self.role);
        let (front, _) = text.split_once("refused: ").unwrap();
        front.to_owned()
    }
}

fn router() -> Stage<SupportRouter> {
    let peer = |address, key| Peer { address, key };
    let hosts = vec![peer(HOST, host_key()), peer(OTHER, host_key())];
    let config = config::router(LEFT, hosts, vec![peer(RIGHT, router_key())]);
    let mut stage = Stage { role: SupportRouter::new(config, Rng::new(1)).unwrap(), now: Instant::ZERO };
    stage.give(Input::Start(&Boot::default()));
    stage
}

fn entry() -> Entry {
    Entry {
        id: ConnectionId { number: 4, call: 3 },
        host: Addr::new(HOST, 49_152),
        router: Addr::new(RIGHT, PORT),
        peer: Addr::new(FIXED, 80),
        closing: false,
        unanswered: false,
        calling: false,
    }
}

fn greeting(sequence: u64, router: Ipv4Addr, previous: Ipv4Addr) -> Greeting {
    let (previous, entries) = (vec![previous], vec![entry()]);
    Greeting { host: HOST, sequence, router, previous, entries, again: false, codes: Vec::new() }
}

fn marks(effects: &[Effect]) -> Vec<&'static str> {
    let name = |effect: &Effect| match effect {
        Effect::Do(Act::Mark(mark)) => Some(mark.name),
        _ => None,
    };
    effects.iter().filter_map(name).collect()
}

#[test]
fn a_greeting_is_the_hosts_own_and_meant_for_this_router() {
    let mut stage = router();
    let mine = greeting(5, LEFT, RIGHT);
    let sign = |greeting: &Greeting| Signed::new(greeting.clone(), &host_key()).emit();
    stage.refuses(HOST, LEFT, &Signed::new(mine.clone(), &wrong()).emit(), "itcp_forged");
    stage.refuses(HOST, LEFT, &Signed::new(mine.clone(), &router_key()).emit(), "itcp_forged");
    stage.refuses(OTHER, LEFT, &sign(&mine), "itcp_misdirected");
    stage.refuses(HOST, RIGHT, &sign(&mine), "itcp_misdirected");
    stage.refuses(HOST, LEFT, &sign(&greeting(5, RIGHT, LEFT)), "itcp_misdirected");
    let stranger = Ipv4Addr::new(10, 1, 0, 66);
    let theirs = Greeting { host: stranger, entries: Vec::new(), ..mine.clone() };
    stage.refuses(stranger, LEFT, &sign(&theirs), "itcp_stranger");
    // The greeting comes from a group address of the link. If it were accepted, packets to the host would be sent to
    // that group.
    let mut packet =
        Packet::new(Mac([2; 6]), udp::packet(Addr::new(HOST, PORT), Addr::new(LEFT, PORT), &sign(&mine)));
    packet.link.src = Mac([3, 0, 0, 0, 0, 7]);
    let before = stage.state();
    let rx = Rx::parse(Iface(1), PuntReason::Listen, &packet).unwrap();
    let effects = stage.give(Input::Packet(rx, packet));
    assert!(matches!(effects[..], [Effect::Discard(_, _, Reason("itcp_misdirected"))]), "{effects:?}");
    assert_eq!(stage.state(), before);
    let effects = stage.hear(HOST, LEFT, &sign(&mine));
    assert_eq!(marks(&effects), ["greeted", "pointer_sent"]);
    // A repeated greeting is answered again and changes nothing. An older one is answered as stale and changes nothing.
    let before = stage.state();
    assert!(marks(&stage.hear(HOST, LEFT, &sign(&mine))).is_empty());
    assert!(marks(&stage.hear(HOST, LEFT, &sign(&greeting(4, LEFT, RIGHT)))).is_empty());
    assert_eq!(stage.state(), before);
}

/// A router hands a connection over only to a router that the host itself has greeted.
#[test]
fn a_forward_pointer_needs_the_router_and_the_host() {
    let mut stage = router();
    let pointer = |greeting: Signed<Greeting>, key: &Key| {
        Signed::new(ForwardPointer { new: RIGHT, old: LEFT, greeting }, key).emit()
    };
    let by_host = |greeting: Greeting| Signed::new(greeting, &host_key());
    let there = greeting(5, RIGHT, LEFT);
    stage.refuses(RIGHT, LEFT, &pointer(by_host(there.clone()), &wrong()), "itcp_forged");
    stage.refuses(
        RIGHT,
        LEFT,
        &pointer(Signed::new(there.clone(), &router_key()), &router_key()),
        "itcp_forged",
    );
    stage.refuses(RIGHT, LEFT, &pointer(by_host(greeting(5, LEFT, LEFT)), &router_key()), "itcp_misdirected");
    stage.refuses(
        RIGHT,
        LEFT,
        &pointer(by_host(greeting(5, RIGHT, RIGHT)), &router_key()),
        "itcp_misdirected",
    );
    // A repeated greeting has no new content, so a pointer may not carry it.
    let repeated = Greeting { again: true, ..there.clone() };
    stage.refuses(RIGHT, LEFT, &pointer(by_host(repeated), &router_key()), "itcp_misdirected");
    let unknown = ForwardPointer { new: FIXED, old: LEFT, greeting: by_host(there.clone()) };
    stage.refuses(FIXED, LEFT, &Signed::new(unknown, &router_key()).emit(), "itcp_stranger");
    let effects = stage.hear(RIGHT, LEFT, &pointer(by_host(there), &router_key()));
    assert_eq!(marks(&effects), ["pointer_taken"]);
    // An older greeting cannot take the host's connections back.
    stage.refuses(RIGHT, LEFT, &pointer(by_host(greeting(4, RIGHT, LEFT)), &router_key()), "itcp_stale");
}

#[test]
fn the_answer_to_a_forward_pointer_is_the_routers() {
    let mut stage = router();
    stage.hear(HOST, LEFT, &Signed::new(greeting(5, LEFT, RIGHT), &host_key()).emit());
    let reply = ForwardReply { old: RIGHT, host: HOST, sequence: 5, connections: 0 };
    let bytes = |reply, key: &Key| Signed::new(reply, key).emit();
    stage.refuses(RIGHT, LEFT, &bytes(reply, &host_key()), "itcp_forged");
    stage.refuses(RIGHT, LEFT, &bytes(ForwardReply { sequence: 4, ..reply }, &router_key()), "itcp_stale");
    let before = stage.role.deadline();
    stage.hear(RIGHT, LEFT, &bytes(reply, &router_key()));
    assert!(stage.role.deadline() > before, "it is not repeated");
    let lost = Signed::new(Lost { host: HOST, router: RIGHT, connections: vec![entry().id] }, &host_key());
    stage.refuses(RIGHT, LEFT, &lost.emit(), "itcp_unexpected");
}

/// A router opens connections only from the address of the host that signed the call.
#[test]
fn a_call_is_the_hosts_own_and_counts_once() {
    let call = Call { host: HOST, connection: 9, sequence: 7, router: LEFT, peer: Addr::new(FIXED, 80) };
    let ask = |call: Call, key: &Key, from: Ipv4Addr, stage: &mut Stage<SupportRouter>| {
        let bytes = Signed::new(call, key).emit();
        let (near, peer) = (Addr::new(LEFT, PORT), Addr::new(from, 50_000));
        stage.give(Input::Stream(StreamId(0), StreamEvent::Accepted(CALLER, near, peer)));
        let (head, tail) = bytes.split_at(4);
        let more = stage.give(Input::Stream(CALLER, StreamEvent::Data(head)));
        assert_eq!(more, [Effect::Stream(CALLER, StreamOp::Read(Call::LEN - 4))]);
        stage.give(Input::Stream(CALLER, StreamEvent::Data(tail)))
    };
    let refused = [Effect::Stream(CALLER, StreamOp::Abort)];
    let mut stage = router();
    assert_eq!(ask(call, &wrong(), HOST, &mut stage), refused);
    assert_eq!(ask(call, &host_key(), OTHER, &mut stage), refused, "from another host's address");
    assert_eq!(ask(Call { router: RIGHT, ..call }, &host_key(), HOST, &mut stage), refused);
    let effects = ask(call, &host_key(), HOST, &mut stage);
    let opened = effects.iter().find_map(|effect| match effect {
        Effect::Stream(_, StreamOp::Open { local, peer, foreign, .. }) => Some((*local, *peer, *foreign)),
        _ => None,
    });
    assert_eq!(opened, Some((Some(Addr::new(HOST, 50_000)), Addr::new(FIXED, 80), true)));
    assert_eq!(ask(call, &host_key(), HOST, &mut stage), refused, "once more");
    assert_eq!(
        ask(Call { connection: 10, ..call }, &host_key(), HOST, &mut stage),
        refused,
        "its number was used"
    );
}

/// Opens a connection of a program. Returns the connection's identifier in messages.
fn connected(stage: &mut Stage<MobileHost>) -> ConnectionId {
    let peer = Addr::new(FIXED, 80);
    let open = StreamOp::Open { by: TRANSPORT, local: None, peer, foreign: false };
    let effects = stage.give(Input::Serve(StreamId(1 << 16), open));
    let router = effects.iter().find_map(|effect| match effect {
        Effect::Stream(id, StreamOp::Open { .. }) => Some(*id),
        _ => None,
    });
    let router = router.unwrap();
    stage.give(Input::Stream(router, StreamEvent::Opened(Addr::new(HOST, 50_000))));
    let effects = stage.give(Input::Stream(router, StreamEvent::Room(1000)));
    let call = effects.iter().find_map(|effect| match effect {
        Effect::Stream(_, StreamOp::Write(bytes)) => Signed::<Call>::parse(bytes).ok(),
        _ => None,
    });
    let Call { connection: number, sequence: call, .. } = call.unwrap().message;
    let answer = Signed::new(Answer { connection: number, code: Code::Connected }, &host_key());
    let effects = stage.give(Input::Stream(router, StreamEvent::Data(&answer.emit())));
    assert!(
        effects.iter().any(|effect| matches!(effect, Effect::Served(OwnedStreamEvent::Opened(..)))),
        "{effects:?}"
    );
    ConnectionId { number, call }
}

#[test]
fn a_host_believes_its_routers_alone() {
    let config = MobileHostConfig { address: HOST, key: host_key(), routers: Vec::new() };
    let mut stage = Stage { role: MobileHost::new(config).unwrap(), now: Instant::from_millis(5) };
    stage.give(Input::Start(&Boot::default()));
    stage.give(Input::Notification(&Notification::Gateway(LEFT)));
    let sequence = 5_000_000; // 5 ms, the wall clock in nanoseconds
    let reply = GreetingReply { host: HOST, sequence, router: LEFT, welcome: Welcome::Ready };
    let bytes = |reply, key: &Key| Signed::new(reply, key).emit();
    stage.refuses(LEFT, HOST, &bytes(reply, &wrong()), "itcp_forged");
    stage.refuses(LEFT, HOST, &bytes(GreetingReply { sequence: 4, ..reply }, &host_key()), "itcp_stale");
    stage.refuses(
        RIGHT,
        HOST,
        &bytes(GreetingReply { router: RIGHT, ..reply }, &host_key()),
        "itcp_misdirected",
    );
    assert_eq!(marks(&stage.hear(LEFT, HOST, &bytes(reply, &host_key()))), ["welcomed"]);
    let id = connected(&mut stage);
    let lost = Lost { host: HOST, router: LEFT, connections: vec![id] };
    stage.refuses(LEFT, HOST, &Signed::new(lost.clone(), &wrong()).emit(), "itcp_forged");
    let of_other = Lost { host: OTHER, ..lost.clone() };
    stage.refuses(LEFT, HOST, &Signed::new(of_other, &host_key()).emit(), "itcp_misdirected");
    // A connection from before the host's restart had the same number, but another sequence of its call.
    let former = Lost { connections: vec![ConnectionId { call: id.call - 1, ..id }], ..lost.clone() };
    let before = stage.state();
    let effects = stage.hear(LEFT, HOST, &Signed::new(former, &host_key()).emit());
    assert!(matches!(effects[..], [Effect::Discard(..)]), "{effects:?}");
    assert_eq!(stage.state(), before);
    let ended = stage.hear(LEFT, HOST, &Signed::new(lost, &host_key()).emit());
    assert!(ended.iter().any(|effect| matches!(effect, Effect::Served(_))), "{ended:?}");
}

/// Returns the greeting that a host has sent.
fn sent(effects: &[Effect]) -> Signed<Greeting> {
    let greeting = effects.iter().find_map(|effect| {
        let Effect::Send(_, packet) = effect else { return None };
        let (ip, payload) = Header::parse(&packet.bytes).ok()?;
        let Ok(Datagram::Greeting(greeting)) =
            Datagram::parse(udp::Datagram::parse(payload, ip.src, ip.dst).ok()?.payload)
        else {
            return None;
        };
        Some(greeting)
    });
    greeting.unwrap()
}

/// If a host has a key for each router, a compromised router can forward the host's greeting to the other routers. It
/// cannot forge a message between the host and another router.
#[test]
fn a_router_that_has_only_its_own_key_speaks_for_no_host_and_no_other_router() {
    let of_right = || Key::new([5; 16]);
    let routers =
        [(LEFT, host_key()), (RIGHT, of_right())].map(|(address, key)| Peer { address, key }).to_vec();
    let config = MobileHostConfig { address: HOST, key: wrong(), routers };
    let mut host = Stage { role: MobileHost::new(config).unwrap(), now: Instant::from_millis(5) };
    host.give(Input::Start(&Boot::default()));
    let first = sent(&host.give(Input::Notification(&Notification::Gateway(LEFT))));
    assert!(first.is_by(&host_key()) && first.message.codes.is_empty(), "no router has to be shown it");
    let reply = |sequence, router, key: &Key| {
        Signed::new(GreetingReply { host: HOST, sequence, router, welcome: Welcome::Ready }, key).emit()
    };
    host.refuses(LEFT, HOST, &reply(first.message.sequence, LEFT, &of_right()), "itcp_forged");
    host.hear(LEFT, HOST, &reply(first.message.sequence, LEFT, &host_key()));
    let lost = |router, key: &Key| {
        Signed::new(Lost { host: HOST, router, connections: vec![entry().id] }, key).emit()
    };
    host.refuses(LEFT, HOST, &lost(LEFT, &of_right()), "itcp_forged");
    host.refuses(LEFT, HOST, &lost(RIGHT, &of_right()), "itcp_misdirected");

    // The host moves to the right router, which forwards its greeting to the left one.
    let greeting = sent(&host.give(Input::Notification(&Notification::Gateway(RIGHT))));
    assert!(greeting.is_by(&of_right()) && !greeting.is_by(&host_key()));
    let mut left = router();
    let pointer =
        |greeting| Signed::new(ForwardPointer { new: RIGHT, old: LEFT, greeting }, &router_key()).emit();
    let plain = Greeting { codes: Vec::new(), ..greeting.message.clone() };
    left.refuses(RIGHT, LEFT, &pointer(greeting.clone()), "itcp_forged");
    left.refuses(RIGHT, LEFT, &pointer(Signed::new(plain, &of_right())), "itcp_forged");
    let later = Greeting { sequence: greeting.message.sequence + 1, ..greeting.message.clone() };
    let later = Signed::new(later, &of_right()).shown_to(LEFT).unwrap();
    left.refuses(RIGHT, LEFT, &pointer(later), "itcp_forged");
    let shown = greeting.shown_to(LEFT).unwrap();
    assert_eq!(greeting.shown_to(FIXED), None);
    assert_eq!(marks(&left.hear(RIGHT, LEFT, &pointer(shown))), ["pointer_taken"]);
}

/// A greeting names all connections of a host in one datagram, so their number is limited.
#[test]
fn one_connection_more_than_a_greeting_has_room_for_is_refused_and_changes_nothing() {
    let config = MobileHostConfig { address: HOST, key: host_key(), routers: Vec::new() };
    let mut stage = Stage { role: MobileHost::new(config).unwrap(), now: Instant::from_millis(5) };
    stage.give(Input::Start(&Boot::default()));
    let peer = Addr::new(FIXED, 80);
    let open = || StreamOp::Open { by: TRANSPORT, local: None, peer, foreign: false };
    let most = u32::try_from(CONNECTIONS).unwrap();
    for number in 0..most {
        let effects = stage.give(Input::Serve(StreamId((1 << 16) + number), open()));
        assert!(!effects.iter().any(|effect| matches!(effect, Effect::Served(_))), "{number}: {effects:?}");
    }
    let before = stage.state();
    let effects = stage.give(Input::Serve(StreamId((1 << 16) + most), open()));
    let [Effect::Served(OwnedStreamEvent::Closed(refused, Some(why)))] = &effects[..] else {
        panic!("{effects:?}")
    };
    assert_eq!((*refused, why.as_str()), (StreamId((1 << 16) + most), FULL));
    assert_eq!(stage.state(), before);
}

fn greet(stage: &mut Stage<SupportRouter>, sequence: u64) -> Vec<Effect> {
    stage.hear(HOST, LEFT, &Signed::new(greeting(sequence, LEFT, RIGHT), &host_key()).emit())
}

/// A restarted router refuses messages that were sent before its restart. It compares their sequences, which come from
/// the wall clock, with the time of its start.
#[test]
fn a_router_that_restarts_refuses_what_was_said_before() {
    let mut stage = router();
    let boot = Boot { wall: wire::WallTime(1_000), ..Boot::default() };
    stage.give(Input::Start(&boot));
    assert!(marks(&greet(&mut stage, 999)).is_empty(), "said before it restarted");
    assert_eq!(marks(&greet(&mut stage, 1_000)), ["greeted", "pointer_sent"]);
}

/// A host is notified that a connection is lost as soon as all earlier routers have answered that they do not have it.
#[test]
fn what_no_router_has_is_not_waited_for() {
    let mut stage = router();
    greet(&mut stage, 5);
    let reply = ForwardReply { old: RIGHT, host: HOST, sequence: 5, connections: 0 };
    let effects = stage.hear(RIGHT, LEFT, &Signed::new(reply, &router_key()).emit());
    assert_eq!(marks(&effects), ["connection_lost"]);
}

/// A caller whose first bytes are not a host's call counts as a router. It must authenticate itself within 5 s, and
/// only short frames are read from it until then.
#[test]
fn who_proves_nothing_is_ended_in_time_and_counted() {
    let mut stage = router();
    let caller = |number: u32| StreamId(StreamId::DRIVER + number);
    let source = |number: u32| Addr::new(Ipv4Addr::new(10, 9, (number / 16) as u8, 1), 40_000);
    let near = Addr::new(LEFT, PORT);
    for number in 0..64 {
        stage.give(Input::Stream(StreamId(0), StreamEvent::Accepted(caller(number), near, source(number))));
        stage.give(Input::Stream(caller(number), StreamEvent::Data(&[0x49, 0x54, 0x43, 0x50])));
    }
    let one_more = |stage: &mut Stage<SupportRouter>, number: u32, from: Addr| {
        let effects =
            stage.give(Input::Stream(StreamId(0), StreamEvent::Accepted(caller(number), near, from)));
        let aborted = effects.iter().filter_map(|effect| match effect {
            Effect::Stream(id, StreamOp::Abort) => Some(id.0 - StreamId::DRIVER),
            _ => None,
        });
        aborted.collect::<Vec<_>>()
    };
    // If there are 64 callers, a new caller displaces the oldest caller of the address with the most callers. So the
    // only caller from an address stays while another address has more callers.
    assert_eq!(one_more(&mut stage, 64, Addr::new(FIXED, 40_000)), [48]);
    assert_eq!(one_more(&mut stage, 65, Addr::new(HOST, 40_000)), [32]);
    assert_eq!(one_more(&mut stage, 66, source(0)), [0], "16 from one address");
    for number in 67..130 {
        let other = Addr::new(Ipv4Addr::new(10, 8, 0, number as u8), 40_000);
        let aborted = one_more(&mut stage, number, other);
        assert!(aborted.iter().all(|number| ![64, 65].contains(number)), "{aborted:?}");
    }
    stage.now = Instant::from_millis(5_001);
    let ended = stage.give(Input::Timeout);
    let aborts = ended.iter().filter(|effect| matches!(effect, Effect::Stream(_, StreamOp::Abort)));
    assert_eq!(aborts.count(), 64, "a router's first bytes stop no timer");
    for number in 0..16 {
        assert!(one_more(&mut stage, number, Addr::new(FIXED, 40_000)).is_empty());
    }
    assert_eq!(one_more(&mut stage, 16, Addr::new(FIXED, 40_001)), [0], "16 from one address");
    let long = [0x49, 0x54, 0x43, 0x50, 1, 4, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(
        stage.give(Input::Stream(caller(1), StreamEvent::Data(&long))),
        [Effect::Stream(caller(1), StreamOp::Abort)],
        "4 MiB are announced"
    );
}
