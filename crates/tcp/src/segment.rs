//! The TCP header (RFC 9293, section 3.1).

use crate::{Options, Seq};
use std::borrow::Cow;
use wire::ipv4::Header;
use wire::{Checksum, Ipv4Addr, Malformed};

/// The protocol number of TCP in an IPv4 header.
pub const PROTOCOL: u8 = wire::ipv4::TCP;

/// The length of a TCP header without options, in bytes.
pub const HEADER: usize = 20;

const TRUNCATED: Malformed = Malformed("tcp_truncated");

/// The offset of the checksum field in the header, in bytes.
const CHECKSUM: usize = 16;

/// The control bits of a segment (RFC 9293, section 3.1). Bits that this crate does not use (URG, ECE, CWR) are kept as
/// received.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// FIN: the sender has no more data.
    pub const FIN: Self = Self(1);
    /// SYN: the sequence number is the initial one.
    pub const SYN: Self = Self(2);
    /// RST: the connection is reset.
    pub const RST: Self = Self(4);
    /// PSH: the push function (RFC 9293, section 3.9.1.2).
    pub const PSH: Self = Self(8);
    /// ACK: the acknowledgment field is significant.
    pub const ACK: Self = Self(16);

    /// Returns whether all bits of `other` are set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns these bits and those of `other`.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A segment: header and payload, without the IP addresses. The payload can borrow from the received packet or from the
/// send buffer.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Segment<'a> {
    /// The sender's port.
    pub src_port: u16,
    /// The receiver's port.
    pub dst_port: u16,
    /// The sequence number of the segment (`SEG.SEQ`): that of its SYN, first byte or FIN, if it has one.
    pub seq: Seq,
    /// The next sequence number that the sender expects; significant only with `ACK`.
    pub ack: Seq,
    /// The control bits: SYN, FIN, RST and others.
    pub flags: Flags,
    /// The window field as it is on the wire. Except in a SYN, the receiver shifts it left by the sender's window scale
    /// (RFC 7323, section 2.3).
    pub window: u16,
    /// The options that this crate supports.
    pub options: Options,
    /// The payload: the bytes after the header and its options.
    pub payload: Cow<'a, [u8]>,
}

impl<'a> Segment<'a> {
    /// Parses `bytes`, an IP payload from `src` to `dst`. The urgent pointer is not kept. Returns an error if the
    /// segment is truncated or too long, or if its data offset, its checksum or an option is wrong.
    pub fn parse(bytes: &'a [u8], src: Ipv4Addr, dst: Ipv4Addr) -> Result<Self, Malformed> {
        let fixed = bytes.first_chunk::<HEADER>().ok_or(TRUNCATED)?;
        let [s0, s1, d0, d1, q0, q1, q2, q3, a0, a1, a2, a3, offset, flags, w0, w1, ..] = *fixed;
        let header_len = usize::from(offset >> 4) * 4;
        if header_len < HEADER {
            return Err(Malformed("tcp_offset"));
        }
        let (header, payload) = bytes.split_at_checked(header_len).ok_or(TRUNCATED)?;
        let len = u16::try_from(bytes.len()).map_err(|_| Malformed("tcp_length"))?;
        if pseudo_header(src, dst, len).add(bytes).finish() != 0 {
            return Err(Malformed("tcp_checksum"));
        }
        Ok(Self {
            src_port: u16::from_be_bytes([s0, s1]),
            dst_port: u16::from_be_bytes([d0, d1]),
            seq: Seq(u32::from_be_bytes([q0, q1, q2, q3])),
            ack: Seq(u32::from_be_bytes([a0, a1, a2, a3])),
            flags: Flags(flags),
            window: u16::from_be_bytes([w0, w1]),
            options: Options::parse(header.get(HEADER..).unwrap_or_default())?,
            payload: Cow::Borrowed(payload),
        })
    }

    /// Returns this segment as an IP payload, with the checksum for `src` and `dst`. Header and payload must fit an
    /// IPv4 packet.
    pub fn emit(&self, src: Ipv4Addr, dst: Ipv4Addr) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.wire_len());
        self.emit_behind(&mut out, src, dst);
        out
    }

    /// Returns the IPv4 packet that carries this segment from `src` to `dst`.
    pub fn datagram(&self, src: Ipv4Addr, dst: Ipv4Addr) -> Vec<u8> {
        self.datagram_in(Vec::new(), src, dst)
    }

    /// Returns the IPv4 packet that carries this segment from `src` to `dst`. The packet uses the allocation of
    /// `buffer`, whose content is lost.
    pub fn datagram_in(&self, buffer: Vec<u8>, src: Ipv4Addr, dst: Ipv4Addr) -> Vec<u8> {
        let mut out = Header::new(PROTOCOL, src, dst).begin_in(buffer, self.wire_len());
        self.emit_behind(&mut out, src, dst);
        out
    }

    fn emit_behind(&self, out: &mut Vec<u8>, src: Ipv4Addr, dst: Ipv4Addr) {
        let start = out.len();
        let ([s0, s1], [d0, d1]) = (self.src_port.to_be_bytes(), self.dst_port.to_be_bytes());
        let ([q0, q1, q2, q3], [a0, a1, a2, a3]) = (self.seq.0.to_be_bytes(), self.ack.0.to_be_bytes());
        let offset = ((self.options.len() + HEADER) as u8 / 4) << 4;
        let ([w0, w1], flags) = (self.window.to_be_bytes(), self.flags.0);
        out.extend_from_slice(&[
            s0, s1, d0, d1, q0, q1, q2, q3, a0, a1, a2, a3, offset, flags, w0, w1, 0, 0, 0, 0,
        ]);
        self.options.emit(out);
        out.extend_from_slice(&self.payload);
        let Some(segment) = out.get_mut(start..) else { return };
        let sum = pseudo_header(src, dst, segment.len() as u16).add(segment).finish();
        if let Some(field) = segment.get_mut(CHECKSUM..CHECKSUM + 2) {
            field.copy_from_slice(&sum.to_be_bytes());
        }
    }

    /// Returns this segment with an owned payload. A borrowed payload is copied.
    pub fn into_owned(self) -> Segment<'static> {
        Segment { payload: Cow::Owned(self.payload.into_owned()), ..self }
    }

    /// Returns the length of header, options and payload, in bytes.
    pub fn wire_len(&self) -> usize {
        HEADER + self.options.len() + self.payload.len()
    }

    /// Returns the length in sequence space: the payload, and one each for SYN and FIN (RFC 9293, section 3.4).
    pub fn len(&self) -> u32 {
        self.payload.len() as u32 + u32::from(self.has(Flags::SYN)) + u32::from(self.has(Flags::FIN))
    }

    /// Returns whether the length in sequence space is zero.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether all bits of `flags` are set.
    pub const fn has(&self, flags: Flags) -> bool {
        self.flags.has(flags)
    }

    /// Returns the reset that answers this segment if the receiver has no such connection (RFC 9293, section 3.10.7.1).
    /// Returns `None` if this segment is a reset.
    pub fn refusal(&self) -> Option<Segment<'static>> {
        if self.has(Flags::RST) {
            return None;
        }
        let (src_port, dst_port) = (self.dst_port, self.src_port);
        let reset = Segment { src_port, dst_port, flags: Flags::RST, ..Segment::default() };
        if self.has(Flags::ACK) {
            return Some(Segment { seq: self.ack, ..reset });
        }
        Some(Segment { ack: self.seq.plus(self.len()), flags: Flags::RST.with(Flags::ACK), ..reset })
    }
}

const fn pseudo_header(src: Ipv4Addr, dst: Ipv4Addr, len: u16) -> Checksum {
    Checksum::of_pseudo_header(src, dst, PROTOCOL, len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 7);

    fn syn() -> Segment<'static> {
        Segment {
            src_port: 4000,
            dst_port: 80,
            seq: Seq(0xfffe_0001),
            ack: Seq(7),
            flags: Flags::SYN.with(Flags::ACK),
            window: 65535,
            options: Options {
                mss: Some(1460),
                window_scale: Some(7),
                sack_permitted: true,
                ..Options::default()
            },
            payload: b"odd".into(),
        }
    }

    /// Emits a segment, applies `change` to its bytes, and returns the error of parsing them. If `set_checksum` is
    /// true, the checksum is computed again after the change, so that the error is not about the checksum.
    fn refused(change: impl FnOnce(&mut Vec<u8>), set_checksum: bool) -> &'static str {
        let mut bytes = syn().emit(A, B);
        change(&mut bytes);
        if set_checksum {
            bytes[CHECKSUM..CHECKSUM + 2].fill(0);
            let sum = pseudo_header(A, B, bytes.len() as u16).add(&bytes).finish();
            bytes[CHECKSUM..CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
        }
        Segment::parse(&bytes, A, B).unwrap_err().0
    }

    #[test]
    fn what_is_emitted_is_read_back() {
        assert_eq!(Segment::parse(&syn().emit(A, B), A, B), Ok(syn()));
        assert_eq!(syn().emit(A, B).len(), syn().wire_len());
        let plain = Segment { options: Options::default(), payload: Cow::default(), ..syn() };
        assert_eq!(Segment::parse(&plain.emit(A, B), A, B), Ok(plain));
    }

    /// The bytes of a segment have the layout of RFC 9293, section 3.1.
    #[test]
    fn golden_bytes() {
        let bytes = syn().emit(A, B);
        let head = [0x0f, 0xa0, 0, 80, 0xff, 0xfe, 0, 1, 0, 0, 0, 7, 0x80, 0x12, 0xff, 0xff];
        assert_eq!(bytes[..16], head);
        assert_eq!(bytes[20..32], [2, 4, 0x05, 0xb4, 1, 3, 3, 7, 1, 1, 4, 2]);
    }

    #[test]
    fn every_refusal_names_its_reason() {
        assert_eq!(refused(|bytes| bytes.truncate(19), false), "tcp_truncated");
        assert_eq!(refused(|bytes| bytes[12] = 0xf0, true), "tcp_truncated");
        assert_eq!(refused(|bytes| bytes[12] = 0x40, true), "tcp_offset");
        assert_eq!(refused(|bytes| bytes.resize(65536, 0), false), "tcp_length");
        assert_eq!(refused(|bytes| bytes[33] ^= 1, false), "tcp_checksum");
        assert_eq!(refused(|bytes| bytes[21] = 1, true), "tcp_option");
        assert_eq!(refused(|bytes| bytes[21] = 3, true), "tcp_option");
        assert_eq!(refused(|bytes| bytes[21] = 5, true), "tcp_option");
        assert_eq!(refused(|bytes| bytes[31] = 9, true), "tcp_option");
    }

    #[test]
    fn a_stranger_is_refused_as_the_rfc_says() {
        let reset = Segment { flags: Flags::SYN, ..syn() }.refusal().unwrap();
        assert_eq!((reset.seq, reset.ack, reset.flags), (Seq(0), Seq(0xfffe_0005), Flags(0x14)));
        let reset = syn().refusal().unwrap();
        assert_eq!((reset.seq, reset.flags), (Seq(7), Flags::RST));
        assert_eq!(reset.refusal(), None);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..100), set_checksum in any::<bool>()) {
            if set_checksum && bytes.len() >= HEADER {
                bytes[CHECKSUM..CHECKSUM + 2].fill(0);
                let sum = pseudo_header(A, B, bytes.len() as u16).add(&bytes).finish();
                bytes[CHECKSUM..CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
            }
            if let Ok(segment) = Segment::parse(&bytes, A, B) {
                let emitted = segment.emit(A, B);
                prop_assert_eq!(Segment::parse(&emitted, A, B), Ok(segment));
            }
        }
    }
}
