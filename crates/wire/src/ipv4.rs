//! The IPv4 header (RFC 791). Options are accepted and ignored.

use crate::checksum::of_header;
use crate::{Malformed, Reader};
use alloc::vec::Vec;
use core::net::Ipv4Addr;

const TRUNCATED: Malformed = Malformed("ip_truncated");

/// The length of a header without options, in bytes.
pub const HEADER: usize = 20;
/// The protocol number of ICMP.
pub const ICMP: u8 = 1;
/// The protocol number of IP in IP (RFC 2003).
pub const IPIP: u8 = 4;
/// The protocol number of GRE (RFC 2784).
pub const GRE: u8 = 47;
/// The protocol number of minimal encapsulation (RFC 2004).
pub const MINIMAL: u8 = 55;
/// The protocol number of TCP.
pub const TCP: u8 = 6;
/// The protocol number of SCTP.
pub const SCTP: u8 = 132;
/// The protocol number of UDP.
pub const UDP: u8 = 17;
/// The time to live of a new datagram, as RFC 1700 recommends.
pub const DEFAULT_TTL: u8 = 64;

/// The fields of an IPv4 header, except its lengths, its checksum and its options.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Header {
    /// The type of service: DSCP and ECN as one byte.
    pub tos: u8,
    /// The identification. The field has no meaning in an atomic datagram (RFC 6864).
    pub id: u16,
    /// DF: do not fragment.
    pub dont_fragment: bool,
    /// MF: more fragments follow.
    pub more_fragments: bool,
    /// The fragment offset in units of eight bytes.
    pub offset: u16,
    /// The time to live: the number of hops that the datagram may still travel.
    pub ttl: u8,
    /// The protocol number of the payload.
    pub protocol: u8,
    /// The source address.
    pub src: Ipv4Addr,
    /// The destination address.
    pub dst: Ipv4Addr,
}

impl Header {
    /// Returns the header of a new datagram: DF set, no fragment, [`DEFAULT_TTL`].
    pub const fn new(protocol: u8, src: Ipv4Addr, dst: Ipv4Addr) -> Self {
        Self {
            tos: 0,
            id: 0,
            dont_fragment: true,
            more_fragments: false,
            offset: 0,
            ttl: DEFAULT_TTL,
            protocol,
            src,
            dst,
        }
    }

    /// Returns whether this is the header of a fragment of a larger datagram.
    pub const fn is_fragment(&self) -> bool {
        self.more_fragments || self.offset != 0
    }

    /// Parses the datagram at the begin of `bytes`. Returns its header and its payload, without padding after the
    /// datagram. Fails if the datagram is truncated, or if its header is malformed or has a wrong checksum.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        // The version is checked first, so a truncated packet of another version has the reason `ip_version`.
        let version_length = *bytes.first().ok_or(TRUNCATED)?;
        if version_length >> 4 != 4 {
            return Err(Malformed("ip_version"));
        }
        let header_len = usize::from(version_length & 15) * 4;
        if header_len < HEADER {
            return Err(Malformed("ip_header_length"));
        }
        let fixed = bytes.first_chunk::<HEADER>().ok_or(TRUNCATED)?;
        let [_, tos, l0, l1, i0, i1, f0, f1, ttl, protocol, _, _, s0, s1, s2, s3, d0, d1, d2, d3] = *fixed;
        let total = usize::from(u16::from_be_bytes([l0, l1]));
        if total < header_len {
            return Err(Malformed("ip_total_length"));
        }
        let (header, payload) = bytes.get(..total).ok_or(TRUNCATED)?.split_at(header_len);
        if of_header(header) != 0 {
            return Err(Malformed("ip_checksum"));
        }
        let flags = u16::from_be_bytes([f0, f1]);
        if flags & 0x8000 != 0 {
            return Err(Malformed("ip_reserved_flag"));
        }
        let parsed = Self {
            tos,
            id: u16::from_be_bytes([i0, i1]),
            dont_fragment: flags & 0x4000 != 0,
            more_fragments: flags & 0x2000 != 0,
            offset: flags & 0x1fff,
            ttl,
            protocol,
            src: Ipv4Addr::new(s0, s1, s2, s3),
            dst: Ipv4Addr::new(d0, d1, d2, d3),
        };
        Ok((parsed, payload))
    }

    /// Returns a datagram with this header, without options, and with `payload`.
    ///
    /// `payload` must have at most 65,515 bytes, because the total length is a field of 16 bits.
    pub fn emit(&self, payload: &[u8]) -> Vec<u8> {
        let mut out = self.begin(payload.len());
        out.extend_from_slice(payload);
        out
    }

    /// Returns a datagram with this header, these options, and `payload`. The length of the options must be a multiple
    /// of four, and at most 40. The total length must be at most 65,535 bytes.
    pub(crate) fn emit_with(&self, options: &[u8], payload: &[u8]) -> Vec<u8> {
        let mut out = self.begin(options.len() + payload.len());
        if !options.is_empty() {
            let header_len = HEADER + options.len();
            out.extend_from_slice(options);
            if let [version_length, _, _, _, _, _, _, _, _, _, c0, c1, ..] = out.as_mut_slice() {
                *version_length = 0x40 | (header_len / 4) as u8;
                (*c0, *c1) = (0, 0);
            }
            let sum = of_header(&out).to_be_bytes();
            if let Some(field) = out.get_mut(10..12) {
                field.copy_from_slice(&sum);
            }
        }
        out.extend_from_slice(payload);
        out
    }

    /// Returns the header of a datagram, without options. The caller must append `payload` bytes.
    pub fn begin(&self, payload: usize) -> Vec<u8> {
        self.begin_in(Vec::new(), payload)
    }

    /// Returns the header of a datagram, without options, in the buffer `out`. Clears `out` first; the memory of the
    /// buffer is used again. The caller must append `payload` bytes.
    pub fn begin_in(&self, mut out: Vec<u8>, payload: usize) -> Vec<u8> {
        out.clear();
        out.reserve_exact(HEADER + payload);
        out.extend_from_slice(&self.bytes(payload));
        out
    }

    /// Returns the bytes of the header of a datagram without options, with `payload` bytes behind the header.
    pub(crate) fn bytes(&self, payload: usize) -> [u8; HEADER] {
        let total = (HEADER + payload) as u16;
        let flags = u16::from(self.dont_fragment) << 14 | u16::from(self.more_fragments) << 13 | self.offset;
        let ([l0, l1], [i0, i1], [f0, f1]) =
            (total.to_be_bytes(), self.id.to_be_bytes(), flags.to_be_bytes());
        let ([s0, s1, s2, s3], [d0, d1, d2, d3]) = (self.src.octets(), self.dst.octets());
        let (tos, ttl, protocol) = (self.tos, self.ttl, self.protocol);
        let fixed = |[c0, c1]: [u8; 2]| {
            [0x45, tos, l0, l1, i0, i1, f0, f1, ttl, protocol, c0, c1, s0, s1, s2, s3, d0, d1, d2, d3]
        };
        fixed(of_header(&fixed([0, 0])).to_be_bytes())
    }
}

/// Makes a datagram whose header was checked before a fragment, or the whole datagram, of all of `bytes`: sets the total
/// length, MF and the offset in units of eight bytes, clears DF, and computes the checksum.
pub(crate) fn set_fragment(bytes: &mut [u8], more_fragments: bool, offset: u16) {
    let header_len = bytes.first().map_or(HEADER, |first| usize::from(first & 15) * 4);
    let total = (bytes.len() as u16).to_be_bytes();
    let flags = (u16::from(more_fragments) << 13 | offset).to_be_bytes();
    let Some(header) = bytes.get_mut(..header_len) else { return };
    if let [_, _, l0, l1, _, _, f0, f1, _, _, c0, c1, ..] = header {
        ([*l0, *l1], [*f0, *f1], [*c0, *c1]) = (total, flags, [0, 0]);
    }
    let sum = of_header(header).to_be_bytes();
    if let Some(field) = header.get_mut(10..12) {
        field.copy_from_slice(&sum);
    }
}

/// Returns whether an address can be a host's: not in 0.0.0.0/8, loopback, multicast, class E or limited broadcast.
pub const fn is_host(address: Ipv4Addr) -> bool {
    !matches!(address.octets()[0], 0 | 127 | 224..)
}

/// Returns the source and the destination address of a datagram whose header was checked before. Returns `None` if the
/// bytes are too short.
pub fn addresses(bytes: &[u8]) -> Option<(Ipv4Addr, Ipv4Addr)> {
    let mut r = Reader::new(bytes.get(12..20)?, TRUNCATED);
    Some((Ipv4Addr::from(r.array::<4>().ok()?), Ipv4Addr::from(r.array::<4>().ok()?)))
}

/// Returns the payload of a datagram whose header was checked before, without padding. The payload is empty if the
/// bytes are too short.
pub fn payload(bytes: &[u8]) -> &[u8] {
    let header_len = bytes.first().map_or(HEADER, |first| usize::from(first & 15) * 4);
    bytes.get(header_len..total_len(bytes)).unwrap_or_default()
}

/// Returns the protocol number of a datagram whose header was checked before, or `None` if the bytes are too short.
pub fn protocol(bytes: &[u8]) -> Option<u8> {
    bytes.get(9).copied()
}

/// Returns the total length of a datagram in bytes, from its header. The padding of a short frame does not count.
/// Returns zero if the bytes are too short for this field.
pub fn total_len(bytes: &[u8]) -> usize {
    match bytes {
        [_, _, high, low, ..] => usize::from(u16::from_be_bytes([*high, *low])),
        _ => 0,
    }
}

/// Decrements the time to live and updates the checksum (RFC 1624). Returns false and changes nothing if the time to
/// live is 0 or 1, or if the bytes are too short.
#[must_use]
pub fn decrement_ttl(bytes: &mut [u8]) -> bool {
    let Some([ttl, _, high, low]) = bytes.get_mut(8..12) else { return false };
    if *ttl <= 1 {
        return false;
    }
    *ttl -= 1;
    let (sum, carry) = u16::from_be_bytes([*high, *low]).overflowing_add(0x0100);
    [*high, *low] = (sum + u16::from(carry)).to_be_bytes();
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header {
            id: 7,
            tos: 46 << 2,
            ..Header::new(UDP, Ipv4Addr::new(10, 1, 0, 7), Ipv4Addr::new(10, 2, 0, 1))
        }
    }

    #[test]
    fn what_is_emitted_is_read_back() {
        let bytes = header().emit(b"hello");
        assert_eq!(Header::parse(&bytes), Ok((header(), &b"hello"[..])));
    }

    #[test]
    fn padding_is_not_payload() {
        let mut bytes = header().emit(b"hello");
        bytes.extend_from_slice(&[0; 21]);
        assert_eq!(Header::parse(&bytes).unwrap().1, b"hello");
        assert_eq!((total_len(&bytes), total_len(&bytes[..3])), (25, 0));
    }

    #[test]
    fn every_refusal_names_its_reason() {
        let good = header().emit(b"hello");
        let with = |at: usize, value: u8| {
            let mut bytes = good.clone();
            bytes[at] = value;
            Header::parse(&bytes).unwrap_err().0
        };
        assert_eq!(with(0, 0x65), "ip_version");
        assert_eq!(with(0, 0x44), "ip_header_length");
        assert_eq!(with(3, 19), "ip_total_length");
        assert_eq!(with(3, 26), "ip_truncated");
        assert_eq!(with(8, 63), "ip_checksum");
        assert_eq!(Header::parse(&good[..24]).unwrap_err().0, "ip_truncated");
        assert_eq!(Header::parse(&[]).unwrap_err().0, "ip_truncated");
    }

    #[test]
    fn a_hop_leaves_the_checksum_right_down_to_the_last() {
        let mut bytes = header().emit(b"hello");
        for left in (1..DEFAULT_TTL).rev() {
            assert!(decrement_ttl(&mut bytes));
            assert_eq!(Header::parse(&bytes).unwrap().0.ttl, left);
        }
        assert!(!decrement_ttl(&mut bytes));
        assert_eq!(Header::parse(&bytes).unwrap().0.ttl, 1);
    }
}
