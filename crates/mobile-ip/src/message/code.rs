//! The code of a Registration Reply (RFC 5944, section 3.4).

use std::fmt;

/// Whether a registration was accepted, or which agent denied it and why.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Code {
    /// Accepted.
    Accepted,
    /// Accepted, but simultaneous bindings are not supported.
    AcceptedNoSimultaneous,
    /// Foreign agent: no reason given.
    ForeignUnspecified,
    /// Foreign agent: administratively prohibited.
    ForeignProhibited,
    /// Foreign agent: insufficient resources.
    ForeignResources,
    /// Foreign agent: the mobile node failed authentication.
    MobileFailed,
    /// Foreign agent: the home agent failed authentication.
    HomeFailed,
    /// Foreign agent: requested lifetime too long; the reply's lifetime is the longest.
    LifetimeTooLong,
    /// Foreign agent: poorly formed request.
    ForeignBadRequest,
    /// Foreign agent: poorly formed reply.
    BadReply,
    /// Foreign agent: requested encapsulation unavailable.
    ForeignEncapsulation,
    /// Foreign agent: requested reverse tunnel unavailable (RFC 3024).
    ForeignReverseTunnel,
    /// Foreign agent: reverse tunnel is mandatory (RFC 3024).
    ForeignReverseMandatory,
    /// Foreign agent: mobile node too distant (RFC 3024).
    TooDistant,
    /// Foreign agent: invalid care-of address.
    InvalidCareOf,
    /// Foreign agent: the home agent did not answer in time.
    RegistrationTimeout,
    /// Foreign agent: delivery style not supported (RFC 3024).
    DeliveryStyle,
    /// Foreign agent: home network unreachable.
    HomeNetUnreachable,
    /// Foreign agent: home agent host unreachable.
    HomeHostUnreachable,
    /// Foreign agent: home agent port unreachable.
    HomePortUnreachable,
    /// Foreign agent: home agent unreachable otherwise.
    HomeUnreachable,
    /// Foreign agent: the Home Agent field is not acceptable.
    InvalidHomeAgent,
    /// Home agent: no reason given.
    HomeUnspecified,
    /// Home agent: administratively prohibited.
    HomeProhibited,
    /// Home agent: insufficient resources.
    HomeResources,
    /// Home agent: the mobile node failed authentication.
    HomeMobileFailed,
    /// Home agent: the foreign agent failed authentication.
    ForeignFailed,
    /// Home agent: Identification mismatch.
    IdentificationMismatch,
    /// Home agent: poorly formed request.
    HomeBadRequest,
    /// Home agent: too many simultaneous bindings.
    TooManyBindings,
    /// Home agent: unknown home agent address; the reply's Home Agent field has a known one.
    UnknownHomeAgent,
    /// Home agent: requested reverse tunnel unavailable (RFC 3024).
    HomeReverseTunnel,
    /// Home agent: reverse tunnel is mandatory (RFC 3024).
    HomeReverseMandatory,
    /// Home agent: requested encapsulation unavailable (RFC 3024).
    HomeEncapsulation,
    /// A number without a meaning here.
    Unassigned(u8),
}

/// Each known code, its number and its name.
const CODES: [(Code, u8, &str); 34] = [
    (Code::Accepted, 0, "accepted"),
    (Code::AcceptedNoSimultaneous, 1, "accepted, no simultaneous bindings"),
    (Code::ForeignUnspecified, 64, "foreign agent: unspecified"),
    (Code::ForeignProhibited, 65, "foreign agent: prohibited"),
    (Code::ForeignResources, 66, "foreign agent: insufficient resources"),
    (Code::MobileFailed, 67, "foreign agent: mobile node failed authentication"),
    (Code::HomeFailed, 68, "foreign agent: home agent failed authentication"),
    (Code::LifetimeTooLong, 69, "foreign agent: lifetime too long"),
    (Code::ForeignBadRequest, 70, "foreign agent: poorly formed request"),
    (Code::BadReply, 71, "foreign agent: poorly formed reply"),
    (Code::ForeignEncapsulation, 72, "foreign agent: encapsulation unavailable"),
    (Code::ForeignReverseTunnel, 74, "foreign agent: reverse tunnel unavailable"),
    (Code::ForeignReverseMandatory, 75, "foreign agent: reverse tunnel mandatory"),
    (Code::TooDistant, 76, "foreign agent: mobile node too distant"),
    (Code::InvalidCareOf, 77, "foreign agent: invalid care-of address"),
    (Code::RegistrationTimeout, 78, "foreign agent: registration timeout"),
    (Code::DeliveryStyle, 79, "foreign agent: delivery style not supported"),
    (Code::HomeNetUnreachable, 80, "foreign agent: home network unreachable"),
    (Code::HomeHostUnreachable, 81, "foreign agent: home agent host unreachable"),
    (Code::HomePortUnreachable, 82, "foreign agent: home agent port unreachable"),
    (Code::HomeUnreachable, 88, "foreign agent: home agent unreachable"),
    (Code::InvalidHomeAgent, 194, "foreign agent: invalid home agent address"),
    (Code::HomeUnspecified, 128, "home agent: unspecified"),
    (Code::HomeProhibited, 129, "home agent: prohibited"),
    (Code::HomeResources, 130, "home agent: insufficient resources"),
    (Code::HomeMobileFailed, 131, "home agent: mobile node failed authentication"),
    (Code::ForeignFailed, 132, "home agent: foreign agent failed authentication"),
    (Code::IdentificationMismatch, 133, "home agent: Identification mismatch"),
    (Code::HomeBadRequest, 134, "home agent: poorly formed request"),
    (Code::TooManyBindings, 135, "home agent: too many simultaneous bindings"),
    (Code::UnknownHomeAgent, 136, "home agent: unknown home agent address"),
    (Code::HomeReverseTunnel, 137, "home agent: reverse tunnel unavailable"),
    (Code::HomeReverseMandatory, 138, "home agent: reverse tunnel mandatory"),
    (Code::HomeEncapsulation, 139, "home agent: encapsulation unavailable"),
];

impl Code {
    /// Returns the code of a number.
    pub fn from_number(number: u8) -> Self {
        let known = CODES.iter().find(|(_, other, _)| *other == number);
        known.map_or(Self::Unassigned(number), |(code, ..)| *code)
    }

    /// Returns the number of a code.
    pub fn number(self) -> u8 {
        if let Self::Unassigned(number) = self {
            return number;
        }
        CODES.iter().find(|(code, ..)| *code == self).map_or(0, |(_, number, _)| *number)
    }

    /// Returns whether the registration was accepted.
    pub const fn is_accepted(self) -> bool {
        matches!(self, Self::Accepted | Self::AcceptedNoSimultaneous)
    }

    /// Returns whether a foreign agent denied it. Such a reply has no Mobile-Home Authentication.
    pub fn is_of_foreign_agent(self) -> bool {
        matches!(self.number(), 64..=127) || self == Self::InvalidHomeAgent
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match CODES.iter().find(|(code, ..)| code == self) {
            Some((_, number, name)) => write!(f, "{number} ({name})"),
            None => write!(f, "{}", self.number()),
        }
    }
}
