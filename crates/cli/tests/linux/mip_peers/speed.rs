//! Measurements of Mobile IP on Linux. They print their numbers; docs/bench.md describes them.

use super::path::away;
use crate::common::*;

/// The number of registrations of which the percentiles are printed.
const REGISTRATIONS: usize = 100;

/// A mobile node registers 100 times through both agents. Each registration takes from the request that the mobile node
/// sent until the reply that it received. Its daemon, those of the agents and the home agent's store take part, and a
/// router of the kernel. A mobile node sends at most one request per second, so this takes 100 seconds.
#[test]
#[ignore = "measures this machine: `make registrations`"]
fn a_hundred_registrations_through_both_agents() {
    if !need("root, to make a network", is_root()) {
        return;
    }
    let _turn = alone();
    let mut stage = away();
    for _ in 1..REGISTRATIONS {
        pause(1010);
        stage.ask("mobile", r#"{"do":{"verb":"register"}}"#).expect("an agent");
    }
    pause(500);
    stage.stop("mobile");
    let records = std::fs::read_to_string(stage.at("mobile.records")).unwrap();
    let (mut took, mut sent) = (Vec::new(), None);
    for line in records.lines() {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        match record["name"].as_str() {
            Some("request_sent") => sent = record["t"].as_u64(),
            Some("registered") => {
                let begun = sent.take().expect("a request");
                took.push((record["t"].as_u64().unwrap() - begun) as f64 / 1e6);
            }
            _ => {}
        }
    }
    assert!(took.len() >= REGISTRATIONS, "{} registrations", took.len());
    took.sort_by(f64::total_cmp);
    let percentile = |part: usize| took[(took.len() * part).div_ceil(100) - 1];
    eprintln!(
        "{{\"registrations\":{},\"p50_ms\":{:.3},\"p99_ms\":{:.3},\"least_ms\":{:.3},\"largest_ms\":{:.3}}}",
        took.len(),
        percentile(50),
        percentile(99),
        took[0],
        took[took.len() - 1]
    );
}
