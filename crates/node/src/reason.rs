//! The reasons for which a node drops a packet. Malformed headers are dropped with the reasons of the crate `wire`.

pub use table::reason::{TOO_BIG, TTL_EXPIRED, TUNNEL_KIND, TUNNEL_LOOP};
use wire::Reason;

/// No route applies to the packet, and the packet is not addressed to this host.
pub const NO_ROUTE: Reason = Reason("no_route");
/// The frame is addressed to another station of the link.
pub const OTHER_STATION: Reason = Reason("other_station");
/// The frame contains neither IPv4 nor, on an interface with an address, ARP.
pub const ETHERTYPE: Reason = Reason("ethertype");
/// The packet failed the check of the ingress policy, and more packets failed it in this second than the policy
/// passes to its owner.
pub const PUNT_LIMIT: Reason = Reason("punt_limit");
/// The packet is to a group or broadcast address, and no role listens for it.
pub const NO_LISTENER: Reason = Reason("no_listener");
/// The next hop did not answer ARP, there was no address from which to send a request, or the link changed.
pub const NO_NEIGHBOR: Reason = Reason("no_neighbor");
/// More than 128 KiB wait for the packet's next hop, or more than 1 MiB for all next hops.
pub const NEIGHBOR_QUEUE: Reason = Reason("neighbor_queue_full");
/// The largest number of neighbors, 256, is being resolved by ARP.
pub const NEIGHBOR_TABLE: Reason = Reason("neighbor_table_full");
/// In this ARP message, another host claims an address of this node.
pub const ARP_CONFLICT: Reason = Reason("arp_conflict");
/// The packet would enter or leave a tunnel at this node for the third time.
pub const TUNNEL_DEPTH: Reason = Reason("tunnel_depth");
/// A record that had to be durable before the packet was sent could not be stored.
pub const NOT_STORED: Reason = Reason("not_stored");
/// The packet is a fragment, and its datagram has arrived as a whole: the datagram continues in place of its last
/// fragment. Such a drop is not a loss.
pub const REASSEMBLED: Reason = Reason("reassembled");
/// The packet is a fragment, and the other fragments of its datagram did not arrive within 30 s.
pub const REASSEMBLY_TIMEOUT: Reason = Reason("reassembly_timeout");
/// The packet is a fragment, and there was no room for all incomplete datagrams.
pub const REASSEMBLY_FULL: Reason = Reason("reassembly_full");
/// The packet is a fragment that has already arrived.
pub const FRAGMENT_COPY: Reason = Reason("fragment_copy");
/// The fragments of the packet's datagram overlap, or do not fit the length of the datagram.
pub const FRAGMENT_OVERLAP: Reason = Reason("fragment_overlap");
/// The packet was delivered to the role, or to the ARP of the node, for which it was meant. Such a drop is not a loss.
pub const CONSUMED: Reason = Reason("consumed");
