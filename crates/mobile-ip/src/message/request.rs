//! The Registration Request (RFC 5944, section 3.3).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+-+-+-+-+-+-+-+-+-------------------------------+
//! |    Type 1     |S|B|D|M|G|r|T|x|           Lifetime            |
//! +---------------+-+-+-+-+-+-+-+-+-------------------------------+
//! |                          Home Address                         |
//! +---------------------------------------------------------------+
//! |                           Home Agent                          |
//! +---------------------------------------------------------------+
//! |                        Care-of Address                        |
//! +---------------------------------------------------------------+
//! |                         Identification                        |
//! |                                                               |
//! +---------------------------------------------------------------+
//! | Extensions …
//! ```

use super::extension::{self, Extension, signed};
use super::{address, reply::Reply};
use wire::{Ipv4Addr, Malformed, Reader};

/// The type of the message.
pub(super) const TYPE: u8 = 1;

/// What a mobile node asks for besides the binding.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct RequestFlags(pub u8);

impl RequestFlags {
    /// S: keep the other bindings.
    pub const SIMULTANEOUS: Self = Self(0x80);
    /// B: tunnel broadcasts of the home network too.
    pub const BROADCAST: Self = Self(0x40);
    /// D: the mobile node opens the tunnel itself.
    pub const DECAPSULATES: Self = Self(0x20);
    /// M: minimal encapsulation.
    pub const MINIMAL: Self = Self(0x10);
    /// G: GRE.
    pub const GRE: Self = Self(0x08);
    /// T: reverse tunnel.
    pub const REVERSE: Self = Self(0x02);
    /// x: reserved. The bit before T, r, is too, but is ignored when received.
    pub const RESERVED: Self = Self(0x01);

    /// Whether any of `other` is set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// A request to bind a home address to a care-of address for a while.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// What else is asked for.
    pub flags: RequestFlags,
    /// For how many seconds; 0 ends the binding, [`super::INFINITE`] never does.
    pub lifetime: u16,
    /// The mobile node.
    pub home: Ipv4Addr,
    /// Its home agent.
    pub home_agent: Ipv4Addr,
    /// The end of the tunnel.
    pub care_of: Ipv4Addr,
    /// Against replay: NTP 32.32, strictly increasing. A reply repeats its low half.
    pub identification: u64,
    /// In their order.
    pub extensions: Vec<Extension>,
}

impl Request {
    /// The request in a UDP payload.
    pub fn parse(payload: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(payload, Malformed("mip_request_short"));
        if r.u8()? != TYPE {
            return Err(Malformed("mip_unknown_type"));
        }
        Ok(Self {
            flags: RequestFlags(r.u8()?),
            lifetime: r.u16()?,
            home: address(&mut r)?,
            home_agent: address(&mut r)?,
            care_of: address(&mut r)?,
            identification: r.u64()?,
            extensions: extension::parse(r.rest())?,
        })
    }

    /// The reply to this request, with the lifetime that was asked for and without extensions.
    pub fn reply(&self, code: super::Code) -> Reply {
        Reply {
            code,
            lifetime: self.lifetime,
            home: self.home,
            home_agent: self.home_agent,
            identification: self.identification,
            extensions: Vec::new(),
        }
    }

    fn emit_before(&self, extensions: usize) -> Vec<u8> {
        let mut out = vec![TYPE, self.flags.0];
        out.extend_from_slice(&self.lifetime.to_be_bytes());
        for address in [self.home, self.home_agent, self.care_of] {
            out.extend_from_slice(&address.octets());
        }
        out.extend_from_slice(&self.identification.to_be_bytes());
        extension::emit(self.extensions.get(..extensions).unwrap_or_default(), &mut out);
        out
    }
}

signed!(Request);
