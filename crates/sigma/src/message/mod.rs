//! As much of DNS as registering and finding a host takes: messages (RFC 1035, section 4), UPDATE (RFC 2136), and
//! transaction signatures (RFC 8945).
//!
//! Written here. A library would read and write messages as well: `hickory-proto` without its default features has no clock, and
//! no random numbers but for identifications. It would add 49 crates, and transaction signatures would stay here, as it makes and
//! checks them only with a suite of cryptography and the system's clock.

mod name;
mod tsig;
mod whole;

pub use name::{Name, ParseNameError};
pub(crate) use tsig::unsigned;
pub use tsig::{Failure, Signed, Tsig, TsigKey};
pub use whole::{Header, Message, Question, Received, Record};

/// The port of DNS.
pub const PORT: u16 = 53;

/// Kinds of records.
pub mod kind {
    /// An IPv4 address (RFC 1035, section 3.4.1).
    pub const A: u16 = 1;
    /// The start of a zone (RFC 1035, section 3.3.13).
    pub const SOA: u16 = 6;
    /// Text (RFC 1035, section 3.3.14).
    pub const TXT: u16 = 16;
    /// Options of the message (RFC 6891).
    pub const OPT: u16 = 41;
    /// A transaction signature.
    pub const TSIG: u16 = 250;
    /// All kinds.
    pub const ANY: u16 = 255;
    /// Kinds from here up to [`ANY`] are questions and no data (RFC 6895, section 3.1).
    pub const FIRST_META: u16 = 128;
}

/// Classes of records.
pub mod class {
    /// The Internet.
    pub const IN: u16 = 1;
    /// In an update: this very record goes; as a prerequisite: no such records (RFC 2136, section 1.2).
    pub const NONE: u16 = 254;
    /// In an update: all such records go; as a prerequisite: there are such records.
    pub const ANY: u16 = 255;
}

/// What a message is for.
pub mod opcode {
    /// To ask.
    pub const QUERY: u8 = 0;
    /// To change (RFC 2136).
    pub const UPDATE: u8 = 5;
}

/// How a request was answered (RFC 1035, section 4.1.1; RFC 2136, section 2.2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Rcode {
    /// It was done.
    NoError = 0,
    /// It cannot be read.
    FormErr = 1,
    /// Something here does not work.
    ServFail = 2,
    /// There is no such name.
    NxDomain = 3,
    /// Nobody here does such things.
    NotImp = 4,
    /// It is not allowed.
    Refused = 5,
    /// There is a name that should not be.
    YxDomain = 6,
    /// There are records that should not be.
    YxRrSet = 7,
    /// There are no such records.
    NxRrSet = 8,
    /// This is not the zone's server, or the sender is not who it says it is.
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

    /// The code of this number.
    pub fn of(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Its name in the registry.
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
