//! The key between a mobile node and a foreign agent that the home agent distributes (not from an RFC).
//!
//! The mobile node and its home agent derive the key of each registration from the key that they share, by HKDF-SHA-256 (RFC
//! 5869). The salt is the Identification of the accepted request, so each registration has another key. The mobile node needs
//! no message for that. The foreign agent gets the key in the reply, in a Normal Vendor/Organization Specific Extension (RFC
//! 3115, section 2.2), between the Mobile-Home and the Foreign-Home Authentication:
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! |   Type 134    |   Length 44   |           Reserved            |
//! +---------------+---------------+-------------------------------+
//! |                        Vendor or Org-ID                       |
//! +-------------------------------+-------------------------------+
//! |       Vendor-NVSE-Type        |              SPI …            |
//! +-------------------------------+-------------------------------+
//! |              … SPI            |  the masked key, 32 bytes …
//! ```
//!
//! The mask is a second output of HKDF, of the key between the two agents, with the same salt and the same addresses. A
//! repeated request has the same key and the same mask. No mask is used for two keys: all that the key depends on
//! changes the mask too.

use super::extension::{self, Algorithm, Association, Between, Extension};
use super::{Numbers, Reply, Request};
use auth::{Key, hkdf_sha256};
use wire::{Ipv4Addr, Malformed, Reader};

/// The length of a distributed key in bytes.
const KEY: usize = 32;
/// The length of the extension's data in bytes: reserved bytes, vendor, type, SPI and key.
const LENGTH: usize = 2 + 4 + 2 + 4 + KEY;
/// The highest bit, which each SPI of a distributed key has. So it is none of the reserved ones (0 to 255).
const SPI_BIT: u32 = 0x8000_0000;
/// The purposes of the two derivations, with which `info` begins.
const KEY_LABEL: &[u8] = b"wayfare mobile-foreign key";
const MASK_LABEL: &[u8] = b"wayfare mobile-foreign mask";

/// The registration to which a key belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyScope {
    /// The Identification of the request.
    identification: u64,
    home_agent: Ipv4Addr,
    home: Ipv4Addr,
    care_of: Ipv4Addr,
    /// The SPI of the Mobile-Home Authentication: another association derives another key.
    spi: u32,
}

impl KeyScope {
    /// Returns the registration that a request asks for. `None` if the request has no Mobile-Home Authentication.
    pub fn of(request: &Request) -> Option<Self> {
        let Request { identification, home_agent, home, care_of, .. } = *request;
        let spi = request.authentication(Between::MobileHome)?.spi;
        Some(Self { identification, home_agent, home, care_of, spi })
    }

    fn derive<const N: usize>(&self, key: &Key, label: &[u8]) -> [u8; N] {
        let [agent, home, care_of] =
            [self.home_agent, self.home, self.care_of].map(|address| address.octets());
        let info: [&[u8]; 5] = [label, &agent, &home, &care_of, &self.spi.to_be_bytes()];
        hkdf_sha256(key, &self.identification.to_be_bytes(), &info)
    }

    /// Returns the association between the mobile node and the foreign agent of this registration. `association` is that
    /// between the mobile node and its home agent.
    pub fn association(&self, association: &Association) -> Association {
        let (spi, key) = self.key(association);
        distributed(spi, key)
    }

    /// Returns the SPI and the key of this registration.
    fn key(&self, association: &Association) -> (u32, [u8; KEY]) {
        let [key @ .., a, b, c, d]: [u8; KEY + 4] = self.derive(&association.key, KEY_LABEL);
        (u32::from_be_bytes([a, b, c, d]) | SPI_BIT, key)
    }

    /// Returns the mask of the key. `foreign` is the association between the foreign agent and the home agent.
    fn mask(&self, foreign: &Association) -> [u8; KEY] {
        self.derive(&foreign.key, MASK_LABEL)
    }
}

fn distributed(spi: u32, key: [u8; KEY]) -> Association {
    Association { spi, algorithm: Algorithm::HmacSha256, key: Key::new(key) }
}

fn xor(one: [u8; KEY], other: [u8; KEY]) -> [u8; KEY] {
    let mut out = one;
    out.iter_mut().zip(other).for_each(|(to, from)| *to ^= from);
    out
}

/// A key for a foreign agent, as it is on the wire.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DistributedKey {
    /// The security parameter index of the key, at least 2147483648.
    pub spi: u32,
    /// The key, masked.
    pub masked: [u8; KEY],
}

impl DistributedKey {
    /// Returns the key of a registration as the home agent sends it. The associations are those of the home agent: with the
    /// mobile node, and with the foreign agent.
    pub fn new(scope: &KeyScope, mobile: &Association, foreign: &Association) -> Self {
        let (spi, key) = scope.key(mobile);
        Self { spi, masked: xor(key, scope.mask(foreign)) }
    }

    /// Returns the association that a foreign agent has from now on with the mobile node of this registration. `foreign` is
    /// its association with the home agent. With another registration or key, the result is another key.
    pub fn association(&self, scope: &KeyScope, foreign: &Association) -> Association {
        distributed(self.spi, xor(self.masked, scope.mask(foreign)))
    }

    /// Parses the data of an extension. `None` if it is an extension of another vendor, or of another type of this vendor.
    fn parse(data: &[u8], numbers: &Numbers) -> Option<Result<Self, Malformed>> {
        let mut r = Reader::new(data, Malformed("mip_key_length"));
        let own = (numbers.vendor, numbers.vendor_key);
        let _reserved = r.u16().ok()?;
        if (r.u32().ok()?, r.u16().ok()?) != own {
            return None;
        }
        Some(Self::value(&mut r))
    }

    fn value(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let key = Self { spi: r.u32()?, masked: r.array()? };
        if !r.is_empty() {
            return Err(Malformed("mip_key_length"));
        }
        if key.spi & SPI_BIT == 0 {
            return Err(Malformed("mip_key_spi"));
        }
        Ok(key)
    }

    /// Returns the extension.
    pub fn extension(&self, numbers: &Numbers) -> Extension {
        let mut data = Vec::with_capacity(LENGTH);
        data.extend_from_slice(&[0, 0]);
        data.extend_from_slice(&numbers.vendor.to_be_bytes());
        data.extend_from_slice(&numbers.vendor_key.to_be_bytes());
        data.extend_from_slice(&self.spi.to_be_bytes());
        data.extend_from_slice(&self.masked);
        Extension::Skipped { kind: numbers.vendor_extension, data }
    }
}

impl Reply {
    /// Returns the key for the foreign agent; `None` if there is none. Only an extension between the Mobile-Home and the
    /// Foreign-Home Authentication counts: another host may have added one that the latter does not cover. It is an error if
    /// the only ones are elsewhere, if there are two, or if the extension is malformed.
    pub fn distributed_key(&self, numbers: &Numbers) -> Result<Option<DistributedKey>, Malformed> {
        let own =
            |extension: &Extension| DistributedKey::parse(extension.data(numbers.vendor_extension)?, numbers);
        let begin = extension::find(&self.extensions, Between::MobileHome).map(|(at, _)| at + 1);
        let end = extension::find(&self.extensions, Between::ForeignHome).map(|(at, _)| at);
        let covered = begin.zip(end).and_then(|(begin, end)| self.extensions.get(begin..end));
        let mut keys = covered.unwrap_or_default().iter().filter_map(own);
        match (keys.next(), keys.next()) {
            (Some(key), None) => key.map(Some),
            (Some(_), Some(_)) => Err(Malformed("mip_key_twice")),
            (None, _) if self.extensions.iter().any(|extension| own(extension).is_some()) => {
                Err(Malformed("mip_key_position"))
            }
            (None, _) => Ok(None),
        }
    }
}
