//! Types that identify interfaces, radio cells, link addresses and IPv4 prefixes.

use core::fmt;
use core::net::Ipv4Addr;
use core::str::FromStr;

/// The number of an interface of a node. 0 ([`Iface::HOST`]) is the host's own IP stack.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(transparent)]
pub struct Iface(pub u16);

impl Iface {
    /// The interface to the host's own IP stack: on Linux a veth pair, in the simulator the crate `stack`.
    pub const HOST: Self = Self(0);
}

/// The number of a radio cell in the configuration.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(transparent)]
pub struct Cell(pub u16);

/// A link-layer address (EUI-48).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// Six zero bytes: the link address is not known yet, or the link needs none.
    pub const ZERO: Self = Self([0; 6]);
    /// The broadcast address, 48 one bits: all stations on the link.
    pub const BROADCAST: Self = Self([0xff; 6]);

    /// Returns whether this is a group address: frames to it, such as broadcasts, are for more than one station.
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// Returns the link address for IP packets to `group`. A multicast group has the address of RFC 1112, section 6.4,
    /// and 255.255.255.255 has [`Mac::BROADCAST`]. Returns `None` for all other destinations.
    pub const fn of_group(group: Ipv4Addr) -> Option<Self> {
        let [_, b, c, d] = group.octets();
        if group.is_broadcast() {
            Some(Self::BROADCAST)
        } else if group.is_multicast() {
            Some(Self([0x01, 0x00, 0x5e, b & 0x7f, c, d]))
        } else {
            None
        }
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The error of a text that is not six two-digit hexadecimal numbers with colons between them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParseMacError;

impl fmt::Display for ParseMacError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a link address consists of six two-digit hexadecimal numbers with colons, for example 02:00:00:00:00:01")
    }
}

impl core::error::Error for ParseMacError {}

impl FromStr for Mac {
    type Err = ParseMacError;
    fn from_str(text: &str) -> Result<Self, ParseMacError> {
        let mut mac = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut mac {
            let part = parts.next().filter(|p| p.len() == 2 && !p.starts_with('+')).ok_or(ParseMacError)?;
            *byte = u8::from_str_radix(part, 16).map_err(|_| ParseMacError)?;
        }
        if parts.next().is_some() { Err(ParseMacError) } else { Ok(Self(mac)) }
    }
}

/// An IPv4 prefix. All address bits after the prefix length are zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix {
    address: Ipv4Addr,
    len: u8,
}

impl Prefix {
    /// The prefix 0.0.0.0/0, which contains every address.
    pub const ANY: Self = Self { address: Ipv4Addr::UNSPECIFIED, len: 0 };

    /// Returns the prefix of `len` bits that contains `address`. A `len` above 32 counts as 32.
    pub fn new(address: Ipv4Addr, len: u8) -> Self {
        let len = len.min(32);
        Self { address: Ipv4Addr::from_bits(address.to_bits() & Self::mask(len)), len }
    }

    /// Returns the prefix of 32 bits that contains only `address`.
    pub const fn host(address: Ipv4Addr) -> Self {
        Self { address, len: 32 }
    }

    /// Returns the first address of this prefix.
    pub const fn address(self) -> Ipv4Addr {
        self.address
    }

    /// Returns the length of this prefix in bits (0 to 32).
    #[expect(clippy::len_without_is_empty, reason = "a prefix is never empty; `len` is the field's own term")]
    pub const fn len(self) -> u8 {
        self.len
    }

    /// Returns whether `address` is in this prefix.
    pub fn contains(self, address: Ipv4Addr) -> bool {
        address.to_bits() & Self::mask(self.len) == self.address.to_bits()
    }

    const fn mask(len: u8) -> u32 {
        if len == 0 { 0 } else { u32::MAX << (32 - len) }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.len)
    }
}

impl fmt::Debug for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The error of a text that is not an IPv4 prefix, or has bits set after the prefix length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParsePrefixError;

impl fmt::Display for ParsePrefixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a prefix consists of an IPv4 address, a slash and a length of 0 to 32, and the address bits after this length are zero, for example 10.1.0.0/16")
    }
}

impl core::error::Error for ParsePrefixError {}

impl FromStr for Prefix {
    type Err = ParsePrefixError;
    fn from_str(text: &str) -> Result<Self, ParsePrefixError> {
        let (address, len) = text.split_once('/').ok_or(ParsePrefixError)?;
        let address: Ipv4Addr = address.parse().map_err(|_| ParsePrefixError)?;
        let len: u8 = len.parse().map_err(|_| ParsePrefixError)?;
        let prefix = Self::new(address, len);
        if len > 32 || prefix.address != address { Err(ParsePrefixError) } else { Ok(prefix) }
    }
}

/// The address of an interface with the prefix length of its link: `10.1.0.7/16`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InterfaceAddress {
    /// The address of the host on this interface.
    pub address: Ipv4Addr,
    /// The prefix of the hosts on this link, which are reached without a router.
    pub link: Prefix,
}

impl InterfaceAddress {
    /// Returns `address` on a link whose prefix has `len` bits. A `len` above 32 counts as 32.
    pub fn new(address: Ipv4Addr, len: u8) -> Self {
        Self { address, link: Prefix::new(address, len) }
    }

    /// Returns the directed broadcast address of this link; `None` for a prefix of 31 or 32 bits, which has none (RFC
    /// 3021).
    pub fn broadcast(self) -> Option<Ipv4Addr> {
        let last = Ipv4Addr::from_bits(self.link.address().to_bits() | !Prefix::mask(self.link.len()));
        (self.link.len() < 31).then_some(last)
    }

    /// Returns whether `to` is the directed broadcast address of this link. A prefix of 31 bits (RFC 3021) or 32 bits
    /// has no such address.
    pub fn is_broadcast(self, to: Ipv4Addr) -> bool {
        self.broadcast() == Some(to)
    }
}

impl fmt::Display for InterfaceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.link.len())
    }
}

impl fmt::Debug for InterfaceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The error of a text that is not an IPv4 address with a prefix length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParseInterfaceAddressError;

impl fmt::Display for ParseInterfaceAddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an interface's address consists of an IPv4 address, a slash and a prefix length of 0 to 32, for example 10.1.0.7/16")
    }
}

impl core::error::Error for ParseInterfaceAddressError {}

impl FromStr for InterfaceAddress {
    type Err = ParseInterfaceAddressError;
    fn from_str(text: &str) -> Result<Self, ParseInterfaceAddressError> {
        let (address, len) = text.split_once('/').ok_or(ParseInterfaceAddressError)?;
        let address = address.parse().map_err(|_| ParseInterfaceAddressError)?;
        let len = len.parse().ok().filter(|len| *len <= 32).ok_or(ParseInterfaceAddressError)?;
        Ok(Self::new(address, len))
    }
}

#[cfg(test)]
mod tests {
    extern crate alloc;
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn a_mac_prints_as_it_is_read() {
        let text = "02:00:0a:ff:00:07";
        assert_eq!(text.parse::<Mac>().unwrap().to_string(), text);
        for bad in [
            "",
            "02:00",
            "02:00:0a:ff:00:07:01",
            "2:00:0a:ff:00:07",
            "02-00-0a-ff-00-07",
            "+2:00:0a:ff:00:07",
        ] {
            assert_eq!(bad.parse::<Mac>(), Err(ParseMacError), "{bad}");
        }
    }

    #[test]
    fn a_prefix_holds_its_addresses_and_no_others() {
        let net: Prefix = "10.1.0.0/16".parse().unwrap();
        assert!(net.contains(Ipv4Addr::new(10, 1, 255, 1)));
        assert!(!net.contains(Ipv4Addr::new(10, 2, 0, 1)));
        assert!(Prefix::ANY.contains(Ipv4Addr::BROADCAST));
        for bad in ["10.1.0.0", "10.1.0.0/33", "10.1.0.1/16", "10.1/16", "10.1.0.0/"] {
            assert_eq!(bad.parse::<Prefix>(), Err(ParsePrefixError), "{bad}");
        }
    }

    #[test]
    fn an_interface_keeps_its_own_bits_beside_its_links() {
        let own: InterfaceAddress = "10.1.0.7/16".parse().unwrap();
        assert_eq!((own.to_string().as_str(), own.link), ("10.1.0.7/16", "10.1.0.0/16".parse().unwrap()));
        assert!(own.is_broadcast(Ipv4Addr::new(10, 1, 255, 255)) && !own.is_broadcast(own.address));
        assert!(!InterfaceAddress::new(Ipv4Addr::new(10, 1, 0, 1), 31).is_broadcast(own.address));
        for bad in ["10.1.0.7", "10.1.0.7/33", "10.1/16", "10.1.0.7/"] {
            assert_eq!(bad.parse::<InterfaceAddress>(), Err(ParseInterfaceAddressError), "{bad}");
        }
    }

    #[test]
    fn groups_have_link_addresses_of_their_own() {
        let group = Mac::of_group(Ipv4Addr::new(224, 128, 0, 11)).unwrap();
        assert_eq!(group.to_string(), "01:00:5e:00:00:0b", "23 bits of the group");
        assert_eq!(Mac::of_group(Ipv4Addr::BROADCAST), Some(Mac::BROADCAST));
        assert_eq!(Mac::of_group(Ipv4Addr::new(10, 1, 0, 7)), None);
        assert!(group.is_group() && Mac::BROADCAST.is_group() && !Mac([2, 0, 0, 0, 0, 1]).is_group());
    }
}
