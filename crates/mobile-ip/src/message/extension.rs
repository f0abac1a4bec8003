//! The extensions of a registration message, and its authentication.

use super::generalized::Generalized;
use auth::{Key, equal, hmac_md5, hmac_sha256, keyed_md5};
use schemars::JsonSchema;
use serde::Deserialize;
use wire::{Malformed, Reader};

/// The two nodes between which an extension authenticates a message; the value is the type of the extension (RFC 5944,
/// sections 3.5.2 to 3.5.4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Between {
    /// The Mobile-Home Authentication Extension: between the mobile node and its home agent.
    MobileHome = 32,
    /// The Mobile-Foreign Authentication Extension: between the mobile node and the foreign agent.
    MobileForeign = 33,
    /// The Foreign-Home Authentication Extension: between the foreign agent and the home agent.
    ForeignHome = 34,
}

impl Between {
    const ALL: [Self; 3] = [Self::MobileHome, Self::MobileForeign, Self::ForeignHome];
}

/// An authentication extension (RFC 5944, section 3.5).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Authentication {
    /// The two nodes between which this extension authenticates the message.
    pub between: Between,
    /// The security parameter index. It selects an association between the two nodes.
    pub spi: u32,
    /// The authenticator: 32 bytes for HMAC-SHA-256, and 16 bytes for the other algorithms. A received authenticator may have any
    /// length up to 251 bytes.
    pub authenticator: Vec<u8>,
}

/// An extension of a registration message (RFC 5944, sections 1.9 and 3.5).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Extension {
    /// One of the three authentication extensions.
    Authentication(Authentication),
    /// An extension that the parser does not interpret: of type 128 to 255, or of a known type. It is kept at its
    /// position, because authenticators cover it.
    Skipped {
        /// The type of the extension.
        kind: u8,
        /// The bytes after the type and the length, at most 255.
        data: Vec<u8>,
    },
}

/// The type of the Encapsulating Delivery Style Extension, which has no data (RFC 3024, section 3.3).
const ENCAPSULATING_DELIVERY: u8 = 130;

/// The type of the Network Access Identifier Extension (RFC 2794, section 2).
const NETWORK_ACCESS_IDENTIFIER: u8 = 131;

/// The type of the Mobile-Foreign Challenge Extension (RFC 4721, section 4).
const CHALLENGE: u8 = 132;

impl Extension {
    /// Returns the Mobile-Foreign Challenge Extension with this challenge, of at most 255 bytes (RFC 4721, section 4).
    pub const fn challenge(challenge: Vec<u8>) -> Self {
        Self::Skipped { kind: CHALLENGE, data: challenge }
    }

    /// Returns the Encapsulating Delivery Style Extension of a request (RFC 3024, section 3.3).
    pub const fn encapsulating_delivery() -> Self {
        Self::Skipped { kind: ENCAPSULATING_DELIVERY, data: Vec::new() }
    }

    /// Returns the data of the extension if it has this type and is not interpreted by the parser.
    pub(super) fn data(&self, kind: u8) -> Option<&[u8]> {
        match self {
            Self::Skipped { kind: own, data } if *own == kind => Some(data),
            _ => None,
        }
    }
}

/// Returns the data of the first extension of this type after the Mobile-Home Authentication, where extensions for the
/// foreign agent are. An extension after the Mobile-Foreign Authentication is ignored: that authentication does not cover
/// it, so another host may have added it (RFC 5944, section 3.6.1.3). `None` if there is none.
pub(super) fn for_foreign_agent(extensions: &[Extension], kind: u8) -> Option<&[u8]> {
    let (begin, _) = find(extensions, Between::MobileHome)?;
    let end = find(extensions, Between::MobileForeign).map_or(extensions.len(), |(end, _)| end);
    extensions.get(begin + 1..end)?.iter().find_map(|extension| extension.data(kind))
}

/// Returns the data of the first extension of this type before the Mobile-Home Authentication, where extensions for the
/// home agent are. `None` if there is none.
pub(super) fn for_home_agent(extensions: &[Extension], kind: u8) -> Option<&[u8]> {
    let (end, _) = find(extensions, Between::MobileHome)?;
    extensions.iter().take(end).find_map(|extension| extension.data(kind))
}

/// Returns the challenge before the Mobile-Foreign Authentication, which covers it; `None` if there is none.
pub(super) fn challenge(extensions: &[Extension]) -> Option<&[u8]> {
    let (end, _) = find(extensions, Between::MobileForeign)?;
    extensions.iter().take(end).find_map(|extension| extension.data(CHALLENGE))
}

/// Returns whether there is a challenge.
pub(super) fn has_challenge(extensions: &[Extension]) -> bool {
    extensions.iter().any(|extension| extension.data(CHALLENGE).is_some())
}

/// Returns whether there is a Network Access Identifier.
pub(super) fn has_network_access_identifier(extensions: &[Extension]) -> bool {
    extensions.iter().any(|extension| extension.data(NETWORK_ACCESS_IDENTIFIER).is_some())
}

/// Returns the data of the Encapsulating Delivery Style Extension of a request; `None` if there is none.
pub(super) fn delivery(extensions: &[Extension]) -> Option<&[u8]> {
    for_foreign_agent(extensions, ENCAPSULATING_DELIVERY)
}

/// The algorithm of an authenticator (RFC 5944, section 5.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// HMAC-SHA-256, 32 bytes, not truncated.
    #[default]
    HmacSha256,
    /// HMAC-MD5, 16 bytes. RFC 5944 requires it from all implementations.
    HmacMd5,
    /// Keyed MD5 in the mode prefix and suffix, 16 bytes (RFC 3344, section 5.1). It is weak: use it only for a peer
    /// that supports nothing else.
    KeyedMd5,
    /// As `keyed-md5`, but the authenticator does not cover the SPI. So RFC 2002, section 3.5.1, defines it.
    KeyedMd5WithoutSpi,
}

impl Algorithm {
    /// Returns the name in a configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::HmacSha256 => "hmac-sha256",
            Self::HmacMd5 => "hmac-md5",
            Self::KeyedMd5 => "keyed-md5",
            Self::KeyedMd5WithoutSpi => "keyed-md5-without-spi",
        }
    }
}

/// A mobility security association with one peer (RFC 5944, section 1.6).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Association {
    /// The security parameter index; 0 to 255 are reserved.
    pub spi: u32,
    /// How an authenticator is computed. The algorithm is configured, and never taken from a message.
    pub algorithm: Algorithm,
    /// The key. Configurations require at least 16 bytes.
    pub key: Key,
}

impl Association {
    /// Returns the length of an authenticator in bytes.
    const fn authenticator_length(&self) -> usize {
        match self.algorithm {
            Algorithm::HmacSha256 => 32,
            Algorithm::HmacMd5 | Algorithm::KeyedMd5 | Algorithm::KeyedMd5WithoutSpi => 16,
        }
    }

    /// Returns the authenticator of `before` and the head of the extension. Its last four bytes are the SPI, which
    /// [`Algorithm::KeyedMd5WithoutSpi`] does not cover.
    fn authenticator(&self, before: &[u8], head: &[u8]) -> Vec<u8> {
        let parts = [before, head];
        match self.algorithm {
            Algorithm::HmacSha256 => hmac_sha256(&self.key, &parts).to_vec(),
            Algorithm::HmacMd5 => hmac_md5(&self.key, &parts).to_vec(),
            Algorithm::KeyedMd5 => keyed_md5(&self.key, &parts).to_vec(),
            Algorithm::KeyedMd5WithoutSpi => {
                let without_spi = head.get(..head.len().saturating_sub(4)).unwrap_or_default();
                keyed_md5(&self.key, &[before, without_spi]).to_vec()
            }
        }
    }

    /// Returns type, length and SPI of the extension: the last bytes that the authenticator covers (RFC 5944, section
    /// 3.5.1). With [`Algorithm::KeyedMd5WithoutSpi`] it covers only the type and the length.
    fn head(&self, between: Between) -> [u8; 6] {
        let length = 4 + self.authenticator_length() as u8;
        let [a, b, c, d] = self.spi.to_be_bytes();
        [between as u8, length, a, b, c, d]
    }

    /// Returns the extension that authenticates `before`: all bytes of the message before the extension.
    pub fn sign(&self, between: Between, before: &[u8]) -> Authentication {
        let authenticator = self.authenticator(before, &self.head(between));
        Authentication { between, spi: self.spi, authenticator }
    }

    /// Returns whether `authentication` has the SPI of this association and authenticates `before`: all bytes of the
    /// message before the extension. The time of the comparison does not depend on the position of a wrong byte.
    pub fn verifies(&self, authentication: &Authentication, before: &[u8]) -> bool {
        authentication.spi == self.spi
            && equal(&self.sign(authentication.between, before).authenticator, &authentication.authenticator)
    }

    /// Returns the Generalized Authentication of this subtype that authenticates `before`.
    pub(super) fn sign_generalized(&self, subtype: u8, before: &[u8]) -> Generalized {
        let head = Generalized::head(subtype, self.authenticator_length(), self.spi);
        Generalized { subtype, spi: self.spi, authenticator: self.authenticator(before, &head) }
    }

    /// As [`Association::verifies`], for a Generalized Authentication.
    pub(super) fn verifies_generalized(&self, authentication: &Generalized, before: &[u8]) -> bool {
        authentication.spi == self.spi
            && equal(
                &self.sign_generalized(authentication.subtype, before).authenticator,
                &authentication.authenticator,
            )
    }
}

/// Returns the authentication extension between the two nodes of `between`, and the number of extensions before it;
/// `None` if there is none.
pub(super) fn find(extensions: &[Extension], between: Between) -> Option<(usize, &Authentication)> {
    extensions.iter().enumerate().find_map(|(at, extension)| match extension {
        Extension::Authentication(found) if found.between == between => Some((at, found)),
        _ => None,
    })
}

/// The maximum number of extensions of a message (not from an RFC). An extension may have no data: without a limit, a
/// message that waits at a foreign agent would take much more memory than its bytes.
const MOST: usize = 32;
/// The maximum length of all extensions, in bytes (not from an RFC): with the fixed part of a request and the headers of
/// IP and UDP, the datagram has 1500 bytes.
const LONGEST: usize = 1448;

/// Parses the extensions up to the end of a message. Those of the types `known` are not interpreted, but are no error.
///
/// Fails if an extension is malformed, has an unknown type from 0 to 127, or is the second authentication of one type.
/// Also fails if there are more than [`MOST`] extensions or [`LONGEST`] bytes. The Mobile-Home Authentication must be
/// the first authentication: extensions after it are for the foreign agent (RFC 5944, section 3.6.1.3).
pub(super) fn parse(bytes: &[u8], known: &[u8]) -> Result<Vec<Extension>, Malformed> {
    if bytes.len() > LONGEST {
        return Err(Malformed("mip_extensions_length"));
    }
    let mut r = Reader::new(bytes, Malformed("mip_extension_truncated"));
    let mut extensions = Vec::new();
    while !r.is_empty() {
        if extensions.len() >= MOST {
            return Err(Malformed("mip_extensions_count"));
        }
        let (kind, length) = (r.u8()?, r.u8()?);
        let data = r.take(usize::from(length)).map_err(|_| Malformed("mip_extension_overrun"))?;
        let extension = match Between::ALL.into_iter().find(|between| *between as u8 == kind) {
            Some(between) => Extension::Authentication(authentication(between, data, &extensions)?),
            None if kind < 128 && !known.contains(&kind) => return Err(Malformed("mip_unknown_extension")),
            None => Extension::Skipped { kind, data: data.to_vec() },
        };
        extensions.push(extension);
    }
    Ok(extensions)
}

fn authentication(between: Between, data: &[u8], before: &[Extension]) -> Result<Authentication, Malformed> {
    let mut r = Reader::new(data, Malformed("mip_authentication_length"));
    let spi = r.u32()?;
    for extension in before {
        match extension {
            Extension::Authentication(other) if other.between == between => {
                return Err(Malformed("mip_authentication_twice"));
            }
            Extension::Authentication(_) if between == Between::MobileHome => {
                return Err(Malformed("mip_extension_order"));
            }
            _ => {}
        }
    }
    Ok(Authentication { between, spi, authenticator: r.rest().to_vec() })
}

/// Appends the bytes of extensions.
pub(super) fn emit(extensions: &[Extension], out: &mut Vec<u8>) {
    for extension in extensions {
        match extension {
            Extension::Authentication(Authentication { between, spi, authenticator }) => {
                out.extend_from_slice(&[*between as u8, (4 + authenticator.len()) as u8]);
                out.extend_from_slice(&spi.to_be_bytes());
                out.extend_from_slice(authenticator);
            }
            Extension::Skipped { kind, data } => {
                out.extend_from_slice(&[*kind, data.len() as u8]);
                out.extend_from_slice(data);
            }
        }
    }
}

/// Defines methods of a message with extensions: a request or a reply.
macro_rules! signed {
    ($message:ty) => {
        impl $message {
            /// Returns the message as a UDP payload.
            pub fn emit(&self) -> Vec<u8> {
                self.emit_before(self.extensions.len())
            }

            /// Appends an authentication between the two nodes of `between`. The authentication covers all bytes that
            /// the message had before this call.
            pub fn sign(&mut self, between: extension::Between, association: &extension::Association) {
                let signed = association.sign(between, &self.emit());
                self.extensions.push(Extension::Authentication(signed));
            }

            /// Returns the authentication between the two nodes of `between`; `None` if there is none.
            pub fn authentication(&self, between: extension::Between) -> Option<&extension::Authentication> {
                extension::find(&self.extensions, between).map(|(_, found)| found)
            }

            /// Returns whether the message has an authentication between the two nodes of `between`, with the SPI of
            /// `association` and a correct authenticator.
            pub fn verify(&self, between: extension::Between, association: &extension::Association) -> bool {
                extension::find(&self.extensions, between)
                    .is_some_and(|(at, found)| association.verifies(found, &self.emit_before(at)))
            }

            /// Returns the challenge that the Mobile-Foreign Authentication covers (RFC 4721, section 4); `None` if there
            /// is no such challenge.
            pub fn challenge(&self) -> Option<&[u8]> {
                extension::challenge(&self.extensions)
            }

            /// Returns whether the message has a challenge, authenticated or not.
            pub fn has_challenge(&self) -> bool {
                extension::has_challenge(&self.extensions)
            }

            /// Removes the extensions after the Mobile-Home Authentication, which are for the foreign agent only (RFC
            /// 5944, sections 3.7.2.2 and 3.7.3.2). Does nothing if there is no such authentication.
            pub fn strip(&mut self) {
                if let Some((at, _)) = extension::find(&self.extensions, extension::Between::MobileHome) {
                    self.extensions.truncate(at + 1);
                }
            }
        }
    };
}
pub(super) use signed;
