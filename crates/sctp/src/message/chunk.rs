//! Chunks, the parts of a packet (RFC 9260, section 3.2).

use super::asconf::{Asconf, AsconfAck};
use super::cause::{self, Cause};
use super::init::Init;
use super::tlv;
use wire::{Malformed, Reader};

/// The numbers of those chunk types that other modules use (RFC 9260, section 3.2).
pub mod kind {
    /// DATA: user data (RFC 9260, section 3.3.1).
    pub const DATA: u8 = 0;
    /// INIT: opens an association (RFC 9260, section 3.3.2).
    pub const INIT: u8 = 1;
    /// INIT ACK: answers INIT (RFC 9260, section 3.3.3).
    pub const INIT_ACK: u8 = 2;
    /// COOKIE ECHO: returns the state cookie (RFC 9260, section 3.3.11).
    pub const COOKIE_ECHO: u8 = 10;
    /// COOKIE ACK: answers COOKIE ECHO (RFC 9260, section 3.3.12).
    pub const COOKIE_ACK: u8 = 11;
    /// SHUTDOWN COMPLETE: answers SHUTDOWN ACK (RFC 9260, section 3.3.13).
    pub const SHUTDOWN_COMPLETE: u8 = 14;
    /// AUTH: authenticates the chunks behind it (RFC 4895, section 5.1).
    pub const AUTH: u8 = 15;
    /// ASCONF-ACK: answers ASCONF (RFC 5061, section 4.1.2).
    pub const ASCONF_ACK: u8 = 0x80;
    /// ASCONF: requests changes of addresses (RFC 5061, section 4.1.1).
    pub const ASCONF: u8 = 0xc1;
}

/// Length of the header of a DATA chunk, in bytes: all fields before the user data (RFC 9260, section 3.3.1).
pub const DATA_HEADER: usize = 16;
/// The type of the one parameter of HEARTBEAT (RFC 9260, section 3.3.5).
const HEARTBEAT_INFO: u16 = 1;

/// A chunk of a packet (RFC 9260, section 3.2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Chunk {
    /// 0, DATA: a message or a part of it.
    Data(Data),
    /// 1, INIT: opens an association.
    Init(Init),
    /// 2, INIT ACK: answers INIT, with a state cookie.
    InitAck(Init),
    /// 3, SACK: acknowledges DATA.
    Sack(Sack),
    /// 4, HEARTBEAT: probes a path. The value is the information, which the sender chooses.
    Heartbeat(Vec<u8>),
    /// 5, HEARTBEAT ACK: returns the information of a HEARTBEAT.
    HeartbeatAck(Vec<u8>),
    /// 6, ABORT: ends the association at once.
    Abort {
        /// The T bit: the sender has no association, and copied the packet's tag from the packet that it answers (RFC
        /// 9260, section 8.5.1, B).
        reflected: bool,
        /// Why the sender ends the association. May be empty.
        causes: Vec<Cause>,
    },
    /// 7, SHUTDOWN: the sender has no more data. The value is the cumulative TSN that it acknowledges.
    Shutdown(u32),
    /// 8, SHUTDOWN ACK: answers SHUTDOWN when all data of the answering end are acknowledged.
    ShutdownAck,
    /// 9, ERROR: reports errors that do not end the association.
    Error(Vec<Cause>),
    /// 10, COOKIE ECHO: returns the state cookie of INIT ACK.
    CookieEcho(Vec<u8>),
    /// 11, COOKIE ACK: answers COOKIE ECHO; the association is open.
    CookieAck,
    /// 14, SHUTDOWN COMPLETE: ends a shutdown.
    ShutdownComplete {
        /// The T bit: the sender has no association, and copied the packet's tag from the packet that it answers (RFC
        /// 9260, section 8.5.1, C).
        reflected: bool,
    },
    /// 15, AUTH: authenticates all chunks behind it in the packet (RFC 4895).
    Auth(Auth),
    /// 128, ASCONF-ACK: the results of requested address changes (RFC 5061).
    AsconfAck(AsconfAck),
    /// 193, ASCONF: requests address changes (RFC 5061).
    Asconf(Asconf),
    /// A chunk of a type that this crate does not know.
    Unknown {
        /// The type on the wire.
        kind: u8,
        /// The eight flags on the wire.
        flags: u8,
        /// The bytes behind the header of the chunk, without padding.
        value: Vec<u8>,
    },
}

/// A DATA chunk: a message of the user, or a fragment of one (RFC 9260, section 3.3.1).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "four flags on the wire")]
pub struct Data {
    /// The E bit: the chunk is the last fragment of its message.
    pub ends: bool,
    /// The B bit: the chunk is the first fragment of its message.
    pub begins: bool,
    /// The U bit: the message may be delivered before earlier messages of its stream.
    pub unordered: bool,
    /// The I bit: the sender requests a SACK without delay.
    pub immediate: bool,
    /// The transmission sequence number (TSN) of the chunk.
    pub tsn: u32,
    /// The number of the stream, from 0.
    pub stream: u16,
    /// The sequence number of the message in its stream. Without meaning if `unordered`.
    pub ssn: u16,
    /// The payload protocol identifier. SCTP does not interpret it.
    pub ppid: u32,
    /// The bytes of the message or fragment. An empty one is parsed, but violates RFC 9260, section 3.3.1.
    pub data: Vec<u8>,
}

impl Data {
    /// Returns the length of the chunk on the wire, with header and padding, in bytes.
    pub fn wire_len(&self) -> usize {
        DATA_HEADER + self.data.len().next_multiple_of(4)
    }
}

/// A SACK chunk: a selective acknowledgment of DATA (RFC 9260, section 3.3.4).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sack {
    /// The cumulative TSN: the sender of the SACK has received all chunks up to this TSN.
    pub cumulative: u32,
    /// The receive window of the SACK's sender, in bytes.
    pub a_rwnd: u32,
    /// Gap blocks: ranges of received TSNs, as first and last offset from `cumulative`, in ascending order.
    pub gaps: Vec<(u16, u16)>,
    /// TSNs that were received more than once.
    pub duplicates: Vec<u32>,
}

/// An AUTH chunk, which authenticates all chunks behind it in the packet (RFC 4895, section 5.1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Auth {
    /// The identifier of the endpoint pair shared key; 0 is the empty key (RFC 4895, section 6.1).
    pub key_id: u16,
    /// The identifier of the algorithm (RFC 4895, section 3.3).
    pub hmac_id: u16,
    /// The HMAC: 20 bytes with SHA-1, 32 with SHA-256.
    pub hmac: Vec<u8>,
}

impl Chunk {
    /// Returns the type of the chunk on the wire (RFC 9260, section 3.2).
    pub const fn kind(&self) -> u8 {
        match self {
            Self::Data(_) => kind::DATA,
            Self::Init(_) => kind::INIT,
            Self::InitAck(_) => kind::INIT_ACK,
            Self::Sack(_) => 3,
            Self::Heartbeat(_) => 4,
            Self::HeartbeatAck(_) => 5,
            Self::Abort { .. } => 6,
            Self::Shutdown(_) => 7,
            Self::ShutdownAck => 8,
            Self::Error(_) => 9,
            Self::CookieEcho(_) => kind::COOKIE_ECHO,
            Self::CookieAck => kind::COOKIE_ACK,
            Self::ShutdownComplete { .. } => kind::SHUTDOWN_COMPLETE,
            Self::Auth(_) => kind::AUTH,
            Self::AsconfAck(_) => kind::ASCONF_ACK,
            Self::Asconf(_) => kind::ASCONF,
            Self::Unknown { kind, .. } => *kind,
        }
    }

    const fn flags(&self) -> u8 {
        match self {
            Self::Data(data) => {
                data.ends as u8
                    | (data.begins as u8) << 1
                    | (data.unordered as u8) << 2
                    | (data.immediate as u8) << 3
            }
            Self::Abort { reflected, .. } | Self::ShutdownComplete { reflected } => *reflected as u8,
            Self::Unknown { flags, .. } => *flags,
            _ => 0,
        }
    }

    pub(super) fn parse(kind: u8, flags: u8, body: &[u8]) -> Result<Self, Malformed> {
        let bit = |n: u8| flags >> n & 1 == 1;
        Ok(match kind {
            kind::DATA => Self::Data(Data {
                ends: bit(0),
                begins: bit(1),
                unordered: bit(2),
                immediate: bit(3),
                ..Data::parse(body)?
            }),
            kind::INIT => Self::Init(Init::parse(body)?),
            kind::INIT_ACK => Self::InitAck(Init::parse(body)?),
            3 => Self::Sack(Sack::parse(body)?),
            4 => Self::Heartbeat(heartbeat(body)?),
            5 => Self::HeartbeatAck(heartbeat(body)?),
            6 => Self::Abort { reflected: bit(0), causes: cause::parse(body)? },
            7 => {
                let mut r = Reader::new(body, Malformed("sctp_shutdown_length"));
                let cumulative = r.u32()?;
                empty(r.rest(), "sctp_shutdown_length")?;
                Self::Shutdown(cumulative)
            }
            8 => empty(body, "sctp_shutdown_ack_length").map(|()| Self::ShutdownAck)?,
            9 => Self::Error(cause::parse(body)?),
            kind::COOKIE_ECHO => Self::CookieEcho(body.to_vec()),
            kind::COOKIE_ACK => empty(body, "sctp_cookie_ack_length").map(|()| Self::CookieAck)?,
            kind::SHUTDOWN_COMPLETE => {
                empty(body, "sctp_shutdown_complete_length")?;
                Self::ShutdownComplete { reflected: bit(0) }
            }
            kind::AUTH => {
                let mut r = Reader::new(body, Malformed("sctp_auth_truncated"));
                Self::Auth(Auth { key_id: r.u16()?, hmac_id: r.u16()?, hmac: r.rest().to_vec() })
            }
            kind::ASCONF_ACK => Self::AsconfAck(AsconfAck::parse(body)?),
            kind::ASCONF => Self::Asconf(Asconf::parse(body)?),
            _ => Self::Unknown { kind, flags, value: body.to_vec() },
        })
    }

    /// Appends the chunk with its padding; `out` must have a length that is a multiple of four.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        let begin = out.len();
        out.extend_from_slice(&[self.kind(), self.flags(), 0, 0]);
        match self {
            Self::Data(data) => data.put(out),
            Self::Init(init) | Self::InitAck(init) => init.put(out),
            Self::Sack(sack) => sack.put(out),
            Self::Heartbeat(info) | Self::HeartbeatAck(info) => tlv::put(out, HEARTBEAT_INFO, &[info]),
            Self::Abort { causes, .. } | Self::Error(causes) => cause::emit(causes, out),
            Self::Shutdown(cumulative) => out.extend_from_slice(&cumulative.to_be_bytes()),
            Self::CookieEcho(value) | Self::Unknown { value, .. } => out.extend_from_slice(value),
            Self::Auth(auth) => {
                out.extend_from_slice(&auth.key_id.to_be_bytes());
                out.extend_from_slice(&auth.hmac_id.to_be_bytes());
                out.extend_from_slice(&auth.hmac);
            }
            Self::AsconfAck(ack) => ack.put(out),
            Self::Asconf(asconf) => asconf.put(out),
            Self::ShutdownAck | Self::CookieAck | Self::ShutdownComplete { .. } => {}
        }
        let len = (out.len() - begin) as u16;
        if let Some(field) = out.get_mut(begin + 2..begin + 4) {
            field.copy_from_slice(&len.to_be_bytes());
        }
        tlv::pad(out);
    }

    /// Returns the chunk in bytes, with its padding.
    pub fn emit(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.put(&mut out);
        out
    }
}

fn empty(body: &[u8], reason: &'static str) -> Result<(), Malformed> {
    if body.is_empty() { Ok(()) } else { Err(Malformed(reason)) }
}

fn heartbeat(body: &[u8]) -> Result<Vec<u8>, Malformed> {
    let mut r = Reader::new(body, Malformed("sctp_heartbeat"));
    match tlv::next(&mut r)? {
        Some((HEARTBEAT_INFO, info)) if r.is_empty() => Ok(info.to_vec()),
        _ => Err(Malformed("sctp_heartbeat")),
    }
}

impl Data {
    fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(body, Malformed("sctp_data_truncated"));
        let (tsn, stream, ssn, ppid) = (r.u32()?, r.u16()?, r.u16()?, r.u32()?);
        Ok(Self { tsn, stream, ssn, ppid, data: r.rest().to_vec(), ..Self::default() })
    }

    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.tsn.to_be_bytes());
        out.extend_from_slice(&self.stream.to_be_bytes());
        out.extend_from_slice(&self.ssn.to_be_bytes());
        out.extend_from_slice(&self.ppid.to_be_bytes());
        out.extend_from_slice(&self.data);
    }
}

impl Sack {
    fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(body, Malformed("sctp_sack_truncated"));
        let (cumulative, a_rwnd) = (r.u32()?, r.u32()?);
        let (gap_count, duplicate_count) = (r.u16()?, r.u16()?);
        let mut sack = Self { cumulative, a_rwnd, ..Self::default() };
        let mut end = 0;
        for _ in 0..gap_count {
            let (first, last) = (r.u16()?, r.u16()?);
            // Gap blocks must be in order, disjoint and not empty.
            if first <= end || last < first {
                return Err(Malformed("sctp_sack_gaps"));
            }
            end = last;
            sack.gaps.push((first, last));
        }
        for _ in 0..duplicate_count {
            sack.duplicates.push(r.u32()?);
        }
        empty(r.rest(), "sctp_sack_length")?;
        Ok(sack)
    }

    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.cumulative.to_be_bytes());
        out.extend_from_slice(&self.a_rwnd.to_be_bytes());
        out.extend_from_slice(&(self.gaps.len() as u16).to_be_bytes());
        out.extend_from_slice(&(self.duplicates.len() as u16).to_be_bytes());
        for (first, last) in &self.gaps {
            out.extend_from_slice(&first.to_be_bytes());
            out.extend_from_slice(&last.to_be_bytes());
        }
        for tsn in &self.duplicates {
            out.extend_from_slice(&tsn.to_be_bytes());
        }
    }
}
