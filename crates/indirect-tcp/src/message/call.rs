//! What begins a connection of a mobile host to its router, before the bytes that are relayed. Signed with the host's key;
//! both have one length, so that nothing behind them is read by mistake.

use super::signed::{AROUND, Message};
use super::{address, put_socket, socket, zeros};
use node::Addr;
use wire::{Ipv4Addr, Malformed, Reader};

/// "Connect me": bodies of type 16.
/// `0 host · 4 connection u32 · 8 sequence u64 · 16 router · 20 peer's address · 24 peer's port u16 · 26 reserved u16`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Call {
    /// Who, by home address.
    pub host: Ipv4Addr,
    /// The number that the connection is to have.
    pub connection: u32,
    /// Later than all that this host has said before.
    pub sequence: u64,
    /// Whom it asks.
    pub router: Ipv4Addr,
    /// To whom.
    pub peer: Addr,
}

impl Call {
    /// Bytes of a whole call.
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

/// How a call ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Code {
    /// Connected: what follows is the peer's.
    Connected,
    /// The peer refused.
    Refused,
    /// The peer did not answer.
    TimedOut,
    /// There is no way to it.
    Unreachable,
    /// The port is taken there.
    InUse,
    /// The router has as many connections of this host as it takes.
    Full,
    /// It failed otherwise.
    Failed,
}

/// Bodies of type 17: `0 connection u32 · 4 code u8 · 5 reserved (3)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer {
    /// Of the call.
    pub connection: u32,
    /// How it ended.
    pub code: Code,
}

impl Answer {
    /// Bytes of a whole answer.
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
