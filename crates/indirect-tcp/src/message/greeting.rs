//! What a mobile host says to a new router, and what it hears. Signed with the host's key.

use super::entry::Entry;
use super::signed::Message;
use super::{CONNECTIONS, PREVIOUS, address, zeros};
use wire::{Ipv4Addr, Malformed, Reader};

/// "I am with you now": bodies of type 1.
///
/// ```text
///  0 host · 4 sequence u64 · 12 router · 16 previous routers u8 · 17 entries u8 · 18 flags u8: 1 it was answered before
/// 19 reserved u8
/// 20 previous routers, 4 bytes each · entries, 72 bytes each
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Greeting {
    /// Who, by home address.
    pub host: Ipv4Addr,
    /// Later than all that this host has said before.
    pub sequence: u64,
    /// To whom.
    pub router: Ipv4Addr,
    /// Routers that may still have a connection of this host, at most [`PREVIOUS`].
    pub previous: Vec<Ipv4Addr>,
    /// Its connections, at most [`CONNECTIONS`].
    pub entries: Vec<Entry>,
    /// The router has answered it before, and is to show that it still knows it. To one that does not it says nothing: it names the
    /// connections that there were then.
    pub again: bool,
}

/// Flag: it was answered before.
const AGAIN: u8 = 1;

impl Message for Greeting {
    const TYPE: u8 = 1;

    fn take(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (host, sequence, router) = (address(r)?, r.u64()?, address(r)?);
        let (routers, entries) = (usize::from(r.u8()?), usize::from(r.u8()?));
        if routers > PREVIOUS || entries > CONNECTIONS {
            return Err(Malformed("itcp_too_many"));
        }
        let again = match r.u8()? {
            0 => false,
            AGAIN => true,
            _ => return Err(Malformed("itcp_greeting_flags")),
        };
        zeros(r, 1)?;
        let previous = (0..routers).map(|_| address(r)).collect::<Result<_, _>>()?;
        let entries = (0..entries).map(|_| Entry::take(r)).collect::<Result<Vec<_>, _>>()?;
        // Nobody may name what is another's.
        if entries.iter().any(|entry| *entry.host.ip() != host) {
            return Err(Malformed("itcp_entry_of_another"));
        }
        Ok(Self { host, sequence, router, previous, entries, again })
    }

    fn put(&self, out: &mut Vec<u8>) {
        out.extend(self.host.octets());
        out.extend(self.sequence.to_be_bytes());
        out.extend(self.router.octets());
        out.extend([
            self.previous.len() as u8,
            self.entries.len() as u8,
            if self.again { AGAIN } else { 0 },
            0,
        ]);
        self.previous.iter().for_each(|router| out.extend(router.octets()));
        self.entries.iter().for_each(|entry| entry.put(out));
    }
}

/// What a router says to a greeting.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Welcome {
    /// It is ready: what comes for the connections is kept until they are here.
    Ready,
    /// It has heard something later from this host.
    Stale,
}

/// Bodies of type 2: `0 host · 4 sequence u64 · 12 router · 16 code u8 · 17 reserved (3)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GreetingReply {
    /// To whom.
    pub host: Ipv4Addr,
    /// Of the greeting that it answers; with [`Welcome::Stale`], the latest that the router has heard.
    pub sequence: u64,
    /// By whom.
    pub router: Ipv4Addr,
    /// What it says.
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

/// Connections that are gone, so that nobody waits for them: bodies of type 5.
/// `0 host · 4 router · 8 number u8 · 9 reserved (3) · connections, 4 bytes each`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lost {
    /// Whose.
    pub host: Ipv4Addr,
    /// Who says so.
    pub router: Ipv4Addr,
    /// Which.
    pub connections: Vec<u32>,
}

impl Message for Lost {
    const TYPE: u8 = 5;

    fn take(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (host, router, number) = (address(r)?, address(r)?, usize::from(r.u8()?));
        if number > CONNECTIONS {
            return Err(Malformed("itcp_too_many"));
        }
        zeros(r, 3)?;
        let connections = (0..number).map(|_| r.u32()).collect::<Result<_, _>>()?;
        Ok(Self { host, router, connections })
    }

    fn put(&self, out: &mut Vec<u8>) {
        out.extend(self.host.octets());
        out.extend(self.router.octets());
        out.extend([self.connections.len() as u8, 0, 0, 0]);
        self.connections.iter().for_each(|connection| out.extend(connection.to_be_bytes()));
    }
}
