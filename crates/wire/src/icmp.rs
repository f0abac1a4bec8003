//! The header that all ICMP messages share (type, code and checksum, RFC 792), and the errors that routers send.

use crate::ipv4::{self, Header};
use crate::{Malformed, Reader, checksum, fnv};
use alloc::vec::Vec;
use core::net::Ipv4Addr;

/// The length of the common header in bytes.
pub const HEADER: usize = 4;

/// An ICMP message without its checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message<'a> {
    /// The ICMP type, for example 3 for "destination unreachable".
    pub kind: u8,
    /// The ICMP code. Its meaning depends on the type.
    pub code: u8,
    /// The bytes after the checksum.
    pub body: &'a [u8],
}

impl<'a> Message<'a> {
    /// Parses the message in an IP payload. Fails if the message is truncated or its checksum is wrong.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(bytes, Malformed("icmp_truncated"));
        let (kind, code, _sum) = (r.u8()?, r.u8()?, r.u16()?);
        if checksum(bytes) != 0 {
            return Err(Malformed("icmp_checksum"));
        }
        Ok(Self { kind, code, body: r.rest() })
    }

    /// Returns the bytes of the message, with the checksum.
    pub fn emit(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER + self.body.len());
        out.extend_from_slice(&[self.kind, self.code, 0, 0]);
        out.extend_from_slice(self.body);
        let sum = checksum(&out).to_be_bytes();
        if let Some(field) = out.get_mut(2..4) {
            field.copy_from_slice(&sum);
        }
        out
    }
}

/// An error that a node reports to a packet's sender.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(C)]
pub enum IcmpError {
    /// There is no route to the destination (type 3, code 0).
    NetUnreachable,
    /// The next hop does not answer on its link (type 3, code 1). Most errors inside a tunnel become this error for the
    /// sender of the inner packet.
    HostUnreachable,
    /// The datagram does not fit the next link or tunnel, and DF forbids to fragment it (type 3, code 4).
    FragmentationNeeded {
        /// The largest datagram that would fit, in bytes (RFC 1191).
        mtu: u16,
    },
    /// The time to live would become zero (type 11, code 0).
    TimeExceeded,
    /// The receiver of fragments did not get all of them in time (type 11, code 1).
    ReassemblyTimeExceeded,
    /// A byte of the header is wrong (type 12, code 0).
    ParameterProblem {
        /// The offset of the byte in the datagram.
        pointer: u8,
    },
}

/// The type of service of an error: precedence 6, internetwork control (RFC 1812, section 4.3.2.5).
const TOS: u8 = 0xc0;
/// The longest error in bytes, IP header included (RFC 1812, section 4.3.2.3).
const LONGEST: usize = 576;
const UNREACHABLE: u8 = 3;
const EXCEEDED: u8 = 11;
const PARAMETER_PROBLEM: u8 = 12;

impl IcmpError {
    /// Returns the error datagram from `reporter` to the sender of `original`. Returns `None` if the header of
    /// `original` is malformed, or if no error may be sent (RFC 1812, section 4.3.2.7). No error may be sent about an
    /// ICMP error or a fragment other than the first. The source must be the address of one host, and the destination
    /// must not be a group or 255.255.255.255. The caller must check that the packet was not sent to the broadcast
    /// address of a link's prefix, or in a broadcast frame.
    pub fn about(self, original: &[u8], reporter: Ipv4Addr) -> Option<Vec<u8>> {
        Header::parse(original).ok()?;
        self.about_quoted(original, reporter)
    }

    /// Returns the error datagram from `reporter` to the sender of `original`. Here `original` contains only the first
    /// bytes of a datagram, as in the quotation of an ICMP error. Returns `None` if the quotation is malformed, or if
    /// no error may be sent ([`Self::about`]). Also returns `None` if the quotation of an ICMP message ends before its
    /// type.
    pub fn about_quoted(self, original: &[u8], reporter: Ipv4Addr) -> Option<Vec<u8>> {
        let Quoted { protocol, src, dst, offset, payload, .. } = Quoted::parse(original).ok()?;
        let error_itself = protocol == ipv4::ICMP && payload.first().is_none_or(|kind| is_error(*kind));
        if error_itself || offset != 0 || is_many(dst) || !is_one_host(src) {
            return None;
        }
        let (code, rest) = match self {
            Self::NetUnreachable | Self::TimeExceeded => (0, 0),
            Self::HostUnreachable | Self::ReassemblyTimeExceeded => (1, 0),
            Self::FragmentationNeeded { mtu } => (4, u32::from(mtu)),
            Self::ParameterProblem { pointer } => (0, u32::from(pointer) << 24),
        };
        let kind = match self {
            Self::TimeExceeded | Self::ReassemblyTimeExceeded => EXCEEDED,
            Self::ParameterProblem { .. } => PARAMETER_PROBLEM,
            Self::NetUnreachable | Self::HostUnreachable | Self::FragmentationNeeded { .. } => UNREACHABLE,
        };
        let quoted = original.len().min(LONGEST - ipv4::HEADER - HEADER - 4);
        let mut body = rest.to_be_bytes().to_vec();
        body.extend_from_slice(original.get(..quoted).unwrap_or(original));
        let message = Message { kind, code, body: &body }.emit();
        // Without DF, an error also reaches its destination through links and tunnels that are smaller than the error.
        // Otherwise, a sender behind such a link would never learn the path MTU.
        let answer = Header {
            tos: TOS,
            id: identification(&message),
            dont_fragment: false,
            ..Header::new(ipv4::ICMP, reporter, src)
        };
        Some(answer.emit(&message))
    }

    /// Returns the error for the sender of a packet that was inside a tunnel when this error occurred (RFC 2003,
    /// section 4). In "fragmentation needed", the MTU becomes smaller by `overhead`, the number of bytes that the tunnel
    /// adds. All other errors become [`Self::HostUnreachable`].
    #[must_use]
    pub const fn through_tunnel(self, overhead: u16) -> Self {
        match self {
            Self::FragmentationNeeded { mtu } => {
                Self::FragmentationNeeded { mtu: mtu.saturating_sub(overhead) }
            }
            Self::NetUnreachable
            | Self::HostUnreachable
            | Self::TimeExceeded
            | Self::ReassemblyTimeExceeded
            | Self::ParameterProblem { .. } => Self::HostUnreachable,
        }
    }
}

/// Returns the identification of an error that may be fragmented. Errors with different bytes must not share an
/// identification for the lifetime of a fragment (RFC 6864, section 4.3), and a reporter keeps no counter for each
/// destination. So the identification is a hash of the message. Equal errors share it, and equal fragments are
/// interchangeable. The ICMP checksum cannot be used: the sum of a quoted datagram depends on little more than its
/// addresses and its length, because the datagram contains checksums itself.
fn identification(message: &[u8]) -> u16 {
    let hash = fnv::fold(fnv::SEED, message);
    let [a, b, c, d, e, f, g, h] = hash.to_be_bytes();
    [[a, b], [c, d], [e, f], [g, h]].map(u16::from_be_bytes).into_iter().fold(0, |sum, part| sum ^ part)
}

/// Returns whether ICMP messages of this type are errors. No error may be sent about such a message.
pub const fn is_error(kind: u8) -> bool {
    matches!(kind, UNREACHABLE | 4 | 5 | EXCEEDED | 12)
}

fn is_many(address: Ipv4Addr) -> bool {
    address.is_multicast() || address.is_broadcast()
}

/// Returns the largest MTU in bytes below `len` in the table of common MTUs (RFC 1191, section 7). The result is an
/// estimate for a router that does not report its MTU. Returns `None` if `len` is at most 1006.
pub fn plateau(len: u16) -> Option<u16> {
    const PLATEAUS: [u16; 7] = [32_000, 17_914, 8166, 4352, 2002, 1492, 1006];
    PLATEAUS.into_iter().find(|plateau| *plateau < len)
}

fn is_one_host(address: Ipv4Addr) -> bool {
    let [first, ..] = address.octets();
    first != 0 && first < 224 && !address.is_loopback()
}

/// The content of an ICMP error: the first bytes of the datagram that caused the error. Different nodes quote different
/// numbers of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quote<'a> {
    /// The type of the error.
    pub kind: u8,
    /// The code of the error.
    pub code: u8,
    /// The MTU of the next hop in bytes, in an error of type 3 and code 4. The value is zero if the router is older
    /// than RFC 1191.
    pub mtu: u16,
    /// The total length of the quoted datagram in bytes, header included.
    pub len: u16,
    /// The protocol number of the quoted datagram.
    pub protocol: u8,
    /// The source address of the quoted datagram.
    pub src: Ipv4Addr,
    /// The destination address of the quoted datagram.
    pub dst: Ipv4Addr,
    /// The quoted bytes of the datagram's payload. RFC 792 requires the first eight.
    pub payload: &'a [u8],
}

impl<'a> Quote<'a> {
    /// Parses the quotation in an ICMP error. The checksum of the quoted header is ignored, because routers change the
    /// header on the path. Fails if the message is no error, or if the quotation is truncated or not an IPv4 datagram.
    pub fn of(message: &Message<'a>) -> Result<Self, Malformed> {
        if !is_error(message.kind) {
            return Err(Malformed("icmp_no_error"));
        }
        let mut r = Reader::new(message.body, TRUNCATED);
        let (_, mtu) = (r.u16()?, r.u16()?);
        let Quoted { len, protocol, src, dst, payload, .. } = Quoted::parse(r.rest())?;
        Ok(Self { kind: message.kind, code: message.code, mtu, len, protocol, src, dst, payload })
    }
}

const TRUNCATED: Malformed = Malformed("icmp_quote_truncated");

/// A datagram of which only the first bytes are known.
struct Quoted<'a> {
    len: u16,
    protocol: u8,
    src: Ipv4Addr,
    dst: Ipv4Addr,
    /// The fragment offset, in units of 8 bytes.
    offset: u16,
    payload: &'a [u8],
}

impl<'a> Quoted<'a> {
    fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(bytes, TRUNCATED);
        let first = r.u8()?;
        let options = usize::from(first & 15).checked_sub(5).filter(|_| first >> 4 == 4);
        let options = options.ok_or(Malformed("icmp_quote"))? * 4;
        r.take(1)?;
        let len = r.u16()?;
        r.take(2)?;
        let offset = r.u16()? & 0x1fff;
        r.take(1)?;
        let protocol = r.u8()?;
        r.take(2)?;
        let (src, dst) = (Ipv4Addr::from(r.array::<4>()?), Ipv4Addr::from(r.array::<4>()?));
        r.take(options)?;
        Ok(Self { len, protocol, src, dst, offset, payload: r.rest() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_emitted_is_read_back() {
        let message = Message { kind: 253, code: 0, body: b"content" };
        let bytes = message.emit();
        assert_eq!(Message::parse(&bytes), Ok(message));
        assert_eq!(Message::parse(&bytes[..3]).unwrap_err().0, "icmp_truncated");
        let mut bad = bytes.clone();
        bad[5] ^= 1;
        assert_eq!(Message::parse(&bad).unwrap_err().0, "icmp_checksum");
    }

    const SENDER: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 1);
    const HOST: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 7);
    const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);

    fn original() -> Vec<u8> {
        Header::new(ipv4::UDP, SENDER, HOST).emit(&[7; 1200])
    }

    /// An error of a router older than RFC 1191 has no MTU. The sender estimates it from the length of the quoted
    /// datagram (RFC 1191, section 5).
    #[test]
    fn an_error_tells_how_long_the_datagram_was() {
        let original = original();
        let body = [&[0; 4], &original[..28]].concat();
        let bytes = Message { kind: 3, code: 4, body: &body }.emit();
        let message = Message::parse(&bytes).unwrap();
        let quote = Quote::of(&message).unwrap();
        assert_eq!((quote.mtu, usize::from(quote.len)), (0, original.len()));
        assert_eq!([1500, 1400, 1006].map(plateau), [Some(1492), Some(1006), None]);
    }

    #[test]
    fn an_error_tells_the_sender_and_quotes() {
        let errors = [
            (IcmpError::NetUnreachable, (3, 0, 0)),
            (IcmpError::HostUnreachable, (3, 1, 0)),
            (IcmpError::FragmentationNeeded { mtu: 1480 }, (3, 4, 1480)),
            (IcmpError::TimeExceeded, (11, 0, 0)),
            (IcmpError::ReassemblyTimeExceeded, (11, 1, 0)),
            (IcmpError::ParameterProblem { pointer: 9 }, (12, 0, 0)),
        ];
        for (error, expected) in errors {
            let bytes = error.about(&original(), ROUTER).unwrap();
            assert_eq!(bytes.len(), 576, "as much as fits (RFC 1812)");
            let (header, payload) = Header::parse(&bytes).unwrap();
            assert_eq!((header.src, header.dst, header.protocol), (ROUTER, SENDER, ipv4::ICMP));
            let quote = Quote::of(&Message::parse(payload).unwrap()).unwrap();
            assert_eq!((quote.kind, quote.code, quote.mtu), expected);
            assert_eq!((quote.protocol, quote.src, quote.dst), (ipv4::UDP, SENDER, HOST));
            assert_eq!(quote.payload, &[7; 576 - 20 - 8 - 20]);
        }
    }

    /// An error may be cut into fragments. Fragments of different errors to one sender must not be joined, also if the
    /// quoted datagrams differ only in ways that leave all checksums as they are.
    #[test]
    fn an_error_may_be_cut_and_different_errors_differ_in_their_identification() {
        let (src, dst) = (core::net::SocketAddrV4::new(SENDER, 1), core::net::SocketAddrV4::new(HOST, 2));
        let swapped = [[1_u8, 2, 3, 4], [3, 4, 1, 2]].map(|data| crate::udp::packet(src, dst, &data));
        let numbered = (0_u16..100).map(|number| crate::udp::packet(src, dst, &number.to_be_bytes()));
        let mut identifications = alloc::collections::BTreeSet::new();
        for about in swapped.into_iter().chain(numbered) {
            let error = IcmpError::HostUnreachable.about(&about, ROUTER).unwrap();
            let (header, _) = Header::parse(&error).unwrap();
            assert!(!header.dont_fragment && identifications.insert(header.id), "{header:?}");
            assert_eq!(
                IcmpError::HostUnreachable.about(&about, ROUTER),
                Some(error),
                "equal errors are equal"
            );
        }
    }

    #[test]
    fn nobody_is_told_of_errors_groups_and_later_fragments() {
        let silent = |bytes: &[u8]| IcmpError::HostUnreachable.about(bytes, ROUTER).is_none();
        assert!(!silent(&original()));
        let ping = Message { kind: 8, code: 0, body: &[0; 4] }.emit();
        assert!(!silent(&Header::new(ipv4::ICMP, SENDER, HOST).emit(&ping)), "an echo is no error");
        assert!(silent(&IcmpError::TimeExceeded.about(&original(), ROUTER).unwrap()));
        let headers = [
            Header { offset: 3, ..Header::new(ipv4::UDP, SENDER, HOST) },
            Header::new(ipv4::UDP, SENDER, Ipv4Addr::new(224, 0, 0, 1)),
            Header::new(ipv4::UDP, SENDER, Ipv4Addr::BROADCAST),
            Header::new(ipv4::UDP, Ipv4Addr::UNSPECIFIED, HOST),
            Header::new(ipv4::UDP, Ipv4Addr::LOCALHOST, HOST),
        ];
        for header in headers {
            assert!(silent(&header.emit(b"any")), "{header:?}");
        }
        let first = Header { more_fragments: true, ..Header::new(ipv4::UDP, SENDER, HOST) };
        assert!(!silent(&first.emit(&[0; 8])), "the first fragment has the ports");
    }

    /// A quotation with only eight bytes after the header, as in RFC 792, suffices to notify the sender of a tunneled
    /// packet.
    #[test]
    fn an_error_about_a_quotation_tells_its_sender() {
        let quoted = &original()[..28];
        let bytes = IcmpError::HostUnreachable.about_quoted(quoted, ROUTER).unwrap();
        let (header, payload) = Header::parse(&bytes).unwrap();
        let quote = Quote::of(&Message::parse(payload).unwrap()).unwrap();
        assert_eq!((header.dst, quote.dst, quote.payload.len()), (SENDER, HOST, 8));
        assert!(IcmpError::HostUnreachable.about(quoted, ROUTER).is_none(), "no whole datagram");
        assert!(IcmpError::HostUnreachable.about_quoted(&quoted[..19], ROUTER).is_none());
        let told = IcmpError::FragmentationNeeded { mtu: 1400 }.through_tunnel(20);
        assert_eq!(told, IcmpError::FragmentationNeeded { mtu: 1380 });
        assert_eq!(IcmpError::TimeExceeded.through_tunnel(20), IcmpError::HostUnreachable);
    }

    #[test]
    fn a_quotation_is_refused_with_a_reason() {
        let bytes = IcmpError::HostUnreachable.about(&original(), ROUTER).unwrap();
        let message = Message::parse(&bytes[ipv4::HEADER..]).unwrap();
        let refusal = |kind, body| Quote::of(&Message { kind, code: 0, body }).unwrap_err().0;
        assert_eq!(refusal(8, message.body), "icmp_no_error");
        assert_eq!(refusal(3, &message.body[..23]), "icmp_quote_truncated");
        let mut odd = message.body.to_vec();
        odd[4] = 0x44;
        assert_eq!(refusal(3, &odd), "icmp_quote");
    }
}
