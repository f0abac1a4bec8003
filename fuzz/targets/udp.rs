//! UDP in IPv4: a datagram that is read must be written and read again as the same.

use fuzz::{patch, set_checksum_over};
use wire::udp::{self, Datagram};
use wire::{Checksum, Ipv4Addr, Malformed, Reader, SocketAddrV4, ipv4};

/// Runs the target on one input.
pub(crate) fn run(bytes: &[u8]) {
    let mut r = Reader::new(bytes, Malformed("too short"));
    let (Ok(src), Ok(dst)) = (r.array::<4>(), r.array::<4>()) else { return };
    let (src, dst) = (Ipv4Addr::from(src), Ipv4Addr::from(dst));
    check(r.rest(), src, dst);
    // A fuzzer does not find correct checksums, so they are set here.
    let mut corrected = r.rest().to_vec();
    let claimed = corrected.get(4..6).map_or([0, 0], |len| [len[0], len[1]]);
    if let Some(covered) = corrected
        .get_mut(..usize::from(u16::from_be_bytes(claimed)))
        .filter(|covered| covered.len() >= udp::HEADER)
    {
        let [high, low] = claimed;
        let pseudo =
            Checksum::default().add(&src.octets()).add(&dst.octets()).add(&[0, ipv4::UDP, high, low]);
        set_checksum_over(covered, 6, pseudo);
        if covered.get(6..8) == Some(&[0, 0]) {
            patch(covered, 6, [0xff, 0xff]);
        }
        let len = covered.len();
        let datagram = Datagram::parse(&corrected, src, dst).expect("a corrected datagram is valid");
        assert_eq!(datagram.payload.len() + udp::HEADER, len);
        check(&corrected, src, dst);
    }
}

fn check(bytes: &[u8], src: Ipv4Addr, dst: Ipv4Addr) {
    let Ok(datagram) = Datagram::parse(bytes, src, dst) else { return };
    let (from, to) = (SocketAddrV4::new(src, datagram.src_port), SocketAddrV4::new(dst, datagram.dst_port));
    // The payload of an IPv4 datagram is shorter than the largest UDP length, by the length of the IPv4 header.
    if ipv4::HEADER + udp::HEADER + datagram.payload.len() > usize::from(u16::MAX) {
        return;
    }
    let packet = udp::packet(from, to, datagram.payload);
    let (header, payload) = ipv4::Header::parse(&packet).expect("what is emitted is right");
    assert_eq!((header.src, header.dst, header.protocol), (src, dst, ipv4::UDP));
    assert_eq!(Datagram::parse(payload, src, dst), Ok(datagram));
    assert_eq!(wire::udp_identity(from, to, datagram.payload), wire::identity(&packet));
}
