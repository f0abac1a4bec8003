//! The hosts in the transcripts: a mobile node with two radios, its correspondent, its location manager, and a host
//! without the key. Except for the location manager, the addresses are those of Table I of the SIGMA report.

mod names;
mod peer;

use crate::transcript::{Cast, Teller, own};
use names::{Args, NETWORKS};
use node::config::Interfaces;
use node::stream::OwnedStreamEvent;
use node::{
    Action, Addr, Class, FailedAct, Fault, Hop, Input, InterfaceAddress, Lifetime, Node, Rng, Role, RoleId,
    Route, RouteKey, StreamEvent, StreamId, StreamOp, Transport,
};
use peer::Peer;
use serde::de::DeserializeOwned;
use sigma::message::PORT;
use sigma::{Correspondent, LocationManager, MobileNode};
use std::collections::{BTreeMap, VecDeque};
use wire::{Iface, Instant, Ipv4Addr, Mac, Packet, Prefix, ipv4};

const OLD: Ipv4Addr = Ipv4Addr::new(10, 1, 8, 100);
const NEW: Ipv4Addr = Ipv4Addr::new(10, 1, 6, 100);
const CORRESPONDENT: Ipv4Addr = Ipv4Addr::new(129, 15, 78, 150);
const MANAGER: Ipv4Addr = Ipv4Addr::new(129, 15, 78, 177);
const ROUTER: Mac = Mac([2, 0, 0, 0, 0, 9]);
/// The port of the correspondent's program.
const SERVICE: u16 = 9000;

const MOBILE_NODE_CONFIG: &str = r#"
    radios = ["air", "air2"]
    signal = { hold = "250ms" }
    sctp = { rto_min = "200ms" }
    networks = [
        { name = "gateway1", cell = 1, address = "10.1.8.100/24", router = "10.1.8.1" },
        { name = "gateway2", cell = 2, address = "10.1.6.100/24", router = "10.1.6.1" },
    ]
    [location_manager]
    address = "129.15.78.177"
    zone = "sigma.example"
    name = "mn.sigma.example"
    key = "000102030405060708090a0b0c0d0e0f"
"#;
const CORRESPONDENT_CONFIG: &str = r#"
    address = "129.15.78.150"
    sctp = { rto_min = "200ms" }
"#;
const LOCATION_MANAGER_CONFIG: &str = r#"
    address = "129.15.78.177"
    zone = "sigma.example"
    lifetime = "60s"
    updates = 3
    mobile_nodes = [
        { name = "mn.sigma.example", key = "000102030405060708090a0b0c0d0e0f" },
        { name = "other.sigma.example", key = "0f0e0d0c0b0a09080706050403020100" },
    ]
"#;

/// The stream of the program that the steps `program ...` of a script control.
const PROGRAM: StreamId = StreamId(StreamId::OUTSIDE);
const SCTP: Transport = Transport::Role("sctp");

#[derive(Default)]
pub(crate) struct Sigma {
    /// The other end of the association.
    peer: Option<Peer>,
    /// Packets that the node has sent and the peer has not received.
    sent: VecDeque<Packet>,
    /// The radio that has each address of the node, as its ARP requests show.
    radios: BTreeMap<Ipv4Addr, &'static str>,
    /// The UDP stream that the role opened last, or the stream of its listener.
    stream: Option<StreamId>,
    /// The last DNS message that the node sent.
    said: Vec<u8>,
    /// The last update that a step `update` made, for the step `again`.
    update: Vec<u8>,
    /// The number of streams that the driver has accepted for the location manager.
    accepted: u32,
    /// The stream of the accepted association if the program listens; `None` otherwise.
    program: Option<StreamId>,
}

fn configured<T: DeserializeOwned>(base: &str, changes: &str) -> T {
    let mut table: toml::Table = base.parse().unwrap();
    table.extend(changes.parse::<toml::Table>().unwrap());
    toml::Value::Table(table).try_into().unwrap()
}

impl Cast for Sigma {
    fn node(&mut self, kind: &str, changes: &str) -> (Node, &'static [&'static str]) {
        *self = Self { update: std::mem::take(&mut self.update), ..Self::default() };
        let rng = Rng::new(1);
        let (names, address): (&'static [&'static str], _) = match kind {
            "mobile-node" => (&["air", "air2"], None),
            "correspondent" => (&["up"], Some("129.15.78.150/30")),
            _ => (&["up"], Some("129.15.78.177/30")),
        };
        let owned: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let role: Box<dyn Role> = match kind {
            "mobile-node" => {
                self.peer = Some(Peer::correspondent());
                let config = configured(MOBILE_NODE_CONFIG, changes);
                Box::new(MobileNode::new(config, Interfaces(&owned), &rng).unwrap())
            }
            "correspondent" => {
                self.peer = Some(Peer::mobile_node());
                Box::new(Correspondent::new(&configured(CORRESPONDENT_CONFIG, changes), &rng).unwrap())
            }
            "location-manager" => {
                Box::new(LocationManager::new(configured(LOCATION_MANAGER_CONFIG, changes)).unwrap())
            }
            _ => panic!("no role {kind}"),
        };
        let mut node = Node::new(vec![role], Vec::new());
        if let Some(address) = address {
            let address: InterfaceAddress = address.parse().unwrap();
            node.add_address(Instant::ZERO, Iface(1), address);
            let action = Action::Forward(Hop::mac(Iface(1), ROUTER));
            let key = RouteKey { class: None, src: Prefix::ANY, dst: Prefix::ANY };
            node.set_route(Instant::ZERO, key, Route::new(action, Lifetime::Permanent));
        }
        (node, names)
    }

    fn step(teller: &mut Teller<Self>, words: &[&str]) {
        match *words {
            ["peer", ref what @ ..] => peer_says(teller, what, true),
            ["stranger", ref what @ ..] => peer_says(teller, what, false),
            ["unheard"] => {
                let now = teller.now;
                let mut peer = handed_over(teller);
                peer.act(now, &[]);
                drop(peer.says(now, true));
                teller.cast.peer = Some(peer);
            }
            ["program", ref what @ ..] => program(teller, what),
            ["manager", "opened"] => {
                let stream = teller.cast.stream.unwrap();
                let local = Addr::new(OLD, 50_000);
                teller.give(Input::Stream(stream, StreamEvent::Opened(local)));
            }
            ["manager", "located", address] => {
                let bytes = names::located(&teller.cast.said, address.parse().unwrap());
                teller.give(Input::Stream(teller.cast.stream.unwrap(), StreamEvent::Data(&bytes)));
            }
            ["host", done, radio, address] => {
                let iface = Iface(if radio == "air" { 1 } else { 2 });
                let act = FailedAct::Address(iface, address.parse().unwrap(), done == "refuses");
                let fault = Fault { role: RoleId(0), act, why: "EPERM".to_owned() };
                teller.give(Input::Failed(&fault));
            }
            ["manager", answer, ref args @ ..] => {
                let (stream, seconds) = (teller.cast.stream.unwrap(), names::seconds(teller.now));
                let bytes = names::answer(&teller.cast.said, answer, &Args::new(args), seconds);
                teller.give(Input::Stream(stream, StreamEvent::Data(&bytes)));
            }
            ["again"] => {
                let bytes = teller.cast.update.clone();
                comes(teller, &bytes);
            }
            ["update", name, ref args @ ..] => {
                let bytes = names::update(name, &Args::new(args), names::seconds(teller.now));
                teller.cast.update.clone_from(&bytes);
                comes(teller, &bytes);
            }
            ["query", name] => {
                let bytes = names::query(name);
                comes(teller, &bytes);
            }
            _ => panic!("no step {words:?}"),
        }
    }

    fn packet(&self, packet: &Packet) -> String {
        peer::packet_name(packet)
    }

    fn neighbor(&self, mac: Mac) -> Option<&'static str> {
        let of = NETWORKS.iter().find(|network| network.router == mac).map(|network| network.name);
        of.or_else(|| (mac == ROUTER).then_some("router"))
    }

    fn class(&self, _class: Class) -> Option<&'static str> {
        None
    }

    fn stream(&self, _id: StreamId, op: &StreamOp) -> String {
        match op {
            StreamOp::Open { local, peer, .. } => {
                let from = local.map_or(String::new(), |local| format!(" from {}", local.ip()));
                format!("udp{from} to {peer}")
            }
            StreamOp::Listen { local, .. } => format!("udp at {local}"),
            StreamOp::Read(_) => "udp: read".to_owned(),
            StreamOp::Write(bytes) => format!("udp: {}", names::message_name(bytes)),
            StreamOp::Finish => "udp: done".to_owned(),
            op => format!("udp: {op:?}"),
        }
    }

    fn served(&self, told: &OwnedStreamEvent) -> String {
        let said = match told {
            OwnedStreamEvent::Opened(..) => "it is open".to_owned(),
            OwnedStreamEvent::Room(_, bytes) => format!("room for {bytes} bytes"),
            OwnedStreamEvent::Accepted { peer, .. } => format!("accepted from {}", peer.ip()),
            OwnedStreamEvent::Data(_, _, bytes) => format!("{} bytes", bytes.len()),
            OwnedStreamEvent::Finished(_) => "the peer has finished".to_owned(),
            OwnedStreamEvent::Closed(_, why) => format!("closed, {}", why.as_deref().unwrap_or("as asked")),
            told @ OwnedStreamEvent::Migrate(..) => format!("{told:?}"),
        };
        format!("tell the program: {said}")
    }

    fn heed(&mut self, packet: &Packet) {
        self.sent.push_back(packet.clone());
    }

    fn heed_stream(&mut self, id: StreamId, op: &StreamOp) {
        match op {
            StreamOp::Open { .. } | StreamOp::Listen { .. } => self.stream = Some(id),
            StreamOp::Write(bytes) => self.said.clone_from(bytes),
            _ => {}
        }
    }
}

/// Delivers the packets that the node has sent to the peer, and returns the peer. Routers answer ARP requests; packets
/// that waited for such an answer are delivered too.
fn handed_over(teller: &mut Teller<Sigma>) -> Peer {
    let now = teller.now;
    let mut peer = teller.cast.peer.take().unwrap();
    while let Some(packet) = teller.cast.sent.pop_front() {
        match peer::arp_answer(&packet) {
            Some((asked, answer)) => {
                teller.cast.radios.insert(asked, radio(&packet));
                teller.receive(radio(&packet), answer);
            }
            None => peer.take(now, &packet),
        }
    }
    peer
}

/// Executes a step of the peer, and delivers the packets of the peer to the node.
fn peer_says(teller: &mut Teller<Sigma>, what: &[&str], authentic: bool) {
    let now = teller.now;
    let mut peer = handed_over(teller);
    peer.act(now, what);
    let says = peer.says(now, authentic);
    teller.cast.peer = Some(peer);
    for packet in says {
        let to = ipv4::addresses(&packet.bytes).map(|(_, to)| to).unwrap();
        // An address from which the node has sent no ARP request yet is that of the second radio.
        let iface = match to {
            CORRESPONDENT => "up",
            to => teller.cast.radios.get(&to).copied().unwrap_or("air2"),
        };
        teller.receive(iface, packet);
    }
}

/// Returns the name of the radio that sent a packet, by the link address of the packet.
fn radio(packet: &Packet) -> &'static str {
    if packet.link.src == own(Iface(1)) { "air" } else { "air2" }
}

fn program(teller: &mut Teller<Sigma>, what: &[&str]) {
    let op = match *what {
        ["opens"] => {
            let peer = Addr::new(CORRESPONDENT, SERVICE);
            StreamOp::Open { by: SCTP, local: None, peer, foreign: false }
        }
        ["listens"] => {
            StreamOp::Listen { by: SCTP, local: Addr::new(CORRESPONDENT, SERVICE), foreign: false }
        }
        ["reads"] => StreamOp::Read(65_536),
        ["writes", bytes] => StreamOp::Write(vec![7; bytes.parse().unwrap()]),
        ["finishes"] => StreamOp::Finish,
        _ => panic!("no step {what:?}"),
    };
    // The role gives the first accepted association this stream number.
    let accepted = StreamId(StreamId::SERVED);
    let id = match (&op, teller.cast.program) {
        (StreamOp::Listen { .. }, _) => {
            teller.cast.program = Some(accepted);
            PROGRAM
        }
        (_, program) => program.unwrap_or(PROGRAM),
    };
    teller.give(Input::Serve(id, op));
}

/// Delivers a message to the location manager, on a separate stream.
fn comes(teller: &mut Teller<Sigma>, bytes: &[u8]) {
    let listener = teller.cast.stream.unwrap();
    let new = StreamId(StreamId::DRIVER + teller.cast.accepted);
    teller.cast.accepted += 1;
    let (here, there) = (Addr::new(MANAGER, PORT), Addr::new(OLD, 50_000));
    teller.give(Input::Stream(listener, StreamEvent::Accepted(new, here, there)));
    teller.give(Input::Stream(new, StreamEvent::Data(bytes)));
}
