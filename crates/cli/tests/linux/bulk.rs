//! TCP on a real kernel: a download between two daemons, configured by a scenario.

use crate::common::*;

#[test]
fn a_download_by_the_kernels_tcp_is_whole_and_used_what_was_asked_for() {
    let _turn = beside_others();
    for congestion in ["reno", "cubic"] {
        let out = tempfile::tempdir().unwrap();
        let setting = format!("host.server.tcp.congestion={congestion}");
        let words =
            ["run", "bulk", "--on", "linux", "--set", "bulk-server.duration=2s", "--set", "duration=4s"];
        let output = run(&[&words[..], &["--set", &setting]].concat(), out.path());
        assert_held(&output, "bulk on linux");
        let report = everything_in(out.path());
        assert!(report.contains(&format!("\"congestion\": \"{congestion}\"")), "{congestion}: {report}");
        assert!(report.contains("\"state\": \"done\"") && report.contains("\"wrong_at\": null"), "{report}");
    }
}

/// If a source sends a fifth more than the wire can carry, its datagrams arrive at the wire's rate, within 3 %. A
/// datagram has 1514 bytes with its headers.
#[test]
fn a_wire_carries_the_rate_that_is_claimed() {
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    let source = "host.server.role=[{ kind = 'apps/constant-rate', to = 'client:9000', rate = 1000, size = 1472, \
                  start = '0.2s', stop = '1.7s' }]";
    let sink = "host.client.role=[{ kind = 'apps/sink', at = 'client:9000' }]";
    let run_in = ["run", "bulk", "--on", "linux", "--out", "run", "--set", "duration=2s"];
    let output = run(&[&run_in[..], &["--set", source, "--set", sink]].concat(), out.path());
    if !held_or_late(&output, "bulk on linux") {
        return late(&output);
    }
    let packets = std::fs::read_to_string(out.path().join("run/packets.csv")).unwrap();
    let columns = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<_>>();
    let head = columns(packets.lines().next().unwrap());
    let place = |name: &str| head.iter().position(|column| column == name).unwrap();
    let arrived: Vec<f64> = packets
        .lines()
        .map(columns)
        .filter(|row| row[place("host")] == "client" && row[place("direction")] == "in")
        .filter(|row| row[place("protocol")] == "UDP")
        .map(|row| row[place("time_s")].parse().unwrap())
        .collect();
    let span = arrived[arrived.len() - 1] - arrived[0];
    let seen = (arrived.len() - 1) as f64 * 1514.0 * 8.0 / span;
    assert!((seen / 1e7 - 1.0).abs() < 0.03, "{seen:.0} b/s in {span:.3} s");
    assert!(span > 1.45, "the wire was not full: {span:.3} s");
}

/// A datagram of more than 1500 bytes comes in fragments, which the node puts together, and the kernel's device takes only
/// fragments. The run must count both in the same way, or it does not trust itself.
#[test]
fn datagrams_that_are_longer_than_a_frame_arrive() {
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    let source = "host.server.role=[{ kind = 'apps/constant-rate', to = 'client:9000', rate = 10, size = 4000, \
                  dont_fragment = false, start = '0.2s', stop = '1.7s' }]";
    let sink = "host.client.role=[{ kind = 'apps/sink', at = 'client:9000' }]";
    let run_in = ["run", "bulk", "--on", "linux", "--out", "run", "--set", "duration=2s"];
    let output = run(&[&run_in[..], &["--set", source, "--set", sink]].concat(), out.path());
    assert_held(&output, "bulk on linux");
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(report.contains("UDP        64000") && report.contains("completed"), "{report}");
}

/// Returns the contents of all JSON files below a directory.
fn everything_in(dir: &std::path::Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            text.push_str(&everything_in(&path));
        } else if path.extension().is_some_and(|extension| extension == "json") {
            text.push_str(&std::fs::read_to_string(&path).unwrap_or_default());
        }
    }
    text
}
