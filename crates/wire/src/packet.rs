//! A packet on a link or in a node: link addresses, an identity, and the bytes.

use crate::Mac;
use alloc::vec::Vec;
use core::fmt;

/// The number of the protocol that a frame carries (IEEE 802).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EtherType(pub u16);

impl EtherType {
    /// The `EtherType` of IPv4.
    pub const IPV4: Self = Self(0x0800);
    /// The `EtherType` of the Address Resolution Protocol (ARP).
    pub const ARP: Self = Self(0x0806);
}

impl fmt::Debug for EtherType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#06x}", self.0)
    }
}

/// The link-layer header of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Frame {
    /// The protocol of the payload.
    pub kind: EtherType,
    /// The link address of the station that sent the frame on this link.
    pub src: Mac,
    /// The link address of the station or group that receives the frame.
    pub dst: Mac,
}

impl Frame {
    /// Returns the header of an IPv4 frame to `dst`. The node that sends the frame sets the source.
    #[must_use]
    pub const fn to(dst: Mac) -> Self {
        Self { kind: EtherType::IPV4, src: Mac::ZERO, dst }
    }

    /// Returns the header of an ARP frame to `dst`, or to the whole link with [`Mac::BROADCAST`]. The node that sends
    /// the frame sets the source.
    #[must_use]
    pub const fn arp(dst: Mac) -> Self {
        Self { kind: EtherType::ARP, src: Mac::ZERO, dst }
    }
}

/// The identity of a packet. Forwarding, copying and tunneling do not change it.
///
/// The simulator numbers the packets. On Linux the identity is the hash [`crate::identity`] of the packet's bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PacketId(pub u64);

impl PacketId {
    /// The packet has no identity yet. The driver assigns one when it first sends the packet.
    pub const NEW: Self = Self(0);
}

/// A packet with its link-layer header and its identity.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Packet {
    /// The link-layer header.
    pub link: Frame,
    /// The identity, or [`PacketId::NEW`] if the packet has none yet.
    pub id: PacketId,
    /// The IPv4 datagram with its header, or the ARP message.
    pub bytes: Vec<u8>,
}

impl Packet {
    /// Returns a new IPv4 packet of a role to the neighbor `to`. If `to` is [`Mac::ZERO`], the node finds the neighbor
    /// when it sends the packet.
    pub const fn new(to: Mac, bytes: Vec<u8>) -> Self {
        Self { link: Frame::to(to), id: PacketId::NEW, bytes }
    }

    /// Returns a new packet with an ARP message to the neighbor `to` or to [`Mac::BROADCAST`].
    pub fn arp(to: Mac, message: &crate::arp::Message) -> Self {
        Self { link: Frame::arp(to), id: PacketId::NEW, bytes: message.emit() }
    }
}

impl fmt::Debug for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Packet(#{} {} -> {}, {} B", self.id.0, self.link.src, self.link.dst, self.bytes.len())?;
        if self.link.kind == EtherType::ARP {
            f.write_str(", arp")?;
        } else if let Ok((header, _)) = crate::ipv4::Header::parse(&self.bytes) {
            write!(f, ", {} -> {} protocol {}", header.src, header.dst, header.protocol)?;
        }
        f.write_str(")")
    }
}

/// The reason why a packet was dropped, for example `no_route`. There is no "other": every drop has a specific reason.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reason(pub &'static str);

impl Reason {
    /// Returns a number for this reason, for data that cannot contain the name, for example in a kernel map. The number
    /// is the 32-bit FNV-1a hash of the name, so it is the same in every build. A test ensures that all reasons have
    /// different numbers.
    pub const fn code(self) -> u32 {
        let (bytes, mut hash, mut at) = (self.0.as_bytes(), 0x811c_9dc5_u32, 0);
        while at < bytes.len() {
            hash = (hash ^ bytes[at] as u32).wrapping_mul(0x0100_0193);
            at += 1;
        }
        hash
    }
}

impl fmt::Debug for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl From<crate::Malformed> for Reason {
    fn from(malformed: crate::Malformed) -> Self {
        Self(malformed.0)
    }
}
