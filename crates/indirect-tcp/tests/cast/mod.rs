//! The nodes of the transcripts: a mobile host, two support routers, a fixed host. The role under test is the mobile
//! host's side or the left router.

mod frames;
mod names;

use crate::transcript::{Cast, Teller};
use auth::Key as Secret;
use frames::Right;
use indirect_tcp::message::{
    Answer, Call, Code, ConnectionId, Datagram, Entry, ForwardPointer, ForwardReply, Greeting, GreetingReply,
    Lost, PORT, Signed, Welcome,
};
use indirect_tcp::{MobileHost, SupportRouter, TRANSPORT};
use names::Args;
use node::stream::{OwnedStreamEvent, refusal};
use node::{
    Action, Addr, Class, CommandId, Hop, Input, InterfaceAddress, Lifetime, MigrateEvent, MigrateOp, Node,
    Notification, Outbox, Rng, Role, Route, RouteKey, StreamEvent, StreamId, StreamOp, Value,
};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use wire::{Iface, Instant, Ipv4Addr, Mac, Packet, Prefix, TcpState, udp};

const HOST: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 7);
const LEFT: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
const RIGHT: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 1);
const FIXED: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// The ports of the mobile host's end of its connection, and of the service at the fixed host.
const HOST_PORT: u16 = 50_000;
const SERVICE: u16 = 80;
/// The stream of the script's program.
const PROGRAM: StreamId = StreamId(StreamId::OUTSIDE);

/// The link addresses of the neighbors.
const PEOPLE: [(&str, Mac); 2] =
    [("the host", Mac([2, 0, 0, 0, 0, 7])), ("the network", Mac([2, 0, 0, 0, 0, 9]))];

const ROUTER_CONFIG: &str = r#"
    address = "10.1.0.1"
    hosts = [{ address = "10.1.0.7", key = "01010101010101010101010101010101" }]
    routers = [{ address = "10.2.0.1", key = "02020202020202020202020202020202" }]
"#;
const HOST_CONFIG: &str = r#"
    address = "10.1.0.7"
    key = "01010101010101010101010101010101"
"#;

fn host_key(forged: bool) -> Secret {
    Secret::new([if forged { 9 } else { 1 }; 16])
}

fn router_key(forged: bool) -> Secret {
    Secret::new([if forged { 9 } else { 2 }; 16])
}

#[derive(Default)]
pub(crate) struct IndirectTcp {
    /// The names of streams in the transcript.
    streams: BTreeMap<StreamId, &'static str>,
    listener: Option<StreamId>,
    /// The number of streams that the driver has accepted.
    accepted: u32,
    /// The right router's end of the present connection between the routers.
    right: Option<Right>,
    /// The mobile host's last greeting, and its last call.
    greeting: Option<Greeting>,
    call: Option<Call>,
}

fn configured<T: DeserializeOwned>(base: &str, changes: &str) -> T {
    let mut table: toml::Table = base.parse().unwrap();
    table.extend(changes.parse::<toml::Table>().unwrap());
    toml::Value::Table(table).try_into().unwrap()
}

/// A role that reports the gateway to the other roles of its node, as Mobile IP does on a real host.
#[derive(Debug)]
struct Beneath;

impl Role for Beneath {
    fn name(&self) -> &'static str {
        "beneath"
    }
    fn listens(&self) -> &[node::Listen] {
        &[]
    }
    fn verbs(&self) -> &[&'static str] {
        &["gateway"]
    }
    fn handle(&mut self, _now: Instant, input: Input<'_>, out: &mut Outbox) {
        let Input::Command(_, command) = input else { return };
        let router = command.args.get("router").and_then(Value::as_text).unwrap().parse().unwrap();
        out.notify(Notification::Gateway(router));
    }
    fn deadline(&self) -> Option<Instant> {
        None
    }
    fn status(&self) -> Value {
        Value::None
    }
}

impl Cast for IndirectTcp {
    fn node(&mut self, kind: &str, changes: &str) -> (Node, &'static [&'static str]) {
        *self = Self::default();
        let (roles, names, address): (Vec<Box<dyn Role>>, &'static [&'static str], _) = match kind {
            "support-router" => {
                let role = SupportRouter::new(configured(ROUTER_CONFIG, changes), Rng::new(1)).unwrap();
                (vec![Box::new(role)], &["cell", "up"], "10.1.0.1/32")
            }
            "mobile-host" => {
                let role = MobileHost::new(configured(HOST_CONFIG, changes)).unwrap();
                (vec![Box::new(Beneath), Box::new(role)], &["air"], "10.1.0.7/32")
            }
            _ => panic!("no role {kind}"),
        };
        let mut node = Node::new(roles, Vec::new());
        let address: InterfaceAddress = address.parse().unwrap();
        node.add_address(Instant::ZERO, Iface(1), address);
        let action = Action::Forward(Hop::mac(Iface(names.len() as u16), PEOPLE[1].1));
        let key = RouteKey { class: None, src: Prefix::ANY, dst: Prefix::ANY };
        node.set_route(Instant::ZERO, key, Route::new(action, Lifetime::Permanent));
        (node, names)
    }

    fn step(teller: &mut Teller<Self>, words: &[&str]) {
        match *words {
            ["gateway", router] => {
                let args = [("router".to_owned(), Value::from(router_of(router).to_string()))];
                let args = Value::Map(args.into_iter().collect());
                let command = node::Command { verb: "gateway".to_owned(), args };
                teller.give(Input::Command(CommandId(1), &command));
            }
            ["program", ref what @ ..] => program(teller, what),
            ["host", "greets", ref args @ ..] => greets(teller, &Args::new(args)),
            ["host", "calls", ref args @ ..] => calls(teller, &Args::new(args)),
            ["right", "points", ref args @ ..] => {
                let args = Args::new(args);
                let greeting = Signed::new(greeting(RIGHT, &args, LEFT), &host_key(args.has("unmeant")));
                let pointer = ForwardPointer { new: RIGHT, old: LEFT, greeting };
                let payload = Signed::new(pointer, &router_key(args.has("forged"))).emit();
                teller.receive("up", datagram(RIGHT, LEFT, PEOPLE[1].1, &payload));
            }
            ["right", "heard", ref args @ ..] => {
                let sequence = sequence(&Args::new(args), 5);
                let reply = ForwardReply { old: RIGHT, host: HOST, sequence, connections: 1 };
                let payload = Signed::new(reply, &router_key(false)).emit();
                teller.receive("up", datagram(RIGHT, LEFT, PEOPLE[1].1, &payload));
            }
            ["somebody", "connects"] => {
                accepted(teller, "somebody", Addr::new(HOST, 40_000));
            }
            ["right", ref what @ ..] => frames::right(teller, what),
            ["segment", "far"] => {
                let bytes = names::segment(Addr::new(FIXED, SERVICE), Addr::new(HOST, HOST_PORT));
                let mut packet = Packet::new(Mac::ZERO, bytes);
                packet.link.src = PEOPLE[1].1;
                teller.receive("up", packet);
            }
            ["left", ref what @ ..] => left(teller, what),
            [half @ ("near" | "far" | "router"), ref what @ ..] => happens(teller, half, what),
            _ => panic!("no step {words:?}"),
        }
    }

    fn packet(&self, packet: &Packet) -> String {
        names::packet_name(packet)
    }

    fn neighbor(&self, mac: Mac) -> Option<&'static str> {
        PEOPLE.iter().find(|(_, other)| *other == mac).map(|(name, _)| *name)
    }

    fn class(&self, _class: Class) -> Option<&'static str> {
        None
    }

    fn stream(&self, id: StreamId, op: &StreamOp) -> String {
        let name = self.streams.get(&id).copied().unwrap_or_else(|| names::purpose(op));
        match op {
            StreamOp::Migrate(MigrateOp::Join(other, [up, down])) => {
                let other = self.streams.get(other).copied().unwrap_or("?");
                format!("{name}: relay with {other}, {} and {} bytes ahead", up.len(), down.len())
            }
            op => names::operation(name, op),
        }
    }

    fn served(&self, told: &OwnedStreamEvent) -> String {
        names::told(told)
    }

    fn heed(&mut self, packet: &Packet) {
        if let Some(Datagram::Greeting(greeting)) = names::itcp(packet) {
            self.greeting = Some(greeting.message);
        }
    }

    fn heed_stream(&mut self, id: StreamId, op: &StreamOp) {
        match op {
            StreamOp::Listen { .. } => self.listener = Some(id),
            StreamOp::Open { .. } | StreamOp::Migrate(MigrateOp::Import(_)) => {
                self.streams.insert(id, names::purpose(op));
            }
            StreamOp::Write(bytes) => {
                if let Ok(call) = Signed::<Call>::parse(bytes) {
                    self.call = Some(call.message);
                }
                if let Some(right) = self.right.as_mut().filter(|_| self.streams.get(&id) == Some(&"right")) {
                    right.hears(bytes);
                }
            }
            _ => {}
        }
        if matches!(op, StreamOp::Open { .. }) && self.streams.get(&id) == Some(&"right") {
            self.right = Some(Right::called());
        }
    }
}

/// Sequences are nanoseconds of the wall clock. Those of a script count from 1000 s after the start of the routers.
const BEGIN: u64 = crate::transcript::WALL.0.cast_unsigned() + 1_000_000_000_000;

fn sequence(args: &Args<'_>, default: u64) -> u64 {
    BEGIN + args.get("sequence").unwrap_or(default)
}

/// Returns the sequence of the call that opened the connection.
fn call(args: &Args<'_>) -> u64 {
    BEGIN + args.get("call").unwrap_or(6)
}

fn router_of(name: &str) -> Ipv4Addr {
    match name {
        "left" => LEFT,
        "right" => RIGHT,
        other => other.parse().unwrap(),
    }
}

/// Returns the latest stream with the name `name`.
fn named(teller: &Teller<IndirectTcp>, name: &str) -> StreamId {
    let mut streams = teller.cast.streams.iter().rev();
    *streams.find(|(_, other)| **other == name).unwrap_or_else(|| panic!("no stream {name}")).0
}

/// Accepts a new connection from `peer` at the left router. Returns its stream, which the transcript names `name`.
fn accepted(teller: &mut Teller<IndirectTcp>, name: &'static str, peer: Addr) -> StreamId {
    let new = StreamId(StreamId::DRIVER + teller.cast.accepted);
    teller.cast.accepted += 1;
    teller.cast.streams.insert(new, name);
    let local = Addr::new(LEFT, PORT);
    let listener = teller.cast.listener.unwrap();
    teller.give(Input::Stream(listener, StreamEvent::Accepted(new, local, peer)));
    teller.give(Input::Stream(new, StreamEvent::Room(1 << 20)));
    new
}

fn datagram(from: Ipv4Addr, to: Ipv4Addr, mac: Mac, payload: &[u8]) -> Packet {
    let mut packet = Packet::new(Mac::ZERO, udp::packet(Addr::new(from, PORT), Addr::new(to, PORT), payload));
    packet.link.src = mac;
    packet
}

/// Returns the entry of the script's only connection. The call with the sequence `call` opened it at router `at`.
const fn entry(at: Ipv4Addr, call: u64) -> Entry {
    Entry {
        id: ConnectionId { number: 1, call },
        host: Addr::new(HOST, HOST_PORT),
        router: Addr::new(at, PORT),
        peer: Addr::new(FIXED, SERVICE),
        closing: false,
        unanswered: false,
        calling: false,
    }
}

/// Returns a greeting to `router`. `entries=1`: the greeting names a connection that was opened at router `at`.
fn greeting(router: Ipv4Addr, args: &Args<'_>, at: Ipv4Addr) -> Greeting {
    let entry =
        Entry { unanswered: args.has("calling"), calling: args.has("calling"), ..entry(at, call(args)) };
    let entries = if args.get("entries").unwrap_or(0) > 0 { vec![entry] } else { Vec::new() };
    let previous = if router == LEFT { RIGHT } else { LEFT };
    let previous = if args.has("first") { Vec::new() } else { vec![previous] };
    let again = args.has("again");
    Greeting { host: HOST, sequence: sequence(args, 5), router, previous, entries, again, codes: Vec::new() }
}

fn greets(teller: &mut Teller<IndirectTcp>, args: &Args<'_>) {
    let at = if args.has("own") { LEFT } else { RIGHT };
    let payload = Signed::new(greeting(LEFT, args, at), &host_key(args.has("forged"))).emit();
    teller.receive("cell", datagram(HOST, LEFT, PEOPLE[0].1, &payload));
}

fn calls(teller: &mut Teller<IndirectTcp>, args: &Args<'_>) {
    let sequence = sequence(args, 6);
    let peer = Addr::new(FIXED, SERVICE);
    let connection = args.get("connection").unwrap_or(1);
    let call = Call { host: HOST, connection, sequence, router: LEFT, peer };
    let bytes = Signed::new(call, &host_key(args.has("forged"))).emit();
    let id = accepted(teller, "near", Addr::new(HOST, HOST_PORT));
    // The bytes that distinguish a host from a router are read first, then no byte beyond the call.
    let (head, tail) = bytes.split_at(4);
    teller.give(Input::Stream(id, StreamEvent::Data(head)));
    teller.give(Input::Stream(id, StreamEvent::Data(tail)));
}

/// Gives the role an event of a socket.
fn happens(teller: &mut Teller<IndirectTcp>, half: &str, what: &[&str]) {
    let id = named(teller, half);
    let give = |teller: &mut Teller<IndirectTcp>, event: StreamEvent<'_>| {
        teller.give(Input::Stream(id, event));
    };
    match *what {
        ["opened"] => give(teller, StreamEvent::Opened(Addr::new(HOST, HOST_PORT))),
        ["room", bytes] => give(teller, StreamEvent::Room(bytes.parse().unwrap())),
        ["data", bytes] => give(teller, StreamEvent::Data(&vec![7; bytes.parse().unwrap()])),
        ["parted", up, down] => {
            let [up, down] = [up, down].map(|bytes| vec![7; bytes.parse().unwrap()]);
            give(teller, StreamEvent::Migrate(MigrateEvent::Parted([&up, &down])));
        }
        ["exported"] => give(teller, StreamEvent::Migrate(MigrateEvent::Exported(&state(half)))),
        ["imported"] => give(teller, StreamEvent::Migrate(MigrateEvent::Imported)),
        ["refused"] => give(teller, StreamEvent::Migrate(MigrateEvent::Refused("Operation not permitted"))),
        ["not", "joined"] => give(teller, StreamEvent::Migrate(MigrateEvent::Refused(refusal::NOT_JOINED))),
        ["has", "ended"] => {
            give(teller, StreamEvent::Migrate(MigrateEvent::Refused(refusal::NOT_ESTABLISHED)));
        }
        ["closed"] => give(teller, StreamEvent::Closed(None)),
        ["closed", "refused"] => give(teller, StreamEvent::Closed(Some(refusal::REFUSED))),
        ["answers", code, ref args @ ..] => {
            let connection = teller.cast.call.unwrap().connection;
            let code = if code == "connected" { Code::Connected } else { Code::Refused };
            let answer = Answer { connection, code };
            let bytes = Signed::new(answer, &host_key(args.contains(&"forged"))).emit();
            give(teller, StreamEvent::Data(&bytes));
        }
        _ => panic!("no {half} {what:?}"),
    }
}

/// Returns the exported state of a socket: 100 bytes were sent and not acknowledged, 10 received and not read.
fn state(half: &str) -> TcpState {
    let (local, remote) = match half {
        "near" => (entry(LEFT, 0).near().local, entry(LEFT, 0).near().remote),
        _ => (entry(LEFT, 0).far().local, entry(LEFT, 0).far().remote),
    };
    names::established(local, remote)
}

/// Sends a message of the left router to the mobile host.
fn left(teller: &mut Teller<IndirectTcp>, what: &[&str]) {
    let payload = match *what {
        ["welcomes", ref args @ ..] => {
            let args = Args::new(args);
            let Greeting { host, sequence, router, .. } = teller.cast.greeting.clone().unwrap();
            let (sequence, welcome) = match args.get::<u64>("ahead") {
                Some(ahead) => (sequence + ahead, Welcome::Stale),
                None => (sequence, Welcome::Ready),
            };
            let reply = GreetingReply { host, sequence, router, welcome };
            Signed::new(reply, &host_key(args.has("forged"))).emit()
        }
        ["lost"] => {
            let Call { connection: number, sequence: call, .. } = teller.cast.call.unwrap();
            let connections = vec![ConnectionId { number, call }];
            Signed::new(Lost { host: HOST, router: LEFT, connections }, &host_key(false)).emit()
        }
        _ => panic!("no left {what:?}"),
    };
    teller.receive("air", datagram(LEFT, HOST, PEOPLE[1].1, &payload));
}

fn program(teller: &mut Teller<IndirectTcp>, what: &[&str]) {
    let op = match *what {
        ["opens"] => {
            let peer = Addr::new(FIXED, SERVICE);
            StreamOp::Open { by: TRANSPORT, local: None, peer, foreign: false }
        }
        ["reads"] => StreamOp::Read(65_536),
        ["writes", bytes] => StreamOp::Write(vec![7; bytes.parse().unwrap()]),
        ["finishes"] => StreamOp::Finish,
        ["aborts"] => StreamOp::Abort,
        _ => panic!("no program {what:?}"),
    };
    teller.give(Input::Serve(PROGRAM, op));
}
