use super::*;
use auth::Key;
use proptest::prelude::*;
use wire::{Duration, RoundTripTime, Seq, TcpState};

const HOST: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 7);
const LEFT: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
const RIGHT: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 1);
const FIXED: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

static HOST_KEY: std::sync::OnceLock<Key> = std::sync::OnceLock::new();

fn key() -> Key {
    Key::new([7; 16])
}

fn entry() -> Entry {
    Entry {
        id: id(0x0102_0304),
        host: SocketAddrV4::new(HOST, 49152),
        router: SocketAddrV4::new(LEFT, PORT),
        peer: SocketAddrV4::new(FIXED, 9000),
        closing: false,
        unanswered: false,
        calling: false,
    }
}

const fn id(number: u32) -> ConnectionId {
    ConnectionId { number, call: 0x0506 }
}

fn greeting() -> Greeting {
    Greeting {
        host: HOST,
        sequence: 0x1122,
        router: RIGHT,
        previous: vec![LEFT],
        entries: vec![entry()],
        again: false,
        codes: Vec::new(),
    }
}

fn tcp() -> TcpState {
    TcpState {
        local: SocketAddrV4::new(HOST, 49152),
        remote: SocketAddrV4::new(FIXED, 9000),
        send_una: Seq(u32::MAX - 1),
        send_next: Seq(2),
        send_window: 1000,
        largest_window: 2000,
        window_seq: Seq(77),
        window_ack: Seq(u32::MAX - 1),
        send_scale: 7,
        receive_next: Seq(100),
        receive_window: 5000,
        receive_scale: 3,
        mss: 1460,
        unacknowledged: b"sent+not".to_vec(),
        unread: b"read me".to_vec(),
        finishing: false,
        finished: false,
        timestamp: Some(0xaabb),
        sack_permitted: true,
        round_trip: Some(RoundTripTime::new(Duration::from_micros(0x1234), Duration::from_micros(0x0567))),
    }
}

fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(nibble.into(), 16).unwrap();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

const ENTRY: &str = "01020304\
    0000010002 00 c000 135a 2328\
    00000000000000000000ffff0a010007\
    00000000000000000000ffff0a010001\
    00000000000000000000ffff0a000001\
    0000000000000506";

#[track_caller]
fn golden<T: Message>(message: T, body: &str) {
    let signed = Signed::new(message, &key());
    let bytes = signed.emit();
    let body = body.replace(' ', "");
    let front = format!("495401{:02x}{body}", T::TYPE);
    assert_eq!(hex(&bytes[..bytes.len() - 32]), front);
    assert_eq!(Signed::<T>::parse(&bytes), Ok(signed.clone()));
    assert!(signed.is_by(&key()) && !signed.is_by(&Key::new([8; 16])));
    let code = auth::hmac_sha256(&key(), &[&bytes[..bytes.len() - 32]]);
    assert_eq!(bytes[bytes.len() - 32..], code);
    for len in 0..bytes.len() {
        assert!(Signed::<T>::parse(&bytes[..len]).is_err(), "cut to {len}");
    }
    assert_eq!(Signed::<T>::parse(&[&bytes[..], &[0]].concat()), Err(Malformed("itcp_trailing")));
}

#[test]
fn every_message_is_these_bytes_and_no_fewer_and_no_more() {
    golden(greeting(), &format!("0a010007 0000000000001122 0a020001 01010000 0a010001 {ENTRY}"));
    let again = Greeting { again: true, ..greeting() };
    golden(again, &format!("0a010007 0000000000001122 0a020001 01010100 0a010001 {ENTRY}"));
    let code = [0xab; 32];
    let coded = Greeting { codes: vec![code], ..greeting() };
    golden(coded, &format!("0a010007 0000000000001122 0a020001 01010200 0a010001 {} {ENTRY}", hex(&code)));
    let welcome = Welcome::Stale;
    golden(
        GreetingReply { host: HOST, sequence: 1, router: RIGHT, welcome },
        "0a010007 0000000000000001 0a020001 01000000",
    );
    golden(
        Lost { host: HOST, router: RIGHT, connections: [9, 10].map(id).to_vec() },
        "0a010007 0a020001 02000000 00000009 0000000000000506 0000000a 0000000000000506",
    );
    golden(
        ForwardReply { old: LEFT, host: HOST, sequence: 2, connections: 3 },
        "0a010001 0a010007 0000000000000002 0003 0000",
    );
    let inner = Signed::new(greeting(), &key());
    let body = format!("0a020001 0a010001 {:04x} 0000 {}", inner.emit().len(), hex(&inner.emit()));
    golden(ForwardPointer { new: RIGHT, old: LEFT, greeting: inner }, &body);
    let peer = SocketAddrV4::new(FIXED, 9000);
    golden(
        Call { host: HOST, connection: 4, sequence: 5, router: LEFT, peer },
        "0a010007 00000004 0000000000000005 0a010001 0a000001 2328 0000",
    );
    golden(Answer { connection: 4, code: Code::Unreachable }, "00000004 03000000");
    assert_eq!(Signed::new(Answer { connection: 4, code: Code::Full }, &key()).emit().len(), Answer::LEN);
}

#[test]
fn the_largest_greeting_and_its_pointer_fit_one_datagram() {
    let many = Greeting { previous: vec![LEFT; PREVIOUS], entries: vec![entry(); CONNECTIONS], ..greeting() };
    let pointer = ForwardPointer { new: RIGHT, old: LEFT, greeting: Signed::new(many, &key()) };
    let bytes = Signed::new(pointer.clone(), &key()).emit();
    assert!(bytes.len() + 28 <= 1500, "{}", bytes.len());
    assert_eq!(Signed::<ForwardPointer>::parse(&bytes).map(|signed| signed.message), Ok(pointer));
}

/// With codes, fewer previous routers fit into a greeting with many entries: 16 with up to 11 entries, at least 7 with
/// up to 16 entries.
#[test]
fn the_largest_greeting_with_codes_fits_one_datagram() {
    for entries in 0..=CONNECTIONS {
        let routers = PREVIOUS.min(Greeting::room_for_codes(entries));
        let many = Greeting { previous: vec![LEFT; routers], entries: vec![entry(); entries], ..greeting() };
        let many = Signed::new(many.with_codes(|_| HOST_KEY.get_or_init(key)), &key());
        assert!(many.emit().len() + 28 <= 1500, "{entries}: {}", many.emit().len());
        assert!(
            routers == if entries <= 11 { PREVIOUS } else { routers } && routers >= 7,
            "{entries}: {routers}"
        );
        assert_eq!(Signed::parse(&many.emit()), Ok(many));
    }
}

#[test]
fn what_a_previous_router_is_shown_is_signed_with_its_key() {
    let keys = [Key::new([1; 16]), Key::new([2; 16])];
    let previous = vec![LEFT, FIXED];
    let coded = Greeting { previous, ..greeting() }.with_codes(|old| &keys[usize::from(old == FIXED)]);
    let signed = Signed::new(coded.clone(), &key());
    let shown = [LEFT, FIXED].map(|old| signed.shown_to(old).unwrap());
    assert!(shown.iter().zip(&keys).all(|(shown, key)| shown.is_by(key)));
    assert!(!shown[0].is_by(&keys[1]) && !shown[0].is_by(&key()));
    assert_eq!(shown[0].message, Greeting { codes: Vec::new(), ..coded });
    assert_eq!(signed.shown_to(HOST), None);
    let plain = Signed::new(greeting(), &key());
    assert_eq!(plain.shown_to(LEFT), Some(plain), "all have one key");
}

#[test]
fn a_datagram_is_told_by_its_type() {
    let bytes = Signed::new(greeting(), &key()).emit();
    assert!(matches!(Datagram::parse(&bytes), Ok(Datagram::Greeting(_))));
    let with = |at: usize, value: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = value;
        Datagram::parse(&bytes).unwrap_err().0
    };
    assert_eq!(with(0, 0), "itcp_magic");
    assert_eq!(with(2, 9), "itcp_version");
    assert_eq!(with(3, 16), "itcp_unknown_type");
    assert_eq!(with(20, PREVIOUS as u8 + 1), "itcp_too_many");
    assert_eq!(with(21, CONNECTIONS as u8 + 1), "itcp_too_many");
    assert_eq!(with(22, 4), "itcp_greeting_flags");
    // The flag for codes is refused if there is no previous router.
    let alone = Greeting { previous: Vec::new(), ..greeting() };
    let mut flagged = Signed::new(alone, &key()).emit();
    flagged[22] = 2;
    assert_eq!(Datagram::parse(&flagged).unwrap_err().0, "itcp_greeting_flags");
    assert_eq!(with(23, 1), "itcp_reserved");
    assert_eq!(with(4, 11), "itcp_entry_of_another");
    assert_eq!(Datagram::parse(&[]).unwrap_err().0, "itcp_truncated");
}

#[test]
fn every_refusal_of_an_entry_has_its_reason() {
    let mut bytes = Vec::new();
    entry().put(&mut bytes);
    let with = |at: usize, value: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = value;
        Entry::take(&mut Reader::new(&bytes, Malformed("short"))).unwrap_err().0
    };
    assert_eq!(with(6, 3), "itcp_entry_kind");
    assert_eq!(with(7, 1), "itcp_entry_flags");
    assert_eq!(with(7, 4), "itcp_entry_flags");
    assert_eq!(with(5, 1), "itcp_reserved");
    assert_eq!(with(7, 16), "itcp_entry_flags", "a call that may come, and is answered");
    assert_eq!(with(7, 40), "itcp_entry_flags", "closed, and not answered");
    assert_eq!(with(8, 10), "itcp_family");
    assert_eq!(with(9, 1), "itcp_reserved");
    assert_eq!(with(26, 0), "itcp_address_not_mapped");
    assert_eq!(with(28, 224), "itcp_entry_ends");
    assert_eq!(with(6, 2), "itcp_entry_kind", "its peer opened it");
    let said = Entry { closing: true, ..entry() };
    let mut bytes = Vec::new();
    said.put(&mut bytes);
    assert_eq!(Entry::take(&mut Reader::new(&bytes, Malformed("short"))), Ok(said));
}

fn bodies() -> Vec<Body> {
    vec![
        Body::Offer { host: HOST, sequence: 3, connections: 1 },
        Body::OfferAnswer(Verdict::Moved),
        Body::Entry(entry(), 9),
        Body::State(Box::new(SocketState::new(Side::Far, tcp()))),
        Body::UserBuffer(Direction::Down, b"bytes".to_vec()),
        Body::Commit { number: 4, attempt: 9, halves: Halves::BOTH },
        Body::Commit { number: 4, attempt: 9, halves: Halves { near: true, far: false } },
        Body::Commit { number: 4, attempt: 9, halves: Halves { near: false, far: true } },
        Body::Commit { number: 4, attempt: 9, halves: Halves::default() },
        Body::CommitAnswer { host: HOST, connection: id(4), attempt: 9, verdict: Verdict::Taken },
        Body::Done,
        Body::DoneAnswer,
        Body::Abort { connection: id(4) },
    ]
}

#[test]
fn every_frame_is_read_back_and_nothing_less() {
    for body in bodies() {
        let frame = Frame { handoff: 6, body };
        let bytes = frame.emit();
        assert_eq!(Frame::parse(&bytes), Ok(frame));
        for len in 0..bytes.len() {
            assert!(Frame::parse(&bytes[..len]).is_err());
        }
        assert!(Frame::parse(&[&bytes[..], &[0]].concat()).is_err());
    }
    let halves = Halves { near: false, far: true };
    let commit = Frame { handoff: 6, body: Body::Commit { number: 4, attempt: 9, halves } }.emit();
    assert_eq!(hex(&commit), "49544350010700000000000900000000000000 06000000040000000902".replace(' ', ""));
    let status = Body::Status { host: HOST, connection: id(4), attempt: 9, sequence: 0x1122 };
    let status = Frame { handoff: 0, body: status };
    assert_eq!(Frame::parse(&status.emit()), Ok(status.clone()));
    assert_eq!(
        hex(&status.emit()),
        "49544350010d00000000001c0000000000000000 0a010007 00000004 0000000000000506 00000009 0000000000001122"
            .replace(' ', "")
    );
}

#[test]
fn every_refusal_of_a_frame_has_its_reason() {
    let refusal = |body: Body, at: usize, value: u8| {
        let mut bytes = Frame { handoff: 6, body }.emit();
        bytes[at] = value;
        Frame::parse(&bytes).unwrap_err().0
    };
    assert_eq!(refusal(Body::Done, 0, 0), "itcp_magic");
    assert_eq!(refusal(Body::Done, 4, 2), "itcp_version");
    assert_eq!(refusal(Body::Done, 5, 6), "itcp_frame_type");
    assert_eq!(refusal(Body::Done, 7, 1), "itcp_reserved");
    assert_eq!(refusal(Body::Done, 8, 0xff), "itcp_frame_length");
    assert_eq!(refusal(Body::Done, 19, 0), "itcp_frame_handoff");
    assert_eq!(refusal(Body::OfferAnswer(Verdict::Taken), 20, 9), "itcp_code");
    assert_eq!(refusal(Body::UserBuffer(Direction::Up, Vec::new()), 20, 3), "itcp_way");
    let commit = Body::Commit { number: 4, attempt: 9, halves: Halves::BOTH };
    assert_eq!(refusal(commit, 28, 4), "itcp_halves");
    let state = |at: usize, value: u8| {
        refusal(Body::State(Box::new(SocketState::new(Side::Near, tcp()))), 20 + at, value)
    };
    assert_eq!(state(0, 2), "itcp_state_version");
    assert_eq!(state(1, 3), "itcp_state_side");
    assert_eq!(state(2, 10), "itcp_family");
    assert_eq!(state(3, 8), "itcp_state_of_connection", "as if the peer had finished");
    assert_eq!(state(3, 6), "itcp_state_of_connection", "TIME-WAIT");
    assert_eq!(state(4, 1), "itcp_state_flags");
    assert_eq!(state(4, 4), "itcp_state_flags");
    assert_eq!(state(5, 0), "itcp_state_flags");
    assert_eq!(state(6, 15), "itcp_state_scale");
    let unscaled = SocketState::new(Side::Near, TcpState { send_scale: 0, receive_scale: 0, ..tcp() });
    let flags = Frame { handoff: 6, body: Body::State(Box::new(unscaled.clone())) }.emit()[25];
    assert_eq!(
        refusal(Body::State(Box::new(unscaled)), 25, flags | 32),
        "itcp_state_scale",
        "a scale of none"
    );
    // In the first state, all bytes and the router's FIN are sent. In the second, one byte is unsent although the FIN
    // is sent.
    let sent =
        TcpState { unacknowledged: vec![1, 2], send_next: tcp().send_una.plus(3), finishing: true, ..tcp() };
    let sent = Body::State(Box::new(SocketState::new(Side::Far, sent)));
    let bytes = Frame { handoff: 6, body: sent.clone() }.emit();
    assert_eq!((bytes[23], bytes[25] & 3, bytes[20 + 59]), (4, 2, 0));
    assert_eq!(refusal(sent.clone(), 20 + 59, 1), "itcp_state_flags");
    assert_eq!(refusal(sent.clone(), 25, bytes[25] | 1), "itcp_state_of_connection");
    assert_eq!(refusal(sent, 24, 0), "itcp_state_flags", "sent, and not finishing");
    assert_eq!(state(13, 1), "itcp_state_range");
    assert_eq!(state(52, 1), "itcp_state_length");
    assert_eq!(state(59, 9), "itcp_state_length");
    assert_eq!(state(82, 0), "itcp_state_window");
    assert_eq!(state(91, 0), "itcp_state_window");
    assert_eq!(state(100, 1), "itcp_reserved");
    let unmeasured = SocketState::new(Side::Near, TcpState { round_trip: None, ..tcp() });
    let refused = refusal(Body::State(Box::new(unmeasured)), 20 + 99, 1);
    assert_eq!(refused, "itcp_state_round_trip", "a variation of nothing");
}

/// The state of a socket is encoded with the layout in `state.rs`.
#[test]
fn a_state_is_these_bytes() {
    let mut bytes = Vec::new();
    SocketState::new(Side::Far, tcp()).put(&mut bytes);
    let expected = "01020201 0078 0703 c000 2328 000005b4\
        00000000000000000000ffff0a010007 00000000000000000000ffff0a000001\
        fffffffe 00000008 00000004 0000005d 00000007 0000aabb 0000004d 000003e8 000007d0 00001388 00000064\
        00001234 00000567";
    let expected = expected.replace(' ', "");
    assert_eq!(hex(&bytes[..100]), expected);
    assert_eq!(bytes[100..144], [0; 44]);
    assert_eq!(&bytes[144..], b"read mesent+not");
}

/// Returns the two ends of a connection after their hellos.
fn channels() -> [FrameAuth; 2] {
    let mut ends = [FrameAuth::new(key(), true), FrameAuth::new(key(), false)];
    for end in &mut ends {
        end.agreed([[1; 16], [2; 16]]);
    }
    ends
}

#[test]
fn a_frame_counts_in_its_place_only() {
    let [mut from, mut to] = channels();
    let frames = bodies().into_iter().map(|body| Frame { handoff: 1, body });
    let sealed: Vec<(Frame, Vec<u8>)> = frames.map(|frame| (frame.clone(), from.seal(&frame))).collect();
    let forged = Err(Malformed("itcp_frame_forged"));
    assert_eq!(to.open(&sealed[1].1), forged, "the second first");
    assert_eq!(from.open(&sealed[0].1), forged, "back to its sender");
    let mut cut = Frames::default();
    cut.trust();
    for (frame, bytes) in &sealed {
        let mut changed = bytes.clone();
        changed[9] ^= 1;
        assert_eq!(to.open(&changed), forged);
        for byte in bytes {
            assert_eq!(cut.next_frame(), Ok(None));
            cut.push(&[*byte]);
        }
        assert_eq!(cut.next_frame(), Ok(Some(bytes.clone())));
        assert_eq!(to.open(bytes), Ok(frame.clone()));
        assert_eq!(to.open(bytes), forged, "twice");
    }
    let mut other = channels()[1].clone();
    other.agreed([[1; 16], [2; 16]]);
    assert_eq!(other.open(&sealed[0].1), forged, "of another connection");
}

#[test]
fn what_can_be_no_frame_is_not_waited_for() {
    let mut frames = Frames::default();
    frames.push(&[0; 20]);
    assert_eq!(frames.next_frame(), Err(Malformed("itcp_magic")));
    let mut frames = Frames::default();
    let mut bytes = Frame { handoff: 1, body: Body::Done }.emit();
    bytes[8] = 1;
    frames.push(&bytes);
    assert_eq!(frames.next_frame(), Err(Malformed("itcp_frame_length")));
    // A long frame is refused before its sender is authenticated, and accepted afterwards.
    let long = Frame { handoff: 1, body: Body::UserBuffer(Direction::Up, vec![0; 4096]) }.emit();
    let mut frames = Frames::default();
    frames.push(&long[..20]);
    assert_eq!(frames.next_frame(), Err(Malformed("itcp_frame_length")));
    let mut frames = Frames::default();
    frames.trust();
    frames.push(&long[..20]);
    assert_eq!(frames.next_frame(), Ok(None));
}

proptest! {
    #[test]
    fn any_state_is_read_back(
        unread in proptest::collection::vec(any::<u8>(), 0..50),
        unacknowledged in proptest::collection::vec(any::<u8>(), 0..50),
        una in any::<u32>(), next in any::<u32>(), sent in 0u32..50, window in any::<u16>(),
        scales in (0u8..15, 0u8..15), timestamp in proptest::option::of(any::<u32>()),
        finishing in any::<bool>(), finished in any::<bool>(), sack in any::<bool>(),
        round_trip in proptest::option::of((1..u32::MAX, any::<u32>())),
    ) {
        let sent = sent.min(unacknowledged.len() as u32 + u32::from(finishing));
        let state = SocketState::new(Side::Near, TcpState {
            send_una: Seq(una),
            send_next: Seq(una).plus(sent),
            receive_next: Seq(next),
            receive_window: window.into(),
            send_scale: scales.0,
            receive_scale: scales.1,
            unread, unacknowledged, timestamp, finishing, finished,
            sack_permitted: sack,
            round_trip: round_trip.map(|(smoothed, variation)| {
                let span = |micros: u32| Duration::from_micros(micros.into());
                RoundTripTime::new(span(smoothed), span(variation))
            }),
            ..tcp()
        });
        let body = Body::State(Box::new(state));
        let frame = Frame { handoff: 1, body };
        prop_assert_eq!(Frame::parse(&frame.emit()), Ok(frame));
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Datagram::parse(&bytes);
        let _ = Frame::parse(&bytes);
        let _ = Signed::<Call>::parse(&bytes);
        let mut framed = vec![0x49, 0x54, 0x43, 0x50, 1];
        framed.extend(&bytes);
        let _ = Frame::parse(&framed);
    }
}
