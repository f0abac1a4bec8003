//! Inputs for Mobile IP's roles.

use super::{FAR, HOSTS};
use crate::laws::player::{Post, WALL, command, rx};
use ::mobile_ip::message::{
    ALL_ROUTERS, ALL_SYSTEMS, Advertisement, AgentFlags, Algorithm, Association, Between, Binding, Code,
    DistributedKey, KeyScope, Numbers, PORT, Received, Registration, Reply, Request, RequestFlags,
    Solicitation, Update, datagram,
};
use auth::Key;
use node::{Command, PuntReason, Rng};
use wire::{Instant, Ipv4Addr, Mac, Packet, SocketAddrV4, ipip, udp};

pub(super) const AGENT: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);
pub(super) const VISITED: Ipv4Addr = Ipv4Addr::new(10, 3, 0, 1);

/// The lifetimes are short, so that they end within a script.
pub(super) const HOME_AGENT: &str = r#"
    address = "10.1.0.2/16"
    interface = "home"
    registration_lifetime = "3s"
    mobile_nodes = [
        { address = "10.1.0.7", spi = 256, key = "000102030405060708090a0b0c0d0e0f" },
        { address = "10.1.0.8", spi = 256, key = "000102030405060708090a0b0c0d0e0f" },
    ]
"#;
pub(super) const FOREIGN_AGENT: &str = r#"
    address = "10.3.0.1/24"
    interface = "visited"
    registration_lifetime = "3s"
    pending = 3
    visitors = 2
    advertise = { answers = 1 }
"#;
/// As above, and it keeps the packets of its visitors. It takes keys of the home agent.
pub(super) const KEEPING_AGENT: &str = r#"
    address = "10.3.0.1/24"
    interface = "visited"
    registration_lifetime = "3s"
    visitors = 2
    smooth_handoff = true
    distributed_keys = true
    home_agents = [{ address = "10.1.0.2", spi = 256, key = "000102030405060708090a0b0c0d0e0f" }]
    buffer = { packets = 2, bytes = 1500, total_bytes = 1600, max_age = "500ms" }
    advertise = { answers = 1 }
"#;
pub(super) const MOBILE_NODE: &str = r#"
    address = "10.1.0.7/16"
    interface = "air"
    lifetime = "4s"
    home_agent = { address = "10.1.0.2", spi = 256, key = "000102030405060708090a0b0c0d0e0f" }
"#;
/// As above, with a further interface.
pub(super) const TWO_RADIOS: &str = r#"
    address = "10.1.0.7/16"
    interface = "air"
    lifetime = "4s"
    home_agent = { address = "10.1.0.2", spi = 256, key = "000102030405060708090a0b0c0d0e0f" }
    preference = 1
    weakest_signal = -80
    further_interfaces = [{ name = "air2", preference = 0 }]
    interface_hysteresis = "300ms"
    simultaneous_bindings = true
"#;

/// The cache has room for two of three mobile nodes.
pub(super) const CORRESPONDENT: &str = r#"
    address = "10.2.0.2"
    entries = 2
    home_agents = [{ address = "10.1.0.2", spi = 256, key = "000102030405060708090a0b0c0d0e0f" }]
"#;

/// Returns a Binding Update, mostly of the home agent, or another message to its port.
pub(super) fn to_correspondent(rng: &mut Rng, now: Instant) -> Post {
    let numbers = Numbers::default();
    let off = if rng.draw().is_multiple_of(8) { 300 << 32 } else { rng.draw() % 3 };
    let mut update = Update {
        acknowledge: rng.draw().is_multiple_of(2),
        minimal: false,
        gre: false,
        lifetime: [0, 1, 2, 300][(rng.draw() % 4) as usize],
        home: HOSTS[(rng.draw() % 3) as usize],
        care_of: VISITED,
        identification: Some(WALL.plus(now.since(Instant::ZERO)).to_ntp().wrapping_add(off)),
        authentication: None,
    };
    update.sign(numbers.route_authentication, &association(rng), &numbers);
    let src = if rng.draw().is_multiple_of(8) { VISITED } else { AGENT };
    let payload = if rng.draw().is_multiple_of(16) {
        request(rng, now).emit()
    } else {
        Binding::Update(update).emit(&numbers)
    };
    let bytes = datagram(socket(src), socket(FAR), 64, &payload);
    Post { rx: rx(1, PuntReason::Listen), from: Mac([2; 6]), bytes }
}

pub(super) fn commands() -> Vec<Command> {
    vec![
        command("register", &[]),
        command("register", &[("agent", "10.3.0.1")]),
        command("register", &[("agent", "home")]),
        command("deregister", &[]),
    ]
}

fn association(rng: &mut Rng) -> Association {
    let wrong = u8::from(rng.draw().is_multiple_of(8));
    let key: Vec<u8> = (wrong..16 + wrong).collect();
    Association { spi: 256, algorithm: Algorithm::HmacSha256, key: Key::new(key) }
}

fn request(rng: &mut Rng, now: Instant) -> Request {
    let home = HOSTS[(rng.draw() % 6).saturating_sub(3) as usize];
    let lifetime = [0, 1, 2, 300][(rng.draw() % 4) as usize];
    let care_of = if lifetime == 0 && rng.draw().is_multiple_of(2) { home } else { VISITED };
    // Some timestamps are used twice, some differ by minutes.
    let off = if rng.draw().is_multiple_of(16) { 300 << 32 } else { rng.draw() % 3 };
    let flags = if rng.draw().is_multiple_of(8) { rng.draw() as u8 } else { 0 };
    let mut request = Request {
        flags: RequestFlags(flags),
        lifetime,
        home,
        home_agent: AGENT,
        care_of,
        identification: WALL.plus(now.since(Instant::ZERO)).to_ntp().wrapping_add(off),
        extensions: Vec::new(),
    };
    request.sign(Between::MobileHome, &association(rng));
    request
}

fn socket(address: Ipv4Addr) -> SocketAddrV4 {
    SocketAddrV4::new(address, PORT)
}

pub(super) fn to_home_agent(rng: &mut Rng, now: Instant) -> Post {
    if rng.draw().is_multiple_of(16) {
        let reply = request(rng, now).reply(Code::Accepted);
        let bytes = datagram(socket(VISITED), socket(AGENT), 64, &reply.emit());
        return Post { rx: rx(2, PuntReason::Listen), from: Mac([2; 6]), bytes };
    }
    if rng.draw().is_multiple_of(16) {
        return solicitation(rng);
    }
    let request = request(rng, now);
    let at_home = request.care_of == request.home;
    let src = if at_home { request.home } else { VISITED };
    let bytes = datagram(socket(src), socket(AGENT), 64, &request.emit());
    Post { rx: rx(if at_home { 1 } else { 2 }, PuntReason::Listen), from: Mac([2; 6]), bytes }
}

pub(super) fn to_foreign_agent(rng: &mut Rng, now: Instant) -> Post {
    if rng.draw().is_multiple_of(4) {
        return solicitation(rng);
    }
    let request = request(rng, now);
    let iface = if rng.draw().is_multiple_of(16) { 2 } else { 1 };
    let from = Mac([2, 0, 0, 0, 0, (rng.draw() % 3) as u8]);
    let bytes = datagram(socket(request.home), socket(VISITED), 255, &request.emit());
    Post { rx: rx(iface, PuntReason::Listen), from, bytes }
}

/// Returns what comes to a foreign agent that keeps packets: also packets in the home agent's tunnel.
pub(super) fn to_keeping_agent(rng: &mut Rng, now: Instant) -> Post {
    if rng.draw().is_multiple_of(2) {
        return to_foreign_agent(rng, now);
    }
    let [from, to] = [FAR, HOSTS[(rng.draw() % 2) as usize]].map(|address| SocketAddrV4::new(address, 9000));
    let inner = udp::packet(from, to, &vec![0; (rng.draw() % 1400) as usize]);
    let bytes = ipip::encapsulate(&inner, AGENT, VISITED, 1).unwrap();
    Post { rx: rx(2, PuntReason::Action), from: Mac([2; 6]), bytes }
}

fn solicitation(rng: &mut Rng) -> Post {
    let src = [HOSTS[0], Ipv4Addr::UNSPECIFIED][(rng.draw() % 2) as usize];
    let bytes = Solicitation { src, dst: ALL_ROUTERS }.emit();
    Post { rx: rx(1, PuntReason::Listen), from: Mac([2, 0, 0, 0, 0, 7]), bytes }
}

pub(super) fn to_mobile_node(rng: &mut Rng, _now: Instant) -> Post {
    let src = [AGENT, VISITED, FAR][(rng.draw() % 3) as usize];
    let home = src == AGENT;
    let busy = if rng.draw().is_multiple_of(8) { AgentFlags::BUSY } else { AgentFlags::default() };
    let said = Advertisement {
        src,
        dst: ALL_SYSTEMS,
        registered_only: rng.draw().is_multiple_of(4),
        lifetime: (rng.draw() % 4) as u16,
        routers: vec![(src, 0)],
        sequence: (rng.draw() % 512) as u16,
        registration_lifetime: 300,
        flags: busy | if home { AgentFlags::HOME } else { AgentFlags::FOREIGN },
        care_of: if home { Vec::new() } else { vec![src] },
        prefix_lengths: Some(vec![24]),
        challenge: None,
    };
    Post { rx: rx(1, PuntReason::Listen), from: Mac([2, 0, 0, 0, 0, src.octets()[1]]), bytes: said.emit() }
}

/// As [`to_mobile_node`], by one of two interfaces.
pub(super) fn to_two_radios(rng: &mut Rng, now: Instant) -> Post {
    let post = to_mobile_node(rng, now);
    Post { rx: rx(1 + (rng.draw() % 2) as u16, PuntReason::Listen), ..post }
}

/// As [`answer`] to a mobile node, by one of two interfaces.
pub(super) fn answer_two_radios(rng: &mut Rng, sent: &Packet) -> Option<Post> {
    let post = answer(rng, sent, HOSTS[0])?;
    Some(Post { rx: rx(1 + (rng.draw() % 2) as u16, PuntReason::Listen), ..post })
}

/// Returns the reply to a request that the role sent, as it arrives at `to`.
pub(super) fn answer(rng: &mut Rng, sent: &Packet, to: Ipv4Addr) -> Option<Post> {
    let (request, reply) = reply(rng, sent)?;
    Some(answered(&request, &reply, to))
}

/// As [`answer`] to a foreign agent with an association, mostly with a key.
pub(super) fn answer_with_key(rng: &mut Rng, sent: &Packet) -> Option<Post> {
    let (request, mut reply) = reply(rng, sent)?;
    let (scope, foreign) = (KeyScope::of(&request)?, association(rng));
    let key = DistributedKey::new(&scope, &association(rng), &foreign).extension(&Numbers::default());
    reply.extensions.extend(Some(key).filter(|_| !rng.draw().is_multiple_of(4)));
    reply.sign(Between::ForeignHome, &foreign);
    Some(answered(&request, &reply, VISITED))
}

fn answered(request: &Request, reply: &Reply, to: Ipv4Addr) -> Post {
    let bytes = datagram(socket(request.home_agent), socket(to), 64, &reply.emit());
    let iface = if to == VISITED { 2 } else { 1 };
    Post { rx: rx(iface, PuntReason::Listen), from: Mac([2; 6]), bytes }
}

/// Returns a request that the role sent, and a reply to it.
fn reply(rng: &mut Rng, sent: &Packet) -> Option<(Request, Reply)> {
    let received = Received::parse(&sent.bytes).ok()?;
    let Registration::Request(request) = received.message else { return None };
    let codes = [0, 0, 0, 1, 66, 69, 133, 136];
    let mut reply = request.reply(Code::from_number(codes[(rng.draw() % 8) as usize]));
    reply.lifetime = reply.lifetime.min((rng.draw() % 8) as u16);
    if rng.draw().is_multiple_of(8) {
        reply.identification ^= 1;
    }
    reply.sign(Between::MobileHome, &association(rng));
    Some((request, reply))
}
