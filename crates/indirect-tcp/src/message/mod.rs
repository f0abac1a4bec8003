//! The messages between mobile hosts and support routers: layout and authentication. Where the paper (Bakre and
//! Badrinath, 1995) gives contents only, the layout is defined here. Numbers are big-endian. Addresses are IPv4; in an
//! i-entry and in a socket's state they are mapped into IPv6 (RFC 4291, section 2.5.5.2).
//!
//! - [`Greeting`], [`GreetingReply`], [`ForwardPointer`], [`ForwardReply`], [`Lost`]: datagrams to UDP port [`PORT`].
//! - [`Call`], [`Answer`]: the first messages on a connection of a mobile host to TCP port [`PORT`] of its router.
//! - [`Frame`]: the messages on the connection between two routers, during a handoff.

mod call;
mod entry;
mod frame;
mod greeting;
mod pointer;
mod signed;
mod state;
#[cfg(test)]
mod tests;

pub use call::{Answer, Call, Code};
pub use entry::{ConnectionId, Entry};
pub use frame::{Body, CODE, Direction, Frame, FrameAuth, Frames, Halves, LONGEST, Verdict};
pub use greeting::{Greeting, GreetingReply, Lost, Welcome};
pub use pointer::{ForwardPointer, ForwardReply};
pub use signed::{Message, Signed};
pub use state::{Side, SocketState};

use wire::{Ipv4Addr, Malformed, Reader, SocketAddrV4};

/// The UDP and TCP port of support routers (not assigned by IANA).
pub const PORT: u16 = 4954;
/// The limit of connections of one mobile host. With it, a greeting fits one datagram.
pub const CONNECTIONS: usize = 16;
/// The limit of earlier routers that a greeting names. A router that the greeting does not name hands over nothing.
pub const PREVIOUS: usize = 16;

/// A message in a UDP datagram to or from [`PORT`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Datagram {
    /// Type 1: a greeting, from a mobile host to its new router.
    Greeting(Signed<Greeting>),
    /// Type 2: the answer of the router to a greeting.
    GreetingReply(Signed<GreetingReply>),
    /// Type 3: a forward pointer, from a new router to an earlier one.
    ForwardPointer(Signed<ForwardPointer>),
    /// Type 4: the answer of the earlier router to a forward pointer.
    ForwardReply(Signed<ForwardReply>),
    /// Type 5: a report of lost connections, from a router to a mobile host.
    Lost(Signed<Lost>),
}

impl Datagram {
    /// Parses a datagram's payload, or returns an error if it is malformed or of an unknown type. Does not check the
    /// signature.
    pub fn parse(payload: &[u8]) -> Result<Self, Malformed> {
        match payload.get(3) {
            Some(&Greeting::TYPE) => Signed::parse(payload).map(Self::Greeting),
            Some(&GreetingReply::TYPE) => Signed::parse(payload).map(Self::GreetingReply),
            Some(&ForwardPointer::TYPE) => Signed::parse(payload).map(Self::ForwardPointer),
            Some(&ForwardReply::TYPE) => Signed::parse(payload).map(Self::ForwardReply),
            Some(&Lost::TYPE) => Signed::parse(payload).map(Self::Lost),
            Some(_) => Err(Malformed("itcp_unknown_type")),
            None => Err(Malformed("itcp_truncated")),
        }
    }
}

fn address(r: &mut Reader<'_>) -> Result<Ipv4Addr, Malformed> {
    r.array().map(Ipv4Addr::from_octets)
}

fn socket(r: &mut Reader<'_>) -> Result<SocketAddrV4, Malformed> {
    Ok(SocketAddrV4::new(address(r)?, r.u16()?))
}

fn put_socket(out: &mut Vec<u8>, at: SocketAddrV4) {
    out.extend(at.ip().octets());
    out.extend(at.port().to_be_bytes());
}

/// Reads an IPv4 address that is mapped into IPv6 (16 bytes).
fn mapped(r: &mut Reader<'_>) -> Result<Ipv4Addr, Malformed> {
    let [zeros @ .., a, b, c, d] = r.array::<16>()?;
    if zeros != [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff] {
        return Err(Malformed("itcp_address_not_mapped"));
    }
    Ok(Ipv4Addr::new(a, b, c, d))
}

fn put_mapped(out: &mut Vec<u8>, at: Ipv4Addr) {
    out.extend([0; 10]);
    out.extend([0xff, 0xff]);
    out.extend(at.octets());
}

fn zeros(r: &mut Reader<'_>, n: usize) -> Result<(), Malformed> {
    if r.take(n)?.iter().all(|byte| *byte == 0) { Ok(()) } else { Err(Malformed("itcp_reserved")) }
}
