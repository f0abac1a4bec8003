//! The Address Resolution Protocol (RFC 826), for IPv4 over Ethernet.

use crate::{Mac, Malformed, Reader};
use alloc::vec::Vec;
use core::net::Ipv4Addr;

/// The length of an ARP message in bytes.
pub const LEN: usize = 28;

/// The operation of an ARP message (`ar$op` in RFC 826).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operation {
    /// Asks for the link address of the target.
    Request,
    /// Gives the link address of the sender.
    Reply,
}

/// An ARP message for IPv4 over Ethernet (RFC 826).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Message {
    /// Whether the message is a request or a reply.
    pub operation: Operation,
    /// The link address of the sender.
    pub sender_mac: Mac,
    /// The IP address of the sender; unspecified in a probe (RFC 5227).
    pub sender: Ipv4Addr,
    /// The link address of the target. The field has no meaning in a request.
    pub target_mac: Mac,
    /// The IP address of the target: in a request the address to resolve, in a reply the address of the requester.
    pub target: Ipv4Addr,
}

impl Message {
    /// Returns a request for the link address of `target`.
    pub const fn request(sender_mac: Mac, sender: Ipv4Addr, target: Ipv4Addr) -> Self {
        Self { operation: Operation::Request, sender_mac, sender, target_mac: Mac::ZERO, target }
    }

    /// Returns the reply of the host with the link address `mac` to this request.
    #[must_use]
    pub const fn answer(&self, mac: Mac) -> Self {
        Self {
            operation: Operation::Reply,
            sender_mac: mac,
            sender: self.target,
            target_mac: self.sender_mac,
            target: self.sender,
        }
    }

    /// Returns a gratuitous request. The request announces that `address` now has the link address `mac` (RFC 5944,
    /// section 4.6).
    pub const fn gratuitous(mac: Mac, address: Ipv4Addr) -> Self {
        Self::request(mac, address, address)
    }

    /// Returns whether sender and target have the same IP address: the message announces this address, and resolves
    /// none.
    pub fn is_gratuitous(&self) -> bool {
        self.sender == self.target
    }

    /// Parses the payload of a frame, and ignores padding after the message. Fails if the message is truncated, or is
    /// not a request or reply for IPv4 over Ethernet. Fails if the sender's link address is a group address, or the
    /// sender's IP address is a group or 255.255.255.255.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(bytes, Malformed("arp_truncated"));
        if r.array()? != HARDWARE_ETHERNET {
            return Err(Malformed("arp_hardware"));
        }
        if r.array()? != PROTOCOL_IPV4 {
            return Err(Malformed("arp_protocol"));
        }
        if r.array()? != LENGTHS {
            return Err(Malformed("arp_lengths"));
        }
        let operation = match r.u16()? {
            1 => Operation::Request,
            2 => Operation::Reply,
            _ => return Err(Malformed("arp_operation")),
        };
        let (sender_mac, sender) = (Mac(r.array()?), Ipv4Addr::from(r.array::<4>()?));
        let (target_mac, target) = (Mac(r.array()?), Ipv4Addr::from(r.array::<4>()?));
        // No host has a group or broadcast address (for link addresses: RFC 1812, section 3.3.2).
        if sender_mac.is_group() || sender.is_multicast() || sender.is_broadcast() {
            return Err(Malformed("arp_sender"));
        }
        Ok(Self { operation, sender_mac, sender, target_mac, target })
    }

    /// Returns the 28 bytes of this message.
    pub fn emit(&self) -> Vec<u8> {
        let operation: u16 = match self.operation {
            Operation::Request => 1,
            Operation::Reply => 2,
        };
        let mut out = Vec::with_capacity(LEN);
        out.extend_from_slice(&HARDWARE_ETHERNET);
        out.extend_from_slice(&PROTOCOL_IPV4);
        out.extend_from_slice(&LENGTHS);
        out.extend_from_slice(&operation.to_be_bytes());
        out.extend_from_slice(&self.sender_mac.0);
        out.extend_from_slice(&self.sender.octets());
        out.extend_from_slice(&self.target_mac.0);
        out.extend_from_slice(&self.target.octets());
        out
    }
}

const HARDWARE_ETHERNET: [u8; 2] = [0, 1];
const PROTOCOL_IPV4: [u8; 2] = [8, 0];
/// The lengths of a link address and of an IP address, in bytes.
const LENGTHS: [u8; 2] = [6, 4];

#[cfg(test)]
mod tests {
    use super::*;

    const A: Mac = Mac([2, 0, 0, 0, 0, 1]);
    const B: Mac = Mac([2, 0, 0, 0, 0, 2]);
    const HERE: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
    const THERE: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);

    #[test]
    fn what_is_emitted_is_read_back() {
        let request = Message::request(A, HERE, THERE);
        let reply = request.answer(B);
        assert_eq!((reply.sender_mac, reply.sender, reply.target_mac, reply.target), (B, THERE, A, HERE));
        for message in [request, reply, Message::gratuitous(A, HERE)] {
            let mut bytes = message.emit();
            assert_eq!(bytes.len(), LEN);
            bytes.extend_from_slice(&[0; 18]); // padding to the shortest Ethernet payload
            assert_eq!(Message::parse(&bytes), Ok(message));
        }
        assert!(Message::gratuitous(A, HERE).is_gratuitous() && !request.is_gratuitous());
    }

    /// A request has the packet format of RFC 826.
    #[test]
    fn the_bytes_are_those_of_the_rfc() {
        let bytes = Message::request(A, HERE, THERE).emit();
        assert_eq!(bytes[..8], [0, 1, 8, 0, 6, 4, 0, 1]);
        assert_eq!(bytes[8..18], [2, 0, 0, 0, 0, 1, 10, 1, 0, 1]);
        assert_eq!(bytes[18..], [0, 0, 0, 0, 0, 0, 10, 1, 0, 2]);
    }

    #[test]
    fn every_refusal_names_its_reason() {
        let good = Message::request(A, HERE, THERE).emit();
        let with = |at: usize, value: u8| {
            let mut bytes = good.clone();
            bytes[at] = value;
            Message::parse(&bytes).unwrap_err().0
        };
        assert_eq!(with(1, 6), "arp_hardware");
        assert_eq!(with(2, 9), "arp_protocol");
        assert_eq!(with(4, 8), "arp_lengths");
        assert_eq!(with(7, 3), "arp_operation");
        assert_eq!(with(8, 3), "arp_sender");
        assert_eq!(with(14, 224), "arp_sender");
        assert_eq!(Message::parse(&good[..27]).unwrap_err().0, "arp_truncated");
    }
}
