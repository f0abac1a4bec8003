//! IPv4 headers: a header that is read must be written and read again as the same, also after its TTL was decremented. A
//! datagram must stay the same in tunnels and in fragments.

use fuzz::set_checksum;
use wire::fragment::{self, Reassembly};
use wire::ipv4::{self, Header};
use wire::tunnel::{self, Kind};
use wire::{Instant, Ipv4Addr};

/// Runs the target on one input.
pub(crate) fn run(bytes: &[u8]) {
    check(bytes);
    // A fuzzer does not find correct checksums, so they are set here.
    let mut corrected = bytes.to_vec();
    let header_len = usize::from(bytes.first().map_or(0, |first| first & 15)) * 4;
    if let Some(header) = corrected.get_mut(..header_len) {
        set_checksum(header, 10);
        check(&corrected);
    }
}

fn check(bytes: &[u8]) {
    wire::identity(bytes);
    let Ok((header, payload)) = Header::parse(bytes) else { return };
    assert_eq!(ipv4::addresses(bytes), Some((header.src, header.dst)));
    let has_options = bytes.first() != Some(&0x45);
    // Options are not written, so the new header may be shorter. All other fields must be equal.
    let emitted = header.emit(payload);
    assert_eq!(Header::parse(&emitted), Ok((header, payload)));
    assert!(has_options || bytes.starts_with(&emitted) || has_negative_zero(bytes, 10));
    assert_eq!(wire::identity(&emitted), wire::identity(bytes));

    check_tunnels_and_fragments(bytes, &header);
    let mut hop = bytes.to_vec();
    if ipv4::decrement_ttl(&mut hop) {
        assert_eq!(Header::parse(&hop), Ok((Header { ttl: header.ttl - 1, ..header }, payload)));
        assert_eq!(wire::identity(&hop), wire::identity(bytes));
    } else {
        assert!(header.ttl <= 1);
        assert_eq!(hop, bytes);
    }
}

/// Checks that a datagram is the same after it was in a tunnel of each kind, and after it was cut and joined.
fn check_tunnels_and_fragments(bytes: &[u8], header: &Header) {
    let _ = tunnel::decapsulate(bytes);
    fragment::is_in(bytes);
    let whole = &bytes[..ipv4::total_len(bytes)];
    let [entry, exit] = [1, 2].map(|last| Ipv4Addr::new(10, 9, 0, last));
    for kind in [Kind::IpInIp, Kind::Minimal, Kind::Gre] {
        let Ok(outer) = tunnel::encapsulate(kind, bytes, entry, exit, 7) else { continue };
        let (_, inner) = tunnel::decapsulate(&outer).expect("it was encapsulated");
        // Minimal encapsulation computes the checksum of the header again.
        assert!(*inner == *whole || has_negative_zero(whole, 10));
    }
    let Ok(pieces) = fragment::pieces(bytes, 68 + u16::from(header.ttl)) else { return };
    let mut reassembly = Reassembly::default();
    let (last, others) = pieces.split_last().expect("at least one piece");
    for piece in others {
        assert_eq!(reassembly.add(Instant::ZERO, piece, ()).map(|added| added.whole), Ok(None));
    }
    let joined = reassembly.add(Instant::ZERO, last, ()).expect("a piece is well formed").whole;
    if !header.is_fragment() && !ipv4::payload(bytes).is_empty() {
        let joined = joined.expect("all pieces have arrived");
        let (again, payload) = Header::parse(&joined).expect("it was joined");
        assert_eq!((again, payload), (Header { dont_fragment: false, ..*header }, ipv4::payload(bytes)));
    }
}

/// Returns whether the checksum at index `at` is 0xffff. Zero has two forms in one's complement (RFC 1071), and only 0
/// is emitted.
fn has_negative_zero(bytes: &[u8], at: usize) -> bool {
    bytes.get(at..at + 2) == Some(&[0xff, 0xff])
}
