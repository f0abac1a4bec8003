//! The part of DNS that registers and finds a host: messages (RFC 1035, section 4), UPDATE (RFC 2136), and
//! transaction signatures (RFC 8945).
//!
//! No DNS library is used. `hickory-proto` without its default features uses no clock, and random numbers only for
//! message numbers. But it would add 49 crates. Its transaction signatures need a cryptography library and the system's
//! clock, so this crate would have to implement the signatures anyway.

mod dns_message;
mod name;
mod resource_record;
mod tsig;

pub use dns_message::{Header, Message, Question, Received};
pub use name::{Name, ParseNameError};
pub use resource_record::ResourceRecord;
pub(crate) use tsig::unsigned;
pub use tsig::{Failure, Signed, Tsig, TsigKey};

/// The port of DNS over UDP and TCP (RFC 1035, section 4.2).
pub const PORT: u16 = 53;

/// Types of resource records.
pub mod kind {
    /// An IPv4 address (RFC 1035, section 3.4.1).
    pub const A: u16 = 1;
    /// The start of a zone (RFC 1035, section 3.3.13).
    pub const SOA: u16 = 6;
    /// Text (RFC 1035, section 3.3.14).
    pub const TXT: u16 = 16;
    /// Options of a message (RFC 6891, section 6.1).
    pub const OPT: u16 = 41;
    /// A transaction signature (RFC 8945, section 4.2).
    pub const TSIG: u16 = 250;
    /// All types. A question asks for records of all types (RFC 1035, section 3.2.3). In an update, it means all
    /// records of a name (RFC 2136, sections 2.4 and 2.5).
    pub const ANY: u16 = 255;
    /// The first type that is only for questions and signatures: 128 to 255 have no data in a zone (RFC 6895, section
    /// 3.1).
    pub const FIRST_META: u16 = 128;
}

/// Classes of resource records, and the special classes of updates.
pub mod class {
    /// The Internet (RFC 1035, section 3.2.4).
    pub const IN: u16 = 1;
    /// As a change: delete this record. As a prerequisite: no records of this name and type exist (RFC 2136, sections
    /// 2.4 and 2.5).
    pub const NONE: u16 = 254;
    /// As a change: delete all records of this name and type. As a prerequisite: records of this name and type exist
    /// (RFC 2136, sections 2.4 and 2.5).
    pub const ANY: u16 = 255;
}

/// Values of the OPCODE field: the purpose of a message.
pub mod opcode {
    /// A standard query (RFC 1035, section 4.1.1).
    pub const QUERY: u8 = 0;
    /// A dynamic update (RFC 2136, section 1.3).
    pub const UPDATE: u8 = 5;
}

/// The result of a request (RFC 1035, section 4.1.1; RFC 2136, section 2.2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Rcode {
    /// NOERROR: the request succeeded.
    NoError = 0,
    /// FORMERR: the request is malformed.
    FormErr = 1,
    /// SERVFAIL: the server failed, for example because it could not store an update.
    ServFail = 2,
    /// NXDOMAIN: the name does not exist.
    NxDomain = 3,
    /// NOTIMP: the server does not implement the operation.
    NotImp = 4,
    /// REFUSED: the server does not allow the request.
    Refused = 5,
    /// YXDOMAIN: a name exists, but a prerequisite requires that it does not exist.
    YxDomain = 6,
    /// YXRRSET: records exist, but a prerequisite requires that they do not exist.
    YxRrSet = 7,
    /// NXRRSET: records that a prerequisite requires do not exist.
    NxRrSet = 8,
    /// NOTAUTH: the server is not authoritative for the zone, or the signature was not accepted (RFC 8945, section
    /// 5.2).
    NotAuth = 9,
    /// NOTZONE: a name in the update is not in the zone.
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

    /// Returns the code with this number; `None` if the number is greater than 10.
    pub fn of(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Returns the name of the code in the IANA registry, for example `NXDOMAIN`.
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
