//! INIT and INIT ACK (RFC 9260, sections 3.3.2 and 3.3.3) and their parameters, those of RFC 5061 and RFC 4895 among them.

use super::tlv;
use wire::{Ipv4Addr, Malformed, Reader};

/// Bytes of RANDOM that everybody must send (RFC 4895, section 6.1).
pub const RANDOM: usize = 32;

/// INIT, or INIT ACK: they have the same form.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Init {
    /// The tag that the receiver is to put into all it sends.
    pub tag: u32,
    /// The sender's receiver window, in bytes.
    pub a_rwnd: u32,
    /// How many streams the sender wants to send in.
    pub outbound: u16,
    /// How many it takes.
    pub inbound: u16,
    /// The number of its first DATA chunk.
    pub tsn: u32,
    /// What else it says, in its order.
    pub parameters: Vec<Parameter>,
}

/// One parameter of INIT or INIT ACK.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Parameter {
    /// 5: an address of the sender.
    Ipv4(Ipv4Addr),
    /// 6: another, which this house does not use.
    Ipv6([u8; 16]),
    /// 7: in INIT ACK, what COOKIE ECHO gives back.
    Cookie(Vec<u8>),
    /// 8: in INIT ACK, a parameter of INIT that was not understood, whole.
    Unrecognized(Vec<u8>),
    /// 9: in INIT, by how many milliseconds the last cookie was too old.
    CookiePreservative(u32),
    /// 12: kinds of addresses that the sender understands, as types of parameters.
    AddressTypes(Vec<u16>),
    /// 0x8002 (RFC 4895, section 3.1): the sender's part of the key.
    Random(Vec<u8>),
    /// 0x8003 (section 3.2): types of chunks that the sender takes authenticated only.
    ChunkList(Vec<u8>),
    /// 0x8004 (section 3.3): algorithms that the sender understands, the preferred first.
    HmacAlgorithms(Vec<u16>),
    /// 0x8008 (RFC 5061, section 4.2.7): types of chunks that the sender understands besides the basic ones.
    Extensions(Vec<u8>),
    /// 0xC006 (RFC 5061, section 4.2.6): a number for the user.
    Adaptation(u32),
    /// One that this crate does not know.
    Unknown {
        /// Its type.
        kind: u16,
        /// Its value.
        value: Vec<u8>,
    },
}

impl Parameter {
    /// The type on the wire.
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

    /// The parameter as it stands in a chunk, without padding behind it: so it enters the key (RFC 4895, section 6.1).
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
                break; // RFC 9260, section 3.2.1: the rest is not looked at
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

    /// The body of the chunk in bytes, for a cookie to keep.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.put(&mut out);
        out
    }

    /// The inverse of `to_bytes`.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, Malformed> {
        Self::parse(bytes)
    }

    /// The IPv4 addresses that are listed.
    pub fn addresses(&self) -> impl Iterator<Item = Ipv4Addr> {
        self.parameters.iter().filter_map(|parameter| match parameter {
            Parameter::Ipv4(address) => Some(*address),
            _ => None,
        })
    }

    /// Unknown parameters that their sender wants to be told of (RFC 9260, section 3.2.1), whole.
    pub fn reports(&self) -> impl Iterator<Item = Vec<u8>> {
        let unknown = self
            .parameters
            .iter()
            .filter(|parameter| matches!(parameter, Parameter::Unknown { kind, .. } if kind & 0x4000 != 0));
        unknown.map(Parameter::emit)
    }

    /// The cookie of an INIT ACK.
    pub fn cookie(&self) -> Option<&[u8]> {
        self.parameters.iter().find_map(|parameter| match parameter {
            Parameter::Cookie(cookie) => Some(cookie.as_slice()),
            _ => None,
        })
    }

    /// Whether a chunk of this type is among the extensions that the sender understands.
    pub fn extends(&self, kind: u8) -> bool {
        let listed = |parameter: &Parameter| matches!(parameter, Parameter::Extensions(kinds) if kinds.contains(&kind));
        self.parameters.iter().any(listed)
    }
}
