use super::*;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

const MAC: Mac = Mac([2, 0, 0, 0, 0, 7]);

fn offer() -> Message {
    Message {
        broadcast: true,
        yours: Ipv4Addr::new(10, 3, 0, 100),
        lease: Some(3600),
        server: Some(Ipv4Addr::new(10, 3, 0, 1)),
        renew: Some(1800),
        rebind: Some(3150),
        prefix: Some(24),
        router: Some(Ipv4Addr::new(10, 3, 0, 1)),
        ..Message::new(Kind::Offer, 0x1234_5678, MAC)
    }
}

/// The fields are where RFC 2131, figure 1, has them, and the options are those of RFC 2132.
#[test]
fn the_bytes_are_those_of_the_rfc() {
    let bytes = offer().emit();
    assert_eq!(bytes.len(), SHORTEST);
    assert_eq!(bytes[..16], [2, 1, 6, 0, 0x12, 0x34, 0x56, 0x78, 0, 0, 0x80, 0, 0, 0, 0, 0]);
    assert_eq!(bytes[16..28], [10, 3, 0, 100, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bytes[28..44], [2, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bytes[44..236], [0; 192]);
    assert_eq!(bytes[236..240], [99, 130, 83, 99]);
    let options = [
        &[1, 4, 255, 255, 255, 0][..],
        &[3, 4, 10, 3, 0, 1],
        &[51, 4, 0, 0, 0x0e, 0x10],
        &[53, 1, 2],
        &[54, 4, 10, 3, 0, 1],
        &[58, 4, 0, 0, 0x07, 0x08],
        &[59, 4, 0, 0, 0x0c, 0x4e],
        &[255],
    ]
    .concat();
    assert_eq!(bytes[240..240 + options.len()], options);
}

/// An independent encoder makes the same bytes.
#[test]
fn another_implementation_writes_and_reads_the_same() {
    use dhcproto::v4::{Flags, Message as Theirs, Opcode};
    let ours = offer();
    let zero = Ipv4Addr::UNSPECIFIED;
    let mut theirs = Theirs::new_with_id(ours.transaction, zero, ours.yours, zero, zero, &MAC.0);
    theirs.set_opcode(Opcode::BootReply).set_flags(Flags::default().set_broadcast()).set_opts(ours.options());
    let mut bytes = Vec::new();
    theirs.encode(&mut Encoder::new(&mut bytes)).unwrap();
    assert_eq!(ours.emit()[..bytes.len()], bytes);
    assert_eq!(Message::parse(&bytes), Ok(ours.clone()));
    assert_eq!(Theirs::decode(&mut Decoder::new(&ours.emit())).unwrap(), theirs);
}

/// Returns the offer with other options.
fn with_options(options: &[u8]) -> Vec<u8> {
    let mut bytes = offer().emit();
    bytes.truncate(FIXED);
    bytes.extend_from_slice(options);
    bytes
}

fn refused(bytes: &[u8]) -> &'static str {
    Message::parse(bytes).unwrap_err().0
}

#[test]
fn every_refusal_names_its_reason() {
    let good = offer().emit();
    let with = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        refused(&bytes)
    };
    assert_eq!(with(0, 1), "dhcp_op", "an offer is a server's");
    assert_eq!(with(0, 3), "dhcp_op");
    assert_eq!(with(1, 6), "dhcp_hardware");
    assert_eq!(with(2, 255), "dhcp_hardware", "a length that exceeds the field");
    assert_eq!(with(28, 3), "dhcp_client");
    assert_eq!(with(236, 0), "dhcp_cookie");
    assert_eq!(with(242, 254), "dhcp_mask", "254.255.255.0 is no mask");
    assert_eq!(refused(&good[..239]), "dhcp_truncated");
    assert_eq!(refused(&good[..FIXED]), "dhcp_no_end");
    for (options, why) in [
        (&[255][..], "dhcp_type"),
        (&[53, 1, 9, 255], "dhcp_type"),
        (&[53, 1, 2], "dhcp_no_end"),
        (&[53, 1, 2, 0], "dhcp_no_end"),
        (&[53, 1, 2, 51, 4, 0, 0], "dhcp_option_truncated"),
        (&[53, 1, 2, 51, 2, 0, 0, 255], "dhcp_option_length"),
        (&[53, 1, 2, 51, 5, 0, 0, 0, 1, 2, 255], "dhcp_option_length"),
        (&[53, 2, 2, 2, 255], "dhcp_option_length"),
        (&[53, 1, 2, 54, 3, 1, 2, 3, 255], "dhcp_option_length"),
        (&[53, 1, 2, 3, 0, 255], "dhcp_option_length"),
        (&[53, 1, 2, 53, 1, 5, 255], "dhcp_option_twice"),
        (&[53, 1, 2, 52, 1, 4, 255], "dhcp_overload"),
        (&[53, 1, 2, 52, 1, 1, 255], "dhcp_no_end"),
    ] {
        assert_eq!(refused(&with_options(options)), why, "{options:?}");
    }
}

/// A value that no role uses need not be well-formed: here a host name that is no text.
#[test]
fn unknown_options_are_skipped() {
    let read = Message::parse(&with_options(&[53, 1, 2, 12, 2, 0xff, 0xfe, 200, 0, 255])).unwrap();
    assert_eq!(read.kind, Kind::Offer);
}

/// A server that has many options writes some into the fields for names (RFC 2131, section 4.1).
#[test]
fn options_are_read_from_the_fields_for_names_too() {
    let mut bytes = with_options(&[53, 1, 2, 52, 1, 3, 255]);
    bytes[108..115].copy_from_slice(&[51, 4, 0, 0, 0, 60, 255]);
    bytes[44..51].copy_from_slice(&[54, 4, 10, 3, 0, 9, 255]);
    let read = Message::parse(&bytes).unwrap();
    assert_eq!((read.lease, read.server), (Some(60), Some(Ipv4Addr::new(10, 3, 0, 9))));
}

#[test]
fn a_datagram_for_another_port_is_refused() {
    use wire::{SocketAddrV4, ipv4};
    let [from, to] = [(10, SERVER_PORT), (255, CLIENT_PORT)]
        .map(|(last, port)| SocketAddrV4::new(Ipv4Addr::new(10, 3, 0, last), port));
    let bytes = udp::packet(from, to, &offer().emit());
    let (ip, payload) = Header::parse(&bytes).unwrap();
    assert_eq!(Message::of(&ip, payload, CLIENT_PORT), Ok(offer()));
    assert_eq!(Message::of(&ip, payload, SERVER_PORT), Err(Malformed("dhcp_port")));
    let fragment = Header { offset: 8, ..ip };
    assert_eq!(Message::of(&fragment, payload, CLIENT_PORT), Err(Malformed("dhcp_fragment")));
    assert_eq!(ip.protocol, ipv4::UDP);
}

prop_compose! {
    fn any_message()(
        kind in 0..8usize,
        numbers in (any::<u32>(), any::<u16>(), any::<bool>()),
        addresses in any::<[u32; 3]>(),
        client in any::<[u8; 6]>(),
        options in (option::of(any::<u32>()), option::of(any::<u32>()), option::of(any::<u32>()), option::of(any::<u32>())),
        more in (option::of(any::<u32>()), option::of(0..=32u8), option::of(any::<u32>())),
        wants in vec(any::<u8>(), 0..20),
        identifier in vec(any::<u8>(), 0..20),
    ) -> Message {
        let [current, yours, relay] = addresses.map(Ipv4Addr::from_bits);
        Message {
            seconds: numbers.1,
            broadcast: numbers.2,
            current,
            yours,
            relay,
            requested: options.0.map(Ipv4Addr::from_bits),
            lease: options.1,
            server: options.2.map(Ipv4Addr::from_bits),
            renew: options.3,
            rebind: more.0,
            prefix: more.1,
            router: more.2.map(Ipv4Addr::from_bits),
            wants,
            identifier,
            ..Message::new(Kind::ALL[kind].0, numbers.0, Mac([client[0] & !1, client[1], client[2], client[3], client[4], client[5]]))
        }
    }
}

proptest! {
    #[test]
    fn what_is_emitted_is_read_back(message in any_message()) {
        prop_assert_eq!(Message::parse(&message.emit()), Ok(message));
    }

    #[test]
    fn damaged_bytes_cause_no_panic(message in any_message(), at in 0..300usize, value in any::<u8>(), len in 0..300usize) {
        let mut bytes = message.emit();
        bytes[at] = value;
        let _ = Message::parse(&bytes);
        bytes.truncate(len);
        let _ = Message::parse(&bytes);
    }
}
