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
use super::{Numbers, Warning, address, reply::Reply};
use wire::{Ipv4Addr, Malformed, Reader};

/// The message type of a Registration Request.
pub(super) const TYPE: u8 = 1;

/// The flags of a Registration Request: what a mobile node requests besides the binding (RFC 5944, section 3.3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct RequestFlags(pub u8);

impl RequestFlags {
    /// S: keep the earlier bindings of the mobile node.
    pub const SIMULTANEOUS: Self = Self(0x80);
    /// B: tunnel the broadcasts of the home network to the mobile node.
    pub const BROADCAST: Self = Self(0x40);
    /// D: the mobile node itself is the exit of the tunnel: the care-of address is co-located.
    pub const DECAPSULATION: Self = Self(0x20);
    /// M: minimal encapsulation (RFC 2004).
    pub const MINIMAL: Self = Self(0x10);
    /// G: generic routing encapsulation (RFC 2784).
    pub const GRE: Self = Self(0x08);
    /// T: reverse tunneling (RFC 3024).
    pub const REVERSE: Self = Self(0x02);
    /// x: reserved; agents without route optimization deny a request with this flag. With it, the flag can be P
    /// ([`Numbers::private_flag`]). The reserved bit r (0x04) is ignored.
    pub const RESERVED: Self = Self(0x01);

    /// Returns whether any flag of `other` is set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns these flags, and those of `other` if `condition` is true.
    #[must_use]
    pub const fn with(self, other: Self, condition: bool) -> Self {
        if condition { Self(self.0 | other.0) } else { self }
    }

    /// Returns the flags that are set here and in `other`.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns these flags without those of `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns whether the reserved bit x is set, and is not flag P. An agent knows flag P only `with_route_optimization`.
    pub const fn has_reserved(self, with_route_optimization: bool, numbers: &Numbers) -> bool {
        let private = if with_route_optimization { numbers.private_flag } else { 0 };
        self.without(Self(private)).has(Self::RESERVED)
    }

    /// Returns the letters of the flags that are set, in the order of RFC 5944, section 3.3, for example `ST`.
    pub fn letters(self) -> String {
        let letters = "SBDMGrTx".chars().enumerate();
        letters.filter(|(at, _)| self.0 & (0x80 >> at) != 0).map(|(_, letter)| letter).collect()
    }
}

/// A Registration Request: asks to bind a home address to a care-of address for a limited time (RFC 5944, section 3.3).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// The options that the mobile node requests.
    pub flags: RequestFlags,
    /// The requested lifetime in seconds; 0 ends the binding, [`super::INFINITE`] means without end.
    pub lifetime: u16,
    /// The home address of the mobile node.
    pub home: Ipv4Addr,
    /// The address of the mobile node's home agent.
    pub home_agent: Ipv4Addr,
    /// The care-of address: the exit of the tunnel.
    pub care_of: Ipv4Addr,
    /// The Identification, for protection against replay: an NTP timestamp of 32.32 bits. The reply repeats the low
    /// half (RFC 5944, section 5.7).
    pub identification: u64,
    /// The extensions in the order of the message.
    pub extensions: Vec<Extension>,
}

impl Request {
    /// Parses a UDP payload. It is an error if the message is too short, is of another type, or has malformed
    /// extensions.
    pub fn parse(payload: &[u8]) -> Result<Self, Malformed> {
        Self::parse_knowing(payload, &[])
    }

    /// As [`Request::parse`], but extensions of the types `known` are accepted, for example [`Numbers::extensions`].
    pub fn parse_knowing(payload: &[u8], known: &[u8]) -> Result<Self, Malformed> {
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
            extensions: extension::parse(r.rest(), known)?,
        })
    }

    /// Returns the reply to this request, with the requested lifetime and without extensions.
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

    /// Returns the data of the Encapsulating Delivery Style Extension for the foreign agent; it must be empty (RFC 3024,
    /// section 3.3). `None` if the request has no such extension after its Mobile-Home Authentication.
    pub fn encapsulating_delivery(&self) -> Option<&[u8]> {
        extension::delivery(&self.extensions)
    }

    /// Returns the Binding Warning Extension for the home agent. `None` if there is none before the Mobile-Home
    /// Authentication. It is an error if it is malformed.
    pub fn warning(&self, numbers: &Numbers) -> Option<Result<Warning, Malformed>> {
        extension::for_home_agent(&self.extensions, numbers.warning_extension).map(Warning::parse_extension)
    }

    /// Returns whether the request has a Network Access Identifier (RFC 2794), at any position.
    pub fn has_network_access_identifier(&self) -> bool {
        extension::has_network_access_identifier(&self.extensions)
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
