//! The UDP header (RFC 768).

use crate::ipv4::{self, Header};
use crate::{Checksum, Malformed, Reader};
use alloc::vec::Vec;
use core::net::{Ipv4Addr, SocketAddrV4};

/// The length of the header in bytes.
pub const HEADER: usize = 8;

/// The ports and the payload of a UDP datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram<'a> {
    /// The sender's port.
    pub src_port: u16,
    /// The receiver's port.
    pub dst_port: u16,
    /// The bytes after the header.
    pub payload: &'a [u8],
}

impl<'a> Datagram<'a> {
    /// Parses the datagram in `bytes`, an IP payload from `src` to `dst`. Fails if the datagram is truncated, or if its
    /// length or checksum is wrong.
    pub fn parse(bytes: &'a [u8], src: Ipv4Addr, dst: Ipv4Addr) -> Result<Self, Malformed> {
        let mut r = Reader::new(bytes, Malformed("udp_truncated"));
        let (src_port, dst_port) = (r.u16()?, r.u16()?);
        let len = usize::from(r.u16()?);
        let sum = r.u16()?;
        let payload_len = len.checked_sub(HEADER).ok_or(Malformed("udp_length"))?;
        let payload = r.take(payload_len)?;
        let covered = bytes.get(..len).unwrap_or_default();
        // Zero means that the sender did not compute a checksum (RFC 768).
        if sum != 0 && Checksum::of_pseudo_header(src, dst, ipv4::UDP, len as u16).add(covered).finish() != 0
        {
            return Err(Malformed("udp_checksum"));
        }
        Ok(Self { src_port, dst_port, payload })
    }
}

/// Returns the IPv4 datagram that carries the UDP payload `payload` from `src` to `dst`. `payload` must have at most
/// 65,507 bytes.
pub fn packet(src: SocketAddrV4, dst: SocketAddrV4, payload: &[u8]) -> Vec<u8> {
    Header::new(ipv4::UDP, *src.ip(), *dst.ip()).emit(&datagram(src, dst, payload))
}

/// Returns the same datagram as [`packet`] without DF, with the identification `id`.
pub fn divisible_packet(src: SocketAddrV4, dst: SocketAddrV4, payload: &[u8], id: u16) -> Vec<u8> {
    let header = Header { dont_fragment: false, id, ..Header::new(ipv4::UDP, *src.ip(), *dst.ip()) };
    header.emit(&datagram(src, dst, payload))
}

/// Returns a UDP header and `payload`.
fn datagram(src: SocketAddrV4, dst: SocketAddrV4, payload: &[u8]) -> Vec<u8> {
    let len = (HEADER + payload.len()) as u16;
    let mut out = Vec::with_capacity(usize::from(len));
    out.extend_from_slice(&src.port().to_be_bytes());
    out.extend_from_slice(&dst.port().to_be_bytes());
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(&[0, 0]);
    out.extend_from_slice(payload);
    let sum = match Checksum::of_pseudo_header(*src.ip(), *dst.ip(), ipv4::UDP, len).add(&out).finish() {
        0 => 0xffff, // on the wire, zero would mean "no checksum"
        sum => sum,
    };
    if let Some(field) = out.get_mut(6..8) {
        field.copy_from_slice(&sum.to_be_bytes());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 2, 0, 1), 4000);
    const B: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 1, 0, 7), 5000);

    #[test]
    fn what_is_emitted_is_read_back() {
        let bytes = packet(A, B, b"number");
        let (header, payload) = Header::parse(&bytes).unwrap();
        let datagram = Datagram::parse(payload, header.src, header.dst).unwrap();
        assert_eq!(datagram, Datagram { src_port: 4000, dst_port: 5000, payload: b"number" });
    }

    #[test]
    fn every_refusal_names_its_reason() {
        let whole = packet(A, B, b"number");
        let good = &whole[ipv4::HEADER..];
        let with = |at: usize, value: u8| {
            let mut bytes = good.to_vec();
            bytes[at] = value;
            Datagram::parse(&bytes, *A.ip(), *B.ip()).unwrap_err().0
        };
        assert_eq!(with(5, 7), "udp_length");
        assert_eq!(with(5, 15), "udp_truncated");
        assert_eq!(with(9, 0), "udp_checksum");
        assert_eq!(Datagram::parse(&good[..7], *A.ip(), *B.ip()).unwrap_err().0, "udp_truncated");
    }
}
