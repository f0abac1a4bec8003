//! SCTP packets: what can be read can be written, and read again as the same.

use sctp::message::{Packet, mend};

/// Runs the target on one input.
pub(crate) fn run(bytes: &[u8]) {
    read(bytes);
    // A fuzzer does not find correct checksums, so this sets them.
    let mut mended = bytes.to_vec();
    mend(&mut mended);
    read(&mended);
}

fn read(bytes: &[u8]) {
    if let Ok(packet) = Packet::parse(bytes) {
        assert_eq!(Packet::parse(&packet.emit()), Ok(packet));
    }
}
