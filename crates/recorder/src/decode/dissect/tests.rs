use super::*;
use ::mobile_ip::message::{Advertisement, AgentFlags, Solicitation, datagram};
use wire::tunnel::{self, Kind};
use wire::{SocketAddrV4, ipip};

/// A request with the golden HMAC-SHA-256, which an independent home agent accepts.
const GOLDEN: &str = "012a012c0a01010a0a0101140a010207ed00000012345800202400000100\
                      d8cd062467b389d67d8008d20a61f5746cd11ed41888bfb7f26a80c677b29e7d";
const REPLY: &str = "038500000a01010a0a010114ed00000012345800";

fn hex(text: &str) -> Vec<u8> {
    trace::unhex(text).unwrap()
}

fn ends() -> [SocketAddrV4; 2] {
    [[10, 1, 2, 7], [10, 1, 1, 20]].map(|address| SocketAddrV4::new(address.into(), PORT))
}

fn in_ip(payload: &[u8]) -> Vec<u8> {
    let [from, to] = ends();
    datagram(from, to, 255, payload)
}

/// Returns the value of the first field with this name.
fn value(found: &Dissection, name: &str) -> String {
    let mut all = found.layers.iter().flat_map(|layer| &layer.fields);
    all.find(|field| field.name.trim() == name).unwrap_or_else(|| panic!("{name}: {found:?}")).value.clone()
}

/// Returns the layers of bytes, with the default numbers of Mobile IP.
fn decoded(bytes: &[u8], begin: Begin, is_cut: bool) -> Dissection {
    dissect(bytes, begin, is_cut, &Numbers::default())
}

fn problem(bytes: &[u8]) -> (String, usize) {
    let found = decoded(bytes, Begin::guess(bytes), false);
    let Some(Problem { reason, at }) = found.problem else { panic!("{found:?}") };
    assert!(found.is_message);
    (reason, at)
}

#[test]
fn a_request_has_all_its_fields() {
    let bytes = hex(GOLDEN);
    assert_eq!(Begin::guess(&bytes), Begin::Message);
    let found = decoded(&bytes, Begin::Message, false);
    assert_eq!(found.layers[0].name, "Mobile IP registration request");
    let expected = [
        (0, "type", "1"),
        (1, "flags", "0x2a: D G T"),
        (2, "lifetime", "300 s"),
        (4, "home address", "10.1.1.10"),
        (8, "home agent", "10.1.1.20"),
        (12, "care-of address", "10.1.2.7"),
        (16, "identification", "0xed00000012345800, as a time 2025-12-31 20:03:12.071111 UTC"),
        (24, "extension", "Mobile-Home Authentication (type 32), 36 bytes"),
        (26, "  SPI", "256"),
        (30, "  authenticator", "d8cd062467b389d67d8008d20a61f5746cd11ed41888bfb7f26a80c677b29e7d"),
    ];
    let fields = found.layers[0].fields.iter().map(|field| (field.at, &field.name[..], &field.value[..]));
    assert_eq!(fields.collect::<Vec<_>>(), expected);
    assert!(found.problem.is_none() && found.is_message && !found.is_tunneled);
}

/// The golden Previous Foreign Agent Notification, behind the Mobile-Home Authentication.
#[test]
fn the_notification_of_a_previous_agent_has_its_fields() {
    let notification = "602e001e0a0103010a01020700000300\
                        8513f370b71624c543e9e69661220a511b1d76b510f2160b05e2ac4849fd909f";
    let found = decoded(&hex(&[GOLDEN, notification].concat()), Begin::Message, false);
    assert!(found.problem.is_none(), "{found:?}");
    assert_eq!(value(&found, "cache lifetime"), "30 s");
    assert_eq!(value(&found, "previous agent"), "10.1.3.1");
    assert_eq!(value(&found, "new care-of address"), "10.1.2.7");
    let last: Vec<_> =
        found.layers[0].fields.iter().rev().take(2).map(|field| (field.at, &*field.value)).collect();
    assert_eq!(last[1], (74, "768"));
    assert!(last[0].1.starts_with("8513f370"), "{last:?}");
}

/// The golden reply with a key for the foreign agent. An extension of another vendor, and one of another length, has its bytes.
#[test]
fn a_key_for_the_foreign_agent_has_its_fields() {
    let reply = "0300012c0a01010a0a010114ed00000012345800";
    let key = "862c000000007ed900018022c46f64331af890db2d2891c87688c68e8d191c4193a4022aec737f6ec624fc10b8dc";
    let found = decoded(&hex(&[reply, key].concat()), Begin::Message, false);
    assert!(found.problem.is_none(), "{found:?}");
    let fields = found.layers[0].fields.iter().map(|field| (field.at, &field.name[..], &field.value[..]));
    let expected = [
        (20, "extension", "Mobile-Foreign Key (type 134), 44 bytes"),
        (24, "  vendor", "32473"),
        (28, "  vendor type", "1"),
        (30, "  SPI", "2149762159"),
        (34, "  masked key", "64331af890db2d2891c87688c68e8d191c4193a4022aec737f6ec624fc10b8dc"),
    ];
    assert_eq!(fields.skip(6).collect::<Vec<_>>(), expected);
    for other in [key.replacen("7ed9", "7eda", 1), format!("862d{}00", &key[4..])] {
        let found = decoded(&hex(&format!("{reply}{other}")), Begin::Message, false);
        assert!(value(&found, "extension").starts_with("Normal Vendor/Organization Specific (type 134)"));
        assert!(value(&found, "data").starts_with("00000000"));
    }
}

/// Flags S and P are reserved bits of RFC 5944. Later standards use the bit of flag S for flag U.
#[test]
fn flags_of_the_drafts_have_their_letters() {
    let private = hex(&GOLDEN.replacen("012a", "0103", 1));
    assert_eq!(value(&decoded(&private, Begin::Message, false), "flags"), "0x03: T P");
    let numbers = Numbers { private_flag: 4, smooth_flag: 8, ..Numbers::default() };
    let with = |bytes: &[u8], begin| value(&dissect(bytes, begin, false, &numbers), "flags");
    assert_eq!(with(&private, Begin::Message), "0x03: T x");
    let flags = AgentFlags::FOREIGN | AgentFlags(0x88);
    let smooth = Advertisement { flags, ..advertisement() }.emit();
    assert_eq!(value(&decoded(&smooth, Begin::Ip, false), "flags"), "0x1088: F S 12");
    assert_eq!(with(&smooth, Begin::Ip), "0x1088: F U S");
}

/// The messages of a scenario with other numbers than the default ones.
#[test]
fn messages_with_other_numbers_are_read() {
    let numbers =
        Numbers { update: 88, previous_agent: 97, buffer_control: 89, ip_filter: 201, ..Numbers::default() };
    let with = |text: &str| dissect(&hex(text), Begin::Message, false, &numbers);
    let update = "c0001e0a01010a0a010207ed00000012345800";
    let authentication = "24fb002400000300\
                          8513f370b71624c543e9e69661220a511b1d76b510f2160b05e2ac4849fd909f";
    let found = with(&format!("58{update}{authentication}"));
    assert_eq!(found.layers[0].name, "Mobile IP binding update");
    assert!(found.problem.is_none(), "{found:?}");
    let found = with(&format!("12{update}{authentication}"));
    assert_eq!(found.problem.unwrap().reason, "mip_unknown_type");
    let notification = "612e001e0a0103010a01020700000300\
                        8513f370b71624c543e9e69661220a511b1d76b510f2160b05e2ac4849fd909f";
    let found = with(&[GOLDEN, notification].concat());
    assert!(found.problem.is_none(), "{found:?}");
    assert_eq!(value(&found, "previous agent"), "10.1.3.1");
    let found = with(&format!("593000000a01010aed00000012345800c90a01000a02000200010007{authentication}"));
    assert!(found.problem.is_none(), "{found:?}");
    assert_eq!(value(&found, "extension"), "IP Filter (type 201), 10 bytes");
}

/// The authenticator of the golden signed Binding Request.
const REQUEST_AUTHENTICATOR: &str = "5184bd743584bda7d9e5d0cb55643ff714d85428b854e10336eb4a3264c4f4e8";

/// The golden Binding Update of a smooth handoff, and messages of the other types.
#[test]
fn messages_of_route_optimization_have_all_their_fields() {
    let update = hex("12c0001e0a01010a0a010207ed0000001234580024fb002400000300\
                      8513f370b71624c543e9e69661220a511b1d76b510f2160b05e2ac4849fd909f");
    let found = decoded(&update, Begin::Message, false);
    assert_eq!(found.layers[0].name, "Mobile IP binding update");
    let expected = [
        (0, "type", "18"),
        (1, "flags", "0xc0: A I"),
        (2, "lifetime", "30 s"),
        (4, "home address", "10.1.1.10"),
        (8, "care-of address", "10.1.2.7"),
        (12, "identification", "0xed00000012345800, as a time 2025-12-31 20:03:12.071111 UTC"),
        (20, "extension", "Generalized Authentication (type 36), subtype 251"),
        (24, "  SPI", "768"),
        (28, "  authenticator", "8513f370b71624c543e9e69661220a511b1d76b510f2160b05e2ac4849fd909f"),
    ];
    let fields = found.layers[0].fields.iter().map(|field| (field.at, &field.name[..], &field.value[..]));
    assert_eq!(fields.collect::<Vec<_>>(), expected);
    assert!(found.problem.is_none() && found.is_message);
    let message = |text: &str| decoded(&hex(text), Begin::Message, false);
    let warning = message("100000000a01010a0a02000200000000");
    assert_eq!(
        (value(&warning, "home address"), value(&warning, "target")),
        ("10.1.1.10".into(), "10.2.0.2".into())
    );
    assert_eq!(warning.layers[0].name, "Mobile IP binding warning");
    let request = message("110000000a01010aed00000012345800");
    assert_eq!(request.layers[0].name, "Mobile IP binding request");
    assert!(value(&request, "identification").starts_with("0xed00000012345800"));
    let signed = format!("110000000a01010aed0000001234580024fa002400000300{REQUEST_AUTHENTICATOR}");
    let fields: Vec<_> = message(&signed).layers.remove(0).fields.iter().map(|field| field.at).collect();
    assert_eq!(fields, [0, 4, 8, 16, 20, 24]);
    assert_eq!(value(&message(&signed), "authenticator"), REQUEST_AUTHENTICATOR);
    let answer = message("130000850a01010aed00000012345800");
    assert_eq!(answer.layers[0].name, "Mobile IP binding acknowledge");
    assert_eq!(value(&answer, "status"), "133: identification mismatch");
    let reason = |text: &str| problem(&hex(text)).0;
    assert_eq!(reason("100000000a01010a"), "mip_warning_targets");
    assert_eq!(reason("110000000a01010a00"), "mip_binding_request_length");
    assert_eq!(reason("110000010a01010aed00000012345800"), "mip_binding_reserved");
    assert_eq!(reason("1281001e0a01010a0a010207"), "mip_binding_reserved");
    assert_eq!(reason("1280001e0a01010a0a010207"), "mip_binding_unauthenticated");
    assert_eq!(reason("13000000"), "mip_acknowledge_length");
}

#[test]
fn a_buffer_control_request_has_all_its_fields() {
    let bytes = hex("143000000a01010aed00000012345800c80e01000a020002000300070008000924fb002400000300\
                     8513f370b71624c543e9e69661220a511b1d76b510f2160b05e2ac4849fd909f");
    let found = decoded(&bytes, Begin::Message, false);
    assert!(found.problem.is_none() && found.is_message, "{found:?}");
    assert_eq!(found.layers[0].name, "Mobile IP buffer control request");
    let expected = [
        (0, "type", "20"),
        (1, "flags", "0x30: F I: the packets are for another agent"),
        (4, "home address", "10.1.1.10"),
        (8, "identification", "0xed00000012345800, as a time 2025-12-31 20:03:12.071111 UTC"),
        (16, "extension", "IP Filter (type 200), 14 bytes"),
        (18, "  received packet", "source 10.2.0.2, identification 7"),
        (18, "  received packet", "source 10.2.0.2, identification 8"),
        (18, "  received packet", "source 10.2.0.2, identification 9"),
        (32, "extension", "Generalized Authentication (type 36), subtype 251"),
        (36, "  SPI", "768"),
        (40, "  authenticator", "8513f370b71624c543e9e69661220a511b1d76b510f2160b05e2ac4849fd909f"),
    ];
    let fields = found.layers[0].fields.iter().map(|field| (field.at, &field.name[..], &field.value[..]));
    assert_eq!(fields.collect::<Vec<_>>(), expected);
    assert_eq!(problem(&hex("147000000a01010aed00000012345800")).0, "mip_control_flags");
    assert_eq!(problem(&hex("1450")).0, "mip_control_short");
}

#[test]
fn a_message_is_found_in_a_frame_and_in_a_tunnel() {
    let packet = in_ip(&hex(REPLY));
    let frame = ethernet::emit(&Frame::to(Mac([2; 6])), &packet);
    assert_eq!((Begin::guess(&packet), Begin::guess(&frame)), (Begin::Ip, Begin::Ethernet));
    let found = decoded(&frame, Begin::Ethernet, false);
    let names: Vec<_> = found.layers.iter().map(|layer| (&layer.name[..], layer.at)).collect();
    assert_eq!(names, [("Ethernet", 0), ("IPv4", 14), ("UDP", 34), ("Mobile IP registration reply", 42)]);
    assert_eq!(value(&found, "code"), "133 (home agent: Identification mismatch)");
    let [from, to] = ends();
    let tunneled = ipip::encapsulate(&packet, *from.ip(), *to.ip(), 1).unwrap();
    let found = decoded(&tunneled, Begin::Ip, false);
    assert!(found.is_tunneled && found.problem.is_none());
    assert_eq!((&found.layers[1].name[..], found.layers[1].at), ("IPv4 in a tunnel", 20));
    assert_eq!(found.layers[3].name, "Mobile IP registration reply");
    let all = |kind| {
        let bytes = tunnel::encapsulate(kind, &packet, *from.ip(), *to.ip(), 1).unwrap();
        let found = decoded(&bytes, Begin::Ip, false);
        assert!(found.is_tunneled && found.problem.is_none(), "{found:?}");
        found.layers.iter().map(|layer| format!("{} {}", layer.at, layer.name)).collect::<Vec<_>>()
    };
    let message = "Mobile IP registration reply";
    let by_gre = ["0 IPv4", "20 GRE", "24 IPv4 in a tunnel", "44 UDP"].map(str::to_owned);
    assert_eq!(all(Kind::Gre), [&by_gre[..], &[format!("52 {message}")]].concat());
    // The source of the packet is also the entry of the tunnel, so the header has 8 bytes.
    let minimal = ["0 IPv4", "20 minimal encapsulation", "28 UDP"].map(str::to_owned);
    assert_eq!(all(Kind::Minimal), [&minimal[..], &[format!("36 {message}")]].concat());
    for (kind, at, reason) in [(Kind::Gre, 21, "gre_flags"), (Kind::Minimal, 22, "minimal_checksum")] {
        let mut bytes = tunnel::encapsulate(kind, &packet, *from.ip(), *to.ip(), 1).unwrap();
        bytes[at] ^= 1;
        let problem = decoded(&bytes, Begin::Ip, false).problem.unwrap();
        assert_eq!((&problem.reason[..], problem.at), (reason, at & !1));
    }
    let arp = [&frame[..12], &[8, 6], &[0; 28][..]].concat();
    assert_eq!(Begin::guess(&arp), Begin::Ethernet);
}

fn advertisement() -> Advertisement {
    let agent = Ipv4Addr::new(10, 3, 0, 1);
    Advertisement {
        src: agent,
        dst: Ipv4Addr::new(224, 0, 0, 1),
        registered_only: true,
        lifetime: 3,
        routers: vec![(agent, -1)],
        sequence: 7,
        registration_lifetime: 0xffff,
        flags: AgentFlags::FOREIGN | AgentFlags::REVERSE,
        care_of: vec![agent],
        prefix_lengths: Some(vec![24]),
        challenge: None,
    }
}

#[test]
fn discovery_has_all_its_fields() {
    let found = decoded(&advertisement().emit(), Begin::Ip, false);
    let fields =
        found.layers[1].fields.iter().map(|field| (field.at - 20, &field.name[..], &field.value[..]));
    let expected = [
        (0, "type", "9"),
        (1, "code", "16: routes for registered mobile nodes only"),
        (4, "number of addresses", "1"),
        (6, "lifetime", "3 s"),
        (8, "router address", "10.3.0.1, preference -1"),
        (16, "extension", "Mobility Agent Advertisement (type 16), 10 bytes"),
        (18, "sequence number", "7"),
        (20, "registration lifetime", "65535: without end"),
        (22, "flags", "0x1100: F T"),
        (24, "care-of address", "10.3.0.1"),
        (28, "extension", "Prefix-Lengths (type 19), 1 byte"),
        (30, "  prefix lengths", "24"),
    ];
    assert_eq!(fields.collect::<Vec<_>>(), expected);
    let solicitation = Solicitation { src: Ipv4Addr::UNSPECIFIED, dst: Ipv4Addr::new(224, 0, 0, 2) }.emit();
    let found = decoded(&solicitation, Begin::Ip, false);
    assert_eq!(found.layers[1].name, "Mobile IP agent solicitation");
    assert_eq!(Begin::guess(&solicitation[20..]), Begin::Icmp);
    assert!(decoded(&solicitation[20..], Begin::Icmp, false).problem.is_none());
}

/// A run's capture has the first 128 bytes of each frame by default, and a message of DHCP is longer.
#[test]
fn a_message_of_dhcp_that_a_capture_has_cut_is_shown() {
    let (server, client) = (Ipv4Addr::new(10, 3, 0, 1), Ipv4Addr::new(10, 3, 0, 100));
    let message = ::dhcp::message::Message::new(::dhcp::message::Kind::Ack, 7, Mac([2, 0, 0, 0, 0, 7]));
    let message = ::dhcp::message::Message { yours: client, ..message };
    let ends = [(server, SERVER_PORT), (client, CLIENT_PORT)];
    let [from, to] = ends.map(|(address, port)| SocketAddrV4::new(address, port));
    let whole = wire::udp::packet(from, to, &message.emit());
    let found = decoded(&whole[..114], Begin::Ip, true);
    assert!(found.is_message && found.problem.is_none(), "{found:?}");
    let last = found.layers.last().unwrap();
    assert_eq!((last.name.as_str(), value(&found, "granted address")), ("DHCP", "10.3.0.100".into()));
    assert_eq!(value(&found, "operation"), "2: from a server");
    assert_eq!(decoded(&whole, Begin::Ip, false).layers.last().unwrap().name, "DHCP");
}

#[test]
fn a_bad_message_has_a_reason_and_an_offset() {
    let request = hex(&GOLDEN[..48]);
    let with = |extensions: &[u8]| [&request[..], extensions].concat();
    let cases: [(Vec<u8>, &str, usize); 10] = [
        (request[..10].to_vec(), "mip_request_short", 10),
        (hex(REPLY)[..19].to_vec(), "mip_reply_short", 19),
        (vec![5; 30], "mip_unknown_type", 0),
        (Vec::new(), "mip_empty", 0),
        (with(&[200]), "mip_extension_truncated", 24),
        (with(&[200, 1, 0, 200, 3, 0]), "mip_extension_overrun", 27),
        (with(&[200, 1, 0, 127, 1, 0, 200, 0]), "mip_unknown_extension", 27),
        (with(&[32, 3, 0, 0, 1]), "mip_authentication_length", 24),
        (with(&[33, 4, 0, 0, 1, 0, 33, 4, 0, 0, 1, 0]), "mip_authentication_twice", 30),
        (with(&[34, 4, 0, 0, 1, 0, 32, 4, 0, 0, 1, 0]), "mip_extension_order", 30),
    ];
    for (bytes, reason, at) in cases {
        assert_eq!(problem(&bytes), (reason.to_owned(), at), "{bytes:?}");
        assert!(meaning(reason).is_some(), "{reason}");
        if !bytes.is_empty() {
            assert_eq!(problem(&in_ip(&bytes)), (reason.to_owned(), at + 28), "{bytes:?}");
        }
    }
    // The well-formed begin is shown, and then the bytes that are not.
    let found = decoded(&with(&[200, 1, 0, 200, 3, 0]), Begin::Message, false);
    assert_eq!((value(&found, "home address"), value(&found, "data")), ("10.1.1.10".into(), "00".into()));
    assert_eq!(value(&found, "not decoded"), "c80300");
}

#[test]
fn a_bad_advertisement_has_a_reason_and_an_offset() {
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let (header, icmp) = Header::parse(&advertisement().emit()).map(|(h, p)| (h, p.to_vec())).unwrap();
        let mut icmp = icmp;
        change(&mut icmp);
        icmp[2..4].fill(0);
        let sum = wire::checksum(&icmp);
        icmp[2..4].copy_from_slice(&sum.to_be_bytes());
        let (reason, at) = problem(&header.emit(&icmp));
        assert!(meaning(&reason).is_some(), "{reason}");
        (reason, at - 20)
    };
    let is = |reason: &str, at: usize| (reason.to_owned(), at);
    assert_eq!(changed(&|icmp| icmp[1] = 1), is("mip_advertisement_code", 1));
    assert_eq!(changed(&|icmp| icmp[5] = 1), is("mip_entry_size", 5));
    assert_eq!(changed(&|icmp| icmp[4] = 255), is("mip_advertisement_short", 31));
    assert_eq!(changed(&|icmp| icmp[22] &= 0xcf), is("mip_no_agent", 22));
    assert_eq!(changed(&|icmp| icmp.truncate(16)), is("mip_no_agent", 16));
    assert_eq!(changed(&|icmp| icmp[30] = 33), is("mip_prefix_lengths", 28));
    assert_eq!(changed(&|icmp| icmp.extend_from_slice(&[19, 1, 24])), is("mip_extension_twice", 31));
    let mut wrong = advertisement().emit();
    wrong[30] ^= 1;
    assert_eq!(problem(&wrong), is("icmp_checksum", 22));
    let far = Header { ttl: 2, ..Header::parse(&advertisement().emit()).unwrap().0 };
    assert_eq!(problem(&far.emit(&advertisement().emit()[20..])), is("mip_ttl", 8));
}

#[test]
fn headers_that_are_wrong_have_an_offset() {
    let packet = in_ip(&hex(REPLY));
    let with = |at: usize, byte: u8| {
        let mut packet = packet.clone();
        packet[at] = byte;
        packet
    };
    assert_eq!(problem(&with(8, 1)), ("ip_checksum".into(), 10));
    assert_eq!(problem(&with(40, 1)), ("udp_checksum".into(), 26));
    assert_eq!(problem(&packet[..47]), ("ip_truncated".into(), 47));
    let found = decoded(&packet[..47], Begin::Ip, true);
    assert!(found.problem.is_none(), "a capture cut it");
    assert_eq!(value(&found, "not decoded").len(), 2 * 19);
}

#[test]
fn a_cut_message_has_the_extensions_that_are_known() {
    let packet = in_ip(&hex(GOLDEN));
    let found = decoded(&packet[..28 + 40], Begin::Ip, true);
    assert!(found.problem.is_none() && found.is_message);
    assert_eq!(value(&found, "home address"), "10.1.1.10");
    assert_eq!(value(&found, "not decoded"), "202400000100d8cd062467b389d67d80");
}

#[test]
fn long_bytes_take_no_long_time() {
    let mut long = hex(&GOLDEN[..48]);
    long.extend(std::iter::repeat_n([200, 0], 20_000).flatten());
    long.push(200);
    let found = decoded(&long, Begin::Message, false);
    assert_eq!(found.problem.unwrap().reason, "mip_extensions_length");
}

#[test]
fn messages_of_other_protocols_come_from_their_decoders() {
    let udp = wire::udp::packet(
        SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 4000),
        SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), 5000),
        b"data",
    );
    let found = decoded(&udp, Begin::Ip, false);
    assert!(!found.is_message && value(&found, "packet").starts_with("UDP 10.0.0.1:4000 > "));
    let port = ::indirect_tcp::message::PORT;
    let bad = wire::udp::packet(
        SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), port),
        SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), port),
        b"data",
    );
    let found = decoded(&bad, Begin::Ip, false);
    assert_eq!(found.layers[2].name, "Indirect TCP");
    assert_eq!(found.problem.map(|problem| problem.at), Some(28));
}
