use super::*;
use auth::Key;
use proptest::collection::vec;
use proptest::prelude::*;

fn hex(text: &str) -> Vec<u8> {
    text.parse::<Key>().unwrap().as_bytes().to_vec()
}

fn association(algorithm: Algorithm) -> Association {
    Association { spi: 256, algorithm, key: Key::new(b"1234567812345678") }
}

/// Returns the request whose bytes are in `GOLDEN`. An independent home agent has accepted this request with HMAC-MD5.
fn request() -> Request {
    Request {
        flags: RequestFlags(0x2a),
        lifetime: 300,
        home: Ipv4Addr::new(10, 1, 1, 10),
        home_agent: Ipv4Addr::new(10, 1, 1, 20),
        care_of: Ipv4Addr::new(10, 1, 2, 7),
        identification: 0xed00_0000_1234_5800,
        extensions: Vec::new(),
    }
}

const GOLDEN: &str = "012a012c0a01010a0a0101140a010207ed00000012345800";

fn reply() -> Reply {
    request().reply(Code::Accepted)
}

fn advertisement() -> Advertisement {
    Advertisement {
        src: Ipv4Addr::new(10, 3, 0, 1),
        dst: ALL_SYSTEMS,
        registered_only: false,
        lifetime: 3,
        routers: vec![(Ipv4Addr::new(10, 3, 0, 1), -2)],
        sequence: 7,
        registration_lifetime: 300,
        flags: AgentFlags::FOREIGN | AgentFlags::REGISTRATION_REQUIRED,
        care_of: vec![Ipv4Addr::new(10, 3, 0, 1)],
        prefix_lengths: Some(vec![24]),
        challenge: None,
    }
}

fn ip(packet: &[u8]) -> (Header, Vec<u8>) {
    let (ip, payload) = Header::parse(packet).unwrap();
    (ip, payload.to_vec())
}

/// Sets the correct ICMP checksum of a changed message.
fn set_checksum(icmp: &mut [u8]) {
    icmp[2..4].fill(0);
    let sum = wire::checksum(icmp);
    icmp[2..4].copy_from_slice(&sum.to_be_bytes());
}

// --- registration ------------------------------------------------------------------------------------------------------

#[test]
fn the_golden_request_is_made_and_read() {
    assert_eq!(request().emit(), hex(GOLDEN));
    assert_eq!(Request::parse(&hex(GOLDEN)), Ok(request()));
}

#[test]
fn the_golden_authenticators() {
    let cases = [
        (Algorithm::HmacMd5, "201400000100", "7f63376cd6b74227e848a28cfd451751"),
        (Algorithm::KeyedMd5, "201400000100", "01f1befbe65516cb87b4f2da4e4faf65"),
        (Algorithm::KeyedMd5WithoutSpi, "201400000100", "c9fc9a71fb83833462b825eee09e1086"),
        (
            Algorithm::HmacSha256,
            "202400000100",
            "d8cd062467b389d67d8008d20a61f5746cd11ed41888bfb7f26a80c677b29e7d",
        ),
    ];
    for (algorithm, head, authenticator) in cases {
        let mut signed = request();
        signed.sign(Between::MobileHome, &association(algorithm));
        let expected = [hex(GOLDEN), hex(head), hex(authenticator)].concat();
        assert_eq!(signed.emit(), expected);
        let read = Request::parse(&expected).unwrap();
        assert!(read.verify(Between::MobileHome, &association(algorithm)));
    }
}

#[test]
fn an_association_is_more_than_its_key() {
    let mut signed = request();
    let ours = association(Algorithm::HmacSha256);
    assert!(!signed.verify(Between::MobileHome, &ours));
    signed.sign(Between::MobileHome, &ours);
    assert!(signed.verify(Between::MobileHome, &ours));
    assert!(!signed.verify(Between::ForeignHome, &ours));
    for other in [
        association(Algorithm::HmacMd5),
        association(Algorithm::KeyedMd5),
        association(Algorithm::KeyedMd5WithoutSpi),
        Association { spi: 257, ..ours.clone() },
        Association { key: Key::new([0; 16]), ..ours.clone() },
    ] {
        assert!(!signed.verify(Between::MobileHome, &other), "{other:?}");
    }
    // An authenticator whose length is not that of the algorithm is not correct.
    if let Some(Extension::Authentication(authentication)) = signed.extensions.last_mut() {
        authentication.authenticator.truncate(16);
    }
    assert!(!signed.verify(Between::MobileHome, &ours));
}

/// The Mobile-Foreign and Foreign-Home Authentications cover the bytes before them. `strip` removes them, and the
/// Mobile-Home Authentication stays valid.
#[test]
fn a_relayed_request_keeps_what_the_home_agent_is_to_see() {
    let (ours, theirs) = (association(Algorithm::HmacSha256), association(Algorithm::HmacMd5));
    let skipped = Extension::Skipped { kind: 200, data: vec![1, 2, 3] };
    let mut sent = Request { extensions: vec![skipped.clone()], ..request() };
    sent.sign(Between::MobileHome, &ours);
    let visible = sent.clone();
    sent.extensions.push(skipped);
    sent.sign(Between::MobileForeign, &theirs);
    let mut taken = Request::parse(&sent.emit()).unwrap();
    assert!(taken.verify(Between::MobileForeign, &theirs));
    taken.strip();
    assert_eq!(taken, visible);
    taken.sign(Between::ForeignHome, &theirs);
    let taken = Request::parse(&taken.emit()).unwrap();
    assert!(taken.verify(Between::MobileHome, &ours) && taken.verify(Between::ForeignHome, &theirs));
}

fn refusal(payload: &[u8]) -> &'static str {
    Registration::parse(payload).unwrap_err().0
}

#[test]
fn short_messages_are_refused() {
    assert_eq!(refusal(&[]), "mip_empty");
    for kind in [0, 2, 4, 16, 18, 255] {
        assert_eq!(refusal(&[kind; 24]), "mip_unknown_type");
    }
    for length in 1..24 {
        assert_eq!(refusal(&request().emit()[..length]), "mip_request_short", "{length}");
    }
    for length in 1..20 {
        assert_eq!(refusal(&reply().emit()[..length]), "mip_reply_short", "{length}");
    }
}

#[test]
fn wrong_extensions_are_refused() {
    let cases: [(&[u8], &str); 9] = [
        (&[200], "mip_extension_truncated"),
        (&[0], "mip_extension_truncated"),
        (&[200, 1], "mip_extension_overrun"),
        (&[200, 3, 0, 0], "mip_extension_overrun"),
        (&[0, 0], "mip_unknown_extension"),
        (&[127, 0], "mip_unknown_extension"),
        (&[32, 3, 0, 0, 1], "mip_authentication_length"),
        (&[33, 4, 0, 0, 1, 0, 33, 4, 0, 0, 1, 0], "mip_authentication_twice"),
        (&[34, 4, 0, 0, 1, 0, 32, 4, 0, 0, 1, 0], "mip_extension_order"),
    ];
    for (extensions, reason) in cases {
        assert_eq!(refusal(&[&request().emit(), extensions].concat()), reason, "{extensions:?}");
        assert_eq!(refusal(&[&reply().emit(), extensions].concat()), reason, "{extensions:?}");
    }
}

#[test]
fn what_carries_a_message_is_looked_at() {
    let ends = [Ipv4Addr::new(10, 1, 1, 10), Ipv4Addr::new(10, 3, 0, 1)];
    let [src, dst] = ends.map(|address| SocketAddrV4::new(address, PORT));
    let packet = datagram(src, dst, 255, &request().emit());
    let received = Received::parse(&packet).unwrap();
    assert_eq!((received.ip.ttl, received.sender()), (255, src));
    assert_eq!(received.message, Registration::Request(request()));
    let (header, payload) = ip(&packet);
    let with = |header: Header, payload: &[u8]| Received::parse(&header.emit(payload)).unwrap_err().0;
    assert_eq!(with(Header { protocol: ipv4::ICMP, ..header }, &payload), "mip_protocol");
    assert_eq!(with(Header { more_fragments: true, ..header }, &payload), "mip_fragment");
    assert_eq!(with(Header { offset: 1, ..header }, &payload), "mip_fragment");
    assert_eq!(with(Header { src: *dst.ip(), dst: *dst.ip(), ..header }, &payload), "udp_checksum");
    let mut without_checksum = payload;
    without_checksum[6..8].fill(0);
    assert!(Received::parse(&header.emit(&without_checksum)).is_ok());
}

#[test]
fn every_code_has_its_number() {
    for number in 0..=255 {
        let code = Code::from_number(number);
        assert_eq!(code.number(), number);
        assert_eq!(code.is_accepted(), number < 2);
        assert!(code.to_string().starts_with(&number.to_string()));
    }
    assert_eq!(Code::from_number(133), Code::IdentificationMismatch);
    assert_eq!(Code::from_number(73), Code::Unassigned(73));
    assert!(Code::RegistrationTimeout.is_of_foreign_agent() && Code::InvalidHomeAgent.is_of_foreign_agent());
    assert!(!Code::HomeUnspecified.is_of_foreign_agent() && !Code::Accepted.is_of_foreign_agent());
}

// --- agent discovery ---------------------------------------------------------------------------------------------------

#[test]
fn an_advertisement_byte_for_byte() {
    let (header, icmp) = ip(&advertisement().emit());
    let expected = "090015b5010200030a030001fffffffe100a0007012c90000a030001130118";
    assert_eq!(icmp, hex(expected));
    assert_eq!((header.ttl, header.dst), (1, ALL_SYSTEMS));
    assert_eq!(Advertisement::parse(&header, &icmp), Ok(advertisement()));
    assert_eq!(advertisement().prefix(), Some(wire::Prefix::new(Ipv4Addr::new(10, 3, 0, 0), 24)));
}

/// A router address may have more than two words; the further ones are ignored (RFC 1256, section 5.2).
#[test]
fn further_words_of_a_router_address_are_ignored() {
    let (header, mut icmp) = ip(&advertisement().emit());
    icmp[5] = 4;
    icmp.splice(16..16, [7; 8]);
    set_checksum(&mut icmp);
    assert_eq!(Advertisement::parse(&header, &icmp), Ok(advertisement()));
}

/// Returns the reason why an advertisement is refused after `change`, with a correct checksum.
fn refused(change: impl FnOnce(&mut Header, &mut Vec<u8>)) -> &'static str {
    let (mut header, mut icmp) = ip(&advertisement().emit());
    change(&mut header, &mut icmp);
    set_checksum(&mut icmp);
    Advertisement::parse(&header, &icmp).unwrap_err().0
}

/// An extension without data takes two bytes in a message, and much more in memory.
#[test]
fn extensions_are_limited_in_number_and_length() {
    let with = |extensions: &[u8]| Request::parse(&[request().emit(), extensions.to_vec()].concat());
    assert!(with(&[200, 0].repeat(32)).is_ok());
    assert_eq!(with(&[200, 0].repeat(33)).unwrap_err().0, "mip_extensions_count");
    let long = |last: u8| {
        let mut bytes = [&[200, 255][..], &[0; 255]].concat().repeat(5);
        bytes.extend_from_slice(&[200, last]);
        bytes.resize(bytes.len() + usize::from(last), 0);
        bytes
    };
    assert!(with(&long(161)).is_ok());
    assert_eq!(with(&long(162)).unwrap_err().0, "mip_extensions_length");
}

/// A challenge counts only if the Mobile-Foreign Authentication covers it (RFC 4721, section 4). The delivery style is for
/// the foreign agent, so it must be after the Mobile-Home Authentication (RFC 3024, section 3.3).
#[test]
fn extensions_for_the_foreign_agent_count_at_their_places() {
    let ours = association(Algorithm::HmacSha256);
    let challenge = || Extension::challenge(vec![1, 2, 3, 4]);
    let mut request = request();
    request.extensions.push(Extension::encapsulating_delivery());
    request.sign(Between::MobileHome, &ours);
    assert_eq!(request.encapsulating_delivery(), None);
    request.extensions.push(Extension::encapsulating_delivery());
    assert_eq!(request.encapsulating_delivery(), Some(&[][..]));
    assert_eq!((request.challenge(), request.has_challenge()), (None, false));
    let mut after = request.clone();
    after.sign(Between::MobileForeign, &ours);
    after.extensions.push(challenge());
    assert_eq!((after.challenge(), after.has_challenge()), (None, true));
    request.extensions.push(challenge());
    request.sign(Between::MobileForeign, &ours);
    assert_eq!(request.challenge(), Some(&[1, 2, 3, 4][..]));
    let mut bytes = request.emit();
    assert_eq!(Request::parse(&bytes), Ok(request));
    // Types and lengths as in the RFCs.
    bytes.drain(..24 + 2 + 38);
    assert_eq!(bytes[..8], [130, 0, 132, 4, 1, 2, 3, 4]);
}

#[test]
fn wrong_advertisements_are_refused() {
    assert_eq!(refused(|header, _| header.ttl = 2), "mip_ttl");
    assert_eq!(refused(|header, _| header.protocol = ipv4::UDP), "mip_protocol");
    assert_eq!(refused(|header, _| header.offset = 3), "mip_fragment");
    assert_eq!(refused(|_, icmp| icmp[0] = 10), "mip_icmp_type");
    assert_eq!(refused(|_, icmp| icmp[1] = 1), "mip_advertisement_code");
    assert_eq!(refused(|_, icmp| icmp[4] = 0), "mip_unknown_extension");
    assert_eq!(refused(|_, icmp| icmp[4] = 255), "mip_advertisement_short");
    assert_eq!(refused(|_, icmp| icmp[5] = 1), "mip_entry_size");
    assert_eq!(refused(|_, icmp| icmp[5] = 60), "mip_advertisement_short");
    assert_eq!(refused(|_, icmp| icmp.truncate(16)), "mip_no_agent");
    assert_eq!(refused(|_, icmp| icmp[22] &= 0xcf), "mip_no_agent");
    assert_eq!(refused(|_, icmp| icmp[17] = 9), "mip_mobility_length");
    assert_eq!(refused(|_, icmp| icmp[17] = 5), "mip_mobility_length");
    assert_eq!(refused(|_, icmp| icmp[17] = 200), "mip_extension_overrun");
    assert_eq!(refused(|_, icmp| icmp[16] = 17), "mip_unknown_extension");
    assert_eq!(refused(|_, icmp| icmp[28] = 25), "mip_unknown_extension");
    assert_eq!(refused(|_, icmp| icmp.extend_from_slice(&[24, 0])), "mip_challenge_length");
    assert_eq!(refused(|_, icmp| icmp.extend_from_slice(&[24, 1, 7, 24, 1, 7])), "mip_extension_twice");
    assert_eq!(refused(|_, icmp| icmp.extend_from_slice(&[24, 2, 7])), "mip_extension_overrun");
    assert_eq!(refused(|_, icmp| icmp[30] = 33), "mip_prefix_lengths");
    assert_eq!(refused(|_, icmp| icmp.extend_from_slice(&[19, 0])), "mip_prefix_lengths");
    assert_eq!(refused(|_, icmp| icmp.extend_from_slice(&[19, 1, 24])), "mip_extension_twice");
    assert_eq!(
        refused(|_, icmp| icmp.extend_from_slice(&[16, 6, 0, 0, 0, 0, 0x20, 0])),
        "mip_extension_twice"
    );
    assert_eq!(refused(|_, icmp| icmp.push(200)), "mip_extension_truncated");
    let without_care_of = Advertisement { care_of: Vec::new(), ..advertisement() };
    let (header, icmp) = ip(&without_care_of.emit());
    assert_eq!(Advertisement::parse(&header, &icmp).unwrap_err().0, "mip_no_care_of");
    let (header, mut icmp) = ip(&advertisement().emit());
    icmp[9] ^= 1;
    assert_eq!(Advertisement::parse(&header, &icmp).unwrap_err().0, "icmp_checksum");
}

#[test]
fn padding_and_unknown_extensions_from_128_are_skipped() {
    let (header, mut icmp) = ip(&advertisement().emit());
    icmp.extend_from_slice(&[0, 0, 128, 2, 9, 9, 255, 0, 0]);
    set_checksum(&mut icmp);
    assert_eq!(Advertisement::parse(&header, &icmp), Ok(advertisement()));
}

#[test]
fn a_sequence_below_256_means_a_restart() {
    assert_eq!(Advertisement::after(0), 1);
    assert_eq!(Advertisement::after(0xfffe), 0xffff);
    assert_eq!(Advertisement::after(0xffff), 256);
}

#[test]
fn solicitations_are_made_read_and_refused() {
    let solicitation = Solicitation { src: Ipv4Addr::UNSPECIFIED, dst: ALL_ROUTERS };
    let (header, icmp) = ip(&solicitation.emit());
    assert_eq!(icmp, hex("0a00f5ff00000000"));
    assert_eq!(Solicitation::parse(&header, &icmp), Ok(solicitation));
    let refused = |change: fn(&mut Header, &mut Vec<u8>)| {
        let (mut header, mut icmp) = (header, icmp.clone());
        change(&mut header, &mut icmp);
        set_checksum(&mut icmp);
        Solicitation::parse(&header, &icmp).unwrap_err().0
    };
    assert_eq!(refused(|header, _| header.ttl = 64), "mip_ttl");
    assert_eq!(refused(|_, icmp| icmp[1] = 1), "mip_solicitation_code");
    assert_eq!(refused(|_, icmp| icmp[0] = 9), "mip_icmp_type");
    assert_eq!(refused(|_, icmp| icmp.truncate(7)), "mip_solicitation_short");
}

// --- any message -----------------------------------------------------------------------------------------------------

fn addresses() -> impl Strategy<Value = Ipv4Addr> {
    any::<u32>().prop_map(Ipv4Addr::from_bits)
}

/// Generates lists of extensions in a valid order.
fn extension_lists() -> impl Strategy<Value = Vec<Extension>> {
    let skipped =
        || (128..=255_u8, vec(any::<u8>(), 0..9)).prop_map(|(kind, data)| Extension::Skipped { kind, data });
    let signed = |between| {
        (any::<u32>(), vec(any::<u8>(), 0..40)).prop_map(move |(spi, authenticator)| {
            Extension::Authentication(Authentication { between, spi, authenticator })
        })
    };
    let some = |between| proptest::option::of(signed(between));
    (
        vec(skipped(), 0..3),
        some(Between::MobileHome),
        some(Between::MobileForeign),
        some(Between::ForeignHome),
    )
        .prop_map(|(mut list, a, b, c)| {
            list.extend([a, b, c].into_iter().flatten());
            list
        })
}

fn requests() -> impl Strategy<Value = Request> {
    let places = [addresses(), addresses(), addresses()];
    (any::<(u8, u16, u64)>(), places, extension_lists()).prop_map(|(numbers, places, extensions)| {
        let ((flags, lifetime, identification), [home, home_agent, care_of]) = (numbers, places);
        let flags = RequestFlags(flags);
        Request { flags, lifetime, home, home_agent, care_of, identification, extensions }
    })
}

fn advertisements() -> impl Strategy<Value = Advertisement> {
    let routers = vec((addresses(), any::<i32>(), 0..=32_u8), 0..4);
    let numbers = any::<(bool, u16, u16, u16, u16, bool)>();
    (addresses(), addresses(), routers, numbers, vec(addresses(), 1..4)).prop_map(
        |(src, dst, routers, numbers, care_of)| {
            let (registered_only, lifetime, sequence, registration_lifetime, flags, lengths) = numbers;
            let prefix_lengths = lengths.then(|| routers.iter().map(|(.., length)| *length).collect());
            Advertisement {
                src,
                dst,
                registered_only,
                lifetime,
                routers: routers.into_iter().map(|(router, preference, _)| (router, preference)).collect(),
                sequence,
                registration_lifetime,
                flags: AgentFlags(flags) | AgentFlags::HOME,
                care_of,
                prefix_lengths,
                challenge: (lifetime % 2 == 1).then(|| sequence.to_be_bytes().to_vec()),
            }
        },
    )
}

proptest! {
    #[test]
    fn what_is_emitted_is_read_back(request in requests(), code in any::<u8>(), advertisement in advertisements()) {
        prop_assert_eq!(Request::parse(&request.emit()), Ok(request.clone()));
        let extensions = request.extensions.clone();
        let reply = Reply { extensions, ..request.reply(Code::from_number(code)) };
        prop_assert_eq!(Reply::parse(&reply.emit()), Ok(reply));
        let (header, icmp) = ip(&advertisement.emit());
        prop_assert_eq!(Advertisement::parse(&header, &icmp), Ok(advertisement));
    }

    #[test]
    fn one_wrong_bit_is_noticed(request in requests(), algorithm in prop_oneof![
        Just(Algorithm::HmacSha256), Just(Algorithm::HmacMd5),
        Just(Algorithm::KeyedMd5), Just(Algorithm::KeyedMd5WithoutSpi)
    ]) {
        let association = association(algorithm);
        let mut signed = Request { extensions: Vec::new(), ..request };
        signed.sign(Between::MobileHome, &association);
        let good = signed.emit();
        let believed =
            |bytes: &[u8]| Request::parse(bytes).is_ok_and(|read| read.verify(Between::MobileHome, &association));
        prop_assert!(believed(&good));
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(!believed(&bad), "bit {}", bit);
        }
    }

    #[test]
    fn parse_survives_anything_and_loses_nothing(bytes in vec(any::<u8>(), 0..128), kind in prop_oneof![Just(1_u8), Just(3)]) {
        let mut bytes = bytes;
        if let Some(first) = bytes.first_mut() {
            *first = kind;
        }
        match Registration::parse(&bytes) {
            Ok(Registration::Request(request)) => prop_assert_eq!(request.emit(), bytes),
            Ok(Registration::Reply(reply)) => prop_assert_eq!(reply.emit(), bytes),
            Err(_) => {}
        }
    }
}

#[test]
fn a_reserved_flag_is_no_flag_p_unless_the_numbers_say_so() {
    for (flags, with_route_optimization, private_flag, expected) in [
        (0x01, false, 0x01, true),
        (0x01, true, 0x01, false),
        (0x01, true, 0x04, true),
        (0x04, true, 0x04, false),
        (0x05, true, 0x04, true),
        (0xfa, false, 0x01, false),
    ] {
        let numbers = Numbers { private_flag, ..Numbers::default() };
        let found = RequestFlags(flags).has_reserved(with_route_optimization, &numbers);
        assert_eq!(found, expected, "{flags:#x} {with_route_optimization} {private_flag:#x}");
    }
}
