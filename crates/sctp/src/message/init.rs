//! INIT and INIT ACK (RFC 9260, sections 3.3.2 and 3.3.3), and their parameters. Some parameters are defined by RFC
//! 5061 and RFC 4895.

use super::tlv;
use wire::{Ipv4Addr, Malformed, Reader};

/// Length of the random number in the RANDOM parameter, in bytes (RFC 4895, section 6.1).
pub const RANDOM: usize = 32;

/// INIT or INIT ACK: they have the same form.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Init {
    /// The verification tag for packets to the sender.
    pub tag: u32,
    /// The sender's receive window, in bytes.
    pub a_rwnd: u32,
    /// Number of streams in which the sender wants to send.
    pub outbound: u16,
    /// The largest number of streams in which the receiver of the chunk may send.
    pub inbound: u16,
    /// The TSN of the sender's first DATA chunk.
    pub tsn: u32,
    /// The parameters, in the order of the chunk. A parsed list ends with the first parameter of an unknown type
    /// below 0x8000.
    pub parameters: Vec<Parameter>,
}

/// One parameter of INIT or INIT ACK.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Parameter {
    /// 5: an address of the sender.
    Ipv4(Ipv4Addr),
    /// 6: an IPv6 address of the sender, which is not used here.
    Ipv6([u8; 16]),
    /// 7: in INIT ACK, the cookie that COOKIE ECHO returns.
    Cookie(Vec<u8>),
    /// 8: in INIT ACK, a whole parameter of INIT that was not recognized.
    Unrecognized(Vec<u8>),
    /// 9: in INIT, by how many milliseconds the cookie is to live longer.
    CookiePreservative(u32),
    /// 12: types of addresses that the sender supports. They are numbered as parameters: 5 is IPv4, 6 is IPv6.
    AddressTypes(Vec<u16>),
    /// 0x8002 (RFC 4895, section 3.1): the sender's part of the key.
    Random(Vec<u8>),
    /// 0x8003 (RFC 4895, section 3.2): types of chunks that the sender accepts only if they are authenticated.
    ChunkList(Vec<u8>),
    /// 0x8004 (RFC 4895, section 3.3): identifiers of the HMAC algorithms that the sender supports, the preferred one
    /// first.
    HmacAlgorithms(Vec<u16>),
    /// 0x8008 (RFC 5061, section 4.2.7): types of extension chunks that the sender supports.
    Extensions(Vec<u8>),
    /// 0xC006 (RFC 5061, section 4.2.6): a number for the application.
    Adaptation(u32),
    /// A parameter that this crate does not know.
    Unknown {
        /// The type on the wire.
        kind: u16,
        /// The bytes behind type and length, without padding.
        value: Vec<u8>,
    },
}

impl Parameter {
    /// Returns the type of the parameter on the wire (RFC 9260, section 3.2.1).
    pub const fn kind(&self) -> u16 {
        match self {
            Self::Ipv4(_) => 5,
            Self::Ipv6(_) => 6,
            Self::Cookie(_) => 7,
            Self::Unrecognized(_) => 8,
            Self::CookiePreservative(_) => 9,
            Self::AddressTypes(_) => 12,
            Self::Random(_) => 0x8002,
            Self::ChunkList(_) => 0x8003,
            Self::HmacAlgorithms(_) => 0x8004,
            Self::Extensions(_) => 0x8008,
            Self::Adaptation(_) => 0xc006,
            Self::Unknown { kind, .. } => *kind,
        }
    }

    fn parse(kind: u16, value: &[u8]) -> Result<Self, Malformed> {
        let bad = Malformed("sctp_parameter_length");
        let mut r = Reader::new(value, bad);
        let parameter = match kind {
            5 => Self::Ipv4(r.array::<4>()?.into()),
            6 => Self::Ipv6(r.array()?),
            9 => Self::CookiePreservative(r.u32()?),
            0xc006 => Self::Adaptation(r.u32()?),
            _ => return Self::parse_variable(kind, value),
        };
        if r.is_empty() { Ok(parameter) } else { Err(bad) }
    }

    fn parse_variable(kind: u16, value: &[u8]) -> Result<Self, Malformed> {
        let odd = Malformed("sctp_parameter_length");
        let bytes = value.to_vec();
        Ok(match kind {
            7 => Self::Cookie(bytes),
            8 => Self::Unrecognized(bytes),
            12 => Self::AddressTypes(tlv::numbers(value, odd)?),
            0x8002 => Self::Random(bytes),
            0x8003 => Self::ChunkList(bytes),
            0x8004 => Self::HmacAlgorithms(tlv::numbers(value, odd)?),
            0x8008 => Self::Extensions(bytes),
            _ => Self::Unknown { kind, value: bytes },
        })
    }

    /// Returns the parameter in bytes, without padding behind it. A key vector contains parameters in this form (RFC
    /// 4895, section 6.1).
    pub fn emit(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.put(&mut out);
        out
    }

    fn put(&self, out: &mut Vec<u8>) {
        let kind = self.kind();
        match self {
            Self::Ipv4(address) => tlv::put(out, kind, &[&address.octets()]),
            Self::Ipv6(address) => tlv::put(out, kind, &[address]),
            Self::CookiePreservative(number) | Self::Adaptation(number) => {
                tlv::put(out, kind, &[&number.to_be_bytes()]);
            }
            Self::AddressTypes(list) | Self::HmacAlgorithms(list) => {
                tlv::put(out, kind, &[&tlv::number_bytes(list)]);
            }
            Self::Cookie(value)
            | Self::Unrecognized(value)
            | Self::Random(value)
            | Self::ChunkList(value)
            | Self::Extensions(value)
            | Self::Unknown { value, .. } => tlv::put(out, kind, &[value]),
        }
    }
}

impl Init {
    pub(super) fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(body, Malformed("sctp_init_truncated"));
        let (tag, a_rwnd) = (r.u32()?, r.u32()?);
        let (outbound, inbound, tsn) = (r.u16()?, r.u16()?, r.u32()?);
        let mut parameters = Vec::new();
        while let Some((kind, value)) = tlv::next(&mut r)? {
            let parameter = Parameter::parse(kind, value)?;
            let stop = matches!(parameter, Parameter::Unknown { .. }) && kind & 0x8000 == 0;
            parameters.push(parameter);
            if stop {
                break; // RFC 9260, section 3.2.1: the rest is ignored
            }
        }
        Ok(Self { tag, a_rwnd, outbound, inbound, tsn, parameters })
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.tag.to_be_bytes());
        out.extend_from_slice(&self.a_rwnd.to_be_bytes());
        out.extend_from_slice(&self.outbound.to_be_bytes());
        out.extend_from_slice(&self.inbound.to_be_bytes());
        out.extend_from_slice(&self.tsn.to_be_bytes());
        for parameter in &self.parameters {
            parameter.put(out);
        }
    }

    /// Returns the body of the chunk in bytes, for a cookie.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.put(&mut out);
        out
    }

    /// Parses the body of an INIT or INIT ACK from the bytes that `to_bytes` returned.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, Malformed> {
        Self::parse(bytes)
    }

    /// Returns the IPv4 addresses in the parameters. Without any address parameter, the sender has only the source
    /// address of the packet.
    pub fn addresses(&self) -> impl Iterator<Item = Ipv4Addr> {
        self.parameters.iter().filter_map(|parameter| match parameter {
            Parameter::Ipv4(address) => Some(*address),
            _ => None,
        })
    }

    /// Returns each unknown parameter that must be reported to the sender, as whole bytes (RFC 9260, section 3.2.2).
    pub fn reports(&self) -> impl Iterator<Item = Vec<u8>> {
        let unknown = self
            .parameters
            .iter()
            .filter(|parameter| matches!(parameter, Parameter::Unknown { kind, .. } if kind & 0x4000 != 0));
        unknown.map(Parameter::emit)
    }

    /// Returns the state cookie of an INIT ACK, or `None` if the parameters have no cookie.
    pub fn cookie(&self) -> Option<&[u8]> {
        self.parameters.iter().find_map(|parameter| match parameter {
            Parameter::Cookie(cookie) => Some(cookie.as_slice()),
            _ => None,
        })
    }

    /// Returns whether the sender supports the extension chunk of type `kind` (RFC 5061, section 4.2.7).
    pub fn extends(&self, kind: u8) -> bool {
        let listed = |parameter: &Parameter| matches!(parameter, Parameter::Extensions(kinds) if kinds.contains(&kind));
        self.parameters.iter().any(listed)
    }
}
