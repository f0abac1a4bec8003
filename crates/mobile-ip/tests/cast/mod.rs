//! The hosts of the transcripts: a home network 10.1.0.0/16, two visited networks with foreign agents, a router, a
//! correspondent.

mod bindings;
mod handoffs;
mod keys;

use crate::transcript::{Cast, Teller, WALL};
use auth::Key as Secret;
use mobile_ip::message::{
    ALL_SYSTEMS, Advertisement, AgentFlags, Algorithm, Association, Between, Binding, Code, Extension,
    Numbers, PORT, Received, Registration, Reply, Request, RequestFlags, Solicitation, Update, datagram,
};
use mobile_ip::{Correspondent, ForeignAgent, HomeAgent, MobileNode};
use node::config::Interfaces;
use node::{
    Action, Class, FailedAct, Fault, Hop, Input, InterfaceAddress, Lifetime, Node, Notification, Outbox, Rng,
    Role, RoleId, Route, RouteKey, Value,
};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use wire::ipv4::{self, Header};
use wire::tunnel::{self, Kind};
use wire::{
    Frame, IcmpError, Iface, Instant, Ipv4Addr, Mac, Packet, Prefix, SocketAddrV4, arp, icmp, ipip, udp,
};

const HOME: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 7);
const HOME_AGENT: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);
const CORRESPONDENT: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 2);

const HOME_AGENT_CONFIG: &str = r#"
    address = "10.1.0.2/16"
    interface = "home"
    mobile_nodes = [{ address = "10.1.0.7", spi = 256, key = "31323334353637383132333435363738" }]
    foreign_agents = [{ address = "10.4.0.1", spi = 300, key = "000102030405060708090a0b0c0d0e0f" }]
    advertise = { interval = "1000s", lifetime = "3000s" }
"#;
const FOREIGN_AGENT_CONFIG: &str = r#"
    address = "10.3.0.1/24"
    interface = "visited"
    advertise = { interval = "1000s", lifetime = "3000s" }
"#;
const MOBILE_NODE_CONFIG: &str = r#"
    address = "10.1.0.7/16"
    interface = "air"
    home_agent = { address = "10.1.0.2", spi = 256, key = "31323334353637383132333435363738" }
"#;

/// Name, IP address and link address of each host.
const PEOPLE: [(&str, Ipv4Addr, Mac); 8] = [
    ("mn", HOME, Mac([2, 0, 0, 0, 0, 7])),
    ("ha", HOME_AGENT, Mac([2, 0, 0, 0, 0, 2])),
    ("ha2", Ipv4Addr::new(10, 1, 0, 3), Mac([2, 0, 0, 0, 0, 10])),
    ("fa", Ipv4Addr::new(10, 3, 0, 1), Mac([2, 0, 0, 0, 0, 3])),
    ("fa2", Ipv4Addr::new(10, 4, 0, 1), Mac([2, 0, 0, 0, 0, 4])),
    ("fa3", Ipv4Addr::new(10, 5, 0, 1), Mac([2, 0, 0, 0, 0, 5])),
    ("router", Ipv4Addr::new(10, 9, 0, 1), Mac([2, 0, 0, 0, 0, 9])),
    ("other", Ipv4Addr::new(10, 1, 0, 8), Mac([2, 0, 0, 0, 0, 8])),
];

/// The keys of the associations, with their SPIs. By default, the second foreign agent has an association with the home
/// agent, and the first foreign agent has none.
const SECRETS: [(Between, u32, &[u8; 16]); 3] = [
    (Between::MobileHome, 256, b"1234567812345678"),
    (Between::MobileForeign, 300, b"\0\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f"),
    (Between::ForeignHome, 300, b"\0\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f"),
];

#[derive(Default)]
pub(crate) struct MobileIp {
    /// The last Registration Request that the role sent or a step made.
    request: Option<Request>,
    /// All requests, each once: a distributed key belongs to one of them.
    requests: Vec<Request>,
    /// The last Binding Update that the role sent.
    update: Option<Update>,
    /// The packet of the last step and its interface, for the step `again`.
    last: Option<(String, Packet)>,
}

fn person(name: &str) -> (Ipv4Addr, Mac) {
    let (_, address, mac) = PEOPLE.iter().find(|(other, ..)| *other == name).unwrap();
    (*address, *mac)
}

fn association(between: Between) -> Association {
    let (_, spi, key) = SECRETS.iter().find(|(other, ..)| *other == between).unwrap();
    Association { spi: *spi, algorithm: Algorithm::HmacSha256, key: Secret::new(**key) }
}

fn configured<T: DeserializeOwned>(base: &str, changes: &str) -> T {
    let mut table: toml::Table = base.parse().unwrap();
    table.extend(changes.parse::<toml::Table>().unwrap());
    toml::Value::Table(table).try_into().unwrap()
}

impl Cast for MobileIp {
    fn node(&mut self, kind: &str, changes: &str) -> (Node, &'static [&'static str]) {
        let rng = Rng::new(1);
        let (names, addresses): (&'static [&'static str], &[&str]) = match kind {
            "home-agent" => (&["home", "up"], &["10.1.0.2/16", "10.9.0.2/24"]),
            "foreign-agent" => (&["visited", "up"], &["10.3.0.1/24", "10.9.0.3/24"]),
            "correspondent" => (&["other", "up"], &["10.8.0.2/24", "10.2.0.2/24"]),
            _ if changes.contains("\"air3\"") => (&["air", "air2", "air3"], &["10.1.0.7/16"]),
            _ if changes.contains("further_interfaces") => (&["air", "air2"], &["10.1.0.7/16"]),
            _ => (&["air"], &["10.1.0.7/16"]),
        };
        let owned: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let interfaces = Interfaces(&owned);
        let role: Box<dyn Role> = match kind {
            "home-agent" => {
                Box::new(HomeAgent::new(configured(HOME_AGENT_CONFIG, changes), interfaces, rng).unwrap())
            }
            "foreign-agent" => Box::new(
                ForeignAgent::new(configured(FOREIGN_AGENT_CONFIG, changes), interfaces, rng).unwrap(),
            ),
            "correspondent" => Box::new(
                Correspondent::new(configured(bindings::CORRESPONDENT_CONFIG, changes), rng).unwrap(),
            ),
            "mobile-node" => {
                Box::new(MobileNode::new(configured(MOBILE_NODE_CONFIG, changes), interfaces, rng).unwrap())
            }
            _ => panic!("no role {kind}"),
        };
        let mut roles = vec![role];
        if changes.contains("acquired") {
            roles.push(Box::new(Acquirer));
        }
        let mut node = Node::new(roles, Vec::new());
        for (number, address) in (1..).zip(addresses) {
            let address: InterfaceAddress = address.parse().unwrap();
            node.add_address(Instant::ZERO, Iface(number), address);
        }
        if names.contains(&"up") {
            let action = Action::Forward(Hop::mac(Iface(2), person("router").1));
            let key = RouteKey { class: None, src: Prefix::ANY, dst: Prefix::ANY };
            node.set_route(Instant::ZERO, key, Route::new(action, Lifetime::Permanent));
        }
        (node, names)
    }

    fn step(teller: &mut Teller<Self>, words: &[&str]) {
        if let ["host", "fails", "to", act, address, "on", iface] = *words {
            return host_fails(teller, act == "add", address, iface);
        }
        let (iface, packet) = match *words {
            ["request", from, ref args @ ..] => request(teller, from, &Args::new(args)),
            ["again"] => teller.cast.last.clone().unwrap(),
            ["reply", ref args @ ..] => reply(teller, &Args::new(args)),
            ["advert", from, ref args @ ..] => advert(from, &Args::new(args)),
            ["solicit", ref on @ ..] => {
                let (src, mac) = person("mn");
                let dst = mobile_ip::message::ALL_ROUTERS;
                let mut packet = Packet::new(Mac::of_group(dst).unwrap(), Solicitation { src, dst }.emit());
                packet.link.src = mac;
                (on.first().copied().unwrap_or("visited").to_owned(), packet)
            }
            ["data", iface, ref args @ ..] => {
                let datagram = number(teller, CORRESPONDENT, HOME);
                (iface.to_owned(), from_person("router", &data(&datagram, &Args::new(args))))
            }
            ["send"] => ("host".to_owned(), from_person("mn", &number(teller, HOME, CORRESPONDENT))),
            ["send", "home"] => {
                let to = person("other").0;
                ("host".to_owned(), from_person("mn", &number(teller, HOME, to)))
            }
            ["tunnel", "at", care_of, "for", to, "by", entry, ref args @ ..] => {
                let inner = number(teller, CORRESPONDENT, to.parse().unwrap());
                let outer = wrapped(&Args::new(args), &inner, person(entry).0, care_of.parse().unwrap());
                ("air".to_owned(), from_person("router", &outer))
            }
            ["tunnel", to, "by", entry] => tunnelled(teller, entry.parse().unwrap(), to, &[]),
            ["tunnel", to, ref args @ ..] => tunnelled(teller, HOME_AGENT, to, args),
            // A router on the path of the tunnel drops a packet of the correspondent, and sends an ICMP error to the
            // home agent, where the tunnel begins.
            // With the argument `own`, it is a packet that the mobile node has put into a tunnel from 10.3.0.77.
            ["too-big", mtu, "to", exit, ref args @ ..] => {
                let (error, args) =
                    (IcmpError::FragmentationNeeded { mtu: mtu.parse().unwrap() }, Args::new(args));
                let iface = if args.has("own") { "air" } else { "up" };
                (iface.to_owned(), about_tunnel(error, exit, &args))
            }
            // As before, but the packet used up its time to live, or a router has no route to the exit. `shortly`: the
            // router quotes only eight bytes behind the outer header, as RFC 792 requires.
            ["lost-in-tunnel", "to", exit, ref args @ ..] => {
                ("up".to_owned(), about_tunnel(IcmpError::TimeExceeded, exit, &Args::new(args)))
            }
            ["no-way-in-tunnel", "to", exit, ref args @ ..] => {
                ("up".to_owned(), about_tunnel(IcmpError::HostUnreachable, exit, &Args::new(args)))
            }
            ["found", address] => ("air".to_owned(), found(address)),
            ["who-has", address, "on", iface] => (iface.to_owned(), who_has(address)),
            ["unreachable"] => {
                let request = teller.cast.request.clone().unwrap();
                let [from, to] =
                    [person("fa").0, request.home_agent].map(|address| SocketAddrV4::new(address, PORT));
                let about = datagram(from, to, 64, &request.emit());
                let error = IcmpError::HostUnreachable.about(&about, person("router").0).unwrap();
                ("up".to_owned(), from_person("router", &error))
            }
            _ => match handoffs::step(teller, words).or_else(|| bindings::step(teller, words)) {
                Some(made) => made,
                None => flagged(teller, words),
            },
        };
        teller.cast.last = Some((iface.clone(), packet.clone()));
        teller.receive(&iface, packet);
    }

    fn packet(&self, packet: &Packet) -> String {
        if packet.link.kind == wire::EtherType::ARP {
            return arp_name(&arp::Message::parse(&packet.bytes).unwrap());
        }
        let (header, payload) = Header::parse(&packet.bytes).unwrap();
        let last = self.last.as_ref().map(|(_, last)| last.bytes.as_slice()).unwrap_or_default();
        if bindings::answers_another(&packet.bytes, last) {
            return format!("{}, to another update", tunnel_name(&packet.bytes));
        }
        if let Some(name) = self.signed_by_key(&packet.bytes).or_else(|| binding_name(&packet.bytes)) {
            return name;
        }
        if let Ok(received) = Received::knowing(header, payload, &Numbers::default().extensions())
            && received.src_port == PORT
        {
            return registration_name(&received) + &self.keys_of(&received.message);
        }
        if let Ok(said) = Advertisement::parse(&header, payload) {
            let busy = if said.flags.has(AgentFlags::BUSY) { ", busy" } else { "" };
            let reverse = if said.flags.has(AgentFlags::REVERSE) { ", reverse tunnels" } else { "" };
            let minimal = if said.flags.has(AgentFlags::MINIMAL) { ", minimal encapsulation" } else { "" };
            let gre = if said.flags.has(AgentFlags::GRE) { ", GRE" } else { "" };
            let smooth = AgentFlags::smooth(&Numbers::default());
            let smooth = if said.flags.has(smooth) { ", smooth handoffs" } else { "" };
            return format!("advertisement {}{busy}{reverse}{minimal}{gre}{smooth}", said.sequence);
        }
        if Solicitation::parse(&header, payload).is_ok() {
            return "solicitation".to_owned();
        }
        tunnel_name(&packet.bytes)
    }

    fn neighbor(&self, mac: Mac) -> Option<&'static str> {
        PEOPLE.iter().find(|(.., other)| *other == mac).map(|(name, ..)| *name)
    }

    fn class(&self, class: Class) -> Option<&'static str> {
        match class.0 {
            16..128 => Some("of a visitor"),
            247.. => Some("from a visitor's tunnel"),
            _ => class.is_closed().then_some("from tunnels"),
        }
    }

    fn heed(&mut self, packet: &Packet) {
        if let Some(Binding::Update(update)) = bindings::message(&packet.bytes) {
            self.update = Some(update);
        }
        let Ok((header, payload)) = Header::parse(&packet.bytes) else { return };
        let received = Received::knowing(header, payload, &Numbers::default().extensions());
        if let Ok(Received { message: Registration::Request(request), .. }) = received {
            self.note(&request);
            self.request = Some(request);
        }
    }
}

/// A role that acquires an address, as a client of DHCP does: by the commands `acquire` and `lose`.
#[derive(Debug)]
struct Acquirer;

impl Role for Acquirer {
    fn name(&self) -> &'static str {
        "acquirer"
    }
    fn verbs(&self) -> &[&'static str] {
        &["acquire", "lose"]
    }
    fn handle(&mut self, _: Instant, input: Input<'_>, out: &mut Outbox) {
        let Input::Command(id, command) = input else { return };
        let text = |name| command.args.get(name).and_then(Value::as_text);
        let own: InterfaceAddress = text("address").unwrap().parse().unwrap();
        if command.verb == "acquire" {
            out.add_address(Iface(1), own);
            let router = text("router").map(|router| router.parse().unwrap());
            out.notify(Notification::AddressAcquired(Iface(1), own, router));
        } else {
            out.remove_address(Iface(1), own);
            out.notify(Notification::AddressLost(Iface(1), own));
        }
        out.answer(id, Ok(Value::None));
    }
    fn deadline(&self) -> Option<Instant> {
        None
    }
    fn status(&self) -> Value {
        Value::None
    }
}

/// The `name=text` arguments of a step.
struct Args<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Args<'a> {
    fn new(words: &[&'a str]) -> Self {
        Self(words.iter().map(|word| word.split_once('=').unwrap_or((word, ""))).collect())
    }

    fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    fn get<T: std::str::FromStr>(&self, name: &str, otherwise: T) -> T {
        self.0.get(name).map_or(otherwise, |text| text.parse().ok().unwrap())
    }
}

/// Makes the answer of the router to a probe for this address.
fn found(address: &str) -> Packet {
    let (_, mac) = person("router");
    let asks = arp::Message::request(Mac::ZERO, Ipv4Addr::UNSPECIFIED, address.parse().unwrap());
    let mut packet = Packet::arp(Mac::ZERO, &asks.answer(mac));
    packet.link.src = mac;
    packet
}

fn who_has(address: &str) -> Packet {
    let (src, mac) = person("other");
    let asks = arp::Message::request(mac, src, address.parse().unwrap());
    let mut packet = Packet::arp(Mac::BROADCAST, &asks);
    packet.link.src = mac;
    packet
}

/// Notifies the role that its host did not add or remove an address.
fn host_fails(teller: &mut Teller<MobileIp>, is_added: bool, address: &str, iface: &str) {
    let act = FailedAct::Address(teller.iface(iface), address.parse().unwrap(), is_added);
    teller.give(Input::Failed(&Fault { role: RoleId(0), act, why: "no memory".to_owned() }));
}

/// Returns a request and the interface by which it arrives. `from` is the mobile node (`mn`), or an agent that relays
/// it.
fn request(teller: &mut Teller<MobileIp>, from: &str, args: &Args<'_>) -> (String, Packet) {
    let (src, mac) = person(from);
    let at_home = from == "mn" && !args.has("to");
    let home = args.get("home", HOME);
    let care_of = if at_home { home } else { args.get("to", src) };
    let clock = WALL.plus(teller.now.since(Instant::ZERO)).to_ntp();
    let mut request = Request {
        flags: RequestFlags(args.get("flags", 0)),
        lifetime: args.get("lifetime", 300),
        home,
        home_agent: args.get("agent", HOME_AGENT),
        care_of: args.get("care_of", care_of),
        identification: clock.wrapping_add_signed(args.get::<i64>("clock", 0) << 32),
        extensions: Vec::new(),
    };
    handoffs::warn(&mut request, args);
    if !args.has("unsigned") {
        let ours = association(Between::MobileHome);
        let key = if args.has("forged") { Secret::new([0; 16]) } else { ours.key.clone() };
        request.sign(Between::MobileHome, &Association { spi: args.get("spi", ours.spi), key, ..ours });
    }
    if args.has("nai") {
        request.extensions.push(Extension::Skipped { kind: 131, data: b"mobile@example.net".to_vec() });
    }
    if let Some(data) = args.0.get("style") {
        let style = Extension::Skipped { kind: 130, data: data.as_bytes().to_vec() };
        request.extensions.push(style);
    }
    handoffs::name_previous(&mut request, args);
    if args.has("by_mn") {
        request.sign(Between::MobileForeign, &association(Between::MobileForeign));
    }
    if from == "fa2" && !args.has("alone") {
        let ours = association(Between::ForeignHome);
        let key = if args.has("false") { Secret::new([0; 16]) } else { ours.key.clone() };
        request.sign(Between::ForeignHome, &Association { key, ..ours });
    }
    let is_own = request.flags.has(RequestFlags::DECAPSULATION);
    let src = if from == "mn" && is_own {
        request.care_of
    } else if from == "mn" {
        home
    } else {
        src
    };
    let at = if from != "mn" {
        HOME_AGENT
    } else if args.has("to") {
        args.get("to", src)
    } else {
        HOME_AGENT
    };
    let at = args.get("at", at);
    let [from, to] = [src, at].map(|address| SocketAddrV4::new(address, PORT));
    teller.cast.note(&request);
    teller.cast.request = Some(request.clone());
    let mut packet = Packet::new(Mac::ZERO, datagram(from, to, args.get("ttl", 255), &request.emit()));
    packet.link.src = mac;
    let iface = if mac != person("mn").1 {
        "up"
    } else if args.has("to") {
        "visited"
    } else {
        "home"
    };
    (iface.to_owned(), packet)
}

/// Returns the reply to the last request, and the interface by which the reply arrives. With an argument `from`, it
/// arrives at the mobile node. Otherwise, it arrives at the agent in the argument `to`; default `fa`.
fn reply(teller: &mut Teller<MobileIp>, args: &Args<'_>) -> (String, Packet) {
    let request = teller.cast.request.clone().unwrap();
    let code = Code::from_number(args.get("code", 0));
    let mut reply: Reply = request.reply(code);
    reply.lifetime = args.get("lifetime", request.lifetime);
    reply.home_agent = args.get("agent", request.home_agent);
    if args.has("stale") {
        reply.identification ^= 1;
    }
    reply.identification = reply.identification.wrapping_add_signed(args.get::<i64>("clock", 0) << 32);
    if !code.is_of_foreign_agent() && !args.has("unsigned") {
        let ours = association(Between::MobileHome);
        let key = if args.has("forged") { Secret::new([0; 16]) } else { ours.key.clone() };
        reply.sign(Between::MobileHome, &Association { key, ..ours });
    }
    keys::give(&mut reply, &request, args);
    if args.has("by_fa") {
        reply.sign(Between::MobileForeign, &association(Between::MobileForeign));
    }
    let from = args.get("from", "ha".to_owned());
    let (src, mac) = person(&from);
    let (iface, dst) = if args.has("from") {
        (args.get("on", "air".to_owned()), args.get("at", HOME))
    } else {
        ("up".to_owned(), person(&args.get("to", "fa".to_owned())).0)
    };
    let [from, to] = [src, dst].map(|address| SocketAddrV4::new(address, PORT));
    let mut packet = Packet::new(Mac::ZERO, datagram(from, to, 64, &reply.emit()));
    packet.link.src = mac;
    (iface, packet)
}

/// Returns the advertisement of an agent, and the interface by which it arrives: the argument `on`, default `air`.
fn advert(from: &str, args: &Args<'_>) -> (String, Packet) {
    let (src, mac) = person(from);
    let foreign = !from.starts_with("ha");
    let mut flags = if foreign { AgentFlags::FOREIGN } else { AgentFlags::HOME };
    flags = flags
        .with(AgentFlags::BUSY, args.has("busy"))
        .with(AgentFlags::REVERSE, args.has("reverse"))
        .with(AgentFlags::MINIMAL, args.has("minimal"))
        .with(AgentFlags::GRE, args.has("gre"))
        .with(AgentFlags::smooth(&Numbers::default()), args.has("smooth"))
        .with(AgentFlags::REGISTRATION_REQUIRED, args.has("required"));
    let said = Advertisement {
        src,
        dst: ALL_SYSTEMS,
        registered_only: args.has("registered-only"),
        lifetime: args.get("believe", 3),
        routers: vec![(src, 0)],
        sequence: args.get("sequence", 256),
        registration_lifetime: args.get("lifetime", 3600),
        flags,
        care_of: if foreign { vec![src] } else { Vec::new() },
        prefix_lengths: Some(vec![if foreign { 24 } else { 16 }]),
        challenge: None,
    };
    let mut packet = Packet::new(Mac::of_group(ALL_SYSTEMS).unwrap(), said.emit());
    packet.link.src = mac;
    (args.get("on", "air".to_owned()), packet)
}

/// Returns a UDP datagram whose payload is the number of the next packet.
fn number(teller: &Teller<MobileIp>, src: Ipv4Addr, dst: Ipv4Addr) -> Vec<u8> {
    let [src, dst] = [src, dst].map(|address| SocketAddrV4::new(address, 9000));
    udp::packet(src, dst, &(teller.packets + 1).to_be_bytes())
}

/// Returns a datagram with this time to live, and with zeros before its number so that it has at least `size` bytes.
fn sized(datagram: &[u8], size: usize, ttl: u8) -> Vec<u8> {
    let (header, payload) = Header::parse(datagram).unwrap();
    let [src, dst] = [header.src, header.dst].map(|address| SocketAddrV4::new(address, 9000));
    let more = vec![0; size.saturating_sub(datagram.len())];
    let whole = udp::packet(src, dst, &[more.as_slice(), &payload[8..]].concat());
    let (header, payload) = Header::parse(&whole).unwrap();
    Header { ttl, ..header }.emit(payload)
}

/// Returns a datagram with the size and the time to live of `args`; without DF if `args` have `df=0`.
fn data(datagram: &[u8], args: &Args<'_>) -> Vec<u8> {
    let bytes = sized(datagram, args.get("size", 0), args.get("ttl", 64));
    if args.get("df", 1) != 0 {
        return bytes;
    }
    let (header, payload) = Header::parse(&bytes).unwrap();
    Header { dont_fragment: false, id: 7, ..header }.emit(payload)
}

/// Returns the packet of a step about the options of registrations: broadcasts and reverse tunnels.
fn flagged(teller: &Teller<MobileIp>, words: &[&str]) -> (String, Packet) {
    match *words {
        // A host of the home network sends to all hosts of the network, or to `to`.
        ["broadcast", iface, ref args @ ..] => {
            let (args, (from, mac)) = (Args::new(args), person("other"));
            let to = args.get("to", Ipv4Addr::BROADCAST);
            let bytes = sized(&number(teller, from, to), args.get("size", 0), 1);
            let mut packet = from_person("other", &bytes);
            packet.link = Frame { src: mac, dst: Mac::BROADCAST, ..packet.link };
            (iface.to_owned(), packet)
        }
        // The home agent has put a broadcast into a tunnel to the home address. The foreign agent has opened the
        // outer tunnel.
        ["tunnelled-broadcast", ref args @ ..] => {
            let args = Args::new(args);
            let inner = number(teller, person("other").0, args.get("to", Ipv4Addr::BROADCAST));
            let outer =
                ipip::encapsulate(&inner, args.get("from", HOME_AGENT), args.get("at", HOME), 1).unwrap();
            ("air".to_owned(), from_person("fa", &outer))
        }
        // A foreign agent has put a packet from `src` into a reverse tunnel to the home agent.
        ["reverse", from, ref args @ ..] => {
            let args = Args::new(args);
            let inner = number(teller, args.get("src", HOME), args.get("to", CORRESPONDENT));
            let inner = sized(&inner, 0, args.get("ttl", 63));
            let outer = wrapped(&args, &inner, person(from).0, HOME_AGENT);
            ("up".to_owned(), from_person("router", &outer))
        }
        // A visitor sends a packet, or puts it into a tunnel to the foreign agent (`encapsulated`).
        ["visitor", from, ref args @ ..] => {
            let args = Args::new(args);
            let inner = number(teller, args.get("src", HOME), args.get("to", CORRESPONDENT));
            let inner = data(&inner, &args);
            let outer = wrapped(&args, &inner, HOME, person("fa").0);
            let bytes = if args.has("encapsulated") { outer } else { inner };
            ("visited".to_owned(), from_person(from, &bytes))
        }
        _ => panic!("no step {words:?}"),
    }
}

/// Returns the kind of tunnel that the argument `kind` names; default IP in IP.
fn kind_of(args: &Args<'_>) -> Kind {
    match args.0.get("kind") {
        None => Kind::IpInIp,
        Some(&"minimal") => Kind::Minimal,
        Some(&"gre") => Kind::Gre,
        Some(other) => panic!("no kind {other}"),
    }
}

/// Returns a datagram in a tunnel of the kind of `args`.
fn wrapped(args: &Args<'_>, inner: &[u8], entry: Ipv4Addr, exit: Ipv4Addr) -> Vec<u8> {
    tunnel::encapsulate(kind_of(args), inner, entry, exit, 1).unwrap()
}

/// Returns a datagram for `to` in a tunnel from `entry` to the first foreign agent, and the interface by which it
/// arrives.
fn tunnelled(teller: &Teller<MobileIp>, entry: Ipv4Addr, to: &str, args: &[&str]) -> (String, Packet) {
    let args = Args::new(args);
    let inner = data(&number(teller, CORRESPONDENT, to.parse().unwrap()), &args);
    let outer = wrapped(&args, &inner, entry, person("fa").0);
    ("up".to_owned(), from_person("router", &outer))
}

/// Returns an ICMP error about a packet of 1480 bytes of the correspondent that the home agent has tunneled to `exit`. With
/// the argument `reverse`, it is a packet of the mobile node that the first foreign agent has tunneled. With `direct`, the correspondent
/// has tunneled the packet; its source is the argument `of`.
fn about_tunnel(error: IcmpError, exit: &str, args: &Args<'_>) -> Packet {
    let (from, to, entry) = if args.has("reverse") {
        (HOME, CORRESPONDENT, person("fa").0)
    } else if args.has("own") {
        (HOME, CORRESPONDENT, Ipv4Addr::new(10, 3, 0, 77))
    } else if args.has("direct") {
        (args.get("of", CORRESPONDENT), HOME, CORRESPONDENT)
    } else {
        (CORRESPONDENT, HOME, HOME_AGENT)
    };
    let [from, to] = [from, to].map(|address| SocketAddrV4::new(address, 9000));
    let outer = wrapped(args, &udp::packet(from, to, &[0; 1452]), entry, exit.parse().unwrap());
    let whole = error.about(&outer, person("router").0).unwrap();
    if !args.has("shortly") {
        return from_person("router", &whole);
    }
    let (header, payload) = Header::parse(&whole).unwrap();
    let message = icmp::Message::parse(payload).unwrap();
    let short = icmp::Message { body: &message.body[..4 + 28], ..message }.emit();
    from_person("router", &header.emit(&short))
}

fn from_person(name: &str, bytes: &[u8]) -> Packet {
    let mut packet = Packet::new(Mac::ZERO, bytes.to_vec());
    packet.link = Frame { src: person(name).1, ..packet.link };
    packet
}

/// Returns the name of a datagram, which may be in one or several tunnels.
fn tunnel_name(bytes: &[u8]) -> String {
    let (outer, _) = Header::parse(bytes).unwrap();
    let of = match Kind::of_protocol(outer.protocol) {
        Some(Kind::Minimal) => "minimal ",
        Some(Kind::Gre) => "GRE ",
        Some(Kind::IpInIp) | None => "",
    };
    match tunnel::decapsulate(bytes) {
        Ok((outer, inner)) => format!("{} in a {of}tunnel to {}", tunnel_name(&inner), outer.dst),
        Err(_) => binding_name(bytes).unwrap_or_else(|| data_name(bytes)),
    }
}

/// Returns the name of a datagram if it is a message of route optimization or about kept packets.
fn binding_name(bytes: &[u8]) -> Option<String> {
    let (header, _) = Header::parse(bytes).ok()?;
    handoffs::control_name(bytes).or_else(|| {
        let message = bindings::message(bytes)?;
        Some(handoffs::name(&message, header.dst).unwrap_or_else(|| bindings::name(&message)))
    })
}

fn data_name(bytes: &[u8]) -> String {
    let (header, payload) = Header::parse(bytes).unwrap();
    match payload.last_chunk::<8>() {
        Some(number) if header.protocol == ipv4::UDP => format!("data {}", u64::from_be_bytes(*number)),
        _ if header.protocol == ipv4::ICMP => {
            let quote = icmp::Message::parse(payload).and_then(|message| icmp::Quote::of(&message));
            quote.map_or_else(
                |_| "icmp".to_owned(),
                |quote| format!("icmp {}/{} (mtu {}) to {}", quote.kind, quote.code, quote.mtu, header.dst),
            )
        }
        _ => "something else".to_owned(),
    }
}

fn arp_name(message: &arp::Message) -> String {
    match message.operation {
        _ if message.is_gratuitous() => {
            format!("arp: {} is at {}", message.sender, mac_name(message.sender_mac))
        }
        arp::Operation::Request => format!("arp: who has {}?", message.target),
        arp::Operation::Reply => format!("arp: {} is at {}", message.sender, mac_name(message.sender_mac)),
    }
}

fn mac_name(mac: Mac) -> String {
    let known = PEOPLE.iter().find(|(.., other)| *other == mac).map(|(name, ..)| *name);
    known.map_or_else(|| if mac.0[4] == 1 { "this host".to_owned() } else { mac.to_string() }, str::to_owned)
}

fn registration_name(received: &Received) -> String {
    let signed = |between: &dyn Fn(Between) -> bool| {
        let kinds = [(Between::MobileHome, "mn"), (Between::ForeignHome, "fa")];
        let names: Vec<&str> =
            kinds.into_iter().filter(|(kind, _)| between(*kind)).map(|(_, name)| name).collect();
        if names.is_empty() { "nobody".to_owned() } else { names.join(" and ") }
    };
    match &received.message {
        Registration::Request(request) => {
            let names = signed(&|kind| request.verify(kind, &association(kind)));
            let Request { home, care_of, lifetime, flags, home_agent, .. } = request;
            // Most requests are to the home agent of the transcripts.
            let of = if *home_agent == HOME_AGENT { String::new() } else { format!(" of {home_agent}") };
            let previous = request.previous_agent(&Numbers::default()).map(Result::unwrap);
            let previous = previous.map_or_else(String::new, |said| {
                format!(", comes from {} ({} s)", said.previous, said.lifetime)
            });
            let flags = if flags.0 == 0 { String::new() } else { format!(" with {}", flags.letters()) };
            format!("request: {home}{of} at {care_of} for {lifetime} s{flags}, signed by {names}{previous}")
        }
        Registration::Reply(reply) => {
            let names = signed(&|kind| reply.verify(kind, &association(kind)));
            let names = names.replace("mn", "ha for mn").replace("fa", "ha for fa");
            format!("reply: {}, {} s, signed by {names}", reply.code, reply.lifetime)
        }
    }
}
