//! Which addresses a host can have.

use wire::Ipv4Addr;

/// Returns whether `address` can be the address of a single host. False for 0.0.0.0, 255.255.255.255 and multicast
/// groups.
pub(crate) fn unicast(address: Ipv4Addr) -> bool {
    !(address.is_unspecified() || address.is_multicast() || address.is_broadcast())
}
