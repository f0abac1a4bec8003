//! Reads a script, executes it on a node, and writes the script with the acts of the node.
//!
//! ```text
//! 10ms from air mn data-1 mn > cn             a datagram arrives from a neighbor
//! 10ms from up rt data-1 cn > mn in ha > fa   a datagram arrives in a tunnel
//! 10ms send data-1 mn > cn                    this host's own stack sends a datagram
//! 10ms command VERB                           a command of the operator
//! 10ms down air                               an interface goes down
//! 10ms wait                                   no input; timers run
//! ```
//!
//! Each datagram is UDP, and its name is its payload. The address can be followed by a port, for example `mn:434`; the
//! default is 9.

use node::config::parse_span;
use node::{
    Act, Action, AppChange, Boot, Class, Command, CommandId, Hop, Input, Lifetime, Link, NextHop, Node,
    Outbox, RouteKey,
};
use node::{Route, Transport, Value};
use std::fmt::Write;
use wire::ipv4::{self, Header};
use wire::udp::{self, Datagram};
use wire::{EtherType, Frame, Iface, Instant, Ipv4Addr, Mac, Packet, PacketId, Prefix, SocketAddrV4, ipip};

/// A situation: the node, its interfaces, and the other hosts.
pub(crate) struct Moment {
    /// The names of the interfaces, by number from 1.
    pub(crate) interfaces: &'static [&'static str],
    /// The names in the script, with their addresses.
    pub(crate) parties: &'static [(&'static str, [u8; 4])],
    pub(crate) node: fn() -> Node,
}

/// Returns the link address of the host with this index in the list of names.
pub(crate) const fn mac(number: u8) -> Mac {
    Mac([2, 0, 0, 0, 0, number])
}

/// Returns a new datagram of a role: its name is `says`, and both ends have the same `port`.
pub(crate) fn datagram(says: &str, src: Ipv4Addr, dst: Ipv4Addr, port: u16) -> Packet {
    let ends = [src, dst].map(|address| SocketAddrV4::new(address, port));
    Packet::new(Mac::ZERO, udp::packet(ends[0], ends[1], says.as_bytes()))
}

/// Returns the name of a UDP datagram, or an empty text for another packet.
pub(crate) fn said(packet: &Packet) -> String {
    let text = || {
        let (header, payload) = Header::parse(&packet.bytes).ok()?;
        let datagram = Datagram::parse(payload, header.src, header.dst).ok()?;
        String::from_utf8(datagram.payload.to_vec()).ok()
    };
    text().unwrap_or_default()
}

/// Returns the source and destination address of a packet.
pub(crate) fn ends(packet: &Packet) -> (Ipv4Addr, Ipv4Addr) {
    ipv4::addresses(&packet.bytes).unwrap()
}

/// Returns the script with the node's acts. These acts replace the acts that the script already contains.
pub(crate) fn tell(script: &str, moment: &Moment) -> String {
    Teller {
        text: String::new(),
        node: (moment.node)(),
        interfaces: moment.interfaces,
        parties: moment.parties,
        out: Outbox::default(),
        now: Instant::ZERO,
        effects: 0,
        packets: 0,
    }
    .play(script)
}

struct Teller {
    text: String,
    node: Node,
    interfaces: &'static [&'static str],
    parties: &'static [(&'static str, [u8; 4])],
    out: Outbox,
    now: Instant,
    effects: u32,
    packets: u64,
}

impl Teller {
    fn play(mut self, script: &str) -> String {
        let mut started = false;
        for line in script.lines().filter(|line| !line.starts_with(' ')) {
            let words: Vec<&str> = line.split_whitespace().collect();
            if let ["#", ..] | [] = words.as_slice() {
                self.copy(line);
                continue;
            }
            if !std::mem::replace(&mut started, true) {
                self.start();
            }
            let at = Instant::ZERO + parse_span(words[0]).unwrap_or_else(|| panic!("no time: {line}"));
            self.run_to(at);
            self.copy(line);
            self.step(&words[1..]);
        }
        self.text
    }

    fn copy(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn start(&mut self) {
        self.give(Input::Start(&Boot::default()));
        for (number, name) in (1..).zip(self.interfaces) {
            let up = Link::Up { cell: None, mac: own(number), mtu: 1500, name };
            self.give(Input::Link(Iface(number), up));
        }
    }

    fn run_to(&mut self, at: Instant) {
        while let Some(due) = self.node.deadline().filter(|due| *due <= at) {
            self.now = self.now.max(due);
            self.give(Input::Timeout);
        }
        self.now = at;
    }

    fn step(&mut self, words: &[&str]) {
        match *words {
            ["wait"] => {}
            ["command", verb] => {
                let command = Command { verb: verb.to_owned(), args: Value::None };
                self.give(Input::Command(CommandId(1), &command));
            }
            ["down", name] => {
                let iface = self.iface(name);
                self.give(Input::Link(iface, Link::Down("carrier")));
            }
            ["send", says, src, ">", dst] => {
                let bytes = self.bytes(says, src, dst);
                self.receive(Iface::HOST, Mac::ZERO, bytes);
            }
            ["from", iface, neighbor, says, src, ">", dst] => {
                let bytes = self.bytes(says, src, dst);
                self.receive(self.iface(iface), self.mac_of(neighbor), bytes);
            }
            ["from", iface, neighbor, says, src, ">", dst, "in", entry, ">", exit] => {
                let inner = self.bytes(says, src, dst);
                let bytes = ipip::encapsulate(&inner, self.end(entry).0, self.end(exit).0, 7).unwrap();
                self.receive(self.iface(iface), self.mac_of(neighbor), bytes);
            }
            _ => panic!("no step {words:?}"),
        }
    }

    /// Returns the address and the port of an end, for example of `mn` or `mn:434`.
    fn end(&self, text: &str) -> (Ipv4Addr, u16) {
        let (name, port) = text.split_once(':').unwrap_or((text, "9"));
        let (_, address) = self.parties.iter().find(|(party, _)| *party == name).unwrap();
        ((*address).into(), port.parse().unwrap())
    }

    fn bytes(&self, says: &str, src: &str, dst: &str) -> Vec<u8> {
        let [src, dst] = [src, dst].map(|text| self.end(text));
        udp::packet(SocketAddrV4::new(src.0, src.1), SocketAddrV4::new(dst.0, dst.1), says.as_bytes())
    }

    fn mac_of(&self, name: &str) -> Mac {
        mac(self.parties.iter().position(|(party, _)| *party == name).unwrap() as u8)
    }

    fn iface(&self, name: &str) -> Iface {
        Iface(self.interfaces.iter().position(|other| *other == name).unwrap() as u16 + 1)
    }

    fn receive(&mut self, iface: Iface, from: Mac, bytes: Vec<u8>) {
        self.packets += 1;
        let link = Frame { kind: EtherType::IPV4, src: from, dst: own(iface.0) };
        let packet = Packet { link, id: PacketId(self.packets), bytes };
        self.node.receive(self.now, iface, packet, &mut self.out);
        self.write_down();
    }

    fn give(&mut self, input: Input<'_>) {
        self.node.handle(self.now, input, &mut self.out);
        self.write_down();
    }

    fn write_down(&mut self) {
        while let Some((_, act)) = self.out.next_act() {
            self.effects += 1;
            let millis = self.now.0 as f64 / 1e6;
            let line = self.act(&act);
            let _ = writeln!(self.text, "  {:>3} {millis:>9.1} ms  {line}", self.effects);
        }
    }

    // --- output ----------------------------------------------------------------------------------------------------

    fn act(&self, act: &Act) -> String {
        match act {
            Act::Transmit(Iface::HOST, packet) => format!("hand {} to this host", self.packet(packet)),
            Act::Transmit(iface, packet) => {
                let to = packet.link.dst;
                let name = (0..).zip(self.parties).find(|(number, _)| mac(*number) == to);
                let name = name.map_or("everybody", |(_, (name, _))| name);
                format!("send {} by {} to {name}", self.packet(packet), self.interface(*iface))
            }
            Act::Drop(iface, packet, reason) => {
                format!("drop {} from {}: {reason}", self.packet(packet), self.interface(*iface))
            }
            Act::Route(key, route) => format!("route {}: {}", self.key(*key), self.route(route.as_ref())),
            Act::IngressPolicy(port, Some(policy)) => {
                let check =
                    policy.check.map_or(String::new(), |back| format!(", checked by {}", class(back)));
                format!("gate {}: {}{check}", self.interface(port.iface), class(policy.class))
            }
            Act::Mark(mark) => format!("mark {}", mark.name),
            Act::Answer(_, answer) => format!("answer {answer:?}"),
            Act::Address(iface, address, is_added) => {
                let change = if *is_added { "add" } else { "remove" };
                format!("{change} address {} on {}", self.name(address.address), self.interface(*iface))
            }
            Act::Delivered(event) => format!("record {}", self.of_application(&event.change)),
            other => panic!("no words for {other:?}"),
        }
    }

    fn of_application(&self, change: &AppChange) -> String {
        match change {
            AppChange::Asked { role, by: Transport::Role(transport), peer: Some(peer), .. } => {
                format!("that `{role}` asks {transport} for {}", self.name(*peer.ip()))
            }
            AppChange::Opened(local) => format!("that it is open at {}", self.name(*local.ip())),
            other => panic!("no words for {other:?}"),
        }
    }

    fn packet(&self, packet: &Packet) -> String {
        self.datagram(&packet.bytes)
    }

    fn datagram(&self, bytes: &[u8]) -> String {
        let (header, payload) = Header::parse(bytes).unwrap();
        let way = format!("{} > {}", self.name(header.src), self.name(header.dst));
        match header.protocol {
            ipv4::IPIP => {
                let inner = ipip::decapsulate(bytes).unwrap().1;
                format!("({} in {way})", self.datagram(inner))
            }
            ipv4::UDP => {
                let datagram = Datagram::parse(payload, header.src, header.dst).unwrap();
                let port =
                    if datagram.dst_port == 9 { String::new() } else { format!(":{}", datagram.dst_port) };
                format!("{} {way}{port}", String::from_utf8_lossy(datagram.payload))
            }
            ipv4::ICMP => format!("an ICMP error {way}"),
            other => format!("protocol {other} {way}"),
        }
    }

    fn name(&self, address: Ipv4Addr) -> String {
        let known = self.parties.iter().find(|(_, other)| address.octets() == *other);
        known.map_or(address.to_string(), |(name, _)| (*name).to_owned())
    }

    fn interface(&self, iface: Iface) -> &'static str {
        usize::from(iface.0).checked_sub(1).map_or("host", |index| self.interfaces[index])
    }

    fn prefix(&self, prefix: Prefix) -> String {
        if prefix == Prefix::ANY { "any".to_owned() } else { self.name(prefix.address()) }
    }

    fn key(&self, key: RouteKey) -> String {
        let class = key.class.map_or("all".to_owned(), class);
        format!("{class}, {} > {}", self.prefix(key.src), self.prefix(key.dst))
    }

    fn route(&self, route: Option<&Route>) -> String {
        let Some(Route { action, lifetime, .. }) = route else { return "removed".to_owned() };
        let action = match action {
            Action::Forward(Hop { iface, to: NextHop::Mac(to) }) => {
                let (_, (name, _)) = (0..).zip(self.parties).find(|(number, _)| mac(*number) == *to).unwrap();
                format!("by {} to {name}", self.interface(*iface))
            }
            Action::Forward(Hop { iface, .. }) => format!("by {}", self.interface(*iface)),
            Action::Punt => "to the role".to_owned(),
            Action::Host => "to this host".to_owned(),
            Action::Tunnel(encap) => format!("in a tunnel to {}", self.name(encap.dst)),
            Action::Open(of, _) => format!("opened as {}", class(*of)),
            Action::Drop(reason) => format!("drop, {reason}"),
        };
        match lifetime {
            Lifetime::Permanent => action,
            Lifetime::Until(end) => format!("{action}, until {end}"),
            Lifetime::SoftState(span) => format!("{action}, until {span:?} after data from there"),
            Lifetime::ReportIdle(span) => format!("{action}, told when unused for {span:?}"),
        }
    }
}

fn class(class: Class) -> String {
    match class {
        Class::HOST => "own".to_owned(),
        Class(16) => "upward".to_owned(),
        Class(17) => "downward".to_owned(),
        Class(other) => format!("class {other}"),
    }
}

/// Returns the node's own link address on an interface.
const fn own(number: u16) -> Mac {
    Mac([2, 0, 0, 0, 1, number as u8])
}
