//! SIGMA: the start and the abort of SCTP associations, changes of their addresses, and updates of location managers.
//! Data, acknowledgments and heartbeats are not control messages.

use ::sctp::message::{Action, Address, AsconfAck, Chunk, Packet, Request, Response};
use ::sigma::message::{Message as Dns, PORT, Rcode, Received, ResourceRecord, class, opcode};
use std::fmt;
use wire::ipv4::{self, Header};
use wire::{Ipv4Addr, udp};

/// A control message, as the text by which it is shown and compared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Message(String);

impl Message {
    /// Returns the control message in an IP packet, and the address of the mobile node that the message is about.
    pub(super) fn of(ip: &Header, payload: &[u8]) -> Option<(Ipv4Addr, Self)> {
        let (from_mobile, said) = match ip.protocol {
            ::sctp::PROTOCOL => of_sctp(payload)?,
            ipv4::UDP => of_dns(ip, payload)?,
            _ => return None,
        };
        Some((if from_mobile { ip.src } else { ip.dst }, Self(said)))
    }

    pub(super) fn constant(&self, fields: &mut Vec<(&'static str, String)>) {
        fields.push(("says", self.0.clone()));
    }

    pub(super) fn write(&self, f: &mut fmt::Formatter<'_>, src: Ipv4Addr, dst: Ipv4Addr) -> fmt::Result {
        write!(f, "{}, {src} > {dst}", self.0)
    }
}

/// Returns the text of the first control chunk, and whether the mobile node sent the chunk. The mobile node opens the
/// associations and changes their addresses. An ABORT counts as sent to the mobile node.
fn of_sctp(payload: &[u8]) -> Option<(bool, String)> {
    let packet = Packet::parse(payload).ok()?;
    packet.chunks.iter().find_map(|chunk| match chunk {
        Chunk::Init(_) => Some((true, "SCTP INIT".to_owned())),
        Chunk::InitAck(_) => Some((false, "SCTP INIT ACK".to_owned())),
        Chunk::CookieEcho(_) => Some((true, "SCTP COOKIE ECHO".to_owned())),
        Chunk::CookieAck => Some((false, "SCTP COOKIE ACK".to_owned())),
        Chunk::Abort { .. } => Some((false, "SCTP ABORT".to_owned())),
        Chunk::Asconf(asconf) => {
            let wishes: Vec<String> = asconf.requests.iter().map(wish).collect();
            Some((true, format!("SCTP ASCONF {}", wishes.join(", "))))
        }
        Chunk::AsconfAck(ack) => Some((false, format!("SCTP ASCONF-ACK {}", outcome(ack)))),
        _ => None,
    })
}

fn wish(request: &Request) -> String {
    let Request::Change { action, address, .. } = request else {
        return "a change of unknown type".to_owned();
    };
    let what = match action {
        Action::Add => "add",
        Action::Delete => "delete",
        Action::SetPrimary => "make primary",
    };
    match address {
        Address::Ipv4(address) => format!("{what} {address}"),
        Address::Ipv6(_) => format!("{what} an IPv6 address"),
    }
}

fn outcome(ack: &AsconfAck) -> &'static str {
    let refused = ack.responses.iter().any(|response| matches!(response, Response::Refused(..)));
    if refused { "refused" } else { "done" }
}

fn of_dns(ip: &Header, payload: &[u8]) -> Option<(bool, String)> {
    let datagram = udp::Datagram::parse(payload, ip.src, ip.dst).ok()?;
    if datagram.src_port != PORT && datagram.dst_port != PORT {
        return None;
    }
    let Received { message: Dns { header, authority, .. }, .. } = Received::parse(datagram.payload).ok()?;
    if header.opcode != opcode::UPDATE {
        return None;
    }
    if header.is_response {
        let rcode = Rcode::of(header.rcode).map_or("an unknown code", Rcode::name);
        return Some((false, format!("DNS UPDATE answered with {rcode}")));
    }
    let is_new = |record: &&ResourceRecord| record.class == class::IN;
    let new = authority
        .iter()
        .filter(is_new)
        .filter_map(|record| Some(format!("{} is at {}", record.name, record.as_address()?)));
    Some((true, format!("DNS UPDATE {}", new.collect::<Vec<_>>().join(", "))))
}
