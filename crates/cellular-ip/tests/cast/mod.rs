//! The part of a transcript that only Cellular IP has: its hosts, messages and steps.

use crate::common::{CORRESPONDENT, GATEWAY, HOST, configured, key_of, neighbor, signed, station, update};
use crate::transcript::{Cast, Teller, WALL};
use cellular_ip::config::MobileConfig;
use cellular_ip::message::RouteUpdate;
use cellular_ip::update_request::{self, UpdateRequest};
use cellular_ip::{Gateway, Mobile, Station};
use node::config::Interfaces;
use node::{Class, Command, CommandId, Input, Link, Node, Rng, Role, Value};
use std::collections::BTreeSet;
use wire::icmp;
use wire::ipv4::{self, Header};
use wire::{Cell, EtherType, Frame, Iface, Ipv4Addr, Mac, Packet, SocketAddrV4, WallTime, udp};

const MOBILE: &str = r#"
    address = "10.1.0.7"
    gateway = "10.1.0.1"
    interface = "air"
    r_mh = "0102030405060708"
    stations = [
        { name = "b2", id = 2, cell = 2, mac = "02:00:00:00:00:b2" },
        { name = "b3", id = 3, cell = 3, mac = "02:00:00:00:00:b3" },
    ]
"#;

/// The codepoint of expedited forwarding, at its position in the TOS byte.
const EF: u8 = 46 << 2;

/// The state of one transcript.
#[derive(Default)]
pub(crate) struct CellularIp {
    interfaces: &'static [&'static str],
    /// The number of data packets so far. Each packet contains its number.
    data: u64,
    /// The newest timestamp that a mobile host has sent.
    newest: u64,
    /// All timestamps that a mobile host has sent.
    stamps: BTreeSet<u64>,
    /// Whether the role's clock was set. If so, the role may sign by two clocks.
    two_clocks: bool,
}

impl Cast for CellularIp {
    fn node(&mut self, kind: &str, changes: &str) -> (Node, &'static [&'static str]) {
        let wired = &["up", "left", "right", "air"];
        let (role, addresses, interfaces): (Box<dyn Role>, _, &[_]) = match kind {
            "station" => (Box::new(station(Station::new, changes)), Vec::new(), wired),
            "gateway" => (Box::new(station(Gateway::new, changes)), vec![GATEWAY], wired),
            "mobile" => (Box::new(mobile(changes)), vec![HOST], &["air"]),
            _ => panic!("no role {kind}"),
        };
        self.interfaces = interfaces;
        (Node::new(vec![role], addresses), interfaces)
    }

    /// Returns whether an interface is up from the start: those of a station are, but the radio of a mobile host is
    /// not.
    fn comes_up(&self, _interface: &str) -> bool {
        self.interfaces.len() > 1
    }

    fn step(teller: &mut Teller<Self>, words: &[&str]) {
        match *words {
            ["update", leg, ref flags @ ..] => {
                let bytes = signed(update(teller.now, flags == ["S"]));
                receive(teller, leg, bytes);
            }
            ["data", leg] => datagram(teller, leg, HOST, CORRESPONDENT, 0),
            ["down"] => datagram(teller, "up", CORRESPONDENT, HOST, 0),
            ["down", "ef"] => datagram(teller, "up", CORRESPONDENT, HOST, EF),
            ["hear"] => datagram(teller, "air", CORRESPONDENT, HOST, 0),
            ["send"] => datagram(teller, "host", HOST, CORRESPONDENT, 0),
            ["request", ref of @ ..] => {
                let (why, node) = (update_request::Why::NoMapping, 2);
                let gateway = if of.is_empty() { GATEWAY } else { CORRESPONDENT };
                let request = UpdateRequest { gateway, mobile: HOST, why, node, key_generation: 1 };
                receive(teller, "air", request.emit());
            }
            ["too-big", ref whose @ ..] => {
                let from = if *whose == ["another's"] { GATEWAY } else { HOST };
                let ends = [from, CORRESPONDENT].map(|address| SocketAddrV4::new(address, 9000));
                let data = udp::packet(ends[0], ends[1], &[0; 1200]);
                let body = [&[0, 0, 4, 0xa9], &data[..28]].concat(); // 1193 bytes would fit
                let error = icmp::Message { kind: 3, code: 4, body: &body }.emit();
                receive(teller, "air", Header::new(ipv4::ICMP, GATEWAY, HOST).emit(&error));
            }
            ["link", "up", cell] => teller.link_up("air", Some(Cell(cell.parse().unwrap()))),
            ["link", "down", ref why @ ..] => {
                teller.give(Input::Link(Iface(1), Link::Down(&why.join(" "))));
            }
            ["heard", cell, strength] => {
                let (cell, strength) = (Cell(cell.parse().unwrap()), strength.parse().unwrap());
                teller.give(Input::Link(Iface(1), Link::Heard(cell, strength)));
            }
            ["clock", seconds] => {
                let step: i64 = seconds.parse().unwrap();
                teller.cast.two_clocks = true;
                teller.give(Input::Wall(WallTime(WALL.0 + step * 1_000_000_000)));
            }
            ["handoff", to, kind] => {
                let args = Value::map([("to", Value::from(to)), ("kind", Value::from(kind))]);
                let command = Command { verb: "handoff".to_owned(), args };
                teller.give(Input::Command(CommandId(1), &command));
            }
            _ => panic!("no step {words:?}"),
        }
    }

    fn packet(&self, packet: &Packet) -> String {
        if let Some(update) = route_update(packet) {
            let station = update.serving_bs.unwrap_or_default();
            return format!("route-update S={} for bs {station}", u8::from(update.semisoft));
        }
        match number(packet) {
            Some((tos, number)) => format!("{}data {number}", if tos == EF { "EF " } else { "" }),
            None => "something else".to_owned(),
        }
    }

    /// Returns the name of a neighbor. The link address of a neighbor by wire ends with the number of the interface.
    /// The link address of a station ends with the station's name as a hexadecimal number.
    fn neighbor(&self, mac: Mac) -> Option<&'static str> {
        match mac.0 {
            [2, 0, 0, 0, 0, 0xb2] => Some("b2"),
            [2, 0, 0, 0, 0, 0xb3] => Some("b3"),
            [2, 0, 0, 0, 0, 0xb4] => Some("b4"),
            [2, 0, 0, 0, 0, last] => self.interfaces.get(usize::from(last).checked_sub(1)?).copied(),
            _ => None,
        }
    }

    fn class(&self, class: Class) -> Option<&'static str> {
        match class {
            Class(1) => Some("incoming"),
            Class(16) => Some("upward"),
            Class(17) => Some("downward"),
            _ => None,
        }
    }

    /// Asserts that a mobile host's timestamps increase. After the clock was set, it only asserts that they differ.
    /// Otherwise, nodes would refuse route-updates of the host.
    fn heed(&mut self, packet: &Packet) {
        if let (["air"], Some(update)) = (self.interfaces, route_update(packet)) {
            assert!(self.stamps.insert(update.timestamp), "{packet:?}");
            assert!(update.timestamp > self.newest || self.two_clocks, "{packet:?}");
            self.newest = update.timestamp;
        }
    }
}

fn mobile(changes: &str) -> Mobile {
    let key = key_of(HOST);
    let key = key.as_bytes().iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
    let config: MobileConfig = configured(MOBILE, &format!("session_key = \"{key}\"\n{changes}"));
    Mobile::new(config, Interfaces(&["air".to_owned()]), Rng::new(1)).unwrap()
}

fn datagram(teller: &mut Teller<CellularIp>, from: &str, src: Ipv4Addr, dst: Ipv4Addr, tos: u8) {
    teller.cast.data += 1;
    let ends = [src, dst].map(|address| SocketAddrV4::new(address, 9000));
    let plain = udp::packet(ends[0], ends[1], &teller.cast.data.to_be_bytes());
    let (header, payload) = Header::parse(&plain).unwrap();
    receive(teller, from, Header { tos, ..header }.emit(payload));
}

fn receive(teller: &mut Teller<CellularIp>, from: &str, bytes: Vec<u8>) {
    let src = neighbor(teller.iface(from).0);
    let link = Frame { kind: EtherType::IPV4, src, dst: Mac::ZERO };
    teller.receive(from, Packet { link, ..Packet::new(Mac::ZERO, bytes) });
}

/// Returns the route-update in a packet; `None` if it is another packet.
fn route_update(packet: &Packet) -> Option<RouteUpdate> {
    let (ip, icmp) = Header::parse(&packet.bytes).ok()?;
    RouteUpdate::parse(&ip, icmp).ok()
}

/// Returns the TOS byte and the number of a datagram that a script sent; `None` for other packets.
fn number(packet: &Packet) -> Option<(u8, u64)> {
    let (ip, payload) = Header::parse(&packet.bytes).ok()?;
    let datagram = udp::Datagram::parse(payload, ip.src, ip.dst).ok().filter(|_| ip.protocol == ipv4::UDP)?;
    Some((ip.tos, u64::from_be_bytes(datagram.payload.try_into().ok()?)))
}
