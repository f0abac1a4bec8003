//! The update-request: a node that drops a host's data asks the host for a route-update.
//!
//! While a host sends data, it sends a route-update only every `route_reauth_time` (20 s by default). If a route-update
//! was lost, or a node restarted, nodes would drop the host's data until the next route-update. The update-request
//! shortens this time. The message is not authenticated, because it is only a hint. Whatever the number of requests, a
//! host answers with a route-update and its repetitions (`update_repeats`) at most every 200 ms.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! |   Type 253    |    Code 6     |           Checksum            |
//! +---------------+---------------+-------------------------------+
//! |    Reason     |                     zero                      |
//! +---------------+-----------------------------------------------+
//! |                            Node id                            |
//! +---------------+-----------------------------------------------+
//! |    KeyGen     |                     zero                      |
//! +---------------+-----------------------------------------------+
//! ```

use crate::message::ICMP_TYPE;
use wire::icmp::Message;
use wire::ipv4::{self, Header};
use wire::{Ipv4Addr, Malformed, Reader};

/// The ICMP code of an update-request. The message is Wayfare's, and not in draft-ietf-mobileip-cellularip-00.
pub const UPDATE_REQUEST: u8 = 6;

/// Why a node asks for a route-update.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// The node has no mapping of the host.
    NoMapping,
    /// The node has mapped the host to another neighbor.
    Mismatch,
}

impl Why {
    /// Returns the name of the reason in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoMapping => "no_mapping",
            Self::Mismatch => "mismatch",
        }
    }
}

/// An update-request: a node asks a mobile host for a route-update. The message is Wayfare's, and not in
/// draft-ietf-mobileip-cellularip-00.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UpdateRequest {
    /// The source address of the datagram. Each node that sends an update-request writes the gateway's address here, and
    /// not an address of the node.
    pub gateway: Ipv4Addr,
    /// The destination address of the datagram: the home address of the mobile host.
    pub mobile: Ipv4Addr,
    /// Why the node asks for a route-update.
    pub why: Why,
    /// The id of the node that sends the request, as in its configuration.
    pub node: u32,
    /// The generation of the node's network key.
    pub key_generation: u8,
}

impl UpdateRequest {
    /// Parses `icmp`, the payload of the datagram with header `ip`. It is an error if the message is malformed or not
    /// an update-request.
    pub fn parse(ip: &Header, icmp: &[u8]) -> Result<Self, Malformed> {
        if ip.is_fragment() {
            return Err(Malformed("cip_fragment"));
        }
        let message = Message::parse(icmp)?;
        if (message.kind, message.code) != (ICMP_TYPE, UPDATE_REQUEST) {
            return Err(Malformed("cip_not_update_request"));
        }
        let mut r = Reader::new(message.body, Malformed("cip_short"));
        let why = match r.u8()? {
            1 => Why::NoMapping,
            2 => Why::Mismatch,
            _ => return Err(Malformed("cip_request_reason")),
        };
        let (padding, node, key_generation) = (r.array::<3>()?, r.u32()?, r.u8()?);
        if padding != [0; 3] || r.array::<3>()? != [0; 3] || !r.is_empty() {
            return Err(Malformed("cip_unused_field"));
        }
        Ok(Self { gateway: ip.src, mobile: ip.dst, why, node, key_generation })
    }

    /// Returns the message as a whole IPv4 datagram.
    pub fn emit(&self) -> Vec<u8> {
        let why = match self.why {
            Why::NoMapping => 1,
            Why::Mismatch => 2,
        };
        let mut body = vec![why, 0, 0, 0];
        body.extend_from_slice(&self.node.to_be_bytes());
        body.extend_from_slice(&[self.key_generation, 0, 0, 0]);
        let icmp = Message { kind: ICMP_TYPE, code: UPDATE_REQUEST, body: &body }.emit();
        Header::new(ipv4::ICMP, self.gateway, self.mobile).emit(&icmp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> UpdateRequest {
        UpdateRequest {
            gateway: Ipv4Addr::new(10, 1, 0, 1),
            mobile: Ipv4Addr::new(10, 1, 0, 7),
            why: Why::Mismatch,
            node: 3,
            key_generation: 1,
        }
    }

    fn with_body(body: &[u8]) -> Result<UpdateRequest, Malformed> {
        let icmp = Message { kind: ICMP_TYPE, code: UPDATE_REQUEST, body }.emit();
        let datagram = Header::new(ipv4::ICMP, request().gateway, request().mobile).emit(&icmp);
        let (ip, icmp) = Header::parse(&datagram)?;
        UpdateRequest::parse(&ip, icmp)
    }

    #[test]
    fn the_golden_bytes() {
        let emitted = request().emit();
        let body = [2, 0, 0, 0, 0, 0, 0, 3, 1, 0, 0, 0];
        assert_eq!(emitted[ipv4::HEADER..ipv4::HEADER + 2], [253, 6]);
        assert_eq!(emitted[ipv4::HEADER + 4..], body);
        assert_eq!(with_body(&body), Ok(request()));
    }

    #[test]
    fn what_is_wrong_is_refused_with_its_reason() {
        for (body, reason) in [
            (vec![2, 0, 0, 0, 0, 0, 0, 3, 1, 0, 0], "cip_short"),
            (vec![2, 0, 0, 0, 0, 0, 0, 3, 1, 0, 0, 0, 0], "cip_unused_field"),
            (vec![2, 0, 1, 0, 0, 0, 0, 3, 1, 0, 0, 0], "cip_unused_field"),
            (vec![2, 0, 0, 0, 0, 0, 0, 3, 1, 1, 0, 0], "cip_unused_field"),
            (vec![0, 0, 0, 0, 0, 0, 0, 3, 1, 0, 0, 0], "cip_request_reason"),
            (vec![3, 0, 0, 0, 0, 0, 0, 3, 1, 0, 0, 0], "cip_request_reason"),
        ] {
            assert_eq!(with_body(&body), Err(Malformed(reason)), "{body:?}");
        }
    }
}
