//! Inputs for the roles of DHCP.

use crate::laws::player::{Post, command, rx};
use ::dhcp::message::{CLIENT_PORT, Kind, Message, SERVER_PORT};
use node::{Command, Notification, PuntReason, Rng};
use wire::ipv4::Header;
use wire::{Iface, Instant, Ipv4Addr, Mac, Packet, SocketAddrV4, udp};

pub(super) const SERVER_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 3, 0, 1);
const OFFERED: Ipv4Addr = Ipv4Addr::new(10, 3, 0, 100);
const STRANGER: Mac = Mac([2, 0, 0, 0, 0, 0x66]);

/// The waits are short, so that they end within a script.
pub(super) const CLIENT: &str = "interface = 'eth'\nretry = '500ms'\nprobe_wait = '10ms'\n";
pub(super) const SERVER: &str = "interface = 'eth'\naddress = '10.3.0.1/24'\nfirst = '10.3.0.100'\nlast = '10.3.0.101'\n\
    lease = '4s'\nprobe_wait = '10ms'\n";

pub(super) const NEWS: &[Notification] = &[
    Notification::AddressInUse(Iface(1), OFFERED, STRANGER),
    Notification::AddressInUse(Iface(1), Ipv4Addr::new(10, 3, 0, 101), STRANGER),
];

pub(super) fn commands() -> Vec<Command> {
    vec![command("release", &[]), command("renew", &[])]
}

fn one_of<T: Copy>(rng: &mut Rng, all: &[T]) -> T {
    all[(rng.draw() % all.len() as u64) as usize]
}

fn post(from: (Ipv4Addr, u16), to: (Ipv4Addr, u16), message: &Message) -> Post {
    let [src, dst] = [from, to].map(|(address, port)| SocketAddrV4::new(address, port));
    Post { rx: rx(1, PuntReason::Listen), from: STRANGER, bytes: udp::packet(src, dst, &message.emit()) }
}

/// Returns a message of a server that answers `asked` correctly, or nearly.
fn from_server(rng: &mut Rng, asked: &Message) -> Post {
    let kind = one_of(rng, &[Kind::Offer, Kind::Offer, Kind::Ack, Kind::Ack, Kind::Ack, Kind::Nak]);
    let server = one_of(rng, &[SERVER_ADDRESS, SERVER_ADDRESS, SERVER_ADDRESS, Ipv4Addr::new(10, 3, 0, 2)]);
    let message = Message {
        yours: asked.requested.unwrap_or(OFFERED),
        server: Some(server),
        lease: Some(one_of(rng, &[0, 1, 4, 4, 60, u32::MAX])),
        prefix: Some(24),
        router: Some(SERVER_ADDRESS),
        ..Message::new(kind, asked.transaction, asked.client)
    };
    post((server, SERVER_PORT), (Ipv4Addr::BROADCAST, CLIENT_PORT), &message)
}

/// Returns a server's message that the client did not request.
pub(super) fn to_client(rng: &mut Rng, _now: Instant) -> Post {
    let client = one_of(rng, &[STRANGER, Mac([2, 0, 0, 0, 0, 1])]);
    let asked = Message::new(Kind::Discover, rng.draw() as u32, client);
    from_server(rng, &asked)
}

/// Returns a server's answer to the last message of the client.
pub(super) fn answer(rng: &mut Rng, sent: &Packet) -> Option<Post> {
    let (ip, payload) = Header::parse(&sent.bytes).ok()?;
    let asked = Message::of(&ip, payload, SERVER_PORT).ok()?;
    Some(from_server(rng, &asked))
}

/// Returns a message of one of three clients.
pub(super) fn to_server(rng: &mut Rng, _now: Instant) -> Post {
    let kinds = [Kind::Discover, Kind::Request, Kind::Request, Kind::Release, Kind::Decline, Kind::Inform];
    let address = Ipv4Addr::new(10, 3, 0, 99 + (rng.draw() % 4) as u8);
    let is_new = rng.draw().is_multiple_of(2);
    let message = Message {
        requested: Some(address).filter(|_| is_new),
        current: if is_new { Ipv4Addr::UNSPECIFIED } else { address },
        server: one_of(rng, &[None, Some(SERVER_ADDRESS), Some(SERVER_ADDRESS), Some(OFFERED)]),
        broadcast: rng.draw().is_multiple_of(2),
        ..Message::new(one_of(rng, &kinds), 7, Mac([2, 0, 0, 0, 0, 0xa + (rng.draw() % 3) as u8]))
    };
    post((message.current, CLIENT_PORT), (Ipv4Addr::BROADCAST, SERVER_PORT), &message)
}
