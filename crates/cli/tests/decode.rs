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
    std::fs::write(folder.path().join("text"), "01 2a\nnot hex\n").unwrap();
    std::fs::write(folder.path().join("cut.pcap"), [0xd4, 0xc3, 0xb2, 0xa1, 2, 0]).unwrap();
    for (arguments, expected) in [
        (vec!["decode", "--hex", "012"], "3 digits are no whole bytes; allowed: two digits for each byte"),
        (vec!["decode", "--hex", "01 zz"], "`z` at character 4 is not a hexadecimal digit; allowed: 0 to 9"),
        (vec!["decode", "nothing"], "cannot read nothing: "),
        (vec!["decode", "binary"], "allowed: pcap, pcapng, or hexadecimal digits"),
        (vec!["decode", "text"], "text, line 2: `n` at character 1"),
        (vec!["decode", "cut.pcap"], "cut.pcap: packet 1: "),
        (vec!["decode"], "required"),
        (vec!["decode", "text", "--hex", "01"], "cannot be used with"),
    ] {
        let error = says(folder.path(), &arguments, 2);
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
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
