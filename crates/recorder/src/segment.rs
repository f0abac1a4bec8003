//! Parses the TCP segments and SCTP packets of a run for its reports.

use sctp::message::Chunk;
use tcp::{Flags, PROTOCOL, Segment};
use wire::ipv4::{self, Header};
use wire::{EtherType, Packet, SocketAddrV4};

/// A TCP segment, and the addresses and ports of its sender and receiver.
#[derive(Clone, Debug)]
pub struct Seen<'a> {
    /// The sender's address and port.
    pub from: SocketAddrV4,
    /// The receiver's address and port.
    pub to: SocketAddrV4,
    /// The TCP header and payload, without the IP header.
    pub segment: Segment<'a>,
}

impl Seen<'_> {
    /// Returns whether the acknowledgment number is valid (flag ACK). The first SYN of a connection has none.
    pub const fn acknowledges(&self) -> bool {
        self.segment.has(Flags::ACK)
    }

    /// Returns one line for a report: addresses, flags, sequence number, acknowledgment number and payload length.
    pub fn text(&self) -> String {
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

/// Returns the TCP segment in an IP packet, or `None` if the packet is not TCP or is malformed.
pub fn of(packet: &Packet) -> Option<Seen<'_>> {
    let (header, payload) = Header::parse(&packet.bytes).ok()?;
    if header.protocol != PROTOCOL {
        return None;
    }
    let segment = Segment::parse(payload, header.src, header.dst).ok()?;
    let from = SocketAddrV4::new(header.src, segment.src_port);
    Some(Seen { from, to: SocketAddrV4::new(header.dst, segment.dst_port), segment })
}

/// Returns whether the packet is UDP over IPv4. The payload of a UDP packet is one message of an application; a TCP
/// segment is only a part of a byte stream.
pub fn is_datagram(packet: &Packet) -> bool {
    protocol(packet) == Some(ipv4::UDP)
}

/// Returns whether the packet is TCP over IPv4. The TCP header is not checked.
pub fn is_segment(packet: &Packet) -> bool {
    protocol(packet) == Some(PROTOCOL)
}

fn protocol(packet: &Packet) -> Option<u8> {
    ipv4::protocol(&packet.bytes).filter(|_| packet.link.kind == EtherType::IPV4)
}

/// Returns whether the packet is a TCP segment with a payload.
pub fn carries_data(packet: &Packet) -> bool {
    of(packet).is_some_and(|seen| !seen.segment.payload.is_empty())
}

/// Returns whether the packet is SCTP with at least one DATA chunk (RFC 9260, section 3.3.1).
pub fn is_sctp_data(packet: &Packet) -> bool {
    let sctp = sctp_of(packet);
    sctp.is_some_and(|sctp| sctp.chunks.iter().any(|chunk| matches!(chunk, Chunk::Data(_))))
}

/// Returns the SCTP packet in an IP packet, or `None` if the packet is not SCTP or is malformed.
pub fn sctp_of(packet: &Packet) -> Option<sctp::message::Packet> {
    let (header, payload) = Header::parse(&packet.bytes).ok()?;
    if header.protocol != sctp::PROTOCOL {
        return None;
    }
    sctp::message::Packet::parse(payload).ok()
}
