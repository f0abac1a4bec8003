//! Each message of a capture is read by three decoders: Wayfare's, scapy's and tshark's. Their fields must be equal, and
//! nothing may be malformed.

use super::{FOLDER, PYTHON, have};
use crate::common::*;
use mobile_ip::message::{ADVERTISEMENT, Advertisement, Extension, PORT, Registration, Reply, Request};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use wire::ipv4::{self, Header};
use wire::{EtherType, Ipv4Addr, ethernet, udp};

/// Registrations and agent advertisements, for tshark. Only in these messages a wrong checksum counts as malformed.
const MESSAGES: &str = "mip || icmp.type == 9";
const WRONG: &str = "(mip || icmp.type == 9 || icmp.type == 10) && \
                     (_ws.malformed || ip.checksum.status == 0 || udp.checksum.status == 0 || icmp.checksum.status == 0)";

/// Asserts that the three decoders read the same messages from a capture, and that none is malformed. Returns the
/// fields of each message.
pub(super) fn assert_same(capture: &Path) -> Vec<Value> {
    let ours = of_wayfare(capture);
    let decoded = run(&["decode", capture.to_str().unwrap()], Path::new("/"));
    assert_exit(&decoded, 0, ", 0 malformed");
    let scapys = of_scapy(capture);
    let tsharks: Vec<Value> = of_tshark(capture).into_iter().map(|(_, row)| row).collect();
    for (number, ours) in ours.iter().enumerate() {
        assert_eq!(Some(ours), scapys.get(number), "message {number}: scapy reads other fields");
        assert_eq!(Some(ours), tsharks.get(number), "message {number}: tshark reads other fields");
    }
    assert_eq!((ours.len(), scapys.len()), (tsharks.len(), ours.len()), "all decoders find all messages");
    ours
}

// --- Wayfare -----------------------------------------------------------------------------------------------------------

fn of_wayfare(capture: &Path) -> Vec<Value> {
    let packets = draw::read_capture(&std::fs::read(capture).unwrap()).unwrap();
    packets.iter().filter_map(|packet| ours(&packet.bytes, packet.link_type)).collect()
}

/// Returns the fields of a message; `None` for other packets.
fn ours(bytes: &[u8], link_type: u32) -> Option<Value> {
    let packet = match link_type {
        1 => {
            let (link, packet) = ethernet::parse(bytes).ok()?;
            (link.kind == EtherType::IPV4).then_some(packet)?
        }
        _ => bytes,
    };
    let (ip, payload) = Header::parse(packet).ok()?;
    if ip.protocol == ipv4::ICMP && payload.first() == Some(&ADVERTISEMENT) {
        return Some(of_advertisement(&Advertisement::parse(&ip, payload).unwrap()));
    }
    if ip.protocol != ipv4::UDP || ip.is_fragment() {
        return None;
    }
    let datagram = udp::Datagram::parse(payload, ip.src, ip.dst).ok()?;
    if ![datagram.src_port, datagram.dst_port].contains(&PORT) {
        return None;
    }
    Some(match Registration::parse(datagram.payload).unwrap() {
        Registration::Request(request) => of_request(&request),
        Registration::Reply(reply) => of_reply(&reply),
    })
}

fn of_request(request: &Request) -> Value {
    let mut row = registration(1, request.lifetime, request.identification, &request.extensions);
    addresses(&mut row, request.home, request.home_agent);
    row["flags"] = request.flags.0.into();
    row["care_of"] = request.care_of.to_string().into();
    row
}

fn of_reply(reply: &Reply) -> Value {
    let mut row = registration(3, reply.lifetime, reply.identification, &reply.extensions);
    addresses(&mut row, reply.home, reply.home_agent);
    row["code"] = reply.code.number().into();
    row
}

fn addresses(row: &mut Value, home: Ipv4Addr, home_agent: Ipv4Addr) {
    row["home"] = home.to_string().into();
    row["home_agent"] = home_agent.to_string().into();
}

fn registration(kind: u8, lifetime: u16, identification: u64, extensions: &[Extension]) -> Value {
    let kinds: Vec<u8> = extensions
        .iter()
        .map(|extension| match extension {
            Extension::Authentication(authentication) => authentication.between as u8,
            Extension::Skipped { kind, .. } => *kind,
        })
        .collect();
    let authentications: Vec<_> = extensions
        .iter()
        .filter_map(|extension| match extension {
            Extension::Authentication(authentication) => Some(authentication),
            Extension::Skipped { .. } => None,
        })
        .collect();
    let spis: Vec<u32> = authentications.iter().map(|one| one.spi).collect();
    let authenticators: Vec<String> =
        authentications.iter().map(|one| trace::hex(&one.authenticator)).collect();
    json!({
        "type": kind,
        "lifetime": lifetime,
        "identification": format!("{identification:016x}"),
        "extensions": kinds,
        "spis": spis,
        "authenticators": authenticators,
    })
}

fn of_advertisement(said: &Advertisement) -> Value {
    let routers: Vec<String> = said.routers.iter().map(|(router, _)| router.to_string()).collect();
    let care_of: Vec<String> = said.care_of.iter().map(Ipv4Addr::to_string).collect();
    let optional = [(19, said.prefix_lengths.is_some()), (24, said.challenge.is_some())];
    let optional = optional.iter().filter(|(_, is_there)| *is_there).map(|(kind, _)| *kind);
    json!({
        "type": ADVERTISEMENT,
        "lifetime": said.lifetime,
        "routers": routers,
        "sequence": said.sequence,
        "registration_lifetime": said.registration_lifetime,
        "flags": said.flags.0,
        "care_of": care_of,
        "prefixes": said.prefix_lengths.clone().unwrap_or_default(),
        "extensions": std::iter::once(16).chain(optional).collect::<Vec<u8>>(),
    })
}

// --- scapy -------------------------------------------------------------------------------------------------------------

fn of_scapy(capture: &Path) -> Vec<Value> {
    let mut command = Command::new(PYTHON);
    command.args(["-B", &format!("{FOLDER}/fields.py")]).arg(capture);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

// --- tshark ------------------------------------------------------------------------------------------------------------

fn tshark(capture: &Path, words: &[&str]) -> String {
    let mut command = Command::new("tshark");
    command.arg("-n").arg("-r").arg(capture);
    for checked in ["ip", "udp"] {
        command.args(["-o", &format!("{checked}.check_checksum:TRUE")]);
    }
    let output = command.args(words).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// The fields of a packet in tshark's XML (PDML): what is shown, and the bytes in hexadecimal digits, by the field's
/// name.
type Fields<'a> = BTreeMap<&'a str, Vec<(&'a str, &'a str)>>;

/// Returns the messages that tshark finds, with the interface of each. No message may be malformed.
fn of_tshark(capture: &Path) -> Vec<(String, Value)> {
    assert_eq!(tshark(capture, &["-Y", WRONG]), "", "tshark finds malformed messages");
    let xml = tshark(capture, &["-Y", MESSAGES, "-T", "pdml"]);
    let packets = xml.split("<packet>").skip(1).map(fields);
    packets.map(|fields| (shown(&fields, "frame.interface_name").to_owned(), row(&fields))).collect()
}

fn fields(packet: &str) -> Fields<'_> {
    let mut all = Fields::new();
    let attribute = |field: &'_ str, name: &str| -> Option<(usize, usize)> {
        let begin = field.find(&format!(" {name}=\""))? + name.len() + 3;
        Some((begin, begin + field.get(begin..)?.find('"')?))
    };
    for field in packet.split("<field ").skip(1) {
        let value = |name| attribute(field, name).map_or("", |(begin, end)| &field[begin..end]);
        let Some(name) = field.strip_prefix("name=\"").and_then(|rest| rest.split('"').next()) else {
            continue;
        };
        all.entry(name).or_default().push((value("show"), value("value")));
    }
    all
}

/// Returns what tshark shows for the first field with this name; empty if there is none.
fn shown<'a>(fields: &Fields<'a>, name: &str) -> &'a str {
    fields.get(name).and_then(|all| all.first()).map_or("", |(shown, _)| shown)
}

fn row(fields: &Fields<'_>) -> Value {
    let number = |shown: &str| match shown.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).unwrap(),
        None => shown.parse().unwrap_or_else(|_| panic!("`{shown}` is no number")),
    };
    let one = |name: &str| number(shown(fields, name));
    let all = |name: &str| fields.get(name).cloned().unwrap_or_default();
    let numbers = |name: &str| all(name).iter().map(|(shown, _)| number(shown)).collect::<Vec<_>>();
    let texts = |name: &str| all(name).iter().map(|(shown, _)| (*shown).to_owned()).collect::<Vec<_>>();
    if !fields.contains_key("mip.type") {
        return json!({
            "type": one("icmp.type"),
            "lifetime": one("icmp.lifetime"),
            "routers": texts("icmp.router_address"),
            "sequence": one("icmp.mip.seq"),
            "registration_lifetime": one("icmp.mip.life"),
            "flags": one("icmp.mip.flags"),
            "care_of": texts("icmp.mip.coa"),
            "prefixes": numbers("icmp.mip.prefixlength"),
            "extensions": numbers("icmp.mip.type"),
        });
    }
    let mut row = json!({
        "type": one("mip.type"),
        "lifetime": one("mip.life"),
        "home": shown(fields, "mip.homeaddr"),
        "home_agent": shown(fields, "mip.haaddr"),
        // tshark shows a time, which is rounded. So the bytes of the field are compared.
        "identification": all("mip.ident")[0].1,
        "extensions": numbers("mip.ext.type"),
        "spis": numbers("mip.auth.spi"),
        "authenticators": texts("mip.auth.auth").iter().map(|hex| hex.replace(':', "")).collect::<Vec<_>>(),
    });
    if row["type"] == 1 {
        row["flags"] = one("mip.flags").into();
        row["care_of"] = shown(fields, "mip.coa").into();
    } else {
        row["code"] = one("mip.code").into();
    }
    row
}

// --- a run -------------------------------------------------------------------------------------------------------------

/// Of a run, tshark reads what the mobile node recorded: each request with its care-of address and lifetime, and each
/// reply with its code. The mobile node's clock is wrong, so that a reply is a denial.
#[test]
fn tshark_reads_in_a_run_what_the_mobile_node_recorded() {
    if !super::need_peers(have(&[&["tshark", "--version"], &[PYTHON, "-c", "import scapy"]])) {
        return;
    }
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    let moves = "roam.moves=[{at='1.5s', to='foreign'}, {at='4s', to='home'}]";
    let words = ["run", "mobile-ip/download", "--on", "linux", "--set", "duration=6s", "--set", moves];
    let more = ["--set", "bulk-server.bytes=20000", "--set", "host.mobile.clock={offset='+60min'}"];
    assert_held(&run(&[&words[..], &more].concat(), out.path()), "mobile-ip-download on linux");
    let dir = kept(out.path());
    let capture = dir.join("capture.pcapng");
    let read = assert_same(&capture).len();
    assert!(read > 30, "{read} messages");

    let events = std::fs::read_to_string(dir.join("events.jsonl")).unwrap();
    let events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let marks: Vec<Value> =
        events.filter(|event| event["host"] == "mobile" && event["event"] == "mark").collect();
    let of = |name: &str| {
        marks.iter().filter(|mark| mark["name"] == name).map(|mark| &mark["fields"]).collect::<Vec<_>>()
    };
    let messages = of_tshark(&capture);
    let at_mobile = |kind: u8| {
        let all =
            messages.iter().filter(move |(interface, row)| interface == "mobile:air" && row["type"] == kind);
        all.map(|(_, row)| row).collect::<Vec<_>>()
    };
    let requests = at_mobile(1);
    let recorded = of("request_sent");
    assert!(requests.len() >= 3, "{requests:?}");
    assert_eq!(requests.len(), recorded.len(), "{recorded:?}");
    for (read, recorded) in requests.iter().zip(&recorded) {
        assert_eq!((&read["care_of"], &read["lifetime"]), (&recorded["care_of"], &recorded["lifetime"]));
    }
    let replies = at_mobile(3);
    let denied = replies.iter().filter(|reply| reply["code"] != 0).count();
    assert_eq!(denied, of("denied").len());
    assert!(denied >= 1 && replies.iter().any(|reply| reply["code"] == 133), "{replies:?}");
    let granted: Vec<_> =
        replies.iter().filter(|reply| reply["code"] == 0).map(|reply| &reply["lifetime"]).collect();
    assert_eq!(
        granted,
        of("registered").iter().map(|registered| &registered["lifetime"]).collect::<Vec<_>>()
    );
}
