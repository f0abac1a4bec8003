//! The reasons for which a node drops a packet. Messages are also dropped with the reasons of [`crate::message`].

use wire::Reason;

/// Data or an update-request to a host that has no mapping at this node.
pub const NO_MAPPING: Reason = Reason("no_mapping");
/// Data from a host that has no mapping at this node.
pub const UPLINK_NO_MAPPING: Reason = Reason("uplink_no_mapping");
/// Data from a host that is mapped to another neighbor.
pub const UPLINK_MISMATCH: Reason = Reason("uplink_mismatch");
/// A control packet from the uplink that is not an update-request.
pub const WRONG_DIRECTION: Reason = Reason("wrong_direction");
/// A control packet to another gateway than that of the configuration.
pub const WRONG_GATEWAY: Reason = Reason("wrong_gateway");
/// A control packet whose source address no mobile host can have.
pub const BAD_SOURCE: Reason = Reason("bad_source");
/// A control packet that is signed under another generation of the network key.
pub const KEY_GENERATION: Reason = Reason("unknown_key_generation");
/// A route-update by radio that was sent to another base station, or names none.
pub const SERVING_BS: Reason = Reason("wrong_serving_bs");
/// A route-update from a neighbor that has sent too many wrong digests in this second.
pub const AUTH_LIMIT: Reason = Reason("auth_limit");
/// A route-update with a wrong digest, possibly by tampering.
pub const BAD_AUTH: Reason = Reason("bad_auth");
/// A route-update of a host without a mapping, while the route cache is full.
pub const CACHE_FULL: Reason = Reason("cache_full");
/// A copy for the new path of a semisoft handoff that was cancelled, expired, or got another new path.
pub const SEMISOFT_ENDED: Reason = Reason("semisoft_ended");
