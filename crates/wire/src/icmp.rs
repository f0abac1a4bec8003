//! The part of ICMP that all its messages share (RFC 792): type, code, checksum.

use crate::{Malformed, Reader, checksum};
use alloc::vec::Vec;

/// Bytes before a message's own content.
pub const HEADER: usize = 4;

/// A message whose checksum was right.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message<'a> {
    /// Type.
    pub kind: u8,
    /// Code.
    pub code: u8,
    /// What follows the checksum.
    pub body: &'a [u8],
}

impl<'a> Message<'a> {
    /// The message in an IP payload.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(bytes, Malformed("icmp_truncated"));
        let (kind, code, _sum) = (r.u8()?, r.u8()?, r.u16()?);
        if checksum(bytes) != 0 {
            return Err(Malformed("icmp_checksum"));
        }
        Ok(Self { kind, code, body: r.rest() })
    }

    /// Its bytes, with the checksum filled in.
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
}
