//! Error causes: why a chunk or a request was refused (RFC 9260, section 3.3.10; RFC 5061, section 4.3; RFC 4895,
//! section 4.1).

use super::tlv;
use wire::{Malformed, Reader};

/// The code of an error cause on the wire. Codes that this crate does not know are allowed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Code(pub u16);

impl Code {
    /// A DATA chunk has a stream number that was not negotiated (RFC 9260, section 3.3.10.1).
    pub const INVALID_STREAM: Self = Self(1);
    /// INIT or INIT ACK lacks a mandatory parameter.
    pub const MISSING_PARAMETER: Self = Self(2);
    /// The cookie is older than its lifetime. The information is the excess, in microseconds.
    pub const STALE_COOKIE: Self = Self(3);
    /// The sender of the cause has no resources for an association.
    pub const OUT_OF_RESOURCE: Self = Self(4);
    /// The sender of the cause does not know an address, or does not support its type.
    pub const UNRESOLVABLE_ADDRESS: Self = Self(5);
    /// The sender of the cause does not know the type of a chunk. The information is the whole chunk.
    pub const UNRECOGNIZED_CHUNK: Self = Self(6);
    /// A mandatory field of INIT or INIT ACK has an invalid value.
    pub const INVALID_PARAMETER: Self = Self(7);
    /// The sender of the cause does not know the types of some parameters. The information is the whole parameters.
    pub const UNRECOGNIZED_PARAMETERS: Self = Self(8);
    /// A DATA chunk has no user data. The information is its TSN.
    pub const NO_USER_DATA: Self = Self(9);
    /// COOKIE ECHO came while the association is in SHUTDOWN-ACK-SENT.
    pub const COOKIE_IN_SHUTDOWN: Self = Self(10);
    /// An INIT of a known peer names an address that the association does not have.
    pub const RESTART_WITH_NEW_ADDRESSES: Self = Self(11);
    /// The user of the end that sent the cause aborted the association.
    pub const USER_INITIATED_ABORT: Self = Self(12);
    /// A violation of the protocol that has no other code.
    pub const PROTOCOL_VIOLATION: Self = Self(13);
    /// The request would delete the last address of the end that sent it (RFC 5061, section 4.3.1).
    pub const DELETE_LAST_ADDRESS: Self = Self(0xa0);
    /// The sender of the cause has no resources for the requested change (RFC 5061, section 4.3.2).
    pub const RESOURCE_SHORTAGE: Self = Self(0xa1);
    /// The request would delete the source address of its own packet (RFC 5061, section 4.3.3).
    pub const DELETE_SOURCE_ADDRESS: Self = Self(0xa2);
    /// An ASCONF-ACK answers a request that was not sent (RFC 5061, section 4.3.4).
    pub const ILLEGAL_ASCONF_ACK: Self = Self(0xa3);
    /// The sender of the request is not allowed to request the change (RFC 5061, section 4.3.5).
    pub const NO_AUTHORIZATION: Self = Self(0xa4);
    /// An AUTH chunk uses an algorithm that was not offered. The information is the identifier of the algorithm (RFC
    /// 4895, section 4.1).
    pub const UNSUPPORTED_HMAC: Self = Self(0x105);

    /// Returns the length of the information in bytes. `None` if the length is variable or the code is unknown.
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

/// An error cause: why a chunk or a request was refused (RFC 9260, section 3.3.10).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cause {
    /// The kind of error.
    pub code: Code,
    /// The information about the error, whose form depends on the code. It is often the refused bytes.
    pub info: Vec<u8>,
}

impl Cause {
    /// Returns a cause with the fields `code` and `info`. The length of `info` is not checked.
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
