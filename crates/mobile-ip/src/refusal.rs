//! The reasons for which agents and mobile nodes refuse a message. Malformed messages have the reasons of
//! [`crate::message`].

use wire::Reason;

/// The message is a request where only replies are expected, or a reply where only requests are expected. Or it is
/// a reply that arrived by another interface than this role's, or that the agent in use cannot have sent. Or a home
/// agent got it from another host, with an address of its own host as the source. The message is not answered:
/// otherwise, a forged source address could make a host answer its own messages.
pub const UNEXPECTED: Reason = Reason("unexpected_message");
/// There is no association with the mobile node of the request, or for a message of route optimization with its sender. A
/// stored record of a host without an association is refused for the same reason.
pub const NO_ASSOCIATION: Reason = Reason("no_association");
/// The request has no Mobile-Home Authentication (RFC 5944, section 3.8.2.1), or a message of route optimization has no
/// authentication.
pub const NO_AUTHENTICATION: Reason = Reason("no_authentication");
/// The request has a Foreign-Home Authentication, but there is no association with the source address of the
/// request.
pub const UNKNOWN_AGENT: Reason = Reason("unknown_agent_association");
/// The request was denied with a reply. The denial is counted only, because the packet of the request is consumed.
pub const DENIED: Reason = Reason("denied");
/// The request is not answered, because the same sender or request was answered within the last second, or 1024
/// other senders or requests were.
pub const ANSWERED: Reason = Reason("answered_recently");
/// A Binding Warning informs no correspondent: each one was informed recently, has been informed of the end of the binding, or has
/// no place.
pub const NOTHING_TO_INFORM: Reason = Reason("nothing_to_inform");
/// The packet is in a reverse tunnel, but the inner source has no binding with flag T to the outer source (RFC 3024,
/// section 4.4).
pub const NO_REVERSE_TUNNEL: Reason = Reason("no_reverse_tunnel");
/// The request repeats one that was accepted. The reply is not sent yet, because the record is not durable.
pub const UNDER_WAY: Reason = Reason("answer_under_way");
/// A Binding Update has no Identification, so a repetition could not be recognized.
pub const NO_IDENTIFICATION: Reason = Reason("no_identification");
/// The care-of address of a Binding Update cannot be that of a mobile node elsewhere: it is not a host's, or it is an address of
/// this host.
pub const IMPLAUSIBLE_CARE_OF: Reason = Reason("implausible_care_of");
/// The authentication of a message is missing or wrong.
pub const BAD_AUTHENTICATION: Reason = Reason("bad_authentication");
/// The source of a request is neither the home address nor the co-located care-of address, or it is an address of the
/// foreign agent. Or the home address is not a host's, or the link address is that of a group.
pub const IMPLAUSIBLE_SOURCE: Reason = Reason("implausible_source");
/// A request or a solicitation arrived by another interface than that of the visited network. Or a solicitation has the
/// address of the agent as its source, or comes from the link address of a group.
pub const WRONG_DIRECTION: Reason = Reason("wrong_direction");
