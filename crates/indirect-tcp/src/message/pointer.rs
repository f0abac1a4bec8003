//! The datagrams between routers. They are signed with the key of the two routers.

use super::greeting::Greeting;
use super::signed::{AROUND, Message, Signed};
use super::{CONNECTIONS, PREVIOUS, address, entry, zeros};
use wire::{Ipv4Addr, Malformed, Reader};

/// A forward pointer (the body of a message of type 3): a new router notifies an earlier router that a host is at the
/// new router. The pointer carries the host's greeting, signed with the key that the host shares with the earlier
/// router ([`Signed::shown_to`]). If the host has a separate key for each router, the new router cannot forge this
/// greeting.
///
/// ```text
/// 0 from router · 4 to router · 8 length u16 · 10 reserved u16 · 12 greeting
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ForwardPointer {
    /// The address of the new router, which sends the forward pointer.
    pub new: Ipv4Addr,
    /// The address of the earlier router, to which the forward pointer is sent.
    pub old: Ipv4Addr,
    /// The host's greeting to the new router.
    pub greeting: Signed<Greeting>,
}

/// The length of the longest greeting in a forward pointer, in bytes: it has no codes.
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

/// The answer of the earlier router to a forward pointer: the body of a message of type 4.
/// `0 from router · 4 host · 8 sequence u64 · 16 connections u16 · 18 reserved u16`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ForwardReply {
    /// The address of the earlier router, which answers.
    pub old: Ipv4Addr,
    /// The home address of the mobile host.
    pub host: Ipv4Addr,
    /// The sequence of the greeting in the forward pointer.
    pub sequence: u64,
    /// The number of the host's connections that the earlier router has when it answers.
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
