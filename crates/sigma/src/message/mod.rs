//! The part of DNS that registers and finds a host: messages (RFC 1035, section 4), UPDATE (RFC 2136), and
//! transaction signatures (RFC 8945).
//!
//! No library is used. `hickory-proto` without its default features has no clock, and random numbers only for message
//! numbers. But it would add 49 crates. Its transaction signatures need a cryptography library and the system's
//! clock, so they would be implemented here anyway.

mod dns_message;
mod name;
mod tsig;

pub use dns_message::{Header, Message, Question, Received, ResourceRecord};
pub use name::{Name, ParseNameError};
pub(crate) use tsig::unsigned;
pub use tsig::{Failure, Signed, Tsig, TsigKey};

/// The port of DNS over UDP and TCP.
pub const PORT: u16 = 53;

/// Types of records.
pub mod kind {
    /// An IPv4 address (RFC 1035, section 3.4.1).
    pub const A: u16 = 1;
    /// The start of a zone (RFC 1035, section 3.3.13).
    pub const SOA: u16 = 6;
    /// Text (RFC 1035, section 3.3.14).
    pub const TXT: u16 = 16;
    /// Options of a message (RFC 6891).
    pub const OPT: u16 = 41;
    /// A transaction signature.
    pub const TSIG: u16 = 250;
    /// All types.
    pub const ANY: u16 = 255;
    /// Types from here up to [`ANY`] are for questions, not data (RFC 6895, section 3.1).
    pub const FIRST_META: u16 = 128;
}

/// Classes of records.
pub mod class {
    /// The Internet.
    pub const IN: u16 = 1;
    /// In an update: delete this record. As a prerequisite: no such records exist (RFC 2136).
    pub const NONE: u16 = 254;
    /// In an update: delete all such records. As a prerequisite: such records exist.
    pub const ANY: u16 = 255;
}

/// Purposes of messages.
pub mod opcode {
    /// A query.
    pub const QUERY: u8 = 0;
    /// An update (RFC 2136).
    pub const UPDATE: u8 = 5;
}

/// The result of a request (RFC 1035, section 4.1.1; RFC 2136, section 2.2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Rcode {
    /// Success.
    NoError = 0,
    /// The request is malformed.
    FormErr = 1,
    /// The server failed.
    ServFail = 2,
    /// The name does not exist.
    NxDomain = 3,
    /// The operation is not implemented.
    NotImp = 4,
    /// The request is not allowed.
    Refused = 5,
    /// A name exists that must not.
    YxDomain = 6,
    /// Records exist that must not.
    YxRrSet = 7,
    /// Records that must exist do not.
    NxRrSet = 8,
    /// The server is not authoritative for the zone, or the sender is not authenticated.
    NotAuth = 9,
    /// A name is not in the zone.
    NotZone = 10,
}

impl Rcode {
    const ALL: [Self; 11] = [
        Self::NoError,
        Self::FormErr,
        Self::ServFail,
        Self::NxDomain,
        Self::NotImp,
        Self::Refused,
        Self::YxDomain,
        Self::YxRrSet,
        Self::NxRrSet,
        Self::NotAuth,
        Self::NotZone,
    ];

    /// Returns the code with this number. `None` if it is not one of these.
    pub fn of(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Returns its name in the registry.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoError => "NOERROR",
            Self::FormErr => "FORMERR",
            Self::ServFail => "SERVFAIL",
            Self::NxDomain => "NXDOMAIN",
            Self::NotImp => "NOTIMP",
            Self::Refused => "REFUSED",
            Self::YxDomain => "YXDOMAIN",
            Self::YxRrSet => "YXRRSET",
            Self::NxRrSet => "NXRRSET",
            Self::NotAuth => "NOTAUTH",
            Self::NotZone => "NOTZONE",
        }
    }
}
