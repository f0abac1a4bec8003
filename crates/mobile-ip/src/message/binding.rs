//! The messages of route optimization (draft-ietf-mobileip-optim-09), which say where a mobile node is.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! |  Warning 16   |            Reserved, three bytes              |   to a home agent: these hosts use an
//! +---------------+-----------------------------------------------+   old care-of address
//! |                  Home Address, Target, Target …               |
//! +---------------+---------------+-------------------------------+
//! |  Request 17   |            Reserved, three bytes              |   to a home agent: where is the mobile
//! +---------------+-----------------------------------------------+   node now?
//! |           Home Address, Identification (two words)            |   and with nonces the authentication
//! +---------------+-+-+-+-+-------+-------------------------------+
//! |   Update 18   |A|I|M|G| Rsvd  |           Lifetime            |   the mobile node is at the care-of address
//! +---------------+-+-+-+-+-------+-------------------------------+
//! |  Home Address, Care-of Address, Identification if I is set,   |
//! |  Generalized Authentication                                   |
//! +---------------+---------------+---------------+---------------+
//! | Acknowledge 19|          Reserved             |    Status     |   the answer to an Update with flag A
//! +---------------+-------------------------------+---------------+
//! |  Home Address, Identification if the Update had it            |
//! +---------------------------------------------------------------+
//! ```
//!
//! Later standards use some of the numbers for other messages, so they are configurable: [`Numbers`].
//!
//! The reserved bits of messages 17 to 19 must be zero. The draft ignores them. But an authenticator covers the message as it is built
//! again, and this has no reserved bits: so they could be changed on the way.

use super::extension::{Association, Extension};
use super::generalized::Generalized;
use super::{Numbers, PORT, address, datagram};
use wire::ipv4::{self, Header};
use wire::{Ipv4Addr, Malformed, Reader, SocketAddrV4, udp};

/// A message of route optimization.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Binding {
    /// A Binding Warning.
    Warning(Warning),
    /// A Binding Request.
    Request(BindingRequest),
    /// A Binding Update.
    Update(Update),
    /// A Binding Acknowledge.
    Acknowledge(Acknowledge),
}

impl Binding {
    /// Parses a UDP payload. `None` if its type is none of `numbers`. It is an error if the message is malformed.
    pub fn parse(payload: &[u8], numbers: &Numbers) -> Option<Result<Self, Malformed>> {
        let (&kind, rest) = payload.split_first()?;
        Some(if kind == numbers.warning {
            Warning::parse(rest).map(Self::Warning)
        } else if kind == numbers.request {
            BindingRequest::parse(rest).map(Self::Request)
        } else if kind == numbers.update {
            Update::parse(rest).map(Self::Update)
        } else if kind == numbers.acknowledge {
            Acknowledge::parse(rest).map(Self::Acknowledge)
        } else {
            return None;
        })
    }

    /// Parses the payload of a UDP datagram with this IP header. Returns the sender and the message, or `None` if the type
    /// of the message is none of `numbers`. It is an error if the datagram is a fragment, is not UDP, or is malformed.
    pub fn received(
        ip: &Header,
        payload: &[u8],
        numbers: &Numbers,
    ) -> Result<Option<(SocketAddrV4, Self)>, Malformed> {
        if ip.protocol != ipv4::UDP {
            return Err(Malformed("mip_protocol"));
        }
        if ip.is_fragment() {
            return Err(Malformed("mip_fragment"));
        }
        let datagram = udp::Datagram::parse(payload, ip.src, ip.dst)?;
        let from = SocketAddrV4::new(ip.src, datagram.src_port);
        Self::parse(datagram.payload, numbers).map(|message| Ok((from, message?))).transpose()
    }

    /// Returns the message as a UDP payload.
    pub fn emit(&self, numbers: &Numbers) -> Vec<u8> {
        match self {
            Self::Warning(message) => message.emit(numbers),
            Self::Request(message) => message.emit(numbers),
            Self::Update(message) => message.emit(numbers),
            Self::Acknowledge(message) => message.emit(numbers),
        }
    }

    /// Returns the message as an IPv4 datagram from one host to another, between their ports [`PORT`].
    pub fn datagram(&self, from: Ipv4Addr, to: Ipv4Addr, numbers: &Numbers) -> Vec<u8> {
        let [from, to] = [from, to].map(|address| SocketAddrV4::new(address, PORT));
        datagram(from, to, ipv4::DEFAULT_TTL, &self.emit(numbers))
    }

    /// Returns the home address of the mobile node that the message is about.
    pub const fn home(&self) -> Ipv4Addr {
        match self {
            Self::Warning(message) => message.home,
            Self::Request(message) => message.home,
            Self::Update(message) => message.home,
            Self::Acknowledge(message) => message.home,
        }
    }
}

/// A Binding Warning: the targets send packets for the mobile node to an old care-of address (optim-09, section 4.1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Warning {
    /// The home address of the mobile node.
    pub home: Ipv4Addr,
    /// The hosts to which the home agent should send a Binding Update: at least one.
    pub targets: Vec<Ipv4Addr>,
}

impl Warning {
    fn parse(rest: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(rest, Malformed("mip_warning_short"));
        r.take(3)?;
        let home = address(&mut r)?;
        Ok(Self { home, targets: targets(r.rest())? })
    }

    fn emit(&self, numbers: &Numbers) -> Vec<u8> {
        let mut out = vec![numbers.warning, 0, 0, 0];
        push(&mut out, self.home);
        self.targets.iter().for_each(|target| push(&mut out, *target));
        out
    }

    /// Parses the data of a Binding Warning Extension of a Registration Request (optim-09, section 7.3).
    pub(super) fn parse_extension(data: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(data, Malformed("mip_warning_short"));
        r.take(2)?;
        let home = address(&mut r)?;
        Ok(Self { home, targets: targets(r.rest())? })
    }

    /// Returns the Binding Warning Extension of a Registration Request. At most 62 targets fit.
    pub fn extension(&self, numbers: &Numbers) -> Extension {
        let mut data = vec![0, 0];
        push(&mut data, self.home);
        self.targets.iter().for_each(|target| push(&mut data, *target));
        Extension::Skipped { kind: numbers.warning_extension, data }
    }
}

/// Parses the target addresses of a warning: at least one, up to the end of the message. So nothing can follow them,
/// and a warning has no authentication.
fn targets(bytes: &[u8]) -> Result<Vec<Ipv4Addr>, Malformed> {
    let (addresses, rest) = bytes.as_chunks::<4>();
    if addresses.is_empty() || !rest.is_empty() {
        return Err(Malformed("mip_warning_targets"));
    }
    Ok(addresses.iter().map(|address| Ipv4Addr::from(*address)).collect())
}

/// A Binding Request: asks the home agent for a Binding Update (optim-09, section 4.2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BindingRequest {
    /// The home address of the mobile node.
    pub home: Ipv4Addr,
    /// The Identification. With nonces, the high half is a nonce that the home agent has announced, and the low half is the nonce of
    /// the answer.
    pub identification: u64,
    /// The authentication, if there is one. The draft has none.
    pub authentication: Option<Generalized>,
}

impl BindingRequest {
    fn parse(rest: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(rest, Malformed("mip_binding_request_length"));
        no_reserved(r.take(3)?)?;
        let (home, identification) = (address(&mut r)?, r.u64()?);
        let authentication = if r.is_empty() { None } else { Some(Generalized::parse(r.rest())?) };
        Ok(Self { home, identification, authentication })
    }

    fn emit(&self, numbers: &Numbers) -> Vec<u8> {
        with(self.emit_before(numbers), self.authentication.as_ref())
    }

    fn emit_before(&self, numbers: &Numbers) -> Vec<u8> {
        let mut out = vec![numbers.request, 0, 0, 0];
        push(&mut out, self.home);
        out.extend_from_slice(&self.identification.to_be_bytes());
        out
    }

    /// Sets the authentication.
    pub fn sign(&mut self, subtype: u8, association: &Association, numbers: &Numbers) {
        self.authentication = Some(association.sign_generalized(subtype, &self.emit_before(numbers)));
    }

    /// Returns whether the authentication has this subtype, the SPI of `association` and a correct authenticator.
    pub fn verify(&self, subtype: u8, association: &Association, numbers: &Numbers) -> bool {
        let Some(found) = &self.authentication else { return false };
        found.subtype == subtype && association.verifies_generalized(found, &self.emit_before(numbers))
    }
}

/// A Binding Update: the care-of address of a mobile node, for a binding cache (optim-09, section 4.3).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Update {
    /// A: the receiver must send a Binding Acknowledge.
    pub acknowledge: bool,
    /// M: the mobile node accepts minimal encapsulation.
    pub minimal: bool,
    /// G: the mobile node accepts generic routing encapsulation.
    pub gre: bool,
    /// The time in seconds for which the binding is valid; 0 deletes it, [`super::INFINITE`] means without end.
    pub lifetime: u16,
    /// The home address of the mobile node.
    pub home: Ipv4Addr,
    /// The care-of address. If it is the home address, the binding is deleted.
    pub care_of: Ipv4Addr,
    /// The Identification, if flag I is set: protection against replay.
    pub identification: Option<u64>,
    /// The authentication, the last part of the message. Without one ([`Update::sign`]), the receiver drops the message.
    pub authentication: Option<Generalized>,
}

impl Update {
    const ACKNOWLEDGE: u8 = 0x80;
    const IDENTIFICATION: u8 = 0x40;
    const MINIMAL: u8 = 0x20;
    const GRE: u8 = 0x10;
    const RESERVED: u8 = 0x0f;

    fn parse(rest: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(rest, Malformed("mip_update_short"));
        let flags = r.u8()?;
        no_reserved(&[flags & Self::RESERVED])?;
        let has = |flag| flags & flag != 0;
        Ok(Self {
            acknowledge: has(Self::ACKNOWLEDGE),
            minimal: has(Self::MINIMAL),
            gre: has(Self::GRE),
            lifetime: r.u16()?,
            home: address(&mut r)?,
            care_of: address(&mut r)?,
            identification: if has(Self::IDENTIFICATION) { Some(r.u64()?) } else { None },
            authentication: Some(Generalized::parse(r.rest())?),
        })
    }

    fn emit(&self, numbers: &Numbers) -> Vec<u8> {
        with(self.emit_before(numbers), self.authentication.as_ref())
    }

    /// Returns the message without its authentication: the bytes that the authenticator covers first.
    fn emit_before(&self, numbers: &Numbers) -> Vec<u8> {
        let flag = |set, flag| if set { flag } else { 0 };
        let flags = flag(self.acknowledge, Self::ACKNOWLEDGE)
            | flag(self.identification.is_some(), Self::IDENTIFICATION)
            | flag(self.minimal, Self::MINIMAL)
            | flag(self.gre, Self::GRE);
        let mut out = vec![numbers.update, flags];
        out.extend_from_slice(&self.lifetime.to_be_bytes());
        push(&mut out, self.home);
        push(&mut out, self.care_of);
        if let Some(identification) = self.identification {
            out.extend_from_slice(&identification.to_be_bytes());
        }
        out
    }

    /// Returns whether the message deletes the binding.
    pub fn deletes(&self) -> bool {
        self.lifetime == 0 || self.care_of == self.home
    }

    /// Sets the authentication: `subtype` is one of the two subtypes of [`Numbers`].
    pub fn sign(&mut self, subtype: u8, association: &Association, numbers: &Numbers) {
        self.authentication = Some(association.sign_generalized(subtype, &self.emit_before(numbers)));
    }

    /// Returns whether the authentication has this subtype, the SPI of `association` and a correct authenticator.
    pub fn verify(&self, subtype: u8, association: &Association, numbers: &Numbers) -> bool {
        let Some(found) = &self.authentication else { return false };
        found.subtype == subtype && association.verifies_generalized(found, &self.emit_before(numbers))
    }
}

/// A Binding Acknowledge: the answer to a Binding Update (optim-09, section 4.4).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Acknowledge {
    /// Whether the update was accepted.
    pub status: Status,
    /// The home address of the mobile node.
    pub home: Ipv4Addr,
    /// The Identification of the update, if it had one.
    pub identification: Option<u64>,
    /// The authentication, if there is one. The draft has none. It can be there only if the message has an
    /// Identification.
    pub authentication: Option<Generalized>,
}

impl Acknowledge {
    fn parse(rest: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(rest, Malformed("mip_acknowledge_length"));
        no_reserved(r.take(2)?)?;
        let (status, home) = (Status(r.u8()?), address(&mut r)?);
        let identification = if r.is_empty() { None } else { Some(r.u64()?) };
        let authentication = if r.is_empty() { None } else { Some(Generalized::parse(r.rest())?) };
        Ok(Self { status, home, identification, authentication })
    }

    fn emit(&self, numbers: &Numbers) -> Vec<u8> {
        with(self.emit_before(numbers), self.authentication.as_ref())
    }

    fn emit_before(&self, numbers: &Numbers) -> Vec<u8> {
        let mut out = vec![numbers.acknowledge, 0, 0, self.status.0];
        push(&mut out, self.home);
        if let Some(identification) = self.identification {
            out.extend_from_slice(&identification.to_be_bytes());
        }
        out
    }

    /// Sets the authentication. The message must have an Identification.
    pub fn sign(&mut self, subtype: u8, association: &Association, numbers: &Numbers) {
        self.authentication = Some(association.sign_generalized(subtype, &self.emit_before(numbers)));
    }

    /// Returns whether the authentication has this subtype, the SPI of `association` and a correct authenticator.
    pub fn verify(&self, subtype: u8, association: &Association, numbers: &Numbers) -> bool {
        let Some(found) = &self.authentication else { return false };
        found.subtype == subtype && association.verifies_generalized(found, &self.emit_before(numbers))
    }
}

/// The status of a Binding Acknowledge: accepted, or why not (optim-09, section 4.4).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Status(pub u8);

impl Status {
    /// The update was accepted.
    pub const ACCEPTED: Self = Self(0);
    /// Refused, no reason given.
    pub const UNSPECIFIED: Self = Self(128);
    /// Administratively prohibited.
    pub const PROHIBITED: Self = Self(129);
    /// Insufficient resources.
    pub const RESOURCES: Self = Self(130);
    /// The sender failed authentication.
    pub const AUTHENTICATION: Self = Self(131);
    /// The Identification does not match.
    pub const IDENTIFICATION: Self = Self(133);
    /// The update is malformed.
    pub const MALFORMED: Self = Self(134);

    /// Returns the meaning in words.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::ACCEPTED => "accepted",
            Self::UNSPECIFIED => "reason unspecified",
            Self::PROHIBITED => "administratively prohibited",
            Self::RESOURCES => "insufficient resources",
            Self::AUTHENTICATION => "sending node failed authentication",
            Self::IDENTIFICATION => "identification mismatch",
            Self::MALFORMED => "poorly formed update",
            _ => "unassigned",
        }
    }
}

/// Checks that reserved bits are zero.
fn no_reserved(bits: &[u8]) -> Result<(), Malformed> {
    if bits.iter().all(|bits| *bits == 0) { Ok(()) } else { Err(Malformed("mip_binding_reserved")) }
}

/// Returns a message with its authentication, if it has one.
fn with(mut message: Vec<u8>, authentication: Option<&Generalized>) -> Vec<u8> {
    if let Some(authentication) = authentication {
        authentication.emit(&mut message);
    }
    message
}

fn push(out: &mut Vec<u8>, address: Ipv4Addr) {
    out.extend_from_slice(&address.octets());
}
