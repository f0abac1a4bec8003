//! IP in IP (RFC 2003): a datagram as the payload of another datagram.

use crate::ipv4::{self, Header};
use crate::{Malformed, nested};
use alloc::vec::Vec;
use core::net::Ipv4Addr;

/// The number of bytes that a tunnel adds to each datagram.
pub const OVERHEAD: usize = ipv4::HEADER;

/// Returns the datagram from `src` to `dst` that carries `inner` unchanged. A node that forwards `inner` must first
/// decrement the time to live of `inner`.
///
/// `id` is the identification of the outer header. Type of service and DF are copied from the inner datagram (RFC 2003,
/// section 3.1). Fails if the inner header is malformed, if its time to live is zero, if the result would exceed 65,535
/// bytes, or if the inner datagram is in four tunnels already.
pub fn encapsulate(inner: &[u8], src: Ipv4Addr, dst: Ipv4Addr, id: u16) -> Result<Vec<u8>, Malformed> {
    let (outer, whole) = outer(inner, src, dst, id)?;
    Ok(outer.emit(inner.get(..whole).unwrap_or(inner)))
}

/// Encapsulates the datagram in `bytes` as [`encapsulate`] does. If `bytes` has room for [`OVERHEAD`] more bytes, no
/// memory is allocated. Fails as [`encapsulate`] does; `bytes` is then unchanged.
pub(crate) fn enclose(bytes: &mut Vec<u8>, src: Ipv4Addr, dst: Ipv4Addr, id: u16) -> Result<(), Malformed> {
    let (outer, whole) = outer(bytes, src, dst, id)?;
    // The inner datagram has at least a header of 20 bytes, so it is as long as the header in front of it.
    bytes.truncate(whole);
    bytes.reserve_exact(OVERHEAD);
    bytes.extend_from_within(whole.saturating_sub(OVERHEAD)..);
    bytes.copy_within(..whole.saturating_sub(OVERHEAD), OVERHEAD);
    if let Some(header) = bytes.first_chunk_mut() {
        *header = outer.bytes(whole);
    }
    Ok(())
}

/// Returns the outer header for an inner datagram, and the length of the inner datagram without padding, in bytes.
fn outer(inner: &[u8], src: Ipv4Addr, dst: Ipv4Addr, id: u16) -> Result<(Header, usize), Malformed> {
    let (header, payload) = Header::parse(inner)?;
    if header.ttl == 0 {
        return Err(Malformed("ipip_ttl"));
    }
    let whole = inner.len().min(header_len(inner) + payload.len());
    if whole + OVERHEAD > usize::from(u16::MAX) {
        return Err(Malformed("ipip_too_long"));
    }
    nested::check(&header, payload)?;
    let Header { tos, dont_fragment, .. } = header;
    Ok((Header { tos, id, dont_fragment, ..Header::new(ipv4::IPIP, src, dst) }, whole))
}

/// Returns the outer header and the inner datagram. The inner time to live is not changed. Fails if one of the headers
/// is malformed, or if the outer header is not IP in IP or belongs to a fragment. Fails if the inner time to live is
/// zero.
pub fn decapsulate(bytes: &[u8]) -> Result<(Header, &[u8]), Malformed> {
    let (outer, inner) = Header::parse(bytes)?;
    if outer.protocol != ipv4::IPIP {
        return Err(Malformed("ipip_protocol"));
    }
    if outer.is_fragment() {
        return Err(Malformed("ipip_fragment"));
    }
    match Header::parse(inner) {
        Ok((Header { ttl: 0, .. }, _)) => Err(Malformed("ipip_ttl")),
        Ok(_) => Ok((outer, inner)),
        Err(malformed) => Err(malformed),
    }
}

fn header_len(bytes: &[u8]) -> usize {
    bytes.first().map_or(0, |first| usize::from(first & 15) * 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
    const EXIT: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);

    fn header() -> Header {
        let far = Header::new(ipv4::UDP, Ipv4Addr::new(10, 1, 0, 7), Ipv4Addr::new(10, 2, 0, 1));
        Header { id: 7, tos: 46 << 2, ttl: 3, ..far }
    }

    #[test]
    fn what_is_encapsulated_is_read_back() {
        for dont_fragment in [false, true] {
            let inner = Header { dont_fragment, ..header() }.emit(b"hello");
            let bytes = encapsulate(&inner, ENTRY, EXIT, 9).unwrap();
            let (outer, got) = decapsulate(&bytes).unwrap();
            assert_eq!(got, inner);
            assert_eq!((outer.src, outer.dst, outer.protocol), (ENTRY, EXIT, ipv4::IPIP));
            assert_eq!(
                (outer.tos, outer.dont_fragment, outer.ttl, outer.id),
                (46 << 2, dont_fragment, ipv4::DEFAULT_TTL, 9)
            );
            assert_eq!(bytes.len(), inner.len() + OVERHEAD);
        }
    }

    #[test]
    fn options_stay_inside_and_padding_behind() {
        let mut inner = header().emit(b"hello");
        inner.splice(20..20, [1, 1, 1, 1]); // four no-operation options
        (inner[0], inner[3]) = (0x46, 29);
        inner[10..12].fill(0);
        let sum = crate::checksum(&inner[..24]).to_be_bytes();
        inner[10..12].copy_from_slice(&sum);
        let mut padded = inner.clone();
        padded.extend_from_slice(&[0; 17]);
        let bytes = encapsulate(&padded, ENTRY, EXIT, 0).unwrap();
        assert_eq!((bytes[0], decapsulate(&bytes).unwrap().1), (0x45, &inner[..]));
    }

    #[test]
    fn every_refusal_names_its_reason() {
        let inner = header().emit(b"hello");
        let old = Header { ttl: 0, ..header() }.emit(b"hello");
        let carried = |bytes: &[u8]| Header::new(ipv4::IPIP, ENTRY, EXIT).emit(bytes);
        assert_eq!(encapsulate(&old, ENTRY, EXIT, 0).unwrap_err().0, "ipip_ttl");
        assert_eq!(encapsulate(&inner[..9], ENTRY, EXIT, 0).unwrap_err().0, "ip_truncated");
        let long = header().emit(&alloc::vec![0; 65_500]);
        assert_eq!(encapsulate(&long, ENTRY, EXIT, 0).unwrap_err().0, "ipip_too_long");
        assert_eq!(decapsulate(&inner).unwrap_err().0, "ipip_protocol");
        assert_eq!(decapsulate(&carried(&old)).unwrap_err().0, "ipip_ttl");
        assert_eq!(decapsulate(&carried(&inner[..12])).unwrap_err().0, "ip_truncated");
        let piece = Header { more_fragments: true, ..Header::new(ipv4::IPIP, ENTRY, EXIT) };
        assert_eq!(decapsulate(&piece.emit(&inner)).unwrap_err().0, "ipip_fragment");
    }
}
