//! The i-entry (72 bytes): one connection of a mobile host, with the end points of both halves, which never change.
//!
//! ```text
//!  0 connection u32 · 4 reserved u16 · 6 kind u8: 1, the mobile host opened it · 7 flags u8 · 8 family u8 · 9 reserved u8
//! 10 host's port u16 · 12 router's port u16 · 14 peer's port u16
//! 16 host's address · 32 router's · 48 peer's: 16 bytes each
//! 64 sequence of its call u64
//! ```
//!
//! Flags. 8: the connection has ended cleanly at the mobile host. 32: the host has no answer to its call. 16, only with
//! 32: the call may come after this message. An entry with another kind, flag or combination of flags is refused.

use super::{mapped, put_mapped, zeros};
use node::{Addr, Tuple};
use wire::{Malformed, Reader};

/// The length of an i-entry, in bytes.
pub(super) const LEN: usize = 72;
/// The number of `AF_INET`: 2 on Linux, BSD and Windows.
pub(super) const FAMILY: u8 = 2;
/// The kind of a connection that the mobile host opened. Other kinds are refused: no router accepts connections for a
/// host.
const ACTIVE: u8 = 1;
/// Flag (not in the paper): the connection has ended cleanly at the mobile host.
const CLOSING: u8 = 8;
/// Flag (not in the paper), only with `UNANSWERED`: the call may come after this message.
const CALLING: u8 = 16;
/// Flag (not in the paper): the host has no answer to its call for the connection.
const UNANSWERED: u8 = 32;

/// The identifier of a connection of a mobile host. The number alone may be reused after the host restarts: numbers
/// start at the wall clock's seconds, and the clock may be set back. A router accepts each sequence of a call once.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionId {
    /// The number that the mobile host gave to the connection.
    pub number: u32,
    /// The sequence of the call that opened the connection.
    pub call: u64,
}

impl ConnectionId {
    pub(super) fn take(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { number: r.u32()?, call: r.u64()? })
    }

    pub(super) fn put(self, out: &mut Vec<u8>) {
        out.extend(self.number.to_be_bytes());
        out.extend(self.call.to_be_bytes());
    }
}

/// An i-entry: one connection of a mobile host, as messages name it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Entry {
    /// The identifier of the connection. No other open connection of the host has the same number.
    pub id: ConnectionId,
    /// The address and port of the mobile host, which are its end of the near half. The router uses the same address
    /// and port for its end of the far half.
    pub host: Addr,
    /// The router's address and port in the near half. The address is that of the first router, until the connection
    /// ends.
    pub router: Addr,
    /// The address and port of the peer.
    pub peer: Addr,
    /// Whether the connection has ended cleanly at the mobile host. A router may still have the connection, and may
    /// need further segments of the host to end it: for example, the host repeats its acknowledgment of the last FIN.
    pub closing: bool,
    /// Whether the host has no answer to its call. A router may have connected to the peer or not.
    pub unanswered: bool,
    /// Whether the unanswered call was sent to the greeted router, and the host has greeted no other router after the
    /// call. Then the call may come after this message.
    pub calling: bool,
}

impl Entry {
    /// Returns the end points of the near half as a router sees them: the local end is the router, the remote end the
    /// mobile host.
    pub const fn near(&self) -> Tuple {
        Tuple { local: self.router, remote: self.host }
    }

    /// Returns the end points of the far half as a router sees them: the local end is the mobile host's address, the
    /// remote end the peer.
    pub const fn far(&self) -> Tuple {
        Tuple { local: self.host, remote: self.peer }
    }

    pub(super) fn take(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let number = r.u32()?;
        zeros(r, 2)?;
        if r.u8()? != ACTIVE {
            return Err(Malformed("itcp_entry_kind"));
        }
        let flags = r.u8()?;
        if ![0, CLOSING, UNANSWERED, UNANSWERED | CALLING].contains(&flags) {
            return Err(Malformed("itcp_entry_flags")); // transparent mode and filters are not implemented
        }
        if r.u8()? != FAMILY {
            return Err(Malformed("itcp_family"));
        }
        zeros(r, 1)?;
        let [host, router, peer] = [r.u16()?, r.u16()?, r.u16()?];
        let (host, router, peer) =
            (Addr::new(mapped(r)?, host), Addr::new(mapped(r)?, router), Addr::new(mapped(r)?, peer));
        let id = ConnectionId { number, call: r.u64()? };
        if [host, router, peer].iter().any(|at| at.port() == 0 || !crate::config::is_host(*at.ip())) {
            return Err(Malformed("itcp_entry_ends"));
        }
        let [closing, unanswered, calling] = [CLOSING, UNANSWERED, CALLING].map(|flag| flags & flag != 0);
        Ok(Self { id, host, router, peer, closing, unanswered, calling })
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.extend(self.id.number.to_be_bytes());
        let flags = match (self.closing, self.unanswered, self.calling) {
            (true, ..) => CLOSING,
            (false, true, true) => UNANSWERED | CALLING,
            (false, true, false) => UNANSWERED,
            (false, false, _) => 0,
        };
        out.extend([0, 0, ACTIVE, flags, FAMILY, 0]);
        let ends = [self.host, self.router, self.peer];
        for at in ends {
            out.extend(at.port().to_be_bytes());
        }
        for at in ends {
            put_mapped(out, *at.ip());
        }
        out.extend(self.id.call.to_be_bytes());
    }
}
