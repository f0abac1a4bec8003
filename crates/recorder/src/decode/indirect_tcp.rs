//! Indirect TCP: greetings, forward pointers, their answers, and messages about lost connections. TCP connections
//! between routers, and from hosts to routers, are not control messages.

use ::indirect_tcp::message::{Datagram, PORT, Welcome};
use std::fmt;
use wire::ipv4::{self, Header};
use wire::{Ipv4Addr, udp};

/// A control message, or the reason why it is malformed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Message {
    Says(Box<Datagram>),
    Unreadable(&'static str),
}

impl Message {
    /// Returns the control message in an IP packet, and the address of the mobile host that the message is about. If
    /// the message is malformed, this address is the source.
    pub(super) fn of(ip: &Header, payload: &[u8]) -> Option<(Ipv4Addr, Self)> {
        if ip.protocol != ipv4::UDP {
            return None;
        }
        let datagram = udp::Datagram::parse(payload, ip.src, ip.dst).ok()?;
        if datagram.src_port != PORT || datagram.dst_port != PORT {
            return None;
        }
        Some(match Datagram::parse(datagram.payload) {
            Ok(said) => (about(&said), Self::Says(Box::new(said))),
            Err(malformed) => (ip.src, Self::Unreadable(malformed.0)),
        })
    }

    pub(super) const fn unreadable(&self) -> Option<&'static str> {
        match self {
            Self::Says(_) => None,
            Self::Unreadable(why) => Some(why),
        }
    }

    /// Adds the fields that must be equal on both backends. Sequence numbers are times, and authentication codes depend
    /// on these times, so both are left out.
    pub(super) fn constant(&self, fields: &mut Vec<(&'static str, String)>) {
        let said = match self {
            Self::Says(said) => said,
            Self::Unreadable(why) => return fields.push(("unreadable", (*why).to_owned())),
        };
        let (name, number) = match said.as_ref() {
            Datagram::Greeting(said) => ("greeting", said.message.entries.len()),
            Datagram::GreetingReply(_) => ("greeting reply", 0),
            Datagram::ForwardPointer(said) => {
                ("forward pointer", said.message.greeting.message.entries.len())
            }
            Datagram::ForwardReply(said) => ("forward reply", usize::from(said.message.connections)),
            Datagram::Lost(said) => ("lost", said.message.connections.len()),
        };
        fields.push(("type", name.to_owned()));
        fields.push(("connections", number.to_string()));
        fields.push(("host", about(said).to_string()));
    }

    pub(super) fn write(&self, f: &mut fmt::Formatter<'_>, src: Ipv4Addr, dst: Ipv4Addr) -> fmt::Result {
        let Self::Says(said) = self else {
            let Self::Unreadable(why) = self else { return Ok(()) };
            return write!(f, "Indirect TCP message {src} > {dst}, unreadable: {why}");
        };
        let host = about(said);
        match said.as_ref() {
            Datagram::Greeting(said) => {
                write!(f, "greeting {host} > {dst}: {} connections", said.message.entries.len())
            }
            Datagram::GreetingReply(said) => {
                let welcome = match said.message.welcome {
                    Welcome::Ready => "ready",
                    Welcome::Stale => "stale",
                };
                write!(f, "greeting reply {src} > {host}: {welcome}")
            }
            Datagram::ForwardPointer(_) => {
                write!(f, "forward pointer {src} > {dst}: {host} is at the sender")
            }
            Datagram::ForwardReply(said) => {
                write!(
                    f,
                    "forward reply {src} > {dst}: the sender has {} connections of {host}",
                    said.message.connections
                )
            }
            Datagram::Lost(said) => {
                write!(f, "lost {src} > {host}: {} connections", said.message.connections.len())
            }
        }
    }
}

fn about(said: &Datagram) -> Ipv4Addr {
    match said {
        Datagram::Greeting(said) => said.message.host,
        Datagram::GreetingReply(said) => said.message.host,
        Datagram::ForwardPointer(said) => said.message.greeting.message.host,
        Datagram::ForwardReply(said) => said.message.host,
        Datagram::Lost(said) => said.message.host,
    }
}
