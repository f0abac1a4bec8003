//! `wayfare decode`, and the clocks of hosts, as a decoded capture shows them.

use std::path::Path;
use std::process::{Command, Output};

/// A request with the golden HMAC-SHA-256, which an independent home agent accepts.
const REQUEST: &str = "01 2a 01 2c 0a01010a 0a010114 0a010207 ed00000012345800 20:24:00:00:01:00 \
                       d8cd062467b389d67d8008d20a61f5746cd11ed41888bfb7f26a80c677b29e7d";

fn wayfare(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_wayfare")).current_dir(folder).args(arguments).output().unwrap()
}

/// Returns the output of a command that must end with this status: its standard output, or else its errors.
fn says(folder: &Path, arguments: &[&str], status: i32) -> String {
    let output = wayfare(folder, arguments);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    if text.is_empty() { errors } else { text }
}

#[test]
fn bytes_are_printed_field_by_field() {
    let folder = tempfile::tempdir().unwrap();
    let text = says(folder.path(), &["decode", "--hex", REQUEST], 0);
    for line in [
        "Mobile IP registration request",
        "8  home agent               10.1.1.20",
        "24  extension                Mobile-Home Authentication (type 32), 36 bytes",
        "26    SPI                    256",
    ] {
        assert!(text.contains(line), "no `{line}` in\n{text}");
    }
    let json = says(folder.path(), &["decode", "--hex", REQUEST, "--format", "json"], 0);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["layers"][0]["fields"][3]["value"], "10.1.1.10");
    assert!(json["malformed"].is_null());

    std::fs::write(folder.path().join("messages"), format!("# two messages\n{REQUEST}\n\n038500\n")).unwrap();
    let text = says(folder.path(), &["decode", "messages"], 1);
    assert!(text.contains("messages, line 4, 3 bytes\n"), "{text}");
    assert!(text.contains("malformed at byte 3: mip_reply_short: a reply has at least 20 bytes\n"), "{text}");
    assert!(text.ends_with("2 packets, 2 printed, 1 malformed\n"), "{text}");
    // The same bytes are no IPv4 header.
    let text = says(folder.path(), &["decode", "--hex", "0385", "--as", "ip"], 1);
    assert!(text.contains("malformed at byte 0: ip_version"), "{text}");
}

#[test]
fn what_cannot_be_decoded_is_refused_with_what_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("binary"), [0xff, 0xfe, 0]).unwrap();
    std::fs::create_dir(folder.path().join("folder")).unwrap();
    std::fs::write(folder.path().join("text"), "# no packet\nnot hex\n").unwrap();
    std::fs::write(folder.path().join("cut.pcap"), [0xd4, 0xc3, 0xb2, 0xa1, 2, 0]).unwrap();
    for (arguments, expected) in [
        (vec!["decode", "--hex", "012"], "3 digits are no whole bytes; allowed: two digits for each byte"),
        (vec!["decode", "--hex", "01 zz"], "`z` at character 4 is not a hexadecimal digit; allowed: 0 to 9"),
        (vec!["decode", "nothing"], "cannot read nothing: "),
        (vec!["decode", "binary"], "allowed: pcap, pcapng, or hexadecimal digits"),
        (vec!["decode", "text"], "text, line 2: `n` at character 1"),
        (vec!["decode", "cut.pcap"], "cut.pcap: packet 1: "),
        (vec!["decode"], "required"),
        (vec!["decode"], "wayfare decode [OPTIONS] --hex <BYTES>"),
        (
            vec!["decode", "folder"],
            "folder is a directory; allowed: a file, for example the capture of a run, folder/capture.pcapng",
        ),
        (vec!["decode", "text", "--hex", "01"], "cannot be used with"),
    ] {
        let error = says(folder.path(), &arguments, 2);
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
}

/// A pcap file of another program: little-endian, of link type 101 or another one, with this number of requests.
fn pcap(link_type: u8, requests: usize) -> Vec<u8> {
    let payload = trace::unhex(&REQUEST.replace([' ', ':'], "")).unwrap();
    let [from, to] = [[10, 1, 2, 7], [10, 1, 1, 20]].map(|address| (std::net::Ipv4Addr::from(address), 434));
    let [from, to] = [from, to].map(|(address, port)| std::net::SocketAddrV4::new(address, port));
    let packet = wire::udp::packet(from, to, &payload);
    let length = (packet.len() as u32).to_le_bytes();
    let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0];
    file.extend([link_type, 0, 0, 0]);
    for _ in 0..requests {
        file.extend([10, 0, 0, 0, 250, 0, 0, 0]);
        file.extend([length, length].concat());
        file.extend(&packet);
    }
    file
}

/// A program that captures may still run: what it has written is printed before it writes more.
#[test]
fn a_packet_is_printed_when_it_is_read() {
    use std::io::{BufRead, BufReader, Read, Write};
    let mut decoder = Command::new(env!("CARGO_BIN_EXE_wayfare"))
        .args(["decode", "-"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let (mut input, output) = (decoder.stdin.take().unwrap(), decoder.stdout.take().unwrap());
    input.write_all(&pcap(101, 1)).unwrap();
    input.flush().unwrap();
    let (lines, found) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut output = BufReader::new(output);
        let mut first = String::new();
        output.read_line(&mut first).unwrap();
        lines.send(first).unwrap();
        let mut rest = String::new();
        output.read_to_string(&mut rest).unwrap();
        lines.send(rest).unwrap();
    });
    let patience = std::time::Duration::from_mins(1);
    let first = found.recv_timeout(patience).expect("a packet is printed before the end of the file");
    assert!(first.starts_with("packet 1, 10.000250 s, "), "{first}");
    drop(input);
    let rest = found.recv_timeout(patience).unwrap();
    assert!(rest.ends_with("1 packet, 1 printed, 0 malformed\n"), "{rest}");
    assert!(decoder.wait().unwrap().success());
}

#[test]
fn the_packets_before_a_cut_one_are_printed() {
    let folder = tempfile::tempdir().unwrap();
    let whole = pcap(101, 3);
    std::fs::write(folder.path().join("cut.pcap"), &whole[..whole.len() - 10]).unwrap();
    let output = wayfare(folder.path(), &["decode", "cut.pcap"]);
    let [text, errors] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text.matches("Mobile IP registration request").count(), 2, "{text}");
    assert!(text.ends_with("2 packets, 2 printed, 0 malformed\n"), "{text}");
    assert!(errors.contains("cut.pcap: packet 3: "), "{errors}");
    // The same holds for lines of text.
    std::fs::write(folder.path().join("text"), format!("{REQUEST}\nnot hex\n")).unwrap();
    let text = says(folder.path(), &["decode", "text"], 2);
    assert_eq!(text.matches("Mobile IP registration request").count(), 1, "{text}");
}

#[test]
fn a_capture_of_a_link_that_is_not_decoded_says_so() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("radio.pcap"), pcap(127, 2)).unwrap();
    let text = says(folder.path(), &["decode", "radio.pcap"], 0);
    let expected = "2 packets, 0 printed, 0 malformed; --all prints the 2 others\n\
                    2 of them not decoded: link type 127; allowed: 1 (Ethernet), 101 and 228 (IP)\n";
    assert_eq!(text, expected);
}

/// Runs the download of Mobile IP with this clock of the mobile node, and returns its decoded capture.
fn with_clock(folder: &Path, clock: &str, duration: &str) -> String {
    let clock = format!("host.mobile.clock={clock}");
    let duration = format!("duration={duration}");
    let run = ["run", "mobile-ip/download", "--out", "run", "--set", &clock, "--set", &duration];
    says(folder, &run, 0);
    says(folder, &["decode", "run/capture.pcapng"], 0)
}

/// Returns whether a denial for a wrong clock (code 133) is followed by an accepted request.
fn is_corrected(decoded: &str) -> bool {
    let denied = decoded.find("133 (home agent: Identification mismatch)");
    denied.is_some_and(|at| decoded[at..].contains("0 (accepted)"))
}

#[test]
fn a_clock_that_is_an_hour_ahead_is_corrected_by_a_denial() {
    let folder = tempfile::tempdir().unwrap();
    let ahead = with_clock(folder.path(), "{offset=\"+60min\"}", "10s");
    assert!(is_corrected(&ahead), "{ahead}");
    assert!(ahead.contains("as a time 2000-01-01 01:00:0"), "the first request has the node's time");
    let folder = tempfile::tempdir().unwrap();
    let correct = with_clock(folder.path(), "{offset=\"+3s\"}", "10s");
    assert!(!correct.contains("133 (") && correct.contains("0 (accepted)"), "3 s are tolerated");
}

/// A clock that gains 500 us a second is 7 s ahead after 14000 s. A home agent tolerates 7 s (RFC 5944, section 5.7).
#[test]
fn a_clock_that_drifts_is_corrected_after_hours() {
    let folder = tempfile::tempdir().unwrap();
    let drifts = with_clock(folder.path(), "{drift=500}", "15000s");
    assert!(is_corrected(&drifts));
    let folder = tempfile::tempdir().unwrap();
    let less = with_clock(folder.path(), "{drift=500}", "13000s");
    assert!(!less.contains("133 ("), "6.5 s are tolerated");
}

#[test]
fn a_wrong_clock_is_refused_at_its_key() {
    let folder = tempfile::tempdir().unwrap();
    for (clock, expected) in [
        ("{offset=\"1h\"}", "`host.mobile.clock.offset`"),
        ("{drift=20000}", "`host.mobile.clock.drift`: `20000` is not a drift; allowed"),
        ("{skew=1}", "unknown field `skew`, expected `offset` or `drift`"),
    ] {
        let error = says(
            folder.path(),
            &["run", "mobile-ip/download", "--set", &format!("host.mobile.clock={clock}")],
            2,
        );
        assert!(error.contains(expected), "{clock}: {error}");
    }
}

#[test]
fn wrong_numbers_are_refused_with_the_name_and_what_is_allowed() {
    const BRACES: &str =
        "allowed: names and numbers in braces, for example `{ update = 88, previous_agent = 97 }`";
    let folder = tempfile::tempdir().unwrap();
    for (wrong, expected) in [
        ("", BRACES),
        ("{", BRACES),
        ("update", BRACES),
        ("update = 88", BRACES),
        ("{ update = }", BRACES),
        ("{ update: 88 }", BRACES),
        ("88", BRACES),
        ("[88]", BRACES),
        ("{}\nother = 1", "more than one table; allowed: names and numbers"),
        ("{ update = 88, update = 89 }", "duplicate key"),
        ("{ updat = 88 }", "unknown field `updat`, expected one of `warning`, `request`, `update`, "),
        ("{ update = 300 }", "`update = 300`: allowed: a whole number from 0 to 255"),
        ("{ update = -1 }", "`update = -1`: allowed: a whole number from 0 to 255"),
        ("{ update = \"88\" }", "`update = \"88\"`: allowed: a whole number from 0 to 255"),
        ("{ update = 8.5 }", "`update = 8.5`: allowed: a whole number from 0 to 255"),
        ("{ vendor_key = 70000 }", "`vendor_key = 70000`: allowed: a whole number from 0 to 65535"),
        ("{ vendor = -5 }", "`vendor = -5`: allowed: a whole number from 0 to 16777215"),
        ("{ vendor = 16777216 }", "`vendor` must be at most 16777215"),
        ("{ update = 3 }", "`update` is 3, but 1, 3 and 4 are types of registrations"),
        ("{ private_flag = 2 }", "`private_flag` must be a reserved bit of requests: 1 or 4"),
    ] {
        let error = says(folder.path(), &["decode", "--hex", "03", "--numbers", wrong], 2);
        assert!(error.contains(expected) && error.contains("--numbers"), "{wrong}: {error}");
    }
    let error = says(folder.path(), &["decode", "--hex", "03", "--numbers"], 2);
    assert!(error.contains("a value is required for '--numbers <{ NAME = NUMBER, ... }>'"), "{error}");
}

/// The numbers of a scenario are those of its capture. Another capture needs them as an argument.
#[test]
fn a_capture_of_a_run_is_decoded_with_the_numbers_of_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let numbers = "{ update = 88, previous_agent = 97 }";
    let setting = |role| format!("{role}.numbers={numbers}");
    let [home, foreign, mobile] = ["home-agent", "foreign-agent", "mobile-node"].map(setting);
    let run = ["run", "mobile-ip/smooth-handoff", "--out", "run", "--snap", "full"];
    let settings = ["--set", &home, "--set", &foreign, "--set", &mobile];
    says(folder.path(), &[&run[..], &settings[..]].concat(), 0);
    let text = says(folder.path(), &["decode", "run/capture.pcapng"], 0);
    assert!(text.contains("\n  Mobile IP binding update\n"), "{text}");
    std::fs::copy(folder.path().join("run/capture.pcapng"), folder.path().join("copy")).unwrap();
    assert!(says(folder.path(), &["decode", "copy"], 1).contains(": mip_unknown_type: "));
    assert_eq!(says(folder.path(), &["decode", "copy", "--numbers", numbers], 0), text);
    for (wrong, expected) in [
        ("{ update = 17 }", "`request` and `update` are both 17"),
        ("{ updates = 17 }", "unknown field `updates`"),
        ("88", "invalid type: integer `88`"),
    ] {
        let error = says(folder.path(), &["decode", "copy", "--numbers", wrong], 2);
        assert!(error.contains(expected), "{error}");
    }
    std::fs::write(folder.path().join("run/run.json"), r#"{"format": 5, "scenario": {}, "backend": "sim"}"#)
        .unwrap();
    let error = says(folder.path(), &["decode", "run/capture.pcapng"], 2);
    assert!(error.contains("the run directory has format 5") && error.contains("--numbers"), "{error}");
    assert_eq!(says(folder.path(), &["decode", "run/capture.pcapng", "--numbers", numbers], 0), text);
}
