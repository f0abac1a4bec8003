//! The reasons to refuse a message. Each role counts each of them, and reports the counts in its status.

use wire::Reason;

/// A client: the message is of another transaction than the present one.
pub const TRANSACTION: Reason = Reason("dhcp_transaction");
/// A client expects no message of this type now, for example an offer when it has an address.
pub const UNEXPECTED: Reason = Reason("dhcp_unexpected");
/// A client: the message does not name its server.
pub const NO_SERVER: Reason = Reason("dhcp_no_server");
/// The message is from another server than the one that has granted or offered the client's address. At a server: the
/// message is for another server.
pub const OTHER_SERVER: Reason = Reason("dhcp_other_server");
/// A client: the message grants another address than the requested one.
pub const OTHER_ADDRESS: Reason = Reason("dhcp_other_address");
/// A client: the address in the message is no host address of a link, or is the server's.
pub const BAD_ADDRESS: Reason = Reason("dhcp_address");
/// A client: the message has no subnet mask.
pub const NO_MASK: Reason = Reason("dhcp_no_mask");
/// A client: the message has no lease time, or the lease time 0.
pub const NO_LEASE: Reason = Reason("dhcp_lease");
/// A server: the message came by another interface than that of the server's link.
pub const OTHER_LINK: Reason = Reason("dhcp_other_link");
/// A server: the message came from a relay agent.
pub const RELAYED: Reason = Reason("dhcp_relayed");
/// A server: the message is a server's, or asks for parameters without an address (DHCPINFORM).
pub const UNSUPPORTED: Reason = Reason("dhcp_unsupported");
/// A server: the client does not have this address, and may not have it.
pub const NOT_LEASED: Reason = Reason("dhcp_not_leased");
/// A server: the client requests no address.
pub const NO_ADDRESS: Reason = Reason("dhcp_no_address");
/// A server: no address is free for the client.
pub const EXHAUSTED: Reason = Reason("dhcp_pool_exhausted");
/// A server: 1024 addresses are being checked by ARP, or the link is down.
pub const BUSY: Reason = Reason("dhcp_busy");
