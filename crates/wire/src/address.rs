//! Names of places: interfaces, cells, link addresses, prefixes.

use core::fmt;
use core::net::Ipv4Addr;
use core::str::FromStr;

/// An interface of a node, by number. [`Iface::HOST`] is the host's own IP stack.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Iface(pub u16);

impl Iface {
    /// The host's own stack: a veth pair or a TUN device on Linux, the simulator's UDP host in virtual time.
    pub const HOST: Self = Self(0);
}

/// A radio cell, as the configuration numbers it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Cell(pub u16);

/// A link-layer address (EUI-48).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// All zero: not known yet, or none needed.
    pub const ZERO: Self = Self([0; 6]);
    /// All ones: every station on the link.
    pub const BROADCAST: Self = Self([0xff; 6]);
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

/// Not six two-digit hexadecimal numbers with colons between them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParseMacError;

impl fmt::Display for ParseMacError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a link address is six two-digit hexadecimal numbers with colons, as 02:00:00:00:00:01")
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

/// An IPv4 prefix; bits behind its length are zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix {
    address: Ipv4Addr,
    len: u8,
}

impl Prefix {
    /// Every address.
    pub const ANY: Self = Self { address: Ipv4Addr::UNSPECIFIED, len: 0 };

    /// The prefix of `len` bits (at most 32) that holds `address`.
    pub fn new(address: Ipv4Addr, len: u8) -> Self {
        let len = len.min(32);
        Self { address: Ipv4Addr::from_bits(address.to_bits() & Self::mask(len)), len }
    }

    /// Exactly this address.
    pub const fn host(address: Ipv4Addr) -> Self {
        Self { address, len: 32 }
    }

    /// Its first address.
    pub const fn address(self) -> Ipv4Addr {
        self.address
    }

    /// Its length in bits.
    #[expect(clippy::len_without_is_empty, reason = "a prefix is never empty; `len` is the field's own term")]
    pub const fn len(self) -> u8 {
        self.len
    }

    /// Whether `address` lies in it.
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

/// Not an IPv4 prefix, or bits set behind its length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParsePrefixError;

impl fmt::Display for ParsePrefixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a prefix is an IPv4 address, a slash and 0 to 32, with no bit set behind that length, as 10.1.0.0/16")
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
}
