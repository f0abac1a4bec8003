//! The wire format: RFC 9260 (SCTP), RFC 5061 (address changes), RFC 4895 (authenticated chunks).
//!
//! A packet is a header and chunks. Chunks contain parameters, and errors contain causes. The two upper bits of the
//! type say how a receiver handles an unknown chunk or parameter (RFC 9260, sections 3.2 and 3.2.1). If the highest
//! bit is 0, the receiver ignores all that follows the unknown chunk or parameter. If the second bit is 1, the
//! receiver reports the chunk or parameter to the sender.

mod asconf;
mod cause;
mod chunk;
mod init;
mod tlv;

pub use asconf::{Action, Address, Asconf, AsconfAck, Request, Response};
pub use cause::{Cause, Code};
pub use chunk::{Auth, Chunk, DATA_HEADER, Data, Sack, kind};
pub use init::{Init, Parameter, RANDOM};

use crate::crc32c::crc32c;
use wire::{Malformed, Reader};

/// The protocol number of SCTP in an IPv4 header: 132.
pub const PROTOCOL: u8 = wire::ipv4::SCTP;
/// Length of the common header of a packet, in bytes (RFC 9260, section 3.1).
pub const HEADER: usize = 12;
/// Offset of the checksum in a packet, in bytes.
const CHECKSUM: usize = 8;
/// Length of a chunk's type, flags and length, in bytes.
const CHUNK_HEADER: usize = 4;

/// An SCTP packet: the payload of an IP packet of protocol 132 (RFC 9260, section 3).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    /// The port of the packet's sender. A packet with port 0 is not parsed.
    pub src_port: u16,
    /// The port of the packet's receiver. A packet with port 0 is not parsed.
    pub dst_port: u16,
    /// The verification tag (RFC 9260, section 8.5). It is the tag that the packet's receiver chose for the
    /// association. Exceptions: the tag is 0 with INIT. If the T bit of ABORT or SHUTDOWN COMPLETE is set, the tag is
    /// copied from the packet that is answered.
    pub tag: u32,
    /// The chunks, in their order. A parsed packet ends with the first chunk of an unknown type below 0x80; the
    /// chunks behind it are not read.
    pub chunks: Vec<Chunk>,
}

impl Packet {
    /// Parses the payload of an IP packet. Fails if the packet is truncated, if the checksum or a port is invalid, or
    /// if there is no chunk. Also fails if a chunk is malformed, if chunks must not be in the same packet, or if the
    /// tag of a packet with INIT is not 0.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let (packet, flaw) = Self::parse_up_to_flaw(bytes)?;
        flaw.map_or(Ok(packet), Err)
    }

    /// Parses a packet up to the first malformed chunk. Returns the chunks before the malformed one, and the error of
    /// the malformed one. Chunks are processed in order, so the chunks before the malformed one count (RFC 9260,
    /// section 6.10). Fails if the first chunk is malformed, or as [`Self::parse`] does for other reasons.
    pub(crate) fn parse_up_to_flaw(bytes: &[u8]) -> Result<(Self, Option<Malformed>), Malformed> {
        let mut r = Reader::new(bytes, Malformed("sctp_truncated"));
        let (src_port, dst_port, tag) = (r.u16()?, r.u16()?, r.u32()?);
        r.u32()?;
        if !checksum_holds(bytes) {
            return Err(Malformed("sctp_checksum"));
        }
        if src_port == 0 || dst_port == 0 {
            return Err(Malformed("sctp_port"));
        }
        let mut packet = Self { src_port, dst_port, tag, chunks: Vec::new() };
        let mut flaw = None;
        while !r.is_empty() {
            let read = next_chunk(&mut r)
                .and_then(|(kind, flags, body)| Ok((kind, Chunk::parse(kind, flags, body)?)));
            let (kind, chunk) = match read {
                Ok(read) => read,
                Err(why) if packet.chunks.is_empty() => return Err(why),
                Err(why) => {
                    flaw = Some(why);
                    break;
                }
            };
            let stop = matches!(chunk, Chunk::Unknown { .. }) && kind & 0x80 == 0;
            packet.chunks.push(chunk);
            if stop {
                break;
            }
        }
        packet.check()?;
        // A packet is refused if it has a chunk that must be alone and a malformed chunk behind it.
        if let (Some(why), true) = (flaw, packet.chunks.iter().any(alone)) {
            return Err(why);
        }
        Ok((packet, flaw))
    }

    /// Checks whether the chunks may be in the same packet, and the tag of a packet with INIT.
    fn check(&self) -> Result<(), Malformed> {
        if self.chunks.is_empty() {
            return Err(Malformed("sctp_no_chunk"));
        }
        if self.chunks.len() > 1 && self.chunks.iter().any(alone) {
            return Err(Malformed("sctp_not_alone"));
        }
        // The tag of a packet with INIT is 0 (RFC 9260, section 8.5.1, A).
        let init = self.chunks.iter().any(|chunk| chunk.kind() == kind::INIT);
        if init && self.tag != 0 {
            return Err(Malformed("sctp_init_tag"));
        }
        // A packet has at most one AUTH chunk (RFC 4895, section 5.1).
        if self.chunks.iter().filter(|chunk| chunk.kind() == kind::AUTH).count() > 1 {
            return Err(Malformed("sctp_auth_twice"));
        }
        Ok(())
    }

    /// Returns the packet in bytes, with the right checksum.
    pub fn emit(&self) -> Vec<u8> {
        self.emit_signed(|_| Vec::new())
    }

    /// Returns the packet in bytes, with the right checksum. If it has an AUTH chunk, `sign` computes the HMAC. The
    /// argument of `sign` is the packet from the AUTH chunk to the end, with zeros in place of the HMAC.
    pub(crate) fn emit_signed(&self, sign: impl FnOnce(&[u8]) -> Vec<u8>) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(&self.src_port.to_be_bytes());
        out.extend_from_slice(&self.dst_port.to_be_bytes());
        out.extend_from_slice(&self.tag.to_be_bytes());
        out.extend_from_slice(&[0; 4]);
        let mut auth = None;
        for chunk in &self.chunks {
            if chunk.kind() == kind::AUTH {
                auth = Some(out.len());
            }
            chunk.put(&mut out);
        }
        if let Some(begin) = auth {
            let code = sign(out.get(begin..).unwrap_or_default());
            let at = begin + CHUNK_HEADER + 4;
            if let Some(field) = out.get_mut(at..at + code.len()) {
                field.copy_from_slice(&code);
            }
        }
        set_checksum(&mut out);
        out
    }
}

/// Sets the checksum of the packet `bytes`, which may be malformed otherwise. Has no effect on fewer than 12 bytes.
/// Tests that change bytes of a packet call this function.
pub fn set_checksum(bytes: &mut [u8]) {
    let sum = sum(bytes).to_le_bytes();
    if let Some(field) = bytes.get_mut(CHECKSUM..HEADER) {
        field.copy_from_slice(&sum);
    }
}

/// Returns the checksum of a packet, computed with zeros in the checksum field. The lowest byte of the checksum comes
/// first on the wire (RFC 9260, appendix A).
fn sum(bytes: &[u8]) -> u32 {
    let (head, tail) = (bytes.get(..CHECKSUM), bytes.get(HEADER..));
    crc32c(&[head.unwrap_or_default(), &[0; 4], tail.unwrap_or_default()])
}

fn checksum_holds(bytes: &[u8]) -> bool {
    bytes.get(CHECKSUM..HEADER) == Some(&sum(bytes).to_le_bytes())
}

/// Returns whether a chunk must be alone in a packet (RFC 9260, section 6.10).
fn alone(chunk: &Chunk) -> bool {
    matches!(chunk.kind(), kind::INIT | kind::INIT_ACK | kind::SHUTDOWN_COMPLETE)
}

fn next_chunk<'a>(r: &mut Reader<'a>) -> Result<(u8, u8, &'a [u8]), Malformed> {
    let (kind, flags, len) = (r.u8()?, r.u8()?, usize::from(r.u16()?));
    let body = len.checked_sub(CHUNK_HEADER).ok_or(Malformed("sctp_chunk_length"))?;
    let body = r.take(body).map_err(|_| Malformed("sctp_chunk_overrun"))?;
    // A packet without the padding of its last chunk is accepted, although the sender must add the padding (RFC 9260,
    // section 3.2).
    let padding = (len.next_multiple_of(4) - len).min(r.rest().len());
    r.take(padding)?;
    Ok((kind, flags, body))
}

/// Returns the bytes that the HMAC covers: from the AUTH chunk to the end of the packet. `None` if the packet has no
/// AUTH chunk, or a malformed chunk before it.
pub(crate) fn authenticated(bytes: &[u8]) -> Option<&[u8]> {
    let mut r = Reader::new(bytes.get(HEADER..)?, Malformed("sctp_truncated"));
    while !r.is_empty() {
        let here = r.rest();
        if next_chunk(&mut r).ok()?.0 == kind::AUTH {
            return Some(here);
        }
    }
    None
}

#[cfg(test)]
mod tests;
