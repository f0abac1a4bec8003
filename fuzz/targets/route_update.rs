//! Cellular IP route-updates and update-requests: a whole datagram, as a base station receives it from the air.

use auth::Key;
use cellular_ip::message::{self, RouteUpdate};
use cellular_ip::update_request::UpdateRequest;
use fuzz::{patch, set_checksum};
use wire::ipv4::Header;

/// Runs the target on one input.
pub(crate) fn run(bytes: &[u8]) {
    check(bytes);
    // A fuzzer does not find correct lengths and checksums, so they are set here, the inner ones first.
    let mut corrected = bytes.to_vec();
    let header_len = usize::from(bytes.first().map_or(0, |first| first & 15)) * 4;
    if let Some(icmp) = corrected.get_mut(header_len..) {
        set_checksum(icmp, 2);
    }
    patch(&mut corrected, 2, u16::try_from(bytes.len()).unwrap_or(u16::MAX).to_be_bytes());
    if let Some(header) = corrected.get_mut(..header_len) {
        set_checksum(header, 10);
    }
    check(&corrected);
}

fn check(bytes: &[u8]) {
    let Ok((ip, icmp)) = Header::parse(bytes) else { return };
    let code = message::control_code(&ip, icmp);
    if let Ok(request) = UpdateRequest::parse(&ip, icmp) {
        let emitted = request.emit();
        let (again, payload) = Header::parse(&emitted).expect("what is emitted is right");
        assert_eq!(UpdateRequest::parse(&again, payload), Ok(request));
    }
    let Ok(mut update) = RouteUpdate::parse(&ip, icmp) else { return };
    assert_eq!(code, Some(message::ROUTE_UPDATE));

    let emitted = update.emit();
    let (again, payload) = Header::parse(&emitted).expect("what is emitted is right");
    assert_eq!((again.src, again.dst), (ip.src, ip.dst));
    assert_eq!(RouteUpdate::parse(&again, payload).as_ref(), Ok(&update));
    // Reading and writing must lose nothing, or the digest would not be valid. The checksum is not compared, because
    // zero has two forms (RFC 1071).
    assert_eq!((payload.get(..2), payload.get(4..)), (icmp.get(..2), icmp.get(4..)));

    let key = message::session_key(&Key::new([7; 16]), update.auth.key_gen, update.mobile, update.auth.r_mh);
    // A wrong digest gives a result and no panic.
    let _ = (update.verify(&key), update.attached_since());
    update.sign(&key);
    assert!(update.verify(&key));
    update.auth.digest[0] ^= 1;
    assert!(!update.verify(&key));
}
