//! Inputs for Indirect TCP's roles.

use super::{FAR, HOSTS};
use crate::laws::player::{Post, WALL, rx};
use ::indirect_tcp::message::{
    ConnectionId, Datagram, Entry, ForwardPointer, ForwardReply, Greeting, GreetingReply, Lost, PORT, Signed,
    Welcome,
};
use auth::Key;
use node::{Addr, Notification, PuntReason, Rng};
use wire::ipv4::Header;
use wire::{Instant, Ipv4Addr, Mac, Packet, SocketAddrV4, udp};

pub(super) const LEFT: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
const RIGHT: Ipv4Addr = Ipv4Addr::new(10, 3, 0, 1);

/// The time limits are short, so that they end within a script.
pub(super) const SUPPORT_ROUTER: &str = r#"
    address = "10.1.0.1"
    patience = "500ms"
    silence = "1s"
    hosts = [
        { address = "10.1.0.7", key = "000102030405060708090a0b0c0d0e0f" },
        { address = "10.1.0.8", key = "000102030405060708090a0b0c0d0e0f" },
    ]
    routers = [{ address = "10.3.0.1", key = "000102030405060708090a0b0c0d0e0f" }]
"#;
pub(super) const MOBILE_HOST: &str = r#"
    address = "10.1.0.7"
    key = "000102030405060708090a0b0c0d0e0f"
"#;

pub(super) const NEWS: &[Notification] = &[Notification::Gateway(LEFT), Notification::Gateway(RIGHT)];

fn key(rng: &mut Rng) -> Key {
    let wrong = u8::from(rng.draw().is_multiple_of(8));
    Key::new((wrong..16 + wrong).collect::<Vec<u8>>())
}

const fn id(number: u32) -> ConnectionId {
    ConnectionId { number, call: 1 }
}

fn entry(host: Ipv4Addr, number: u32) -> Entry {
    let port = 49_152 + number as u16;
    let (host, router) = (SocketAddrV4::new(host, port), SocketAddrV4::new(RIGHT, PORT));
    let peer = SocketAddrV4::new(FAR, 80);
    Entry { id: id(number), host, router, peer, closing: false, calling: false, unanswered: false }
}

/// Returns a greeting. The sequence numbers of greetings differ little, so that some greetings come too late.
fn greeting(rng: &mut Rng, now: Instant, router: Ipv4Addr) -> Signed<Greeting> {
    let host = HOSTS[(rng.draw() % 6).saturating_sub(3) as usize];
    let late = rng.draw() % 3_000_000_000;
    let sequence = WALL.plus(now.since(Instant::ZERO)).0.cast_unsigned() - late;
    let entries = (0..rng.draw() % 4).map(|number| entry(host, number as u32)).collect();
    let previous = [vec![LEFT], vec![RIGHT], Vec::new()][(rng.draw() % 3) as usize].clone();
    Signed::new(
        Greeting { host, sequence, router, previous, entries, again: false, codes: Vec::new() },
        &key(rng),
    )
}

pub(super) fn to_support_router(rng: &mut Rng, now: Instant) -> Post {
    let (src, payload) = match rng.draw() % 8 {
        0..=2 => {
            let greeting = greeting(rng, now, LEFT);
            (greeting.message.host, greeting.emit())
        }
        3 | 4 => {
            let greeting = greeting(rng, now, RIGHT);
            let pointer = ForwardPointer { new: RIGHT, old: LEFT, greeting };
            (RIGHT, Signed::new(pointer, &key(rng)).emit())
        }
        5 => {
            let (old, host) = (RIGHT, HOSTS[0]);
            let reply = ForwardReply { old, host, sequence: rng.draw() % 4, connections: 1 };
            (RIGHT, Signed::new(reply, &key(rng)).emit())
        }
        6 => (
            RIGHT,
            Signed::new(Lost { host: HOSTS[0], router: RIGHT, connections: vec![id(1)] }, &key(rng)).emit(),
        ),
        // A TCP segment that the router intercepts.
        _ => {
            let header = Header::new(6, FAR, HOSTS[0]);
            let bytes = header.emit(&[0, 80, 0xc0, 0, 0, 0, 0, 0]);
            return Post { rx: rx(1, PuntReason::Listen), from: Mac([2; 6]), bytes };
        }
    };
    let bytes = udp::packet(Addr::new(src, PORT), Addr::new(LEFT, PORT), &payload);
    Post { rx: rx(1, PuntReason::Listen), from: Mac([2, 0, 0, 0, 0, src.octets()[3]]), bytes }
}

pub(super) fn to_mobile_host(rng: &mut Rng, _now: Instant) -> Post {
    let connections = vec![id((rng.draw() % 4) as u32)];
    let lost = Lost { host: HOSTS[0], router: LEFT, connections };
    let payload = Signed::new(lost, &key(rng)).emit();
    let bytes = udp::packet(Addr::new(LEFT, PORT), Addr::new(HOSTS[0], PORT), &payload);
    Post { rx: rx(1, PuntReason::Listen), from: Mac([2; 6]), bytes }
}

/// Returns the answer to a greeting that the role sent.
pub(super) fn answer(rng: &mut Rng, sent: &Packet) -> Option<Post> {
    let (ip, payload) = Header::parse(&sent.bytes).ok()?;
    let datagram = udp::Datagram::parse(payload, ip.src, ip.dst).ok()?;
    let Ok(Datagram::Greeting(greeting)) = Datagram::parse(datagram.payload) else { return None };
    let Greeting { host, sequence, router, .. } = greeting.message;
    let welcome = [Welcome::Ready, Welcome::Stale][(rng.draw() % 2) as usize];
    let sequence = sequence + rng.draw() % 2;
    let reply = Signed::new(GreetingReply { host, sequence, router, welcome }, &key(rng));
    let bytes = udp::packet(Addr::new(router, PORT), Addr::new(host, PORT), &reply.emit());
    Some(Post { rx: rx(1, PuntReason::Listen), from: Mac([2; 6]), bytes })
}
