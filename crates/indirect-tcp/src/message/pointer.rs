//! What routers say to each other by datagrams. Signed with the routers' key.

use super::greeting::Greeting;
use super::signed::{AROUND, Message, Signed};
use super::{CONNECTIONS, PREVIOUS, address, entry, zeros};
use wire::{Ipv4Addr, Malformed, Reader};

/// "That host is with me": bodies of type 3. It carries the host's own greeting, signed by the host with the key that it shares
/// with the earlier router ([`Signed::shown_to`]): so that one need not believe the new one.
///
/// ```text
/// 0 from router · 4 to router · 8 length u16 · 10 reserved u16 · 12 greeting
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ForwardPointer {
    /// The new router.
    pub new: Ipv4Addr,
    /// The earlier one.
    pub old: Ipv4Addr,
    /// What the host said to the new one.
    pub greeting: Signed<Greeting>,
}

/// The longest greeting.
const MOST: usize = AROUND + 20 + 4 * PREVIOUS + entry::LEN * CONNECTIONS;

impl Message for ForwardPointer {
    const TYPE: u8 = 3;

    fn take(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (new, old, len) = (address(r)?, address(r)?, usize::from(r.u16()?));
        if len > MOST {
            return Err(Malformed("itcp_length"));
        }
        zeros(r, 2)?;
        let greeting = Signed::parse(r.take(len)?)?;
        Ok(Self { new, old, greeting })
    }

    fn put(&self, out: &mut Vec<u8>) {
        let greeting = self.greeting.emit();
        out.extend(self.new.octets());
        out.extend(self.old.octets());
        out.extend((greeting.len() as u16).to_be_bytes());
        out.extend([0, 0]);
        out.extend(greeting);
    }
}

/// What the earlier router says: bodies of type 4.
/// `0 from router · 4 host · 8 sequence u64 · 16 connections u16 · 18 reserved u16`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ForwardReply {
    /// Who says so.
    pub old: Ipv4Addr,
    /// Of which host.
    pub host: Ipv4Addr,
    /// Of its greeting.
    pub sequence: u64,
    /// How many connections it will offer.
    pub connections: u16,
}

impl Message for ForwardReply {
    const TYPE: u8 = 4;

    fn take(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let reply = Self { old: address(r)?, host: address(r)?, sequence: r.u64()?, connections: r.u16()? };
        zeros(r, 2)?;
        Ok(reply)
    }

    fn put(&self, out: &mut Vec<u8>) {
        out.extend(self.old.octets());
        out.extend(self.host.octets());
        out.extend(self.sequence.to_be_bytes());
        out.extend(self.connections.to_be_bytes());
        out.extend([0, 0]);
    }
}
