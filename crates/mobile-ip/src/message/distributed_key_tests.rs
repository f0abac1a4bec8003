//! Tests of distributed keys: golden bytes, the derivation, round trips, refusals.

use super::*;
use auth::Key;
use proptest::prelude::*;
use std::collections::BTreeSet;

const NUMBERS: fn() -> Numbers = Numbers::default;

fn hex(text: &str) -> Vec<u8> {
    text.parse::<Key>().unwrap().as_bytes().to_vec()
}

fn with(spi: u32, key: impl Into<Vec<u8>>) -> Association {
    Association { spi, algorithm: Algorithm::HmacSha256, key: Key::new(key) }
}

fn mobile_home() -> Association {
    with(0x300, *b"1234567812345678")
}

fn foreign_home() -> Association {
    with(300, (0..16).collect::<Vec<u8>>())
}

fn request() -> Request {
    let mut request = Request {
        flags: RequestFlags(0),
        lifetime: 300,
        home: Ipv4Addr::new(10, 1, 1, 10),
        home_agent: Ipv4Addr::new(10, 1, 1, 20),
        care_of: Ipv4Addr::new(10, 1, 2, 7),
        identification: 0xed00_0000_1234_5800,
        extensions: Vec::new(),
    };
    request.sign(Between::MobileHome, &mobile_home());
    request
}

fn scope(request: &Request) -> KeyScope {
    KeyScope::of(request).unwrap()
}

fn key() -> DistributedKey {
    DistributedKey::new(&scope(&request()), &mobile_home(), &foreign_home())
}

/// Returns the reply with these extensions between the two authentications.
fn reply(between: Vec<Extension>) -> Reply {
    let mut reply = request().reply(Code::Accepted);
    reply.lifetime = 300;
    reply.sign(Between::MobileHome, &mobile_home());
    reply.extensions.extend(between);
    reply.sign(Between::ForeignHome, &foreign_home());
    reply
}

/// Returns the extension with the data that `change` makes of those of the golden one.
fn changed(change: impl Fn(&mut Vec<u8>)) -> Extension {
    let Extension::Skipped { kind, mut data } = key().extension(&NUMBERS()) else {
        panic!("an authentication")
    };
    change(&mut data);
    Extension::Skipped { kind, data }
}

const GOLDEN_KEY: &str = "e144f3bcabd92469300f18d6056a812133f942a37279532ae0f2bd56ebc4fd96";
const GOLDEN_EXTENSION: &str = "862c000000007ed900018022c46f\
    64331af890db2d2891c87688c68e8d191c4193a4022aec737f6ec624fc10b8dc";

/// Computed with Python's `hmac`:
///
/// ```text
/// prk = hmac.digest(salt, ikm, "sha256"); t1 = hmac.digest(prk, info + b"\1", "sha256")
/// t2 = hmac.digest(prk, t1 + info + b"\2", "sha256")
/// salt: ed00000012345800    end of info: 0a010114 0a01010a 0a010207 00000300
/// b"1234567812345678", b"wayfare mobile-foreign key" + end:  t1 = key, first 32 bits of t2 | 1 << 31 = SPI
/// bytes(range(16)), b"wayfare mobile-foreign mask" + end:    t1 XOR key = the masked key
/// ```
#[test]
fn the_golden_key_is_that_of_another_implementation() {
    let golden = with(0x8022_c46f, hex(GOLDEN_KEY));
    assert_eq!(scope(&request()).association(&mobile_home()), golden);
    let whole = reply(vec![key().extension(&NUMBERS())]).emit();
    let at = 20 + 38; // behind the fixed part and the Mobile-Home Authentication
    assert_eq!(whole.get(at..at + 46), Some(&hex(GOLDEN_EXTENSION)[..]));
    assert!(!whole.windows(32).any(|bytes| bytes == golden.key.as_bytes()), "the key is not readable");
    let found = Reply::parse(&whole).unwrap().distributed_key(&NUMBERS()).unwrap().unwrap();
    assert_eq!(found, key());
    assert_eq!(found.association(&scope(&request()), &foreign_home()), golden);
}

/// A key and its mask belong to one registration: neither is used for another one.
#[test]
fn each_part_of_the_registration_changes_the_key_and_its_mask() {
    let other = Ipv4Addr::new(10, 9, 9, 9);
    let others = [
        Request { identification: 0xed00_0000_1234_5801, ..request() },
        Request { home: other, ..request() },
        Request { home_agent: other, ..request() },
        Request { care_of: other, ..request() },
        {
            let mut resigned = Request { extensions: Vec::new(), ..request() };
            resigned.sign(Between::MobileHome, &with(0x301, *b"1234567812345678"));
            resigned
        },
    ];
    let zeros = with(0x300, [0; 16]);
    let mut keys = BTreeSet::from([scope(&request()).association(&mobile_home()).key.as_bytes().to_vec()]);
    let mut masks = BTreeSet::new();
    for request in [&request()].into_iter().chain(&others) {
        let scope = scope(request);
        keys.insert(scope.association(&mobile_home()).key.as_bytes().to_vec());
        let [one, two] = [mobile_home(), zeros.clone()]
            .map(|mobile| DistributedKey::new(&scope, &mobile, &foreign_home()));
        let plain = scope.association(&mobile_home());
        let mask: Vec<u8> = one.masked.iter().zip(plain.key.as_bytes()).map(|(a, b)| a ^ b).collect();
        masks.insert(mask);
        assert_ne!(one, two, "another key of the mobile node gives another key");
    }
    assert_eq!((keys.len(), masks.len()), (6, 6));
    assert!(keys.is_disjoint(&masks));
    // The foreign agent takes the registration from its own request. Of another one, it gets a wrong key.
    for request in &others {
        assert_ne!(
            key().association(&scope(request), &foreign_home()),
            scope(request).association(&mobile_home())
        );
    }
    assert_ne!(key().association(&scope(&request()), &mobile_home()).key.as_bytes(), hex(GOLDEN_KEY));
}

#[test]
fn only_an_extension_between_the_two_authentications_counts() {
    let own = key().extension(&NUMBERS());
    let whole = reply(vec![own.clone()]);
    let [home, key_extension, foreign] = &whole.extensions[..] else { panic!("{whole:?}") };
    let in_order =
        |extensions: Vec<Extension>| Reply { extensions, ..whole.clone() }.distributed_key(&NUMBERS());
    let [home, own, foreign] = [home, key_extension, foreign].map(Clone::clone);
    assert_eq!(in_order(vec![home.clone(), own.clone(), foreign.clone()]), Ok(Some(key())));
    let elsewhere = Err(Malformed("mip_key_position"));
    assert_eq!(in_order(vec![home.clone(), foreign.clone(), own.clone()]), elsewhere);
    assert_eq!(in_order(vec![own.clone(), home.clone(), foreign.clone()]), elsewhere);
    assert_eq!(in_order(vec![home.clone(), own.clone()]), elsewhere);
    assert_eq!(in_order(vec![own.clone(), foreign.clone()]), elsewhere);
    assert_eq!(in_order(vec![home.clone(), foreign.clone()]), Ok(None));
    // One that a host has appended does not remove the one that the home agent has signed.
    assert_eq!(in_order(vec![home.clone(), own.clone(), foreign.clone(), own.clone()]), Ok(Some(key())));
    let twice = in_order(vec![home, own.clone(), own, foreign]);
    assert_eq!(twice, Err(Malformed("mip_key_twice")));
}

#[test]
fn each_wrong_field_has_a_reason() {
    let read = |extension| {
        let whole = reply(vec![extension]).emit();
        Reply::parse(&whole).unwrap().distributed_key(&NUMBERS())
    };
    for length in 8..44 {
        assert_eq!(read(changed(|data| data.truncate(length))), Err(Malformed("mip_key_length")), "{length}");
    }
    assert_eq!(read(changed(|data| data.push(0))), Err(Malformed("mip_key_length")));
    assert_eq!(read(changed(|data| data.resize(255, 0))), Err(Malformed("mip_key_length")));
    assert_eq!(read(changed(|data| data[8] &= 0x7f)), Err(Malformed("mip_key_spi")));
    // Shorter ones have no vendor or type. Others are of another vendor or type. They are skipped.
    for length in 0..8 {
        assert_eq!(read(changed(|data| data.truncate(length))), Ok(None), "{length}");
    }
    for byte in 2..8 {
        assert_eq!(read(changed(|data| data[byte] ^= 1)), Ok(None), "{byte}");
    }
    assert_eq!(read(changed(|data| data[0] = 1)), Ok(Some(key())), "the reserved bytes are ignored");
    let other_type = changed(|_| {});
    let Extension::Skipped { data, .. } = other_type else { panic!("an authentication") };
    assert_eq!(read(Extension::Skipped { kind: 135, data }), Ok(None));
}

/// The extension has a type that other agents skip, and it is not in what they relay.
#[test]
fn another_implementation_skips_the_extension_and_does_not_relay_it() {
    let whole = Reply::parse(&reply(vec![key().extension(&NUMBERS())]).emit()).unwrap();
    assert!(whole.verify(Between::ForeignHome, &foreign_home()));
    assert!(whole.verify(Between::MobileHome, &mobile_home()));
    let mut relayed = whole.clone();
    relayed.strip();
    assert_eq!(relayed.distributed_key(&NUMBERS()), Ok(None));
    assert_eq!(relayed.emit(), whole.emit()[..58]);
    let numbers = Numbers { vendor_extension: 200, vendor: 9, vendor_key: 7, ..NUMBERS() };
    assert_eq!(whole.distributed_key(&numbers), Ok(None));
    let moved = reply(vec![key().extension(&numbers)]);
    assert_eq!(moved.distributed_key(&numbers), Ok(Some(key())));
}

#[test]
fn numbers_of_the_extension_that_cannot_work_are_refused() {
    for vendor_extension in [0, 36, 127, 130, 131, 132] {
        assert!(Numbers { vendor_extension, ..NUMBERS() }.check().is_err(), "{vendor_extension}");
    }
    assert!(Numbers { vendor_extension: 128, ..NUMBERS() }.check().is_ok());
    assert!(Numbers { vendor: 0x0100_0000, ..NUMBERS() }.check().is_err());
    assert!(Numbers { vendor: 0x00ff_ffff, ..NUMBERS() }.check().is_ok());
}

/// A debug text of the derived association, as of all keys, has only its length.
#[test]
fn a_derived_key_does_not_print_itself() {
    let text = format!("{:?}", scope(&request()).association(&mobile_home()));
    assert!(text.contains("Key(32 bytes)"), "{text}");
}

proptest! {
    #[test]
    fn what_the_home_agent_sends_is_what_the_mobile_node_derives(
        identification: u64, home: u32, home_agent: u32, care_of: u32, spi in 256_u32..,
        mobile: [u8; 16], foreign: [u8; 20],
    ) {
        let [home, home_agent, care_of] = [home, home_agent, care_of].map(Ipv4Addr::from_bits);
        let mut asked = Request { identification, home, home_agent, care_of, extensions: Vec::new(), ..request() };
        let (mobile, foreign) = (with(spi, mobile), with(300, foreign));
        asked.sign(Between::MobileHome, &mobile);
        let sent = DistributedKey::new(&scope(&asked), &mobile, &foreign);
        let read = reply(vec![sent.extension(&NUMBERS())]).distributed_key(&NUMBERS()).unwrap().unwrap();
        prop_assert_eq!(&read, &sent);
        let derived = scope(&asked).association(&mobile);
        prop_assert!(derived.spi >= 1 << 31);
        prop_assert_eq!(read.association(&scope(&asked), &foreign), derived);
    }
}
