//! The Generalized Authentication Extension, which has a length of two bytes (RFC 4721, section 5).

use wire::{Malformed, Reader};

/// The type of the Generalized Authentication Extension (RFC 4721, section 5).
const GENERALIZED: u8 = 36;

/// A Generalized Authentication Extension (RFC 4721, section 5), which has a length of two bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Generalized {
    /// The subtype: between which nodes, and for what.
    pub subtype: u8,
    /// The security parameter index. It selects an association between the two nodes.
    pub spi: u32,
    /// The authenticator: 32 bytes for HMAC-SHA-256, and 16 bytes for the other algorithms.
    pub authenticator: Vec<u8>,
}

impl Generalized {
    /// Returns type, subtype, length and SPI of an extension with an authenticator of `length` bytes: the last bytes
    /// that the authenticator covers (optim-09, section 6).
    pub(super) fn head(subtype: u8, length: usize, spi: u32) -> [u8; 8] {
        let [high, low] = ((4 + length) as u16).to_be_bytes();
        let [a, b, c, d] = spi.to_be_bytes();
        [GENERALIZED, subtype, high, low, a, b, c, d]
    }

    /// Parses an extension that is the rest of a message.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        if bytes.is_empty() {
            return Err(Malformed("mip_binding_unauthenticated"));
        }
        let mut r = Reader::new(bytes, Malformed("mip_extension_truncated"));
        if r.u8()? != GENERALIZED {
            return Err(Malformed("mip_unknown_extension"));
        }
        let (subtype, length) = (r.u8()?, usize::from(r.u16()?));
        if length < 4 {
            return Err(Malformed("mip_authentication_length"));
        }
        let spi = r.u32()?;
        let authenticator = r.rest();
        match authenticator.len().cmp(&(length - 4)) {
            std::cmp::Ordering::Less => Err(Malformed("mip_extension_overrun")),
            std::cmp::Ordering::Equal => Ok(Self { subtype, spi, authenticator: authenticator.to_vec() }),
            std::cmp::Ordering::Greater => Err(Malformed("mip_binding_trailing")),
        }
    }

    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&Self::head(self.subtype, self.authenticator.len(), self.spi));
        out.extend_from_slice(&self.authenticator);
    }
}
