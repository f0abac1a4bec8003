//! ICMP errors of routers about segments of this host (RFC 792).

use node::Tuple;
use wire::icmp::{Message, Quote};
use wire::{Malformed, Reader, Seq, SocketAddrV4};

/// The type of "destination unreachable".
const UNREACHABLE: u8 = 3;
/// The codes of "network unreachable" and "host unreachable".
const NO_PATH: [u8; 2] = [0, 1];
/// The code of "fragmentation needed and DF set".
const TOO_BIG: u8 = 4;

/// An ICMP error about a segment of this host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Unreachable {
    /// The segment's connection, as this host sees it.
    pub(crate) tuple: Tuple,
    /// The segment's sequence number.
    pub(crate) seq: Seq,
    /// Whether a router has no path to the destination.
    pub(crate) no_path: bool,
    /// If the segment was too big: the length of its datagram, and the MTU of the next hop. The MTU is zero if the
    /// router does not report it (RFC 1191, section 4).
    pub(crate) too_big: Option<(u16, u16)>,
}

impl Unreachable {
    /// Parses an ICMP message. `None` if it is not a "destination unreachable" error about TCP.
    pub(crate) fn parse(payload: &[u8]) -> Result<Option<Self>, Malformed> {
        let message = Message::parse(payload)?;
        if message.kind != UNREACHABLE {
            return Ok(None);
        }
        let quote = Quote::of(&message)?;
        if quote.protocol != tcp::PROTOCOL {
            return Ok(None);
        }
        // The ICMP body has four bytes before the quoted IP header. The length of the quoted datagram is in bytes 2 and
        // 3 of the header.
        let len =
            Reader::new(message.body.get(6..).unwrap_or_default(), Malformed("icmp_truncated")).u16()?;
        let mut r = Reader::new(quote.payload, Malformed("icmp_quote_truncated"));
        let local = SocketAddrV4::new(quote.src, r.u16()?);
        let remote = SocketAddrV4::new(quote.dst, r.u16()?);
        let too_big = (message.code == TOO_BIG).then_some((len, quote.mtu));
        let no_path = NO_PATH.contains(&message.code);
        Ok(Some(Self { tuple: Tuple { local, remote }, seq: Seq(r.u32()?), no_path, too_big }))
    }
}
