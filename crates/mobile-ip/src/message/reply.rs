//! The Registration Reply (RFC 5944, section 3.4).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! |    Type 3     |     Code      |           Lifetime            |
//! +---------------+---------------+-------------------------------+
//! |                          Home Address                         |
//! +---------------------------------------------------------------+
//! |                           Home Agent                          |
//! +---------------------------------------------------------------+
//! |                         Identification                        |
//! |                                                               |
//! +---------------------------------------------------------------+
//! | Extensions …
//! ```

use super::extension::{self, Extension, signed};
use super::{Code, address};
use wire::{Ipv4Addr, Malformed, Reader};

/// The message type of a Registration Reply.
pub(super) const TYPE: u8 = 3;

/// A Registration Reply (RFC 5944, section 3.4).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reply {
    /// The result of the request: accepted, or which agent denied it and why.
    pub code: Code,
    /// The granted lifetime in seconds. In a denial it has no meaning, unless the code is [`Code::LifetimeTooLong`].
    pub lifetime: u16,
    /// The home address of the mobile node.
    pub home: Ipv4Addr,
    /// The address of the mobile node's home agent.
    pub home_agent: Ipv4Addr,
    /// The Identification of the request. With [`Code::IdentificationMismatch`], the high half is the home agent's
    /// clock in seconds (RFC 5944, section 5.7.1).
    pub identification: u64,
    /// The extensions in the order of the message.
    pub extensions: Vec<Extension>,
}

impl Reply {
    /// Parses a UDP payload. It is an error if the message is too short, is of another type, or has malformed
    /// extensions.
    pub fn parse(payload: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(payload, Malformed("mip_reply_short"));
        if r.u8()? != TYPE {
            return Err(Malformed("mip_unknown_type"));
        }
        Ok(Self {
            code: Code::from_number(r.u8()?),
            lifetime: r.u16()?,
            home: address(&mut r)?,
            home_agent: address(&mut r)?,
            identification: r.u64()?,
            extensions: extension::parse(r.rest(), &[])?,
        })
    }

    fn emit_before(&self, extensions: usize) -> Vec<u8> {
        let mut out = vec![TYPE, self.code.number()];
        out.extend_from_slice(&self.lifetime.to_be_bytes());
        for address in [self.home, self.home_agent] {
            out.extend_from_slice(&address.octets());
        }
        out.extend_from_slice(&self.identification.to_be_bytes());
        extension::emit(self.extensions.get(..extensions).unwrap_or_default(), &mut out);
        out
    }
}

signed!(Reply);
