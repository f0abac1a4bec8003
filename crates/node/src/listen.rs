//! What a packet is to who listens.

use crate::Addr;
use crate::input::{Listen, Proto};
use wire::ipv4::{self, Header};
use wire::{Iface, icmp};

/// What kind of packet it is, as far as roles listen by it. Whole or not: a role that listens refuses what is malformed,
/// and says why.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traffic {
    protocol: u8,
    proto: Option<Proto>,
    about: About,
    /// Of a TCP segment: the source's port, and the destination's.
    segment: Option<[u16; 2]>,
}

/// Of an ICMP error: what it is about, by number, by the destination's port and by the source's.
#[derive(Clone, Copy, Default, Debug)]
struct About {
    protocol: Option<u8>,
    protos: [Option<Proto>; 2],
}

impl Traffic {
    pub(crate) fn of(header: &Header, payload: &[u8]) -> Self {
        let about = match payload {
            [kind, _, _, _, body @ ..] if header.protocol == ipv4::ICMP && icmp::is_error(*kind) => {
                quoted(*kind, body)
            }
            _ => About::default(),
        };
        let [proto, _] = kinds(header.protocol, header.offset, payload);
        let segment = match payload {
            [a, b, c, d, ..] if (header.protocol, header.offset) == (ipv4::TCP, 0) => {
                Some([[*a, *b], [*c, *d]].map(u16::from_be_bytes))
            }
            _ => None,
        };
        Self { protocol: header.protocol, proto, about, segment }
    }

    fn is(self, proto: Proto) -> bool {
        self.proto == Some(proto) || proto == Proto::Ip(self.protocol)
    }

    /// Whether a role that listens like this wants it; `local`: its destination is this host.
    pub(crate) fn is_wanted(self, listen: &Listen, iface: Iface, header: &Header, local: bool) -> bool {
        let dst = header.dst;
        match listen {
            Listen::Local(proto) => local && self.is(*proto),
            Listen::Transit(proto, prefix) => self.is(*proto) && prefix.contains(dst),
            Listen::Group(on, group) => *on == iface && *group == dst,
            Listen::IcmpAbout(proto) => local && self.about.is(*proto),
            Listen::Connection(_) => self.is_intercepted(listen, header),
        }
    }

    /// Whether it is a segment of a connection that a role takes, wherever it is on its way to.
    pub(crate) fn is_intercepted(self, listen: &Listen, header: &Header) -> bool {
        let (Listen::Connection(tuple), Some([from, to])) = (listen, self.segment) else { return false };
        tuple.local == Addr::new(header.dst, to) && tuple.remote == Addr::new(header.src, from)
    }
}

impl About {
    fn is(self, proto: Proto) -> bool {
        self.protos.contains(&Some(proto)) || self.protocol.map(Proto::Ip) == Some(proto)
    }
}

fn quoted(kind: u8, body: &[u8]) -> About {
    match icmp::Quote::of(&icmp::Message { kind, code: 0, body }) {
        Ok(quote) => {
            About { protocol: Some(quote.protocol), protos: kinds(quote.protocol, 0, quote.payload) }
        }
        Err(_) => About::default(),
    }
}

/// The kind of a datagram by its destination, and by its source where it has ports.
fn kinds(protocol: u8, offset: u16, payload: &[u8]) -> [Option<Proto>; 2] {
    match (protocol, offset, payload) {
        (ipv4::ICMP, 0, [kind, _, _, _, ..]) => [Some(Proto::Icmp(*kind)), None],
        (ipv4::UDP, 0, [a, b, c, d, ..]) => {
            [[*c, *d], [*a, *b]].map(|port| Some(Proto::Udp(u16::from_be_bytes(port))))
        }
        (ipv4::IPIP, _, _) => [Some(Proto::IpIp), None],
        _ => [None; 2],
    }
}
