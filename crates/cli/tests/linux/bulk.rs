//! TCP on a real kernel: a download between two daemons, as a scenario says it.

use crate::common::*;

#[test]
fn a_download_by_the_kernels_tcp_is_whole_and_used_what_was_asked_for() {
    let _turn = beside_another();
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

/// The world's report, wherever in the run directory it lies.
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
