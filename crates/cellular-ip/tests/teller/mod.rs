//! Reads a script, plays it to a node with one role, and writes down the node's effects.

mod words;

use crate::common::{
    CORRESPONDENT, GATEWAY, HOST, WALL, configured, key_of, neighbor, signed, station, update,
};
use cellular_ip::config::MobileConfig;
use cellular_ip::update_request::{self, UpdateRequest};
use cellular_ip::{Gateway, Mobile, Station};
use node::config::{Interfaces, parse_span};
use node::{Act, Boot, Command, CommandId, Input, Link, Node, Outbox, Rng, Role, Value};
use std::collections::BTreeSet;
use std::fmt::Write;
use wire::icmp;
use wire::ipv4::{self, Header};
use wire::{Cell, EtherType, Frame, Iface, Instant, Ipv4Addr, Mac, Packet, PacketId, WallTime, udp};

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

/// The state while one transcript is written.
pub(crate) struct Teller {
    text: String,
    /// The kind of the role.
    kind: String,
    /// Changes to the role's configuration, written as in a file.
    changes: String,
    node: Option<Node>,
    interfaces: &'static [&'static str],
    out: Outbox,
    now: Instant,
    /// Number of effects so far.
    effects: u32,
    /// Number of data packets so far.
    data: u64,
    /// The newest timestamp that the role has sent, and all of them.
    newest: u64,
    stamps: BTreeSet<u64>,
    /// The role's clock was set, so it may sign by two clocks.
    two_clocks: bool,
}

impl Teller {
    /// Returns the script with the role's present answers in place of those that it contains.
    pub(crate) fn tell(script: &str) -> String {
        let mut teller = Self {
            text: String::new(),
            kind: String::new(),
            changes: String::new(),
            node: None,
            interfaces: &[],
            out: Outbox::default(),
            now: Instant::ZERO,
            effects: 0,
            data: 0,
            newest: 0,
            stamps: BTreeSet::new(),
            two_clocks: false,
        };
        for line in script.lines().filter(|line| !line.starts_with(' ')) {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                [] | ["#", ..] => teller.copy(line),
                ["with", ..] => {
                    teller.changes.push_str(line.trim_start_matches("with"));
                    teller.changes.push('\n');
                    teller.copy(line);
                }
                ["role", kind] => {
                    (*kind).clone_into(&mut teller.kind);
                    teller.changes.clear();
                    teller.copy(line);
                }
                [at, step @ ..] => {
                    let at = Instant::ZERO + parse_span(at).unwrap_or_else(|| panic!("no time: {line}"));
                    teller.run_to(at);
                    teller.copy(line);
                    teller.step(step);
                }
            }
        }
        teller.text
    }

    fn copy(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Creates the role with the present configuration.
    fn begin(&mut self) {
        let kind = self.kind.as_str();
        let role: Box<dyn Role> = match kind {
            "station" => Box::new(station(Station::new, &self.changes)),
            "gateway" => Box::new(station(Gateway::new, &self.changes)),
            "mobile" => {
                let key: String = key_of(HOST)
                    .as_bytes()
                    .iter()
                    .fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
                let changes = format!("session_key = \"{key}\"\n{}", self.changes);
                let config: MobileConfig = configured(MOBILE, &changes);
                Box::new(Mobile::new(config, Interfaces(&["air".to_owned()]), Rng::new(1)).unwrap())
            }
            _ => panic!("no role {kind}"),
        };
        self.interfaces = if kind == "mobile" { &["air"] } else { &["up", "left", "right", "air"] };
        let addresses = match kind {
            "mobile" => vec![HOST],
            "gateway" => vec![GATEWAY],
            _ => Vec::new(),
        };
        self.node = Some(Node::new(vec![role], addresses));
    }

    /// Runs all timers that are due until `at`.
    fn run_to(&mut self, at: Instant) {
        while let Some(due) = self.node.as_ref().and_then(Node::deadline).filter(|due| *due <= at) {
            self.now = self.now.max(due);
            self.give(Input::Timeout);
            let next = self.node.as_ref().and_then(Node::deadline);
            assert!(
                next.is_none_or(|next| next > self.now),
                "due at {next:?} still, after a time-out at {due:?}"
            );
        }
        assert!(at >= self.now, "the script goes back in time");
        self.now = at;
    }

    fn step(&mut self, words: &[&str]) {
        match *words {
            ["start"] => {
                self.begin();
                self.give(Input::Start(&Boot::new(WALL)));
                self.wires_up();
            }
            ["wait"] => {}
            ["status"] => {
                let status = self.node.as_ref().unwrap().status();
                self.line(&format!("status {}", words::value(&status)));
            }
            ["update", leg, ref flags @ ..] => {
                let bytes = signed(update(self.now, flags == ["S"]));
                self.receive(leg, PacketId::NEW, bytes);
            }
            ["data", leg] => self.datagram(leg, HOST, CORRESPONDENT, 0),
            ["down"] => self.datagram("up", CORRESPONDENT, HOST, 0),
            ["down", "ef"] => self.datagram("up", CORRESPONDENT, HOST, EF),
            ["request", ref of @ ..] => {
                let (why, node) = (update_request::Why::NoMapping, 2);
                let gateway = if of.is_empty() { GATEWAY } else { CORRESPONDENT };
                let request = UpdateRequest { gateway, mobile: HOST, why, node, key_generation: 1 };
                self.receive("air", PacketId::NEW, request.emit());
            }
            ["too-big", ref whose @ ..] => {
                let from = if *whose == ["another's"] { GATEWAY } else { HOST };
                let ends = [from, CORRESPONDENT].map(|address| wire::SocketAddrV4::new(address, 9000));
                let data = udp::packet(ends[0], ends[1], &[0; 1200]);
                let body = [&[0, 0, 4, 0xa9], &data[..28]].concat(); // 1193 bytes would fit
                let error = icmp::Message { kind: 3, code: 4, body: &body }.emit();
                let bytes = Header::new(ipv4::ICMP, GATEWAY, HOST).emit(&error);
                self.receive("air", PacketId::NEW, bytes);
            }
            ["hear"] => self.datagram("air", CORRESPONDENT, HOST, 0),
            ["send"] => self.datagram("host", HOST, CORRESPONDENT, 0),
            ["link", "up", cell] => {
                let cell = Some(Cell(cell.parse().unwrap()));
                self.give(Input::Link(Iface(1), Link::Up { cell, mac: own(1), mtu: 1500, name: "air" }));
            }
            ["link", "down", ref why @ ..] => {
                self.give(Input::Link(Iface(1), Link::Down(&why.join(" "))));
            }
            ["heard", cell, strength] => {
                let (cell, strength) = (Cell(cell.parse().unwrap()), strength.parse().unwrap());
                self.give(Input::Link(Iface(1), Link::Heard(cell, strength)));
            }
            ["clock", seconds] => {
                let step: i64 = seconds.parse().unwrap();
                self.two_clocks = true;
                self.give(Input::Wall(WallTime(WALL.0 + step * 1_000_000_000)));
            }
            ["handoff", to, kind] => {
                let args = Value::map([("to", Value::from(to)), ("kind", Value::from(kind))]);
                let command = Command { verb: "handoff".to_owned(), args };
                self.give(Input::Command(CommandId(1), &command));
            }
            _ => panic!("no step {words:?}"),
        }
    }

    fn wires_up(&mut self) {
        if self.interfaces.len() > 1 {
            for (number, name) in (1..).zip(self.interfaces) {
                let link = Link::Up { cell: None, mac: own(number), mtu: 1500, name };
                self.give(Input::Link(Iface(number), link));
            }
        }
    }

    fn datagram(&mut self, from: &str, src: Ipv4Addr, dst: Ipv4Addr, tos: u8) {
        self.data += 1;
        let ends = [src, dst].map(|address| wire::SocketAddrV4::new(address, 9000));
        let plain = udp::packet(ends[0], ends[1], &self.data.to_be_bytes());
        let (header, payload) = Header::parse(&plain).unwrap();
        let bytes = Header { tos, ..header }.emit(payload);
        self.receive(from, PacketId(self.data), bytes);
    }

    fn receive(&mut self, from: &str, id: PacketId, bytes: Vec<u8>) {
        let number = self.interfaces.iter().position(|name| *name == from).map_or(0, |at| at as u16 + 1);
        assert!(number > 0 || from == "host", "no interface {from}");
        let link = Frame { kind: EtherType::IPV4, src: neighbor(number), dst: own(number) };
        self.node.as_mut().unwrap().receive(
            self.now,
            Iface(number),
            Packet { link, id, bytes },
            &mut self.out,
        );
        self.write_down();
    }

    fn give(&mut self, input: Input<'_>) {
        self.node.as_mut().unwrap().handle(self.now, input, &mut self.out);
        self.write_down();
    }

    fn write_down(&mut self) {
        while let Some((_, act)) = self.out.next_act() {
            if let Act::Transmit(_, packet) | Act::SendInCell(_, _, packet) = &act {
                self.must_be_newer(packet);
            }
            let line = words::act(&act, self.interfaces);
            self.line(&line);
        }
    }

    /// Asserts that a mobile host's timestamps increase: nodes would refuse its route-updates otherwise.
    fn must_be_newer(&mut self, packet: &Packet) {
        if let (["air"], Some(update)) = (self.interfaces, words::route_update(packet)) {
            assert!(self.stamps.insert(update.timestamp), "{packet:?}");
            assert!(update.timestamp > self.newest || self.two_clocks, "{packet:?}");
            self.newest = update.timestamp;
        }
    }

    fn line(&mut self, line: &str) {
        self.effects += 1;
        let millis = self.now.0 as f64 / 1e6;
        let _ = writeln!(self.text, "  {:>3} {millis:>10.3} ms  {line}", self.effects);
    }
}

/// The node's own link address on an interface.
const fn own(number: u16) -> Mac {
    Mac([2, 0, 0, 0, 1, number as u8])
}

/// Whether a packet carries numbered data, which a reader can follow.
pub(crate) fn is_data(header: &Header) -> bool {
    header.protocol == ipv4::UDP
}
