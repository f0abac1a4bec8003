//! Errors that routers report about our segments (RFC 792).

use node::Tuple;
use wire::icmp::{Message, Quote};
use wire::{Malformed, Reader, Seq, SocketAddrV4};

/// Destination unreachable.
const UNREACHABLE: u8 = 3;
/// Its codes: no path to the network, or to the host.
const NO_PATH: [u8; 2] = [0, 1];
/// Its code: fragmentation needed and DF set.
const TOO_BIG: u8 = 4;

/// A segment of ours did not arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Unreachable {
    /// Its connection, as we see it.
    pub(crate) tuple: Tuple,
    /// Its sequence number.
    pub(crate) seq: Seq,
    /// There is no path.
    pub(crate) no_path: bool,
    /// It was too big: its length, and what the router forwards, zero if it does not say (RFC 1191, section 4).
    pub(crate) too_big: Option<(u16, u16)>,
}

impl Unreachable {
    /// Reads an ICMP message; `None` when it is about something else.
    pub(crate) fn parse(payload: &[u8]) -> Result<Option<Self>, Malformed> {
        let message = Message::parse(payload)?;
        if message.kind != UNREACHABLE {
            return Ok(None);
        }
        let quote = Quote::of(&message)?;
        if quote.protocol != tcp::PROTOCOL {
            return Ok(None);
        }
        // Behind four bytes of the error's own, the quoted header's third and fourth are the length.
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
