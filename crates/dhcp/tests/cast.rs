//! The hosts of the transcripts: a client, two servers, of which one is not the client's, and another host.

use crate::transcript::{Cast, Teller, own};
use dhcp::message::{CLIENT_PORT, Kind, Message, SERVER_PORT};
use dhcp::{Client, Server};
use node::config::Interfaces;
use node::{Class, FailedAct, Fault, Input, Node, Rng, Role, RoleId};
use serde::de::DeserializeOwned;
use std::fmt::Write;
use wire::ipv4::{self, Header};
use wire::{EtherType, Iface, Instant, InterfaceAddress, Ipv4Addr, Mac, Packet, SocketAddrV4, arp, udp};

const CLIENT: &str = "interface = 'eth'\nannouncements = ['0s']\n";
const SERVER: &str = "interface = 'eth'\naddress = '10.3.0.1/24'\nfirst = '10.3.0.100'\nlast = '10.3.0.102'\n\
    router = '10.3.0.1'\nlease = '100s'\n";

/// Name, address and link address of each host. The clients have no address.
const HOSTS: [(&str, Ipv4Addr, Mac); 6] = [
    ("server", Ipv4Addr::new(10, 3, 0, 1), Mac([2, 0, 0, 0, 0, 1])),
    ("rogue", Ipv4Addr::new(10, 3, 0, 66), Mac([2, 0, 0, 0, 0, 66])),
    ("other", Ipv4Addr::new(10, 3, 0, 8), Mac([2, 0, 0, 0, 0, 8])),
    ("a", Ipv4Addr::UNSPECIFIED, Mac([2, 0, 0, 0, 0, 0xa])),
    ("b", Ipv4Addr::UNSPECIFIED, Mac([2, 0, 0, 0, 0, 0xb])),
    ("c", Ipv4Addr::UNSPECIFIED, Mac([2, 0, 0, 0, 0, 0xc])),
];
const OFFERED: Ipv4Addr = Ipv4Addr::new(10, 3, 0, 100);
const OWN: Mac = own(Iface(1));

#[derive(Default)]
pub(crate) struct Dhcp {
    /// The last message of the client under test.
    last: Option<Message>,
    is_server: bool,
}

fn host(name: &str) -> (Ipv4Addr, Mac) {
    let (_, address, mac) =
        HOSTS.iter().find(|(other, ..)| *other == name).unwrap_or_else(|| panic!("{name}"));
    (*address, *mac)
}

pub(crate) fn configured<T: DeserializeOwned>(base: &str, changes: &str) -> Result<T, toml::de::Error> {
    let mut table: toml::Table = base.parse().unwrap();
    table.extend(changes.parse::<toml::Table>().unwrap());
    toml::Value::Table(table).try_into()
}

pub(crate) fn client(changes: &str) -> Result<Client, String> {
    let config = configured(CLIENT, changes).map_err(|error| error.message().to_owned())?;
    Client::new(config, Interfaces(&["eth".to_owned()]), Rng::new(1)).map_err(|error| error.to_string())
}

pub(crate) fn server(changes: &str) -> Result<Server, String> {
    let config = configured(SERVER, changes).map_err(|error| error.message().to_owned())?;
    Server::new(config, Interfaces(&["eth".to_owned()])).map_err(|error| error.to_string())
}

/// The arguments `name=value` of a step.
struct Args<'a>(&'a [&'a str]);

impl<'a> Args<'a> {
    fn get(&self, name: &str) -> Option<&'a str> {
        self.0
            .iter()
            .find_map(|arg| arg.split_once('=').filter(|(key, _)| *key == name).map(|(_, value)| value))
    }
    fn address(&self, name: &str) -> Option<Ipv4Addr> {
        self.get(name).map(|text| text.parse().unwrap_or_else(|_| host(text).0))
    }
    fn number(&self, name: &str) -> Option<u32> {
        self.get(name).map(|text| text.parse().unwrap())
    }
    fn has(&self, word: &str) -> bool {
        self.0.contains(&word)
    }
}

impl Cast for Dhcp {
    fn node(&mut self, kind: &str, changes: &str) -> (Node, &'static [&'static str]) {
        self.is_server = kind == "server";
        let role: Box<dyn Role> = if self.is_server {
            Box::new(server(changes).unwrap())
        } else {
            Box::new(client(changes).unwrap())
        };
        let mut node = Node::new(vec![role], Vec::new());
        if self.is_server {
            let address: InterfaceAddress = "10.3.0.1/24".parse().unwrap();
            node.add_address(Instant::ZERO, Iface(1), address);
        }
        (node, &["eth"])
    }

    fn comes_up(&self, _: &str) -> bool {
        self.is_server
    }

    fn step(teller: &mut Teller<Self>, words: &[&str]) {
        match *words {
            ["used", address] => arp_from(teller, "other", address, false),
            ["used", address, "by", name] => arp_from(teller, name, address, false),
            ["probed", address] => arp_from(teller, "other", address, true),
            ["fails", address] => {
                let act = FailedAct::Address(Iface(1), address.parse().unwrap(), true);
                let fault = Fault { role: RoleId(0), act, why: "no memory".to_owned() };
                teller.give(Input::Failed(&fault));
            }
            ["garbage"] => {
                let mut packet = teller.cast.of_server(Kind::Offer, &Args(&[]));
                let cookie = packet.bytes.len() - 64 + 4;
                packet.bytes[cookie - 1] ^= 1;
                packet.bytes[26..28].fill(0); // no checksum of UDP
                teller.receive("eth", packet);
            }
            [kind, ref args @ ..] => {
                let kind = match kind {
                    "discover" => Kind::Discover,
                    "offer" => Kind::Offer,
                    "request" => Kind::Request,
                    "decline" => Kind::Decline,
                    "ack" => Kind::Ack,
                    "nak" => Kind::Nak,
                    "release" => Kind::Release,
                    "inform" => Kind::Inform,
                    _ => panic!("no step {words:?}"),
                };
                let args = Args(args);
                let packet = if kind.op() == 2 && !teller.cast.is_server {
                    teller.cast.of_server(kind, &args)
                } else {
                    of_client(kind, &args)
                };
                teller.receive("eth", packet);
            }
            [] => {}
        }
    }

    fn packet(&self, packet: &Packet) -> String {
        if packet.link.kind == EtherType::ARP {
            let message = arp::Message::parse(&packet.bytes).unwrap();
            return match message.operation {
                arp::Operation::Reply => format!("ARP: {} is here", message.sender),
                arp::Operation::Request if message.is_gratuitous() => {
                    format!("ARP: {} is here now", message.sender)
                }
                arp::Operation::Request => format!("ARP: {} asks for {}", message.sender, message.target),
            };
        }
        let (ip, payload) = Header::parse(&packet.bytes).unwrap();
        if ip.protocol != ipv4::UDP {
            return format!("an ICMP error {}>{}", ip.src, ip.dst);
        }
        let datagram = udp::Datagram::parse(payload, ip.src, ip.dst).unwrap();
        let Ok(message) = Message::parse(datagram.payload) else { return "a malformed message".to_owned() };
        format!("{} {}>{}", text(&message), ip.src, ip.dst)
    }

    fn neighbor(&self, mac: Mac) -> Option<&'static str> {
        HOSTS.iter().find(|(.., other)| *other == mac).map(|(name, ..)| *name)
    }

    fn class(&self, _: Class) -> Option<&'static str> {
        None
    }

    fn heed(&mut self, packet: &Packet) {
        if packet.link.kind == EtherType::IPV4
            && let Ok((ip, payload)) = Header::parse(&packet.bytes)
            && let Ok(message) = Message::of(&ip, payload, SERVER_PORT)
        {
            self.last = Some(message);
        }
    }
}

impl Dhcp {
    /// Returns a server's answer to the last message of the client under test.
    fn of_server(&self, kind: Kind, args: &Args<'_>) -> Packet {
        let (address, mac) = host(args.get("from").unwrap_or("server"));
        let asked = self.last.clone().unwrap();
        let yours = args.address("address").unwrap_or(OFFERED);
        let is_nak = kind == Kind::Nak;
        let client = args.get("to").map_or(OWN, |name| host(name).1);
        let message = Message {
            broadcast: asked.broadcast,
            current: asked.current,
            yours: if is_nak { Ipv4Addr::UNSPECIFIED } else { yours },
            server: Some(args.address("server").unwrap_or(address)).filter(|_| !args.has("unnamed")),
            lease: Some(args.number("lease").unwrap_or(100)).filter(|_| !is_nak && !args.has("leaseless")),
            renew: args.number("t1"),
            rebind: args.number("t2"),
            prefix: Some(24).filter(|_| !is_nak && !args.has("maskless")),
            router: Some(args.address("router").unwrap_or(host("server").0))
                .filter(|_| !args.has("routerless")),
            ..Message::new(kind, args.number("xid").unwrap_or(asked.transaction), client)
        };
        let to = if asked.current.is_unspecified() { Ipv4Addr::BROADCAST } else { asked.current };
        let (from, to) = (SocketAddrV4::new(address, SERVER_PORT), SocketAddrV4::new(to, CLIENT_PORT));
        let mut packet = Packet::new(
            if to.ip().is_broadcast() { Mac::BROADCAST } else { OWN },
            udp::packet(from, to, &message.emit()),
        );
        packet.link.src = mac;
        packet
    }
}

/// Returns a message of another client to the server under test.
fn of_client(kind: Kind, args: &Args<'_>) -> Packet {
    let (_, mac) = host(args.get("from").unwrap_or("a"));
    let current = args.address("current").unwrap_or(Ipv4Addr::UNSPECIFIED);
    let message = Message {
        broadcast: args.has("broadcast"),
        current,
        requested: args.address("address"),
        server: args.address("server"),
        relay: args.address("relay").unwrap_or(Ipv4Addr::UNSPECIFIED),
        identifier: args.get("id").map_or(Vec::new(), |id| id.as_bytes().to_vec()),
        ..Message::new(kind, args.number("xid").unwrap_or(7), mac)
    };
    let to = args.address("to").unwrap_or(Ipv4Addr::BROADCAST);
    let (from, to) = (SocketAddrV4::new(current, CLIENT_PORT), SocketAddrV4::new(to, SERVER_PORT));
    let mut packet = Packet::new(
        if to.ip().is_broadcast() { Mac::BROADCAST } else { OWN },
        udp::packet(from, to, &message.emit()),
    );
    packet.link.src = mac;
    packet
}

fn arp_from(teller: &mut Teller<Dhcp>, name: &str, address: &str, is_probe: bool) {
    let (_, mac) = host(name);
    let address = address.parse().unwrap();
    let probe = arp::Message::request(mac, Ipv4Addr::UNSPECIFIED, address);
    let reply = arp::Message::request(OWN, host("server").0, address).answer(mac);
    let mut packet = Packet::arp(Mac::BROADCAST, if is_probe { &probe } else { &reply });
    packet.link.src = mac;
    teller.receive("eth", packet);
}

fn text(message: &Message) -> String {
    let mut text = message.kind.name().trim_start_matches("DHCP").to_lowercase();
    let zero = |address: Ipv4Addr| Some(address).filter(|address| !address.is_unspecified());
    let addresses = [
        ("current", zero(message.current)),
        ("yours", zero(message.yours)),
        ("requested", message.requested),
        ("server", message.server),
        ("router", message.router),
    ];
    for (name, address) in addresses {
        if let Some(address) = address {
            let _ = write!(text, " {name}={address}");
        }
    }
    if message.seconds > 0 {
        let _ = write!(text, " secs={}", message.seconds);
    }
    for (name, number) in [("lease", message.lease), ("t1", message.renew), ("t2", message.rebind)] {
        if let Some(number) = number {
            let _ = write!(text, " {name}={number}");
        }
    }
    text
}
