//! DHCP: the UDP payload of a message.

use dhcp::message::Message;

/// Runs the target on one input.
pub(crate) fn run(bytes: &[u8]) {
    check(bytes);
    // A fuzzer does not find the magic cookie, so it is set here.
    let mut corrected = bytes.to_vec();
    if let Some(cookie) = corrected.get_mut(236..240) {
        cookie.copy_from_slice(&[99, 130, 83, 99]);
    }
    check(&corrected);
}

fn check(bytes: &[u8]) {
    if let Ok(message) = Message::parse(bytes) {
        assert_eq!(Message::parse(&message.emit()), Ok(message));
    }
}
