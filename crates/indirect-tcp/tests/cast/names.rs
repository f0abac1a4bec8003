//! The text of messages and stream operations in transcripts.

use super::frames::is_right;
use super::{FIXED, HOST};
use indirect_tcp::message::{Answer, Body, Call, Datagram, Frame, Halves, Signed};
use node::stream::OwnedStreamEvent;
use node::{Addr, Guard, MigrateOp, SocketOption, StreamOp};
use std::collections::BTreeMap;
use wire::ipv4::{Header, ICMP};
use wire::{Packet, Seq, TcpState, udp};

/// The number of TCP in the header of IP.
const TCP: u8 = 6;
/// The length of a frame's code, in bytes.
const CODE: usize = 16;

/// The `name=text` arguments of a step.
pub(super) struct Args<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Args<'a> {
    pub(super) fn new(words: &[&'a str]) -> Self {
        Self(words.iter().map(|word| word.split_once('=').unwrap_or((word, ""))).collect())
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(super) fn get<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.0.get(name).map(|text| text.parse().ok().unwrap())
    }
}

/// Returns an established connection: 100 bytes were sent and not acknowledged, 10 received and not read.
pub(super) fn established(local: Addr, remote: Addr) -> TcpState {
    TcpState {
        send_next: Seq(1100),
        unacknowledged: vec![7; 100],
        unread: vec![7; 10],
        ..crate::tcp::established(local, remote)
    }
}

/// Returns a segment without data between two ends.
pub(super) fn segment(from: Addr, to: Addr) -> Vec<u8> {
    let mut tcp = Vec::new();
    tcp.extend(from.port().to_be_bytes());
    tcp.extend(to.port().to_be_bytes());
    tcp.extend([0; 8]);
    tcp.extend([0x50, 0x10, 0x40, 0, 0, 0, 0, 0]);
    Header::new(TCP, *from.ip(), *to.ip()).emit(&tcp)
}

/// Returns the name of a stream, by its first operation.
pub(super) fn purpose(op: &StreamOp) -> &'static str {
    match op {
        StreamOp::Open { peer, .. } if *peer.ip() == FIXED => "far",
        StreamOp::Open { peer, .. } if is_right(*peer) => "right",
        StreamOp::Open { .. } => "router",
        StreamOp::Migrate(MigrateOp::Import(state)) if *state.remote.ip() == HOST => "near",
        StreamOp::Migrate(MigrateOp::Import(_)) => "far",
        _ => "tcp",
    }
}

/// Returns an operation on a stream as text.
pub(super) fn operation(name: &str, op: &StreamOp) -> String {
    let said = match op {
        StreamOp::Open { local, peer, foreign, .. } => {
            let from = local.map_or(String::new(), |local| format!(" from {local}"));
            let foreign = if *foreign { ", which is not ours" } else { "" };
            format!("connect{from}{foreign} to {peer}")
        }
        StreamOp::Listen { local, .. } => format!("listen at {local}"),
        StreamOp::Read(most) => format!("read {most}"),
        StreamOp::Write(bytes) => written(bytes),
        StreamOp::Finish => "finish".to_owned(),
        StreamOp::Abort => "abort".to_owned(),
        StreamOp::Migrate(MigrateOp::Freeze) => "freeze".to_owned(),
        StreamOp::Migrate(MigrateOp::Export) => "export".to_owned(),
        StreamOp::Migrate(MigrateOp::Import(state)) => {
            format!("import, {} bytes to send, {} to read", state.unacknowledged.len(), state.unread.len())
        }
        StreamOp::Migrate(MigrateOp::Thaw) => "thaw".to_owned(),
        StreamOp::Migrate(MigrateOp::Forget) => "forget".to_owned(),
        StreamOp::Migrate(MigrateOp::Part) => "part".to_owned(),
        StreamOp::Migrate(MigrateOp::Guard(tuple, guard)) => {
            let guard = match guard {
                Some(Guard::Drop) => "drop".to_owned(),
                Some(Guard::Hold(most)) => format!("hold {most}"),
                Some(Guard::Reset) => "reset".to_owned(),
                None => "lifted".to_owned(),
            };
            return format!("guard of {} < {}: {guard}", tuple.local, tuple.remote);
        }
        StreamOp::Migrate(MigrateOp::Join(..)) => "relay".to_owned(),
        StreamOp::Set(SocketOption::Nagle(on)) => format!("nagle {}", if *on { "on" } else { "off" }),
        StreamOp::Set(SocketOption::DontFragment(on)) => {
            format!("do not fragment {}", if *on { "on" } else { "off" })
        }
        StreamOp::Set(SocketOption::SendBuffer(bytes)) => format!("send buffer {bytes}"),
        StreamOp::Set(SocketOption::ReceiveBuffer(bytes)) => format!("receive buffer {bytes}"),
    };
    format!("{name}: {said}")
}

fn written(bytes: &[u8]) -> String {
    if let Ok(call) = Signed::<Call>::parse(bytes) {
        return format!("call for {}", call.message.peer);
    }
    if let Ok(answer) = Signed::<Answer>::parse(bytes) {
        return format!("answer, {:?}", answer.message.code);
    }
    match bytes.split_last_chunk::<CODE>().map(|(front, _)| Frame::parse(front)) {
        Some(Ok(frame)) => body(&frame.body),
        _ => format!("{} bytes", bytes.len()),
    }
}

fn body(body: &Body) -> String {
    match body {
        Body::Hello { .. } => "HELLO".to_owned(),
        Body::Offer { host, connections, .. } => format!("OFFER {connections} of {host}"),
        Body::OfferAnswer(verdict) => format!("OFFER ANSWER {verdict:?}"),
        Body::Entry(entry, attempt) => format!("ENTRY {} attempt {attempt}", entry.id.number),
        Body::State(state) => format!("STATE {:?}", state.side),
        Body::UserBuffer(way, bytes) => format!("USER BUFFER {way:?}, {} bytes", bytes.len()),
        Body::Commit { number, attempt, halves } => {
            let halves = match halves {
                Halves { near: true, far: true } => "",
                Halves { near: true, .. } => ", near half",
                Halves { far: true, .. } => ", far half",
                Halves { .. } => ", no half",
            };
            format!("COMMIT {number} attempt {attempt}{halves}")
        }
        Body::CommitAnswer { connection, attempt, verdict, .. } => {
            format!("COMMIT ANSWER {} attempt {attempt} {verdict:?}", connection.number)
        }
        Body::Done => "DONE".to_owned(),
        Body::DoneAnswer => "DONE ANSWER".to_owned(),
        Body::Abort { connection } => format!("ABORT {}", connection.number),
        Body::Status { connection, attempt, .. } => {
            format!("STATUS {} attempt {attempt}?", connection.number)
        }
    }
}

/// Returns an event that a program gets, as text.
pub(super) fn told(told: &OwnedStreamEvent) -> String {
    let said = match told {
        OwnedStreamEvent::Opened(_, at) => format!("it is open, from {at}"),
        OwnedStreamEvent::Room(_, bytes) => format!("room for {bytes} bytes"),
        OwnedStreamEvent::Data(_, _, bytes) => format!("{} bytes", bytes.len()),
        OwnedStreamEvent::Finished(_) => "the peer has finished".to_owned(),
        OwnedStreamEvent::Closed(_, why) => format!("closed, {}", why.as_deref().unwrap_or("as asked")),
        told => format!("{told:?}"),
    };
    format!("tell the program: {said}")
}

/// Returns the message of Indirect TCP in a packet, or `None` if there is none.
pub(super) fn itcp(packet: &Packet) -> Option<Datagram> {
    let (ip, payload) = Header::parse(&packet.bytes).ok()?;
    let datagram = udp::Datagram::parse(payload, ip.src, ip.dst).ok()?;
    Datagram::parse(datagram.payload).ok()
}

/// Returns a packet as text.
pub(super) fn packet_name(packet: &Packet) -> String {
    let (ip, _) = Header::parse(&packet.bytes).unwrap();
    match itcp(packet) {
        Some(Datagram::Greeting(it)) => {
            let (entries, before) = (it.message.entries.len(), it.message.previous.len());
            let again = if it.message.again { " again" } else { "" };
            format!(
                "greeting{again} to {}, {entries} connections, {before} earlier routers",
                it.message.router
            )
        }
        Some(Datagram::GreetingReply(it)) => format!("greeting reply, {:?}", it.message.welcome),
        Some(Datagram::ForwardPointer(it)) => {
            format!("forward pointer: {} is at {}", it.message.greeting.message.host, it.message.new)
        }
        Some(Datagram::ForwardReply(it)) => format!("forward reply, {} connections", it.message.connections),
        Some(Datagram::Lost(it)) => {
            let numbers: Vec<u32> = it.message.connections.iter().map(|id| id.number).collect();
            format!("lost: {numbers:?}")
        }
        None if ip.protocol == ICMP => format!("report to {} of a segment that found no path", ip.dst),
        None => format!("segment {} > {}", ip.src, ip.dst),
    }
}
