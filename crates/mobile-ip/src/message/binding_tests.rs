//! Tests of the messages of route optimization: golden bytes, round trips, refusals.

use super::*;
use auth::Key;
use proptest::collection::vec;
use proptest::prelude::*;

const NUMBERS: fn() -> Numbers = Numbers::default;

fn hex(text: &str) -> Vec<u8> {
    text.parse::<Key>().unwrap().as_bytes().to_vec()
}

fn association() -> Association {
    Association { spi: 0x300, algorithm: Algorithm::HmacSha256, key: Key::new(b"1234567812345678") }
}

/// Returns the request with which the mobile node registers at its new foreign agent.
fn request() -> Request {
    Request {
        flags: RequestFlags(0),
        lifetime: 300,
        home: Ipv4Addr::new(10, 1, 1, 10),
        home_agent: Ipv4Addr::new(10, 1, 1, 20),
        care_of: Ipv4Addr::new(10, 1, 2, 7),
        identification: 0xed00_0000_1234_5800,
        extensions: Vec::new(),
    }
}

const PREVIOUS: Ipv4Addr = Ipv4Addr::new(10, 1, 3, 1);
const UPDATE: &str = "12c0001e0a01010a0a010207ed00000012345800";
const UPDATE_HEAD: &str = "24fb002400000300";
const AUTHENTICATOR: &str = "8513f370b71624c543e9e69661220a511b1d76b510f2160b05e2ac4849fd909f";
const REQUEST_AUTHENTICATOR: &str = "5184bd743584bda7d9e5d0cb55643ff714d85428b854e10336eb4a3264c4f4e8";
const NOTIFICATION_HEAD: &str = "602e001e0a0103010a01020700000300";

fn notification() -> PreviousAgent {
    PreviousAgent::new(&request(), 30, PREVIOUS, &association(), &NUMBERS())
}

fn update() -> Update {
    notification().update(&request(), &NUMBERS())
}

fn read(payload: &[u8]) -> Result<Binding, Malformed> {
    Binding::parse(payload, &NUMBERS()).expect("one of the four types")
}

fn refusal(payload: &[u8]) -> &'static str {
    read(payload).unwrap_err().0
}

#[test]
fn the_golden_update_of_a_smooth_handoff() {
    let expected = [hex(UPDATE), hex(UPDATE_HEAD), hex(AUTHENTICATOR)].concat();
    assert_eq!(Binding::Update(update()).emit(&NUMBERS()), expected);
    let Binding::Update(read) = read(&expected).unwrap() else { panic!("not an update") };
    assert_eq!(read, update());
    assert!(read.verify(NUMBERS().smooth_authentication, &association(), &NUMBERS()));
}

/// The new agent builds the update from the request that it received: the bytes are those that the mobile node signed.
#[test]
fn node_and_agent_build_the_same_update() {
    let mut sent = request();
    sent.flags = RequestFlags::MINIMAL.with(RequestFlags::GRE, true);
    sent.sign(Between::MobileHome, &association());
    let told = PreviousAgent::new(&sent, 30, PREVIOUS, &association(), &NUMBERS());
    sent.extensions.push(told.extension(&NUMBERS()));
    sent.sign(Between::MobileForeign, &association());
    assert_eq!(Request::parse(&sent.emit()), Err(Malformed("mip_unknown_extension")));
    let received = Request::parse_knowing(&sent.emit(), &NUMBERS().extensions()).unwrap();
    let found = received.previous_agent(&NUMBERS()).unwrap().unwrap();
    assert_eq!(found, told);
    let built = found.update(&received, &NUMBERS());
    assert!(built.verify(NUMBERS().smooth_authentication, &association(), &NUMBERS()));
    assert!(built.minimal && built.gre && built.acknowledge);
}

#[test]
fn the_golden_notification() {
    let Extension::Skipped { kind, data } = notification().extension(&NUMBERS()) else {
        panic!("{:?}", notification())
    };
    let whole = [vec![kind, data.len() as u8], data].concat();
    assert_eq!(whole, [hex(NOTIFICATION_HEAD), hex(AUTHENTICATOR)].concat());
}

#[test]
fn a_notification_before_the_mobile_home_authentication_is_not_for_the_foreign_agent() {
    let mut sent = Request { extensions: vec![notification().extension(&NUMBERS())], ..request() };
    sent.sign(Between::MobileHome, &association());
    assert_eq!(sent.previous_agent(&NUMBERS()), None);
    sent.extensions.push(Extension::Skipped { kind: NUMBERS().previous_agent, data: vec![0; 13] });
    assert_eq!(sent.previous_agent(&NUMBERS()), Some(Err(Malformed("mip_notification_length"))));
}

/// A host on the link could append a notification to a request that the mobile node has signed for the foreign agent.
#[test]
fn a_notification_after_the_mobile_foreign_authentication_is_ignored() {
    let mut sent = request();
    sent.sign(Between::MobileHome, &association());
    let covered = Request { extensions: sent.extensions.clone(), ..request() };
    sent.sign(Between::MobileForeign, &association());
    sent.extensions.push(notification().extension(&NUMBERS()));
    assert!(sent.verify(Between::MobileForeign, &association()), "the notification is not covered");
    assert_eq!(sent.previous_agent(&NUMBERS()), None);
    let mut covered = covered;
    covered.extensions.push(notification().extension(&NUMBERS()));
    covered.sign(Between::MobileForeign, &association());
    assert_eq!(covered.previous_agent(&NUMBERS()), Some(Ok(notification())));
}

#[test]
fn a_warning_extension_is_read_before_the_mobile_home_authentication() {
    let warning = Warning { home: request().home, targets: vec![PREVIOUS, request().home_agent] };
    let mut sent = Request { extensions: vec![warning.extension(&NUMBERS())], ..request() };
    sent.sign(Between::MobileHome, &association());
    let sent = Request::parse_knowing(&sent.emit(), &NUMBERS().extensions()).unwrap();
    assert_eq!(sent.warning(&NUMBERS()), Some(Ok(warning.clone())));
    let after =
        Request { extensions: vec![sent.extensions[1].clone(), warning.extension(&NUMBERS())], ..request() };
    assert_eq!(after.warning(&NUMBERS()), None);
}

#[test]
fn an_update_is_refused_with_any_other_association_or_subtype() {
    let (route, smooth) = (NUMBERS().route_authentication, NUMBERS().smooth_authentication);
    for algorithm in
        [Algorithm::HmacSha256, Algorithm::HmacMd5, Algorithm::KeyedMd5, Algorithm::KeyedMd5WithoutSpi]
    {
        let ours = Association { algorithm, ..association() };
        let mut update = update();
        update.sign(route, &ours, &NUMBERS());
        assert!(update.verify(route, &ours, &NUMBERS()));
        assert!(!update.verify(smooth, &ours, &NUMBERS()));
        assert!(!update.verify(route, &Association { spi: 0x301, ..ours.clone() }, &NUMBERS()));
        assert!(!update.verify(route, &Association { key: Key::new([7; 16]), ..ours.clone() }, &NUMBERS()));
        let mut changed = update.clone();
        changed.care_of = PREVIOUS;
        assert!(!changed.verify(route, &ours, &NUMBERS()));
        changed = Update { authentication: None, ..update };
        assert!(!changed.verify(route, &ours, &NUMBERS()));
    }
}

#[test]
fn every_bit_of_an_update_is_authenticated() {
    let whole = Binding::Update(update()).emit(&NUMBERS());
    assert!(believed(&whole, NUMBERS().smooth_authentication).is_empty());
}

/// Returns the bits of a signed message that can be changed, so that the message is believed all the same.
fn believed(whole: &[u8], subtype: u8) -> Vec<usize> {
    let is_believed = |bit: &usize| {
        let mut changed = whole.to_vec();
        changed[bit / 8] ^= 0x80 >> (bit % 8);
        match Binding::parse(&changed, &NUMBERS()) {
            Some(Ok(Binding::Update(found))) => found.verify(subtype, &association(), &NUMBERS()),
            Some(Ok(Binding::Request(found))) => found.verify(subtype, &association(), &NUMBERS()),
            Some(Ok(Binding::Acknowledge(found))) => found.verify(subtype, &association(), &NUMBERS()),
            _ => false,
        }
    };
    (0..whole.len() * 8).filter(is_believed).collect()
}

fn binding_request() -> BindingRequest {
    let (home, identification) = (request().home, request().identification);
    let mut asked = BindingRequest { home, identification, authentication: None };
    asked.sign(NUMBERS().route_authentication, &association(), &NUMBERS());
    asked
}

/// The bytes of the authenticator are those of Python's `hmac`.
#[test]
fn the_golden_signed_request() {
    const PLAIN: &str = "110000000a01010aed00000012345800";
    let expected = [hex(PLAIN), hex("24fa002400000300"), hex(REQUEST_AUTHENTICATOR)].concat();
    let signed = Binding::Request(binding_request());
    assert_eq!(signed.emit(&NUMBERS()), expected);
    assert_eq!(read(&expected), Ok(signed));
    let plain = BindingRequest { authentication: None, ..binding_request() };
    assert!(!plain.verify(NUMBERS().route_authentication, &association(), &NUMBERS()));
    assert_eq!(Binding::Request(plain).emit(&NUMBERS()), hex(PLAIN));
}

#[test]
fn every_bit_of_a_signed_request_and_acknowledge_is_authenticated() {
    let subtype = NUMBERS().route_authentication;
    let whole = Binding::Request(binding_request()).emit(&NUMBERS());
    assert!(believed(&whole, subtype).is_empty());
    let (home, identification) = (request().home, Some(7));
    let mut answer = Acknowledge { status: Status::ACCEPTED, home, identification, authentication: None };
    answer.sign(subtype, &association(), &NUMBERS());
    assert!(believed(&Binding::Acknowledge(answer).emit(&NUMBERS()), subtype).is_empty());
}

/// The authenticators do not cover reserved bits.
#[test]
fn reserved_bits_must_be_zero() {
    let whole = Binding::Update(update()).emit(&NUMBERS());
    for bit in [1, 2, 4, 8] {
        let mut changed = whole.clone();
        changed[1] |= bit;
        assert_eq!(refusal(&changed), "mip_binding_reserved", "{bit}");
    }
    for (kind, reserved) in [(17, 1..4), (19, 1..3)] {
        for at in reserved {
            let mut changed = vec![0; 16];
            (changed[0], changed[at]) = (kind, 1);
            assert_eq!(refusal(&changed), "mip_binding_reserved", "{kind}, {at}");
        }
    }
}

#[test]
fn malformed_messages_are_refused() {
    let n = NUMBERS();
    assert_eq!(Binding::parse(&[], &n), None);
    for kind in [0, 1, 3, 4, 15, 20, 255] {
        assert_eq!(Binding::parse(&[kind; 24], &n), None, "{kind}");
    }
    let whole = Binding::Update(update()).emit(&n);
    for length in 1..whole.len() {
        let expected = match length {
            ..20 => "mip_update_short",
            20 => "mip_binding_unauthenticated",
            21..28 => "mip_extension_truncated",
            _ => "mip_extension_overrun",
        };
        assert_eq!(refusal(&whole[..length]), expected, "{length}");
    }
    assert_eq!(refusal(&[&whole[..], &[0]].concat()), "mip_binding_trailing");
    assert_eq!(refusal(&[&hex(UPDATE)[..], &[32, 4, 0, 0, 1, 0]].concat()), "mip_unknown_extension");
    assert_eq!(refusal(&[&hex(UPDATE)[..], &[36, 251, 0, 3, 0, 0, 1]].concat()), "mip_authentication_length");
    for length in 1..8 {
        assert_eq!(refusal(&vec![16; length]), "mip_warning_short");
        let short = [vec![19], vec![0; length - 1]].concat();
        assert_eq!(refusal(&short), "mip_acknowledge_length");
    }
    for length in [8, 9, 11, 13] {
        assert_eq!(refusal(&vec![16; length]), "mip_warning_targets");
    }
    let zeros = |kind: u8, length: usize| [vec![kind], vec![0; length - 1]].concat();
    for length in 1..16 {
        assert_eq!(refusal(&zeros(17, length)), "mip_binding_request_length");
    }
    for length in 9..16 {
        assert_eq!(refusal(&zeros(19, length)), "mip_acknowledge_length");
    }
    for kind in [17, 19] {
        assert_eq!(refusal(&zeros(kind, 17)), "mip_unknown_extension");
    }
    let signed = Binding::Request(binding_request()).emit(&n);
    assert_eq!(refusal(&signed[..signed.len() - 1]), "mip_extension_overrun");
    assert_eq!(refusal(&[&signed[..], &[0]].concat()), "mip_binding_trailing");
}

#[test]
fn numbers_that_cannot_work_are_refused() {
    NUMBERS().check().unwrap();
    for wrong in [
        Numbers { warning: 17, ..NUMBERS() },
        Numbers { acknowledge: 3, ..NUMBERS() },
        Numbers { update: 4, ..NUMBERS() },
        Numbers { warning_extension: 96, ..NUMBERS() },
        Numbers { previous_agent: 33, ..NUMBERS() },
        Numbers { previous_agent: 132, ..NUMBERS() },
        Numbers { smooth_authentication: 250, ..NUMBERS() },
        Numbers { smooth_flag: 0x40, ..NUMBERS() },
        Numbers { smooth_flag: 0x81, ..NUMBERS() },
        Numbers { private_flag: 0x02, ..NUMBERS() },
        Numbers { private_flag: 0, ..NUMBERS() },
        Numbers { private_flag: 0x05, ..NUMBERS() },
        Numbers { ip_filter: 32, ..NUMBERS() },
    ] {
        assert!(wrong.check().is_err(), "{wrong:?}");
    }
    for (wrong, expected) in [
        (
            Numbers { previous_agent: 32, ..NUMBERS() },
            "`previous_agent` is 32, but must differ from 32 to 34, 36 and 130 to 132",
        ),
        (Numbers { ip_filter: 36, ..NUMBERS() }, "`ip_filter` is 36, but must differ"),
        (
            Numbers { warning_extension: 96, ..NUMBERS() },
            "`warning_extension` and `previous_agent` are both 96; each extension type must differ",
        ),
    ] {
        let refusal = wrong.check().unwrap_err().problem;
        assert!(refusal.starts_with(expected), "{refusal}");
    }
}

fn any_address() -> impl Strategy<Value = Ipv4Addr> {
    any::<u32>().prop_map(Ipv4Addr::from)
}

fn any_generalized() -> impl Strategy<Value = Generalized> {
    (any::<u8>(), any::<u32>(), vec(any::<u8>(), 0..40))
        .prop_map(|(subtype, spi, authenticator)| Generalized { subtype, spi, authenticator })
}

fn any_update() -> impl Strategy<Value = Binding> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<u16>());
    (flags, any_address(), any_address(), any::<Option<u64>>(), any_generalized()).prop_map(
        |((acknowledge, minimal, gre, lifetime), home, care_of, identification, authentication)| {
            let authentication = Some(authentication);
            Binding::Update(Update {
                acknowledge,
                minimal,
                gre,
                lifetime,
                home,
                care_of,
                identification,
                authentication,
            })
        },
    )
}

fn any_acknowledge() -> impl Strategy<Value = Binding> {
    let signed = any::<Option<u64>>().prop_flat_map(|identification| {
        let most = usize::from(identification.is_some());
        (Just(identification), vec(any_generalized(), 0..=most))
    });
    (any::<u8>(), any_address(), signed).prop_map(|(status, home, (identification, mut signed))| {
        let authentication = signed.pop();
        Binding::Acknowledge(Acknowledge { status: Status(status), home, identification, authentication })
    })
}

fn any_request() -> impl Strategy<Value = Binding> {
    (any_address(), any::<u64>(), vec(any_generalized(), 0..2)).prop_map(
        |(home, identification, mut signed)| {
            Binding::Request(BindingRequest { home, identification, authentication: signed.pop() })
        },
    )
}

fn any_binding() -> impl Strategy<Value = Binding> {
    prop_oneof![
        (any_address(), vec(any_address(), 1..80))
            .prop_map(|(home, targets)| Binding::Warning(Warning { home, targets })),
        any_request(),
        any_update(),
        any_acknowledge(),
    ]
}

fn any_numbers() -> impl Strategy<Value = Numbers> {
    any::<[u8; 4]>().prop_map(|[warning, request, update, acknowledge]| Numbers {
        warning,
        request,
        update,
        acknowledge,
        ..Numbers::default()
    })
}

proptest! {
    #[test]
    fn every_message_is_read_as_it_was_written(message in any_binding(), numbers in any_numbers()) {
        prop_assume!(numbers.check().is_ok());
        prop_assert_eq!(Binding::parse(&message.emit(&numbers), &numbers), Some(Ok(message)));
    }

    #[test]
    fn a_changed_message_is_refused_or_read(message in any_binding(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut payload = message.emit(&NUMBERS());
        let at = at.index(payload.len());
        payload[at] = byte;
        if let Some(Ok(message)) = Binding::parse(&payload, &NUMBERS()) {
            let again = message.emit(&NUMBERS());
            prop_assert_eq!(Binding::parse(&again, &NUMBERS()), Some(Ok(message)));
        }
    }
}
