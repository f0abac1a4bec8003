//! SCTP packets: a packet that is read must be written and read again as the same.

use sctp::message::{Packet, set_checksum};

/// Runs the target on one input.
pub(crate) fn run(bytes: &[u8]) {
    read(bytes);
    // A fuzzer does not find correct checksums, so they are set here.
    let mut corrected = bytes.to_vec();
    set_checksum(&mut corrected);
    read(&corrected);
}

fn read(bytes: &[u8]) {
    if let Ok(packet) = Packet::parse(bytes) {
        assert_eq!(Packet::parse(&packet.emit()), Ok(packet));
    }
}
