//! The soak: a download and an upload continue while their host moves, and agents crash.

use super::course::course;
use super::print;
use super::watch::{Ended, quantile_ms, run};
use node::Value;
use std::fmt::Write as _;
use trace::HostId;

const SCENARIO: &str = include_str!("../../scenarios/mobile-ip/soak.toml");

/// What both ends of a stream report at its end: the number of bytes, and their SHA-256.
type Stream = (i64, String);

/// Returns what a role at a host reports with this mark. There must be one such mark.
#[track_caller]
fn reported(ended: &Ended, host: HostId, mark: &str) -> Stream {
    let found: Vec<_> =
        ended.marks.iter().filter(|(_, at, found)| *at == host && found.name == mark).collect();
    let [(.., found)] = &found[..] else { panic!("not one mark `{mark}`: {found:?}") };
    let field = |name: &str| found.fields.iter().find(|(field, _)| *field == name).map(|(_, value)| value);
    assert_eq!(field("wrong_at"), None, "{found:?}");
    let bytes = field("bytes").and_then(Value::as_int).unwrap();
    (bytes, field("sha256").and_then(Value::as_text).unwrap().to_owned())
}

/// Checks that both streams have ended with the same bytes at both ends, and that each handoff and crash took place. Returns the
/// results as text.
#[track_caller]
fn judge(ended: &Ended, handoffs: usize, crashes: usize) -> String {
    assert_eq!((ended.moves().len(), ended.crashes), (handoffs, crashes));
    let [fixed, mobile] = ["correspondent", "mobile"].map(|name| ended.host(name));
    let mut text = format!("{handoffs} handoffs, {crashes} crashes, the ledger balances\n");
    for (what, from, to) in [("download", fixed, mobile), ("upload", mobile, fixed)] {
        let (sent, received) = (reported(ended, from, "served"), reported(ended, to, "done"));
        assert_eq!(sent, received, "{what}");
        // Each direction has at least a fifth of what the cell can carry.
        assert!(sent.0 > handoffs as i64 * 50_000, "{what}: {} bytes", sent.0);
        let _ = writeln!(text, "  {what}: {} bytes, SHA-256 {} at both ends", sent.0, sent.1);
    }
    for (what, host) in [("download", "mobile"), ("upload", "correspondent")] {
        let stalls = ended.stalls(host);
        let [median, p99, most] = [0.5, 0.99, 1.0].map(|part| quantile_ms(&stalls, part));
        let _ = writeln!(
            text,
            "  longest stall of the {what} per handoff: median {median:.1} ms, 99 % at most {p99:.1} ms, longest {most:.1} ms"
        );
    }
    for name in ["forwarding_begun", "kept_sent", "binding_learnt", "update_repeated"] {
        let _ = writeln!(text, "  {name}: {}", ended.count(name));
    }
    let _ = write!(text, "  packets: {} sent, dropped: {:?}", ended.ledger.sent, ended.ledger.dropped);
    // Each handoff is smooth, unless an agent is down.
    assert!(ended.count("forwarding_begun") + 3 * crashes >= handoffs, "{text}");
    assert!(ended.count("binding_learnt") + 3 * crashes >= handoffs, "{text}");
    text
}

#[test]
fn twenty_handoffs_with_crashing_agents_lose_no_byte() {
    let text = judge(&run(SCENARIO, &[]), 20, 4);
    println!("{text}");
}

#[test]
#[ignore = "minutes: `make soak-mobile-ip`"]
fn a_thousand_handoffs_with_crashing_agents_lose_no_byte() {
    print(&judge(&run(SCENARIO, &course(1000)), 1000, 20));
}
