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

use super::extension::{self, Association, Authentication, Between, Extension};
use super::{Code, address};
use wire::{Ipv4Addr, Malformed, Reader};

/// The type of the message.
pub(super) const TYPE: u8 = 3;

/// What became of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reply {
    /// Accepted, or denied by whom and why.
    pub code: Code,
    /// Seconds granted. In a denial without meaning, unless the code is [`Code::LifetimeTooLong`].
    pub lifetime: u16,
    /// The mobile node.
    pub home: Ipv4Addr,
    /// Its home agent.
    pub home_agent: Ipv4Addr,
    /// The request's; with [`Code::IdentificationMismatch`] the high half is the home agent's clock.
    pub identification: u64,
    /// In their order.
    pub extensions: Vec<Extension>,
}

impl Reply {
    /// The reply in a UDP payload.
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
            extensions: extension::parse(r.rest())?,
        })
    }

    /// The UDP payload.
    pub fn emit(&self) -> Vec<u8> {
        self.emit_before(self.extensions.len())
    }

    /// Adds an authentication of all that is here so far.
    pub fn sign(&mut self, between: Between, association: &Association) {
        let signed = association.sign(between, &self.emit());
        self.extensions.push(Extension::Authentication(signed));
    }

    /// The authentication between these two, if there is one.
    pub fn authentication(&self, between: Between) -> Option<&Authentication> {
        extension::find(&self.extensions, between).map(|(_, found)| found)
    }

    /// Whether there is an authentication between these two, and it holds.
    pub fn verify(&self, between: Between, association: &Association) -> bool {
        extension::find(&self.extensions, between)
            .is_some_and(|(at, found)| association.verifies(found, &self.emit_before(at)))
    }

    /// Takes off what follows the Mobile-Home Authentication: it is for the foreign agent only (section 3.7.3.2).
    pub fn strip(&mut self) {
        if let Some((at, _)) = extension::find(&self.extensions, Between::MobileHome) {
            self.extensions.truncate(at + 1);
        }
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
