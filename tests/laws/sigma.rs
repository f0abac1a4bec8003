//! Inputs for SIGMA's roles.

use crate::laws::player::{Post, WALL, rx};
use ::sctp::message::{Chunk, Init, Packet};
use ::sigma::message::{Header, Message, Name, Question, ResourceRecord, TsigKey, class, kind, opcode};
use auth::Key;
use node::{PuntReason, Rng};
use wire::{Instant, Ipv4Addr, Mac, ipv4};

pub(super) const MANAGER: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);

/// The lifetimes are short, so that they end within a script.
pub(super) const LOCATION_MANAGER: &str = r#"
    address = "10.1.0.2"
    zone = "sigma.example"
    lifetime = "2s"
    updates = 2
    mobile_nodes = [
        { name = "a.sigma.example", key = "000102030405060708090a0b0c0d0e0f" },
        { name = "b.sigma.example", key = "000102030405060708090a0b0c0d0e0f" },
    ]
"#;

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn one_of<T: Copy>(rng: &mut Rng, all: &[T]) -> T {
    all[(rng.draw() % all.len() as u64) as usize]
}

/// Returns a query or an update, signed by one of several names, with a wrong key, or not at all.
pub(super) fn to_location_manager(rng: &mut Rng, now: Instant) -> Vec<u8> {
    const NAMES: [&str; 5] =
        ["a.sigma.example", "a.sigma.example", "b.sigma.example", "sigma.example", "elsewhere.example"];
    let (own, asked) = (one_of(rng, &NAMES), one_of(rng, &NAMES));
    let id = rng.draw() as u16;
    let is_update = !rng.draw().is_multiple_of(4);
    let opcode = if is_update { opcode::UPDATE } else { one_of(rng, &[opcode::QUERY, 4]) };
    let header = Header { id, opcode, is_response: rng.draw().is_multiple_of(16), ..Header::default() };
    let record = |class, kind, data| ResourceRecord { name: name(own), kind, class, ttl: 0, data };
    let mut message = Message { header, ..Message::default() };
    if is_update {
        let zone = one_of(rng, &["sigma.example", "sigma.example", "sigma.example", "example"]);
        message.questions.push(Question { name: name(zone), kind: kind::SOA, class: class::IN });
        if rng.draw().is_multiple_of(8) {
            message.answers.push(record(class::NONE, kind::A, Vec::new()));
        }
        message.authority.push(record(class::ANY, kind::A, Vec::new()));
        message.authority.push(record(class::IN, kind::A, vec![10, 1, 0, rng.draw() as u8]));
    } else {
        let kind = one_of(rng, &[kind::A, kind::TXT, kind::SOA, kind::ANY]);
        message.questions.push(Question { name: name(asked), kind, class: class::IN });
    }
    let bytes = message.emit();
    if !is_update || rng.draw().is_multiple_of(16) {
        return bytes;
    }
    let wrong = u8::from(rng.draw().is_multiple_of(8));
    let key = TsigKey { name: name(own), secret: Key::new((wrong..16 + wrong).collect::<Vec<_>>()) };
    let seconds = (WALL.0 / 1_000_000_000).cast_unsigned() + now.0 / 1_000_000_000;
    let off = one_of(rng, &[0, 0, 0, 0, 0, 1, 1000]);
    key.sign(&bytes, None, seconds - off).0
}

pub(super) const OWN: Ipv4Addr = Ipv4Addr::new(10, 1, 8, 100);
pub(super) const CORRESPONDENT: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 9);

pub(super) const MOBILE_NODE: &str = r#"
    radios = ["air", "air2"]
    address_delay = "1ms"
    park = "2s"
    signal = { hold = "0s", dwell = "100ms", hysteresis = 1, prepare = -90, go = -85, lost = -95 }
    networks = [
        { name = "left", cell = 1, address = "10.1.8.100/24", router = "10.1.8.1" },
        { name = "right", cell = 2, address = "10.1.6.100/24", router = "10.1.6.1" },
    ]
    [location_manager]
    address = "10.1.0.2"
    zone = "sigma.example"
    name = "a.sigma.example"
    key = "000102030405060708090a0b0c0d0e0f"
"#;

/// Returns a packet that begins an association, or a packet that belongs to none.
fn of_sctp(rng: &mut Rng, own: Ipv4Addr) -> Post {
    let tag = rng.draw() as u32;
    let init = Init { tag: tag | 1, a_rwnd: 9000, outbound: 2, inbound: 2, tsn: tag, parameters: Vec::new() };
    let (tag, chunk) = match rng.draw() % 8 {
        0..=3 => (0, Chunk::Init(init)),
        4 => (tag, Chunk::InitAck(init)),
        5 => (tag, Chunk::Heartbeat(vec![0, 1, 0, 8, 1, 2, 3, 4])),
        6 => (tag, Chunk::CookieAck),
        _ => (tag, Chunk::Abort { reflected: false, causes: Vec::new() }),
    };
    let packet = Packet { src_port: 5000, dst_port: 9000, tag, chunks: vec![chunk] };
    let header = ipv4::Header::new(::sctp::PROTOCOL, CORRESPONDENT, own);
    Post { rx: rx(1, PuntReason::Listen), from: Mac([2, 0, 0, 0, 0, 1]), bytes: header.emit(&packet.emit()) }
}

pub(super) fn to_mobile_node(rng: &mut Rng, _now: Instant) -> Post {
    of_sctp(rng, OWN)
}

pub(super) fn to_correspondent(rng: &mut Rng, _now: Instant) -> Post {
    of_sctp(rng, CORRESPONDENT)
}
