//! The greeting of a mobile host to a new router, the answer, and the report of lost connections. They are signed with
//! the key that the host shares with that router.

use super::entry::{self, ConnectionId, Entry};
use super::signed::{self, AROUND, CODE, Message, Signed};
use super::{CONNECTIONS, PREVIOUS, address, zeros};
use auth::Key;
use wire::{Ipv4Addr, Malformed, Reader};

/// A greeting, which attaches a mobile host to a router: the body of a message of type 1.
///
/// ```text
///  0 host · 4 sequence u64 · 12 router · 16 previous routers u8 · 17 entries u8
/// 18 flags u8: 1 it was answered before, 2 there are codes · 19 reserved u8
/// 20 previous routers, 4 bytes each · with flag 2 their codes, 32 bytes each · entries, 72 bytes each
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Greeting {
    /// The host's home address.
    pub host: Ipv4Addr,
    /// The sequence of the greeting, higher than in all earlier greetings and calls of this host.
    pub sequence: u64,
    /// The address of the router that is greeted.
    pub router: Ipv4Addr,
    /// Routers that may still have a connection of this host, at most [`PREVIOUS`].
    pub previous: Vec<Ipv4Addr>,
    /// The host's connections: those for which the host has sent a call, and those that ended cleanly in the last 30 s.
    /// At most [`CONNECTIONS`].
    pub entries: Vec<Entry>,
    /// Whether the greeting was answered before, and is repeated to check that the router still knows the greeting. A
    /// router that does not know the greeting ignores its entries, which may be outdated, and asks for a new greeting.
    pub again: bool,
    /// One code for each router in `previous`, in the same order. Empty if the host shares one key with all routers, or
    /// if `again` is set. A code is computed over this greeting without codes, with the key that the host shares with
    /// the previous router. With this code, the greeted router can prove the greeting to the previous router. The
    /// greeted router cannot forge a code.
    pub codes: Vec<[u8; CODE]>,
}

/// Flag: the greeting was answered before.
const AGAIN: u8 = 1;
/// Flag: there is a code for each previous router.
const CODES: u8 = 2;
/// The length of the largest datagram's payload, in bytes: 1500 less the headers of IP and UDP.
const ROOM: usize = 1500 - 28;

impl Greeting {
    /// Returns the number of previous routers, each with a code, that fit into a greeting with `entries` entries.
    pub(crate) const fn room_for_codes(entries: usize) -> usize {
        (ROOM - AROUND - 20 - entries * entry::LEN) / (4 + CODE)
    }

    /// Returns the greeting with one code for each previous router, in place of earlier codes. `key` returns the key
    /// that the host shares with a router.
    #[must_use]
    pub(crate) fn with_codes<'a>(self, key: impl Fn(Ipv4Addr) -> &'a Key) -> Self {
        let plain = Self { codes: Vec::new(), ..self };
        let codes = plain.previous.iter().map(|old| signed::code(&plain, key(*old))).collect();
        Self { codes, ..plain }
    }
}

impl Signed<Greeting> {
    /// Returns the greeting as a previous router receives it: signed with the key that the host shares with that
    /// router. `None` if the greeting has codes and does not name `old`.
    pub fn shown_to(&self, old: Ipv4Addr) -> Option<Self> {
        let Greeting { previous, codes, .. } = &self.message;
        if codes.is_empty() {
            return Some(self.clone());
        }
        let code = codes.get(previous.iter().position(|other| *other == old)?)?;
        Some(Self::with_code(Greeting { codes: Vec::new(), ..self.message.clone() }, *code))
    }
}

impl Message for Greeting {
    const TYPE: u8 = 1;

    fn take(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (host, sequence, router) = (address(r)?, r.u64()?, address(r)?);
        let (routers, entries) = (usize::from(r.u8()?), usize::from(r.u8()?));
        if routers > PREVIOUS || entries > CONNECTIONS {
            return Err(Malformed("itcp_too_many"));
        }
        let flags = r.u8()?;
        // Authentication codes are for previous routers. A greeting with codes that names no previous router is refused.
        if flags & !(AGAIN | CODES) != 0 || (flags & CODES != 0 && routers == 0) {
            return Err(Malformed("itcp_greeting_flags"));
        }
        zeros(r, 1)?;
        let previous = (0..routers).map(|_| address(r)).collect::<Result<_, _>>()?;
        let codes = if flags & CODES == 0 { 0 } else { routers };
        let codes = (0..codes).map(|_| r.array()).collect::<Result<_, _>>()?;
        let entries = (0..entries).map(|_| Entry::take(r)).collect::<Result<Vec<_>, _>>()?;
        // A host may name only its own connections.
        if entries.iter().any(|entry| *entry.host.ip() != host) {
            return Err(Malformed("itcp_entry_of_another"));
        }
        Ok(Self { host, sequence, router, previous, entries, again: flags & AGAIN != 0, codes })
    }

    fn put(&self, out: &mut Vec<u8>) {
        out.extend(self.host.octets());
        out.extend(self.sequence.to_be_bytes());
        out.extend(self.router.octets());
        let again = if self.again { AGAIN } else { 0 };
        let codes = if self.codes.is_empty() { 0 } else { CODES };
        out.extend([self.previous.len() as u8, self.entries.len() as u8, again | codes, 0]);
        self.previous.iter().for_each(|router| out.extend(router.octets()));
        self.codes.iter().for_each(|code| out.extend(code));
        self.entries.iter().for_each(|entry| entry.put(out));
    }
}

/// The answer to a greeting, encoded in one byte.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Welcome {
    /// The router has accepted the greeting, and buffers packets for the connections that it expects from earlier
    /// routers.
    Ready,
    /// The router has accepted a later message of this host, or does not know the repeated greeting.
    Stale,
}

/// The answer to a greeting: the body of a message of type 2.
/// `0 host · 4 sequence u64 · 12 router · 16 code u8 · 17 reserved (3)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GreetingReply {
    /// The host that sent the greeting.
    pub host: Ipv4Addr,
    /// The sequence of the answered greeting. With [`Welcome::Stale`], the sequence that the host has to exceed.
    pub sequence: u64,
    /// The address of the router that answers.
    pub router: Ipv4Addr,
    /// The answer to the greeting.
    pub welcome: Welcome,
}

impl Message for GreetingReply {
    const TYPE: u8 = 2;

    fn take(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (host, sequence, router) = (address(r)?, r.u64()?, address(r)?);
        let welcome = match r.u8()? {
            0 => Welcome::Ready,
            1 => Welcome::Stale,
            _ => return Err(Malformed("itcp_code")),
        };
        zeros(r, 3)?;
        Ok(Self { host, sequence, router, welcome })
    }

    fn put(&self, out: &mut Vec<u8>) {
        out.extend(self.host.octets());
        out.extend(self.sequence.to_be_bytes());
        out.extend(self.router.octets());
        let code = match self.welcome {
            Welcome::Ready => 0,
            Welcome::Stale => 1,
        };
        out.extend([code, 0, 0, 0]);
    }
}

/// A report of lost connections, so that the host does not wait for them: the body of a message of type 5.
/// `0 host · 4 router · 8 count u8 · 9 reserved (3) · connections, 12 bytes each: number u32, sequence of the call
/// u64`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lost {
    /// The home address of the host.
    pub host: Ipv4Addr,
    /// The address of the router that reports the loss.
    pub router: Ipv4Addr,
    /// The lost connections, at most [`CONNECTIONS`].
    pub connections: Vec<ConnectionId>,
}

impl Message for Lost {
    const TYPE: u8 = 5;

    fn take(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (host, router, number) = (address(r)?, address(r)?, usize::from(r.u8()?));
        if number > CONNECTIONS {
            return Err(Malformed("itcp_too_many"));
        }
        zeros(r, 3)?;
        let connections = (0..number).map(|_| ConnectionId::take(r)).collect::<Result<_, _>>()?;
        Ok(Self { host, router, connections })
    }

    fn put(&self, out: &mut Vec<u8>) {
        out.extend(self.host.octets());
        out.extend(self.router.octets());
        out.extend([self.connections.len() as u8, 0, 0, 0]);
        self.connections.iter().for_each(|connection| connection.put(out));
    }
}
