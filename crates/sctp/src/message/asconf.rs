//! ASCONF and ASCONF-ACK: requests for address changes, and their results (RFC 5061, section 4).

use super::cause::{self, Cause};
use super::tlv;
use wire::{Ipv4Addr, Malformed, Reader};

/// Length of ASCONF-ACK before the first response, in bytes.
const ACK_HEADER: usize = 8;

/// An address parameter in ASCONF (RFC 5061, section 4.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Address {
    /// An IPv4 address: parameter type 5.
    Ipv4(Ipv4Addr),
    /// An IPv6 address: parameter type 6. The parser accepts it, but requests with it are refused.
    Ipv6([u8; 16]),
}

/// A change of an address (RFC 5061, sections 4.2.1, 4.2.2 and 4.2.4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Action {
    /// 0xC001: add the address to the sender's addresses.
    Add,
    /// 0xC002: delete the address from the sender's addresses.
    Delete,
    /// 0xC004: make the address the receiver's primary destination.
    SetPrimary,
}

impl Action {
    const fn kind(self) -> u16 {
        match self {
            Self::Add => 0xc001,
            Self::Delete => 0xc002,
            Self::SetPrimary => 0xc004,
        }
    }
}

/// One parameter of ASCONF: a request (RFC 5061, section 4.2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// A change of a known type.
    Change {
        /// What to do with the address.
        action: Action,
        /// The correlation number, which the response repeats.
        correlation: u32,
        /// The address of the sender that is to be added, deleted or made primary.
        address: Address,
    },
    /// A request of a type that this crate does not know.
    Unknown {
        /// The type on the wire.
        kind: u16,
        /// The correlation number, which the response repeats.
        correlation: u32,
        /// The bytes behind the correlation number, without padding.
        value: Vec<u8>,
    },
}

impl Request {
    /// Returns the correlation number, which the response repeats.
    pub const fn correlation(&self) -> u32 {
        match self {
            Self::Change { correlation, .. } | Self::Unknown { correlation, .. } => *correlation,
        }
    }

    /// Returns the parameter in bytes, without padding behind it. A refusal repeats these bytes.
    pub fn emit(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.put(&mut out);
        out
    }

    fn parse(kind: u16, value: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(value, Malformed("sctp_asconf_parameter"));
        let correlation = r.u32()?;
        let Some(action) =
            [Action::Add, Action::Delete, Action::SetPrimary].into_iter().find(|a| a.kind() == kind)
        else {
            return Ok(Self::Unknown { kind, correlation, value: r.rest().to_vec() });
        };
        let address = Address::parse(&mut r)?;
        if r.is_empty() {
            Ok(Self::Change { action, correlation, address })
        } else {
            Err(Malformed("sctp_asconf_parameter"))
        }
    }

    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Change { action, correlation, address } => {
                let mut inner = Vec::new();
                address.put(&mut inner);
                tlv::put(out, action.kind(), &[&correlation.to_be_bytes(), &inner]);
            }
            Self::Unknown { kind, correlation, value } => {
                tlv::put(out, *kind, &[&correlation.to_be_bytes(), value]);
            }
        }
    }
}

impl Address {
    fn parse(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let bad = Malformed("sctp_asconf_address");
        match (tlv::next(r)?.ok_or(bad)?, bad) {
            ((5, value), bad) => {
                <[u8; 4]>::try_from(value).map(|octets| Self::Ipv4(octets.into())).map_err(|_| bad)
            }
            ((6, value), bad) => value.try_into().map(Self::Ipv6).map_err(|_| bad),
            (_, bad) => Err(bad),
        }
    }

    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Ipv4(address) => tlv::put(out, 5, &[&address.octets()]),
            Self::Ipv6(address) => tlv::put(out, 6, &[address]),
        }
    }
}

/// An ASCONF chunk: requests for changes of addresses (RFC 5061, section 4.1.1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Asconf {
    /// The serial number. The first ASCONF has the sender's initial TSN, and each further ASCONF the next number.
    pub serial: u32,
    /// An address of the sender that the receiver knows. By it the receiver finds the association if the packet's
    /// source is unknown.
    pub lookup: Address,
    /// The requests, in the order in which they are applied.
    pub requests: Vec<Request>,
}

impl Asconf {
    pub(super) fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(body, Malformed("sctp_asconf_truncated"));
        let serial = r.u32()?;
        let lookup = Address::parse(&mut r)?;
        let mut requests = Vec::new();
        while let Some((kind, value)) = tlv::next(&mut r)? {
            requests.push(Request::parse(kind, value)?);
        }
        Ok(Self { serial, lookup, requests })
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.serial.to_be_bytes());
        self.lookup.put(out);
        for request in &self.requests {
            request.put(out);
        }
    }
}

/// The result of one request (RFC 5061, sections 4.2.3 and 4.2.5).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Response {
    /// 0xC005: the request with this correlation number was applied.
    Success(u32),
    /// 0xC003: the request with this correlation number was refused, for these causes.
    Refused(u32, Vec<Cause>),
    /// A response of a type that this crate does not know.
    Unknown {
        /// The type on the wire.
        kind: u16,
        /// The bytes behind type and length, without padding.
        value: Vec<u8>,
    },
}

/// An ASCONF-ACK chunk: the answer to an ASCONF (RFC 5061, section 4.1.2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AsconfAck {
    /// The serial number of the ASCONF that this chunk answers.
    pub serial: u32,
    /// The results. A request without a response was applied if it precedes the first refusal, and refused if it
    /// follows the first refusal (RFC 5061, section 5.1, A7).
    pub responses: Vec<Response>,
}

impl AsconfAck {
    pub(super) fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(body, Malformed("sctp_asconf_ack_truncated"));
        let serial = r.u32()?;
        let mut responses = Vec::new();
        while let Some((kind, value)) = tlv::next(&mut r)? {
            responses.push(Response::parse(kind, value)?);
        }
        Ok(Self { serial, responses })
    }

    /// Removes responses so that the chunk fits `most` bytes (RFC 5061, section 5.1.1, C5), without a change of
    /// meaning. A request without a response was applied if it precedes the first refusal, and refused if it follows
    /// the first refusal (RFC 5061, section 5.1, A7). So the first refusal and all successes behind it are kept.
    /// Other responses are kept if there is room. If even the first refusal and these successes do not fit, the refusal
    /// loses the copy of its request, and all causes but the first.
    pub(crate) fn cut(&mut self, most: usize) {
        let is_refusal = |response: &Response| matches!(response, Response::Refused(..));
        let first = self.responses.iter().position(is_refusal).unwrap_or(self.responses.len());
        let stays = |at: usize, response: &Response| {
            at == first || (at > first && matches!(response, Response::Success(_)))
        };
        let needed = |responses: &[Response]| -> usize {
            let needed = responses.iter().enumerate().filter(|(at, response)| stays(*at, response));
            needed.map(|(_, response)| response.padded_len()).sum()
        };
        if ACK_HEADER + needed(&self.responses) > most
            && let Some(Response::Refused(_, causes)) = self.responses.get_mut(first)
        {
            causes.truncate(1);
            for cause in causes {
                cause.info.clear();
            }
        }
        let mut room = most.saturating_sub(ACK_HEADER + needed(&self.responses));
        let mut at = 0;
        self.responses.retain(|response| {
            let (here, len) = (at, response.padded_len());
            at += 1;
            if stays(here, response) {
                return true;
            }
            let fits = len <= room;
            room -= if fits { len } else { 0 };
            fits
        });
    }

    /// Returns the number of requests that an answer of at most `most` bytes can report, whatever their results. The
    /// worst case is a refusal of 12 bytes with successes of 8 bytes behind it.
    pub(crate) const fn tells_of(most: usize) -> usize {
        most.saturating_sub(ACK_HEADER + 12) / 8 + 1
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.serial.to_be_bytes());
        for response in &self.responses {
            response.put(out);
        }
    }
}

impl Response {
    fn parse(kind: u16, value: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(value, Malformed("sctp_asconf_response"));
        match kind {
            0xc003 => Ok(Self::Refused(r.u32()?, cause::parse(r.rest())?)),
            0xc005 => {
                let correlation = r.u32()?;
                if r.is_empty() {
                    Ok(Self::Success(correlation))
                } else {
                    Err(Malformed("sctp_asconf_response"))
                }
            }
            _ => Ok(Self::Unknown { kind, value: value.to_vec() }),
        }
    }

    /// Returns the length of the response in a chunk, with padding, in bytes.
    fn padded_len(&self) -> usize {
        let mut bytes = Vec::new();
        self.put(&mut bytes);
        bytes.len().next_multiple_of(4)
    }

    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Success(correlation) => tlv::put(out, 0xc005, &[&correlation.to_be_bytes()]),
            Self::Refused(correlation, causes) => {
                let mut inner = Vec::new();
                cause::emit(causes, &mut inner);
                tlv::put(out, 0xc003, &[&correlation.to_be_bytes(), &inner]);
            }
            Self::Unknown { kind, value } => tlv::put(out, *kind, &[value]),
        }
    }
}
