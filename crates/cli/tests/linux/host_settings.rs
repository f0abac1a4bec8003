//! Settings of single hosts on a real kernel: the wall clock that roles see, and the parameters of the kernel's TCP.

use crate::common::*;
use serde_json::Value;
use std::path::Path;

/// A run with one move, at 4.3 s, during the download.
fn download<'a>(settings: &[&'a str]) -> Vec<&'a str> {
    let mut words = vec!["run", "mobile-ip/download", "--on", "linux"];
    for setting in ["duration=9s", "bulk-server.bytes=1200000"].iter().chain(settings) {
        words.extend(["--set", *setting]);
    }
    words
}

fn summary(out: &Path, host: &str) -> Value {
    let run = kept_run(out);
    let hosts = run["linux"]["hosts"].as_array().unwrap();
    hosts.iter().find(|report| report["name"] == host).unwrap()["summary"].clone()
}

#[test]
fn a_mobile_node_whose_clock_is_an_hour_ahead_is_corrected() {
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    let output = run(&download(&["host.mobile.clock={offset=\"+60min\", drift=500}"]), out.path());
    assert_held(&output, "mobile-ip-download on linux");
    let status = &summary(out.path(), "mobile")["status"]["mobile_node"];
    let ahead = status["home_agent_ahead_s"].as_i64().unwrap();
    assert!((-3601..=-3599).contains(&ahead), "{status}");
    assert_eq!(status["care_of"], "10.2.0.1");
    let capture = kept(out.path()).join("capture.pcapng");
    let decoded = run_to_end(&["decode", capture.to_str().unwrap()], out.path());
    let denied = decoded.find("133 (home agent: Identification mismatch)").expect("a denial");
    assert!(decoded[denied..].contains("0 (accepted)"), "{decoded}");
}

fn run_to_end(words: &[&str], out: &Path) -> String {
    let output = run(words, out);
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn tcp_of_one_host_has_its_settings_and_the_run_records_them() {
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    let tcp = "host.correspondent.tcp={rto_min=\"1s\", sack=false, dsack=false, recovery=[\"rack\", \"prr\"], \
               send_buffer=65536, receive_buffer=32768, congestion=\"cubic\"}";
    let output = run(&download(&[tcp]), out.path());
    assert_held(&output, "mobile-ip-download on linux");
    let said = text(&output.stdout);
    assert!(said.contains("TCP of correspondent's kernel: congctl cubic, rto_min 1000 ms, "), "{said}");
    assert!(!said.contains("TCP of mobile's kernel"), "{said}");
    let changed = summary(out.path(), "correspondent");
    let settings = &changed["tcp_settings"];
    for (name, value) in [
        ("tcp_sack", "0"),
        ("tcp_dsack", "0"),
        ("tcp_early_retrans", "0"),
        ("tcp_frto", "0"),
        ("tcp_recovery", "1"),
        ("tcp_wmem", "4096\t16384\t65536"),
        ("congctl", "cubic"),
        ("rto_min", "1000 ms"),
        ("window", "32768 bytes"),
    ] {
        assert_eq!(settings[name], value, "{name}: {settings}");
    }
    // The kernel's time-out is at least `rto_min`, in each connection. A round trip here takes less than a second.
    let time_outs = |of: &Value| -> Vec<u64> {
        of["tcp"].as_array().unwrap().iter().filter_map(|socket| socket["rto_us"].as_u64()).collect()
    };
    let long = time_outs(&changed);
    assert!(!long.is_empty() && long.iter().all(|us| *us >= 1_000_000), "{long:?}");
    let other = summary(out.path(), "mobile");
    assert_eq!(other["tcp_settings"]["tcp_sack"], "1", "another host has its own");
}

#[test]
fn a_value_that_no_kernel_has_is_an_error_before_the_run() {
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    for (tcp, says) in [
        (
            "{rto_min=\"500us\"}",
            "host `correspondent`: `tcp.rto_min`: 0.0005 s are not possible on Linux; allowed: whole milliseconds, `1ms` to `1000s`",
        ),
        (
            "{send_buffer=1000}",
            "`tcp.send_buffer`: 1000 bytes are not possible on Linux; allowed: 4608 to 1073741824",
        ),
        ("{congestion=\"vegass\"}", "this kernel has no congestion control `vegass`"),
    ] {
        let output = run(&download(&[&format!("host.correspondent.tcp={tcp}")]), out.path());
        assert_exit(&output, 3, says);
    }
}
