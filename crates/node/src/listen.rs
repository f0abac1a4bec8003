//! The classification of packets by which roles listen.

use crate::input::{Listen, Proto};
use crate::{Addr, Tuple};
use wire::ipv4::{self, Header};
use wire::{Iface, Ipv4Addr, icmp};

/// The kind of a packet, as far as roles listen by it. The packet may be malformed: the role refuses it then, with a
/// reason.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traffic {
    protocol: u8,
    proto: Option<Proto>,
    about: About,
    /// The ends of a TCP segment, or of the one that an ICMP error quotes.
    segment: Option<Ends>,
}

/// The ends of a TCP segment.
#[derive(Clone, Copy, Debug)]
struct Ends {
    from: Addr,
    to: Addr,
    /// An ICMP error about a segment to `to` comes back to `from`.
    failed: bool,
}

/// What an ICMP error is about: the protocol number, and the kind by destination port and by source port.
#[derive(Clone, Copy, Default, Debug)]
struct About {
    protocol: Option<u8>,
    protos: [Option<Proto>; 2],
}

impl Traffic {
    pub(crate) fn of(header: &Header, payload: &[u8]) -> Self {
        let quote = match payload {
            [kind, _, _, _, body @ ..] if header.protocol == ipv4::ICMP && icmp::is_error(*kind) => {
                icmp::Quote::of(&icmp::Message { kind: *kind, code: 0, body }).ok()
            }
            _ => None,
        };
        let about = quote.as_ref().map_or_else(About::default, |quote| About {
            protocol: Some(quote.protocol),
            protos: kinds(quote.protocol, 0, quote.payload),
        });
        let [proto, _] = kinds(header.protocol, header.offset, payload);
        let segment = match (&quote, header.offset) {
            (Some(quote), 0) => ends(quote.protocol, [quote.src, quote.dst], quote.payload, true),
            (None, 0) => ends(header.protocol, [header.src, header.dst], payload, false),
            _ => None,
        };
        Self { protocol: header.protocol, proto, about, segment }
    }

    fn is(self, proto: Proto) -> bool {
        self.proto == Some(proto) || proto == Proto::Ip(self.protocol)
    }

    /// Whether a role that listens like this is given the packet. `local`: its destination is this host.
    pub(crate) fn is_wanted(self, listen: &Listen, iface: Iface, header: &Header, local: bool) -> bool {
        let dst = header.dst;
        match listen {
            Listen::Local(proto) => local && self.is(*proto),
            Listen::Transit(proto, prefix) => self.is(*proto) && prefix.contains(dst),
            Listen::Group(on, group) => *on == iface && *group == dst,
            Listen::IcmpAbout(proto) => local && self.about.is(*proto),
        }
    }

    /// Returns the connection of a segment to its `local` end, or of an ICMP error about a segment from there.
    pub(crate) fn connection(self, header: &Header) -> Option<Tuple> {
        let Ends { from, to, failed } = self.segment?;
        let (local, remote) = if failed { (from, to) } else { (to, from) };
        (header.dst == *local.ip()).then_some(Tuple { local, remote })
    }
}

impl About {
    fn is(self, proto: Proto) -> bool {
        self.protos.contains(&Some(proto)) || self.protocol.map(Proto::Ip) == Some(proto)
    }
}

fn ends(protocol: u8, [src, dst]: [Ipv4Addr; 2], payload: &[u8], failed: bool) -> Option<Ends> {
    match payload {
        [a, b, c, d, ..] if protocol == ipv4::TCP => {
            let [from, to] = [[*a, *b], [*c, *d]].map(u16::from_be_bytes);
            Some(Ends { from: Addr::new(src, from), to: Addr::new(dst, to), failed })
        }
        _ => None,
    }
}

/// Returns the kind of a datagram by its destination port, and by its source port if it has one.
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
