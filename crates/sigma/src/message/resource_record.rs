//! The resource records of DNS messages.

use super::{Name, class, kind};
use wire::Ipv4Addr;

/// A resource record (RFC 1035, section 4.1.3).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResourceRecord {
    /// The name to which the record belongs.
    pub name: Name,
    /// The type of record: one of [`kind`], or another number.
    pub kind: u16,
    /// The class: one of [`class`], or another number.
    pub class: u16,
    /// The time to live: for how long the record may be cached, in seconds.
    pub ttl: u32,
    /// The data of the record in wire format. Domain names in the data are not parsed or decompressed.
    pub data: Vec<u8>,
}

impl ResourceRecord {
    /// Returns an A record of class IN; `ttl` is in seconds.
    pub fn address(name: Name, ttl: u32, address: Ipv4Addr) -> Self {
        Self { name, kind: kind::A, class: class::IN, ttl, data: address.octets().to_vec() }
    }

    /// Returns the address of an A record; `None` for other types, or if the data do not have 4 bytes.
    pub fn as_address(&self) -> Option<Ipv4Addr> {
        let octets = <[u8; 4]>::try_from(self.data.as_slice()).ok()?;
        (self.kind == kind::A).then(|| Ipv4Addr::from(octets))
    }
}
