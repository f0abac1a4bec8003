//! The call of a mobile host to its router, and the answer. Call and answer precede the relayed bytes on each
//! connection. They are signed with the key that the host shares with the router. Each message has a fixed length, so
//! that no byte after it is read by mistake.

use super::signed::{AROUND, Message};
use super::{address, put_socket, socket, zeros};
use node::Addr;
use wire::{Ipv4Addr, Malformed, Reader};

/// A request to connect to a peer: the body of a message of type 16.
/// `0 host · 4 connection u32 · 8 sequence u64 · 16 router · 20 peer's address · 24 peer's port u16 · 26 reserved u16`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Call {
    /// The host's home address.
    pub host: Ipv4Addr,
    /// The number of the new connection.
    pub connection: u32,
    /// The sequence of the call, higher than in all earlier greetings and calls of this host.
    pub sequence: u64,
    /// The address of the router that is called.
    pub router: Ipv4Addr,
    /// The address and port of the peer to connect to.
    pub peer: Addr,
}

impl Call {
    /// The length of an encoded call, in bytes.
    pub const LEN: usize = AROUND + 28;
}

impl Message for Call {
    const TYPE: u8 = 16;

    fn take(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (host, connection, sequence) = (address(r)?, r.u32()?, r.u64()?);
        let (router, peer) = (address(r)?, socket(r)?);
        zeros(r, 2)?;
        if peer.port() == 0 || !crate::config::is_host(*peer.ip()) {
            return Err(Malformed("itcp_peer"));
        }
        Ok(Self { host, connection, sequence, router, peer })
    }

    fn put(&self, out: &mut Vec<u8>) {
        out.extend(self.host.octets());
        out.extend(self.connection.to_be_bytes());
        out.extend(self.sequence.to_be_bytes());
        out.extend(self.router.octets());
        put_socket(out, self.peer);
        out.extend([0, 0]);
    }
}

/// The result of a call, encoded in one byte.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Code {
    /// The connection to the peer is open. The bytes after the answer are the peer's.
    Connected,
    /// The peer refused the connection.
    Refused,
    /// The peer did not answer.
    TimedOut,
    /// There is no route to the peer.
    Unreachable,
    /// The host's port is in use at the router.
    InUse,
    /// The host has 16 connections at the router, or the router's TCP has no room for another one.
    Full,
    /// The call failed for another reason.
    Failed,
}

/// The answer to a call: the body of a message of type 17.
/// `0 connection u32 · 4 code u8 · 5 reserved (3)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The connection number of the call.
    pub connection: u32,
    /// The result of the call.
    pub code: Code,
}

impl Answer {
    /// The length of an encoded answer, in bytes.
    pub const LEN: usize = AROUND + 8;
}

impl Message for Answer {
    const TYPE: u8 = 17;

    fn take(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let connection = r.u32()?;
        let code = match r.u8()? {
            0 => Code::Connected,
            1 => Code::Refused,
            2 => Code::TimedOut,
            3 => Code::Unreachable,
            4 => Code::InUse,
            5 => Code::Full,
            6 => Code::Failed,
            _ => return Err(Malformed("itcp_code")),
        };
        zeros(r, 3)?;
        Ok(Self { connection, code })
    }

    fn put(&self, out: &mut Vec<u8>) {
        let code = match self.code {
            Code::Connected => 0,
            Code::Refused => 1,
            Code::TimedOut => 2,
            Code::Unreachable => 3,
            Code::InUse => 4,
            Code::Full => 5,
            Code::Failed => 6,
        };
        out.extend(self.connection.to_be_bytes());
        out.extend([code, 0, 0, 0]);
    }
}
