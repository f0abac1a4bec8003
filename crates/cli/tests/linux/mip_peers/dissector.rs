//! The dissector of tools/wireshark, which gives Wireshark the messages of route optimization, smooth handoffs and buffers.

use crate::common::*;
use crate::tshark;
use draw::{Capture, Direction, Interface, Seen, Snap};
use mobile_ip::message::{
    Acknowledge, Algorithm, Asks, Association, Binding, BindingRequest, BufferControl, DistributedKey,
    Generalized, Numbers, PORT, Registration, Status, Update, Warning, datagram,
};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use wire::ipv4::{self, Header};
use wire::{EtherType, Frame, Instant, Ipv4Addr, Mac, SocketAddrV4, WallTime, ethernet, udp};

const SCRIPT: &str = include_str!("../../../../../tools/wireshark/route_optimization.lua");
/// The number of the user and of the group without rights in Debian.
const NO_RIGHTS: u32 = 65534;
/// What tshark reads of each message, in this order.
const FIELDS: [&str; 18] = [
    "type",
    "flags",
    "control",
    "home",
    "care_of",
    "lifetime",
    "identification",
    "status",
    "previous",
    "extension",
    "subtype",
    "spi",
    "authenticator",
    "target",
    "packet",
    "vendor",
    "vendor_type",
    "masked_key",
];

const HOME: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 7);
const CARE_OF: Ipv4Addr = Ipv4Addr::new(10, 3, 0, 1);
const TIME: u64 = 0xed00_0000_1234_5800;

/// The fields of a message: the name and the values of each.
type Row = Vec<(&'static str, Vec<String>)>;

/// Returns the fields as tshark prints them.
fn line(row: &Row) -> String {
    let of = |name: &&str| {
        let values = row.iter().filter(|(other, _)| other == name).flat_map(|(_, values)| values);
        values.cloned().collect::<Vec<_>>().join(",")
    };
    FIELDS.iter().map(of).collect::<Vec<_>>().join("|")
}

fn one(name: &'static str, value: impl std::fmt::Display) -> (&'static str, Vec<String>) {
    (name, vec![value.to_string()])
}

fn of_authentication(row: &mut Row, authentication: Option<&Generalized>) {
    let Some(found) = authentication else { return };
    row.push(one("extension", 36));
    row.push(one("subtype", found.subtype));
    row.push(one("spi", found.spi));
    row.push(one("authenticator", trace::hex(&found.authenticator)));
}

fn of_binding(message: &Binding) -> Row {
    let home = one("home", message.home());
    let identified = |identification: u64| one("identification", format!("{identification:#018x}"));
    match message {
        Binding::Warning(warning) => {
            let targets = warning.targets.iter().map(Ipv4Addr::to_string).collect();
            vec![one("type", 16), home, ("target", targets)]
        }
        Binding::Request(request) => {
            let mut row = vec![one("type", 17), home, identified(request.identification)];
            of_authentication(&mut row, request.authentication.as_ref());
            row
        }
        Binding::Update(update) => {
            let flags = [(update.acknowledge, 0x80), (update.identification.is_some(), 0x40)];
            let flags = [flags, [(update.minimal, 0x20), (update.gre, 0x10)]].concat();
            let flags: u8 = flags.iter().filter(|(is_set, _)| *is_set).map(|(_, bit)| bit).sum();
            let mut row = vec![one("type", 18), home, one("flags", format!("{flags:#04x}"))];
            row.push(one("care_of", update.care_of));
            row.push(one("lifetime", update.lifetime));
            row.extend(update.identification.map(identified));
            of_authentication(&mut row, update.authentication.as_ref());
            row
        }
        Binding::Acknowledge(acknowledge) => {
            let mut row = vec![one("type", 19), home, one("status", acknowledge.status.0)];
            row.extend(acknowledge.identification.map(identified));
            of_authentication(&mut row, acknowledge.authentication.as_ref());
            row
        }
    }
}

fn of_key(key: &DistributedKey, numbers: &Numbers) -> Row {
    vec![
        one("extension", 134),
        one("vendor", numbers.vendor),
        one("vendor_type", numbers.vendor_key),
        one("spi", key.spi),
        one("masked_key", trace::hex(&key.masked)),
    ]
}

/// Returns the fields of a message with its bytes; `None` for other packets. Tunnels are opened.
fn of_frame(frame: &[u8], numbers: &Numbers) -> Option<Row> {
    let (link, mut packet) = ethernet::parse(frame).ok()?;
    if link.kind != EtherType::IPV4 {
        return None;
    }
    let (mut ip, mut payload) = Header::parse(packet).ok()?;
    while ip.protocol == ipv4::IPIP {
        packet = payload;
        (ip, payload) = Header::parse(packet).ok()?;
    }
    if ip.protocol != ipv4::UDP {
        return None;
    }
    let datagram = udp::Datagram::parse(payload, ip.src, ip.dst).ok()?;
    if datagram.dst_port != PORT && datagram.src_port != PORT {
        return None;
    }
    if let Some(message) = Binding::parse(datagram.payload, numbers) {
        return Some(of_binding(&message.unwrap()));
    }
    let request = match Registration::parse_knowing(datagram.payload, &numbers.extensions()).ok()? {
        Registration::Request(request) => request,
        Registration::Reply(reply) => {
            return Some(of_key(&reply.distributed_key(numbers).unwrap()?, numbers));
        }
    };
    let named = request.previous_agent(numbers)?.unwrap();
    let mut row = vec![one("extension", 96), one("previous", named.previous), one("care_of", named.care_of)];
    row.push(one("lifetime", named.lifetime));
    row.push(one("spi", named.spi));
    row.push(one("authenticator", trace::hex(&named.authenticator)));
    Some(row)
}

/// Returns what the dissector reads of the messages in a capture that `filter` selects; `None` without tshark.
fn read(capture: &Path, filter: &str) -> Option<Vec<String>> {
    let mut words = ["-Y", filter, "-T", "fields", "-E", "separator=|"].to_vec();
    let names = FIELDS.map(|name| format!("mipro.{name}"));
    words.extend(names.iter().flat_map(|name| ["-e", name]));
    let script = tempfile::Builder::new().suffix(".lua").tempfile().unwrap();
    fs::write(script.path(), SCRIPT).unwrap();
    fs::set_permissions(script.path(), fs::Permissions::from_mode(0o644)).unwrap();
    let mut command = Command::new("tshark");
    command.stdin(fs::File::open(capture).unwrap()).args(["-n", "-r", "-", "-X"]);
    command.arg(format!("lua_script:{}", script.path().display())).args(&words);
    // Wireshark 4.4 runs no Lua scripts for root. So tshark runs as a user without rights. This user cannot read the home folder
    // of root, so tshark gets a home folder that does not exist.
    if is_root() {
        command.uid(NO_RIGHTS).gid(NO_RIGHTS).env("HOME", "/nonexistent").env_remove("XDG_CONFIG_HOME");
    }
    Some(tshark::run(&mut command)?.lines().map(str::to_owned).collect())
}

const MALFORMED: &str = "mipro.malformed || _ws.malformed || _ws.lua.error";

/// Writes a capture of datagrams with these payloads.
fn write(file: &Path, payloads: &[Vec<u8>]) {
    let interfaces = [Interface { host: "agent".into(), name: "eth0".into() }];
    let mut capture = Capture::new(&interfaces, WallTime(1_700_000_000_000_000_000), Snap::Full);
    let [from, to] = [[10, 3, 0, 1], [10, 2, 0, 1]].map(|address| SocketAddrV4::new(address.into(), PORT));
    for (number, payload) in (0..).zip(payloads) {
        let bytes = datagram(from, to, 64, payload);
        let [dst, src] = [1, 2].map(|last| Mac([2, 0, 0, 0, 0, last]));
        let link = Frame { dst, src, kind: EtherType::IPV4 };
        let frame = ethernet::emit(&link, &bytes);
        let seen = Seen {
            interface: 0,
            at: Instant::from_millis(number),
            direction: Direction::Inbound,
            frame: &frame,
            original_len: frame.len(),
            comment: "",
        };
        capture.packet(&seen).unwrap();
    }
    std::fs::write(file, capture.finish().unwrap()).unwrap();
}

/// Returns one message of each kind with its fields.
fn messages(numbers: &Numbers) -> Vec<(Vec<u8>, Row)> {
    let association = Association {
        spi: 0x300,
        algorithm: Algorithm::HmacSha256,
        key: auth::Key::new(b"1234567812345678"),
    };
    let target = |last: u8| Ipv4Addr::new(10, 2, 0, last);
    let mut all = Vec::new();
    for targets in [1, 16, 62] {
        all.push(Binding::Warning(Warning { home: HOME, targets: (1..=targets).map(target).collect() }));
    }
    let mut request = BindingRequest { home: HOME, identification: TIME, authentication: None };
    all.push(Binding::Request(request.clone()));
    request.sign(numbers.route_authentication, &association, numbers);
    all.push(Binding::Request(request));
    for flags in 0..16_u8 {
        let has = |bit: u8| flags & bit != 0;
        let mut update = Update {
            acknowledge: has(8),
            minimal: has(4),
            gre: has(2),
            lifetime: if has(1) { 300 } else { 0xffff },
            home: HOME,
            care_of: CARE_OF,
            identification: has(1).then_some(TIME),
            authentication: None,
        };
        update.sign(numbers.route_authentication, &association, numbers);
        all.push(Binding::Update(update));
    }
    for status in [0, 128, 129, 130, 131, 133, 134, 77] {
        let mut message = Acknowledge {
            status: Status(status),
            home: HOME,
            identification: (status != 77).then_some(TIME),
            authentication: None,
        };
        if status > 128 {
            message.sign(numbers.smooth_authentication, &association, numbers);
        }
        all.push(Binding::Acknowledge(message));
    }
    let mut all: Vec<_> = all.iter().map(|message| (message.emit(numbers), of_binding(message))).collect();
    for (asks, flags) in [(Asks::Keep, "0x50"), (Asks::Forward, "0x30"), (Asks::Stop, "0x12")] {
        let named =
            if asks == Asks::Forward { vec![(target(1), 7), (target(2), 8), (target(1), 9)] } else { vec![] };
        let mut message =
            BufferControl { asks, home: HOME, identification: TIME, named, authentication: None };
        message.sign(&association, numbers);
        let mut row = vec![one("type", 20), one("home", HOME), one("control", flags)];
        row.push(one("identification", format!("{TIME:#018x}")));
        if !message.named.is_empty() {
            row.push(one("extension", 200));
            // The identifications of the first source, and then those of the second one.
            row.push(("packet", ["7", "9", "8"].map(str::to_owned).to_vec()));
        }
        of_authentication(&mut row, message.authentication.as_ref());
        all.push((message.emit(numbers), row));
    }
    all
}

#[test]
fn wireshark_reads_each_message_of_route_optimization() {
    let _turn = beside_others();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("capture.pcapng");
    let messages = messages(&Numbers::default());
    let payloads: Vec<_> = messages.iter().map(|(payload, _)| payload.clone()).collect();
    write(&file, &payloads);
    let Some(lines) = read(&file, "mipro") else { return };
    let expected: Vec<_> = messages.iter().map(|(_, row)| line(row)).collect();
    assert_eq!(lines, expected);
    assert_eq!(read(&file, MALFORMED).unwrap(), [""; 0]);

    // A message without its last byte, one that is only a type, and one with a further byte are malformed. So are reserved bits,
    // but not those of a warning.
    let wrong = payloads.iter().flat_map(|payload| {
        let cut = payload.split_last().map(|(_, begin)| begin.to_vec()).unwrap();
        [cut, payload[..1].to_vec(), [&payload[..], &[0]].concat()]
    });
    let mut wrong: Vec<_> = wrong.collect();
    for (kind, at) in [(17, 1), (17, 3), (18, 1), (19, 1), (19, 2)] {
        let mut changed = payloads.iter().find(|payload| payload[0] == kind).unwrap().clone();
        changed[at] |= 1;
        wrong.push(changed);
    }
    write(&file, &wrong);
    assert_eq!(read(&file, "mipro.malformed").unwrap().len(), wrong.len());
}

/// In runs, the dissector reads what our parser reads, also in tunnels.
#[test]
fn wireshark_reads_in_runs_what_the_roles_sent() {
    let _turn = beside_others();
    let keys = ["--set", "mobile-ip.distributed_keys=true"];
    let runs = [("smooth-handoff", &[][..]), ("smooth-handoff", &keys), ("route-optimization", &[])];
    for (name, settings) in runs {
        let scenario = format!("mobile-ip/{name}");
        let out = tempfile::tempdir().unwrap();
        let words = [&["run", scenario.as_str(), "--snap", "full"][..], settings].concat();
        let held = run(&words, out.path());
        assert_eq!(held.status.code(), Some(0), "{}", text(&held.stderr));
        let capture = kept(out.path()).join("capture.pcapng");
        let Some(lines) = read(&capture, "mipro") else { return };
        let packets = draw::read_capture(&std::fs::read(&capture).unwrap()).unwrap();
        let rows = packets.iter().filter_map(|packet| of_frame(&packet.bytes, &Numbers::default()));
        let expected: Vec<_> = rows.map(|row| line(&row)).collect();
        assert!(expected.len() >= 20, "{scenario}: {}", expected.len());
        assert_eq!(lines, expected, "{scenario}");
        let with_key: BTreeSet<&String> = lines.iter().filter(|line| line.contains("|32473|1|")).collect();
        assert_eq!(with_key.len(), if settings.is_empty() { 0 } else { 5 }, "one key for each registration");
        assert_eq!(read(&capture, MALFORMED).unwrap(), [""; 0]);
    }
}
