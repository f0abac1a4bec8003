//! The Agent Solicitation: a Router Solicitation (RFC 1256, section 3) with a time to live of 1.

use super::one_hop;
use wire::icmp::Message;
use wire::ipv4::{self, Header};
use wire::{Ipv4Addr, Malformed};

/// The ICMP type of an Agent Solicitation (RFC 1256, section 3).
pub const SOLICITATION: u8 = 10;

/// An Agent Solicitation: a mobile node asks for the advertisements of agents (RFC 5944, section 2.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Solicitation {
    /// The mobile node's address. It may be of any network: an agent must not require an address of the link's network
    /// (RFC 5944, section 2.3).
    pub src: Ipv4Addr,
    /// The IP destination: [`super::ALL_ROUTERS`], [`super::ALL_AGENTS`] or the broadcast address.
    pub dst: Ipv4Addr,
}

impl Solicitation {
    /// Parses `icmp`, the payload of the datagram with header `ip`. The four reserved bytes are ignored. It is an error
    /// if the message is malformed or its time to live is not 1.
    pub fn parse(ip: &Header, icmp: &[u8]) -> Result<Self, Malformed> {
        let (code, body) = one_hop(ip, icmp, SOLICITATION)?;
        if code != 0 {
            return Err(Malformed("mip_solicitation_code"));
        }
        if body.len() < 4 {
            return Err(Malformed("mip_solicitation_short"));
        }
        Ok(Self { src: ip.src, dst: ip.dst })
    }

    /// Returns the solicitation as a whole IPv4 datagram with a time to live of 1.
    pub fn emit(&self) -> Vec<u8> {
        let icmp = Message { kind: SOLICITATION, code: 0, body: &[0; 4] }.emit();
        Header { ttl: 1, ..Header::new(ipv4::ICMP, self.src, self.dst) }.emit(&icmp)
    }
}
