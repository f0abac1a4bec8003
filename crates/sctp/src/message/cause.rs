//! Error causes: why a chunk or a request was refused (RFC 9260, section 3.3.10; RFC 5061, section 4.3; RFC 4895,
//! section 4.1).

use super::tlv;
use wire::{Malformed, Reader};

/// The code of an error cause, which names its kind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Code(pub u16);

impl Code {
    /// DATA in a stream that was not negotiated.
    pub const INVALID_STREAM: Self = Self(1);
    /// INIT or INIT ACK lacks a mandatory parameter.
    pub const MISSING_PARAMETER: Self = Self(2);
    /// The cookie is older than its lifetime; the information is by how much, in microseconds.
    pub const STALE_COOKIE: Self = Self(3);
    /// No resources for an association.
    pub const OUT_OF_RESOURCE: Self = Self(4);
    /// An address that is not known, or whose type is not supported.
    pub const UNRESOLVABLE_ADDRESS: Self = Self(5);
    /// A chunk of unknown type, which is the information.
    pub const UNRECOGNIZED_CHUNK: Self = Self(6);
    /// A field has an invalid value.
    pub const INVALID_PARAMETER: Self = Self(7);
    /// Parameters of unknown type, which are the information.
    pub const UNRECOGNIZED_PARAMETERS: Self = Self(8);
    /// DATA without data; the information is its TSN.
    pub const NO_USER_DATA: Self = Self(9);
    /// A cookie came while the old association shuts down.
    pub const COOKIE_IN_SHUTDOWN: Self = Self(10);
    /// INIT of a known peer with addresses that it did not have.
    pub const RESTART_WITH_NEW_ADDRESSES: Self = Self(11);
    /// The user aborted the association.
    pub const USER_INITIATED_ABORT: Self = Self(12);
    /// A violation without a more specific code.
    pub const PROTOCOL_VIOLATION: Self = Self(13);
    /// The last address must not be deleted.
    pub const DELETE_LAST_ADDRESS: Self = Self(0xa0);
    /// No resources for more addresses.
    pub const RESOURCE_SHORTAGE: Self = Self(0xa1);
    /// The source of the request must not be deleted.
    pub const DELETE_SOURCE_ADDRESS: Self = Self(0xa2);
    /// ASCONF-ACK for a request that was not sent.
    pub const ILLEGAL_ASCONF_ACK: Self = Self(0xa3);
    /// The peer is not allowed to request this.
    pub const NO_AUTHORIZATION: Self = Self(0xa4);
    /// AUTH with an algorithm that was not offered; the information is its identifier.
    pub const UNSUPPORTED_HMAC: Self = Self(0x105);

    /// Returns the length of the information in bytes, where it is fixed.
    const fn info_len(self) -> Option<usize> {
        match self {
            Self::INVALID_STREAM | Self::STALE_COOKIE | Self::NO_USER_DATA => Some(4),
            Self::OUT_OF_RESOURCE
            | Self::INVALID_PARAMETER
            | Self::COOKIE_IN_SHUTDOWN
            | Self::ILLEGAL_ASCONF_ACK => Some(0),
            Self::UNSUPPORTED_HMAC => Some(2),
            _ => None,
        }
    }
}

/// An error cause.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cause {
    /// The code.
    pub code: Code,
    /// The information: mostly the bytes that were refused.
    pub info: Vec<u8>,
}

impl Cause {
    /// Returns a cause with the information `info`.
    pub fn new(code: Code, info: impl Into<Vec<u8>>) -> Self {
        Self { code, info: info.into() }
    }
}

pub(super) fn parse(bytes: &[u8]) -> Result<Vec<Cause>, Malformed> {
    let mut r = Reader::new(bytes, Malformed("sctp_cause_truncated"));
    let mut causes = Vec::new();
    while let Some((code, info)) = tlv::next(&mut r)? {
        let code = Code(code);
        if code.info_len().is_some_and(|len| len != info.len()) {
            return Err(Malformed("sctp_cause_length"));
        }
        causes.push(Cause::new(code, info));
    }
    Ok(causes)
}

pub(super) fn emit(causes: &[Cause], out: &mut Vec<u8>) {
    for cause in causes {
        tlv::put(out, cause.code.0, &[&cause.info]);
    }
}
