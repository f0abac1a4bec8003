//! The messages between agents and mobile nodes: their bytes and their authentication.
//!
//! - [`Advertisement`] and [`Solicitation`]: ICMP messages (RFC 1256; RFC 5944, section 2).
//! - [`Request`] and [`Reply`]: messages to or from UDP port 434 (RFC 5944, section 3), which may end with
//!   [`Extension`]s.
//! - [`Binding`]: messages of route optimization, to or from UDP port 434 (draft-ietf-mobileip-optim-09). Their
//!   [`Numbers`] are configurable. [`PreviousAgent`] is an extension of a request.
//! - [`DistributedKey`]: an extension of a reply, for the foreign agent (RFC 3115).
//! - [`BufferControl`]: asks a foreign agent to keep packets (draft-mkhalil-mobileip-buffer-00).
//!
//! Extensions of advertisements and of registration messages have separate type numbers. A message with an extension of
//! an unknown type from 0 to 127 is dropped without an answer. An extension of an unknown type from 128 to 255 is
//! skipped (RFC 5944, section 1.8).

mod advertisement;
mod binding;
mod buffer_control;
mod code;
mod distributed_key;
mod extension;
mod generalized;
mod numbers;
mod previous_agent;
mod reply;
mod request;
mod solicitation;

pub use advertisement::{ADVERTISEMENT, Advertisement, AgentFlags};
pub use binding::{Acknowledge, Binding, BindingRequest, Status, Update, Warning};
pub use buffer_control::{Asks, BufferControl};
pub use code::Code;
pub use distributed_key::{DistributedKey, KeyScope};
pub use extension::{Algorithm, Association, Authentication, Between, Extension};
pub use generalized::Generalized;
pub use numbers::Numbers;
pub use previous_agent::PreviousAgent;
pub use reply::Reply;
pub use request::{Request, RequestFlags};
pub use solicitation::{SOLICITATION, Solicitation};

use wire::ipv4::{self, Header};
use wire::{Ipv4Addr, Malformed, Reader, SocketAddrV4, icmp, udp};

/// The UDP port to which Registration Requests are sent (RFC 5944, section 3.3).
pub const PORT: u16 = 434;
/// The value of a lifetime field that means a registration without end (RFC 5944, section 3.3).
pub const INFINITE: u16 = 0xffff;
/// The group of all systems on this subnet (RFC 1112).
pub const ALL_SYSTEMS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 1);
/// The group of all routers on this subnet (RFC 1256).
pub const ALL_ROUTERS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 2);
/// The group of all mobility agents on this subnet (RFC 5944, section 2.3).
pub const ALL_AGENTS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 11);

/// A registration message: a request or a reply.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Registration {
    /// A Registration Request, message type 1 (RFC 5944, section 3.3).
    Request(Request),
    /// A Registration Reply, message type 3 (RFC 5944, section 3.4).
    Reply(Reply),
}

impl Registration {
    /// Parses the UDP payload of a datagram to or from [`PORT`]. It is an error if the message is malformed.
    pub fn parse(payload: &[u8]) -> Result<Self, Malformed> {
        Self::parse_knowing(payload, &[])
    }

    /// As [`Registration::parse`], but extensions of a request that have one of the types `known` are accepted.
    pub fn parse_knowing(payload: &[u8], known: &[u8]) -> Result<Self, Malformed> {
        match payload.first() {
            Some(&request::TYPE) => Request::parse_knowing(payload, known).map(Self::Request),
            Some(&reply::TYPE) => Reply::parse(payload).map(Self::Reply),
            Some(_) => Err(Malformed("mip_unknown_type")),
            None => Err(Malformed("mip_empty")),
        }
    }
}

/// A registration message with its IP header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Received {
    /// The IP header of the datagram.
    pub ip: Header,
    /// The UDP port of the sender, to which a reply is sent.
    pub src_port: u16,
    /// The registration message in the UDP payload.
    pub message: Registration,
}

impl Received {
    /// Parses a whole IPv4 datagram. It is an error if the datagram is a fragment, is not UDP, or is malformed.
    pub fn parse(packet: &[u8]) -> Result<Self, Malformed> {
        let (ip, payload) = Header::parse(packet)?;
        Self::of(ip, payload)
    }

    /// Parses `payload`, the payload of the datagram with header `ip`. It is an error if the datagram is a fragment, is
    /// not UDP, or is malformed.
    pub fn of(ip: Header, payload: &[u8]) -> Result<Self, Malformed> {
        Self::knowing(ip, payload, &[])
    }

    /// As [`Received::of`], but extensions of a request that have one of the types `known` are accepted.
    pub fn knowing(ip: Header, payload: &[u8], known: &[u8]) -> Result<Self, Malformed> {
        if ip.protocol != ipv4::UDP {
            return Err(Malformed("mip_protocol"));
        }
        if ip.is_fragment() {
            return Err(Malformed("mip_fragment"));
        }
        // A wrong checksum is an error; a missing one is not (RFC 5944, section 3.1).
        let datagram = udp::Datagram::parse(payload, ip.src, ip.dst)?;
        let message = Registration::parse_knowing(datagram.payload, known)?;
        Ok(Self { ip, src_port: datagram.src_port, message })
    }

    /// Returns the address and port to which the reply is sent.
    pub const fn sender(&self) -> SocketAddrV4 {
        SocketAddrV4::new(self.ip.src, self.src_port)
    }
}

/// Returns the registration message `payload` as an IPv4 datagram with time to live `ttl`.
pub fn datagram(src: SocketAddrV4, dst: SocketAddrV4, ttl: u8, payload: &[u8]) -> Vec<u8> {
    let whole = udp::packet(src, dst, payload);
    let udp = whole.get(ipv4::HEADER..).unwrap_or_default();
    Header { ttl, ..Header::new(ipv4::UDP, *src.ip(), *dst.ip()) }.emit(udp)
}

/// Returns the code and body of an ICMP message of type `kind`. It is an error if the message is malformed or of
/// another type, or if its time to live is not 1 as RFC 5944, sections 2.1 and 2.2, require.
fn one_hop(ip: &Header, payload: &[u8], kind: u8) -> Result<(u8, Vec<u8>), Malformed> {
    if ip.protocol != ipv4::ICMP {
        return Err(Malformed("mip_protocol"));
    }
    if ip.is_fragment() {
        return Err(Malformed("mip_fragment"));
    }
    if ip.ttl != 1 {
        return Err(Malformed("mip_ttl"));
    }
    let message = icmp::Message::parse(payload)?;
    if message.kind != kind {
        return Err(Malformed("mip_icmp_type"));
    }
    Ok((message.code, message.body.to_vec()))
}

/// Reads an IPv4 address.
fn address(r: &mut Reader<'_>) -> Result<Ipv4Addr, Malformed> {
    r.array::<4>().map(Ipv4Addr::from)
}

#[cfg(test)]
mod binding_tests;
#[cfg(test)]
mod distributed_key_tests;
#[cfg(test)]
mod tests;
