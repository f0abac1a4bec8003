//! The code of a Registration Reply (RFC 5944, section 3.4).

use std::fmt;

/// The result of a registration: accepted, or which agent denied it and why.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Code {
    /// Code 0: accepted.
    Accepted,
    /// Code 1: accepted, but simultaneous bindings are not supported.
    AcceptedNoSimultaneous,
    /// Code 64, denied by the foreign agent: no reason given.
    ForeignUnspecified,
    /// Code 65, denied by the foreign agent: administratively prohibited.
    ForeignProhibited,
    /// Code 66, denied by the foreign agent: insufficient resources.
    ForeignResources,
    /// Code 67, denied by the foreign agent: the mobile node failed authentication.
    MobileFailed,
    /// Code 68, denied by the foreign agent: the home agent failed authentication.
    HomeFailed,
    /// Code 69, denied by the foreign agent: requested lifetime too long; the reply's lifetime is the longest that is
    /// accepted.
    LifetimeTooLong,
    /// Code 70, denied by the foreign agent: poorly formed request.
    ForeignBadRequest,
    /// Code 71, denied by the foreign agent: poorly formed reply.
    BadReply,
    /// Code 72, denied by the foreign agent: requested encapsulation unavailable.
    ForeignEncapsulation,
    /// Code 74, denied by the foreign agent: requested reverse tunnel unavailable (RFC 3024).
    ForeignReverseTunnel,
    /// Code 75, denied by the foreign agent: reverse tunnel is mandatory (RFC 3024).
    ForeignReverseMandatory,
    /// Code 76, denied by the foreign agent: mobile node too distant (RFC 3024).
    TooDistant,
    /// Code 77, denied by the foreign agent: invalid care-of address.
    InvalidCareOf,
    /// Code 78, denied by the foreign agent: the home agent did not answer in time.
    RegistrationTimeout,
    /// Code 79, denied by the foreign agent: delivery style not supported (RFC 3024).
    DeliveryStyle,
    /// Code 80, denied by the foreign agent: home network unreachable.
    HomeNetUnreachable,
    /// Code 81, denied by the foreign agent: home agent host unreachable.
    HomeHostUnreachable,
    /// Code 82, denied by the foreign agent: home agent port unreachable.
    HomePortUnreachable,
    /// Code 88, denied by the foreign agent: home agent unreachable for another reason.
    HomeUnreachable,
    /// Code 96, denied by the foreign agent: it needs a home address, and not only a Network Access Identifier (RFC 2794).
    NonzeroHomeRequired,
    /// Code 104, denied by the foreign agent: the challenge is not one of its last ones (RFC 4721).
    UnknownChallenge,
    /// Code 105, denied by the foreign agent: the request has no challenge (RFC 4721).
    MissingChallenge,
    /// Code 106, denied by the foreign agent: the mobile node has used the challenge before (RFC 4721).
    StaleChallenge,
    /// Code 194, denied by the foreign agent: the Home Agent field is not acceptable.
    InvalidHomeAgent,
    /// Code 128, denied by the home agent: no reason given.
    HomeUnspecified,
    /// Code 129, denied by the home agent: administratively prohibited.
    HomeProhibited,
    /// Code 130, denied by the home agent: insufficient resources.
    HomeResources,
    /// Code 131, denied by the home agent: the mobile node failed authentication.
    HomeMobileFailed,
    /// Code 132, denied by the home agent: the foreign agent failed authentication.
    ForeignFailed,
    /// Code 133, denied by the home agent: Identification mismatch.
    IdentificationMismatch,
    /// Code 134, denied by the home agent: poorly formed request.
    HomeBadRequest,
    /// Code 135, denied by the home agent: too many simultaneous bindings.
    TooManyBindings,
    /// Code 136, denied by the home agent: unknown home agent address; the reply's Home Agent field has a known one.
    UnknownHomeAgent,
    /// Code 137, denied by the home agent: requested reverse tunnel unavailable (RFC 3024).
    HomeReverseTunnel,
    /// Code 138, denied by the home agent: reverse tunnel is mandatory (RFC 3024).
    HomeReverseMandatory,
    /// Code 139, denied by the home agent: requested encapsulation unavailable (RFC 3024).
    HomeEncapsulation,
    /// Any other number.
    Unassigned(u8),
}

/// Each known code, its number and its name.
const CODES: [(Code, u8, &str); 38] = [
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
    (Code::NonzeroHomeRequired, 96, "foreign agent: nonzero home address required"),
    (Code::UnknownChallenge, 104, "foreign agent: unknown challenge"),
    (Code::MissingChallenge, 105, "foreign agent: missing challenge"),
    (Code::StaleChallenge, 106, "foreign agent: stale challenge"),
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
    /// Returns the code for `number`; [`Code::Unassigned`] if no other variant has this number.
    pub fn from_number(number: u8) -> Self {
        let known = CODES.iter().find(|(_, other, _)| *other == number);
        known.map_or(Self::Unassigned(number), |(code, ..)| *code)
    }

    /// Returns the number of this code in the Code field of a reply.
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

    /// Returns whether this code is a denial by a foreign agent: 64 to 127, or 194. A reply with such a code need not
    /// have a Mobile-Home Authentication.
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
