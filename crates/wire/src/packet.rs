//! A packet as it travels: link addresses, an identity, and real bytes.

use crate::Mac;
use alloc::vec::Vec;
use core::fmt;

/// What a frame carries (IEEE 802 numbers).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EtherType(pub u16);

impl EtherType {
    /// IPv4.
    pub const IPV4: Self = Self(0x0800);
    /// The Address Resolution Protocol.
    pub const ARP: Self = Self(0x0806);
}

impl fmt::Debug for EtherType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#06x}", self.0)
    }
}

/// The link-layer envelope of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Frame {
    /// What it carries.
    pub kind: EtherType,
    /// Who put it on this link.
    pub src: Mac,
    /// Who is to take it.
    pub dst: Mac,
}

impl Frame {
    /// An IPv4 frame to `dst`; the sending node fills in its own address.
    #[must_use]
    pub const fn to(dst: Mac) -> Self {
        Self { kind: EtherType::IPV4, src: Mac::ZERO, dst }
    }

    /// An ARP frame to `dst`, or with [`Mac::BROADCAST`] to the whole link.
    #[must_use]
    pub const fn arp(dst: Mac) -> Self {
        Self { kind: EtherType::ARP, src: Mac::ZERO, dst }
    }
}

/// The identity of a packet: it survives forwarding, copying and tunnelling.
///
/// The simulator numbers packets; on Linux it is [`crate::identity`] of the bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PacketId(pub u64);

impl PacketId {
    /// Not given one yet: the driver does so when the packet first leaves its role.
    pub const NEW: Self = Self(0);
}

/// A packet in a node's hands.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Packet {
    /// Its link-layer envelope.
    pub link: Frame,
    /// Its identity.
    pub id: PacketId,
    /// The IP datagram, header first; or the ARP message.
    pub bytes: Vec<u8>,
}

impl Packet {
    /// A packet that a role has just made, for the neighbor `to`; [`Mac::ZERO`] leaves it to ARP to find the neighbor.
    pub const fn new(to: Mac, bytes: Vec<u8>) -> Self {
        Self { link: Frame::to(to), id: PacketId::NEW, bytes }
    }

    /// An ARP message that has just been made, for the neighbor `to` or for [`Mac::BROADCAST`].
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

/// Why a packet went no further. There is no "other": whoever drops a packet can say why.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reason(pub &'static str);

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
