//! Mobile IP: solicitations, registration requests and replies, and the messages of route optimization and buffers.
//! Advertisements are beacons, so they are not control messages.

use super::Names;
use ::mobile_ip::message::{
    Asks, Binding, BufferControl, Numbers, PORT, Registration, Reply, Request, SOLICITATION, Update,
};
use std::fmt;
use wire::ipv4::{self, Header};
use wire::{Ipv4Addr, udp};

/// A control message, or the reason why it is malformed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Message {
    Solicitation,
    Registration(Registration),
    Binding(Binding),
    Control(BufferControl),
    Unreadable(&'static str),
}

impl Message {
    /// Returns the control message in an IP packet, and the address of the mobile node that the message is about. If
    /// the message is malformed, this address is the source.
    pub(super) fn of(ip: &Header, payload: &[u8], numbers: &Numbers) -> Option<(Ipv4Addr, Self)> {
        if ip.protocol == ipv4::ICMP && payload.first() == Some(&SOLICITATION) {
            return Some((ip.src, Self::Solicitation));
        }
        if ip.protocol != ipv4::UDP {
            return None;
        }
        let datagram = udp::Datagram::parse(payload, ip.src, ip.dst).ok()?;
        if datagram.src_port != PORT && datagram.dst_port != PORT {
            return None;
        }
        match Binding::parse(datagram.payload, numbers) {
            Some(Ok(said)) => return Some((said.home(), Self::Binding(said))),
            Some(Err(malformed)) => return Some((ip.src, Self::Unreadable(malformed.0))),
            None => {}
        }
        match BufferControl::parse(datagram.payload, numbers) {
            Some(Ok(said)) => return Some((said.home, Self::Control(said))),
            Some(Err(malformed)) => return Some((ip.src, Self::Unreadable(malformed.0))),
            None => {}
        }
        Some(match Registration::parse_knowing(datagram.payload, &numbers.extensions()) {
            Ok(
                said
                @ (Registration::Request(Request { home, .. }) | Registration::Reply(Reply { home, .. })),
            ) => (home, Self::Registration(said)),
            Err(malformed) => (ip.src, Self::Unreadable(malformed.0)),
        })
    }

    /// Returns whether the message is one of route optimization, or asks a foreign agent to keep packets.
    pub(super) const fn is_binding(&self) -> bool {
        matches!(self, Self::Binding(_) | Self::Control(_))
    }

    pub(super) const fn unreadable(&self) -> Option<&'static str> {
        match self {
            Self::Unreadable(why) => Some(why),
            _ => None,
        }
    }

    /// Adds the fields that must be equal on both backends. Identifications are times, and authenticators depend on
    /// these times, so both are left out.
    pub(super) fn constant(&self, src: Ipv4Addr, fields: &mut Vec<(&'static str, String)>) {
        match self {
            Self::Solicitation => fields.push(("type", "solicitation".to_owned())),
            Self::Registration(Registration::Request(request)) => {
                fields.push(("type", "request".to_owned()));
                fields.push(("flags", format!("{:#04x}", request.flags.0)));
                fields.push(("lifetime", request.lifetime.to_string()));
                fields.push(("home address", request.home.to_string()));
                fields.push(("home agent", request.home_agent.to_string()));
                fields.push(("care-of address", request.care_of.to_string()));
                fields.push(("extensions", request.extensions.len().to_string()));
            }
            Self::Registration(Registration::Reply(reply)) => {
                fields.push(("type", "reply".to_owned()));
                fields.push(("code", reply.code.number().to_string()));
                fields.push(("lifetime", reply.lifetime.to_string()));
                fields.push(("home address", reply.home.to_string()));
                fields.push(("home agent", reply.home_agent.to_string()));
                fields.push(("extensions", reply.extensions.len().to_string()));
            }
            Self::Binding(said) => binding(said, src, fields),
            Self::Control(said) => {
                fields.push(("type", "buffer control request".to_owned()));
                fields.push(("asks to", asked(said.asks).to_owned()));
                fields.push(("home address", said.home.to_string()));
            }
            Self::Unreadable(why) => fields.push(("unreadable", (*why).to_owned())),
        }
    }

    pub(super) fn detail(&self, names: &Names<'_>) -> String {
        let identification = match self {
            Self::Registration(
                Registration::Request(Request { identification, .. })
                | Registration::Reply(Reply { identification, .. }),
            ) => Some(*identification),
            Self::Binding(Binding::Update(said)) => said.identification,
            Self::Binding(Binding::Acknowledge(said)) => said.identification,
            Self::Binding(Binding::Request(said)) => Some(said.identification),
            Self::Control(said) => Some(said.identification),
            Self::Binding(Binding::Warning(_)) | Self::Solicitation | Self::Unreadable(_) => None,
        };
        identification
            .map_or_else(String::new, |time| format!(", identification {}", names.since_begin(time)))
    }

    pub(super) fn write(&self, f: &mut fmt::Formatter<'_>, src: Ipv4Addr, dst: Ipv4Addr) -> fmt::Result {
        match self {
            Self::Solicitation => write!(f, "solicitation {src} > {dst}"),
            Self::Registration(Registration::Request(request)) => {
                let Request { home, care_of, lifetime, .. } = request;
                write!(f, "registration request {home} at {care_of} for {lifetime} s, {src} > {dst}")
            }
            Self::Registration(Registration::Reply(reply)) => {
                let Reply { home, code, lifetime, .. } = reply;
                write!(f, "registration reply {home} code {code} for {lifetime} s, {src} > {dst}")
            }
            Self::Binding(said) => {
                let home = said.home();
                match said {
                    Binding::Warning(said) => {
                        write!(f, "binding warning {home} about {} hosts, {src} > {dst}", said.targets.len())
                    }
                    Binding::Request(_) => write!(f, "binding request {home}, {src} > {dst}"),
                    Binding::Update(Update { care_of, lifetime, .. }) => {
                        write!(f, "binding update {home} at {care_of} for {lifetime} s, {src} > {dst}")
                    }
                    Binding::Acknowledge(said) => {
                        write!(f, "binding acknowledge {home} status {}, {src} > {dst}", said.status.0)
                    }
                }
            }
            Self::Control(said) => {
                let BufferControl { asks, home, named, .. } = said;
                let asked = asked(*asks);
                write!(
                    f,
                    "buffer control request {home} to {asked}, {} packets received, {src} > {dst}",
                    named.len()
                )
            }
            Self::Unreadable(why) => write!(f, "registration message {src} > {dst}, unreadable: {why}"),
        }
    }
}

/// Returns what a Buffer Control Request asks an agent to do.
const fn asked(asks: Asks) -> &'static str {
    match asks {
        Asks::Keep => "keep packets",
        Asks::Forward => "forward packets",
        Asks::Stop => "keep no more packets",
    }
}

/// Adds the fields of a message of route optimization that must be equal on both backends. `src`: its sender. A home agent sends the
/// time that is left of a binding, in whole seconds: it depends on delays, so only its presence is compared.
fn binding(said: &Binding, src: Ipv4Addr, fields: &mut Vec<(&'static str, String)>) {
    let kind = match said {
        Binding::Warning(_) => "binding warning",
        Binding::Request(_) => "binding request",
        Binding::Update(_) => "binding update",
        Binding::Acknowledge(_) => "binding acknowledge",
    };
    fields.push(("type", kind.to_owned()));
    fields.push(("home address", said.home().to_string()));
    match said {
        Binding::Warning(said) => fields.push(("targets", format!("{:?}", said.targets))),
        Binding::Request(_) => {}
        Binding::Update(said) => {
            let is_rest = said.lifetime != 0 && said.care_of != src;
            fields.push(("lifetime", if is_rest { "not 0".to_owned() } else { said.lifetime.to_string() }));
            fields.push(("care-of address", said.care_of.to_string()));
        }
        Binding::Acknowledge(said) => fields.push(("status", said.status.0.to_string())),
    }
}
