//! IPv4 headers: a header that is read must be written and read again as the same, also after its TTL was decremented.

use fuzz::set_checksum;
use wire::ipv4::{self, Header};

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

    let mut hop = bytes.to_vec();
    if ipv4::decrement_ttl(&mut hop) {
        assert_eq!(Header::parse(&hop), Ok((Header { ttl: header.ttl - 1, ..header }, payload)));
        assert_eq!(wire::identity(&hop), wire::identity(bytes));
    } else {
        assert!(header.ttl <= 1);
        assert_eq!(hop, bytes);
    }
}

/// Returns whether the checksum at index `at` is 0xffff. Zero has two forms in one's complement (RFC 1071), and only 0
/// is emitted.
fn has_negative_zero(bytes: &[u8], at: usize) -> bool {
    bytes.get(at..at + 2) == Some(&[0xff, 0xff])
}
