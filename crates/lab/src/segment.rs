//! Segments of TCP and packets of SCTP, as far as a run's reports look into them.

use sctp::message::Chunk;
use tcp::{Flags, PROTOCOL, Segment};
use wire::ipv4::{self, Header};
use wire::{EtherType, Packet, SocketAddrV4};

/// A segment and its ends.
#[derive(Clone, Debug)]
pub(crate) struct Seen<'a> {
    pub(crate) from: SocketAddrV4,
    pub(crate) to: SocketAddrV4,
    pub(crate) segment: Segment<'a>,
}

impl Seen<'_> {
    /// In a few words.
    pub(crate) fn text(&self) -> String {
        let Self { from, to, segment } = self;
        let names = [(Flags::SYN, " SYN"), (Flags::FIN, " FIN"), (Flags::RST, " RST"), (Flags::ACK, " ACK")];
        let flags: String =
            names.iter().filter(|(flag, _)| segment.has(*flag)).map(|(_, name)| *name).collect();
        format!(
            "TCP {from} > {to}{flags} seq {} ack {}, {} bytes",
            segment.seq.0,
            segment.ack.0,
            segment.payload.len()
        )
    }
}

/// The segment that a packet is, if it is one.
pub(crate) fn of(packet: &Packet) -> Option<Seen<'_>> {
    let (header, payload) = Header::parse(&packet.bytes).ok()?;
    if header.protocol != PROTOCOL {
        return None;
    }
    let segment = Segment::parse(payload, header.src, header.dst).ok()?;
    let from = SocketAddrV4::new(header.src, segment.src_port);
    Some(Seen { from, to: SocketAddrV4::new(header.dst, segment.dst_port), segment })
}

/// Whether an application is told of this very packet: of TCP it sees bytes, and nothing of ICMP.
pub(crate) fn is_datagram(packet: &Packet) -> bool {
    protocol(packet) == Some(ipv4::UDP)
}

/// Whether it is a segment of TCP.
pub(crate) fn is_segment(packet: &Packet) -> bool {
    protocol(packet) == Some(PROTOCOL)
}

fn protocol(packet: &Packet) -> Option<u8> {
    ipv4::protocol(&packet.bytes).filter(|_| packet.link.kind == EtherType::IPV4)
}

/// Whether it is a segment with bytes of an application.
pub(crate) fn carries_data(packet: &Packet) -> bool {
    of(packet).is_some_and(|seen| !seen.segment.payload.is_empty())
}

/// Whether it is a packet of SCTP with bytes of an application: those of a transport that is a role never pass the host's
/// own stack.
pub(crate) fn is_sctp_data(packet: &Packet) -> bool {
    let sctp = sctp_of(packet);
    sctp.is_some_and(|sctp| sctp.chunks.iter().any(|chunk| matches!(chunk, Chunk::Data(_))))
}

/// The packet of SCTP that a packet carries, if it does.
pub(crate) fn sctp_of(packet: &Packet) -> Option<sctp::message::Packet> {
    let (header, payload) = Header::parse(&packet.bytes).ok()?;
    if header.protocol != sctp::PROTOCOL {
        return None;
    }
    sctp::message::Packet::parse(payload).ok()
}
