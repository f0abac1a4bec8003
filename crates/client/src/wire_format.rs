//! The wire format of a program's request to the daemon, and of its answer.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddrV4};

/// The largest length of a transport's name in bytes.
pub const NAME: usize = 32;
/// The first bytes of a request, which name its format.
const MAGIC: [u8; 4] = *b"WFc1";

/// The name of a transport: 1 to [`NAME`] lower-case letters, digits and `-`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Name {
    bytes: [u8; NAME],
    len: usize,
}

impl Name {
    /// Returns the name, or `None` if it is empty, too long or has another character.
    pub fn new(name: &[u8]) -> Option<Self> {
        let is_plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
        if name.is_empty() || !name.iter().all(is_plain) {
            return None;
        }
        let mut bytes = [0; NAME];
        bytes.get_mut(..name.len())?.copy_from_slice(name);
        Some(Self { bytes, len: name.len() })
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        self.bytes.get(..self.len).and_then(|bytes| str::from_utf8(bytes).ok()).unwrap_or_default()
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// A program's request for a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The transport of the connection.
    pub transport: Name,
    /// The destination of the connection. Its port is not zero.
    pub peer: SocketAddrV4,
}

impl Request {
    /// The length of a request in bytes: four bytes that name the format, the peer's address and port, two zeros, and
    /// the transport's name padded with zeros.
    pub const LEN: usize = 12 + NAME;

    /// Returns the bytes of the request.
    pub fn emit(&self) -> [u8; Self::LEN] {
        let [p0, p1] = self.peer.port().to_be_bytes();
        let head = MAGIC.into_iter().chain(self.peer.ip().octets()).chain([p0, p1, 0, 0]);
        let mut bytes = [0; Self::LEN];
        for (to, from) in bytes.iter_mut().zip(head.chain(self.transport.bytes)) {
            *to = from;
        }
        bytes
    }

    /// Parses a request; `None` if the length, the format, a padding, the port or the name is not valid.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::LEN] = bytes.try_into().ok()?;
        let (head, name) = bytes.split_first_chunk::<12>()?;
        let [m0, m1, m2, m3, a, b, c, d, p0, p1, 0, 0] = *head else { return None };
        let len = name.iter().position(|byte| *byte == 0).unwrap_or(NAME);
        let (name, rest) = name.split_at_checked(len)?;
        let port = u16::from_be_bytes([p0, p1]);
        if [m0, m1, m2, m3] != MAGIC || rest.iter().any(|byte| *byte != 0) || port == 0 {
            return None;
        }
        let peer = SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), port);
        Some(Self { transport: Name::new(name)?, peer })
    }
}

/// The answer of the daemon: zero if the program may connect, or an error number (`errno`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer(pub i32);

impl Answer {
    /// The length of an answer in bytes: the number in the host's byte order.
    pub const LEN: usize = 4;

    /// Returns the bytes of the answer.
    pub const fn emit(self) -> [u8; Self::LEN] {
        self.0.to_ne_bytes()
    }

    /// Parses an answer; `None` if it does not have four bytes, or if the number is negative.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(i32::from_ne_bytes).filter(|number| *number >= 0).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Request {
        let peer = SocketAddrV4::new(Ipv4Addr::new(10, 1, 0, 1), 80);
        Request { transport: Name::new(b"indirect").unwrap(), peer }
    }

    #[test]
    fn a_request_is_these_bytes_and_comes_back() {
        let bytes = request().emit();
        assert_eq!(bytes[..20], *b"WFc1\x0a\x01\x00\x01\x00\x50\x00\x00indirect");
        assert_eq!(Request::parse(&bytes), Some(request()));
        let longest = Request { transport: Name::new(&[b'a'; NAME]).unwrap(), ..request() };
        assert_eq!(Request::parse(&longest.emit()), Some(longest));
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let good = request().emit();
        for len in 0..good.len() {
            assert_eq!(Request::parse(&good[..len]), None);
        }
        let spoilt = |at: usize, byte| {
            let mut bytes = good;
            bytes[at] = byte;
            Request::parse(&bytes)
        };
        // In this order: another format, port 0, a byte after the port that is not zero, no name, a name with a gap, a
        // name with a character that is not allowed.
        for (at, byte) in [(0, b'w'), (9, 0), (10, 1), (12, 0), (15, 0), (14, b'/')] {
            assert_eq!(spoilt(at, byte), None, "{at}");
        }
        assert_eq!([Name::new(b""), Name::new(&[b'a'; NAME + 1])], [None, None]);
    }

    #[test]
    fn an_answer_is_a_number_of_an_error() {
        assert_eq!(Answer::parse(&Answer(libc::ECONNREFUSED).emit()), Some(Answer(libc::ECONNREFUSED)));
        assert_eq!(Answer::parse(&(-1i32).to_ne_bytes()), None);
        assert_eq!(Answer::parse(&[0; 3]), None);
    }
}
