//! The comparison on a real kernel: contenders, worlds, and the scenario of one leg by itself.

use crate::common::*;

#[test]
fn contenders_stand_as_in_the_simulator() {
    let _turn = alone();
    let out = tempfile::tempdir().unwrap();
    let words = ["compare", "plain-ip", "cellular-ip", "--on", "both", "--runs", "1", "--format", "json"];
    let output = run(&words, out.path());
    if only_the_timing_was_wrong(&output) {
        eprintln!("this machine kept the links waiting: {}", text(&output.stderr));
        return;
    }
    assert_exit(&output, 0, "");
    let json: serde_json::Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    let rows = json["rows"].as_array().unwrap();
    let outages = rows.iter().filter(|row| row["metric"] == "outage_ms" && row["world"] == "linux");
    for row in outages {
        let recovers = row["protocol"] != "plain-ip"
            && !(row["protocol"] == "cellular-ip-semisoft" && row["move"] == "gap");
        assert_eq!(row["median"].is_number(), recovers, "{row}");
        assert_eq!(row["why_not"].is_null(), recovers, "{row}");
    }
    // Eleven segments are what the window lets in, and so what a cell's queue can take with it.
    let lost = |row: &&serde_json::Value| row["metric"] == "lost_packets" && row["workload"] == "bulk";
    for row in rows.iter().filter(lost).filter(|row| row["protocol"] == "cellular-ip-hard") {
        assert!((1.0..=12.0).contains(&row["median"].as_f64().unwrap()), "{row}");
    }
    let held = json["must_hold"].as_array().unwrap();
    // An order needs more than one run.
    let holds = |verdict: &serde_json::Value| verdict["holds"] == true || verdict["world"] == "both";
    assert!(held.len() == 5 && held.iter().all(holds), "{held:?}");
}

#[test]
fn questions_are_answered_by_the_kernels_tcp_while_the_host_moves() {
    let _turn = alone();
    let out = tempfile::tempdir().unwrap();
    let output = run(&["run", "compare/mobile-ip/gap/requests", "--on", "linux"], out.path());
    assert_held(&output, "compare-mobile-ip-gap-requests on linux");
    let said = text(&output.stdout);
    assert!(said.contains("recovery") && !said.contains("unexplained"), "{said}");
    let file = out.path().join("runs/compare-mobile-ip-gap-requests-linux-1/run.json");
    let run: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let hosts = run["linux"]["hosts"].as_array().unwrap();
    let mobile = hosts.iter().find(|host| host["name"] == "mobile").unwrap();
    let client = &mobile["status"]["request-client"];
    assert!(client["answered"].as_u64().is_some_and(|answered| answered > 50), "{client}");
    assert!(client["wrong_at"].is_null() && client["failed"].is_null(), "{client}");
    assert!(client["state"] == "asks" || client["state"] == "rests", "{client}");
}
