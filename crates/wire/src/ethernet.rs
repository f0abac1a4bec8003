//! Ethernet II frames: the header has an `EtherType` instead of a length (IEEE 802.3).

use crate::{EtherType, Frame, Mac, Malformed, Reader};
use alloc::vec::Vec;

/// The length of the header in bytes. The hardware adds the frame check sequence behind the payload.
pub const HEADER: usize = 14;

/// Parses a received frame into its header and its payload. Fails if the frame is shorter than a header.
pub fn parse(bytes: &[u8]) -> Result<(Frame, &[u8]), Malformed> {
    let mut r = Reader::new(bytes, Malformed("ethernet_truncated"));
    let (dst, src) = (Mac(r.array()?), Mac(r.array()?));
    let kind = EtherType(r.u16()?);
    Ok((Frame { kind, src, dst }, r.rest()))
}

/// Returns the header's bytes, for a driver that sends the payload without copying it.
pub fn header(frame: &Frame) -> [u8; HEADER] {
    let mut out = [0; HEADER];
    let fields = frame.dst.0.into_iter().chain(frame.src.0).chain(frame.kind.0.to_be_bytes());
    out.iter_mut().zip(fields).for_each(|(byte, field)| *byte = field);
    out
}

/// Returns the bytes of a frame: its header and then `payload`, without padding and frame check sequence.
pub fn emit(frame: &Frame, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER + payload.len());
    out.extend_from_slice(&header(frame));
    out.extend_from_slice(payload);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_emitted_is_read_back() {
        let frame = Frame { kind: EtherType::IPV4, src: Mac([1; 6]), dst: Mac([2; 6]) };
        let bytes = emit(&frame, b"payload");
        assert_eq!(parse(&bytes), Ok((frame, &b"payload"[..])));
        assert_eq!(parse(&bytes[..13]), Err(Malformed("ethernet_truncated")));
    }
}
