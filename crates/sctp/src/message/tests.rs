use super::*;
use proptest::prelude::*;
use wire::Ipv4Addr;

const A: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 1);
const B: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 7);

fn packet(tag: u32, chunks: Vec<Chunk>) -> Packet {
    Packet { src_port: 4000, dst_port: 80, tag, chunks }
}

fn init() -> Init {
    Init {
        tag: 0x0102_0304,
        a_rwnd: 131_072,
        outbound: 16,
        inbound: 17,
        tsn: 0xffff_fffe,
        parameters: vec![
            Parameter::Ipv4(A),
            Parameter::Ipv6([6; 16]),
            Parameter::Cookie(vec![1, 2, 3]),
            Parameter::Unrecognized(vec![0xc1, 0x23, 0, 5, 9]),
            Parameter::CookiePreservative(1000),
            Parameter::AddressTypes(vec![5]),
            Parameter::Extensions(vec![0xc1, 0x80, 0x0f]),
            Parameter::Random(vec![7; 32]),
            Parameter::ChunkList(vec![0xc1, 0x80]),
            Parameter::HmacAlgorithms(vec![3, 1]),
            Parameter::Adaptation(6),
            Parameter::Unknown { kind: 0xc123, value: vec![9] },
        ],
    }
}

fn asconf() -> Asconf {
    let change = |action, correlation, address| Request::Change { action, correlation, address };
    Asconf {
        serial: 77,
        lookup: Address::Ipv4(A),
        requests: vec![
            change(Action::Add, 1, Address::Ipv4(B)),
            change(Action::SetPrimary, 2, Address::Ipv4(B)),
            change(Action::Delete, 3, Address::Ipv6([1; 16])),
            Request::Unknown { kind: 0xc00f, correlation: 4, value: vec![1, 2] },
        ],
    }
}

fn causes() -> Vec<Cause> {
    vec![
        Cause::new(Code::STALE_COOKIE, 1000_u32.to_be_bytes()),
        Cause::new(Code::UNRECOGNIZED_CHUNK, [0x40, 0, 0, 5, 1]),
        Cause::new(Code::USER_INITIATED_ABORT, *b"bye"),
        Cause::new(Code::OUT_OF_RESOURCE, []),
        Cause::new(Code(999), [1]),
    ]
}

/// Returns chunks of all types, and for each the tag of its packet.
fn chunks() -> Vec<(u32, Chunk)> {
    let data = Data {
        ends: true,
        begins: false,
        unordered: true,
        immediate: true,
        tsn: 5,
        stream: 3,
        ssn: 2,
        ppid: 0x1234_5678,
        data: b"seven..".to_vec(),
    };
    let sack = Sack { cumulative: 4, a_rwnd: 1000, gaps: vec![(2, 2), (4, 9)], duplicates: vec![1, 3] };
    let responses = vec![
        Response::Success(1),
        Response::Refused(2, vec![Cause::new(Code::RESOURCE_SHORTAGE, [0xc0, 1, 0, 5, 9])]),
        Response::Unknown { kind: 0xc0ff, value: vec![1] },
    ];
    vec![
        (9, Chunk::Data(data)),
        (0, Chunk::Init(init())),
        (9, Chunk::InitAck(init())),
        (9, Chunk::Sack(sack)),
        (9, Chunk::Heartbeat(vec![1, 2, 3, 4, 5])),
        (9, Chunk::HeartbeatAck(vec![])),
        (9, Chunk::Abort { reflected: true, causes: causes() }),
        (9, Chunk::Shutdown(99)),
        (9, Chunk::ShutdownAck),
        (9, Chunk::Error(causes())),
        (9, Chunk::CookieEcho(vec![1, 2, 3, 4, 5])),
        (9, Chunk::CookieAck),
        (9, Chunk::ShutdownComplete { reflected: true }),
        (9, Chunk::Auth(Auth { key_id: 1, hmac_id: 3, hmac: vec![5; 32] })),
        (9, Chunk::AsconfAck(AsconfAck { serial: 77, responses })),
        (9, Chunk::Asconf(asconf())),
        (9, Chunk::Unknown { kind: 0xbf, flags: 7, value: vec![1] }),
    ]
}

#[test]
fn what_is_emitted_is_read_back() {
    for (tag, chunk) in chunks() {
        let whole = packet(tag, vec![chunk]);
        assert_eq!(Packet::parse(&whole.emit()), Ok(whole));
    }
    let alone = [kind::INIT, kind::INIT_ACK, kind::SHUTDOWN_COMPLETE];
    let many = chunks().into_iter().map(|(_, chunk)| chunk).filter(|chunk| !alone.contains(&chunk.kind()));
    let whole = packet(9, many.collect());
    assert_eq!(Packet::parse(&whole.emit()), Ok(whole.clone()));
    assert_eq!(whole.emit().len() % 4, 0);
}

/// The bytes of a packet with SACK and DATA are as in RFC 9260, sections 3.1, 3.3.1 and 3.3.4. The test
/// `tests/association/tshark.rs` compares checksums with those of another program.
#[test]
fn golden_bytes_of_data_and_sack() {
    let data =
        Data { begins: true, ends: true, tsn: 0x0a0b_0c0d, data: b"hello".to_vec(), ..Data::default() };
    let sack = Sack { cumulative: 1, a_rwnd: 0x1_0000, gaps: vec![(2, 3)], duplicates: vec![1] };
    let bytes = packet(0x1122_3344, vec![Chunk::Sack(sack), Chunk::Data(data)]).emit();
    let head = [0x0f, 0xa0, 0, 80, 0x11, 0x22, 0x33, 0x44];
    let sack = [3, 0, 0, 24, 0, 0, 0, 1, 0, 1, 0, 0, 0, 1, 0, 1, 0, 2, 0, 3, 0, 0, 0, 1];
    let data = [0, 3, 0, 21, 10, 11, 12, 13, 0, 0, 0, 0, 0, 0, 0, 0, b'h', b'e', b'l', b'l', b'o', 0, 0, 0];
    assert_eq!(bytes[..8], head);
    assert_eq!(bytes[12..], [&sack[..], &data].concat());
    // The checksum is computed with zeros in its field, and its lowest byte is first (RFC 9260, appendix A).
    let zeroed = [&bytes[..8], &[0; 4], &bytes[12..]].concat();
    assert_eq!(bytes[8..12], crc32c(&[&zeroed]).to_le_bytes());
}

/// The bytes of ASCONF and ASCONF-ACK are as in RFC 5061, sections 4.1 and 4.2, and those of AUTH as in RFC 4895,
/// section 5.1.
#[test]
fn golden_bytes_of_asconf_and_auth() {
    let change = |action, correlation| Request::Change { action, correlation, address: Address::Ipv4(B) };
    let requests = vec![change(Action::Add, 1), change(Action::SetPrimary, 2)];
    let asconf = Chunk::Asconf(Asconf { serial: 7, lookup: Address::Ipv4(A), requests });
    let expected = [
        0xc1, 0, 0, 48, 0, 0, 0, 7, 0, 5, 0, 8, 10, 2, 0, 1, // chunk, serial, lookup
        0xc0, 1, 0, 16, 0, 0, 0, 1, 0, 5, 0, 8, 10, 1, 0, 7, // add
        0xc0, 4, 0, 16, 0, 0, 0, 2, 0, 5, 0, 8, 10, 1, 0, 7, // set primary
    ];
    assert_eq!(asconf.emit(), expected);
    let auth = Chunk::Auth(Auth { key_id: 0, hmac_id: 1, hmac: vec![9; 20] });
    assert_eq!(auth.emit(), [&[15, 0, 0, 28, 0, 0, 0, 1][..], &[9; 20]].concat());
    let ack = AsconfAck { serial: 7, responses: vec![Response::Success(1)] };
    assert_eq!(Chunk::AsconfAck(ack).emit(), [0x80, 0, 0, 16, 0, 0, 0, 7, 0xc0, 5, 0, 8, 0, 0, 0, 1]);
    let cause = Cause::new(Code::DELETE_LAST_ADDRESS, change(Action::Delete, 1).emit());
    let refused = AsconfAck { serial: 7, responses: vec![Response::Refused(1, vec![cause])] };
    let expected = [
        0x80, 0, 0, 36, 0, 0, 0, 7, 0xc0, 3, 0, 28, 0, 0, 0, 1, 0, 0xa0, 0, 20, 0xc0, 2, 0, 16, 0, 0, 0, 1,
        0, 5, 0, 8, 10, 1, 0, 7,
    ];
    assert_eq!(Chunk::AsconfAck(refused).emit(), expected);
}

/// Parses a packet with the tag `tag`, the bytes `chunk` behind its header, and the right checksum. Returns the packet,
/// or why it was refused.
fn raw(tag: u32, chunk: &[u8]) -> Result<Packet, &'static str> {
    let mut bytes = packet(tag, Vec::new()).emit();
    bytes.extend_from_slice(chunk);
    set_checksum(&mut bytes);
    Packet::parse(&bytes).map_err(|Malformed(why)| why)
}

/// Returns why a packet with `chunk` is refused after `change` has changed the bytes of the chunk.
fn changed(chunk: &Chunk, change: impl FnOnce(&mut Vec<u8>)) -> &'static str {
    let tag = if chunk.kind() == kind::INIT { 0 } else { 9 };
    let mut bytes = chunk.emit();
    change(&mut bytes);
    raw(tag, &bytes).unwrap_err()
}

#[test]
fn refusals_of_packets() {
    let good = packet(9, vec![Chunk::CookieAck]).emit();
    let refused = |bytes: &[u8]| Packet::parse(bytes).unwrap_err().0;
    assert_eq!(refused(&good[..11]), "sctp_truncated");
    for at in 0..good.len() {
        let mut bytes = good.clone();
        bytes[at] ^= 0x10;
        assert_eq!(refused(&bytes), "sctp_checksum", "byte {at}");
    }
    assert_eq!(refused(&Packet { src_port: 0, ..packet(9, vec![Chunk::CookieAck]) }.emit()), "sctp_port");
    assert_eq!(refused(&packet(9, Vec::new()).emit()), "sctp_no_chunk");
    assert_eq!(refused(&packet(0, vec![Chunk::Init(init()), Chunk::CookieAck]).emit()), "sctp_not_alone");
    assert_eq!(refused(&packet(9, vec![Chunk::Init(init())]).emit()), "sctp_init_tag");
    let auth = Chunk::Auth(Auth { key_id: 0, hmac_id: 1, hmac: vec![9; 20] });
    assert_eq!(refused(&packet(9, vec![auth.clone(), auth]).emit()), "sctp_auth_twice");
    assert_eq!(raw(9, &[11, 0, 0, 3]), Err("sctp_chunk_length"));
    assert_eq!(raw(9, &[11, 0, 0, 5]), Err("sctp_chunk_overrun"));
    assert_eq!(raw(9, &[11, 0, 0]), Err("sctp_truncated"));
}

#[test]
fn refusals_of_chunks() {
    let all = chunks();
    let of = |kind: u8| &all.iter().find(|(_, chunk)| chunk.kind() == kind).unwrap().1;
    let length = |bytes: &mut Vec<u8>, len: u8| {
        bytes[3] = len;
        bytes.truncate(usize::from(len).next_multiple_of(4));
    };
    assert_eq!(raw(9, &[0, 3, 0, 12, 0, 0, 0, 1, 0, 0, 0, 0]), Err("sctp_data_truncated"));
    assert_eq!(changed(of(1), |b| length(b, 16)), "sctp_init_truncated");
    assert_eq!(changed(of(1), |b| b[23] = 3), "sctp_tlv_length");
    assert_eq!(changed(of(1), |b| b[23] = 9), "sctp_parameter_length");
    assert_eq!(changed(of(1), |b| b[22] = 9), "sctp_init_truncated");
    let odd = [0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 0, 1, 0, 0, 0, 1, 0, 12, 0, 5, 0, 0, 0, 0];
    assert_eq!(raw(0, &[&[1, 0, 0, 28], &odd[..]].concat()), Err("sctp_parameter_length"));
    assert_eq!(changed(of(3), |b| length(b, 12)), "sctp_sack_truncated");
    assert_eq!(changed(of(3), |b| b[13] = 1), "sctp_sack_length");
    assert_eq!(changed(of(3), |b| b[15] = 9), "sctp_sack_truncated");
    assert_eq!(changed(of(3), |b| b[17] = 3), "sctp_sack_gaps");
    assert_eq!(changed(of(3), |b| b[21] = 1), "sctp_sack_gaps");
    assert_eq!(changed(of(4), |b| b[5] = 2), "sctp_heartbeat");
    assert_eq!(changed(of(4), |b| b[7] = 20), "sctp_heartbeat");
    assert_eq!(raw(9, &[5, 0, 0, 4]), Err("sctp_heartbeat"));
    assert_eq!(changed(of(6), |b| b[7] = 4), "sctp_cause_length");
    assert_eq!(changed(of(9), |b| b[6] = 9), "sctp_cause_truncated");
    assert_eq!(raw(9, &[7, 0, 0, 4]), Err("sctp_shutdown_length"));
    assert_eq!(raw(9, &[7, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0]), Err("sctp_shutdown_length"));
    assert_eq!(raw(9, &[8, 0, 0, 8, 0, 0, 0, 0]), Err("sctp_shutdown_ack_length"));
    assert_eq!(raw(9, &[11, 0, 0, 8, 0, 0, 0, 0]), Err("sctp_cookie_ack_length"));
    assert_eq!(raw(9, &[14, 0, 0, 8, 0, 0, 0, 0]), Err("sctp_shutdown_complete_length"));
    assert_eq!(raw(9, &[15, 0, 0, 6, 0, 0, 0, 0]), Err("sctp_auth_truncated"));
    assert_eq!(raw(9, &[0x80, 0, 0, 6, 0, 0, 0, 0]), Err("sctp_asconf_ack_truncated"));
    assert_eq!(raw(9, &[0x80, 0, 0, 16, 0, 0, 0, 1, 0xc0, 5, 0, 6, 0, 0, 0, 0]), Err("sctp_asconf_response"));
    assert_eq!(raw(9, &[0xc1, 0, 0, 6, 0, 0, 0, 0]), Err("sctp_asconf_truncated"));
    assert_eq!(raw(9, &[0xc1, 0, 0, 8, 0, 0, 0, 0]), Err("sctp_asconf_address"));
    assert_eq!(changed(of(0xc1), |b| b[9] = 9), "sctp_asconf_address");
    assert_eq!(changed(of(0xc1), |b| b[25] = 6), "sctp_asconf_address");
    assert_eq!(changed(of(0xc1), |b| b[19] = 7), "sctp_asconf_parameter");
}

/// A packet is accepted without the padding behind its last chunk, but not without the padding between chunks.
#[test]
fn the_last_padding_may_be_missing() {
    let cookie = [Chunk::CookieEcho(vec![1])];
    assert_eq!(raw(9, &[10, 0, 0, 5, 1]).unwrap().chunks, cookie);
    assert_eq!(raw(9, &[10, 0, 0, 5, 1, 0]).unwrap().chunks, cookie);
    assert_eq!(raw(9, &[10, 0, 0, 5, 1, 11, 0, 0, 4]), Err("sctp_truncated"));
}

/// RFC 9260, section 6.10: chunks are processed in order, so a malformed chunk does not affect the chunks before it.
/// An INIT must be alone, so the whole packet is refused.
#[test]
fn what_stands_before_a_malformed_chunk_is_read() {
    let mut bytes = packet(9, vec![Chunk::CookieAck, Chunk::ShutdownAck]).emit();
    bytes[19] = 200;
    set_checksum(&mut bytes);
    let (read, flaw) = Packet::parse_up_to_flaw(&bytes).unwrap();
    assert_eq!((read.chunks, flaw), (vec![Chunk::CookieAck], Some(Malformed("sctp_chunk_overrun"))));
    assert_eq!(Packet::parse(&bytes), Err(Malformed("sctp_chunk_overrun")));
    let mut bytes = packet(0, vec![Chunk::Init(init()), Chunk::CookieAck]).emit();
    let at = bytes.len() - 1;
    bytes[at] = 200;
    set_checksum(&mut bytes);
    assert!(Packet::parse_up_to_flaw(&bytes).is_err(), "INIT is alone");
}

/// The two upper bits of an unknown type say whether parsing continues behind the chunk or parameter, and whether the
/// receiver reports it (RFC 9260, sections 3.2 and 3.2.1).
#[test]
fn unknown_types_say_what_to_do_with_them() {
    let unknown = |kind: u8| Chunk::Unknown { kind, flags: 0, value: vec![1, 2] };
    for (kind, read) in [(0x3f, 1), (0x7f, 1), (0xbf, 2), (0xff, 2)] {
        let bytes = packet(9, vec![unknown(kind), Chunk::CookieAck]).emit();
        assert_eq!(Packet::parse(&bytes).unwrap().chunks.len(), read, "{kind:#x}");
    }
    let parameter = |kind| Parameter::Unknown { kind, value: vec![1] };
    for (kind, read, reports) in [(0x3fff, 1, 0), (0x7fff, 1, 1), (0xbfff, 2, 0), (0xffff, 2, 1)] {
        let init = Init { parameters: vec![parameter(kind), Parameter::Ipv4(A)], ..init() };
        let whole = Packet::parse(&packet(0, vec![Chunk::Init(init)]).emit()).unwrap();
        let [Chunk::Init(init)] = whole.chunks.as_slice() else { panic!("{whole:?}") };
        assert_eq!((init.parameters.len(), init.reports().count()), (read, reports), "{kind:#x}");
    }
}

#[test]
fn what_authentication_covers_begins_with_its_chunk() {
    let auth = Chunk::Auth(Auth { key_id: 0, hmac_id: 1, hmac: vec![9; 20] });
    let bytes = packet(9, vec![Chunk::CookieAck, auth, Chunk::ShutdownAck]).emit();
    assert_eq!(authenticated(&bytes), Some(&bytes[16..]));
    assert_eq!(authenticated(&packet(9, vec![Chunk::CookieAck]).emit()), None);
    let signed = packet(9, Packet::parse(&bytes).unwrap().chunks).emit_signed(|covered| {
        assert_eq!(covered, &bytes[16..]);
        vec![3; 20]
    });
    assert_eq!(signed[24..44], [3; 20]);
    assert!(Packet::parse(&signed).is_ok());
}

proptest! {
    #[test]
    fn no_bytes_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        set_checksum(&mut bytes);
        if let Ok(packet) = Packet::parse(&bytes) {
            prop_assert_eq!(Packet::parse(&packet.emit()), Ok(packet));
        }
    }

    /// A valid packet with one changed byte causes no panic. Such a packet reaches checks that random bytes seldom
    /// reach.
    #[test]
    fn no_change_of_a_good_packet_panics(
        which in 0_usize..17, at in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        let (tag, chunk) = chunks().swap_remove(which);
        let mut bytes = packet(tag, vec![chunk]).emit();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        set_checksum(&mut bytes);
        if let Ok(packet) = Packet::parse(&bytes) {
            prop_assert_eq!(Packet::parse(&packet.emit()), Ok(packet));
        }
    }
}
