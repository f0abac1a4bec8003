//! The classification of packets, to find the role that listens for them.

use crate::input::{Listen, Proto};
use crate::{Addr, Tuple};
use wire::ipv4::{self, Header};
use wire::{Iface, Ipv4Addr, icmp};

/// The properties of a packet by which roles listen. The packet may be malformed: then the role refuses it, with a
/// reason.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traffic {
    protocol: u8,
    proto: Option<Proto>,
    about: About,
    /// The ends of the TCP segment in the packet, or of the TCP segment that the packet quotes as an ICMP error.
    segment: Option<Ends>,
}

/// The ends of a TCP segment.
#[derive(Clone, Copy, Debug)]
struct Ends {
    from: Addr,
    to: Addr,
    /// Whether an ICMP error quotes the segment. Such an error goes to the sender of the segment, `from`.
    failed: bool,
}

/// The packet that an ICMP error quotes: its protocol number, and its kind by destination port and by source port.
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

    /// Returns whether `listen` includes this packet, which arrived on `iface`. `local`: the destination is an address
    /// of this host.
    pub(crate) fn is_wanted(self, listen: &Listen, iface: Iface, header: &Header, local: bool) -> bool {
        let dst = header.dst;
        match listen {
            Listen::Local(proto) => local && self.is(*proto),
            Listen::Transit(proto, prefix) => self.is(*proto) && prefix.contains(dst),
            Listen::Group(on, group) => *on == iface && *group == dst,
            Listen::IcmpAbout(proto) => local && self.about.is(*proto),
        }
    }

    /// Returns the connection of a TCP segment, whose `local` end is the destination. For an ICMP error about a
    /// segment, the `local` end is the sender of the quoted segment. Returns `None` for other packets.
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

/// Returns the kinds of a packet. Index 0 is the kind by ICMP type or UDP destination port, or a tunnel. Index 1 is the
/// kind by UDP source port. `None`: the packet has no such kind, is truncated, or is not the first fragment.
fn kinds(protocol: u8, offset: u16, payload: &[u8]) -> [Option<Proto>; 2] {
    match (protocol, offset, payload) {
        (ipv4::ICMP, 0, [kind, _, _, _, ..]) => [Some(Proto::Icmp(*kind)), None],
        (ipv4::UDP, 0, [a, b, c, d, ..]) => {
            [[*c, *d], [*a, *b]].map(|port| Some(Proto::Udp(u16::from_be_bytes(port))))
        }
        (ipv4::IPIP | ipv4::MINIMAL | ipv4::GRE, ..) => [Some(Proto::IpIp), None],
        _ => [None; 2],
    }
}
