//! The Agent Advertisement: a Router Advertisement (RFC 1256, section 3) with the Mobility Agent Advertisement
//! Extension (RFC 5944, section 2.1.1). It may have the Prefix-Lengths Extension (RFC 5944, section 2.1.2), and the
//! Agent Advertisement Challenge Extension (RFC 4721, section 2).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! |    Type 9     |   Code 0, 16  |           Checksum            |
//! +---------------+---------------+-------------------------------+
//! |   Num Addrs   |Addr Entry Sz 2|        Lifetime, s            |
//! +---------------+---------------+-------------------------------+
//! |   Router Address and Preference, 8 bytes each …
//! +---------------+---------------+-------------------------------+
//! |    Type 16    |  Length 6+4K  |           Sequence            |
//! +---------------+---------------+-+-+-+-+-+-+-+-+-+-+-+---------+
//! |     Registration Lifetime     |R|B|H|F|M|G|r|T|U|X|I| reserved|
//! +-------------------------------+-+-+-+-+-+-+-+-+-+-+-+---------+
//! |   K care-of addresses …
//! +---------------+---------------+-------------------------------+
//! |    Type 19    |    Length N   | one prefix length per router address …
//! +---------------+---------------+-------------------------------+
//! |    Type 24    |    Length     | challenge …
//! ```

use super::{address, one_hop};
use std::ops::BitOr;
use wire::icmp::Message;
use wire::ipv4::{self, Header};
use wire::{Ipv4Addr, Malformed, Reader};

/// The ICMP type of an Agent Advertisement (RFC 1256, section 3).
pub const ADVERTISEMENT: u8 = 9;

const PADDING: u8 = 0;
const MOBILITY: u8 = 16;
const PREFIX_LENGTHS: u8 = 19;
const CHALLENGE: u8 = 24;
/// The ICMP code of an agent that routes for registered mobile nodes only (RFC 5944, section 2.1).
const NOT_COMMON: u8 = 16;
/// The size of a router address with its preference, in 4-byte words.
const ENTRY_SIZE: u8 = 2;

/// The 16 bits of flags and reserved bits of an Agent Advertisement, with R as the highest bit (RFC 5944, section
/// 2.1.1). Bits without a constant here are kept, and have no effect.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct AgentFlags(pub u16);

impl AgentFlags {
    /// R: a mobile node must register through a foreign agent of this link, even with a co-located care-of address.
    pub const REGISTRATION_REQUIRED: Self = Self(0x8000);
    /// B: the agent takes no new mobile nodes.
    pub const BUSY: Self = Self(0x4000);
    /// H: the agent is a home agent.
    pub const HOME: Self = Self(0x2000);
    /// F: the agent is a foreign agent.
    pub const FOREIGN: Self = Self(0x1000);
    /// M: the agent supports minimal encapsulation (RFC 2004).
    pub const MINIMAL: Self = Self(0x0800);
    /// G: the agent supports generic routing encapsulation (RFC 2784).
    pub const GRE: Self = Self(0x0400);
    /// T: the agent supports reverse tunnels (RFC 3024).
    pub const REVERSE: Self = Self(0x0100);

    /// Returns S: the agent offers smooth handoffs (draft-ietf-mobileip-optim-09, section 7.2).
    pub fn smooth(numbers: &super::Numbers) -> Self {
        Self(numbers.smooth_flag.into())
    }

    /// Returns whether any flag of `other` is set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns these flags, and those of `other` if `condition` is true.
    #[must_use]
    pub const fn with(self, other: Self, condition: bool) -> Self {
        if condition { Self(self.0 | other.0) } else { self }
    }
}

impl BitOr for AgentFlags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// An Agent Advertisement (RFC 5944, section 2.1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Advertisement {
    /// The agent's address, to which requests are sent.
    pub src: Ipv4Addr,
    /// The IP destination: [`super::ALL_SYSTEMS`], the broadcast address, or the mobile node that solicited.
    pub dst: Ipv4Addr,
    /// Whether the agent routes for registered mobile nodes only.
    pub registered_only: bool,
    /// How long the advertisement is valid, in seconds; 0: the agent is not to be used any more.
    pub lifetime: u16,
    /// The router addresses, each with its preference; a higher value is preferred (RFC 1256, section 3).
    pub routers: Vec<(Ipv4Addr, i32)>,
    /// The sequence number of the advertisement, counted as [`Advertisement::after`] does.
    pub sequence: u16,
    /// The longest registration that the agent accepts, in seconds; 0 means none, and [`super::INFINITE`] means without
    /// limit.
    pub registration_lifetime: u16,
    /// The flags of the agent (RFC 5944, section 2.1.1).
    pub flags: AgentFlags,
    /// The care-of addresses that the agent offers; not empty with flag F.
    pub care_of: Vec<Ipv4Addr>,
    /// The prefix length of each router address in bits, in the order of `routers`; `None` without the Prefix-Lengths
    /// Extension.
    pub prefix_lengths: Option<Vec<u8>>,
    /// The challenge of a foreign agent, from 1 to 255 bytes; `None` without the Challenge Extension (RFC 4721, section
    /// 2).
    pub challenge: Option<Vec<u8>>,
}

impl Advertisement {
    /// Returns the sequence number after this one. After 0xffff comes 256, so that a lower number below 256 means a
    /// restart of the agent (RFC 5944, section 2.3.2).
    pub const fn after(sequence: u16) -> u16 {
        if sequence == 0xffff { 256 } else { sequence + 1 }
    }

    /// Returns the preference of the agent as a router: that of its own address, or else of the first router address. 0
    /// without a router address, which is the default preference (RFC 1256, section 4.1).
    pub fn preference(&self) -> i32 {
        let own = self.routers.iter().find(|(router, _)| *router == self.src);
        own.or_else(|| self.routers.first()).map_or(0, |(_, preference)| *preference)
    }

    /// Parses `icmp`, the payload of the datagram with header `ip`.
    ///
    /// It is an error if the message is malformed, if its time to live is not 1, or if it has no Mobility Agent
    /// Advertisement Extension with flag F or H. Without this extension, the sender is a router without mobility
    /// support.
    pub fn parse(ip: &Header, icmp: &[u8]) -> Result<Self, Malformed> {
        let (code, body) = one_hop(ip, icmp, ADVERTISEMENT)?;
        if code != 0 && code != NOT_COMMON {
            return Err(Malformed("mip_advertisement_code"));
        }
        let mut r = Reader::new(&body, Malformed("mip_advertisement_short"));
        let (count, size, lifetime) = (r.u8()?, r.u8()?, r.u16()?);
        // Further words of an entry are ignored (RFC 1256, section 5.2).
        let Some(more) = size.checked_sub(ENTRY_SIZE) else { return Err(Malformed("mip_entry_size")) };
        let mut routers = Vec::new();
        for _ in 0..count {
            routers.push((address(&mut r)?, r.u32()?.cast_signed()));
            r.take(4 * usize::from(more))?;
        }
        let Extensions { mobility, prefix_lengths, challenge } = extensions(r.rest(), usize::from(count))?;
        let Mobility { sequence, registration_lifetime, flags, care_of } = mobility;
        Ok(Self {
            src: ip.src,
            dst: ip.dst,
            registered_only: code == NOT_COMMON,
            lifetime,
            routers,
            sequence,
            registration_lifetime,
            flags,
            care_of,
            prefix_lengths,
            challenge,
        })
    }

    /// Returns the advertisement as a whole IPv4 datagram with a time to live of 1.
    pub fn emit(&self) -> Vec<u8> {
        let mut body = vec![self.routers.len() as u8, ENTRY_SIZE];
        body.extend_from_slice(&self.lifetime.to_be_bytes());
        for (router, preference) in &self.routers {
            body.extend_from_slice(&router.octets());
            body.extend_from_slice(&preference.to_be_bytes());
        }
        body.extend_from_slice(&[MOBILITY, (6 + 4 * self.care_of.len()) as u8]);
        for field in [self.sequence, self.registration_lifetime, self.flags.0] {
            body.extend_from_slice(&field.to_be_bytes());
        }
        for care_of in &self.care_of {
            body.extend_from_slice(&care_of.octets());
        }
        if let Some(lengths) = &self.prefix_lengths {
            body.extend_from_slice(&[PREFIX_LENGTHS, lengths.len() as u8]);
            body.extend_from_slice(lengths);
        }
        if let Some(challenge) = &self.challenge {
            body.extend_from_slice(&[CHALLENGE, challenge.len() as u8]);
            body.extend_from_slice(challenge);
        }
        let code = if self.registered_only { NOT_COMMON } else { 0 };
        let icmp = Message { kind: ADVERTISEMENT, code, body: &body }.emit();
        Header { ttl: 1, ..Header::new(ipv4::ICMP, self.src, self.dst) }.emit(&icmp)
    }

    /// Returns the prefix of the agent's own link; `None` if the advertisement has no prefix length for the address
    /// `src`.
    pub fn prefix(&self) -> Option<wire::Prefix> {
        let at = self.routers.iter().position(|(router, _)| *router == self.src)?;
        self.prefix_lengths.as_ref()?.get(at).map(|length| wire::Prefix::new(self.src, *length))
    }
}

/// The content of the Mobility Agent Advertisement Extension.
struct Mobility {
    sequence: u16,
    registration_lifetime: u16,
    flags: AgentFlags,
    care_of: Vec<Ipv4Addr>,
}

/// The extensions of an advertisement that this crate interprets.
struct Extensions {
    mobility: Mobility,
    prefix_lengths: Option<Vec<u8>>,
    challenge: Option<Vec<u8>>,
}

fn extensions(bytes: &[u8], routers: usize) -> Result<Extensions, Malformed> {
    let mut r = Reader::new(bytes, Malformed("mip_extension_truncated"));
    let (mut found, mut lengths, mut challenge) = (None, None, None);
    while !r.is_empty() {
        let kind = r.u8()?;
        if kind == PADDING {
            continue; // a single byte without a length (RFC 5944, section 2.1.3)
        }
        let length = usize::from(r.u8()?);
        let data = r.take(length).map_err(|_| Malformed("mip_extension_overrun"))?;
        let twice = match kind {
            MOBILITY => found.replace(mobility(data)?).is_some(),
            PREFIX_LENGTHS => lengths.replace(prefix_lengths(data, routers)?).is_some(),
            CHALLENGE if data.is_empty() => return Err(Malformed("mip_challenge_length")),
            CHALLENGE => challenge.replace(data.to_vec()).is_some(),
            ..=127 => return Err(Malformed("mip_unknown_extension")),
            _ => false,
        };
        if twice {
            return Err(Malformed("mip_extension_twice"));
        }
    }
    let mobility = found.ok_or(Malformed("mip_no_agent"))?;
    Ok(Extensions { mobility, prefix_lengths: lengths, challenge })
}

fn mobility(data: &[u8]) -> Result<Mobility, Malformed> {
    let mut r = Reader::new(data, Malformed("mip_mobility_length"));
    let (sequence, registration_lifetime, flags) = (r.u16()?, r.u16()?, AgentFlags(r.u16()?));
    let mut care_of = Vec::new();
    while !r.is_empty() {
        care_of.push(address(&mut r)?);
    }
    if !flags.has(AgentFlags::FOREIGN | AgentFlags::HOME) {
        return Err(Malformed("mip_no_agent"));
    }
    if flags.has(AgentFlags::FOREIGN) && care_of.is_empty() {
        return Err(Malformed("mip_no_care_of"));
    }
    Ok(Mobility { sequence, registration_lifetime, flags, care_of })
}

fn prefix_lengths(data: &[u8], routers: usize) -> Result<Vec<u8>, Malformed> {
    if data.len() != routers || data.iter().any(|length| *length > 32) {
        return Err(Malformed("mip_prefix_lengths"));
    }
    Ok(data.to_vec())
}
