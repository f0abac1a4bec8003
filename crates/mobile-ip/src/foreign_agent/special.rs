//! Special tunnels (draft-ietf-mobileip-optim-05, section 10.5): a packet out of a tunnel for a host that this agent does not
//! know, for example after a restart, goes back to the host's home agent. Its outer and inner destination are the home
//! address, so that the home agent intercepts it. The home agent does not return it to this agent. It may send it to an agent that
//! forwards it to this one: then it comes back with fewer hops, and is dropped.

use super::departures::FORWARDING_LOOP;
use super::{ForeignAgent, NOT_A_VISITOR};
use node::{Outbox, Rx};
use wire::tunnel::Kind;
use wire::{Instant, Ipv4Addr, Packet, Reason, ipv4};

/// The reason to drop a packet from a tunnel: too many packets were sent in special tunnels in this second.
pub(super) const SPECIAL_LIMIT: Reason = Reason("special_tunnel_limit");
/// The largest number of packets per second in special tunnels (not from the draft). Tunnels are not authenticated: without
/// a limit, a host could make this agent send any number of packets to any host.
pub(super) const SPECIALS: u32 = 100;

impl ForeignAgent {
    /// Sends a packet for an unknown host in a special tunnel.
    pub(super) fn send_back(
        &mut self,
        now: Instant,
        rx: Rx,
        entry: Ipv4Addr,
        packet: Packet,
        out: &mut Outbox,
    ) {
        let (own, host) = (self.config.address, rx.header.dst);
        let is_own = own.link.contains(host) || self.is_own(host);
        let is_none = !ipv4::is_host(host) || is_own || entry == host;
        let refusal = if is_none || self.visited.contains(&rx.iface) {
            Some(NOT_A_VISITOR)
        } else if self.has_come_back(now, &rx, &packet, false) {
            Some(FORWARDING_LOOP)
        } else if self.handoffs.specials.may(now, ()) {
            None
        } else {
            Some(SPECIAL_LIMIT)
        };
        if let Some(reason) = refusal {
            return self.refused.end(rx.iface, packet, Err(reason), out);
        }
        // Another host may have registered here with this home address.
        let encap = self.tunnels.encap(own.address, host, Kind::IpInIp, self.config.tunnel_mtu);
        self.handoffs.sent_back += 1;
        self.past_visitors(host, out, |agent, out| agent.enter_tunnel(now, &rx, packet, encap, out));
    }
}
