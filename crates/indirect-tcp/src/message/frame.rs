//! Frames on the connection between two routers. A code authenticates each frame and its position on the connection.
//! Frames are not encrypted.
//!
//! ```text
//!  0 magic 0x49544350 · 4 version 1 · 5 type u8 · 6 flags u16, zero · 8 payload's length u32 · 12 handoff u64
//! 20 payload · code, 16 bytes: HMAC-SHA-256, cut short, over direction, number of the frame, and all before it
//! ```
//!
//! The key of a connection is derived from the routers' key and the nonces of both hellos. The hellos are signed with
//! the routers' key.

use super::entry::{ConnectionId, Entry};
use super::state::{QUEUE, Side, SocketState};
use super::{address, zeros};
use auth::Key;
use wire::{Ipv4Addr, Malformed, Reader};

const MAGIC: u32 = 0x4954_4350;
const VERSION: u8 = 1;
const HEADER: usize = 20;
/// The length of the code that authenticates each frame, in bytes.
pub const CODE: usize = 16;
/// The length of the longest payload of a frame, in bytes: the state of a socket with both queues full.
pub const LONGEST: usize = 144 + 2 * QUEUE as usize;

/// A frame on a connection between routers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    /// The number of the handoff on this connection, counted by the old router from 1. It is 0 in [`Body::Hello`] and
    /// [`Body::Status`], and in the answer to a status.
    pub handoff: u64,
    /// The type and the contents of the frame.
    pub body: Body,
}

/// The body of a frame. The doc of each variant begins with the number of its type. The types 6 (filters) and 12 (moved
/// on) are not implemented.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Body {
    /// Type 0, the first frame in each direction: names the sender, and has a nonce.
    Hello {
        /// The address of the router that sends the hello.
        router: Ipv4Addr,
        /// Random bytes for this connection only.
        nonce: [u8; 16],
    },
    /// Type 1: offers the connections of a host to its new router.
    Offer {
        /// The home address of the mobile host.
        host: Ipv4Addr,
        /// The sequence of the greeting that the host sent to the new router.
        sequence: u64,
        /// The number of connections that the old router offers.
        connections: u16,
    },
    /// Type 2: the answer to an offer.
    OfferAnswer(Verdict),
    /// Type 3: names the connection that the next frames are about, and the number of this attempt to hand it over.
    /// Each attempt has a higher number than all earlier attempts for the connection, also by other routers. So
    /// an answer belongs to one attempt only.
    Entry(Entry, u32),
    /// Type 4: the state of one half of the connection, for its socket at the new router.
    State(Box<SocketState>),
    /// Type 5: bytes that the old router read from one half and has not written to the other half.
    UserBuffer(Direction, Vec<u8>),
    /// Type 7: the state of a connection is complete. Asks the new router to take the connection.
    Commit {
        /// The number of the connection. The frame with the entry has the sequence of its call.
        number: u32,
        /// The number of the attempt to hand the connection over.
        attempt: u32,
        /// The halves of which a state was sent. A half without a state has ended cleanly.
        halves: Halves,
    },
    /// Type 8: the answer to a commit or a status. With [`Verdict::Taken`], the new router took the connection by this
    /// attempt. The other verdicts are also final: the new router will not take the connection by this attempt.
    CommitAnswer {
        /// The home address of the mobile host.
        host: Ipv4Addr,
        /// The identifier of the connection.
        connection: ConnectionId,
        /// The number of the attempt to hand the connection over.
        attempt: u32,
        /// Whether the new router took the connection, and if not, why.
        verdict: Verdict,
    },
    /// Type 9: the old router has no more connections to hand over in this handoff.
    Done,
    /// Type 10: the answer to [`Body::Done`].
    DoneAnswer,
    /// Type 11: the old router cannot move this connection, and has reset both ends.
    Abort {
        /// The identifier of the connection.
        connection: ConnectionId,
    },
    /// Type 13 (not in the paper): asks whether an attempt succeeded. The commit or the answer to it may be lost when
    /// the connection between the routers breaks. A status belongs to no handoff.
    Status {
        /// The home address of the mobile host.
        host: Ipv4Addr,
        /// The identifier of the connection.
        connection: ConnectionId,
        /// The number of the attempt to hand the connection over.
        attempt: u32,
        /// The sequence of the greeting that the offer named. If the asked router has restarted after that greeting,
        /// the asked router does not know whether it took the connection.
        sequence: u64,
    },
}

/// The answer of a new router to an offer, a commit or a status.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Verdict {
    /// The offer is accepted, or the connection was taken.
    Taken,
    /// The answering router does not have the greeting that the offer named, or did not take the connection.
    Unknown,
    /// The host has sent a later greeting, to the answering router or to another one.
    Moved,
    /// The answering router will not have the connection: it cannot set the connection up, does not expect it, or may
    /// have lost it in a restart.
    Failed,
}

impl Verdict {
    const fn code(self) -> u8 {
        match self {
            Self::Taken => 0,
            Self::Unknown => 1,
            Self::Moved => 2,
            Self::Failed => 3,
        }
    }

    fn take(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(match r.u8()? {
            0 => Self::Taken,
            1 => Self::Unknown,
            2 => Self::Moved,
            3 => Self::Failed,
            _ => return Err(Malformed("itcp_code")),
        })
    }
}

/// The halves of a connection that exist. They are encoded as a byte: bit 0 for the near half, bit 1 for the far half.
/// A half that does not exist has ended cleanly: the FINs of both its ends are acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Halves {
    /// Whether the half between the mobile host and the router exists.
    pub near: bool,
    /// Whether the half between the router and the peer exists.
    pub far: bool,
}

impl Halves {
    /// Both halves exist.
    pub const BOTH: Self = Self { near: true, far: true };

    /// Returns whether the half `side` exists.
    pub const fn has(self, side: Side) -> bool {
        match side {
            Side::Near => self.near,
            Side::Far => self.far,
        }
    }

    const fn code(self) -> u8 {
        self.near as u8 | (self.far as u8) << 1
    }

    fn take(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        match r.u8()? {
            code @ 0..=3 => Ok(Self { near: code & 1 != 0, far: code & 2 != 0 }),
            _ => Err(Malformed("itcp_halves")),
        }
    }
}

/// The direction of relayed bytes, seen from the mobile host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Direction {
    /// From the mobile host to its peer.
    Up,
    /// From the peer to the mobile host.
    Down,
}

impl Frame {
    /// Parses a frame without its code, or returns an error if it is malformed.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(bytes, Malformed("itcp_frame_truncated"));
        let (kind, len) = header(&mut r)?;
        let handoff = r.u64()?;
        let mut r = Reader::new(r.rest(), Malformed("itcp_frame_truncated"));
        if r.rest().len() != len {
            return Err(Malformed("itcp_frame_length"));
        }
        let body = Body::take(kind, &mut r)?;
        if !r.is_empty() {
            return Err(Malformed("itcp_trailing"));
        }
        let fits = match body {
            Body::Hello { .. } | Body::Status { .. } => handoff == 0,
            Body::CommitAnswer { .. } => true,
            _ => handoff != 0,
        };
        if !fits {
            return Err(Malformed("itcp_frame_handoff"));
        }
        Ok(Self { handoff, body })
    }

    /// Returns the encoded frame, without a code.
    pub fn emit(&self) -> Vec<u8> {
        let mut payload = Vec::new();
        let kind = self.body.put(&mut payload);
        let mut out = MAGIC.to_be_bytes().to_vec();
        out.extend([VERSION, kind, 0, 0]);
        out.extend((payload.len() as u32).to_be_bytes());
        out.extend(self.handoff.to_be_bytes());
        out.extend(payload);
        out
    }
}

/// Parses the header of a frame up to the length of the payload. Returns the type and this length.
fn header(r: &mut Reader<'_>) -> Result<(u8, usize), Malformed> {
    if r.u32()? != MAGIC {
        return Err(Malformed("itcp_magic"));
    }
    if r.u8()? != VERSION {
        return Err(Malformed("itcp_version"));
    }
    let kind = r.u8()?;
    if r.u16()? != 0 {
        return Err(Malformed("itcp_reserved"));
    }
    let len = r.u32()? as usize;
    if len > LONGEST { Err(Malformed("itcp_frame_length")) } else { Ok((kind, len)) }
}

impl Body {
    fn take(kind: u8, r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(match kind {
            0 => Self::Hello { router: address(r)?, nonce: r.array()? },
            1 => Self::Offer { host: address(r)?, sequence: r.u64()?, connections: r.u16()? },
            2 => Self::OfferAnswer(Verdict::take(r)?),
            3 => Self::Entry(Entry::take(r)?, r.u32()?),
            4 => Self::State(Box::new(SocketState::take(r)?)),
            5 => {
                let way = match r.u8()? {
                    1 => Direction::Up,
                    2 => Direction::Down,
                    _ => return Err(Malformed("itcp_way")),
                };
                zeros(r, 3)?;
                let bytes = r.take(r.rest().len())?;
                if bytes.len() > QUEUE as usize {
                    return Err(Malformed("itcp_state_length"));
                }
                Self::UserBuffer(way, bytes.to_vec())
            }
            7 => Self::Commit { number: r.u32()?, attempt: r.u32()?, halves: Halves::take(r)? },
            8 => Self::CommitAnswer {
                host: address(r)?,
                connection: ConnectionId::take(r)?,
                attempt: r.u32()?,
                verdict: Verdict::take(r)?,
            },
            9 => Self::Done,
            10 => Self::DoneAnswer,
            11 => Self::Abort { connection: ConnectionId::take(r)? },
            13 => Self::Status {
                host: address(r)?,
                connection: ConnectionId::take(r)?,
                attempt: r.u32()?,
                sequence: r.u64()?,
            },
            _ => return Err(Malformed("itcp_frame_type")),
        })
    }

    /// Appends the payload to `out`. Returns the number of the type.
    fn put(&self, out: &mut Vec<u8>) -> u8 {
        match self {
            Self::Hello { router, nonce } => {
                out.extend(router.octets());
                out.extend(nonce);
                0
            }
            Self::Offer { host, sequence, connections } => {
                out.extend(host.octets());
                out.extend(sequence.to_be_bytes());
                out.extend(connections.to_be_bytes());
                1
            }
            Self::OfferAnswer(verdict) => {
                out.push(verdict.code());
                2
            }
            Self::Entry(entry, attempt) => {
                entry.put(out);
                out.extend(attempt.to_be_bytes());
                3
            }
            Self::State(state) => {
                state.put(out);
                4
            }
            Self::UserBuffer(way, bytes) => {
                let way = match way {
                    Direction::Up => 1,
                    Direction::Down => 2,
                };
                out.extend([way, 0, 0, 0]);
                out.extend(bytes);
                5
            }
            Self::Commit { number, attempt, halves } => {
                out.extend(number.to_be_bytes());
                out.extend(attempt.to_be_bytes());
                out.push(halves.code());
                7
            }
            Self::CommitAnswer { host, connection, attempt, verdict } => {
                out.extend(host.octets());
                connection.put(out);
                out.extend(attempt.to_be_bytes());
                out.push(verdict.code());
                8
            }
            Self::Done => 9,
            Self::DoneAnswer => 10,
            Self::Abort { connection } => {
                connection.put(out);
                11
            }
            Self::Status { host, connection, attempt, sequence } => {
                out.extend(host.octets());
                connection.put(out);
                out.extend(attempt.to_be_bytes());
                out.extend(sequence.to_be_bytes());
                13
            }
        }
    }
}

/// One end of a connection between routers: computes and checks the codes of frames.
#[derive(Clone, Debug)]
pub struct FrameAuth {
    key: Key,
    /// Whether this end opened the connection.
    opened: bool,
    sent: u64,
    received: u64,
}

impl FrameAuth {
    /// Returns the state of one end, to send and receive the hellos. `key` is the key of the two routers. `opened`:
    /// this end opened the connection.
    pub const fn new(key: Key, opened: bool) -> Self {
        Self { key, opened, sent: 0, received: 0 }
    }

    /// Replaces the key of the two routers by the key of this connection, derived from both nonces. The nonce of the
    /// end that opened the connection is the first.
    pub fn agreed(&mut self, nonces: [[u8; 16]; 2]) {
        let [opener, other] = nonces;
        self.key = Key::new(auth::hmac_sha256(&self.key, &[b"wayfare itcp link", &opener, &other]));
    }

    /// Encodes the next frame to send, and appends its code.
    pub fn seal(&mut self, frame: &Frame) -> Vec<u8> {
        let mut bytes = frame.emit();
        let code = self.code(self.opened, self.sent, &bytes);
        self.sent += 1;
        bytes.extend(code);
        bytes
    }

    /// Checks the code of the next received frame, and parses the frame. Returns an error if the other end did not send
    /// the frame at this position, or if the frame is malformed.
    pub fn open(&mut self, bytes: &[u8]) -> Result<Frame, Malformed> {
        let Some((front, code)) = bytes.split_last_chunk::<CODE>() else {
            return Err(Malformed("itcp_frame_truncated"));
        };
        if !auth::equal(&self.code(!self.opened, self.received, front), code) {
            return Err(Malformed("itcp_frame_forged"));
        }
        self.received += 1;
        Frame::parse(front)
    }

    fn code(&self, by_opener: bool, number: u64, bytes: &[u8]) -> [u8; CODE] {
        let whole = auth::hmac_sha256(&self.key, &[&[u8::from(by_opener)], &number.to_be_bytes(), bytes]);
        let mut code = [0; CODE];
        code.iter_mut().zip(whole).for_each(|(to, from)| *to = from);
        code
    }
}

/// Splits the bytes of a stream into frames.
#[derive(Clone, Debug)]
pub struct Frames {
    bytes: Vec<u8>,
    /// The longest payload accepted, in bytes.
    longest: usize,
}

/// Accepts only frames with at most 64 bytes of payload until the other end is authenticated. A hello and the frame
/// after it are shorter.
impl Default for Frames {
    fn default() -> Self {
        Self { bytes: Vec::new(), longest: 64 }
    }
}

impl Frames {
    /// Accepts frames of up to [`LONGEST`] bytes of payload, as the other end is authenticated.
    pub const fn trust(&mut self) {
        self.longest = LONGEST;
    }

    /// Appends received bytes of the stream. The bytes may begin and end anywhere in a frame.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Removes and returns the next whole frame with its code, or returns `None` until all its bytes have come. Returns
    /// an error as soon as the header of the frame is invalid, or announces a payload that is too long.
    pub fn next_frame(&mut self) -> Result<Option<Vec<u8>>, Malformed> {
        if self.bytes.len() < HEADER {
            return Ok(None);
        }
        let (_, len) = header(&mut Reader::new(&self.bytes, Malformed("itcp_frame_truncated")))?;
        if len > self.longest {
            return Err(Malformed("itcp_frame_length"));
        }
        let whole = HEADER + len + CODE;
        if self.bytes.len() < whole {
            return Ok(None);
        }
        let rest = self.bytes.split_off(whole);
        Ok(Some(std::mem::replace(&mut self.bytes, rest)))
    }
}
