//! The identity of a packet. It is computed only from the packet's bytes, because a recorder on Linux sees nothing
//! else.

use crate::PacketId;
use crate::fnv::{SEED, fold};
use crate::fragment::NESTING;
use crate::ipv4::{self, Header};
use crate::tunnel::{self, Kind};
use alloc::borrow::Cow;
use core::net::SocketAddrV4;

/// Returns the identity of an IPv4 datagram: a hash over bytes that forwarding does not change.
///
/// The hash leaves out the time to live, the header checksum, DSCP and ECN. It also leaves out the checksums of UDP and
/// ICMP, because with checksum offloading, a recorder sees the datagram before its checksum is computed. If the
/// datagram is UDP, or atomic and neither TCP nor SCTP, the identification is left out. The kernel chooses the
/// identification, but a recorder must know the identity before the datagram is sent.
///
/// A fragment has the hash of source, destination, protocol and identification, so all fragments of a datagram share an
/// identity, also if a fragment is cut again. The identity of their datagram is another one, because a UDP socket must
/// know it before the kernel chooses the identification. Exception: fragments of TCP and SCTP have the identity of their
/// bytes.
///
/// TCP and SCTP can send the same bytes again. Then only the identification distinguishes the retransmission from the
/// original, so their hash includes it. Equal datagrams share an identity, and the ledger counts how many there are. In
/// a tunnel (any [`crate::tunnel::Kind`]), the hash is that of the innermost datagram, behind at most four outer headers. So
/// encapsulation does not change the identity. If the header is malformed, the hash is that of all bytes.
pub fn identity(bytes: &[u8]) -> PacketId {
    let Ok((header, payload)) = Header::parse(bytes) else { return nonzero(fold(SEED, bytes)) };
    innermost(header, payload, NESTING)
}

/// Returns the identity that all fragments of a datagram with this header have, except fragments of TCP and SCTP.
pub fn fragment_identity(header: &Header) -> PacketId {
    of_datagram(&Header { more_fragments: true, offset: 0, ..*header }, &[])
}

fn innermost(header: Header, payload: &[u8], nesting: u8) -> PacketId {
    let kind = Kind::of_protocol(header.protocol).filter(|_| nesting > 0 && !header.is_fragment());
    // Other kinds than IP in IP are rare, so a copy of the inner datagram is acceptable.
    let opened = match kind {
        None => None,
        Some(Kind::IpInIp) => Some(Cow::Borrowed(payload)),
        Some(Kind::Minimal | Kind::Gre) => {
            tunnel::decapsulate(&header.emit(payload)).ok().map(|(_, inner)| Cow::Owned(inner.into_owned()))
        }
    };
    match opened.as_deref().and_then(|inner| Header::parse(inner).ok()) {
        Some((inner, payload)) => innermost(inner, payload, nesting - 1),
        None => of_datagram(&header, payload),
    }
}

fn of_datagram(header: &Header, payload: &[u8]) -> PacketId {
    let mut hash = SEED;
    let repeats = matches!(header.protocol, ipv4::TCP | ipv4::SCTP);
    let atomic = header.dont_fragment || header.protocol == ipv4::UDP;
    if repeats || !atomic || header.is_fragment() {
        hash = fold(hash, &header.id.to_be_bytes());
        hash = fold(hash, &(if repeats { header.offset } else { 0 }).to_be_bytes());
    }
    hash = fold(hash, &header.src.octets());
    hash = fold(hash, &header.dst.octets());
    hash = fold(hash, &[header.protocol]);
    if header.is_fragment() && !repeats {
        return nonzero(hash);
    }
    let (head, tail) = match header.protocol {
        ipv4::UDP if payload.len() >= 8 => (payload.get(..6), payload.get(8..)),
        ipv4::ICMP if payload.len() >= 4 => (payload.get(..2), payload.get(4..)),
        _ => (Some(payload), None),
    };
    hash = fold(hash, head.unwrap_or_default());
    nonzero(fold(hash, tail.unwrap_or_default()))
}

/// Returns the identity that a UDP datagram will have once the kernel has built it with DF set.
pub fn udp_identity(src: SocketAddrV4, dst: SocketAddrV4, payload: &[u8]) -> PacketId {
    identity(&crate::udp::packet(src, dst, payload))
}

fn nonzero(hash: u64) -> PacketId {
    PacketId(hash.max(1)) // zero is PacketId::NEW
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use core::net::Ipv4Addr;

    const A: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 2, 0, 1), 4000);
    const B: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 1, 0, 7), 5000);

    #[test]
    fn forwarding_does_not_change_who_a_packet_is() {
        let mut bytes = crate::udp::packet(A, B, &42u64.to_be_bytes());
        let id = identity(&bytes);
        assert!(ipv4::decrement_ttl(&mut bytes));
        assert_eq!(identity(&bytes), id);
        bytes[26..28].fill(0); // the UDP checksum before offloading fills it in
        assert_eq!(identity(&bytes), id);
    }

    #[test]
    fn another_payload_is_another_packet() {
        let a = udp_identity(A, B, &42u64.to_be_bytes());
        assert_ne!(a, udp_identity(A, B, &43u64.to_be_bytes()));
        assert_ne!(a, udp_identity(B, A, &42u64.to_be_bytes()));
    }

    #[test]
    fn a_retransmission_of_tcp_or_sctp_is_another_packet_and_a_datagram_of_udp_is_not() {
        let sent = |protocol, id| {
            let header = Header { id, ..Header::new(protocol, *A.ip(), *B.ip()) };
            identity(&header.emit(b"the same bytes"))
        };
        for protocol in [ipv4::TCP, ipv4::SCTP] {
            assert_ne!(sent(protocol, 1), sent(protocol, 2));
        }
        assert_eq!(sent(ipv4::UDP, 1), sent(ipv4::UDP, 2));
    }

    #[test]
    fn all_fragments_of_a_datagram_share_an_identity() {
        let cut = |id, mtu| {
            let header = Header { id, dont_fragment: false, ..Header::new(ipv4::UDP, *A.ip(), *B.ip()) };
            crate::fragment::pieces(&header.emit(&[7; 1000]), mtu).unwrap()
        };
        let of = |pieces: Vec<Vec<u8>>| pieces.iter().map(|bytes| identity(bytes)).collect::<Vec<_>>();
        assert_eq!(of(cut(1, 576)), [of(cut(1, 300))[0]; 2]);
        assert_ne!(of(cut(1, 576))[0], of(cut(2, 576))[0]);
        let whole = |id| identity(&cut(id, 1500)[0]);
        assert!(whole(1) == whole(2) && whole(1) != of(cut(1, 576))[0]);
    }

    #[test]
    fn a_tunnel_does_not_change_who_a_packet_is() {
        let bytes = crate::udp::packet(A, B, b"inside");
        let [entry, exit] = [1, 2].map(|last| Ipv4Addr::new(10, 9, 0, last));
        let once = crate::ipip::encapsulate(&bytes, entry, exit, 7).unwrap();
        let twice = crate::ipip::encapsulate(&once, exit, entry, 7).unwrap();
        assert_eq!([identity(&once), identity(&twice)], [identity(&bytes); 2]);
        let other = crate::ipip::encapsulate(&crate::udp::packet(A, B, b"other"), entry, exit, 7).unwrap();
        assert_ne!(identity(&other), identity(&once));
    }
}
