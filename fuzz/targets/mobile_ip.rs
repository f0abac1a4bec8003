//! Mobile IP: a whole datagram, as an agent or a mobile node receives it.

use auth::Key;
use fuzz::{patch, set_checksum};
use mobile_ip::message::{
    Advertisement, Algorithm, Association, Between, Binding, BufferControl, Extension, Numbers, Received,
    Registration, Reply, Request, Solicitation,
};
use wire::ipv4::{self, Header};
use wire::udp;

/// Runs the target on one input.
pub(crate) fn run(bytes: &[u8]) {
    check(bytes);
    // A fuzzer does not find correct lengths and checksums, so they are set here, the inner ones first.
    let mut corrected = bytes.to_vec();
    let header_len = usize::from(bytes.first().map_or(0, |first| first & 15)) * 4;
    if let Some(payload) = corrected.get_mut(header_len..) {
        match bytes.get(9) {
            Some(&ipv4::ICMP) => set_checksum(payload, 2),
            _ => {
                let len = u16::try_from(payload.len()).unwrap_or(u16::MAX);
                patch(payload, 4, len.to_be_bytes());
                patch(payload, 6, [0, 0]); // no checksum
            }
        }
    }
    patch(&mut corrected, 2, u16::try_from(bytes.len()).unwrap_or(u16::MAX).to_be_bytes());
    if let Some(header) = corrected.get_mut(..header_len) {
        set_checksum(header, 10);
    }
    check(&corrected);
}

fn check(bytes: &[u8]) {
    let Ok((ip, payload)) = Header::parse(bytes) else { return };
    if let Ok(advertisement) = Advertisement::parse(&ip, payload) {
        let emitted = advertisement.emit();
        let (ip, icmp) = Header::parse(&emitted).expect("what is emitted is right");
        assert_eq!(Advertisement::parse(&ip, icmp), Ok(advertisement));
    }
    if let Ok(solicitation) = Solicitation::parse(&ip, payload) {
        let emitted = solicitation.emit();
        let (ip, icmp) = Header::parse(&emitted).expect("what is emitted is right");
        assert_eq!(Solicitation::parse(&ip, icmp), Ok(solicitation));
    }
    if let Ok(Some((_, message))) = Binding::received(&ip, payload, &Numbers::default()) {
        binding(message, payload.get(8..).unwrap_or_default());
    }
    let udp = udp::Datagram::parse(payload, ip.src, ip.dst);
    if let Ok(Some(Ok(control))) = udp.map(|udp| BufferControl::parse(udp.payload, &Numbers::default())) {
        let emitted = control.emit(&Numbers::default());
        assert_eq!(payload.get(8..8 + emitted.len()), Some(emitted.as_slice()));
    }
    // What an agent without the extensions of route optimization accepts, an agent with them accepts, too.
    let known = Numbers::default().extensions();
    let received = Received::knowing(ip, payload, &known);
    if let Ok(plain) = Received::parse(bytes) {
        assert_eq!(received.as_ref(), Ok(&plain));
    }
    if let Ok(received) = received {
        registration(received.message, payload.get(8..).unwrap_or_default());
    }
}

/// Checks that reading and writing a message of route optimization lose nothing but the reserved bits of a Warning, and that its
/// authenticator covers all that was read.
fn binding(message: Binding, payload: &[u8]) {
    let numbers = Numbers::default();
    let emitted = message.emit(&numbers);
    assert_eq!(emitted.first(), payload.first());
    if !matches!(message, Binding::Warning(_)) {
        assert_eq!(payload.get(..emitted.len()), Some(emitted.as_slice()));
    }
    assert_eq!(Binding::parse(&emitted, &numbers), Some(Ok(message.clone())));
    let (subtype, algorithm) = (numbers.route_authentication, Algorithm::HmacSha256);
    let association = Association { spi: 256, algorithm, key: Key::new([7; 16]) };
    // A wrong authenticator gives a result and no panic.
    let signed = match message {
        Binding::Update(mut update) => {
            let _ = update.verify(subtype, &association, &numbers);
            update.sign(subtype, &association, &numbers);
            assert!(update.verify(subtype, &association, &numbers));
            assert!(!update.verify(numbers.smooth_authentication, &association, &numbers));
            Binding::Update(update)
        }
        Binding::Acknowledge(mut acknowledge) => {
            let _ = acknowledge.verify(subtype, &association, &numbers);
            if acknowledge.identification.is_none() {
                return; // it cannot have an authentication
            }
            acknowledge.sign(subtype, &association, &numbers);
            assert!(acknowledge.verify(subtype, &association, &numbers));
            Binding::Acknowledge(acknowledge)
        }
        Binding::Request(mut request) => {
            let _ = request.verify(subtype, &association, &numbers);
            request.sign(subtype, &association, &numbers);
            assert!(request.verify(subtype, &association, &numbers));
            Binding::Request(request)
        }
        Binding::Warning(_) => return,
    };
    assert_eq!(Binding::parse(&signed.emit(&numbers), &numbers), Some(Ok(signed)));
}

/// Checks the extensions of a request for smooth handoffs and route optimization: reading and writing lose nothing, and the
/// Binding Update that a foreign agent builds is well-formed.
fn extensions(request: &Request) {
    let numbers = Numbers::default();
    if let Some(Ok(warning)) = request.warning(&numbers) {
        assert!(request.extensions.iter().any(|found| same(found, &warning.extension(&numbers), 2)));
    }
    if let Some(Ok(previous)) = request.previous_agent(&numbers) {
        assert!(request.extensions.contains(&previous.extension(&numbers)));
        let update = Binding::Update(previous.update(request, &numbers));
        assert_eq!(Binding::parse(&update.emit(&numbers), &numbers), Some(Ok(update)));
    }
}

/// Checks that reading and writing the key in a reply lose nothing but reserved bytes.
fn distributed_key(reply: &Reply) {
    let numbers = Numbers::default();
    if let Ok(Some(key)) = reply.distributed_key(&numbers) {
        assert!(reply.extensions.iter().any(|found| same(found, &key.extension(&numbers), 2)));
    }
}

/// Returns whether two extensions are equal except for the first `reserved` bytes of their data.
fn same(one: &Extension, other: &Extension, reserved: usize) -> bool {
    match (one, other) {
        (Extension::Skipped { kind, data }, Extension::Skipped { kind: other_kind, data: other_data }) => {
            kind == other_kind && data.get(reserved..) == other_data.get(reserved..)
        }
        _ => one == other,
    }
}

/// Checks that reading and writing a message lose nothing. Otherwise its authenticator would not be valid.
fn registration(message: Registration, payload: &[u8]) {
    for algorithm in [Algorithm::HmacSha256, Algorithm::HmacMd5] {
        let association = Association { spi: 256, algorithm, key: Key::new([7; 16]) };
        match message.clone() {
            Registration::Request(mut request) => {
                extensions(&request);
                let emitted = request.emit();
                assert_eq!(payload.get(..emitted.len()), Some(emitted.as_slice()));
                // A wrong authenticator gives a result and no panic.
                let _ = request.verify(Between::MobileHome, &association);
                request.strip();
                if request.authentication(Between::ForeignHome).is_none() {
                    request.sign(Between::ForeignHome, &association);
                    assert!(request.verify(Between::ForeignHome, &association));
                    let known = Numbers::default().extensions();
                    let parsed = Registration::parse_knowing(&request.emit(), &known);
                    assert_eq!(parsed, Ok(Registration::Request(request)));
                }
            }
            Registration::Reply(mut reply) => {
                distributed_key(&reply);
                let emitted = reply.emit();
                assert_eq!(payload.get(..emitted.len()), Some(emitted.as_slice()));
                let _ = reply.verify(Between::MobileHome, &association);
                reply.strip();
                assert_eq!(Registration::parse(&reply.emit()), Ok(Registration::Reply(reply)));
            }
        }
    }
}
